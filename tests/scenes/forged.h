/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forged rounds of the nemesis, for the tests of its judge: records, faults and a ledger.
 * A test reports them in any order. Times are ms since the start of the round. A thread
 * is named by process * 10 + thread; the client of process p is "p<p>", and its ids are
 * "p<p>:1:<n>:f300".
 */
#ifndef TEST_FORGED_H
#define TEST_FORGED_H

#include "judge.h"

#include <check.h>
#include <errno.h>

enum {
    MUTEX = 9, /* the first of its kind whose holds are not retained */
    FAIR = 1,
    RWLOCK = 2,
    FENCED = 12,
    FENCED_FAIR = 4,
    FENCED_RWLOCK = 5,
    ROBUST = 15,
    ROBUST_FAIR = 7,
    KEPT_ROBUST = 6,
    KEPT = 0,
    KEPT_RWLOCK = 8,
    KEPT_FENCED_RWLOCK = 14,
    FORGED_PROCESSES = 4,
    LEASE = 1000,
    PRESENCE = 300,
    TIMEOUT = 200,
    SLACK = 100,
    ROOM = PRESENCE + SLACK, /* how long the effects of a fault last */
    CALM = 6000,
    ENDED = 10000,
    PATIENCE = 2000,
    EXACT = 1 /* ms: the error of the ledger's times, in each direction */
};

extern struct nem_round forged;
extern struct nem_verdict verdict;

/* Checked fixture: a round in which the first life of each process began at 0, and
 * nothing else happened. */
void forged_open(void);
void forged_close(void);
/* Adds a test case with this fixture to the suite. */
TCase *forged_group(Suite *suite, const char *name);

int64_t at_ms(double ms); /* CLOCK_BOOTTIME */
uint64_t server_at(double ms);

/* ---- the workers' records; a test may change a returned record until the next call */

struct nem_op *record(int who, double at, unsigned what, unsigned call, unsigned lock);
struct nem_op *invoke(int who, double at, unsigned call, unsigned lock);
struct nem_op *returns(int who, double at, unsigned call, unsigned lock, int code);
/* A lock() from `from` to `at` that returned 0, with D at `end`. */
struct nem_op *takes(int who, unsigned lock, const char *id, double from, double at,
                     double end);
struct nem_op *checks(int who, unsigned lock, const char *id, double at, double end,
                      int code);
/* An unlock() of the last level. */
struct nem_op *unlocks(int who, unsigned lock, const char *id, double from, double to,
                       double end, int code);
struct nem_op *event_lost(int who, unsigned lock, double at);
/* The process's next life has begun. */
void restarts(int process, double at);
/* All lives of the process reported so far have the crash guard. */
void has_guard(int process);

void fault(int kind, unsigned target, unsigned lock, double begin, double end);
struct nem_fault *last_fault(void);
/* A key of the lock was deleted or evicted; "": the key never arrived. */
void loses(int kind, unsigned lock, const char *key, double at);

/* ---- what the server did */

/* The entries that follow belong to one transaction at that time. */
void transaction(double at);
struct nem_entry *entry(enum nem_change change, unsigned lock, const char *id,
                        uint64_t value);
/* GRANTED, with a lease until `end`; the ticket is the one that the id was queued
 * with. */
struct nem_entry *grants(unsigned lock, const char *id, double end);
/* READ; `opens`: it is the first of a reading. */
struct nem_entry *reads(unsigned lock, const char *id, double end, bool opens);
void leaves(unsigned lock, const char *id, bool frees);
void queues(unsigned lock, const char *id, bool reading);
void present(unsigned lock, const char *client, double until);
/* The client was recovered: writes its marker. Report the end of its holds and waits
 * first. */
void buries(unsigned lock, const char *client);

/* ---- both: a whole hold, granted at `from` and released at `to` */
void holds(int who, unsigned lock, const char *id, double from, double to);

/* ---- judgement */

/* May be called again after more reports. */
void judge(void);
#define BREAKS(rule, count)                                                              \
    do {                                                                                 \
        judge();                                                                         \
        ck_assert_uint_eq(verdict.violations[rule], count);                              \
    } while (0)
#define KEEPS(rule)                                                                      \
    do {                                                                                 \
        judge();                                                                         \
        ck_assert_uint_eq(verdict.violations[rule], 0);                                  \
        ck_assert_uint_eq(verdict.excused[rule], 0);                                     \
        ck_assert_uint_gt(verdict.judged[rule], 0);                                      \
    } while (0)
#define EXCUSES(rule, count)                                                             \
    do {                                                                                 \
        judge();                                                                         \
        ck_assert_uint_eq(verdict.violations[rule], 0);                                  \
        ck_assert_uint_eq(verdict.excused[rule], count);                                 \
    } while (0)
/* Asserts that the rule was not tried. */
#define LEAVES(rule)                                                                     \
    do {                                                                                 \
        judge();                                                                         \
        ck_assert_uint_eq(verdict.violations[rule], 0);                                  \
        ck_assert_uint_eq(verdict.judged[rule], 0);                                      \
    } while (0)
/* The text that the judge has printed. */
const char *forged_text(void);

#endif
