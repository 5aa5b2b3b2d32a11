/* SPDX-License-Identifier: Apache-2.0 */
/* Order statistics of a few hundred figures. */
#ifndef BENCH_SAMPLE_H
#define BENCH_SAMPLE_H

#include <stddef.h>

/* The other functions need at least one figure, and the figures sorted. */
void sample_sort(double *values, size_t count);
/* The value below which the share q of the figures is, 0 to 1. Between two figures it is
 * interpolated. */
double sample_quantile(const double *sorted, size_t count, double q);
/* Sorts the figures, and returns the one in the middle. */
double sample_median(double *values, size_t count);
/* The bounds in which the median of all possible figures is, in 95 of 100 cases. */
void sample_median_bounds(const double *sorted, size_t count, double *ret_low,
                          double *ret_high);
/* How many figures are at most that. */
size_t sample_within(const double *sorted, size_t count, double limit);

#endif
