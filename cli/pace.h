/* SPDX-License-Identifier: Apache-2.0 */
/* The pause of `rlock watch` between two looks: the looks may take at most a twentieth
 * of the server's time, and a walk costs time for each key, lock or not. State: in the
 * caller's struct. Thread: one at a time. */
#ifndef CLI_PACE_H
#define CLI_PACE_H

#include <rlock.h>
#include <stdbool.h>
#include <stdint.h>

/* Begin with { .interval_ms = ... }. */
struct pace {
    long interval_ms;            /* the requested one */
    int64_t trip_us;             /* the shortest round trip seen; 0: none yet */
    rlock_histogram_t before;    /* the client's round trips before the look */
    rlock_histogram_t took;      /* the round trips of the last look */
    int64_t began_us, lasted_us; /* the last look */
    long told_ms;                /* the pause that the user knows; 0: none */
    bool was_long;               /* the previous pause was longer than requested */
};

/* Call before and after a look: counts the requests of the look. */
void pace_begin(struct pace *pace, const rlock_client_t *client);
void pace_end(struct pace *pace, const rlock_client_t *client);
/* Call after a successful look: measures the distance of the server. Blocks: as
 * rlock_client_ping. */
void pace_measure(struct pace *pace, rlock_client_t *client);

/* An upper limit of the server's time for the last look. */
int64_t pace_cost_us(const struct pace *pace);
/* The pauses that the last look needs, including those within a long look: the interval,
 * or longer. */
long pace_pause_ms(const struct pace *pace);
/* The part of these pauses between the end of the look and the next one. */
long pace_rest_ms(const struct pace *pace);
/* Call once after each look: whether to report that the pause is longer than the
 * interval. A single long look is not reported, because the moment may have been busy,
 * and neither is the same pause again. */
bool pace_is_news(struct pace *pace);

#endif
