/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a connection share: conn.c (input and output), reply.c,
 * conn_open.c (the way to READY) and conn_hello.c (its handshake). Nobody else includes
 * this. */
#ifndef RLK_CONN_IMPL_H
#define RLK_CONN_IMPL_H

#include "net/conn.h"
#include "net/conn_skip.h"
#include "net/tls.h"

#include <sys/types.h>

/* Its inline functions do not compile without warnings of conversions. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <hiredis.h>
#pragma GCC diagnostic pop

/* hiredis 1.0 widened the count of elements. */
#if HIREDIS_MAJOR >= 1
typedef size_t rlk_element_count_t;
#else
typedef int rlk_element_count_t;
#endif

enum { RLK_CONN_PATIENCE_MS = 50 }; /* SO_RCVTIMEO */

struct rlk_conn_opening; /* conn_open.c */
struct rlk_reply_block;  /* reply.c */

/* A request that was sent, for the next one with as many arguments of the same lengths.
 */
enum { RLK_FRAME_COUNT = 4, RLK_FRAME_ARGS_MAX = 32, RLK_FRAME_SIZE_MAX = 4096 };
struct rlk_frame {
    char *bytes; /* hiredis's; NULL: none */
    size_t len;
    int argc;
    size_t arg_len[RLK_FRAME_ARGS_MAX], arg_at[RLK_FRAME_ARGS_MAX];
};

struct rlk_conn {
    /* immutable after start */
    const char *label;  /* of the target */
    const char *whence; /* the same; behind the label in messages about the server */
    size_t reply_limit;
    struct rlk_moves *moves; /* or NULL */
    unsigned moves_seen;

    enum rlk_conn_state state;
    int fd;                           /* -1: none */
    int watcher;                      /* the epoll set that has it; -1: none */
    struct rlk_conn_opening *opening; /* NULL unless OPENING */
    struct rlk_tls *tls;              /* between socket and bytes; NULL: nothing is */
    int64_t clock_offset_us;

    /* input */
    redisReader *reader;
    struct rlk_conn_skip skip;     /* what of the input does not reach it */
    struct rlk_reply_block *block; /* the newest of the reply being read; the reader's */
    struct rlk_reply_block *spare; /* for the next one, or NULL */
    size_t partial_len;            /* bytes of the reply that is not complete yet */
    size_t element_count;          /* announced by that reply's arrays */
    bool too_big;                  /* they were refused */
    bool grown; /* more than REDIS_READER_MAX_BUF was unparsed at a time */

    struct rlk_frame frames[RLK_FRAME_COUNT];
    unsigned next_frame;

    /* output that the kernel has not taken: out[out_at..out_len) */
    char *out;
    size_t out_at, out_len, out_size;
    bool requested;   /* a byte of some request has left */
    int64_t asked_at; /* when the newest call began */

    /* why it is dead */
    enum rlk_failure failure;
    int local_code;
    char text[256];
};

enum rlk_input {
    RLK_INPUT_DATA, /* the reader was fed */
    RLK_INPUT_NONE, /* nothing there at the moment, or a signal */
    RLK_INPUT_END   /* end of file or an error; conn->text says so */
};

enum rlk_parsed {
    RLK_PARSED_REPLY,
    RLK_PARSED_PARTIAL,
    RLK_PARSED_BAD,      /* no RESP, or over the bounds; conn->text says so */
    RLK_PARSED_NO_MEMORY /* the same for a reply that there was no memory for */
};

/* Sets the text without a change of state. */
void rlk_conn_explain(struct rlk_conn *conn, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes it dead, with the text as it stands. */
void rlk_conn_die(struct rlk_conn *conn, enum rlk_failure why, int local_code);

/* Whether its socket is still there: the program may have closed it, and have something
 * else at that number. Sets the text if not. */
bool rlk_conn_has_socket(struct rlk_conn *conn);

/* Closes the socket; abort: what is unsent or unanswered must not live on. */
void rlk_conn_close_fd(struct rlk_conn *conn, bool abort);

/* A fresh reader. 0 or ENOMEM: it has the one from before. */
int rlk_conn_reset_reader(struct rlk_conn *conn);

/* What makes the objects of a reader whose privdata is the connection. */
redisReplyObjectFunctions *rlk_reply_functions(void);
/* The connection ends. */
void rlk_reply_forget_spare(struct rlk_conn *conn);

/* Bytes that were read and belong to no reply that was taken. */
size_t rlk_conn_unparsed(const struct rlk_conn *conn);

/* One send. Bytes that the kernel took, 0 when it takes none now, -1 with the text set.
 */
ssize_t rlk_conn_send(struct rlk_conn *conn, const char *bytes, size_t len);

/* One recv with `flags`. */
enum rlk_input rlk_conn_input(struct rlk_conn *conn, int flags);

enum rlk_parsed rlk_conn_parse(struct rlk_conn *conn, struct rlk_reply **ret_reply);

/* Formats a request; the result is freed with redisFreeCommand. NULL: out of memory.
 */
char *rlk_conn_frame_format(int argc, const char *const *argv, const size_t *argv_len,
                            size_t *ret_len);
/* The same, at less cost where such a request was framed before. The bytes are the
 * connection's until the next call, or *ret_owned, to be freed, when that is not NULL. */
const char *rlk_conn_frame(struct rlk_conn *conn, int argc, const char *const *argv,
                           const size_t *argv_len, size_t *ret_len, char **ret_owned);
void rlk_conn_frame_forget(struct rlk_conn *conn);

/* Waits for `events` until `deadline`. False: it has passed. */
bool rlk_conn_poll(int fd, short events, int64_t deadline);

/* ---- handshake */

enum rlk_conn_hello_command {
    RLK_HELLO_AUTH,
    RLK_HELLO_SELECT,
    RLK_HELLO_SETNAME,
    RLK_HELLO_TIME,
    RLK_HELLO_PING,
    RLK_HELLO_COMMAND_COUNT
};

struct rlk_conn_hello {
    char *bytes;
    size_t len, at; /* at: taken by the kernel */
    int64_t sent;   /* when the first byte left */
    enum rlk_conn_hello_command commands[RLK_HELLO_COMMAND_COUNT];
    size_t count, answered;
};

enum rlk_conn_hello_result {
    RLK_HELLO_WAIT,
    RLK_HELLO_DONE,
    RLK_HELLO_FAILED, /* another address or another time may do better */
    RLK_HELLO_DENIED,
    RLK_HELLO_STRANGE, /* no server that we can use */
    RLK_HELLO_NO_MEMORY
};

/* Of a zeroed hello. 0 or ENOMEM; to be cleared in both cases. */
int rlk_conn_hello_init(struct rlk_conn_hello *hello,
                        const struct rlk_conn_options *options);
/* For another address. */
void rlk_conn_hello_rewind(struct rlk_conn_hello *hello);
void rlk_conn_hello_clear(struct rlk_conn_hello *hello);
/* Progress on a connected socket. Sets conn->text for all but WAIT and DONE. */
enum rlk_conn_hello_result rlk_conn_hello_step(struct rlk_conn *conn,
                                               struct rlk_conn_hello *hello,
                                               const struct rlk_target *target);

/* ---- opening */

/* The way to READY: one bit of progress, and the end of what it holds. */
int rlk_conn_opening_create(struct rlk_conn *conn, const struct rlk_conn_options *options,
                            int64_t deadline);
void rlk_conn_opening_step(struct rlk_conn *conn);
void rlk_conn_opening_free(struct rlk_conn_opening *opening);
int rlk_conn_opening_fd(const struct rlk_conn *conn);
short rlk_conn_opening_events(const struct rlk_conn *conn);
int64_t rlk_conn_opening_due(const struct rlk_conn *conn);
/* The deadline passed: sets the text and makes it dead. */
void rlk_conn_opening_time_out(struct rlk_conn *conn);

#endif
