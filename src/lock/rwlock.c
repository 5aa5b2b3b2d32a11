/* SPDX-License-Identifier: Apache-2.0 */
/* The read-write lock: rlock_rwlock_*. Levels and modes over handle.c; how it waits is in
 * acquire.c, what it says to the server in lua/rwlock_*.lua. Thread: any. */
#include "lock/call.h"
#include "lock/query.h"

_Static_assert(sizeof(rlock_rwlock_t) == 256 && offsetof(rlock_rwlock_t, rlk) == 0,
               "part of the ABI");
_Static_assert(sizeof(rlock_rwlockattr_t) == 128 &&
                   offsetof(rlock_rwlockattr_t, rlk) == 0,
               "part of the ABI");

int rlock_rwlock_init(rlock_rwlock_t *handle, const rlock_rwlockattr_t *attr,
                      const char *name)
{
    return rlk_handle_init(BASE(handle), RLK_KIND_RWLOCK, (const struct rlk_attr *)attr,
                           RLK_MAGIC_RWLOCKATTR, name);
}

int rlock_rwlock_destroy(rlock_rwlock_t *handle)
{
    return rlk_handle_destroy(BASE(handle), RLK_KIND_RWLOCK);
}

int rlock_rwlock_extend(rlock_rwlock_t *handle, long lease_ms)
{
    return rlk_query_extend(BASE(handle), RLK_KIND_RWLOCK, lease_ms);
}

int rlock_rwlock_gettoken(const rlock_rwlock_t *handle, uint64_t *ret_token)
{
    return rlk_query_gettoken(CONST_BASE(handle), RLK_KIND_RWLOCK, ret_token);
}

int rlock_rwlock_getremaining(const rlock_rwlock_t *handle, long *ret_ms)
{
    return rlk_query_getremaining(CONST_BASE(handle), RLK_KIND_RWLOCK, ret_ms);
}

int rlock_rwlock_getstate(const rlock_rwlock_t *handle, rlock_state_t *ret_state)
{
    return rlk_query_getstate(CONST_BASE(handle), RLK_KIND_RWLOCK, ret_state);
}

int rlock_rwlock_getholdcount(const rlock_rwlock_t *handle, unsigned *ret_count)
{
    return rlk_query_getholdcount(CONST_BASE(handle), RLK_KIND_RWLOCK, ret_count);
}

/* ---- lock */

/* rule: W24 */
/* The thread holds the lock already: one more level, without a round trip, even if others
 * wait (W24). */
static int lock_again(const struct rlk_lock_args *d, struct rlk_holder *holder)
{
    if (rlk_held_check(holder->hold, rlk_clock_boot()))
        return ESTALE;
    if (!d->reading && holder->levels.writes == 0)
        return rlk_error_set(d->form == RLK_FORM_TRY ? EBUSY : EDEADLK,
                             "the calling thread already holds the lock, for reading");
    if (!rlk_recursion_push(&holder->levels, d->reading))
        return EAGAIN;
    rlk_fastpath_reenter(holder);
    return 0;
}

static int lock_first(const struct rlk_lock_args *d)
{
    int rc = rlk_handle_args_first(d);
    if (rc == 0) /* a first level needs no memory */
        rlk_recursion_push(&rlk_handle_part(d->handle)->levels, d->reading);
    return rc;
}

static int lock(const struct rlk_lock_args *d)
{
    struct rlk_call call = rlk_call_enter();
    int rc = rlk_handle_args_check(d);

    if (rc == 0) {
        struct rlk_holder *holder = rlk_handle_part(d->handle);
        rc = holder ? lock_again(d, holder) : lock_first(d);
    }
    return rlk_call_leave(
        call, rlk_handle_guard(rlk_handle_aborts(d->handle, RLK_KIND_RWLOCK), rc));
}

static int lock_plain(rlock_rwlock_t *rwlock, bool reading, enum rlk_form form,
                      long lease_ms)
{
    if (lease_ms == 0) {
        struct rlk_holder *holder = rlk_handle_inner(BASE(rwlock), RLK_KIND_RWLOCK);
        if (holder && (reading || holder->levels.writes > 0) &&
            rlk_recursion_reads(&holder->levels) == reading &&
            rlk_recursion_push(&holder->levels, reading)) {
            rlk_fastpath_reenter(holder);
            rlk_error_clear();
            return 0;
        }
    }
    return lock(&(struct rlk_lock_args){ .handle = BASE(rwlock),
                                         .kind = RLK_KIND_RWLOCK,
                                         .reading = reading,
                                         .form = form,
                                         .lease_ms = lease_ms });
}

static int lock_until(rlock_rwlock_t *rwlock, bool reading, clockid_t clock,
                      const struct timespec *abstime, long lease_ms)
{
    return lock(&(struct rlk_lock_args){ .handle = BASE(rwlock),
                                         .kind = RLK_KIND_RWLOCK,
                                         .reading = reading,
                                         .form = RLK_FORM_TIMED,
                                         .clock = clock,
                                         .abstime = abstime,
                                         .lease_ms = lease_ms });
}

int rlock_rwlock_rdlock(rlock_rwlock_t *rwlock)
{
    return lock_plain(rwlock, true, RLK_FORM_LOCK, 0);
}

int rlock_rwlock_rdlock_lease(rlock_rwlock_t *rwlock, long lease_ms)
{
    return lock_plain(rwlock, true, RLK_FORM_LOCK, lease_ms);
}

int rlock_rwlock_tryrdlock(rlock_rwlock_t *rwlock)
{
    return lock_plain(rwlock, true, RLK_FORM_TRY, 0);
}

int rlock_rwlock_tryrdlock_lease(rlock_rwlock_t *rwlock, long lease_ms)
{
    return lock_plain(rwlock, true, RLK_FORM_TRY, lease_ms);
}

int rlock_rwlock_timedrdlock(rlock_rwlock_t *rwlock, const struct timespec *abstime)
{
    return lock_until(rwlock, true, CLOCK_REALTIME, abstime, 0);
}

int rlock_rwlock_timedrdlock_lease(rlock_rwlock_t *rwlock, const struct timespec *abstime,
                                   long lease_ms)
{
    return lock_until(rwlock, true, CLOCK_REALTIME, abstime, lease_ms);
}

int rlock_rwlock_clockrdlock(rlock_rwlock_t *rwlock, clockid_t clock,
                             const struct timespec *abstime)
{
    return lock_until(rwlock, true, clock, abstime, 0);
}

int rlock_rwlock_clockrdlock_lease(rlock_rwlock_t *rwlock, clockid_t clock,
                                   const struct timespec *abstime, long lease_ms)
{
    return lock_until(rwlock, true, clock, abstime, lease_ms);
}

int rlock_rwlock_wrlock(rlock_rwlock_t *rwlock)
{
    return lock_plain(rwlock, false, RLK_FORM_LOCK, 0);
}

int rlock_rwlock_wrlock_lease(rlock_rwlock_t *rwlock, long lease_ms)
{
    return lock_plain(rwlock, false, RLK_FORM_LOCK, lease_ms);
}

int rlock_rwlock_trywrlock(rlock_rwlock_t *rwlock)
{
    return lock_plain(rwlock, false, RLK_FORM_TRY, 0);
}

int rlock_rwlock_trywrlock_lease(rlock_rwlock_t *rwlock, long lease_ms)
{
    return lock_plain(rwlock, false, RLK_FORM_TRY, lease_ms);
}

int rlock_rwlock_timedwrlock(rlock_rwlock_t *rwlock, const struct timespec *abstime)
{
    return lock_until(rwlock, false, CLOCK_REALTIME, abstime, 0);
}

int rlock_rwlock_timedwrlock_lease(rlock_rwlock_t *rwlock, const struct timespec *abstime,
                                   long lease_ms)
{
    return lock_until(rwlock, false, CLOCK_REALTIME, abstime, lease_ms);
}

int rlock_rwlock_clockwrlock(rlock_rwlock_t *rwlock, clockid_t clock,
                             const struct timespec *abstime)
{
    return lock_until(rwlock, false, clock, abstime, 0);
}

int rlock_rwlock_clockwrlock_lease(rlock_rwlock_t *rwlock, clockid_t clock,
                                   const struct timespec *abstime, long lease_ms)
{
    return lock_until(rwlock, false, clock, abstime, lease_ms);
}

/* ---- unlock */

/* Makes a writer a reader, and tells the server. */
static int downgrade(struct rlk_holder *holder)
{
    struct rlock_client *client = RLK_CLIENT_OF(holder->hold->lock->registry);
    if (rlk_client_keep(client) != 0) /* the client was closed just now, which lost the
                                         hold */
        return ESTALE;
    int rc = rlk_held_downgrade(holder);
    rlk_client_put(client);
    return rc;
}

enum which { INNERMOST, READ, WRITE };

static int unlock_level(struct rlk_handle *handle, enum which which)
{
    int rc = rlk_handle_check(handle, RLK_KIND_RWLOCK);
    if (rc != 0)
        return rc;
    struct rlk_holder *holder = rlk_handle_part(handle);
    if (!holder)
        return EPERM;
    struct rlk_recursion *levels = &holder->levels;
    bool read = which == INNERMOST ? rlk_recursion_reads(levels) : which == READ;
    if (!rlk_recursion_drop(levels, read))
        return EPERM;
    int64_t now = rlk_clock_boot();
    bool none = levels->reads + levels->writes == 0;
    if (rlk_held_check(holder->hold, now)) {
        if (none)
            rlk_release_drain(holder);
        return ESTALE;
    }
    /* rule: W24 */
    if (none)
        return rlk_release_retained(holder, handle, now);
    return !read && levels->writes == 0 ? downgrade(holder) : 0;
}

static int unlock(rlock_rwlock_t *rwlock, enum which which)
{
    struct rlk_holder *holder = rlk_handle_inner(BASE(rwlock), RLK_KIND_RWLOCK);
    if (holder && which != WRITE && holder->levels.reads > 1 &&
        rlk_recursion_reads(&holder->levels)) {
        rlk_recursion_drop(&holder->levels, true);
        rlk_error_clear();
        return 0;
    }
    struct rlk_call call = rlk_call_enter();
    bool aborts = rlk_handle_aborts(BASE(rwlock), RLK_KIND_RWLOCK);
    return rlk_call_leave(call,
                          rlk_handle_guard(aborts, unlock_level(BASE(rwlock), which)));
}

int rlock_rwlock_unlock(rlock_rwlock_t *rwlock)
{
    return unlock(rwlock, INNERMOST);
}

int rlock_rwlock_rdunlock(rlock_rwlock_t *rwlock)
{
    return unlock(rwlock, READ);
}

int rlock_rwlock_wrunlock(rlock_rwlock_t *rwlock)
{
    return unlock(rwlock, WRITE);
}

int rlock_rwlock_downgrade(rlock_rwlock_t *rwlock)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_handle *handle = BASE(rwlock);
    int rc = rlk_handle_check(handle, RLK_KIND_RWLOCK);
    struct rlk_holder *holder = rc == 0 ? rlk_handle_part(handle) : NULL;

    if (rc == 0 && (!holder || holder->levels.writes == 0))
        rc = EPERM;
    else if (rc == 0 && rlk_held_check(holder->hold, rlk_clock_boot()))
        rc = ESTALE;
    else if (rc == 0 && (rc = downgrade(holder)) != ESTALE)
        rlk_recursion_downgrade(&holder->levels);
    return rlk_call_leave(
        call, rlk_handle_guard(rlk_handle_aborts(handle, RLK_KIND_RWLOCK), rc));
}
