/* SPDX-License-Identifier: Apache-2.0 */
/* See sample.h. No state. */
#include "sample.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sample_sort(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
}

static double at(const double *sorted, size_t count, double place)
{
    if (place < 0)
        place = 0;
    size_t below = (size_t)place;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (sorted[below + 1] - sorted[below]) * (place - (double)below);
}

double sample_quantile(const double *sorted, size_t count, double q)
{
    return at(sorted, count, q * (double)(count - 1));
}

double sample_median(double *values, size_t count)
{
    sample_sort(values, count);
    return sample_quantile(values, count, 0.5);
}

/* The number of figures below the true median is binomial, whatever their distribution.
 */
void sample_median_bounds(const double *sorted, size_t count, double *ret_low,
                          double *ret_high)
{
    double middle = (double)(count - 1) / 2, off = 0.98 * sqrt((double)count);
    *ret_low = at(sorted, count, middle - off);
    *ret_high = at(sorted, count, middle + off);
}

size_t sample_within(const double *sorted, size_t count, double limit)
{
    size_t within = 0;
    while (within < count && sorted[within] <= limit)
        within++;
    return within;
}
