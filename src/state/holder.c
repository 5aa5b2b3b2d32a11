/* SPDX-License-Identifier: Apache-2.0 */
/* See holder.h. Thread: any. Locks: hold the registry's mu.
 * Blocks: no. */
#include "state/hold.h"

#include "state/registry.h"
#include "state/thread_holds.h"

#include <stdlib.h>
#include <string.h>

enum { FREE_HOLDERS_MAX = 64 /* for reuse: lock and unlock allocate nothing */ };

void rlk_holder_first_level(struct rlk_holder *holder)
{
    holder->levels.writes = !rlk_kinds[holder->hold->lock->kind].read_letter;
}

void rlk_holder_init(struct rlk_holder *holder, struct rlk_hold *hold)
{
    memset(holder, 0, sizeof(*holder));
    holder->hold = hold;
    rlk_list_init(&holder->hold_link);
    rlk_list_init(&holder->thread_link);
}

struct rlk_holder *rlk_holder_join_locked(struct rlk_hold *hold, bool fencing)
{
    struct rlk_registry *reg = hold->lock->registry;
    struct rlk_holder *holder = &hold->own;

    if (holder->owner || holder->news_awaits) {
        struct rlk_list *l = rlk_list_pop(&reg->free_holders);
        holder = l ? RLK_CONTAINER_OF(l, struct rlk_holder, hold_link)
                   : malloc(sizeof(*holder));
        if (!holder)
            return NULL;
        if (l)
            reg->free_holder_count--;
        rlk_holder_init(holder, hold);
    }
    holder->fencing = fencing;
    holder->claimed = holder->ended = false;
    rlk_list_append(&hold->holders, &holder->hold_link);
    hold->refs++;
    return holder;
}

void rlk_holder_own_locked(struct rlk_holder *holder, struct rlk_thread *thread,
                           int64_t now)
{
    holder->since = now;
    holder->ended = false;
    holder->owner = thread;
    holder->owner_thread = rlk_sync_thread_self();
    rlk_holder_first_level(holder);
    holder->claimed = true;
    if (holder->hold->lease.at_risk)
        rlk_holder_news_locked(holder, RLK_NEWS_AT_RISK);
    if (thread->fast == holder)
        thread->fast_in = true;
    else
        rlk_thread_holds_add(thread, holder);
}

void rlk_holder_end_section_locked(struct rlk_holder *holder, int64_t now)
{
    int64_t lasted = now - holder->since;

    rlk_histogram_add(&holder->hold->lock->registry->held, lasted);
    holder->lasted = lasted > 0 ? lasted : 0;
    holder->ended = true;
}

/* Frees the holder when neither its thread nor the news need it any more. */
static void put_holder(struct rlk_holder *holder)
{
    struct rlk_hold *hold = holder->hold;
    struct rlk_registry *reg = hold->lock->registry;

    if (holder != &hold->own && !holder->owner && !holder->news_awaits) {
        if (reg->free_holder_count < FREE_HOLDERS_MAX) {
            reg->free_holder_count++;
            rlk_list_prepend(&reg->free_holders, &holder->hold_link);
        } else {
            free(holder);
        }
    }
    rlk_hold_put_locked(hold);
}

void rlk_holder_count_locked(struct rlk_holder *holder)
{
    struct rlk_registry *reg = holder->hold->lock->registry;
    struct rlk_counters *counters = reg->counters;
    uint32_t again = atomic_load_explicit(&holder->reentries, memory_order_relaxed);

    atomic_fetch_add_explicit(&counters->reentries,
                              (uint32_t)(again - holder->counted_again),
                              memory_order_relaxed);
    holder->counted_again = again;
    if (!holder->fast)
        return;
    struct rlk_passes *passes = &holder->owner->passes;
    uint64_t entered = atomic_load_explicit(&passes->entered, memory_order_relaxed);
    uint64_t left = atomic_load_explicit(&passes->left, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->acquisitions, entered - passes->counted_entered,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->local_handovers,
                              entered - passes->counted_entered, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->releases, left - passes->counted_left,
                              memory_order_relaxed);
    /* also if no section has ended: since the last time a thread may have taken back the
     * end of a section that it had counted while still inside */
    rlk_histogram_fold(&reg->held, &passes->times->held, &passes->times->counted_held);
    passes->counted_entered = entered;
    passes->counted_left = left;
}

void rlk_holder_leave_locked(struct rlk_holder *holder)
{
    struct rlk_thread *thread = holder->owner;

    rlk_holder_count_locked(holder);
    if (holder->fast) {
        thread->fast = NULL;
        thread->fast_in = false;
    }
    holder->resident = holder->fast = false;
    rlk_recursion_clear(&holder->levels);
    if (thread)
        rlk_thread_holds_remove(thread, holder);
    rlk_list_remove(&holder->hold_link);
    holder->owner = NULL;
    put_holder(holder);
}

void rlk_holder_news_locked(struct rlk_holder *holder, unsigned news)
{
    struct rlk_registry *reg = holder->hold->lock->registry;

    holder->news |= (uint8_t)news;
    if (!holder->news_awaits) {
        holder->news_awaits = true;
        holder->hold->refs++;
        holder->next_news = NULL;
        if (reg->first_news)
            reg->last_news->next_news = holder;
        else
            reg->first_news = holder;
        reg->last_news = holder;
    }
    reg->subscriber_dirty = true;
}

struct rlk_holder *rlk_holder_next_news_locked(struct rlk_registry *reg)
{
    struct rlk_holder *holder = reg->first_news;
    if (holder) {
        reg->first_news = holder->next_news;
        holder->news_awaits = false;
    }
    return holder;
}

void rlk_holder_told_locked(struct rlk_holder *holder)
{
    holder->news = 0;
    put_holder(holder);
}
