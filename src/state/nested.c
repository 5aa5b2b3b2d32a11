/* SPDX-License-Identifier: Apache-2.0 */
/* See nested.h. Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "state/nested.h"

#include "base/clock.h"
#include "state/fastpath.h"
#include "state/registry.h"

#include <rlock.h>

/* rule: E1, E2 */
void rlk_nested_begin_locked(struct rlk_lock *lock, struct rlk_nested *nested)
{
    struct rlk_registry *reg = lock->registry;
    struct rlk_thread *thread = nested->thread;
    struct rlk_timer *timer = &lock->queue->chase_timer;

    if (!rlk_nested_is_inside(thread))
        return;
    nested->lock = lock;
    nested->thread_number = thread->number;
    nested->number = ++reg->nested_count;
    nested->begun = true;
    rlk_list_append(&lock->queue->nested, &nested->link);
    thread->nested = nested;
    atomic_store_explicit(&thread->nested_in, reg->client_number + 1,
                          memory_order_relaxed);
    if (reg->deadlock_ns > 0 && nested->mode != RLOCK_DEADLOCK_OFF && !timer->armed)
        rlk_timer_arm(&reg->timers, timer, nested->since + reg->deadlock_ns);
}

void rlk_nested_end_locked(struct rlk_nested *nested)
{
    if (!nested->begun)
        return;
    struct rlk_queue *queue = nested->lock->queue;
    nested->begun = false;
    atomic_store_explicit(&nested->thread->nested_in, 0, memory_order_relaxed);
    nested->thread->nested = NULL;
    rlk_list_remove(&nested->link);
    if (rlk_list_empty(&queue->nested))
        rlk_timer_disarm(&nested->lock->registry->timers, &queue->chase_timer);
}

/* rule: E13 */
struct rlk_nested *rlk_nested_of_locked(struct rlk_registry *reg,
                                        struct rlk_thread *thread, uint64_t number)
{
    if (atomic_load_explicit(&thread->nested_in, memory_order_relaxed) !=
        reg->client_number + 1)
        return NULL;
    return thread->nested->thread_number == number ? thread->nested : NULL;
}

int64_t rlk_nested_due(const struct rlk_lock *lock)
{
    const struct rlk_registry *reg = lock->registry;
    const struct rlk_list *all = &lock->queue->nested;

    if (reg->deadlock_ns == 0)
        return RLK_NEVER;
    for (const struct rlk_list *l = all->next; l != all; l = l->next) {
        const struct rlk_nested *nested = RLK_CONTAINER_OF(l, struct rlk_nested, link);
        if (nested->mode != RLOCK_DEADLOCK_OFF)
            return nested->since + reg->deadlock_ns; /* the oldest one comes first */
    }
    return RLK_NEVER;
}

/* rule: E1, E3 */
size_t rlk_nested_holders_locked(struct rlk_registry *reg, const struct rlk_id *id,
                                 const char *name, size_t name_len, int64_t now,
                                 struct rlk_nested_holder *ret_holders, size_t max)
{
    struct rlk_hold *hold = rlk_registry_find_locked(reg, id, name, name_len);
    size_t count = 0;

    if (!hold || !rlk_hold_is_live(hold) || now >= hold->end)
        return 0;
    rlk_fastpath_close_locked(hold);
    if (hold->state != RLK_HOLD_HELD)
        return 0;
    for (struct rlk_list *l = hold->holders.next; l != &hold->holders && count < max;
         l = l->next) {
        const struct rlk_holder *holder =
            RLK_CONTAINER_OF(l, struct rlk_holder, hold_link);
        /* a thread that was let in does not know it yet, and still waits */
        if (holder->owner && holder->claimed)
            ret_holders[count++] =
                (struct rlk_nested_holder){ holder->owner, holder->owner->number };
    }
    return count;
}
