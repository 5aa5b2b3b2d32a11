/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scene for conditions. `self` is a client of this process, straight to the server,
 * with the mutex `m` ("N") and the condition `c` ("C"). `x` and `y` are workers, whose
 * handles are called "m" and "c", too; x goes through the proxy. Each of their threads
 * waits with wait_in. For a program of one file. Thread: a test's main thread.
 */
#ifndef TEST_CONDSCENE_H
#define TEST_CONDSCENE_H

#include "scene.h"

#include <stdio.h>
#include <string.h>

static rlock_client_t *self;
static rlock_mutex_t m;
static rlock_cond_t c;
static struct worker x, y;

static inline void cond_of(rlock_cond_t *cond, rlock_client_t *client, const char *name)
{
    rlock_condattr_t attr;

    ck_assert_int_eq(rlock_condattr_init(&attr), 0);
    ck_assert_int_eq(rlock_condattr_setclient(&attr, client), 0);
    ck_assert_int_eq(rlock_cond_init(cond, &attr, name), 0);
}

static inline void start_worker(struct worker *w, const char *url,
                                const struct scene_times *times, const char *options)
{
    scene_worker(w, url, times, "N", options);
    scene_says(w, "ok", "cond c C");
}

static inline void start_x(const struct scene_times *times)
{
    start_worker(&x, test_proxy_url(scene_proxy), times, "");
}

static inline void start_y(const struct scene_times *times)
{
    start_worker(&y, scene_server.url, times, "");
}

static inline void open_scene(void)
{
    scene_open();
    memset(&x, 0, sizeof(x));
    memset(&y, 0, sizeof(y));
    self = scene_client(scene_server.url, NULL);
    scene_mutex(&m, self, "N");
    cond_of(&c, self, "C");
}

static inline void close_scene(void)
{
    test_proxy_remove_all(scene_proxy);
    worker_end(&x);
    worker_end(&y);
    rlock_mutex_unlock(&m);
    rlock_client_close(self);
    scene_close();
}

#define COND_KEY "rlock:{C}:cond"

/* How many ids wait, and how many are signalled and not acknowledged. */
static inline long long waiting(void)
{
    return test_redis_int(scene_redis, "ZCOUNT", COND_KEY, "100000000000000", "+inf");
}
static inline long long signalled(void)
{
    return test_redis_int(scene_redis, "ZCOUNT", COND_KEY, "-inf", "(100000000000000");
}

static inline bool waiting_is(void *n)
{
    return waiting() == *(long *)n;
}
static inline bool signalled_is(void *n)
{
    return signalled() == *(long *)n;
}
static inline void wait_for_waiting(long n)
{
    ck_assert(test_wait_until(waiting_is, &n, SCENE_SOON_MS));
}
static inline void wait_for_signalled(long n)
{
    ck_assert(test_wait_until(signalled_is, &n, SCENE_SOON_MS));
}

/* The worker's thread locks "m" and begins to wait by `command`, as the only one that has
 * begun since the last call or as the n-th. */
static inline void wait_in(struct worker *w, const char *thread, const char *command)
{
    long n = (long)waiting() + 1;

    scene_says(w, "ok", "on %s lock m", thread);
    scene_says(w, "ok", "async %s %s", thread, command);
    wait_for_waiting(n);
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
}

/* Whether the thread's wait goes on. */
struct sleeper {
    struct worker *worker;
    const char *thread;
};
static inline bool sleeps(void *arg)
{
    const struct sleeper *s = arg;
    char prefix[32];
    snprintf(prefix, sizeof(prefix), "done %s", s->thread);
    return !worker_news(s->worker, prefix, 0);
}

/* The worker's thread wakes with this code, holds the mutex, and unlocks it. */
static inline void wakes(struct worker *w, const char *thread, const char *code)
{
    scene_worker_ends(w, thread, code);
    scene_says(w, "ok SAFE", "on %s state m", thread);
    scene_says(w, "ok", "on %s unlock m", thread);
}

#endif
