/* SPDX-License-Identifier: Apache-2.0 */
/* See acl_tour.h. `a` is the first client, `b` the second. The main thread uses both,
 * except for waits: another thread waits with b. */
#include "acl_tour.h"

#include "scene.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PRESENCE_MS = 240, WAIT_MS = 5000, BRIEF_MS = 30 };

static rlock_client_t *a, *b;
static struct tour *tour;

/* Notes a failure. Returns true if the tour goes on. */
static bool is(int wanted, int rc, const char *where, const char *errmsg)
{
    if (rc == wanted)
        return true;
    if (tour->where[0] == '\0') {
        tour->rc = rc;
        snprintf(tour->where, sizeof(tour->where), "%.70s", where);
        snprintf(tour->errmsg, sizeof(tour->errmsg), "%s",
                 errmsg ? errmsg : rlock_errmsg());
    }
    return false;
}

#define IS(wanted, call) is((wanted), (call), #call, NULL)

/* ---- a lock of any type */

enum kind { MUTEX, ROBUST, FAIR, READ, WRITE };

struct any {
    enum kind kind;
    rlock_mutex_t mutex;
    rlock_fair_t fair;
    rlock_rwlock_t rwlock;
};

static struct any mine, theirs, to_write; /* of the current station */

static bool make(struct any *l, enum kind kind, rlock_client_t *client, const char *name,
                 int fencing)
{
    rlock_mutexattr_t ma;
    rlock_rwlockattr_t ra;
    l->kind = kind;
    if (kind == READ || kind == WRITE)
        return IS(0, rlock_rwlockattr_init(&ra)) &&
               IS(0, rlock_rwlockattr_setclient(&ra, client)) &&
               IS(0, rlock_rwlockattr_setfencing(&ra, fencing)) &&
               IS(0, rlock_rwlock_init(&l->rwlock, &ra, name));
    if (!IS(0, rlock_mutexattr_init(&ma)) ||
        !IS(0, rlock_mutexattr_setclient(&ma, client)) ||
        !IS(0, rlock_mutexattr_setfencing(&ma, fencing)))
        return false;
    if (kind == ROBUST && !IS(0, rlock_mutexattr_setrobust(&ma, RLOCK_MUTEX_ROBUST)))
        return false;
    return kind == FAIR ? IS(0, rlock_fair_init(&l->fair, &ma, name))
                        : IS(0, rlock_mutex_init(&l->mutex, &ma, name));
}

static int take(struct any *l, long ms)
{
    struct timespec until = test_in_ms(CLOCK_REALTIME, test_ms(ms));
    switch (l->kind) {
    case FAIR:
        return rlock_fair_timedlock(&l->fair, &until);
    case READ:
        return rlock_rwlock_timedrdlock(&l->rwlock, &until);
    case WRITE:
        return rlock_rwlock_timedwrlock(&l->rwlock, &until);
    default:
        return rlock_mutex_timedlock(&l->mutex, &until);
    }
}

static int try(struct any *l)
{
    switch (l->kind) {
    case FAIR:
        return rlock_fair_trylock(&l->fair);
    case READ:
        return rlock_rwlock_tryrdlock(&l->rwlock);
    case WRITE:
        return rlock_rwlock_trywrlock(&l->rwlock);
    default:
        return rlock_mutex_trylock(&l->mutex);
    }
}

static int give(struct any *l)
{
    switch (l->kind) {
    case FAIR:
        return rlock_fair_unlock(&l->fair);
    case READ:
    case WRITE:
        return rlock_rwlock_unlock(&l->rwlock);
    default:
        return rlock_mutex_unlock(&l->mutex);
    }
}

static int renew(struct any *l)
{
    switch (l->kind) {
    case FAIR:
        return rlock_fair_extend(&l->fair, test_ms(20000));
    case READ:
    case WRITE:
        return rlock_rwlock_extend(&l->rwlock, test_ms(20000));
    default:
        return rlock_mutex_extend(&l->mutex, test_ms(20000));
    }
}

/* ---- a thread that waits */

struct waiter {
    pthread_t thread;
    struct any *lock;
    bool keeps; /* its thread ends while it holds the lock */
    _Atomic bool done;
    int rc, rc_given;
    char errmsg[400];
};

static void *wait_for_it(void *arg)
{
    struct waiter *w = arg;
    w->rc = take(w->lock, WAIT_MS);
    snprintf(w->errmsg, sizeof(w->errmsg), "%s", rlock_errmsg());
    if ((w->rc == 0 || w->rc == EOWNERDEAD) && !w->keeps) {
        w->rc_given = give(w->lock);
        if (w->rc_given != 0)
            snprintf(w->errmsg, sizeof(w->errmsg), "%s", rlock_errmsg());
    }
    w->done = true;
    return NULL;
}

static void start(struct waiter *w, struct any *lock, bool keeps)
{
    *w = (struct waiter){ .lock = lock, .keeps = keeps };
    ck_assert_int_eq(pthread_create(&w->thread, NULL, wait_for_it, w), 0);
}

static bool end(struct waiter *w, int wanted)
{
    if (tour->where[0]) /* the thread may wait for a lock that is never released */
        rlock_client_interrupt(b);
    pthread_join(w->thread, NULL);
    return is(wanted, w->rc, "a waiter's timedlock", w->errmsg) &&
           is(0, w->rc_given, "a waiter's unlock", w->errmsg);
}

struct queued {
    const struct waiter *waiter;
    const char *name;
};

static long long count(const char *name, const char *suffix)
{
    char key[SCENE_KEY_MAX];
    scene_key(key, name, suffix);
    if (strchr(name, '{'))
        snprintf(key, sizeof(key), "rlock::%s:%s", name, suffix);
    return test_redis_int(scene_redis, "ZCARD", key);
}

static bool is_queued(void *arg)
{
    const struct queued *q = arg;
    return q->waiter->done || count(q->name, "queue") + count(q->name, "rqueue") > 0;
}

static void wait_queued(struct waiter *w, const char *name)
{
    struct queued q = { w, name };
    test_wait_until(is_queued, &q, WAIT_MS);
}

/* A timed call that finds the lock held for all of its time. It takes longer when the
 * server does not answer within that time. */
static int take_in_vain(struct any *lock)
{
    int rc = ENOTCONN;
    for (int ms = BRIEF_MS; rc == ENOTCONN && ms <= WAIT_MS; ms *= 5)
        rc = take(lock, ms);
    return rc;
}

/* ---- the stations */

/* The lock is taken, refused to another client, renewed, handed over and released. */
static bool hand_over(const char *name, enum kind first, enum kind second, int fencing)
{
    struct waiter w;
    bool ok = make(&mine, first, a, name, fencing) &&
              make(&theirs, second, b, name, fencing) && IS(0, take(&mine, WAIT_MS)) &&
              IS(EBUSY, try(&theirs)) && IS(ETIMEDOUT, take_in_vain(&theirs)) &&
              IS(0, renew(&mine));
    if (!ok)
        return false;
    start(&w, &theirs, false);
    wait_queued(&w, name);
    ok = IS(0, give(&mine));
    return end(&w, 0) && ok;
}

static bool read_together(const char *name)
{
    struct waiter w;
    bool ok = make(&mine, READ, a, name, 0) && make(&theirs, READ, b, name, 0) &&
              make(&to_write, WRITE, b, name, 0) && IS(0, take(&mine, WAIT_MS)) &&
              IS(0, take(&theirs, WAIT_MS)) && IS(0, renew(&mine)) &&
              IS(0, give(&theirs));
    if (!ok)
        return false;
    start(&w, &to_write, false);
    wait_queued(&w, name);
    ok = IS(0, give(&mine));
    return end(&w, 0) && ok;
}

static bool downgrade(const char *name)
{
    struct waiter w;
    if (!make(&mine, WRITE, a, name, 1) || !make(&theirs, READ, b, name, 1) ||
        !IS(0, take(&mine, WAIT_MS)))
        return false;
    start(&w, &theirs, false);
    wait_queued(&w, name);
    bool ok = IS(0, rlock_rwlock_downgrade(&mine.rwlock));
    ok = end(&w, 0) && ok;
    return ok && IS(0, give(&mine));
}

/* An owner dies: the next one gets EOWNERDEAD and makes the lock consistent; a second
 * time it does not. */
static bool deaths(const char *name)
{
    struct waiter w;
    if (!make(&mine, ROBUST, a, name, 0) || !make(&theirs, ROBUST, b, name, 0))
        return false;
    start(&w, &theirs, true);
    if (!end(&w, 0) || !IS(EOWNERDEAD, take(&mine, WAIT_MS)) ||
        !IS(0, rlock_mutex_consistent(&mine.mutex)) || !IS(0, give(&mine)))
        return false;
    start(&w, &theirs, true);
    if (!end(&w, 0) || !IS(EOWNERDEAD, take(&mine, WAIT_MS)))
        return false;
    start(&w, &theirs, false);
    wait_queued(&w, name);
    bool ok = IS(0, give(&mine));
    return end(&w, ENOTRECOVERABLE) && ok && IS(0, rlock_force_unlock(a, name));
}

static int count_listed(const rlock_info_t *info, void *arg)
{
    (void)info;
    ++*(int *)arg;
    return 0;
}

static bool look_at(const char *name, const char *pattern)
{
    rlock_info_t *info = NULL;
    int listed = 0;
    struct timespec soon = test_in_ms(CLOCK_REALTIME, test_ms(WAIT_MS));
    if (!make(&mine, MUTEX, a, name, 1) || !IS(0, take(&mine, WAIT_MS)) ||
        !IS(0, rlock_inspect(b, name, &info)))
        return false;
    ck_assert_uint_eq(info->holder_count, 1);
    rlock_info_free(info);
    if (pattern && !IS(0, rlock_list(b, pattern, count_listed, &listed)))
        return false;
    if (pattern)
        ck_assert_int_eq(listed, 1);
    if (!IS(0, rlock_force_unlock(b, name)) || !IS(0, rlock_waitfree(b, name, &soon)))
        return false;
    int rc = give(&mine);
    return rc == ESTALE || IS(0, rc);
}

/* Redisson holds the lock, then releases it. */
static bool redisson(const char *name, const char *channel)
{
    struct waiter w;
    if (!make(&theirs, MUTEX, b, name, 0))
        return false;
    test_redis_do(scene_redis, "HSET", name, "8a4f0c0e-0000-4000-8000-000000000000:1",
                  "1");
    test_redis_do(scene_redis, "PEXPIRE", name, "60000");
    start(&w, &theirs, false);
    wait_queued(&w, name);
    test_redis_do(scene_redis, "DEL", name);
    test_redis_do(scene_redis, "PUBLISH", channel, "0");
    return end(&w, 0);
}

/* Sets the token ahead of the server's clock. */
static bool count_on(const char *name)
{
    char key[SCENE_KEY_MAX];
    test_redis_do(scene_redis, "SET", scene_key(key, name, "token"),
                  "9100000000000000000");
    return make(&mine, MUTEX, a, name, 1) && IS(0, take(&mine, WAIT_MS)) &&
           IS(0, give(&mine));
}

static void go(bool whole)
{
    if (!IS(0, rlock_client_ping(a)) || !IS(0, rlock_client_ping(b)))
        return;
    if (whole)
        test_redis_do(scene_redis, "SCRIPT", "FLUSH");
    if (!hand_over("jobs:m", MUTEX, MUTEX, 0) || !hand_over("jobs:f", FAIR, FAIR, 1) ||
        !hand_over("jobs:{7}:m", MUTEX, MUTEX, 1) ||
        !hand_over("jobs:w", WRITE, WRITE, 1) || !hand_over("jobs:wr", WRITE, READ, 1) ||
        !read_together("jobs:r") || !downgrade("jobs:d") || !deaths("jobs:o") ||
        !look_at("jobs:i", whole ? "jobs:*" : NULL) ||
        !redisson("jobs:j", "redisson_lock__channel:{jobs:j}") ||
        !redisson("jobs:{9}:j", "redisson_lock__channel:jobs:{9}:j"))
        return;
    if (whole)
        count_on("jobs:c");
}

void acl_tour(const char *url, bool whole, struct tour *ret_tour)
{
    tour = ret_tour;
    *tour = (struct tour){ 0 };
    a = scene_open_client(
        url, SCENE_TIMES(.presence = test_ms(PRESENCE_MS), .lease = test_ms(20000)));
    b = scene_open_client(
        url, SCENE_TIMES(.presence = test_ms(PRESENCE_MS), .lease = test_ms(20000)));
    go(whole);
    if (tour->where[0]) { /* a station that ended early still holds these */
        give(&mine);
        give(&theirs);
    }
    ck_assert_int_eq(rlock_client_close(a), 0);
    ck_assert_int_eq(rlock_client_close(b), 0);
}
