/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=user */
/* `rlock run`, as a process of its own: exit codes, the lock, what the command finds. */
#include "runscene.h"
#include "wait.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- help */

enum { ROWS = 24, COLUMNS = 80, COMMANDS_MAX = 16, WORD_MAX = 32 };

/* The commands that `rlock --help` lists: indented, up to the options. */
static int list_commands(char commands[][WORD_MAX])
{
    int n = 0;

    ck_assert_int_eq(cli_does(&c, CLI_ARGV("rlock", "--help"), NULL), 0);
    for (char *line = strtok(c.out.text, "\n"); line && n < COMMANDS_MAX;
         line = strtok(NULL, "\n")) {
        if (strncmp(line, "Options", strlen("Options")) == 0)
            break;
        if (sscanf(line, "  %31[a-z] ", commands[n]) == 1)
            n++;
    }
    cli_stop(&c);
    return n;
}

static void fits_a_screen(const char *what, const char *text)
{
    int rows = 0;
    for (const char *line = text; *line != '\0'; rows++) {
        size_t len = strcspn(line, "\n");
        ck_assert_msg(len < COLUMNS, "%s: %.*s", what, (int)len, line);
        line += len + (line[len] == '\n');
    }
    ck_assert_msg(rows > 2 && rows <= ROWS, "%s: %d lines", what, rows);
}

START_TEST(help_of_each_command_fits_a_screen)
{
    char commands[COMMANDS_MAX][WORD_MAX];
    int n = list_commands(commands);

    ck_assert_int_ge(n, 7);
    for (int i = 0; i < n; i++) {
        int code = cli_does(&c, CLI_ARGV("rlock", commands[i], "--help"), NULL);
        if (code == 70 && c.out.len == 0) { /* a command that is not written yet */
            printf("skipped: help_of_each_command: %s: not built\n", commands[i]);
        } else {
            ck_assert_msg(code == 0, "%s --help: %d", commands[i], code);
            fits_a_screen(commands[i], c.out.text);
        }
        cli_stop(&c);
    }
    ck_assert_int_eq(cli_does(&c, CLI_ARGV("rlock", "--help"), NULL), 0);
    fits_a_screen("--help", c.out.text);
}
END_TEST

static const char *const each[][5] = { { "run", "n", "true" },
                                       { "list" },
                                       { "show", "n" },
                                       { "watch" },
                                       { "wait", "n" },
                                       { "doctor" },
                                       { "release", "--force", "--yes", "n" } };
enum { COMMANDS = sizeof(each) / sizeof(each[0]) };

START_TEST(h_is_help_and_messages_name_rlock_and_the_command)
{
    const char *command = each[_i][0];
    char text[CLI_TEXT_MAX];

    ck_assert_int_eq(cli_does(&c, CLI_ARGV("rlock", command, "--help"), NULL), 0);
    strcpy(text, c.out.text);
    cli_stop(&c);
    ck_assert_int_eq(cli_does(&c, CLI_ARGV("rlock", command, "-h"), NULL), 0);
    ck_assert_str_eq(c.out.text, text);
    cli_stop(&c);
    ck_assert_int_eq(cli_does(&c, CLI_ARGV("rlock", command, "--bogus"), NULL), 64);
    snprintf(text, sizeof(text), "rlock %s: ", command);
    ck_assert_msg(strncmp(c.err.text, text, strlen(text)) == 0, "%s", c.err.text);
}
END_TEST

START_TEST(option_before_the_command_is_refused_with_a_hint)
{
    ck_assert_int_eq(cli_does(&c, CLI_ARGV("rlock", "--url", "x", "list"), NULL), 64);
    ck_assert(cli_complains(&c, "\"--url\": options go behind the command"));
    cli_stop(&c);
    ck_assert_int_eq(cli_does(&c, CLI_ARGV("rlock", "lists"), NULL), 64);
    ck_assert(cli_complains(&c, "no command \"lists\""));
}
END_TEST

static const char *const printing[] = { "--help", "--version", "run --help", "watch -h",
                                        "list --json" };

START_TEST(what_cannot_be_printed_is_70)
{
    char script[64];

    snprintf(script, sizeof(script), "exec \"$R\" %s >/dev/full", printing[_i]);
    ck_assert_int_eq(cli_does(&c, CLI_ARGV("sh", "-c", script), ENV), 70);
    ck_assert(cli_complains(&c, "cannot write to stdout"));
}
END_TEST

/* ---- exit codes */

START_TEST(code_of_the_command_is_passed_through)
{
    static const char *const codes[] = { "0", "3", "75", "127", "255" };
    char script[32];

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        snprintf(script, sizeof(script), "exit %s", codes[i]);
        ck_assert_int_eq(RUN("n", "--", "sh", "-c", script), atoi(codes[i]));
        ck_assert_uint_eq(c.err.len, 0);
        ck_assert(!run_is_held());
        cli_stop(&c);
    }
}
END_TEST

START_TEST(code_is_128_and_the_signal_that_ended_the_command)
{
    ck_assert_int_eq(RUN("n", "sh", "-c", "kill -KILL $$"), 128 + SIGKILL);
    cli_stop(&c);
    ck_assert_int_eq(RUN("n", "sh", "-c", "kill -TERM $$"), 128 + SIGTERM);
    cli_stop(&c);
    /* without a terminal SIGINT is a signal like any other */
    ck_assert_int_eq(RUN("n", "sh", "-c", "kill -INT $$"), 128 + SIGINT);
}
END_TEST

static void is_refused(const char *const argv[], const char *because)
{
    ck_assert_msg(cli_does(&c, argv, ENV) == 64, "%s: %d", because, c.status);
    ck_assert_msg(cli_complains(&c, because), "%s: %s", because, c.err.text);
    ck_assert_uint_eq(c.out.len, 0);
    cli_stop(&c);
}
#define REFUSED(because, ...) is_refused(CLI_ARGV("rlock", "run", __VA_ARGS__), because)

START_TEST(wrong_arguments_give_64_and_run_nothing)
{
    is_refused(CLI_ARGV("rlock", "run"), "NAME is missing");
    REFUSED("COMMAND is missing", "n");
    REFUSED("COMMAND is missing", "n", "--");
    REFUSED("exclude each other", "--wait", "1", "--no-wait", "n", "echo", "x");
    REFUSED("exclude each other", "--fair", "--read", "n", "echo", "x");
    REFUSED("longer than", "--min-hold", "2s", "--max-hold", "1", "n", "echo", "x");
    REFUSED("not a duration", "--max-hold", "0", "n", "echo", "x");
    REFUSED("exclude each other", "--read", "--write", "n", "echo", "x");
    REFUSED("not a duration", "--wait", "-1", "n", "echo", "x");
    REFUSED("not a duration", "--wait", "1x", "n", "echo", "x");
    REFUSED("not a duration", "--wait", "inf", "n", "echo", "x");
    REFUSED("not a duration", "--grace", "", "n", "echo", "x");
    REFUSED("to 86400s", "--grace", "86400.5", "n", "echo", "x");
    REFUSED("to 86400s", "--grace", "2200000", "n", "echo", "x");
    REFUSED("3 to", "--fd", "2", "n", "echo", "x");
    REFUSED("limit of open files", "--fd", "1048575", "n", "echo", "x");
    REFUSED("0 to 255", "-E", "256", "n", "echo", "x");
    REFUSED("from 50ms to 86400s", "--lease", "49ms", "n", "echo", "x");
    REFUSED("from 50ms to 86400s", "--lease", "1.1d", "n", "echo", "x");
    REFUSED("\"60\" has no unit: 60s or 60ms?", "--lease", "60", "n", "echo", "x");
    REFUSED("not a duration", "--wait", "ms", "n", "echo", "x");
    REFUSED("not a duration", "--wait", ".s", "n", "echo", "x");
    REFUSED("not a duration", "--wait", "1.2.3s", "n", "echo", "x");
    REFUSED("not a duration", "--wait", "1S", "n", "echo", "x");
    REFUSED("not a duration", "--wait", "1 s", "n", "echo", "x");
    REFUSED("neither term nor warn", "--on-lost", "die", "n", "echo", "x");
    REFUSED("--nonsense", "--nonsense", "n", "echo", "x");
    REFUSED("name of a lock", "rlock:n", "echo", "x");
    REFUSED("options go before NAME", "n", "--wait", "5", "--", "echo", "x");
    REFUSED("options go before NAME", "n", "-x");
    ck_assert(!test_redis_exists(redis, "redisson_lock_token:{n}"));
}
END_TEST

static const char *const with_password[] = {
    "redis://u:p@localhost", "redis://:p@localhost",    "redis://u@v:p@localhost",
    "redis://@:p@localhost", "redis://u:p@q@localhost", "redis://u:/?@localhost",
};

START_TEST(password_in_an_argument_is_refused)
{
    REFUSED("can read a password", "--url", with_password[_i], "n", "echo", "x");
    /* a user name alone is not a secret */
    REFUSED("user without password", "--url", "redis://u@v@localhost", "n", "echo", "x");
}
END_TEST

START_TEST(url_that_cannot_be_used_gives_64_and_says_why)
{
    static const char *const with_parameter[] = { "RLOCK_URL=redis://h/?foo=1", NULL };
    static const char *const with_tls[] = { "RLOCK_URL=rediss://h/?keyfile=k", NULL };
    const char *const *e = each[_i];
    const char *const argv[] = { "rlock", e[0], e[1], e[2], e[3], e[4], NULL };

    ck_assert_int_eq(cli_does(&c, argv, with_parameter), 64);
    ck_assert_msg(strstr(c.err.text, "foo"), "%s", c.err.text);
    cli_stop(&c);
    ck_assert_int_eq(cli_does(&c, argv, with_tls), 64);
    ck_assert_msg(strstr(c.err.text, "TLS"), "%s", c.err.text);
}
END_TEST

START_TEST(options_end_at_the_name)
{
    ck_assert_int_eq(RUN("n", "echo", "--read", "-E"), 0);
    ck_assert_str_eq(c.out.text, "--read -E\n");
    cli_stop(&c);
    ck_assert_int_eq(RUN("n", "--", "echo", "--", "x"), 0);
    ck_assert_str_eq(c.out.text, "-- x\n");
    cli_stop(&c);
    ck_assert_int_eq(RUN("--", "-n", "--", "echo", "x"), 0);
    ck_assert_str_eq(c.out.text, "x\n");
}
END_TEST

START_TEST(command_that_cannot_be_run_gives_126_and_127)
{
    ck_assert_int_eq(RUN("n", "/nowhere/at/all"), 127);
    ck_assert(cli_complains(&c, "cannot run /nowhere/at/all"));
    cli_stop(&c);
    ck_assert_int_eq(RUN("n", "no-such-program-at-all"), 127);
    cli_stop(&c);
    ck_assert_int_eq(RUN("n", "/dev/null"), 126);
    ck_assert(cli_complains(&c, "cannot run /dev/null"));
    ck_assert(!run_is_held());
}
END_TEST

START_TEST(busy_lock_gives_75_or_the_code_that_was_asked_for)
{
    scene_hold(&other, "--fair");
    ck_assert_int_eq(RUN("--no-wait", "n", "echo", "x"), 75);
    ck_assert(cli_complains(&c, "held"));
    ck_assert_uint_eq(c.out.len, 0);
    cli_stop(&c);
    ck_assert_int_eq(RUN("--no-wait", "-E", "0", "--read", "n", "echo", "x"), 0);
    ck_assert_uint_eq(c.out.len, 0);
    cli_stop(&c);
    ck_assert_int_eq(RUN("--conflict-exit-code", "9", "-q", "--no-wait", "n", "true"), 9);
    ck_assert_uint_eq(c.err.len, 0);
}
END_TEST

static const char *const waits[] = { "0.25", "250ms", "0.25s" };

START_TEST(wait_gives_up_after_its_time)
{
    enum { MS = 250 };
    scene_hold(&other, "--write");
    int64_t begin = test_now_ms();
    ck_assert_int_eq(RUN("--wait", waits[_i], "n", "echo", "x"), 75);
    int64_t took = test_now_ms() - begin;
    ck_assert_int_ge(took, MS);
    ck_assert_int_lt(took, MS + test_ms(2000));
    ck_assert(cli_complains(&c, "0.25 s"));
    ck_assert(run_is_queued(0));
    ck_assert_uint_eq(c.out.len, 0);
}
END_TEST

START_TEST(server_that_is_away_gives_69)
{
    int64_t begin = test_now_ms();
    test_server_kill(&server);
    ck_assert_int_eq(cli_does(&c, CLI_ARGV("rlock", "run", "n", "echo", "x"),
                              scene_env("?commandtimeout=300")),
                     69);
    ck_assert_int_lt(test_now_ms() - begin, 300 + test_ms(2000));
    cli_stop(&c);
    begin = test_now_ms();
    ck_assert_int_eq(RUN("--wait", "0.3", "n", "echo", "x"), 69);
    int64_t took = test_now_ms() - begin;
    ck_assert_int_ge(took, 300);
    ck_assert_int_lt(took, 300 + test_ms(2000));
    ck_assert_uint_eq(c.out.len, 0);
}
END_TEST

START_TEST(server_that_refuses_gives_77)
{
    test_redis_config(redis, "requirepass", "secret");
    int code = RUN("n", "echo", "x");
    test_redis_config(redis, "requirepass", "");
    ck_assert_int_eq(code, 77);
    ck_assert_uint_eq(c.out.len, 0);
}
END_TEST

START_TEST(foreign_data_under_the_name_gives_76)
{
    test_redis_do(redis, "SET", "n", "mine");
    ck_assert_int_eq(RUN("n", "echo", "x"), 76);
    ck_assert_str_eq(test_redis_str(redis, "GET", "n"), "mine");
    ck_assert_uint_eq(c.out.len, 0);
}
END_TEST

/* ---- the lock */

static const char *const exclusive[] = { "-q", "--fair", "--write" };

START_TEST(two_runs_exclude_each_other)
{
    scene_hold(&other, exclusive[_i]);
    ck_assert(run_is_held());
    START(&c, exclusive[_i], "n", "echo", "inside");
    ck_assert(run_is_queued(1));
    cli_collect(&c);
    ck_assert_uint_eq(c.out.len, 0);
    cli_close_in(&other);
    ck_assert(cli_says(&c, "inside"));
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
    ck_assert_int_eq(cli_ends(&other, CLI_WAIT_MS), 0);
    ck_assert(!run_is_held());
}
END_TEST

START_TEST(readers_run_side_by_side_and_a_writer_does_not)
{
    struct cli writer;
    scene_hold(&other, "--read");
    scene_hold(&c, "--read");
    START(&writer, "--write", "n", "echo", "inside");
    ck_assert(run_is_queued(1));
    cli_close_in(&other);
    ck_assert_int_eq(cli_ends(&other, CLI_WAIT_MS), 0);
    cli_collect(&writer);
    ck_assert_uint_eq(writer.out.len, 0);
    cli_close_in(&c);
    ck_assert(cli_says(&writer, "inside"));
    ck_assert_int_eq(cli_ends(&writer, CLI_WAIT_MS), 0);
    cli_stop(&writer);
}
END_TEST

START_TEST(fair_runs_come_in_the_order_of_arrival)
{
    enum { RUNS = 3 };
    char order[64] = "";
    struct cli *runs = calloc(RUNS, sizeof(*runs));
    char path[TEST_PATH_MAX + 16], script[TEST_PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/order", server.dir);
    snprintf(script, sizeof(script), "echo $0 >>%s", path);
    scene_hold(&other, "--fair");
    for (int i = 0; i < RUNS; i++) {
        char number[] = { (char)('1' + i), '\0' };
        START(&runs[i], "--fair", "n", "sh", "-c", script, number);
        ck_assert(run_is_queued(i + 1));
    }
    cli_close_in(&other);
    for (int i = 0; i < RUNS; i++) {
        ck_assert_int_eq(cli_ends(&runs[i], CLI_WAIT_MS), 0);
        cli_stop(&runs[i]);
    }
    free(runs);
    int fd = open(path, O_RDONLY);
    ck_assert_int_gt(read(fd, order, sizeof(order) - 1), 0);
    close(fd);
    unlink(path);
    ck_assert_str_eq(order, "1\n2\n3\n");
}
END_TEST

static bool holds_on(void *arg)
{
    (void)arg;
    return run_is_held() && cli_ends(&c, 0) == CLI_STILL_RUNS;
}

/* The command itself ends at once: setsid forks, because it leads a process group. */
START_TEST(lock_is_held_until_what_was_started_has_ended)
{
    START(&c, "n", "setsid", "sh", "-c", "echo inside; read x; echo \"said <$x>\"");
    ck_assert(cli_says(&c, "inside"));
    ck_assert(test_stays(holds_on, NULL, 300));
    ck_assert(cli_complains(&c, "has ended, but some of its processes run on"));
    ck_assert(cli_type(&c, "hello\n"));
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
    ck_assert(cli_says(&c, "said <hello>"));
    ck_assert(!run_is_held());
}
END_TEST

START_TEST(left_lock_is_free_when_the_command_ended_whatever_it_left)
{
    ck_assert_int_eq(RUN("--leave", "n", "sh", "-c", "sleep 300 & echo pid $!"), 0);
    pid_t left = run_pid(&c, "pid ");
    ck_assert(!run_is_held());
    ck_assert_int_ne(run_state(left), 'X');
    kill(left, SIGKILL);
}
END_TEST

/* One lease in each unit. The lease that is found may be 2 s off. */
static const struct {
    const char *text;
    long long ms;
} leases[] = { { "5000ms", 5000 },
               { "5s", 5000 },
               { "2.5m", 150000 },
               { ".5h", 1800000 },
               { "0.5d", 43200000 } };

START_TEST(lease_is_as_long_as_was_asked_for)
{
    START(&c, "--lease", leases[_i].text, "n", "sh", "-c", "echo inside; cat");
    ck_assert(cli_says(&c, "inside"));
    long long left = test_redis_int(redis, "PTTL", "n");
    ck_assert_int_gt(left, leases[_i].ms - test_ms(2000));
    ck_assert_int_le(left, leases[_i].ms);
}
END_TEST

/* ---- what the command finds */

static unsigned long long token_said(void)
{
    ck_assert_int_eq(RUN("n", "sh", "-c", "echo $RLOCK_NAME; echo token $RLOCK_TOKEN"),
                     0);
    ck_assert_int_eq(strncmp(c.out.text, "n\ntoken ", strlen("n\ntoken ")), 0);
    unsigned long long token = strtoull(strstr(c.out.text, "token ") + 6, NULL, 10);
    cli_stop(&c);
    return token;
}

START_TEST(command_finds_name_and_a_token_that_grows)
{
    unsigned long long first = token_said();
    ck_assert_uint_gt(first, 0);
    ck_assert_uint_gt(token_said(), first);
}
END_TEST

static const char *const kinds[] = { "-q", "--fair", "--read", "--write" };

START_TEST(without_token_there_is_no_key_that_stays_and_no_variable)
{
    /* nor the token of an outer run, which belongs to another lock */
    ck_assert_int_eq(RUN("m", "sh", "-c",
                         "exec $R run --no-token $0 n sh -c 'env | grep ^RLOCK_NAME; env "
                         "| grep ^RLOCK_TOKEN; true'",
                         kinds[_i]),
                     0);
    ck_assert_str_eq(c.out.text, "RLOCK_NAME=n\n");
    ck_assert(!test_redis_exists(redis, "redisson_lock_token:{n}"));
    ck_assert(test_redis_exists(redis, "redisson_lock_token:{m}"));
}
END_TEST

START_TEST(inner_run_tells_its_own_name)
{
    ck_assert_int_eq(RUN("n", "sh", "-c", "$R run m sh -c 'env | grep RLOCK_NAME'"), 0);
    ck_assert_str_eq(c.out.text, "RLOCK_NAME=m\n");
}
END_TEST

/* On a slow machine, the inner rlock's own processes may take long to end. */
static bool is_quiet(const char *text)
{
    static const char late[] = "rlock: the command has ended, but some of its processes";
    const char *end = strchr(text, '\n');
    return text[0] == '\0' ||
           (strncmp(text, late, sizeof(late) - 1) == 0 && end && end[1] == '\0');
}

START_TEST(run_inside_a_run_of_the_same_name_is_warned_of)
{
    /* rlock knows only the name of the outer lock, not its server */
    static const char warning[] =
        "\"n\" is the lock of the command around this one (RLOCK_NAME):"
        " waiting for it may never end, if it is at the same server\n";

    ck_assert_int_eq(RUN("n", "sh", "-c", "exec \"$R\" run --wait 0.1 n true"), 75);
    ck_assert_msg(strstr(c.err.text, warning), "%s", c.err.text);
    cli_stop(&c);
    ck_assert_int_eq(
        RUN("--read", "n", "sh", "-c", "exec \"$R\" run --read n echo inside"), 0);
    ck_assert_msg(strstr(c.err.text, warning), "%s", c.err.text);
    ck_assert_str_eq(c.out.text, "inside\n");
    cli_stop(&c);
    /* without waiting, or for another lock, there is no danger */
    ck_assert_int_eq(RUN("n", "sh", "-c", "exec \"$R\" run -q --no-wait n true"), 75);
    ck_assert_msg(is_quiet(c.err.text), "%s", c.err.text);
    cli_stop(&c);
    ck_assert_int_eq(RUN("n", "sh", "-c", "exec \"$R\" run m true"), 0);
    ck_assert_msg(is_quiet(c.err.text), "%s", c.err.text);
}
END_TEST

/* `command` prints the same with rlock as without it, in a shell after `before`. */
static void is_the_same(const char *before, const char *command)
{
    char script[512], plain[CLI_TEXT_MAX];

    snprintf(script, sizeof(script), "%s exec %s", before, command);
    ck_assert_int_eq(cli_does(&c, CLI_ARGV("sh", "-c", script), ENV), 0);
    strcpy(plain, c.out.text);
    ck_assert_uint_gt(c.out.len, 0);
    cli_stop(&c);
    snprintf(script, sizeof(script), "%s exec $R run n %s", before, command);
    ck_assert_int_eq(cli_does(&c, CLI_ARGV("sh", "-c", script), ENV), 0);
    ck_assert_str_eq(c.out.text, plain);
    cli_stop(&c);
}

/* Signals 1 to 28. The C library sets its own, 32 and 33, when it starts threads, even if
 * rlock was started with these signals ignored. */
#define SIGNALS                                                                          \
    "sed -nE 's/^(Sig(Blk|Ign|Cgt):).*([0-9a-f]{7})$/\\1 \\3/p' /proc/self/status"

START_TEST(command_finds_signals_as_rlock_did)
{
    is_the_same("", SIGNALS);
    is_the_same("trap '' HUP TERM TSTP PIPE CHLD CONT;", SIGNALS);
}
END_TEST

START_TEST(command_finds_no_descriptors_of_the_library)
{
    is_the_same("exec 7</dev/null;", "ls /proc/self/fd");
}
END_TEST

START_TEST(closed_standard_descriptors_stay_closed_and_take_nothing)
{
    /* for the command, and for rlock's own messages */
    is_the_same("exec 7>&1 <&- >&- 2>&-;", "sh -c 'ls /proc/$$/fd >&7'");
    cli_does(&c,
             CLI_ARGV("sh", "-c",
                      "exec 7>&1 >&- 2>&-; \"$R\" run n /nowhere/at/all; echo $? >&7"),
             ENV);
    ck_assert_str_eq(c.out.text, "127\n");
    ck_assert_uint_eq(c.err.len, 0);
    cli_stop(&c);
    cli_does(&c,
             CLI_ARGV("sh", "-c",
                      "\"$R\" run n sh -c 'readlink /proc/$PPID/fd/[012]' <&- 2>&-"),
             ENV);
    ck_assert_msg(strncmp(c.out.text, "/\n", 2) == 0, "%s", c.out.text);
    ck_assert_msg(!strstr(c.out.text, "socket"), "%s", c.out.text);
    cli_stop(&c);
    /* output that could not be written is an error */
    ck_assert_int_eq(
        cli_does(&c, CLI_ARGV("sh", "-c", "exec \"$R\" list --json >&-"), ENV), 70);
}
END_TEST

START_TEST(stdin_passes_through)
{
    START(&c, "n", "cat");
    ck_assert(cli_type(&c, "one\ntwo\n"));
    ck_assert(cli_says(&c, "one\ntwo\n"));
    cli_close_in(&c);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
}
END_TEST

static void add_help(Suite *suite)
{
    TCase *tc = scene_case(suite, "help");
    tcase_add_test(tc, help_of_each_command_fits_a_screen);
    tcase_add_loop_test(tc, h_is_help_and_messages_name_rlock_and_the_command, 0,
                        COMMANDS);
    tcase_add_test(tc, option_before_the_command_is_refused_with_a_hint);
    tcase_add_loop_test(tc, what_cannot_be_printed_is_70, 0,
                        sizeof(printing) / sizeof(printing[0]));
}

static void add_codes(Suite *suite)
{
    TCase *tc = scene_case(suite, "codes");
    tcase_add_test(tc, code_of_the_command_is_passed_through);
    tcase_add_test(tc, code_is_128_and_the_signal_that_ended_the_command);
    tcase_add_test(tc, wrong_arguments_give_64_and_run_nothing);
    tcase_add_loop_test(tc, password_in_an_argument_is_refused, 0,
                        sizeof(with_password) / sizeof(with_password[0]));
    tcase_add_loop_test(tc, url_that_cannot_be_used_gives_64_and_says_why, 0, COMMANDS);
    tcase_add_test(tc, options_end_at_the_name);
    tcase_add_test(tc, command_that_cannot_be_run_gives_126_and_127);
    tcase_add_test(tc, busy_lock_gives_75_or_the_code_that_was_asked_for);
    tcase_add_loop_test(tc, wait_gives_up_after_its_time, 0,
                        sizeof(waits) / sizeof(waits[0]));
    tcase_add_test(tc, server_that_is_away_gives_69);
    tcase_add_test(tc, server_that_refuses_gives_77);
    tcase_add_test(tc, foreign_data_under_the_name_gives_76);
}

static void add_lock(Suite *suite)
{
    TCase *tc = scene_case(suite, "lock");
    tcase_add_loop_test(tc, two_runs_exclude_each_other, 0, 3);
    tcase_add_test(tc, readers_run_side_by_side_and_a_writer_does_not);
    tcase_add_test(tc, fair_runs_come_in_the_order_of_arrival);
    tcase_add_test(tc, lock_is_held_until_what_was_started_has_ended);
    tcase_add_test(tc, left_lock_is_free_when_the_command_ended_whatever_it_left);
    tcase_add_loop_test(tc, lease_is_as_long_as_was_asked_for, 0,
                        sizeof(leases) / sizeof(leases[0]));
}

static void add_environment(Suite *suite)
{
    TCase *tc = scene_case(suite, "environment");
    tcase_add_test(tc, command_finds_name_and_a_token_that_grows);
    tcase_add_loop_test(tc, without_token_there_is_no_key_that_stays_and_no_variable, 0,
                        sizeof(kinds) / sizeof(kinds[0]));
    tcase_add_test(tc, inner_run_tells_its_own_name);
    tcase_add_test(tc, run_inside_a_run_of_the_same_name_is_warned_of);
    tcase_add_test(tc, command_finds_signals_as_rlock_did);
    tcase_add_test(tc, command_finds_no_descriptors_of_the_library);
    tcase_add_test(tc, closed_standard_descriptors_stay_closed_and_take_nothing);
    tcase_add_test(tc, stdin_passes_through);
}

int main(void)
{
    Suite *suite = suite_create("cli_run");
    add_help(suite);
    add_codes(suite);
    add_lock(suite);
    add_environment(suite);
    return test_run_suite(suite);
}
