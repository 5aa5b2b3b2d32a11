/* SPDX-License-Identifier: Apache-2.0 */
/* See runscene.h. */
#include "runscene.h"

#include "die.h"
#include "program.h"
#include "wait.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <rlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIDS_MAX = 16 };

struct test_server server;
struct test_redis *redis;
struct cli c, other;

static pid_t pids[PIDS_MAX];
static int pid_count;

void scene_start(void)
{
    test_server_start(&server, NULL);
}

void scene_stop(void)
{
    test_server_stop(&server);
}

void scene_open(void)
{
    test_server_reset(&server);
    redis = test_redis_connect(server.path);
    pid_count = 0;
}

void scene_close(void)
{
    cli_stop(&c);
    cli_stop(&other);
    for (int i = 0; i < pid_count; i++) /* after a failed test: no process is left
                                           behind */
        if (run_state(pids[i]) != 'X')
            kill(pids[i], SIGKILL);
    test_redis_close(redis);
}

TCase *scene_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, scene_start, scene_stop);
    tcase_add_checked_fixture(tc, scene_open, scene_close);
    suite_add_tcase(suite, tc);
    return tc;
}

const char *const *scene_env(const char *parameters)
{
    static char url[TEST_URL_MAX + 256], path[PATH_MAX + 2];
    static const char *const env[] = { url, path, "LC_ALL=C", "ENV=", "PS1=$ ", NULL };

    snprintf(url, sizeof(url), "RLOCK_URL=%s%s", server.url, parameters);
    snprintf(path, sizeof(path), "R=%s", cli_path());
    return env;
}

void scene_hold(struct cli *holder, const char *option)
{
    START(holder, option, "n", "sh", "-c", "echo inside; exec cat >/dev/null");
    ck_assert(cli_says(holder, "inside"));
}

/* ---- the lock "n" */

bool run_is_held(void)
{
    return test_redis_exists(redis, "n");
}

static bool is_free(void *arg)
{
    (void)arg;
    return !run_is_held();
}

bool run_is_free(void)
{
    return test_wait_until(is_free, NULL, CLI_WAIT_MS);
}

static bool has_queue(void *arg)
{
    return test_redis_int(redis, "ZCARD", "rlock:{n}:queue") == *(const int *)arg;
}

bool run_is_queued(int count)
{
    return test_wait_until(has_queue, &count, CLI_WAIT_MS);
}

static bool is_subscribed(void *arg)
{
    (void)arg;
    return test_redis_do(redis, "PUBSUB", "CHANNELS", "rlock:client:*")->elements > 0;
}

void scene_force(void)
{
    rlock_client_t *client = NULL;

    /* the command may start before its client's mailbox is subscribed; then only the next
     * renewal would report the loss */
    ck_assert(test_wait_until(is_subscribed, NULL, CLI_WAIT_MS));

    ck_assert_int_eq(rlock_client_open(&client, server.url, NULL), 0);
    ck_assert_int_eq(rlock_force_unlock(client, "n"), 0);
    ck_assert_int_eq(rlock_client_close(client), 0);
}

/* ---- processes */

pid_t run_pid(struct cli *cli, const char *what)
{
    ck_assert_msg(cli_says_line(cli, what), "\"%s\" %s", cli->out.text, cli->err.text);
    const char *digits = strstr(cli->out.text, what) + strlen(what);
    pid_t pid = (pid_t)strtol(digits, NULL, 10);
    ck_assert_int_gt(pid, 1);
    if (pid_count == PIDS_MAX)
        test_die("too many processes");
    pids[pid_count++] = pid;
    return pid;
}

char run_state(pid_t pid)
{
    char path[64], text[512];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 'X';
    text[n] = '\0';
    const char *after = strrchr(text, ')');
    return after && after[1] == ' ' ? after[2] : 'X';
}

/* True also for a zombie: not every machine's first process reaps quickly. */
static bool is_gone(void *arg)
{
    char state = run_state(*(const pid_t *)arg);
    return state == 'X' || state == 'Z';
}

static bool is_stopped(void *arg)
{
    return run_state(*(const pid_t *)arg) == 'T';
}

bool run_is_gone(pid_t pid)
{
    return test_wait_until(is_gone, &pid, CLI_WAIT_MS);
}

bool run_is_stopped(pid_t pid)
{
    return test_wait_until(is_stopped, &pid, CLI_WAIT_MS);
}

const char *scene_sleeper(void)
{
    static char path[PATH_MAX];
    test_build_path(path, sizeof(path), "tests/sleeper");
    return path;
}
