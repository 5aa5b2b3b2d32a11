/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread enters a hold that its process has, instead of asking the server for
 * the lock. handoff.c and readshare.c decide; this file sends what the server has to know
 * on the way. Thread: any. Locks: hold the registry's mu, and drop it where they ask the
 * server. */
#include "lock/acquire_impl.h"

#include "base/error.h"

/* rule: K11 */
/* The calling thread has entered a hold that the server believes empty: tells the server
 * before the section begins (K11). False: the hold was given back, or is lost. */
static bool mark_anew(const struct rlk_acquire_op *op, struct rlk_hold *hold)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_registry *reg = &params->client->registry;
    struct rlk_holder *holder =
        RLK_CONTAINER_OF(rlk_list_first(&hold->holders), struct rlk_holder, hold_link);
    int64_t started = rlk_clock_boot(), until = rlk_acquire_until(op, started);
    struct rlk_script_args_renew with = { .tell = true };
    struct rlk_answer answer;
    long lease_ms = hold->lease_ms;

    hold->exclusive.mark = hold->exclusive.mark < 3 ? 3 : hold->exclusive.mark + 1;
    with.mark = hold->exclusive.mark;
    hold->robust.mark_cleared = holder->claimed = false;
    rlk_hold_ref_locked(hold);
    rlk_registry_unlock(reg);
    rlk_rpc_renew(params->client, hold, lease_ms, with,
                  until < hold->end ? until : hold->end, &answer);
    rlk_registry_lock(reg);
    int64_t now = rlk_clock_boot();
    if (answer.outcome == RLK_DONE)
        rlk_queue_reached_locked(hold->lock, now);
    else if (answer.outcome != RLK_REFUSED)
        rlk_queue_trouble_locked(hold->lock, answer.code, started);
    if (rlk_hold_is_live(hold) && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    bool inside = rlk_hold_is_live(hold), done = answer.outcome == RLK_DONE;
    if (inside && done && answer.fate.what == RLK_HELD) {
        holder->claimed = true;
        rlk_intent_say_locked(hold, RLK_INSIDE);
        holder->since = now;
        if (hold->lease.at_risk) /* no thread was inside to get this event */
            rlk_holder_news_locked(holder, RLK_NEWS_AT_RISK);
        rlk_hold_confirm_locked(hold, answer.sent, answer.fate.remaining_ms);
        rlk_handoff_answered_locked(hold, answer.sent, answer.flags);
        rlk_hold_schedule_locked(hold);
        rlk_hold_put_locked(hold);
        return true;
    }
    if (inside && done)
        rlk_hold_lose_locked(hold, RLK_LOSS_NOT_OURS, now);
    rlk_holder_leave_locked(holder);
    if (inside && !done) {
        rlk_hold_leave_locked(hold);
        rlk_release_left(hold, until); /* takes over a reference */
    } else {
        rlk_client_release(params->client); /* gives back the lost hold's reference; the
                                               caller has another */
    }
    rlk_hold_put_locked(hold);
    rlk_error_clear();
    return false;
}

bool rlk_acquire_enter_idle(struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_lock *lock = op->lock;
    struct rlk_waiter *waiter = &op->waiter;
    struct rlk_hold *spent;

    if (!lock->current && rlk_list_empty(&lock->queue->reads))
        return false; /* the process has no hold */
    int64_t now = rlk_clock_boot();
    rlk_lock_held_locked(lock, now); /* makes holds LOST whose lease is over */
    if (params->reading && rlk_acquire_params_retains(params) &&
        rlk_readshare_enter_locked(lock, waiter, now))
        return true;
    /* rule: K16 */
    /* Once, without a loop: threads that read here may retain the lock again, faster than
     * this thread comes. */
    spent = params->reading ? NULL : rlk_readshare_retained_locked(lock);
    if (spent) {
        rlk_hold_leave_unused_locked(spent);
        rlk_release_left(spent, rlk_acquire_until(op, now));
        rlk_error_clear();
        now = rlk_clock_boot();
    }
    if (rlk_handoff_enter_locked(lock, waiter, params->handoff, now, &spent))
        return !lock->current->robust.mark_cleared || mark_anew(op, lock->current);
    if (spent) {
        rlk_release_left(spent, rlk_acquire_until(op, now));
        rlk_error_clear(); /* this release is no part of the call; if it failed, the
                              watchdog repeats it */
    }
    return false;
}
