/* SPDX-License-Identifier: Apache-2.0 */
/* See request.h. No state. Thread: any. */
#include "net/request.h"

#include <assert.h>
#include <string.h>

static void add_pointer(struct rlk_request *req, const char *text, size_t len)
{
    assert(req->argc < RLK_REQUEST_ARGS_MAX);
    req->argv[req->argc] = text;
    req->len[req->argc++] = len;
}

static char *reserve(struct rlk_request *req, size_t len)
{
    assert(req->used + len <= sizeof(req->text));
    return req->text + req->used;
}

void rlk_request_add(struct rlk_request *req, const char *text, size_t len)
{
    char *at = reserve(req, len);
    memcpy(at, text, len);
    req->used += len;
    add_pointer(req, at, len);
}

void rlk_request_add_borrowed(struct rlk_request *req, const char *text, size_t len)
{
    add_pointer(req, text, len);
}

void rlk_request_init(struct rlk_request *req, enum rlk_script_id script,
                      const char *name, size_t name_len)
{
    const struct rlk_script *s = &rlk_scripts[script];
    static const char *const counts[] = {
        "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"
    };

    req->script = script;
    req->argc = 0;
    req->used = 0;
    add_pointer(req, "EVALSHA", 7);
    add_pointer(req, s->sha, 40);
    add_pointer(req, counts[s->key_count], 1);
    for (int i = 0; i < s->key_count; i++) {
        char *at = reserve(req, RLK_KEY_SIZE);
        size_t len = rlk_key_write(at, s->keys[i], name, name_len);
        req->used += len;
        add_pointer(req, at, len);
    }
    add_pointer(req, RLK_LAYOUT, sizeof(RLK_LAYOUT) - 1);
}

void rlk_request_add_int(struct rlk_request *req, int64_t value)
{
    char buf[24];
    size_t len = 0;
    if (value < 0)
        buf[len++] = '-';
    len +=
        rlk_id_write_number(buf + len, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    rlk_request_add(req, buf, len);
}

void rlk_request_add_id(struct rlk_request *req, const char *uuid,
                        const struct rlk_id *id)
{
    char *at = reserve(req, RLK_ID_SIZE);
    size_t len = rlk_id_write(at, uuid, id);
    req->used += len;
    add_pointer(req, at, len);
}

void rlk_request_add_channel(struct rlk_request *req, const char *name, size_t name_len)
{
    char *at = reserve(req, RLK_KEY_SIZE);
    size_t len = rlk_key_write(at, RLK_KEY_CHANNEL, name, name_len);
    req->used += len;
    add_pointer(req, at, len);
}
