/* SPDX-License-Identifier: Apache-2.0 */
/* Controls the failing allocator. Programs that may be without it use helpers/alloc.h.
 * Thread: any. */
#ifndef TEST_ALLOC_SHIM_H
#define TEST_ALLOC_SHIM_H

/* Restart the count: the n-th allocation from now on fails (fail_at), or that one and all
 * after it (fail_from); 0: none. */
void rlock_alloc_fail_at(long n);
void rlock_alloc_fail_from(long n);
/* From now on only the calling thread's allocations count; 0: those of all threads. */
void rlock_alloc_this_thread(int only);
/* The number of allocations since then, including failed ones; the number of failures. */
long rlock_alloc_count(void);
long rlock_alloc_failed(void);
/* The number of blocks, of all threads, that are allocated and not yet freed. */
long rlock_alloc_live(void);

#endif
