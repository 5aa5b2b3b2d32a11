/* SPDX-License-Identifier: Apache-2.0 */
/* The watchdog's work for one client: what is due, and what answers mean. Thread: the
 * watchdog. Locks: take the registry's mu. Blocks: no. */
#ifndef RLK_RENEWER_H
#define RLK_RENEWER_H

#include "client/watchdog.h"
#include "state/hold.h"

struct rlk_recovery_link;
struct rlock_client;

/* Whether requests can be appended. */
bool rlk_renewer_ready(const struct rlk_watch *watch);

/* For the recovery of what dead processes had. */
extern const struct rlk_recovery_link rlk_renewer_of_recovery;

/* Handles up to a batch of due timers. Returns when the next is due, and whether I/O is
 * wanted. */
int64_t rlk_renewer_run(struct rlock_client *client, bool *ret_need_conn);

/* Ends a request: `reply` NULL means that none will come. */
void rlk_renewer_done(struct rlock_client *client, struct rlk_op *op,
                      const struct rlk_reply *reply);

#endif
