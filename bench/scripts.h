/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own scripts over hiredis: their keys and arguments, their answers, and
 * the mailbox in which a grant arrives. Each function ends the process on failure. */
#ifndef BENCH_SCRIPTS_H
#define BENCH_SCRIPTS_H

#include "net/script.h"
#include "redis.h"

#include <stdbool.h>

enum { COMMAND_ARGS_MAX = RLK_REQUEST_ARGS_MAX };

#define NEVER_TOO_LATE "9007199254740991"
#define PHASE_FAIR "16" /* RLOCK_RWLOCK_PHASE_FAIR_NP */

typedef char lock_keys_t[RLK_KEY_COUNT][RLK_KEY_SIZE];

/* A script with its keys. Each call puts its arguments behind them. */
struct command {
    int argc;
    const char *argv[COMMAND_ARGS_MAX];
    size_t len[COMMAND_ARGS_MAX];
};

void make_uuid(char uuid[RLK_UUID_LEN + 1]);
void make_keys(lock_keys_t keys, const char *name);
/* Deletes the lock's keys, also those that an interrupted run left. */
void delete_keys(redisContext *conn, lock_keys_t keys);

/* Loads a script; the command ends with the layout. The command points at the keys. */
void command_load(struct command *cmd, redisContext *conn, enum rlk_script_id id,
                  lock_keys_t keys);
/* The text has to live until the command was sent. */
void command_add(struct command *cmd, const char *text);
/* Runs the command. Whether the answer says `what` about the id. */
bool command_answers(redisContext *conn, const struct command *cmd, const char *what);

/* A connection that is subscribed to the client's mailbox. */
redisContext *mailbox_open(const char *uuid);
/* Waits until the lock is granted to `id`; false: not in that time. */
bool mailbox_wait(redisContext *mailbox, const char *id, int timeout_ms);

#endif
