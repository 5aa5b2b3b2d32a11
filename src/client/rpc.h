/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of callers' threads: each borrows a connection, runs one script for a hold
 * and gives the connection back. `until` (CLOCK_BOOTTIME) bounds all of it. When the
 * answer is not DONE, the caller returns the answer's code, and the thread's message is
 * set. Call without mutexes. Blocks: network. */
#ifndef RLK_RPC_H
#define RLK_RPC_H

#include "client/script_args.h"

/* How many times to retry at once when the server says that the request came too late
 * (its clock stepped). The retry goes by the newer clock. */
enum { RLK_LATE_TRIES_MAX = 3 };

/* Takes the lock or, unless it is a try, queues for it; may be repeated with the same id.
 * The server refuses the request after `until`, so that a late copy of it changes nothing
 * (T3). Sets args->not_after_us. */
void rlk_rpc_acquire(struct rlock_client *client, struct rlk_script_args_acquire *args,
                     int64_t until, struct rlk_answer *answer);
/* `mark`: leaves a marker against acquires of this id that may be under way. */
void rlk_rpc_release(struct rlock_client *client, const struct rlk_hold *hold, bool mark,
                     int64_t until, struct rlk_answer *answer);
void rlk_rpc_cancel(struct rlock_client *client, const struct rlk_hold *hold,
                    int64_t until, struct rlk_answer *answer);
/* With `with.looks`, the answer moves no D in a client that waits for replicas. */
void rlk_rpc_renew(struct rlock_client *client, const struct rlk_hold *hold,
                   long lease_ms, struct rlk_script_args_renew with, int64_t until,
                   struct rlk_answer *answer);
void rlk_rpc_downgrade(struct rlock_client *client, const struct rlk_hold *hold,
                       long lease_ms, int64_t until, struct rlk_answer *answer);

/* Gives a borrowed connection back to the target's pool. If it showed that the server is
 * no master any more, the subscriber checks that it listens where the locks are. */
void rlk_rpc_put(struct rlk_target *target, struct rlk_conn *conn);

/* Continues the hand-over of a lock of this kind behind `after`, until it is complete
 * (T11). Does nothing if `after` is not set. */
void rlk_rpc_go_on(struct rlock_client *client, int kind, const char *name,
                   size_t name_len, int prefer, struct rlk_cursor after, int64_t until);

/* Runs another script that may be repeated: tries again when a connection turns out to be
 * broken. ret_raw, if not NULL, gets the reply itself when DONE; the caller owns it. */
void rlk_rpc_request(struct rlock_client *client, const struct rlk_request *req,
                     int64_t until, struct rlk_answer *ret_answer,
                     struct rlk_reply **ret_raw);

/* With waitaof=1: whether the server has WAITAOF and writes to disk. 0 also if it cannot
 * be reached; ENOTSUP: it does not, and the thread's message says why. Blocks: network.
 */
int rlk_rpc_check_aof(struct rlock_client *client);

/* Runs a command of at most this many words, once, where this key is; NULL: at any
 * server. Returns 0 with *ret_reply, or the code for the caller. */
enum { RLK_RPC_WORDS_MAX = 8 };
int rlk_rpc_command(struct rlock_client *client, const char *key, int argc,
                    const char *const *argv, int64_t until, struct rlk_answer *ret_answer,
                    struct rlk_reply **ret_reply);
/* The same at this server, which the caller uses (masters.h). */
int rlk_rpc_command_at(struct rlk_target *target, int argc, const char *const *argv,
                       int64_t until, struct rlk_answer *ret_answer,
                       struct rlk_reply **ret_reply);
/* Borrows a connection to any server, for rlk_rpc_put. Returns 0, or the code for the
 * caller. */
int rlk_rpc_borrow(struct rlock_client *client, int64_t until,
                   struct rlk_target **ret_target, struct rlk_conn **ret_conn);
/* The same to this server, which the caller uses (masters.h). */
int rlk_rpc_borrow_at(struct rlk_target *target, int64_t until,
                      struct rlk_conn **ret_conn);

#endif
