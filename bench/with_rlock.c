/* SPDX-License-Identifier: Apache-2.0 */
/* The library as its users call it. */
#include "contender.h"

#include "bench.h"
#include "histogram.h"

#include <rlock.h>
#include <stdlib.h>
#include <time.h>

enum {
    AGAIN_BATCH = 1000, /* so that reading the clock does not count */
    SECTION_NS = 2000000,
    KEEP_MS = 60000
};

static void check(int rc, const char *what)
{
    if (rc != 0)
        die("%s: %s", what, rlock_strerror(rc));
}

static void *open_rlock(const char *name)
{
    rlock_mutex_t *mutex = malloc(sizeof(*mutex));
    if (!mutex)
        die("out of memory");
    check(rlock_mutex_init(mutex, NULL, name), "rlock_mutex_init");
    check(rlock_client_ping(NULL), "rlock_client_ping");
    return mutex;
}

static void close_rlock(void *state)
{
    rlock_mutex_destroy(state);
    free(state);
    rlock_client_close(NULL);
}

/* ---- a pair */

static uint64_t run_pair(void *state)
{
    check(rlock_mutex_lock(state), "rlock_mutex_lock");
    check(rlock_mutex_unlock(state), "rlock_mutex_unlock");
    return 1;
}

static uint64_t count_grants(void *state)
{
    rlock_stats_t stats;
    (void)state;
    check(rlock_client_getstats(NULL, &stats), "rlock_client_getstats");
    return stats.grants;
}

const struct contender rlock_pair = { .label = "rlock",
                                      .open = open_rlock,
                                      .run = run_pair,
                                      .waits = count_grants,
                                      .close = close_rlock };
const struct contender rlock_pair_processes = { .label = "rlock, processes",
                                                .open = open_rlock,
                                                .run = run_pair,
                                                .waits = count_grants,
                                                .close = close_rlock };

/* ---- a mutex that the process retains */

static void *open_kept(const char *name)
{
    rlock_mutex_t *mutex = malloc(sizeof(*mutex));
    rlock_mutexattr_t attr;
    if (!mutex)
        die("out of memory");
    check(rlock_mutexattr_init(&attr), "rlock_mutexattr_init");
    check(rlock_mutexattr_setretain(&attr, KEEP_MS), "rlock_mutexattr_setretain");
    check(rlock_mutex_init(mutex, &attr, name), "rlock_mutex_init");
    check(rlock_client_ping(NULL), "rlock_client_ping");
    return mutex;
}

static uint64_t run_pairs(void *state)
{
    for (int i = 0; i < AGAIN_BATCH; i++)
        run_pair(state);
    return AGAIN_BATCH;
}

const struct contender rlock_kept = {
    .label = "rlock", .open = open_kept, .run = run_pairs, .close = close_rlock
};

/* ---- a pair of the fair lock */

static void *open_fair(const char *name)
{
    rlock_fair_t *fair = malloc(sizeof(*fair));
    if (!fair)
        die("out of memory");
    check(rlock_fair_init(fair, NULL, name), "rlock_fair_init");
    check(rlock_client_ping(NULL), "rlock_client_ping");
    return fair;
}

static void close_fair(void *state)
{
    rlock_fair_destroy(state);
    free(state);
    rlock_client_close(NULL);
}

static uint64_t run_fair(void *state)
{
    check(rlock_fair_lock(state), "rlock_fair_lock");
    check(rlock_fair_unlock(state), "rlock_fair_unlock");
    return 1;
}

const struct contender fair_pair = { .label = "rlock fair",
                                     .open = open_fair,
                                     .run = run_fair,
                                     .waits = count_grants,
                                     .close = close_fair };
const struct contender fair_pair_few = { .label = "with 20 threads",
                                         .open = open_fair,
                                         .run = run_fair,
                                         .waits = count_grants,
                                         .close = close_fair };

/* ---- a pair of the read-write lock */

static void *open_rw(const char *name)
{
    rlock_rwlock_t *rwlock = malloc(sizeof(*rwlock));
    if (!rwlock)
        die("out of memory");
    check(rlock_rwlock_init(rwlock, NULL, name), "rlock_rwlock_init");
    check(rlock_client_ping(NULL), "rlock_client_ping");
    return rwlock;
}

static void close_rw(void *state)
{
    rlock_rwlock_destroy(state);
    free(state);
    rlock_client_close(NULL);
}

static uint64_t run_read(void *state)
{
    check(rlock_rwlock_rdlock(state), "rlock_rwlock_rdlock");
    check(rlock_rwlock_unlock(state), "rlock_rwlock_unlock");
    return 1;
}

static uint64_t run_write(void *state)
{
    check(rlock_rwlock_wrlock(state), "rlock_rwlock_wrlock");
    check(rlock_rwlock_unlock(state), "rlock_rwlock_unlock");
    return 1;
}

const struct contender rw_read_pair = { .label = "rlock read",
                                        .open = open_rw,
                                        .run = run_read,
                                        .waits = count_grants,
                                        .close = close_rw };
const struct contender rw_write_pair = { .label = "rlock write",
                                         .open = open_rw,
                                         .run = run_write,
                                         .waits = count_grants,
                                         .close = close_rw };

/* ---- a read-write lock that the process retains */

static void *open_kept_rw(const char *name)
{
    rlock_rwlock_t *rwlock = malloc(sizeof(*rwlock));
    rlock_rwlockattr_t attr;
    if (!rwlock)
        die("out of memory");
    check(rlock_rwlockattr_init(&attr), "rlock_rwlockattr_init");
    check(rlock_rwlockattr_setretain(&attr, KEEP_MS), "rlock_rwlockattr_setretain");
    check(rlock_rwlock_init(rwlock, &attr, name), "rlock_rwlock_init");
    check(rlock_client_ping(NULL), "rlock_client_ping");
    return rwlock;
}

static uint64_t run_reads(void *state)
{
    for (int i = 0; i < AGAIN_BATCH; i++)
        run_read(state);
    return AGAIN_BATCH;
}

static uint64_t run_writes(void *state)
{
    for (int i = 0; i < AGAIN_BATCH; i++)
        run_write(state);
    return AGAIN_BATCH;
}

const struct contender read_kept = {
    .label = "rlock read", .open = open_kept_rw, .run = run_reads, .close = close_rw
};
const struct contender write_kept = {
    .label = "rlock write", .open = open_kept_rw, .run = run_writes, .close = close_rw
};

/* ---- nine readings for each writing */

static uint64_t run_mixed(void *state)
{
    static _Thread_local unsigned turn;
    return turn++ % 10 == 0 ? run_write(state) : run_read(state);
}

const struct contender rw_mixed = {
    .label = "rlock rwlock",
    .open = open_rw,
    .run = run_mixed,
    .waits = count_grants,
    .close = close_rw,
};

/* ---- how long lock() takes */

static uint64_t run_latency(void *state)
{
    int64_t before = now_ns();
    check(rlock_mutex_lock(state), "rlock_mutex_lock");
    histogram_note(now_ns() - before);
    check(rlock_mutex_unlock(state), "rlock_mutex_unlock");
    return 1;
}

static uint64_t run_fair_latency(void *state)
{
    int64_t before = now_ns();
    check(rlock_fair_lock(state), "rlock_fair_lock");
    histogram_note(now_ns() - before);
    check(rlock_fair_unlock(state), "rlock_fair_unlock");
    return 1;
}

const struct contender rlock_latency = {
    .label = "rlock",
    .open = open_rlock,
    .run = run_latency,
    .waits = count_grants,
    .close = close_rlock,
};
const struct contender fair_latency = {
    .label = "rlock fair",
    .open = open_fair,
    .run = run_fair_latency,
    .waits = count_grants,
    .close = close_fair,
};

/* ---- a slow section, such as one that reads from a disk */

static void section(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = SECTION_NS }, NULL);
}

static uint64_t run_read_section(void *state)
{
    check(rlock_rwlock_rdlock(state), "rlock_rwlock_rdlock");
    section();
    check(rlock_rwlock_unlock(state), "rlock_rwlock_unlock");
    return 1;
}

static uint64_t run_mutex_section(void *state)
{
    check(rlock_mutex_lock(state), "rlock_mutex_lock");
    section();
    check(rlock_mutex_unlock(state), "rlock_mutex_unlock");
    return 1;
}

const struct contender read_section = { .label = "rlock read",
                                        .open = open_rw,
                                        .run = run_read_section,
                                        .waits = count_grants,
                                        .close = close_rw };
const struct contender mutex_section = { .label = "rlock mutex",
                                         .open = open_rlock,
                                         .run = run_mutex_section,
                                         .waits = count_grants,
                                         .close = close_rlock };

/* ---- by the holder */

static void *open_held(const char *name)
{
    void *state = open_rlock(name);
    check(rlock_mutex_lock(state), "rlock_mutex_lock");
    return state;
}

static uint64_t run_again(void *state)
{
    for (int i = 0; i < AGAIN_BATCH; i++)
        run_pair(state);
    return AGAIN_BATCH;
}

static void close_held(void *state)
{
    check(rlock_mutex_unlock(state), "rlock_mutex_unlock");
    close_rlock(state);
}

const struct contender rlock_again = {
    .label = "rlock", .open = open_held, .run = run_again, .close = close_held
};
