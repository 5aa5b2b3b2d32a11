/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the calls of administration. No state. */
#ifndef RLK_INSPECT_H
#define RLK_INSPECT_H

#include "base/clock.h"
#include "base/error.h"
#include "client/client.h"

#include <errno.h>
#include <string.h>

static inline int rlk_inspect_check_name(const char *name)
{
    return rlk_error_argument_there("name", name)
               ? rlk_key_check(name, strnlen(name, RLOCK_NAME_MAX + 1))
               : EINVAL;
}

/* The time limit of a call that begins now. */
static inline int64_t rlk_inspect_until(const struct rlock_client *client)
{
    return rlk_clock_boot() + rlk_client_command_timeout(client);
}

struct rlk_client_list;

/* A lock with at least one holder or waiter; named as far as `peers` has them. ENOENT:
 * none. EPROTO: the key is not a lock. *ret_hidden: EACCES, and the ACL hides the lock
 * or a key beside it. Free with rlk_inspect_free. Blocks: network. */
int rlk_inspect(struct rlock_client *client, const char *name,
                const struct rlk_client_list *peers, int64_t until, bool *ret_hidden,
                rlock_info_t **ret_info);
/* As rlk_inspect, for one lock; requests the client list if the lock exists. */
int rlk_inspect_named(struct rlock_client *client, const char *name, bool *ret_hidden,
                      rlock_info_t **ret_info);
void rlk_inspect_free(rlock_info_t *info);

/* The current holder of a lock: the field of N ("" for readers) and its "since" or "".
 * The caller frees both, also on failure. ENOENT: no holder. EPROTO: the key is not a
 * lock. */
int rlk_inspect_victim(struct rlock_client *client, const char *name, int64_t until,
                       char **ret_holder, char **ret_since);

#endif
