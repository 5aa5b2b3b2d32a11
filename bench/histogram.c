/* SPDX-License-Identifier: Apache-2.0 */
/* See histogram.h. No state but the thread's own. */
#include "histogram.h"

enum { LINEAR = 2 * HISTOGRAM_STEPS, STEP_BITS = 5 };
_Static_assert(1 << STEP_BITS == HISTOGRAM_STEPS, "a step is some bits of the number");

enum { COUNTS = HISTOGRAM_OCTAVES * HISTOGRAM_STEPS };

_Thread_local struct histogram *histogram_own;

/* Up to LINEAR each number has a bucket. Above, the five bits behind a number's first bit
 * choose the bucket. */
static size_t bucket_of(uint64_t ns)
{
    if (ns < LINEAR)
        return (size_t)ns;
    unsigned top = 63 - (unsigned)__builtin_clzll(ns), shift = top - STEP_BITS;
    size_t i = (shift * HISTOGRAM_STEPS) + (size_t)(ns >> shift);
    return i < COUNTS ? i : COUNTS - 1;
}

double histogram_bound(size_t i)
{
    if (i < LINEAR)
        return (double)i;
    size_t shift = i / HISTOGRAM_STEPS - 1;
    return (double)((uint64_t)(i - shift * HISTOGRAM_STEPS) << shift);
}

void histogram_add(struct histogram *histogram, int64_t ns)
{
    histogram->counts[bucket_of(ns < 0 ? 0 : (uint64_t)ns)]++;
}

void histogram_merge(struct histogram *histogram, const struct histogram *other)
{
    for (size_t i = 0; i < COUNTS; i++)
        histogram->counts[i] += other->counts[i];
}

uint64_t histogram_count(const struct histogram *histogram)
{
    uint64_t count = 0;
    for (size_t i = 0; i < COUNTS; i++)
        count += histogram->counts[i];
    return count;
}

double histogram_quantile(const struct histogram *histogram, unsigned per_million)
{
    double before = 0, wanted = (double)histogram_count(histogram) * per_million / 1e6;

    if (wanted <= 0)
        return 0;
    for (size_t i = 0; i < COUNTS; i++) {
        double here = histogram->counts[i];
        if (here > 0 && before + here >= wanted) /* as if spread evenly in it */
            return histogram_bound(i) + (wanted - before) / here *
                                            (histogram_bound(i + 1) - histogram_bound(i));
        before += here;
    }
    return histogram_bound(COUNTS);
}
