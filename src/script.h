/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to run a lock script, their answers decoded against a strict schema, and
 * errors sorted by what they say about execution (failure mode 10). Thread: any. */
#ifndef RLK_SCRIPT_H
#define RLK_SCRIPT_H

#include "conn.h"
#include "lua_scripts.h"
#include "name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rlk_script {
    const char *name;
    const char *sha;
    int key_count;
    enum rlk_key keys[RLK_KEY_COUNT];
    const char *text;
};
extern const struct rlk_script rlk_scripts[RLK_SCRIPT_COUNT];

/* ---- ids of acquisitions: <client uuid>:<thread>:<acquisition>:<letter><A><flags> */

enum { RLK_UUID_LEN = 36, RLK_ID_SIZE = 128 };

/* The acquisition's number is random, so that nobody can name an id who cannot read the
 * lock's keys or the traffic. It is not looked at by anybody else: other versions take any
 * digits. It has 16 of them:
 *   - always as many, so that requests keep their lengths (conn_frame.c);
 *   - no more, because Redis keeps a hash or sorted set with members of up to 64 bytes in
 *     its small form: a lock with a longer id takes 200 bytes more there. With a TTL of 4
 *     digits and without flags it is so up to thread 9999;
 *   - below 2^53, so that a reader who takes it for a floating-point number has it exact.
 * These are 52.8 bits. A number that comes twice could harm only while the first one is
 * held or marked as cancelled under the same name and thread: with 1,000 of such, once in
 * 8 * 10^12 acquisitions, where all but a hold or two are marks, which only have the
 * request refused and another number drawn. */
#define RLK_ID_NUMBER_FIRST UINT64_C(1000000000000000)
#define RLK_ID_NUMBER_COUNT UINT64_C(8000000000000000)
_Static_assert(RLK_ID_NUMBER_FIRST + RLK_ID_NUMBER_COUNT <= UINT64_C(1) << 53, "exact");

static inline uint64_t rlk_id_number(uint64_t random)
{
    return RLK_ID_NUMBER_FIRST + random % RLK_ID_NUMBER_COUNT;
}

struct rlk_id {
    uint64_t thread, acquisition; /* acquisition: rlk_id_number */
    uint32_t grant_ms;            /* A: the TTL of a grant to it */
    char letter;       /* m f r w; upper case with fencing */
    char flags[8]; /* lower-case letters, NUL-terminated; those of later versions too */
    uint16_t slot; /* of the acquisition in the guard's file (slots.h), from 1; 0: none */
};

/* Which of this process's it is. */
struct rlk_id_key {
    uint64_t thread, acquisition;
};

/* Writes it with NUL; returns its length. */
size_t rlk_id_write(char buf[RLK_ID_SIZE], const char *uuid, const struct rlk_id *id);
/* The same without uuid and colon. */
size_t rlk_id_write_local(char *buf, const struct rlk_id *id);
/* Whether `text` is an id of client `uuid`; flags of later versions are let through. */
bool rlk_id_parse(struct rlk_id *ret_id, const char *uuid, const char *text, size_t len);
bool rlk_id_equal(const struct rlk_id *a, const struct rlk_id *b);

static inline struct rlk_id_key rlk_id_key(const struct rlk_id *id)
{
    return (struct rlk_id_key){ id->thread, id->acquisition };
}

static inline bool rlk_id_is(const struct rlk_id *id, struct rlk_id_key key)
{
    return id->acquisition == key.acquisition && id->thread == key.thread;
}
/* Flags, in this order: the lock is marked for the case that its holder dies; the holder
 * wants to be told when somebody else wants the lock. */
enum { RLK_ID_ROBUST = 'b', RLK_ID_TELL = 'k' };
bool rlk_id_robust(const struct rlk_id *id);
bool rlk_id_tells(const struct rlk_id *id);

/* ---- requests */

enum { RLK_REQUEST_ARGS_MAX = 3 + RLK_KEY_COUNT + 14 };

/* Built on a stack. */
struct rlk_request {
    enum rlk_script_id script;
    int argc;
    const char *argv[RLK_REQUEST_ARGS_MAX];
    size_t len[RLK_REQUEST_ARGS_MAX];
    size_t used;
    char text[RLK_KEY_COUNT * RLK_KEY_SIZE + 10 * RLOCK_NAME_MAX];
};

/* Begins a request: script, keys of the lock `name` and the layout number. */
void rlk_request_init(struct rlk_request *req, enum rlk_script_id script,
                      const char *name, size_t name_len);
/* The argument is copied. */
void rlk_request_add(struct rlk_request *req, const char *text, size_t len);
/* It is not: the text has to live as long as the request. */
void rlk_request_add_borrowed(struct rlk_request *req, const char *text, size_t len);
void rlk_request_add_int(struct rlk_request *req, int64_t value);
void rlk_request_add_id(struct rlk_request *req, const char *uuid,
                        const struct rlk_id *id);
/* The channel on which Redisson's waiters for `name` listen. */
void rlk_request_add_channel(struct rlk_request *req, const char *name, size_t name_len);

/* ---- answers */

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
    int64_t sent;     /* just before the request left: CLOCK_BOOTTIME ns */
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

/* Decodes the reply of a pipelined request to run `script`. `fates` takes up to `fate_max` ids' fates;
 * more or fewer than fate_max is a violation. A reply of another form is REFUSED and
 * unreadable, and nobody else's matter: others' requests are on the same connection, and
 * whoever may write to one lock's keys can have its scripts answer anything. `text` (may
 * be NULL) receives a line about what is not DONE. */
void rlk_script_decode(struct rlk_conn *conn, const struct rlk_script *script,
                       const struct rlk_reply *reply, int64_t sent,
                       struct rlk_answer *ret_answer, struct rlk_fate *fates,
                       size_t fate_max, char *text, size_t text_size);

/* What a script answered has another form than its own: `wrong` says what of it. Sets the
 * thread's message, which names the lock, and returns EPROTO. */
int rlk_script_unreadable(const struct rlk_request *req, const char *wrong);

/* D of a lease of `ms` whose request left at `sent` (doc/design/times.md). */
int64_t rlk_lease_end(int64_t sent, int64_t ms);

/* Sorts a server's error text. Sets *ret_code. */
enum rlk_outcome rlk_script_sort_error(const char *text, size_t len, int *ret_code);

/* A command other than a script: a reply that is an ERROR is sorted and freed. */
void rlk_command_call(struct rlk_conn *conn, int argc, const char *const *argv,
                      const size_t *len, int64_t deadline, struct rlk_answer *ret_answer,
                      struct rlk_reply **ret_reply);

#endif
