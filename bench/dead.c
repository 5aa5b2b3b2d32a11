/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fair lock's next grant after waiters died, and after its holder did.
 *
 * A holder and a waiter are processes that use the library and stay. For each run other
 * processes queue between them and are killed. The result is the time from the holder's
 * unlock to the return of the waiter's lock. The process that arranges this never uses
 * the library, so that its children can use it: it looks at the queue over hiredis.
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

enum { DEAD_MAX = 16, PATIENCE_S = 10, LOOK_NS = 200000, SHORT_LEASE_MS = 600 };

/* The steps of the holder and the waiter, each when it may go on: lock, then unlock. */
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
    bool from_expiry; /* counted from the end of the lease */
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

/* Holds the lock until it is killed. */
static pid_t start_dying_holder(const struct scene *scene)
{
    struct actor *self = &scene->stage->holder;
    pid_t pid = process_fork();
    if (pid == 0) {
        rlock_mutexattr_t attr;
        rlock_fair_t fair;
        check(rlock_mutexattr_init(&attr), "rlock_mutexattr_init");
        check(rlock_mutexattr_setlease(&attr, SHORT_LEASE_MS), "setlease");
        check(rlock_fair_init(&fair, &attr, scene->name), "rlock_fair_init");
        check(rlock_fair_lock(&fair), "rlock_fair_lock");
        sem_post(&self->done);
        for (;;)
            pause();
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

/* Waiters queue and are killed. All of them are gone when this returns. */
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
    delete_keys(scene->conn, scene->keys); /* the next run finds none of the dead */
    scene->grant_ns = waiter->locked_ns - holder->unlock_ns;
    return 1;
}

static int64_t lease_left_ns(struct scene *scene)
{
    redisReply *reply = redis_words(
        scene->conn, (const char *const[]){ "PTTL", scene->keys[RLK_KEY_N], NULL });
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer < 0)
        die("the lock has no lease");
    int64_t ns = reply->integer * (NS_PER_S / 1000);
    freeReplyObject(reply);
    return ns;
}

static uint64_t run_death(void *state)
{
    struct scene *scene = state;
    struct actor *waiter = &scene->stage->waiter;

    pid_t holder = start_dying_holder(scene);
    await(&scene->stage->holder, "the holder did not get the lock");
    sem_post(&waiter->go);
    await_queue(scene, 1);
    kill(holder, SIGKILL);
    process_reap(holder);
    int64_t from = now_ns();
    if (scene->from_expiry)
        from += lease_left_ns(scene);
    await(waiter, "the waiter did not get the lock");
    scene->grant_ns = waiter->locked_ns - from;
    sem_post(&waiter->go);
    await(waiter, "the waiter did not unlock");
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
    setenv("RLOCK_RUNDIR", "", 1); /* no crash guard: this measures what happens
                                      without it */
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

static void *open_death(const char *name)
{
    return open_scene(name, 0);
}

static void *open_expiry(const char *name)
{
    struct scene *scene = open_scene(name, 0);
    scene->from_expiry = true;
    return scene;
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

const struct contender after_16_died = { .label = "16 died",
                                         .open = open_16,
                                         .run = run_scene,
                                         .close = close_scene,
                                         .timed_ns = grant_ns };
const struct contender after_none_died = { .label = "none died",
                                           .open = open_none,
                                           .run = run_scene,
                                           .close = close_scene,
                                           .timed_ns = grant_ns };
const struct contender holder_died = { .label = "from its death",
                                       .open = open_death,
                                       .run = run_death,
                                       .close = close_scene,
                                       .timed_ns = grant_ns };
const struct contender holder_died_expiry = { .label = "from lease's end",
                                              .open = open_expiry,
                                              .run = run_death,
                                              .close = close_scene,
                                              .timed_ns = grant_ns };
