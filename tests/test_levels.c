/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include <check.h>

int main(void)
{
    return test_run_suite(suite_create("levels"));
}
