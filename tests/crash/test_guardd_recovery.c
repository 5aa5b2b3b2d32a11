/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=user */
/* Whose locks rlock-guard(8) releases. The waiter has no crash guard and looks at no
 * files, like a process on another host: if it gets the lock before the lease ends,
 * rlock-guard has released it. */
#include "guardscene.h"

#include "worker.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* Far apart, because the end of a lease must not be what frees a lock here. */
enum { SOON_MS = 5000, STAYS_MS = 300, WAIT_MS = 20000 };
#define LONG_LEASE "?lease=600000"

static struct test_server second;
static struct worker holder, waiter;

static void set_up(void)
{
    memset(&holder, 0, sizeof(holder));
    memset(&waiter, 0, sizeof(waiter));
}

static void tear_down(void)
{
    worker_end(&holder);
    worker_end(&waiter);
}

static const char *with_lease(const char *url)
{
    static char text[TEST_URL_MAX + 32];
    snprintf(text, sizeof(text), "%s" LONG_LEASE, url);
    return text;
}

/* Starts a process of this host that holds "n". */
static void hold(const char *url)
{
    worker_start(&holder, with_lease(url));
    ck_assert(worker_says(&holder, "init h n", "ok"));
    ck_assert(worker_says(&holder, "lock h", "ok"));
}

static bool has_queue(void *arg)
{
    return test_redis_int(arg, "ZCARD", "rlock:{n}:queue") == 1;
}

/* Starts a process, as if on another host, that waits for "n" at the server of `at`. */
static void wait_for_it(struct test_redis *at, const char *url)
{
    static const char *const no_guard[] = { "RLOCK_RUNDIR=", NULL };
    worker_start_env(&waiter, url, no_guard);
    ck_assert(worker_says(&waiter, "init h n", "ok"));
    ck_assert(worker_says(&waiter, "async t lock h", "ok"));
    ck_assert(test_wait_until(has_queue, at, WAIT_MS));
}

static bool waiter_has_it_within(int ms)
{
    const char *news = worker_news(&waiter, "done t", ms);
    return news && strcmp(news, "done t ok") == 0;
}

static bool waiter_has_it(void)
{
    return waiter_has_it_within(SOON_MS);
}

/* ---- at once */

START_TEST(lock_of_a_killed_process_is_given_back)
{
    char died[128];
    GUARD_READY("--url", server.url);
    hold(server.url);
    wait_for_it(redis, server.url);
    snprintf(died, sizeof(died),
             "rlock: process %d (worker) of this host died; locks released at ",
             (int)holder.program.pid);
    worker_kill(&holder);
    ck_assert(waiter_has_it());
    ck_assert_msg(cli_complains(&guard, died), "%s", guard.err.text);
    kill(guard.pid, SIGUSR1);
    ck_assert(cli_complains(&guard, "rlock-guard: 1 recovered process (1 at "));
}
END_TEST

START_TEST(lock_of_one_that_was_killed_before_it_began_is_given_back)
{
    hold(server.url);
    wait_for_it(redis, server.url);
    worker_kill(&holder);
    GUARD_READY("--url", server.url);
    ck_assert(waiter_has_it());
}
END_TEST

START_TEST(lock_of_one_that_was_killed_while_the_server_hung_is_given_back)
{
    GUARD_READY("--url", server.url);
    hold(server.url);
    wait_for_it(redis, server.url);
    test_server_pause(&server);
    worker_kill(&holder);
    test_server_resume(&server);
    ck_assert(waiter_has_it());
}
END_TEST

/* The outage is longer than a recovery keeps trying. */
START_TEST(lock_of_a_process_killed_during_an_outage_is_recovered_after_it)
{
    char url[TEST_URL_MAX + 96];
    snprintf(url, sizeof(url), "%s?presence=300&commandtimeout=100&connecttimeout=100",
             server.url);
    GUARD_READY("--url", url);
    ck_assert(cli_complains(&guard, "rlock: connected to "));
    hold(server.url);
    wait_for_it(redis, server.url);
    test_server_pause(&server);
    worker_kill(&holder);
    ck_assert(cli_complains(&guard, "rlock: disconnected from "));
    test_server_resume(&server);
    ck_assert(waiter_has_it_within(WAIT_MS)); /* the daemon tries every 3 s */
}
END_TEST

static bool is_kept(void *arg)
{
    (void)arg;
    return test_redis_exists(redis, "n");
}

START_TEST(lock_of_a_stopped_process_is_left_to_its_lease)
{
    GUARD_READY("--url", server.url);
    hold(server.url);
    worker_stop(&holder);
    ck_assert(test_stays(is_kept, NULL, STAYS_MS));
    worker_kill(&holder);
    ck_assert(test_rundir_wait(guard_dir, 1, SOON_MS));
    ck_assert(!is_kept(NULL));
}
END_TEST

START_TEST(one_of_two_guards_gives_it_back)
{
    unsigned sum = 0;
    GUARD_READY("--url", server.url);
    cli_start(&other, CLI_ARGV(guard_path(), "--url", server.url), guard_env(NULL));
    ck_assert(cli_complains(&other, "watching "));
    hold(server.url);
    wait_for_it(redis, server.url);
    worker_kill(&holder);
    ck_assert(waiter_has_it());
    ck_assert(test_rundir_wait(guard_dir, 2, SOON_MS));
    kill(guard.pid, SIGUSR1);
    kill(other.pid, SIGUSR1);
    ck_assert(cli_complains(&guard, " recovered process"));
    ck_assert(cli_complains(&other, " recovered process"));
    sum += strstr(guard.err.text, "rlock-guard: 1 recovered process ") != NULL;
    sum += strstr(other.err.text, "rlock-guard: 1 recovered process ") != NULL;
    ck_assert_uint_eq(sum, 1);
}
END_TEST

START_TEST(the_other_guard_goes_on_when_one_is_killed)
{
    GUARD_READY("--url", server.url);
    cli_start(&other, CLI_ARGV(guard_path(), "--url", server.url), guard_env(NULL));
    ck_assert(cli_complains(&other, "watching "));
    hold(server.url);
    wait_for_it(redis, server.url);
    kill(guard.pid, SIGKILL);
    worker_kill(&holder);
    ck_assert(waiter_has_it());
    ck_assert(test_rundir_wait(guard_dir, 1, SOON_MS)); /* the daemon's own */
}
END_TEST

/* ---- which servers */

START_TEST(each_of_its_servers_is_seen_to)
{
    test_server_start(&second, NULL);
    struct test_redis *at = test_redis_connect(second.path);
    GUARD_READY("--url", server.url, "--url", second.url);
    hold(second.url);
    wait_for_it(at, second.url);
    worker_kill(&holder);
    bool given = waiter_has_it() && cli_complains(&guard, " of this host died");
    kill(guard.pid, SIGUSR1);
    bool counted = cli_complains(&guard, "1 recovered process (0 at ");
    test_redis_close(at);
    test_server_stop(&second);
    ck_assert(given);
    ck_assert(counted);
}
END_TEST

/* As the manual page says: two URLs mean the same server if their words are the same. */
START_TEST(server_by_another_name_is_another_one)
{
    char localhost[TEST_URL_MAX];
    snprintf(localhost, sizeof(localhost), "redis://localhost:%u", (unsigned)server.port);
    hold(server.tcp_url);
    worker_kill(&holder);
    GUARD_READY("--url", localhost);
    ck_assert(test_stays(is_kept, NULL, STAYS_MS));
    cli_stop(&guard);
    GUARD_READY("--url", server.tcp_url);
    ck_assert(cli_complains(&guard, " of this host died; locks released at "));
    ck_assert(!is_kept(NULL));
}
END_TEST

START_TEST(user_and_parameters_of_a_url_do_not_matter)
{
    char url[TEST_URL_MAX + 64];
    test_redis_do(redis, "ACL", "SETUSER", "guard", "on", ">secret", "~*", "&*", "+@all");
    hold(server.tcp_url);
    snprintf(url, sizeof(url), "redis://guard:secret@127.0.0.1:%u?presence=500",
             (unsigned)server.port);
    worker_kill(&holder);
    GUARD_READY("--url-file", livefile_view(url));
    bool buried = cli_complains(&guard, " of this host died; locks released at ");
    test_redis_do(redis, "ACL", "DELUSER", "guard");
    ck_assert(buried);
    ck_assert(!is_kept(NULL));
}
END_TEST

/* ---- the directory */

START_TEST(daemon_waits_for_a_directory_that_disappeared)
{
    char old[PATH_MAX];
    GUARD_READY("--url", server.url);
    snprintf(old, sizeof(old), "%s.old", guard_dir);
    ck_assert_int_eq(rename(guard_dir, old), 0);
    ck_assert_msg(cli_complains(&guard, "rlock: crash guard stopped: "), "%s",
                  guard.err.text);
    ck_assert(cli_complains(&guard, "cannot open "));
    ck_assert_int_eq(rename(old, guard_dir), 0);
    hold(server.url);
    wait_for_it(redis, server.url);
    worker_kill(&holder);
    ck_assert(waiter_has_it());
}
END_TEST

/* ---- whose files */

/* Whether one of two files is empty. */
static bool is_emptied(void *arg)
{
    const struct dirent *entry;
    struct stat st;
    int empty = 0, count = 0;
    DIR *list = opendir(guard_dir);
    (void)arg;
    while (list && (entry = readdir(list)) != NULL) {
        if (strlen(entry->d_name) != strlen("00000000-0000-4000-8000-000000000000"))
            continue;
        count++;
        empty += fstatat(dirfd(list), entry->d_name, &st, 0) == 0 && st.st_size == 0;
    }
    if (list)
        closedir(list);
    return count == 2 && empty == 1;
}

/* Users that have only the group of the directory in common. */
START_TEST(members_of_the_group_are_seen_to_by_a_member)
{
    static const char test[] = "members_of_the_group_are_seen_to_by_a_member";
    char above[128], url[TEST_URL_MAX + 32];
    struct cli run = { .pid = 0 };
    if (geteuid() != 0) {
        printf("skipped: %s: not root\n", test);
        return;
    }
#define AS_USER "setpriv", "--reuid=50001", "--regid=50001", "--groups=54321"
#define AS_OTHER "setpriv", "--reuid=50002", "--regid=50002", "--groups=54321"
    if (cli_does(&run, CLI_ARGV(AS_USER, cli_path(), "--version"), guard_env(NULL)) !=
        0) {
        printf("skipped: %s: no setpriv, or the build is out of reach\n", test);
        return;
    }
    cli_stop(&run);
    snprintf(above, sizeof(above), "%s/..", guard_dir);
    ck_assert_int_eq(chmod(above, 0711), 0);
    ck_assert_int_eq(chown(guard_dir, 0, 54321), 0);
    ck_assert_int_eq(chmod(guard_dir, _i == 0 ? 02770 : 03770), 0);
    snprintf(url, sizeof(url), "RLOCK_URL=%s" LONG_LEASE, server.tcp_url);
    cli_start(&guard, CLI_ARGV(AS_OTHER, guard_path(), "--url", server.tcp_url),
              guard_env(NULL));
    guard_is_ready();
    cli_start(&other,
              CLI_ARGV(AS_USER, cli_path(), "run", "n", "--", "sh", "-c",
                       "echo inside; exec sleep 600"),
              guard_env(url));
    ck_assert(cli_says(&other, "inside"));
    wait_for_it(redis, server.tcp_url);
    kill(other.pid, SIGKILL);
    ck_assert(waiter_has_it());
    if (_i == 0)
        return;
    /* Only the owner may remove the file from this directory: the daemon empties it, and
     * does not recover it again. */
    ck_assert(test_wait_until(is_emptied, NULL, SOON_MS));
    kill(guard.pid, SIGUSR1);
    ck_assert_msg(cli_complains(&guard, "rlock-guard: 1 recovered process "), "%s",
                  guard.err.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guardd_recovery");
    TCase *tc = guard_case(suite, "at_once");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, lock_of_a_killed_process_is_given_back);
    tcase_add_test(tc, lock_of_one_that_was_killed_before_it_began_is_given_back);
    tcase_add_test(tc, lock_of_one_that_was_killed_while_the_server_hung_is_given_back);
    tcase_add_test(tc, lock_of_a_process_killed_during_an_outage_is_recovered_after_it);
    tcase_add_test(tc, lock_of_a_stopped_process_is_left_to_its_lease);
    tcase_add_test(tc, one_of_two_guards_gives_it_back);
    tcase_add_test(tc, the_other_guard_goes_on_when_one_is_killed);
    tc = guard_case(suite, "servers");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, each_of_its_servers_is_seen_to);
    tcase_add_test(tc, server_by_another_name_is_another_one);
    tcase_add_test(tc, user_and_parameters_of_a_url_do_not_matter);
    tc = guard_case(suite, "directory");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, daemon_waits_for_a_directory_that_disappeared);
    tc = guard_case(suite, "users");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, members_of_the_group_are_seen_to_by_a_member, 0, 2);
    return test_run_suite(suite);
}
