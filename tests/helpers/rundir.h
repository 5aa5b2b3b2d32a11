/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of the crash guard, for the process and those that it starts
 * ($RLOCK_RUNDIR). A test program has none, so that leases are what ends the locks of the
 * dead, unless the environment says RLOCK_TEST_GUARD=1: then it has one of its own, on a
 * tmpfs, and each test that has it from test_rundir_own one below. Thread: the main one.
 */
#ifndef TEST_RUNDIR_H
#define TEST_RUNDIR_H

#include <stdbool.h>

/* What the environment says; around all tests of a program. */
void test_rundir_begin(void);
/* Removes what was made since. */
void test_rundir_end(void);

/* The calling process and its children have the guard from now on, in a directory that
 * nobody else uses, whatever the environment says. Removed with the program's. */
const char *test_rundir_own(void);
/* The same if the environment says so. */
void test_rundir_own_if_any(void);
/* They have none: a test of what leases do. */
void test_rundir_off(void);

/* How many clients' files there are; -1: no directory. */
int test_rundir_count(const char *dir);
/* Waits until there are so many. */
bool test_rundir_wait(const char *dir, int count, long ms);

#endif
