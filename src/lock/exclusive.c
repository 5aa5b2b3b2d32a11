/* SPDX-License-Identifier: Apache-2.0 */
/* What the mutex and the fair lock have in common: levels and types, on top of handle.c.
 * Thread: any. */
#include "lock/exclusive.h"

#include "lock/call.h"

#include <limits.h>

/* ---- lock */

static int type_of(const struct rlk_handle *handle, struct rlk_hold *hold)
{
    return handle->rlk_type != 0 ? handle->rlk_type - 1
                                 : RLK_CLIENT_OF(hold->lock->registry)->config.mutex_type;
}

/* The holder locks again. */
static int lock_again(const struct rlk_lock_args *d, struct rlk_holder *holder)
{
    struct rlk_hold *hold = holder->hold;

    if (rlk_held_check(hold, rlk_clock_boot()))
        return ESTALE;
    int type = type_of(d->handle, hold);
    if (type == RLOCK_MUTEX_RECURSIVE) {
        if (holder->levels.writes >= INT_MAX)
            return EAGAIN;
        holder->levels.writes++;
        rlk_fastpath_reenter(holder);
        return 0;
    }
    if (d->form == RLK_FORM_TRY)
        return rlk_error_set(EBUSY, "the calling thread already holds the lock");
    if (d->form == RLK_FORM_LOCK || type == RLOCK_MUTEX_ERRORCHECK)
        return EDEADLK;
    /* a normal mutex waits for itself, as in glibc */
    return rlk_handle_args_in_vain(d, hold);
}

/* The thread has just taken the lock. EOWNERDEAD: the holder before it died inside its
 * section. */
static int look_for_death(const struct rlk_handle *handle)
{
    if (!(handle->rlk_flags & RLK_HANDLE_ROBUST) ||
        !rlk_handle_part(handle)->hold->robust.owner_died)
        return 0;
    return rlk_error_set(
        EOWNERDEAD, "the lock is held, but its previous holder died inside its section");
}

/* Enters by the fast path of a hold that the thread has left before, and in no other
 * way. */
static inline bool enter_fast(const struct rlk_handle *handle, int kind)
{
    struct rlk_thread *thread = rlk_handle_fast(handle, kind);
    if (!thread || thread->fast_in || !rlk_fastpath_enter(thread))
        return false;
    rlk_error_clear();
    return true;
}

static inline bool leave_fast(const struct rlk_handle *handle, int kind)
{
    struct rlk_thread *thread = rlk_handle_fast(handle, kind);
    if (!thread || !thread->fast_in || thread->fast->levels.writes != 1 ||
        !rlk_fastpath_leave(thread))
        return false;
    rlk_error_clear();
    return true;
}

static inline bool enter_again(const struct rlk_handle *handle, int kind)
{
    struct rlk_holder *holder = rlk_handle_inner(handle, kind);
    if (!holder || type_of(handle, holder->hold) != RLOCK_MUTEX_RECURSIVE ||
        holder->levels.writes >= INT_MAX)
        return false;
    holder->levels.writes++;
    rlk_fastpath_reenter(holder);
    rlk_error_clear();
    return true;
}

static inline bool leave_inner(const struct rlk_handle *handle, int kind)
{
    struct rlk_holder *holder = rlk_handle_inner(handle, kind);
    if (!holder || holder->levels.writes < 2)
        return false;
    holder->levels.writes--;
    rlk_error_clear();
    return true;
}

/* The deadline of a call. */
struct when {
    clockid_t clock;
    const struct timespec *abstime;
};

static __attribute__((noinline)) int lock(struct rlk_handle *handle, int kind,
                                          enum rlk_form form, long lease_ms,
                                          const struct when *when)
{
    if (lease_ms == 0 && form != RLK_FORM_TIMED && enter_again(handle, kind))
        return 0;
    const struct rlk_lock_args args = { .handle = handle,
                                        .kind = kind,
                                        .form = form,
                                        .lease_ms = lease_ms,
                                        .clock = when ? when->clock : 0,
                                        .abstime = when ? when->abstime : NULL };
    struct rlk_call call = rlk_call_enter();
    int rc = rlk_handle_args_check(&args);
    struct rlk_holder *holder = rc == 0 ? rlk_handle_part(handle) : NULL;

    if (holder)
        rc = lock_again(&args, holder);
    else if (rc == 0 && (rc = rlk_handle_args_first(&args)) == 0)
        rc = look_for_death(handle);
    return rlk_call_leave(call, rlk_handle_guard(rlk_handle_aborts(handle, kind), rc));
}

int rlk_exclusive_lock(struct rlk_handle *handle, int kind, long lease_ms)
{
    if (lease_ms == 0 && enter_fast(handle, kind))
        return 0;
    return lock(handle, kind, RLK_FORM_LOCK, lease_ms, NULL);
}

int rlk_exclusive_trylock(struct rlk_handle *handle, int kind, long lease_ms)
{
    if (lease_ms == 0 && enter_fast(handle, kind))
        return 0;
    return lock(handle, kind, RLK_FORM_TRY, lease_ms, NULL);
}

int rlk_exclusive_clocklock(struct rlk_handle *handle, int kind, clockid_t clock,
                            const struct timespec *abstime, long lease_ms)
{
    const struct when when = { clock, abstime };
    return lock(handle, kind, RLK_FORM_TIMED, lease_ms, &when);
}

/* ---- unlock */

static int unlock(struct rlk_handle *handle, int kind)
{
    int rc = rlk_handle_check(handle, kind);
    if (rc != 0)
        return rc;
    struct rlk_holder *holder = rlk_handle_part(handle);
    if (!holder)
        return EPERM;
    int64_t now = rlk_clock_boot();
    if (rlk_held_check(holder->hold, now)) {
        if (--holder->levels.writes == 0)
            rlk_release_drain(holder);
        return ESTALE;
    }
    if (--holder->levels.writes > 0)
        return 0;
    return rlk_release_retained(holder, handle, now);
}

static __attribute__((noinline)) int unlock_slow(struct rlk_handle *handle, int kind)
{
    if (leave_inner(handle, kind))
        return 0;
    struct rlk_call call = rlk_call_enter();
    bool aborts = rlk_handle_aborts(handle, kind);
    return rlk_call_leave(call, rlk_handle_guard(aborts, unlock(handle, kind)));
}

int rlk_exclusive_unlock(struct rlk_handle *handle, int kind)
{
    return leave_fast(handle, kind) ? 0 : unlock_slow(handle, kind);
}

/* ---- the rest */

int rlk_exclusive_consistent(struct rlk_handle *handle, int kind)
{
    struct rlk_call call = rlk_call_enter();
    int rc = rlk_handle_check(handle, kind);
    struct rlk_holder *holder = rc == 0 ? rlk_handle_part(handle) : NULL;

    if (rc == 0 && (!holder || !holder->hold->robust.owner_died))
        rc = rlk_error_set(
            EINVAL, "the calling thread holds no robust lock in an inconsistent state");
    else if (rc == 0 && rlk_held_check(holder->hold, rlk_clock_boot()))
        rc = ESTALE;
    else if (rc == 0)
        rlk_held_consistent(holder->hold);
    return rlk_call_leave(call, rc);
}

int rlk_exclusive_prioceiling(const struct rlk_handle *handle, int kind)
{
    struct rlk_call call = rlk_call_enter();
    int rc = rlk_handle_good(handle, kind)
                 ? rlk_error_set(ENOTSUP, "a distributed lock has no priority ceiling")
                 : rlk_handle_bad(handle, kind);
    return rlk_call_leave(call, rc);
}
