/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A deadline that passes while the machine stands still: if the lock became free
 * meanwhile, the call gets it. Otherwise the call returns what its process knew of the
 * lock, and a caller that has sent no request yet sends one. Here a thread stands still
 * in the handler of a signal, or behind a slow proxy.
 */
#include "fixture.h"

#include "net/script.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOON_MS = 10000 };

static rlock_client_t *c;
static rlock_mutex_t m;

/* ---- a thread that stands still */

static int stood[2], goes_on[2];
static int freed; /* an index of frees */

static void stand_still(int sig)
{
    char byte = (char)sig;
    int saved = errno;
    if (write(stood[1], &byte, 1) != 1 || read(goes_on[0], &byte, 1) != 1)
        abort();
    errno = saved;
}

static void open_pipes(void)
{
    struct sigaction action = { .sa_handler = stand_still, .sa_flags = SA_RESTART };
    ck_assert_int_eq(pipe(stood), 0);
    ck_assert_int_eq(pipe(goes_on), 0);
    sigemptyset(&action.sa_mask);
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
}

static void close_pipes(void)
{
    for (int i = 0; i < 2; i++) {
        close(stood[i]);
        close(goes_on[i]);
    }
}

static void set_up(void)
{
    fixture_open_proxied();
    open_pipes();
}

static void tear_down(void)
{
    close_client(c);
    close_pipes();
    fixture_close_proxied();
}

static void open_here(const char *parameters)
{
    c = open_at(test_proxy_url(proxy), parameters);
    m = mutex_of(c, "n");
}

struct timed {
    struct timespec at;
    void *lock;
    int kind; /* an index of frees */
};

static int run_timedlock(void *arg)
{
    struct timed *timed = arg;
    int rc = rlock_mutex_clocklock(timed->lock, CLOCK_MONOTONIC, &timed->at);
    return rc == 0 ? rlock_mutex_unlock(timed->lock) : rc;
}

static void wait_past(const struct timespec *at)
{
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, at, NULL) == EINTR)
        ;
}

/* The task waits until its deadline has passed, and goes on only after `meanwhile`. */
static void stand_past_deadline(struct task *task, const struct timed *timed,
                                int (*meanwhile)(void *), void *lock)
{
    char byte = 0;
    ck_assert(wait_waiters(c, 1));
    ck_assert_int_eq(pthread_kill(task->thread, SIGUSR1), 0);
    ck_assert_int_eq(read(stood[0], &byte, 1), 1);
    wait_past(&timed->at);
    if (meanwhile)
        OK(meanwhile(lock));
    ck_assert_int_eq(write(goes_on[1], &byte, 1), 1);
}

/* ---- what was known */

/* How the lock becomes free while its waiter stands still past its deadline. */
static const struct {
    bool writes, reads; /* of a read-write lock; else a mutex */
    bool here;          /* by another thread of its client, not by another client */
    long more_ms;       /* it goes on this long after that; a grant lasts 100 */
} frees[] = {
    { false, false, true, 100 },  { false, false, false, 50 },
    { false, false, false, 400 }, { true, false, false, 400 },
    { false, true, false, 400 },
};

static int run_timed(void *arg)
{
    struct timed *timed = arg;
    if (!frees[timed->kind].writes && !frees[timed->kind].reads)
        return run_timedlock(timed);
    int rc = frees[timed->kind].writes
                 ? rlock_rwlock_clockwrlock(timed->lock, CLOCK_MONOTONIC, &timed->at)
                 : rlock_rwlock_clockrdlock(timed->lock, CLOCK_MONOTONIC, &timed->at);
    return rc == 0 ? rlock_rwlock_unlock(timed->lock) : rc;
}

/* A call waits when the server has answered that others have the lock. Within the request
 * before that, it would stand still for too short a time to count as late. */
static bool has_begun_to_wait(void *arg)
{
    const rlock_stats_t *before = arg;
    rlock_stats_t now;
    OK(rlock_client_getstats(c, &now));
    return now.waits > before->waits;
}

static int run_unlock_and_wait(void *lock)
{
    int rc = frees[freed].writes || frees[freed].reads ? rlock_rwlock_unlock(lock)
                                                       : rlock_mutex_unlock(lock);
    test_pause_ms(frees[freed].more_ms);
    return rc;
}

/* POSIX requires that a call gets a lock that is free, even past its deadline. The one
 * attempt that is left has 50 ms, which a busy machine may use up. */
START_TEST(lock_freed_during_a_standstill_past_the_deadline_is_acquired)
{
    enum { TRIES = 5 };
    int rc = -1;
    freed = _i;
    bool rw = frees[_i].writes || frees[_i].reads;
    open_here("?handoffms=0&presence=100");
    rlock_client_t *holder = frees[_i].here ? c : fixture_other();
    rlock_mutex_t theirs = mutex_of(holder, "n");
    rlock_rwlock_t rw_ours = rwlock_of(c, "rw"), rw_theirs = rwlock_of(holder, "rw");
    void *held = rw ? (void *)&rw_theirs : (void *)&theirs;
    for (int i = 0; rc != 0 && i < TRIES; i++) {
        struct task task;
        rlock_stats_t before;
        struct timed timed = { test_in_ms(CLOCK_MONOTONIC, test_ms(300)),
                               rw ? (void *)&rw_ours : (void *)&m, _i };
        OK(rw ? rlock_rwlock_wrlock(held) : rlock_mutex_lock(held));
        OK(rlock_client_getstats(c, &before));
        task_start(&task, run_timed, &timed);
        ck_assert(test_wait_until(has_begun_to_wait, &before, SOON_MS));
        stand_past_deadline(&task, &timed, run_unlock_and_wait, held);
        rc = task_join(&task);
        ck_assert(rc == 0 || rc == ETIMEDOUT || rc == ENOTCONN);
    }
    OK(rc);
}
END_TEST

/* The task stands still while the proxy's rule holds the reply to its request; the reply
 * comes, and the deadline passes. */
static void stand_within_request(struct task *task, const struct timed *timed, int rule)
{
    char byte = 0;
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    ck_assert_int_eq(pthread_kill(task->thread, SIGUSR1), 0);
    ck_assert_int_eq(read(stood[0], &byte, 1), 1);
    test_proxy_release(proxy, rule);
    wait_past(&timed->at);
}

/* The thread stands still while it waits for the reply to its first request; that reply
 * says that others have the lock. */
START_TEST(lock_freed_during_a_standstill_within_a_request_is_acquired)
{
    enum { TRIES = 5 };
    int rc = -1;
    open_here("?handoffms=0&presence=100");
    rlock_mutex_t theirs = mutex_of(fixture_other(), "n");
    OK(rlock_mutex_lock(&theirs)); /* both are connected */
    OK(rlock_mutex_unlock(&theirs));
    OK(rlock_client_ping(c));
    for (int i = 0; rc != 0 && i < TRIES; i++) {
        struct task task;
        struct timed timed = { test_in_ms(CLOCK_MONOTONIC, test_ms(300)), &m, 0 };
        int rule = TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_HOLD, .count = 1,
                             .contains = rlk_scripts[RLK_MUTEX_ACQUIRE].sha);
        char byte = 0;
        OK(rlock_mutex_lock(&theirs));
        task_start(&task, run_timedlock, &timed);
        stand_within_request(&task, &timed, rule);
        OK(rlock_mutex_unlock(&theirs));
        test_pause_ms(100); /* beyond what a request may take after the deadline */
        ck_assert_int_eq(write(goes_on[1], &byte, 1), 1);
        rc = task_join(&task);
        test_proxy_remove_all(proxy);
        ck_assert(rc == 0 || rc == ETIMEDOUT || rc == ENOTCONN);
    }
    OK(rc);
}
END_TEST

START_TEST(reply_that_came_during_a_standstill_is_read)
{
    struct task task;
    rlock_stats_t stats;
    char byte = 0;
    open_here("?handoffms=0");
    OK(rlock_client_ping(c)); /* connected */
    int rule = TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_HOLD, .count = 1,
                         .contains = rlk_scripts[RLK_MUTEX_ACQUIRE].sha);
    struct timed timed = { test_in_ms(CLOCK_MONOTONIC, test_ms(300)), &m, 0 };
    task_start(&task, run_timedlock, &timed);
    stand_within_request(&task, &timed, rule);
    test_pause_ms(100); /* beyond what a request may take after the deadline */
    ck_assert_int_eq(write(goes_on[1], &byte, 1), 1);
    OK(task_join(&task));
    OK(rlock_client_getstats(c, &stats));
    ck_assert_uint_eq(stats.unknown_outcomes, 0);
}
END_TEST

/* A reply that comes within the time that a request has is no standstill, though the
 * deadline has passed: the call makes no second attempt. */
START_TEST(slow_reply_behind_the_deadline_is_the_last)
{
    enum { TRIES = 20, DEADLINE_MS = 5, DELAY_MS = 30, ATTEMPT_MS = 50 };
    bool seen = false;
    open_here("?handoffms=0");
    rlock_mutex_t theirs = mutex_of(fixture_other(), "n");
    OK(rlock_mutex_lock(&theirs));
    OK(rlock_client_ping(c)); /* connected */
    for (int i = 0; !seen && i < TRIES; i++) {
        rlock_stats_t before, after;
        int rule = TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_DELAY,
                             .delay_ms = DELAY_MS,
                             .contains = rlk_scripts[RLK_MUTEX_ACQUIRE].sha);
        struct timespec at = test_in_ms(CLOCK_MONOTONIC, DEADLINE_MS);
        OK(rlock_client_getstats(c, &before));
        int64_t begin = test_now_ms();
        int rc = rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, &at);
        int64_t took = test_now_ms() - begin;
        OK(rlock_client_getstats(c, &after));
        unsigned hits = test_proxy_hits(proxy, rule);
        test_proxy_remove_all(proxy);
        if (took > DEADLINE_MS + ATTEMPT_MS ||
            after.unknown_outcomes != before.unknown_outcomes)
            continue; /* a busy machine */
        seen = true;
        ck_assert_int_eq(rc, ETIMEDOUT);
        ck_assert_uint_eq(hits, 1);
    }
    ck_assert(seen || test_ms(1) > 1);
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

START_TEST(what_another_thread_holds_is_busy_behind_a_server_that_is_away)
{
    struct task task;
    open_here("?handoffms=0&commandtimeout=300");
    OK(rlock_mutex_lock(&m));
    test_server_pause(&server);
    struct timed timed = { test_in_ms(CLOCK_MONOTONIC, test_ms(300)), &m, 0 };
    task_start(&task, run_timedlock, &timed);
    ck_assert_int_eq(task_join(&task), ETIMEDOUT);
    test_server_resume(&server);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(requester_without_a_reply_after_the_holder_left_gets_ENOTCONN)
{
    struct task task;
    open_here("?handoffms=0&commandtimeout=200");
    OK(rlock_mutex_lock(&m));
    struct timed timed = { test_in_ms(CLOCK_MONOTONIC, test_ms(1000)), &m, 0 };
    task_start(&task, run_timedlock, &timed);
    ck_assert(wait_waiters(c, 1));
    test_server_pause(&server);
    int rc = rlock_mutex_unlock(&m); /* the outcome may be unknown */
    ck_assert(rc == 0 || rc == ESTALE || rc == ENOTCONN);
    rc = task_join(&task);
    test_server_resume(&server);
    ck_assert_int_eq(rc, ENOTCONN);
    ck_assert(wait_key("n", false, SOON_MS));
}
END_TEST

/* ---- a caller that has sent no request */

/* What the process retains is released first, in one round trip, and the deadline passes
 * meanwhile: no request for the lock has been sent by then. */
START_TEST(requester_past_its_deadline_asks_once)
{
    enum { ONE_WAY_MS = 20, DEADLINE_MS = 10 };
    open_here("?retain=60000");
    OK(run_pair(&m));
    ck_assert(test_redis_exists(redis, "n")); /* retained */
    /* Delays that release. The one late attempt has 50 ms, with any tool. */
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_DELAY, .delay_ms = ONE_WAY_MS,
              .count = 1);
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, DEADLINE_MS);
    /* a lease other than that of the retained hold, which therefore cannot be used */
    int rc = rlock_mutex_clocklock_lease(&m, CLOCK_MONOTONIC, &at, test_ms(SOON_MS));
    test_proxy_remove_all(proxy);
    OK(rc);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

static int run_lock_pair(void *unused)
{
    rlock_mutex_t own = m;
    (void)unused;
    int rc = rlock_mutex_lock(&own);
    return rc == 0 ? rlock_mutex_unlock(&own) : rc;
}

/* Nothing is known of the lock yet, nor of any trouble: another thread's request is under
 * way. */
START_TEST(short_deadline_beside_another_requester_returns_no_error)
{
    struct task task;
    open_here("?handoffms=0&commandtimeout=30000");
    OK(rlock_client_ping(c)); /* connected */
    int rule = TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_HOLD, .count = 1,
                         .contains = rlk_scripts[RLK_MUTEX_ACQUIRE].sha);
    task_start(&task, run_lock_pair, NULL);
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, 1);
    EXPECT(rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, &at), ETIMEDOUT);
    test_proxy_release(proxy, rule);
    OK(task_join(&task));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("deadlines");
    TCase *tc = tcase_create("deadlines");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, lock_freed_during_a_standstill_past_the_deadline_is_acquired,
                        0, sizeof(frees) / sizeof(frees[0]));
    tcase_add_test(tc, lock_freed_during_a_standstill_within_a_request_is_acquired);
    tcase_add_test(tc, reply_that_came_during_a_standstill_is_read);
    tcase_add_test(tc, slow_reply_behind_the_deadline_is_the_last);
    tcase_add_test(tc, what_another_thread_holds_is_busy_behind_a_server_that_is_away);
    tcase_add_test(tc, requester_without_a_reply_after_the_holder_left_gets_ENOTCONN);
    tcase_add_test(tc, requester_past_its_deadline_asks_once);
    tcase_add_test(tc, short_deadline_beside_another_requester_returns_no_error);
    suite_add_tcase(suite, tc);
    return suite;
}

int main(void)
{
    return test_run_suite(make_suite());
}
