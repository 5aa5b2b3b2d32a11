/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes play ping-pong over one condition and one mutex: conditions of the
 * library, the same scripts by hiredis, a plain lock and a look each millisecond, and a
 * list (BLPOP) beside a lock. Then what a signal costs with 10 and with 1,000 waiters,
 * and a broadcast to 1,000 threads of 10 processes beside as many hand-overs of the
 * mutex.
 *
 *     conditions [exchanges]      the server is $RLOCK_URL, which is a Unix socket
 */
#include "scripts.h"

#include <errno.h>
#include <pthread.h>
#include <rlock.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME "bench"
#define NEVER "9000000000000000"

enum {
    ROUNDS = 3,
    ARGS_MAX = 32,
    NS_PER_MS = 1000000,
    WAITERS_FEW = 10,
    WAITERS = 1000,
    PROCESSES = 10,
    STACK = 128 << 10
};

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

/* ---- a broadcast */

/* Threads of PROCESSES processes that wait for the condition, or for the mutex. */
static struct crowd {
    atomic_bool waits, go;
    atomic_int there, awake;
} * crowd;

static void *stand(void *arg)
{
    if (!crowd->waits)
        atomic_fetch_add(&crowd->there, 1);
    must(rlock_mutex_lock(&mutex) == 0, "lock");
    if (crowd->waits)
        atomic_fetch_add(&crowd->there, 1);
    while (crowd->waits && !crowd->go)
        must(rlock_cond_wait(&cond, &mutex) == 0, "wait");
    atomic_fetch_add(&crowd->awake, 1);
    must(rlock_mutex_unlock(&mutex) == 0, "unlock");
    return arg;
}

static void join_crowd(void)
{
    pthread_t threads[WAITERS / PROCESSES];
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    for (int i = 0; i < WAITERS / PROCESSES; i++)
        must(pthread_create(&threads[i], &attr, stand, NULL) == 0, "pthread_create");
    for (int i = 0; i < WAITERS / PROCESSES; i++)
        pthread_join(threads[i], NULL);
    _exit(0);
}

static void until(const atomic_int *count)
{
    while (atomic_load(count) < WAITERS)
        nanosleep(&(struct timespec){ .tv_nsec = NS_PER_MS / 10 }, NULL);
}

/* Until all threads are in the server's queue of the condition. */
static void until_queued(redisContext *c)
{
    for (long long count = 0; count < WAITERS;) {
        redisReply *r = redisCommand(c, "ZCARD rlock:{%s}:cond", NAME);
        must(r && r->type == REDIS_REPLY_INTEGER, "ZCARD");
        count = r->integer;
        freeReplyObject(r);
        nanosleep(&(struct timespec){ .tv_nsec = 10 * NS_PER_MS }, NULL);
    }
}

/* How often the server has executed a command. */
static long long calls_of(redisContext *c, const char *command)
{
    char field[64];

    redisReply *r = redisCommand(c, "INFO commandstats");
    must(r && r->str, "INFO");
    snprintf(field, sizeof(field), "cmdstat_%s:calls=", command);
    const char *at = strstr(r->str, field);
    long long calls = at ? strtoll(at + strlen(field), NULL, 10) : 0;
    freeReplyObject(r);
    return calls;
}

/* Milliseconds until each thread of the crowd has had the mutex; *ret_messages: of the
 * broadcast alone. */
static double wake_ms(redisContext *c, bool waits, long long *ret_messages)
{
    int status;
    pid_t pids[PROCESSES];

    atomic_store(&crowd->waits, waits);
    atomic_store(&crowd->go, false);
    atomic_store(&crowd->there, 0);
    atomic_store(&crowd->awake, 0);
    must(waits || rlock_mutex_lock(&mutex) == 0, "lock");
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        must(pids[i] >= 0, "fork");
        if (pids[i] == 0)
            join_crowd();
    }
    until(&crowd->there);
    if (waits) {
        until_queued(c);
        must(rlock_mutex_lock(&mutex) == 0, "lock");
    } else {
        nanosleep(&(struct timespec){ .tv_nsec = 500L * NS_PER_MS }, NULL);
    }
    atomic_store(&crowd->go, true);
    long long before = calls_of(c, "publish");
    double began = now();
    must(!waits || rlock_cond_broadcast(&cond) == 0, "broadcast");
    *ret_messages = calls_of(c, "publish") - before;
    must(rlock_mutex_unlock(&mutex) == 0, "unlock");
    until(&crowd->awake);
    double ms = (now() - began) * 1e3;
    for (int i = 0; i < PROCESSES; i++) {
        waitpid(pids[i], &status, 0);
        must(status == 0, "crowd");
    }
    return ms;
}

static void print_broadcast(redisContext *c)
{
    double woken = 0, passed = 0, ms;
    long long messages = 0, none;

    freeReplyObject(
        redisCommand(c, "DEL rlock:{%s}:cond rlock:{%s}:condpresent", NAME, NAME));
    for (int i = 0; i < ROUNDS; i++) {
        ms = wake_ms(c, true, &messages);
        woken = i == 0 || ms < woken ? ms : woken;
        ms = wake_ms(c, false, &none);
        passed = i == 0 || ms < passed ? ms : passed;
    }
    printf(
        "broadcast to %d threads of %d processes: %lld messages (%d), all have had the "
        "mutex after %.0f ms; as many hand-overs take %.0f ms, %.2f times (<= 1.5)\n",
        WAITERS, PROCESSES, messages, PROCESSES, woken, passed, woken / passed);
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
    crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    must(crowd != MAP_FAILED, "mmap");
    redisContext *c = dial();
    double raw = best(raw_play, count);
    long long before = calls_of(c, "evalsha");
    double ours = best(rlock_play, count);
    double requests = (double)(calls_of(c, "evalsha") - before) / (2.0 * count * ROUNDS);
    double polled = best(poll_play, count / 10), list = best(list_play, count);
    printf("ping-pong of two processes: %.0f exchanges/s; %.2f of raw hiredis (>= 0.9), "
           "%.1f "
           "times polling each ms (>= 3), %.2f times BLPOP beside a lock\n",
           ours, ours / raw, ours / polled, ours / list);
    printf("requests for an exchange, with its signal, unlock and lock: %.2f (<= 5)\n",
           requests);
    double few = signal_us(c, WAITERS_FEW, count), many = signal_us(c, WAITERS, count);
    printf("a signal with %d waiters: %.1f us; with %d: %.1f us, %.2f times (<= 1.5)\n",
           WAITERS_FEW, few, WAITERS, many, many / few);
    print_broadcast(c);
    return 0;
}
