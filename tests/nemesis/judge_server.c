/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the workers' beliefs with the server's data. */
#include "judge_impl.h"

#include <string.h>

static unsigned lock_of(const struct nem_hold *hold)
{
    return hold->returned->lock;
}

/* The latest end of a tenure's lease; INT64_MAX, INT64_MIN: unknown. */
static int64_t lease_latest(const struct nem_judge *j, const struct nem_tenure *t)
{
    int64_t end = 0;
    for (size_t i = 0; i < t->lease_count; i++) {
        int64_t at = nem_boot_latest(j, t->leases[i], t->leases[i]->value);
        end = at > end ? at : end;
    }
    return t->lease_count ? end : INT64_MAX;
}

int64_t nem_lease_earliest(const struct nem_judge *j, const struct nem_tenure *t)
{
    int64_t end = INT64_MIN;
    for (size_t i = 0; i < t->lease_count; i++) {
        int64_t at = nem_boot_earliest(j, t->leases[i], t->leases[i]->value);
        end = at > end ? at : end;
    }
    return end;
}

/* ---- grant */

static bool was_granted(const struct nem_hold *hold)
{
    int64_t asked = hold->asked ? hold->asked->at : hold->returned->at;
    for (const struct nem_tenure *t = hold->name->tenures; t; t = t->next) {
        const struct nem_entry *granted = t->granted;
        if (granted->lock == lock_of(hold) && granted->after <= hold->returned->at &&
            (!t->left || t->left->before >= asked) &&
            (hold->reading || granted->change == NEM_GRANTED))
            return true;
    }
    return false;
}

/* Whether the server's clock was stepped over the whole lease, or the server stood still
 * for as long and D has passed. */
static bool leapt(const struct nem_judge *j, const struct nem_op *returned, int64_t from,
                  int64_t to)
{
    bool over = returned->end == 0 || returned->at >= returned->end;
    return nem_clock_forward(j, from, to) || (over && nem_server_stopped(j, from, to));
}

/* Whether the server's clock leapt within a script, after the script's look at it: the
 * grant expired in the same transaction, and the ledger shows only a waiter that left its
 * queue. */
static bool expired_at_once(const struct nem_judge *j, const struct nem_hold *hold)
{
    int64_t from = hold->asked ? hold->asked->at : hold->returned->at;
    int64_t to = hold->returned->at;
    for (size_t i = j->round->ledger->count; i-- > 0;) {
        const struct nem_entry *entry = &j->round->ledger->entries[i];
        if (entry->change == NEM_UNQUEUED && entry->lock == lock_of(hold) &&
            entry->after <= to && entry->before >= from &&
            strcmp(entry->id, hold->name->text) == 0)
            return leapt(j, hold->returned, entry->after, entry->before);
    }
    return leapt(j, hold->returned, from, to);
}

/* Whether the server lost the hold while its process retained it, and the process has not
 * learned it yet (K8): it does when it asks next. */
static bool lost_while_kept(const struct nem_judge *j, const struct nem_hold *hold)
{
    const int64_t asked = j->round->presence_ms * NEM_NS_PER_MS / 3;
    for (const struct nem_tenure *t = hold->name->tenures; t; t = t->next)
        if (nem_retains(lock_of(hold)) && t->granted->after <= hold->returned->at &&
            t->left &&
            hold->returned->at <= t->left->before + asked + nem_slack(j) +
                                      nem_disturbed_ns(j, hold->life->process,
                                                       t->left->after,
                                                       hold->returned->at) &&
            nem_excluded(j, lock_of(hold), t->granted->after, hold->returned->at))
            return true;
    return false;
}

/* Whether the hold was taken by force so recently that its process may still have passed
 * it on or entered it. */
static bool is_not_told_yet(const struct nem_judge *j, const struct nem_hold *hold)
{
    const struct nem_tenure *t = nem_force_took(j, hold);
    return t && hold->returned->at <= nem_told_of_force_by(j, t);
}

static bool is_doubled(const struct nem_hold *hold)
{
    for (const struct nem_hold *h = hold->name->holds; h; h = h->next)
        if (h != hold && (!h->reading || !hold->reading) && !nem_passed_on(h, hold))
            return true;
    return false;
}

static void judge_grant(struct nem_judge *j, const struct nem_hold *hold)
{
    const struct nem_op *op = hold->returned;
    nem_judged(j, NEM_RULE_GRANT);
    if (!hold->name)
        nem_violation(j, NEM_RULE_GRANT, op->lock, "%s: got it at %.3f ms without an id",
                      nem_who(op), nem_ms(j, op->at));
    else if (!was_granted(hold))
        NEM_BREAKS(j, NEM_RULE_GRANT, op->lock,
                   expired_at_once(j, hold) || lost_while_kept(j, hold) ||
                       is_not_told_yet(j, hold),
                   "%s: got it at %.3f ms, but the server did not give it to %s",
                   nem_who(op), nem_ms(j, op->at), op->id);
    else if (is_doubled(hold))
        nem_violation(j, NEM_RULE_GRANT, op->lock,
                      "%s: got it at %.3f ms by an id that another hold has, too (%s)",
                      nem_who(op), nem_ms(j, op->at), op->id);
}

/* ---- belief */

/* The latest end of the lease that a thread may know of at a record; INT64_MAX:
 * unknown. */
static int64_t end_known_at(const struct nem_judge *j, const struct nem_op *op)
{
    int64_t end = 0;
    const struct nem_name *name = nem_name_find(j, op->id);
    for (const struct nem_tenure *t = name ? name->tenures : NULL; t; t = t->next)
        for (size_t i = 0; i < t->lease_count; i++) {
            const struct nem_entry *lease = t->leases[i];
            if (lease->after > op->at)
                continue;
            int64_t latest = nem_boot_latest_until(j, lease, lease->value, op->end);
            end = latest > end ? latest : end;
        }
    return end == 0 ? INT64_MAX : end;
}

static void judge_belief(struct nem_judge *j, const struct nem_op *op)
{
    int64_t end = end_known_at(j, op);
    if (end == INT64_MAX)
        return;
    nem_judged(j, NEM_RULE_BELIEF);
    if (op->end > end + NEM_ROUNDED)
        nem_violation(j, NEM_RULE_BELIEF, op->lock,
                      "%s: at %.3f ms D is %.3f ms, but the lease ends at %.3f ms (%s)",
                      nem_who(op), nem_ms(j, op->at), nem_ms(j, op->end), nem_ms(j, end),
                      op->id);
}

/* ---- owner */

/* Whether a thread surely had the hold at the time of an entry, so that no other client
 * may have changed it. */
static bool in_hand(const struct nem_hold *hold, const struct nem_name *name,
                    const struct nem_entry *entry)
{
    bool changed = hold->second && hold->second != name; /* by an extend */
    bool lost = hold->lost != 0 && hold->lost <= entry->before;
    return !changed && !lost && hold->end > entry->before &&
           (!hold->unlocking || hold->unlocking->at > entry->before);
}

static void judge_left(struct nem_judge *j, const struct nem_tenure *t)
{
    const struct nem_entry *left = t->left;
    const struct nem_life *life = t->name->life;
    int64_t end = nem_lease_earliest(j, t);
    if (!life || !t->name->holds || t->name->tenures->next || left->before == INT64_MAX)
        return;
    nem_judged(j, NEM_RULE_OWNER);
    if (end <= left->before + NEM_ROUNDED || life->dying <= left->before)
        return; /* expired, or of a dead process */
    for (const struct nem_hold *h = t->name->holds; h; h = h->next)
        if (in_hand(h, t->name, left)) {
            bool excused = nem_excluded(j, left->lock, left->after, left->before) ||
                           nem_forced(j, left->lock, left->after, left->before) ||
                           nem_clock_forward(j, t->granted->after, left->before);
            NEM_BREAKS(j, NEM_RULE_OWNER, left->lock, excused,
                       "%s lost it at the server between %.3f and %.3f ms; it had not "
                       "unlocked, and its lease ended at %.3f ms (%s)",
                       nem_who(h->returned), nem_ms(j, left->after),
                       nem_ms(j, left->before), nem_ms(j, end), t->name->text);
            return;
        }
}

/* A dead process renews nothing; only its last requests may come late. */
static void judge_renewals(struct nem_judge *j, const struct nem_tenure *t)
{
    const struct nem_life *life = t->name->life;
    if (!life || life->over == INT64_MAX)
        return;
    for (size_t i = 0; i < t->lease_count; i++) {
        const struct nem_entry *lease = t->leases[i];
        bool with_grant =
            lease->transaction == t->granted->transaction ||
            (t->downgraded && lease->transaction == t->downgraded->transaction);
        if (with_grant)
            continue;
        nem_judged(j, NEM_RULE_OWNER);
        if (lease->after > life->over + nem_slack(j) &&
            !nem_delayed(j, life->process, life->over, lease->after))
            nem_violation(j, NEM_RULE_OWNER, lease->lock,
                          "%s was renewed after %.3f ms; its process ended by %.3f ms",
                          lease->id, nem_ms(j, lease->after), nem_ms(j, life->over));
    }
}

/* Each client has recorded its uuid before its first request. */
static void judge_strangers(struct nem_judge *j)
{
    for (size_t i = 0; i < j->round->ledger->count; i++) {
        const struct nem_entry *entry = &j->round->ledger->entries[i];
        bool queued = entry->change == NEM_QUEUED;
        if (!queued && entry->change != NEM_GRANTED && entry->change != NEM_READ)
            continue;
        nem_judged(j, NEM_RULE_OWNER);
        if (!nem_life_of(j, entry->id))
            nem_violation(j, NEM_RULE_OWNER, entry->lock,
                          "%s %s between %.3f and %.3f ms, and is the id of no process",
                          entry->id, queued ? "queued" : "got it",
                          nem_ms(j, entry->after), nem_ms(j, entry->before));
    }
}

/* A message about an id that is no acquisition of the client changes nothing. */
static void judge_forged(struct nem_judge *j)
{
    for (size_t i = 0; i < j->round->ledger->count; i++) {
        const struct nem_entry *entry = &j->round->ledger->entries[i];
        if (strstr(entry->id, ":" NEM_FORGED_THREAD ":"))
            nem_violation(
                j, NEM_RULE_OWNER, entry->lock,
                "%s was written between %.3f and %.3f ms; only a forged message "
                "names it",
                entry->id, nem_ms(j, entry->after), nem_ms(j, entry->before));
    }
}

/* ---- holds */

static int64_t later_of(int64_t at, const struct nem_hold *hold)
{
    int64_t until = hold->unlocked ? hold->unlocked->at : INT64_MAX;
    return until > at ? until : at;
}

/* Since when no thread has it: it was granted to no thread, or all have unlocked;
 * INT64_MAX: a thread has it. */
static int64_t nobodys_from(const struct nem_tenure *t)
{
    int64_t from = t->granted->before;
    for (const struct nem_hold *h = t->name->holds; h; h = h->next)
        from = later_of(from, h);
    for (const struct nem_hold *h = t->name->renamed; h; h = h->next_renamed)
        from = later_of(from, h);
    return from;
}

static int64_t stayed_until(const struct nem_judge *j, const struct nem_tenure *t)
{
    int64_t until = t->left ? t->left->after : j->round->ended;
    int64_t end = lease_latest(j, t);
    return end < until ? end : until;
}

/* The time by which a hold without a thread since `from` must be released. An unlock has
 * sent the release before it returned, and a call that gave up has sent its cancel. If
 * that may have failed, or is still under way, the client repeats it in the background,
 * with a request that may take as long again. */
static int64_t gone_by(const struct nem_judge *j, unsigned process, int64_t from,
                       int64_t until)
{
    int64_t timeout = j->round->commandtimeout_ms * NEM_NS_PER_MS;
    int64_t by = from + nem_slack(j);
    if (nem_disturbed(j, process, from - timeout, by))
        by += 2 * timeout + j->round->presence_ms * NEM_NS_PER_MS +
              nem_disturbed_ns(j, process, from, until);
    return by;
}

/* An ACL that refuses a cancel leaves the waiter in the queue, with the presence of its
 * client's other waiters. When its turn comes, the lock is granted to no thread. */
static bool was_refused_since_it_queued(const struct nem_judge *j,
                                        const struct nem_tenure *t, int64_t until)
{
    const struct nem_ledger *ledger = j->round->ledger;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct nem_entry *entry = &ledger->entries[i];
        if (entry->change == NEM_QUEUED && entry->lock == t->granted->lock &&
            strcmp(entry->id, t->name->text) == 0)
            return nem_refused(j, entry->after, until);
    }
    return false;
}

int64_t nem_nobodys_ns(const struct nem_judge *j, unsigned lock, int64_t from, int64_t to)
{
    int64_t sum = 0;
    for (size_t i = 0; i < j->tenure_count; i++) {
        const struct nem_tenure *t = j->tenures[i];
        if (t->granted->lock != lock || t->name->holds || t->name->renamed)
            continue;
        int64_t begin = t->granted->after > from ? t->granted->after : from;
        int64_t end = t->left && t->left->before < to ? t->left->before : to;
        if (begin < end && was_refused_since_it_queued(j, t, end))
            sum += end - begin;
    }
    return sum;
}

static void judge_orphan(struct nem_judge *j, const struct nem_tenure *t)
{
    const struct nem_life *life = t->name->life;
    int64_t from = nobodys_from(t), until = stayed_until(j, t);
    if (!life || from == INT64_MAX)
        return;
    if (nem_retains(t->granted->lock)) /* it may be retained for that long */
        from += NEM_RETAIN_MS * NEM_NS_PER_MS;
    int64_t by = gone_by(j, life->process, from, until);
    if (lease_latest(j, t) <= by || life->dying <= by)
        return;
    nem_judged(j, NEM_RULE_HOLDS);
    if (until > by)
        NEM_BREAKS(
            j, NEM_RULE_HOLDS, t->granted->lock,
            nem_clock_stepped(j, t->granted->after, until) ||
                was_refused_since_it_queued(j, t, until),
            "process %u: %s holds at the server until %.3f ms and more; nobody has "
            "it since %.3f ms",
            life->process, t->name->text, nem_ms(j, until), nem_ms(j, from));
}

void nem_judge_server(struct nem_judge *j)
{
    for (size_t i = 0; i < j->hold_count; i++)
        judge_grant(j, j->holds[i]);
    for (size_t i = 0; i < j->op_count; i++) {
        const struct nem_op *op = j->ops[i];
        if (op->id[0] && op->end != 0 && op->lock < NEM_LOCKS_MAX)
            judge_belief(j, op);
    }
    judge_strangers(j);
    judge_forged(j);
    for (size_t i = 0; i < j->tenure_count; i++) {
        if (j->tenures[i]->left)
            judge_left(j, j->tenures[i]);
        judge_renewals(j, j->tenures[i]);
        judge_orphan(j, j->tenures[i]);
    }
}
