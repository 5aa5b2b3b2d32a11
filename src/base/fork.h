/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who am I: whether this process is the one that the library's state belongs to, or a
 * child of it (rule T13). A child owns nothing of its parent's. fork() tells it at once,
 * by its handlers; _Fork() and clone() run none: there a page that the kernel wipes in
 * children tells, at the next call of the library. (Where such a page is not to be had,
 * the process id.)
 */
#ifndef RLK_FORK_H
#define RLK_FORK_H

#include <stdatomic.h>
#include <stdbool.h>

extern volatile unsigned char *rlk_fork_page __attribute__((visibility("hidden")));
extern atomic_uint rlk_fork_count __attribute__((visibility("hidden")));

bool rlk_fork_check_slow(void);

/* Whether the state is still the parent's. */
static inline bool rlk_fork_in_child(void)
{
    volatile unsigned char *page = __atomic_load_n(&rlk_fork_page, __ATOMIC_ACQUIRE);
    if (__builtin_expect(page != 0 && *page == 1, 1))
        return false;
    return rlk_fork_check_slow();
}

struct rlk_fork_hooks {
    void (*prepare)(void); /* takes the mutexes of what the child is to find whole */
    void (*parent)(void);  /* drops them */
    /* Makes the state the child's own. late: not by fork(), so that prepare was not
     * called, and mutexes are as the parent's other threads had them. Only its thread
     * runs. */
    void (*child)(bool late);
};

/* Once in the life of a process, before there is state, and before the program's own
 * handlers: then these are the last ones before a fork and the first ones behind it, and
 * the program's may use locks. 0 or ENOMEM. */
int rlk_fork_init(const struct rlk_fork_hooks *hooks);

/* In a child whose state is still the parent's: makes it its own, by whichever comes
 * first, the handler or this. Async-signal-safe there. In the parent, on a thread that is
 * about to fork: gives the preparation up, for a handler of the program that was there
 * before ours. */
void rlk_fork_settle(void);

/* How often that has happened in this process and its ancestors. A thread that finds
 * another number than before runs in a child, and what it has on its stack is the
 * parent's. */
static inline unsigned rlk_fork_generation(void)
{
    return atomic_load_explicit(&rlk_fork_count, memory_order_relaxed);
}
static inline bool rlk_fork_since(unsigned generation)
{
    return rlk_fork_in_child() || rlk_fork_generation() != generation;
}

#endif
