/* SPDX-License-Identifier: Apache-2.0 */
/* What main does in every test program, and what every kind of test may ask. */
#ifndef TEST_SUITE_H
#define TEST_SUITE_H

#include <check.h>
#include <stdbool.h>

/* Whether the child of a fork may start threads. ThreadSanitizer ends a process that does
 * where its parent had threads: a test that is left out for it says so. */
bool test_can_fork(const char *test);
/* The same while other threads allocate memory: AddressSanitizer's allocator may be left
 * locked in the child. */
bool test_can_fork_amid_threads(const char *test);
/* Before a fork that runs no handlers: waits until that allocator is not in use. Others
 * do by themselves in what test_run_suite runs. */
void test_before_fork(void);

/* What most tests of a program have in common; a program may be without. With
 * RLOCK_TEST_WARM in the environment it runs before them, in the process that they are
 * forked from: there Valgrind translates the code once instead of in each. */
Suite *test_warm_up(void) __attribute__((weak));
/* Such a suite: of that one test, with an unchecked and a checked fixture. */
Suite *test_warm_up_of(const TTest *test, void (*start)(void), void (*stop)(void),
                       void (*open)(void), void (*close)(void));

/* For tests of much work, that end by themselves when it comes to a standstill: at level
 * full they may take long on a slow machine. */
void test_long_tcase(TCase *tcase);

/* Adds these tests to the case. */
void test_add(TCase *tcase, const TTest *const tests[], size_t count);
#define TEST_ADD(tcase, ...)                                                             \
    test_add((tcase), (const TTest *const[]){ __VA_ARGS__ },                             \
             sizeof((const TTest *const[]){ __VA_ARGS__ }) / sizeof(const TTest *))

/* Runs the suite and frees it; the program's exit status. A suite that fails while this
 * machine stands still, which no lease outlives, is run again, twice at the most, and
 * says so. SIGTERM ends the suite: it cleans up, fails, and says if the machine stood
 * still. */
int test_run_suite(Suite *suite);

#endif
