/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_outage,rwlock_outage */
/*
 * A server that is gone or silent, for a while or for good: L7, S4, and what is true
 * afterwards. `m` is a handle of `self`, a client of this process that goes through the
 * proxy, with short times.
 */
#include "scene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_MS = 150, SLACK_MS = 100, THREADS = 50, LEASE_MS = 600, STAYS_MS = 150 };

static rlock_client_t *self;
static rlock_mutex_t m;
static struct worker x;

static void open_scene(void)
{
    scene_open();
    memset(&x, 0, sizeof(x));
    self = scene_client(test_proxy_url(scene_proxy),
                        SCENE_TIMES(.lease = 30000, .command = test_ms(COMMAND_MS)));
    scene_mutex(&m, self, "N");
}

static void close_scene(void)
{
    worker_end(&x);
    rlock_mutex_unlock(&m);
    rlock_client_close(self);
    scene_close();
}

static void refuse_connections(void)
{
    test_proxy_set_mode(scene_proxy, TEST_PROXY_DOWN);
    test_proxy_cut(scene_proxy, 0, false);
}

static void answer_nothing(void)
{
    test_proxy_set_mode(scene_proxy, TEST_PROXY_SILENT);
    test_proxy_freeze(scene_proxy, true);
}

static void be_well_again(void)
{
    test_proxy_set_mode(scene_proxy, TEST_PROXY_OPEN);
    test_proxy_freeze(scene_proxy, false);
}

/* ---- L7 */

static void check_trylock(void)
{
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_mutex_trylock(&m), ENOTCONN);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
}

static void check_timedlock(long ms)
{
    int64_t begin = test_now_ms(); /* first: a pause after this line shortens no wait */
    struct timespec at = test_in_ms(CLOCK_REALTIME, ms);
    ck_assert_int_eq(rlock_mutex_timedlock(&m, &at), ENOTCONN);
    int64_t took = test_now_ms() - begin;
    ck_assert_int_ge(took, ms - 1);
    ck_assert_int_lt(took, ms + 100 + test_ms(SLACK_MS));
}

/* rule: L7 */
START_TEST(trylock_gives_ENOTCONN_within_the_command_timeout)
{
    refuse_connections();
    check_trylock();
    answer_nothing();
    check_trylock();
}
END_TEST

/* rule: L7 */
START_TEST(timedlock_gives_ENOTCONN_by_its_deadline)
{
    refuse_connections();
    check_timedlock(2 * COMMAND_MS);
    answer_nothing();
    check_timedlock(COMMAND_MS / 2);
    check_timedlock(2 * COMMAND_MS);
}
END_TEST

/* rule: L7 */
START_TEST(timedlock_that_is_queued_when_the_server_goes_ends_by_its_deadline)
{
    scene_hold_by_hand("N", 60000);
    scene_worker(&x, test_proxy_url(scene_proxy), NULL, "N", "");
    long ms = test_ms(400);
    int64_t begin = test_now_ms();
    scene_says(&x, "ok", "async t timedlock m %ld", ms);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    test_proxy_freeze(scene_proxy, true);
    /* ETIMEDOUT, or ENOTCONN if it has not read yet that it is queued */
    ck_assert(worker_news(&x, "done t E", SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, ms + 100 + test_ms(SLACK_MS));
}
END_TEST

static bool x_is_not_told(void *arg)
{
    (void)arg;
    return !worker_news(&x, "done t", 0);
}

static void *lock_and_unlock(void *unused)
{
    rlock_mutex_t own = m;
    (void)unused;
    ck_assert_int_eq(rlock_mutex_lock(&own), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&own), 0);
    return NULL;
}

/* The pauses between the watchdog's attempts to connect have grown to a second. */
START_TEST(timedlock_at_a_server_that_is_back_is_ETIMEDOUT_though_the_watchdog_pauses)
{
    enum { OUTAGE_MS = 1500 };
    pthread_t waiter;
    scene_worker(&x, scene_server.url, NULL, "N", "");
    scene_says(&x, "ok", "on t lock m");
    pthread_create(&waiter, NULL, lock_and_unlock, NULL); /* it is queued */
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    for (long i = test_count(3, 2); i > 0; i--) {
        refuse_connections();
        test_pause_ms(OUTAGE_MS);
        be_well_again();
        ck_assert_int_eq(rlock_mutex_trylock(&m), EBUSY);
        struct timespec at = test_in_ms(CLOCK_REALTIME, 2 * COMMAND_MS);
        ck_assert_int_eq(rlock_mutex_timedlock(&m, &at), ETIMEDOUT);
    }
    scene_says(&x, "ok", "on t unlock m");
    pthread_join(waiter, NULL);
}
END_TEST

START_TEST(lock_waits_for_the_server_and_gets_the_lock_when_it_is_back)
{
    scene_worker(&x, test_proxy_url(scene_proxy), SCENE_TIMES(.command = test_ms(50)),
                 "N", "");
    refuse_connections();
    scene_says(&x, "ok", "async t lock m");
    ck_assert(test_stays(x_is_not_told, NULL, test_ms(STAYS_MS)));
    be_well_again();
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert(test_redis_exists(scene_redis, "N"));
}
END_TEST

/* A handle whose lock() does not wait for a server. */
static void init_failing(rlock_mutex_t *n)
{
    rlock_mutexattr_t attr;
    ck_assert_int_eq(rlock_mutexattr_init(&attr), 0);
    ck_assert_int_eq(rlock_mutexattr_setclient(&attr, self), 0);
    ck_assert_int_eq(rlock_mutexattr_setoutage(&attr, RLOCK_OUTAGE_FAIL), 0);
    ck_assert_int_eq(rlock_mutex_init(n, &attr, "N"), 0);
}

START_TEST(lock_with_outage_fail_returns_ENOTCONN_after_the_command_timeout)
{
    rlock_mutex_t n;
    init_failing(&n);
    refuse_connections();
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_mutex_lock(&n), ENOTCONN);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(2 * (COMMAND_MS + SLACK_MS)));
}
END_TEST

struct patient {
    rlock_mutex_t mutex;
    atomic_int rc; /* -1: not back yet */
};

/* Waits with a deadline. */
static void *wait_patiently(void *arg)
{
    struct patient *p = arg;
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(2 * SCENE_SOON_MS));
    int rc = rlock_mutex_clocklock(&p->mutex, CLOCK_MONOTONIC, &at);
    if (rc == 0)
        rc = rlock_mutex_unlock(&p->mutex);
    atomic_store(&p->rc, rc);
    return NULL;
}

static bool is_not_back(void *arg)
{
    return atomic_load(&((struct patient *)arg)->rc) == -1;
}

/* outage=fail concerns only calls without a deadline. */
START_TEST(clocklock_with_outage_fail_waits_for_a_server_until_its_deadline)
{
    pthread_t thread;
    struct patient p = { .rc = -1 };
    init_failing(&p.mutex);
    bool queues = _i;
    const long away = test_ms(3 * (COMMAND_MS + SLACK_MS));
    if (queues) /* until the server is back, or about that */
        scene_hold_by_hand("N", away);
    else
        refuse_connections();
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_patiently, &p), 0);
    if (queues) {
        ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
        refuse_connections();
    }
    ck_assert(test_stays(is_not_back, &p, away));
    be_well_again();
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(atomic_load(&p.rc), 0);
}
END_TEST

/* rule: L7 */
START_TEST(unlock_gives_0_in_time_while_the_lease_is_proven)
{
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    test_server_kill(&scene_server);
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
}
END_TEST

/* rule: T9 */
START_TEST(unlock_that_reached_nobody_is_made_up_for_in_the_background)
{
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    refuse_connections();
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(test_redis_exists(scene_redis, "N"));
    be_well_again();
    ck_assert(scene_wait_free("N", 5000)); /* its lease is 30 s */
}
END_TEST

struct attempt {
    pthread_t thread;
    rlock_mutex_t mutex;
    int rc;
    int64_t took;
};

static void *run_attempt(void *arg)
{
    struct attempt *a = arg;
    int64_t begin = test_now_ms();
    a->rc = rlock_mutex_trylock(&a->mutex);
    a->took = test_now_ms() - begin;
    return NULL;
}

START_TEST(fifty_threads_at_a_stopped_server_all_return_in_time)
{
    static struct attempt a[THREADS];
    char name[32];
    test_server_pause(&scene_server);
    for (int i = 0; i < THREADS; i++) {
        snprintf(name, sizeof(name), "N%d", i);
        scene_mutex(&a[i].mutex, self, name);
        ck_assert_int_eq(pthread_create(&a[i].thread, NULL, run_attempt, &a[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(a[i].thread, NULL);
    test_server_resume(&scene_server);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(a[i].rc, ENOTCONN);
        ck_assert_int_lt(a[i].took, test_ms(COMMAND_MS + 2 * SLACK_MS));
    }
}
END_TEST

/* ---- leases and outages */

static void x_holds(void)
{
    scene_worker(&x, test_proxy_url(scene_proxy),
                 SCENE_TIMES(.lease = test_ms(LEASE_MS), .command = test_ms(COMMAND_MS)),
                 "N", "fencing=1");
    scene_says(&x, "ok", "on t lock m");
}

static bool was_just_renewed(void *arg)
{
    return worker_number(arg, "on t remaining m") > test_ms(LEASE_MS) * 8 / 10;
}

START_TEST(an_outage_shorter_than_the_lease_is_survived)
{
    x_holds();
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            test_proxy_freeze(scene_proxy, true);
        else
            refuse_connections();
        test_pause_ms(test_ms(LEASE_MS) / 2);
        be_well_again();
        ck_assert(test_wait_until(was_just_renewed, &x, LEASE_MS));
    }
    scene_says(&x, "ok SAFE", "on t state m");
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

/* rule: S4 */
START_TEST(an_outage_longer_than_the_lease_is_reported_by_D)
{
    x_holds();
    unsigned long long token = (unsigned long long)worker_number(&x, "on t token m");
    int64_t begin = test_now_ms();
    test_proxy_freeze(scene_proxy, true);
    ck_assert(worker_news(&x, "event AT_RISK N", 2 * LEASE_MS));
    ck_assert(worker_news(&x, "event LOST N", 2 * LEASE_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(LEASE_MS + SLACK_MS));
    scene_says(&x, "ok LOST", "on t state m");
    scene_says(&x, "ok 0", "on t remaining m");
    scene_says(&x, "ESTALE", "on t lock m");
    scene_says(&x, "ESTALE", "on t unlock m");

    rlock_mutex_t n;
    uint64_t next = 0;
    rlock_client_t *other = scene_client(scene_server.url, NULL);
    scene_fenced_mutex(&n, other, "N");
    ck_assert_int_eq(rlock_mutex_lock(&n), 0);
    ck_assert_int_eq(rlock_mutex_gettoken(&n, &next), 0);
    ck_assert_uint_gt(next, token);
    test_proxy_freeze(scene_proxy, false);
    scene_says(&x, "EBUSY", "on t trylock m");
    ck_assert_int_eq(rlock_mutex_unlock(&n), 0);
    ck_assert_int_eq(rlock_client_close(other), 0);
}
END_TEST

static bool is_lost(void *arg)
{
    rlock_state_t state = RLOCK_UNHELD;
    return rlock_mutex_getstate(arg, &state) == 0 && state == RLOCK_LOST;
}

/* The release would not free the lock earlier than the end of the lease does. */
START_TEST(lost_hold_does_not_delay_the_close_while_the_server_is_unreachable)
{
    static void (*const go_away[])(void) = { refuse_connections, answer_nothing };
    rlock_mutex_t lost;
    rlock_client_t *client =
        scene_client(test_proxy_url(scene_proxy),
                     SCENE_TIMES(.lease = test_ms(LEASE_MS), .command = test_ms(3000)));

    scene_mutex(&lost, client, "M");
    ck_assert_int_eq(rlock_mutex_lock(&lost), 0);
    go_away[_i]();
    ck_assert(test_wait_until(is_lost, &lost, 4 * LEASE_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&lost), ESTALE);
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_client_close(client), 0);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(1000));
}
END_TEST

START_TEST(a_server_restarted_empty_is_reported_as_a_loss)
{
    x_holds();
    test_server_restart(&scene_server);
    ck_assert(worker_news(&x, "event LOST N", 2 * LEASE_MS));
    scene_says(&x, "ESTALE", "on t unlock m");
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

START_TEST(lost_and_restored_connections_are_reported_once)
{
    scene_worker(&x, test_proxy_url(scene_proxy), NULL, "N", "");
    refuse_connections();
    ck_assert(worker_news(&x, "event DISCONNECTED", SCENE_SOON_MS));
    test_pause_ms(test_ms(STAYS_MS)); /* tries in vain meanwhile */
    be_well_again();
    ck_assert(worker_news(&x, "event CONNECTED", SCENE_SOON_MS));
    ck_assert(!worker_news(&x, "event DISCONNECTED", 0));
}
END_TEST

/* ---- two clients, two servers */

START_TEST(a_silent_server_delays_nothing_of_another_servers_locks)
{
    struct test_server second;
    test_server_start(&second, NULL);
    worker_start(&x, NULL);
    scene_says(&x, "ok", "open %s lease=%ld", scene_server.url, test_ms(LEASE_MS));
    scene_says(&x, "ok", "init here N" SCENE_KIND);
    scene_says(&x, "ok", "open %s lease=%ld", second.url, test_ms(LEASE_MS));
    scene_says(&x, "ok", "init there M" SCENE_KIND);
    scene_says(&x, "ok", "on t lock here");
    scene_says(&x, "ok", "on t lock there");
    int64_t begin = test_now_ms();
    test_server_pause(&scene_server);
    ck_assert(worker_news(&x, "event LOST N", 2 * LEASE_MS)); /* at its own D */
    ck_assert_int_lt(test_now_ms() - begin, test_ms(LEASE_MS + SLACK_MS));
    test_pause_ms(test_ms(LEASE_MS / 3)); /* M lives on renewals by now */
    scene_says(&x, "ok SAFE", "on t state there");
    scene_says(&x, "ok", "on t unlock there");
    scene_says(&x, "ESTALE", "on t unlock here");
    test_server_resume(&scene_server);
    test_server_stop(&second);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("outage");

    TCase *l7 = scene_tcase(s, "L7", open_scene, close_scene);
    tcase_add_test(l7, trylock_gives_ENOTCONN_within_the_command_timeout);
    tcase_add_test(l7, timedlock_gives_ENOTCONN_by_its_deadline);
    tcase_add_test(l7,
                   timedlock_that_is_queued_when_the_server_goes_ends_by_its_deadline);
    tcase_add_test(
        l7, timedlock_at_a_server_that_is_back_is_ETIMEDOUT_though_the_watchdog_pauses);
    tcase_add_test(l7, lock_waits_for_the_server_and_gets_the_lock_when_it_is_back);
    tcase_add_test(l7, lock_with_outage_fail_returns_ENOTCONN_after_the_command_timeout);
    tcase_add_loop_test(
        l7, clocklock_with_outage_fail_waits_for_a_server_until_its_deadline, 0, 2);
    tcase_add_test(l7, unlock_gives_0_in_time_while_the_lease_is_proven);
    tcase_add_test(l7, unlock_that_reached_nobody_is_made_up_for_in_the_background);
    tcase_add_test(l7, fifty_threads_at_a_stopped_server_all_return_in_time);

    TCase *s4 = scene_tcase(s, "S4", open_scene, close_scene);
    tcase_add_test(s4, an_outage_shorter_than_the_lease_is_survived);
    tcase_add_test(s4, an_outage_longer_than_the_lease_is_reported_by_D);
    tcase_add_loop_test(
        s4, lost_hold_does_not_delay_the_close_while_the_server_is_unreachable, 0, 2);
    tcase_add_test(s4, a_server_restarted_empty_is_reported_as_a_loss);
    tcase_add_test(s4, lost_and_restored_connections_are_reported_once);
    tcase_add_test(s4, a_silent_server_delays_nothing_of_another_servers_locks);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
