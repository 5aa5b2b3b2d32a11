/* SPDX-License-Identifier: Apache-2.0 */
/* See registry.h. Thread: any. Nothing here blocks or talks to a network. */
#include "state/registry.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>

enum {
    TABLE_SIZE_FIRST = 64,
    WAKES_MAX = 8, /* threads signalled after mu is dropped; more are rare */
    AWAY_MS = 100  /* to a caller in a hurry, a later answer is a failure */
};

int rlk_registry_init(struct rlk_registry *reg)
{
    if (!rlk_random_init(&reg->random))
        return rlk_error_of_step(errno, "cannot get random numbers (getrandom)");
    int rc = rlk_sync_mutex_init(&reg->mu);
    if (rc != 0)
        return rc;
    reg->table = calloc(TABLE_SIZE_FIRST, sizeof(struct rlk_lock *));
    if (!reg->table) {
        rlk_sync_mutex_destroy(&reg->mu);
        return ENOMEM;
    }
    reg->table_size = TABLE_SIZE_FIRST;
    rlk_list_init(&reg->idle);
    rlk_list_init(&reg->free_holds);
    rlk_list_init(&reg->free_holders);
    rlk_list_init(&reg->free_queues);
    rlk_list_init(&reg->free_passes);
    rlk_list_init(&reg->channels);
    rlk_list_init(&reg->sleepers);
    rlk_list_init(&reg->wakes);
    rlk_list_init(&reg->fastpaths);
    reg->armed = RLK_NEVER;
    reg->look_timer.tag = RLK_TIMER_LOOK;
    reg->wakers = 0;
    reg->parting = false;
    rc = rlk_sync_cond_init(&reg->background_done);
    if (rc != 0) {
        free(reg->table);
        reg->table = NULL;
        rlk_sync_mutex_destroy(&reg->mu);
    }
    return rc;
}

void rlk_registry_destroy(struct rlk_registry *reg)
{
    struct rlk_list *l;

    if (!reg->table)
        return;
    while ((l = rlk_list_pop(&reg->free_holds)) != NULL)
        free(RLK_CONTAINER_OF(l, struct rlk_hold, link));
    while ((l = rlk_list_pop(&reg->free_holders)) != NULL)
        free(RLK_CONTAINER_OF(l, struct rlk_holder, hold_link));
    for (size_t i = 0; i < reg->table_size; i++) {
        while (reg->table[i]) {
            struct rlk_lock *lock = reg->table[i];
            reg->table[i] = lock->chain;
            rlk_queue_end_locked(lock);
            free(lock);
        }
    }
    while ((l = rlk_list_pop(&reg->free_queues)) != NULL)
        free(RLK_CONTAINER_OF(l, struct rlk_queue, channel_link));
    while ((l = rlk_list_pop(&reg->free_passes)) != NULL)
        free(RLK_CONTAINER_OF(l, struct rlk_pass, fastpath_link));
    free(reg->table);
    reg->table = NULL;
    rlk_sync_cond_destroy(&reg->background_done);
    rlk_sync_mutex_destroy(&reg->mu);
}

void rlk_registry_unlock_and_tell(struct rlk_registry *reg)
{
    struct rlk_timer *first = rlk_timer_first(&reg->timers);
    bool watchdog = reg->watchdog_dirty, subscriber = reg->subscriber_dirty;
    struct rlk_bell *to_watchdog = reg->watchdog, *to_subscriber = reg->subscriber;

    if (first && first->when < reg->armed) {
        watchdog = true;
        reg->armed = first->when;
    }
    reg->watchdog_dirty = reg->subscriber_dirty = false;
    struct rlk_thread *woken[WAKES_MAX];
    size_t count = 0;
    while (!rlk_list_empty(&reg->wakes)) {
        struct rlk_list *l = rlk_list_pop(&reg->wakes);
        struct rlk_thread *thread = RLK_CONTAINER_OF(l, struct rlk_thread, wake_link);
        if (count < WAKES_MAX)
            woken[count++] = thread;
        else
            rlk_sync_cond_signal(&thread->cond);
    }
    /* if the leader is this thread, it looks by itself */
    bool leader = rlk_leader_pending_locked(reg) && reg->leader != rlk_thread_record;
    reg->leader_told |= leader;
    int leader_fd = reg->leader_fd;
    bool waker = watchdog || subscriber || leader;
    if (waker)
        atomic_fetch_add(&reg->wakers, 1);
    rlk_sync_mutex_unlock(&reg->mu);
    for (size_t i = 0; i < count; i++)
        rlk_sync_cond_signal(&woken[i]->cond);
    if (watchdog && to_watchdog)
        rlk_bell_ring(to_watchdog);
    if (subscriber && to_subscriber)
        rlk_bell_ring(to_subscriber);
    if (leader)
        rlk_fd_ring(leader_fd);
    if (waker && atomic_fetch_sub(&reg->wakers, 1) == 1 && atomic_load(&reg->parting)) {
        rlk_sync_mutex_lock(&reg->mu);
        rlk_sync_cond_broadcast(&reg->background_done);
        rlk_sync_mutex_unlock(&reg->mu);
    }
}

void rlk_registry_unanswered(struct rlk_registry *reg, int64_t when)
{
    rlk_sync_mutex_lock(&reg->mu);
    if (when > atomic_load(&reg->heard_at) && when < rlk_registry_away_since(reg))
        atomic_store(&reg->unanswered_at, when);
    rlk_sync_mutex_unlock(&reg->mu);
}

int64_t rlk_registry_away_since(const struct rlk_registry *reg)
{
    int64_t at = atomic_load(&reg->unanswered_at);
    return at > atomic_load(&reg->heard_at) ? at : RLK_NEVER;
}

bool rlk_registry_is_away(const struct rlk_registry *reg, int64_t now)
{
    return rlk_registry_away_since(reg) < now - AWAY_MS * RLK_NS_PER_MS;
}

bool rlk_registry_settled_locked(const struct rlk_registry *reg, int64_t now)
{
    bool away = rlk_registry_is_away(reg, now);
    return reg->background_count - reg->denied_count == (away ? reg->late_count : 0);
}

void rlk_registry_part_from_threads(struct rlk_registry *reg)
{
    rlk_sync_mutex_lock(&reg->mu);
    reg->watchdog = reg->subscriber = NULL;
    reg->leader_fd = -1;
    reg->mail_open = false;
    atomic_store(&reg->parting, true);
    while (atomic_load(&reg->wakers) > 0)
        rlk_sync_cond_wait(&reg->background_done, &reg->mu, RLK_NEVER);
    rlk_sync_mutex_unlock(&reg->mu);
}

/* ---- wake-ups */

void rlk_registry_wake_locked(struct rlk_registry *reg, struct rlk_thread *thread)
{
    if (thread == reg->leader)
        atomic_store_explicit(&reg->leader_called, true, memory_order_relaxed);
    else if (rlk_list_empty(&thread->wake_link))
        rlk_list_append(&reg->wakes, &thread->wake_link);
}

void rlk_registry_wake_list_locked(struct rlk_registry *reg, struct rlk_list *waiters)
{
    for (struct rlk_list *l = waiters->next; l != waiters; l = l->next)
        rlk_registry_wake_locked(reg,
                                 RLK_CONTAINER_OF(l, struct rlk_waiter, link)->thread);
}
