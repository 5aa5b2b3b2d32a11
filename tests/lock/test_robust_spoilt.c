/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_robust_spoilt */
/*
 * Robust locks that were unlocked without having been made consistent: every lock call
 * fails until they are forced. robustscene.h says what `self`, `m` and the workers are.
 */
#include "robustscene.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum {
    LONG_PRESENCE_MS = 30000, /* polls come every third of it */
    PROMPT_MS = 4000
};

/* ---- waiters */

START_TEST(waiters_of_other_processes_are_notified_by_message)
{
    x_dies_inside();
    scene_says(&x, "EOWNERDEAD", "on t lock m");
    robust_worker(&y, SCENE_TIMES(.presence = LONG_PRESENCE_MS));
    scene_says(&y, "ok", "init p N");
    scene_says(&y, "ok", "init f N fair=1");
    scene_says(&y, "ok", "init r N rwlock=1");
    scene_says(&y, "ok", "async robust lock m");
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    scene_says(&y, "ok", "async mutex lock p");
    scene_says(&y, "ok", "async fair lock f");
    scene_says(&y, "ok", "async writer lock r");
    scene_says(&y, "ok", "async reader rdlock r");
    ck_assert(scene_wait_count("N", "rqueue", 1, SCENE_SOON_MS));
    /* of one client's threads that want a mutex, only one asks at a time */
    ck_assert(scene_wait_queued("N", SCENE_IN_ORDER ? 4 : 3, SCENE_SOON_MS));
    int64_t begin = test_now_ms();
    scene_says(&x, "ok", "on t unlock m");
    const char *const threads[] = { "robust", "mutex", "fair", "writer", "reader" };
    for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
        scene_worker_ends(&y, threads[i], "ENOTRECOVERABLE");
    ck_assert_int_lt(test_now_ms() - begin, test_ms(PROMPT_MS));
    scene_nothing_is_left("N");
}
END_TEST

/* The message, and the poll that it causes, come before the answer to b's request. */
/* rule: L3 */
START_TEST(waiter_that_does_not_know_yet_that_it_waits_is_notified)
{
    x_dies_inside();
    scene_says(&x, "EOWNERDEAD", "on t lock m");
    scene_worker(&y, test_proxy_url(scene_proxy),
                 SCENE_TIMES(.presence = LONG_PRESENCE_MS), "N", "fair=1");
    scene_says(&y, "ok", "async a lock m");
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    int queued = SCENE_RULE(RLK_FAIR_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_HOLD,
                            .count = 1);
    scene_says(&y, "ok", "async b lock m");
    ck_assert(scene_wait_queued("N", 2, SCENE_SOON_MS));
    scene_says(&x, "ok", "on t unlock m");
    scene_worker_ends(&y, "a", "ENOTRECOVERABLE");
    int64_t begin = test_now_ms();
    test_proxy_release(scene_proxy, queued);
    scene_worker_ends(&y, "b", "ENOTRECOVERABLE");
    ck_assert_int_lt(test_now_ms() - begin, test_ms(PROMPT_MS));
    scene_nothing_is_left("N");
}
END_TEST

static bool two_wait(void *arg)
{
    const char *stats = worker_ask(arg, "stats", SCENE_SOON_MS);
    return stats && strstr(stats, " waiters_now=2 ");
}

START_TEST(waiters_of_the_same_process_are_notified_at_once)
{
    x_dies_inside();
    robust_worker(&y, SCENE_TIMES(.presence = LONG_PRESENCE_MS));
    scene_says(&y, "EOWNERDEAD", "on t lock m");
    scene_says(&y, "ok", "async a lock m");
    scene_says(&y, "ok", "async b lock m");
    ck_assert(test_wait_until(two_wait, &y, SCENE_SOON_MS));
    int64_t begin = test_now_ms();
    scene_says(&y, "ok", "on t unlock m");
    scene_worker_ends(&y, "a", "ENOTRECOVERABLE");
    scene_worker_ends(&y, "b", "ENOTRECOVERABLE");
    ck_assert_int_lt(test_now_ms() - begin, test_ms(PROMPT_MS));
    scene_nothing_is_left("N");
}
END_TEST

/* ---- later callers */

static const char *const others[] = { "lock p", "trylock p", "lock f",   "trylock f",
                                      "lock r", "trylock r", "rdlock r", "tryrdlock r" };

START_TEST(lock_has_no_holder_for_any_handle)
{
    x_spoils();
    scene_says(&x, "ok", "init p N");
    scene_says(&x, "ok", "init f N fair=1");
    scene_says(&x, "ok", "init r N rwlock=1");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        scene_says(&x, "ENOTRECOVERABLE", "on t %s", others[i]);
    scene_nothing_is_left("N");
}
END_TEST

START_TEST(init_and_destroy_neither_ask_the_server_nor_mend_it)
{
    x_spoils();
    test_server_pause(&scene_server);
    int64_t begin = test_now_ms();
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(rlock_mutex_destroy(&m), 0);
        scene_robust_mutex(&m, self, "N");
    }
    int64_t took = test_now_ms() - begin;
    test_server_resume(&scene_server);
    ck_assert_int_lt(took, test_ms(1000)); /* a command would take 3 s */
    ck_assert_int_eq(rlock_mutex_lock(&m), ENOTRECOVERABLE);
    robust_worker(&y, NULL); /* another process */
    scene_says(&y, "ENOTRECOVERABLE", "on t lock m");
}
END_TEST

static void *lock_and_end(void *handle)
{
    return (void *)(intptr_t)rlock_mutex_lock(handle);
}

START_TEST(handle_without_a_name_is_a_new_lock_when_initialised_again)
{
    rlock_mutex_t own;
    pthread_t thread;
    void *rc;
    scene_robust_mutex(&own, self, NULL);
    ck_assert_int_eq(pthread_create(&thread, NULL, lock_and_end, &own), 0);
    pthread_join(thread, &rc);
    ck_assert_ptr_null(rc);
    ck_assert_int_eq(rlock_mutex_lock(&own), EOWNERDEAD);
    ck_assert_int_eq(rlock_mutex_unlock(&own), 0);
    ck_assert_int_eq(rlock_mutex_lock(&own), ENOTRECOVERABLE);
    ck_assert_int_eq(rlock_mutex_destroy(&own), 0);
    scene_robust_mutex(&own, self, NULL);
    ck_assert_int_eq(rlock_mutex_lock(&own), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&own), 0);
}
END_TEST

START_TEST(force_mends_it_and_then_there_is_nothing_to_force)
{
    x_spoils();
    ck_assert_int_eq(rlock_force_unlock(self, "N"), 0);
    ck_assert_int_eq(rlock_force_unlock(self, "N"), ENOENT);
    m_locks_and_unlocks();
    scene_says(&x, "ok", "on t lock m");
}
END_TEST

START_TEST(force_takes_the_lock_from_the_notified_holder_only)
{
    x_dies_inside();
    scene_says(&x, "EOWNERDEAD", "on t lock m");
    ck_assert_int_eq(rlock_force_unlock(self, "N"), 0);
    scene_worker_lost(&x, "N");
    m_locks_and_unlocks();
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("robust_spoilt");
    TCase *tc = scene_tcase(s, "not_recoverable", open_scene, close_scene);
    tcase_add_test(tc, waiters_of_other_processes_are_notified_by_message);
    tcase_add_test(tc, waiter_that_does_not_know_yet_that_it_waits_is_notified);
    tcase_add_test(tc, waiters_of_the_same_process_are_notified_at_once);
    tcase_add_test(tc, lock_has_no_holder_for_any_handle);
    tcase_add_test(tc, init_and_destroy_neither_ask_the_server_nor_mend_it);
    tcase_add_test(tc, handle_without_a_name_is_a_new_lock_when_initialised_again);
    tcase_add_test(tc, force_mends_it_and_then_there_is_nothing_to_force);
    tcase_add_test(tc, force_takes_the_lock_from_the_notified_holder_only);
    return s;
}

int main(void)
{
    return test_run_suite(suite());
}
