/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the watchdog in flight, and what a timer of the registry belongs to. */
#ifndef RLK_OP_H
#define RLK_OP_H

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rlk_hold;
struct rlk_reply;
struct rlk_steps;

/* What a timer of the registry is embedded in. */
enum rlk_timer_tag { RLK_TIMER_HOLD = 1, RLK_TIMER_LOCK, RLK_TIMER_LOOK };

enum rlk_op_kind {
    RLK_OP_NONE,
    RLK_OP_RENEW,
    RLK_OP_RELEASE,
    RLK_OP_DOWNGRADE,
    RLK_OP_REFRESH,     /* about a lock */
    RLK_OP_RENEW_READS, /* about a lock */
    RLK_OP_BURY,        /* about a dead process (peer_watch.h) */
    RLK_OP_WAIT         /* for replicas, behind renewals (P14) */
};

/* A request of the watchdog in flight. */
struct rlk_op {
    struct rlk_list link;
    struct rlk_hold *hold; /* with a reference; NULL: the request is a batch's */
    enum rlk_op_kind kind;
    int lease_ms;      /* RENEW, RENEW_READS: the shortest one in it */
    unsigned changes;  /* of the cluster's map, as counted before it was sent */
    bool asks;         /* RENEW: it asks who else wants the lock */
    bool alone;        /* a renewal or a release: it names one key (P20) */
    bool asking;       /* ASKING was sent in front of it: its reply comes first */
    bool crowded;      /* it is one of a burst of renewals */
    bool proven;       /* RENEW, RENEW_READS: enough replicas have confirmed it */
    bool few_replicas; /* the same: too few have so far. Guarded by the registry's mu */
    bool over;         /* the same: it ends without them */
    struct rlk_reply *kept; /* its reply, until replicas have confirmed it; or NULL */
    int64_t sent, deadline; /* CLOCK_BOOTTIME ns */
    int64_t quiet_since;    /* when its connection was last heard, as far as `deadline`
                               counts it */
    int64_t timeout;        /* ns */
};

/* A request of the watchdog that names several holds of a lock. */
struct rlk_batch {
    struct rlk_op op;
    bool with_text;          /* the next request brings the script's text */
    struct rlk_hold **holds; /* in flight, each with a reference */
    size_t count, size;
    struct rlk_steps *steps; /* a renewal with one key at a time (renewer_reads.c), until
                                it ends; or NULL */
};

#endif
