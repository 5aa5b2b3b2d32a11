/* SPDX-License-Identifier: Apache-2.0 */
/* See sacrifice.h. State: one for the process; the mutex guards the variables below
 * it. */
#include "sacrifice.h"

#include "oplog.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WAIT_MS = 300, STEP_MS = 20, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

static struct {
    pthread_t thread;
    long lease_ms;
    rlock_mutex_t mutex_lock;
    rlock_fair_t fair;
    rlock_rwlock_t rwlock;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool working, busy, end;
} sacrifice = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void check(int rc)
{
    if (rc != 0) {
        fprintf(stderr, "crewman: a lock to be sacrificed: %s\n", rlock_errmsg());
        abort();
    }
}

static void init_locks(rlock_client_t *client)
{
    rlock_mutexattr_t attr;
    rlock_rwlockattr_t rwattr;
    check(rlock_mutexattr_init(&attr));
    check(rlock_mutexattr_setclient(&attr, client));
    check(rlock_mutexattr_setfencing(&attr, 1));
    check(rlock_mutex_init(&sacrifice.mutex_lock, &attr, NEM_SACRIFICE "0"));
    check(rlock_fair_init(&sacrifice.fair, &attr, NEM_SACRIFICE "1"));
    check(rlock_rwlockattr_init(&rwattr));
    check(rlock_rwlockattr_setclient(&rwattr, client));
    check(rlock_rwlockattr_setfencing(&rwattr, 1));
    check(rlock_rwlock_init(&sacrifice.rwlock, &rwattr, NEM_SACRIFICE "2"));
}

static int take(unsigned which, bool reading)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t ns = t.tv_nsec + WAIT_MS * (int64_t)NS_PER_MS;
    t.tv_sec += (time_t)(ns / NS_PER_S);
    t.tv_nsec = (long)(ns % NS_PER_S);
    return which == 0   ? rlock_mutex_timedlock(&sacrifice.mutex_lock, &t)
           : which == 1 ? rlock_fair_timedlock(&sacrifice.fair, &t)
           : reading    ? rlock_rwlock_timedrdlock(&sacrifice.rwlock, &t)
                        : rlock_rwlock_timedwrlock(&sacrifice.rwlock, &t);
}

static int leave(unsigned which)
{
    return which == 0   ? rlock_mutex_unlock(&sacrifice.mutex_lock)
           : which == 1 ? rlock_fair_unlock(&sacrifice.fair)
                        : rlock_rwlock_unlock(&sacrifice.rwlock);
}

static bool is_working(void)
{
    pthread_mutex_lock(&sacrifice.mutex);
    bool working = sacrifice.working;
    pthread_mutex_unlock(&sacrifice.mutex);
    return working;
}

static void pause_step(void)
{
    const struct timespec step = { 0, STEP_MS * (long)NS_PER_MS };
    nanosleep(&step, NULL);
}

static void use_one(unsigned long n)
{
    unsigned which = (unsigned)(n % NEM_SACRIFICES);
    if (take(which, n % 2 == 0) == 0) {
        long steps = (long)(n % 5 + 1) * sacrifice.lease_ms / 5 / STEP_MS;
        for (long i = 0; i < steps && is_working(); i++)
            pause_step();
        leave(which);
    }
    pause_step();
}

static void *run(void *arg)
{
    unsigned long n = 0;
    (void)arg;
    for (;;) {
        pthread_mutex_lock(&sacrifice.mutex);
        sacrifice.busy = false;
        pthread_cond_broadcast(&sacrifice.changed);
        while (!sacrifice.working && !sacrifice.end)
            pthread_cond_wait(&sacrifice.changed, &sacrifice.mutex);
        bool end = sacrifice.end;
        sacrifice.busy = !end;
        pthread_mutex_unlock(&sacrifice.mutex);
        if (end)
            return NULL;
        while (is_working())
            use_one(n++);
    }
}

void nem_sacrifice_start(rlock_client_t *client, long lease_ms)
{
    sacrifice.lease_ms = lease_ms;
    init_locks(client);
    if (pthread_create(&sacrifice.thread, NULL, run, NULL) != 0)
        abort();
}

void nem_sacrifice_begin(void)
{
    pthread_mutex_lock(&sacrifice.mutex);
    sacrifice.working = true;
    pthread_cond_broadcast(&sacrifice.changed);
    pthread_mutex_unlock(&sacrifice.mutex);
}

void nem_sacrifice_rest(void)
{
    pthread_mutex_lock(&sacrifice.mutex);
    sacrifice.working = false;
    while (sacrifice.busy)
        pthread_cond_wait(&sacrifice.changed, &sacrifice.mutex);
    pthread_mutex_unlock(&sacrifice.mutex);
}

void nem_sacrifice_stop(void)
{
    pthread_mutex_lock(&sacrifice.mutex);
    sacrifice.end = true;
    pthread_cond_broadcast(&sacrifice.changed);
    pthread_mutex_unlock(&sacrifice.mutex);
    pthread_join(sacrifice.thread, NULL);
    check(rlock_mutex_destroy(&sacrifice.mutex_lock));
    check(rlock_fair_destroy(&sacrifice.fair));
    check(rlock_rwlock_destroy(&sacrifice.rwlock));
}
