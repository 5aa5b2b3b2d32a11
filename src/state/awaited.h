/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the waits of a client have to do with the deaths of others (peer_watch.h, G9):
 * while somebody waits they are looked for, and when one was buried it is told. Thread:
 * any, with the registry's mutex. Blocks: no.
 */
#ifndef RLK_AWAITED_H
#define RLK_AWAITED_H

#include "state/registry.h"

#include <rlock.h>
#include <stdbool.h>

/* A thread begins to ask, or to wait for a lock to be free, or ends to. */
void rlk_awaited_asks_locked(struct rlk_registry *reg);
void rlk_awaited_asked_locked(struct rlk_registry *reg);
/* It has to wait: others have the lock, as the server says. */
void rlk_awaited_waits_locked(struct rlk_registry *reg);
/* It would have to, but only tried. Deaths are looked for in 10 ms, if they are not just
 * now, and for a second or two: who tries again learns of them. */
void rlk_awaited_tried_locked(struct rlk_registry *reg);
/* Whether somebody waits so for the lock; for any. */
bool rlk_awaited_lock_locked(const struct rlk_lock *lock);
bool rlk_awaited_awaits_locked(const struct rlk_registry *reg);

/* A process was found dead that had this lock, which was given back; the event callback
 * is to be told. On the heap; the text behind it. */
struct rlk_death_event {
    struct rlk_death_event *next;
    rlock_type_t type;
    rlock_mode_t mode;
    long pid;
    char program[64];
    char name[];
};
/* Takes it over. */
void rlk_awaited_death_locked(struct rlk_registry *reg, struct rlk_death_event *obituary);
/* The next one, which is the caller's; or NULL. */
struct rlk_death_event *rlk_awaited_next_death_locked(struct rlk_registry *reg);

#endif
