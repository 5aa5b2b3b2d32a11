/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to the server: the only user of hiredis, which is its codec and
 * nothing else, and the only owner of sockets. A connection is driven either by
 * rlk_conn_call (a caller's thread, one request at a time, absolute deadline) or by a
 * poll loop through rlk_conn_step (subscriber and watchdog: pipelined, never blocks).
 * It belongs to one thread at a time. Any error, timeout or protocol violation makes it
 * dead for good (failure mode 6): its socket is closed at once, with SO_LINGER 0, so
 * that what the kernel has not sent yet is not sent later.
 *
 * All instants are ns of CLOCK_BOOTTIME.
 */
#ifndef RLK_CONN_H
#define RLK_CONN_H

#include "net/url.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* For large objects of which only a small part is written and read: building hardened
 * (automatic variables zeroed) would cost more than the request. */
#ifdef __has_attribute
#if __has_attribute(uninitialized)
#define RLK_UNINITIALIZED __attribute__((uninitialized))
#endif
#endif
#ifndef RLK_UNINITIALIZED
#define RLK_UNINITIALIZED
#endif

struct rlk_conn;

enum rlk_conn_state {
    RLK_CONN_OPENING, /* resolving, connecting or in the handshake */
    RLK_CONN_READY,
    RLK_CONN_DEAD /* rlk_conn_failure tells why */
};

/* Why a connection is dead, or a request has no answer. */
enum rlk_failure {
    RLK_FAIL_NONE,
    RLK_FAIL_NOT_SENT, /* nothing of a request was sent: definitely not executed */
    RLK_FAIL_UNKNOWN,  /* after its first byte: outcome unknown */
    RLK_FAIL_ACCESS,   /* the handshake was refused: NOAUTH, WRONGPASS, NOPERM (EACCES) */
    RLK_FAIL_PROTOCOL, /* handshake answered by something that is no such server */
    RLK_FAIL_LOCAL     /* ENOMEM, EMFILE, ...: rlk_conn_error_code */
};

/* Of several connections to one server: how often one of them was told that what it leads
 * to is no master (any more). Then the others are of no use either, and a name is to be
 * resolved anew. */
struct rlk_moves {
    atomic_uint count;
    _Atomic int64_t counted_at; /* the last one */
};

struct rlk_conn_options {
    const struct rlk_target *target; /* outlives the connection */
    const char *name;                /* CLIENT SETNAME; already clean; NULL: none */
    bool only_ping;       /* AUTH and PING are the handshake: no request may follow */
    int64_t keepalive_ms; /* TCP_USER_TIMEOUT and keepalive idle time */
    /* Most bytes of one reply (give or take one read), and most elements of its arrays;
     * more is a protocol error. */
    size_t reply_limit;
    /* Strings of more bytes in it, which are of no use, are read past, and are NIL in the
     * reply; 0: none are. */
    size_t skip_over;
    /* The address that answered last, tried alone when len > 0 (reconnecting needs no
     * resolver then, but has no second address); filled when a connection becomes ready,
     * emptied when it fails; left alone for addresses that need no resolver. NULL: not
     * kept. Touched until the connection is ready or dead. Guarded by the caller. */
    struct sockaddr_storage *last_address;
    socklen_t *last_address_len;
    struct rlk_moves *moves; /* outlives the connection; NULL: not counted */
    unsigned moves_seen;     /* their count when last_address was looked at */
};

/*
 * Begins to connect: creates the object, resolves (or starts to), opens the first
 * non-blocking socket. The handshake is AUTH (if credentials), SELECT (if db != 0),
 * CLIENT SETNAME (a refusal is ignored), TIME; pipelined. Every address of a name gets
 * its share of the time left until `deadline`. 0 or ENOMEM; every later trouble makes it
 * DEAD. Blocks: no.
 */
int rlk_conn_start(struct rlk_conn **ret_conn, const struct rlk_conn_options *options,
                   int64_t deadline);

/* Drives an opening connection until it is ready or dead, or `deadline`, when it
 * becomes dead. Blocks: network. */
enum rlk_conn_state rlk_conn_wait_ready(struct rlk_conn *conn, int64_t deadline);

/* Closes the socket and frees. NULL is fine. Blocks: no. */
void rlk_conn_free(struct rlk_conn *conn);

enum rlk_conn_state rlk_conn_state(const struct rlk_conn *conn);
enum rlk_failure rlk_conn_failure(const struct rlk_conn *conn);
/* errno-like code for RLK_FAIL_LOCAL, else the code a caller would see (ENOTCONN, EACCES,
 * EPROTO). */
int rlk_conn_error_code(const struct rlk_conn *conn);
/* What went wrong, one line, without secrets. Valid until free. */
const char *rlk_conn_error_text(const struct rlk_conn *conn);

/* server TIME minus CLOCK_BOOTTIME, us, an upper bound: from the newest TIME seen,
 * counted from when its request left. Set by the handshake, raised or lowered by
 * rlk_conn_note_time. Valid once READY. */
int64_t rlk_conn_clock_offset_us(const struct rlk_conn *conn);
void rlk_conn_note_time(struct rlk_conn *conn, int64_t server_us, int64_t sent_boot_ns);

/* The server is no master: as rlk_conn_kill (NOT_SENT), and the move is counted, once for
 * all the connections that were opened before it, and not again for a while. */
void rlk_conn_leave(struct rlk_conn *conn, const char *text);
/* Whether a move was counted after moves_seen. */
bool rlk_conn_moved(const struct rlk_conn *conn);

/* ---- requests */

/* Appends one request to the output. 0 or ENOMEM (nothing appended). */
int rlk_conn_append(struct rlk_conn *conn, int argc, const char *const *argv,
                    const size_t *argv_len);
/* Bytes appended and not yet taken by the kernel. */
size_t rlk_conn_unsent(const struct rlk_conn *conn);

/* A parsed reply (hiredis's object behind accessors). What a server sent may have any
 * shape: an accessor of another type gives 0, "" or NULL. */
struct rlk_reply;
enum rlk_reply_type {
    RLK_REPLY_STRING, /* bulk */
    RLK_REPLY_ARRAY,
    RLK_REPLY_INTEGER,
    RLK_REPLY_NIL,
    RLK_REPLY_STATUS,
    RLK_REPLY_ERROR,
    RLK_REPLY_OTHER /* RESP3 types: never asked for */
};
enum rlk_reply_type rlk_reply_type(const struct rlk_reply *reply);
int64_t rlk_reply_integer(const struct rlk_reply *reply);
/* of STRING, STATUS, ERROR: NUL-terminated, may hold NULs. */
const char *rlk_reply_string(const struct rlk_reply *reply, size_t *ret_len);
size_t rlk_reply_count(const struct rlk_reply *reply);
const struct rlk_reply *rlk_reply_at(const struct rlk_reply *reply, size_t i);
/* The i-th element's text; NULL: there is none, or it is no STRING. */
const char *rlk_reply_text_at(const struct rlk_reply *array, size_t i, size_t *ret_len);
void rlk_reply_free(struct rlk_reply *reply);
/* The same for a reply of this connection, which is the caller's: it may use the memory
 * for the next, so that a caller's thread has none of it left. NULL: harmless. */
void rlk_reply_give_back(struct rlk_conn *conn, struct rlk_reply *reply);

/*
 * Sends one request and waits for its one reply. 0 with *ret_reply (which may be an
 * ERROR reply) and *ret_sent (just before the first byte left, also set on failure); else
 * RLK_FAIL_NOT_SENT or RLK_FAIL_UNKNOWN or RLK_FAIL_LOCAL, and the connection is dead
 * (when there was no memory or no time to begin, it lives on). Not restarted or prolonged
 * by signals or single bytes. Blocks: network, until `deadline`.
 */
enum rlk_failure rlk_conn_call(struct rlk_conn *conn, int argc, const char *const *argv,
                               const size_t *argv_len, int64_t deadline,
                               struct rlk_reply **ret_reply, int64_t *ret_sent);
/* When the newest of these calls began; 0: there was none. */
int64_t rlk_conn_asked_at(const struct rlk_conn *conn);

/* ---- poll loops */

/* What to poll for now; fd -1: nothing (dead, or opening and waiting for rlk_conn_due:
 * poll ignores it). An opening connection may change its fd between calls. */
int rlk_conn_fd(const struct rlk_conn *conn);
short rlk_conn_events(const struct rlk_conn *conn);
/* When rlk_conn_step wants to run without an event (opening: the share of the address in
 * turn); RLK_NEVER else. */
int64_t rlk_conn_due(const struct rlk_conn *conn);
/* Progress without blocking: connects, shakes hands, writes what it can, reads what is
 * there (bounded per call). Call it after poll, and after appending, to send at once. */
void rlk_conn_step(struct rlk_conn *conn);
/* The next reply that was read, or NULL. Handshake replies are not seen here. The caller
 * frees it. To be called until NULL after each step, also when that made the connection
 * dead: what came before the end is still there (not after rlk_conn_kill). A reply that
 * is no RESP or too big makes the connection dead here. */
struct rlk_reply *rlk_conn_take_reply(struct rlk_conn *conn);
/* Makes it dead, as after a timeout. */
void rlk_conn_kill(struct rlk_conn *conn, enum rlk_failure why, const char *text);

/* The epoll set watches its socket for input: from now on, when it tells what is there
 * already, too; or not for the moment, when it tells broken connections only. The socket
 * leaves the set before it is closed. Returns 0 or an errno. Blocks: no. */
int rlk_conn_watch(struct rlk_conn *conn, int epoll_fd, bool on);

/* Whether its socket is still at its number: the program may have closed it, and have
 * something else there. One system call. */
bool rlk_conn_is_ours(const struct rlk_conn *conn);

/* What its TLS is. False: it has none. */
bool rlk_conn_look_at_tls(struct rlk_conn *conn, struct rlk_tls_facts *ret_facts);

/* Whether an idle connection (no request under way) is still usable as far as can be seen
 * without a round trip: not closed by the peer, nothing unsolicited to read. */
bool rlk_conn_idle_ok(struct rlk_conn *conn);

#endif
