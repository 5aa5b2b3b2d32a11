/* SPDX-License-Identifier: Apache-2.0 */
/* The callers' connections of one client: bounded, last in first out (a warm one is
 * likelier to be alive, and idle ones age at the bottom). Thread: any. */
#ifndef RLK_POOL_H
#define RLK_POOL_H

#include "base/sync.h"
#include "net/conn.h"

struct rlk_pool;

struct rlk_pool_options {
    struct rlk_conn_options
        conn; /* last_address fields unused (NULL): the pool keeps its own */
    int max_connections;
    int64_t connect_timeout_ns;
    /* counters of the client's statistics, relaxed increments; may be NULL */
    _Atomic uint64_t *connects, *connect_failures;
};

int rlk_pool_create(struct rlk_pool **ret_pool, const struct rlk_pool_options *options);

/* Frees it with its idle connections. No connection may be lent. NULL is fine. */
void rlk_pool_free(struct rlk_pool *pool);

/*
 * Lends a ready connection: an idle live one, else a new one, else waits for one to come
 * back. On failure nothing was sent, and *ret_code is the caller's code (ENOTCONN,
 * EACCES, EPROTO, ENOMEM, EMFILE, ...), with the thread's message set. Blocks: network
 * (connecting: at most connect_timeout), until `deadline` (CLOCK_BOOTTIME). Locks: takes
 * the pool's mutex, never during I/O.
 */
int rlk_pool_get(struct rlk_pool *pool, int64_t deadline, struct rlk_conn **ret_conn);

/* Gives it back. A dead one is freed, and if an answer is missing, so are the idle ones
 * that were not used since it was asked for. */
void rlk_pool_put(struct rlk_pool *pool, struct rlk_conn *conn);

/* The same for a caller that knows what time it is. */
void rlk_pool_put_at(struct rlk_pool *pool, struct rlk_conn *conn, int64_t now);

/* Closes all idle connections (the server moved, or the client closes). */
void rlk_pool_drain(struct rlk_pool *pool);

#endif
