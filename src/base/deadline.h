/* SPDX-License-Identifier: Apache-2.0 */
/* The deadline of a wait, in the clock that the caller named. No state. Thread: any. */
#ifndef RLK_DEADLINE_H
#define RLK_DEADLINE_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Owned by the call; on its stack. */
struct rlk_deadline {
    enum { RLK_DEADLINE_NONE, RLK_DEADLINE_MONO, RLK_DEADLINE_REAL } clock;
    int64_t at; /* ns on that clock */
};

#define RLK_NO_DEADLINE ((struct rlk_deadline){ RLK_DEADLINE_NONE, RLK_NEVER })

/* Returns 0, or EINVAL when abstime is NULL or the clock is neither CLOCK_REALTIME nor
 * CLOCK_MONOTONIC. Accepts an invalid tv_nsec, which rlk_deadline_valid finds. Far
 * values saturate. */
int rlk_deadline_set(struct rlk_deadline *ret_deadline, clockid_t clock,
                     const struct timespec *abstime);

/* Whether tv_nsec is in range. POSIX wants this tested only when a call has to wait. */
bool rlk_deadline_valid(const struct timespec *abstime);
/* Returns EINVAL for an invalid tv_nsec and sets the message, else 0. */
int rlk_deadline_bad(const struct timespec *abstime);

/* The ns left of a deadline that is set. */
int64_t rlk_deadline_left_on_clock(const struct rlk_deadline *deadline);
/* The ns left now: negative after the deadline, RLK_NEVER without one. Reads the clock
 * each time, so that steps of CLOCK_REALTIME count. */
static inline int64_t rlk_deadline_left(const struct rlk_deadline *deadline)
{
    if (deadline->clock == RLK_DEADLINE_NONE || deadline->at == RLK_NEVER)
        return RLK_NEVER;
    return rlk_deadline_left_on_clock(deadline);
}

#endif
