/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holders URL PORT turns N | race N: the library's side in scripts/redisson, beside
 * Holders.java. Takes the fenced mutex "fenced", appends its token to the list "tokens"
 * while it holds the mutex, and unlocks. `turns`: N times one or two holds, each time
 * after the other side's turn. `race`: two threads, N holds each, in any order. Each
 * thread uses the lists over its own connection.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <pthread.h>
#include <rlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, TURN_MAX_S = 60 };

static rlock_mutex_t fenced;
static int port;
static long count;

static void die(const char *what)
{
    fprintf(stderr, "holders: %s: %s\n", what, rlock_errmsg());
    exit(1);
}

static redisContext *connect_to_server(void)
{
    redisContext *redis = redisConnect("127.0.0.1", port);
    if (!redis || redis->err)
        die("no connection");
    return redis;
}

static void expect(void *reply, int type)
{
    if (!reply || ((redisReply *)reply)->type != type)
        die("the server answers something else");
    freeReplyObject(reply);
}

static void hold_once(redisContext *redis)
{
    uint64_t token;

    if (rlock_mutex_lock(&fenced) != 0 || rlock_mutex_gettoken(&fenced, &token) != 0)
        die("lock");
    expect(redisCommand(redis, "RPUSH tokens c:%llu", (unsigned long long)token),
           REDIS_REPLY_INTEGER);
    if (rlock_mutex_unlock(&fenced) != 0)
        die("unlock");
}

static void take_turns(void)
{
    redisContext *redis = connect_to_server();

    for (long i = 0; i < count; i++) {
        expect(redisCommand(redis, "BLPOP turn:c %d", TURN_MAX_S), REDIS_REPLY_ARRAY);
        for (long k = 0; k < 1 + i % 2; k++)
            hold_once(redis);
        expect(redisCommand(redis, "RPUSH turn:java go"), REDIS_REPLY_INTEGER);
    }
    redisFree(redis);
}

static void *race(void *arg)
{
    redisContext *redis = connect_to_server();

    for (long i = 0; i < count; i++)
        hold_once(redis);
    redisFree(redis);
    return arg;
}

int main(int argc, char **argv)
{
    rlock_mutexattr_t attr;
    rlock_client_t *client;
    pthread_t threads[THREADS];

    if (argc != 5)
        return 2;
    port = atoi(argv[2]);
    count = atol(argv[4]);
    if (rlock_client_open(&client, argv[1], NULL) != 0)
        die("open");
    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setclient(&attr, client);
    rlock_mutexattr_setfencing(&attr, 1);
    if (rlock_mutex_init(&fenced, &attr, "fenced") != 0)
        die("init");
    if (strcmp(argv[3], "turns") == 0) {
        take_turns();
    } else {
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, race, NULL) != 0)
                die("thread");
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    rlock_mutex_destroy(&fenced);
    return rlock_client_close(client) != 0;
}
