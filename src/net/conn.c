/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input, output and replies of a connection. A connection belongs to one thread at a time
 * and has no mutex.
 *
 * A caller's round trip should cost two system calls. Therefore a connected socket is in
 * blocking mode with a short SO_RCVTIMEO: rlk_conn_call sends, then waits inside one
 * plain recv. Only if that brings no whole reply (slow server, signal, reply in pieces)
 * it continues with ppoll until the absolute deadline. All other I/O passes MSG_DONTWAIT.
 */
#include "net/conn_impl.h"

#include "net/redirect.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/fork.h"
#include "base/ppoll.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { READ_CHUNK = 4096, READS_PER_STEP = 16 };
enum { MOVE_AGAIN_MS = 100 }; /* at least between two moves that are counted */

/* After this long without use a connection is looked at before it is used again. A
 * shorter time is not worth the system call: what broke meanwhile is an error of the next
 * request, which callers are prepared for. */
#define CHECK_AFTER_NS (5 * RLK_NS_PER_MS)

/* After this long it is looked whether its number is still the library's: a program that
 * closes what it does not know, and opens something else, takes longer. */
#define OURS_AFTER_NS (RLK_NS_PER_MS / 50)

/* ppoll uses CLOCK_MONOTONIC, deadlines use CLOCK_BOOTTIME: look again after this
 * time. */
#define POLL_MAX_NS RLK_NS_PER_S

/* ---- death */

void rlk_conn_explain(struct rlk_conn *conn, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(conn->text, sizeof(conn->text), format, args);
    va_end(args);
}

void rlk_conn_close_fd(struct rlk_conn *conn, bool abort)
{
    if (conn->fd < 0)
        return;
    bool ours = rlk_fd_is_ours(conn->fd);
    if (abort && ours) {
        struct linger now = { .l_onoff = 1, .l_linger = 0 };
        setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    }
    /* Removed first: otherwise it stays in the set while a forked child has a copy of
     * it. The child itself has nothing to do with its parent's set. */
    if (conn->watcher >= 0 && ours && !rlk_fork_in_child())
        epoll_ctl(conn->watcher, EPOLL_CTL_DEL, conn->fd, &(struct epoll_event){ 0 });
    conn->watcher = -1;
    rlk_fd_close(conn->fd);
    conn->fd = -1;
    if (conn->tls)
        rlk_tls_free(conn->tls);
    conn->tls = NULL;
}

void rlk_conn_die(struct rlk_conn *conn, enum rlk_failure why, int local_code)
{
    if (conn->state == RLK_CONN_DEAD)
        return;
    rlk_conn_close_fd(conn, true);
    conn->state = RLK_CONN_DEAD;
    conn->failure = why;
    conn->local_code = local_code;
    conn->out_at = conn->out_len = 0;
    rlk_conn_opening_free(conn->opening);
    conn->opening = NULL;
}

void rlk_conn_drop_input(struct rlk_conn *conn)
{
    redisReaderFree(conn->reader);
    conn->reader = NULL;
}

void rlk_conn_kill(struct rlk_conn *conn, enum rlk_failure why, const char *text)
{
    if (conn->state == RLK_CONN_DEAD)
        return;
    rlk_conn_explain(conn, "%s", text);
    rlk_conn_die(conn, why, ENOTCONN);
    /* After a timeout a late reply cannot be matched to its request. */
    rlk_conn_drop_input(conn);
}

bool rlk_conn_count_move(struct rlk_moves *moves, unsigned seen)
{
    int64_t now = rlk_clock_boot();

    /* Not counted each time: if a name leads to a master and its replica by turns,
     * that would close the other connections over and over. They learn by themselves
     * when their server is wrong. */
    if (now < atomic_load(&moves->counted_at) + MOVE_AGAIN_MS * RLK_NS_PER_MS ||
        !atomic_compare_exchange_strong(&moves->count, &seen, seen + 1))
        return false;
    atomic_store(&moves->counted_at, now);
    return true;
}

void rlk_conn_leave(struct rlk_conn *conn, const char *text)
{
    rlk_conn_kill(conn, RLK_FAIL_NOT_SENT, text);
    if (conn->moves)
        rlk_conn_count_move(conn->moves, conn->moves_seen);
}

bool rlk_conn_moved(const struct rlk_conn *conn)
{
    return conn->moves && atomic_load(&conn->moves->count) != conn->moves_seen;
}

unsigned rlk_conn_moves_seen(const struct rlk_conn *conn)
{
    return conn->moves_seen;
}

bool rlk_conn_has_socket(struct rlk_conn *conn)
{
    if (rlk_fd_is_ours(conn->fd))
        return true;
    rlk_conn_explain(conn, "the program closed the library's connection to %s",
                     conn->label);
    return false;
}

/* A ready connection fails. */
static void fail(struct rlk_conn *conn, int code)
{
    rlk_conn_die(conn, conn->requested ? RLK_FAIL_UNKNOWN : RLK_FAIL_NOT_SENT, code);
}

/* ---- input */

int rlk_conn_reset_reader(struct rlk_conn *conn)
{
    redisReader *reader = redisReaderCreate();
    if (!reader)
        return ENOMEM;
    if (conn->reader)
        redisReaderFree(conn->reader);
    conn->reader = reader;
    conn->partial_len = conn->element_count = 0;
    conn->too_big = conn->grown = false;
    /* hiredis aborts when it has no memory for a smaller buffer: rlk_conn_parse
     * replaces the reader instead */
    conn->reader->maxbuf = 0;
    conn->reader->fn = rlk_reply_functions();
    conn->reader->privdata = conn;
    return 0;
}

/* A failure is kept in the reader, where rlk_conn_parse finds it. */
static void feed(void *arg, const char *bytes, size_t len)
{
    struct rlk_conn *conn = arg;
    redisReaderFeed(conn->reader, bytes, len);
}

static void take_bytes(void *arg, const char *bytes, size_t len)
{
    struct rlk_conn *conn = arg;

    if (conn->skip.over == 0)
        feed(conn, bytes, len);
    else
        len = rlk_conn_skip_filter(&conn->skip, bytes, len, feed, conn);
    conn->partial_len += len;
    conn->grown = conn->grown || conn->partial_len > REDIS_READER_MAX_BUF;
}

static enum rlk_input input_tls(struct rlk_conn *conn, int flags)
{
    int got = rlk_tls_receive(conn->tls, conn->fd, flags, take_bytes, conn);

    if (got < 0)
        rlk_conn_explain(conn, "%s", rlk_tls_text(conn->tls));
    return got > 0 ? RLK_INPUT_DATA : got == 0 ? RLK_INPUT_NONE : RLK_INPUT_END;
}

enum rlk_input rlk_conn_input(struct rlk_conn *conn, int flags)
{
    char buf[READ_CHUNK] RLK_UNINITIALIZED;
    if (conn->tls)
        return input_tls(conn, flags);
    ssize_t n = recv(conn->fd, buf, sizeof(buf), flags);
    if (n == 0) {
        rlk_conn_explain(conn, "%s closed the connection", conn->label);
        return RLK_INPUT_END;
    }
    if (n < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
            return RLK_INPUT_NONE;
        rlk_conn_explain(conn, "connection to %s: %s", conn->label, strerror(errno));
        return RLK_INPUT_END;
    }
    take_bytes(conn, buf, (size_t)n);
    return RLK_INPUT_DATA;
}

static enum rlk_parsed sort_reader_error(struct rlk_conn *conn)
{
    if (conn->reader->err == REDIS_ERR_OOM && !conn->too_big) {
        rlk_conn_explain(conn, "out of memory for a reply from %s", conn->label);
        return RLK_PARSED_NO_MEMORY;
    }
    if (conn->reader->err == REDIS_ERR_PROTOCOL)
        rlk_conn_explain(conn, "%s does not speak the Redis protocol", conn->label);
    else
        rlk_conn_explain(conn, "a reply from %s is too big", conn->label);
    return RLK_PARSED_BAD;
}

enum rlk_parsed rlk_conn_parse(struct rlk_conn *conn, struct rlk_reply **ret_reply)
{
    void *reply = NULL;
    if (!conn->reader)
        return RLK_PARSED_PARTIAL;
    if (conn->reader->err != 0 || redisReaderGetReply(conn->reader, &reply) != REDIS_OK)
        return sort_reader_error(conn);
    if (reply) {
        conn->partial_len = rlk_conn_unparsed(conn);
        conn->element_count = 0;
        if (conn->grown && conn->partial_len == 0)
            rlk_conn_reset_reader(conn); /* or its buffer stays as big */
        *ret_reply = reply;
        return RLK_PARSED_REPLY;
    }
    if (conn->partial_len > conn->reply_limit) {
        rlk_conn_explain(conn, "a reply from %s is too big", conn->label);
        return RLK_PARSED_BAD;
    }
    return RLK_PARSED_PARTIAL;
}

bool rlk_conn_poll(int fd, short events, int64_t deadline)
{
    int64_t left = POLL_MAX_NS;
    if (deadline != RLK_NEVER) {
        left = rlk_clock_add(deadline, -rlk_clock_boot());
        if (left <= 0)
            return false;
        if (left > POLL_MAX_NS)
            left = POLL_MAX_NS;
    }
    struct pollfd p = { .fd = fd, .events = events };
    struct timespec timeout = { .tv_sec = (time_t)(left / RLK_NS_PER_S),
                                .tv_nsec = (long)(left % RLK_NS_PER_S) };
    /* Ready, an error, a signal, or out of time: the next system call or clock check
     * finds out. */
    rlk_ppoll(&p, 1, &timeout, NULL);
    return true;
}

/* ---- poll loops */

enum rlk_conn_state rlk_conn_wait_ready(struct rlk_conn *conn, int64_t deadline)
{
    for (;;) {
        if (conn->state == RLK_CONN_OPENING)
            rlk_conn_opening_step(conn);
        if (conn->state != RLK_CONN_OPENING)
            return conn->state;
        int64_t due = rlk_conn_due(conn);
        if (due > deadline)
            due = deadline;
        if (!rlk_conn_poll(rlk_conn_fd(conn), rlk_conn_events(conn), due) &&
            due == deadline)
            rlk_conn_opening_time_out(conn);
    }
}

int rlk_conn_fd(const struct rlk_conn *conn)
{
    return conn->state == RLK_CONN_OPENING ? rlk_conn_opening_fd(conn) : conn->fd;
}

short rlk_conn_events(const struct rlk_conn *conn)
{
    if (conn->state == RLK_CONN_OPENING)
        return rlk_conn_opening_events(conn);
    if (conn->state == RLK_CONN_DEAD)
        return 0;
    return (short)(POLLIN | (rlk_conn_unsent(conn) > 0 ? POLLOUT : 0));
}

int64_t rlk_conn_due(const struct rlk_conn *conn)
{
    return conn->state == RLK_CONN_OPENING ? rlk_conn_opening_due(conn) : RLK_NEVER;
}

void rlk_conn_step(struct rlk_conn *conn)
{
    if (conn->state == RLK_CONN_OPENING)
        rlk_conn_opening_step(conn);
    if (conn->state != RLK_CONN_READY)
        return;
    bool ours = rlk_conn_has_socket(conn), open = ours && rlk_conn_flush(conn);
    for (int i = 0; ours && i < READS_PER_STEP; i++) {
        size_t before = conn->partial_len;
        enum rlk_input input = rlk_conn_input(conn, MSG_DONTWAIT);
        if (input == RLK_INPUT_NONE)
            break;
        if (input == RLK_INPUT_END) {
            open = false;
            break;
        }
        if (conn->partial_len - before < READ_CHUNK && open)
            break; /* no more input */
    }
    /* Replies from before the end can still be taken. */
    if (!open)
        fail(conn, ENOTCONN);
}

struct rlk_reply *rlk_conn_take_reply(struct rlk_conn *conn)
{
    struct rlk_reply *reply;
    if (conn->state == RLK_CONN_OPENING)
        return NULL;
    switch (rlk_conn_parse(conn, &reply)) {
    case RLK_PARSED_REPLY:
        return reply;
    case RLK_PARSED_BAD:
        fail(conn, ENOTCONN);
        return NULL;
    case RLK_PARSED_NO_MEMORY:
        fail(conn, ENOMEM);
        return NULL;
    case RLK_PARSED_PARTIAL:
    default:
        return NULL;
    }
}

int rlk_conn_watch(struct rlk_conn *conn, int epoll_fd, bool on)
{
    struct epoll_event event = { .events = on ? EPOLLIN : 0 };

    if (!rlk_fd_is_ours(conn->fd))
        return EBADF;
    /* If the program has epoll_fd's number by now, its set does not contain this socket:
     * the call fails and changes nothing. */
    if (conn->watcher == epoll_fd &&
        epoll_ctl(epoll_fd, EPOLL_CTL_MOD, conn->fd, &event) == 0)
        return 0;
    if (!rlk_fd_is_ours(epoll_fd))
        return EBADF;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, conn->fd, &event) != 0)
        return errno;
    conn->watcher = epoll_fd;
    return 0;
}

/* The socket has nothing to read, and was not closed by the peer. */
static bool is_silent(struct rlk_conn *conn)
{
    char c;
    if (rlk_conn_unsent(conn) > 0 || rlk_conn_unparsed(conn) > 0)
        return false;
    /* rule: P3 */
    /* A session ticket is no reason to close the connection. */
    if (conn->tls)
        return input_tls(conn, MSG_DONTWAIT) == RLK_INPUT_NONE &&
               !rlk_tls_has_part(conn->tls);
    return recv(conn->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

bool rlk_conn_idle_ok(struct rlk_conn *conn)
{
    int64_t rested = rlk_clock_boot() - conn->idle_since;

    if (conn->state != RLK_CONN_READY || rlk_conn_moved(conn) ||
        (rested > OURS_AFTER_NS && !rlk_fd_is_ours(conn->fd)))
        return false;
    return rested <= CHECK_AFTER_NS || is_silent(conn);
}

bool rlk_conn_look_at_tls(struct rlk_conn *conn, struct rlk_tls_facts *ret_facts)
{
    return conn->tls && rlk_tls_look(conn->tls, ret_facts);
}

/* ---- life */

int rlk_conn_start(struct rlk_conn **ret_conn, const struct rlk_conn_options *options,
                   int64_t deadline)
{
    struct rlk_conn *conn = calloc(1, sizeof(*conn));
    if (!conn)
        return ENOMEM;
    conn->label = options->endpoint->label;
    conn->whence = options->endpoint->whence;
    conn->of_cluster = options->endpoint->cluster.count > 0;
    conn->reply_limit = options->reply_limit;
    conn->skip.over = options->skip_over;
    conn->moves = options->moves;
    conn->moves_seen = options->moves_seen;
    conn->fd = conn->watcher = -1;
    conn->state = RLK_CONN_OPENING;
    if (rlk_conn_reset_reader(conn) != 0 ||
        rlk_conn_opening_create(conn, options, deadline) != 0) {
        rlk_conn_free(conn);
        return ENOMEM;
    }
    rlk_conn_opening_step(conn);
    *ret_conn = conn;
    return 0;
}

void rlk_conn_free(struct rlk_conn *conn)
{
    if (!conn)
        return;
    rlk_conn_close_fd(conn, conn->state != RLK_CONN_READY || rlk_conn_unsent(conn) > 0);
    rlk_conn_opening_free(conn->opening);
    if (conn->reader)
        redisReaderFree(conn->reader);
    rlk_reply_forget_spare(conn);
    rlk_conn_frame_forget(conn);
    free(conn->out);
    rlk_conn_sentinel_forget(conn->master);
    free(conn->redirect);
    free(conn);
}

bool rlk_conn_take_redirect(struct rlk_conn *conn, const char *text, size_t len)
{
    struct rlk_redirect found;

    if (!conn->of_cluster || !rlk_redirect_parse(&found, text, len))
        return false;
    if (!conn->redirect)
        conn->redirect = malloc(sizeof(*conn->redirect));
    if (conn->redirect)
        *conn->redirect = found;
    return conn->redirect != NULL;
}

const struct rlk_redirect *rlk_conn_redirect(const struct rlk_conn *conn)
{
    return conn->redirect;
}

bool rlk_conn_is_of_cluster(const struct rlk_conn *conn)
{
    return conn->of_cluster;
}

enum rlk_conn_state rlk_conn_state(const struct rlk_conn *conn)
{
    return conn->state;
}

enum rlk_failure rlk_conn_failure(const struct rlk_conn *conn)
{
    return conn->failure;
}

int rlk_conn_error_code(const struct rlk_conn *conn)
{
    switch (conn->failure) {
    case RLK_FAIL_ACCESS:
        return EACCES;
    case RLK_FAIL_PROTOCOL:
        return EPROTO;
    case RLK_FAIL_NOT_SENT:
    case RLK_FAIL_UNKNOWN:
    case RLK_FAIL_LOCAL:
    case RLK_FAIL_NONE:
    default:
        return conn->local_code;
    }
}

const char *rlk_conn_error_text(const struct rlk_conn *conn)
{
    return conn->text;
}

int64_t rlk_conn_clock_offset_us(const struct rlk_conn *conn)
{
    return conn->clock_offset_us;
}

void rlk_conn_note_time(struct rlk_conn *conn, int64_t server_us, int64_t sent_boot_ns)
{
    conn->clock_offset_before_us = conn->clock_offset_us;
    conn->clock_offset_us = server_us - sent_boot_ns / 1000;
}

void rlk_conn_forget_time(struct rlk_conn *conn)
{
    conn->clock_offset_us = conn->clock_offset_before_us;
}

int64_t rlk_conn_asked_at(const struct rlk_conn *conn)
{
    return conn->asked_at;
}

int64_t rlk_conn_idle_since(const struct rlk_conn *conn)
{
    return conn->idle_since;
}

void rlk_conn_rest(struct rlk_conn *conn, int64_t now)
{
    conn->idle_since = now;
}
