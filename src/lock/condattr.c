/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_condattr_*: plain data of the caller. Thread: any. */
#include "lock/attr.h"
#include "lock/call.h"

int rlock_condattr_init(rlock_condattr_t *attr)
{
    return rlk_attr_init(BASE(attr), RLK_MAGIC_CONDATTR);
}

int rlock_condattr_destroy(rlock_condattr_t *attr)
{
    return rlk_attr_destroy(BASE(attr), RLK_MAGIC_CONDATTR);
}

int rlock_condattr_setpshared(rlock_condattr_t *attr, int pshared)
{
    return rlk_attr_setpshared(BASE(attr), RLK_MAGIC_CONDATTR, pshared);
}

int rlock_condattr_getpshared(const rlock_condattr_t *attr, int *ret_pshared)
{
    return rlk_attr_getpshared(CONST_BASE(attr), RLK_MAGIC_CONDATTR, ret_pshared);
}

/* Whether it is one of the two clocks; if not, sets the thread's message. */
static bool is_clock(clockid_t clock)
{
    if (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC)
        return true;
    rlk_error_set(EINVAL, "clock %d is neither CLOCK_REALTIME nor CLOCK_MONOTONIC",
                  (int)clock);
    return false;
}

int rlock_condattr_setclock(rlock_condattr_t *attr, clockid_t clock)
{
    RLK_ATTR_CALL(CONST_BASE(attr), RLK_MAGIC_CONDATTR, is_clock(clock),
                  attr->rlk.rlk_type = (int32_t)clock);
}

int rlock_condattr_getclock(const rlock_condattr_t *attr, clockid_t *ret_clock)
{
    RLK_ATTR_CALL(CONST_BASE(attr), RLK_MAGIC_CONDATTR,
                  rlk_error_argument_there("ret_clock", ret_clock),
                  *ret_clock = attr->rlk.rlk_type == RLK_ATTR_UNSET
                                   ? CLOCK_REALTIME
                                   : (clockid_t)attr->rlk.rlk_type);
}

int rlock_condattr_setoutage(rlock_condattr_t *attr, int outage)
{
    RLK_ATTR_CALL(
        CONST_BASE(attr), RLK_MAGIC_CONDATTR,
        rlk_error_argument_in("outage", outage, RLOCK_OUTAGE_WAIT, RLOCK_OUTAGE_FAIL),
        attr->rlk.rlk_outage = outage);
}

int rlock_condattr_getoutage(const rlock_condattr_t *attr, int *ret_outage)
{
    return rlk_attr_getoutage(CONST_BASE(attr), RLK_MAGIC_CONDATTR, ret_outage);
}

int rlock_condattr_setclient(rlock_condattr_t *attr, rlock_client_t *client)
{
    return rlk_attr_setclient(BASE(attr), RLK_MAGIC_CONDATTR, client);
}

int rlock_condattr_getclient(const rlock_condattr_t *attr, rlock_client_t **ret_client)
{
    return rlk_attr_getclient(CONST_BASE(attr), RLK_MAGIC_CONDATTR, ret_client);
}
