/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fair lock's scripts with a queue of a given length, without the library.
 *
 * Acquisitions are numbered. Number n holds the lock, and the `length` numbers after it
 * are queued. A run releases n, waits for the grant to n + 1, and queues one more number
 * at the end. The acquisitions belong to ten made-up clients in turn, each with a mailbox
 * of its own, whatever the length, so that only the length differs. There are no renewals
 * or refreshes here: the TTL of a grant and the clients' presence outlast the pauses in
 * which other teams run.
 */
#include "contender.h"

#include "bench.h"
#include "scripts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 10, GRANT_TIMEOUT_MS = 5000 };

#define GRANT_TTL_MS "300000"
#define PRESENCE_MS "300000"

struct client {
    char uuid[RLK_UUID_LEN + 1];
    redisContext *mailbox;
};

struct queue {
    uint64_t length, holder; /* how many wait; the number of the holder */
    redisContext *conn;
    struct client clients[CLIENTS];
    lock_keys_t keys;
    struct command acquire, release;
    int64_t grant_ns, join_ns; /* of the last run */
};

static const struct client *client_of(const struct queue *q, uint64_t number)
{
    return &q->clients[number % CLIENTS];
}

static void write_id(const struct queue *q, uint64_t number, char id[RLK_ID_SIZE])
{
    snprintf(id, RLK_ID_SIZE, "%s:1:%llu:f" GRANT_TTL_MS, client_of(q, number)->uuid,
             (unsigned long long)number);
}

static void join(struct queue *q, uint64_t number, const char *expected)
{
    struct command acquire = q->acquire;
    char id[RLK_ID_SIZE];

    write_id(q, number, id);
    command_add(&acquire, id);
    command_add(&acquire, client_of(q, number)->uuid);
    command_add(&acquire, GRANT_TTL_MS);
    command_add(&acquire, PRESENCE_MS);
    command_add(&acquire, NEVER_TOO_LATE);
    command_add(&acquire, "0");
    command_add(&acquire, "0");
    command_add(&acquire, "0");
    if (!command_answers(q->conn, &acquire, expected))
        die("a request in the queue of %llu was not answered '%s'",
            (unsigned long long)q->length, expected);
}

/* Releases the holder. The next acquisition has to get the grant. */
static void pass_on(struct queue *q)
{
    struct command release = q->release;
    char holder[RLK_ID_SIZE], next[RLK_ID_SIZE];

    write_id(q, q->holder, holder);
    write_id(q, q->holder + 1, next);
    command_add(&release, holder);
    command_add(&release, "0");
    command_add(&release, q->keys[RLK_KEY_CHANNEL]);
    if (!command_answers(q->conn, &release, "released"))
        die("the holder in front of the queue lost its lock");
    q->holder++;
    if (!mailbox_wait(client_of(q, q->holder)->mailbox, next, GRANT_TIMEOUT_MS))
        die("the grant did not come in the order of the queue");
}

static uint64_t run_queue(void *state)
{
    struct queue *q = state;
    int64_t begin = now_ns();

    pass_on(q);
    int64_t granted = now_ns();
    join(q, q->holder + q->length, "queued");
    q->grant_ns = granted - begin;
    q->join_ns = now_ns() - granted;
    return 1;
}

static int64_t grant_ns(void *state)
{
    return ((const struct queue *)state)->grant_ns;
}

static int64_t join_ns(void *state)
{
    return ((const struct queue *)state)->join_ns;
}

/* ---- preparation */

static struct queue *open_queue(const char *name, uint64_t length)
{
    struct queue *q = calloc(1, sizeof(*q));
    char own_name[RLOCK_NAME_MAX + 1];

    if (!q)
        die("out of memory");
    /* each team has a queue of its own, which stays while others run */
    snprintf(own_name, sizeof(own_name), "%s/%llu", name, (unsigned long long)length);
    q->length = length;
    q->conn = redis_open();
    for (int i = 0; i < CLIENTS; i++) {
        make_uuid(q->clients[i].uuid);
        q->clients[i].mailbox = mailbox_open(q->clients[i].uuid);
    }
    make_keys(q->keys, own_name);
    command_load(&q->acquire, q->conn, RLK_FAIR_ACQUIRE, q->keys);
    command_load(&q->release, q->conn, RLK_FAIR_RELEASE, q->keys);
    delete_keys(q->conn, q->keys);
    join(q, 0, "held");
    for (uint64_t number = 1; number <= length; number++)
        join(q, number, "queued");
    return q;
}

static void *open_10(const char *name)
{
    return open_queue(name, 10);
}

static void *open_1000(const char *name)
{
    return open_queue(name, 1000);
}

static void *open_10000(const char *name)
{
    return open_queue(name, 10000);
}

/* A queue that did not keep its length has shown nothing. */
static void check_length(struct queue *q)
{
    redisReply *reply = redis_words(
        q->conn, (const char *const[]){ "ZCARD", q->keys[RLK_KEY_QUEUE], NULL });
    if (reply->type != REDIS_REPLY_INTEGER || (uint64_t)reply->integer != q->length)
        die("%lld in the queue of %llu", reply->integer, (unsigned long long)q->length);
    freeReplyObject(reply);
}

static void close_queue(void *state)
{
    struct queue *q = state;
    check_length(q);
    delete_keys(q->conn, q->keys);
    for (int i = 0; i < CLIENTS; i++)
        redisFree(q->clients[i].mailbox);
    redisFree(q->conn);
    free(q);
}

#define QUEUE(what, opens, timed)                                                        \
    {                                                                                    \
        .label = (what), .open = (opens), .run = run_queue, .close = close_queue,        \
        .timed_ns = (timed)                                                              \
    }
#define GRANT(what, opens) QUEUE(what, opens, grant_ns)
#define JOIN(what, opens) QUEUE(what, opens, join_ns)

const struct contender grant_10 = GRANT("10 wait", open_10);
const struct contender grant_1000 = GRANT("1,000 wait", open_1000);
const struct contender grant_10000 = GRANT("10,000 wait", open_10000);
const struct contender join_10 = JOIN("10 wait", open_10);
const struct contender join_1000 = JOIN("1,000 wait", open_1000);
const struct contender join_10000 = JOIN("10,000 wait", open_10000);
