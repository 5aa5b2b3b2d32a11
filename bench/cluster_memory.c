/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client needs for each node of a cluster that it uses; see cluster.h. Each
 * reading is that of a new process, whose threads share one heap, at rest. A lock is held
 * at a node until it was renewed: then the client has a connection for callers there, one
 * of the watchdog and one for messages. After that a thread waits at each node. The
 * kernel's buffers of the sockets, and the stacks of threads, are not counted.
 */
#include "cluster.h"

#include "bench.h"
#include "process.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS_MAX = 100,
    LOOK_MS = 100,
    RESTS = 10, /* looks in a row that find the same */
    LOOKS_MAX = 600
};
#define LEASE "?lease=1000" /* ms; renewed after a third of it */
enum { PLAIN, FIRST, MORE, WAITING, FIGURES };

static const char *const labels[FIGURES] = {
    "client of a plain server", "client of a cluster that uses one node",
    "  for each further node", "  besides, for each node at which a thread waits"
};
static const char *const targets[FIGURES] = { "", "", "<= 65536", "" };

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

static double heap_at_rest(void)
{
    size_t last = 0;

    for (int looks = 0, rests = 0; looks < LOOKS_MAX; looks++) {
        struct mallinfo2 info = mallinfo2();
        size_t now = info.uordblks + info.hblkhd;
        rests = now == last ? rests + 1 : 0;
        last = now;
        if (rests == RESTS)
            return (double)now;
        pause_ms(LOOK_MS);
    }
    die("the heap does not come to rest");
}

/* Its memory with a lock that was renewed, less that before. */
static double use(rlock_client_t *client, int node, double before)
{
    rlock_stats_t stats;
    uint64_t first;
    rlock_mutex_t m;
    char name[LOCK_NAME_SIZE];

    servers_name(name, node, 0);
    mutex_at(&m, client, name);
    check(rlock_client_getstats(client, &stats), "rlock_client_getstats");
    first = stats.renewals;
    check(rlock_mutex_lock(&m), "rlock_mutex_lock");
    do {
        pause_ms(LOOK_MS);
        check(rlock_client_getstats(client, &stats), "rlock_client_getstats");
    } while (stats.renewals == first);
    check(rlock_mutex_unlock(&m), "rlock_mutex_unlock");
    return heap_at_rest() - before;
}

/* ---- waiting threads */

struct waiter {
    rlock_mutex_t mutex;
    sem_t started, go;
    pthread_t thread;
};

/* Makes the C library allocate its memory for the thread before it waits. */
static void *wait_for_it(void *arg)
{
    struct waiter *w = arg;
    void *volatile block = malloc(1);

    free(block);
    sem_post(&w->started);
    semaphore_wait(&w->go);
    check(rlock_mutex_lock(&w->mutex), "rlock_mutex_lock");
    check(rlock_mutex_unlock(&w->mutex), "rlock_mutex_unlock");
    return NULL;
}

static void start_waiter(struct waiter *w, rlock_client_t *client, int node)
{
    char name[LOCK_NAME_SIZE];

    servers_name(name, node, 1);
    mutex_at(&w->mutex, client, name);
    if (sem_init(&w->started, 0, 0) != 0 || sem_init(&w->go, 0, 0) != 0 ||
        pthread_create(&w->thread, NULL, wait_for_it, w) != 0)
        die("no thread");
    semaphore_wait(&w->started);
}

/* A process that holds the locks of the waiting threads until `go`. */
static pid_t start_holder(const char *url, sem_t *holds, sem_t *go)
{
    pid_t pid = process_fork();
    char name[LOCK_NAME_SIZE];

    if (pid != 0)
        return pid;
    rlock_client_t *client = client_at(url);
    rlock_mutex_t mutexes[MASTERS];
    for (int i = 0; i < MASTERS; i++) {
        servers_name(name, i, 1);
        mutex_at(&mutexes[i], client, name);
        check(rlock_mutex_lock(&mutexes[i]), "rlock_mutex_lock");
    }
    sem_post(holds);
    semaphore_wait(go);
    for (int i = 0; i < MASTERS; i++)
        check(rlock_mutex_unlock(&mutexes[i]), "rlock_mutex_unlock");
    check(rlock_client_close(client), "rlock_client_close");
    _exit(0);
}

static double wait_at_all(rlock_client_t *client, const char *url)
{
    static struct waiter waiters[MASTERS];
    rlock_stats_t stats;
    sem_t *sems = memory_shared(2 * sizeof(*sems));

    if (sem_init(&sems[0], 1, 0) != 0 || sem_init(&sems[1], 1, 0) != 0)
        die("no semaphore");
    pid_t pid = start_holder(url, &sems[0], &sems[1]);
    semaphore_wait(&sems[0]);
    for (int i = 0; i < MASTERS; i++)
        start_waiter(&waiters[i], client, i);
    double before = heap_at_rest();
    for (int i = 0; i < MASTERS; i++)
        sem_post(&waiters[i].go);
    do {
        pause_ms(LOOK_MS);
        check(rlock_client_getstats(client, &stats), "rlock_client_getstats");
    } while (stats.waiters_now < MASTERS);
    double more = heap_at_rest() - before;
    sem_post(&sems[1]);
    for (int i = 0; i < MASTERS; i++)
        pthread_join(waiters[i].thread, NULL);
    if (process_reap(pid) != 0)
        die("the holder failed");
    memory_free(sems, 2 * sizeof(*sems));
    return more / MASTERS;
}

/* ---- a reading */

/* Forks before it uses the library. */
static void read_figures(double ret_figures[FIGURES])
{
    char url[URL_MAX + sizeof(LEASE)], plain_url[URL_MAX];

    mallopt(M_ARENA_MAX, 1); /* one heap for all threads: mallinfo2() reports one heap */
    servers_cluster_url(url, "");
    strcat(url, LEASE);
    snprintf(plain_url, sizeof(plain_url), "%s" LEASE, plain[0].tcp_url);
    double before = heap_at_rest();
    rlock_client_t *client = client_at(plain_url);
    ret_figures[PLAIN] = use(client, 0, before);
    check(rlock_client_close(client), "rlock_client_close");
    before = heap_at_rest();
    client = client_at(url);
    ret_figures[FIRST] = use(client, 0, before);
    before = heap_at_rest();
    for (int i = 1; i < MASTERS; i++)
        ret_figures[MORE] = use(client, i, before) / i;
    ret_figures[WAITING] = wait_at_all(client, url);
    check(rlock_client_close(client), "rlock_client_close");
}

void bench_memory(size_t rounds)
{
    static double values[FIGURES][ROUNDS_MAX];
    double *figures = memory_shared(FIGURES * sizeof(*figures));

    if (rounds > ROUNDS_MAX)
        die("at most %d rounds", ROUNDS_MAX);
    servers_start_plain(1);
    servers_start_cluster(false);
    for (size_t i = 0; i < rounds; i++) {
        pid_t pid = process_fork();
        if (pid == 0) {
            read_figures(figures);
            _exit(0);
        }
        if (process_reap(pid) != 0)
            die("a reading failed");
        for (int k = 0; k < FIGURES; k++)
            values[k][i] = figures[k];
    }
    printf("\nheap of a client, bytes, %zu rounds: median (smallest to greatest)\n",
           rounds);
    for (int k = 0; k < FIGURES; k++) {
        double low = values[k][0], high = low;
        for (size_t i = 0; i < rounds; i++) {
            low = values[k][i] < low ? values[k][i] : low;
            high = values[k][i] > high ? values[k][i] : high;
        }
        printf("  %-48s %8.0f (%.0f to %.0f) %s\n", labels[k],
               median_of(values[k], rounds), low, high, targets[k]);
    }
    memory_free(figures, FIGURES * sizeof(*figures));
}
