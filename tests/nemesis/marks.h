/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks tie the order in which the server executed to time. A thread of the driver sends
 * SET nemesis:mark <n> again and again; they stand in the append-only file among the
 * writes of the locks. Writes behind mark n were executed after its `sent`, writes before
 * it were executed before its `answered`.
 */
#ifndef NEM_MARKS_H
#define NEM_MARKS_H

#include <stdint.h>

#define NEM_MARK_KEY "nemesis:mark"

struct nem_mark {
    uint64_t n;       /* 1, 2, 3... over all epochs */
    int64_t sent;     /* CLOCK_BOOTTIME ns */
    int64_t answered; /* INT64_MAX: its answer was lost */
};

struct test_server;
struct nem_marks;

/* Sends a mark every `every_ms` over a direct connection, which is opened again when it
 * breaks, and appends to <dir>/marks. Aborts when it cannot be started. */
struct nem_marks *nem_marks_start(const struct test_server *server, const char *dir,
                                  long every_ms);
void nem_marks_stop(struct nem_marks *m);

#endif
