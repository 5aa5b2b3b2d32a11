/* SPDX-License-Identifier: Apache-2.0 */
/* When something is due for a live hold: its end D, its next renewal, its risk; see
 * hold.h. Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "state/fastpath.h"
#include "state/registry.h"

enum { ASK_MAX_MS = 1000 /* between two requests about a hold that threads share */ };

int64_t rlk_hold_lease_end(int64_t sent, int64_t ms)
{
    /* rule: S1 */
    /* 1 % for clocks that run apart, 2 ms for the granularity of both sides */
    return sent + ms * (RLK_NS_PER_MS * 99 / 100) - 2 * RLK_NS_PER_MS;
}

bool rlk_hold_renewable_locked(const struct rlk_hold *hold)
{
    if (hold->op)
        return false;
    if (hold->server.downgrade)
        return true;
    return (!hold->fixed || hold->lease.doubted) &&
           !(hold->reading && hold->lock->queue->renewal.op.kind != RLK_OP_NONE);
}

int64_t rlk_hold_contention_due(const struct rlk_hold *hold)
{
    int64_t at = RLK_NEVER;

    /* rule: H8, K5 */
    if (hold->contention.ask) {
        at = 0;
    } else if (hold->pass->entered_at > hold->proof_sent || hold->pass->fastpath != 0 ||
               rlk_hold_is_retained(hold)) {
        int64_t period = hold->id.grant_ms * RLK_NS_PER_MS / 3;
        int64_t max = ASK_MAX_MS * RLK_NS_PER_MS;
        at = hold->proof_sent + (period < max ? period : max);
    }
    return at > hold->ask_after ? at : hold->ask_after;
}

int64_t rlk_hold_retained_until(const struct rlk_hold *hold)
{
    /* if a thread is inside by the fast path, the next request about the hold checks
     * again */
    return hold->pass->retain_ns > 0 && rlk_fastpath_is_empty(hold)
               ? hold->pass->used_at + hold->pass->retain_ns
               : RLK_NEVER;
}

void rlk_hold_schedule_locked(struct rlk_hold *hold)
{
    int64_t when = hold->end;

    if (rlk_hold_renewable_locked(hold)) {
        int64_t ask_at = rlk_hold_contention_due(hold);
        if (ask_at < when)
            when = ask_at;
        if (hold->renew_at < when &&
            (!rlk_hold_is_retained(hold) ||
             hold->lease.doubted)) /* else contention_due asks more often */
            when = hold->renew_at;
    }
    if (rlk_hold_retained_until(hold) < when)
        when = rlk_hold_retained_until(hold);
    if (!hold->lease.at_risk && hold->risk < when)
        when = hold->risk;
    rlk_timer_arm(&hold->lock->registry->timers, &hold->timer, when);
}
