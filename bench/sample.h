/* SPDX-License-Identifier: Apache-2.0 */
/* Order statistics of a few hundred figures. */
#ifndef BENCH_SAMPLE_H
#define BENCH_SAMPLE_H

#include <stddef.h>

/* The others want them sorted, and at least one. */
void sample_sort(double *values, size_t count);
/* Below which the share q of them is, 0 to 1, between two of them by their weight. */
double sample_quantile(const double *sorted, size_t count, double q);
/* Where the median of all that one could measure is, in 95 of 100 cases. */
void sample_median_bounds(const double *sorted, size_t count, double *ret_low,
                          double *ret_high);
/* How many are at most that. */
size_t sample_within(const double *sorted, size_t count, double limit);

#endif
