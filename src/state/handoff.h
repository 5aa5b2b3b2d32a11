/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local hand-over: threads of this process that want the same mutex, or to write the same
 * read-write lock, pass its hold on among themselves, without the server (rules H1-H12).
 * A hold that a thread unlocked while others wait here either goes to the first of them,
 * or is IDLE: INSIDE, nobody's, one of them woken, and free for whichever thread comes
 * first. Bounded while others wait at the server. All under the registry's mutex.
 */
#ifndef RLK_HANDOFF_H
#define RLK_HANDOFF_H

#include "state/lock.h"

/* A thread unlocks the outermost level at `now` < D. True: it has left, and the hold
 * stays with this process; false: it is to be given back to the server (H4). The gate is
 * closed.
 */
bool rlk_handoff_unlock_locked(struct rlk_holder *holder, struct rlk_handoff bound,
                               int64_t now);

/* The calling thread, `self`, which may be in the queue, takes the lock's hold if it is
 * IDLE, will do for it, and its budget is not spent. rlk_lock_held_locked was called, so
 * that D has not passed (H3). False: it needs the server, or a longer wait. *ret_spent: a
 * hold whose budget was spent, or for which there is no memory; it is GOING, and the
 * caller's to release, with a reference. */
bool rlk_handoff_enter_locked(struct rlk_lock *lock, struct rlk_waiter *self,
                              struct rlk_handoff bound, int64_t now,
                              struct rlk_hold **ret_spent);

/* Before a thread unlocks: whether it should ask the server who else wants the lock, as
 * nobody knows, and the budget is spent (H7). */
bool rlk_handoff_asks_locked(struct rlk_hold *hold, struct rlk_handoff bound,
                             int64_t now);

/* An IDLE hold that nobody is on his way to goes to the next, or ends (H5). */
void rlk_handoff_settle_locked(struct rlk_lock *lock, int64_t now);

/* Whether the next section can have a token of its own. */
bool rlk_handoff_has_token(const struct rlk_hold *hold);
/* The next section's token is the one after hold->token from now on. No thread is inside,
 * and rlk_handoff_has_token. */
void rlk_handoff_ready_token(struct rlk_hold *hold);
/* More tokens are asked for in time, if the block is nearly used. */
void rlk_handoff_fetch_tokens(struct rlk_hold *hold);
/* Answered, to a request that asked for another block or not: its first token and how
 * many they are, or that of the grant and 0; a token of 0: it has none (H11). */
void rlk_handoff_tokens_locked(struct rlk_hold *hold, const struct rlk_fate *fate,
                               bool asked);

/* The process ends: what is IDLE is given back (K9). */
void rlk_handoff_end_all_locked(struct rlk_registry *reg, int64_t now);

/* The mailbox is not heard any more: what is IDLE is asked for at once (K1). */
void rlk_handoff_ask_all_locked(struct rlk_registry *reg);

/* Whether it has ended by this: nobody used it for so long, somebody else wants it, or
 * its lease is at risk. */
bool rlk_handoff_idle_due_locked(struct rlk_hold *hold, int64_t now);
/* Whether a renewal is to say that nobody is inside (K11). From then on whoever enters
 * says first that he does. */
bool rlk_handoff_cleans_locked(struct rlk_hold *hold, int64_t now);
/* It was confirmed for the TTL of a grant (K5): what is left of a longer lease may go by
 * without a risk. */
void rlk_handoff_answered_idle_locked(struct rlk_hold *hold);

/* A waiter, out of the queue by now, waits no more: if it had been woken for an IDLE
 * hold, another is, or the hold ends (H5). */
void rlk_handoff_gave_up_locked(struct rlk_lock *lock, const struct rlk_waiter *waiter,
                                int64_t now);

/* A message says that somebody else wants a hold, INSIDE or ASKING (K6). */
void rlk_handoff_wanted_locked(struct rlk_hold *hold, int64_t now);

/* An answer to a request that left at `sent` says who waits at the server (H7). */
void rlk_handoff_answered_locked(struct rlk_hold *hold, int64_t sent, unsigned flags);
/* The same to a renewal. Unless it asked, its answer knows nothing of Redisson's waiters:
 * a "nobody" is no new budget. */
void rlk_handoff_renewed_locked(struct rlk_hold *hold, int64_t sent, unsigned flags,
                                bool asked);

/* Whether a thread may go on with a hold that another one made. */
bool rlk_handoff_suits(const struct rlk_hold *hold, const struct rlk_waiter *waiter);
/* And has asked for the same lease. */
bool rlk_handoff_has_terms_of(const struct rlk_hold *hold,
                              const struct rlk_waiter *waiter);

/* A section begins at `now` that the server is not told of (H8). */
void rlk_handoff_unasked_locked(struct rlk_hold *hold, int64_t now);
/* Whether one more hold may be kept. */
bool rlk_handoff_room_locked(const struct rlk_hold *hold);

#endif
