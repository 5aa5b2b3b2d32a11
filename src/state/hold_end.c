/* SPDX-License-Identifier: Apache-2.0 */
/* How a hold ends: left, lost, given up; and what the watchdog still does about it in the
 * background. See hold.h. Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "base/probe.h"
#include "state/fastpath.h"
#include "state/loss_reason.h"
#include "state/registry.h"

#include <assert.h>

enum {
    DENIED_MAX = 256 /* holds whose release is repeated although an ACL refuses it */
};

/* How long the one release of a lost hold waits for a connection. */
#define LATE_RELEASE_NS (3 * RLK_NS_PER_S)
/* How long the watchdog tries to release a robust lock that was unlocked in time. */
#define MARK_TRIES_NS (INT64_C(3600) * RLK_NS_PER_S)

/* A live hold ends: the process does not have it any more. The caller takes over the
 * lock's reference. */
static void take_out(struct rlk_hold *hold, enum rlk_hold_event event)
{
    struct rlk_lock *lock = hold->lock;
    if (hold->reading) {
        rlk_list_remove(&hold->link);
        if (lock->queue->shared == hold)
            lock->queue->shared = NULL;
    } else {
        assert(lock->current == hold);
        lock->current = NULL;
    }
    rlk_hold_change_locked(hold, event);
    if (hold->pass != &rlk_hold_no_pass)
        atomic_store_explicit(&hold->pass->inside, NULL, memory_order_relaxed);
    rlk_hold_retain_locked(hold, 0);
    rlk_fastpath_end_locked(hold);
    rlk_timer_disarm(&lock->registry->timers, &hold->timer);
}

/* Whether a thread is inside and knows that it is. */
static bool is_claimed(const struct rlk_hold *hold)
{
    for (struct rlk_list *l = hold->holders.next; l != &hold->holders; l = l->next)
        if (RLK_CONTAINER_OF(l, struct rlk_holder, hold_link)->claimed)
            return true;
    return false;
}

void rlk_hold_lose_locked(struct rlk_hold *hold, enum rlk_loss loss, int64_t now)
{
    struct rlk_registry *reg = hold->lock->registry;

    rlk_fastpath_close_locked(hold);
    /* rule: T6, H10, K8, S4 */
    int64_t cause_ms;
    loss = rlk_loss_reason_of_locked(hold, loss, now, &cause_ms);
    take_out(hold, RLK_ON_LOSS);
    hold->ending.whole = !is_claimed(hold);
    hold->ending.loss = (uint8_t)loss;
    hold->ending.cause_ms = cause_ms < UINT32_MAX ? (uint32_t)cause_ms : UINT32_MAX;
    if (hold->reading)
        rlk_list_append(&hold->lock->queue->leaving, &hold->link);
    else
        hold->lock->left = rlk_id_key(&hold->id);
    RLK_COUNT(reg->counters->losses);
    for (struct rlk_list *l = hold->holders.next; l != &hold->holders; l = l->next) {
        struct rlk_holder *holder = RLK_CONTAINER_OF(l, struct rlk_holder, hold_link);
        reg->retain(reg); /* its thread may call long after the client was closed */
        if (!holder->claimed)
            continue;
        RLK_PROBE3(lock_lost, RLK_PROBE_TEXT(hold->lock->name), (int)hold->ending.loss,
                   RLK_PROBE_US(now - holder->since));
        rlk_holder_end_section_locked(holder, now);
    }
    rlk_hold_news_locked(hold, RLK_NEWS_LOST);
    rlk_lock_promote_locked(hold->lock);
    /* one release, which is not repeated; it has the lock's reference */
    rlk_hold_background_locked(hold, now, now + LATE_RELEASE_NS);
}

void rlk_hold_leave_locked(struct rlk_hold *hold)
{
    assert(rlk_hold_unused_locked(hold));
    take_out(hold, RLK_ON_RELEASE);
    hold->ending.insists = true;
    if (!hold->robust.owner_ended &&
        !hold->robust.owner_died) /* before the release leaves (G8) */
        rlk_intent_say_locked(hold, RLK_INSIDE_LEFT);
    if (hold->reading)
        rlk_list_append(&hold->lock->queue->leaving, &hold->link);
    else
        hold->lock->left = rlk_id_key(&hold->id);
}

void rlk_hold_leave_unused_locked(struct rlk_hold *hold)
{
    rlk_hold_leave_locked(hold);
    hold->ending.no_marker = !hold->server.unknown;
}

int64_t rlk_hold_release_until_locked(const struct rlk_hold *hold)
{
    int64_t lease = hold->lease_ms * RLK_NS_PER_MS;
    bool marked = rlk_id_robust(&hold->id) && !hold->robust.owner_ended;
    return hold->end + lease + (marked ? MARK_TRIES_NS : 0);
}

void rlk_hold_count_returning_locked(struct rlk_hold *hold)
{
    if (hold->ending.counted)
        return;
    hold->ending.counted = true;
    hold->lock->returning++;
}

void rlk_hold_background_locked(struct rlk_hold *hold, int64_t when, int64_t until)
{
    if (!rlk_hold_is_background(hold)) {
        hold->lock->registry->background_count++;
        hold->lock->registry->late_count += hold->state == RLK_HOLD_LOST;
    }
    hold->renew_at = when;
    hold->ending.give_up_at = until;
    rlk_timer_arm(&hold->lock->registry->timers, &hold->timer, when);
}

static void end_returning(struct rlk_hold *hold)
{
    if (hold->ending.counted)
        hold->lock->returning--;
    hold->ending.counted = false;
}

bool rlk_hold_denied_locked(struct rlk_hold *hold, int64_t when)
{
    struct rlk_registry *reg = hold->lock->registry;

    if (!hold->ending.insists ||
        (!hold->ending.denied && reg->denied_count >= DENIED_MAX))
        return false;
    reg->denied_count += !hold->ending.denied;
    hold->ending.denied = true;
    end_returning(hold);
    if (reg->background_count == reg->denied_count)
        rlk_sync_cond_broadcast(&reg->background_done);
    rlk_hold_background_locked(hold, when, hold->ending.give_up_at);
    return true;
}

void rlk_hold_background_end_locked(struct rlk_hold *hold)
{
    struct rlk_registry *reg = hold->lock->registry;

    if (rlk_hold_is_background(hold)) {
        hold->ending.give_up_at = 0;
        reg->background_count--;
        reg->late_count -= hold->state == RLK_HOLD_LOST;
        reg->denied_count -= hold->ending.denied;
        hold->ending.denied = false;
        if (reg->background_count == reg->denied_count)
            rlk_sync_cond_broadcast(&reg->background_done);
    }
    if (hold->state >= RLK_HOLD_CANCELLING)
        end_returning(hold);
    rlk_list_remove(&hold->link);
    rlk_intent_end_locked(hold);
    rlk_hold_put_locked(hold);
}

void rlk_hold_end_unused_locked(struct rlk_hold *hold, int64_t now)
{
    rlk_fastpath_close_locked(hold);
    if (!rlk_hold_is_live(hold) || !rlk_hold_unused_locked(hold))
        return;
    rlk_hold_leave_unused_locked(hold);
    rlk_hold_count_returning_locked(hold);
    rlk_lock_promote_locked(hold->lock);
    rlk_hold_background_locked(hold, now, rlk_hold_release_until_locked(hold));
}

void rlk_hold_unsent_locked(struct rlk_hold *hold)
{
    rlk_hold_ask_end_locked(hold);
    rlk_hold_change_locked(hold, RLK_ON_GIVE_UP);
}

void rlk_hold_give_up_locked(struct rlk_hold *hold, int64_t now, int64_t until)
{
    /* rule: T7 */
    assert(rlk_lock_has_queue(hold->lock));
    bool known = hold->server.queued || hold->server.unknown;
    hold->server.queued = true; /* it may have queued */
    rlk_hold_ask_end_locked(hold);
    rlk_hold_change_locked(hold, RLK_ON_GIVE_UP);
    hold->ending.insists = known;
    rlk_list_append(&hold->lock->queue->leaving, &hold->link);
    rlk_hold_background_locked(hold, now, until);
}

void rlk_hold_orphaned_locked(struct rlk_hold *hold, int64_t now)
{
    rlk_hold_change_locked(hold, RLK_ON_GIVE_UP);
    hold->ending.no_marker = true;
    rlk_hold_background_locked(hold, now, now + hold->id.grant_ms * RLK_NS_PER_MS);
}
