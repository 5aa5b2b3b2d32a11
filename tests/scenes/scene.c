/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "die.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_MAX = 512, ARGS_MAX = 32, STAYS_MS = 80 };

struct test_server scene_server;
struct test_redis *scene_redis;
struct test_proxy *scene_proxy;

static const char by_hand[] =
    "00000000-0000-4000-8000-000000000000:1:1:" SCENE_LETTER "3000";

/* ---- fixtures */

void scene_start(void)
{
    test_server_start(&scene_server, NULL);
}

void scene_stop(void)
{
    test_server_stop(&scene_server);
}

static void load_scripts(void)
{
    for (int i = 0; i < RLK_SCRIPT_COUNT; i++)
        test_redis_do(scene_redis, "SCRIPT", "LOAD", rlk_scripts[i].text);
}

void scene_open(void)
{
    test_server_reset(&scene_server);
    scene_redis = test_redis_connect(scene_server.path);
    load_scripts();
    scene_proxy = test_proxy_start(&scene_server);
}

void scene_close(void)
{
    test_proxy_stop(scene_proxy);
    test_redis_close(scene_redis);
    scene_proxy = NULL;
    scene_redis = NULL;
}

TCase *scene_tcase(Suite *suite, const char *name, void (*open)(void),
                   void (*close)(void))
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, scene_start, scene_stop);
    tcase_add_checked_fixture(tc, open, close);
    suite_add_tcase(suite, tc);
    return tc;
}

/* ---- clients */

static long mailboxes(void)
{
    const redisReply *r =
        test_redis_do(scene_redis, "PUBSUB", "CHANNELS", RLK_MAILBOX_PREFIX "*");
    return (long)r->elements;
}

/* The listeners by name. Their number would not do: it may still include a process that
 * has ended, until the server has seen its connections close. */
struct listeners {
    size_t n;
    char **names;
};

static struct listeners listeners(void)
{
    const redisReply *r =
        test_redis_do(scene_redis, "PUBSUB", "CHANNELS", RLK_MAILBOX_PREFIX "*");
    struct listeners l = { r->elements, calloc(r->elements + 1, sizeof(char *)) };
    ck_assert_ptr_nonnull(l.names);
    for (size_t i = 0; i < l.n; i++) {
        l.names[i] = strdup(r->element[i]->str);
        ck_assert_ptr_nonnull(l.names[i]);
    }
    return l;
}

static bool listened(const struct listeners *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->names[i], name) == 0)
            return true;
    return false;
}

static bool another_listens(void *before)
{
    const redisReply *r =
        test_redis_do(scene_redis, "PUBSUB", "CHANNELS", RLK_MAILBOX_PREFIX "*");
    for (size_t i = 0; i < r->elements; i++)
        if (!listened(before, r->element[i]->str))
            return true;
    return false;
}

static void free_listeners(struct listeners *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->names[i]);
    free(l->names);
}

/* Waits for a listener that was not there before; releases the list. */
static void wait_for_another(struct listeners *before)
{
    ck_assert(test_wait_until(another_listens, before, SCENE_SOON_MS));
    free_listeners(before);
}

rlock_client_t *scene_open_client(const char *url, const struct scene_times *times)
{
    rlock_clientattr_t attr;
    rlock_client_t *client = NULL;
    int rc = rlock_clientattr_init(&attr);
    if (rc == 0 && times && times->lease)
        rc = rlock_clientattr_setlease(&attr, times->lease);
    if (rc == 0 && times && times->presence)
        rc = rlock_clientattr_setpresence(&attr, times->presence);
    if (rc == 0 && times && times->command)
        rc = rlock_clientattr_setcommandtimeout(&attr, times->command);
    if (rc == 0)
        rc = rlock_client_open(&client, url, &attr);
    if (rc != 0)
        test_die("cannot open a client: %s", rlock_errmsg());
    rlock_clientattr_destroy(&attr);
    return client;
}

rlock_client_t *scene_client(const char *url, const struct scene_times *times)
{
    struct listeners before = listeners();
    rlock_client_t *client = scene_open_client(url, times);
    wait_for_another(&before);
    return client;
}

static void make_mutex(rlock_mutex_t *m, rlock_client_t *client, const char *name,
                       int fencing, int robust)
{
    rlock_mutexattr_t attr;
    int rc = rlock_mutexattr_init(&attr);
    if (rc == 0)
        rc = rlock_mutexattr_setclient(&attr, client);
    if (rc == 0)
        rc = rlock_mutexattr_setfencing(&attr, fencing);
#ifdef AS_RWLOCK
    if (robust != RLOCK_MUTEX_STALLED)
        rc = ENOTSUP; /* read-write locks have no such call */
#else
    if (rc == 0)
        rc = rlock_mutexattr_setrobust(&attr, robust);
#endif
    if (rc == 0)
        rc = rlock_mutex_init(m, &attr, name);
    if (rc != 0)
        test_die("cannot make a mutex: %s", rlock_errmsg());
    rlock_mutexattr_destroy(&attr);
}

void scene_mutex(rlock_mutex_t *m, rlock_client_t *client, const char *name)
{
    make_mutex(m, client, name, 0, RLOCK_MUTEX_STALLED);
}

void scene_fenced_mutex(rlock_mutex_t *m, rlock_client_t *client, const char *name)
{
    make_mutex(m, client, name, 1, RLOCK_MUTEX_STALLED);
}

void scene_robust_mutex(rlock_mutex_t *m, rlock_client_t *client, const char *name)
{
    make_mutex(m, client, name, 0, RLOCK_MUTEX_ROBUST);
}

void scene_rwlock(rlock_rwlock_t *l, rlock_client_t *client, const char *name)
{
    rlock_rwlockattr_t attr;
    int rc = rlock_rwlockattr_init(&attr);
    if (rc == 0)
        rc = rlock_rwlockattr_setclient(&attr, client);
    if (rc == 0)
        rc = rlock_rwlock_init(l, &attr, name);
    if (rc != 0)
        test_die("cannot make a read-write lock: %s", rlock_errmsg());
    rlock_rwlockattr_destroy(&attr);
}

void scene_worker(struct worker *w, const char *url, const struct scene_times *times,
                  const char *name, const char *options)
{
    scene_worker_env(w, url, times, name, options, NULL);
}

struct arrival {
    struct worker *w;
    struct listeners before;
};

/* Whether the worker has read a message that was sent after its subscription. Each new
 * listener gets one that says nothing, because the worker may be any of them. */
static bool has_heard(void *arg)
{
    struct arrival *a = arg;
    struct listeners now = listeners();
    for (size_t i = 0; i < now.n; i++)
        if (!listened(&a->before, now.names[i]))
            test_redis_do(scene_redis, "PUBLISH", now.names[i], "0 nothing");
    free_listeners(&a->before);
    a->before = now;
    return scene_stat(a->w, "messages_ignored") > 0;
}

void scene_worker_env(struct worker *w, const char *url, const struct scene_times *times,
                      const char *name, const char *options, const char *const env[])
{
    char command[COMMAND_MAX];
    struct arrival arrival = { w, listeners() };
    worker_start_env(w, NULL, env);
    int n = snprintf(command, sizeof(command), "open %s", url);
    if (times && times->lease)
        n += snprintf(command + n, sizeof(command) - (size_t)n, " lease=%ld",
                      times->lease);
    if (times && times->presence)
        n += snprintf(command + n, sizeof(command) - (size_t)n, " presence=%ld",
                      times->presence);
    if (times && times->command)
        snprintf(command + n, sizeof(command) - (size_t)n, " commandtimeout=%ld",
                 times->command);
    ck_assert(worker_says(w, command, "ok"));
    scene_says(w, "ok", "init m %s" SCENE_KIND " %s", name, options);
    ck_assert(test_wait_until(has_heard, &arrival, SCENE_SOON_MS));
    free_listeners(&arrival.before);
}

void scene_says(struct worker *w, const char *wanted, const char *format, ...)
{
    char command[COMMAND_MAX];
    va_list ap;
    va_start(ap, format);
    vsnprintf(command, sizeof(command), format, ap);
    va_end(ap);
    ck_assert_msg(worker_says(w, command, wanted), "worker: \"%s\" was answered \"%s\"",
                  command, w->answer);
}

void scene_anew(struct worker *a, struct worker *b)
{
    worker_end(a);
    worker_end(b);
    test_redis_do(scene_redis, "FLUSHALL");
}

void scene_worker_waits(struct worker *w, const char *name, long n)
{
    scene_says(w, "ok", "async t lock m");
    ck_assert(scene_wait_queued(name, n, SCENE_SOON_MS));
}

void scene_worker_queues(struct worker *w, const char *name, const char *verb)
{
    const char *queue = strstr(verb, "rdlock") ? "rqueue" : "queue";
    long before = scene_count(name, queue);
    scene_says(w, "ok", "async t %s m", verb);
    ck_assert(scene_wait_count(name, queue, before + 1, SCENE_SOON_MS));
}

void scene_worker_does(struct worker *w, const char *verb)
{
    scene_says(w, "ok", "on t %s m", verb);
}

void scene_worker_has_no_more_than(struct worker *w, long long ms)
{
    long long remaining = worker_number(w, "on t remaining m");
    ck_assert_int_gt(remaining, 0);
    ck_assert_int_le(remaining, ms);
}

void scene_worker_lost(struct worker *w, const char *name)
{
    char news[COMMAND_MAX];
    snprintf(news, sizeof(news), "event LOST %s", name);
    ck_assert(worker_news(w, news, SCENE_SOON_MS));
    scene_says(w, "ok LOST", "on t state m");
    scene_says(w, "ESTALE", "on t unlock m");
}

void scene_worker_ends_in(struct worker *w, const char *thread, const char *code,
                          long long ms)
{
    char prefix[COMMAND_MAX];
    int n = snprintf(prefix, sizeof(prefix), "done %s ", thread);
    const char *news = worker_news(w, prefix, ms);
    ck_assert_msg(news, "%s is still at it", thread);
    ck_assert_str_eq(news + n, code);
}

void scene_worker_ends(struct worker *w, const char *thread, const char *code)
{
    scene_worker_ends_in(w, thread, code, SCENE_SOON_MS);
}

long long scene_stat(struct worker *w, const char *field)
{
    char wanted[64];
    const char *answer = worker_ask(w, "stats", SCENE_SOON_MS);
    snprintf(wanted, sizeof(wanted), " %s=", field);
    const char *at = answer ? strstr(answer, wanted) : NULL;
    ck_assert_ptr_nonnull(at);
    return strtoll(at + strlen(wanted), NULL, 10);
}

struct cancel {
    struct worker *worker;
    char prefix[COMMAND_MAX];
    int rule;
    const char *code;
};

static bool left_or_ended(void *arg)
{
    struct cancel *c = arg;
    if (test_proxy_hits(scene_proxy, c->rule) > 0)
        return true;
    const char *news = worker_news(c->worker, c->prefix, 0);
    c->code = news ? news + strlen(c->prefix) : NULL;
    return news != NULL;
}

bool scene_cancel_left(struct worker *w, const char *thread, int rule)
{
    struct cancel c = { .worker = w, .rule = rule };
    snprintf(c.prefix, sizeof(c.prefix), "done %s ", thread);
    ck_assert(test_wait_until(left_or_ended, &c, SCENE_SOON_MS));
    if (c.code)
        ck_assert_str_eq(c.code, "ETIMEDOUT");
    return !c.code;
}

bool scene_worker_got(struct worker *w, long ms)
{
    const char *news = worker_news(w, "done t", ms);
    return news && strcmp(news, "done t ok") == 0;
}

/* ---- the data at the server */

const char *scene_key(char *buf, const char *name, const char *suffix)
{
    if (strcmp(suffix, "token") == 0)
        snprintf(buf, SCENE_KEY_MAX, "redisson_lock_token:{%s}", name);
    else
        snprintf(buf, SCENE_KEY_MAX, "rlock:{%s}:%s", name, suffix);
    return buf;
}

const char *scene_mark(const char *name)
{
    static char mark[SCENE_ID_MAX + 8];
    char key[SCENE_KEY_MAX];
    const char *found = test_redis_str(scene_redis, "GET", scene_key(key, name, "dirty"));
    snprintf(mark, sizeof(mark), "%s", found ? found : "");
    return mark;
}

bool scene_holder(const char *name, char id[SCENE_ID_MAX])
{
    const redisReply *r = test_redis_do(scene_redis, "HKEYS", name);
    for (size_t i = 0; i < r->elements; i++) {
        if (!strchr(r->element[i]->str, ':')) /* other fields: mode, since, token */
            continue;
        snprintf(id, SCENE_ID_MAX, "%s", r->element[i]->str);
        return true;
    }
    return false;
}

bool scene_member(const char *name, const char *suffix, long i, char id[SCENE_ID_MAX],
                  char score[32])
{
    char key[SCENE_KEY_MAX], at[32];
    snprintf(at, sizeof(at), "%ld", i);
    const redisReply *r = test_redis_do(
        scene_redis, "ZRANGE", scene_key(key, name, suffix), at, at, "WITHSCORES");
    if (r->elements != 2)
        return false;
    snprintf(id, SCENE_ID_MAX, "%s", r->element[0]->str);
    snprintf(score, 32, "%s", r->element[1]->str);
    return true;
}

bool scene_waiter(const char *name, long i, char id[SCENE_ID_MAX], char ticket[32])
{
    return scene_member(name, "queue", i, id, ticket);
}

long scene_count(const char *name, const char *suffix)
{
    char key[SCENE_KEY_MAX];
    return (long)test_redis_int(scene_redis, "ZCARD", scene_key(key, name, suffix));
}

long long scene_now_ms(void)
{
    const redisReply *r = test_redis_do(scene_redis, "TIME");
    return atoll(r->element[0]->str) * 1000 + atoll(r->element[1]->str) / 1000;
}

static bool server_is_past(void *arg)
{
    return scene_now_ms() > *(long long *)arg;
}

void scene_wait_past(long long now_ms)
{
    ck_assert(test_wait_until(server_is_past, &now_ms, SCENE_SOON_MS));
}

long long scene_reader_end(const char *name, const char *id)
{
    char key[SCENE_KEY_MAX];
    const char *end =
        test_redis_str(scene_redis, "ZSCORE", scene_key(key, name, "readers"), id);
    return end ? atoll(end) : 0;
}

long long scene_reader_left(const char *name, const char *id)
{
    long long end = scene_reader_end(name, id);
    return end - scene_now_ms();
}

long long scene_pttl(const char *name)
{
    return test_redis_int(scene_redis, "PTTL", name);
}

long long scene_queue_len(const char *name)
{
    return scene_count(name, "queue");
}

const char *scene_uuid(char *buf, const char *id)
{
    snprintf(buf, RLK_UUID_LEN + 1, "%s", id);
    return buf;
}

struct question {
    const char *name, *id; /* or a companion's suffix */
    long n;
};

static bool is_queued(void *arg)
{
    const struct question *q = arg;
    return scene_queue_len(q->name) == q->n;
}

bool scene_wait_queued(const char *name, long n, long ms)
{
    return test_wait_until(is_queued, &(struct question){ name, NULL, n }, ms);
}

static bool is_counted(void *arg)
{
    const struct question *q = arg;
    return scene_count(q->name, q->id) == q->n;
}

bool scene_wait_count(const char *name, const char *suffix, long n, long ms)
{
    return test_wait_until(is_counted, &(struct question){ name, suffix, n }, ms);
}

static bool is_free(void *arg)
{
    const struct question *q = arg;
    return !test_redis_exists(scene_redis, q->name);
}

static bool is_held(void *arg)
{
    return !is_free(arg);
}

bool scene_wait_free(const char *name, long ms)
{
    return test_wait_until(is_free, &(struct question){ name, NULL, 0 }, ms);
}

bool scene_wait_held(const char *name, long ms)
{
    return test_wait_until(is_held, &(struct question){ name, NULL, 0 }, ms);
}

static bool holder_is_gone(void *arg)
{
    const struct question *q = arg;
    char id[SCENE_ID_MAX];
    return !scene_holder(q->name, id) || strcmp(id, q->id) != 0;
}

bool scene_wait_holder_gone(const char *name, const char *id, long ms)
{
    return test_wait_until(holder_is_gone, &(struct question){ name, id, 0 }, ms);
}

static bool are_listened_to(void *arg)
{
    const struct question *q = arg;
    return mailboxes() >= q->n;
}

bool scene_wait_mailboxes(long n, long ms)
{
    return test_wait_until(are_listened_to, &(struct question){ NULL, NULL, n }, ms);
}

void scene_only_holder(const char *name, char id[SCENE_ID_MAX])
{
    char end[32];
    bool writes = scene_holder(name, id);
    ck_assert_int_eq(writes + scene_count(name, "readers"), 1);
    if (!writes)
        ck_assert(scene_member(name, "readers", 0, id, end));
}

static bool nobody_is_there(void *arg)
{
    const char *name = arg;
    return !test_redis_exists(scene_redis, name) && scene_count(name, "queue") == 0 &&
           scene_count(name, "rqueue") == 0;
}

void scene_nothing_is_left(const char *name)
{
    char text[SCENE_KEY_MAX];
    snprintf(text, sizeof(text), "%s", name);
    ck_assert(test_wait_until(nobody_is_there, text, SCENE_LEFT_MS));
    ck_assert(test_stays(nobody_is_there, text, STAYS_MS));
}

/* ---- faults */

int scene_hold_first(enum rlk_script_id script)
{
    return SCENE_RULE(script, .on = TEST_ON_REQUEST, .action = TEST_HOLD, .count = 1);
}

void scene_let_go(int rule)
{
    test_proxy_release(scene_proxy, rule);
    ck_assert(test_proxy_wait_answered(scene_proxy, rule, 1, SCENE_SOON_MS));
}

int scene_drop_replies(enum rlk_script_id script, unsigned count)
{
    return SCENE_RULE(script, .on = TEST_ON_REPLY, .action = TEST_DROP, .count = count);
}

/* ---- by hand */

void scene_hold_by_hand(const char *name, long ttl_ms)
{
    char ttl[32];
    snprintf(ttl, sizeof(ttl), "%ld", ttl_ms);
    test_redis_do(scene_redis, "HSET", name, by_hand, "1", "mode", SCENE_MODE, "since",
                  "1");
    test_redis_do(scene_redis, "PEXPIRE", name, ttl);
}

void scene_release_by_hand(const char *name)
{
    char channel[SCENE_KEY_MAX];
    snprintf(channel, sizeof(channel), "redisson_lock__channel:{%s}", name);
    /* only the read-write lock's script reads the last argument */
    ck_assert_str_eq(scene_call(RLK_MUTEX_RELEASE, name, by_hand, "0", channel, "16"),
                     "released");
}

const char *scene_call_argv(enum rlk_script_id script, const char *name,
                            const char *const argv[])
{
    const struct rlk_script *s = &rlk_scripts[script];
    char keys[RLK_KEY_COUNT][RLK_KEY_SIZE + 1], count[8];
    const char *all[ARGS_MAX];
    int n = 0;

    snprintf(count, sizeof(count), "%d", s->key_count);
    all[n++] = "EVALSHA";
    all[n++] = s->sha;
    all[n++] = count;
    for (int i = 0; i < s->key_count; i++) {
        keys[i][rlk_key_write(keys[i], s->keys[i], name, strlen(name))] = '\0';
        all[n++] = keys[i];
    }
    all[n++] = RLK_LAYOUT;
    for (int i = 0; argv[i] && n < ARGS_MAX - 1; i++)
        all[n++] = argv[i];
    all[n] = NULL;
    const redisReply *r = test_redis_try_argv(scene_redis, all);
    if (r && r->type == REDIS_REPLY_ERROR)
        return r->str;
    if (!r || r->type != REDIS_REPLY_ARRAY || r->elements < 5)
        test_die("a script by hand has no answer");
    return r->element[4]->str;
}

const char *scene_sha(enum rlk_script_id script)
{
    return rlk_scripts[script].sha;
}

/* ---- the test that nearly all other tests resemble (suite.h) */

START_TEST(all_that_is_common_to_the_tests)
{
    rlock_mutex_t m;
    struct worker w;
    rlock_client_t *client = scene_client(scene_server.url, SCENE_TIMES(.lease = 60000));
    scene_mutex(&m, client, "N");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_worker(&w, test_proxy_url(scene_proxy), NULL, "N", "");
    scene_worker_waits(&w, "N", 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&w, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_trylock(&m), EBUSY);
    scene_worker_does(&w, "unlock");
    worker_end(&w);
    ck_assert_int_eq(rlock_client_close(client), 0);
    scene_nothing_is_left("N");
}
END_TEST

Suite *test_warm_up(void)
{
    return test_warm_up_of(all_that_is_common_to_the_tests, scene_start, scene_stop,
                           scene_open, scene_close);
}
