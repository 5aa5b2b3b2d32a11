/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end of a client's use of one server. Thread: any. Locks: takes the registry's
 * mu, when a connection has found another master. Blocks: no. */
#include "client/target.h"

#include "base/clock.h"
#include "client/client.h"

#include <string.h>

/* rule: P9 */
/* The two threads leave the old master at once, and not only when they look next. */
static void tell_of_move(struct rlk_moves *moves)
{
    struct rlk_registry *reg =
        &RLK_CONTAINER_OF(moves, struct rlk_target, moves)->client->registry;

    rlk_registry_lock(reg);
    reg->watchdog_dirty = reg->subscriber_dirty = true;
    rlk_registry_unlock(reg);
}

int rlk_target_init(struct rlk_target *target, struct rlock_client *client,
                    const struct rlk_endpoint *endpoint)
{
    struct rlk_pool_options options = {
        .conn = {
            .endpoint = endpoint,
            .name = client->conn_name,
            .keepalive_ms = client->config.presence_ms,
            .reply_limit = (size_t)64 << 20, /* CLIENT LIST, a page of waiters */
            .moves = &target->moves,
        },
        .max_connections = client->config.max_connections,
        .connect_timeout_ns = client->config.connect_timeout_ms * RLK_NS_PER_MS,
        .connects = &client->counters.connects,
        .connect_failures = &client->counters.connect_failures,
    };

    target->client = client;
    target->endpoint = endpoint;
    target->moves.tell = tell_of_move;
    rlk_watchdog_init(&target->watch);
    return rlk_pool_create(&target->pool, &options);
}

void rlk_target_end(struct rlk_target *target)
{
    rlk_shardmail_clear(&target->shardmail);
    rlk_pool_free(target->pool);
    target->pool = NULL;
}

void rlk_target_reset(struct rlk_target *target)
{
    struct rlk_registry *reg = &target->client->registry;

    rlk_registry_lock(reg);
    memset(&target->shardmail, 0, sizeof(target->shardmail));
    rlk_registry_unlock(reg);
    rlk_subscriber_reset(&target->subscription);
    memset(&target->moves, 0, sizeof(target->moves));
    memset(&target->watch, 0, sizeof(target->watch));
    atomic_store(&target->patience, 0);
}
