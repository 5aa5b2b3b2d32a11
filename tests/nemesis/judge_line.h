/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the judge: the waiters and the holders of a lock, as the ledger goes on. The
 * rules look at a transaction with the state before it. */
#ifndef NEM_JUDGE_LINE_H
#define NEM_JUDGE_LINE_H

#include "judge_impl.h"

struct nem_waiter {
    const struct nem_entry *queued;
    const struct nem_life *life; /* NULL: of an unknown process */
    bool reading;
    bool gone;            /* it leaves the queue in this transaction */
    unsigned writers;     /* that were granted the lock since... */
    int64_t writers_from; /* ...it waits without a break */
};

struct nem_holder {
    const char *id;
    bool reading, gone;
    int64_t since;                 /* not before this time */
    int64_t latest_end, early_end; /* of its lease: INT64_MAX, INT64_MIN: unknown */
};

struct nem_seen {
    const char *uuid; /* may be followed by more */
    uint64_t until;
};

struct nem_line {
    struct nem_waiter *waiters;
    size_t waiter_count, waiter_size;
    struct nem_holder *holders;
    size_t holder_count, holder_size;
    struct nem_seen *present;
    size_t present_count, present_size;
    bool spoilt;
    int64_t
        free_from; /* while nobody holds it: it has been free since then at the latest */
    int64_t held_since;
    /* of a read-write lock: when the current or last turn of readers began */
    bool readers_turn;
    uint64_t turn_transaction;
    int64_t turn_from;
};

/* The effects of one transaction on one lock. */
struct nem_step {
    unsigned lock;
    const struct nem_entry *first;
    size_t count;
};

/* Whether the server had to find this waiter alive at the time of `entry`. */
bool nem_waits(const struct nem_judge *j, const struct nem_line *line,
               const struct nem_waiter *waiter, const struct nem_entry *entry);
const struct nem_waiter *nem_waiter_find(const struct nem_line *line, const char *id);
bool nem_same_client(const char *id, const char *other);

/* judge_joins.c: threads that entered a reading of their process; those that had by
 * `until`. */
struct nem_joins;
struct nem_joins *nem_joins_make(const struct nem_judge *j);
void nem_judge_joins(struct nem_judge *j, const struct nem_line *lines,
                     struct nem_joins *joins, int64_t until);
void nem_joins_free(struct nem_joins *joins);

/* judge_phases.c */
void nem_judge_phases(struct nem_judge *j, struct nem_line *line,
                      const struct nem_step *step);

#endif
