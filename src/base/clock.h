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

#define RLK_NS_PER_MS INT64_C(1000000)
#define RLK_NS_PER_S INT64_C(1000000000)
#define RLK_NEVER INT64_MAX

int64_t rlk_clock_boot(void);
int64_t rlk_clock_mono(void);
int64_t rlk_clock_real(void);

/* now + add without overflow. */
int64_t rlk_clock_add(int64_t now, int64_t add);

#endif
