/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured against each other. A worker process opens one contender and runs it.
 */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include <stdint.h>

struct contender {
    const char *label;
    /* The calling process's own state, for the lock `name`. Ends the process on failure.
     */
    void *(*open)(const char *name);
    /* Locks and unlocks; returns how often. Ends the process on failure. */
    uint64_t (*run)(void *state);
    /* How many of the locks were waited for since open; NULL: not known. */
    uint64_t (*waits)(void *state);
    void (*close)(void *state);
    /* How much of the last run counts; NULL: all of the time is measured. */
    int64_t (*timed_ns)(void *state);
};

/* with_rlock.c */
extern const struct contender rlock_pair, fair_pair, rlock_again, pthread_again;
extern const struct contender rw_read_pair, rw_write_pair;
/* the same with a section of 2 ms between */
extern const struct contender read_section, mutex_section;
/* control.c: the library's scripts, and the usual SET NX PX, without the library */
extern const struct contender control_pair, set_nx_pair;
extern const struct contender control_read_pair, control_write_pair;
/* queue.c: the fair lock's scripts with so many in its queue: a grant, a new waiter */
extern const struct contender grant_10, grant_1000, grant_10000;
extern const struct contender join_10, join_1000, join_10000;
/* readers.c: the read-write lock's scripts with so many readers in: one more enters,
 * renews, leaves */
extern const struct contender enter_10, enter_1000, enter_5000;
extern const struct contender renew_10, renew_1000, renew_5000;
extern const struct contender leave_10, leave_1000, leave_5000;
/* dead.c: the fair lock's next grant, after so many waiters died */
extern const struct contender after_16_died, after_none_died;

#endif
