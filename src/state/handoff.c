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
    RETAINED_MAX = 1024 /* of a client: each costs one request a period */
};

/* A thread that has waited for this long is handed the lock (H4). */
#define STARVED_NS RLK_NS_PER_MS

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
    return now - hold->budget.from >= bound.ns || hold->budget.sections >= bound.count;
}

/* rule: H6, H7, W25 */
/* Whether another section may begin without the server: while the lock is not contended,
 * and a recall would say if it were; else within the budget. If nothing is known of
 * contention, the server is asked in the second half of the budget, so that the answer
 * can be there by its end (H6, H7). */
static bool may_go_on(struct rlk_hold *hold, struct rlk_handoff bound, int64_t now)
{
    struct rlk_handoff half = { .ns = bound.ns / 2, .count = (bound.count + 1) / 2 };

    if (!hold->contention.contended && hold->contention.recall)
        return true;
    if (is_of_rwlock(hold)) /* not past the server (W25) */
        return false;
    if (is_spent(hold, bound, now))
        return false;
    if (!hold->contention.contended && !hold->contention.ask &&
        is_spent(hold, half, now)) {
        hold->contention.ask = true;
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

/* The same for a hold that the waiter did not ask for. */
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

/* A section begins that another thread of this process made possible. */
static void begin_section(struct rlk_hold *hold, int64_t now)
{
    hold->budget.sections++;
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
/* Whether the hold may go to another thread of this process, or be retained. Not while
 * this process has a request for the lock: the server would grant it later, to no thread.
 * Threads that want to read have such a request, so they count as contention (K16). */
static bool is_passable(const struct rlk_hold *hold)
{
    struct rlk_lock *lock = hold->lock;
    return (lock->kind == RLK_KIND_MUTEX ||
            (is_of_rwlock(hold) && rlk_list_empty(&lock->queue->readers))) &&
           !hold->fixed && !hold->robust.owner_died && !hold->lease.doubted &&
           !rlk_lock_ask_locked(lock) && !lock->ending && !rlk_log_ended();
}

/* rule: H9, K16, W25 */
/* Whether the hold may go to the first waiter here, without regard to the budget. A hold
 * of a read-write lock may only if the handle also retains the lock, and it is not
 * contended (K16). */
static bool can_pass_on(const struct rlk_hold *hold, struct rlk_handoff bound,
                        const struct rlk_waiter *first)
{
    return first && is_on(bound) && is_passable(hold) && !hold->lock->queue->requester &&
           suits(hold, first) &&
           (!is_of_rwlock(hold) ||
            (bound.retain_ns > 0 && bound.hears && hold->contention.recall &&
             !hold->contention.contended));
}

/* rule: K1, K16 */
/* Whether the process retains the hold although no thread waits here (K1). */
static bool can_keep(const struct rlk_hold *hold, struct rlk_handoff bound, int64_t now)
{
    return bound.retain_ns > 0 && bound.hears && is_passable(hold) &&
           hold->contention.recall && !hold->contention.contended &&
           rlk_handoff_room_locked(hold) && now < hold->risk &&
           !hold->lock->queue->requester;
}

bool rlk_handoff_room_locked(const struct rlk_hold *hold)
{
    return hold->lock->registry->retained_count < RETAINED_MAX;
}

bool rlk_handoff_asks_locked(struct rlk_hold *hold, struct rlk_handoff bound, int64_t now)
{
    struct rlk_waiter *first = first_waiter(hold->lock);
    bool spent = is_spent(hold, bound, now);
    bool passes = can_pass_on(hold, bound, first);
    bool stays = passes ? !(hold->contention.contended && spent)
                        : !first && can_keep(hold, bound, now);

    if (stays && !rlk_handoff_has_token(hold))
        hold->tokens.ask = true;
    else if (hold->contention.contended || hold->contention.recall || !spent || !passes)
        return false;
    hold->contention.ask = true; /* so the request asks for a recall, too */
    return true;
}

/* The holder by which a thread enters: its resident holder, or another. NULL: out of
 * memory. */
static struct rlk_holder *holder_for(struct rlk_hold *hold, struct rlk_thread *thread)
{
    struct rlk_holder *holder = rlk_fastpath_step_in_locked(hold, thread);
    return holder ? holder : rlk_holder_join_locked(hold, rlk_hold_is_fenced(hold));
}

/* A read-write lock has no fast path: its levels are counted under the registry's
 * mutex. */
static bool has_fastpath(const struct rlk_hold *hold)
{
    return hold->lock->kind == RLK_KIND_MUTEX;
}

static void step_out(struct rlk_holder *holder, bool retains)
{
    if (has_fastpath(holder->hold) && holder->hold->contention.recall &&
        !holder->hold->contention.contended)
        rlk_fastpath_step_out_locked(holder, retains);
    else
        rlk_holder_leave_locked(holder);
}

/* The thread leaves the hold RETAINED. retain_ns 0: for a woken thread. */
static void leave_retained(struct rlk_holder *holder, int64_t retain_ns, bool retains,
                           int64_t now)
{
    struct rlk_hold *hold = holder->hold;

    step_out(holder, retains);
    rlk_intent_say_locked(hold, RLK_INSIDE_LEFT);
    rlk_hold_change_locked(hold, RLK_ON_RETAIN);
    rlk_hold_retain_locked(hold, retain_ns);
    hold->pass->used_at = now;
    if (hold->contention.recall && !hold->contention.contended && !hold->lease.doubted &&
        now < hold->risk) {
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
        leave_retained(holder, bound.retain_ns, true, now);
        return true;
    }
    if (!can_pass_on(hold, bound, first) || !may_go_on(hold, bound, now) ||
        !rlk_hold_pass_locked(hold))
        return false;
    if (now - first->since < STARVED_NS) {
        rlk_handoff_fetch_tokens(hold);
        leave_retained(holder, 0, bound.retain_ns > 0, now);
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
    /* until the next thread takes up the hold (rlk_intent_say_locked in acquire_look.c
     * and acquire_enter.c): if the process dies before that, the next thread has touched
     * nothing */
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
    bool for_a_time = hold->pass->retain_ns > 0;
    bool fits = for_a_time ? self->retakes && rlk_handoff_has_terms_of(hold, self)
                           : suits(hold, self);
    if (!fits && !for_a_time)
        return false;
    bool goes = fits && rlk_handoff_has_token(hold) && may_go_on(hold, bound, now) &&
                !(for_a_time && now >= hold->risk); /* K7 */
    struct rlk_holder *holder = goes ? holder_for(hold, self->thread) : NULL;
    if (!holder) {
        rlk_hold_leave_unused_locked(hold);
        *ret_spent = hold;
        return false;
    }
    rlk_hold_change_locked(hold, RLK_ON_TAKE);
    rlk_hold_retain_locked(hold, 0);
    if (!hold->robust.mark_cleared) /* else once the server knows of this thread (K11) */
        rlk_intent_say_locked(hold, RLK_INSIDE);
    rlk_holder_own_locked(holder, self->thread, now);
    begin_section(hold, now);
    if (for_a_time) /* the whole lease is renewed again */
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
