/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock in memory that processes share, with what it guards: two counters that are
 * added to one after the other, so that a second holder tears them. Used by the test and
 * by the program that it starts (sharer.c). Uses <rlock.h> only, and the default client.
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
    long first, second; /* equal, outside of a section */
    atomic_long torn;   /* sections that did not find them so */
};

/* With PROCESS_SHARED; of an explicit client, unless NULL. */
int sharing_init(union sharing_lock *lock, int kind, const char *name,
                 rlock_client_t *client);
int sharing_destroy(union sharing_lock *lock, int kind);
/* Of a read-write lock: to write. */
int sharing_lock(union sharing_lock *lock, int kind);
int sharing_trylock(union sharing_lock *lock, int kind);
int sharing_unlock(union sharing_lock *lock, int kind);

/* What the functions that take a handle say, one after the other, and do not ask the
 * server if it is a good handle of a lock that the calling thread does not hold; -1 after
 * the last one. */
int sharing_ask(union sharing_lock *lock, int kind, int which);
/* What it says then. */
int sharing_free_code(int which);

/* So many sections, of a read-write lock every other one to read. The first code that is
 * not 0. */
int sharing_rounds(struct sharing *s, int kind, long rounds);

#endif
