/* SPDX-License-Identifier: Apache-2.0 */
/* An opening connection: what conn_open.c and conn_sentinel.c share. No other file
 * includes this. */
#ifndef RLK_CONN_OPEN_H
#define RLK_CONN_OPEN_H

#include "net/conn_impl.h"
#include "net/resolve.h"
#include "net/sentinel.h"

enum rlk_conn_phase {
    RLK_PHASE_ASK,   /* asking sentinels: conn_sentinel.c */
    RLK_PHASE_PAUSE, /* before they are asked again, at retry_at */
    RLK_PHASE_RESOLVE,
    RLK_PHASE_NEXT,    /* take the next address */
    RLK_PHASE_RETRY,   /* full backlog: try the same address again at retry_at */
    RLK_PHASE_CONNECT, /* under way */
    RLK_PHASE_TLS,     /* the handshake of TLS */
    RLK_PHASE_SHAKE    /* that of Redis: conn_hello.c */
};

struct rlk_conn_opening {
    struct rlk_conn_options options; /* its endpoint: that which a sentinel named, if one
                                        did */
    int64_t begun, deadline;
    int64_t due; /* of the current address */
    int64_t retry_at;
    enum rlk_conn_phase phase;

    bool by_sentinel;
    struct rlk_sentinel_ask *ask;      /* under way, or NULL */
    struct rlk_sentinel_chosen chosen; /* the last answer */
    unsigned silent_asks;              /* how many got no answer at all */
    int64_t chosen_at;                 /* when the last answer came */

    struct rlk_resolve *job;
    const struct addrinfo *next;
    bool has_single; /* `current` is still untried and needs no resolver */
    bool is_last;    /* `current` is the address that answered last */
    bool is_name;    /* the address comes from a name that was resolved */
    struct {
        struct sockaddr_storage storage;
        socklen_t len;
    } current;

    struct rlk_conn_hello hello;
};

/* Ends the whole attempt. */
void rlk_conn_opening_give_up(struct rlk_conn *conn, enum rlk_failure why,
                              int local_code);

/* ---- conn_sentinel.c */

/* Continues to ask. True: there is more to do now. */
bool rlk_conn_sentinel_ask(struct rlk_conn *conn);
/* No server that a sentinel named is a master: asks again after a pause. */
void rlk_conn_sentinel_again(struct rlk_conn *conn);
/* The server that a sentinel named is no master. */
void rlk_conn_sentinel_wrong(struct rlk_conn *conn);
/* Another connection found a newer master: asks again after a pause. */
void rlk_conn_sentinel_overtaken(struct rlk_conn *conn);
/* The connection is at a master. False: another connection found a newer one. */
bool rlk_conn_sentinel_ready(struct rlk_conn *conn);

#endif
