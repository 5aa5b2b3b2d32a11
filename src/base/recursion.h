/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a thread has taken a read-write lock, and in which order: runs of writes and
 * of reads by turns, so that a thousand levels of one mode cost as much as one. While
 * there are writes and behind them reads at most, the two counts say it all. A zeroed
 * object is empty. Thread: the owner's.
 */
#ifndef RLK_RECURSION_H
#define RLK_RECURSION_H

#include <stdbool.h>

struct rlk_runs {
    unsigned count, size;
    unsigned levels[]; /* run 0, which may be 0 long, is of writes */
};

struct rlk_recursion {
    unsigned writes, reads;
    struct rlk_runs *runs; /* all of them, when they are more than two; else NULL */
};

/* One level more. False: too many, or out of memory; nothing changed. */
bool rlk_recursion_push(struct rlk_recursion *recursion, bool read);
/* Whether the innermost level is a read. */
bool rlk_recursion_reads(const struct rlk_recursion *recursion);
/* Drops the innermost level of that mode. False: there is none. */
bool rlk_recursion_drop(struct rlk_recursion *recursion, bool read);
/* All become reads. */
void rlk_recursion_downgrade(struct rlk_recursion *recursion);
/* Empty again. */
void rlk_recursion_clear(struct rlk_recursion *recursion);

#endif
