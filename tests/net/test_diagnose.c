/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rlock_client_diagnose at real servers in the states that it reports. How the call
 * itself behaves is in test_diagnose_call.c, what the user may do in test_diagnose_acl.c.
 */
#include "fixture.h"

#include "clock.h"
#include "findings.h"
#include "port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

enum { SOON_MS = 10000 };

static const char *const topics[] = {
    "version",     "cluster", "replicas", "persistence", "eviction", "memory",
    "connections", "buffers", "clock",    "round trip",  "acl",      "access",
    "scripts",     "leases",  "messages", "guard",
};
enum { TOPICS = sizeof(topics) / sizeof(topics[0]) };

static struct findings f;

static const char *const plain[] = { NULL };
static const char *const safe[] = { "--appendonly", "yes", "--appendfsync", "always",
                                    NULL };

/* Each test starts with a server in its first state. */
static void set_up(void)
{
    test_server_restart_args(&server, plain);
    fixture_open();
}

static void serve(const char *const args[])
{
    close_client(client);
    test_redis_close(redis);
    test_server_restart_args(&server, args);
    redis = test_redis_connect(server.path);
    client = open_with("");
}

static void diagnose(void)
{
    findings_of(&f, client);
    ck_assert_msg(f.rc == 0, "%s: %s", rlock_strerror(f.rc), rlock_errmsg());
}

/* ---- as a whole */

START_TEST(a_server_fit_for_locks_has_a_finding_of_each_topic_and_no_warning)
{
    serve(safe);
    diagnose();
    for (int i = 0; i < TOPICS; i++)
        ck_assert_msg(findings_worst(&f, topics[i]) != 99, "no finding of %s", topics[i]);
    ck_assert_msg(findings_worst(&f, NULL) >= LOG_NOTICE, "%s", findings_text(&f));
    ck_assert_str_eq(rlock_errmsg(), "");
}
END_TEST

START_TEST(each_text_is_one_printable_line)
{
    diagnose();
    ck_assert_int_ge(f.count, TOPICS);
    for (int i = 0; i < f.count; i++) {
        ck_assert_uint_gt(strlen(f.each[i].text), 10);
        ck_assert_int_eq(f.each[i].text[strlen(f.each[i].text) - 1], '.');
        for (const char *c = f.each[i].text; *c; c++)
            ck_assert_msg(*c >= ' ' && *c <= '~', "%s", f.each[i].text);
    }
}
END_TEST

START_TEST(nothing_is_changed_at_the_server_but_a_key_of_50_ms)
{
    test_redis_do(redis, "SET", "theirs", "1");
    long long before = test_redis_info(redis, "rdb_changes_since_last_save");
    diagnose();
    ck_assert_int_eq(test_redis_int(redis, "DBSIZE"), 1);
    ck_assert_int_eq(test_redis_info(redis, "rdb_changes_since_last_save"), before + 1);
}
END_TEST

START_TEST(the_client_waits_and_hears_as_before)
{
    rlock_mutex_t m = mutex_of(client, "n"), theirs = mutex_of(fixture_other(), "n");
    struct task waits;
    diagnose();
    OK(rlock_mutex_lock(&theirs));
    task_start(&waits, run_pair, &m);
    ck_assert(wait_waiters(client, 1));
    diagnose(); /* the waiting thread may be the reader of the mailbox */
    FOUND(&f, LOG_INFO, "messages", "Messages reach");
    OK(rlock_mutex_unlock(&theirs));
    ck_assert_int_eq(task_join(&waits), 0);
    diagnose();
    FOUND(&f, LOG_INFO, "messages", "Messages reach");
}
END_TEST

/* ---- what the server is */

START_TEST(the_version_of_the_server_is_reported)
{
    char version[32];
    const char *info = test_redis_str(redis, "INFO", "server");
    const char *at = strstr(info, "valkey_version:");
    if (!at)
        at = strstr(info, "redis_version:");
    ck_assert(at);
    snprintf(version, sizeof(version), " %.*s ", (int)strcspn(strchr(at, ':') + 1, "\r"),
             strchr(at, ':') + 1);
    diagnose();
    FOUND(&f, LOG_INFO, "version", version);
}
END_TEST

static const struct {
    const char *info;
    int severity;
    const char *text;
} versions[] = {
    { "redis_version:5.0.14\r\n", LOG_ERR, "Redis 5.0.14 is too old" },
    { "redis_version:6.0.0\r\n", LOG_INFO, "Redis 6.0.0 " },
    { "redis_version:10.2.1\r\n", LOG_INFO, "Redis 10.2.1 " },
    { "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n", LOG_INFO,
      "Valkey 8.1.0 " },
};

/* Opens a client that gets this answer to INFO. */
static void answer_info(const char *info)
{
    char text[256];
    snprintf(text, sizeof(text), "$%zu\r\n%s\r\n", strlen(info), info);
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = "$4\r\nINFO\r\n", .text = text);
    client = open_at(test_proxy_url(proxy), "");
    diagnose();
}

START_TEST(versions_before_6_are_too_old_and_Valkey_goes_by_its_own)
{
    answer_info(versions[_i].info);
    FOUND(&f, versions[_i].severity, "version", versions[_i].text);
}
END_TEST

START_TEST(an_old_Redis_does_not_bound_scripts_by_its_replicas)
{
    test_redis_config(redis, "min-replicas-to-write", "1");
    answer_info("redis_version:6.2.5\r\nrole:master\r\nconnected_slaves:0\r\n");
    FOUND(&f, LOG_WARNING, "replicas", "does not apply it to scripts");
    ck_assert(!findings_have(&f, -1, "replicas", "no lock can be taken"));
    close_client(client);
    test_proxy_remove_all(proxy);
    answer_info("redis_version:6.2.14\r\nrole:master\r\nconnected_slaves:0\r\n");
    FOUND(&f, LOG_ERR, "replicas", "no lock can be taken");
    test_redis_config(redis, "min-replicas-to-write", "0");
}
END_TEST

START_TEST(a_command_that_an_old_Redis_does_not_have_is_not_missed)
{
    int asked = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
                          .contains = "ZMSCORE", .text = "-ERR unknown command\r\n");
    answer_info("redis_version:6.0.20\r\n");
    ck_assert(!findings_have(&f, -1, "acl", "zmscore"));
    ck_assert_uint_eq(test_proxy_hits(proxy, asked), 0);
    if (test_server_version() < 60200)
        return; /* it is one of those itself */
    close_client(client);
    client = open_at(test_proxy_url(proxy), "");
    test_proxy_remove_all(proxy);
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER, .contains = "ZMSCORE",
              .text = "-ERR unknown command\r\n");
    diagnose();
    FOUND(&f, LOG_NOTICE, "acl", "+zmscore");
}
END_TEST

/* Redis 8.6.3 answers like this. */
START_TEST(a_mailbox_that_is_refused_for_want_of_memory_is_reported_so)
{
    char url[TEST_URL_MAX + 64];
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = "SUBSCRIBE",
              .text = "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = "$4\r\nINFO\r\n",
              .text = "$32\r\nused_memory:2000\r\nmaxmemory:1000\r\n");
    snprintf(url, sizeof(url), "%s?commandtimeout=%ld", test_proxy_url(proxy),
             test_ms(500));
    OK(rlock_client_open(&client, url, NULL));
    diagnose();
    FOUND(&f, LOG_WARNING, "messages", "memory is full");
}
END_TEST

START_TEST(other_users_with_access_are_reported)
{
    char url[TEST_URL_MAX + 64];
    diagnose();
    FOUND(&f, LOG_NOTICE, "access", "\"default\" may do everything");
    findings_at(&f, server.tcp_url, NULL, NULL);
    FOUND(&f, LOG_NOTICE, "access", "asks for no password");
    test_redis_do(redis, "ACL", "SETUSER", "poor", "on", ">word", "~n*", "&*", "+@all");
    findings_at(&f, server.tcp_url, "poor", "word");
    FOUND(&f, LOG_INFO, "access", "\"poor\" may not do everything");
    test_redis_do(redis, "ACL", "SETUSER", "poor", "-acl");
    findings_at(&f, server.tcp_url, "poor", "word");
    FOUND(&f, LOG_INFO, "access", "the server does not show this user's rights");
    /* the same server under an address that does not count as one of this host alone */
    snprintf(url, sizeof(url), "redis://[::ffff:127.0.0.1]:%u", (unsigned)server.port);
    findings_at(&f, url, "poor", "word");
    FOUND(&f, LOG_WARNING, "access", "in clear");
    findings_at(&f, url, NULL, NULL);
    FOUND(&f, LOG_WARNING, "access", "asks for no password");
    test_redis_do(redis, "ACL", "DELUSER", "poor");
}
END_TEST

/* The answer of Redis 6.2 (src/scripting.c; taskforcesh/bullmq#3856). */
START_TEST(a_server_that_replicates_whole_scripts_is_an_error)
{
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = "redis.call('TIME')",
              .text =
                  "-ERR Error running script (call to "
                  "f_2d7dd7dc9e64977a0bb14fb5930851d80bdb1237): @user_script:1: "
                  "@user_script: 1: Write commands not allowed after non deterministic "
                  "commands. Call redis.replicate_commands() at the start of your "
                  "script in order to switch to single commands replication mode.\r\n");
    client = open_at(test_proxy_url(proxy), "");
    diagnose();
    FOUND(&f, LOG_ERR, "scripts", "lua-replicate-commands no");
}
END_TEST

START_TEST(a_failed_write_of_the_append_only_file_is_an_error)
{
    answer_info("redis_version:7.0.0\r\naof_enabled:1\r\naof_last_write_status:err\r\n");
    FOUND(&f, LOG_ERR, "persistence", "MISCONF");
}
END_TEST

START_TEST(bytes_of_the_server_do_not_reach_the_text_as_they_are)
{
    answer_info("redis_version:7\x1b[2J\xff\r\nmaxmemory:9\r\nmaxmemory_policy:\x07\r\n");
    FOUND(&f, LOG_INFO, "version", "Redis 7?[2J? ");
    FOUND(&f, LOG_ERR, "eviction", "maxmemory-policy is ?:");
}
END_TEST

START_TEST(numbers_that_no_server_has_are_reported_as_they_are)
{
    answer_info("connected_clients:9223372036854775807\r\nmaxclients:10000\r\n");
    FOUND(&f, LOG_WARNING, "connections", "9223372036854775807 of 10000 ");
    close_client(client);
    test_proxy_remove_all(proxy);
    answer_info("connected_clients:1\r\nmaxclients:9223372036854775807\r\n");
    FOUND(&f, LOG_INFO, "connections", "1 of 9223372036854775807 ");
}
END_TEST

START_TEST(an_answer_that_is_none_is_EPROTO)
{
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = "$4\r\nINFO\r\n", .text = ":1\r\n");
    client = open_at(test_proxy_url(proxy), "");
    findings_of(&f, client);
    ck_assert_int_eq(f.rc, EPROTO);
    ck_assert_msg(strstr(rlock_errmsg(), "INFO"), "%s", rlock_errmsg());
}
END_TEST

START_TEST(a_node_of_a_cluster_is_an_error)
{
    uint16_t port; /* the server's own plus 10,000 may not be a valid port */
    char number[8];
    int bus = test_port_reserve("127.0.0.1", &port);
    const char *option = test_server_bus_option(port, number);
    const char *const cluster[] = { "--cluster-enabled", "yes", option, number, NULL };
    serve(cluster);
    diagnose();
    FOUND(&f, LOG_ERR, "cluster", "redis-cluster://");
    close(bus);
}
END_TEST

/* ---- persistence */

static const struct {
    const char *after, *changes, *appendonly, *appendfsync; /* after: of "save" */
    int severity;
    const char *text;
} persistence[] = {
    { "", NULL, "no", "everysec", LOG_WARNING, "saves nothing" },
    { "3600", "1", "no", "everysec", LOG_WARNING, "only snapshots" },
    { "", NULL, "yes", "no", LOG_WARNING, "appendfsync no" },
    { "", NULL, "yes", "everysec", LOG_NOTICE, "everysec" },
    { "3600", "1", "yes", "always", LOG_INFO, "forgets none" },
};

START_TEST(what_survives_a_restart_is_reported)
{
    const char *const args[] = { "--appendonly",
                                 persistence[_i].appendonly,
                                 "--appendfsync",
                                 persistence[_i].appendfsync,
                                 "--save",
                                 persistence[_i].after,
                                 persistence[_i].changes,
                                 NULL };
    serve(args);
    diagnose();
    FOUND(&f, persistence[_i].severity, "persistence", persistence[_i].text);
}
END_TEST

static bool save_failed(void *arg)
{
    (void)arg;
    return strstr(test_redis_str(redis, "INFO", "persistence"),
                  "rdb_last_bgsave_status:err") != NULL;
}

START_TEST(a_snapshot_that_failed_is_an_error_while_it_stops_writes)
{
    char dump[TEST_PATH_MAX + 16];
    /* a directory in place of the file makes the saving fail */
    snprintf(dump, sizeof(dump), "%s/dump.rdb", server.dir);
    ck_assert_int_eq(mkdir(dump, 0700), 0);
    test_redis_config(redis, "save", "3600 1");
    test_redis_do(redis, "BGSAVE");
    ck_assert(test_wait_until(save_failed, NULL, SOON_MS));
    diagnose();
    FOUND(&f, LOG_ERR, "persistence", "snapshot failed");
    test_redis_config(redis, "stop-writes-on-bgsave-error", "no");
    diagnose();
    FOUND(&f, LOG_NOTICE, "persistence", "snapshot failed");
    ck_assert_int_eq(rmdir(dump), 0);
}
END_TEST

/* ---- memory */

static const struct {
    const char *max, *policy;
    int severity;
    const char *text;
} evictions[] = {
    { "0", "noeviction", LOG_INFO, "Nothing is evicted" },
    { "100mb", "noeviction", LOG_INFO, "Nothing is evicted" },
    { "0", "allkeys-lru", LOG_NOTICE, "no maxmemory" },
    { "100mb", "allkeys-lru", LOG_ERR, "keys, also locks" },
    { "100mb", "volatile-ttl", LOG_ERR, "keys with a TTL, as leases have" },
};

START_TEST(eviction_of_locks_is_an_error)
{
    test_redis_config(redis, "maxmemory", evictions[_i].max);
    test_redis_config(redis, "maxmemory-policy", evictions[_i].policy);
    diagnose();
    FOUND(&f, evictions[_i].severity, "eviction", evictions[_i].text);
    ck_assert_int_eq(findings_worst(&f, "eviction"), evictions[_i].severity);
}
END_TEST

/* Sets maxmemory so that this share of it is used. */
static void fill(double part)
{
    char bytes[32];
    test_redis_config(redis, "maxmemory-policy", "noeviction");
    snprintf(bytes, sizeof(bytes), "%.0f",
             (double)test_redis_info(redis, "used_memory") / part);
    test_redis_config(redis, "maxmemory", bytes);
}

START_TEST(memory_that_is_nearly_full_is_a_warning_and_full_an_error)
{
    diagnose();
    FOUND(&f, LOG_INFO, "memory", "maxmemory 0");
    fill(0.3);
    diagnose();
    FOUND(&f, LOG_INFO, "memory", "of maxmemory are used.");
    fill(0.95);
    diagnose();
    FOUND(&f, LOG_WARNING, "memory", "when it is full");
    fill(2);
    diagnose();
    FOUND(&f, LOG_ERR, "memory", "refuses new locks (OOM)");
    ck_assert_int_eq(findings_worst(&f, "acl"), LOG_INFO); /* OOM is not the ACL's */
    test_redis_config(redis, "maxmemory-policy", "allkeys-lru");
    diagnose();
    FOUND(&f, LOG_WARNING, "memory", "keys are evicted");
}
END_TEST

/* ---- replicas */

static struct test_server follower;

static void start_follower(void)
{
    char port[16];
    snprintf(port, sizeof(port), "%u", (unsigned)server.port);
    const char *const args[] = { "--replicaof", "127.0.0.1", port, NULL };
    set_up();
    test_server_start(&follower, args);
}

static void stop_follower(void)
{
    test_server_stop(&follower);
    fixture_close();
}

static bool is_followed(void *arg)
{
    (void)arg;
    return strstr(test_redis_str(redis, "INFO", "replication"), "state=online") != NULL;
}

START_TEST(a_master_with_replicas_may_lose_a_lock_to_a_failover)
{
    if (!test_server_bounds_scripts(
            "a_master_with_replicas_may_lose_a_lock_to_a_failover"))
        return;
    ck_assert(test_wait_until(is_followed, NULL, 2 * SOON_MS));
    diagnose();
    FOUND(&f, LOG_WARNING, "replicas", "Replicas (1) follow this master, and no request");
    test_redis_config(redis, "min-replicas-to-write", "1");
    diagnose();
    FOUND(&f, LOG_NOTICE, "replicas", "(1) are no more than 10 s behind");
    test_redis_config(redis, "min-replicas-to-write", "2");
    diagnose();
    FOUND(&f, LOG_ERR, "replicas", "NOREPLICAS");
    test_redis_config(redis, "min-replicas-max-lag", "0"); /* off */
    diagnose();
    FOUND(&f, LOG_WARNING, "replicas", "Set min-replicas-to-write");
}
END_TEST

/* The replica's own report comes later than its master's. */
static bool follows(void *arg)
{
    return strstr(test_redis_str(arg, "INFO", "replication"), "master_link_status:up") !=
           NULL;
}

START_TEST(at_a_replica_no_lock_can_be_taken)
{
    ck_assert(test_wait_until(is_followed, NULL, 2 * SOON_MS));
    struct test_redis *its = test_redis_connect(follower.path);
    ck_assert(test_wait_until(follows, its, 2 * SOON_MS));
    test_redis_close(its);
    findings_at(&f, follower.url, NULL, NULL);
    FOUND(&f, LOG_ERR, "replicas", "is a replica:");
    ck_assert_int_eq(findings_worst(&f, "acl"), LOG_INFO); /* READONLY is not the ACL's */
    test_server_kill(&server);
    struct test_redis *r = test_redis_connect(follower.path);
    while (strstr(test_redis_str(r, "INFO", "replication"), "master_link_status:up"))
        test_pause_ms(5);
    test_redis_close(r);
    findings_at(&f, follower.url, NULL, NULL);
    FOUND(&f, LOG_ERR, "replicas", "cut off from its master");
    test_server_restart(&server);
}
END_TEST

START_TEST(a_master_that_waits_for_replicas_it_has_not_is_an_error)
{
    if (!test_server_bounds_scripts(
            "a_master_that_waits_for_replicas_it_has_not_is_an_error"))
        return;
    test_redis_config(redis, "min-replicas-to-write", "1");
    diagnose();
    FOUND(&f, LOG_ERR, "replicas", "Connected replicas: 0,");
}
END_TEST

/* ---- connections */

START_TEST(connections_that_run_out_or_end_are_reported)
{
    diagnose();
    FOUND(&f, LOG_INFO, "connections", "connections are taken.");
    test_redis_config(redis, "maxclients", "4");
    test_redis_config(redis, "timeout", "60");
    diagnose();
    ck_assert_int_eq(findings_worst(&f, "connections"), LOG_NOTICE);
    FOUND(&f, LOG_NOTICE, "connections", "idle for 60 s");
    test_redis_config(redis, "maxclients", "3"); /* this one, and the client's two */
    diagnose();
    FOUND(&f, LOG_WARNING, "connections", "3 of 3 connections");
}
END_TEST

START_TEST(small_buffers_of_subscribers_are_a_warning)
{
    diagnose();
    FOUND(&f, LOG_INFO, "buffers", "33554432 8388608");
    test_redis_config(redis, "client-output-buffer-limit", "pubsub 0 0 0");
    diagnose();
    FOUND(&f, LOG_INFO, "buffers", "pubsub 0 0");
    test_redis_config(redis, "client-output-buffer-limit", "pubsub 32mb 64kb 1");
    diagnose();
    FOUND(&f, LOG_WARNING, "buffers", "33554432 65536");
}
END_TEST

/* ---- time */

static struct test_clock its_clock;

static void start_clocked(void)
{
    test_clock_open(&its_clock);
    test_server_start_env(&server, NULL, its_clock.env);
}

static void stop_clocked(void)
{
    fixture_stop();
    test_clock_close(&its_clock);
}

/* The milliseconds in a text like "The server's clock is 3600000 ms ahead of". */
static double told_offset(void)
{
    static const char begin[] = "The server's clock is ";
    for (int i = 0; i < f.count; i++)
        if (strcmp(f.each[i].topic, "clock") == 0) {
            ck_assert_int_eq(strncmp(f.each[i].text, begin, sizeof(begin) - 1), 0);
            return strtod(f.each[i].text + sizeof(begin) - 1, NULL);
        }
    ck_abort_msg("no finding of the clock");
}

static const struct {
    long ms;
    int severity;
    const char *way;
} offsets[] = {
    { 0, LOG_INFO, "this host's" },
    { 400, LOG_INFO, "ms ahead of this host's" },
    { -400, LOG_INFO, "ms behind this host's" },
    { 3600000, LOG_WARNING, "ms ahead of this host's" },
    { -3600000, LOG_WARNING, "ms behind this host's" },
};

START_TEST(a_clock_that_is_off_is_reported_with_its_offset)
{
    test_clock_step(&its_clock, redis, offsets[_i].ms);
    diagnose();
    FOUND(&f, offsets[_i].severity, "clock", offsets[_i].way);
    double off = told_offset(), wanted = (double)labs(offsets[_i].ms);
    ck_assert_msg(off > wanted - (double)test_ms(100) &&
                      off < wanted + (double)test_ms(100),
                  "%f", off);
    test_clock_set_real(&its_clock, 0);
}
END_TEST

START_TEST(a_slow_way_is_a_warning_where_times_are_short)
{
    TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_DELAY, .contains = "TIME",
              .delay_ms = 20);
    client = open_at(test_proxy_url(proxy), "?presence=100&lease=60000");
    diagnose();
    FOUND(&f, LOG_WARNING, "round trip", "presence (100 ms)");
    close_client(client);
    client = open_at(test_proxy_url(proxy), "?presence=30000&lease=150");
    diagnose();
    FOUND(&f, LOG_WARNING, "round trip", "renewals (50 ms)");
    close_client(client);
    test_proxy_remove_all(proxy);
    client = open_at(test_proxy_url(proxy),
                     "?presence=30000&lease=86400000&commandtimeout=30000");
    diagnose();
    FOUND(&f, LOG_INFO, "round trip", "short beside");
}
END_TEST

/* ---- messages */

START_TEST(a_message_that_does_not_arrive_is_a_warning)
{
    TEST_RULE(proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "0 diagnose");
    char parameters[32];
    snprintf(parameters, sizeof(parameters), "?commandtimeout=%ld", test_ms(300));
    client = open_at(test_proxy_url(proxy), parameters);
    diagnose();
    FOUND(&f, LOG_WARNING, "messages", "did not arrive");
    test_proxy_remove_all(proxy);
    diagnose();
    FOUND(&f, LOG_INFO, "messages", "Messages reach");
}
END_TEST

/* ---- */

static TCase *tcase(Suite *suite, const char *name, void (*open)(void),
                    void (*close)(void))
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, open, close);
    suite_add_tcase(suite, tc);
    return tc;
}

#define LOOP(tc, test, table)                                                            \
    tcase_add_loop_test(tc, test, 0, sizeof(table) / sizeof((table)[0]))

static void add_states(Suite *suite)
{
    TCase *tc = tcase(suite, "states", set_up, fixture_close);
    tcase_add_test(tc, a_server_fit_for_locks_has_a_finding_of_each_topic_and_no_warning);
    tcase_add_test(tc, each_text_is_one_printable_line);
    tcase_add_test(tc, nothing_is_changed_at_the_server_but_a_key_of_50_ms);
    tcase_add_test(tc, the_client_waits_and_hears_as_before);
    tcase_add_test(tc, the_version_of_the_server_is_reported);
    tcase_add_test(tc, a_node_of_a_cluster_is_an_error);
    LOOP(tc, what_survives_a_restart_is_reported, persistence);
    tcase_add_test(tc, a_snapshot_that_failed_is_an_error_while_it_stops_writes);
    LOOP(tc, eviction_of_locks_is_an_error, evictions);
    tcase_add_test(tc, memory_that_is_nearly_full_is_a_warning_and_full_an_error);
    tcase_add_test(tc, a_master_that_waits_for_replicas_it_has_not_is_an_error);
    tcase_add_test(tc, connections_that_run_out_or_end_are_reported);
    tcase_add_test(tc, small_buffers_of_subscribers_are_a_warning);
    tcase_add_test(tc, other_users_with_access_are_reported);

    tc = tcase(suite, "replicas", start_follower, stop_follower);
    tcase_add_test(tc, a_master_with_replicas_may_lose_a_lock_to_a_failover);
    tcase_add_test(tc, at_a_replica_no_lock_can_be_taken);
}

int main(void)
{
    Suite *suite = suite_create("diagnose");
    add_states(suite);

    TCase *tc = tcase(suite, "answers", fixture_open_proxied, fixture_close_proxied);
    LOOP(tc, versions_before_6_are_too_old_and_Valkey_goes_by_its_own, versions);
    tcase_add_test(tc, an_old_Redis_does_not_bound_scripts_by_its_replicas);
    tcase_add_test(tc, a_command_that_an_old_Redis_does_not_have_is_not_missed);
    tcase_add_test(tc, a_mailbox_that_is_refused_for_want_of_memory_is_reported_so);
    tcase_add_test(tc, a_server_that_replicates_whole_scripts_is_an_error);
    tcase_add_test(tc, a_failed_write_of_the_append_only_file_is_an_error);
    tcase_add_test(tc, bytes_of_the_server_do_not_reach_the_text_as_they_are);
    tcase_add_test(tc, numbers_that_no_server_has_are_reported_as_they_are);
    tcase_add_test(tc, an_answer_that_is_none_is_EPROTO);
    tcase_add_test(tc, a_slow_way_is_a_warning_where_times_are_short);
    tcase_add_test(tc, a_message_that_does_not_arrive_is_a_warning);

    tc = tcase_create("clock");
    tcase_add_unchecked_fixture(tc, start_clocked, stop_clocked);
    tcase_add_checked_fixture(tc, fixture_open, fixture_close);
    LOOP(tc, a_clock_that_is_off_is_reported_with_its_offset, offsets);
    suite_add_tcase(suite, tc);

    return test_run_suite(suite);
}
