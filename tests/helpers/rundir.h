/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crash guard's directory for the process and its children ($RLOCK_RUNDIR). A test
 * program normally has none, so that the locks of dead processes end by their leases.
 * With RLOCK_TEST_GUARD=1 in the environment it has its own, on a tmpfs, and each test
 * that calls test_rundir_own has another one below it. Thread: the main one.
 */
#ifndef TEST_RUNDIR_H
#define TEST_RUNDIR_H

#include <stdbool.h>

/* Sets the directory as the environment says; begin and end enclose all tests of a
 * program. */
void test_rundir_begin(void);
/* Removes all that was made since test_rundir_begin. */
void test_rundir_end(void);

/* From now on the calling process and its children have the guard, in a directory that no
 * other process uses, whatever the environment says. It is removed with the program's
 * directory. */
const char *test_rundir_own(void);
/* The same if the environment has RLOCK_TEST_GUARD=1. */
void test_rundir_own_if_any(void);
/* The calling process and its children have no guard: for tests of what leases do. */
void test_rundir_off(void);

/* The number of clients' live files in it; -1: no such directory. */
int test_rundir_count(const char *dir);
/* Waits until there are exactly `count`. */
bool test_rundir_wait(const char *dir, int count, long ms);

#endif
