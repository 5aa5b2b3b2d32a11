/* SPDX-License-Identifier: Apache-2.0 */
/* See tls_many.h. All processes are connected all the time; in each phase only those of
 * one contender work, so that both meet the machine in the same state. */
#include "tls_many.h"

#include "bench.h"
#include "process.h"
#include "sample.h"
#include "tls_raw.h"

#include <rlock.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { PHASES_MAX = 60, PROCESSES_MAX = 256, WAYS = 2 };

#define PHASE_NS NS_PER_S
#define GAP_NS                                                                           \
    (NS_PER_S / 3) /* the last ones of a phase get the lock, and give it back */

static struct shared {
    atomic_int ready;
    _Atomic int64_t begin;
    atomic_ulong pairs[WAYS][PHASES_MAX];
} * shared;

static void sleep_until(int64_t at)
{
    struct timespec ts = { .tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) != 0)
        continue;
}

/* Calls `pair` in each phase of the way. */
static void work(int way, int phases, void (*pair)(void *arg), void *arg)
{
    enum { LOOK_MS = 10 };
    const struct timespec look = { .tv_nsec = LOOK_MS * 1000000L };

    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->begin) == 0)
        nanosleep(&look, NULL);
    for (int i = 0; i < phases; i++) {
        int64_t begin =
            atomic_load(&shared->begin) + (WAYS * i + way) * (PHASE_NS + GAP_NS);
        unsigned long pairs = 0;
        sleep_until(begin);
        while (now_ns() < begin + PHASE_NS) {
            pair(arg);
            pairs++;
        }
        atomic_fetch_add(&shared->pairs[way][i], pairs);
    }
}

static void library_pair(void *arg)
{
    if (rlock_mutex_lock(arg) != 0 || rlock_mutex_unlock(arg) != 0)
        die("%s", rlock_errmsg());
}

static void work_by_library(const char *url, int phases)
{
    rlock_client_t *client = NULL;
    rlock_mutexattr_t attr;
    rlock_mutex_t mutex;

    if (rlock_client_open(&client, url, NULL) != 0 || rlock_client_ping(client) != 0)
        die("%s", rlock_errmsg());
    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setclient(&attr, client);
    rlock_mutex_init(&mutex, &attr, "bench-tls-many");
    work(0, phases, library_pair, &mutex);
    (void)rlock_client_close(client);
}

static void raw_pair(void *arg)
{
    tls_raw_mutex_pair(arg);
}

static void work_raw(int phases)
{
    struct tls_raw_mutex mutex;

    tls_raw_mutex_open(&mutex, "bench-tls-many-raw", true);
    work(1, phases, raw_pair, &mutex);
    tls_raw_mutex_close(&mutex);
}

void tls_many(const char *url, int processes, int phases)
{
    pid_t pids[WAYS * PROCESSES_MAX];
    double rates[WAYS][PHASES_MAX], ratios[PHASES_MAX];

    if (processes > PROCESSES_MAX || phases > PHASES_MAX)
        die("at most %d processes and %d phases", PROCESSES_MAX, PHASES_MAX);
    shared = memory_shared(sizeof(*shared));
    for (int i = 0; i < WAYS * processes; i++) {
        pids[i] = process_fork();
        if (pids[i] == 0) {
            if (i % WAYS == 0)
                work_by_library(url, phases);
            else
                work_raw(phases);
            _exit(0);
        }
    }
    while (atomic_load(&shared->ready) < WAYS * processes)
        sleep_until(now_ns() + NS_PER_S / 100);
    atomic_store(&shared->begin, now_ns() + NS_PER_S / 10);
    for (int i = 0; i < WAYS * processes; i++)
        if (process_reap(pids[i]) != 0)
            die("a process has failed");
    for (int i = 0; i < phases; i++) {
        for (int way = 0; way < WAYS; way++)
            rates[way][i] = (double)atomic_load(&shared->pairs[way][i]);
        ratios[i] = rates[0][i] / rates[1][i];
        printf("%d processes, second %d: %.0f/s, raw TLS %.0f/s\n", processes, i + 1,
               rates[0][i], rates[1][i]);
    }
    printf("%d processes: %.0f/s; %.2f of raw hiredis and OpenSSL (>= 0.9)\n", processes,
           sample_median(rates[0], (size_t)phases),
           sample_median(ratios, (size_t)phases));
    memory_free(shared, sizeof(*shared));
}
