/* SPDX-License-Identifier: Apache-2.0 */
/* What the public functions of mutex and fair lock have in common; see rlock.h for each.
 * `kind` is the RLK_KIND_* that the handle must have. lease_ms 0: the handle's lease,
 * renewed. */
#ifndef RLK_EXCLUSIVE_H
#define RLK_EXCLUSIVE_H

#include "lock/handle.h"

int rlk_exclusive_lock(struct rlk_handle *handle, int kind, long lease_ms);
int rlk_exclusive_trylock(struct rlk_handle *handle, int kind, long lease_ms);
int rlk_exclusive_clocklock(struct rlk_handle *handle, int kind, clockid_t clock,
                            const struct timespec *abstime, long lease_ms);
int rlk_exclusive_unlock(struct rlk_handle *handle, int kind);
int rlk_exclusive_consistent(struct rlk_handle *handle, int kind);
int rlk_exclusive_prioceiling(const struct rlk_handle *handle, int kind);

#endif
