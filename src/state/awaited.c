/* SPDX-License-Identifier: Apache-2.0 */
/* See awaited.h. */
#include "state/awaited.h"

#include "base/clock.h"
#include "state/hold.h"

#include <assert.h>

enum { LOOK_AFTER_MS = 10 /* a shorter wait is for a live holder */ };

bool rlk_awaited_lock_locked(const struct rlk_lock *lock)
{
    const struct rlk_list *asks = &lock->queue->asks;

    for (const struct rlk_list *l = asks->next; l != asks; l = l->next)
        if (RLK_CONTAINER_OF(l, struct rlk_hold, link)->request.ticket != 0)
            return true;
    return lock->kind == RLK_KIND_WATCH && !rlk_list_empty(&lock->queue->waiters);
}

bool rlk_awaited_awaits_locked(const struct rlk_registry *reg)
{
    for (size_t i = 0; reg->asks_now > 0 && i < reg->table_size; i++)
        for (const struct rlk_lock *lock = reg->table[i]; lock; lock = lock->chain)
            if (rlk_awaited_lock_locked(lock))
                return true;
    return false;
}

void rlk_awaited_waits_locked(struct rlk_registry *reg)
{
    /* rule: G9 */
    reg->waits_begun++;
    if (reg->recovers && !reg->looks && !reg->look_timer.armed)
        rlk_timer_arm(&reg->timers, &reg->look_timer,
                      rlk_clock_boot() + LOOK_AFTER_MS * RLK_NS_PER_MS);
}

void rlk_awaited_tried_locked(struct rlk_registry *reg)
{
    reg->tried = true;
    rlk_awaited_waits_locked(reg);
}

void rlk_awaited_asked_locked(struct rlk_registry *reg)
{
    assert(reg->asks_now > 0);
    reg->asks_now--;
}

void rlk_awaited_death_locked(struct rlk_registry *reg, struct rlk_death_event *death)
{
    death->next = NULL;
    if (reg->first_death)
        reg->last_death->next = death;
    else
        reg->first_death = death;
    reg->last_death = death;
    reg->subscriber_dirty = true;
}

struct rlk_death_event *rlk_awaited_next_death_locked(struct rlk_registry *reg)
{
    struct rlk_death_event *death = reg->first_death;
    if (death)
        reg->first_death = death->next;
    return death;
}
