/* SPDX-License-Identifier: Apache-2.0 */
/* Which master of a cluster has which hash slots: the reply to CLUSTER SLOTS. Any program
 * may be at the address of a node, so every field is checked before it is believed.
 * Immutable once parsed. Thread: any. */
#ifndef RLK_CLUSTER_MAP_H
#define RLK_CLUSTER_MAP_H

#include "net/cluster_ids.h"
#include "net/conn.h"
#include "net/key.h"

struct rlk_cluster_master {
    char *host; /* as the cluster announces it; IPv6 without brackets */
    uint16_t port;
    char id[RLK_CLUSTER_ID_SIZE]; /* the same as long as the node lives; "": not said */
};

struct rlk_cluster_map {
    size_t master_count;
    struct rlk_cluster_master *masters;
    struct rlk_cluster_ids ids;     /* of masters and replicas */
    uint16_t owner[RLK_HASH_SLOTS]; /* an index into masters, plus 1; 0: nobody has it, or
                                       its address is unknown */
};

/* `asked_host`: where the reply is from; a node that does not know its own host, or that
 * is to be reached where the other nodes are, leaves its host out. Returns 0, EPROTO
 * (the thread's message says what is wrong) or ENOMEM. */
int rlk_cluster_map_parse(struct rlk_cluster_map **ret_map, const struct rlk_reply *reply,
                          const char *asked_host);
/* NULL is fine. */
void rlk_cluster_map_free(struct rlk_cluster_map *map);

#endif
