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
    /* At the reading of the wall clock at which leap_reads comes to 0, and from then on,
     * it says leap_ns more, which the shim adds to real_ns. */
    int64_t leap_reads, leap_ns;
};

#endif
