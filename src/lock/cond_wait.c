/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wait for a condition. The thread joins the server's queue while it still holds the
 * mutex, gives the mutex up, sleeps, and takes the mutex again (V1). What wakes it is an
 * answer, or a message that names the confirmed ticket (V11). A wait ends in one of two
 * ways at the server: its id is acknowledged once the call has the mutex, or it is given
 * up, and then the signal that it may have goes to another waiter (V4).
 *
 * The record of a wait is made before anything is sent, and outlives the call until the
 * server knows its end: on the way back nothing is allocated. Thread: callers'. Locks:
 * takes the registry's mu.
 */
#include "lock/cond_wait_impl.h"

#include "client/cond_rpc.h"
#include "client/leader.h"
#include "client/rpc.h"
#include "lock/call.h"
#include "lock/exclusive.h"
#include "state/awaited.h"

#include <errno.h>

enum {
    FLOOR_MS = 50,       /* what a join near the deadline may last beyond it */
    CANCEL_MS = 100,     /* how long a cancel may last at the deadline (V5) */
    PAUSE_FIRST_MS = 10, /* between joins that fail: at first, */
    PAUSE_MAX_MS = 500,  /* and at most */
    SLICE_MS = 100,      /* how often to look at another client's interrupt */
    REAL_SLICE_MS = 1000 /* how often to look at a deadline of CLOCK_REALTIME */
};

/* Ends the wait, if it has not ended. */
void rlk_cond_wait_end(struct rlk_cond_wait_op *op, enum rlk_condition_end how)
{
    struct rlk_registry *reg = rlk_cond_wait_registry(op);

    if (!op->wait)
        return;
    rlk_registry_lock(reg);
    rlk_condition_end_locked(op->wait, op->asked ? how : RLK_CONDITION_REMOVED,
                             op->unsure);
    op->wait = NULL;
    rlk_registry_unlock(reg);
}

/* ---- the mutex */

/* Gives up all levels: 0, or ESTALE: the lease was lost. */
static int give_up_mutex(struct rlk_cond_wait_op *op)
{
    struct rlk_holder *holder = rlk_cond_wait_holder(op);
    int64_t now = rlk_clock_boot();

    holder->levels.writes = 0;
    if (rlk_held_check(holder->hold, now)) {
        rlk_release_drain(holder);
        return ESTALE;
    }
    /* If the server refuses the release, the hold is given up all the same. */
    return rlk_release_retained(holder, op->args->mutex, now) == ESTALE ? ESTALE : 0;
}

/* Whether the process lacks something for a moment. */
static bool is_shortage(int code)
{
    return code == ENOMEM || code == EAGAIN || code == EMFILE || code == ENFILE;
}

/* Takes the mutex again. A shortage is outlasted: the caller of a wait counts on the
 * mutex, and the watchdog keeps its signal meanwhile (V4). */
static int take_again(struct rlk_cond_wait_op *op)
{
    const struct rlk_cond_wait_args *args = op->args;
    int64_t pause_ms = 0;

    for (;;) {
        int rc = rlk_exclusive_retake(args->mutex, args->kind, op->levels, op->lease_ms);
        if (!is_shortage(rc))
            return rc;
        if (rlk_cond_wait_interrupted(op))
            return ECANCELED;
        rlk_cond_wait_pause(op, &pause_ms, rlk_clock_boot(), RLK_NEVER);
    }
}

/* rule: V9, V10 */
/* Takes the mutex again, and ends the wait. Returns the code of the call. */
int rlk_cond_wait_take_mutex(struct rlk_cond_wait_op *op, int rc)
{
    int taken = take_again(op);
    bool held = taken == 0 || taken == EOWNERDEAD;

    rlk_cond_wait_end(op, held ? RLK_CONDITION_RETURNED : RLK_CONDITION_LEFT);
    return taken != 0 ? taken : rc;
}

/* ---- joining, with the mutex held */

int64_t rlk_cond_wait_until(const struct rlk_cond_wait_op *op, int64_t end, int64_t now)
{
    int64_t ns = rlk_client_command_timeout(op->client);
    int64_t left = rlk_deadline_left(&op->deadline);

    if (left != RLK_NEVER && left + FLOOR_MS * RLK_NS_PER_MS < ns)
        ns = left + FLOOR_MS * RLK_NS_PER_MS;
    return now + ns < end ? now + ns : end;
}

void rlk_cond_wait_joined_locked(struct rlk_cond_wait_op *op, const struct rlk_fate *fate)
{
    if (fate->what == RLK_WAITING) {
        rlk_condition_joined_locked(op->wait, fate->ticket);
        rlk_route_use_mail_of_locked(&op->client->route, op->condition->name,
                                     op->condition->name_len, rlk_clock_boot());
    } else if (fate->what != RLK_LATE) {
        rlk_condition_told_locked(op->wait);
    }
}

/* One join. Its answer is in *answer; what it says of the wait is noted. */
static void join_once(struct rlk_cond_wait_op *op, struct rlk_answer *answer)
{
    struct rlk_registry *reg = rlk_cond_wait_registry(op);
    struct rlk_settlement over;
    const struct rlk_cond_args_wait args = { .wait = op->wait,
                                             .again = op->unsure,
                                             .over = &over };
    int64_t now = rlk_clock_boot();

    rlk_registry_lock(reg);
    rlk_condition_settle_locked(op->condition, &over);
    rlk_registry_unlock(reg);
    rlk_cond_rpc_wait(op->client, &args,
                      rlk_cond_wait_until(op, rlk_cond_wait_holder(op)->hold->end, now),
                      answer);
    bool done = answer->outcome == RLK_DONE;
    op->unsure |= answer->outcome == RLK_UNKNOWN;
    op->asked |= done || answer->outcome == RLK_UNKNOWN ||
                 (answer->outcome == RLK_REFUSED && answer->sent != 0);
    rlk_registry_lock(reg);
    rlk_condition_settled_locked(op->condition, &over, done);
    if (done)
        rlk_cond_wait_joined_locked(op, &answer->fate);
    rlk_registry_unlock(reg);
}

/* Sleeps before the next join, until `until` at most. Locks: none. */
void rlk_cond_wait_pause(struct rlk_cond_wait_op *op, int64_t *pause_ms, int64_t now,
                         int64_t until)
{
    struct rlk_registry *reg = rlk_cond_wait_registry(op);

    *pause_ms = *pause_ms == 0 ? PAUSE_FIRST_MS : 2 * *pause_ms;
    if (*pause_ms > PAUSE_MAX_MS)
        *pause_ms = PAUSE_MAX_MS;
    int64_t ns = *pause_ms * RLK_NS_PER_MS;
    if (ns > until - now)
        ns = until - now;
    if (ns <= 0)
        return;
    rlk_registry_lock(reg);
    rlk_sync_cond_wait(&op->thread->cond, &reg->mu, rlk_clock_add(rlk_clock_mono(), ns));
    rlk_registry_unlock(reg);
}

/* The code of a join that the server refused for good; RLK_COND_WAIT_GOES_ON: it may be
 * repeated. */
static int refusal(const struct rlk_answer *answer)
{
    bool refused = answer->outcome == RLK_REFUSED;

    return refused ? answer->code : RLK_COND_WAIT_GOES_ON;
}

/* rule: V1 */
/* Joins, as often as it takes. Returns RLK_COND_WAIT_GOES_ON when the server has the id
 * in its queue or has woken it; else a code: ETIMEDOUT, ESTALE (the lease ended),
 * ECANCELED, ENOTCONN, or why the server refuses. */
static int join(struct rlk_cond_wait_op *op)
{
    int64_t started = rlk_clock_boot(), pause_ms = 0;
    int late = 0;

    for (;;) {
        struct rlk_answer answer;
        join_once(op, &answer);
        int64_t now = rlk_clock_boot();
        int rc = refusal(&answer);
        if (rc != RLK_COND_WAIT_GOES_ON)
            return rc;
        if (answer.outcome == RLK_DONE && answer.fate.what != RLK_LATE)
            return RLK_COND_WAIT_GOES_ON;
        if (rlk_held_check(rlk_cond_wait_holder(op)->hold, now))
            return ESTALE;
        int64_t left = rlk_deadline_left(&op->deadline);
        if (left <= 0)
            return ETIMEDOUT;
        if (rlk_cond_wait_interrupted(op))
            return ECANCELED;
        if (op->outage_fails && now - started >= rlk_client_command_timeout(op->client))
            return answer.code != 0 ? answer.code : ENOTCONN;
        if (answer.outcome == RLK_DONE && ++late <= RLK_LATE_TRIES_MAX)
            continue;
        int64_t until = rlk_cond_wait_holder(op)->hold->end;
        if (left != RLK_NEVER && rlk_clock_add(now, left) < until)
            until = now + left;
        rlk_cond_wait_pause(op, &pause_ms, now, until);
    }
}

/* ---- waiting, without the mutex */

/* rule: V5, V13 */
/* Takes the id out of the server's queue. Returns whether the server had woken it; ends
 * the wait otherwise. */
static bool cancel_at_server(struct rlk_cond_wait_op *op, bool pass, int64_t until)
{
    struct rlk_registry *reg = rlk_cond_wait_registry(op);
    struct rlk_answer answer;

    rlk_cond_rpc_cancel(op->client, op->wait, pass, until, &answer);
    bool done = answer.outcome == RLK_DONE;
    rlk_registry_lock(reg);
    /* "gone" also says of an id that it never joined; the mutex is still held then */
    bool removed = done && (answer.fate.what == RLK_REMOVED ||
                            (answer.fate.what == RLK_GONE && op->wait->ticket == 0));
    bool woken = !pass && (op->wait->told || (done && !removed));
    if (woken && done)
        rlk_condition_told_locked(op->wait);
    if (!woken) {
        rlk_condition_end_locked(
            op->wait, done ? RLK_CONDITION_REMOVED : RLK_CONDITION_LEFT, !done);
        op->wait = NULL;
    }
    rlk_registry_unlock(reg);
    return woken;
}

/* The deadline has passed: ETIMEDOUT, or 0 if the server had woken the id. */
int rlk_cond_wait_time_out(struct rlk_cond_wait_op *op)
{
    int64_t until = rlk_clock_boot() + CANCEL_MS * RLK_NS_PER_MS;

    if (op->asked && cancel_at_server(op, false, until)) {
        rlk_cond_wait_tell_woken(op);
        return 0;
    }
    rlk_cond_wait_tell_failed(op, ETIMEDOUT);
    return ETIMEDOUT;
}

/* How long to sleep at most. */
static int64_t nap_ns(const struct rlk_cond_wait_op *op, int64_t left)
{
    int64_t ns = left;

    if (op->deadline.clock == RLK_DEADLINE_REAL && ns > REAL_SLICE_MS * RLK_NS_PER_MS)
        ns = REAL_SLICE_MS * RLK_NS_PER_MS;
    if (op->client != op->owner && ns > SLICE_MS * RLK_NS_PER_MS)
        ns = SLICE_MS * RLK_NS_PER_MS;
    return ns;
}

/* Sleeps once. Locks: holds the registry's mu, and drops it meanwhile. */
static void nap_locked(struct rlk_cond_wait_op *op, int64_t left,
                       const struct rlk_sync_cleanup *cleanup)
{
    struct rlk_registry *reg = rlk_cond_wait_registry(op);

    if (rlk_registry_tells_locked(reg)) { /* as in acquire_wait.c */
        rlk_registry_unlock(reg);
        rlk_registry_lock(reg);
        return;
    }
    int64_t ns = nap_ns(op, left);
    int64_t end = ns == RLK_NEVER ? RLK_NEVER : rlk_clock_add(rlk_clock_mono(), ns);
    struct rlk_route *route = &op->client->route;
    if (!rlk_route_is_cluster(route) && /* there the subscriber reads all mail */
        rlk_leader_begin_locked(&route->target, op->thread, end, cleanup))
        return;
    if (cleanup)
        rlk_sync_cond_wait_cancel(&op->thread->cond, &reg->mu, end, cleanup);
    else
        rlk_sync_cond_wait(&op->thread->cond, &reg->mu, end);
}

/* Ends what the call has begun, but for the mutex. */
static void finish(struct rlk_cond_wait_op *op)
{
    struct rlk_registry *reg = rlk_cond_wait_registry(op);

    if (op->condition) {
        rlk_registry_lock(reg);
        rlk_condition_put_locked(op->condition);
        reg->waiters_now--;
        rlk_awaited_asked_locked(reg);
        rlk_registry_unlock(reg);
    }
    rlk_client_put(op->owner);
    rlk_client_put(op->client);
}

/* rule: V13 */
/* The thread was cancelled in its sleep: its signal, if it has one, goes to another
 * waiter, and it takes the mutex again before its own clean-up handlers run. Locks: holds
 * the registry's mu. */
static void cancelled(void *arg)
{
    struct rlk_cond_wait_op *op = arg;
    struct rlk_registry *reg = rlk_cond_wait_registry(op);

    /* it may have been signalled, and not removed from the list of those to wake */
    rlk_registry_unlock(reg);
    rlk_cond_wait_tell_failed(op, ECANCELED);
    cancel_at_server(op, true, rlk_clock_boot() + rlk_client_command_timeout(op->client));
    rlk_cond_wait_take_mutex(op, 0);
    finish(op);
    errno = op->call->saved_errno;
}

/* Sleeps until the wait is over. Returns 0, ETIMEDOUT, or ECANCELED. */
static int sleep_until_woken(struct rlk_cond_wait_op *op)
{
    struct rlk_registry *reg = rlk_cond_wait_registry(op);
    const struct rlk_sync_cleanup cleanup = { cancelled, op };
    bool may_cancel = rlk_sync_may_cancel(op->call->cancel);
    int rc = RLK_COND_WAIT_GOES_ON;

    rlk_registry_lock(reg);
    rlk_awaited_waits_locked(reg);
    while (rc == RLK_COND_WAIT_GOES_ON) {
        int64_t left = rlk_deadline_left(&op->deadline);
        if (op->wait->told || op->wait->unasked)
            rc = 0;
        else if (rlk_cond_wait_interrupted(op))
            rc = ECANCELED;
        else if (left <= 0)
            rc = ETIMEDOUT;
        else
            nap_locked(op, left, may_cancel ? &cleanup : NULL);
    }
    /* the thread is awake, and needs no wake-up */
    rlk_list_remove(&op->thread->wake_link);
    if (rc != ETIMEDOUT)
        rlk_condition_back_locked(op->wait);
    rlk_registry_unlock(reg);
    if (rc == 0)
        rlk_cond_wait_tell_woken(op);
    return rc;
}

/* ---- the call */

/* The join has ended with a code. The mutex is held, unless it is ESTALE. */
static int end_join(struct rlk_cond_wait_op *op, int rc)
{
    if (rc == ESTALE) {
        rlk_cond_wait_end(op, RLK_CONDITION_LEFT);
        give_up_mutex(op);
        return rc;
    }
    if (rc == ETIMEDOUT)
        rc = rlk_cond_wait_time_out(op); /* the mutex was held all along */
    else if (rc == ECANCELED || rc == ENOTCONN) {
        rlk_cond_wait_end(op, RLK_CONDITION_LEFT);
        return give_up_mutex(op) == ESTALE ? ESTALE : rc;
    }
    rlk_cond_wait_end(op, rc == 0 ? RLK_CONDITION_RETURNED : RLK_CONDITION_LEFT);
    return rc;
}

static bool is_woken(struct rlk_cond_wait_op *op)
{
    struct rlk_registry *reg = rlk_cond_wait_registry(op);

    rlk_registry_lock(reg);
    bool woken = op->wait->told || op->wait->unasked;
    rlk_registry_unlock(reg);
    return woken;
}

/* Joins, then gives up the mutex. RLK_COND_WAIT_GOES_ON: the thread waits without it. */
static int join_then_release(struct rlk_cond_wait_op *op)
{
    int rc = join(op);

    if (rc != RLK_COND_WAIT_GOES_ON)
        return end_join(op, rc);
    if (is_woken(op)) { /* while the mutex is still held */
        rlk_cond_wait_tell_woken(op);
        rlk_cond_wait_end(op, RLK_CONDITION_RETURNED);
        return 0;
    }
    if (give_up_mutex(op) == ESTALE) {
        rlk_cond_wait_end(op, RLK_CONDITION_LEFT);
        return ESTALE;
    }
    return rc;
}

/* The wait has begun. */
static int go_through(struct rlk_cond_wait_op *op)
{
    int rc = rlk_cond_wait_release(op);

    if (rc == RLK_COND_WAIT_TWO_STEPS)
        rc = join_then_release(op);
    if (rc != RLK_COND_WAIT_GOES_ON)
        return rc;
    rc = sleep_until_woken(op);
    if (rc == ETIMEDOUT)
        rc = rlk_cond_wait_time_out(op);
    if (rc == ECANCELED) {
        rlk_cond_wait_end(op, RLK_CONDITION_LEFT);
        return rc;
    }
    return rlk_cond_wait_take_mutex(op, rc);
}

static int run(struct rlk_cond_wait_op *op)
{
    rlk_cond_wait_tell_begun(op);
    int rc = go_through(op);
    if (rc != 0)
        rlk_cond_wait_tell_failed(op, rc);
    return rc;
}

/* The deadline has passed already: nothing joins. */
static int run_late(struct rlk_cond_wait_op *op)
{
    return give_up_mutex(op) == ESTALE ? ESTALE : rlk_cond_wait_take_mutex(op, ETIMEDOUT);
}

/* Makes the record of the wait: 0 or ENOMEM. */
static int begin(struct rlk_cond_wait_op *op)
{
    struct rlk_registry *reg = rlk_cond_wait_registry(op);
    const struct rlk_handle *cond = op->args->cond;

    rlk_registry_lock(reg);
    op->condition = rlk_condition_get_locked(reg, cond->rlk_name, cond->rlk_name_len);
    if (op->condition) {
        reg->waiters_now++;
        rlk_awaited_asks_locked(reg);
        op->wait = rlk_condition_begin_locked(op->condition, op->thread,
                                              (uint32_t)op->client->config.presence_ms);
    }
    rlk_registry_unlock(reg);
    return op->wait ? 0 : ENOMEM;
}

/* What the call needs of the mutex, which its thread holds. */
static void note_mutex(struct rlk_cond_wait_op *op, const struct rlk_holder *holder)
{
    const struct rlk_hold *hold = holder->hold;

    op->levels = holder->levels.writes;
    op->lease_ms = hold->fixed ? hold->lease_ms : 0;
    op->outage_fails = (op->args->mutex->rlk_flags & RLK_HANDLE_OUTAGE_FAIL) != 0;
}

/* rule: V16 */
/* The mutex's client is kept, too: the mutex is to be taken again. */
static int keep_clients(struct rlk_cond_wait_op *op, const struct rlk_holder *holder)
{
    int rc = rlk_client_get(op->args->cond->rlk_client, &op->client);

    if (rc != 0)
        return rc;
    op->owner = RLK_CLIENT_OF(holder->hold->lock->registry);
    rc = rlk_client_keep(op->owner);
    if (rc == 0)
        return 0;
    rlk_client_put(op->client);
    return ESTALE;
}

static int set_deadline(struct rlk_cond_wait_op *op)
{
    const struct rlk_cond_wait_args *args = op->args;
    clockid_t clock = args->named                 ? args->clock
                      : args->cond->rlk_type != 0 ? args->cond->rlk_type - 1
                                                  : CLOCK_REALTIME;

    op->deadline = RLK_NO_DEADLINE;
    return args->timed ? rlk_deadline_set(&op->deadline, clock, args->abstime) : 0;
}

/* EINVAL, or 0. */
static int check_args(const struct rlk_cond_wait_args *args)
{
    int rc = rlk_handle_check(args->cond, RLK_KIND_COND);

    if (rc == 0)
        rc = rlk_handle_check(args->mutex, args->kind);
    if (rc != 0 || !args->timed)
        return rc;
    if (!rlk_error_argument_there("the deadline", args->abstime))
        return EINVAL;
    if (args->named && args->clock != CLOCK_REALTIME && args->clock != CLOCK_MONOTONIC)
        return rlk_error_set(EINVAL,
                             "clock %d is neither CLOCK_REALTIME nor CLOCK_MONOTONIC",
                             (int)args->clock);
    return rlk_deadline_valid(args->abstime) ? 0 : rlk_deadline_bad(args->abstime);
}

static int wait_with(struct rlk_cond_wait_op *op)
{
    struct rlk_holder *holder = rlk_cond_wait_holder(op);
    int rc;

    if (!holder)
        return rlk_error_set(EPERM, "the calling thread does not hold the mutex");
    if (rlk_held_check(holder->hold, rlk_clock_boot())) {
        holder->levels.writes = 0;
        rlk_release_drain(holder);
        return ESTALE;
    }
    note_mutex(op, holder);
    rc = set_deadline(op);
    if (rc != 0)
        return rc;
    op->thread = rlk_thread_get();
    if (!op->thread)
        return ENOMEM;
    rc = keep_clients(op, holder);
    if (rc != 0)
        return rc;
    if (rlk_deadline_left(&op->deadline) <= 0) {
        rc = run_late(op);
    } else {
        rc = begin(op);
        if (rc == 0)
            rc = run(op);
    }
    finish(op);
    return rc;
}

/* The message of a request that failed on the way does not belong to these codes. */
static void settle_message(int rc)
{
    if (rc == 0)
        rlk_error_clear();
    else if (rc == ETIMEDOUT || rc == ECANCELED || rc == ESTALE)
        rlk_error_set(rc, "%s", rlk_error_text(rc));
}

int rlk_cond_wait(const struct rlk_cond_wait_args *args)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_cond_wait_op op = { .args = args, .call = &call };
    int rc = check_args(args);
    bool aborts = rlk_handle_aborts(args->mutex, args->kind);

    if (rc == 0) {
        rc = wait_with(&op);
        settle_message(rc);
    }
    return rlk_call_leave(call, rlk_handle_guard(aborts, rc));
}
