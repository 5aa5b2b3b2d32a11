/* SPDX-License-Identifier: Apache-2.0 */
/* What the server or a message says of a live hold: confirmed, doubted; and the news that
 * the event callback gets. See hold.h. Thread: any. Locks: hold the registry's mu.
 * Blocks: no. */
#include "state/fastpath.h"
#include "state/registry.h"

enum { SKEW_PARTS = 12 /* the initial skew is this part (1/12) of a short lease */ };

void rlk_hold_news_locked(struct rlk_hold *hold, unsigned news)
{
    /* rule: W23 */
    rlk_fastpath_close_locked(hold);
    for (struct rlk_list *l = hold->holders.next; l != &hold->holders; l = l->next) {
        struct rlk_holder *holder = RLK_CONTAINER_OF(l, struct rlk_holder, hold_link);
        if (holder->claimed) /* a thread that never knew of its hold gets no news */
            rlk_holder_news_locked(holder, news);
    }
}

void rlk_hold_doubt_locked(struct rlk_hold *hold, int64_t now)
{
    rlk_fastpath_close_locked(hold); /* no thread enters or leaves by the fast path now */
    hold->lease.doubted = true;
    /* rule: K8 */
    hold->renew_at = now;
    rlk_hold_schedule_locked(hold);
}

/* rule: P17 */
/* What is taken off a lease because clocks may be apart. */
static int64_t skew(const struct rlk_hold *hold, int64_t ms)
{
    const struct rlk_registry *reg = hold->lock->registry;
    int64_t part = ms * RLK_NS_PER_MS / SKEW_PARTS;

    return reg->skew_is_initial && part < reg->skew_ns ? part : reg->skew_ns;
}

static int64_t end_of(const struct rlk_hold *hold, int64_t sent, int64_t ms)
{
    return rlk_hold_lease_end(sent, ms) - skew(hold, ms);
}

void rlk_hold_confirm_locked(struct rlk_hold *hold, int64_t sent, int64_t ms)
{
    /* a server whose clock stepped back may answer with hours. No more is believed than
     * was asked for, because that clock may be set right again */
    if (ms > hold->lease_ms)
        ms = hold->lease_ms;
    hold->proof_sent = sent;
    /* an older answer does not lower D */
    if (!rlk_hold_is_live(hold) || end_of(hold, sent, ms) > hold->end)
        rlk_hold_relet_locked(hold, sent, ms);
}

void rlk_hold_relet_locked(struct rlk_hold *hold, int64_t sent, int64_t ms)
{
    int64_t end = end_of(hold, sent, ms);
    int64_t third = (ms * RLK_NS_PER_MS - skew(hold, ms)) / 3;

    hold->end = end;
    if (hold->fixed) {
        int64_t tenth = ms / 10 > 50 ? ms / 10 : 50;
        hold->risk = end - tenth * RLK_NS_PER_MS;
    } else {
        hold->risk = end - third;
        /* a grant's short TTL is renewed two thirds before its end, a whole lease after a
         * third */
        hold->renew_at = ms < hold->lease_ms ? end - 2 * third : sent + third;
    }
    hold->backoff_ms = 0;
    if (hold->lease.at_risk) {
        hold->lease.at_risk = false;
        rlk_hold_news_locked(hold, RLK_NEWS_SAFE);
    }
}
