/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of the library with the crash guard on or off, whatever $RLOCK_URL says of it.
 * Each function ends the process on failure. */
#ifndef BENCH_GUARDED_H
#define BENCH_GUARDED_H

#include <rlock.h>
#include <stdbool.h>
#include <stdio.h>

/* `what` is the function that returned the code. With 0, does nothing. */
void check(int rc, const char *what);

/* Whether there is a directory for the guard; if not, a line says so for this scenario.
 */
bool guard_is_possible(FILE *table, const char *word);

/* A connected client. With the guard on it must have a live file of its own. */
rlock_client_t *client_open(bool guard);

#endif
