/* SPDX-License-Identifier: Apache-2.0 */
/* See failover.h. The servers are those of the tests' helpers. */
#include "bench.h"
#include "failover.h"
#include "helpers/redis.h"
#include "wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CALM_MS: while no failover is wanted; else a machine that stands still for a moment
 * has one. FAILOVER_MS: the next one can begin after twice this time. */
enum {
    DOWN_AFTER_MS = 1000,
    CALM_MS = 60000,
    FAILOVER_MS = 2000,
    SOON_MS = 30000,
    PAUSE_MS = 200,
    NUMBER_SIZE = 16,
    CONF_SIZE = 512
};

/* Hashes alone: the keys of locks, of which each contender has one for each lock. */
#define EVENTS "--notify-keyspace-events", "Kh"

struct test_server data[DATA], sentinels[SENTINELS];

static const char *as_text(char buf[NUMBER_SIZE], long number)
{
    snprintf(buf, NUMBER_SIZE, "%ld", number);
    return buf;
}

static bool info_has(const struct test_server *s, const char *text)
{
    struct test_redis *r = test_redis_connect(s->path);
    bool has = strstr(test_redis_str(r, "INFO", "replication"), text) != NULL;

    test_redis_close(r);
    return has;
}

static bool has_replicas(void *arg)
{
    return info_has(arg, "connected_slaves:2");
}

void servers_start(void)
{
    char port[NUMBER_SIZE], conf[CONF_SIZE];

    test_server_start(&data[0], TEST_ARGV(EVENTS));
    as_text(port, data[0].port);
    for (int i = 1; i < DATA; i++)
        test_server_start(&data[i], TEST_ARGV(EVENTS, "--replicaof", "127.0.0.1", port));
    if (!test_wait_until(has_replicas, &data[0], SOON_MS))
        die("the master has no replicas");
    snprintf(conf, sizeof(conf),
             "sentinel monitor mymaster 127.0.0.1 %s 2\n"
             "sentinel down-after-milliseconds mymaster %d\n"
             "sentinel failover-timeout mymaster %d\n",
             port, CALM_MS, FAILOVER_MS);
    for (int i = 0; i < SENTINELS; i++)
        test_server_start_sentinel(&sentinels[i], conf);
}

void servers_stop(void)
{
    for (int i = 0; i < SENTINELS; i++)
        test_server_stop(&sentinels[i]);
    for (int i = 0; i < DATA; i++)
        test_server_stop(&data[i]);
}

/* A number in the reply to SENTINEL MASTER; -1: there is none. */
static long master_field(int sentinel, const char *field)
{
    struct test_redis *r = test_redis_connect(sentinels[sentinel].path);
    const redisReply *reply = test_redis_try(r, "SENTINEL", "MASTER", "mymaster");
    long value = -1;

    for (size_t i = 0;
         reply && reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2)
        if (strcmp(reply->element[i]->str, field) == 0)
            value = atol(reply->element[i + 1]->str);
    test_redis_close(r);
    return value;
}

int servers_master(void)
{
    long port = master_field(0, "port");

    for (int i = 0; i < DATA; i++)
        if (data[i].port == port)
            return i;
    return -1;
}

bool servers_follow(int master)
{
    char port[NUMBER_SIZE * 2];

    snprintf(port, sizeof(port), "master_port:%u\r", (unsigned)data[master].port);
    for (int i = 0; i < SENTINELS; i++)
        if (master_field(i, "port") != data[master].port ||
            master_field(i, "num-other-sentinels") != SENTINELS - 1 ||
            master_field(i, "num-slaves") < DATA - 1)
            return false;
    for (int i = 0; i < DATA; i++)
        if (!info_has(&data[i], i == master ? "connected_slaves:2" : port) ||
            info_has(&data[i], "role:master") != (i == master))
            return false;
    return true;
}

void servers_lead(int master)
{
    char port[NUMBER_SIZE];

    as_text(port, data[master].port);
    for (int i = 0; i < DATA; i++) {
        struct test_redis *r = test_redis_connect(data[i].path);
        if (i == master)
            test_redis_do(r, "REPLICAOF", "NO", "ONE");
        else
            test_redis_do(r, "REPLICAOF", "127.0.0.1", port);
        test_redis_close(r);
    }
}

void servers_copied(int master)
{
    struct test_redis *r = test_redis_connect(data[master].path);
    char replicas[NUMBER_SIZE], ms[NUMBER_SIZE];

    /* WAIT waits for what its own connection has written */
    test_redis_do(r, "SET", "copied", "1");
    if (test_redis_int(r, "WAIT", as_text(replicas, DATA - 1), as_text(ms, SOON_MS / 4)) <
        DATA - 1)
        die("the replicas do not confirm");
    test_redis_close(r);
}

static void set_down_after(long ms)
{
    char text[NUMBER_SIZE];

    for (int i = 0; i < SENTINELS; i++) {
        struct test_redis *r = test_redis_connect(sentinels[i].path);
        test_redis_do(r, "SENTINEL", "SET", "mymaster", "down-after-milliseconds",
                      as_text(text, ms));
        test_redis_close(r);
    }
}

/* Sentinel refuses for a while after the failover before. */
static int64_t command_failover(int sentinel)
{
    struct test_redis *r = test_redis_connect(sentinels[sentinel].path);
    int64_t begun = now_ns(), at;
    const redisReply *reply;

    do {
        at = now_ns();
        reply = test_redis_try(r, "SENTINEL", "FAILOVER", "mymaster");
        if (reply && reply->type == REDIS_REPLY_STATUS)
            break;
        if (at - begun > SOON_MS * (NS_PER_S / 1000))
            die("SENTINEL FAILOVER: %s", reply ? reply->str : "no reply");
        watch_for(PAUSE_MS);
    } while (true);
    test_redis_close(r);
    return at;
}

int64_t servers_fail(enum fault fault, int master, int sentinel)
{
    if (fault == FAULT_COMMAND)
        return command_failover(sentinel);
    set_down_after(DOWN_AFTER_MS);
    int64_t at = now_ns();
    if (fault == FAULT_KILL)
        test_server_kill(&data[master]);
    else
        test_server_pause(&data[master]);
    return at;
}

void servers_mend(enum fault fault, int old, int master)
{
    char port[NUMBER_SIZE];

    if (fault == FAULT_STOP)
        test_server_resume(&data[old]);
    if (fault == FAULT_KILL && old == master)
        test_server_restart_args(&data[old], TEST_ARGV(EVENTS));
    else if (fault == FAULT_KILL)
        test_server_restart_args(&data[old], TEST_ARGV(EVENTS, "--replicaof", "127.0.0.1",
                                                       as_text(port, data[master].port)));
    set_down_after(CALM_MS);
}

bool servers_field(int server, const char *key, char *ret_field, size_t size)
{
    struct test_redis *r = test_redis_connect(data[server].path);
    const redisReply *reply = test_redis_try(r, "HKEYS", key);
    bool found = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0;

    if (found)
        snprintf(ret_field, size, "%s", reply->element[0]->str);
    test_redis_close(r);
    return found;
}
