/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds dead processes of this host (rules G9, G10). While a client waits for a lock, and
 * once when waiting begins, the peer watch looks for live files whose lock is free, and
 * starts their recovery. Among several processes the kernel's lock of the file decides
 * which one recovers; the others do nothing. The peer watch only shortens waits: when
 * anything goes wrong here, leases end as they would without it.
 *
 * One look asks whether one file is locked. When the kernel reports the last close of a
 * file, the file is looked at immediately and three times more, because its lock is
 * dropped a moment after its last reference. All files are looked at when waiting begins,
 * and periodically where the kernel reports nothing. Thread: the watchdog, except
 * rlk_peer_watch_start and rlk_peer_watch_end. Blocks: no network.
 */
#ifndef RLK_PEER_WATCH_H
#define RLK_PEER_WATCH_H

#include "base/list.h"
#include "base/log.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct rlock_client;
struct rlk_op;
struct rlk_conn;
struct rlk_reply;
struct rlk_request;

/* The connections on which recovery runs its scripts. Its owner passes replies to
 * rlk_peer_watch_answered. Set by the client's watchdog. */
struct rlk_recovery_link {
    /* Appends the request and identifies it by `op`. False: no connection, no room or
     * no memory now. */
    bool (*send)(struct rlock_client *client, struct rlk_op *op,
                 const struct rlk_request *req, bool with_text, int64_t now);
    /* Whether requests can be appended. */
    bool (*ready)(struct rlock_client *client);
    /* Asks the nodes of the client's cluster for its map; rlk_peer_watch_located says
     * when there is news. */
    void (*locate)(struct rlock_client *client);
};

struct rlk_peer_watch {
    const struct rlk_recovery_link *link;
    bool on;           /* the guard's directory exists */
    bool begin;        /* look at all files */
    int inotify_fd;    /* -1: none */
    uint64_t dev, ino; /* of the watched directory */
    int64_t look_at;  /* when to look at all files again; RLK_NEVER: the kernel reports */
    int64_t check_at; /* when to check for waiting threads; RLK_NEVER: not looking */
    unsigned waits_seen; /* the registry's waits_begun at the last check */
    bool quiet;          /* no thread waited at the last check */
    bool no_room;        /* a file waits for another recovery to end */
    int64_t watch_until; /* the inotify watch stays at least so long */
    int refused, told;   /* why the directory was unusable at the last check, and what was
                            logged about that; 0: it was usable */
    bool answered;       /* an answer came since the last step */
    bool stranger; /* a dead process was of no cluster that is known to be this one */
    int64_t located_at;       /* when the cluster's map was last asked for; 0: never */
    size_t in_flight;         /* requests of recoveries */
    struct rlk_list suspects; /* files to look at */
    struct rlk_list left;     /* files that could not be recovered, until the next try */
    struct rlk_list dead_processes; /* in recovery */
    struct rlk_log_pace pace;
};

/* Call before the watchdog has the client. */
void rlk_peer_watch_start(struct rlock_client *client,
                          const struct rlk_recovery_link *link);
/* Does all due work. Returns the latest time for the next call. Sets *ret_need_conn
 * when a connection is needed. */
int64_t rlk_peer_watch_step(struct rlock_client *client, int64_t now,
                            bool *ret_need_conn);
/* The descriptor to poll, or -1. */
int rlk_peer_watch_fd(const struct rlock_client *client);
/* Takes the answer to a request of a recovery, which came on `conn`. reply NULL: no
 * answer will come. Returns whether another node of the cluster has the lock. */
bool rlk_peer_watch_answered(struct rlock_client *client, struct rlk_op *op,
                             struct rlk_conn *conn, const struct rlk_reply *reply);
/* The nodes of the client's cluster are known, or others than before. */
void rlk_peer_watch_located(struct rlock_client *client);
/* The process with this uuid could not be recovered; other processes may try. */
void rlk_peer_watch_left(struct rlock_client *client, const char *uuid, int64_t now);
/* The client leaves the watchdog. Unfinished recoveries are left to other processes. */
void rlk_peer_watch_stop(struct rlock_client *client);
/* Call after rlk_peer_watch_stop and after the live file has gone, in the thread that
 * closes the client: closes the descriptor, which may take the kernel long. */
void rlk_peer_watch_end(struct rlock_client *client);

#endif
