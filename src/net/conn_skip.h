/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads past bulk strings that are too long to be of any use, before the codec keeps all
 * of one. The stream that it lets through has a nil in the place of each such string and
 * is otherwise what came, byte by byte: what is no RESP reaches the codec, which refuses
 * it.
 */
#ifndef RLK_CONN_SKIP_H
#define RLK_CONN_SKIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RLK_SKIP_HEAD_MAX = 24 /* of a line that announces a bulk string */ };

struct rlk_conn_skip {
    size_t over;   /* longer ones are read past; 0: none */
    uint64_t left; /* bytes of the bulk string that is passing, and the end of its line */
    bool drops;    /* it is one that is read past */
    bool amid_line;
    bool off; /* a line announces what is no length: all else is let through */
    unsigned head_len;
    char head[RLK_SKIP_HEAD_MAX]; /* the beginning of such a line */
};

/* Passes on what of the next bytes is to be read; returns how many those are. */
size_t rlk_conn_skip_filter(struct rlk_conn_skip *skip, const char *bytes, size_t len,
                            void (*pass)(void *arg, const char *bytes, size_t len),
                            void *arg);

#endif
