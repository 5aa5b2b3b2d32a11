/* SPDX-License-Identifier: Apache-2.0 */
/* The crash guard's directory on this host (rules G4, G5). A user who can write to it
 * could have the locks of live clients released. Therefore every open checks its owner
 * and mode, and a directory that other users can write to is not used. No state.
 * Thread: any. Blocks: no network. */
#ifndef RLK_RUNDIR_H
#define RLK_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { RLK_RUNDIR_SIZE = 256 /* of a path, with NUL */ };

/* Finds the directory, and creates it if it is the user's own. Returns 0, or ENOENT
 * when no directory can be used: then the thread's message says why. *ret_off (may be
 * NULL) says whether the user turned the crash guard off. */
int rlk_rundir_find(char path[RLK_RUNDIR_SIZE], bool *ret_off);

struct rlk_rundir {
    int fd;
    bool of_group; /* its group may write there, so it may write the files in it */
    gid_t group;
};

/* Opens the directory and checks it. Returns 0, the errno value of the failed step, or
 * EPERM for a directory that is not to be trusted; the thread's message says why.
 * Close it with rlk_fd_close. */
int rlk_rundir_open(struct rlk_rundir *ret_dir, const char *path);

#endif
