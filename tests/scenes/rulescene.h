/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scene for the rules of the protocol: as selfscene.h, but `self` holds the lock "N" by
 * its handle `m` at first. For a program of one file. Thread: a test's main thread.
 */
#ifndef TEST_RULESCENE_H
#define TEST_RULESCENE_H

#include "selfscene.h"

#include <stdio.h>
#include <string.h>

static inline bool x_has_heard_more(void *before)
{
    return scene_stat(&x, "messages_ignored") > *(long long *)before;
}

/* Waits until x has read what its mailbox was sent so far: a message behind it, which
 * says nothing, is sent to all mailboxes. */
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

static inline void open_scene_and_hold(void)
{
    open_scene();
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
}

#endif
