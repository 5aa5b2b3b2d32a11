/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L3: how long nobody gets a lock of a cluster that nobody has. A failover may lose a
 * release, and the lock stays taken until its lease ends; and the waiters' node has to be
 * replaced first. For longer than both, and 2 s, no lock may stand still while a thread
 * waits for it. Where a process of its own is hindered, and while a fault that is no
 * failover keeps the lock closed, that time does not count.
 */
#include "judge_impl.h"

#include <stdlib.h>

enum { MORE_MS = 2000 };

/* A time for which a thread had the lock. */
struct span {
    unsigned lock;
    int64_t from, to;
};

/* When the thread had given it back, or had lost it; of a process that was killed, when
 * its lease had ended. */
static int64_t had_until(const struct nem_judge *j, const struct nem_hold *hold)
{
    int64_t last = j->ops[hold->last]->at;
    if (hold->unlocked)
        return hold->unlocked->at;
    if (hold->lost != 0)
        return hold->lost > last ? hold->lost : last;
    return hold->end > last ? hold->end : last;
}

static int by_lock_and_begin(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->lock != y->lock)
        return x->lock < y->lock ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

/* Those that touch each other become one. Returns how many are left. */
static size_t merge_spans(struct span *spans, size_t all)
{
    size_t count = 0;
    if (all == 0)
        return 0;
    qsort(spans, all, sizeof(*spans), by_lock_and_begin);
    for (size_t i = 1; i < all; i++) {
        struct span *last = &spans[count];
        if (spans[i].lock != last->lock || spans[i].from > last->to)
            spans[++count] = spans[i];
        else if (spans[i].to > last->to)
            last->to = spans[i].to;
    }
    return count + 1;
}

static size_t find_spans(const struct nem_judge *j, struct span *spans)
{
    for (size_t i = 0; i < j->hold_count; i++)
        spans[i] = (struct span){ j->holds[i]->returned->lock, j->holds[i]->returned->at,
                                  had_until(j, j->holds[i]) };
    return merge_spans(spans, j->hold_count);
}

/* The thread's own part of a hold: until it asks for the unlock. */
static int64_t section_end(const struct nem_judge *j, const struct nem_hold *hold)
{
    return hold->unlocking ? hold->unlocking->at : had_until(j, hold);
}

int64_t nem_long_sections_ns(const struct nem_judge *j, unsigned lock, int64_t from,
                             int64_t to)
{
    int64_t least = j->round->lease_ms * NEM_NS_PER_MS / 2, sum = 0;
    struct span *spans = nem_alloc((j->hold_count + 1) * sizeof(*spans));
    size_t count = 0;
    for (size_t i = 0; i < j->hold_count; i++) {
        int64_t begin = j->holds[i]->returned->at, end = section_end(j, j->holds[i]);
        if (j->holds[i]->returned->lock != lock || end - begin < least)
            continue;
        begin = begin > from ? begin : from;
        end = end < to ? end : to;
        if (begin < end)
            spans[count++] = (struct span){ lock, begin, end };
    }
    count = merge_spans(spans, count);
    for (size_t i = 0; i < count; i++)
        sum += spans[i].to - spans[i].from;
    free(spans);
    return sum;
}

/* The first one of the lock that ends after `at`. */
static size_t span_after(const struct span *spans, size_t count, unsigned lock,
                         int64_t at)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct span *s = &spans[middle];
        if (s->lock < lock || (s->lock == lock && s->to <= at))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How long the lock stood still in [from, to], without what faults explain. */
static int64_t stood_still(const struct nem_judge *j, const struct nem_op *invoke,
                           int64_t from, int64_t to)
{
    int64_t excused = nem_disturbed_ns(j, invoke->process, from, to) +
                      nem_nodes_closed_ns(j, invoke->lock, from, to);
    return to - from > excused ? to - from - excused : 0;
}

static int64_t until(const struct nem_judge *j, const struct nem_made *call)
{
    int64_t end = j->round->ended;
    if (call->ret)
        return call->ret->at;
    end = call->life->dying < end ? call->life->dying : end;
    return call->life->over < end ? call->life->over : end;
}

static void judge_wait(struct nem_judge *j, const struct span *spans, size_t count,
                       const struct nem_made *call)
{
    const struct nem_op *invoke = call->invoke;
    int64_t at = invoke->at, end = until(j, call), longest = 0, since = at;
    size_t i = span_after(spans, count, invoke->lock, at);
    while (at < end) {
        bool more = i < count && spans[i].lock == invoke->lock && spans[i].from < end;
        int64_t to = more ? spans[i].from : end;
        int64_t still = to > at ? stood_still(j, invoke, at, to) : 0;
        if (still > longest) {
            longest = still;
            since = at;
        }
        at = more ? spans[i++].to : end;
    }
    long ms = (long)(longest / NEM_NS_PER_MS);
    nem_judged(j, NEM_RULE_STUCK);
    if (ms > j->verdict->wait_ms)
        j->verdict->wait_ms = ms;
    if (ms > j->verdict->wait_bound_ms)
        nem_violation(j, NEM_RULE_STUCK, invoke->lock,
                      "%s: %s of %.3f ms: nobody had it from %.3f ms on for %ld ms",
                      nem_who(invoke), nem_call_name(invoke->call), nem_ms(j, invoke->at),
                      nem_ms(j, since), ms);
}

void nem_judge_waits(struct nem_judge *j)
{
    const struct nem_round *round = j->round;
    if (!nem_is_cluster(round->servers))
        return;
    j->verdict->wait_bound_ms = round->lease_ms + round->node_timeout_ms + MORE_MS;
    struct span *spans = nem_alloc((j->hold_count + 1) * sizeof(*spans));
    size_t count = find_spans(j, spans);
    for (size_t i = 0; i < j->made_count; i++) {
        const struct nem_made *call = &j->made[i];
        if (nem_is_acquire(call->invoke->call) && !nem_is_try(call->invoke->call) &&
            !call->hold)
            judge_wait(j, spans, count, call);
        else if (call->first && !nem_is_try(call->invoke->call))
            judge_wait(j, spans, count, call);
    }
    free(spans);
}
