/* SPDX-License-Identifier: Apache-2.0 */
/* The servers that have a client's locks, as of one moment: the masters of its cluster
 * that have hash slots, or its only server. For what looks at all of them. Thread: any.
 * Locks: takes the cluster's mutex. */
#ifndef RLK_MASTERS_H
#define RLK_MASTERS_H

#include "client/target.h"
#include "net/cluster_ids.h"

struct rlock_client;
struct rlk_cluster_master;

struct rlk_masters {
    size_t count;
    struct rlk_target **each;
    char (*ids)[RLK_CLUSTER_ID_SIZE]; /* of nodes; "": unknown. NULL: no cluster */
    /* in a cluster, by hash slot: an index of `each`, plus 1; 0: no node is known to have
     * it. NULL: no cluster */
    uint16_t *owner;
};

/* Waits for the map of a cluster, if none of its nodes is known. Returns 0, or the code
 * for the caller, with the thread's message. Blocks: until `until` (CLOCK_BOOTTIME). */
int rlk_masters_get(struct rlock_client *client, int64_t until,
                    struct rlk_masters *ret_masters);
/* Frees the list; the servers may be let go. Harmless when zeroed. */
void rlk_masters_put(struct rlk_masters *masters);

/* Which of them it is, plus 1; 0: none, at least by its id and its address. */
size_t rlk_masters_find(const struct rlk_masters *masters,
                        const struct rlock_client *client,
                        const struct rlk_cluster_master *master);
/* How many hash slots no node is known to have. */
unsigned rlk_masters_uncovered(const struct rlk_masters *masters);

#endif
