/* SPDX-License-Identifier: Apache-2.0 */
/* See failover.h. */
#include "bench.h"
#include "failover.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1024 };

static void *grown(void *old, size_t count, size_t size)
{
    void *new = realloc(old, count * size);

    if (!new)
        die("out of memory");
    return new;
}

static void add(struct contender *c, const struct taken *taken)
{
    if (c->taken_count == c->taken_room) {
        c->taken_room = c->taken_room ? c->taken_room * 2 : ROOM;
        c->taken = grown(c->taken, c->taken_room, sizeof(*taken));
    }
    c->taken[c->taken_count++] = *taken;
}

static void note_error(struct contender *c, const char *text)
{
    if (!c->error[0])
        snprintf(c->error, sizeof(c->error), "%s", text);
}

/* The lines of a contender:
 *   lock WORKER NUMBER SENT GRANTED ENDED -         lock() and unlock() succeeded
 *   lock WORKER NUMBER SENT GRANTED ENDED TEXT      unlock() failed
 *   fail WORKER NUMBER SENT ENDED TEXT              lock() failed
 *   = TEXT                                          the answer to a command
 * Times are those of CLOCK_MONOTONIC in nanoseconds. */
void locks_line(struct contender *c, const char *line)
{
    struct taken t;
    int end = 0;

    if (strncmp(line, "= ", 2) == 0) {
        snprintf(c->answer, sizeof(c->answer), "%s", line + 2);
        c->answered = true;
    } else if (sscanf(line,
                      "lock %" SCNu32 " %" SCNu32 " %" SCNd64 " %" SCNd64 " %" SCNd64
                      " %n",
                      &t.worker, &t.number, &t.sent, &t.granted, &t.ended, &end) == 5 &&
               end > 0 && t.worker < WORKERS) {
        add(c, &t);
        if (strcmp(line + end, "-") != 0) {
            c->unlock_errors++;
            note_error(c, line + end);
        }
    } else if (sscanf(line, "fail %" SCNu32 " %" SCNu32 " %" SCNd64 " %" SCNd64 " %n",
                      &t.worker, &t.number, &t.sent, &t.ended, &end) == 4 &&
               end > 0) {
        c->lock_errors++;
        note_error(c, line + end);
    } else {
        die("%s: %s", c->name, line);
    }
}

void locks_seen(struct contender *c, unsigned worker, unsigned number, int server)
{
    size_t room = c->seen_room[worker];

    if (number >= room) {
        size_t wanted = number + ROOM > room * 2 ? number + ROOM : room * 2;
        c->seen[worker] = grown(c->seen[worker], wanted, 1);
        memset(c->seen[worker] + room, 0, wanted - room);
        c->seen_room[worker] = wanted;
    }
    c->seen[worker][number] |= (uint8_t)(1U << server);
}

static bool was_seen(const struct contender *c, const struct taken *t, int server)
{
    return t->number < c->seen_room[t->worker] &&
           (c->seen[t->worker][t->number] >> server & 1);
}

void locks_forget(struct contender *c)
{
    c->taken_count = 0;
    c->lock_errors = 0;
    c->unlock_errors = 0;
    c->error[0] = '\0';
}

int64_t locks_first(const struct contender *c, int64_t since, int server)
{
    int64_t first = 0;

    for (size_t i = 0; i < c->taken_count; i++) {
        const struct taken *t = &c->taken[i];
        if (t->granted >= since && (first == 0 || t->granted < first) &&
            was_seen(c, t, server))
            first = t->granted;
    }
    return first;
}

long locks_lost(const struct contender *c, int64_t fault, int64_t switched, int server,
                long *ret_after)
{
    long lost = 0;

    *ret_after = 0;
    for (size_t i = 0; i < c->taken_count; i++) {
        const struct taken *t = &c->taken[i];
        if (t->ended < fault || was_seen(c, t, server))
            continue;
        lost++;
        *ret_after += t->granted >= switched;
    }
    return lost;
}
