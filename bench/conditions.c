/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes play ping-pong over one condition and one mutex: conditions of the
 * library, the same scripts by hiredis, a plain lock and a look each millisecond, and a
 * list (BLPOP) beside a lock. Then what a signal costs with 10 and with 1,000 waiters.
 *
 *     conditions [exchanges]      the server is $RLOCK_URL, which is a Unix socket
 */
#include "scripts.h"

#include <errno.h>
#include <rlock.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME "bench"
#define NEVER "9000000000000000"

enum { ROUNDS = 3, ARGS_MAX = 32, NS_PER_MS = 1000000, WAITERS_FEW = 10, WAITERS = 1000 };

static volatile int *turn;
static const char *path; /* of the socket */

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void must(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "conditions: %s: %s\n", what, rlock_errmsg());
    _exit(1);
}

/* ---- hiredis */

static redisContext *dial(void)
{
    redisContext *c = redisConnectUnix(path);
    must(c && !c->err, "connect");
    return c;
}

/* Runs a script of the condition and the mutex of one name; words end with NULL. */
static redisReply *call(redisContext *c, enum rlk_script_id id, ...)
{
    static lock_keys_t keys;
    const struct rlk_script *script = &rlk_scripts[id];
    const char *argv[ARGS_MAX], *word;
    char count[8];
    int argc = 0;
    va_list ap;

    if (!keys[0][0])
        make_keys(keys, NAME);
    snprintf(count, sizeof(count), "%d", script->key_count);
    argv[argc++] = "EVALSHA";
    argv[argc++] = script->sha;
    argv[argc++] = count;
    for (int i = 0; i < script->key_count; i++)
        argv[argc++] = keys[RLK_KEY_KIND(script->keys[i])];
    argv[argc++] = "1";
    va_start(ap, id);
    while ((word = va_arg(ap, const char *)) != NULL)
        argv[argc++] = word;
    va_end(ap);
    redisReply *r = redisCommandArgv(c, argc, argv, NULL);
    must(r != NULL, "script");
    if (r->type == REDIS_REPLY_ERROR && strncmp(r->str, "NOSCRIPT", 8) == 0) {
        freeReplyObject(r);
        argv[0] = "EVAL";
        argv[1] = script->text;
        r = redisCommandArgv(c, argc, argv, NULL);
    }
    must(r && r->type == REDIS_REPLY_ARRAY, r && r->str ? r->str : script->name);
    return r;
}

struct raw {
    redisContext *commands, *mailbox;
    char uuid[40], id[80], wait[80], done[80];
    long number;
};

static void await(struct raw *raw, const char *kind)
{
    for (bool found = false; !found;) {
        redisReply *r;
        must(redisGetReply(raw->mailbox, (void **)&r) == REDIS_OK, "mailbox");
        found =
            r->elements == 3 && r->element[2]->str && strstr(r->element[2]->str, kind);
        freeReplyObject(r);
    }
}

static void raw_lock(struct raw *raw)
{
    snprintf(raw->id, sizeof(raw->id), "%s:1:%ld:m3000", raw->uuid, ++raw->number);
    redisReply *r = call(raw->commands, RLK_MUTEX_ACQUIRE, raw->id, raw->uuid, "30000",
                         "3000", NEVER, "0", "0", NULL);
    bool held = strcmp(r->element[4]->str, "held") == 0;
    freeReplyObject(r);
    if (!held)
        await(raw, " grant ");
}

static void raw_play(int me, int count)
{
    struct raw raw = { .commands = dial(), .mailbox = dial(), .number = 1 };

    snprintf(raw.uuid, sizeof(raw.uuid), "%08x-0000-4000-8000-%012x", me + 1, getpid());
    freeReplyObject(redisCommand(raw.mailbox, "SUBSCRIBE rlock:client:%s", raw.uuid));
    for (int i = 0; i < count; i++) {
        raw_lock(&raw);
        while (*turn != me) {
            long n = ++raw.number;
            snprintf(raw.wait, sizeof(raw.wait), "%s:1:%ld:c3000", raw.uuid, n);
            freeReplyObject(call(raw.commands, RLK_COND_RELEASE, raw.wait, raw.uuid,
                                 "3000", NEVER, "10000", raw.done, "", raw.id, "0",
                                 "redisson_lock__channel:{" NAME "}", NULL));
            await(&raw, " woken ");
            raw_lock(&raw);
            snprintf(raw.done, sizeof(raw.done), "1:%ld:c3000 ", n);
        }
        *turn = !me;
        freeReplyObject(call(raw.commands, RLK_COND_SIGNAL, raw.uuid, "1", "0", "10000",
                             raw.done, "", NULL));
        raw.done[0] = '\0';
        freeReplyObject(call(raw.commands, RLK_MUTEX_RELEASE, raw.id, "0",
                             "redisson_lock__channel:{" NAME "}", NULL));
    }
}

/* ---- the library */

static rlock_mutex_t mutex = RLOCK_MUTEX_INITIALIZER(NAME);
static rlock_cond_t cond = RLOCK_COND_INITIALIZER(NAME);

static void rlock_play(int me, int count)
{
    for (int i = 0; i < count; i++) {
        must(rlock_mutex_lock(&mutex) == 0, "lock");
        while (*turn != me)
            must(rlock_cond_wait(&cond, &mutex) == 0, "wait");
        *turn = !me;
        must(rlock_cond_signal(&cond) == 0, "signal");
        must(rlock_mutex_unlock(&mutex) == 0, "unlock");
    }
}

static void poll_play(int me, int count)
{
    for (int i = 0; i < count; i++) {
        for (bool done = false; !done;) {
            must(rlock_mutex_lock(&mutex) == 0, "lock");
            done = *turn == me;
            if (done)
                *turn = !me;
            must(rlock_mutex_unlock(&mutex) == 0, "unlock");
            if (!done)
                nanosleep(&(struct timespec){ .tv_nsec = NS_PER_MS }, NULL);
        }
    }
}

static void list_play(int me, int count)
{
    redisContext *c = dial();

    for (int i = 0; i < count; i++) {
        must(rlock_mutex_lock(&mutex) == 0, "lock");
        while (*turn != me) {
            must(rlock_mutex_unlock(&mutex) == 0, "unlock");
            freeReplyObject(redisCommand(c, "BLPOP bench-list-%d 0", me));
            must(rlock_mutex_lock(&mutex) == 0, "lock");
        }
        *turn = !me;
        freeReplyObject(redisCommand(c, "RPUSH bench-list-%d x", !me));
        must(rlock_mutex_unlock(&mutex) == 0, "unlock");
    }
}

/* Exchanges per second. */
static double measure(void (*play)(int, int), int count)
{
    int status;

    *turn = 0;
    double began = now();
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        play(1, count);
        _exit(0);
    }
    pid_t other = fork();
    if (other == 0) {
        play(0, count);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    must(status == 0, "player");
    waitpid(other, &status, 0);
    must(status == 0, "player");
    return 2 * count / (now() - began);
}

/* ---- many waiters */

/* Microseconds of a signal while so many wait: their entries are written by hand, of one
 * client that is present. */
static double signal_us(redisContext *c, int waiters, int count)
{
    const char *uuid = "ffffffff-0000-4000-8000-00000000000f";

    freeReplyObject(
        redisCommand(c, "DEL rlock:{%s}:cond rlock:{%s}:condpresent", NAME, NAME));
    freeReplyObject(
        redisCommand(c, "ZADD rlock:{%s}:condpresent 9999999999999 %s", NAME, uuid));
    for (int i = 0; i < waiters + count; i++)
        freeReplyObject(redisCommand(c, "ZADD rlock:{%s}:cond %lld %s:%d:1:c3000", NAME,
                                     200000000000000LL + i, uuid, i));
    redisContext *listener = dial();
    freeReplyObject(redisCommand(listener, "SUBSCRIBE rlock:client:%s", uuid));
    double began = now();
    for (int i = 0; i < count; i++)
        freeReplyObject(call(c, RLK_COND_SIGNAL, "eeeeeeee-0000-4000-8000-00000000000e",
                             "1", "0", "10000", "", "", NULL));
    double us = (now() - began) * 1e6 / count;
    redisFree(listener);
    return us;
}

static double best(void (*play)(int, int), int count)
{
    double most = 0;

    for (int i = 0; i < ROUNDS; i++) {
        double rate = measure(play, count);
        if (rate > most)
            most = rate;
    }
    return most;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 2000;
    const char *url = getenv("RLOCK_URL");

    must(url && strncmp(url, "unix://", 7) == 0, "$RLOCK_URL is not a Unix socket");
    path = strndup(url + 7, strcspn(url + 7, "?"));
    turn = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                0);
    must(turn != MAP_FAILED, "mmap");
    double raw = best(raw_play, count), ours = best(rlock_play, count);
    double polled = best(poll_play, count / 10), list = best(list_play, count);
    printf("ping-pong of two processes: %.0f exchanges/s; %.2f of raw hiredis (>= 0.9), "
           "%.1f "
           "times polling each ms (>= 3), %.2f times BLPOP beside a lock\n",
           ours, ours / raw, ours / polled, ours / list);
    redisContext *c = dial();
    double few = signal_us(c, WAITERS_FEW, count), many = signal_us(c, WAITERS, count);
    printf("a signal with %d waiters: %.1f us; with %d: %.1f us, %.2f times (<= 1.5)\n",
           WAITERS_FEW, few, WAITERS, many, many / few);
    return 0;
}
