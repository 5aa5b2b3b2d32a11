/* SPDX-License-Identifier: Apache-2.0 */
/* Who am I: whether this process is the one that loaded the library's state, or a
 * child of it (rule T13). */
#ifndef RLK_FORK_H
#define RLK_FORK_H

#include <stdbool.h>

extern volatile unsigned char *rlk_fork_page __attribute__((visibility("hidden")));

bool rlk_fork_check_slow(void);

/* Whether the state belongs to a parent. A page that the kernel wipes in children
 * tells, so that _Fork() and clone() are seen too; where that is not to be had, the
 * process id. */
static inline bool rlk_fork_in_child(void)
{
    volatile unsigned char *page = __atomic_load_n(&rlk_fork_page, __ATOMIC_ACQUIRE);
    if (__builtin_expect(page != 0 && *page == 1, 1))
        return false;
    return rlk_fork_check_slow();
}

#endif
