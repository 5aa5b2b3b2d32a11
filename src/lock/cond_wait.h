/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a condition, and waking who waits: the work of rlock_cond_*. Thread: any.
 */
#ifndef RLK_COND_WAIT_H
#define RLK_COND_WAIT_H

#include "lock/handle.h"

/* The arguments of a wait. */
struct rlk_cond_wait_args {
    struct rlk_handle *cond, *mutex;
    int kind;   /* of the mutex */
    bool timed; /* `abstime` counts, on */
    bool named; /* `clock`; else on the condition's */
    clockid_t clock;
    const struct timespec *abstime;
};
int rlk_cond_wait(const struct rlk_cond_wait_args *args);

/* count 0: all. */
int rlk_cond_signal(struct rlk_handle *cond, uint64_t count);

#endif
