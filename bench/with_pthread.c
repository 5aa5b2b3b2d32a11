/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of one machine or one process, whose interface the library has. */
#include "contender.h"

#include "bench.h"
#include "go_mutex.h"
#include "process.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { BATCH = 1000 /* so that reading the clock does not count */ };

/* ---- a mutex that is held already */

static void *open_again(const char *name)
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

static uint64_t run_batch(void *state)
{
    for (int i = 0; i < BATCH; i++) {
        pthread_mutex_lock(state);
        pthread_mutex_unlock(state);
    }
    return BATCH;
}

static void close_again(void *state)
{
    pthread_mutex_unlock(state);
    pthread_mutex_destroy(state);
    free(state);
}

const struct contender pthread_again = { .label = "pthread recursive",
                                         .open = open_again,
                                         .run = run_batch,
                                         .close = close_again };

/* ---- robust and shared between processes */

static pthread_mutex_t *shared; /* of the newest team's processes */

static void prepare_robust(void)
{
    pthread_mutexattr_t attr;
    shared = memory_shared(sizeof(*shared));
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(shared, &attr);
    pthread_mutexattr_destroy(&attr);
}

static void *open_robust(const char *name)
{
    (void)name;
    return shared;
}

static uint64_t run_robust(void *state)
{
    if (pthread_mutex_lock(state) != 0 || pthread_mutex_unlock(state) != 0)
        die("pthread_mutex_lock failed");
    return 1;
}

static void close_robust(void *state)
{
    (void)state;
}

const struct contender pthread_robust = { .label = "pthread robust",
                                          .prepare = prepare_robust,
                                          .open = open_robust,
                                          .run = run_robust,
                                          .close = close_robust };
const struct contender pthread_robust_batch = { .label = "pthread robust",
                                                .prepare = prepare_robust,
                                                .open = open_robust,
                                                .run = run_batch,
                                                .close = close_robust };

/* ---- of one process */

static void *open_go(const char *name)
{
    struct go_mutex *mutex = calloc(1, sizeof(*mutex));
    (void)name;
    if (!mutex)
        die("out of memory");
    return mutex;
}

static uint64_t run_go(void *state)
{
    go_mutex_lock(state);
    go_mutex_unlock(state);
    return 1;
}

const struct contender go_pair = {
    .label = "Go's rules, in C", .open = open_go, .run = run_go, .close = free
};
