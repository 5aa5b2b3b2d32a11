/* SPDX-License-Identifier: Apache-2.0 */
/* Giving back, and the lease of what is held: for all lock types. Thread: the holder. */
#include "acquire.h"
#include "handle.h"
#include "handoff.h"
#include "joining.h"
#include "probe.h"
#include "trip.h"

#include "error.h"

#include <errno.h>
#include <string.h>

enum { RELEASE_TRIES = 2 };

bool rlk_hold_check(struct rlk_hold *hold, int64_t now)
{
    if (__builtin_expect(hold->state == RLK_HOLD_INSIDE && now < hold->end, 1))
        return false;
    struct rlk_registry *reg = hold->lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    /* kept open, because the threads are to be woken; a closed one holds nothing any more
     */
    if (rlk_client_keep(client) != 0)
        return true;
    rlk_registry_lock(reg);
    if (hold->state == RLK_HOLD_INSIDE && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    bool lost = hold->state == RLK_HOLD_LOST;
    rlk_registry_unlock(reg);
    rlk_client_put(client);
    return lost;
}

void rlk_hold_consistent(struct rlk_hold *hold)
{
    struct rlk_registry *reg = hold->lock->registry;

    /* it may be lost just now, and its release look at it; and as rlk_drain */
    rlk_mutex_lock(&reg->mu);
    hold->owner_died = false;
    rlk_mutex_unlock(&reg->mu);
}

void rlk_drain(struct rlk_part *part)
{
    struct rlk_registry *reg = part->hold->lock->registry;

    /* the client may have been closed meanwhile: its threads are not to be woken */
    rlk_mutex_lock(&reg->mu);
    rlk_part_leave_locked(part);
    rlk_mutex_unlock(&reg->mu);
    rlk_client_release(RLK_CLIENT_OF(reg));
}

/* The release's last word. */
static int judge_release(struct rlk_hold *hold, const struct rlk_answer *answer)
{
    if (answer->outcome == RLK_REFUSED)
        return answer->code;
    if (answer->outcome != RLK_DONE || answer->fate.what == RLK_RELEASED)
        return 0;
    /* not ours: after a try of unknown outcome it is that try which is seen (T9) */
    return hold->release_unknown
               ? 0
               : rlk_error_set(ESTALE,
                               "the server says that the lock was not ours any more");
}

/* A hold that is GOING is released at the server; what cannot be told it now is the
 * watchdog's. Consumes the caller's reference. Locks: holds the registry's mu, and drops
 * it meanwhile. */
static int give_back(struct rlk_hold *hold, int64_t until)
{
    struct rlk_lock *lock = hold->lock;
    struct rlk_registry *reg = lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    struct rlk_answer answer;
    bool mark = hold->unknown, exclusive = !hold->reading;

    if (exclusive)
        lock->releasing = true;
    lock->refs++;
    rlk_registry_unlock(reg);
    /* a connection that was closed while idle is worth one more try at once; what else is
     * wrong is the watchdog's */
    for (int tries = 0; tries < RELEASE_TRIES; tries++) {
        rlk_trip_release(client, hold, mark || hold->release_unknown, until, &answer);
        if (answer.outcome == RLK_UNKNOWN)
            hold->release_unknown = true;
        if (answer.outcome == RLK_DONE || answer.outcome == RLK_REFUSED)
            break;
    }
    if (answer.outcome == RLK_DONE)
        rlk_trip_go_on(client, lock->kind, lock->name, lock->name_len, hold->prefer,
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
        rlk_hold_background_locked(hold, rlk_now_boot(),
                                   rlk_hold_release_until_locked(hold));
    rlk_lock_unref_locked(lock);
    return rc;
}

/* The thread inside asks who else wants the lock (H7), which is a renewal, too. Locks:
 * holds the registry's mu, and drops it meanwhile. */
static void ask_who_waits(struct rlk_hold *hold, int64_t until)
{
    struct rlk_registry *reg = hold->lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    struct rlk_answer answer;

    long lease_ms = hold->lease_ms;
    struct rlk_wire_renew with = { .tell = true,
                                   .tokens = hold->asks_tokens,
                                   .mark = rlk_hold_mark(hold) };
    /* in time to give it back without having asked: who unlocks before the end loses
     * nothing */
    int64_t now = rlk_now_boot();
    int64_t half = now + (hold->end - now) / 2;
    if (until > half)
        until = half;
    rlk_registry_unlock(reg);
    rlk_trip_renew(client, hold, lease_ms, with, until, &answer);
    rlk_registry_lock(reg);
    now = rlk_now_boot();
    hold->asks_others = false;
    if (hold->state == RLK_HOLD_INSIDE && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now); /* whatever was answered (T6) */
    if (hold->state != RLK_HOLD_INSIDE || answer.outcome != RLK_DONE)
        return;
    RLK_COUNT(client->counters.renewals);
    if (answer.fate.what != RLK_HELD) {
        rlk_hold_lose_locked(hold, RLK_LOSS_NOT_OURS, now);
        return;
    }
    rlk_hold_confirm_locked(hold, answer.sent, answer.fate.remaining_ms);
    rlk_handoff_tokens_locked(hold, &answer.fate, with.tokens);
    rlk_handoff_answered_locked(hold, answer.sent, answer.flags);
    rlk_hold_schedule_locked(hold);
}

int rlk_release(struct rlk_part *part, const struct rlk_handle *handle, int64_t now)
{
    struct rlk_hold *hold = part->hold;
    struct rlk_lock *lock = hold->lock;
    struct rlk_registry *reg = lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    int64_t until = now + rlk_client_command_timeout(client);
    struct rlk_thread *thread = part->owner;
    struct rlk_handoff bound = { 0 };

    if (handle) { /* which another thread may destroy as soon as this one has left */
        bound = rlk_handle_handoff(handle, client);
        if (lock->kind != RLK_KIND_RWLOCK && (!thread->fast || thread->fast == part))
            memcpy(thread->fast_head, handle, RLK_HEAD_SIZE);
    }
    rlk_registry_lock(reg);
    rlk_gate_close_locked(hold);
    if (!rlk_list_empty(&lock->queue->waiters))
        now = rlk_now_boot(); /* the registry's mutex may have been waited for (H4) */
    if (hold->state == RLK_HOLD_INSIDE && now < hold->end && !hold->reading &&
        rlk_handoff_asks_locked(hold, bound, now)) {
        ask_who_waits(hold, until);
        now = rlk_now_boot();
    }
    if (hold->state == RLK_HOLD_INSIDE && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    if (hold->state != RLK_HOLD_INSIDE) { /* lost since the caller looked */
        rlk_registry_unlock(reg);
        rlk_drain(part);
        return ESTALE;
    }
    RLK_COUNT(client->counters.releases);
    RLK_PROBE2(lock_released, RLK_PROBE_TEXT(lock->name),
               RLK_PROBE_US(now - part->since));
    rlk_part_end_section_locked(part, now);
    bool stays = hold->reading ? rlk_joining_unlock_locked(part, bound, now)
                               : rlk_handoff_unlock_locked(part, bound, now);
    if (!stays)
        rlk_part_leave_locked(part);
    int rc = 0;
    if (!stays && rlk_hold_unused_locked(hold)) { /* or others go on */
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
    rlk_hold_going_locked(hold);
    give_back(hold, until);
}

int rlk_release_kept(struct rlk_part *part, const struct rlk_handle *handle, int64_t now)
{
    struct rlock_client *client = RLK_CLIENT_OF(part->hold->lock->registry);
    if (rlk_client_keep(client) != 0) { /* closed, so the hold was lost in this moment */
        rlk_drain(part);
        return ESTALE;
    }
    int rc = rlk_release(part, handle, now);
    rlk_client_put(client);
    return rc;
}

int rlk_extend(struct rlk_hold *hold, long lease_ms, bool fixed)
{
    struct rlk_registry *reg = hold->lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    struct rlk_answer answer;
    int64_t now = rlk_now_boot();
    int64_t until = now + rlk_client_command_timeout(client);
    int rc = 0;

    if (until > hold->end)
        until = hold->end;
    rlk_trip_renew(client, hold, lease_ms,
                   (struct rlk_wire_renew){ .mark = rlk_hold_mark(hold) }, until,
                   &answer);
    rlk_registry_lock(reg);
    rlk_gate_close_locked(hold); /* it may not be passed on any more */
    now = rlk_now_boot();
    if (hold->state == RLK_HOLD_INSIDE && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    else if (hold->state == RLK_HOLD_INSIDE && answer.outcome == RLK_DONE &&
             answer.fate.what != RLK_HELD)
        rlk_hold_lose_locked(hold, RLK_LOSS_NOT_OURS, now);
    if (hold->state != RLK_HOLD_INSIDE) {
        rc = ESTALE;
    } else if (answer.outcome != RLK_DONE) {
        rc = answer.code;
    } else {
        bool alone = hold->parts.next == hold->parts.prev;
        hold->fixed = fixed;
        if (alone) {
            /* a shorter lease lowers D only: the server's end comes by the release at D
             * (T4) */
            hold->lease_ms = (int)lease_ms;
            rlk_hold_relet_locked(hold, answer.sent, lease_ms);
        } else { /* it is the others' lease, too */
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

int rlk_unshare(struct rlk_part *part, long lease_ms, bool *ret_alone)
{
    struct rlk_hold *hold = part->hold;
    struct rlk_lock *lock = hold->lock;
    struct rlk_registry *reg = lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    struct rlk_answer answer;
    int64_t now = rlk_now_boot();
    int64_t until = now + rlk_client_command_timeout(client);
    int rc = 0;

    if (until > hold->end)
        until = hold->end;
    rlk_registry_lock(reg);
    *ret_alone = hold->joins == 0 && hold->parts.next == hold->parts.prev;
    if (*ret_alone) {
        if (lock->queue->shared == hold)
            lock->queue->shared = NULL; /* nobody joins it any more */
        rlk_registry_unlock(reg);
        return 0;
    }
    char letter = rlk_kinds[lock->kind].read_letter;
    if (part->fencing)
        letter = (char)(letter - 'a' + 'A');
    struct rlk_hold *own =
        rlk_hold_new_locked(lock, part->owner, letter, hold->id.grant_ms);
    if (!own) {
        rlk_registry_unlock(reg);
        return ENOMEM;
    }
    rlk_hold_try_locked(own);
    own->lease_ms = (int)lease_ms;
    own->fixed = own->reading = true;
    /* it reads already, so it passes nobody; while the shared hold lasts, so does its
     * place in the reading */
    own->prefer = RLOCK_RWLOCK_PREFER_READER_NP;
    rlk_slot_note_locked(own);
    rlk_registry_unlock(reg);
    for (int late = 0; late <= RLK_LATE_TRIES_MAX; late++) {
        rlk_trip_acquire(client,
                         (struct rlk_wire_acquire){ .hold = own,
                                                    .share = hold,
                                                    .lease_ms = lease_ms,
                                                    .try_once = true,
                                                    .beside = true },
                         until, &answer);
        if (answer.outcome != RLK_DONE || answer.fate.what != RLK_LATE)
            break;
    }
    rlk_registry_lock(reg);
    now = rlk_now_boot();
    bool held = answer.outcome == RLK_DONE && answer.fate.what == RLK_HELD;
    if (answer.outcome == RLK_DONE && rlk_cursor_set(answer.more))
        rlk_lock_go_on_locked(lock, answer.more);
    if (hold->state == RLK_HOLD_INSIDE && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    else if (hold->state == RLK_HOLD_INSIDE && answer.outcome == RLK_DONE &&
             answer.fate.what == RLK_GONE)
        rlk_hold_lose_locked(hold, RLK_LOSS_NOT_OURS, now);
    if (hold->state == RLK_HOLD_INSIDE && held) {
        rlk_hold_held_locked(own, answer.sent, answer.fate.remaining_ms,
                             answer.fate.token);
        struct rlk_levels levels = part->levels;
        memset(&part->levels, 0, sizeof(part->levels));
        rlk_hold_enter_locked(own, part->owner, now);
        own->own.levels = levels;
        own->own.since = part->since;
        rlk_part_leave_locked(part);
        rlk_hold_end_unused_locked(hold, now);
        rlk_hold_put_locked(own);
    } else {
        rc = hold->state != RLK_HOLD_INSIDE ? ESTALE
             : answer.code != 0             ? answer.code
                                            : ENOTCONN;
        /* it may have come to the server all the same */
        rlk_hold_give_up_locked(
            own, now, now + (rlk_client_marker_ms(client) + lease_ms) * RLK_NS_PER_MS);
    }
    rlk_registry_unlock(reg);
    return rc;
}

int rlk_downgrade(struct rlk_part *part)
{
    struct rlk_hold *hold = part->hold;
    struct rlk_lock *lock = hold->lock;
    struct rlk_registry *reg = lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    struct rlk_answer answer;
    int64_t now = rlk_now_boot();
    int64_t until = now + rlk_client_command_timeout(client);
    int rc = 0;

    rlk_registry_lock(reg);
    if (hold->state != RLK_HOLD_INSIDE) {
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
    for (int tries = 0; tries < RELEASE_TRIES; tries++) {
        rlk_trip_downgrade(client, hold, lease_ms, until, &answer);
        if (answer.outcome == RLK_DONE || answer.outcome == RLK_REFUSED)
            break;
    }
    if (answer.outcome == RLK_DONE)
        rlk_trip_go_on(client, lock->kind, lock->name, lock->name_len, hold->prefer,
                       answer.more, until);
    rlk_registry_lock(reg);
    now = rlk_now_boot();
    lock->releasing = false;
    if (hold->state == RLK_HOLD_INSIDE && answer.outcome == RLK_DONE &&
        answer.fate.what != RLK_HELD)
        rlk_hold_lose_locked(hold, RLK_LOSS_NOT_OURS, now);
    else if (hold->state == RLK_HOLD_INSIDE && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    if (hold->state != RLK_HOLD_INSIDE) {
        rc = ESTALE;
    } else if (answer.outcome == RLK_DONE) {
        hold->downgrading = false;
        if (!hold->fixed)
            rlk_hold_confirm_locked(hold, answer.sent, answer.fate.remaining_ms);
    } else {
        if (answer.outcome == RLK_REFUSED)
            rc = answer.code;
        hold->renew_at = now; /* the watchdog goes on trying */
    }
    if (hold->state == RLK_HOLD_INSIDE)
        rlk_hold_schedule_locked(hold);
    rlk_lock_promote_locked(lock);
    rlk_registry_unlock(reg);
    if (rc == 0)
        rlk_error_clear();
    return rc;
}
