/* SPDX-License-Identifier: Apache-2.0 */
/* One round trip of each lock script on a connection of the pool. No state. Thread:
 * callers'. Locks: none may be held. Blocks: network. */
#include "client/rpc.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/probe.h"
#include "net/redirect.h"
#include "net/server_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A request on its way to a server. */
struct visit {
    struct rlock_client *client;
    struct rlk_target *target;
    struct rlk_conn *conn;
    int64_t until;
    unsigned changes; /* of the cluster's map, before it was asked */
    int redirects;    /* how many were followed */
    bool asking;      /* the node is getting the hash slot */
    bool alone;       /* it names the lock's own key and no other */
    bool stays;       /* it is made at the node that has the hash slot, and no other */
};

/* No connection could be borrowed; nothing was sent. */
static void say_why(int rc, struct rlk_answer *answer)
{
    *answer = (struct rlk_answer){
        .outcome = rc == EACCES || rc == EPROTO || rc == ENOMEM ? RLK_REFUSED : RLK_RETRY,
        .code = rc,
    };
}

/* rule: P18 */
/* Finds the node of the name (NULL: any node), waits for it if none is known, and makes
 * the two threads know it. Returns 0, or the code for the caller. */
static __attribute__((noinline)) int find_node(struct visit *v, const char *name,
                                               size_t name_len)
{
    struct rlk_route *route = &v->client->route;

    if (v->asking)
        v->target = rlk_cluster_take_importer(route->cluster, name, name_len);
    v->asking = v->asking && v->target;
    while (!v->asking) {
        v->changes = rlk_cluster_changes(route->cluster);
        v->target = rlk_cluster_take(route->cluster, name, name_len);
        if (!rlk_route_is_nowhere(route, v->target))
            break;
        int rc = rlk_cluster_await(route->cluster, name, name_len, v->until);
        if (rc != 0)
            return rc;
    }
    rlk_cluster_use(v->target);
    return 0;
}

/* No connection to the node could be borrowed. */
static __attribute__((noinline)) void miss(struct visit *v, int rc)
{
    struct rlk_route *route = &v->client->route;

    if (rc == ENOTCONN && !rlk_route_is_nowhere(route, v->target))
        rlk_cluster_failed(v->target);
    rlk_cluster_put(v->target);
    if (rc == ENOTCONN)
        rlk_cluster_reload(route->cluster);
}

/* Borrows a connection to the server of the lock. False: the answer says why there is
 * none. `goes_first`: the request gives back a lock. */
static inline bool begin(struct visit *v, const char *name, size_t name_len,
                         bool goes_first, struct rlk_answer *answer)
{
    int rc = 0;

    if (rlk_route_is_cluster(&v->client->route))
        rc = find_node(v, name, name_len);
    else
        v->target = &v->client->route.target;
    if (rc == 0)
        rc = goes_first ? rlk_pool_get_first(v->target->pool, v->until, &v->conn)
                        : rlk_pool_get(v->target->pool, v->until, &v->conn);
    if (rc == 0)
        return true;
    say_why(rc, answer);
    if (rlk_route_is_cluster(&v->client->route))
        miss(v, rc);
    return false;
}

static inline struct visit visit_to(struct rlock_client *client, int64_t until)
{
    return (struct visit){ .client = client, .until = until };
}

/* Gives a connection back at `now`. */
static void put_at(struct rlk_target *target, struct rlk_conn *conn, int64_t now)
{
    struct rlock_client *client = target->client;
    bool moved = rlk_conn_state(conn) == RLK_CONN_DEAD && rlk_conn_moved(conn);

    rlk_pool_put_at(target->pool, conn, now);
    if (rlk_route_is_cluster(&client->route))
        rlk_cluster_put(target);
    if (moved)
        rlk_subscriber_look(client);
}

void rlk_rpc_put(struct rlk_target *target, struct rlk_conn *conn)
{
    put_at(target, conn, rlk_clock_boot());
}

/* Counts what came of a request. `what`: the script's name, or the command's. */
static void count_answer(struct rlock_client *client, const char *what,
                         const struct rlk_answer *answer, int64_t now)
{
    if (answer->outcome == RLK_UNKNOWN)
        RLK_COUNT(client->counters.unknown_outcomes);
    if (answer->loaded)
        RLK_COUNT(client->counters.script_loads);
    if (answer->outcome == RLK_REFUSED && answer->answered)
        RLK_COUNT(client->counters.refusals);
    if (answer->answered) {
        RLK_COUNT(client->counters.round_trips);
        RLK_PROBE2(reply, what, RLK_PROBE_US(now - answer->sent));
        rlk_client_answered(client, answer->sent, now);
    }
}

/* Whether the reply is one that no replica gives. */
static bool is_of_a_write(const struct rlk_answer *answer)
{
    return answer->outcome == RLK_DONE &&
           (answer->fate.what == RLK_HELD || answer->fate.what == RLK_QUEUED ||
            answer->fate.what == RLK_RELEASED);
}

enum { REDIRECTS_MAX = 1 };

/* rule: P18, P19 */
/* The node of a cluster did not execute the request, or did not answer. Returns whether
 * the request is to be made again at once: another node has the lock, or is getting it.
 */
static __attribute__((noinline)) bool follow(struct visit *v,
                                             const struct rlk_answer *answer)
{
    const struct rlk_redirect *redirect =
        answer->redirected ? rlk_conn_redirect(v->conn) : NULL;
    bool asks = redirect && redirect->kind == RLK_REDIRECT_ASK;

    if (!answer->answered)
        rlk_cluster_failed(v->target);
    if (redirect && !asks)
        rlk_cluster_moved(v->target, redirect);
    else if (asks)
        rlk_cluster_asked(v->target, redirect);
    else if (!answer->split)
        rlk_cluster_reload(v->client->route.cluster);
    if (!redirect || v->asking || (asks && v->stays) || v->redirects++ >= REDIRECTS_MAX)
        return false;
    v->asking = asks;
    return true;
}

/* The round trip is over: counts it, and gives the connection back. A thread that stood
 * still may read the reply long after it came: what it says of the server is true for
 * `until` at the latest, by when it would have given up. Returns whether the request is
 * to be made again at once. */
static bool finish(struct visit *v, const struct rlk_request *req,
                   struct rlk_answer *answer)
{
    int64_t now = rlk_clock_boot();
    struct rlk_target *target = v->target;
    bool in_cluster = rlk_route_is_cluster(&v->client->route), again = false;

    if (is_of_a_write(answer))
        rlk_conn_prove(v->conn);
    answer->moves = in_cluster ? v->changes : rlk_conn_moves_seen(v->conn);
    if (now > v->until) {
        now = v->until;
        if (answer->server_us != 0)
            rlk_conn_forget_time(v->conn);
    }
    count_answer(v->client, rlk_scripts[req->script].name, answer, now);
    if (in_cluster && (answer->outcome == RLK_RETRY || answer->outcome == RLK_UNKNOWN))
        again = follow(v, answer);
    put_at(target, v->conn, now);
    return again;
}

/* rule: P20 */
/* Whether the request, a renewal or a release of the hold, is to be made again with one
 * key, at the node that has the hash slot. Not of a writer that may be a reader already:
 * the watchdog finds out. Locks: takes the registry's mu. */
static __attribute__((noinline)) bool go_alone(struct visit *v,
                                               const struct rlk_hold *hold, bool ends)
{
    struct rlk_registry *reg = &v->client->registry;

    rlk_registry_lock(reg);
    bool may = ends ? rlk_hold_may_end_alone(hold) : !hold->server.downgrade;
    rlk_registry_unlock(reg);
    v->alone = may;
    v->asking = false;
    v->redirects = 0;
    return may;
}

static void call_script(struct visit *v, const struct rlk_request *req,
                        const struct rlk_script_confirm *by, struct rlk_answer *answer)
{
    if (!v->asking) {
        rlk_script_call(v->conn, req, by, v->until, answer);
        return;
    }
    rlk_script_call_asking(v->conn, req, v->until, answer);
    if (by)
        rlk_script_confirm(v->conn, by, v->until, answer);
}

/* For a script whose answer can move D: replicas have to confirm it, if the client wants
 * that. NULL: it does not. */
static const struct rlk_script_confirm *confirm_by(struct rlk_target *target,
                                                   struct rlk_script_confirm *by)
{
    const struct rlk_confirm *wait = &target->client->config.wait;

    /* rule: P11 */
    if (!rlk_confirm_is_on(wait))
        return NULL;
    *by = (struct rlk_script_confirm){ wait, target->pool, &target->patience };
    return by;
}

/* Without memory, a request that has to be made in any case is put off, not refused. */
static void put_off(struct rlk_answer *answer)
{
    if (answer->outcome == RLK_REFUSED && answer->code == ENOMEM)
        answer->outcome = RLK_RETRY;
}

void rlk_rpc_acquire(struct rlock_client *client, struct rlk_script_args_acquire *args,
                     int64_t until, struct rlk_answer *answer)
{
    const struct rlk_lock *lock = args->hold->lock;
    struct rlk_script_confirm by;
    struct rlk_request req RLK_UNINITIALIZED;
    struct visit v = visit_to(client, until);

    /* rule: T3 */
    do {
        if (!begin(&v, lock->name, lock->name_len, false, answer))
            return;
        /* Server time: the request must not run after this (T3). The clock's offset is an
         * upper bound, so the limit is late by a round trip at most; markers last longer
         * than that. */
        args->not_after_us = rlk_conn_clock_offset_us(v.conn) + until / 1000;
        rlk_script_args_acquire(&req, client, args);
        call_script(&v, &req, confirm_by(v.target, &by), answer);
    } while (finish(&v, &req, answer));
}

/* One of the requests with one key that renew a reader. `proves`: replicas have to
 * confirm it. */
static void take_step(struct rlock_client *client, const struct rlk_lock *lock,
                      const struct rlk_request *req, bool proves, int64_t until,
                      struct rlk_answer *answer)
{
    struct rlk_script_confirm by;
    struct visit v = visit_to(client, until);

    do {
        if (!begin(&v, lock->name, lock->name_len, false, answer))
            return;
        call_script(&v, req, proves ? confirm_by(v.target, &by) : NULL, answer);
    } while (finish(&v, req, answer));
}

/* rule: P20 */
/* Releases a robust hold with one key at a time. Its mark ends while it has the lock,
 * whose lease is raised before: nobody takes the mark for a death, and none is
 * overlooked. */
static __attribute__((noinline)) void release_robust(struct rlock_client *client,
                                                     const struct rlk_hold *hold,
                                                     int64_t until,
                                                     struct rlk_answer *answer)
{
    const struct rlk_lock *lock = hold->lock;
    struct rlk_request req RLK_UNINITIALIZED;
    int64_t half = rlk_clock_boot() + hold->lease_ms * (RLK_NS_PER_MS / 2);
    struct rlk_answer step;

    if (!rlk_script_args_unmark(&req, client, hold))
        return;
    if (until > half)
        until = half;
    rlk_script_args_raise(&req, client, hold, hold->lease_ms);
    take_step(client, lock, &req, false, until, &step);
    if (step.outcome != RLK_DONE || step.fate.what != RLK_HELD)
        return; /* what that means for the mark is for the script with all keys */
    rlk_script_args_unmark(&req, client, hold);
    take_step(client, lock, &req, false, until, &step);
    if (step.outcome != RLK_DONE)
        return;
    rlk_script_args_drop(&req, client, hold);
    take_step(client, lock, &req, false, until, answer);
}

void rlk_rpc_release(struct rlock_client *client, const struct rlk_hold *hold, bool mark,
                     int64_t until, struct rlk_answer *answer)
{
    const struct rlk_lock *lock = hold->lock;
    struct rlk_request req RLK_UNINITIALIZED;
    struct visit v = visit_to(client, until);
    bool again;

    do {
        if (!begin(&v, lock->name, lock->name_len, true, answer))
            break;
        if (v.alone && hold->reading)
            rlk_script_args_drop_reader(&req, client, hold);
        else if (v.alone)
            rlk_script_args_drop(&req, client, hold);
        else
            rlk_script_args_release(&req, client, hold,
                                    mark ? rlk_client_marker_ms(client) : 0);
        call_script(&v, &req, NULL, answer);
        again = finish(&v, &req, answer);
    } while (again || (answer->split && !v.alone && !mark && go_alone(&v, hold, true)));
    if (answer->split && !v.alone && !mark && rlk_id_robust(&hold->id))
        release_robust(client, hold, until, answer);
    put_off(answer);
}

void rlk_rpc_cancel(struct rlock_client *client, const struct rlk_hold *hold,
                    int64_t until, struct rlk_answer *answer)
{
    const struct rlk_lock *lock = hold->lock;
    struct rlk_script_confirm space;
    struct rlk_request req RLK_UNINITIALIZED;
    struct visit v = visit_to(client, until);

    do {
        if (!begin(&v, lock->name, lock->name_len, true, answer))
            return;
        const struct rlk_script_confirm *by = confirm_by(v.target, &space);
        rlk_script_args_cancel(&req, client, hold, rlk_client_marker_ms(client));
        call_script(&v, &req, NULL, answer);
        if (by)
            rlk_script_confirm(v.conn, by, until, answer);
    } while (finish(&v, &req, answer));
}

/* rule: P20 */
/* Renews a reader with one key at a time: the reading, its end, the reading again; see
 * renewer_reads.c. */
static __attribute__((noinline)) void renew_in_steps(struct rlock_client *client,
                                                     const struct rlk_hold *hold,
                                                     long lease_ms, int64_t until,
                                                     struct rlk_answer *answer)
{
    const struct rlk_script_args_renew none = { .tell = false };
    const struct rlk_lock *lock = hold->lock;
    char name[RLK_SCRIPT_ARGS_RENEWAL_SIZE];
    struct rlk_request req RLK_UNINITIALIZED;
    struct rlk_answer raised;

    rlk_script_args_reading(&req, client, lock, 0, 0);
    take_step(client, lock, &req, false, until, answer);
    if (answer->outcome != RLK_DONE || answer->fate.what != RLK_SHARED)
        return;
    int64_t since_us = answer->fate.ticket;
    size_t len = rlk_script_args_renewal_write(name, client, hold, lease_ms, none);
    rlk_script_args_renewals(&req, client, lock, true, name, len);
    take_step(client, lock, &req, true, until, &raised);
    if (raised.outcome == RLK_DONE && raised.fate.what == RLK_HELD) {
        int64_t ms = raised.fate.remaining_ms;
        rlk_script_args_reading(&req, client, lock, since_us, ms);
        take_step(client, lock, &req, true, until, answer);
        if (answer->outcome == RLK_DONE && answer->fate.what == RLK_SHARED) {
            answer->outcome = RLK_RETRY; /* another reading has begun */
            answer->code = rlk_error_set(ENOTCONN, "the hash slot is being moved");
        }
        if (answer->outcome != RLK_DONE || answer->fate.what != RLK_HELD)
            return;
        raised.fate.token = answer->fate.token;
        if (answer->fate.remaining_ms < ms)
            raised.fate.remaining_ms = answer->fate.remaining_ms;
    }
    *answer = raised;
}

void rlk_rpc_renew(struct rlock_client *client, const struct rlk_hold *hold,
                   long lease_ms, struct rlk_script_args_renew with, int64_t until,
                   struct rlk_answer *answer)
{
    const struct rlk_lock *lock = hold->lock;
    struct rlk_script_confirm by;
    struct rlk_request req RLK_UNINITIALIZED;
    struct visit v = visit_to(client, until);

    /* with one key, the request does nothing of what is asked for besides */
    bool plain = !with.looks && !with.tokens && with.mark == 0, again, alone;

    do {
        if (!begin(&v, lock->name, lock->name_len, false, answer))
            return;
        if (v.alone)
            rlk_script_args_raise(&req, client, hold, lease_ms);
        else
            rlk_script_args_renew(&req, client, hold, lease_ms, with);
        call_script(&v, &req, with.looks ? NULL : confirm_by(v.target, &by), answer);
        again = finish(&v, &req, answer);
        alone = !again && plain && answer->split && !v.alone && go_alone(&v, hold, false);
    } while (again || (alone && !hold->reading));
    if (alone)
        renew_in_steps(client, hold, lease_ms, until, answer);
}

void rlk_rpc_downgrade(struct rlock_client *client, const struct rlk_hold *hold,
                       long lease_ms, int64_t until, struct rlk_answer *answer)
{
    const struct rlk_lock *lock = hold->lock;
    struct rlk_request req RLK_UNINITIALIZED;
    struct visit v = visit_to(client, until);

    do {
        if (!begin(&v, lock->name, lock->name_len, false, answer))
            break;
        rlk_script_args_downgrade(&req, client, hold, lease_ms);
        call_script(&v, &req, NULL, answer);
    } while (finish(&v, &req, answer));
    put_off(answer);
}

/* A script looks at a limited number of waiters; another one goes on behind them (T11).
 * The loop ends, because each time a queue has become shorter, or the ticket has
 * grown. */
void rlk_rpc_go_on(struct rlock_client *client, int kind, const char *name,
                   size_t name_len, int prefer, struct rlk_cursor after, int64_t until)
{
    while (rlk_cursor_set(after)) {
        struct rlk_answer answer;
        struct rlk_request req RLK_UNINITIALIZED;
        struct rlk_reply *reply = NULL;
        struct visit v = visit_to(client, until);
        if (!begin(&v, name, name_len, false, &answer))
            return;
        /* the request names no waiter of this process */
        rlk_script_args_refresh(&req, client, kind, name, name_len, prefer, after, "", 0);
        rlk_script_call_raw(v.conn, &req, until, &answer, &reply);
        if (answer.outcome == RLK_DONE) {
            bool loaded = answer.loaded;
            rlk_script_decode(v.conn, &rlk_scripts[req.script], reply, answer.sent,
                              &answer, NULL, 0, NULL, 0);
            answer.loaded = loaded;
            answer.answered = true;
            rlk_reply_free(reply);
        }
        finish(&v, &req, &answer);
        after = answer.outcome == RLK_DONE ? answer.more : (struct rlk_cursor){ 0 };
    }
}

void rlk_rpc_request(struct rlock_client *client, const struct rlk_request *req,
                     int64_t until, struct rlk_answer *ret_answer,
                     struct rlk_reply **ret_raw)
{
    int64_t started = rlk_clock_boot();
    struct visit v = visit_to(client, until);
    /* Nothing but an inspection has such a reply. It needs more keys than the node has
     * that is getting the hash slot. */
    v.stays = ret_raw != NULL;
    /* a broken connection shows at once: a few tries are not a storm */
    for (int tries = 0; tries < 3; tries++) {
        if (!begin(&v, req->name, req->name_len, false, ret_answer))
            return;
        if (ret_raw)
            rlk_script_call_raw(v.conn, req, until, ret_answer, ret_raw);
        else
            call_script(&v, req, NULL, ret_answer);
        bool dead = rlk_conn_state(v.conn) == RLK_CONN_DEAD;
        bool again = finish(&v, req, ret_answer);
        if (ret_answer->outcome == RLK_DONE || ret_answer->outcome == RLK_REFUSED ||
            (!dead && !again) || rlk_clock_boot() - started > (until - started) / 2)
            return;
    }
}

/* Runs a command on the connection, and gives that back. */
static int run_command(struct visit *v, int argc, const char *const *argv,
                       struct rlk_answer *ret_answer, struct rlk_reply **ret_reply)
{
    size_t len[RLK_RPC_WORDS_MAX];

    for (int i = 0; i < argc; i++)
        len[i] = strlen(argv[i]);
    rlk_script_command(v->conn, argc, argv, len, v->until, ret_answer, ret_reply);
    count_answer(v->client, argv[0], ret_answer, rlk_clock_boot());
    rlk_rpc_put(v->target, v->conn);
    return ret_answer->outcome == RLK_DONE ? 0 : ret_answer->code;
}

int rlk_rpc_command(struct rlock_client *client, const char *key, int argc,
                    const char *const *argv, int64_t until, struct rlk_answer *ret_answer,
                    struct rlk_reply **ret_reply)
{
    struct visit v = visit_to(client, until);
    struct rlk_answer why;

    if (!begin(&v, key, key ? strlen(key) : 0, false, &why))
        return why.code;
    return run_command(&v, argc, argv, ret_answer, ret_reply);
}

/* The server did not answer. */
static void note_silence(struct rlk_target *target)
{
    if (!rlk_route_is_cluster(&target->client->route))
        return;
    rlk_cluster_failed(target);
    rlk_cluster_reload(target->client->route.cluster);
}

int rlk_rpc_borrow_at(struct rlk_target *target, int64_t until,
                      struct rlk_conn **ret_conn)
{
    int rc = rlk_pool_get(target->pool, until, ret_conn);

    if (rc == ENOTCONN)
        note_silence(target);
    if (rc == 0 && rlk_route_is_cluster(&target->client->route))
        rlk_cluster_take_again(target);
    return rc;
}

int rlk_rpc_command_at(struct rlk_target *target, int argc, const char *const *argv,
                       int64_t until, struct rlk_answer *ret_answer,
                       struct rlk_reply **ret_reply)
{
    struct visit v = visit_to(target->client, until);

    v.target = target;
    int rc = rlk_rpc_borrow_at(target, until, &v.conn);
    if (rc != 0)
        return rc;
    rc = run_command(&v, argc, argv, ret_answer, ret_reply);
    if (ret_answer->outcome == RLK_UNKNOWN)
        note_silence(target);
    return rc;
}

int rlk_rpc_borrow(struct rlock_client *client, int64_t until,
                   struct rlk_target **ret_target, struct rlk_conn **ret_conn)
{
    struct visit v = visit_to(client, until);
    struct rlk_answer why;

    if (!begin(&v, NULL, 0, false, &why))
        return why.code;
    *ret_target = v.target;
    *ret_conn = v.conn;
    return 0;
}

/* rule: P14 */
int rlk_rpc_check_aof(struct rlock_client *client)
{
    const struct rlk_confirm own = { .aof = 1 };
    int64_t until = rlk_clock_boot() + rlk_client_command_timeout(client);
    char said[RLK_SERVER_ERROR_SIZE];
    struct rlk_confirm_command command;
    struct rlk_answer answer = { .outcome = RLK_RETRY };
    struct rlk_reply *reply = NULL;

    if (!client->config.wait.aof)
        return 0;
    rlk_confirm_write(&command, &own, RLK_NS_PER_MS);
    int rc =
        rlk_rpc_command(client, NULL, command.argc, command.argv, until, &answer, &reply);
    rlk_reply_free(reply);
    snprintf(said, sizeof(said), "%s", rlk_error_message());
    if (rc == EPROTO && answer.answered &&
        rlk_confirm_sort_error(said, strlen(said), &rc) == RLK_CONFIRM_REFUSED)
        return rlk_error_set(ENOTSUP,
                             "waitaof=1 requires WAITAOF (Redis 7.2 or later) and an "
                             "append-only file: %s",
                             said);
    if (rc != ENOTCONN)
        return rc;
    rlk_error_clear(); /* each request will ask the server */
    return 0;
}
