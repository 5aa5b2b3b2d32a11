/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions, by the ledger: which id was signalled (V3), what became of its signal (V4,
 * V5, V10, V13, V15), and that each thread whose id the server has taken out of the queue
 * is awake (V2).
 *
 * A signal is used by a wait that returns 0 or EOWNERDEAD. A signalled id that is gone in
 * any other way has passed its signal on, in the same transaction, unless nobody waits.
 */
#include "judge_cond.h"

#include <stdlib.h>
#include <string.h>

enum { OVERDUE_MOST = 16 }; /* how many a script takes out */

struct seen {
    const char *uuid;
    uint64_t until;
};

/* A condition, as the ledger goes on. */
struct queue {
    struct nem_stay **in; /* that wait, or are signalled */
    size_t count, size;
    struct seen *there;
    size_t there_count, there_size;
};

struct step {
    unsigned condition;
    const struct nem_entry *first;
    size_t count;
    bool lost;       /* the data were lost, or keys of the condition may have been */
    unsigned to_use; /* how many ids were signalled for which no id is gone */
};

int64_t nem_taken_by(const struct nem_stay *stay)
{
    const struct nem_entry *entry = stay->signalled ? stay->signalled : stay->left;
    return entry ? entry->before : INT64_MAX;
}

int64_t nem_taken_after(const struct nem_stay *stay)
{
    const struct nem_entry *entry = stay->signalled ? stay->signalled : stay->left;
    return entry ? entry->after : INT64_MAX;
}

/* ---- who is there */

static bool same_client(const char *id, const char *other)
{
    size_t len = strcspn(id, ":");
    return len == strcspn(other, ":") && memcmp(id, other, len) == 0;
}

static struct nem_stay *find(const struct queue *q, const char *id)
{
    for (size_t i = 0; i < q->count; i++)
        if (strcmp(q->in[i]->id, id) == 0)
            return q->in[i];
    return NULL;
}

static uint64_t there_until(const struct queue *q, const char *id)
{
    for (size_t i = 0; i < q->there_count; i++)
        if (same_client(q->there[i].uuid, id))
            return q->there[i].until;
    return 0;
}

/* Whether the server had to find the id waiting, and present. */
static bool is_there(const struct nem_judge *j, const struct queue *q,
                     const struct nem_stay *stay, const struct nem_entry *entry)
{
    return stay->life && !stay->gone && !stay->signalled &&
           stay->joined->transaction != entry->transaction &&
           entry->before != INT64_MAX && stay->life->dying > entry->before &&
           there_until(q, stay->id) > nem_server_latest(j, entry);
}

/* One who waits, and was not signalled in this step; NULL: none surely does. */
static const struct nem_stay *anybody(const struct nem_judge *j, const struct queue *q,
                                      const struct nem_entry *entry)
{
    for (size_t i = 0; i < q->count; i++)
        if (is_there(j, q, q->in[i], entry))
            return q->in[i];
    return NULL;
}

/* ---- first (V3) */

static void judge_first(struct nem_judge *j, const struct queue *q,
                        const struct nem_entry *entry)
{
    bool judged = false;
    for (size_t i = 0; i < q->count; i++) {
        const struct nem_stay *stay = q->in[i];
        if (!is_there(j, q, stay, entry) ||
            nem_deaf(j, stay->life->process, entry->after, entry->before))
            continue;
        judged = true;
        if (stay->ticket < entry->ticket)
            nem_violation(j, NEM_RULE_FIRST, entry->lock,
                          "%s (ticket %llu) was signalled between %.3f and %.3f ms "
                          "before %s (ticket %llu), who was there",
                          entry->id, (unsigned long long)entry->ticket,
                          nem_ms(j, entry->after), nem_ms(j, entry->before), stay->id,
                          (unsigned long long)stay->ticket);
    }
    if (judged)
        nem_judged(j, NEM_RULE_FIRST);
}

/* ---- acked: the signal is its waiter's once the wait has returned with the lock */

/* Whether its time was surely not over, so that only its own client can have taken it
 * out. */
static bool was_in_time(const struct nem_judge *j, const struct nem_stay *stay,
                        const struct nem_entry *left)
{
    return nem_server_latest(j, left) < stay->until;
}

/* Until when the wait had surely not returned with the lock; INT64_MIN: unknown. A thread
 * may be kept from recording its return, but not that of its lock. A cancelled one gives
 * its signal up before it returns. */
static int64_t not_returned_by(const struct nem_judge *j, const struct nem_sleep *sleep,
                               const struct nem_entry *left)
{
    int64_t until = j->round->given_up ? j->round->given_up : j->round->ended;
    if (!sleep->waited && sleep->invoke->code == 1)
        return INT64_MIN;
    if (sleep->retaken && nem_taken(sleep->retaken->code))
        return sleep->retaken->at;
    if (sleep->waited)
        until = sleep->waited->at;
    else if (sleep->life->dying < until)
        until = sleep->life->dying;
    return until - nem_slack(j) -
           nem_stopped_ns(j, sleep->life->process, left->after, until);
}

static void judge_acked(struct nem_judge *j, const struct nem_stay *stay,
                        const struct nem_entry *left)
{
    const struct nem_sleep *sleep = stay->sleep;
    int64_t until = not_returned_by(j, sleep, left);
    if (until == INT64_MIN || !was_in_time(j, stay, left))
        return;
    nem_judged(j, NEM_RULE_ACKED);
    if (until > left->before)
        nem_violation(j, NEM_RULE_ACKED, left->lock,
                      "%s was gone by %.3f ms with its signal; its wait had not returned "
                      "with the lock at %.3f ms",
                      stay->id, nem_ms(j, left->before), nem_ms(j, until));
}

/* ---- eaten */

/* Whether the wait has used its signal. One that had returned before, for another reason,
 * has not. */
static bool is_used(const struct nem_stay *stay)
{
    const struct nem_op *waited = stay->sleep->waited;
    return nem_taken(waited->code) && stay->signalled->after <= waited->at;
}

/* Whether the thread was dead by then, and had not got its lock (V15). */
static bool died_with_it(const struct nem_sleep *sleep, const struct nem_entry *left)
{
    return !sleep->waited && !sleep->retaken && left->after >= sleep->life->killed;
}

static void complain_of_eaten(struct nem_judge *j, const struct nem_stay *stay,
                              const struct nem_entry *left, const struct nem_stay *next)
{
    const struct nem_op *waited = stay->sleep->waited;
    nem_violation(
        j, NEM_RULE_EATEN, left->lock,
        "%s was gone between %.3f and %.3f ms with its signal; %s %d at %.3f ms, "
        "and %s waited",
        stay->id, nem_ms(j, left->after), nem_ms(j, left->before),
        waited ? "its wait gave" : "it died with process",
        waited ? waited->code : stay->life->process,
        nem_ms(j, waited ? waited->at : stay->life->killed), next->id);
}

static void judge_left(struct nem_judge *j, const struct queue *q, struct step *step,
                       const struct nem_stay *stay, const struct nem_entry *left)
{
    const struct nem_sleep *sleep = stay->sleep;
    if (step->lost || !sleep || left->before == INT64_MAX)
        return;
    bool used = sleep->waited && is_used(stay);
    nem_judged(j, NEM_RULE_EATEN);
    if (!used && step->to_use > 0) { /* passed on */
        step->to_use--;
        return;
    }
    const struct nem_stay *next = anybody(j, q, left);
    if (!used && next && (sleep->waited || died_with_it(sleep, left)))
        complain_of_eaten(j, stay, left, next);
    else if (used || !sleep->waited)
        judge_acked(j, stay, left);
}

/* ---- overdue: a script takes out those whose time is over */

static bool is_by_script(const struct step *step)
{
    for (size_t i = 0; i < step->count; i++)
        if (step->first[i].change >= NEM_WAITS)
            return !step->lost;
    return false;
}

static void judge_overdue(struct nem_judge *j, const struct queue *q,
                          const struct step *step)
{
    uint64_t now = nem_server_earliest(j, step->first);
    const struct nem_stay *late = NULL;
    unsigned count = 0;
    if (!is_by_script(step) || now == 0)
        return;
    for (size_t i = 0; i < q->count; i++) {
        const struct nem_stay *stay = q->in[i];
        if (!stay->signalled)
            continue;
        nem_judged(j, NEM_RULE_OVERDUE);
        if (stay->until + NEM_ROUNDED / NEM_NS_PER_MS < now) {
            late = stay;
            count++;
        }
    }
    if (late && count <= OVERDUE_MOST)
        nem_violation(j, NEM_RULE_OVERDUE, step->condition,
                      "%s was to return by %llu ms of the server, and is still there "
                      "between %.3f and %.3f ms, after %llu ms",
                      late->id, (unsigned long long)late->until,
                      nem_ms(j, step->first->after), nem_ms(j, step->first->before),
                      (unsigned long long)now);
}

/* ---- the next state */

static void join(struct nem_conds *conds, struct queue *q, const struct nem_entry *entry)
{
    struct nem_stay *stay = nem_alloc(sizeof(*stay));
    *stay = (struct nem_stay){ .id = entry->id,
                               .sleep = nem_sleep_of(conds, entry->id),
                               .life = nem_life_of(conds->j, entry->id),
                               .joined = entry,
                               .ticket = entry->value,
                               .next = conds->stays[entry->lock] };
    conds->stays[entry->lock] = stay;
    if (stay->sleep)
        stay->sleep->stay = stay;
    q->in = nem_grow(q->in, q->count, &q->size, sizeof(*q->in));
    q->in[q->count++] = stay;
}

/* An id joins once (V6), unless the server has lost it meanwhile. */
static void judge_once(struct nem_judge *j, const struct nem_conds *conds,
                       const struct nem_entry *entry)
{
    const struct nem_sleep *sleep = nem_sleep_of(conds, entry->id);
    const struct nem_stay *before = sleep ? sleep->stay : NULL;
    nem_judged(j, NEM_RULE_ONCE);
    if (before)
        NEM_BREAKS(j, NEM_RULE_ONCE, entry->lock,
                   nem_keys_lost(j, entry->lock, before->joined->after, entry->before),
                   "%s waits between %.3f and %.3f ms, and had waited since %.3f ms "
                   "before",
                   entry->id, nem_ms(j, entry->after), nem_ms(j, entry->before),
                   nem_ms(j, before->joined->before));
}

static void note_there(struct queue *q, const struct nem_entry *entry)
{
    for (size_t i = 0; i < q->there_count; i++)
        if (same_client(q->there[i].uuid, entry->id)) {
            q->there[i].until = entry->value;
            return;
        }
    q->there = nem_grow(q->there, q->there_count, &q->there_size, sizeof(*q->there));
    q->there[q->there_count++] = (struct seen){ entry->id, entry->value };
}

static void drop_gone(struct queue *q)
{
    size_t kept = 0;
    for (size_t i = 0; i < q->count; i++)
        if (!q->in[i]->gone)
            q->in[kept++] = q->in[i];
    q->count = kept;
}

/* Those who leave and those who are signalled count as such from here on: what follows
 * looks at who waits behind them. */
static void note_changes(const struct queue *q, struct step *step)
{
    for (size_t i = 0; i < step->count; i++) {
        const struct nem_entry *entry = &step->first[i];
        struct nem_stay *stay = find(q, entry->id);
        if (!stay)
            continue;
        if (entry->change == NEM_UNWAITS) {
            stay->gone = true;
            stay->left = entry;
        } else if (entry->change == NEM_SIGNALLED) {
            step->to_use += entry->ticket != 0;
            stay->signalled = stay->signalled ? stay->signalled : entry;
        }
    }
}

static void judge_changes(struct nem_judge *j, const struct queue *q, struct step *step)
{
    for (size_t i = 0; i < step->count; i++) {
        const struct nem_entry *entry = &step->first[i];
        struct nem_stay *stay = find(q, entry->id);
        if (entry->change == NEM_SIGNALLED && entry->ticket != 0 && !step->lost)
            judge_first(j, q, entry);
        if (entry->change == NEM_UNWAITS && entry->ticket == 0 && stay)
            judge_left(j, q, step, stay, entry);
    }
}

static void apply(struct nem_conds *conds, struct queue *q, const struct step *step)
{
    drop_gone(q);
    for (size_t i = 0; i < step->count; i++) {
        const struct nem_entry *entry = &step->first[i];
        struct nem_stay *stay = find(q, entry->id);
        if (entry->change == NEM_WAITS) {
            judge_once(conds->j, conds, entry);
            join(conds, q, entry);
        } else if (entry->change == NEM_SIGNALLED && stay) {
            stay->until = entry->value;
        } else if (entry->change == NEM_THERE) {
            note_there(q, entry);
        }
    }
}

static void judge_step(struct nem_conds *conds, struct queue *q, struct step *step)
{
    note_changes(q, step);
    judge_changes(conds->j, q, step);
    apply(conds, q, step);
    judge_overdue(conds->j, q, step);
}

static void walk(struct nem_conds *conds, struct queue *queues)
{
    const struct nem_judge *j = conds->j;
    const struct nem_ledger *ledger = j->round->ledger;
    uint64_t lost = UINT64_MAX; /* the last transaction that lost all data */
    for (size_t i = 0, next; i < ledger->count; i = next) {
        const struct nem_entry *first = &ledger->entries[i];
        for (next = i + 1; next < ledger->count &&
                           ledger->entries[next].transaction == first->transaction &&
                           ledger->entries[next].lock == first->lock;
             next++)
            ;
        if (first->change == NEM_LOST_DATA)
            lost = first->transaction;
        if (first->lock >= NEM_LOCKS_MAX)
            continue;
        struct step step = { .condition = first->lock,
                             .first = first,
                             .count = next - i };
        step.lost = first->transaction == lost ||
                    nem_keys_lost(j, first->lock, first->after, first->before);
        judge_step(conds, &queues[first->lock], &step);
    }
}

/* ---- asleep (V2) */

/* A thread whose id the server has taken out hears of it by a message, or by its next
 * poll. */
static void judge_asleep(struct nem_judge *j, const struct nem_stay *stay)
{
    const struct nem_sleep *sleep = stay->sleep;
    int64_t from = nem_taken_by(stay);
    if (!sleep || from == INT64_MAX)
        return;
    int64_t until = nem_slept_until(j, sleep);
    nem_judged(j, NEM_RULE_ASLEEP);
    if (until <= from || until - from <= nem_room(j))
        return;
    int64_t slept = until - from -
                    nem_disturbed_ns(j, sleep->life->process, from, until) -
                    nem_stalled_ns(j, from, until);
    if (slept > nem_room(j))
        nem_violation(j, NEM_RULE_ASLEEP, stay->joined->lock,
                      "%s: %s was taken out by %.3f ms, and its thread %s %.3f ms",
                      nem_who(sleep->invoke), stay->id, nem_ms(j, from),
                      sleep->awake ? "woke at" : "slept until", nem_ms(j, until));
}

/* ---- eaten: a wait that does not use its signal says so with its end, or by the next
 * poll; it does not wait until the signal is overdue */

static void judge_kept(struct nem_judge *j, const struct nem_stay *stay)
{
    enum { POLLS = 3 };
    const struct nem_sleep *sleep = stay->sleep;
    if (!stay->signalled || !sleep || !sleep->waited || is_used(stay))
        return;
    int64_t bound = j->round->presence_ms * NEM_NS_PER_MS / POLLS + nem_slack(j);
    int64_t from = stay->signalled->before, until = sleep->life->dying;
    if (sleep->waited->at > from)
        from = sleep->waited->at;
    if (j->round->ended < until)
        until = j->round->ended;
    if (stay->left && stay->left->after < until)
        until = stay->left->after;
    nem_judged(j, NEM_RULE_EATEN);
    if (until - from > bound &&
        until - from > bound + nem_stalled_ns(j, from, until) +
                           nem_disturbed_ns(j, sleep->life->process, from, until))
        nem_violation(j, NEM_RULE_EATEN, stay->joined->lock,
                      "%s was signalled by %.3f ms; its wait gave %d at %.3f ms, and "
                      "kept the signal until %.3f ms",
                      stay->id, nem_ms(j, stay->signalled->before), sleep->waited->code,
                      nem_ms(j, sleep->waited->at), nem_ms(j, until));
}

void nem_judge_stays(struct nem_conds *conds)
{
    struct queue *queues = nem_alloc(NEM_LOCKS_MAX * sizeof(*queues));
    walk(conds, queues);
    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++) {
        for (const struct nem_stay *stay = conds->stays[i]; stay; stay = stay->next) {
            judge_asleep(conds->j, stay);
            judge_kept(conds->j, stay);
        }
        free(queues[i].in);
        free(queues[i].there);
    }
    free(queues);
}

void nem_stays_free(struct nem_conds *conds)
{
    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++)
        for (struct nem_stay *stay = conds->stays[i], *next; stay; stay = next) {
            next = stay->next;
            free(stay);
        }
}
