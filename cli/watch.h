/* SPDX-License-Identifier: Apache-2.0 */
/* The two faces of rlock watch. Thread: main only. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "look.h"

/* What is watched, and how often. */
struct watch {
    rlock_client_t *client;
    const char *pattern; /* NULL: all */
    long interval_ms;
};

/* One line for each change; comes back with an exit code when the server refuses, or
 * nobody reads any more. */
int watch_plain(const struct watch *watch);

/* False, and nothing was done: not built with ncurses, or this terminal cannot show it.
 * Else *ret_code is the exit code; ends the program by itself where a signal ended the
 * view, or a look at the server is still under way. */
bool watch_screen(const struct watch *watch, int *ret_code);

#endif
