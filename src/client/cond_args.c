/* SPDX-License-Identifier: Apache-2.0 */
/* See cond_args.h. */
#include "client/cond_args.h"

#include "client/script_args.h"

#include <string.h>

static void begin(struct rlk_request *req, const struct rlock_client *client,
                  enum rlk_script_id script, const char *name, size_t name_len)
{
    rlk_request_init(req, script, rlk_client_is_sharded(client), name, name_len);
}

static void add_marker_life(struct rlk_request *req, const struct rlock_client *client)
{
    rlk_request_add_int(req, rlk_client_marker_ms(client));
}

/* A short list is copied, so that the connection need not make the whole request
 * (conn_frame.c). */
static void add_list(struct rlk_request *req, const char *text, size_t len)
{
    enum { SHORT = RLOCK_NAME_MAX };

    if (len <= SHORT)
        rlk_request_add(req, text, len);
    else
        rlk_request_add_borrowed(req, text, len);
}

static void add_over(struct rlk_request *req, const struct rlk_settlement *over)
{
    add_list(req, over ? over->done : "", over ? over->done_len : 0);
    add_list(req, over ? over->left : "", over ? over->left_len : 0);
}

void rlk_cond_args_wait(struct rlk_request *req, const struct rlock_client *client,
                        const struct rlk_cond_args_wait *args, int64_t not_after_us)
{
    const struct rlk_condition *condition = args->wait->condition;

    begin(req, client, RLK_COND_WAIT, condition->name, condition->name_len);
    rlk_request_add_id(req, client->uuid, &args->wait->id);
    rlk_request_add(req, client->uuid, RLK_UUID_LEN);
    rlk_request_add_int(req, client->config.presence_ms);
    rlk_request_add_int(req, not_after_us);
    rlk_request_add_int(req, args->again);
    add_marker_life(req, client);
    add_over(req, args->over);
}

void rlk_cond_args_release(struct rlk_request *req, const struct rlock_client *client,
                           const struct rlk_cond_args_release *args, int64_t not_after_us)
{
    const struct rlk_condition *condition = args->wait->condition;
    const struct rlk_lock *mutex = args->hold->lock;

    begin(req, client, RLK_COND_RELEASE, condition->name, condition->name_len);
    req->other = mutex->name;
    req->other_len = mutex->name_len;
    rlk_request_add_id(req, client->uuid, &args->wait->id);
    rlk_request_add(req, client->uuid, RLK_UUID_LEN);
    rlk_request_add_int(req, client->config.presence_ms);
    rlk_request_add_int(req, not_after_us);
    add_marker_life(req, client);
    add_over(req, args->over);
    rlk_script_args_add_release(req, client, args->hold, args->marker_ms);
}

void rlk_cond_args_signal(struct rlk_request *req, const struct rlock_client *client,
                          const struct rlk_cond_args_signal *args)
{
    uint64_t count = args->count;

    begin(req, client, RLK_COND_SIGNAL, args->name, args->name_len);
    rlk_request_add(req, client->uuid, RLK_UUID_LEN);
    rlk_request_add_int(
        req,
        (int64_t)(count < RLK_COND_ARGS_COUNT_MAX ? count : RLK_COND_ARGS_COUNT_MAX));
    rlk_request_add_int(req, args->bar);
    add_marker_life(req, client);
    add_over(req, args->over);
    rlk_request_add_int(req, rlk_confirm_is_on(&client->config.wait));
}

void rlk_cond_args_cancel(struct rlk_request *req, const struct rlock_client *client,
                          const struct rlk_wait *wait, bool pass)
{
    const struct rlk_condition *condition = wait->condition;

    begin(req, client, RLK_COND_CANCEL, condition->name, condition->name_len);
    rlk_request_add_id(req, client->uuid, &wait->id);
    rlk_request_add(req, client->uuid, RLK_UUID_LEN);
    add_marker_life(req, client);
    rlk_request_add_int(req, pass);
}

void rlk_cond_args_poll(struct rlk_request *req, const struct rlock_client *client,
                        const struct rlk_condition *condition,
                        const struct rlk_cond_args_list lists[4])
{
    begin(req, client, RLK_COND_REFRESH, condition->name, condition->name_len);
    rlk_request_add(req, client->uuid, RLK_UUID_LEN);
    rlk_request_add_int(req, client->config.presence_ms);
    for (int i = 0; i < 4; i++) {
        if (i == RLK_COND_ARGS_DONE)
            add_marker_life(req, client);
        rlk_request_add_borrowed(req, lists[i].text, lists[i].len);
    }
}

/* ---- the reply to a signal */

enum { HEAD_LEN = 3, OWN_LEN = 2 };

bool rlk_cond_args_read_woken(const struct rlk_reply *reply,
                              struct rlk_cond_args_woken *ret_woken)
{
    size_t count = rlk_reply_count(reply);
    int64_t more;

    if (count < HEAD_LEN || (count - HEAD_LEN) % OWN_LEN != 0 ||
        !rlk_reply_integer_at(reply, 0, &ret_woken->server_us) ||
        !rlk_reply_integer_at(reply, 1, &more) || more < 0 ||
        more > RLK_COND_ARGS_COUNT_MAX ||
        !rlk_reply_integer_at(reply, 2, &ret_woken->bar) || ret_woken->bar < 0)
        return false;
    ret_woken->more = (uint64_t)more;
    ret_woken->own_count = (count - HEAD_LEN) / OWN_LEN;
    return true;
}

bool rlk_cond_args_read_own(const struct rlk_reply *reply, size_t i, const char *uuid,
                            struct rlk_id *ret_id, int64_t *ret_ticket)
{
    char text[RLK_ID_SIZE];
    size_t len, at = HEAD_LEN + OWN_LEN * i;
    const char *local = rlk_reply_text_at(reply, at, &len);

    if (!local || len >= sizeof(text) - RLK_UUID_LEN - 1 ||
        !rlk_reply_integer_at(reply, at + 1, ret_ticket))
        return false;
    memcpy(text, uuid, RLK_UUID_LEN);
    text[RLK_UUID_LEN] = ':';
    memcpy(text + RLK_UUID_LEN + 1, local, len);
    return rlk_id_parse(ret_id, uuid, text, RLK_UUID_LEN + 1 + len) &&
           ret_id->letter == RLK_CONDITION_LETTER;
}
