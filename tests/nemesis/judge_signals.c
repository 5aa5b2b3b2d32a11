/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals and broadcasts of the workers, against those who waited all the time (V3, V7,
 * V17). For a signal the server has signalled at least one id in the time of the call,
 * and another one for each such call; a broadcast leaves nobody in the queue who was
 * there when it began. A call that could not reach the server returns 0, and its client
 * sends the signal later.
 */
#include "judge_cond.h"

#include <stdlib.h>

/* A call that returned 0. */
struct waking {
    const struct nem_op *invoke, *ret;
    int64_t by; /* its effect has come then; INT64_MAX: it may never come */
};

struct wakings {
    struct waking *items;
    size_t count, size;
};

/* A time at which the server signalled an id. */
struct signalled {
    const struct nem_entry *entry;
    bool used;
};

/* ---- the calls */

/* The call has given up, and its client goes on. */
static bool goes_on(const struct nem_judge *j, const struct waking *w)
{
    return w->ret->at - w->invoke->at >= j->round->commandtimeout_ms * NEM_NS_PER_MS;
}

/* The time by which a process that nothing disturbs for a while has sent its signal. */
static int64_t sent_by(const struct nem_judge *j, unsigned process, int64_t from)
{
    int64_t by = from + nem_room(j), next = by;
    do {
        by = next;
        next = from + 2 * nem_room(j) + nem_disturbed_ns(j, process, from, by) +
               nem_stalled_ns(j, from, by);
    } while (next > by && by < j->round->ended);
    return by;
}

static int64_t effect_by(const struct nem_judge *j, const struct nem_life *life,
                         const struct waking *w)
{
    int64_t by = w->ret->at;
    if (goes_on(j, w) || life->dying <= w->ret->at)
        by = sent_by(j, w->invoke->process, w->ret->at);
    return life->dying <= by || j->round->ended <= by ? INT64_MAX : by;
}

/* ---- code, bound (V17) */

static void judge_call(struct nem_judge *j, const struct waking *w)
{
    const struct nem_op *invoke = w->invoke;
    int64_t by = invoke->at + j->round->commandtimeout_ms * NEM_NS_PER_MS + nem_slack(j);
    nem_judged(j, NEM_RULE_CODE);
    if (w->ret->code != 0 &&
        !(w->ret->code == EACCES && nem_refused(j, invoke->at, w->ret->at)))
        nem_violation(j, NEM_RULE_CODE, invoke->condition,
                      "%s: %s from %.3f to %.3f ms gave %d", nem_who(invoke),
                      nem_call_name(invoke->call), nem_ms(j, invoke->at),
                      nem_ms(j, w->ret->at), w->ret->code);
    nem_judged(j, NEM_RULE_BOUND);
    if (w->ret->at > by &&
        w->ret->at > by + nem_stopped_ns(j, invoke->process, invoke->at, w->ret->at))
        nem_violation(j, NEM_RULE_BOUND, invoke->condition,
                      "%s: %s of %.3f ms was to return by %.3f ms, and did at %.3f ms",
                      nem_who(invoke), nem_call_name(invoke->call), nem_ms(j, invoke->at),
                      nem_ms(j, by), nem_ms(j, w->ret->at));
}

static void find_wakings(const struct nem_conds *conds, struct wakings *all)
{
    struct nem_judge *j = conds->j;
    size_t life = 0;
    for (size_t i = 1; i < j->op_count; i++) {
        const struct nem_op *invoke = j->ops[i - 1], *ret = j->ops[i];
        while (j->lives[life].process != ret->process || j->lives[life].life != ret->life)
            life++;
        if (!nem_is_of_condition(ret->call) || ret->what != NEM_RETURN ||
            invoke->what != NEM_INVOKE || invoke->call != ret->call)
            continue;
        struct waking w = { .invoke = invoke, .ret = ret };
        w.by = effect_by(j, &j->lives[life], &w);
        judge_call(j, &w);
        if (ret->code != 0)
            continue;
        all->items = nem_grow(all->items, all->count, &all->size, sizeof(w));
        all->items[all->count++] = w;
    }
}

/* ---- missed */

/* Whether the id surely waited from the call's begin until its effect. */
static bool waited_all_along(const struct nem_judge *j, const struct nem_stay *stay,
                             const struct waking *w)
{
    return stay->life && stay->joined->before <= w->invoke->at &&
           nem_taken_after(stay) > w->by && stay->life->dying > w->by &&
           !nem_disturbed(j, stay->life->process, w->invoke->at, w->by) &&
           !nem_keys_lost(j, stay->joined->lock, stay->joined->after, w->by);
}

static const struct nem_stay *anybody(const struct nem_conds *conds,
                                      const struct waking *w)
{
    const struct nem_stay *stay = conds->stays[w->invoke->condition % NEM_LOCKS_MAX];
    while (stay &&
           (stay->joined->before > w->invoke->at || !waited_all_along(conds->j, stay, w)))
        stay = stay->next;
    return stay;
}

static void complain(struct nem_judge *j, const struct waking *w,
                     const struct nem_stay *stay)
{
    nem_violation(j, NEM_RULE_MISSED, w->invoke->condition,
                  "%s: %s from %.3f to %.3f ms woke nobody by %.3f ms; %s waited since "
                  "%.3f ms",
                  nem_who(w->invoke), nem_call_name(w->invoke->call),
                  nem_ms(j, w->invoke->at), nem_ms(j, w->ret->at), nem_ms(j, w->by),
                  stay->id, nem_ms(j, stay->joined->before));
}

/* The first signal of the server that may be the call's. */
static struct signalled *effect_of(struct signalled *all, size_t count,
                                   const struct waking *w)
{
    for (size_t i = 0; i < count; i++) {
        const struct nem_entry *entry = all[i].entry;
        if (entry->after > w->by)
            return NULL;
        if (!all[i].used && entry->lock == w->invoke->condition &&
            entry->before >= w->invoke->at)
            return &all[i];
    }
    return NULL;
}

/* The index of the first one that may have been at `from` or later. */
static size_t signalled_from(const struct signalled *all, size_t count, int64_t from)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (all[middle].entry->before < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void judge_waking(const struct nem_conds *conds, struct signalled *all,
                         size_t count, const struct waking *w)
{
    const struct nem_stay *stay = w->by == INT64_MAX ? NULL : anybody(conds, w);
    if (!stay)
        return;
    nem_judged(conds->j, NEM_RULE_MISSED);
    size_t from = signalled_from(all, count, w->invoke->at);
    struct signalled *effect =
        w->invoke->call == NEM_BROADCAST ? NULL : effect_of(all + from, count - from, w);
    if (effect)
        effect->used = true;
    else
        complain(conds->j, w, stay);
}

static size_t find_signalled(const struct nem_judge *j, struct signalled *all)
{
    size_t count = 0;
    for (size_t i = 0; i < j->round->ledger->count; i++) {
        const struct nem_entry *entry = &j->round->ledger->entries[i];
        if (entry->change == NEM_SIGNALLED && entry->ticket != 0)
            all[count++] = (struct signalled){ entry, false };
    }
    return count;
}

static int by_effect(const void *a, const void *b)
{
    const struct waking *x = a, *y = b;
    return (x->by > y->by) - (x->by < y->by);
}

void nem_judge_signals(struct nem_conds *conds)
{
    struct nem_judge *j = conds->j;
    struct wakings all = { 0 };
    find_wakings(conds, &all);
    if (!j->round->no_ledger && all.count > 0) {
        struct signalled *signalled =
            nem_alloc(j->round->ledger->count * sizeof(*signalled));
        size_t count = find_signalled(j, signalled);
        qsort(all.items, all.count, sizeof(*all.items), by_effect);
        for (size_t i = 0; i < all.count; i++)
            judge_waking(conds, signalled, count, &all.items[i]);
        free(signalled);
    }
    free(all.items);
}

void nem_judge_conditions(struct nem_judge *j)
{
    struct nem_conds conds = { .j = j };
    nem_sleeps_make(&conds);
    nem_judge_sleeps(&conds);
    if (!j->round->no_ledger)
        nem_judge_stays(&conds);
    nem_judge_signals(&conds);
    nem_judge_buffers(&conds);
    nem_stays_free(&conds);
    nem_sleeps_free(&conds);
}
