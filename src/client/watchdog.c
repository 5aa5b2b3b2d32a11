/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog thread. For each client it has one connection, opened when first needed,
 * with pipelined requests, so that a slow or silent server delays no other client's
 * renewals, and no loss is reported late. renewer.c decides what to request and what the
 * replies mean.
 *
 * Replies come in the order of the requests. When the connection breaks, or nothing
 * arrives on it while a request is late, all requests in flight have failed with outcome
 * unknown; the timer of each repeats it on a new connection. Where replicas have to
 * confirm renewals, renewer_wait.c keeps the replies until they have.
 *
 * In a cluster, each node that is used has such a connection. The client's own target has
 * none there: it runs the timers for all of them, and loads the map of the cluster.
 */
#include "client/watchdog.h"

#include "base/clock.h"
#include "base/log.h"
#include "client/client.h"
#include "client/renewer.h"

enum {
    BACKOFF_FIRST_MS = 10,
    BACKOFF_MAX_MS = 1000,
    TELL_AFTER_MS = 500,
    RELOAD_AFTER_MS = 100, /* another node may have the locks of one that cannot be
                              reached */
    HURRY_PARTS = 20,      /* of the shortest lease that must be renewed, */
    HURRY_MIN_MS = 5       /* but at least this: the longest time between two tries */
};

static int64_t step(struct rlk_loop_member *member, int64_t now);
static int fd(struct rlk_loop_member *member, short *ret_events);
static int other_fd(struct rlk_loop_member *member);
static void left(struct rlk_loop_member *member);

static struct rlk_loop loop = {
    .thread_name = "rlock-watch",
    .step = step,
    .fd = fd,
    .other_fd = other_fd,
    .left = left,
};
static rlk_once_t once = RLK_ONCE_INIT;
static int loop_rc;

static void init(void)
{
    loop_rc = rlk_loop_init(&loop);
}

static struct rlk_target *target_of(struct rlk_loop_member *member)
{
    return RLK_CONTAINER_OF(member, struct rlk_target, watch.member);
}

/* Whether the target does what is done once for a client. */
static bool is_own(const struct rlk_target *target)
{
    return target == &target->client->route.target;
}

void rlk_watchdog_init(struct rlk_watch *watch)
{
    rlk_list_init(&watch->ops);
    rlk_list_init(&watch->unproven);
    watch->backoff_ms = BACKOFF_FIRST_MS;
    watch->op_deadline = RLK_NEVER;
}

int rlk_watchdog_join(struct rlk_target *target)
{
    struct rlock_client *client = target->client;
    rlk_sync_once(&once, init);
    if (loop_rc != 0)
        return loop_rc;
    target->watch.moves_done = atomic_load(&target->moves.count);
    int rc = rlk_loop_join(&loop, &target->watch.member);
    if (rc == 0 && is_own(target))
        client->registry.watchdog = &loop.bell;
    return rc;
}

void rlk_watchdog_leave(struct rlk_target *target)
{
    rlk_loop_leave(&loop, &target->watch.member);
}

void rlk_watchdog_forget(void)
{
    rlk_loop_forget(&loop);
}

static int fd(struct rlk_loop_member *member, short *ret_events)
{
    struct rlk_target *target = target_of(member);
    struct rlk_watch *watch = &target->watch;

    if (rlk_client_is_over(target->client))
        return -1;
    if (rlk_route_is_nowhere(&target->client->route, target))
        return rlk_cluster_load_fd(target->client->route.cluster, ret_events);
    if (!watch->conn)
        return -1;
    *ret_events = rlk_conn_events(watch->conn);
    return rlk_conn_fd(watch->conn);
}

static int other_fd(struct rlk_loop_member *member)
{
    const struct rlk_target *target = target_of(member);

    return is_own(target) ? rlk_peer_watch_fd(target->client) : -1;
}

/* ---- the connection */

static void drop_conn(struct rlk_target *target, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_watch *watch = &target->watch;
    struct rlk_list *l = rlk_list_first(&watch->ops);

    if (l)
        rlk_registry_unanswered(&client->registry,
                                RLK_CONTAINER_OF(l, struct rlk_op, link)->sent);
    if (rlk_conn_failure(watch->conn) != RLK_FAIL_NONE)
        rlk_log(RLK_LOG_DEBUG, "rlock: watchdog connection replaced: %s",
                rlk_conn_error_text(watch->conn));
    while ((l = rlk_list_first(&watch->ops)) != NULL ||
           (l = rlk_list_first(&watch->unproven)) != NULL)
        rlk_renewer_done(target, RLK_CONTAINER_OF(l, struct rlk_op, link), NULL);
    rlk_conn_free(watch->conn);
    watch->conn = NULL;
    if (rlk_route_is_cluster(&client->route) && !rlk_cluster_is_let_go(target)) {
        rlk_cluster_failed(target);
        rlk_cluster_reload(client->route.cluster);
    }
    watch->opening = false;
    watch->retry_at = now + watch->backoff_ms * RLK_NS_PER_MS;
    watch->backoff_ms =
        watch->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : watch->backoff_ms * 2;
}

/* While the mailbox is alive, only this line reports that leases cannot be renewed. */
static void tell_down(struct rlk_target *target, int64_t now)
{
    struct rlk_watch *watch = &target->watch;
    char lasted[RLK_LOG_NUMBER_SIZE];

    if (watch->told_down || !atomic_load(&target->subscription.hears) ||
        now - watch->down_since < TELL_AFTER_MS * RLK_NS_PER_MS)
        return;
    watch->told_down = true;
    rlk_log(RLK_LOG_WARNING, "rlock: no connection to renew leases at %s for %s s: %s",
            target->endpoint->label, rlk_log_seconds(lasted, now - watch->down_since),
            rlk_conn_error_text(watch->conn));
}

/* The handshake failed. */
static void count_failure(struct rlk_target *target, int64_t now)
{
    struct rlock_client *client = target->client;
    enum rlk_failure why = rlk_conn_failure(target->watch.conn);

    RLK_COUNT(client->counters.connect_failures);
    tell_down(target, now);
    if (why != RLK_FAIL_ACCESS && why != RLK_FAIL_PROTOCOL)
        return;
    rlk_registry_lock(&client->registry);
    rlk_registry_ask_again_locked(&client->registry, now);
    rlk_registry_unlock(&client->registry);
}

void rlk_watchdog_hurry(struct rlk_watch *watch, int64_t now, long lease_ms)
{
    long most = lease_ms / HURRY_PARTS;

    if (most < HURRY_MIN_MS)
        most = HURRY_MIN_MS;
    if (watch->backoff_ms > most)
        watch->backoff_ms = (int)most;
    if (watch->retry_at > now + most * RLK_NS_PER_MS)
        watch->retry_at = now + most * RLK_NS_PER_MS;
}

static void open_conn(struct rlk_target *target, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_watch *watch = &target->watch;
    if (watch->down_since == 0)
        watch->down_since = now;
    watch->tried_at = now;
    rlk_registry_unanswered(&client->registry, now);
    unsigned moves = atomic_load(&target->moves.count);
    if (watch->address_moves != moves)
        watch->address_len = 0;
    watch->address_moves = moves;
    struct rlk_conn_options options = {
        .endpoint = target->endpoint,
        .name = client->conn_name,
        .in_loop = true,
        .keepalive_ms = client->config.presence_ms,
        .reply_limit = 1 << 16,
        .last_address = &watch->address,
        .last_address_len = &watch->address_len,
        .moves = &target->moves,
        .moves_seen = moves,
    };
    int64_t deadline = now + client->config.connect_timeout_ms * RLK_NS_PER_MS;

    if (rlk_conn_start(&watch->conn, &options, deadline) != 0) {
        watch->conn = NULL;
        watch->retry_at = now + watch->backoff_ms * RLK_NS_PER_MS;
        return;
    }
    watch->opening = true; /* it may already be ready, or dead */
}

static void note_ready(struct rlk_target *target, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_watch *watch = &target->watch;
    char lasted[RLK_LOG_NUMBER_SIZE];

    watch->opening = false;
    atomic_store_explicit(&client->registry.heard_at, now, memory_order_relaxed);
    RLK_COUNT(client->counters.connects);
    if (watch->been_ready)
        RLK_COUNT(client->counters.reconnects);
    watch->been_ready = true;
    if (watch->told_down)
        rlk_log(RLK_LOG_INFO,
                "rlock: connection to renew leases at %s is back after %s s",
                target->endpoint->label,
                rlk_log_seconds(lasted, rlk_clock_boot() - watch->down_since));
    watch->told_down = false;
    watch->down_since = 0;
}

/* Whether the connection is silent: a request is late, and nothing has arrived since
 * it was sent. (If other replies arrive, the late request is only slow, and a new
 * connection would fail the others.) The earliest deadline is searched only when the
 * last known one has passed. */
static bool silent(struct rlk_watch *watch, int64_t now)
{
    if (now < watch->op_deadline)
        return false;
    watch->op_deadline = RLK_NEVER;
    for (struct rlk_list *l = watch->ops.next; l != &watch->ops; l = l->next) {
        struct rlk_op *op = RLK_CONTAINER_OF(l, struct rlk_op, link);
        if (now >= op->deadline && watch->heard_at > op->quiet_since) {
            op->quiet_since = watch->heard_at;
            op->deadline = watch->heard_at + op->timeout; /* may have passed, too */
        }
        if (op->deadline < watch->op_deadline)
            watch->op_deadline = op->deadline;
    }
    return now >= watch->op_deadline;
}

/* Reads replies; drops a connection that is broken or silent. */
static void serve_conn(struct rlk_target *target, int64_t now)
{
    struct rlk_watch *watch = &target->watch;
    struct rlk_reply *reply;

    rlk_conn_step(watch->conn);
    if (watch->opening && rlk_conn_state(watch->conn) == RLK_CONN_READY)
        note_ready(target, now);
    while ((reply = rlk_conn_take_reply(watch->conn)) != NULL) {
        struct rlk_list *l = rlk_list_first(&watch->ops);
        watch->heard_at = now;
        if (l && RLK_CONTAINER_OF(l, struct rlk_op, link)->asking) {
            RLK_CONTAINER_OF(l, struct rlk_op, link)->asking = false;
            rlk_reply_give_back(watch->conn, reply); /* to ASKING */
            continue;
        }
        if (l &&
            rlk_renewer_keep(target, RLK_CONTAINER_OF(l, struct rlk_op, link), reply))
            continue;
        if (l) {
            rlk_renewer_done(target, RLK_CONTAINER_OF(l, struct rlk_op, link), reply);
            /* Not by a reply that sends the client elsewhere. */
            if (rlk_conn_state(watch->conn) != RLK_CONN_DEAD)
                watch->backoff_ms = BACKOFF_FIRST_MS;
        } else {
            rlk_conn_kill(watch->conn, RLK_FAIL_PROTOCOL,
                          "unexpected reply without a request");
        }
        rlk_reply_give_back(watch->conn, reply);
    }
    if (silent(watch, now))
        rlk_conn_kill(watch->conn, RLK_FAIL_UNKNOWN, "no reply in time");
    if (rlk_conn_state(watch->conn) == RLK_CONN_DEAD) {
        if (watch->opening)
            count_failure(target, now);
        drop_conn(target, now);
    }
}

/* rule: P9 */
/* A new master may have less than the old one had: holds that it does not know are lost
 * at once, and not only at their next renewals. */
static void follow_move(struct rlk_target *target, int64_t now)
{
    struct rlock_client *client = target->client;
    unsigned moves = atomic_load(&target->moves.count);

    if (target->watch.moves_done == moves || target->endpoint->sentinels.count == 0)
        return;
    target->watch.moves_done = moves;
    rlk_registry_lock(&client->registry);
    rlk_registry_doubt_all_locked(&client->registry, now);
    rlk_registry_unlock(&client->registry);
}

/* What is done once for a client: runs the timers, which say what is to be sent to which
 * target, and looks for dead processes. Returns when to call again. */
static int64_t step_client(struct rlk_target *target, int64_t now)
{
    bool need_conn = false;
    int64_t due = rlk_renewer_run(target);
    int64_t look_at = rlk_peer_watch_step(target->client, now, &need_conn);

    if (!rlk_route_is_cluster(&target->client->route)) /* there, the names say where */
        target->watch.wanted |= need_conn;
    return look_at < due ? look_at : due;
}

/* The client's own target in a cluster: what is to be sent to it waits for the map. */
static int64_t step_cluster(struct rlk_target *target, int64_t now)
{
    struct rlk_cluster *cluster = target->client->route.cluster;
    struct rlk_watch *watch = &target->watch;
    int64_t due = step_client(target, now);
    unsigned changes = rlk_cluster_changes(cluster);

    if (watch->moves_done != changes)
        watch->down_since = 0;
    watch->moves_done = changes;
    if (watch->wanted) {
        if (watch->down_since == 0)
            watch->down_since = now;
        watch->tried_at = now;
        rlk_cluster_reload(cluster);
    }
    watch->wanted = false;
    rlk_cluster_use_wanted(cluster);
    int64_t load_due = rlk_cluster_load_step(cluster, now);
    int64_t sweep_due = rlk_cluster_sweep(cluster, now);
    if (sweep_due < due)
        due = sweep_due;
    if (target->client->peer_watch.begin) /* its cluster is known now */
        return now;
    return load_due < due ? load_due : due;
}

static int64_t step(struct rlk_loop_member *member, int64_t now)
{
    struct rlk_target *target = target_of(member);
    struct rlock_client *client = target->client;
    struct rlk_watch *watch = &target->watch;
    int64_t due = RLK_NEVER;

    if (rlk_client_is_over(client))
        return RLK_NEVER;
    if (rlk_route_is_nowhere(&client->route, target))
        return step_cluster(target, now);
    /* First: a move that is counted after it finds the connection's requests in flight,
     * and is followed in the next step. */
    follow_move(target, now);
    /* A server that is not a master any more does not know what the new master
     * granted, and would report such holds as gone. Requests in flight are repeated. */
    if (watch->conn && rlk_conn_moved(watch->conn)) {
        rlk_conn_kill(watch->conn, RLK_FAIL_NOT_SENT, "the server is no longer a master");
        drop_conn(target, now);
    }
    if (watch->conn)
        serve_conn(target, now);
    if (is_own(target))
        due = step_client(target, now);
    bool need_conn = watch->wanted, missed = need_conn && !rlk_renewer_ready(watch);
    watch->wanted = false;
    if (need_conn && !watch->conn && now >= watch->retry_at)
        open_conn(target, now);
    /* rule: P18 */
    if (missed && rlk_route_is_cluster(&client->route) && watch->down_since != 0 &&
        now - watch->down_since > RELOAD_AFTER_MS * RLK_NS_PER_MS)
        rlk_cluster_reload(client->route.cluster);
    rlk_renewer_wait(target, now);
    /* Sends, and handles replies that were read meanwhile, because poll does not
     * report them any more. */
    if (watch->conn &&
        (watch->opening || !rlk_renewer_ready(watch) || rlk_conn_unsent(watch->conn) > 0))
        serve_conn(target, now);
    if (need_conn && !watch->conn && watch->retry_at < due)
        due = watch->retry_at;
    int64_t wait_at = rlk_renewer_wait_due(target);
    if (wait_at < due)
        due = wait_at;
    if (client->peer_watch.answered || (missed && rlk_renewer_ready(watch)))
        due = 0; /* the work that follows from the replies */
    if (watch->conn) {
        int64_t conn_due = rlk_conn_due(watch->conn);
        if (conn_due < due)
            due = conn_due;
        if (watch->op_deadline < due)
            due = watch->op_deadline;
    }
    return due;
}

/* The client closes: requests in flight are abandoned. */
static void left(struct rlk_loop_member *member)
{
    struct rlk_target *target = target_of(member);
    struct rlock_client *client = target->client;
    if (target->watch.conn)
        drop_conn(target, rlk_clock_boot());
    if (!is_own(target))
        return;
    if (client->route.cluster)
        rlk_cluster_load_stop(client->route.cluster);
    rlk_peer_watch_stop(client);
}
