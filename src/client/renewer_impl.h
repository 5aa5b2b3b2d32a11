/* SPDX-License-Identifier: Apache-2.0 */
/* What renewer.c, which sends what is due, and renewer_done.c, which takes the answers,
 * have between them. Thread: the watchdog. Locks: hold the registry's mu. */
#ifndef RLK_RENEWER_IMPL_H
#define RLK_RENEWER_IMPL_H

#include "client/renewer.h"

enum {
    RLK_RENEWER_NAMES_MAX = 512, /* ids in one refresh: bounds the script's time at the
                                 server */
    RLK_RENEWER_REFRESH_AGAIN_MS = 20 /* at first; and while there is no connection */
};

/* When what did not succeed is tried again. */
int64_t rlk_renewer_retry_time(struct rlk_hold *hold, int64_t now);
/* A hold was renewed in a burst, by a request that left at `sent`: its next renewal,
 * which is due at renew_at, comes earlier, by nearly the time between the two at most. */
void rlk_renewer_spread(struct rlk_hold *hold, int64_t sent, int64_t now);
/* A request was appended. */
void rlk_renewer_put_in_flight(struct rlk_watch *watch, struct rlk_op *op,
                               enum rlk_op_kind kind, int64_t now, int64_t timeout);
/* Gives back the holds that a request named. */
void rlk_renewer_batch_clear(struct rlk_batch *batch);

#endif
