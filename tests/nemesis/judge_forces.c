/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that were taken from their holders by force: those were told at once (S4, T10).
 * For the other rules such an end is one that the server may have made. */
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

/* Whoever joins a reading, or is passed a lock, has the id of an earlier grant. */
static const struct nem_tenure *
took(const struct nem_judge *j, const struct nem_name *name, const struct nem_hold *hold)
{
    for (const struct nem_tenure *t = name ? name->tenures : NULL; t; t = t->next)
        if (t->left && t->granted->after <= hold->returned->at &&
            nem_forced(j, t->left->lock, t->left->after, t->left->before))
            return t;
    return NULL;
}

const struct nem_tenure *nem_force_took(const struct nem_judge *j,
                                        const struct nem_hold *hold)
{
    const struct nem_tenure *t = took(j, hold->name, hold);
    return t ? t : took(j, hold->second, hold);
}

int64_t nem_told_of_force_by(const struct nem_judge *j, const struct nem_tenure *t)
{
    const struct nem_life *life = t->name->life;
    return life ? nem_running_by(j, life->process, t->left->before) : t->left->before;
}

/* Its mailbox heard the message, and its question was answered. */
static bool was_within_earshot(const struct nem_judge *j, unsigned process, int64_t from,
                               int64_t to)
{
    return !nem_deaf(j, process, from, to) && !nem_disturbed(j, process, from, to) &&
           !nem_refused(j, from, to);
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
