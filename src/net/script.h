/* SPDX-License-Identifier: Apache-2.0 */
/* Runs lock scripts: their answers decoded against a strict schema, and errors sorted by
 * what they say about execution (failure mode 10). Thread: any. */
#ifndef RLK_SCRIPT_H
#define RLK_SCRIPT_H

#include "net/conn.h"
#include "net/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rlk_outcome {
    RLK_DONE,    /* the script ran; the answer is there */
    RLK_RETRY,   /* definitely not executed, may work later (or elsewhere) */
    RLK_REFUSED, /* trying again is no use: `code`. Not executed; or in part, if an ACL
                  * refused a command of it; or its answer cannot be read (EPROTO) */
    RLK_UNKNOWN, /* may have been executed, or may be later */
    RLK_NOSCRIPT /* of a pipelined request: send it again with its text */
};

enum rlk_what {
    RLK_HELD,
    RLK_SHARED, /* through another hold of the client, which was named */
    RLK_QUEUED,
    RLK_BUSY,
    RLK_GONE,
    RLK_LATE,
    RLK_MARKED,
    RLK_RELEASED,
    RLK_NOT_MINE,
    RLK_REMOVED,
    RLK_YOURS,
    RLK_UNRECOVERABLE
};

enum rlk_flags {
    RLK_WRITERS_WAIT = 1,
    RLK_READERS_WAIT = 2,
    RLK_FOREIGN_HOLDER = 4,
    RLK_OWNER_DIED = 8, /* of a robust lock that was given to an id of ours */
    RLK_UNHEARD = 16,   /* of a refresh: nobody listens to our mailbox there */
    RLK_WANTED = 32,    /* somebody else wants the lock who is in no queue */
    RLK_WILL_TELL = 64, /* of a renewal: a message will tell of those who come */
    RLK_OTHERS = RLK_WRITERS_WAIT | RLK_READERS_WAIT | RLK_WANTED,
    RLK_READ_OTHERS = RLK_WRITERS_WAIT | RLK_WANTED /* than those who read */
};

/* Where a hand-over that looked at as many waiters as it may is to go on: the tickets
 * behind which, in both queues; 0: from the head. */
struct rlk_cursor {
    int64_t queue, rqueue;
};
static inline bool rlk_cursor_set(struct rlk_cursor cursor)
{
    return cursor.queue != 0 || cursor.rqueue != 0;
}

enum { RLK_TOKEN_BLOCK = 1000 }; /* tokens of a block, at most; lua/lib/token.lua */

/* What became of one id. */
struct rlk_fate {
    enum rlk_what what;
    int64_t remaining_ms; /* HELD, SHARED, YOURS */
    int64_t ticket;       /* QUEUED */
    uint64_t token;       /* 0: none */
    unsigned token_count; /* of a renewal that asked for more: how many from it on */
};

struct rlk_answer {
    enum rlk_outcome outcome;
    int code; /* the caller's code when not DONE; the thread's message is set by _call */
    bool answered;    /* a reply came, whatever it says: the server is there */
    bool loaded;      /* the server had not known the script, and was sent it */
    bool key_refused; /* REFUSED, EACCES: it was about the key, not about a command */
    const char *unreadable; /* REFUSED, EPROTO: what of the reply is none of a script's;
                               else NULL */
    int64_t sent;           /* just before the request left: CLOCK_BOOTTIME ns */
    int64_t server_us;
    int64_t pttl_ms; /* of N; -2: free, -1: without TTL */
    unsigned flags;
    struct rlk_cursor more; /* set: a hand-over is to go on at once */
    size_t fate_count;
    struct rlk_fate fate; /* of the first id */
};

/*
 * Runs a script on a connection of the caller: EVALSHA, on NOSCRIPT once with the text.
 * When not DONE, the thread's message says why. If the connection broke it is dead. The
 * connection's clock offset follows the answer. Blocks: network, until `deadline`
 * (CLOCK_BOOTTIME).
 */
void rlk_script_call(struct rlk_conn *conn, const struct rlk_request *req,
                     int64_t deadline, struct rlk_answer *ret_answer);

/* The same for an answer of another shape (inspect): *ret_reply, owned by the caller,
 * when DONE. */
void rlk_script_call_raw(struct rlk_conn *conn, const struct rlk_request *req,
                         int64_t deadline, struct rlk_answer *ret_answer,
                         struct rlk_reply **ret_reply);

/* Appends a request to a pipeline, with the script's text if `with_text`. 0 or ENOMEM. */
int rlk_script_append(struct rlk_conn *conn, const struct rlk_request *req,
                      bool with_text);

/* Decodes the reply of a pipelined request to run `script`. `fates` takes up to
 * `fate_max` ids' fates; more or fewer than fate_max is a violation. A reply of another
 * form is REFUSED and unreadable, and nobody else's matter: others' requests are on the
 * same connection, and whoever may write to one lock's keys can have its scripts answer
 * anything. `text` (may be NULL) receives a line about what is not DONE. */
void rlk_script_decode(struct rlk_conn *conn, const struct rlk_script *script,
                       const struct rlk_reply *reply, int64_t sent,
                       struct rlk_answer *ret_answer, struct rlk_fate *fates,
                       size_t fate_max, char *text, size_t text_size);

/* What a script answered has another form than its own: `wrong` says what of it. Sets the
 * thread's message, which names the lock, and returns EPROTO. */
int rlk_script_unreadable(const struct rlk_request *req, const char *wrong);

/* Sorts a server's error text. Sets *ret_code. */
enum rlk_outcome rlk_script_sort_error(const char *text, size_t len, int *ret_code);

/* A command other than a script: a reply that is an ERROR is sorted and freed. */
void rlk_script_command(struct rlk_conn *conn, int argc, const char *const *argv,
                        const size_t *len, int64_t deadline,
                        struct rlk_answer *ret_answer, struct rlk_reply **ret_reply);

#endif
