/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers, by the workers' records alone: after the faults no thread sleeps for long for
 * an item that is there, or for room that there is, while nobody trades. Each change of a
 * buffer came with a signal; so one was lost.
 */
#include "judge_cond.h"

#include <stdlib.h>

struct trades {
    const struct nem_op **items; /* by time */
    size_t count, size;
};

static int by_time(const void *a, const void *b)
{
    const struct nem_op *x = *(const struct nem_op *const *)a;
    const struct nem_op *y = *(const struct nem_op *const *)b;
    return (x->at > y->at) - (x->at < y->at);
}

static unsigned buffer_of(unsigned condition)
{
    return condition / 3;
}

static void find_trades(const struct nem_judge *j, struct trades all[])
{
    for (size_t i = 0; i < j->op_count; i++) {
        const struct nem_op *op = j->ops[i];
        if (op->what != NEM_TRADED || buffer_of(op->condition) >= NEM_BUFFERS_MAX)
            continue;
        struct trades *t = &all[buffer_of(op->condition)];
        t->items = nem_grow(t->items, t->count, &t->size, sizeof(*t->items));
        t->items[t->count++] = op;
    }
    for (unsigned i = 0; i < NEM_BUFFERS_MAX; i++)
        if (all[i].count > 0)
            qsort(all[i].items, all[i].count, sizeof(*all[i].items), by_time);
}

/* Whether a thread that waits for the condition has no reason to. */
static bool is_served(unsigned condition, int count)
{
    unsigned buffer = buffer_of(condition);
    return condition == nem_buffer_items(buffer) ? count > 0
                                                 : count < (int)nem_buffer_size(buffer);
}

/* The index of the first trade after `at`. */
static size_t trade_after(const struct trades *t, int64_t at)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (t->items[middle]->at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void judge_idle(struct nem_judge *j, const struct nem_sleep *sleep, int64_t from,
                       int64_t to, int count)
{
    const struct nem_op *invoke = sleep->invoke;
    int64_t bound = j->round->patience_ms * NEM_NS_PER_MS + nem_slack(j);
    nem_judged(j, NEM_RULE_ITEMS);
    if (to - from > bound && to - from > bound + nem_stalled_ns(j, from, to) +
                                             nem_nobodys_ns(j, invoke->lock, from, to))
        nem_violation(j, NEM_RULE_ITEMS, invoke->condition,
                      "%s: sleeps since %.3f ms; from %.3f to %.3f ms there were %d "
                      "items, and nobody traded",
                      nem_who(invoke), nem_ms(j, invoke->at), nem_ms(j, from),
                      nem_ms(j, to), count);
}

static void judge_sleep(struct nem_judge *j, const struct trades *t,
                        const struct nem_sleep *sleep)
{
    unsigned condition = sleep->invoke->condition;
    int64_t at = sleep->invoke->at, until = nem_slept_until(j, sleep);
    if (at < j->round->calm)
        at = j->round->calm;
    if (until > j->round->ended)
        until = j->round->ended;
    for (size_t i = trade_after(t, at); at < until; i++) {
        int count = i > 0 ? t->items[i - 1]->code : 0;
        int64_t to = i < t->count && t->items[i]->at < until ? t->items[i]->at : until;
        if (is_served(condition, count))
            judge_idle(j, sleep, at, to, count);
        at = to;
    }
}

void nem_judge_buffers(struct nem_conds *conds)
{
    struct trades all[NEM_BUFFERS_MAX] = { 0 };
    find_trades(conds->j, all);
    for (size_t i = 0; i < conds->sleep_count; i++) {
        const struct nem_sleep *sleep = &conds->sleeps[i];
        unsigned buffer = buffer_of(sleep->invoke->condition);
        if (sleep->joining && buffer < NEM_BUFFERS_MAX)
            judge_sleep(conds->j, &all[buffer], sleep);
    }
    for (unsigned i = 0; i < NEM_BUFFERS_MAX; i++)
        free(all[i].items);
}
