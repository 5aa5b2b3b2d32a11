/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path of a hold that threads pass on among themselves. While it is open, they
 * enter and leave without the registry's mutex, by one atomic word, as with a plain
 * mutex.
 *
 * It opens under the registry's mutex, when a thread leaves the hold RETAINED, the hold
 * is not contended, and no thread here needs a wake-up. While it is open, the state stays
 * RETAINED, also with a thread inside. Closing it makes the state explicit: RLK_ON_FOUND
 * if the word names a thread inside. All code that looks at the state, or decides about
 * the hold, closes the fast path first (H1), under the registry's mutex. A thread inside
 * then leaves by way of the registry.
 *
 * A thread enters by a holder that it keeps while it is outside: its resident holder, of
 * the lock that it took last. A thread has at most one. The holder keeps hold, lock and
 * the client's memory until the thread drops it: at its next lock call that needs the
 * registry, or at its end.
 */
#ifndef RLK_FASTPATH_H
#define RLK_FASTPATH_H

#include "base/clock.h"
#include "base/probe.h"
#include "state/intent.h"
#include "state/lock.h"
#include "state/thread.h"

/* The word. 0: closed. Else bit 0 is set, bit 1 if the hold is retained for a time, and
 * the number of the thread inside, or 0, stands above them. */
enum { RLK_FASTPATH_OPEN = 1, RLK_FASTPATH_RETAINED = 2, RLK_FASTPATH_BITS = 2 };

/* Whether the word says that the thread is inside. */
static inline bool rlk_fastpath_is_in(uint64_t word, const struct rlk_thread *thread)
{
    return word >> RLK_FASTPATH_BITS == thread->number;
}

static inline void rlk_fastpath_add(_Atomic uint64_t *counter, uint64_t by)
{
    /* only the counter's own thread writes it */
    uint64_t n = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, n + by, memory_order_relaxed);
}

/* rule: G8 */
/* Notes in the intent table whether a thread is inside, for processes that find this one
 * dead (G8). The hold may have given up its intent: the memory is still there
 * (livefile.h). */
static inline void rlk_fastpath_say(struct rlk_pass *pass, enum rlk_inside inside)
{
    _Atomic uint32_t *word = atomic_load_explicit(&pass->inside, memory_order_relaxed);
    if (word)
        atomic_store_explicit(word, inside, memory_order_release);
}

/* rule: H3, K7 */
/* The calling thread, which is outside, enters by its resident holder. False: it has to
 * ask the registry. The thread enters only before D, and before the lease is at risk
 * (H3). */
static inline bool rlk_fastpath_enter(struct rlk_thread *thread)
{
    struct rlk_holder *holder = thread->fast;
    struct rlk_hold *hold = holder->hold;
    uint64_t open = atomic_load_explicit(&hold->pass->fastpath, memory_order_relaxed);

    /* a handle that does not retain the lock would have to give it back */
    if (open != RLK_FASTPATH_OPEN &&
        !(open == (RLK_FASTPATH_OPEN | RLK_FASTPATH_RETAINED) && holder->retains))
        return false;
    int64_t now = rlk_clock_boot();
    if (now >= atomic_load_explicit(&hold->risk, memory_order_relaxed))
        return false;
    atomic_store_explicit(&holder->since, now, memory_order_relaxed);
    rlk_fastpath_add(&thread->passes.entered, 1);
    if (!atomic_compare_exchange_strong_explicit(
            &hold->pass->fastpath, &open, open | thread->number << RLK_FASTPATH_BITS,
            memory_order_acq_rel, memory_order_relaxed)) {
        rlk_fastpath_add(&thread->passes.entered, (uint64_t)-1);
        return false;
    }
    rlk_fastpath_say(hold->pass, RLK_INSIDE);
    if (holder->fencing) /* a token is left: the fast path opens only then */
        atomic_fetch_add_explicit(&hold->token, 1, memory_order_relaxed);
    thread->fast_in = true;
    RLK_PROBE4(lock_acquired, RLK_PROBE_TEXT(hold->lock->name), (int)hold->lock->kind,
               (int)hold->reading, rlk_probe_zero());
    return true;
}

/* rule: H11 */
/* The calling thread leaves before D. False: it is still inside, and has to leave by way
 * of the registry. */
static inline bool rlk_fastpath_leave(struct rlk_thread *thread)
{
    struct rlk_holder *holder = thread->fast;
    struct rlk_hold *hold = holder->hold;
    struct rlk_pass *pass = hold->pass;
    uint64_t inside = atomic_load_explicit(&pass->fastpath, memory_order_relaxed);
    const uint64_t bits = (1 << RLK_FASTPATH_BITS) - 1;

    if (!rlk_fastpath_is_in(inside, thread) ||
        (holder->fencing &&
         atomic_load_explicit(&hold->token, memory_order_relaxed) + pass->token_spare >=
             pass->token_end)) /* more tokens are to be asked for */
        return false;
    int64_t now = rlk_clock_boot();
    if (now >= atomic_load_explicit(&hold->end, memory_order_relaxed))
        return false;
    int64_t lasted = now - atomic_load_explicit(&holder->since, memory_order_relaxed);
    thread->fast_in = false;
    atomic_store_explicit(&pass->used_at, now, memory_order_relaxed);
    rlk_fastpath_add(&thread->passes.left, 1);
    rlk_fastpath_say(pass, RLK_INSIDE_LEFT);
    rlk_histogram_add(&thread->passes.times->held, lasted);
    if (atomic_compare_exchange_strong_explicit(&pass->fastpath, &inside, inside & bits,
                                                memory_order_acq_rel,
                                                memory_order_relaxed)) {
        RLK_PROBE2(lock_released, RLK_PROBE_TEXT(hold->lock->name), RLK_PROBE_US(lasted));
        return true;
    }
    thread->fast_in = true;
    rlk_fastpath_add(&thread->passes.left, (uint64_t)-1);
    rlk_histogram_undo(&thread->passes.times->held, lasted);
    return false;
}

/* Whether no thread is inside a retained hold. With the fast path open, a thread may
 * enter right after this check. */
static inline bool rlk_fastpath_is_empty(const struct rlk_hold *hold)
{
    uint64_t word = atomic_load_explicit(&hold->pass->fastpath, memory_order_acquire);
    return rlk_hold_is_retained(hold) && word >> RLK_FASTPATH_BITS == 0;
}

/* Adds the calling thread's counts to the statistics. Locks: takes the registry's mu. */
void rlk_fastpath_count(struct rlk_holder *holder);

/* The calling thread locks again the lock that it holds. */
static inline void rlk_fastpath_reenter(struct rlk_holder *holder)
{
    enum { COUNT_FROM = 1 << 30 }; /* long before the difference no longer fits */
    uint32_t n = atomic_load_explicit(&holder->reentries, memory_order_relaxed) + 1;

    atomic_store_explicit(&holder->reentries, n, memory_order_relaxed);
    if (__builtin_expect(n % COUNT_FROM == 0, 0))
        rlk_fastpath_count(holder);
}

/* Allocates now what the calling thread needs for a fast path later, because an unlock
 * allocates nothing. Without memory the thread uses no fast path. Locks: holds none. */
void rlk_fastpath_prepare(struct rlk_thread *thread);

/* ---- under the registry's mutex */

/* Opens the fast path of a RETAINED hold for the threads with a resident holder of it.
 * retained: no thread waits here, so only threads whose handle retains the lock may
 * enter. */
void rlk_fastpath_open_locked(struct rlk_hold *hold, bool retained);
/* Closes the fast path; a thread inside becomes a normal holder. Idempotent. */
void rlk_fastpath_close_locked(struct rlk_hold *hold);
/* Closes the fast paths of all holds. */
void rlk_fastpath_close_all_locked(struct rlk_registry *reg);

/* The calling thread leaves a hold that stays with the process. Its holder becomes its
 * resident holder. The holder ends if the thread has another resident holder, or was not
 * prepared. */
void rlk_fastpath_step_out_locked(struct rlk_holder *holder, bool retains);
/* Moves the thread's resident holder of this hold among the holders inside. NULL: it has
 * none. */
struct rlk_holder *rlk_fastpath_step_in_locked(struct rlk_hold *hold,
                                               struct rlk_thread *thread);
/* The hold ends: its resident holders keep the client's memory until they are dropped. */
void rlk_fastpath_end_locked(struct rlk_hold *hold);

/* The calling thread, which is outside, drops its resident holder. Locks: takes the
 * registry's mu. */
void rlk_fastpath_drop(struct rlk_thread *thread);

#endif
