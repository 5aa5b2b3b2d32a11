/* SPDX-License-Identifier: Apache-2.0 */
/* Locks as people write them by hand, each with the fault that it is known for. They
 * poll, because nothing tells them that the lock is free. */
#include "sale.h"

#include <rlock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The header's inline functions give warnings of conversions. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <hiredis.h>
#pragma GCC diagnostic pop

#define KEY "flash-sale:naive"

enum { PORT = 6379, POLL_US = 1000, POLL_SPREAD_US = 3000 };

static const char compare_and_delete[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end "
    "return 0";

static _Thread_local redisContext *redis;
static _Thread_local unsigned draw; /* of the pauses between two attempts */
static _Thread_local char token[32];

static void fail(const char *what)
{
    fprintf(stderr, "naive lock: %s\n", what);
    _exit(2);
}

/* Connects to the server that rlock uses. Understands unix:///path and
 * redis://host[:port], with nothing behind them. */
static redisContext *dial(void)
{
    char url[512], source[512], host[256];
    int port = PORT;

    if (rlock_client_getserver(NULL, url, sizeof(url), source, sizeof(source)) != 0)
        fail(rlock_errmsg());
    if (strncmp(url, "unix://", 7) == 0)
        return redisConnectUnix(url + 7);
    if (sscanf(url, "redis://%255[^:/]:%d", host, &port) < 1)
        fail("the server's URL is neither unix:///path nor redis://host:port");
    return redisConnect(host, port);
}

static void connect_once(void)
{
    if (redis)
        return;
    redis = dial();
    if (!redis || redis->err)
        fail(redis ? redis->errstr : "out of memory");
    snprintf(token, sizeof(token), "%d:%p", (int)getpid(), (void *)&draw);
    draw = (unsigned)getpid() ^ (unsigned)now_us();
}

/* The reply's type; frees the reply. */
static int type_of(redisReply *reply)
{
    if (!reply)
        fail(redis->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        fail(reply->str);
    int type = reply->type;
    freeReplyObject(reply);
    return type;
}

static void pause_between(void)
{
    sleep_us(POLL_US + rand_r(&draw) % POLL_SPREAD_US);
}

static void no_lock(void)
{
}

static void lock_for_ever(void)
{
    connect_once();
    while (type_of(redisCommand(redis, "SET " KEY " %s NX", token)) == REDIS_REPLY_NIL)
        pause_between();
}

static void lock_with_expiry(void)
{
    connect_once();
    while (type_of(redisCommand(redis, "SET " KEY " %s NX PX %d", token,
                                (int)SALE_NAIVE_EXPIRY_MS)) == REDIS_REPLY_NIL)
        pause_between();
}

static void unlock_delete(void)
{
    type_of(redisCommand(redis, "DEL " KEY));
}

static void unlock_compare(void)
{
    type_of(redisCommand(redis, "EVAL %s 1 " KEY " %s", compare_and_delete, token));
}

void naive_clear(void)
{
    connect_once();
    unlock_delete();
    redisFree(redis);
    redis = NULL;
}

static const struct till none = {
    .word = "none",
    .title = "no lock",
    .lesson = "buyers read the same stock; the last to write it back wins",
    .patience_ms = 30000,
    .open = no_lock,
    .lock = no_lock,
    .unlock = no_lock,
};

/* This run always hangs, because the holder dies. So give up sooner. */
static const struct till for_ever = {
    .word = "setnx",
    .title = "SETNX, no expiry",
    .lesson = "the holder died; nobody ever removes its key",
    .patience_ms = 5000,
    .open = no_lock,
    .lock = lock_for_ever,
    .unlock = unlock_delete,
};

static const struct till expiry_delete = {
    .word = "delete",
    .title = "SET NX PX 1000 + DEL",
    .lesson = "a payment outlives the expiry; its DEL then removes the next one's lock",
    .patience_ms = 30000,
    .open = no_lock,
    .lock = lock_with_expiry,
    .unlock = unlock_delete,
};

static const struct till expiry_compare = {
    .word = "compare",
    .title = "SET NX PX 1000 + compare",
    .lesson = "deletes only its own, but a payment still outlives the expiry",
    .patience_ms = 30000,
    .open = no_lock,
    .lock = lock_with_expiry,
    .unlock = unlock_compare,
};

const struct till *const naive_tills[] = { &none, &for_ever, &expiry_delete,
                                           &expiry_compare, NULL };
