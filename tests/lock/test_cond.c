/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=V2,V4,V5,V9,V11,V14 */
/* Conditions between processes: who wakes and who does not, with which code, and what the
 * mutex is like afterwards. */
#include "condscene.h"

#include <stdlib.h>

enum { STAYS_MS = 50, SHORT_MS = 50, THREADS = 5 };

static void wake_one(void)
{
    ck_assert_int_eq(rlock_cond_signal(&c), 0);
}

static void wake_all(void)
{
    ck_assert_int_eq(rlock_cond_broadcast(&c), 0);
}

static bool stays_asleep(struct worker *w, const char *thread)
{
    struct sleeper s = { w, thread };
    return test_stays(sleeps, &s, STAYS_MS);
}

/* ---- signals */

START_TEST(signal_wakes_the_thread_that_has_waited_longest)
{
    start_x(NULL);
    start_y(NULL);
    wait_in(&x, "t", "wait c m");
    wait_in(&y, "t", "wait c m");
    wake_one();
    wakes(&x, "t", "ok");
    ck_assert(stays_asleep(&y, "t"));
    wake_one();
    wakes(&y, "t", "ok");
}
END_TEST

/* rule: V11 */
START_TEST(threads_of_a_process_wake_in_the_order_of_their_waits)
{
    start_x(NULL);
    wait_in(&x, "a", "wait c m");
    wait_in(&x, "b", "wait c m");
    scene_says(&x, "ok", "signal c"); /* by the reply */
    wakes(&x, "a", "ok");
    ck_assert(stays_asleep(&x, "b"));
    wake_one(); /* by a message */
    wakes(&x, "b", "ok");
}
END_TEST

START_TEST(woken_thread_takes_the_mutex_when_the_signaller_unlocks)
{
    start_x(NULL);
    wait_in(&x, "t", "wait c m");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    wake_one();
    wait_for_signalled(1);
    ck_assert(stays_asleep(&x, "t"));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    wakes(&x, "t", "ok");
}
END_TEST

/* A thread of either worker has woken with the mutex; news: "done <tag> ok". */
struct woken {
    struct worker *worker;
    char tag[16];
};

static bool has_woken(void *arg)
{
    struct woken *woken = arg;
    struct worker *const workers[] = { &x, &y };
    for (int i = 0; i < 2; i++) {
        const char *news = worker_news(workers[i], "done t", 0);
        char code[16] = "";
        if (!news)
            continue;
        ck_assert_int_eq(sscanf(news, "done %15s %15s", woken->tag, code), 2);
        ck_assert_str_eq(code, "ok");
        woken->worker = workers[i];
        return true;
    }
    return false;
}

/* The mutex goes through all threads, in whatever order. */
static void all_wake(int count)
{
    for (int i = 0; i < count; i++) {
        struct woken woken;
        ck_assert(test_wait_until(has_woken, &woken, SCENE_SOON_MS));
        scene_says(woken.worker, "ok", "on %s unlock m", woken.tag);
    }
}

START_TEST(broadcast_wakes_all_threads_of_all_processes)
{
    char tag[24];
    start_x(NULL);
    start_y(NULL);
    for (int i = 0; i < THREADS; i++) {
        snprintf(tag, sizeof(tag), "t%d", i);
        wait_in(i % 2 ? &x : &y, tag, "wait c m");
    }
    wake_all();
    all_wake(THREADS);
}
END_TEST

/* rule: V8 */
START_TEST(signal_without_a_waiter_is_not_kept)
{
    start_x(NULL);
    wake_one();
    wake_all();
    wait_in(&x, "t", "wait c m");
    ck_assert(stays_asleep(&x, "t"));
    wake_one();
    wakes(&x, "t", "ok");
}
END_TEST

static void *wait_here(void *arg)
{
    int *rc = arg;
    *rc = rlock_mutex_lock(&m);
    if (*rc == 0)
        *rc = rlock_cond_wait(&c, &m);
    if (*rc == 0)
        *rc = rlock_mutex_unlock(&m);
    return NULL;
}

/* rule: V3 */
START_TEST(thread_of_the_callers_process_is_awake_when_the_signal_returns)
{
    pthread_t thread;
    int rc = -1;
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_here, &rc), 0);
    wait_for_waiting(1);
    if (_i == 0)
        wake_one();
    else
        wake_all();
    ck_assert_int_eq(rlock_cond_destroy(&c), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(rc, 0);
    cond_of(&c, self, "C");
}
END_TEST

/* rule: V3 */
START_TEST(thread_that_joins_while_the_signal_is_on_its_way_is_woken_by_it)
{
    start_x(SCENE_TIMES(.presence = 30000)); /* no poll tells it */
    int rule = SCENE_RULE(RLK_COND_SIGNAL, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                          .count = 1);
    scene_says(&x, "ok", "async s signal c");
    ck_assert(test_proxy_wait_hits(scene_proxy, rule, 1, SCENE_SOON_MS));
    wait_in(&x, "t", "wait c m");
    test_proxy_release(scene_proxy, rule);
    scene_worker_ends(&x, "s", "ok");
    wakes(&x, "t", "ok");
}
END_TEST

/* ---- the mutex afterwards */

/* rule: V9 */
START_TEST(all_levels_of_a_recursive_mutex_come_back)
{
    start_x(NULL);
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "on t lock m");
    wait_in(&x, "t", "wait c m"); /* a third one */
    scene_says(&x, "ok 0", "count m");
    wake_one();
    scene_worker_ends(&x, "t", "ok");
    scene_says(&x, "ok 3", "on t count m");
}
END_TEST

/* rule: V9 */
START_TEST(fixed_lease_comes_back_with_its_full_length)
{
    const long lease = test_ms(4000);
    start_x(NULL);
    scene_says(&x, "ok", "on t lock m %ld", lease);
    scene_says(&x, "ok", "async t wait c m");
    wait_for_waiting(1);
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    wake_one();
    scene_worker_ends(&x, "t", "ok");
    long long left = worker_number(&x, "on t remaining m");
    ck_assert_int_gt(left, lease / 2);
    ck_assert_int_le(left, lease);
}
END_TEST

/* rule: V9 */
START_TEST(token_of_the_mutex_grows_with_each_wait)
{
    start_worker(&x, scene_server.url, NULL, "fencing=1");
    scene_says(&x, "ok", "on t lock m");
    long long before = worker_number(&x, "on t token m");
    scene_says(&x, "ok", "async t wait c m");
    wait_for_waiting(1);
    wake_one();
    scene_worker_ends(&x, "t", "ok");
    ck_assert_int_gt(worker_number(&x, "on t token m"), before);
}
END_TEST

START_TEST(fair_lock_may_be_given_up_in_a_wait)
{
    start_worker(&x, scene_server.url, NULL, "fair=1");
    wait_in(&x, "t",
            _i == 0   ? "wait c m"
            : _i == 1 ? "timedwait c m 60000"
                      : "clockwait c m 60000");
    wake_one();
    wakes(&x, "t", "ok");
}
END_TEST

/* rule: V9 */
START_TEST(retained_mutex_is_kept_while_its_thread_waits)
{
    start_worker(&x, scene_server.url, NULL, "retain=60000");
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "async t wait c m");
    wait_for_waiting(1);
    wake_one();
    wakes(&x, "t", "ok");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
}
END_TEST

/* rule: V11 */
START_TEST(mutex_goes_from_thread_to_thread_within_a_process)
{
    start_x(NULL);
    wait_in(&x, "a", "wait c m");
    scene_says(&x, "ok", "on b lock m");
    scene_says(&x, "ok", "on b signal c");
    ck_assert(stays_asleep(&x, "a"));
    scene_says(&x, "ok", "on b unlock m");
    wakes(&x, "a", "ok");
}
END_TEST

/* rule: V10 */
START_TEST(owner_that_died_is_told_by_the_wait)
{
    start_worker(&x, scene_server.url, SCENE_TIMES(.lease = 500), "robust=1");
    start_worker(&y, scene_server.url, NULL, "robust=1");
    wait_in(&y, "t", _i == 0 ? "wait c m" : "timedwait c m 100");
    scene_says(&x, "ok", "lock m");
    wake_one();
    worker_kill(&x);
    scene_worker_ends(&y, "t", "EOWNERDEAD");
    scene_says(&y, "ok", "on t consistent m");
    scene_says(&y, "ok", "on t unlock m");
}
END_TEST

/* rule: V10 */
START_TEST(signal_of_a_thread_that_cannot_have_the_mutex_goes_to_the_next)
{
    start_worker(&x, scene_server.url, NULL, "robust=1");
    start_y(NULL); /* its handle is not robust */
    wait_in(&x, "t", "wait c m");
    wait_in(&y, "t", "wait c m");
    test_redis_do(scene_redis, "SET", "rlock:{N}:dirty", "not recoverable", "EX", "100");
    wake_one();
    scene_worker_ends(&x, "t", "ENOTRECOVERABLE");
    scene_says(&x, "ok UNHELD", "on t state m");
    wait_for_waiting(0); /* the signal went to y */
}
END_TEST

/* ---- codes */

START_TEST(wait_without_the_mutex_is_refused)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, 1000);
    ck_assert_int_eq(rlock_cond_wait(&c, &m), EPERM);
    ck_assert_int_eq(rlock_cond_timedwait(&c, &m, &at), EPERM);
    at.tv_nsec = 1000000000;
    ck_assert_int_eq(rlock_cond_timedwait(&c, &m, &at), EINVAL); /* looked for first */
    ck_assert_int_eq(rlock_cond_clockwait(&c, &m, CLOCK_BOOTTIME, &at), EINVAL);
    ck_assert_int_eq(rlock_cond_timedwait(&c, &m, NULL), EINVAL);
    ck_assert_int_eq(rlock_cond_wait(NULL, &m), EINVAL);
    ck_assert_int_eq(rlock_cond_wait(&c, NULL), EINVAL);
    ck_assert_int_eq(rlock_cond_fairwait(&c, (rlock_fair_t *)&m), EINVAL);
    ck_assert_int_eq(rlock_cond_wait((rlock_cond_t *)&m, &m), EINVAL);
    ck_assert_int_eq(rlock_cond_signal((rlock_cond_t *)&m), EINVAL);
    ck_assert_int_eq(rlock_mutex_lock((rlock_mutex_t *)&c), EINVAL);
}
END_TEST

/* rule: V5 */
START_TEST(wait_ends_at_its_deadline_with_the_mutex)
{
    static const char *const waits[] = { "timedwait c m 50", "clockwait c m 50" };
    start_x(NULL);
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ETIMEDOUT", "on t %s", waits[_i]);
    scene_says(&x, "ok SAFE", "on t state m");
    ck_assert_int_eq(waiting() + signalled(), 0);
}
END_TEST

/* rule: V5 */
START_TEST(wait_after_its_deadline_gives_the_mutex_up_and_takes_it_again)
{
    char first[SCENE_ID_MAX], second[SCENE_ID_MAX];
    struct timespec past = { .tv_sec = 1 };
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert(scene_holder("N", first));
    long long before = test_redis_calls(scene_redis, "zadd");
    ck_assert_int_eq(rlock_cond_timedwait(&c, &m, &past), ETIMEDOUT);
    ck_assert(scene_holder("N", second));
    ck_assert_str_ne(first, second);
    ck_assert_int_eq(test_redis_calls(scene_redis, "zadd"), before);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
}
END_TEST

START_TEST(timedwait_goes_by_the_clock_of_the_condition)
{
    rlock_condattr_t attr;
    rlock_cond_t mono;
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, SHORT_MS);
    ck_assert_int_eq(rlock_condattr_init(&attr), 0);
    ck_assert_int_eq(rlock_condattr_setclient(&attr, self), 0);
    ck_assert_int_eq(rlock_condattr_setclock(&attr, CLOCK_MONOTONIC), 0);
    ck_assert_int_eq(rlock_cond_init(&mono, &attr, "C"), 0);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    int64_t began = test_now_ms();
    ck_assert_int_eq(rlock_cond_timedwait(&mono, &m, &at), ETIMEDOUT);
    ck_assert_int_ge(test_now_ms() - began, SHORT_MS - 2);
}
END_TEST

START_TEST(interrupted_wait_returns_without_the_mutex)
{
    start_x(NULL);
    start_y(NULL);
    wait_in(&x, "t", "wait c m");
    wait_in(&y, "t", "wait c m");
    scene_says(&x, "ok", "interrupt");
    scene_worker_ends(&x, "t", "ECANCELED");
    scene_says(&x, "ok UNHELD", "on t state m");
    wait_for_waiting(1); /* nothing of x is left */
    wake_one();
    wakes(&y, "t", "ok");
}
END_TEST

START_TEST(wait_whose_mutex_was_lost_is_stale)
{
    start_x(SCENE_TIMES(.lease = 200));
    scene_says(&x, "ok", "lock m 100");
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    test_pause_ms(10); /* the client's end is not later than the server's */
    scene_says(&x, "ESTALE", "wait c m");
    scene_says(&x, "ok UNHELD", "state m");
    ck_assert_int_eq(waiting(), 0);
}
END_TEST

/* rule: V14 */
START_TEST(condition_with_a_waiter_of_this_process_cannot_be_destroyed)
{
    start_x(NULL);
    ck_assert_int_eq(rlock_cond_destroy(&c), 0);
    cond_of(&c, self, "C");
    wait_in(&x, "t", "wait c m");
    ck_assert_int_eq(rlock_cond_destroy(&c), 0); /* x is another process */
    scene_says(&x, "EBUSY", "destroycond c");
    scene_says(&x, "EBUSY", "close 1");
    scene_says(&x, "ok", "broadcast c");
    scene_says(&x, "ok", "destroycond c");
    wakes(&x, "t", "ok");
    ck_assert_int_eq(rlock_cond_wait(&c, &m), EINVAL);
    cond_of(&c, self, "C");
}
END_TEST

START_TEST(shared_condition_of_a_client_of_one_process_is_refused)
{
    rlock_condattr_t attr;
    rlock_cond_t shared;
    ck_assert_int_eq(rlock_condattr_init(&attr), 0);
    ck_assert_int_eq(rlock_condattr_setpshared(&attr, RLOCK_PROCESS_SHARED), 0);
    ck_assert_int_eq(rlock_cond_init(&shared, &attr, NULL), 0);
    ck_assert_int_eq(rlock_condattr_setclient(&attr, self), 0);
    ck_assert_int_eq(rlock_cond_init(&shared, &attr, "C"), ENOTSUP);
    ck_assert_int_eq(rlock_condattr_setclock(&attr, CLOCK_BOOTTIME), EINVAL);
    ck_assert_int_eq(rlock_condattr_setoutage(&attr, RLOCK_OUTAGE_ABORT), EINVAL);
}
END_TEST

/* ---- what is left at the server */

/* rule: V4 */
START_TEST(signal_is_acknowledged_once_the_wait_has_returned)
{
    start_x(SCENE_TIMES(.presence = test_ms(600)));
    wait_in(&x, "t", "wait c m");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    wake_one();
    wait_for_signalled(1);
    ck_assert_int_eq(signalled(), 1); /* x has not the mutex yet */
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    wakes(&x, "t", "ok");
    wait_for_signalled(0);
}
END_TEST

/* rule: V4 */
START_TEST(acknowledgement_goes_with_the_next_request)
{
    start_x(SCENE_TIMES(.presence = 30000)); /* no poll in this time */
    wait_in(&x, "t", "wait c m");
    wake_one();
    wakes(&x, "t", "ok");
    ck_assert_int_eq(signalled(), 1);
    if (_i == 0)
        scene_says(&x, "ok", "signal c");
    else
        wait_in(&x, "t", "wait c m");
    ck_assert_int_eq(signalled(), 0);
    if (_i == 1) {
        wake_one();
        wakes(&x, "t", "ok");
    }
}
END_TEST

/* rule: V4 */
START_TEST(signal_of_a_killed_process_wakes_another)
{
    const long presence = test_ms(300);
    start_x(SCENE_TIMES(.presence = presence));
    start_y(SCENE_TIMES(.presence = presence));
    wait_in(&x, "t", "wait c m");
    wait_in(&y, "t", "wait c m");
    worker_stop(&x);
    wake_one();
    wait_for_signalled(1);
    worker_kill(&x);
    wakes(&y, "t", "ok");
}
END_TEST

/* rule: V4 */
START_TEST(signal_lasts_as_long_as_the_way_back_to_the_mutex)
{
    const long presence = test_ms(200);
    start_x(SCENE_TIMES(.presence = presence));
    start_y(SCENE_TIMES(.presence = presence));
    wait_in(&x, "t", "wait c m");
    wait_in(&y, "t", "wait c m");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    wake_one();
    long before = (long)scene_stat(&x, "refreshes");
    while (scene_stat(&x, "refreshes") < before + 9) /* three times the presence */
        test_pause_ms(presence / 6);
    struct sleeper s = { &y, "t" };
    ck_assert(sleeps(&s));
    ck_assert_int_eq(waiting(), 1);
    ck_assert_int_eq(signalled(), 1); /* if x dies now, y gets it */
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    wakes(&x, "t", "ok");
}
END_TEST

/* rule: V2 */
START_TEST(lost_data_wake_all)
{
    start_x(SCENE_TIMES(.presence = test_ms(300)));
    wait_in(&x, "t", "wait c m");
    test_redis_do(scene_redis, "DEL", COND_KEY, "rlock:{C}:condpresent");
    wakes(&x, "t", "ok");
}
END_TEST

START_TEST(inspection_shows_the_waiters_of_a_condition)
{
    rlock_info_t *info;
    start_x(NULL);
    ck_assert_int_eq(rlock_inspect(self, "C", &info), ENOENT);
    wait_in(&x, "t", "wait c m");
    ck_assert_int_eq(rlock_inspect(self, "C", &info), 0);
    ck_assert_int_eq(info->type, RLOCK_TYPE_COND);
    ck_assert_uint_eq(info->waiter_count, 1);
    ck_assert_uint_eq(info->holder_count, 0);
    ck_assert_ptr_nonnull(strstr(info->waiters[0].client, "worker"));
    rlock_info_free(info);
    scene_hold_by_hand("C", 60000); /* the lock of the name comes first */
    ck_assert_int_eq(rlock_inspect(self, "C", &info), 0);
    ck_assert_int_eq(info->type, RLOCK_TYPE_MUTEX);
    rlock_info_free(info);
    scene_release_by_hand("C");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cond");
    TCase *tc = scene_tcase(s, "signal", open_scene, close_scene);
    tcase_add_test(tc, signal_wakes_the_thread_that_has_waited_longest);
    tcase_add_test(tc, threads_of_a_process_wake_in_the_order_of_their_waits);
    tcase_add_test(tc, woken_thread_takes_the_mutex_when_the_signaller_unlocks);
    tcase_add_test(tc, broadcast_wakes_all_threads_of_all_processes);
    tcase_add_test(tc, signal_without_a_waiter_is_not_kept);
    tcase_add_loop_test(
        tc, thread_of_the_callers_process_is_awake_when_the_signal_returns, 0, 2);
    tcase_add_test(tc, thread_that_joins_while_the_signal_is_on_its_way_is_woken_by_it);
    tc = scene_tcase(s, "mutex", open_scene, close_scene);
    tcase_add_test(tc, all_levels_of_a_recursive_mutex_come_back);
    tcase_add_test(tc, fixed_lease_comes_back_with_its_full_length);
    tcase_add_test(tc, token_of_the_mutex_grows_with_each_wait);
    tcase_add_loop_test(tc, fair_lock_may_be_given_up_in_a_wait, 0, 3);
    tcase_add_test(tc, retained_mutex_is_kept_while_its_thread_waits);
    tcase_add_test(tc, mutex_goes_from_thread_to_thread_within_a_process);
    tcase_add_loop_test(tc, owner_that_died_is_told_by_the_wait, 0, 2);
    tcase_add_test(tc, signal_of_a_thread_that_cannot_have_the_mutex_goes_to_the_next);
    tc = scene_tcase(s, "codes", open_scene, close_scene);
    tcase_add_test(tc, wait_without_the_mutex_is_refused);
    tcase_add_loop_test(tc, wait_ends_at_its_deadline_with_the_mutex, 0, 2);
    tcase_add_test(tc, wait_after_its_deadline_gives_the_mutex_up_and_takes_it_again);
    tcase_add_test(tc, timedwait_goes_by_the_clock_of_the_condition);
    tcase_add_test(tc, interrupted_wait_returns_without_the_mutex);
    tcase_add_test(tc, wait_whose_mutex_was_lost_is_stale);
    tcase_add_test(tc, condition_with_a_waiter_of_this_process_cannot_be_destroyed);
    tcase_add_test(tc, shared_condition_of_a_client_of_one_process_is_refused);
    tc = scene_tcase(s, "server", open_scene, close_scene);
    tcase_add_test(tc, signal_is_acknowledged_once_the_wait_has_returned);
    tcase_add_loop_test(tc, acknowledgement_goes_with_the_next_request, 0, 2);
    tcase_add_test(tc, signal_of_a_killed_process_wakes_another);
    tcase_add_test(tc, signal_lasts_as_long_as_the_way_back_to_the_mutex);
    tcase_add_test(tc, lost_data_wake_all);
    tcase_add_test(tc, inspection_shows_the_waiters_of_a_condition);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
