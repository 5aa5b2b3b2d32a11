/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_mutex_*: handles, levels and types over acquire.c. A thread finds its own holds
 * in a list of its own, without a mutex; so a re-entry costs no round trip and no hash.
 * Thread: any. */
#include "acquire.h"
#include "call.h"
#include "handle.h"

#include "fork.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

_Static_assert(sizeof(rlock_mutex_t) == 256, "part of the ABI");
_Static_assert(_Alignof(rlock_mutex_t) == 8, "part of the ABI");

/* ---- init and destroy */

/* A name that nobody else has: 128 random bits. */
static int make_name(char name[RLOCK_NAME_MAX + 1])
{
    uint64_t bits[2];
    if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
        return rlk_error_set(ENOMEM, "no random bytes for a name");
    snprintf(name, RLOCK_NAME_MAX + 1, "anonymous-%016llx%016llx",
             (unsigned long long)bits[0], (unsigned long long)bits[1]);
    return 0;
}

static int fill(rlock_mutex_t *mutex, const rlock_mutexattr_t *attr, const char *name)
{
    rlock_mutex_t made;

    memset(&made, 0, sizeof(made));
    made.rlk_kind = RLK_KIND_MUTEX;
    if (attr) {
        made.rlk_type = (uint8_t)(attr->rlk_type + 1); /* 0: never set */
        made.rlk_flags =
            (uint8_t)((attr->rlk_fencing ? RLK_HANDLE_FENCING : 0) |
                      (attr->rlk_pshared ? RLK_HANDLE_SHARED : 0) |
                      (attr->rlk_outage == RLOCK_OUTAGE_FAIL    ? RLK_HANDLE_OUTAGE_FAIL
                       : attr->rlk_outage == RLOCK_OUTAGE_ABORT ? RLK_HANDLE_OUTAGE_ABORT
                                                                : 0));
        made.rlk_lease_ms = attr->rlk_lease_ms;
        made.rlk_client = attr->rlk_client;
    }
    if (name) {
        size_t len = strnlen(name, RLOCK_NAME_MAX + 1);
        int rc = rlk_name_check(name, len);
        if (rc != 0)
            return rc;
        memcpy(made.rlk_name, name, len);
    } else {
        int rc = make_name(made.rlk_name);
        if (rc != 0)
            return rc;
    }
    made.rlk_name_len = (uint8_t)strlen(made.rlk_name);
    __atomic_store_n(&mutex->rlk_magic, 0, __ATOMIC_RELEASE);
    memcpy((char *)mutex + sizeof(mutex->rlk_magic),
           (char *)&made + sizeof(made.rlk_magic), sizeof(made) - sizeof(made.rlk_magic));
    __atomic_store_n(&mutex->rlk_magic, RLK_MAGIC_MUTEX, __ATOMIC_RELEASE);
    return 0;
}

int rlock_mutex_init(rlock_mutex_t *mutex, const rlock_mutexattr_t *attr,
                     const char *name)
{
    struct rlk_call call = rlk_call_enter();
    int rc = 0;

    if (!mutex || (attr && attr->rlk_magic != RLK_MAGIC_MUTEXATTR)) {
        rc = EINVAL;
    } else if (attr && attr->rlk_client != 0) {
        struct rlock_client *client;
        if (attr->rlk_pshared == RLOCK_PROCESS_SHARED)
            rc = rlk_error_set(ENOTSUP,
                               "a shared handle cannot name a client of one process");
        else if ((rc = rlk_client_get(attr->rlk_client, &client)) == 0)
            rlk_client_put(client);
    }
    if (rc == 0)
        rc = fill(mutex, attr, name);
    return rlk_call_leave(call, rc);
}

int rlock_mutex_destroy(rlock_mutex_t *mutex)
{
    struct rlk_call call = rlk_call_enter();
    struct rlock_client *client = NULL;
    int rc = 0;

    if (!rlk_handle_good(mutex, RLK_KIND_MUTEX)) {
        rc = EINVAL;
    } else if (!rlk_fork_in_child() &&
               (mutex->rlk_client != 0 || rlk_client_default_number() != 0)) {
        /* a client that is closed, or was never opened, holds nothing */
        if (rlk_client_get(mutex->rlk_client, &client) != 0)
            rlk_error_clear();
    }
    if (client) {
        struct rlk_registry *reg = &client->registry;
        rlk_registry_lock(reg);
        struct rlk_lock *lock = rlk_lock_find_locked(reg, RLK_KIND_MUTEX, mutex->rlk_name,
                                                     mutex->rlk_name_len);
        if (lock && lock->current && rlk_now_boot() < lock->current->end)
            rc = EBUSY;
        rlk_registry_unlock(reg);
        rlk_client_put(client);
    }
    if (rc == 0)
        __atomic_store_n(&mutex->rlk_magic, 0, __ATOMIC_RELEASE);
    return rlk_call_leave(call, rc);
}

/* ---- the calling thread's hold */

static struct rlk_hold *own_hold(const rlock_mutex_t *mutex)
{
    struct rlk_thread *thread = rlk_thread_record;
    if (!thread)
        return NULL;
    for (struct rlk_list *l = thread->holds.next; l != &thread->holds; l = l->next) {
        struct rlk_hold *hold = RLK_CONTAINER_OF(l, struct rlk_hold, thread_link);
        const struct rlk_lock *lock = hold->lock;
        if (hold->client_number == mutex->rlk_client && lock->kind == RLK_KIND_MUTEX &&
            lock->name_len == mutex->rlk_name_len &&
            memcmp(lock->name, mutex->rlk_name, lock->name_len) == 0)
            return hold;
    }
    return NULL;
}

static int check(const rlock_mutex_t *mutex)
{
    if (!rlk_handle_good(mutex, RLK_KIND_MUTEX))
        return EINVAL;
    if (rlk_fork_in_child())
        return rlk_error_set(ENOTSUP,
                             "a forked child cannot use the library before exec");
    return 0;
}

/* ---- lock */

enum form { FORM_LOCK, FORM_TRY, FORM_TIMED };

struct request {
    rlock_mutex_t *mutex;
    enum form form;
    clockid_t clock;
    const struct timespec *abstime;
    long lease_ms; /* 0: the default, renewed */
};

static int type_of(const rlock_mutex_t *mutex, struct rlk_hold *hold)
{
    return mutex->rlk_type != 0 ? mutex->rlk_type - 1
                                : RLK_CLIENT_OF(hold->lock->registry)->config.mutex_type;
}

/* The holder locks again. */
static int lock_again(const struct request *r, struct rlk_hold *hold)
{
    if (rlk_hold_check(hold, rlk_now_boot()))
        return ESTALE;
    int type = type_of(r->mutex, hold);
    if (type == RLOCK_MUTEX_RECURSIVE) {
        if (hold->count >= INT_MAX)
            return EAGAIN;
        hold->count++;
        hold->reentries++; /* the thread's own: an atomic one would cost a quarter of the
                              call */
        return 0;
    }
    if (r->form == FORM_TRY)
        return EBUSY;
    if (r->form == FORM_LOCK || type == RLOCK_MUTEX_ERRORCHECK)
        return EDEADLK;
    /* a normal mutex waits for itself, as in glibc */
    struct rlk_deadline deadline;
    int rc = rlk_deadline_set(&deadline, r->clock, r->abstime);
    if (rc != 0)
        return rc;
    if (!rlk_timespec_valid(r->abstime))
        return EINVAL;
    return rlk_wait_in_vain(RLK_CLIENT_OF(hold->lock->registry), rlk_thread_record,
                            &deadline);
}

static int lock_first(const struct request *r)
{
    const rlock_mutex_t *mutex = r->mutex;
    struct rlk_wish wish = {
        .kind = RLK_KIND_MUTEX,
        .name = mutex->rlk_name,
        .name_len = mutex->rlk_name_len,
        .try_once = r->form == FORM_TRY,
        .outage_fails = (mutex->rlk_flags & RLK_HANDLE_OUTAGE_FAIL) != 0,
        .deadline = RLK_NO_DEADLINE,
        .fixed = r->lease_ms != 0,
        .fencing = (mutex->rlk_flags & RLK_HANDLE_FENCING) != 0,
    };
    int rc = strnlen(wish.name, wish.name_len) == wish.name_len
                 ? rlk_name_check(wish.name, wish.name_len)
                 : EINVAL;
    if (rc == 0)
        rc = rlk_client_get(mutex->rlk_client, &wish.client);
    if (rc != 0)
        return rc;
    wish.lease_ms = r->lease_ms != 0           ? r->lease_ms
                    : mutex->rlk_lease_ms != 0 ? mutex->rlk_lease_ms
                                               : wish.client->config.lease_ms;
    /* one attempt is made whatever the deadline is; a wrong one is told only to who would
     * have to wait */
    int busy = EBUSY;
    if (r->form == FORM_TIMED) {
        rc = rlk_deadline_set(&wish.deadline, r->clock, r->abstime);
        if (rc == 0 && !rlk_timespec_valid(r->abstime))
            busy = EINVAL;
        else if (rc == 0 && rlk_deadline_left(&wish.deadline) <= 0)
            busy = ETIMEDOUT;
        wish.try_once = busy != EBUSY;
    }
    if (rc == 0) {
        wish.thread = rlk_thread_get();
        rc = wish.thread ? rlk_acquire(&wish) : ENOMEM;
    }
    if (rc == EBUSY && busy != EBUSY) {
        rc = rlk_error_set(busy, "%s", rlk_error_text(busy));
        if (rc == ETIMEDOUT)
            RLK_COUNT(wish.client->counters.timeouts);
    }
    rlk_client_put(wish.client);
    return rc;
}

/* With RLOCK_OUTAGE_ABORT: whether a pthread function could never have returned this. */
static bool unexpected(int rc)
{
    return rc == ESTALE || rc == ENOTCONN || rc == EACCES || rc == EPROTO ||
           rc == ENOMEM || rc == ENOTSUP || rc == EMFILE || rc == ENFILE;
}

static int guarded(const rlock_mutex_t *mutex, int rc)
{
    if (__builtin_expect(rc != 0, 0) && unexpected(rc) &&
        rlk_handle_good(mutex, RLK_KIND_MUTEX) &&
        (mutex->rlk_flags & RLK_HANDLE_OUTAGE_ABORT))
        abort();
    return rc;
}

static int lock(const struct request *r)
{
    struct rlk_call call = rlk_call_enter();
    int rc = check(r->mutex);

    if (rc == 0 && r->lease_ms != 0 && !rlk_lease_valid(r->lease_ms))
        rc = rlk_error_set(EINVAL, "a lease is %d to %d ms", RLK_LEASE_MIN_MS,
                           RLK_LEASE_MAX_MS);
    if (rc == 0 && r->form == FORM_TIMED &&
        (!r->abstime || (r->clock != CLOCK_REALTIME && r->clock != CLOCK_MONOTONIC)))
        rc = EINVAL;
    if (rc == 0) {
        struct rlk_hold *hold = own_hold(r->mutex);
        rc = hold ? lock_again(r, hold) : lock_first(r);
    }
    return rlk_call_leave(call, guarded(r->mutex, rc));
}

/* The commonest re-entry, and its unlock, ahead of everything: they touch nothing but the
 * thread's own count, so there is nothing that a cancellation could leave half done. */
static inline struct rlk_hold *inner_level(const rlock_mutex_t *mutex)
{
    struct rlk_thread *thread = rlk_thread_record;
    if (!thread || rlk_list_empty(&thread->holds) ||
        !rlk_handle_good(mutex, RLK_KIND_MUTEX) || rlk_fork_in_child())
        return NULL;
    struct rlk_hold *hold = own_hold(mutex);
    if (!hold || hold->state != RLK_HOLD_INSIDE || rlk_now_boot() >= hold->end)
        return NULL;
    return hold;
}

static inline bool enter_again(const rlock_mutex_t *mutex)
{
    struct rlk_hold *hold = inner_level(mutex);
    if (!hold || type_of(mutex, hold) != RLOCK_MUTEX_RECURSIVE || hold->count >= INT_MAX)
        return false;
    hold->count++;
    hold->reentries++;
    rlk_error_clear();
    return true;
}

static inline bool leave_inner(const rlock_mutex_t *mutex)
{
    struct rlk_hold *hold = inner_level(mutex);
    if (!hold || hold->count < 2)
        return false;
    hold->count--;
    rlk_error_clear();
    return true;
}

int rlock_mutex_lock(rlock_mutex_t *mutex)
{
    if (enter_again(mutex))
        return 0;
    return lock(&(struct request){ mutex, FORM_LOCK, 0, NULL, 0 });
}

int rlock_mutex_trylock(rlock_mutex_t *mutex)
{
    if (enter_again(mutex))
        return 0;
    return lock(&(struct request){ mutex, FORM_TRY, 0, NULL, 0 });
}

int rlock_mutex_timedlock(rlock_mutex_t *mutex, const struct timespec *abstime)
{
    return lock(&(struct request){ mutex, FORM_TIMED, CLOCK_REALTIME, abstime, 0 });
}

int rlock_mutex_clocklock(rlock_mutex_t *mutex, clockid_t clock,
                          const struct timespec *abstime)
{
    return lock(&(struct request){ mutex, FORM_TIMED, clock, abstime, 0 });
}

int rlock_mutex_lock_lease(rlock_mutex_t *mutex, long lease_ms)
{
    return lock(&(struct request){ mutex, FORM_LOCK, 0, NULL, lease_ms });
}

int rlock_mutex_trylock_lease(rlock_mutex_t *mutex, long lease_ms)
{
    return lock(&(struct request){ mutex, FORM_TRY, 0, NULL, lease_ms });
}

int rlock_mutex_timedlock_lease(rlock_mutex_t *mutex, const struct timespec *abstime,
                                long lease_ms)
{
    return lock(
        &(struct request){ mutex, FORM_TIMED, CLOCK_REALTIME, abstime, lease_ms });
}

int rlock_mutex_clocklock_lease(rlock_mutex_t *mutex, clockid_t clock,
                                const struct timespec *abstime, long lease_ms)
{
    return lock(&(struct request){ mutex, FORM_TIMED, clock, abstime, lease_ms });
}

/* ---- unlock */

static int unlock(rlock_mutex_t *mutex)
{
    int rc = check(mutex);
    if (rc != 0)
        return rc;
    struct rlk_hold *hold = own_hold(mutex);
    if (!hold)
        return EPERM;
    int64_t now = rlk_now_boot();
    if (rlk_hold_check(hold, now)) {
        if (--hold->count == 0)
            rlk_drain(hold);
        return ESTALE;
    }
    if (--hold->count > 0)
        return 0;
    struct rlock_client *client = RLK_CLIENT_OF(hold->lock->registry);
    if (rlk_client_keep(client) != 0) { /* closed, so the hold was lost in this moment */
        rlk_drain(hold);
        return ESTALE;
    }
    rc = rlk_release(hold, now);
    rlk_client_put(client);
    return rc;
}

int rlock_mutex_unlock(rlock_mutex_t *mutex)
{
    if (leave_inner(mutex))
        return 0;
    struct rlk_call call = rlk_call_enter();
    return rlk_call_leave(call, guarded(mutex, unlock(mutex)));
}

/* ---- the rest */

int rlock_mutex_consistent(rlock_mutex_t *mutex)
{
    struct rlk_call call = rlk_call_enter();
    int rc = check(mutex);
    if (rc == 0)
        rc = rlk_error_set(EINVAL, "not a robust mutex in an inconsistent state");
    return rlk_call_leave(call, rc);
}

int rlock_mutex_consistent_np(rlock_mutex_t *mutex)
{
    return rlock_mutex_consistent(mutex);
}

static int no_ceiling(const rlock_mutex_t *mutex)
{
    struct rlk_call call = rlk_call_enter();
    int rc = rlk_handle_good(mutex, RLK_KIND_MUTEX)
                 ? rlk_error_set(ENOTSUP, "a distributed lock has no priority ceiling")
                 : EINVAL;
    return rlk_call_leave(call, rc);
}

int rlock_mutex_getprioceiling(const rlock_mutex_t *mutex, int *ret_ceiling)
{
    (void)ret_ceiling;
    return no_ceiling(mutex);
}

int rlock_mutex_setprioceiling(rlock_mutex_t *mutex, int ceiling, int *ret_old)
{
    (void)ceiling;
    (void)ret_old;
    return no_ceiling(mutex);
}

/* The calling thread's hold, or why there is none. */
static int find_hold(const rlock_mutex_t *mutex, struct rlk_hold **ret_hold)
{
    int rc = check(mutex);
    if (rc != 0)
        return rc;
    *ret_hold = own_hold(mutex);
    return *ret_hold ? 0 : EPERM;
}

int rlock_mutex_extend(rlock_mutex_t *mutex, long lease_ms)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_hold *hold = NULL;
    struct rlock_client *client = NULL;
    int rc =
        lease_ms == 0 || rlk_lease_valid(lease_ms) ? find_hold(mutex, &hold) : EINVAL;

    if (rc == 0 && rlk_hold_check(hold, rlk_now_boot()))
        rc = ESTALE;
    if (rc == 0)
        client = RLK_CLIENT_OF(hold->lock->registry);
    if (rc == 0 && rlk_client_keep(client) != 0)
        rc = ESTALE;
    if (rc == 0) {
        long renewed =
            mutex->rlk_lease_ms != 0 ? mutex->rlk_lease_ms : client->config.lease_ms;
        rc = rlk_extend(hold, lease_ms != 0 ? lease_ms : renewed, lease_ms != 0);
        rlk_client_put(client);
    }
    return rlk_call_leave(call, rc);
}

int rlock_mutex_gettoken(const rlock_mutex_t *mutex, uint64_t *ret_token)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_hold *hold = NULL;
    int rc = ret_token ? find_hold(mutex, &hold) : EINVAL;

    if (rc == 0 && hold->token == 0)
        rc = rlk_error_set(ENOTSUP, "the lock was taken without fencing");
    else if (rc == 0)
        *ret_token = hold->token;
    return rlk_call_leave(call, rc);
}

int rlock_mutex_getremaining(const rlock_mutex_t *mutex, long *ret_ms)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_hold *hold = NULL;
    int rc = ret_ms ? find_hold(mutex, &hold) : EINVAL;

    if (rc == 0) {
        int64_t now = rlk_now_boot();
        *ret_ms =
            rlk_hold_check(hold, now) ? 0 : (long)((hold->end - now) / RLK_NS_PER_MS);
    }
    return rlk_call_leave(call, rc);
}

int rlock_mutex_getstate(const rlock_mutex_t *mutex, rlock_state_t *ret_state)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_hold *hold = NULL;
    int rc = ret_state ? find_hold(mutex, &hold) : EINVAL;

    if (rc == 0) {
        int64_t now = rlk_now_boot();
        *ret_state = rlk_hold_check(hold, now) ? RLOCK_LOST
                     : now >= hold->risk       ? RLOCK_AT_RISK
                                               : RLOCK_SAFE;
    } else if (rc == EPERM) {
        rc = 0;
        *ret_state = RLOCK_UNHELD;
    }
    return rlk_call_leave(call, rc);
}

int rlock_mutex_getholdcount(const rlock_mutex_t *mutex, unsigned *ret_count)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_hold *hold = NULL;
    int rc = ret_count ? find_hold(mutex, &hold) : EINVAL;

    if (rc == 0 || rc == EPERM) {
        rc = 0;
        *ret_count = hold ? hold->count : 0;
    }
    return rlk_call_leave(call, rc);
}
