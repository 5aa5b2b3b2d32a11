/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread does with its hold: checks it, extends its lease, makes it a read.
 * Thread: the holder. */
#include "lock/acquire.h"

#include "base/error.h"
#include "client/rpc.h"
#include "lock/handle.h"
#include "state/handoff.h"
#include "state/readshare.h"

#include <errno.h>
#include <string.h>

bool rlk_held_check(struct rlk_hold *hold, int64_t now)
{
    /* rule: S4 */
    if (__builtin_expect(rlk_hold_is_live(hold) && now < hold->end, 1))
        return false;
    struct rlk_registry *reg = hold->lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    /* Keeps the client open, because its threads are to be woken. A closed client holds
     * nothing any more. */
    if (rlk_client_keep(client) != 0)
        return true;
    rlk_registry_lock(reg);
    if (rlk_hold_is_live(hold) && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    bool lost = hold->state == RLK_HOLD_LOST;
    rlk_registry_unlock(reg);
    rlk_client_put(client);
    return lost;
}

void rlk_held_consistent(struct rlk_hold *hold)
{
    struct rlk_registry *reg = hold->lock->registry;

    /* The hold may be lost just now, and its release reads the mark. Wakes no thread, as
     * in rlk_release_drain. */
    rlk_sync_mutex_lock(&reg->mu);
    hold->robust.owner_died = false;
    rlk_sync_mutex_unlock(&reg->mu);
}

int rlk_held_extend(struct rlk_hold *hold, long lease_ms, bool fixed)
{
    struct rlk_registry *reg = hold->lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    struct rlk_answer answer;
    int64_t now = rlk_clock_boot();
    int64_t until = now + rlk_client_command_timeout(client);
    int rc = 0;

    /* rule: T4, W5 */
    if (until > hold->end)
        until = hold->end;
    rlk_rpc_renew(client, hold, lease_ms,
                  (struct rlk_script_args_renew){ .mark = rlk_hold_mark(hold) }, until,
                  &answer);
    rlk_registry_lock(reg);
    rlk_fastpath_close_locked(hold); /* the hold may not be passed on any more */
    now = rlk_clock_boot();
    if (rlk_hold_is_live(hold) && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    else if (rlk_hold_is_live(hold) && answer.outcome == RLK_DONE &&
             answer.fate.what != RLK_HELD)
        rlk_hold_lose_locked(hold, RLK_LOSS_NOT_OURS, now);
    if (!rlk_hold_is_live(hold)) {
        rc = ESTALE;
    } else if (answer.outcome != RLK_DONE) {
        rc = answer.code;
    } else {
        bool alone = hold->holders.next == hold->holders.prev;
        hold->fixed = fixed;
        if (alone) {
            /* a shorter lease lowers D only; at the server the hold ends by the release
             * at D (T4) */
            hold->lease_ms = (int)lease_ms;
            rlk_hold_relet_locked(hold, answer.sent, lease_ms);
        } else { /* the lease is also that of the other threads */
            if (lease_ms > hold->lease_ms)
                hold->lease_ms = (int)lease_ms;
            rlk_hold_confirm_locked(hold, answer.sent, lease_ms);
        }
        rlk_hold_schedule_locked(hold);
    }
    rlk_registry_unlock(reg);
    if (rc == ESTALE)
        rlk_error_set(rc, "the lease was lost before this call");
    return rc;
}

int rlk_held_unshare(struct rlk_holder *holder, long lease_ms, bool *ret_alone)
{
    struct rlk_hold *hold = holder->hold;
    struct rlk_lock *lock = hold->lock;
    struct rlk_registry *reg = lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    struct rlk_answer answer;
    int64_t now = rlk_clock_boot();
    int64_t until = now + rlk_client_command_timeout(client);
    int rc = 0;

    if (until > hold->end)
        until = hold->end;
    rlk_registry_lock(reg);
    *ret_alone = hold->read.joins == 0 && hold->holders.next == hold->holders.prev;
    if (*ret_alone) {
        if (lock->queue->shared == hold)
            lock->queue->shared = NULL; /* no thread joins it any more */
        rlk_registry_unlock(reg);
        return 0;
    }
    char letter = rlk_kinds[lock->kind].read_letter;
    if (holder->fencing)
        letter = (char)(letter - 'a' + 'A');
    struct rlk_hold *own =
        rlk_hold_new_locked(lock, holder->owner, letter, hold->id.grant_ms);
    if (!own) {
        rlk_registry_unlock(reg);
        return ENOMEM;
    }
    rlk_hold_try_locked(own);
    own->lease_ms = (int)lease_ms;
    own->fixed = own->reading = true;
    /* The thread reads already, so it overtakes nobody. Its place among the readers lasts
     * as long as the shared hold. */
    own->prefer = RLOCK_RWLOCK_PREFER_READER_NP;
    rlk_intent_note_locked(own);
    rlk_registry_unlock(reg);
    struct rlk_script_args_acquire args = {
        .hold = own, .share = hold, .lease_ms = lease_ms, .try_once = true, .beside = true
    };
    for (int late = 0; late <= RLK_LATE_TRIES_MAX; late++) {
        rlk_rpc_acquire(client, &args, until, &answer);
        if (answer.outcome != RLK_DONE || answer.fate.what != RLK_LATE)
            break;
    }
    rlk_registry_lock(reg);
    now = rlk_clock_boot();
    bool held = answer.outcome == RLK_DONE && answer.fate.what == RLK_HELD;
    if (answer.outcome == RLK_DONE && rlk_cursor_set(answer.more))
        rlk_queue_go_on_locked(lock, answer.more);
    if (rlk_hold_is_live(hold) && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    else if (rlk_hold_is_live(hold) && answer.outcome == RLK_DONE &&
             answer.fate.what == RLK_GONE)
        rlk_hold_lose_locked(hold, RLK_LOSS_NOT_OURS, now);
    if (rlk_hold_is_live(hold) && held) {
        rlk_hold_held_locked(own, answer.sent, answer.fate.remaining_ms,
                             answer.fate.token);
        struct rlk_recursion levels = holder->levels;
        memset(&holder->levels, 0, sizeof(holder->levels));
        rlk_hold_enter_locked(own, holder->owner, now);
        if (answer.moves != rlk_route_moves(&client->route))
            rlk_hold_doubt_locked(own, now);
        own->own.levels = levels;
        own->own.since = holder->since;
        rlk_holder_leave_locked(holder);
        rlk_hold_end_unused_locked(hold, now);
        rlk_hold_put_locked(own);
    } else {
        rc = !rlk_hold_is_live(hold) ? ESTALE : answer.code != 0 ? answer.code : ENOTCONN;
        /* the request may have reached the server all the same */
        rlk_hold_give_up_locked(
            own, now, now + (rlk_client_marker_ms(client) + lease_ms) * RLK_NS_PER_MS);
    }
    rlk_registry_unlock(reg);
    return rc;
}

int rlk_held_downgrade(struct rlk_holder *holder)
{
    struct rlk_hold *hold = holder->hold;
    struct rlk_lock *lock = hold->lock;
    struct rlk_registry *reg = lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    struct rlk_answer answer;
    int64_t now = rlk_clock_boot();
    int64_t until = now + rlk_client_command_timeout(client);
    int rc = 0;

    /* rule: W18 */
    rlk_registry_lock(reg);
    if (!rlk_hold_is_live(hold)) {
        rlk_registry_unlock(reg);
        return ESTALE;
    }
    rlk_hold_downgrade_locked(hold);
    lock->releasing = true;
    long lease_ms =
        hold->fixed ? (long)((hold->end - now) / RLK_NS_PER_MS) + 2 : hold->lease_ms;
    if (until > hold->end)
        until = hold->end;
    rlk_registry_unlock(reg);
    for (int tries = 0; tries < RLK_RELEASE_TRIES; tries++) {
        rlk_rpc_downgrade(client, hold, lease_ms, until, &answer);
        if (answer.outcome == RLK_DONE || answer.outcome == RLK_REFUSED)
            break;
    }
    if (answer.outcome == RLK_DONE)
        rlk_rpc_go_on(client, lock->kind, lock->name, lock->name_len, hold->prefer,
                      answer.more, until);
    rlk_registry_lock(reg);
    now = rlk_clock_boot();
    lock->releasing = false;
    if (rlk_hold_is_live(hold) && answer.outcome == RLK_DONE &&
        answer.fate.what != RLK_HELD)
        rlk_hold_lose_locked(hold, RLK_LOSS_NOT_OURS, now);
    else if (rlk_hold_is_live(hold) && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    if (!rlk_hold_is_live(hold)) {
        rc = ESTALE;
    } else if (answer.outcome == RLK_DONE) {
        hold->server.downgrade = false;
        if (!hold->fixed && !rlk_confirm_is_on(&client->config.wait)) /* rule: P12 */
            rlk_hold_confirm_locked(hold, answer.sent, answer.fate.remaining_ms);
    } else {
        if (answer.outcome == RLK_REFUSED)
            rc = answer.code;
        hold->renew_at = now; /* the watchdog goes on trying */
    }
    if (rlk_hold_is_live(hold))
        rlk_hold_schedule_locked(hold);
    rlk_lock_promote_locked(lock);
    rlk_registry_unlock(reg);
    if (rc == 0)
        rlk_error_clear();
    return rc;
}
