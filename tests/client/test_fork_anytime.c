/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork() at any moment: while threads lock, wait and renew; while the default client is
 * opened, and before it exists; with atfork handlers of the program that use locks; from
 * inside a callback. How locks treat a child is in test_fork.c.
 */
#include "fixture.h"
#include "forked.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOON_MS = 15000 };

static rlock_mutex_t m, own; /* of `client` */
static rlock_mutex_t by_default = RLOCK_MUTEX_INITIALIZER("default");

static void set_up(void)
{
    char parameters[64];
    fixture_open();
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(300));
    reopen_with(parameters);
    m = mutex_of(client, "n");
    own = mutex_of(client, "own");
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

/* ---- beside other threads */

enum {
    THREADS = 16,
    LOCKS = 4,
    ROUNDS = 5,
    FORKS = 200,
    FORKS_QUICK = 12,
    CHILDREN_MS = 60000
};

struct board { /* shared by all processes */
    atomic_int inside[LOCKS];
    atomic_long entries[LOCKS], overlaps;
};
struct crowd {
    struct board *board;
    rlock_mutex_t locks[LOCKS];
    atomic_bool stop;
};
struct member {
    struct task task;
    struct crowd *crowd;
    int number;
};

/* The section of lock i. */
static void enter_and_leave(struct crowd *crowd, int i, long ms)
{
    struct board *board = crowd->board;
    if (atomic_fetch_add(&board->inside[i], 1) != 0)
        atomic_fetch_add(&board->overlaps, 1);
    if (ms > 0)
        test_pause_ms(ms);
    atomic_fetch_add(&board->entries[i], 1);
    atomic_fetch_sub(&board->inside[i], 1);
}

/* One thread of each lock sometimes holds it for so long that it is renewed. */
static int run_member(void *arg)
{
    const struct member *member = arg;
    int i = member->number % LOCKS, rc = 0;
    int64_t slow_at = member->number < LOCKS ? test_now_ms() : INT64_MAX;
    while (rc == 0 && !atomic_load(&member->crowd->stop)) {
        rc = rlock_mutex_lock(&member->crowd->locks[i]);
        if (rc != 0)
            break;
        /* sometimes, by the clock: the sections in between may be very short */
        bool slow = test_now_ms() >= slow_at;
        enter_and_leave(member->crowd, i, slow ? test_ms(250) : 0);
        if (slow)
            slow_at = test_now_ms() + test_ms(2500);
        rc = rlock_mutex_unlock(&member->crowd->locks[i]);
    }
    return rc;
}

static int visits_all(struct forked_report *report, void *arg)
{
    struct crowd *crowd = arg;
    (void)report;
    for (int i = 0; i < LOCKS; i++) {
        struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(CHILDREN_MS / 2));
        MUST(rlock_mutex_unlock(&crowd->locks[i]) == EPERM);
        MUST(rlock_mutex_clocklock(&crowd->locks[i], CLOCK_MONOTONIC, &at) == 0);
        enter_and_leave(crowd, i, 0);
        MUST(rlock_mutex_unlock(&crowd->locks[i]) == 0);
    }
    return 0;
}

static struct board *board_make(void)
{
    void *page = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    return page;
}

static bool has_renewed(void *arg)
{
    (void)arg;
    return stats_of(client).renewals > 0;
}

START_TEST(children_of_a_crowd_lock_in_turn_with_it)
{
    static struct member members[THREADS];
    static struct crowd crowd;
    char parameters[64], name[32];
    NEEDS_FORK_AMID_THREADS("children_of_a_crowd_lock_in_turn_with_it");
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(1500));
    reopen_with(parameters);
    crowd.board = board_make();
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof(name), "crowd%d", i);
        crowd.locks[i] = mutex_of(client, name);
    }
    for (int i = 0; i < THREADS; i++) {
        members[i].crowd = &crowd;
        members[i].number = i;
        task_start(&members[i].task, run_member, &members[i]);
    }
    long forks = test_count(FORKS, FORKS_QUICK);
    for (long n = 0; n < forks; n++) {
        struct forked f;
        forked_start(&f, visits_all, &crowd, FORKED_VANISH);
        ck_assert_int_eq(forked_line(&f, CHILDREN_MS), 0);
        ck_assert(forked_ends(&f, SOON_MS));
        munmap(f.report, sizeof(*f.report));
    }
    ck_assert(test_wait_until(has_renewed, NULL, SOON_MS));
    atomic_store(&crowd.stop, true);
    for (int i = 0; i < THREADS; i++)
        OK(task_join(&members[i].task));
    ck_assert_int_eq(atomic_load(&crowd.board->overlaps), 0);
    for (int i = 0; i < LOCKS; i++)
        ck_assert_int_gt(atomic_load(&crowd.board->entries[i]), forks);
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}
END_TEST

static int waits_for_a_child(void *arg)
{
    int status = -1;
    for (int *n = arg; *n > 0; --*n) {
        pid_t pid = fork();
        if (pid == 0) {
            int rc = rlock_mutex_trylock(&m);
            execl("/bin/sh", "sh", "-c", rc == EBUSY ? "exit 0" : "exit 1", (char *)NULL);
            abort();
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            return -1;
    }
    return 0;
}

START_TEST(threads_may_fork_side_by_side)
{
    enum { FORKERS = 4 };
    struct task tasks[FORKERS];
    int counts[FORKERS];
    NEEDS_FORK_AMID_THREADS("threads_may_fork_side_by_side");
    OK(rlock_mutex_lock(&m));
    for (int i = 0; i < FORKERS; i++) {
        counts[i] = (int)test_count(100, 10);
        task_start(&tasks[i], waits_for_a_child, &counts[i]);
    }
    for (int i = 0; i < FORKERS; i++)
        OK(task_join(&tasks[i]));
    assert_renewed();
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- the default client */

static int uses_the_default_client(struct forked_report *report, void *arg)
{
    (void)report;
    (void)arg;
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(SOON_MS));
    MUST(rlock_mutex_timedlock(&by_default, &at) == 0);
    MUST(rlock_mutex_unlock(&by_default) == 0);
    return 0;
}

static atomic_bool stop;

static int run_opens_and_closes(void *arg)
{
    int rc = 0;
    (void)arg;
    while (rc == 0 && !atomic_load(&stop)) {
        rc = rlock_mutex_lock(&by_default);
        if (rc == 0)
            rc = rlock_mutex_unlock(&by_default);
        if (rc == 0)
            rc = rlock_client_close(NULL);
    }
    return rc;
}

START_TEST(fork_while_the_default_client_is_opened_gives_the_child_one_of_its_own)
{
    struct task task;
    NEEDS_FORK_AMID_THREADS(
        "fork_while_the_default_client_is_opened_gives_the_child_one_of_its_own");
    OK(rlock_client_setdefault(server.url, NULL));
    atomic_store(&stop, false);
    task_start(&task, run_opens_and_closes, NULL);
    for (long n = test_count(300, 40); n > 0; n--)
        CHILD_IS_FINE(uses_the_default_client, NULL);
    atomic_store(&stop, true);
    OK(task_join(&task));
}
END_TEST

START_TEST(fork_before_the_first_use_leaves_both_sides_fit)
{
    struct forked f;
    NEEDS_FORK("fork_before_the_first_use_leaves_both_sides_fit");
    ck_assert_int_eq(setenv("RLOCK_URL", server.url, 1), 0);
    forked_start(&f, uses_the_default_client, NULL, FORKED_VANISH);
    int line = uses_the_default_client(NULL, NULL);
    ck_assert_int_eq(forked_line(&f, SOON_MS), 0);
    ck_assert(forked_ends(&f, SOON_MS));
    ck_assert_int_eq(line, 0);
    OK(rlock_client_close(NULL));
}
END_TEST

/* ---- handlers of the program */

enum { BEFORE_OURS = 1, BEHIND_OURS = 2 };
static int handlers_lock_as; /* 0: do nothing */
static int in_prepare = -1, in_parent = -1, in_child = -1, childs_lock = -1;

/* The handlers lock a mutex before a fork and unlock it on both sides. */
static void lock_before(int who)
{
    if (handlers_lock_as == who)
        in_prepare = rlock_mutex_lock(&m);
}

static void unlock_in_parent(int who)
{
    if (handlers_lock_as == who)
        in_parent = rlock_mutex_unlock(&m);
}

static void unlock_in_child(int who)
{
    if (handlers_lock_as != who)
        return;
    in_child = rlock_mutex_unlock(&m);
    childs_lock = rlock_mutex_lock(&own);
}

static void early_prepare(void)
{
    lock_before(BEFORE_OURS);
}
static void early_parent(void)
{
    unlock_in_parent(BEFORE_OURS);
}
static void early_child(void)
{
    unlock_in_child(BEFORE_OURS);
}
static void late_prepare(void)
{
    lock_before(BEHIND_OURS);
}
static void late_parent(void)
{
    unlock_in_parent(BEHIND_OURS);
}
static void late_child(void)
{
    unlock_in_child(BEHIND_OURS);
}

/* Installed before the library's own handlers, as by a program that loads the library at
 * run time, or by a library that is loaded earlier. */
__attribute__((constructor(101))) static void install_early_handlers(void)
{
    pthread_atfork(early_prepare, early_parent, early_child);
}

static int handlers_worked(struct forked_report *report, void *arg)
{
    unsigned count = 0;
    (void)report;
    (void)arg;
    MUST(in_prepare == 0);
    MUST(in_child == EPERM);
    MUST(childs_lock == 0);
    MUST(rlock_mutex_getholdcount(&own, &count) == 0 && count == 1);
    MUST(rlock_mutex_unlock(&own) == 0);
    return 0;
}

START_TEST(handlers_of_the_program_may_use_locks)
{
    NEEDS_FORK("handlers_of_the_program_may_use_locks");
    if (_i == BEHIND_OURS)
        ck_assert_int_eq(pthread_atfork(late_prepare, late_parent, late_child), 0);
    handlers_lock_as = _i;
    for (int n = 0; n < 3; n++) {
        struct forked f;
        in_prepare = in_parent = in_child = childs_lock = -1;
        forked_start(&f, handlers_worked, NULL, FORKED_VANISH);
        ck_assert_int_eq(forked_line(&f, SOON_MS), 0);
        ck_assert(forked_ends(&f, SOON_MS));
        ck_assert_int_eq(in_prepare, 0);
        ck_assert_int_eq(in_parent, 0);
    }
    handlers_lock_as = 0;
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- callbacks that fork */

static atomic_int forker_pid, other_events;
static atomic_bool child_locks;

static void forks_and_returns(const rlock_event_t *event, void *arg)
{
    (void)arg;
    if (event->kind != RLOCK_EVENT_LOST)
        return;
    if (atomic_load(&forker_pid) != 0) {
        atomic_fetch_add(&other_events, 1);
        return;
    }
    pid_t pid = fork();
    if (pid > 0) {
        atomic_store(&forker_pid, pid);
        return;
    }
    forked_is_child();
    if (atomic_load(&child_locks)) {
        int rc = rlock_mutex_lock(&by_default);
        if (rc != 0 || rlock_mutex_unlock(&by_default) != 0 ||
            rlock_client_close(NULL) != 0)
            abort();
    }
}

static bool has_forked(void *arg)
{
    (void)arg;
    return atomic_load(&forker_pid) != 0;
}

static bool has_other_event(void *arg)
{
    (void)arg;
    return atomic_load(&other_events) > 0;
}

START_TEST(child_that_returns_from_a_callback_ends_and_the_parent_goes_on)
{
    rlock_clientattr_t attr;
    rlock_client_t *forking = NULL;
    NEEDS_FORK("child_that_returns_from_a_callback_ends_and_the_parent_goes_on");
    NEEDS_EXIT("child_that_returns_from_a_callback_ends_and_the_parent_goes_on");
    atomic_store(&child_locks, _i != 0);
    OK(rlock_client_setdefault(server.url, NULL));
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_seteventcallback(&attr, forks_and_returns, NULL));
    OK(rlock_client_open(&forking, server.url, &attr));
    OK(rlock_clientattr_destroy(&attr));
    rlock_mutex_t lost = mutex_of(forking, "lost");
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_lock_lease(&lost, 60));
    ck_assert(test_wait_until(has_forked, NULL, SOON_MS));
    EXPECT(rlock_mutex_unlock(&lost), ESTALE);
    struct forked child = { .pid = atomic_load(&forker_pid) };
    ck_assert(forked_ends(&child, SOON_MS));
    ck_assert(WIFEXITED(child.status));
    /* the thread that ran the callback still delivers events */
    OK(rlock_mutex_lock_lease(&lost, 60));
    ck_assert(test_wait_until(has_other_event, NULL, SOON_MS));
    EXPECT(rlock_mutex_unlock(&lost), ESTALE);
    assert_renewed();
    OK(rlock_mutex_unlock(&m));
    OK(rlock_client_close(forking));
}
END_TEST

static pid_t lister;

static int forks_in_each(const rlock_info_t *info, void *arg)
{
    int *calls = arg;
    (void)info;
    ++*calls;
    if (lister < 0)
        lister = fork();
    return 0;
}

START_TEST(child_forked_inside_a_listing_gets_an_error)
{
    int calls = 0;
    NEEDS_FORK("child_forked_inside_a_listing_gets_an_error");
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_lock(&own));
    lister = -1;
    int rc = rlock_list(client, NULL, forks_in_each, &calls);
    if (lister == 0) {
        bool right = rc == ECANCELED && calls == 1 && rlock_client_ping(client) == 0;
        execl("/bin/sh", "sh", "-c", right ? "exit 0" : "exit 1", (char *)NULL);
        abort();
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(calls, 2);
    struct forked child = { .pid = lister };
    ck_assert(forked_ends(&child, SOON_MS));
    ck_assert_int_eq(child.status, 0);
    OK(rlock_mutex_unlock(&own));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

static int forks_in_a_finding(const rlock_finding_t *finding, void *arg)
{
    (void)finding;
    return forks_in_each(NULL, arg);
}

START_TEST(child_forked_inside_a_diagnosis_gets_an_error)
{
    int calls = 0;
    NEEDS_FORK("child_forked_inside_a_diagnosis_gets_an_error");
    lister = -1;
    int rc = rlock_client_diagnose(client, forks_in_a_finding, &calls);
    if (lister == 0) {
        bool right = rc == ECANCELED && calls == 1 && rlock_client_ping(client) == 0;
        execl("/bin/sh", "sh", "-c", right ? "exit 0" : "exit 1", (char *)NULL);
        abort();
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_int_gt(calls, 2);
    struct forked child = { .pid = lister };
    ck_assert(forked_ends(&child, SOON_MS));
    ck_assert_int_eq(child.status, 0);
}
END_TEST

static void reset_only(void)
{
    test_server_reset(&server);
}

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
    Suite *suite = suite_create("fork anytime");

    TCase *crowd = tcase(suite, "crowd");
    tcase_add_loop_test(crowd, children_of_a_crowd_lock_in_turn_with_it, 0, ROUNDS);
    tcase_add_test(crowd, threads_may_fork_side_by_side);
    tcase_add_test(
        crowd, fork_while_the_default_client_is_opened_gives_the_child_one_of_its_own);

    TCase *first = tcase_create("first");
    tcase_add_unchecked_fixture(first, fixture_start, fixture_stop);
    tcase_add_checked_fixture(first, reset_only, NULL);
    tcase_add_test(first, fork_before_the_first_use_leaves_both_sides_fit);
    suite_add_tcase(suite, first);

    TCase *calls = tcase(suite, "calls");
    tcase_add_loop_test(calls, handlers_of_the_program_may_use_locks, BEFORE_OURS,
                        BEHIND_OURS + 1);
    tcase_add_loop_test(
        calls, child_that_returns_from_a_callback_ends_and_the_parent_goes_on, 0, 2);
    tcase_add_test(calls, child_forked_inside_a_listing_gets_an_error);
    tcase_add_test(calls, child_forked_inside_a_diagnosis_gets_an_error);
    return test_run_suite(suite);
}
