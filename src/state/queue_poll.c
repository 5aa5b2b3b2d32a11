/* SPDX-License-Identifier: Apache-2.0 */
/* When the server is asked next about a lock that threads wait for; see lock.h.
 * Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "state/registry.h"

#include "base/clock.h"

void rlk_queue_answered_locked(struct rlk_lock *lock, int64_t sent, int64_t pttl_ms,
                               unsigned flags)
{
    struct rlk_registry *reg = lock->registry;
    int64_t due = sent + reg->presence_ns / 3;

    /* rule: T11, W15 */
    if (pttl_ms >= 0) {
        /* Redis expires strictly after the instant: one ms more */
        int64_t expiry = sent + (pttl_ms + 1) * RLK_NS_PER_MS;
        if (expiry < due)
            due = expiry;
    }
    bool foreign = (flags & RLK_FOREIGN_HOLDER) != 0 && pttl_ms != -2;
    if (foreign != lock->queue->foreign && !rlk_list_empty(&lock->queue->asks)) {
        lock->queue->foreign = foreign;
        rlk_lock_channel_locked(lock, foreign);
    }
    if (lock->queue->timer.armed && lock->queue->timer.when == 0)
        return; /* a poll is due at once: its reason may be newer than this answer */
    if (!rlk_list_empty(&lock->queue->asks))
        rlk_timer_arm(&reg->timers, &lock->queue->timer, due);
}

void rlk_queue_joined_locked(struct rlk_lock *lock, int64_t sent, int64_t pttl_ms,
                             unsigned flags)
{
    int64_t due = lock->queue->timer.armed ? lock->queue->timer.when : RLK_NEVER;

    rlk_queue_answered_locked(lock, sent, pttl_ms, flags);
    if (lock->queue->timer.armed && due < lock->queue->timer.when)
        rlk_timer_arm(&lock->registry->timers, &lock->queue->timer, due);
}

void rlk_queue_trouble_locked(struct rlk_lock *lock, int code, int64_t now)
{
    if (!rlk_lock_has_queue(lock))
        return; /* no thread waits */
    if (lock->queue->trouble == 0)
        lock->queue->trouble_since = now;
    if (now > lock->queue->troubled_at)
        lock->queue->troubled_at = now;
    lock->queue->trouble = code;
}

void rlk_queue_reached_locked(struct rlk_lock *lock, int64_t at)
{
    if (rlk_lock_has_queue(lock)) {
        if (at >= lock->queue->troubled_at)
            lock->queue->trouble = 0;
        if (at > lock->queue->reached_at)
            lock->queue->reached_at = at;
    }
    if (at >= lock->registry->asked_in_vain_at)
        lock->registry->asked_in_vain_at = 0;
}

void rlk_queue_go_on_locked(struct rlk_lock *lock, struct rlk_cursor after)
{
    if (!rlk_queue_need_locked(lock))
        return; /* polls of other processes will find the lock */
    lock->queue->after_refresh = false;
    /* rule: T11 */
    if (!lock->queue->going_on) {
        lock->queue->going_on = true;
        lock->refs++;
        lock->queue->after = after;
    } else {
        if (after.queue < lock->queue->after.queue)
            lock->queue->after.queue = after.queue;
        if (after.rqueue < lock->queue->after.rqueue)
            lock->queue->after.rqueue = after.rqueue;
    }
    rlk_timer_arm(&lock->registry->timers, &lock->queue->timer, 0);
}

void rlk_queue_went_on_locked(struct rlk_lock *lock)
{
    if (!lock->queue->going_on)
        return;
    lock->queue->going_on = false;
    lock->queue->after = (struct rlk_cursor){ 0 };
    rlk_lock_unref_locked(lock);
}

void rlk_queue_poll_locked(struct rlk_lock *lock)
{
    if (!rlk_lock_has_queue(lock))
        return;
    lock->queue->polled_at = rlk_clock_boot();
    lock->queue->after =
        (struct rlk_cursor){ 0 }; /* a waiter that was passed over may come first now */
    if (!rlk_list_empty(&lock->queue->asks))
        rlk_timer_arm(&lock->registry->timers, &lock->queue->timer, 0);
}

void rlk_queue_poll_missed_locked(struct rlk_lock *lock, int64_t sent)
{
    /* rule: L3 */
    if (sent <= lock->queue->polled_at)
        rlk_timer_arm(&lock->registry->timers, &lock->queue->timer, 0);
}
