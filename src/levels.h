/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a thread has taken a read-write lock, and in which order: runs of writes and
 * of reads by turns, so that a thousand levels of one mode cost as much as one. A zeroed
 * object is empty. Thread: the owner's.
 */
#ifndef RLK_LEVELS_H
#define RLK_LEVELS_H

#include <stdbool.h>

enum { RLK_LEVELS_NEAR = 4 };

struct rlk_levels {
    unsigned writes, reads;
    unsigned run_count; /* run 0, which may be 0 long, is of writes */
    unsigned near_runs[RLK_LEVELS_NEAR];
    unsigned *far_runs; /* all of them, when they are more */
    unsigned far_size;
};

/* One level more. False: too many, or out of memory; nothing changed. */
bool rlk_levels_push(struct rlk_levels *levels, bool read);
/* Whether the innermost level is a read. */
bool rlk_levels_reads(const struct rlk_levels *levels);
/* Drops the innermost level of that mode. False: there is none. */
bool rlk_levels_drop(struct rlk_levels *levels, bool read);
/* All become reads. */
void rlk_levels_downgrade(struct rlk_levels *levels);
/* Empty again. */
void rlk_levels_clear(struct rlk_levels *levels);

#endif
