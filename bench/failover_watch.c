/* SPDX-License-Identifier: Apache-2.0 */
/* See failover.h. */
#include "bench.h"
#include "failover.h"
#include "helpers/redis.h"
#include "wait.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SOURCES = SENTINELS + DATA,
    STEP_MS = 10,
    ANSWER_MS = 120000, /* a hold is taken again, in the worst case after its lease */
    ARGS_SIZE = 16
};

struct contender contenders[CONTENDERS_MAX];
int contender_count;
struct watch_switch watch_switch;

/* Subscriptions: of the sentinels, then of the servers. NULL: not connected. */
static redisContext *sources[SOURCES];

/* ---- connections */

/* NULL: the server does not answer. */
static redisContext *subscribed(const struct test_server *s, const char *command)
{
    const struct timeval bound = { 10, 0 }; /* a busy machine */
    redisContext *context = redisConnectUnixWithTimeout(s->path, bound);
    redisReply *reply = NULL;

    if (context && !context->err && redisSetTimeout(context, bound) == REDIS_OK)
        reply = redisCommand(context, command);
    bool good = reply && reply->type == REDIS_REPLY_ARRAY;
    if (reply)
        freeReplyObject(reply);
    if (good || !context)
        return context;
    redisFree(context);
    return NULL;
}

static void connect_source(int i)
{
    if (i < SENTINELS)
        sources[i] = subscribed(&sentinels[i], "SUBSCRIBE +switch-master");
    else
        sources[i] = subscribed(&data[i - SENTINELS], "PSUBSCRIBE __keyspace@0__:fo-*");
}

void watch_connect(void)
{
    for (int i = 0; i < SOURCES; i++) {
        if (!sources[i])
            connect_source(i);
        if (!sources[i])
            die("cannot subscribe at a server");
    }
}

/* ---- what comes */

/* "mymaster 127.0.0.1 7000 127.0.0.1 7001" */
static void take_switch(const char *text)
{
    unsigned port;

    if (watch_switch.at == 0 && sscanf(text, "%*s %*s %*u %*s %u", &port) == 1) {
        watch_switch.port = port;
        watch_switch.at = now_ns();
    }
}

/* "__keyspace@0__:fo-1-2-345": lock 345 of worker 2 of contender 1. */
static void take_key(const char *channel, int server)
{
    const char *key = strchr(channel, ':');
    unsigned contender, worker, number;

    if (key && sscanf(key, ":fo-%u-%u-%u", &contender, &worker, &number) == 3 &&
        contender < (unsigned)contender_count && worker < WORKERS)
        locks_seen(&contenders[contender], worker, number, server);
}

static void take_reply(const redisReply *reply, int source)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 3 ||
        reply->element[2]->type != REDIS_REPLY_STRING)
        return;
    if (source < SENTINELS)
        take_switch(reply->element[2]->str);
    else
        take_key(reply->element[2]->str, source - SENTINELS);
}

/* A sentinel that gives a server another role cuts all its clients: so at once again. */
static void take_source(int source)
{
    redisContext *context = sources[source];
    void *reply = NULL;

    if (redisBufferRead(context) != REDIS_OK) {
        redisFree(context);
        connect_source(source);
        return;
    }
    while (redisReaderGetReply(context->reader, &reply) == REDIS_OK && reply) {
        take_reply(reply, source);
        freeReplyObject(reply);
    }
}

static void take_lines(struct contender *c)
{
    ssize_t n = read(c->program.out, c->buf + c->len, sizeof(c->buf) - c->len);
    char *line = c->buf;

    if (n <= 0)
        die("%s ended", c->name);
    c->len += (size_t)n;
    for (char *end; (end = memchr(line, '\n', c->len - (size_t)(line - c->buf)));) {
        *end = '\0';
        locks_line(c, line);
        line = end + 1;
    }
    c->len -= (size_t)(line - c->buf);
    memmove(c->buf, line, c->len);
    if (c->len == sizeof(c->buf))
        die("%s writes too long a line", c->name);
}

/* A signal ends the program by exit(), which ends the contenders and the servers. */
static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    interrupted = number;
}

void watch_signals(void)
{
    signal(SIGTERM, interrupt);
    signal(SIGINT, interrupt);
}

static void take(long ms)
{
    struct pollfd fds[SOURCES + CONTENDERS_MAX];
    int count = SOURCES + contender_count;

    for (int i = 0; i < count; i++) {
        fds[i].events = POLLIN;
        fds[i].fd = i >= SOURCES ? contenders[i - SOURCES].program.out
                    : sources[i] ? sources[i]->fd
                                 : -1;
    }
    int ready = poll(fds, (nfds_t)count, (int)ms);
    if (interrupted)
        die("interrupted");
    if (ready < 0 && errno != EINTR)
        die("poll: %s", strerror(errno));
    if (ready <= 0)
        return;
    for (int i = 0; i < count; i++) {
        if (!fds[i].revents || fds[i].fd < 0)
            continue;
        if (i < SOURCES)
            take_source(i);
        else
            take_lines(&contenders[i - SOURCES]);
    }
}

/* ---- waiting */

bool watch_until(bool (*condition)(void *arg), void *arg, long ms)
{
    int64_t until = test_now_ms() + ms;

    while (!condition(arg)) {
        if (test_now_ms() > until)
            return false;
        take(STEP_MS);
    }
    return true;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void watch_for(long ms)
{
    watch_until(never, NULL, ms);
}

static bool has_answered(void *arg)
{
    return ((struct contender *)arg)->answered;
}

const char *watch_ask(struct contender *c, const char *command)
{
    c->answered = false;
    if (!test_program_write(&c->program, command) ||
        !watch_until(has_answered, c, ANSWER_MS))
        die("%s does not answer", c->name);
    return c->answer;
}

/* ---- begin and end */

void watch_forget(void)
{
    take(0);
    memset(&watch_switch, 0, sizeof(watch_switch));
    for (int i = 0; i < contender_count; i++)
        locks_forget(&contenders[i]);
}

void watch_contender(const char *spec)
{
    struct contender *c = &contenders[contender_count];
    char *copy = strdup(spec), *colon = copy ? strstr(copy, ": ") : NULL;
    char tag[ARGS_SIZE], ports[SENTINELS][ARGS_SIZE], *command;

    if (!colon || contender_count == CONTENDERS_MAX)
        die("not a contender, or too many: %s", spec);
    *colon = '\0';
    c->name = copy;
    if (asprintf(&command, "exec %s \"$@\"", colon + 2) < 0)
        die("out of memory");
    snprintf(tag, sizeof(tag), "%d", contender_count);
    for (int i = 0; i < SENTINELS; i++)
        snprintf(ports[i], ARGS_SIZE, "%u", (unsigned)sentinels[i].port);
    test_program_start(
        &c->program,
        TEST_ARGV("sh", "-c", command, "sh", tag, ports[0], ports[1], ports[2]), NULL);
    free(command);
    contender_count++;
}

void watch_end(void)
{
    for (int i = 0; i < contender_count; i++)
        test_program_end(&contenders[i].program);
    for (int i = 0; i < SOURCES; i++)
        if (sources[i])
            redisFree(sources[i]);
}
