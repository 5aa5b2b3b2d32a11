/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How rlock_inspect, rlock_list and rlock_force_unlock handle replies about keys that any
 * user may have written. The input's first byte selects the call; the rest is the
 * server's replies to its requests, one after the other; when they are used up, none
 * comes any more. All reported values are in range.
 *
 * This file includes the library's source of these calls, with its requests to the server
 * replaced.
 */
#define rlk_rpc_request fuzz_trip_request
#define rlk_rpc_command fuzz_trip_command
#define rlk_rpc_command_at fuzz_trip_command_at
#define rlk_client_get_pointer fuzz_client_get_pointer
#define rlk_client_put fuzz_client_put
#include "admin/client_list.c"
#include "admin/inspect.c"
#include "admin/listing.c"

#include "fuzz.h"
#include "net/server_error.h"
#include "wire.h"

enum { REPLY_LIMIT = 1 << 20, KEYS_TOLD_MAX = 1000 };

static struct rlock_client the_client = { .config.command_timeout_ms = 1000 };
static struct rlk_conn *conn;
static int request_count;
static bool strange; /* the first reply is not one of lock_inspect */

/* ---- the server */

int fuzz_client_get_pointer(const struct rlock_client *client,
                            struct rlock_client **ret_client)
{
    (void)client;
    *ret_client = &the_client;
    return 0;
}

void fuzz_client_put(struct rlock_client *client)
{
    fuzz_must(client == &the_client);
}

static void next_reply(struct rlk_answer *ret_answer, struct rlk_reply **ret_reply)
{
    struct rlk_reply *reply = NULL;
    size_t len;

    *ret_answer = (struct rlk_answer){ .outcome = RLK_UNKNOWN, .code = ENOTCONN };
    if (rlk_conn_parse(conn, &reply) != RLK_PARSED_REPLY)
        return;
    if (rlk_reply_type(reply) == RLK_REPLY_ERROR) {
        const char *text = rlk_reply_string(reply, &len);
        ret_answer->outcome = rlk_script_sort_error(text, len, &ret_answer->code);
        ret_answer->key_refused =
            ret_answer->code == EACCES && rlk_server_error_of_key(text, len);
        rlk_reply_free(reply);
        return;
    }
    *ret_answer = (struct rlk_answer){ .outcome = RLK_DONE };
    *ret_reply = reply;
}

static bool is_page(const struct rlk_reply *reply)
{
    const redisReply *r = (const redisReply *)(const void *)reply;
    if (r->type != REDIS_REPLY_ARRAY || r->elements != 7)
        return false;
    for (size_t i = 0; i < 7; i++)
        if (r->element[i]->type != (i < 2 ? REDIS_REPLY_INTEGER : REDIS_REPLY_ARRAY))
            return false;
    return r->element[0]->integer >= 1 && r->element[1]->integer >= -2;
}

void fuzz_trip_request(struct rlock_client *client, const struct rlk_request *req,
                       int64_t until, struct rlk_answer *ret_answer,
                       struct rlk_reply **ret_raw)
{
    (void)client;
    (void)until;
    fuzz_must(req->argc > 0 && req->argc <= RLK_REQUEST_ARGS_MAX);
    next_reply(ret_answer, ret_raw);
    if (request_count++ == 0 && ret_answer->outcome == RLK_DONE)
        strange = !is_page(*ret_raw);
}

int fuzz_trip_command(struct rlock_client *client, const char *key, int argc,
                      const char *const *argv, int64_t until,
                      struct rlk_answer *ret_answer, struct rlk_reply **ret_reply)
{
    (void)until;
    fuzz_must(client == &the_client && (!key || strlen(key) <= RLOCK_NAME_MAX));
    for (int i = 0; i < argc; i++)
        fuzz_must(argv[i]);
    next_reply(ret_answer, ret_reply);
    return ret_answer->outcome == RLK_DONE ? 0 : ret_answer->code;
}

int fuzz_trip_command_at(struct rlk_target *target, int argc, const char *const *argv,
                         int64_t until, struct rlk_answer *ret_answer,
                         struct rlk_reply **ret_reply)
{
    fuzz_must(target == &the_client.route.target);
    return fuzz_trip_command(&the_client, NULL, argc, argv, until, ret_answer, ret_reply);
}

/* ---- reported values */

static void check_party(const rlock_party_t *party, long least_left_ms)
{
    fuzz_must(party->owner && party->client);
    fuzz_must(strlen(party->owner) <= REPLY_LIMIT);
    fuzz_must(!strpbrk(party->client, " \n"));
    fuzz_must(party->mode == RLOCK_MODE_READ || party->mode == RLOCK_MODE_EXCLUSIVE);
    fuzz_must(party->since_ms >= -1);
    fuzz_must(party->lease_left_ms >= least_left_ms);
}

static void check_info(const rlock_info_t *info)
{
    fuzz_must(info->name && rlk_inspect_check_name(info->name) == 0);
    fuzz_must((int)info->type >= RLOCK_TYPE_UNKNOWN && info->type <= RLOCK_TYPE_REDISSON);
    fuzz_must(info->holder_count + info->waiter_count > 0);
    for (size_t i = 0; i < info->holder_count; i++)
        check_party(&info->holders[i], -1); /* for ever */
    for (size_t i = 0; i < info->waiter_count; i++)
        check_party(&info->waiters[i], 0);
}

static int told(const rlock_info_t *info, void *arg)
{
    int *count = arg;
    check_info(info);
    fuzz_must(info->holder_count > 0);
    return ++*count < KEYS_TOLD_MAX ? 0 : ECANCELED;
}

static bool is_code(int rc)
{
    return rc == 0 || rc == ENOENT || rc == EPROTO || rc == EACCES || rc == ENOTCONN;
}

static void call_inspect(void)
{
    rlock_info_t *info = NULL;
    int rc = rlock_inspect(&the_client, "N", &info);
    fuzz_must(is_code(rc) && (rc == 0) == (info != NULL));
    fuzz_must(!strange || rc == EPROTO);
    if (rc == 0)
        check_info(info);
    rlock_info_free(info);
}

static void call_victim(void)
{
    char *holder = NULL, *since = NULL;
    int rc = rlk_inspect_victim(&the_client, "N", INT64_MAX, &holder, &since);
    fuzz_must(is_code(rc) && (rc == 0) == (holder && since));
    fuzz_must(!strange || rc == EPROTO);
    free(holder);
    free(since);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    int count = 0;
    uint8_t which = fuzz_byte(&in);

    request_count = 0;
    strange = false;
    conn = fuzz_conn_open(REPLY_LIMIT);
    fuzz_conn_feed(conn, in.at, in.left);
    switch (which) {
    case 'v':
        call_victim();
        break;
    case 'l': {
        int rc = rlock_list(&the_client, NULL, told, &count);
        fuzz_must(is_code(rc) || (rc == ECANCELED && count == KEYS_TOLD_MAX));
        break;
    }
    default:
        call_inspect();
    }
    fuzz_conn_close(conn);
    return 0;
}
