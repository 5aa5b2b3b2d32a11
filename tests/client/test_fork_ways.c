/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that are not made by fork(): _Fork(), which runs no handlers; daemon(); exec,
 * vfork and posix_spawn. How locks treat a child is in test_fork.c.
 */
#include "fixture.h"
#include "forked.h"

#include "state/hold.h"
#include "state/thread.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOON_MS = 15000, FORKS = 10 };

static rlock_mutex_t m, own; /* of `client` */

static void open_with_lease(long ms)
{
    char parameters[64];
    snprintf(parameters, sizeof(parameters), "?lease=%ld", ms);
    reopen_with(parameters);
    m = mutex_of(client, "n");
    own = mutex_of(client, "own");
}

static void set_up(void)
{
    fixture_open();
    open_with_lease(test_ms(300));
}

/* Asserts that the parent's hold is still renewed. */
static void assert_renewed(void)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, 2 * test_ms(300));
    rlock_mutex_t theirs = mutex_of(fixture_other(), "n");
    EXPECT(rlock_mutex_timedlock(&theirs, &at), ETIMEDOUT);
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}

/* The parent holds m. */
static int is_a_party(struct forked_report *report, void *arg)
{
    (void)report;
    (void)arg;
    MUST(rlock_mutex_unlock(&m) == EPERM);
    MUST(rlock_mutex_trylock(&m) == EBUSY);
    MUST(rlock_mutex_lock(&own) == 0);
    MUST(rlock_mutex_unlock(&own) == 0);
    return 0;
}

/* ---- daemon() */

/* The process holds m when it becomes a daemon. The daemon does not hold m, and gets it
 * when the lease ends. */
static int becomes_a_daemon(struct forked_report *report, void *arg)
{
    (void)arg;
    MUST(rlock_mutex_lock(&m) == 0);
    MUST(rlock_mutex_lock(&own) == 0);
    MUST(rlock_mutex_unlock(&own) == 0);
    if (daemon(1, 1) != 0)
        return __LINE__;
    /* ends the daemon if the test does not: it is no child of the test */
    alarm((unsigned)(3 * test_ms(SOON_MS) / 1000));
    atomic_store(&report->counter, getpid());
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(SOON_MS));
    MUST(rlock_mutex_unlock(&m) == EPERM);
    MUST(rlock_mutex_trylock(&own) == 0);
    MUST(rlock_mutex_unlock(&own) == 0);
    MUST(rlock_mutex_timedlock(&m, &at) == 0);
    MUST(rlock_mutex_unlock(&m) == 0);
    return 0;
}

START_TEST(daemon_locks_by_the_handles_that_were_used_before)
{
    struct forked f;
    NEEDS_FORK("daemon_locks_by_the_handles_that_were_used_before");
    NEEDS_EXIT("daemon_locks_by_the_handles_that_were_used_before");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    forked_start(&f, becomes_a_daemon, NULL, FORKED_VANISH);
    ck_assert_int_eq(forked_line(&f, 2 * SOON_MS), 0);
    ck_assert_int_ne(atomic_load(&f.report->counter), f.pid);
    ck_assert(forked_ends(&f, SOON_MS));
    f.pid = atomic_load(&f.report->counter);
    ck_assert(forked_ends(&f, SOON_MS));
}
END_TEST

/* ---- exec */

enum { FDS_MAX = 1024 };

static bool is_descriptor(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

extern char **environ;

/* The ways to start a program. Each returns the child's pid. */
static pid_t by_fork(const char *const argv[])
{
    pid_t pid = fork();
    if (pid == 0) {
        execv(argv[0], (char *const *)argv);
        _exit(2);
    }
    return pid;
}

static pid_t by_used_fork(const char *const argv[])
{
    pid_t pid = fork();
    if (pid == 0) {
        if (rlock_client_ping(client) == 0)
            execv(argv[0], (char *const *)argv);
        _exit(2);
    }
    return pid;
}

static pid_t by_vfork(const char *const argv[])
{
    pid_t pid = vfork();
    if (pid == 0) {
        execv(argv[0], (char *const *)argv);
        _exit(2);
    }
    return pid;
}

static pid_t by_spawn(const char *const argv[])
{
    pid_t pid = -1;
    return posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) == 0 ? pid
                                                                                     : -1;
}

static pid_t (*const starts[])(const char *const argv[]) = { by_fork, by_used_fork,
                                                             by_vfork, by_spawn };
enum { STARTS = sizeof(starts) / sizeof(starts[0]) };

START_TEST(program_that_is_executed_has_no_descriptor_of_the_librarys)
{
    static char words[FDS_MAX][12];
    static const char *argv[FDS_MAX + 5] = {
        "/bin/sh", "-c",
        "for fd in \"$@\"; do test ! -e /proc/self/fd/$fd || exit 1; done; exit 0", "sh"
    };
    bool before[FDS_MAX];
    int count = 0;
    if (_i < 2)
        NEEDS_FORK("program_that_is_executed_has_no_descriptor_of_the_librarys");
    close_client(client);
    client = NULL;
    for (int fd = 0; fd < FDS_MAX; fd++)
        before[fd] = is_descriptor(fd);
    client = open_with("?lease=600000");
    OK(rlock_mutex_init(&m, NULL, "n"));
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    for (int fd = 0; fd < FDS_MAX; fd++) {
        if (before[fd] || !is_descriptor(fd))
            continue;
        snprintf(words[count], sizeof(words[count]), "%d", fd);
        argv[4 + count] = words[count];
        count++;
    }
    ck_assert_int_ge(count, 4);
    struct forked child = { .pid = starts[_i](argv) };
    ck_assert_int_gt(child.pid, 0);
    ck_assert(forked_ends(&child, SOON_MS));
    ck_assert_int_eq(child.status, 0);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(programs_that_are_started_do_no_harm_to_a_hold)
{
    static const char *const argv[] = { "/bin/true", NULL };
    if (_i < 2)
        NEEDS_FORK("programs_that_are_started_do_no_harm_to_a_hold");
    OK(rlock_mutex_lock(&m));
    for (int n = 0; n < 20; n++) {
        struct forked child = { .pid = starts[_i](argv) };
        ck_assert_int_gt(child.pid, 0);
        ck_assert(forked_ends(&child, SOON_MS));
        ck_assert_int_eq(child.status, 0);
    }
    assert_renewed();
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- _Fork(): no handlers run */

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
#define HAVE_BARE_FORK

static int run_is_a_party(void *arg)
{
    return is_a_party(NULL, arg);
}

/* A new thread uses the library before the thread that was forked does. */
static int has_a_thread_that_comes_first(struct forked_report *report, void *arg)
{
    unsigned count = 7;
    int line = in_thread(run_is_a_party, arg);
    if (line != 0)
        return line;
    MUST(rlock_mutex_getholdcount(&m, &count) == 0 && count == 0);
    return is_a_party(report, arg);
}

/* The child has closed its parent's descriptors, and other files have their numbers. */
static int has_other_descriptors(struct forked_report *report, void *arg)
{
    int ends[2], first = 3, count = 0;
    struct stat before[64], after;
    for (int fd = first; fd < FDS_MAX; fd++)
        close(fd);
    for (; count < 64; count += 2) {
        int rc = count % 4 == 0 ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends);
        MUST(rc == 0);
        MUST(ends[0] == first + count && ends[1] == first + count + 1);
        MUST(fstat(ends[0], &before[count]) == 0);
        MUST(fstat(ends[1], &before[count + 1]) == 0);
    }
    int line = is_a_party(report, arg);
    if (line != 0)
        return line;
    for (int i = 0; i < count; i++)
        MUST(fstat(first + i, &after) == 0 && after.st_ino == before[i].st_ino);
    return 0;
}

static const struct {
    int (*body)(struct forked_report *report, void *arg);
} bare_bodies[] = { { is_a_party },
                    { has_a_thread_that_comes_first },
                    { has_other_descriptors } };
enum { BARE_BODIES = sizeof(bare_bodies) / sizeof(bare_bodies[0]) };

/* rule: T13 */
START_TEST(child_without_handlers_is_a_client_of_its_own)
{
    struct forked f;
    NEEDS_FORK("child_without_handlers_is_a_client_of_its_own");
    OK(rlock_mutex_lock(&m));
    forked_start_by(&f, _Fork, bare_bodies[_i].body, NULL, FORKED_VANISH);
    ck_assert_int_eq(forked_line(&f, SOON_MS), 0);
    ck_assert(forked_ends(&f, SOON_MS));
    assert_renewed();
    ck_assert_uint_eq(stats_of(client).reconnects, 0);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

static atomic_bool over;

static int run_looks(void *arg)
{
    rlock_stats_t stats;
    (void)arg;
    while (!atomic_load(&over)) {
        int rc = rlock_client_getstats(client, &stats);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Other threads only read the table of clients at the moment of the fork. */
START_TEST(child_without_handlers_has_the_clients_that_others_only_look_up)
{
    struct forked f;
    struct task tasks[4];
    NEEDS_FORK("child_without_handlers_has_the_clients_that_others_only_look_up");
    /* the renewal competes with four threads that never sleep */
    open_with_lease(SOON_MS);
    OK(rlock_mutex_lock(&m));
    atomic_store(&over, false);
    for (int i = 0; i < 4; i++)
        task_start(&tasks[i], run_looks, NULL);
    for (long i = test_count(100, 40); i > 0; i--) {
        forked_start_by(&f, _Fork, is_a_party, NULL, FORKED_VANISH);
        ck_assert_int_eq(forked_line(&f, SOON_MS), 0);
        ck_assert(forked_ends(&f, SOON_MS));
    }
    atomic_store(&over, true);
    for (int i = 0; i < 4; i++)
        OK(task_join(&tasks[i]));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- the parent's threads pass a lock on, and the parent is inside by the fast path */

static int run_passes_on(void *arg)
{
    while (!atomic_load(&over)) {
        int rc = rlock_mutex_lock(arg);
        if (rc == 0)
            rc = rlock_mutex_unlock(arg);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static bool is_in_by_the_gate(void *arg)
{
    if (rlock_mutex_lock(arg) != 0)
        return false;
    if (rlk_thread_record->fast_in && rlk_thread_record->fast->hold->pass->fastpath != 0)
        return true;
    rlock_mutex_unlock(arg);
    return false;
}

/* The child's first thread that uses the library is a new one. */
static int has_nothing_by_the_gate(struct forked_report *report, void *arg)
{
    rlock_mutex_t *passed = arg;
    unsigned count = 7;
    (void)report;
    MUST(in_thread(run_pair, &own) == 0);
    MUST(rlock_mutex_getholdcount(passed, &count) == 0 && count == 0);
    MUST(rlock_mutex_unlock(passed) == EPERM);
    for (int i = 0; i < 100; i++)
        MUST(rlock_mutex_trylock(passed) == EBUSY); /* the parent is inside */
    return 0;
}

/* rule: T13, K12 */
START_TEST(child_without_handlers_does_not_use_the_fast_path_of_its_parent)
{
    struct forked f;
    struct task tasks[4];
    rlock_mutex_t passed = mutex_of(client, "passed");
    NEEDS_FORK("child_without_handlers_does_not_use_the_fast_path_of_its_parent");

    atomic_store(&over, false);
    for (int i = 0; i < 4; i++)
        task_start(&tasks[i], run_passes_on, &passed);
    /* another thread may close the fast path meanwhile */
    for (int i = 0; i < FORKS; i++) {
        ck_assert(test_wait_until(is_in_by_the_gate, &passed, SOON_MS));
        forked_start_by(&f, _Fork, has_nothing_by_the_gate, &passed, FORKED_VANISH);
        ck_assert_int_eq(forked_line(&f, SOON_MS), 0);
        ck_assert(forked_ends(&f, SOON_MS));
        OK(rlock_mutex_unlock(&passed));
    }
    atomic_store(&over, true);
    for (int i = 0; i < 4; i++)
        OK(task_join(&tasks[i]));
}
END_TEST

static int counts_sockets(void)
{
    struct stat st;
    int count = 0;
    for (int fd = 3; fd < FDS_MAX; fd++)
        count += fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
    return count;
}

static int closes_what_it_inherited(struct forked_report *report, void *arg)
{
    int before = counts_sockets(), held = *(const int *)arg;
    rlock_state_t state;
    (void)report;
    MUST(held >= 2);
    MUST(rlock_mutex_getstate(&m, &state) == 0 && state == RLOCK_UNHELD);
    MUST(counts_sockets() == before - held);
    return 0;
}

START_TEST(child_without_handlers_closes_its_parents_connections_at_its_first_call)
{
    struct forked f;
    int held;
    NEEDS_FORK("child_without_handlers_closes_its_parents_connections_at_its_first_call");
    close_client(client);
    client = NULL;
    held = counts_sockets();
    client = open_with("");
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    held = counts_sockets() - held;
    forked_start_by(&f, _Fork, closes_what_it_inherited, &held, FORKED_VANISH);
    ck_assert_int_eq(forked_line(&f, SOON_MS), 0);
    ck_assert(forked_ends(&f, SOON_MS));
    OK(rlock_mutex_unlock(&m));
}
END_TEST
#endif

static TCase *tcase(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("fork_ways");

    TCase *programs = tcase(suite, "programs");
    tcase_add_test(programs, daemon_locks_by_the_handles_that_were_used_before);
    tcase_add_loop_test(
        programs, program_that_is_executed_has_no_descriptor_of_the_librarys, 0, STARTS);
    tcase_add_loop_test(programs, programs_that_are_started_do_no_harm_to_a_hold, 0,
                        STARTS);
#ifdef HAVE_BARE_FORK
    TCase *bare = tcase(suite, "_Fork");
    tcase_add_loop_test(bare, child_without_handlers_is_a_client_of_its_own, 0,
                        BARE_BODIES);
    tcase_add_test(bare, child_without_handlers_has_the_clients_that_others_only_look_up);
    tcase_add_test(bare, child_without_handlers_does_not_use_the_fast_path_of_its_parent);
    tcase_add_test(
        bare, child_without_handlers_closes_its_parents_connections_at_its_first_call);
#endif
    return test_run_suite(suite);
}
