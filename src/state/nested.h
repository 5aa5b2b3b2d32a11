/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nested waits: a thread waits for a lock while it is inside another one. Only such a
 * thread can be in a deadlock, so only such waits are recorded here. The waiting thread
 * records its own wait when the wait begins. The watchdog looks up what a thread that is
 * inside a hold waits for, perhaps with another client.
 *
 * A thread's record says with which client the thread waits (`nested_in`). That word
 * changes to and from a client only under the mutex of that client's registry. So who
 * holds this mutex and reads the number of this client there may use `nested`.
 */
#ifndef RLK_NESTED_H
#define RLK_NESTED_H

#include "state/lock.h"
#include "state/thread.h"

/* A wait of a thread, on its stack. Guarded by the registry's mu. */
struct rlk_nested {
    struct rlk_list link; /* in the queue's `nested` */
    struct rlk_lock *lock;
    struct rlk_thread *thread;
    rlk_thread_t self;      /* the thread that an event names */
    uint64_t thread_number; /* the record may be another thread's later */
    uint64_t number;        /* of the wait: never used again */
    int64_t since;
    int mode;     /* RLOCK_DEADLOCK_* */
    bool begun;   /* it is recorded */
    bool reading; /* it waits to read */
    bool victim;  /* it is to end with EDEADLK */
    char *cycle;  /* the text of the newest deadlock, which the thread frees; or NULL */
};

/* Whether the calling thread is inside a lock, of any client. */
static inline bool rlk_nested_is_inside(const struct rlk_thread *thread)
{
    return !rlk_list_empty(&thread->holds) || thread->fast_in;
}

/* The calling thread begins to wait for the lock, which has its queue. The caller has
 * set thread, self, since, mode and reading. Does nothing if the thread is inside no
 * lock. Allocates nothing. */
void rlk_nested_begin_locked(struct rlk_lock *lock, struct rlk_nested *nested);
/* The wait is over; in the critical section in which the thread enters the lock. */
void rlk_nested_end_locked(struct rlk_nested *nested);

/* The wait of this thread with this client; NULL: it does not wait with this client. */
struct rlk_nested *rlk_nested_of_locked(struct rlk_registry *reg,
                                        struct rlk_thread *thread, uint64_t number);

/* When the next round for the lock is due: when a wait that may start one has lasted for
 * deadlock_ns. RLK_NEVER: no wait may. */
int64_t rlk_nested_due(const struct rlk_lock *lock);

/* A thread that is inside a hold, as a probe finds it. */
struct rlk_nested_holder {
    struct rlk_thread *thread;
    uint64_t number; /* of the thread */
};
/* Writes the threads that are inside the hold with this id, at most `max`; returns how
 * many. None, if the process does not have the hold, retains it, gives it back, or no
 * thread has entered it yet. Closes the fast path. */
size_t rlk_nested_holders_locked(struct rlk_registry *reg, const struct rlk_id *id,
                                 const char *name, size_t name_len, int64_t now,
                                 struct rlk_nested_holder *ret_holders, size_t max);

#endif
