/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged ledgers: order, phases, prompt hand-over. A
 * waiter is judged by the faults that hit its own process. */
#include "forged.h"

#include "suite.h"

#include <string.h>

#define A "p1:1:1:f300"
#define B "p2:1:1:f300"
#define C "p3:1:1:f300"
#define READ_A "p1:1:3:r300"
#define READ_B "p2:1:3:r300"
#define READ_C "p3:1:3:r300"
#define WRITE_A "p1:1:4:w300"
#define WRITE_B "p2:1:4:w300"
#define WRITE_C "p3:1:4:w300"
#define WRITE_D "p4:1:4:w300"

enum { POLL = PRESENCE / 3 };

static void all_present(unsigned lock)
{
    static const char *const clients[] = { "p1", "p2", "p3", "p4" };
    transaction(900);
    for (int i = 0; i < 4; i++)
        present(lock, clients[i], ENDED);
}

static void queues_at(double at, unsigned lock, const char *id)
{
    transaction(at);
    queues(lock, id, strstr(id, ":r") != NULL);
}

/* By a release that hands over. */
static void hands_over(double at, unsigned lock, const char *from, const char *to)
{
    transaction(at);
    leaves(lock, from, false);
    grants(lock, to, at + LEASE);
}

/* ---- order */

/* C has the lock; A and B queue in this order. */
static void two_wait(void)
{
    all_present(FAIR);
    transaction(1000);
    grants(FAIR, C, 2000);
    queues_at(1100, FAIR, A);
    queues_at(1200, FAIR, B);
}

START_TEST(grants_in_the_order_of_tickets_are_fair)
{
    two_wait();
    hands_over(1300, FAIR, C, A);
    hands_over(1400, FAIR, A, B);
    KEEPS(NEM_RULE_ORDER);
    KEEPS(NEM_RULE_PROMPT);
    ck_assert_uint_eq(verdict.handovers, 2);
}
END_TEST

START_TEST(grant_before_an_earlier_ticket_is_a_violation)
{
    two_wait();
    hands_over(1300, FAIR, C, B);
    hands_over(1400, FAIR, B, A);
    BREAKS(NEM_RULE_ORDER, 1);
}
END_TEST

START_TEST(later_waiter_is_later_whatever_its_ticket)
{
    two_wait();
    transaction(1250); /* the clock was set back */
    entry(NEM_QUEUED, FAIR, "p4:1:1:f300", server_at(1000) * 1000);
    hands_over(1300, FAIR, C, "p4:1:1:f300");
    BREAKS(NEM_RULE_ORDER, 2);
}
END_TEST

START_TEST(first_waiter_is_first_whatever_its_ticket)
{
    all_present(FAIR);
    transaction(1000);
    grants(FAIR, C, 2000);
    queues_at(1100, FAIR, A);
    transaction(1200);
    entry(NEM_QUEUED, FAIR, B, server_at(1050) * 1000);
    hands_over(1300, FAIR, C, A);
    hands_over(1400, FAIR, A, B);
    KEEPS(NEM_RULE_ORDER);
}
END_TEST

START_TEST(acquire_past_a_waiter_is_a_violation)
{
    two_wait();
    hands_over(1300, FAIR, C, "p4:1:1:f300");
    BREAKS(NEM_RULE_ORDER, 2);
}
END_TEST

START_TEST(a_mutex_may_be_taken_past_a_waiter)
{
    all_present(MUTEX);
    transaction(1000);
    grants(MUTEX, "p3:1:1:m300", 2000);
    queues_at(1100, MUTEX, "p1:1:1:m300");
    hands_over(1300, MUTEX, "p3:1:1:m300", "p2:1:1:m300");
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_ORDER], 0);
    ck_assert_uint_eq(verdict.judged[NEM_RULE_ORDER], 0);
}
END_TEST

START_TEST(a_live_waiter_is_not_dropped)
{
    two_wait();
    transaction(1300);
    leaves(FAIR, C, false);
    entry(NEM_UNQUEUED, FAIR, A, 0);
    grants(FAIR, B, 2300);
    BREAKS(NEM_RULE_ORDER, 2);     /* it is dropped, and overtaken */
    entry(NEM_MARKED, FAIR, A, 0); /* it gave up */
    BREAKS(NEM_RULE_ORDER, 0);
}
END_TEST

START_TEST(absent_waiter_may_be_overtaken)
{
    two_wait();
    transaction(1250);
    present(FAIR, "p1", 1300); /* the script may also be 0.9 ms later */
    hands_over(1300, FAIR, C, B);
    BREAKS(NEM_RULE_ORDER, 0);
    transaction(1260);
    present(FAIR, "p1", 1301);
    BREAKS(NEM_RULE_ORDER, 1);
}
END_TEST

START_TEST(disturbed_waiter_may_be_overtaken_for_a_presence)
{
    two_wait();
    transaction(1300 + ROOM);
    leaves(FAIR, C, false);
    grants(FAIR, B, 3000);
    fault(NEM_CLIENT_KILL_PUBSUB, 2, NEM_ALL, 1250, 1300); /* another one's */
    fault(NEM_SCRIPT_FLUSH, NEM_ALL, NEM_ALL, 1250, 1300);
    fault(NEM_FLUSHALL, NEM_ALL, NEM_ALL, 1250, 1300);
    fault(NEM_CLOCK_BACK, NEM_ALL, NEM_ALL, 1250, 1300);
    loses(NEM_DELETE_LOCK, FAIR, "nemesis1", 1299);
    loses(NEM_EVICT, FAIR, "nemesis1", 1299);
    fault(NEM_CUT, 1, NEM_ALL, 1250, 1297);
    BREAKS(NEM_RULE_ORDER, 1);
    fault(NEM_CLIENT_KILL_PUBSUB, 1, NEM_ALL, 1250, 1299);
    BREAKS(NEM_RULE_ORDER, 0);
}
END_TEST

START_TEST(waiter_with_a_mailbox_must_not_be_overtaken)
{
    two_wait();
    transaction(1300);
    leaves(FAIR, C, false);
    grants(FAIR, B, 3000);
    fault(NEM_STOP_LONG, 1, NEM_ALL, 1250, 1350);
    fault(NEM_STALL, NEM_ALL, NEM_ALL, 1250, 1249 + TIMEOUT / 2);
    fault(NEM_CLIENT_KILL, NEM_ALL, NEM_ALL, 1250, 1251);
    fault(NEM_MAXMEMORY, NEM_ALL, NEM_ALL, 1250, 1350);
    BREAKS(NEM_RULE_ORDER, 1);
    BREAKS(NEM_RULE_PROMPT, 0);
}
END_TEST

START_TEST(process_stopped_before_its_subscription_has_no_mailbox)
{
    two_wait();
    transaction(1300 + ROOM);
    leaves(FAIR, C, false);
    grants(FAIR, B, 3000);
    fault(NEM_CLIENT_KILL_PUBSUB, 1, NEM_ALL, 1000, 1001);
    BREAKS(NEM_RULE_ORDER, 1);
    fault(NEM_STOP_LONG, 1, NEM_ALL, 1002 + ROOM, 1500 + ROOM); /* it had done so
                                                                   before */
    BREAKS(NEM_RULE_ORDER, 1);
    fault(NEM_STALL, 1, NEM_ALL, 990 + ROOM, 1010 + ROOM);
    BREAKS(NEM_RULE_ORDER, 0);
}
END_TEST

START_TEST(a_restart_of_the_server_disturbs_all)
{
    two_wait();
    hands_over(1300, FAIR, C, B);
    fault(NEM_SERVER_RESTART, 0, NEM_ALL, 1250, 1260);
    BREAKS(NEM_RULE_ORDER, 0);
}
END_TEST

START_TEST(a_process_that_has_just_begun_may_be_passed)
{
    two_wait();
    fault(NEM_KILL, 1, NEM_ALL, 1050, 1060);
    restarts(1, 1080);
    transaction(1100);
    present(FAIR, "p1b", ENDED);
    queues_at(1350, FAIR, "p1b:1:1:f300");
    queues_at(1400, FAIR, "p4:1:1:f300");
    hands_over(1450, FAIR, C, B);
    hands_over(1080 + ROOM, FAIR, B, "p4:1:1:f300");
    BREAKS(NEM_RULE_ORDER, 0);
}
END_TEST

START_TEST(a_process_that_began_long_ago_may_not)
{
    all_present(FAIR);
    fault(NEM_KILL, 1, NEM_ALL, 1050, 1060);
    restarts(1, 1080);
    transaction(1000);
    grants(FAIR, B, 2000);
    transaction(1100);
    present(FAIR, "p1b", ENDED);
    queues_at(1350, FAIR, "p1b:1:1:f300");
    queues_at(1400, FAIR, "p4:1:1:f300");
    hands_over(1082 + ROOM, FAIR, B, "p4:1:1:f300");
    BREAKS(NEM_RULE_ORDER, 1);
}
END_TEST

/* ---- prompt */

/* C's lease ends at 2000; A waits. */
static void one_waits(void)
{
    all_present(FAIR);
    transaction(1000);
    grants(FAIR, C, 2000);
    queues_at(1100, FAIR, A);
}

START_TEST(an_expired_lease_is_taken_over_by_the_next_poll)
{
    one_waits();
    hands_over(2000 + 2 * EXACT + POLL + SLACK, FAIR, C, A);
    KEEPS(NEM_RULE_PROMPT);
}
END_TEST

START_TEST(a_lock_that_expired_is_free_until_somebody_looks)
{
    one_waits();
    transaction(2000);
    leaves(FAIR, C, true);
    transaction(2000 + POLL);
    grants(FAIR, A, 3100);
    KEEPS(NEM_RULE_PROMPT);
}
END_TEST

START_TEST(an_expired_lease_that_is_taken_over_later_is_late)
{
    one_waits();
    hands_over(2001 + 2 * EXACT + POLL + SLACK, FAIR, C, A);
    BREAKS(NEM_RULE_PROMPT, 1);
}
END_TEST

START_TEST(bound_begins_with_the_first_waiter)
{
    all_present(FAIR);
    transaction(1000);
    grants(FAIR, C, 2000);
    queues_at(2900, FAIR, A);
    hands_over(3000, FAIR, C, A);
    KEEPS(NEM_RULE_PROMPT);
}
END_TEST

START_TEST(a_lease_without_end_makes_nobody_late)
{
    one_waits();
    transaction(1200);
    entry(NEM_LEASE, FAIR, C, 0);
    hands_over(3000, FAIR, C, A);
    KEEPS(NEM_RULE_PROMPT);
}
END_TEST

START_TEST(waiter_cut_off_while_the_lock_was_free_is_not_late)
{
    one_waits();
    hands_over(2500, FAIR, C, A);
    fault(NEM_FREEZE, 2, NEM_ALL, 2050, 2100);
    BREAKS(NEM_RULE_PROMPT, 1);
    fault(NEM_FREEZE, 1, NEM_ALL, 2050, 2100);
    BREAKS(NEM_RULE_PROMPT, 0);
}
END_TEST

START_TEST(a_stepped_clock_makes_nobody_late)
{
    one_waits();
    hands_over(2500, FAIR, C, A);
    fault(NEM_CLOCK_BACK, NEM_ALL, NEM_ALL, 100, 101); /* long ago */
    BREAKS(NEM_RULE_PROMPT, 1);
    fault(NEM_CLOCK_BACK, NEM_ALL, NEM_ALL, 1500, 1501);
    EXCUSES(NEM_RULE_PROMPT, 1);
}
END_TEST

START_TEST(a_release_hands_over_itself)
{
    one_waits();
    transaction(1500);
    leaves(FAIR, C, true);
    transaction(1510);
    grants(FAIR, A, 2510);
    BREAKS(NEM_RULE_PROMPT, 1);
}
END_TEST

START_TEST(a_release_cannot_hand_over_to_the_dead)
{
    one_waits();
    transaction(1500);
    leaves(FAIR, C, true);
    fault(NEM_STOP_LONG, 1, NEM_ALL, 1400, 1600); /* it is present and has a mailbox */
    BREAKS(NEM_RULE_PROMPT, 1);
    fault(NEM_STALL, 1, NEM_ALL, 1400, 1400 + TIMEOUT / 2 - 1);
    BREAKS(NEM_RULE_PROMPT, 1);
    fault(NEM_CUT, 1, NEM_ALL, 1400, 1410);
    BREAKS(NEM_RULE_PROMPT, 0);
}
END_TEST

START_TEST(a_machine_that_stands_still_for_long_costs_mailboxes)
{
    one_waits();
    transaction(1500);
    leaves(FAIR, C, true);
    fault(NEM_STALL, 1, NEM_ALL, 1200, 1200 + TIMEOUT / 4.);
    fault(NEM_STALL, 1, NEM_ALL, 1200 + TIMEOUT / 4., 1200 + TIMEOUT / 2.);
    BREAKS(NEM_RULE_PROMPT, 0);
}
END_TEST

START_TEST(a_key_that_was_deleted_hands_over_nothing)
{
    one_waits();
    loses(NEM_DELETE_LOCK, FAIR, "", 1500); /* the key never appeared */
    transaction(1500);
    leaves(FAIR, C, true);
    transaction(1500 + POLL);
    grants(FAIR, A, 2600);
    BREAKS(NEM_RULE_PROMPT, 1);
    loses(NEM_DELETE_LOCK, FAIR, "nemesis1", 1500);
    EXCUSES(NEM_RULE_PROMPT, 1);
}
END_TEST

START_TEST(not_recoverable_lock_has_no_holder)
{
    one_waits();
    transaction(1500);
    leaves(FAIR, C, true);
    transaction(1400);
    entry(NEM_SPOILT, FAIR, "", 1);
    BREAKS(NEM_RULE_PROMPT, 0);
}
END_TEST

START_TEST(a_free_lock_that_nobody_gets_is_reported_at_the_end)
{
    all_present(FAIR);
    queues_at(ENDED - POLL - SLACK - EXACT, FAIR, A);
    BREAKS(NEM_RULE_PROMPT, 0);
    queues_at(ENDED - POLL - SLACK - EXACT - 1, FAIR, B);
    BREAKS(NEM_RULE_PROMPT, 1);
}
END_TEST

/* A reads until 2000; the key of the readers is deleted at 1200, but N stays. */
static void readers_are_deleted(void)
{
    all_present(RWLOCK);
    transaction(1000);
    reads(RWLOCK, READ_A, 2000, true);
    transaction(1200);
    leaves(RWLOCK, READ_A, false);
    queues_at(1300, RWLOCK, WRITE_C);
}

START_TEST(a_reading_whose_readers_were_deleted_goes_on)
{
    readers_are_deleted();
    transaction(2000 + 2 * EXACT + POLL + SLACK);
    grants(RWLOCK, WRITE_C, 3200);
    KEEPS(NEM_RULE_PROMPT);
}
END_TEST

START_TEST(a_reading_whose_readers_were_deleted_ends)
{
    readers_are_deleted();
    transaction(2001 + 2 * EXACT + POLL + SLACK);
    grants(RWLOCK, WRITE_C, 3200);
    BREAKS(NEM_RULE_PROMPT, 1);
}
END_TEST

START_TEST(a_reading_whose_readers_were_deleted_is_freed)
{
    readers_are_deleted();
    transaction(1400);
    entry(NEM_FREED, RWLOCK, "", 0);
    transaction(1401 + 2 * EXACT + POLL + SLACK);
    grants(RWLOCK, WRITE_C, 2600);
    BREAKS(NEM_RULE_PROMPT, 1);
}
END_TEST

/* ---- reads: for how long a writer waits */

/* A reads from 1000; C waits as a writer since 1100. */
static void writer_waits(void)
{
    all_present(RWLOCK);
    transaction(1000);
    reads(RWLOCK, READ_A, 2000, true);
    queues_at(1100, RWLOCK, WRITE_C);
}

START_TEST(a_reader_that_joins_before_the_writer_waits_is_right)
{
    all_present(RWLOCK);
    transaction(1000);
    reads(RWLOCK, READ_A, 2000, true);
    transaction(1050);
    reads(RWLOCK, READ_B, 2050, false);
    queues_at(1100, RWLOCK, WRITE_C);
    BREAKS(NEM_RULE_READS, 0);
}
END_TEST

START_TEST(reader_that_joins_past_a_writer_is_a_violation)
{
    writer_waits();
    transaction(1200);
    reads(RWLOCK, READ_B, 2200, false);
    BREAKS(NEM_RULE_READS, 1);
}
END_TEST

START_TEST(a_writer_that_is_cut_off_may_be_passed)
{
    writer_waits();
    transaction(1200);
    reads(RWLOCK, READ_B, 2200, false);
    fault(NEM_CUT, 3, NEM_ALL, 1150, 1160);
    BREAKS(NEM_RULE_READS, 0);
}
END_TEST

START_TEST(reader_that_queued_behind_the_writer_waits_for_it)
{
    writer_waits();
    queues_at(1150, RWLOCK, READ_B);
    transaction(1200);
    reads(RWLOCK, READ_B, 2200, false);
    BREAKS(NEM_RULE_READS, 1);
}
END_TEST

START_TEST(a_reader_that_was_cut_off_does_not_pass_the_writer)
{
    writer_waits();
    queues_at(1150, RWLOCK, READ_B);
    transaction(1200);
    reads(RWLOCK, READ_B, 2200, false);
    fault(NEM_CUT, 2, NEM_ALL, 1160, 1170);
    BREAKS(NEM_RULE_READS, 1);
}
END_TEST

START_TEST(reader_may_read_again)
{
    writer_waits();
    transaction(1200);
    reads(RWLOCK, "p1:1:9:r300", 2200, false);
    KEEPS(NEM_RULE_READS);
}
END_TEST

START_TEST(readers_that_were_queued_when_the_reading_began_may_come_later)
{
    all_present(RWLOCK);
    transaction(950);
    grants(RWLOCK, WRITE_D, 1950);
    queues_at(960, RWLOCK, READ_A);
    queues_at(970, RWLOCK, READ_B);
    queues_at(980, RWLOCK, WRITE_C);
    transaction(1000);
    leaves(RWLOCK, WRITE_D, false);
    reads(RWLOCK, READ_A, 2000, true);
    transaction(1010);
    reads(RWLOCK, READ_B, 2010, false);
    KEEPS(NEM_RULE_READS);
}
END_TEST

START_TEST(a_second_reading_past_a_writer_is_not_right)
{
    writer_waits();
    queues_at(1150, RWLOCK, READ_B);
    transaction(1200);
    leaves(RWLOCK, READ_A, false);
    reads(RWLOCK, READ_B, 2200, true);
    BREAKS(NEM_RULE_READS, 1);
    loses(NEM_EVICT, FAIR, "rlock:{nemesis1}:rqueue", 1120); /* another lock's */
    BREAKS(NEM_RULE_READS, 1);
    loses(NEM_DELETE_COMPANION, RWLOCK, "rlock:{nemesis2}:rqueue",
          1120); /* it is unknown what ended */
    EXCUSES(NEM_RULE_READS, 1);
}
END_TEST

START_TEST(reading_after_a_writing_is_right)
{
    writer_waits();
    queues_at(1120, RWLOCK, READ_B);
    queues_at(1130, RWLOCK, WRITE_D);
    hands_over(1200, RWLOCK, READ_A, WRITE_C);
    transaction(1300);
    leaves(RWLOCK, WRITE_C, false);
    reads(RWLOCK, READ_B, 2300, true);
    KEEPS(NEM_RULE_READS);
    KEEPS(NEM_RULE_WRITES);
}
END_TEST

START_TEST(a_downgrade_begins_a_reading)
{
    all_present(RWLOCK);
    transaction(950);
    grants(RWLOCK, WRITE_D, 1950);
    queues_at(970, RWLOCK, READ_B);
    queues_at(980, RWLOCK, WRITE_C);
    queues_at(990, RWLOCK, READ_A);
    transaction(1000);
    entry(NEM_DOWNGRADED, RWLOCK, WRITE_D, server_at(1000) * 1000);
    reads(RWLOCK, READ_A, 2000, true);
    reads(RWLOCK, READ_B, 2000, true);
    KEEPS(NEM_RULE_READS);
}
END_TEST

/* ---- writes: for how long a reader waits */

static void reader_waits(void)
{
    all_present(RWLOCK);
    transaction(1000);
    grants(RWLOCK, WRITE_A, 2000);
    queues_at(1100, RWLOCK, READ_B);
}

START_TEST(a_reader_waits_for_one_writer)
{
    reader_waits();
    hands_over(1200, RWLOCK, WRITE_A, WRITE_C);
    KEEPS(NEM_RULE_WRITES);
}
END_TEST

START_TEST(a_reader_does_not_wait_for_two)
{
    reader_waits();
    hands_over(1200, RWLOCK, WRITE_A, WRITE_C);
    hands_over(1300, RWLOCK, WRITE_C, WRITE_D);
    BREAKS(NEM_RULE_WRITES, 1);
    fault(NEM_STOP_SHORT, 2, NEM_ALL, 1210, 1350); /* it is present all the same */
    BREAKS(NEM_RULE_WRITES, 1);
}
END_TEST

START_TEST(reader_that_was_cut_off_counts_again)
{
    reader_waits();
    hands_over(1200, RWLOCK, WRITE_A, WRITE_C);
    hands_over(1300 + ROOM, RWLOCK, WRITE_C, WRITE_D);
    fault(NEM_CUT, 2, NEM_ALL, 1210, 1220);
    BREAKS(NEM_RULE_WRITES, 0);
    hands_over(1400 + ROOM, RWLOCK, WRITE_D, "p1:1:8:w300");
    hands_over(1500 + ROOM, RWLOCK, "p1:1:8:w300", "p3:1:8:w300");
    hands_over(1600 + ROOM, RWLOCK, "p3:1:8:w300", "p4:1:8:w300");
    BREAKS(NEM_RULE_WRITES, 2);
}
END_TEST

static void add_order(Suite *suite)
{
    TCase *t = forged_group(suite, "order");
    tcase_add_test(t, grants_in_the_order_of_tickets_are_fair);
    tcase_add_test(t, grant_before_an_earlier_ticket_is_a_violation);
    tcase_add_test(t, later_waiter_is_later_whatever_its_ticket);
    tcase_add_test(t, first_waiter_is_first_whatever_its_ticket);
    tcase_add_test(t, acquire_past_a_waiter_is_a_violation);
    tcase_add_test(t, a_mutex_may_be_taken_past_a_waiter);
    tcase_add_test(t, a_live_waiter_is_not_dropped);
    tcase_add_test(t, absent_waiter_may_be_overtaken);
    tcase_add_test(t, disturbed_waiter_may_be_overtaken_for_a_presence);
    tcase_add_test(t, waiter_with_a_mailbox_must_not_be_overtaken);
    tcase_add_test(t, process_stopped_before_its_subscription_has_no_mailbox);
    tcase_add_test(t, a_restart_of_the_server_disturbs_all);
    tcase_add_test(t, a_process_that_has_just_begun_may_be_passed);
    tcase_add_test(t, a_process_that_began_long_ago_may_not);
    t = forged_group(suite, "prompt");
    tcase_add_test(t, an_expired_lease_is_taken_over_by_the_next_poll);
    tcase_add_test(t, a_lock_that_expired_is_free_until_somebody_looks);
    tcase_add_test(t, an_expired_lease_that_is_taken_over_later_is_late);
    tcase_add_test(t, bound_begins_with_the_first_waiter);
    tcase_add_test(t, a_lease_without_end_makes_nobody_late);
    tcase_add_test(t, waiter_cut_off_while_the_lock_was_free_is_not_late);
    tcase_add_test(t, a_stepped_clock_makes_nobody_late);
    tcase_add_test(t, a_release_hands_over_itself);
    tcase_add_test(t, a_release_cannot_hand_over_to_the_dead);
    tcase_add_test(t, a_machine_that_stands_still_for_long_costs_mailboxes);
    tcase_add_test(t, a_key_that_was_deleted_hands_over_nothing);
    tcase_add_test(t, not_recoverable_lock_has_no_holder);
    tcase_add_test(t, a_free_lock_that_nobody_gets_is_reported_at_the_end);
    tcase_add_test(t, a_reading_whose_readers_were_deleted_goes_on);
    tcase_add_test(t, a_reading_whose_readers_were_deleted_ends);
    tcase_add_test(t, a_reading_whose_readers_were_deleted_is_freed);
}

static void add_phases(Suite *suite)
{
    TCase *t = forged_group(suite, "reads");
    tcase_add_test(t, a_reader_that_joins_before_the_writer_waits_is_right);
    tcase_add_test(t, reader_that_joins_past_a_writer_is_a_violation);
    tcase_add_test(t, a_writer_that_is_cut_off_may_be_passed);
    tcase_add_test(t, reader_that_queued_behind_the_writer_waits_for_it);
    tcase_add_test(t, a_reader_that_was_cut_off_does_not_pass_the_writer);
    tcase_add_test(t, reader_may_read_again);
    tcase_add_test(t, readers_that_were_queued_when_the_reading_began_may_come_later);
    tcase_add_test(t, a_second_reading_past_a_writer_is_not_right);
    tcase_add_test(t, reading_after_a_writing_is_right);
    tcase_add_test(t, a_downgrade_begins_a_reading);
    t = forged_group(suite, "writes");
    tcase_add_test(t, a_reader_waits_for_one_writer);
    tcase_add_test(t, a_reader_does_not_wait_for_two);
    tcase_add_test(t, reader_that_was_cut_off_counts_again);
}

int main(void)
{
    Suite *suite = suite_create("judge: order");
    add_order(suite);
    add_phases(suite);
    return test_run_suite(suite);
}
