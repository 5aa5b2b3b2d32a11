/* SPDX-License-Identifier: Apache-2.0 */
/* See deadline.h. No state. Thread: any. Blocks: no. */
#include "base/deadline.h"

#include "base/error.h"

#include <errno.h>
#include <stddef.h>

bool rlk_deadline_valid(const struct timespec *abstime)
{
    return abstime->tv_nsec >= 0 && abstime->tv_nsec < RLK_NS_PER_S;
}

int rlk_deadline_bad(const struct timespec *abstime)
{
    rlk_error_argument_in("tv_nsec of the deadline", abstime->tv_nsec, 0,
                          RLK_NS_PER_S - 1);
    return EINVAL;
}

int rlk_deadline_set(struct rlk_deadline *ret_deadline, clockid_t clock,
                     const struct timespec *abstime)
{
    if (!abstime || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
        return EINVAL;
    int64_t at;
    if (__builtin_mul_overflow((int64_t)abstime->tv_sec, RLK_NS_PER_S, &at))
        at = abstime->tv_sec < 0 ? INT64_MIN : RLK_NEVER;
    else
        at = rlk_clock_add(at, rlk_deadline_valid(abstime) ? abstime->tv_nsec : 0);
    ret_deadline->clock = clock == CLOCK_REALTIME ? RLK_DEADLINE_REAL : RLK_DEADLINE_MONO;
    ret_deadline->at = at;
    return 0;
}

int64_t rlk_deadline_left_on_clock(const struct rlk_deadline *deadline)
{
    int64_t n =
        deadline->clock == RLK_DEADLINE_REAL ? rlk_clock_real() : rlk_clock_mono();
    int64_t left;
    if (__builtin_sub_overflow(deadline->at, n, &left))
        left = INT64_MIN;
    return left;
}
