/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread with a poll loop over all clients of the process: what subscriber and watchdog
 * have in common. The thread starts with the first member and ends with the last. It
 * sleeps in poll() on its members' sockets, a bell by which others wake it, and an alarm
 * of CLOCK_BOOTTIME, so that it runs at once after a suspend. Where the program closes
 * bell or alarm, or has something else at their numbers, it makes new ones, a second
 * later at most.
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
    /* Does what is to be done at `now` and returns when to be called again at the latest.
     */
    int64_t (*step)(struct rlk_loop_member *member, int64_t now);
    /* The descriptor to poll for the member, or -1. */
    int (*fd)(struct rlk_loop_member *member, short *ret_events);
    /* Another one to be read, or -1; NULL: no member has one. */
    int (*other_fd)(struct rlk_loop_member *member);
    /* The member is stepped no more. Runs on the thread. */
    void (*left)(struct rlk_loop_member *member);

    bool made; /* by rlk_loop_init */

    struct rlk_mutex mu;     /* protects all below; never held during a step */
    struct rlk_cond changed; /* a member left, the thread ended */
    struct rlk_list joining;
    size_t member_count; /* joining ones too */
    bool running, stop;
    uint64_t removals; /* members taken out while the thread was in a step */
    rlk_thread_t thread;
    struct rlk_bell bell; /* open while running */

    /* the thread's own */
    struct rlk_list members;
    int alarm_fd;
    bool bell_lost, alarm_lost; /* it is not what it was */
    struct pollfd *fds;
    size_t fd_max;
    void *inherited; /* the parents' fds, in a child, each the next one's: not lost */
};

/* Prepares the loop before its first use. */
int rlk_loop_init(struct rlk_loop *loop);

/* Adds a member, starting the thread if need be; loop->bell wakes it. 0, EAGAIN, ENOMEM,
 * EMFILE, ENFILE. */
int rlk_loop_join(struct rlk_loop *loop, struct rlk_loop_member *member);

/* Takes a member out and returns when it is stepped no more. Ends the thread with the
 * last one. May be called on the thread itself, from within a step, too. */
void rlk_loop_leave(struct rlk_loop *loop, struct rlk_loop_member *member);

/* Whether the calling thread is the loop's. */
bool rlk_loop_is_self(struct rlk_loop *loop);

/* In a child: the thread and the members were the parent's. */
void rlk_loop_forget(struct rlk_loop *loop);

#endif
