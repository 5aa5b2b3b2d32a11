/* SPDX-License-Identifier: Apache-2.0 */
/* Names of locks, and the keys and channels in Redis that belong to a lock. No state. */
#ifndef RLK_KEY_H
#define RLK_KEY_H

#include <rlock.h>
#include <stddef.h>
#include <stdint.h>

/* The version of key layout, ids and script arguments. Every script gets it. */
#define RLK_LAYOUT "1"
/* The same for a cluster whose servers know sharded channels. */
#define RLK_LAYOUT_SHARDED "1c"

/* The channel of a client's mailbox is this prefix and the client's uuid. */
#define RLK_MAILBOX_PREFIX "rlock:client:"

enum rlk_key {
    RLK_KEY_N,
    RLK_KEY_QUEUE,
    RLK_KEY_RQUEUE,
    RLK_KEY_PRESENT,
    RLK_KEY_READERS,
    RLK_KEY_CANCELLED,
    RLK_KEY_KEEPERS,
    RLK_KEY_DIRTY,
    RLK_KEY_TOKEN,
    RLK_KEY_CHANNEL, /* where Redisson's waiters listen: not a key */
    RLK_KEY_COUNT
};

enum {
    RLK_KEY_SIZE = RLOCK_NAME_MAX + 32
}; /* the longest prefix and suffix have 25 bytes */

/* Returns 0, EINVAL or ENAMETOOLONG, and sets the thread's message. */
int rlk_key_check(const char *name, size_t name_len);

/* Writes a key of the lock `name`: at most RLK_KEY_SIZE bytes, no NUL. Returns its
 * length. Different names never share a key, except that "a" and "{a}" share the token
 * key and the channel (harmless: tokens only grow, and a message is a hint). */
size_t rlk_key_write(char *buf, enum rlk_key key, const char *name, size_t name_len);

/* If `channel` is a lock's Redisson channel, points at the name in it, else NULL. The
 * channel of "a" and "{a}" is the same: the caller tries both names. */
const char *rlk_key_of_channel(const char *channel, size_t len, size_t *ret_name_len);

uint64_t rlk_key_hash(const char *name, size_t name_len);

/* The hash slot of a cluster that the lock's name, its keys and its channel are in. */
enum { RLK_HASH_SLOTS = 16384 };
unsigned rlk_key_hash_slot(const char *name, size_t name_len);

#endif
