/* SPDX-License-Identifier: Apache-2.0 */
/* What the main function of every test program does, and questions that any test may
 * ask. */
#ifndef TEST_SUITE_H
#define TEST_SUITE_H

#include <check.h>
#include <stdbool.h>

/* Whether the child of a fork may start threads. ThreadSanitizer ends such a child if its
 * parent had threads. A test that is skipped for that reason prints so. */
bool test_can_fork(const char *test);
/* The same while other threads allocate memory: AddressSanitizer's allocator may stay
 * locked in the child. */
bool test_can_fork_amid_threads(const char *test);
/* Call it before a fork that runs no atfork handlers: it waits until that allocator is
 * not in use. In test_run_suite other forks do so by themselves. */
void test_before_fork(void);

/* What most tests of a program have in common; optional. With RLOCK_TEST_WARM in the
 * environment it runs before the tests, in the process that they are forked from: then
 * Valgrind translates the code once instead of once for each test. */
Suite *test_warm_up(void) __attribute__((weak));
/* A warm-up suite of this one test, with an unchecked and a checked fixture. */
Suite *test_warm_up_of(const TTest *test, void (*start)(void), void (*stop)(void),
                       void (*open)(void), void (*close)(void));

/* For tests that do much work and end by themselves when they no longer advance: at level
 * full they may take long on a slow machine. */
void test_long_tcase(TCase *tcase);

/* Adds these tests to the case. */
void test_add(TCase *tcase, const TTest *const tests[], size_t count);
#define TEST_ADD(tcase, ...)                                                             \
    test_add((tcase), (const TTest *const[]){ __VA_ARGS__ },                             \
             sizeof((const TTest *const[]){ __VA_ARGS__ }) / sizeof(const TTest *))

/* Runs the suite and frees it. Returns the program's exit status. A suite that fails
 * while this machine stands still, which no lease outlives, is run again, at most twice,
 * with a message. SIGTERM ends the suite: it cleans up, fails, and reports whether the
 * machine stood still. */
int test_run_suite(Suite *suite);

#endif
