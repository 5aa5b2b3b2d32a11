/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the records say by themselves, for rounds without a ledger: S3, and how often a
 * lock went from one process to another. A hold that had begun before another one was
 * requested was granted before it, so its token is smaller. No failover excuses anything:
 * tokens begin at the server's clock, also at a master that has lost the last one.
 */
#include "judge_impl.h"

#include <stdlib.h>

struct tokens {
    /* the greatest so far of holds that write, and of those that read: these may share
     * theirs with another one that reads */
    uint64_t written, read;
};

static int64_t asked_at(const struct nem_hold *hold)
{
    return hold->asked ? hold->asked->at : hold->returned->at;
}

static unsigned lock_of(const struct nem_hold *hold)
{
    return hold->returned->lock;
}

static int by_request(const void *a, const void *b)
{
    const struct nem_hold *x = *(const struct nem_hold *const *)a;
    const struct nem_hold *y = *(const struct nem_hold *const *)b;
    return (asked_at(x) > asked_at(y)) - (asked_at(x) < asked_at(y));
}

static int by_return(const void *a, const void *b)
{
    const struct nem_hold *x = *(const struct nem_hold *const *)a;
    const struct nem_hold *y = *(const struct nem_hold *const *)b;
    return (x->returned->at > y->returned->at) - (x->returned->at < y->returned->at);
}

static const struct nem_hold **sorted(const struct nem_judge *j,
                                      int (*order)(const void *, const void *))
{
    const struct nem_hold **holds = nem_alloc((j->hold_count + 1) * sizeof(*holds));
    for (size_t i = 0; i < j->hold_count; i++)
        holds[i] = j->holds[i];
    if (j->hold_count)
        qsort(holds, j->hold_count, sizeof(*holds), order);
    return holds;
}

static bool has_token(const struct nem_hold *hold)
{
    return lock_of(hold) < NEM_LOCKS_MAX && nem_fencing(lock_of(hold)) &&
           hold->returned->token != 0;
}

static void learn(struct tokens *before, const struct nem_hold *hold)
{
    uint64_t *most = hold->reading || hold->turned ? &before->read : &before->written;
    if (hold->returned->token > *most)
        *most = hold->returned->token;
}

/* A reader that retains the lock, and reads again: the server granted it once, in the
 * order of that time. If a failover has lost this grant meanwhile, the reader does not
 * know yet; exclusion has an excuse for it, or none. */
static bool was_granted_before(const struct nem_hold *hold)
{
    const struct nem_hold *h = hold->name ? hold->name->holds : NULL;

    while (h && !(h->reading && h->returned->token == hold->returned->token &&
                  h->returned->at < hold->returned->at))
        h = h->next;
    return hold->reading && h;
}

static void judge_token(struct nem_judge *j, const struct tokens *before,
                        const struct nem_hold *hold)
{
    if (was_granted_before(hold))
        return;
    uint64_t token = hold->returned->token;
    uint64_t least = before->written + 1;
    uint64_t read = hold->reading ? before->read : before->read + 1;
    least = read > least ? read : least;
    nem_judged(j, NEM_RULE_TOKENS);
    if (token < least)
        nem_violation(j, NEM_RULE_TOKENS, lock_of(hold),
                      "%s: asked at %.3f ms and got %llu at %.3f ms; %llu had been given "
                      "before (%s)",
                      nem_who(hold->returned), nem_ms(j, asked_at(hold)),
                      (unsigned long long)token, nem_ms(j, hold->returned->at),
                      (unsigned long long)(before->written > before->read
                                               ? before->written
                                               : before->read),
                      hold->returned->id);
}

/* Goes through the requests and through the returns at once, both in order. */
static void judge_growth(struct nem_judge *j, const struct nem_hold **returned)
{
    struct tokens *before = nem_alloc(NEM_LOCKS_MAX * sizeof(*before));
    const struct nem_hold **asked = sorted(j, by_request);
    size_t next = 0;

    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++)
        before[i].written = j->round->last_token[i];
    for (size_t i = 0; i < j->hold_count; i++) {
        for (; next < j->hold_count && returned[next]->returned->at < asked_at(asked[i]);
             next++)
            if (has_token(returned[next]))
                learn(&before[lock_of(returned[next])], returned[next]);
        if (has_token(asked[i]))
            judge_token(j, &before[lock_of(asked[i])], asked[i]);
    }
    for (; next < j->hold_count; next++)
        if (has_token(returned[next]))
            learn(&before[lock_of(returned[next])], returned[next]);
    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++)
        j->round->last_token[i] =
            before[i].written > before[i].read ? before[i].written : before[i].read;
    free(asked);
    free(before);
}

static void count_handovers(struct nem_judge *j, const struct nem_hold **returned)
{
    const struct nem_hold *last[NEM_LOCKS_MAX] = { NULL };
    for (size_t i = 0; i < j->hold_count; i++) {
        const struct nem_hold **before = &last[lock_of(returned[i]) % NEM_LOCKS_MAX];
        j->verdict->handovers += *before && (*before)->life != returned[i]->life;
        *before = returned[i];
    }
}

void nem_judge_records(struct nem_judge *j)
{
    const struct nem_hold **returned = sorted(j, by_return);
    judge_growth(j, returned);
    count_handovers(j, returned);
    free(returned);
}
