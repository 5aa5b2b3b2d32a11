/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets go of nodes: a cluster whose nodes are replaced for years would fill the memory of
 * a client that runs as long. A node goes when it has had no hash slots for seconds, no
 * call uses it and no request is on its way to it. The watchdog leaves it at once; the
 * subscriber thread is asked to, and the memory is used again when it has. Thread: the
 * watchdog.
 */
#include "client/cluster_impl.h"

#include "base/clock.h"
#include "client/client.h"

#include <stdlib.h>

enum {
    RETRY_MS = 1000,
    LOOK_MS = 20 /* between two looks whether the subscriber thread has left */
};

/* Whether requests are on their way to the node, or an outage of it is not over. */
static bool is_busy(const struct rlk_node *node)
{
    const struct rlk_watch *watch = &node->target.watch;

    return watch->op_count > 0 || !rlk_list_empty(&watch->ops) ||
           !rlk_list_empty(&watch->unproven) ||
           atomic_load(&node->target.subscription.away_since) != 0;
}

/* Locks: holds mu. */
static bool is_importer_locked(struct rlk_cluster *cluster, const struct rlk_node *node)
{
    _Atomic uint16_t *importers = atomic_load(&cluster->importers);

    for (unsigned i = 0; importers && i < RLK_HASH_SLOTS; i++)
        if (atomic_load(&importers[i]) == node->index)
            return true;
    return false;
}

/* rule: P23 */
/* From here on no call begins to use the node. False: one does. */
static bool close_door(struct rlk_cluster *cluster, struct rlk_node *node)
{
    struct rlk_node **at =
        rlk_cluster_bucket_locked(cluster, node->endpoint.host, node->endpoint.port);

    rlk_sync_mutex_lock(&cluster->mu);
    bool good = atomic_load(&node->hash_slots) == 0 && !is_importer_locked(cluster, node);
    if (good) {
        atomic_store(&node->let_go, true);
        good = atomic_load(&node->users) == 0;
        atomic_store(&node->let_go, good);
    }
    if (good) {
        while (*at != node)
            at = &(*at)->chain;
        *at = node->chain;
        node->state = RLK_NODE_LEAVING;
    }
    rlk_sync_mutex_unlock(&cluster->mu);
    return good;
}

/* Begins to leave. */
static void send_off(struct rlk_cluster *cluster, struct rlk_node *node)
{
    rlk_sync_mutex_lock(&cluster->joining);
    if (!cluster->leaving && node->listened)
        rlk_subscriber_send_off(&node->target);
    if (!cluster->leaving && node->watched) {
        rlk_watchdog_leave(&node->target);
        node->watched = false;
    }
    rlk_sync_mutex_unlock(&cluster->joining);
}

/* Whether neither thread uses the node any more. */
static bool has_left(struct rlk_cluster *cluster, struct rlk_node *node)
{
    rlk_sync_mutex_lock(&cluster->joining);
    if (!cluster->leaving && node->listened && rlk_subscriber_has_left(&node->target))
        node->listened = false;
    bool left = !cluster->leaving && !node->listened;
    rlk_sync_mutex_unlock(&cluster->joining);
    return left;
}

/* Nothing but its memory is left. Calls that came too late may still count themselves as
 * users for a moment, and look at the atomic fields. */
static void empty(struct rlk_cluster *cluster, struct rlk_node *node)
{
    struct rlk_registry *reg = &cluster->client->registry;

    rlk_registry_lock(reg);
    rlk_shardmail_clear(&node->target.shardmail);
    rlk_registry_unlock(reg);
    rlk_target_end(&node->target);
    rlk_target_reset(&node->target);
    free(node->endpoint.host);
    node->endpoint.host = NULL;
    node->gone_at = 0;
    atomic_store(&node->used, false);
    atomic_store(&node->wanted, false);
    atomic_store(&node->away_at, 0);
    rlk_sync_mutex_lock(&cluster->mu);
    node->id[0] = '\0';
    node->state = RLK_NODE_UNUSED;
    node->chain = cluster->unused;
    cluster->unused = node;
    rlk_sync_mutex_unlock(&cluster->mu);
}

/* Returns when to look at the node again. */
static int64_t sweep_node(struct rlk_cluster *cluster, struct rlk_node *node, int64_t now)
{
    rlk_sync_mutex_lock(&cluster->mu);
    enum rlk_node_state state = node->state;
    rlk_sync_mutex_unlock(&cluster->mu);
    if (state == RLK_NODE_UNUSED)
        return RLK_NEVER;
    if (state == RLK_NODE_LIVE) {
        if (atomic_load(&node->hash_slots) > 0) {
            node->gone_at = 0;
            return RLK_NEVER; /* set_owner_locked says when it has none */
        }
        if (node->gone_at == 0)
            node->gone_at = now;
        int64_t due = node->gone_at + cluster->keep_ns;
        if (now < due)
            return due;
        if (is_busy(node) || !close_door(cluster, node))
            return now + RETRY_MS * RLK_NS_PER_MS;
        send_off(cluster, node);
    }
    if (!has_left(cluster, node))
        return now + LOOK_MS * RLK_NS_PER_MS;
    empty(cluster, node);
    return RLK_NEVER;
}

/* The places of a round are nodes' addresses: none goes meanwhile. */
int64_t rlk_cluster_sweep(struct rlk_cluster *cluster, int64_t now)
{
    if (atomic_exchange(&cluster->departs, false))
        cluster->sweep_at = now;
    if (now < cluster->sweep_at)
        return cluster->sweep_at;
    cluster->sweep_at = RLK_NEVER;
    if (rlk_cluster_load_is_busy(cluster)) {
        cluster->sweep_at = now + RETRY_MS * RLK_NS_PER_MS;
        return cluster->sweep_at;
    }
    for (size_t i = 0; i < atomic_load(&cluster->count); i++) {
        int64_t due = sweep_node(cluster, rlk_cluster_node(cluster, i), now);
        if (due < cluster->sweep_at)
            cluster->sweep_at = due;
    }
    return cluster->sweep_at;
}

size_t rlk_cluster_count(struct rlk_cluster *cluster)
{
    size_t count = 0;

    rlk_sync_mutex_lock(&cluster->mu);
    for (size_t i = 0; i < atomic_load(&cluster->count); i++)
        count += rlk_cluster_node(cluster, i)->state != RLK_NODE_UNUSED;
    rlk_sync_mutex_unlock(&cluster->mu);
    return count;
}
