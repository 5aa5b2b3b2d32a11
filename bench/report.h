/* SPDX-License-Identifier: Apache-2.0 */
/* Results as a table for people and as CSV for programs. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "team.h"

#include <stdbool.h>
#include <stdio.h>

enum { ROUNDS_MAX = 99, CONTENDERS_MAX = 3 };

enum unit {
    UNIT_MS,
    UNIT_US,
    UNIT_NS,
    UNIT_PER_S
}; /* of the table; per pair, or pairs per second */

/* The first contender is compared with each of the others: the library with what is
 * measured against it. */
struct scenario {
    const char *word; /* chooses it on the command line */
    const char *label;
    enum unit unit;
    size_t processes;
    const char *name; /* of the lock */
    const struct contender *contenders[CONTENDERS_MAX];
    const char
        *targets[CONTENDERS_MAX]; /* of the first one's own figure, of each ratio */
    bool ratio_to_first; /* the other way round: each of the others with the first */
};

/* results[contender][round] */
typedef struct result results_t[CONTENDERS_MAX][ROUNDS_MAX];

void report_head(FILE *table, FILE *csv);
void report_scenario(FILE *table, FILE *csv, const struct scenario *scenario,
                     results_t results, size_t rounds);

#endif
