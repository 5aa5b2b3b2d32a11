/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions: rlock_cond_*. How a thread waits is in cond_wait.c, how it wakes others in
 * cond_signal.c, what both say to the server in lua/cond_*.lua. Thread: any. */
#include "lock/call.h"
#include "lock/cond_wait.h"

_Static_assert(sizeof(rlock_cond_t) == 256 && offsetof(rlock_cond_t, rlk) == 0,
               "part of the ABI");
_Static_assert(sizeof(rlock_condattr_t) == 128 && offsetof(rlock_condattr_t, rlk) == 0,
               "part of the ABI");

/* The public object's handle; NULL stays NULL. */
#define HANDLE(object) ((struct rlk_handle *)(object))

int rlock_cond_init(rlock_cond_t *cond, const rlock_condattr_t *attr, const char *name)
{
    return rlk_handle_init(HANDLE(cond), RLK_KIND_COND, (const struct rlk_attr *)attr,
                           RLK_MAGIC_CONDATTR, name);
}

/* rule: V14 */
/* Whether a thread of this process waits, and was not woken. */
static bool is_waited_for(const struct rlk_handle *handle, struct rlock_client *client)
{
    struct rlk_registry *reg = &client->registry;

    rlk_registry_lock(reg);
    const struct rlk_condition *condition =
        rlk_condition_find_locked(reg, handle->rlk_name, handle->rlk_name_len);
    bool waited_for = condition && condition->asleep > 0;
    rlk_registry_unlock(reg);
    return waited_for;
}

int rlock_cond_destroy(rlock_cond_t *cond)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_handle *handle = HANDLE(cond);
    struct rlock_client *client = NULL;
    int rc = 0;

    if (!rlk_handle_good(handle, RLK_KIND_COND))
        rc = rlk_handle_bad(handle, RLK_KIND_COND);
    else if (rlk_client_peek(handle->rlk_client, &client) != 0)
        rlk_error_clear();
    if (client && client->running && is_waited_for(handle, client))
        rc = rlk_error_set(EBUSY, "a thread of this process waits for the condition");
    if (client)
        rlk_client_put(client);
    if (rc == 0)
        __atomic_store_n(&handle->rlk_magic, 0, __ATOMIC_RELEASE);
    return rlk_call_leave(call, rc);
}

int rlock_cond_wait(rlock_cond_t *cond, rlock_mutex_t *mutex)
{
    return rlk_cond_wait(&(struct rlk_cond_wait_args){
        .cond = HANDLE(cond), .mutex = HANDLE(mutex), .kind = RLK_KIND_MUTEX });
}

int rlock_cond_timedwait(rlock_cond_t *cond, rlock_mutex_t *mutex,
                         const struct timespec *abstime)
{
    return rlk_cond_wait(&(struct rlk_cond_wait_args){ .cond = HANDLE(cond),
                                                       .mutex = HANDLE(mutex),
                                                       .kind = RLK_KIND_MUTEX,
                                                       .timed = true,
                                                       .abstime = abstime });
}

int rlock_cond_clockwait(rlock_cond_t *cond, rlock_mutex_t *mutex, clockid_t clock,
                         const struct timespec *abstime)
{
    return rlk_cond_wait(&(struct rlk_cond_wait_args){ .cond = HANDLE(cond),
                                                       .mutex = HANDLE(mutex),
                                                       .kind = RLK_KIND_MUTEX,
                                                       .timed = true,
                                                       .named = true,
                                                       .clock = clock,
                                                       .abstime = abstime });
}

int rlock_cond_fairwait(rlock_cond_t *cond, rlock_fair_t *fair)
{
    return rlk_cond_wait(&(struct rlk_cond_wait_args){
        .cond = HANDLE(cond), .mutex = HANDLE(fair), .kind = RLK_KIND_FAIR });
}

int rlock_cond_fairtimedwait(rlock_cond_t *cond, rlock_fair_t *fair,
                             const struct timespec *abstime)
{
    return rlk_cond_wait(&(struct rlk_cond_wait_args){ .cond = HANDLE(cond),
                                                       .mutex = HANDLE(fair),
                                                       .kind = RLK_KIND_FAIR,
                                                       .timed = true,
                                                       .abstime = abstime });
}

int rlock_cond_fairclockwait(rlock_cond_t *cond, rlock_fair_t *fair, clockid_t clock,
                             const struct timespec *abstime)
{
    return rlk_cond_wait(&(struct rlk_cond_wait_args){ .cond = HANDLE(cond),
                                                       .mutex = HANDLE(fair),
                                                       .kind = RLK_KIND_FAIR,
                                                       .timed = true,
                                                       .named = true,
                                                       .clock = clock,
                                                       .abstime = abstime });
}

int rlock_cond_signal(rlock_cond_t *cond)
{
    return rlk_cond_signal(HANDLE(cond), 1);
}

int rlock_cond_broadcast(rlock_cond_t *cond)
{
    return rlk_cond_signal(HANDLE(cond), 0);
}
