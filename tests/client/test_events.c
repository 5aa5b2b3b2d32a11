/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_events,rwlock_events */
/* The event callback; and cancellation, fork and the end of threads and processes. */
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOON_MS = 10000 };

static rlock_mutex_t m, theirs;

static void set_up(void)
{
    fixture_open();
    m = mutex_of(client, "n");
    theirs = mutex_of(fixture_other(), "n");
}

/* ---- what the callback gets */

START_TEST(outage_shorter_than_the_lease_is_AT_RISK_and_SAFE_AGAIN)
{
    char parameters[96];
    long lease = test_ms(900);
    snprintf(parameters, sizeof(parameters), "?lease=%ld&commandtimeout=%ld", lease,
             test_ms(100));
    reopen_with(parameters);
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    test_server_pause(&server);
    const struct told *risk = event_of(RLOCK_EVENT_AT_RISK, SOON_MS);
    rlock_state_t state = state_of(&m);
    test_server_resume(&server);
    ck_assert_ptr_nonnull(risk);
    ck_assert_str_eq(risk->name, "n");
    ck_assert_int_gt(risk->remaining_ms, 0);
    ck_assert_int_le(risk->remaining_ms, lease / 3 + 1);
    ck_assert_int_eq(state, RLOCK_AT_RISK);
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_SAFE_AGAIN, SOON_MS));
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(outage_longer_than_the_lease_is_LOST_by_D)
{
    char parameters[96];
    long lease = test_ms(300);
    snprintf(parameters, sizeof(parameters), "?lease=%ld&commandtimeout=%ld", lease,
             test_ms(100));
    reopen_with(parameters);
    m = fenced_mutex(client, "n");
    OK(rlock_mutex_lock(&m));
    uint64_t token = token_of(&m);
    int64_t start = test_now_ms();
    test_server_pause(&server);
    const struct told *lost = event_of(RLOCK_EVENT_LOST, SOON_MS);
    int64_t took = test_now_ms() - start;
    test_server_resume(&server);
    ck_assert_ptr_nonnull(lost);
    ck_assert_uint_eq(lost->token, token);
    ck_assert_int_eq(lost->remaining_ms, 0);
    ck_assert_str_ne(lost->reason, "");
    ck_assert_int_le(took, lease + test_ms(50));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

START_TEST(server_that_goes_and_comes_is_DISCONNECTED_and_CONNECTED)
{
    test_server_kill(&server);
    const struct told *down = event_of(RLOCK_EVENT_DISCONNECTED, SOON_MS);
    ck_assert_ptr_nonnull(down);
    ck_assert_str_eq(down->name, "");
    test_redis_close(redis);
    test_server_restart(&server);
    redis = test_redis_connect(server.path);
    const struct told *up = NULL, *next;
    while ((next = event_of(RLOCK_EVENT_CONNECTED, up ? 0 : SOON_MS)) != NULL)
        up = next;
    ck_assert_ptr_nonnull(up);
    ck_assert_str_eq(up->name, "");
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

static pthread_t dead_thread;

static int run_lock_and_end(void *mutex)
{
    dead_thread = pthread_self();
    int rc = rlock_mutex_lock(mutex);
    return rc != 0 ? rc : rlock_mutex_lock(mutex); /* two levels */
}

START_TEST(thread_that_ends_holding_is_OWNER_DIED_and_the_lock_is_free)
{
    rlock_mutex_t fenced = fenced_mutex(client, "n");
    OK(in_thread(run_lock_and_end, &fenced));
    const struct told *died = event_of(RLOCK_EVENT_OWNER_DIED, SOON_MS);
    ck_assert_ptr_nonnull(died);
    ck_assert_str_eq(died->name, "n");
    ck_assert_int_eq(died->type, RLOCK_TYPE_MUTEX);
    ck_assert(pthread_equal(died->thread, dead_thread));
    ck_assert_uint_ne(died->token, 0);
    struct timespec at =
        test_in_ms(CLOCK_REALTIME, test_ms(5000)); /* far below the lease */
    OK(rlock_mutex_timedlock(&theirs, &at));
    OK(rlock_mutex_unlock(&theirs));
    ck_assert_uint_eq(stats_of(client).owners_died, 1);
    ck_assert_uint_eq(stats_of(client).holds_now, 0);
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}
END_TEST

START_TEST(waiting_thread_gets_the_lock_of_a_thread_that_ended)
{
    struct task task;
    OK(in_thread(run_lock_and_end, &m));
    task_start(&task, run_pair, &m);
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
}
END_TEST

/* ---- what a callback may do */

static rlock_client_t *callers_own;
static rlock_mutex_t for_callback, lost, idle;
static atomic_int callback_rc, callback_done;

static void calls_the_library(const rlock_event_t *event, void *arg)
{
    rlock_mutex_t *mutex = arg;
    rlock_stats_t stats;
    rlock_info_t *info = NULL;

    if (event->kind != RLOCK_EVENT_LOST)
        return;
    int rc = rlock_mutex_lock(mutex);
    if (rc == 0)
        rc = rlock_mutex_unlock(mutex);
    if (rc == 0)
        rc = rlock_client_getstats(callers_own, &stats);
    if (rc == 0 && rlock_inspect(callers_own, "unused", &info) != ENOENT)
        rc = EPROTO;
    if (rc == 0)
        rc = rlock_client_ping(callers_own);
    /* calls for the lost lock, too: another thread has its hold, and has not unlocked it
     * yet */
    rlock_state_t state = RLOCK_SAFE;
    unsigned count = 7;
    if (rc == 0 && (rlock_mutex_unlock(&lost) != EPERM ||
                    rlock_mutex_getstate(&lost, &state) != 0 || state != RLOCK_UNHELD ||
                    rlock_mutex_getholdcount(&lost, &count) != 0 || count != 0))
        rc = EPROTO;
    if (rc == 0)
        rc = rlock_mutex_destroy(&idle);
    atomic_store(&callback_rc, rc);
    atomic_store(&callback_done, 1);
}

static void closes_its_client(const rlock_event_t *event, void *arg)
{
    (void)arg;
    if (event->kind != RLOCK_EVENT_LOST)
        return;
    atomic_store(&callback_rc, rlock_client_close(callers_own));
    atomic_store(&callback_done, 1);
}

static rlock_client_t *open_calling(rlock_event_fn fn, void *arg)
{
    rlock_clientattr_t attr;
    rlock_client_t *c = NULL;
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_seteventcallback(&attr, fn, arg));
    OK(rlock_client_open(&c, server.url, &attr));
    OK(rlock_clientattr_destroy(&attr));
    atomic_store(&callback_rc, -1);
    atomic_store(&callback_done, 0);
    return c;
}

static bool callback_ran(void *arg)
{
    (void)arg;
    return atomic_load(&callback_done) == 1;
}

START_TEST(callback_may_call_the_library)
{
    callers_own = open_calling(calls_the_library, &for_callback);
    for_callback = mutex_of(callers_own, "another");
    idle = mutex_of(callers_own, "idle");
    lost = mutex_of(callers_own, "lost");
    OK(rlock_mutex_lock_lease(&lost, 60));
    ck_assert(test_wait_until(callback_ran, NULL, SOON_MS));
    OK(atomic_load(&callback_rc));
    EXPECT(rlock_mutex_lock(&idle), EINVAL);
    EXPECT(rlock_mutex_unlock(&lost), ESTALE);
    OK(rlock_mutex_destroy(&lost));
    OK(rlock_client_close(callers_own));
}
END_TEST

START_TEST(callback_may_close_its_own_client)
{
    callers_own = open_calling(closes_its_client, NULL);
    lost = mutex_of(callers_own, "lost");
    OK(rlock_mutex_lock_lease(&lost, 60));
    ck_assert(test_wait_until(callback_ran, NULL, SOON_MS));
    OK(atomic_load(&callback_rc));
    EXPECT(rlock_client_ping(callers_own), EINVAL);
    EXPECT(rlock_mutex_unlock(&lost), ESTALE);
    /* the threads that the callback ran on still serve the other clients */
    OK(rlock_mutex_lock_lease(&m, 60));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

static char last_line[512];
static atomic_int lines;

static void on_line(int level, const char *line, void *arg)
{
    if (level <= 4 && arg == last_line) {
        snprintf(last_line, sizeof(last_line), "%s", line);
        atomic_fetch_add(&lines, 1);
    }
}

static bool logged(void *arg)
{
    (void)arg;
    return atomic_load(&lines) > 0;
}

START_TEST(loss_is_logged)
{
    atomic_store(&lines, 0);
    rlock_setlogger(on_line, last_line, 4);
    rlock_mutex_t odd = mutex_of(client, "a\nb");
    OK(rlock_mutex_lock_lease(&odd, 60));
    /* the lock is at risk first, then lost */
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    ck_assert(test_wait_until(logged, NULL, SOON_MS));
    rlock_setlogger(NULL, NULL, 0);
    ck_assert_ptr_nonnull(strstr(last_line, "lost"));
    ck_assert_ptr_null(strchr(last_line, '\n'));
    EXPECT(rlock_mutex_unlock(&odd), ESTALE);
}
END_TEST

/* ---- cancellation */

static atomic_int cancel_step;
static atomic_int cancel_rc;

static void unlock_at_end(void *mutex)
{
    atomic_store(&cancel_rc, rlock_mutex_unlock(mutex));
}

static int run_until_cancelled(void *mutex)
{
    int rc = rlock_mutex_lock(mutex);
    if (rc != 0)
        return rc;
    pthread_cleanup_push(unlock_at_end, mutex);
    atomic_store(&cancel_step, 1); /* the thread has the lock, cancelled or not */
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return 77;
}

static void *thread_of_cancel(void *mutex)
{
    run_until_cancelled(mutex);
    return NULL;
}

START_TEST(cancel_of_a_waiting_thread_takes_effect_after_the_call)
{
    pthread_t thread;
    void *result = NULL;
    rlock_mutex_t *blocker = _i ? &m : &theirs; /* a local wait, and one at the server */
    rlock_mutex_t waiter = m;

    atomic_store(&cancel_step, 0);
    atomic_store(&cancel_rc, -1);
    OK(rlock_mutex_lock(blocker));
    ck_assert_int_eq(pthread_create(&thread, NULL, thread_of_cancel, &waiter), 0);
    ck_assert(wait_waiters(client, 1));
    ck_assert_int_eq(pthread_cancel(thread), 0);
    test_pause_ms(50);
    ck_assert_uint_eq(stats_of(client).waiters_now, 1);
    ck_assert_int_eq(atomic_load(&cancel_step), 0);
    OK(rlock_mutex_unlock(blocker));
    pthread_join(thread, &result);
    ck_assert_ptr_eq(result, PTHREAD_CANCELED);
    ck_assert_int_eq(atomic_load(&cancel_step), 1);
    ck_assert_int_eq(atomic_load(&cancel_rc), 0);
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

START_TEST(cancel_state_is_as_it_was)
{
    int state = -1;
    for (int wanted = 0; wanted < 2; wanted++) {
        int set = wanted ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE;
        pthread_setcancelstate(set, NULL);
        OK(rlock_mutex_lock(&m));
        EXPECT(rlock_mutex_trylock(&theirs), EBUSY);
        OK(rlock_mutex_unlock(&m));
        EXPECT(rlock_mutex_unlock(&m), EPERM);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
        ck_assert_int_eq(state, set);
    }
}
END_TEST

static void do_nothing(int number)
{
    (void)number;
}

START_TEST(signals_do_not_end_a_wait)
{
    struct task task;
    struct sigaction action, old;
    memset(&action, 0, sizeof(action));
    action.sa_handler = do_nothing;
    sigaction(SIGUSR1, &action, &old);
    OK(rlock_mutex_lock(&theirs));
    task_start(&task, run_pair, &m);
    ck_assert(wait_waiters(client, 1));
    for (int i = 0; i < 100; i++)
        pthread_kill(task.thread, SIGUSR1);
    test_pause_ms(20);
    ck_assert_uint_eq(stats_of(client).waiters_now, 1);
    OK(rlock_mutex_unlock(&theirs));
    OK(task_join(&task));
    sigaction(SIGUSR1, &old, NULL);
}
END_TEST

/* ---- fork */

static int none(const rlock_info_t *info, void *arg)
{
    (void)info;
    (void)arg;
    return 0;
}

/* Runs in a child whose parent holds m. Returns 0, or the number of the first call that
 * answered otherwise than to a stranger. */
static int calls_of_child(void)
{
    rlock_client_t *c = NULL;
    rlock_info_t *info = NULL;
    rlock_mutex_t fresh;
    rlock_state_t state = RLOCK_SAFE;
    unsigned count = 1;
    uint64_t token;
    long ms;
    struct timespec at = test_in_ms(CLOCK_REALTIME, 100), past = { 0 };
    const int codes[][2] = {
        { rlock_mutex_unlock(&m), EPERM },
        { rlock_mutex_extend(&m, 1000), EPERM },
        { rlock_mutex_gettoken(&m, &token), EPERM },
        { rlock_mutex_getremaining(&m, &ms), EPERM },
        { rlock_mutex_getstate(&m, &state), 0 },
        { rlock_mutex_getholdcount(&m, &count), 0 },
        { rlock_mutex_trylock(&m), EBUSY },
        { rlock_mutex_trylock_lease(&m, 1000), EBUSY },
        { rlock_mutex_timedlock(&m, &at), ETIMEDOUT },
        { rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, &past), ETIMEDOUT },
        { rlock_mutex_unlock(&m), EPERM },
        { rlock_client_ping(client), 0 },
        { rlock_inspect(client, "n", &info), 0 },
        { rlock_list(client, NULL, none, NULL), 0 },
        { rlock_waitfree(client, "n", &past), ETIMEDOUT },
        { rlock_client_open(&c, server.url, NULL), 0 },
        { rlock_client_close(c), 0 },
        { rlock_client_close(NULL), 0 },
        { rlock_mutex_init(&fresh, NULL, "fresh"), 0 },
        { rlock_mutex_destroy(&fresh), 0 },
        { rlock_client_interrupt(client), 0 },
        { rlock_mutex_lock(&m), ECANCELED },
        { rlock_client_close(client), 0 },
        { rlock_client_ping(client), EINVAL },
    };
    rlock_info_free(info);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i][0] != codes[i][1])
            return (int)i + 1;
    return state == RLOCK_UNHELD && count == 0 ? 0 : 100;
}

static int status_of(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

enum { VANISHED = 42 };

/* Ends a child by exec, so that no leak checker reports what the parent's threads were
 * using. */
static void vanish(void)
{
    execl("/bin/sh", "sh", "-c", "exit 42", (char *)NULL);
}

START_TEST(forked_child_is_a_stranger_and_the_parent_is_unharmed)
{
    char parameters[64];
    if (!test_can_fork("forked_child_is_a_stranger_and_the_parent_is_unharmed"))
        return;
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(300));
    reopen_with(parameters);
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    for (int i = 0; i < 3; i++) {
        int ends[2], wrong = -1;
        ck_assert_int_eq(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0) {
            wrong = calls_of_child();
            if (write(ends[1], &wrong, sizeof(wrong)) == (ssize_t)sizeof(wrong))
                vanish();
            abort();
        }
        ck_assert_int_eq(status_of(pid), VANISHED);
        ck_assert_int_eq((int)read(ends[0], &wrong, sizeof(wrong)), (int)sizeof(wrong));
        ck_assert_int_eq(wrong, 0);
        close(ends[0]);
        close(ends[1]);
    }
    /* the parent still renews and holds its lock */
    uint64_t renewals = stats_of(client).renewals;
    for (int tries = 0; stats_of(client).renewals < renewals + 4 && tries < 10000;
         tries++)
        test_pause_ms(1);
    ck_assert_uint_ge(stats_of(client).renewals, renewals + 4);
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    EXPECT(rlock_mutex_trylock(&theirs), EBUSY);
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_lock(&theirs));
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

START_TEST(child_that_exits_normally_does_no_harm)
{
    if (!test_can_fork("child_that_exits_normally_does_no_harm"))
        return;
    OK(rlock_mutex_lock(&m));
    pid_t pid = fork();
    if (pid == 0) {
        /* destructors of thread-specific data run, too */
        if (atexit(vanish) == 0)
            pthread_exit(NULL);
        abort();
    }
    ck_assert_int_eq(status_of(pid), VANISHED);
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_extend(&m, 60000));
    OK(rlock_mutex_unlock(&m));
    ck_assert(!event_seen(RLOCK_EVENT_OWNER_DIED));
}
END_TEST

START_TEST(program_that_replaces_the_child_may_use_the_library)
{
    if (!test_can_fork("program_that_replaces_the_child_may_use_the_library"))
        return;
    /* exec leaves no descriptor of the library open */
    OK(rlock_mutex_lock(&m));
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c",
              "for f in /proc/self/fd/*; do case $(readlink $f) in "
              "*eventfd*|*timerfd*|*eventpoll*) exit 1;; esac; done; exit 0",
              (char *)NULL);
        _exit(2);
    }
    ck_assert_int_eq(status_of(pid), 0);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

#define CASE(name, ...)                                                                  \
    TEST_ADD(fixture_tcase(suite, name, set_up, fixture_close), __VA_ARGS__)

int main(void)
{
    Suite *suite = suite_create("events");
    CASE("told", outage_shorter_than_the_lease_is_AT_RISK_and_SAFE_AGAIN,
         outage_longer_than_the_lease_is_LOST_by_D,
         server_that_goes_and_comes_is_DISCONNECTED_and_CONNECTED,
         thread_that_ends_holding_is_OWNER_DIED_and_the_lock_is_free,
         waiting_thread_gets_the_lock_of_a_thread_that_ended, loss_is_logged);
    CASE("callback", callback_may_call_the_library, callback_may_close_its_own_client);
    CASE("signals", cancel_state_is_as_it_was, signals_do_not_end_a_wait);
    CASE("fork", forked_child_is_a_stranger_and_the_parent_is_unharmed,
         child_that_exits_normally_does_no_harm,
         program_that_replaces_the_child_may_use_the_library);
    TCase *loops = fixture_tcase(suite, "cancellation", set_up, fixture_close);
    tcase_add_loop_test(loops, cancel_of_a_waiting_thread_takes_effect_after_the_call, 0,
                        2);
    return test_run_suite(suite);
}
