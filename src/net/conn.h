/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to the server. Only this module uses hiredis (as a codec and nothing
 * else) and owns sockets. A connection is driven either by rlk_conn_call (a caller's
 * thread: one request at a time, absolute deadline) or by a poll loop through
 * rlk_conn_step (subscriber and watchdog: pipelined, never blocks). It belongs to one
 * thread at a time and has no mutex. Every error, timeout or protocol violation makes it
 * dead for good (failure mode 6): its socket is closed at once with SO_LINGER 0, so that
 * the kernel sends nothing of it later.
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

/* For large objects of which only a small part is used: a hardened build would zero
 * all of it, which costs more than the request. */
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
    RLK_CONN_DEAD /* rlk_conn_failure says why */
};

/* Why a connection is dead or a request has no reply. */
enum rlk_failure {
    RLK_FAIL_NONE,
    RLK_FAIL_NOT_SENT, /* no byte of a request was sent: definitely not executed */
    RLK_FAIL_UNKNOWN,  /* failed after the first byte: outcome unknown */
    RLK_FAIL_ACCESS,   /* the server refused the handshake: NOAUTH, WRONGPASS, NOPERM
                          (EACCES) */
    RLK_FAIL_PROTOCOL, /* the other side is not a server of this protocol */
    RLK_FAIL_LOCAL     /* ENOMEM, EMFILE, ...: rlk_conn_error_code */
};

/* Shared by the connections to one server: counts how many times one of them learned
 * that its server is not (or no longer) a master. Then the others are useless, too,
 * and the host name must be resolved again. */
struct rlk_moves {
    atomic_uint count;
    _Atomic int64_t counted_at; /* when it last grew */
    /* Called when a connection has found another master. Locks: none is held. NULL: it is
     * not. */
    void (*tell)(struct rlk_moves *moves);
};

struct rlk_conn_options {
    const struct rlk_endpoint *endpoint; /* outlives the connection */
    const char *name;     /* for CLIENT SETNAME; already escaped; NULL: none */
    bool only_ping;       /* the handshake is AUTH and PING: no request may follow */
    bool in_loop;         /* the thread serves all clients, and should wait for no disk */
    int64_t keepalive_ms; /* TCP_USER_TIMEOUT and keepalive idle time */
    /* The largest reply in bytes (give or take one read), and the most elements of its
     * arrays; more is a protocol error. */
    size_t reply_limit;
    /* Longer strings in a reply are useless: they are skipped and read as NIL; 0: no
     * limit. */
    size_t skip_over;
    /* The address that answered last. If len > 0, only this address is tried:
     * reconnecting then needs no resolver, but has no second address. Filled when a
     * connection becomes ready, emptied when it fails; unused for addresses that need
     * no resolver. NULL: not stored. Used until the connection is ready or dead.
     * Guarded by the caller. */
    struct sockaddr_storage *last_address;
    socklen_t *last_address_len;
    struct rlk_moves *moves; /* outlives the connection; NULL: not counted */
    unsigned moves_seen;     /* its count when last_address was read */
};

/*
 * Begins to connect: creates the object, resolves the name (or begins to) and opens the
 * first nonblocking socket. The handshake is AUTH (with credentials), SELECT (if db !=
 * 0), CLIENT SETNAME (a refusal is ignored) and TIME, pipelined. Every address of a name
 * gets a share of the time until `deadline`. Returns 0 or ENOMEM; every later failure
 * makes the connection DEAD. Blocks: no.
 */
int rlk_conn_start(struct rlk_conn **ret_conn, const struct rlk_conn_options *options,
                   int64_t deadline);

/* Drives an opening connection until it is ready or dead; at `deadline` it becomes
 * dead. Blocks: network. */
enum rlk_conn_state rlk_conn_wait_ready(struct rlk_conn *conn, int64_t deadline);

/* Closes the socket and frees. NULL is fine. Blocks: no. */
void rlk_conn_free(struct rlk_conn *conn);

enum rlk_conn_state rlk_conn_state(const struct rlk_conn *conn);
enum rlk_failure rlk_conn_failure(const struct rlk_conn *conn);
/* The errno value of an RLK_FAIL_LOCAL, else the code for the caller (ENOTCONN,
 * EACCES, EPROTO). */
int rlk_conn_error_code(const struct rlk_conn *conn);
/* What failed, in one line without secrets. Valid until free. */
const char *rlk_conn_error_text(const struct rlk_conn *conn);

/* Server TIME minus CLOCK_BOOTTIME in us, as an upper bound: from the newest TIME
 * reply, counted from when its request left. Set by the handshake and updated by
 * rlk_conn_note_time. Valid once READY. */
int64_t rlk_conn_clock_offset_us(const struct rlk_conn *conn);
void rlk_conn_note_time(struct rlk_conn *conn, int64_t server_us, int64_t sent_boot_ns);
/* The newest TIME came in a reply that was read too late: the offset is what it was
 * before. Without a limit to the time of a round trip, the bound would be too high by
 * more than markers last (T3). */
void rlk_conn_forget_time(struct rlk_conn *conn);

/* The server is not a master. As rlk_conn_kill (NOT_SENT); also counts the move, once
 * for all connections opened before it, and not again for a while. */
void rlk_conn_leave(struct rlk_conn *conn, const char *text);
/* Counts a move for the connections that have seen this count. False: one was counted
 * since, or a moment ago. */
bool rlk_conn_count_move(struct rlk_moves *moves, unsigned seen);
/* Whether a move was counted after moves_seen. */
bool rlk_conn_moved(const struct rlk_conn *conn);
/* The count of moves that the connection has seen. */
unsigned rlk_conn_moves_seen(const struct rlk_conn *conn);
/* The server has executed a write. A server that sentinels named, and that refuses to say
 * whether it is a master, is one, then. False: another connection has found another
 * master since, and this one is dead. */
bool rlk_conn_prove(struct rlk_conn *conn);

/* rule: P19 */
/* Whether the error text names another node of the cluster. It is stored: the server has
 * not executed the request. Always false where the server is not of a cluster. */
struct rlk_redirect; /* redirect.h */
bool rlk_conn_take_redirect(struct rlk_conn *conn, const char *text, size_t len);
/* What was stored last; NULL: nothing. Valid until the next one. */
const struct rlk_redirect *rlk_conn_redirect(const struct rlk_conn *conn);
bool rlk_conn_is_of_cluster(const struct rlk_conn *conn);

/* ---- requests */

struct rlk_request; /* request.h: of a script */

/* Appends one command to the output. 0 or ENOMEM (nothing appended). */
int rlk_conn_append(struct rlk_conn *conn, int argc, const char *const *argv,
                    const size_t *argv_len);
/* The same for a script, with its text if `with_text`. */
int rlk_conn_append_script(struct rlk_conn *conn, const struct rlk_request *req,
                           bool with_text);
/* Bytes appended and not yet taken by the kernel. */
size_t rlk_conn_unsent(const struct rlk_conn *conn);

/* A parsed reply (hiredis's object behind accessors). A server may send any shape: an
 * accessor for another type gives 0, "" or NULL. */
struct rlk_reply;
enum rlk_reply_type {
    RLK_REPLY_STRING, /* bulk */
    RLK_REPLY_ARRAY,
    RLK_REPLY_INTEGER,
    RLK_REPLY_NIL,
    RLK_REPLY_STATUS,
    RLK_REPLY_ERROR,
    RLK_REPLY_OTHER /* types of RESP3, which is never requested */
};
enum rlk_reply_type rlk_reply_type(const struct rlk_reply *reply);
int64_t rlk_reply_integer(const struct rlk_reply *reply);
/* Of STRING, STATUS and ERROR: NUL-terminated, may contain NULs. */
const char *rlk_reply_string(const struct rlk_reply *reply, size_t *ret_len);
size_t rlk_reply_count(const struct rlk_reply *reply);
const struct rlk_reply *rlk_reply_at(const struct rlk_reply *reply, size_t i);
/* The i-th element's number. False: there is none, or it is no INTEGER. */
bool rlk_reply_integer_at(const struct rlk_reply *array, size_t i, int64_t *ret_value);
/* The i-th element's text; NULL: there is none, or it is no STRING. */
const char *rlk_reply_text_at(const struct rlk_reply *array, size_t i, size_t *ret_len);
void rlk_reply_free(struct rlk_reply *reply);
/* Frees a reply of this connection; the connection may use the memory for its next
 * reply, so that the caller's thread retains none. NULL: harmless. */
void rlk_reply_give_back(struct rlk_conn *conn, struct rlk_reply *reply);

/*
 * Sends one command and waits for its one reply. 0 with *ret_reply (which may be an
 * ERROR reply) and *ret_sent (just before the first byte left, also set on failure); else
 * RLK_FAIL_NOT_SENT or RLK_FAIL_UNKNOWN or RLK_FAIL_LOCAL, and the connection is dead
 * (when there was no memory or no time to begin, it lives on). Not restarted or prolonged
 * by signals or single bytes. Blocks: network, until `deadline`.
 */
enum rlk_failure rlk_conn_call(struct rlk_conn *conn, int argc, const char *const *argv,
                               const size_t *argv_len, int64_t deadline,
                               struct rlk_reply **ret_reply, int64_t *ret_sent);
/* The same for a script, with its text if `with_text`. */
enum rlk_failure rlk_conn_call_script(struct rlk_conn *conn,
                                      const struct rlk_request *req, bool with_text,
                                      int64_t deadline, struct rlk_reply **ret_reply,
                                      int64_t *ret_sent);
/* As rlk_conn_call, for a WAIT behind a reply on this connection: if none comes to it,
 * that says nothing about other connections. */
enum rlk_failure rlk_conn_call_behind(struct rlk_conn *conn, int argc,
                                      const char *const *argv, const size_t *argv_len,
                                      int64_t deadline, struct rlk_reply **ret_reply,
                                      int64_t *ret_sent);
/* The same for a script and, in the same write, a WAIT behind it (P11). On success both
 * replies are there. Otherwise the first may be: the server has answered the script. */
struct rlk_confirm_command; /* confirm.h */
enum rlk_failure rlk_conn_call_pair(struct rlk_conn *conn, const struct rlk_request *req,
                                    bool with_text,
                                    const struct rlk_confirm_command *second,
                                    int64_t deadline, struct rlk_reply *ret_replies[2],
                                    int64_t *ret_sent);
/* The same for a script, whose text goes along, at a node that is getting its hash slot:
 * ASKING is in front of it, in the same write (P19). */
enum rlk_failure rlk_conn_call_asking(struct rlk_conn *conn,
                                      const struct rlk_request *req, int64_t deadline,
                                      struct rlk_reply **ret_reply, int64_t *ret_sent);
/* When the newest of these calls began; 0: there was none. */
int64_t rlk_conn_asked_at(const struct rlk_conn *conn);

/* ---- poll loops */

/* The descriptor to poll now. -1: none (dead, or opening and waiting for
 * rlk_conn_due); poll ignores it. The descriptor of an opening connection may change
 * between calls. */
int rlk_conn_fd(const struct rlk_conn *conn);
short rlk_conn_events(const struct rlk_conn *conn);
/* When to call rlk_conn_step without an event (opening: when the current address's
 * share ends); else RLK_NEVER. */
int64_t rlk_conn_due(const struct rlk_conn *conn);
/* Makes progress without blocking: connects, shakes hands, writes, and reads a bounded
 * amount. Call it after poll, and after appending to send at once. */
void rlk_conn_step(struct rlk_conn *conn);
/* The next reply that was read, or NULL; never a reply of the handshake. The caller
 * frees it. Call until NULL after each step, also when the step made the connection
 * dead: replies before the end are still there (not after rlk_conn_kill). A reply that
 * is not RESP or too big makes the connection dead. */
struct rlk_reply *rlk_conn_take_reply(struct rlk_conn *conn);
/* Makes the connection dead, as after a timeout. */
void rlk_conn_kill(struct rlk_conn *conn, enum rlk_failure why, const char *text);

/* Adds the socket to the epoll set for input (input that is there already is reported,
 * too), or for errors only. The socket leaves the set before it is closed. Returns 0
 * or an errno value. Blocks: no. */
int rlk_conn_watch(struct rlk_conn *conn, int epoll_fd, bool on);

/* Its pool has it since `now`. */
void rlk_conn_rest(struct rlk_conn *conn, int64_t now);
int64_t rlk_conn_idle_since(const struct rlk_conn *conn);

/* What its TLS has agreed on. False: it has no TLS, or the process is exiting. */
bool rlk_conn_look_at_tls(struct rlk_conn *conn, struct rlk_tls_facts *ret_facts);

/* Whether an idle connection (no request under way) is still usable as far as can be seen
 * without a round trip: not closed by the peer, nothing unsolicited to read, its socket
 * still at its number, its server not moved. The longer it rested, the closer the look.
 */
bool rlk_conn_idle_ok(struct rlk_conn *conn);

#endif
