/* SPDX-License-Identifier: Apache-2.0 */
/* How long each phase of a round of the nemesis may take. */
#ifndef NEM_TIMES_H
#define NEM_TIMES_H

/* In ms, scaled by RLOCK_TEST_SCALE. */
struct nem_times {
    long patience_ms; /* when all is calm, a waiter gets its lock within this time */
    long tail_ms;     /* the workers go on for this long after the faults: longer than
                       * patience_ms, so that a wait since then shows as too long */
    long rest_ms;     /* within this time they finish what they have begun: the same for a
                       * wait that began in the last moment */
};

struct nem_times nem_times_of(long lease_ms, long presence_ms);

#endif
