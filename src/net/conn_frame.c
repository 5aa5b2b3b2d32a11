/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests as bytes. hiredis makes them; most of what that costs goes into the framing,
 * which depends on nothing but the number and the lengths of the arguments. A caller's
 * requests are of a few shapes only. So a connection keeps the newest frame of each of a
 * few shapes, and puts the next arguments of the same shape into it.
 * Thread: that of the connection.
 */
#include "net/conn_impl.h"

#include <string.h>

char *rlk_conn_frame_format(int argc, const char *const *argv, const size_t *argv_len,
                            size_t *ret_len)
{
    char *bytes = NULL;
    /* one allocation; the form with an sds loses its first when its second fails */
    long long len =
        redisFormatCommandArgv(&bytes, argc, (const char **)(uintptr_t)argv, argv_len);
    if (len < 0)
        return NULL;
    *ret_len = (size_t)len;
    return bytes;
}

/* Finds where in the frame each argument is: behind a line that announces it, and before
 * the end of a line. */
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
    if (!find_arguments(frame)) { /* not as it should look: not for a second time */
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
