/* SPDX-License-Identifier: Apache-2.0 */
/* See scripts.h. No state. */
#include "scripts.h"

#include "bench.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* ---- requests */

void make_uuid(char uuid[RLK_UUID_LEN + 1])
{
    uint32_t r[4];
    if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
        die("no random bytes");
    snprintf(uuid, RLK_UUID_LEN + 1, "%08x-%04x-4%03x-8%03x-%04x%08x", r[0], r[1] >> 16,
             r[1] & 0xfff, r[2] >> 20, r[2] & 0xffff, r[3]);
}

void make_keys(lock_keys_t keys, const char *name)
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
        snprintf(keys[i], RLK_KEY_SIZE, formats[i], name);
#pragma GCC diagnostic pop
}

void delete_keys(redisContext *conn, lock_keys_t keys)
{
    for (int i = 0; i < RLK_KEY_COUNT; i++)
        freeReplyObject(redis_words(conn, (const char *const[]){ "DEL", keys[i], NULL }));
}

void command_add(struct command *cmd, const char *text)
{
    if (cmd->argc == COMMAND_ARGS_MAX)
        die("too many arguments for a script");
    cmd->argv[cmd->argc] = text;
    cmd->len[cmd->argc++] = strlen(text);
}

void command_load(struct command *cmd, redisContext *conn, enum rlk_script_id id,
                  lock_keys_t keys)
{
    static const char *const counts[] = {
        "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"
    };
    const struct rlk_script *script = &rlk_scripts[id];

    freeReplyObject(
        redis_words(conn, (const char *const[]){ "SCRIPT", "LOAD", script->text, NULL }));
    command_add(cmd, "EVALSHA");
    command_add(cmd, script->sha);
    command_add(cmd, counts[script->key_count]);
    for (int i = 0; i < script->key_count; i++)
        command_add(cmd, keys[script->keys[i]]);
    command_add(cmd, RLK_LAYOUT);
}

bool command_answers(redisContext *conn, const struct command *cmd, const char *what)
{
    enum { WHAT = 4 };
    redisReply *reply = redis_call(conn, cmd->argc, cmd->argv, cmd->len);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements <= WHAT ||
        reply->element[WHAT]->type != REDIS_REPLY_STRING)
        die("the answer is none of a lock script");
    bool same = strcmp(reply->element[WHAT]->str, what) == 0;
    freeReplyObject(reply);
    return same;
}

/* ---- the mailbox */

redisContext *mailbox_open(const char *uuid)
{
    char channel[sizeof(RLK_MAILBOX_PREFIX) + RLK_UUID_LEN];
    redisContext *mailbox = redis_open();
    snprintf(channel, sizeof(channel), RLK_MAILBOX_PREFIX "%s", uuid);
    freeReplyObject(
        redis_words(mailbox, (const char *const[]){ "SUBSCRIBE", channel, NULL }));
    return mailbox;
}

/* One message that was received, or the confirmation of the subscription. */
static bool take_message(redisContext *mailbox, redisReply **ret_reply)
{
    void *reply = NULL;
    if (redisGetReplyFromReader(mailbox, &reply) != REDIS_OK)
        die("mailbox: %s", mailbox->errstr);
    *ret_reply = reply;
    return reply != NULL;
}

static bool is_granted(const redisReply *reply, const char *id)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
           reply->element[2]->type == REDIS_REPLY_STRING &&
           strstr(reply->element[2]->str, id) != NULL;
}

bool mailbox_wait(redisContext *mailbox, const char *id, int timeout_ms)
{
    struct pollfd in = { .fd = mailbox->fd, .events = POLLIN };
    redisReply *reply;

    for (;;) {
        while (take_message(mailbox, &reply)) {
            bool granted = is_granted(reply, id);
            freeReplyObject(reply);
            if (granted)
                return true;
        }
        if (poll(&in, 1, timeout_ms) <= 0)
            return false;
        if (redisBufferRead(mailbox) != REDIS_OK)
            die("mailbox: %s", mailbox->errstr);
    }
}
