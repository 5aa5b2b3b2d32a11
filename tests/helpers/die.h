/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a test program when one of its helpers fails. */
#ifndef TEST_DIE_H
#define TEST_DIE_H

/* Prints one line to stderr and aborts. Check's own assertions use longjmp, so only a
 * test's main thread may call them. Any thread may call this function. */
__attribute__((noreturn, format(printf, 1, 2))) void test_die(const char *format, ...);

#endif
