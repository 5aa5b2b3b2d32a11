/* SPDX-License-Identifier: Apache-2.0 */
/* The failing allocator of shims/alloc_shim.c. A program has it if that file is among its
 * sources, or is preloaded. */
#ifndef TEST_ALLOC_H
#define TEST_ALLOC_H

#include <stdbool.h>

/* False also with sanitizers and Valgrind, which have their own allocator: skip the
 * test. */
bool test_alloc_available(void);

/* As in shims/alloc_shim.h. Without the shim they do nothing and return 0. */
void test_alloc_fail_at(long n);
void test_alloc_fail_from(long n);
void test_alloc_this_thread(bool only);
long test_alloc_count(void);
long test_alloc_failed(void);
long test_alloc_live(void);

#endif
