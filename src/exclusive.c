/* SPDX-License-Identifier: Apache-2.0 */
/* What the mutex and the fair lock do alike: handles, levels and types over acquire.c. A
 * thread finds its own holds in a list of its own, without a mutex; so a re-entry costs
 * no round trip and no hash. Thread: any. */
#include "exclusive.h"

#include "acquire.h"
#include "call.h"

#include "fork.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

_Static_assert(sizeof(struct rlk_handle) == 256, "part of the ABI");
_Static_assert(_Alignof(struct rlk_handle) == 8, "part of the ABI");

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

static int fill(struct rlk_handle *handle, int kind, const rlock_mutexattr_t *attr,
                const char *name)
{
    struct rlk_handle made;

    memset(&made, 0, sizeof(made));
    made.rlk_kind = (uint8_t)kind;
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
    __atomic_store_n(&handle->rlk_magic, 0, __ATOMIC_RELEASE);
    memcpy((char *)handle + sizeof(handle->rlk_magic),
           (char *)&made + sizeof(made.rlk_magic), sizeof(made) - sizeof(made.rlk_magic));
    __atomic_store_n(&handle->rlk_magic, RLK_MAGIC_HANDLE, __ATOMIC_RELEASE);
    return 0;
}

int rlk_exclusive_init(struct rlk_handle *handle, int kind, const rlock_mutexattr_t *attr,
                       const char *name)
{
    struct rlk_call call = rlk_call_enter();
    int rc = 0;

    if (!handle || (attr && attr->rlk_magic != RLK_MAGIC_MUTEXATTR)) {
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
        rc = fill(handle, kind, attr, name);
    return rlk_call_leave(call, rc);
}

int rlk_exclusive_destroy(struct rlk_handle *handle, int kind)
{
    struct rlk_call call = rlk_call_enter();
    struct rlock_client *client = NULL;
    int rc = 0;

    if (!rlk_handle_good(handle, kind)) {
        rc = EINVAL;
    } else if (!rlk_fork_in_child() &&
               (handle->rlk_client != 0 || rlk_client_default_number() != 0)) {
        /* a client that is closed, or was never opened, holds nothing */
        if (rlk_client_get(handle->rlk_client, &client) != 0)
            rlk_error_clear();
    }
    if (client) {
        struct rlk_registry *reg = &client->registry;
        rlk_registry_lock(reg);
        struct rlk_lock *lock =
            rlk_lock_find_locked(reg, kind, handle->rlk_name, handle->rlk_name_len);
        if (lock && lock->current && rlk_now_boot() < lock->current->end)
            rc = EBUSY;
        rlk_registry_unlock(reg);
        rlk_client_put(client);
    }
    if (rc == 0)
        __atomic_store_n(&handle->rlk_magic, 0, __ATOMIC_RELEASE);
    return rlk_call_leave(call, rc);
}

/* ---- the calling thread's hold */

static struct rlk_hold *own_hold(const struct rlk_handle *handle)
{
    struct rlk_thread *thread = rlk_thread_record;
    if (!thread)
        return NULL;
    for (struct rlk_list *l = thread->holds.next; l != &thread->holds; l = l->next) {
        struct rlk_hold *hold = RLK_CONTAINER_OF(l, struct rlk_hold, thread_link);
        const struct rlk_lock *lock = hold->lock;
        if (hold->client_number == handle->rlk_client && lock->kind == handle->rlk_kind &&
            lock->name_len == handle->rlk_name_len &&
            memcmp(lock->name, handle->rlk_name, lock->name_len) == 0)
            return hold;
    }
    return NULL;
}

static int check(const struct rlk_handle *handle, int kind)
{
    if (!rlk_handle_good(handle, kind))
        return EINVAL;
    if (rlk_fork_in_child())
        return rlk_error_set(ENOTSUP,
                             "a forked child cannot use the library before exec");
    return 0;
}

/* ---- lock */

enum form { FORM_LOCK, FORM_TRY, FORM_TIMED };

struct request {
    struct rlk_handle *handle;
    int kind;
    enum form form;
    clockid_t clock;
    const struct timespec *abstime;
    long lease_ms; /* 0: the default, renewed */
};

static int type_of(const struct rlk_handle *handle, struct rlk_hold *hold)
{
    return handle->rlk_type != 0 ? handle->rlk_type - 1
                                 : RLK_CLIENT_OF(hold->lock->registry)->config.mutex_type;
}

/* The holder locks again. */
static int lock_again(const struct request *r, struct rlk_hold *hold)
{
    if (rlk_hold_check(hold, rlk_now_boot()))
        return ESTALE;
    int type = type_of(r->handle, hold);
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
    const struct rlk_handle *handle = r->handle;
    struct rlk_wish wish = {
        .kind = r->kind,
        .name = handle->rlk_name,
        .name_len = handle->rlk_name_len,
        .try_once = r->form == FORM_TRY,
        .outage_fails = (handle->rlk_flags & RLK_HANDLE_OUTAGE_FAIL) != 0,
        .deadline = RLK_NO_DEADLINE,
        .fixed = r->lease_ms != 0,
        .fencing = (handle->rlk_flags & RLK_HANDLE_FENCING) != 0,
    };
    int rc = strnlen(wish.name, wish.name_len) == wish.name_len
                 ? rlk_name_check(wish.name, wish.name_len)
                 : EINVAL;
    if (rc == 0)
        rc = rlk_client_get(handle->rlk_client, &wish.client);
    if (rc != 0)
        return rc;
    wish.lease_ms = r->lease_ms != 0            ? r->lease_ms
                    : handle->rlk_lease_ms != 0 ? handle->rlk_lease_ms
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

static int guarded(const struct rlk_handle *handle, int kind, int rc)
{
    if (__builtin_expect(rc != 0, 0) && unexpected(rc) && rlk_handle_good(handle, kind) &&
        (handle->rlk_flags & RLK_HANDLE_OUTAGE_ABORT))
        abort();
    return rc;
}

static int lock(const struct request *r)
{
    struct rlk_call call = rlk_call_enter();
    int rc = check(r->handle, r->kind);

    if (rc == 0 && r->lease_ms != 0 && !rlk_lease_valid(r->lease_ms))
        rc = rlk_error_set(EINVAL, "a lease is %d to %d ms", RLK_LEASE_MIN_MS,
                           RLK_LEASE_MAX_MS);
    if (rc == 0 && r->form == FORM_TIMED &&
        (!r->abstime || (r->clock != CLOCK_REALTIME && r->clock != CLOCK_MONOTONIC)))
        rc = EINVAL;
    if (rc == 0) {
        struct rlk_hold *hold = own_hold(r->handle);
        rc = hold ? lock_again(r, hold) : lock_first(r);
    }
    return rlk_call_leave(call, guarded(r->handle, r->kind, rc));
}

/* The commonest re-entry, and its unlock, ahead of everything: they touch nothing but the
 * thread's own count, so there is nothing that a cancellation could leave half done. */
static inline struct rlk_hold *inner_level(const struct rlk_handle *handle, int kind)
{
    struct rlk_thread *thread = rlk_thread_record;
    if (!thread || rlk_list_empty(&thread->holds) || !rlk_handle_good(handle, kind) ||
        rlk_fork_in_child())
        return NULL;
    struct rlk_hold *hold = own_hold(handle);
    if (!hold || hold->state != RLK_HOLD_INSIDE || rlk_now_boot() >= hold->end)
        return NULL;
    return hold;
}

static inline bool enter_again(const struct rlk_handle *handle, int kind)
{
    struct rlk_hold *hold = inner_level(handle, kind);
    if (!hold || type_of(handle, hold) != RLOCK_MUTEX_RECURSIVE || hold->count >= INT_MAX)
        return false;
    hold->count++;
    hold->reentries++;
    rlk_error_clear();
    return true;
}

static inline bool leave_inner(const struct rlk_handle *handle, int kind)
{
    struct rlk_hold *hold = inner_level(handle, kind);
    if (!hold || hold->count < 2)
        return false;
    hold->count--;
    rlk_error_clear();
    return true;
}

int rlk_exclusive_lock(struct rlk_handle *handle, int kind, long lease_ms)
{
    if (lease_ms == 0 && enter_again(handle, kind))
        return 0;
    return lock(&(struct request){ handle, kind, FORM_LOCK, 0, NULL, lease_ms });
}

int rlk_exclusive_trylock(struct rlk_handle *handle, int kind, long lease_ms)
{
    if (lease_ms == 0 && enter_again(handle, kind))
        return 0;
    return lock(&(struct request){ handle, kind, FORM_TRY, 0, NULL, lease_ms });
}

int rlk_exclusive_clocklock(struct rlk_handle *handle, int kind, clockid_t clock,
                            const struct timespec *abstime, long lease_ms)
{
    return lock(&(struct request){ handle, kind, FORM_TIMED, clock, abstime, lease_ms });
}

/* ---- unlock */

static int unlock(struct rlk_handle *handle, int kind)
{
    int rc = check(handle, kind);
    if (rc != 0)
        return rc;
    struct rlk_hold *hold = own_hold(handle);
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

int rlk_exclusive_unlock(struct rlk_handle *handle, int kind)
{
    if (leave_inner(handle, kind))
        return 0;
    struct rlk_call call = rlk_call_enter();
    return rlk_call_leave(call, guarded(handle, kind, unlock(handle, kind)));
}

/* ---- the rest */

int rlk_exclusive_consistent(struct rlk_handle *handle, int kind)
{
    struct rlk_call call = rlk_call_enter();
    int rc = check(handle, kind);
    if (rc == 0)
        rc = rlk_error_set(EINVAL, "not a robust mutex in an inconsistent state");
    return rlk_call_leave(call, rc);
}

int rlk_exclusive_prioceiling(const struct rlk_handle *handle, int kind)
{
    struct rlk_call call = rlk_call_enter();
    int rc = rlk_handle_good(handle, kind)
                 ? rlk_error_set(ENOTSUP, "a distributed lock has no priority ceiling")
                 : EINVAL;
    return rlk_call_leave(call, rc);
}

/* The calling thread's hold, or why there is none. */
static int find_hold(const struct rlk_handle *handle, int kind,
                     struct rlk_hold **ret_hold)
{
    int rc = check(handle, kind);
    if (rc != 0)
        return rc;
    *ret_hold = own_hold(handle);
    return *ret_hold ? 0 : EPERM;
}

int rlk_exclusive_extend(struct rlk_handle *handle, int kind, long lease_ms)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_hold *hold = NULL;
    struct rlock_client *client = NULL;
    int rc = lease_ms == 0 || rlk_lease_valid(lease_ms) ? find_hold(handle, kind, &hold)
                                                        : EINVAL;

    if (rc == 0 && rlk_hold_check(hold, rlk_now_boot()))
        rc = ESTALE;
    if (rc == 0)
        client = RLK_CLIENT_OF(hold->lock->registry);
    if (rc == 0 && rlk_client_keep(client) != 0)
        rc = ESTALE;
    if (rc == 0) {
        long renewed =
            handle->rlk_lease_ms != 0 ? handle->rlk_lease_ms : client->config.lease_ms;
        rc = rlk_extend(hold, lease_ms != 0 ? lease_ms : renewed, lease_ms != 0);
        rlk_client_put(client);
    }
    return rlk_call_leave(call, rc);
}

int rlk_exclusive_gettoken(const struct rlk_handle *handle, int kind, uint64_t *ret_token)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_hold *hold = NULL;
    int rc = ret_token ? find_hold(handle, kind, &hold) : EINVAL;

    if (rc == 0 && hold->token == 0)
        rc = rlk_error_set(ENOTSUP, "the lock was taken without fencing");
    else if (rc == 0)
        *ret_token = hold->token;
    return rlk_call_leave(call, rc);
}

int rlk_exclusive_getremaining(const struct rlk_handle *handle, int kind, long *ret_ms)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_hold *hold = NULL;
    int rc = ret_ms ? find_hold(handle, kind, &hold) : EINVAL;

    if (rc == 0) {
        int64_t now = rlk_now_boot();
        *ret_ms =
            rlk_hold_check(hold, now) ? 0 : (long)((hold->end - now) / RLK_NS_PER_MS);
    }
    return rlk_call_leave(call, rc);
}

int rlk_exclusive_getstate(const struct rlk_handle *handle, int kind,
                           rlock_state_t *ret_state)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_hold *hold = NULL;
    int rc = ret_state ? find_hold(handle, kind, &hold) : EINVAL;

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

int rlk_exclusive_getholdcount(const struct rlk_handle *handle, int kind,
                               unsigned *ret_count)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_hold *hold = NULL;
    int rc = ret_count ? find_hold(handle, kind, &hold) : EINVAL;

    if (rc == 0 || rc == EPERM) {
        rc = 0;
        *ret_count = hold ? hold->count : 0;
    }
    return rlk_call_leave(call, rc);
}
