/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crash guard: recoveries, which the ledger shows by the marker of a client's uuid
 * (G12). Judges that the holds of a killed process are released in time, that no living
 * process is touched, and that the next owner of a robust lock gets the right code.
 */
#include "judge_line.h"

#include <stdlib.h>
#include <string.h>

/* Whether it marks a client's uuid, not an id of it. */
static bool is_burial(const struct nem_entry *entry)
{
    return entry->change == NEM_MARKED && !strchr(entry->id, ':');
}

/* ---- waiters at the server */

struct wait {
    const struct nem_life *life;
    const char *id;
    unsigned lock;
    int64_t from, to; /* the waiter surely waits from, to */
};

struct waits {
    struct wait *items;
    size_t count, size;
};

static void end_wait(struct waits *waits, const struct nem_entry *entry)
{
    for (size_t i = waits->count; i-- > 0;) {
        struct wait *w = &waits->items[i];
        if (w->lock == entry->lock && strcmp(w->id, entry->id) == 0) {
            if (w->to == INT64_MAX)
                w->to = entry->after;
            return;
        }
    }
}

static void find_waits(const struct nem_judge *j, struct waits *waits)
{
    for (size_t i = 0; i < j->round->ledger->count; i++) {
        const struct nem_entry *entry = &j->round->ledger->entries[i];
        if (entry->change == NEM_QUEUED) {
            waits->items =
                nem_grow(waits->items, waits->count, &waits->size, sizeof(struct wait));
            waits->items[waits->count++] =
                (struct wait){ .life = nem_life_of(j, entry->id),
                               .id = entry->id,
                               .lock = entry->lock,
                               .from = entry->before,
                               .to = INT64_MAX };
        } else if (entry->change == NEM_UNQUEUED) {
            end_wait(waits, entry);
        }
    }
}

/* ---- rule `buried` */

/* Whether every process that looks for deaths could recover in [from, to]: chance decides
 * which one takes a dead client's live file, and then no other can recover that
 * client. */
static bool all_can_bury(const struct nem_judge *j, const struct nem_life *dead,
                         int64_t from, int64_t to)
{
    for (size_t i = 0; i < j->life_count; i++) {
        const struct nem_life *life = &j->lives[i];
        if (life != dead && life->guarded && life->begun <= to && life->over >= from &&
            nem_hampered(j, life->process, from, to))
            return false;
    }
    return true;
}

/* A living process with the guard that waits for any lock: so it looks for deaths. */
static const struct wait *waiter(const struct waits *waits, int64_t from, int64_t to)
{
    for (size_t i = 0; i < waits->count; i++) {
        const struct wait *w = &waits->items[i];
        if (w->life && w->life->guarded && w->from <= from && w->to >= to &&
            w->life->dying > to)
            return w;
    }
    return NULL;
}

/* `from`, plus the slack, plus the time for which the machine stood still meanwhile. */
static int64_t due(const struct nem_judge *j, int64_t from)
{
    int64_t by = from + nem_slack(j), next = by;
    do {
        by = next;
        next = from + nem_slack(j) + nem_stood_ns(j, from, by);
    } while (next > by);
    return by;
}

/* Whether the id left the server by a recovery of its client. */
static bool left_by_burial(const struct nem_judge *j, const struct nem_tenure *t)
{
    const struct nem_entry *end = j->round->ledger->entries + j->round->ledger->count;
    for (const struct nem_entry *e = t->left;
         e && e < end && e->transaction == t->left->transaction; e++)
        if (is_burial(e) && nem_same_client(e->id, t->name->text))
            return true;
    return false;
}

static void judge_buried(struct nem_judge *j, const struct waits *waits,
                         const struct nem_tenure *t)
{
    const struct nem_life *dead = t->name->life;
    int64_t from = dead->killed;
    if (t->granted->before > from) /* handed over, or a late request */
        from = t->granted->before;
    if (from == INT64_MAX)
        return;
    int64_t by = due(j, from), until = by;
    if (t->left && t->left->after <= by && left_by_burial(j, t)) {
        nem_judged(j, NEM_RULE_BURIED);
        return;
    }
    if (t->left && t->left->after < from) /* perhaps before the process died */
        return;
    if (t->left && t->left->after < until)
        until = t->left->after;
    if (by > j->round->ended || nem_lease_earliest(j, t) <= by + NEM_ROUNDED ||
        !all_can_bury(j, dead, from, by))
        return;
    const struct wait *w = waiter(waits, from, until);
    if (!w)
        return;
    nem_judged(j, NEM_RULE_BURIED);
    if (!t->left || t->left->after > by)
        NEM_BREAKS(j, NEM_RULE_BURIED, t->granted->lock,
                   nem_keys_lost(j, t->granted->lock, t->granted->after, by),
                   "process %u (life %u) was dead by %.3f ms; %s still held it at %.3f "
                   "ms, and %s waited for nemesis%u",
                   dead->process, dead->life, nem_ms(j, dead->killed), t->name->text,
                   nem_ms(j, by), w->id, w->lock);
}

/* ---- rule dead */

/* The tenure that this entry ended. */
static const struct nem_tenure *tenure_of(const struct nem_judge *j,
                                          const struct nem_entry *left)
{
    const struct nem_name *name = nem_name_find(j, left->id);
    for (const struct nem_tenure *t = name ? name->tenures : NULL; t; t = t->next)
        if (t->left == left)
            return t;
    return NULL;
}

/* By a recovery no other client loses anything, except what has expired. */
static void judge_others(struct nem_judge *j, const struct nem_entry *burial,
                         const struct nem_entry *left)
{
    const struct nem_tenure *t = tenure_of(j, left);
    if (!t || nem_same_client(left->id, burial->id))
        return;
    int64_t end = nem_lease_earliest(j, t);
    nem_judged(j, NEM_RULE_DEAD);
    if (end > left->before + NEM_ROUNDED)
        NEM_BREAKS(
            j, NEM_RULE_DEAD, left->lock,
            nem_excluded(j, left->lock, left->after, left->before) ||
                nem_clock_forward(j, t->granted->after, left->before),
            "%s lost it between %.3f and %.3f ms, when %s was recovered; its lease "
            "ended at %.3f ms",
            left->id, nem_ms(j, left->after), nem_ms(j, left->before), burial->id,
            nem_ms(j, end));
}

/* A process lives also while it is stopped, has a child, or retains what it does not
 * use. */
static void judge_dead(struct nem_judge *j, const struct nem_entry *burial)
{
    const struct nem_life *life = nem_life_of(j, burial->id);
    if (!life) /* of an earlier round */
        return;
    nem_judged(j, NEM_RULE_DEAD);
    if (life->dying > burial->before)
        nem_violation(
            j, NEM_RULE_DEAD, burial->lock,
            "process %u (life %u, %s) was recovered between %.3f and %.3f ms, and "
            "lived",
            life->process, life->life, burial->id, nem_ms(j, burial->after),
            nem_ms(j, burial->before));
}

/* ---- rule soon */

enum inside { UNKNOWN, INSIDE, OUTSIDE };

/* Whether the thread had got the lock and not begun to release it. */
static bool was_inside(const struct nem_hold *hold)
{
    return !hold->unlocking && hold->lost == 0 && !hold->second &&
           hold->end > hold->life->killed;
}

static bool asks(const struct nem_judge *j, const struct nem_life *life, unsigned lock)
{
    for (size_t i = 0; i < j->made_count; i++)
        if (j->made[i].life == life && !j->made[i].ret &&
            j->made[i].invoke->lock == lock && nem_is_acquire(j->made[i].invoke->call))
            return true;
    return false;
}

/* Whether the process died inside of a section of its hold. Outside: only if all sections
 * ended well, the last one without EOWNERDEAD, and no open call may have begun one. */
static enum inside where(const struct nem_judge *j, const struct nem_tenure *t)
{
    const struct nem_hold *last = NULL;
    for (const struct nem_hold *h = t->name->holds; h; h = h->next) {
        if (was_inside(h))
            return INSIDE;
        if (!h->unlocked || h->unlocked->code != 0 || h->second)
            return UNKNOWN;
        if (!last || h->unlocked->at > last->unlocked->at)
            last = h;
    }
    bool outside = last && last->returned->code == 0 && !t->name->renamed &&
                   !asks(j, t->name->life, t->granted->lock);
    return outside ? OUTSIDE : UNKNOWN;
}

/* The next owner by the next grant; NULL: there was none, or it has left no record. */
static const struct nem_hold *next_owner(const struct nem_judge *j,
                                         const struct nem_entry *left)
{
    const struct nem_entry *end = j->round->ledger->entries + j->round->ledger->count;
    const struct nem_entry *e = left;
    while (e < end && (e->lock != left->lock || e->change != NEM_GRANTED))
        e++;
    const struct nem_name *name = e < end ? nem_name_find(j, e->id) : NULL;
    const struct nem_tenure *t = name ? name->tenures : NULL;
    const struct nem_hold *first = NULL;
    while (t && t->granted != e)
        t = t->next;
    for (const struct nem_hold *h = t ? name->holds : NULL; h; h = h->next)
        if (h->returned->at >= e->after &&
            (!first || h->returned->at < first->returned->at))
            first = h;
    return first && (!t->left || t->left->after >= first->returned->at) ? first : NULL;
}

static void judge_soon(struct nem_judge *j, const struct nem_entry *left)
{
    const struct nem_tenure *t = tenure_of(j, left);
    const struct nem_hold *next = next_owner(j, left);
    if (!t || !next || !t->name->life || t->name->life->killed == INT64_MAX)
        return;
    enum inside inside = where(j, t);
    if (inside == UNKNOWN)
        return;
    nem_judged(j, NEM_RULE_SOON);
    if ((inside == INSIDE) != (next->returned->code == EOWNERDEAD))
        NEM_BREAKS(j, NEM_RULE_SOON, left->lock,
                   nem_keys_lost(j, left->lock, t->granted->after, next->returned->at),
                   "process %u (life %u) was killed %s of what it held (%s), and %s got "
                   "%d for it at %.3f ms",
                   t->name->life->process, t->name->life->life,
                   inside == INSIDE ? "inside" : "outside", t->name->text,
                   nem_who(next->returned), next->returned->code,
                   nem_ms(j, next->returned->at));
}

/* ---- all */

/* Judges the effects of the recovery's transaction on one lock. */
static void judge_burial(struct nem_judge *j, const struct nem_entry *burial)
{
    const struct nem_entry *entries = j->round->ledger->entries, *e = burial;
    j->verdict->burials++;
    judge_dead(j, burial);
    while (e > entries && e[-1].transaction == burial->transaction)
        e--;
    for (; e < burial; e++) {
        if (e->change != NEM_LEFT || e->lock != burial->lock)
            continue;
        judge_others(j, burial, e);
        if (nem_same_client(e->id, burial->id) && nem_robust(e->lock))
            judge_soon(j, e);
    }
}

void nem_judge_deaths(struct nem_judge *j)
{
    struct waits waits = { 0 };
    find_waits(j, &waits);
    for (size_t i = 0; i < j->tenure_count; i++)
        if (j->tenures[i]->name->life && j->tenures[i]->name->life->guarded &&
            j->tenures[i]->name->life->killed != INT64_MAX)
            judge_buried(j, &waits, j->tenures[i]);
    for (size_t i = 0; i < j->round->ledger->count; i++)
        if (is_burial(&j->round->ledger->entries[i]))
            judge_burial(j, &j->round->ledger->entries[i]);
    free(waits.items);
}
