/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of one client's callers. The pool limits places: a place is an unused
 * connection, a lent one, or one that is being opened. When all are taken, callers queue,
 * and a returning connection goes to the first caller in the queue: a thread that comes
 * back at once cannot overtake those that wait.
 */
#include "net/pool.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A connection unused for this long is checked before it is lent. For a shorter time
 * the check is not worth its system call: the next request fails instead, and callers
 * are prepared for that. */
#define CHECK_AFTER_NS (5 * RLK_NS_PER_MS)

/* After this long the pool checks whether the descriptor still is the library's: a
 * program that closes unknown descriptors and opens others takes longer. */
#define OURS_AFTER_NS (RLK_NS_PER_MS / 50)

struct idle {
    struct rlk_conn *conn;
    int64_t since;
};

struct waiter {
    struct rlk_list link;
    struct rlk_cond cond;
    bool served;
    struct rlk_conn *conn; /* the connection that it got; NULL: a place to open one */
};

struct rlk_pool {
    /* immutable after create */
    struct rlk_pool_options options;
    char *name;

    /* Protects all fields below. Nests in nothing; dropped before all I/O. */
    struct rlk_mutex mu;
    struct idle *idle; /* a stack with max_connections entries */
    int idle_count;
    int place_count;         /* taken places, including unused connections */
    struct rlk_list waiters; /* empty while a place or an unused connection is free */
    struct sockaddr_storage last_address;
    socklen_t last_address_len;
    unsigned address_moves; /* the count of moves at that time */
};

int rlk_pool_create(struct rlk_pool **ret_pool, const struct rlk_pool_options *options)
{
    assert(options->max_connections > 0);
    struct rlk_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return ENOMEM;
    int rc = rlk_sync_mutex_init(&pool->mu);
    if (rc != 0) {
        free(pool);
        return rc;
    }
    pool->options = *options;
    rlk_list_init(&pool->waiters);
    pool->idle = calloc((size_t)options->max_connections, sizeof(*pool->idle));
    if (options->conn.name)
        pool->name = strdup(options->conn.name);
    if (!pool->idle || (options->conn.name && !pool->name)) {
        rlk_pool_free(pool);
        return ENOMEM;
    }
    pool->options.conn.name = pool->name;
    *ret_pool = pool;
    return 0;
}

void rlk_pool_free(struct rlk_pool *pool)
{
    if (!pool)
        return;
    assert(pool->place_count == pool->idle_count);
    assert(rlk_list_empty(&pool->waiters));
    for (int i = 0; i < pool->idle_count; i++)
        rlk_conn_free(pool->idle[i].conn);
    rlk_sync_mutex_destroy(&pool->mu);
    free(pool->idle);
    free(pool->name);
    free(pool);
}

/* ---- places */

/* Frees a place, with an unused connection in it or (NULL) without. Locks: holds mu. */
static void give_back_locked(struct rlk_pool *pool, struct rlk_conn *conn, int64_t now)
{
    struct rlk_list *first = rlk_list_pop(&pool->waiters);
    if (first) {
        struct waiter *w = RLK_CONTAINER_OF(first, struct waiter, link);
        w->conn = conn;
        w->served = true;
        rlk_sync_cond_signal(&w->cond);
    } else if (conn) {
        pool->idle[pool->idle_count++] = (struct idle){ conn, now };
    } else {
        pool->place_count--;
    }
}

static void give_back(struct rlk_pool *pool, struct rlk_conn *conn, int64_t now)
{
    rlk_sync_mutex_lock(&pool->mu);
    give_back_locked(pool, conn, now);
    rlk_sync_mutex_unlock(&pool->mu);
}

/* Locks: holds mu, and drops it while it sleeps. */
static int wait_for_place_locked(struct rlk_pool *pool, int64_t deadline,
                                 struct rlk_conn **ret_conn)
{
    struct waiter w = { .served = false };
    int rc = rlk_sync_cond_init(&w.cond);
    if (rc != 0)
        return rc;
    rlk_list_append(&pool->waiters, &w.link);
    while (!w.served) {
        int64_t mono = RLK_NEVER;
        if (deadline != RLK_NEVER) {
            int64_t left = rlk_clock_add(deadline, -rlk_clock_boot());
            if (left <= 0)
                break;
            mono = rlk_clock_add(rlk_clock_mono(), left);
        }
        rlk_sync_cond_wait(&w.cond, &pool->mu, mono);
    }
    if (w.served)
        *ret_conn = w.conn;
    else
        rlk_list_remove(&w.link);
    rlk_sync_cond_destroy(&w.cond);
    return w.served ? 0 : ENOTCONN;
}

/* Takes a place: *ret_conn is a connection or NULL; *ret_since says when the
 * connection came back. */
static int take_place(struct rlk_pool *pool, int64_t deadline, struct rlk_conn **ret_conn,
                      int64_t *ret_since)
{
    int rc = 0;
    *ret_conn = NULL;
    *ret_since = RLK_NEVER;
    rlk_sync_mutex_lock(&pool->mu);
    if (pool->idle_count > 0) {
        struct idle *top = &pool->idle[--pool->idle_count];
        *ret_conn = top->conn;
        *ret_since = top->since;
    } else if (pool->place_count < pool->options.max_connections) {
        pool->place_count++;
    } else {
        rc = wait_for_place_locked(pool, deadline, ret_conn);
    }
    rlk_sync_mutex_unlock(&pool->mu);
    if (rc == ENOTCONN)
        return rlk_error_set(rc, "all %d connections to %s were in use for too long",
                             pool->options.max_connections,
                             pool->options.conn.target->label);
    return rc;
}

/* ---- opening */

static void count(_Atomic uint64_t *counter)
{
    if (counter)
        atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static unsigned moves_of(const struct rlk_pool *pool)
{
    const struct rlk_moves *moves = pool->options.conn.moves;
    return moves ? atomic_load(&moves->count) : 0;
}

/* One attempt. *ret_again: it tried only the address that answered last, so another
 * attempt, with the resolver, may succeed. */
static int try_open(struct rlk_pool *pool, int64_t deadline, struct rlk_conn **ret_conn,
                    bool *ret_again)
{
    struct rlk_conn_options options = pool->options.conn;
    struct sockaddr_storage address;
    socklen_t address_len;
    unsigned moves = moves_of(pool);
    rlk_sync_mutex_lock(&pool->mu);
    address = pool->last_address;
    address_len = pool->address_moves == moves ? pool->last_address_len : 0;
    rlk_sync_mutex_unlock(&pool->mu);
    bool had_address = address_len > 0;
    /* A copy: other threads may be opening connections at the same time. */
    options.last_address = &address;
    options.last_address_len = &address_len;
    options.moves_seen = moves;

    struct rlk_conn *conn;
    int rc = rlk_conn_start(&conn, &options, deadline);
    if (rc != 0)
        return rlk_error_set(rc, "out of memory");
    enum rlk_conn_state state = rlk_conn_wait_ready(conn, deadline);

    rlk_sync_mutex_lock(&pool->mu);
    pool->last_address = address;
    pool->last_address_len = address_len;
    pool->address_moves = moves;
    rlk_sync_mutex_unlock(&pool->mu);
    if (state == RLK_CONN_READY) {
        count(pool->options.connects);
        *ret_conn = conn;
        return 0;
    }
    count(pool->options.connect_failures);
    *ret_again = had_address && rlk_conn_failure(conn) == RLK_FAIL_NOT_SENT;
    rc = rlk_error_set(rlk_conn_error_code(conn), "%s", rlk_conn_error_text(conn));
    rlk_conn_free(conn);
    return rc;
}

static int open_conn(struct rlk_pool *pool, int64_t deadline, struct rlk_conn **ret_conn)
{
    bool again = false;
    int64_t bound = rlk_clock_add(rlk_clock_boot(), pool->options.connect_timeout_ns);
    if (bound > deadline)
        bound = deadline;
    int rc = try_open(pool, bound, ret_conn, &again);
    if (rc != 0 && again && rlk_clock_boot() < bound) {
        rlk_error_clear();
        rc = try_open(pool, bound, ret_conn, &again);
    }
    return rc;
}

/* ---- lending */

/* For a connection that came back at `since`; RLK_NEVER: just now. */
static bool is_usable(struct rlk_conn *conn, int64_t since)
{
    int64_t rested = since != RLK_NEVER ? rlk_clock_boot() - since : 0;

    if (rlk_conn_moved(conn) || (rested > OURS_AFTER_NS && !rlk_conn_is_ours(conn)))
        return false;
    return rested <= CHECK_AFTER_NS || rlk_conn_idle_ok(conn);
}

int rlk_pool_get(struct rlk_pool *pool, int64_t deadline, struct rlk_conn **ret_conn)
{
    struct rlk_conn *conn;
    int64_t since;
    int rc = take_place(pool, deadline, &conn, &since);
    if (rc != 0)
        return rc;
    if (conn && !is_usable(conn, since)) {
        /* What closed this one has most likely closed those below it; and if the
         * server is not a master any more, all of them are useless. */
        rlk_conn_free(conn);
        conn = NULL;
        rlk_pool_drain(pool);
    }
    if (!conn) {
        rc = open_conn(pool, deadline, &conn);
        if (rc != 0) {
            give_back(pool, NULL, 0);
            return rc;
        }
    }
    *ret_conn = conn;
    return 0;
}

/* Closes the unused connections that got no reply after `when`: the failure that
 * swallowed the reply to a request of that time may have broken them, too, without any
 * sign. */
static void drop_older(struct rlk_pool *pool, int64_t when)
{
    for (;;) {
        struct rlk_conn *conn = NULL;
        rlk_sync_mutex_lock(&pool->mu);
        if (pool->idle_count > 0 && pool->idle[0].since < when) {
            conn = pool->idle[0].conn; /* the oldest is at the bottom */
            pool->idle_count--;
            pool->place_count--;
            memmove(pool->idle, pool->idle + 1,
                    (size_t)pool->idle_count * sizeof(*pool->idle));
        }
        rlk_sync_mutex_unlock(&pool->mu);
        if (!conn)
            return;
        rlk_conn_free(conn);
    }
}

void rlk_pool_put(struct rlk_pool *pool, struct rlk_conn *conn)
{
    if (rlk_conn_state(conn) != RLK_CONN_READY) {
        if (rlk_conn_failure(conn) == RLK_FAIL_UNKNOWN)
            drop_older(pool, rlk_conn_asked_at(conn));
        rlk_conn_free(conn);
        conn = NULL;
    }
    give_back(pool, conn, conn ? rlk_clock_boot() : 0);
}

void rlk_pool_drain(struct rlk_pool *pool)
{
    for (;;) {
        struct rlk_conn *conn = NULL;
        rlk_sync_mutex_lock(&pool->mu);
        if (pool->idle_count > 0) {
            conn = pool->idle[--pool->idle_count].conn;
            pool->place_count--;
        }
        rlk_sync_mutex_unlock(&pool->mu);
        if (!conn)
            return;
        rlk_conn_free(conn);
    }
}
