/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's live file in the directory of the crash guard (rules G1-G3, G7, G15). The
 * file's name is the client's uuid. It holds the client's intent table (intent.h) and is
 * locked as long as the client may live. The lock belongs to an open file description
 * that only a memory mapping keeps open: the program cannot close it by accident, a child
 * does not inherit it, and the kernel drops it with the last of the process's memory. A
 * process that gets the lock has proof that the client is dead; nothing else is such a
 * proof.
 *
 * The mapping outlives the file. When a client ends, the mapping is replaced in one step
 * by private memory, because a thread may still be about to write its intent. Thread:
 * any; only the client's composition root starts and ends a live file. Blocks: no
 * network.
 */
#ifndef RLK_LIVEFILE_H
#define RLK_LIVEFILE_H

#include "crash/rundir.h"
#include "net/cluster_ids.h"

#include <stddef.h>
#include <stdint.h>

struct rlock_client;

enum {
    RLK_LIVEFILE_HEADER = 4096, /* bytes before the intents: text, then NUL bytes */
    RLK_LIVEFILE_FULL_AT = RLK_LIVEFILE_HEADER - 128, /* a word: the table overflowed */
    RLK_LIVEFILE_SERVER_SIZE = 320,
    RLK_LIVEFILE_WHY_SIZE = 384
};

struct rlk_livefile {
    /* immutable from start to end */
    char dir[RLK_RUNDIR_SIZE]; /* "": there is no crash guard */
    char server[RLK_LIVEFILE_SERVER_SIZE];
    char why[RLK_LIVEFILE_WHY_SIZE]; /* why there is none */
    bool off;                        /* the user turned it off */
    void *map;
    size_t map_len;
    size_t text_len;              /* of the head without the nodes */
    struct rlk_cluster_ids nodes; /* of the client's cluster; the watchdog thread's */
};

/* Creates the file unless the crash guard is off. On failure client->livefile.why says
 * why. */
void rlk_livefile_start(struct rlock_client *client);
/* The client or its process ends. settled: no request of the client can reach a server
 * any more, so the file is removed; else the file stays for the process that recovers
 * it. */
void rlk_livefile_leave(struct rlock_client *client, bool settled);
/* Drops the lock. Call only after rlk_livefile_leave, when the client ends. */
void rlk_livefile_end(struct rlock_client *client);
/* Frees the mapping, which no thread uses any more. */
void rlk_livefile_free(struct rlock_client *client);
/* In a forked child: the mapping is the parent's and does not exist here. */
void rlk_livefile_forget(struct rlock_client *client);
/* The client has a map of its cluster: its file names these nodes from now on. Returns
 * whether that is news. Thread: the watchdog. */
bool rlk_livefile_know_nodes(struct rlock_client *client,
                             const struct rlk_cluster_ids *nodes);

/* ---- others' files */

struct rlk_livefile_head {
    char program[64], server[RLK_LIVEFILE_SERVER_SIZE];
    struct rlk_cluster_ids nodes; /* none: not of a cluster, or it knew no node yet */
    long pid;
    int64_t life_ms; /* how long its requests may still be on their way */
    bool full;       /* it may have held more than its intent table says */
};
/* Reads the head of the live file with this uuid. False: the file is not a live file. */
bool rlk_livefile_read(int fd, const char *uuid, struct rlk_livefile_head *ret_head);
/* Whether the file's client has the locks of the same server, or cluster, as this one.
 * Thread: the watchdog. */
bool rlk_livefile_is_same(const struct rlock_client *client,
                          const struct rlk_livefile_head *head);
/* Whether `name` is the name of a live file. */
bool rlk_livefile_is_name(const char *name);
/* Whether no process holds the lock of the file. */
bool rlk_livefile_is_free(int fd);
/* Takes the lock without waiting; fd must be open for writing. */
bool rlk_livefile_take(int fd);

#endif
