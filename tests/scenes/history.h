/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened to the waiters of one fair lock, and whether it was fair (L5). A test
 * tells what it saw; `who` is its own small number for an ask (or, where each waiter asks
 * again and again, for a waiter). Thread: one at a time.
 */
#ifndef TEST_HISTORY_H
#define TEST_HISTORY_H

#include <stddef.h>
#include <stdint.h>

struct history;

struct history *history_new(void);
/* NULL is fine. */
void history_free(struct history *h);

/* ---- what was seen */

/* In the order asked, each known to be queued before the next one: with this ticket. */
void history_ask(struct history *h, long who, long long ticket);
/* In the order in which the holders said so, each before it gave the lock back. */
void history_grant(struct history *h, long who, uint64_t token);
/* The server was seen with this holder. */
void history_seen(struct history *h, long who, uint64_t token);
/* An ask that ended without the lock. */
void history_out(struct history *h, long who);
/* The server knew that the waiter is dead when `last` was the newest token. */
void history_dead(struct history *h, long who, uint64_t last);
/* While the grant with this token lasted, these waited in this order. */
void history_queue(struct history *h, uint64_t token, const long who[], size_t count);

/* ---- judgement: NULL, or the first rule that was broken and by whom, valid until the
 * next call */

/* Of asks that each have a number of their own:
 *   tickets grow from ask to ask;
 *   tokens grow from grant to grant;
 *   only who asked is granted, and only once;
 *   grants are in the order of tickets;
 *   who ended without the lock was not granted, nor was who was dead;
 *   what the server was seen to grant is what the holder says;
 *   everybody else is granted. */
const char *history_fault(struct history *h);

/* Of waiters that ask again and again: tokens grow from grant to grant; and after a queue
 * was seen, the next grants are to those in it, in its order: nobody who came later was
 * before one of them. */
const char *history_queue_fault(struct history *h);

#endif
