/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions of one exclusive lock type, each a line over exclusive.c. Not a
 * header: included once by the file of the type, mutex.c or fair.c, which includes
 * exclusive.h and defines what lock_api.h asks for.
 */
#include "lock/lock_api.h"

int API(lock)(HANDLE *handle)
{
    return rlk_exclusive_lock(BASE(handle), KIND, 0);
}

int API(lock_lease)(HANDLE *handle, long lease_ms)
{
    return rlk_exclusive_lock(BASE(handle), KIND, lease_ms);
}

int API(trylock)(HANDLE *handle)
{
    return rlk_exclusive_trylock(BASE(handle), KIND, 0);
}

int API(trylock_lease)(HANDLE *handle, long lease_ms)
{
    return rlk_exclusive_trylock(BASE(handle), KIND, lease_ms);
}

int API(timedlock)(HANDLE *handle, const struct timespec *abstime)
{
    return rlk_exclusive_clocklock(BASE(handle), KIND, CLOCK_REALTIME, abstime, 0);
}

int API(timedlock_lease)(HANDLE *handle, const struct timespec *abstime, long lease_ms)
{
    return rlk_exclusive_clocklock(BASE(handle), KIND, CLOCK_REALTIME, abstime, lease_ms);
}

int API(clocklock)(HANDLE *handle, clockid_t clock, const struct timespec *abstime)
{
    return rlk_exclusive_clocklock(BASE(handle), KIND, clock, abstime, 0);
}

int API(clocklock_lease)(HANDLE *handle, clockid_t clock, const struct timespec *abstime,
                         long lease_ms)
{
    return rlk_exclusive_clocklock(BASE(handle), KIND, clock, abstime, lease_ms);
}

int API(unlock)(HANDLE *handle)
{
    return rlk_exclusive_unlock(BASE(handle), KIND);
}

int API(consistent)(HANDLE *handle)
{
    return rlk_exclusive_consistent(BASE(handle), KIND);
}

int API(consistent_np)(HANDLE *handle)
{
    return rlk_exclusive_consistent(BASE(handle), KIND);
}

int API(getprioceiling)(const HANDLE *handle, int *ret_ceiling)
{
    (void)ret_ceiling;
    return rlk_exclusive_prioceiling(CONST_BASE(handle), KIND);
}

int API(setprioceiling)(HANDLE *handle, int ceiling, int *ret_old)
{
    (void)ceiling;
    (void)ret_old;
    return rlk_exclusive_prioceiling(CONST_BASE(handle), KIND);
}
