/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes, and which of them has which hash slots; see cluster.h. */
#include "client/cluster_impl.h"

#include "base/clock.h"
#include "base/error.h"
#include "client/client.h"
#include "net/redirect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TABLE_FIRST = 16,
    NODES_MAX = RLK_HASH_SLOTS,
    WORD_BITS = 64,
    KEEP_MS = 5000, /* so long a node without hash slots stays; they may come back */
    MOVED_AGAIN_MS = 100, /* at least between two changes of a hash slot by MOVED */
    AWAY_MS = 5000        /* for so long a node that did not answer is the last choice */
};

/* Which hash slots have changed. */
struct changes {
    uint64_t bits[RLK_HASH_SLOTS / WORD_BITS];
    bool any;
};

/* ---- the nodes */

struct rlk_node *rlk_cluster_node(struct rlk_cluster *cluster, size_t i)
{
    struct rlk_node_table *table = atomic_load(&cluster->table);

    return atomic_load(&table->nodes[i]);
}

static struct rlk_node_table *make_table(size_t size)
{
    struct rlk_node_table *table =
        calloc(1, sizeof(*table) + size * sizeof(table->nodes[0]));

    if (table)
        table->size = size;
    return table;
}

/* Locks: holds mu. */
static bool need_room_locked(struct rlk_cluster *cluster)
{
    struct rlk_node_table *table = atomic_load(&cluster->table);
    size_t count = atomic_load(&cluster->count);

    if (count < table->size)
        return true;
    struct rlk_node_table *bigger = make_table(2 * table->size);
    if (!bigger)
        return false;
    for (size_t i = 0; i < count; i++)
        atomic_store(&bigger->nodes[i], atomic_load(&table->nodes[i]));
    bigger->earlier = table;
    atomic_store(&cluster->table, bigger);
    return true;
}

static void free_node(struct rlk_node *node)
{
    rlk_target_end(&node->target);
    free(node->endpoint.host);
    free(node);
}

/* Makes a node of zeroed memory, or of an unused one. False: out of memory. */
static bool set_up_node(struct rlk_cluster *cluster, struct rlk_node *node,
                        const char *host, uint16_t port)
{
    struct rlock_client *client = cluster->client;

    node->endpoint = client->config.endpoint;
    node->endpoint.host = strdup(host);
    node->endpoint.port = port;
    rlk_url_label(node->endpoint.label, sizeof(node->endpoint.label), host, port);
    if (node->endpoint.host &&
        rlk_target_init(&node->target, client, &node->endpoint) == 0)
        return true;
    free(node->endpoint.host);
    node->endpoint.host = NULL;
    return false;
}

struct rlk_node **rlk_cluster_bucket_locked(struct rlk_cluster *cluster, const char *host,
                                            uint16_t port)
{
    uint64_t hash = rlk_key_hash(host, strlen(host)) + port;

    return &cluster->buckets[hash % RLK_CLUSTER_BUCKETS];
}

/* Locks: holds mu. */
static struct rlk_node *reuse_locked(struct rlk_cluster *cluster, const char *host,
                                     uint16_t port)
{
    struct rlk_node *node = cluster->unused;

    if (!set_up_node(cluster, node, host, port))
        return NULL;
    cluster->unused = node->chain;
    node->state = RLK_NODE_LIVE;
    atomic_store(&node->let_go, false);
    return node;
}

/* Locks: holds mu. */
static struct rlk_node *make_locked(struct rlk_cluster *cluster, const char *host,
                                    uint16_t port)
{
    size_t count = atomic_load(&cluster->count);
    bool has_room = count < NODES_MAX && need_room_locked(cluster);
    struct rlk_node *node = has_room ? calloc(1, sizeof(*node)) : NULL;

    if (!node)
        return NULL;
    if (!set_up_node(cluster, node, host, port)) {
        free(node);
        return NULL;
    }
    node->index = (uint16_t)(count + 1);
    atomic_store(&atomic_load(&cluster->table)->nodes[count], node);
    atomic_store(&cluster->count, count + 1);
    return node;
}

/* The node of this address, made if need be. NULL: out of memory. Locks: holds mu. */
static struct rlk_node *get_locked(struct rlk_cluster *cluster, const char *host,
                                   uint16_t port)
{
    struct rlk_node **bucket = rlk_cluster_bucket_locked(cluster, host, port),
                    *node = *bucket;

    while (node &&
           (node->endpoint.port != port || strcmp(node->endpoint.host, host) != 0))
        node = node->chain;
    if (node)
        return node;
    node = cluster->unused ? reuse_locked(cluster, host, port)
                           : make_locked(cluster, host, port);
    if (!node)
        return NULL;
    node->chain = *bucket;
    *bucket = node;
    atomic_store(&cluster->departs, true); /* it has no hash slots yet */
    return node;
}

/* ---- begin and end */

static int init_sync(struct rlk_cluster *cluster)
{
    int rc = rlk_sync_mutex_init(&cluster->mu);

    if (rc != 0)
        return rc;
    rc = rlk_sync_mutex_init(&cluster->joining);
    if (rc == 0) {
        rc = rlk_sync_cond_init(&cluster->changed);
        if (rc == 0)
            return 0;
        rlk_sync_mutex_destroy(&cluster->joining);
    }
    rlk_sync_mutex_destroy(&cluster->mu);
    return rc;
}

int rlk_cluster_create(struct rlk_cluster **ret_cluster, struct rlock_client *client)
{
    struct rlk_cluster *cluster = calloc(1, sizeof(*cluster));
    int rc = ENOMEM;

    if (!cluster)
        return rc;
    cluster->client = client;
    cluster->sweep_at = RLK_NEVER;
    cluster->keep_ns = KEEP_MS * RLK_NS_PER_MS;
    struct rlk_node_table *table = make_table(TABLE_FIRST);
    atomic_store(&cluster->table, table);
    if (table)
        rc = rlk_cluster_load_create(&cluster->load, cluster);
    if (rc == 0)
        rc = init_sync(cluster);
    if (rc != 0) {
        rlk_cluster_load_free(cluster->load);
        free(table);
        free(cluster);
        return rc;
    }
    *ret_cluster = cluster;
    return 0;
}

void rlk_cluster_leave(struct rlk_cluster *cluster)
{
    if (!cluster)
        return;
    rlk_sync_mutex_lock(&cluster->joining);
    cluster->leaving = true; /* no node joins any more */
    rlk_sync_mutex_unlock(&cluster->joining);
    for (size_t i = 0; i < atomic_load(&cluster->count); i++) {
        struct rlk_node *node = rlk_cluster_node(cluster, i);
        if (node->listened)
            rlk_subscriber_leave(&node->target);
        if (node->watched)
            rlk_watchdog_leave(&node->target);
    }
}

void rlk_cluster_free(struct rlk_cluster *cluster)
{
    struct rlk_node_table *table, *earlier;

    if (!cluster)
        return;
    for (size_t i = 0; i < atomic_load(&cluster->count); i++)
        free_node(rlk_cluster_node(cluster, i));
    for (table = atomic_load(&cluster->table); table; table = earlier) {
        earlier = table->earlier;
        free(table);
    }
    free((void *)atomic_load(&cluster->importers));
    rlk_cluster_load_free(cluster->load);
    rlk_sync_cond_destroy(&cluster->changed);
    rlk_sync_mutex_destroy(&cluster->joining);
    rlk_sync_mutex_destroy(&cluster->mu);
    free(cluster);
}

/* ---- routes */

static struct rlk_node *owner_of(struct rlk_cluster *cluster, unsigned hash_slot)
{
    return rlk_cluster_node_at(
        cluster, atomic_load_explicit(&cluster->owner[hash_slot], memory_order_acquire));
}

/* rule: P18 */
struct rlk_target *rlk_cluster_to(struct rlk_cluster *cluster, const char *name,
                                  size_t name_len)
{
    struct rlk_node *node = owner_of(cluster, rlk_key_hash_slot(name, name_len));

    return node ? &node->target : &cluster->client->route.target;
}

struct rlk_target *rlk_cluster_at(struct rlk_cluster *cluster, size_t i)
{
    for (size_t at = 0; at < atomic_load(&cluster->count); at++) {
        struct rlk_node *node = rlk_cluster_node(cluster, at);
        if (atomic_load(&node->hash_slots) > 0 && i-- == 0)
            return &node->target;
    }
    return NULL;
}

struct rlk_target *rlk_cluster_to_any(struct rlk_cluster *cluster)
{
    struct rlk_target *first = rlk_cluster_at(cluster, 0);
    int64_t now = rlk_clock_boot();

    for (size_t i = 0;; i++) {
        struct rlk_target *target = rlk_cluster_at(cluster, i);
        if (!target)
            break;
        if (!rlk_cluster_is_away(rlk_cluster_node_of(target), now))
            return target;
    }
    return first ? first : &cluster->client->route.target;
}

bool rlk_cluster_is_away(const struct rlk_node *node, int64_t now)
{
    int64_t away_at = atomic_load(&node->away_at);

    return away_at != 0 && now - away_at < AWAY_MS * RLK_NS_PER_MS;
}

bool rlk_cluster_serves(const struct rlk_target *target)
{
    return atomic_load(&rlk_cluster_node_of(target)->hash_slots) > 0;
}

unsigned rlk_cluster_changes(const struct rlk_cluster *cluster)
{
    return atomic_load(&cluster->changes);
}

/* ---- changes of the map */

/* Locks: holds mu. */
static void set_owner_locked(struct rlk_cluster *cluster, unsigned hash_slot,
                             struct rlk_node *node, struct changes *changes)
{
    struct rlk_node *before = owner_of(cluster, hash_slot);

    if (before == node)
        return;
    if (before && atomic_fetch_sub(&before->hash_slots, 1) == 1)
        atomic_store(&cluster->departs, true);
    if (node)
        atomic_fetch_add(&node->hash_slots, 1);
    atomic_store_explicit(&cluster->owner[hash_slot], node ? node->index : 0,
                          memory_order_release);
    _Atomic uint16_t *importers = atomic_load(&cluster->importers);
    if (importers)
        atomic_store(&importers[hash_slot], 0);
    changes->bits[hash_slot / WORD_BITS] |= UINT64_C(1) << hash_slot % WORD_BITS;
    changes->any = true;
}

static bool has_changed(const struct rlk_lock *lock, void *arg)
{
    const struct changes *changes = arg;
    unsigned hash_slot = rlk_key_hash_slot(lock->name, lock->name_len);

    return (changes->bits[hash_slot / WORD_BITS] >> hash_slot % WORD_BITS & 1) != 0;
}

/* rule: P16, P23 */
/* What another node has now may be less than the node before had: it is asked about the
 * holds at once, and the queues are polled. An answer of the node before that is still on
 * its way has seen an earlier count. */
static void follow(struct rlk_cluster *cluster, struct changes *changes)
{
    struct rlk_registry *reg = &cluster->client->registry;

    if (!changes->any)
        return;
    atomic_fetch_add(&cluster->changes, 1);
    rlk_registry_lock(reg);
    rlk_registry_doubt_some_locked(reg, rlk_clock_boot(), has_changed, changes);
    reg->watchdog_dirty = reg->subscriber_dirty = true;
    rlk_registry_unlock(reg);
}

int rlk_cluster_apply(struct rlk_cluster *cluster, const struct rlk_cluster_map *map)
{
    const struct rlk_url_cluster *url = &cluster->client->config.endpoint.cluster;
    struct rlk_node **nodes = calloc(map->master_count + 1, sizeof(*nodes));
    struct changes *changes = calloc(1, sizeof(*changes));
    bool good = nodes && changes;

    rlk_sync_mutex_lock(&cluster->mu);
    for (size_t i = 0; good && i < map->master_count; i++) {
        const char *host = map->masters[i].host;
        uint16_t port = map->masters[i].port;
        rlk_url_cluster_real(url, &host, &port);
        nodes[i + 1] = get_locked(cluster, host, port);
        good = nodes[i + 1] != NULL;
        if (good)
            memcpy(nodes[i + 1]->id, map->masters[i].id, sizeof(map->masters[i].id));
    }
    for (unsigned i = 0; good && i < RLK_HASH_SLOTS; i++)
        set_owner_locked(cluster, i, nodes[map->owner[i]], changes);
    rlk_sync_mutex_unlock(&cluster->mu);
    if (good)
        follow(cluster, changes);
    free(nodes);
    free(changes);
    return good ? 0 : ENOMEM;
}

/* The node that a redirect of `from` names; NULL: not known. Locks: holds mu. */
static struct rlk_node *named_locked(struct rlk_target *from,
                                     const struct rlk_redirect *redirect)
{
    const char *host = redirect->host[0] ? redirect->host : from->endpoint->host;
    uint16_t port = redirect->port;

    if (strcmp(host, "?") == 0)
        return NULL;
    rlk_url_cluster_real(&from->client->config.endpoint.cluster, &host, &port);
    return get_locked(from->client->route.cluster, host, port);
}

/* rule: P18 */
void rlk_cluster_moved(struct rlk_target *from, const struct rlk_redirect *redirect)
{
    struct rlk_cluster *cluster = from->client->route.cluster;
    int64_t *moved_at = &cluster->moved_at[redirect->hash_slot % RLK_CLUSTER_BUCKETS];
    struct changes changes = { .any = false };
    int64_t now = rlk_clock_boot();

    rlk_sync_mutex_lock(&cluster->mu);
    struct rlk_node *to = named_locked(from, redirect);
    /* two nodes may name each other for a while */
    bool again = *moved_at != 0 && now - *moved_at < MOVED_AGAIN_MS * RLK_NS_PER_MS;
    if (to && &to->target != from && !again) {
        *moved_at = now;
        set_owner_locked(cluster, redirect->hash_slot, to, &changes);
    }
    rlk_sync_mutex_unlock(&cluster->mu);
    follow(cluster, &changes);
    rlk_cluster_reload(cluster);
}

/* rule: P19, P20 */
void rlk_cluster_asked(struct rlk_target *from, const struct rlk_redirect *redirect)
{
    struct rlk_cluster *cluster = from->client->route.cluster;

    rlk_sync_mutex_lock(&cluster->mu);
    struct rlk_node *to = named_locked(from, redirect);
    _Atomic uint16_t *importers = atomic_load(&cluster->importers);
    if (!importers) {
        importers = calloc(RLK_HASH_SLOTS, sizeof(*importers));
        atomic_store(&cluster->importers, importers);
    }
    if (importers && to)
        atomic_store(&importers[redirect->hash_slot], to->index);
    rlk_sync_mutex_unlock(&cluster->mu);
}

/* ---- the map that is to come */

void rlk_cluster_reload(struct rlk_cluster *cluster)
{
    struct rlk_registry *reg = &cluster->client->registry;

    if (atomic_exchange(&cluster->wanted, true))
        return;
    rlk_registry_lock(reg);
    reg->watchdog_dirty = true;
    rlk_registry_unlock(reg);
}

void rlk_cluster_failed(struct rlk_target *target)
{
    atomic_store(&rlk_cluster_node_of(target)->away_at, rlk_clock_boot());
}

void rlk_cluster_end_round(struct rlk_cluster *cluster, int code, const char *text)
{
    rlk_sync_mutex_lock(&cluster->mu);
    cluster->rounds++;
    cluster->code = code;
    snprintf(cluster->text, sizeof(cluster->text), "%s", text);
    rlk_sync_cond_broadcast(&cluster->changed);
    rlk_sync_mutex_unlock(&cluster->mu);
}

static bool is_known(struct rlk_cluster *cluster, const char *name, size_t name_len)
{
    struct rlk_target *target =
        name ? rlk_cluster_to(cluster, name, name_len) : rlk_cluster_to_any(cluster);

    return target != &cluster->client->route.target;
}

int rlk_cluster_await(struct rlk_cluster *cluster, const char *name, size_t name_len,
                      int64_t until)
{
    const char *label = cluster->client->config.endpoint.label;
    int rc = 0;

    rlk_sync_mutex_lock(&cluster->mu);
    unsigned begun = cluster->rounds;
    rlk_sync_mutex_unlock(&cluster->mu);
    rlk_cluster_reload(cluster);
    rlk_sync_mutex_lock(&cluster->mu);
    while (!is_known(cluster, name, name_len) && cluster->rounds == begun) {
        int64_t left = rlk_clock_add(until, -rlk_clock_boot());
        if (left <= 0)
            break;
        rlk_sync_cond_wait(&cluster->changed, &cluster->mu,
                           rlk_clock_add(rlk_clock_mono(), left));
    }
    if (is_known(cluster, name, name_len))
        rc = 0;
    else if (cluster->rounds == begun)
        rc = rlk_error_set(ENOTCONN, "%s does not answer in time", label);
    else if (cluster->code != 0)
        rc = rlk_error_set(cluster->code, "%s", cluster->text);
    else if (name)
        rc = rlk_error_set(ENOTCONN, "no node of %s has hash slot %u", label,
                           rlk_key_hash_slot(name, name_len));
    else
        rc = rlk_error_set(ENOTCONN, "no node of %s has hash slots", label);
    rlk_sync_mutex_unlock(&cluster->mu);
    return rc;
}
