/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that disappear. A deletion needs an existing key: the step looks for one until its
 * length is over.
 *
 * Which keys are evicted is random, and the exact use of memory is unknown. So some large
 * keys with a TTL are put beside those of the locks, and the limit is such that the
 * eviction of the first large key ends it: all keys evicted before that one are the
 * fault. The server's notifications name them.
 */
#include "faults_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILLERS = 8, TO_FREE = 64 * 1024, MESSAGES_MS = 10000 };
#define FILLER "nemesis:filler:"
#define FILLER_END "262143" /* its last byte; four times the amount to be freed */
#define FILLER_TTL_MS "60000"
#define EVICTED "__keyevent@0__:evicted"
#define NO_MORE "nemesis:no-more"

/* ---- deletion */

static void look_for_key(struct nem_faults *f, struct nem_active *a)
{
    a->redis = test_redis_connect(f->server.path);
}

static bool delete_key(struct nem_active *a, const char *key)
{
    int64_t before = nem_now();
    if (test_redis_int(a->redis, "DEL", key) != 1)
        return false;
    a->record.begin = before;
    snprintf(a->record.what, sizeof(a->record.what), "%s", key);
    return true;
}

static bool delete_lock(struct nem_faults *f, struct nem_active *a)
{
    char key[64];
    (void)f;
    snprintf(key, sizeof(key), "nemesis%u", (unsigned)a->step->lock);
    return delete_key(a, key);
}

static bool delete_companion(struct nem_faults *f, struct nem_active *a)
{
    char key[64];
    (void)f;
    snprintf(key, sizeof(key), "rlock:{nemesis%u}:%s", (unsigned)a->step->lock,
             nem_companion((unsigned)a->step->amount));
    return delete_key(a, key);
}

/* ---- eviction */

static void prepare_eviction(struct nem_faults *f, struct nem_active *a)
{
    a->redis = test_redis_connect(f->server.path);
    a->messages = test_redis_connect(f->server.path);
    test_redis_do(a->messages, "SUBSCRIBE", EVICTED);
    test_redis_config(a->redis, "notify-keyspace-events", "Ee");
    test_redis_config(a->redis, "maxmemory-policy", "volatile-random");
}

static void fill(struct test_redis *r)
{
    for (int i = 0; i < FILLERS; i++) {
        char key[64];
        snprintf(key, sizeof(key), FILLER "%d", i);
        test_redis_do(r, "SETRANGE", key, FILLER_END, "x"); /* short in the file */
        test_redis_do(r, "PEXPIRE", key, FILLER_TTL_MS);
    }
}

static void remove_fillers(struct test_redis *r)
{
    for (int i = 0; i < FILLERS; i++) {
        char key[64];
        snprintf(key, sizeof(key), FILLER "%d", i);
        test_redis_do(r, "DEL", key);
    }
}

/* The number of the lock that has this key; NEM_ALL: none. */
static unsigned lock_of(const char *key)
{
    static const char name[] = "nemesis";
    const char *at = strstr(key, name);
    char *end = NULL;
    if (!at)
        return NEM_ALL;
    at += sizeof(name) - 1;
    unsigned long number = strtoul(at, &end, 10);
    return end == at || number >= NEM_ALL ? NEM_ALL : (unsigned)number;
}

/* One record for each key of a lock. */
static void note(struct nem_faults *f, struct nem_active *a, const char *key)
{
    unsigned lock = lock_of(key);
    if (lock == NEM_ALL)
        return;
    /* the step's own record, written at its end, is that of the last key */
    if (a->stage++ > 0) {
        a->record.end = nem_now();
        nem_record(f, &a->record);
    }
    a->record.lock = (uint16_t)lock;
    snprintf(a->record.what, sizeof(a->record.what), "%s", key);
}

static void collect(struct nem_faults *f, struct nem_active *a)
{
    const redisReply *reply;
    test_redis_do(a->redis, "PUBLISH", EVICTED, NO_MORE);
    while ((reply = test_redis_recv(a->messages, MESSAGES_MS))) {
        const char *key = reply->elements == 3 ? reply->element[2]->str : NULL;
        if (!key || strcmp(key, NO_MORE) == 0)
            return;
        note(f, a, key);
    }
}

static bool evict(struct nem_faults *f, struct nem_active *a)
{
    char limit[32];
    fill(a->redis);
    a->record.begin = nem_now(); /* no key has been evicted so far */
    snprintf(limit, sizeof(limit), "%lld",
             test_redis_info(a->redis, "used_memory") - TO_FREE);
    test_redis_config(a->redis, "maxmemory", limit);
    test_redis_do(a->redis, "PING"); /* the server evicts before each command */
    test_redis_config(a->redis, "maxmemory", "0");
    collect(f, a);
    return a->stage > 0;
}

static bool end_eviction(struct nem_faults *f, struct nem_active *a)
{
    (void)f;
    remove_fillers(a->redis);
    test_redis_config(a->redis, "notify-keyspace-events", "");
    test_redis_config(a->redis, "maxmemory-policy", "noeviction");
    return true;
}

const struct nem_action nem_data_actions[NEM_KINDS] = {
    [NEM_DELETE_LOCK] = { .begin = look_for_key, .during = delete_lock },
    [NEM_DELETE_COMPANION] = { .begin = look_for_key, .during = delete_companion },
    [NEM_EVICT] = { .begin = prepare_eviction, .during = evict, .end = end_eviction },
};
