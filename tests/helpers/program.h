/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper program as a real process of its own, talked to in lines over its stdin and
 * stdout; stderr is the caller's. It dies with the thread that started it (start it from
 * a main thread) and so never outlives its test.
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
    size_t len; /* bytes in buf that are not yet a taken line */
    char buf[8192];
};

/* argv[0] is the path, looked up in PATH when it has no slash. `env`: "NAME=value"
 * strings laid over the environment, or NULL. Aborts when it cannot be started. */
void test_program_start(struct test_program *p, const char *const argv[],
                        const char *const env[]);

/* Sends `line` and a newline. False: it does not read any more. */
bool test_program_write(struct test_program *p, const char *line);

/* The next line, without its newline, NUL-terminated, cut to `size`. False: none within
 * test_ms(ms), or the end of its output. */
bool test_program_read(struct test_program *p, char *line, size_t size, long ms);

/* How far the work has come that the program has a part in; grows. */
typedef int64_t (*test_progress)(void *arg);
/* The same, however long the work takes on a slow machine, as long as it comes on: false
 * also when the next line and any progress have both been missing for test_ms(ms). */
bool test_program_read_amid(struct test_program *p, char *line, size_t size,
                            test_progress progress, void *arg, long ms);

/* SIGSTOP, and SIGCONT; both return when the kernel says that it is so. */
void test_program_stop(struct test_program *p);
void test_program_cont(struct test_program *p);

/* SIGKILL, and reaps it. Harmless when it has ended. */
void test_program_kill(struct test_program *p);

/* Closes its stdin and waits for its end; its wait status, or -1 when it still runs after
 * test_ms(ms). */
int test_program_wait(struct test_program *p, long ms);

/* Kills it if need be and closes the pipes. Harmless on a zeroed struct. */
void test_program_end(struct test_program *p);

/* The environment with `env` laid over it, for execve; freed with free(). The strings are
 * borrowed. */
char **test_environ(const char *const env[]);

/* A file of the build tree, as "tests/worker": $RLOCK_TEST_BUILDDIR, else where the
 * helpers were built. */
void test_build_path(char *path, size_t size, const char *name);

#endif
