/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scene for the fair lock. `self` is a client of this process straight to the server,
 * and `f` its handle of the lock "N". `w` are workers straight to the server, each with a
 * handle "m" of the lock. For a program of one file. Thread: a test's main thread.
 */
#ifndef TEST_FAIRWORKERS_H
#define TEST_FAIRWORKERS_H

#include "scene.h"

#include <string.h>

enum { WORKERS = 6 };

static rlock_client_t *self;
static rlock_fair_t f;
static struct worker w[WORKERS];

static inline void open_scene(void)
{
    scene_open();
    memset(w, 0, sizeof(w));
    self = scene_client(scene_server.url, NULL);
    scene_mutex(&f, self, "N");
}

static inline void close_scene(void)
{
    for (int i = 0; i < WORKERS; i++)
        worker_end(&w[i]);
    rlock_fair_unlock(&f);
    rlock_client_close(self);
    scene_close();
}

#endif
