/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=user */
/* rlock-guard(8) as a process: when it is ready, what it refuses, what it logs. How it
 * ends is in test_guardd_stop.c, whose locks it recovers is in test_guardd_recovery.c. */
#include "guardscene.h"

#include "conffile.h"
#include "port.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET "s3cr3t"

static bool says_secret(void)
{
    return strstr(guard.err.text, SECRET) || strstr(guard.out.text, SECRET);
}

/* ---- ready */

START_TEST(manager_is_notified_when_the_daemon_is_ready)
{
    const char *variable = guard_manager(_i == 1);
    GUARD_WITH(variable, "--url", server.url);
    ck_assert(guard_tells("READY=1\nSTATUS=Watching "));
}
END_TEST

START_TEST(daemon_is_ready_while_the_server_is_unreachable)
{
    test_server_kill(&server);
    const char *variable = guard_manager(false);
    GUARD_WITH(variable, "--url", server.url);
    ck_assert(guard_tells("READY=1\n"));
}
END_TEST

/* One address of each kind: not there, of another family, too long. */
static const char *const no_managers[] = {
    "NOTIFY_SOCKET=/nonexistent/socket",
    "NOTIFY_SOCKET=vsock:2:1234",
    "NOTIFY_SOCKET=@"
    "12345678901234567890123456789012345678901234567890123456789012345678901"
    "234567890123456789012345678901234567890",
};

START_TEST(manager_that_cannot_be_notified_is_no_failure)
{
    GUARD_READY_WITH(no_managers[_i], "--url", server.url);
    ck_assert(
        cli_complains(&guard, "cannot notify the service manager (NOTIFY_SOCKET): "));
    kill(guard.pid, SIGTERM);
    ck_assert_int_eq(cli_ends(&guard, CLI_WAIT_MS), GUARD_OK);
}
END_TEST

START_TEST(server_is_that_of_the_environment_when_none_is_named)
{
    GUARD(NULL);
    guard_is_ready();
    ck_assert(cli_complains(&guard, server.url));
}
END_TEST

START_TEST(server_is_the_librarys_default_when_none_is_named_anywhere)
{
    static char rundir[128];
    snprintf(rundir, sizeof(rundir), "RLOCK_RUNDIR=%s", guard_dir);
    cli_start(&guard, CLI_ARGV(guard_path()), CLI_ARGV(rundir));
    guard_is_ready();
    ck_assert(cli_complains(&guard, " for redis://127.0.0.1:6379 (built-in default)\n"));
}
END_TEST

/* An environment with a configuration file of this text instead of RLOCK_URL. */
static const char *const *by_file(const char *text)
{
    static char rundir[128];
    static const char *env[3];
    snprintf(rundir, sizeof(rundir), "RLOCK_RUNDIR=%s", guard_dir);
    env[0] = rundir;
    env[1] = conffile_use(text);
    return env;
}

START_TEST(server_is_that_of_the_hosts_file_when_none_is_named)
{
    char text[TEST_URL_MAX + 128];
    conffile_begin();
    conffile_write("password", SECRET, 0600);
    snprintf(text, sizeof(text), "url=%s\nuser=u\npasswordfile=^/password", server.url);
    cli_start(&guard, CLI_ARGV(guard_path()), by_file(text));
    guard_is_ready();
    snprintf(text, sizeof(text), " for %s (%s)\n", server.url, conffile_path("conf"));
    ck_assert_msg(cli_complains(&guard, text), "%s", guard.err.text);
    ck_assert(!says_secret());
    conffile_end();
}
END_TEST

START_TEST(hosts_file_that_is_of_no_use_is_refused)
{
    char text[PATH_MAX + 128];
    conffile_begin();
    ck_assert_int_eq(cli_does(&guard, CLI_ARGV(guard_path()), by_file("\n" SECRET "\n")),
                     GUARD_USAGE);
    snprintf(text, sizeof(text),
             "rlock-guard: no server to watch for: %s, line 2: no '=' in the line\n",
             conffile_path("conf"));
    ck_assert_str_eq(guard.err.text, text);
    cli_stop(&guard);
    ck_assert_int_eq(cli_does(&guard, CLI_ARGV(guard_path()),
                              by_file("url=redis://127.0.0.1:1?guard=0")),
                     GUARD_USAGE);
    snprintf(text, sizeof(text), "%s: guard=0 switches off", conffile_path("conf"));
    ck_assert_msg(strstr(guard.err.text, text), "%s", guard.err.text);
    conffile_end();
}
END_TEST

START_TEST(daemon_watches_several_servers)
{
    char text[5 * TEST_URL_MAX];
    snprintf(text, sizeof(text), "# two\n\n  %s/3 \r\n%s?db=1\n", server.tcp_url,
             server.url);
    GUARD_READY("--url", server.url, "--url-file", livefile_view(text), "--url",
                server.tcp_url);
    snprintf(text, sizeof(text), " for %s, %s/3, %s?db=1, %s\n", server.url,
             server.tcp_url, server.url, server.tcp_url);
    ck_assert_msg(cli_complains(&guard, text), "%s", guard.err.text);
}
END_TEST

START_TEST(passwords_of_a_file_are_not_shown)
{
    static const char text[] = "redis://user:" SECRET "@127.0.0.1:1/2\n"
                               "REDIS://:" SECRET "%40@127.0.0.1:1?lease=500";
    const char *variable = guard_manager(false);
    GUARD_READY_WITH(variable, "-v", "--url-file", livefile_view(text));
    ck_assert(cli_complains(&guard, " for redis://127.0.0.1:1/2, "
                                    "REDIS://127.0.0.1:1?lease=500\n"));
    ck_assert(guard_tells(" for 2 servers"));
    kill(guard.pid, SIGUSR1);
    ck_assert(cli_complains(&guard,
                            "0 recovered processes (0 at redis://127.0.0.1:1/2, 0 at "));
    kill(guard.pid, SIGTERM);
    ck_assert_int_eq(cli_ends(&guard, CLI_WAIT_MS), GUARD_OK);
    ck_assert(!says_secret());
}
END_TEST

START_TEST(help_and_version_need_nothing)
{
    const char *const env[] = { "RLOCK_RUNDIR=", NULL };
    ck_assert_int_eq(cli_does(&guard, CLI_ARGV(guard_path(), "--help"), env), GUARD_OK);
    ck_assert(strstr(guard.out.text, "Usage: rlock-guard "));
    cli_stop(&guard);
    ck_assert_int_eq(cli_does(&guard, CLI_ARGV(guard_path(), "-V"), env), GUARD_OK);
    ck_assert(strncmp(guard.out.text, "rlock-guard ", strlen("rlock-guard ")) == 0);
}
END_TEST

/* ---- what it logs */

START_TEST(quiet_says_nothing_but_what_is_asked_for)
{
    const char *variable = guard_manager(false);
    GUARD_WITH(variable, "-q", "--url", server.url);
    ck_assert(guard_tells("READY=1\n"));
    kill(guard.pid, SIGUSR1);
    ck_assert(guard_tells("STATUS=0 recovered processes ("));
    kill(guard.pid, SIGTERM);
    ck_assert_int_eq(cli_ends(&guard, CLI_WAIT_MS), GUARD_OK);
    ck_assert(strncmp(guard.err.text, "rlock-guard: 0 recovered processes (",
                      strlen("rlock-guard: 0 recovered processes (")) == 0);
    ck_assert(strchr(guard.err.text, '\n') == strrchr(guard.err.text, '\n'));
}
END_TEST

/* In a service stderr is the journal's socket, here it is a pipe. */
START_TEST(journal_gets_the_priority)
{
    cli_start(&guard,
              CLI_ARGV("sh", "-c",
                       "JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2)\n"
                       "export JOURNAL_STREAM; exec \"$0\"",
                       guard_path()),
              guard_env(NULL));
    ck_assert_msg(cli_complains(&guard, "<6>rlock-guard: watching "), "%s",
                  guard.err.text);
    kill(guard.pid, SIGUSR1);
    ck_assert(cli_complains(&guard, "\n<5>rlock-guard: 0 recovered processes"));
}
END_TEST

START_TEST(priority_is_omitted_without_a_journal)
{
    GUARD_READY_WITH("JOURNAL_STREAM=1:2", NULL);
    ck_assert_ptr_null(strchr(guard.err.text, '<'));
}
END_TEST

START_TEST(first_outage_of_a_server_is_said)
{
    test_server_kill(&server);
    GUARD_READY("--url", server.url);
    ck_assert(cli_complains(&guard, "rlock: cannot connect to "));
}
END_TEST

/* ---- bad arguments */

static const struct {
    const char *option, *value, *text;
} bad[] = {
    { "--bogus", NULL, "--bogus: no such option" },
    { "-x", NULL, "-x: no such option" },
    { "--quiet=1", NULL, ": no such option, or it takes no value" },
    { "--urls=redis://:" SECRET "@x", NULL, "--urls: no such option" },
    { "--url", NULL, "--url: a value is missing" },
    { "redis://:" SECRET "@x", NULL, "there are only options" },
    { "--url", "http://x", "--url, number 1: must begin with redis://" },
    { "--url", "rediss://x?cafile=", "--url, number 1: " },
    { "--url", "redis://x:0", "--url, number 1: port is not a number" },
    { "--url", "redis://x?lease=1", "--url, number 1: lease is not a number" },
    { "--url", "redis://x?guard=2", "--url, number 1: guard is not a number" },
    { "--url", "redis://x?%67uard=0", "--url, number 1: unknown parameter" },
    { "--url", "redis://u:" SECRET "@x", "--url: all users of this host can read a " },
    { "--url", "redis://:" SECRET "@x?a/b", "--url: all users of this host can read a " },
    { "--url-file", "/nonexistent", "--url-file: /nonexistent: No such file" },
    { "--url-file", "/dev/null", "--url-file: /dev/null: no URL in it" },
    { "--url-file", "/", "--url-file: /: Is a directory" },
    { "--url", "redis://x?guard=0", "--url, number 1: guard=0 switches off" },
    { "--url", "redis://x?guard=000", "--url, number 1: guard=0 switches off" },
    { "--url", "redis://x?guard=%300", "--url, number 1: guard=0 switches off" },
    { "--url", "unix:///x?db=1&guard=0&lease=500",
      "--url, number 1: guard=0 switches off" },
};
enum { BAD = sizeof(bad) / sizeof(bad[0]) };

START_TEST(bad_argument_is_refused_with_its_reason)
{
    ck_assert_int_eq(GUARD_ENDS(bad[_i].option, bad[_i].value), GUARD_USAGE);
    ck_assert_msg(strstr(guard.err.text, bad[_i].text), "%s", guard.err.text);
    ck_assert(!says_secret());
    ck_assert_str_eq(guard.out.text, "");
}
END_TEST

START_TEST(bad_line_of_a_file_is_named_and_not_shown)
{
    static const char text[] = "# one is bad\nredis://127.0.0.1:1\n"
                               "redis://u:" SECRET "?@127.0.0.1\n";
    char wanted[TEST_PATH_MAX + 32];
    const char *path = livefile_view(text);
    snprintf(wanted, sizeof(wanted), "%s, line 3: ", path);
    ck_assert_int_eq(GUARD_ENDS("--url-file", path), GUARD_USAGE);
    ck_assert_msg(strstr(guard.err.text, wanted), "%s", guard.err.text);
    ck_assert(!says_secret());
}
END_TEST

START_TEST(line_of_a_file_that_is_too_long_is_refused)
{
    static char text[10000];
    memset(text, 'x', sizeof(text) - 1);
    ck_assert_int_eq(GUARD_ENDS("--url-file", livefile_view(text)), GUARD_USAGE);
    ck_assert(strstr(guard.err.text, ", line 1 is too long"));
}
END_TEST

START_TEST(guard_switched_off_by_the_environment_is_refused)
{
    char variable[TEST_URL_MAX + 32], rundir[128];
    snprintf(rundir, sizeof(rundir), "RLOCK_RUNDIR=%s", guard_dir);
    snprintf(variable, sizeof(variable), "RLOCK_URL=%s?guard=0", server.url);
    const char *const env[] = { rundir, variable, NULL };
    ck_assert_int_eq(cli_does(&guard, CLI_ARGV(guard_path()), env), GUARD_USAGE);
    ck_assert(strstr(guard.err.text, "RLOCK_URL: guard=0 switches off"));
}
END_TEST

START_TEST(guard_that_a_url_leaves_on_is_no_reason_to_refuse)
{
    char url[TEST_URL_MAX + 32];
    snprintf(url, sizeof(url), "%s?guard=%s", server.url, _i == 0 ? "1" : "0%31");
    GUARD_READY("--url", url);
}
END_TEST

START_TEST(more_urls_than_it_takes_are_refused)
{
    char text[65 * 32] = "";
    for (int i = 0; i < 65; i++)
        strcat(text, "redis://127.0.0.1:1\n");
    ck_assert_int_eq(GUARD_ENDS("--url-file", livefile_view(text)), GUARD_USAGE);
    ck_assert(strstr(guard.err.text, ", line 65: more than 64 URLs"));
}
END_TEST

/* ---- the directory */

static int with_rundir(const char *path)
{
    char variable[128];
    snprintf(variable, sizeof(variable), "RLOCK_RUNDIR=%s", path);
    const char *const env[] = { variable, NULL };
    return cli_does(&guard, CLI_ARGV(guard_path(), "--url", server.url), env);
}

/* Switched off, missing, not a directory. */
START_TEST(daemon_ends_without_a_directory)
{
    static const char *const paths[] = { "", "/nonexistent", "/dev/null" };
    ck_assert_int_eq(with_rundir(paths[_i]), GUARD_CONFIG);
    ck_assert_msg(strstr(guard.err.text, "no directory to watch: "), "%s",
                  guard.err.text);
    /* the reason follows the colon */
    ck_assert(guard.err.text[strlen(guard.err.text) - 2] != ' ');
}
END_TEST

START_TEST(daemon_ends_at_a_world_writable_directory)
{
    ck_assert_int_eq(chmod(guard_dir, 0777), 0);
    ck_assert_int_eq(with_rundir(guard_dir), GUARD_CONFIG);
    ck_assert(strstr(guard.err.text, guard_dir));
}
END_TEST

static bool is_root(const char *test)
{
    if (geteuid() != 0)
        printf("skipped: %s: not root\n", test);
    return geteuid() == 0;
}

enum { OF_GROUP = 54321 };

/* The directory can be used, but no file can be created there (25: SIGXFSZ). */
START_TEST(daemon_ends_with_nothing_to_watch)
{
    cli_start(
        &guard,
        CLI_ARGV("sh", "-c", "trap '' 25; ulimit -f 0; exec \"$0\" -q", guard_path()),
        guard_env(NULL));
    ck_assert_int_eq(cli_ends(&guard, CLI_WAIT_MS), GUARD_INTERNAL);
    ck_assert_msg(strstr(guard.err.text, "rlock: no crash guard: ") &&
                      strstr(guard.err.text, "rlock-guard: exits: no directory is left "),
                  "%s", guard.err.text);
}
END_TEST

/* The daemon notices it when the kernel reports a file there. */
START_TEST(daemon_ends_when_its_directory_becomes_world_writable)
{
    char path[PATH_MAX];
    GUARD_READY("--url", server.url);
    ck_assert_int_eq(chmod(guard_dir, 0777), 0);
    snprintf(path, sizeof(path), "%s/00000000-0000-4000-8000-000000000001", guard_dir);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ck_assert_int_eq(cli_ends(&guard, CLI_WAIT_MS), GUARD_INTERNAL);
    ck_assert_msg(strstr(guard.err.text, "rlock: crash guard stopped: ") &&
                      strstr(guard.err.text, "rlock-guard: exits: no directory is left "),
                  "%s", guard.err.text);
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(root_does_not_look_where_a_group_can_write)
{
    if (!is_root("root_does_not_look_where_a_group_can_write"))
        return;
    ck_assert_int_eq(chown(guard_dir, 0, OF_GROUP), 0);
    ck_assert_int_eq(chmod(guard_dir, 02770), 0);
    ck_assert_int_eq(with_rundir(guard_dir), GUARD_CONFIG);
    ck_assert(strstr(guard.err.text, " is group-writable: refusing to run as root"));
}
END_TEST

/* Like the unit: as another user, in the group that can write to root's directory. */
START_TEST(member_of_the_group_looks_there)
{
    static const char test[] = "member_of_the_group_looks_there";
    char rundir[128], above[128];
    if (!is_root(test))
        return;
    snprintf(above, sizeof(above), "%s/..", guard_dir);
    snprintf(rundir, sizeof(rundir), "RLOCK_RUNDIR=%s", guard_dir);
    const char *const env[] = { rundir, NULL };
#define AS_MEMBER                                                                        \
    "setpriv", "--reuid=65534", "--regid=65534", "--groups=54321", guard_path()
    if (cli_does(&guard, CLI_ARGV(AS_MEMBER, "--version"), env) != GUARD_OK) {
        printf("skipped: %s: no setpriv, or the build is out of reach\n", test);
        return;
    }
    cli_stop(&guard);
    ck_assert_int_eq(chmod(above, 0711), 0);
    ck_assert_int_eq(chown(guard_dir, 0, OF_GROUP), 0);
    ck_assert_int_eq(chmod(guard_dir, 02770), 0);
    cli_start(&guard, CLI_ARGV(AS_MEMBER, "--url", server.tcp_url), env);
    guard_is_ready();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guardd");
    TCase *tc = guard_case(suite, "ready");
    tcase_add_loop_test(tc, manager_is_notified_when_the_daemon_is_ready, 0, 2);
    tcase_add_test(tc, daemon_is_ready_while_the_server_is_unreachable);
    tcase_add_loop_test(tc, manager_that_cannot_be_notified_is_no_failure, 0, 3);
    tcase_add_test(tc, server_is_that_of_the_environment_when_none_is_named);
    tcase_add_test(tc, server_is_the_librarys_default_when_none_is_named_anywhere);
    tcase_add_test(tc, server_is_that_of_the_hosts_file_when_none_is_named);
    tcase_add_test(tc, hosts_file_that_is_of_no_use_is_refused);
    tcase_add_test(tc, daemon_watches_several_servers);
    tcase_add_test(tc, passwords_of_a_file_are_not_shown);
    tcase_add_test(tc, help_and_version_need_nothing);
    tc = guard_case(suite, "says");
    tcase_add_test(tc, quiet_says_nothing_but_what_is_asked_for);
    tcase_add_test(tc, journal_gets_the_priority);
    tcase_add_test(tc, priority_is_omitted_without_a_journal);
    tcase_add_test(tc, first_outage_of_a_server_is_said);
    tc = guard_case(suite, "arguments");
    tcase_add_loop_test(tc, bad_argument_is_refused_with_its_reason, 0, BAD);
    tcase_add_test(tc, bad_line_of_a_file_is_named_and_not_shown);
    tcase_add_test(tc, line_of_a_file_that_is_too_long_is_refused);
    tcase_add_test(tc, guard_switched_off_by_the_environment_is_refused);
    tcase_add_loop_test(tc, guard_that_a_url_leaves_on_is_no_reason_to_refuse, 0, 2);
    tcase_add_test(tc, more_urls_than_it_takes_are_refused);
    tc = guard_case(suite, "directory");
    tcase_add_loop_test(tc, daemon_ends_without_a_directory, 0, 3);
    tcase_add_test(tc, daemon_ends_at_a_world_writable_directory);
    tcase_add_test(tc, daemon_ends_with_nothing_to_watch);
    tcase_add_test(tc, daemon_ends_when_its_directory_becomes_world_writable);
    tcase_add_test(tc, root_does_not_look_where_a_group_can_write);
    tcase_add_test(tc, member_of_the_group_looks_there);
    return test_run_suite(suite);
}
