/* SPDX-License-Identifier: Apache-2.0 */
/* program: with=shims/alloc_shim.c */
/* Memory that runs out for all threads, the library's included: renewals, losses, grants.
 * (Calls: test_memory.c.) */
#include "fixture.h"

#include "alloc.h"

#include <stdio.h>

enum { SOON_MS = 10000 };

static rlock_mutex_t m;
static rlock_rwlock_t w;

static bool can_fail(const char *test)
{
    if (test_alloc_available())
        return true;
    printf("skipped: %s: another allocator is in its place\n", test);
    return false;
}

static void set_up(void)
{
    fixture_open();
    close_client(client);
    client = NULL;
}

static void open_with_lease(long lease_ms)
{
    char parameters[96];
    snprintf(parameters, sizeof(parameters), "?lease=%ld&presence=%ld", test_ms(lease_ms),
             test_ms(1000));
    client = open_with(parameters);
    m = mutex_of(client, "n");
    w = rwlock_of(client, "w");
}

static bool is_renewed(void *arg)
{
    rlock_stats_t stats;
    return rlock_client_getstats(client, &stats) == 0 &&
           stats.renewals >= *(uint64_t *)arg;
}

static bool have_failed(void *unused)
{
    (void)unused;
    return test_alloc_failed() > 0;
}

START_TEST(shortage_for_half_a_lease_costs_no_hold)
{
    if (!can_fail("shortage_for_half_a_lease_costs_no_hold"))
        return;
    const long lease = test_ms(1500);
    open_with_lease(1500);
    OK(rlock_mutex_lock(&m));
    OK(rlock_rwlock_rdlock(&w));
    test_alloc_this_thread(false);
    for (int i = 0; i < 3; i++) {
        uint64_t more = stats_of(client).renewals + 2;
        ck_assert(test_wait_until(is_renewed, &more, SOON_MS));
        test_redis_kill_clients(redis); /* connecting needs memory */
        test_alloc_fail_from(1);
        test_pause_ms(lease / 2);
        long failed = test_alloc_failed();
        test_alloc_fail_at(0);
        ck_assert_int_gt(failed, 0);
    }
    uint64_t more = stats_of(client).renewals + 2;
    ck_assert(test_wait_until(is_renewed, &more, SOON_MS));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    OK(rlock_mutex_unlock(&m));
    OK(rlock_rwlock_unlock(&w));
}
END_TEST

START_TEST(shortage_beyond_the_lease_is_LOST_by_D)
{
    if (!can_fail("shortage_beyond_the_lease_is_LOST_by_D"))
        return;
    open_with_lease(600);
    OK(rlock_mutex_lock(&m));
    test_alloc_this_thread(false);
    test_redis_kill_clients(redis);
    int64_t begin = test_now_ms();
    test_alloc_fail_from(1);
    while (test_now_ms() - begin < test_ms(700))
        test_pause_ms(1);
    test_alloc_fail_at(0);
    const struct told *lost = event_of(RLOCK_EVENT_LOST, 300);
    ck_assert_ptr_nonnull(lost);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* One failure somewhere in what the threads do next: on open connections, or when they
 * connect again. */
START_TEST(no_single_failure_in_a_thread_of_the_library_costs_a_hold)
{
    if (!can_fail("no_single_failure_in_a_thread_of_the_library_costs_a_hold"))
        return;
    open_with_lease(1200);
    OK(rlock_mutex_lock(&m));
    OK(rlock_rwlock_rdlock(&w));
    /* counts the allocations of a connect and two renewals */
    uint64_t more = stats_of(client).renewals + 2;
    test_redis_kill_clients(redis);
    test_alloc_this_thread(false);
    test_alloc_fail_at(0);
    ck_assert(test_wait_until(is_renewed, &more, SOON_MS));
    long all = test_alloc_count();
    ck_assert_int_gt(all, 10);
    for (long n = 1; n <= all; n += test_count(1, 5)) {
        more = stats_of(client).renewals + 1;
        test_redis_kill_clients(redis);
        test_alloc_this_thread(false);
        test_alloc_fail_at(n);
        bool failed = test_wait_until(have_failed, NULL, SOON_MS);
        test_alloc_fail_at(0);
        ck_assert(failed);
        ck_assert(test_wait_until(is_renewed, &more, SOON_MS));
    }
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    OK(rlock_mutex_unlock(&m));
    OK(rlock_rwlock_unlock(&w));
}
END_TEST

static int run_lock_then_unlock(void *unused)
{
    (void)unused;
    rlock_mutex_t mutex = m;
    return run_pair(&mutex);
}

START_TEST(no_single_failure_costs_a_waiter_its_turn)
{
    if (!can_fail("no_single_failure_costs_a_waiter_its_turn"))
        return;
    open_with_lease(20000);
    for (long n = 1; n <= test_count(60, 20); n++) {
        struct task waiter;
        OK(rlock_mutex_lock(&m));
        task_start(&waiter, run_lock_then_unlock, NULL);
        ck_assert(wait_waiters(client, 1));
        test_alloc_this_thread(false);
        test_alloc_fail_at(n);
        int rc = rlock_mutex_unlock(&m);
        bool ended = task_ends(&waiter, 5000);
        test_alloc_fail_at(0);
        OK(rc);
        ck_assert(ended);
        rc = task_join(&waiter);
        ck_assert(rc == 0 || rc == ENOMEM);
    }
}
END_TEST

static bool has_been_queued(void *unused)
{
    (void)unused;
    return stats_of(client).waits == 1; /* its answer has come */
}

static bool ends_soon(void *left_ms)
{
    return test_redis_int(redis, "PTTL", "n") <= *(const long *)left_ms;
}

/* The waiter's only look when the lease ends fails; its next one is 10 s away. */
START_TEST(shortage_when_a_lease_ends_costs_its_waiter_no_more_than_itself)
{
    long left = test_ms(200);
    char lease[16], parameters[96];
    struct task waiter;
    if (!can_fail("shortage_when_a_lease_ends_costs_its_waiter_no_more_than_itself"))
        return;
    snprintf(parameters, sizeof(parameters), "?lease=%ld&presence=30000", test_ms(900));
    client = open_with(parameters);
    m = mutex_of(client, "n");
    w = rwlock_of(client, "w");
    OK(rlock_rwlock_rdlock(&w)); /* so that the watchdog is connected */
    uint64_t more = 2;
    ck_assert(test_wait_until(is_renewed, &more, SOON_MS));
    snprintf(lease, sizeof(lease), "%ld", test_ms(1000));
    test_redis_do(redis, "HSET", "n", "c0ffee00-0000-4000-8000-000000000000:1:1", "1",
                  "mode", "rlock:mutex");
    test_redis_do(redis, "PEXPIRE", "n", lease);
    task_start(&waiter, run_lock_then_unlock, NULL);
    ck_assert(test_wait_until(has_been_queued, NULL, SOON_MS));
    ck_assert(test_wait_until(ends_soon, &left, SOON_MS));
    test_alloc_this_thread(false);
    test_alloc_fail_from(1);
    test_pause_ms(left + 100);
    long failed = test_alloc_failed();
    test_alloc_fail_at(0);
    ck_assert_int_gt(failed, 0);
    ck_assert(task_ends(&waiter, 3000));
    OK(task_join(&waiter));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    OK(rlock_rwlock_unlock(&w));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("memory_threads");
    TCase *tc = tcase_create("threads");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, shortage_for_half_a_lease_costs_no_hold);
    tcase_add_test(tc, shortage_beyond_the_lease_is_LOST_by_D);
    tcase_add_test(tc, no_single_failure_in_a_thread_of_the_library_costs_a_hold);
    tcase_add_test(tc, no_single_failure_costs_a_waiter_its_turn);
    tcase_add_test(tc, shortage_when_a_lease_ends_costs_its_waiter_no_more_than_itself);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(suite());
}
