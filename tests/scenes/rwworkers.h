/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scene of three workers around one read-write lock. `x` goes through the proxy, `y`
 * and `z` are straight to the server; each has a handle "m" of the lock "N". For a
 * program of one file. Thread: a test's main thread.
 */
#ifndef TEST_RWWORKERS_H
#define TEST_RWWORKERS_H

#include "scene.h"

#include <string.h>

static struct worker x, y, z;

static inline void open_scene(void)
{
    scene_open();
    memset(&x, 0, sizeof(x));
    memset(&y, 0, sizeof(y));
    memset(&z, 0, sizeof(z));
}

static inline void close_scene(void)
{
    worker_end(&x);
    worker_end(&y);
    worker_end(&z);
    scene_close();
}

static inline void start_x(const struct scene_times *times)
{
    scene_worker(&x, test_proxy_url(scene_proxy), times, "N", "rwlock=1");
}

/* y and z, whose holds outlast the test. */
static inline void start_others(void)
{
    const struct scene_times *times =
        SCENE_TIMES(.lease = test_ms(30000), .presence = test_ms(3000));
    scene_worker(&y, scene_server.url, times, "N", "rwlock=1");
    scene_worker(&z, scene_server.url, times, "N", "rwlock=1");
}

/* The call of the worker's thread "t" succeeds, and its lock is SAFE. */
static inline void got(struct worker *w)
{
    ck_assert(scene_worker_got(w, SCENE_SOON_MS));
    scene_says(w, "ok SAFE", "on t state m");
}

/* Whether an id of the lock is marked as cancelled. */
static inline bool any_id_is_marked(void *arg)
{
    (void)arg;
    return scene_count("N", "cancelled") > 0;
}

#endif
