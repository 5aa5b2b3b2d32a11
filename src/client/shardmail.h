/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sharded mailboxes of a client at one node of a cluster: channels whose messages
 * stay at the node of a lock and its replicas, where those of the client's own mailbox go
 * to every node. There is one for each hash tag that the client waits for or shares a
 * lock of. It is kept for minutes, and it is only a shorter way: while it is not
 * subscribed, the scripts use the client's own mailbox (lua/lib/mailbox.lua).
 *
 * Functions that end in _locked need the registry's mu. Blocks: no.
 */
#ifndef RLK_SHARDMAIL_H
#define RLK_SHARDMAIL_H

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rlk_conn;
struct rlk_shardmail_tag;
struct rlk_target;

enum { RLK_SHARDMAIL_BUCKETS = 64 };

/* Of a target. Zeroed: empty. Guarded by the registry's mu. */
struct rlk_shardmail {
    struct rlk_shardmail_tag *buckets[RLK_SHARDMAIL_BUCKETS];
    struct rlk_list by_use;  /* the one that was used last is last */
    struct rlk_list pending; /* to be subscribed */
    size_t count;
    bool made; /* the lists are */
};

/* The client waits for the lock of this name, or shares it: its mailbox is subscribed
 * soon. Without memory it is not. Thread: any. */
void rlk_shardmail_want_locked(struct rlk_target *target, const char *name,
                               size_t name_len, int64_t now);

/* The rest is called by the subscriber. */

/* Subscribes what is pending, on this connection, and leaves what was not used for long.
 * Returns 0 or ENOMEM. Locks: takes the registry's mu. */
int rlk_shardmail_follow(struct rlk_target *target, struct rlk_conn *conn, int64_t now);
/* When there is something for it to do. Locks: takes the registry's mu. */
int64_t rlk_shardmail_due(struct rlk_target *target);
/* A new connection has no subscriptions. Locks: takes the registry's mu. */
void rlk_shardmail_rejoin(struct rlk_target *target);
/* The server has confirmed a subscription, or ends one: the hash slot has moved, or the
 * library has asked for it. Returns whether that is news. Locks: takes the registry's mu.
 */
bool rlk_shardmail_said(struct rlk_target *target, const char *channel, size_t len,
                        bool joined);
/* Forgets all. Locks: none are needed any more. */
void rlk_shardmail_clear(struct rlk_shardmail *mail);

#endif
