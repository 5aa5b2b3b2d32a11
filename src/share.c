/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of one process share a hold: a newcomer asks whether he may join it (W21, W22),
 * and threads that wait to read wait for the same hold and enter together (W23). Thread:
 * callers'. Locks: hold the registry's mu. */
#include "acquire_impl.h"

#include <errno.h>

/* ---- joining a hold */

struct rlk_hold *rlk_share_begin(struct rlk_lock *lock, const struct rlk_hold *hold,
                                 int64_t now)
{
    struct rlk_hold *share = lock->queue->shared;

    /* rule: W21, W22 */
    if (!hold->reading || hold->fixed || !share || now >= share->end)
        return NULL;
    share->joins++;
    rlk_joining_use_locked(share);
    rlk_hold_ref_locked(share);
    return share;
}

bool rlk_share_end(struct rlk_hold *share, enum rlk_verdict v,
                   const struct rlk_wish *wish, const struct rlk_answer *answer,
                   int64_t now)
{
    /* rule: K14 */
    bool inside = false;

    share->joins--;
    if (answer->outcome == RLK_DONE && rlk_hold_hears_others(share, answer->flags))
        share->others = true; /* a writer waits (K14) */
    if (v == SHARED && share->state == RLK_HOLD_INSIDE) {
        if (wish->lease_ms > share->lease_ms)
            share->lease_ms = (int)wish->lease_ms;
        if (answer->fate.token != 0)
            share->token = answer->fate.token;
        if (now < share->end) {
            rlk_hold_confirm_locked(share, answer->sent, answer->fate.remaining_ms);
            rlk_handoff_answered_locked(share, answer->sent, answer->flags);
            rlk_hold_schedule_locked(share);
            inside = true;
        }
    }
    return inside;
}

void rlk_share_put(struct rlk_hold *share, int64_t now)
{
    rlk_hold_end_unused_locked(share, now);
    rlk_hold_put_locked(share);
}

/* ---- waiting together */

struct rlk_waiter *rlk_share_companion(const struct rlk_ask *ask)
{
    struct rlk_list *readers = &ask->lock->queue->readers;
    for (struct rlk_list *l = readers->next; l != readers; l = l->next) {
        struct rlk_waiter *other = RLK_CONTAINER_OF(l, struct rlk_waiter, link);
        if (other != ask->waiter && other->hold == ask->hold)
            return other;
    }
    return NULL;
}

bool rlk_share_decided(const struct rlk_ask *ask)
{
    return ask->waiter->hold != ask->hold;
}

/* rule: W23 */
/* The others that wait for this one's hold enter `hold` with it: that one, or what is
 * shared instead (W23). Not those that came when the request that was answered had left:
 * nobody enters unasked, as a writer may have queued (W21). They ask anew, together. */
void rlk_share_bring_along(struct rlk_ask *ask, struct rlk_hold *hold)
{
    const struct rlk_wish *wish = ask->wish;
    struct rlk_waiter *other;

    while ((other = rlk_share_companion(ask)) != NULL) {
        other->hold = NULL;
        if (other->asked < ask->open_to) {
            rlk_list_remove(&other->link);
            other->part = rlk_hold_join_locked(hold, wish->fencing);
            other->failed = !other->part;
            if (other->part) {
                other->part->owner = other->thread;
                other->part->owner_thread = other->self;
            }
        }
        rlk_registry_wake_locked(&wish->client->registry, other->thread);
    }
}

void rlk_share_enter(struct rlk_ask *ask, struct rlk_hold *share, int64_t now)
{
    const struct rlk_wish *wish = ask->wish;
    struct rlk_waiter *waiter = ask->waiter;

    ask->open_to = ask->hold->open_to;
    rlk_ask_leave_queue(ask);
    waiter->part = rlk_hold_join_locked(share, wish->fencing);
    waiter->failed = !waiter->part;
    if (waiter->part) {
        waiter->part->owner = wish->thread;
        waiter->part->owner_thread = waiter->self;
    }
    waiter->hold = NULL;
    rlk_share_bring_along(ask, share);
    rlk_hold_ref_locked(ask->hold); /* rlk_ask_wait gives it back */
    rlk_ask_end_request(ask->hold, wish, now);
}

bool rlk_share_still_in(struct rlk_part *part, const struct rlk_wish *wish)
{
    struct rlk_hold *hold = part->hold;
    int64_t now = rlk_now_boot();

    if (hold->state == RLK_HOLD_INSIDE && now < hold->end) {
        rlk_part_own_locked(part, wish->thread, now);
        RLK_COUNT(wish->client->counters.acquisitions);
        return true;
    }
    if (hold->state == RLK_HOLD_INSIDE)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    rlk_part_leave_locked(part);
    rlk_client_release(wish->client); /* as a lost hold's; the caller keeps it */
    return false;
}

/* The hold that a thread which wants to read waits for, with a reference: the one that
 * others wait for, if there is one that will do, else a new one, which those that are
 * without one wait for as well. NULL: out of memory. */
static struct rlk_hold *read_hold(const struct rlk_wish *wish, struct rlk_lock *lock,
                                  const struct rlk_waiter *waiter)
{
    struct rlk_hold *hold =
        wish->fixed ? NULL
                    : rlk_lock_read_ask_locked(lock, waiter->letter, waiter->grant_ms);
    if (hold) {
        rlk_hold_ref_locked(hold);
        return hold;
    }
    hold = rlk_ask_new_hold(wish, lock, rlk_wish_keeps(wish));
    if (!hold)
        return NULL;
    rlk_hold_ask_locked(hold, wish->thread);
    for (struct rlk_list *l = lock->queue->readers.next;
         !wish->fixed && l != &lock->queue->readers; l = l->next) {
        struct rlk_waiter *other = RLK_CONTAINER_OF(l, struct rlk_waiter, link);
        if (other == waiter || other->hold || other->letter != waiter->letter ||
            other->grant_ms != waiter->grant_ms)
            continue;
        other->hold =
            hold; /* lock->queue->asks keeps it as long as somebody waits for it */
        other->asked = hold->asked;
    }
    return hold;
}

int rlk_share_wait(const struct rlk_wish *wish, struct rlk_lock *lock,
                   int64_t *ret_waited, bool *ret_late)
{
    struct rlk_registry *reg = &wish->client->registry;
    struct rlk_waiter waiter;
    struct rlk_ask ask = {
        .wish = wish, .lock = lock, .waiter = &waiter, .since = rlk_now_boot()
    };
    int rc = 0;

    rlk_waiter_init(&waiter, wish, ask.since);
    reg->waiters_now++;
    bool in = rlk_enter_idle(wish, lock, &waiter);
    while (rc == 0 && !in) {
        waiter.part = NULL;
        if (waiter.hold) { /* another thread asks for this one, too */
            rlk_hold_ref_locked(waiter.hold);
        } else {
            waiter.hold = read_hold(wish, lock, &waiter);
            if (waiter.hold)
                waiter.asked = waiter.hold->asked;
        }
        ask.hold = waiter.hold;
        if (!ask.hold) {
            rlk_list_remove(&waiter.link);
            rc = ENOMEM;
            break;
        }
        if (wish->lease_ms > ask.hold->lease_ms)
            ask.hold->lease_ms = (int)wish->lease_ms;
        if (rlk_list_empty(&waiter.link))
            rlk_list_append(&lock->queue->readers, &waiter.link);
        rc = rlk_ask_wait(&ask);
        in = waiter.hold == ask.hold ||
             (waiter.part && rlk_share_still_in(waiter.part, wish));
    }
    reg->waiters_now--;
    rlk_waiter_done(&waiter, wish, rc, ret_waited);
    *ret_late = waiter.late;
    return rc;
}
