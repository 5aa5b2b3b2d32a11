/* SPDX-License-Identifier: Apache-2.0 */
/* State: the log and the processes of the current test. */
#include "rwscene.h"

#include "die.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS_MAX = 32, SECTION_MS = 10000, PRESENCE_MS = 30000 };

#define MAILBOX "rlock:client:"

struct rwlog *rw_log;
struct rw_party rw_parties[RW_PARTIES_MAX];
long rw_count;

static char log_path[TEST_PATH_MAX + 8];
static long next_who;

void rw_open(void)
{
    scene_open();
    snprintf(log_path, sizeof(log_path), "%s/log", scene_server.dir);
    unlink(log_path);
    rw_log = rwlog_map(log_path);
    if (!rw_log)
        test_die("cannot make %s", log_path);
    memset(rw_parties, 0, sizeof(rw_parties));
    rw_count = next_who = 0;
}

void rw_close(void)
{
    for (long i = 0; i < rw_count; i++)
        test_program_end(&rw_parties[i].program);
    rwlog_unmap(rw_log);
    unlink(log_path);
    rw_log = NULL;
    scene_close();
}

/* ---- processes */

/* A process that starts. Its uuid is in the mailbox name that is new. */
struct newcomer {
    struct rw_party *party;
    const redisReply *before;
};

static bool was_there(const struct newcomer *n, const char *channel)
{
    for (size_t i = 0; i < n->before->elements; i++)
        if (strcmp(n->before->element[i]->str, channel) == 0)
            return true;
    return false;
}

static bool has_come(void *arg)
{
    struct newcomer *n = arg;
    struct test_redis *r = test_redis_connect(scene_server.path);
    const redisReply *now = test_redis_do(r, "PUBSUB", "CHANNELS", MAILBOX "*");
    for (size_t i = 0; i < now->elements; i++)
        if (!was_there(n, now->element[i]->str))
            snprintf(n->party->uuid, RW_UUID_SIZE, "%s",
                     now->element[i]->str + strlen(MAILBOX));
    test_redis_close(r);
    return n->party->uuid[0] != '\0';
}

static void start(struct rw_party *p, const struct rw_options *o,
                  const char *const jobs[])
{
    char path[PATH_MAX], url[TEST_URL_MAX + 64], first[24], kind[24], section[24];
    const char *argv[JOBS_MAX + 8] = {
        path, url, RW_LOCK, log_path, first, kind, section
    };
    int n = 7;
    memset(p, 0, sizeof(*p));
    p->first = next_who;
    for (; jobs[p->count]; p->count++)
        argv[n++] = jobs[p->count];
    next_who += p->count;
    test_build_path(path, sizeof(path), "tests/rwcrowd");
    snprintf(url, sizeof(url), "%s?lease=%ld&presence=%ld", scene_server.url,
             o->lease ? o->lease : 30000, o->presence ? o->presence : PRESENCE_MS);
    snprintf(first, sizeof(first), "%ld", p->first);
    snprintf(kind, sizeof(kind), "%d", o->kind);
    snprintf(section, sizeof(section), "%ld", o->section_ms ? o->section_ms : SECTION_MS);
    /* this reply stays valid, because has_come uses another connection */
    struct newcomer newcomer = { p, test_redis_do(scene_redis, "PUBSUB", "CHANNELS",
                                                  MAILBOX "*") };
    test_program_start(&p->program, argv, NULL);
    if (!test_wait_until(has_come, &newcomer, SCENE_SOON_MS))
        test_die("a process of the crowd does not listen");
}

struct rw_party *rw_start_argv(const struct rw_options *options, const char *const jobs[])
{
    if (rw_count == RW_PARTIES_MAX)
        test_die("too many processes");
    struct rw_party *p = &rw_parties[rw_count++];
    start(p, options, jobs);
    return p;
}

void rw_restart_argv(struct rw_party *p, const struct rw_options *options,
                     const char *const jobs[])
{
    test_program_end(&p->program);
    start(p, options, jobs);
}

void rw_kill(struct rw_party *p)
{
    test_program_kill(&p->program);
    p->dead = true;
    for (long i = 0; i < p->count; i++)
        rwlog_add(rw_log, RWLOG_DEAD, p->first + i, 0);
}

void rw_init(rlock_rwlock_t *lock, rlock_client_t *client, int kind)
{
    rlock_rwlockattr_t attr;
    ck_assert_int_eq(rlock_rwlockattr_init(&attr), 0);
    ck_assert_int_eq(rlock_rwlockattr_setclient(&attr, client), 0);
    ck_assert_int_eq(rlock_rwlockattr_setfencing(&attr, 1), 0);
    ck_assert_int_eq(rlock_rwlockattr_setkind_np(&attr, kind), 0);
    ck_assert_int_eq(rlock_rwlock_init(lock, &attr, RW_LOCK), 0);
}

void rw_go(void)
{
    atomic_store(&rw_log->go, true);
}

static int64_t events(void *arg)
{
    const struct rwlog *log = arg;
    return (int64_t)atomic_load(&log->next);
}

bool rw_join(struct rw_totals *ret_totals, long ms)
{
    memset(ret_totals, 0, sizeof(*ret_totals));
    for (long i = 0; i < rw_count; i++) {
        char line[256] = "";
        long n[5] = { 0 };
        if (rw_parties[i].dead)
            continue;
        if (!test_program_read_amid(&rw_parties[i].program, line, sizeof(line), events,
                                    rw_log, ms) ||
            sscanf(line, "sections %ld writes %ld torn %ld lost %ld failed %ld", &n[0],
                   &n[1], &n[2], &n[3], &n[4]) != 5)
            return false;
        ret_totals->sections += n[0];
        ret_totals->writes += n[1];
        ret_totals->torn += n[2];
        ret_totals->lost += n[3];
        ret_totals->failed += n[4];
    }
    return true;
}

bool rw_stop(struct rw_totals *ret_totals, long ms)
{
    atomic_store(&rw_log->stop, true);
    return rw_join(ret_totals, ms);
}

/* ---- looks */

/* The number of the only thread of the process with this id; -1: the process has several
 * threads, or is not the test's. */
static long who_of(const char *id)
{
    for (long i = 0; i < rw_count; i++)
        if (strncmp(rw_parties[i].uuid, id, RW_UUID_SIZE - 1) == 0)
            return rw_parties[i].count == 1 ? rw_parties[i].first : -1;
    return -1;
}

void rw_look(struct rwhistory *h)
{
    static const char script[] = "return {redis.call('HGET', KEYS[1], 'token') or '0', "
                                 "redis.call('ZRANGE', KEYS[2], 0, 0), "
                                 "redis.call('ZRANGE', KEYS[3], 0, -1)}";
    char queue[SCENE_KEY_MAX], rqueue[SCENE_KEY_MAX];
    struct rwhistory_look look = { .writer = -1 };
    look.since = (size_t)atomic_load(&rw_log->next);
    const redisReply *r = test_redis_do(scene_redis, "EVAL", script, "3", RW_LOCK,
                                        scene_key(queue, RW_LOCK, "queue"),
                                        scene_key(rqueue, RW_LOCK, "rqueue"));
    look.till = (size_t)atomic_load(&rw_log->next);
    look.token = strtoull(r->element[0]->str, NULL, 10);
    if (r->element[1]->elements == 1)
        look.writer = who_of(r->element[1]->element[0]->str);
    for (size_t i = 0; i < r->element[2]->elements; i++) {
        long who = who_of(r->element[2]->element[i]->str);
        if (who >= 0 && look.reader_count < RWHISTORY_READERS_MAX)
            look.readers[look.reader_count++] = who;
    }
    rwhistory_look(h, &look);
}

struct question {
    long writers, readers;
};

static long long queued(const char *suffix)
{
    char key[SCENE_KEY_MAX];
    return test_redis_int(scene_redis, "ZCARD", scene_key(key, RW_LOCK, suffix));
}

static bool are_queued(void *arg)
{
    const struct question *q = arg;
    return queued("queue") == q->writers && queued("rqueue") == q->readers;
}

bool rw_wait_queued(long writers, long readers, long ms)
{
    return test_wait_until(are_queued, &(struct question){ writers, readers }, ms);
}

static bool are_inside(void *arg)
{
    const struct question *q = arg;
    return atomic_load(&rw_log->inside) == q->readers;
}

bool rw_wait_inside(long n, long ms)
{
    return test_wait_until(are_inside, &(struct question){ 0, n }, ms);
}

static bool is_clean(void *arg)
{
    (void)arg;
    if (test_redis_exists(scene_redis, RW_LOCK) || queued("queue") + queued("rqueue") > 0)
        return false;
    const redisReply *r = test_redis_do(scene_redis, "KEYS", "*");
    for (size_t i = 0; i < r->elements; i++) {
        char key[SCENE_KEY_MAX];
        struct test_redis *other = test_redis_connect(scene_server.path);
        long long ttl = test_redis_int(other, "PTTL", r->element[i]->str);
        test_redis_close(other);
        if (ttl == -1 &&
            strcmp(r->element[i]->str, scene_key(key, RW_LOCK, "token")) != 0)
            return false;
    }
    return true;
}

bool rw_wait_clean(long ms)
{
    return test_wait_until(is_clean, NULL, ms);
}
