/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for conditions, by the workers' records alone: what they returned, when, and with
 * how many levels of the lock. */
#include "judge_cond.h"

#include <stdlib.h>
#include <string.h>

/* ---- the waits of all threads */

static struct nem_sleep *sleep_make(struct nem_conds *conds, const struct nem_life *life,
                                    const struct nem_op *invoke)
{
    conds->sleeps = nem_grow(conds->sleeps, conds->sleep_count, &conds->sleep_size,
                             sizeof(*conds->sleeps));
    struct nem_sleep *sleep = &conds->sleeps[conds->sleep_count++];
    *sleep = (struct nem_sleep){ .life = life, .invoke = invoke };
    return sleep;
}

/* What a record says about the thread's open wait. */
static void sleep_learn(struct nem_sleep *sleep, const struct nem_op *op)
{
    bool returns = op->what == NEM_RETURN;
    if (op->what == NEM_JOINING)
        sleep->joining = op;
    else if (returns && op->call == NEM_WAIT)
        sleep->awake = op;
    else if (returns && op->call == NEM_RETAKE)
        sleep->retaken = op;
    else if (op->what == NEM_WAITED)
        sleep->waited = op;
}

static bool same_thread(const struct nem_op *a, const struct nem_op *b)
{
    return a->process == b->process && a->life == b->life && a->thread == b->thread;
}

static void find_sleeps(struct nem_conds *conds)
{
    const struct nem_judge *j = conds->j;
    size_t life = 0, open = SIZE_MAX;
    for (size_t i = 0; i < j->op_count; i++) {
        const struct nem_op *op = j->ops[i];
        while (j->lives[life].process != op->process || j->lives[life].life != op->life)
            life++;
        if (i > 0 && !same_thread(op, j->ops[i - 1]))
            open = SIZE_MAX;
        if (op->what == NEM_INVOKE && op->call == NEM_WAIT) {
            open = conds->sleep_count;
            sleep_make(conds, &j->lives[life], op);
        } else if (open != SIZE_MAX) {
            sleep_learn(&conds->sleeps[open], op);
            if (op->what == NEM_WAITED)
                open = SIZE_MAX;
        }
    }
}

static int by_id(const void *a, const void *b)
{
    const struct nem_sleep *x = *(const struct nem_sleep *const *)a;
    const struct nem_sleep *y = *(const struct nem_sleep *const *)b;
    return strcmp(x->joining->id, y->joining->id);
}

void nem_sleeps_make(struct nem_conds *conds)
{
    find_sleeps(conds);
    conds->by_id = nem_alloc(conds->sleep_count * sizeof(*conds->by_id));
    for (size_t i = 0; i < conds->sleep_count; i++)
        if (conds->sleeps[i].joining)
            conds->by_id[conds->id_count++] = &conds->sleeps[i];
    if (conds->id_count > 0)
        qsort(conds->by_id, conds->id_count, sizeof(*conds->by_id), by_id);
}

void nem_sleeps_free(struct nem_conds *conds)
{
    free(conds->by_id);
    free(conds->sleeps);
}

struct nem_sleep *nem_sleep_of(const struct nem_conds *conds, const char *id)
{
    size_t low = 0, high = conds->id_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(conds->by_id[middle]->joining->id, id);
        if (order == 0)
            return conds->by_id[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

int64_t nem_slept_until(const struct nem_judge *j, const struct nem_sleep *sleep)
{
    int64_t until = j->round->given_up ? j->round->given_up : j->round->ended;
    if (sleep->awake)
        return sleep->awake->at;
    if (sleep->life->dying < until)
        until = sleep->life->dying;
    return sleep->life->over < until ? sleep->life->over : until;
}

/* ---- code */

static bool is_in_time(const struct nem_sleep *sleep)
{
    const struct nem_op *invoke = sleep->invoke;
    return invoke->deadline != 0 && sleep->waited->at >= invoke->deadline - NEM_ROUNDED;
}

/* Whether the wait may return its code. A refusal, or an end of the process, is a reason
 * for some. */
static bool may_return(const struct nem_judge *j, const struct nem_sleep *sleep)
{
    const struct nem_op *invoke = sleep->invoke, *waited = sleep->waited;
    switch (waited->code) {
    case 0:
        return true;
    case ESTALE:
        return sleep->awake && sleep->awake->code == ESTALE;
    case ETIMEDOUT:
        return is_in_time(sleep);
    case EOWNERDEAD:
    case ENOTRECOVERABLE:
        return nem_robust(invoke->lock);
    case EACCES:
        return nem_refused(j, invoke->at, waited->at);
    case ECANCELED:
        return sleep->life->dying <= waited->at;
    case NEM_CANCELLED_WAIT:
        return invoke->code == 1;
    default:
        return false;
    }
}

/* Whether the thread has the lock, unless the server refused that. */
static bool has_lock(const struct nem_sleep *sleep)
{
    int32_t code = sleep->waited->code;
    bool refused = sleep->retaken && !nem_taken(sleep->retaken->code);
    return nem_taken(code) || code == ETIMEDOUT ||
           (code == NEM_CANCELLED_WAIT && !refused);
}

/* The lock comes back as it was, or not at all (V9). */
static bool has_its_levels(const struct nem_sleep *sleep)
{
    uint8_t levels = sleep->waited->levels, before = sleep->invoke->levels;
    return levels == before || (levels == 0 && !has_lock(sleep));
}

static void judge_code(struct nem_judge *j, const struct nem_sleep *sleep)
{
    const struct nem_op *invoke = sleep->invoke, *waited = sleep->waited;
    nem_judged(j, NEM_RULE_CODE);
    if (!may_return(j, sleep))
        nem_violation(j, NEM_RULE_CODE, invoke->condition,
                      "%s: a wait from %.3f to %.3f ms gave %d", nem_who(invoke),
                      nem_ms(j, invoke->at), nem_ms(j, waited->at), waited->code);
    else if (!has_its_levels(sleep))
        nem_violation(j, NEM_RULE_CODE, invoke->condition,
                      "%s: a wait from %.3f to %.3f ms gave %d, and its lock has %u "
                      "levels, in place of %u",
                      nem_who(invoke), nem_ms(j, invoke->at), nem_ms(j, waited->at),
                      waited->code, waited->levels, invoke->levels);
}

/* ---- bound (V5): from the deadline on, the wait tells the server, and gives its lock up
 * if it has it still */

static void judge_bound(struct nem_judge *j, const struct nem_sleep *sleep)
{
    enum { CANCEL_MS = 100, JOIN_MS = 50 };
    const struct nem_op *invoke = sleep->invoke;
    int64_t ms = CANCEL_MS + JOIN_MS + j->round->commandtimeout_ms;
    int64_t by = invoke->deadline + ms * NEM_NS_PER_MS + nem_slack(j);
    int64_t until = nem_slept_until(j, sleep);
    if (invoke->deadline == 0 || (!sleep->awake && until <= by))
        return;
    nem_judged(j, NEM_RULE_BOUND);
    if (until > by && until > by + nem_stopped_ns(j, invoke->process, invoke->at, until))
        nem_violation(j, NEM_RULE_BOUND, invoke->condition,
                      "%s: a wait of %.3f ms was to be over by %.3f ms, and %s %.3f ms",
                      nem_who(invoke), nem_ms(j, invoke->at), nem_ms(j, by),
                      sleep->awake ? "was at" : "was not at", nem_ms(j, until));
}

void nem_judge_sleeps(struct nem_conds *conds)
{
    for (size_t i = 0; i < conds->sleep_count; i++) {
        const struct nem_sleep *sleep = &conds->sleeps[i];
        if (sleep->waited)
            judge_code(conds->j, sleep);
        judge_bound(conds->j, sleep);
    }
}
