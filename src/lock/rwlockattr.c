/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_rwlockattr_*: plain data of the caller. Thread: any. */
#include "lock/attr.h"
#include "lock/call.h"

int rlock_rwlockattr_init(rlock_rwlockattr_t *attr)
{
    return rlk_attr_init(BASE(attr), RLK_MAGIC_RWLOCKATTR);
}

int rlock_rwlockattr_destroy(rlock_rwlockattr_t *attr)
{
    return rlk_attr_destroy(BASE(attr), RLK_MAGIC_RWLOCKATTR);
}

int rlock_rwlockattr_setpshared(rlock_rwlockattr_t *attr, int pshared)
{
    return rlk_attr_setpshared(BASE(attr), RLK_MAGIC_RWLOCKATTR, pshared);
}

int rlock_rwlockattr_getpshared(const rlock_rwlockattr_t *attr, int *ret_pshared)
{
    return rlk_attr_getpshared(CONST_BASE(attr), RLK_MAGIC_RWLOCKATTR, ret_pshared);
}

int rlock_rwlockattr_setlease(rlock_rwlockattr_t *attr, long lease_ms)
{
    return rlk_attr_setlease(BASE(attr), RLK_MAGIC_RWLOCKATTR, lease_ms);
}

int rlock_rwlockattr_getlease(const rlock_rwlockattr_t *attr, long *ret_lease_ms)
{
    return rlk_attr_getlease(CONST_BASE(attr), RLK_MAGIC_RWLOCKATTR, ret_lease_ms);
}

int rlock_rwlockattr_setfencing(rlock_rwlockattr_t *attr, int fencing)
{
    return rlk_attr_setfencing(BASE(attr), RLK_MAGIC_RWLOCKATTR, fencing);
}

int rlock_rwlockattr_getfencing(const rlock_rwlockattr_t *attr, int *ret_fencing)
{
    return rlk_attr_getfencing(CONST_BASE(attr), RLK_MAGIC_RWLOCKATTR, ret_fencing);
}

int rlock_rwlockattr_setoutage(rlock_rwlockattr_t *attr, int outage)
{
    return rlk_attr_setoutage(BASE(attr), RLK_MAGIC_RWLOCKATTR, outage);
}

int rlock_rwlockattr_getoutage(const rlock_rwlockattr_t *attr, int *ret_outage)
{
    return rlk_attr_getoutage(CONST_BASE(attr), RLK_MAGIC_RWLOCKATTR, ret_outage);
}

int rlock_rwlockattr_setclient(rlock_rwlockattr_t *attr, rlock_client_t *client)
{
    return rlk_attr_setclient(BASE(attr), RLK_MAGIC_RWLOCKATTR, client);
}

int rlock_rwlockattr_getclient(const rlock_rwlockattr_t *attr,
                               rlock_client_t **ret_client)
{
    return rlk_attr_getclient(CONST_BASE(attr), RLK_MAGIC_RWLOCKATTR, ret_client);
}

#ifdef __GLIBC__ /* other C libraries have no kinds */
_Static_assert((int)RLOCK_RWLOCK_PREFER_READER_NP ==
                       (int)PTHREAD_RWLOCK_PREFER_READER_NP &&
                   (int)RLOCK_RWLOCK_PREFER_WRITER_NP ==
                       (int)PTHREAD_RWLOCK_PREFER_WRITER_NP &&
                   (int)RLOCK_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP ==
                       (int)PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP &&
                   (int)RLOCK_RWLOCK_DEFAULT_NP == (int)PTHREAD_RWLOCK_DEFAULT_NP,
               "constants equal pthread's");
#endif

int rlock_rwlockattr_setkind_np(rlock_rwlockattr_t *attr, int kind)
{
    RLK_ATTR_CALL(
        CONST_BASE(attr), RLK_MAGIC_RWLOCKATTR,
        kind == RLOCK_RWLOCK_PHASE_FAIR_NP ||
            rlk_error_argument_in("a kind other than RLOCK_RWLOCK_PHASE_FAIR_NP", kind,
                                  RLOCK_RWLOCK_PREFER_READER_NP,
                                  RLOCK_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP),
        attr->rlk.rlk_type = kind);
}

int rlock_rwlockattr_getkind_np(const rlock_rwlockattr_t *attr, int *ret_kind)
{
    RLK_ATTR_CALL(CONST_BASE(attr), RLK_MAGIC_RWLOCKATTR,
                  rlk_error_argument_there("ret_kind", ret_kind),
                  *ret_kind = attr->rlk.rlk_type == RLK_ATTR_UNSET
                                  ? RLOCK_RWLOCK_PHASE_FAIR_NP
                                  : attr->rlk.rlk_type);
}

int rlock_rwlockattr_setretain(rlock_rwlockattr_t *attr, long retain_ms)
{
    RLK_ATTR_CALL(CONST_BASE(attr), RLK_MAGIC_RWLOCKATTR,
                  rlk_error_argument_in("retain (ms)", retain_ms, 0, RLK_RETAIN_MAX_MS),
                  attr->rlk.rlk_retain_ms = (int32_t)retain_ms);
}

int rlock_rwlockattr_getretain(const rlock_rwlockattr_t *attr, long *ret_retain_ms)
{
    RLK_ATTR_CALL(CONST_BASE(attr), RLK_MAGIC_RWLOCKATTR,
                  rlk_error_argument_there("ret_retain_ms", ret_retain_ms),
                  *ret_retain_ms = attr->rlk.rlk_retain_ms == RLK_ATTR_UNSET
                                       ? 0
                                       : attr->rlk.rlk_retain_ms);
}
