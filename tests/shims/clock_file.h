/* SPDX-License-Identifier: Apache-2.0 */
/* What the clock shim and the test that steers it share through a mapped file. */
#ifndef TEST_CLOCK_FILE_H
#define TEST_CLOCK_FILE_H

#include <stdint.h>

#define TEST_CLOCK_VARIABLE "RLOCK_CLOCK_FILE"

/* Added to what the kernel says, ns. */
struct test_clock_file {
    int64_t real_ns; /* CLOCK_REALTIME, gettimeofday, time */
    int64_t boot_ns; /* CLOCK_BOOTTIME */
};

#endif
