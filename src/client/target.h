/* SPDX-License-Identifier: Apache-2.0 */
/* A server that may hold locks, as one client uses it: the connections of the client's
 * callers and of the two threads, and what the client knows of the server. Which of the
 * targets has a lock: route.h. */
#ifndef RLK_TARGET_H
#define RLK_TARGET_H

#include "client/shardmail.h"
#include "client/subscriber.h"
#include "client/watchdog.h"
#include "net/pool.h"
#include "net/url.h"

struct rlk_target {
    /* immutable while the client runs */
    struct rlock_client *client;
    const struct rlk_endpoint *endpoint;
    struct rlk_pool *pool;

    struct rlk_moves moves;               /* shared by all its connections */
    _Atomic int64_t patience;             /* script.h */
    struct rlk_subscription subscription; /* the subscriber thread's */
    struct rlk_shardmail shardmail;       /* guarded by the registry's mu */
    struct rlk_watch watch;               /* the watchdog thread's */
};

/* Makes the pool. The two threads do not know of the target yet: rlk_watchdog_join,
 * rlk_subscriber_join. Returns 0, ENOMEM or EAGAIN. Blocks: no. */
int rlk_target_init(struct rlk_target *target, struct rlock_client *client,
                    const struct rlk_endpoint *endpoint);
/* The two threads have left it, and no call uses it. Harmless when zeroed. */
void rlk_target_end(struct rlk_target *target);
/* After that: makes it as new, while other threads may still look whether it is used.
 * Locks: takes the registry's mu. */
void rlk_target_reset(struct rlk_target *target);

#endif
