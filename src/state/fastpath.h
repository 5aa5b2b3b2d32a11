/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate of a hold that threads pass on among themselves: while it is open, they enter
 * and leave without the registry's mutex, by one atomic word, as a plain mutex does. It
 * is opened under the registry's mutex when a thread leaves the hold IDLE, nobody else is
 * known to want it and nobody here needs a wake-up; and closed under it by whatever looks
 * at the hold or decides about it, which so finds it as it is (H1): IDLE, or with the
 * thread inside that the word names. Who is inside then leaves by the registry.
 *
 * A thread passes by a part that it keeps while it is outside: a resident part, one for
 * each thread, of the lock that it took last. The part keeps hold, lock and the memory of
 * the client until the thread drops it: at its next lock call that needs the registry, or
 * at its end.
 */
#ifndef RLK_FASTPATH_H
#define RLK_FASTPATH_H

#include "base/clock.h"
#include "base/probe.h"
#include "state/intent.h"
#include "state/lock.h"
#include "state/thread.h"

/* The word: 0 closed; else bit 0, bit 1 if the hold is kept, and above them the number of
 * the thread inside, or 0. */
enum { RLK_FASTPATH_OPEN = 1, RLK_FASTPATH_KEPT = 2, RLK_FASTPATH_BITS = 2 };

/* Who is inside, by the word. */
static inline bool rlk_fastpath_is_in(uint64_t word, const struct rlk_thread *thread)
{
    return word >> RLK_FASTPATH_BITS == thread->number;
}

static inline void rlk_fastpath_add(_Atomic uint64_t *counter, uint64_t by)
{
    /* its thread's alone */
    uint64_t n = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, n + by, memory_order_relaxed);
}

/* rule: G8 */
/* Whether a thread is inside, for whoever finds this process dead (G8). The word may be
 * its hold's no more: then it is nobody's, but still there (livefile.h). */
static inline void rlk_fastpath_say(struct rlk_pass *pass, enum rlk_inside inside)
{
    _Atomic uint32_t *word = atomic_load_explicit(&pass->inside, memory_order_relaxed);
    if (word)
        atomic_store_explicit(word, inside, memory_order_release);
}

/* rule: H3, K7 */
/* The calling thread, which is outside, enters by its resident part. False: not this way.
 * Entry is before D, and before the lease is at risk (H3). */
static inline bool rlk_fastpath_enter(struct rlk_thread *thread)
{
    struct rlk_holder *holder = thread->fast;
    struct rlk_hold *hold = holder->hold;
    uint64_t open = atomic_load_explicit(&hold->pass->fastpath, memory_order_relaxed);

    /* a handle that does not keep it would have to give it back */
    if (open != RLK_FASTPATH_OPEN &&
        !(open == (RLK_FASTPATH_OPEN | RLK_FASTPATH_KEPT) && holder->keeps))
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
    if (holder->fencing) /* there is one left, as the gate was opened with one */
        atomic_fetch_add_explicit(&hold->token, 1, memory_order_relaxed);
    thread->fast_in = true;
    RLK_PROBE4(lock_acquired, RLK_PROBE_TEXT(hold->lock->name), (int)hold->lock->kind,
               (int)hold->reading, rlk_probe_zero());
    return true;
}

/* rule: H11 */
/* It leaves at `now` < D. False: not this way; it is inside as before. */
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
             pass->token_end)) /* more are to be asked for */
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

/* Whether nobody is in it, as far as a look tells. */
static inline bool rlk_fastpath_is_idle(const struct rlk_hold *hold)
{
    uint64_t word = atomic_load_explicit(&hold->pass->fastpath, memory_order_acquire);
    return rlk_hold_is_retained(hold) && word >> RLK_FASTPATH_BITS == 0;
}

/* What the calling thread has counted goes into the statistics. Locks: takes the
 * registry's mu. */
void rlk_fastpath_count(struct rlk_holder *holder);

/* The calling thread takes what it has once more. */
static inline void rlk_fastpath_reenter(struct rlk_holder *holder)
{
    enum { COUNT_FROM = 1 << 30 }; /* long before the difference no longer fits */
    uint32_t n = atomic_load_explicit(&holder->reentries, memory_order_relaxed) + 1;

    atomic_store_explicit(&holder->reentries, n, memory_order_relaxed);
    if (__builtin_expect(n % COUNT_FROM == 0, 0))
        rlk_fastpath_count(holder);
}

/* The calling thread, which has no registry's mutex, may come by a gate later: an unlock
 * allocates nothing. Out of memory: it will come by none. */
void rlk_fastpath_prepare(struct rlk_thread *thread);

/* ---- under the registry's mutex */

/* An IDLE hold is free for the threads that have a resident part of it. kept: though
 * nobody waits here, so only for those whose handle keeps it, too. */
void rlk_fastpath_open_locked(struct rlk_hold *hold, bool kept);
/* The hold is the registry's again: IDLE, or INSIDE of who is in. Harmless when it is. */
void rlk_fastpath_close_locked(struct rlk_hold *hold);
/* Those of all holds. */
void rlk_fastpath_close_all_locked(struct rlk_registry *reg);

/* The calling thread leaves a hold that stays with the process. Its part becomes
 * resident, or ends: it has another one already, or was not prepared. */
void rlk_fastpath_step_out_locked(struct rlk_holder *holder, bool keeps);
/* The resident part of a thread for this hold, taken into it; or NULL. */
struct rlk_holder *rlk_fastpath_step_in_locked(struct rlk_hold *hold,
                                               struct rlk_thread *thread);
/* The hold ends: its resident parts keep the client's memory until they are dropped. */
void rlk_fastpath_end_locked(struct rlk_hold *hold);

/* The calling thread gives up its resident part, which it is not inside of. Locks: takes
 * the registry's mu. */
void rlk_fastpath_drop(struct rlk_thread *thread);

#endif
