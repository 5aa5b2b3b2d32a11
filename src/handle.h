/* SPDX-License-Identifier: Apache-2.0 */
/* What a handle in the caller's memory says, and how it is checked. */
#ifndef RLK_HANDLE_H
#define RLK_HANDLE_H

#include "url.h"

#include <rlock.h>
#include <stdbool.h>
#include <string.h>

#define RLK_MAGIC_MUTEXATTR UINT32_C(0x01415452)
#define RLK_MAGIC_CLIENTATTR UINT32_C(0x01434154)

/* rlk_flags of a handle */
enum rlk_handle_flags {
    RLK_HANDLE_FENCING = 1,
    RLK_HANDLE_ROBUST = 2,
    RLK_HANDLE_SHARED = 4,
    RLK_HANDLE_OUTAGE_FAIL = 8,
    RLK_HANDLE_OUTAGE_ABORT = 16
};

static inline bool rlk_lease_valid(long lease_ms)
{
    return lease_ms >= RLK_LEASE_MIN_MS && lease_ms <= RLK_LEASE_MAX_MS;
}

/* Whether this is an initialised handle of `kind`: magic, kind, and a name of the length
 * it says. The handle may lie in shared memory where a dead process left it half made:
 * the magic is written last. */
static inline bool rlk_handle_good(const struct rlk_handle *handle, int kind)
{
    return handle &&
           __atomic_load_n(&handle->rlk_magic, __ATOMIC_ACQUIRE) == RLK_MAGIC_HANDLE &&
           handle->rlk_kind == kind && handle->rlk_name_len >= 1 &&
           handle->rlk_name_len <= RLOCK_NAME_MAX &&
           handle->rlk_name[handle->rlk_name_len] == '\0';
}

#endif
