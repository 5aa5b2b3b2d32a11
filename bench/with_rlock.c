/* SPDX-License-Identifier: Apache-2.0 */
/* The library as its users call it, and pthread's recursive mutex beside its re-entry. */
#include "contender.h"

#include "bench.h"

#include <rlock.h>
#include <stdlib.h>
#include <time.h>

enum {
    AGAIN_BATCH = 1000, /* so that reading the clock does not count */
    SECTION_NS = 2000000
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

const struct contender rlock_pair = { "rlock",      open_rlock,  run_pair,
                                      count_grants, close_rlock, NULL };

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

const struct contender fair_pair = { "rlock fair", open_fair,  run_fair,
                                     count_grants, close_fair, NULL };

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

const struct contender rw_read_pair = { "rlock read", open_rw,  run_read,
                                        count_grants, close_rw, NULL };
const struct contender rw_write_pair = { "rlock write", open_rw,  run_write,
                                         count_grants,  close_rw, NULL };

/* ---- a section that takes its time, as one that reads from a disk */

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

const struct contender read_section = { "rlock read", open_rw,  run_read_section,
                                        count_grants, close_rw, NULL };
const struct contender mutex_section = { "rlock mutex", open_rlock,  run_mutex_section,
                                         count_grants,  close_rlock, NULL };

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

const struct contender rlock_again = { "rlock", open_held,  run_again,
                                       NULL,    close_held, NULL };

/* ---- pthread */

static void *open_pthread(const char *name)
{
    pthread_mutex_t *mutex = malloc(sizeof(*mutex));
    pthread_mutexattr_t attr;
    (void)name;
    if (!mutex)
        die("out of memory");
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(mutex, &attr);
    pthread_mutexattr_destroy(&attr);
    pthread_mutex_lock(mutex);
    return mutex;
}

static uint64_t run_pthread(void *state)
{
    for (int i = 0; i < AGAIN_BATCH; i++) {
        pthread_mutex_lock(state);
        pthread_mutex_unlock(state);
    }
    return AGAIN_BATCH;
}

static void close_pthread(void *state)
{
    pthread_mutex_unlock(state);
    pthread_mutex_destroy(state);
    free(state);
}

const struct contender pthread_again = { "pthread recursive", open_pthread,
                                         run_pthread,         NULL,
                                         close_pthread,       NULL };
