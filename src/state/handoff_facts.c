/* SPDX-License-Identifier: Apache-2.0 */
/* Who else wants a hold, as the server says, and what is due for a retained one. See
 * handoff.h. Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "state/handoff.h"

#include "state/fastpath.h"
#include "state/registry.h"

enum {
    CLEAN_MS = 5 /* for this long a hold is unused before the server learns it (K11) */
};

void rlk_handoff_answered_locked(struct rlk_hold *hold, int64_t sent, unsigned flags)
{
    /* rule: H7 */
    hold->contention.ask =
        hold->tokens.ask; /* tokens may be due since that request left */
    if (rlk_hold_says_recall(hold, flags))
        hold->contention.recall = true;
    if (rlk_hold_says_contended(hold, flags))
        hold->contention.contended = true; /* for as long as this id lives */
    if (hold->contention.contended) {
        rlk_fastpath_close_locked(hold);
        return;
    }
    hold->budget.from = sent;
    hold->budget.sections = 0;
}

void rlk_handoff_renewed_locked(struct rlk_hold *hold, int64_t sent, unsigned flags,
                                bool asked)
{
    /* rule: H7 */
    if (asked || (flags & (RLK_OTHERS | RLK_WILL_TELL)))
        rlk_handoff_answered_locked(hold, sent, flags);
}

void rlk_handoff_recalled_locked(struct rlk_hold *hold, int64_t now)
{
    /* rule: K6 */
    /* of a REQUESTED hold, too: the recall may come before the answer */
    hold->contention.contended = true;
    rlk_fastpath_close_locked(hold); /* from now on each section counts in the budget */
    if (rlk_hold_is_retained(hold) && !hold->lock->queue->woken)
        rlk_hold_end_unused_locked(hold, now);
}

bool rlk_handoff_retained_due_locked(struct rlk_hold *hold, int64_t now)
{
    /* rule: K5, K9 */
    if (hold->pass->retain_ns == 0 || !rlk_fastpath_is_empty(hold) ||
        (!hold->contention.contended && now < rlk_hold_retained_until(hold) &&
         now < hold->risk))
        return false;
    /* the hold stays if a thread just entered by the fast path */
    rlk_hold_end_unused_locked(hold, now);
    return !rlk_hold_is_live(hold);
}

bool rlk_handoff_clears_mark_locked(struct rlk_hold *hold, int64_t now)
{
    /* rule: K11 */
    if (!hold->robust.mark_cleared && hold->pass->retain_ns > 0 &&
        rlk_id_robust(&hold->id) &&
        now - hold->pass->used_at >= CLEAN_MS * RLK_NS_PER_MS) {
        rlk_fastpath_close_locked(hold); /* which finds a thread inside */
        hold->robust.mark_cleared = rlk_hold_is_retained(hold);
    }
    return hold->robust.mark_cleared;
}

void rlk_handoff_answered_retained_locked(struct rlk_hold *hold)
{
    /* rule: K5 */
    int64_t risk = hold->end - hold->id.grant_ms * RLK_NS_PER_MS / 3;
    if (hold->pass->retain_ns > 0 && !hold->lease.at_risk &&
        rlk_fastpath_is_empty(hold) && risk > hold->risk)
        hold->risk = risk;
}
