/* SPDX-License-Identifier: Apache-2.0 */
/* Redisson's channels of locks, to which the subscriber listens while a waiter sees a
 * foreign holder; see subscriber.h. Where servers know sharded channels, Redisson
 * publishes on a sharded one, or on an ordinary one, as it is configured: so both are
 * subscribed (P22). Which of them are, the queue of the lock says: channel_joined. */
#include "client/subscriber.h"

#include "client/client.h"

#include <string.h>

static bool has_lock(const struct rlk_lock *lock, struct rlk_target *target)
{
    return rlk_route_to(&target->client->route, lock) == target;
}

static int send_one(struct rlk_target *target, const char *verb,
                    const struct rlk_lock *lock)
{
    char channel[RLK_KEY_SIZE];
    size_t len = rlk_key_write(channel, RLK_KEY_CHANNEL, lock->name, lock->name_len);
    const char *argv[] = { verb, channel };
    const size_t lens[] = { strlen(verb), len };

    return rlk_conn_append(target->subscription.conn, 2, argv, lens);
}

/* rule: P22 */
static int send_channel(struct rlk_target *target, const struct rlk_lock *lock, bool join)
{
    int rc = send_one(target, join ? "SUBSCRIBE" : "UNSUBSCRIBE", lock);

    if (rc == 0 && rlk_client_is_sharded(target->client))
        rc = send_one(target, join ? "SSUBSCRIBE" : "SUNSUBSCRIBE", lock);
    return rc;
}

int rlk_subscriber_channel_rejoin(struct rlk_target *target)
{
    struct rlk_registry *reg = &target->client->registry;
    int rc = 0;

    rlk_registry_lock(reg);
    for (size_t i = 0; rc == 0 && i < reg->table_size; i++) {
        for (struct rlk_lock *lock = reg->table[i]; rc == 0 && lock; lock = lock->chain) {
            if (!rlk_lock_has_queue(lock) || !has_lock(lock, target))
                continue;
            lock->queue->channel_joined = lock->queue->channel_wanted > 0;
            if (lock->queue->channel_joined)
                rc = send_channel(target, lock, true);
        }
    }
    rlk_registry_unlock(reg);
    return rc;
}

int rlk_subscriber_channel_follow(struct rlk_target *target)
{
    struct rlk_registry *reg = &target->client->registry;
    struct rlk_list *l, *next;
    int rc = 0;

    rlk_registry_lock(reg);
    for (l = reg->channels.next; rc == 0 && l != &reg->channels; l = next) {
        struct rlk_lock *lock = RLK_CONTAINER_OF(l, struct rlk_queue, channel_link)->lock;
        next = l->next;
        if (!has_lock(lock, target))
            continue; /* another target's */
        rlk_list_remove(l);
        bool want = lock->queue->channel_wanted > 0;
        lock->queue->channel_listed = false;
        if (want != lock->queue->channel_joined) {
            rc = send_channel(target, lock, want);
            lock->queue->channel_joined = want;
        }
        rlk_lock_unref_locked(lock);
    }
    rlk_registry_unlock(reg);
    return rc;
}

static void lose_locked(struct rlk_lock *lock)
{
    if (lock && rlk_lock_has_queue(lock) && lock->queue->channel_wanted > 0 &&
        lock->queue->channel_joined)
        rlk_lock_channel_left_locked(lock);
}

void rlk_subscriber_channel_left(struct rlock_client *client, const char *channel,
                                 size_t len)
{
    struct rlk_registry *reg = &client->registry;
    char tagged[RLK_KEY_SIZE];
    size_t name_len;
    const char *name = rlk_key_of_channel(channel, len, &name_len);

    if (!name || name_len > RLOCK_NAME_MAX)
        return;
    tagged[0] = '{'; /* a name that is a hash tag alone has the same channel */
    memcpy(tagged + 1, name, name_len);
    tagged[name_len + 1] = '}';
    rlk_registry_lock(reg);
    for (int kind = 1; kind < RLK_KIND_LIMIT; kind++) {
        lose_locked(rlk_lock_find_locked(reg, kind, name, name_len));
        lose_locked(rlk_lock_find_locked(reg, kind, tagged, name_len + 2));
    }
    rlk_registry_unlock(reg);
}
