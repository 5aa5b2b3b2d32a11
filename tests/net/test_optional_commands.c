/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers without the commands that locks can do without: INFO, CONFIG, ROLE, WAIT,
 * CLIENT, CLUSTER and PUBSUB are renamed away, each alone and all together, as managed
 * servers do it. TIME and scripts are all that locks need. (READONLY, LOADING and
 * MASTERDOWN: test_server_states.c, test_conn.c and test_servers.c. NOSCRIPT at any time:
 * test_faults.c, and test_server_waits.c. ROLE and INFO refused by a replica:
 * test_sentinel_moves.c.)
 */
/* program: claims=P27 */
#include "client/client.h"

#include "findings.h"
#include "kinds.h"
#include "sentinelscene.h"

#include <stdio.h>
#include <string.h>
#include <syslog.h>

enum { SOON_MS = 20000, LEASE_MS = 450, ARGS_MAX = 24 };

static const char *const commands[] = { "INFO",   "CONFIG",  "ROLE",  "WAIT",
                                        "CLIENT", "CLUSTER", "PUBSUB" };
enum { NONE = -1, COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static struct findings f;

/* Restarts the server without this command; COMMANDS: without all of them; NONE. */
static void restart_without(int command)
{
    const char *args[ARGS_MAX];
    int n = 0;

    for (int i = 0; i < COMMANDS; i++) {
        if (i != command && command != COMMANDS)
            continue;
        args[n++] = "--rename-command";
        args[n++] = commands[i];
        args[n++] = "";
    }
    args[n] = NULL;
    test_server_restart_args(&server, args);
    redis = test_redis_connect(server.path);
}

static bool is_subscribed(void *c)
{
    const struct rlock_client *its = c;

    return atomic_load(&its->route.target.subscription.subscribed);
}

static rlock_client_t *open_client(const char *parameters)
{
    char url[TEST_URL_MAX + 64];

    snprintf(url, sizeof(url), "%s%s", server.url, parameters);
    rlock_client_t *c = sentinel_open(url);
    ck_assert(test_wait_until(is_subscribed, c, SOON_MS));
    return c;
}

/* Opens `client`, whose leases are short, and `other`. */
static void begin_without(int command)
{
    char parameters[64];

    restart_without(command);
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(LEASE_MS));
    client = open_client(parameters);
    other = open_client("");
}

/* ---- what works, and what is lost */

/* What is lost without the command of the same place in `commands`. */
static const struct {
    int severity;
    const char *topic, *text;
} losses[COMMANDS][2] = {
    { { LOG_NOTICE, "replicas", "the server does not show it by INFO" },
      { LOG_NOTICE, "connections", "does not show it by INFO or CONFIG GET" } },
    { { LOG_NOTICE, "buffers", "does not show client-output-buffer-limit by CONFIG GET" },
      { LOG_WARNING, "persistence", "CONFIG GET is refused" } },
    { { LOG_INFO, "acl", "may run all commands that locks need" } }, /* no Sentinel */
    { { LOG_INFO, "acl", "may run all commands that locks need" } }, /* no replicas= */
    { { LOG_NOTICE, "acl",
        "lacks +client|setname +client|list: locks work, but rlock_inspect, "
        "rlock_list" } },
    { { LOG_INFO, "cluster", "not a node of a cluster" } },
    { { LOG_WARNING, "acl",
        "lacks +pubsub|numsub: locks work, but waiters may find their grants by" } },
};

static void expect_all_losses(void)
{
    FOUND(&f, LOG_NOTICE, "replicas", "the server does not show it by INFO");
    FOUND(&f, LOG_NOTICE, "persistence", "the server refuses INFO and CONFIG GET");
    FOUND(&f, LOG_NOTICE, "eviction", "the server refuses INFO and CONFIG GET");
    FOUND(&f, LOG_NOTICE, "memory", "the server refuses INFO and CONFIG GET");
    FOUND(&f, LOG_NOTICE, "cluster", "the server refuses INFO and CONFIG GET");
    FOUND(&f, LOG_NOTICE, "acl", "lacks +client|setname +client|list");
    FOUND(&f, LOG_WARNING, "acl", "lacks +pubsub|numsub");
    FOUND(&f, LOG_INFO, "version", "is new enough"); /* by HELLO */
    FOUND(&f, LOG_INFO, "messages", "Messages reach");
}

/* rule: P27 */
START_TEST(locks_of_all_types_work_without_them_and_the_diagnosis_names_the_loss)
{
    begin_without(_i);
    rlock_mutex_t m = mutex_of(client, "renewed");

    OK(rlock_mutex_lock(&m));
    hand_over_all_kinds(client, other);
    wait_renewals(client, 1);
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
    ck_assert_uint_eq(stats_of(client).losses, 0);
    ck_assert_uint_eq(stats_of(other).refusals, 0);
    findings_of(&f, other);
    if (_i == COMMANDS)
        expect_all_losses();
    for (int i = 0; _i < COMMANDS && i < 2 && losses[_i][i].topic; i++)
        FOUND(&f, losses[_i][i].severity, losses[_i][i].topic, losses[_i][i].text);
    ck_assert_msg(findings_worst(&f, NULL) >= LOG_WARNING, "%s", findings_text(&f));
}
END_TEST

/* ---- those that need one of them */

/* rule: P27 */
START_TEST(client_that_waits_for_replicas_is_told_that_WAIT_is_missing)
{
    restart_without(3);
    client = open_client("?replicas=1");
    rlock_mutex_t m = mutex_of(client, "m");

    EXPECT(rlock_mutex_trylock(&m), EPROTO);
    ck_assert_msg(strstr(rlock_errmsg(), "WAIT"), "%s", rlock_errmsg());
    findings_of(&f, client);
    FOUND(&f, LOG_ERR, "acl",
          "lacks +wait: locks fail with EACCES, or with EPROTO if the server has no such "
          "command");
}
END_TEST

static void open_by_sentinel(void)
{
    fakes[0] = fake_sentinel_start();
    fake_sentinel_says(fakes[0], server.port, 1, "master");
    client = sentinel_open(fakes_url(1, ""));
    ck_assert(test_wait_until(is_subscribed, client, SOON_MS));
}

static void close_by_sentinel(void)
{
    close_client(client);
    client = NULL;
    fake_sentinel_stop(fakes[0]);
}

/* rule: P27 */
START_TEST(client_of_Sentinel_goes_without_ROLE_and_INFO_and_is_told)
{
    restart_without(_i == 0 ? 2 : COMMANDS);
    open_by_sentinel();
    rlock_mutex_t m = mutex_of(client, "m");

    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    findings_of(&f, client);
    FOUND(
        &f, LOG_NOTICE, "acl",
        "lacks +role: locks work, but a connection learns by INFO whether the server is "
        "a master");
    close_by_sentinel();
}
END_TEST

START_TEST(client_of_Sentinel_at_a_server_with_ROLE_is_told_nothing_of_it)
{
    restart_without(3);
    open_by_sentinel();
    findings_of(&f, client);
    FOUND(&f, LOG_INFO, "acl", "may run all commands that locks need");
    close_by_sentinel();
}
END_TEST

/* ---- a server that serves nobody at the moment */

/* The commands of the handshake, as they are on the wire. Without ROLE there is INFO. */
static const char *const shaken[] = { "SETNAME", "$4\r\nTIME\r\n", "$4\r\nROLE\r\n",
                                      "$4\r\nINFO\r\n" };
static const char *const passing[] = {
    "-LOADING Redis is loading the dataset in memory\r\n",
    "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to "
    "'no'.\r\n"
};
enum { SHAKEN = 4, PASSING = 2, INFO = 3, ATTEMPTS = 2 };

/* rule: P27 */
START_TEST(server_that_serves_nobody_now_is_looked_for_again_whatever_command_says_so)
{
    const char *command = shaken[_i];

    restart_without(NONE);
    proxy = test_proxy_start(&server);
    fakes[0] = fake_sentinel_start();
    fake_sentinel_says(fakes[0], test_proxy_port(proxy), 1, "master");
    if (_i == INFO)
        TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
                  .contains = "$4\r\nROLE\r\n", .text = "-ERR unknown command\r\n");
    int said =
        TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
                  .contains = command, .text = passing[_i % PASSING], .count = ATTEMPTS);
    client = sentinel_open(fakes_url(1, ""));
    OK(rlock_client_ping(client)); /* within one call */
    ck_assert(test_wait_until(is_subscribed, client, SOON_MS));
    ck_assert_uint_eq(test_proxy_hits(proxy, said), ATTEMPTS);
    ck_assert_uint_ge(fake_sentinel_asked(fakes[0]), ATTEMPTS + 2);
    close_by_sentinel();
    test_proxy_stop(proxy);
}
END_TEST

static void tear_down(void)
{
    if (client)
        close_client(client);
    if (other)
        close_client(other);
    client = other = NULL;
    test_redis_close(redis);
}

static void stop(void)
{
    test_server_stop(&server);
}

static void set_up(void)
{
    test_rundir_own_if_any();
}

int main(void)
{
    Suite *suite = suite_create("optional_commands");
    TCase *tc = tcase_create("renamed");

    tcase_add_unchecked_fixture(tc, fixture_start, stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(
        tc, locks_of_all_types_work_without_them_and_the_diagnosis_names_the_loss, 0,
        COMMANDS + 1);
    tcase_add_test(tc, client_that_waits_for_replicas_is_told_that_WAIT_is_missing);
    tcase_add_loop_test(tc, client_of_Sentinel_goes_without_ROLE_and_INFO_and_is_told, 0,
                        2);
    tcase_add_test(tc, client_of_Sentinel_at_a_server_with_ROLE_is_told_nothing_of_it);
    tcase_add_loop_test(
        tc, server_that_serves_nobody_now_is_looked_for_again_whatever_command_says_so, 0,
        SHAKEN);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
