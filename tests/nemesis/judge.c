/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_impl.h"

#include "die.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Percent of a round. Stalls disturb and excuse: a round full of them would break no
 * rule. */
enum { STALLED_MOST = 33 };

const char *nem_rule_name(enum nem_rule rule)
{
    static const char *const names[NEM_RULES] = {
        [NEM_RULE_EXCLUSION] = "exclusion", [NEM_RULE_TOKENS] = "tokens",
        [NEM_RULE_GRANT] = "grant",         [NEM_RULE_PASSED] = "passed",
        [NEM_RULE_BELIEF] = "belief",       [NEM_RULE_OWNER] = "owner",
        [NEM_RULE_HOLDS] = "holds",         [NEM_RULE_UNLOCK] = "unlock",
        [NEM_RULE_TOLD] = "told",           [NEM_RULE_LOSS] = "loss",
        [NEM_RULE_KEPT] = "kept",           [NEM_RULE_CODE] = "code",
        [NEM_RULE_BOUND] = "bound",         [NEM_RULE_ORDER] = "order",
        [NEM_RULE_READS] = "reads",         [NEM_RULE_WRITES] = "writes",
        [NEM_RULE_PROMPT] = "prompt",       [NEM_RULE_STARVED] = "starved",
        [NEM_RULE_STUCK] = "stuck",         [NEM_RULE_HUNG] = "hung",
        [NEM_RULE_LEAK] = "leak",           [NEM_RULE_RESIDUE] = "residue",
        [NEM_RULE_GROWS] = "grows",         [NEM_RULE_SPINS] = "spins",
        [NEM_RULE_BURIED] = "buried",       [NEM_RULE_CUT] = "cut",
        [NEM_RULE_DEAD] = "dead",           [NEM_RULE_SOON] = "soon",
    };
    return (unsigned)rule < NEM_RULES ? names[rule] : "?";
}

bool nem_rule_needs_ledger(enum nem_rule rule)
{
    switch (rule) {
    case NEM_RULE_GRANT:
    case NEM_RULE_PASSED:
    case NEM_RULE_BELIEF:
    case NEM_RULE_OWNER:
    case NEM_RULE_HOLDS:
    case NEM_RULE_ORDER:
    case NEM_RULE_READS:
    case NEM_RULE_WRITES:
    case NEM_RULE_PROMPT:
    case NEM_RULE_RESIDUE:
    case NEM_RULE_BURIED:
    case NEM_RULE_DEAD:
    case NEM_RULE_SOON:
        return true;
    default:
        return false;
    }
}

void *nem_alloc(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    if (!memory)
        test_die("out of memory");
    return memory;
}

void *nem_grow(void *items, size_t count, size_t *size, size_t width)
{
    if (count < *size)
        return items;
    *size = *size ? 2 * *size : 64;
    items = realloc(items, *size * width);
    if (!items)
        test_die("out of memory");
    return items;
}

double nem_ms(const struct nem_judge *j, int64_t at)
{
    return (double)(at - j->round->started) / (double)NEM_NS_PER_MS;
}

const char *nem_who(const struct nem_op *op)
{
    enum { BUFFERS = 4, LEN = 40 };
    static _Thread_local char texts[BUFFERS][LEN];
    static _Thread_local unsigned next;
    char *text = texts[next++ % BUFFERS];
    snprintf(text, LEN, "%u.%u (life %u)", op->process, op->thread, op->life);
    return text;
}

void nem_violation(struct nem_judge *j, enum nem_rule rule, unsigned lock,
                   const char *format, ...)
{
    va_list args;
    if (j->verdict->violations[rule]++ >= j->limit)
        return;
    fprintf(j->out, "violation of %s: ", nem_rule_name(rule));
    if (lock != NEM_ALL)
        fprintf(j->out, "nemesis%u: ", lock);
    va_start(args, format);
    vfprintf(j->out, format, args);
    va_end(args);
    fputc('\n', j->out);
}

static void count(struct nem_judge *j)
{
    for (size_t i = 0; i < j->made_count; i++) {
        j->verdict->operations++;
        j->verdict->successes += j->made[i].first;
    }
    for (size_t i = 0; i < j->hold_count; i++)
        j->verdict->losses += j->holds[i]->lost != 0;
    for (size_t i = 0; i < j->tenure_count; i++)
        j->verdict->handovers += j->tenures[i]->granted->ticket != 0;
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        bool turns = nem_fails_over(fault->kind) || fault->kind == NEM_ROLLING_RESTART;
        j->verdict->failovers += turns ? fault->hits : 0;
    }
}

/* The rules that compare the records with the ledger. */
static void judge_by_ledger(struct nem_judge *j)
{
    nem_judge_tokens(j);
    nem_judge_server(j);
    nem_judge_order(j);
    nem_judge_deaths(j);
}

void nem_judge(struct nem_round *round, struct nem_verdict *verdict, FILE *out,
               unsigned limit)
{
    struct nem_judge *j = nem_alloc(sizeof(*j));
    memset(verdict, 0, sizeof(*verdict));
    j->round = round;
    j->verdict = verdict;
    j->out = out;
    j->limit = limit;
    nem_index_make(j);
    nem_time_make(j);
    count(j);
    verdict->stalled_percent = nem_stalled_percent(j);
    verdict->inconclusive = verdict->stalled_percent > STALLED_MOST;
    nem_judge_exclusion(j);
    nem_judge_holds(j);
    nem_judge_losses(j);
    nem_judge_forces(j);
    nem_judge_calls(j);
    nem_judge_cuts(j);
    nem_judge_waits(j);
    nem_judge_passed(j);
    if (round->no_ledger)
        nem_judge_records(j);
    else
        judge_by_ledger(j);
    nem_judge_ends(j);
    nem_time_free(j);
    nem_index_free(j);
    free(j);
}
