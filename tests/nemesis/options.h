/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the nemesis. */
#ifndef NEM_OPTIONS_H
#define NEM_OPTIONS_H

#include "crew.h"

enum { NEM_MOST_LOCKS = 64 };

struct nem_options {
    uint64_t seed;
    unsigned long rounds;
    long minutes, seconds, gap_ms;
    struct nem_crew_options crew;
    uint64_t kinds, must;   /* bits of enum nem_kind, of enum nem_rule */
    bool only, guard_given; /* whether the command line has `kinds`, `crew.guard` */
    bool strict, in_turn, keep, plan_only;
    const char *explain;
};

const char *nem_guard_name(enum nem_guard guard);
/* Ends the process with a message when an option is wrong, and after --help. */
void nem_options_take(struct nem_options *opt, int argc, char **argv);

#endif
