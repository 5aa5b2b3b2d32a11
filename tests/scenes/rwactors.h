/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scene for threads that read, on top of fixture.h: `l` is a read-write lock "n" of
 * `client`, `theirs` the same of the second client, and `actor` are threads. For a
 * program of one file. Thread: a test's main thread.
 */
#ifndef TEST_RWACTORS_H
#define TEST_RWACTORS_H

#include "fixture.h"

enum { ACTORS = 3 };

#define QUEUE "rlock:{n}:queue"
#define RQUEUE "rlock:{n}:rqueue"
#define READERS "rlock:{n}:readers"

static rlock_rwlock_t l, theirs;
static struct actor actor[ACTORS];

static inline void set_up(void)
{
    fixture_open();
    fixture_load_scripts();
    l = rwlock_of(client, "n");
    theirs = rwlock_of(fixture_other(), "n");
    for (int i = 0; i < ACTORS; i++)
        actor_start(&actor[i]);
}

static inline void tear_down(void)
{
    for (int i = 0; i < ACTORS; i++)
        if (actor[i].thread)
            actor_end(&actor[i]);
    fixture_close();
}

#endif
