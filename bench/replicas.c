/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of replicas=1: replicas ROUNDS PAIRS, at the server of $RLOCK_URL,
 * which has a replica (bench/replicas_run starts both). In each round, one after the
 * other: pairs of the library with replicas=1, the same commands by hiredis (the acquire
 * and its WAIT in one write), and pairs of the library without replicas. Prints medians
 * and ratios.
 */
#include "bench.h"
#include "scripts.h"

#include <rlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 99, ID_SIZE = 128, URL_SIZE = 512, WARM_UP = 10, WAYS = 3 };

static void take_reply(redisContext *c)
{
    void *reply = NULL;

    if (redisGetReply(c, &reply) != REDIS_OK)
        die("%s", c->errstr);
    if (((redisReply *)reply)->type == REDIS_REPLY_ERROR)
        die("%s", ((redisReply *)reply)->str);
    freeReplyObject(reply);
}

static void append(redisContext *c, const struct command *cmd)
{
    redisAppendCommandArgv(c, cmd->argc, (const char **)(uintptr_t)cmd->argv, cmd->len);
}

/* ---- pairs; us each */

static double raw_pairs(long pairs)
{
    static lock_keys_t keys;
    static char uuid[RLK_UUID_LEN + 1];
    redisContext *c = redis_open();
    struct command acquire, release;

    make_uuid(uuid);
    make_keys(keys, "bench-replicas-raw");
    command_load(&acquire, c, RLK_MUTEX_ACQUIRE, keys);
    command_load(&release, c, RLK_MUTEX_RELEASE, keys);
    int64_t begin = now_ns();
    for (long i = 0; i < pairs; i++) {
        struct command a = acquire, r = release;
        char id[ID_SIZE];
        snprintf(id, sizeof(id), "%s:1:%ld:m3000", uuid, i + 1);
        const char *const args[] = { id,  uuid, "30000", "3000", NEVER_TOO_LATE,
                                     "0", "0",  "1" };
        for (size_t j = 0; j < sizeof(args) / sizeof(args[0]); j++)
            command_add(&a, args[j]);
        append(c, &a);
        redisAppendCommand(c, "WAIT 1 200");
        take_reply(c);
        take_reply(c);
        command_add(&r, id);
        command_add(&r, "0");
        command_add(&r, keys[RLK_KEY_CHANNEL]);
        append(c, &r);
        take_reply(c);
    }
    double us = (double)(now_ns() - begin) / 1000 / (double)pairs;
    redisFree(c);
    return us;
}

static double library_pairs(const char *url, long pairs)
{
    rlock_client_t *client = NULL;
    rlock_mutexattr_t attr;
    rlock_mutex_t mutex;
    int64_t begin = 0;

    if (rlock_client_open(&client, url, NULL) != 0 || rlock_client_ping(client) != 0)
        die("%s", rlock_errmsg());
    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setclient(&attr, client);
    rlock_mutex_init(&mutex, &attr, "bench-replicas");
    for (long i = -WARM_UP; i < pairs; i++) {
        if (i == 0)
            begin = now_ns();
        if (rlock_mutex_lock(&mutex) != 0 || rlock_mutex_unlock(&mutex) != 0)
            die("%s", rlock_errmsg());
    }
    double us = (double)(now_ns() - begin) / 1000 / (double)pairs;
    (void)rlock_client_close(client);
    return us;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), by_size);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    double us[WAYS][ROUNDS_MAX];
    char url[URL_SIZE];
    const char *server = getenv("RLOCK_URL");

    if (argc != 3 || !server)
        die("usage: replicas ROUNDS PAIRS, with $RLOCK_URL");
    int rounds = atoi(argv[1]);
    long pairs = atol(argv[2]);
    if (rounds < 1 || rounds > ROUNDS_MAX)
        die("1 to %d rounds", ROUNDS_MAX);
    snprintf(url, sizeof(url), "%s?replicas=1", server);
    for (int i = 0; i < rounds; i++) {
        us[0][i] = library_pairs(url, pairs);
        us[1][i] = raw_pairs(pairs);
        us[2][i] = library_pairs(server, pairs);
        printf("round %d: replicas=1 %.1f, raw %.1f, without %.1f us/pair\n", i + 1,
               us[0][i], us[1][i], us[2][i]);
    }
    double with = median(us[0], rounds), raw = median(us[1], rounds),
           without = median(us[2], rounds);
    printf("replicas=1 %.1f us/pair; %.2f of raw hiredis (<= 1.15), %.2f of the library "
           "without replicas\n",
           with, with / raw, with / without);
    return 0;
}
