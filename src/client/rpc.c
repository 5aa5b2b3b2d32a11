/* SPDX-License-Identifier: Apache-2.0 */
/* One round trip of each lock script on a connection of the pool. No state. Thread:
 * callers'. Locks: none may be held. Blocks: network. */
#include "client/rpc.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/probe.h"
#include "net/server_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* No connection could be borrowed; nothing was sent. */
static void say_why(int rc, struct rlk_answer *answer)
{
    *answer = (struct rlk_answer){
        .outcome = rc == EACCES || rc == EPROTO || rc == ENOMEM ? RLK_REFUSED : RLK_RETRY,
        .code = rc,
    };
}

/* Borrows a connection. NULL: the answer says why there is none. */
static struct rlk_conn *borrow(struct rlock_client *client, int64_t until,
                               struct rlk_answer *answer)
{
    struct rlk_conn *conn = NULL;
    int rc = rlk_pool_get(client->pool, until, &conn);

    if (rc != 0)
        say_why(rc, answer);
    return conn;
}

/* The same for a request that gives back a lock. */
static struct rlk_conn *borrow_first(struct rlock_client *client, int64_t until,
                                     struct rlk_answer *answer)
{
    struct rlk_conn *conn = NULL;
    int rc = rlk_pool_get_first(client->pool, until, &conn);

    if (rc != 0)
        say_why(rc, answer);
    return conn;
}

/* Gives a connection back at `now`. */
static void put_at(struct rlock_client *client, struct rlk_conn *conn, int64_t now)
{
    bool moved = rlk_conn_state(conn) == RLK_CONN_DEAD && rlk_conn_moved(conn);

    rlk_pool_put_at(client->pool, conn, now);
    if (moved)
        rlk_subscriber_look(client);
}

void rlk_rpc_put(struct rlock_client *client, struct rlk_conn *conn)
{
    put_at(client, conn, rlk_clock_boot());
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

/* The round trip is over: counts it, and gives the connection back. A thread that stood
 * still may read the reply long after it came: what it says of the server is true for
 * `until` at the latest, by when it would have given up. */
static void finish(struct rlock_client *client, struct rlk_conn *conn,
                   const struct rlk_request *req, int64_t until,
                   struct rlk_answer *answer)
{
    int64_t now = rlk_clock_boot();

    if (is_of_a_write(answer))
        rlk_conn_prove(conn);
    answer->moves = rlk_conn_moves_seen(conn);
    if (now > until) {
        now = until;
        if (answer->server_us != 0)
            rlk_conn_forget_time(conn);
    }
    count_answer(client, rlk_scripts[req->script].name, answer, now);
    put_at(client, conn, now);
}

/* Runs a script whose answer can move D: replicas have to confirm it, if the client wants
 * that. */
static void call(struct rlock_client *client, struct rlk_conn *conn,
                 const struct rlk_request *req, int64_t until, struct rlk_answer *answer)
{
    const struct rlk_script_confirm by = { &client->config.wait, client->pool,
                                           &client->patience };

    /* rule: P11 */
    if (rlk_confirm_is_on(by.wait))
        rlk_script_call_confirmed(conn, req, &by, until, answer);
    else
        rlk_script_call(conn, req, until, answer);
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
    struct rlk_request req RLK_UNINITIALIZED;
    struct rlk_conn *conn = borrow(client, until, answer);

    /* rule: T3 */
    if (!conn)
        return;
    /* Server time: the request must not run after this (T3). The clock's offset is an
     * upper bound, so the limit is late by a round trip at most; markers last longer than
     * that. */
    args->not_after_us = rlk_conn_clock_offset_us(conn) + until / 1000;
    rlk_script_args_acquire(&req, client, args);
    call(client, conn, &req, until, answer);
    finish(client, conn, &req, until, answer);
}

void rlk_rpc_release(struct rlock_client *client, const struct rlk_hold *hold, bool mark,
                     int64_t until, struct rlk_answer *answer)
{
    struct rlk_request req RLK_UNINITIALIZED;
    struct rlk_conn *conn = borrow_first(client, until, answer);

    if (conn) {
        rlk_script_args_release(&req, client, hold,
                                mark ? rlk_client_marker_ms(client) : 0);
        rlk_script_call(conn, &req, until, answer);
        finish(client, conn, &req, until, answer);
    }
    put_off(answer);
}

void rlk_rpc_cancel(struct rlock_client *client, const struct rlk_hold *hold,
                    int64_t until, struct rlk_answer *answer)
{
    const struct rlk_script_confirm by = { &client->config.wait, client->pool,
                                           &client->patience };
    struct rlk_request req RLK_UNINITIALIZED;
    struct rlk_conn *conn = borrow_first(client, until, answer);

    if (!conn)
        return;
    rlk_script_args_cancel(&req, client, hold, rlk_client_marker_ms(client));
    rlk_script_call(conn, &req, until, answer);
    /* rule: P11 */
    if (rlk_confirm_is_on(by.wait))
        rlk_script_confirm(conn, &by, until, answer);
    finish(client, conn, &req, until, answer);
}

void rlk_rpc_renew(struct rlock_client *client, const struct rlk_hold *hold,
                   long lease_ms, struct rlk_script_args_renew with, int64_t until,
                   struct rlk_answer *answer)
{
    struct rlk_request req RLK_UNINITIALIZED;
    struct rlk_conn *conn = borrow(client, until, answer);

    if (!conn)
        return;
    rlk_script_args_renew(&req, client, hold, lease_ms, with);
    if (with.looks)
        rlk_script_call(conn, &req, until, answer);
    else
        call(client, conn, &req, until, answer);
    finish(client, conn, &req, until, answer);
}

void rlk_rpc_downgrade(struct rlock_client *client, const struct rlk_hold *hold,
                       long lease_ms, int64_t until, struct rlk_answer *answer)
{
    struct rlk_request req RLK_UNINITIALIZED;
    struct rlk_conn *conn = borrow(client, until, answer);

    if (conn) {
        rlk_script_args_downgrade(&req, client, hold, lease_ms);
        rlk_script_call(conn, &req, until, answer);
        finish(client, conn, &req, until, answer);
    }
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
        struct rlk_conn *conn = borrow(client, until, &answer);
        if (!conn)
            return;
        /* the request names no waiter of this process */
        rlk_script_args_refresh(&req, client, kind, name, name_len, prefer, after, "", 0);
        rlk_script_call_raw(conn, &req, until, &answer, &reply);
        if (answer.outcome == RLK_DONE) {
            bool loaded = answer.loaded;
            rlk_script_decode(conn, &rlk_scripts[req.script], reply, answer.sent, &answer,
                              NULL, 0, NULL, 0);
            answer.loaded = loaded;
            answer.answered = true;
            rlk_reply_free(reply);
        }
        finish(client, conn, &req, until, &answer);
        after = answer.outcome == RLK_DONE ? answer.more : (struct rlk_cursor){ 0 };
    }
}

void rlk_rpc_request(struct rlock_client *client, const struct rlk_request *req,
                     int64_t until, struct rlk_answer *ret_answer,
                     struct rlk_reply **ret_raw)
{
    int64_t started = rlk_clock_boot();
    /* a broken connection shows at once: a few tries are not a storm */
    for (int tries = 0; tries < 3; tries++) {
        struct rlk_conn *conn = borrow(client, until, ret_answer);
        if (!conn)
            return;
        if (ret_raw)
            rlk_script_call_raw(conn, req, until, ret_answer, ret_raw);
        else
            rlk_script_call(conn, req, until, ret_answer);
        bool dead = rlk_conn_state(conn) == RLK_CONN_DEAD;
        finish(client, conn, req, until, ret_answer);
        if (ret_answer->outcome == RLK_DONE || ret_answer->outcome == RLK_REFUSED ||
            !dead || rlk_clock_boot() - started > (until - started) / 2)
            return;
    }
}

int rlk_rpc_command(struct rlock_client *client, int argc, const char *const *argv,
                    int64_t until, struct rlk_answer *ret_answer,
                    struct rlk_reply **ret_reply)
{
    size_t len[RLK_RPC_WORDS_MAX];
    struct rlk_conn *conn;

    for (int i = 0; i < argc; i++)
        len[i] = strlen(argv[i]);
    int rc = rlk_pool_get(client->pool, until, &conn);
    if (rc != 0)
        return rc;
    rlk_script_command(conn, argc, argv, len, until, ret_answer, ret_reply);
    count_answer(client, argv[0], ret_answer, rlk_clock_boot());
    rlk_rpc_put(client, conn);
    return ret_answer->outcome == RLK_DONE ? 0 : ret_answer->code;
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
    int rc = rlk_rpc_command(client, command.argc, command.argv, until, &answer, &reply);
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
