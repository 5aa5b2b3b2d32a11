/* SPDX-License-Identifier: Apache-2.0 */
/* The fair-queue lock: rlock_fair_*. What it does is in exclusive.c, how it waits in
 * acquire.c, what it says to the server in lua/fair_*.lua. Thread: any. */
#include "lock/exclusive.h"
#include "lock/query.h"

_Static_assert(sizeof(rlock_fair_t) == 256 && offsetof(rlock_fair_t, rlk) == 0,
               "part of the ABI");
_Static_assert(sizeof(rlock_mutexattr_t) == 128 && offsetof(rlock_mutexattr_t, rlk) == 0,
               "part of the ABI");

int rlock_fair_init(rlock_fair_t *handle, const rlock_mutexattr_t *attr, const char *name)
{
    return rlk_handle_init(BASE(handle), RLK_KIND_FAIR, (const struct rlk_attr *)attr,
                           RLK_MAGIC_MUTEXATTR, name);
}

int rlock_fair_destroy(rlock_fair_t *handle)
{
    return rlk_handle_destroy(BASE(handle), RLK_KIND_FAIR);
}

int rlock_fair_extend(rlock_fair_t *handle, long lease_ms)
{
    return rlk_query_extend(BASE(handle), RLK_KIND_FAIR, lease_ms);
}

int rlock_fair_gettoken(const rlock_fair_t *handle, uint64_t *ret_token)
{
    return rlk_query_gettoken(CONST_BASE(handle), RLK_KIND_FAIR, ret_token);
}

int rlock_fair_getremaining(const rlock_fair_t *handle, long *ret_ms)
{
    return rlk_query_getremaining(CONST_BASE(handle), RLK_KIND_FAIR, ret_ms);
}

int rlock_fair_getstate(const rlock_fair_t *handle, rlock_state_t *ret_state)
{
    return rlk_query_getstate(CONST_BASE(handle), RLK_KIND_FAIR, ret_state);
}

int rlock_fair_getholdcount(const rlock_fair_t *handle, unsigned *ret_count)
{
    return rlk_query_getholdcount(CONST_BASE(handle), RLK_KIND_FAIR, ret_count);
}

int rlock_fair_lock(rlock_fair_t *handle)
{
    return rlk_exclusive_lock(BASE(handle), RLK_KIND_FAIR, 0);
}

int rlock_fair_lock_lease(rlock_fair_t *handle, long lease_ms)
{
    return rlk_exclusive_lock(BASE(handle), RLK_KIND_FAIR, lease_ms);
}

int rlock_fair_trylock(rlock_fair_t *handle)
{
    return rlk_exclusive_trylock(BASE(handle), RLK_KIND_FAIR, 0);
}

int rlock_fair_trylock_lease(rlock_fair_t *handle, long lease_ms)
{
    return rlk_exclusive_trylock(BASE(handle), RLK_KIND_FAIR, lease_ms);
}

int rlock_fair_timedlock(rlock_fair_t *handle, const struct timespec *abstime)
{
    return rlk_exclusive_clocklock(BASE(handle), RLK_KIND_FAIR, CLOCK_REALTIME, abstime,
                                   0);
}

int rlock_fair_timedlock_lease(rlock_fair_t *handle, const struct timespec *abstime,
                               long lease_ms)
{
    return rlk_exclusive_clocklock(BASE(handle), RLK_KIND_FAIR, CLOCK_REALTIME, abstime,
                                   lease_ms);
}

int rlock_fair_clocklock(rlock_fair_t *handle, clockid_t clock,
                         const struct timespec *abstime)
{
    return rlk_exclusive_clocklock(BASE(handle), RLK_KIND_FAIR, clock, abstime, 0);
}

int rlock_fair_clocklock_lease(rlock_fair_t *handle, clockid_t clock,
                               const struct timespec *abstime, long lease_ms)
{
    return rlk_exclusive_clocklock(BASE(handle), RLK_KIND_FAIR, clock, abstime, lease_ms);
}

int rlock_fair_unlock(rlock_fair_t *handle)
{
    return rlk_exclusive_unlock(BASE(handle), RLK_KIND_FAIR);
}

int rlock_fair_consistent(rlock_fair_t *handle)
{
    return rlk_exclusive_consistent(BASE(handle), RLK_KIND_FAIR);
}

int rlock_fair_consistent_np(rlock_fair_t *handle)
{
    return rlk_exclusive_consistent(BASE(handle), RLK_KIND_FAIR);
}

int rlock_fair_getprioceiling(const rlock_fair_t *handle, int *ret_ceiling)
{
    (void)ret_ceiling;
    return rlk_exclusive_prioceiling(CONST_BASE(handle), RLK_KIND_FAIR);
}

int rlock_fair_setprioceiling(rlock_fair_t *handle, int ceiling, int *ret_old)
{
    (void)ceiling;
    (void)ret_old;
    return rlk_exclusive_prioceiling(CONST_BASE(handle), RLK_KIND_FAIR);
}
