/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that were taken from their holders by force: the holders learned it at once (S4,
 * T10). The other rules treat such an end as one that the server may cause. */
#include "judge_impl.h"

static bool overlaps(const struct nem_fault *fault, int64_t from, int64_t to)
{
    return fault->begin <= to && from <= fault->end;
}

bool nem_forced(const struct nem_judge *j, unsigned lock, int64_t from, int64_t to)
{
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        if (fault->kind == NEM_FORCE && fault->lock == lock && overlaps(fault, from, to))
            return true;
    }
    return false;
}

/* A thread that joins a reading, or gets a lock passed on, has the id of an earlier
 * grant. If a grant was taken by force before its waiter entered, the waiter requests
 * again with the same id. So a hold may be by any grant of its id, unless another one
 * surely followed before the thread entered. */
static bool may_be_by(const struct nem_hold *hold, const struct nem_tenure *t)
{
    return t->granted->after <= hold->returned->at &&
           !(t->next && t->next->granted->before < hold->returned->at);
}

/* The last grant that the hold may be by; NULL: none. */
static const struct nem_tenure *last_of(const struct nem_hold *hold,
                                        const struct nem_name *name)
{
    const struct nem_tenure *last = NULL;
    for (const struct nem_tenure *t = name ? name->tenures : NULL; t; t = t->next)
        if (may_be_by(hold, t))
            last = t;
    return last;
}

static bool is_forced(const struct nem_judge *j, const struct nem_tenure *t)
{
    return t && t->left && nem_forced(j, t->left->lock, t->left->after, t->left->before);
}

const struct nem_tenure *nem_force_took(const struct nem_judge *j,
                                        const struct nem_hold *hold)
{
    const struct nem_tenure *first = last_of(hold, hold->name);
    const struct nem_tenure *second = last_of(hold, hold->second);
    return is_forced(j, first) ? first : is_forced(j, second) ? second : NULL;
}

static bool took_before(const struct nem_judge *j, const struct nem_hold *hold,
                        const struct nem_name *name, const struct nem_tenure *other)
{
    for (const struct nem_tenure *t = name ? name->tenures : NULL; t; t = t->next)
        if (may_be_by(hold, t) && is_forced(j, t) &&
            t->left->number <= other->granted->number)
            return true;
    return false;
}

bool nem_force_took_before(const struct nem_judge *j, const struct nem_hold *hold,
                           const struct nem_hold *other)
{
    const struct nem_tenure *its = last_of(other, other->name);
    return its && (took_before(j, hold, hold->name, its) ||
                   took_before(j, hold, hold->second, its));
}

int64_t nem_told_of_force_by(const struct nem_judge *j, const struct nem_tenure *t)
{
    const struct nem_life *life = t->name->life;
    return life ? nem_running_by(j, life->process, t->left->before) : t->left->before;
}

/* Whether its mailbox got the message, and its request was answered. */
static bool was_within_earshot(const struct nem_judge *j, unsigned process, int64_t from,
                               int64_t to)
{
    return !nem_deaf(j, process, from, to) && !nem_disturbed(j, process, from, to) &&
           !nem_refused(j, from, to);
}

bool nem_unlock_unaware_of_force(const struct nem_judge *j, const struct nem_hold *hold,
                                 const struct nem_tenure *other)
{
    const struct nem_tenure *t = nem_force_took(j, hold);
    unsigned process = hold->life->process;
    if (!t || other->granted->number < t->left->number)
        return false;
    int64_t by = nem_told_of_force_by(j, t);
    if (hold->unlocking->at <= by)
        return true;
    int64_t from = hold->unlocking->at, to = hold->unlocked->at;
    bool asks = !nem_passes(hold->returned->lock) && !hold->reading && !hold->turned;
    bool answered = !nem_unreachable(j, process, from, to) && !nem_refused(j, from, to);
    return !was_within_earshot(j, process, t->left->after, by) && !(asks && answered);
}

static void judge_hold(struct nem_judge *j, const struct nem_hold *hold)
{
    const struct nem_tenure *t = nem_force_took(j, hold);
    int64_t by;
    if (!t || t->left->before == INT64_MAX)
        return;
    by = nem_told_of_force_by(j, t);
    if (!was_within_earshot(j, hold->life->process, t->left->after, by))
        return;
    nem_judged(j, NEM_RULE_TOLD);
    if (hold->until > by)
        nem_violation(
            j, NEM_RULE_TOLD, hold->returned->lock,
            "%s: was taken by force between %.3f and %.3f ms, and believed in it "
            "until %.3f ms (%s)",
            nem_who(hold->returned), nem_ms(j, t->left->after),
            nem_ms(j, t->left->before), nem_ms(j, hold->until), t->name->text);
}

void nem_judge_forces(struct nem_judge *j)
{
    for (size_t i = 0; i < j->hold_count; i++)
        judge_hold(j, j->holds[i]);
}
