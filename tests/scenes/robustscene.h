/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scene for robust locks. `self` is a client of this process straight to the server,
 * and `m` its robust handle of the lock "N". `x`, `y` and `z` are workers; the handles
 * "m" of those that were started are robust, too. For a program of one file. Thread: a
 * test's main thread.
 */
#ifndef TEST_ROBUSTSCENE_H
#define TEST_ROBUSTSCENE_H

#include "scene.h"

#include <string.h>

static rlock_client_t *self;
static rlock_mutex_t m;
static struct worker x, y, z;

/* Starts a worker straight to the server. */
static inline void robust_worker(struct worker *w, const struct scene_times *times)
{
    scene_worker(w, scene_server.url, times, "N", "robust=1");
}

/* Without workers. */
static inline void open_robust_scene(void)
{
    scene_open();
    memset(&x, 0, sizeof(x));
    memset(&y, 0, sizeof(y));
    memset(&z, 0, sizeof(z));
    self = scene_client(scene_server.url, NULL);
    scene_robust_mutex(&m, self, "N");
}

/* With x straight to the server. */
static inline void open_scene(void)
{
    open_robust_scene();
    robust_worker(&x, NULL);
}

static inline void close_scene(void)
{
    worker_end(&x);
    worker_end(&y);
    worker_end(&z);
    rlock_mutex_unlock(&m);
    rlock_client_close(self);
    scene_close();
}

/* A thread of x takes the lock and ends: its owner has died. */
static inline void x_dies_inside(void)
{
    scene_says(&x, "ok", "on dead lock m");
    scene_says(&x, "ok", "end dead");
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
}

/* The next owner does not make the lock consistent: it is not recoverable any more. */
static inline void x_spoils(void)
{
    x_dies_inside();
    scene_says(&x, "EOWNERDEAD", "on t lock m");
    scene_says(&x, "ok", "on t unlock m");
}

static inline void m_locks_and_unlocks(void)
{
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
}

#endif
