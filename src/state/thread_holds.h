/* SPDX-License-Identifier: Apache-2.0 */
/* The holds of a thread: a list, and from 16 holds on also a table by names, so that a
 * thread with 100,000 locks finds each as fast as a thread with two. Thread: its own.
 * Locks: none. */
#ifndef RLK_THREAD_HOLDS_H
#define RLK_THREAD_HOLDS_H

#include "state/hold.h"
#include "state/thread.h"

/* The thread is inside by this holder. Without memory for a table, searches use the list.
 */
void rlk_thread_holds_add(struct rlk_thread *thread, struct rlk_holder *holder);
/* The thread has left. Idempotent. */
void rlk_thread_holds_remove(struct rlk_thread *thread, struct rlk_holder *holder);

/* The holders among which those of a lock with this hash are, linked by next_of_thread.
 * False: there is no table, and all are in thread->holds. */
static inline bool rlk_thread_holds_bucket(const struct rlk_thread *thread, uint64_t hash,
                                           struct rlk_holder **ret_first)
{
    if (!thread->table)
        return false;
    *ret_first = thread->table[hash & (thread->table_size - 1)];
    return true;
}

#endif
