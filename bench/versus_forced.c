/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a forced unlock to the event by which the victim learns of it.
 *
 * For each acquire another process begins to call rlock_force_unlock within the acquire's
 * round trip, at another moment each time, and calls until there was a holder. So some of
 * the messages are under way together with the answer, and come before it. The result is
 * the time from before the call that found the holder to the victim's event. The victim's
 * lease is the default, 30 s: a victim that got no event within WAIT_MS believes in its
 * hold until its next renewal.
 */
#include "versus.h"

#include "bench.h"
#include "process.h"
#include "sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    FORCES = 10000,
    QUICK_FORCES = 500,
    TURN = 100, /* of one version at a time */
    WAIT_MS = 500,
    STEPS = 97, /* 2 us each */
    STEP_NS = 2000,
    TARGET_MS = 10
};

/* What a victim and its forcer share. */
struct stage {
    sem_t go, told;
    int64_t begun_ns, found_ns, told_ns; /* the call that found a holder; the event */
    unsigned delay;
};

struct victim {
    struct library lib;
    struct stage *stage;
    rlock_mutex_t mutex;
    double latency_ms[FORCES];
    size_t count, untold;
    size_t crossed; /* found before lock() had returned */
};

static void hear(const rlock_event_t *event, void *arg)
{
    struct stage *stage = arg;
    if (event->kind != RLOCK_EVENT_LOST)
        return;
    stage->told_ns = now_ns();
    sem_post(&stage->told);
}

static void pass_ns(int64_t ns)
{
    for (int64_t end = now_ns() + ns; now_ns() < end;)
        continue;
}

static void be_forcer(const char *name, int version, struct stage *stage)
{
    struct library lib;
    library_load(&lib, versus_labels[version], versus_paths[version]);
    rlock_client_t *client = library_client(&lib, NULL);
    sem_post(&stage->told);
    for (;;) {
        semaphore_wait(&stage->go);
        pass_ns((int64_t)stage->delay * STEP_NS);
        int rc;
        do {
            stage->begun_ns = now_ns();
            rc = lib.force_unlock(client, name);
        } while (rc == ENOENT);
        stage->found_ns = now_ns();
        library_check(&lib, rc, "rlock_force_unlock");
    }
}

static void start(struct victim *v, int version)
{
    char name[64];
    snprintf(name, sizeof(name), "bench-forced-%d", version);
    v->stage = memory_shared(sizeof(*v->stage));
    if (sem_init(&v->stage->go, 1, 0) != 0 || sem_init(&v->stage->told, 1, 0) != 0)
        die("no semaphore");
    if (process_fork() == 0)
        be_forcer(name, version, v->stage);
    semaphore_wait(&v->stage->told);
}

static void open_victim(struct victim *v, int version)
{
    char name[64];
    rlock_clientattr_t attr;
    snprintf(name, sizeof(name), "bench-forced-%d", version);
    library_load(&v->lib, versus_labels[version], versus_paths[version]);
    library_check(&v->lib, v->lib.clientattr_init(&attr), "rlock_clientattr_init");
    library_check(&v->lib, v->lib.clientattr_seteventcallback(&attr, hear, v->stage),
                  "seteventcallback");
    rlock_client_t *client = library_client(&v->lib, &attr);
    library_check(&v->lib, v->lib.clientattr_destroy(&attr), "rlock_clientattr_destroy");
    library_mutex(&v->lib, &v->mutex, client, name, false);
}

static bool is_told(sem_t *told)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_MS * 1000000L;
    until.tv_sec += until.tv_nsec / NS_PER_S;
    until.tv_nsec %= NS_PER_S;
    int rc;
    while ((rc = sem_timedwait(told, &until)) != 0 && errno == EINTR)
        continue;
    return rc == 0;
}

static void be_robbed(struct victim *v)
{
    struct stage *stage = v->stage;
    while (sem_trywait(&stage->told) == 0) /* late events of the last acquire */
        continue;
    stage->delay = (unsigned)(v->count * 37 % STEPS);
    sem_post(&stage->go);
    library_check(&v->lib, v->lib.mutex_lock(&v->mutex), "lock");
    int64_t acquired = now_ns();
    bool told = is_told(&stage->told);
    v->crossed += stage->found_ns < acquired;
    if (!told) {
        v->untold++;
        v->latency_ms[v->count++] = WAIT_MS;
    } else {
        v->latency_ms[v->count++] = (double)(stage->told_ns - stage->begun_ns) / 1e6;
    }
    v->lib.mutex_unlock(&v->mutex);
}

static void print(struct victim *v)
{
    sample_sort(v->latency_ms, v->count);
    printf("%-8s %8zu %8zu %8.2f %8.2f %8.2f %8.2f %8zu %8zu %s\n", v->lib.label,
           v->count, v->crossed, sample_quantile(v->latency_ms, v->count, 0.5),
           sample_quantile(v->latency_ms, v->count, 0.99),
           sample_quantile(v->latency_ms, v->count, 0.999), v->latency_ms[v->count - 1],
           v->untold, v->count - sample_within(v->latency_ms, v->count, TARGET_MS),
           v->lib.label == versus_labels[NOW] ? "99 % <= 10 ms" : "");
}

void versus_forced(bool quick)
{
    static struct victim victims[VERSIONS];
    size_t count = quick ? QUICK_FORCES : FORCES;

    for (int i = 0; i < VERSIONS; i++)
        start(&victims[i], i); /* before this process uses a library */
    for (int i = 0; i < VERSIONS; i++)
        open_victim(&victims[i], i);
    for (size_t done = 0; done < count; done += TURN)
        for (int i = 0; i < VERSIONS; i++)
            for (size_t k = 0; k < TURN; k++)
                be_robbed(&victims[i]);
    printf("\nfrom a forced unlock, begun amid the acquire, to the victim's event, ms\n"
           "%-8s %8s %8s %8s %8s %8s %8s %8s %8s target\n",
           "", "forced", "crossed", "median", "99 %", "99.9 %", "longest", "not told",
           "> 10 ms");
    for (int i = 0; i < VERSIONS; i++)
        print(&victims[i]);
    printf("crossed: found before lock() had returned; not told: not within %d ms, which "
           "counts as that long\n",
           WAIT_MS);
}
