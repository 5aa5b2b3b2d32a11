/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many EOWNERDEAD are needless.
 *
 * Processes take turns under a robust mutex. One of them is killed every few
 * milliseconds, wherever it is, and another process comes. Shared memory says which
 * process is in a section: from after the return of lock() until before the call of
 * unlock(). An EOWNERDEAD is needless if no process is in a section there. If a process
 * is there and the next holder got no EOWNERDEAD, a death was missed, which must not
 * happen.
 */
#include "versus.h"

#include "bench.h"
#include "process.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    PROCESSES = 6,
    TURN = 50, /* of one version at a time */
    PAUSE_US = 12000,
    SLOW_PAUSE_US = 800000, /* leases have to end */
    SECTION_US = 1000,
    MOST_US = 100
};

#define NAME "bench-deaths"

struct setting {
    const char *title;
    int threads;   /* of each process */
    long lease_ms; /* 0: the default one, with the crash guard */
    size_t kills;
    long pause_us;
};

struct stage {
    _Atomic long inside; /* a process; 0: no process; -1: not known */
    _Atomic long sections, told, needless, missed;
    sem_t ready;
};

struct worker {
    struct library lib;
    struct stage *stage;
    rlock_mutex_t mutex;
};

static void pass_us(long us)
{
    nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000L }, NULL);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct stage *stage = w->stage;
    const struct library *lib = &w->lib;
    unsigned seed = (unsigned)(getpid() ^ (now_ns() & 0xffff));

    for (;;) {
        int rc = lib->mutex_lock(&w->mutex);
        long found = atomic_exchange(&stage->inside, getpid());
        if (rc == EOWNERDEAD) {
            atomic_fetch_add(&stage->told, found >= 0);
            atomic_fetch_add(&stage->needless, found == 0);
            library_check(lib, lib->mutex_consistent(&w->mutex), "consistent");
        } else {
            library_check(lib, rc, "lock");
            atomic_fetch_add(&stage->missed, found > 0);
        }
        pass_us(rand_r(&seed) % SECTION_US);
        atomic_fetch_add(&stage->sections, 1);
        atomic_store(&stage->inside, 0);
        library_check(lib, lib->mutex_unlock(&w->mutex), "unlock");
        pass_us(rand_r(&seed) % MOST_US);
    }
    return NULL;
}

static void be_worker(const struct setting *setting, struct stage *stage, int version)
{
    static struct worker w;
    rlock_clientattr_t attr;
    char name[64];
    pthread_t thread;

    snprintf(name, sizeof(name), NAME "-%d", version);
    w.stage = stage;
    library_load(&w.lib, versus_labels[version], versus_paths[version]);
    library_check(&w.lib, w.lib.clientattr_init(&attr), "rlock_clientattr_init");
    if (setting->lease_ms) {
        library_check(&w.lib, w.lib.clientattr_setguard(&attr, 0), "setguard");
        library_check(&w.lib, w.lib.clientattr_setlease(&attr, setting->lease_ms),
                      "setlease");
    }
    library_mutex(&w.lib, &w.mutex, library_client(&w.lib, &attr), name, true);
    sem_post(&stage->ready);
    for (int i = 1; i < setting->threads; i++)
        if (pthread_create(&thread, NULL, work, &w) != 0)
            die("no thread");
    work(&w);
}

static pid_t start(const struct setting *setting, struct stage *stage, int version)
{
    pid_t pid = process_fork();
    if (pid == 0)
        be_worker(setting, stage, version);
    semaphore_wait(&stage->ready);
    return pid;
}

static void kill_some(const struct setting *setting, struct stage *stage, int version,
                      size_t count)
{
    pid_t pids[PROCESSES];
    unsigned seed = (unsigned)count;

    for (int i = 0; i < PROCESSES; i++)
        pids[i] = start(setting, stage, version);
    for (size_t k = 0; k < count; k++) {
        int i = rand_r(&seed) % PROCESSES;
        pass_us(setting->pause_us / 2 + rand_r(&seed) % setting->pause_us);
        kill(pids[i], SIGKILL);
        process_reap(pids[i]);
        pids[i] = start(setting, stage, version);
    }
    for (int i = 0; i < PROCESSES; i++) {
        kill(pids[i], SIGKILL);
        process_reap(pids[i]);
    }
    atomic_store(&stage->inside, -1); /* it is not known where the last processes were */
}

static void measure(const struct setting *setting, bool quick)
{
    struct stage *stages[VERSIONS];
    size_t count = quick ? setting->kills / 10 : setting->kills;

    for (int i = 0; i < VERSIONS; i++) {
        stages[i] = memory_shared(sizeof(*stages[i]));
        if (sem_init(&stages[i]->ready, 1, 0) != 0)
            die("no semaphore");
    }
    for (size_t done = 0; done < count; done += TURN)
        for (int i = 0; i < VERSIONS; i++)
            kill_some(setting, stages[i], i, TURN);
    printf("\nEOWNERDEAD after %zu kills, %d processes, %s\n%-8s %10s %10s %10s %10s\n",
           count, PROCESSES, setting->title, "", "sections", "told", "needless",
           "missed");
    for (int i = 0; i < VERSIONS; i++)
        printf("%-8s %10ld %10ld %10ld %10ld\n", versus_labels[i],
               atomic_load(&stages[i]->sections), atomic_load(&stages[i]->told),
               atomic_load(&stages[i]->needless), atomic_load(&stages[i]->missed));
    fflush(stdout);
}

void versus_deaths(bool quick)
{
    static const struct setting settings[] = {
        { "a thread each", 1, 0, 1000, PAUSE_US },
        { "three threads each", 3, 0, 1000, PAUSE_US },
        { "a thread each, no guard, leases of 2 s", 1, 2000, 100, SLOW_PAUSE_US },
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        measure(&settings[i], quick);
}
