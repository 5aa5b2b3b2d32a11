/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fair lock's next grant after waiters died.
 *
 * A holder and a waiter are processes that use the library and stay. For each run others
 * queue between them and are killed; the time from the holder's unlock to the return of
 * the waiter's lock is what counts. The process that arranges it never uses the library,
 * or its children could not: it looks at the queue over hiredis.
 */
#include "contender.h"

#include "bench.h"
#include "process.h"
#include "scripts.h"

#include <rlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEAD_MAX = 16, PATIENCE_S = 10, LOOK_NS = 200000 };

/* What the holder and the waiter do when they may go on: lock, then unlock. */
struct actor {
    sem_t go, done;
    int64_t unlock_ns, locked_ns; /* before the unlock, after the lock */
};

struct stage {
    struct actor holder, waiter;
};

struct scene {
    size_t dead;
    const char *name;
    redisContext *conn;
    lock_keys_t keys;
    struct stage *stage;
    pid_t holder, waiter;
    int64_t grant_ns; /* of the last run */
};

static void check(int rc, const char *what)
{
    if (rc != 0)
        die("%s: %s", what, rlock_errmsg());
}

/* ---- the processes that use the library */

static void fair_open(rlock_fair_t *fair, const char *name)
{
    check(rlock_fair_init(fair, NULL, name), "rlock_fair_init");
    check(rlock_client_ping(NULL), "rlock_client_ping");
}

static void act(const char *name, struct actor *self)
{
    rlock_fair_t fair;
    fair_open(&fair, name);
    for (;;) {
        sem_post(&self->done);
        semaphore_wait(&self->go);
        check(rlock_fair_lock(&fair), "rlock_fair_lock");
        self->locked_ns = now_ns();
        sem_post(&self->done);
        semaphore_wait(&self->go);
        self->unlock_ns = now_ns();
        check(rlock_fair_unlock(&fair), "rlock_fair_unlock");
    }
}

static pid_t start_actor(const struct scene *scene, struct actor *actor)
{
    sem_init(&actor->go, 1, 0);
    sem_init(&actor->done, 1, 0);
    pid_t pid = process_fork();
    if (pid == 0)
        act(scene->name, actor);
    return pid;
}

/* Waits until it is killed. */
static pid_t start_victim(const struct scene *scene)
{
    pid_t pid = process_fork();
    if (pid == 0) {
        rlock_fair_t fair;
        fair_open(&fair, scene->name);
        check(rlock_fair_lock(&fair), "rlock_fair_lock");
        die("a waiter that was to die got the lock");
    }
    return pid;
}

/* ---- what is measured */

static void await(struct actor *actor, const char *what)
{
    if (!semaphore_wait_for(&actor->done, PATIENCE_S))
        die("%s", what);
}

static size_t queue_length(struct scene *scene)
{
    redisReply *reply = redis_words(
        scene->conn, (const char *const[]){ "ZCARD", scene->keys[RLK_KEY_QUEUE], NULL });
    if (reply->type != REDIS_REPLY_INTEGER)
        die("ZCARD gave no number");
    size_t length = (size_t)reply->integer;
    freeReplyObject(reply);
    return length;
}

static void await_queue(struct scene *scene, size_t length)
{
    int64_t until = now_ns() + PATIENCE_S * NS_PER_S;
    while (queue_length(scene) != length) {
        if (now_ns() > until)
            die("the queue did not come to %zu", length);
        nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
    }
}

/* They queue, and all of them are gone when this returns. */
static void let_die(struct scene *scene)
{
    pid_t victims[DEAD_MAX];

    for (size_t i = 0; i < scene->dead; i++)
        victims[i] = start_victim(scene);
    await_queue(scene, scene->dead);
    for (size_t i = 0; i < scene->dead; i++)
        kill(victims[i], SIGKILL);
    for (size_t i = 0; i < scene->dead; i++)
        process_reap(victims[i]);
}

static uint64_t run_scene(void *state)
{
    struct scene *scene = state;
    struct actor *holder = &scene->stage->holder, *waiter = &scene->stage->waiter;

    sem_post(&holder->go);
    await(holder, "the holder did not get the lock");
    let_die(scene);
    sem_post(&waiter->go);
    await_queue(scene, scene->dead + 1);
    sem_post(&holder->go);
    await(waiter, "the waiter did not get the lock");
    await(holder, "the holder did not unlock");
    sem_post(&waiter->go);
    await(waiter, "the waiter did not unlock");
    delete_keys(scene->conn, scene->keys); /* the dead are not to be those of the next */
    scene->grant_ns = waiter->locked_ns - holder->unlock_ns;
    return 1;
}

static int64_t grant_ns(void *state)
{
    return ((const struct scene *)state)->grant_ns;
}

/* ---- preparation */

static struct scene *open_scene(const char *name, size_t dead)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    if (!scene)
        die("out of memory");
    scene->dead = dead;
    scene->name = name;
    scene->conn = redis_open();
    make_keys(scene->keys, name);
    delete_keys(scene->conn, scene->keys);
    scene->stage = memory_shared(sizeof(*scene->stage));
    scene->holder = start_actor(scene, &scene->stage->holder);
    scene->waiter = start_actor(scene, &scene->stage->waiter);
    await(&scene->stage->holder, "the holder did not start");
    await(&scene->stage->waiter, "the waiter did not start");
    return scene;
}

static void *open_16(const char *name)
{
    return open_scene(name, DEAD_MAX);
}

static void *open_none(const char *name)
{
    return open_scene(name, 0);
}

static void close_scene(void *state)
{
    struct scene *scene = state;
    kill(scene->holder, SIGKILL);
    kill(scene->waiter, SIGKILL);
    process_reap(scene->holder);
    process_reap(scene->waiter);
    memory_free(scene->stage, sizeof(*scene->stage));
    redisFree(scene->conn);
    free(scene);
}

const struct contender after_16_died = { "16 died", open_16,     run_scene,
                                         NULL,      close_scene, grant_ns };
const struct contender after_none_died = { "none died", open_none,   run_scene,
                                           NULL,        close_scene, grant_ns };
