/* SPDX-License-Identifier: Apache-2.0 */
/* The nemesis's processes (crewman.c), seen from the driver. A process that ends by
 * itself is a violation and ends the run. Thread: the driver's main thread only. */
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
    unsigned long_percent; /* this share of their sections lasts about a lease */
    unsigned think_ms;     /* between two sections, at most */
    uint64_t seed;
    enum nem_guard guard;
    const char *rundir; /* the guard's directory; NULL: it is off */
};

struct nem_crew;

/* Starts the processes, each with its link of `faults`. */
struct nem_crew *nem_crew_start(const struct nem_crew_options *options,
                                struct nem_faults *faults);
/* The faults of processes that a schedule may cause. */
struct nem_workers nem_crew_workers(struct nem_crew *crew);

/* Makes the processes work, and write into `dir`. */
void nem_crew_work(struct nem_crew *crew, const char *dir);
/* Makes the processes finish what they have begun. 0: all did. Otherwise the time
 * (CLOCK_BOOTTIME, `ms` later) when the crew gave up: it killed those that had not
 * finished, and started their next lives. */
int64_t nem_crew_rest(struct nem_crew *crew, long ms);
/* The CPU time, in ns, that all processes have used, including those that have ended. */
int64_t nem_crew_cpu_ns(const struct nem_crew *crew);
/* Measures the resources of each process, one entry for each. */
void nem_crew_look(struct nem_crew *crew, struct nem_end *ends);

/* Ends all processes in good order, within test_ms(ms). Returns how many did not end, and
 * prints a line for each. */
unsigned long nem_crew_end(struct nem_crew *crew, long ms);

#endif
