/* SPDX-License-Identifier: Apache-2.0 */
/* What the mutex and the fair lock do alike: levels and types over handle.c. Thread: any.
 */
#include "exclusive.h"

#include "call.h"

#include <limits.h>

/* ---- lock */

static int type_of(const struct rlk_handle *handle, struct rlk_hold *hold)
{
    return handle->rlk_type != 0 ? handle->rlk_type - 1
                                 : RLK_CLIENT_OF(hold->lock->registry)->config.mutex_type;
}

/* The holder locks again. */
static int lock_again(const struct rlk_demand *d, struct rlk_part *part)
{
    struct rlk_hold *hold = part->hold;

    if (rlk_hold_check(hold, rlk_now_boot()))
        return ESTALE;
    int type = type_of(d->handle, hold);
    if (type == RLOCK_MUTEX_RECURSIVE) {
        if (part->levels.writes >= INT_MAX)
            return EAGAIN;
        part->levels.writes++;
        rlk_gate_reenter(part);
        return 0;
    }
    if (d->form == RLK_FORM_TRY)
        return rlk_error_set(EBUSY, "the calling thread already holds the lock");
    if (d->form == RLK_FORM_LOCK || type == RLOCK_MUTEX_ERRORCHECK)
        return EDEADLK;
    /* a normal mutex waits for itself, as in glibc */
    return rlk_demand_in_vain(d, hold);
}

/* The holder before may have died in the midst of something. */
static int lock_first(const struct rlk_demand *d)
{
    int rc = rlk_demand_first(d);
    if (rc == 0 && (d->handle->rlk_flags & RLK_HANDLE_ROBUST) &&
        rlk_handle_part(d->handle)->hold->owner_died)
        rc = rlk_error_set(EOWNERDEAD, "held; the holder before died in its section");
    return rc;
}

static int lock(const struct rlk_demand *d)
{
    struct rlk_call call = rlk_call_enter();
    int rc = rlk_demand_check(d);

    if (rc == 0) {
        struct rlk_part *part = rlk_handle_part(d->handle);
        rc = part ? lock_again(d, part) : lock_first(d);
    }
    return rlk_call_leave(call,
                          rlk_handle_guard(rlk_handle_aborts(d->handle, d->kind), rc));
}

/* By the gate of a hold that the thread has left before, and no other way. */
static inline bool enter_fast(const struct rlk_handle *handle, int kind)
{
    struct rlk_thread *thread = rlk_handle_fast(handle, kind);
    if (!thread || thread->fast_in || !rlk_gate_enter(thread))
        return false;
    rlk_error_clear();
    return true;
}

static inline bool leave_fast(const struct rlk_handle *handle, int kind)
{
    struct rlk_thread *thread = rlk_handle_fast(handle, kind);
    if (!thread || !thread->fast_in || thread->fast->levels.writes != 1 ||
        !rlk_gate_leave(thread))
        return false;
    rlk_error_clear();
    return true;
}

static inline bool enter_again(const struct rlk_handle *handle, int kind)
{
    struct rlk_part *part = rlk_handle_inner(handle, kind);
    if (!part || type_of(handle, part->hold) != RLOCK_MUTEX_RECURSIVE ||
        part->levels.writes >= INT_MAX)
        return false;
    part->levels.writes++;
    rlk_gate_reenter(part);
    rlk_error_clear();
    return true;
}

static inline bool leave_inner(const struct rlk_handle *handle, int kind)
{
    struct rlk_part *part = rlk_handle_inner(handle, kind);
    if (!part || part->levels.writes < 2)
        return false;
    part->levels.writes--;
    rlk_error_clear();
    return true;
}

static __attribute__((noinline)) int lock_slow(struct rlk_handle *handle, int kind,
                                               enum rlk_form form, long lease_ms)
{
    if (lease_ms == 0 && enter_again(handle, kind))
        return 0;
    return lock(&(struct rlk_demand){
        .handle = handle, .kind = kind, .form = form, .lease_ms = lease_ms });
}

int rlk_exclusive_lock(struct rlk_handle *handle, int kind, long lease_ms)
{
    if (lease_ms == 0 && enter_fast(handle, kind))
        return 0;
    return lock_slow(handle, kind, RLK_FORM_LOCK, lease_ms);
}

int rlk_exclusive_trylock(struct rlk_handle *handle, int kind, long lease_ms)
{
    if (lease_ms == 0 && enter_fast(handle, kind))
        return 0;
    return lock_slow(handle, kind, RLK_FORM_TRY, lease_ms);
}

int rlk_exclusive_clocklock(struct rlk_handle *handle, int kind, clockid_t clock,
                            const struct timespec *abstime, long lease_ms)
{
    return lock(&(struct rlk_demand){ .handle = handle,
                                      .kind = kind,
                                      .form = RLK_FORM_TIMED,
                                      .clock = clock,
                                      .abstime = abstime,
                                      .lease_ms = lease_ms });
}

/* ---- unlock */

static int unlock(struct rlk_handle *handle, int kind)
{
    int rc = rlk_handle_check(handle, kind);
    if (rc != 0)
        return rc;
    struct rlk_part *part = rlk_handle_part(handle);
    if (!part)
        return EPERM;
    int64_t now = rlk_now_boot();
    if (rlk_hold_check(part->hold, now)) {
        if (--part->levels.writes == 0)
            rlk_drain(part);
        return ESTALE;
    }
    if (--part->levels.writes > 0)
        return 0;
    return rlk_release_kept(part, handle, now);
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
    struct rlk_part *part = rc == 0 ? rlk_handle_part(handle) : NULL;

    if (rc == 0 && (!part || !part->hold->owner_died))
        rc = rlk_error_set(EINVAL, "not a robust lock that the caller holds in an "
                                   "inconsistent state");
    else if (rc == 0 && rlk_hold_check(part->hold, rlk_now_boot()))
        rc = ESTALE;
    else if (rc == 0)
        rlk_hold_consistent(part->hold);
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
