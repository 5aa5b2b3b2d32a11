/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured; bench/README.md says why. */
#ifndef BENCH_SCENARIOS_H
#define BENCH_SCENARIOS_H

#include "team.h"

#include <stdbool.h>

enum { CONTENDERS_MAX = 8 };

enum unit {
    UNIT_MS,
    UNIT_US,
    UNIT_NS,
    UNIT_PER_S,
    UNIT_TAIL /* the 99th percentile of what lock() takes, by the 50th */
};            /* of the table; per pair, or pairs per second */

struct entry {
    const struct contender *contender; /* NULL: no more */
    const char *target; /* of the first contender's own figure, or of the ratio */
    struct shape shape; /* processes 0: the scenario's */
};

/* The first contender is compared with each of the others, that is, the library with its
 * peers. */
struct scenario {
    const char *word; /* chooses it on the command line */
    const char *label;
    enum unit unit;
    struct shape shape;
    struct entry entries[CONTENDERS_MAX];
    bool ratio_to_first; /* compares each of the others with the first instead */
    double seconds;      /* of a round, at least */
    size_t slices;       /* of a round; 0: the default */
};

extern const struct scenario scenarios[];
extern const size_t scenario_count;

#endif
