/* SPDX-License-Identifier: Apache-2.0 */
/* See suite.h. */
#include "suite.h"

#include "clock.h"
#include "die.h"
#include "process.h"
#include "rundir.h"
#include "wait.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool test_can_fork(const char *test)
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

bool test_can_fork_amid_threads(const char *test)
{
#ifdef __SANITIZE_ADDRESS__
    printf("skipped: %s: AddressSanitizer's allocator is not made for it\n", test);
    fflush(stdout);
    return false;
#else
    return test_can_fork(test);
#endif
}

/* The library's threads allocate memory while they connect. If a thread holds a lock of
 * AddressSanitizer's allocator (GCC 12) at the fork, that lock stays locked in the
 * child. */
void test_before_fork(void)
{
#ifdef __SANITIZE_ADDRESS__
    enum { QUIET_MS = 20, QUIET_WITHIN_MS = 500 };
    int cancel_state; /* the forking thread may have a cancellation pending: not in
                         here */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    test_thread_quiet(QUIET_MS, test_ms(QUIET_WITHIN_MS));
    pthread_setcancelstate(cancel_state, NULL);
#endif
}

void test_long_tcase(TCase *tcase)
{
    enum { LONG_S = 600 };
    if (test_is_full())
        tcase_set_timeout(tcase, LONG_S);
}

void test_add(TCase *tcase, const TTest *const tests[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tcase, tests[i]);
}

Suite *test_warm_up_of(const TTest *test, void (*start)(void), void (*stop)(void),
                       void (*open)(void), void (*close)(void))
{
    Suite *suite = suite_create("warm_up");
    TCase *tcase = tcase_create("warm_up");
    tcase_add_unchecked_fixture(tcase, start, stop);
    tcase_add_checked_fixture(tcase, open, close);
    tcase_add_test(tcase, test);
    suite_add_tcase(suite, tcase);
    return suite;
}

/* Runs in this very process, so that the tests are forked from it. */
static bool warm_up(void)
{
    SRunner *runner = srunner_create(test_warm_up());
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    if (failed)
        srunner_print(runner, CK_NORMAL);
    srunner_free(runner);
    return failed == 0;
}

static volatile sig_atomic_t told_to_end;

static void note_term(int sig)
{
    (void)sig;
    told_to_end = 1;
}

static int run_here(Suite *suite)
{
    pthread_atfork(test_before_fork, NULL, NULL);
    if (test_warm_up && getenv("RLOCK_TEST_WARM") && !warm_up())
        return EXIT_FAILURE;
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Runs the suite in a child. *ret_still_ms: the longest time during which this process
 * did not run. */
static int run_in_child(Suite *suite, long *ret_still_ms)
{
    enum { BEAT_MS = 10 };
    int status = 0;
    int64_t last = test_now_ms(); /* from before the fork: the child may run first */
    pid_t own = getpid(), child = fork();

    if (child < 0)
        test_die("fork: %s", strerror(errno));
    if (child == 0) {
        signal(SIGTERM, SIG_DFL);         /* the handler is the parent's */
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* Check ends its tests on SIGTERM */
        exit(getppid() == own ? run_here(suite) : EXIT_FAILURE);
    }
    *ret_still_ms = 0;
    for (;;) {
        if (told_to_end)
            kill(child, SIGTERM);
        pid_t ended = waitpid(child, &status, WNOHANG);
        int64_t now = test_now_ms();
        if (now - last - BEAT_MS > *ret_still_ms)
            *ret_still_ms = (long)(now - last - BEAT_MS);
        if (ended != 0)
            break;
        last = now;
        test_pause_ms(BEAT_MS);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

int test_run_suite(Suite *suite)
{
    enum { RUNS = 3, STILL_MS = 60 };
    const char *fork_mode = getenv("CK_FORK");
    struct timespec now;
    long still_ms;
    int status = EXIT_FAILURE;

    bool here = fork_mode && strcmp(fork_mode, "no") == 0; /* without forks, for a
                                                              debugger */
    if (!here)
        signal(SIGTERM, note_term);
    test_rundir_begin();
    if (here) {
        status = run_here(suite);
        test_rundir_end();
        return status;
    }
    for (int i = 0; i < RUNS; i++) {
        status = run_in_child(suite, &still_ms);
        if (told_to_end) {
            status = EXIT_FAILURE;
            if (still_ms > test_ms(STILL_MS))
                printf("stopped: this machine stood still for %ld ms\n", still_ms);
            break;
        }
        if (status == EXIT_SUCCESS || still_ms <= test_ms(STILL_MS) || i == RUNS - 1)
            break;
        clock_gettime(CLOCK_REALTIME, &now);
        printf("repeated: this machine stood still for %ld ms, until @%lld.%09ld\n",
               still_ms, (long long)now.tv_sec, now.tv_nsec);
        fflush(stdout);
    }
    test_rundir_end();
    srunner_free(srunner_create(suite));
    return status;
}
