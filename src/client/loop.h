/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread with a poll loop over all clients of the process: the common part of
 * subscriber and watchdog. The thread starts with the first member and ends with the
 * last. It sleeps in poll() on its members' sockets, a bell by which other threads wake
 * it, and an alarm of CLOCK_BOOTTIME, so that it runs at once after a suspend. If the
 * program closes the bell or the alarm, or opens something else at their numbers, the
 * thread opens new ones within a second.
 */
#ifndef RLK_LOOP_H
#define RLK_LOOP_H

#include "base/bell.h"
#include "base/list.h"
#include "base/sync.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rlk_loop_member {
    struct rlk_list link;
    bool leaving; /* guarded by the loop's mu */
    bool attached;
};

struct rlk_loop {
    /* immutable */
    const char *thread_name;
    /* Does the work due at `now`. Returns the latest time for the next call. */
    int64_t (*step)(struct rlk_loop_member *member, int64_t now);
    /* The descriptor to poll for the member, or -1. */
    int (*fd)(struct rlk_loop_member *member, short *ret_events);
    /* Another descriptor to poll for input, or -1; NULL: no member has one. */
    int (*other_fd)(struct rlk_loop_member *member);
    /* The member is not stepped any more. Runs on the thread. */
    void (*left)(struct rlk_loop_member *member);

    bool made; /* by rlk_loop_init */

    struct rlk_mutex mu;     /* protects all fields below; never held during a step */
    struct rlk_cond changed; /* signalled when a member left or the thread ended */
    struct rlk_list joining;
    size_t member_count; /* including joining ones */
    bool running, stop;
    uint64_t removals; /* members removed while the thread was in a step */
    rlk_thread_t thread;
    struct rlk_bell bell; /* open while running */

    /* used by the thread only */
    struct rlk_list members;
    int alarm_fd;
    bool bell_lost, alarm_lost; /* the program has closed it or replaced it */
    struct pollfd *fds;
    size_t fd_max;
    void *inherited; /* in a child: the list of the parents' fds, for leak checkers */
};

/* Prepares the loop before its first use. */
int rlk_loop_init(struct rlk_loop *loop);

/* Adds a member, and starts the thread if necessary; loop->bell wakes the thread.
 * Returns 0, EAGAIN, ENOMEM, EMFILE or ENFILE. */
int rlk_loop_join(struct rlk_loop *loop, struct rlk_loop_member *member);

/* Removes a member; returns when it is not stepped any more. Ends the thread with the
 * last member. May be called on the thread itself, also from within a step. */
void rlk_loop_leave(struct rlk_loop *loop, struct rlk_loop_member *member);

/* As rlk_loop_leave, without waiting: the member has left when rlk_loop_has_left says so,
 * or rlk_loop_leave returns; one of them has to be called. Not on the thread itself. */
void rlk_loop_send_off(struct rlk_loop *loop, struct rlk_loop_member *member);
/* Whether it is not stepped any more; not to be called again then. */
bool rlk_loop_has_left(struct rlk_loop *loop, struct rlk_loop_member *member);

/* Whether the calling thread is the loop's. */
bool rlk_loop_is_self(struct rlk_loop *loop);

/* In a child: the thread and the members are the parent's. */
void rlk_loop_forget(struct rlk_loop *loop);

#endif
