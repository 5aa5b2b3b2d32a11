/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a lock. A call has up to three steps. First, the thread enters a hold that its
 * process has, if it may (acquire_enter.c). Otherwise it asks the server, once. Otherwise
 * it waits (acquire_wait.c). If the lock is free, the second step is the last: the thread
 * queues nowhere. A call that may not wait repeats its attempt only if the answer says
 * nothing about the lock.
 *
 * acquire_ask.c has the hold of the request, and what an answer means for it;
 * acquire_share.c, what readers of one process share.
 */
#include "lock/acquire_impl.h"

#include "base/error.h"
#include "base/probe.h"
#include "state/awaited.h"
#include "state/fastpath.h"

#include <errno.h>

enum {
    TRY_LEAST_PART = 4, /* a try repeats its attempt only if this part of its time (1/4),
                           or RLK_ATTEMPT_FLOOR_MS if that is less, is left */
    OVERTIME_MS = 100   /* how long a call may last beyond its deadline (L7) */
};

/* ---- the first step */

static void begin(struct rlk_acquire_op *op, const struct rlk_acquire_params *params,
                  struct rlk_lock *lock)
{
    *op = (struct rlk_acquire_op){
        .params = params,
        .lock = lock,
        .waiter = { .thread = params->thread,
                    .self = rlk_sync_thread_self(),
                    .letter = rlk_acquire_params_letter(params),
                    .robust = params->robust,
                    .grant_ms = rlk_acquire_params_grant_ms(params),
                    .lease_ms = params->lease_ms,
                    .since = rlk_clock_boot(),
                    .passed_on = !params->fixed && params->handoff.ns > 0 &&
                                 params->handoff.count > 0,
                    .retakes = !params->fixed },
    };
    rlk_list_init(&op->waiter.link);
}

/* ---- tries. Locks: hold the registry's mu. */

/* The code of a try whose last attempt did not get the lock. */
static int try_code(const struct rlk_acquire_op *op)
{
    enum rlk_verdict v = op->verdict;

    if (v == TAKEN || v == TAKEN_BY_OTHERS)
        return EBUSY;
    if (v == SPOILT)
        return ENOTRECOVERABLE;
    if (v == FAILED && op->answer.code == 0)
        return rlk_error_set(EPROTO,
                             "unexpected reply from the acquire script of the lock");
    if (v == AGAIN_AT_ONCE)
        return rlk_error_set(
            ENOTCONN,
            "the server refuses every request as late: its clock steps or runs too fast");
    return op->answer.code != 0 ? op->answer.code : EBUSY;
}

/* The try ends without the lock. */
static bool end_try(struct rlk_acquire_op *op)
{
    op->rc = try_code(op);
    rlk_acquire_abandon(op->hold, op->params, op->now);
    return true;
}

/* The thread was let into a shared hold, or there was no memory for that. */
static bool end_shared_try(struct rlk_acquire_op *op)
{
    rlk_hold_put_locked(op->hold);
    if (op->waiter.failed)
        op->rc = ENOMEM;
    else
        op->rc = rlk_acquire_share_still_in(op->waiter.holder, op->params) ? 0 : EBUSY;
    return true;
}

/* The server says that others have the lock. True: the try is over. */
static bool end_busy_try(struct rlk_acquire_op *op)
{
    if (op->now < op->until && rlk_cursor_set(op->answer.more)) {
        op->after = op->answer.more; /* no waiter seen so far comes before this try */
        op->again = false;
        return false;
    }
    if (op->now < op->until && (op->going || op->lock->returning > 0)) {
        op->verdict = AGAIN; /* perhaps only this process has it, and gives it back */
        return false;
    }
    rlk_awaited_tried_locked(op->lock->registry); /* the holder may be dead */
    if (op->hold->server.unknown)
        return end_try(op);
    rlk_hold_put_locked(op->hold);
    op->rc = EBUSY;
    return true;
}

/* Looks at the answer to a try. True: the try is over. */
static bool judge_try(struct rlk_acquire_op *op)
{
    struct rlk_hold *hold = op->hold;
    int64_t now = op->now;

    op->pause_ns = 0;
    op->again = true;
    if (op->verdict == DECIDED)
        return end_shared_try(op);
    if (op->verdict == SHARED) /* the shared hold is lost by now */
        op->verdict = AGAIN;
    if (op->verdict == TAKEN && now < hold->end && !rlk_acquire_may_take(hold, now))
        op->verdict = AGAIN; /* only the server knows which of two holds is the newer */
    if (op->verdict == TAKEN && now < hold->end) {
        rlk_acquire_take(hold, op->params, now);
        rlk_hold_put_locked(hold);
        op->rc = 0;
        return true;
    }
    if (op->verdict == TAKEN_BY_OTHERS) {
        bool over = end_busy_try(op);
        if (over || op->verdict == TAKEN_BY_OTHERS)
            return over;
    }
    if (op->verdict == SPOILT && !hold->server.unknown) {
        rlk_hold_put_locked(hold);
        op->rc = ENOTRECOVERABLE;
        return true;
    }
    if (op->verdict == TAKEN || op->verdict == SPOILT || op->verdict == FAILED ||
        now >= op->until)
        return end_try(op);
    op->after = (struct rlk_cursor){ 0 }; /* the waiters that were passed over may listen
                                             again */
    if (op->verdict == AGAIN || ++op->late > RLK_LATE_TRIES_MAX)
        op->pause_ns = rlk_acquire_pause(op, op->until - now);
    return false;
}

/* Makes the next attempt of a try, if there is time for the answer. */
static bool look_try(struct rlk_acquire_op *op)
{
    op->now = rlk_clock_boot();
    int64_t left = op->until - op->now;
    if (op->again && (left < op->least || rlk_acquire_is_last(op, left)))
        return end_try(op); /* with the code of the previous attempt */
    rlk_acquire_attempt(op);
    return judge_try(op);
}

/* Makes the hold of a try. False: the try is over. */
static bool begin_try(struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_lock *lock = op->lock;
    int64_t floor = RLK_ATTEMPT_FLOOR_MS * RLK_NS_PER_MS;

    op->rc = EBUSY;
    if (lock->current || (!params->reading && !rlk_list_empty(&lock->queue->reads)))
        return false;
    op->rc = ENOMEM;
    op->hold = rlk_acquire_new_hold(op, rlk_acquire_params_retains(params));
    if (!op->hold)
        return false;
    op->waiter.hold = op->hold;
    rlk_hold_try_locked(op->hold);
    op->look = look_try;
    op->judge = judge_try;
    op->least = (op->until - op->waiter.since) / TRY_LEAST_PART;
    if (op->least > floor)
        op->least = floor;
    return true;
}

/* ---- the three steps */

/* Prepares the second step. True: the thread may ask the server. False: it waits first,
 * or the call is over with op->rc. */
static bool may_ask(struct rlk_acquire_op *op)
{
    return op->params->try_once  ? begin_try(op)
           : op->params->reading ? rlk_acquire_share_begin_asking(op)
                                 : rlk_acquire_begin_asking(op);
}

/* One attempt after the deadline, like that of a call which begins after its deadline. */
static int try_after_all(const struct rlk_acquire_params *params, struct rlk_lock *lock)
{
    struct rlk_acquire_params once = *params;
    struct rlk_acquire_op op;
    int64_t share = RLK_ATTEMPT_FLOOR_MS * RLK_NS_PER_MS, least = share / 2;
    int64_t left = rlk_deadline_left(&params->deadline);
    int64_t rest = OVERTIME_MS * RLK_NS_PER_MS + (left < 0 ? left : 0);

    if (share > rest)
        share = rest > least ? rest : least;
    once.try_once = true;
    begin(&op, &once, lock);
    op.until = op.waiter.since + share;
    if (!rlk_acquire_enter_idle(&op) && begin_try(&op))
        rlk_acquire_wait(&op);
    return op.rc;
}

/* The code of a call that waited, and would return `rc`. In two cases it makes one more
 * attempt. If a signal handler, or a standstill of the machine, kept the thread beyond
 * its deadline, the lock may have come free meanwhile. If the thread knows only that the
 * server refused the process's poll, the server is there: its answer to the thread itself
 * says more, and has a message. */
static int code_after_all(const struct rlk_acquire_params *params, struct rlk_lock *lock,
                          int rc, bool late)
{
    int trouble = lock->queue->trouble;
    bool refused = rc == ENOTCONN && (trouble == EACCES || trouble == EPROTO);
    bool missed = late && (rc == ETIMEDOUT || rc == ENOTCONN);

    if (!refused && !missed)
        return rc;
    int once = try_after_all(params, lock);
    if (once == 0)
        return 0;
    if (once == EBUSY)
        return params->deadline.clock == RLK_DEADLINE_NONE ? rc : ETIMEDOUT;
    return rc == ENOTCONN ? once : rc;
}

/* Whether the thread, which has the lock, may leave it by the fast path. */
static bool may_rest(const struct rlk_acquire_params *params, const struct rlk_lock *lock)
{
    return params->kind == RLK_KIND_MUTEX && !params->fixed && lock->current &&
           (lock->current->contention.recall || !rlk_list_empty(&lock->queue->waiters));
}

/* Ends the call. Returns how long it waited, in ns; 0: it did not wait. */
static int64_t end(struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_registry *reg = &params->client->registry;
    int64_t waited = 0;

    if (op->waiter.counted) {
        waited = rlk_clock_boot() - op->waiter.since;
        rlk_histogram_add(op->rc == 0 ? &reg->waited : &reg->waited_in_vain, waited);
    }
    /* no thread is left to go on with the request of an earlier requester */
    if (op->rc == 0 && !params->try_once && !params->reading &&
        rlk_list_empty(&op->lock->queue->waiters))
        rlk_acquire_withdraw(op->lock, params);
    if (!params->try_once)
        op->rc = code_after_all(params, op->lock, op->rc, op->waiter.late);
    if (op->rc == ETIMEDOUT)
        RLK_COUNT(params->client->counters.timeouts);
    return waited;
}

static void tell(const struct rlk_acquire_params *params, int rc, int64_t waited)
{
    if (rc == 0)
        RLK_PROBE4(lock_acquired, params->name, params->kind, (int)params->reading,
                   RLK_PROBE_US(waited));
    else
        RLK_PROBE4(lock_failed, params->name, params->kind, rc, RLK_PROBE_US(waited));
    if (rc == 0)
        rlk_error_clear(); /* the message of an attempt that failed on the way */
    else if (rc == EBUSY || rc == ETIMEDOUT || rc == ECANCELED || rc == ENOTRECOVERABLE)
        rlk_error_set(rc, "%s", rlk_error_text(rc));
}

int rlk_acquire(const struct rlk_acquire_params *params)
{
    struct rlk_registry *reg = &params->client->registry;
    struct rlk_acquire_op op;
    int64_t waited = 0;
    bool rests = false;
    int rc = rlk_client_check_lease(params->client, params->lease_ms);

    if (rc != 0) {
        tell(params, rc, 0);
        return rc;
    }
    rc = ENOMEM;
    rlk_registry_lock(reg);
    struct rlk_lock *lock =
        rlk_lock_get_locked(reg, params->kind, params->name, params->name_len);
    if (lock) {
        lock->prefer = params->prefer;
        begin(&op, params, lock);
        op.until = op.waiter.since + rlk_client_command_timeout(params->client);
        reg->waiters_now += !params->try_once;
        bool over = rlk_acquire_enter_idle(&op);
        if (!over && may_ask(&op)) {
            rlk_acquire_attempt(&op);
            over = op.judge(&op);
        }
        if (!over && op.look)
            rlk_acquire_wait(&op);
        reg->waiters_now -= !params->try_once;
        waited = end(&op);
        rc = op.rc;
        rests = rc == 0 && may_rest(params, lock);
        rlk_lock_put_locked(lock);
    }
    rlk_registry_unlock(reg);
    if (rests)
        rlk_fastpath_prepare(params->thread);
    tell(params, rc, waited);
    return rc;
}
