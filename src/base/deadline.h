/* SPDX-License-Identifier: Apache-2.0 */
/* When a wait ends, in the clock that the caller named. */
#ifndef RLK_DEADLINE_H
#define RLK_DEADLINE_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* When a wait ends. */
struct rlk_deadline {
    enum { RLK_DEADLINE_NONE, RLK_DEADLINE_MONO, RLK_DEADLINE_REAL } clock;
    int64_t at; /* ns on that clock */
};

#define RLK_NO_DEADLINE ((struct rlk_deadline){ RLK_DEADLINE_NONE, RLK_NEVER })

/* 0, or EINVAL: abstime is NULL, or clock is neither REALTIME nor MONOTONIC. Bad tv_nsec
 * is accepted here and found by rlk_deadline_valid. Far values saturate. */
int rlk_deadline_set(struct rlk_deadline *ret_deadline, clockid_t clock,
                     const struct timespec *abstime);

/* Whether tv_nsec is in range: tested only when a call would have to wait. */
bool rlk_deadline_valid(const struct timespec *abstime);
/* EINVAL of one that is not, with a message that says so. */
int rlk_deadline_bad(const struct timespec *abstime);

/* ns left now, negative when past, RLK_NEVER without deadline. Reads the clock anew,
 * so that steps of CLOCK_REALTIME count. */
int64_t rlk_deadline_left(const struct rlk_deadline *deadline);

#endif
