/* SPDX-License-Identifier: Apache-2.0 */
/* See suite.h. */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

bool test_can_fork(const char *test)
{
#ifdef __SANITIZE_THREAD__
    printf("skipped: %s: ThreadSanitizer does not let it fork\n", test);
    fflush(stdout);
    return false;
#else
    (void)test;
    return true;
#endif
}

bool test_can_fork_amid_threads(const char *test)
{
#ifdef __SANITIZE_ADDRESS__
    printf("skipped: %s: AddressSanitizer's allocator is not made for it\n", test);
    fflush(stdout);
    return false;
#else
    return test_can_fork(test);
#endif
}

int test_run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
