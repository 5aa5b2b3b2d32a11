/* SPDX-License-Identifier: Apache-2.0 */
/* Cancellation outside of any call of the library: in its callbacks, and while threads
 * and processes end or fork. */
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOON_MS = 10000, AT_ONCE_MS = 3000, DEATHS = 20, WELL = 42 };

static rlock_mutex_t m, theirs;

static void set_up(void)
{
    fixture_open();
    m = mutex_of(client, "n");
    theirs = mutex_of(fixture_other(), "n");
}

static pthread_t start(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, run, arg), 0);
    return thread;
}

/* Asserts that the lock is free within a time far below the lease. */
static void obtainable_at_once(rlock_mutex_t *mutex)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(AT_ONCE_MS));
    OK(rlock_mutex_timedlock(mutex, &at));
    OK(rlock_mutex_unlock(mutex));
}

/* ---- callbacks */

static int cancel_and_test(const rlock_info_t *info, void *arg)
{
    (void)info;
    pthread_cancel(pthread_self());
    pthread_testcancel();
    atomic_store((atomic_bool *)arg, true);
    return 0;
}

static void *run_list(void *arg)
{
    if (rlock_list(client, "n", cancel_and_test, arg) == 0)
        pthread_testcancel();
    return NULL;
}

START_TEST(callback_of_list_runs_with_cancellation_off)
{
    atomic_bool survived = false;
    void *result = NULL;

    OK(rlock_mutex_lock(&theirs));
    pthread_join(start(run_list, &survived), &result);
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(atomic_load(&survived));
    ck_assert_ptr_eq(result, PTHREAD_CANCELED);
}
END_TEST

/* ---- ends */

static void *run_lock_and_return(void *arg)
{
    atomic_int *rc = arg;
    int locked = rlock_mutex_lock(&m);
    pthread_cancel(pthread_self());
    atomic_store(rc, locked);
    return NULL; /* the library gives the hold up after this, with a request pending */
}

START_TEST(thread_that_returns_with_a_cancel_pending_gives_up_its_hold)
{
    for (int i = 0; i < DEATHS; i++) {
        atomic_int rc = -1;
        pthread_join(start(run_lock_and_return, &rc), NULL);
        OK(atomic_load(&rc));
        obtainable_at_once(&theirs);
        ck_assert_uint_eq(stats_of(client).owners_died, (unsigned)i + 1);
    }
    ck_assert_uint_eq(stats_of(client).holds_now, 0);
    close_client(client); /* close succeeds: the client counts no thread as inside */
    client = NULL;
}
END_TEST

/* ThreadSanitizer ends a process with several threads that forks. A test that is skipped
 * for this prints a line. */
static bool can_fork(const char *test)
{
#ifdef __SANITIZE_THREAD__
    printf("skipped: %s: ThreadSanitizer does not let it fork\n", test);
    fflush(stdout);
    return false;
#else
    (void)test;
    return true;
#endif
}

/* A child ends by exec, so that no leak checker judges its copy of the parent's memory.
 * The exec comes after the library's own destructor. */
static bool vanishing;

static void vanish(void)
{
    execl("/bin/sh", "sh", "-c", "exit 42", (char *)NULL);
}

__attribute__((destructor(101))) static void vanish_last(void)
{
    if (vanishing)
        vanish();
}

struct child {
    pid_t pid;
    int status;
};

static bool has_ended(void *arg)
{
    struct child *child = arg;
    return waitpid(child->pid, &child->status, WNOHANG) == child->pid;
}

/* Returns the child's exit status; -1: it had to be killed. */
static int status_of(pid_t pid)
{
    struct child child = { .pid = pid };
    if (!test_wait_until(has_ended, &child, SOON_MS)) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return -1;
    }
    return WIFEXITED(child.status) ? WEXITSTATUS(child.status) : -1;
}

START_TEST(process_that_exits_with_a_cancel_pending_releases_its_hold)
{
    if (!can_fork("process_that_exits_with_a_cancel_pending_releases_its_hold"))
        return;
    pid_t pid = fork();
    if (pid == 0) {
        int rc = rlock_mutex_lock(&m);
        pthread_cancel(pthread_self());
        vanishing = rc == 0;
        exit(1);
    }
    ck_assert_int_eq(status_of(pid), WELL);
    obtainable_at_once(&theirs);
}
END_TEST

static void *run_fork(void *arg)
{
    pthread_cancel(pthread_self());
    pid_t pid = fork();
    if (pid == 0) {
        int rc = rlock_mutex_lock(&m);
        if (rc == 0)
            rc = rlock_mutex_unlock(&m);
        if (rc == 0)
            vanish();
        abort();
    }
    *(pid_t *)arg = pid;
    return NULL;
}

START_TEST(child_that_is_forked_with_a_cancel_pending_uses_the_library)
{
    pid_t pid = -1;
    if (!can_fork("child_that_is_forked_with_a_cancel_pending_uses_the_library"))
        return;
    pthread_join(start(run_fork, &pid), NULL);
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(status_of(pid), WELL);
    obtainable_at_once(&m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cancel ends");
    TCase *tc = tcase_create("ends");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, callback_of_list_runs_with_cancellation_off);
    tcase_add_test(tc, thread_that_returns_with_a_cancel_pending_gives_up_its_hold);
    tcase_add_test(tc, process_that_exits_with_a_cancel_pending_releases_its_hold);
    tcase_add_test(tc, child_that_is_forked_with_a_cancel_pending_uses_the_library);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
