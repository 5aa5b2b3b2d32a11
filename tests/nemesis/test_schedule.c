/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The nemesis's schedule of faults: what a seed determines, and what it must not
 * change. */
#include "nemesis/schedule.h"

#include "suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 2000, GAP_MS = 150, MINUTE_MS = 60000, SEEDS = 20 };

static const uint64_t all_kinds = (UINT64_C(1) << NEM_KINDS) - 1;

static struct nem_plan plan;

static struct nem_plan_options options(uint64_t seed)
{
    return (struct nem_plan_options){ .seed = seed,
                                      .faults_ms = MINUTE_MS,
                                      .processes = 4,
                                      .locks = 9,
                                      .lease_ms = LEASE_MS,
                                      .gap_ms = GAP_MS,
                                      .kinds = all_kinds };
}

static void make(const struct nem_plan_options *o)
{
    nem_plan_free(&plan);
    nem_plan_make(&plan, o);
}

static void drop_plan(void)
{
    nem_plan_free(&plan);
}

static bool same_step(const struct nem_step *a, const struct nem_step *b)
{
    return a->begin_ms == b->begin_ms && a->length_ms == b->length_ms &&
           a->kind == b->kind && a->target == b->target && a->lock == b->lock &&
           a->amount == b->amount && a->connection == b->connection;
}

static bool same(const struct nem_plan *a, const struct nem_plan *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (!same_step(&a->steps[i], &b->steps[i]))
            return false;
    }
    return true;
}

START_TEST(same_options_give_the_same_plan)
{
    struct nem_plan_options o = options(7);
    struct nem_plan other;
    make(&o);
    nem_plan_make(&other, &o);
    ck_assert_uint_gt(plan.count, 0);
    ck_assert(same(&plan, &other));
    nem_plan_free(&other);
}
END_TEST

START_TEST(another_seed_gives_another_plan)
{
    struct nem_plan_options o = options(7), p = options(8);
    struct nem_plan other;
    make(&o);
    nem_plan_make(&other, &p);
    ck_assert(!same(&plan, &other));
    nem_plan_free(&other);
}
END_TEST

/* The meaning of a seed in a report must not change unnoticed. */
START_TEST(seed_means_the_same_everywhere)
{
    struct nem_plan_options o = options(1);
    o.kinds = UINT64_C(1) << NEM_KILL | UINT64_C(1) << NEM_DELAY;
    make(&o);
    ck_assert_uint_ge(plan.count, 3);
    static const struct nem_step wanted[] = {
        { 15, 442, NEM_KILL, 1, NEM_ALL, 0, 0 },
        { 78, 1303, NEM_DELAY, 2, NEM_ALL, 21, 1 },
        { 238, 2202, NEM_DELAY, 1, NEM_ALL, 56, 7 },
    };
    for (size_t i = 0; i < 3; i++)
        ck_assert(same_step(&plan.steps[i], &wanted[i]));
}
END_TEST

START_TEST(every_kind_comes_before_any_comes_again)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct nem_plan_options o = options(seed);
        unsigned seen[NEM_KINDS] = { 0 };
        make(&o);
        ck_assert_uint_ge(plan.count, 2 * NEM_KINDS);
        for (size_t i = 0; i < plan.count; i++) {
            seen[plan.steps[i].kind]++;
            for (int kind = 0; kind < NEM_KINDS; kind++)
                ck_assert_uint_ge(seen[kind] + 1, seen[plan.steps[i].kind]);
        }
    }
}
END_TEST

START_TEST(only_requested_kinds_of_fault_occur)
{
    struct nem_plan_options o = options(3);
    o.kinds = UINT64_C(1) << NEM_STOP_LONG | UINT64_C(1) << NEM_EVICT;
    make(&o);
    bool stop = false, evict = false;
    for (size_t i = 0; i < plan.count; i++) {
        stop = stop || plan.steps[i].kind == NEM_STOP_LONG;
        evict = evict || plan.steps[i].kind == NEM_EVICT;
        ck_assert(o.kinds >> plan.steps[i].kind & 1);
    }
    ck_assert(stop && evict);
    o.kinds = 0;
    make(&o);
    ck_assert_uint_eq(plan.count, 0);
}
END_TEST

static bool overlap(const struct nem_step *a, const struct nem_step *b)
{
    return a->begin_ms <= b->begin_ms + b->length_ms &&
           b->begin_ms <= a->begin_ms + a->length_ms;
}

/* Decides by itself, without nem_steps_clash. */
static bool spoil_one_another(const struct nem_step *a, const struct nem_step *b)
{
    if (nem_is_strangers((int)a->kind) || nem_is_strangers((int)b->kind))
        return a->kind == b->kind;
    if (a->kind >= NEM_CLIENT_KILL || b->kind >= NEM_CLIENT_KILL)
        return a->kind >= NEM_CLIENT_KILL && b->kind >= NEM_CLIENT_KILL;
    return (a->kind <= NEM_TERM) == (b->kind <= NEM_TERM) &&
           (a->target == b->target || a->target == NEM_ALL || b->target == NEM_ALL);
}

START_TEST(steps_that_spoil_one_another_do_not_overlap)
{
    unsigned long at_once = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct nem_plan_options o = options(seed);
        make(&o);
        for (size_t i = 0; i < plan.count; i++) {
            for (size_t j = 0; j < i; j++) {
                const struct nem_step *a = &plan.steps[i], *b = &plan.steps[j];
                bool together = overlap(a, b);
                ck_assert_int_eq(spoil_one_another(a, b), nem_steps_clash(a, b));
                ck_assert(!together || !spoil_one_another(a, b));
                at_once += together;
            }
        }
    }
    ck_assert_uint_gt(at_once, 1000);
}
END_TEST

START_TEST(steps_begin_in_order_and_end_soon_after_the_last_may_begin)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct nem_plan_options o = options(seed);
        make(&o);
        for (size_t i = 0; i < plan.count; i++) {
            const struct nem_step *step = &plan.steps[i];
            ck_assert_int_ge(step->begin_ms, i ? plan.steps[i - 1].begin_ms : 1);
            ck_assert_int_lt(step->begin_ms, MINUTE_MS);
            ck_assert_int_ge(step->length_ms, 0);
            ck_assert_int_le(step->length_ms, 5 * LEASE_MS / 2);
        }
    }
}
END_TEST

START_TEST(targets_and_locks_are_those_that_exist)
{
    struct nem_plan_options o = options(5);
    unsigned process_seen[4] = { 0 }, all = 0, lock_seen[9] = { 0 };
    o.faults_ms = 10 * MINUTE_MS;
    make(&o);
    for (size_t i = 0; i < plan.count; i++) {
        const struct nem_step *step = &plan.steps[i];
        bool has_lock = step->kind == NEM_DELETE_LOCK ||
                        step->kind == NEM_DELETE_COMPANION || step->kind == NEM_RESHARD ||
                        step->kind == NEM_RESHARD_HALFWAY;
        ck_assert_uint_eq(has_lock, step->lock != NEM_ALL);
        if (has_lock) {
            ck_assert_uint_lt(step->lock, 9);
            lock_seen[step->lock]++;
        }
        if (step->kind <= NEM_TERM)
            ck_assert_uint_ne(step->target, NEM_ALL);
        if (step->kind >= NEM_FORGE)
            ck_assert_uint_eq(step->target, NEM_ALL);
        else if (step->target == NEM_ALL)
            all++;
        else {
            ck_assert_uint_lt(step->target, 4);
            process_seen[step->target]++;
        }
    }
    ck_assert_uint_gt(all, 0);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_gt(process_seen[i], 0);
    for (int i = 0; i < 9; i++)
        ck_assert_uint_gt(lock_seen[i], 0);
}
END_TEST

START_TEST(stops_are_shorter_or_longer_than_a_lease_as_they_are_named)
{
    struct nem_plan_options o = options(6);
    o.faults_ms = 10 * MINUTE_MS;
    make(&o);
    for (size_t i = 0; i < plan.count; i++) {
        const struct nem_step *step = &plan.steps[i];
        if (step->kind == NEM_STOP_SHORT || step->kind == NEM_SERVER_STOP_SHORT)
            ck_assert_int_le(step->length_ms, 6 * LEASE_MS / 10);
        if (step->kind == NEM_STOP_LONG || step->kind == NEM_SERVER_STOP_LONG)
            ck_assert_int_ge(step->length_ms, 12 * LEASE_MS / 10);
        if (step->kind == NEM_BUSY || step->kind == NEM_CLIENT_PAUSE)
            ck_assert_int_le(step->length_ms, 8 * LEASE_MS / 10);
    }
}
END_TEST

START_TEST(gaps_are_around_their_mean)
{
    struct nem_plan_options o = options(9);
    o.faults_ms = 10 * MINUTE_MS;
    o.kinds = UINT64_C(1) << NEM_CUT; /* steps without a duration: none has to wait */
    make(&o);
    int64_t mean = plan.steps[plan.count - 1].begin_ms / (int64_t)plan.count;
    ck_assert_int_ge(mean, 8 * GAP_MS / 10);
    ck_assert_int_le(mean, 12 * GAP_MS / 10);
}
END_TEST

START_TEST(clock_is_stepped_by_leases_and_never_further_than_a_day)
{
    struct nem_plan_options o = options(11);
    int64_t offset = 0;
    o.kinds = UINT64_C(1) << NEM_CLOCK_FORWARD;
    o.lease_ms = 60000;
    o.faults_ms = 40 * 60 * MINUTE_MS;
    make(&o);
    for (size_t i = 0; i < plan.count; i++) {
        ck_assert_int_ge(plan.steps[i].amount, o.lease_ms / 2);
        ck_assert_int_le(plan.steps[i].amount, 3 * o.lease_ms);
        offset += plan.steps[i].amount;
    }
    ck_assert_int_le(offset, NEM_OFFSET_MAX_MS);
    ck_assert_int_gt(offset, NEM_OFFSET_MAX_MS - 3 * o.lease_ms);
}
END_TEST

START_TEST(each_kind_has_a_name_of_its_own)
{
    for (int kind = 0; kind < NEM_KINDS; kind++) {
        const char *name = nem_kind_name((enum nem_kind)kind);
        ck_assert_ptr_nonnull(name);
        for (int other = 0; other < kind; other++)
            ck_assert_str_ne(name, nem_kind_name((enum nem_kind)other));
        ck_assert_uint_eq(strspn(name, "abcdefghijklmnopqrstuvwxyz-"), strlen(name));
    }
}
END_TEST

START_TEST(what_S1_excludes_is_clock_forward_and_lost_data)
{
    for (int kind = 0; kind < NEM_KINDS; kind++)
        ck_assert_int_eq(nem_kind_excluded((enum nem_kind)kind, NEM_PLAIN),
                         kind >= NEM_CLOCK_FORWARD && kind <= NEM_EVICT);
}
END_TEST

START_TEST(a_failover_is_excluded_where_replicas_do_not_confirm)
{
    for (int kind = NEM_FAILOVER; kind <= NEM_MASTER_STOP; kind++) {
        ck_assert(nem_kind_excluded((enum nem_kind)kind, NEM_SENTINEL));
        ck_assert(!nem_kind_excluded((enum nem_kind)kind, NEM_REPLICAS));
    }
}
END_TEST

START_TEST(in_a_cluster_a_master_that_hands_over_loses_nothing)
{
    for (int kind = NEM_FAILOVER; kind < NEM_KINDS; kind++) {
        bool loses = kind == NEM_MASTER_KILL || kind == NEM_MASTER_STOP ||
                     kind == NEM_TAKEOVER || kind == NEM_BUS_CUT;
        ck_assert_int_eq(nem_kind_excluded((enum nem_kind)kind, NEM_CLUSTER), loses);
        ck_assert(!nem_kind_excluded((enum nem_kind)kind, NEM_CLUSTER_REPLICAS));
    }
}
END_TEST

START_TEST(hash_slots_of_all_types_are_left_halfway_for_longer_than_a_lease)
{
    struct nem_plan_options o = options(13);
    unsigned halfway[NEM_RWLOCK + 1] = { 0 };
    o.faults_ms = 10 * MINUTE_MS;
    o.kinds = UINT64_C(1) << NEM_RESHARD | UINT64_C(1) << NEM_RESHARD_HALFWAY;
    make(&o);
    for (size_t i = 0; i < plan.count; i++) {
        const struct nem_step *step = &plan.steps[i];
        if (step->kind != NEM_RESHARD_HALFWAY)
            continue;
        halfway[nem_type_of(step->lock)]++;
        ck_assert_int_gt(step->length_ms, LEASE_MS);
    }
    for (int i = 0; i <= NEM_RWLOCK; i++)
        ck_assert_uint_gt(halfway[i], 0);
}
END_TEST

START_TEST(kinds_fit_the_servers)
{
    for (int i = 0; i < NEM_KINDS; i++) {
        enum nem_kind kind = (enum nem_kind)i;
        bool several = nem_kind_fits(kind, NEM_SENTINEL);
        bool fails_over = i >= NEM_FAILOVER && i <= NEM_MASTER_STOP;
        ck_assert_int_eq(nem_kind_fits(kind, NEM_PLAIN), i < NEM_FAILOVER);
        ck_assert_int_eq(several, nem_kind_fits(kind, NEM_REPLICAS));
        ck_assert(several || !fails_over);
        ck_assert(!several || !nem_is_clusters(i));
        ck_assert(!several || nem_kind_fits(kind, NEM_CLUSTER));
        ck_assert_int_eq(nem_kind_fits(kind, NEM_CLUSTER),
                         nem_kind_fits(kind, NEM_CLUSTER_REPLICAS));
        ck_assert(!several || nem_kind_lane(kind) == NEM_LANE_PROCESS ||
                  nem_kind_lane(kind) == NEM_LANE_SERVER);
    }
    ck_assert(!nem_kind_fits(NEM_LOSE_MESSAGES, NEM_TLS));
    ck_assert(!nem_kind_fits(NEM_KILL_BURIER, NEM_TLS));
    ck_assert(nem_kind_fits(NEM_LOSE_REPLIES, NEM_TLS));
    ck_assert(!nem_kind_fits(NEM_SERVER_RESTART, NEM_REPLICAS));
    ck_assert(!nem_kind_fits(NEM_FLUSHALL, NEM_SENTINEL));
    ck_assert(nem_kind_fits(NEM_RESHARD_HALFWAY, NEM_CLUSTER));
    ck_assert(nem_kind_fits(NEM_LOSE_MESSAGES, NEM_CLUSTER));
    ck_assert(!nem_kind_fits(NEM_LINK_DOWN, NEM_CLUSTER));
    ck_assert(!nem_kind_fits(NEM_FORCE, NEM_CLUSTER));
    ck_assert(!nem_kind_fits(NEM_CLOCK_BACK, NEM_CLUSTER));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tc = tcase_create("schedule");
    tcase_add_checked_fixture(tc, NULL, drop_plan);
    tcase_add_test(tc, same_options_give_the_same_plan);
    tcase_add_test(tc, another_seed_gives_another_plan);
    tcase_add_test(tc, seed_means_the_same_everywhere);
    tcase_add_test(tc, every_kind_comes_before_any_comes_again);
    tcase_add_test(tc, only_requested_kinds_of_fault_occur);
    tcase_add_test(tc, steps_that_spoil_one_another_do_not_overlap);
    tcase_add_test(tc, steps_begin_in_order_and_end_soon_after_the_last_may_begin);
    tcase_add_test(tc, targets_and_locks_are_those_that_exist);
    tcase_add_test(tc, stops_are_shorter_or_longer_than_a_lease_as_they_are_named);
    tcase_add_test(tc, gaps_are_around_their_mean);
    tcase_add_test(tc, clock_is_stepped_by_leases_and_never_further_than_a_day);
    tcase_add_test(tc, each_kind_has_a_name_of_its_own);
    tcase_add_test(tc, what_S1_excludes_is_clock_forward_and_lost_data);
    tcase_add_test(tc, a_failover_is_excluded_where_replicas_do_not_confirm);
    tcase_add_test(tc, in_a_cluster_a_master_that_hands_over_loses_nothing);
    tcase_add_test(tc, hash_slots_of_all_types_are_left_halfway_for_longer_than_a_lease);
    tcase_add_test(tc, kinds_fit_the_servers);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
