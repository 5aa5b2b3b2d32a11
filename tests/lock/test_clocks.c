/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_clocks,rwlock_clocks */
/*
 * The server's clock steps, or runs at another speed than ours. The server of these tests
 * has a clock that can be set while it runs (helpers/clock.h); only the server has it.
 * `x`, `y` and `z` are workers; x talks through the proxy. Clients' clocks are in
 * test_clocks_client.c.
 */
#include "clock.h"
#include "scene.h"

#include <stdio.h>
#include <string.h>

enum {
    HOUR_MS = 3600000,
    PRESENCE_MS = 300,
    STAYS_MS = 150,
    TAKEOVER_MS = 1000,
    CANCELS_MAX = 5
};

#ifdef AS_RWLOCK /* holders write, or read */
static const char *const verbs[] = { "lock", "rdlock" };
#define ACQUIRES RLK_MUTEX_ACQUIRE, RLK_RWLOCK_READ
#else
static const char *const verbs[] = { "lock" };
#define ACQUIRES RLK_MUTEX_ACQUIRE
#endif
enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static struct test_clock server_clock;
static struct worker x, y, z;

static void start_server(void)
{
    test_clock_open(&server_clock);
    test_server_start_env(&scene_server, NULL, server_clock.env);
}

static void stop_server(void)
{
    scene_stop();
    test_clock_close(&server_clock);
}

static void open_scene(void)
{
    test_clock_set_real(&server_clock, 0);
    scene_open();
    test_clock_step(&server_clock, scene_redis, 0);
    memset(&x, 0, sizeof(x));
    memset(&y, 0, sizeof(y));
    memset(&z, 0, sizeof(z));
}

static void close_scene(void)
{
    worker_end(&x);
    worker_end(&y);
    worker_end(&z);
    scene_close();
}

static void step(long ms)
{
    test_clock_step(&server_clock, scene_redis, ms);
}

static void start_x(const struct scene_times *times)
{
    scene_worker(&x, test_proxy_url(scene_proxy), times, "N", "fencing=1");
}

static void start(struct worker *w, const struct scene_times *times)
{
    scene_worker(w, scene_server.url, times, "N", "fencing=1");
}

static bool has_renewed(void *arg)
{
    return scene_stat(&x, "renewals") > *(long long *)arg;
}

/* Waits until x has read the answer to one more renewal. */
static void wait_renewal(void)
{
    long long before = scene_stat(&x, "renewals");
    ck_assert(test_wait_until(has_renewed, &before, SCENE_SOON_MS));
}

/* ---- it steps forward */

/* The server forgets the lease, and two holders believe that they hold the lock: S1
 * excludes such a step. The next renewal ends this state, and the tokens show which
 * holder is right. */
/* rule: S4 */
START_TEST(holder_whose_lease_the_clock_skipped_learns_the_loss_from_its_next_renewal)
{
    long lease = test_ms(1500);
    start_x(SCENE_TIMES(.lease = lease));
    start(&y, NULL);
    scene_says(&x, "ok", "on t %s m", verbs[_i]);
    long long token = worker_number(&x, "on t token m");
    int64_t begin = test_now_ms();
    step(HOUR_MS);
    scene_says(&y, "ok", "on t trylock m");
    ck_assert_int_gt(worker_number(&y, "on t token m"), token);
    ck_assert(worker_news(&x, "event LOST N", lease));
    ck_assert_int_lt(test_now_ms() - begin, lease * 2 / 3); /* earlier than D */
    scene_says(&x, "ok LOST", "on t state m");
    scene_says(&x, "ESTALE", "on t unlock m");
    scene_says(&y, "ok SAFE", "on t state m");
    scene_says(&y, "ok", "on t unlock m");
}
END_TEST

/* rule: S4 */
START_TEST(unlock_after_the_clock_skipped_the_lease_returns_ESTALE_and_frees_nothing)
{
    start_x(NULL);
    start(&y, NULL);
    scene_says(&x, "ok", "on t %s m", verbs[_i]);
    step(HOUR_MS);
    scene_says(&y, "ok", "on t lock m");
    scene_says(&x, "ESTALE", "on t unlock m");
    scene_says(&y, "ok SAFE", "on t state m");
    scene_says(&y, "ok", "on t unlock m");
}
END_TEST

/* Their presence has ended, too. */
/* rule: L3 */
START_TEST(all_waiters_get_the_lock_when_the_clock_steps_forward)
{
    const struct scene_times *times = SCENE_TIMES(.presence = test_ms(PRESENCE_MS));
    start_x(times);
    start(&y, times);
    start(&z, times);
    scene_says(&x, "ok", "on t lock m");
    scene_worker_waits(&y, "N", 1);
    scene_worker_waits(&z, "N", 2);
    worker_kill(&x);
    step(HOUR_MS);
    /* with the mutex, either waiter may be the first to ask again */
    struct worker *first = NULL, *second = NULL;
    for (int i = 0; !first && i < 1000; i++) {
        if (worker_news(&y, "done t ok", 10))
            first = &y, second = &z;
        else if (worker_news(&z, "done t ok", 10))
            first = &z, second = &y;
    }
    ck_assert(first);
    scene_says(first, "ok SAFE", "on t state m");
    scene_says(first, "ok", "on t unlock m");
    ck_assert(scene_worker_got(second, SCENE_SOON_MS));
    scene_says(second, "ok", "on t unlock m");
    scene_nothing_is_left("N");
}
END_TEST

/* rule: L3 */
START_TEST(release_after_the_clock_stepped_forward_reaches_the_waiter)
{
    const struct scene_times *times = SCENE_TIMES(.presence = test_ms(PRESENCE_MS));
    long lease = 3L * HOUR_MS;
    start_x(SCENE_TIMES(.lease = lease));
    start(&y, times);
    scene_says(&x, "ok", "on t lock m");
    scene_worker_waits(&y, "N", 1);
    step(HOUR_MS); /* the lease lasts, y's presence does not */
    scene_says(&x, "ok", "on t unlock m");
    ck_assert(scene_worker_got(&y, TAKEOVER_MS));
    scene_says(&y, "ok", "on t unlock m");
}
END_TEST

/* ---- it steps back */

/* rule: S1 */
START_TEST(no_renewal_is_believed_for_longer_than_the_lease)
{
    long lease = test_ms(600);
    start_x(SCENE_TIMES(.lease = lease));
    scene_says(&x, "ok", "on t %s m", verbs[_i]);
    step(-HOUR_MS);
    ck_assert_int_gt(scene_pttl("N"), HOUR_MS / 2);
    wait_renewal();
    scene_worker_has_no_more_than(&x, lease * 99 / 100);
    scene_says(&x, "ok SAFE", "on t state m");
    /* x loses the lock by D, though the server would keep the lease for an hour */
    int64_t begin = test_now_ms();
    test_proxy_freeze(scene_proxy, true);
    ck_assert(worker_news(&x, "event LOST N", 2 * lease));
    ck_assert_int_lt(test_now_ms() - begin, lease + test_ms(200));
    test_proxy_freeze(scene_proxy, false);
}
END_TEST

/* rule: S1 */
START_TEST(no_repeated_acquire_is_believed_for_longer_than_the_lease)
{
    static const enum rlk_script_id acquires[] = { ACQUIRES };
    long lease = test_ms(3000);
    start_x(SCENE_TIMES(.lease = lease, .command = test_ms(400)));
    int lost = scene_drop_replies(acquires[_i], 1);
    SCENE_RULE(RLK_MUTEX_RENEW, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    scene_says(&x, "ok", "async t %s m", verbs[_i]);
    ck_assert(test_proxy_wait_answered(scene_proxy, lost, 1, SCENE_SOON_MS));
    char before[SCENE_ID_MAX], after[SCENE_ID_MAX];
    scene_only_holder("N", before);
    step(-HOUR_MS);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS)); /* its second request finds it held */
    scene_worker_has_no_more_than(&x, lease * 99 / 100);
    scene_only_holder("N", after);
    ck_assert_str_eq(after, before);
    scene_says(&x, "ok", "on t unlock m");
    ck_assert(!test_redis_exists(scene_redis, "N"));
}
END_TEST

#ifndef AS_RWLOCK /* whose acquire extends the lease to its whole length */
/* rule: S1 */
START_TEST(no_grant_is_believed_for_longer_than_its_term)
{
    long lease = test_ms(20000), grant = test_ms(1500);
    start(&y, NULL);
    start_x(SCENE_TIMES(.lease = lease, .presence = grant));
    scene_says(&y, "ok", "on t lock m");
    scene_worker_waits(&x, "N", 1);
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 grant");
    SCENE_RULE(RLK_MUTEX_RENEW, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    int poll = SCENE_RULE(RLK_MUTEX_REFRESH, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                          .count = 1);
    ck_assert(test_proxy_wait_hits(scene_proxy, poll, 1, SCENE_SOON_MS));
    scene_says(&y, "ok", "on t unlock m"); /* to x, which gets no message */
    step(-HOUR_MS);
    test_proxy_remove(scene_proxy, poll);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_worker_has_no_more_than(&x, grant * 99 / 100);
}
END_TEST
/* A cancel finds the grant. */
/* rule: S1 */
START_TEST(no_grant_found_by_a_cancel_is_believed_for_longer_than_its_term)
{
    long lease = test_ms(20000), grant = test_ms(1500), wait = test_ms(800);
    start(&y, NULL);
    start_x(SCENE_TIMES(.lease = lease, .presence = grant));
    scene_says(&y, "ok", "on t lock m");
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 grant");
    SCENE_RULE(RLK_MUTEX_RENEW, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    SCENE_RULE(RLK_MUTEX_REFRESH, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    for (int i = 0;; i++) {
        scene_says(&x, "ok", "async t timedlock m %ld", wait);
        ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
        /* else, after a poll without an answer, a repeated acquire may find the grant */
        int again =
            SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REQUEST, .action = TEST_DROP);
        scene_says(&y, "ok", "on t unlock m"); /* to x, which gets no message */
        step(-HOUR_MS);
        const char *news = worker_news(&x, "done t", SCENE_SOON_MS);
        ck_assert_ptr_nonnull(news);
        if (strcmp(news, "done t ok") == 0)
            break;
        /* the 100 ms for the cancel passed before its answer came: see
         * scene_cancel_left */
        ck_assert_str_eq(news, "done t ETIMEDOUT");
        ck_assert_int_lt(i, CANCELS_MAX);
        test_proxy_remove(scene_proxy, again);
        step(0);
        ck_assert(scene_wait_free("N", SCENE_SOON_MS));
        scene_says(&y, "ok", "on t lock m");
    }
    scene_worker_has_no_more_than(&x, grant * 99 / 100);
}
END_TEST
#endif

/* rule: L1 */
START_TEST(release_after_the_clock_stepped_back_reaches_waiters_in_order)
{
    start_x(NULL);
    start(&y, NULL);
    start(&z, NULL);
    scene_says(&x, "ok", "on t lock m");
    scene_worker_waits(&y, "N", 1);
    step(-HOUR_MS);
    scene_worker_waits(&z, "N", 2);
    int64_t begin = test_now_ms();
    scene_says(&x, "ok", "on t unlock m");
    ck_assert(scene_worker_got(&y, SCENE_SOON_MS));
    scene_says(&y, "ok", "on t unlock m");
    ck_assert(scene_worker_got(&z, SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(TAKEOVER_MS));
    scene_says(&z, "ok", "on t unlock m");
    scene_nothing_is_left("N");
}
END_TEST

/* No script shortens a lease that it did not give (T4), so that a dead holder's lease
 * lasts an hour longer. It ends by the server's clock, or by force. */
/* rule: L4 */
START_TEST(lease_of_a_dead_holder_is_taken_over_when_the_clock_is_set_right)
{
    test_rundir_off();
    for (long lease = test_ms(500);; lease *= 2) {
        start_x(SCENE_TIMES(.lease = lease));
        start(&y, SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
        int64_t locked = test_now_ms();
        scene_says(&x, "ok", "on t lock m");
        worker_kill(&x);
        step(-HOUR_MS);
        if (test_now_ms() - locked < lease)
            break;
        step(0);
        scene_anew(&x, &y); /* the lease ended before the clock was set back */
    }
    scene_worker_waits(&y, "N", 1);
    long long till = scene_now_ms() + scene_pttl("N") - HOUR_MS;
    ck_assert_int_gt(scene_pttl("N"), HOUR_MS / 2);
    scene_wait_past(till);
    ck_assert(!worker_news(&y, "done t", STAYS_MS));
    step(0);
    ck_assert(scene_worker_got(&y, SCENE_SOON_MS));
    scene_says(&y, "ok", "on t unlock m");
}
END_TEST

START_TEST(a_dead_holders_lock_may_be_forced_after_the_clock_stepped_back)
{
    test_rundir_off();
    start_x(NULL);
    start(&y, NULL);
    scene_says(&x, "ok", "on t lock m");
    worker_kill(&x);
    step(-HOUR_MS);
    scene_worker_waits(&y, "N", 1);
    scene_says(&y, "ok", "force N");
    ck_assert(scene_worker_got(&y, SCENE_SOON_MS));
    scene_says(&y, "ok", "on t unlock m");
}
END_TEST

/* ---- it runs fast */

enum { DRIFT_PER_MILLE = 8, DRIFTS = 2 };

static int64_t drift_begin;
static int drift_sign;

static void drift(void)
{
    step(drift_sign * (long)((test_now_ms() - drift_begin) * DRIFT_PER_MILLE / 1000));
}

/* The drift is eight tenths of the margin. The holder is asked after the server, and must
 * say that the lease is over no later than the server does. */
/* rule: S1 */
START_TEST(holder_whose_server_clock_runs_fast_gives_up_before_the_server)
{
    rlock_mutex_t m;
    rlock_client_t *self = scene_client(scene_server.url, NULL);
    bool alive = true;
    long left = 1;
    scene_mutex(&m, self, "N");
    drift_begin = test_now_ms();
    drift_sign = 1;
    ck_assert_int_eq(rlock_mutex_lock_lease(&m, 3000), 0);
    while (alive) {
        drift();
        alive = test_redis_exists(scene_redis, "N");
        ck_assert_int_eq(rlock_mutex_getremaining(&m, &left), 0);
        ck_assert_msg(alive || left == 0, "%ld ms left of what the server forgot", left);
    }
    ck_assert_int_eq(rlock_mutex_unlock(&m), ESTALE);
    ck_assert_int_eq(rlock_client_close(self), 0);
}
END_TEST

static bool is_safe_while_it_drifts(void *arg)
{
    rlock_state_t state;
    drift();
    return rlock_mutex_getstate(arg, &state) == 0 && state != RLOCK_LOST;
}

START_TEST(a_renewed_hold_outlives_a_server_that_runs_fast_or_slow)
{
    long lease = test_ms(400);
    rlock_mutex_t m;
    rlock_client_t *self = scene_client(scene_server.url, SCENE_TIMES(.lease = lease));
    scene_mutex(&m, self, "N");
    drift_begin = test_now_ms();
    drift_sign = _i == 0 ? 1 : -1;
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert(test_stays(is_safe_while_it_drifts, &m, 3 * lease));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert_int_eq(rlock_client_close(self), 0);
}
END_TEST

int main(void)
{
    const TTest *const of_each_verb[] = {
        holder_whose_lease_the_clock_skipped_learns_the_loss_from_its_next_renewal,
        unlock_after_the_clock_skipped_the_lease_returns_ESTALE_and_frees_nothing,
        no_renewal_is_believed_for_longer_than_the_lease,
        no_repeated_acquire_is_believed_for_longer_than_the_lease,
    };
    const TTest *const tests[] = {
        all_waiters_get_the_lock_when_the_clock_steps_forward,
        release_after_the_clock_stepped_forward_reaches_the_waiter,
#ifndef AS_RWLOCK
        no_grant_is_believed_for_longer_than_its_term,
        no_grant_found_by_a_cancel_is_believed_for_longer_than_its_term,
#endif
        release_after_the_clock_stepped_back_reaches_waiters_in_order,
        lease_of_a_dead_holder_is_taken_over_when_the_clock_is_set_right,
        a_dead_holders_lock_may_be_forced_after_the_clock_stepped_back,
        holder_whose_server_clock_runs_fast_gives_up_before_the_server,
    };
    Suite *suite = suite_create("clocks");
    TCase *tc = tcase_create("server");
    tcase_add_unchecked_fixture(tc, start_server, stop_server);
    tcase_add_checked_fixture(tc, open_scene, close_scene);
    for (size_t i = 0; i < sizeof(of_each_verb) / sizeof(of_each_verb[0]); i++)
        tcase_add_loop_test(tc, of_each_verb[i], 0, VERBS);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, a_renewed_hold_outlives_a_server_that_runs_fast_or_slow, 0,
                        DRIFTS);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
