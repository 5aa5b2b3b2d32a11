/* SPDX-License-Identifier: Apache-2.0 */
/* A hold that asks at the server: who is woken for it, and what it believes of answers
 * and messages (T1). The rest of its life is in hold.c, under the same rules. */
#include "state/hold.h"

#include "base/clock.h"
#include "state/awaited.h"
#include "state/registry.h"

#include <limits.h>

enum { ASK_AGAIN_PARTS = 20 /* of a presence: who asked so lately need not ask again */ };

/* ---- asking */

void rlk_hold_ask_locked(struct rlk_hold *hold, struct rlk_thread *thread)
{
    if (rlk_list_empty(&hold->link)) {
        rlk_list_append(&hold->lock->queue->asks, &hold->link);
        hold->refs++;
        rlk_awaited_asks_locked(hold->lock->registry);
    }
    hold->requester = thread;
}

void rlk_hold_try_locked(struct rlk_hold *hold)
{
    hold->trying = true;
    rlk_list_append(&hold->lock->queue->tries, &hold->link);
}

void rlk_hold_ask_end_locked(struct rlk_hold *hold)
{
    struct rlk_lock *lock = hold->lock;

    if (rlk_list_empty(&hold->link))
        return;
    rlk_list_remove(&hold->link);
    if (hold->trying) {
        hold->trying = false;
        return;
    }
    rlk_awaited_asked_locked(lock->registry);
    hold->requester = NULL;
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
    if (hold->requester)
        rlk_registry_wake_locked(hold->lock->registry, hold->requester);
}

/* ---- facts */

static unsigned times_entered(const struct rlk_hold *hold)
{
    return hold->reading ? hold->lock->entered_alone : hold->lock->entered;
}

/* A hold that was lost is never given again, so any proof from after it was entered is
 * newer than all of its own. */
static bool is_newer(const struct rlk_hold *hold, const struct rlk_hold *other)
{
    return hold->proof_sent >= other->since || rlk_clock_boot() >= other->end;
}

bool rlk_hold_newest_locked(const struct rlk_hold *hold)
{
    const struct rlk_lock *lock = hold->lock;

    /* rule: T1 */
    if (hold->entered_then != times_entered(hold) ||
        (lock->current && !is_newer(hold, lock->current)))
        return false;
    for (struct rlk_list *l = lock->queue->reads.next;
         !hold->reading && l != &lock->queue->reads; l = l->next)
        if (!is_newer(hold, RLK_CONTAINER_OF(l, struct rlk_hold, link)))
            return false;
    return true;
}

/* Nor does a grant lie about that may be older than what is believed in: it would be
 * taken for new when that has been unlocked. */
static void grant(struct rlk_hold *hold, int64_t sent, int64_t ms)
{
    hold->granted = true;
    hold->open_to = UINT_MAX;
    hold->need_ask = false;
    hold->asks_since = 0;
    hold->ticket = hold->grant_ticket = 0;
    hold->entered_then = times_entered(hold);
    rlk_hold_confirm_locked(hold, sent, ms);
    if (!rlk_hold_newest_locked(hold))
        rlk_hold_ask_anew_locked(hold);
    rlk_hold_wake_locked(hold);
}

/* rule: T1, W16 */
/* T1: the ticket of the grant is that of a confirmed "queued" answer, so the entry was
 * still in the queue when that request left, and the grant's TTL began later. */
static void believe(struct rlk_hold *hold)
{
    if (hold->grant_ticket == 0 || hold->ticket != hold->grant_ticket)
        return;
    hold->owner_died = hold->grant_died;
    hold->token = hold->grant_token;
    hold->token_heard = true;
    hold->flags = hold->grant_flags;
    hold->granted_short = true;
    int64_t ticket = hold->ticket;
    grant(hold, hold->ticket_sent, hold->id.grant_ms);
    if (!hold->granted) /* an older answer may still say that it is queued by that */
        hold->grant_ticket = ticket;
}

bool rlk_hold_granted_locked(struct rlk_hold *hold, int64_t ticket, uint64_t token,
                             unsigned flags)
{
    hold->grant_ticket = ticket;
    hold->grant_token = token;
    hold->grant_died = (flags & RLK_OWNER_DIED) != 0 && rlk_id_robust(&hold->id);
    hold->grant_flags = flags;
    believe(hold);
    return hold->granted || hold->need_ask;
}

void rlk_hold_queued_locked(struct rlk_hold *hold, int64_t ticket, int64_t sent)
{
    if (hold->state != RLK_HOLD_REQUESTED || hold->granted)
        return;
    /* rule: T1 */
    if (hold->ticket == ticket && sent <= hold->ticket_sent)
        return;
    if (ticket < hold->ticket && (hold->asks_since == 0 || sent < hold->asks_since))
        return; /* an answer from before it joined anew */
    if (hold->grant_ticket != 0 && hold->grant_ticket < ticket)
        hold->grant_ticket = 0; /* that grant had lapsed when it joined anew */
    hold->queued = true;
    hold->ticket = ticket;
    hold->ticket_sent = sent;
    hold->need_ask = hold->owner_died = false;
    hold->asks_since = 0;
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
    hold->token_heard = false;
    if (hold->flags & RLK_OWNER_DIED)
        hold->owner_died = rlk_id_robust(&hold->id);
    hold->end = INT64_MIN;
    hold->granted_short = remaining_ms < hold->lease_ms;
    grant(hold, sent, remaining_ms);
}

void rlk_hold_gone_locked(struct rlk_hold *hold)
{
    if (hold->state != RLK_HOLD_REQUESTED)
        return;
    rlk_hold_ask_anew_locked(hold);
    rlk_hold_wake_locked(hold);
}

void rlk_hold_ask_again_locked(struct rlk_hold *hold, int64_t now)
{
    if (hold->state != RLK_HOLD_REQUESTED || hold->granted ||
        now - hold->ticket_sent < hold->lock->registry->presence_ns / ASK_AGAIN_PARTS)
        return;
    hold->ticket = 0; /* it may be given a smaller one, if the queue was lost */
    hold->need_ask = true;
    hold->asks_since = 0;
    rlk_hold_wake_locked(hold);
}

bool rlk_hold_ask_too_locked(struct rlk_hold *hold, int64_t now)
{
    if (hold->state != RLK_HOLD_REQUESTED || hold->granted || hold->need_ask ||
        !hold->requester)
        return false;
    hold->need_ask = true;
    hold->asks_since = now;
    rlk_hold_wake_locked(hold);
    return true;
}

void rlk_hold_asked_in_vain_locked(struct rlk_hold *hold, int64_t now)
{
    if (hold->asks_since == 0)
        return;
    hold->need_ask = false;
    hold->asks_since = 0;
    hold->lock->registry->asked_in_vain_at = now;
}

void rlk_hold_spoilt_locked(struct rlk_hold *hold)
{
    if (hold->state != RLK_HOLD_REQUESTED)
        return;
    hold->spoilt = true;
    rlk_hold_wake_locked(hold);
}
