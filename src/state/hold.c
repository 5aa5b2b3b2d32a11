/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a hold: see hold.h. All of it under the mutex of its registry, so that one
 * critical section looks, chooses and changes. Thread: any. Nothing here blocks or talks
 * to a network. */
#include "state/hold.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/probe.h"
#include "state/fastpath.h"
#include "state/handoff.h"
#include "state/loss_reason.h"
#include "state/registry.h"
#include "state/thread_holds.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* what a held lock costs (doc/PERFORMANCE.md): with malloc's own 8, a multiple of 16 */
_Static_assert(sizeof(struct rlk_hold) <= 328, "more than 512 bytes per held lock");

enum { FREE_HOLDS_MAX = 64 /* kept for reuse, so that a pair allocates nothing */ };

/* How long the one release of a lost hold waits for a connection. */
#define LATE_RELEASE_NS (3 * RLK_NS_PER_S)
#define MARK_TRIES_NS (INT64_C(3600) * RLK_NS_PER_S)

/* ---- states: doc/design/client.md, "States of a hold", has the same table */

#define IN(state) (1u << RLK_HOLD_##state)

static const struct {
    enum rlk_hold_event event;
    unsigned from; /* a set of states */
    enum rlk_hold_state to;
} transitions[] = {
    { RLK_ON_ENTER, IN(REQUESTED), RLK_HOLD_HELD },        /* rule: T10 */
    { RLK_ON_CANCEL, IN(REQUESTED), RLK_HOLD_CANCELLING }, /* rule: T7 */
    { RLK_ON_YOURS, IN(CANCELLING), RLK_HOLD_REQUESTED },  /* rule: T8 */
    { RLK_ON_GIVE_UP, IN(REQUESTED) | IN(CANCELLING),
      RLK_HOLD_CANCELLING },                                         /* rule: T7 */
    { RLK_ON_RETAIN, IN(HELD), RLK_HOLD_RETAINED },                  /* rule: H4, K1 */
    { RLK_ON_TAKE, IN(RETAINED), RLK_HOLD_HELD },                    /* rule: K7 */
    { RLK_ON_FOUND, IN(RETAINED), RLK_HOLD_HELD },                   /* rule: H1 */
    { RLK_ON_RELEASE, IN(HELD) | IN(RETAINED), RLK_HOLD_RELEASING }, /* rule: H2 */
    { RLK_ON_LOSS, IN(HELD) | IN(RETAINED), RLK_HOLD_LOST },         /* rule: T6 */
};

/* The only function that changes a state. An event that the table does not have for the
 * state is a fault of this library: a build without assertions leaves the state as it
 * is. */
void rlk_hold_change_locked(struct rlk_hold *hold, enum rlk_hold_event event)
{
    struct rlk_registry *reg = hold->lock->registry;
    uint8_t from = hold->state, to = (uint8_t)transitions[event].to;
    bool known = rlk_hold_can_change(hold, event);

    assert(known);
    if (!known)
        return;
    reg->holds_now -= from == RLK_HOLD_HELD;
    reg->holds_now += to == RLK_HOLD_HELD;
    if (from < RLK_HOLD_CANCELLING && to >= RLK_HOLD_CANCELLING)
        hold->give_up_at = 0; /* where the budget was */
    atomic_store_explicit(&hold->state, to, memory_order_release);
}

bool rlk_hold_can_change(const struct rlk_hold *hold, enum rlk_hold_event event)
{
    return transitions[event].event == event &&
           transitions[event].from >> hold->state & 1;
}

void rlk_hold_unsent_locked(struct rlk_hold *hold)
{
    rlk_hold_ask_end_locked(hold);
    rlk_hold_change_locked(hold, RLK_ON_GIVE_UP);
}

/* ---- holds */

static bool is_upper(char letter)
{
    return letter >= 'A' && letter <= 'Z';
}

struct rlk_hold *rlk_hold_new_locked(struct rlk_lock *lock, struct rlk_thread *thread,
                                     char letter, uint32_t grant_ms)
{
    struct rlk_registry *reg = lock->registry;
    struct rlk_hold *hold;
    struct rlk_list *l = rlk_list_pop(&reg->free_holds);

    if (l) {
        hold = RLK_CONTAINER_OF(l, struct rlk_hold, link);
        reg->free_hold_count--;
        memset(hold, 0, sizeof(*hold));
    } else {
        hold = calloc(1, sizeof(*hold));
        if (!hold)
            return NULL;
    }
    hold->lock = lock;
    lock->refs++;
    hold->id.letter = letter;
    hold->id.grant_ms = grant_ms;
    if (thread)
        rlk_hold_rename_locked(hold, thread);
    hold->refs = 1;
    hold->need_ask = true;
    hold->end = INT64_MIN;
    hold->state = RLK_HOLD_REQUESTED;
    hold->timer.tag = RLK_TIMER_HOLD;
    hold->pass = (struct rlk_pass *)&rlk_hold_no_pass;
    rlk_list_init(&hold->link);
    rlk_list_init(&hold->holders);
    reg->hold_count++;
    return hold;
}

/* Its id is over. */
static void end_id(struct rlk_hold *hold)
{
    if (hold->queued)
        rlk_registry_remember_locked(hold->lock->registry, &hold->id);
    hold->queued = false;
}

void rlk_hold_rename_locked(struct rlk_hold *hold, struct rlk_thread *thread)
{
    end_id(hold);
    hold->id.thread = thread->number;
    hold->id.acquisition = rlk_id_number(rlk_random_next(&hold->lock->registry->random));
    hold->unknown = hold->sent_any = hold->others = hold->told_lost = false;
    rlk_hold_ask_anew_locked(hold);
}

static void put_pass(struct rlk_registry *reg, struct rlk_pass *pass)
{
    if (reg->free_pass_count < FREE_HOLDS_MAX) {
        reg->free_pass_count++;
        rlk_list_prepend(&reg->free_passes, &pass->fastpath_link);
    } else {
        free(pass);
    }
}

void rlk_hold_ref_locked(struct rlk_hold *hold)
{
    hold->refs++;
}

void rlk_hold_put_locked(struct rlk_hold *hold)
{
    struct rlk_registry *reg = hold->lock->registry;

    assert(hold->refs > 0);
    if (--hold->refs > 0)
        return;
    end_id(hold);
    rlk_list_remove(&hold->link);
    rlk_intent_clear_locked(hold);
    rlk_timer_disarm(&reg->timers, &hold->timer);
    rlk_lock_unref_locked(hold->lock);
    reg->hold_count--;
    if (hold->pass != &rlk_hold_no_pass)
        put_pass(reg, hold->pass);
    if (reg->free_hold_count < FREE_HOLDS_MAX) {
        reg->free_hold_count++;
        rlk_list_prepend(&reg->free_holds, &hold->link);
    } else {
        free(hold);
    }
}

/* ---- passing on */

const struct rlk_pass rlk_hold_no_pass = {
    .residents = { (struct rlk_list *)&rlk_hold_no_pass.residents,
                   (struct rlk_list *)&rlk_hold_no_pass.residents },
};

bool rlk_hold_pass_locked(struct rlk_hold *hold)
{
    struct rlk_registry *reg = hold->lock->registry;

    if (hold->pass != &rlk_hold_no_pass)
        return true;
    struct rlk_list *l = rlk_list_pop(&reg->free_passes);
    struct rlk_pass *pass =
        l ? RLK_CONTAINER_OF(l, struct rlk_pass, fastpath_link) : malloc(sizeof(*pass));
    if (!pass)
        return false;
    if (l)
        reg->free_pass_count--;
    uint64_t end = rlk_handoff_token_end(hold);
    memset(pass, 0, sizeof(*pass));
    pass->hold = hold;
    pass->token_end = end;
    rlk_list_init(&pass->residents);
    rlk_list_init(&pass->fastpath_link);
    hold->pass = pass;
    return true;
}

/* ---- leases */

int64_t rlk_hold_lease_end(int64_t sent, int64_t ms)
{
    /* rule: S1 */
    /* 1 % for clocks that run apart, 2 ms for the granularity of both sides */
    return sent + ms * (RLK_NS_PER_MS * 99 / 100) - 2 * RLK_NS_PER_MS;
}

bool rlk_hold_renewable_locked(const struct rlk_hold *hold)
{
    if (hold->op)
        return false;
    if (hold->downgrading)
        return true;
    return (!hold->fixed || hold->doubted) &&
           !(hold->reading && hold->lock->queue->renewal.op.kind != RLK_OP_NONE);
}

void rlk_hold_schedule_locked(struct rlk_hold *hold)
{
    int64_t when = hold->end;

    if (rlk_hold_renewable_locked(hold)) {
        int64_t ask_at = rlk_handoff_ask_at(hold);
        if (ask_at < when)
            when = ask_at;
        if (hold->renew_at < when &&
            (!rlk_hold_is_retained(hold) || hold->doubted)) /* asked more often */
            when = hold->renew_at;
    }
    if (rlk_handoff_idle_until(hold) < when)
        when = rlk_handoff_idle_until(hold);
    if (!hold->at_risk && hold->risk < when)
        when = hold->risk;
    rlk_timer_arm(&hold->lock->registry->timers, &hold->timer, when);
}

void rlk_hold_confirm_locked(struct rlk_hold *hold, int64_t sent, int64_t ms)
{
    /* nor does a server whose clock stepped back, and that now tells of hours, give more
     * than was asked for: its clock may be put right again */
    if (ms > hold->lease_ms)
        ms = hold->lease_ms;
    hold->proof_sent = sent;
    /* an older answer lowers nothing */
    if (!rlk_hold_is_live(hold) || rlk_hold_lease_end(sent, ms) > hold->end)
        rlk_hold_relet_locked(hold, sent, ms);
}

void rlk_hold_relet_locked(struct rlk_hold *hold, int64_t sent, int64_t ms)
{
    int64_t end = rlk_hold_lease_end(sent, ms);
    int64_t third = ms * RLK_NS_PER_MS / 3;

    hold->end = end;
    if (hold->fixed) {
        int64_t tenth = ms / 10 > 50 ? ms / 10 : 50;
        hold->risk = end - tenth * RLK_NS_PER_MS;
    } else {
        hold->risk = end - third;
        /* a grant's short TTL: two thirds before its end; a whole lease: after a third */
        hold->renew_at = ms < hold->lease_ms ? end - 2 * third : sent + third;
    }
    hold->backoff_ms = 0;
    if (hold->at_risk) {
        hold->at_risk = false;
        rlk_hold_news_locked(hold, RLK_NEWS_SAFE);
    }
}

void rlk_hold_enter_locked(struct rlk_hold *hold, struct rlk_thread *thread, int64_t now)
{
    struct rlk_lock *lock = hold->lock;

    /* rule: T10 */
    hold->refs += 2; /* the lock's, the part's */
    rlk_hold_ask_end_locked(hold);
    unsigned flags = hold->flags;
    rlk_holder_init(&hold->own, hold); /* in the place of what it was asked with */
    rlk_hold_change_locked(hold, RLK_ON_ENTER);
    hold->since = now;
    if (rlk_log_ended()) /* the process ends: it would be renewed, but never unlocked */
        hold->fixed = true;
    lock->entered++;
    if (!hold->reading)
        lock->entered_alone++;
    hold->budget_from = now;
    hold->sections = 1;
    if (rlk_hold_hears_others(hold, flags))
        hold->others = true;
    hold->tells = rlk_hold_hears_telling(hold, flags);
    if (hold->reading)
        hold->joins = 0;
    else
        hold->mark = hold->owner_died ? 2 : 1;
    hold->own.owner = thread;
    hold->own.owner_thread = rlk_sync_thread_self();
    rlk_holder_first_level(&hold->own);
    hold->own.claimed = true;
    hold->own.since = now;
    hold->own.fencing = is_upper(hold->id.letter);
    rlk_list_append(&hold->holders, &hold->own.hold_link);
    rlk_thread_holds_add(thread, &hold->own);
    if (hold->reading) {
        rlk_list_append(&lock->queue->reads, &hold->link);
        if (!hold->fixed) {
            struct rlk_hold *before = lock->queue->shared;
            lock->queue->shared = hold;
            if (before && rlk_hold_is_retained(before)) /* newcomers may join it */
                rlk_hold_end_unused_locked(before, now);
        }
    } else {
        lock->current = hold;
    }
    rlk_intent_say_locked(hold, RLK_INSIDE);
    if (hold->told_lost) /* the message came before the answer (T10) */
        rlk_hold_doubt_locked(hold, now);
    else
        rlk_hold_schedule_locked(hold);
}

/* ---- parts */

void rlk_hold_keep_locked(struct rlk_hold *hold, int64_t retain_ns)
{
    size_t *count = &hold->lock->registry->kept_count;
    if (hold->pass == &rlk_hold_no_pass)
        return;
    if (hold->pass->retain_ns > 0)
        --*count;
    if (retain_ns > 0)
        ++*count;
    hold->pass->retain_ns = retain_ns;
}

bool rlk_hold_unused_locked(const struct rlk_hold *hold)
{
    /* rule: W22 */
    return rlk_list_empty(&hold->holders) && (!hold->reading || hold->joins == 0);
}

/* ---- transitions */

void rlk_hold_doubt_locked(struct rlk_hold *hold, int64_t now)
{
    rlk_fastpath_close_locked(hold); /* nobody comes in or leaves unasked */
    hold->doubted = true;
    /* rule: K8 */
    hold->renew_at = now;
    rlk_hold_schedule_locked(hold);
}

/* What LOST and RELEASING have in common. The lock's reference goes on to the caller. */
static void take_out(struct rlk_hold *hold, enum rlk_hold_event event)
{
    struct rlk_lock *lock = hold->lock;
    if (hold->reading) {
        rlk_list_remove(&hold->link);
        if (lock->queue->shared == hold)
            lock->queue->shared = NULL;
    } else {
        assert(lock->current == hold);
        lock->current = NULL;
    }
    rlk_hold_change_locked(hold, event);
    if (hold->pass != &rlk_hold_no_pass)
        atomic_store_explicit(&hold->pass->inside, NULL, memory_order_relaxed);
    rlk_hold_keep_locked(hold, 0);
    rlk_fastpath_end_locked(hold);
    rlk_timer_disarm(&lock->registry->timers, &hold->timer);
}

/* Whether a thread is in it, or was. */
static bool is_claimed(const struct rlk_hold *hold)
{
    for (struct rlk_list *l = hold->holders.next; l != &hold->holders; l = l->next)
        if (RLK_CONTAINER_OF(l, struct rlk_holder, hold_link)->claimed)
            return true;
    return false;
}

void rlk_hold_lose_locked(struct rlk_hold *hold, enum rlk_loss loss, int64_t now)
{
    struct rlk_registry *reg = hold->lock->registry;

    rlk_fastpath_close_locked(hold);
    hold->whole = !is_claimed(hold);
    /* rule: T6, H10, K8, S4 */
    int64_t cause_ms;
    hold->loss = rlk_loss_reason_of_locked(hold, loss, now, &cause_ms) & RLK_LOSS_MASK;
    hold->cause_ms = cause_ms < UINT32_MAX ? (uint32_t)cause_ms : UINT32_MAX;
    take_out(hold, RLK_ON_LOSS);
    /* a grant of it that is read only now is nobody's business */
    if (hold->reading)
        rlk_list_append(&hold->lock->queue->leaving, &hold->link);
    else
        hold->lock->left = rlk_id_key(&hold->id);
    RLK_COUNT(reg->counters->losses);
    for (struct rlk_list *l = hold->holders.next; l != &hold->holders; l = l->next) {
        struct rlk_holder *holder = RLK_CONTAINER_OF(l, struct rlk_holder, hold_link);
        reg->retain(reg); /* it may be drained long after the client was closed */
        if (!holder->claimed)
            continue;
        RLK_PROBE3(lock_lost, RLK_PROBE_TEXT(hold->lock->name), (int)hold->loss,
                   RLK_PROBE_US(now - holder->since));
        rlk_holder_end_section_locked(holder, now);
    }
    rlk_hold_news_locked(hold, RLK_NEWS_LOST);
    rlk_lock_promote_locked(hold->lock);
    /* one release, without repetition, with the lock's reference */
    rlk_hold_background_locked(hold, now, now + LATE_RELEASE_NS);
}

void rlk_hold_leave_locked(struct rlk_hold *hold)
{
    assert(rlk_hold_unused_locked(hold));
    take_out(hold, RLK_ON_RELEASE);
    if (!hold->owner_ended && !hold->owner_died) /* before the release leaves (G8) */
        rlk_intent_say_locked(hold, RLK_INSIDE_LEFT);
    if (hold->reading)
        rlk_list_append(&hold->lock->queue->leaving, &hold->link);
    else
        hold->lock->left = rlk_id_key(&hold->id);
}

void rlk_hold_give_up_locked(struct rlk_hold *hold, int64_t now, int64_t until)
{
    /* rule: T7 */
    assert(rlk_lock_has_queue(hold->lock));
    hold->queued = true; /* it may be */
    rlk_hold_ask_end_locked(hold);
    rlk_hold_change_locked(hold, RLK_ON_GIVE_UP);
    rlk_list_append(&hold->lock->queue->leaving, &hold->link);
    rlk_hold_background_locked(hold, now, until);
}

void rlk_hold_orphaned_locked(struct rlk_hold *hold, int64_t now)
{
    hold->no_marker = true;
    rlk_hold_change_locked(hold, RLK_ON_GIVE_UP);
    rlk_hold_background_locked(hold, now, now + hold->id.grant_ms * RLK_NS_PER_MS);
}

int64_t rlk_hold_release_until_locked(const struct rlk_hold *hold)
{
    int64_t lease = hold->lease_ms * RLK_NS_PER_MS;
    bool marked = rlk_id_robust(&hold->id) && !hold->owner_ended;
    return hold->end + lease + (marked ? MARK_TRIES_NS : 0);
}

void rlk_hold_going_locked(struct rlk_hold *hold)
{
    if (hold->counted_going)
        return;
    hold->counted_going = true;
    hold->lock->going++;
}

void rlk_hold_end_unused_locked(struct rlk_hold *hold, int64_t now)
{
    rlk_fastpath_close_locked(hold);
    if (!rlk_hold_is_live(hold) || !rlk_hold_unused_locked(hold))
        return;
    hold->no_marker = !hold->unknown;
    rlk_hold_leave_locked(hold);
    rlk_hold_going_locked(hold);
    rlk_lock_promote_locked(hold->lock);
    rlk_hold_background_locked(hold, now, rlk_hold_release_until_locked(hold));
}

void rlk_hold_downgrade_locked(struct rlk_hold *hold)
{
    struct rlk_lock *lock = hold->lock;

    /* rule: W18 */
    assert(lock->current == hold);
    lock->current = NULL;
    hold->reading = hold->downgrading = true;
    hold->joins = 0;           /* in place of the mark, which no writer has */
    hold->asks_tokens = false; /* it keeps the one it has */
    if (hold->fixed)
        hold->renew_at = hold->end; /* the caller tells the server first */
    rlk_list_append(&lock->queue->reads, &hold->link);
}

void rlk_hold_background_locked(struct rlk_hold *hold, int64_t when, int64_t until)
{
    if (!rlk_hold_is_background(hold)) {
        hold->lock->registry->background_count++;
        hold->lock->registry->late_count += hold->state == RLK_HOLD_LOST;
    }
    hold->renew_at = when;
    hold->give_up_at = until;
    rlk_timer_arm(&hold->lock->registry->timers, &hold->timer, when);
}

void rlk_hold_background_end_locked(struct rlk_hold *hold)
{
    struct rlk_registry *reg = hold->lock->registry;

    if (rlk_hold_is_background(hold)) {
        hold->give_up_at = 0;
        reg->background_count--;
        reg->late_count -= hold->state == RLK_HOLD_LOST;
        if (reg->background_count == 0)
            rlk_sync_cond_broadcast(&reg->background_done);
    }
    if (hold->counted_going)
        hold->lock->going--;
    hold->counted_going = false;
    rlk_list_remove(&hold->link);
    rlk_intent_end_locked(hold);
    rlk_hold_put_locked(hold);
}

void rlk_hold_news_locked(struct rlk_hold *hold, unsigned news)
{
    /* rule: W23 */
    rlk_fastpath_close_locked(hold);
    for (struct rlk_list *l = hold->holders.next; l != &hold->holders; l = l->next) {
        struct rlk_holder *holder = RLK_CONTAINER_OF(l, struct rlk_holder, hold_link);
        if (holder->claimed) /* nothing is lost that a thread never had */
            rlk_holder_news_locked(holder, news);
    }
}
