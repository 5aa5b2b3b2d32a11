/* SPDX-License-Identifier: Apache-2.0 */
/* See masters.h. */
#include "client/masters.h"

#include "base/error.h"
#include "client/client.h"
#include "client/cluster_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(void)
{
    return rlk_error_set(ENOMEM, "out of memory");
}

/* Locks: holds the cluster's mu. */
static void collect_locked(struct rlk_cluster *cluster, struct rlk_masters *masters,
                           uint16_t *places)
{
    for (unsigned i = 0; i < RLK_HASH_SLOTS; i++) {
        uint16_t index = atomic_load(&cluster->owner[i]);
        if (index != 0 && places[index] == 0) {
            struct rlk_node *node = rlk_cluster_node(cluster, index - 1u);
            memcpy(masters->ids[masters->count], node->id, sizeof(node->id));
            masters->each[masters->count++] = &node->target;
            rlk_cluster_take_again(&node->target); /* with hash slots it is not let go */
            places[index] = (uint16_t)masters->count;
        }
        masters->owner[i] = places[index];
    }
}

static int get_of_cluster(struct rlk_cluster *cluster, struct rlk_masters *masters)
{
    int rc = 0;

    masters->owner = calloc(RLK_HASH_SLOTS, sizeof(*masters->owner));
    rlk_sync_mutex_lock(&cluster->mu);
    size_t count = atomic_load(&cluster->count);
    uint16_t *places = calloc(count + 1, sizeof(*places)); /* [0] stays 0 */
    masters->each = calloc(count + 1, sizeof(struct rlk_target *));
    masters->ids = calloc(count + 1, sizeof(*masters->ids));
    if (masters->owner && masters->each && masters->ids && places)
        collect_locked(cluster, masters, places);
    else
        rc = no_memory();
    rlk_sync_mutex_unlock(&cluster->mu);
    free(places);
    return rc;
}

int rlk_masters_get(struct rlock_client *client, int64_t until,
                    struct rlk_masters *ret_masters)
{
    struct rlk_cluster *cluster = client->route.cluster;
    struct rlk_masters masters = { .count = 0 };
    int rc = 0;

    if (cluster) {
        if (rlk_route_is_nowhere(&client->route, rlk_cluster_to_any(cluster)))
            rc = rlk_cluster_await(cluster, NULL, 0, until);
        if (rc == 0)
            rc = get_of_cluster(cluster, &masters);
    } else {
        masters.each = calloc(1, sizeof(struct rlk_target *));
        if (!masters.each)
            return no_memory();
        masters.each[masters.count++] = &client->route.target;
    }
    if (rc == 0)
        *ret_masters = masters;
    else
        rlk_masters_put(&masters);
    return rc;
}

void rlk_masters_put(struct rlk_masters *masters)
{
    for (size_t i = 0; masters->owner && i < masters->count; i++)
        rlk_cluster_put(masters->each[i]);
    free((void *)masters->each);
    free(masters->ids);
    free(masters->owner);
    *masters = (struct rlk_masters){ .count = 0 };
}

/* A node may name itself otherwise than others name it: the ids decide, where both are
 * known. */
size_t rlk_masters_find(const struct rlk_masters *masters,
                        const struct rlock_client *client,
                        const struct rlk_cluster_master *master)
{
    const char *host = master->host;
    uint16_t port = master->port;

    rlk_url_cluster_real(&client->config.endpoint.cluster, &host, &port);
    for (size_t i = 0; i < masters->count; i++) {
        const struct rlk_endpoint *endpoint = masters->each[i]->endpoint;
        if (masters->ids[i][0] && master->id[0]
                ? strcmp(masters->ids[i], master->id) == 0
                : endpoint->port == port && strcmp(endpoint->host, host) == 0)
            return i + 1;
    }
    return 0;
}

unsigned rlk_masters_uncovered(const struct rlk_masters *masters)
{
    unsigned count = 0;

    for (unsigned i = 0; masters->owner && i < RLK_HASH_SLOTS; i++)
        count += masters->owner[i] == 0;
    return count;
}
