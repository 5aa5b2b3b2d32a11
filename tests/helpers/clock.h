/* SPDX-License-Identifier: Apache-2.0 */
/* Steering the clock shim: another time of day for one process, while it runs. */
#ifndef TEST_CLOCK_H
#define TEST_CLOCK_H

#include <limits.h>
#include <stdbool.h>

struct test_clock_file;
struct test_redis;

struct test_clock {
    struct test_clock_file *file;
    char path[64];
    char preload[PATH_MAX + 16], variable[96];
    const char *env[3]; /* for test_server_start_env and test_program_start */
};

/* No shift at first. */
void test_clock_open(struct test_clock *c);
void test_clock_close(struct test_clock *c);

/* Shift CLOCK_REALTIME, or CLOCK_BOOTTIME, of the processes that were started with
 * c->env, from now on, against the machine's. */
void test_clock_set_real(struct test_clock *c, long ms);
void test_clock_set_boot(struct test_clock *c, long ms);

/* The same of the wall clock of a server, which is in force when this returns: some take
 * it at the next turn of their loop only (Valkey 9.1), or at one that has something to
 * do. Aborts when its TIME does not show it. */
void test_clock_step(struct test_clock *c, struct test_redis *server, long ms);

/* CLOCK_REALTIME leaps by ms more when it is read for the `reads`th time from now on, as
 * it seems to a process that stood still there; 0: no longer. Whether it has. */
void test_clock_leap(struct test_clock *c, long reads, long ms);
bool test_clock_has_leapt(const struct test_clock *c);

#endif
