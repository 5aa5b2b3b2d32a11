/* SPDX-License-Identifier: Apache-2.0 */
/* What a handle in the caller's memory says, how it is checked, and what all lock types
 * do with one. Thread: any. */
#ifndef RLK_HANDLE_H
#define RLK_HANDLE_H

#include "base/fork.h"
#include "lock/acquire.h"
#include "state/fastpath.h"

#include <rlock.h>
#include <stdbool.h>
#include <string.h>

#define RLK_MAGIC_MUTEXATTR UINT32_C(0x01415452)
#define RLK_MAGIC_RWLOCKATTR UINT32_C(0x01415752)
#define RLK_MAGIC_CLIENTATTR UINT32_C(0x01434154)

/* rlk_flags of a handle */
enum rlk_handle_flags {
    RLK_HANDLE_FENCING = 1,
    RLK_HANDLE_ROBUST = 2,
    RLK_HANDLE_SHARED = 4,
    RLK_HANDLE_OUTAGE_FAIL = 8,
    RLK_HANDLE_OUTAGE_ABORT = 16
};

static inline bool rlk_lease_valid(long lease_ms)
{
    return lease_ms >= RLK_LEASE_MIN_MS && lease_ms <= RLK_LEASE_MAX_MS;
}

/* Whether this is an initialised handle of `kind`: magic, kind, and a name of the length
 * it says. The handle may lie in shared memory where a dead process left it half made:
 * the magic is written last. */
static inline bool rlk_handle_good(const struct rlk_handle *handle, int kind)
{
    return handle &&
           __atomic_load_n(&handle->rlk_magic, __ATOMIC_ACQUIRE) == RLK_MAGIC_HANDLE &&
           handle->rlk_kind == kind && handle->rlk_name_len >= 1 &&
           handle->rlk_name_len <= RLOCK_NAME_MAX &&
           handle->rlk_name[handle->rlk_name_len] == '\0';
}

/* ---- handle.c */

/* As the public functions. `attr` may be NULL; its magic must be `attr_magic`. */
int rlk_handle_init(struct rlk_handle *handle, int kind, const struct rlk_attr *attr,
                    uint32_t attr_magic, const char *name);
int rlk_handle_destroy(struct rlk_handle *handle, int kind);

/* Whether this is a valid lease in ms, or 0 for the default. If not, sets the thread's
 * message. */
bool rlk_handle_lease_or_0(long lease_ms);

/* Returns EINVAL, with a message that says why the handle is not good. */
int rlk_handle_bad(const struct rlk_handle *handle, int kind);

/* 0 or EINVAL. In a forked child, first makes the library's state the child's own. */
int rlk_handle_check(const struct rlk_handle *handle, int kind);

/* The calling thread's holder of the lock, or NULL. Takes no mutex. */
struct rlk_holder *rlk_handle_part(const struct rlk_handle *handle);

/* The calling thread's holder, if the hold is live; NULL in any other case, which the
 * slow path deals with. For the commonest re-entry and its unlock, before rlk_call_enter:
 * they change nothing but the thread's own count, so a cancellation can leave nothing
 * half done. */
static inline struct rlk_holder *rlk_handle_inner(const struct rlk_handle *handle,
                                                  int kind)
{
    struct rlk_thread *thread = rlk_thread_record;
    struct rlk_holder *holder;

    if (!thread || (rlk_list_empty(&thread->holds) && !thread->fast_in))
        return NULL;
    if (__builtin_expect(!rlk_handle_good(handle, kind) || rlk_fork_in_child(), 0))
        return NULL;
    holder = rlk_handle_part(handle);
    if (!holder || !rlk_hold_is_live(holder->hold) ||
        rlk_clock_boot() >= holder->hold->end)
        return NULL;
    return holder;
}

/* Whether the first `len` bytes are equal. Inline, because a call would take a good part
 * of the fast path's time. */
static inline bool rlk_words_equal(const char *a, const char *b, size_t len)
{
    enum { WORD = sizeof(uint64_t) };
    uint64_t x, y, differ = 0;
    size_t i = 0;

    for (; i + WORD <= len; i += WORD) {
        memcpy(&x, a + i, WORD);
        memcpy(&y, b + i, WORD);
        differ |= x ^ y;
    }
    for (; i < len; i++)
        differ |= (uint64_t)(a[i] ^ b[i]);
    return differ == 0;
}

/* The calling thread, if its resident holder is of the handle's lock, and a handle like
 * this one left it. NULL: it is not, or this is a forked child. Runs before
 * rlk_call_enter: one word says which thread is inside, so a thread that is cancelled
 * here is either outside, or gives the hold up as it ends. */
static inline struct rlk_thread *rlk_handle_fast(const struct rlk_handle *handle,
                                                 int kind)
{
    struct rlk_thread *thread = rlk_thread_record;

    /* the record may still be the parent's, although the state is the child's own by
     * now */
    if (!thread || !thread->fast || !handle || __builtin_expect(rlk_fork_in_child(), 0) ||
        __builtin_expect(thread->generation != rlk_fork_generation(), 0) ||
        !rlk_words_equal((const char *)handle, thread->fast_head, RLK_HEAD_SIZE))
        return NULL;
    const struct rlk_lock *lock = thread->fast->hold->lock;
    return lock->kind == kind &&
                   rlk_words_equal(handle->rlk_name, lock->name, lock->name_len)
               ? thread
               : NULL;
}

/* aborts: RLOCK_OUTAGE_ABORT is set. Then calls abort() instead of returning a code that
 * the pthread function could never have returned. */
int rlk_handle_guard(bool aborts, int rc);
/* Whether the handle has RLOCK_OUTAGE_ABORT. Asked before an unlock, after which another
 * thread may have destroyed the handle. */
bool rlk_handle_aborts(const struct rlk_handle *handle, int kind);

/* How long threads of this process may pass the lock on, and retain it. */
static inline struct rlk_handoff rlk_handle_handoff(const struct rlk_handle *handle,
                                                    struct rlock_client *client)
{
    struct rlk_target *target =
        rlk_route_to_name(&client->route, handle->rlk_name, handle->rlk_name_len);
    const struct rlk_config *config = &client->config;
    long ms = handle->rlk_handoff_ms ? handle->rlk_handoff_ms - 1 : config->handoff_ms;
    long retain_ms =
        handle->rlk_retain_ms ? handle->rlk_retain_ms - 1 : config->retain_ms;
    return (struct rlk_handoff){
        .ns = ms * RLK_NS_PER_MS,
        .count = handle->rlk_handoff_count ? handle->rlk_handoff_count - 1
                                           : config->handoff_count,
        .retain_ns = retain_ms * RLK_NS_PER_MS,
        .hears = atomic_load(&target->subscription.subscribed),
    };
}

enum rlk_form { RLK_FORM_LOCK, RLK_FORM_TRY, RLK_FORM_TIMED };

/* The arguments of a call. */
struct rlk_lock_args {
    struct rlk_handle *handle;
    int kind;
    bool reading;
    enum rlk_form form;
    clockid_t clock; /* TIMED */
    const struct timespec *abstime;
    long lease_ms; /* 0: the default, renewed */
};

/* Handle, lease and clock of a call: 0, EINVAL, ENOTSUP. */
int rlk_handle_args_check(const struct rlk_lock_args *args);
/* Takes a lock that the calling thread does not hold. */
int rlk_handle_args_first(const struct rlk_lock_args *args);
/* A thread that would wait for itself: sleeps until the deadline. */
int rlk_handle_args_in_vain(const struct rlk_lock_args *args,
                            const struct rlk_hold *hold);

#endif
