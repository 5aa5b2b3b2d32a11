/* SPDX-License-Identifier: Apache-2.0 */
/* Results as a table for people and as CSV for programs. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "scenarios.h"

#include <stdio.h>

enum { ROUNDS_MAX = 99 };

/* results[contender][round] */
typedef struct result results_t[CONTENDERS_MAX][ROUNDS_MAX];

struct report {
    FILE *table;
    FILE *csv;       /* every round */
    FILE *histogram; /* how long the locks took, over all rounds */
};

void report_head(const struct report *report);
/* The caller has left out the contenders that are not there. */
void report_scenario(const struct report *report, const struct scenario *scenario,
                     results_t results, size_t rounds);

#endif
