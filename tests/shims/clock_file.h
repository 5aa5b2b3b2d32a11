/* SPDX-License-Identifier: Apache-2.0 */
/* The mapped file that the clock shim shares with the test that controls it. */
#ifndef TEST_CLOCK_FILE_H
#define TEST_CLOCK_FILE_H

#include <stdint.h>

#define TEST_CLOCK_VARIABLE "RLOCK_CLOCK_FILE"

/* Added to the kernel's time, in ns. */
struct test_clock_file {
    int64_t real_ns; /* CLOCK_REALTIME, gettimeofday, time */
    int64_t boot_ns; /* CLOCK_BOOTTIME */
    /* When the reads of the wall clock have counted leap_reads down to 0, the shim adds
     * leap_ns to real_ns, so that this read and all later ones are that much further. */
    int64_t leap_reads, leap_ns;
};

#endif
