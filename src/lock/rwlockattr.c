/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_rwlockattr_*: plain data of the caller. Thread: any. */
#include "lock/call.h"

#define API(verb) rlock_rwlockattr_##verb
#define ATTR rlock_rwlockattr_t
#define MAGIC RLK_MAGIC_RWLOCKATTR

#include "lock/attr_api.h"

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
    RLK_ATTR_CALL(CONST_BASE(attr), MAGIC,
                  kind == RLOCK_RWLOCK_PHASE_FAIR_NP ||
                      rlk_error_argument_in("a kind other than RLOCK_RWLOCK_PHASE_FAIR_NP",
                                      kind, RLOCK_RWLOCK_PREFER_READER_NP,
                                      RLOCK_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP),
                  attr->rlk.rlk_type = kind);
}

int rlock_rwlockattr_getkind_np(const rlock_rwlockattr_t *attr, int *ret_kind)
{
    RLK_ATTR_CALL(CONST_BASE(attr), MAGIC, rlk_error_argument_there("ret_kind", ret_kind),
                  *ret_kind = attr->rlk.rlk_type == RLK_ATTR_UNSET
                                  ? RLOCK_RWLOCK_PHASE_FAIR_NP
                                  : attr->rlk.rlk_type);
}

int rlock_rwlockattr_setretain(rlock_rwlockattr_t *attr, long retain_ms)
{
    RLK_ATTR_CALL(CONST_BASE(attr), MAGIC,
                  rlk_error_argument_in("retain (ms)", retain_ms, 0, RLK_RETAIN_MAX_MS),
                  attr->rlk.rlk_retain_ms = (int32_t)retain_ms);
}

int rlock_rwlockattr_getretain(const rlock_rwlockattr_t *attr, long *ret_retain_ms)
{
    RLK_ATTR_CALL(
        CONST_BASE(attr), MAGIC, rlk_error_argument_there("ret_retain_ms", ret_retain_ms),
        *ret_retain_ms =
            attr->rlk.rlk_retain_ms == RLK_ATTR_UNSET ? 0 : attr->rlk.rlk_retain_ms);
}
