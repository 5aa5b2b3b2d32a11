/* SPDX-License-Identifier: Apache-2.0 */
/* See target.h. State: the caller's. */
#include "target.h"

#include "client/client.h"
#include "lock/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int rc, const char *what)
{
    if (rc != 0) {
        fprintf(stderr, "nemesis: %s: %s: %s\n", what, rlock_strerror(rc),
                rlock_errmsg());
        abort();
    }
}

static void init_rwlock(struct nem_target *target, rlock_client_t *client,
                        const char *name)
{
    rlock_rwlockattr_t attr;
    check(rlock_rwlockattr_init(&attr), "attr");
    check(rlock_rwlockattr_setclient(&attr, client), "client");
    check(rlock_rwlockattr_setfencing(&attr, nem_fencing(target->number)), "fencing");
    if (nem_retains(target->number))
        check(rlock_rwlockattr_setretain(&attr, NEM_RETAIN_MS), "retain");
    check(rlock_rwlock_init(&target->lock.rwlock, &attr, name), name);
}

void nem_target_init(struct nem_target *target, unsigned number, rlock_client_t *client)
{
    char name[32];
    rlock_mutexattr_t attr;

    snprintf(name, sizeof(name), "nemesis%u", number);
    memset(target, 0, sizeof(*target));
    target->number = number;
    target->type = nem_type_of(number);
    if (target->type == NEM_RWLOCK) {
        init_rwlock(target, client, name);
        return;
    }
    check(rlock_mutexattr_init(&attr), "attr");
    check(rlock_mutexattr_setclient(&attr, client), "client");
    check(rlock_mutexattr_setfencing(&attr, nem_fencing(number)), "fencing");
    if (nem_retains(number))
        check(rlock_mutexattr_setretain(&attr, NEM_RETAIN_MS), "retain");
    if (nem_robust(number))
        check(rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST), "robust");
    check(target->type == NEM_FAIR ? rlock_fair_init(&target->lock.fair, &attr, name)
                                   : rlock_mutex_init(&target->lock.mutex, &attr, name),
          name);
}

void nem_target_destroy(struct nem_target *target)
{
    check(target->type == NEM_RWLOCK ? rlock_rwlock_destroy(&target->lock.rwlock)
          : target->type == NEM_FAIR ? rlock_fair_destroy(&target->lock.fair)
                                     : rlock_mutex_destroy(&target->lock.mutex),
          "destroy");
}

static int take_mutex(rlock_mutex_t *m, enum nem_call call, const struct timespec *t,
                      long lease_ms)
{
    return call == NEM_LOCK        ? rlock_mutex_lock_lease(m, lease_ms)
           : call == NEM_TIMEDLOCK ? rlock_mutex_timedlock_lease(m, t, lease_ms)
                                   : rlock_mutex_trylock_lease(m, lease_ms);
}

static int take_fair(rlock_fair_t *f, enum nem_call call, const struct timespec *t,
                     long lease_ms)
{
    return call == NEM_LOCK        ? rlock_fair_lock_lease(f, lease_ms)
           : call == NEM_TIMEDLOCK ? rlock_fair_timedlock_lease(f, t, lease_ms)
                                   : rlock_fair_trylock_lease(f, lease_ms);
}

static int take_rwlock(rlock_rwlock_t *rw, enum nem_call call, const struct timespec *t,
                       long lease_ms)
{
    switch (call) {
    case NEM_LOCK:
        return rlock_rwlock_wrlock_lease(rw, lease_ms);
    case NEM_TIMEDLOCK:
        return rlock_rwlock_timedwrlock_lease(rw, t, lease_ms);
    case NEM_TRYLOCK:
        return rlock_rwlock_trywrlock_lease(rw, lease_ms);
    case NEM_RDLOCK:
        return rlock_rwlock_rdlock_lease(rw, lease_ms);
    case NEM_TIMEDRDLOCK:
        return rlock_rwlock_timedrdlock_lease(rw, t, lease_ms);
    default:
        return rlock_rwlock_tryrdlock_lease(rw, lease_ms);
    }
}

int nem_target_take(struct nem_target *target, enum nem_call call,
                    const struct timespec *deadline, long lease_ms)
{
    return target->type == NEM_RWLOCK
               ? take_rwlock(&target->lock.rwlock, call, deadline, lease_ms)
           : target->type == NEM_FAIR
               ? take_fair(&target->lock.fair, call, deadline, lease_ms)
               : take_mutex(&target->lock.mutex, call, deadline, lease_ms);
}

#define OF_TYPE(target, function, ...)                                                   \
    ((target)->type == NEM_RWLOCK                                                        \
         ? rlock_rwlock_##function(&(target)->lock.rwlock, ##__VA_ARGS__)                \
     : (target)->type == NEM_FAIR                                                        \
         ? rlock_fair_##function(&(target)->lock.fair, ##__VA_ARGS__)                    \
         : rlock_mutex_##function(&(target)->lock.mutex, ##__VA_ARGS__))

int nem_target_unlock(struct nem_target *target)
{
    return OF_TYPE(target, unlock);
}

int nem_target_downgrade(struct nem_target *target)
{
    return rlock_rwlock_downgrade(&target->lock.rwlock);
}

int nem_target_extend(struct nem_target *target, long lease_ms)
{
    return OF_TYPE(target, extend, lease_ms);
}

int nem_target_consistent(struct nem_target *target)
{
    return target->type == NEM_FAIR ? rlock_fair_consistent(&target->lock.fair)
                                    : rlock_mutex_consistent(&target->lock.mutex);
}

int nem_target_state(struct nem_target *target, rlock_state_t *ret_state)
{
    return OF_TYPE(target, getstate, ret_state);
}

unsigned nem_target_levels(struct nem_target *target)
{
    unsigned count = 0;
    return OF_TYPE(target, getholdcount, &count) == 0 ? count : 0;
}

void nem_target_client(const rlock_client_t *client, struct nem_op *op)
{
    snprintf(op->id, sizeof(op->id), "%s", client->uuid);
}

bool nem_target_guarded(const rlock_client_t *client)
{
    return client->livefile.map != NULL;
}

void nem_target_look(struct nem_target *target, struct nem_op *op)
{
    struct rlk_holder *holder = rlk_handle_part(&target->lock.mutex.rlk);

    if (!holder)
        return;
    struct rlk_hold *hold = holder->hold;
    char id[RLK_ID_SIZE];
    rlk_id_write(id, RLK_CLIENT_OF(hold->lock->registry)->uuid, &hold->id);
    snprintf(op->id, sizeof(op->id), "%.*s", NEM_ID_MAX - 1, id);
    op->end = hold->end;
    op->token = nem_fencing(target->number) ? hold->token : 0;
    op->reading = target->type == NEM_RWLOCK && holder->levels.writes == 0;
}
