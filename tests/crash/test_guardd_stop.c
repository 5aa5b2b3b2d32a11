/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=user */
/* How rlock-guard(8) ends: by which signals, from its first moment on, and quickly,
 * whatever its servers, the reader of its log and its service manager do. */
#include "guardscene.h"

#include "die.h"
#include "port.h"
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int ending[] = { SIGTERM, SIGINT, SIGHUP };
enum { ENDING = sizeof(ending) / sizeof(ending[0]), EARLY_RUNS = 20, STAYS_MS = 100 };

static void expect_end(int number)
{
    kill(guard.pid, number);
    ck_assert_int_eq(cli_ends(&guard, GUARD_STOP_MS), GUARD_OK);
}

static bool says_it_was(int number)
{
    char text[64];
    snprintf(text, sizeof(text), "rlock-guard: stopping on signal %d: ", number);
    return strstr(guard.err.text, text) != NULL;
}

START_TEST(signal_ends_it)
{
    const char *variable = guard_manager(false);
    GUARD_READY_WITH(variable, "--url", server.url);
    expect_end(ending[_i]);
    ck_assert(guard_tells("STOPPING=1\n"));
    ck_assert_msg(says_it_was(ending[_i]), "%s", guard.err.text);
    ck_assert_int_eq(test_rundir_count(guard_dir), 0);
}
END_TEST

static bool is_running(void *arg)
{
    siginfo_t info = { .si_pid = 0 };
    (void)arg;
    return waitid(P_PID, (id_t)guard.pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

START_TEST(signal_that_was_ignored_at_the_start_does_not_end_it)
{
    cli_start(&guard, CLI_ARGV("sh", "-c", "trap '' HUP INT; exec \"$0\"", guard_path()),
              guard_env(NULL));
    guard_is_ready();
    kill(guard.pid, SIGHUP);
    kill(guard.pid, SIGINT);
    ck_assert(test_stays(is_running, NULL, STAYS_MS));
    expect_end(SIGTERM);
    ck_assert_msg(says_it_was(SIGTERM), "%s", guard.err.text);
}
END_TEST

START_TEST(daemon_works_after_being_stopped_and_continued)
{
    GUARD_READY("--url", server.url);
    kill(guard.pid, SIGSTOP);
    kill(guard.pid, SIGCONT);
    kill(guard.pid, SIGUSR1);
    ck_assert(cli_complains(&guard, "0 recovered processes"));
    expect_end(SIGTERM);
}
END_TEST

/* ---- soon */

START_TEST(daemon_ends_soon_while_a_server_is_unreachable)
{
    test_server_kill(&server);
    GUARD_READY("--url", server.url);
    ck_assert(cli_complains(&guard, "cannot connect to "));
    expect_end(SIGTERM);
}
END_TEST

START_TEST(daemon_ends_soon_while_a_server_hangs)
{
    char url[TEST_URL_MAX + 64];
    snprintf(url, sizeof(url), "%s?commandtimeout=60000&connecttimeout=60000",
             server.url);
    GUARD_READY("--url", url);
    ck_assert(cli_complains(&guard, "connected to "));
    test_server_pause(&server);
    expect_end(SIGTERM);
}
END_TEST

/* The kernel accepts connections, but no reply ever comes. */
START_TEST(daemon_ends_soon_while_a_server_never_replies)
{
    char url[TEST_URL_MAX];
    uint16_t port;
    int reserved = test_port_reserve("127.0.0.1", &port);
    int listener = test_port_listen("127.0.0.1", port);
    snprintf(url, sizeof(url),
             "redis://127.0.0.1:%u?commandtimeout=60000&connecttimeout=60000",
             (unsigned)port);
    GUARD_READY("--url", url, "--url", server.url);
    ck_assert(cli_complains(&guard, "connected to ")); /* to the other server */
    expect_end(SIGTERM);
    close(listener);
    close(reserved);
}
END_TEST

/* ---- how it is started */

struct start {
    const int *pending; /* blocked signals that are pending already; 0 ends them */
    int err;            /* its stderr; -1: unchanged */
};

/* Runs in the child of fork(): calls only async-signal-safe functions. */
__attribute__((noreturn)) static void become(const struct start *start, char **env,
                                             const char *path)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int *number = start->pending; number && *number != 0; number++) {
        signal(*number, SIG_DFL); /* nohup ignores it, and the guard would inherit that */
        sigaddset(&blocked, *number);
    }
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    for (const int *number = start->pending; number && *number != 0; number++)
        raise(*number);
    if (start->err >= 0)
        dup2(start->err, STDERR_FILENO);
    char *const argv[] = { (char *)(uintptr_t)path, NULL };
    execve(path, argv, env);
    _exit(127);
}

static void start_with(const struct start *start)
{
    char **env = test_environ(guard_env(NULL));
    const char *path = guard_path();
    memset(&guard, 0, sizeof(guard));
    guard.in = guard.out.fd = guard.err.fd = -1;
    guard.pid = fork();
    if (guard.pid < 0)
        test_die("cannot fork: %s", strerror(errno));
    if (guard.pid == 0)
        become(start, env, path);
    free(env);
}

static void make_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        test_die("pipe2: %s", strerror(errno));
}

/* Valgrind drops pending signals when a process that it runs calls exec. */
static bool keeps_what_is_pending(const char *test)
{
    if (test_ms(1) < 10)
        return true;
    printf("skipped: %s: Valgrind drops pending signals\n", test);
    return false;
}

START_TEST(signal_that_came_before_it_began_ends_it)
{
    const int pending[] = { ending[_i], 0 };
    if (!keeps_what_is_pending("signal_that_came_before_it_began_ends_it"))
        return;
    start_with(&(struct start){ pending, -1 });
    ck_assert_int_eq(cli_ends(&guard, GUARD_STOP_MS), GUARD_OK);
}
END_TEST

/* Both signals are pending when it first looks: it answers SIGUSR1 and obeys SIGTERM. */
START_TEST(statistics_requested_before_the_start_are_reported)
{
    static const int pending[] = { SIGUSR1, SIGTERM, 0 };
    int ends[2];
    if (!keeps_what_is_pending("statistics_requested_before_the_start_are_reported"))
        return;
    make_pipe(ends);
    start_with(&(struct start){ pending, ends[1] });
    guard.err.fd = ends[0];
    close(ends[1]);
    ck_assert_int_eq(cli_ends(&guard, GUARD_STOP_MS), GUARD_OK);
    ck_assert_msg(strstr(guard.err.text, "rlock-guard: 0 recovered processes"), "%s",
                  guard.err.text);
}
END_TEST

static bool blocks(pid_t pid, int number)
{
    char path[64], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "SigBlk:", strlen("SigBlk:")) == 0)
            mask = strtoull(line + strlen("SigBlk:"), NULL, 16);
    if (file)
        fclose(file);
    return (mask >> (number - 1)) & 1;
}

/* libtool may have started a shell first, which then becomes the daemon. */
static bool is_itself(void)
{
    static const char name[] = "/rlock-guard";
    char path[64], target[PATH_MAX] = "";
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)guard.pid);
    ssize_t len = readlink(path, target, sizeof(target) - 1);
    return len > (ssize_t)strlen(name) && strcmp(target + len - strlen(name), name) == 0;
}

static bool is_asked(void *arg)
{
    (void)arg;
    return is_itself() && blocks(guard.pid, SIGUSR1);
}

static bool is_deaf(void *arg)
{
    (void)arg;
    return is_itself() && blocks(guard.pid, SIGTERM);
}

/* It reads URLs from a pipe that nothing has been written to yet. */
static void start_with_a_pipe(int ends[2])
{
    char path[64];
    make_pipe(ends);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), ends[0]);
    GUARD("--url-file", path);
    ck_assert(test_wait_until(is_asked, NULL, CLI_WAIT_MS));
}

START_TEST(statistics_requested_while_urls_are_read_are_reported)
{
    int ends[2];
    start_with_a_pipe(ends);
    kill(guard.pid, SIGUSR1);
    ck_assert_int_gt(dprintf(ends[1], "%s\n", server.url), 0);
    close(ends[1]);
    ck_assert_msg(cli_complains(&guard, "rlock-guard: 0 recovered processes"), "%s",
                  guard.err.text);
    expect_end(SIGTERM);
    close(ends[0]);
}
END_TEST

START_TEST(signal_while_it_reads_urls_ends_it)
{
    int ends[2];
    start_with_a_pipe(ends);
    kill(guard.pid, ending[_i]);
    ck_assert_int_eq(cli_ends(&guard, CLI_WAIT_MS), -ending[_i]);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* At any point between its first steps and being ready. */
START_TEST(signal_during_its_start_ends_it)
{
    for (int i = 0; i < EARLY_RUNS; i++) {
        GUARD("--url", server.url, "--url", server.tcp_url);
        ck_assert(test_wait_until(is_deaf, NULL, CLI_WAIT_MS));
        expect_end(SIGTERM);
        cli_stop(&guard);
    }
}
END_TEST

/* Like a pipe to a program that is stopped. */
START_TEST(log_that_nobody_reads_does_not_hold_up_its_end)
{
    static const char filler[4096];
    int ends[2];
    make_pipe(ends);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], filler, sizeof(filler)) > 0 || write(ends[1], filler, 1) > 0)
        continue;
    fcntl(ends[1], F_SETFL, 0);
    start_with(&(struct start){ NULL, ends[1] });
    ck_assert(test_wait_until(is_deaf, NULL, CLI_WAIT_MS));
    kill(guard.pid, SIGUSR1);
    expect_end(SIGTERM);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(log_that_was_closed_does_not_end_it)
{
    int ends[2];
    make_pipe(ends);
    close(ends[0]);
    start_with(&(struct start){ NULL, ends[1] });
    close(ends[1]);
    ck_assert(test_wait_until(is_deaf, NULL, CLI_WAIT_MS));
    kill(guard.pid, SIGUSR1);
    ck_assert(test_stays(is_running, NULL, STAYS_MS));
    expect_end(SIGTERM);
}
END_TEST

START_TEST(descriptors_that_are_closed_at_the_start_are_not_given_to_a_server)
{
    cli_start(&guard, CLI_ARGV("sh", "-c", "exec \"$0\" <&- >&- 2>&-", guard_path()),
              guard_env(NULL));
    ck_assert(test_wait_until(is_deaf, NULL, CLI_WAIT_MS));
    for (int i = 0; i < 3; i++) {
        char path[64], target[64] = "";
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)guard.pid, i);
        ck_assert_int_gt(readlink(path, target, sizeof(target) - 1), 0);
        ck_assert_str_eq(target, "/");
    }
    expect_end(SIGTERM);
}
END_TEST

/* ---- by force */

/* No client needs it: processes that use locks go on, and what it leaves behind is
 * removed. */
START_TEST(others_go_on_when_it_is_killed)
{
    static const char *const run[] = { "rlock", "run", "n", "--", "true", NULL };
    GUARD_READY("--url", server.url);
    kill(guard.pid, SIGKILL);
    ck_assert_int_eq(cli_ends(&guard, CLI_WAIT_MS), -SIGKILL);
    ck_assert_int_eq(cli_does(&other, run, guard_env(NULL)), 0);
    cli_stop(&other);
    cli_stop(&guard);
    GUARD_READY("--url", server.url);
    ck_assert(test_rundir_wait(guard_dir, 1, CLI_WAIT_MS)); /* the new daemon's */
    expect_end(SIGTERM);
    ck_assert_int_eq(test_rundir_count(guard_dir), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guardd_stop");
    TCase *tc = guard_case(suite, "signals");
    tcase_add_loop_test(tc, signal_ends_it, 0, ENDING);
    tcase_add_test(tc, signal_that_was_ignored_at_the_start_does_not_end_it);
    tcase_add_test(tc, daemon_works_after_being_stopped_and_continued);
    tc = guard_case(suite, "early");
    tcase_add_loop_test(tc, signal_that_came_before_it_began_ends_it, 0, ENDING);
    tcase_add_test(tc, statistics_requested_before_the_start_are_reported);
    tcase_add_test(tc, statistics_requested_while_urls_are_read_are_reported);
    tcase_add_loop_test(tc, signal_while_it_reads_urls_ends_it, 0, ENDING);
    tcase_add_test(tc, signal_during_its_start_ends_it);
    tc = guard_case(suite, "soon");
    tcase_add_test(tc, daemon_ends_soon_while_a_server_is_unreachable);
    tcase_add_test(tc, daemon_ends_soon_while_a_server_hangs);
    tcase_add_test(tc, daemon_ends_soon_while_a_server_never_replies);
    tcase_add_test(tc, log_that_nobody_reads_does_not_hold_up_its_end);
    tcase_add_test(tc, log_that_was_closed_does_not_end_it);
    tcase_add_test(tc,
                   descriptors_that_are_closed_at_the_start_are_not_given_to_a_server);
    tc = guard_case(suite, "killed");
    tcase_add_test(tc, others_go_on_when_it_is_killed);
    return test_run_suite(suite);
}
