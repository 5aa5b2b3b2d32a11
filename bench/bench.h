/* SPDX-License-Identifier: Apache-2.0 */
/* What all files of the benchmark use. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdint.h>

#define NS_PER_S INT64_C(1000000000)

/* Prints a line and ends the process by quick_exit, with status 2. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* CLOCK_MONOTONIC. */
int64_t now_ns(void);

#endif
