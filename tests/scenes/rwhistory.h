/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened to the readers and writers of one lock, and whether it was right: S1, S3
 * and the bounds of W14. A test hands over the log of rwlog.h, and what it saw at the
 * server meanwhile; `who` is a thread's small number. Thread: one at a time.
 */
#ifndef TEST_RWHISTORY_H
#define TEST_RWHISTORY_H

#include "rwlog.h"

#include <stddef.h>
#include <stdint.h>

enum { RWHISTORY_READERS_MAX = 32, RWHISTORY_WHO_MAX = 1024 };

/* The server was looked at, at one instant between two places in the log: after all that
 * is before `since`, and before all that is from `till` on. */
struct rwhistory_look {
    size_t since, till;
    uint64_t token;                      /* of the holder, or of the reading */
    long writer;                         /* who was the first to wait to write, or -1 */
    long readers[RWHISTORY_READERS_MAX]; /* who waited to read, each under his own id */
    size_t reader_count;
};

struct rwhistory;

struct rwhistory *rwhistory_new(void);
/* NULL is fine. */
void rwhistory_free(struct rwhistory *h);

/* ---- what was seen */

void rwhistory_add(struct rwhistory *h, enum rwlog_kind kind, long who, uint64_t token);
/* What is new in the log since the last call, up to what is being written. */
void rwhistory_read(struct rwhistory *h, struct rwlog *log);
/* All that is left of it, when nobody writes any more. */
void rwhistory_read_all(struct rwhistory *h, struct rwlog *log);
/* Copied. */
void rwhistory_look(struct rwhistory *h, const struct rwhistory_look *look);

/* ---- judgement: NULL, or the first rule that was broken and by whom, valid until the
 * next call */

/* Of any kind of lock:
 *   unasked: who enters has asked, and is not inside already; who leaves was inside, and
 *     only a writer downgrades;
 *   overlap: while one writes, nobody else is inside;
 *   tokens: a writer's is greater than all before, a reader's than a writer's before,
 *     whose own he has if he joined its downgrade. */
const char *rwhistory_fault(const struct rwhistory *h);

/* Of a phase-fair lock, of whoever was seen to wait and was let in, or waits still:
 *   reads: since a writer was seen as the first one, each thread began to read once at
 *     most before it;
 *   writes: since a reader was seen to wait, one writer at most was before it. */
const char *rwhistory_phase_fault(struct rwhistory *h);

/* The largest such numbers: reads of one thread past one writer, writers past one
 * reader. */
long rwhistory_reads_past(struct rwhistory *h);
long rwhistory_writes_past(struct rwhistory *h);

/* Its length: the place of what comes next. */
size_t rwhistory_events(const struct rwhistory *h);
/* How many looks at a first writer, and at waiting readers, were of use. */
long rwhistory_writers_seen(const struct rwhistory *h);
long rwhistory_readers_seen(const struct rwhistory *h);
/* The most that read at the same time. */
long rwhistory_most_readers(const struct rwhistory *h);
/* How often something of this kind happened; by threads from `from` to below `to`. */
long rwhistory_count(const struct rwhistory *h, enum rwlog_kind kind, long from, long to);

#endif
