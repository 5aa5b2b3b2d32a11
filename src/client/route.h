/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of a client's servers has a lock. Everything that sends a request asks here, at
 * the moment of sending. A plain server and a master that Sentinel names are one target
 * for all locks: there, a move changes what is behind the target, not the route. In a
 * cluster each node is a target, and the hash slots of the names are the routes. No state
 * of its own. Thread: any. Blocks: no.
 */
#ifndef RLK_ROUTE_H
#define RLK_ROUTE_H

#include "client/cluster.h"
#include "client/monitor.h"
#include "client/target.h"
#include "state/lock.h"

struct rlk_route {
    struct rlk_target target;    /* in a cluster: of what has no known node */
    struct rlk_monitor monitor;  /* of its sentinels */
    struct rlk_cluster *cluster; /* NULL: the target has all locks */
    atomic_bool sharded;         /* scripts may use sharded channels (P21) */
    atomic_bool shard_refused;   /* the user may not */
};

static inline bool rlk_route_is_cluster(const struct rlk_route *route)
{
    return __builtin_expect(route->cluster != NULL, 0);
}
/* Whether no server is behind the target: the node has to be found first. */
static inline bool rlk_route_is_nowhere(const struct rlk_route *route,
                                        const struct rlk_target *target)
{
    return rlk_route_is_cluster(route) && target == &route->target;
}

/* The target that has the lock. */
static inline struct rlk_target *rlk_route_to(struct rlk_route *route,
                                              const struct rlk_lock *lock)
{
    if (rlk_route_is_cluster(route))
        return rlk_cluster_to(route->cluster, lock->name, lock->name_len);
    return &route->target;
}
/* The same for a lock that the client does not use itself. */
static inline struct rlk_target *rlk_route_to_name(struct rlk_route *route,
                                                   const char *name, size_t name_len)
{
    if (rlk_route_is_cluster(route))
        return rlk_cluster_to(route->cluster, name, name_len);
    return &route->target;
}

/* The target of a request that is about no lock. */
static inline struct rlk_target *rlk_route_to_any(struct rlk_route *route)
{
    if (rlk_route_is_cluster(route))
        return rlk_cluster_to_any(route->cluster);
    return &route->target;
}

/* rule: P21 */
/* The client waits for the lock, or shares it: messages about it are to come by a sharded
 * channel, where there are such. Locks: holds the registry's mu. */
static inline void rlk_route_use_mail_locked(struct rlk_route *route,
                                             const struct rlk_lock *lock, int64_t now)
{
    if (!rlk_route_is_cluster(route) || !atomic_load(&route->sharded))
        return;
    struct rlk_target *target = rlk_route_to(route, lock);
    if (target != &route->target)
        rlk_shardmail_want_locked(target, lock->name, lock->name_len, now);
}

/* A count of moves: another count means that another server may have the lock now. */
static inline unsigned rlk_route_moves(struct rlk_route *route)
{
    if (rlk_route_is_cluster(route))
        return rlk_cluster_changes(route->cluster);
    return atomic_load(&route->target.moves.count);
}

#endif
