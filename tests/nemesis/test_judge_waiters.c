/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged ledgers: single waiters, ids of no process, and
 * readers that enter a reading of their process. */
#include "forged.h"

#include "suite.h"

#include <string.h>

#define A "p1:1:1:m300"
#define B "p2:1:1:m300"
#define C "p3:1:1:m300"
#define FAIR_A "p1:1:2:f300"
#define FAIR_C "p3:1:2:f300"
#define READ_A "p1:1:3:r300"
#define READ_B "p2:1:3:r300"
#define WRITE_C "p3:1:4:w300"

static void all_present(unsigned lock)
{
    static const char *const clients[] = { "p1", "p2", "p3", "p4" };
    transaction(900);
    for (int i = 0; i < 4; i++)
        present(lock, clients[i], ENDED);
}

/* `holder` has the lock; `waiter` queues. */
static void one_waits(unsigned lock, const char *holder, const char *waiter)
{
    all_present(lock);
    transaction(1000);
    if (strstr(holder, ":r"))
        reads(lock, holder, 2000, true);
    else
        grants(lock, holder, 2000);
    transaction(1100);
    queues(lock, waiter, strstr(waiter, ":r") != NULL);
}

/* ---- dropped */

START_TEST(a_waiter_of_any_type_is_not_dropped)
{
    static const char *const waiters[] = { A, FAIR_A, "p1:1:3:w300", READ_A };
    static const char *const holders[] = { C, FAIR_C, WRITE_C, WRITE_C };
    static const unsigned locks[] = { MUTEX, FAIR, RWLOCK, FENCED_RWLOCK };
    for (unsigned i = 0; i < 4; i++) {
        one_waits(locks[i], holders[i], waiters[i]);
        transaction(1200);
        entry(NEM_UNQUEUED, locks[i], waiters[i], 0)->reading = i == 3;
        BREAKS(NEM_RULE_ORDER, i + 1);
        transaction(1300); /* it queues again with a new ticket, which changes nothing */
        queues(locks[i], waiters[i], i == 3);
        BREAKS(NEM_RULE_ORDER, i + 1);
    }
}
END_TEST

START_TEST(a_waiter_leaves_by_a_grant_or_by_its_own_wish)
{
    one_waits(MUTEX, C, A);
    transaction(1200);
    leaves(MUTEX, C, false);
    grants(MUTEX, A, 1500);
    one_waits(RWLOCK, READ_B, READ_A);
    transaction(1200);
    reads(RWLOCK, READ_A, 1500, false);
    one_waits(FAIR, FAIR_C, FAIR_A);
    transaction(1200);
    entry(NEM_UNQUEUED, FAIR, FAIR_A, 0);
    entry(NEM_MARKED, FAIR, FAIR_A, 0);
    KEEPS(NEM_RULE_ORDER);
    ck_assert_uint_eq(verdict.judged[NEM_RULE_ORDER], 3);
}
END_TEST

START_TEST(a_marker_or_a_grant_of_another_one_is_no_reason)
{
    one_waits(MUTEX, C, A);
    transaction(1200);
    entry(NEM_UNQUEUED, MUTEX, A, 0);
    leaves(MUTEX, C, false);
    grants(MUTEX, B, 1500);
    entry(NEM_MARKED, MUTEX, C, 0);
    BREAKS(NEM_RULE_ORDER, 1);
}
END_TEST

START_TEST(present_waiter_without_a_listener_is_not_dropped)
{
    one_waits(MUTEX, C, A);
    fault(NEM_CUT, 1, NEM_ALL, 1150, 1160);
    transaction(1200);
    entry(NEM_UNQUEUED, MUTEX, A, 0);
    BREAKS(NEM_RULE_ORDER, 1);
}
END_TEST

START_TEST(absent_waiter_is_dropped)
{
    one_waits(MUTEX, C, A);
    transaction(1150);
    present(MUTEX, "p1", 1200);
    transaction(1200);
    entry(NEM_UNQUEUED, MUTEX, A, 0);
    BREAKS(NEM_RULE_ORDER, 0);
    transaction(1160);
    present(MUTEX, "p1", 1203); /* the server's clock is known to 1 ms in each
                                   direction */
    BREAKS(NEM_RULE_ORDER, 1);
}
END_TEST

START_TEST(a_queue_that_was_lost_dropped_nobody)
{
    one_waits(MUTEX, C, A);
    transaction(1200);
    entry(NEM_UNQUEUED, MUTEX, A, 0);
    loses(NEM_DELETE_COMPANION, FAIR, "rlock:{nemesis1}:queue", 1199); /* of another
                                                                          lock */
    fault(NEM_FLUSHALL, 0, NEM_ALL, 1150, 1198);
    BREAKS(NEM_RULE_ORDER, 1);
    loses(NEM_DELETE_COMPANION, MUTEX, "rlock:{nemesis9}:queue", 1199);
    BREAKS(NEM_RULE_ORDER, 0);
}
END_TEST

/* ---- prompt: dead waiters are skipped */

/* The lock is granted to A at 1200; A's presence ends at `until`. */
static void grants_to(unsigned lock, const char *holder, const char *waiter, double until)
{
    one_waits(lock, holder, waiter);
    transaction(1101);
    present(lock, "p1", until);
    transaction(1200);
    leaves(lock, holder, false);
    grants(lock, waiter, 1500);
}

START_TEST(grant_to_a_present_waiter_is_right)
{
    grants_to(FAIR, FAIR_C, FAIR_A, 1200);
    KEEPS(NEM_RULE_PROMPT);
}
END_TEST

START_TEST(grant_to_an_absent_waiter_is_a_violation)
{
    grants_to(FAIR, FAIR_C, FAIR_A, 1199);
    BREAKS(NEM_RULE_PROMPT, 1);
}
END_TEST

START_TEST(a_reader_that_is_not_present_is_not_let_in)
{
    one_waits(RWLOCK, READ_B, READ_A);
    transaction(1101);
    present(RWLOCK, "p1", 1199);
    transaction(1200);
    reads(RWLOCK, READ_A, 1500, false);
    KEEPS(NEM_RULE_PROMPT); /* the reading's `since` is older: the clock is not known that
                               exactly */
    present(RWLOCK, "p1", 1000);
    transaction(1102);
    present(RWLOCK, "p1", 1197);
    BREAKS(NEM_RULE_PROMPT, 1);
}
END_TEST

START_TEST(unnamed_waiter_may_be_present)
{
    grants_to(FAIR, FAIR_C, FAIR_A, 1199);
    transaction(1150);
    present(FAIR, "*", 1199);
    BREAKS(NEM_RULE_PROMPT, 1);
    transaction(1160);
    present(FAIR, "*", 1200);
    KEEPS(NEM_RULE_PROMPT);
}
END_TEST

START_TEST(after_lost_presence_listening_waiters_are_present)
{
    grants_to(FAIR, FAIR_C, FAIR_A, 1199);
    transaction(1150);
    entry(NEM_PRESENT, FAIR, "p1", 0);
    entry(NEM_PRESENT, FAIR, "p2", 0);
    entry(NEM_PRESENT, FAIR, "p3", 0);
    BREAKS(NEM_RULE_PROMPT, 1);
    entry(NEM_PRESENT, FAIR, "p4", 0);
    BREAKS(NEM_RULE_PROMPT, 0);
}
END_TEST

START_TEST(own_request_shows_that_a_waiter_lives)
{
    grants_to(FAIR, FAIR_C, FAIR_A, 1199);
    present(FAIR, "p2", 2000);
    BREAKS(NEM_RULE_PROMPT, 1);
    present(FAIR, "p1", 1500);
    KEEPS(NEM_RULE_PROMPT);
}
END_TEST

START_TEST(mutex_may_be_acquired_by_a_queued_waiter)
{
    one_waits(MUTEX, C, A);
    transaction(1101);
    present(MUTEX, "p1", 1150);
    transaction(1190);
    leaves(MUTEX, C, true);
    transaction(1200);
    grants(MUTEX, A, 1200 + LEASE);
    BREAKS(NEM_RULE_PROMPT, 0);
}
END_TEST

START_TEST(mutex_is_not_handed_over_to_an_absent_waiter)
{
    grants_to(MUTEX, C, A, 1199);
    BREAKS(NEM_RULE_PROMPT, 1);
}
END_TEST

START_TEST(a_mutex_with_a_short_lease_may_have_been_taken)
{
    grants_to(MUTEX, C, "p1:1:1:m299", 1199);
    BREAKS(NEM_RULE_PROMPT, 0);
}
END_TEST

/* A process that retains a mutex takes it for the TTL of a grant (K2). */
START_TEST(retained_mutex_may_have_been_acquired)
{
    grants_to(KEPT, C, A, 1199);
    BREAKS(NEM_RULE_PROMPT, 0);
}
END_TEST

/* ---- owner: strangers */

START_TEST(client_unknown_to_the_ledger_does_not_queue)
{
    transaction(1000);
    queues(FAIR, "p2:1:1:f300", false);
    KEEPS(NEM_RULE_OWNER);
    queues(FAIR, "p9:1:1:f300", false);
    BREAKS(NEM_RULE_OWNER, 1);
}
END_TEST

START_TEST(client_unknown_to_the_ledger_gets_no_grant)
{
    holds(11, MUTEX, A, 1000, 1100);
    transaction(1200);
    reads(RWLOCK, READ_A, 2000, true);
    KEEPS(NEM_RULE_OWNER);
    holds(11, MUTEX, "p9:1:1:m300", 1200, 1300); /* although a thread reports that hold */
    transaction(1300);
    reads(RWLOCK, "p9:1:1:r300", 2000, false);
    BREAKS(NEM_RULE_OWNER, 2);
}
END_TEST

/* ---- reads: readers that enter a reading of their process */

/* Thread 1 of process 1 reads from 1000; thread 2 enters between 1200 and 1210; C waits
 * as a writer since 1100. */
static void enters(void)
{
    one_waits(RWLOCK, READ_A, WRITE_C);
    takes(11, RWLOCK, READ_A, 998, 1002, 1985);
    takes(12, RWLOCK, READ_A, 1200, 1210, 1985);
}

START_TEST(entering_a_reading_past_a_writer_without_a_request_is_a_violation)
{
    enters();
    BREAKS(NEM_RULE_READS, 1);
}
END_TEST

START_TEST(a_writer_that_comes_after_the_call_is_not_passed)
{
    one_waits(RWLOCK, READ_A, WRITE_C);
    takes(11, RWLOCK, READ_A, 998, 1002, 1985);
    takes(12, RWLOCK, READ_A, 1100 + EXACT, 1110, 1985);
    KEEPS(NEM_RULE_READS);
}
END_TEST

START_TEST(a_writer_that_has_left_by_the_return_may_have_been_gone)
{
    enters();
    transaction(1211 + EXACT);
    entry(NEM_UNQUEUED, RWLOCK, WRITE_C, 0);
    entry(NEM_MARKED, RWLOCK, WRITE_C, 0);
    BREAKS(NEM_RULE_READS, 1);
    transaction(1209 + EXACT);
    entry(NEM_UNQUEUED, RWLOCK, WRITE_C, 0);
    entry(NEM_MARKED, RWLOCK, WRITE_C, 0);
    KEEPS(NEM_RULE_READS);
}
END_TEST

START_TEST(a_writer_that_was_cut_off_may_be_passed_by_joining)
{
    enters();
    fault(NEM_CUT, 1, NEM_ALL, 1150, 1160);
    BREAKS(NEM_RULE_READS, 1);
    fault(NEM_CLIENT_KILL_PUBSUB, 3, NEM_ALL, 1150, 1160);
    BREAKS(NEM_RULE_READS, 0);
}
END_TEST

START_TEST(lost_data_excuses_entering_threads)
{
    enters();
    loses(NEM_DELETE_COMPANION, RWLOCK, "rlock:{nemesis2}:queue", 1050);
    BREAKS(NEM_RULE_READS, 1);
    loses(NEM_DELETE_COMPANION, RWLOCK, "rlock:{nemesis2}:queue", 1150);
    EXCUSES(NEM_RULE_READS, 1);
}
END_TEST

START_TEST(threads_waiting_when_a_grant_is_read_enter_together)
{
    one_waits(RWLOCK, READ_A, WRITE_C);
    takes(11, RWLOCK, READ_A, 998, 1205, 1985); /* the grant took long to arrive */
    takes(12, RWLOCK, READ_A, 1200, 1210, 1985);
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_READS], 0);
    ck_assert_uint_eq(verdict.judged[NEM_RULE_READS], 0);
    takes(22, RWLOCK, READ_A, 1206, 1210, 1985);
    BREAKS(NEM_RULE_READS, 1);
}
END_TEST

START_TEST(id_from_a_request_is_no_extend)
{
    one_waits(RWLOCK, READ_A, WRITE_C);
    transaction(1200);
    reads(RWLOCK, "p1:2:9:r300", 2200, false);
    KEEPS(NEM_RULE_READS);
    takes(12, RWLOCK, "p1:2:9:r300", 1199, 1202, 2185);
    BREAKS(NEM_RULE_READS, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("judge: waiters");
    TCase *t = forged_group(suite, "dropped");
    tcase_add_test(t, a_waiter_of_any_type_is_not_dropped);
    tcase_add_test(t, a_waiter_leaves_by_a_grant_or_by_its_own_wish);
    tcase_add_test(t, a_marker_or_a_grant_of_another_one_is_no_reason);
    tcase_add_test(t, present_waiter_without_a_listener_is_not_dropped);
    tcase_add_test(t, absent_waiter_is_dropped);
    tcase_add_test(t, a_queue_that_was_lost_dropped_nobody);
    t = forged_group(suite, "alive");
    tcase_add_test(t, grant_to_a_present_waiter_is_right);
    tcase_add_test(t, grant_to_an_absent_waiter_is_a_violation);
    tcase_add_test(t, a_reader_that_is_not_present_is_not_let_in);
    tcase_add_test(t, unnamed_waiter_may_be_present);
    tcase_add_test(t, after_lost_presence_listening_waiters_are_present);
    tcase_add_test(t, own_request_shows_that_a_waiter_lives);
    tcase_add_test(t, mutex_may_be_acquired_by_a_queued_waiter);
    tcase_add_test(t, mutex_is_not_handed_over_to_an_absent_waiter);
    tcase_add_test(t, retained_mutex_may_have_been_acquired);
    tcase_add_test(t, a_mutex_with_a_short_lease_may_have_been_taken);
    t = forged_group(suite, "strangers");
    tcase_add_test(t, client_unknown_to_the_ledger_does_not_queue);
    tcase_add_test(t, client_unknown_to_the_ledger_gets_no_grant);
    t = forged_group(suite, "joins");
    tcase_add_test(t, entering_a_reading_past_a_writer_without_a_request_is_a_violation);
    tcase_add_test(t, a_writer_that_comes_after_the_call_is_not_passed);
    tcase_add_test(t, a_writer_that_has_left_by_the_return_may_have_been_gone);
    tcase_add_test(t, a_writer_that_was_cut_off_may_be_passed_by_joining);
    tcase_add_test(t, lost_data_excuses_entering_threads);
    tcase_add_test(t, threads_waiting_when_a_grant_is_read_enter_together);
    tcase_add_test(t, id_from_a_request_is_no_extend);
    return test_run_suite(suite);
}
