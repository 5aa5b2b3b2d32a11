/* SPDX-License-Identifier: Apache-2.0 */
/* What the calling process has: descriptors and threads, and how many more descriptors it
 * may have. Thread: any. */
#ifndef TEST_PROCESS_H
#define TEST_PROCESS_H

#include <stdbool.h>

/* Descriptors below this number are looked at. */
enum { TEST_FDS_MAX = 1024 };

int test_fd_count(void);
bool test_fd_is_open(int fd);
/* From now on so many more can be opened (RLIMIT_NOFILE); negative: as many as before. Of
 * those that are open none is closed, but one that is closed may be opened anew. */
void test_fd_allow(int more);
/* No descriptor from `first` on can be opened. */
void test_fd_limit(int first);

/* Threads whose name begins with `prefix`. */
int test_thread_count(const char *prefix);
/* Waits until there are so many. */
bool test_thread_wait(const char *prefix, int count, long ms);
/* Waits until the other threads of the process have slept for `quiet_ms`, all of them:
 * for `ms` at most, unscaled. Whether they did. */
bool test_thread_quiet(long quiet_ms, long ms);

#endif
