/* SPDX-License-Identifier: Apache-2.0 */
/* See histogram.h. No state. Thread: any. */
#include "base/histogram.h"

_Static_assert(RLOCK_HISTOGRAM_BUCKETS <= 64, "the bits of `used`");

static void raise_max(struct rlk_histogram *h, uint64_t ns)
{
    uint64_t max = rlk_histogram_get(&h->max_ns);
    while (ns > max && !atomic_compare_exchange_weak_explicit(&h->max_ns, &max, ns,
                                                              memory_order_relaxed,
                                                              memory_order_relaxed))
        ;
}

void rlk_histogram_add_shared(struct rlk_histogram *h, int64_t ns)
{
    uint64_t add = ns > 0 ? (uint64_t)ns : 0;

    atomic_fetch_add_explicit(&h->buckets[rlk_histogram_bucket(ns)], 1,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum_ns, add, memory_order_relaxed);
    raise_max(h, add);
}

void rlk_histogram_fold(struct rlk_histogram *into, const struct rlk_histogram *from,
                        struct rlk_histogram_folded *folded)
{
    uint64_t used = rlk_histogram_get(&from->used),
             sum = rlk_histogram_get(&from->sum_ns);

    for (; used != 0; used &= used - 1) {
        unsigned i = (unsigned)__builtin_ctzll(used);
        uint64_t n = rlk_histogram_get(&from->buckets[i]);
        rlk_histogram_set(&into->buckets[i],
                          rlk_histogram_get(&into->buckets[i]) + n - folded->buckets[i]);
        folded->buckets[i] = n;
    }
    rlk_histogram_set(&into->sum_ns,
                      rlk_histogram_get(&into->sum_ns) + sum - folded->sum_ns);
    folded->sum_ns = sum;
    raise_max(into, rlk_histogram_get(&from->max_ns));
}

void rlk_histogram_show(const struct rlk_histogram *h, rlock_histogram_t *ret)
{
    ret->count = 0;
    for (unsigned i = 0; i < RLOCK_HISTOGRAM_BUCKETS; i++) {
        ret->buckets[i] = rlk_histogram_get(&h->buckets[i]);
        ret->count += ret->buckets[i];
    }
    ret->sum_us = rlk_histogram_get(&h->sum_ns) / 1000;
    ret->max_us = rlk_histogram_get(&h->max_ns) / 1000;
}
