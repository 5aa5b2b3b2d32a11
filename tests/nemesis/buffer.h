/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buffer of the nemesis: its conditions, and how many items it holds. That number is in
 * a file of the round that all processes map; each change of it is atomic, so it is right
 * whatever happens to the lock. Each call is recorded. Thread: the man's.
 */
#ifndef NEM_BUFFER_H
#define NEM_BUFFER_H

#include "man.h"

#include <rlock.h>
#include <stdatomic.h>

enum nem_side { NEM_ITEMS, NEM_ROOM }; /* what a trader waits for */

struct nem_buffer {
    unsigned number;
    struct nem_target *target; /* the lock */
    rlock_cond_t cond[2];      /* by enum nem_side */
    atomic_int *count;
};

/* Aborts with a message on failure. */
void nem_buffer_init(struct nem_buffer *buffer, unsigned number,
                     struct nem_target *target, rlock_client_t *client);
void nem_buffer_destroy(struct nem_buffer *buffer);
/* Maps the file of a round, in its directory; unmaps the one before. Thread: the main
 * thread, while no trader works. */
void nem_buffers_map(struct nem_buffer *buffers, unsigned count, const char *dir);

/* The number of the condition; see oplog.h. */
unsigned nem_buffer_condition(const struct nem_buffer *buffer, enum nem_side side);
/* Whether there is what a trader waits for. */
bool nem_buffer_has(const struct nem_buffer *buffer, enum nem_side side);
/* Takes an item, or room for one, and records the new number. False: there is none. */
bool nem_buffer_take(struct nem_buffer *buffer, struct nem_man *man, enum nem_side side);

/* A wait, by a thread that holds the lock. wait_us 0: without a deadline. may_cancel: the
 * thread may be cancelled in it; it then leaves the lock, and does not return. */
int nem_buffer_wait(struct nem_buffer *buffer, struct nem_man *man, enum nem_side side,
                    uint64_t wait_us, bool may_cancel);
/* NEM_SIGNAL or NEM_BROADCAST; again and again while the server refuses it. */
void nem_buffer_wake(struct nem_buffer *buffer, struct nem_man *man, enum nem_side side,
                     enum nem_call call);
/* Records the number of items, and lets all look again. By a thread that has the lock, so
 * that nobody is on the way to a wait. */
void nem_buffer_wake_all(struct nem_buffer *buffer, struct nem_man *man);
/* The owner before has died: it may owe a signal. */
void nem_buffer_recover(struct nem_buffer *buffer, struct nem_man *man);

#endif
