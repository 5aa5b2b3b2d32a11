/* SPDX-License-Identifier: Apache-2.0 */
/* A hold becomes live, or goes on as a read. See hold.h. Thread: any.
 * Locks: hold the registry's mu. Blocks: no. */
#include "base/log.h"
#include "state/registry.h"
#include "state/thread_holds.h"

#include <assert.h>

/* The calling thread is the first inside: its holder takes the place of the request in
 * the hold. */
static void enter_first(struct rlk_hold *hold, struct rlk_thread *thread, int64_t now)
{
    struct rlk_holder *holder = &hold->own;

    rlk_holder_init(holder, hold);
    holder->owner = thread;
    holder->owner_thread = rlk_sync_thread_self();
    rlk_holder_first_level(holder);
    holder->claimed = true;
    holder->since = now;
    holder->fencing = rlk_hold_is_fenced(hold);
    rlk_list_append(&hold->holders, &holder->hold_link);
    rlk_thread_holds_add(thread, holder);
}

/* Starts the counts of entries and of hand-offs, and the field that only this mode
 * has. */
static void begin_counts(struct rlk_hold *hold, int64_t now)
{
    hold->lock->entered++;
    if (!hold->reading)
        hold->lock->entered_alone++;
    hold->budget.from = now;
    hold->budget.sections = 1;
    if (hold->reading)
        hold->read.joins = 0;
    else
        hold->exclusive.mark = hold->robust.owner_died ? 2 : 1;
}

/* Adds a read to the lock's reads. Newcomers join the newest read, so an older one that
 * is retained is of no more use, and ends. */
static void list_read(struct rlk_hold *hold, int64_t now)
{
    struct rlk_queue *queue = hold->lock->queue;
    struct rlk_hold *before = queue->shared;

    rlk_list_append(&queue->reads, &hold->link);
    if (hold->fixed)
        return;
    queue->shared = hold;
    if (before && rlk_hold_is_retained(before))
        rlk_hold_end_unused_locked(before, now);
}

void rlk_hold_enter_locked(struct rlk_hold *hold, struct rlk_thread *thread, int64_t now)
{
    /* rule: T10 */
    hold->refs += 2; /* of the lock and of the holder */
    rlk_hold_ask_end_locked(hold);
    unsigned flags = hold->request.flags;
    enter_first(hold, thread, now);
    rlk_hold_change_locked(hold, RLK_ON_ENTER);
    hold->since = now;
    if (rlk_log_ended()) /* the process ends: the lease would be renewed, but no thread
                            would unlock */
        hold->fixed = true;
    begin_counts(hold, now);
    if (rlk_hold_says_contended(hold, flags))
        hold->contention.contended = true;
    hold->contention.recall = rlk_hold_says_recall(hold, flags);
    if (hold->reading)
        list_read(hold, now);
    else
        hold->lock->current = hold;
    rlk_intent_say_locked(hold, RLK_INSIDE);
    if (hold->lease.reported_lost) /* the message came before the answer (T10) */
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
    hold->reading = hold->server.downgrade = true;
    hold->read.joins =
        0; /* shares memory with the mark, which a read-write lock does not have */
    hold->tokens.ask = false; /* the section keeps its token */
    if (hold->fixed)
        hold->renew_at = hold->end; /* the caller tells the server first */
    rlk_list_append(&lock->queue->reads, &hold->link);
}
