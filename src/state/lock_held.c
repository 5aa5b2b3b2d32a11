/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the process has a lock; see lock.h. Thread: any. Locks: hold the registry's
 * mu. Blocks: no. */
#include "state/registry.h"

#include "state/fastpath.h"

bool rlk_lock_held_locked(struct rlk_lock *lock, int64_t now)
{
    /* rule: H3 */
    if (lock->current)
        rlk_fastpath_close_locked(lock->current);
    if (lock->current && now >= lock->current->end)
        rlk_hold_lose_locked(lock->current, RLK_LOSS_ENDED, now);
    for (struct rlk_list *l = lock->queue->reads.next, *next; l != &lock->queue->reads;
         l = next) {
        struct rlk_hold *hold = RLK_CONTAINER_OF(l, struct rlk_hold, link);
        next = l->next;
        if (now >= hold->end)
            rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    }
    return lock->current || !rlk_list_empty(&lock->queue->reads);
}
