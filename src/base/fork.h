/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects a child process (rule T13), which owns none of its parent's holds. After fork()
 * the handlers report the child at once. _Fork() and clone() run no handlers: in their
 * children a page that the kernel wipes reports it at the next call of the library. Where
 * no such page can be had, the process id is compared.
 */
#ifndef RLK_FORK_H
#define RLK_FORK_H

#include "base/sync.h"

#include <stdatomic.h>
#include <stdbool.h>

extern volatile unsigned char *rlk_fork_page __attribute__((visibility("hidden")));
extern atomic_uint rlk_fork_count __attribute__((visibility("hidden")));

bool rlk_fork_check_slow(void);

/* Whether the library's state still is the parent's. */
static inline bool rlk_fork_in_child(void)
{
    volatile unsigned char *page = __atomic_load_n(&rlk_fork_page, __ATOMIC_ACQUIRE);
    if (__builtin_expect(page != 0 && *page == 1, 1))
        return false;
    return rlk_fork_check_slow();
}

struct rlk_fork_hooks {
    void (*prepare)(
        void); /* takes the mutexes whose data the child must find consistent */
    void (*parent)(void); /* drops the mutexes */
    /* Makes the state the child's own. late: the child was not made by fork(), so
     * prepare was not called, and other threads of the parent may have held mutexes.
     * No other thread runs in the child. */
    void (*child)(bool late);
};

/* Call once in the life of a process, before any state exists, and before the program
 * registers handlers: then the library's handlers run last before a fork and first
 * after it, and the program's handlers may use locks. Returns 0 or ENOMEM. */
int rlk_fork_init(const struct rlk_fork_hooks *hooks);

/* In a child whose state still is the parent's: makes the state the child's own,
 * unless the handler did so already; async-signal-safe there. In the parent, on a
 * thread that is forking: undoes the preparation, for a handler of the program that
 * was registered before the library's. */
void rlk_fork_settle_now(void);
/* The same, where the state most often is this process's own. */
static inline void rlk_fork_settle(void)
{
    if (__builtin_expect(rlk_sync_sections.forking || rlk_fork_in_child(), 0))
        rlk_fork_settle_now();
}

/* How many times a state was made a child's own in this process and its ancestors. A
 * thread that finds another number than before runs in a child, and its stack is a
 * copy of the parent's. */
static inline unsigned rlk_fork_generation(void)
{
    return atomic_load_explicit(&rlk_fork_count, memory_order_relaxed);
}
static inline bool rlk_fork_since(unsigned generation)
{
    return rlk_fork_in_child() || rlk_fork_generation() != generation;
}

#endif
