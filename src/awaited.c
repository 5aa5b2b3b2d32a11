/* SPDX-License-Identifier: Apache-2.0 */
/* See awaited.h. */
#include "awaited.h"

#include "deadline.h"
#include "hold.h"

#include <assert.h>

enum { LOOK_AFTER_MS = 10 /* a shorter wait is for one who lives */ };

void rlk_registry_asks_locked(struct rlk_registry *reg)
{
    reg->asks_now++;
}

bool rlk_lock_awaited_locked(const struct rlk_lock *lock)
{
    const struct rlk_list *asks = &lock->queue->asks;

    for (const struct rlk_list *l = asks->next; l != asks; l = l->next)
        if (RLK_CONTAINER_OF(l, struct rlk_hold, link)->ticket != 0)
            return true;
    return lock->kind == RLK_KIND_WATCH && !rlk_list_empty(&lock->queue->waiters);
}

bool rlk_registry_awaits_locked(const struct rlk_registry *reg)
{
    for (size_t i = 0; reg->asks_now > 0 && i < reg->table_size; i++)
        for (const struct rlk_lock *lock = reg->table[i]; lock; lock = lock->chain)
            if (rlk_lock_awaited_locked(lock))
                return true;
    return false;
}

void rlk_registry_waits_locked(struct rlk_registry *reg)
{
    /* rule: G9 */
    reg->waits_begun++;
    if (reg->buries && !reg->looks && !reg->look_timer.armed)
        rlk_timer_arm(&reg->timers, &reg->look_timer,
                      rlk_now_boot() + LOOK_AFTER_MS * RLK_NS_PER_MS);
}

void rlk_registry_tried_locked(struct rlk_registry *reg)
{
    reg->tried = true;
    rlk_registry_waits_locked(reg);
}

void rlk_registry_asked_locked(struct rlk_registry *reg)
{
    assert(reg->asks_now > 0);
    reg->asks_now--;
}

void rlk_registry_mourn_locked(struct rlk_registry *reg, struct rlk_obituary *obituary)
{
    obituary->next = NULL;
    if (reg->first_obituary)
        reg->last_obituary->next = obituary;
    else
        reg->first_obituary = obituary;
    reg->last_obituary = obituary;
    reg->subscriber_dirty = true;
}

struct rlk_obituary *rlk_registry_obituary_locked(struct rlk_registry *reg)
{
    struct rlk_obituary *obituary = reg->first_obituary;
    if (obituary)
        reg->first_obituary = obituary->next;
    return obituary;
}
