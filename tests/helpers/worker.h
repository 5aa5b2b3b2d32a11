/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the program tests/worker, a user of the library that obeys commands, in its own
 * process. Its commands are listed at the top of tests/programs/worker.c. Thread: one at
 * a time; start it from a main thread. */
#ifndef TEST_WORKER_H
#define TEST_WORKER_H

#include "program.h"

enum { WORKER_LINE_MAX = 1024, WORKER_NEWS_MAX = 32 };

struct worker {
    struct test_program program;
    char answer[WORKER_LINE_MAX];
    char line[WORKER_LINE_MAX];                  /* what worker_news returned */
    char news[WORKER_NEWS_MAX][WORKER_LINE_MAX]; /* "event ..." and "done ...", unread */
    size_t news_count;
};

/* Starts it and opens a client at `url` (NULL: none yet). */
void worker_start(struct worker *w, const char *url);
/* The same with variables for its environment, for instance "LD_PRELOAD=...". */
void worker_start_env(struct worker *w, const char *url, const char *const env[]);
/* Kills it if it runs. */
void worker_end(struct worker *w);

/* Sends a command and returns its answer, for instance "ok", "EBUSY" or "ok 17", valid
 * until the next call. NULL: none within test_ms(ms), or the worker is dead. */
const char *worker_ask(struct worker *w, const char *command, long ms);
/* Whether the answer, which must come within 20 s, begins with `wanted`. */
bool worker_says(struct worker *w, const char *command, const char *wanted);
/* The number in an answer of "ok <number>"; aborts on other answers. */
long long worker_number(struct worker *w, const char *command);
/* Sends a command without waiting for its answer, for a kill in its middle. The next
 * answer that worker_ask sees may be this command's. */
void worker_send(struct worker *w, const char *command);

/* The next line of news that begins with `prefix` ("done t1", "event LOST"), whole, valid
 * until the next call; other news stay for later calls. NULL: none within test_ms(ms). */
const char *worker_news(struct worker *w, const char *prefix, long ms);

void worker_kill(struct worker *w); /* SIGKILL, and reaps */
void worker_stop(struct worker *w); /* SIGSTOP, and waits until it has stopped */
void worker_cont(struct worker *w);

#endif
