/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of one process that read share a hold. A newcomer asks the server whether it
 * may join (W21, W22). Threads that wait to read wait for the same hold, and enter it
 * together (W23). Thread: callers'. Locks: hold the registry's mu. */
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

struct rlk_waiter *rlk_acquire_share_companion(const struct rlk_acquire_op *op)
{
    struct rlk_list *readers = &op->lock->queue->readers;
    for (struct rlk_list *l = readers->next; l != readers; l = l->next) {
        struct rlk_waiter *other = RLK_CONTAINER_OF(l, struct rlk_waiter, link);
        if (other != &op->waiter && other->hold == op->hold)
            return other;
    }
    return NULL;
}

/* rule: W21 */
struct rlk_waiter *rlk_acquire_share_heir(const struct rlk_acquire_op *op)
{
    unsigned most = op->hold->request.open_most;
    struct rlk_list *readers = &op->lock->queue->readers;
    struct rlk_waiter *other;

    for (struct rlk_list *l = readers->next; l != readers; l = l->next) {
        other = RLK_CONTAINER_OF(l, struct rlk_waiter, link);
        if (other != &op->waiter && other->hold == op->hold &&
            (most == 0 || other->asked < most))
            return other;
    }
    while ((other = rlk_acquire_share_companion(op)) != NULL) {
        other->hold = NULL;
        rlk_registry_wake_locked(op->lock->registry, other->thread);
    }
    return NULL;
}

bool rlk_acquire_share_decided(const struct rlk_acquire_op *op)
{
    return op->waiter.hold != op->hold;
}

/* rule: W23 */
/* The other threads that wait for op->hold enter `hold` with this one (W23). A thread
 * that came after the answered request had left does not: a writer may have queued before
 * it (W21). Such threads ask again, together. */
void rlk_acquire_share_bring_along(struct rlk_acquire_op *op, struct rlk_hold *hold)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_waiter *other;

    while ((other = rlk_acquire_share_companion(op)) != NULL) {
        other->hold = NULL;
        if (other->asked < op->open_to) {
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

void rlk_acquire_share_enter(struct rlk_acquire_op *op, struct rlk_hold *share,
                             int64_t now)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_waiter *waiter = &op->waiter;

    op->open_to = op->hold->request.open_to;
    rlk_acquire_leave_queue(op);
    waiter->holder = rlk_holder_join_locked(share, params->fencing);
    waiter->failed = !waiter->holder;
    if (waiter->holder) {
        waiter->holder->owner = params->thread;
        waiter->holder->owner_thread = waiter->self;
    }
    waiter->hold = NULL;
    rlk_acquire_share_bring_along(op, share);
    rlk_hold_ref_locked(op->hold); /* the wait gives it back */
    rlk_acquire_end_request(op->hold, params, now);
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
    rlk_client_release(params->client); /* gives back the lost hold's reference; the
                                           caller has another */
    return false;
}

/* Threads that want to read, and have no hold to wait for yet, wait for this one. */
static void gather(struct rlk_acquire_op *op, struct rlk_hold *hold)
{
    struct rlk_list *readers = &op->lock->queue->readers;

    for (struct rlk_list *l = readers->next; l != readers; l = l->next) {
        struct rlk_waiter *other = RLK_CONTAINER_OF(l, struct rlk_waiter, link);
        if (other == &op->waiter || other->hold || other->letter != op->waiter.letter ||
            other->grant_ms != op->waiter.grant_ms)
            continue;
        other->hold = hold; /* queue->asks keeps it as long as a thread waits for it */
        other->asked = hold->request.asked;
    }
}

/* The hold that a reading thread waits for, with a reference: the one that other threads
 * wait for, if it suits, else a new one. NULL: out of memory. */
static struct rlk_hold *read_hold(struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_hold *hold =
        params->fixed
            ? NULL
            : rlk_lock_read_ask_locked(op->lock, op->waiter.letter, op->waiter.grant_ms);
    if (hold) {
        rlk_hold_ref_locked(hold);
        return hold;
    }
    hold = rlk_acquire_new_hold(op, rlk_acquire_params_retains(params));
    if (!hold)
        return NULL;
    rlk_hold_ask_locked(hold, params->thread);
    if (!params->fixed)
        gather(op, hold);
    return hold;
}

/* Chooses the hold that the thread waits for. False: out of memory. */
static bool choose_hold(struct rlk_acquire_op *op)
{
    struct rlk_waiter *waiter = &op->waiter;

    waiter->holder = NULL;
    if (waiter->hold) { /* another thread has chosen this hold for both */
        rlk_hold_ref_locked(waiter->hold);
    } else {
        waiter->hold = read_hold(op);
        if (waiter->hold)
            waiter->asked = waiter->hold->request.asked;
    }
    op->hold = waiter->hold;
    if (!op->hold) {
        rlk_list_remove(&waiter->link);
        op->rc = ENOMEM;
        return false;
    }
    if (op->params->lease_ms > op->hold->lease_ms)
        op->hold->lease_ms = (int)op->params->lease_ms;
    if (rlk_list_empty(&waiter->link))
        rlk_list_append(&op->lock->queue->readers, &waiter->link);
    return true;
}

/* Whether the call is over; `over`: the wait for op->hold is. A thread that waits for
 * op->hold no more may be inside by another hold, or has to wait for another one. */
static bool settle(struct rlk_acquire_op *op, bool over)
{
    struct rlk_waiter *waiter = &op->waiter;

    if (!over || op->rc != 0 || waiter->hold == op->hold)
        return over;
    if (waiter->holder && rlk_acquire_share_still_in(waiter->holder, op->params))
        return true;
    op->hold = NULL;
    return rlk_acquire_go_on(op, RLK_SLEEP_PAUSE, 0);
}

static bool look_reading(struct rlk_acquire_op *op)
{
    if (!op->hold && !choose_hold(op))
        return true;
    return settle(op, rlk_acquire_look_asking(op));
}

static bool judge_reading(struct rlk_acquire_op *op)
{
    return settle(op, rlk_acquire_judge_asking(op));
}

bool rlk_acquire_share_begin_asking(struct rlk_acquire_op *op)
{
    if (!choose_hold(op))
        return false;
    op->look = look_reading;
    op->judge = judge_reading;
    return op->hold->request.need_ask &&
           op->hold->request.requester == op->params->thread &&
           rlk_deadline_left(&op->params->deadline) > 0;
}
