/* SPDX-License-Identifier: Apache-2.0 */
/* The process that owns a test's server; see server.h. Only server.c uses it. */
#ifndef TEST_SUPERVISOR_H
#define TEST_SUPERVISOR_H

#include <sys/types.h>

/* One datagram each way. A command is one of these letters. START is followed by
 * NUL-terminated strings: the arguments, each with an 'a' in front, and the variables,
 * each with an 'e'. A START without strings uses those of the last one. */
enum {
    TEST_SUPERVISOR_START = 's',
    TEST_SUPERVISOR_KILL = 'k',
    TEST_SUPERVISOR_TERM = 't',
    TEST_SUPERVISOR_PID = 'p',
    TEST_SUPERVISOR_QUIT = 'q'
};
enum { TEST_SUPERVISOR_MESSAGE_MAX = 8192 };

/* The answer to each command: the server's pid after it, 0 when no server runs. */
struct test_supervisor_answer {
    pid_t pid;
};

/* The body of the forked process: obeys `control` until it is closed or `starter` has
 * ended, then removes `dir`. */
__attribute__((noreturn)) void test_supervisor_run(int control, const char *dir,
                                                   pid_t starter);

#endif
