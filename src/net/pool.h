/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of one client's callers: bounded in number, last in first out. A
 * recently used connection is more likely to be alive; unused ones age at the bottom.
 * Thread: any. Locks: takes the pool's mutex, which nests in nothing. */
#ifndef RLK_POOL_H
#define RLK_POOL_H

#include "base/sync.h"
#include "net/conn.h"

struct rlk_pool;

struct rlk_pool_options {
    struct rlk_conn_options
        conn; /* last_address fields unused (NULL): the pool has its own */
    int max_connections;
    int64_t connect_timeout_ns;
    /* counters of the client's statistics; relaxed increments; may be NULL */
    _Atomic uint64_t *connects, *connect_failures;
};

int rlk_pool_create(struct rlk_pool **ret_pool, const struct rlk_pool_options *options);

/* Frees the pool and its unused connections. No connection may be lent. NULL is fine. */
void rlk_pool_free(struct rlk_pool *pool);

/*
 * Lends a ready connection: an unused live one, else a new one, else waits until one
 * comes back. On failure nothing was sent, *ret_code is the code for the caller
 * (ENOTCONN, EACCES, EPROTO, ENOMEM, EMFILE, ...) and the thread's message is set.
 * Blocks: network (connecting: at most connect_timeout), until `deadline`
 * (CLOCK_BOOTTIME). Locks: takes the pool's mutex, never during I/O.
 */
int rlk_pool_get(struct rlk_pool *pool, int64_t deadline, struct rlk_conn **ret_conn);
/* The same for a request that gives back a lock: others may wait for it, so it does not
 * wait behind requests for locks. */
int rlk_pool_get_first(struct rlk_pool *pool, int64_t deadline,
                       struct rlk_conn **ret_conn);
/* How many threads wait for a connection. Blocks: no. */
unsigned rlk_pool_waiter_count(const struct rlk_pool *pool);

/* Takes a lent connection back. Frees a dead one; if its reply is missing, also frees
 * the unused ones that were last used before its request. */
void rlk_pool_put(struct rlk_pool *pool, struct rlk_conn *conn);

/* The same for a caller that knows what time it is. */
void rlk_pool_put_at(struct rlk_pool *pool, struct rlk_conn *conn, int64_t now);

/* Closes all idle connections (the server moved, or the client closes). */
void rlk_pool_drain(struct rlk_pool *pool);

#endif
