/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's descriptors: all close on exec, and written down, so that the child of a
 * fork closes them at once. (A socket that a child kept open would look alive to the
 * server after its owner's death.)
 *
 * Descriptors are the program's as well. It may point 0, 1 and 2 elsewhere, so ours are
 * at 3 or above. It may close all that it does not know (closefrom), and have others at
 * those numbers a moment later: who has one looks whether it is still ours before each
 * use of a number that it has rested on, and makes another. A number that the program has
 * closed is not given to another one of ours until who had it closes it here.
 *
 * Thread: any. Locks: takes a mutex of its own, under which nothing blocks.
 */
#ifndef RLK_FD_H
#define RLK_FD_H

#include <stdbool.h>
#include <sys/types.h>

/* As socket and eventfd(0), not blocking, and whatever else `make` opens, which is called
 * with the mutex held; -1 with errno, ENOMEM among others. */
int rlk_fd_socket(int family);
int rlk_fd_event(void);
int rlk_fd_made_by(int (*make)(void));
/* As openat; O_CLOEXEC and O_NONBLOCK are added. */
int rlk_fd_openat(int dir, const char *path, int flags, mode_t mode);
/* One that is closed again before rlk_fd_unhold, and not by a function of these: at 3 or
 * above; negative: as it is, with errno. Locks: between rlk_fd_hold and rlk_fd_unhold. */
int rlk_fd_raise(int fd);
/* Closes one of these, which is a matter of a moment. What is not ours any more is left
 * alone. */
void rlk_fd_close(int fd);
/* Closes one for which the kernel may take its time, as for inotify's (Linux waits until
 * nobody looks at any mark any more): nobody but the caller waits for it, */
void rlk_fd_close_slow(int fd);
/* or not even he, but a thread of its own, where one is to be had. */
void rlk_fd_close_aside(int fd);

/* ---- what the program may have closed. One system call. Async-signal-safe. */

/* Whether the number is still that of a descriptor of ours. (Between this and its use
 * another thread of the program may close it: nothing can be done about that.) */
bool rlk_fd_is_ours(int fd);
/* Makes an event readable. False: it is not ours any more. */
bool rlk_fd_ring(int fd);
/* Takes the readability of an event or an alarm away. False: it is not ours any more, or
 * answers what those do not. */
bool rlk_fd_hush(int fd);

/* ---- around a fork */

/* No descriptor is opened or closed by others in between. */
void rlk_fd_hold(void);
void rlk_fd_unhold(void);
/* In a child: closes what is the parent's, without a word to the peers. late: the program
 * has run on since the fork, in which rlk_fd_hold was not called, and may have closed and
 * opened anything: only those that are known again are closed. */
void rlk_fd_forget(bool late);

#endif
