/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_robust */
/*
 * Robust locks: the next owner after a death gets EOWNERDEAD once, with the lock held.
 * Lost messages are in test_robust_faults.c, locks that are not made consistent are in
 * test_robust_spoilt.c. robustscene.h says what `self`, `m` and the workers are.
 */
#include "robustscene.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    LEASE_MS = 400,
    /* polls come every third of it; a test that may not wait for a poll takes less */
    LONG_PRESENCE_MS = 30000,
    FIXED_MS = 20000,
    MARK_S = 604800
};

static rlock_state_t state(const rlock_mutex_t *handle)
{
    rlock_state_t found = RLOCK_LOST;
    ck_assert_int_eq(rlock_mutex_getstate(handle, &found), 0);
    return found;
}

/* ---- a death */

START_TEST(killed_holder_is_EOWNERDEAD_to_a_waiter)
{
    robust_worker(&y, SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    scene_says(&y, "ok", "on t lock m");
    scene_worker_waits(&x, "N", 1);
    worker_kill(&y);
    scene_worker_ends(&x, "t", "EOWNERDEAD");
    scene_says(&x, "ok SAFE", "on t state m");
    scene_says(&x, "ok 1", "on t count m");
    scene_says(&x, "ok", "on t consistent m");
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

START_TEST(killed_holder_is_EOWNERDEAD_to_a_later_locker)
{
    char id[SCENE_ID_MAX];
    robust_worker(&y, SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    scene_says(&y, "ok", "on t lock m");
    worker_kill(&y);
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_trylock(&m), EOWNERDEAD);
    ck_assert_int_eq(state(&m), RLOCK_SAFE);
    ck_assert(scene_holder("N", id));
    ck_assert_int_eq(strncmp(scene_mark("N"), id, strlen(id)), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
}
END_TEST

START_TEST(stopped_holder_is_EOWNERDEAD_and_has_lost_it)
{
    robust_worker(&y, SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    scene_says(&y, "ok", "on t lock m");
    worker_stop(&y);
    ck_assert_int_eq(rlock_mutex_lock(&m), EOWNERDEAD);
    worker_cont(&y);
    scene_worker_lost(&y, "N");
    ck_assert_int_eq(rlock_mutex_consistent(&m), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert_str_eq(scene_mark("N"), "");
}
END_TEST

START_TEST(fixed_lease_that_ran_out_is_EOWNERDEAD)
{
    ck_assert_int_eq(rlock_mutex_lock_lease(&m, test_ms(100)), 0);
    scene_says(&x, "EOWNERDEAD", "on t lock m");
    ck_assert_int_eq(rlock_mutex_unlock(&m), ESTALE);
    scene_says(&x, "ok", "on t consistent m");
    scene_says(&x, "ok", "on t unlock m");
    m_locks_and_unlocks();
}
END_TEST

START_TEST(thread_that_lost_the_lock_itself_gets_EOWNERDEAD)
{
    ck_assert_int_eq(rlock_mutex_lock_lease(&m, test_ms(100)), 0);
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&m), ESTALE);
    ck_assert_int_eq(rlock_mutex_lock(&m), EOWNERDEAD);
}
END_TEST

START_TEST(thread_that_ended_is_EOWNERDEAD_at_once_and_an_event)
{
    scene_says(&x, "ok", "on dead lock m");
    scene_says(&x, "ok", "on dead lock m"); /* two levels */
    robust_worker(&y, SCENE_TIMES(.presence = LONG_PRESENCE_MS));
    scene_worker_waits(&y, "N", 1);
    scene_says(&x, "ok", "end dead");
    ck_assert(worker_news(&x, "event OWNER_DIED N", SCENE_SOON_MS));
    scene_worker_ends(&y, "t", "EOWNERDEAD"); /* the lease is 30 s */
    scene_says(&y, "ok", "on t consistent m");
    scene_says(&y, "ok", "on t unlock m");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
}
END_TEST

START_TEST(thread_that_ended_is_EOWNERDEAD_to_another_of_its_process)
{
    scene_says(&x, "ok", "on dead lock m");
    scene_says(&x, "ok", "async t lock m");
    scene_says(&x, "ok", "end dead");
    scene_worker_ends(&x, "t", "EOWNERDEAD");
    scene_says(&x, "ok", "on t consistent m");
    scene_says(&x, "ok", "on t unlock m");
    ck_assert_str_eq(scene_mark("N"), "");
}
END_TEST

START_TEST(process_that_ended_is_EOWNERDEAD)
{
    robust_worker(&y, NULL);
    scene_says(&y, "ok", "lock m");
    worker_send(&y, "quit"); /* the main thread: its hold is given up at exit */
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_trylock(&m), EOWNERDEAD);
}
END_TEST

/* ---- every function that locks reports it */

static int in_time(bool past, clockid_t clock, long lease)
{
    struct timespec at = test_in_ms(clock, past ? -1 : test_ms(SCENE_SOON_MS));
    if (lease)
        return rlock_mutex_clocklock_lease(&m, clock, &at, lease);
    return rlock_mutex_clocklock(&m, clock, &at);
}

static int timed(long lease)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(SCENE_SOON_MS));
    if (lease)
        return rlock_mutex_timedlock_lease(&m, &at, lease);
    return rlock_mutex_timedlock(&m, &at);
}

enum {
    LOCK,
    TRYLOCK,
    TIMEDLOCK,
    CLOCKLOCK,
    CLOCKLOCK_PAST,
    LOCK_LEASE,
    TRYLOCK_LEASE,
    TIMEDLOCK_LEASE,
    CLOCKLOCK_LEASE,
    FORMS
};

static int by_form(int form)
{
    switch (form) {
    case TRYLOCK:
        return rlock_mutex_trylock(&m);
    case TIMEDLOCK:
        return timed(0);
    case CLOCKLOCK:
        return in_time(false, CLOCK_MONOTONIC, 0);
    case CLOCKLOCK_PAST: /* one attempt is made all the same */
        return in_time(true, CLOCK_REALTIME, 0);
    case LOCK_LEASE:
        return rlock_mutex_lock_lease(&m, FIXED_MS);
    case TRYLOCK_LEASE:
        return rlock_mutex_trylock_lease(&m, FIXED_MS);
    case TIMEDLOCK_LEASE:
        return timed(FIXED_MS);
    case CLOCKLOCK_LEASE:
        return in_time(false, CLOCK_MONOTONIC, FIXED_MS);
    default:
        return rlock_mutex_lock(&m);
    }
}

START_TEST(each_function_gives_EOWNERDEAD_with_the_lock_held)
{
    x_dies_inside();
    ck_assert_int_eq(by_form(_i), EOWNERDEAD);
    ck_assert_int_eq(state(&m), RLOCK_SAFE);
    scene_says(&x, "EBUSY", "on t trylock m");
    ck_assert_int_eq(rlock_mutex_consistent(&m), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert_int_eq(by_form(_i), 0);
}
END_TEST

START_TEST(each_function_gives_ENOTRECOVERABLE_without_it)
{
    x_spoils();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(by_form(_i), ENOTRECOVERABLE);
        ck_assert_int_eq(state(&m), RLOCK_UNHELD);
        ck_assert_int_eq(rlock_mutex_unlock(&m), EPERM);
    }
    scene_nothing_is_left("N");
}
END_TEST

/* ---- after the report */

START_TEST(consistent_lock_is_as_any_other)
{
    x_dies_inside();
    ck_assert_int_eq(rlock_mutex_lock(&m), EOWNERDEAD);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0); /* reported once; another level */
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert_int_eq(rlock_mutex_consistent(&m), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert_str_eq(scene_mark("N"), "");
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "on t unlock m");
    m_locks_and_unlocks();
}
END_TEST

/* Waits until one of the waiting threads has the lock; its answer must be `code`. */
static void next_comes_in(struct worker *of[], const char *const thread[], int count,
                          const char *code)
{
    enum { LOOK_MS = 5 };
    char prefix[32];
    int64_t until = test_now_ms() + test_ms(SCENE_SOON_MS);
    while (test_now_ms() < until) {
        for (int i = 0; i < count; i++) {
            snprintf(prefix, sizeof(prefix), "done %s ", thread[i]);
            const char *news = of[i] ? worker_news(of[i], prefix, LOOK_MS) : NULL;
            if (!news)
                continue;
            ck_assert_str_eq(news + strlen(prefix), code);
            if (strcmp(code, "ok") != 0)
                scene_says(of[i], "ok", "on %s consistent m", thread[i]);
            scene_says(of[i], "ok", "on %s unlock m", thread[i]);
            of[i] = NULL;
            return;
        }
    }
    ck_abort_msg("nobody came in");
}

START_TEST(one_of_several_waiters_gets_EOWNERDEAD_once)
{
    struct worker *of[] = { &y, &y, &z };
    const char *const thread[] = { "a", "b", "a" };
    robust_worker(&y, NULL);
    robust_worker(&z, NULL);
    scene_says(&x, "ok", "on dead lock m");
    scene_says(&y, "ok", "async a lock m");
    scene_says(&y, "ok", "async b lock m");
    scene_says(&z, "ok", "async a lock m");
    ck_assert(scene_wait_queued("N", SCENE_IN_ORDER ? 3 : 2, SCENE_SOON_MS));
    scene_says(&x, "ok", "end dead");
    next_comes_in(of, thread, 3, "EOWNERDEAD");
    next_comes_in(of, thread, 3, "ok");
    next_comes_in(of, thread, 3, "ok");
    ck_assert_str_eq(scene_mark("N"), "");
}
END_TEST

static const char *const before_death[] = { "on t state m", "on t consistent m" };

START_TEST(holder_killed_with_EOWNERDEAD_is_EOWNERDEAD_to_the_next)
{
    x_dies_inside();
    robust_worker(&y, SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    scene_says(&y, "EOWNERDEAD", "on t lock m");
    scene_says(&y, "ok", "%s", before_death[_i]);
    worker_kill(&y);
    ck_assert_int_eq(rlock_mutex_lock(&m), EOWNERDEAD);
    ck_assert_int_eq(rlock_mutex_consistent(&m), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    m_locks_and_unlocks();
}
END_TEST

START_TEST(thread_that_ended_with_EOWNERDEAD_is_EOWNERDEAD_to_the_next)
{
    x_dies_inside();
    scene_says(&x, "EOWNERDEAD", "on dead lock m");
    scene_says(&x, "ok", "end dead");
    ck_assert_int_eq(rlock_mutex_lock(&m), EOWNERDEAD);
}
END_TEST

START_TEST(clean_unlock_leaves_no_mark_at_any_level)
{
    char key[SCENE_KEY_MAX];
    enum { LEVELS = 3 };
    for (int i = 0; i < LEVELS; i++)
        ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    for (int i = 0; i < LEVELS; i++) {
        ck_assert_str_ne(scene_mark("N"), "");
        ck_assert_int_gt(test_redis_int(scene_redis, "TTL", scene_key(key, "N", "dirty")),
                         MARK_S - test_ms(SCENE_SOON_MS) / 1000);
        ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    }
    ck_assert_str_eq(scene_mark("N"), "");
}
END_TEST

START_TEST(lock_that_is_not_robust_is_0_and_leaves_the_news_to_the_next)
{
    rlock_mutex_t plain;
    char mark[SCENE_ID_MAX + 8];
    scene_mutex(&plain, self, "N");
    x_dies_inside();
    snprintf(mark, sizeof(mark), "%s", scene_mark("N"));
    ck_assert_int_eq(rlock_mutex_lock(&plain), 0);
    ck_assert_int_eq(rlock_mutex_consistent(&plain), EINVAL);
    scene_worker_waits(&x, "N", 1);
    ck_assert_str_eq(scene_mark("N"), mark);
    ck_assert_int_eq(rlock_mutex_unlock(&plain), 0);
    scene_worker_ends(&x, "t", "EOWNERDEAD");
}
END_TEST

START_TEST(death_of_a_holder_that_is_not_robust_is_no_news)
{
    rlock_mutex_t plain;
    scene_mutex(&plain, self, "N");
    ck_assert_int_eq(rlock_mutex_lock_lease(&plain, test_ms(100)), 0);
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "on t unlock m");
    ck_assert_int_eq(rlock_mutex_unlock(&plain), ESTALE);
}
END_TEST

START_TEST(consistent_is_EINVAL_where_there_is_nothing_to_mend)
{
    ck_assert_int_eq(rlock_mutex_consistent(&m), EINVAL); /* not held */
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert_int_eq(rlock_mutex_consistent(&m), EINVAL); /* nobody died */
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    x_dies_inside();
    scene_says(&x, "EOWNERDEAD", "on t lock m");
    scene_says(&x, "EINVAL", "on other consistent m");    /* another thread's */
    ck_assert_int_eq(rlock_mutex_consistent(&m), EINVAL); /* another process' */
    scene_says(&x, "ok", "on t consistent m");
    scene_says(&x, "EINVAL", "on t consistent m"); /* twice */
    scene_says(&x, "ok", "on t unlock m");
    ck_assert_int_eq(rlock_mutex_consistent(NULL), EINVAL);
    ck_assert_int_eq(rlock_mutex_consistent_np(&m), EINVAL);
}
END_TEST

START_TEST(lost_hold_is_ESTALE_to_consistent_and_unlock)
{
    x_dies_inside();
    ck_assert_int_eq(rlock_mutex_lock_lease(&m, test_ms(100)), EOWNERDEAD);
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_consistent(&m), ESTALE);
    ck_assert_int_eq(rlock_mutex_unlock(&m), ESTALE);
    /* not unlocked, so not spoilt */
    scene_says(&x, "EOWNERDEAD", "on t lock m");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("robust");
    TCase *tc = scene_tcase(s, "death", open_scene, close_scene);
    tcase_add_test(tc, killed_holder_is_EOWNERDEAD_to_a_waiter);
    tcase_add_test(tc, killed_holder_is_EOWNERDEAD_to_a_later_locker);
    tcase_add_test(tc, stopped_holder_is_EOWNERDEAD_and_has_lost_it);
    tcase_add_test(tc, fixed_lease_that_ran_out_is_EOWNERDEAD);
    tcase_add_test(tc, thread_that_lost_the_lock_itself_gets_EOWNERDEAD);
    tcase_add_test(tc, thread_that_ended_is_EOWNERDEAD_at_once_and_an_event);
    tcase_add_test(tc, thread_that_ended_is_EOWNERDEAD_to_another_of_its_process);
    tcase_add_test(tc, process_that_ended_is_EOWNERDEAD);
    tc = scene_tcase(s, "functions", open_scene, close_scene);
    tcase_add_loop_test(tc, each_function_gives_EOWNERDEAD_with_the_lock_held, 0, FORMS);
    tcase_add_loop_test(tc, each_function_gives_ENOTRECOVERABLE_without_it, 0, FORMS);
    tc = scene_tcase(s, "news", open_scene, close_scene);
    tcase_add_test(tc, consistent_lock_is_as_any_other);
    tcase_add_test(tc, one_of_several_waiters_gets_EOWNERDEAD_once);
    tcase_add_loop_test(tc, holder_killed_with_EOWNERDEAD_is_EOWNERDEAD_to_the_next, 0,
                        2);
    tcase_add_test(tc, thread_that_ended_with_EOWNERDEAD_is_EOWNERDEAD_to_the_next);
    tcase_add_test(tc, clean_unlock_leaves_no_mark_at_any_level);
    tcase_add_test(tc, lock_that_is_not_robust_is_0_and_leaves_the_news_to_the_next);
    tcase_add_test(tc, death_of_a_holder_that_is_not_robust_is_no_news);
    tcase_add_test(tc, consistent_is_EINVAL_where_there_is_nothing_to_mend);
    tcase_add_test(tc, lost_hold_is_ESTALE_to_consistent_and_unlock);
    return s;
}

int main(void)
{
    return test_run_suite(suite());
}
