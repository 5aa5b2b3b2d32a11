/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks without the library, over hiredis's blocking connections.
 *
 * The control sends the library's own scripts, with the keys and arguments that the
 * library sends, and does nothing else that a lock needs: no leases, no deadlines, no
 * threads. A waiter blocks on a second connection that is subscribed to its mailbox. So
 * it shows what the server and this machine allow. The other one is the usual SET NX PX
 * with compare-and-delete.
 */
#include "contender.h"

#include "bench.h"
#include "redis.h"
#include "script.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { ARGS_MAX = 3 + RLK_KEY_COUNT + 8, ID_SIZE = 128, BACKSTOP_MS = 1000 };

#define LEASE_MS "30000"
#define PRESENCE_MS "3000"
#define NEVER_TOO_LATE "9007199254740991"

/* A script with its keys; the arguments are put behind them for each call. */
struct command {
    int argc;
    const char *argv[ARGS_MAX];
    size_t len[ARGS_MAX];
};

struct control {
    redisContext *conn, *mailbox;
    char uuid[RLK_UUID_LEN + 1];
    char keys[RLK_KEY_COUNT][RLK_KEY_SIZE];
    struct command acquire, release, refresh;
    uint64_t number, waits;
};

/* ---- preparation */

static void make_uuid(char uuid[RLK_UUID_LEN + 1])
{
    uint32_t r[4];
    if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
        die("no random bytes");
    snprintf(uuid, RLK_UUID_LEN + 1, "%08x-%04x-4%03x-8%03x-%04x%08x", r[0], r[1] >> 16,
             r[1] & 0xfff, r[2] >> 20, r[2] & 0xffff, r[3]);
}

static void make_keys(struct control *c, const char *name)
{
    static const char *const formats[RLK_KEY_COUNT] = {
        [RLK_KEY_N] = "%s",
        [RLK_KEY_QUEUE] = "rlock:{%s}:queue",
        [RLK_KEY_RQUEUE] = "rlock:{%s}:rqueue",
        [RLK_KEY_PRESENT] = "rlock:{%s}:present",
        [RLK_KEY_READERS] = "rlock:{%s}:readers",
        [RLK_KEY_CANCELLED] = "rlock:{%s}:cancelled",
        [RLK_KEY_KEEPERS] = "rlock:{%s}:keepers",
        [RLK_KEY_DIRTY] = "rlock:{%s}:dirty",
        [RLK_KEY_TOKEN] = "redisson_lock_token:{%s}",
        [RLK_KEY_CHANNEL] = "redisson_lock__channel:{%s}",
    };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    for (int i = 0; i < RLK_KEY_COUNT; i++)
        snprintf(c->keys[i], RLK_KEY_SIZE, formats[i], name);
#pragma GCC diagnostic pop
}

static void add(struct command *cmd, const char *word, size_t len)
{
    cmd->argv[cmd->argc] = word;
    cmd->len[cmd->argc++] = len;
}

static void add_word(struct command *cmd, const char *word)
{
    add(cmd, word, strlen(word));
}

/* Loads a script; the command ends with the layout. */
static void make_command(struct control *c, struct command *cmd, enum rlk_script_id id)
{
    static const char *const counts[] = {
        "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"
    };
    const struct rlk_script *script = &rlk_scripts[id];

    freeReplyObject(redis_words(
        c->conn, (const char *const[]){ "SCRIPT", "LOAD", script->text, NULL }));
    add_word(cmd, "EVALSHA");
    add_word(cmd, script->sha);
    add_word(cmd, counts[script->key_count]);
    for (int i = 0; i < script->key_count; i++)
        add_word(cmd, c->keys[script->keys[i]]);
    add_word(cmd, RLK_LAYOUT);
}

static void *open_control(const char *name)
{
    struct control *c = calloc(1, sizeof(*c));
    char channel[sizeof(RLK_MAILBOX_PREFIX) + RLK_UUID_LEN];

    if (!c)
        die("out of memory");
    make_uuid(c->uuid);
    make_keys(c, name);
    c->conn = redis_open();
    c->mailbox = redis_open();
    make_command(c, &c->acquire, RLK_MUTEX_ACQUIRE);
    make_command(c, &c->release, RLK_MUTEX_RELEASE);
    make_command(c, &c->refresh, RLK_MUTEX_REFRESH);
    snprintf(channel, sizeof(channel), RLK_MAILBOX_PREFIX "%s", c->uuid);
    freeReplyObject(
        redis_words(c->mailbox, (const char *const[]){ "SUBSCRIBE", channel, NULL }));
    return c;
}

static void close_control(void *state)
{
    struct control *c = state;
    redisFree(c->conn);
    redisFree(c->mailbox);
    free(c);
}

/* ---- a pair */

/* Runs a command; whether the answer says `what` became of the id. */
static bool answers(struct control *c, const struct command *cmd, const char *what)
{
    enum { WHAT = 4 };
    redisReply *reply = redis_call(c->conn, cmd->argc, cmd->argv, cmd->len);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements <= WHAT ||
        reply->element[WHAT]->type != REDIS_REPLY_STRING)
        die("the answer is none of a lock script");
    bool same = strcmp(reply->element[WHAT]->str, what) == 0;
    freeReplyObject(reply);
    return same;
}

/* One message of the mailbox that was received, or the confirmation of the subscription.
 */
static bool take_message(struct control *c, redisReply **ret_reply)
{
    void *reply = NULL;
    if (redisGetReplyFromReader(c->mailbox, &reply) != REDIS_OK)
        die("mailbox: %s", c->mailbox->errstr);
    *ret_reply = reply;
    return reply != NULL;
}

static bool is_granted(const redisReply *reply, const char *id)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
           reply->element[2]->type == REDIS_REPLY_STRING &&
           strstr(reply->element[2]->str, id) != NULL;
}

static void wait_for_grant(struct control *c, const char *id, size_t id_len)
{
    struct pollfd mailbox = { .fd = c->mailbox->fd, .events = POLLIN };
    redisReply *reply;

    for (;;) {
        while (take_message(c, &reply)) {
            bool granted = is_granted(reply, id);
            freeReplyObject(reply);
            if (granted)
                return;
        }
        if (poll(&mailbox, 1, BACKSTOP_MS) > 0) {
            if (redisBufferRead(c->mailbox) != REDIS_OK)
                die("mailbox: %s", c->mailbox->errstr);
            continue;
        }
        struct command refresh = c->refresh;
        add(&refresh, c->uuid, RLK_UUID_LEN);
        add_word(&refresh, PRESENCE_MS);
        add_word(&refresh, "0");
        add(&refresh, id, id_len);
        if (answers(c, &refresh, "held"))
            return;
    }
}

static uint64_t run_control(void *state)
{
    struct control *c = state;
    struct command acquire = c->acquire, release = c->release;
    char id[ID_SIZE];
    size_t id_len = (size_t)snprintf(id, sizeof(id), "%s:1:%llu:m" PRESENCE_MS, c->uuid,
                                     (unsigned long long)++c->number);

    add(&acquire, id, id_len);
    add(&acquire, c->uuid, RLK_UUID_LEN);
    add_word(&acquire, LEASE_MS);
    add_word(&acquire, PRESENCE_MS);
    add_word(&acquire, NEVER_TOO_LATE);
    add_word(&acquire, "0");
    add_word(&acquire, "0");
    if (!answers(c, &acquire, "held")) {
        c->waits++;
        wait_for_grant(c, id, id_len);
    }
    add(&release, id, id_len);
    add_word(&release, "0");
    add_word(&release, c->keys[RLK_KEY_CHANNEL]);
    if (!answers(c, &release, "released"))
        die("the control lost its lock");
    return 1;
}

static uint64_t count_waits(void *state)
{
    return ((const struct control *)state)->waits;
}

const struct contender control_pair = { "control", open_control, run_control, count_waits,
                                        close_control };

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

const struct contender set_nx_pair = { "SET NX PX", open_set_nx, run_set_nx, NULL,
                                       close_set_nx };
