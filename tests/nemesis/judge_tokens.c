/* SPDX-License-Identifier: Apache-2.0 */
/* S3, in the order in which the server granted; and that workers were told those tokens.
 */
#include "judge_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { US_PER_MS = 1000 };

struct line {           /* the tokens of a lock so far */
    uint64_t last;      /* the greatest that anybody was given */
    uint64_t granted;   /* that of the newest grant */
    uint64_t drawn;     /* what the counter was set to last... */
    uint64_t drawn_in;  /* ...in this transaction */
    uint64_t reading;   /* of the reading that goes on; 0: none */
    bool lost;          /* all data, since the last grant... */
    int64_t lost_after; /* ...not before */
};

/* Whether its holder may draw more than the one token of the grant: for threads that pass
 * a mutex on, or a lock to write, each of whose sections has its own (H11). */
static bool may_draw(const struct nem_entry *granted)
{
    bool writes =
        nem_type_of(granted->lock) == NEM_RWLOCK && granted->change == NEM_GRANTED;
    return nem_type_of(granted->lock) == NEM_MUTEX || writes;
}

/* How far the server's clock was set back in [from, to], us. */
static uint64_t set_back(const struct nem_judge *j, int64_t from, int64_t to)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        if (fault->kind == NEM_CLOCK_BACK && fault->begin >= from && fault->begin <= to)
            sum += (uint64_t)llabs(fault->amount) * US_PER_MS;
    }
    return sum;
}

/* S3 excludes lost data together with a clock that goes back. The driver loses data only
 * when the clock has caught up with all tokens (faults.h): so only a step between the
 * loss and the next grant lets a token fall, by no more than it, and none is given twice.
 */
static bool may_fall(const struct nem_judge *j, const struct line *line,
                     const struct nem_entry *entry)
{
    return line->lost && entry->token != 0 && entry->token < line->last &&
           line->last - entry->token <= set_back(j, line->lost_after, entry->before);
}

static void judge_growth(struct nem_judge *j, struct line *line,
                         const struct nem_entry *entry)
{
    nem_judged(j, NEM_RULE_TOKENS);
    if (line->drawn_in != entry->transaction && line->drawn > line->last)
        line->last = line->drawn; /* by a renewal of who was before, not for this one */
    if (entry->token <= line->last)
        NEM_BREAKS(j, NEM_RULE_TOKENS, entry->lock, may_fall(j, line, entry),
                   "%s was granted %" PRIu64 " between %.3f and %.3f ms, after %" PRIu64,
                   entry->id, entry->token, nem_ms(j, entry->after),
                   nem_ms(j, entry->before), line->last);
    line->lost = false;
    line->granted = line->last = entry->token;
}

static void judge_same(struct nem_judge *j, const struct nem_entry *entry, uint64_t token,
                       const char *whose)
{
    nem_judged(j, NEM_RULE_TOKENS);
    if (entry->token != token)
        nem_violation(j, NEM_RULE_TOKENS, entry->lock,
                      "%s has %" PRIu64 " since %.3f ms, not %" PRIu64 " as %s",
                      entry->id, entry->token, nem_ms(j, entry->after), token, whose);
}

/* A section of a writer who keeps the lock goes on to read with its own token, whichever
 * that is. Nothing is known of a worker whose records are missing. */
static void judge_section(struct nem_judge *j, const struct nem_entry *entry)
{
    const struct nem_name *name = nem_name_find(j, entry->id);
    uint64_t token = 0;
    for (const struct nem_hold *h = name ? name->holds : NULL; h; h = h->next) {
        if (h->reading || !h->turned || h->returned->token == 0 ||
            h->returned->at > entry->before ||
            (h->unlocked && h->unlocked->at < entry->after))
            continue;
        token = h->returned->token;
        if (token == entry->token)
            break;
    }
    if (token != 0)
        judge_same(j, entry, token, "its section");
}

static void judge_entry(struct nem_judge *j, struct line *line,
                        const struct nem_entry *entry)
{
    switch (entry->change) {
    case NEM_GRANTED:
        line->reading = 0;
        judge_growth(j, line, entry);
        break;
    case NEM_READ:
        if (entry->value != 0) /* the reading begins */
            line->reading = 0;
        if (line->reading != 0)
            judge_same(j, entry, line->reading, "the others who read");
        else
            judge_growth(j, line, entry);
        line->reading = entry->token;
        break;
    case NEM_DOWNGRADED: /* that of the section, of what was drawn since its grant */
        if (!nem_retains(entry->lock) || entry->token < line->granted ||
            entry->token > line->drawn)
            judge_same(j, entry, line->granted, "when it wrote");
        if (nem_retains(entry->lock))
            judge_section(j, entry);
        if (entry->token > line->last)
            line->last = entry->token;
        line->reading = entry->token;
        break;
    case NEM_TOKEN:
        if (line->drawn > line->last)
            line->last = line->drawn;
        line->drawn = entry->value;
        line->drawn_in = entry->transaction;
        break;
    default:
        break;
    }
}

/* Readers of one transaction begin the reading together. */
static bool joins_in(const struct nem_entry *entry, const struct nem_entry *opener)
{
    return opener && entry->change == NEM_READ && entry->lock == opener->lock &&
           entry->transaction == opener->transaction;
}

static void lose(struct line *lines, int64_t after)
{
    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++) {
        lines[i].lost = true;
        lines[i].lost_after = after;
    }
}

static void judge_ledger(struct nem_judge *j)
{
    struct line *lines = nem_alloc(NEM_LOCKS_MAX * sizeof(*lines));
    const struct nem_entry *opener = NULL;
    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++)
        lines[i].last = j->round->last_token[i];
    lose(lines, j->round->started); /* each round's server begins empty */
    for (size_t i = 0; i < j->round->ledger->count; i++) {
        const struct nem_entry *entry = &j->round->ledger->entries[i];
        if (entry->change == NEM_LOST_DATA)
            lose(lines, entry->after);
        if (entry->lock >= NEM_LOCKS_MAX || !nem_fencing(entry->lock))
            continue;
        struct line *line = &lines[entry->lock];
        if (joins_in(entry, opener))
            judge_same(j, entry, line->reading, "the others who read");
        else
            judge_entry(j, line, entry);
        if (entry->change == NEM_READ || entry->change == NEM_DOWNGRADED)
            opener = entry;
    }
    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++)
        if (lines[i].last > j->round->last_token[i])
            j->round->last_token[i] = lines[i].last;
    free(lines);
}

/* ---- what the workers saw */

/* A block is drawn by a renewal, which the ledger knows by the counter: its last. It
 * begins behind what the counter was. */
static bool is_in_block(const struct nem_entry *drawn, uint64_t token)
{
    return token > drawn->token && token <= drawn->value &&
           drawn->value - token < NEM_TOKEN_BLOCK;
}

static bool drew(const struct nem_judge *j, const struct nem_tenure *t, uint64_t token)
{
    const struct nem_entry *end = j->round->ledger->entries + j->round->ledger->count;
    for (const struct nem_entry *e = t->granted; e < end && e != t->left; e++)
        if (e->change == NEM_TOKEN && e->lock == t->granted->lock &&
            is_in_block(e, token))
            return true;
    return false;
}

static bool server_says(const struct nem_judge *j, const struct nem_op *op)
{
    const struct nem_name *name = nem_name_find(j, op->id);
    for (const struct nem_tenure *t = name ? name->tenures : NULL; t; t = t->next)
        if (op->token == t->granted->token ||
            (may_draw(t->granted) && drew(j, t, op->token)))
            return true;
    return !name || !name->tenures; /* then that is what is wrong: rule grant */
}

void nem_judge_tokens(struct nem_judge *j)
{
    judge_ledger(j);
    for (size_t i = 0; i < j->op_count; i++) {
        const struct nem_op *op = j->ops[i];
        bool taken =
            op->what == NEM_RETURN && nem_is_acquire(op->call) && nem_taken(op->code);
        if (!op->id[0] || op->lock >= NEM_LOCKS_MAX || !nem_fencing(op->lock) ||
            op->what == NEM_EVENT || (op->token == 0 && !taken))
            continue;
        nem_judged(j, NEM_RULE_TOKENS);
        if (!server_says(j, op))
            nem_violation(j, NEM_RULE_TOKENS, op->lock,
                          "%s: was told %" PRIu64 " at %.3f ms, which the server did not "
                          "give to %s",
                          nem_who(op), op->token, nem_ms(j, op->at), op->id);
    }
}
