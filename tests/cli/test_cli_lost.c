/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=user */
/* `rlock run` whose lease is lost or at risk, or whose server is away. */
#include "runscene.h"
#include "wait.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { LOST = 74, SOON_MS = 5000 };

/* Prints "pid $$", and then sleeps without changing how signals are handled. */
#define SLEEPS "sh", "-c", "echo pid $$; exec sleep 300"

START_TEST(loss_ends_the_command_at_once_and_gives_74)
{
    START(&c, "n", SLEEPS);
    pid_t command = run_pid(&c, "pid ");
    int64_t begin = test_now_ms();
    scene_force(); /* the lease of 30 s is renewed each 10 s */
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(SOON_MS));
    ck_assert(run_is_gone(command));
    ck_assert(cli_complains(&c, "rlock: lost \"n\""));
}
END_TEST

START_TEST(loss_is_found_by_the_next_renewal)
{
    char lease[16];
    snprintf(lease, sizeof(lease), "%ldms", test_ms(600));
    START(&c, "--lease", lease, "n", SLEEPS);
    pid_t command = run_pid(&c, "pid ");
    test_redis_do(redis, "DEL", "n");
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert(run_is_gone(command));
}
END_TEST

START_TEST(loss_is_found_while_the_server_is_away)
{
    char times[64];
    snprintf(times, sizeof(times), "?lease=%ld&commandtimeout=%ld", test_ms(600),
             test_ms(300));
    START_WITH(times, &c, "n", SLEEPS);
    pid_t command = run_pid(&c, "pid ");
    test_server_kill(&server);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert(run_is_gone(command));
    ck_assert(cli_complains(&c, "at risk"));
}
END_TEST

START_TEST(run_ends_at_once_when_the_server_is_gone_for_good)
{
    char lease[32];
    snprintf(lease, sizeof(lease), "?lease=%ld", test_ms(600));
    START_WITH(lease, &c, "n", SLEEPS); /* and a command timeout of 3 s */
    run_pid(&c, "pid ");
    test_server_kill(&server);
    ck_assert(cli_complains(&c, "lost \"n\": server unreachable for "));
    int64_t begin = test_now_ms();
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(1000));
}
END_TEST

START_TEST(loss_ends_readers_and_fair_holders_too)
{
    static const char *const options[] = { "--fair", "--read", "--write" };
    START(&c, options[_i], "n", SLEEPS);
    pid_t command = run_pid(&c, "pid ");
    scene_force();
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert(run_is_gone(command));
}
END_TEST

START_TEST(command_has_the_grace_period_to_clean_up)
{
    START(&c, "n", "sh", "-c",
          "trap 'echo cleaned up; exit 0' TERM; echo pid $$; sleep 300 & wait");
    run_pid(&c, "pid ");
    scene_force();
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert(cli_says(&c, "cleaned up"));
}
END_TEST

START_TEST(command_that_ignores_SIGTERM_is_killed_after_the_grace_period)
{
    enum { GRACE_MS = 300 };
    START(&c, "--grace", "0.3", "n", "sh", "-c",
          "trap '' TERM; echo pid $$; exec sleep 300");
    pid_t command = run_pid(&c, "pid ");
    int64_t begin = test_now_ms();
    scene_force();
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert_int_ge(test_now_ms() - begin, GRACE_MS);
    ck_assert(run_is_gone(command));
}
END_TEST

START_TEST(grandchild_that_ignores_SIGTERM_is_killed_though_the_command_ended)
{
    START(&c, "--grace", "0.3", "n", "sh", "-c",
          "(trap '' TERM; exec sleep 300) & echo pid $!; wait");
    pid_t grandchild = run_pid(&c, "pid ");
    scene_force();
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert(run_is_gone(grandchild));
}
END_TEST

START_TEST(loss_ends_what_left_the_process_group_too)
{
    START(&c, "n", "sh", "-c", "(setsid sleep 300 & echo pid $!); cat");
    pid_t adopted = run_pid(&c, "pid ");
    scene_force();
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert(run_is_gone(adopted));
}
END_TEST

/* In a mount namespace of its own. */
#define HIDE "mount -t tmpfs none /proc && "

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NEEDS_PROC true /* a sanitizer finds its own memory there */
#else
#define NEEDS_PROC false
#endif

START_TEST(grandchild_is_killed_where_proc_tells_nothing)
{
    enum { GRACE_MS = 300 };
    /* an empty /proc; one of other processes, among them one with the command's number;
     * one that hides the command */
    static const char *const scripts[] = {
        HIDE "exec \"$R\" run --grace 0.3 n sh -c"
             " '(trap \"\" TERM; exec sleep 300) & echo pid $!; wait'",
        HIDE "exec \"$R\" run --grace 0.3 n sh -c"
             " 'mkdir /proc/$$ && echo \"$$ (sh) S $PPID $$ $$ 0\" >/proc/$$/stat &&"
             " ln -s 1 /proc/self || exit;"
             " (trap \"\" TERM; exec sleep 300) & echo pid $!; wait'",
        HIDE "exec \"$R\" run --grace 0.3 n sh -c"
             " 'ln -s $PPID /proc/self || exit;"
             " (trap \"\" TERM; exec sleep 300) & echo pid $!; wait'",
    };

    if (NEEDS_PROC ||
        cli_does(&c, CLI_ARGV("unshare", "-rm", "sh", "-c", HIDE "true"), ENV) != 0) {
        printf("skipped: grandchild_is_killed_where_proc_tells_nothing: not here\n");
        return;
    }
    cli_stop(&c);
    cli_start(&c, CLI_ARGV("unshare", "-rm", "sh", "-c", scripts[_i]), ENV);
    pid_t grandchild = run_pid(&c, "pid ");
    int64_t begin = test_now_ms();
    scene_force();
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    /* the command is not taken for gone, and has the grace period */
    ck_assert_int_ge(test_now_ms() - begin, GRACE_MS);
    ck_assert(run_is_gone(grandchild));
}
END_TEST

START_TEST(grandchild_has_the_grace_period_though_the_command_ended)
{
    /* $$ is the command, the parent of the grandchild, which prints its last word when $$
     * is a zombie */
    START(&c, "--grace", "60", "n", "sh", "-c",
          "exec 3<&0; (trap 'for i in $(seq 5000); do"
          " grep -qs ^State:.Z /proc/$$/status && echo in peace && exit; done' TERM;"
          " echo set; read line <&3) & echo pid $!; wait");
    run_pid(&c, "pid ");
    ck_assert(cli_says(&c, "set"));
    scene_force();
    /* A shell may handle the signal only when its input ends. If it waited for a child
     * instead, the child could be born after the signal, and outlive it. */
    ck_assert(cli_complains(&c, "lost"));
    cli_close_in(&c);
    ck_assert(cli_says(&c, "in peace"));
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
}
END_TEST

START_TEST(command_that_is_stopped_is_ended)
{
    START(&c, "--grace", "60", "n", SLEEPS);
    pid_t command = run_pid(&c, "pid ");
    kill(command, SIGSTOP);
    ck_assert(run_is_stopped(command));
    scene_force();
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert(run_is_gone(command));
}
END_TEST

START_TEST(rlock_that_was_stopped_ends_the_command_before_it_runs_on)
{
    char cont[16], lease[16];
    snprintf(cont, sizeof(cont), "%d", SIGCONT);
    snprintf(lease, sizeof(lease), "%ldms", test_ms(500));
    START(&c, "--lease", lease, "n", scene_sleeper(), cont);
    pid_t command = run_pid(&c, "pid ");
    kill(c.pid, SIGTSTP);
    ck_assert(run_is_stopped(command));
    ck_assert(run_is_stopped(c.pid));
    ck_assert(run_is_free());
    kill(c.pid, SIGCONT);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert(run_is_gone(command));
    ck_assert(!strstr(c.out.text, "got")); /* SIGTERM was pending, and came first */
}
END_TEST

START_TEST(rlock_that_was_paused_ends_the_command)
{
    char lease[16];
    snprintf(lease, sizeof(lease), "%ldms", test_ms(500));
    START(&c, "--lease", lease, "n", SLEEPS);
    pid_t command = run_pid(&c, "pid ");
    kill(c.pid, SIGSTOP);
    ck_assert(run_is_free());
    kill(c.pid, SIGCONT);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert(run_is_gone(command));
}
END_TEST

/* ---- --max-hold and --min-hold */

static bool is_no_process(void *arg)
{
    return run_state(*(const pid_t *)arg) == 'X';
}

static bool is_still_held(void *arg)
{
    (void)arg;
    return run_is_held() && cli_ends(&c, 0) == CLI_STILL_RUNS;
}

START_TEST(command_is_ended_when_it_was_held_for_too_long)
{
    enum { HOLD_MS = 300, TOO_LONG = 124 };
    /* one ends on SIGTERM with a code of its own, one ignores it */
    static const char *const scripts[] = {
        "trap 'echo told; exit 3' TERM; echo pid $$; sleep 300 & wait",
        "trap '' TERM; echo pid $$; exec sleep 300",
    };
    int64_t begin = test_now_ms();

    START(&c, "--max-hold", "300ms", "--grace", "100ms", "n", "sh", "-c", scripts[_i]);
    pid_t command = run_pid(&c, "pid ");
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), TOO_LONG);
    ck_assert_int_ge(test_now_ms() - begin, HOLD_MS);
    ck_assert(run_is_gone(command));
    ck_assert(cli_complains(&c, "\"n\" was held for 0.3 s: ending the command"));
    ck_assert(!run_is_held());
    ck_assert_int_eq(strstr(c.out.text, "told") != NULL, _i == 0);
}
END_TEST

START_TEST(bound_of_the_hold_is_nothing_to_a_command_that_ends_before)
{
    ck_assert_int_eq(RUN("--max-hold", "1h", "n", "sh", "-c", "exit 3"), 3);
    ck_assert_uint_eq(c.err.len, 0);
}
END_TEST

START_TEST(lock_is_held_for_a_while_after_a_short_job)
{
    enum { HOLD_MS = 700 };
    int64_t begin = test_now_ms();

    START(&c, "--min-hold", "700ms", "n", "sh", "-c", "echo inside; exit 3");
    ck_assert(cli_says(&c, "inside"));
    ck_assert(run_is_held());
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 3);
    ck_assert_int_ge(test_now_ms() - begin, HOLD_MS);
    ck_assert(!run_is_held());
}
END_TEST

/* Longer than it takes until rlock reports what a command has left. */
START_TEST(nothing_is_said_of_a_command_that_left_nothing)
{
    ck_assert_int_eq(RUN("--min-hold", "1300ms", "n", "true"), 0);
    ck_assert_str_eq(c.err.text, "");
}
END_TEST

START_TEST(signal_ends_the_wait_after_a_short_job)
{
    START(&c, "--min-hold", "1h", "n", "sh", "-c", "echo pid $$; exit 3");
    pid_t command = run_pid(&c, "pid ");
    ck_assert(test_wait_until(is_no_process, &command, CLI_WAIT_MS));
    kill(c.pid, SIGWINCH);
    kill(c.pid, SIGCONT);
    ck_assert(test_stays(is_still_held, NULL, 100));
    kill(c.pid, SIGTERM);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 3);
    ck_assert(!run_is_held());
}
END_TEST

START_TEST(job_ended_by_a_signal_is_followed_by_no_wait)
{
    START(&c, "--min-hold", "1h", "n", SLEEPS);
    run_pid(&c, "pid ");
    kill(c.pid, SIGTERM);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 128 + SIGTERM);
    cli_stop(&c);
    ck_assert_int_eq(RUN("--min-hold", "1h", "n", "/nowhere/at/all"), 127);
}
END_TEST

START_TEST(loss_ends_the_wait_after_a_short_job)
{
    START(&c, "--min-hold", "1h", "n", "sh", "-c", "echo pid $$; exit 3");
    pid_t command = run_pid(&c, "pid ");
    ck_assert(test_wait_until(is_no_process, &command, CLI_WAIT_MS));
    scene_force();
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
}
END_TEST

/* ---- --on-lost warn */

START_TEST(warned_command_goes_on_and_its_code_is_passed_through)
{
    START(&c, "--on-lost", "warn", "n", "sh", "-c", "echo pid $$; cat; exit 5");
    run_pid(&c, "pid ");
    scene_force();
    ck_assert(cli_complains(&c, "rlock: lost \"n\""));
    ck_assert(cli_type(&c, "still here\n"));
    ck_assert(cli_says(&c, "still here"));
    cli_close_in(&c);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 5);
}
END_TEST

/* ---- a loss that only the unlock finds */

START_TEST(unlock_that_finds_the_loss_gives_74)
{
    START(&c, "n", "sh", "-c", "echo pid $$; cat; exit 5");
    run_pid(&c, "pid ");
    test_redis_do(redis, "DEL", "n");
    cli_close_in(&c);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert(cli_complains(&c, "before the command did"));
}
END_TEST

START_TEST(unlock_that_finds_the_loss_warns)
{
    START(&c, "--on-lost", "warn", "n", "sh", "-c", "echo pid $$; cat; exit 5");
    run_pid(&c, "pid ");
    test_redis_do(redis, "DEL", "n");
    cli_close_in(&c);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 5);
    ck_assert(cli_complains(&c, "before the command did"));
}
END_TEST

/* ---- --fd */

/* Opens a non-blocking writing end of what the process has at that descriptor. */
static int open_other_end(pid_t pid, int fd)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
    int end = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ck_assert_msg(end >= 0, "%s: %s", path, strerror(errno));
    return end;
}

/* Fills the pipe, and closes this end. */
static void fill(int end)
{
    while (write(end, "x", 1) == 1)
        continue;
    ck_assert_int_eq(errno, EAGAIN);
    close(end);
}

START_TEST(descriptor_tells_of_risk_safety_and_loss)
{
    char lease[32];
    snprintf(lease, sizeof(lease), "?lease=%ld", test_ms(1200));
    START_WITH(lease, &c, "--fd", "5", "--on-lost", "warn", "n", "sh", "-c",
               "echo pid $$; cat <&5; kill -STOP $$; echo the end");
    run_pid(&c, "pid ");
    test_server_pause(&server);
    ck_assert(cli_says(&c, "at-risk "));
    test_server_resume(&server);
    ck_assert(cli_says(&c, "safe\n"));
    scene_force();
    ck_assert(cli_says(&c, "lost "));
    kill(c.pid, SIGKILL); /* ends the file, and then the command */
    cli_collect(&c);
    ck_assert(!strstr(c.out.text, "the end"));
}
END_TEST

START_TEST(descriptor_is_at_its_place_whatever_lies_there)
{
    static const char *const fds[] = { "3",  "4",  "5",  "6",  "7",  "8",  "9",
                                       "10", "11", "12", "13", "14", "15", "200" };
    char script[128];
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        snprintf(script, sizeof(script),
                 "readlink /proc/self/fd/%s; readlink /proc/$PPID/exe >&2", fds[i]);
        ck_assert_int_eq(RUN("--fd", fds[i], "n", "sh", "-c", script), 0);
        ck_assert_msg(strncmp(c.out.text, "pipe:", strlen("pipe:")) == 0, "%s: %s",
                      fds[i], c.out.text);
        cli_stop(&c);
        /* a failure is still reported */
        ck_assert_int_eq(RUN("--fd", fds[i], "n", "/nowhere/at/all"), 127);
        ck_assert(cli_complains(&c, "cannot run"));
        cli_stop(&c);
    }
}
END_TEST

START_TEST(reader_that_does_not_read_never_holds_up_rlock)
{
    START(&c, "--fd", "3", "n", SLEEPS);
    pid_t command = run_pid(&c, "pid ");
    fill(open_other_end(command, 3));
    scene_force();
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert(run_is_gone(command));
}
END_TEST

START_TEST(reader_that_closed_its_end_does_not_end_rlock)
{
    START(&c, "--fd", "3", "n", "sh", "-c", "exec 3<&-; echo pid $$; exec sleep 300");
    run_pid(&c, "pid ");
    scene_force(); /* no SIGPIPE */
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
}
END_TEST

/* ---- stderr that does not drain */

/* Fills rlock's stderr. Returns the reading end, which stays open. */
static int fill_stderr(struct cli *cli)
{
    int reader = cli->err.fd;
    cli->err.fd = -1; /* the test does not read it */
    fill(open_other_end(cli->pid, STDERR_FILENO));
    return reader;
}

START_TEST(loss_ends_the_command_though_nobody_reads_stderr)
{
    START(&c, "n", SLEEPS);
    pid_t command = run_pid(&c, "pid ");
    int reader = fill_stderr(&c);
    scene_force();
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert(run_is_gone(command));
    close(reader);
}
END_TEST

START_TEST(loss_ends_the_command_though_the_terminal_is_stopped)
{
    cli_start_pty(&c, CLI_ARGV("rlock", "run", "n", SLEEPS), ENV, 24, 80);
    pid_t command = run_pid(&c, "pid ");
    int terminal = open_other_end(command, STDIN_FILENO);
    ck_assert_int_eq(tcflow(terminal, TCOOFF), 0);
    close(terminal);
    scene_force();
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), LOST);
    ck_assert(run_is_gone(command));
}
END_TEST

START_TEST(signals_are_forwarded_though_nobody_reads_stderr)
{
    char lease[32];
    snprintf(lease, sizeof(lease), "?lease=%ld", test_ms(1200));
    START_WITH(lease, &c, "--fd", "5", "--on-lost", "warn", "n", "sh", "-c",
               "trap 'echo told; exit 3' USR1; echo pid $$; cat <&5 & wait");
    run_pid(&c, "pid ");
    int reader = fill_stderr(&c);
    test_server_pause(&server);
    ck_assert(cli_says(&c, "at-risk "));
    test_server_resume(&server);
    ck_assert(cli_says(&c, "safe\n")); /* by now at-risk has been reported */
    kill(c.pid, SIGUSR1);
    ck_assert(cli_says(&c, "told"));
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 3);
    ck_assert(!run_is_held());
    close(reader);
}
END_TEST

START_TEST(lock_is_given_back_though_nobody_reads_stderr)
{
    scene_hold(&other, "-q");
    START(&c, "n", "/nowhere/at/all");
    ck_assert(run_is_queued(1));
    int reader = fill_stderr(&c);
    cli_close_in(&other);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 127);
    ck_assert(!run_is_held());
    close(reader);
}
END_TEST

/* ---- a server that is away, or does not answer */

START_TEST(server_that_comes_back_in_time_is_enough)
{
    test_server_kill(&server);
    START(&c, "--wait", "60", "n", "echo", "inside");
    test_server_restart(&server);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
    ck_assert_str_eq(c.out.text, "inside\n");
}
END_TEST

static bool still_runs(void *arg)
{
    (void)arg;
    return cli_ends(&c, 0) == CLI_STILL_RUNS;
}

/* At the first connect, and while it is queued. */
START_TEST(wait_outlasts_an_outage_of_many_command_timeouts)
{
    enum { OUTAGE_MS = 1000 };
    bool queues = _i;

    if (queues) /* a restart removes this key */
        test_redis_do(redis, "HSET", "n", "7c9ad6a5-7c1f-4ee0-a6cd-fd3d1f1cd1d3:52", "1");
    else
        test_server_kill(&server);
    START_WITH("?commandtimeout=100", &c, "--wait", "120", "n", "echo", "inside");
    if (queues) {
        ck_assert(run_is_queued(1));
        test_server_kill(&server);
    }
    ck_assert_msg(test_stays(still_runs, NULL, OUTAGE_MS), "%s", c.err.text);
    test_server_restart(&server);
    ck_assert_msg(cli_ends(&c, CLI_WAIT_MS) == 0, "%s", c.err.text);
    ck_assert_str_eq(c.out.text, "inside\n");
}
END_TEST

START_TEST(without_wait_an_outage_while_it_is_queued_gives_69)
{
    scene_hold(&other, "--fair");
    START_WITH("?commandtimeout=700", &c, "n", "echo", "inside");
    ck_assert(run_is_queued(1));
    test_server_kill(&server);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 69);
    ck_assert_uint_eq(c.out.len, 0);
}
END_TEST

static const char giving_back[] =
    "rlock: the server does not answer the unlock of \"n\"\n";

START_TEST(slow_release_is_reported)
{
    START(&c, "n", "sh", "-c", "echo pid $$; cat");
    run_pid(&c, "pid ");
    test_server_pause(&server);
    cli_close_in(&c);
    ck_assert(cli_complains(&c, giving_back));
    ck_assert_int_eq(cli_ends(&c, 0), CLI_STILL_RUNS); /* meanwhile, not at the end */
    test_server_resume(&server);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
    ck_assert_str_eq(c.err.text, giving_back); /* once */
    ck_assert(!run_is_held());
}
END_TEST

START_TEST(release_in_time_is_not_reported)
{
    ck_assert_int_eq(RUN("n", "true"), 0);
    ck_assert_uint_eq(c.err.len, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_lost");
    TCase *tc = scene_case(suite, "term");
    tcase_add_test(tc, loss_ends_the_command_at_once_and_gives_74);
    tcase_add_test(tc, loss_is_found_by_the_next_renewal);
    tcase_add_test(tc, loss_is_found_while_the_server_is_away);
    tcase_add_test(tc, run_ends_at_once_when_the_server_is_gone_for_good);
    tcase_add_loop_test(tc, loss_ends_readers_and_fair_holders_too, 0, 3);
    tcase_add_test(tc, command_has_the_grace_period_to_clean_up);
    tcase_add_test(tc, command_that_ignores_SIGTERM_is_killed_after_the_grace_period);
    tcase_add_test(tc,
                   grandchild_that_ignores_SIGTERM_is_killed_though_the_command_ended);
    tcase_add_test(tc, loss_ends_what_left_the_process_group_too);
    tcase_add_loop_test(tc, grandchild_is_killed_where_proc_tells_nothing, 0, 3);
    tcase_add_test(tc, grandchild_has_the_grace_period_though_the_command_ended);
    tcase_add_test(tc, command_that_is_stopped_is_ended);
    tcase_add_test(tc, rlock_that_was_stopped_ends_the_command_before_it_runs_on);
    tcase_add_test(tc, rlock_that_was_paused_ends_the_command);
    tc = scene_case(suite, "bounds");
    tcase_add_loop_test(tc, command_is_ended_when_it_was_held_for_too_long, 0, 2);
    tcase_add_test(tc, bound_of_the_hold_is_nothing_to_a_command_that_ends_before);
    tcase_add_test(tc, lock_is_held_for_a_while_after_a_short_job);
    tcase_add_test(tc, nothing_is_said_of_a_command_that_left_nothing);
    tcase_add_test(tc, signal_ends_the_wait_after_a_short_job);
    tcase_add_test(tc, job_ended_by_a_signal_is_followed_by_no_wait);
    tcase_add_test(tc, loss_ends_the_wait_after_a_short_job);
    tc = scene_case(suite, "warn");
    tcase_add_test(tc, warned_command_goes_on_and_its_code_is_passed_through);
    tcase_add_test(tc, unlock_that_finds_the_loss_gives_74);
    tcase_add_test(tc, unlock_that_finds_the_loss_warns);
    tc = scene_case(suite, "descriptor");
    tcase_add_test(tc, descriptor_tells_of_risk_safety_and_loss);
    tcase_add_test(tc, descriptor_is_at_its_place_whatever_lies_there);
    tcase_add_test(tc, reader_that_does_not_read_never_holds_up_rlock);
    tcase_add_test(tc, reader_that_closed_its_end_does_not_end_rlock);
    tc = scene_case(suite, "stderr");
    tcase_add_test(tc, loss_ends_the_command_though_nobody_reads_stderr);
    tcase_add_test(tc, loss_ends_the_command_though_the_terminal_is_stopped);
    tcase_add_test(tc, signals_are_forwarded_though_nobody_reads_stderr);
    tcase_add_test(tc, lock_is_given_back_though_nobody_reads_stderr);
    tc = scene_case(suite, "server");
    tcase_add_test(tc, server_that_comes_back_in_time_is_enough);
    tcase_add_loop_test(tc, wait_outlasts_an_outage_of_many_command_timeouts, 0, 2);
    tcase_add_test(tc, without_wait_an_outage_while_it_is_queued_gives_69);
    tcase_add_test(tc, slow_release_is_reported);
    tcase_add_test(tc, release_in_time_is_not_reported);
    return test_run_suite(suite);
}
