/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a connection becomes READY: addresses, connect, and the handshake of conn_hello.c.
 * Entered by the thread that owns the connection; never blocks.
 *
 * rlk_conn_opening_step runs phases until one must wait. Each address gets an equal share
 * of the time that is left, for connect and handshake together, so that a host that
 * accepts and stays silent costs no more than one that drops packets. A failure that is
 * the same for all addresses (credentials, no memory) ends the attempt at once.
 */
#include "net/conn_open.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* No address gets less than this, while there is time. */
#define SHARE_MIN_NS (100 * RLK_NS_PER_MS)
/* A Unix socket with a full backlog answers EAGAIN and cannot be polled. */
#define BACKLOG_RETRY_NS (5 * RLK_NS_PER_MS)
/* An attempt with less than this part (1/4) of the whole time has little of it. */
enum { LITTLE_PART = 4 };

/* ---- life */

static void use_unix_path(struct rlk_conn_opening *o)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    /* rlk_url_parse refuses longer ones. */
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", o->options.endpoint->path);
    memcpy(&o->current.storage, &un, sizeof(un));
    o->current.len = sizeof(un);
    o->has_single = true;
}

int rlk_conn_opening_create(struct rlk_conn *conn, const struct rlk_conn_options *options,
                            int64_t deadline)
{
    struct rlk_conn_opening *o = calloc(1, sizeof(*o));
    if (!o)
        return ENOMEM;
    conn->opening = o; /* rlk_conn_free frees it, also half-built */
    o->options = *options;
    o->begun = rlk_clock_boot();
    o->deadline = o->due = deadline;
    o->phase = RLK_PHASE_NEXT;
    if (rlk_conn_hello_init(&o->hello, options) != 0)
        return ENOMEM;
    o->by_sentinel = options->endpoint->sentinels.count > 0;
    if (o->by_sentinel) {
        /* rule: P8 */
        o->phase = RLK_PHASE_ASK;
        o->options.last_address = NULL;
    } else if (options->endpoint->path) {
        use_unix_path(o);
    } else if (options->last_address && *options->last_address_len > 0) {
        o->current.storage = *options->last_address;
        o->current.len = *options->last_address_len;
        o->has_single = o->is_last = o->is_name = true;
    } else {
        o->phase = RLK_PHASE_RESOLVE;
    }
    return 0;
}

void rlk_conn_opening_free(struct rlk_conn_opening *o)
{
    if (!o)
        return;
    rlk_sentinel_ask_free(o->ask);
    rlk_resolve_free(o->job);
    rlk_conn_hello_clear(&o->hello);
    free(o);
}

/* Ends the whole attempt. */
void rlk_conn_opening_give_up(struct rlk_conn *conn, enum rlk_failure why, int local_code)
{
    struct rlk_conn_opening *o = conn->opening;
    if (o->is_last)
        *o->options.last_address_len = 0;
    rlk_conn_die(conn, why, local_code);
    /* The rest of the handshake's replies answers no request. */
    rlk_conn_drop_input(conn);
}

static void become_ready(struct rlk_conn *conn)
{
    struct rlk_conn_opening *o = conn->opening;
    /* An address that needed no resolver is not worth storing. */
    if (o->options.last_address && o->is_name) {
        *o->options.last_address = o->current.storage;
        *o->options.last_address_len = o->current.len;
    }
    conn->state = RLK_CONN_READY;
    conn->opening = NULL;
    conn->text[0] = '\0';
    rlk_conn_opening_free(o);
}

/* ---- addresses. Phases return whether there is more to do now. */

static bool fail_address(struct rlk_conn *conn)
{
    rlk_conn_close_fd(conn, true);
    conn->skip = (struct rlk_conn_skip){ .over = conn->skip.over };
    if (rlk_conn_reset_reader(conn) != 0) {
        rlk_conn_explain(conn, "out of memory");
        rlk_conn_opening_give_up(conn, RLK_FAIL_LOCAL, ENOMEM);
        return false;
    }
    conn->opening->phase = RLK_PHASE_NEXT;
    return true;
}

static bool fail_connect(struct rlk_conn *conn, int code)
{
    rlk_conn_explain(conn, "cannot connect to %s%s: %s", conn->label, conn->whence,
                     strerror(code));
    return fail_address(conn);
}

static void explain_unresolved(struct rlk_conn *conn, const char *reason)
{
    rlk_conn_explain(conn, "cannot resolve the host of %s%s: %s", conn->label,
                     conn->whence, reason);
}

static bool phase_resolve(struct rlk_conn *conn)
{
    struct rlk_conn_opening *o = conn->opening;
    struct addrinfo *list;
    int gai_code;
    if (!o->job) {
        const struct rlk_endpoint *endpoint = o->options.endpoint;
        rlk_error_clear();
        int rc = rlk_resolve_start(&o->job, endpoint->host, endpoint->port);
        if (rc != 0) {
            rlk_error_default(rc);
            explain_unresolved(conn, rlk_error_message());
            rlk_conn_opening_give_up(conn, RLK_FAIL_LOCAL, rc);
            return false;
        }
        o->is_name = rlk_resolve_fd(o->job) >= 0;
    }
    if (!rlk_resolve_done(o->job, &list, &gai_code))
        return false;
    if (!list) {
        explain_unresolved(conn, gai_strerror(gai_code));
        if (o->by_sentinel && gai_code != EAI_MEMORY)
            return fail_address(conn);
        if (gai_code == EAI_MEMORY)
            rlk_conn_opening_give_up(conn, RLK_FAIL_LOCAL, ENOMEM);
        else
            rlk_conn_opening_give_up(conn, RLK_FAIL_NOT_SENT, ENOTCONN);
        return false;
    }
    o->next = list;
    o->phase = RLK_PHASE_NEXT;
    return true;
}

static void set_due(struct rlk_conn_opening *o)
{
    int64_t now = rlk_clock_boot();
    int64_t share = rlk_clock_add(o->deadline, -now);
    if (o->deadline != RLK_NEVER) {
        int64_t count = 1;
        for (const struct addrinfo *ai = o->next; ai; ai = ai->ai_next)
            count++;
        share /= count;
        /* Meanwhile the sentinels may choose another master. */
        if (o->by_sentinel)
            share /= 2;
    }
    if (share < SHARE_MIN_NS)
        share = SHARE_MIN_NS;
    o->due = rlk_clock_add(now, share);
    if (o->due > o->deadline)
        o->due = o->deadline;
}

static bool start_connect(struct rlk_conn *conn)
{
    struct rlk_conn_opening *o = conn->opening;
    int family = o->current.storage.ss_family;
    conn->fd = rlk_fd_socket(family);
    if (conn->fd < 0) {
        int code = errno == ENOBUFS ? ENOMEM : errno;
        rlk_conn_explain(conn, "cannot connect to %s: cannot create a socket: %s",
                         conn->label, strerror(code));
        if (code != EMFILE && code != ENFILE && code != ENOMEM)
            return fail_address(conn);
        rlk_conn_opening_give_up(conn, RLK_FAIL_LOCAL, code);
        return false;
    }
    o->phase = RLK_PHASE_CONNECT;
    if (connect(conn->fd, (const struct sockaddr *)&o->current.storage, o->current.len) ==
            0 ||
        errno == EINPROGRESS || errno == EINTR)
        return true;
    if (errno == EAGAIN && family == AF_UNIX) {
        rlk_conn_close_fd(conn, false);
        o->retry_at = rlk_clock_boot() + BACKLOG_RETRY_NS;
        o->phase = RLK_PHASE_RETRY;
        return true;
    }
    return fail_connect(conn, errno);
}

static bool phase_next(struct rlk_conn *conn)
{
    struct rlk_conn_opening *o = conn->opening;
    if (o->has_single) {
        o->has_single = false;
    } else if (o->next) {
        memcpy(&o->current.storage, o->next->ai_addr, o->next->ai_addrlen);
        o->current.len = o->next->ai_addrlen;
        o->next = o->next->ai_next;
    } else if (o->by_sentinel) {
        rlk_conn_sentinel_again(conn);
        return true;
    } else { /* with the last address's text */
        rlk_conn_opening_give_up(conn, RLK_FAIL_NOT_SENT, ENOTCONN);
        return false;
    }
    set_due(o);
    return start_connect(conn);
}

/* ---- the socket */

static bool phase_connect(struct rlk_conn *conn)
{
    struct rlk_conn_opening *o = conn->opening;
    struct pollfd p = { .fd = conn->fd, .events = POLLOUT };
    /* SO_ERROR is 0 also while the connect is under way. */
    if (poll(&p, 1, 0) <= 0)
        return false;
    int code = 0;
    socklen_t len = sizeof(code);
    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &code, &len) != 0)
        code = errno;
    bool is_tcp = o->current.storage.ss_family != AF_UNIX;
    if (code == 0 && is_tcp && rlk_conn_socket_is_own_peer(conn->fd))
        code = ECONNREFUSED;
    if (code != 0)
        return fail_connect(conn, code);
    rlk_conn_socket_prepare(conn->fd, is_tcp, o->options.keepalive_ms);
    rlk_conn_hello_rewind(&o->hello);
    o->phase = o->options.endpoint->tls_store ? RLK_PHASE_TLS : RLK_PHASE_SHAKE;
    return true;
}

/* The server is of no use, nor is another address of it. Where the sentinels disagree,
 * one of them may have named anything. */
static bool refuse(struct rlk_conn *conn, enum rlk_failure why, int code)
{
    if (conn->opening->by_sentinel && !conn->opening->chosen.agreed)
        return fail_address(conn);
    rlk_conn_opening_give_up(conn, why, code);
    return false;
}

static bool phase_tls(struct rlk_conn *conn)
{
    struct rlk_conn_opening *o = conn->opening;
    enum rlk_tls_result result = RLK_TLS_NO_MEMORY;

    rlk_conn_explain(conn, "out of memory");
    if (conn->tls ||
        rlk_tls_open(&conn->tls, o->options.endpoint, !o->options.in_loop) == 0)
        result = rlk_tls_shake(conn->tls, conn->fd);
    if (conn->tls)
        rlk_conn_explain(conn, "%s", rlk_tls_text(conn->tls));
    switch (result) {
    case RLK_TLS_DONE:
        o->phase = RLK_PHASE_SHAKE;
        return true;
    case RLK_TLS_WAIT:
        return false;
    case RLK_TLS_FAILED:
        return fail_address(conn);
    case RLK_TLS_REFUSED:
        return refuse(conn, RLK_FAIL_ACCESS, EACCES);
    case RLK_TLS_STRANGE:
        return refuse(conn, RLK_FAIL_PROTOCOL, EPROTO);
    case RLK_TLS_NO_MEMORY:
    default:
        if (rlk_tls_ended())
            rlk_conn_explain(conn, "the process is exiting");
        rlk_conn_opening_give_up(conn, RLK_FAIL_LOCAL,
                                 rlk_tls_ended() ? ENOTCONN : ENOMEM);
        return false;
    }
}

/* Another connection has found another master since this one's sentinels were asked. */
static bool ask_anew(struct rlk_conn *conn)
{
    rlk_conn_explain(conn, "%s is not the master any more", conn->label);
    if (!fail_address(conn))
        return false;
    rlk_conn_sentinel_overtaken(conn);
    return true;
}

static bool phase_shake(struct rlk_conn *conn)
{
    struct rlk_conn_opening *o = conn->opening;
    switch (rlk_conn_hello_step(conn, &o->hello, o->options.endpoint)) {
    case RLK_HELLO_DONE:
        if (o->by_sentinel && !rlk_conn_sentinel_ready(conn))
            return ask_anew(conn);
        become_ready(conn);
        return false;
    case RLK_HELLO_FAILED:
    case RLK_HELLO_ELSEWHERE:
        return fail_address(conn);
    case RLK_HELLO_DENIED:
        return refuse(conn, RLK_FAIL_ACCESS, EACCES);
    case RLK_HELLO_STRANGE:
        return refuse(conn, RLK_FAIL_PROTOCOL, EPROTO);
    case RLK_HELLO_NO_MEMORY:
        rlk_conn_opening_give_up(conn, RLK_FAIL_LOCAL, ENOMEM);
        return false;
    case RLK_HELLO_WAIT:
    default:
        return false;
    }
}

/* ---- driving */

static bool advance(struct rlk_conn *conn)
{
    switch (conn->opening->phase) {
    case RLK_PHASE_ASK:
        return rlk_conn_sentinel_ask(conn);
    case RLK_PHASE_PAUSE:
        if (rlk_clock_boot() < conn->opening->retry_at)
            return false;
        conn->opening->phase = RLK_PHASE_ASK;
        return true;
    case RLK_PHASE_RESOLVE:
        return phase_resolve(conn);
    case RLK_PHASE_NEXT:
        return phase_next(conn);
    case RLK_PHASE_RETRY:
        return rlk_clock_boot() >= conn->opening->retry_at && start_connect(conn);
    case RLK_PHASE_CONNECT:
        return phase_connect(conn);
    case RLK_PHASE_TLS:
        return phase_tls(conn);
    case RLK_PHASE_SHAKE:
    default:
        return phase_shake(conn);
    }
}

/* Whether an earlier attempt has said why there is no connection, and the present one had
 * so little time that its silence says less. */
static bool is_explained(const struct rlk_conn *conn)
{
    const struct rlk_conn_opening *o = conn->opening;

    return o->by_sentinel && conn->text[0] &&
           rlk_clock_boot() - o->chosen_at < (o->deadline - o->begun) / LITTLE_PART;
}

static void explain_time_out(struct rlk_conn *conn)
{
    if (is_explained(conn))
        return;
    switch (conn->opening->phase) {
    case RLK_PHASE_ASK:
        if (!conn->text[0]) /* else it says why it asks again */
            rlk_conn_explain(conn, "no sentinel of %s%s answers in time", conn->label,
                             conn->whence);
        break;
    case RLK_PHASE_PAUSE:
        break;
    case RLK_PHASE_RESOLVE:
        explain_unresolved(conn, "no reply in time");
        break;
    case RLK_PHASE_SHAKE:
        rlk_conn_explain(conn, "%s%s accepted the connection, but did not reply in time",
                         conn->label, conn->whence);
        if (conn->opening->hello.refusal[0])
            rlk_conn_explain(conn, "%s", conn->opening->hello.refusal);
        break;
    case RLK_PHASE_TLS:
        /* A server without TLS takes the first message of TLS for the beginning of a
         * line, and waits for the end of the line. */
        rlk_conn_explain(conn,
                         "%s%s accepted the connection, but %s: the URL of a server "
                         "without TLS begins with redis://",
                         conn->label, conn->whence,
                         conn->tls && rlk_tls_heard(conn->tls)
                             ? "did not finish the TLS handshake in time"
                             : "did not reply to the TLS handshake in time");
        break;
    case RLK_PHASE_NEXT:
    case RLK_PHASE_RETRY:
    case RLK_PHASE_CONNECT:
    default:
        rlk_conn_explain(conn, "cannot connect to %s%s: timed out", conn->label,
                         conn->whence);
    }
}

void rlk_conn_opening_time_out(struct rlk_conn *conn)
{
    enum rlk_conn_phase phase = conn->opening->phase;

    explain_time_out(conn);
    if (conn->opening->by_sentinel && phase != RLK_PHASE_ASK && phase != RLK_PHASE_PAUSE)
        rlk_conn_sentinel_wrong(conn);
    rlk_conn_opening_give_up(conn, RLK_FAIL_NOT_SENT, ENOTCONN);
}

/* Whether the program closed the descriptor that the connection waits for, so that no
 * event would come. */
static bool is_robbed(struct rlk_conn *conn)
{
    int fd = rlk_conn_opening_fd(conn);
    return fd >= 0 && !rlk_fd_is_ours(fd);
}

void rlk_conn_opening_step(struct rlk_conn *conn)
{
    if (is_robbed(conn)) {
        rlk_conn_explain(conn, "the program closed the library's connection to %s",
                         conn->label);
        rlk_conn_opening_give_up(conn, RLK_FAIL_NOT_SENT, ENOTCONN);
        return;
    }
    for (;;) {
        while (conn->state == RLK_CONN_OPENING && advance(conn))
            continue;
        if (conn->state != RLK_CONN_OPENING)
            return;
        int64_t now = rlk_clock_boot();
        if (now < conn->opening->due)
            return;
        if (now >= conn->opening->deadline) {
            rlk_conn_opening_time_out(conn);
            return;
        }
        explain_time_out(conn);
        if (!fail_address(conn))
            return;
    }
}

int rlk_conn_opening_fd(const struct rlk_conn *conn)
{
    const struct rlk_conn_opening *o = conn->opening;
    if (o->phase == RLK_PHASE_ASK)
        return o->ask ? rlk_sentinel_ask_fd(o->ask) : -1;
    return o->phase == RLK_PHASE_RESOLVE && o->job ? rlk_resolve_fd(o->job) : conn->fd;
}

short rlk_conn_opening_events(const struct rlk_conn *conn)
{
    const struct rlk_conn_opening *o = conn->opening;
    switch (o->phase) {
    case RLK_PHASE_ASK:
    case RLK_PHASE_RESOLVE:
        return POLLIN;
    case RLK_PHASE_CONNECT:
        return POLLOUT;
    case RLK_PHASE_TLS:
        return (short)(POLLIN |
                       (conn->tls && rlk_tls_unsent(conn->tls) > 0 ? POLLOUT : 0));
    case RLK_PHASE_SHAKE:
        return (short)(POLLIN | (o->hello.at < o->hello.len ? POLLOUT : 0));
    case RLK_PHASE_PAUSE:
    case RLK_PHASE_NEXT:
    case RLK_PHASE_RETRY:
    default:
        return 0;
    }
}

int64_t rlk_conn_opening_due(const struct rlk_conn *conn)
{
    const struct rlk_conn_opening *o = conn->opening;
    int64_t at = o->due;

    if (o->phase == RLK_PHASE_RETRY || o->phase == RLK_PHASE_PAUSE)
        at = o->retry_at;
    else if (o->phase == RLK_PHASE_ASK && o->ask)
        at = rlk_sentinel_ask_due(o->ask);
    return at < o->due ? at : o->due;
}
