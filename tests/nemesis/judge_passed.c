/* SPDX-License-Identifier: Apache-2.0 */
/* Holds that threads of a process passed on among themselves, unseen by the server: one
 * after the other (H1), only of a kind that may be passed on, and not for long while
 * others waited at the server (H6, H8). */
#include "judge_impl.h"

#include <stdlib.h>
#include <string.h>

enum { BUDGET_MS = 10 };

static unsigned lock_of(const struct nem_hold *hold)
{
    return hold->returned->lock;
}

/* Whether `next` may have got the hold of `hold`, by the same id: then neither has a
 * fixed lease. */
static bool follows(const struct nem_hold *hold, const struct nem_hold *next)
{
    return hold->life == next->life && lock_of(hold) == lock_of(next) && !hold->fixed &&
           !(next->asked && next->asked->lease_ms) && hold->unlocking &&
           hold->unlocking->at <= next->returned->at;
}

bool nem_passed_on(const struct nem_hold *a, const struct nem_hold *b)
{
    return nem_passes(lock_of(a)) && !a->reading && !b->reading &&
           (follows(a, b) || follows(b, a));
}

/* ---- waiters at the server */

struct wait {
    const char *id;
    int64_t from, to; /* the waiter surely waits from, to */
};

struct waits { /* those of a lock */
    struct wait *items;
    size_t count, size;
};

static void find_waits(const struct nem_judge *j, struct waits *all)
{
    for (size_t i = 0; i < j->round->ledger->count; i++) {
        const struct nem_entry *entry = &j->round->ledger->entries[i];
        if (entry->lock >= NEM_LOCKS_MAX)
            continue;
        struct waits *waits = &all[entry->lock];
        if (entry->change == NEM_QUEUED) {
            waits->items =
                nem_grow(waits->items, waits->count, &waits->size, sizeof(struct wait));
            waits->items[waits->count++] =
                (struct wait){ entry->id, entry->before, INT64_MAX };
        } else if (entry->change == NEM_UNQUEUED || entry->change == NEM_GRANTED) {
            for (size_t w = waits->count; w-- > 0;)
                if (waits->items[w].to == INT64_MAX &&
                    strcmp(waits->items[w].id, entry->id) == 0) {
                    waits->items[w].to = entry->after;
                    break;
                }
        }
    }
}

static bool same_client(const char *id, const char *other)
{
    size_t len = strcspn(id, ":");
    return len == strcspn(other, ":") && memcmp(id, other, len) == 0;
}

/* ---- the bound */

/* The latest time of the server's grant. */
static int64_t granted_by(const struct nem_hold *hold)
{
    for (const struct nem_tenure *t = hold->name->tenures; t; t = t->next)
        if (!t->left || t->left->before >= hold->returned->at)
            return t->granted->before;
    return hold->returned->at;
}

/* Each section has its own token (H11). */
static void judge_token(struct nem_judge *j, const struct nem_hold *hold,
                        const struct nem_hold *next)
{
    if (!nem_fencing(lock_of(next)))
        return;
    nem_judged(j, NEM_RULE_TOKENS);
    if (next->returned->token <= hold->returned->token)
        nem_violation(j, NEM_RULE_TOKENS, lock_of(next),
                      "%s: has %llu at %.3f ms, the section before it %llu",
                      nem_who(next->returned), (unsigned long long)next->returned->token,
                      nem_ms(j, next->returned->at),
                      (unsigned long long)hold->returned->token);
}

/* `next` may begin when `hold` has been unlocked. The bound counts from when both exist,
 * the hold and the waiter. */
static void judge_next(struct nem_judge *j, const struct waits *waits,
                       const struct nem_hold *hold, const struct nem_hold *next)
{
    const int64_t period = j->round->presence_ms * NEM_NS_PER_MS / 3;
    /* a process that knows of a waiter does not pass on a write lock (W25) */
    const int64_t budget =
        nem_type_of(lock_of(next)) == NEM_MUTEX ? BUDGET_MS * NEM_NS_PER_MS : 0;
    int64_t began = hold->unlocking->at, granted = granted_by(hold);

    nem_judged(j, NEM_RULE_PASSED);
    for (size_t i = 0; i < waits->count; i++) {
        const struct wait *w = &waits->items[i];
        int64_t from = w->from > granted ? w->from : granted;
        int64_t bound = from + period + budget + nem_slack(j);
        if (w->from == INT64_MAX || same_client(w->id, hold->name->text) ||
            w->to < next->returned->at || began <= bound ||
            began <= bound + nem_stalled_ns(j, from, began))
            continue;
        NEM_BREAKS(j, NEM_RULE_PASSED, lock_of(next),
                   nem_disturbed(j, next->life->process, from, began),
                   "%s: got it by %.3f ms from its own process (%s), though %s waited "
                   "since %.3f ms",
                   nem_who(next->returned), nem_ms(j, next->returned->at),
                   next->name->text, w->id, nem_ms(j, w->from));
        return;
    }
}

static int by_return(const void *a, const void *b)
{
    const struct nem_hold *x = *(const struct nem_hold *const *)a;
    const struct nem_hold *y = *(const struct nem_hold *const *)b;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return (x->returned->at > y->returned->at) - (x->returned->at < y->returned->at);
}

void nem_judge_passed(struct nem_judge *j)
{
    struct waits *all = nem_alloc(NEM_LOCKS_MAX * sizeof(*all));
    const struct nem_hold **holds = nem_alloc((j->hold_count + 1) * sizeof(*holds));
    size_t count = 0;

    find_waits(j, all);
    for (size_t i = 0; i < j->hold_count; i++)
        if (j->holds[i]->name && !j->holds[i]->reading &&
            lock_of(j->holds[i]) < NEM_LOCKS_MAX)
            holds[count++] = j->holds[i];
    if (count > 0)
        qsort(holds, count, sizeof(*holds), by_return);
    for (size_t i = 1; i < count; i++)
        if (holds[i]->name == holds[i - 1]->name && follows(holds[i - 1], holds[i])) {
            if (!j->round->no_ledger)
                judge_next(j, &all[lock_of(holds[i])], holds[i - 1], holds[i]);
            judge_token(j, holds[i - 1], holds[i]);
        }
    for (unsigned lock = 0; lock < NEM_LOCKS_MAX; lock++)
        free(all[lock].items);
    free(all);
    free(holds);
}
