/* SPDX-License-Identifier: Apache-2.0 */
/* A thousand signals a second on a thread inside the library change no result and no
 * deadline. */
#include "calls.h"
#include "fixture.h"
#include "proxy.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    EACH_MS = 1,
    WAIT_MS = 150,
    SLOW_MS = 100,   /* the timeouts where a server is slow */
    CANCEL_MS = 100, /* how late a call may return (L7) */
    ROOM_MS = 400,   /* added for a busy machine */
    STORMS = 4,      /* with and without SA_RESTART; to the process or to this thread */
    NS_PER_MS = 1000000
};

static rlock_mutex_t m, theirs;
static rlock_client_t *doomed; /* is interrupted by handlers */

static void set_up(void)
{
    fixture_open();
    fixture_load_scripts();
    m = mutex_of(client, "n");
    theirs = mutex_of(fixture_other(), "n");
    proxy = test_proxy_start(&server);
}

static void tear_down(void)
{
    fixture_close();
    test_proxy_stop(proxy);
}

/* ---- storms */

static atomic_long signals;
static timer_t timer;
static int storm_signal;

static void count_it(int number)
{
    (void)number;
    atomic_fetch_add(&signals, 1);
}

static void sleep_in_handler(long ms)
{
    struct timespec ts = { ms / 1000, ms % 1000 * NS_PER_MS };
    nanosleep(&ts, NULL);
    atomic_fetch_add(&signals, 1);
}

static void take_long(int number)
{
    (void)number;
    sleep_in_handler(40);
}

static void take_longer_than_the_deadline(int number)
{
    (void)number;
    sleep_in_handler(2 * WAIT_MS);
}

static void interrupt_it(int number)
{
    (void)number;
    rlock_client_interrupt(doomed);
    atomic_fetch_add(&signals, 1);
}

/* Sends a signal to this thread, first after `first_ms`, then every `each_ms`. */
static void begin_timer(void (*handler)(int), int flags, long first_ms, long each_ms)
{
    struct sigaction action;
    struct sigevent event;
    struct itimerspec when = { { 0, each_ms * NS_PER_MS }, { 0, first_ms * NS_PER_MS } };

    memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    action.sa_flags = flags;
    storm_signal = SIGUSR1;
    atomic_store(&signals, 0);
    ck_assert_int_eq(sigaction(storm_signal, &action, NULL), 0);
    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = storm_signal;
#ifdef sigev_notify_thread_id
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
#else
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
#endif
    ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    ck_assert_int_eq(timer_settime(timer, 0, &when, NULL), 0);
}

static void end_timer(void)
{
    timer_delete(timer);
    signal(storm_signal, SIG_IGN);
}

static void begin_storm(int i)
{
    int flags = i & 1 ? SA_RESTART : 0;
    struct itimerval each = { { 0, EACH_MS * 1000 }, { 0, EACH_MS * 1000 } };
    struct sigaction action;

    if (i & 2) {
        begin_timer(count_it, flags, EACH_MS, EACH_MS);
        return;
    }
    memset(&action, 0, sizeof(action));
    action.sa_handler = count_it;
    action.sa_flags = flags;
    storm_signal = SIGALRM;
    atomic_store(&signals, 0);
    ck_assert_int_eq(sigaction(storm_signal, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &each, NULL), 0);
}

static void end_storm(int i)
{
    struct itimerval never = { { 0, 0 }, { 0, 0 } };

    if (i & 2) {
        end_timer();
    } else {
        setitimer(ITIMER_REAL, &never, NULL);
        signal(storm_signal, SIG_IGN);
    }
    ck_assert_int_gt(atomic_load(&signals), 0);
}

/* ---- results */

START_TEST(storm_changes_no_result)
{
    long rounds = test_count(50, 2);

    OK(rlock_mutex_lock(&theirs));
    begin_storm(_i);
    for (long i = 0; i < rounds; i++) {
        struct calls calls = { .client = client,
                               .url = server.url,
                               .theirs = "n",
                               .free_one = "of the calls",
                               .wait_ms = test_ms(50) };
        calls_of_all(&calls);
        ck_assert_msg(!calls.wrong, "%s: %s", calls.wrong, rlock_strerror(calls.rc));
    }
    end_storm(_i);
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

static int run_unlock_when_waited_for(void *mutex)
{
    if (!wait_waiters(client, 1))
        return ETIMEDOUT;
    test_pause_ms(100);
    return rlock_mutex_unlock(mutex);
}

START_TEST(storm_ends_no_wait)
{
    struct actor holder;

    actor_start(&holder);
    OK(actor_does(&holder, run_lock, &theirs));
    actor_begin(&holder, run_unlock_when_waited_for, &theirs);
    begin_storm(_i);
    int rc = rlock_mutex_lock(&m);
    end_storm(_i);
    OK(rc);
    OK(actor_rc(&holder));
    OK(rlock_mutex_unlock(&m));
    actor_end(&holder);
}
END_TEST

/* ---- deadlines */

enum form { TIMED, CLOCK_REAL, CLOCK_MONO, IN_VAIN, WAITFREE, READ, WRITE, FORMS };

static const char *const form_names[] = {
    "timedlock", "clocklock",   "clocklock, monotonic", "in vain",
    "waitfree",  "timedrdlock", "timedwrlock"
};

struct locks {
    rlock_client_t *client;
    rlock_mutex_t mutex, own; /* own: NORMAL, held by this thread */
    rlock_rwlock_t rwlock;
};

/* Makes locks of a client at the server; `own` is held. */
static struct locks locks_of(rlock_client_t *c)
{
    struct locks l = { .client = c,
                       .mutex = mutex_of(c, "n"),
                       .own = typed_mutex(c, "own", RLOCK_MUTEX_NORMAL),
                       .rwlock = rwlock_of(c, "n") };
    OK(rlock_mutex_lock(&l.own));
    return l;
}

static int wait_until(struct locks *l, enum form form, clockid_t clock,
                      const struct timespec *at)
{
    switch (form) {
    case TIMED:
        return rlock_mutex_timedlock(&l->mutex, at);
    case CLOCK_REAL:
    case CLOCK_MONO:
        return rlock_mutex_clocklock(&l->mutex, clock, at);
    case IN_VAIN:
        return rlock_mutex_timedlock(&l->own, at);
    case WAITFREE:
        return rlock_waitfree(l->client, "n", at);
    case READ:
        return rlock_rwlock_timedrdlock(&l->rwlock, at);
    default:
        return rlock_rwlock_timedwrlock(&l->rwlock, at);
    }
}

static long ms_past(clockid_t clock, const struct timespec *at)
{
    struct timespec now;
    clock_gettime(clock, &now);
    int64_t ns = (int64_t)(now.tv_sec - at->tv_sec) * 1000 * NS_PER_MS +
                 (now.tv_nsec - at->tv_nsec);
    return ns < 0 ? -1 : (long)(ns / NS_PER_MS);
}

/* Asserts that each form of waiting ends not before its deadline, and not `late_ms` after
 * it. */
static void expect_deadlines(struct locks *l, long late_ms)
{
    for (enum form form = TIMED; form < FORMS; form++) {
        clockid_t clock = form == CLOCK_MONO ? CLOCK_MONOTONIC : CLOCK_REALTIME;
        struct timespec at = test_in_ms(clock, WAIT_MS);
        int rc = wait_until(l, form, clock, &at);
        long past = ms_past(clock, &at);
        ck_assert_msg(rc == ETIMEDOUT, "%s: %s", form_names[form], rlock_strerror(rc));
        ck_assert_msg(past >= 0 && past <= late_ms, "%s: late by %ld ms",
                      form_names[form], past);
    }
}

START_TEST(storm_moves_no_deadline)
{
    struct locks l = locks_of(client);

    OK(rlock_mutex_lock(&theirs));
    begin_storm(_i);
    expect_deadlines(&l, CANCEL_MS + test_ms(ROOM_MS));
    end_storm(_i);
    OK(rlock_mutex_unlock(&theirs));
    OK(rlock_mutex_unlock(&l.own));
}
END_TEST

START_TEST(handler_that_takes_long_prolongs_no_deadline)
{
    struct locks l = locks_of(client);

    OK(rlock_mutex_lock(&theirs));
    begin_timer(take_long, _i ? SA_RESTART : 0, 60, 60);
    expect_deadlines(&l, CANCEL_MS + test_ms(ROOM_MS));
    end_timer();
    ck_assert_int_gt(atomic_load(&signals), FORMS);
    OK(rlock_mutex_unlock(&theirs));
    OK(rlock_mutex_unlock(&l.own));
}
END_TEST

START_TEST(handler_that_outlasts_the_deadline_is_waited_for_and_no_more)
{
    OK(rlock_mutex_lock(&theirs));
    struct timespec at = test_in_ms(CLOCK_REALTIME, WAIT_MS);
    begin_timer(take_longer_than_the_deadline, 0, WAIT_MS / 2, 0);
    int rc = rlock_mutex_timedlock(&m, &at);
    long past = ms_past(CLOCK_REALTIME, &at);
    end_timer();
    OK(rlock_mutex_unlock(&theirs));
    EXPECT(rc, ETIMEDOUT);
    ck_assert_int_eq(atomic_load(&signals), 1);
    ck_assert_int_ge(past, WAIT_MS);
    ck_assert_int_le(past, 3 * WAIT_MS / 2 + CANCEL_MS + test_ms(ROOM_MS));
}
END_TEST

/* ---- servers that are slow */

/* Tests i and i + STORMS run the same storm, over different kinds of sockets. */
static rlock_client_t *open_slow(int i)
{
    bool tcp = (i ^ i >> 1 ^ i >> 2) & 1;
    char url[TEST_URL_MAX + 64];
    rlock_client_t *c = NULL;

    snprintf(url, sizeof(url), "%s?commandtimeout=%ld&connecttimeout=%ld",
             tcp ? test_proxy_tcp_url(proxy) : test_proxy_url(proxy), test_ms(SLOW_MS),
             test_ms(SLOW_MS));
    OK(rlock_client_open(&c, url, NULL));
    return c;
}

/* Asserts that each call ends at the command timeout during the storm. (Closing is not
 * among the calls: it need not wait.) */
static void expect_command_timeout(rlock_client_t *c, const char *name)
{
    rlock_mutex_t mutex = mutex_of(c, name);
    rlock_info_t *info;
    int64_t begun = test_now_ms(), took;
    long timeout = test_ms(SLOW_MS);

    for (int call = 0; call < 3; call++) {
        begun = test_now_ms();
        int rc = call == 0   ? rlock_mutex_trylock(&mutex)
                 : call == 1 ? rlock_client_ping(c)
                             : rlock_inspect(c, name, &info);
        took = test_now_ms() - begun;
        ck_assert_msg(rc == ENOTCONN, "call %d: %s", call, rlock_strerror(rc));
        ck_assert_msg(took >= timeout - 1 && took <= timeout + test_ms(ROOM_MS),
                      "call %d took %ld ms", call, (long)took);
    }
}

static void expect_close_in_time(rlock_client_t *c)
{
    int64_t begun = test_now_ms();
    OK(rlock_client_close(c));
    ck_assert_int_le(test_now_ms() - begun, test_ms(SLOW_MS) + test_ms(ROOM_MS));
}

START_TEST(storm_moves_no_deadline_of_connecting_to_a_silent_server)
{
    test_proxy_set_mode(proxy, TEST_PROXY_SILENT);
    begin_storm(_i);
    rlock_client_t *c = open_slow(_i);
    expect_command_timeout(c, "far");
    expect_close_in_time(c);
    end_storm(_i);
}
END_TEST

START_TEST(storm_moves_no_deadline_of_a_server_that_falls_silent)
{
    rlock_client_t *c = open_slow(_i);
    rlock_mutex_t held = mutex_of(c, "held");

    OK(rlock_mutex_lock(&held));
    test_proxy_freeze(proxy, true);
    begin_storm(_i);
    int64_t begun = test_now_ms();
    int rc = rlock_mutex_unlock(&held); /* the watchdog continues the release */
    int64_t took = test_now_ms() - begun;
    OK(rc);
    ck_assert_int_le(took, test_ms(SLOW_MS) + test_ms(ROOM_MS));
    expect_command_timeout(c, "far");
    expect_close_in_time(c);
    end_storm(_i);
    test_proxy_freeze(proxy, false);
}
END_TEST

START_TEST(storm_moves_no_deadline_of_a_server_that_drips)
{
    rlock_client_t *c = open_slow(_i);

    OK(rlock_client_ping(c));
    int slow = TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_DRIP,
                         .contains = "PING", .delay_ms = test_ms(SLOW_MS) / 20);
    begin_storm(_i);
    OK(rlock_client_ping(c)); /* 7 bytes */
    test_proxy_remove(proxy, slow);
    TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_DRIP, .contains = "PING",
              .delay_ms = test_ms(SLOW_MS) / 3);
    int64_t begun = test_now_ms();
    int rc = rlock_client_ping(c);
    int64_t took = test_now_ms() - begun;
    end_storm(_i);
    EXPECT(rc, ENOTCONN);
    ck_assert_int_ge(took, test_ms(SLOW_MS) - 1);
    ck_assert_int_le(took, test_ms(SLOW_MS) + test_ms(ROOM_MS));
    OK(rlock_client_close(c));
}
END_TEST

/* ---- rlock_client_interrupt */

static int wait_for_ever(struct locks *l, enum form form)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(60000));

    switch (form) {
    case CLOCK_REAL:
        return rlock_mutex_lock(&l->mutex);
    case WAITFREE:
        return rlock_waitfree(l->client, "n", NULL);
    case READ:
        return rlock_rwlock_rdlock(&l->rwlock);
    case WRITE:
        return rlock_rwlock_wrlock(&l->rwlock);
    default:
        return wait_until(l, form, CLOCK_MONOTONIC, &at);
    }
}

START_TEST(interrupt_by_a_handler_ends_every_form_of_waiting_and_no_hold)
{
    doomed = open_with("");
    struct locks l = locks_of(doomed);

    OK(rlock_mutex_lock(&theirs));
    begin_timer(interrupt_it, SA_RESTART, 50, 0);
    int rc =
        _i == CLOCK_MONO ? rlock_mutex_lock(&l.mutex) : wait_for_ever(&l, (enum form)_i);
    end_timer();
    EXPECT(rc, ECANCELED);
    ck_assert_int_eq(state_of(&l.own), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&l.own));
    OK(rlock_mutex_unlock(&theirs));
    close_client(doomed);
}
END_TEST

START_TEST(interrupt_by_a_handler_at_any_moment_is_harmless)
{
    long rounds = test_count(2000, 100);

    doomed = open_with("");
    struct locks l = locks_of(doomed);
    begin_timer(interrupt_it, SA_RESTART, EACH_MS, EACH_MS);
    for (long i = 0; i < rounds || atomic_load(&signals) < 20; i++) {
        OK(rlock_mutex_lock(&m));
        OK(rlock_mutex_unlock(&m));
        OK(rlock_mutex_trylock(
            &l.mutex)); /* its client is interrupted; no wait is needed */
        OK(rlock_mutex_unlock(&l.mutex));
        OK(rlock_client_ping(doomed));
    }
    end_timer();
    OK(rlock_mutex_unlock(&l.own));
    close_client(doomed);
}
END_TEST

int main(void)
{
    int slow_ones = (int)test_count(2 * STORMS, STORMS);
    Suite *suite = suite_create("signals");
    TCase *tc = tcase_create("signals");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, storm_changes_no_result, 0, STORMS);
    tcase_add_loop_test(tc, storm_ends_no_wait, 0, STORMS);
    tcase_add_loop_test(tc, storm_moves_no_deadline, 0, STORMS);
    tcase_add_loop_test(tc, handler_that_takes_long_prolongs_no_deadline, 0, 2);
    tcase_add_test(tc, handler_that_outlasts_the_deadline_is_waited_for_and_no_more);
    suite_add_tcase(suite, tc);
    tc = tcase_create("slow");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, storm_moves_no_deadline_of_connecting_to_a_silent_server, 0,
                        slow_ones);
    tcase_add_loop_test(tc, storm_moves_no_deadline_of_a_server_that_falls_silent, 0,
                        slow_ones);
    tcase_add_loop_test(tc, storm_moves_no_deadline_of_a_server_that_drips, 0, slow_ones);
    suite_add_tcase(suite, tc);
    tc = tcase_create("interrupt");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, interrupt_by_a_handler_ends_every_form_of_waiting_and_no_hold,
                        0, FORMS);
    tcase_add_test(tc, interrupt_by_a_handler_at_any_moment_is_harmless);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
