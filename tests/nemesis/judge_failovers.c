/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a failover may lose. A replica becomes the master without what the old master did
 * last: locks that were taken or renewed shortly before, and all that the old master does
 * until it knows of the other one. Nothing of that, when all replicas that may be
 * promoted confirm each lock. Only records say when a hold was written, so more is
 * excused than was lost: but nothing that had been written long before the failover, and
 * nothing that begins before it, or later than a lease after it.
 */
#include "judge_impl.h"

/* The lease that the hold had last; if an extend has changed it, the shorter one. */
static int64_t lease_ns(const struct nem_judge *j, const struct nem_hold *hold)
{
    int64_t renewed = j->round->lease_ms * NEM_NS_PER_MS;
    int64_t asked =
        hold->asked ? (int64_t)hold->asked->lease_ms * NEM_NS_PER_MS : renewed;
    if (asked == 0)
        return renewed;
    return hold->second && renewed < asked ? renewed : asked;
}

static int64_t asked_at(const struct nem_hold *hold)
{
    return hold->asked ? hold->asked->at : hold->returned->at;
}

/* Whether the hold may have been granted by another one's release, and has not been
 * renewed since: a grant lasts for a presence. */
static bool may_be_granted(const struct nem_judge *j, const struct nem_hold *hold)
{
    return hold->end == hold->returned->end &&
           hold->end - hold->returned->at <= j->round->presence_ms * NEM_NS_PER_MS;
}

/* The latest time at which the last write for the hold was sent that it learned of: D is
 * that time, and 99 percent of the lease, less 2 ms and what clocks may be apart. */
static int64_t written_by(const struct nem_judge *j, const struct nem_hold *hold)
{
    enum { PERCENT = 100, OF_LEASE = 99, APART_MS = 52 };
    int64_t lease = lease_ns(j, hold);
    int64_t grant = j->round->presence_ms * NEM_NS_PER_MS;
    if (hold->end == 0)
        return hold->returned->at;
    if (may_be_granted(j, hold) && grant < lease)
        lease = grant;
    return hold->end - lease / PERCENT * OF_LEASE + APART_MS * NEM_NS_PER_MS +
           NEM_ROUNDED;
}

/* Of a cluster only the shard's locks. */
static bool can_lose(const struct nem_judge *j, const struct nem_fault *fault,
                     unsigned lock)
{
    enum nem_servers servers = j->round->servers;
    return nem_loses(fault->kind, servers) &&
           (!nem_is_cluster(servers) || nem_hits_lock(j, fault, lock));
}

static bool loses(const struct nem_judge *j, const struct nem_fault *fault,
                  const struct nem_hold *hold, int64_t from)
{
    int64_t written = written_by(j, hold);
    int64_t tail = nem_slack(j); /* what a replica may lag behind */
    if (written < fault->begin)
        tail += nem_stalled_ns(j, written, fault->begin);
    return asked_at(hold) <= fault->end && written >= fault->begin - tail &&
           from >= fault->begin && from <= fault->end + lease_ns(j, hold) + nem_slack(j);
}

bool nem_lost_by_failover(const struct nem_judge *j, const struct nem_hold *hold,
                          const struct nem_hold *other, int64_t from)
{
    if (j->round->strict)
        return false;
    if (other && asked_at(hold) > other->returned->at)
        return false;
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        if (can_lose(j, fault, hold->returned->lock) && loses(j, fault, hold, from))
            return true;
    }
    return false;
}
