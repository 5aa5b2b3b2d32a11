/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for conditions in other threads of the fixture's programs, with a mutex of the
 * same client. For a program of one file. Thread: a test's main thread. */
#ifndef TEST_CONDTASK_H
#define TEST_CONDTASK_H

#include "fixture.h"

enum { CONDTASK_SOON_MS = 30000 };
#define CONDTASK_KEY "rlock:{c}:cond"

static inline void cond_of(rlock_cond_t *cond, rlock_client_t *owner, int outage)
{
    rlock_condattr_t attr;

    OK(rlock_condattr_init(&attr));
    OK(rlock_condattr_setclient(&attr, owner));
    OK(rlock_condattr_setoutage(&attr, outage));
    OK(rlock_cond_init(cond, &attr, "c"));
    OK(rlock_condattr_destroy(&attr));
}

/* A wait for the condition "c" with the mutex "m", until it returns. */
struct condtask {
    rlock_mutex_t mutex;
    rlock_cond_t cond;
    struct task task;
};

static inline int condtask_run(void *arg)
{
    struct condtask *t = arg;
    int rc = rlock_mutex_lock(&t->mutex);

    if (rc == 0)
        rc = rlock_cond_wait(&t->cond, &t->mutex);
    int end = rlock_mutex_unlock(&t->mutex);
    return rc != 0 ? rc : end;
}

struct condtask_count {
    struct test_redis *redis;
    long long count;
};

static inline bool condtask_count_is(void *arg)
{
    const struct condtask_count *c = arg;
    return test_redis_int(c->redis, "ZCOUNT", CONDTASK_KEY, "100000000000000", "+inf") ==
           c->count;
}

/* Waits until so many ids wait at the server. */
static inline void condtask_waiting(struct test_redis *r, long long count)
{
    struct condtask_count c = { r, count };
    ck_assert(test_wait_until(condtask_count_is, &c, CONDTASK_SOON_MS));
}

static inline bool condtask_mutex_is_free(void *r)
{
    return !test_redis_exists(r, "m");
}

/* Begins a wait as the n-th. */
static inline void condtask_start(struct condtask *t, rlock_client_t *owner,
                                  struct test_redis *r, long long n)
{
    t->mutex = mutex_of(owner, "m");
    cond_of(&t->cond, owner, RLOCK_OUTAGE_WAIT);
    task_start(&t->task, condtask_run, t);
    condtask_waiting(r, n);
    ck_assert(test_wait_until(condtask_mutex_is_free, r, CONDTASK_SOON_MS));
}

static inline void condtask_ends(struct condtask *t)
{
    ck_assert(task_ends(&t->task, CONDTASK_SOON_MS));
    OK(task_join(&t->task));
}

#endif
