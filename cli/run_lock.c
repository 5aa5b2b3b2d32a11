/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of `rlock run`, of any type. Thread: main only. */
#include "run.h"

#include <errno.h>

static int init_exclusive(struct run_lock *lock, const struct run_options *options,
                          rlock_client_t *client)
{
    rlock_mutexattr_t attr;

    rlock_mutexattr_init(&attr);
    int rc = rlock_mutexattr_setclient(&attr, client);
    if (rc == 0)
        rc = rlock_mutexattr_setlease(&attr, options->lease_ms);
    if (rc == 0)
        rc = rlock_mutexattr_setfencing(&attr, !options->no_token);
    if (rc == 0)
        rc = rlock_mutexattr_setoutage(&attr, RLOCK_OUTAGE_FAIL);
    if (rc == 0)
        rc = lock->kind == RUN_FAIR
                 ? rlock_fair_init(&lock->of.fair, &attr, options->name)
                 : rlock_mutex_init(&lock->of.mutex, &attr, options->name);
    rlock_mutexattr_destroy(&attr);
    return rc;
}

int run_lock_init(struct run_lock *lock, const struct run_options *options,
                  rlock_client_t *client)
{
    rlock_rwlockattr_t attr;

    lock->kind = options->kind;
    if (lock->kind == RUN_MUTEX || lock->kind == RUN_FAIR)
        return init_exclusive(lock, options, client);
    rlock_rwlockattr_init(&attr);
    int rc = rlock_rwlockattr_setclient(&attr, client);
    if (rc == 0)
        rc = rlock_rwlockattr_setlease(&attr, options->lease_ms);
    if (rc == 0)
        rc = rlock_rwlockattr_setfencing(&attr, !options->no_token);
    if (rc == 0)
        rc = rlock_rwlockattr_setoutage(&attr, RLOCK_OUTAGE_FAIL);
    if (rc == 0)
        rc = rlock_rwlock_init(&lock->of.rwlock, &attr, options->name);
    rlock_rwlockattr_destroy(&attr);
    return rc;
}

static int try_it(struct run_lock *lock)
{
    switch (lock->kind) {
    case RUN_MUTEX:
        return rlock_mutex_trylock(&lock->of.mutex);
    case RUN_FAIR:
        return rlock_fair_trylock(&lock->of.fair);
    case RUN_READ:
        return rlock_rwlock_tryrdlock(&lock->of.rwlock);
    default:
        return rlock_rwlock_trywrlock(&lock->of.rwlock);
    }
}

static int wait_until(struct run_lock *lock, const struct timespec *deadline)
{
    switch (lock->kind) {
    case RUN_MUTEX:
        return rlock_mutex_clocklock(&lock->of.mutex, CLOCK_MONOTONIC, deadline);
    case RUN_FAIR:
        return rlock_fair_clocklock(&lock->of.fair, CLOCK_MONOTONIC, deadline);
    case RUN_READ:
        return rlock_rwlock_clockrdlock(&lock->of.rwlock, CLOCK_MONOTONIC, deadline);
    default:
        return rlock_rwlock_clockwrlock(&lock->of.rwlock, CLOCK_MONOTONIC, deadline);
    }
}

static int wait_for_it(struct run_lock *lock)
{
    switch (lock->kind) {
    case RUN_MUTEX:
        return rlock_mutex_lock(&lock->of.mutex);
    case RUN_FAIR:
        return rlock_fair_lock(&lock->of.fair);
    case RUN_READ:
        return rlock_rwlock_rdlock(&lock->of.rwlock);
    default:
        return rlock_rwlock_wrlock(&lock->of.rwlock);
    }
}

int run_lock_take(struct run_lock *lock, bool try, const struct timespec *deadline)
{
    if (try)
        return try_it(lock);
    return deadline ? wait_until(lock, deadline) : wait_for_it(lock);
}

int run_lock_release(struct run_lock *lock)
{
    switch (lock->kind) {
    case RUN_MUTEX:
        return rlock_mutex_unlock(&lock->of.mutex);
    case RUN_FAIR:
        return rlock_fair_unlock(&lock->of.fair);
    default:
        return rlock_rwlock_unlock(&lock->of.rwlock);
    }
}

rlock_state_t run_lock_state(const struct run_lock *lock)
{
    rlock_state_t state = RLOCK_UNHELD;

    switch (lock->kind) {
    case RUN_MUTEX:
        rlock_mutex_getstate(&lock->of.mutex, &state);
        break;
    case RUN_FAIR:
        rlock_fair_getstate(&lock->of.fair, &state);
        break;
    default:
        rlock_rwlock_getstate(&lock->of.rwlock, &state);
        break;
    }
    return state;
}

uint64_t run_lock_token(const struct run_lock *lock)
{
    uint64_t token = 0;

    switch (lock->kind) {
    case RUN_MUTEX:
        rlock_mutex_gettoken(&lock->of.mutex, &token);
        break;
    case RUN_FAIR:
        rlock_fair_gettoken(&lock->of.fair, &token);
        break;
    default:
        rlock_rwlock_gettoken(&lock->of.rwlock, &token);
        break;
    }
    return token;
}
