/* SPDX-License-Identifier: Apache-2.0 */
/* The failing allocator of shims/alloc_shim.c, if this program has it: by tests/shims/
 * alloc_shim.c among its sources, or preloaded. */
#ifndef TEST_ALLOC_H
#define TEST_ALLOC_H

#include <stdbool.h>

/* False also with sanitizers and Valgrind, which bring an allocator of their own: skip
 * the test. */
bool test_alloc_available(void);

/* As in shims/alloc_shim.h; without effect, or 0, when not available. */
void test_alloc_fail_at(long n);
void test_alloc_fail_from(long n);
void test_alloc_this_thread(bool only);
long test_alloc_count(void);
long test_alloc_failed(void);
long test_alloc_live(void);

#endif
