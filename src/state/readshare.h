/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local joining of reads: threads of this process that want to read enter the read hold
 * that it has without the server, and the last one out keeps it, as long as no writer is
 * known to wait (rule K14). Only where handles say that the lock is kept; else every
 * newcomer asks (W21). All under the registry's mutex.
 */
#ifndef RLK_READSHARE_H
#define RLK_READSHARE_H

#include "state/lock.h"

/* The calling thread, `self`, whose handle keeps the lock, joins those who read. False:
 * it is to ask. */
bool rlk_readshare_enter_locked(struct rlk_lock *lock, const struct rlk_waiter *self,
                                int64_t now);

/* The last level of a thread ends at `now` < D. True: it has left, and nobody is inside
 * any more, but the hold is kept; false: it is to leave as usual. */
bool rlk_readshare_unlock_locked(struct rlk_holder *holder, struct rlk_handoff bound,
                                 int64_t now);

/* Somebody comes into a hold that reads, or asks whether he may: it is not kept any more,
 * but used. */
void rlk_readshare_use_locked(struct rlk_hold *hold);

/* A read hold that is kept though nobody is inside, for who wants to write; or NULL. */
struct rlk_hold *rlk_readshare_kept_locked(struct rlk_lock *lock);

/* A message names a read hold of the lock, INSIDE or ASKING: a writer waits (K15). It is
 * the only one to this client, and so about all of them. */
void rlk_readshare_wanted_locked(struct rlk_lock *lock, int64_t now);

#endif
