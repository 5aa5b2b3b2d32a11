/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's descriptors. All of them are close-on-exec and listed in a table, so that
 * the child of a fork closes them at once: a socket that a child keeps open looks alive
 * to the server after the parent's death.
 *
 * The program shares the descriptor numbers. It may redirect 0, 1 and 2, so the library's
 * descriptors are 3 or above. It may close all descriptors that it does not know
 * (closefrom) and open others at the same numbers. Therefore a module that kept a number
 * checks that the descriptor is still the library's before each use, and opens another
 * one if not. A number that the program closed is not used for another library descriptor
 * until the module that owned it closes it here.
 *
 * Thread: any. Locks: takes a mutex of its own, which nests in nothing; nothing blocks
 * under it.
 */
#ifndef RLK_FD_H
#define RLK_FD_H

#include <stdbool.h>
#include <sys/types.h>

/* Open as socket() and eventfd(0), nonblocking; rlk_fd_make opens whatever `make`
 * opens, and calls it with the mutex held. Return -1 with errno, which may be ENOMEM. */
int rlk_fd_socket(int family);
int rlk_fd_event(void);
int rlk_fd_made_by(int (*make)(void));
/* As openat, with O_CLOEXEC and O_NONBLOCK added. */
int rlk_fd_openat(int dir, const char *path, int flags, mode_t mode);
/* Moves a descriptor to 3 or above; negative values pass unchanged, with errno. The
 * caller closes the descriptor itself before rlk_fd_unhold. Call between rlk_fd_hold
 * and rlk_fd_unhold. */
int rlk_fd_raise(int fd);
/* Closes a descriptor whose close takes no time. A number that is not the library's
 * any more is left alone. */
void rlk_fd_close(int fd);
/* Closes a descriptor whose close may take long, as that of an inotify instance (Linux
 * waits until no other task uses its marks): no thread but the caller waits, */
void rlk_fd_close_slow(int fd);
/* or not even the caller: a thread of its own closes it if one can be started. */
void rlk_fd_close_aside(int fd);

/* ---- what the program may have closed. Each is one system call. Async-signal-safe. */

/* Whether the number still is a library descriptor. (Another thread of the program may
 * close it before the next use: nothing prevents that.) */
bool rlk_fd_is_ours(int fd);
/* Makes an event readable. False: the number is not the library's any more. */
bool rlk_fd_ring(int fd);
/* Makes an event or alarm unreadable. False: the number is not the library's any more,
 * or is not an event or alarm. */
bool rlk_fd_hush(int fd);

/* ---- around a fork */

/* Until rlk_fd_unhold no other thread opens or closes a library descriptor. */
void rlk_fd_hold(void);
void rlk_fd_unhold(void);
/* In a child: closes the parent's descriptors without sending anything to the peers.
 * late: the program ran on since the fork, at which rlk_fd_hold was not called, and
 * may have closed and opened anything; then only descriptors that are recognised are
 * closed. */
void rlk_fd_forget(bool late);

#endif
