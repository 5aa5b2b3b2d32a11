/* SPDX-License-Identifier: Apache-2.0 */
/* L6 of a waiting writer, for readers that the server does not see: readers that enter a
 * reading of their own process write no READ, but no thread enters unasked (W21). If the
 * lock is retained, no thread enters after its process can know of the writer (K14). */
#include "judge_line.h"

#include <stdlib.h>

struct nem_joins {
    const struct nem_hold **holds; /* in the order of their returns */
    size_t count, size, next;
};

/* Whether the hold joined one that another thread of the process had before this one
 * asked. So the grant did not let it in, as it lets in the threads that wait at that time
 * (W23). */
static bool joined(const struct nem_hold *hold)
{
    const struct nem_tenure *t = hold->name ? hold->name->tenures : NULL;
    if (!hold->reading || !hold->asked || !t || t->next || t->downgraded ||
        t->granted->before >= hold->asked->at)
        return false;
    for (const struct nem_hold *h = hold->name->holds; h; h = h->next)
        if (h != hold && h->returned->at < hold->asked->at)
            return true;
    return false;
}

static int by_return(const void *a, const void *b)
{
    const struct nem_hold *x = *(const struct nem_hold *const *)a;
    const struct nem_hold *y = *(const struct nem_hold *const *)b;
    return (x->returned->at > y->returned->at) - (x->returned->at < y->returned->at);
}

struct nem_joins *nem_joins_make(const struct nem_judge *j)
{
    struct nem_joins *joins = nem_alloc(sizeof(*joins));
    for (size_t i = 0; i < j->hold_count; i++) {
        if (!joined(j->holds[i]))
            continue;
        joins->holds =
            nem_grow(joins->holds, joins->count, &joins->size, sizeof(struct nem_hold *));
        joins->holds[joins->count++] = j->holds[i];
    }
    if (joins->count)
        qsort(joins->holds, joins->count, sizeof(struct nem_hold *), by_return);
    return joins;
}

void nem_joins_free(struct nem_joins *joins)
{
    free(joins->holds);
    free(joins);
}

/* The time by which the asking thread's process has learned of a waiter, or has asked
 * (H8). */
static int64_t known_by(const struct nem_judge *j, const struct nem_entry *queued,
                        const struct nem_op *asked)
{
    int64_t by = queued->before;
    if (nem_retains(asked->lock))
        by += j->round->presence_ms * NEM_NS_PER_MS / 3 + nem_slack(j) +
              nem_stalled_ns(j, by, asked->at);
    return by;
}

/* `line` is the queue when the call returned. A writer in it that had queued before the
 * call began waited all the time, so also when the server was asked. */
static void judge_join(struct nem_judge *j, const struct nem_line *line,
                       const struct nem_hold *hold)
{
    const struct nem_op *asked = hold->asked, *returned = hold->returned;
    struct nem_entry during = { .change = NEM_LEASE,
                                .after = asked->at,
                                .before = returned->at };
    nem_judged(j, NEM_RULE_READS);
    for (size_t i = 0; i < line->waiter_count; i++) {
        const struct nem_waiter *w = &line->waiters[i];
        if (w->reading || known_by(j, w->queued, asked) >= asked->at ||
            !nem_waits(j, line, w, &during))
            continue;
        NEM_BREAKS(j, NEM_RULE_READS, asked->lock,
                   nem_keys_lost(j, asked->lock, w->queued->after, returned->at) ||
                       (nem_retains(asked->lock) &&
                        nem_disturbed(j, asked->process,
                                      asked->at - (known_by(j, w->queued, asked) -
                                                   w->queued->before),
                                      asked->at)),
                   "%s asked to read at %.3f ms and entered a reading of its process by "
                   "%.3f ms (%s); %s waited since %.3f ms to write",
                   nem_who(asked), nem_ms(j, asked->at), nem_ms(j, returned->at),
                   hold->name->text, w->queued->id, nem_ms(j, w->queued->before));
        return;
    }
}

void nem_judge_joins(struct nem_judge *j, const struct nem_line *lines,
                     struct nem_joins *joins, int64_t until)
{
    for (; joins->next < joins->count; joins->next++) {
        const struct nem_hold *hold = joins->holds[joins->next];
        if (hold->returned->at >= until)
            return;
        judge_join(j, &lines[hold->returned->lock], hold);
    }
}
