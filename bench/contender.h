/* SPDX-License-Identifier: Apache-2.0 */
/* The contenders, which are measured against each other. A worker process opens one
 * contender and runs it, in one thread or in several; or a peer of another language does.
 */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include <stdbool.h>
#include <stdint.h>

/* A program of bench/peers, which speaks the protocol of bench/README.md. */
struct peer {
    const char *dir;
    const char *kind; /* of the lock */
    bool alone;       /* one process has all clients */
};

struct contender {
    const char *label;
    const struct peer *peer; /* if set, the rest is not used */
    /* Makes what the processes share. Called by their parent, which never uses the
     * library. May be NULL. */
    void (*prepare)(void);
    /* The calling process's own state, for the lock `name`. Ends the process on failure.
     */
    void *(*open)(const char *name);
    /* Locks and unlocks; returns how often. Ends the process on failure. If the process
     * has several threads, each of them calls it. */
    uint64_t (*run)(void *state);
    /* How many of the locks were waited for since open; NULL: not known. */
    uint64_t (*waits)(void *state);
    void (*close)(void *state);
    /* How much of the last run counts; NULL: all of the time is measured. */
    int64_t (*timed_ns)(void *state);
};

/* with_rlock.c */
extern const struct contender rlock_pair, fair_pair, rlock_again, rlock_kept;
/* rlock_pair and fair_pair by another name, for a team of another shape */
extern const struct contender rlock_pair_processes, fair_pair_few;
extern const struct contender rw_read_pair, rw_write_pair, rw_mixed;
extern const struct contender read_kept, write_kept;
/* they note how long the lock took */
extern const struct contender rlock_latency, fair_latency;
/* lock and unlock with a section of 2 ms between */
extern const struct contender read_section, mutex_section;
/* with_pthread.c: locks of this machine */
extern const struct contender pthread_again, pthread_robust, pthread_robust_batch;
extern const struct contender go_pair;
/* with_peers.c: other libraries */
extern const struct contender redisson_pair, redisson_fair, redisson_read, redisson_write;
extern const struct contender redisson_mixed, redis_py_pair, redsync_pair;
/* control.c: the library's scripts, and the usual SET NX PX, without the library. They
 * note how long the lock took */
extern const struct contender control_pair, control_fair_pair, set_nx_pair;
extern const struct contender control_read_pair, control_write_pair, control_mixed;
/* queue.c: the fair lock's scripts with 10, ... in its queue: a grant, a new waiter */
extern const struct contender grant_10, grant_1000, grant_10000;
extern const struct contender join_10, join_1000, join_10000;
/* readers.c: the read-write lock's scripts with 10, ... readers inside: one more enters,
 * renews, leaves */
extern const struct contender enter_10, enter_1000, enter_5000;
extern const struct contender renew_10, renew_1000, renew_5000;
extern const struct contender leave_10, leave_1000, leave_5000;
/* dead.c: the fair lock's next grant, after 16 waiters died, and after none did */
extern const struct contender after_16_died, after_none_died;
/* and after a holder with a lease of 600 ms died: counted from its death, and from the
 * end of its lease */
extern const struct contender holder_died, holder_died_expiry;

#endif
