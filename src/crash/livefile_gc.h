/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of dead processes that nobody buries, and how files go: those of other servers,
 * whose users may come later, or be rlock-guard, and those that the server refuses to
 * give back, are marked with the time, and removed when nothing of them can be at a
 * server any more. Thread: the watchdog. Blocks: no network.
 */
#ifndef RLK_LIVEFILE_GC_H
#define RLK_LIVEFILE_GC_H

#include "crash/rundir.h"

#include <stdbool.h>
#include <sys/stat.h>

/* The file of this inode in the directory, open to write and locked; -1: it is another
 * one, or was taken, or is gone, or errno says what there is too little of. */
int rlk_livefile_gc_take(const struct rlk_rundir *dir, const char *name,
                         const struct stat *seen);
/* Writes the time into it, if it is not there. */
void rlk_livefile_gc_mark(int fd);
/* Whether it was marked so long ago that it may go. */
bool rlk_livefile_gc_is_old(int fd);
/* Unlinks it. Where that is not allowed, as another user's in a directory with the sticky
 * bit, it is emptied: it is no client's file then. fd: the file, open to write and
 * locked, so that no process maps it. Whether either was done. */
bool rlk_livefile_gc_remove(const struct rlk_rundir *dir, const char *name, int fd);
/* A dead one's of another server, open to read: marked, or removed when it is time for
 * that. False: it could not be. */
bool rlk_livefile_gc_mark_or_remove(const struct rlk_rundir *dir, const char *name,
                                    int fd, const struct stat *seen);
/* One that has no name yet: removed if its process died long ago while it made it. */
void rlk_livefile_gc_of_making(const struct rlk_rundir *dir, const char *name);

#endif
