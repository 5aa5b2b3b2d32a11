/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only reader of clocks. Instants are int64_t nanoseconds. Leases and the time limits
 * of requests use CLOCK_BOOTTIME, which counts time in suspend ("boot"). Waits on
 * condition variables use CLOCK_MONOTONIC ("mono"). A caller's deadline stays in the
 * clock that the caller named. No state. Thread: any.
 */
#ifndef RLK_CLOCK_H
#define RLK_CLOCK_H

#include <stdint.h>
#include <time.h>

#define RLK_NS_PER_MS INT64_C(1000000)
#define RLK_NS_PER_S INT64_C(1000000000)
#define RLK_NEVER INT64_MAX

static inline int64_t rlk_clock_read(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * RLK_NS_PER_S + ts.tv_nsec;
}

static inline int64_t rlk_clock_boot(void)
{
    return rlk_clock_read(CLOCK_BOOTTIME);
}

static inline int64_t rlk_clock_mono(void)
{
    return rlk_clock_read(CLOCK_MONOTONIC);
}

static inline int64_t rlk_clock_real(void)
{
    return rlk_clock_read(CLOCK_REALTIME);
}

/* now + add without overflow. */
int64_t rlk_clock_add(int64_t now, int64_t add);

#endif
