/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=user */
/* rlock doctor as a process: its exit codes, what it prints for people and programs. */
#include "cli.h"

#include "proxy.h"
#include "redis.h"
#include "server.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OK = 0,
    WARNINGS = 1,
    ERRORS = 2,
    USAGE = 64,
    UNREACHABLE = 69,
    NO_SERVER = 76,
    REFUSED = 77
};

static struct test_server server;
static struct test_redis *redis;
static struct cli c;
static const char *const safe[] = { "--appendonly", "yes", "--appendfsync", "always",
                                    NULL };

static void start(void)
{
    test_server_start(&server, safe);
}

static void stop(void)
{
    test_server_stop(&server);
}

/* Each test begins with a server that is fit for locks. */
static void set_up(void)
{
    test_server_restart_args(&server, safe);
    test_server_reset(&server);
    redis = test_redis_connect(server.path);
    memset(&c, 0, sizeof(c));
}

static void tear_down(void)
{
    cli_stop(&c);
    test_redis_close(redis);
}

/* Returns rlock's exit code. `option` may be NULL. */
static int doctor(const char *option)
{
    const char *const argv[] = { "rlock", "doctor", "--url", server.url, option, NULL };
    return cli_does(&c, argv, NULL);
}

static void warn(void)
{
    test_redis_config(redis, "client-output-buffer-limit", "pubsub 1kb 0 0");
}

static void err(void)
{
    test_redis_config(redis, "maxmemory-policy", "allkeys-lru");
    test_redis_config(redis, "maxmemory", "100mb");
}

static bool prints(const char *text)
{
    return strstr(c.out.text, text) != NULL;
}

/* ---- exit codes */

START_TEST(a_server_that_is_fit_is_0)
{
    ck_assert_int_eq(doctor(NULL), OK);
    ck_assert_str_eq(c.err.text, "");
    ck_assert(prints("\nok        eviction: Nothing is evicted"));
    ck_assert(!prints("warning") && !prints("error"));
}
END_TEST

START_TEST(notes_alone_are_0)
{
    test_redis_config(redis, "timeout", "60");
    ck_assert_int_eq(doctor(NULL), OK);
    ck_assert_int_eq(strncmp(c.out.text, "note      connections: ", 23), 0);
    ck_assert(prints("\nnote      access: The user \"default\" may do everything"));
    ck_assert(prints("\n2 notes, "));
}
END_TEST

START_TEST(a_warning_is_1)
{
    warn();
    ck_assert_int_eq(doctor(NULL), WARNINGS);
    ck_assert_int_eq(strncmp(c.out.text, "warning   buffers: ", 19), 0);
    ck_assert(prints("\n1 warning, "));
}
END_TEST

START_TEST(an_error_is_2_and_comes_before_warnings)
{
    warn();
    err();
    ck_assert_int_eq(doctor(NULL), ERRORS);
    ck_assert_int_eq(strncmp(c.out.text, "error     eviction: ", 20), 0);
    const char *warning = strstr(c.out.text, "\nwarning   "),
               *ok = strstr(c.out.text, "\nok ");
    ck_assert(warning && ok && warning < ok);
    ck_assert(prints("\n1 error, 1 warning, "));
}
END_TEST

START_TEST(a_server_that_is_away_is_69_and_said_on_stderr)
{
    test_server_kill(&server);
    ck_assert_int_eq(doctor(NULL), UNREACHABLE);
    ck_assert_str_eq(c.out.text, "");
    ck_assert_int_eq(strncmp(c.err.text, "rlock: cannot check the server: ", 32), 0);
    test_server_restart(&server);
}
END_TEST

START_TEST(refused_credentials_are_77_without_the_password)
{
    static const char *const env[] = { "RLOCK_PASSWORD=hush-hush-hush",
                                       "RLOCK_USER=nobody", NULL };
    const char *const argv[] = { "rlock", "doctor", "--url", server.url, NULL };
    ck_assert_int_eq(cli_does(&c, argv, env), REFUSED);
    ck_assert(strstr(c.err.text, "AUTH"));
    ck_assert(!strstr(c.err.text, "hush"));
}
END_TEST

START_TEST(a_proxy_that_is_no_server_is_76_and_named)
{
    struct test_proxy *proxy = test_proxy_start(&server);
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_CUT, .contains = "SETNAME");
    const char *const argv[] = { "rlock", "doctor", "--url", test_proxy_url(proxy),
                                 NULL };
    ck_assert_int_eq(cli_does(&c, argv, NULL), NO_SERVER);
    ck_assert_str_eq(c.out.text, "");
    ck_assert(strstr(c.err.text, "twemproxy"));
    test_proxy_stop(proxy);
}
END_TEST

START_TEST(words_and_options_it_does_not_know_are_64)
{
    ck_assert_int_eq(doctor("word"), USAGE);
    cli_stop(&c);
    ck_assert_int_eq(doctor("--nonsense"), USAGE);
}
END_TEST

START_TEST(output_that_cannot_be_written_is_70)
{
    const char *const argv[] = {
        "sh",       "-c",       "exec \"$0\" doctor --url \"$1\" >/dev/full",
        cli_path(), server.url, NULL
    };
    ck_assert_int_eq(cli_does(&c, argv, NULL), 70);
    ck_assert(strstr(c.err.text, "cannot write"));
}
END_TEST

/* ---- a terminal */

START_TEST(a_pipe_gets_one_line_for_each_finding_and_no_colours)
{
    ck_assert_int_eq(doctor(NULL), OK);
    ck_assert(!strchr(c.out.text, '\033'));
    ck_assert(!prints("\n "));
}
END_TEST

static void on_terminal(const char *const env[])
{
    const char *const argv[] = { "rlock", "doctor", "--url", server.url, NULL };
    warn();
    cli_start_pty(&c, argv, env, 24, 60);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), WARNINGS);
    for (char *line = c.out.text, *end; (end = strchr(line, '\n')); line = end + 1) {
        long width = 0;
        for (const char *at = line; at < end; at++) {
            if (*at == '\033')
                at = strchr(at, 'm');
            else
                width += *at != '\r';
        }
        ck_assert_msg(width <= 60, "%ld columns: %.*s", width, (int)(end - line), line);
    }
}

START_TEST(a_terminal_gets_colours_and_lines_as_wide_as_it_is)
{
    on_terminal(NULL);
    ck_assert(prints("\033[1;33mwarning   \033[0mbuffers:"));
    ck_assert(prints("\033[32mok"));
}
END_TEST

START_TEST(NO_COLOR_is_heeded)
{
    static const char *const env[] = { "NO_COLOR=1", NULL };
    on_terminal(env);
    ck_assert(prints("warning   buffers:"));
    ck_assert(!strchr(c.out.text, '\033'));
}
END_TEST

/* ---- --json */

/* What python3 prints for an expression about the document `d`. */
static const char *of_json(struct cli *python, const char *expression)
{
    char program[512];
    snprintf(program, sizeof(program),
             "import json,sys; d=json.load(sys.stdin); print(%s)", expression);
    const char *const argv[] = { "python3", "-c", program, NULL };
    cli_start(python, argv, NULL);
    ck_assert(cli_type(python, c.out.text));
    cli_close_in(python);
    ck_assert_int_eq(cli_ends(python, CLI_WAIT_MS), 0);
    return python->out.text;
}

static void expect_json(const char *expression, const char *value)
{
    static struct cli python;
    if (system("command -v python3 >/dev/null 2>&1") != 0) {
        printf("skipped: json: there is no python3\n");
        return;
    }
    ck_assert_str_eq(of_json(&python, expression), value);
    cli_stop(&python);
}

START_TEST(json_has_the_findings_with_the_gravest_first)
{
    warn();
    err();
    ck_assert_int_eq(doctor("--json"), ERRORS);
    expect_json("d['errors'], d['warnings'], d['complete'], d['failure'], d['exit_code']",
                "1 1 True None 2\n");
    expect_json("d['findings'][0]['grade'], d['findings'][0]['topic']",
                "error eviction\n");
    expect_json("d['findings'][1]['grade'], d['findings'][1]['topic']",
                "warning buffers\n");
    expect_json("[f['topic'] for f in d['findings']].count('guard')", "1\n");
    expect_json("all(f['text'] for f in d['findings']) and len(d['findings']) > 12",
                "True\n");
}
END_TEST

START_TEST(help_names_all_that_json_has)
{
    static struct cli help;

    ck_assert_int_eq(cli_does(&help, CLI_ARGV("rlock", "doctor", "--help"), NULL), 0);
    ck_assert_int_eq(doctor("--json"), OK);
    for (const char *at = c.out.text; (at = strstr(at, "\": ")) != NULL; at++) {
        const char *end = at, *begin = end;
        char name[32];
        while (begin[-1] != '"')
            begin--;
        snprintf(name, sizeof(name), "%.*s", (int)(end - begin), begin);
        ck_assert_msg(strstr(help.out.text, name), "%s", name);
    }
    cli_stop(&help);
}
END_TEST

START_TEST(json_of_a_server_that_is_away_says_why)
{
    test_server_kill(&server);
    ck_assert_int_eq(doctor("--json"), UNREACHABLE);
    expect_json(
        "d['complete'], d['exit_code'], len(d['findings']), len(d['failure']) > 9",
        "False 69 0 True\n");
    test_server_restart(&server);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_doctor");
    TCase *tc = tcase_create("doctor");
    tcase_add_unchecked_fixture(tc, start, stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_server_that_is_fit_is_0);
    tcase_add_test(tc, notes_alone_are_0);
    tcase_add_test(tc, a_warning_is_1);
    tcase_add_test(tc, an_error_is_2_and_comes_before_warnings);
    tcase_add_test(tc, a_server_that_is_away_is_69_and_said_on_stderr);
    tcase_add_test(tc, refused_credentials_are_77_without_the_password);
    tcase_add_test(tc, a_proxy_that_is_no_server_is_76_and_named);
    tcase_add_test(tc, words_and_options_it_does_not_know_are_64);
    tcase_add_test(tc, output_that_cannot_be_written_is_70);
    tcase_add_test(tc, a_pipe_gets_one_line_for_each_finding_and_no_colours);
    tcase_add_test(tc, a_terminal_gets_colours_and_lines_as_wide_as_it_is);
    tcase_add_test(tc, NO_COLOR_is_heeded);
    tcase_add_test(tc, json_has_the_findings_with_the_gravest_first);
    tcase_add_test(tc, help_names_all_that_json_has);
    tcase_add_test(tc, json_of_a_server_that_is_away_says_why);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
