/* SPDX-License-Identifier: Apache-2.0 */
/* What concerns all retained holds of a client at once; see handoff.h. Thread: any.
 * Locks: hold the registry's mu. Blocks: no. */
#include "state/handoff.h"

#include "state/fastpath.h"
#include "state/readshare.h"
#include "state/registry.h"

void rlk_handoff_end_all_locked(struct rlk_registry *reg, int64_t now)
{
    /* rule: K9 */
    rlk_fastpath_close_all_locked(reg);
    for (size_t i = 0; i < reg->table_size; i++)
        for (struct rlk_lock *lock = reg->table[i]; lock; lock = lock->chain) {
            struct rlk_hold *read;
            if (lock->current && rlk_hold_is_retained(lock->current))
                rlk_hold_end_unused_locked(lock->current, now);
            while ((read = rlk_readshare_retained_locked(lock)) != NULL)
                rlk_hold_end_unused_locked(read, now);
        }
}

/* What the process knows of contention may be out of date. */
static void ask_soon(struct rlk_hold *hold)
{
    hold->contention.ask = true;
    rlk_hold_schedule_locked(hold);
}

void rlk_handoff_ask_all_locked(struct rlk_registry *reg)
{
    /* rule: K1 */
    for (size_t i = 0; i < reg->table_size; i++)
        for (struct rlk_lock *lock = reg->table[i]; lock; lock = lock->chain) {
            if (lock->current && rlk_hold_is_retained(lock->current))
                ask_soon(lock->current);
            if (lock->queue->shared && lock->queue->shared->contention.recall)
                ask_soon(lock->queue->shared);
        }
}
