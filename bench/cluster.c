/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a cluster: cluster [-q] [PART...] with the parts pair, handoff, bus, map,
 * memory, in this order; all of them unless some are named. -q: a tenth of the rounds.
 * Starts its servers by itself, as the tests do. Start it by bench/cluster_run. It fails
 * only when it cannot measure.
 */
#include "cluster.h"

#include "bench.h"
#include "process.h"
#include "sample.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- clients */

void check(int rc, const char *what)
{
    if (rc != 0)
        die("%s: %s", what, rlock_errmsg());
}

rlock_client_t *client_at(const char *url)
{
    rlock_client_t *client = NULL;

    check(rlock_client_open(&client, url, NULL), "rlock_client_open");
    check(rlock_client_ping(client), "rlock_client_ping");
    return client;
}

void mutex_at(rlock_mutex_t *m, rlock_client_t *client, const char *name)
{
    rlock_mutexattr_t attr;

    check(rlock_mutexattr_init(&attr), "rlock_mutexattr_init");
    check(rlock_mutexattr_setclient(&attr, client), "rlock_mutexattr_setclient");
    check(rlock_mutex_init(m, &attr, name), "rlock_mutex_init");
    rlock_mutexattr_destroy(&attr);
}

/* ---- figures */

static double *copy_of(const double *values, size_t count)
{
    double *copy = malloc(count * sizeof(*copy));

    if (!copy)
        die("out of memory");
    memcpy(copy, values, count * sizeof(*copy));
    return copy;
}

double median_of(const double *values, size_t rounds)
{
    double *copy = copy_of(values, rounds), median = sample_median(copy, rounds);

    free(copy);
    return median;
}

void say_ratio(const char *label, const double *values, const double *base, size_t rounds,
               const char *target)
{
    double *ratios = copy_of(values, rounds), low, high;

    for (size_t i = 0; i < rounds; i++)
        ratios[i] = base[i] > 0 ? values[i] / base[i] : 0;
    sample_sort(ratios, rounds);
    sample_median_bounds(ratios, rounds, &low, &high);
    printf("  %-44s %.3f (%.3f to %.3f; all %.2f to %.2f) %s\n", label,
           sample_quantile(ratios, rounds, 0.5), low, high, ratios[0], ratios[rounds - 1],
           target);
    free(ratios);
}

/* ---- the parts */

static const struct part {
    const char *name;
    void (*run)(size_t rounds);
    size_t rounds;
} parts[] = {
    { "pair", bench_pair, 2000 },  { "handoff", bench_handoff, 20 },
    { "bus", bench_bus, 20 },      { "map", bench_map, 50 },
    { "memory", bench_memory, 5 },
};
enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static void interrupt(int signal)
{
    (void)signal;
    _exit(2); /* the servers end with this process */
}

/* In a process of its own, so that each part finds the library unused. */
static void run_part(const struct part *part, bool quick)
{
    fflush(stdout);
    pid_t pid = process_fork();
    if (pid == 0) {
        at_quick_exit(servers_stop);
        part->run(quick ? (part->rounds + 9) / 10 : part->rounds);
        servers_stop();
        fflush(stdout);
        _exit(0);
    }
    if (process_reap(pid) != 0)
        die("%s failed", part->name);
}

static bool is_wanted(const char *name, char **words)
{
    bool wanted = !*words;

    for (; *words; words++)
        wanted = wanted || strcmp(*words, name) == 0;
    return wanted;
}

int main(int argc, char **argv)
{
    bool quick = argc > 1 && strcmp(argv[1], "-q") == 0;
    char **words = argv + (quick ? 2 : 1);

    for (char **word = words; *word; word++) {
        int i = 0;
        while (i < PARTS && strcmp(parts[i].name, *word) != 0)
            i++;
        if (i == PARTS)
            die("usage: cluster [-q] [pair | handoff | bus | map | memory]...");
    }
    signal(SIGTERM, interrupt);
    signal(SIGINT, interrupt);
    for (int i = 0; i < PARTS; i++)
        if (is_wanted(parts[i].name, words))
            run_part(&parts[i], quick);
    return 0;
}
