/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients whose clocks step, whose host was suspended, or that are stopped. `x` and `y`
 * have a clock each, which the test sets while they run (helpers/clock.h). The server has
 * one as well, which goes on while a client's host sleeps. Steps of the server's clock
 * alone are in test_clocks.c.
 */
#include "clock.h"
#include "scene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    HOUR_MS = 3600000,
    LEASE_MS = 600,
    PRESENCE_MS = 300,
    SLICE_MS = 1000, /* how often the library looks at the time of day */
    STAYS_MS = 150
};

static struct test_clock server_clock, x_clock, y_clock;
static struct worker x, y;

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
    test_clock_open(&x_clock);
    test_clock_open(&y_clock);
    scene_open();
    test_clock_step(&server_clock, scene_redis, 0);
    memset(&x, 0, sizeof(x));
    memset(&y, 0, sizeof(y));
}

static void close_scene(void)
{
    worker_end(&x);
    worker_end(&y);
    scene_close();
    test_clock_close(&x_clock);
    test_clock_close(&y_clock);
}

static void start(struct worker *w, const struct scene_times *times)
{
    scene_worker_env(w, scene_server.url, times, "N", "fencing=1",
                     w == &x ? x_clock.env : y_clock.env);
}

/* The host of x sleeps for an hour. CLOCK_MONOTONIC does not count it. */
static void suspend_x(void)
{
    test_clock_set_boot(&x_clock, HOUR_MS);
    test_clock_set_real(&x_clock, HOUR_MS);
    test_clock_step(&server_clock, scene_redis, HOUR_MS);
}

static bool is_told_nothing(void *arg)
{
    return !worker_news(arg, "done t", 0);
}

static bool is_safe(void *arg)
{
    return worker_says(arg, "on t state m", "ok SAFE");
}

/* ---- suspended while it holds */

/* Each call notices the end of the lease by itself: the timers of the library's threads
 * do not notice the shift, and have not run out yet. */
/* rule: S4 */
START_TEST(each_call_after_a_suspend_reports_that_the_lease_is_over)
{
    static const struct {
        const char *command, *answer;
    } calls[] = {
        { "on t lock m", "ESTALE" },           { "on t trylock m", "ESTALE" },
        { "on t timedlock m 1000", "ESTALE" }, { "on t clocklock m 1000", "ESTALE" },
        { "on t extend m 1000", "ESTALE" },    { "on t state m", "ok LOST" },
        { "on t remaining m", "ok 0" },        { "on t unlock m", "ESTALE" },
    };
    start(&y, NULL);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        start(&x, SCENE_TIMES(.lease = test_ms(1500)));
        test_clock_set_boot(&x_clock, 0);
        scene_says(&x, "ok", "on t lock m");
        test_clock_set_boot(&x_clock, HOUR_MS); /* the server's clock does not matter */
        scene_says(&x, calls[i].answer, "%s", calls[i].command);
        if (strcmp(calls[i].command, "on t unlock m") != 0)
            scene_says(&x, "ESTALE", "on t unlock m");
        /* x's timers do not notice the shift, so its release may be late */
        test_redis_do(scene_redis, "DEL", "N");
        scene_says(&y, "ok", "on t lock m");
        scene_says(&y, "ok", "on t unlock m");
        worker_end(&x);
    }
}
END_TEST

/* rule: S2 */
START_TEST(suspended_holder_frees_nothing_of_the_next_holder)
{
    start(&x, NULL);
    start(&y, NULL);
    scene_says(&x, "ok", "on t lock m");
    long long token = worker_number(&x, "on t token m");
    worker_stop(&x);
    suspend_x();
    scene_says(&y, "ok", "on t trylock m");
    ck_assert_int_gt(worker_number(&y, "on t token m"), token);
    worker_cont(&x);
    scene_says(&x, "ESTALE", "on t unlock m");
    ck_assert(worker_news(&x, "event LOST N", SCENE_SOON_MS));
    ck_assert(test_stays(is_safe, &y, STAYS_MS));
    scene_says(&y, "ok", "on t unlock m");
}
END_TEST

/* ---- suspended while it waits */

/* rule: L3 */
START_TEST(waiter_suspended_while_waiting_gets_the_lock)
{
    start(&x, SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    start(&y, SCENE_TIMES(.lease = 3L * HOUR_MS));
    scene_says(&y, "ok", "on t lock m");
    scene_worker_waits(&x, "N", 1);
    suspend_x();
    scene_says(&y, "ok", "on t unlock m");
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_says(&x, "ok SAFE", "on t state m");
    scene_says(&x, "ok", "on t unlock m");
    scene_nothing_is_left("N");
}
END_TEST

/* The waiter's host sleeps between the grant and the message: by CLOCK_MONOTONIC hardly
 * any time has passed. */
/* rule: S1 */
START_TEST(grant_from_before_a_suspend_is_not_believed)
{
    start(&x, SCENE_TIMES(.presence = test_ms(3000)));
    start(&y, NULL);
    scene_says(&y, "ok", "on t lock m");
    scene_worker_waits(&x, "N", 1);
    worker_stop(&x);
    scene_says(&y, "ok", "on t unlock m"); /* to x, which is stopped */
    ck_assert(test_redis_exists(scene_redis, "N"));
    suspend_x();
    scene_says(&y, "ok", "on t trylock m");
    worker_cont(&x);
    ck_assert(test_stays(is_told_nothing, &x, test_ms(STAYS_MS)));
    scene_says(&y, "ok SAFE", "on t state m");
    scene_says(&y, "ok", "on t unlock m");
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_says(&x, "ok SAFE", "on t state m");
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

/* ---- the client's time of day steps */

START_TEST(a_hold_takes_no_notice_of_the_time_of_day)
{
    long lease = test_ms(LEASE_MS), hour = _i == 0 ? HOUR_MS : -HOUR_MS;
    start(&x, SCENE_TIMES(.lease = lease));
    scene_says(&x, "ok", "on t lock m");
    test_clock_set_real(&x_clock, hour);
    scene_worker_has_no_more_than(&x, lease * 99 / 100);
    ck_assert(test_stays(is_safe, &x, lease * 4 / 3));
    scene_worker_has_no_more_than(&x, lease * 99 / 100);
    scene_says(&x, "ok", "on t unlock m");
    scene_says(&x, "ok", "on t lock m %ld", lease / 2); /* a fixed lease */
    test_clock_set_real(&x_clock, 0);
    ck_assert(worker_news(&x, "event LOST N", 2 * lease));
    scene_says(&x, "ESTALE", "on t unlock m");
}
END_TEST

START_TEST(timedlock_ends_when_the_time_of_day_steps_past_its_deadline)
{
    start(&x, NULL);
    start(&y, NULL);
    scene_says(&y, "ok", "on t lock m");
    scene_says(&x, "ok", "async t timedlock m %d", HOUR_MS / 2);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    int64_t begin = test_now_ms();
    test_clock_set_real(&x_clock, HOUR_MS);
    scene_worker_ends(&x, "t", "ETIMEDOUT");
    ck_assert_int_lt(test_now_ms() - begin, SLICE_MS + test_ms(500));
    ck_assert(scene_wait_queued("N", 0, SCENE_SOON_MS));
}
END_TEST

START_TEST(timedlock_goes_on_when_the_time_of_day_is_set_back)
{
    long wait = test_ms(300);
    start(&x, NULL);
    start(&y, NULL);
    scene_says(&y, "ok", "on t lock m");
    scene_says(&x, "ok", "async t timedlock m %ld", wait);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    test_clock_set_real(&x_clock, -HOUR_MS);
    ck_assert(test_stays(is_told_nothing, &x, wait * 3 / 2));
    if (_i == 0) {
        scene_says(&y, "ok", "on t unlock m");
        ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    } else {
        test_clock_set_real(&x_clock, 0);
        scene_worker_ends(&x, "t", "ETIMEDOUT");
    }
}
END_TEST

START_TEST(clocklock_on_CLOCK_MONOTONIC_takes_notice_of_no_other_clock)
{
    long wait = test_ms(400);
    start(&x, NULL);
    start(&y, NULL);
    scene_says(&y, "ok", "on t lock m");
    test_clock_set_boot(&x_clock, HOUR_MS);
    int64_t begin = test_now_ms();
    scene_says(&x, "ok", "async t clocklock m %ld", wait);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    test_clock_set_real(&x_clock, _i == 0 ? HOUR_MS : -HOUR_MS);
    scene_worker_ends(&x, "t", "ETIMEDOUT");
    ck_assert_int_ge(test_now_ms() - begin, wait);
    ck_assert_int_lt(test_now_ms() - begin, wait + test_ms(500));
}
END_TEST

/* ---- clients whose clocks are apart */

/* Two hours apart by the time of day, one by the time since boot. No client counts as
 * dead or late, and tickets use the server's time. */
START_TEST(clients_hours_apart_wait_and_are_granted_side_by_side)
{
    const struct scene_times *times = SCENE_TIMES(.presence = test_ms(PRESENCE_MS));
    char id[SCENE_ID_MAX], ticket[32];
    rlock_mutex_t m;
    rlock_client_t *self = scene_client(scene_server.url, NULL);
    struct worker *first = _i == 0 ? &x : &y, *second = _i == 0 ? &y : &x;
    scene_mutex(&m, self, "N");
    test_clock_set_real(&x_clock, HOUR_MS);
    test_clock_set_real(&y_clock, -HOUR_MS);
    test_clock_set_boot(&y_clock, HOUR_MS);
    start(&x, times);
    start(&y, times);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    long long begin = scene_now_ms();
    scene_worker_waits(first, "N", 1);
    scene_worker_waits(second, "N", 2);
    long long end = scene_now_ms();
    for (long i = 0; i < 2; i++) {
        ck_assert(scene_waiter("N", i, id, ticket));
        ck_assert_int_ge(atoll(ticket) / 1000, begin);
        ck_assert_int_le(atoll(ticket) / 1000, end);
    }
    ck_assert(test_stays(is_told_nothing, &x, test_ms(PRESENCE_MS * 3 / 2)));
    ck_assert(scene_waiter("N", 1, id, ticket));
    ck_assert_int_le(atoll(ticket) / 1000, end); /* it has kept its place */
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(first, SCENE_SOON_MS));
    scene_says(first, "ok SAFE", "on t state m");
    scene_says(first, "ok", "on t unlock m");
    ck_assert(scene_worker_got(second, SCENE_SOON_MS));
    scene_says(second, "ok", "on t unlock m");
    ck_assert_int_eq(rlock_client_close(self), 0);
}
END_TEST

/* ---- the last ms */

/* PTTL returns 0 for a key that still exists. */
/* rule: S1 */
START_TEST(lease_with_0_ms_left_is_no_success)
{
    static const char held[] = "*8\r\n:1\r\n:0\r\n:0\r\n:0\r\n$4\r\nheld\r\n"
                               ":0\r\n:0\r\n$0\r\n\r\n";
    rlock_mutex_t m;
    rlock_client_t *self = scene_client(test_proxy_url(scene_proxy), NULL);
    scene_mutex(&m, self, "N");
    int first = SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_ANSWER,
                           .text = held, .count = 1);
    int next = SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_WATCH);
    int rc = _i == 0 ? rlock_mutex_lock(&m) : rlock_mutex_trylock(&m);
    ck_assert_int_eq(test_proxy_hits(scene_proxy, first), 1);
    if (rc == 0) /* it asked again */
        ck_assert_int_ge(test_proxy_hits(scene_proxy, next), 1);
    else
        ck_assert_int_eq(rc, EBUSY);
    ck_assert_int_eq(rlock_mutex_unlock(&m), rc == 0 ? 0 : EPERM);
    ck_assert(scene_wait_free("N", SCENE_LEFT_MS));
    ck_assert_int_eq(rlock_client_close(self), 0);
}
END_TEST

/* ---- stopped at any moment */

static bool found_stopped(long lease, bool *ret_lost)
{
    scene_says(&x, "ok", "on t lock m");
    scene_worker_waits(&y, "N", 1);
    test_pause_ms(random() % lease);
    worker_stop(&x);
    test_pause_ms(random() % (2 * lease));
    bool given = scene_worker_got(&y, 0);
    worker_cont(&x);
    const char *state = worker_ask(&x, "on t state m", SCENE_SOON_MS);
    ck_assert(state);
    *ret_lost = strcmp(state, "ok LOST") == 0;
    return given;
}

/* A client that finds itself inside is alone there. A client that was too late learns so,
 * by whichever call comes first. */
/* rule: S1, S4 */
START_TEST(holder_stopped_at_any_moment_holds_the_lock_or_learns_the_loss)
{
    const char *given_seed = getenv("RLOCK_TEST_SEED");
    unsigned seed =
        given_seed ? (unsigned)strtoul(given_seed, NULL, 10) : (unsigned)time(NULL);
    const long longest = 1000; /* the workers do not run under Valgrind */
    long lease = test_ms(200) < longest ? test_ms(200) : longest;
    long rounds = test_count(300, 8), losses = 0, made = 0;
    printf("seed %u\n", seed);
    srandom(seed);
    start(&x, SCENE_TIMES(.lease = lease));
    start(&y, NULL);
    /* at least this many rounds, and until both outcomes have happened */
    for (long i = 0; i < rounds || ((losses == 0 || losses == i) && i < 20 * rounds);
         i++) {
        bool lost, given = found_stopped(lease, &lost);
        losses += lost;
        made++;
        ck_assert_msg(!given || lost, "two hold it; seed %u, round %ld", seed, i);
        if (lost)
            scene_says(&x, "ESTALE", "on t unlock m");
        else
            worker_ask(&x, "on t unlock m", SCENE_SOON_MS); /* its lease may end now */
        ck_assert(given || scene_worker_got(&y, SCENE_SOON_MS));
        scene_says(&y, "ok SAFE", "on t state m");
        scene_says(&y, "ok", "on t unlock m");
        while (worker_news(&x, "event ", 0))
            continue; /* its events do not matter here */
    }
    ck_assert_int_gt(losses, 0);
    ck_assert_int_lt(losses, made);
}
END_TEST

enum { DIRECTIONS = 2 };

int main(void)
{
    Suite *suite = suite_create("clocks, client");
#ifdef __SANITIZE_ADDRESS__
    puts("skipped: test_clocks_client: AddressSanitizer wants to be loaded first");
    return test_run_suite(suite);
#endif
    TCase *tc = tcase_create("client");
    tcase_add_unchecked_fixture(tc, start_server, stop_server);
    tcase_add_checked_fixture(tc, open_scene, close_scene);
    tcase_add_test(tc, each_call_after_a_suspend_reports_that_the_lease_is_over);
    tcase_add_test(tc, suspended_holder_frees_nothing_of_the_next_holder);
    tcase_add_test(tc, waiter_suspended_while_waiting_gets_the_lock);
    tcase_add_test(tc, grant_from_before_a_suspend_is_not_believed);
    tcase_add_loop_test(tc, a_hold_takes_no_notice_of_the_time_of_day, 0, DIRECTIONS);
    tcase_add_test(tc, timedlock_ends_when_the_time_of_day_steps_past_its_deadline);
    tcase_add_loop_test(tc, timedlock_goes_on_when_the_time_of_day_is_set_back, 0, 2);
    tcase_add_loop_test(tc, clocklock_on_CLOCK_MONOTONIC_takes_notice_of_no_other_clock,
                        0, DIRECTIONS);
    tcase_add_loop_test(tc, clients_hours_apart_wait_and_are_granted_side_by_side, 0, 2);
    tcase_add_loop_test(tc, lease_with_0_ms_left_is_no_success, 0, 2);
    tcase_add_test(tc, holder_stopped_at_any_moment_holds_the_lock_or_learns_the_loss);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
