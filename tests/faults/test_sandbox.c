/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes that refuse a system call with an error, as containers and services of
 * systemd do, with any code. The call returns EAGAIN, or another code of the header, and
 * says which step failed; or the library works without that system call.
 */
#include "fixture.h"
#include "forked.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_fcntl64 /* systems of 32 bits */
#define FCNTL SYS_fcntl64
#else
#define FCNTL SYS_fcntl
#endif
#ifdef SYS_socketcall /* there the C library may make sockets by either */
#define SOCKET SYS_socket, SYS_socketcall
#else
#define SOCKET SYS_socket
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif

enum { SOON_MS = 15000 };

static char url[TEST_URL_MAX + 64], by_name[TEST_URL_MAX + 64];

static void set_up(void)
{
    fixture_open();
    test_rundir_own();
    snprintf(url, sizeof(url), "%s?commandtimeout=%ld", server.url, test_ms(500));
    snprintf(by_name, sizeof(by_name), "redis://localhost:%u?commandtimeout=%ld",
             (unsigned)server.port, test_ms(500));
}

enum { ANY = -1 };

/* From now on the calling thread, and those that it starts, get this code for the system
 * calls of this number, or only for those with this second argument. */
static int refuse(long number, long argument, int code)
{
    const unsigned second =
        offsetof(struct seccomp_data, args[1]) +
        (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(uint32_t) : 0);
    struct sock_filter any[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_filter some[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, second),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)argument, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    bool is_any = argument == ANY;
    struct sock_fprog filter = { (unsigned short)(is_any
                                                      ? sizeof(any) / sizeof(any[0])
                                                      : sizeof(some) / sizeof(some[0])),
                                 is_any ? any : some };
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
    return 0;
}

static const struct refusal {
    const char *name;
    long numbers[2];
    long argument;
    int codes[2], opens, locks; /* codes of the calls */
    const char *step;           /* what the message of the failing call names */
    bool by_name;               /* the URL has a host name, which a thread resolves */
} refusals[] = {
    { "clone3",
      { SYS_clone3, SYS_clone },
      ANY,
      { EPERM, EPERM },
      EAGAIN,
      0,
      "the thread rlock-",
      false },
    { "clone",
      { SYS_clone3, SYS_clone },
      ANY,
      { ENOSYS, EPERM },
      EAGAIN,
      0,
      "the thread rlock-",
      false },
    { "no clone",
      { SYS_clone3, SYS_clone },
      ANY,
      { ENOSYS, ENOSYS },
      EAGAIN,
      0,
      "the thread rlock-",
      false },
    { "timerfd",
      { SYS_timerfd_create },
      ANY,
      { EPERM },
      EAGAIN,
      0,
      "timerfd_create",
      false },
    { "no timerfd",
      { SYS_timerfd_create },
      ANY,
      { ENOSYS },
      EAGAIN,
      0,
      "timerfd_create",
      false },
    { "eventfd", { SYS_eventfd2 }, ANY, { EPERM }, EAGAIN, 0, "eventfd", false },
    { "no eventfd", { SYS_eventfd2 }, ANY, { ENOSYS }, EAGAIN, 0, "eventfd", false },
    { "getrandom", { SYS_getrandom }, ANY, { EPERM }, EAGAIN, 0, "getrandom", false },
    { "no getrandom", { SYS_getrandom }, ANY, { ENOSYS }, EAGAIN, 0, "getrandom", false },
    { "socket", { SOCKET }, ANY, { EPERM, EPERM }, 0, ENOTCONN, "socket", false },
    { "socket, EACCES",
      { SOCKET },
      ANY,
      { EACCES, EACCES },
      0,
      ENOTCONN,
      "socket",
      false },
    /* the library works without these */
    { "epoll", { SYS_epoll_create1 }, ANY, { EPERM }, 0, 0, NULL, false },
    { "inotify", { SYS_inotify_init1 }, ANY, { EPERM }, 0, 0, NULL, false },
    { "inotify_add_watch", { SYS_inotify_add_watch }, ANY, { EPERM }, 0, 0, NULL, false },
    { "signalfd", { SYS_signalfd4 }, ANY, { ENOSYS }, 0, 0, NULL, false },
    { "F_SETSIG", { FCNTL }, F_SETSIG, { EPERM }, 0, 0, NULL, true },
    { "mremap", { SYS_mremap }, ANY, { EPERM }, 0, 0, NULL, false },
};
enum { REFUSALS = sizeof(refusals) / sizeof(refusals[0]) };

static int is_told(struct forked_report *report, int rc, int wanted, const char *step)
{
    snprintf(report->text, sizeof(report->text), "%d %.50s", rc, rlock_errmsg());
    MUST(rc == wanted);
    MUST(rc == 0 || strstr(rlock_errmsg(), step) != NULL);
    return 0;
}

static int lives_in_it(struct forked_report *report, void *arg)
{
    const struct refusal *r = arg;
    rlock_client_t *own;
    rlock_mutexattr_t attr;
    rlock_mutex_t m;
    int line;

    for (int i = 0; i < 2 && (i == 0 || r->numbers[i] != 0); i++)
        MUST((line = refuse(r->numbers[i], r->argument, r->codes[i])) == 0);
    int rc = rlock_client_open(&own, r->by_name ? by_name : url, NULL);
    if ((line = is_told(report, rc, r->opens, r->step)) != 0 || rc != 0)
        return line;
    MUST(rlock_mutexattr_init(&attr) == 0);
    MUST(rlock_mutexattr_setclient(&attr, own) == 0);
    MUST(rlock_mutex_init(&m, &attr, "n") == 0);
    rc = rlock_mutex_trylock(&m);
    if ((line = is_told(report, rc, r->locks, r->step)) != 0)
        return line;
    MUST(rc != 0 || rlock_mutex_unlock(&m) == 0);
    return rlock_client_close(own) == 0 ? 0 : __LINE__;
}

START_TEST(call_says_which_step_a_sandbox_refuses)
{
    struct refusal r = refusals[_i];
    struct forked f;
    NEEDS_FORK("call_says_which_step_a_sandbox_refuses");
    forked_start(&f, lives_in_it, &r, FORKED_VANISH);
    int line = forked_line(&f, SOON_MS);
    ck_assert_msg(line == 0, "%s: line %d: %s", r.name, line, f.report->text);
    ck_assert(forked_ends(&f, SOON_MS));
}
END_TEST

/* ---- a sandbox that is entered later */

static rlock_client_t *early;

static bool is_connected(void *unused)
{
    rlock_stats_t stats;

    (void)unused;
    return rlock_client_getstats(early, &stats) == 0 && stats.connects > 0;
}

static int resolves_in_it(struct forked_report *report, void *arg)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t m;
    int line;

    (void)arg;
    MUST(rlock_client_open(&early, by_name, NULL) == 0);
    MUST(rlock_mutexattr_init(&attr) == 0);
    MUST(rlock_mutexattr_setclient(&attr, early) == 0);
    MUST(rlock_mutex_init(&m, &attr, "n") == 0);
    /* the client's own thread has looked up the name: nobody else waits for its answer */
    MUST(test_wait_until(is_connected, NULL, SOON_MS));
    MUST((line = refuse(SYS_clone3, ANY, EPERM)) == 0);
    MUST((line = refuse(SYS_clone, ANY, EPERM)) == 0); /* Valgrind has no clone3 */
    int rc = rlock_mutex_trylock(&m);
    snprintf(report->text, sizeof(report->text), "%d %.50s", rc, rlock_errmsg());
    MUST(rc == EAGAIN || rc == ENOTCONN);
    MUST(strstr(rlock_errmsg(), "the thread rlock-resolve") != NULL);
    return 0;
}

START_TEST(name_that_no_thread_can_resolve_is_said_to_be)
{
    struct forked f;
    NEEDS_FORK("name_that_no_thread_can_resolve_is_said_to_be");
    forked_start(&f, resolves_in_it, NULL, FORKED_VANISH);
    int line = forked_line(&f, SOON_MS);
    ck_assert_msg(line == 0, "line %d: %s", line, f.report->text);
    ck_assert(forked_ends(&f, SOON_MS));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sandbox");
    TCase *tc = tcase_create("refused");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_loop_test(tc, call_says_which_step_a_sandbox_refuses, 0, REFUSALS);
    tcase_add_test(tc, name_that_no_thread_can_resolve_is_said_to_be);
    suite_add_tcase(s, tc);
    return test_run_suite(s);
}
