/* SPDX-License-Identifier: Apache-2.0 */
/* Runs lock scripts, decodes their replies by a strict schema, and sorts errors by
 * what they say about the execution (failure mode 10). No state. Thread: any. */
#ifndef RLK_SCRIPT_H
#define RLK_SCRIPT_H

#include "net/confirm.h"
#include "net/conn.h"
#include "net/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rlk_outcome {
    RLK_DONE,    /* the script ran and replied */
    RLK_RETRY,   /* definitely not executed; may work later or at another server */
    RLK_REFUSED, /* another try is useless: `code`. Not executed; or in part, if an ACL
                    refused one of its commands; or the reply is unreadable (EPROTO) */
    RLK_UNKNOWN, /* perhaps executed, perhaps executed later */
    RLK_NOSCRIPT /* of a pipelined request: send it again with its text */
};

enum rlk_what {
    RLK_HELD,
    RLK_SHARED, /* through another hold of the client, which the request named */
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
    RLK_OWNER_DIED = 8, /* robust: granted to an id of this client after a death */
    RLK_UNHEARD = 16,   /* of a refresh: the client's mailbox has no subscriber */
    RLK_WANTED = 32,    /* another process that is in no queue wants the lock */
    RLK_WILL_TELL = 64, /* of a renewal: a message will announce later waiters */
    RLK_OTHERS = RLK_WRITERS_WAIT | RLK_READERS_WAIT | RLK_WANTED,
    RLK_READ_OTHERS = RLK_WRITERS_WAIT | RLK_WANTED /* other than readers */
};

/* Where to continue a hand-over that looked at as many waiters as it may: the tickets
 * after which it continues, in both queues; 0: from the head. */
struct rlk_cursor {
    int64_t queue, rqueue;
};
static inline bool rlk_cursor_set(struct rlk_cursor cursor)
{
    return cursor.queue != 0 || cursor.rqueue != 0;
}

enum { RLK_TOKEN_BLOCK = 1000 }; /* the most tokens in a block; lua/lib/token.lua */

/* What happened to one id. */
struct rlk_fate {
    enum rlk_what what;
    int64_t remaining_ms; /* HELD, SHARED, YOURS */
    int64_t ticket;       /* QUEUED */
    uint64_t token;       /* 0: none */
    unsigned token_count; /* of a renewal that requested a block: how many tokens from
                             `token` on */
};

struct rlk_answer {
    enum rlk_outcome outcome;
    int code;      /* the code for the caller when not DONE; _call also sets the thread's
                      message */
    bool answered; /* a reply came, whatever it says: the server is alive */
    bool loaded;   /* the server did not know the script, so its text was sent */
    bool key_refused; /* REFUSED with EACCES: because of the key, not of a command */
    bool unconfirmed; /* UNKNOWN: the script gave a hold, and too few replicas confirmed
                         it */
    bool redirected; /* RETRY: another node of the cluster has the lock, or is getting it:
                        rlk_conn_redirect */
    bool split; /* RETRY: the hash slot is being moved, and only some of the keys are at
                   the node: it serves a request with one key (P20) */
    const char *
        unreadable; /* REFUSED with EPROTO: which part of the reply is wrong; else NULL */
    int64_t sent;   /* CLOCK_BOOTTIME ns, just before the request left */
    int64_t server_us;
    int64_t pttl_ms; /* of N; -2: free, -1: without TTL */
    unsigned flags;
    unsigned moves;         /* the count of moves that the connection had seen */
    struct rlk_cursor more; /* set: continue the hand-over at once */
    size_t fate_count;
    struct rlk_fate fate; /* of the first id */
};

/* Which replicas confirm what a script wrote. */
struct rlk_pool;
struct rlk_script_confirm {
    const struct rlk_confirm *wait;
    struct rlk_pool *pool; /* of the connection */
    /* how long it is kept though other threads wait for one, ns */
    _Atomic int64_t *patience;
};

/*
 * Runs a script on the caller's connection: EVALSHA, and once the text after NOSCRIPT.
 * When not DONE, the thread's message says why. A broken connection is dead. Updates the
 * connection's clock offset. Blocks: network, until `deadline` (CLOCK_BOOTTIME).
 *
 * `by`, if it is not NULL: has a WAIT behind the script. An answer that gives a hold is
 * DONE only if the WAIT is satisfied (P12); else UNKNOWN.
 */
void rlk_script_call(struct rlk_conn *conn, const struct rlk_request *req,
                     const struct rlk_script_confirm *by, int64_t deadline,
                     struct rlk_answer *ret_answer);
/* The same in two steps, for a script that seldom gives a hold: behind rlk_script_call of
 * a script that wrote, on the same connection. Sends nothing if the answer gives none. */
void rlk_script_confirm(struct rlk_conn *conn, const struct rlk_script_confirm *by,
                        int64_t deadline, struct rlk_answer *answer);

/* As rlk_script_call without `by`, at a node that is getting the lock's hash slot (P19).
 */
void rlk_script_call_asking(struct rlk_conn *conn, const struct rlk_request *req,
                            int64_t deadline, struct rlk_answer *ret_answer);

/* As rlk_script_call, for a reply of another shape (inspect). When DONE the caller
 * owns *ret_reply. */
void rlk_script_call_raw(struct rlk_conn *conn, const struct rlk_request *req,
                         int64_t deadline, struct rlk_answer *ret_answer,
                         struct rlk_reply **ret_reply);

/* Appends a request to a pipeline, with the script's text if `with_text`. Returns 0 or
 * ENOMEM. */
int rlk_script_append(struct rlk_conn *conn, const struct rlk_request *req,
                      bool with_text);

/* Decodes the reply to a pipelined request for `script`. `fates` takes the fates of
 * fate_max ids; another number is a violation. A reply of another form is REFUSED and
 * unreadable and affects no other request: those of other locks are on the same
 * connection, and a user who may write to one lock's keys can make its scripts reply
 * anything. `text` (may be NULL) gets a line when the outcome is not DONE. */
void rlk_script_decode(struct rlk_conn *conn, const struct rlk_script *script,
                       const struct rlk_reply *reply, int64_t sent,
                       struct rlk_answer *ret_answer, struct rlk_fate *fates,
                       size_t fate_max, char *text, size_t text_size);

/* Whether the reply says of each id that the lock is held. */
bool rlk_script_all_held(const struct rlk_reply *reply);

/* For a reply whose form is not that of the script: `wrong` says which part. Sets the
 * thread's message, which names the script and the lock, and returns EPROTO. */
int rlk_script_unreadable(const struct rlk_request *req, const char *wrong);

/* Sorts an error text of the server and sets *ret_code. */
enum rlk_outcome rlk_script_sort_error(const char *text, size_t len, int *ret_code);

/* Runs a command other than a script: sorts and frees an ERROR reply. */
void rlk_script_command(struct rlk_conn *conn, int argc, const char *const *argv,
                        const size_t *len, int64_t deadline,
                        struct rlk_answer *ret_answer, struct rlk_reply **ret_reply);

#endif
