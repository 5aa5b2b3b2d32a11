/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests as bytes. hiredis formats them, and most of that cost is the framing, which
 * depends only on the number and lengths of the arguments. A caller's requests have few
 * shapes. Therefore a connection stores the newest frame of each of a few shapes and
 * copies the next arguments of the same shape into it. Thread: that of the connection.
 */
#include "net/conn_impl.h"

#include <string.h>

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

/* Finds where each argument is in the frame: after the line that announces it, and
 * before a line end. */
static bool find_arguments(struct rlk_frame *frame)
{
    const char *p = frame->bytes, *end = frame->bytes + frame->len;

    p = memchr(p, '\n', (size_t)(end - p));
    for (int i = 0; p && i < frame->argc; i++) {
        p = memchr(p + 1, '\n', (size_t)(end - p - 1));
        if (!p || (size_t)(end - p - 1) < frame->arg_len[i] + 2)
            return false;
        frame->arg_at[i] = (size_t)(p + 1 - frame->bytes);
        p += 1 + frame->arg_len[i] + 1;
    }
    return p && p + 1 == end;
}

static struct rlk_frame *find_frame(struct rlk_conn *conn, int argc,
                                    const size_t *argv_len)
{
    for (int i = 0; i < RLK_FRAME_COUNT; i++) {
        struct rlk_frame *frame = &conn->frames[i];
        if (frame->bytes && frame->argc == argc &&
            memcmp(frame->arg_len, argv_len, (size_t)argc * sizeof(*argv_len)) == 0)
            return frame;
    }
    return NULL;
}

const char *rlk_conn_frame(struct rlk_conn *conn, int argc, const char *const *argv,
                           const size_t *argv_len, size_t *ret_len, char **ret_owned)
{
    *ret_owned = NULL;
    struct rlk_frame *frame =
        argc <= RLK_FRAME_ARGS_MAX ? find_frame(conn, argc, argv_len) : NULL;
    if (frame) {
        for (int i = 0; i < argc; i++)
            memcpy(frame->bytes + frame->arg_at[i], argv[i], argv_len[i]);
        *ret_len = frame->len;
        return frame->bytes;
    }
    char *bytes = rlk_conn_frame_format(argc, argv, argv_len, ret_len);
    if (!bytes || argc > RLK_FRAME_ARGS_MAX || *ret_len > RLK_FRAME_SIZE_MAX) {
        *ret_owned = bytes;
        return bytes;
    }
    frame = &conn->frames[conn->next_frame++ % RLK_FRAME_COUNT];
    redisFreeCommand(frame->bytes);
    frame->bytes = bytes;
    frame->len = *ret_len;
    frame->argc = argc;
    memcpy(frame->arg_len, argv_len, (size_t)argc * sizeof(*argv_len));
    if (!find_arguments(frame)) { /* unexpected form: not stored */
        frame->bytes = NULL;
        *ret_owned = bytes;
    }
    return bytes;
}

void rlk_conn_frame_forget(struct rlk_conn *conn)
{
    for (int i = 0; i < RLK_FRAME_COUNT; i++) {
        redisFreeCommand(conn->frames[i].bytes);
        conn->frames[i].bytes = NULL;
    }
}
