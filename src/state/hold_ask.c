/* SPDX-License-Identifier: Apache-2.0 */
/* The request of a hold: which thread is woken for it, and what it believes of answers
 * and messages (T1). See hold.h. Thread: any. Locks: hold the registry's mu. Blocks: no.
 */
#include "state/hold.h"

#include "base/clock.h"
#include "state/awaited.h"
#include "state/registry.h"

#include <limits.h>

enum {
    ASK_AGAIN_PARTS = 20 /* of a presence: a younger request is not repeated */
};

/* ---- asking */

void rlk_hold_ask_locked(struct rlk_hold *hold, struct rlk_thread *thread)
{
    if (rlk_list_empty(&hold->link)) {
        rlk_list_append(&hold->lock->queue->asks, &hold->link);
        hold->refs++;
        rlk_awaited_asks_locked(hold->lock->registry);
    }
    hold->request.requester = thread;
}

void rlk_hold_try_locked(struct rlk_hold *hold)
{
    hold->request.try_once = true;
    rlk_list_append(&hold->lock->queue->tries, &hold->link);
}

void rlk_hold_ask_end_locked(struct rlk_hold *hold)
{
    struct rlk_lock *lock = hold->lock;

    if (rlk_list_empty(&hold->link))
        return;
    rlk_list_remove(&hold->link);
    if (hold->request.try_once) {
        hold->request.try_once = false;
        return;
    }
    rlk_awaited_asked_locked(lock->registry);
    hold->request.requester = NULL;
    if (rlk_list_empty(&lock->queue->asks)) {
        if (!lock->queue->going_on)
            rlk_timer_disarm(&lock->registry->timers, &lock->queue->timer);
        if (lock->queue->foreign) {
            lock->queue->foreign = false;
            rlk_lock_channel_locked(lock, false);
        }
    }
    rlk_hold_put_locked(hold);
}

void rlk_hold_wake_locked(struct rlk_hold *hold)
{
    if (hold->request.requester)
        rlk_registry_wake_locked(hold->lock->registry, hold->request.requester);
}

/* ---- facts */

static unsigned times_entered(const struct rlk_hold *hold)
{
    return hold->reading ? hold->lock->entered_alone : hold->lock->entered;
}

/* The server never gives a lost hold again. So a proof of `hold` from after the entry
 * into `other` is newer than all proofs of `other`. */
static bool is_newer(const struct rlk_hold *hold, const struct rlk_hold *other)
{
    return hold->proof_sent >= other->since || rlk_clock_boot() >= other->end;
}

bool rlk_hold_newest_locked(const struct rlk_hold *hold)
{
    const struct rlk_lock *lock = hold->lock;

    /* rule: T1 */
    if (hold->request.entered_then != times_entered(hold) ||
        (lock->current && !is_newer(hold, lock->current)))
        return false;
    for (struct rlk_list *l = lock->queue->reads.next;
         !hold->reading && l != &lock->queue->reads; l = l->next)
        if (!is_newer(hold, RLK_CONTAINER_OF(l, struct rlk_hold, link)))
            return false;
    return true;
}

/* Drops a grant that may be older than a hold that the process believes in: it would look
 * new once that hold has been unlocked. */
static void grant(struct rlk_hold *hold, int64_t sent, int64_t ms)
{
    hold->request.granted = true;
    hold->request.open_to = UINT_MAX;
    hold->request.need_ask = false;
    hold->request.asks_since = 0;
    hold->request.ticket = hold->request.grant_ticket = 0;
    hold->request.entered_then = times_entered(hold);
    rlk_hold_confirm_locked(hold, sent, ms);
    if (!rlk_hold_newest_locked(hold))
        rlk_hold_ask_anew_locked(hold);
    rlk_hold_wake_locked(hold);
}

/* rule: T1, W16 */
/* T1: the grant names the ticket of a confirmed "queued" answer. So the entry was still
 * in the queue when that request left, and the grant's TTL began later. */
static void believe(struct rlk_hold *hold)
{
    if (hold->request.grant_ticket == 0 ||
        hold->request.ticket != hold->request.grant_ticket)
        return;
    hold->robust.owner_died = hold->request.grant_died;
    hold->token = hold->request.grant_token;
    hold->tokens.by_message = true;
    hold->request.flags = hold->request.grant_flags;
    hold->lease.short_ttl = hold->request.unproven = true;
    int64_t ticket = hold->request.ticket;
    grant(hold, hold->request.ticket_sent, hold->id.grant_ms);
    if (!hold->request.granted) /* an older answer may still confirm that ticket */
        hold->request.grant_ticket = ticket;
}

bool rlk_hold_granted_locked(struct rlk_hold *hold, int64_t ticket, uint64_t token,
                             unsigned flags)
{
    hold->request.grant_ticket = ticket;
    hold->request.grant_token = token;
    hold->request.grant_died = (flags & RLK_OWNER_DIED) != 0 && rlk_id_robust(&hold->id);
    hold->request.grant_flags = flags;
    believe(hold);
    return hold->request.granted || hold->request.need_ask;
}

void rlk_hold_queued_locked(struct rlk_hold *hold, int64_t ticket, int64_t sent)
{
    if (hold->state != RLK_HOLD_REQUESTED || hold->request.granted)
        return;
    /* rule: T1 */
    if (hold->request.ticket == ticket && sent <= hold->request.ticket_sent)
        return;
    if (ticket < hold->request.ticket &&
        (hold->request.asks_since == 0 || sent < hold->request.asks_since))
        return; /* an answer from before the hold queued again */
    if (hold->request.grant_ticket != 0 && hold->request.grant_ticket < ticket)
        hold->request.grant_ticket = 0; /* it had lapsed: the hold queued again */
    hold->server.queued = true;
    hold->request.open_most = 0;
    hold->request.ticket = ticket;
    hold->request.ticket_sent = sent;
    hold->request.need_ask = hold->robust.owner_died = false;
    hold->request.asks_since = 0;
    rlk_awaited_waits_locked(hold->lock->registry);
    believe(hold);
}

void rlk_hold_held_locked(struct rlk_hold *hold, int64_t sent, int64_t remaining_ms,
                          uint64_t token)
{
    if (hold->state != RLK_HOLD_REQUESTED)
        return;
    /* rule: T12, W1 */
    hold->token = token;
    hold->tokens.by_message = false;
    if (hold->request.flags & RLK_OWNER_DIED)
        hold->robust.owner_died = rlk_id_robust(&hold->id);
    hold->end = INT64_MIN;
    hold->request.unproven = false;
    hold->lease.short_ttl = remaining_ms < hold->lease_ms;
    grant(hold, sent, remaining_ms);
}

void rlk_hold_found_locked(struct rlk_hold *hold, int64_t sent, int64_t remaining_ms,
                           uint64_t token)
{
    /* rule: P13 */
    rlk_hold_held_locked(hold, sent, remaining_ms, token);
    if (hold->state == RLK_HOLD_REQUESTED)
        hold->request.unproven = true;
}

void rlk_hold_gone_locked(struct rlk_hold *hold)
{
    if (hold->state != RLK_HOLD_REQUESTED)
        return;
    rlk_hold_ask_anew_locked(hold);
    hold->request.open_most = 0;
    rlk_hold_wake_locked(hold);
}

void rlk_hold_ask_again_locked(struct rlk_hold *hold, int64_t now)
{
    if (hold->state != RLK_HOLD_REQUESTED || hold->request.granted ||
        now - hold->request.ticket_sent <
            hold->lock->registry->presence_ns / ASK_AGAIN_PARTS)
        return;
    hold->request.ticket =
        0; /* the next ticket may be smaller, if the server lost its queue */
    hold->request.need_ask = true;
    hold->request.asks_since = 0;
    rlk_hold_wake_locked(hold);
}

bool rlk_hold_ask_too_locked(struct rlk_hold *hold, int64_t now)
{
    if (hold->state != RLK_HOLD_REQUESTED || hold->request.granted ||
        hold->request.need_ask || !hold->request.requester)
        return false;
    hold->request.need_ask = true;
    hold->request.asks_since = now;
    rlk_hold_wake_locked(hold);
    return true;
}

void rlk_hold_asked_in_vain_locked(struct rlk_hold *hold, int64_t now)
{
    if (hold->state != RLK_HOLD_REQUESTED || hold->request.asks_since == 0)
        return;
    hold->request.need_ask = false;
    hold->request.asks_since = 0;
    hold->lock->registry->asked_in_vain_at = now;
}

void rlk_hold_unrecoverable_locked(struct rlk_hold *hold)
{
    if (hold->state != RLK_HOLD_REQUESTED)
        return;
    hold->request.unrecoverable = true;
    rlk_hold_wake_locked(hold);
}
