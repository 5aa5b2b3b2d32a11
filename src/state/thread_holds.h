/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread holds: a list, and beyond a few a table by names, so that a thread with
 * 100,000 locks finds each as fast as one with two. Thread: its own. Locks: none. */
#ifndef RLK_THREAD_HOLDS_H
#define RLK_THREAD_HOLDS_H

#include "state/hold.h"
#include "state/thread.h"

/* The thread is in by this part. Without memory for a table the list is looked through.
 */
void rlk_thread_holds_add(struct rlk_thread *thread, struct rlk_holder *holder);
/* It is not any more; harmless when it was not. */
void rlk_thread_holds_remove(struct rlk_thread *thread, struct rlk_holder *holder);

/* The parts among which one of a lock with this hash is, by next_of_thread; whether there
 * is a table: else they are in thread->holds. */
static inline bool rlk_thread_holds_bucket(const struct rlk_thread *thread, uint64_t hash,
                                           struct rlk_holder **ret_first)
{
    if (!thread->table)
        return false;
    *ret_first = thread->table[hash & (thread->table_size - 1)];
    return true;
}

#endif
