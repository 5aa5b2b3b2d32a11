/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Through a real HAProxy in TCP mode, set up as doc/PROXIES.md says: health checks, its
 * idle timeouts, no server behind it, its restart and its reload, and the way to the
 * master of two servers. (stunnel: test_tls_doc.c. twemproxy: test_diagnose_kind.c.)
 */
/* program: claims=P28 */
#include "client/client.h"

#include "findings.h"
#include "kinds.h"

#include "port.h"
#include "program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

enum {
    SOON_MS = 20000,
    IDLE_MS = 150, /* of the proxy's timeouts */
    LEASE_MS = 900,
    LONG_PRESENCE_MS = 30000, /* the longest; polls are a third of that apart */
    WOKEN_MS = 3000,
    TURNS = 3,
    LINES_MAX = 200,
    SHORT_MS = 500
};

static const char *const places[] = { "/usr/sbin/haproxy", "/usr/local/sbin/haproxy",
                                      "/usr/bin/haproxy" };
static const char *haproxy;
static char path[TEST_PATH_MAX + 16]; /* of its configuration */
static char front_url[TEST_URL_MAX];
static uint16_t front;
static int front_holder = -1;
static struct test_program proxy_program, next_program;
static struct test_server replica;
static struct test_redis *at_replica;

/* ---- the proxy */

static const char ping_check[] = "    option redis-check\n";
static const char role_check[] = "    option tcp-check\n"
                                 "    tcp-check send PING\\r\\n\n"
                                 "    tcp-check expect string +PONG\n"
                                 "    tcp-check send INFO\\ replication\\r\\n\n"
                                 "    tcp-check expect string role:master\n";

/* `servers`: the rest of its section, of which each line names one. */
static void configure(long idle_ms, const char *check, const char *servers)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "global\n"
            "    hard-stop-after 100ms\n"
            "defaults\n"
            "    mode tcp\n"
            "    timeout connect 2s\n"
            "    timeout client %ldms\n"
            "    timeout server %ldms\n"
            "listen redis\n"
            "    bind 127.0.0.1:%u\n%s%s",
            idle_ms, idle_ms, (unsigned)front, check, servers);
    ck_assert_int_eq(fclose(file), 0);
}

static const char *server_line(const char *name, unsigned port, const char *options)
{
    static char lines[2][160];
    static unsigned next;
    char *line = lines[next++ % 2];

    snprintf(line, sizeof(lines[0]), "    server %s 127.0.0.1:%u %s\n", name, port,
             options);
    return line;
}

static bool accepts(void *arg)
{
    struct test_redis *r = test_redis_connect_url(front_url, SHORT_MS);

    (void)arg;
    test_redis_close(r);
    return r != NULL;
}

static bool passes_on(void *arg)
{
    struct test_redis *r = test_redis_connect_url(front_url, SHORT_MS);
    const redisReply *reply = r ? test_redis_try(r, "PING") : NULL;
    bool good = reply && reply->type == REDIS_REPLY_STATUS;

    (void)arg;
    test_redis_close(r);
    return good;
}

/* With the id of another one, which it replaces; or NULL. */
static void launch(struct test_program *program, const char *replaces)
{
    test_program_start(program,
                       (const char *const[]){ "/bin/sh", "-c",
                                              "exec \"$0\" -db -f \"$1\" ${2:+-sf $2} "
                                              "2>/dev/null",
                                              haproxy, path, replaces, NULL },
                       NULL);
}

static void start_proxy(long idle_ms, const char *check, const char *servers)
{
    configure(idle_ms, check, servers);
    launch(&proxy_program, NULL);
    ck_assert(test_wait_until(accepts, NULL, SOON_MS));
}

/* One server, the fixture's. */
static void start_usual(long idle_ms)
{
    start_proxy(idle_ms, ping_check, server_line("one", server.port, "check inter 50"));
    ck_assert(test_wait_until(passes_on, NULL, SOON_MS));
}

/* ---- clients */

static bool is_subscribed(void *c)
{
    const struct rlock_client *its = c;

    return atomic_load(&its->route.target.subscription.subscribed);
}

/* Through the proxy. fixture's open_at asks the server whether the mailbox stays
 * subscribed, which it may not. */
static rlock_client_t *open_through(const char *parameters)
{
    char url[TEST_URL_MAX + 128];
    rlock_clientattr_t attr;
    rlock_client_t *c = NULL;

    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setcommandtimeout(&attr, test_ms(3000)));
    OK(rlock_clientattr_setconnecttimeout(&attr, test_ms(3000)));
    snprintf(url, sizeof(url), "%s%s", front_url, parameters);
    OK(rlock_client_open(&c, url, &attr));
    OK(rlock_clientattr_destroy(&attr));
    ck_assert(test_wait_until(is_subscribed, c, SOON_MS));
    return c;
}

static rlock_client_t *open_with_lease(long ms)
{
    char parameters[64];

    snprintf(parameters, sizeof(parameters), "?lease=%ld", ms);
    return open_through(parameters);
}

/* ---- the log */

static pthread_mutex_t lines_mu = PTHREAD_MUTEX_INITIALIZER;
static char lines[LINES_MAX][400];
static int line_count;

static void keep_line(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    pthread_mutex_lock(&lines_mu);
    if (line_count < LINES_MAX)
        snprintf(lines[line_count++], sizeof(lines[0]), "%s", line);
    pthread_mutex_unlock(&lines_mu);
}

static bool is_logged(const char *text)
{
    bool found = false;

    pthread_mutex_lock(&lines_mu);
    for (int i = 0; i < line_count && !found; i++)
        found = strstr(lines[i], text) != NULL;
    pthread_mutex_unlock(&lines_mu);
    return found;
}

static bool idle_timeout_is_logged(void *arg)
{
    (void)arg;
    return is_logged(
        "s without a message, as the one before: an idle timeout, perhaps of "
        "a proxy");
}

/* ---- what works */

/* rule: P28 */
START_TEST(locks_of_all_types_work_through_a_proxy_with_health_checks)
{
    start_usual(60000);
    client = open_with_lease(test_ms(LEASE_MS));
    other = open_through("");
    rlock_mutex_t m = mutex_of(client, "renewed");

    OK(rlock_mutex_lock(&m));
    hand_over_all_kinds(client, other);
    wait_renewals(client, 1);
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
    ck_assert_uint_eq(stats_of(client).reconnects, 0);
    ck_assert_uint_eq(stats_of(client).losses, 0);
}
END_TEST

/* rule: P28 */
START_TEST(diagnosis_through_a_proxy_is_that_of_the_server)
{
    static struct findings direct, through;

    start_usual(60000);
    client = open_through("");
    findings_of(&through, client);
    FOUND(&through, LOG_INFO, "messages", "Messages reach");
    FOUND(&through, LOG_INFO, "leases", "Leases end by themselves");
    other = open_at(server.tcp_url, "");
    findings_of(&direct, other);
    ck_assert_int_eq(through.count, direct.count);
    ck_assert_int_eq(findings_worst(&through, NULL), findings_worst(&direct, NULL));
}
END_TEST

/* ---- idle timeouts */

struct seen {
    rlock_client_t *client;
    uint64_t reconnects;
};

static bool has_reconnected(void *arg)
{
    const struct seen *seen = arg;

    return stats_of(seen->client).reconnects >= seen->reconnects;
}

static void wait_reconnects(rlock_client_t *c, uint64_t more)
{
    struct seen seen = { c, stats_of(c).reconnects + more };

    ck_assert(test_wait_until(has_reconnected, &seen, SOON_MS));
}

/* rule: P28 */
START_TEST(idle_timeout_that_cuts_all_connections_loses_no_hold)
{
    start_usual(IDLE_MS);
    client = open_with_lease(test_ms(LEASE_MS));
    rlock_mutex_t m = mutex_of(client, "m");

    OK(rlock_mutex_lock(&m));
    wait_reconnects(client, 2);
    wait_renewals(client, 2); /* they are farther apart than the timeout */
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
    ck_assert_uint_eq(stats_of(client).losses, 0);
}
END_TEST

static bool is_deaf(void *c)
{
    return !is_subscribed(c);
}

/* rule: P28 */
START_TEST(waiter_whose_mailbox_was_cut_off_is_woken_soon)
{
    char parameters[64];

    start_usual(IDLE_MS);
    snprintf(parameters, sizeof(parameters), "?presence=%d", LONG_PRESENCE_MS);
    client = open_with("");
    other = open_through(parameters);
    rlock_mutex_t m = mutex_of(client, "m"), other_m = mutex_of(other, "m");

    for (int i = 0; i < TURNS; i++) {
        struct task task;
        OK(rlock_mutex_lock(&m));
        task_start(&task, run_pair, &other_m);
        ck_assert(wait_waiters(other, 1));
        wait_reconnects(other, 1);
        ck_assert(test_wait_until(is_deaf, other, SOON_MS));
        OK(rlock_mutex_unlock(&m)); /* most likely before it listens again */
        ck_assert(task_ends(&task, WOKEN_MS));
        OK(task_join(&task));
    }
}
END_TEST

/* Whether no connection of a caller is left at the server. */
static bool pool_is_cut(void *arg)
{
    const char *list = test_redis_str(redis, "CLIENT", "LIST", "TYPE", "normal");

    (void)arg;
    return !strstr(list, "cmd=evalsha") && !strstr(list, "cmd=eval ");
}

/* rule: P28 */
START_TEST(call_after_the_proxy_cut_its_idle_connection_goes_on)
{
    start_usual(IDLE_MS);
    client = open_through("");
    rlock_mutex_t m = mutex_of(client, "m");

    for (int i = 0; i < TURNS; i++) {
        OK(rlock_mutex_lock(&m));
        OK(rlock_mutex_unlock(&m));
        ck_assert(test_wait_until(pool_is_cut, NULL, SOON_MS));
    }
    OK(rlock_mutex_trylock(&m));
    OK(rlock_mutex_unlock(&m));
    ck_assert_uint_eq(stats_of(client).unknown_outcomes, 0);
}
END_TEST

/* rule: P28 */
START_TEST(idle_timeout_is_named_in_the_log)
{
    char text[200];

    start_usual(IDLE_MS);
    snprintf(text, sizeof(text), "127.0.0.1:%u closed the connection after 0.",
             (unsigned)front);
    rlock_setlogger(keep_line, NULL, LOG_WARNING);
    client = open_through("");
    ck_assert(test_wait_until(idle_timeout_is_logged, NULL, SOON_MS));
    ck_assert_msg(is_logged(text), "%s", lines[line_count - 1]);
    rlock_setlogger(NULL, NULL, 0);
}
END_TEST

/* rule: P28 */
START_TEST(ends_after_different_times_are_no_idle_timeout_in_the_log)
{
    static const long silences_ms[] = { 60, 600, 60 };

    rlock_setlogger(keep_line, NULL, LOG_WARNING);
    start_usual(60000);
    client = open_through("");
    for (int i = 0; i < 3; i++) {
        test_pause_ms(silences_ms[i]);
        test_redis_do(redis, "CLIENT", "KILL", "TYPE", "pubsub");
        wait_reconnects(client, 1);
    }
    ck_assert(is_logged("disconnected from 127.0.0.1:"));
    ck_assert(!is_logged("idle timeout"));
    rlock_setlogger(NULL, NULL, 0);
}
END_TEST

struct calls {
    const char *command;
    long long count;
};

static bool were_called(void *arg)
{
    const struct calls *calls = arg;

    return test_redis_calls(redis, calls->command) >= calls->count;
}

/* rule: P28 */
START_TEST(mailbox_is_not_cut_off_by_a_timeout_longer_than_the_presence)
{
    char parameters[64];
    struct calls pings = { "ping", 0 };

    start_proxy(test_ms(IDLE_MS * 3), "", server_line("one", server.port, ""));
    ck_assert(test_wait_until(passes_on, NULL, SOON_MS));
    snprintf(parameters, sizeof(parameters), "?presence=%ld", test_ms(IDLE_MS));
    client = open_through(parameters);
    pings.count = test_redis_calls(redis, "ping") + 5; /* longer than the timeout */
    ck_assert(test_wait_until(were_called, &pings, SOON_MS));
    ck_assert_uint_eq(stats_of(client).reconnects, 0);
}
END_TEST

/* ---- no server behind it */

static void expect_failure(const char *parameters, const char *text)
{
    char url[TEST_URL_MAX + 64];
    static struct findings f;

    snprintf(url, sizeof(url), "%s%s", front_url, parameters);
    OK(rlock_client_open(&client, url, NULL));
    EXPECT(rlock_client_ping(client), ENOTCONN);
    ck_assert_msg(strstr(rlock_errmsg(), text), "%s", rlock_errmsg());
    findings_of(&f, client);
    ck_assert_int_eq(f.rc, ENOTCONN);
    ck_assert_msg(strstr(rlock_errmsg(), text), "%s", rlock_errmsg());
}

/* With checks, and as an administrator does it. (Without checks HAProxy tries for some
 * seconds to connect.) */
static const char *const dead_options[] = { "check inter 50", "disabled" };

static bool closes(void *arg)
{
    struct test_redis *r = test_redis_connect_url(front_url, SHORT_MS);
    bool closed = r && !test_redis_try(r, "PING") && test_redis_closed(r);

    (void)arg;
    test_redis_close(r);
    return closed;
}

/* rule: P28 */
START_TEST(proxy_that_closes_at_once_is_ENOTCONN_and_named)
{
    uint16_t dead;
    int holder = test_port_reserve("127.0.0.1", &dead);

    start_proxy(60000, ping_check, server_line("dead", dead, dead_options[_i]));
    ck_assert(test_wait_until(closes, NULL, SOON_MS));
    expect_failure("", "a proxy that has no server does so, too");
    close(holder);
}
END_TEST

/* rule: P28 */
START_TEST(proxy_whose_server_answers_nothing_is_ENOTCONN_and_says_so)
{
    char parameters[64];

    start_proxy(60000, "", server_line("silent", server.port, ""));
    test_server_pause(&server);
    snprintf(parameters, sizeof(parameters), "?commandtimeout=%ld&connecttimeout=%ld",
             test_ms(SHORT_MS), test_ms(SHORT_MS));
    expect_failure(parameters, "accepted the connection, but did not reply in time");
    test_server_resume(&server);
}
END_TEST

/* ---- it ends, and comes back */

/* A hold of `client`, for which a thread of `other` waits, both through the proxy. */
static rlock_mutex_t m, other_m;
static struct task waiting;

static void begin_hold(void)
{
    client = open_through("");
    other = open_through("");
    m = mutex_of(client, "m");
    other_m = mutex_of(other, "m");
    OK(rlock_mutex_lock(&m));
    task_start(&waiting, run_pair, &other_m);
    ck_assert(wait_waiters(other, 1));
}

static void end_hold(void)
{
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
    waiter_is_woken(&waiting);
    ck_assert_uint_eq(stats_of(client).losses, 0);
    ck_assert_uint_eq(stats_of(other).losses, 0);
}

/* rule: P28 */
START_TEST(proxy_that_is_killed_and_started_again_costs_no_hold)
{
    start_usual(60000);
    begin_hold();
    test_program_end(&proxy_program);
    ck_assert(test_wait_until(is_deaf, client, SOON_MS));
    EXPECT(rlock_client_ping(client), ENOTCONN);
    start_usual(60000);
    ck_assert(test_wait_until(is_subscribed, client, SOON_MS));
    end_hold();
}
END_TEST

/* rule: P28 */
START_TEST(proxy_that_is_reloaded_costs_no_hold)
{
    char pid[16];

    start_usual(60000);
    begin_hold();
    snprintf(pid, sizeof(pid), "%d", (int)proxy_program.pid);
    launch(&next_program, pid);
    ck_assert_int_ne(test_program_wait(&proxy_program, SOON_MS), -1);
    ck_assert(test_wait_until(passes_on, NULL, SOON_MS));
    ck_assert(test_wait_until(is_subscribed, client, SOON_MS));
    end_hold();
    ck_assert_uint_ge(stats_of(client).reconnects, 1);
}
END_TEST

/* ---- two servers */

static bool is_followed(void *arg)
{
    (void)arg;
    return strstr(test_redis_str(redis, "INFO", "replication"), "state=online") != NULL;
}

static void wait_for_replica(void)
{
    char bound[16];

    test_redis_do(redis, "PUBLISH", "nobody", ""); /* WAIT waits for its connection */
    snprintf(bound, sizeof(bound), "%ld", test_ms(SOON_MS));
    ck_assert_int_eq(test_redis_int(redis, "WAIT", "1", bound), 1);
}

static void switch_master(void)
{
    char port[8];

    snprintf(port, sizeof(port), "%u", (unsigned)replica.port);
    test_redis_do(at_replica, "REPLICAOF", "NO", "ONE");
    test_redis_do(redis, "REPLICAOF", "127.0.0.1", port);
}

/* With and without closing the connections to a server that is no master any more:
 * READONLY tells the client, too. */
static const char *const role_options[] = {
    "check inter 50 fall 1 rise 1 on-marked-down shutdown-sessions",
    "check inter 50 fall 1 rise 1"
};

/* rule: P28 */
START_TEST(proxy_that_goes_to_the_new_master_takes_holds_and_waiters_along)
{
    char two[400];

    ck_assert(test_wait_until(is_followed, NULL, SOON_MS));
    snprintf(two, sizeof(two), "%s%s", server_line("a", server.port, role_options[_i]),
             server_line("b", replica.port, role_options[_i]));
    start_proxy(60000, role_check, two);
    ck_assert(test_wait_until(passes_on, NULL, SOON_MS));
    begin_hold();
    wait_for_replica();
    switch_master();
    end_hold();
    rlock_mutex_t again = mutex_of(client, "again");
    OK(rlock_mutex_lock(&again));
    ck_assert(test_redis_exists(at_replica, "again"));
    OK(rlock_mutex_unlock(&again));
}
END_TEST

/* ---- the program */

static void find_haproxy(void)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !haproxy; i++)
        if (access(places[i], X_OK) == 0)
            haproxy = places[i];
}

static void set_up(void)
{
    test_server_reset(&server);
    redis = test_redis_connect(server.path);
    snprintf(path, sizeof(path), "%s/haproxy.cfg", server.dir);
    front_holder = test_port_reserve("127.0.0.1", &front);
    snprintf(front_url, sizeof(front_url), "redis://127.0.0.1:%u", (unsigned)front);
}

static void tear_down(void)
{
    if (client)
        close_client(client);
    if (other)
        close_client(other);
    client = other = NULL;
    test_program_end(&proxy_program);
    test_program_end(&next_program);
    test_redis_close(redis);
    close(front_holder);
}

static void start_two(void)
{
    char port[8];

    fixture_start();
    snprintf(port, sizeof(port), "%u", (unsigned)server.port);
    test_server_start(&replica, TEST_ARGV("--replicaof", "127.0.0.1", port));
}

static void stop_two(void)
{
    test_server_stop(&replica);
    fixture_stop();
}

static void set_up_two(void)
{
    char port[8];
    struct test_redis *r = test_redis_connect(server.path);

    test_redis_do(r, "REPLICAOF", "NO", "ONE"); /* it could not be emptied */
    test_redis_close(r);
    set_up();
    at_replica = test_redis_connect(replica.path);
    snprintf(port, sizeof(port), "%u", (unsigned)server.port);
    test_redis_do(at_replica, "REPLICAOF", "127.0.0.1", port);
}

static void tear_down_two(void)
{
    tear_down();
    test_redis_close(at_replica);
}

int main(void)
{
    Suite *suite = suite_create("proxies");
    TCase *one = tcase_create("one"), *two = tcase_create("two");

    find_haproxy();
    if (!haproxy) {
        puts("skipped: proxies: there is no haproxy");
        return 77;
    }
    tcase_add_unchecked_fixture(one, fixture_start, fixture_stop);
    tcase_add_checked_fixture(one, set_up, tear_down);
    TEST_ADD(one, locks_of_all_types_work_through_a_proxy_with_health_checks,
             diagnosis_through_a_proxy_is_that_of_the_server,
             idle_timeout_that_cuts_all_connections_loses_no_hold,
             waiter_whose_mailbox_was_cut_off_is_woken_soon,
             call_after_the_proxy_cut_its_idle_connection_goes_on,
             idle_timeout_is_named_in_the_log,
             ends_after_different_times_are_no_idle_timeout_in_the_log,
             mailbox_is_not_cut_off_by_a_timeout_longer_than_the_presence,
             proxy_whose_server_answers_nothing_is_ENOTCONN_and_says_so,
             proxy_that_is_killed_and_started_again_costs_no_hold,
             proxy_that_is_reloaded_costs_no_hold);
    tcase_add_loop_test(one, proxy_that_closes_at_once_is_ENOTCONN_and_named, 0,
                        sizeof(dead_options) / sizeof(dead_options[0]));
    suite_add_tcase(suite, one);
    tcase_add_unchecked_fixture(two, start_two, stop_two);
    tcase_add_checked_fixture(two, set_up_two, tear_down_two);
    tcase_add_loop_test(two,
                        proxy_that_goes_to_the_new_master_takes_holds_and_waiters_along,
                        0, sizeof(role_options) / sizeof(role_options[0]));
    suite_add_tcase(suite, two);
    return test_run_suite(suite);
}
