/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_locks URL MODE PORT... -- COMMAND: the library's side in scripts/redisson in a
 * cluster, with the ports of its nodes. COMMAND is a command of the shell that starts
 * ClusterLocks.java. Both sides add to a counter under one mutex: none may be lost. Then
 * each waits for the other's unlock, COUNT times, and the time from the unlock to the
 * return of lock() is printed. A wake-up that took longer than WOKEN_MS came from no
 * message: the library polls after a third of its presence, and Redisson looks again when
 * the lease ends that it has seen. MODE is that of ClusterLocks.java. With SLAVE
 * Redisson may wait for the end of that lease; see doc/CLUSTER.md.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <pthread.h>
#include <rlock.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    THREADS = 2,
    TIMES = 1000, /* of each thread, on each side */
    COUNT = 30,
    WOKEN_MS = 5000,
    PRESENCE_MS = 30000,
    LEASE_MS = 120000,
    SHORT_LEASE_MS = 4000, /* where Redisson waits for its end */
    LATE_MS = 60000,
    SETTLE_MS = 100, /* for the look that follows a subscription */
    NODES_MAX = 16,
    NAME_SIZE = 32,
    LINE_SIZE = 256
};

static rlock_client_t *client;
static redisContext *nodes[NODES_MAX];
static int node_count;
static FILE *to_java, *from_java;

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "cluster_locks: %s: %s\n", what, rlock_errmsg());
    exit(1);
}

static void check(int rc, const char *what)
{
    if (rc != 0)
        die(what);
}

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

/* ---- Redisson's side */

static void start_java(const char *command)
{
    int in[2], out[2];

    if (pipe(in) != 0 || pipe(out) != 0)
        die("pipe");
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[1]);
        close(out[0]);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_java = fdopen(in[1], "w");
    from_java = fdopen(out[0], "r");
    if (!to_java || !from_java)
        die("fdopen");
}

static void tell(const char *verb, const char *rest)
{
    fprintf(to_java, "%s %s\n", verb, rest);
    if (fflush(to_java) != 0)
        die("Redisson's side has ended");
}

/* Returns the number behind the word. */
static int64_t await_word(const char *word)
{
    char line[LINE_SIZE];

    if (!fgets(line, sizeof(line), from_java) || strncmp(line, word, strlen(word)) != 0)
        die("Redisson's side does not answer");
    return strtoll(line + strlen(word), NULL, 10);
}

/* ---- the servers */

static redisReply *command_at(int node, const char *format, const char *arg)
{
    redisReply *reply = redisCommand(nodes[node], format, arg);

    if (!reply)
        die("a node does not answer");
    return reply;
}

/* The connection to the node that has the key. */
static redisContext *node_of(const char *key)
{
    for (int i = 0; i < node_count; i++) {
        redisReply *reply = command_at(i, "GET %s", key);
        bool is = reply->type != REDIS_REPLY_ERROR;
        freeReplyObject(reply);
        if (is)
            return nodes[i];
    }
    die("no node has the key");
}

static long long listeners_by(const char *verb, const char *channel)
{
    long long sum = 0;
    char format[NAME_SIZE];

    snprintf(format, sizeof(format), "PUBSUB %s %%s", verb);
    for (int i = 0; i < node_count; i++) {
        redisReply *reply = command_at(i, format, channel);
        if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
            sum += reply->element[1]->integer;
        freeReplyObject(reply);
    }
    return sum;
}

/* Waits until some side listens to the lock's channel anywhere, and has looked at the
 * lock again. */
static void await_listener(const char *name)
{
    char channel[2 * NAME_SIZE];

    snprintf(channel, sizeof(channel), "redisson_lock__channel:{%s}", name);
    for (int ms = 0; listeners_by("NUMSUB", channel) == 0 &&
                     listeners_by("SHARDNUMSUB", channel) == 0;
         ms++) {
        if (ms == LATE_MS)
            die("nobody listens to the channel");
        pause_ms(1);
    }
    pause_ms(SETTLE_MS);
}

/* ---- the counter */

static void *count(void *arg)
{
    static const char key[] = "counter";
    redisContext *node = arg;
    rlock_mutex_t m;
    rlock_mutexattr_t attr;

    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setclient(&attr, client);
    check(rlock_mutex_init(&m, &attr, "counted"), "init");
    for (int i = 0; i < TIMES; i++) {
        check(rlock_mutex_lock(&m), "lock");
        redisReply *was = redisCommand(node, "GET %s", key);
        long value = was && was->type == REDIS_REPLY_STRING ? atol(was->str) : 0;
        redisReply *set = redisCommand(node, "SET %s %ld", key, value + 1);
        if (!was || !set || set->type != REDIS_REPLY_STATUS)
            die("the counter cannot be written");
        freeReplyObject(was);
        freeReplyObject(set);
        check(rlock_mutex_unlock(&m), "unlock");
    }
    return NULL;
}

/* One connection for all threads: they use it under the lock. */
static bool count_by_all(void)
{
    pthread_t threads[THREADS];
    char rest[LINE_SIZE];
    redisContext *node = node_of("counter");

    freeReplyObject(redisCommand(node, "DEL counter"));
    snprintf(rest, sizeof(rest), "counted counter %d %d", TIMES, THREADS);
    tell("count", rest);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, count, node) != 0)
            die("no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    await_word("counted");
    redisReply *reply = redisCommand(node, "GET counter");
    long value = reply && reply->type == REDIS_REPLY_STRING ? atol(reply->str) : 0;
    freeReplyObject(reply);
    printf("  counted %ld of %d by both sides\n", value, 2 * THREADS * TIMES);
    return value == 2 * THREADS * TIMES;
}

/* ---- wake-ups */

static rlock_mutex_t mutex_of(const char *name)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t m;

    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setclient(&attr, client);
    check(rlock_mutex_init(&m, &attr, name), "init");
    return m;
}

struct waiter {
    rlock_mutex_t mutex;
    int64_t got_at;
};

static void *wait_for_it(void *arg)
{
    struct waiter *w = arg;

    check(rlock_mutex_lock(&w->mutex), "lock");
    w->got_at = now_ns();
    check(rlock_mutex_unlock(&w->mutex), "unlock");
    return NULL;
}

/* ns from Redisson's unlock to the library's lock. */
static int64_t wake_library(const char *name)
{
    struct waiter w = { .mutex = mutex_of(name) };
    pthread_t thread;

    tell("hold", name);
    await_word("held");
    if (pthread_create(&thread, NULL, wait_for_it, &w) != 0)
        die("no thread");
    await_listener(name);
    tell("release", name);
    int64_t released_at = await_word("released");
    pthread_join(thread, NULL);
    return w.got_at - released_at;
}

static int64_t wake_redisson(const char *name)
{
    rlock_mutex_t m = mutex_of(name);

    check(rlock_mutex_lock(&m), "lock");
    tell("wait", name);
    await_listener(name);
    int64_t released_at = now_ns();
    check(rlock_mutex_unlock(&m), "unlock");
    return await_word("got") - released_at;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Returns whether all were woken by a message. */
static bool wake(const char *who, int64_t (*wake_once)(const char *), int times)
{
    int64_t ns[COUNT];
    char name[NAME_SIZE];
    int woken = 0;

    for (int i = 0; i < times; i++) { /* names of all nodes */
        snprintf(name, sizeof(name), "%.5s-%d", who, i);
        ns[i] = wake_once(name);
        woken += ns[i] < WOKEN_MS * INT64_C(1000000);
    }
    qsort(ns, (size_t)times, sizeof(*ns), by_size);
    printf("  %s: median %.1f ms, longest %.1f ms; %d of %d in %d ms\n", who,
           (double)ns[times / 2] / 1e6, (double)ns[times - 1] / 1e6, woken, times,
           WOKEN_MS);
    fflush(stdout);
    return woken == times;
}

/* ---- all of it */

static void open_client(const char *url, long lease_ms)
{
    char text[LINE_SIZE * 2];

    snprintf(text, sizeof(text), "%s?presence=%d&lease=%ld", url, PRESENCE_MS, lease_ms);
    check(rlock_client_open(&client, text, NULL), "open");
    check(rlock_client_ping(client), "ping");
}

int main(int argc, char **argv)
{
    int at = 3;
    bool good;

    if (argc < 6)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    bool by_replicas = strcmp(argv[2], "SLAVE") == 0;
    for (; at < argc && strcmp(argv[at], "--") != 0 && node_count < NODES_MAX; at++) {
        redisContext *node = redisConnect("127.0.0.1", atoi(argv[at]));
        if (!node || node->err)
            die("no connection");
        nodes[node_count++] = node;
    }
    if (at + 2 != argc)
        return 2;
    start_java(argv[at + 1]);
    open_client(argv[1], by_replicas ? SHORT_LEASE_MS : LEASE_MS);
    await_word("ready");
    good = count_by_all();
    good = wake("rlock, woken by Redisson's unlock", wake_library, COUNT) && good;
    if (by_replicas) /* nothing is promised */
        wake("Redisson, after rlock's unlock", wake_redisson, 5);
    else
        good = wake("Redisson, woken by rlock's unlock", wake_redisson, COUNT) && good;
    fclose(to_java);
    check(rlock_client_close(client), "close");
    return !good;
}
