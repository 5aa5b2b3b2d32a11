/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of callers' threads: each lends a connection, runs one script for a hold
 * and gives the connection back. `until` (CLOCK_BOOTTIME) bounds all of it. When the
 * answer is not DONE, its code is the caller's, and the thread's message is set. Call
 * without mutexes. Blocks: network. */
#ifndef RLK_TRIP_H
#define RLK_TRIP_H

#include "client.h"

/* Takes the lock or, unless `try_once`, queues for it; may be repeated with the same id.
 * `after`: of a try that goes on looking for who comes before it (kinds in order), else
 * 0. The server refuses it after `until`, so that a copy that is late cannot surprise
 * anybody (T3). */
void rlk_trip_acquire(struct rlock_client *client, const struct rlk_hold *hold,
                      bool try_once, int64_t after, int64_t until,
                      struct rlk_answer *answer);
/* `mark`: with a marker against acquires of this id that may be under way. */
void rlk_trip_release(struct rlock_client *client, const struct rlk_hold *hold, bool mark,
                      int64_t until, struct rlk_answer *answer);
void rlk_trip_cancel(struct rlock_client *client, const struct rlk_hold *hold,
                     int64_t until, struct rlk_answer *answer);
void rlk_trip_renew(struct rlock_client *client, const struct rlk_hold *hold,
                    long lease_ms, int64_t until, struct rlk_answer *answer);

/* Lets the hand-over of a lock of this kind go on behind the ticket `after`, until it is
 * through (T11). */
void rlk_trip_go_on(struct rlock_client *client, int kind, const char *name,
                    size_t name_len, int64_t after, int64_t until);

/* Another script that may be repeated: tried again when a connection turns out to be
 * broken. With ret_raw, the reply itself when DONE, owned by the caller. */
void rlk_trip_request(struct rlock_client *client, const struct rlk_request *req,
                      int64_t until, struct rlk_answer *ret_answer,
                      struct rlk_reply **ret_raw);

#endif
