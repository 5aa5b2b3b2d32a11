/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories: what excuses a broken hold, and what
 * does not. */
#include "forged.h"

#include "suite.h"

#include <stdio.h>
#include <string.h>

#define A "p1:1:1:m300"
#define B "p2:1:1:m300"
#define READER "p1:1:3:r300"
#define WRITER "p2:1:3:w300"

/* The first hold was granted at 1000, the second at 1100; the workers knew it at 1102. */
static void overlapping_holds(void)
{
    holds(11, MUTEX, A, 1000, 1200);
    holds(21, MUTEX, B, 1100, 1300);
}

START_TEST(lost_data_excuses_an_overlap)
{
    overlapping_holds();
    fault(NEM_FLUSHALL, 0, NEM_ALL, 1050, 1051);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_restart_without_data_excuses_an_overlap)
{
    overlapping_holds();
    fault(NEM_SERVER_EMPTY, NEM_ALL, NEM_ALL, 1050, 1090);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_fault_that_met_neither_of_them_excuses_nothing)
{
    overlapping_holds();
    fault(NEM_FLUSHALL, 0, NEM_ALL, 900, 901);
    fault(NEM_FLUSHALL, 0, NEM_ALL, 1400, 1401);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_fault_while_the_first_still_waited_excuses_nothing)
{
    takes(11, MUTEX, A, 500, 1002, 1985);
    transaction(1000);
    grants(MUTEX, A, 2000);
    unlocks(11, MUTEX, A, 1200, 1201, 1985, 0);
    holds(21, MUTEX, B, 1100, 1300);
    fault(NEM_FLUSHALL, 0, NEM_ALL, 800, 801);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    fault(NEM_FLUSHALL, 0, NEM_ALL, 999, 1000);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_fault_after_they_overlapped_is_not_the_cause)
{
    overlapping_holds();
    fault(NEM_FLUSHALL, 0, NEM_ALL, 1110, 1111);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    fault(NEM_FLUSHALL, 0, NEM_ALL, 1101, 1111);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(first_granted_waiter_may_learn_of_it_last)
{
    takes(11, MUTEX, A, 990, 1150, 1985);
    transaction(1000);
    grants(MUTEX, A, 2000);
    unlocks(11, MUTEX, A, 1200, 1201, 1985, 0);
    holds(21, MUTEX, B, 1100, 1300);
    fault(NEM_FLUSHALL, 0, NEM_ALL, 1050, 1051);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(what_no_server_granted_is_excused_by_no_fault_before_it)
{
    takes(11, MUTEX, A, 900, 1002, 1985);
    checks(11, MUTEX, A, 1200, 1985, 1);
    holds(21, MUTEX, B, 1100, 1300);
    fault(NEM_FLUSHALL, 0, NEM_ALL, 950, 951);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_fault_of_another_lock_excuses_nothing)
{
    overlapping_holds();
    loses(NEM_DELETE_LOCK, FAIR, "nemesis1", 1050);
    loses(NEM_EVICT, FAIR, "nemesis1", 1050);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    loses(NEM_DELETE_LOCK, MUTEX, "nemesis9", 1050);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_deletion_whose_key_never_came_excuses_nothing)
{
    overlapping_holds();
    loses(NEM_DELETE_LOCK, MUTEX, "", 1050);
    loses(NEM_DELETE_COMPANION, MUTEX, "", 1050);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_key_that_says_nothing_of_holders_excuses_nothing)
{
    overlapping_holds();
    loses(NEM_DELETE_COMPANION, MUTEX, "rlock:{nemesis9}:queue", 1050);
    loses(NEM_EVICT, MUTEX, "rlock:{nemesis9}:present", 1050);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    loses(NEM_DELETE_COMPANION, MUTEX, "rlock:{nemesis9}:readers", 1050);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(an_evicted_key_of_the_lock_excuses_an_overlap)
{
    overlapping_holds();
    loses(NEM_EVICT, MUTEX, "nemesis9", 1050);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(evicted_readers_excuse_that_a_writer_overlaps_one)
{
    holds(11, RWLOCK, READER, 1000, 1200);
    holds(21, RWLOCK, WRITER, 1100, 1300);
    loses(NEM_EVICT, RWLOCK, "rlock:{nemesis2}:rqueue", 1050);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    loses(NEM_EVICT, RWLOCK, "rlock:{nemesis2}:readers", 1050);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(an_eviction_of_nothing_excuses_nothing)
{
    overlapping_holds();
    fault(NEM_EVICT, NEM_ALL, NEM_ALL, 1050, 1051);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(faults_that_a_lock_must_bear_excuse_nothing)
{
    overlapping_holds();
    fault(NEM_SERVER_RESTART, NEM_ALL, NEM_ALL, 1050, 1090);
    fault(NEM_CLOCK_BACK, NEM_ALL, NEM_ALL, 1050, 1090);
    fault(NEM_STOP_LONG, 1, NEM_ALL, 1050, 1090);
    fault(NEM_STALL, NEM_ALL, NEM_ALL, 1050, 1090);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* As the driver does it: at once, with a window of more than a lease. */
static void forward(double at)
{
    fault(NEM_CLOCK_FORWARD, NEM_ALL, NEM_ALL, at, at + 2 * LEASE);
    last_fault()->amount = LEASE;
    last_fault()->took_us = 500;
}

START_TEST(clock_that_goes_forward_excuses_the_threads_it_met)
{
    overlapping_holds();
    forward(1050);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* A thread takes a retained hold that the server has lost. */
START_TEST(a_clock_that_goes_forward_excuses_what_is_taken_again)
{
    transaction(1000);
    grants(KEPT, A, 1000 + LEASE);
    transaction(1060);
    leaves(KEPT, A, true);
    grants(KEPT, B, 1060 + LEASE);
    takes(11, KEPT, A, 999, 1001, 1985);
    unlocks(11, KEPT, A, 1020, 1021, 1985, 0);
    takes(21, KEPT, B, 1059, 1062, 2000);
    unlocks(21, KEPT, B, 1200, 1201, 2000, 0);
    takes(11, KEPT, A, 1100, 1100.1, 1985);
    unlocks(11, KEPT, A, 1110, 1110.1, 1985, 0);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    forward(1050);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* The same for a retained read hold that a thread joins (K14). */
START_TEST(a_clock_that_goes_forward_excuses_what_is_joined)
{
    unsigned lock = _i ? RWLOCK : KEPT_RWLOCK;
    transaction(1000);
    reads(lock, READER, 1000 + LEASE, true);
    transaction(1060);
    leaves(lock, READER, true);
    grants(lock, WRITER, 1060 + LEASE);
    takes(21, lock, WRITER, 1059, 1062, 2000);
    unlocks(21, lock, WRITER, 1200, 1201, 2000, 0);
    takes(11, lock, READER, 1100, 1100.1, 1985)->reading = true;
    unlocks(11, lock, READER, 1110, 1110.1, 1985, 0);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    forward(1050);
    if (_i) /* a lock that is not retained cannot be taken without a request */
        BREAKS(NEM_RULE_EXCLUSION, 1);
    else
        EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(earlier_clock_step_excuses_no_thread)
{
    overlapping_holds();
    forward(990);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    forward(998.6); /* the grant was not before 999 */
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_strict_round_excuses_nothing)
{
    overlapping_holds();
    fault(NEM_FLUSHALL, 0, NEM_ALL, 1050, 1051);
    forward(1050);
    forged.strict = true;
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* ---- unlock */

/* Granted at 1001, requested since 900; another client got the lock at 1300. */
static void broken_hold(void)
{
    takes(11, MUTEX, A, 900, 1002, 1985);
    unlocks(11, MUTEX, A, 1500, 1502, 1985, 0);
    transaction(1001);
    grants(MUTEX, A, 2001);
    transaction(1300);
    leaves(MUTEX, A, false);
    grants(MUTEX, B, 1300 + LEASE);
}

START_TEST(a_fault_before_the_grant_excuses_no_unlock)
{
    broken_hold();
    fault(NEM_FLUSHALL, NEM_ALL, NEM_ALL, 950, 951);
    forward(950);
    BREAKS(NEM_RULE_UNLOCK, 1);
}
END_TEST

START_TEST(a_fault_after_the_others_grant_excuses_no_unlock)
{
    broken_hold();
    fault(NEM_FLUSHALL, NEM_ALL, NEM_ALL, 1303, 1304);
    BREAKS(NEM_RULE_UNLOCK, 1);
    fault(NEM_FLUSHALL, NEM_ALL, NEM_ALL, 1299, 1300);
    EXCUSES(NEM_RULE_UNLOCK, 1);
}
END_TEST

static void stale_hold(void)
{
    takes(11, MUTEX, A, 900, 1002, 1985);
    unlocks(11, MUTEX, A, 1500, 1502, 1985, ESTALE);
    transaction(1001);
    grants(MUTEX, A, 2001);
    transaction(1502);
    leaves(MUTEX, A, true);
}

START_TEST(a_fault_before_the_grant_excuses_no_ESTALE)
{
    stale_hold();
    fault(NEM_FLUSHALL, NEM_ALL, NEM_ALL, 950, 951);
    loses(NEM_EVICT, MUTEX, "rlock:{nemesis9}:queue", 1501);
    BREAKS(NEM_RULE_UNLOCK, 1);
    fault(NEM_FLUSHALL, NEM_ALL, NEM_ALL, 1501, 1501);
    EXCUSES(NEM_RULE_UNLOCK, 1);
}
END_TEST

/* ---- owner: a hold left while its lease went on */

static void robbed(void)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    checks(11, MUTEX, A, 1800, 1985, 1);
    transaction(1001);
    grants(MUTEX, A, 2001);
    transaction(1500);
    leaves(MUTEX, A, true);
}

START_TEST(a_clock_that_goes_back_ends_no_lease)
{
    robbed();
    fault(NEM_CLOCK_BACK, NEM_ALL, NEM_ALL, 1200, 1900);
    last_fault()->amount = -LEASE;
    BREAKS(NEM_RULE_OWNER, 1);
}
END_TEST

START_TEST(a_clock_that_goes_forward_ends_leases)
{
    robbed();
    forward(999 - 3); /* an earlier grant is on its way, but it is the older one */
    BREAKS(NEM_RULE_OWNER, 1);
    forward(1200);
    EXCUSES(NEM_RULE_OWNER, 1);
}
END_TEST

START_TEST(prompt_grant_after_lost_data_is_right)
{
    robbed();
    fault(NEM_FLUSHALL, NEM_ALL, NEM_ALL, 998, 999);
    BREAKS(NEM_RULE_OWNER, 1);
}
END_TEST

START_TEST(in_a_strict_round_no_clock_ends_a_lease)
{
    robbed();
    forward(1200);
    forged.strict = true;
    BREAKS(NEM_RULE_OWNER, 1);
}
END_TEST

/* ---- a machine that stands still; no violation may look like that */

START_TEST(workers_may_be_busy)
{
    forged.cores = 2;
    forged.cpu_ns = 2 * INT64_C(4000000000); /* in ENDED ms */
    KEEPS(NEM_RULE_SPINS);
}
END_TEST

START_TEST(workers_that_use_all_cores_spin)
{
    forged.cores = 2;
    forged.cpu_ns = 2 * INT64_C(4001000000);
    BREAKS(NEM_RULE_SPINS, 1);
    forged.cores = 3;
    KEEPS(NEM_RULE_SPINS);
    forged.processes = 2; /* two processes cannot use more than two */
    BREAKS(NEM_RULE_SPINS, 1);
    forged.processes = FORGED_PROCESSES;
    forged.cores = 0; /* not measured, or under a tool */
    judge();
    ck_assert_uint_eq(verdict.judged[NEM_RULE_SPINS], 0);
    ck_assert_uint_eq(verdict.violations[NEM_RULE_SPINS], 0);
}
END_TEST

START_TEST(a_round_of_stalls_is_inconclusive)
{
    forged.processes = 2; /* 0 and 1 */
    fault(NEM_STALL, NEM_ALL, NEM_ALL, 0, 3000);
    fault(NEM_STALL, 0, NEM_ALL, 2500, 3400); /* the driver saw part of it */
    fault(NEM_STALL, 1, NEM_ALL, 3000, 3390);
    fault(NEM_STALL, 2, NEM_ALL, 3000, 9000); /* of no process */
    judge();
    ck_assert_uint_eq(verdict.stalled_percent, 33);
    ck_assert(!verdict.inconclusive);
    fault(NEM_STALL, 1, NEM_ALL, 3390, 3400);
    judge();
    ck_assert_uint_eq(verdict.stalled_percent, 34);
    ck_assert(verdict.inconclusive);
}
END_TEST

START_TEST(process_stopped_on_purpose_is_not_stalled)
{
    forged.processes = 2;
    fault(NEM_STOP_LONG, 1, NEM_ALL, 1000, 9000);
    fault(NEM_STALL, 1, NEM_ALL, 1001, 9020); /* as its own pulse records it */
    judge();
    ck_assert_uint_eq(verdict.stalled_percent, 0);
    fault(NEM_STALL, 0, NEM_ALL, 1001, 9020);
    judge();
    ck_assert_uint_eq(verdict.stalled_percent, 40);
}
END_TEST

START_TEST(an_inconclusive_round_has_its_violations)
{
    overlapping_holds();
    fault(NEM_STALL, NEM_ALL, NEM_ALL, 0, 9000);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    ck_assert(verdict.inconclusive);
}
END_TEST

static void add_excuses(Suite *suite)
{
    TCase *t = forged_group(suite, "exclusion");
    tcase_add_test(t, lost_data_excuses_an_overlap);
    tcase_add_test(t, a_restart_without_data_excuses_an_overlap);
    tcase_add_test(t, a_fault_that_met_neither_of_them_excuses_nothing);
    tcase_add_test(t, a_fault_while_the_first_still_waited_excuses_nothing);
    tcase_add_test(t, a_fault_after_they_overlapped_is_not_the_cause);
    tcase_add_test(t, first_granted_waiter_may_learn_of_it_last);
    tcase_add_test(t, what_no_server_granted_is_excused_by_no_fault_before_it);
    tcase_add_test(t, a_fault_of_another_lock_excuses_nothing);
    tcase_add_test(t, a_deletion_whose_key_never_came_excuses_nothing);
    tcase_add_test(t, a_key_that_says_nothing_of_holders_excuses_nothing);
    tcase_add_test(t, an_evicted_key_of_the_lock_excuses_an_overlap);
    tcase_add_test(t, evicted_readers_excuse_that_a_writer_overlaps_one);
    tcase_add_test(t, an_eviction_of_nothing_excuses_nothing);
    tcase_add_test(t, faults_that_a_lock_must_bear_excuse_nothing);
    tcase_add_test(t, clock_that_goes_forward_excuses_the_threads_it_met);
    tcase_add_test(t, a_clock_that_goes_forward_excuses_what_is_taken_again);
    tcase_add_loop_test(t, a_clock_that_goes_forward_excuses_what_is_joined, 0, 2);
    tcase_add_test(t, earlier_clock_step_excuses_no_thread);
    tcase_add_test(t, a_strict_round_excuses_nothing);
    t = forged_group(suite, "unlock");
    tcase_add_test(t, a_fault_before_the_grant_excuses_no_unlock);
    tcase_add_test(t, a_fault_after_the_others_grant_excuses_no_unlock);
    tcase_add_test(t, a_fault_before_the_grant_excuses_no_ESTALE);
    t = forged_group(suite, "owner");
    tcase_add_test(t, a_clock_that_goes_back_ends_no_lease);
    tcase_add_test(t, a_clock_that_goes_forward_ends_leases);
    tcase_add_test(t, prompt_grant_after_lost_data_is_right);
    tcase_add_test(t, in_a_strict_round_no_clock_ends_a_lease);
    t = forged_group(suite, "stalls");
    tcase_add_test(t, workers_may_be_busy);
    tcase_add_test(t, workers_that_use_all_cores_spin);
    tcase_add_test(t, a_round_of_stalls_is_inconclusive);
    tcase_add_test(t, process_stopped_on_purpose_is_not_stalled);
    tcase_add_test(t, an_inconclusive_round_has_its_violations);
}

int main(void)
{
    Suite *suite = suite_create("judge: excuses");
    add_excuses(suite);
    return test_run_suite(suite);
}
