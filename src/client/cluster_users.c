/* SPDX-License-Identifier: Apache-2.0 */
/* Who uses which node: the two threads, from the first request on, and calls, while they
 * have one under way. See cluster.h. */
#include "client/cluster_impl.h"

#include "client/client.h"

/* ---- the two threads */

void rlk_cluster_use(struct rlk_target *target)
{
    struct rlk_cluster *cluster = target->client->route.cluster;
    struct rlk_node *node = rlk_cluster_node_of(target);

    if (atomic_load_explicit(&node->used, memory_order_acquire))
        return;
    rlk_sync_mutex_lock(&cluster->joining);
    /* The loops run already: the client's own target is a member of both. */
    if (!node->watched && !cluster->leaving)
        node->watched = rlk_watchdog_join(target) == 0;
    if (node->watched && !node->listened && !cluster->leaving)
        node->listened = rlk_subscriber_join(target) == 0;
    atomic_store_explicit(&node->used, node->watched && node->listened,
                          memory_order_release);
    rlk_sync_mutex_unlock(&cluster->joining);
}

void rlk_cluster_want(struct rlk_target *target)
{
    struct rlk_node *node = rlk_cluster_node_of(target);

    if (atomic_load(&node->used))
        return;
    atomic_store(&node->wanted, true);
    atomic_store(&target->client->route.cluster->joins, true);
}

void rlk_cluster_use_wanted(struct rlk_cluster *cluster)
{
    if (!atomic_exchange(&cluster->joins, false))
        return;
    for (size_t i = 0; i < atomic_load(&cluster->count); i++) {
        struct rlk_node *node = rlk_cluster_node(cluster, i);
        if (atomic_exchange(&node->wanted, false))
            rlk_cluster_use(&node->target);
    }
}

/* ---- calls */

/* rule: P23 */
/* Says that a call uses the node. False: it has been let go. The sweep looks at the users
 * after it has said so, and this call looks whether it has said so after it became a
 * user: one of them sees the other. */
static bool begin(struct rlk_node *node)
{
    atomic_fetch_add(&node->users, 1);
    if (!atomic_load(&node->let_go))
        return true;
    atomic_fetch_sub(&node->users, 1);
    return false;
}

/* The node at this index, as a user. The index may change meanwhile, also to that of
 * another node in the same memory, so it is read again. NULL: 0. */
static struct rlk_target *take_at(struct rlk_cluster *cluster, _Atomic uint16_t *at)
{
    for (;;) {
        uint16_t index = atomic_load(at);
        struct rlk_node *node = rlk_cluster_node_at(cluster, index);
        if (!node)
            return NULL;
        if (!begin(node))
            continue;
        if (atomic_load(at) == index)
            return &node->target;
        atomic_fetch_sub(&node->users, 1);
    }
}

static struct rlk_target *take_any(struct rlk_cluster *cluster)
{
    for (;;) {
        struct rlk_target *target = rlk_cluster_to_any(cluster);
        if (target == &cluster->client->route.target ||
            begin(rlk_cluster_node_of(target)))
            return target;
    }
}

struct rlk_target *rlk_cluster_take(struct rlk_cluster *cluster, const char *name,
                                    size_t name_len)
{
    if (!name)
        return take_any(cluster);
    struct rlk_target *target =
        take_at(cluster, &cluster->owner[rlk_key_hash_slot(name, name_len)]);
    return target ? target : &cluster->client->route.target;
}

void rlk_cluster_take_again(struct rlk_target *target)
{
    atomic_fetch_add(&rlk_cluster_node_of(target)->users, 1);
}

void rlk_cluster_put(struct rlk_target *target)
{
    if (target != &target->client->route.target)
        atomic_fetch_sub(&rlk_cluster_node_of(target)->users, 1);
}

bool rlk_cluster_is_let_go(const struct rlk_target *target)
{
    return atomic_load(&rlk_cluster_node_of(target)->let_go);
}

/* ---- a node that is getting a hash slot */

static _Atomic uint16_t *importer_at(struct rlk_cluster *cluster, const char *name,
                                     size_t name_len)
{
    _Atomic uint16_t *importers = atomic_load(&cluster->importers);

    return importers ? &importers[rlk_key_hash_slot(name, name_len)] : NULL;
}

struct rlk_target *rlk_cluster_importer(struct rlk_cluster *cluster, const char *name,
                                        size_t name_len)
{
    _Atomic uint16_t *at = importer_at(cluster, name, name_len);
    struct rlk_node *node = at ? rlk_cluster_node_at(cluster, atomic_load(at)) : NULL;

    return node ? &node->target : NULL;
}

struct rlk_target *rlk_cluster_take_importer(struct rlk_cluster *cluster,
                                             const char *name, size_t name_len)
{
    _Atomic uint16_t *at = importer_at(cluster, name, name_len);

    return at ? take_at(cluster, at) : NULL;
}
