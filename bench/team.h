/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker processes that run one contender. A process that never uses the library forks
 * them before the first of them uses it. They stay for all rounds, and sleep while
 * another team runs.
 */
#ifndef BENCH_TEAM_H
#define BENCH_TEAM_H

#include "contender.h"
#include "histogram.h"

#include <stddef.h>
#include <stdint.h>

enum { TEAM_MAX = 10240 /* workers: threads of all processes */ };

struct shape {
    size_t processes, threads; /* of each; 0: one */
};

/* What a team did in one round. */
struct result {
    double
        seconds; /* of all workers: the whole time, or what the contender says counts */
    uint64_t pairs, luckiest, unluckiest; /* of all, of one worker */
    double longest_ns;       /* the longest run, of a contender that says what counts */
    uint64_t waits;          /* pairs that got their lock from another's release */
    double cpu_ns, switches; /* of the workers: CPU time, voluntary switches */
    struct histogram latencies; /* what the contender notes */
};

/* Adds one more worker's pairs. */
void result_count(struct result *result, uint64_t pairs);

struct team;

struct team *team_start(const struct contender *contender, struct shape shape,
                        const char *name);
/* Lets the team work for a while. */
void team_run(struct team *team, double seconds);
/* Returns what the team did since the last call. */
void team_take(struct team *team, struct result *ret_result);
void team_stop(struct team *team);

#endif
