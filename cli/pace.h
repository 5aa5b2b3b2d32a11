/* SPDX-License-Identifier: Apache-2.0 */
/* How long `rlock watch` pauses between two looks, so that they take the server a
 * twentieth of its time at most: a walk asks it for each of its keys, locks or not.
 * State: in the caller's struct. Thread: one at a time. */
#ifndef CLI_PACE_H
#define CLI_PACE_H

#include <rlock.h>
#include <stdbool.h>
#include <stdint.h>

/* Begin with { .interval_ms = ... }. */
struct pace {
    long interval_ms;            /* that was asked for */
    int64_t trip_us;             /* the shortest round trip seen; 0: none yet */
    rlock_histogram_t before;    /* of the client's round trips, before the look */
    rlock_histogram_t took;      /* of the last look's */
    int64_t began_us, lasted_us; /* the last look */
    long told_ms;                /* the pause that the user knows of; 0: none */
    bool was_long;               /* the pause before this one was longer than asked for */
};

/* Around a look: what of the client's requests was its. */
void pace_begin(struct pace *pace, const rlock_client_t *client);
void pace_end(struct pace *pace, const rlock_client_t *client);
/* After a look that went well: how far away the server is. Blocks: as rlock_client_ping.
 */
void pace_measure(struct pace *pace, rlock_client_t *client);

/* What the last look took of the server's time, at most. */
int64_t pace_cost_us(const struct pace *pace);
/* The pauses that go with it, those within a long look included; the interval, or longer.
 */
long pace_pause_ms(const struct pace *pace);
/* What of them is left from its end to the next look; the interval, or longer. */
long pace_rest_ms(const struct pace *pace);
/* Once after each look: whether to tell the user that the interval is not kept. Not of a
 * single look, which may have met a busy moment, nor again of the same. */
bool pace_is_news(struct pace *pace);

#endif
