/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=user */
/* `rlock run` and signals, without a terminal: forwarded to the command, and while rlock
 * waits for the lock. */
#include "rundir.h"
#include "runscene.h"
#include "wait.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

enum { SLEEPER_CODE = 7, STAYS_MS = 150 };

/* Every signal that is forwarded and does not stop a process. */
static const int told[] = { SIGTERM, SIGINT,  SIGHUP,   SIGQUIT,
                            SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT };
static const int ending[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
enum {
    TOLD = sizeof(told) / sizeof(told[0]),
    ENDING = sizeof(ending) / sizeof(ending[0])
};

static char number[16];

static const char *text_of(int signal_number)
{
    snprintf(number, sizeof(number), "%d", signal_number);
    return number;
}

/* ---- the command */

START_TEST(signal_is_forwarded_to_the_command)
{
    char got[32];
    START(&c, "n", scene_sleeper(), text_of(told[_i]));
    run_pid(&c, "pid ");
    kill(c.pid, told[_i]);
    snprintf(got, sizeof(got), "got %d\n", told[_i]);
    ck_assert(cli_says(&c, got));
    cli_close_in(&c);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), SLEEPER_CODE);
}
END_TEST

START_TEST(signal_that_ends_the_command_is_its_code)
{
    START(&c, "n", scene_sleeper());
    run_pid(&c, "pid ");
    kill(c.pid, ending[_i]);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 128 + ending[_i]);
    ck_assert(!run_is_held());
}
END_TEST

START_TEST(signal_reaches_the_whole_process_group)
{
    START(&c, "n", "sh", "-c", "sleep 300 & echo pid $!; wait; wait");
    pid_t background = run_pid(&c, "pid ");
    kill(c.pid, SIGTERM);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 128 + SIGTERM);
    ck_assert(run_is_gone(background));
}
END_TEST

START_TEST(stop_and_continue_reach_the_command)
{
    START(&c, "n", scene_sleeper());
    pid_t command = run_pid(&c, "pid ");
    kill(c.pid, SIGTSTP);
    ck_assert(run_is_stopped(command));
    ck_assert(run_is_stopped(c.pid)); /* so that a shell notices it */
    kill(c.pid, SIGCONT);
    cli_close_in(&c);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), SLEEPER_CODE);
}
END_TEST

static bool is_running(void *arg)
{
    char state = run_state(*(const pid_t *)arg);
    return state != 'T' && state != 'X' && state != 'Z';
}

START_TEST(rlock_goes_on_when_somebody_stops_the_command_alone)
{
    START(&c, "n", scene_sleeper());
    pid_t command = run_pid(&c, "pid ");
    kill(command, SIGSTOP);
    ck_assert(run_is_stopped(command));
    ck_assert(test_stays(is_running, &c.pid, STAYS_MS));
    kill(command, SIGCONT);
    cli_close_in(&c);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), SLEEPER_CODE);
}
END_TEST

START_TEST(ignored_signal_ends_neither_rlock_nor_the_command)
{
    char usr1[16];
    snprintf(usr1, sizeof(usr1), "%d", SIGUSR1);
    cli_start(&c,
              CLI_ARGV("sh", "-c", "trap '' HUP; exec $R run n \"$@\"", "sh",
                       scene_sleeper(), usr1),
              ENV);
    run_pid(&c, "pid ");
    kill(c.pid, SIGHUP);
    kill(c.pid, SIGUSR1);
    ck_assert(cli_says(&c, "got "));
    cli_close_in(&c);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), SLEEPER_CODE);
}
END_TEST

START_TEST(command_ends_when_rlock_is_killed)
{
    START(&c, "n", "sh", "-c", "echo pid $$; exec sleep 300");
    pid_t command = run_pid(&c, "pid ");
    kill(c.pid, SIGKILL);
    ck_assert(run_is_gone(command));
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), -SIGKILL);
}
END_TEST

START_TEST(command_that_is_stopped_ends_when_rlock_is_killed)
{
    START(&c, "n", scene_sleeper());
    pid_t command = run_pid(&c, "pid ");
    kill(command, SIGSTOP);
    ck_assert(run_is_stopped(command));
    kill(c.pid, SIGKILL);
    ck_assert(run_is_gone(command));
}
END_TEST

/* In the command's process group; in a session of its own; in a session of its own, and
 * orphaned. */
static const char *const descendants[] = {
    "sleep 300 & echo pid $!; wait; echo after",
    "setsid sleep 300 & echo pid $!; wait; echo after",
    "(setsid sleep 300 & echo pid $!); cat; echo after",
};

START_TEST(descendants_end_when_rlock_is_killed)
{
    START(&c, "n", "sh", "-c", descendants[_i]);
    pid_t descendant = run_pid(&c, "pid ");
    kill(c.pid, SIGKILL);
    ck_assert(run_is_gone(descendant));
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), -SIGKILL);
    ck_assert(!strstr(c.out.text, "after"));
}
END_TEST

static bool other_waits(void *arg)
{
    (void)arg;
    cli_collect(&other);
    return other.out.len == 0;
}

/* Otherwise the crash guard would release the lock at once. A traced supervisor, which
 * SIGCONT does not wake, stands for a late one. */
START_TEST(lock_stays_held_until_the_descendants_have_ended)
{
    test_rundir_own();
    START(&c, "n", "sh", "-c", "echo supervisor $PPID; sleep 300 & echo pid $!; wait");
    pid_t supervisor = run_pid(&c, "supervisor "), descendant = run_pid(&c, "pid ");
    START(&other, "n", "echo", "inside");
    ck_assert(run_is_queued(1));
    if (ptrace(PTRACE_ATTACH, supervisor, NULL, NULL) != 0) {
        printf("skipped: lock_stays_held_until_the_descendants_have_ended: %s\n",
               strerror(errno));
        return;
    }
    ck_assert_int_eq(waitpid(supervisor, NULL, __WALL), supervisor);
    kill(c.pid, SIGKILL);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), -SIGKILL);
    ck_assert(test_stays(other_waits, NULL, 4 * STAYS_MS));
    ck_assert_int_eq(ptrace(PTRACE_DETACH, supervisor, NULL, NULL), 0);
    ck_assert(run_is_gone(descendant));
    int64_t begin = test_now_ms();
    ck_assert(cli_says(&other, "inside")); /* long before the lease of 30 s ends */
    ck_assert_int_lt(test_now_ms() - begin, test_ms(5000));
    ck_assert_int_eq(cli_ends(&other, CLI_WAIT_MS), 0);
}
END_TEST

START_TEST(command_ends_when_its_supervisor_is_killed)
{
    START(&c, "n", "sh", "-c", "echo supervisor $PPID; sleep 300 & echo pid $!; wait");
    pid_t supervisor = run_pid(&c, "supervisor "), descendant = run_pid(&c, "pid ");
    kill(supervisor, SIGKILL);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 128 + SIGKILL);
    ck_assert(run_is_gone(descendant));
    ck_assert(!run_is_held());
}
END_TEST

START_TEST(command_ends_with_its_supervisor_though_rlock_cannot_see_to_it)
{
    START(&c, "n", "sh", "-c", "echo supervisor $PPID; echo pid $$; exec sleep 300");
    pid_t supervisor = run_pid(&c, "supervisor "), command = run_pid(&c, "pid ");
    kill(c.pid, SIGSTOP);
    ck_assert(run_is_stopped(c.pid));
    kill(supervisor, SIGKILL);
    ck_assert(run_is_gone(command));
}
END_TEST

START_TEST(signal_reaches_what_the_command_left)
{
    /* setsid forks, because it leads a group: its child gets the signal, not setsid */
    START(&c, "n", "setsid", scene_sleeper());
    run_pid(&c, "pid ");
    kill(c.pid, SIGTERM);
    int code = cli_ends(&c, CLI_WAIT_MS);
    /* or the signal comes when setsid is just about to end, and hits it as well */
    ck_assert_msg(code == 0 || code == 128 + SIGTERM, "%d", code);
    ck_assert(!run_is_held());
}
END_TEST

/* Starts a command that ends by a signal, and leaves a sleeper in a session of its own.
 * The sleeper reports that signal and SIGTERM. */
static void begin_to_leave_at(const char *signal, int which)
{
    char script[512];
    snprintf(script, sizeof(script),
             /* not /dev/null: at the end of its input the sleeper would leave */
             "exec 3<&0; echo supervisor $PPID; trap 'echo leaving; exit 0' %s;"
             " setsid %s %d %d <&3 & while :; do sleep 0.1; done",
             signal, scene_sleeper(), which, SIGTERM);
    START(&c, "n", "sh", "-c", script);
    run_pid(&c, "pid ");
}

static void leave_at(const char *signal, int which)
{
    begin_to_leave_at(signal, which);
    kill(c.pid, which);
    ck_assert(cli_says(&c, "leaving"));
}

START_TEST(remaining_processes_of_an_ended_command_get_the_signal_too)
{
    leave_at("INT", SIGINT);
    ck_assert(cli_says(&c, "got 2\n"));
    cli_close_in(&c);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
    ck_assert(!run_is_held());
}
END_TEST

/* The sleeper that the command left gets SIGTERM, and got no SIGHUP before. */
static void remains_without_SIGHUP(void)
{
    ck_assert(cli_complains(&c, "still holding"));
    kill(c.pid, SIGTERM);
    ck_assert(cli_says(&c, "got 15\n"));
    ck_assert(!strstr(c.out.text, "got 1\n"));
    cli_close_in(&c);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
}

/* Many programs read their configuration again at SIGHUP. */
START_TEST(what_a_command_leaves_hears_of_no_SIGHUP)
{
    leave_at("HUP", SIGHUP);
    remains_without_SIGHUP();
}
END_TEST

/* The supervisor learns of the signal when the command has already ended by it. */
START_TEST(late_supervisor_repeats_no_SIGHUP)
{
    begin_to_leave_at("HUP", SIGHUP);
    pid_t supervisor = run_pid(&c, "supervisor ");
    kill(supervisor, SIGSTOP);
    ck_assert(run_is_stopped(supervisor));
    kill(c.pid, SIGHUP);
    ck_assert(cli_says(&c, "leaving"));
    kill(supervisor, SIGCONT);
    remains_without_SIGHUP();
}
END_TEST

/* ---- children that rlock has not started */

static bool is_reaped(void *arg)
{
    return run_state(*(const pid_t *)arg) == 'X';
}

START_TEST(orphan_of_the_command_is_reaped)
{
    START(&c, "n", "sh", "-c", "(sh -c 'exit 0' & echo pid $!); cat");
    pid_t orphan = run_pid(&c, "pid ");
    ck_assert(test_wait_until(is_reaped, &orphan, CLI_WAIT_MS));
    cli_close_in(&c);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
}
END_TEST

/* rlock inherits a child that it did not start, like the first process of a container. */
static const struct {
    const char *script, *says;
    bool waits;
} parents[] = {
    { "exec \"$R\" run n sh -c 'echo inside; exec cat'", "inside", false },
    { "exec \"$R\" run n cat", "pid", true },
    { "exec \"$R\" wait n", "pid", true },
    { "exec \"$R\" watch", "n", true },
};

START_TEST(child_that_rlock_did_not_start_is_reaped)
{
    char script[128];

    if (parents[_i].waits)
        scene_hold(&other, "-q");
    snprintf(script, sizeof(script), "sleep 300 & echo pid $!; %s", parents[_i].script);
    cli_start(&c, CLI_ARGV("sh", "-c", script), ENV);
    pid_t child = run_pid(&c, "pid ");
    ck_assert(cli_says(&c, parents[_i].says));
    kill(child, SIGKILL);
    ck_assert(test_wait_until(is_reaped, &child, CLI_WAIT_MS));
}
END_TEST

/* ---- while it waits */

START_TEST(waiting_run_ends_by_the_signal_and_leaves_the_queue)
{
    static const char *const options[] = { "-q", "--fair", "--write" };
    scene_hold(&other, "-q");
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        START(&c, options[i], "n", "echo", "inside");
        ck_assert(run_is_queued(1));
        kill(c.pid, ending[_i]);
        ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), -ending[_i]);
        ck_assert_int_eq(test_redis_int(redis, "ZCARD", "rlock:{n}:queue"), 0);
        ck_assert_uint_eq(c.out.len, 0);
        cli_stop(&c);
    }
}
END_TEST

static bool waits(void *arg)
{
    (void)arg;
    return test_redis_int(redis, "ZCARD", "rlock:{n}:queue") == 1 &&
           run_state(c.pid) != 'Z';
}

START_TEST(ignored_signal_does_not_end_the_wait)
{
    scene_hold(&other, "-q");
    cli_start(&c, CLI_ARGV("sh", "-c", "trap '' HUP; exec $R run n echo inside"), ENV);
    ck_assert(run_is_queued(1));
    kill(c.pid, SIGHUP);
    ck_assert(test_stays(waits, NULL, STAYS_MS));
    cli_close_in(&other);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
    ck_assert_str_eq(c.out.text, "inside\n");
}
END_TEST

START_TEST(waiting_run_may_be_stopped_and_goes_on)
{
    scene_hold(&other, "-q");
    START(&c, "n", "echo", "inside");
    ck_assert(run_is_queued(1));
    kill(c.pid, SIGTSTP);
    ck_assert(run_is_stopped(c.pid));
    kill(c.pid, SIGCONT);
    cli_close_in(&other);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
    ck_assert_str_eq(c.out.text, "inside\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_signals");
    TCase *tc = scene_case(suite, "command");
    tcase_add_loop_test(tc, signal_is_forwarded_to_the_command, 0, TOLD);
    tcase_add_loop_test(tc, signal_that_ends_the_command_is_its_code, 0, ENDING);
    tcase_add_test(tc, signal_reaches_the_whole_process_group);
    tcase_add_test(tc, stop_and_continue_reach_the_command);
    tcase_add_test(tc, rlock_goes_on_when_somebody_stops_the_command_alone);
    tcase_add_test(tc, ignored_signal_ends_neither_rlock_nor_the_command);
    tcase_add_test(tc, command_ends_when_rlock_is_killed);
    tcase_add_test(tc, command_that_is_stopped_ends_when_rlock_is_killed);
    tc = scene_case(suite, "killed");
    tcase_add_loop_test(tc, descendants_end_when_rlock_is_killed, 0,
                        sizeof(descendants) / sizeof(descendants[0]));
    tcase_add_test(tc, lock_stays_held_until_the_descendants_have_ended);
    tcase_add_test(tc, command_ends_when_its_supervisor_is_killed);
    tcase_add_test(tc, command_ends_with_its_supervisor_though_rlock_cannot_see_to_it);
    tc = scene_case(suite, "children");
    tcase_add_test(tc, signal_reaches_what_the_command_left);
    tcase_add_test(tc, remaining_processes_of_an_ended_command_get_the_signal_too);
    tcase_add_test(tc, what_a_command_leaves_hears_of_no_SIGHUP);
    tcase_add_test(tc, late_supervisor_repeats_no_SIGHUP);
    tcase_add_test(tc, orphan_of_the_command_is_reaped);
    tcase_add_loop_test(tc, child_that_rlock_did_not_start_is_reaped, 0,
                        sizeof(parents) / sizeof(parents[0]));
    tc = scene_case(suite, "wait");
    tcase_add_loop_test(tc, waiting_run_ends_by_the_signal_and_leaves_the_queue, 0,
                        ENDING);
    tcase_add_test(tc, ignored_signal_does_not_end_the_wait);
    tcase_add_test(tc, waiting_run_may_be_stopped_and_goes_on);
    return test_run_suite(suite);
}
