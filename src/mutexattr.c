/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_mutexattr_*: plain data of the caller. Thread: any. */
#include "call.h"
#include "handle.h"

#include "client.h"

#include <stddef.h>
#include <string.h>

_Static_assert(sizeof(rlock_mutexattr_t) == 128, "part of the ABI");
_Static_assert(RLOCK_MUTEX_NORMAL == PTHREAD_MUTEX_NORMAL &&
                   RLOCK_MUTEX_RECURSIVE == PTHREAD_MUTEX_RECURSIVE &&
                   RLOCK_MUTEX_ERRORCHECK == PTHREAD_MUTEX_ERRORCHECK &&
                   RLOCK_MUTEX_DEFAULT == PTHREAD_MUTEX_DEFAULT &&
                   RLOCK_MUTEX_ADAPTIVE_NP == PTHREAD_MUTEX_ADAPTIVE_NP,
               "constants equal pthread's");
_Static_assert(RLOCK_MUTEX_STALLED == PTHREAD_MUTEX_STALLED &&
                   RLOCK_MUTEX_ROBUST == PTHREAD_MUTEX_ROBUST &&
                   RLOCK_PROCESS_PRIVATE == PTHREAD_PROCESS_PRIVATE &&
                   RLOCK_PROCESS_SHARED == PTHREAD_PROCESS_SHARED &&
                   RLOCK_PRIO_NONE == PTHREAD_PRIO_NONE &&
                   RLOCK_PRIO_INHERIT == PTHREAD_PRIO_INHERIT &&
                   RLOCK_PRIO_PROTECT == PTHREAD_PRIO_PROTECT,
               "constants equal pthread's");

#define UNSET (-1)

static bool good(const rlock_mutexattr_t *attr)
{
    return attr && attr->rlk_magic == RLK_MAGIC_MUTEXATTR;
}

/* The frame of every getter and setter. */
#define ATTR_CALL(attr, condition, ...)                                                  \
    do {                                                                                 \
        struct rlk_call call = rlk_call_enter();                                         \
        int rc = 0;                                                                      \
        if (!good(attr) || !(condition))                                                 \
            rc = EINVAL;                                                                 \
        else                                                                             \
            __VA_ARGS__;                                                                 \
        return rlk_call_leave(call, rc);                                                 \
    } while (0)

int rlock_mutexattr_init(rlock_mutexattr_t *attr)
{
    struct rlk_call call = rlk_call_enter();
    if (attr) {
        memset(attr, 0, sizeof(*attr));
        attr->rlk_type = UNSET;
        attr->rlk_magic = RLK_MAGIC_MUTEXATTR;
    }
    return rlk_call_leave(call, attr ? 0 : EINVAL);
}

int rlock_mutexattr_destroy(rlock_mutexattr_t *attr)
{
    ATTR_CALL(attr, true, memset(attr, 0, sizeof(*attr)));
}

int rlock_mutexattr_settype(rlock_mutexattr_t *attr, int type)
{
    ATTR_CALL(attr, type >= RLOCK_MUTEX_NORMAL && type <= RLOCK_MUTEX_ADAPTIVE_NP,
              attr->rlk_type = type);
}

int rlock_mutexattr_gettype(const rlock_mutexattr_t *attr, int *ret_type)
{
    ATTR_CALL(attr, ret_type,
              *ret_type =
                  attr->rlk_type == UNSET ? RLOCK_MUTEX_RECURSIVE : attr->rlk_type);
}

int rlock_mutexattr_setrobust(rlock_mutexattr_t *attr, int robust)
{
    ATTR_CALL(attr, robust == RLOCK_MUTEX_STALLED || robust == RLOCK_MUTEX_ROBUST,
              if (robust == RLOCK_MUTEX_ROBUST) rc =
                  rlk_error_set(ENOTSUP, "robust mutexes are not built yet");
              else attr->rlk_robust = robust);
}

int rlock_mutexattr_getrobust(const rlock_mutexattr_t *attr, int *ret_robust)
{
    ATTR_CALL(attr, ret_robust, *ret_robust = attr->rlk_robust);
}

int rlock_mutexattr_setrobust_np(rlock_mutexattr_t *attr, int robust)
{
    return rlock_mutexattr_setrobust(attr, robust);
}

int rlock_mutexattr_getrobust_np(const rlock_mutexattr_t *attr, int *ret_robust)
{
    return rlock_mutexattr_getrobust(attr, ret_robust);
}

int rlock_mutexattr_setpshared(rlock_mutexattr_t *attr, int pshared)
{
    ATTR_CALL(attr, pshared == RLOCK_PROCESS_PRIVATE || pshared == RLOCK_PROCESS_SHARED,
              attr->rlk_pshared = pshared);
}

int rlock_mutexattr_getpshared(const rlock_mutexattr_t *attr, int *ret_pshared)
{
    ATTR_CALL(attr, ret_pshared, *ret_pshared = attr->rlk_pshared);
}

int rlock_mutexattr_setprotocol(rlock_mutexattr_t *attr, int protocol)
{
    ATTR_CALL(attr, protocol >= RLOCK_PRIO_NONE && protocol <= RLOCK_PRIO_PROTECT,
              if (protocol == RLOCK_PRIO_PROTECT) rc =
                  rlk_error_set(ENOTSUP, "a distributed lock has no priority ceiling");
              else attr->rlk_protocol = protocol);
}

int rlock_mutexattr_getprotocol(const rlock_mutexattr_t *attr, int *ret_protocol)
{
    ATTR_CALL(attr, ret_protocol, *ret_protocol = attr->rlk_protocol);
}

int rlock_mutexattr_setprioceiling(rlock_mutexattr_t *attr, int ceiling)
{
    (void)ceiling;
    ATTR_CALL(attr, true,
              rc = rlk_error_set(ENOTSUP, "a distributed lock has no priority ceiling"));
}

int rlock_mutexattr_getprioceiling(const rlock_mutexattr_t *attr, int *ret_ceiling)
{
    ATTR_CALL(attr, ret_ceiling,
              rc = rlk_error_set(ENOTSUP, "a distributed lock has no priority ceiling"));
}

int rlock_mutexattr_setlease(rlock_mutexattr_t *attr, long lease_ms)
{
    ATTR_CALL(attr, lease_ms == 0 || rlk_lease_valid(lease_ms),
              attr->rlk_lease_ms = (int32_t)lease_ms);
}

int rlock_mutexattr_getlease(const rlock_mutexattr_t *attr, long *ret_lease_ms)
{
    ATTR_CALL(attr, ret_lease_ms, *ret_lease_ms = attr->rlk_lease_ms);
}

int rlock_mutexattr_setfencing(rlock_mutexattr_t *attr, int fencing)
{
    ATTR_CALL(attr, fencing == 0 || fencing == 1, attr->rlk_fencing = fencing);
}

int rlock_mutexattr_getfencing(const rlock_mutexattr_t *attr, int *ret_fencing)
{
    ATTR_CALL(attr, ret_fencing, *ret_fencing = attr->rlk_fencing);
}

int rlock_mutexattr_setoutage(rlock_mutexattr_t *attr, int outage)
{
    ATTR_CALL(attr, outage >= RLOCK_OUTAGE_WAIT && outage <= RLOCK_OUTAGE_ABORT,
              attr->rlk_outage = outage);
}

int rlock_mutexattr_getoutage(const rlock_mutexattr_t *attr, int *ret_outage)
{
    ATTR_CALL(attr, ret_outage, *ret_outage = attr->rlk_outage);
}

int rlock_mutexattr_setclient(rlock_mutexattr_t *attr, rlock_client_t *client)
{
    uint64_t number = 0;
    ATTR_CALL(attr, true, rc = rlk_client_check_process();
              if (rc == 0 && client && !rlk_client_is_open(client, &number)) rc = EINVAL;
              if (rc == 0) attr->rlk_client = number);
}

int rlock_mutexattr_getclient(const rlock_mutexattr_t *attr, rlock_client_t **ret_client)
{
    struct rlock_client *client = NULL;
    ATTR_CALL(attr, ret_client,
              if (attr->rlk_client != 0) rc = rlk_client_get(attr->rlk_client, &client);
              if (client) rlk_client_put(client); if (rc == 0) *ret_client = client);
}
