/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories: the workers' holds against the
 * server's data. */
#include "forged.h"

#include "suite.h"

#define A "p1:1:1:m300"
#define B "p2:1:1:m300"
#define READ_A "p1:1:3:r300"
#define READ_B "p2:1:3:r300"
#define WRITE_C "p3:1:3:w300"

/* ---- grant */

START_TEST(a_success_without_a_grant_is_none)
{
    holds(11, MUTEX, A, 1000, 1100);
    KEEPS(NEM_RULE_GRANT);
    takes(21, MUTEX, B, 2000, 2002, 2985);
    BREAKS(NEM_RULE_GRANT, 1);
}
END_TEST

START_TEST(a_grant_over_which_the_clock_leapt_is_seen_nowhere)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    fault(NEM_CLOCK_BACK, NEM_ALL, NEM_ALL, 1001, 1001);
    fault(NEM_SERVER_RESTART, NEM_ALL, NEM_ALL, 1001, 1001);
    fault(NEM_CLOCK_FORWARD, NEM_ALL, NEM_ALL, 998, 2999);
    BREAKS(NEM_RULE_GRANT, 1); /* a step is done at once */
    fault(NEM_CLOCK_FORWARD, NEM_ALL, NEM_ALL, 999, 2999);
    last_fault()->took_us = 1000;
    EXCUSES(NEM_RULE_GRANT, 1);
    forged.strict = true;
    BREAKS(NEM_RULE_GRANT, 1);
}
END_TEST

/* For as long as the lease: then no thread believes in the hold any more. */
START_TEST(grant_by_a_server_that_stood_still_is_not_believed)
{
    takes(21, MUTEX, B, 3000, 3984, 3985);
    fault(NEM_SERVER_STOP_LONG, NEM_ALL, NEM_ALL, 3001, 4000);
    BREAKS(NEM_RULE_GRANT, 1);
    takes(22, MUTEX, "p2:1:2:m300", 3000, 4005, 3985);
    takes(23, FENCED, "p2:1:3:m300", 3000, 4005, 0);
    BREAKS(NEM_RULE_GRANT, 1);
    ck_assert_uint_eq(verdict.excused[NEM_RULE_GRANT], 2);
}
END_TEST

START_TEST(a_clock_that_leapt_while_it_waited_is_no_reason)
{
    takes(11, MUTEX, A, 1000, 1502, 1985);
    fault(NEM_CLOCK_FORWARD, NEM_ALL, NEM_ALL, 1100, 1300);
    transaction(1005);
    queues(MUTEX, A, false);
    transaction(1302 + EXACT);
    entry(NEM_UNQUEUED, MUTEX, A, 0);
    BREAKS(NEM_RULE_GRANT, 1);
    fault(NEM_CLOCK_FORWARD, NEM_ALL, NEM_ALL, 1302, 1302);
    EXCUSES(NEM_RULE_GRANT, 1);
}
END_TEST

START_TEST(a_success_without_an_id_is_none)
{
    holds(11, MUTEX, "", 1000, 1100);
    BREAKS(NEM_RULE_GRANT, 1);
}
END_TEST

START_TEST(a_grant_may_be_as_late_as_the_return)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    transaction(1002 + EXACT);
    grants(MUTEX, A, 2000);
    KEEPS(NEM_RULE_GRANT);
}
END_TEST

START_TEST(a_grant_after_the_return_is_too_late)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    transaction(1003 + EXACT);
    grants(MUTEX, A, 2000);
    BREAKS(NEM_RULE_GRANT, 1);
}
END_TEST

START_TEST(a_grant_that_was_over_before_the_call_is_none)
{
    transaction(900);
    reads(RWLOCK, READ_A, 1900, true);
    transaction(999);
    leaves(RWLOCK, READ_A, true);
    takes(11, RWLOCK, READ_A, 1000, 1002, 1985);
    KEEPS(NEM_RULE_GRANT); /* the stop may not have been over */
    takes(12, RWLOCK, READ_A, 1001, 1002, 1985);
    BREAKS(NEM_RULE_GRANT, 1);
}
END_TEST

START_TEST(a_grant_to_read_is_none_to_write)
{
    takes(31, RWLOCK, WRITE_C, 1000, 1002, 1985);
    transaction(1001);
    reads(RWLOCK, WRITE_C, 2000, true);
    BREAKS(NEM_RULE_GRANT, 1);
}
END_TEST

START_TEST(a_grant_of_another_lock_is_none)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    transaction(1001);
    grants(FAIR, A, 2000);
    BREAKS(NEM_RULE_GRANT, 1);
}
END_TEST

START_TEST(only_readers_share_an_id)
{
    transaction(1001);
    reads(RWLOCK, READ_A, 2000, true);
    takes(11, RWLOCK, READ_A, 1000, 1002, 1985);
    takes(12, RWLOCK, READ_A, 1100, 1102, 1985);
    KEEPS(NEM_RULE_GRANT);
    transaction(1001);
    grants(MUTEX, A, 2000);
    takes(21, MUTEX, A, 1000, 1002, 1985);
    takes(22, MUTEX, A, 1100, 1102, 1985);
    BREAKS(NEM_RULE_GRANT, 2);
}
END_TEST

/* ---- belief */

static void believes(double end)
{
    takes(11, MUTEX, A, 1000, 1002, end);
    transaction(1001);
    grants(MUTEX, A, 2000);
}

START_TEST(D_is_not_later_than_the_lease)
{
    believes(2000 + 2 + EXACT); /* as exactly as it can be known */
    KEEPS(NEM_RULE_BELIEF);
}
END_TEST

START_TEST(a_D_that_is_later_than_the_lease_is_reported)
{
    believes(2001 + 2 + EXACT);
    BREAKS(NEM_RULE_BELIEF, 1);
}
END_TEST

START_TEST(D_rises_with_the_lease_not_before)
{
    believes(1985);
    transaction(1500);
    entry(NEM_LEASE, MUTEX, A, server_at(2500));
    checks(11, MUTEX, A, 1501, 2485, 1);
    KEEPS(NEM_RULE_BELIEF);
    checks(11, MUTEX, A, 1498, 2485, 1);
    BREAKS(NEM_RULE_BELIEF, 1);
}
END_TEST

/* A grant from which the judge learns the server's clock, shifted by `step`. */
static void clock_at(double at, int step)
{
    transaction(at);
    grants(FAIR, "p1:1:2:f300", at + LEASE)->value += (uint64_t)(step * 1000);
    transaction(at + 1);
    leaves(FAIR, "p1:1:2:f300", true);
}

START_TEST(a_vague_look_at_the_clock_spoils_no_exact_one)
{
    believes(2001 + 2 + EXACT);
    transaction(1500);
    struct nem_entry *e = grants(FAIR, "p1:1:2:f300", 2500);
    e->after -= at_ms(50) - at_ms(0);
    e->before += at_ms(50) - at_ms(0);
    BREAKS(NEM_RULE_BELIEF, 1);
}
END_TEST

START_TEST(a_clock_that_went_back_makes_a_lease_longer)
{
    believes(2100);
    clock_at(2200, -97);
    fault(NEM_CLOCK_BACK, NEM_ALL, NEM_ALL, 1500, 1501);
    KEEPS(NEM_RULE_BELIEF);
    checks(11, MUTEX, A, 1600, 2101, 1);
    BREAKS(NEM_RULE_BELIEF, 1);
}
END_TEST

START_TEST(what_a_clock_shows_after_a_step_must_be_known)
{
    believes(2100);
    fault(NEM_CLOCK_BACK, NEM_ALL, NEM_ALL, 1500, 1501);
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_BELIEF], 0);
    ck_assert_uint_eq(verdict.judged[NEM_RULE_BELIEF], 0);
}
END_TEST

START_TEST(clock_that_goes_back_after_the_lease_does_not_excuse)
{
    believes(2100);
    clock_at(2200, -97);
    fault(NEM_CLOCK_BACK, NEM_ALL, NEM_ALL, 2101, 2102);
    BREAKS(NEM_RULE_BELIEF, 1);
}
END_TEST

START_TEST(each_side_of_a_step_has_its_own_clock)
{
    enum { STEP = 500 };
    fault(NEM_CLOCK_FORWARD, NEM_ALL, NEM_ALL, 900, 900 + 2 * LEASE);
    last_fault()->took_us = 1000; /* and then the clock goes on from there */
    transaction(1001);            /* the server's clock is half a second further */
    struct nem_entry *e = grants(MUTEX, A, 2000 + STEP);
    e->value += STEP * 1000;
    takes(11, MUTEX, A, 1000, 1002, 1985);
    transaction(800);
    grants(FAIR, "p1:1:2:f300", 1800);
    transaction(850);
    leaves(FAIR, "p1:1:2:f300", true);
    KEEPS(NEM_RULE_BELIEF);
    checks(11, MUTEX, A, 1100, 2010, 1);
    BREAKS(NEM_RULE_BELIEF, 1);
}
END_TEST

/* ---- owner */

static void robbed(double left)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    checks(11, MUTEX, A, 1800, 1985, 1);
    unlocks(11, MUTEX, A, 1900, 1902, 1985, 0);
    transaction(1001);
    grants(MUTEX, A, 2001);
    transaction(left);
    leaves(MUTEX, A, true);
}

START_TEST(a_hold_leaves_by_its_own_unlock)
{
    robbed(1900);
    KEEPS(NEM_RULE_OWNER);
}
END_TEST

START_TEST(a_hold_that_leaves_before_was_taken_away)
{
    robbed(1500);
    BREAKS(NEM_RULE_OWNER, 1);
    loses(NEM_DELETE_LOCK, FAIR, "nemesis1", 1500);
    BREAKS(NEM_RULE_OWNER, 1);
    loses(NEM_DELETE_COMPANION, MUTEX, "rlock:{nemesis9}:queue", 1500);
    BREAKS(NEM_RULE_OWNER, 1);
    loses(NEM_DELETE_LOCK, MUTEX, "nemesis9", 1500);
    EXCUSES(NEM_RULE_OWNER, 1);
}
END_TEST

START_TEST(a_hold_leaves_by_its_expiry)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    transaction(1001);
    grants(MUTEX, A, 2001);
    transaction(2001);
    leaves(MUTEX, A, true);
    KEEPS(NEM_RULE_OWNER);
}
END_TEST

static void leaves_near_its_end(double left)
{
    takes(11, MUTEX, A, 1000, 1002, 1998.5);
    transaction(1001);
    grants(MUTEX, A, 2001);
    transaction(left);
    leaves(MUTEX, A, true);
}

START_TEST(what_may_have_been_its_expiry_was)
{
    leaves_near_its_end(1997);
    KEEPS(NEM_RULE_OWNER);
}
END_TEST

START_TEST(what_cannot_have_been_its_expiry_was_not)
{
    leaves_near_its_end(1996);
    BREAKS(NEM_RULE_OWNER, 1);
}
END_TEST

START_TEST(a_belief_that_is_too_long_makes_no_expiry_a_theft)
{
    takes(11, MUTEX, A, 1000, 1002, 2100);
    transaction(1001);
    grants(MUTEX, A, 2001);
    transaction(2001);
    leaves(MUTEX, A, true);
    KEEPS(NEM_RULE_OWNER);
}
END_TEST

START_TEST(a_process_may_release_at_D_what_it_did_not_unlock)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    transaction(1001);
    grants(MUTEX, A, 2600);
    transaction(1990);
    leaves(MUTEX, A, true);
    KEEPS(NEM_RULE_OWNER);
}
END_TEST

START_TEST(a_hold_that_is_renewed_does_not_expire)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    checks(11, MUTEX, A, 1900, 2485, 1);
    transaction(1001);
    grants(MUTEX, A, 2001);
    transaction(1500);
    entry(NEM_LEASE, MUTEX, A, server_at(2500));
    transaction(2001);
    leaves(MUTEX, A, true);
    BREAKS(NEM_RULE_OWNER, 1);
}
END_TEST

START_TEST(a_hold_without_end_does_not_expire)
{
    takes(11, MUTEX, A, 1000, 1002, 3000);
    transaction(1001);
    grants(MUTEX, A, 2001);
    transaction(1500);
    entry(NEM_LEASE, MUTEX, A, 0);
    transaction(2500);
    leaves(MUTEX, A, true);
    BREAKS(NEM_RULE_OWNER, 1);
    BREAKS(NEM_RULE_BELIEF, 1); /* the thread saw D before the end was removed */
}
END_TEST

START_TEST(a_lost_hold_is_released_by_its_process)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    checks(11, MUTEX, A, 1990, 1985, 0);
    transaction(1001);
    grants(MUTEX, A, 2600);
    transaction(1990);
    leaves(MUTEX, A, true);
    KEEPS(NEM_RULE_OWNER);
}
END_TEST

START_TEST(dead_holder_is_not_robbed)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    transaction(1001);
    grants(MUTEX, A, 2001);
    transaction(1500);
    leaves(MUTEX, A, true);
    BREAKS(NEM_RULE_OWNER, 1);
    fault(NEM_TERM, 1, NEM_ALL, 1400, 1600);
    KEEPS(NEM_RULE_OWNER);
}
END_TEST

START_TEST(a_shared_hold_stays_until_its_last_reader)
{
    takes(11, RWLOCK, READ_A, 1000, 1002, 1985);
    takes(12, RWLOCK, READ_A, 1100, 1102, 1985);
    unlocks(11, RWLOCK, READ_A, 1200, 1202, 1985, 0);
    unlocks(12, RWLOCK, READ_A, 1300, 1302, 1985, 0);
    transaction(1001);
    reads(RWLOCK, READ_A, 2001, true);
    transaction(1301);
    leaves(RWLOCK, READ_A, true);
    KEEPS(NEM_RULE_OWNER);
}
END_TEST

START_TEST(a_shared_hold_that_leaves_with_its_first_reader_is_taken_away)
{
    takes(11, RWLOCK, READ_A, 1000, 1002, 1985);
    takes(12, RWLOCK, READ_A, 1100, 1102, 1985);
    unlocks(11, RWLOCK, READ_A, 1200, 1202, 1985, 0);
    unlocks(12, RWLOCK, READ_A, 1300, 1302, 1985, 0);
    transaction(1001);
    reads(RWLOCK, READ_A, 2001, true);
    transaction(1201);
    leaves(RWLOCK, READ_A, true);
    BREAKS(NEM_RULE_OWNER, 1);
}
END_TEST

static void dies_and_is_renewed(double renewed)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    transaction(1001);
    grants(MUTEX, A, 2001);
    fault(NEM_KILL, 1, NEM_ALL, 1400, 1500);
    restarts(1, 1500);
    transaction(renewed);
    entry(NEM_LEASE, MUTEX, A, server_at(renewed + LEASE));
}

START_TEST(a_renewal_under_way_may_come_after_a_death)
{
    dies_and_is_renewed(1500 + SLACK + EXACT);
    KEEPS(NEM_RULE_OWNER);
}
END_TEST

START_TEST(a_dead_process_renews_nothing)
{
    dies_and_is_renewed(1501 + SLACK + EXACT);
    BREAKS(NEM_RULE_OWNER, 1);
    fault(NEM_FREEZE, 1, NEM_ALL, 1300, 1550); /* the link held the request back */
    KEEPS(NEM_RULE_OWNER);
}
END_TEST

static void add_server(Suite *suite)
{
    TCase *t = forged_group(suite, "grant");
    tcase_add_test(t, a_success_without_a_grant_is_none);
    tcase_add_test(t, a_grant_over_which_the_clock_leapt_is_seen_nowhere);
    tcase_add_test(t, a_clock_that_leapt_while_it_waited_is_no_reason);
    tcase_add_test(t, grant_by_a_server_that_stood_still_is_not_believed);
    tcase_add_test(t, a_success_without_an_id_is_none);
    tcase_add_test(t, a_grant_may_be_as_late_as_the_return);
    tcase_add_test(t, a_grant_after_the_return_is_too_late);
    tcase_add_test(t, a_grant_that_was_over_before_the_call_is_none);
    tcase_add_test(t, a_grant_to_read_is_none_to_write);
    tcase_add_test(t, a_grant_of_another_lock_is_none);
    tcase_add_test(t, only_readers_share_an_id);
    t = forged_group(suite, "belief");
    tcase_add_test(t, D_is_not_later_than_the_lease);
    tcase_add_test(t, a_D_that_is_later_than_the_lease_is_reported);
    tcase_add_test(t, D_rises_with_the_lease_not_before);
    tcase_add_test(t, a_vague_look_at_the_clock_spoils_no_exact_one);
    tcase_add_test(t, a_clock_that_went_back_makes_a_lease_longer);
    tcase_add_test(t, what_a_clock_shows_after_a_step_must_be_known);
    tcase_add_test(t, clock_that_goes_back_after_the_lease_does_not_excuse);
    tcase_add_test(t, each_side_of_a_step_has_its_own_clock);
    t = forged_group(suite, "owner");
    tcase_add_test(t, a_hold_leaves_by_its_own_unlock);
    tcase_add_test(t, a_hold_that_leaves_before_was_taken_away);
    tcase_add_test(t, a_hold_leaves_by_its_expiry);
    tcase_add_test(t, what_may_have_been_its_expiry_was);
    tcase_add_test(t, what_cannot_have_been_its_expiry_was_not);
    tcase_add_test(t, a_belief_that_is_too_long_makes_no_expiry_a_theft);
    tcase_add_test(t, a_process_may_release_at_D_what_it_did_not_unlock);
    tcase_add_test(t, a_hold_that_is_renewed_does_not_expire);
    tcase_add_test(t, a_hold_without_end_does_not_expire);
    tcase_add_test(t, a_lost_hold_is_released_by_its_process);
    tcase_add_test(t, dead_holder_is_not_robbed);
    tcase_add_test(t, a_shared_hold_stays_until_its_last_reader);
    tcase_add_test(t, a_shared_hold_that_leaves_with_its_first_reader_is_taken_away);
    tcase_add_test(t, a_renewal_under_way_may_come_after_a_death);
    tcase_add_test(t, a_dead_process_renews_nothing);
}

int main(void)
{
    Suite *suite = suite_create("judge: server");
    add_server(suite);
    return test_run_suite(suite);
}
