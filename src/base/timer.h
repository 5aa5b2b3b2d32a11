/* SPDX-License-Identifier: Apache-2.0 */
/* A set of timers ordered by time: an intrusive pairing heap, so that arming and
 * disarming allocate nothing and cannot fail. The owner of the heap guards it. */
#ifndef RLK_TIMER_H
#define RLK_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct rlk_timer {
    int64_t when : 61; /* ns; after 36 years all instants are equal */
    uint64_t armed : 1;
    uint64_t tag : 2; /* for the owner: what the timer is embedded in */
    struct rlk_timer *child, *next, *prev;
};

struct rlk_timers {
    struct rlk_timer *root;
};

/* Arms or re-arms a timer. O(1); O(log n) amortised when re-arming. */
void rlk_timer_arm(struct rlk_timers *heap, struct rlk_timer *t, int64_t when);

/* Harmless when the timer is not armed. O(log n) amortised. */
void rlk_timer_disarm(struct rlk_timers *heap, struct rlk_timer *t);

/* The earliest timer; NULL when none is armed. */
static inline struct rlk_timer *rlk_timer_first(const struct rlk_timers *heap)
{
    return heap->root;
}

#endif
