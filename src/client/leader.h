/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of the threads that wait for a message reads the mailbox itself, in place of the
 * subscriber thread: one switch of threads less for each hand-over. (Schmidt et al.,
 * "Leader/Followers", PLoP 2000.) It takes up what is for others, too, and leaves as soon
 * as it has what it waits for, or the subscriber wants the connection.
 *
 * The connection belongs to the leader from rlk_registry.leader being set until it is
 * NULL again; else to the subscriber, which lets it go by mail_open.
 */
#ifndef RLK_LEADER_H
#define RLK_LEADER_H

#include <stdbool.h>
#include <stdint.h>

struct rlock_client;
struct rlk_thread;

/* Reads the mailbox until the calling thread is woken, or until `mono_end`
 * (CLOCK_MONOTONIC, ns; RLK_NEVER). False: another does, or there is nothing to read; it
 * did not wait. Locks: holds the registry's mu, dropped meanwhile. Blocks: network. */
bool rlk_leader_begin_locked(struct rlock_client *client, struct rlk_thread *thread,
                             int64_t mono_end);

/* ---- for the subscriber's thread. Locks: take the registry's mu. */

/* It has the connection from now on. False: a waiting thread leads. That goes on if there
 * is nothing to do for the subscriber, which `wanted` says but for the channels, or is
 * told to leave, and wakes the subscriber then. */
bool rlk_leader_take_over(struct rlock_client *client, bool work_due);
/* Lets a waiting thread read the mailbox if there is nothing else to do there. */
void rlk_leader_lend(struct rlock_client *client);
/* Nobody leads any more: the client ends. */
void rlk_leader_end(struct rlock_client *client);

#endif
