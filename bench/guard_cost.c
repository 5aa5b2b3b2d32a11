/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the crash guard adds to lock and unlock of a lock that nobody else wants.
 *
 * One thread has a client with the guard on and two clients with it off. They take turns
 * in short blocks, so they have the same processors, the same server and the same noise,
 * which two processes would not have. Each round is a palindrome (off, on, again, again,
 * on, off), so that a drift hits all alike, and begins with another client each time. A
 * ratio is taken within each round. The ratio of the two clients without a guard is the
 * noise of the other ratio.
 */
#include "burden.h"

#include "bench.h"
#include "guarded.h"
#include "sample.h"

#include <stdlib.h>
#include <time.h>

enum {
    OFF,
    ON,
    AGAIN,
    SIDES,
    ROUNDS = 3000,
    QUICK_ROUNDS = 600,
    PAIRS = 25,        /* of a block, 2 ms or so */
    KEPT_PAIRS = 4000, /* 0.3 ms, so that most blocks are not interrupted */
    WARM_UP_ROUNDS = 3,
    KEEP_MS = 60000
};

static const char *const labels[SIDES] = {
    [OFF] = "guard off", [ON] = "guard on", [AGAIN] = "off, again"
};

struct setting {
    const char *scenario, *target;
    unsigned pairs; /* of a block */
    bool kept, robust;
};

struct side {
    rlock_client_t *client;
    rlock_mutex_t mutex;
    double time[ROUNDS], cpu[ROUNDS]; /* ns a pair */
};

static int64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* All names have the same length. */
static void open_side(struct side *side, int which, const struct setting *setting)
{
    char name[] = "bench-guard-0";
    rlock_mutexattr_t attr;

    name[sizeof(name) - 2] = (char)('0' + which);
    side->client = client_open(which == ON);
    check(rlock_mutexattr_init(&attr), "rlock_mutexattr_init");
    check(rlock_mutexattr_setclient(&attr, side->client), "rlock_mutexattr_setclient");
    if (setting->kept)
        check(rlock_mutexattr_setretain(&attr, KEEP_MS), "rlock_mutexattr_setretain");
    if (setting->robust)
        check(rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST), "setrobust");
    check(rlock_mutex_init(&side->mutex, &attr, name), "rlock_mutex_init");
    check(rlock_mutexattr_destroy(&attr), "rlock_mutexattr_destroy");
}

static void close_side(struct side *side)
{
    check(rlock_mutex_destroy(&side->mutex), "rlock_mutex_destroy");
    check(rlock_client_close(side->client), "rlock_client_close");
}

static void run_block(struct side *side, unsigned pairs, double *time, double *cpu)
{
    rlock_mutex_t *mutex = &side->mutex;
    int64_t cpu_before = cpu_ns(), before = now_ns();

    for (unsigned i = 0; i < pairs; i++) {
        int rc = rlock_mutex_lock(mutex);
        if (rc == 0)
            rc = rlock_mutex_unlock(mutex);
        if (rc != 0)
            check(rc, "a pair");
    }
    *time += (double)(now_ns() - before) / pairs / 2;
    *cpu += (double)(cpu_ns() - cpu_before) / pairs / 2;
}

static void run_round(struct side *sides, unsigned pairs, size_t round)
{
    double time[SIDES] = { 0 }, cpu[SIDES] = { 0 };

    for (size_t turn = 0; turn < 2 * SIDES; turn++) {
        size_t step = turn < SIDES ? turn : 2 * SIDES - 1 - turn;
        size_t who = (round + step) % SIDES;
        run_block(&sides[who], pairs, &time[who], &cpu[who]);
    }
    for (int i = 0; i < SIDES; i++) {
        sides[i].time[round] = time[i];
        sides[i].cpu[round] = cpu[i];
    }
}

/* ---- the figures */

static void sorted_copy(double *copy, const double *values, const double *by,
                        size_t rounds)
{
    for (size_t i = 0; i < rounds; i++)
        copy[i] = by ? values[i] / by[i] : values[i];
    sample_sort(copy, rounds);
}

static void print_times(FILE *table, const struct side *side, double unit, size_t rounds)
{
    double values[ROUNDS];

    sorted_copy(values, side->time, NULL, rounds);
    fprintf(table, " %8.2f %8.2f %8.2f", sample_quantile(values, rounds, 0.5) / unit,
            sample_quantile(values, rounds, 0.25) / unit,
            sample_quantile(values, rounds, 0.75) / unit);
    sorted_copy(values, side->cpu, NULL, rounds);
    fprintf(table, " %8.2f", sample_quantile(values, rounds, 0.5) / unit);
}

static void print_ratios(FILE *table, const struct side *side, const struct side *base,
                         size_t rounds)
{
    double values[ROUNDS], low, high;

    sorted_copy(values, side->time, base->time, rounds);
    sample_median_bounds(values, rounds, &low, &high);
    fprintf(table, "  %.3f (%.3f-%.3f) %.3f-%.3f", sample_quantile(values, rounds, 0.5),
            low, high, sample_quantile(values, rounds, 0.25),
            sample_quantile(values, rounds, 0.75));
    sorted_copy(values, side->cpu, base->cpu, rounds);
    sample_median_bounds(values, rounds, &low, &high);
    fprintf(table, "  %.3f (%.3f-%.3f)", sample_quantile(values, rounds, 0.5), low, high);
}

static void print_head(FILE *table, const char *what, size_t rounds)
{
    fprintf(table,
            "\n%s, %zu rounds; of the ratios the median, in brackets where it is with "
            "95 %%, quartiles\n%-22s %-10s %8s %8s %8s %8s  %-31s  %-19s  %s\n",
            what, rounds, "scenario", "of", "median", "quart. 1", "quart. 3", "cpu",
            "ratio of time", "ratio of cpu", "target");
}

static void measure(FILE *table, const struct setting *setting, size_t rounds)
{
    static struct side sides[SIDES];
    double unit = setting->kept ? 1 : 1e3;

    for (int i = 0; i < SIDES; i++)
        open_side(&sides[i], i, setting);
    for (size_t i = 0; i < WARM_UP_ROUNDS; i++)
        run_round(sides, setting->pairs, i);
    for (size_t i = 0; i < rounds; i++)
        run_round(sides, setting->pairs, i);
    for (int i = 0; i < SIDES; i++) {
        fprintf(table, "%-22s %-10s", i == 0 ? setting->scenario : "", labels[i]);
        print_times(table, &sides[i], unit, rounds);
        if (i != OFF)
            print_ratios(table, &sides[i], &sides[OFF], rounds);
        fprintf(table, "  %s\n", i == ON && setting->target ? setting->target : "");
        close_side(&sides[i]);
    }
    fflush(table);
}

void run_guard_pair(FILE *table, bool quick)
{
    static const struct setting pair = { .scenario = "uncontended, us/pair",
                                         .target = "<= 1.02",
                                         .pairs = PAIRS };
    size_t rounds = quick ? QUICK_ROUNDS : ROUNDS;

    if (!guard_is_possible(table, "guard_pair"))
        return;
    print_head(table, "a pair with the crash guard", rounds);
    measure(table, &pair, rounds);
}

void run_guard_kept(FILE *table, bool quick)
{
    static const struct setting kept[] = {
        { .scenario = "kept, ns/pair", .pairs = KEPT_PAIRS, .kept = true },
        { .scenario = "kept, robust, ns/pair",
          .pairs = KEPT_PAIRS,
          .kept = true,
          .robust = true },
    };
    size_t rounds = quick ? QUICK_ROUNDS : ROUNDS;

    if (!guard_is_possible(table, "guard_kept"))
        return;
    print_head(table, "a pair of a kept mutex with the crash guard", rounds);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        measure(table, &kept[i], rounds);
}
