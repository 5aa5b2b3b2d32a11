/* SPDX-License-Identifier: Apache-2.0 */
/* See readshare.h. Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "state/readshare.h"

#include "base/clock.h"
#include "base/log.h"
#include "state/handoff.h"
#include "state/registry.h"

/* rule: K14 */
/* Whether a thread may enter without the server: no writer waits here; nor elsewhere, or
 * a recall would have come. */
static bool is_open(const struct rlk_hold *hold, int64_t now)
{
    struct rlk_lock *lock = hold->lock;
    return hold->contention.recall && !hold->contention.contended &&
           lock->queue->shared == hold && !hold->fixed && !hold->lease.doubted &&
           now < hold->risk && rlk_list_empty(&lock->queue->waiters) &&
           !rlk_lock_ask_locked(lock) && !lock->ending && !rlk_log_ended();
}

void rlk_readshare_use_locked(struct rlk_hold *hold)
{
    if (!rlk_hold_is_retained(hold))
        return;
    rlk_hold_change_locked(hold, RLK_ON_TAKE);
    rlk_hold_retain_locked(hold, 0);
    rlk_hold_schedule_locked(hold); /* the whole lease is renewed again */
}

bool rlk_readshare_enter_locked(struct rlk_lock *lock, const struct rlk_waiter *self,
                                int64_t now)
{
    struct rlk_hold *hold = lock->queue->shared;

    /* rule: K14 */
    if (!hold || !self->retakes || !is_open(hold, now) ||
        !rlk_handoff_has_terms_of(hold, self) || !rlk_hold_pass_locked(hold))
        return false;
    struct rlk_holder *holder =
        rlk_holder_join_locked(hold, self->letter >= 'A' && self->letter <= 'Z');
    if (!holder)
        return false;
    rlk_readshare_use_locked(hold);
    rlk_holder_own_locked(holder, self->thread, now);
    rlk_handoff_unasked_locked(hold, now);
    RLK_COUNT(lock->registry->counters->acquisitions);
    RLK_COUNT(lock->registry->counters->local_handovers);
    return true;
}

bool rlk_readshare_unlock_locked(struct rlk_holder *holder, struct rlk_handoff bound,
                                 int64_t now)
{
    struct rlk_hold *hold = holder->hold;

    /* rule: K14 */
    if (hold->holders.next != hold->holders.prev || hold->read.joins > 0 ||
        bound.retain_ns == 0 || !bound.hears || !is_open(hold, now) ||
        !rlk_handoff_room_locked(hold) || !rlk_hold_pass_locked(hold))
        return false;
    rlk_holder_leave_locked(holder);
    rlk_hold_change_locked(hold, RLK_ON_RETAIN);
    rlk_hold_retain_locked(hold, bound.retain_ns);
    hold->pass->used_at = now;
    rlk_hold_schedule_locked(hold);
    return true;
}

struct rlk_hold *rlk_readshare_retained_locked(struct rlk_lock *lock)
{
    for (struct rlk_list *l = lock->queue->reads.next; l != &lock->queue->reads;
         l = l->next) {
        struct rlk_hold *hold = RLK_CONTAINER_OF(l, struct rlk_hold, link);
        if (rlk_hold_is_retained(hold) && rlk_hold_unused_locked(hold))
            return hold;
    }
    return NULL;
}

static void recall_reads(struct rlk_list *holds)
{
    for (struct rlk_list *l = holds->next; l != holds; l = l->next) {
        struct rlk_hold *hold = RLK_CONTAINER_OF(l, struct rlk_hold, link);
        if (hold->reading)
            hold->contention.contended = true;
    }
}

void rlk_readshare_recalled_locked(struct rlk_lock *lock, int64_t now)
{
    /* rule: K15 */
    recall_reads(&lock->queue->asks);
    recall_reads(&lock->queue->tries);
    for (struct rlk_list *l = lock->queue->reads.next, *next; l != &lock->queue->reads;
         l = next) {
        struct rlk_hold *hold = RLK_CONTAINER_OF(l, struct rlk_hold, link);
        next = l->next;
        hold->contention.contended = true;
        if (rlk_hold_is_retained(hold))
            rlk_hold_end_unused_locked(hold, now);
    }
}
