/* SPDX-License-Identifier: Apache-2.0 */
/* A script with a WAIT behind it: the answer "held" counts when enough replicas have
 * confirmed what the script wrote (P11, P12). Thread: any. Blocks: network. */
#include "net/script_impl.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/probe.h"
#include "net/pool.h"
#include "net/server_error.h"

#include <errno.h>
#include <stdio.h>

enum {
    MOST_MS = 200, /* a WAIT lasts this long at most: not all answers need it, and others
                      may queue for the connection */
    PATIENCE_MS = 200, /* how long a connection is kept that others wait for: at least, */
    PATIENCE_MAX_MS = 2000, /* and at most */
    PART = 4,      /* this part of the time (1/4) is for the way there and back, */
    LEAST_PART = 3 /* but a WAIT lasts for this part (1/3) at least */
};

/* When a WAIT was sent, and for how long the server was to wait; ns. */
struct sent_wait {
    int64_t sent, ns;
};

/* Writes a WAIT whose answer is to come before `until`. With little time left it may come
 * later: a server is only sometimes late (confirm.h). */
static struct sent_wait write_wait(struct rlk_confirm_command *command,
                                   const struct rlk_confirm *wait, int64_t until)
{
    int64_t now = rlk_clock_boot(), left = until - now;
    int64_t late = RLK_CONFIRM_LATE_MS * RLK_NS_PER_MS;
    struct sent_wait w = { now, left - (left / PART > late ? left / PART : late) };

    if (w.ns < left / LEAST_PART)
        w.ns = left / LEAST_PART;
    if (w.ns > MOST_MS * RLK_NS_PER_MS)
        w.ns = MOST_MS * RLK_NS_PER_MS;
    rlk_confirm_write(command, wait, w.ns);
    return w;
}

/* Sends the script and the first WAIT. When the answer is DONE, its reply is replies[0].
 * In any case replies[1] is the caller's; NULL: it did not come. */
static struct sent_wait call(struct rlk_conn *conn, const struct rlk_request *req,
                             bool with_text, const struct rlk_confirm *wait,
                             int64_t deadline, struct rlk_answer *answer,
                             struct rlk_reply *replies[2])
{
    struct rlk_confirm_command command;
    int64_t sent = 0;

    RLK_PROBE1(request, rlk_scripts[req->script].name);
    struct sent_wait w = write_wait(&command, wait, deadline);
    replies[0] = replies[1] = NULL;
    enum rlk_failure failure =
        rlk_conn_call_pair(conn, req, with_text, &command, deadline, replies, &sent);
    rlk_script_clear_answer(answer, sent);
    if (replies[0])
        failure = RLK_FAIL_NONE; /* also if only the second one is missing */
    rlk_script_sort_reply(conn, req, with_text ? "EVAL" : "EVALSHA", failure, replies[0],
                          answer);
    answer->loaded = with_text;
    return w;
}

/* Whether the answer gives the caller a hold. */
static bool gives_hold(const struct rlk_answer *answer)
{
    enum rlk_what what = answer->fate.what;

    return answer->outcome == RLK_DONE &&
           (what == RLK_HELD || what == RLK_SHARED || what == RLK_YOURS);
}

/* The server has the hold, but may lose it. A refused WAIT counts as a refused request.
 */
static void doubt(struct rlk_conn *conn, enum rlk_confirm_result result, int code,
                  const char *text, struct rlk_answer *answer)
{
    bool refused = result == RLK_CONFIRM_REFUSED;

    answer->outcome = refused ? RLK_REFUSED : RLK_UNKNOWN;
    answer->code = code;
    answer->unconfirmed = result == RLK_CONFIRM_FEW;
    rlk_error_set(code, "%s", text);
    if (result == RLK_CONFIRM_REPLICA)
        rlk_conn_leave(conn, text);
}

/* Sets by->patience, within its bounds. Of two threads that do so at once one may lose.
 */
static void set_patience(const struct rlk_script_confirm *by, int64_t ns)
{
    if (ns < PATIENCE_MS * RLK_NS_PER_MS)
        ns = PATIENCE_MS * RLK_NS_PER_MS;
    if (ns > PATIENCE_MAX_MS * RLK_NS_PER_MS)
        ns = PATIENCE_MAX_MS * RLK_NS_PER_MS;
    if (ns != *by->patience)
        *by->patience = ns;
}

/* Whether the thread has to let others have its connection. If that comes too early each
 * time, nobody gets a lock, because a repeated request writes again, and replicas have to
 * confirm that. So each time is longer than the one before, until replicas confirm. */
static bool must_yield(const struct rlk_script_confirm *by, int64_t since)
{
    bool yields =
        rlk_pool_waiter_count(by->pool) > 0 && rlk_clock_boot() - since >= *by->patience;

    if (yields)
        set_patience(by, 2 * *by->patience);
    return yields;
}

/* Whether another WAIT is worth while: there is time for it, and the server has waited
 * when it was asked to. */
static bool may_wait(struct sent_wait last, int64_t until)
{
    int64_t now = rlk_clock_boot();

    return until - now >= RLK_CONFIRM_LEAST_MS * RLK_NS_PER_MS &&
           now - last.sent >= last.ns / 2;
}

/* Waits until enough replicas have confirmed. `w`: the first WAIT; `reply`: that to it.
 * No longer than half of the lease: a repeated request then raises it again. */
static void confirm(struct rlk_conn *conn, const struct rlk_script_confirm *by,
                    struct sent_wait w, int64_t deadline, struct rlk_reply *reply,
                    struct rlk_answer *answer)
{
    int64_t half = answer->sent + answer->fate.remaining_ms * (RLK_NS_PER_MS / 2);
    int64_t until = half < deadline ? half : deadline;
    enum rlk_confirm_result result = RLK_CONFIRM_FEW;
    struct rlk_confirm_command again;
    char text[RLK_SERVER_ERROR_SIZE];
    int64_t sent;
    int code = ENOTCONN;

    /* rule: P12 */
    if (!reply)
        snprintf(text, sizeof(text), "%s", rlk_conn_error_text(conn));
    while (reply) {
        result = rlk_confirm_read(by->wait, reply, text, sizeof(text), &code);
        rlk_reply_free(reply);
        reply = NULL;
        if (result == RLK_CONFIRM_ENOUGH) {
            set_patience(by, *by->patience / 2);
            return;
        }
        if (result != RLK_CONFIRM_FEW || !may_wait(w, until) ||
            must_yield(by, answer->sent))
            break;
        w = write_wait(&again, by->wait, until);
        if (rlk_conn_call_behind(conn, again.argc, again.argv, again.len, deadline,
                                 &reply, &sent) != RLK_FAIL_NONE)
            break;
    }
    doubt(conn, result, code, text, answer);
}

void rlk_script_confirm(struct rlk_conn *conn, const struct rlk_script_confirm *by,
                        int64_t deadline, struct rlk_answer *answer)
{
    struct rlk_confirm_command command;
    struct rlk_reply *reply = NULL;
    int64_t sent;

    if (!gives_hold(answer))
        return;
    struct sent_wait w = write_wait(&command, by->wait, deadline);
    rlk_conn_call_behind(conn, command.argc, command.argv, command.len, deadline, &reply,
                         &sent);
    confirm(conn, by, w, deadline, reply, answer);
}

void rlk_script_call_confirmed(struct rlk_conn *conn, const struct rlk_request *req,
                               const struct rlk_script_confirm *by, int64_t deadline,
                               struct rlk_answer *ret_answer)
{
    struct rlk_reply *replies[2];

    /* rule: P11 */
    struct sent_wait w = call(conn, req, false, by->wait, deadline, ret_answer, replies);
    if (ret_answer->outcome == RLK_NOSCRIPT) {
        rlk_reply_free(replies[1]);
        w = call(conn, req, true, by->wait, deadline, ret_answer, replies);
        if (ret_answer->outcome == RLK_NOSCRIPT) {
            ret_answer->outcome = RLK_REFUSED;
            rlk_error_set(ret_answer->code,
                          "the server does not know a script that it just ran");
        }
    }
    if (ret_answer->outcome == RLK_DONE)
        rlk_script_take(conn, req, replies[0], ret_answer);
    if (gives_hold(ret_answer))
        confirm(conn, by, w, deadline, replies[1], ret_answer);
    else
        rlk_reply_free(replies[1]);
}
