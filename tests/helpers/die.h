/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a test program whose helpers themselves fail. */
#ifndef TEST_DIE_H
#define TEST_DIE_H

/* Prints one line to stderr and aborts. Check's own assertions longjmp and may only be
 * used by a test's main thread; this may be used anywhere. */
__attribute__((noreturn, format(printf, 1, 2))) void test_die(const char *format, ...);

#endif
