/* SPDX-License-Identifier: Apache-2.0 */
/* What concerns all locks and holds of a client at once; see registry.h. Thread: any.
 * Locks: hold the registry's mu. Blocks: no. */
#include "state/registry.h"

#include "state/awaited.h"
#include "state/fastpath.h"

#include <stdlib.h>

enum { DOUBTS_AT_ONCE = 64 };

bool rlk_registry_busy_locked(struct rlk_registry *reg)
{
    rlk_fastpath_close_all_locked(reg);
    return reg->holds_now > 0 || reg->waiters_now > 0;
}

void rlk_registry_shut_locked(struct rlk_registry *reg)
{
    struct rlk_timer *t;
    struct rlk_list *l;

    while ((t = rlk_timer_first(&reg->timers)) != NULL) {
        rlk_timer_disarm(&reg->timers, t);
        if (t->tag == RLK_TIMER_HOLD)
            rlk_hold_background_end_locked(RLK_CONTAINER_OF(t, struct rlk_hold, timer));
        else if (t->tag == RLK_TIMER_LOCK)
            rlk_queue_went_on_locked(RLK_CONTAINER_OF(t, struct rlk_queue, timer)->lock);
    }
    struct rlk_holder *holder;
    while ((holder = rlk_holder_next_news_locked(reg)) != NULL)
        rlk_holder_told_locked(holder);
    while ((l = rlk_list_pop(&reg->channels)) != NULL)
        rlk_lock_unref_locked(RLK_CONTAINER_OF(l, struct rlk_queue, channel_link)->lock);
    struct rlk_death_event *death;
    while ((death = rlk_awaited_next_death_locked(reg)) != NULL)
        free(death);
    reg->watchdog = reg->subscriber = NULL;
}

void rlk_registry_wake_all_locked(struct rlk_registry *reg)
{
    for (size_t i = 0; i < reg->table_size; i++)
        for (struct rlk_lock *lock = reg->table[i]; lock; lock = lock->chain)
            rlk_lock_wake_locked(lock);
    rlk_registry_wake_list_locked(reg, &reg->sleepers);
}

static bool is_any(const struct rlk_lock *lock, void *arg)
{
    (void)lock;
    (void)arg;
    return true;
}

void rlk_registry_recheck_some_locked(struct rlk_registry *reg, rlk_registry_is is,
                                      void *arg)
{
    /* rule: L3 */
    for (size_t i = 0; i < reg->table_size; i++)
        for (struct rlk_lock *lock = reg->table[i]; lock; lock = lock->chain)
            if (is(lock, arg))
                rlk_queue_poll_locked(lock);
}

void rlk_registry_recheck_locked(struct rlk_registry *reg)
{
    rlk_registry_recheck_some_locked(reg, is_any, NULL);
}

void rlk_registry_ask_again_locked(struct rlk_registry *reg, int64_t now)
{
    for (size_t i = 0; i < reg->table_size; i++)
        for (struct rlk_lock *lock = reg->table[i]; lock; lock = lock->chain)
            for (struct rlk_list *l = lock->queue->asks.next; l != &lock->queue->asks;
                 l = l->next)
                rlk_hold_ask_again_locked(RLK_CONTAINER_OF(l, struct rlk_hold, link),
                                          now);
}

static void doubt(struct rlk_hold *hold, int64_t now)
{
    int64_t left_ms = (hold->end - now) / RLK_NS_PER_MS, spread = 0;

    if (hold->lock->registry->holds_now > DOUBTS_AT_ONCE && left_ms > 0)
        spread = hold->id.grant_ms * RLK_NS_PER_MS / 3 / hold->lease_ms * left_ms;
    /* not later than it is asked about anyway, as after another move a moment ago */
    rlk_hold_doubt_locked(hold,
                          hold->renew_at < now + spread ? hold->renew_at : now + spread);
}

static void doubt_lock(struct rlk_lock *lock, int64_t now)
{
    if (rlk_lock_has_queue(lock))
        rlk_lock_channel_left_locked(lock);
    rlk_queue_poll_locked(lock);
    if (lock->current && rlk_hold_is_live(lock->current))
        doubt(lock->current, now);
    for (struct rlk_list *l = lock->queue->reads.next; l != &lock->queue->reads;
         l = l->next)
        doubt(RLK_CONTAINER_OF(l, struct rlk_hold, link), now);
}

/* rule: P9, P23 */
void rlk_registry_doubt_some_locked(struct rlk_registry *reg, int64_t now,
                                    rlk_registry_is is, void *arg)
{
    for (size_t i = 0; i < reg->table_size; i++)
        for (struct rlk_lock *lock = reg->table[i]; lock; lock = lock->chain)
            if (is(lock, arg))
                doubt_lock(lock, now);
}

void rlk_registry_doubt_all_locked(struct rlk_registry *reg, int64_t now)
{
    rlk_registry_doubt_some_locked(reg, now, is_any, NULL);
}
