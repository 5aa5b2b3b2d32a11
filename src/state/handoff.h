/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand-off: threads of this process that want the same mutex, or to write the same
 * read-write lock, pass its hold on among themselves, without the server (H1-H12). A hold
 * that a thread unlocked while others wait here either goes to the first of them, or
 * becomes RETAINED: one of them is woken, and the first thread that comes may enter.
 * While other processes wait at the server, a budget bounds this. With a retention time,
 * a hold becomes RETAINED although no thread waits (K1-K16). All under the registry's
 * mutex.
 */
#ifndef RLK_HANDOFF_H
#define RLK_HANDOFF_H

#include "state/lock.h"

/* A thread unlocks the outermost level at `now` < D, with the fast path closed. True: it
 * has left, and the hold stays with this process. False: the hold is to be given back to
 * the server (H4). */
bool rlk_handoff_unlock_locked(struct rlk_holder *holder, struct rlk_handoff bound,
                               int64_t now);

/* The calling thread, `self`, which may be in the queue, enters the lock's hold if it is
 * RETAINED, suits the thread, and has budget left. The caller has called
 * rlk_lock_held_locked, so that D has not passed (H3). False: the thread needs the
 * server, or waits on. *ret_spent: the hold, if it has to be released instead (no budget,
 * token or memory left, or other terms than the thread's); it is RELEASING now. The
 * caller has a reference, and releases it. */
bool rlk_handoff_enter_locked(struct rlk_lock *lock, struct rlk_waiter *self,
                              struct rlk_handoff bound, int64_t now,
                              struct rlk_hold **ret_spent);

/* Before a thread unlocks: whether it should first ask the server for tokens (H11), or
 * who else wants the lock, because this is unknown and the budget is spent (H7). */
bool rlk_handoff_asks_locked(struct rlk_hold *hold, struct rlk_handoff bound,
                             int64_t now);

/* If no woken thread is on its way to a RETAINED hold, wakes the next waiter for it, or
 * ends it (H5). */
void rlk_handoff_settle_locked(struct rlk_lock *lock, int64_t now);

/* A waiter, which has left the queue, waits no more. If it was woken for a RETAINED hold,
 * the next waiter is woken, or the hold ends (H5). */
void rlk_handoff_gave_up_locked(struct rlk_lock *lock, const struct rlk_waiter *waiter,
                                int64_t now);

/* Whether a thread may go on with a hold that another thread made. */
bool rlk_handoff_suits(const struct rlk_hold *hold, const struct rlk_waiter *waiter);
/* The same, and the thread has asked for the hold's lease. */
bool rlk_handoff_has_terms_of(const struct rlk_hold *hold,
                              const struct rlk_waiter *waiter);
/* A section begins at `now` without a message to the server (H8). */
void rlk_handoff_unasked_locked(struct rlk_hold *hold, int64_t now);
/* Whether the client may retain one more hold. */
bool rlk_handoff_room_locked(const struct rlk_hold *hold);

/* ---- handoff_token.c: fencing tokens (H11) */

/* Whether the next section can have a token of its own. */
bool rlk_handoff_has_token(const struct rlk_hold *hold);
/* From now on the next section's token is the one after hold->token. No thread is inside,
 * and rlk_handoff_has_token is true. */
void rlk_handoff_ready_token(struct rlk_hold *hold);
/* Asks for more tokens in time, if the block is nearly used. */
void rlk_handoff_fetch_tokens(struct rlk_hold *hold);
/* An answer has tokens: the first of another block and their number; or the grant's token
 * and 0; or no token, as 0. asked: the request asked for a block. */
void rlk_handoff_tokens_locked(struct rlk_hold *hold, const struct rlk_fate *fate,
                               bool asked);

/* ---- handoff_facts.c: what the server says of who else wants the hold */

/* A recall, for a live hold or a REQUESTED one (K6). */
void rlk_handoff_recalled_locked(struct rlk_hold *hold, int64_t now);
/* An answer to a request that left at `sent` says who waits at the server (H7). */
void rlk_handoff_answered_locked(struct rlk_hold *hold, int64_t sent, unsigned flags);
/* The same of a renewal. If the renewal did not ask who waits, its answer knows nothing
 * of Redisson's waiters: an answer without waiters begins no new budget then. */
void rlk_handoff_renewed_locked(struct rlk_hold *hold, int64_t sent, unsigned flags,
                                bool asked);
/* The hold was confirmed for the TTL of a grant (K5): if it is retained, the rest of a
 * longer lease may pass without news of a risk. */
void rlk_handoff_answered_retained_locked(struct rlk_hold *hold);
/* Ends a retained hold that no thread used for its time, that is contended, or whose
 * lease is at risk. Returns whether the hold has ended. */
bool rlk_handoff_retained_due_locked(struct rlk_hold *hold, int64_t now);
/* Whether a renewal is to say that no thread is inside (K11). From then on a thread tells
 * the server before it enters. */
bool rlk_handoff_clears_mark_locked(struct rlk_hold *hold, int64_t now);

/* ---- handoff_all.c */

/* The process ends: its retained holds are given back (K9). */
void rlk_handoff_end_all_locked(struct rlk_registry *reg, int64_t now);
/* The mailbox is not heard any more: the server is asked at once about retained holds
 * (K1). */
void rlk_handoff_ask_all_locked(struct rlk_registry *reg);

#endif
