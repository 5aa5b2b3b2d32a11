/* SPDX-License-Identifier: Apache-2.0 */
/* What renewer.c, which sends what is due, renewer_refresh.c, which sends the polls of
 * queues, renewer_reads.c, which renews reads, and renewer_done.c, which takes the
 * answers, share. Thread: the watchdog.
 * Locks: hold the registry's mu. */
#ifndef RLK_RENEWER_IMPL_H
#define RLK_RENEWER_IMPL_H

#include "client/renewer.h"

enum {
    RLK_RENEWER_NAMES_MAX = 512, /* ids in one refresh: bounds the script's time at the
                                 server */
    RLK_RENEWER_REFRESH_AGAIN_MS = 20, /* before a failed refresh is repeated, at first;
                                          and while there is no connection */
    /* A deadline of L/6 alone would cut the connection at every scheduling delay for the
       shortest leases. */
    RLK_RENEWER_OP_TIMEOUT_MIN_MS = 50
};

/* When to repeat a request about this hold that failed. */
int64_t rlk_renewer_retry_time(struct rlk_hold *hold, int64_t now);
/* Brings forward the next renewal of a hold that was renewed in a burst, by a request
 * that left at `sent`. The renewal was due at renew_at, and comes earlier by a random
 * time, at most 7/8 of the time since `sent`. */
void rlk_renewer_spread(struct rlk_hold *hold, int64_t sent, int64_t now);
/* The target that the watchdog asks about the lock: it is wanted from now on. */
struct rlk_target *rlk_renewer_target(struct rlock_client *client,
                                      const struct rlk_lock *lock);
/* The node that is getting its hash slot, likewise; NULL: none, as far as is known. */
struct rlk_target *rlk_renewer_importer(struct rlock_client *client,
                                        const struct rlk_lock *lock);
/* Whether the next request about the hold names one key (P20). */
bool rlk_renewer_goes_alone(const struct rlk_hold *hold);
/* The lease that a renewal of the hold asks for. */
int64_t rlk_renewer_lease(const struct rlk_hold *hold, int64_t now);
/* How long to wait for the answer. */
int64_t rlk_renewer_timeout(const struct rlock_client *client,
                            const struct rlk_hold *hold, int64_t now);
/* Appends a request, behind ASKING if `asking`. Returns 0 or ENOMEM. */
int rlk_renewer_append(struct rlk_conn *conn, const struct rlk_request *req, bool asking,
                       bool with_text);
/* Records a request that was appended to the connection. */
void rlk_renewer_put_in_flight(struct rlk_watch *watch, struct rlk_op *op,
                               enum rlk_op_kind kind, int64_t now, int64_t timeout);
/* Adds a hold to the request, with a reference. False: out of memory. */
bool rlk_renewer_batch_add(struct rlk_batch *batch, struct rlk_hold *hold);
/* For how long a WAIT in flight may still keep the server from the requests behind it. */
int64_t rlk_renewer_wait_left(const struct rlk_watch *watch, int64_t now);
/* Takes the reply to a WAIT. NULL: none will come. */
void rlk_renewer_waited(struct rlk_target *target, const struct rlk_reply *reply);
/* Gives back the references to the holds that a request named. */
void rlk_renewer_batch_clear(struct rlk_batch *batch);
/* One renewal for all read holds of a lock, of which `due` is due. */
void rlk_renewer_reads(struct rlk_target *target, struct rlk_hold *due, int64_t now);
/* Takes the answer to it, with a fate for each hold, or for the reading. `asks`: the node
 * said ASK. `confirmed`: by as many replicas as have to. True: it goes on with one key
 * (P20), by rlk_renewer_reads_go_on. False: answer and fates say what came of it all. */
bool rlk_renewer_reads_take(struct rlk_batch *batch, struct rlk_answer *answer,
                            struct rlk_fate *fates, bool asks, bool confirmed);
/* Sends the next step. False: it cannot. */
bool rlk_renewer_reads_go_on(struct rlock_client *client, struct rlk_lock *lock,
                             int64_t now);
/* The script of the step in flight, and how many fates the answer has. */
const struct rlk_script *rlk_renewer_reads_script(const struct rlk_batch *batch);
size_t rlk_renewer_reads_fates(const struct rlk_batch *batch);
void rlk_renewer_reads_end(struct rlk_batch *batch);
/* Refreshes a lock whose refresh timer has run out. While there is no connection, a
 * waiting thread may ask the server instead. */
void rlk_renewer_refresh_due(struct rlock_client *client, struct rlk_lock *lock,
                             int64_t now);

#endif
