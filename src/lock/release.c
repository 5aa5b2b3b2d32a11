/* SPDX-License-Identifier: Apache-2.0 */
/* Gives locks back, for all lock types. Thread: the holder. */
#include "base/probe.h"
#include "client/rpc.h"
#include "lock/acquire.h"
#include "lock/handle.h"
#include "state/handoff.h"
#include "state/readshare.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>

void rlk_release_drain(struct rlk_holder *holder)
{
    struct rlk_registry *reg = holder->hold->lock->registry;

    /* the client may have been closed meanwhile: its threads are not to be woken */
    rlk_sync_mutex_lock(&reg->mu);
    rlk_holder_leave_locked(holder);
    rlk_sync_mutex_unlock(&reg->mu);
    rlk_client_release(RLK_CLIENT_OF(reg));
}

/* rule: T9 */
/* The code of a release, from the last answer. */
static int judge_release(struct rlk_hold *hold, const struct rlk_answer *answer)
{
    if (answer->outcome == RLK_REFUSED)
        return answer->code;
    if (answer->outcome != RLK_DONE || answer->fate.what == RLK_RELEASED)
        return 0;
    /* The server does not record the hold. An earlier attempt whose outcome is unknown
     * may have released it (T9). */
    return hold->ending.release_unknown
               ? 0
               : rlk_error_set(ESTALE, "the server no longer records this hold");
}

/* Releases a RELEASING hold at the server. If that fails, or an ACL refuses it, the
 * watchdog goes on. Consumes the caller's reference. Locks: holds the registry's mu, and
 * drops it meanwhile. */
static int give_back(struct rlk_hold *hold, int64_t until)
{
    struct rlk_lock *lock = hold->lock;
    struct rlk_registry *reg = lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    struct rlk_answer answer;
    bool mark = hold->server.unknown, exclusive = !hold->reading;

    if (exclusive)
        lock->releasing = true;
    lock->refs++;
    rlk_registry_unlock(reg);
    /* a connection that was closed while idle is worth one more try at once; the watchdog
     * deals with any other failure */
    for (int tries = 0; tries < RLK_RELEASE_TRIES; tries++) {
        rlk_rpc_release(client, hold, mark || hold->ending.release_unknown, until,
                        &answer);
        if (answer.outcome == RLK_UNKNOWN)
            hold->ending.release_unknown = true;
        if (answer.outcome == RLK_DONE || answer.outcome == RLK_REFUSED)
            break;
    }
    if (answer.outcome == RLK_DONE)
        rlk_rpc_go_on(client, lock->kind, lock->name, lock->name_len, hold->prefer,
                      answer.more, until);
    int rc = judge_release(hold, &answer);

    rlk_registry_lock(reg);
    if (rc == ESTALE)
        RLK_COUNT(client->counters.losses);
    if (exclusive)
        lock->releasing = false;
    rlk_lock_promote_locked(lock);
    bool denied = answer.outcome == RLK_REFUSED && answer.code == EACCES;
    if (answer.outcome == RLK_DONE || (answer.outcome == RLK_REFUSED && !denied))
        rlk_hold_background_end_locked(hold);
    else
        rlk_hold_background_locked(hold, rlk_clock_boot(),
                                   rlk_hold_release_until_locked(hold));
    rlk_lock_unref_locked(lock);
    return rc;
}

/* rule: H7 */
/* The thread inside asks the server who else wants the lock (H7). The request is a
 * renewal, too. Locks: holds the registry's mu, and drops it meanwhile. */
static void ask_who_waits(struct rlk_hold *hold, int64_t until)
{
    struct rlk_registry *reg = hold->lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    struct rlk_answer answer;

    long lease_ms = hold->lease_ms;
    struct rlk_script_args_renew with = { .tell = true,
                                          .looks = true,
                                          .tokens = hold->tokens.ask,
                                          .mark = rlk_hold_mark(hold) };
    /* Keeps time for an unlock without an answer: a thread that unlocks before the end
     * loses nothing. */
    int64_t now = rlk_clock_boot();
    int64_t half = now + (hold->end - now) / 2;
    if (until > half)
        until = half;
    rlk_registry_unlock(reg);
    rlk_rpc_renew(client, hold, lease_ms, with, until, &answer);
    rlk_registry_lock(reg);
    now = rlk_clock_boot();
    hold->contention.ask = false;
    if (rlk_hold_is_live(hold) && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now); /* whatever was answered (T6) */
    if (!rlk_hold_is_live(hold) || answer.outcome != RLK_DONE)
        return;
    RLK_COUNT(client->counters.renewals);
    if (answer.fate.what != RLK_HELD) {
        rlk_hold_lose_locked(hold, RLK_LOSS_NOT_OURS, now);
        return;
    }
    /* rule: P12 */
    if (!rlk_confirm_is_on(&client->config.wait)) /* no replica was asked */
        rlk_hold_confirm_locked(hold, answer.sent, answer.fate.remaining_ms);
    rlk_handoff_tokens_locked(hold, &answer.fate, with.tokens);
    rlk_handoff_answered_locked(hold, answer.sent, answer.flags);
    rlk_hold_schedule_locked(hold);
}

int rlk_release(struct rlk_holder *holder, const struct rlk_handle *handle, int64_t now)
{
    struct rlk_hold *hold = holder->hold;
    struct rlk_lock *lock = hold->lock;
    struct rlk_registry *reg = lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    int64_t until = now + rlk_client_command_timeout(client);
    struct rlk_thread *thread = holder->owner;
    struct rlk_handoff bound = { 0 };

    if (handle) { /* read now: another thread may destroy the handle as soon as this one
                     has left */
        bound = rlk_handle_handoff(handle, client);
        if (lock->kind != RLK_KIND_RWLOCK && (!thread->fast || thread->fast == holder))
            memcpy(thread->fast_head, handle, RLK_HEAD_SIZE);
    }
    rlk_registry_lock(reg);
    rlk_fastpath_close_locked(hold);
    if (!rlk_list_empty(&lock->queue->waiters))
        now = rlk_clock_boot(); /* the thread may have waited for the registry's mutex
                                   (H4) */
    if (rlk_hold_is_live(hold) && now < hold->end && !hold->reading &&
        rlk_handoff_asks_locked(hold, bound, now)) {
        ask_who_waits(hold, until);
        now = rlk_clock_boot();
    }
    if (rlk_hold_is_live(hold) && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    if (!rlk_hold_is_live(hold)) { /* the hold was lost since the caller looked */
        rlk_registry_unlock(reg);
        rlk_release_drain(holder);
        return ESTALE;
    }
    RLK_COUNT(client->counters.releases);
    RLK_PROBE2(lock_released, RLK_PROBE_TEXT(lock->name),
               RLK_PROBE_US(now - holder->since));
    rlk_holder_end_section_locked(holder, now);
    bool stays = hold->reading ? rlk_readshare_unlock_locked(holder, bound, now)
                               : rlk_handoff_unlock_locked(holder, bound, now);
    if (!stays)
        rlk_holder_leave_locked(holder);
    int rc = 0;
    if (!stays && rlk_hold_unused_locked(hold)) { /* otherwise other threads go on with
                                                     it */
        rlk_hold_leave_locked(hold);
        rc = give_back(hold, until);
    }
    rlk_registry_unlock(reg);
    if (rc == 0)
        rlk_error_clear();
    return rc;
}

void rlk_release_left(struct rlk_hold *hold, int64_t until)
{
    /* rule: H2 */
    rlk_hold_count_returning_locked(hold);
    give_back(hold, until);
}

int rlk_release_retained(struct rlk_holder *holder, const struct rlk_handle *handle,
                         int64_t now)
{
    struct rlock_client *client = RLK_CLIENT_OF(holder->hold->lock->registry);
    if (rlk_client_keep(client) != 0) { /* the client was closed just now, which lost the
                                           hold */
        rlk_release_drain(holder);
        return ESTALE;
    }
    int rc = rlk_release(holder, handle, now);
    rlk_client_put(client);
    return rc;
}
