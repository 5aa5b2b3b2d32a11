/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that take descriptors away from the library: they point 0, 1 and 2 elsewhere,
 * or close all that they do not know, and have others at those numbers a moment later.
 * Holds stay held, no processor time is wasted, and no bytes of the program's descriptors
 * are read or written.
 */
#include "fixture.h"
#include "forked.h"
#include "process.h"

#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <syslog.h>
#include <unistd.h>

enum { SOON_MS = 15000, LEASE_MS = 1000, LONG_LEASE_MS = 2400, FDS_MAX = 256 };
enum { RENEWALS = 4 /* they take longer than a lease */ };

static char url[TEST_URL_MAX + 64], long_url[TEST_URL_MAX + 64];
static rlock_mutex_t theirs; /* the parent's handle */

static void set_up(void)
{
    fixture_open();
    test_rundir_own(); /* for the descriptors of the crash guard */
    theirs = mutex_of(client, "n");
    snprintf(url, sizeof(url), "%s?lease=%ld", server.url, test_ms(LEASE_MS));
    snprintf(long_url, sizeof(long_url), "%s?lease=%ld", server.url,
             test_ms(LONG_LEASE_MS));
}

/* ---- the child: a program with a client of its own */

/* It asserts nothing, because the descriptor that Check writes to is closed as well. */

static rlock_client_t *own;
static rlock_mutex_t m;
static atomic_int lines; /* of the log, about descriptors */

static void count_line(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    if (strstr(line, "closed descriptors of the library's thread"))
        atomic_fetch_add(&lines, 1);
}

static int begin(const char *at)
{
    rlock_setlogger(count_line, NULL, LOG_WARNING);
    MUST(rlock_client_open(&own, at, NULL) == 0);
    rlock_mutexattr_t attr;
    MUST(rlock_mutexattr_init(&attr) == 0);
    MUST(rlock_mutexattr_setclient(&attr, own) == 0);
    MUST(rlock_mutex_init(&m, &attr, "n") == 0);
    return 0;
}

static rlock_stats_t counted(void)
{
    rlock_stats_t stats;
    memset(&stats, 0, sizeof(stats));
    if (rlock_client_getstats(own, &stats) != 0)
        stats.losses = 1;
    return stats;
}

static int64_t cpu_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool has_renewed(void *arg)
{
    return counted().renewals >= *(uint64_t *)arg;
}

/* The library's first descriptors exist when it has renewed, and then its watchdog knows
 * of the hold. If all are closed before the watchdog has heard of the hold, that is
 * noticed within a second. */
static int has_all_it_needs(void)
{
    uint64_t wanted = 1;
    MUST(test_wait_until(has_renewed, &wanted, SOON_MS));
    return 0;
}

/* The hold is renewed for longer than its lease, at little cost. */
static int goes_on(void)
{
    uint64_t wanted = counted().renewals + RENEWALS;
    int64_t cpu = cpu_ms(), since = test_now_ms();
    MUST(test_wait_until(has_renewed, &wanted, SOON_MS));
    /* two threads that spin would use twice the time that passed */
    MUST(cpu_ms() - cpu <= (test_now_ms() - since) / 3 + test_ms(30));
    rlock_state_t state;
    MUST(rlock_mutex_getstate(&m, &state) == 0 && state == RLOCK_SAFE);
    MUST(counted().losses == 0);
    return 0;
}

/* ---- 0, 1 and 2 */

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* Except for moments in which the C library resolves a name. */
static bool low_are_closed(void *arg)
{
    (void)arg;
    return !is_open(0) && !is_open(1) && !is_open(2);
}

static int takes_what_is_low(struct forked_report *report, void *arg)
{
    int ends[2], low, line;
    char c;
    (void)report;
    MUST(pipe(ends) == 0 && ends[0] > 2 && ends[1] > 2);
    for (low = 0; low < 3; low++)
        close(low);
    MUST((line = begin(arg)) == 0);
    MUST(rlock_mutex_lock(&m) == 0);
    if ((line = has_all_it_needs()) != 0)
        return line;
    MUST(test_wait_until(low_are_closed, NULL, SOON_MS));
    /* like a daemon that has a pipe for its input */
    for (low = 0; low < 3; low++)
        MUST(dup2(ends[low > 0], low) == low);
    MUST(write(1, "abc", 3) == 3);
    if ((line = goes_on()) != 0)
        return line;
    for (int i = 0; i < 3; i++)
        MUST(read(0, &c, 1) == 1 && c == "abc"[i]);
    for (low = 0; low < 3; low++)
        close(low);
    if ((line = goes_on()) != 0)
        return line;
    MUST(rlock_mutex_unlock(&m) == 0);
    MUST(atomic_load(&lines) == 0); /* none of them was the library's */
    return 0;
}

START_TEST(program_may_have_0_to_2_closed_and_take_them_later)
{
    static char by_name[TEST_URL_MAX + 64];
    NEEDS_FORK("program_may_have_0_to_2_closed_and_take_them_later");
    snprintf(by_name, sizeof(by_name), "redis://localhost:%u?lease=%ld",
             (unsigned)server.port, test_ms(LEASE_MS));
    CHILD_IS_FINE(takes_what_is_low, _i ? by_name : url);
}
END_TEST

/* ---- all of them */

/* What a program has at the numbers that were the library's. */
enum kind { SOCKETS, EVENTS, FILES, TIMERS, PIPES, SETS, KINDS };

static struct {
    enum kind kind;
    int count;
    struct {
        int fd, second; /* second: made together with it; -1: none */
        struct stat stat;
    } ones[FDS_MAX];
} has;

static void keep(int fd, int second)
{
    fstat(fd, &has.ones[has.count].stat);
    has.ones[has.count].fd = fd;
    has.ones[has.count++].second = second;
}

static int make_one(enum kind kind, int ends[2])
{
    static const struct itimerspec soon = { { 1000, 0 }, { 0, 1 } };
    static char path[] = "/tmp/rlock-robbed-XXXXXX";
    struct epoll_event event = { .events = EPOLLIN };

    ends[1] = -1;
    switch (kind) {
    case SOCKETS:
        return socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    case PIPES:
        return pipe(ends);
    case FILES:
        memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
        ends[0] = mkstemp(path);
        unlink(path);
        break;
    case EVENTS:
        ends[0] = eventfd(5, 0);
        break;
    case TIMERS:
        ends[0] = timerfd_create(CLOCK_MONOTONIC, 0);
        if (ends[0] >= 0)
            timerfd_settime(ends[0], 0, &soon, NULL); /* readable at once */
        break;
    case SETS: { /* with one event to report, once */
        ends[0] = epoll_create1(0);
        ends[1] = eventfd(1, 0);
        event.events |= EPOLLET;
        event.data.fd = ends[1];
        return ends[0] < 0 || ends[1] < 0 ||
               epoll_ctl(ends[0], EPOLL_CTL_ADD, ends[1], &event);
    }
    case KINDS:
        break;
    }
    return ends[0] < 0;
}

/* Other threads may have opened descriptors meanwhile, which are not the program's. */
static int take_all(enum kind kind)
{
    int ends[2], last = 3;
    has.kind = kind;
    for (int fd = 3; fd < FDS_MAX; fd++)
        if (is_open(fd))
            last = fd;
    MUST(close_range(3, ~0U, 0) == 0);
    do {
        MUST(make_one(kind, ends) == 0);
        keep(ends[0], ends[1]);
        if (ends[1] >= 0)
            keep(ends[1], -1);
    } while (ends[0] < last && ends[1] < last && has.count < FDS_MAX - 2);
    return 0;
}

static int all_are_there(void)
{
    for (int i = 0; i < has.count; i++) {
        const struct stat *before = &has.ones[i].stat;
        struct stat now;
        MUST(fstat(has.ones[i].fd, &now) == 0);
        MUST(now.st_ino == before->st_ino && now.st_dev == before->st_dev);
        MUST(now.st_size == 0);
    }
    return 0;
}

/* Each descriptor is as it was. */
static int nothing_was_touched(void)
{
    for (int i = 0; i < has.count; i++) {
        struct epoll_event event;
        struct itimerspec timer;
        uint64_t n = 0;
        int fd = has.ones[i].fd, second = has.ones[i].second;

        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        if (has.kind == SOCKETS || (has.kind == PIPES && second >= 0))
            MUST(read(fd, &n, sizeof(n)) < 0 && errno == EAGAIN);
        if (has.kind == EVENTS)
            MUST(read(fd, &n, sizeof(n)) == sizeof(n) && n == 5);
        if (has.kind == TIMERS) {
            MUST(timerfd_gettime(fd, &timer) == 0 && timer.it_interval.tv_sec == 1000);
            MUST(read(fd, &n, sizeof(n)) == sizeof(n) && n == 1);
        }
        if (has.kind == SETS && second >= 0)
            MUST(epoll_wait(fd, &event, 1, 0) == 1 && event.data.fd == second);
    }
    return all_are_there();
}

/* Each of the two threads has logged it once. */
static bool has_told(void *arg)
{
    (void)arg;
    return atomic_load(&lines) == 2;
}

static int loses_all_while_it_holds(struct forked_report *report, void *arg)
{
    int line;
    (void)report;
    MUST((line = begin(url)) == 0);
    MUST(rlock_mutex_lock(&m) == 0);
    if ((line = has_all_it_needs()) != 0 || (line = take_all(*(enum kind *)arg)) != 0 ||
        (line = goes_on()) != 0)
        return line;
    MUST(test_wait_until(has_told, NULL, SOON_MS));
    MUST(rlock_mutex_unlock(&m) == 0);
    MUST(rlock_mutex_lock(&m) == 0);
    MUST(rlock_mutex_unlock(&m) == 0);
    if ((line = nothing_was_touched()) != 0)
        return line;
    MUST(rlock_client_close(own) == 0);
    MUST(atomic_load(&lines) == 2);
    return all_are_there();
}

START_TEST(hold_of_a_program_that_closes_all_goes_on)
{
    enum kind kind = (enum kind)_i;
    NEEDS_FORK("hold_of_a_program_that_closes_all_goes_on");
    CHILD_IS_FINE(loses_all_while_it_holds, &kind);
    OK(rlock_mutex_lock(&theirs));
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

/* The library's threads sleep without a timeout: nothing is due, and what would wake them
 * is gone. */
static int loses_all_while_it_rests(struct forked_report *report, void *arg)
{
    int line;
    (void)report;
    /* nothing notices it for a second */
    MUST((line = begin(long_url)) == 0);
    MUST(rlock_mutex_lock(&m) == 0);
    MUST(rlock_mutex_unlock(&m) == 0);
    MUST(test_thread_quiet(100, SOON_MS));
    if ((line = take_all(*(enum kind *)arg)) != 0)
        return line;
    MUST(rlock_mutex_lock(&m) == 0);
    if ((line = goes_on()) != 0)
        return line;
    MUST(rlock_mutex_unlock(&m) == 0);
    return nothing_was_touched();
}

START_TEST(threads_that_sleep_are_woken_though_all_was_closed)
{
    enum kind kind = (enum kind)_i;
    NEEDS_FORK("threads_that_sleep_are_woken_though_all_was_closed");
    CHILD_IS_FINE(loses_all_while_it_rests, &kind);
}
END_TEST

enum { WAITS = 1, GIVEN };

static bool has_a_waiter(void *arg)
{
    (void)arg;
    return counted().waiters_now == 1;
}

static void *locks(void *ret_rc)
{
    *(int *)ret_rc = rlock_mutex_lock(&m);
    return NULL;
}

static int loses_all_while_it_waits(struct forked_report *report, void *arg)
{
    pthread_t waiter;
    int line, rc = -1;
    MUST((line = begin(url)) == 0);
    MUST(pthread_create(&waiter, NULL, locks, &rc) == 0);
    MUST(test_wait_until(has_a_waiter, NULL, SOON_MS));
    MUST(test_thread_quiet(100, SOON_MS));
    if ((line = take_all(*(enum kind *)arg)) != 0)
        return line;
    forked_step(report, WAITS);
    MUST(forked_wait_step(report, GIVEN));
    pthread_join(waiter, NULL);
    MUST(rc == 0);
    return nothing_was_touched();
}

START_TEST(thread_that_waits_has_the_lock_though_all_was_closed)
{
    struct forked f;
    enum kind kind = (enum kind)_i;
    NEEDS_FORK("thread_that_waits_has_the_lock_though_all_was_closed");
    OK(rlock_mutex_lock(&theirs));
    forked_start(&f, loses_all_while_it_waits, &kind, FORKED_VANISH);
    ck_assert_msg(forked_reaches(&f, WAITS, SOON_MS), "line %d",
                  atomic_load(&f.report->line));
    OK(rlock_mutex_unlock(&theirs));
    forked_step(f.report, GIVEN);
    ck_assert_int_eq(forked_line(&f, 2 * SOON_MS), 0);
    ck_assert(forked_ends(&f, SOON_MS));
}
END_TEST

/* ---- how the library tells descriptors apart */

START_TEST(number_that_was_closed_is_given_to_no_other_of_ours)
{
    int first = rlk_fd_event();
    ck_assert(rlk_fd_is_ours(first));
    close(first); /* as a program would */
    ck_assert(!rlk_fd_is_ours(first));
    int second = rlk_fd_socket(AF_UNIX);
    ck_assert_int_ne(second, first);
    ck_assert(!rlk_fd_is_ours(first));
    int theirs_now = eventfd(7, EFD_CLOEXEC);
    ck_assert_int_eq(theirs_now, first);
    ck_assert(!rlk_fd_is_ours(first));
    ck_assert(!rlk_fd_ring(first));
    ck_assert(!rlk_fd_hush(first));
    rlk_fd_close(first);
    uint64_t n = 0;
    ck_assert_int_eq(read(theirs_now, &n, sizeof(n)), sizeof(n));
    ck_assert_uint_eq(n, 7);
    close(theirs_now);
    ck_assert(rlk_fd_is_ours(second));
    ck_assert(!rlk_fd_ring(second)); /* not an event */
    int third = rlk_fd_event();
    ck_assert_int_eq(third, first); /* the number is free again */
    rlk_fd_close(third);
    rlk_fd_close(second);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("robbed");
    TCase *tc = tcase_create("low");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_loop_test(tc, program_may_have_0_to_2_closed_and_take_them_later,
                        (int)test_count(0, 1), 2);
    suite_add_tcase(s, tc);
    tc = tcase_create("all");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_loop_test(tc, hold_of_a_program_that_closes_all_goes_on, 0,
                        (int)test_count(KINDS, 2));
    tcase_add_loop_test(tc, threads_that_sleep_are_woken_though_all_was_closed, 0,
                        (int)test_count(KINDS, 2));
    suite_add_tcase(s, tc);
    tc = tcase_create("waits");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    suite_add_tcase(s, tc);
    tcase_add_loop_test(tc, thread_that_waits_has_the_lock_though_all_was_closed, 0,
                        (int)test_count(KINDS, 2));
    tc = tcase_create("apart");
    tcase_add_test(tc, number_that_was_closed_is_given_to_no_other_of_ours);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(suite());
}
