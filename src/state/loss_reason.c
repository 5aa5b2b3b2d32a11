/* SPDX-License-Identifier: Apache-2.0 */
/* See loss_reason.h. No state. Thread: any. */
#include "state/loss_reason.h"

#include "base/clock.h"
#include "base/log.h"
#include "state/registry.h"

#include <stdio.h>
#include <string.h>

#define NOT_OURS "the server no longer records this hold"

static const char *const texts[] = {
    [RLK_LOSS_NONE] = "",
    [RLK_LOSS_ENDED] = "no renewal was confirmed",
    [RLK_LOSS_FIXED_ENDED] = "its fixed lease ended",
    [RLK_LOSS_UNCONFIRMED] = "no renewal was confirmed",
    [RLK_LOSS_UNREACHABLE] = "server unreachable",
    [RLK_LOSS_REFUSED] = "the server refused to renew it; last renewed",
    [RLK_LOSS_REPLICAS] = "too few replicas confirmed its renewals; last renewed",
    [RLK_LOSS_UNREADABLE] = "unexpected replies to its renewals; last renewed",
    [RLK_LOSS_STOOD_STILL] =
        "this process or its watchdog did not run; a renewal was due",
    [RLK_LOSS_FORCED] = (NOT_OURS ": unlocked by force"),
    [RLK_LOSS_NOT_OURS] = (NOT_OURS ": its key was deleted or expired"),
    [RLK_LOSS_ANOTHERS] = "the server granted it to another holder",
};

/* Since when the server does not answer: since the first request without an answer, which
 * may be a renewal in flight. Nothing is known of the time before that request. */
static int64_t away_since(const struct rlk_hold *hold, int64_t heard_at)
{
    int64_t since = rlk_registry_away_since(hold->lock->registry);

    if (hold->op && hold->op->sent > heard_at && hold->op->sent < since)
        since = hold->op->sent;
    return since == RLK_NEVER ? heard_at : since;
}

enum rlk_loss rlk_loss_reason_of_locked(const struct rlk_hold *hold, enum rlk_loss loss,
                                        int64_t now, int64_t *ret_ms)
{
    int64_t heard_at =
        atomic_load_explicit(&hold->lock->registry->heard_at, memory_order_relaxed);
    int64_t third = hold->end - hold->risk, since = hold->proof_sent;

    *ret_ms = 0;
    if (loss == RLK_LOSS_NOT_OURS)
        return hold->lease.reported_lost ? RLK_LOSS_FORCED : loss;
    if (loss != RLK_LOSS_ENDED && loss != RLK_LOSS_UNCONFIRMED)
        return loss;
    if (hold->fixed)
        return RLK_LOSS_FIXED_ENDED;
    if (hold->lease.refused) {
        loss = hold->lease.unreadable ? RLK_LOSS_UNREADABLE : RLK_LOSS_REFUSED;
    } else if (hold->lease.few_replicas || (hold->op && hold->op->few_replicas)) {
        loss = RLK_LOSS_REPLICAS;
    } else if (!hold->op && now - hold->renew_at > third / 2) {
        /* no renewal was tried: a try that fails puts the next one off by little */
        loss = RLK_LOSS_STOOD_STILL;
        since = hold->renew_at;
    } else if (now - heard_at >= third) {
        /* no connection heard the server, although renewals were due: they begin a third
         * of the lease before the risk, which begins a third before the end */
        loss = RLK_LOSS_UNREACHABLE;
        since = away_since(hold, heard_at);
    }
    *ret_ms = (now - since) / RLK_NS_PER_MS;
    return loss;
}

const char *rlk_loss_reason_write(char buf[RLK_CAUSE_SIZE], enum rlk_loss loss,
                                  int64_t ms)
{
    char s[RLK_LOG_NUMBER_SIZE];

    rlk_log_number(s, ms, 1000, 1);
    if (loss == RLK_LOSS_REFUSED || loss == RLK_LOSS_UNREADABLE ||
        loss == RLK_LOSS_REPLICAS || loss == RLK_LOSS_STOOD_STILL)
        snprintf(buf, RLK_CAUSE_SIZE, "%s %s s ago", texts[loss], s);
    else if (loss == RLK_LOSS_ENDED || loss == RLK_LOSS_UNCONFIRMED ||
             loss == RLK_LOSS_UNREACHABLE)
        snprintf(buf, RLK_CAUSE_SIZE, "%s for %s s", texts[loss], s);
    else
        snprintf(buf, RLK_CAUSE_SIZE, "%s", texts[loss]);
    return buf;
}

const char *rlk_loss_reason_write_risk(char buf[RLK_CAUSE_SIZE], enum rlk_loss loss,
                                       int64_t ms, int64_t left_ms)
{
    char left[RLK_LOG_NUMBER_SIZE];

    if (loss == RLK_LOSS_NONE) {
        snprintf(buf, RLK_CAUSE_SIZE, "it was unlocked meanwhile");
        return buf;
    }
    if (loss == RLK_LOSS_FIXED_ENDED)
        snprintf(buf, RLK_CAUSE_SIZE, "its fixed lease is about to end");
    else
        rlk_loss_reason_write(buf, loss, ms);
    size_t len = strlen(buf);
    snprintf(buf + len, RLK_CAUSE_SIZE - len, "; %s s left",
             rlk_log_number(left, left_ms, 1000, 1));
    return buf;
}
