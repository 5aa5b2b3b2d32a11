/* SPDX-License-Identifier: Apache-2.0 */
/* What all lock types do with a handle: make and end it, find the calling thread's holder
 * of its lock, and take a lock that the thread does not hold. A thread finds its own
 * holds without a mutex, in a list of its own (with many holds, a table), so a re-entry
 * costs no round trip. Thread: any. */
#include "lock/handle.h"

#include "base/random.h"
#include "lock/attr.h"
#include "lock/call.h"
#include "state/thread_holds.h"

#include <stdio.h>
#include <stdlib.h>

_Static_assert(sizeof(struct rlk_handle) == 256, "part of the ABI");
_Static_assert(_Alignof(struct rlk_handle) == 8, "part of the ABI");

/* ---- init and destroy */

/* A unique name: 128 random bits. */
static int make_name(char name[RLOCK_NAME_MAX + 1])
{
    uint64_t bits[2];
    if (!rlk_random_bytes(bits, sizeof(bits)))
        return rlk_error_set(ENOMEM, "cannot get random bytes for a name");
    snprintf(name, RLOCK_NAME_MAX + 1, "anonymous-%016llx%016llx",
             (unsigned long long)bits[0], (unsigned long long)bits[1]);
    return 0;
}

static int fill(struct rlk_handle *handle, int kind, const struct rlk_attr *attr,
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
                      (attr->rlk_robust == RLOCK_MUTEX_ROBUST ? RLK_HANDLE_ROBUST : 0) |
                      (attr->rlk_outage == RLOCK_OUTAGE_FAIL    ? RLK_HANDLE_OUTAGE_FAIL
                       : attr->rlk_outage == RLOCK_OUTAGE_ABORT ? RLK_HANDLE_OUTAGE_ABORT
                                                                : 0));
        made.rlk_lease_ms = attr->rlk_lease_ms;
        made.rlk_client = attr->rlk_client;
        /* 0: never set */
        made.rlk_handoff_ms = attr->rlk_handoff_ms + 1;
        made.rlk_handoff_count = attr->rlk_handoff_count + 1;
        made.rlk_retain_ms = attr->rlk_retain_ms + 1;
    }
    if (name) {
        size_t len = strnlen(name, RLOCK_NAME_MAX + 1);
        int rc = rlk_key_check(name, len);
        if (rc != 0)
            return rc;
        memcpy(made.rlk_name, name, len);
    } else {
        int rc = make_name(made.rlk_name);
        if (rc != 0)
            return rc;
    }
    made.rlk_name_len = (uint8_t)strlen(made.rlk_name);
    /* A process that dies during these stores leaves no valid handle: the compiler must
     * not move the first store to a later place, nor the last one to an earlier one. */
    __atomic_store_n(&handle->rlk_magic, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    memcpy((char *)handle + sizeof(handle->rlk_magic),
           (char *)&made + sizeof(made.rlk_magic), sizeof(made) - sizeof(made.rlk_magic));
    __atomic_store_n(&handle->rlk_magic, RLK_MAGIC_HANDLE, __ATOMIC_RELEASE);
    return 0;
}

int rlk_handle_init(struct rlk_handle *handle, int kind, const struct rlk_attr *attr,
                    uint32_t attr_magic, const char *name)
{
    struct rlk_call call = rlk_call_enter();
    int rc = 0;

    if (!handle) {
        rc = rlk_handle_bad(handle, kind);
    } else if (attr && !rlk_attr_good(attr, attr_magic)) {
        rc = EINVAL;
    } else if (attr && attr->rlk_client != 0) {
        struct rlock_client *client;
        if (attr->rlk_pshared == RLOCK_PROCESS_SHARED)
            rc = rlk_error_set(
                ENOTSUP, "a process-shared handle cannot name a client of one process");
        else if ((rc = rlk_client_peek(attr->rlk_client, &client)) == 0 && !client)
            rc = rlk_error_set(EINVAL, "the client in the attributes is closed");
        else if (rc == 0)
            rlk_client_put(client);
    }
    if (rc == 0)
        rc = fill(handle, kind, attr, name);
    return rlk_call_leave(call, rc);
}

/* Whether a thread of this process holds the lock, or waits for it. */
static bool is_used_locked(struct rlk_lock *lock, int64_t now)
{
    bool used = rlk_lock_held_locked(lock, now) && lock->current &&
                !rlk_hold_is_retained(lock->current);
    for (struct rlk_list *l = lock->queue->reads.next; !used && l != &lock->queue->reads;
         l = l->next)
        used = !rlk_hold_is_retained(RLK_CONTAINER_OF(l, struct rlk_hold, link));
    return used || rlk_lock_ask_locked(lock) || !rlk_list_empty(&lock->queue->waiters) ||
           !rlk_list_empty(&lock->queue->readers);
}

int rlk_handle_destroy(struct rlk_handle *handle, int kind)
{
    struct rlk_call call = rlk_call_enter();
    struct rlock_client *client = NULL;
    int rc = 0;

    if (!rlk_handle_good(handle, kind)) {
        rc = rlk_handle_bad(handle, kind);
    } else if (rlk_client_peek(handle->rlk_client, &client) != 0) {
        rlk_error_clear();
    }
    /* a client that is closed, or was never opened, or is only known from the parent of
     * this process, holds nothing */
    if (client && client->running) {
        struct rlk_registry *reg = &client->registry;
        rlk_registry_lock(reg);
        struct rlk_lock *lock =
            rlk_lock_find_locked(reg, kind, handle->rlk_name, handle->rlk_name_len);
        if (lock && is_used_locked(lock, rlk_clock_boot()))
            rc = rlk_error_set(
                EBUSY, "a thread of this process holds the lock, or waits for it");
        rlk_registry_unlock(reg);
    }
    if (client)
        rlk_client_put(client);
    if (rc == 0)
        __atomic_store_n(&handle->rlk_magic, 0, __ATOMIC_RELEASE);
    return rlk_call_leave(call, rc);
}

/* ---- the calling thread's hold */

static bool is_of(const struct rlk_holder *holder, const struct rlk_handle *handle)
{
    const struct rlk_hold *hold = holder->hold;
    const struct rlk_lock *lock = hold->lock;
    return lock->registry->client_number == handle->rlk_client &&
           lock->kind == handle->rlk_kind && lock->name_len == handle->rlk_name_len &&
           memcmp(lock->name, handle->rlk_name, lock->name_len) == 0;
}

static uint64_t hash_of(const struct rlk_handle *handle)
{
    return rlk_key_hash(handle->rlk_name, handle->rlk_name_len);
}

struct rlk_holder *rlk_handle_part(const struct rlk_handle *handle)
{
    struct rlk_thread *thread = rlk_thread_mine();
    if (!thread)
        return NULL;
    if (thread->fast_in && is_of(thread->fast, handle))
        return thread->fast;
    struct rlk_holder *holder;
    if (thread->table && rlk_thread_holds_bucket(thread, hash_of(handle), &holder)) {
        while (holder && !is_of(holder, handle))
            holder = holder->next_of_thread;
        return holder;
    }
    for (struct rlk_list *l = thread->holds.next; l != &thread->holds; l = l->next) {
        holder = RLK_CONTAINER_OF(l, struct rlk_holder, thread_link);
        if (is_of(holder, handle))
            return holder;
    }
    return NULL;
}

bool rlk_handle_lease_or_0(long lease_ms)
{
    if (lease_ms == 0 || rlk_lease_valid(lease_ms))
        return true;
    rlk_error_set(EINVAL, "lease is %ld ms: must be 0, or from %d to %d", lease_ms,
                  RLK_LEASE_MIN_MS, RLK_LEASE_MAX_MS);
    return false;
}

int rlk_handle_bad(const struct rlk_handle *handle, int kind)
{
    static const char *const kinds[] = { [RLK_KIND_MUTEX] = "mutex",
                                         [RLK_KIND_FAIR] = "fair lock",
                                         [RLK_KIND_RWLOCK] = "read-write lock" };
    const uint32_t layout = 0xff000000u, magic = handle ? handle->rlk_magic : 0;

    if (!handle)
        return rlk_error_set(EINVAL, "the lock is NULL");
    if (magic != RLK_MAGIC_HANDLE && (magic & ~layout) == (RLK_MAGIC_HANDLE & ~layout))
        return rlk_error_set(EINVAL,
                             "the lock has layout %u, made by another version of this "
                             "library; this version supports layout %u",
                             (unsigned)(magic >> 24), (unsigned)(RLK_MAGIC_HANDLE >> 24));
    if (magic != RLK_MAGIC_HANDLE)
        return rlk_error_set(EINVAL, "the lock is not initialised, or was destroyed");
    if (handle->rlk_kind != kind && handle->rlk_kind < sizeof(kinds) / sizeof(kinds[0]) &&
        kinds[handle->rlk_kind])
        return rlk_error_set(EINVAL, "the lock is a %s", kinds[handle->rlk_kind]);
    return rlk_error_set(EINVAL, "the lock has been overwritten");
}

int rlk_handle_check(const struct rlk_handle *handle, int kind)
{
    /* rule: T13 */
    if (!rlk_handle_good(handle, kind))
        return rlk_handle_bad(handle, kind);
    rlk_fork_settle();
    return 0;
}

/* Whether a pthread function could never have returned this code: RLOCK_OUTAGE_ABORT. */
static bool unexpected(int rc)
{
    return rc == ESTALE || rc == ENOTCONN || rc == EACCES || rc == EPROTO ||
           rc == ENOMEM || rc == ENOTSUP || rc == EMFILE || rc == ENFILE;
}

bool rlk_handle_aborts(const struct rlk_handle *handle, int kind)
{
    return rlk_handle_good(handle, kind) && (handle->rlk_flags & RLK_HANDLE_OUTAGE_ABORT);
}

int rlk_handle_guard(bool aborts, int rc)
{
    if (__builtin_expect(rc != 0, 0) && aborts && unexpected(rc))
        abort();
    return rc;
}

/* ---- taking a lock */

int rlk_handle_args_check(const struct rlk_lock_args *d)
{
    int rc = rlk_handle_check(d->handle, d->kind);

    if (rc == 0 && !rlk_handle_lease_or_0(d->lease_ms))
        rc = EINVAL;
    if (rc != 0 || d->form != RLK_FORM_TIMED)
        return rc;
    if (!rlk_error_argument_there("the deadline", d->abstime))
        return EINVAL;
    if (d->clock != CLOCK_REALTIME && d->clock != CLOCK_MONOTONIC)
        return rlk_error_set(EINVAL,
                             "clock %d is neither CLOCK_REALTIME nor CLOCK_MONOTONIC",
                             (int)d->clock);
    return 0;
}

/* The kind of a read-write lock; 0 for other types. */
static uint8_t rwlock_kind(const struct rlk_handle *handle)
{
    return handle->rlk_kind != RLK_KIND_RWLOCK ? 0
           : handle->rlk_type == 0             ? RLOCK_RWLOCK_PHASE_FAIR_NP
                                               : (uint8_t)(handle->rlk_type - 1);
}

/* A thread has one resident holder. Drops that of another lock, or of a hold that has
 * ended, because the thread may need one for this lock. */
static void drop_stale(struct rlk_thread *thread, const struct rlk_handle *handle)
{
    if (thread && thread->fast && !thread->fast_in &&
        (!rlk_hold_is_live(thread->fast->hold) || !is_of(thread->fast, handle)))
        rlk_fastpath_drop(thread);
}

int rlk_handle_args_first(const struct rlk_lock_args *d)
{
    const struct rlk_handle *handle = d->handle;
    struct rlk_acquire_params params = {
        .kind = d->kind,
        .name = handle->rlk_name,
        .name_len = handle->rlk_name_len,
        .try_once = d->form == RLK_FORM_TRY,
        .outage_fails = (handle->rlk_flags & RLK_HANDLE_OUTAGE_FAIL) != 0,
        .deadline = RLK_NO_DEADLINE,
        .fixed = d->lease_ms != 0,
        .fencing = (handle->rlk_flags & RLK_HANDLE_FENCING) != 0,
        .reading = d->reading,
        .robust = (handle->rlk_flags & RLK_HANDLE_ROBUST) != 0,
        .prefer = rwlock_kind(handle),
    };
    int rc = strnlen(params.name, params.name_len) == params.name_len
                 ? rlk_key_check(params.name, params.name_len)
                 : EINVAL;
    if (rc == 0)
        rc = rlk_client_get(handle->rlk_client, &params.client);
    if (rc != 0)
        return rc;
    params.handoff = rlk_handle_handoff(handle, params.client);
    params.lease_ms = d->lease_ms != 0            ? d->lease_ms
                      : handle->rlk_lease_ms != 0 ? handle->rlk_lease_ms
                                                  : params.client->config.lease_ms;
    /* One attempt is made, whatever the deadline is. An invalid deadline is an error only
     * for a thread that would have to wait. */
    int busy = EBUSY;
    if (d->form == RLK_FORM_TIMED) {
        rc = rlk_deadline_set(&params.deadline, d->clock, d->abstime);
        if (rc == 0 && !rlk_deadline_valid(d->abstime))
            busy = EINVAL;
        else if (rc == 0 && rlk_deadline_left(&params.deadline) <= 0)
            busy = ETIMEDOUT;
        params.try_once = busy != EBUSY;
    }
    if (rc == 0) {
        params.thread = rlk_thread_get();
        drop_stale(params.thread, handle);
        rc = params.thread ? rlk_acquire(&params) : ENOMEM;
    }
    if (rc == EBUSY && busy == EINVAL) {
        rc = rlk_deadline_bad(d->abstime);
    } else if (rc == EBUSY && busy != EBUSY) {
        rc = rlk_error_set(busy, "%s", rlk_error_text(busy));
        if (rc == ETIMEDOUT)
            RLK_COUNT(params.client->counters.timeouts);
    }
    rlk_client_put(params.client);
    return rc;
}

int rlk_handle_args_in_vain(const struct rlk_lock_args *d, const struct rlk_hold *hold)
{
    struct rlk_deadline deadline;
    int rc = rlk_deadline_set(&deadline, d->clock, d->abstime);

    if (rc != 0)
        return rc;
    if (!rlk_deadline_valid(d->abstime))
        return rlk_deadline_bad(d->abstime);
    return rlk_acquire_wait_in_vain(RLK_CLIENT_OF(hold->lock->registry),
                                    rlk_thread_record, &deadline);
}
