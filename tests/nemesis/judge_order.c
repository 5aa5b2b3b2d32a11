/* SPDX-License-Identifier: Apache-2.0 */
/* Fair order, and that a free lock is handed over in time: by the ledger alone. */
#include "judge_line.h"

#include <stdlib.h>
#include <string.h>

/* ---- the state of a lock */

bool nem_same_client(const char *id, const char *other)
{
    size_t len = strcspn(id, ":");
    return len == strcspn(other, ":") && memcmp(id, other, len) == 0;
}

static struct nem_waiter *waiter_find(const struct nem_line *line, const char *id)
{
    for (size_t i = 0; i < line->waiter_count; i++)
        if (strcmp(line->waiters[i].queued->id, id) == 0)
            return &line->waiters[i];
    return NULL;
}

const struct nem_waiter *nem_waiter_find(const struct nem_line *line, const char *id)
{
    return waiter_find(line, id);
}

static struct nem_holder *holder_find(const struct nem_line *line, const char *id)
{
    for (size_t i = 0; i < line->holder_count; i++)
        if (strcmp(line->holders[i].id, id) == 0)
            return &line->holders[i];
    return NULL;
}

static uint64_t present_until(const struct nem_line *line, const char *id)
{
    for (size_t i = 0; i < line->present_count; i++)
        if (nem_same_client(line->present[i].uuid, id))
            return line->present[i].until;
    return 0;
}

/* Whether the server had to find it present, with or without a listener. */
static bool is_present(const struct nem_judge *j, const struct nem_line *line,
                       const struct nem_waiter *waiter, const struct nem_entry *entry)
{
    enum { US_PER_MS = 1000 };
    uint64_t now =
        entry->value && (entry->change == NEM_GRANTED || entry->change == NEM_READ)
            ? entry->value / US_PER_MS
            : nem_server_latest(j, entry);
    return waiter->life && entry->before != INT64_MAX &&
           waiter->life->dying > entry->before &&
           present_until(line, waiter->queued->id) > now; /* both are cut to ms */
}

bool nem_waits(const struct nem_judge *j, const struct nem_line *line,
               const struct nem_waiter *waiter, const struct nem_entry *entry)
{
    return is_present(j, line, waiter, entry) &&
           !nem_deaf(j, waiter->life->process, entry->after, entry->before);
}

/* ---- order (L5) */

static bool has(const struct nem_step *step, enum nem_change change, const char *id)
{
    for (size_t i = 0; i < step->count; i++)
        if (step->first[i].change == change && strcmp(step->first[i].id, id) == 0)
            return true;
    return false;
}

/* Whether the waiter itself gave up. Then it has a marker, unless an ACL refused the
 * cancel. */
static bool gave_up(const struct nem_judge *j, const struct nem_step *step,
                    const char *id)
{
    return has(step, NEM_MARKED, id) ||
           nem_refused(j, step->first->after, step->first->before);
}

/* The fair order is that of arrival, whatever the tickets say. */
static void judge_turn(struct nem_judge *j, const struct nem_line *line,
                       const struct nem_step *step, const struct nem_entry *entry)
{
    const struct nem_waiter *own = nem_waiter_find(line, entry->id);
    bool judged = false;
    for (size_t i = 0; i < line->waiter_count; i++) {
        const struct nem_waiter *w = &line->waiters[i];
        if (strcmp(w->queued->id, entry->id) == 0 ||
            (w->gone && gave_up(j, step, w->queued->id)) || !nem_waits(j, line, w, entry))
            continue;
        judged = true;
        if (own && w->queued->number > own->queued->number)
            continue;
        nem_violation(
            j, NEM_RULE_ORDER, entry->lock,
            "%s (ticket %llu) got it between %.3f and %.3f ms before %s (ticket "
            "%llu), who was there",
            entry->id, (unsigned long long)entry->ticket, nem_ms(j, entry->after),
            nem_ms(j, entry->before), w->queued->id,
            (unsigned long long)w->queued->value);
    }
    if (judged)
        nem_judged(j, NEM_RULE_ORDER);
}

/* A waiter leaves the queue by a grant or because it gives up, also while it has no
 * listener: if a script dropped it, it would have to queue again. */
static void judge_dropped(struct nem_judge *j, const struct nem_line *line,
                          const struct nem_step *step, const struct nem_entry *entry)
{
    const struct nem_waiter *w = nem_waiter_find(line, entry->id);
    if (!w || !is_present(j, line, w, entry) ||
        nem_keys_lost(j, entry->lock, entry->after, entry->before))
        return;
    nem_judged(j, NEM_RULE_ORDER);
    if (gave_up(j, step, entry->id) || has(step, NEM_GRANTED, entry->id) ||
        has(step, NEM_READ, entry->id))
        return;
    nem_violation(j, NEM_RULE_ORDER, entry->lock,
                  "%s was dropped from its queue between %.3f and %.3f ms; it had waited "
                  "since %.3f ms and was there",
                  entry->id, nem_ms(j, entry->after), nem_ms(j, entry->before),
                  nem_ms(j, w->queued->before));
}

/* ---- prompt (L1, L2, L4) */

/* The time until which a client counts as present for a transaction, which may include
 * its own refresh. */
static uint64_t present_in(const struct nem_line *line, const struct nem_step *step,
                           const char *id)
{
    uint64_t until = present_until(line, id);
    for (size_t i = 0; i < step->count; i++)
        if (step->first[i].change == NEM_PRESENT && step->first[i].value > until &&
            nem_same_client(step->first[i].id, id))
            until = step->first[i].value;
    return until;
}

static bool presence_is_lost(const struct nem_line *line)
{
    for (size_t i = 0; i < line->present_count; i++)
        if (line->present[i].until != 0)
            return false;
    return true;
}

/* A free mutex goes to any requester; a queued client that requests it shows by that that
 * it lives. A hand-over gives the TTL that the id names, which is mostly less than a
 * whole lease. */
static bool may_have_asked(const struct nem_judge *j, const struct nem_step *step,
                           const struct nem_entry *entry)
{
    enum { US_PER_MS = 1000, TTL_ROUNDED = 2 };
    unsigned long ttl = 0;
    if (nem_type_of(step->lock) != NEM_MUTEX)
        return false;
    if (nem_retains(step->lock)) /* a process that retains the lock asks for no more than
                                    a grant's TTL (K2) */
        return true;
    if (sscanf(entry->id, "%*[^:]:%*u:%*u:%*c%lu", &ttl) != 1 ||
        ttl < (unsigned long)j->round->presence_ms)
        return true;
    for (size_t i = 0; i < step->count; i++)
        if (step->first[i].change == NEM_LEASE &&
            strcmp(step->first[i].id, entry->id) == 0)
            return step->first[i].value > entry->value / US_PER_MS + ttl + TTL_ROUNDED;
    return true;
}

/* A waiter that is not present any more must be skipped. */
static void judge_alive(struct nem_judge *j, const struct nem_line *line,
                        const struct nem_step *step, const struct nem_entry *entry)
{
    enum { US_PER_MS = 1000 };
    uint64_t now =
        entry->value != 0 ? entry->value / US_PER_MS : nem_server_earliest(j, entry);
    if (entry->ticket == 0 || now == 0 || presence_is_lost(line) ||
        may_have_asked(j, step, entry))
        return;
    uint64_t until = present_in(line, step, entry->id);
    uint64_t others = present_in(line, step, "*");
    nem_judged(j, NEM_RULE_PROMPT);
    if (until < now && others < now)
        nem_violation(j, NEM_RULE_PROMPT, entry->lock,
                      "%s got it between %.3f and %.3f ms, at %llu ms of the server, but "
                      "was present until %llu",
                      entry->id, nem_ms(j, entry->after), nem_ms(j, entry->before),
                      (unsigned long long)now, (unsigned long long)until);
}

/* The latest time since when the lock was free; INT64_MAX: it was not free. */
static int64_t free_before(const struct nem_line *line, const struct nem_entry *entry,
                           int64_t *ret_held_since)
{
    int64_t from = 0, since = INT64_MAX;
    *ret_held_since = line->held_since;
    if (line->holder_count == 0)
        return line->free_from;
    for (size_t i = 0; i < line->holder_count; i++) {
        const struct nem_holder *h = &line->holders[i];
        if (!h->gone)
            return INT64_MAX;
        from = h->latest_end > from ? h->latest_end : from;
        since = h->since < since ? h->since : since;
    }
    *ret_held_since = since;
    return from < entry->before ? from : entry->before;
}

static bool was_late(struct nem_judge *j, const struct nem_line *line,
                     const struct nem_waiter *w, int64_t free_from, int64_t until)
{
    enum { POLLS = 3 };
    int64_t bound = j->round->presence_ms * NEM_NS_PER_MS / POLLS + nem_slack(j);
    int64_t from = free_from > w->queued->before ? free_from : w->queued->before;
    return w->life && !line->spoilt && until > from && until - from > bound &&
           w->life->dying > until && !nem_disturbed(j, w->life->process, from, until);
}

/* Whichever client gets the lock: no waiter may have waited for long while it was
 * free. */
static void judge_delay(struct nem_judge *j, const struct nem_line *line,
                        const struct nem_entry *entry)
{
    int64_t held_since, from = free_before(line, entry, &held_since);
    bool judged = false;
    if (from >= INT64_MAX - 1)
        return;
    /* then its lease may have ended later than it seems */
    bool stepped = nem_clock_stepped(j, held_since, entry->before);
    for (size_t i = 0; i < line->waiter_count; i++) {
        const struct nem_waiter *w = &line->waiters[i];
        judged |= nem_waits(j, line, w, entry);
        if (!was_late(j, line, w, from, entry->after) || !nem_waits(j, line, w, entry))
            continue;
        NEM_BREAKS(j, NEM_RULE_PROMPT, entry->lock, stepped,
                   "%s waited since %.3f ms, it was free since %.3f ms, and %s got it "
                   "after %.3f ms",
                   w->queued->id, nem_ms(j, w->queued->before), nem_ms(j, from),
                   entry->id, nem_ms(j, entry->after));
        break;
    }
    if (judged && !stepped)
        nem_judged(j, NEM_RULE_PROMPT);
}

/* A script that releases the lock must hand it over itself. */
static void judge_release(struct nem_judge *j, const struct nem_line *line,
                          const struct nem_entry *freed)
{
    int64_t held_since = INT64_MAX;
    if (line->spoilt || line->holder_count == 0 || freed->before == INT64_MAX)
        return;
    for (size_t i = 0; i < line->holder_count; i++) {
        const struct nem_holder *h = &line->holders[i];
        held_since = h->since < held_since ? h->since : held_since;
        if (h->early_end <= freed->before + NEM_ROUNDED)
            return; /* it may have expired */
    }
    bool excused = nem_keys_lost(j, freed->lock, freed->after, freed->before) ||
                   nem_clock_stepped(j, held_since, freed->before);
    for (size_t i = 0; i < line->waiter_count; i++) {
        const struct nem_waiter *w = &line->waiters[i];
        if (w->gone || !nem_waits(j, line, w, freed))
            continue;
        nem_judged(j, NEM_RULE_PROMPT);
        NEM_BREAKS(j, NEM_RULE_PROMPT, freed->lock, excused,
                   "released between %.3f and %.3f ms and not handed over; %s waited",
                   nem_ms(j, freed->after), nem_ms(j, freed->before), w->queued->id);
        return;
    }
}

/* The lock is free at the end, and a client still waits. */
static void judge_rest(struct nem_judge *j, const struct nem_line *line, unsigned lock)
{
    if (line->holder_count > 0)
        return;
    bool stepped = nem_clock_stepped(j, line->held_since, j->round->ended);
    for (size_t i = 0; i < line->waiter_count; i++) {
        const struct nem_waiter *w = &line->waiters[i];
        if (was_late(j, line, w, line->free_from, j->round->ended))
            NEM_BREAKS(j, NEM_RULE_PROMPT, lock, stepped,
                       "%s waits since %.3f ms, it is free since %.3f ms, and nobody "
                       "gets it",
                       w->queued->id, nem_ms(j, w->queued->before),
                       nem_ms(j, line->free_from));
    }
}

/* Counts waiters of ended lives: they leave when a script looks at the queue, or with the
 * queue. */
static void count_dead(struct nem_judge *j, const struct nem_line *line, unsigned lock)
{
    for (size_t i = 0; i < line->waiter_count; i++) {
        const struct nem_waiter *w = &line->waiters[i];
        if (w->life && w->life->over != INT64_MAX)
            j->dead_waiters[lock][w->reading]++;
    }
}

/* ---- the next state */

static void note_leaving(struct nem_line *line, const struct nem_step *step)
{
    for (size_t i = 0; i < step->count; i++) {
        const struct nem_entry *entry = &step->first[i];
        struct nem_waiter *w = waiter_find(line, entry->id);
        struct nem_holder *h = holder_find(line, entry->id);
        if (entry->change == NEM_UNQUEUED && w)
            w->gone = true;
        if (entry->change == NEM_LEFT && h)
            h->gone = true;
    }
}

static bool frees(const struct nem_step *step)
{
    for (size_t i = 0; i < step->count; i++)
        if (step->first[i].change == NEM_FREED)
            return true;
    return false;
}

/* A reading whose readers were deleted goes on until N ends. */
static int64_t reading_until(const struct nem_line *line)
{
    int64_t until = INT64_MIN;
    for (size_t i = 0; i < line->holder_count; i++) {
        const struct nem_holder *h = &line->holders[i];
        if (h->reading && h->latest_end > until)
            until = h->latest_end;
    }
    return until;
}

static void drop_leaving(struct nem_line *line, const struct nem_step *step)
{
    int64_t held_since, free_from = free_before(line, step->first, &held_since);
    int64_t goes_on = frees(step) ? INT64_MIN : reading_until(line);
    size_t kept = 0;
    for (size_t i = 0; i < line->waiter_count; i++)
        if (!line->waiters[i].gone)
            line->waiters[kept++] = line->waiters[i];
    line->waiter_count = kept;
    kept = 0;
    for (size_t i = 0; i < line->holder_count; i++)
        if (!line->holders[i].gone)
            line->holders[kept++] = line->holders[i];
    if (line->holder_count > 0 && kept == 0) {
        line->free_from = goes_on > free_from ? goes_on : free_from;
        line->held_since = held_since;
    } else if (line->holder_count == 0 && frees(step) &&
               step->first->before < line->free_from)
        line->free_from = step->first->before;
    line->holder_count = kept;
}

static void add_waiter(struct nem_judge *j, struct nem_line *line,
                       const struct nem_entry *entry)
{
    line->waiters = nem_grow(line->waiters, line->waiter_count, &line->waiter_size,
                             sizeof(*line->waiters));
    line->waiters[line->waiter_count++] =
        (struct nem_waiter){ .queued = entry,
                             .life = nem_life_of(j, entry->id),
                             .reading = entry->reading,
                             .writers_from = entry->after };
}

static void add_holder(struct nem_line *line, const struct nem_entry *entry)
{
    line->holders = nem_grow(line->holders, line->holder_count, &line->holder_size,
                             sizeof(*line->holders));
    line->holders[line->holder_count++] =
        (struct nem_holder){ entry->id,    entry->reading, false,
                             entry->after, INT64_MAX,      INT64_MIN };
}

static void note_lease(struct nem_judge *j, struct nem_line *line,
                       const struct nem_entry *entry)
{
    struct nem_holder *h = holder_find(line, entry->id);
    if (!h)
        return;
    h->latest_end = nem_boot_latest(j, entry, entry->value);
    h->early_end = nem_boot_earliest(j, entry, entry->value);
}

static void note_present(struct nem_line *line, const struct nem_entry *entry)
{
    for (size_t i = 0; i < line->present_count; i++)
        if (nem_same_client(line->present[i].uuid, entry->id)) {
            line->present[i].until = entry->value;
            return;
        }
    line->present = nem_grow(line->present, line->present_count, &line->present_size,
                             sizeof(*line->present));
    line->present[line->present_count++] = (struct nem_seen){ entry->id, entry->value };
}

static void apply(struct nem_judge *j, struct nem_line *line, const struct nem_step *step)
{
    struct nem_holder *h;
    drop_leaving(line, step);
    for (size_t i = 0; i < step->count; i++) {
        const struct nem_entry *entry = &step->first[i];
        switch (entry->change) {
        case NEM_QUEUED:
            add_waiter(j, line, entry);
            break;
        case NEM_GRANTED:
        case NEM_READ:
            add_holder(line, entry);
            break;
        case NEM_DOWNGRADED:
            h = holder_find(line, entry->id);
            if (h)
                h->reading = true;
            break;
        case NEM_LEASE:
            note_lease(j, line, entry);
            break;
        case NEM_PRESENT:
            note_present(line, entry);
            break;
        case NEM_SPOILT:
            line->spoilt = entry->value != 0;
            break;
        default:
            break;
        }
    }
}

static void judge_step(struct nem_judge *j, struct nem_line *line,
                       const struct nem_step *step)
{
    const struct nem_entry *freed = NULL;
    bool granted = false;
    note_leaving(line, step);
    for (size_t i = 0; i < step->count; i++) {
        const struct nem_entry *entry = &step->first[i];
        bool opens = entry->change == NEM_GRANTED ||
                     (entry->change == NEM_READ && entry->value != 0);
        if (entry->change == NEM_GRANTED && nem_type_of(step->lock) == NEM_FAIR)
            judge_turn(j, line, step, entry);
        if (entry->change == NEM_GRANTED || entry->change == NEM_READ)
            judge_alive(j, line, step, entry);
        if (entry->change == NEM_UNQUEUED)
            judge_dropped(j, line, step, entry);
        if (opens && !granted)
            judge_delay(j, line, entry);
        granted |= opens;
        if (entry->change == NEM_FREED)
            freed = entry;
    }
    if (freed && !granted)
        judge_release(j, line, freed);
    if (nem_type_of(step->lock) == NEM_RWLOCK)
        nem_judge_phases(j, line, step);
    apply(j, line, step);
}

void nem_judge_order(struct nem_judge *j)
{
    const struct nem_ledger *ledger = j->round->ledger;
    struct nem_line *lines = nem_alloc(NEM_LOCKS_MAX * sizeof(*lines));
    struct nem_joins *joins = nem_joins_make(j);
    for (size_t i = 0, next; i < ledger->count; i = next) {
        const struct nem_entry *first = &ledger->entries[i];
        for (next = i + 1; next < ledger->count &&
                           ledger->entries[next].transaction == first->transaction &&
                           ledger->entries[next].lock == first->lock;
             next++)
            ;
        struct nem_step step = { first->lock, first, next - i };
        nem_judge_joins(j, lines, joins, first->after);
        if (first->lock < NEM_LOCKS_MAX)
            judge_step(j, &lines[first->lock], &step);
    }
    nem_judge_joins(j, lines, joins, INT64_MAX);
    nem_joins_free(joins);
    for (unsigned lock = 0; lock < NEM_LOCKS_MAX; lock++) {
        count_dead(j, &lines[lock], lock);
        judge_rest(j, &lines[lock], lock);
        free(lines[lock].waiters);
        free(lines[lock].holders);
        free(lines[lock].present);
    }
    free(lines);
}
