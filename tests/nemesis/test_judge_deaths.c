/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories: recoveries by the crash guard. Process
 * 1 is killed at 1200 while it holds the lock; process 2 waits for it since 1100. */
#include "forged.h"

#include "suite.h"

#include <string.h>

#define A "p1:1:1:m300"
#define B "p2:1:1:m300"
#define C "p3:1:1:m300"
#define FAIR_A "p1:1:1:f300"
#define READ_A "p1:1:1:r300"
#define READ_C "p3:1:1:r300"
#define WRITE_B "p2:1:1:w300"

enum { TAKEN = 1000, WAITING = 1100, KILLED = 1200, LEASE_END = TAKEN + LEASE };
enum { BOUND = KILLED + SLACK };

static void all_have_guard(void)
{
    for (int p = 1; p <= FORGED_PROCESSES; p++)
        has_guard(p);
}

/* `holder` has the lock until its lease ends; `waiter` queues. */
static void held_and_wanted(unsigned lock, const char *holder, const char *waiter)
{
    transaction(TAKEN);
    if (strstr(holder, ":r"))
        reads(lock, holder, LEASE_END, true);
    else
        grants(lock, holder, LEASE_END);
    transaction(WAITING);
    queues(lock, waiter, strstr(waiter, ":r") != NULL);
}

static void killed(void)
{
    fault(NEM_KILL, 1, NEM_ALL, KILLED, KILLED + 500);
}

static void scene(void)
{
    all_have_guard();
    held_and_wanted(MUTEX, A, B);
    killed();
}

/* p1 is recovered, and its hold goes to `next`. */
static void buried_at(double at, unsigned lock, const char *had, const char *next)
{
    transaction(at);
    leaves(lock, had, false);
    grants(lock, next, at + LEASE);
    buries(lock, "p1");
}

/* ---- rule `buried` */

START_TEST(what_a_killed_process_held_is_given_back_soon)
{
    scene();
    buried_at(BOUND - 2 * EXACT, MUTEX, A, B);
    KEEPS(NEM_RULE_BURIED);
    KEEPS(NEM_RULE_DEAD);
    ck_assert_uint_eq(verdict.burials, 1);
}
END_TEST

/* The ledger's bounds in time are wider than a recovery takes. */
START_TEST(release_may_seem_to_precede_the_death)
{
    scene();
    buried_at(KILLED, MUTEX, A, B);
    KEEPS(NEM_RULE_BURIED);
}
END_TEST

START_TEST(hold_of_a_dead_process_that_stays_longer_is_a_violation)
{
    scene();
    buried_at(BOUND + 2 * EXACT, MUTEX, A, B);
    BREAKS(NEM_RULE_BURIED, 1);
    ck_assert_ptr_nonnull(strstr(forged_text(), A " still held it at 1300.000 ms"));
}
END_TEST

START_TEST(hold_of_a_dead_process_that_stays_until_its_lease_ends_is_a_violation)
{
    scene();
    BREAKS(NEM_RULE_BURIED, 1);
}
END_TEST

START_TEST(hold_of_another_type_of_a_dead_process_that_stays_is_a_violation)
{
    all_have_guard();
    held_and_wanted(FAIR, FAIR_A, "p2:1:1:f300");
    held_and_wanted(RWLOCK, READ_A, WRITE_B);
    killed();
    BREAKS(NEM_RULE_BURIED, 2);
}
END_TEST

START_TEST(retained_hold_of_a_dead_process_that_stays_is_a_violation)
{
    takes(11, KEPT, A, TAKEN - 1, TAKEN + 1, LEASE_END - 15);
    unlocks(11, KEPT, A, TAKEN + 10, TAKEN + 11, LEASE_END - 15, 0);
    all_have_guard();
    held_and_wanted(KEPT, A, B);
    killed();
    BREAKS(NEM_RULE_BURIED, 1);
}
END_TEST

/* G12: by a late request, and by an earlier hand-over. */
START_TEST(grant_to_a_dead_process_that_stays_is_a_violation)
{
    all_have_guard();
    transaction(WAITING);
    queues(RWLOCK, WRITE_B, false);
    killed();
    transaction(KILLED + 50);
    grants(MUTEX, A, 3000);
    BREAKS(NEM_RULE_BURIED, 1);
    transaction(KILLED + 50 + SLACK - 2 * EXACT);
    leaves(MUTEX, A, true);
    KEEPS(NEM_RULE_BURIED);
}
END_TEST

START_TEST(any_wait_of_another_process_is_one)
{
    all_have_guard();
    transaction(TAKEN);
    grants(MUTEX, A, LEASE_END);
    transaction(WAITING);
    queues(FAIR, "p3:1:1:f300", false);
    killed();
    BREAKS(NEM_RULE_BURIED, 1);
}
END_TEST

START_TEST(recovery_is_due_only_with_a_waiter_until_then)
{
    scene();
    transaction(BOUND - 2 * EXACT);
    entry(NEM_UNQUEUED, MUTEX, B, 0);
    LEAVES(NEM_RULE_BURIED);
}
END_TEST

START_TEST(recovery_is_due_only_with_a_live_waiter)
{
    scene();
    fault(NEM_KILL, 2, NEM_ALL, BOUND - 10, BOUND + 500);
    LEAVES(NEM_RULE_BURIED);
}
END_TEST

START_TEST(recovery_is_due_only_with_a_waiter_that_has_the_guard)
{
    has_guard(1);
    has_guard(3);
    held_and_wanted(MUTEX, A, B);
    killed();
    LEAVES(NEM_RULE_BURIED);
}
END_TEST

START_TEST(recovery_is_due_only_for_a_dead_process_with_the_guard)
{
    has_guard(2);
    held_and_wanted(MUTEX, A, B);
    killed();
    LEAVES(NEM_RULE_BURIED);
}
END_TEST

START_TEST(recovery_is_not_due_for_a_process_that_exited_normally)
{
    all_have_guard();
    held_and_wanted(MUTEX, A, B);
    fault(NEM_TERM, 1, NEM_ALL, KILLED, KILLED + 500);
    LEAVES(NEM_RULE_BURIED);
}
END_TEST

START_TEST(lease_may_have_ended_before_the_recovery)
{
    all_have_guard();
    transaction(TAKEN);
    grants(MUTEX, A, BOUND + EXACT);
    transaction(WAITING);
    queues(MUTEX, B, false);
    killed();
    LEAVES(NEM_RULE_BURIED);
}
END_TEST

/* Chance decides which process takes the dead one's live file. */
START_TEST(recovery_is_due_only_from_an_able_process)
{
    static const int kinds[] = { NEM_STOP_SHORT, NEM_TERM,         NEM_CUT_ONE,
                                 NEM_LINK_DOWN,  NEM_CLIENT_PAUSE, NEM_SERVER_STOP_LONG };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        forged_open();
        scene();
        double room = kinds[i] <= NEM_TERM ? SLACK : ROOM;
        fault(kinds[i], 3, NEM_ALL, 500, KILLED - room + EXACT);
        LEAVES(NEM_RULE_BURIED);
    }
}
END_TEST

START_TEST(stopped_process_is_able_to_recover_soon_afterwards)
{
    scene();
    fault(NEM_STOP_LONG, 3, NEM_ALL, 500, KILLED - SLACK - EXACT);
    BREAKS(NEM_RULE_BURIED, 1);
}
END_TEST

START_TEST(process_without_the_guard_need_not_be_able)
{
    has_guard(1);
    has_guard(2);
    held_and_wanted(MUTEX, A, B);
    killed();
    fault(NEM_STOP_LONG, 3, NEM_ALL, 500, 2000);
    fault(NEM_CUT, 3, NEM_ALL, 1200, 1200);
    BREAKS(NEM_RULE_BURIED, 1);
}
END_TEST

START_TEST(killed_recovering_process_hampers_no_other)
{
    scene();
    fault(NEM_KILL, 3, NEM_ALL, KILLED + 10, KILLED + 500);
    BREAKS(NEM_RULE_BURIED, 1);
}
END_TEST

START_TEST(a_machine_that_stands_still_needs_longer)
{
    scene();
    fault(NEM_STALL, 4, NEM_ALL, KILLED + 50, KILLED + 250);
    BREAKS(NEM_RULE_BURIED, 1);
    buried_at(BOUND + 200 - 2 * EXACT, MUTEX, A, B);
    KEEPS(NEM_RULE_BURIED);
}
END_TEST

/* The process notices that it did not run. */
START_TEST(stopped_process_is_no_machine_that_stands_still)
{
    for (int p = 1; p < FORGED_PROCESSES; p++)
        has_guard(p);
    held_and_wanted(MUTEX, A, B);
    killed();
    fault(NEM_STOP_SHORT, 4, NEM_ALL, KILLED + 50, KILLED + 250);
    fault(NEM_STALL, 4, NEM_ALL, KILLED + 50, KILLED + 250);
    buried_at(BOUND + 2 * EXACT, MUTEX, A, B);
    BREAKS(NEM_RULE_BURIED, 1);
}
END_TEST

START_TEST(process_is_dead_when_the_kill_was_done)
{
    scene();
    last_fault()->took_us = 30000;
    buried_at(BOUND + 30 - 2 * EXACT, MUTEX, A, B);
    KEEPS(NEM_RULE_BURIED);
}
END_TEST

START_TEST(lost_data_excuses_what_stays)
{
    scene();
    loses(NEM_DELETE_COMPANION, MUTEX, "rlock:{nemesis9}:cancelled", KILLED + 20);
    EXCUSES(NEM_RULE_BURIED, 1);
}
END_TEST

/* ---- rule dead */

START_TEST(no_live_process_is_recovered)
{
    all_have_guard();
    held_and_wanted(MUTEX, A, B);
    buried_at(KILLED, MUTEX, A, B);
    BREAKS(NEM_RULE_DEAD, 1);
    ck_assert_ptr_nonnull(strstr(forged_text(), "process 1 (life 1, p1) was recovered"));
}
END_TEST

START_TEST(recovery_of_a_stopped_process_is_a_violation)
{
    all_have_guard();
    held_and_wanted(MUTEX, A, B);
    fault(NEM_STOP_LONG, 1, NEM_ALL, 1050, 3000);
    buried_at(KILLED, MUTEX, A, B);
    BREAKS(NEM_RULE_DEAD, 1);
}
END_TEST

START_TEST(recovery_of_a_process_before_its_kill_is_a_violation)
{
    scene();
    buried_at(KILLED - 2 * EXACT, MUTEX, A, B);
    BREAKS(NEM_RULE_DEAD, 1);
}
END_TEST

START_TEST(recovery_of_a_live_process_without_holds_is_a_violation)
{
    all_have_guard();
    transaction(1000);
    buries(MUTEX, "p3");
    BREAKS(NEM_RULE_DEAD, 1);
}
END_TEST

START_TEST(recovery_of_the_next_life_of_a_killed_process_is_a_violation)
{
    scene();
    buried_at(KILLED + 20, MUTEX, A, B);
    restarts(1, KILLED + 500);
    has_guard(1);
    transaction(KILLED + 800);
    buries(MUTEX, "p1b");
    BREAKS(NEM_RULE_DEAD, 1);
}
END_TEST

START_TEST(kill_that_began_before_the_first_record_of_a_life_ends_it)
{
    scene();
    buried_at(KILLED + 20, MUTEX, A, B);
    restarts(1, KILLED + 500);
    has_guard(1);
    fault(NEM_KILL_INSIDE, 1, NEM_ALL, KILLED + 499, KILLED + 700);
    last_fault()->took_us = 200000;
    transaction(KILLED + 800);
    buries(MUTEX, "p1b");
    KEEPS(NEM_RULE_DEAD);
}
END_TEST

START_TEST(ended_process_may_be_recovered)
{
    fault(NEM_TERM, 1, NEM_ALL, 1000, 1500);
    fault(NEM_KILL_INSIDE, 2, NEM_ALL, 1000, 1500);
    fault(NEM_KILL_BURIER, 3, NEM_ALL, 1000, 1500);
    transaction(1100);
    buries(MUTEX, "p1");
    transaction(1110);
    buries(MUTEX, "p2");
    transaction(1120);
    buries(FAIR, "p3");
    KEEPS(NEM_RULE_DEAD);
    ck_assert_uint_eq(verdict.judged[NEM_RULE_DEAD], 3);
}
END_TEST

START_TEST(marker_of_a_request_is_no_recovery)
{
    transaction(1100);
    entry(NEM_MARKED, MUTEX, A, 0);
    LEAVES(NEM_RULE_DEAD);
    ck_assert_uint_eq(verdict.burials, 0);
}
END_TEST

START_TEST(process_of_an_earlier_round_is_unknown)
{
    transaction(1100);
    buries(MUTEX, "somebody");
    LEAVES(NEM_RULE_DEAD);
}
END_TEST

/* gNOOWNER: the dead one's hold had ended; the next one's must not be released. */
START_TEST(recovery_takes_nothing_from_live_clients)
{
    all_have_guard();
    transaction(TAKEN);
    grants(MUTEX, B, LEASE_END);
    killed();
    transaction(KILLED + 20);
    leaves(MUTEX, B, true);
    buries(MUTEX, "p1");
    BREAKS(NEM_RULE_DEAD, 1);
    ck_assert_ptr_nonnull(strstr(forged_text(), B " lost it"));
}
END_TEST

START_TEST(recovery_takes_nothing_from_a_live_reader)
{
    all_have_guard();
    transaction(TAKEN);
    reads(RWLOCK, READ_A, LEASE_END, true);
    reads(RWLOCK, READ_C, LEASE_END, false);
    killed();
    transaction(KILLED + 20);
    leaves(RWLOCK, READ_A, false);
    leaves(RWLOCK, READ_C, true);
    buries(RWLOCK, "p1");
    BREAKS(NEM_RULE_DEAD, 1);
}
END_TEST

START_TEST(what_ended_by_itself_was_not_taken)
{
    all_have_guard();
    transaction(TAKEN);
    grants(MUTEX, B, KILLED + 20);
    killed();
    transaction(KILLED + 20);
    leaves(MUTEX, B, true);
    buries(MUTEX, "p1");
    KEEPS(NEM_RULE_DEAD);
    ck_assert_uint_eq(verdict.judged[NEM_RULE_DEAD], 2);
}
END_TEST

START_TEST(deleted_hold_was_not_taken)
{
    all_have_guard();
    transaction(TAKEN);
    grants(MUTEX, B, LEASE_END);
    killed();
    transaction(KILLED + 20);
    leaves(MUTEX, B, true);
    buries(MUTEX, "p1");
    loses(NEM_DELETE_LOCK, MUTEX, "nemesis9", KILLED + 20);
    EXCUSES(NEM_RULE_DEAD, 1);
    forged.strict = true;
    BREAKS(NEM_RULE_DEAD, 1);
}
END_TEST

/* Rule S1 itself finds what the recovery of a living process leads to. */
START_TEST(stopped_holder_may_believe_in_a_hold_of_the_next)
{
    takes(11, MUTEX, A, TAKEN - 1, TAKEN + 1, LEASE_END - 15);
    fault(NEM_STOP_SHORT, 1, NEM_ALL, 1050, 1600);
    checks(11, MUTEX, A, 1610, LEASE_END - 15, 1);
    takes(21, MUTEX, B, WAITING, KILLED + 2, KILLED + LEASE - 15);
    checks(21, MUTEX, B, KILLED + 10, KILLED + LEASE - 15, 1);
    all_have_guard();
    held_and_wanted(MUTEX, A, B);
    buried_at(KILLED, MUTEX, A, B);
    BREAKS(NEM_RULE_DEAD, 1);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* ---- rule soon */

/* p1 had the lock; the test reports the end of its section. p2 got it when p1 was
 * recovered. */
static void robust_scene(unsigned lock, const char *had, const char *next, int code)
{
    takes(11, lock, had, TAKEN - 1, TAKEN + 1, LEASE_END - 15);
    takes(21, lock, next, WAITING, KILLED + 30, KILLED + LEASE - 15)->code = code;
    all_have_guard();
    held_and_wanted(lock, had, next);
    killed();
    buried_at(KILLED + 20, lock, had, next);
}

static void left_section(unsigned lock, const char *id)
{
    unlocks(11, lock, id, TAKEN + 10, TAKEN + 11, LEASE_END - 15, 0);
}

START_TEST(death_inside_is_reported_to_the_next_owner)
{
    robust_scene(ROBUST, A, B, EOWNERDEAD);
    KEEPS(NEM_RULE_SOON);
    forged_open();
    robust_scene(ROBUST_FAIR, FAIR_A, "p2:1:1:f300", EOWNERDEAD);
    KEEPS(NEM_RULE_SOON);
}
END_TEST

START_TEST(missing_EOWNERDEAD_is_a_violation)
{
    robust_scene(ROBUST, A, B, 0);
    BREAKS(NEM_RULE_SOON, 1);
    ck_assert_ptr_nonnull(strstr(forged_text(), "killed inside"));
    forged_open();
    robust_scene(ROBUST_FAIR, FAIR_A, "p2:1:1:f300", 0);
    BREAKS(NEM_RULE_SOON, 1);
}
END_TEST

START_TEST(process_killed_with_a_retained_lock_left_nothing_undone)
{
    robust_scene(KEPT_ROBUST, A, B, 0);
    left_section(KEPT_ROBUST, A);
    KEEPS(NEM_RULE_SOON);
}
END_TEST

START_TEST(to_tell_of_that_is_wrong)
{
    robust_scene(KEPT_ROBUST, A, B, EOWNERDEAD);
    left_section(KEPT_ROBUST, A);
    BREAKS(NEM_RULE_SOON, 1);
    ck_assert_ptr_nonnull(strstr(forged_text(), "killed outside"));
}
END_TEST

START_TEST(process_killed_while_releasing_may_have_been_inside)
{
    robust_scene(KEPT_ROBUST, A, B, EOWNERDEAD);
    invoke(11, KILLED - 1, NEM_UNLOCK, KEPT_ROBUST);
    LEAVES(NEM_RULE_SOON);
}
END_TEST

START_TEST(process_killed_while_retaking_may_have_been_inside)
{
    robust_scene(KEPT_ROBUST, A, B, EOWNERDEAD);
    left_section(KEPT_ROBUST, A);
    invoke(12, KILLED - 1, NEM_LOCK, KEPT_ROBUST);
    LEAVES(NEM_RULE_SOON);
}
END_TEST

START_TEST(earlier_report_may_be_repeated)
{
    robust_scene(KEPT_ROBUST, A, B, EOWNERDEAD);
    left_section(KEPT_ROBUST, A);
    takes(12, KEPT_ROBUST, A, TAKEN + 20, TAKEN + 21, LEASE_END - 15)->code = EOWNERDEAD;
    unlocks(12, KEPT_ROBUST, A, TAKEN + 30, TAKEN + 31, LEASE_END - 15, 0);
    LEAVES(NEM_RULE_SOON);
    takes(13, KEPT_ROBUST, A, TAKEN + 15, TAKEN + 16, LEASE_END - 15);
    unlocks(13, KEPT_ROBUST, A, TAKEN + 17, TAKEN + 18, LEASE_END - 15, 0);
    LEAVES(NEM_RULE_SOON);
}
END_TEST

/* By a grant that ended before the process ran on. */
START_TEST(the_next_owner_may_have_got_it_later)
{
    robust_scene(ROBUST, A, B, 0);
    transaction(KILLED + 25);
    leaves(ROBUST, B, true);
    LEAVES(NEM_RULE_SOON);
}
END_TEST

START_TEST(process_that_exited_normally_was_not_killed)
{
    robust_scene(KEPT_ROBUST, A, B, EOWNERDEAD);
    left_section(KEPT_ROBUST, A);
    last_fault()->kind = NEM_TERM;
    LEAVES(NEM_RULE_SOON);
}
END_TEST

START_TEST(a_mark_that_was_deleted_tells_nothing)
{
    robust_scene(ROBUST, A, B, 0);
    loses(NEM_DELETE_COMPANION, ROBUST, "rlock:{nemesis15}:dirty", KILLED + 10);
    EXCUSES(NEM_RULE_SOON, 1);
}
END_TEST

START_TEST(other_locks_are_not_robust)
{
    robust_scene(MUTEX, A, B, 0);
    LEAVES(NEM_RULE_SOON);
}
END_TEST

static void add_buried(Suite *suite)
{
    TCase *t = forged_group(suite, "buried");
    tcase_add_test(t, what_a_killed_process_held_is_given_back_soon);
    tcase_add_test(t, release_may_seem_to_precede_the_death);
    tcase_add_test(t, hold_of_a_dead_process_that_stays_longer_is_a_violation);
    tcase_add_test(t,
                   hold_of_a_dead_process_that_stays_until_its_lease_ends_is_a_violation);
    tcase_add_test(t, hold_of_another_type_of_a_dead_process_that_stays_is_a_violation);
    tcase_add_test(t, retained_hold_of_a_dead_process_that_stays_is_a_violation);
    tcase_add_test(t, grant_to_a_dead_process_that_stays_is_a_violation);
    tcase_add_test(t, any_wait_of_another_process_is_one);
    tcase_add_test(t, recovery_is_due_only_with_a_waiter_until_then);
    tcase_add_test(t, recovery_is_due_only_with_a_live_waiter);
    tcase_add_test(t, recovery_is_due_only_with_a_waiter_that_has_the_guard);
    tcase_add_test(t, recovery_is_due_only_for_a_dead_process_with_the_guard);
    tcase_add_test(t, recovery_is_not_due_for_a_process_that_exited_normally);
    tcase_add_test(t, lease_may_have_ended_before_the_recovery);
    tcase_add_test(t, recovery_is_due_only_from_an_able_process);
    tcase_add_test(t, stopped_process_is_able_to_recover_soon_afterwards);
    tcase_add_test(t, process_without_the_guard_need_not_be_able);
    tcase_add_test(t, killed_recovering_process_hampers_no_other);
    tcase_add_test(t, a_machine_that_stands_still_needs_longer);
    tcase_add_test(t, stopped_process_is_no_machine_that_stands_still);
    tcase_add_test(t, process_is_dead_when_the_kill_was_done);
    tcase_add_test(t, lost_data_excuses_what_stays);
}

static void add_dead(Suite *suite)
{
    TCase *t = forged_group(suite, "dead");
    tcase_add_test(t, no_live_process_is_recovered);
    tcase_add_test(t, recovery_of_a_stopped_process_is_a_violation);
    tcase_add_test(t, recovery_of_a_process_before_its_kill_is_a_violation);
    tcase_add_test(t, recovery_of_a_live_process_without_holds_is_a_violation);
    tcase_add_test(t, recovery_of_the_next_life_of_a_killed_process_is_a_violation);
    tcase_add_test(t, kill_that_began_before_the_first_record_of_a_life_ends_it);
    tcase_add_test(t, ended_process_may_be_recovered);
    tcase_add_test(t, marker_of_a_request_is_no_recovery);
    tcase_add_test(t, process_of_an_earlier_round_is_unknown);
    tcase_add_test(t, recovery_takes_nothing_from_live_clients);
    tcase_add_test(t, recovery_takes_nothing_from_a_live_reader);
    tcase_add_test(t, what_ended_by_itself_was_not_taken);
    tcase_add_test(t, deleted_hold_was_not_taken);
    tcase_add_test(t, stopped_holder_may_believe_in_a_hold_of_the_next);
}

static void add_soon(Suite *suite)
{
    TCase *t = forged_group(suite, "soon");
    tcase_add_test(t, death_inside_is_reported_to_the_next_owner);
    tcase_add_test(t, missing_EOWNERDEAD_is_a_violation);
    tcase_add_test(t, process_killed_with_a_retained_lock_left_nothing_undone);
    tcase_add_test(t, to_tell_of_that_is_wrong);
    tcase_add_test(t, process_killed_while_releasing_may_have_been_inside);
    tcase_add_test(t, process_killed_while_retaking_may_have_been_inside);
    tcase_add_test(t, earlier_report_may_be_repeated);
    tcase_add_test(t, the_next_owner_may_have_got_it_later);
    tcase_add_test(t, process_that_exited_normally_was_not_killed);
    tcase_add_test(t, a_mark_that_was_deleted_tells_nothing);
    tcase_add_test(t, other_locks_are_not_robust);
}

int main(void)
{
    Suite *suite = suite_create("judge: deaths");
    add_buried(suite);
    add_dead(suite);
    add_soon(suite);
    return test_run_suite(suite);
}
