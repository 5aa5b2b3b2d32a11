/* SPDX-License-Identifier: Apache-2.0 */
/* S1: compares the workers' beliefs with each other, without the server. */
#include "judge_impl.h"

#include <stdlib.h>
#include <string.h>

/* A time in which a thread validated its hold, in one mode. */
struct interval {
    const struct nem_hold *hold;
    int64_t from, to;
    bool reading;
};

struct sweep {
    struct interval *items;
    size_t count, size;
};

static void add(struct sweep *sweep, const struct nem_hold *hold, int64_t from,
                int64_t to, bool reading)
{
    if (to < from)
        return;
    sweep->items =
        nem_grow(sweep->items, sweep->count, &sweep->size, sizeof(*sweep->items));
    sweep->items[sweep->count++] = (struct interval){ hold, from, to, reading };
}

static void add_hold(struct sweep *sweep, const struct nem_hold *hold)
{
    int64_t from = hold->returned->at, to = hold->until, turn = hold->downgraded;
    if (to == 0)
        return;
    if (turn == 0 || hold->reading) {
        add(sweep, hold, from, to, hold->reading);
    } else {
        add(sweep, hold, from, to < turn ? to : turn, false);
        add(sweep, hold, turn, to, true);
    }
}

static int by_lock_and_begin(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    unsigned lock_x = x->hold->returned->lock, lock_y = y->hold->returned->lock;
    if (lock_x != lock_y)
        return lock_x < lock_y ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

static void judge_pair(struct nem_judge *j, const struct interval *a,
                       const struct interval *b)
{
    unsigned lock = a->hold->returned->lock;
    int64_t since_a = nem_granted_after(a->hold), since_b = nem_granted_after(b->hold);
    /* the fault that made them overlap met the first hold, before both were believed
     * in */
    /* how long a robbed holder may believe is judged by the rule told */
    int64_t both = a->from > b->from ? a->from : b->from;
    bool excused = nem_excluded(j, lock, since_a < since_b ? since_a : since_b, both) ||
                   nem_force_took_before(j, a->hold, b->hold) ||
                   nem_force_took_before(j, b->hold, a->hold) ||
                   nem_lost_by_failover(j, a->hold, b->hold, both) ||
                   nem_lost_by_failover(j, b->hold, a->hold, both);
    NEM_BREAKS(j, NEM_RULE_EXCLUSION, lock, excused,
               "%s %s from %.3f to %.3f ms (%s), and %s %s from %.3f to %.3f ms (%s)",
               nem_who(a->hold->returned), a->reading ? "reads" : "holds",
               nem_ms(j, a->from), nem_ms(j, a->to), a->hold->returned->id,
               nem_who(b->hold->returned), b->reading ? "reads" : "holds",
               nem_ms(j, b->from), nem_ms(j, b->to), b->hold->returned->id);
}

/* Compares it with the intervals that began before it and have not ended. */
static void judge_one(struct nem_judge *j, struct interval **active, size_t *count,
                      struct interval *next)
{
    size_t kept = 0;
    bool met = false;
    for (size_t i = 0; i < *count; i++) {
        struct interval *other = active[i];
        if (other->hold->returned->lock != next->hold->returned->lock)
            continue;
        met |= other->hold != next->hold && !(other->reading && next->reading);
        if (other->to > next->from && other->hold != next->hold &&
            !(other->reading && next->reading))
            judge_pair(j, other, next);
        if (other->to > next->from || i + 1 == *count) /* the previous one is always
                                                          compared */
            active[kept++] = other;
    }
    if (met)
        nem_judged(j, NEM_RULE_EXCLUSION);
    active[kept++] = next;
    *count = kept;
}

void nem_judge_exclusion(struct nem_judge *j)
{
    struct sweep sweep = { 0 };
    for (size_t i = 0; i < j->hold_count; i++)
        add_hold(&sweep, j->holds[i]);
    if (sweep.count)
        qsort(sweep.items, sweep.count, sizeof(*sweep.items), by_lock_and_begin);
    struct interval **active = nem_alloc((sweep.count + 1) * sizeof(*active));
    size_t count = 0;
    for (size_t i = 0; i < sweep.count; i++)
        judge_one(j, active, &count, &sweep.items[i]);
    free(active);
    free(sweep.items);
}
