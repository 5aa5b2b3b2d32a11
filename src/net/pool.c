/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callers' connections of one client. What is bounded is the number of places: a
 * place is an idle connection, a lent one, or one that is being opened. When all are
 * taken, callers queue, and who gives a place back hands it to the first of them: a
 * thread that comes back at once cannot overtake those that wait.
 *
 * While nobody queues, the newest idle connection lies in `top`, where threads take it
 * and lay it down without the mutex. A thread that queues first says so in `waiting`, and
 * then looks into `top`; a thread that lays a connection down looks at `waiting` behind
 * that. So one of the two sees the other.
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

struct waiter {
    struct rlk_list link;
    struct rlk_cond cond;
    bool goes_first; /* before those that do not */
    bool served;
    struct rlk_conn *conn; /* the connection that it got; NULL: a place to open one */
};

struct rlk_pool {
    /* immutable after create */
    struct rlk_pool_options options;
    char *name;

    _Atomic(struct rlk_conn *) top; /* idle, and has a place; NULL: none lies there */
    atomic_uint waiting;            /* how many queue, or are about to; written with mu */

    /* Protects what follows. Nests in nothing; dropped before all I/O. */
    struct rlk_mutex mu;
    struct rlk_conn **idle; /* a stack, as long as max_connections */
    int idle_count;
    int place_count;         /* taken places, idle ones and that of `top` included */
    struct rlk_list waiters; /* empty while there is a free place or an idle connection */
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
    assert(rlk_list_empty(&pool->waiters));
    rlk_pool_drain(pool);
    assert(pool->place_count == 0);
    rlk_sync_mutex_destroy(&pool->mu);
    free(pool->idle);
    free(pool->name);
    free(pool);
}

/* ---- places */

/* A place becomes free, with a connection in it or (NULL) without. Locks: holds mu. */
static void give_back_locked(struct rlk_pool *pool, struct rlk_conn *conn)
{
    struct rlk_list *first = rlk_list_pop(&pool->waiters);
    if (first) {
        struct waiter *w = RLK_CONTAINER_OF(first, struct waiter, link);
        w->conn = conn;
        w->served = true;
        rlk_sync_cond_signal(&w->cond);
    } else if (conn) {
        pool->idle[pool->idle_count++] = conn;
    } else {
        pool->place_count--;
    }
}

static void give_back(struct rlk_pool *pool, struct rlk_conn *conn)
{
    rlk_sync_mutex_lock(&pool->mu);
    give_back_locked(pool, conn);
    rlk_sync_mutex_unlock(&pool->mu);
}

/* What lies in `top`, or NULL. Locks: none needed. */
static struct rlk_conn *take_top(struct rlk_pool *pool)
{
    if (!atomic_load(&pool->top))
        return NULL;
    return atomic_exchange(&pool->top, NULL);
}

/* Locks: holds mu, which sleeping drops. */
static int sleep_for_place_locked(struct rlk_pool *pool, struct waiter *w,
                                  int64_t deadline)
{
    while (!w->served) {
        int64_t mono = RLK_NEVER;
        if (deadline != RLK_NEVER) {
            int64_t left = rlk_clock_add(deadline, -rlk_clock_boot());
            if (left <= 0)
                return ENOTCONN;
            mono = rlk_clock_add(rlk_clock_mono(), left);
        }
        rlk_sync_cond_wait(&w->cond, &pool->mu, mono);
    }
    return 0;
}

/* Locks: holds mu. */
static void queue_locked(struct rlk_pool *pool, struct waiter *w)
{
    struct rlk_list *l = w->goes_first ? pool->waiters.next : &pool->waiters;

    while (l != &pool->waiters && RLK_CONTAINER_OF(l, struct waiter, link)->goes_first)
        l = l->next;
    rlk_list_append(l, &w->link); /* before l */
}

/* As sleep_for_place_locked. */
static int wait_for_place_locked(struct rlk_pool *pool, int64_t deadline, bool goes_first,
                                 struct rlk_conn **ret_conn)
{
    struct waiter w = { .goes_first = goes_first };
    int rc = rlk_sync_cond_init(&w.cond);
    if (rc != 0)
        return rc;
    atomic_fetch_add(&pool->waiting, 1);
    *ret_conn = take_top(pool);
    if (!*ret_conn) {
        queue_locked(pool, &w);
        rc = sleep_for_place_locked(pool, &w, deadline);
        if (rc == 0)
            *ret_conn = w.conn;
        else
            rlk_list_remove(&w.link);
    }
    atomic_fetch_sub(&pool->waiting, 1);
    rlk_sync_cond_destroy(&w.cond);
    return rc;
}

/* Locks: holds mu, which is dropped while the thread queues. */
static int find_place_locked(struct rlk_pool *pool, int64_t deadline, bool goes_first,
                             struct rlk_conn **ret_conn)
{
    *ret_conn = atomic_load(&pool->waiting) == 0 ? take_top(pool) : NULL;
    if (!*ret_conn && pool->idle_count > 0)
        *ret_conn = pool->idle[--pool->idle_count];
    if (*ret_conn)
        return 0;
    if (pool->place_count < pool->options.max_connections) {
        pool->place_count++;
        return 0;
    }
    return wait_for_place_locked(pool, deadline, goes_first, ret_conn);
}

/* A place, with *ret_conn a connection or NULL. */
static int take_place(struct rlk_pool *pool, int64_t deadline, bool goes_first,
                      struct rlk_conn **ret_conn)
{
    rlk_sync_mutex_lock(&pool->mu);
    int rc = find_place_locked(pool, deadline, goes_first, ret_conn);
    rlk_sync_mutex_unlock(&pool->mu);
    if (rc == ENOTCONN)
        return rlk_error_set(rc, "all %d connections to %s were in use for too long",
                             pool->options.max_connections,
                             pool->options.conn.endpoint->label);
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

/* rule: P9 */
/* A connection in the place that the thread has. With Sentinel not to a master that has
 * been replaced since the connection was ready. */
static int fill_place(struct rlk_pool *pool, int64_t deadline, struct rlk_conn **ret_conn)
{
    bool by_sentinel = pool->options.conn.endpoint->sentinels.count > 0;
    int rc = open_conn(pool, deadline, ret_conn);

    while (rc == 0 && by_sentinel && rlk_conn_moved(*ret_conn)) {
        rlk_conn_free(*ret_conn);
        *ret_conn = NULL;
        rc = open_conn(pool, deadline, ret_conn);
    }
    if (rc != 0)
        give_back(pool, NULL);
    return rc;
}

/* rule: P28 */
/* Lends no connection that was closed while it rested, as far as can be seen. */
static inline int get(struct rlk_pool *pool, int64_t deadline, bool goes_first,
                      struct rlk_conn **ret_conn)
{
    struct rlk_conn *conn = NULL;

    if (atomic_load(&pool->waiting) == 0)
        conn = take_top(pool);
    if (!conn) {
        int rc = take_place(pool, deadline, goes_first, &conn);
        if (rc != 0)
            return rc;
    }
    if (conn && !rlk_conn_idle_ok(conn)) {
        /* What closed this one has most likely closed those below it; where the server is
         * no master any more, none of them is of use. */
        rlk_conn_free(conn);
        conn = NULL;
        rlk_pool_drain(pool);
    }
    if (!conn)
        return fill_place(pool, deadline, ret_conn);
    *ret_conn = conn;
    return 0;
}

int rlk_pool_get(struct rlk_pool *pool, int64_t deadline, struct rlk_conn **ret_conn)
{
    return get(pool, deadline, false, ret_conn);
}

int rlk_pool_get_first(struct rlk_pool *pool, int64_t deadline,
                       struct rlk_conn **ret_conn)
{
    return get(pool, deadline, true, ret_conn);
}

unsigned rlk_pool_waiter_count(const struct rlk_pool *pool)
{
    return atomic_load(&pool->waiting);
}

/* Lays down a connection where the next thread takes it; one that lies there goes onto
 * the stack. */
static void lay_down(struct rlk_pool *pool, struct rlk_conn *conn)
{
    if (atomic_load(&pool->waiting) == 0) {
        conn = atomic_exchange(&pool->top, conn);
        if (atomic_load(&pool->waiting) > 0) { /* since then */
            struct rlk_conn *back = take_top(pool);
            if (back)
                give_back(pool, back);
        }
    }
    if (conn)
        give_back(pool, conn);
}

/* The oldest idle connection, if nothing was heard on it since `when`; or
 * NULL. Its place is free. Locks: holds mu. */
static struct rlk_conn *take_older_locked(struct rlk_pool *pool, int64_t when)
{
    struct rlk_conn *conn = pool->idle_count > 0 ? pool->idle[0] : NULL;

    if (conn && rlk_conn_idle_since(conn) < when) {
        pool->idle_count--;
        memmove(pool->idle, pool->idle + 1,
                (size_t)pool->idle_count * sizeof(*pool->idle));
    } else {
        conn = take_top(pool);
        if (conn && rlk_conn_idle_since(conn) >= when) {
            give_back_locked(pool, conn);
            conn = NULL;
        }
    }
    if (conn)
        give_back_locked(pool, NULL);
    return conn;
}

/* Closes the idle connections that received nothing since `when`: the fault that took the
 * reply to a request of that time may have broken them too, without a sign of it. */
static void drop_older(struct rlk_pool *pool, int64_t when)
{
    struct rlk_conn *conn;

    do {
        rlk_sync_mutex_lock(&pool->mu);
        conn = take_older_locked(pool, when);
        rlk_sync_mutex_unlock(&pool->mu);
        rlk_conn_free(conn);
    } while (conn);
}

void rlk_pool_put_at(struct rlk_pool *pool, struct rlk_conn *conn, int64_t now)
{
    if (rlk_conn_state(conn) == RLK_CONN_READY) {
        rlk_conn_rest(conn, now);
        lay_down(pool, conn);
        return;
    }
    if (rlk_conn_failure(conn) == RLK_FAIL_UNKNOWN)
        drop_older(pool, rlk_conn_asked_at(conn));
    rlk_conn_free(conn);
    give_back(pool, NULL);
}

void rlk_pool_put(struct rlk_pool *pool, struct rlk_conn *conn)
{
    rlk_pool_put_at(pool, conn, rlk_clock_boot());
}

void rlk_pool_drain(struct rlk_pool *pool)
{
    struct rlk_conn *conn;

    do {
        rlk_sync_mutex_lock(&pool->mu);
        conn = take_top(pool);
        if (!conn && pool->idle_count > 0)
            conn = pool->idle[--pool->idle_count];
        if (conn)
            give_back_locked(pool, NULL);
        rlk_sync_mutex_unlock(&pool->mu);
        rlk_conn_free(conn);
    } while (conn);
}
