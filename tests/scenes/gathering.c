/* SPDX-License-Identifier: Apache-2.0 */
/* State: one server, one log that all processes of a test append to. */
#include "gathering.h"

#include "die.h"

#include <check.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_SIZE = 256, SLOW_SCALE = 5, FIELDS = 5 };

/* of the test's own client: it never renews while a test counts requests */
#define LONG_LEASE "?lease=3600000"
#define MAILBOX "rlock:client:"

struct test_redis *gather_redis;
struct test_clock gather_clock;
rlock_fair_t gather_lock;

static struct test_server server;
static rlock_client_t *client;
static char log_path[TEST_PATH_MAX + 8];
static FILE *log_file;
static long long newest_ticket; /* the newest ticket seen so far */

/* ---- fixtures */

void gather_start(void)
{
    test_clock_open(&gather_clock);
    test_server_start_env(&server, NULL, gather_clock.env);
}

void gather_stop(void)
{
    test_server_stop(&server);
    test_clock_close(&gather_clock);
}

static void open_client(void)
{
    rlock_mutexattr_t attr;
    char url[TEST_URL_MAX + sizeof(LONG_LEASE)];
    snprintf(url, sizeof(url), "%s%s", server.url, LONG_LEASE);
    int rc = rlock_client_open(&client, url, NULL);
    if (rc == 0)
        rc = rlock_mutexattr_init(&attr);
    if (rc == 0)
        rc = rlock_mutexattr_setclient(&attr, client);
    if (rc == 0)
        rc = rlock_mutexattr_setfencing(&attr, 1);
    if (rc == 0)
        rc = rlock_fair_init(&gather_lock, &attr, GATHER_LOCK);
    if (rc != 0)
        test_die("cannot make the test's own lock: %s", rlock_errmsg());
}

static bool is_nobody_there(void *arg)
{
    (void)arg;
    return test_redis_do(gather_redis, "PUBSUB", "CHANNELS", MAILBOX "*")->elements == 0;
}

void gather_open(void)
{
    test_clock_set_real(&gather_clock, 0);
    test_server_reset(&server);
    gather_redis = test_redis_connect(server.path);
    test_clock_step(&gather_clock, gather_redis, 0);
    /* the processes of a failed test die by themselves, but not at once */
    if (!test_wait_until(is_nobody_there, NULL, GATHER_SOON_MS))
        test_die("clients of an earlier test are left");
    test_server_reset(&server);
    snprintf(log_path, sizeof(log_path), "%s/crowd", server.dir);
    log_file = fopen(log_path, "w+e");
    if (!log_file)
        test_die("cannot make %s", log_path);
    newest_ticket = 0;
    open_client();
}

void gather_close(void)
{
    rlock_fair_unlock(&gather_lock);
    rlock_client_close(client);
    test_redis_close(gather_redis);
    fclose(log_file);
    gather_redis = NULL;
}

long gather_scaled(long count, long few, const char *of_what)
{
    if (test_ms(1) < SLOW_SCALE)
        return count;
    fprintf(stderr, "smaller: %ld %s instead of %ld\n", few, of_what, count);
    return few;
}

/* ---- processes */

/* Whether the mailbox has a listener. */
static bool has_mailbox(void *arg)
{
    const struct member *p = arg;
    char channel[sizeof(MAILBOX) + GATHER_UUID_SIZE];
    snprintf(channel, sizeof(channel), "%s%s", MAILBOX, p->uuid);
    const redisReply *r = test_redis_do(gather_redis, "PUBSUB", "NUMSUB", channel);
    return r->elements == 2 && r->element[1]->integer > 0;
}

static bool has_no_mailbox(void *arg)
{
    return !has_mailbox(arg);
}

/* A process that starts. Its uuid is in the mailbox name that is new. */
struct newcomer {
    struct member *member;
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
    struct test_redis *r = test_redis_connect(server.path);
    const redisReply *now = test_redis_do(r, "PUBSUB", "CHANNELS", MAILBOX "*");
    for (size_t i = 0; i < now->elements; i++)
        if (!was_there(n, now->element[i]->str))
            snprintf(n->member->uuid, GATHER_UUID_SIZE, "%s",
                     now->element[i]->str + strlen(MAILBOX));
    test_redis_close(r);
    return n->member->uuid[0] != '\0';
}

static bool own_mailbox_is_there(void *arg)
{
    (void)arg;
    return test_redis_do(gather_redis, "PUBSUB", "CHANNELS", MAILBOX "*")->elements > 0;
}

void member_start(struct member *p, const char *parameters)
{
    char path[PATH_MAX], url[TEST_URL_MAX + LINE_SIZE];
    memset(p, 0, sizeof(*p));
    /* wait for the test's own mailbox first: if it came later, it would be taken for this
     * process's */
    if (!test_wait_until(own_mailbox_is_there, NULL, GATHER_SOON_MS))
        test_die("the test's own client does not listen");
    /* this reply stays valid, because has_come uses another connection */
    struct newcomer n = { p, test_redis_do(gather_redis, "PUBSUB", "CHANNELS",
                                           MAILBOX "*") };
    test_build_path(path, sizeof(path), "tests/crowd");
    snprintf(url, sizeof(url), "%s%s", server.url, parameters);
    test_program_start(&p->program, TEST_ARGV(path, url, GATHER_LOCK, log_path), NULL);
    p->pid = p->program.pid;
    if (!test_wait_until(has_come, &n, GATHER_SOON_MS))
        test_die("a process of the crowd does not listen");
}

void member_kill(struct member *p)
{
    test_program_kill(&p->program);
    p->dead = true;
    if (!test_wait_until(has_no_mailbox, p, GATHER_SOON_MS))
        test_die("the server does not see that a client is gone");
}

void member_end(struct member *p)
{
    test_program_end(&p->program);
}

long member_tell(struct member *p, const char *format, ...)
{
    char line[LINE_SIZE], answer[LINE_SIZE] = "";
    va_list ap;
    va_start(ap, format);
    vsnprintf(line, sizeof(line), format, ap);
    va_end(ap);
    if (!test_program_write(&p->program, line) ||
        !test_program_read(&p->program, answer, sizeof(answer), GATHER_SOON_MS) ||
        strncmp(answer, "ok", 2) != 0)
        test_die("a process of the crowd got \"%s\" and said \"%s\"", line, answer);
    return strtol(answer + 2, NULL, 10);
}

bool member_has(const struct member *p, const char *id)
{
    size_t n = GATHER_UUID_SIZE - 1;
    return strncmp(p->uuid, id, n) == 0 && id[n] == ':';
}

/* ---- requests one after the other */

struct look {
    const struct member *member;
    struct place *place;
};

static bool is_last(void *arg)
{
    struct look *look = arg;
    const redisReply *r =
        test_redis_do(gather_redis, "ZREVRANGE", GATHER_QUEUE, "0", "0", "WITHSCORES");
    if (r->elements != 2 || !member_has(look->member, r->element[0]->str))
        return false;
    long long ticket = strtoll(r->element[1]->str, NULL, 10);
    snprintf(look->place->id, GATHER_ID_SIZE, "%s", r->element[0]->str);
    look->place->ticket = ticket;
    return ticket > newest_ticket;
}

bool member_asks(struct member *p, long thread, long wait_ms, long hold_us,
                 struct place *ret_place)
{
    member_tell(p, "ask %ld 1 %ld %ld", thread, wait_ms, hold_us);
    long ms = GATHER_SOON_MS;
    if (wait_ms > 0)
        ms = wait_ms / test_ms(1);
    if (!test_wait_until(is_last, &(struct look){ p, ret_place }, ms)) {
        ck_assert_msg(wait_ms > 0, "a request is not seen in the queue");
        return false;
    }
    newest_ticket = ret_place->ticket;
    return true;
}

/* ---- the log of the processes */

bool gather_event(struct event *ret_event)
{
    char line[LINE_SIZE];
    long at = ftell(log_file);
    clearerr(log_file);
    if (!fgets(line, sizeof(line), log_file) || !strchr(line, '\n')) {
        fseek(log_file, at, SEEK_SET);
        return false;
    }
    if (sscanf(line, "%lld %ld %ld %7s %" SCNu64, &ret_event->ns, &ret_event->pid,
               &ret_event->thread, ret_event->what, &ret_event->number) != FIELDS)
        test_die("not a line of the crowd: %s", line);
    return true;
}

/* ---- the data at the server */

long gather_queued(void)
{
    return (long)test_redis_int(gather_redis, "ZCARD", GATHER_QUEUE);
}

static bool are_queued(void *arg)
{
    return gather_queued() == *(long *)arg;
}

bool gather_wait_queued(long n, long ms)
{
    return test_wait_until(are_queued, &n, ms);
}

struct place *gather_queue(size_t *ret_count)
{
    const redisReply *r =
        test_redis_do(gather_redis, "ZRANGE", GATHER_QUEUE, "0", "-1", "WITHSCORES");
    struct place *places = calloc(r->elements / 2 + 1, sizeof(*places));
    if (!places)
        test_die("out of memory");
    for (size_t i = 0; i < r->elements / 2; i++) {
        snprintf(places[i].id, GATHER_ID_SIZE, "%s", r->element[2 * i]->str);
        places[i].ticket = strtoll(r->element[2 * i + 1]->str, NULL, 10);
    }
    *ret_count = r->elements / 2;
    return places;
}

bool gather_holder(char id[GATHER_ID_SIZE], uint64_t *ret_token)
{
    const redisReply *r = test_redis_do(gather_redis, "HGETALL", GATHER_LOCK);
    bool found = false;
    *ret_token = 0;
    for (size_t i = 0; i + 1 < r->elements; i += 2) {
        if (strcmp(r->element[i]->str, "token") == 0)
            *ret_token = strtoull(r->element[i + 1]->str, NULL, 10);
        if (!strchr(r->element[i]->str, ':')) /* other fields: mode, since, token */
            continue;
        snprintf(id, GATHER_ID_SIZE, "%s", r->element[i]->str);
        found = true;
    }
    return found && *ret_token != 0;
}

uint64_t gather_last_token(void)
{
    return strtoull(test_redis_str(gather_redis, "GET", GATHER_TOKEN), NULL, 10);
}

void gather_expect_tidy(void)
{
    struct test_redis *other = test_redis_connect(server.path);
    const redisReply *keys = test_redis_do(gather_redis, "KEYS", "*");
    for (size_t i = 0; i < keys->elements; i++) {
        const char *key = keys->element[i]->str;
        if (strncmp(key, "redisson_lock_token:", strlen("redisson_lock_token:")) == 0)
            continue;
        long long left = test_redis_int(other, "PTTL", key);
        ck_assert_msg(left != -1, "%s has no TTL", key);
        ck_assert_msg(left == -2 || (!strstr(key, ":queue") && !strstr(key, ":rqueue")),
                      "%s is left", key);
    }
    test_redis_close(other);
}

long long gather_scripts_run(void)
{
    return test_redis_calls(gather_redis, "evalsha") +
           test_redis_calls(gather_redis, "eval");
}
