/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three types of locks, each of which goes from one client to a thread of another
 * client that waits for it: for servers, and ways to them, that differ from the usual
 * one. For a program of one file. Thread: a test's main thread.
 */
#ifndef TEST_KINDS_H
#define TEST_KINDS_H

#include "fixture.h"

enum { KINDS = 3, KINDS_SOON_MS = 20000 };

static inline int run_fair_pair(void *fair)
{
    int rc = rlock_fair_lock(fair);

    return rc != 0 ? rc : rlock_fair_unlock(fair);
}

static inline int run_read_pair(void *rwlock)
{
    int rc = rlock_rwlock_rdlock(rwlock);

    return rc != 0 ? rc : rlock_rwlock_unlock(rwlock);
}

static inline rlock_fair_t fair_of(rlock_client_t *c, const char *name)
{
    rlock_mutexattr_t attr;
    rlock_fair_t fair;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, c));
    OK(rlock_fair_init(&fair, &attr, name));
    OK(rlock_mutexattr_destroy(&attr));
    return fair;
}

/* Asserts that the waiter gets its lock and gives it back. */
static inline void waiter_is_woken(struct task *task)
{
    ck_assert(task_ends(task, KINDS_SOON_MS));
    OK(task_join(task));
}

/* A mutex, a fair lock and a read-write lock: `from` holds them, threads of `to` wait. */
static inline void hand_over_all_kinds(rlock_client_t *from, rlock_client_t *to)
{
    rlock_mutex_t m = mutex_of(from, "m"), other_m = mutex_of(to, "m");
    rlock_fair_t fair = fair_of(from, "f"), other_fair = fair_of(to, "f");
    rlock_rwlock_t rw = rwlock_of(from, "rw"), other_rw = rwlock_of(to, "rw");
    struct task tasks[KINDS];

    OK(rlock_mutex_lock(&m));
    OK(rlock_fair_lock(&fair));
    OK(rlock_rwlock_wrlock(&rw));
    task_start(&tasks[0], run_pair, &other_m);
    task_start(&tasks[1], run_fair_pair, &other_fair);
    task_start(&tasks[2], run_read_pair, &other_rw);
    ck_assert(wait_waiters(to, KINDS));
    OK(rlock_mutex_unlock(&m));
    OK(rlock_fair_unlock(&fair));
    OK(rlock_rwlock_unlock(&rw));
    for (int i = 0; i < KINDS; i++)
        waiter_is_woken(&tasks[i]);
}

/* For test_wait_until: the client's hold, or holds, were renewed so many times. */
struct renewed {
    rlock_client_t *client;
    uint64_t count;
};

static inline bool has_renewed(void *arg)
{
    const struct renewed *r = arg;

    return stats_of(r->client).renewals >= r->count;
}

static inline void wait_renewals(rlock_client_t *c, uint64_t more)
{
    struct renewed r = { c, stats_of(c).renewals + more };

    ck_assert(test_wait_until(has_renewed, &r, KINDS_SOON_MS));
}

#endif
