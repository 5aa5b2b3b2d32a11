/* SPDX-License-Identifier: Apache-2.0 */
/* See handoff.h. Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "state/handoff.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/probe.h"
#include "state/fastpath.h"
#include "state/readshare.h"
#include "state/registry.h"

#include <assert.h>

enum {
    KEPT_MAX = 1024 /* of a client: each costs a request for each asking */
};

#define STARVED_NS RLK_NS_PER_MS /* from then on a waiter is handed the lock (H4) */

/* ---- the budget */

static bool is_on(struct rlk_handoff bound)
{
    return bound.ns > 0 && bound.count > 0;
}

static bool is_of_rwlock(const struct rlk_hold *hold)
{
    return hold->lock->kind == RLK_KIND_RWLOCK;
}

static bool is_spent(const struct rlk_hold *hold, struct rlk_handoff bound, int64_t now)
{
    /* rule: H6 */
    return now - hold->budget_from >= bound.ns || hold->sections >= bound.count;
}

/* rule: H6, H7, W25 */
/* Whether another section may begin without the server: while nobody else wants the lock,
 * as it would tell; else within the budget. In the second half of one that nobody is
 * known to need, the server is asked, so that the answer may be there by its end (H6,
 * H7).
 */
static bool may_go_on(struct rlk_hold *hold, struct rlk_handoff bound, int64_t now)
{
    struct rlk_handoff half = { .ns = bound.ns / 2, .count = (bound.count + 1) / 2 };

    if (!hold->others && hold->tells)
        return true;
    if (is_of_rwlock(hold)) /* not past the server (W25) */
        return false;
    if (is_spent(hold, bound, now))
        return false;
    if (!hold->others && !hold->asks_others && is_spent(hold, half, now)) {
        hold->asks_others = true;
        rlk_hold_schedule_locked(hold);
    }
    return true;
}

/* ---- passing on */

static struct rlk_waiter *first_waiter(struct rlk_lock *lock)
{
    struct rlk_list *l = rlk_list_first(&lock->queue->waiters);
    return l ? RLK_CONTAINER_OF(l, struct rlk_waiter, link) : NULL;
}

bool rlk_handoff_suits(const struct rlk_hold *hold, const struct rlk_waiter *waiter)
{
    return hold->id.letter == waiter->letter && hold->id.grant_ms == waiter->grant_ms &&
           rlk_id_robust(&hold->id) == waiter->robust;
}

bool rlk_handoff_has_terms_of(const struct rlk_hold *hold,
                              const struct rlk_waiter *waiter)
{
    return waiter->lease_ms == hold->lease_ms && rlk_handoff_suits(hold, waiter);
}

/* The same for one that it does not ask for, but finds taken. */
static bool suits(const struct rlk_hold *hold, const struct rlk_waiter *waiter)
{
    return waiter->passed_on && rlk_handoff_has_terms_of(hold, waiter);
}

void rlk_handoff_unasked_locked(struct rlk_hold *hold, int64_t now)
{
    bool first = hold->pass->entered_at <= hold->proof_sent;

    hold->pass->entered_at = now;
    if (first)
        rlk_hold_schedule_locked(hold);
}

/* One does. */
static void begin_section(struct rlk_hold *hold, int64_t now)
{
    hold->sections++;
    if (rlk_hold_is_fenced(hold)) {
        rlk_handoff_ready_token(hold);
        hold->token++;
    }
    rlk_handoff_unasked_locked(hold, now);
    RLK_COUNT(hold->lock->registry->counters->local_handovers);
    RLK_PROBE1(handed_over, RLK_PROBE_TEXT(hold->lock->name));
}

static void wake_for(struct rlk_lock *lock, struct rlk_waiter *waiter)
{
    /* rule: H5 */
    if (lock->queue->woken)
        return;
    lock->queue->woken = waiter;
    rlk_registry_wake_locked(lock->registry, waiter->thread);
}

/* rule: K16 */
/* Whether it may be somebody else's of this process, or nobody's. What the process has
 * asked the server for would be granted later, to nobody; threads that want to read have
 * asked, and so count as others (K16). */
static bool is_passable(const struct rlk_hold *hold)
{
    struct rlk_lock *lock = hold->lock;
    return (lock->kind == RLK_KIND_MUTEX ||
            (is_of_rwlock(hold) && rlk_list_empty(&lock->queue->readers))) &&
           !hold->fixed && !hold->owner_died && !hold->doubted &&
           !rlk_lock_ask_locked(lock) && !lock->ending && !rlk_log_ended();
}

/* rule: H9, K16, W25 */
/* Whether the hold may go to the first who waits here, budget or not. One of a read-write
 * lock only where it is kept, too, and nobody else waits (K16). */
static bool can_pass_on(const struct rlk_hold *hold, struct rlk_handoff bound,
                        const struct rlk_waiter *first)
{
    return first && is_on(bound) && is_passable(hold) && !hold->lock->queue->requester &&
           suits(hold, first) &&
           (!is_of_rwlock(hold) ||
            (bound.retain_ns > 0 && bound.hears && hold->tells && !hold->others));
}

/* rule: K1, K16 */
/* Whether it is kept though nobody here waits (K1). */
static bool can_keep(const struct rlk_hold *hold, struct rlk_handoff bound, int64_t now)
{
    return bound.retain_ns > 0 && bound.hears && is_passable(hold) && hold->tells &&
           !hold->others && rlk_handoff_room_locked(hold) && now < hold->risk &&
           !hold->lock->queue->requester;
}

bool rlk_handoff_room_locked(const struct rlk_hold *hold)
{
    return hold->lock->registry->kept_count < KEPT_MAX;
}

bool rlk_handoff_asks_locked(struct rlk_hold *hold, struct rlk_handoff bound, int64_t now)
{
    struct rlk_waiter *first = first_waiter(hold->lock);
    bool spent = is_spent(hold, bound, now);
    bool passes = can_pass_on(hold, bound, first);
    bool stays = passes ? !(hold->others && spent) : !first && can_keep(hold, bound, now);

    if (stays && !rlk_handoff_has_token(hold))
        hold->asks_tokens = true;
    else if (hold->others || hold->tells || !spent || !passes)
        return false;
    hold->asks_others = true; /* so the request says that it wants to be told, too */
    return true;
}

/* The part by which a thread comes into the hold: its resident one, or another. NULL: out
 * of memory. */
static struct rlk_holder *holder_for(struct rlk_hold *hold, struct rlk_thread *thread)
{
    struct rlk_holder *holder = rlk_fastpath_step_in_locked(hold, thread);
    return holder ? holder : rlk_holder_join_locked(hold, rlk_hold_is_fenced(hold));
}

/* The levels of a read-write lock are the registry's business. */
static bool has_fastpath(const struct rlk_hold *hold)
{
    return hold->lock->kind == RLK_KIND_MUTEX;
}

static void step_out(struct rlk_holder *holder, bool keeps)
{
    if (has_fastpath(holder->hold) && holder->hold->tells && !holder->hold->others)
        rlk_fastpath_step_out_locked(holder, keeps);
    else
        rlk_holder_leave_locked(holder);
}

/* The thread leaves the hold IDLE; retain_ns 0: for one that is woken. */
static void rest(struct rlk_holder *holder, int64_t retain_ns, bool keeps, int64_t now)
{
    struct rlk_hold *hold = holder->hold;

    step_out(holder, keeps);
    rlk_intent_say_locked(hold, RLK_INSIDE_LEFT);
    rlk_hold_change_locked(hold, RLK_ON_RETAIN);
    rlk_hold_keep_locked(hold, retain_ns);
    hold->pass->used_at = now;
    if (hold->tells && !hold->others && !hold->doubted && now < hold->risk) {
        rlk_handoff_unasked_locked(hold, now);
        if (has_fastpath(hold)) {
            rlk_handoff_ready_token(hold);
            if (rlk_id_robust(&hold->id))
                hold->pass->inside = rlk_intent_inside_locked(hold);
            rlk_fastpath_open_locked(hold, retain_ns > 0);
        }
    }
    if (retain_ns > 0)
        rlk_hold_schedule_locked(hold);
}

bool rlk_handoff_unlock_locked(struct rlk_holder *holder, struct rlk_handoff bound,
                               int64_t now)
{
    struct rlk_hold *hold = holder->hold;
    struct rlk_lock *lock = hold->lock;
    struct rlk_waiter *first = first_waiter(lock);

    /* rule: H1, H4 */
    if (!rlk_handoff_has_token(hold))
        return false;
    if (!first && can_keep(hold, bound, now) && rlk_hold_pass_locked(hold)) {
        rlk_handoff_fetch_tokens(hold);
        rest(holder, bound.retain_ns, true, now);
        return true;
    }
    if (!can_pass_on(hold, bound, first) || !may_go_on(hold, bound, now) ||
        !rlk_hold_pass_locked(hold))
        return false;
    if (now - first->since < STARVED_NS) {
        rlk_handoff_fetch_tokens(hold);
        rest(holder, 0, bound.retain_ns > 0, now);
        wake_for(lock, first);
        return true;
    }
    struct rlk_holder *next = holder_for(hold, first->thread);
    if (!next)
        return false;
    step_out(holder, bound.retain_ns > 0);
    rlk_list_remove(&first->link);
    if (lock->queue->woken == first)
        lock->queue->woken = NULL;
    next->owner = first->thread;
    next->owner_thread = first->self;
    first->holder = next;
    /* until it takes it (rlk_intent_say_locked in acquire.c): what it does not live to
     * take it has not touched */
    rlk_intent_say_locked(next->hold, RLK_INSIDE_LEFT);
    rlk_handoff_fetch_tokens(hold);
    begin_section(hold, now);
    rlk_registry_wake_locked(lock->registry, first->thread);
    return true;
}

bool rlk_handoff_enter_locked(struct rlk_lock *lock, struct rlk_waiter *self,
                              struct rlk_handoff bound, int64_t now,
                              struct rlk_hold **ret_spent)
{
    struct rlk_hold *hold = lock->current;

    /* rule: H2, K7 */
    if (hold)
        rlk_fastpath_close_locked(hold);
    *ret_spent = NULL;
    if (!hold || !rlk_hold_is_retained(hold) || rlk_log_ended())
        return false;
    bool kept = hold->pass->retain_ns > 0;
    bool fits =
        kept ? self->retakes && rlk_handoff_has_terms_of(hold, self) : suits(hold, self);
    if (!fits && !kept)
        return false;
    bool goes = fits && rlk_handoff_has_token(hold) && may_go_on(hold, bound, now) &&
                !(kept && now >= hold->risk); /* K7 */
    struct rlk_holder *holder = goes ? holder_for(hold, self->thread) : NULL;
    if (!holder) {
        hold->no_marker = !hold->unknown;
        rlk_hold_leave_locked(hold);
        *ret_spent = hold;
        return false;
    }
    rlk_hold_change_locked(hold, RLK_ON_TAKE);
    rlk_hold_keep_locked(hold, 0);
    if (!hold->cleaned) /* else when the server knows it (K11) */
        rlk_intent_say_locked(hold, RLK_INSIDE);
    rlk_holder_own_locked(holder, self->thread, now);
    begin_section(hold, now);
    if (kept) /* its whole lease again */
        rlk_hold_schedule_locked(hold);
    RLK_COUNT(lock->registry->counters->acquisitions);
    rlk_list_remove(&self->link);
    return true;
}

void rlk_handoff_gave_up_locked(struct rlk_lock *lock, const struct rlk_waiter *waiter,
                                int64_t now)
{
    if (lock->queue->woken == waiter)
        lock->queue->woken = NULL;
    rlk_handoff_settle_locked(lock, now);
}

void rlk_handoff_settle_locked(struct rlk_lock *lock, int64_t now)
{
    struct rlk_hold *hold = lock->current;
    struct rlk_waiter *next = first_waiter(lock);

    /* rule: H5 */
    if (hold)
        rlk_fastpath_close_locked(hold);
    if (!hold || !rlk_hold_is_retained(hold) || lock->queue->woken)
        return;
    if (next && suits(hold, next))
        wake_for(lock, next);
    else
        rlk_hold_end_unused_locked(hold, now);
}
