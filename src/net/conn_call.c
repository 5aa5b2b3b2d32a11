/* SPDX-License-Identifier: Apache-2.0 */
/* Output of a connection, and a caller's round trip: see conn.c for what it costs.
 * Thread: that of the connection. Blocks: rlk_conn_call and rlk_conn_call_script,
 * network.
 */
#include "net/conn_impl.h"

#include "base/clock.h"
#include "net/confirm.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_SIZE_FIRST = 1024 };

/* A plain recv may overstay by SO_RCVTIMEO and its rounding to ticks. */
#define PLAIN_RECV_MARGIN_NS (2 * RLK_CONN_PATIENCE_MS * RLK_NS_PER_MS)

/* ---- output */

/* Appends bytes to the output. 0 or ENOMEM. */
static int append_bytes(struct rlk_conn *conn, const char *bytes, size_t len)
{
    if (conn->out_at > 0 && conn->out_size - conn->out_len < len) {
        memmove(conn->out, conn->out + conn->out_at, conn->out_len - conn->out_at);
        conn->out_len -= conn->out_at;
        conn->out_at = 0;
    }
    if (conn->out_size - conn->out_len < len) {
        size_t size = conn->out_size ? conn->out_size : OUT_SIZE_FIRST;
        while (size - conn->out_len < len)
            size *= 2;
        char *grown = realloc(conn->out, size);
        if (!grown)
            return ENOMEM;
        conn->out = grown;
        conn->out_size = size;
    }
    memcpy(conn->out + conn->out_len, bytes, len);
    conn->out_len += len;
    return 0;
}

int rlk_conn_append(struct rlk_conn *conn, int argc, const char *const *argv,
                    const size_t *argv_len)
{
    size_t len = 0;
    char *bytes = rlk_conn_frame_format(argc, argv, argv_len, &len);
    int rc = bytes ? append_bytes(conn, bytes, len) : ENOMEM;

    redisFreeCommand(bytes);
    return rc;
}

int rlk_conn_append_script(struct rlk_conn *conn, const struct rlk_request *req,
                           bool with_text)
{
    size_t len = 0;
    char *owned;
    const char *bytes = rlk_conn_frame(conn, req, with_text, &len, &owned);
    int rc = bytes ? append_bytes(conn, bytes, len) : ENOMEM;

    redisFreeCommand(owned);
    return rc;
}

size_t rlk_conn_unsent(const struct rlk_conn *conn)
{
    return conn->out_len - conn->out_at + (conn->tls ? rlk_tls_unsent(conn->tls) : 0);
}

static ssize_t send_tls(struct rlk_conn *conn, const char *bytes, size_t len)
{
    ssize_t n = rlk_tls_send(conn->tls, conn->fd, bytes, len);

    if (n < 0)
        rlk_conn_explain(conn, "%s", rlk_tls_text(conn->tls));
    return n;
}

ssize_t rlk_conn_send(struct rlk_conn *conn, const char *bytes, size_t len)
{
    if (conn->tls)
        return send_tls(conn, bytes, len);
    ssize_t n = send(conn->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0)
        return n;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return 0;
    rlk_conn_explain(conn, "connection to %s: %s", conn->label, strerror(errno));
    return -1;
}

/* Whether the kernel has a part of a request: it took bytes, or a part of their
 * ciphertext. */
static bool is_begun(const struct rlk_conn *conn, ssize_t taken)
{
    return taken > 0 || (conn->tls && rlk_tls_begun(conn->tls));
}

bool rlk_conn_flush(struct rlk_conn *conn)
{
    while (conn->out_at < conn->out_len) {
        ssize_t n =
            rlk_conn_send(conn, conn->out + conn->out_at, conn->out_len - conn->out_at);
        if (is_begun(conn, n))
            conn->requested = true;
        if (n < 0)
            return false;
        if (n == 0)
            return true;
        conn->out_at += (size_t)n;
    }
    conn->out_at = conn->out_len = 0;
    return !conn->tls || rlk_tls_flush(conn->tls, conn->fd);
}

/* ---- one request, one reply */

/* After a failed send. */
static void hear_alert(struct rlk_conn *conn)
{
    if (!conn->tls)
        return;
    rlk_tls_hear_alert(conn->tls, conn->fd);
    rlk_conn_explain(conn, "%s", rlk_tls_text(conn->tls));
}

/* How many replies show that the network was well just now, so that no other connection
 * is in doubt when another one is missing. */
enum { WELL_NEVER = -1, WELL_ALWAYS = 0, WELL_BEHIND_SCRIPT = 1 };

/* Takes the replies that have arrived, up to `count` in all. *got: how many there are. */
static inline enum rlk_parsed take_replies(struct rlk_conn *conn, int count,
                                           struct rlk_reply **replies, int *got)
{
    enum rlk_parsed parsed;

    do {
        parsed = rlk_conn_parse(conn, &replies[*got]);
    } while (parsed == RLK_PARSED_REPLY && ++*got < count);
    return parsed;
}

/* False: dead, and the last reply is missing; those before it are the caller's. A reply
 * that came while the thread stood still, in a signal's handler or with its machine, is
 * read though the deadline has passed meanwhile. */
static inline bool call_receive(struct rlk_conn *conn, int64_t deadline, bool plain,
                                int well_from, int count, struct rlk_reply **replies)
{
    bool over = false;
    int code = ENOTCONN, got = 0;
    for (;;) {
        enum rlk_input input = rlk_conn_input(conn, plain ? 0 : MSG_DONTWAIT);
        if (input == RLK_INPUT_END)
            break;
        if (input == RLK_INPUT_DATA) {
            enum rlk_parsed parsed = take_replies(conn, count, replies, &got);
            if (parsed == RLK_PARSED_REPLY && rlk_conn_unparsed(conn) == 0)
                return true;
            if (parsed == RLK_PARSED_REPLY) {
                /* One of them was not asked for, and it may be the first. */
                rlk_conn_explain(conn, "%s sent more than one reply", conn->label);
                break;
            }
            if (parsed == RLK_PARSED_NO_MEMORY)
                code = ENOMEM;
            if (parsed != RLK_PARSED_PARTIAL)
                break;
        } else if (over) {
            rlk_conn_explain(conn,
                             got > 0 ? "no second reply from %s in time"
                                     : "no reply from %s in time",
                             conn->label);
            break;
        } else {
            over = !rlk_conn_poll(conn->fd, POLLIN, deadline);
            if (!rlk_conn_has_socket(conn))
                break;
        }
        plain = false;
    }
    bool well = well_from == WELL_ALWAYS || got == well_from;
    rlk_conn_die(conn, well ? RLK_FAIL_LOCAL : RLK_FAIL_UNKNOWN, code);
    for (int i = 0; got == count && i < count; i++) { /* with one too many */
        rlk_reply_free(replies[i]);
        replies[i] = NULL;
    }
    return false;
}

/* Sends the bytes of requests that begin now, and waits for their `count` replies. */
static inline enum rlk_failure exchange(struct rlk_conn *conn, const char *bytes,
                                        size_t len, int64_t deadline, int well_from,
                                        int count, struct rlk_reply **replies)
{
    bool plain = deadline - conn->asked_at >= PLAIN_RECV_MARGIN_NS;
    size_t at = 0;

    for (;;) {
        ssize_t n = rlk_conn_send(conn, bytes + at, len - at);
        if (is_begun(conn, n))
            conn->requested = true;
        if (n < 0) {
            hear_alert(conn);
            break;
        }
        at += (size_t)n;
        if (at == len) {
            call_receive(conn, deadline, plain, well_from, count, replies);
            return conn->failure;
        }
        plain = false; /* it took more than one system call */
        if (!rlk_conn_poll(conn->fd, POLLOUT, deadline)) {
            rlk_conn_explain(conn, "%s did not accept a request in time", conn->label);
            break;
        }
        if (!rlk_conn_has_socket(conn))
            break;
    }
    bool begun = is_begun(conn, (ssize_t)at);
    rlk_conn_die(conn, begun ? RLK_FAIL_UNKNOWN : RLK_FAIL_NOT_SENT, ENOTCONN);
    return conn->failure;
}

/* Whether a request may begin now: 0, or the failure. bytes NULL: there was no memory for
 * them. */
static inline enum rlk_failure begin_call(struct rlk_conn *conn, const char *bytes,
                                          int64_t deadline, int64_t *ret_sent)
{
    assert(conn->out_at == conn->out_len);
    *ret_sent = conn->asked_at = rlk_clock_boot();
    if (conn->state != RLK_CONN_READY)
        return RLK_FAIL_NOT_SENT;
    if (!bytes) {
        rlk_conn_explain(conn, "out of memory");
        conn->local_code = ENOMEM;
        return RLK_FAIL_LOCAL;
    }
    if (rlk_conn_unparsed(conn) > 0) {
        rlk_conn_explain(conn, "%s sent data without a request", conn->label);
        rlk_conn_die(conn, RLK_FAIL_NOT_SENT, ENOTCONN);
        return conn->failure;
    }
    if (*ret_sent >= deadline) {
        rlk_conn_explain(conn, "no time left for a request to %s", conn->label);
        conn->local_code = ENOTCONN;
        return RLK_FAIL_NOT_SENT; /* it lives on: nothing was begun */
    }
    return 0;
}

static enum rlk_failure call(struct rlk_conn *conn, int argc, const char *const *argv,
                             const size_t *argv_len, int64_t deadline, int well_from,
                             struct rlk_reply **ret_reply, int64_t *ret_sent)
{
    size_t len = 0;
    char *bytes = rlk_conn_frame_format(argc, argv, argv_len, &len);
    enum rlk_failure failure = begin_call(conn, bytes, deadline, ret_sent);

    if (failure == 0)
        failure = exchange(conn, bytes, len, deadline, well_from, 1, ret_reply);
    redisFreeCommand(bytes);
    return failure;
}

enum rlk_failure rlk_conn_call(struct rlk_conn *conn, int argc, const char *const *argv,
                               const size_t *argv_len, int64_t deadline,
                               struct rlk_reply **ret_reply, int64_t *ret_sent)
{
    return call(conn, argc, argv, argv_len, deadline, WELL_NEVER, ret_reply, ret_sent);
}

enum rlk_failure rlk_conn_call_behind(struct rlk_conn *conn, int argc,
                                      const char *const *argv, const size_t *argv_len,
                                      int64_t deadline, struct rlk_reply **ret_reply,
                                      int64_t *ret_sent)
{
    return call(conn, argc, argv, argv_len, deadline, WELL_ALWAYS, ret_reply, ret_sent);
}

enum rlk_failure rlk_conn_call_script(struct rlk_conn *conn,
                                      const struct rlk_request *req, bool with_text,
                                      int64_t deadline, struct rlk_reply **ret_reply,
                                      int64_t *ret_sent)
{
    size_t len = 0;
    char *owned;
    const char *bytes = rlk_conn_frame(conn, req, with_text, &len, &owned);
    enum rlk_failure failure = begin_call(conn, bytes, deadline, ret_sent);

    if (failure == 0)
        failure = exchange(conn, bytes, len, deadline, WELL_NEVER, 1, ret_reply);
    if (owned)
        redisFreeCommand(owned);
    return failure;
}

enum rlk_failure rlk_conn_call_pair(struct rlk_conn *conn, const struct rlk_request *req,
                                    bool with_text,
                                    const struct rlk_confirm_command *second,
                                    int64_t deadline, struct rlk_reply *ret_replies[2],
                                    int64_t *ret_sent)
{
    conn->out_at = conn->out_len = 0;
    int rc = rlk_conn_append_script(conn, req, with_text);
    if (rc == 0)
        rc = rlk_conn_append(conn, second->argc, second->argv, second->len);
    size_t len = conn->out_len;
    conn->out_len = 0; /* `out` keeps the bytes: nothing is appended meanwhile */
    enum rlk_failure failure =
        begin_call(conn, rc == 0 ? conn->out : NULL, deadline, ret_sent);
    if (failure == 0)
        failure =
            exchange(conn, conn->out, len, deadline, WELL_BEHIND_SCRIPT, 2, ret_replies);
    return failure;
}

enum rlk_failure rlk_conn_call_asking(struct rlk_conn *conn,
                                      const struct rlk_request *req, int64_t deadline,
                                      struct rlk_reply **ret_reply, int64_t *ret_sent)
{
    static const char *const asking[] = { "ASKING" };
    const size_t asking_len = strlen(asking[0]);
    struct rlk_reply *replies[2] = { NULL, NULL };

    conn->out_at = conn->out_len = 0;
    int rc = rlk_conn_append(conn, 1, asking, &asking_len);
    if (rc == 0)
        rc = rlk_conn_append_script(conn, req, true);
    size_t len = conn->out_len;
    conn->out_len = 0; /* as in rlk_conn_call_pair */
    enum rlk_failure failure =
        begin_call(conn, rc == 0 ? conn->out : NULL, deadline, ret_sent);
    if (failure == 0)
        failure = exchange(conn, conn->out, len, deadline, WELL_NEVER, 2, replies);
    rlk_reply_free(replies[0]); /* if it is refused, the script's own reply says so */
    if (failure == 0)
        *ret_reply = replies[1];
    return failure;
}
