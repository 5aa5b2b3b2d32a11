/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving back what a dead process had (rules G10-G13): whoever got the lock of its file
 * reads its table, and has the server run one script for each name; then, if the table
 * had no room once, one for each name that this client waits for. The file is unlinked
 * when all is answered; if this process dies before, the kernel frees the lock and
 * another one goes on. Thread: the watchdog. Blocks: no network.
 */
#ifndef RLK_RECOVERY_H
#define RLK_RECOVERY_H

#include "crash/livefile.h"

#include <stdbool.h>

struct rlk_op;
struct rlk_reply;

/* Takes over fd, by which the lock is held. False: out of memory; fd is closed. */
bool rlk_recovery_begin(struct rlock_client *client, int fd, const char *uuid,
                        const struct rlk_livefile_head *head, int64_t now);
/* How many are being buried. */
size_t rlk_recovery_count(const struct rlock_client *client);
/* Sends what is due; returns when to be called again at the latest. */
int64_t rlk_recovery_step(struct rlock_client *client, int64_t now, bool *ret_need_conn);
/* reply NULL: none will come. */
void rlk_recovery_answered(struct rlock_client *client, struct rlk_op *op,
                           const struct rlk_reply *reply);
/* Leaves what is under way to others. None of its requests is in flight. */
void rlk_recovery_stop(struct rlock_client *client);

#endif
