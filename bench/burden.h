/* SPDX-License-Identifier: Apache-2.0 */
/* What many locks, waiters and clients cost: memory, and the renewal of leases. */
#ifndef BENCH_BURDEN_H
#define BENCH_BURDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct burden {
    const char *word; /* chooses it on the command line */
    void (*run)(FILE *table, bool quick);
};

extern const struct burden burdens[];
extern const size_t burden_count;

#endif
