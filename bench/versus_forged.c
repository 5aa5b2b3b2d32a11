/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user who may only publish to mailboxes can do by a million messages a minute:
 * hand-overs of 16 processes with and without that user, by turns; and the requests that
 * the messages make waiting clients send to the server. The user knows the clients'
 * uuids, and names acquisitions by counting.
 */
#include "versus.h"

#include "bench.h"
#include "process.h"
#include "redis.h"
#include "sample.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PROCESSES = 16,
    ROUNDS = 30,
    QUICK_ROUNDS = 6,
    SLICE_MS = 500,
    SETTLE_MS = 50,
    IDLE_S = 10,
    QUICK_IDLE_S = 2,
    PER_MINUTE = 1000000,
    BATCH = 50,
    FIGURES_MAX = 2 * ROUNDS
};

#define NAME "bench-forged"

struct stage {
    _Atomic bool floods, works, over;
    _Atomic long sent, pairs[VERSIONS][PROCESSES];
    _Atomic int version; /* which team works */
    sem_t ready;
    pid_t members[VERSIONS][PROCESSES];
};

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

/* ---- a member of a team */

static void be_member(struct stage *stage, int version, int i)
{
    struct library lib;
    rlock_mutex_t m;
    rlock_clientattr_t attr;

    library_load(&lib, versus_labels[version], versus_paths[version]);
    library_check(&lib, lib.clientattr_init(&attr), "rlock_clientattr_init");
    /* a waiter asks by itself once in 10 s */
    library_check(&lib, lib.clientattr_setpresence(&attr, 30000), "setpresence");
    library_mutex(&lib, &m, library_client(&lib, &attr), NAME, false);
    sem_post(&stage->ready);
    for (;;) {
        while (!atomic_load(&stage->works) || atomic_load(&stage->version) != version)
            pause_ms(5);
        library_check(&lib, lib.mutex_lock(&m), "lock");
        atomic_fetch_add_explicit(&stage->pairs[version][i], 1, memory_order_relaxed);
        library_check(&lib, lib.mutex_unlock(&m), "unlock");
    }
}

/* ---- the publisher */

/* Finds the mailboxes that are not among the `known`. */
static void find_mailboxes(redisContext *conn, char found[PROCESSES][64],
                           char known[PROCESSES][64])
{
    redisReply *reply = redis_words(
        conn, (const char *const[]){ "PUBSUB", "CHANNELS", "rlock:client:*", NULL });
    size_t count = 0;
    for (size_t i = 0; i < reply->elements && count < PROCESSES; i++) {
        bool is_known = false;
        for (int k = 0; known && k < PROCESSES; k++)
            is_known |= strcmp(known[k], reply->element[i]->str) == 0;
        if (!is_known)
            snprintf(found[count++], 64, "%s", reply->element[i]->str);
    }
    if (count < PROCESSES)
        die("%zu mailboxes", count);
    freeReplyObject(reply);
}

static void publish(redisContext *conn, const char *mailbox, unsigned long n)
{
    const char *uuid = mailbox + strlen("rlock:client:");
    char text[256];
    unsigned long number = n / 3 % 100000;
    if (n % 3 == 0)
        snprintf(text, sizeof(text), "1 lost %s:1:%lu:m30000 " NAME, uuid, number);
    else if (n % 3 == 1)
        snprintf(text, sizeof(text), "1 wanted %s:1:%lu:m30000 " NAME, uuid, number);
    else
        snprintf(text, sizeof(text), "1 grant 0 0 1 1 %s:1:%lu:m30000 5 " NAME, uuid,
                 number);
    const char *argv[] = { "PUBLISH", mailbox, text };
    if (redisAppendCommandArgv(conn, 3, argv, NULL) != REDIS_OK)
        die("cannot publish");
}

/* An even rate: messages that could not go in time are sent later. */
static void be_publisher(struct stage *stage, char mailboxes[VERSIONS][PROCESSES][64])
{
    redisContext *conn = redis_open();
    freeReplyObject(redis_words(
        conn, (const char *const[]){ "AUTH", "bench-publisher", "any", NULL }));
    sem_post(&stage->ready);
    for (unsigned long n = 0;;) {
        while (!atomic_load(&stage->floods))
            pause_ms(1);
        int64_t begin = now_ns();
        long sent = 0;
        while (atomic_load(&stage->floods)) {
            if (sent > (long)((now_ns() - begin) / 1000 * PER_MINUTE / 60 / 1000000)) {
                pause_ms(1);
                continue;
            }
            for (int i = 0; i < BATCH; i++, n++)
                publish(conn, mailboxes[atomic_load(&stage->version)][n % PROCESSES], n);
            for (int i = 0; i < BATCH; i++) {
                void *reply;
                if (redisGetReply(conn, &reply) != REDIS_OK ||
                    ((redisReply *)reply)->type != REDIS_REPLY_INTEGER)
                    die("the publisher is refused");
                freeReplyObject(reply);
            }
            sent += BATCH;
            atomic_fetch_add(&stage->sent, BATCH);
        }
    }
}

/* ---- what is measured */

static long team_pairs(struct stage *stage, int version)
{
    long sum = 0;
    for (int i = 0; i < PROCESSES; i++)
        sum += atomic_load(&stage->pairs[version][i]);
    return sum;
}

static double evalshas(redisContext *conn)
{
    redisReply *reply =
        redis_words(conn, (const char *const[]){ "INFO", "commandstats", NULL });
    const char *at = strstr(reply->str, "cmdstat_evalsha:calls=");
    double calls = at ? strtod(at + strlen("cmdstat_evalsha:calls="), NULL) : 0;
    freeReplyObject(reply);
    return calls;
}

/* CPU time of a team's processes. */
static double members_cpu_us(const struct stage *stage, int version)
{
    double us = 0;
    for (int i = 0; i < PROCESSES; i++)
        us += process_cpu_us(stage->members[version][i]);
    return us;
}

/* Pairs a second. */
static double run_slice(struct stage *stage, int version, bool floods)
{
    atomic_store(&stage->floods, floods);
    pause_ms(SETTLE_MS);
    long before = team_pairs(stage, version);
    int64_t begin = now_ns();
    pause_ms(SLICE_MS);
    double rate =
        (double)(team_pairs(stage, version) - before) * 1e9 / (double)(now_ns() - begin);
    atomic_store(&stage->floods, false);
    return rate;
}

static void print_rates(int version, double *with, double *without, double *ratio,
                        size_t rounds)
{
    double low, high;
    sample_sort(ratio, rounds);
    sample_sort(with, rounds);
    sample_sort(without, rounds);
    sample_median_bounds(ratio, rounds, &low, &high);
    printf("%-8s %10.0f %10.0f   %.2f (%.2f to %.2f) %s\n", versus_labels[version],
           sample_quantile(without, rounds, 0.5), sample_quantile(with, rounds, 0.5),
           sample_quantile(ratio, rounds, 0.5), low, high,
           version == NOW ? "             >= 0.8" : "");
}

static void measure_handovers(struct stage *stage, size_t rounds)
{
    static double with[VERSIONS][ROUNDS], without[VERSIONS][ROUNDS],
        ratio[VERSIONS][ROUNDS];
    double seconds = 0;
    long sent = atomic_load(&stage->sent);

    for (size_t i = 0; i < rounds; i++) {
        for (int version = 0; version < VERSIONS; version++) {
            atomic_store(&stage->version, version);
            atomic_store(&stage->works, true);
            pause_ms(SETTLE_MS);
            /* without, with, with, without; or the other way round */
            double sum[2] = { 0 };
            for (int k = 0; k < 4; k++) {
                bool floods = (k == 1 || k == 2) != (i % 2 == 1);
                sum[floods] += run_slice(stage, version, floods) / 2;
                seconds += floods ? (SLICE_MS + SETTLE_MS) / 1e3 : 0;
            }
            atomic_store(&stage->works, false);
            pause_ms(SETTLE_MS);
            if (sum[0] == 0)
                die("%s: nobody gets the lock any more", versus_labels[version]);
            without[version][i] = sum[0];
            with[version][i] = sum[1];
            ratio[version][i] = sum[1] / sum[0];
        }
    }
    printf("\nhand-overs/s of %d processes, without and with %.0f forged messages a "
           "minute, %zu rounds\n%-8s %10s %10s   %-25s target\n",
           PROCESSES, (double)(atomic_load(&stage->sent) - sent) / seconds * 60, rounds,
           "", "without", "with", "with by without");
    for (int version = 0; version < VERSIONS; version++)
        print_rates(version, with[version], without[version], ratio[version], rounds);
}

/* All but one wait. */
static void measure_requests(struct stage *stage, redisContext *conn, int version,
                             int seconds)
{
    double calls[2], members[2], server[2];
    struct library lib;
    rlock_mutex_t m;
    library_load(&lib, "the holder", versus_paths[NOW]);
    library_mutex(&lib, &m, library_client(&lib, NULL), NAME, false);
    library_check(&lib, lib.mutex_lock(&m), "lock");
    atomic_store(&stage->version, version);
    atomic_store(&stage->works, true);
    pause_ms(1000);
    long sent = atomic_load(&stage->sent);
    for (int floods = 0; floods < 2; floods++) {
        double before = evalshas(conn);
        members[floods] = -members_cpu_us(stage, version);
        server[floods] = -server_cpu_us(conn);
        atomic_store(&stage->floods, floods != 0);
        pause_ms(seconds * 1000L);
        atomic_store(&stage->floods, false);
        pause_ms(100);
        calls[floods] = evalshas(conn) - before;
        members[floods] += members_cpu_us(stage, version);
        server[floods] += server_cpu_us(conn);
    }
    sent = atomic_load(&stage->sent) - sent;
    printf("%-8s %10.0f %10.0f %10ld %10.1f %10.1f %s\n", versus_labels[version],
           calls[0], calls[1], sent, (members[1] - members[0]) / (double)sent,
           (server[1] - server[0]) / (double)sent, version == NOW ? "  as many" : "");
    fflush(stdout);
    atomic_store(&stage->works, false);
    library_check(&lib, lib.mutex_unlock(&m), "unlock");
}

void versus_forged(bool quick)
{
    static char mailboxes[VERSIONS][PROCESSES][64];
    struct stage *stage = memory_shared(sizeof(*stage));
    redisContext *conn = redis_open();

    if (sem_init(&stage->ready, 1, 0) != 0)
        die("no semaphore");
    freeReplyObject(redis_words(
        conn, (const char *const[]){ "ACL", "SETUSER", "bench-publisher", "on", "nopass",
                                     "&rlock:client:*", "+publish", NULL }));
    for (int version = 0; version < VERSIONS; version++) {
        for (int i = 0; i < PROCESSES; i++) {
            pid_t pid = process_fork();
            if (pid == 0)
                be_member(stage, version, i);
            stage->members[version][i] = pid;
            semaphore_wait(&stage->ready);
        }
        find_mailboxes(conn, mailboxes[version],
                       version == BEFORE ? NULL : mailboxes[BEFORE]);
    }
    if (process_fork() == 0)
        be_publisher(stage, mailboxes);
    semaphore_wait(&stage->ready);
    measure_handovers(stage, quick ? QUICK_ROUNDS : ROUNDS);
    printf("\nrequests for locks (EVALSHA) in %d s, while %d processes wait; CPU that a "
           "message costs, us\n%-8s %10s %10s %10s %10s %10s   target\n",
           quick ? QUICK_IDLE_S : IDLE_S, PROCESSES, "", "without", "with", "messages",
           "client", "server");
    for (int version = 0; version < VERSIONS; version++)
        measure_requests(stage, conn, version, quick ? QUICK_IDLE_S : IDLE_S);
    freeReplyObject(redis_words(
        conn, (const char *const[]){ "ACL", "DELUSER", "bench-publisher", NULL }));
}
