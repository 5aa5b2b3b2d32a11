/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deaths of other processes of this host (rules G9, G10): while a client waits for a
 * lock, and once when it begins, it looks for files of clients that nobody keeps locked
 * any more, and gives back what those had at its server: it buries them. Which of many
 * does it is settled by the kernel's lock of the file; the others do nothing. It only
 * shortens waits: whatever goes wrong here, leases end things as before.
 *
 * A look is at one file: is it locked? One that is named by the kernel, as its last
 * reference goes, is looked at at once and thrice again, as its lock goes a moment later.
 * All files are looked at when it begins, and by and by where the kernel tells of none.
 * Thread: the watchdog, but for rlk_peer_watch_start and _end. Blocks: no network.
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
struct rlk_reply;
struct rlk_request;

/* The connection on which recovery has scripts run; whoever has it answers with
 * rlk_peer_watch_answered. Set by the client's watchdog. */
struct rlk_recovery_link {
    /* Appends the request, as the one that `op` is to be known by. False: there is no
     * connection now, no room or no memory. */
    bool (*send)(struct rlock_client *client, struct rlk_op *op,
                 const struct rlk_request *req, bool with_text, int64_t now);
    /* Whether requests can be appended. */
    bool (*ready)(const struct rlock_client *client);
};

struct rlk_peer_watch {
    const struct rlk_recovery_link *link;
    bool on;                  /* there is a directory to look at */
    bool begin;               /* all of it is to be looked at */
    int inotify_fd;           /* -1: there is none */
    uint64_t dev, ino;        /* of the directory that it watches */
    int64_t look_at;          /* all files once more; RLK_NEVER: the kernel tells */
    int64_t check_at;         /* whether anybody waits still; RLK_NEVER: not looking */
    unsigned waits_seen;      /* of the registry's waits_begun, at the last check */
    bool quiet;               /* nobody waited then */
    bool no_room;             /* a file waits for a burial to end */
    int64_t watch_until;      /* what the kernel tells is not given up before */
    int refused, told;        /* why the directory could not be used at the last check;
                                 what was said of it; 0: it could */
    bool answered;            /* something, since the last step */
    size_t in_flight;         /* requests of burials */
    struct rlk_list suspects; /* files to be looked at */
    struct rlk_list left; /* those that could not be buried, and wait for another try */
    struct rlk_list dead_processes; /* being buried */
    struct rlk_log_pace pace;
};

/* Before the watchdog has the client. */
void rlk_peer_watch_start(struct rlock_client *client,
                          const struct rlk_recovery_link *link);
/* Does what is due; returns when to be called again at the latest. *ret_wanted is set
 * where a connection is needed. */
int64_t rlk_peer_watch_step(struct rlock_client *client, int64_t now,
                            bool *ret_need_conn);
/* The descriptor to be polled, or -1. */
int rlk_peer_watch_fd(const struct rlock_client *client);
/* Takes the answer to a burial; NULL: none will come. */
void rlk_peer_watch_answered(struct rlock_client *client, struct rlk_op *op,
                             const struct rlk_reply *reply);
/* This one could not be buried, and is about to be left to others. */
void rlk_peer_watch_left(struct rlock_client *client, const char *uuid, int64_t now);
/* The client leaves the watchdog: what is under way is left to others. */
void rlk_peer_watch_stop(struct rlock_client *client);
/* After that, by who closes the client: when it is closed, so is its descriptor. */
void rlk_peer_watch_end(struct rlock_client *client);

#endif
