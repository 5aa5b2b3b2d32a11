/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_list: finds locks. A name is looked up; a glob walks all keys of the database
 * by SCAN, which costs the server time for each key. Thread: any. Blocks: network, up
 * to the command timeout for each request. */
#include "admin/client_list.h"
#include "admin/inspect.h"
#include "base/fork.h"
#include "client/rpc.h"
#include "lock/call.h"

#include <stdio.h>
#include <string.h>

enum { SCAN_COUNT = 200 };

/* Whether the ACL hides the lock itself. If it hides a key beside it, leaving the lock
 * out would say that it is free. */
static bool is_hidden(struct rlock_client *client, const char *name)
{
    const char *argv[] = { "HGETALL", name };
    struct rlk_answer answer = { .key_refused = false };
    struct rlk_reply *reply = NULL;

    int rc = rlk_rpc_command(client, 2, argv, rlk_inspect_until(client), &answer, &reply);
    rlk_reply_free(reply);
    if (rc != 0 && answer.key_refused)
        return true;
    char shown[RLK_LOG_NAME_SIZE];
    rlk_log_name(shown, sizeof(shown), name, strlen(name));
    rlk_error_set(EACCES, "the ACL refuses a key of the lock \"%s\"", shown);
    return false;
}

static int scan(struct rlock_client *client, char cursor[32], const char *pattern,
                struct rlk_reply **ret_reply)
{
    char count[16];
    const char *argv[] = { "SCAN",  cursor, "MATCH", pattern,
                           "COUNT", count,  "TYPE",  "hash" };
    struct rlk_answer answer;

    snprintf(count, sizeof(count), "%d", SCAN_COUNT);
    int rc = rlk_rpc_command(client, sizeof(argv) / sizeof(argv[0]), argv,
                             rlk_inspect_until(client), &answer, ret_reply);
    if (rc != 0)
        return rc;
    size_t cursor_len = 0;
    const char *next =
        rlk_reply_type(*ret_reply) == RLK_REPLY_ARRAY && rlk_reply_count(*ret_reply) == 2
            ? rlk_reply_text_at(*ret_reply, 0, &cursor_len)
            : NULL;
    if (!next || cursor_len >= 32) {
        rlk_reply_free(*ret_reply);
        return rlk_error_set(EPROTO, "unexpected reply to SCAN");
    }
    memcpy(cursor, next, cursor_len + 1);
    return 0;
}

/* Frees the lock. */
static int tell(rlock_info_t *info, int (*each)(const rlock_info_t *info, void *arg),
                void *arg)
{
    unsigned generation = rlk_fork_generation();
    int rc = 0;

    if (info->holder_count > 0)
        rc = each(info, arg);
    rlk_inspect_free(info);
    if (rlk_fork_since(generation) && rc == 0)
        rc = rlk_error_set(ECANCELED,
                           "the callback forked; the listing ends in the child");
    return rc;
}

static int walk(struct rlock_client *client, const char *pattern,
                int (*each)(const rlock_info_t *info, void *arg), void *arg)
{
    char cursor[32] = "0";
    struct rlk_client_list peers =
        rlk_client_list_list(client, rlk_inspect_until(client));
    int rc = 0;

    do {
        struct rlk_reply *reply;
        rc = scan(client, cursor, pattern, &reply);
        if (rc != 0)
            break;
        const struct rlk_reply *keys = rlk_reply_at(reply, 1);
        for (size_t i = 0; rc == 0 && i < rlk_reply_count(keys); i++) {
            size_t len;
            rlock_info_t *info;
            const char *name = rlk_reply_text_at(keys, i, &len);
            if (!name || strlen(name) != len || rlk_key_check(name, len) != 0)
                continue;
            bool hidden = false;
            rc = rlk_inspect(client, name, &peers, rlk_inspect_until(client), &hidden,
                             &info);
            if (rc == 0)
                rc = tell(info, each, arg);
            else if (rc == ENOENT || rc == EPROTO || (hidden && is_hidden(client, name)))
                rc = 0; /* gone since then, or not a lock, or SCAN shows more than the ACL
                           allows */
        }
        rlk_reply_free(reply);
    } while (rc == 0 && strcmp(cursor, "0") != 0);
    rlk_client_list_free(&peers);
    return rc;
}

enum { NAME_ROOM = RLOCK_NAME_MAX + 2 }; /* one byte more than a name has */

/* The only name that the pattern matches, as the server reads it: a backslash makes
 * the next byte literal. A name that is too long is cut one byte after the limit.
 * False: the pattern is a glob. */
static bool is_name(const char *pattern, char ret_name[NAME_ROOM])
{
    size_t len = 0;

    for (const char *at = pattern; *at && len < NAME_ROOM - 1; at++) {
        if (strchr("*?[", *at))
            return false;
        if (*at == '\\' && at[1])
            at++;
        ret_name[len++] = *at;
    }
    ret_name[len] = '\0';
    return true;
}

/* As the walk would report this lock, except that a lock which the ACL hides is no
 * secret to a user who knows its name: then EACCES. */
static int look_at(struct rlock_client *client, const char *name,
                   int (*each)(const rlock_info_t *info, void *arg), void *arg)
{
    rlock_info_t *info;
    bool hidden;

    if (rlk_key_check(name, strlen(name)) != 0)
        return 0; /* no lock can have this name */
    int rc = rlk_inspect_named(client, name, &hidden, &info);
    if (rc == ENOENT || rc == EPROTO)
        return 0;
    return rc == 0 ? tell(info, each, arg) : rc;
}

static int list(struct rlock_client *client, const char *pattern,
                int (*each)(const rlock_info_t *info, void *arg), void *arg)
{
    char name[NAME_ROOM];
    int rc = is_name(pattern, name) ? look_at(client, name, each, arg)
                                    : walk(client, pattern, each, arg);

    if (rc == 0)
        rlk_error_clear();
    return rc;
}

int rlock_list(rlock_client_t *client, const char *pattern,
               int (*each)(const rlock_info_t *info, void *arg), void *arg)
{
    struct rlk_call call = rlk_call_enter();
    struct rlock_client *used;
    int rc = rlk_error_argument_there("each", each)
                 ? rlk_client_get_pointer(client, &used)
                 : EINVAL;

    if (rc == 0) {
        rc = list(used, pattern ? pattern : "*", each, arg);
        rlk_client_put(used);
    }
    return rlk_call_leave(call, rc);
}
