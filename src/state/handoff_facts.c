/* SPDX-License-Identifier: Apache-2.0 */
/* What the server says of who else wants a hold, and what is due for a retained one. See
 * handoff.h. Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "state/handoff.h"

#include "state/fastpath.h"
#include "state/registry.h"

enum { CLEAN_MS = 5 /* so long nobody has been inside before the server hears of it */ };

void rlk_handoff_answered_locked(struct rlk_hold *hold, int64_t sent, unsigned flags)
{
    /* rule: H7 */
    hold->asks_others = hold->asks_tokens; /* since that request left */
    if (rlk_hold_hears_telling(hold, flags))
        hold->tells = true;
    if (rlk_hold_hears_others(hold, flags))
        hold->others = true; /* for this id, for good */
    if (hold->others) {
        rlk_fastpath_close_locked(hold);
        return;
    }
    hold->budget_from = sent;
    hold->sections = 0;
}

void rlk_handoff_renewed_locked(struct rlk_hold *hold, int64_t sent, unsigned flags,
                                bool asked)
{
    /* rule: H7 */
    if (asked || (flags & (RLK_OTHERS | RLK_WILL_TELL)))
        rlk_handoff_answered_locked(hold, sent, flags);
}

void rlk_handoff_wanted_locked(struct rlk_hold *hold, int64_t now)
{
    /* rule: K6 */
    /* of an id that still asks, too: it may come before the answer */
    hold->others = true;
    rlk_fastpath_close_locked(hold); /* sections are counted from now on */
    if (rlk_hold_is_retained(hold) && !hold->lock->queue->woken)
        rlk_hold_end_unused_locked(hold, now);
}

bool rlk_handoff_idle_due_locked(struct rlk_hold *hold, int64_t now)
{
    /* rule: K9 */
    if (hold->pass->retain_ns == 0 || !rlk_fastpath_is_idle(hold) ||
        (!hold->others && now < rlk_hold_retained_until(hold) && now < hold->risk))
        return false;
    rlk_hold_end_unused_locked(hold,
                               now); /* unless somebody comes by the gate just now */
    return !rlk_hold_is_live(hold);
}

bool rlk_handoff_cleans_locked(struct rlk_hold *hold, int64_t now)
{
    /* rule: K11 */
    if (!hold->cleaned && hold->pass->retain_ns > 0 && rlk_id_robust(&hold->id) &&
        now - hold->pass->used_at >= CLEAN_MS * RLK_NS_PER_MS) {
        rlk_fastpath_close_locked(hold); /* which finds who has come by it */
        hold->cleaned = rlk_hold_is_retained(hold);
    }
    return hold->cleaned;
}

void rlk_handoff_answered_idle_locked(struct rlk_hold *hold)
{
    /* rule: K5 */
    int64_t risk = hold->end - hold->id.grant_ms * RLK_NS_PER_MS / 3;
    if (hold->pass->retain_ns > 0 && !hold->at_risk && rlk_fastpath_is_idle(hold) &&
        risk > hold->risk)
        hold->risk = risk;
}
