/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone harness with=shims/alloc_shim.c */
/* The test helpers, tested against a real server with plain connections. What they report
 * must have happened, or no other test proves anything. */
#include "alloc.h"
#include "clock.h"
#include "process.h"
#include "program.h"
#include "proxy.h"
#include "redis.h"
#include "resp.h"
#include "server.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SOON_MS = 10000,
    SHORT_MS = 150,
    HOUR_MS = 3600000,
    HOUR_S = 3600,
    HEIR_LIFE_S = 60
};

static struct test_server server;
static struct test_redis *redis; /* straight to the server */
static struct test_proxy *proxy;
static struct test_redis *client; /* through the proxy */

static void start_server(void)
{
    test_server_start(&server, NULL);
}

static void stop_server(void)
{
    test_server_stop(&server);
}

static void connect_redis(void)
{
    test_server_reset(&server);
    redis = test_redis_connect(server.path);
}

static void close_redis(void)
{
    test_redis_close(redis);
    redis = NULL;
}

static void open_proxy(void)
{
    connect_redis();
    proxy = test_proxy_start(&server);
    client = test_redis_connect(test_proxy_path(proxy));
}

static void close_proxy(void)
{
    test_redis_close(client);
    test_proxy_stop(proxy);
    close_redis();
    client = NULL;
    proxy = NULL;
}

static bool pid_is_gone(void *arg)
{
    return kill(*(const pid_t *)arg, 0) != 0 && errno == ESRCH;
}

static bool path_is_gone(void *arg)
{
    return access(arg, F_OK) != 0;
}

static bool has_forwarded(void *arg)
{
    return test_proxy_counts(proxy).to_server == *(const unsigned *)arg;
}

static bool key_exists(void *arg)
{
    return test_redis_exists(redis, arg);
}

static bool key_is_missing(void *arg)
{
    return !test_redis_exists(redis, arg);
}

static bool connect_fails(const char *path)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = connect(fd, (struct sockaddr *)&un, sizeof(un));
    close(fd);
    return rc != 0;
}

/* ---- wait */

static bool at_third(void *arg)
{
    return ++*(int *)arg == 3;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

START_TEST(wait_until_ends_when_the_condition_comes_true)
{
    int calls = 0;
    ck_assert(test_wait_until(at_third, &calls, SOON_MS));
    ck_assert_int_eq(calls, 3);
}
END_TEST

START_TEST(wait_until_ends_at_its_scaled_bound)
{
    setenv("RLOCK_TEST_SCALE", "3", 1);
    int64_t before = test_now_ms();
    ck_assert(!test_wait_until(never, NULL, 20));
    ck_assert_int_ge(test_now_ms() - before, 60);
}
END_TEST

START_TEST(stays_tells_the_first_change)
{
    int calls = 0;
    ck_assert(!test_stays(never, NULL, SOON_MS));
    ck_assert(!test_stays(at_third, &calls, SOON_MS));
    ck_assert_int_eq(calls, 1);
}
END_TEST

START_TEST(count_follows_the_level)
{
    unsetenv("RLOCK_TEST_LEVEL");
    ck_assert_int_eq(test_count(100, 5), 5);
    setenv("RLOCK_TEST_LEVEL", "full", 1);
    ck_assert_int_eq(test_count(100, 5), 100);
}
END_TEST

START_TEST(in_ms_yields_valid_nanoseconds)
{
    for (long ms = -2500; ms <= 2500; ms += 100) {
        struct timespec ts = test_in_ms(CLOCK_REALTIME, ms);
        ck_assert_int_ge(ts.tv_nsec, 0);
        ck_assert_int_lt(ts.tv_nsec, 1000000000);
    }
}
END_TEST

/* ---- resp */

START_TEST(resp_finds_where_each_type_ends)
{
    static const char *const messages[] = {
        "+OK\r\n",
        "-ERR no\r\n",
        ":12\r\n",
        "$5\r\na\r\nbc\r\n",
        "$-1\r\n",
        "$0\r\n\r\n",
        "*-1\r\n",
        "*0\r\n",
        "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
        "%1\r\n+a\r\n:1\r\n",
        "|1\r\n+ttl\r\n:3\r\n+value\r\n",
        "*2\r\n*0\r\n*2\r\n:1\r\n$1\r\nx\r\n",
        "=7\r\ntxt:abc\r\n",
        "_\r\n",
    };
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        char two[128];
        long len = (long)strlen(messages[i]);
        snprintf(two, sizeof(two), "%s+NEXT\r\n", messages[i]);
        const unsigned char *data = (const unsigned char *)two;
        ck_assert_int_eq(test_resp_length(data, strlen(two), false), len);
        for (long part = 0; part < len; part++)
            ck_assert_int_eq(test_resp_length(data, (size_t)part, false),
                             TEST_RESP_PARTIAL);
    }
}
END_TEST

START_TEST(resp_knows_inline_requests_and_no_others)
{
    ck_assert_int_eq(test_resp_length((const unsigned char *)"PING\r\nX", 7, true), 6);
    ck_assert_int_eq(test_resp_length((const unsigned char *)"PING\r\n", 6, false),
                     TEST_RESP_INVALID);
}
END_TEST

START_TEST(resp_counts_replies_of_subscribe)
{
    static const char two[] = "*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n";
    static const char get[] = "*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n";
    ck_assert_uint_eq(test_resp_replies((const unsigned char *)two, sizeof(two) - 1), 2);
    ck_assert_uint_eq(test_resp_replies((const unsigned char *)get, sizeof(get) - 1), 1);
}
END_TEST

/* ---- server */

START_TEST(server_answers_on_both_addresses)
{
    struct test_redis *tcp = test_redis_connect_port(server.port);
    test_redis_do(redis, "SET", "k", "v");
    ck_assert_str_eq(test_redis_str(tcp, "GET", "k"), "v");
    ck_assert_int_eq(strncmp(server.url, "unix:///", 8), 0);
    ck_assert_int_lt((int)strlen(server.path), 100);
    test_redis_close(tcp);
}
END_TEST

START_TEST(restarted_server_is_empty_and_another_process)
{
    pid_t before = test_server_pid(&server);
    uint16_t port = server.port;
    test_redis_do(redis, "SET", "k", "v");
    test_server_restart(&server);
    ck_assert_int_ne(test_server_pid(&server), before);
    ck_assert(pid_is_gone(&before));
    struct test_redis *tcp = test_redis_connect_port(port);
    ck_assert(!test_redis_exists(tcp, "k"));
    test_redis_close(tcp);
}
END_TEST

START_TEST(killed_server_is_gone_at_once_and_reset_revives_it)
{
    pid_t pid = test_server_pid(&server);
    test_server_kill(&server);
    ck_assert(pid_is_gone(&pid));
    ck_assert_int_eq(test_server_pid(&server), 0);
    ck_assert_ptr_null(test_redis_try(redis, "PING"));
    ck_assert(connect_fails(server.path));
    test_server_reset(&server);
    struct test_redis *again = test_redis_connect(server.path);
    ck_assert_str_eq(test_redis_str(again, "PING"), "PONG");
    test_redis_close(again);
}
END_TEST

START_TEST(persistent_server_restores_its_keys)
{
    static const char *const args[] = { "--appendonly", "yes", NULL };
    struct test_server other;
    test_server_start(&other, args);
    struct test_redis *r = test_redis_connect(other.path);
    test_redis_do(r, "SET", "k", "v");
    test_redis_close(r);
    test_server_shutdown(&other);
    test_server_restart(&other);
    r = test_redis_connect(other.path);
    ck_assert_str_eq(test_redis_str(r, "GET", "k"), "v");
    test_redis_close(r);
    test_server_stop(&other);
}
END_TEST

START_TEST(launched_server_is_up_when_it_answers)
{
    test_server_kill(&server);
    test_server_launch(&server);
    int64_t end = test_now_ms() + test_ms(SOON_MS);
    while (!test_server_is_up(&server) && test_now_ms() < end)
        test_pause_ms(1);
    struct test_redis *again = test_redis_connect(server.path);
    ck_assert_str_eq(test_redis_str(again, "PING"), "PONG");
    test_redis_close(again);
}
END_TEST

START_TEST(paused_server_is_silent_until_resumed)
{
    test_server_pause(&server);
    test_redis_send(redis, "INCR", "k");
    ck_assert_ptr_null(test_redis_recv(redis, SHORT_MS));
    ck_assert(!test_redis_closed(redis));
    test_server_resume(&server);
    const redisReply *reply = test_redis_recv(redis, SOON_MS);
    ck_assert_ptr_nonnull(reply);
    ck_assert_int_eq(reply->integer, 1);
}
END_TEST

START_TEST(stop_leaves_nothing_behind)
{
    struct test_server other;
    test_server_start(&other, NULL);
    pid_t pid = test_server_pid(&other);
    char dir[TEST_DIR_MAX];
    memcpy(dir, other.dir, sizeof(dir));
    ck_assert_int_ne(other.port, server.port);
    test_server_stop(&other);
    ck_assert(pid_is_gone(&pid));
    ck_assert(path_is_gone(dir));
    test_server_stop(&other); /* harmless */
}
END_TEST

struct left {
    pid_t server, heir;
    char dir[TEST_DIR_MAX];
};

/* Starts a server, and a process that inherits the descriptors that the helpers keep
 * open. */
__attribute__((noreturn)) static void start_and_hang(int fd)
{
    struct test_server other;
    struct left left;
    test_server_start(&other, NULL);
    memset(&left, 0, sizeof(left));
    left.server = test_server_pid(&other);
    memcpy(left.dir, other.dir, sizeof(left.dir));
    left.heir = fork();
    if (left.heir != 0 && write(fd, &left, sizeof(left)) != (ssize_t)sizeof(left))
        _exit(EXIT_FAILURE);
    alarm(HEIR_LIFE_S);
    for (;;)
        pause();
}

START_TEST(aborting_test_leaves_nothing_behind)
{
    struct left left;
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0)
        start_and_hang(ends[1]);
    ck_assert_int_eq((int)read(ends[0], &left, sizeof(left)), (int)sizeof(left));
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    bool server_gone = test_wait_until(pid_is_gone, &left.server, SOON_MS);
    bool dir_gone = test_wait_until(path_is_gone, left.dir, SOON_MS);
    kill(left.heir, SIGKILL);
    close(ends[0]);
    close(ends[1]);
    ck_assert(server_gone);
    ck_assert(dir_gone);
}
END_TEST

START_TEST(server_dies_with_its_supervisor)
{
    struct test_server other;
    test_server_start(&other, NULL);
    pid_t pid = test_server_pid(&other);
    const char *const rm[] = { "rm", "-rf", other.dir, NULL };
    struct test_program p;
    kill(other.supervisor, SIGKILL);
    ck_assert(test_wait_until(pid_is_gone, &pid, SOON_MS));
    test_program_start(&p, rm, NULL);
    ck_assert_int_eq(test_program_wait(&p, SOON_MS), 0);
    test_program_end(&p);
    test_server_stop(&other);
}
END_TEST

START_TEST(reset_resumes_a_paused_server)
{
    test_redis_do(redis, "SET", "k", "v");
    test_server_pause(&server);
    test_server_reset(&server);
    ck_assert(!test_redis_exists(redis, "k"));
}
END_TEST

/* ---- redis */

START_TEST(redis_reads_numbers_strings_and_nil)
{
    test_redis_do(redis, "SET", "n", "41");
    ck_assert_int_eq(test_redis_int(redis, "INCR", "n"), 42);
    ck_assert_int_eq(test_redis_int(redis, "GET", "n"), 42);
    ck_assert_ptr_null(test_redis_str(redis, "GET", "none"));
    const redisReply *reply = test_redis_do(redis, "EVAL", "return {1, 'two'}", "0");
    ck_assert_uint_eq(reply->elements, 2);
    ck_assert_str_eq(reply->element[1]->str, "two");
}
END_TEST

START_TEST(redis_try_returns_errors)
{
    const redisReply *reply = test_redis_try(redis, "NO-SUCH-COMMAND");
    ck_assert_ptr_nonnull(reply);
    ck_assert_int_eq(reply->type, REDIS_REPLY_ERROR);
}
END_TEST

START_TEST(redis_counts_commands_and_clients)
{
    test_redis_do(redis, "CONFIG", "RESETSTAT");
    for (int i = 0; i < 3; i++)
        test_redis_do(redis, "GET", "x");
    ck_assert_int_eq(test_redis_calls(redis, "get"), 3);
    ck_assert_int_eq(test_redis_calls(redis, "hset"), 0);
    ck_assert_int_ge(test_redis_info(redis, "connected_clients"), 1);
    ck_assert_int_eq(test_redis_info(redis, "no_such_field"), -1);
}
END_TEST

START_TEST(redis_kills_all_others)
{
    struct test_redis *one = test_redis_connect(server.path);
    struct test_redis *two = test_redis_connect(server.path);
    test_redis_do(one, "PING");
    test_redis_do(two, "SUBSCRIBE", "c");
    test_redis_kill_clients(redis);
    ck_assert_ptr_null(test_redis_recv(one, SOON_MS));
    ck_assert(test_redis_closed(one));
    ck_assert_ptr_null(test_redis_recv(two, SOON_MS));
    ck_assert(test_redis_closed(two));
    test_redis_close(one);
    test_redis_close(two);
}
END_TEST

/* ---- proxy */

START_TEST(proxy_passes_commands_and_counts_them)
{
    test_redis_do(client, "SET", "k", "v");
    ck_assert_str_eq(test_redis_str(client, "GET", "k"), "v");
    struct test_proxy_counts counts = test_proxy_counts(proxy);
    ck_assert_uint_eq(counts.accepted, 1);
    ck_assert_uint_eq(counts.open, 1);
    ck_assert_uint_eq(counts.to_server, 2);
    ck_assert_uint_eq(counts.to_client, 2);
}
END_TEST

START_TEST(proxy_serves_tcp_too)
{
    struct test_redis *tcp = test_redis_connect_port(test_proxy_port(proxy));
    ck_assert_str_eq(test_redis_str(tcp, "PING"), "PONG");
    test_redis_close(tcp);
}
END_TEST

START_TEST(proxy_passes_large_values)
{
    const size_t size = 1 << 20;
    char *value = malloc(size + 1);
    ck_assert_ptr_nonnull(value);
    memset(value, 'x', size);
    value[size] = '\0';
    test_redis_do(client, "SET", "big", value);
    ck_assert_str_eq(test_redis_str(client, "GET", "big"), value);
    free(value);
}
END_TEST

START_TEST(dropped_reply_belongs_to_an_executed_request)
{
    int rule = TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_DROP,
                         .contains = "INCR", .count = 1);
    test_redis_send(client, "INCR", "n");
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    ck_assert_int_eq(test_redis_int(redis, "GET", "n"), 1);
    ck_assert_ptr_null(test_redis_recv(client, SHORT_MS));
    ck_assert(!test_redis_closed(client));
    ck_assert_int_eq(test_redis_int(client, "INCR", "n"), 2);
}
END_TEST

START_TEST(dropped_request_is_not_executed)
{
    int rule =
        TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_DROP, .contains = "lost");
    test_redis_send(client, "SET", "lost", "1");
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    test_redis_do(client, "PING"); /* PING overtook nothing: otherwise the SET would have
                                      come first */
    ck_assert(!test_redis_exists(redis, "lost"));
    ck_assert_uint_eq(test_proxy_answered(proxy, rule), 0);
}
END_TEST

START_TEST(skip_and_count_choose_the_nth_message)
{
    static const char *const words[] = { "one", "two", "three", "four" };
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_DROP, .contains = "ECHO",
              .skip = 2, .count = 1);
    for (int i = 0; i < 4; i++)
        test_redis_send(client, "ECHO", words[i]);
    for (int i = 0; i < 4; i++) {
        if (i == 2)
            continue;
        const redisReply *reply = test_redis_recv(client, SOON_MS);
        ck_assert_ptr_nonnull(reply);
        ck_assert_str_eq(reply->str, words[i]);
    }
}
END_TEST

START_TEST(cut_reply_belongs_to_an_executed_request)
{
    TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_CUT, .contains = "INCR");
    ck_assert_ptr_null(test_redis_try(client, "INCR", "n"));
    ck_assert(test_redis_closed(client));
    ck_assert_int_eq(test_redis_int(redis, "GET", "n"), 1);
    ck_assert(test_proxy_wait_open(proxy, 0, SOON_MS));
}
END_TEST

START_TEST(cut_request_is_not_executed)
{
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_CUT, .contains = "INCR",
              .keep_len = 5);
    ck_assert_ptr_null(test_redis_try(client, "INCR", "n"));
    ck_assert(test_redis_closed(client));
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

START_TEST(cut_after_the_request_lets_it_be_executed)
{
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_CUT_AFTER, .contains = "INCR");
    ck_assert_ptr_null(test_redis_try(client, "INCR", "n"));
    ck_assert(test_redis_closed(client));
    ck_assert(test_wait_until(key_exists, (char[]){ "n" }, SOON_MS));
}
END_TEST

START_TEST(cut_may_leave_half_a_reply)
{
    TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_CUT, .contains = "GET",
              .keep_len = 6);
    test_redis_do(redis, "SET", "k", "value");
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", test_proxy_path(proxy));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char got[32] = "";
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    ck_assert_int_eq((int)send(fd, "GET k\r\n", 7, MSG_NOSIGNAL), 7);
    ck_assert_int_eq((int)recv(fd, got, sizeof(got) - 1, MSG_WAITALL), 6);
    ck_assert_str_eq(got, "$5\r\nva");
    close(fd);
}
END_TEST

START_TEST(reset_cut_is_seen_as_a_reset)
{
    struct test_redis *tcp = test_redis_connect_port(test_proxy_port(proxy));
    TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_CUT, .contains = "INCR",
              .reset = true);
    test_redis_send(tcp, "INCR", "n");
    char byte;
    ck_assert_int_eq((int)recv(test_redis_fd(tcp), &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    test_redis_close(tcp);
}
END_TEST

START_TEST(ghost_is_delivered_after_its_client_closed)
{
    int rule = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                         .contains = "ghost", .count = 1);
    test_redis_send(client, "SET", "ghost", "1");
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    test_redis_close(client);
    client = NULL;
    ck_assert(test_stays(key_is_missing, (char[]){ "ghost" }, SHORT_MS));
    ck_assert_uint_eq(test_proxy_counts(proxy).open, 1);
    test_proxy_release(proxy, rule);
    ck_assert(test_proxy_wait_answered(proxy, rule, 1, SOON_MS));
    ck_assert(test_redis_exists(redis, "ghost"));
    ck_assert(test_proxy_wait_open(proxy, 0, SOON_MS));
}
END_TEST

START_TEST(held_request_holds_up_what_follows)
{
    int rule = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                         .contains = "first", .count = 1);
    test_redis_send(client, "SET", "first", "1");
    test_redis_send(client, "EXISTS", "first");
    ck_assert_ptr_null(test_redis_recv(client, SHORT_MS));
    test_proxy_release(proxy, rule);
    ck_assert_ptr_nonnull(test_redis_recv(client, SOON_MS));
    const redisReply *reply = test_redis_recv(client, SOON_MS);
    ck_assert_ptr_nonnull(reply);
    ck_assert_int_eq(reply->integer, 1);
}
END_TEST

START_TEST(held_reply_comes_when_released)
{
    int rule = TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_HOLD,
                         .contains = "INCR", .count = 1);
    test_redis_send(client, "INCR", "n");
    ck_assert(test_proxy_wait_answered(proxy, rule, 1, SOON_MS));
    ck_assert_ptr_null(test_redis_recv(client, SHORT_MS));
    test_proxy_release(proxy, rule);
    const redisReply *reply = test_redis_recv(client, SOON_MS);
    ck_assert_ptr_nonnull(reply);
    ck_assert_int_eq(reply->integer, 1);
}
END_TEST

START_TEST(removed_rule_lets_go_what_it_held)
{
    int rule = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_HOLD);
    test_redis_send(client, "PING");
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    test_proxy_remove(proxy, rule);
    ck_assert_ptr_nonnull(test_redis_recv(client, SOON_MS));
    ck_assert_str_eq(test_redis_str(client, "PING"), "PONG");
}
END_TEST

START_TEST(delay_delays_without_reordering)
{
    TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_DELAY, .contains = "INCR",
              .delay_ms = SHORT_MS, .count = 1);
    int64_t before = test_now_ms();
    test_redis_send(client, "INCR", "n");
    test_redis_send(client, "PING");
    const redisReply *reply = test_redis_recv(client, SOON_MS);
    ck_assert_ptr_nonnull(reply);
    ck_assert_int_eq(reply->type, REDIS_REPLY_INTEGER);
    ck_assert_int_ge(test_now_ms() - before, SHORT_MS);
    ck_assert_ptr_nonnull(test_redis_recv(client, SOON_MS));
}
END_TEST

START_TEST(drip_sends_byte_by_byte)
{
    const long each_ms = 5, bytes = 7; /* "+PONG\r\n" */
    TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_DRIP, .delay_ms = each_ms);
    int64_t before = test_now_ms();
    ck_assert_str_eq(test_redis_str(client, "PING"), "PONG");
    ck_assert_int_ge(test_now_ms() - before, each_ms * (bytes - 1));
}
END_TEST

START_TEST(half_close_ends_one_direction)
{
    TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_HALF_CLOSE, .contains = "PING");
    test_redis_send(client, "PING");
    ck_assert_ptr_nonnull(test_redis_recv(client, SOON_MS));
    char byte;
    ck_assert_int_eq((int)recv(test_redis_fd(client), &byte, 1, 0), 0);
    test_redis_send(client, "SET", "k", "v"); /* the other direction is open */
    ck_assert(test_wait_until(key_exists, (char[]){ "k" }, SOON_MS));
}
END_TEST

START_TEST(half_closed_client_that_is_sent_more_is_let_go)
{
    int rule = TEST_RULE(proxy, .on = TEST_ON_MESSAGE, .action = TEST_HALF_CLOSE,
                         .contains = "$7\r\nmessage\r\n", .count = 1);
    test_redis_do(client, "SUBSCRIBE", "c");
    ck_assert_int_eq(test_redis_int(redis, "PUBLISH", "c", "1"), 1);
    ck_assert_ptr_nonnull(test_redis_recv(client, SOON_MS));
    ck_assert_ptr_null(test_redis_recv(client, SOON_MS));
    ck_assert(test_redis_closed(client));
    ck_assert_int_eq(test_redis_int(redis, "PUBLISH", "c", "2"), 1);
    ck_assert(test_proxy_wait_open(proxy, 0, SOON_MS));
    ck_assert_uint_eq(test_proxy_hits(proxy, rule), 1);
    ck_assert_int_eq(test_redis_int(redis, "PUBLISH", "c", "3"), 0);
}
END_TEST

START_TEST(late_tells_what_waits_for_its_time)
{
    ck_assert(!test_proxy_is_late(proxy));
    int rule = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_DELAY,
                         .delay_ms = SHORT_MS);
    test_redis_send(client, "SET", "k", "v");
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    test_proxy_remove(proxy, rule);
    ck_assert(test_proxy_is_late(proxy));
    ck_assert_ptr_nonnull(test_redis_recv(client, SOON_MS));
    ck_assert(!test_proxy_is_late(proxy));
    rule = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_DRIP,
                     .delay_ms = SHORT_MS, .count = 1);
    test_redis_send(client, "GET", "k");
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    ck_assert(test_proxy_is_late(proxy));
}
END_TEST

/* ---- a proxy that does not read messages */

static int dial_server(void *arg)
{
    const struct test_server *s = arg;
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", s->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    return fd;
}

static void open_raw_proxy(void)
{
    connect_redis();
    proxy = test_proxy_start_raw(&server, "127.0.0.1", dial_server, &server);
    client = test_redis_connect(test_proxy_path(proxy));
}

static void send_bytes(const char *bytes)
{
    ck_assert_int_eq((int)send(test_redis_fd(client), bytes, strlen(bytes), 0),
                     (int)strlen(bytes));
}

START_TEST(raw_proxy_passes_parts_of_messages)
{
    int rule = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_WATCH);
    send_bytes("*2\r\n$4\r\nINCR\r\n");
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    ck_assert(test_wait_until(has_forwarded, (unsigned[]){ 1 }, SOON_MS));
    send_bytes("$1\r\nk\r\n");
    ck_assert_ptr_nonnull(test_redis_recv(client, SOON_MS));
    ck_assert(test_redis_exists(redis, "k"));
}
END_TEST

START_TEST(raw_proxy_loses_replies_whose_requests_it_does_not_know)
{
    int rule = TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_DROP, .count = 1);
    test_redis_send(client, "SET", "k", "v");
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    ck_assert(test_redis_exists(redis, "k"));
    ck_assert_str_eq(test_redis_str(client, "PING"), "PONG"); /* not SET's OK */
}
END_TEST

START_TEST(raw_proxy_cuts_in_the_middle)
{
    TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_CUT, .keep_len = 3);
    test_redis_send(client, "PING");
    char bytes[8];
    ck_assert_int_eq((int)recv(test_redis_fd(client), bytes, sizeof(bytes), MSG_WAITALL),
                     3);
    ck_assert_int_eq(memcmp(bytes, "+PO", 3), 0);
}
END_TEST

START_TEST(connections_that_are_open_can_be_named)
{
    unsigned numbers[3] = { 0, 0, 0 };
    struct test_redis *second = test_redis_connect(test_proxy_path(proxy));
    test_redis_do(second, "PING");
    ck_assert_uint_eq(test_proxy_connections(proxy, numbers, 3), 2);
    ck_assert_uint_eq(numbers[0], 2);
    ck_assert_uint_eq(numbers[1], 1);
    test_proxy_cut(proxy, numbers[1], false);
    ck_assert_ptr_null(test_redis_try(client, "PING"));
    ck_assert_str_eq(test_redis_str(second, "PING"), "PONG");
    ck_assert_uint_eq(test_proxy_connections(proxy, numbers, 1), 1);
    ck_assert_uint_eq(numbers[0], 2);
    test_redis_close(second);
}
END_TEST

START_TEST(answer_replaces_the_server)
{
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER, .contains = "SET",
              .text = "-READONLY You can't\r\n");
    test_redis_send(client, "INCR", "n");
    test_redis_send(client, "SET", "k", "v");
    const redisReply *reply = test_redis_recv(client, SOON_MS);
    ck_assert_ptr_nonnull(reply);
    ck_assert_int_eq(reply->type, REDIS_REPLY_INTEGER);
    reply = test_redis_recv(client, SOON_MS);
    ck_assert_ptr_nonnull(reply);
    ck_assert_int_eq(reply->type, REDIS_REPLY_ERROR);
    ck_assert(!test_redis_exists(redis, "k"));
}
END_TEST

START_TEST(answer_replaces_a_reply)
{
    TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_ANSWER, .contains = "INCR",
              .text = ":77\r\n");
    ck_assert_int_eq(test_redis_int(client, "INCR", "n"), 77);
    ck_assert_int_eq(test_redis_int(redis, "GET", "n"), 1);
}
END_TEST

START_TEST(rules_of_one_connection_spare_the_others)
{
    struct test_redis *second = test_redis_connect(test_proxy_path(proxy));
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_DROP, .connection = 1);
    ck_assert_str_eq(test_redis_str(second, "PING"), "PONG");
    test_redis_send(client, "PING");
    ck_assert_ptr_null(test_redis_recv(client, SHORT_MS));
    test_redis_close(second);
}
END_TEST

START_TEST(watch_counts_and_lets_later_rules_act)
{
    int watch = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_WATCH);
    int drop =
        TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_DROP, .contains = "SET");
    test_redis_send(client, "SET", "k", "v");
    test_redis_do(client, "PING");
    ck_assert_uint_eq(test_proxy_hits(proxy, watch), 2);
    ck_assert_uint_eq(test_proxy_hits(proxy, drop), 1);
    ck_assert_uint_eq(test_proxy_answered(proxy, watch), 1);
}
END_TEST

START_TEST(messages_of_channels_can_be_dropped)
{
    int rule = TEST_RULE(proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
                         .contains = "lost", .count = 1);
    test_redis_send(client, "SUBSCRIBE", "c", "d");
    ck_assert_ptr_nonnull(test_redis_recv(client, SOON_MS));
    ck_assert_ptr_nonnull(test_redis_recv(client, SOON_MS));
    ck_assert_int_eq(test_redis_int(redis, "PUBLISH", "c", "lost"), 1);
    ck_assert_int_eq(test_redis_int(redis, "PUBLISH", "d", "kept"), 1);
    const redisReply *reply = test_redis_recv(client, SOON_MS);
    ck_assert_ptr_nonnull(reply);
    ck_assert_str_eq(reply->element[2]->str, "kept");
    ck_assert_uint_eq(test_proxy_hits(proxy, rule), 1);
}
END_TEST

START_TEST(pushes_do_not_count_as_replies)
{
    test_redis_send(client, "SUBSCRIBE", "c");
    ck_assert_ptr_nonnull(test_redis_recv(client, SOON_MS));
    int hold =
        TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_HOLD, .contains = "PING");
    int drop =
        TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_DROP, .contains = "PING");
    test_redis_send(client, "PING");
    ck_assert(test_proxy_wait_hits(proxy, hold, 1, SOON_MS));
    test_redis_do(redis, "PUBLISH", "c", "hello");
    const redisReply *reply = test_redis_recv(client, SOON_MS);
    ck_assert_ptr_nonnull(reply);
    ck_assert_str_eq(reply->element[2]->str, "hello");
    ck_assert_uint_eq(test_proxy_hits(proxy, drop), 0);
    test_proxy_release(proxy, hold);
    ck_assert(test_proxy_wait_hits(proxy, drop, 1, SOON_MS));
}
END_TEST

START_TEST(frozen_proxy_passes_nothing_until_thawed)
{
    test_proxy_freeze(proxy, true);
    test_redis_send(client, "SET", "k", "v");
    ck_assert(test_stays(key_is_missing, (char[]){ "k" }, SHORT_MS));
    test_proxy_freeze(proxy, false);
    ck_assert_ptr_nonnull(test_redis_recv(client, SOON_MS));
    ck_assert(test_redis_exists(redis, "k"));
}
END_TEST

START_TEST(cut_closes_what_is_open)
{
    test_redis_do(client, "PING");
    test_proxy_cut(proxy, 0, false);
    ck_assert_uint_eq(test_proxy_counts(proxy).open, 0);
    ck_assert_ptr_null(test_redis_recv(client, SOON_MS));
    ck_assert(test_redis_closed(client));
    struct test_redis *again = test_redis_connect(test_proxy_path(proxy));
    ck_assert_str_eq(test_redis_str(again, "PING"), "PONG");
    test_redis_close(again);
}
END_TEST

START_TEST(modes_turn_new_connections_away)
{
    test_redis_do(client, "PING"); /* accepted before the mode changes */
    test_proxy_set_mode(proxy, TEST_PROXY_CLOSES);
    struct test_redis *closed = test_redis_connect(test_proxy_path(proxy));
    ck_assert_ptr_null(test_redis_recv(closed, SOON_MS));
    ck_assert(test_redis_closed(closed));
    test_redis_close(closed);

    test_proxy_set_mode(proxy, TEST_PROXY_SILENT);
    struct test_redis *silent = test_redis_connect(test_proxy_path(proxy));
    test_redis_send(silent, "PING");
    ck_assert_ptr_null(test_redis_recv(silent, SHORT_MS));
    ck_assert(!test_redis_closed(silent));

    test_proxy_set_mode(proxy, TEST_PROXY_DOWN);
    ck_assert(connect_fails(test_proxy_path(proxy)));
    ck_assert_str_eq(test_redis_str(client, "PING"), "PONG");

    test_proxy_set_mode(proxy, TEST_PROXY_OPEN);
    struct test_redis *open = test_redis_connect(test_proxy_path(proxy));
    ck_assert_str_eq(test_redis_str(open, "PING"), "PONG");
    struct test_redis *tcp = test_redis_connect_port(test_proxy_port(proxy));
    ck_assert_str_eq(test_redis_str(tcp, "PING"), "PONG");
    test_redis_close(silent);
    test_redis_close(open);
    test_redis_close(tcp);
}
END_TEST

START_TEST(server_that_dies_closes_the_clients)
{
    test_redis_do(client, "PING");
    test_server_kill(&server);
    ck_assert_ptr_null(test_redis_recv(client, SOON_MS));
    ck_assert(test_redis_closed(client));
    ck_assert(test_proxy_wait_open(proxy, 0, SOON_MS));
}
END_TEST

/* ---- programs */

START_TEST(program_answers_in_lines)
{
    static const char *const argv[] = { "cat", NULL };
    struct test_program p;
    char line[64];
    test_program_start(&p, argv, NULL);
    ck_assert(test_program_write(&p, "one"));
    ck_assert(test_program_write(&p, "two"));
    ck_assert(test_program_read(&p, line, sizeof(line), SOON_MS));
    ck_assert_str_eq(line, "one");
    ck_assert(test_program_read(&p, line, sizeof(line), SOON_MS));
    ck_assert_str_eq(line, "two");
    ck_assert(!test_program_read(&p, line, sizeof(line), 10));
    ck_assert_int_eq(test_program_wait(&p, SOON_MS), 0);
    test_program_end(&p);
}
END_TEST

/* Progress in each of this many calls. */
static int64_t looks_left(void *arg)
{
    int *looks = arg;
    return *looks > 0 ? --*looks : 0;
}

START_TEST(program_is_read_as_long_as_its_work_comes_on)
{
    enum { LOOKS = 12, LOOKS_MS = 900 }; /* 11 times 100 ms and less */
    static const char *const argv[] = { "cat", NULL };
    struct test_program p;
    char line[64];
    int looks = LOOKS;
    test_program_start(&p, argv, NULL);
    int64_t begin = test_now_ms();
    ck_assert(!test_program_read_amid(&p, line, sizeof(line), looks_left, &looks, 200));
    ck_assert_int_ge(test_now_ms() - begin, LOOKS_MS);
    ck_assert_int_eq(looks, 0);
    ck_assert(test_program_write(&p, "one"));
    looks = LOOKS;
    ck_assert(
        test_program_read_amid(&p, line, sizeof(line), looks_left, &looks, SOON_MS));
    ck_assert_str_eq(line, "one");
    test_program_end(&p);
}
END_TEST

START_TEST(stopped_program_answers_when_continued)
{
    static const char *const argv[] = { "cat", NULL };
    struct test_program p;
    char line[64];
    test_program_start(&p, argv, NULL);
    test_program_stop(&p);
    ck_assert(test_program_write(&p, "one"));
    ck_assert(!test_program_read(&p, line, sizeof(line), SHORT_MS));
    test_program_cont(&p);
    ck_assert(test_program_read(&p, line, sizeof(line), SOON_MS));
    test_program_end(&p);
}
END_TEST

START_TEST(killed_program_reads_no_more)
{
    static const char *const argv[] = { "cat", NULL };
    struct test_program p;
    char line[64];
    test_program_start(&p, argv, NULL);
    test_program_kill(&p);
    ck_assert(WIFSIGNALED(p.status));
    ck_assert(!test_program_write(&p, "one"));
    ck_assert(!test_program_read(&p, line, sizeof(line), SOON_MS));
    test_program_end(&p);
}
END_TEST

START_TEST(program_gets_its_environment)
{
    static const char *const argv[] = { "sh", "-c", "echo $RLOCK_TEST_WORD", NULL };
    static const char *const env[] = { "RLOCK_TEST_WORD=yes", NULL };
    setenv("RLOCK_TEST_WORD", "no", 1);
    struct test_program p;
    char line[64];
    test_program_start(&p, argv, env);
    ck_assert(test_program_read(&p, line, sizeof(line), SOON_MS));
    ck_assert_str_eq(line, "yes");
    test_program_end(&p);
}
END_TEST

/* ---- suites: they report in a pipe how many times they ran */

static pid_t runner;
static int run_pipe[2];
static bool stands_still;

START_TEST(fails_and_may_stand_still)
{
    ck_assert_int_eq(write(run_pipe[1], "x", 1), 1);
    if (stands_still) {
        kill(runner, SIGSTOP);
        test_pause_ms(test_ms(300));
        kill(runner, SIGCONT);
    }
    ck_abort_msg("as it should");
}
END_TEST

static int runs_of_a_failing_suite(bool still)
{
    char runs[16];
    int status;

    stands_still = still;
    ck_assert_int_eq(pipe(run_pipe), 0);
    pid_t pid = fork();
    if (pid == 0) {
        Suite *suite = suite_create("fails");
        TCase *tc = tcase_create("fails");
        tcase_add_test(tc, fails_and_may_stand_still);
        suite_add_tcase(suite, tc);
        runner = getpid();
        if (!freopen("/dev/null", "w", stdout))
            _exit(EXIT_SUCCESS);
        _exit(test_run_suite(suite));
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
    close(run_pipe[1]);
    int count = (int)read(run_pipe[0], runs, sizeof(runs));
    close(run_pipe[0]);
    return count;
}

START_TEST(suite_that_fails_while_the_machine_stands_still_is_repeated)
{
    unsetenv("CK_RUN_CASE");
    unsetenv("CK_FORK");
    ck_assert_int_eq(runs_of_a_failing_suite(true), 3);
}
END_TEST

START_TEST(suite_that_fails_by_itself_is_not_repeated)
{
    unsetenv("CK_RUN_CASE");
    unsetenv("CK_FORK");
    ck_assert_int_eq(runs_of_a_failing_suite(false), 1);
}
END_TEST

/* ---- shims */

static long long server_seconds(struct test_redis *r)
{
    const redisReply *reply = test_redis_do(r, "TIME");
    return strtoll(reply->element[0]->str, NULL, 10);
}

START_TEST(clock_shim_moves_a_running_server)
{
    struct test_clock clock;
    struct test_server other;
    test_clock_open(&clock);
    test_server_start_env(&other, NULL, clock.env);
    struct test_redis *r = test_redis_connect(other.path);
    long long before = server_seconds(r);
    ck_assert_int_lt(llabs(before - (long long)time(NULL)), 60);
    test_redis_do(r, "SET", "k", "v", "PX", "7200000");

    test_clock_step(&clock, r, HOUR_MS);
    ck_assert_int_ge(server_seconds(r) - before, HOUR_S);
    ck_assert_int_le(test_redis_int(r, "PTTL", "k"), HOUR_MS);
    ck_assert_int_gt(test_redis_int(r, "PTTL", "k"), HOUR_MS - test_ms(60000));

    test_clock_step(&clock, r, -HOUR_MS);
    ck_assert_int_le(server_seconds(r) - before, -HOUR_S + 60);
    ck_assert_int_gt(test_redis_int(r, "PTTL", "k"), 2 * HOUR_MS);

    test_clock_step(&clock, r, 3L * HOUR_MS);
    ck_assert(!test_redis_exists(r, "k"));
    test_redis_close(r);
    test_server_stop(&other);
    test_clock_close(&clock);
}
END_TEST

START_TEST(clock_shim_moves_a_running_program)
{
    static const char *const argv[] = { "sh", "-c", "while read x; do date +%s; done",
                                        NULL };
    struct test_clock clock;
    struct test_program p;
    char line[64];
    test_clock_open(&clock);
    test_program_start(&p, argv, clock.env);
    test_clock_set_real(&clock, -HOUR_MS);
    ck_assert(test_program_write(&p, "now"));
    ck_assert(test_program_read(&p, line, sizeof(line), SOON_MS));
    ck_assert_int_lt(strtoll(line, NULL, 10), (long long)time(NULL) - HOUR_S + 60);
    test_program_end(&p);
    test_clock_close(&clock);
}
END_TEST

/* Runs until the main thread ends it, or sleeps. */
static void *busy_thread(void *arg)
{
    atomic_int *busy = arg;
    while (atomic_load(busy) > 0)
        continue;
    while (atomic_load(busy) == 0)
        test_pause_ms(1000);
    return NULL;
}

START_TEST(threads_are_quiet_when_all_sleep)
{
    enum { QUIET_MS = 20, STAYS_MS = 200 };
    atomic_int busy = 1;
    pthread_t thread;
    ck_assert(test_thread_quiet(QUIET_MS, SOON_MS)); /* except for a sanitizer's own
                                                        threads */
    ck_assert_int_eq(pthread_create(&thread, NULL, busy_thread, &busy), 0);
    ck_assert(!test_thread_quiet(QUIET_MS, STAYS_MS));
    atomic_store(&busy, 0);
    ck_assert(test_thread_quiet(QUIET_MS, SOON_MS));
    atomic_store(&busy, -1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

START_TEST(alloc_shim_fails_the_chosen_allocations)
{
    if (!test_alloc_available()) {
        puts("skipped: alloc_shim_fails_the_chosen_allocations: not here");
        return;
    }
    test_alloc_this_thread(true);
    test_alloc_fail_at(2);
    void *volatile one = malloc(1);
    void *volatile two = malloc(1);
    void *volatile three = malloc(1);
    ck_assert_ptr_nonnull(one);
    ck_assert_ptr_null(two);
    ck_assert_ptr_nonnull(three);
    test_alloc_fail_from(1);
    char *volatile text = strdup("x");
    void *volatile same = realloc(one, 100);
    long failed = test_alloc_failed();
    test_alloc_fail_at(0);
    ck_assert_ptr_null(text);
    ck_assert_ptr_null(same);
    ck_assert_int_eq(failed, 2);
    free(one);
    free(three);
}
END_TEST

START_TEST(alloc_shim_can_be_preloaded)
{
    static const char *const works[] = { "sh", "-c", "LD_PRELOAD=$RLOCK_SHIM exec sort",
                                         NULL };
    static const char *const fails[] = {
        "sh", "-c", "LD_PRELOAD=$RLOCK_SHIM RLOCK_ALLOC_FAIL=1+ exec sort 2>/dev/null",
        NULL
    };
    char shim[PATH_MAX], variable[PATH_MAX + 16];
    test_build_path(shim, sizeof(shim), "tests/shims/alloc_shim.so");
    snprintf(variable, sizeof(variable), "RLOCK_SHIM=%s", shim);
    const char *const env[] = { variable, NULL };
    struct test_program p;
    test_program_start(&p, works, env);
    ck_assert_int_eq(test_program_wait(&p, SOON_MS), 0);
    test_program_end(&p);
    test_program_start(&p, fails, env);
    ck_assert_int_ne(test_program_wait(&p, SOON_MS), 0);
    test_program_end(&p);
}
END_TEST

/* ---- */

static void add_wait(Suite *suite)
{
    TCase *tc = tcase_create("wait");
    tcase_add_test(tc, wait_until_ends_when_the_condition_comes_true);
    tcase_add_test(tc, wait_until_ends_at_its_scaled_bound);
    tcase_add_test(tc, stays_tells_the_first_change);
    tcase_add_test(tc, count_follows_the_level);
    tcase_add_test(tc, in_ms_yields_valid_nanoseconds);
    suite_add_tcase(suite, tc);
}

static void add_resp(Suite *suite)
{
    TCase *tc = tcase_create("resp");
    tcase_add_test(tc, resp_finds_where_each_type_ends);
    tcase_add_test(tc, resp_knows_inline_requests_and_no_others);
    tcase_add_test(tc, resp_counts_replies_of_subscribe);
    suite_add_tcase(suite, tc);
}

static void add_server(Suite *suite)
{
    TCase *tc = tcase_create("server");
    tcase_add_unchecked_fixture(tc, start_server, stop_server);
    tcase_add_checked_fixture(tc, connect_redis, close_redis);
    tcase_add_test(tc, server_answers_on_both_addresses);
    tcase_add_test(tc, restarted_server_is_empty_and_another_process);
    tcase_add_test(tc, killed_server_is_gone_at_once_and_reset_revives_it);
    tcase_add_test(tc, persistent_server_restores_its_keys);
    tcase_add_test(tc, launched_server_is_up_when_it_answers);
    tcase_add_test(tc, paused_server_is_silent_until_resumed);
    tcase_add_test(tc, stop_leaves_nothing_behind);
    tcase_add_test(tc, aborting_test_leaves_nothing_behind);
    tcase_add_test(tc, server_dies_with_its_supervisor);
    tcase_add_test(tc, reset_resumes_a_paused_server);
    suite_add_tcase(suite, tc);
}

static void add_redis(Suite *suite)
{
    TCase *tc = tcase_create("redis");
    tcase_add_unchecked_fixture(tc, start_server, stop_server);
    tcase_add_checked_fixture(tc, connect_redis, close_redis);
    tcase_add_test(tc, redis_reads_numbers_strings_and_nil);
    tcase_add_test(tc, redis_try_returns_errors);
    tcase_add_test(tc, redis_counts_commands_and_clients);
    tcase_add_test(tc, redis_kills_all_others);
    suite_add_tcase(suite, tc);
}

static void add_proxy(Suite *suite)
{
    TCase *tc = tcase_create("proxy");
    tcase_add_unchecked_fixture(tc, start_server, stop_server);
    tcase_add_checked_fixture(tc, open_proxy, close_proxy);
    tcase_add_test(tc, proxy_passes_commands_and_counts_them);
    tcase_add_test(tc, proxy_serves_tcp_too);
    tcase_add_test(tc, proxy_passes_large_values);
    tcase_add_test(tc, dropped_reply_belongs_to_an_executed_request);
    tcase_add_test(tc, dropped_request_is_not_executed);
    tcase_add_test(tc, skip_and_count_choose_the_nth_message);
    tcase_add_test(tc, cut_reply_belongs_to_an_executed_request);
    tcase_add_test(tc, cut_request_is_not_executed);
    tcase_add_test(tc, cut_after_the_request_lets_it_be_executed);
    tcase_add_test(tc, cut_may_leave_half_a_reply);
    tcase_add_test(tc, reset_cut_is_seen_as_a_reset);
    tcase_add_test(tc, ghost_is_delivered_after_its_client_closed);
    tcase_add_test(tc, held_request_holds_up_what_follows);
    tcase_add_test(tc, held_reply_comes_when_released);
    tcase_add_test(tc, removed_rule_lets_go_what_it_held);
    tcase_add_test(tc, delay_delays_without_reordering);
    tcase_add_test(tc, drip_sends_byte_by_byte);
    tcase_add_test(tc, half_close_ends_one_direction);
    tcase_add_test(tc, half_closed_client_that_is_sent_more_is_let_go);
    tcase_add_test(tc, late_tells_what_waits_for_its_time);
    tcase_add_test(tc, connections_that_are_open_can_be_named);
    tcase_add_test(tc, answer_replaces_the_server);
    tcase_add_test(tc, answer_replaces_a_reply);
    tcase_add_test(tc, rules_of_one_connection_spare_the_others);
    tcase_add_test(tc, watch_counts_and_lets_later_rules_act);
    tcase_add_test(tc, messages_of_channels_can_be_dropped);
    tcase_add_test(tc, pushes_do_not_count_as_replies);
    tcase_add_test(tc, frozen_proxy_passes_nothing_until_thawed);
    tcase_add_test(tc, cut_closes_what_is_open);
    tcase_add_test(tc, modes_turn_new_connections_away);
    tcase_add_test(tc, server_that_dies_closes_the_clients);
    suite_add_tcase(suite, tc);
    tc = tcase_create("raw proxy");
    tcase_add_unchecked_fixture(tc, start_server, stop_server);
    tcase_add_checked_fixture(tc, open_raw_proxy, close_proxy);
    tcase_add_test(tc, raw_proxy_passes_parts_of_messages);
    tcase_add_test(tc, raw_proxy_loses_replies_whose_requests_it_does_not_know);
    tcase_add_test(tc, raw_proxy_cuts_in_the_middle);
    suite_add_tcase(suite, tc);
}

static void add_programs(Suite *suite)
{
    TCase *tc = tcase_create("programs");
    tcase_add_test(tc, program_answers_in_lines);
    tcase_add_test(tc, program_is_read_as_long_as_its_work_comes_on);
    tcase_add_test(tc, stopped_program_answers_when_continued);
    tcase_add_test(tc, killed_program_reads_no_more);
    tcase_add_test(tc, program_gets_its_environment);
    suite_add_tcase(suite, tc);
}

static void add_suites(Suite *suite)
{
    TCase *tc = tcase_create("suites");
    tcase_add_test(tc, suite_that_fails_while_the_machine_stands_still_is_repeated);
    tcase_add_test(tc, suite_that_fails_by_itself_is_not_repeated);
    suite_add_tcase(suite, tc);
}

static void add_process(Suite *suite)
{
    TCase *tc = tcase_create("process");
    tcase_add_test(tc, threads_are_quiet_when_all_sleep);
    suite_add_tcase(suite, tc);
}

static void add_shims(Suite *suite)
{
    TCase *tc = tcase_create("shims");
    tcase_add_test(tc, clock_shim_moves_a_running_server);
    tcase_add_test(tc, clock_shim_moves_a_running_program);
    tcase_add_test(tc, alloc_shim_fails_the_chosen_allocations);
    tcase_add_test(tc, alloc_shim_can_be_preloaded);
    suite_add_tcase(suite, tc);
}

int main(void)
{
    Suite *suite = suite_create("helpers");
    add_wait(suite);
    add_resp(suite);
    add_server(suite);
    add_redis(suite);
    add_proxy(suite);
    add_programs(suite);
    add_suites(suite);
    add_process(suite);
    add_shims(suite);
    return test_run_suite(suite);
}
