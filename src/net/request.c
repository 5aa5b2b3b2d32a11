/* SPDX-License-Identifier: Apache-2.0 */
/* See request.h. No state. Thread: any. */
#include "net/request.h"

#include <assert.h>
#include <string.h>

size_t rlk_request_announce(char *buf, char type, size_t len)
{
    size_t at = 0;

    buf[at++] = type;
    at += rlk_id_write_number(buf + at, len);
    buf[at++] = '\r';
    buf[at++] = '\n';
    return at;
}

char *rlk_request_open_argument(struct rlk_request *req, size_t len)
{
    assert(req->argc < RLK_REQUEST_ARGS_MAX);
    assert(req->used + len + RLK_REQUEST_FRAMING <= sizeof(req->text));
    char *at = req->text + req->used;

    if (len < 10) {
        memcpy(at, "$0\r\n", 4);
        at[1] = (char)('0' + len);
        at += 4;
    } else if (len < 100) {
        memcpy(at, "$00\r\n", 5);
        at[1] = (char)('0' + len / 10);
        at[2] = (char)('0' + len % 10);
        at += 5;
    } else {
        at += rlk_request_announce(at, '$', len);
    }
    memcpy(at + len, "\r\n", 2);
    req->used = (size_t)(at + len + 2 - req->text);
    req->argv[req->argc] = at;
    req->len[req->argc++] = len;
    return at;
}

void rlk_request_add_borrowed(struct rlk_request *req, const char *text, size_t len)
{
    assert(req->argc < RLK_REQUEST_ARGS_MAX);
    req->framed = false;
    req->argv[req->argc] = text;
    req->len[req->argc++] = len;
}

void rlk_request_add_int(struct rlk_request *req, int64_t value)
{
    char buf[24];
    size_t len = 0;

    if (value >= 0 && value < 10) {
        *rlk_request_open_argument(req, 1) = (char)('0' + value);
        return;
    }
    if (value < 0)
        buf[len++] = '-';
    len +=
        rlk_id_write_number(buf + len, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    rlk_request_add(req, buf, len);
}

void rlk_request_add_channel(struct rlk_request *req, const char *name, size_t name_len)
{
    char buf[RLK_KEY_SIZE];
    rlk_request_add(req, buf, rlk_key_write(buf, RLK_KEY_CHANNEL, name, name_len));
}

void rlk_request_words(const struct rlk_request *req, bool with_text, const char **argv,
                       size_t *len, char keys[RLK_REQUEST_KEYS_SIZE])
{
    static const char *const counts[] = {
        "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"
    };
    const struct rlk_script *script = &rlk_scripts[req->script];
    int first = req->first_argument;

    argv[0] = with_text ? "EVAL" : "EVALSHA";
    argv[1] = with_text ? script->text : script->sha;
    argv[2] = counts[script->key_count];
    for (int i = 0; i < RLK_REQUEST_FIRST_KEY; i++)
        len[i] = strlen(argv[i]);
    for (int i = 0; i < script->key_count; i++) {
        argv[RLK_REQUEST_FIRST_KEY + i] = keys;
        len[RLK_REQUEST_FIRST_KEY + i] =
            rlk_key_write(keys, script->keys[i], req->name, req->name_len);
        keys += len[RLK_REQUEST_FIRST_KEY + i];
    }
    memcpy(argv + first, req->argv + first, (size_t)(req->argc - first) * sizeof(*argv));
    memcpy(len + first, req->len + first, (size_t)(req->argc - first) * sizeof(*len));
}
