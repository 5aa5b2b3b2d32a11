/* SPDX-License-Identifier: Apache-2.0 */
/* See fixture.h. */
#include "client/client.h" /* before fixture.h, which declares a variable `client` */
#include "net/script.h"

#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 256, STACK_SIZE = 256 * 1024 };

struct test_server server;
struct test_redis *redis;
rlock_client_t *client, *other;
struct test_proxy *proxy;

static pthread_mutex_t events_mu = PTHREAD_MUTEX_INITIALIZER;
static struct told events[EVENTS_MAX];
static bool returned[EVENTS_MAX];
static int event_count;

void fixture_start(void)
{
    test_server_start(&server, NULL);
}

void fixture_stop(void)
{
    test_server_stop(&server);
}

static void record(const rlock_event_t *event, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&events_mu);
    if (event_count < EVENTS_MAX) {
        struct told *t = &events[event_count++];
        t->kind = event->kind;
        t->type = event->type;
        t->mode = event->mode;
        snprintf(t->name, sizeof(t->name), "%s", event->name);
        snprintf(t->reason, sizeof(t->reason), "%s", event->reason);
        t->token = event->token;
        t->thread = event->thread;
        t->remaining_ms = event->remaining_ms;
    }
    pthread_mutex_unlock(&events_mu);
}

static bool is_subscribed(void *arg)
{
    const struct rlock_client *c = arg;
    char mailbox[64];
    snprintf(mailbox, sizeof(mailbox), "rlock:client:%s", c->uuid);
    const redisReply *reply = test_redis_do(redis, "PUBSUB", "NUMSUB", mailbox);
    return reply->elements == 2 && reply->element[1]->integer == 1 &&
           atomic_load(&c->route.target.subscription.subscribed);
}

rlock_client_t *open_with(const char *parameters)
{
    return open_at(server.url, parameters);
}

rlock_client_t *open_unseen(const char *address, const char *parameters)
{
    char url[TEST_URL_MAX + 256];
    rlock_clientattr_t attr;
    rlock_client_t *c = NULL;

    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setcommandtimeout(&attr, test_ms(3000)));
    OK(rlock_clientattr_setconnecttimeout(&attr, test_ms(3000)));
    OK(rlock_clientattr_seteventcallback(&attr, record, NULL));
    snprintf(url, sizeof(url), "%s%s", address, parameters);
    OK(rlock_client_open(&c, url, &attr));
    OK(rlock_clientattr_destroy(&attr));
    return c;
}

rlock_client_t *open_at(const char *address, const char *parameters)
{
    rlock_client_t *c = open_unseen(address, parameters);

    ck_assert(test_wait_until(is_subscribed, c, 10000));
    return c;
}

void close_client(rlock_client_t *c)
{
    OK(rlock_client_close(c));
}

void reopen_with(const char *parameters)
{
    close_client(client);
    client = open_with(parameters);
}

rlock_client_t *fixture_other(void)
{
    if (!other)
        other = open_with("");
    return other;
}

void fixture_load_scripts(void)
{
    for (int i = 0; i < RLK_SCRIPT_COUNT; i++)
        test_redis_do(redis, "SCRIPT", "LOAD", rlk_scripts[i].text);
}

void fixture_open(void)
{
    test_server_reset(&server);
    redis = test_redis_connect(server.path);
    pthread_mutex_lock(&events_mu);
    event_count = 0;
    memset(returned, 0, sizeof(returned));
    pthread_mutex_unlock(&events_mu);
    client = open_with("");
}

void fixture_close(void)
{
    if (client)
        close_client(client);
    if (other)
        close_client(other);
    client = other = NULL;
    test_redis_close(redis);
}

void fixture_open_proxied(void)
{
    fixture_open();
    close_client(client);
    client = NULL;
    fixture_load_scripts();
    proxy = test_proxy_start(&server);
}

void fixture_close_proxied(void)
{
    test_proxy_freeze(proxy, false);
    test_proxy_remove_all(proxy);
    fixture_close();
    test_proxy_stop(proxy);
}

TCase *fixture_tcase(Suite *suite, const char *name, void (*open)(void),
                     void (*close)(void))
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, open, close);
    suite_add_tcase(suite, tc);
    return tc;
}

void expect(int rc, int code, const char *what, int line)
{
    ck_assert_msg(rc == code, "line %d: %s: %s (%d) \"%s\", expected %s (%d)", line, what,
                  rlock_strerror(rc), rc, rlock_errmsg(), rlock_strerror(code), code);
}

/* ---- handles */

static rlock_mutex_t make(rlock_client_t *c, const char *name, int type, int fencing)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t m;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, c));
    if (type >= 0)
        OK(rlock_mutexattr_settype(&attr, type));
    OK(rlock_mutexattr_setfencing(&attr, fencing));
    OK(rlock_mutex_init(&m, &attr, name));
    OK(rlock_mutexattr_destroy(&attr));
    return m;
}

rlock_mutex_t mutex_of(rlock_client_t *c, const char *name)
{
    return make(c, name, -1, 0);
}

rlock_mutex_t typed_mutex(rlock_client_t *c, const char *name, int type)
{
    return make(c, name, type, 0);
}

rlock_mutex_t fenced_mutex(rlock_client_t *c, const char *name)
{
    return make(c, name, -1, 1);
}

int count_of(const rlock_mutex_t *m)
{
    unsigned count = 0;
    OK(rlock_mutex_getholdcount(m, &count));
    return (int)count;
}

rlock_state_t state_of(const rlock_mutex_t *m)
{
    rlock_state_t state = RLOCK_UNHELD;
    OK(rlock_mutex_getstate(m, &state));
    return state;
}

uint64_t token_of(const rlock_mutex_t *m)
{
    uint64_t token = 0;
    OK(rlock_mutex_gettoken(m, &token));
    return token;
}

long remaining_of(const rlock_mutex_t *m)
{
    long ms = -1;
    OK(rlock_mutex_getremaining(m, &ms));
    return ms;
}

rlock_stats_t stats_of(rlock_client_t *c)
{
    rlock_stats_t stats;
    OK(rlock_client_getstats(c, &stats));
    return stats;
}

rlock_rwlock_t rwlock_of(rlock_client_t *c, const char *name)
{
    return rwlock_with(c, name, -1, 0);
}

rlock_rwlock_t rwlock_with(rlock_client_t *c, const char *name, int kind, int fencing)
{
    rlock_rwlockattr_t attr;
    rlock_rwlock_t l;

    OK(rlock_rwlockattr_init(&attr));
    OK(rlock_rwlockattr_setclient(&attr, c));
    if (kind >= 0)
        OK(rlock_rwlockattr_setkind_np(&attr, kind));
    OK(rlock_rwlockattr_setfencing(&attr, fencing));
    OK(rlock_rwlock_init(&l, &attr, name));
    OK(rlock_rwlockattr_destroy(&attr));
    return l;
}

/* ---- threads */

static void *run_task(void *arg)
{
    struct task *task = arg;
    task->rc = task->run(task->arg);
    atomic_store(&task->done, true);
    return NULL;
}

void task_start(struct task *task, int (*run)(void *arg), void *arg)
{
    pthread_attr_t attr;

    task->run = run;
    task->arg = arg;
    atomic_store(&task->done, false);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    ck_assert_int_eq(pthread_create(&task->thread, &attr, run_task, task), 0);
    pthread_attr_destroy(&attr);
}

static bool is_done(void *arg)
{
    struct task *task = arg;
    return atomic_load(&task->done);
}

bool task_ends(struct task *task, long ms)
{
    return test_wait_until(is_done, task, ms);
}

int task_join(struct task *task)
{
    pthread_join(task->thread, NULL);
    return task->rc;
}

int in_thread(int (*run)(void *arg), void *arg)
{
    struct task task;
    task_start(&task, run, arg);
    return task_join(&task);
}

int run_lock(void *mutex)
{
    return rlock_mutex_lock(mutex);
}

int run_unlock(void *mutex)
{
    return rlock_mutex_unlock(mutex);
}

int run_trylock(void *mutex)
{
    return rlock_mutex_trylock(mutex);
}

int run_pair(void *mutex)
{
    int rc = rlock_mutex_lock(mutex);
    return rc != 0 ? rc : rlock_mutex_unlock(mutex);
}

int run_rdlock(void *rwlock)
{
    return rlock_rwlock_rdlock(rwlock);
}

int run_wrlock(void *rwlock)
{
    return rlock_rwlock_wrlock(rwlock);
}

int run_rwunlock(void *rwlock)
{
    return rlock_rwlock_unlock(rwlock);
}

int run_rwstate(void *rwlock)
{
    rlock_state_t state = RLOCK_UNHELD;
    int rc = rlock_rwlock_getstate(rwlock, &state);
    return rc != 0 ? -rc : (int)state;
}

int run_rwholdcount(void *rwlock)
{
    unsigned count = 0;
    int rc = rlock_rwlock_getholdcount(rwlock, &count);
    return rc != 0 ? -rc : (int)count;
}

int run_rwremaining(void *rwlock)
{
    long ms = 0;
    int rc = rlock_rwlock_getremaining(rwlock, &ms);
    return rc != 0 ? -rc : (int)ms;
}

static void *run_actor(void *arg)
{
    struct actor *a = arg;
    pthread_mutex_lock(&a->mu);
    for (;;) {
        while (!a->run && !a->over)
            pthread_cond_wait(&a->cond, &a->mu);
        if (!a->run)
            break;
        int (*run)(void *) = a->run;
        void *what = a->arg;
        pthread_mutex_unlock(&a->mu);
        int rc = run(what);
        pthread_mutex_lock(&a->mu);
        a->rc = rc;
        a->run = NULL;
    }
    pthread_mutex_unlock(&a->mu);
    return NULL;
}

void actor_start(struct actor *a)
{
    pthread_attr_t attr;

    *a = (struct actor){ .mu = PTHREAD_MUTEX_INITIALIZER,
                         .cond = PTHREAD_COND_INITIALIZER };
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    ck_assert_int_eq(pthread_create(&a->thread, &attr, run_actor, a), 0);
    pthread_attr_destroy(&attr);
}

void actor_begin(struct actor *a, int (*run)(void *arg), void *arg)
{
    pthread_mutex_lock(&a->mu);
    ck_assert(!a->run);
    a->run = run;
    a->arg = arg;
    pthread_cond_signal(&a->cond);
    pthread_mutex_unlock(&a->mu);
}

static bool actor_rests(void *arg)
{
    struct actor *a = arg;
    pthread_mutex_lock(&a->mu);
    bool rests = !a->run;
    pthread_mutex_unlock(&a->mu);
    return rests;
}

bool actor_done(struct actor *a, long ms)
{
    return test_wait_until(actor_rests, a, ms);
}

int actor_rc(struct actor *a)
{
    ck_assert_msg(actor_done(a, 20000), "a thread is still at it");
    return a->rc;
}

int actor_does(struct actor *a, int (*run)(void *arg), void *arg)
{
    actor_begin(a, run, arg);
    return actor_rc(a);
}

void actor_end(struct actor *a)
{
    pthread_mutex_lock(&a->mu);
    a->over = true;
    pthread_cond_signal(&a->cond);
    pthread_mutex_unlock(&a->mu);
    pthread_join(a->thread, NULL);
}

struct waiters {
    rlock_client_t *client;
    unsigned long count;
};

static bool so_many_wait(void *arg)
{
    const struct waiters *w = arg;
    rlock_stats_t stats;
    return rlock_client_getstats(w->client, &stats) == 0 && stats.waiters_now == w->count;
}

bool wait_waiters(rlock_client_t *c, unsigned long n)
{
    struct waiters w = { c, n };
    return test_wait_until(so_many_wait, &w, 20000);
}

#ifdef AS_FAIR
static bool so_many_are_queued(void *arg)
{
    const struct waiters *w = arg;
    return (unsigned long)test_redis_int(redis, "ZCARD", "rlock:{n}:queue") == w->count;
}
#endif

bool wait_in_line(rlock_client_t *c, unsigned long n)
{
    bool in_line = wait_waiters(c, n);
#ifdef AS_FAIR
    struct waiters w = { c, n };
    in_line = in_line && test_wait_until(so_many_are_queued, &w, 20000);
#endif
    return in_line;
}

struct size {
    const char *key;
    int size;
};

static bool has_size(void *arg)
{
    const struct size *s = arg;
    return (int)test_redis_int(redis, "ZCARD", s->key) == s->size;
}

bool wait_size(const char *key, int size)
{
    struct size s = { key, size };
    return test_wait_until(has_size, &s, 20000);
}

struct key {
    const char *name;
    bool there;
};

static bool key_is(void *arg)
{
    const struct key *key = arg;
    return test_redis_exists(redis, key->name) == key->there;
}

bool wait_key(const char *name, bool there, long ms)
{
    struct key key = { name, there };
    return test_wait_until(key_is, &key, ms);
}

/* ---- events */

static bool find_event(void *arg)
{
    rlock_event_kind_t kind = *(const rlock_event_kind_t *)arg;
    bool found = false;
    pthread_mutex_lock(&events_mu);
    for (int i = 0; i < event_count && !found; i++)
        found = !returned[i] && events[i].kind == kind;
    pthread_mutex_unlock(&events_mu);
    return found;
}

const struct told *event_of(rlock_event_kind_t kind, long ms)
{
    const struct told *found = NULL;

    if (!test_wait_until(find_event, &kind, ms))
        return NULL;
    pthread_mutex_lock(&events_mu);
    for (int i = 0; i < event_count && !found; i++) {
        if (!returned[i] && events[i].kind == kind) {
            returned[i] = true;
            found = &events[i];
        }
    }
    pthread_mutex_unlock(&events_mu);
    return found;
}

bool event_seen(rlock_event_kind_t kind)
{
    return find_event(&kind);
}

/* ---- the test that nearly all other tests resemble (suite.h) */

static bool has_renewed(void *arg)
{
    rlock_stats_t stats = stats_of(arg);
    return stats.renewals > 0;
}

START_TEST(all_that_is_common_to_the_tests)
{
    char parameters[64];
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(600));
    reopen_with(parameters);
    rlock_mutex_t m = mutex_of(client, "n"), theirs = fenced_mutex(fixture_other(), "n");
    struct task waiter, local;

    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_trylock(&m));
    task_start(&waiter, run_pair, &theirs);
    task_start(&local, run_pair, &m);
    EXPECT(in_thread(run_trylock, &m), EBUSY);
    EXPECT(in_thread(run_unlock, &m), EPERM);
    ck_assert(test_wait_until(has_renewed, client, 10000));
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_unlock(&m));
    OK(task_join(&waiter));
    OK(task_join(&local));
    EXPECT(rlock_mutex_unlock(&m), EPERM);
    OK(rlock_mutex_lock(&theirs));
    ck_assert_uint_ne(token_of(&theirs), 0);
    struct timespec at = test_in_ms(CLOCK_REALTIME, 20);
    EXPECT(rlock_mutex_timedlock(&m, &at), ETIMEDOUT);
    OK(rlock_mutex_unlock(&theirs));

    /* the client's connections break, and the server loses its hold */
    OK(rlock_mutex_lock(&m));
    test_redis_do(redis, "FLUSHALL");
    test_redis_do(redis, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    ck_assert(event_of(RLOCK_EVENT_LOST, 10000) != NULL);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

Suite *test_warm_up(void)
{
    return test_warm_up_of(all_that_is_common_to_the_tests, fixture_start, fixture_stop,
                           fixture_open, fixture_close);
}
