/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=user */
/* Which server the commands of rlock(1) use without --url: that of RLOCK_URL, that of the
 * file of rlock.conf(5), or the built-in one. And what they print about its source. */
#include "runscene.h"

#include "conffile.h"
#include "namespaces.h"
#include "port.h"

#include <check.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FALLS_BACK                                                                       \
    "rlock: neither --url nor RLOCK_URL nor rlock.conf(5) names a server: it is "        \
    "redis://127.0.0.1:6379, of this host alone\n"
#define SECRET "canary"

enum { USAGE = 64, UNREACHABLE = 69, REFUSED = 77 };

static char url[TEST_URL_MAX + 32];

static void set_up(void)
{
    scene_open();
    conffile_begin();
    snprintf(url, sizeof(url), "RLOCK_URL=%s", server.url);
}

static void tear_down(void)
{
    conffile_end();
    scene_close();
}

/* A configuration file that names the test's server. */
static const char *use_server(void)
{
    char text[TEST_URL_MAX + 32];
    snprintf(text, sizeof(text), "# ours\nurl=%s\n", server.url);
    return conffile_use(text);
}

/* Runs rlock with these variables, each of which may be NULL. Returns its exit code. */
static int does(const char *one, const char *two, const char *const argv[])
{
    const char *env[3] = { NULL };
    int n = 0;
    cli_stop(&c);
    if (one)
        env[n++] = one;
    if (two)
        env[n++] = two;
    int code = cli_does(&c, argv, env);
    ck_assert_ptr_null(strstr(c.err.text, SECRET));
    return code;
}
#define DOES(one, two, ...) does((one), (two), CLI_ARGV("rlock", __VA_ARGS__))

static void has_said(const char *text)
{
    ck_assert_msg(strstr(c.err.text, text), "\"%s\"", c.err.text);
}

/* ---- run */

START_TEST(run_takes_the_lock_at_the_files_server)
{
    ck_assert_int_eq(DOES(use_server(), NULL, "run", "n", "true"), 0);
    ck_assert_str_eq(c.err.text, "");
    ck_assert(test_redis_exists(redis, "redisson_lock_token:{n}"));
}
END_TEST

/* This line is all that it prints. */
static void says_server(const char *source)
{
    char line[TEST_URL_MAX + PATH_MAX];
    snprintf(line, sizeof(line), "rlock: the server is %s (%s)\n", server.url, source);
    ck_assert_str_eq(c.err.text, line);
}

START_TEST(verbose_run_names_the_server_and_the_source_of_its_url)
{
    const char *conf = use_server();
    ck_assert_int_eq(DOES(conf, NULL, "run", "-v", "n", "true"), 0);
    says_server(conffile_path("conf"));
    ck_assert_int_eq(DOES(conf, "RLOCK_URL=", "run", "--verbose", "n", "true"), 0);
    says_server(conffile_path("conf"));
    ck_assert_int_eq(DOES(conf, NULL, "run", "-v", "--url", "", "n", "true"), 0);
    says_server(conffile_path("conf"));
    conf = conffile_use("nonsense"); /* not read from here on */
    ck_assert_int_eq(DOES(conf, url, "run", "-v", "n", "true"), 0);
    says_server("RLOCK_URL");
    ck_assert_int_eq(
        DOES(conf, "RLOCK_URL=x", "run", "-qv", "--url", server.url, "n", "true"), 0);
    says_server("--url");
    ck_assert_int_eq(DOES(conf, url, "run", "n", "true"), 0);
    ck_assert_str_eq(c.err.text, "");
}
END_TEST

/* In a network without a server. */
START_TEST(run_says_once_that_nobody_has_named_a_server)
{
    static const char *const options[] = { "-q", "-v", "--fair" };
    if (!namespaces_enter("run_says_once_that_nobody_has_named_a_server", CLONE_NEWNET))
        return;
    ck_assert_int_eq(DOES("RLOCK_CONF=/dev/null", _i == 0 ? NULL : "RLOCK_URL=", "run",
                          options[_i], "--no-wait", "n", "true"),
                     UNREACHABLE);
    ck_assert_str_eq(c.err.text,
                     FALLS_BACK "rlock: cannot lock \"n\": cannot connect to "
                                "127.0.0.1:6379 (built-in default): Network is "
                                "unreachable\n");
}
END_TEST

START_TEST(users_credentials_go_with_the_files_server)
{
    char text[256];
    test_redis_do(redis, "ACL", "SETUSER", "worker", "reset", "on", ">" SECRET, "~*",
                  "&*", "+@all");
    test_redis_do(redis, "ACL", "SETUSER", "default", "off");
    conffile_write("password", SECRET, 0640);
    conffile_write("wrong", SECRET "x", 0600);
    snprintf(text, sizeof(text), "url=%s\nuser=worker\npasswordfile=^/password\n",
             server.url);
    const char *conf = conffile_use(text);
    int by_file = DOES(conf, NULL, "run", "n", "true");
    int by_user = DOES(conf, NULL, "run", "--user", "worker", "--password-file",
                       conffile_path("password"), "n", "true");
    int by_wrong =
        DOES(conf, NULL, "run", "--password-file", conffile_path("wrong"), "n", "true");
    int by_variable = DOES(conf, "RLOCK_PASSWORD=x", "list");
    test_redis_do(redis, "ACL", "SETUSER", "default", "on");
    test_redis_do(redis, "ACL", "DELUSER", "worker");
    ck_assert_int_eq(by_file, 0);
    ck_assert_int_eq(by_user, 0);
    ck_assert_int_eq(by_wrong, REFUSED);
    ck_assert_int_eq(by_variable, REFUSED);
    snprintf(text, sizeof(text), "%s (%s) refused AUTH", server.path,
             conffile_path("conf"));
    has_said(text);
}
END_TEST

/* ---- all commands */

static const char *const each[][6] = { { "run", "n", "echo", "inside" },
                                       { "list" },
                                       { "show", "n" },
                                       { "watch" },
                                       { "wait", "n" },
                                       { "doctor" },
                                       { "release", "--force", "--yes", "n" } };
enum { COMMANDS = sizeof(each) / sizeof(each[0]) };

static int does_each(int i, const char *one, const char *two)
{
    const char *argv[8] = { "rlock" };
    memcpy(argv + 1, each[i], sizeof(each[i]));
    return does(one, two, argv);
}

START_TEST(file_that_is_wrong_gives_64_and_says_its_line)
{
    char text[PATH_MAX + 256];
    ck_assert_int_eq(
        does_each(_i, conffile_use("#\nurl=redis://:" SECRET "@h:x\n"), NULL), USAGE);
    snprintf(text, sizeof(text),
             "rlock: no server can be reached: %s, line 2: URL: port is not a number "
             "from 1 to 65535\n",
             conffile_path("conf"));
    ck_assert_str_eq(c.err.text, text);
    ck_assert_str_eq(c.out.text, "");
}
END_TEST

START_TEST(file_that_may_not_be_read_gives_64_and_says_so)
{
    char text[PATH_MAX + 256];
    const char *conf = use_server();
    ck_assert_int_eq(chmod(conffile_path("conf"), 0), 0);
    conffile_obey_rights();
    int code = does_each(_i, conf, NULL);
    snprintf(text, sizeof(text),
             "rlock: no server can be reached: RLOCK_CONF: %s: Permission denied\n",
             conffile_path("conf"));
    ck_assert_int_eq(code, USAGE);
    ck_assert_str_eq(c.err.text, text);
}
END_TEST

START_TEST(unreachable_server_is_reported_with_the_source_of_its_url)
{
    if (strcmp(each[_i][0], "watch") == 0)
        return; /* watch waits for the server */
    char text[64], variable[128], want[PATH_MAX + 128];
    uint16_t port;
    int reserved = test_port_reserve("127.0.0.1", &port);
    snprintf(text, sizeof(text), "redis://127.0.0.1:%u", (unsigned)port);
    snprintf(variable, sizeof(variable), "url=%s", text);
    const char *conf = conffile_use(variable);
    ck_assert_int_eq(does_each(_i, conf, NULL), UNREACHABLE);
    snprintf(want, sizeof(want), "127.0.0.1:%u (%s): Connection refused", (unsigned)port,
             conffile_path("conf"));
    has_said(want);
    snprintf(variable, sizeof(variable), "RLOCK_URL=%s", text);
    ck_assert_int_eq(does_each(_i, variable, NULL), UNREACHABLE);
    snprintf(want, sizeof(want), "127.0.0.1:%u (RLOCK_URL): Connection refused",
             (unsigned)port);
    has_said(want);
    ck_assert_int_eq(DOES(NULL, NULL, "list", "--url", text), UNREACHABLE);
    has_said(": Connection refused (the server is that of --url)\n");
    close(reserved);
}
END_TEST

START_TEST(url_that_is_wrong_is_told_with_who_named_it)
{
    ck_assert_int_eq(DOES(NULL, NULL, "list", "--url", "redis://h:x"), USAGE);
    ck_assert_str_eq(c.err.text,
                     "rlock: cannot use the URL from --url: port is not a number "
                     "from 1 to 65535\n");
    ck_assert_int_eq(DOES("RLOCK_URL=redis://h:x", NULL, "list"), USAGE);
    ck_assert_str_eq(c.err.text,
                     "rlock: no server can be reached: RLOCK_URL: port is not a "
                     "number from 1 to 65535\n");
}
END_TEST

START_TEST(doctor_says_which_server_it_has_looked_at)
{
    char line[TEST_URL_MAX + PATH_MAX];
    DOES(use_server(), NULL, "doctor");
    snprintf(line, sizeof(line), "\nserver    %s (%s)\n", server.url,
             conffile_path("conf"));
    ck_assert_msg(strstr(c.out.text, line), "%s", c.out.text);
    DOES(NULL, NULL, "doctor", "--json", "--url", server.url);
    snprintf(line, sizeof(line), "\"server\": \"%s\"", server.url);
    ck_assert_msg(strstr(c.out.text, line), "%s", c.out.text);
    ck_assert_ptr_nonnull(strstr(c.out.text, "\"source\": \"--url\""));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli conf");
    TCase *tc = tcase_create("cli conf");
    tcase_add_unchecked_fixture(tc, scene_start, scene_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, run_takes_the_lock_at_the_files_server);
    tcase_add_test(tc, verbose_run_names_the_server_and_the_source_of_its_url);
    tcase_add_loop_test(tc, run_says_once_that_nobody_has_named_a_server, 0, 3);
    tcase_add_test(tc, users_credentials_go_with_the_files_server);
    tcase_add_loop_test(tc, file_that_is_wrong_gives_64_and_says_its_line, 0, COMMANDS);
    tcase_add_loop_test(tc, file_that_may_not_be_read_gives_64_and_says_so, 0, COMMANDS);
    tcase_add_loop_test(tc, unreachable_server_is_reported_with_the_source_of_its_url, 0,
                        COMMANDS);
    tcase_add_test(tc, url_that_is_wrong_is_told_with_who_named_it);
    tcase_add_test(tc, doctor_says_which_server_it_has_looked_at);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
