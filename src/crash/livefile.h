/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's own file in the directory of the crash guard (rules G1-G3, G7, G15): named
 * by the client's uuid, with what it holds (intent.h), and locked as long as it may live.
 * The lock is that of an open file description which only a mapping keeps: no descriptor
 * to be closed by accident, nothing for a child to inherit; the kernel frees it with the
 * last of the process's memory. Who gets it has the proof of a death, and nothing else
 * is one.
 *
 * The mapping outlives the file's use: at the end of a client it is replaced, in one
 * step, by memory of the process's own, for a thread that is about to say that it is
 * inside, or not any more. Thread: any; making and ending are the client's composition
 * root's.
 */
#ifndef RLK_LIVEFILE_H
#define RLK_LIVEFILE_H

#include "crash/rundir.h"

#include <stddef.h>
#include <stdint.h>

struct rlock_client;

enum {
    RLK_LIVEFILE_HEADER = 4096, /* bytes in front of the slots: text, NUL behind it */
    RLK_LIVEFILE_FULL_AT =
        RLK_LIVEFILE_HEADER - 128, /* a word: a slot was wanted in vain */
    RLK_LIVEFILE_SERVER_SIZE = 320,
    RLK_LIVEFILE_WHY_SIZE = 384
};

struct rlk_livefile {
    /* immutable from start to end */
    char dir[RLK_RUNDIR_SIZE]; /* "": there is no guard */
    char server[RLK_LIVEFILE_SERVER_SIZE];
    char why[RLK_LIVEFILE_WHY_SIZE]; /* there is none */
    bool off;                        /* as was wished */
    void *map;
    size_t map_len;
};

/* Makes the file, if there is to be one; else client->guard.why says why not. */
void rlk_livefile_start(struct rlock_client *client);
/* The client ends, or its process. settled: nothing of it can be at the server any more,
 * so the file goes, too; else it is left for whoever finds that it is dead. */
void rlk_livefile_leave(struct rlock_client *client, bool settled);
/* Lets the lock go. Only after rlk_livefile_leave, when the client ends. */
void rlk_livefile_end(struct rlock_client *client);
/* The memory goes, which nobody uses any more. */
void rlk_livefile_free(struct rlock_client *client);
/* In a child: it was the parent's, and is not there. */
void rlk_livefile_forget(struct rlock_client *client);

/* ---- others' files */

struct rlk_livefile_head {
    char program[64], server[RLK_LIVEFILE_SERVER_SIZE];
    long pid;
    int64_t life_ms; /* of its requests that may still be under way */
    bool full;       /* it may have more than is in its table */
};
/* Reads the head of a file that is named by this uuid. False: it is none of ours. */
bool rlk_livefile_read(int fd, const char *uuid, struct rlk_livefile_head *ret_head);
/* Whether that is the name of a client's file. */
bool rlk_livefile_is_name(const char *name);
/* Whether nobody has the lock of the file. */
bool rlk_livefile_is_free(int fd);
/* Takes it, without waiting; fd is open to write. */
bool rlk_livefile_take(int fd);

#endif
