/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of this host in which clients are seen to live, and to have died (rules
 * G4, G5). Whoever can write there can have live clients buried: so it is looked at each
 * time that it is opened, and nothing is done in one that others can write. No state.
 * Thread: any. */
#ifndef RLK_RUNDIR_H
#define RLK_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { RLK_RUNDIR_SIZE = 256 /* of a path, with NUL */ };

/* Which directory it is, made if it is the user's own. 0; ENOENT: there is none to be
 * used, and the thread's message says why, unless it was turned off, of which
 * *ret_off tells (may be NULL). */
int rlk_rundir_find(char path[RLK_RUNDIR_SIZE], bool *ret_off);

struct rlk_rundir {
    int fd;
    bool of_group; /* which may write there: so it may in what is made in it */
    gid_t group;
};

/* Opens it, as it is now. 0; else the thread's message says why not, and it is the errno
 * value of what failed, or EPERM of one that is not to be trusted. Closed by
 * rlk_fd_close. */
int rlk_rundir_open(struct rlk_rundir *ret_dir, const char *path);

#endif
