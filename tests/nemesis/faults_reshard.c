/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock's hash slot goes from one master to another, key by key, as redis-cli(1) moves
 * it: at once, or it stays half-way for a while. The fault is over when all nodes know
 * where it is, and the new master's replica has its keys.
 */
#include "faults_impl.h"

#include "wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, KEY_MAX = 256, LOOK_MS = 10, REPAIR_MS = 5000, BITS = 8 };
enum { MOVING, AGREEING };
#define MIGRATE_MS "10000"

static const char *as_text(char buf[16], unsigned long number)
{
    snprintf(buf, 16, "%lu", number);
    return buf;
}

static unsigned hash_slot_of(const struct nem_faults *f, const struct nem_active *a)
{
    return f->nodes.hash_slot[a->step->lock];
}

static unsigned from_shard(const struct nem_faults *f, const struct nem_active *a)
{
    return f->nodes.shard[a->step->lock];
}

static unsigned to_shard(const struct nem_faults *f, const struct nem_active *a)
{
    return (from_shard(f, a) + 1 + a->record.index % (TEST_CLUSTER_MASTERS - 1)) %
           TEST_CLUSTER_MASTERS;
}

/* ---- keys */

/* A key that is gone by now is no failure; any other failure is tried again. */
static void move_key(struct nem_faults *f, struct nem_active *a, const char *key)
{
    char port[16];
    const struct test_node *to = &f->nodes.node[f->nodes.master[to_shard(f, a)]];
    const redisReply *reply = test_redis_try(
        a->redis, "MIGRATE", "127.0.0.1", as_text(port, to->port), key, "0", MIGRATE_MS);
    a->record.hits +=
        reply && reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0;
}

/* Moves some. False: there was none. */
static bool move_some(struct nem_faults *f, struct nem_active *a)
{
    char number[16], count[16], keys[BATCH][KEY_MAX];
    const redisReply *reply =
        test_redis_do(a->redis, "CLUSTER", "GETKEYSINSLOT",
                      as_text(number, hash_slot_of(f, a)), as_text(count, BATCH));
    size_t n = reply->elements;
    for (size_t i = 0; i < n && i < BATCH; i++)
        snprintf(keys[i], sizeof(keys[i]), "%s", reply->element[i]->str);
    for (size_t i = 0; i < n && i < BATCH; i++)
        move_key(f, a, keys[i]);
    return n > 0;
}

/* ---- the hash slot */

static void mark(struct nem_faults *f, struct nem_active *a)
{
    unsigned hash_slot = hash_slot_of(f, a);
    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++)
        if (f->nodes.hash_slot[i] == hash_slot)
            a->record.locks[i / BITS] |= (uint8_t)(1U << i % BITS);
}

static void begin_move(struct nem_faults *f, struct nem_active *a)
{
    char number[16], key[32];
    struct nem_nodes *n = &f->nodes;
    unsigned from = n->master[from_shard(f, a)], to = n->master[to_shard(f, a)];
    mark(f, a);
    snprintf(a->record.what, sizeof(a->record.what), "hash slot %u from node %u to %u",
             hash_slot_of(f, a), from, to);
    as_text(number, hash_slot_of(f, a));
    a->redis = test_redis_connect(n->node[from].server.path);
    a->messages = test_redis_connect(n->node[to].server.path);
    test_redis_do(a->messages, "CLUSTER", "SETSLOT", number, "IMPORTING",
                  n->node[from].id);
    test_redis_do(a->redis, "CLUSTER", "SETSLOT", number, "MIGRATING", n->node[to].id);
    snprintf(key, sizeof(key), "nemesis%u", (unsigned)a->step->lock);
    if (a->step->kind == NEM_RESHARD_HALFWAY && a->step->amount == 1)
        move_key(f, a, key);
}

static bool stay_halfway(struct nem_faults *f, struct nem_active *a)
{
    if (a->step->kind == NEM_RESHARD)
        return true;
    if (a->step->amount == 2)
        move_some(f, a);
    return false;
}

static bool set_owner(struct test_redis *r, const char *number, const char *node)
{
    const redisReply *reply =
        test_redis_try(r, "CLUSTER", "SETSLOT", number, "NODE", node);
    return reply && reply->type == REDIS_REPLY_STATUS;
}

/* The new owner first: so the hash slot is never without one. The nodes' own messages
 * tell the others. False: the old owner still has a key. */
static bool close_slot(struct nem_faults *f, struct nem_active *a)
{
    char number[16];
    const struct nem_nodes *n = &f->nodes;
    const char *to = n->node[n->master[to_shard(f, a)]].id;
    as_text(number, hash_slot_of(f, a));
    if (!set_owner(a->messages, number, to) || !set_owner(a->redis, number, to))
        return false;
    a->until = nem_now() + REPAIR_MS * NEM_NS_PER_MS;
    return true;
}

/* An operator's remedy for a hash slot that no node has. The judge excuses what it took
 * until then. */
static void repair(struct nem_faults *f, struct nem_active *a)
{
    enum { NS_PER_US = 1000 };
    char number[16];
    const struct nem_nodes *n = &f->nodes;
    printf("%s: the nodes do not agree; repaired\n", a->record.what);
    a->record.took_us = (uint32_t)((nem_now() - a->record.begin) / NS_PER_US) + 1;
    as_text(number, hash_slot_of(f, a));
    (void)test_redis_try(a->messages, "CLUSTER", "BUMPEPOCH");
    set_owner(a->messages, number, n->node[n->master[to_shard(f, a)]].id);
    a->until = nem_now() + REPAIR_MS * NEM_NS_PER_MS;
}

static bool all_know(struct nem_faults *f, struct nem_active *a)
{
    struct nem_nodes *n = &f->nodes;
    unsigned hash_slot = hash_slot_of(f, a), to = to_shard(f, a);
    if (nem_now() < a->look_at)
        return false;
    a->look_at = nem_now() + LOOK_MS * (int64_t)NEM_NS_PER_MS;
    if (!nem_nodes_see(n, hash_slot, n->master[to])) {
        if (nem_now() > a->until)
            repair(f, a);
        return false;
    }
    if (!nem_nodes_are_whole(n))
        return false;
    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++)
        if (n->hash_slot[i] == hash_slot)
            n->shard[i] = to;
    return true;
}

static bool end_move(struct nem_faults *f, struct nem_active *a)
{
    if (a->stage == AGREEING)
        return all_know(f, a);
    if (!move_some(f, a) && close_slot(f, a))
        a->stage = AGREEING;
    return false;
}

const struct nem_action nem_reshard_actions[NEM_KINDS] = {
    [NEM_RESHARD] = { .begin = begin_move, .during = stay_halfway, .end = end_move },
    [NEM_RESHARD_HALFWAY] = { .begin = begin_move,
                              .during = stay_halfway,
                              .end = end_move },
};
