/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions of one exclusive lock type, each a line over exclusive.c. Not a
 * header: included once by the file of the type, mutex.c or fair.c, which includes
 * exclusive.h and defines
 *     API(verb)    the name of a function, rlock_mutex_##verb
 *     HANDLE       the type of its handles
 *     KIND         the RLK_KIND_* in them
 */
/* NULL stays NULL: the base is the first member. */
#define BASE(handle) ((struct rlk_handle *)(handle))
#define CONST_BASE(handle) ((const struct rlk_handle *)(handle))

_Static_assert(sizeof(HANDLE) == 256 && offsetof(HANDLE, rlk) == 0, "part of the ABI");

int API(init)(HANDLE *handle, const rlock_mutexattr_t *attr, const char *name)
{
    return rlk_exclusive_init(BASE(handle), KIND, attr, name);
}

int API(destroy)(HANDLE *handle)
{
    return rlk_exclusive_destroy(BASE(handle), KIND);
}

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

int API(extend)(HANDLE *handle, long lease_ms)
{
    return rlk_exclusive_extend(BASE(handle), KIND, lease_ms);
}

int API(gettoken)(const HANDLE *handle, uint64_t *ret_token)
{
    return rlk_exclusive_gettoken(CONST_BASE(handle), KIND, ret_token);
}

int API(getremaining)(const HANDLE *handle, long *ret_ms)
{
    return rlk_exclusive_getremaining(CONST_BASE(handle), KIND, ret_ms);
}

int API(getstate)(const HANDLE *handle, rlock_state_t *ret_state)
{
    return rlk_exclusive_getstate(CONST_BASE(handle), KIND, ret_state);
}

int API(getholdcount)(const HANDLE *handle, unsigned *ret_count)
{
    return rlk_exclusive_getholdcount(CONST_BASE(handle), KIND, ret_count);
}
