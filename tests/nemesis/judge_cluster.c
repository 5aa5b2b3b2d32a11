/* SPDX-License-Identifier: Apache-2.0 */
/* Which locks of a cluster a fault of its nodes affects: those of a shard, or of a hash
 * slot. All others have to go on as if nothing had happened. */
#include "judge_impl.h"

enum { BITS = 8 };

static int64_t later(int64_t at, int64_t ns)
{
    return at > INT64_MAX - ns ? INT64_MAX : at + ns;
}

bool nem_is_of_nodes(const struct nem_judge *j, const struct nem_fault *fault)
{
    return nem_is_cluster(j->round->servers) && fault->kind >= NEM_CLIENT_KILL &&
           fault->kind < NEM_KINDS;
}

bool nem_hits_lock(const struct nem_judge *j, const struct nem_fault *fault,
                   unsigned lock)
{
    return nem_is_of_nodes(j, fault) && lock < NEM_LOCKS_MAX &&
           (fault->locks[lock / BITS] >> lock % BITS & 1) != 0;
}

/* With full coverage no node serves a hash slot while one has no master. */
static bool closes_all(const struct nem_judge *j, const struct nem_fault *fault)
{
    return j->round->full_coverage &&
           (fault->kind == NEM_MASTER_KILL || fault->kind == NEM_MASTER_STOP ||
            fault->kind == NEM_BUS_CUT);
}

static bool hinders(const struct nem_judge *j, const struct nem_fault *fault,
                    unsigned lock)
{
    return nem_hits_lock(j, fault, lock) ||
           (nem_is_of_nodes(j, fault) && closes_all(j, fault));
}

/* Whether holders renew all the time. A replica that restarts confirms nothing; a move
 * that had to be repaired (took_us) left the hash slot without a node. */
static bool is_gentle(const struct nem_judge *j, const struct nem_fault *fault)
{
    switch (fault->kind) {
    case NEM_SCRIPT_FLUSH:
    case NEM_FAILOVER:
        return true;
    case NEM_RESHARD:
    case NEM_RESHARD_HALFWAY:
        return fault->took_us == 0;
    case NEM_ROLLING_RESTART:
        return j->round->servers == NEM_CLUSTER;
    default:
        return false;
    }
}

bool nem_nodes_disturbed(const struct nem_judge *j, unsigned lock, int64_t from,
                         int64_t to)
{
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        if (hinders(j, fault, lock) && !is_gentle(j, fault) && fault->begin <= to &&
            later(fault->end, nem_room(j)) >= from)
            return true;
    }
    return false;
}

bool nem_nodes_unreachable(const struct nem_judge *j, unsigned lock, int64_t from,
                           int64_t to)
{
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        if (hinders(j, fault, lock) && fault->kind != NEM_SCRIPT_FLUSH &&
            fault->kind != NEM_ACL && fault->begin <= to &&
            later(fault->end, nem_slack(j)) >= from)
            return true;
    }
    return false;
}

/* Failovers count only where the replica has to be back before a lock can be taken. */
static bool closes(const struct nem_judge *j, const struct nem_fault *fault)
{
    switch (fault->kind) {
    case NEM_SCRIPT_FLUSH:
        return false;
    case NEM_RESHARD:
        return fault->took_us != 0;
    case NEM_FAILOVER:
    case NEM_MASTER_KILL:
    case NEM_MASTER_STOP:
    case NEM_TAKEOVER:
    case NEM_ROLLING_RESTART:
        return j->round->servers == NEM_CLUSTER_REPLICAS;
    default:
        return true;
    }
}

/* No two faults of nodes overlap. */
int64_t nem_nodes_closed_ns(const struct nem_judge *j, unsigned lock, int64_t from,
                            int64_t to)
{
    int64_t sum = 0;
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        int64_t begin = fault->begin > from ? fault->begin : from;
        int64_t end = later(fault->end, nem_room(j));
        end = end < to ? end : to;
        if (hinders(j, fault, lock) && closes(j, fault) && end > begin)
            sum += end - begin;
    }
    return sum;
}
