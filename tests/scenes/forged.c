/* SPDX-License-Identifier: Apache-2.0 */
/* See forged.h. */
#include "forged.h"

#include "die.h"

#include <rlock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPS_MAX = 512, ENTRIES_MAX = 512, FAULTS_MAX = 16 };
#define NS_PER_MS 1e6
#define START_NS INT64_C(5000000000000)
#define SERVER_MS UINT64_C(1700000000000) /* at CLOCK_BOOTTIME 0 */

struct nem_round forged;
struct nem_verdict verdict;
static struct nem_op ops[OPS_MAX];
static struct nem_entry entries[ENTRIES_MAX], sorted[ENTRIES_MAX];
static struct nem_fault faults[FAULTS_MAX];
static struct nem_ledger ledger;
static uint16_t lives[FORGED_PROCESSES + 1];
static double now_at;
static uint64_t transactions;
static uint64_t given_tokens[NEM_LOCKS_MAX]; /* per lock: tokens granted before the first
                                                judgement */
static bool was_judged;
static char *text;

int64_t at_ms(double ms)
{
    return START_NS + (int64_t)(ms * NS_PER_MS);
}

uint64_t server_at(double ms)
{
    return SERVER_MS + (uint64_t)(at_ms(ms) / (int64_t)NS_PER_MS);
}

void forged_open(void)
{
    memset(&ledger, 0, sizeof(ledger));
    transactions = 0;
    was_judged = false;
    forged = (struct nem_round){ .processes = FORGED_PROCESSES,
                                 .threads = 2,
                                 .locks = 9,
                                 .lease_ms = LEASE,
                                 .presence_ms = PRESENCE,
                                 .commandtimeout_ms = TIMEOUT,
                                 .started = at_ms(0),
                                 .calm = at_ms(CALM),
                                 .ended = at_ms(ENDED),
                                 .patience_ms = PATIENCE,
                                 .slack_ms = SLACK,
                                 .ops = ops,
                                 .faults = faults,
                                 .ledger = &ledger };
    for (int p = 1; p <= FORGED_PROCESSES; p++) {
        lives[p] = 0;
        restarts(p, 0);
    }
}

void forged_close(void)
{
    free(text);
    text = NULL;
}

TCase *forged_group(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, forged_open, forged_close);
    suite_add_tcase(suite, tcase);
    return tcase;
}

/* ---- records */

struct nem_op *record(int who, double at, unsigned what, unsigned call, unsigned lock)
{
    if (forged.op_count == OPS_MAX)
        test_die("too many records");
    struct nem_op *op = &ops[forged.op_count++];
    *op = (struct nem_op){ .at = at_ms(at),
                           .process = (uint16_t)(who / 10),
                           .life = lives[who / 10],
                           .thread = (uint16_t)(who % 10),
                           .lock = (uint16_t)lock,
                           .what = (uint8_t)what,
                           .call = (uint8_t)call };
    return op;
}

struct nem_op *invoke(int who, double at, unsigned call, unsigned lock)
{
    struct nem_op *op = record(who, at, NEM_INVOKE, call, lock);
    op->reading = call >= NEM_RDLOCK && call <= NEM_TRYRDLOCK;
    return op;
}

struct nem_op *returns(int who, double at, unsigned call, unsigned lock, int code)
{
    struct nem_op *op = record(who, at, NEM_RETURN, call, lock);
    op->reading = call >= NEM_RDLOCK && call <= NEM_TRYRDLOCK;
    op->code = code;
    return op;
}

static void name(struct nem_op *op, const char *id, double end)
{
    snprintf(op->id, sizeof(op->id), "%s", id);
    op->end = end != 0 ? at_ms(end) : 0;
}

struct nem_op *takes(int who, unsigned lock, const char *id, double from, double at,
                     double end)
{
    bool reading = strstr(id, ":r") || strstr(id, ":R");
    unsigned call = reading ? NEM_RDLOCK : NEM_LOCK;
    invoke(who, from, call, lock);
    struct nem_op *op = returns(who, at, call, lock, 0);
    op->levels = 1;
    name(op, id, end);
    return op;
}

struct nem_op *checks(int who, unsigned lock, const char *id, double at, double end,
                      int code)
{
    struct nem_op *op = record(who, at, NEM_CHECK, NEM_NO_CALL, lock);
    op->code = code;
    name(op, id, end);
    return op;
}

struct nem_op *unlocks(int who, unsigned lock, const char *id, double from, double to,
                       double end, int code)
{
    name(invoke(who, from, NEM_UNLOCK, lock), id, end);
    return returns(who, to, NEM_UNLOCK, lock, code);
}

struct nem_op *event_lost(int who, unsigned lock, double at)
{
    struct nem_op *op = record(who, at, NEM_EVENT, NEM_NO_CALL, lock);
    op->levels = (uint8_t)op->thread;
    op->thread = NEM_EVENTS_THREAD;
    op->code = RLOCK_EVENT_LOST;
    return op;
}

void restarts(int process, double at)
{
    lives[process]++;
    struct nem_op *op = record(process * 10 + 1, at, NEM_STARTED, NEM_NO_CALL, 0);
    snprintf(op->id, sizeof(op->id), "p%d%s", process, lives[process] > 1 ? "b" : "");
}

void has_guard(int process)
{
    for (size_t i = 0; i < forged.op_count; i++)
        if (ops[i].process == process && ops[i].what == NEM_STARTED)
            ops[i].code = 1;
}

void fault(int kind, unsigned target, unsigned lock, double begin, double end)
{
    if (forged.fault_count == FAULTS_MAX)
        test_die("too many faults");
    faults[forged.fault_count++] = (struct nem_fault){ .begin = at_ms(begin),
                                                       .end = at_ms(end),
                                                       .kind = kind,
                                                       .target = (uint16_t)target,
                                                       .lock = (uint16_t)lock };
}

struct nem_fault *last_fault(void)
{
    return &faults[forged.fault_count - 1];
}

void loses(int kind, unsigned lock, const char *key, double at)
{
    fault(kind, NEM_ALL, lock, at - EXACT, at + EXACT);
    snprintf(last_fault()->what, sizeof(last_fault()->what), "%s", key);
}

/* ---- the ledger */

void transaction(double at)
{
    now_at = at;
    transactions++;
}

struct nem_entry *entry(enum nem_change change, unsigned lock, const char *id,
                        uint64_t value)
{
    if (ledger.count == ENTRIES_MAX)
        test_die("too many entries");
    struct nem_entry *e = &entries[ledger.count++];
    *e = (struct nem_entry){ .transaction = transactions,
                             .after = at_ms(now_at - EXACT),
                             .before = at_ms(now_at + EXACT),
                             .value = value,
                             .change = change,
                             .lock = (uint16_t)lock };
    snprintf(e->id, sizeof(e->id), "%s", id);
    return e;
}

/* Removes the id from the queue and returns the ticket that it had. */
static uint64_t unqueue(unsigned lock, const char *id)
{
    for (size_t i = ledger.count; i-- > 0;) {
        struct nem_entry *e = &entries[i];
        if (e->lock != lock || strcmp(e->id, id) != 0)
            continue;
        if (e->change == NEM_QUEUED) {
            uint64_t ticket = e->value;
            entry(NEM_UNQUEUED, lock, id, ticket)->reading = e->reading;
            return ticket;
        }
        if (e->change == NEM_UNQUEUED)
            return 0;
    }
    return 0;
}

static struct nem_entry *gives(enum nem_change change, unsigned lock, const char *id,
                               double end, bool opens)
{
    uint64_t ticket = unqueue(lock, id);
    size_t at = ledger.count;
    entry(change, lock, id, opens ? server_at(now_at) * 1000 : 0)->ticket = ticket;
    entry(NEM_LEASE, lock, id, server_at(end))->reading = change == NEM_READ;
    entries[at].reading = change == NEM_READ;
    return &entries[at];
}

struct nem_entry *grants(unsigned lock, const char *id, double end)
{
    return gives(NEM_GRANTED, lock, id, end, true);
}

struct nem_entry *reads(unsigned lock, const char *id, double end, bool opens)
{
    return gives(NEM_READ, lock, id, end, opens);
}

void leaves(unsigned lock, const char *id, bool frees)
{
    entry(NEM_LEFT, lock, id, 0);
    if (frees)
        entry(NEM_FREED, lock, "", 0);
}

void queues(unsigned lock, const char *id, bool reading)
{
    entry(NEM_QUEUED, lock, id, server_at(now_at) * 1000)->reading = reading;
}

void present(unsigned lock, const char *client, double until)
{
    entry(NEM_PRESENT, lock, client, server_at(until));
}

void buries(unsigned lock, const char *client)
{
    entry(NEM_MARKED, lock, client, server_at(now_at + LEASE));
    present(lock, client, -1e9);
}

void holds(int who, unsigned lock, const char *id, double from, double to)
{
    double end = from + LEASE;
    takes(who, lock, id, from - 2, from + 2, end - 15);
    checks(who, lock, id, (from + to) / 2, end - 15, 1);
    unlocks(who, lock, id, to - 2, to + 2, end - 15, 0);
    transaction(from);
    if (strstr(id, ":r"))
        reads(lock, id, end, true);
    else
        grants(lock, id, end);
    transaction(to);
    leaves(lock, id, true);
}

/* ---- judgement */

static int by_time(const void *a, const void *b)
{
    const struct nem_entry *x = a, *y = b;
    if (x->after != y->after)
        return x->after < y->after ? -1 : 1;
    if (x->transaction != y->transaction)
        return x->transaction < y->transaction ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* A test reports transactions in any order; here they are numbered by time. */
static void sort_ledger(void)
{
    for (size_t i = 0; i < ledger.count; i++)
        entries[i].number = i;
    memcpy(sorted, entries, sizeof(sorted));
    qsort(sorted, ledger.count, sizeof(*sorted), by_time);
    uint64_t number = 0, last = 0;
    for (size_t i = 0; i < ledger.count; i++) {
        number += i == 0 || sorted[i].transaction != last;
        last = sorted[i].transaction;
        sorted[i].transaction = number;
        sorted[i].number = i;
    }
    ledger.entries = sorted;
}

void judge(void)
{
    size_t len;
    free(text);
    FILE *out = open_memstream(&text, &len);
    if (!out)
        test_die("out of memory");
    sort_ledger();
    if (was_judged)
        memcpy(forged.last_token, given_tokens, sizeof(given_tokens));
    memcpy(given_tokens, forged.last_token, sizeof(given_tokens));
    was_judged = true;
    nem_judge(&forged, &verdict, out, 10);
    fclose(out);
    fputs(text, stderr);
}

const char *forged_text(void)
{
    return text;
}
