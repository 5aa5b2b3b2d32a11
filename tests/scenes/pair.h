/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scene with two clients of this process: `self` connects straight to the server,
 * `other` through the proxy. `m` and `n` are their handles of one lock. For a program of
 * one file.
 */
#ifndef TEST_PAIR_H
#define TEST_PAIR_H

#include "scene.h"

enum { COMMAND_MS = 300 /* the command timeout of `other` */ };

static rlock_client_t *self, *other;
static rlock_mutex_t m, n;

static inline void open_scene(void)
{
    scene_open();
    self = scene_client(scene_server.url, NULL);
    other = scene_client(test_proxy_url(scene_proxy),
                         SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_mutex(&m, self, "N");
    scene_mutex(&n, other, "N");
}

static inline void close_scene(void)
{
    rlock_mutex_unlock(&m);
    rlock_mutex_unlock(&n);
    test_proxy_remove_all(scene_proxy);
    rlock_client_close(self);
    rlock_client_close(other);
    scene_close();
}

#endif
