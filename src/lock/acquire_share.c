/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of one process share a hold: a newcomer asks whether he may join it (W21, W22),
 * and threads that wait to read wait for the same hold and enter together (W23). Thread:
 * callers'. Locks: hold the registry's mu. */
#include "lock/acquire_impl.h"

#include <errno.h>

/* ---- joining a hold */

struct rlk_hold *rlk_acquire_share_begin(struct rlk_lock *lock,
                                         const struct rlk_hold *hold, int64_t now)
{
    struct rlk_hold *share = lock->queue->shared;

    /* rule: W21, W22 */
    if (!hold->reading || hold->fixed || !share || now >= share->end)
        return NULL;
    share->read.joins++;
    rlk_readshare_use_locked(share);
    rlk_hold_ref_locked(share);
    return share;
}

bool rlk_acquire_share_end(struct rlk_hold *share, enum rlk_verdict v,
                           const struct rlk_acquire_params *params,
                           const struct rlk_answer *answer, int64_t now)
{
    /* rule: K14 */
    bool inside = false;

    share->read.joins--;
    if (answer->outcome == RLK_DONE && rlk_hold_says_contended(share, answer->flags))
        share->contention.contended = true; /* a writer waits (K14) */
    if (v == SHARED && rlk_hold_is_live(share)) {
        if (params->lease_ms > share->lease_ms)
            share->lease_ms = (int)params->lease_ms;
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

void rlk_acquire_share_put(struct rlk_hold *share, int64_t now)
{
    rlk_hold_end_unused_locked(share, now);
    rlk_hold_put_locked(share);
}

/* ---- waiting together */

struct rlk_waiter *rlk_acquire_share_companion(const struct rlk_acquire_op *ask)
{
    struct rlk_list *readers = &ask->lock->queue->readers;
    for (struct rlk_list *l = readers->next; l != readers; l = l->next) {
        struct rlk_waiter *other = RLK_CONTAINER_OF(l, struct rlk_waiter, link);
        if (other != ask->waiter && other->hold == ask->hold)
            return other;
    }
    return NULL;
}

bool rlk_acquire_share_decided(const struct rlk_acquire_op *ask)
{
    return ask->waiter->hold != ask->hold;
}

/* rule: W23 */
/* The others that wait for this one's hold enter `hold` with it: that one, or what is
 * shared instead (W23). Not those that came when the request that was answered had left:
 * nobody enters unasked, as a writer may have queued (W21). They ask anew, together. */
void rlk_acquire_share_bring_along(struct rlk_acquire_op *ask, struct rlk_hold *hold)
{
    const struct rlk_acquire_params *params = ask->params;
    struct rlk_waiter *other;

    while ((other = rlk_acquire_share_companion(ask)) != NULL) {
        other->hold = NULL;
        if (other->asked < ask->open_to) {
            rlk_list_remove(&other->link);
            other->holder = rlk_holder_join_locked(hold, params->fencing);
            other->failed = !other->holder;
            if (other->holder) {
                other->holder->owner = other->thread;
                other->holder->owner_thread = other->self;
            }
        }
        rlk_registry_wake_locked(&params->client->registry, other->thread);
    }
}

void rlk_acquire_share_enter(struct rlk_acquire_op *ask, struct rlk_hold *share,
                             int64_t now)
{
    const struct rlk_acquire_params *params = ask->params;
    struct rlk_waiter *waiter = ask->waiter;

    ask->open_to = ask->hold->request.open_to;
    rlk_acquire_leave_queue(ask);
    waiter->holder = rlk_holder_join_locked(share, params->fencing);
    waiter->failed = !waiter->holder;
    if (waiter->holder) {
        waiter->holder->owner = params->thread;
        waiter->holder->owner_thread = waiter->self;
    }
    waiter->hold = NULL;
    rlk_acquire_share_bring_along(ask, share);
    rlk_hold_ref_locked(ask->hold); /* rlk_acquire_wait gives it back */
    rlk_acquire_end_request(ask->hold, params, now);
}

bool rlk_acquire_share_still_in(struct rlk_holder *holder,
                                const struct rlk_acquire_params *params)
{
    struct rlk_hold *hold = holder->hold;
    int64_t now = rlk_clock_boot();

    if (rlk_hold_is_live(hold) && now < hold->end) {
        rlk_holder_own_locked(holder, params->thread, now);
        RLK_COUNT(params->client->counters.acquisitions);
        return true;
    }
    if (rlk_hold_is_live(hold))
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    rlk_holder_leave_locked(holder);
    rlk_client_release(params->client); /* as a lost hold's; the caller keeps it */
    return false;
}

/* The hold that a thread which wants to read waits for, with a reference: the one that
 * others wait for, if there is one that will do, else a new one, which those that are
 * without one wait for as well. NULL: out of memory. */
static struct rlk_hold *read_hold(const struct rlk_acquire_params *params,
                                  struct rlk_lock *lock, const struct rlk_waiter *waiter)
{
    struct rlk_hold *hold =
        params->fixed ? NULL
                      : rlk_lock_read_ask_locked(lock, waiter->letter, waiter->grant_ms);
    if (hold) {
        rlk_hold_ref_locked(hold);
        return hold;
    }
    hold = rlk_acquire_new_hold(params, lock, rlk_acquire_params_retains(params));
    if (!hold)
        return NULL;
    rlk_hold_ask_locked(hold, params->thread);
    for (struct rlk_list *l = lock->queue->readers.next;
         !params->fixed && l != &lock->queue->readers; l = l->next) {
        struct rlk_waiter *other = RLK_CONTAINER_OF(l, struct rlk_waiter, link);
        if (other == waiter || other->hold || other->letter != waiter->letter ||
            other->grant_ms != waiter->grant_ms)
            continue;
        other->hold =
            hold; /* lock->queue->asks keeps it as long as somebody waits for it */
        other->asked = hold->request.asked;
    }
    return hold;
}

int rlk_acquire_share_wait(const struct rlk_acquire_params *params, struct rlk_lock *lock,
                           int64_t *ret_waited, bool *ret_late)
{
    struct rlk_registry *reg = &params->client->registry;
    struct rlk_waiter waiter;
    struct rlk_acquire_op ask = {
        .params = params, .lock = lock, .waiter = &waiter, .since = rlk_clock_boot()
    };
    int rc = 0;

    rlk_acquire_waiter_init(&waiter, params, ask.since);
    reg->waiters_now++;
    bool in = rlk_acquire_enter_idle(params, lock, &waiter);
    while (rc == 0 && !in) {
        waiter.holder = NULL;
        if (waiter.hold) { /* another thread asks for this one, too */
            rlk_hold_ref_locked(waiter.hold);
        } else {
            waiter.hold = read_hold(params, lock, &waiter);
            if (waiter.hold)
                waiter.asked = waiter.hold->request.asked;
        }
        ask.hold = waiter.hold;
        if (!ask.hold) {
            rlk_list_remove(&waiter.link);
            rc = ENOMEM;
            break;
        }
        if (params->lease_ms > ask.hold->lease_ms)
            ask.hold->lease_ms = (int)params->lease_ms;
        if (rlk_list_empty(&waiter.link))
            rlk_list_append(&lock->queue->readers, &waiter.link);
        rc = rlk_acquire_wait(&ask);
        in = waiter.hold == ask.hold ||
             (waiter.holder && rlk_acquire_share_still_in(waiter.holder, params));
    }
    reg->waiters_now--;
    rlk_acquire_waiter_done(&waiter, params, rc, ret_waited);
    *ret_late = waiter.late;
    return rc;
}
