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
#include "net/conn_impl.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "net/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

enum { KEEPALIVE_PROBES = 3 };

enum phase {
    PHASE_RESOLVE,
    PHASE_NEXT,    /* take the next address */
    PHASE_RETRY,   /* full backlog: try the same address again at retry_at */
    PHASE_CONNECT, /* under way */
    PHASE_TLS,     /* the handshake of TLS */
    PHASE_SHAKE    /* that of Redis: conn_hello.c */
};

struct address {
    struct sockaddr_storage storage;
    socklen_t len;
};

struct rlk_conn_opening {
    struct rlk_conn_options options;
    int64_t deadline;
    int64_t due; /* of the current address */
    int64_t retry_at;
    enum phase phase;

    struct rlk_resolve *job;
    const struct addrinfo *next;
    bool has_single; /* `current` is still untried and needs no resolver */
    bool is_last;    /* `current` is the address that answered last */
    bool is_name;    /* the address comes from a name that was resolved */
    struct address current;

    struct rlk_conn_hello hello;
};

/* ---- life */

static void use_unix_path(struct rlk_conn_opening *o)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    /* rlk_url_parse refuses longer ones. */
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", o->options.target->path);
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
    o->deadline = o->due = deadline;
    o->phase = PHASE_NEXT;
    if (rlk_conn_hello_init(&o->hello, options) != 0)
        return ENOMEM;
    if (options->target->path) {
        use_unix_path(o);
    } else if (options->last_address && *options->last_address_len > 0) {
        o->current.storage = *options->last_address;
        o->current.len = *options->last_address_len;
        o->has_single = o->is_last = o->is_name = true;
    } else {
        o->phase = PHASE_RESOLVE;
    }
    return 0;
}

void rlk_conn_opening_free(struct rlk_conn_opening *o)
{
    if (!o)
        return;
    rlk_resolve_free(o->job);
    rlk_conn_hello_clear(&o->hello);
    free(o);
}

/* Ends the whole attempt. */
static void give_up(struct rlk_conn *conn, enum rlk_failure why, int local_code)
{
    struct rlk_conn_opening *o = conn->opening;
    if (o->is_last)
        *o->options.last_address_len = 0;
    rlk_conn_die(conn, why, local_code);
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
        give_up(conn, RLK_FAIL_LOCAL, ENOMEM);
        return false;
    }
    conn->opening->phase = PHASE_NEXT;
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
        const struct rlk_target *target = o->options.target;
        rlk_error_clear();
        int rc = rlk_resolve_start(&o->job, target->host, target->port);
        if (rc != 0) {
            rlk_error_default(rc);
            explain_unresolved(conn, rlk_error_message());
            give_up(conn, RLK_FAIL_LOCAL, rc);
            return false;
        }
        o->is_name = rlk_resolve_fd(o->job) >= 0;
    }
    if (!rlk_resolve_done(o->job, &list, &gai_code))
        return false;
    if (!list) {
        explain_unresolved(conn, gai_strerror(gai_code));
        if (gai_code == EAI_MEMORY)
            give_up(conn, RLK_FAIL_LOCAL, ENOMEM);
        else
            give_up(conn, RLK_FAIL_NOT_SENT, ENOTCONN);
        return false;
    }
    o->next = list;
    o->phase = PHASE_NEXT;
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
        give_up(conn, RLK_FAIL_LOCAL, code);
        return false;
    }
    o->phase = PHASE_CONNECT;
    if (connect(conn->fd, (const struct sockaddr *)&o->current.storage, o->current.len) ==
            0 ||
        errno == EINPROGRESS || errno == EINTR)
        return true;
    if (errno == EAGAIN && family == AF_UNIX) {
        rlk_conn_close_fd(conn, false);
        o->retry_at = rlk_clock_boot() + BACKLOG_RETRY_NS;
        o->phase = PHASE_RETRY;
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
    } else {
        give_up(conn, RLK_FAIL_NOT_SENT, ENOTCONN); /* with the last address's text */
        return false;
    }
    set_due(o);
    return start_connect(conn);
}

/* ---- the socket */

/* A socket can be connected to itself: at a port of the ephemeral range without a
 * listener. */
static bool is_connected_to_itself(int fd)
{
    struct sockaddr_storage own, peer;
    socklen_t own_len = sizeof(own), peer_len = sizeof(peer);
    memset(&own, 0, sizeof(own));
    memset(&peer, 0, sizeof(peer));
    return getsockname(fd, (struct sockaddr *)&own, &own_len) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0 &&
           own_len == peer_len && memcmp(&own, &peer, own_len) == 0;
}

static void set_int(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof(value));
}

static void set_tcp_options(int fd, int64_t keepalive_ms)
{
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (keepalive_ms <= 0)
        return;
    int ms = keepalive_ms > INT32_MAX ? INT32_MAX : (int)keepalive_ms;
    int idle_s = ms < 1000 ? 1 : ms / 1000;
    int probe_s = idle_s < KEEPALIVE_PROBES ? 1 : idle_s / KEEPALIVE_PROBES;
    if (idle_s > 32767) /* the kernel's limit */
        idle_s = probe_s = 32767;
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, probe_s);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
}

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
    if (code == 0 && is_tcp && is_connected_to_itself(conn->fd))
        code = ECONNREFUSED;
    if (code != 0)
        return fail_connect(conn, code);
    if (is_tcp)
        set_tcp_options(conn->fd, o->options.keepalive_ms);
    struct timeval patience = { .tv_usec = RLK_CONN_PATIENCE_MS * 1000 };
    setsockopt(conn->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    int flags = fcntl(conn->fd, F_GETFL);
    if (flags >= 0)
        fcntl(conn->fd, F_SETFL, flags & ~O_NONBLOCK);
    rlk_conn_hello_rewind(&o->hello);
    o->phase = o->options.target->tls_store ? PHASE_TLS : PHASE_SHAKE;
    return true;
}

static bool phase_tls(struct rlk_conn *conn)
{
    struct rlk_conn_opening *o = conn->opening;
    enum rlk_tls_result result = RLK_TLS_NO_MEMORY;

    rlk_conn_explain(conn, "out of memory");
    if (conn->tls ||
        rlk_tls_open(&conn->tls, o->options.target, !o->options.in_loop) == 0)
        result = rlk_tls_shake(conn->tls, conn->fd);
    if (conn->tls)
        rlk_conn_explain(conn, "%s", rlk_tls_text(conn->tls));
    switch (result) {
    case RLK_TLS_DONE:
        o->phase = PHASE_SHAKE;
        return true;
    case RLK_TLS_WAIT:
        return false;
    case RLK_TLS_FAILED:
        return fail_address(conn);
    case RLK_TLS_REFUSED:
        give_up(conn, RLK_FAIL_ACCESS, EACCES);
        return false;
    case RLK_TLS_STRANGE:
        give_up(conn, RLK_FAIL_PROTOCOL, EPROTO);
        return false;
    case RLK_TLS_NO_MEMORY:
    default:
        if (rlk_tls_ended())
            rlk_conn_explain(conn, "the process is exiting");
        give_up(conn, RLK_FAIL_LOCAL, rlk_tls_ended() ? ENOTCONN : ENOMEM);
        return false;
    }
}

static bool phase_shake(struct rlk_conn *conn)
{
    struct rlk_conn_opening *o = conn->opening;
    switch (rlk_conn_hello_step(conn, &o->hello, o->options.target)) {
    case RLK_HELLO_DONE:
        become_ready(conn);
        return false;
    case RLK_HELLO_FAILED:
        return fail_address(conn);
    case RLK_HELLO_DENIED:
        give_up(conn, RLK_FAIL_ACCESS, EACCES);
        return false;
    case RLK_HELLO_STRANGE:
        give_up(conn, RLK_FAIL_PROTOCOL, EPROTO);
        return false;
    case RLK_HELLO_NO_MEMORY:
        give_up(conn, RLK_FAIL_LOCAL, ENOMEM);
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
    case PHASE_RESOLVE:
        return phase_resolve(conn);
    case PHASE_NEXT:
        return phase_next(conn);
    case PHASE_RETRY:
        return rlk_clock_boot() >= conn->opening->retry_at && start_connect(conn);
    case PHASE_CONNECT:
        return phase_connect(conn);
    case PHASE_TLS:
        return phase_tls(conn);
    case PHASE_SHAKE:
    default:
        return phase_shake(conn);
    }
}

static void explain_time_out(struct rlk_conn *conn)
{
    switch (conn->opening->phase) {
    case PHASE_RESOLVE:
        explain_unresolved(conn, "no reply in time");
        break;
    case PHASE_SHAKE:
        rlk_conn_explain(conn, "%s%s accepted the connection, but did not reply in time",
                         conn->label, conn->whence);
        break;
    case PHASE_TLS:
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
    case PHASE_NEXT:
    case PHASE_RETRY:
    case PHASE_CONNECT:
    default:
        rlk_conn_explain(conn, "cannot connect to %s%s: timed out", conn->label,
                         conn->whence);
    }
}

void rlk_conn_opening_time_out(struct rlk_conn *conn)
{
    explain_time_out(conn);
    give_up(conn, RLK_FAIL_NOT_SENT, ENOTCONN);
}

/* Whether the program closed the descriptor that the connection waits for, so that no
 * event would come. */
static bool is_robbed(struct rlk_conn *conn)
{
    const struct rlk_conn_opening *o = conn->opening;
    int fd = o->phase == PHASE_RESOLVE && o->job ? rlk_resolve_fd(o->job) : conn->fd;
    return fd >= 0 && !rlk_fd_is_ours(fd);
}

void rlk_conn_opening_step(struct rlk_conn *conn)
{
    if (is_robbed(conn)) {
        rlk_conn_explain(conn, "the program closed the library's connection to %s",
                         conn->label);
        give_up(conn, RLK_FAIL_NOT_SENT, ENOTCONN);
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
    return o->phase == PHASE_RESOLVE ? rlk_resolve_fd(o->job) : conn->fd;
}

short rlk_conn_opening_events(const struct rlk_conn *conn)
{
    const struct rlk_conn_opening *o = conn->opening;
    switch (o->phase) {
    case PHASE_RESOLVE:
        return POLLIN;
    case PHASE_CONNECT:
        return POLLOUT;
    case PHASE_TLS:
        return (short)(POLLIN |
                       (conn->tls && rlk_tls_unsent(conn->tls) > 0 ? POLLOUT : 0));
    case PHASE_SHAKE:
        return (short)(POLLIN | (o->hello.at < o->hello.len ? POLLOUT : 0));
    case PHASE_NEXT:
    case PHASE_RETRY:
    default:
        return 0;
    }
}

int64_t rlk_conn_opening_due(const struct rlk_conn *conn)
{
    const struct rlk_conn_opening *o = conn->opening;
    return o->phase == PHASE_RETRY && o->retry_at < o->due ? o->retry_at : o->due;
}
