/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for a condition with a bound, instead of sleeping. Two environment variables
 * adapt all tests to their machine:
 *   RLOCK_TEST_SCALE  an integer factor (1) for every bound, for Valgrind and sanitizers
 *   RLOCK_TEST_LEVEL  "quick" (default) or "full": how many times the long tests repeat
 */
#ifndef TEST_WAIT_H
#define TEST_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC. */
int64_t test_now_ms(void);

/* `ms` times RLOCK_TEST_SCALE: for the bounds that a test asserts, and for leases
 * that must outlast slow code. */
long test_ms(long ms);

/* True when RLOCK_TEST_LEVEL is "full". */
bool test_is_full(void);
/* `full` at that level, else `quick`. */
long test_count(long full, long quick);

/* The instant `ms` from now, unscaled, for the timed functions. */
struct timespec test_in_ms(clockid_t clock, long ms);

typedef bool (*test_condition)(void *arg);
/* Looks each millisecond at first, then less often. False: the condition did not become
 * true within test_ms(ms). */
bool test_wait_until(test_condition condition, void *arg, long ms);
/* Whether the condition stays true for `ms`, unscaled: for what must not happen. */
bool test_stays(test_condition condition, void *arg, long ms);

/* For code that paces itself (a poll, a benchmark). Never for waiting until something
 * happens. */
void test_pause_ms(long ms);

#endif
