/* SPDX-License-Identifier: Apache-2.0 */
/* A request to run a lock script: keys and arguments, built on the caller's stack. No
 * state. Thread: any. Blocks: no. */
#ifndef RLK_REQUEST_H
#define RLK_REQUEST_H

#include "lua_scripts.h"
#include "net/id.h"
#include "net/key.h"

#include <stddef.h>
#include <stdint.h>

struct rlk_script {
    const char *name;
    const char *sha;
    int key_count;
    enum rlk_key keys[RLK_KEY_COUNT];
    const char *text;
};
extern const struct rlk_script rlk_scripts[RLK_SCRIPT_COUNT];

enum {
    RLK_REQUEST_FIRST_KEY = 3 /* argv: EVALSHA, hash, number of keys, then the lock */
};
enum { RLK_REQUEST_ARGS_MAX = 3 + RLK_KEY_COUNT + 14 };

/* Owned by the caller; lives on its stack. */
struct rlk_request {
    enum rlk_script_id script;
    int argc;
    const char *argv[RLK_REQUEST_ARGS_MAX];
    size_t len[RLK_REQUEST_ARGS_MAX];
    size_t used;
    char text[RLK_KEY_COUNT * RLK_KEY_SIZE + 10 * RLOCK_NAME_MAX];
};

/* Begins a request: the script, the keys of lock `name` and the layout number. */
void rlk_request_init(struct rlk_request *req, enum rlk_script_id script,
                      const char *name, size_t name_len);
/* Adds a copy of the argument. */
void rlk_request_add(struct rlk_request *req, const char *text, size_t len);
/* Adds the argument without a copy: it must live as long as the request. */
void rlk_request_add_borrowed(struct rlk_request *req, const char *text, size_t len);
void rlk_request_add_int(struct rlk_request *req, int64_t value);
void rlk_request_add_id(struct rlk_request *req, const char *uuid,
                        const struct rlk_id *id);
/* Adds the channel where Redisson's waiters for `name` listen. */
void rlk_request_add_channel(struct rlk_request *req, const char *name, size_t name_len);

#endif
