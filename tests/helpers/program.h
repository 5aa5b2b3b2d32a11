/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper program in its own process. Test and program talk in lines over the program's
 * stdin and stdout; its stderr is the caller's. It dies with the thread that started it
 * (start it from a main thread), so it never outlives its test.
 */
#ifndef TEST_PROGRAM_H
#define TEST_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct test_program {
    pid_t pid; /* 0: reaped */
    int in;    /* its stdin; -1: closed */
    int out;   /* its stdout */
    int status;
    size_t len; /* bytes in buf that test_program_read has not returned yet */
    char buf[8192];
};

/* argv[0] is the path; without a slash it is looked up in PATH. `env`: "NAME=value"
 * strings that are added to the environment or replace variables in it; NULL: none.
 * Aborts when the program cannot be started. */
void test_program_start(struct test_program *p, const char *const argv[],
                        const char *const env[]);

/* Sends `line` and a newline. False: the program does not read any more. */
bool test_program_write(struct test_program *p, const char *line);

/* Reads the next line, without its newline, NUL-terminated, cut to `size`. False: no line
 * came within test_ms(ms), or the output has ended. */
bool test_program_read(struct test_program *p, char *line, size_t size, long ms);

/* How far the work is that the program takes part in. The number never falls. */
typedef int64_t (*test_progress)(void *arg);
/* Like test_program_read, but waits as long as the work goes on, however slow the machine
 * is. False also when for test_ms(ms) there was neither a line nor any progress. */
bool test_program_read_amid(struct test_program *p, char *line, size_t size,
                            test_progress progress, void *arg, long ms);

/* Send SIGSTOP or SIGCONT. Both return when the kernel reports the new state. */
void test_program_stop(struct test_program *p);
void test_program_cont(struct test_program *p);

/* Sends SIGKILL and reaps the program. Does nothing if it has ended. */
void test_program_kill(struct test_program *p);

/* Closes the program's stdin and waits for its end. Returns its wait status; -1: it still
 * runs after test_ms(ms). */
int test_program_wait(struct test_program *p, long ms);

/* Kills the program if it runs, and closes the pipes. Does nothing with a zeroed
 * struct. */
void test_program_end(struct test_program *p);

/* The environment with `env` applied, for execve. Release it with free(). The strings are
 * borrowed. */
char **test_environ(const char *const env[]);

/* The path of a file of the build tree, for instance "tests/worker": below
 * $RLOCK_TEST_BUILDDIR, or else below the directory in which the helpers were built. */
void test_build_path(char *path, size_t size, const char *name);

#endif
