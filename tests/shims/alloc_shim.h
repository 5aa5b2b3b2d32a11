/* SPDX-License-Identifier: Apache-2.0 */
/* How a test steers the failing allocator; see helpers/alloc.h for a program into which
 * it may or may not be linked or preloaded. Thread: any. */
#ifndef TEST_ALLOC_SHIM_H
#define TEST_ALLOC_SHIM_H

/* Start counting anew: the n-th allocation from now fails, or it and all after it; 0:
 * none. */
void rlock_alloc_fail_at(long n);
void rlock_alloc_fail_from(long n);
/* Only the calling thread's allocations count from now on; 0: every thread's. */
void rlock_alloc_this_thread(int only);
/* Allocations since then, the failed ones included, and how many failed. */
long rlock_alloc_count(void);
long rlock_alloc_failed(void);
/* Blocks that are allocated and not freed, of all threads. */
long rlock_alloc_live(void);

#endif
