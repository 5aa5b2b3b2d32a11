/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The read-write lock's scripts with a given number of readers in, without the library.
 *
 * `length` readers enter at the start and stay. In a run one more reader enters, is
 * renewed and leaves: three round trips, each of them timed for a contender of its own.
 * The readers belong to ten made-up clients in turn, each with a hold of its own,
 * whatever the length, so that only the length differs. The other readers are not
 * renewed: their leases outlast the pauses in which other teams run.
 */
#include "contender.h"

#include "bench.h"
#include "scripts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 10, RENEWAL_SIZE = 2 * RLK_ID_SIZE };

#define LEASE_MS "300000"
#define PRESENCE_MS "3000"

struct reading {
    uint64_t length, number; /* how many stay; the number of the latest */
    redisContext *conn;
    char uuids[CLIENTS][RLK_UUID_LEN + 1];
    lock_keys_t keys;
    struct command read, renew, release;
    int64_t enter_ns, renew_ns, leave_ns; /* of the last run */
};

static const char *uuid_of(const struct reading *r, uint64_t number)
{
    return r->uuids[number % CLIENTS];
}

/* The id without the uuid. */
static void write_local(uint64_t number, char id[RLK_ID_SIZE])
{
    snprintf(id, RLK_ID_SIZE, "1:%llu:r" PRESENCE_MS, (unsigned long long)number);
}

static void write_id(const struct reading *r, uint64_t number, char id[RLK_ID_SIZE])
{
    snprintf(id, RLK_ID_SIZE, "%s:1:%llu:r" PRESENCE_MS, uuid_of(r, number),
             (unsigned long long)number);
}

static void ask(struct reading *r, const struct command *cmd, const char *expected)
{
    if (!command_answers(r->conn, cmd, expected))
        die("a request beside %llu readers was not answered '%s'",
            (unsigned long long)r->length, expected);
}

static void enter(struct reading *r, uint64_t number)
{
    struct command cmd = r->read;
    char id[RLK_ID_SIZE];

    write_id(r, number, id);
    command_add(&cmd, id);
    command_add(&cmd, uuid_of(r, number));
    command_add(&cmd, LEASE_MS);
    command_add(&cmd, PRESENCE_MS);
    command_add(&cmd, NEVER_TOO_LATE);
    command_add(&cmd, "0");
    command_add(&cmd, "0");
    command_add(&cmd, PHASE_FAIR);
    command_add(&cmd, "0");
    command_add(&cmd, "0");
    command_add(&cmd, "");
    ask(r, &cmd, "held");
}

static void renew(struct reading *r, uint64_t number)
{
    struct command cmd = r->renew;
    char local[RLK_ID_SIZE], renewal[RENEWAL_SIZE];

    write_local(number, local);
    snprintf(renewal, sizeof(renewal), "%s " LEASE_MS " ", local);
    command_add(&cmd, uuid_of(r, number));
    command_add(&cmd, renewal);
    ask(r, &cmd, "held");
}

static void leave(struct reading *r, uint64_t number)
{
    struct command cmd = r->release;
    char id[RLK_ID_SIZE];

    write_id(r, number, id);
    command_add(&cmd, id);
    command_add(&cmd, "0");
    command_add(&cmd, r->keys[RLK_KEY_CHANNEL]);
    command_add(&cmd, PHASE_FAIR);
    ask(r, &cmd, "released");
}

static uint64_t run_reading(void *state)
{
    struct reading *r = state;
    int64_t begin = now_ns();

    enter(r, ++r->number);
    int64_t entered = now_ns();
    renew(r, r->number);
    int64_t renewed = now_ns();
    leave(r, r->number);
    r->enter_ns = entered - begin;
    r->renew_ns = renewed - entered;
    r->leave_ns = now_ns() - renewed;
    return 1;
}

static int64_t enter_ns(void *state)
{
    return ((const struct reading *)state)->enter_ns;
}

static int64_t renew_ns(void *state)
{
    return ((const struct reading *)state)->renew_ns;
}

static int64_t leave_ns(void *state)
{
    return ((const struct reading *)state)->leave_ns;
}

/* ---- preparation */

static struct reading *open_reading(const char *name, uint64_t length)
{
    struct reading *r = calloc(1, sizeof(*r));
    char own_name[RLOCK_NAME_MAX + 1];

    if (!r)
        die("out of memory");
    /* each team has a reading of its own, which stays while others run */
    snprintf(own_name, sizeof(own_name), "%s/%llu", name, (unsigned long long)length);
    r->length = length;
    r->conn = redis_open();
    for (int i = 0; i < CLIENTS; i++)
        make_uuid(r->uuids[i]);
    make_keys(r->keys, own_name);
    command_load(&r->read, r->conn, RLK_RWLOCK_READ, r->keys);
    command_load(&r->renew, r->conn, RLK_RWLOCK_RENEW, r->keys);
    command_load(&r->release, r->conn, RLK_RWLOCK_RELEASE, r->keys);
    delete_keys(r->conn, r->keys);
    while (r->number < length)
        enter(r, ++r->number);
    return r;
}

static void *open_10(const char *name)
{
    return open_reading(name, 10);
}

static void *open_1000(const char *name)
{
    return open_reading(name, 1000);
}

static void *open_5000(const char *name)
{
    return open_reading(name, 5000);
}

/* A reading that lost some of its readers, or kept a guest, has shown nothing. */
static void check_length(struct reading *r)
{
    redisReply *reply = redis_words(
        r->conn, (const char *const[]){ "ZCARD", r->keys[RLK_KEY_READERS], NULL });
    if (reply->type != REDIS_REPLY_INTEGER || (uint64_t)reply->integer != r->length)
        die("%lld in the reading of %llu", reply->integer, (unsigned long long)r->length);
    freeReplyObject(reply);
}

static void close_reading(void *state)
{
    struct reading *r = state;
    check_length(r);
    delete_keys(r->conn, r->keys);
    redisFree(r->conn);
    free(r);
}

#define READERS(what, opens, timed)                                                      \
    {                                                                                    \
        .label = (what), .open = (opens), .run = run_reading, .close = close_reading,    \
        .timed_ns = (timed)                                                              \
    }

const struct contender enter_10 = READERS("10 read", open_10, enter_ns);
const struct contender enter_1000 = READERS("1,000 read", open_1000, enter_ns);
const struct contender enter_5000 = READERS("5,000 read", open_5000, enter_ns);
const struct contender renew_10 = READERS("10 read", open_10, renew_ns);
const struct contender renew_1000 = READERS("1,000 read", open_1000, renew_ns);
const struct contender renew_5000 = READERS("5,000 read", open_5000, renew_ns);
const struct contender leave_10 = READERS("10 read", open_10, leave_ns);
const struct contender leave_1000 = READERS("1,000 read", open_1000, leave_ns);
const struct contender leave_5000 = READERS("5,000 read", open_5000, leave_ns);
