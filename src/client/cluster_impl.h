/* SPDX-License-Identifier: Apache-2.0 */
/* What cluster.c, which has the nodes, and cluster_load.c, which loads the map, share. */
#ifndef RLK_CLUSTER_IMPL_H
#define RLK_CLUSTER_IMPL_H

#include "base/sync.h"
#include "client/cluster.h"
#include "net/cluster_map.h"

enum { RLK_CLUSTER_BUCKETS = 64, RLK_CLUSTER_TEXT_SIZE = 256 };

enum rlk_node_state {
    RLK_NODE_LIVE,
    RLK_NODE_LEAVING, /* the subscriber thread may still use it */
    RLK_NODE_UNUSED   /* memory for another node */
};

struct rlk_node {
    /* immutable while it is live */
    struct rlk_target target;
    struct rlk_endpoint endpoint; /* the client's, but for host, port and label */
    uint16_t index;               /* in the table, plus 1 */

    enum rlk_node_state state;    /* guarded by mu, as are the next two */
    struct rlk_node *chain;       /* in its bucket, or among the unused */
    char id[RLK_CLUSTER_ID_SIZE]; /* as the last map says */
    bool watched, listened;       /* the two threads know it; guarded by joining */
    int64_t gone_at;    /* since when it has no hash slots; 0: it has some; the watchdog
                           thread's */
    atomic_bool used;   /* both threads know it */
    atomic_bool wanted; /* is to be joined */
    atomic_uint users;  /* calls that use it */
    atomic_bool let_go; /* no call may begin to use it */
    atomic_uint hash_slots;  /* how many it has */
    _Atomic int64_t away_at; /* when it last did not answer; 0: never */
};

/* The nodes by index. It grows by a copy; threads may still read the earlier ones. */
struct rlk_node_table {
    struct rlk_node_table *earlier;
    size_t size;
    struct rlk_node *_Atomic nodes[];
};

struct rlk_cluster {
    struct rlock_client *client;   /* immutable */
    struct rlk_cluster_load *load; /* the watchdog thread's */

    struct rlk_node_table *_Atomic table;
    atomic_size_t count;
    _Atomic uint16_t owner[RLK_HASH_SLOTS]; /* an index of the table, plus 1; 0: none */
    /* the nodes that are getting a hash slot; NULL: no node has said so yet */
    _Atomic uint16_t *_Atomic importers;
    atomic_uint changes;
    atomic_bool wanted;  /* the map is to be loaded */
    atomic_bool joins;   /* a node is wanted */
    atomic_bool departs; /* a node has no hash slots */
    int64_t sweep_at;    /* the watchdog thread's */
    int64_t keep_ns;     /* how long a node without hash slots stays; immutable once one
                            has none */

    /* Held while a node joins the two threads; the loops' mutexes nest in it. */
    struct rlk_mutex joining;
    bool leaving; /* guarded by joining */

    struct rlk_mutex mu; /* protects what follows; nothing nests in it */
    struct rlk_cond changed;
    struct rlk_node *buckets[RLK_CLUSTER_BUCKETS]; /* by address */
    struct rlk_node *unused;
    int64_t moved_at[RLK_CLUSTER_BUCKETS]; /* when MOVED last changed one of these hash
                                              slots */
    unsigned rounds; /* how many times the nodes were asked for the map, */
    int code;        /* and what came of the last time; 0: a map */
    char text[RLK_CLUSTER_TEXT_SIZE];
};

/* Where the chain of the nodes with this address begins. Locks: holds mu. */
struct rlk_node **rlk_cluster_bucket_locked(struct rlk_cluster *cluster, const char *host,
                                            uint16_t port);
/* Takes over a map; `asked` is for messages. Returns 0 or ENOMEM. Locks: takes mu, and
 * the registry's mu. */
int rlk_cluster_apply(struct rlk_cluster *cluster, const struct rlk_cluster_map *map);
/* The end of a round, with its result, for those who wait. Locks: takes mu. */
void rlk_cluster_end_round(struct rlk_cluster *cluster, int code, const char *text);
/* Whether the node did not answer lately. */
bool rlk_cluster_is_away(const struct rlk_node *node, int64_t now);
/* The node at this place of the table. */
struct rlk_node *rlk_cluster_node(struct rlk_cluster *cluster, size_t i);
/* The same by its index; NULL: 0. */
static inline struct rlk_node *rlk_cluster_node_at(struct rlk_cluster *cluster,
                                                   uint16_t index)
{
    return index == 0 ? NULL : rlk_cluster_node(cluster, index - 1u);
}
static inline struct rlk_node *rlk_cluster_node_of(const struct rlk_target *target)
{
    return RLK_CONTAINER_OF(target, struct rlk_node, target);
}

#endif
