/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of a test, which use the library like their parent. A child runs a body, which
 * returns 0 or the line of the first thing that was not as it has to be; the test asserts
 * what came of it. Children end with the process that started them. Thread: a test's main
 * thread, and the main thread of a child for children of its own.
 */
#ifndef TEST_FORKED_H
#define TEST_FORKED_H

#include "suite.h"

#include <check.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* In a test: leaves it where it could not be. */
#define NEEDS_FORK(name)                                                                 \
    do {                                                                                 \
        if (!test_can_fork(name))                                                        \
            return;                                                                      \
    } while (0)

/* A body says so. */
#define MUST(condition)                                                                  \
    do {                                                                                 \
        if (!(condition))                                                                \
            return __LINE__;                                                             \
    } while (0)

#define NEEDS_FORK_AMID_THREADS(name)                                                    \
    do {                                                                                 \
        if (!test_can_fork_amid_threads(name))                                           \
            return;                                                                      \
    } while (0)

/* Likewise, where a child ends by exit() or the like, at which Valgrind would take for
 * lost what the parent's threads had in hand. */
bool forked_can_exit(const char *test);
#define NEEDS_EXIT(name)                                                                 \
    do {                                                                                 \
        if (!forked_can_exit(name))                                                      \
            return;                                                                      \
    } while (0)

/* In a child that was not started by a function below. */
void forked_is_child(void);

/* How a body of a child ends the child. */
enum forked_end {
    FORKED_VANISH, /* by exec, so that nobody looks for leaks in a copy of a memory whose
                      threads are not there */
    FORKED_EXIT,   /* exit(): the program's handlers, the library's, the checker's */
    FORKED_EXIT_NOW,
    FORKED_KILL,
    FORKED_THREAD /* pthread_exit() */
};

struct forked {
    pid_t pid;
    int status;
    struct forked_report *report; /* shared */
};
struct forked_report {
    atomic_int line;    /* -1: the body is under way */
    atomic_int step;    /* as parent and child agree */
    char text[64];      /* likewise; written before a step */
    atomic_int counter; /* likewise */
};

/* By fork(). */
void forked_start(struct forked *f, int (*body)(struct forked_report *report, void *arg),
                  void *arg, enum forked_end end);
/* By another function that does the same, as _Fork(). */
void forked_start_by(struct forked *f, pid_t (*how)(void),
                     int (*body)(struct forked_report *report, void *arg), void *arg,
                     enum forked_end end);
/* Until the body has returned: its line, -1: none within test_ms(ms). */
int forked_line(struct forked *f, long ms);
/* Until it says that it has come to this step, or further. */
bool forked_reaches(struct forked *f, int step, long ms);
/* In either: goes to a step, and waits for the other one's. */
void forked_step(struct forked_report *report, int step);
bool forked_wait_step(struct forked_report *report, int step);
/* Waits for its end; kills it if need be: false. */
bool forked_ends(struct forked *f, long ms);
void forked_kill(struct forked *f);
/* All of it: the line, or -1 if it did not end in time. */
int forked(int (*body)(struct forked_report *report, void *arg), void *arg);
#define CHILD_IS_FINE(body, arg) ck_assert_int_eq(forked((body), (arg)), 0)

#endif
