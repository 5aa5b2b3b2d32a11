/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a thread that uses the library: number, holds, and the condition it
 * sleeps on. Made at its first acquisition. Each thread enters only its own; others may
 * signal its condition, at any time: records are reused, but never freed, so that nobody
 * need hold a mutex while he wakes. A wake that comes to the wrong thread is one too
 * many, which every waiter expects. */
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

/* A handle as far as it says what its lock is, but for the name. */
#define RLK_HEAD_SIZE offsetof(struct rlk_handle, rlk_name)

struct rlk_holder;

/* How often a thread came in and left by the gate (fastpath.h), counted by it alone, and
 * what of that is in the statistics of the client whose gate it is; guarded by its
 * registry's mutex. */
struct rlk_passes {
    _Atomic uint64_t entered, left;
    uint64_t counted_entered, counted_left;
    struct rlk_fastpath_times *times; /* NULL: it never came by a gate */
};
/* How long it was inside each time; apart, as most threads come by none. */
struct rlk_fastpath_times {
    struct rlk_histogram held;
    struct rlk_histogram_folded counted_held;
};

struct rlk_thread {
    struct rlk_list holds;
    /* by thread_link, newest first; the first member, so that a checker of leaks sees
     * whole blocks in the list of unused records */
    uint64_t number;           /* unique in the process, from 1 */
    unsigned generation;       /* of rlk_fork_generation: whose it is */
    struct rlk_cond cond;      /* with the mutex of the registry that it waits in */
    struct rlk_list wake_link; /* in the wakes of that registry; guarded by its mutex */
    struct rlk_holder *fast;   /* its resident part (fastpath.h), or NULL */
    bool fast_in;              /* it is inside by it */
    struct rlk_passes passes;
    size_t hold_count;         /* in holds */
    struct rlk_holder **table; /* the same by their names; NULL: none (thread_holds.h) */
    size_t table_size;         /* a power of two */
    struct rlk_thread *inherited;  /* of a thread that went on in a child: the next one */
    char fast_head[RLK_HEAD_SIZE]; /* of the handle by which it was left */
};

/* The calling thread's record, or NULL when it has none yet. In a child where another
 * thread was the first to use the library, it may be the parent's still: see
 * rlk_thread_mine. */
extern _Thread_local struct rlk_thread *rlk_thread_record RLK_TLS
    __attribute__((visibility("hidden")));

/* The calling thread's record, unless it is the parent's of this process; or NULL. */
static inline struct rlk_thread *rlk_thread_mine(void)
{
    struct rlk_thread *thread = rlk_thread_record;
    return thread && thread->generation == rlk_fork_generation() ? thread : NULL;
}

/* The calling thread's record, made if need be. NULL: out of memory. */
struct rlk_thread *rlk_thread_get(void);

/* In a child: its thread starts anew, and the others are not there. */
void rlk_thread_forget(void);

/* Says what is to become of the holds of a thread that ends. Set once, before the first
 * record. */
void rlk_thread_set_exit(void (*give_up)(struct rlk_thread *thread));

#endif
