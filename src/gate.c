/* SPDX-License-Identifier: Apache-2.0 */
/* See gate.h. Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "gate.h"

#include "client.h"
#include "handoff.h"
#include "holdings.h"

#include <assert.h>
#include <stdlib.h>

void rlk_gate_open_locked(struct rlk_hold *hold, bool kept)
{
    assert(hold->idle && hold->pass != &rlk_no_pass && hold->pass->gate == 0);
    rlk_list_append(&hold->lock->registry->gates, &hold->pass->gate_link);
    atomic_store_explicit(&hold->pass->gate,
                          kept ? RLK_GATE_OPEN | RLK_GATE_KEPT : RLK_GATE_OPEN,
                          memory_order_release);
}

void rlk_gate_close_locked(struct rlk_hold *hold)
{
    /* rule: H1 */
    if (atomic_load_explicit(&hold->pass->gate, memory_order_relaxed) == 0)
        return;
    uint64_t was = atomic_exchange_explicit(&hold->pass->gate, 0, memory_order_acq_rel);
    rlk_list_remove(&hold->pass->gate_link);
    for (struct rlk_list *l = hold->pass->residents.next, *next;
         l != &hold->pass->residents; l = next) {
        struct rlk_part *part = RLK_CONTAINER_OF(l, struct rlk_part, hold_link);
        next = l->next;
        rlk_gate_count_locked(part);
        if (!rlk_gate_is_in(was, part->owner))
            continue;
        rlk_list_remove(&part->hold_link);
        rlk_list_append(&hold->parts, &part->hold_link);
        part->resident = false;
        part->claimed = true;
        rlk_hold_idle_locked(hold, false);
        /* which the server was not told of (H8) */
        if (hold->pass->entered_at <= hold->proof_sent)
            hold->pass->entered_at = hold->proof_sent + 1;
        if (hold->state == RLK_HOLD_INSIDE)
            rlk_hold_schedule_locked(hold);
    }
}

void rlk_gate_close_all_locked(struct rlk_registry *reg)
{
    struct rlk_list *l;
    while ((l = rlk_list_first(&reg->gates)) != NULL)
        rlk_gate_close_locked(RLK_CONTAINER_OF(l, struct rlk_pass, gate_link)->hold);
}

void rlk_gate_prepare(struct rlk_thread *thread)
{
    if (!thread->passes.times)
        thread->passes.times = calloc(1, sizeof(*thread->passes.times));
}

void rlk_gate_step_out_locked(struct rlk_part *part, bool keeps)
{
    struct rlk_thread *thread = part->owner;
    struct rlk_hold *hold = part->hold;

    if ((thread->fast && thread->fast != part) || !thread->passes.times) {
        rlk_part_leave_locked(part);
        return;
    }
    rlk_holdings_remove(thread, part);
    rlk_list_remove(&part->hold_link);
    rlk_list_append(&hold->pass->residents, &part->hold_link);
    part->resident = true;
    part->keeps = keeps;
    part->claimed = part->ended = false;
    rlk_part_first_level(part); /* as soon as it is inside again */
    rlk_gate_count_locked(part);
    if (!thread->fast) /* perhaps of another client: with a longest section of its own */
        rlk_histogram_set(&thread->passes.times->held.max_ns, 0);
    thread->fast = part;
    part->fast = true;
    thread->fast_in = false;
}

struct rlk_part *rlk_gate_step_in_locked(struct rlk_hold *hold, struct rlk_thread *thread)
{
    struct rlk_part *part = thread->fast;

    if (!part || part->hold != hold || !part->resident)
        return NULL;
    rlk_list_remove(&part->hold_link);
    rlk_list_append(&hold->parts, &part->hold_link);
    part->resident = false;
    return part;
}

void rlk_gate_end_locked(struct rlk_hold *hold)
{
    struct rlk_registry *reg = hold->lock->registry;
    for (struct rlk_list *l = hold->pass->residents.next; l != &hold->pass->residents;
         l = l->next)
        reg->retain(reg);
}

void rlk_gate_count_locked(struct rlk_part *part)
{
    struct rlk_registry *reg = part->hold->lock->registry;
    struct rlk_counters *counters = reg->counters;
    uint32_t again = atomic_load_explicit(&part->reentries, memory_order_relaxed);

    atomic_fetch_add_explicit(&counters->reentries,
                              (uint32_t)(again - part->counted_again),
                              memory_order_relaxed);
    part->counted_again = again;
    if (!part->fast)
        return;
    struct rlk_passes *passes = &part->owner->passes;
    uint64_t entered = atomic_load_explicit(&passes->entered, memory_order_relaxed);
    uint64_t left = atomic_load_explicit(&passes->left, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->acquisitions, entered - passes->counted_entered,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->local_handovers,
                              entered - passes->counted_entered, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->releases, left - passes->counted_left,
                              memory_order_relaxed);
    /* also when as many left as before: of one who left and was still in after all, what
     * was taken over meanwhile is to be taken back */
    rlk_histogram_fold(&reg->held, &passes->times->held, &passes->times->counted_held);
    passes->counted_entered = entered;
    passes->counted_left = left;
}

void rlk_gate_count(struct rlk_part *part)
{
    struct rlk_registry *reg = part->hold->lock->registry;
    rlk_mutex_lock(&reg->mu);
    rlk_gate_count_locked(part);
    rlk_mutex_unlock(&reg->mu);
}

void rlk_gate_drop(struct rlk_thread *thread)
{
    struct rlk_part *part = thread->fast;
    struct rlk_registry *reg = part->hold->lock->registry;

    /* the client may have been closed meanwhile: its threads are not to be woken */
    rlk_mutex_lock(&reg->mu);
    bool ended = part->hold->state != RLK_HOLD_INSIDE;
    rlk_part_leave_locked(part);
    rlk_mutex_unlock(&reg->mu);
    if (ended)
        rlk_client_release(RLK_CLIENT_OF(reg));
}
