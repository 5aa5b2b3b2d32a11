/* SPDX-License-Identifier: Apache-2.0 */
/* State: the events so far, by their places in the log, and the looks. */
#include "rwhistory.h"

#include "die.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_MAX = 256, SIZE_FIRST = 1024, WHO_MAX = RWHISTORY_WHO_MAX };

struct seen {
    enum rwlog_kind kind;
    long who;
    uint64_t token;
};

struct rwhistory {
    struct seen *events;
    size_t count, size;
    struct rwhistory_look *looks;
    size_t look_count, look_size;
    char why[WHY_MAX];
};

struct rwhistory *rwhistory_new(void)
{
    struct rwhistory *h = calloc(1, sizeof(*h));
    if (!h)
        test_die("out of memory");
    return h;
}

void rwhistory_free(struct rwhistory *h)
{
    if (!h)
        return;
    free(h->events);
    free(h->looks);
    free(h);
}

/* Room for one more of `count`. */
static void *grow(void *items, size_t count, size_t *size, size_t width)
{
    if (count < *size)
        return items;
    *size = *size ? 2 * *size : SIZE_FIRST;
    items = realloc(items, *size * width);
    if (!items)
        test_die("out of memory");
    return items;
}

/* ---- what was seen */

void rwhistory_add(struct rwhistory *h, enum rwlog_kind kind, long who, uint64_t token)
{
    if (who < 0 || who >= WHO_MAX)
        test_die("a history has no place for %ld", who);
    h->events = grow(h->events, h->count, &h->size, sizeof(*h->events));
    h->events[h->count++] = (struct seen){ kind, who, token };
}

static void read_log(struct rwhistory *h, struct rwlog *log, bool all)
{
    uint64_t end = atomic_load(&log->next);
    if (end > RWLOG_MAX)
        test_die("the log is full");
    while (h->count < end) {
        const struct rwlog_event *e = &log->events[h->count];
        uint32_t kind = atomic_load(&e->kind);
        if (kind == RWLOG_NOTHING && !all)
            break;
        rwhistory_add(h, kind, (long)e->who, e->token);
    }
}

void rwhistory_read(struct rwhistory *h, struct rwlog *log)
{
    read_log(h, log, false);
}

void rwhistory_read_all(struct rwhistory *h, struct rwlog *log)
{
    read_log(h, log, true);
}

void rwhistory_look(struct rwhistory *h, const struct rwhistory_look *look)
{
    h->looks = grow(h->looks, h->look_count, &h->look_size, sizeof(*h->looks));
    h->looks[h->look_count++] = *look;
}

/* ---- exclusion and tokens */

struct place {
    bool asks, reads, writes;
};

struct state {
    struct place places[WHO_MAX];
    long readers, writers, most_readers;
    long writer;                    /* the last one that entered */
    bool downgraded;                /* whether that writer has downgraded */
    uint64_t newest, newest_writer; /* tokens */
};

#define FAULT(h, ...) (snprintf((h)->why, WHY_MAX, __VA_ARGS__), (h)->why)

static const char *unasked_fault(struct rwhistory *h, size_t at, const struct place *p)
{
    const struct seen *e = &h->events[at];
    bool inside = p->reads || p->writes;
    switch (e->kind) {
    case RWLOG_READS:
    case RWLOG_WRITES:
        if (!p->asks || inside)
            return FAULT(h, "unasked: %ld entered at %zu", e->who, at);
        return NULL;
    case RWLOG_DOWNGRADES:
        return p->writes ? NULL : FAULT(h, "unasked: %ld downgraded at %zu", e->who, at);
    case RWLOG_LEAVES:
        return inside ? NULL : FAULT(h, "unasked: %ld left at %zu", e->who, at);
    default:
        return NULL;
    }
}

static void leave(struct state *s, struct place *p)
{
    s->readers -= p->reads;
    s->writers -= p->writes;
    memset(p, 0, sizeof(*p));
}

static const char *enter_fault(struct rwhistory *h, size_t at, struct state *s)
{
    const struct seen *e = &h->events[at];
    bool writes = e->kind == RWLOG_WRITES;
    if (s->writers > 0)
        return FAULT(h, "overlap: %ld %s at %zu while %ld wrote", e->who,
                     writes ? "wrote" : "read", at, s->writer);
    if (writes && s->readers > 0)
        return FAULT(h, "overlap: %ld wrote at %zu while %ld read", e->who, at,
                     s->readers);
    bool joins = s->downgraded && e->token == s->newest_writer;
    if (e->token <= (writes ? s->newest : s->newest_writer) && (writes || !joins))
        return FAULT(h,
                     "tokens: %ld %s at %zu with %" PRIu64 " after %" PRIu64
                     " and, of a writer, %" PRIu64,
                     e->who, writes ? "wrote" : "read", at, e->token, s->newest,
                     s->newest_writer);
    return NULL;
}

static void enter(struct state *s, const struct seen *e)
{
    struct place *p = &s->places[e->who];
    p->asks = false;
    p->writes = e->kind == RWLOG_WRITES;
    p->reads = !p->writes;
    s->readers += p->reads;
    s->writers += p->writes;
    if (p->writes) {
        s->writer = e->who;
        s->downgraded = false;
        s->newest_writer = e->token;
    }
    if (e->token > s->newest)
        s->newest = e->token;
    if (s->readers > s->most_readers)
        s->most_readers = s->readers;
}

/* Judges one more event. Returns the broken rule. */
static const char *step(struct rwhistory *h, size_t at, struct state *s)
{
    const struct seen *e = &h->events[at];
    struct place *p = &s->places[e->who];
    const char *why = unasked_fault(h, at, p);
    if (why)
        return why;
    switch (e->kind) {
    case RWLOG_ASKS:
        p->asks = true;
        break;
    case RWLOG_READS:
    case RWLOG_WRITES:
        why = enter_fault(h, at, s);
        enter(s, e);
        break;
    case RWLOG_DOWNGRADES:
        p->writes = false;
        p->reads = true;
        s->downgraded = true;
        s->writers--;
        s->readers++;
        break;
    case RWLOG_LEAVES:
    case RWLOG_OUT:
    case RWLOG_DEAD:
        leave(s, p);
        break;
    case RWLOG_NOTHING:
        break;
    }
    return why;
}

static const char *go_through(const struct rwhistory *h, struct state *s)
{
    memset(s, 0, sizeof(*s));
    for (size_t i = 0; i < h->count; i++) {
        const char *why = step((struct rwhistory *)(uintptr_t)h, i, s);
        if (why)
            return why;
    }
    return NULL;
}

const char *rwhistory_fault(const struct rwhistory *h)
{
    struct state s;
    return go_through(h, &s);
}

long rwhistory_most_readers(const struct rwhistory *h)
{
    struct state s;
    go_through(h, &s);
    return s.most_readers;
}

long rwhistory_count(const struct rwhistory *h, enum rwlog_kind kind, long from, long to)
{
    long count = 0;
    for (size_t i = 0; i < h->count; i++) {
        const struct seen *e = &h->events[i];
        count += e->kind == kind && e->who >= from && e->who < to;
    }
    return count;
}

size_t rwhistory_events(const struct rwhistory *h)
{
    return h->count;
}

/* ---- the bounds of W14 */

/* What became of the request that `who` was seen waiting with: the token that it got;
 * UINT64_MAX when it still waits. False: several requests of `who` may have been the one
 * seen, or the request failed. */
static bool outcome(const struct rwhistory *h, const struct rwhistory_look *look,
                    long who, uint64_t *ret_token)
{
    bool asks = false;
    if (look->till > h->count) /* the log is not read up to there */
        return false;
    for (size_t i = look->since; i-- > 0;) {
        if (h->events[i].who != who)
            continue;
        asks = h->events[i].kind == RWLOG_ASKS;
        break;
    }
    *ret_token = UINT64_MAX;
    for (size_t i = look->since; asks && i < h->count; i++) {
        const struct seen *e = &h->events[i];
        if (e->who != who)
            continue;
        if (e->kind != RWLOG_READS && e->kind != RWLOG_WRITES)
            return false;
        *ret_token = e->token;
        /* a request again before the end of the look: the look may have seen that one */
        for (i++; i < look->till && i < h->count; i++)
            if (h->events[i].who == who && h->events[i].kind == RWLOG_ASKS)
                return false;
        return true;
    }
    return asks;
}

/* The largest number of times that one thread began to read between the look and the
 * writer with this token; -1 if there is no writer. */
static long reads_past(const struct rwhistory *h, const struct rwhistory_look *look)
{
    long counts[WHO_MAX] = { 0 }, most = 0;
    uint64_t token;
    if (look->writer < 0 || !outcome(h, look, look->writer, &token))
        return -1;
    for (size_t i = look->till; i < h->count; i++) {
        const struct seen *e = &h->events[i];
        if (e->who == look->writer && e->kind == RWLOG_WRITES)
            break;
        /* compared by token: a reader before the writer may log its event late */
        if (e->kind == RWLOG_READS && e->token < token && ++counts[e->who] > most)
            most = counts[e->who];
    }
    return most;
}

/* The number of writers between the holder that was seen and the reader; -1 when it is
 * unknown. */
static long writes_past(const struct rwhistory *h, const struct rwhistory_look *look,
                        long reader)
{
    long count = 0;
    uint64_t token;
    if (look->token == 0 || !outcome(h, look, reader, &token))
        return -1;
    /* the holder may have logged its event before the look */
    for (size_t i = look->since; i < h->count; i++) {
        const struct seen *e = &h->events[i];
        if (e->who == reader && e->kind == RWLOG_READS)
            break;
        count += e->kind == RWLOG_WRITES && e->token > look->token && e->token <= token;
    }
    return count;
}

static long most_reads(const struct rwhistory *h, size_t *ret_look, long *ret_useful)
{
    long most = 0;
    *ret_useful = 0;
    for (size_t i = 0; i < h->look_count; i++) {
        long n = reads_past(h, &h->looks[i]);
        *ret_useful += n >= 0;
        if (n <= most)
            continue;
        most = n;
        *ret_look = i;
    }
    return most;
}

static long most_writes(const struct rwhistory *h, size_t *ret_look, long *ret_useful)
{
    long most = 0;
    *ret_useful = 0;
    for (size_t i = 0; i < h->look_count; i++) {
        for (size_t j = 0; j < h->looks[i].reader_count; j++) {
            long n = writes_past(h, &h->looks[i], h->looks[i].readers[j]);
            *ret_useful += n >= 0;
            if (n <= most)
                continue;
            most = n;
            *ret_look = i;
        }
    }
    return most;
}

const char *rwhistory_phase_fault(struct rwhistory *h)
{
    size_t at = 0;
    long useful, n = most_reads(h, &at, &useful);
    if (n > 1)
        return FAULT(h, "reads: a thread read %ld times past %ld, seen at %zu", n,
                     h->looks[at].writer, h->looks[at].till);
    n = most_writes(h, &at, &useful);
    if (n > 1)
        return FAULT(h, "writes: %ld wrote past a reader seen at %zu", n,
                     h->looks[at].till);
    return NULL;
}

long rwhistory_reads_past(struct rwhistory *h)
{
    size_t at;
    long useful;
    return most_reads(h, &at, &useful);
}

long rwhistory_writes_past(struct rwhistory *h)
{
    size_t at;
    long useful;
    return most_writes(h, &at, &useful);
}

long rwhistory_writers_seen(const struct rwhistory *h)
{
    size_t at;
    long useful;
    most_reads(h, &at, &useful);
    return useful;
}

long rwhistory_readers_seen(const struct rwhistory *h)
{
    size_t at;
    long useful;
    most_writes(h, &at, &useful);
    return useful;
}
