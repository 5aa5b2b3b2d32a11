/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories: strangers who force locks, forge
 * messages or write to keys, and requests that an ACL refuses. */
#include "forged.h"

#include "suite.h"

#define A "p1:1:1:m300"
#define A2 "p1:2:1:m300"
#define B "p2:1:1:m300"
#define NOBODYS "p1:" NEM_FORGED_THREAD ":1234:m300"

/* ---- force: A has the lock from 1000 on, and B takes it by force at 1100 */

static void is_forced(double at)
{
    fault(NEM_FORCE, NEM_ALL, MUTEX, at - 1, at + 1);
}

static void lock_taken_and_lost(unsigned lock, double believes_until)
{
    takes(11, lock, A, 999, 1001, 1985);
    transaction(1000);
    grants(lock, A, 2000);
    checks(11, lock, A, believes_until, 1985, 1);
    transaction(1100);
    leaves(lock, A, true);
}

static void taken_and_lost(double believes_until)
{
    lock_taken_and_lost(MUTEX, believes_until);
}

START_TEST(force_victim_may_be_found_without_the_lock)
{
    taken_and_lost(1050);
    BREAKS(NEM_RULE_OWNER, 1);
    is_forced(1100);
    EXCUSES(NEM_RULE_OWNER, 1);
}
END_TEST

START_TEST(a_force_of_another_lock_or_time_is_none)
{
    taken_and_lost(1050);
    fault(NEM_FORCE, NEM_ALL, FAIR, 1099, 1101);
    is_forced(1200);
    BREAKS(NEM_RULE_OWNER, 1);
}
END_TEST

/* The record of the step, which concerns no lock. */
START_TEST(a_while_of_forces_is_no_force)
{
    taken_and_lost(1050);
    fault(NEM_FORCE, NEM_ALL, NEM_ALL, 500, 1500);
    BREAKS(NEM_RULE_OWNER, 1);
}
END_TEST

START_TEST(force_victim_may_overlap_the_next_holder)
{
    taken_and_lost(1150);
    holds(21, MUTEX, B, 1101, 1200);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    is_forced(1100);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_force_behind_the_next_grant_excuses_no_overlap)
{
    taken_and_lost(1150);
    holds(21, MUTEX, B, 1050, 1200);
    is_forced(1100);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(force_victim_learns_the_loss_at_once)
{
    is_forced(1100);
    taken_and_lost(1100 + SLACK);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(long_belief_of_a_force_victim_is_a_violation)
{
    is_forced(1100);
    taken_and_lost(1110 + SLACK);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

/* The next owner had been granted the lock before, too, and lost that grant by force
 * before it entered. */
START_TEST(the_next_may_have_been_robbed_of_a_grant_before)
{
    transaction(900);
    grants(MUTEX, B, 1900);
    transaction(950);
    leaves(MUTEX, B, true);
    fault(NEM_FORCE, NEM_ALL, MUTEX, 949, 951);
    taken_and_lost(1150);
    takes(21, MUTEX, B, 890, 1103, 2085);
    transaction(1101);
    grants(MUTEX, B, 2100);
    unlocks(21, MUTEX, B, 1200, 1201, 2085, 0);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    is_forced(1100);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* Taken by force before it was entered; then the waiter requests again with the same
 * id. */
START_TEST(victim_of_a_forced_grant_may_believe_in_the_next)
{
    takes(11, MUTEX, A, 999, 1201, 2085);
    transaction(1000);
    grants(MUTEX, A, 2000);
    transaction(1100);
    leaves(MUTEX, A, true);
    transaction(1200);
    grants(MUTEX, A, 2100);
    is_forced(1100);
    checks(11, MUTEX, A, 1800, 2085, 1);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(unreachable_force_victim_may_believe_until_the_end_of_the_lease)
{
    static const enum nem_kind deaf[] = { NEM_CLIENT_KILL_PUBSUB, NEM_FREEZE, NEM_ACL,
                                          NEM_DESCRIPTORS };
    is_forced(1100);
    taken_and_lost(1110 + SLACK);
    fault((int)deaf[_i], 1, NEM_ALL, 1090, 1120);
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_TOLD], 0);
}
END_TEST

START_TEST(what_strangers_publish_makes_nobody_deaf)
{
    is_forced(1100);
    taken_and_lost(1110 + SLACK);
    fault(NEM_FORGE, NEM_ALL, NEM_ALL, 1000, 1300);
    fault(NEM_LONG_MESSAGES, NEM_ALL, NEM_ALL, 1000, 1300);
    fault(NEM_HOSTILE, NEM_ALL, NEM_ALL, 1000, 1300);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

START_TEST(a_loss_by_force_is_one_before_the_server_was_seen_to_end_it)
{
    takes(11, MUTEX, A, 999, 1001, 1985);
    transaction(1000);
    grants(MUTEX, A, 2000);
    checks(11, MUTEX, A, 1100, 1985, 0);
    transaction(1100);
    leaves(MUTEX, A, true);
    BREAKS(NEM_RULE_LOSS, 1);
    is_forced(1100);
    KEEPS(NEM_RULE_LOSS);
}
END_TEST

static void unlocks_at(double at)
{
    is_forced(1100);
    taken_and_lost(1050);
    holds(21, MUTEX, B, 1101, 1102);
    unlocks(11, MUTEX, A, at, at + 1, 1985, 0);
}

START_TEST(an_unlock_soon_behind_a_force_need_not_know)
{
    unlocks_at(1100 + SLACK);
    EXCUSES(NEM_RULE_UNLOCK, 1);
}
END_TEST

START_TEST(an_unlock_long_behind_a_force_knows)
{
    unlocks_at(1110 + SLACK);
    BREAKS(NEM_RULE_UNLOCK, 1);
}
END_TEST

/* The link drips from the force until the unlock, or is bad at one of the two alone. */
static void fair_lock_unlocks_behind_a_force(double from, double to)
{
    fault(NEM_FORCE, NEM_ALL, FAIR, 1099, 1101);
    lock_taken_and_lost(FAIR, 1050);
    holds(21, FAIR, B, 1101, 1102);
    unlocks(11, FAIR, A, 1700, 1800, 1985, 0);
    fault(NEM_DRIP, 1, NEM_ALL, from, to);
}

START_TEST(an_unlock_without_an_answer_knows_of_no_force_that_was_not_heard)
{
    fair_lock_unlocks_behind_a_force(1090, 1900);
    EXCUSES(NEM_RULE_UNLOCK, 1);
}
END_TEST

START_TEST(an_unlock_with_an_answer_knows_of_a_force_that_was_not_heard)
{
    fair_lock_unlocks_behind_a_force(1090, 1100);
    BREAKS(NEM_RULE_UNLOCK, 1);
}
END_TEST

START_TEST(an_unlock_without_an_answer_knows_of_a_force_that_was_heard)
{
    fair_lock_unlocks_behind_a_force(1690, 1900);
    BREAKS(NEM_RULE_UNLOCK, 1);
}
END_TEST

/* A thread that waits in the process may have got the lock without a request. */
START_TEST(an_unlock_that_asks_nobody_knows_of_no_force_that_was_not_heard)
{
    unlocks_at(1700);
    fault(NEM_DRIP, 1, NEM_ALL, 1090, 1100);
    EXCUSES(NEM_RULE_UNLOCK, 1);
}
END_TEST

/* Only the last of the threads that read together asks the server. */
START_TEST(a_readers_unlock_knows_of_no_force_that_was_not_heard)
{
    static const char reader[] = "p1:1:1:r300";
    fault(NEM_FORCE, NEM_ALL, RWLOCK, 1099, 1101);
    takes(11, RWLOCK, reader, 999, 1001, 1985)->reading = true;
    transaction(1000);
    reads(RWLOCK, reader, 2000, true);
    transaction(1100);
    leaves(RWLOCK, reader, true);
    holds(21, RWLOCK, "p2:1:1:w300", 1101, 1102);
    unlocks(11, RWLOCK, reader, 1700, 1701, 1985, 0);
    fault(NEM_DRIP, 1, NEM_ALL, 1090, 1100);
    EXCUSES(NEM_RULE_UNLOCK, 1);
}
END_TEST

START_TEST(a_grant_before_the_force_excuses_no_unlock)
{
    is_forced(1100);
    taken_and_lost(1050);
    holds(21, MUTEX, B, 1050, 1060);
    unlocks(11, MUTEX, A, 1700, 1701, 1985, 0);
    fault(NEM_DRIP, 1, NEM_ALL, 1090, 1100);
    BREAKS(NEM_RULE_UNLOCK, 1);
}
END_TEST

static void passed_on_at(double at)
{
    is_forced(1100);
    taken_and_lost(1050);
    unlocks(11, MUTEX, A, 1060, 1061, 1985, 0);
    takes(12, MUTEX, A, at - 1, at, 1985);
}

START_TEST(forced_hold_may_be_handed_off_shortly_after_the_force)
{
    passed_on_at(1100 + SLACK);
    EXCUSES(NEM_RULE_GRANT, 1);
}
END_TEST

START_TEST(hand_off_long_after_a_force_is_a_violation)
{
    passed_on_at(1110 + SLACK);
    BREAKS(NEM_RULE_GRANT, 1);
}
END_TEST

/* ---- forged messages */

START_TEST(what_only_a_forged_message_names_is_not_written)
{
    transaction(1000);
    entry(NEM_MARKED, MUTEX, NOBODYS, server_at(2000));
    BREAKS(NEM_RULE_OWNER, 1);
}
END_TEST

START_TEST(a_lock_that_only_a_forged_message_names_is_not_written)
{
    static const char *left[] = { "rlock:{" NEM_FORGED_NAME "7}:cancelled 1000 1" };
    forged.left = left;
    forged.left_count = 1;
    BREAKS(NEM_RULE_OWNER, 1);
    left[0] = NEM_FORGED_NAME "7 1000 1";
    BREAKS(NEM_RULE_OWNER, 1);
    left[0] = "rlock:{nemesis7}:cancelled 1000 1";
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_OWNER], 0);
}
END_TEST

/* ---- connections */

static void is_cut_off(int process, double at)
{
    struct nem_op *op = record(10 * process, at, NEM_CUT_OFF, 0, 0);
    op->thread = NEM_EVENTS_THREAD;
    op->lock = NEM_ALL;
}

START_TEST(a_connection_that_nothing_cut_does_not_end)
{
    holds(11, MUTEX, A, 1000, 1200);
    KEEPS(NEM_RULE_CUT);
    is_cut_off(1, 3000);
    BREAKS(NEM_RULE_CUT, 1);
}
END_TEST

START_TEST(what_strangers_do_cuts_no_connection)
{
    is_cut_off(1, 3000);
    for (int kind = NEM_FORGE; kind <= NEM_FORCE; kind++)
        fault(kind, NEM_ALL, NEM_ALL, 2000, 3500);
    fault(NEM_ACL, NEM_ALL, NEM_ALL, 2000, 3500);
    BREAKS(NEM_RULE_CUT, 1);
}
END_TEST

START_TEST(a_fault_of_the_link_or_of_descriptors_cuts_one)
{
    holds(11, MUTEX, A, 1000, 1200);
    is_cut_off(1, 3000);
    is_cut_off(2, 3000);
    fault(NEM_LOSE_REPLIES, 1, NEM_ALL, 2700, 2800);
    BREAKS(NEM_RULE_CUT, 1);
    fault(NEM_DESCRIPTORS, 2, NEM_ALL, 2700, 2800);
    KEEPS(NEM_RULE_CUT);
}
END_TEST

START_TEST(a_connection_may_end_when_the_round_has)
{
    holds(11, MUTEX, A, 1000, 1200);
    is_cut_off(1, ENDED);
    KEEPS(NEM_RULE_CUT);
}
END_TEST

/* ---- an ACL */

static void refused_to(double from, double to)
{
    invoke(11, from, NEM_LOCK, MUTEX);
    returns(11, to, NEM_LOCK, MUTEX, EACCES);
}

START_TEST(nothing_is_refused_without_an_ACL)
{
    refused_to(1000, 1010);
    BREAKS(NEM_RULE_CODE, 1);
    fault(NEM_ACL, NEM_ALL, NEM_ALL, 1011, 1500);
    BREAKS(NEM_RULE_CODE, 1);
    fault(NEM_MAXMEMORY, NEM_ALL, NEM_ALL, 900, 1500);
    BREAKS(NEM_RULE_CODE, 1);
}
END_TEST

START_TEST(while_an_ACL_refuses_calls_say_so)
{
    refused_to(1000, 1010);
    fault(NEM_ACL, NEM_ALL, NEM_ALL, 900, 1005);
    KEEPS(NEM_RULE_CODE);
}
END_TEST

/* If another thread requests for the process, this one does not learn whether the lock is
 * busy. */
START_TEST(while_an_ACL_refuses_polls_a_deadline_may_be_ENOTCONN)
{
    invoke(11, 1000, NEM_TIMEDLOCK, MUTEX)->deadline = at_ms(1300);
    returns(11, 1300, NEM_TIMEDLOCK, MUTEX, ENOTCONN);
    BREAKS(NEM_RULE_CODE, 1);
    fault(NEM_ACL, NEM_ALL, NEM_ALL, 900, 1100);
    KEEPS(NEM_RULE_CODE);
}
END_TEST

START_TEST(when_the_right_is_back_nothing_is_refused)
{
    fault(NEM_ACL, NEM_ALL, NEM_ALL, 900, 1000);
    refused_to(1010 + SLACK, 1011 + SLACK);
    BREAKS(NEM_RULE_CODE, 1);
}
END_TEST

/* A waiter that gives up leaves a marker, which the ACL may refuse. */
START_TEST(while_an_ACL_refuses_a_waiter_may_leave_without_a_marker)
{
    transaction(900);
    present(FAIR, "p1", 2000);
    grants(FAIR, "p3:1:1:f300", 2500);
    transaction(1000);
    queues(FAIR, "p1:1:1:f300", false);
    transaction(1200);
    entry(NEM_UNQUEUED, FAIR, "p1:1:1:f300", 0);
    BREAKS(NEM_RULE_ORDER, 1);
    fault(NEM_ACL, NEM_ALL, NEM_ALL, 1100, 1250);
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_ORDER], 0);
}
END_TEST

static void granted_to_nobody(void)
{
    transaction(1000);
    queues(FAIR, "p1:1:1:f300", false);
    transaction(3000);
    grants(FAIR, "p1:1:1:f300", 3900);
    transaction(3900);
    leaves(FAIR, "p1:1:1:f300", true);
}

START_TEST(refused_cancel_leaves_a_waiter_without_a_thread)
{
    granted_to_nobody();
    BREAKS(NEM_RULE_HOLDS, 1);
    fault(NEM_ACL, NEM_ALL, NEM_ALL, 1100, 1250);
    EXCUSES(NEM_RULE_HOLDS, 1);
}
END_TEST

/* The time of its hold does not count as time for which others starve. */
START_TEST(waiter_behind_one_without_a_thread_may_wait_longer)
{
    fault(NEM_ACL, NEM_ALL, NEM_ALL, CALM - 400, CALM - 300);
    invoke(21, CALM, NEM_LOCK, FAIR);
    returns(21, CALM + PATIENCE + 500, NEM_LOCK, FAIR, 0);
    BREAKS(NEM_RULE_STARVED, 1);
    transaction(CALM - 500);
    queues(FAIR, "p1:1:1:f300", false);
    transaction(CALM + 100);
    grants(FAIR, "p1:1:1:f300", CALM + 700);
    transaction(CALM + 700);
    leaves(FAIR, "p1:1:1:f300", true);
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_STARVED], 0);
}
END_TEST

START_TEST(an_ACL_before_it_queued_left_nobody)
{
    granted_to_nobody();
    fault(NEM_ACL, NEM_ALL, NEM_ALL, 500, 600);
    BREAKS(NEM_RULE_HOLDS, 1);
}
END_TEST

static void add_force(Suite *suite)
{
    TCase *tc = forged_group(suite, "force");
    tcase_add_test(tc, force_victim_may_be_found_without_the_lock);
    tcase_add_test(tc, a_force_of_another_lock_or_time_is_none);
    tcase_add_test(tc, a_while_of_forces_is_no_force);
    tcase_add_test(tc, force_victim_may_overlap_the_next_holder);
    tcase_add_test(tc, a_force_behind_the_next_grant_excuses_no_overlap);
    tcase_add_test(tc, force_victim_learns_the_loss_at_once);
    tcase_add_test(tc, long_belief_of_a_force_victim_is_a_violation);
    tcase_add_test(tc, the_next_may_have_been_robbed_of_a_grant_before);
    tcase_add_test(tc, victim_of_a_forced_grant_may_believe_in_the_next);
    tcase_add_loop_test(
        tc, unreachable_force_victim_may_believe_until_the_end_of_the_lease, 0, 4);
    tcase_add_test(tc, what_strangers_publish_makes_nobody_deaf);
    tcase_add_test(tc, a_loss_by_force_is_one_before_the_server_was_seen_to_end_it);
    tcase_add_test(tc, an_unlock_soon_behind_a_force_need_not_know);
    tcase_add_test(tc, an_unlock_long_behind_a_force_knows);
    tcase_add_test(tc, an_unlock_without_an_answer_knows_of_no_force_that_was_not_heard);
    tcase_add_test(tc, an_unlock_with_an_answer_knows_of_a_force_that_was_not_heard);
    tcase_add_test(tc, an_unlock_without_an_answer_knows_of_a_force_that_was_heard);
    tcase_add_test(tc, an_unlock_that_asks_nobody_knows_of_no_force_that_was_not_heard);
    tcase_add_test(tc, a_readers_unlock_knows_of_no_force_that_was_not_heard);
    tcase_add_test(tc, a_grant_before_the_force_excuses_no_unlock);
    tcase_add_test(tc, forced_hold_may_be_handed_off_shortly_after_the_force);
    tcase_add_test(tc, hand_off_long_after_a_force_is_a_violation);
}

int main(void)
{
    Suite *suite = suite_create("judge of strangers");
    add_force(suite);
    TCase *tc = forged_group(suite, "messages and connections");
    tcase_add_test(tc, what_only_a_forged_message_names_is_not_written);
    tcase_add_test(tc, a_lock_that_only_a_forged_message_names_is_not_written);
    tcase_add_test(tc, a_connection_that_nothing_cut_does_not_end);
    tcase_add_test(tc, what_strangers_do_cuts_no_connection);
    tcase_add_test(tc, a_fault_of_the_link_or_of_descriptors_cuts_one);
    tcase_add_test(tc, a_connection_may_end_when_the_round_has);
    tc = forged_group(suite, "acl");
    tcase_add_test(tc, nothing_is_refused_without_an_ACL);
    tcase_add_test(tc, while_an_ACL_refuses_calls_say_so);
    tcase_add_test(tc, while_an_ACL_refuses_polls_a_deadline_may_be_ENOTCONN);
    tcase_add_test(tc, when_the_right_is_back_nothing_is_refused);
    tcase_add_test(tc, while_an_ACL_refuses_a_waiter_may_leave_without_a_marker);
    tcase_add_test(tc, refused_cancel_leaves_a_waiter_without_a_thread);
    tcase_add_test(tc, waiter_behind_one_without_a_thread_may_wait_longer);
    tcase_add_test(tc, an_ACL_before_it_queued_left_nobody);
    return test_run_suite(suite);
}
