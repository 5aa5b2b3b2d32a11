/* SPDX-License-Identifier: Apache-2.0 */
/* Who plays the rules of the protocol through, in test_rules.c and test_two_grants.c:
 * `self` is a client of this process straight to the server, by whose handle `m` the lock
 * "N" is held at first; `x` is a worker whose client goes through the proxy. */
#ifndef TESTS_RULESCENE_H
#define TESTS_RULESCENE_H

#include "scene.h"

#include <stdio.h>
#include <string.h>

static rlock_client_t *self;
static rlock_mutex_t m;
static struct worker x;

static bool x_has_heard_more(void *before)
{
    return scene_stat(&x, "messages_ignored") > *(long long *)before;
}

/* Until x has read what its mailbox was sent so far: a message behind it that says
 * nothing, which self's gets, too. */
static inline void x_reads_its_mail(void)
{
    long long before = scene_stat(&x, "messages_ignored");
    char channel[2][64] = { "", "" };
    const redisReply *all =
        test_redis_do(scene_redis, "PUBSUB", "CHANNELS", RLK_MAILBOX_PREFIX "*");
    for (size_t i = 0; i < 2 && i < all->elements; i++)
        snprintf(channel[i], sizeof(channel[i]), "%s", all->element[i]->str);
    for (size_t i = 0; i < 2; i++)
        test_redis_do(scene_redis, "PUBLISH", channel[i], "0 nothing");
    ck_assert(test_wait_until(x_has_heard_more, &before, SCENE_SOON_MS));
}

/* x's times; a grant to it lasts for `presence`. */
static void start_x(const struct scene_times *times)
{
    scene_worker(&x, test_proxy_url(scene_proxy), times, "N", "");
}

static void hold(void)
{
    self = scene_client(scene_server.url, NULL);
    scene_mutex(&m, self, "N");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
}

static void open_scene(void)
{
    scene_open();
    memset(&x, 0, sizeof(x));
    hold();
}

static void close_scene(void)
{
    worker_end(&x);
    rlock_mutex_unlock(&m);
    rlock_client_close(self);
    scene_close();
}

static bool x_is_not_told(void *arg)
{
    (void)arg;
    return !worker_news(&x, "done t", 0);
}

#endif
