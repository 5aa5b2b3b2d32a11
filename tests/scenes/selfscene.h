/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scene of one client against one worker. `self` is a client of this process, and `m`
 * its handle of the lock "N". `x` is a worker whose client goes through the proxy; its
 * handle of the lock is called "m", too. For a program of one file. Thread: a test's main
 * thread.
 */
#ifndef TEST_SELFSCENE_H
#define TEST_SELFSCENE_H

#include "scene.h"

#include <string.h>

static rlock_client_t *self;
static rlock_mutex_t m;
static struct worker x;

/* Starts x with these times and options of its lock (see programs/worker.c). */
static inline void start_x_with(const struct scene_times *times, const char *options)
{
    scene_worker(&x, test_proxy_url(scene_proxy), times, "N", options);
}

static inline void start_x(const struct scene_times *times)
{
    start_x_with(times, "");
}

/* Opens `self` at the URL. */
static inline void open_self(const char *url, const struct scene_times *times)
{
    self = scene_client(url, times);
    scene_mutex(&m, self, "N");
}

/* Without `self`, for scenes in which it is a special client. */
static inline void open_scene_without_self(void)
{
    scene_open();
    memset(&x, 0, sizeof(x));
}

/* With `self` straight to the server. */
static inline void open_scene(void)
{
    open_scene_without_self();
    open_self(scene_server.url, NULL);
}

static inline void close_scene(void)
{
    worker_end(&x);
    rlock_mutex_unlock(&m);
    rlock_client_close(self);
    scene_close();
}

/* Whether the call of x's thread "t" has not returned yet. */
static inline bool x_is_not_told(void *arg)
{
    (void)arg;
    return !worker_news(&x, "done t", 0);
}

#endif
