/* SPDX-License-Identifier: Apache-2.0 */
/* The watchdog's work for one client: sends what is due, and takes the answers. Thread:
 * the watchdog. Locks: take the registry's mu. Blocks: no. */
#ifndef RLK_RENEWER_H
#define RLK_RENEWER_H

#include "client/watchdog.h"
#include "state/hold.h"

struct rlk_recovery_link;
struct rlk_target;

/* Whether requests can be appended. */
bool rlk_renewer_ready(const struct rlk_watch *watch);

/* How the recovery of dead processes sends its requests. */
extern const struct rlk_recovery_link rlk_renewer_of_recovery;

/* Handles up to a batch of due timers of the client, of which `target` is its own.
 * Returns when the next one is due. The targets that need a connection are `wanted`. */
int64_t rlk_renewer_run(struct rlk_target *target);

/* Sends a WAIT behind the renewals that replicas are still to confirm, unless one is in
 * flight (P14). */
void rlk_renewer_wait(struct rlk_target *target, int64_t now);
/* When there is something for it to do. */
int64_t rlk_renewer_wait_due(const struct rlk_target *target);
/* Whether the request is a renewal that replicas have to confirm. Then its reply is kept
 * until they have, and belongs to this module. */
bool rlk_renewer_keep(struct rlk_target *target, struct rlk_op *op,
                      struct rlk_reply *reply);

/* Ends a request: `reply` NULL means that none will come. */
void rlk_renewer_done(struct rlk_target *target, struct rlk_op *op,
                      const struct rlk_reply *reply);

#endif
