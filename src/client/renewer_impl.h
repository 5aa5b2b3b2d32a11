/* SPDX-License-Identifier: Apache-2.0 */
/* What renewer.c, which sends what is due, and renewer_done.c, which takes the answers,
 * share. Thread: the watchdog. Locks: hold the registry's mu. */
#ifndef RLK_RENEWER_IMPL_H
#define RLK_RENEWER_IMPL_H

#include "client/renewer.h"

enum {
    RLK_RENEWER_NAMES_MAX = 512, /* ids in one refresh: bounds the script's time at the
                                 server */
    RLK_RENEWER_REFRESH_AGAIN_MS = 20 /* before a failed refresh is repeated, at first;
                                         and while there is no connection */
};

/* When to repeat a request about this hold that failed. */
int64_t rlk_renewer_retry_time(struct rlk_hold *hold, int64_t now);
/* Brings forward the next renewal of a hold that was renewed in a burst, by a request
 * that left at `sent`. The renewal was due at renew_at, and comes earlier by a random
 * time, at most 7/8 of the time since `sent`. */
void rlk_renewer_spread(struct rlk_hold *hold, int64_t sent, int64_t now);
/* Records a request that was appended to the connection. */
void rlk_renewer_put_in_flight(struct rlk_watch *watch, struct rlk_op *op,
                               enum rlk_op_kind kind, int64_t now, int64_t timeout);
/* A renewal of a hold with this lease was sent: a WAIT may last for a part of it. */
void rlk_renewer_note_lease(struct rlock_client *client, long lease_ms);
/* Takes the reply to a WAIT. NULL: none will come. */
void rlk_renewer_waited(struct rlock_client *client, const struct rlk_reply *reply);
/* Gives back the references to the holds that a request named. */
void rlk_renewer_batch_clear(struct rlk_batch *batch);

#endif
