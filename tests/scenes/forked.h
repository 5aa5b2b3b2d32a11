/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forked children of a test, which use the library like their parent. A child runs a
 * body, which returns 0, or the line of the first condition that did not hold; the test
 * asserts the result. Children end with the process that started them. Thread: a test's
 * main thread, and the main thread of a child for its own children.
 */
#ifndef TEST_FORKED_H
#define TEST_FORKED_H

#include "suite.h"

#include <check.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* In a test: ends it as skipped where a child could not use the library. */
#define NEEDS_FORK(name)                                                                 \
    do {                                                                                 \
        if (!test_can_fork(name))                                                        \
            return;                                                                      \
    } while (0)

/* In a body: a condition that must hold. */
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

/* The same for a child that ends by exit(): Valgrind would report memory that threads of
 * the parent were using as lost. */
bool forked_can_exit(const char *test);
#define NEEDS_EXIT(name)                                                                 \
    do {                                                                                 \
        if (!forked_can_exit(name))                                                      \
            return;                                                                      \
    } while (0)

/* Call this in a child that was not started by a function below. */
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
    atomic_int line;    /* the result of the body; -1: it runs */
    atomic_int step;    /* parent and child wait for each other */
    char text[64];      /* free for the test; written before a step */
    atomic_int counter; /* free for the test */
};

/* Starts a child by fork(). */
void forked_start(struct forked *f, int (*body)(struct forked_report *report, void *arg),
                  void *arg, enum forked_end end);
/* Starts a child by another function, for instance _Fork(). */
void forked_start_by(struct forked *f, pid_t (*how)(void),
                     int (*body)(struct forked_report *report, void *arg), void *arg,
                     enum forked_end end);
/* Waits until the body has returned. Its result; -1: none within test_ms(ms). */
int forked_line(struct forked *f, long ms);
/* Waits until the child has reached this step, or a later one. */
bool forked_reaches(struct forked *f, int step, long ms);
/* In parent or child: sets the step; waits for the step that the other sets. */
void forked_step(struct forked_report *report, int step);
bool forked_wait_step(struct forked_report *report, int step);
/* Waits for the end of the child; kills it after test_ms(ms) and returns false. */
bool forked_ends(struct forked *f, long ms);
void forked_kill(struct forked *f);
/* Starts a child and waits for its end. The result of the body; -1: not in time. */
int forked(int (*body)(struct forked_report *report, void *arg), void *arg);
#define CHILD_IS_FINE(body, arg) ck_assert_int_eq(forked((body), (arg)), 0)

#endif
