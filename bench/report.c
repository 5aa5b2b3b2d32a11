/* SPDX-License-Identifier: Apache-2.0 */
/* See report.h. No state. A ratio is taken in each round, between measurements that
 * follow each other, before the median is taken over the rounds. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

struct spread {
    double median, min, max;
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct spread spread_of(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    double median =
        count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    return (struct spread){ median, values[0], values[count - 1] };
}

/* ---- figures of one result */

static double pairs_of(const struct result *r)
{
    return r->pairs > 0 ? (double)r->pairs : 1;
}

static double rate(const struct result *r)
{
    return (double)r->pairs / r->seconds;
}

static double us_per_pair(const struct result *r)
{
    return r->seconds * 1e6 / pairs_of(r);
}

static double ms_per_pair(const struct result *r)
{
    return r->seconds * 1e3 / pairs_of(r);
}

static double ns_per_pair(const struct result *r)
{
    return r->seconds * 1e9 / pairs_of(r);
}

static double luck(const struct result *r)
{
    return (double)r->luckiest / (r->unluckiest > 0 ? (double)r->unluckiest : 0.5);
}

static double cpu_us(const struct result *r)
{
    return r->cpu_ns / 1e3 / pairs_of(r);
}

static double switches(const struct result *r)
{
    return r->switches / pairs_of(r);
}

static double tail(const struct result *r)
{
    double half = histogram_quantile(&r->latencies, 500000);
    return half > 0 ? histogram_quantile(&r->latencies, 990000) / half : 0;
}

static double waited(const struct result *r)
{
    double percent = 100 * (double)r->waits / pairs_of(r);
    return percent < 100 ? percent
                         : 100; /* the pair under way at the end counts as a wait only */
}

typedef double figure_fn(const struct result *);

static figure_fn *const unit_figures[] = { [UNIT_MS] = ms_per_pair,
                                           [UNIT_US] = us_per_pair,
                                           [UNIT_NS] = ns_per_pair,
                                           [UNIT_PER_S] = rate,
                                           [UNIT_TAIL] = tail };
/* nanoseconds in a unit of time */
static const double unit_ns[] = { [UNIT_MS] = 1e6, [UNIT_US] = 1e3, [UNIT_NS] = 1 };
static const int unit_digits[] = {
    [UNIT_MS] = 2, [UNIT_US] = 1, [UNIT_NS] = 1, [UNIT_PER_S] = 0, [UNIT_TAIL] = 2
};

static struct spread spread_over(const struct result *results, size_t rounds,
                                 figure_fn *figure)
{
    double values[ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++)
        values[i] = figure(&results[i]);
    return spread_of(values, rounds);
}

static struct spread ratio_over(const struct result *ours, const struct result *theirs,
                                size_t rounds, figure_fn *figure)
{
    double values[ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++) {
        double base = figure(&theirs[i]);
        values[i] = base > 0 ? figure(&ours[i]) / base : 0;
    }
    return spread_of(values, rounds);
}

static double longest_of(const struct result *results, size_t rounds)
{
    double longest = 0;
    for (size_t i = 0; i < rounds; i++)
        if (results[i].longest_ns > longest)
            longest = results[i].longest_ns;
    return longest;
}

/* ---- output */

void report_head(const struct report *report)
{
    fprintf(report->table, "%-22s %-18s %9s %9s %9s %9s %7s %7s %7s %7s  %-20s %s\n",
            "scenario", "of", "median", "min", "max", "longest", "luck", "waited",
            "cpu us", "switch", "ratio (spread)", "target");
    fprintf(report->csv,
            "scenario,processes,threads,of,round,seconds,pairs,luckiest,unluckiest,waits,"
            "cpu_us_per_pair,switches_per_pair,longest_us,p50_us,p99_us,p999_us\n");
    fprintf(report->histogram, "scenario,of,from_us,count\n");
}

static bool contended(const struct shape *shape)
{
    return shape->processes > 1 || shape->threads > 1;
}

static void print_figures(FILE *table, const struct scenario *s,
                          const struct entry *entry, const struct result *results,
                          size_t rounds)
{
    struct spread value = spread_over(results, rounds, unit_figures[s->unit]);
    int digits = unit_digits[s->unit];
    double longest = longest_of(results, rounds);

    fprintf(table, " %9.*f %9.*f %9.*f", digits, value.median, digits, value.min, digits,
            value.max);
    if (longest > 0)
        fprintf(table, " %9.*f", digits, longest / unit_ns[s->unit]);
    else
        fprintf(table, " %9s", "");
    if (contended(&s->shape)) {
        fprintf(table, " %7.2f", spread_over(results, rounds, luck).median);
        if (entry->contender->waits)
            fprintf(table, " %6.0f%%", spread_over(results, rounds, waited).median);
        else
            fprintf(table, " %7s", "");
    } else {
        fprintf(table, " %7s %7s", "", "");
    }
    if (s->unit == UNIT_NS || longest > 0)
        fprintf(table, " %7s %7s", "", "");
    else if (entry->contender->peer)
        fprintf(table, " %7.1f %7s", spread_over(results, rounds, cpu_us).median, "");
    else
        fprintf(table, " %7.1f %7.2f", spread_over(results, rounds, cpu_us).median,
                spread_over(results, rounds, switches).median);
}

static void print_row(FILE *table, const struct scenario *s, results_t results,
                      size_t rounds, size_t who)
{
    size_t above = s->ratio_to_first ? who : 0, below = s->ratio_to_first ? 0 : who;
    const struct entry *entry = &s->entries[who];

    fprintf(table, "%-22s %-18s", who == 0 ? s->label : "", entry->contender->label);
    print_figures(table, s, entry, results[who], rounds);
    if (who > 0) {
        struct spread ratio =
            ratio_over(results[above], results[below], rounds, unit_figures[s->unit]);
        fprintf(table, "  %.3f (%.3f-%.3f)  ", ratio.median, ratio.min, ratio.max);
    } else {
        fprintf(table, "  %-20s", "");
    }
    fprintf(table, " %s\n", entry->target ? entry->target : "");
}

/* The percentiles of all rounds, and the buckets that anything fell into. */
static void print_latencies(const struct report *report, const struct scenario *s,
                            const struct entry *entry, const struct result *results,
                            size_t rounds)
{
    static struct histogram all;
    memset(&all, 0, sizeof(all));
    for (size_t i = 0; i < rounds; i++)
        histogram_merge(&all, &results[i].latencies);
    fprintf(report->table,
            "%-22s %-18s p50 %.1f us, p90 %.1f, p99 %.1f, p99.9 %.1f, of %llu locks\n",
            "", "", histogram_quantile(&all, 500000) / 1e3,
            histogram_quantile(&all, 900000) / 1e3,
            histogram_quantile(&all, 990000) / 1e3,
            histogram_quantile(&all, 999000) / 1e3,
            (unsigned long long)histogram_count(&all));
    for (size_t i = 0; i < sizeof(all.counts) / sizeof(all.counts[0]); i++)
        if (all.counts[i] > 0)
            fprintf(report->histogram, "%s,\"%s\",%.3f,%u\n", s->word,
                    entry->contender->label, histogram_bound(i) / 1e3, all.counts[i]);
}

static void print_round(FILE *csv, const struct scenario *s, const struct entry *entry,
                        const struct result *r, size_t round)
{
    struct shape shape = entry->shape.processes > 0 ? entry->shape : s->shape;
    fprintf(
        csv,
        "%s,%zu,%zu,\"%s\",%zu,%.3f,%llu,%llu,%llu,%llu,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f\n",
        s->word, shape.processes, shape.threads, entry->contender->label, round,
        r->seconds, (unsigned long long)r->pairs, (unsigned long long)r->luckiest,
        (unsigned long long)r->unluckiest, (unsigned long long)r->waits, cpu_us(r),
        switches(r), r->longest_ns / 1e3, histogram_quantile(&r->latencies, 500000) / 1e3,
        histogram_quantile(&r->latencies, 990000) / 1e3,
        histogram_quantile(&r->latencies, 999000) / 1e3);
}

void report_scenario(const struct report *report, const struct scenario *s,
                     results_t results, size_t rounds)
{
    for (size_t who = 0; who < CONTENDERS_MAX && s->entries[who].contender; who++) {
        const struct entry *entry = &s->entries[who];
        print_row(report->table, s, results, rounds, who);
        if (s->unit == UNIT_TAIL)
            print_latencies(report, s, entry, results[who], rounds);
        for (size_t i = 0; i < rounds; i++)
            print_round(report->csv, s, entry, &results[who][i], i + 1);
    }
    fflush(report->table);
    fflush(report->csv);
}
