/* SPDX-License-Identifier: Apache-2.0 */
/* What wakes a thread of the library that sleeps in poll(): an eventfd. It is opened and
 * closed by that thread, or while that does not run, also anew where the program has
 * closed it; it is rung by any. Async-signal-safe: rlk_bell_ring. */
#ifndef RLK_BELL_H
#define RLK_BELL_H

#include <stdatomic.h>
#include <stdbool.h>

struct rlk_bell {
    _Atomic int fd; /* -1: it is closed */
};
#define RLK_BELL_CLOSED ((struct rlk_bell){ .fd = -1 })

/* 0, or an errno value. */
int rlk_bell_open(struct rlk_bell *bell);
/* Harmless when it is closed. */
void rlk_bell_close(struct rlk_bell *bell);

/* Its descriptor becomes readable, if it is still there. */
void rlk_bell_ring(const struct rlk_bell *bell);

#endif
