/* SPDX-License-Identifier: Apache-2.0 */
/* Which cluster it is, for processes that know it by different nodes: the ids of its
 * nodes, by which two views of one cluster are recognized. A node has its id for life,
 * and is in one cluster only; nodes come and go, but not all at once. A view has at most
 * a few ids, the least ones, so that two views of a large cluster have common ones, too.
 * No state. Thread: any. */
#ifndef RLK_CLUSTER_IDS_H
#define RLK_CLUSTER_IDS_H

#include <stdbool.h>
#include <stddef.h>

enum { RLK_CLUSTER_ID_SIZE = 41, RLK_CLUSTER_IDS_MAX = 16 };

/* In ascending order, each once. Zeroed: the cluster is unknown. */
struct rlk_cluster_ids {
    size_t count;
    char ids[RLK_CLUSTER_IDS_MAX][RLK_CLUSTER_ID_SIZE];
};

/* Adds an id, unless it is none (40 hexadecimal digits), is there already, or is greater
 * than all of a full view. */
void rlk_cluster_ids_add(struct rlk_cluster_ids *ids, const char *id, size_t len);
/* Whether both are views of one cluster. */
bool rlk_cluster_ids_meet(const struct rlk_cluster_ids *a,
                          const struct rlk_cluster_ids *b);
bool rlk_cluster_ids_equal(const struct rlk_cluster_ids *a,
                           const struct rlk_cluster_ids *b);

/* "id id id", without NUL beyond the end; buf has RLK_CLUSTER_IDS_TEXT bytes. */
enum { RLK_CLUSTER_IDS_TEXT = RLK_CLUSTER_IDS_MAX * RLK_CLUSTER_ID_SIZE + 1 };
void rlk_cluster_ids_write(const struct rlk_cluster_ids *ids,
                           char buf[RLK_CLUSTER_IDS_TEXT]);
void rlk_cluster_ids_read(struct rlk_cluster_ids *ids, const char *text);

#endif
