/* SPDX-License-Identifier: Apache-2.0 */
/* The watchdog thread: renews leases, keeps waiters present, tells losses, finishes what
 * callers had to abandon. */
#ifndef RLK_WATCHDOG_H
#define RLK_WATCHDOG_H

#include "base/log.h"
#include "client/loop.h"
#include "net/conn.h"

/* A client's part; the thread's own, but for `member`. */
struct rlk_watch {
    struct rlk_loop_member member;
    struct rlk_conn *conn;
    bool opening; /* it was not seen to be ready yet */
    bool been_ready;
    int64_t down_since; /* when a connection was first wanted in vain; 0: there is one */
    bool told_down;     /* that there is none, though the mailbox is heard */
    int64_t tried_at;   /* when the last attempt to connect began */
    int64_t retry_at;
    int backoff_ms;
    struct rlk_list ops; /* requests in flight, in the order sent */
    size_t op_count;
    bool crowded;        /* those that are sent now are of a burst */
    int64_t full_from;   /* when the first of the last full batch was due */
    int64_t heard_at;    /* when the newest reply was read */
    int64_t op_deadline; /* no later than the earliest of theirs */
    struct sockaddr_storage address;
    socklen_t address_len;
    unsigned address_moves;   /* the count of moves then */
    struct rlk_log_pace pace; /* of what the server refuses */
};

struct rlock_client;

/* As rlk_subscriber_join and _leave. */
int rlk_watchdog_join(struct rlock_client *client);
void rlk_watchdog_leave(struct rlock_client *client);
/* A lease of so many ms is to be renewed, and there is no connection: the next try comes
 * soon enough to save it. Thread: the watchdog. */
void rlk_watchdog_hurry(struct rlk_watch *watch, int64_t now, long lease_ms);
/* In a child: the thread was the parent's. */
void rlk_watchdog_forget(void);

#endif
