/* SPDX-License-Identifier: Apache-2.0 */
/* Steers the clock shim: changes the time of day of one process while it runs. */
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

/* Set the shift of CLOCK_REALTIME, or of CLOCK_BOOTTIME, against the machine's clock,
 * from now on, in the processes that were started with c->env. */
void test_clock_set_real(struct test_clock *c, long ms);
void test_clock_set_boot(struct test_clock *c, long ms);

/* Shifts the wall clock of a server. The shift is in force when this returns: some
 * servers notice it only in the next turn of their event loop (Valkey 9.1), or in the
 * next turn that has work. Aborts when the server's TIME does not show it. */
void test_clock_step(struct test_clock *c, struct test_redis *server, long ms);

/* test_clock_leap: from the `reads`th read of CLOCK_REALTIME on, the clock is ms further:
 * the process sees what it would see after standing still there. 0: no leap.
 * test_clock_has_leapt: whether the leap has happened. */
void test_clock_leap(struct test_clock *c, long reads, long ms);
bool test_clock_has_leapt(const struct test_clock *c);

#endif
