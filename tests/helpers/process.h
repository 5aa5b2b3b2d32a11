/* SPDX-License-Identifier: Apache-2.0 */
/* The calling process's descriptors and threads, and its limit of descriptors. Thread:
 * any. */
#ifndef TEST_PROCESS_H
#define TEST_PROCESS_H

#include <stdbool.h>

/* Only descriptors below this number are counted. */
enum { TEST_FDS_MAX = 1024 };

int test_fd_count(void);
bool test_fd_is_open(int fd);
/* From now on the process can open at most this many more descriptors (RLIMIT_NOFILE);
 * negative: restores the former limit. Open descriptors stay open, and the number of a
 * closed one can be used again. */
void test_fd_allow(int more);
/* No descriptor from `first` on can be opened. */
void test_fd_limit(int first);

/* Threads whose name begins with `prefix`. */
int test_thread_count(const char *prefix);
/* Waits until there are exactly `count`. */
bool test_thread_wait(const char *prefix, int count, long ms);
/* Waits until all other threads of the process have slept for `quiet_ms`. False: they did
 * not within `ms` (unscaled). */
bool test_thread_quiet(long quiet_ms, long ms);

#endif
