/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that has accepted or refused the watchdog's handshake before the watchdog
 * looks a second time. To make this certain, this program's recv() waits for the answer
 * on the watchdog's thread. The client's URL names a symbolic link to the server's
 * socket.
 */
#include "fixture.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SOON_MS = 10000,
    COMMAND_MS = 1200,
    SLACK_MS = 700, /* tolerance for a busy machine */
    LEASE_MS = 900,
    PRESENCE_MS = 300, /* the watchdog looks once in a third of it */
    OUTAGE_MS = 600,
    ANSWER_MS = 100
};

static char path[TEST_PATH_MAX]; /* the symbolic link */
static rlock_mutex_t m;

/* Replaces the C library's function for the library that is linked into this program. */
ssize_t recv(int fd, void *buf, size_t len, int flags)
{
    char name[16] = "";
    struct pollfd p = { .fd = fd, .events = POLLIN };
    prctl(PR_GET_NAME, name);
    if (strcmp(name, "rlock-watch") == 0)
        poll(&p, 1, ANSWER_MS);
    return recvfrom(fd, buf, len, flags, NULL, NULL);
}

static void set_up(void)
{
    char url[TEST_URL_MAX], parameters[128];
    fixture_open();
    close_client(client);
    ck_assert_int_lt(snprintf(path, sizeof(path), "%s/link", server.dir),
                     (int)sizeof(path));
    unlink(path);
    ck_assert_int_eq(symlink(server.path, path), 0);
    snprintf(url, sizeof(url), "unix://%s", path);
    snprintf(parameters, sizeof(parameters),
             "?lease=%ld&presence=%ld&commandtimeout=%ld&connecttimeout=%ld",
             test_ms(LEASE_MS), test_ms(PRESENCE_MS), test_ms(COMMAND_MS),
             test_ms(COMMAND_MS));
    client = open_at(url, parameters);
    m = mutex_of(client, "n");
}

static void tear_down(void)
{
    test_redis_config(redis, "requirepass", "");
    fixture_close();
    unlink(path);
}

static bool has_renewals(void *arg)
{
    return stats_of(client).renewals >= *(const uint64_t *)arg;
}

static bool has_failures(void *arg)
{
    return stats_of(client).connect_failures >= *(const uint64_t *)arg;
}

/* A mutex of the client whose lock() gives up when the server is not there. */
static rlock_mutex_t failing_mutex(const char *name)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t n;
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, client));
    OK(rlock_mutexattr_setoutage(&attr, RLOCK_OUTAGE_FAIL));
    OK(rlock_mutex_init(&n, &attr, name));
    OK(rlock_mutexattr_destroy(&attr));
    return n;
}

START_TEST(every_connection_is_counted)
{
    uint64_t renewals = 1;
    OK(rlock_mutex_lock(&m));
    ck_assert(test_wait_until(has_renewals, &renewals, SOON_MS));
    rlock_stats_t s = stats_of(client);
    ck_assert_uint_eq(s.connects, 3); /* one for callers, subscriber and watchdog each */
    ck_assert_uint_eq(s.reconnects + s.connect_failures, 0);
    test_redis_do(redis, "CLIENT", "KILL", "TYPE", "normal");
    renewals = s.renewals + 1;
    ck_assert(test_wait_until(has_renewals, &renewals, SOON_MS));
    s = stats_of(client);
    ck_assert_uint_eq(s.connects, 4);
    ck_assert_uint_eq(s.reconnects, 1);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(every_failure_to_connect_is_counted)
{
    uint64_t renewals = 1;
    OK(rlock_mutex_lock(&m));
    ck_assert(test_wait_until(has_renewals, &renewals, SOON_MS));
    ck_assert_int_eq(unlink(path), 0);
    test_redis_do(redis, "CLIENT", "KILL", "TYPE", "normal");
    uint64_t failures = 2; /* the subscriber stays connected, and no thread calls */
    ck_assert(test_wait_until(has_failures, &failures, LEASE_MS));
    ck_assert_int_eq(symlink(server.path, path), 0);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* An outage begins when a connection is lost, not when the first one was made. */
START_TEST(waiter_survives_an_outage_shorter_than_the_command_timeout)
{
    struct task task;
    rlock_mutex_t theirs = mutex_of(fixture_other(), "n");
    rlock_mutex_t ours = failing_mutex("n");
    uint64_t renewals = 1;
    OK(rlock_mutex_lock(&theirs));
    rlock_mutex_t held = mutex_of(client, "held"); /* makes the watchdog connect */
    OK(rlock_mutex_lock(&held));
    ck_assert(test_wait_until(has_renewals, &renewals, SOON_MS));
    OK(rlock_mutex_unlock(&held));
    task_start(&task, run_pair, &ours);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    /* its waiter looks after each command timeout: the next time is inside the outage */
    test_pause_ms(test_ms(COMMAND_MS - OUTAGE_MS / 2));
    ck_assert_int_eq(unlink(path), 0);
    test_redis_kill_clients(redis);
    test_pause_ms(test_ms(OUTAGE_MS)); /* the length of the outage */
    ck_assert_int_eq(symlink(server.path, path), 0);
    ck_assert(!task_ends(&task, COMMAND_MS / 5));
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
}
END_TEST

START_TEST(waiter_that_is_shut_out_gets_an_error)
{
    struct task task;
    rlock_mutex_t theirs = mutex_of(fixture_other(), "n");
    OK(rlock_mutex_lock(&theirs));
    task_start(&task, run_pair, &m);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    test_redis_config(redis, "requirepass", "secret");
    test_redis_do(redis, "CLIENT", "KILL", "TYPE", "normal");
    ck_assert(task_ends(&task, LEASE_MS + SLACK_MS));
    ck_assert_int_eq(task_join(&task), EACCES);
    test_redis_config(redis, "requirepass", "");
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ready at once");
    TCase *tc = tcase_create("watchdog");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, every_connection_is_counted);
    tcase_add_test(tc, every_failure_to_connect_is_counted);
    tcase_add_test(tc, waiter_survives_an_outage_shorter_than_the_command_timeout);
    tcase_add_test(tc, waiter_that_is_shut_out_gets_an_error);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
