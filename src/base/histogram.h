/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histogram of durations by powers of two of a microsecond, as in rlock_histogram_t. With
 * one writer (one thread, or the threads that hold one mutex) the functions for one
 * writer need no locked instruction; other threads may read meanwhile. A thread's own
 * histogram is folded into the client's when the client's is read; the reader knows what
 * it folded before. Locks: none. Zeroed memory is an empty histogram.
 */
#ifndef RLK_HISTOGRAM_H
#define RLK_HISTOGRAM_H

#include <rlock.h>
#include <stdatomic.h>
#include <stdint.h>

struct rlk_histogram {
    _Atomic uint64_t sum_ns, max_ns;
    _Atomic uint64_t used; /* bit i: bucket i is not empty */
    _Atomic uint64_t buckets[RLOCK_HISTOGRAM_BUCKETS];
};

/* What was folded from a histogram so far. Guarded by the reader's mutex. */
struct rlk_histogram_folded {
    uint64_t sum_ns;
    uint64_t buckets[RLOCK_HISTOGRAM_BUCKETS];
};

static inline unsigned rlk_histogram_bucket(int64_t ns)
{
    uint64_t us = ns > 0 ? (uint64_t)ns / 1000 : 0;
    unsigned i = us == 0 ? 0 : 64 - (unsigned)__builtin_clzll(us);
    return i < RLOCK_HISTOGRAM_BUCKETS ? i : RLOCK_HISTOGRAM_BUCKETS - 1;
}

static inline uint64_t rlk_histogram_get(const _Atomic uint64_t *n)
{
    return atomic_load_explicit(n, memory_order_relaxed);
}

static inline void rlk_histogram_set(_Atomic uint64_t *n, uint64_t value)
{
    atomic_store_explicit(n, value, memory_order_relaxed);
}

/* Counts a duration. Only for the one writer. */
static inline void rlk_histogram_add(struct rlk_histogram *h, int64_t ns)
{
    unsigned i = rlk_histogram_bucket(ns);
    uint64_t n = rlk_histogram_get(&h->buckets[i]), add = ns > 0 ? (uint64_t)ns : 0;

    if (__builtin_expect(n == 0, 0))
        rlk_histogram_set(&h->used, rlk_histogram_get(&h->used) | UINT64_C(1) << i);
    rlk_histogram_set(&h->buckets[i], n + 1);
    rlk_histogram_set(&h->sum_ns, rlk_histogram_get(&h->sum_ns) + add);
    if (add > rlk_histogram_get(&h->max_ns))
        rlk_histogram_set(&h->max_ns, add);
}

/* Takes a duration back that has not ended after all and will be counted later. The
 * maximum may stay. */
static inline void rlk_histogram_undo(struct rlk_histogram *h, int64_t ns)
{
    unsigned i = rlk_histogram_bucket(ns);

    rlk_histogram_set(&h->buckets[i], rlk_histogram_get(&h->buckets[i]) - 1);
    rlk_histogram_set(&h->sum_ns,
                      rlk_histogram_get(&h->sum_ns) - (ns > 0 ? (uint64_t)ns : 0));
}

/* Counts a duration. For one of several writers. */
void rlk_histogram_add_shared(struct rlk_histogram *h, int64_t ns);

/* Adds to `into` what `from` counted since the last fold. Only for the one writer of
 * `into`. */
void rlk_histogram_fold(struct rlk_histogram *into, const struct rlk_histogram *from,
                        struct rlk_histogram_folded *folded);

void rlk_histogram_show(const struct rlk_histogram *h, rlock_histogram_t *ret);

#endif
