/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Skips useless bulk strings, those that are too long, before the codec stores them. The
 * output has a nil in place of each such string and is otherwise the input, byte by byte:
 * what is not RESP reaches the codec, which refuses it. Guarded by the connection's
 * owner.
 */
#ifndef RLK_CONN_SKIP_H
#define RLK_CONN_SKIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RLK_SKIP_HEAD_MAX = 24 /* the length of a line that announces a bulk string */ };

struct rlk_conn_skip {
    size_t over;   /* longer strings are skipped; 0: none */
    uint64_t left; /* bytes left of the current bulk string and its line end */
    bool drops;    /* the current string is skipped */
    bool amid_line;
    bool off; /* a line announced an invalid length: from then on everything passes */
    unsigned head_len;
    char head[RLK_SKIP_HEAD_MAX]; /* the beginning of such a line */
};

/* Copies what is to be read of the next bytes; returns how many bytes that are. */
size_t rlk_conn_skip_filter(struct rlk_conn_skip *skip, const char *bytes, size_t len,
                            void (*pass)(void *arg, const char *bytes, size_t len),
                            void *arg);

#endif
