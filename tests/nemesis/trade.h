/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traders: threads of all processes that put items into buffers and take them out, and
 * wait for conditions meanwhile. Each change of a buffer comes with a signal to the other
 * side; so an item, or room, for which another thread sleeps is a signal that was lost.
 * What a trader that is killed owes to the others, the next life of its process makes
 * good: it begins with a broadcast. State: one for the process.
 */
#ifndef NEM_TRADE_H
#define NEM_TRADE_H

#include "man.h"

#include <rlock.h>

/* How many traders a process has for a number of buffers. */
static inline unsigned nem_traders(unsigned buffers)
{
    return 2 * buffers;
}

/* targets: all locks. Thread: the main thread. */
void nem_trade_start(struct nem_target *targets, unsigned buffers, unsigned think_us,
                     rlock_client_t *client);
void nem_trade_stop(void);
/* A round begins; its files are in `dir`. Thread: the main thread, while no trader
 * works. */
void nem_trade_begin(const char *dir);

/* The first thing that a trader does in a round. `trader` counts from 0. */
void nem_trade_open(struct nem_man *man, unsigned trader);
/* rest: the traders of this process are to come to an end. Set it before nem_trade_end.
 */
void nem_trade_once(struct nem_man *man, unsigned trader, const atomic_bool *rest);
/* Wakes the traders of this process, so that they look at `rest`. Thread: of `man`, who
 * is no trader. */
void nem_trade_end(struct nem_man *man);

#endif
