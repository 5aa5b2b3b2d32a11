/* SPDX-License-Identifier: Apache-2.0 */
/* Replies and errors of the lock scripts; see script.h. No state. Thread: any. */
#include "net/script.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/probe.h"
#include "net/script_impl.h"
#include "net/server_error.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors */

static bool begins(const char *text, size_t len, const char *prefix)
{
    size_t n = strlen(prefix);
    return len >= n && memcmp(text, prefix, n) == 0;
}

enum rlk_outcome rlk_script_sort_error(const char *text, size_t len, int *ret_code)
{
    static const char *const temporary[] = {
        "LOADING", "BUSY", "MASTERDOWN",  "READONLY", "NOREPLICAS",
        "MISCONF", "OOM",  "CLUSTERDOWN", "TRYAGAIN", "ERR max number of clients",
    };
    static const char *const access[] = { "NOAUTH", "WRONGPASS", "NOPERM", "DENIED" };

    for (size_t i = 0; i < sizeof(temporary) / sizeof(temporary[0]); i++) {
        if (rlk_server_error_begins(text, len, temporary[i])) {
            *ret_code = ENOTCONN;
            return RLK_RETRY;
        }
    }
    *ret_code = EACCES;
    for (size_t i = 0; i < sizeof(access) / sizeof(access[0]); i++)
        if (begins(text, len, access[i]))
            return RLK_REFUSED;
    if (rlk_server_error_by_acl(text, len)) /* also of a command inside a script */
        return RLK_REFUSED;
    if (memmem(text, len, "OOM command not allowed", 23) ||
        memmem(text, len, "Errors trying to SAVE", 21)) {
        *ret_code = ENOTCONN;
        return RLK_RETRY;
    }
    *ret_code = EPROTO;
    return RLK_REFUSED;
}

/* ---- replies */

void rlk_script_clear_answer(struct rlk_answer *answer, int64_t sent)
{
    memset(answer, 0, sizeof(*answer));
    answer->sent = sent;
    answer->pttl_ms = -2;
}

#define WORD(text, what)                                                                 \
    {                                                                                    \
        text, sizeof(text) - 1, what                                                     \
    }

#define HELD "held"

static bool decode_what(const struct rlk_reply *reply, size_t at, enum rlk_what *ret_what)
{
    static const struct {
        const char *text;
        size_t len;
        enum rlk_what what;
    } words[] = {
        WORD(HELD, RLK_HELD),          WORD("queued", RLK_QUEUED),
        WORD("busy", RLK_BUSY),        WORD("gone", RLK_GONE),
        WORD("late", RLK_LATE),        WORD("refused", RLK_MARKED),
        WORD("shared", RLK_SHARED),    WORD("released", RLK_RELEASED),
        WORD("notmine", RLK_NOT_MINE), WORD("removed", RLK_REMOVED),
        WORD("yours", RLK_YOURS),      WORD("unrecoverable", RLK_UNRECOVERABLE),
    };
    size_t len;
    const char *text = rlk_reply_text_at(reply, at, &len);

    for (size_t i = 0; text && i < sizeof(words) / sizeof(words[0]); i++) {
        if (len == words[i].len && memcmp(text, words[i].text, len) == 0) {
            *ret_what = words[i].what;
            return true;
        }
    }
    return false;
}

static bool decode_int(const struct rlk_reply *reply, size_t at, int64_t min, int64_t max,
                       int64_t *ret_value)
{
    int64_t value;

    if (!rlk_reply_integer_at(reply, at, &value) || value < min || value > max)
        return false;
    *ret_value = value;
    return true;
}

static bool decode_token(const struct rlk_reply *reply, size_t at, uint64_t *ret_token)
{
    size_t len;
    const char *text = rlk_reply_text_at(reply, at, &len), *p = text;

    if (!text)
        return false;
    *ret_token = 0;
    if (len == 0)
        return true;
    return rlk_id_read_number(&p, text + len, ret_token) && p == text + len;
}

/* The longest TTL that is believed: a foreign holder's may be anything. */
#define MS_MAX (INT64_C(1) << 40)
#define US_MAX (INT64_C(1) << 53)

/* Returns NULL, or which part is wrong. */
static const char *decode_fate(const struct rlk_reply *reply, size_t at,
                               struct rlk_fate *ret_fate)
{
    if (!decode_what(reply, at, &ret_fate->what))
        return "outcome";
    if (!decode_int(reply, at + 1, -2, INT64_MAX, &ret_fate->remaining_ms))
        return "lease";
    if (!decode_int(reply, at + 2, 0, US_MAX, &ret_fate->ticket))
        return "ticket";
    if (!decode_token(reply, at + 3, &ret_fate->token))
        return "token";
    if (ret_fate->remaining_ms > MS_MAX)
        ret_fate->remaining_ms = MS_MAX;
    if (ret_fate->what == RLK_HELD) {
        int64_t most = RLK_TOKEN_BLOCK;
        ret_fate->token_count =
            (unsigned)(ret_fate->ticket < most ? ret_fate->ticket : most);
        ret_fate->ticket = 0;
    }
    /* Held by this client without a TTL: another program made the key persistent; the
     * renewal sets the TTL again. */
    if ((ret_fate->what == RLK_HELD || ret_fate->what == RLK_SHARED ||
         ret_fate->what == RLK_YOURS) &&
        ret_fate->remaining_ms < 0)
        ret_fate->remaining_ms = 0;
    return NULL;
}

enum { HEAD_LEN = 4, FATE_LEN = 4 };

bool rlk_script_all_held(const struct rlk_reply *reply)
{
    size_t count = rlk_reply_count(reply), len;

    for (size_t at = HEAD_LEN; at + FATE_LEN <= count; at += FATE_LEN) {
        const char *what = rlk_reply_text_at(reply, at, &len);
        if (!what || len != strlen(HELD) || memcmp(what, HELD, len) != 0)
            return false;
    }
    return count >= HEAD_LEN + FATE_LEN;
}

/* Returns NULL, or which part is wrong. */
static const char *decode(const struct rlk_reply *reply, struct rlk_answer *answer,
                          struct rlk_fate *fates, size_t fate_max)
{
    int64_t flags;
    size_t count = rlk_reply_count(reply), end = HEAD_LEN + FATE_LEN * fate_max;

    /* Scripts of the read-write lock also say where to continue in the other queue. */
    if (rlk_reply_type(reply) != RLK_REPLY_ARRAY || (count != end && count != end + 1))
        return "form";
    if (count > end && !decode_int(reply, end, 0, US_MAX, &answer->more.rqueue))
        return "ticket";
    if (!decode_int(reply, 0, 1, US_MAX, &answer->server_us))
        return "time";
    if (!decode_int(reply, 1, -2, INT64_MAX, &answer->pttl_ms))
        return "lease";
    if (!decode_int(reply, 2, 0, INT32_MAX, &flags))
        return "flags";
    if (!decode_int(reply, 3, 0, US_MAX, &answer->more.queue))
        return "ticket";
    if (answer->pttl_ms > MS_MAX)
        answer->pttl_ms = MS_MAX;
    answer->flags = (unsigned)flags;
    answer->fate_count = fate_max;
    const char *wrong = NULL;
    for (size_t i = 0; !wrong && i < fate_max; i++)
        wrong = decode_fate(reply, HEAD_LEN + FATE_LEN * i, &fates[i]);
    return wrong;
}

#define UNREADABLE                                                                       \
    "unexpected reply from lock script %s (%s): the lock's keys may hold foreign data"

int rlk_script_unreadable(const struct rlk_request *req, const char *wrong)
{
    char shown[RLK_LOG_NAME_SIZE];

    rlk_log_name(shown, sizeof(shown), req->name, req->name_len);
    return rlk_error_set(EPROTO, "lock \"%s\": " UNREADABLE, shown,
                         rlk_scripts[req->script].name, wrong);
}

/* rule: P19 */
/* What the error of a node of a cluster means otherwise. */
static void sort_in_cluster(struct rlk_conn *conn, const char *text, size_t len,
                            struct rlk_answer *answer)
{
    static const char amid[] = "non local key";

    answer->redirected = rlk_conn_take_redirect(conn, text, len);
    if (answer->redirected) {
        answer->outcome = RLK_RETRY;
        answer->code = ENOTCONN;
    } else if (begins(text, len, "TRYAGAIN")) {
        answer->split = true;
    } else if (memmem(text, len, amid, sizeof(amid) - 1)) {
        answer->outcome = RLK_UNKNOWN; /* a command in the middle of a script */
        answer->code = ENOTCONN;
    }
}

/* Sorts an ERROR reply into the answer. script: the script that was sent, or NULL;
 * req: its request, whose lock the text names, or NULL. */
static void take_error(struct rlk_conn *conn, const char *command,
                       const struct rlk_script *script, const struct rlk_request *req,
                       const struct rlk_reply *reply, struct rlk_answer *answer,
                       char *text, size_t text_size)
{
    size_t len;
    const char *error = rlk_reply_string(reply, &len);
    answer->outcome = rlk_script_sort_error(error, len, &answer->code);
    if (rlk_conn_is_of_cluster(conn))
        sort_in_cluster(conn, error, len, answer);
    rlk_server_error_describe(text, text_size, command, script, req ? req->name : NULL,
                              req ? req->name_len : 0, error, len);
    answer->key_refused = answer->code == EACCES && rlk_server_error_of_key(error, len);
    /* This server is not (or no longer) a master: reconnect, perhaps to another. Redis
     * 6 reports it from within the script. */
    if (rlk_server_error_begins(error, len, "READONLY") ||
        rlk_server_error_begins(error, len, "MASTERDOWN"))
        rlk_conn_leave(conn, text);
}

static bool is_noscript(const struct rlk_reply *reply)
{
    size_t len;
    if (rlk_reply_type(reply) != RLK_REPLY_ERROR)
        return false;
    const char *text = rlk_reply_string(reply, &len);
    return begins(text, len, "NOSCRIPT");
}

void rlk_script_decode(struct rlk_conn *conn, const struct rlk_script *script,
                       const struct rlk_reply *reply, int64_t sent,
                       struct rlk_answer *ret_answer, struct rlk_fate *fates,
                       size_t fate_max, char *text, size_t text_size)
{
    char unused[8];
    if (!text) {
        text = unused;
        text_size = sizeof(unused);
    }
    rlk_script_clear_answer(ret_answer, sent);
    text[0] = '\0';
    if (is_noscript(reply)) {
        ret_answer->outcome = RLK_NOSCRIPT;
        ret_answer->code = EPROTO;
        return;
    }
    if (rlk_reply_type(reply) == RLK_REPLY_ERROR) {
        take_error(conn, "EVALSHA", script, NULL, reply, ret_answer, text, text_size);
        return;
    }
    const char *wrong = decode(reply, ret_answer, fates, fate_max);
    if (wrong) {
        rlk_script_clear_answer(ret_answer, sent);
        snprintf(text, text_size, UNREADABLE, script->name, wrong);
        ret_answer->outcome = RLK_REFUSED;
        ret_answer->code = EPROTO;
        ret_answer->unreadable = wrong;
        return;
    }
    ret_answer->outcome = RLK_DONE;
    if (fate_max > 0)
        ret_answer->fate = fates[0];
    rlk_conn_note_time(conn, ret_answer->server_us, sent);
}

int rlk_script_append(struct rlk_conn *conn, const struct rlk_request *req, bool text)
{
    RLK_PROBE1(request, rlk_scripts[req->script].name);
    return rlk_conn_append_script(conn, req, text);
}

/* No reply came: the answer and the thread's message say why. */
static __attribute__((noinline)) void
take_failure(struct rlk_conn *conn, enum rlk_failure failure, struct rlk_answer *answer)
{
    answer->outcome = failure == RLK_FAIL_UNKNOWN ? RLK_UNKNOWN : RLK_RETRY;
    answer->code = rlk_conn_error_code(conn);
    if (answer->code == 0)
        answer->code = ENOTCONN;
    if (answer->code != ENOTCONN && answer->outcome == RLK_RETRY &&
        failure != RLK_FAIL_NOT_SENT)
        answer->outcome = RLK_REFUSED;
    /* No time was left for this try: the message of an earlier try says more. */
    if (rlk_conn_state(conn) != RLK_CONN_READY || failure != RLK_FAIL_NOT_SENT ||
        !rlk_error_present())
        rlk_error_set(answer->code, "%s", rlk_conn_error_text(conn));
}

/* An error was answered: the answer and the thread's message say which. req: of a script,
 * else NULL. Kept out of line: the usual reply does not pay for it. */
static __attribute__((noinline)) void
sort_error_reply(struct rlk_conn *conn, const struct rlk_request *req,
                 const char *command, struct rlk_reply *reply, struct rlk_answer *answer)
{
    char text[RLK_SERVER_ERROR_SIZE];

    if (req && is_noscript(reply)) {
        answer->outcome = RLK_NOSCRIPT;
        answer->code = EPROTO;
    } else {
        take_error(conn, command, req ? &rlk_scripts[req->script] : NULL, req, reply,
                   answer, text, sizeof(text));
        rlk_error_set(answer->code, "%s", text);
    }
    rlk_reply_give_back(conn, reply);
}

bool rlk_script_sort_reply(struct rlk_conn *conn, const struct rlk_request *req,
                           const char *command, enum rlk_failure failure,
                           struct rlk_reply *reply, struct rlk_answer *answer)
{
    if (failure != RLK_FAIL_NONE) {
        take_failure(conn, failure, answer);
        return false;
    }
    answer->answered = true;
    if (rlk_reply_type(reply) != RLK_REPLY_ERROR)
        return true;
    sort_error_reply(conn, req, command, reply, answer);
    return false;
}

void rlk_script_command(struct rlk_conn *conn, int argc, const char *const *argv,
                        const size_t *len, int64_t deadline,
                        struct rlk_answer *ret_answer, struct rlk_reply **ret_reply)
{
    struct rlk_reply *reply = NULL;
    int64_t sent = 0;

    RLK_PROBE1(request, argv[0]);
    enum rlk_failure failure =
        rlk_conn_call(conn, argc, argv, len, deadline, &reply, &sent);
    rlk_script_clear_answer(ret_answer, sent);
    if (rlk_script_sort_reply(conn, NULL, argv[0], failure, reply, ret_answer))
        *ret_reply = reply;
}

/* The server does not know the script: it is sent the text. */
static void call_with_text(struct rlk_conn *conn, const struct rlk_request *req,
                           int64_t deadline, struct rlk_answer *ret_answer,
                           struct rlk_reply **ret_reply)
{
    struct rlk_reply *reply = NULL;
    int64_t sent = 0;

    RLK_PROBE1(request, rlk_scripts[req->script].name);
    enum rlk_failure failure =
        rlk_conn_call_script(conn, req, true, deadline, &reply, &sent);
    rlk_script_clear_answer(ret_answer, sent);
    if (rlk_script_sort_reply(conn, req, "EVAL", failure, reply, ret_answer))
        *ret_reply = reply;
    ret_answer->loaded = true;
    if (ret_answer->outcome != RLK_NOSCRIPT)
        return;
    ret_answer->outcome = RLK_REFUSED;
    rlk_error_set(ret_answer->code, "the server does not know a script that it just ran");
}

static inline void call_raw(struct rlk_conn *conn, const struct rlk_request *req,
                            int64_t deadline, struct rlk_answer *ret_answer,
                            struct rlk_reply **ret_reply)
{
    struct rlk_reply *reply = NULL;
    int64_t sent = 0;

    RLK_PROBE1(request, rlk_scripts[req->script].name);
    enum rlk_failure failure =
        rlk_conn_call_script(conn, req, false, deadline, &reply, &sent);
    rlk_script_clear_answer(ret_answer, sent);
    if (rlk_script_sort_reply(conn, req, "EVALSHA", failure, reply, ret_answer))
        *ret_reply = reply;
    else if (ret_answer->outcome == RLK_NOSCRIPT)
        call_with_text(conn, req, deadline, ret_answer, ret_reply);
}

void rlk_script_call_raw(struct rlk_conn *conn, const struct rlk_request *req,
                         int64_t deadline, struct rlk_answer *ret_answer,
                         struct rlk_reply **ret_reply)
{
    call_raw(conn, req, deadline, ret_answer, ret_reply);
}

static inline void take(struct rlk_conn *conn, const struct rlk_request *req,
                        struct rlk_reply *reply, struct rlk_answer *answer)
{
    char text[RLK_SERVER_ERROR_SIZE];
    bool loaded = answer->loaded;

    rlk_script_decode(conn, &rlk_scripts[req->script], reply, answer->sent, answer,
                      &answer->fate, 1, text, sizeof(text));
    answer->loaded = loaded;
    answer->answered = true;
    if (answer->unreadable)
        rlk_script_unreadable(req, answer->unreadable);
    else if (answer->outcome != RLK_DONE)
        rlk_error_set(answer->code, "%s", text);
    rlk_reply_give_back(conn, reply);
}

void rlk_script_take(struct rlk_conn *conn, const struct rlk_request *req,
                     struct rlk_reply *reply, struct rlk_answer *answer)
{
    take(conn, req, reply, answer);
}

void rlk_script_call(struct rlk_conn *conn, const struct rlk_request *req,
                     const struct rlk_script_confirm *by, int64_t deadline,
                     struct rlk_answer *ret_answer)
{
    struct rlk_reply *reply = NULL;

    if (by) {
        rlk_script_call_confirmed(conn, req, by, deadline, ret_answer);
        return;
    }
    call_raw(conn, req, deadline, ret_answer, &reply);
    if (ret_answer->outcome == RLK_DONE)
        take(conn, req, reply, ret_answer);
}

void rlk_script_call_asking(struct rlk_conn *conn, const struct rlk_request *req,
                            int64_t deadline, struct rlk_answer *ret_answer)
{
    struct rlk_reply *reply = NULL;
    int64_t sent = 0;

    RLK_PROBE1(request, rlk_scripts[req->script].name);
    enum rlk_failure failure = rlk_conn_call_asking(conn, req, deadline, &reply, &sent);
    rlk_script_clear_answer(ret_answer, sent);
    if (rlk_script_sort_reply(conn, req, "EVAL", failure, reply, ret_answer))
        take(conn, req, reply, ret_answer);
}
