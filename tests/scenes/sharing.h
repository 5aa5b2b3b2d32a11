/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock in memory that processes share, and the data that it protects: two counters that
 * are incremented one after the other, so that a second holder would make them differ.
 * Used by a test and by the program that it starts (sharer.c). Uses <rlock.h> only, and
 * the default client.
 */
#ifndef TEST_SHARING_H
#define TEST_SHARING_H

#include <rlock.h>
#include <stdatomic.h>

enum { SHARING_MUTEX, SHARING_FAIR, SHARING_RWLOCK, SHARING_KINDS };

union sharing_lock {
    rlock_mutex_t mutex;
    rlock_fair_t fair;
    rlock_rwlock_t rwlock;
    struct rlk_handle any;
};

struct sharing {
    union sharing_lock lock;
    long first, second; /* equal outside of a section */
    atomic_long torn;   /* sections that found them different */
};

/* Initialises a lock with PROCESS_SHARED; of this client unless it is NULL. */
int sharing_init(union sharing_lock *lock, int kind, const char *name,
                 rlock_client_t *client);
int sharing_destroy(union sharing_lock *lock, int kind);
/* Locks it; a read-write lock to write. */
int sharing_lock(union sharing_lock *lock, int kind);
int sharing_trylock(union sharing_lock *lock, int kind);
int sharing_unlock(union sharing_lock *lock, int kind);

/* Calls the functions that take a handle, by number `which`, and that ask no server when
 * the handle is good and the calling thread does not hold the lock. Returns the
 * function's code; -1 after the last function. */
int sharing_ask(union sharing_lock *lock, int kind, int which);
/* The code that the function returns then. */
int sharing_free_code(int which);

/* Runs `rounds` sections; every other one of a read-write lock is to read. Returns the
 * first code that is not 0. */
int sharing_rounds(struct sharing *s, int kind, long rounds);

#endif
