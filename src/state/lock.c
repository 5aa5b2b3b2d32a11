/* SPDX-License-Identifier: Apache-2.0 */
/* What the process knows of one lock, and the registry's table of locks; see lock.h.
 * Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "state/registry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    IDLE_MAX = 256 /* unused locks for reuse: lock and unlock allocate nothing */
};

static struct rlk_lock **bucket(struct rlk_registry *reg, uint32_t hash)
{
    return &reg->table[hash & (reg->table_size - 1)];
}

static inline struct rlk_lock *find(struct rlk_registry *reg, int kind, const char *name,
                                    size_t name_len, uint32_t hash)
{
    struct rlk_lock *lock = *bucket(reg, hash);
    while (lock &&
           (lock->hash != hash || lock->kind != kind || lock->name_len != name_len ||
            memcmp(lock->name, name, name_len) != 0))
        lock = lock->chain;
    return lock;
}

/* Doubles the table. Without memory the chains grow instead. */
static void grow(struct rlk_registry *reg)
{
    size_t old_size = reg->table_size;
    struct rlk_lock **old = reg->table;
    struct rlk_lock **table = calloc(old_size * 2, sizeof(*table));
    if (!table)
        return;
    reg->table = table;
    reg->table_size = old_size * 2;
    for (size_t i = 0; i < old_size; i++) {
        while (old[i]) {
            struct rlk_lock *lock = old[i];
            old[i] = lock->chain;
            struct rlk_lock **at = bucket(reg, lock->hash);
            lock->chain = *at;
            *at = lock;
        }
    }
    free(old);
}

static void forget(struct rlk_lock *lock)
{
    struct rlk_registry *reg = lock->registry;
    struct rlk_lock **at = bucket(reg, lock->hash);
    while (*at != lock)
        at = &(*at)->chain;
    *at = lock->chain;
    reg->lock_count--;
    free(lock);
}

struct rlk_lock *rlk_lock_find_locked(struct rlk_registry *reg, int kind,
                                      const char *name, size_t name_len)
{
    return find(reg, kind, name, name_len, (uint32_t)rlk_key_hash(name, name_len));
}

struct rlk_lock *rlk_lock_get_locked(struct rlk_registry *reg, int kind, const char *name,
                                     size_t name_len)
{
    uint32_t hash = (uint32_t)rlk_key_hash(name, name_len);
    struct rlk_lock *lock = find(reg, kind, name, name_len, hash);

    if (lock) {
        if (!rlk_queue_need_locked(lock))
            return NULL;
        if (lock->refs++ == 0) {
            rlk_list_remove(&lock->idle_link);
            reg->idle_count--;
        }
        lock->queue->users++;
        return lock;
    }
    lock = calloc(1, sizeof(*lock) + name_len + 1);
    if (!lock)
        return NULL;
    lock->registry = reg;
    lock->hash = hash;
    lock->kind = (uint8_t)kind;
    lock->name_len = (uint8_t)name_len;
    memcpy(lock->name, name, name_len);
    lock->refs = 1;
    rlk_list_init(&lock->idle_link);
    lock->queue = (struct rlk_queue *)&rlk_queue_none;
    if (!rlk_queue_need_locked(lock)) {
        free(lock);
        return NULL;
    }
    lock->queue->users = 1;
    if (reg->lock_count >= reg->table_size)
        grow(reg);
    lock->chain = *bucket(reg, hash);
    *bucket(reg, hash) = lock;
    reg->lock_count++;
    return lock;
}

void rlk_lock_ref_locked(struct rlk_lock *lock)
{
    assert(rlk_lock_has_queue(lock));
    lock->queue->users++;
    lock->refs++;
}

void rlk_lock_put_locked(struct rlk_lock *lock)
{
    assert(lock->queue->users > 0);
    lock->queue->users--;
    rlk_lock_unref_locked(lock);
}

void rlk_lock_unref_locked(struct rlk_lock *lock)
{
    struct rlk_registry *reg = lock->registry;

    assert(lock->refs > 0);
    if (--lock->refs > 0) {
        if (rlk_queue_is_quiet(lock))
            rlk_queue_end_locked(lock);
        return;
    }
    rlk_queue_end_locked(lock);
    rlk_list_append(&reg->idle, &lock->idle_link);
    if (++reg->idle_count <= IDLE_MAX)
        return;
    struct rlk_list *oldest = rlk_list_pop(&reg->idle);
    reg->idle_count--;
    forget(RLK_CONTAINER_OF(oldest, struct rlk_lock, idle_link));
}

void rlk_lock_promote_locked(struct rlk_lock *lock)
{
    if (rlk_kinds[lock->kind].in_order)
        return; /* each thread is a requester */
    if (lock->current || lock->queue->requester || lock->releasing ||
        rlk_list_empty(&lock->queue->waiters))
        return;
    struct rlk_list *l = lock->queue->waiters.next;
    /* the process ends: another thread would die with the lock, and other processes would
     * wait for its lease */
    while (lock->ending && l != &lock->queue->waiters &&
           RLK_CONTAINER_OF(l, struct rlk_waiter, link)->thread != lock->ending)
        l = l->next;
    if (l == &lock->queue->waiters)
        return;
    lock->queue->requester = RLK_CONTAINER_OF(l, struct rlk_waiter, link);
    rlk_registry_wake_locked(lock->registry, lock->queue->requester->thread);
}

struct rlk_hold *rlk_lock_ask_locked(struct rlk_lock *lock)
{
    for (struct rlk_list *l = lock->queue->asks.next; l != &lock->queue->asks;
         l = l->next) {
        struct rlk_hold *hold = RLK_CONTAINER_OF(l, struct rlk_hold, link);
        if (hold->state == RLK_HOLD_REQUESTED && !hold->reading)
            return hold;
    }
    return NULL;
}

struct rlk_hold *rlk_lock_read_ask_locked(struct rlk_lock *lock, char letter,
                                          uint32_t grant_ms)
{
    for (struct rlk_list *l = lock->queue->asks.next; l != &lock->queue->asks;
         l = l->next) {
        struct rlk_hold *hold = RLK_CONTAINER_OF(l, struct rlk_hold, link);
        if (hold->state == RLK_HOLD_REQUESTED && hold->reading && !hold->fixed &&
            hold->id.letter == letter && hold->id.grant_ms == grant_ms)
            return hold;
    }
    return NULL;
}

void rlk_lock_wake_locked(struct rlk_lock *lock)
{
    rlk_registry_wake_list_locked(lock->registry, &lock->queue->waiters);
    rlk_registry_wake_list_locked(lock->registry, &lock->queue->readers);
}

static void list_channel(struct rlk_lock *lock)
{
    struct rlk_registry *reg = lock->registry;

    if (!lock->queue->channel_listed &&
        (lock->queue->channel_wanted > 0) != lock->queue->channel_joined) {
        lock->queue->channel_listed = true;
        lock->refs++;
        rlk_list_append(&reg->channels, &lock->queue->channel_link);
        reg->subscriber_dirty = true;
    }
}

void rlk_lock_channel_locked(struct rlk_lock *lock, bool want)
{
    if (want)
        lock->queue->channel_wanted++;
    else
        lock->queue->channel_wanted--;
    list_channel(lock);
}

void rlk_lock_channel_left_locked(struct rlk_lock *lock)
{
    lock->queue->channel_joined = false;
    list_channel(lock);
}
