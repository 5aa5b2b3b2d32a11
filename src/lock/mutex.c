/* SPDX-License-Identifier: Apache-2.0 */
/* The mutex: rlock_mutex_*. What it does is in exclusive.c, how it waits in acquire.c,
 * what it says to the server in lua/mutex_*.lua. Thread: any. */
#include "lock/exclusive.h"
#include "lock/query.h"

_Static_assert(sizeof(rlock_mutex_t) == 256 && offsetof(rlock_mutex_t, rlk) == 0,
               "part of the ABI");
_Static_assert(sizeof(rlock_mutexattr_t) == 128 && offsetof(rlock_mutexattr_t, rlk) == 0,
               "part of the ABI");

int rlock_mutex_init(rlock_mutex_t *handle, const rlock_mutexattr_t *attr,
                     const char *name)
{
    return rlk_handle_init(BASE(handle), RLK_KIND_MUTEX, (const struct rlk_attr *)attr,
                           RLK_MAGIC_MUTEXATTR, name);
}

int rlock_mutex_destroy(rlock_mutex_t *handle)
{
    return rlk_handle_destroy(BASE(handle), RLK_KIND_MUTEX);
}

int rlock_mutex_extend(rlock_mutex_t *handle, long lease_ms)
{
    return rlk_query_extend(BASE(handle), RLK_KIND_MUTEX, lease_ms);
}

int rlock_mutex_gettoken(const rlock_mutex_t *handle, uint64_t *ret_token)
{
    return rlk_query_gettoken(CONST_BASE(handle), RLK_KIND_MUTEX, ret_token);
}

int rlock_mutex_getremaining(const rlock_mutex_t *handle, long *ret_ms)
{
    return rlk_query_getremaining(CONST_BASE(handle), RLK_KIND_MUTEX, ret_ms);
}

int rlock_mutex_getstate(const rlock_mutex_t *handle, rlock_state_t *ret_state)
{
    return rlk_query_getstate(CONST_BASE(handle), RLK_KIND_MUTEX, ret_state);
}

int rlock_mutex_getholdcount(const rlock_mutex_t *handle, unsigned *ret_count)
{
    return rlk_query_getholdcount(CONST_BASE(handle), RLK_KIND_MUTEX, ret_count);
}

int rlock_mutex_lock(rlock_mutex_t *handle)
{
    return rlk_exclusive_lock(BASE(handle), RLK_KIND_MUTEX, 0);
}

int rlock_mutex_lock_lease(rlock_mutex_t *handle, long lease_ms)
{
    return rlk_exclusive_lock(BASE(handle), RLK_KIND_MUTEX, lease_ms);
}

int rlock_mutex_trylock(rlock_mutex_t *handle)
{
    return rlk_exclusive_trylock(BASE(handle), RLK_KIND_MUTEX, 0);
}

int rlock_mutex_trylock_lease(rlock_mutex_t *handle, long lease_ms)
{
    return rlk_exclusive_trylock(BASE(handle), RLK_KIND_MUTEX, lease_ms);
}

int rlock_mutex_timedlock(rlock_mutex_t *handle, const struct timespec *abstime)
{
    return rlk_exclusive_clocklock(BASE(handle), RLK_KIND_MUTEX, CLOCK_REALTIME, abstime,
                                   0);
}

int rlock_mutex_timedlock_lease(rlock_mutex_t *handle, const struct timespec *abstime,
                                long lease_ms)
{
    return rlk_exclusive_clocklock(BASE(handle), RLK_KIND_MUTEX, CLOCK_REALTIME, abstime,
                                   lease_ms);
}

int rlock_mutex_clocklock(rlock_mutex_t *handle, clockid_t clock,
                          const struct timespec *abstime)
{
    return rlk_exclusive_clocklock(BASE(handle), RLK_KIND_MUTEX, clock, abstime, 0);
}

int rlock_mutex_clocklock_lease(rlock_mutex_t *handle, clockid_t clock,
                                const struct timespec *abstime, long lease_ms)
{
    return rlk_exclusive_clocklock(BASE(handle), RLK_KIND_MUTEX, clock, abstime,
                                   lease_ms);
}

int rlock_mutex_unlock(rlock_mutex_t *handle)
{
    return rlk_exclusive_unlock(BASE(handle), RLK_KIND_MUTEX);
}

int rlock_mutex_consistent(rlock_mutex_t *handle)
{
    return rlk_exclusive_consistent(BASE(handle), RLK_KIND_MUTEX);
}

int rlock_mutex_consistent_np(rlock_mutex_t *handle)
{
    return rlk_exclusive_consistent(BASE(handle), RLK_KIND_MUTEX);
}

int rlock_mutex_getprioceiling(const rlock_mutex_t *handle, int *ret_ceiling)
{
    (void)ret_ceiling;
    return rlk_exclusive_prioceiling(CONST_BASE(handle), RLK_KIND_MUTEX);
}

int rlock_mutex_setprioceiling(rlock_mutex_t *handle, int ceiling, int *ret_old)
{
    (void)ceiling;
    (void)ret_old;
    return rlk_exclusive_prioceiling(CONST_BASE(handle), RLK_KIND_MUTEX);
}
