/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=user */
/*
 * `rlock run` on a terminal at which the test types, mostly in an interactive shell,
 * which does the job control. Words that a test looks for are typed with "" inside them,
 * so that the echo of the input is not taken for the answer.
 */
#include "runscene.h"
#include "wait.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { LOST = 74, ROWS = 24, COLUMNS = 80 };
#define CTRL_C "\003"
#define CTRL_Z "\032"
#define CTRL_BACKSLASH "\034"

static void start_shell_with(const char *parameters)
{
    cli_start_pty(&c, CLI_ARGV("sh", "-i"), scene_env(parameters), ROWS, COLUMNS);
    ck_assert(cli_says(&c, "$ "));
}

static void start_shell(void)
{
    start_shell_with("");
}

/* Types a line and waits for the beginning of the answer. */
static void type(const char *line, const char *answer)
{
    cli_forget(&c);
    ck_assert(cli_type(&c, line));
    ck_assert(cli_type(&c, "\n"));
    if (answer)
        ck_assert_msg(cli_says(&c, answer), "%s: %s", line, c.out.text);
}

static void press(const char *key, const char *answer)
{
    cli_forget(&c);
    ck_assert(cli_type(&c, key));
    if (answer)
        ck_assert_msg(cli_says(&c, answer), "%s", c.out.text);
}

static void last_code_is(int code)
{
    char text[32];
    snprintf(text, sizeof(text), "code=%d\r\n", code);
    type("echo co\"\"de=$?", text);
}

static bool runs_in_foreground(void *arg)
{
    pid_t command = *(const pid_t *)arg;
    char state = run_state(command);
    return tcgetpgrp(c.in) == command && (state == 'S' || state == 'R');
}

/* A command that asks for a word and prints it. */
#define ASKS "sh -c 'echo as\"\"king; read x; echo \"said <$x>\"'"
#define SLEEPS "sh -c 'echo in\"\"side pid $$.; exec sleep 300'"

START_TEST(command_reads_from_the_terminal)
{
    start_shell();
    type("$R run n " ASKS, "asking\r\n");
    type("hello", "said <hello>\r\n");
    last_code_is(0);
}
END_TEST

START_TEST(command_may_set_the_terminal)
{
    start_shell();
    /* in the background, stty would stop it */
    type("$R run n sh -c 'stty -echo; echo as\"\"king; read x; stty echo;"
         " echo \"said <$x>\"'",
         "asking\r\n");
    type("hello", "said <hello>\r\n");
    ck_assert(!strstr(c.out.text, "hello\r\nsaid")); /* it was not echoed */
    last_code_is(0);
}
END_TEST

START_TEST(command_gets_the_window_size_signal)
{
    char line[512];
    start_shell();
    snprintf(line, sizeof(line), "$R run n %s %d", scene_sleeper(), SIGWINCH);
    type(line, "pid ");
    cli_resize(&c, ROWS + 1, COLUMNS);
    snprintf(line, sizeof(line), "got %d\r\n", SIGWINCH);
    ck_assert(cli_says(&c, line));
    press(CTRL_C, "$ ");
}
END_TEST

START_TEST(ctrl_c_ends_the_command_and_frees_the_lock)
{
    start_shell();
    type("$R run n " SLEEPS, "inside pid ");
    ck_assert(run_is_held());
    press(CTRL_C, "$ ");
    last_code_is(128 + SIGINT);
    ck_assert(!run_is_held());
    type("$R run n " SLEEPS, "inside pid ");
    press(CTRL_BACKSLASH, "$ ");
    last_code_is(128 + SIGQUIT);
}
END_TEST

START_TEST(ctrl_c_that_the_command_handles_is_its_own_affair)
{
    start_shell();
    type("$R run n sh -c 'trap \"echo in\"\"terrupted; exit 3\" INT; echo in\"\"side;"
         " read x'",
         "inside\r\n");
    press(CTRL_C, "interrupted\r\n");
    last_code_is(3);
}
END_TEST

START_TEST(ctrl_c_ends_the_wait)
{
    scene_hold(&other, "-q");
    start_shell();
    type("$R run n echo x", NULL);
    ck_assert(run_is_queued(1));
    press(CTRL_C, "$ ");
    last_code_is(128 + SIGINT);
    ck_assert_int_eq(test_redis_int(redis, "ZCARD", "rlock:{n}:queue"), 0);
}
END_TEST

START_TEST(ctrl_c_ends_the_script_around_it_too)
{
    start_shell();
    type("sh -c '$R run n sh -c \"echo in\\\"\\\"side; exec sleep 300\"; echo af\"\"ter'",
         "inside\r\n");
    press(CTRL_C, "$ ");
    last_code_is(128 + SIGINT);
    ck_assert(!strstr(c.out.text, "after"));
}
END_TEST

START_TEST(ctrl_z_stops_and_fg_continues)
{
    start_shell();
    type("$R run n sh -c 'echo p\"\"id $$; read x; echo \"said <$x>\"'", "pid ");
    pid_t command = run_pid(&c, "pid ");
    for (int i = 0; i < 3; i++) {
        ck_assert(test_wait_until(runs_in_foreground, &command, CLI_WAIT_MS));
        press(CTRL_Z, "Stopped");
        ck_assert(run_is_stopped(command));
        type("echo sh\"\"ell", "shell\r\n"); /* the shell has its terminal back */
        type("fg", NULL);
    }
    type("hello", "said <hello>\r\n");
    last_code_is(0);
}
END_TEST

START_TEST(ctrl_z_stops_the_script_around_it_too)
{
    start_shell();
    type(
        "sh -c '$R run n sh -c \"echo as\\\"\\\"king; read x; echo \\\"said <\\$x>\\\"\";"
        " echo af\"\"ter'",
        "asking\r\n");
    press(CTRL_Z, "Stopped");
    type("fg", NULL);
    type("hello", "said <hello>\r\n");
    ck_assert(cli_says(&c, "after\r\n"));
}
END_TEST

START_TEST(bg_continues_without_the_terminal_and_fg_brings_it_back)
{
    char line[TEST_PATH_MAX + 128], path[TEST_PATH_MAX];

    snprintf(path, sizeof(path), "%s/go", server.dir);
    snprintf(line, sizeof(line),
             "$R run n sh -c 'echo in\"\"side; while [ ! -e %s ]; do :; done;"
             " echo go\"\"ing; read x; echo \"said <$x>\"'",
             path);
    start_shell();
    type(line, "inside\r\n");
    press(CTRL_Z, "Stopped");
    type("bg", "$ ");
    type("echo sh\"\"ell", "shell\r\n");
    close(open(path, O_CREAT | O_WRONLY, 0600));
    ck_assert(cli_says(&c, "going\r\n"));
    /* now it reads in the background: it is stopped, and rlock with it */
    type("sleep 0.1; jobs", NULL);
    while (!strstr(c.out.text, "Stopped"))
        type("jobs", "$ ");
    type("fg", NULL);
    type("hello", "said <hello>\r\n");
    unlink(path);
}
END_TEST

START_TEST(command_in_a_pipeline_gets_the_terminal_when_it_asks)
{
    start_shell();
    type("$R run n " ASKS " | cat", "asking\r\n");
    type("hello", "said <hello>\r\n");
    type("echo sh\"\"ell", "shell\r\n");
}
END_TEST

START_TEST(command_started_in_the_background_leaves_the_terminal_alone)
{
    start_shell();
    /* a script without job control: rlock is in the process group of the foreground */
    type("sh -c '$R run n sh -c \"echo in\\\"\\\"side; exec sleep 300\" & read x;"
         " echo \"said <$x>\"; kill $!; wait $!; echo en\"\"ded $?'",
         "inside\r\n");
    type("hello", "said <hello>\r\n");
    ck_assert(cli_says(&c, "ended 143\r\n"));
}
END_TEST

/* Commands that set the terminal not to echo, and end so. */
static const struct {
    const char *script;
    bool lost, restored;
} enders[] = {
    { "stty -echo -icanon; echo p\"\"id $$; exec sleep 300", true, true },
    { "trap \"exit 0\" TERM; stty -echo -icanon; echo p\"\"id $$; sleep 300 & wait", true,
      true },
    { "stty -echo -icanon; echo p\"\"id $$; kill -KILL $$", false, true },
    { "stty -echo -icanon; echo p\"\"id $$; exit 1", false, false },
};

START_TEST(terminal_is_set_as_before_when_the_command_was_ended)
{
    char line[512];

    /* a shell that does not restore the terminal itself */
    snprintf(line, sizeof(line), "$R run n sh -c '%s'; echo en\"\"ded; read x",
             enders[_i].script);
    cli_start_pty(&c, CLI_ARGV("sh", "-c", line), ENV, ROWS, COLUMNS);
    run_pid(&c, "pid ");
    if (enders[_i].lost)
        scene_force();
    ck_assert(cli_says(&c, "ended\r\n"));
    struct termios modes;
    ck_assert_int_eq(tcgetattr(c.in, &modes), 0);
    ck_assert_int_eq((modes.c_lflag & ECHO) != 0, enders[_i].restored);
    ck_assert_int_eq((modes.c_lflag & ICANON) != 0, enders[_i].restored);
}
END_TEST

START_TEST(terminal_is_given_back_at_the_end)
{
    /* a shell without job control does not take the terminal back itself */
    cli_start_pty(
        &c,
        CLI_ARGV("sh", "-c", "$R run n true; echo asking; read x; echo \"said <$x>\""),
        ENV, ROWS, COLUMNS);
    ck_assert(cli_says(&c, "asking\r\n"));
    type("hello", "said <hello>\r\n");
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
}
END_TEST

START_TEST(ctrl_z_is_ignored_where_nobody_could_continue)
{
    /* rlock is the leader of its session, as in a terminal window of its own */
    cli_start_pty(&c,
                  CLI_ARGV("rlock", "run", "n", "sh", "-c",
                           "echo asking; read x; echo \"said <$x>\""),
                  ENV, ROWS, COLUMNS);
    ck_assert(cli_says(&c, "asking\r\n"));
    press(CTRL_Z, "^Z");
    type("hello", "said <hello>\r\n");
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
}
END_TEST

START_TEST(hangup_reaches_the_command)
{
    cli_start_pty(
        &c, CLI_ARGV("rlock", "run", "n", "sh", "-c", "echo pid $$; exec sleep 300"), ENV,
        ROWS, COLUMNS);
    pid_t command = run_pid(&c, "pid ");
    close(c.in);
    c.in = c.out.fd = -1;
    ck_assert(run_is_gone(command));
    ck_assert(run_is_free());
}
END_TEST

START_TEST(lease_that_ends_during_ctrl_z_ends_the_command_at_fg)
{
    char lease[32];
    snprintf(lease, sizeof(lease), "?lease=%ld", test_ms(500));
    start_shell_with(lease);
    type("$R run n " SLEEPS, "inside pid ");
    pid_t command = run_pid(&c, "inside pid ");
    press(CTRL_Z, "Stopped");
    ck_assert(run_is_stopped(command));
    ck_assert(run_is_free());
    type("fg", "lost \"n\": the lease ended while rlock was stopped\r\n");
    ck_assert(cli_says(&c, "$ "));
    last_code_is(LOST);
    ck_assert(run_is_gone(command));
}
END_TEST

START_TEST(ctrl_z_within_the_lease_loses_nothing)
{
    start_shell();
    type("$R run n " ASKS, "asking\r\n");
    press(CTRL_Z, "Stopped");
    ck_assert(run_is_held());
    type("fg", NULL);
    ck_assert(run_is_held());
    type("hello", "said <hello>\r\n");
    last_code_is(0);
    ck_assert(!strstr(c.out.text, "lost"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_terminal");
    TCase *tc = scene_case(suite, "terminal");
    tcase_add_test(tc, command_reads_from_the_terminal);
    tcase_add_test(tc, command_may_set_the_terminal);
    tcase_add_test(tc, command_gets_the_window_size_signal);
    tcase_add_test(tc, command_in_a_pipeline_gets_the_terminal_when_it_asks);
    tcase_add_test(tc, command_started_in_the_background_leaves_the_terminal_alone);
    tcase_add_test(tc, terminal_is_given_back_at_the_end);
    tcase_add_loop_test(tc, terminal_is_set_as_before_when_the_command_was_ended, 0,
                        sizeof(enders) / sizeof(enders[0]));
    tcase_add_test(tc, hangup_reaches_the_command);
    tc = scene_case(suite, "keys");
    tcase_add_test(tc, ctrl_c_ends_the_command_and_frees_the_lock);
    tcase_add_test(tc, ctrl_c_that_the_command_handles_is_its_own_affair);
    tcase_add_test(tc, ctrl_c_ends_the_wait);
    tcase_add_test(tc, ctrl_c_ends_the_script_around_it_too);
    tcase_add_test(tc, ctrl_z_stops_and_fg_continues);
    tcase_add_test(tc, ctrl_z_stops_the_script_around_it_too);
    tcase_add_test(tc, bg_continues_without_the_terminal_and_fg_brings_it_back);
    tcase_add_test(tc, ctrl_z_is_ignored_where_nobody_could_continue);
    tc = scene_case(suite, "lease");
    tcase_add_test(tc, lease_that_ends_during_ctrl_z_ends_the_command_at_fg);
    tcase_add_test(tc, ctrl_z_within_the_lease_loses_nothing);
    return test_run_suite(suite);
}
