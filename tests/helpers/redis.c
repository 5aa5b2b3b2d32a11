/* SPDX-License-Identifier: Apache-2.0 */
/* State: in struct test_redis, which one thread uses at a time. Wraps hiredis's blocking
 * calls, except for receiving: a receive that times out must leave the connection
 * usable. */
#include "redis.h"

#include "die.h"
#include "server.h"
#include "wait.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { REPLY_TIMEOUT_MS = 10000, MS_PER_S = 1000, US_PER_MS = 1000, OLD_WORDS_MAX = 128 };

struct test_redis {
    redisContext *context;
    redisReply *last;
    bool closed;
};

static struct test_redis *wrap(redisContext *context, const char *where)
{
    struct test_redis *r = calloc(1, sizeof(*r));
    if (!r || !context)
        test_die("out of memory");
    if (context->err)
        test_die("cannot connect to %s: %s", where, context->errstr);
    r->context = context;
    return r;
}

/* A server that was stopped for a while accepts no more until it has accepted those that
 * came meanwhile. */
struct test_redis *test_redis_connect(const char *path)
{
    int64_t end = test_now_ms() + test_ms(REPLY_TIMEOUT_MS);
    redisContext *context = redisConnectUnix(path);
    while (context && context->err == REDIS_ERR_IO && errno == EAGAIN &&
           test_now_ms() < end) {
        redisFree(context);
        test_pause_ms(1);
        context = redisConnectUnix(path);
    }
    return wrap(context, path);
}

struct test_redis *test_redis_connect_port(unsigned port)
{
    return wrap(redisConnect("127.0.0.1", (int)port), "127.0.0.1");
}

struct test_redis *test_redis_connect_url(const char *url, long ms)
{
    char host[64];
    int port;
    long bound = test_ms(ms);
    const struct timeval timeout = { bound / MS_PER_S, bound % MS_PER_S * US_PER_MS };
    if (sscanf(url, "redis://%63[0-9.]:%d", host, &port) != 2)
        test_die("cannot read the URL %s", url);
    redisContext *context = redisConnectWithTimeout(host, port, timeout);
    if (!context || !context->err)
        return wrap(context, url);
    redisFree(context);
    return NULL;
}

void test_redis_close(struct test_redis *r)
{
    if (!r)
        return;
    if (r->last)
        freeReplyObject(r->last);
    redisFree(r->context);
    free(r);
}

bool test_redis_closed(const struct test_redis *r)
{
    return r->closed;
}

int test_redis_fd(const struct test_redis *r)
{
    return r->context->fd;
}

/* ---- sending and receiving */

static int count(const char *const argv[])
{
    int argc = 0;
    while (argv[argc])
        argc++;
    return argc;
}

/* hiredis would raise SIGPIPE when the server is gone, but a test must notice if the
 * library raises it. */
static bool send_command(struct test_redis *r, int argc, const char *const argv[],
                         const size_t len[])
{
    char *text = NULL;
    /* hiredis declares its arrays without const, but only reads them; newer versions
     * count in long long */
    int total =
        (int)redisFormatCommandArgv(&text, argc, (const char **)(uintptr_t)argv, len);
    if (total < 0)
        test_die("cannot format a command");
    for (int sent = 0; sent < total && !r->closed;) {
        ssize_t n =
            send(r->context->fd, text + sent, (size_t)(total - sent), MSG_NOSIGNAL);
        if (n > 0)
            sent += (int)n;
        else if (errno != EINTR)
            r->closed = true;
    }
    redisFreeCommand(text);
    return !r->closed;
}

void test_redis_send_argv(struct test_redis *r, const char *const argv[])
{
    if (!send_command(r, count(argv), argv, NULL))
        test_die("cannot send %s: the connection is closed", argv[0]);
}

const redisReply *test_redis_recv(struct test_redis *r, long ms)
{
    if (r->last)
        freeReplyObject(r->last);
    r->last = NULL;
    int64_t end = test_now_ms() + test_ms(ms);
    while (!r->closed) {
        void *reply = NULL;
        if (redisGetReplyFromReader(r->context, &reply) != REDIS_OK)
            r->closed = true;
        r->last = reply;
        if (reply)
            return reply;
        int64_t left = end - test_now_ms();
        struct pollfd pfd = { .fd = r->context->fd, .events = POLLIN };
        int ready = poll(&pfd, 1, left > 0 ? (int)left : 0);
        if (ready == 0)
            return NULL;
        if (ready > 0 && redisBufferRead(r->context) != REDIS_OK)
            r->closed = true;
    }
    return NULL;
}

const redisReply *test_redis_try_bytes(struct test_redis *r, int argc,
                                       const char *const argv[], const size_t len[])
{
    return send_command(r, argc, argv, len) ? test_redis_recv(r, REPLY_TIMEOUT_MS) : NULL;
}

/* What doc/ACL.md leaves out for servers before 6.2. */
static bool is_later_rule(const char *word)
{
    return word[0] == '&' || strcmp(word, "allchannels") == 0 ||
           strcmp(word, "resetchannels") == 0 || strcmp(word, "+zmscore") == 0 ||
           strcmp(word, "-zmscore") == 0;
}

/* Rules for channels came with 6.2. Before that, each user may use all channels. */
static const redisReply *set_old_user(struct test_redis *r, const char *const argv[])
{
    const char *old[OLD_WORDS_MAX];
    int n = 0;

    for (int i = 0; argv[i]; i++) {
        if (n == OLD_WORDS_MAX)
            test_die("too many rules");
        if (!is_later_rule(argv[i]))
            old[n++] = argv[i];
    }
    return test_redis_try_bytes(r, n, old, NULL);
}

bool test_redis_has_channel_rules(const char *test)
{
    bool has = test_server_version() >= 60200;
    if (!has)
        printf("skipped: %s: the server has no rules for channels\n", test);
    return has;
}

const redisReply *test_redis_try_argv(struct test_redis *r, const char *const argv[])
{
    if (argv[1] && strcmp(argv[0], "ACL") == 0 && strcmp(argv[1], "SETUSER") == 0 &&
        test_server_version() < 60200)
        return set_old_user(r, argv);
    return test_redis_try_bytes(r, count(argv), argv, NULL);
}

/* ---- typed replies */

const redisReply *test_redis_do_argv(struct test_redis *r, const char *const argv[])
{
    const redisReply *reply = test_redis_try_argv(r, argv);
    if (!reply)
        test_die("%s: no reply: %s", argv[0],
                 r->closed ? "the connection is closed" : "timed out");
    if (reply->type == REDIS_REPLY_ERROR)
        test_die("%s: %s", argv[0], reply->str);
    return reply;
}

long long test_redis_int_argv(struct test_redis *r, const char *const argv[])
{
    const redisReply *reply = test_redis_do_argv(r, argv);
    if (reply->type == REDIS_REPLY_INTEGER)
        return reply->integer;
    char *end = NULL;
    long long value =
        reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, &end, 10) : 0;
    if (!end || end == reply->str || *end)
        test_die("%s %s: the reply is no number", argv[0], argv[1] ? argv[1] : "");
    return value;
}

const char *test_redis_str_argv(struct test_redis *r, const char *const argv[])
{
    const redisReply *reply = test_redis_do_argv(r, argv);
    if (reply->type == REDIS_REPLY_NIL)
        return NULL;
    if (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_STATUS)
        test_die("%s %s: the reply is no string", argv[0], argv[1] ? argv[1] : "");
    return reply->str;
}

/* ---- shorthands */

bool test_redis_exists(struct test_redis *r, const char *key)
{
    return test_redis_int(r, "EXISTS", key) == 1;
}

void test_redis_config(struct test_redis *r, const char *name, const char *value)
{
    test_redis_do(r, "CONFIG", "SET", name, value);
}

bool test_redis_time_runs_in_scripts(struct test_redis *r)
{
    /* ends when the time has changed, or after 100,000 reads, which take longer than its
     * unit */
    return test_redis_int(r, "EVAL",
                          "local t = redis.call('TIME')\n"
                          "for i = 1, 100000 do\n"
                          "  local u = redis.call('TIME')\n"
                          "  if u[1] ~= t[1] or u[2] ~= t[2] then return 1 end\n"
                          "end\n"
                          "return 0",
                          "0") == 1;
}

void test_redis_kill_clients(struct test_redis *r)
{
    test_redis_do(r, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    test_redis_do(r, "CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes");
}

/* The number behind "\n<name>" and `then` in the text of INFO. */
static long long find_number(const char *text, const char *name, const char *then)
{
    char wanted[128];
    int n = snprintf(wanted, sizeof(wanted), "\n%s%s", name, then);
    if (n < 0 || (size_t)n >= sizeof(wanted))
        test_die("name too long: %s", name);
    const char *at = strstr(text, wanted);
    return at ? strtoll(at + n, NULL, 10) : -1;
}

long long test_redis_calls(struct test_redis *r, const char *command)
{
    char name[96];
    snprintf(name, sizeof(name), "cmdstat_%s", command);
    if (strchr(name, '|') && test_server_version() < 70000)
        *strchr(name, '|') = '\0'; /* it counts all subcommands together */
    long long calls =
        find_number(test_redis_str(r, "INFO", "commandstats"), name, ":calls=");
    return calls < 0 ? 0 : calls;
}

long long test_redis_info(struct test_redis *r, const char *field)
{
    return find_number(test_redis_str(r, "INFO", "everything"), field, ":");
}
