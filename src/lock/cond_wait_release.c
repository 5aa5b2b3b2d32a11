/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The join of a wait and the release of its mutex by one script, where the unlock goes to
 * the server anyway. The hold is left before the script is sent: no other thread of the
 * process enters it any more. The script joins only while the server has the mutex for
 * this hold, so it may be repeated. Thread: callers'. Locks: takes the registry's mu.
 */
#include "lock/cond_wait_impl.h"

#include "base/error.h"
#include "client/rpc.h"

#include <errno.h>

/* Sends the script once. */
static void send_once(struct rlk_cond_wait_op *op, struct rlk_hold *hold,
                      struct rlk_answer *answer, struct rlk_fate *fate)
{
    struct rlk_registry *reg = rlk_cond_wait_registry(op);
    struct rlk_settlement over;
    bool mark = hold->server.unknown || hold->ending.release_unknown;
    const struct rlk_cond_args_release args = {
        .wait = op->wait,
        .hold = hold,
        .marker_ms = mark ? rlk_client_marker_ms(op->client) : 0,
        .over = &over,
    };

    rlk_registry_lock(reg);
    rlk_condition_settle_locked(op->condition, &over);
    rlk_registry_unlock(reg);
    rlk_cond_rpc_release(op->client, &args,
                         rlk_cond_wait_until(op, hold->end, rlk_clock_boot()), answer,
                         fate);
    bool done = answer->outcome == RLK_DONE;
    if (answer->outcome == RLK_UNKNOWN)
        hold->ending.release_unknown = true;
    op->unsure |= answer->outcome == RLK_UNKNOWN;
    op->asked |= done || answer->outcome == RLK_UNKNOWN ||
                 (answer->outcome == RLK_REFUSED && answer->sent != 0);
    rlk_registry_lock(reg);
    rlk_condition_settled_locked(op->condition, &over, done);
    rlk_registry_unlock(reg);
}

/* Sends it as often as it takes. Returns RLK_COND_WAIT_GOES_ON when it was executed; else
 * a code, as that of a join. */
static int send_script(struct rlk_cond_wait_op *op, struct rlk_hold *hold,
                       struct rlk_answer *answer, struct rlk_fate *fate)
{
    int64_t started = rlk_clock_boot(), pause_ms = 0;
    int late = 0;

    for (;;) {
        send_once(op, hold, answer, fate);
        int64_t now = rlk_clock_boot();
        bool done = answer->outcome == RLK_DONE;
        if (done && fate->what != RLK_LATE)
            return RLK_COND_WAIT_GOES_ON;
        if (answer->outcome == RLK_REFUSED)
            return answer->code;
        int64_t left = rlk_deadline_left(&op->deadline);
        if (now >= hold->end)
            return ESTALE;
        if (left <= 0)
            return ETIMEDOUT;
        if (rlk_cond_wait_interrupted(op))
            return ECANCELED;
        if (op->outage_fails && now - started >= rlk_client_command_timeout(op->client))
            return answer->code != 0 ? answer->code : ENOTCONN;
        if (late++ == 0) /* a connection that was closed while idle, or a clock that
                            stepped: at once */
            continue;
        int64_t until = hold->end;
        if (left != RLK_NEVER && rlk_clock_add(now, left) < until)
            until = now + left;
        rlk_cond_wait_pause(op, &pause_ms, now, until);
    }
}

/* rule: V1 */
/* The script was executed. What it says of the mutex: 0, or ESTALE. */
static int take_answer(struct rlk_cond_wait_op *op, struct rlk_hold *hold,
                       const struct rlk_answer *answer, const struct rlk_fate *fate)
{
    struct rlk_registry *reg = rlk_cond_wait_registry(op);
    int64_t now = rlk_clock_boot(), end = hold->end;
    int rc = rlk_release_end(hold, answer, now + rlk_client_command_timeout(op->client));

    /* rule: T9 */
    if (rc == 0 && answer->fate.what == RLK_NOT_MINE && now >= end)
        rc = ESTALE;
    if (rc == ESTALE)
        return rc;
    rlk_registry_lock(reg);
    rlk_cond_wait_joined_locked(op, fate);
    rlk_registry_unlock(reg);
    return 0;
}

/* The script was not executed, as far as is known: the mutex is given up all the same,
 * and for most codes taken again. */
static int give_up(struct rlk_cond_wait_op *op, struct rlk_hold *hold, int rc)
{
    struct rlk_answer answer;
    int64_t until = rlk_clock_boot() + rlk_client_command_timeout(op->client);
    bool held_again = rc != ESTALE && rc != ECANCELED && rc != ENOTCONN;

    rlk_error_keep(true);
    rlk_rpc_release(op->client, hold, true, until, &answer);
    rlk_error_keep(false);
    if (answer.outcome == RLK_UNKNOWN)
        hold->ending.release_unknown = true;
    if (rlk_release_end(hold, &answer, until) == ESTALE)
        rc = ESTALE;
    if (rc == ETIMEDOUT)
        rc = rlk_cond_wait_time_out(op);
    else
        rlk_cond_wait_end(op, RLK_CONDITION_LEFT);
    return held_again && rc != ESTALE ? rlk_cond_wait_take_mutex(op, rc) : rc;
}

int rlk_cond_wait_release(struct rlk_cond_wait_op *op)
{
    struct rlk_holder *holder = rlk_cond_wait_holder(op);
    struct rlk_answer answer;
    struct rlk_fate fate;

    if (op->client != op->owner ||
        !rlk_cond_rpc_may_release(op->client, op->condition, holder->hold->lock))
        return RLK_COND_WAIT_TWO_STEPS;
    struct rlk_hold *hold = rlk_release_begin(holder, op->args->mutex, rlk_clock_boot());
    if (!hold)
        return RLK_COND_WAIT_TWO_STEPS;
    int rc = send_script(op, hold, &answer, &fate);
    if (rc != RLK_COND_WAIT_GOES_ON)
        return give_up(op, hold, rc);
    if (take_answer(op, hold, &answer, &fate) == ESTALE) {
        rlk_cond_wait_end(op, RLK_CONDITION_LEFT);
        return ESTALE;
    }
    return rc;
}
