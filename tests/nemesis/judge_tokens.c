/* SPDX-License-Identifier: Apache-2.0 */
/* S3, in the order of the server's grants; and that the workers got those tokens. */
#include "judge_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { US_PER_MS = 1000 };

struct line {           /* the tokens of a lock so far */
    uint64_t last;      /* the greatest that a client got */
    uint64_t granted;   /* that of the newest grant */
    uint64_t drawn;     /* what the counter was set to last... */
    uint64_t drawn_in;  /* ...in this transaction */
    uint64_t reading;   /* of the current reading; 0: none */
    bool lost;          /* all data was lost since the last grant... */
    int64_t lost_after; /* ...not before */
};

/* Whether the holder may draw more tokens than that of the grant: for threads that pass
 * on a mutex or a write lock, because each section has its own token (H11). */
static bool may_draw(const struct nem_entry *granted)
{
    bool writes =
        nem_type_of(granted->lock) == NEM_RWLOCK && granted->change == NEM_GRANTED;
    return nem_type_of(granted->lock) == NEM_MUTEX || writes;
}

/* By how much the server's clock was set back in [from, to], in us. */
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
 * when the clock has caught up with all tokens (faults.h). So only a step between the
 * loss and the next grant lets a token fall, by no more than the step, and no token is
 * given twice. */
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
        line->last = line->drawn; /* drawn by a renewal of an earlier holder, not for this
                                     grant */
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

/* A writer that retains the lock and downgrades reads on with the token of its section,
 * which only its records show. Records of a killed worker may be missing. */
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
    case NEM_DOWNGRADED: /* the token of the section, one of those drawn since its
                            grant */
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
    lose(lines, j->round->started); /* each round begins with an empty server */
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

/* ---- the workers' tokens */

/* A renewal draws a block. The ledger shows the counter before it and after it, which is
 * the block's last token. */
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
    return !name || !name->tenures; /* then it breaks the rule grant */
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
                          "%s: got %" PRIu64 " at %.3f ms, which the server did not "
                          "give to %s",
                          nem_who(op), op->token, nem_ms(j, op->at), op->id);
    }
}
