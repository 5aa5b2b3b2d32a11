/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests as bytes. Most of a request to run a script is its head: the script's hash and
 * the keys, which depend on nothing but the script and the lock's name. A caller's
 * requests are about few locks at a time. So a connection keeps the newest heads, and a
 * request that has one costs a copy of its arguments. hiredis makes every other request.
 * Thread: that of the connection.
 */
#include "net/conn_impl.h"

#include "net/request.h"

#include <stdlib.h>
#include <string.h>

/* ---- by hiredis */

char *rlk_conn_frame_format(int argc, const char *const *argv, const size_t *argv_len,
                            size_t *ret_len)
{
    char *bytes = NULL;
    /* One allocation: the variant with an sds leaks its first one when its second
     * fails. */
    long long len =
        redisFormatCommandArgv(&bytes, argc, (const char **)(uintptr_t)argv, argv_len);
    if (len < 0)
        return NULL;
    *ret_len = (size_t)len;
    return bytes;
}

static char *format_request(const struct rlk_request *req, bool with_text,
                            size_t *ret_len)
{
    const char *argv[RLK_REQUEST_ARGS_MAX];
    size_t len[RLK_REQUEST_ARGS_MAX];
    char keys[RLK_REQUEST_KEYS_SIZE] RLK_UNINITIALIZED;

    rlk_request_words(req, with_text, argv, len, keys);
    return rlk_conn_frame_format(req->argc, argv, len, ret_len);
}

/* ---- heads */

static struct rlk_frame *find_frame(struct rlk_conn *conn, const struct rlk_request *req)
{
    for (int i = 0; i < RLK_FRAME_COUNT; i++) {
        struct rlk_frame *frame = &conn->frames[i];
        if (frame->head_len > 0 && frame->script == req->script &&
            frame->argc == req->argc && frame->name_len == req->name_len &&
            memcmp(frame->name, req->name, req->name_len) == 0)
            return frame;
    }
    return NULL;
}

/* Room for so many bytes behind the head. False: out of memory; the frame is as before.
 */
static bool need_room(struct rlk_frame *frame, size_t len)
{
    if (frame->size - frame->head_len >= len)
        return true;
    size_t size = frame->head_len + len + RLK_FRAME_SPARE;
    char *bytes = realloc(frame->bytes, size);
    if (!bytes)
        return false;
    frame->bytes = bytes;
    frame->size = size;
    return true;
}

static size_t put_word(char *buf, size_t at, const char *word, size_t len)
{
    at += rlk_request_announce(buf + at, '$', len);
    memcpy(buf + at, word, len);
    memcpy(buf + at + len, "\r\n", 2);
    return at + len + 2;
}

/* Writes the head of a request; returns its length. */
static size_t write_head(const struct rlk_request *req, char buf[RLK_FRAME_HEAD_MAX])
{
    const char *argv[RLK_REQUEST_ARGS_MAX];
    size_t len[RLK_REQUEST_ARGS_MAX];
    char keys[RLK_REQUEST_KEYS_SIZE] RLK_UNINITIALIZED;
    size_t at = rlk_request_announce(buf, '*', (size_t)req->argc);

    rlk_request_words(req, false, argv, len, keys);
    for (int i = 0; i < req->first_argument; i++)
        at = put_word(buf, at, argv[i], len[i]);
    return at;
}

/* Puts a new head in the place of the one that was made first. NULL: out of memory. */
static struct rlk_frame *make_frame(struct rlk_conn *conn, const struct rlk_request *req)
{
    char head[RLK_FRAME_HEAD_MAX] RLK_UNINITIALIZED;
    struct rlk_frame *frame = &conn->frames[conn->next_frame++ % RLK_FRAME_COUNT];

    frame->head_len = 0;
    size_t len = write_head(req, head);
    if (!need_room(frame, len + req->used))
        return NULL;
    memcpy(frame->bytes, head, len);
    frame->head_len = len;
    frame->script = req->script;
    frame->argc = req->argc;
    frame->name_len = req->name_len;
    memcpy(frame->name, req->name, req->name_len);
    return frame;
}

const char *rlk_conn_frame(struct rlk_conn *conn, const struct rlk_request *req,
                           bool with_text, size_t *ret_len, char **ret_owned)
{
    *ret_owned = NULL;
    if (!req->framed || with_text) {
        *ret_owned = format_request(req, with_text, ret_len);
        return *ret_owned;
    }
    struct rlk_frame *frame = find_frame(conn, req);
    if (!frame)
        frame = make_frame(conn, req);
    if (!frame || !need_room(frame, req->used))
        return NULL;
    memcpy(frame->bytes + frame->head_len, req->text, req->used);
    *ret_len = frame->head_len + req->used;
    return frame->bytes;
}

void rlk_conn_frame_forget(struct rlk_conn *conn)
{
    for (int i = 0; i < RLK_FRAME_COUNT; i++) {
        free(conn->frames[i].bytes);
        conn->frames[i] = (struct rlk_frame){ 0 };
    }
}
