/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks without the library, over hiredis's blocking connections.
 *
 * The control sends the library's own scripts, with the keys and arguments that the
 * library sends, and does nothing else that a lock needs: no leases, no deadlines, no
 * threads. A waiter blocks on a second connection that is subscribed to its mailbox. So
 * the control shows what the server and this machine allow. The other contender is the
 * usual SET NX PX with compare-and-delete.
 */
#include "contender.h"

#include "bench.h"
#include "histogram.h"
#include "scripts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_SIZE = 128, BACKSTOP_MS = 1000 };

#define LEASE_MS "30000"
#define PRESENCE_MS "3000"

/* The type of lock whose scripts a control sends, and the arguments that only these
 * scripts have. */
struct kind {
    char letter; /* of its ids */
    enum rlk_script_id acquire, release, refresh;
    const char *acquire_more[5], *release_more[2], *refresh_more[4];
};

static const struct kind mutex_kind = {
    .letter = 'm',
    .acquire = RLK_MUTEX_ACQUIRE,
    .release = RLK_MUTEX_RELEASE,
    .refresh = RLK_MUTEX_REFRESH,
    .refresh_more = { "0" },
};
static const struct kind fair_kind = {
    .letter = 'f',
    .acquire = RLK_FAIR_ACQUIRE,
    .release = RLK_FAIR_RELEASE,
    .refresh = RLK_FAIR_REFRESH,
    .acquire_more = { "0" },
    .refresh_more = { "0" },
};
/* The kind's preference, no hand-over to continue, and for a reader no hold to share. */
static const struct kind read_kind = {
    .letter = 'r',
    .acquire = RLK_RWLOCK_READ,
    .release = RLK_RWLOCK_RELEASE,
    .refresh = RLK_RWLOCK_REFRESH,
    .acquire_more = { PHASE_FAIR, "0", "0", "" },
    .release_more = { PHASE_FAIR },
    .refresh_more = { PHASE_FAIR, "0", "0" },
};
static const struct kind write_kind = {
    .letter = 'w',
    .acquire = RLK_RWLOCK_WRITE,
    .release = RLK_RWLOCK_RELEASE,
    .refresh = RLK_RWLOCK_REFRESH,
    .acquire_more = { PHASE_FAIR, "0", "0" },
    .release_more = { PHASE_FAIR },
    .refresh_more = { PHASE_FAIR, "0", "0" },
};

struct control {
    const struct kind *kind;
    redisContext *conn, *mailbox;
    char uuid[RLK_UUID_LEN + 1];
    lock_keys_t keys;
    struct command acquire, release, refresh;
    uint64_t number, waits;
};

static struct control *open_kind(const char *name, const struct kind *kind)
{
    struct control *c = calloc(1, sizeof(*c));

    if (!c)
        die("out of memory");
    c->kind = kind;
    make_uuid(c->uuid);
    make_keys(c->keys, name);
    c->conn = redis_open();
    c->mailbox = mailbox_open(c->uuid);
    command_load(&c->acquire, c->conn, kind->acquire, c->keys);
    command_load(&c->release, c->conn, kind->release, c->keys);
    command_load(&c->refresh, c->conn, kind->refresh, c->keys);
    return c;
}

static void *open_control(const char *name)
{
    return open_kind(name, &mutex_kind);
}

static void *open_fair(const char *name)
{
    return open_kind(name, &fair_kind);
}

static void *open_read(const char *name)
{
    return open_kind(name, &read_kind);
}

static void *open_write(const char *name)
{
    return open_kind(name, &write_kind);
}

static void close_control(void *state)
{
    struct control *c = state;
    redisFree(c->conn);
    redisFree(c->mailbox);
    free(c);
}

/* ---- a pair */

static void add_all(struct command *cmd, const char *const *args)
{
    for (; *args; args++)
        command_add(cmd, *args);
}

static void wait_for_grant(struct control *c, const char *id)
{
    while (!mailbox_wait(c->mailbox, id, BACKSTOP_MS)) {
        struct command refresh = c->refresh;
        command_add(&refresh, c->uuid);
        command_add(&refresh, PRESENCE_MS);
        add_all(&refresh, c->kind->refresh_more);
        command_add(&refresh, id + RLK_UUID_LEN + 1); /* without the uuid */
        if (command_answers(c->conn, &refresh, "held"))
            return;
    }
}

static void make_id(struct control *c, char id[ID_SIZE])
{
    snprintf(id, ID_SIZE, "%s:1:%llu:%c" PRESENCE_MS, c->uuid,
             (unsigned long long)++c->number, c->kind->letter);
}

static void take(struct control *c, const char *id)
{
    struct command acquire = c->acquire;

    command_add(&acquire, id);
    command_add(&acquire, c->uuid);
    command_add(&acquire, LEASE_MS);
    command_add(&acquire, PRESENCE_MS);
    command_add(&acquire, NEVER_TOO_LATE);
    command_add(&acquire, "0");
    command_add(&acquire, "0");
    add_all(&acquire, c->kind->acquire_more);
    if (!command_answers(c->conn, &acquire, "held")) {
        c->waits++;
        wait_for_grant(c, id);
    }
}

static void give_back(struct control *c, const char *id)
{
    struct command release = c->release;

    command_add(&release, id);
    command_add(&release, "0");
    command_add(&release, c->keys[RLK_KEY_CHANNEL]);
    add_all(&release, c->kind->release_more);
    if (!command_answers(c->conn, &release, "released"))
        die("the control lost its lock");
}

static uint64_t run_control(void *state)
{
    char id[ID_SIZE];
    make_id(state, id);
    int64_t before = now_ns();
    take(state, id);
    histogram_note(now_ns() - before);
    give_back(state, id);
    return 1;
}

static uint64_t count_waits(void *state)
{
    return ((const struct control *)state)->waits;
}

const struct contender control_pair = { .label = "control",
                                        .open = open_control,
                                        .run = run_control,
                                        .waits = count_waits,
                                        .close = close_control };
const struct contender control_read_pair = { .label = "control, read",
                                             .open = open_read,
                                             .run = run_control,
                                             .waits = count_waits,
                                             .close = close_control };
const struct contender control_write_pair = { .label = "control, write",
                                              .open = open_write,
                                              .run = run_control,
                                              .waits = count_waits,
                                              .close = close_control };

const struct contender control_fair_pair = { .label = "control, fair",
                                             .open = open_fair,
                                             .run = run_control,
                                             .waits = count_waits,
                                             .close = close_control };

/* ---- nine readings for each writing */

struct control_both {
    struct control *read, *write;
    uint64_t number;
};

static void *open_both(const char *name)
{
    struct control_both *both = calloc(1, sizeof(*both));
    if (!both)
        die("out of memory");
    both->read = open_kind(name, &read_kind);
    both->write = open_kind(name, &write_kind);
    return both;
}

static uint64_t run_both(void *state)
{
    struct control_both *both = state;
    return run_control(both->number++ % 10 == 0 ? both->write : both->read);
}

static void close_both(void *state)
{
    struct control_both *both = state;
    close_control(both->read);
    close_control(both->write);
    free(both);
}

static uint64_t count_both(void *state)
{
    const struct control_both *both = state;
    return both->read->waits + both->write->waits;
}

const struct contender control_mixed = { .label = "control",
                                         .open = open_both,
                                         .run = run_both,
                                         .waits = count_both,
                                         .close = close_both };

/* ---- SET NX PX */

struct set_nx {
    redisContext *conn;
    char uuid[RLK_UUID_LEN + 1];
    char name[RLK_KEY_SIZE];
    char sha[41];
    uint64_t number;
};

static void *open_set_nx(const char *name)
{
    static const char script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                                 "return redis.call('DEL', KEYS[1]) end return 0";
    struct set_nx *s = calloc(1, sizeof(*s));
    if (!s)
        die("out of memory");
    make_uuid(s->uuid);
    snprintf(s->name, sizeof(s->name), "%s", name);
    s->conn = redis_open();
    redisReply *reply =
        redis_words(s->conn, (const char *const[]){ "SCRIPT", "LOAD", script, NULL });
    snprintf(s->sha, sizeof(s->sha), "%s", reply->str ? reply->str : "");
    freeReplyObject(reply);
    return s;
}

static uint64_t run_set_nx(void *state)
{
    struct set_nx *s = state;
    char id[ID_SIZE];
    snprintf(id, sizeof(id), "%s:%llu", s->uuid, (unsigned long long)++s->number);

    redisReply *reply = redis_words(
        s->conn, (const char *const[]){ "SET", s->name, id, "NX", "PX", LEASE_MS, NULL });
    if (reply->type != REDIS_REPLY_STATUS)
        die("SET NX PX found the lock taken");
    freeReplyObject(reply);
    reply = redis_words(
        s->conn, (const char *const[]){ "EVALSHA", s->sha, "1", s->name, id, NULL });
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer != 1)
        die("compare-and-delete did not find its lock");
    freeReplyObject(reply);
    return 1;
}

static void close_set_nx(void *state)
{
    struct set_nx *s = state;
    redisFree(s->conn);
    free(s);
}

const struct contender set_nx_pair = {
    .label = "SET NX PX", .open = open_set_nx, .run = run_set_nx, .close = close_set_nx
};
