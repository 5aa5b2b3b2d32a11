/* SPDX-License-Identifier: Apache-2.0 */
/* See sharing.h. */
#include "sharing.h"

#include <sched.h>

static int init_rwlock(union sharing_lock *lock, const char *name, rlock_client_t *client)
{
    rlock_rwlockattr_t attr;
    int rc = rlock_rwlockattr_init(&attr);
    if (rc == 0)
        rc = rlock_rwlockattr_setpshared(&attr, RLOCK_PROCESS_SHARED);
    if (rc == 0)
        rc = rlock_rwlockattr_setclient(&attr, client);
    return rc != 0 ? rc : rlock_rwlock_init(&lock->rwlock, &attr, name);
}

int sharing_init(union sharing_lock *lock, int kind, const char *name,
                 rlock_client_t *client)
{
    rlock_mutexattr_t attr;
    if (kind == SHARING_RWLOCK)
        return init_rwlock(lock, name, client);
    int rc = rlock_mutexattr_init(&attr);
    if (rc == 0)
        rc = rlock_mutexattr_setpshared(&attr, RLOCK_PROCESS_SHARED);
    if (rc == 0)
        rc = rlock_mutexattr_setclient(&attr, client);
    if (rc != 0)
        return rc;
    return kind == SHARING_FAIR ? rlock_fair_init(&lock->fair, &attr, name)
                                : rlock_mutex_init(&lock->mutex, &attr, name);
}

#define OF_KIND(verb, ...)                                                               \
    (kind == SHARING_RWLOCK ? rlock_rwlock_##verb(&lock->rwlock, ##__VA_ARGS__)          \
     : kind == SHARING_FAIR ? rlock_fair_##verb(&lock->fair, ##__VA_ARGS__)              \
                            : rlock_mutex_##verb(&lock->mutex, ##__VA_ARGS__))

int sharing_destroy(union sharing_lock *lock, int kind)
{
    return OF_KIND(destroy);
}

int sharing_lock(union sharing_lock *lock, int kind)
{
    return kind == SHARING_RWLOCK ? rlock_rwlock_wrlock(&lock->rwlock)
           : kind == SHARING_FAIR ? rlock_fair_lock(&lock->fair)
                                  : rlock_mutex_lock(&lock->mutex);
}

int sharing_trylock(union sharing_lock *lock, int kind)
{
    return kind == SHARING_RWLOCK ? rlock_rwlock_trywrlock(&lock->rwlock)
           : kind == SHARING_FAIR ? rlock_fair_trylock(&lock->fair)
                                  : rlock_mutex_trylock(&lock->mutex);
}

int sharing_unlock(union sharing_lock *lock, int kind)
{
    return OF_KIND(unlock);
}

int sharing_ask(union sharing_lock *lock, int kind, int which)
{
    rlock_state_t state;
    unsigned count;
    uint64_t token;
    long ms;

    switch (which) {
    case 0:
        return OF_KIND(getstate, &state);
    case 1:
        return OF_KIND(getholdcount, &count);
    case 2:
        return OF_KIND(gettoken, &token);
    case 3:
        return OF_KIND(getremaining, &ms);
    case 4:
        return OF_KIND(unlock);
    case 5:
        return OF_KIND(extend, 0);
    default:
        return -1;
    }
}

int sharing_free_code(int which)
{
    return which <= 1 ? 0 : EPERM;
}

static int write_section(struct sharing *s, int kind)
{
    int rc = sharing_lock(&s->lock, kind);
    if (rc != 0)
        return rc;
    long first = s->first;
    if (first != s->second)
        atomic_fetch_add(&s->torn, 1);
    sched_yield();
    s->first = first + 1;
    sched_yield();
    s->second = first + 1;
    return sharing_unlock(&s->lock, kind);
}

static int read_section(struct sharing *s)
{
    int rc = rlock_rwlock_rdlock(&s->lock.rwlock);
    if (rc != 0)
        return rc;
    long first = s->first;
    sched_yield();
    if (first != s->second)
        atomic_fetch_add(&s->torn, 1);
    return rlock_rwlock_unlock(&s->lock.rwlock);
}

int sharing_rounds(struct sharing *s, int kind, long rounds)
{
    int rc = 0;
    for (long i = 0; i < rounds && rc == 0; i++) {
        rc = write_section(s, kind);
        if (rc == 0 && kind == SHARING_RWLOCK)
            rc = read_section(s);
    }
    return rc;
}
