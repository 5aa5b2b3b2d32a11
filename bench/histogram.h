/* SPDX-License-Identifier: Apache-2.0 */
/* How long things took: counts in buckets, each 1/32 wider than the one before it, so
 * that a percentile is right to 3 %. No allocation. Only one thread at a time adds to a
 * histogram. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum {
    HISTOGRAM_STEPS = 32, /* from one power of two to the next */
    HISTOGRAM_OCTAVES =
        36 /* up to 2^40 ns, 18 minutes; what is longer is counted there */
};

struct histogram {
    uint32_t counts[HISTOGRAM_OCTAVES * HISTOGRAM_STEPS];
};

void histogram_add(struct histogram *histogram, int64_t ns);
void histogram_merge(struct histogram *histogram, const struct histogram *other);
uint64_t histogram_count(const struct histogram *histogram);
/* The time, in ns, below which that many of a million are; 0 for an empty histogram. */
double histogram_quantile(const struct histogram *histogram, unsigned per_million);
/* Where bucket i begins, in ns. */
double histogram_bound(size_t i);

/* The calling thread's histogram, in which its contender notes how long a lock took;
 * NULL: it notes nothing. */
extern _Thread_local struct histogram *histogram_own;
static inline void histogram_note(int64_t ns)
{
    if (histogram_own)
        histogram_add(histogram_own, ns);
}

#endif
