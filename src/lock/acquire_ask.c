/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hold of a request: how it is made, entered and given up, and what an answer to its
 * acquire means.
 *
 * A call that gives up after it has sent its id goes one of three ways, chosen under the
 * registry's mutex (T7): the next local waiter goes on with the id (not in_order), the
 * caller gets the lock after all, or the id is cancelled. If a cancel is not answered in
 * time, the watchdog finishes it.
 *
 * Thread: callers'. Locks: hold the registry's mu.
 */
#include "lock/acquire_impl.h"

#include "base/error.h"

#include <errno.h>

enum { CANCEL_MS = 100 /* how long a cancel may last beyond the caller's deadline */ };

struct rlk_hold *rlk_acquire_new_hold(const struct rlk_acquire_op *op, bool tell)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_hold *hold = rlk_hold_new_locked(op->lock, params->thread,
                                                op->waiter.letter, op->waiter.grant_ms);
    if (hold) {
        hold->lease_ms = (int)params->lease_ms;
        hold->fixed = params->fixed;
        hold->reading = params->reading;
        hold->prefer = params->prefer;
        char *flag = hold->id.flags;
        if (params->robust)
            *flag++ = RLK_ID_ROBUST;
        if (tell)
            *flag++ = RLK_ID_TELL;
    }
    return hold;
}

bool rlk_acquire_may_take(const struct rlk_hold *hold, int64_t now)
{
    return now < hold->end && rlk_hold_newest_locked(hold);
}

void rlk_acquire_take(struct rlk_hold *hold, const struct rlk_acquire_params *params,
                      int64_t now)
{
    struct rlk_lock *lock = hold->lock;

    unsigned moves = hold->request.moves;

    /* The newest proof says that the server has the lock for this hold. Any other hold
     * that the process still believes in was taken away, and the news of this is on its
     * way. */
    if (lock->current)
        rlk_hold_lose_locked(lock->current, RLK_LOSS_ANOTHERS, now);
    while (!hold->reading && !rlk_list_empty(&lock->queue->reads))
        rlk_hold_lose_locked(
            RLK_CONTAINER_OF(lock->queue->reads.next, struct rlk_hold, link),
            RLK_LOSS_ANOTHERS, now);
    rlk_hold_enter_locked(hold, params->thread, now);
    /* rule: P9 */
    /* An old master granted it, after all other holds have been doubted. */
    if (moves != rlk_route_moves(&params->client->route))
        rlk_hold_doubt_locked(hold, now);
    rlk_queue_reached_locked(hold->lock, now);
    RLK_COUNT(params->client->counters.acquisitions);
}

void rlk_acquire_abandon(struct rlk_hold *hold, const struct rlk_acquire_params *params,
                         int64_t now)
{
    /* rule: T3, T8 */
    if (!hold->server.asked) {
        rlk_hold_unsent_locked(hold);
        rlk_hold_put_locked(hold);
        return;
    }
    int64_t window = rlk_client_marker_ms(params->client) + params->lease_ms;
    rlk_hold_give_up_locked(hold, now, now + window * RLK_NS_PER_MS);
}

void rlk_acquire_withdraw(struct rlk_lock *lock, const struct rlk_acquire_params *params)
{
    struct rlk_hold *hold = rlk_lock_ask_locked(lock);
    if (!hold || hold->request.requester) /* a thread asks with it */
        return;
    rlk_hold_ref_locked(hold);
    rlk_acquire_abandon(hold, params, rlk_clock_boot());
}

void rlk_acquire_end_request(struct rlk_hold *hold,
                             const struct rlk_acquire_params *params, int64_t now)
{
    /* rule: W21 */
    if (hold->server.unknown) {
        rlk_acquire_abandon(hold, params, now);
        return;
    }
    rlk_hold_ask_end_locked(hold);
    rlk_hold_put_locked(hold);
}

/* ---- attempts */

/* Records what an answer says about the hold. The server was heard at `heard`: the thread
 * may have stood still since. */
static enum rlk_verdict judge(struct rlk_acquire_op *op, int64_t heard)
{
    struct rlk_hold *hold = op->hold;
    const struct rlk_answer *answer = &op->answer;

    if (answer->outcome == RLK_UNKNOWN)
        hold->server.unknown = true;
    if (answer->outcome == RLK_UNKNOWN && hold->request.open_most == 0 &&
        rlk_confirm_is_on(&op->params->client->config.wait))
        hold->request.open_most = hold->request.asked;
    /* After an unknown error, or when the ACL refused a command of the script, the server
     * may have anything of this attempt: it is withdrawn, too. */
    if (answer->outcome == RLK_UNKNOWN || answer->outcome == RLK_DONE ||
        (answer->outcome == RLK_REFUSED && answer->sent != 0))
        hold->server.asked = true;
    if (answer->outcome == RLK_REFUSED)
        return FAILED;
    if (answer->outcome != RLK_DONE)
        return AGAIN;
    rlk_queue_reached_locked(hold->lock, heard);
    if (hold->state != RLK_HOLD_REQUESTED)
        return TAKEN; /* another thread that waits for this hold took it meanwhile */
    hold->request.flags = answer->flags;
    /* after "busy", the next attempt of the try goes on from there itself */
    if (rlk_cursor_set(answer->more) && answer->fate.what != RLK_BUSY)
        rlk_queue_go_on_locked(hold->lock, answer->more);
    switch (answer->fate.what) {
    case RLK_HELD:
        hold->request.moves = answer->moves;
        rlk_hold_held_locked(hold, answer->sent, answer->fate.remaining_ms,
                             answer->fate.token);
        hold->request.open_to =
            hold->request.open_most ? hold->request.open_most : hold->request.asked;
        return TAKEN;
    case RLK_SHARED:
        hold->request.open_to = hold->request.asked;
        return hold->reading ? SHARED : FAILED;
    case RLK_QUEUED:
        /* rule: P16 */
        if (!hold->request.granted && hold->request.ticket == 0)
            hold->request.moves = answer->moves; /* else a message may be of a server that
                                                    had the lock before */
        rlk_hold_queued_locked(hold, answer->fate.ticket, answer->sent);
        rlk_queue_joined_locked(hold->lock, answer->sent, answer->pttl_ms, answer->flags);
        if (!hold->request.granted)
            rlk_queue_poll_missed_locked(hold->lock, answer->sent);
        rlk_route_use_mail_locked(&op->params->client->route, hold->lock, heard);
        return QUEUED;
    case RLK_BUSY:
        return TAKEN_BY_OTHERS;
    case RLK_MARKED: /* a marker refuses this id */
        rlk_hold_rename_locked(hold, op->params->thread);
        return AGAIN_AT_ONCE;
    case RLK_LATE:
        return AGAIN_AT_ONCE;
    case RLK_UNRECOVERABLE:
        return SPOILT;
    default:
        return FAILED;
    }
}

/* rule: K2 */
/* The lease that a request names. A lock that is to be retained is taken only for the TTL
 * of a grant (K2). Other threads may have raised the lease of a read hold. */
static long first_lease(const struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;

    if (params->reading && !rlk_acquire_params_retains(params))
        return op->hold->lease_ms;
    return rlk_acquire_params_retains(params) ? (long)op->waiter.grant_ms
                                              : params->lease_ms;
}

/* Judges the answer to a request that named a hold to share. */
static void judge_share(struct rlk_acquire_op *op, struct rlk_hold *share)
{
    if (rlk_acquire_share_end(share, op->verdict, op->params, &op->answer, op->now) &&
        !rlk_acquire_share_decided(op))
        rlk_acquire_share_enter(op, share, op->now);
    rlk_acquire_share_put(share, op->now);
}

void rlk_acquire_attempt(struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_registry *reg = &params->client->registry;
    struct rlk_hold *hold = op->hold;
    bool tries = params->try_once;

    op->started = rlk_clock_boot();
    int64_t until = rlk_acquire_until(op, op->started);
    struct rlk_script_args_acquire request = {
        .hold = hold,
        .share =
            params->reading ? rlk_acquire_share_begin(op->lock, hold, op->started) : NULL,
        .lease_ms = first_lease(op),
        .try_once = tries || atomic_load(&params->client->interrupted),
        .after = op->after
    };
    hold->request.asked++;
    op->tried = true;
    op->going = op->lock->returning > 0;
    rlk_intent_note_locked(hold);
    rlk_registry_unlock(reg);
    rlk_rpc_acquire(params->client, &request, until, &op->answer);
    rlk_registry_lock(reg);
    op->now = rlk_clock_boot();
    rlk_acquire_note_late(op, RLK_ATTEMPT_FLOOR_MS);
    op->verdict = judge(op, op->now < until ? op->now : until);
    if (request.share)
        judge_share(op, request.share);
    if (rlk_acquire_share_decided(op))
        op->verdict = DECIDED;
}

/* A grant gave a hold with a fixed lease a shorter TTL: renews it. False: the hold is
 * lost, or no answer says what became of it. */
static bool confirm_lease(struct rlk_acquire_op *op, int64_t now)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_registry *reg = &params->client->registry;
    struct rlk_hold *hold = op->hold;
    struct rlk_answer answer;
    int64_t until = rlk_acquire_until(op, now);

    if (until > hold->end)
        until = hold->end;
    rlk_registry_unlock(reg);
    rlk_rpc_renew(params->client, hold, params->lease_ms,
                  (struct rlk_script_args_renew){ .tell = false }, until, &answer);
    rlk_registry_lock(reg);
    if (answer.outcome != RLK_DONE)
        return false;
    if (answer.fate.what != RLK_HELD) {
        rlk_hold_gone_locked(hold);
        return false;
    }
    int64_t ms = answer.fate.remaining_ms;
    hold->lease.short_ttl = false;
    hold->request.moves = answer.moves;
    rlk_hold_held_locked(hold, answer.sent, ms < params->lease_ms ? ms : params->lease_ms,
                         answer.fate.token ? answer.fate.token : hold->token);
    return true;
}

/* A grant was written by another client's connection, of which no replica was asked: the
 * thread proves it before it enters, by a renewal. If that fails, the server is asked as
 * if the grant had not been read. */
void rlk_acquire_prove(struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_registry *reg = &params->client->registry;
    struct rlk_hold *hold = op->hold;
    struct rlk_answer answer;
    int64_t started = rlk_clock_boot(), until = rlk_acquire_until(op, started);
    long lease_ms = first_lease(op);

    /* rule: P13 */
    if (started >= hold->end) {
        rlk_hold_ask_anew_locked(hold);
        return;
    }
    if (until > hold->end)
        until = hold->end;
    /* As with an acquire, threads that come from now on do not enter with this one. */
    hold->request.asked++;
    if (hold->request.open_most == 0)
        hold->request.open_most = hold->request.asked;
    rlk_registry_unlock(reg);
    rlk_rpc_renew(params->client, hold, lease_ms,
                  (struct rlk_script_args_renew){ .tell = false }, until, &answer);
    rlk_registry_lock(reg);
    rlk_acquire_note_late(op, RLK_ATTEMPT_FLOOR_MS);
    if (hold->state != RLK_HOLD_REQUESTED || !hold->request.granted)
        return;
    if (answer.outcome == RLK_DONE && answer.fate.what == RLK_HELD) {
        int64_t ms = answer.fate.remaining_ms;
        rlk_queue_reached_locked(hold->lock, rlk_clock_boot());
        hold->request.moves = answer.moves;
        rlk_hold_held_locked(hold, answer.sent, ms < lease_ms ? ms : lease_ms,
                             answer.fate.token ? answer.fate.token : hold->token);
        hold->request.open_to = hold->request.open_most;
        return;
    }
    if (answer.outcome == RLK_DONE) {
        rlk_hold_gone_locked(hold);
        return;
    }
    op->answer = answer;
    rlk_queue_trouble_locked(hold->lock, answer.code, started);
    rlk_hold_ask_anew_locked(hold);
}

bool rlk_acquire_enter_granted(struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_hold *hold = op->hold;
    int64_t now = rlk_clock_boot();

    if (params->fixed && hold->lease.short_ttl) {
        if (rlk_deadline_left(&params->deadline) <= 0)
            return false; /* no time to confirm the lease */
        if (now < hold->end && !confirm_lease(op, now))
            return false;
        now = rlk_clock_boot();
    }
    if (!hold->request.granted || !rlk_acquire_may_take(hold, now))
        return false;
    rlk_acquire_leave_queue(op);
    rlk_list_remove(&params->thread->wake_link); /* the thread is awake, and needs no
                                                    wake-up */
    op->open_to = hold->request.open_to;
    rlk_acquire_take(hold, params, now);
    if (hold->reading)
        rlk_acquire_share_bring_along(op, hold);
    rlk_hold_put_locked(hold);
    return rlk_acquire_end_with(op, 0);
}

/* ---- giving up */

/* rule: L7 */
/* Until when to wait for a cancel: its share of the 100 ms that a call may last beyond
 * its deadline (L7). */
static int64_t cancel_until(const struct rlk_acquire_params *params, int64_t now)
{
    int64_t left = rlk_deadline_left(&params->deadline);
    int64_t share = CANCEL_MS * RLK_NS_PER_MS + (left < 0 ? left : 0);
    int64_t least = (CANCEL_MS - RLK_ATTEMPT_FLOOR_MS) / 2 * RLK_NS_PER_MS;
    return now + (share > least ? share : least);
}

void rlk_acquire_leave_queue(struct rlk_acquire_op *op)
{
    struct rlk_queue *queue = op->lock->queue;

    if (queue->requester == &op->waiter)
        queue->requester = NULL;
    if (queue->woken == &op->waiter)
        queue->woken = NULL;
    rlk_list_remove(&op->waiter.link);
}

int rlk_acquire_give_up(struct rlk_acquire_op *op, int rc)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_registry *reg = &params->client->registry;
    struct rlk_lock *lock = op->lock;
    struct rlk_hold *hold = op->hold;
    int64_t now = rlk_clock_boot();

    rlk_acquire_leave_queue(op);
    struct rlk_waiter *other = hold->reading ? rlk_acquire_share_heir(op) : NULL;
    if (other) {
        if (hold->request.requester == params->thread) {
            hold->request.requester = other->thread;
            rlk_hold_wake_locked(hold);
        }
        rlk_hold_put_locked(hold);
        return rc;
    }
    /* The next waiter goes on with the id. Not if the process believes in another hold
     * while the server is to be asked about this one: no waiter would ask then, but the
     * cancel does. */
    if (!hold->reading && !rlk_kinds[lock->kind].in_order &&
        !rlk_list_empty(&lock->queue->waiters) &&
        !(lock->current && (hold->request.granted || hold->request.need_ask))) {
        struct rlk_waiter *next = RLK_CONTAINER_OF(rlk_list_first(&lock->queue->waiters),
                                                   struct rlk_waiter, link);
        if (rlk_handoff_suits(hold, next)) {
            hold->request.requester =
                NULL;                  /* the hold keeps facts for the next requester */
            rlk_hold_put_locked(hold); /* lock->queue->asks keeps it */
            rlk_lock_promote_locked(lock);
            return rc;
        }
    }
    if (!hold->server.asked) {
        rlk_acquire_abandon(hold, params, now);
        rlk_lock_promote_locked(lock);
        return rc;
    }
    /* rule: T7, T8 */
    /* From here on the id is given up, unless the cancel finds that it has the lock (T7,
     * T8). Until then the hold stays among the asks: otherwise the process would not know
     * the id of a grant that is read meanwhile, and would release the grant during this
     * call. */
    rlk_hold_change_locked(hold, RLK_ON_CANCEL);
    hold->request.requester = NULL;
    rlk_lock_promote_locked(lock);
    RLK_COUNT(params->client->counters.cancels);
    struct rlk_answer answer;
    int64_t until = cancel_until(params, now);
    rlk_registry_unlock(reg);
    rlk_error_keep(rc != ENOTCONN || rlk_error_present());
    rlk_rpc_cancel(params->client, hold, until, &answer);
    if (answer.outcome == RLK_DONE)
        rlk_rpc_go_on(params->client, lock->kind, lock->name, lock->name_len,
                      hold->prefer, answer.more, until);
    rlk_error_keep(false);
    rlk_registry_lock(reg);
    now = rlk_clock_boot();
    /* if the server does not answer, the call makes no more attempt */
    op->waiter.late &= answer.outcome == RLK_DONE;
    /* rule: P12 */
    if (answer.unconfirmed && rc == ETIMEDOUT) /* it has the lock for this thread */
        rc = rlk_error_set(ENOTCONN, "too few replicas confirmed the lock, which was "
                                     "granted at the deadline");
    if (answer.outcome == RLK_DONE && answer.fate.what == RLK_REMOVED) {
        rlk_hold_ask_end_locked(hold);
        rlk_hold_put_locked(hold);
        return rc;
    }
    if (answer.outcome == RLK_DONE && answer.fate.what == RLK_YOURS) {
        int64_t left = answer.fate.remaining_ms;
        if (left > hold->id.grant_ms) /* no grant is given for longer */
            left = hold->id.grant_ms;
        rlk_hold_change_locked(hold, RLK_ON_YOURS);
        hold->request.flags = answer.flags;
        hold->request.moves = answer.moves;
        rlk_hold_held_locked(hold, answer.sent, left, answer.fate.token);
        /* a fixed lease would have to be confirmed, and there is no time left for that */
        if (!params->fixed && rlk_acquire_may_take(hold, now)) {
            rlk_acquire_take(hold, params, now);
            rlk_hold_put_locked(hold);
            return 0;
        }
    }
    rlk_acquire_abandon(hold, params, now);
    return rc;
}
