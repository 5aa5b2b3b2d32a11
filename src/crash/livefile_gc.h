/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes live files that no process recovers. Live files of other servers are marked
 * with the time, because processes that use those servers may start later (or be
 * rlock-guard); so are live files whose holds the server refuses to release. A marked
 * file is removed when no server can have anything of the dead process any more. No
 * state. Thread: the watchdog. Blocks: no network.
 */
#ifndef RLK_LIVEFILE_GC_H
#define RLK_LIVEFILE_GC_H

#include "crash/rundir.h"

#include <stdbool.h>
#include <sys/stat.h>

/* Opens the file with the inode `seen` for writing and locks it. -1: the name is
 * another file, or the file is locked or gone, or errno names a shortage. */
int rlk_livefile_gc_take(const struct rlk_rundir *dir, const char *name,
                         const struct stat *seen);
/* Writes the time into the file unless a mark is there. */
void rlk_livefile_gc_mark(int fd);
/* Whether the mark is so old that the file may be removed. */
bool rlk_livefile_gc_is_old(int fd);
/* Unlinks the file. Where that is forbidden (another user's file in a sticky
 * directory) it empties the file, which then is no live file any more. fd: the file,
 * open for writing and locked, so that no process maps it. Returns whether either
 * worked. */
bool rlk_livefile_gc_remove(const struct rlk_rundir *dir, const char *name, int fd);
/* Marks the file of a dead process that used another server, or removes it when its
 * time has come. fd is open for reading. False: neither worked. */
bool rlk_livefile_gc_mark_or_remove(const struct rlk_rundir *dir, const char *name,
                                    int fd, const struct stat *seen);
/* Removes a file without a final name if its process died long ago while creating it. */
void rlk_livefile_gc_of_making(const struct rlk_rundir *dir, const char *name);

#endif
