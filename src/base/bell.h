/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes a library thread that sleeps in poll(): an eventfd. The sleeping thread opens
 * and closes its bell, and opens it again after the program closed it; while that
 * thread does not run, another thread may do so. Any thread may ring.
 * Async-signal-safe: rlk_bell_ring. Blocks: no. */
#ifndef RLK_BELL_H
#define RLK_BELL_H

#include <stdatomic.h>
#include <stdbool.h>

struct rlk_bell {
    _Atomic int fd; /* -1: closed */
};
#define RLK_BELL_CLOSED ((struct rlk_bell){ .fd = -1 })

/* Returns 0 or an errno value. */
int rlk_bell_open(struct rlk_bell *bell);
/* Harmless when the bell is closed. */
void rlk_bell_close(struct rlk_bell *bell);

/* Makes the descriptor readable if it is still the bell's. */
void rlk_bell_ring(const struct rlk_bell *bell);

#endif
