/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a connection share: conn.c (input, poll loops), conn_call.c (output,
 * round trips), reply.c, conn_open.c (the way to READY) and conn_hello.c (its handshake).
 * Nobody else includes this. */
#ifndef RLK_CONN_IMPL_H
#define RLK_CONN_IMPL_H

#include "net/conn.h"
#include "net/conn_skip.h"
#include "net/request.h"
#include "net/tls.h"

#include <sys/types.h>

/* hiredis's inline functions cause warnings about conversions. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <hiredis.h>
#pragma GCC diagnostic pop

/* hiredis 1.0 widened the element count. */
#if HIREDIS_MAJOR >= 1
typedef size_t rlk_element_count_t;
#else
typedef int rlk_element_count_t;
#endif

enum { RLK_CONN_PATIENCE_MS = 50 }; /* SO_RCVTIMEO */

struct rlk_conn_opening; /* conn_open.h */
struct rlk_conn_master;  /* conn_sentinel.c */
struct rlk_reply_block;  /* reply.c */

/* The head of a request that was sent, for the next one of the same script about the same
 * lock; see conn_frame.c. */
enum {
    RLK_FRAME_COUNT = 4,
    RLK_FRAME_SPARE = 64, /* bytes for arguments that are a bit longer */
    RLK_FRAME_HEAD_MAX = RLK_REQUEST_KEYS_SIZE + 128 + RLK_KEY_COUNT * RLK_REQUEST_FRAMING
};
struct rlk_frame {
    char *bytes;     /* the head, and behind it the newest arguments; or NULL */
    size_t size;     /* of bytes */
    size_t head_len; /* 0: there is no head */
    enum rlk_script_id script;
    int argc; /* of the whole request */
    size_t name_len;
    char name[RLOCK_NAME_MAX];
};

struct rlk_conn {
    /* immutable after start */
    const char *label; /* the endpoint's */
    const char
        *whence; /* the endpoint's; follows the label in messages about the server */
    size_t reply_limit;
    struct rlk_moves *moves; /* or NULL */
    unsigned moves_seen;
    struct rlk_conn_master *master; /* the server that sentinels named; NULL: none */
    bool unproven; /* it is not known to be a master: it refuses ROLE and INFO */
    bool of_cluster;
    struct rlk_redirect *redirect; /* the newest one; NULL: none */

    enum rlk_conn_state state;
    int fd;                           /* -1: none */
    int watcher;                      /* the epoll set that contains fd; -1: none */
    struct rlk_conn_opening *opening; /* NULL unless OPENING */
    struct rlk_tls *tls;              /* between the socket and the codec; NULL: no TLS */
    int64_t clock_offset_us, clock_offset_before_us;

    /* input */
    redisReader *reader;
    struct rlk_conn_skip skip;     /* drops input that the reader must not see */
    struct rlk_reply_block *block; /* the newest of the reply being read; the reader's */
    struct rlk_reply_block *spare; /* for the next reply, or NULL */
    size_t partial_len;            /* bytes of the incomplete reply */
    size_t element_count;          /* announced by the arrays of that reply */
    bool too_big;                  /* the reply exceeded a limit */
    bool grown; /* at some time more than REDIS_READER_MAX_BUF was unparsed */

    struct rlk_frame frames[RLK_FRAME_COUNT];
    unsigned next_frame;

    /* output that the kernel has not taken: out[out_at..out_len) */
    char *out;
    size_t out_at, out_len, out_size;
    bool requested;   /* a byte of a request has left */
    int64_t asked_at; /* when the newest call began */
    int64_t idle_since;

    /* why it is dead */
    enum rlk_failure failure;
    int local_code;
    char text[256];
};

enum rlk_input {
    RLK_INPUT_DATA, /* the reader got data */
    RLK_INPUT_NONE, /* no data now, or a signal */
    RLK_INPUT_END   /* end of file or an error; conn->text says which */
};

enum rlk_parsed {
    RLK_PARSED_REPLY,
    RLK_PARSED_PARTIAL,
    RLK_PARSED_BAD,      /* not RESP, or over a limit; conn->text says which */
    RLK_PARSED_NO_MEMORY /* no memory for the reply */
};

/* Sets the text and nothing else. */
void rlk_conn_explain(struct rlk_conn *conn, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes the connection dead; the text stays. */
void rlk_conn_die(struct rlk_conn *conn, enum rlk_failure why, int local_code);
/* Of a dead connection: no reply can be taken any more. */
void rlk_conn_drop_input(struct rlk_conn *conn);

/* Whether the socket still exists: the program may have closed it and opened something
 * else at its number. Sets the text if not. */
bool rlk_conn_has_socket(struct rlk_conn *conn);

/* Closes the socket. abort: nothing unsent or unanswered may survive. */
void rlk_conn_close_fd(struct rlk_conn *conn, bool abort);

/* Creates a new reader. Returns 0, or ENOMEM with the old reader in place. */
int rlk_conn_reset_reader(struct rlk_conn *conn);

/* Creates the objects of a reader whose privdata is the connection. */
redisReplyObjectFunctions *rlk_reply_functions(void);
/* Call when the connection ends. */
void rlk_reply_forget_spare(struct rlk_conn *conn);

/* Bytes that were read and belong to no reply that was taken. */
static inline size_t rlk_conn_unparsed(const struct rlk_conn *conn)
{
    return conn->reader ? conn->reader->len - conn->reader->pos : 0;
}

/* One send. Returns how many of the bytes the kernel took; 0: none now; -1: failed, with
 * the text set. */
ssize_t rlk_conn_send(struct rlk_conn *conn, const char *bytes, size_t len);

/* One recv with `flags`. */
enum rlk_input rlk_conn_input(struct rlk_conn *conn, int flags);

enum rlk_parsed rlk_conn_parse(struct rlk_conn *conn, struct rlk_reply **ret_reply);

/* Sends what was appended, as far as the kernel takes it. False: it takes no more for
 * good.
 */
bool rlk_conn_flush(struct rlk_conn *conn);

/* Formats a command; the result is freed with redisFreeCommand. NULL: out of memory. */
char *rlk_conn_frame_format(int argc, const char *const *argv, const size_t *argv_len,
                            size_t *ret_len);
/* The bytes of a request. They are the connection's until the next call, or *ret_owned,
 * to be freed with redisFreeCommand, when that is not NULL. With `with_text` the script's
 * text goes along. NULL: out of memory. */
const char *rlk_conn_frame(struct rlk_conn *conn, const struct rlk_request *req,
                           bool with_text, size_t *ret_len, char **ret_owned);
void rlk_conn_frame_forget(struct rlk_conn *conn);

/* Waits for `events` until `deadline`. False: the deadline passed. */
bool rlk_conn_poll(int fd, short events, int64_t deadline);

/* ---- handshake */

enum rlk_conn_hello_command {
    RLK_HELLO_AUTH,
    RLK_HELLO_SELECT,
    RLK_HELLO_SETNAME,
    RLK_HELLO_TIME,
    RLK_HELLO_ROLE,
    RLK_HELLO_INFO,
    RLK_HELLO_PING,
    RLK_HELLO_COMMAND_COUNT
};

struct rlk_conn_hello {
    char *bytes;
    size_t len, at; /* at: how many bytes the kernel has taken */
    int64_t sent;   /* when the first byte left */
    enum rlk_conn_hello_command commands[RLK_HELLO_COMMAND_COUNT];
    size_t count, answered;
    bool needs_master; /* a sentinel named the server */
    bool is_master;    /* it says so */
    char refusal[256]; /* the server does not know a command; "": it does so far */
};

enum rlk_conn_hello_result {
    RLK_HELLO_WAIT,
    RLK_HELLO_DONE,
    RLK_HELLO_FAILED,    /* another address may work, or the same one later */
    RLK_HELLO_ELSEWHERE, /* the server is not a master now */
    RLK_HELLO_DENIED,
    RLK_HELLO_STRANGE, /* no usable server */
    RLK_HELLO_NO_MEMORY
};

/* Initialises a zeroed hello. Returns 0 or ENOMEM; clear it in both cases. */
int rlk_conn_hello_init(struct rlk_conn_hello *hello,
                        const struct rlk_conn_options *options);
/* Begins again for another address. */
void rlk_conn_hello_rewind(struct rlk_conn_hello *hello);
void rlk_conn_hello_clear(struct rlk_conn_hello *hello);
/* Makes progress on a connected socket. Sets conn->text for all results but WAIT and
 * DONE. */
enum rlk_conn_hello_result rlk_conn_hello_step(struct rlk_conn *conn,
                                               struct rlk_conn_hello *hello,
                                               const struct rlk_endpoint *endpoint);

/* ---- opening */

/* Options of a connected socket: for TCP, and for the caller's round trips. */
void rlk_conn_socket_prepare(int fd, bool is_tcp, int64_t keepalive_ms);
/* A socket can be connected to itself: at a port of the ephemeral range without a
 * listener. */
bool rlk_conn_socket_is_own_peer(int fd);

void rlk_conn_sentinel_forget(struct rlk_conn_master *master);

/* The way to READY: create, step, free. */
int rlk_conn_opening_create(struct rlk_conn *conn, const struct rlk_conn_options *options,
                            int64_t deadline);
void rlk_conn_opening_step(struct rlk_conn *conn);
void rlk_conn_opening_free(struct rlk_conn_opening *opening);
int rlk_conn_opening_fd(const struct rlk_conn *conn);
short rlk_conn_opening_events(const struct rlk_conn *conn);
int64_t rlk_conn_opening_due(const struct rlk_conn *conn);
/* The deadline passed: sets the text and makes the connection dead. */
void rlk_conn_opening_time_out(struct rlk_conn *conn);

#endif
