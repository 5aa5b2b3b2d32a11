/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Releases at the server what a dead process held (rules G10-G13). The process that got
 * the lock of the live file reads its intent table and runs one script for each name. If
 * the table overflowed once, it then runs one for each name that this client waits for.
 * When all requests are answered, the live file is unlinked. If this process dies before,
 * the kernel drops the lock and another process continues. Thread: the watchdog. Blocks:
 * no network.
 */
#ifndef RLK_RECOVERY_H
#define RLK_RECOVERY_H

#include "crash/livefile.h"

#include <stdbool.h>

struct rlk_conn;
struct rlk_op;
struct rlk_reply;

/* Takes over fd, which holds the lock of the live file. False: out of memory; fd is
 * closed. */
bool rlk_recovery_begin(struct rlock_client *client, int fd, const char *uuid,
                        const struct rlk_livefile_head *head, int64_t now);
/* How many dead processes are in recovery. */
size_t rlk_recovery_count(const struct rlock_client *client);
/* Sends all due requests. Returns the latest time for the next call. */
int64_t rlk_recovery_step(struct rlock_client *client, int64_t now, bool *ret_need_conn);
/* Takes the answer to one request, which came on `conn`. reply NULL: no answer will come.
 * Returns whether another node of the cluster has the lock. */
bool rlk_recovery_answered(struct rlock_client *client, struct rlk_op *op,
                           struct rlk_conn *conn, const struct rlk_reply *reply);
/* Leaves unfinished recoveries to other processes. No request may be in flight. */
void rlk_recovery_stop(struct rlock_client *client);

#endif
