/* SPDX-License-Identifier: Apache-2.0 */
/* See clock.h. No state. Thread: any. Blocks: no. */
#include "base/clock.h"

#include <time.h>

static int64_t now(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * RLK_NS_PER_S + ts.tv_nsec;
}

int64_t rlk_clock_boot(void)
{
    return now(CLOCK_BOOTTIME);
}

int64_t rlk_clock_mono(void)
{
    return now(CLOCK_MONOTONIC);
}

int64_t rlk_clock_real(void)
{
    return now(CLOCK_REALTIME);
}

int64_t rlk_clock_add(int64_t now, int64_t add)
{
    int64_t sum;
    if (__builtin_add_overflow(now, add, &sum))
        return add > 0 ? RLK_NEVER : INT64_MIN;
    return sum;
}
