/* SPDX-License-Identifier: Apache-2.0 */
/* A hold begins: the first thread enters; or goes on as a read. See hold.h. Thread: any.
 * Locks: hold the registry's mu. Blocks: no. */
#include "base/log.h"
#include "state/registry.h"
#include "state/thread_holds.h"

#include <assert.h>

void rlk_hold_enter_locked(struct rlk_hold *hold, struct rlk_thread *thread, int64_t now)
{
    struct rlk_lock *lock = hold->lock;

    /* rule: T10 */
    hold->refs += 2; /* the lock's, the part's */
    rlk_hold_ask_end_locked(hold);
    unsigned flags = hold->flags;
    rlk_holder_init(&hold->own, hold); /* in the place of what it was asked with */
    rlk_hold_change_locked(hold, RLK_ON_ENTER);
    hold->since = now;
    if (rlk_log_ended()) /* the process ends: it would be renewed, but never unlocked */
        hold->fixed = true;
    lock->entered++;
    if (!hold->reading)
        lock->entered_alone++;
    hold->budget_from = now;
    hold->sections = 1;
    if (rlk_hold_hears_others(hold, flags))
        hold->others = true;
    hold->tells = rlk_hold_hears_telling(hold, flags);
    if (hold->reading)
        hold->joins = 0;
    else
        hold->mark = hold->owner_died ? 2 : 1;
    hold->own.owner = thread;
    hold->own.owner_thread = rlk_sync_thread_self();
    rlk_holder_first_level(&hold->own);
    hold->own.claimed = true;
    hold->own.since = now;
    hold->own.fencing = rlk_hold_is_fenced(hold);
    rlk_list_append(&hold->holders, &hold->own.hold_link);
    rlk_thread_holds_add(thread, &hold->own);
    if (hold->reading) {
        rlk_list_append(&lock->queue->reads, &hold->link);
        if (!hold->fixed) {
            struct rlk_hold *before = lock->queue->shared;
            lock->queue->shared = hold;
            if (before && rlk_hold_is_retained(before)) /* newcomers may join it */
                rlk_hold_end_unused_locked(before, now);
        }
    } else {
        lock->current = hold;
    }
    rlk_intent_say_locked(hold, RLK_INSIDE);
    if (hold->told_lost) /* the message came before the answer (T10) */
        rlk_hold_doubt_locked(hold, now);
    else
        rlk_hold_schedule_locked(hold);
}

void rlk_hold_downgrade_locked(struct rlk_hold *hold)
{
    struct rlk_lock *lock = hold->lock;

    /* rule: W18 */
    assert(lock->current == hold);
    lock->current = NULL;
    hold->reading = hold->downgrading = true;
    hold->joins = 0;           /* in place of the mark, which no writer has */
    hold->asks_tokens = false; /* it keeps the one it has */
    if (hold->fixed)
        hold->renew_at = hold->end; /* the caller tells the server first */
    rlk_list_append(&lock->queue->reads, &hold->link);
}
