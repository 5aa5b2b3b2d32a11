/* SPDX-License-Identifier: Apache-2.0 */
/* What threads learned about their holds: by unlock, by queries, by the callback. */
#include "judge_impl.h"

#include <rlock.h>

#include <stdlib.h>

static unsigned lock_of(const struct nem_hold *hold)
{
    return hold->returned->lock;
}

static int64_t begun(const struct nem_hold *hold)
{
    return hold->asked ? hold->asked->at : hold->returned->at;
}

/* Whether the hold has this id, or had it before an extend. */
static bool owns(const struct nem_hold *hold, const struct nem_name *name)
{
    return name && (hold->name == name || hold->second == name);
}

/* ---- unlock: 0 only if unbroken */

struct grants { /* those of a lock, by time */
    struct nem_tenure **items;
    size_t count, size;
};

static const struct nem_tenure *broken_by(const struct grants *grants,
                                          const struct nem_hold *hold)
{
    int64_t from = hold->returned->at, to = hold->unlocking->at;
    size_t low = 0, high = grants->count;
    while (low < high) { /* `after` never falls */
        size_t middle = (low + high) / 2;
        if (grants->items[middle]->granted->after <= from)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < grants->count && grants->items[low]->granted->after < to; low++) {
        const struct nem_tenure *other = grants->items[low];
        bool read = other->granted->change == NEM_READ;
        bool joined =
            read && (hold->reading ||
                     (hold->downgraded && other->granted->before >= hold->downgraded));
        if (other->granted->before < to && !owns(hold, other->name) && !joined)
            return other;
    }
    return NULL;
}

static void judge_unbroken(struct nem_judge *j, const struct grants *grants,
                           const struct nem_hold *hold)
{
    const struct nem_op *invoke = hold->unlocking;
    nem_judged(j, NEM_RULE_UNLOCK);
    if (invoke->end != 0 && invoke->at > invoke->end + NEM_ROUNDED)
        nem_violation(j, NEM_RULE_UNLOCK, lock_of(hold),
                      "%s: unlock at %.3f ms gave 0, D was %.3f ms (%s)", nem_who(invoke),
                      nem_ms(j, invoke->at), nem_ms(j, invoke->end), invoke->id);
    const struct nem_tenure *other = broken_by(grants, hold);
    if (other)
        NEM_BREAKS(j, NEM_RULE_UNLOCK, lock_of(hold),
                   nem_excluded(j, lock_of(hold), nem_granted_after(hold),
                                other->granted->before) ||
                       nem_unlock_unaware_of_force(j, hold, other),
                   "%s: held from %.3f ms, unlock at %.3f ms gave 0; meanwhile, between "
                   "%.3f and %.3f ms, %s got it (%s)",
                   nem_who(invoke), nem_ms(j, hold->returned->at), nem_ms(j, invoke->at),
                   nem_ms(j, other->granted->after), nem_ms(j, other->granted->before),
                   other->name->text, hold->name ? hold->name->text : "");
}

static void judge_unlocks(struct nem_judge *j)
{
    struct grants *grants = nem_alloc(NEM_LOCKS_MAX * sizeof(*grants));
    for (size_t i = 0; i < j->tenure_count; i++) {
        struct grants *g = &grants[j->tenures[i]->granted->lock % NEM_LOCKS_MAX];
        g->items = nem_grow(g->items, g->count, &g->size, sizeof(*g->items));
        g->items[g->count++] = j->tenures[i];
    }
    for (size_t i = 0; i < j->hold_count; i++) {
        const struct nem_hold *hold = j->holds[i];
        if (hold->unlocked && hold->unlocking && hold->unlocked->code == 0)
            judge_unbroken(j, &grants[lock_of(hold)], hold);
    }
    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++)
        free(grants[i].items);
    free(grants);
}

/* ---- told: by the thread's own calls */

static void judge_check(struct nem_judge *j, const struct nem_hold *hold,
                        const struct nem_op *op, int64_t lost)
{
    nem_judged(j, NEM_RULE_TOLD);
    if (op->code != 1)
        return;
    if (op->end != 0 && op->at > op->end + NEM_ROUNDED)
        nem_violation(j, NEM_RULE_TOLD, lock_of(hold),
                      "%s: believes in its hold at %.3f ms, D was %.3f ms (%s)",
                      nem_who(op), nem_ms(j, op->at), nem_ms(j, op->end),
                      hold->returned->id);
    if (lost != 0)
        nem_violation(
            j, NEM_RULE_TOLD, lock_of(hold),
            "%s: believes at %.3f ms in a hold that it saw lost at %.3f ms (%s)",
            nem_who(op), nem_ms(j, op->at), nem_ms(j, lost), hold->returned->id);
}

/* A lost hold is not entered, extended, downgraded or released any more (S4, T6). */
static void judge_return(struct nem_judge *j, const struct nem_hold *hold,
                         const struct nem_op *invoke, const struct nem_op *op,
                         int64_t lost)
{
    nem_judged(j, NEM_RULE_TOLD);
    if (lost != 0 && op->code != ESTALE)
        nem_violation(j, NEM_RULE_TOLD, lock_of(hold),
                      "%s: %s gave %d at %.3f ms for a hold that it saw lost at %.3f ms "
                      "(%s)",
                      nem_who(op), nem_call_name(op->call), op->code, nem_ms(j, op->at),
                      nem_ms(j, lost), hold->returned->id);
    if (op != hold->unlocked && op->code == 0 && invoke->end != 0 &&
        invoke->at > invoke->end + NEM_ROUNDED)
        nem_violation(j, NEM_RULE_TOLD, lock_of(hold),
                      "%s: %s at %.3f ms gave 0, D was %.3f ms (%s)", nem_who(op),
                      nem_call_name(op->call), nem_ms(j, invoke->at),
                      nem_ms(j, invoke->end), hold->returned->id);
}

int64_t nem_running_by(const struct nem_judge *j, unsigned process, int64_t at)
{
    int64_t by = at + nem_slack(j), next = by;
    do {
        by = next;
        next = at + nem_slack(j) + nem_stopped_ns(j, process, at, by);
    } while (next > by);
    return by;
}

/* A success must come before D. The library read its clock at the grant or later, and not
 * while the process was stopped. */
static void judge_success(struct nem_judge *j, const struct nem_hold *hold)
{
    const struct nem_op *returned = hold->returned;
    unsigned process = hold->life->process;
    int64_t looked = nem_granted_after(hold);
    if (returned->end == 0)
        return;
    nem_judged(j, NEM_RULE_TOLD);
    if (looked < begun(hold) || looked >= returned->at) /* or no grant was seen */
        looked = begun(hold);
    looked = nem_stopped_until(j, process, looked) - nem_slack(j);
    if (looked > returned->at) /* the stop was that of another life */
        looked = begun(hold);
    if (looked > returned->end ||
        returned->at > nem_running_by(j, process, returned->end))
        nem_violation(j, NEM_RULE_TOLD, lock_of(hold),
                      "%s: %s gave it at %.3f ms, D was %.3f ms (%s)", nem_who(returned),
                      nem_call_name(returned->call), nem_ms(j, returned->at),
                      nem_ms(j, returned->end), returned->id);
}

static void judge_records(struct nem_judge *j, const struct nem_hold *hold)
{
    const struct nem_op *invoke = NULL;
    int64_t lost = 0;
    for (size_t i = hold->first + 1; i <= hold->last; i++) {
        const struct nem_op *op = j->ops[i];
        if (op->lock != lock_of(hold))
            continue;
        if (op->what == NEM_CHECK)
            judge_check(j, hold, op, lost);
        if (op->what == NEM_RETURN && invoke)
            judge_return(j, hold, invoke, op, lost);
        invoke = op->what == NEM_INVOKE ? op : NULL;
        if (op == hold->lost_by)
            lost = op->at;
    }
}

/* ---- told: by the callback */

/* The range [from, to) of the events of a life, by time. */
static void events_of(const struct nem_judge *j, const struct nem_life *life,
                      size_t *ret_from, size_t *ret_to)
{
    size_t low = 0, high = j->op_count;
    while (low < high) { /* the events' thread is the last one of its life */
        size_t middle = (low + high) / 2;
        const struct nem_op *op = j->ops[middle];
        bool before = op->process != life->process ? op->process < life->process
                      : op->life != life->life     ? op->life < life->life
                                                   : op->thread < NEM_EVENTS_THREAD;
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_from = low;
    while (low < j->op_count && j->ops[low]->process == life->process &&
           j->ops[low]->life == life->life)
        low++;
    *ret_to = low;
}

static bool tells_loss(const struct nem_op *event, const struct nem_hold *hold)
{
    bool mode = event->reading == hold->reading || hold->turned;
    bool token = event->token == 0 || hold->returned->token == 0 ||
                 event->token == hold->returned->token;
    return event->what == NEM_EVENT && event->code == RLOCK_EVENT_LOST &&
           event->lock == lock_of(hold) && event->levels == hold->returned->thread &&
           mode && token;
}

/* The time by which the callback must have run: D, as the thread saw it last. While the
 * process was stopped nothing ran. INT64_MAX: the process may have ended. */
static int64_t told_by(const struct nem_judge *j, const struct nem_hold *hold)
{
    const struct nem_life *life = hold->life;
    int64_t by =
        nem_running_by(j, life->process, hold->end != 0 ? hold->end : hold->lost);
    /* an unlock that finds the loss reports it itself */
    bool by_unlock = hold->unlocked && hold->unlocked->at == hold->lost &&
                     hold->unlocking && hold->unlocking->at < hold->end;
    bool alive =
        !by_unlock && by < life->dying && by < life->over && by < j->round->ended;
    return alive ? by : INT64_MAX;
}

/* A loss that the callback had to report. */
struct loss {
    struct nem_hold *hold;
    int64_t by;
};

static int by_deadline(const void *a, const void *b)
{
    const struct loss *x = a, *y = b;
    return (x->by > y->by) - (x->by < y->by);
}

static void judge_event(struct nem_judge *j, const struct loss *loss, bool used[])
{
    struct nem_hold *hold = loss->hold;
    size_t from, to;
    nem_judged(j, NEM_RULE_TOLD);
    events_of(j, hold->life, &from, &to);
    for (size_t i = from; i < to && j->ops[i]->at <= loss->by; i++)
        if (!used[i] && j->ops[i]->at >= begun(hold) && tells_loss(j->ops[i], hold)) {
            used[i] = hold->told = true;
            return;
        }
    nem_violation(j, NEM_RULE_TOLD, lock_of(hold),
                  "%s: no LOST event by %.3f ms; D %.3f ms, seen lost at %.3f ms (%s)",
                  nem_who(hold->returned), nem_ms(j, loss->by), nem_ms(j, hold->end),
                  nem_ms(j, hold->lost), hold->returned->id);
}

/* Whether an event may report the loss of a hold that no other record knows of: the
 * thread found it later, or D had come, or the thread was killed before it looked
 * again. */
static bool may_tell(const struct nem_judge *j, const struct nem_op *event,
                     const struct nem_hold *hold)
{
    bool kept = hold->unlocked && hold->unlocked->code == 0;
    bool silent = !hold->unlocked && j->ops[hold->last]->at <= event->at;
    return !hold->told && !kept && begun(hold) <= event->at && tells_loss(event, hold) &&
           (hold->lost != 0 || hold->end <= event->at + NEM_ROUNDED || silent);
}

/* Whether the event may concern a call that was killed before it could record its
 * success. */
static bool may_be_of_a_call(const struct nem_made *call, const struct nem_life *life,
                             const struct nem_op *event)
{
    return !call->ret && call->life == life && nem_is_acquire(call->invoke->call) &&
           call->invoke->lock == event->lock && call->invoke->thread == event->levels &&
           call->invoke->at <= event->at;
}

static bool is_true(const struct nem_judge *j, const struct nem_life *life,
                    const struct nem_op *event)
{
    for (size_t i = 0; i < j->hold_count; i++) {
        struct nem_hold *hold = j->holds[i];
        if (hold->life == life && may_tell(j, event, hold))
            return hold->told = true;
    }
    for (size_t i = 0; i < j->made_count; i++)
        if (may_be_of_a_call(&j->made[i], life, event))
            return true;
    return false;
}

/* No event reports a loss that is none, and no loss is reported twice. */
static void judge_untrue(struct nem_judge *j, const struct nem_life *life,
                         const bool used[])
{
    size_t from, to;
    events_of(j, life, &from, &to);
    for (size_t i = from; i < to; i++) {
        const struct nem_op *event = j->ops[i];
        if (event->what != NEM_EVENT || event->code != RLOCK_EVENT_LOST)
            continue;
        nem_judged(j, NEM_RULE_LOSS);
        if (!used[i] && !is_true(j, life, event))
            nem_violation(j, NEM_RULE_LOSS, event->lock,
                          "%u.%u (life %u): an event at %.3f ms tells a loss that is "
                          "none, or is known already",
                          event->process, event->levels, event->life,
                          nem_ms(j, event->at));
    }
}

/* Each event reports one loss. Losses with the earliest deadline choose their event
 * first. */
static void judge_events(struct nem_judge *j)
{
    struct loss *losses = nem_alloc(j->hold_count * sizeof(*losses));
    bool *used = nem_alloc(j->op_count * sizeof(*used));
    size_t count = 0;
    for (size_t i = 0; i < j->hold_count; i++) {
        int64_t by = j->holds[i]->lost != 0 ? told_by(j, j->holds[i]) : INT64_MAX;
        if (by != INT64_MAX)
            losses[count++] = (struct loss){ j->holds[i], by };
    }
    if (count)
        qsort(losses, count, sizeof(*losses), by_deadline);
    for (size_t i = 0; i < count; i++)
        judge_event(j, &losses[i], used);
    for (size_t i = 0; i < j->life_count; i++)
        judge_untrue(j, &j->lives[i], used);
    free(used);
    free(losses);
}

void nem_judge_holds(struct nem_judge *j)
{
    judge_unlocks(j);
    for (size_t i = 0; i < j->hold_count; i++) {
        judge_success(j, j->holds[i]);
        judge_records(j, j->holds[i]);
    }
    judge_events(j);
}
