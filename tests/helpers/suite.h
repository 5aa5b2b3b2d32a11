/* SPDX-License-Identifier: Apache-2.0 */
/* What main does in every test program. */
#ifndef TEST_SUITE_H
#define TEST_SUITE_H

#include <check.h>

/* Runs the suite and frees it; the program's exit status. */
int test_run_suite(Suite *suite);

#endif
