/* SPDX-License-Identifier: Apache-2.0 */
/* A process retains a robust mutex while no thread is inside (rule K11). The death of
 * that process is no owner's death; the death of a thread inside is one, however the
 * thread came in. The tests delete the key in place of a death of the process. */
#include "fixture.h"

#include <stdio.h>

enum { SOON_MS = 10000, RETAIN_MS = 60000 };
/* A lock that is retained, or taken to be retained, outlasts slow code. */
#define PRESENCE_MS test_ms(600)
#define DIRTY "rlock:{n}:dirty"

static rlock_mutex_t m, theirs;

static rlock_mutex_t robust_of(rlock_client_t *c)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t mutex;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, c));
    OK(rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST));
    OK(rlock_mutex_init(&mutex, &attr, "n"));
    OK(rlock_mutexattr_destroy(&attr));
    return mutex;
}

static void set_up(void)
{
    char parameters[100];

    fixture_open();
    theirs = robust_of(fixture_other());
    snprintf(parameters, sizeof(parameters), "?retain=%d&presence=%ld", RETAIN_MS,
             PRESENCE_MS);
    reopen_with(parameters);
    m = robust_of(client);
}

static bool is_clean(void *unused)
{
    (void)unused;
    return !test_redis_exists(redis, DIRTY);
}

/* Retains the lock, and waits until the server knows that no thread is inside. */
static void rest(void)
{
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    ck_assert(test_redis_exists(redis, "n"));
    ck_assert(test_wait_until(is_clean, NULL, SOON_MS));
    ck_assert(test_redis_exists(redis, "n"));
}

/* rule: K11 */
START_TEST(death_with_a_resting_robust_lock_leaves_no_dead_owner)
{
    for (int i = 0; i < 3; i++)
        rest(); /* retained again each time */
    test_redis_do(redis, "DEL", "n");
    OK(rlock_mutex_lock(&theirs));
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

/* rule: K11 */
START_TEST(death_inside_a_retaken_robust_lock_leaves_a_dead_owner)
{
    for (int i = 0; i < 3; i++) {
        rest();
        OK(_i == 0 ? rlock_mutex_lock(&m) : rlock_mutex_trylock(&m));
        ck_assert(test_redis_exists(redis, DIRTY)); /* set before the thread was inside */
        if (i < 2)
            OK(rlock_mutex_unlock(&m));
    }
    test_redis_do(redis, "DEL", "n");
    EXPECT(rlock_mutex_lock(&theirs), EOWNERDEAD);
    OK(rlock_mutex_consistent(&theirs));
    OK(rlock_mutex_unlock(&theirs));
    int rc = rlock_mutex_unlock(&m); /* retained, unless the loss is known */
    ck_assert(rc == 0 || rc == ESTALE);
}
END_TEST

/* rule: K11 */
START_TEST(resting_robust_lock_is_taken_again_by_one_request)
{
    rest();
    rlock_stats_t before = stats_of(client);
    OK(rlock_mutex_lock(&m));
    rlock_stats_t after = stats_of(client);
    ck_assert_uint_eq(after.local_handovers, before.local_handovers + 1);
    ck_assert_uint_eq(after.losses, 0);
    OK(rlock_mutex_unlock(&m));
    ck_assert(test_redis_exists(redis, "n"));
}
END_TEST

/* The retained lock is gone. The caller, who never had it, gets no report of a loss. */
/* rule: K11 */
START_TEST(robust_lock_lost_while_retained_is_acquired_again)
{
    rest();
    test_redis_do(redis, "DEL", "n");
    OK(_i == 0 ? rlock_mutex_lock(&m) : rlock_mutex_trylock(&m));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    ck_assert(test_redis_exists(redis, DIRTY));
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_lock(&theirs));
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

/* The server cannot learn that a thread is inside, so that no thread may enter. */
/* rule: K11 */
START_TEST(no_thread_enters_a_resting_robust_lock_without_a_request)
{
    struct timespec at;

    rest();
    test_redis_do(redis, "CLIENT", "PAUSE", "500");
    at = test_in_ms(CLOCK_MONOTONIC, 50);
    int rc = rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, &at);
    if (rc == 0) /* on a busy machine */
        ck_assert(test_redis_exists(redis, DIRTY));
    else
        ck_assert_msg(rc == ENOTCONN, "%s", rlock_strerror(rc));
    if (rc != 0)
        OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    OK(rlock_mutex_lock(&theirs));
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

static int run_pairs(void *mutex)
{
    for (int i = 0; i < 60; i++) {
        int rc = rlock_mutex_lock(mutex);
        if (rc == 0)
            rc = rlock_mutex_unlock(mutex);
        if (rc != 0)
            return rc;
        test_pause_ms(i % 7);
    }
    return 0;
}

/* rule: K11 */
START_TEST(threads_and_other_processes_take_a_robust_lock_in_turn)
{
    struct task tasks[3];
    for (int i = 0; i < 3; i++)
        task_start(&tasks[i], run_pairs, &m);
    for (int i = 0; i < 30; i++) {
        OK(rlock_mutex_lock(&theirs));
        OK(rlock_mutex_unlock(&theirs));
        test_pause_ms(10);
    }
    for (int i = 0; i < 3; i++)
        OK(task_join(&tasks[i]));
    rest();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("retain: robust");
    TCase *tc = tcase_create("k11");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, death_with_a_resting_robust_lock_leaves_no_dead_owner);
    tcase_add_loop_test(tc, death_inside_a_retaken_robust_lock_leaves_a_dead_owner, 0, 2);
    tcase_add_test(tc, resting_robust_lock_is_taken_again_by_one_request);
    tcase_add_loop_test(tc, robust_lock_lost_while_retained_is_acquired_again, 0, 2);
    tcase_add_test(tc, no_thread_enters_a_resting_robust_lock_without_a_request);
    tcase_add_test(tc, threads_and_other_processes_take_a_robust_lock_in_turn);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
