/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread takes what its process has of a lock, and nobody is in, instead of
 * asking for it: what decides is handoff.c; here is what has to be said to the server on
 * the way. Thread: any. Locks: hold the registry's mu, and drop it where they say so. */
#include "acquire_impl.h"

#include "error.h"

int64_t rlk_attempt_until(const struct rlk_wish *wish, int64_t now)
{
    int64_t left = wish->try_once ? RLK_NEVER : rlk_deadline_left(&wish->deadline);
    int64_t timeout = rlk_client_command_timeout(wish->client);

    if (left >= timeout)
        return now + timeout;
    return now + (left > 0 ? left : 0) + RLK_ATTEMPT_FLOOR_MS * RLK_NS_PER_MS;
}

bool rlk_wish_keeps(const struct rlk_wish *wish)
{
    return wish->handoff.retain_ns > 0 && wish->handoff.hears &&
           (wish->kind == RLK_KIND_MUTEX || wish->kind == RLK_KIND_RWLOCK) &&
           !wish->fixed;
}

void rlk_waiter_init(struct rlk_waiter *waiter, const struct rlk_wish *wish, int64_t now)
{
    *waiter = (struct rlk_waiter){
        .thread = wish->thread,
        .self = rlk_thread_self(),
        .letter = rlk_wish_letter(wish),
        .robust = wish->robust,
        .grant_ms = rlk_wish_grant_ms(wish),
        .lease_ms = wish->lease_ms,
        .since = now,
        .passed_on = !wish->fixed && wish->handoff.ns > 0 && wish->handoff.count > 0,
        .retakes = !wish->fixed,
    };
    rlk_list_init(&waiter->link);
}

/* rule: K11 */
/* The calling thread is inside what the server takes for unused: it is told first (K11).
 * False: the hold was given back, or is lost. */
static bool mark_anew(const struct rlk_wish *wish, struct rlk_hold *hold)
{
    struct rlk_registry *reg = &wish->client->registry;
    struct rlk_part *part =
        RLK_CONTAINER_OF(rlk_list_first(&hold->parts), struct rlk_part, hold_link);
    int64_t started = rlk_now_boot(), until = rlk_attempt_until(wish, started);
    struct rlk_wire_renew with = { .tell = true };
    struct rlk_answer answer;
    long lease_ms = hold->lease_ms;

    hold->mark = hold->mark < 3 ? 3 : hold->mark + 1;
    with.mark = hold->mark;
    hold->cleaned = part->claimed = false;
    rlk_hold_ref_locked(hold);
    rlk_registry_unlock(reg);
    rlk_trip_renew(wish->client, hold, lease_ms, with,
                   until < hold->end ? until : hold->end, &answer);
    rlk_registry_lock(reg);
    int64_t now = rlk_now_boot();
    if (answer.outcome == RLK_DONE)
        rlk_lock_reached_locked(hold->lock, now);
    else if (answer.outcome != RLK_REFUSED)
        rlk_lock_trouble_locked(hold->lock, answer.code, started);
    if (hold->state == RLK_HOLD_INSIDE && now >= hold->end)
        rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    bool inside = hold->state == RLK_HOLD_INSIDE, done = answer.outcome == RLK_DONE;
    if (inside && done && answer.fate.what == RLK_HELD) {
        part->claimed = true;
        rlk_slot_say_locked(hold, RLK_INSIDE);
        part->since = now;
        if (hold->at_risk) /* told to nobody meanwhile */
            rlk_part_news_locked(part, RLK_NEWS_AT_RISK);
        rlk_hold_confirm_locked(hold, answer.sent, answer.fate.remaining_ms);
        rlk_handoff_answered_locked(hold, answer.sent, answer.flags);
        rlk_hold_schedule_locked(hold);
        rlk_hold_put_locked(hold);
        return true;
    }
    if (inside && done)
        rlk_hold_lose_locked(hold, RLK_LOSS_NOT_OURS, now);
    rlk_part_leave_locked(part);
    if (inside && !done) {
        rlk_hold_leave_locked(hold);
        rlk_release_left(hold, until); /* takes over a reference */
    } else {
        rlk_client_release(wish->client); /* as a lost hold's; the caller keeps it */
    }
    rlk_hold_put_locked(hold);
    rlk_error_clear();
    return false;
}

bool rlk_enter_idle(const struct rlk_wish *wish, struct rlk_lock *lock,
                    struct rlk_waiter *waiter)
{
    struct rlk_hold *spent;
    int64_t now = rlk_now_boot();

    rlk_lock_held_locked(lock, now); /* what is lost by now */
    if (wish->reading && rlk_wish_keeps(wish) &&
        rlk_joining_enter_locked(lock, waiter, now))
        return true;
    /* rule: K16 */
    /* once, not again and again: those who read here may be faster each time */
    spent = wish->reading ? NULL : rlk_joining_kept_locked(lock);
    if (spent) {
        spent->no_marker = !spent->unknown;
        rlk_hold_leave_locked(spent);
        rlk_release_left(spent, rlk_attempt_until(wish, now));
        rlk_error_clear();
        now = rlk_now_boot();
    }
    if (rlk_handoff_enter_locked(lock, waiter, wish->handoff, now, &spent))
        return !lock->current->cleaned || mark_anew(wish, lock->current);
    if (spent) {
        rlk_release_left(spent, rlk_attempt_until(wish, now));
        rlk_error_clear(); /* nobody's call, but the watchdog's if it failed */
    }
    return false;
}
