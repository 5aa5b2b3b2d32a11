/* SPDX-License-Identifier: Apache-2.0 */
/* How long a round of the nemesis waits for what. */
#ifndef NEM_TIMES_H
#define NEM_TIMES_H

/* In ms that have grown with RLOCK_TEST_SCALE. */
struct nem_times {
    long patience_ms; /* within which a waiter gets its lock when all is calm */
    long tail_ms;     /* the workers go on for after the faults: longer, so that who waits
                       * since then has waited too long */
    long rest_ms;     /* within which they finish what they have begun: the same for a
                       * wait that began in the last moment */
};

struct nem_times nem_times_of(long lease_ms, long presence_ms);

#endif
