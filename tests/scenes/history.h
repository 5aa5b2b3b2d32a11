/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records what happened to the waiters of one fair lock and judges whether it was fair
 * (L5). The test reports what it saw. `who` is a small number that the test gives to each
 * request, or to each waiter if waiters request again and again. Thread: one at a time.
 */
#ifndef TEST_HISTORY_H
#define TEST_HISTORY_H

#include <stddef.h>
#include <stdint.h>

struct history;

struct history *history_new(void);
/* Does nothing with NULL. */
void history_free(struct history *h);

/* ---- the record */

/* A request was queued with this ticket. Report requests in their order; each has to be
 * queued before the next one is sent. */
void history_ask(struct history *h, long who, long long ticket);
/* A holder reported its grant, before its release. */
void history_grant(struct history *h, long who, uint64_t token);
/* This holder was seen at the server. */
void history_seen(struct history *h, long who, uint64_t token);
/* A request ended without the lock. */
void history_out(struct history *h, long who);
/* The server knew that the waiter is dead when `last` was the newest token. */
void history_dead(struct history *h, long who, uint64_t last);
/* During the grant with this token, these waited in this order. */
void history_queue(struct history *h, uint64_t token, const long who[], size_t count);

/* ---- the verdict: NULL, or the first broken rule and who broke it, valid until the next
 * call */

/* For requests that each have their own number:
 *   tickets grow from request to request;
 *   tokens grow from grant to grant;
 *   only a request is granted, and only once;
 *   grants are in the order of tickets;
 *   a request that ended without the lock, or whose waiter was dead, is not granted;
 *   the holder seen at the server is the one that reported its grant;
 *   all others are granted. */
const char *history_fault(struct history *h);

/* For waiters that request again and again: tokens grow from grant to grant; and the
 * grants after a queue was seen go to its waiters in its order, so that no later waiter
 * overtakes one of them. */
const char *history_queue_fault(struct history *h);

#endif
