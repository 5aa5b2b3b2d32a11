/* SPDX-License-Identifier: Apache-2.0 */
/* The watchdog's work on deadlocks (state/chase.h): begins rounds, forwards the probes of
 * other processes, and judges those that come back. Thread: the watchdog. Blocks: no. */
#ifndef RLK_PROBER_H
#define RLK_PROBER_H

#include "client/target.h"
#include "state/chase.h"

/* A lock's next round of probes may be due. Locks: holds the registry's mu. */
void rlk_prober_due(struct rlock_client *client, struct rlk_lock *lock, int64_t now);

/* Reads the messages and sends the probes that wait. Locks: takes the mu of registries,
 * one at a time. */
void rlk_prober_run(struct rlock_client *client, int64_t now);

/* As rlk_renewer_done. Locks: takes the mu of registries, one at a time. */
void rlk_prober_done(struct rlk_target *target, struct rlk_op *op,
                     const struct rlk_reply *reply);

#endif
