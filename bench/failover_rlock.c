/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library as a contender of bench/failover: failover_rlock PARAMETERS TAG PORT...
 * with the parameters of the URL ("" or "?replicas=1") and the ports of the sentinels.
 * Four workers take locks of new names, fo-TAG-WORKER-NUMBER, one after the other, and
 * write a line for each (failover_locks.c). The main thread obeys commands: clock   the
 * time hold    releases the long hold, if there is one, and takes the next,
 * fo-TAG-hold-NUMBER; answers its number and the code of the release check   whether the
 * process knows that the long hold was lost: "lost" or "held" With RLOCK_FAILOVER_LOG in
 * the environment the library's log goes to stderr.
 */
#include <inttypes.h>
#include <rlock.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WORKERS = 4,
    INSIDE_MS = 5,
    PAUSE_MS = 10,
    URL_SIZE = 256,
    NAME_SIZE = 64,
    LINE = 64
};

static rlock_client_t *client;
static const char *tag;
static atomic_bool hold_lost;

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void pause_ms(long ms)
{
    const struct timespec ts = { 0, ms * 1000000 };
    nanosleep(&ts, NULL);
}

static void check(int rc, const char *what)
{
    if (rc != 0) {
        fprintf(stderr, "failover_rlock: %s: %s\n", what, rlock_errmsg());
        exit(EXIT_FAILURE);
    }
}

static void mutex_make(rlock_mutex_t *mutex, const char *name)
{
    rlock_mutexattr_t attr;

    check(rlock_mutexattr_init(&attr), "attributes");
    check(rlock_mutexattr_setclient(&attr, client), "client");
    check(rlock_mutex_init(mutex, &attr, name), "mutex");
}

static void take_one(unsigned worker, unsigned number)
{
    char name[NAME_SIZE];
    rlock_mutex_t mutex;

    snprintf(name, sizeof(name), "fo-%s-%u-%u", tag, worker, number);
    mutex_make(&mutex, name);
    int64_t sent = now_ns();
    int rc = rlock_mutex_lock(&mutex);
    int64_t granted = now_ns();
    if (rc != 0) {
        printf("fail %u %u %" PRId64 " %" PRId64 " lock: %s\n", worker, number, sent,
               granted, rlock_errmsg());
        return;
    }
    pause_ms(INSIDE_MS);
    rc = rlock_mutex_unlock(&mutex);
    printf("lock %u %u %" PRId64 " %" PRId64 " %" PRId64 " %s%s\n", worker, number, sent,
           granted, now_ns(), rc == 0 ? "-" : "unlock: ", rc == 0 ? "" : rlock_errmsg());
}

static void *work(void *arg)
{
    for (unsigned number = 1;; number++) {
        take_one((unsigned)(uintptr_t)arg, number);
        pause_ms(PAUSE_MS);
    }
    return NULL;
}

static void take_event(const rlock_event_t *event, void *arg)
{
    (void)arg;
    if (event->kind == RLOCK_EVENT_LOST && strstr(event->name, "-hold-"))
        hold_lost = true;
}

static void write_log(int level, const char *line, void *arg)
{
    (void)arg;
    fprintf(stderr, "%" PRId64 " %s: <%d> %s\n", now_ns(), tag, level, line);
}

static void open_client(const char *parameters, char *const ports[3])
{
    rlock_clientattr_t attr;
    char url[URL_SIZE];

    snprintf(url, sizeof(url),
             "redis-sentinel://127.0.0.1:%s,127.0.0.1:%s,127.0.0.1:%s/mymaster%s",
             ports[0], ports[1], ports[2], parameters);
    if (getenv("RLOCK_FAILOVER_LOG"))
        rlock_setlogger(write_log, NULL, 7);
    check(rlock_clientattr_init(&attr), "attributes");
    check(rlock_clientattr_seteventcallback(&attr, take_event, NULL), "events");
    check(rlock_client_open(&client, url, &attr), url);
    check(rlock_client_ping(client), url);
}

static int next_hold(rlock_mutex_t *mutex, unsigned number)
{
    int rc = number > 1 ? rlock_mutex_unlock(mutex) : 0;
    char name[NAME_SIZE];

    hold_lost = false;
    snprintf(name, sizeof(name), "fo-%s-hold-%u", tag, number);
    mutex_make(mutex, name);
    while (rlock_mutex_lock(mutex) != 0)
        pause_ms(PAUSE_MS);
    return rc;
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKERS];
    rlock_mutex_t hold;
    unsigned number = 0;
    char line[LINE];

    if (argc != 6)
        return EXIT_FAILURE;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    tag = argv[2];
    open_client(argv[1], argv + 3);
    for (uintptr_t i = 0; i < WORKERS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            return EXIT_FAILURE;
    while (fgets(line, sizeof(line), stdin)) {
        if (strcmp(line, "clock\n") == 0) {
            printf("= %" PRId64 "\n", now_ns());
        } else if (strcmp(line, "hold\n") == 0) {
            int rc = next_hold(&hold, ++number);
            printf("= %u %s\n", number, rc == 0 ? "-" : rlock_strerror(rc));
        } else {
            printf("= %s\n", hold_lost ? "lost" : "held");
        }
    }
    exit(EXIT_SUCCESS);
}
