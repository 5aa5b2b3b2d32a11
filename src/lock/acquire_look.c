/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread looks at while it waits for a lock that it wants exclusively:
 *   - a local waiter queues in the registry behind the threads of its process. One of
 *     them, the requester, asks the server for all. Where the lock is in_order (fair),
 *     every thread is a requester with a ticket of its own.
 *   - a requester has a REQUESTED hold, and is queued at the server. The watchdog proves
 *     its presence and polls; the subscriber or the leader reads the grants. All of them
 *     leave facts in the hold and wake the requester. Threads that read wait for one such
 *     hold together (acquire_share.c).
 * state/hold_ask.c decides what the requester believes (T1); this file, what it does
 * then. Each look chooses and changes in one critical section (H1).
 *
 * Thread: callers'. Locks: hold the registry's mu, and drop it where they ask.
 */
#include "lock/acquire_impl.h"

#include "base/error.h"

#include <errno.h>

static int64_t min_time(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool go_on_at_once(struct rlk_acquire_op *op)
{
    return rlk_acquire_go_on(op, RLK_SLEEP_PAUSE, 0);
}

/* ---- a requester */

/* The server could not be asked, or is to be asked again. Returns a code to give up with;
 * or 0, with the pause before the next attempt. */
static int judge_failure(struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;
    const struct rlk_answer *answer = &op->answer;
    bool again = op->verdict == AGAIN;

    if (op->verdict == AGAIN_AT_ONCE && ++op->late <= RLK_LATE_TRIES_MAX)
        return 0;
    if (again && answer->outcome == RLK_RETRY && op->hold->request.asks_since != 0) {
        rlk_hold_asked_in_vain_locked(op->hold, op->now);
        return 0;
    }
    if (again && answer->outcome != RLK_DONE) {
        rlk_queue_trouble_locked(op->lock, answer->code, op->started);
        if (rlk_acquire_outage_left(op, op->now) <= 0)
            return answer->code;
    }
    if (atomic_load(&params->client->interrupted))
        return ECANCELED;
    int64_t left = rlk_deadline_left(&params->deadline);
    if (left > 0)
        op->pause_ns = rlk_acquire_pause(op, left);
    return 0;
}

/* A code to give up with, or 0. */
static int judge_answer(struct rlk_acquire_op *op)
{
    switch (op->verdict) {
    case DECIDED:
        return 0;
    case TAKEN:
    case QUEUED:
        op->backoff_ms = op->late = 0;
        if (op->verdict == QUEUED)
            rlk_acquire_count_wait(op);
        return 0;
    case TAKEN_BY_OTHERS: /* the client is interrupted, and did not queue */
        return ECANCELED;
    case SPOILT:
        return ENOTRECOVERABLE;
    case FAILED:
        return op->answer.code != 0
                   ? op->answer.code
                   : rlk_error_set(
                         EPROTO, "unexpected reply from the acquire script of the lock");
    case SHARED:
    case AGAIN:
    case AGAIN_AT_ONCE:
    default:
        return judge_failure(op);
    }
}

bool rlk_acquire_judge_asking(struct rlk_acquire_op *op)
{
    struct rlk_hold *hold = op->hold;

    go_on_at_once(op);
    if (op->verdict == SHARED) /* the shared hold is lost by now */
        op->verdict = AGAIN_AT_ONCE;
    if (op->verdict == TAKEN && op->now >= hold->end)
        op->verdict = AGAIN; /* the lease was over when the answer came */
    int rc = judge_answer(op);
    if (rc != 0)
        return rlk_acquire_end_with(op, rlk_acquire_give_up(op, rc));
    if (op->verdict == TAKEN && hold->request.granted && !rlk_acquire_must_prove(op) &&
        rlk_acquire_enter_granted(op))
        return true;
    /* the thread came before all threads that queue by now */
    if (!op->params->reading && rlk_list_empty(&op->waiter.link))
        rlk_list_prepend(&op->lock->queue->waiters, &op->waiter.link);
    return false;
}

bool rlk_acquire_look_asking(struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_hold *hold = op->hold;

    if (rlk_acquire_share_decided(op)) {
        rlk_hold_put_locked(hold);
        return rlk_acquire_end_with(op, op->waiter.failed ? ENOMEM : 0);
    }
    bool asks = hold->request.requester == params->thread;
    bool unproven = rlk_acquire_must_prove(op);
    /* rule: P13 */
    if (unproven && asks && rlk_deadline_left(&params->deadline) > 0) {
        rlk_acquire_prove(op);
        return go_on_at_once(op);
    }
    if (!unproven && hold->request.granted && rlk_acquire_enter_granted(op))
        return true;
    if (hold->request
            .unrecoverable) { /* a thread that goes on with the hold asks again itself */
        rlk_hold_ask_anew_locked(hold);
        return rlk_acquire_end_with(op, rlk_acquire_give_up(op, ENOTRECOVERABLE));
    }
    int64_t left = rlk_deadline_left(&params->deadline);
    /* If the deadline passed before the first attempt, the thread asks once, as a try
     * would. */
    if (left <= 0 &&
        (rlk_acquire_was_busy(op) || op->tried || !hold->request.need_ask || !asks))
        return rlk_acquire_end_with(
            op, rlk_acquire_give_up(op, rlk_acquire_deadline_code(op)));
    if (hold->request.granted && asks)
        /* The grant came too late to be believed, or is not confirmed. The server is to
         * say what is true, also about the death that the grant reported. */
        rlk_hold_ask_anew_locked(hold);
    if (hold->request.need_ask && asks && left > 0 && rlk_acquire_is_last(op, left))
        return rlk_acquire_go_on(op, RLK_SLEEP_PAUSE, left);
    if (hold->request.need_ask && asks) {
        rlk_acquire_attempt(op);
        return rlk_acquire_judge_asking(op);
    }
    if (atomic_load(&params->client->interrupted))
        return rlk_acquire_end_with(op, rlk_acquire_give_up(op, ECANCELED));
    int64_t outage = rlk_acquire_outage_left(op, rlk_clock_boot());
    if (outage <= 0)
        return rlk_acquire_end_with(op, rlk_acquire_give_up(op, ENOTCONN));
    rlk_acquire_count_wait(op);
    rlk_acquire_note_busy(op);
    return rlk_acquire_go_on(op, asks ? RLK_SLEEP_BY_MAIL : RLK_SLEEP,
                             min_time(left, outage));
}

/* ---- a local waiter */

/* Whether another thread queues, too. */
static bool has_company(const struct rlk_acquire_op *op)
{
    const struct rlk_list *waiters = &op->lock->queue->waiters, *first = waiters->next;
    return first != waiters && (first != &op->waiter.link || first->next != waiters);
}

/* Makes the thread the requester, with the hold of an earlier requester if it suits.
 * False: out of memory. */
static bool start_asking(struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_lock *lock = op->lock;
    bool in_order = rlk_kinds[lock->kind].in_order;
    struct rlk_hold *hold =
        in_order || rlk_list_empty(&lock->queue->asks) ? NULL : rlk_lock_ask_locked(lock);

    if (hold && rlk_handoff_suits(hold, &op->waiter)) {
        rlk_hold_ref_locked(hold);
        if (hold->request.unrecoverable) /* the lock may have been mended since */
            rlk_hold_ask_anew_locked(hold);
        hold->lease.short_ttl = true; /* the known lease is that of the earlier
                                         requester */
        hold->lease_ms = (int)params->lease_ms;
        hold->fixed = params->fixed;
        hold->prefer = params->prefer;
    } else {
        if (hold)
            rlk_acquire_withdraw(lock, params);
        /* the process may keep the lock after an unlock, retained or passed on: it wants
         * a recall then */
        bool tell =
            rlk_acquire_params_retains(params) ||
            (lock->kind == RLK_KIND_MUTEX && op->waiter.passed_on && has_company(op));
        hold = rlk_acquire_new_hold(op, tell);
        if (!hold) {
            rlk_acquire_leave_queue(op);
            rlk_lock_promote_locked(lock);
            return !rlk_acquire_end_with(op, ENOMEM);
        }
    }
    op->hold = op->waiter.hold = hold;
    rlk_hold_ask_locked(hold, params->thread);
    op->look = rlk_acquire_look_asking;
    op->judge = rlk_acquire_judge_asking;
    return true;
}

/* The local waiter gives up. */
static bool give_up_locally(struct rlk_acquire_op *op, int rc, int64_t now)
{
    struct rlk_lock *lock = op->lock;

    rlk_list_remove(&op->waiter.link);
    rlk_handoff_gave_up_locked(lock, &op->waiter, now);
    if (rlk_list_empty(&lock->queue->waiters))
        rlk_acquire_withdraw(lock, op->params);
    return rlk_acquire_end_with(op, rc);
}

/* A local waiter asks the server if it is its turn, gives up, or sleeps. */
static bool stay(struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_lock *lock = op->lock;
    int64_t now = rlk_clock_boot();

    rlk_handoff_settle_locked(lock, now);
    if (!lock->queue->requester)
        rlk_lock_promote_locked(lock);
    if (lock->queue->requester == &op->waiter || rlk_kinds[lock->kind].in_order)
        return !start_asking(op) || rlk_acquire_look_asking(op);
    rlk_acquire_count_wait(op);
    int64_t left = rlk_deadline_left(&params->deadline);
    if (left <= 0)
        return give_up_locally(op, rlk_acquire_deadline_code(op), now);
    if (atomic_load(&params->client->interrupted))
        return give_up_locally(op, ECANCELED, now);
    if (!lock->current && rlk_acquire_outage_left(op, now) <= 0)
        return give_up_locally(op, ENOTCONN, now);
    rlk_acquire_note_busy(op);
    int64_t most =
        lock->current ? lock->current->end - now : rlk_acquire_outage_left(op, now);
    return rlk_acquire_go_on(op, RLK_SLEEP, min_time(left, most));
}

/* rule: H9 */
static bool look_local(struct rlk_acquire_op *op)
{
    struct rlk_waiter *waiter = &op->waiter;
    struct rlk_queue *queue = op->lock->queue;

    if (waiter->holder) { /* another thread handed the lock over */
        if (rlk_acquire_share_still_in(waiter->holder, op->params)) {
            rlk_intent_say_locked(waiter->holder->hold, RLK_INSIDE);
            return rlk_acquire_end_with(op, 0);
        }
        waiter->holder = NULL;
        rlk_list_prepend(&queue->waiters, &waiter->link);
    }
    if (queue->woken == waiter)
        queue->woken = NULL;
    if (rlk_acquire_enter_idle(op))
        return rlk_acquire_end_with(op, 0);
    if (waiter->holder || queue->woken == waiter)
        return go_on_at_once(op); /* another thread handed the lock over meanwhile, or
                                     left it to this one */
    if (rlk_list_empty(&waiter->link))
        rlk_list_prepend(&queue->waiters, &waiter->link);
    return stay(op);
}

static bool look_first(struct rlk_acquire_op *op)
{
    rlk_list_append(&op->lock->queue->waiters, &op->waiter.link);
    op->look = look_local;
    return stay(op);
}

/* Whether no thread of this process has the lock, asks for it or waits for it. */
static bool is_unclaimed(const struct rlk_acquire_op *op)
{
    const struct rlk_lock *lock = op->lock;
    return !lock->current && !lock->queue->requester && !lock->releasing &&
           rlk_list_empty(&lock->queue->waiters) &&
           (!lock->ending || lock->ending == op->params->thread);
}

bool rlk_acquire_begin_asking(struct rlk_acquire_op *op)
{
    bool in_order = rlk_kinds[op->lock->kind].in_order;

    op->look = look_first;
    if ((!in_order && !is_unclaimed(op)) || rlk_deadline_left(&op->params->deadline) <= 0)
        return false;
    if (!in_order) /* threads that come now queue behind this one */
        op->lock->queue->requester = &op->waiter;
    if (!start_asking(op)) {
        op->look = NULL;
        return false;
    }
    if (op->hold->request.need_ask)
        return true;
    rlk_list_prepend(&op->lock->queue->waiters, &op->waiter.link);
    return false;
}
