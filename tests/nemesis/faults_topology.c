/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A master, two replicas and three sentinels. The sentinels do not notice a master that
 * does not answer, except while a fault wants them to: a machine that stands still for a
 * moment causes no failover. Servers keep nothing on disk. No server begins as a replica,
 * so one that is started again is an empty master at first, as in a user's setup.
 */
#include "faults_impl.h"

#include "die.h"
#include "wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONF_MAX = 1024, BEGIN_MS = 60000, FAILOVER_MS = 3000 };
enum { CALM_MS = 300000, DOWN_AFTER_MS = 500 };
#define OTHERS "2" /* replicas of a master, and the majority of the sentinels */

static const char *as_text(char buf[16], long number)
{
    snprintf(buf, 16, "%ld", number);
    return buf;
}

/* ---- looks */

/* A field of the reply to SENTINEL MASTER; NULL: there is none. */
static const char *field_of(const redisReply *reply, const char *field)
{
    for (size_t i = 0;
         reply && reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2)
        if (strcmp(reply->element[i]->str, field) == 0)
            return reply->element[i + 1]->str;
    return "";
}

static unsigned server_at(const struct nem_topology *t, long port)
{
    for (unsigned i = 0; i < NEM_SERVERS; i++)
        if (t->data[i].port == port)
            return i;
    return NEM_NONE;
}

unsigned nem_topology_named(const struct nem_topology *t, unsigned sentinel)
{
    struct test_redis *r = test_redis_connect(t->sentinels[sentinel].path);
    const redisReply *reply = test_redis_try(r, "SENTINEL", "MASTER", NEM_MASTER);
    unsigned found = server_at(t, atol(field_of(reply, "port")));
    test_redis_close(r);
    return found;
}

bool nem_topology_fails_over(const struct nem_topology *t)
{
    bool does = false;
    for (unsigned i = 0; i < NEM_SERVERS && !does; i++) {
        struct test_redis *r = test_redis_connect(t->sentinels[i].path);
        const redisReply *reply = test_redis_try(r, "SENTINEL", "MASTER", NEM_MASTER);
        does = strstr(field_of(reply, "flags"), "failover_in_progress") != NULL;
        test_redis_close(r);
    }
    return does;
}

static bool sentinel_knows(const struct nem_topology *t, unsigned sentinel,
                           unsigned master)
{
    struct test_redis *r = test_redis_connect(t->sentinels[sentinel].path);
    const redisReply *reply = test_redis_try(r, "SENTINEL", "MASTER", NEM_MASTER);
    bool knows = server_at(t, atol(field_of(reply, "port"))) == master &&
                 strcmp(field_of(reply, "flags"), "master") == 0 &&
                 strcmp(field_of(reply, "num-slaves"), OTHERS) == 0 &&
                 strcmp(field_of(reply, "num-other-sentinels"), OTHERS) == 0;
    test_redis_close(r);
    return knows;
}

/* INFO of a server; "": it does not answer. */
static void look_at(const struct nem_topology *t, unsigned i, char *info, size_t size)
{
    struct test_redis *r = test_redis_connect(t->data[i].path);
    const redisReply *reply = test_redis_try(r, "INFO", "replication");
    snprintf(info, size, "%s",
             reply && reply->type != REDIS_REPLY_ERROR && reply->str ? reply->str : "");
    test_redis_close(r);
}

static bool is_masters(const char *info)
{
    unsigned online = 0;
    for (const char *at = info; (at = strstr(at, "state=online")); at++)
        online++;
    /* only with min-replicas-to-write */
    const char *good = strstr(info, "min_slaves_good_slaves:");
    return strstr(info, "role:master") && online == NEM_SERVERS - 1 &&
           (!good || strncmp(good, "min_slaves_good_slaves:" OTHERS,
                             strlen("min_slaves_good_slaves:" OTHERS)) == 0);
}

static bool follows(const struct nem_topology *t, const char *info, unsigned master)
{
    char port[32];
    snprintf(port, sizeof(port), "master_port:%u\r", (unsigned)t->data[master].port);
    return strstr(info, "role:slave") && strstr(info, port);
}

bool nem_topology_is_whole(const struct nem_topology *t, unsigned master)
{
    char info[NEM_INFO_MAX];
    for (unsigned i = 0; i < NEM_SERVERS; i++) {
        look_at(t, i, info, sizeof(info));
        bool right = i == master ? is_masters(info)
                                 : follows(t, info, master) &&
                                       strstr(info, "master_link_status:up");
        if (!right)
            return false;
    }
    for (unsigned i = 0; i < NEM_SERVERS; i++)
        if (!sentinel_knows(t, i, master))
            return false;
    return true;
}

static bool sentinel_tilts(const struct nem_topology *t, unsigned sentinel)
{
    struct test_redis *r = test_redis_connect(t->sentinels[sentinel].path);
    const redisReply *reply = test_redis_try(r, "INFO", "sentinel");
    bool tilts = reply && reply->str && strstr(reply->str, "sentinel_tilt:1");
    test_redis_close(r);
    return tilts;
}

bool nem_topology_tilts(const struct nem_topology *t)
{
    for (unsigned i = 0; i < NEM_SERVERS; i++)
        if (sentinel_tilts(t, i))
            return true;
    return false;
}

void nem_topology_tell(const struct nem_topology *t)
{
    char info[NEM_INFO_MAX];
    for (unsigned i = 0; i < NEM_SERVERS; i++)
        fprintf(stderr, "sentinel %u names server %u%s\n", i, nem_topology_named(t, i),
                sentinel_tilts(t, i) ? ", in tilt mode" : "");
    for (unsigned i = 0; i < NEM_SERVERS; i++) {
        fprintf(stderr, "server %u, port %u:\n", i, (unsigned)t->data[i].port);
        if (test_server_pid(&t->data[i]) <= 0) {
            fprintf(stderr, "does not run\n");
            continue;
        }
        look_at(t, i, info, sizeof(info));
        fprintf(stderr, "%s", info);
    }
}

/* ---- orders */

void nem_topology_join(const struct nem_topology *t, unsigned master)
{
    char info[NEM_INFO_MAX], port[16];
    for (unsigned i = 0; i < NEM_SERVERS; i++) {
        look_at(t, i, info, sizeof(info));
        if (i == master || info[0] == '\0' || follows(t, info, master))
            continue;
        struct test_redis *r = test_redis_connect(t->data[i].path);
        test_redis_do(r, "REPLICAOF", "127.0.0.1", as_text(port, t->data[master].port));
        test_redis_close(r);
    }
}

void nem_topology_end_ring(const struct nem_topology *t, unsigned master)
{
    char info[NEM_INFO_MAX];
    look_at(t, master, info, sizeof(info));
    if (!strstr(info, "role:slave"))
        return;
    printf(
        "server %u, which all sentinels name, is a replica: it is ordered to be none\n",
        master);
    struct test_redis *r = test_redis_connect(t->data[master].path);
    test_redis_do(r, "REPLICAOF", "NO", "ONE");
    test_redis_close(r);
}

void nem_topology_expect(const struct nem_topology *t, bool failure)
{
    char ms[16];
    for (unsigned i = 0; i < NEM_SERVERS; i++) {
        struct test_redis *r = test_redis_connect(t->sentinels[i].path);
        test_redis_do(r, "SENTINEL", "SET", NEM_MASTER, "down-after-milliseconds",
                      as_text(ms, failure ? test_ms(DOWN_AFTER_MS) : CALM_MS));
        test_redis_close(r);
    }
}

void nem_topology_fail_over(const struct nem_topology *t, unsigned sentinel)
{
    struct test_redis *r = test_redis_connect(t->sentinels[sentinel].path);
    /* an error says that a failover is under way, or that no replica is good yet */
    (void)test_redis_try(r, "SENTINEL", "FAILOVER", NEM_MASTER);
    test_redis_close(r);
}

/* ---- start and stop */

static bool is_ready(void *arg)
{
    struct nem_topology *t = arg;
    return nem_topology_is_whole(t, t->master);
}

static bool has_replicas(void *arg)
{
    const struct nem_topology *t = arg;
    char info[NEM_INFO_MAX];
    look_at(t, t->master, info, sizeof(info));
    return is_masters(info);
}

static void start_sentinel(const struct nem_topology *t, struct test_server *s)
{
    char conf[CONF_MAX];
    snprintf(conf, sizeof(conf),
             "sentinel monitor %s 127.0.0.1 %u " OTHERS "\n"
             "sentinel down-after-milliseconds %s %d\n"
             "sentinel failover-timeout %s %ld\n"
             "sentinel parallel-syncs %s %d\n",
             NEM_MASTER, (unsigned)t->data[t->master].port, NEM_MASTER, CALM_MS,
             NEM_MASTER, test_ms(FAILOVER_MS), NEM_MASTER, NEM_SERVERS - 1);
    test_server_start_sentinel(s, conf);
}

void nem_topology_start(struct nem_topology *t, const char *const args[])
{
    memset(t, 0, sizeof(*t));
    for (unsigned i = 0; i < NEM_SERVERS; i++)
        test_server_start(&t->data[i], args);
    nem_topology_join(t, t->master);
    /* sentinels that begin earlier look for replicas again after 10 s only */
    if (!test_wait_until(has_replicas, t, BEGIN_MS))
        test_die("the master has no replicas");
    for (unsigned i = 0; i < NEM_SERVERS; i++)
        start_sentinel(t, &t->sentinels[i]);
    if (!test_wait_until(is_ready, t, BEGIN_MS))
        test_die("the sentinels do not agree");
}

void nem_topology_stop(struct nem_topology *t)
{
    for (unsigned i = 0; i < NEM_SERVERS; i++)
        test_server_stop(&t->sentinels[i]);
    for (unsigned i = 0; i < NEM_SERVERS; i++)
        test_server_stop(&t->data[i]);
}

void nem_topology_await(struct nem_topology *t)
{
    if (!test_wait_until(is_ready, t, BEGIN_MS))
        test_die("the servers do not follow server %u", t->master);
}
