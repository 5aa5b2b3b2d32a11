/* SPDX-License-Identifier: Apache-2.0 */
/* A script with a WAIT behind it: the answer "held" counts when enough replicas have
 * confirmed what the script wrote (P11, P12). Thread: any. Blocks: network. */
#include "net/script_impl.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/probe.h"
#include "net/server_error.h"

#include <errno.h>

enum {
    FIRST_MS = 200, /* the first WAIT lasts this long at most: not all answers need it */
    PART = 4        /* this part of the time (1/4) is for the way there and back */
};

/* When a WAIT was sent, and for how long the server was to wait; ns. */
struct sent_wait {
    int64_t sent, ns;
};

/* Writes a WAIT of `most` ns at most whose answer comes before `until`. */
static struct sent_wait write_wait(struct rlk_confirm_command *command,
                                   const struct rlk_confirm *wait, int64_t until,
                                   int64_t most)
{
    int64_t now = rlk_clock_boot(), left = until - now;
    int64_t late = RLK_CONFIRM_LATE_MS * RLK_NS_PER_MS;
    struct sent_wait w = { now, left - (left / PART > late ? left / PART : late) };

    if (w.ns > most)
        w.ns = most;
    rlk_confirm_write(command, wait, w.ns);
    return w;
}

/* Sends the script and the first WAIT. When the answer is DONE, its reply is replies[0].
 * In any case replies[1] is the caller's, unless it is NULL. */
static struct sent_wait call(struct rlk_conn *conn, const struct rlk_request *req,
                             bool with_text, const struct rlk_confirm *wait,
                             int64_t deadline, struct rlk_answer *answer,
                             struct rlk_reply *replies[2])
{
    struct rlk_confirm_command command;
    int64_t sent = 0;

    RLK_PROBE1(request, rlk_scripts[req->script].name);
    struct sent_wait w = write_wait(&command, wait, deadline, FIRST_MS * RLK_NS_PER_MS);
    replies[0] = replies[1] = NULL;
    enum rlk_failure failure =
        rlk_conn_call_pair(conn, req, with_text, &command, deadline, replies, &sent);
    rlk_script_clear_answer(answer, sent);
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

/* The server has the hold, but may lose it. An error of WAIT itself counts as that of the
 * request. */
static void doubt(struct rlk_conn *conn, enum rlk_confirm_result result, int code,
                  const char *text, struct rlk_answer *answer)
{
    bool refused = result == RLK_CONFIRM_ERROR && code != ENOTCONN;

    answer->outcome = refused ? RLK_REFUSED : RLK_UNKNOWN;
    answer->code = code;
    answer->unconfirmed = result == RLK_CONFIRM_FEW;
    rlk_error_set(code, "%s", text);
    if (result == RLK_CONFIRM_ERROR && !refused) /* it is a replica, or became one */
        rlk_conn_leave(conn, text);
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
static void confirm(struct rlk_conn *conn, const struct rlk_confirm *wait,
                    struct sent_wait w, int64_t deadline, struct rlk_reply *reply,
                    struct rlk_answer *answer)
{
    int64_t half = answer->sent + answer->fate.remaining_ms * (RLK_NS_PER_MS / 2);
    int64_t until = half < deadline ? half : deadline;
    enum rlk_confirm_result result;
    struct rlk_confirm_command again;
    char text[RLK_SERVER_ERROR_SIZE];
    int64_t sent;
    int code = 0;

    /* rule: P12 */
    do {
        result = rlk_confirm_read(wait, reply, text, sizeof(text), &code);
        rlk_reply_free(reply);
        if (result == RLK_CONFIRM_ENOUGH)
            return;
        if (result == RLK_CONFIRM_ERROR || !may_wait(w, until))
            break;
        w = write_wait(&again, wait, until, until);
    } while (rlk_conn_call(conn, again.argc, again.argv, again.len, deadline, &reply,
                           &sent) == RLK_FAIL_NONE);
    doubt(conn, result, code, text, answer);
}

void rlk_script_confirm(struct rlk_conn *conn, const struct rlk_confirm *wait,
                        int64_t deadline, struct rlk_answer *answer)
{
    struct rlk_confirm_command command;
    struct rlk_reply *reply = NULL;
    int64_t sent;

    if (!gives_hold(answer))
        return;
    struct sent_wait w = write_wait(&command, wait, deadline, FIRST_MS * RLK_NS_PER_MS);
    if (rlk_conn_call(conn, command.argc, command.argv, command.len, deadline, &reply,
                      &sent) == RLK_FAIL_NONE)
        confirm(conn, wait, w, deadline, reply, answer);
    else
        doubt(conn, RLK_CONFIRM_FEW, ENOTCONN, rlk_conn_error_text(conn), answer);
}

void rlk_script_call_confirmed(struct rlk_conn *conn, const struct rlk_request *req,
                               const struct rlk_confirm *wait, int64_t deadline,
                               struct rlk_answer *ret_answer)
{
    struct rlk_reply *replies[2];

    /* rule: P11 */
    struct sent_wait w = call(conn, req, false, wait, deadline, ret_answer, replies);
    if (ret_answer->outcome == RLK_NOSCRIPT) {
        rlk_reply_free(replies[1]);
        w = call(conn, req, true, wait, deadline, ret_answer, replies);
        if (ret_answer->outcome == RLK_NOSCRIPT) {
            ret_answer->outcome = RLK_REFUSED;
            rlk_error_set(ret_answer->code,
                          "the server does not know a script that it just ran");
        }
    }
    if (ret_answer->outcome == RLK_DONE)
        rlk_script_take(conn, req, replies[0], ret_answer);
    if (gives_hold(ret_answer))
        confirm(conn, wait, w, deadline, replies[1], ret_answer);
    else
        rlk_reply_free(replies[1]);
}
