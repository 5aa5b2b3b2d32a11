/* SPDX-License-Identifier: Apache-2.0 */
/* The scene for tests of the hand-off between threads: a registry with one lock "n",
 * three threads, and a hold of the first thread. There is no server, and the test sets
 * the time. */
#ifndef TEST_HANDSCENE_H
#define TEST_HANDSCENE_H

#include "base/deadline.h"
#include "state/fastpath.h"
#include "state/handoff.h"
#include "state/registry.h"
#include "suite.h"

#include <check.h>
#include <rlock.h>
#include <string.h>

enum { LEASE = 30000, GRANT = 3000, THREADS = 3 };
#define MS RLK_NS_PER_MS

extern const struct rlk_handoff bound; /* 10 ms, 1,000 sections */
extern struct rlk_registry reg;
extern struct rlk_counters counters;
extern struct rlk_thread threads[THREADS]; /* the first one holds the lock */
extern struct rlk_waiter waiters[THREADS];
extern struct rlk_lock *lock;
extern struct rlk_hold *hold;
extern int retained; /* how many times the client's memory was retained */
extern int64_t now;

/* Gives threads[0] a hold of a kind, as if a request that left at `now` were answered. */
void enter(const char *flags, unsigned others);
/* The same with fencing, for all threads. */
void enter_fenced(const char *flags, unsigned others, uint64_t token);
/* An answer brings these tokens; count 0: it answers a renewal that asked for none. */
void answered(uint64_t first, unsigned count, bool asked);
/* As enter(), with the letter of a mode. */
void enter_mode(char letter, const char *flags, unsigned others);
void open_kind(int kind);
void set_up(void);
void tear_down(void);
/* Thread i waits, and has waited for `ms`. */
void waits(int i, int64_t ms);
struct rlk_holder *part_of(int i);
/* Thread i unlocks. Whether the process still has the hold. */
bool unlocks(int i);
bool enters(int i);
/* Thread 0 unlocks and locks again at once, before thread 1, which has not slept for
 * long. */
bool goes_on(void);
void gives_up(int i);
bool is_woken(int i);
/* The registry must ask the server now, however long the lease still is. */
bool is_asked(void);
bool is_gone(void);

#endif
