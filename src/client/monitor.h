/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listens to two of a client's sentinels for a switch of the master. When one of them
 * names another master, all connections of the client leave the present one, and find the
 * new one by asking all sentinels (conn_sentinel.c). A message is a hint: it moves no
 * connection to the address that it names. Sentinels that are silent change nothing.
 *
 * Thread: the subscriber.
 */
#ifndef RLK_MONITOR_H
#define RLK_MONITOR_H

#include "net/sentinel.h"

enum { RLK_MONITOR_SEATS = 2 };

/* A connection to one sentinel. */
struct rlk_monitor_seat {
    enum {
        RLK_MONITOR_DOWN,
        RLK_MONITOR_OPENING,
        RLK_MONITOR_ASKING,
        RLK_MONITOR_UP
    } state;
    struct rlk_sentinel_address sentinel;
    struct rlk_endpoint endpoint; /* refers to `sentinel` */
    struct rlk_conn *conn;
    int fd;                            /* its descriptor in the set; -1: none */
    unsigned replies;                  /* taken while it asks */
    struct rlk_sentinel_answer answer; /* the same */
    size_t next; /* the sentinel to try next, by its place in the list */
    int64_t retry_at, ping_at, answer_due;
    int backoff_ms;
    bool alone; /* there was no sentinel for it */
};

struct rlk_monitor {
    bool on;
    int set_fd;   /* the epoll set of the connections; -1: none */
    int64_t due;  /* when there is something to do, also without input */
    size_t first; /* the URL's sentinel to try first, by its place in the list */
    struct rlk_monitor_seat seats[RLK_MONITOR_SEATS];
    bool told;                               /* a sentinel named another master: */
    struct rlk_sentinel_address named, left; /* left: the one that was left last */
    int64_t leave_at;                        /* when that one may be left again */
    int pause_ms;
};

struct rlock_client;

void rlk_monitor_start(struct rlock_client *client);
void rlk_monitor_stop(struct rlock_client *client);
/* Does what is due at `now`. Returns when to call again. */
int64_t rlk_monitor_step(struct rlock_client *client, int64_t now);
/* The descriptor to poll for input; -1: none. */
int rlk_monitor_fd(const struct rlock_client *client);

#endif
