/* SPDX-License-Identifier: Apache-2.0 */
/* What cond_wait.c and cond_wait_release.c share: a wait in progress, and its steps.
 * Thread: callers'. Locks: take the registry's mu. */
#ifndef RLK_COND_WAIT_IMPL_H
#define RLK_COND_WAIT_IMPL_H

#include "client/cond_rpc.h"
#include "lock/call.h"
#include "lock/cond_wait.h"

enum {                              /* no codes */
       RLK_COND_WAIT_GOES_ON = -1,  /* the call goes on */
       RLK_COND_WAIT_TWO_STEPS = -2 /* the join and the release are two requests */
};

/* A call in progress, on the stack of its thread. */
struct rlk_cond_wait_op {
    const struct rlk_cond_wait_args *args;
    struct rlk_call *call;
    struct rlock_client *client; /* the condition's; kept open */
    struct rlock_client *owner;  /* the mutex's; likewise */
    struct rlk_thread *thread;
    struct rlk_condition *condition; /* one reference */
    struct rlk_wait *wait;           /* NULL: none begun, or it has ended */
    struct rlk_deadline deadline;
    unsigned levels; /* of the mutex, */
    long lease_ms;   /* whose lease is fixed; 0: renewed */
    bool outage_fails;
    int64_t since; /* the call began */
    bool reported; /* cond_wait_tell.c has told how the wait ended */
    bool asked;    /* a join may have reached the server */
    bool unsure;   /* a join without an answer may still be on its way */
};

static inline struct rlk_registry *
rlk_cond_wait_registry(const struct rlk_cond_wait_op *op)
{
    return &op->client->registry;
}

static inline bool rlk_cond_wait_interrupted(const struct rlk_cond_wait_op *op)
{
    return atomic_load(&op->client->interrupted) || atomic_load(&op->owner->interrupted);
}

static inline struct rlk_holder *rlk_cond_wait_holder(const struct rlk_cond_wait_op *op)
{
    return rlk_handle_part(op->args->mutex);
}

/* Ends the wait, if it has not ended. */
void rlk_cond_wait_end(struct rlk_cond_wait_op *op, enum rlk_condition_end how);
/* Takes the mutex again, and ends the wait. Returns the code of the call. */
int rlk_cond_wait_take_mutex(struct rlk_cond_wait_op *op, int rc);
/* The deadline has passed: ETIMEDOUT, or 0 if the server had woken the id. */
int rlk_cond_wait_time_out(struct rlk_cond_wait_op *op);
/* Until when to wait for the answer to a join that is sent now; `end`: of the mutex's
 * lease. */
int64_t rlk_cond_wait_until(const struct rlk_cond_wait_op *op, int64_t end, int64_t now);
/* Sleeps before the next join, until `until` at most. Locks: none. */
void rlk_cond_wait_pause(struct rlk_cond_wait_op *op, int64_t *pause_ms, int64_t now,
                         int64_t until);
/* What an answer says of the wait. Locks: holds the registry's mu. */
void rlk_cond_wait_joined_locked(struct rlk_cond_wait_op *op,
                                 const struct rlk_fate *fate);

/* ---- cond_wait_tell.c */

/* The record of the wait was made. */
void rlk_cond_wait_tell_begun(struct rlk_cond_wait_op *op);
/* The thread is awake by a signal, or needlessly; the wait has not ended yet. */
void rlk_cond_wait_tell_woken(struct rlk_cond_wait_op *op);
/* The wait ends with a code, and the thread was not woken. Does nothing if how it ended
 * was reported before. */
void rlk_cond_wait_tell_failed(struct rlk_cond_wait_op *op, int code);

/* ---- cond_wait_release.c */

/* Joins and gives up the mutex by one script, if the unlock goes to the server now, and
 * both are at one node of one client. RLK_COND_WAIT_TWO_STEPS: nothing was done.
 * RLK_COND_WAIT_GOES_ON: the thread waits without the mutex. Else the code of the call.
 */
int rlk_cond_wait_release(struct rlk_cond_wait_op *op);

#endif
