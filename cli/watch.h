/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms of rlock watch. Thread: main only. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "look.h"

/* Which locks to watch, and at which interval. */
struct watch {
    rlock_client_t *client;
    const char *pattern; /* NULL: all */
    long interval_ms;
};

/* Prints one line for each change. Returns an exit code when the server refuses, or no
 * process reads stdout any more. */
int watch_plain(const struct watch *watch);

/* False, with nothing done: not built with ncurses, or the terminal cannot show it.
 * Else *ret_code is the exit code. Ends the program itself if a signal ended the view,
 * or a look at the server is still under way. */
bool watch_screen(const struct watch *watch, int *ret_code);

#endif
