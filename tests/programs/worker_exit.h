/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's commands that end its process, as listed at the top of worker.c. */
#ifndef TEST_WORKER_EXIT_H
#define TEST_WORKER_EXIT_H

#include <stdbool.h>

/* Runs a command in the calling thread. False: there is no such command. */
bool run_exit_command(const char *line, char *answer);

/* For the event callback: calls exit() if "leave-at" has named this kind of event. */
void exit_at_event(const char *kind);

#endif
