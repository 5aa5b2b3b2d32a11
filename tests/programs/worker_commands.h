/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the two halves of the worker: worker.c reads lines and owns the
 * threads, worker_commands.c calls the library. */
#ifndef TEST_WORKER_COMMANDS_H
#define TEST_WORKER_COMMANDS_H

#include <stdbool.h>

enum { LINE_MAX_LEN = 1024, WORDS_MAX = 16, TAG_MAX = 32 };

/* A line cut at its blanks. */
struct words {
    char text[LINE_MAX_LEN];
    char *word[WORDS_MAX];
    int count;
};
void split(struct words *w, const char *line);
/* The i-th word, "" when there is none. */
const char *word(const struct words *w, int i);

/* Writes one line to stdout, whole, from any thread. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
/* Writes an answer of at most LINE_MAX_LEN. */
__attribute__((format(printf, 2, 3))) void put(char *answer, const char *format, ...);

/* Runs a command in the calling thread. False: there is no such command. */
bool run_command(const char *line, char *answer);

#endif
