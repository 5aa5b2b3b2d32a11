/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared reads without the server: threads of this process that want to read enter the
 * read hold that the process has, and the last thread that leaves retains it, as long as
 * no writer is known to wait (K14). Only for handles that retain the lock; threads with
 * other handles ask the server (W21). All under the registry's mutex.
 */
#ifndef RLK_READSHARE_H
#define RLK_READSHARE_H

#include "state/lock.h"

/* The calling thread, `self`, whose handle retains the lock, joins the readers. False: it
 * is to ask the server. */
bool rlk_readshare_enter_locked(struct rlk_lock *lock, const struct rlk_waiter *self,
                                int64_t now);

/* The last level of a thread ends at `now` < D. True: it has left, no thread is inside
 * any more, and the hold is RETAINED. False: it is to leave as usual. */
bool rlk_readshare_unlock_locked(struct rlk_holder *holder, struct rlk_handoff bound,
                                 int64_t now);

/* A thread enters a read hold, or asks the server whether it may: a RETAINED hold becomes
 * HELD again. */
void rlk_readshare_use_locked(struct rlk_hold *hold);

/* A RETAINED read hold, which a thread that wants to write gives back; or NULL. */
struct rlk_hold *rlk_readshare_retained_locked(struct rlk_lock *lock);

/* A recall names a read hold of the lock, live or REQUESTED: a writer waits (K15). The
 * client gets one recall, so it is about all of its reads. */
void rlk_readshare_recalled_locked(struct rlk_lock *lock, int64_t now);

#endif
