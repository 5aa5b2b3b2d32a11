/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks: the only reader of them. Instants are int64_t nanoseconds. Leases and
 * everything that a request is bounded by count on CLOCK_BOOTTIME, which goes on in
 * suspend ("boot"). Waits on condition variables count on CLOCK_MONOTONIC ("mono"). A
 * caller's deadline stays in the clock that the caller named.
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
