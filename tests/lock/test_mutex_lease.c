/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_lease,rwlock_lease */
/* Leases of the mutex: fixed and renewed, extended, lost; and fencing tokens. Faults of
 * network and server are in test_faults.c. */
#include "fixture.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { SHORT_MS = 200, RENEWED_MS = 1000, LONG_MS = 60000, SOON_MS = 5000 };

static rlock_mutex_t m, theirs;

static void set_up(void)
{
    fixture_open();
    m = mutex_of(client, "n");
    theirs = mutex_of(fixture_other(), "n");
}

static long pttl(void)
{
    return (long)test_redis_int(redis, "PTTL", "n");
}

static void assert_lost(rlock_mutex_t *mutex)
{
    ck_assert_int_eq(state_of(mutex), RLOCK_LOST);
    ck_assert_int_eq(remaining_of(mutex), 0);
}

static bool is_lost(void *mutex)
{
    rlock_state_t state;
    return rlock_mutex_getstate(mutex, &state) == 0 && state == RLOCK_LOST;
}

/* Takes `mutex`, and loses it to a forced unlock. */
static void lock_and_lose(rlock_mutex_t *mutex, int levels)
{
    for (int i = 0; i < levels; i++)
        OK(rlock_mutex_lock(mutex));
    OK(rlock_force_unlock(other, "n"));
    ck_assert(test_wait_until(is_lost, mutex, SOON_MS));
}

/* ---- bounds */

static const long bad_leases[] = { -1, 1, 49, 86400001, LONG_MAX, LONG_MIN };

START_TEST(lease_out_of_range_is_EINVAL)
{
    long lease = bad_leases[_i];
    struct timespec at = test_in_ms(CLOCK_REALTIME, 1000);
    for (int held = 0; held < 2; held++) {
        EXPECT(rlock_mutex_lock_lease(&m, lease), EINVAL);
        EXPECT(rlock_mutex_trylock_lease(&m, lease), EINVAL);
        EXPECT(rlock_mutex_timedlock_lease(&m, &at, lease), EINVAL);
        EXPECT(rlock_mutex_clocklock_lease(&m, CLOCK_REALTIME, &at, lease), EINVAL);
        EXPECT(rlock_mutex_extend(&m, lease), EINVAL);
        ck_assert_int_eq(count_of(&m), held);
        if (!held)
            OK(rlock_mutex_lock(&m));
    }
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(shortest_and_longest_lease_are_taken)
{
    OK(rlock_mutex_lock_lease(&m, 86400000));
    ck_assert_int_gt(pttl(), 86400000 - test_ms(5000));
    ck_assert_int_le(pttl(), 86400000);
    OK(rlock_mutex_unlock(&m));
    int rc = rlock_mutex_lock_lease(&m, 50);
    ck_assert_int_le(pttl(), 50);
    if (rc == 0) {
        rc = rlock_mutex_unlock(&m);
        ck_assert(rc == 0 || rc == ESTALE);
    }
}
END_TEST

START_TEST(lease_0_is_the_clients_or_the_handles)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t own;
    OK(rlock_mutex_lock(&m));
    ck_assert(pttl() > 30000 - test_ms(5000) && pttl() <= 30000);
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_trylock_lease(&m, 0));
    ck_assert(pttl() > 30000 - test_ms(5000) && pttl() <= 30000);
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, client));
    OK(rlock_mutexattr_setlease(&attr, LONG_MS));
    OK(rlock_mutex_init(&own, &attr, "n"));
    OK(rlock_mutex_lock(&own));
    ck_assert(pttl() > 30000 && pttl() <= LONG_MS);
    OK(rlock_mutex_unlock(&own));
}
END_TEST

START_TEST(reentry_does_not_change_the_lease)
{
    OK(rlock_mutex_lock_lease(&m, LONG_MS));
    long left = remaining_of(&m);
    OK(rlock_mutex_lock_lease(&m, 1000));
    OK(rlock_mutex_lock(&m));
    ck_assert_int_gt(remaining_of(&m), 1000);
    ck_assert_int_le(remaining_of(&m), left);
    for (int i = 0; i < 3; i++)
        OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(remaining_is_99_percent_and_falls)
{
    OK(rlock_mutex_lock_lease(&m, LONG_MS));
    long first = remaining_of(&m);
    ck_assert_int_le(first, LONG_MS * 99 / 100 - 2);
    ck_assert_int_gt(first, LONG_MS * 99 / 100 - test_ms(5000));
    test_pause_ms(20);
    ck_assert_int_le(remaining_of(&m), first - 19);
    OK(rlock_mutex_unlock(&m));
    long ms = 7;
    EXPECT(rlock_mutex_getremaining(&m, &ms), EPERM);
}
END_TEST

/* ---- fixed */

START_TEST(fixed_lease_ends_by_itself)
{
    long lease = test_ms(SHORT_MS);
    int64_t start = test_now_ms();
    OK(rlock_mutex_lock_lease(&m, lease));
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(SOON_MS));
    OK(rlock_mutex_clocklock(&theirs, CLOCK_MONOTONIC, &at));
    int64_t took = test_now_ms() - start;
    ck_assert_int_ge(took, lease * 98 / 100 - 3); /* the hold is given up at D */
    ck_assert_int_le(took, lease + test_ms(250));
    assert_lost(&m);
    const struct told *lost = event_of(RLOCK_EVENT_LOST, SOON_MS);
    ck_assert_ptr_nonnull(lost);
    ck_assert_str_eq(lost->name, "n");
    ck_assert_int_eq(lost->type, RLOCK_TYPE_MUTEX);
    ck_assert_int_eq(lost->mode, RLOCK_MODE_EXCLUSIVE);
    ck_assert_int_eq(lost->remaining_ms, 0);
    ck_assert(pthread_equal(lost->thread, pthread_self()));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    OK(rlock_mutex_unlock(&theirs));
    ck_assert_uint_eq(stats_of(client).renewals, 0);
}
END_TEST

START_TEST(fixed_lease_is_at_risk_before_it_ends)
{
    /* the event comes when a tenth is left: time for a machine that stands still */
    const long lease = test_ms(1200);
    OK(rlock_mutex_lock_lease(&m, lease));
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    const struct told *risk = event_of(RLOCK_EVENT_AT_RISK, SOON_MS);
    ck_assert_ptr_nonnull(risk);
    ck_assert_int_gt(risk->remaining_ms, 0);
    ck_assert_int_le(risk->remaining_ms, lease / 10 + 1);
    rlock_state_t state = state_of(&m);
    ck_assert(state == RLOCK_AT_RISK || state == RLOCK_LOST);
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    assert_lost(&m);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

static int run_fixed(void *mutex)
{
    int rc = rlock_mutex_lock_lease(mutex, LONG_MS);
    long ms = 0;
    if (rc == 0)
        rc = rlock_mutex_getremaining(mutex, &ms);
    if (rc == 0 && ms <= 30000)
        rc = EPROTO; /* no longer than a grant: the lease was not confirmed */
    return rc != 0 ? rc : rlock_mutex_unlock(mutex);
}

START_TEST(fixed_lease_of_a_granted_waiter_is_the_one_it_asked_for)
{
    struct task task;
    OK(rlock_mutex_lock(&theirs));
    task_start(&task, run_fixed, &m);
    ck_assert(wait_key("rlock:{n}:queue", true, SOON_MS));
    OK(rlock_mutex_unlock(&theirs));
    OK(task_join(&task));
}
END_TEST

/* ---- renewed */

/* A hold is at risk when it was not renewed for two thirds of the lease. That must be
 * longer than a busy machine takes. */
static long renewed_lease(void)
{
    long ms = test_ms(SHORT_MS);
    return ms > RENEWED_MS ? ms : RENEWED_MS;
}

static bool held_and_safe(void *mutex)
{
    rlock_state_t state;
    return rlock_mutex_getstate(mutex, &state) == 0 && state == RLOCK_SAFE && pttl() > 0;
}

START_TEST(watchdog_renews_a_hold_for_several_leases)
{
    char parameters[64];
    long lease = renewed_lease();
    snprintf(parameters, sizeof(parameters), "?lease=%ld", lease);
    reopen_with(parameters);
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    ck_assert(test_stays(held_and_safe, &m, 5 * lease));
    EXPECT(rlock_mutex_trylock(&theirs), EBUSY);
    OK(rlock_mutex_unlock(&m));
    rlock_stats_t stats = stats_of(client);
    ck_assert_uint_ge(stats.renewals, 8);
    ck_assert_uint_eq(stats.losses, 0);
    ck_assert(!event_seen(RLOCK_EVENT_AT_RISK));
}
END_TEST

static bool no_renewals(void *arg)
{
    return stats_of(client).renewals == *(const uint64_t *)arg;
}

START_TEST(watchdog_stops_at_unlock)
{
    char parameters[64];
    long lease = renewed_lease();
    snprintf(parameters, sizeof(parameters), "?lease=%ld", lease);
    reopen_with(parameters);
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m)); /* the inner level of two */
    ck_assert(test_stays(held_and_safe, &m, 2 * lease));
    OK(rlock_mutex_unlock(&m));
    uint64_t renewals = stats_of(client).renewals;
    ck_assert(test_stays(no_renewals, &renewals, lease));
    OK(rlock_mutex_lock(&theirs));
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

/* ---- extend */

START_TEST(extend_restarts_a_fixed_lease)
{
    OK(rlock_mutex_lock_lease(&m, 10000));
    OK(rlock_mutex_extend(&m, LONG_MS));
    ck_assert_int_gt(remaining_of(&m), 10000);
    ck_assert_int_gt(pttl(), 10000);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(extend_makes_a_renewed_lease_fixed)
{
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_extend(&m, test_ms(SHORT_MS)));
    ck_assert_int_le(remaining_of(&m), test_ms(SHORT_MS));
    /* a shorter lease is kept by giving the lock up at its end (T4) */
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(SOON_MS));
    OK(rlock_mutex_timedlock(&theirs, &at));
    assert_lost(&m);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

START_TEST(extend_by_0_makes_a_fixed_lease_renewed)
{
    char parameters[64];
    long lease = renewed_lease();
    snprintf(parameters, sizeof(parameters), "?lease=%ld", lease);
    reopen_with(parameters);
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock_lease(&m, test_ms(1000)));
    OK(rlock_mutex_extend(&m, 0));
    ck_assert(test_stays(held_and_safe, &m, test_ms(1000) + 2 * lease));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(extend_of_a_lost_hold_is_ESTALE)
{
    lock_and_lose(&m, 1);
    EXPECT(rlock_mutex_extend(&m, LONG_MS), ESTALE);
    EXPECT(rlock_mutex_extend(&m, 0), ESTALE);
    ck_assert(!test_redis_exists(redis, "n"));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    EXPECT(rlock_mutex_extend(&m, LONG_MS), EPERM);
}
END_TEST

START_TEST(extend_finds_out_that_the_hold_is_gone)
{
    OK(rlock_mutex_lock(&m));
    test_redis_do(redis, "DEL", "n"); /* as somebody else might do */
    EXPECT(rlock_mutex_extend(&m, LONG_MS), ESTALE);
    assert_lost(&m);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

START_TEST(unconfirmed_extend_is_ENOTCONN_and_changes_nothing)
{
    reopen_with("?commandtimeout=100");
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock_lease(&m, LONG_MS));
    test_server_pause(&server);
    int64_t start = test_now_ms();
    EXPECT(rlock_mutex_extend(&m, 2 * LONG_MS), ENOTCONN);
    ck_assert_int_le(test_now_ms() - start, 100 + test_ms(200));
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    ck_assert_int_le(remaining_of(&m), LONG_MS);
    test_server_resume(&server);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- lost holds */

/* rule: S4 */
START_TEST(lost_hold_returns_ESTALE_until_it_is_drained)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, 20);
    lock_and_lose(&m, 3);
    assert_lost(&m);
    const struct told *lost = event_of(RLOCK_EVENT_LOST, SOON_MS);
    ck_assert_ptr_nonnull(lost);
    ck_assert_ptr_nonnull(strstr(lost->reason, "force"));
    for (int levels = 3; levels > 0; levels--) {
        EXPECT(rlock_mutex_lock(&m), ESTALE);
        EXPECT(rlock_mutex_trylock(&m), ESTALE);
        EXPECT(rlock_mutex_timedlock(&m, &at), ESTALE);
        ck_assert_int_eq(count_of(&m), levels);
        EXPECT(rlock_mutex_unlock(&m), ESTALE);
    }
    ck_assert_int_eq(state_of(&m), RLOCK_UNHELD);
    EXPECT(rlock_mutex_unlock(&m), EPERM);
    OK(rlock_mutex_lock(&m));
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

static const int types[] = {
#ifdef AS_RWLOCK
    RLOCK_RWLOCK_PREFER_READER_NP, RLOCK_RWLOCK_PREFER_WRITER_NP,
    RLOCK_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, RLOCK_RWLOCK_PHASE_FAIR_NP
#else
    RLOCK_MUTEX_NORMAL, RLOCK_MUTEX_RECURSIVE, RLOCK_MUTEX_ERRORCHECK,
    RLOCK_MUTEX_ADAPTIVE_NP
#endif
};

START_TEST(lost_hold_of_each_type_is_ESTALE)
{
    rlock_mutex_t typed = typed_mutex(client, "n", types[_i]);
    lock_and_lose(&typed, 1);
    EXPECT(rlock_mutex_lock(&typed), ESTALE);
    EXPECT(rlock_mutex_trylock(&typed), ESTALE);
    EXPECT(rlock_mutex_unlock(&typed), ESTALE);
}
END_TEST

START_TEST(other_threads_may_acquire_at_once_after_a_loss)
{
    struct task waiter;
    OK(rlock_mutex_lock(&m));
    task_start(&waiter, run_pair, &m);
    ck_assert(wait_waiters(client, 1));
    OK(rlock_force_unlock(other, "n"));
    ck_assert(task_ends(&waiter, SOON_MS));
    OK(task_join(&waiter));
    assert_lost(&m);
    OK(in_thread(run_pair, &m));
    OK(rlock_mutex_lock(&theirs));
    OK(rlock_mutex_unlock(&theirs));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

START_TEST(draining_does_not_touch_the_next_holder)
{
    lock_and_lose(&m, 2);
    OK(rlock_mutex_lock(&theirs));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    ck_assert_int_eq(state_of(&theirs), RLOCK_SAFE);
    EXPECT(rlock_mutex_trylock(&m), EBUSY);
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

START_TEST(lost_hold_delays_neither_destroy_nor_close)
{
    rlock_mutex_t copy = m;
    lock_and_lose(&m, 1);
    OK(rlock_mutex_destroy(&copy));
    close_client(client);
    client = NULL;
    assert_lost(&m);
    EXPECT(rlock_mutex_lock(&m), ESTALE);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    EXPECT(rlock_mutex_unlock(&m), EPERM);
    EXPECT(rlock_mutex_lock(&m), EINVAL);
}
END_TEST

static int run_lose_and_end(void *mutex)
{
    int rc = rlock_mutex_lock_lease(mutex, 50);
    if (rc != 0)
        return rc;
    return test_wait_until(is_lost, mutex, SOON_MS) ? 0 : EBUSY;
}

START_TEST(thread_may_end_with_a_lost_hold)
{
    OK(in_thread(run_lose_and_end, &m));
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    ck_assert(!event_seen(RLOCK_EVENT_OWNER_DIED));
}
END_TEST

START_TEST(unlock_after_the_end_is_ESTALE_before_anybody_noticed)
{
    /* the hold is gone at the server, and no renewal is due */
    OK(rlock_mutex_lock(&m));
    test_redis_do(redis, "DEL", "n");
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    ck_assert_int_eq(state_of(&m), RLOCK_UNHELD);
    ck_assert_uint_eq(stats_of(client).losses, 1);
}
END_TEST

/* ---- tokens */

START_TEST(token_is_ENOTSUP_without_fencing)
{
    uint64_t token = 7;
    OK(rlock_mutex_lock(&m));
    EXPECT(rlock_mutex_gettoken(&m, &token), ENOTSUP);
    ck_assert_uint_eq(token, 7);
    OK(rlock_mutex_unlock(&m));
    EXPECT(rlock_mutex_gettoken(&m, &token), EPERM);
    ck_assert(!test_redis_exists(redis, "redisson_lock_token:{n}"));
}
END_TEST

/* rule: S3 */
START_TEST(token_grows_with_each_hold_and_not_with_a_reentry)
{
    rlock_mutex_t mine = fenced_mutex(client, "n"), yours = fenced_mutex(other, "n");
    uint64_t last = 0;
    for (int i = 0; i < 50; i++) {
        rlock_mutex_t *mutex = i % 2 ? &mine : &yours;
        OK(rlock_mutex_lock(mutex));
        uint64_t token = token_of(mutex);
        ck_assert_uint_gt(token, last);
        OK(rlock_mutex_lock(mutex));
        ck_assert_uint_eq(token_of(mutex), token);
        OK(rlock_mutex_unlock(mutex));
        OK(rlock_mutex_unlock(mutex));
        last = token;
        if (i == 25)
            test_redis_do(redis, "FLUSHALL");
    }
}
END_TEST

static uint64_t granted_token;

static int run_fenced(void *mutex)
{
    int rc = rlock_mutex_lock(mutex);
    if (rc == 0)
        rc = rlock_mutex_gettoken(mutex, &granted_token);
    return rc != 0 ? rc : rlock_mutex_unlock(mutex);
}

/* rule: S3 */
START_TEST(token_of_a_granted_waiter_is_greater)
{
    struct task task;
    rlock_mutex_t mine = fenced_mutex(client, "n"), yours = fenced_mutex(other, "n");
    OK(rlock_mutex_lock(&yours));
    uint64_t token = token_of(&yours);
    task_start(&task, run_fenced, &mine);
    ck_assert(wait_key("rlock:{n}:queue", true, SOON_MS));
    OK(rlock_mutex_unlock(&yours));
    OK(task_join(&task));
    ck_assert_uint_gt(granted_token, token);
}
END_TEST

START_TEST(token_is_the_holds_whichever_handle_asks)
{
    rlock_mutex_t fenced = fenced_mutex(client, "n");
    OK(rlock_mutex_lock(&fenced));
    ck_assert_uint_eq(token_of(&m), token_of(&fenced));
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_lock(&m));
    uint64_t token;
    EXPECT(rlock_mutex_gettoken(&fenced, &token), ENOTSUP);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

#define CASE(name, ...)                                                                  \
    TEST_ADD(fixture_tcase(suite, name, set_up, fixture_close), __VA_ARGS__)

int main(void)
{
    Suite *suite = suite_create("mutex lease");
    TCase *loops = fixture_tcase(suite, "each", set_up, fixture_close);
    tcase_add_loop_test(loops, lease_out_of_range_is_EINVAL, 0, 6);
    tcase_add_loop_test(loops, lost_hold_of_each_type_is_ESTALE, 0,
                        sizeof(types) / sizeof(types[0]));
    CASE("leases", shortest_and_longest_lease_are_taken,
         lease_0_is_the_clients_or_the_handles, reentry_does_not_change_the_lease,
         remaining_is_99_percent_and_falls, fixed_lease_ends_by_itself,
         fixed_lease_is_at_risk_before_it_ends,
         fixed_lease_of_a_granted_waiter_is_the_one_it_asked_for,
         watchdog_renews_a_hold_for_several_leases, watchdog_stops_at_unlock);
    CASE("extend", extend_restarts_a_fixed_lease, extend_makes_a_renewed_lease_fixed,
         extend_by_0_makes_a_fixed_lease_renewed, extend_of_a_lost_hold_is_ESTALE,
         extend_finds_out_that_the_hold_is_gone,
         unconfirmed_extend_is_ENOTCONN_and_changes_nothing);
    CASE("S4", lost_hold_returns_ESTALE_until_it_is_drained,
         other_threads_may_acquire_at_once_after_a_loss,
         draining_does_not_touch_the_next_holder,
         lost_hold_delays_neither_destroy_nor_close, thread_may_end_with_a_lost_hold,
         unlock_after_the_end_is_ESTALE_before_anybody_noticed);
    CASE("S3", token_is_ENOTSUP_without_fencing,
         token_grows_with_each_hold_and_not_with_a_reentry,
         token_of_a_granted_waiter_is_greater, token_is_the_holds_whichever_handle_asks);
    return test_run_suite(suite);
}
