/* SPDX-License-Identifier: Apache-2.0 */
/* Giving back, and the lease of what is held: for all lock types. Thread: the holder. */
#include "acquire.h"
#include "trip.h"

#include "error.h"

#include <errno.h>

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
        rlk_hold_lose_locked(hold, "the lease ended", now);
    bool lost = hold->state == RLK_HOLD_LOST;
    rlk_registry_unlock(reg);
    rlk_client_put(client);
    return lost;
}

void rlk_drain(struct rlk_hold *hold)
{
    struct rlk_registry *reg = hold->lock->registry;

    /* the client may have been closed meanwhile: its threads are not to be woken */
    rlk_mutex_lock(&reg->mu);
    rlk_list_remove(&hold->thread_link);
    atomic_fetch_add_explicit(&reg->counters->reentries, hold->reentries,
                              memory_order_relaxed);
    rlk_hold_put_locked(hold);
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

int rlk_release(struct rlk_hold *hold, int64_t now)
{
    struct rlk_lock *lock = hold->lock;
    struct rlk_registry *reg = lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    struct rlk_answer answer;
    int64_t until = now + rlk_client_command_timeout(client);

    rlk_registry_lock(reg);
    if (hold->state != RLK_HOLD_INSIDE) { /* lost since the caller looked */
        rlk_registry_unlock(reg);
        rlk_drain(hold);
        return ESTALE;
    }
    bool mark = hold->unknown;
    rlk_hold_leave_locked(hold);
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
    if (answer.outcome == RLK_DONE && answer.more != 0)
        rlk_trip_go_on(client, lock->kind, lock->name, lock->name_len, answer.more,
                       until);
    int rc = judge_release(hold, &answer);

    rlk_registry_lock(reg);
    RLK_COUNT(client->counters.releases);
    if (rc == ESTALE)
        RLK_COUNT(client->counters.losses);
    lock->releasing = false;
    rlk_lock_promote_locked(lock);
    if (answer.outcome == RLK_DONE || answer.outcome == RLK_REFUSED)
        rlk_hold_put_locked(hold);
    else
        /* past D too: a renewal that is still under way may have raised the TTL */
        rlk_hold_background_locked(hold, rlk_now_boot(),
                                   hold->end + hold->lease_ms * RLK_NS_PER_MS);
    rlk_lock_put_locked(lock);
    rlk_registry_unlock(reg);
    if (rc == 0)
        rlk_error_clear();
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
    rlk_trip_renew(client, hold, lease_ms, until, &answer);
    rlk_registry_lock(reg);
    now = rlk_now_boot();
    if (hold->state == RLK_HOLD_INSIDE && now >= hold->end)
        rlk_hold_lose_locked(hold, "the lease ended", now);
    else if (hold->state == RLK_HOLD_INSIDE && answer.outcome == RLK_DONE &&
             answer.fate.what != RLK_HELD)
        rlk_hold_lose_locked(hold, "the server says that it is not ours any more", now);
    if (hold->state != RLK_HOLD_INSIDE) {
        rc = ESTALE;
    } else if (answer.outcome != RLK_DONE) {
        rc = answer.code;
    } else {
        hold->lease_ms = lease_ms;
        hold->fixed = fixed;
        /* a shorter lease lowers D only: the server's end comes by the release at D (T4)
         */
        hold->end = INT64_MIN;
        rlk_hold_confirm_locked(hold, answer.sent, lease_ms);
        rlk_hold_schedule_locked(hold);
    }
    rlk_registry_unlock(reg);
    if (rc == ESTALE)
        rlk_error_set(rc, "the lease was lost before this call");
    return rc;
}
