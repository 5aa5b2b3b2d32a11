/* SPDX-License-Identifier: Apache-2.0 */
/* The nemesis's processes (crewman.c), from outside. One that ends by itself is a
 * violation and the end of the run. Thread: the driver's main thread only. */
#ifndef NEM_CREW_H
#define NEM_CREW_H

#include "faults.h"
#include "oplog.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which lives have the crash guard; some: half of them, by the seed. */
enum nem_guard { NEM_GUARD_OFF, NEM_GUARD_ON, NEM_GUARD_SOME };

struct nem_crew_options {
    unsigned processes, threads, locks;
    long lease_ms, presence_ms, commandtimeout_ms;
    unsigned long_percent; /* of their sections last about a lease */
    uint64_t seed;
    enum nem_guard guard;
    const char *rundir; /* the guard's directory; NULL: it is off */
};

struct nem_crew;

/* Starts the processes, each with its link of `faults`. */
struct nem_crew *nem_crew_start(const struct nem_crew_options *options,
                                struct nem_faults *faults);
/* What a schedule does to them. */
struct nem_workers nem_crew_workers(struct nem_crew *crew);

/* They work, and write into `dir`. */
void nem_crew_work(struct nem_crew *crew, const char *dir);
/* They finish what they have begun. 0: all did; else when it was given up
 * (CLOCK_BOOTTIME) after `ms`: those that had not were killed, and have another life. */
int64_t nem_crew_rest(struct nem_crew *crew, long ms);
/* What all have run so far, ns of CPU time, also those that have ended. */
int64_t nem_crew_cpu_ns(const struct nem_crew *crew);
/* What each uses; as many as there are processes. */
void nem_crew_look(struct nem_crew *crew, struct nem_end *ends);

/* Ends all in good order, within test_ms(ms). How many did not, with a line for each. */
unsigned long nem_crew_end(struct nem_crew *crew, long ms);

#endif
