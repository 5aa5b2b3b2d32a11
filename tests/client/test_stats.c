/* SPDX-License-Identifier: Apache-2.0 */
/* What rlock_client_getstats reports beside counters: how long calls waited, how long
 * sections and round trips lasted, and which errors of the server there were. The pauses
 * in these tests are the durations to be measured. */
#include "fixture.h"

#include "base/histogram.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { SOON_MS = 10000, PAUSE_MS = 40, US_PER_MS = 1000 };
#define MANY 500u

static rlock_mutex_t m, theirs;

static void set_up(void)
{
    fixture_open();
    m = mutex_of(client, "n");
    theirs = mutex_of(fixture_other(), "n");
}

static void keep(void)
{
    reopen_with("?retain=60000&presence=30000");
    m = mutex_of(client, "n");
}

/* Asserts that the histogram is consistent. */
static void is_sound(const rlock_histogram_t *h)
{
    uint64_t count = 0;
    for (int i = 0; i < RLOCK_HISTOGRAM_BUCKETS; i++) {
        count += h->buckets[i];
        if (h->buckets[i] > 0 && i > 0) /* some duration was as long as that */
            ck_assert_uint_ge(h->max_us, UINT64_C(1) << (i - 1));
    }
    ck_assert_uint_ge(h->sum_us, h->max_us);
    ck_assert_uint_le(h->sum_us, h->max_us * count + count);
}

/* Asserts that one duration of at least `ms` was counted. */
static void counts_one(const rlock_histogram_t *h, long ms)
{
    is_sound(h);
    ck_assert_uint_eq(h->count, 1);
    ck_assert_uint_eq(h->sum_us, h->max_us);
    ck_assert_uint_ge(h->max_us, (uint64_t)ms * US_PER_MS);
    ck_assert_uint_le(h->max_us, (uint64_t)test_ms(SOON_MS) * US_PER_MS);
}

/* ---- the histogram itself */

START_TEST(bucket_i_is_below_2_to_the_i_us)
{
    ck_assert_uint_eq(rlk_histogram_bucket(-1), 0);
    ck_assert_uint_eq(rlk_histogram_bucket(0), 0);
    ck_assert_uint_eq(rlk_histogram_bucket(999), 0);
    for (unsigned i = 1; i < RLOCK_HISTOGRAM_BUCKETS; i++) {
        int64_t us = INT64_C(1) << (i - 1);
        ck_assert_uint_eq(rlk_histogram_bucket(us * 1000), i);
        ck_assert_uint_eq(rlk_histogram_bucket(us * 1000 - 1), i - 1);
    }
    ck_assert_uint_eq(rlk_histogram_bucket(INT64_MAX), RLOCK_HISTOGRAM_BUCKETS - 1);
}
END_TEST

START_TEST(what_is_taken_over_is_taken_over_once)
{
    struct rlk_histogram from, into;
    struct rlk_histogram_folded folded;
    rlock_histogram_t shown;
    memset(&from, 0, sizeof(from));
    memset(&into, 0, sizeof(into));
    memset(&folded, 0, sizeof(folded));
    rlk_histogram_add(&from, 1500);
    rlk_histogram_fold(&into, &from, &folded);
    rlk_histogram_fold(&into, &from, &folded);
    rlk_histogram_add(&from, 700);
    rlk_histogram_add(&into, 4000);
    rlk_histogram_add(&from, 9000); /* taken back below, after it was folded */
    rlk_histogram_fold(&into, &from, &folded);
    rlk_histogram_undo(&from, 9000);
    rlk_histogram_add(&from, 9500);
    rlk_histogram_fold(&into, &from, &folded);
    rlk_histogram_show(&into, &shown);
    is_sound(&shown);
    ck_assert_uint_eq(shown.count, 4);
    ck_assert_uint_eq(shown.sum_us, 15); /* 15.7 */
    ck_assert_uint_eq(shown.max_us, 9);
    ck_assert_uint_eq(shown.buckets[0], 1);
    ck_assert_uint_eq(shown.buckets[1], 1);
    ck_assert_uint_eq(shown.buckets[3], 1);
    ck_assert_uint_eq(shown.buckets[4], 1);
}
END_TEST

START_TEST(old_fields_stay_where_they_were)
{
    ck_assert_uint_eq(sizeof(rlock_stats_t), 4096);
    ck_assert_uint_eq(sizeof(rlock_histogram_t), 43 * 8);
    ck_assert_uint_eq(offsetof(rlock_stats_t, holds_now), 0);
    ck_assert_uint_eq(offsetof(rlock_stats_t, timeouts), 9 * 8);
    ck_assert_uint_eq(offsetof(rlock_stats_t, messages_ignored), 23 * 8);
    ck_assert_uint_eq(offsetof(rlock_stats_t, risks), 24 * 8);
    ck_assert_uint_eq(offsetof(rlock_stats_t, wait_time), 30 * 8);
    ck_assert_uint_eq(offsetof(rlock_stats_t, burials),
                      30 * 8 + 4 * sizeof(rlock_histogram_t));
}
END_TEST

/* ---- waits */

static rlock_rwlock_t rw, their_rw;
static rlock_fair_t fair, their_fair;

static int lock_fair(void *arg)
{
    int rc = rlock_fair_lock(arg);
    return rc != 0 ? rc : rlock_fair_unlock(arg);
}

static int read_pair(void *arg)
{
    int rc = rlock_rwlock_rdlock(arg);
    return rc != 0 ? rc : rlock_rwlock_unlock(arg);
}

static int write_pair(void *arg)
{
    int rc = rlock_rwlock_wrlock(arg);
    return rc != 0 ? rc : rlock_rwlock_unlock(arg);
}

/* The calls of the holder and of the waiter, and their handles. */
static const struct {
    int (*take)(void *arg);
    int (*give)(void *arg);
    void *held;
    int (*wait)(void *arg);
    void *wanted;
} waits[] = {
    { run_lock, run_unlock, &m, run_pair, &m },
    { run_lock, run_unlock, &theirs, run_pair, &m },
    { run_wrlock, run_rwunlock, &rw, write_pair, &rw },
    { run_wrlock, run_rwunlock, &their_rw, write_pair, &rw },
    { run_wrlock, run_rwunlock, &their_rw, read_pair, &rw },
};

static void make_rwlocks(void)
{
    rw = rwlock_of(client, "rw");
    their_rw = rwlock_of(other, "rw");
}

START_TEST(wait_time_is_of_calls_that_waited_and_got_it)
{
    struct task task;
    make_rwlocks();
    OK(waits[_i].take(waits[_i].held));
    task_start(&task, waits[_i].wait, waits[_i].wanted);
    ck_assert(wait_waiters(client, 1));
    for (int i = 0; stats_of(client).waits == 0 && i < 10000; i++)
        test_pause_ms(1);
    test_pause_ms(PAUSE_MS);
    OK(waits[_i].give(waits[_i].held));
    OK(task_join(&task));
    rlock_stats_t s = stats_of(client);
    counts_one(&s.wait_time, PAUSE_MS);
    ck_assert_uint_eq(s.waits, 1);
    ck_assert_uint_eq(s.failed_wait_time.count, 0);
}
END_TEST

START_TEST(wait_time_is_of_fair_locks_too)
{
    struct task task;
    rlock_mutexattr_t attr;
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, client));
    OK(rlock_fair_init(&fair, &attr, "f"));
    OK(rlock_mutexattr_setclient(&attr, other));
    OK(rlock_fair_init(&their_fair, &attr, "f"));
    OK(rlock_mutexattr_destroy(&attr));
    OK(rlock_fair_lock(&their_fair));
    task_start(&task, lock_fair, &fair);
    ck_assert(wait_key("rlock:{f}:queue", true, SOON_MS));
    test_pause_ms(PAUSE_MS);
    OK(rlock_fair_unlock(&their_fair));
    OK(task_join(&task));
    rlock_stats_t s = stats_of(client);
    counts_one(&s.wait_time, PAUSE_MS);
    counts_one(&s.hold_time, 0);
}
END_TEST

START_TEST(free_lock_is_no_wait)
{
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_trylock(&m));
    EXPECT(rlock_mutex_trylock(&theirs), EBUSY);
    OK(rlock_mutex_unlock(&m));
    for (int i = 0; i < 2; i++) {
        rlock_stats_t s = stats_of(i == 0 ? client : other);
        ck_assert_uint_eq(s.wait_time.count, 0);
        ck_assert_uint_eq(s.failed_wait_time.count, 0);
    }
}
END_TEST

START_TEST(wait_that_ends_at_its_deadline_is_apart)
{
    struct actor holder; /* a thread of this client or of the other one */
    rlock_mutex_t *held = _i == 0 ? &m : &theirs;
    actor_start(&holder);
    OK(actor_does(&holder, run_lock, held));
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(PAUSE_MS));
    EXPECT(rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, &at), ETIMEDOUT);
    rlock_stats_t s = stats_of(client);
    counts_one(&s.failed_wait_time, PAUSE_MS / 2);
    ck_assert_uint_eq(s.wait_time.count, 0);
    ck_assert_uint_eq(s.hold_time.count, 0);
    OK(actor_does(&holder, run_unlock, held));
    actor_end(&holder);
}
END_TEST

/* ---- sections */

START_TEST(hold_time_is_of_the_outermost_level)
{
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    ck_assert_uint_eq(stats_of(client).hold_time.count, 0);
    test_pause_ms(PAUSE_MS);
    OK(rlock_mutex_unlock(&m));
    rlock_stats_t s = stats_of(client);
    counts_one(&s.hold_time, PAUSE_MS);
}
END_TEST

START_TEST(retention_between_sections_counts_in_no_hold_time)
{
    long gap = test_ms(10 * PAUSE_MS);
    keep();
    for (unsigned i = 0; i < MANY; i++) {
        OK(rlock_mutex_lock(&m));
        if (i == MANY / 2)
            test_pause_ms(PAUSE_MS);
        OK(rlock_mutex_unlock(&m));
        if (i == MANY / 4)
            test_pause_ms(gap);
    }
    rlock_stats_t s = stats_of(client);
    is_sound(&s.hold_time);
    ck_assert_uint_ge(s.local_handovers, MANY - 1); /* nearly all by the fast path */
    ck_assert_uint_eq(s.hold_time.count, MANY);
    ck_assert_uint_ge(s.hold_time.max_us, PAUSE_MS * US_PER_MS);
    ck_assert_uint_lt(s.hold_time.max_us, (uint64_t)gap * US_PER_MS);
}
END_TEST

static rlock_mutex_t by_threads;

static int many_pairs(void *arg)
{
    int rc = 0;
    for (unsigned i = 0; i < MANY && rc == 0; i++) {
        rc = rlock_mutex_lock(arg);
        if (rc == 0)
            rc = rlock_mutex_unlock(arg);
    }
    return rc;
}

START_TEST(each_section_of_many_threads_counts_once)
{
    enum { THREADS = 4 };
    struct task tasks[THREADS];
    if (_i == 1)
        keep();
    by_threads = m;
    for (int i = 0; i < THREADS; i++)
        task_start(&tasks[i], many_pairs, &by_threads);
    for (int i = 0; i < 100; i++) /* each call closes the fast path while they run */
        stats_of(client);
    for (int i = 0; i < THREADS; i++)
        OK(task_join(&tasks[i]));
    rlock_stats_t s = stats_of(client);
    is_sound(&s.hold_time);
    is_sound(&s.wait_time);
    ck_assert_uint_eq(s.hold_time.count, THREADS * MANY);
    ck_assert_uint_eq(s.acquisitions, THREADS * MANY);
    ck_assert_uint_eq(s.releases, THREADS * MANY);
    ck_assert_uint_eq(s.wait_time.count, s.waits);
}
END_TEST

START_TEST(readers_that_share_a_hold_have_a_section_each)
{
    struct actor reader;
    make_rwlocks();
    actor_start(&reader);
    OK(rlock_rwlock_rdlock(&rw));
    OK(actor_does(&reader, run_rdlock, &rw));
    ck_assert_uint_eq(stats_of(client).holds_now, 1);
    test_pause_ms(PAUSE_MS);
    OK(rlock_rwlock_unlock(&rw));
    OK(actor_does(&reader, run_rwunlock, &rw));
    actor_end(&reader);
    rlock_stats_t s = stats_of(client);
    is_sound(&s.hold_time);
    ck_assert_uint_eq(s.hold_time.count, 2);
    ck_assert_uint_eq(s.releases, 2);
    ck_assert_uint_ge(s.hold_time.sum_us, 2 * PAUSE_MS * US_PER_MS);
}
END_TEST

START_TEST(section_continues_when_a_reader_gets_a_hold_of_its_own)
{
    struct actor reader;
    make_rwlocks();
    actor_start(&reader);
    OK(rlock_rwlock_rdlock(&rw));
    OK(actor_does(&reader, run_rdlock, &rw));
    test_pause_ms(PAUSE_MS);
    OK(rlock_rwlock_extend(&rw, 60000));
    ck_assert_uint_eq(stats_of(client).holds_now, 2);
    ck_assert_uint_eq(stats_of(client).hold_time.count, 0);
    OK(rlock_rwlock_unlock(&rw));
    rlock_stats_t s = stats_of(client);
    counts_one(&s.hold_time, PAUSE_MS);
    OK(actor_does(&reader, run_rwunlock, &rw));
    actor_end(&reader);
}
END_TEST

START_TEST(downgrade_ends_no_section)
{
    make_rwlocks();
    OK(rlock_rwlock_wrlock(&rw));
    test_pause_ms(PAUSE_MS);
    OK(rlock_rwlock_downgrade(&rw));
    ck_assert_uint_eq(stats_of(client).hold_time.count, 0);
    OK(rlock_rwlock_unlock(&rw));
    rlock_stats_t s = stats_of(client);
    counts_one(&s.hold_time, PAUSE_MS);
}
END_TEST

START_TEST(section_that_is_lost_ends_with_the_loss)
{
    if (_i == 1) { /* the thread came in by the fast path */
        keep();
        OK(rlock_mutex_lock(&m));
        OK(rlock_mutex_unlock(&m));
        OK(rlock_mutex_lock(&m));
    } else {
        OK(rlock_mutex_lock(&m));
    }
    uint64_t before = stats_of(client).hold_time.count;
    test_pause_ms(PAUSE_MS);
    OK(rlock_force_unlock(other, "n"));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    rlock_stats_t s = stats_of(client);
    is_sound(&s.hold_time);
    ck_assert_uint_eq(s.hold_time.count, before + 1);
    ck_assert_uint_ge(s.hold_time.max_us, PAUSE_MS * US_PER_MS);
    test_pause_ms(PAUSE_MS);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    s = stats_of(client);
    ck_assert_uint_eq(s.hold_time.count, before + 1);
    ck_assert_uint_eq(s.releases, before);
}
END_TEST

START_TEST(section_of_a_thread_that_ended_counts)
{
    OK(in_thread(run_lock, &m));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_OWNER_DIED, SOON_MS));
    rlock_stats_t s = stats_of(client);
    counts_one(&s.hold_time, 0);
}
END_TEST

START_TEST(longest_section_is_the_clients_own)
{
    keep();
    rlock_client_t *second = open_with("?retain=60000&presence=30000");
    rlock_mutex_t its = mutex_of(second, "another");
    for (int i = 0; i < 3; i++) { /* by the fast path from the second on */
        OK(rlock_mutex_lock(&m));
        test_pause_ms(PAUSE_MS * 5);
        OK(rlock_mutex_unlock(&m));
    }
    for (int i = 0; i < 3; i++) {
        OK(rlock_mutex_lock(&its));
        OK(rlock_mutex_unlock(&its));
    }
    rlock_stats_t s = stats_of(second);
    is_sound(&s.hold_time);
    ck_assert_uint_eq(s.hold_time.count, 3);
    ck_assert_uint_eq(s.releases, 3);
    ck_assert_uint_lt(s.hold_time.max_us, stats_of(client).hold_time.max_us);
    ck_assert_uint_ge(stats_of(client).hold_time.max_us, PAUSE_MS * 5 * US_PER_MS);
    close_client(second);
}
END_TEST

/* ---- the server */

START_TEST(round_trip_time_is_of_requests_that_were_answered)
{
    client = open_at(test_proxy_url(proxy), "");
    rlock_mutex_t far = mutex_of(client, "far");
    OK(rlock_mutex_lock(&far));
    OK(rlock_mutex_unlock(&far));
    rlock_stats_t s = stats_of(client);
    is_sound(&s.round_trip_time);
    ck_assert_uint_eq(s.round_trip_time.count, s.round_trips);
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_DELAY, .contains = "far",
              .count = 1, .delay_ms = PAUSE_MS);
    OK(rlock_mutex_lock(&far));
    OK(rlock_mutex_unlock(&far));
    s = stats_of(client);
    is_sound(&s.round_trip_time);
    ck_assert_uint_eq(s.round_trip_time.count, s.round_trips);
    ck_assert_uint_ge(s.round_trip_time.max_us, PAUSE_MS * US_PER_MS);
    ck_assert_uint_eq(s.wait_time.count, 0); /* slow, but free */
}
END_TEST

static int ignore(const rlock_info_t *each, void *arg)
{
    (void)each;
    (void)arg;
    return 0;
}

START_TEST(round_trip_time_is_of_a_listings_requests_too)
{
    enum { REQUESTS = 3 }; /* CLIENT LIST, SCAN, and one for the lock */
    OK(rlock_mutex_lock(&m));
    OK(rlock_list(client, NULL, ignore, NULL)); /* loads the script */
    uint64_t before = stats_of(client).round_trip_time.count;
    OK(rlock_list(client, NULL, ignore, NULL));
    ck_assert_uint_ge(stats_of(client).round_trip_time.count, before + REQUESTS);
    ck_assert_uint_eq(stats_of(client).round_trip_time.count,
                      stats_of(client).round_trips);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(script_loads_counts_what_the_server_had_forgotten)
{
    fixture_load_scripts();
    OK(rlock_mutex_lock(&m));
    ck_assert_uint_eq(stats_of(client).script_loads, 0);
    test_redis_do(redis, "SCRIPT", "FLUSH");
    OK(rlock_mutex_unlock(&m));
    ck_assert_uint_eq(stats_of(client).script_loads, 1);
}
END_TEST

START_TEST(refusals_counts_what_the_server_refused)
{
    ck_assert_uint_eq(stats_of(client).refusals, 0);
    test_redis_do(redis, "SET", "n", "x");
    EXPECT(rlock_mutex_trylock(&m), EPROTO);
    ck_assert_uint_eq(stats_of(client).refusals, 1);
    test_redis_do(redis, "DEL", "n");
}
END_TEST

/* A temporary refusal is an answer, too: the server is reachable. */
START_TEST(round_trip_time_is_of_refusals_for_a_time_too)
{
    rlock_stats_t s = stats_of(client);
    uint64_t before = s.round_trip_time.count, refusals = s.refusals;
    test_redis_config(redis, "maxmemory", "1");
    EXPECT(rlock_mutex_trylock(&m), ENOTCONN);
    test_redis_config(redis, "maxmemory", "0");
    s = stats_of(client);
    is_sound(&s.round_trip_time);
    ck_assert_uint_gt(s.round_trip_time.count, before);
    ck_assert_uint_eq(s.round_trip_time.count, s.round_trips);
    ck_assert_uint_eq(s.refusals, refusals);
}
END_TEST

START_TEST(outage_is_counted_and_timed)
{
    rlock_stats_t s = stats_of(client);
    ck_assert_uint_eq(s.outages, 0);
    ck_assert_uint_eq(s.outage_us, 0);
    test_server_kill(&server);
    for (int down = 0; down < 2; down++) /* of both clients */
        ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_DISCONNECTED, SOON_MS));
    test_pause_ms(PAUSE_MS);
    s = stats_of(client);
    ck_assert_uint_eq(s.outages, 1);
    ck_assert_uint_ge(s.outage_us, PAUSE_MS * US_PER_MS); /* with the present outage */
    test_redis_close(redis);
    test_server_restart(&server);
    redis = test_redis_connect(server.path);
    for (int up = 0; up < 2; up++) /* of both clients */
        ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_CONNECTED, SOON_MS));
    uint64_t lasted = stats_of(client).outage_us;
    ck_assert_uint_gt(lasted, s.outage_us);
    test_pause_ms(PAUSE_MS);
    s = stats_of(client);
    ck_assert_uint_eq(s.outage_us, lasted); /* the outage is over */
    ck_assert_uint_eq(s.outages, 1);
    ck_assert_uint_eq(s.events, 2);
}
END_TEST

START_TEST(risks_counts_holds_that_came_at_risk)
{
    /* the risk is counted when a tenth is left: time for a machine that stands still */
    OK(rlock_mutex_lock_lease(&m, test_ms(1000)));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_AT_RISK, SOON_MS));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    ck_assert_uint_eq(stats_of(client).risks, 1);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stats");
    TCase *alone = tcase_create("histogram");
    tcase_add_test(alone, bucket_i_is_below_2_to_the_i_us);
    tcase_add_test(alone, what_is_taken_over_is_taken_over_once);
    tcase_add_test(alone, old_fields_stay_where_they_were);
    suite_add_tcase(suite, alone);

    TCase *wait = tcase_create("waits");
    tcase_add_unchecked_fixture(wait, fixture_start, fixture_stop);
    tcase_add_checked_fixture(wait, set_up, fixture_close);
    tcase_add_loop_test(wait, wait_time_is_of_calls_that_waited_and_got_it, 0,
                        (int)(sizeof(waits) / sizeof(waits[0])));
    tcase_add_test(wait, wait_time_is_of_fair_locks_too);
    tcase_add_test(wait, free_lock_is_no_wait);
    tcase_add_loop_test(wait, wait_that_ends_at_its_deadline_is_apart, 0, 2);
    suite_add_tcase(suite, wait);

    TCase *hold = tcase_create("sections");
    tcase_add_unchecked_fixture(hold, fixture_start, fixture_stop);
    tcase_add_checked_fixture(hold, set_up, fixture_close);
    tcase_add_test(hold, hold_time_is_of_the_outermost_level);
    tcase_add_test(hold, retention_between_sections_counts_in_no_hold_time);
    tcase_add_loop_test(hold, each_section_of_many_threads_counts_once, 0, 2);
    tcase_add_test(hold, readers_that_share_a_hold_have_a_section_each);
    tcase_add_test(hold, section_continues_when_a_reader_gets_a_hold_of_its_own);
    tcase_add_test(hold, downgrade_ends_no_section);
    tcase_add_loop_test(hold, section_that_is_lost_ends_with_the_loss, 0, 2);
    tcase_add_test(hold, section_of_a_thread_that_ended_counts);
    tcase_add_test(hold, longest_section_is_the_clients_own);
    suite_add_tcase(suite, hold);

    TCase *wire = tcase_create("round trips");
    tcase_add_unchecked_fixture(wire, fixture_start, fixture_stop);
    tcase_add_checked_fixture(wire, fixture_open_proxied, fixture_close_proxied);
    tcase_add_test(wire, round_trip_time_is_of_requests_that_were_answered);
    suite_add_tcase(suite, wire);

    TCase *redis_case = tcase_create("server");
    tcase_add_unchecked_fixture(redis_case, fixture_start, fixture_stop);
    tcase_add_checked_fixture(redis_case, set_up, fixture_close);
    tcase_add_test(redis_case, script_loads_counts_what_the_server_had_forgotten);
    tcase_add_test(redis_case, refusals_counts_what_the_server_refused);
    tcase_add_test(redis_case, round_trip_time_is_of_refusals_for_a_time_too);
    tcase_add_test(redis_case, round_trip_time_is_of_a_listings_requests_too);
    tcase_add_test(redis_case, outage_is_counted_and_timed);
    tcase_add_test(redis_case, risks_counts_holds_that_came_at_risk);
    suite_add_tcase(suite, redis_case);
    return test_run_suite(suite);
}
