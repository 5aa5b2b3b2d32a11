/* SPDX-License-Identifier: Apache-2.0 */
/* What many locks, waiters and clients cost: memory, and the renewal of leases. Also what
 * the crash guard costs, and how fast it is. */
#ifndef BENCH_BURDEN_H
#define BENCH_BURDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct burden {
    const char *word; /* chooses it on the command line */
    /* Called in a process of its own, which never used the library. */
    void (*run)(FILE *table, bool quick);
};

extern const struct burden burdens[];
extern const size_t burden_count;

/* Runs the burden in such a process. */
void burden_run(const struct burden *burden, FILE *table, bool quick);

/* guard_cost.c */
void run_guard_pair(FILE *table, bool quick);
void run_guard_kept(FILE *table, bool quick);
/* guard_idle.c */
void run_guard_idle(FILE *table, bool quick);
/* guard_killed.c */
void run_guard_killed(FILE *table, bool quick);
void run_guard_hosts(FILE *table, bool quick);

#endif
