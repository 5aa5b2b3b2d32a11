/* SPDX-License-Identifier: Apache-2.0 */
/* A parsed reply: hiredis's object, of which nobody else needs to know. No state. */
#include "conn_impl.h"

static const redisReply *as_hiredis(const struct rlk_reply *reply)
{
    return (const redisReply *)(const void *)reply;
}

enum rlk_reply_type rlk_reply_type(const struct rlk_reply *reply)
{
    switch (as_hiredis(reply)->type) {
    case REDIS_REPLY_STRING:
        return RLK_REPLY_STRING;
    case REDIS_REPLY_ARRAY:
        return RLK_REPLY_ARRAY;
    case REDIS_REPLY_INTEGER:
        return RLK_REPLY_INTEGER;
    case REDIS_REPLY_NIL:
        return RLK_REPLY_NIL;
    case REDIS_REPLY_STATUS:
        return RLK_REPLY_STATUS;
    case REDIS_REPLY_ERROR:
        return RLK_REPLY_ERROR;
    default:
        return RLK_REPLY_OTHER;
    }
}

int64_t rlk_reply_integer(const struct rlk_reply *reply)
{
    return rlk_reply_type(reply) == RLK_REPLY_INTEGER ? as_hiredis(reply)->integer : 0;
}

const char *rlk_reply_string(const struct rlk_reply *reply, size_t *ret_len)
{
    const char *text = as_hiredis(reply)->str;
    *ret_len = text ? (size_t)as_hiredis(reply)->len : 0;
    return text ? text : "";
}

size_t rlk_reply_count(const struct rlk_reply *reply)
{
    return rlk_reply_type(reply) == RLK_REPLY_ARRAY ? (size_t)as_hiredis(reply)->elements
                                                    : 0;
}

const struct rlk_reply *rlk_reply_at(const struct rlk_reply *reply, size_t i)
{
    if (i >= rlk_reply_count(reply))
        return NULL;
    return (const struct rlk_reply *)(const void *)as_hiredis(reply)->element[i];
}

const char *rlk_reply_text_at(const struct rlk_reply *array, size_t i, size_t *ret_len)
{
    const struct rlk_reply *r = rlk_reply_at(array, i);
    if (!r || rlk_reply_type(r) != RLK_REPLY_STRING)
        return NULL;
    return rlk_reply_string(r, ret_len);
}

void rlk_reply_free(struct rlk_reply *reply)
{
    freeReplyObject(reply);
}
