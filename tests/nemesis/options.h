/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the nemesis. */
#ifndef NEM_OPTIONS_H
#define NEM_OPTIONS_H

#include "crew.h"

struct nem_options {
    uint64_t seed;
    unsigned long rounds;
    long minutes, seconds, gap_ms;
    struct nem_crew_options crew;
    enum nem_servers servers;
    uint64_t kinds, must; /* bits of enum nem_kind, of enum nem_rule */
    /* whether the command line has `kinds`, `crew.guard`, `crew.lease_ms` */
    bool only, guard_given, lease_given;
    bool strict, in_turn, keep, plan_only, unconfirmed;
    const char *explain;
};

const char *nem_guard_name(enum nem_guard guard);
const char *nem_servers_name(enum nem_servers servers);
/* Ends the process with a message when an option is wrong, and after --help. */
void nem_options_take(struct nem_options *opt, int argc, char **argv);

#endif
