/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a loss was justified: a hold ends at D, or when the server ended it, and a hold
 * that must be renewed is renewed in time. And that a lost hold stays lost at the
 * server. */
#include "judge_impl.h"

static unsigned lock_of(const struct nem_hold *hold)
{
    return hold->returned->lock;
}

/* The id that the hold had at its loss. */
static const struct nem_name *last_name(const struct nem_hold *hold)
{
    return hold->second ? hold->second : hold->name;
}

/* ---- loss, unlock: ESTALE and LOST only if lost */

/* Whether the id had surely left the server by then. A later leaving may be the hold's
 * own release, so it is no reason. (Faults that delete keys are known.) */
static bool left_by(const struct nem_name *name, int64_t at)
{
    for (const struct nem_tenure *t = name ? name->tenures : NULL; t; t = t->next)
        if (t->left && t->left->before <= at)
            return true;
    return false;
}

static void judge_truth(struct nem_judge *j, const struct nem_hold *hold)
{
    const struct nem_op *told = hold->lost_by;
    enum nem_rule rule = told->call == NEM_UNLOCK ? NEM_RULE_UNLOCK : NEM_RULE_LOSS;
    /* an unlock's own request releases it at the server, too */
    int64_t since = told == hold->unlocked ? hold->unlocking->at : told->at;
    nem_judged(j, rule);
    if (told->at >= hold->end_at_loss - NEM_ROUNDED || left_by(last_name(hold), since) ||
        nem_forced(j, lock_of(hold), nem_granted_after(hold), told->at))
        return;
    NEM_BREAKS(j, rule, lock_of(hold),
               nem_excluded(j, lock_of(hold), nem_granted_after(hold), told->at) ||
                   nem_lost_by_failover(j, hold, NULL, told->at),
               "%s: %s said at %.3f ms that it is lost, D is %.3f ms, and %s (%s)",
               nem_who(told), told->what == NEM_CHECK ? "a look" : "a call",
               nem_ms(j, told->at), nem_ms(j, hold->end_at_loss),
               j->round->no_ledger ? "no failover explains it" : "the server had it",
               last_name(hold) ? last_name(hold)->text : "");
}

/* ---- kept: a hold that must be renewed is not lost */

/* Whether nothing kept the watchdog from a renewal in the last lease before D; it must
 * also have had the time for one. */
static bool could_be_kept(const struct nem_judge *j, const struct nem_hold *hold)
{
    int64_t end = hold->end_at_loss;
    int64_t from = end - j->round->lease_ms * NEM_NS_PER_MS;
    return hold->returned->at + nem_slack(j) <= end && !left_by(last_name(hold), end) &&
           !nem_disturbed(j, hold->life->process, from, end) &&
           !nem_nodes_disturbed(j, lock_of(hold), from, end) &&
           !nem_keys_lost(j, lock_of(hold), from, end) &&
           !nem_clock_stepped(j, from, end);
}

static void judge_kept(struct nem_judge *j, const struct nem_hold *hold)
{
    if (hold->lost == 0) {
        if (!hold->fixed && hold->end > hold->returned->end) /* it was renewed */
            nem_judged(j, NEM_RULE_KEPT);
        return;
    }
    if (hold->fixed || hold->end_at_loss == 0 ||
        hold->lost < hold->end_at_loss - NEM_ROUNDED || !could_be_kept(j, hold))
        return;
    nem_judged(j, NEM_RULE_KEPT);
    nem_violation(j, NEM_RULE_KEPT, lock_of(hold),
                  "%s: held from %.3f ms, lost by D %.3f ms; nothing kept it from being "
                  "renewed (%s)",
                  nem_who(hold->returned), nem_ms(j, hold->returned->at),
                  nem_ms(j, hold->end_at_loss),
                  last_name(hold) ? last_name(hold)->text : "");
}

/* ---- told: a lost hold is never renewed again */

static int64_t given_up(const struct nem_hold *hold)
{
    return hold->lost != 0 ? hold->lost : hold->unlocked ? hold->unlocked->at : INT64_MAX;
}

/* Since when no thread has an id any more, or believes in it; INT64_MAX: a thread does,
 * or no thread ever had it. */
static int64_t all_gave_up(const struct nem_name *name)
{
    int64_t last = INT64_MIN;
    for (const struct nem_hold *h = name->holds; h; h = h->next)
        last = given_up(h) > last ? given_up(h) : last;
    for (const struct nem_hold *h = name->renamed; h; h = h->next_renamed)
        last = given_up(h) > last ? given_up(h) : last;
    return last == INT64_MIN ? INT64_MAX : last;
}

/* A request may be late by as much as the command timeout. */
static void judge_renewed(struct nem_judge *j, const struct nem_tenure *t)
{
    const struct nem_life *life = t->name->life;
    int64_t from = all_gave_up(t->name);
    uint64_t end = 0;
    if (!life || from == INT64_MAX)
        return;
    int64_t by = from + j->round->commandtimeout_ms * NEM_NS_PER_MS + nem_slack(j);
    nem_judged(j, NEM_RULE_TOLD);
    for (size_t i = 0; i < t->lease_count; i++) {
        const struct nem_entry *lease = t->leases[i];
        bool longer = lease->value > end && i > 0;
        end = lease->value > end ? lease->value : end;
        if (!longer || lease->after <= by ||
            nem_delayed(j, life->process, from, lease->after))
            continue;
        nem_violation(j, NEM_RULE_TOLD, lease->lock,
                      "process %u: %s was renewed after %.3f ms; nobody has it, or "
                      "believes in it, since %.3f ms",
                      life->process, lease->id, nem_ms(j, lease->after), nem_ms(j, from));
        return;
    }
}

void nem_judge_losses(struct nem_judge *j)
{
    for (size_t i = 0; i < j->hold_count; i++) {
        if (j->holds[i]->lost != 0)
            judge_truth(j, j->holds[i]);
        judge_kept(j, j->holds[i]);
    }
    for (size_t i = 0; i < j->tenure_count; i++)
        judge_renewed(j, j->tenures[i]);
}
