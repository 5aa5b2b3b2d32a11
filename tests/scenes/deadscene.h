/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scene for deadlocks: workers p[0], p[1] ... each a process with handles "a", "b" ...
 * of the locks with these names, and threads that take one lock and wait for another one.
 * Workers with an even number go through the proxy. For a program of one file. Thread: a
 * test's main thread.
 */
#ifndef TEST_DEADSCENE_H
#define TEST_DEADSCENE_H

#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTIES_MAX = 8, DEAD_MS = 100, DEAD_STAYS_MS = 6 * DEAD_MS };

static struct worker p[PARTIES_MAX];
static int party_count;

static inline void open_dead(void)
{
    scene_open();
    memset(p, 0, sizeof(p));
    party_count = 0;
}

static inline void close_dead(void)
{
    test_proxy_remove_all(scene_proxy);
    for (int i = 0; i < party_count; i++)
        worker_end(&p[i]);
    scene_close();
}

/* Starts the next worker; options: of its client. */
static inline struct worker *start_party(const char *options)
{
    struct worker *w = &p[party_count];

    worker_start(w, NULL);
    scene_says(w, "ok", "open %s deadlockms=%ld %s",
               party_count % 2 ? scene_server.url : test_proxy_url(scene_proxy),
               test_ms(DEAD_MS), options);
    party_count++;
    ck_assert(scene_wait_mailboxes(party_count, SCENE_SOON_MS));
    return w;
}

/* Makes handles of the locks named by the letters; options: of the worker's init. */
static inline void make_locks(struct worker *w, const char *letters, const char *options)
{
    for (; *letters; letters++)
        scene_says(w, "ok", "init %c %c %s", *letters, *letters, options);
}

/* The worker's thread begins a call that has to wait. */
static inline void begins(struct worker *w, const char *thread, const char *command)
{
    long long waiters = scene_stat(w, "waiters_now") + 1;

    scene_says(w, "ok", "async %s %s", thread, command);
    while (scene_stat(w, "waiters_now") < waiters)
        test_pause_ms(1);
}

/* The worker tells of a deadlock of its wait for this lock. Returns the news. */
static inline const char *tells(struct worker *w, const char *lock)
{
    char prefix[64];

    snprintf(prefix, sizeof(prefix), "event DEADLOCK %s ", lock);
    const char *news = worker_news(w, prefix, SCENE_SOON_MS);
    ck_assert_msg(news, "no deadlock was reported");
    return news;
}

static inline bool tells_nothing(void *worker)
{
    return !worker_news(worker, "event DEADLOCK", 0);
}

/* No worker tells of a deadlock (any more). */
static inline void nobody_tells(void)
{
    for (int i = 0; i < party_count; i++)
        ck_assert(test_stays(tells_nothing, &p[i],
                             i == 0 ? test_ms(DEAD_STAYS_MS) : DEAD_MS / 10));
}

static inline void ends(struct worker *w, const char *thread, const char *code)
{
    scene_worker_ends(w, thread, code);
}

#endif
