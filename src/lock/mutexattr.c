/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_mutexattr_*: plain data of the caller. Thread: any. */
#include "client/client.h"
#include "lock/attr.h"
#include "lock/call.h"

int rlock_mutexattr_init(rlock_mutexattr_t *attr)
{
    return rlk_attr_init(BASE(attr), RLK_MAGIC_MUTEXATTR);
}

int rlock_mutexattr_destroy(rlock_mutexattr_t *attr)
{
    return rlk_attr_destroy(BASE(attr), RLK_MAGIC_MUTEXATTR);
}

int rlock_mutexattr_setpshared(rlock_mutexattr_t *attr, int pshared)
{
    return rlk_attr_setpshared(BASE(attr), RLK_MAGIC_MUTEXATTR, pshared);
}

int rlock_mutexattr_getpshared(const rlock_mutexattr_t *attr, int *ret_pshared)
{
    return rlk_attr_getpshared(CONST_BASE(attr), RLK_MAGIC_MUTEXATTR, ret_pshared);
}

int rlock_mutexattr_setlease(rlock_mutexattr_t *attr, long lease_ms)
{
    return rlk_attr_setlease(BASE(attr), RLK_MAGIC_MUTEXATTR, lease_ms);
}

int rlock_mutexattr_getlease(const rlock_mutexattr_t *attr, long *ret_lease_ms)
{
    return rlk_attr_getlease(CONST_BASE(attr), RLK_MAGIC_MUTEXATTR, ret_lease_ms);
}

int rlock_mutexattr_setfencing(rlock_mutexattr_t *attr, int fencing)
{
    return rlk_attr_setfencing(BASE(attr), RLK_MAGIC_MUTEXATTR, fencing);
}

int rlock_mutexattr_getfencing(const rlock_mutexattr_t *attr, int *ret_fencing)
{
    return rlk_attr_getfencing(CONST_BASE(attr), RLK_MAGIC_MUTEXATTR, ret_fencing);
}

int rlock_mutexattr_setoutage(rlock_mutexattr_t *attr, int outage)
{
    return rlk_attr_setoutage(BASE(attr), RLK_MAGIC_MUTEXATTR, outage);
}

int rlock_mutexattr_getoutage(const rlock_mutexattr_t *attr, int *ret_outage)
{
    return rlk_attr_getoutage(CONST_BASE(attr), RLK_MAGIC_MUTEXATTR, ret_outage);
}

int rlock_mutexattr_setclient(rlock_mutexattr_t *attr, rlock_client_t *client)
{
    return rlk_attr_setclient(BASE(attr), RLK_MAGIC_MUTEXATTR, client);
}

int rlock_mutexattr_getclient(const rlock_mutexattr_t *attr, rlock_client_t **ret_client)
{
    return rlk_attr_getclient(CONST_BASE(attr), RLK_MAGIC_MUTEXATTR, ret_client);
}

_Static_assert(RLOCK_MUTEX_NORMAL == PTHREAD_MUTEX_NORMAL &&
                   RLOCK_MUTEX_RECURSIVE == PTHREAD_MUTEX_RECURSIVE &&
                   RLOCK_MUTEX_ERRORCHECK == PTHREAD_MUTEX_ERRORCHECK &&
                   RLOCK_MUTEX_DEFAULT == PTHREAD_MUTEX_DEFAULT,
               "constants equal pthread's");
#ifdef __GLIBC__ /* only glibc has the types that are not portable */
_Static_assert((int)RLOCK_MUTEX_ADAPTIVE_NP == (int)PTHREAD_MUTEX_ADAPTIVE_NP,
               "constants equal pthread's");
#endif
_Static_assert(RLOCK_MUTEX_STALLED == PTHREAD_MUTEX_STALLED &&
                   RLOCK_MUTEX_ROBUST == PTHREAD_MUTEX_ROBUST &&
                   RLOCK_PROCESS_PRIVATE == PTHREAD_PROCESS_PRIVATE &&
                   RLOCK_PROCESS_SHARED == PTHREAD_PROCESS_SHARED &&
                   RLOCK_PRIO_NONE == PTHREAD_PRIO_NONE &&
                   RLOCK_PRIO_INHERIT == PTHREAD_PRIO_INHERIT &&
                   RLOCK_PRIO_PROTECT == PTHREAD_PRIO_PROTECT,
               "constants equal pthread's");

int rlock_mutexattr_settype(rlock_mutexattr_t *attr, int type)
{
    RLK_ATTR_CALL(
        CONST_BASE(attr), RLK_MAGIC_MUTEXATTR,
        rlk_error_argument_in("type", type, RLOCK_MUTEX_NORMAL, RLOCK_MUTEX_ADAPTIVE_NP),
        attr->rlk.rlk_type = type);
}

int rlock_mutexattr_gettype(const rlock_mutexattr_t *attr, int *ret_type)
{
    RLK_ATTR_CALL(CONST_BASE(attr), RLK_MAGIC_MUTEXATTR,
                  rlk_error_argument_there("ret_type", ret_type),
                  *ret_type = attr->rlk.rlk_type == RLK_ATTR_UNSET
                                  ? rlk_client_mutex_type(attr->rlk.rlk_client)
                                  : attr->rlk.rlk_type);
}

int rlock_mutexattr_setrobust(rlock_mutexattr_t *attr, int robust)
{
    RLK_ATTR_CALL(
        CONST_BASE(attr), RLK_MAGIC_MUTEXATTR,
        rlk_error_argument_in("robust", robust, RLOCK_MUTEX_STALLED, RLOCK_MUTEX_ROBUST),
        attr->rlk.rlk_robust = robust);
}

int rlock_mutexattr_getrobust(const rlock_mutexattr_t *attr, int *ret_robust)
{
    RLK_ATTR_CALL(CONST_BASE(attr), RLK_MAGIC_MUTEXATTR,
                  rlk_error_argument_there("ret_robust", ret_robust),
                  *ret_robust = attr->rlk.rlk_robust);
}

int rlock_mutexattr_setrobust_np(rlock_mutexattr_t *attr, int robust)
{
    return rlock_mutexattr_setrobust(attr, robust);
}

int rlock_mutexattr_getrobust_np(const rlock_mutexattr_t *attr, int *ret_robust)
{
    return rlock_mutexattr_getrobust(attr, ret_robust);
}

int rlock_mutexattr_setprotocol(rlock_mutexattr_t *attr, int protocol)
{
    RLK_ATTR_CALL(
        CONST_BASE(attr), RLK_MAGIC_MUTEXATTR,
        rlk_error_argument_in("protocol", protocol, RLOCK_PRIO_NONE, RLOCK_PRIO_PROTECT),
        if (protocol == RLOCK_PRIO_PROTECT) rc =
            rlk_error_set(ENOTSUP, "a distributed lock has no priority ceiling");
        else attr->rlk.rlk_protocol = protocol);
}

int rlock_mutexattr_getprotocol(const rlock_mutexattr_t *attr, int *ret_protocol)
{
    RLK_ATTR_CALL(CONST_BASE(attr), RLK_MAGIC_MUTEXATTR,
                  rlk_error_argument_there("ret_protocol", ret_protocol),
                  *ret_protocol = attr->rlk.rlk_protocol);
}

int rlock_mutexattr_sethandoffms(rlock_mutexattr_t *attr, long handoff_ms)
{
    RLK_ATTR_CALL(
        CONST_BASE(attr), RLK_MAGIC_MUTEXATTR,
        rlk_error_argument_in("handoffms (ms)", handoff_ms, 0, RLK_HANDOFF_MAX_MS),
        attr->rlk.rlk_handoff_ms = (int32_t)handoff_ms);
}

int rlock_mutexattr_gethandoffms(const rlock_mutexattr_t *attr, long *ret_handoff_ms)
{
    RLK_ATTR_CALL(CONST_BASE(attr), RLK_MAGIC_MUTEXATTR,
                  rlk_error_argument_there("ret_handoff_ms", ret_handoff_ms),
                  *ret_handoff_ms = attr->rlk.rlk_handoff_ms == RLK_ATTR_UNSET
                                        ? RLK_HANDOFF_MS
                                        : attr->rlk.rlk_handoff_ms);
}

int rlock_mutexattr_sethandoffcount(rlock_mutexattr_t *attr, int count)
{
    RLK_ATTR_CALL(CONST_BASE(attr), RLK_MAGIC_MUTEXATTR,
                  rlk_error_argument_in("handoffcount", count, 0, RLK_HANDOFF_MAX_COUNT),
                  attr->rlk.rlk_handoff_count = count);
}

int rlock_mutexattr_gethandoffcount(const rlock_mutexattr_t *attr, int *ret_count)
{
    RLK_ATTR_CALL(CONST_BASE(attr), RLK_MAGIC_MUTEXATTR,
                  rlk_error_argument_there("ret_count", ret_count),
                  *ret_count = attr->rlk.rlk_handoff_count == RLK_ATTR_UNSET
                                   ? RLK_HANDOFF_COUNT
                                   : attr->rlk.rlk_handoff_count);
}

int rlock_mutexattr_setretain(rlock_mutexattr_t *attr, long retain_ms)
{
    RLK_ATTR_CALL(CONST_BASE(attr), RLK_MAGIC_MUTEXATTR,
                  rlk_error_argument_in("retain (ms)", retain_ms, 0, RLK_RETAIN_MAX_MS),
                  attr->rlk.rlk_retain_ms = (int32_t)retain_ms);
}

int rlock_mutexattr_getretain(const rlock_mutexattr_t *attr, long *ret_retain_ms)
{
    RLK_ATTR_CALL(CONST_BASE(attr), RLK_MAGIC_MUTEXATTR,
                  rlk_error_argument_there("ret_retain_ms", ret_retain_ms),
                  *ret_retain_ms = attr->rlk.rlk_retain_ms == RLK_ATTR_UNSET
                                       ? 0
                                       : attr->rlk.rlk_retain_ms);
}

int rlock_mutexattr_setprioceiling(rlock_mutexattr_t *attr, int ceiling)
{
    (void)ceiling;
    RLK_ATTR_CALL(
        CONST_BASE(attr), RLK_MAGIC_MUTEXATTR, true,
        rc = rlk_error_set(ENOTSUP, "a distributed lock has no priority ceiling"));
}

int rlock_mutexattr_getprioceiling(const rlock_mutexattr_t *attr, int *ret_ceiling)
{
    RLK_ATTR_CALL(
        CONST_BASE(attr), RLK_MAGIC_MUTEXATTR,
        rlk_error_argument_there("ret_ceiling", ret_ceiling),
        rc = rlk_error_set(ENOTSUP, "a distributed lock has no priority ceiling"));
}
