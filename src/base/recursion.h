/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many times a thread has locked a read-write lock, and in which order. Runs of
 * writes and of reads alternate, so that a thousand levels of one mode cost as much as
 * one. The two counters suffice while all writes precede all reads. A zeroed object is
 * empty. Thread: the holder's.
 */
#ifndef RLK_RECURSION_H
#define RLK_RECURSION_H

#include <stdbool.h>

struct rlk_runs {
    unsigned count, size;
    unsigned levels[]; /* run 0 is of writes and may have length 0 */
};

struct rlk_recursion {
    unsigned writes, reads;
    struct rlk_runs *runs; /* all runs, when there are more than two; else NULL */
};

/* Adds a level. False: too many levels or out of memory; then nothing has changed. */
bool rlk_recursion_push(struct rlk_recursion *recursion, bool read);
/* Whether the innermost level is a read. */
bool rlk_recursion_reads(const struct rlk_recursion *recursion);
/* Drops the innermost level of that mode. False: no such level. */
bool rlk_recursion_drop(struct rlk_recursion *recursion, bool read);
/* Makes all levels reads. */
void rlk_recursion_downgrade(struct rlk_recursion *recursion);
/* Makes it empty. */
void rlk_recursion_clear(struct rlk_recursion *recursion);

#endif
