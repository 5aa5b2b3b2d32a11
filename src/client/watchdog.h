/* SPDX-License-Identifier: Apache-2.0 */
/* The watchdog thread: renews leases, proves the presence of waiters, reports losses,
 * and finishes requests that callers abandoned at their deadlines. */
#ifndef RLK_WATCHDOG_H
#define RLK_WATCHDOG_H

#include "base/log.h"
#include "client/loop.h"
#include "net/conn.h"
#include "state/op.h"

/* A target's part; used by the thread only, except `member`. */
struct rlk_watch {
    struct rlk_loop_member member;
    struct rlk_conn *conn;
    bool wanted;  /* something is to be sent */
    bool opening; /* not yet known to be ready */
    bool been_ready;
    int64_t down_since; /* when a connection was first missing; 0: there is one */
    bool told_down; /* the missing connection was logged, although the mailbox is alive */
    int64_t tried_at; /* when the last attempt to connect began */
    int64_t retry_at;
    int backoff_ms;
    struct rlk_list ops;      /* requests in flight, in the order of sending */
    struct rlk_list unproven; /* renewals that were answered, until replicas confirm */
    struct rlk_op wait;       /* the WAIT in flight (P14) */
    unsigned few;             /* how many times WAITs have become longer */
    int64_t wait_ns;          /* how long it lasts at the server, */
    int64_t wait_until;       /* and until when at the latest */
    int64_t wait_at;          /* no other one is sent before */
    size_t op_count;
    bool crowded;      /* requests sent now belong to a burst; this and the next three: of
                          the client's own target alone */
    unsigned sent;     /* counts the requests of the client */
    unsigned changes;  /* of the cluster's map, before what is due was looked at */
    int64_t full_from; /* when the first of the last full batch was due */
    int64_t heard_at;  /* when the newest reply was read */
    int64_t op_deadline; /* no later than the earliest deadline in flight */
    struct sockaddr_storage address;
    socklen_t address_len;
    unsigned address_moves;   /* the count of moves at that time */
    unsigned moves_done;      /* the count after which all holds were asked about */
    struct rlk_log_pace pace; /* of refusals */
};

struct rlk_target;

/* Of a target that is new. Blocks: no. */
void rlk_watchdog_init(struct rlk_watch *watch);
/* As rlk_subscriber_join and _leave. */
int rlk_watchdog_join(struct rlk_target *target);
void rlk_watchdog_leave(struct rlk_target *target);
/* A lease of so many ms must be renewed and there is no connection: makes the next try
 * soon enough to save it. Thread: the watchdog. */
void rlk_watchdog_hurry(struct rlk_watch *watch, int64_t now, long lease_ms);
/* In a child: the thread is the parent's. */
void rlk_watchdog_forget(void);

#endif
