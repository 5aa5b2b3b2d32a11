/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the search for dead processes when a wait lasts (peer_watch.h, G9), and queues
 * death events. Thread: any, with the registry's mutex. Blocks: no.
 */
#ifndef RLK_AWAITED_H
#define RLK_AWAITED_H

#include "state/registry.h"

#include <rlock.h>
#include <stdbool.h>

/* A thread begins, or ends, to ask or to wait for a lock to be free. */
static inline void rlk_awaited_asks_locked(struct rlk_registry *reg);
void rlk_awaited_asked_locked(struct rlk_registry *reg);
/* That thread has to wait: the server says that other processes have the lock. */
void rlk_awaited_waits_locked(struct rlk_registry *reg);

static inline void rlk_awaited_asks_locked(struct rlk_registry *reg)
{
    reg->asks_now++;
}

/* The answer to a try is that the lock is busy. The client begins to look for deaths in
 * 10 ms, and goes on for a second or two, so that a thread that tries again profits. */
void rlk_awaited_tried_locked(struct rlk_registry *reg);
/* Whether a thread waits for this lock, or for any lock, which other processes have. */
bool rlk_awaited_lock_locked(const struct rlk_lock *lock);
bool rlk_awaited_awaits_locked(const struct rlk_registry *reg);

/* A death event, for the callback: a dead process had this lock, which was given back. On
 * the heap, with the name behind it. */
struct rlk_death_event {
    struct rlk_death_event *next;
    rlock_type_t type;
    rlock_mode_t mode;
    long pid;
    char program[64];
    char name[];
};
/* Queues the event, which the registry owns from then on. */
void rlk_awaited_death_locked(struct rlk_registry *reg, struct rlk_death_event *death);
/* The next event, which the caller owns from then on; or NULL. */
struct rlk_death_event *rlk_awaited_next_death_locked(struct rlk_registry *reg);

#endif
