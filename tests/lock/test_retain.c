/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=rwlock_retain claims=K3,K10 */
/* A process retains a free mutex for a while (rules K1 to K10), with a server and the
 * client of another process. With as_rwlock.h, the same for a writer's lock (K16). */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOON_MS = 10000, RETAIN_MS = 60000, SHORT_MS = 300 };
/* A retained lock outlasts slow code. */
#define PRESENCE_MS test_ms(900)

static rlock_mutex_t m, theirs;

static void pair(void)
{
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
}

static bool is_kept(void)
{
    return test_redis_exists(redis, "n");
}

/* Makes a client that retains its mutexes for `retain_ms`, with a presence. */
static void keep_with(long retain_ms, long presence_ms)
{
    char parameters[100];
    snprintf(parameters, sizeof(parameters), "?retain=%ld&presence=%ld", retain_ms,
             presence_ms);
    reopen_with(parameters);
    m = mutex_of(client, "n");
}

static void set_up(void)
{
    fixture_open();
    theirs = mutex_of(fixture_other(), "n");
    keep_with(RETAIN_MS, 30000);
}

static void expect_kept(void)
{
    pair();
    ck_assert(is_kept());
    ck_assert_uint_eq(stats_of(client).holds_now, 0);
}

/* rule: K7 */
START_TEST(taking_it_again_needs_no_server)
{
    expect_kept();
    rlock_stats_t before = stats_of(client);
    for (int i = 0; i < 100; i++) {
        pair();
        OK(rlock_mutex_trylock(&m));
        OK(rlock_mutex_lock(&m)); /* re-entry */
        ck_assert_int_eq(count_of(&m), 2);
        OK(rlock_mutex_unlock(&m));
        OK(rlock_mutex_unlock(&m));
    }
    rlock_stats_t after = stats_of(client);
    ck_assert_uint_eq(after.round_trips - after.renewals,
                      before.round_trips - before.renewals);
    ck_assert_uint_eq(after.acquisitions - before.acquisitions, 200);
    ck_assert_uint_eq(after.local_handovers - before.local_handovers, 200);
    ck_assert_uint_eq(after.reentries - before.reentries, 100);
    ck_assert(is_kept());
}
END_TEST

/* rule: K3 */
START_TEST(waiter_gets_a_retained_lock_at_once)
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(SOON_MS / 2));
    for (int i = 0; i < 10; i++) {
        expect_kept();
        /* before the client asks by itself */
        OK(rlock_mutex_clocklock(&theirs, CLOCK_MONOTONIC, &at));
        OK(rlock_mutex_unlock(&theirs));
    }
    ck_assert_uint_ge(stats_of(client).messages, 10);
}
END_TEST

static bool gets_it(void *mutex)
{
    return rlock_mutex_trylock(mutex) == 0;
}

/* rule: K3 */
START_TEST(repeated_trylock_recalls_a_retained_lock)
{
    expect_kept();
    EXPECT(rlock_mutex_trylock(&theirs), EBUSY);
    ck_assert(test_wait_until(gets_it, &theirs, SOON_MS / 2));
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

/* If the recall comes while a thread is inside, the unlock releases the lock instead of
 * retaining it. */
/* rule: K6 */
START_TEST(recalled_lock_is_released_at_the_unlock)
{
    struct task task;
    expect_kept();
    OK(rlock_mutex_lock(&m));
    task_start(&task, run_pair, &theirs);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    test_pause_ms(20);
    OK(rlock_mutex_unlock(&m));
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
    ck_assert(!is_kept());
}
END_TEST

/* While no thread is inside, the lock's TTL is that of a grant (K5), and the retention
 * ends after a time (K9). */
/* rule: K9 */
START_TEST(lock_is_retained_for_a_limited_time)
{
    keep_with(test_ms(SHORT_MS), PRESENCE_MS);
    expect_kept();
    ck_assert_int_le(test_redis_int(redis, "PTTL", "n"), PRESENCE_MS);
    ck_assert(wait_key("n", false, SOON_MS));
    ck_assert_uint_eq(stats_of(client).losses, 0);
    expect_kept(); /* and it is retained again */
}
END_TEST

static bool is_asked(void *before)
{
    return stats_of(client).renewals >= *(uint64_t *)before + 4;
}

/* rule: K5 */
START_TEST(retained_lock_lasts_by_a_refresh_every_third_of_a_presence)
{
    keep_with(RETAIN_MS, PRESENCE_MS);
    expect_kept();
    uint64_t before = stats_of(client).renewals;
    ck_assert(test_wait_until(is_asked, &before, SOON_MS));
    ck_assert(is_kept());
    rlock_stats_t stats = stats_of(client);
    pair();
    ck_assert_uint_eq(stats_of(client).acquisitions, stats.acquisitions + 1);
    ck_assert_uint_eq(stats_of(client).local_handovers, stats.local_handovers + 1);
}
END_TEST

/* rule: K2, K5 */
START_TEST(thread_inside_a_retaken_lock_has_the_whole_lease)
{
    long ms;
    keep_with(RETAIN_MS, PRESENCE_MS);
    expect_kept();
    OK(rlock_mutex_lock(&m));
    for (int i = 0; i < 1000; i++) {
        OK(rlock_mutex_getremaining(&m, &ms));
        if (ms > 20000)
            break;
        test_pause_ms(10);
    }
    ck_assert_int_gt(ms, 20000);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* A waiter that sends no request is seen, too (K10). */
/* rule: K10 */
START_TEST(redisson_waiter_ends_the_retention)
{
    struct test_redis *waiter = test_redis_connect(server.path);
    keep_with(RETAIN_MS, PRESENCE_MS);
    expect_kept();
    test_redis_send(waiter, "SUBSCRIBE", "redisson_lock__channel:{n}");
    ck_assert(test_redis_recv(waiter, SOON_MS));
    ck_assert(test_redis_recv(waiter, SOON_MS)); /* the lock is free */
    test_redis_close(waiter);
}
END_TEST

/* rule: K8 */
START_TEST(deleted_retained_lock_is_acquired_again)
{
    keep_with(RETAIN_MS, PRESENCE_MS);
    expect_kept();
    test_redis_do(redis, "DEL", "n");
    for (int i = 0; i < 1000 && stats_of(client).losses == 0; i++)
        test_pause_ms(10);
    ck_assert_uint_eq(stats_of(client).losses, 1);
    ck_assert(!event_seen(RLOCK_EVENT_LOST)); /* no thread held it */
    expect_kept();
}
END_TEST

/* ---- K9: destroy, close, exit */

/* rule: K9 */
START_TEST(destroy_of_a_retained_lock_succeeds)
{
    expect_kept();
    OK(rlock_mutex_destroy(&m));
    ck_assert(is_kept());
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    EXPECT(rlock_mutex_destroy(&m), EBUSY);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* rule: K9 */
START_TEST(close_releases_retained_locks)
{
    expect_kept();
    close_client(client);
    client = NULL;
    ck_assert(!is_kept());
    keep_with(RETAIN_MS, 30000);
}
END_TEST

/* ---- K1: what is not retained */

enum { LEASED, OFF, NOT_KEPT };

/* rule: K1 */
START_TEST(hold_that_may_not_be_retained_is_given_back)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t mutex;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, client));
    if (_i == OFF)
        OK(rlock_mutexattr_setretain(&attr, 0));
    OK(rlock_mutex_init(&mutex, &attr, "n"));
    OK(rlock_mutexattr_destroy(&attr));
    OK(_i == LEASED ? rlock_mutex_lock_lease(&mutex, 5000) : rlock_mutex_lock(&mutex));
    OK(rlock_mutex_unlock(&mutex));
    ck_assert(!is_kept());
}
END_TEST

#ifndef AS_RWLOCK
/* rule: K1 */
START_TEST(fair_lock_is_not_retained)
{
    rlock_mutexattr_t attr;
    rlock_fair_t fair;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, client));
    OK(rlock_mutexattr_setretain(&attr, RETAIN_MS));
    OK(rlock_fair_init(&fair, &attr, "n"));
    OK(rlock_mutexattr_destroy(&attr));
    OK(rlock_fair_lock(&fair));
    OK(rlock_fair_unlock(&fair));
    ck_assert(!is_kept());
}
END_TEST
#endif

/* A handle with other needs ends the retention, and gets the lock. */
/* rule: K7 */
START_TEST(thread_with_other_needs_asks_the_server)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t other_lease;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, client));
    OK(rlock_mutexattr_setlease(&attr, 5000));
    OK(rlock_mutex_init(&other_lease, &attr, "n"));
    OK(rlock_mutexattr_destroy(&attr));
    for (int i = 0; i < 3; i++) {
        expect_kept();
        if (_i == 0)
            OK(rlock_mutex_lock(&other_lease));
        else if (_i == 1)
            OK(rlock_mutex_trylock(&other_lease));
        else
            OK(rlock_mutex_lock_lease(&m, 5000));
        OK(rlock_mutex_unlock(_i == 2 ? &m : &other_lease));
    }
}
END_TEST

/* ---- threads */

static int run_pairs(void *mutex)
{
    for (int i = 0; i < 2000; i++) {
        int rc = rlock_mutex_lock(mutex);
        if (rc == 0)
            rc = rlock_mutex_unlock(mutex);
        if (rc != 0)
            return rc;
    }
    return 0;
}

START_TEST(threads_take_it_in_turn)
{
    struct task tasks[4];
    rlock_stats_t before = stats_of(client);
    for (int i = 0; i < 4; i++)
        task_start(&tasks[i], run_pairs, &m);
    for (int i = 0; i < 20; i++) {
        OK(rlock_mutex_lock(&theirs));
        OK(rlock_mutex_unlock(&theirs));
    }
    for (int i = 0; i < 4; i++)
        OK(task_join(&tasks[i]));
    ck_assert_uint_eq(stats_of(client).acquisitions, before.acquisitions + 8000);
    ck_assert_uint_eq(stats_of(client).releases, before.releases + 8000);
    expect_kept();
}
END_TEST

START_TEST(lock_stays_retained_when_its_thread_ends)
{
    OK(in_thread(run_pair, &m));
    ck_assert(is_kept());
    rlock_stats_t before = stats_of(client);
    pair();
    ck_assert_uint_eq(stats_of(client).local_handovers, before.local_handovers + 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("retain");
    TCase *tc = tcase_create("retain");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, taking_it_again_needs_no_server);
    tcase_add_test(tc, waiter_gets_a_retained_lock_at_once);
    tcase_add_test(tc, repeated_trylock_recalls_a_retained_lock);
    tcase_add_test(tc, recalled_lock_is_released_at_the_unlock);
    tcase_add_test(tc, lock_is_retained_for_a_limited_time);
    tcase_add_test(tc, retained_lock_lasts_by_a_refresh_every_third_of_a_presence);
    tcase_add_test(tc, thread_inside_a_retaken_lock_has_the_whole_lease);
    tcase_add_test(tc, redisson_waiter_ends_the_retention);
    tcase_add_test(tc, deleted_retained_lock_is_acquired_again);
    tcase_add_test(tc, destroy_of_a_retained_lock_succeeds);
    tcase_add_test(tc, close_releases_retained_locks);
    tcase_add_loop_test(tc, hold_that_may_not_be_retained_is_given_back, 0, NOT_KEPT);
#ifndef AS_RWLOCK
    tcase_add_test(tc, fair_lock_is_not_retained);
#endif
    tcase_add_loop_test(tc, thread_with_other_needs_asks_the_server, 0, 3);
    tcase_add_test(tc, threads_take_it_in_turn);
    tcase_add_test(tc, lock_stays_retained_when_its_thread_ends);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
