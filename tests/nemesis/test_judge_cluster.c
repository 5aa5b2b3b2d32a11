/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories of a cluster: what a fault of its nodes
 * excuses, and for which locks; and how long a lock may stand still. */
#include "forged.h"

#include "suite.h"

#include <rlock.h>

#include <string.h>

#define A "p1:1:1:m300"
#define B "p2:1:1:m300"

enum { NODE_TIMEOUT = 500, BOUND = LEASE + NODE_TIMEOUT + 2000, ANOTHER = 200 };

/* Those that may promote a replica which does not have all. */
static const int harsh[] = { NEM_MASTER_KILL, NEM_MASTER_STOP, NEM_TAKEOVER,
                             NEM_BUS_CUT };
enum { HARSH = sizeof(harsh) / sizeof(harsh[0]) };
/* Those that lose nothing. */
static const int lossless[] = { NEM_FAILOVER,   NEM_NODE_RESTART,    NEM_ROLLING_RESTART,
                                NEM_RESHARD,    NEM_RESHARD_HALFWAY, NEM_SERVER_STOP_LONG,
                                NEM_CLIENT_KILL };
enum { LOSSLESS = sizeof(lossless) / sizeof(lossless[0]) };
/* Those during which holders go on to renew. */
static const int gentle[] = { NEM_FAILOVER, NEM_ROLLING_RESTART, NEM_RESHARD,
                              NEM_RESHARD_HALFWAY, NEM_SCRIPT_FLUSH };
enum { GENTLE = sizeof(gentle) / sizeof(gentle[0]) };

static void with(enum nem_servers servers)
{
    forged.servers = servers;
    forged.no_ledger = true;
    forged.node_timeout_ms = NODE_TIMEOUT;
}

/* A fault of the node that has this lock. */
static void hits(int kind, unsigned lock, double begin, double end)
{
    fault(kind, NEM_ALL, NEM_ALL, begin, end);
    last_fault()->hits = 1;
    last_fault()->locks[lock / 8] |= (uint8_t)(1U << lock % 8);
}

/* Asked for and got at once, with D as the library counts it. */
static void takes_at(int who, const char *id, double at)
{
    takes(who, MUTEX, id, at, at + 2, at + LEASE - 12);
}

/* ---- exclusion, unlock, loss: what a failover may lose */

/* Two holds, both believed in from 1500 on. */
static void overlap(void)
{
    takes_at(11, A, 1000);
    checks(11, MUTEX, A, 1900, 1988, 1);
    takes_at(21, B, 1500);
    unlocks(21, MUTEX, B, 1550, 1551, 2488, 0);
}

START_TEST(a_failover_of_its_shard_excuses_an_overlap)
{
    with(NEM_CLUSTER);
    overlap();
    BREAKS(NEM_RULE_EXCLUSION, 1);
    hits(harsh[_i], MUTEX, 1050, 1450);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_failover_of_another_shard_excuses_none)
{
    with(NEM_CLUSTER);
    overlap();
    forged.full_coverage = true;
    hits(harsh[_i], ANOTHER, 1050, 1450);
    hits(harsh[_i], MUTEX + 8, 1050, 1450);
    hits(harsh[_i], MUTEX - 1, 1050, 1450);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(locks_of_all_numbers_have_a_shard)
{
    with(NEM_CLUSTER);
    takes(11, NEM_LOCKS_MAX - 1, A, 1000, 1002, 1988);
    checks(11, NEM_LOCKS_MAX - 1, A, 1900, 1988, 1);
    takes(21, NEM_LOCKS_MAX - 1, B, 1500, 1502, 2488);
    unlocks(21, NEM_LOCKS_MAX - 1, B, 1550, 1551, 2488, 0);
    hits(NEM_TAKEOVER, NEM_LOCKS_MAX - 2, 1050, 1450);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    hits(NEM_TAKEOVER, NEM_LOCKS_MAX - 1, 1050, 1450);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_failover_excuses_only_in_its_window)
{
    with(NEM_CLUSTER);
    overlap();
    hits(NEM_MASTER_KILL, MUTEX, 1503, 1700); /* both had it by then */
    hits(NEM_MASTER_KILL, MUTEX, 600, 999);   /* before the first one asked */
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(nothing_else_excuses_an_overlap)
{
    with(NEM_CLUSTER);
    overlap();
    hits(lossless[_i], MUTEX, 1050, 1450);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(nothing_is_excused_where_the_replica_confirms)
{
    with(NEM_CLUSTER_REPLICAS);
    overlap();
    for (int i = 0; i < HARSH; i++)
        hits(harsh[i], MUTEX, 1050, 1450);
    for (int i = 0; i < LOSSLESS; i++)
        hits(lossless[i], MUTEX, 1050, 1450);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(in_a_strict_round_nothing_is_excused)
{
    with(NEM_CLUSTER);
    overlap();
    hits(NEM_TAKEOVER, MUTEX, 1050, 1450);
    forged.strict = true;
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* Told at 1500, before D, by a look or by the unlock. */
static enum nem_rule lose(bool by_unlock)
{
    takes_at(11, A, 1000);
    if (by_unlock)
        unlocks(11, MUTEX, A, 1500, 1500, 1988, ESTALE);
    else
        checks(11, MUTEX, A, 1500, 1988, 0);
    return by_unlock ? NEM_RULE_UNLOCK : NEM_RULE_LOSS;
}

START_TEST(a_loss_by_a_failover_of_its_shard_is_told)
{
    with(NEM_CLUSTER);
    enum nem_rule rule = lose(_i);
    hits(NEM_TAKEOVER, ANOTHER, 1050, 1450);
    BREAKS(rule, 1);
    hits(NEM_TAKEOVER, MUTEX, 1050, 1450);
    EXCUSES(rule, 1);
}
END_TEST

START_TEST(a_hash_slot_that_moves_loses_no_lock)
{
    with(NEM_CLUSTER);
    enum nem_rule rule = lose(_i);
    hits(NEM_RESHARD, MUTEX, 1050, 1450);
    hits(NEM_RESHARD_HALFWAY, MUTEX, 1050, 1450);
    hits(NEM_ROLLING_RESTART, MUTEX, 1050, 1450);
    hits(NEM_FAILOVER, MUTEX, 1050, 1450);
    BREAKS(rule, 1);
}
END_TEST

/* ---- kept: what holders can renew through */

static void lose_at_D(void)
{
    takes_at(11, A, 2000);
    checks(11, MUTEX, A, 2989, 2988, 0);
}

/* In this group a fault that is a reason makes that nothing is judged. */
static unsigned long kept_violations(void)
{
    judge();
    return verdict.violations[NEM_RULE_KEPT];
}

START_TEST(a_renewed_hold_outlives_what_holders_can_renew_through)
{
    with(NEM_CLUSTER);
    lose_at_D();
    hits(gentle[_i], MUTEX, 2100, 2800);
    BREAKS(NEM_RULE_KEPT, 1);
}
END_TEST

START_TEST(a_node_that_is_away_is_a_reason_for_its_locks_alone)
{
    with(NEM_CLUSTER);
    lose_at_D();
    hits(harsh[_i], ANOTHER, 2100, 2800);
    BREAKS(NEM_RULE_KEPT, 1);
    hits(harsh[_i], MUTEX, 2100, 2800);
    ck_assert_uint_eq(kept_violations(), 0);
}
END_TEST

START_TEST(its_effects_last_for_a_presence)
{
    with(NEM_CLUSTER);
    lose_at_D(); /* the lease began at 1988 */
    hits(NEM_NODE_RESTART, MUTEX, 1500, 1987 - ROOM);
    BREAKS(NEM_RULE_KEPT, 1);
    hits(NEM_NODE_RESTART, MUTEX, 1500, 1989 - ROOM);
    ck_assert_uint_eq(kept_violations(), 0);
}
END_TEST

START_TEST(with_full_coverage_a_dead_master_closes_all_nodes)
{
    bool closes = harsh[_i] != NEM_TAKEOVER;
    with(NEM_CLUSTER);
    forged.full_coverage = true;
    lose_at_D();
    hits(harsh[_i], ANOTHER, 2100, 2800);
    ck_assert_uint_eq(kept_violations(), !closes);
}
END_TEST

START_TEST(a_replica_that_restarts_confirms_no_renewal)
{
    with(NEM_CLUSTER_REPLICAS);
    lose_at_D();
    hits(NEM_FAILOVER, MUTEX, 2100, 2800);
    BREAKS(NEM_RULE_KEPT, 1);
    hits(NEM_ROLLING_RESTART, MUTEX, 2100, 2800);
    ck_assert_uint_eq(kept_violations(), 0);
}
END_TEST

START_TEST(a_hash_slot_that_no_node_had_is_a_reason)
{
    with(NEM_CLUSTER);
    lose_at_D();
    hits(NEM_RESHARD, MUTEX, 2100, 2800);
    BREAKS(NEM_RULE_KEPT, 1);
    last_fault()->took_us = 500000; /* it was repaired */
    ck_assert_uint_eq(kept_violations(), 0);
}
END_TEST

START_TEST(a_fault_of_its_own_process_is_a_reason_in_a_cluster_too)
{
    with(NEM_CLUSTER);
    lose_at_D();
    fault(NEM_FREEZE, 2, NEM_ALL, 2100, 2800);
    BREAKS(NEM_RULE_KEPT, 1);
    fault(NEM_FREEZE, 1, NEM_ALL, 2100, 2800);
    ck_assert_uint_eq(kept_violations(), 0);
}
END_TEST

/* ---- code, cut */

static void try_in_vain(void)
{
    invoke(11, 1000, NEM_TRYLOCK, MUTEX);
    returns(11, 1100, NEM_TRYLOCK, MUTEX, ENOTCONN);
}

START_TEST(only_its_own_node_is_a_reason_for_no_answer)
{
    with(NEM_CLUSTER);
    try_in_vain();
    hits(NEM_SERVER_STOP_SHORT, ANOTHER, 950, 1450);
    hits(NEM_SCRIPT_FLUSH, MUTEX, 950, 1450);
    BREAKS(NEM_RULE_CODE, 1);
    hits(NEM_SERVER_STOP_SHORT, MUTEX, 950, 1450);
    KEEPS(NEM_RULE_CODE);
}
END_TEST

START_TEST(with_full_coverage_nodes_wait_for_another_ones_failover)
{
    with(NEM_CLUSTER);
    try_in_vain();
    hits(NEM_MASTER_STOP, ANOTHER, 950, 1450);
    BREAKS(NEM_RULE_CODE, 1);
    forged.full_coverage = true;
    KEEPS(NEM_RULE_CODE);
}
END_TEST

START_TEST(any_node_may_end_a_connection)
{
    with(NEM_CLUSTER);
    record(11, 2000, NEM_CUT_OFF, NEM_NO_CALL, NEM_ALL)->thread = NEM_EVENTS_THREAD;
    takes_at(11, A, 1000);
    BREAKS(NEM_RULE_CUT, 1);
    hits(NEM_MASTER_KILL, ANOTHER, 1900, 2100);
    KEEPS(NEM_RULE_CUT);
}
END_TEST

/* ---- stuck: a lock that nobody has */

/* A thread waits from 1000 until `at`, and gets it. */
static void waits_until(double at)
{
    takes(11, MUTEX, A, 1000, at, at + LEASE - 12);
}

START_TEST(a_lock_may_stand_still_for_a_lease_and_a_failover)
{
    with(NEM_CLUSTER);
    waits_until(1000 + BOUND + _i * 2);
    hits(NEM_MASTER_KILL, MUTEX, 1000, 3000);
    if (_i)
        BREAKS(NEM_RULE_STUCK, 1);
    else
        KEEPS(NEM_RULE_STUCK);
    ck_assert_int_eq(verdict.wait_ms, BOUND + _i * 2);
    ck_assert_int_eq(verdict.wait_bound_ms, BOUND);
}
END_TEST

START_TEST(only_a_cluster_is_judged_by_it)
{
    with(_i ? NEM_REPLICAS : NEM_PLAIN);
    waits_until(1000 + BOUND + 2);
    LEAVES(NEM_RULE_STUCK);
    ck_assert_int_eq(verdict.wait_bound_ms, 0);
}
END_TEST

START_TEST(while_another_has_it_nothing_stands_still)
{
    with(NEM_CLUSTER);
    waits_until(1000 + BOUND + 500);
    takes_at(21, B, 2000);
    unlocks(21, MUTEX, B, 2300, 2301, 2988, 0);
    KEEPS(NEM_RULE_STUCK);
    ck_assert_int_eq(verdict.wait_ms, 1000 + BOUND + 500 - 2301);
}
END_TEST

START_TEST(holds_of_other_locks_do_not_count)
{
    with(NEM_CLUSTER);
    waits_until(1000 + BOUND + 500);
    takes(21, MUTEX + 9, B, 2000, 2002, 2988);
    unlocks(21, MUTEX + 9, B, 2300, 2301, 2988, 0);
    BREAKS(NEM_RULE_STUCK, 1);
}
END_TEST

START_TEST(a_dead_holder_has_it_until_D)
{
    with(NEM_CLUSTER);
    takes_at(21, B, 1000);
    fault(NEM_KILL, 2, NEM_ALL, 1100, 1101);
    last_fault()->took_us = 100;
    restarts(2, 1102);
    waits_until(1988 + BOUND + _i * 2);
    if (_i)
        BREAKS(NEM_RULE_STUCK, 1);
    else
        KEEPS(NEM_RULE_STUCK);
}
END_TEST

START_TEST(a_wait_that_has_not_ended_counts)
{
    with(NEM_CLUSTER);
    invoke(11, ENDED - BOUND - 2, NEM_LOCK, MUTEX);
    BREAKS(NEM_RULE_STUCK, 1);
}
END_TEST

START_TEST(a_try_does_not_wait)
{
    with(NEM_CLUSTER);
    invoke(11, 1000, NEM_TRYLOCK, MUTEX);
    returns(11, 1000 + BOUND + 2, NEM_TRYLOCK, MUTEX, EBUSY);
    LEAVES(NEM_RULE_STUCK);
}
END_TEST

START_TEST(while_a_hash_slot_is_halfway_nobody_can_take_it)
{
    with(NEM_CLUSTER);
    waits_until(1000 + BOUND + 500);
    hits(NEM_RESHARD_HALFWAY, ANOTHER, 1500, 3000);
    hits(NEM_RESHARD, MUTEX, 1500, 3000);
    BREAKS(NEM_RULE_STUCK, 1);
    hits(NEM_RESHARD_HALFWAY, MUTEX, 3500, 4600);
    KEEPS(NEM_RULE_STUCK);
    ck_assert_int_eq(verdict.wait_ms, BOUND + 500 - 1100 - ROOM);
}
END_TEST

START_TEST(where_the_replica_confirms_it_must_be_back)
{
    with(NEM_CLUSTER);
    waits_until(1000 + BOUND + 500);
    hits(NEM_MASTER_STOP, MUTEX, 1500, 3000);
    BREAKS(NEM_RULE_STUCK, 1);
    forged.servers = NEM_CLUSTER_REPLICAS;
    KEEPS(NEM_RULE_STUCK);
}
END_TEST

START_TEST(a_waiter_that_is_hindered_itself_is_no_measure)
{
    with(NEM_CLUSTER);
    waits_until(1000 + BOUND + 500);
    fault(NEM_STOP_LONG, 2, NEM_ALL, 1500, 3000);
    BREAKS(NEM_RULE_STUCK, 1);
    fault(NEM_STOP_LONG, 1, NEM_ALL, 1500, 3000);
    KEEPS(NEM_RULE_STUCK);
}
END_TEST

/* ---- counts */

START_TEST(failovers_of_a_rolling_restart_are_counted)
{
    with(NEM_CLUSTER);
    hits(NEM_ROLLING_RESTART, MUTEX, 1000, 3000);
    last_fault()->hits = 5;
    hits(NEM_TAKEOVER, MUTEX, 3000, 3100);
    hits(NEM_RESHARD, MUTEX, 3200, 3300);
    judge();
    ck_assert_uint_eq(verdict.failovers, 6);
}
END_TEST

static void add_losses(Suite *suite)
{
    TCase *t = forged_group(suite, "exclusion");
    tcase_add_loop_test(t, a_failover_of_its_shard_excuses_an_overlap, 0, HARSH);
    tcase_add_loop_test(t, a_failover_of_another_shard_excuses_none, 0, HARSH);
    tcase_add_test(t, locks_of_all_numbers_have_a_shard);
    tcase_add_test(t, a_failover_excuses_only_in_its_window);
    tcase_add_loop_test(t, nothing_else_excuses_an_overlap, 0, LOSSLESS);
    tcase_add_test(t, nothing_is_excused_where_the_replica_confirms);
    tcase_add_test(t, in_a_strict_round_nothing_is_excused);
    t = forged_group(suite, "losses");
    tcase_add_loop_test(t, a_loss_by_a_failover_of_its_shard_is_told, 0, 2);
    tcase_add_loop_test(t, a_hash_slot_that_moves_loses_no_lock, 0, 2);
    t = forged_group(suite, "kept");
    tcase_add_loop_test(t, a_renewed_hold_outlives_what_holders_can_renew_through, 0,
                        GENTLE);
    tcase_add_loop_test(t, a_node_that_is_away_is_a_reason_for_its_locks_alone, 0, HARSH);
    tcase_add_test(t, its_effects_last_for_a_presence);
    tcase_add_loop_test(t, with_full_coverage_a_dead_master_closes_all_nodes, 0, HARSH);
    tcase_add_test(t, a_replica_that_restarts_confirms_no_renewal);
    tcase_add_test(t, a_hash_slot_that_no_node_had_is_a_reason);
    tcase_add_test(t, a_fault_of_its_own_process_is_a_reason_in_a_cluster_too);
}

static void add_others(Suite *suite)
{
    TCase *t = forged_group(suite, "calls");
    tcase_add_test(t, only_its_own_node_is_a_reason_for_no_answer);
    tcase_add_test(t, with_full_coverage_nodes_wait_for_another_ones_failover);
    tcase_add_test(t, any_node_may_end_a_connection);
    t = forged_group(suite, "stuck");
    tcase_add_loop_test(t, a_lock_may_stand_still_for_a_lease_and_a_failover, 0, 2);
    tcase_add_loop_test(t, only_a_cluster_is_judged_by_it, 0, 2);
    tcase_add_test(t, while_another_has_it_nothing_stands_still);
    tcase_add_test(t, holds_of_other_locks_do_not_count);
    tcase_add_loop_test(t, a_dead_holder_has_it_until_D, 0, 2);
    tcase_add_test(t, a_wait_that_has_not_ended_counts);
    tcase_add_test(t, a_try_does_not_wait);
    tcase_add_test(t, while_a_hash_slot_is_halfway_nobody_can_take_it);
    tcase_add_test(t, where_the_replica_confirms_it_must_be_back);
    tcase_add_test(t, a_waiter_that_is_hindered_itself_is_no_measure);
    t = forged_group(suite, "counts");
    tcase_add_test(t, failovers_of_a_rolling_restart_are_counted);
}

int main(void)
{
    Suite *suite = suite_create("judge: cluster");
    add_losses(suite);
    add_others(suite);
    return test_run_suite(suite);
}
