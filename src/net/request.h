/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request to run a lock script, built on the caller's stack. The arguments are written
 * as they go over the connection, each behind its length. The keys follow from the script
 * and the lock's name, and are a good part of a request: a request names the lock only,
 * and the connection makes the keys or repeats those of its previous request
 * (conn_frame.c). No state. Thread: any. Blocks: no.
 */
#ifndef RLK_REQUEST_H
#define RLK_REQUEST_H

#include "lua_scripts.h"
#include "net/id.h"
#include "net/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rlk_script {
    const char *name;
    const char *sha;
    int key_count;
    enum rlk_key keys[RLK_KEY_COUNT];
    const char *text;
};
extern const struct rlk_script rlk_scripts[RLK_SCRIPT_COUNT];

enum {
    RLK_REQUEST_FIRST_KEY = 3, /* behind EVALSHA, hash, number of keys: the lock */
    RLK_REQUEST_ARGS_MAX = 3 + RLK_KEY_COUNT + 14,
    RLK_REQUEST_KEYS_SIZE = RLK_KEY_COUNT * RLK_KEY_SIZE,
    RLK_REQUEST_FRAMING = 16 /* bytes around an argument at most */
};

/* Built on a stack. Immutable once it is sent. */
struct rlk_request {
    enum rlk_script_id script;
    const char *name; /* the caller's; outlives the request */
    size_t name_len;
    int argc;    /* words, EVALSHA and the keys among them */
    bool framed; /* `text` has all arguments; false: one is borrowed */
    size_t used; /* of text */
    /* the arguments, from first_argument on */
    int first_argument;
    const char *argv[RLK_REQUEST_ARGS_MAX];
    size_t len[RLK_REQUEST_ARGS_MAX];
    char text[10 * RLOCK_NAME_MAX + RLK_REQUEST_ARGS_MAX * RLK_REQUEST_FRAMING];
};

/* The place for an argument of `len` bytes, behind the line that announces it. */
char *rlk_request_open_argument(struct rlk_request *req, size_t len);
/* Copies the argument. */
static inline void rlk_request_add(struct rlk_request *req, const char *text, size_t len)
{
    memcpy(rlk_request_open_argument(req, len), text, len);
}
/* Begins a request: script, lock `name` and the layout number. `sharded`: the scripts may
 * use sharded channels. */
static inline void rlk_request_init(struct rlk_request *req, enum rlk_script_id script,
                                    bool sharded, const char *name, size_t name_len)
{
    req->script = script;
    req->name = name;
    req->name_len = name_len;
    req->argc = req->first_argument =
        RLK_REQUEST_FIRST_KEY + rlk_scripts[script].key_count;
    req->framed = true;
    req->used = 0;
    if (__builtin_expect(sharded, 0))
        rlk_request_add(req, RLK_LAYOUT_SHARDED, sizeof(RLK_LAYOUT_SHARDED) - 1);
    else
        rlk_request_add(req, RLK_LAYOUT, sizeof(RLK_LAYOUT) - 1);
}
/* Does not copy it: the text has to live as long as the request. */
void rlk_request_add_borrowed(struct rlk_request *req, const char *text, size_t len);
void rlk_request_add_int(struct rlk_request *req, int64_t value);
static inline void rlk_request_add_id(struct rlk_request *req, const char *uuid,
                                      const struct rlk_id *id)
{
    char buf[RLK_ID_SIZE];
    rlk_request_add(req, buf, rlk_id_write(buf, uuid, id));
}
/* Adds the channel where Redisson's waiters for `name` listen. */
void rlk_request_add_channel(struct rlk_request *req, const char *name, size_t name_len);

/* Writes all words of the request, and how long each is. `keys` takes the bytes of the
 * keys. With `with_text`, EVAL and the text of the script stand in place of EVALSHA and
 * the hash. */
void rlk_request_words(const struct rlk_request *req, bool with_text, const char **argv,
                       size_t *len, char keys[RLK_REQUEST_KEYS_SIZE]);

/* Writes the line that announces a word of `len` bytes; returns how long that is. */
size_t rlk_request_announce(char *buf, char type, size_t len);

#endif
