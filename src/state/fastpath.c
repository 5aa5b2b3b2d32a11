/* SPDX-License-Identifier: Apache-2.0 */
/* See fastpath.h. Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "state/fastpath.h"

#include "state/handoff.h"
#include "state/registry.h"
#include "state/thread_holds.h"

#include <assert.h>
#include <stdlib.h>

void rlk_fastpath_open_locked(struct rlk_hold *hold, bool retained)
{
    assert(rlk_hold_is_retained(hold) && hold->pass != &rlk_hold_no_pass &&
           hold->pass->fastpath == 0);
    rlk_list_append(&hold->lock->registry->fastpaths, &hold->pass->fastpath_link);
    atomic_store_explicit(&hold->pass->fastpath,
                          retained ? RLK_FASTPATH_OPEN | RLK_FASTPATH_RETAINED
                                   : RLK_FASTPATH_OPEN,
                          memory_order_release);
}

void rlk_fastpath_close_locked(struct rlk_hold *hold)
{
    /* rule: H1 */
    if (atomic_load_explicit(&hold->pass->fastpath, memory_order_relaxed) == 0)
        return;
    uint64_t was =
        atomic_exchange_explicit(&hold->pass->fastpath, 0, memory_order_acq_rel);
    rlk_list_remove(&hold->pass->fastpath_link);
    for (struct rlk_list *l = hold->pass->residents.next, *next;
         l != &hold->pass->residents; l = next) {
        struct rlk_holder *holder = RLK_CONTAINER_OF(l, struct rlk_holder, hold_link);
        next = l->next;
        rlk_holder_count_locked(holder);
        if (!rlk_fastpath_is_in(was, holder->owner))
            continue;
        rlk_list_remove(&holder->hold_link);
        rlk_list_append(&hold->holders, &holder->hold_link);
        holder->resident = false;
        holder->claimed = true;
        rlk_hold_change_locked(hold, RLK_ON_FOUND);
        /* the server does not know of this section (H8) */
        if (hold->pass->entered_at <= hold->proof_sent)
            hold->pass->entered_at = hold->proof_sent + 1;
        rlk_hold_schedule_locked(hold);
    }
}

void rlk_fastpath_close_all_locked(struct rlk_registry *reg)
{
    struct rlk_list *l;
    while ((l = rlk_list_first(&reg->fastpaths)) != NULL)
        rlk_fastpath_close_locked(
            RLK_CONTAINER_OF(l, struct rlk_pass, fastpath_link)->hold);
}

void rlk_fastpath_prepare(struct rlk_thread *thread)
{
    if (!thread->passes.times)
        thread->passes.times = calloc(1, sizeof(*thread->passes.times));
}

void rlk_fastpath_step_out_locked(struct rlk_holder *holder, bool retains)
{
    struct rlk_thread *thread = holder->owner;
    struct rlk_hold *hold = holder->hold;

    if ((thread->fast && thread->fast != holder) || !thread->passes.times) {
        rlk_holder_leave_locked(holder);
        return;
    }
    rlk_thread_holds_remove(thread, holder);
    rlk_list_remove(&holder->hold_link);
    rlk_list_append(&hold->pass->residents, &holder->hold_link);
    holder->resident = true;
    holder->retains = retains;
    holder->claimed = holder->ended = false;
    rlk_holder_first_level(holder); /* its level when it enters again */
    rlk_holder_count_locked(holder);
    if (!thread->fast) /* the last resident holder may be of another client */
        rlk_histogram_set(&thread->passes.times->held.max_ns, 0);
    thread->fast = holder;
    holder->fast = true;
    thread->fast_in = false;
}

struct rlk_holder *rlk_fastpath_step_in_locked(struct rlk_hold *hold,
                                               struct rlk_thread *thread)
{
    struct rlk_holder *holder = thread->fast;

    if (!holder || holder->hold != hold || !holder->resident)
        return NULL;
    rlk_list_remove(&holder->hold_link);
    rlk_list_append(&hold->holders, &holder->hold_link);
    holder->resident = false;
    return holder;
}

void rlk_fastpath_end_locked(struct rlk_hold *hold)
{
    struct rlk_registry *reg = hold->lock->registry;
    for (struct rlk_list *l = hold->pass->residents.next; l != &hold->pass->residents;
         l = l->next)
        reg->retain(reg);
}

void rlk_fastpath_count(struct rlk_holder *holder)
{
    struct rlk_registry *reg = holder->hold->lock->registry;
    rlk_sync_mutex_lock(&reg->mu);
    rlk_holder_count_locked(holder);
    rlk_sync_mutex_unlock(&reg->mu);
}

void rlk_fastpath_drop(struct rlk_thread *thread)
{
    struct rlk_holder *holder = thread->fast;
    struct rlk_registry *reg = holder->hold->lock->registry;

    /* the client may have been closed meanwhile: its threads must not be woken */
    rlk_sync_mutex_lock(&reg->mu);
    bool ended = !rlk_hold_is_live(holder->hold);
    rlk_holder_leave_locked(holder);
    rlk_sync_mutex_unlock(&reg->mu);
    if (ended)
        reg->release(reg);
}
