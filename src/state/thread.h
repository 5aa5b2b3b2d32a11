/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a thread that uses the library: number, holds, and the condition it
 * sleeps on. Made at its first acquisition. A thread changes only its own record. Other
 * threads may signal its condition at any time: records are reused, but never freed, so
 * that a waking thread needs no mutex. A signal may reach the wrong thread: all waits
 * expect needless wake-ups. */
#ifndef RLK_THREAD_H
#define RLK_THREAD_H

#include "base/fork.h"
#include "base/histogram.h"
#include "base/list.h"
#include "base/sync.h"

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes of a handle identify its lock, apart from the name. */
#define RLK_HEAD_SIZE offsetof(struct rlk_handle, rlk_name)

struct rlk_holder;

/* How often a thread entered and left by the fast path (fastpath.h). Only the thread
 * itself counts. The counted_ fields, how much the client's statistics have of it, are
 * guarded by the mutex of the client's registry. */
struct rlk_passes {
    _Atomic uint64_t entered, left;
    uint64_t counted_entered, counted_left;
    struct rlk_fastpath_times *times; /* NULL: it never used a fast path */
};
/* How long a thread was inside by the fast path. A block of its own, because most threads
 * use no fast path. */
struct rlk_fastpath_times {
    struct rlk_histogram held;
    struct rlk_histogram_folded counted_held;
};

struct rlk_thread {
    /* by thread_link, newest first; the first member, so that a checker of leaks sees
     * whole blocks in the list of unused records */
    struct rlk_list holds;
    uint64_t number;           /* unique in the process, from 1 */
    unsigned generation;       /* of rlk_fork_generation: which process made it */
    struct rlk_cond cond;      /* with the mutex of the registry that it waits in */
    struct rlk_list wake_link; /* in the wakes of that registry; guarded by its mutex */
    struct rlk_holder *fast;   /* its resident holder (fastpath.h), or NULL */
    bool fast_in;              /* it is inside by that holder */
    struct rlk_passes passes;
    size_t hold_count;         /* in holds */
    struct rlk_holder **table; /* the same holders by lock name; NULL: none */
    size_t table_size;         /* a power of two */
    struct rlk_thread
        *inherited; /* if its thread went on in a child: the next such record */
    char fast_head[RLK_HEAD_SIZE]; /* of the handle that left the resident holder */
};

/* The calling thread's record, or NULL. In a child it may still be the parent's record:
 * see rlk_thread_mine. */
extern _Thread_local struct rlk_thread *rlk_thread_record RLK_TLS
    __attribute__((visibility("hidden")));

/* The calling thread's record, or NULL if it has none in this process. */
static inline struct rlk_thread *rlk_thread_mine(void)
{
    struct rlk_thread *thread = rlk_thread_record;
    return thread && thread->generation == rlk_fork_generation() ? thread : NULL;
}

/* The calling thread's record. Makes it if there is none. NULL: out of memory. */
struct rlk_thread *rlk_thread_get(void);

/* In a child: its thread starts without holds, and the other threads are not there. */
void rlk_thread_forget(void);

/* give_up takes care of the holds of a thread that ends. Set once, before the first
 * record. */
void rlk_thread_set_exit(void (*give_up)(struct rlk_thread *thread));

#endif
