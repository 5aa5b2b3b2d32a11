/* SPDX-License-Identifier: Apache-2.0 */
/* Errors by which a node of a cluster names another node. No state. Thread: any. */
#ifndef RLK_REDIRECT_H
#define RLK_REDIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RLK_REDIRECT_HOST_SIZE = 254 };

struct rlk_redirect {
    enum {
        RLK_REDIRECT_NONE,
        RLK_REDIRECT_MOVED, /* the other node has the hash slot */
        RLK_REDIRECT_ASK    /* it is getting it, and has the keys of this request */
    } kind;
    unsigned hash_slot;
    uint16_t port;
    char host[RLK_REDIRECT_HOST_SIZE]; /* "": the host that sent the error; "?": it does
                                          not know its name */
};

/* Whether the server's error text is one of them. */
bool rlk_redirect_parse(struct rlk_redirect *ret_redirect, const char *text, size_t len);

#endif
