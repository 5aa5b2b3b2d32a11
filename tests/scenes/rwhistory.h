/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges what happened to the readers and writers of one lock: S1, S3 and the bounds of
 * W14. The test hands over the log of rwlog.h and its looks at the server. `who` is the
 * small number of a thread. Thread: one at a time.
 */
#ifndef TEST_RWHISTORY_H
#define TEST_RWHISTORY_H

#include "rwlog.h"

#include <stddef.h>
#include <stdint.h>

enum { RWHISTORY_READERS_MAX = 32, RWHISTORY_WHO_MAX = 1024 };

/* A look at the server at one instant: after the log entries before `since`, and before
 * the entries from `till` on. */
struct rwhistory_look {
    size_t since, till;
    uint64_t token;                      /* of the holder, or of the reading */
    long writer;                         /* the first waiting writer, or -1 */
    long readers[RWHISTORY_READERS_MAX]; /* the waiting readers that have their own ids */
    size_t reader_count;
};

struct rwhistory;

struct rwhistory *rwhistory_new(void);
/* Does nothing with NULL. */
void rwhistory_free(struct rwhistory *h);

/* ---- the record */

void rwhistory_add(struct rwhistory *h, enum rwlog_kind kind, long who, uint64_t token);
/* Reads the new entries of the log, up to the first that is still being written. */
void rwhistory_read(struct rwhistory *h, struct rwlog *log);
/* Reads the rest of the log, when no thread writes any more. */
void rwhistory_read_all(struct rwhistory *h, struct rwlog *log);
/* The look is copied. */
void rwhistory_look(struct rwhistory *h, const struct rwhistory_look *look);

/* ---- the verdict: NULL, or the first broken rule and who broke it, valid until the next
 * call */

/* For every preference:
 *   unasked: a thread enters upon a request, and is not inside already; a thread that
 *     leaves was inside, and only a writer downgrades;
 *   overlap: beside a writer no other thread is inside;
 *   tokens: the token of a writer is greater than all earlier ones; that of a reader is
 *     greater than those of earlier writers, or that of the writer whose downgrade it
 *     joined. */
const char *rwhistory_fault(const struct rwhistory *h);

/* For a phase-fair lock, of each thread that was seen waiting, granted since or not:
 *   reads: since a writer was seen first in its queue, each thread began to read at most
 *     once before it;
 *   writes: since a reader was seen waiting, at most one writer was before it. */
const char *rwhistory_phase_fault(struct rwhistory *h);

/* The largest such numbers: of reads of one thread before one writer; of writers before
 * one reader. */
long rwhistory_reads_past(struct rwhistory *h);
long rwhistory_writes_past(struct rwhistory *h);

/* The length of the log: the place of the next entry. */
size_t rwhistory_events(const struct rwhistory *h);
/* How many looks at a first writer, and at waiting readers, counted. */
long rwhistory_writers_seen(const struct rwhistory *h);
long rwhistory_readers_seen(const struct rwhistory *h);
/* The largest number of simultaneous readers. */
long rwhistory_most_readers(const struct rwhistory *h);
/* The number of events of this kind by threads from `from` to below `to`. */
long rwhistory_count(const struct rwhistory *h, enum rwlog_kind kind, long from, long to);

#endif
