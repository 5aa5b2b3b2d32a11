/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of the threads that wait for a message reads the mailbox itself, in place of the
 * subscriber thread, which saves one thread switch for each hand-over. (Schmidt et al.,
 * "Leader/Followers", PLoP 2000.) The leader also handles messages for other threads. It
 * leaves as soon as its own wait is over or the subscriber needs the connection.
 *
 * The connection belongs to the leader from the moment when rlk_registry.leader is set
 * until it is NULL again, else to the subscriber, which lends it by mail_open.
 */
#ifndef RLK_LEADER_H
#define RLK_LEADER_H

#include <stdbool.h>
#include <stdint.h>

struct rlk_target;
struct rlk_thread;

/* Reads the mailbox until the calling thread is woken, or until `mono_end`
 * (CLOCK_MONOTONIC, ns; RLK_NEVER). False: another thread leads, or there is nothing
 * to read; it did not wait. Locks: holds the registry's mu, and drops it meanwhile.
 * Blocks: network. */
bool rlk_leader_begin_locked(struct rlk_target *target, struct rlk_thread *thread,
                             int64_t mono_end);

/* ---- for the subscriber thread. Locks: take the registry's mu. */

/* Takes the connection back. False: a waiting thread still leads. It continues if the
 * subscriber has no work (`work_due` says whether it has; channels are checked here);
 * else it is asked to leave, and wakes the subscriber when it does. */
bool rlk_leader_take_over(struct rlk_target *target, bool work_due);
/* Lends the mailbox to a waiting thread if the subscriber has no other work there. */
void rlk_leader_lend(struct rlk_target *target);
/* Ends leading: the client ends. */
void rlk_leader_end(struct rlk_target *target);

#endif
