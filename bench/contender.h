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
};

/* with_rlock.c */
extern const struct contender rlock_pair, rlock_again, pthread_again;
/* control.c: the library's scripts, and the usual SET NX PX, without the library */
extern const struct contender control_pair, set_nx_pair;

#endif
