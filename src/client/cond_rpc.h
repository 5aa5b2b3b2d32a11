/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of callers' threads about conditions; see rpc.h. No state. Locks: none may
 * be held. Blocks: network, until `until` (CLOCK_BOOTTIME). */
#ifndef RLK_COND_RPC_H
#define RLK_COND_RPC_H

#include "client/cond_args.h"

/* Joins; may be repeated with the same id. The server refuses the request after `until`,
 * so that a late copy of it changes nothing (V6). */
void rlk_cond_rpc_wait(struct rlock_client *client, const struct rlk_cond_args_wait *args,
                       int64_t until, struct rlk_answer *answer);
/* Joins and releases the hold; may be repeated with the same two ids. The answer is that
 * of the release, *ret_fate what became of the wait. */
void rlk_cond_rpc_release(struct rlock_client *client,
                          const struct rlk_cond_args_release *args, int64_t until,
                          struct rlk_answer *answer, struct rlk_fate *ret_fate);
/* Whether one script may name both: they are at one node, and their messages come by one
 * channel. */
bool rlk_cond_rpc_may_release(const struct rlock_client *client,
                              const struct rlk_condition *condition,
                              const struct rlk_lock *mutex);
void rlk_cond_rpc_cancel(struct rlock_client *client, const struct rlk_wait *wait,
                         bool pass, int64_t until, struct rlk_answer *answer);
/* One request. When DONE, *ret_woken says what is left, and the caller owns *ret_reply,
 * which has its ids. */
void rlk_cond_rpc_signal(struct rlock_client *client,
                         const struct rlk_cond_args_signal *args, int64_t until,
                         struct rlk_answer *answer, struct rlk_cond_args_woken *ret_woken,
                         struct rlk_reply **ret_reply);

#endif
