/* SPDX-License-Identifier: Apache-2.0 */
/* State: lists that only grow, one for each kind of observation. */
#include "history.h"

#include "die.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_MAX = 256, SIZE_FIRST = 64 };

struct ask {
    bool known, out, dead;
    long long ticket;
    uint64_t last; /* if dead: the newest token at that time */
    long grants;
};

struct grant {
    long who;
    uint64_t token;
};

struct queue {
    uint64_t token;
    long *who;
    size_t count;
};

struct list {
    void *items;
    size_t count, size;
};

struct history {
    struct list asks;         /* struct ask, by who */
    struct list order;        /* long who, in the order of requests */
    struct list grants, seen; /* struct grant */
    struct list queues;       /* struct queue */
    char why[WHY_MAX];
};

/* Room for item `at`, zeroed when it is new. */
static void *item(struct list *list, size_t at, size_t width)
{
    if (at >= list->size) {
        size_t size = list->size ? 2 * list->size : SIZE_FIRST;
        if (size <= at)
            size = at + 1;
        list->items = realloc(list->items, size * width);
        if (!list->items)
            test_die("out of memory");
        memset((char *)list->items + list->size * width, 0, (size - list->size) * width);
        list->size = size;
    }
    if (at >= list->count)
        list->count = at + 1;
    return (char *)list->items + at * width;
}

#define APPEND(list, type) ((type *)item((list), (list)->count, sizeof(type)))

static struct ask *ask_of(struct history *h, long who)
{
    return item(&h->asks, (size_t)who, sizeof(struct ask));
}

struct history *history_new(void)
{
    struct history *h = calloc(1, sizeof(*h));
    if (!h)
        test_die("out of memory");
    return h;
}

void history_free(struct history *h)
{
    if (!h)
        return;
    struct queue *queues = h->queues.items;
    for (size_t i = 0; i < h->queues.count; i++)
        free(queues[i].who);
    free(h->asks.items);
    free(h->order.items);
    free(h->grants.items);
    free(h->seen.items);
    free(h->queues.items);
    free(h);
}

/* ---- what was seen */

void history_ask(struct history *h, long who, long long ticket)
{
    struct ask *ask = ask_of(h, who);
    ask->known = true;
    ask->ticket = ticket;
    *APPEND(&h->order, long) = who;
}

void history_grant(struct history *h, long who, uint64_t token)
{
    *APPEND(&h->grants, struct grant) = (struct grant){ who, token };
}

void history_seen(struct history *h, long who, uint64_t token)
{
    *APPEND(&h->seen, struct grant) = (struct grant){ who, token };
}

void history_out(struct history *h, long who)
{
    ask_of(h, who)->out = true;
}

void history_dead(struct history *h, long who, uint64_t last)
{
    struct ask *ask = ask_of(h, who);
    ask->dead = true;
    ask->last = last;
}

void history_queue(struct history *h, uint64_t token, const long who[], size_t count)
{
    struct queue *queue = APPEND(&h->queues, struct queue);
    queue->token = token;
    queue->count = count;
    queue->who = malloc((count + 1) * sizeof(long));
    if (!queue->who)
        test_die("out of memory");
    memcpy(queue->who, who, count * sizeof(long));
}

/* ---- judgement */

#define FAULT(h, ...) (snprintf((h)->why, WHY_MAX, __VA_ARGS__), (h)->why)

static const char *tickets_fault(struct history *h)
{
    const long *order = h->order.items;
    for (size_t i = 1; i < h->order.count; i++) {
        long long before = ask_of(h, order[i - 1])->ticket;
        long long ticket = ask_of(h, order[i])->ticket;
        if (ticket <= before)
            return FAULT(h, "tickets: %ld asked after %ld and has %lld, not above %lld",
                         order[i], order[i - 1], ticket, before);
    }
    return NULL;
}

static const char *tokens_fault(struct history *h)
{
    const struct grant *grants = h->grants.items;
    for (size_t i = 1; i < h->grants.count; i++)
        if (grants[i].token <= grants[i - 1].token)
            return FAULT(
                h, "tokens: %ld was granted %" PRIu64 " after %" PRIu64 " of %ld",
                grants[i].who, grants[i].token, grants[i - 1].token, grants[i - 1].who);
    return NULL;
}

static const char *one_grant_fault(struct history *h, const struct grant *grant)
{
    struct ask *ask = ask_of(h, grant->who);
    if (!ask->known)
        return FAULT(h, "unasked: %ld was granted and had not asked", grant->who);
    if (ask->out)
        return FAULT(h, "gone: %ld was granted and had timed out", grant->who);
    if (ask->dead && grant->token > ask->last)
        return FAULT(h, "dead: %ld was granted %" PRIu64 " and was dead at %" PRIu64,
                     grant->who, grant->token, ask->last);
    return NULL;
}

/* Checks each grant by itself, and that no token is given twice. */
static const char *grants_fault(struct history *h)
{
    const struct grant *grants = h->grants.items;
    for (size_t i = 0; i < h->asks.count; i++)
        ask_of(h, (long)i)->grants = 0;
    for (size_t i = 0; i < h->grants.count; i++) {
        const char *why = one_grant_fault(h, &grants[i]);
        if (why)
            return why;
        if (++ask_of(h, grants[i].who)->grants > 1)
            return FAULT(h, "twice: %ld was granted again", grants[i].who);
    }
    return NULL;
}

static const char *order_fault(struct history *h)
{
    const struct grant *grants = h->grants.items;
    for (size_t i = 1; i < h->grants.count; i++) {
        long who = grants[i].who, before = grants[i - 1].who;
        if (ask_of(h, who)->ticket <= ask_of(h, before)->ticket)
            return FAULT(h, "order: grant %zu was to %ld (ticket %lld), after %ld (%lld)",
                         i, who, ask_of(h, who)->ticket, before,
                         ask_of(h, before)->ticket);
    }
    return NULL;
}

static int by_token(const void *a, const void *b)
{
    const struct grant *x = a, *y = b;
    return (x->token > y->token) - (x->token < y->token);
}

static const struct grant *find_grant(const struct history *h, uint64_t token)
{
    if (h->grants.count == 0)
        return NULL;
    return bsearch(&(struct grant){ 0, token }, h->grants.items, h->grants.count,
                   sizeof(struct grant), by_token);
}

static const char *seen_fault(struct history *h)
{
    const struct grant *seen = h->seen.items;
    for (size_t i = 0; i < h->seen.count; i++) {
        const struct grant *said = find_grant(h, seen[i].token);
        if (said && said->who != seen[i].who)
            return FAULT(h, "seen: %" PRIu64 " was %ld's at the server, and %ld says so",
                         seen[i].token, seen[i].who, said->who);
        /* a request that timed out meanwhile releases its grant, and may be seen with
         * it */
        if (!said && ask_of(h, seen[i].who)->dead) {
            const char *why = one_grant_fault(h, &seen[i]);
            if (why)
                return why;
        }
    }
    return NULL;
}

static const char *forgotten_fault(struct history *h)
{
    for (size_t i = 0; i < h->asks.count; i++) {
        const struct ask *ask = ask_of(h, (long)i);
        if (ask->known && !ask->out && !ask->dead && ask->grants == 0)
            return FAULT(h, "forgotten: %zu (ticket %lld) was never granted", i,
                         ask->ticket);
    }
    return NULL;
}

const char *history_fault(struct history *h)
{
    const char *(*const rules[])(struct history *) = { tickets_fault, tokens_fault,
                                                       grants_fault,  order_fault,
                                                       seen_fault,    forgotten_fault };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        const char *why = rules[i](h);
        if (why)
            return why;
    }
    return NULL;
}

static const char *one_queue_fault(struct history *h, const struct queue *queue)
{
    const struct grant *grants = h->grants.items;
    const struct grant *at = find_grant(h, queue->token);
    if (!at)
        return FAULT(h, "unknown: nobody says that %" PRIu64 " was granted",
                     queue->token);
    size_t next = (size_t)(at - grants) + 1;
    for (size_t i = 0; i < queue->count; i++, next++) {
        if (next == h->grants.count)
            return FAULT(h, "forgotten: %ld waited behind %" PRIu64, queue->who[i],
                         queue->token);
        if (grants[next].who != queue->who[i])
            return FAULT(h,
                         "overtaken: %ld was place %zu behind %" PRIu64
                         ", and %ld was granted in its stead",
                         queue->who[i], i + 1, queue->token, grants[next].who);
    }
    return NULL;
}

const char *history_queue_fault(struct history *h)
{
    const struct queue *queues = h->queues.items;
    const char *why = tokens_fault(h);
    for (size_t i = 0; i < h->queues.count && !why; i++)
        why = one_queue_fault(h, &queues[i]);
    return why;
}
