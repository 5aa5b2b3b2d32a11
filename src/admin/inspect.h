/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of administration share. */
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

/* When a call that begins now has to be through. */
static inline int64_t rlk_inspect_until(const struct rlock_client *client)
{
    return rlk_clock_boot() + rlk_client_command_timeout(client);
}

struct rlk_client_list;

/* A lock with at least one holder or waiter, who are named where `peers` has them.
 * ENOENT: there is none. EPROTO: the key is no lock. *ret_hidden: EACCES, and the ACL
 * hides the lock or a key beside it. rlk_inspect_free frees it. */
int rlk_inspect(struct rlock_client *client, const char *name,
                const struct rlk_client_list *peers, int64_t until, bool *ret_hidden,
                rlock_info_t **ret_info);
/* The same for one lock, which asks who is who when it is there. */
int rlk_inspect_named(struct rlock_client *client, const char *name, bool *ret_hidden,
                      rlock_info_t **ret_info);
void rlk_inspect_free(rlock_info_t *info);

/* Who holds a lock now: the field of N, "" for readers, and its "since" or "". Both are
 * the caller's to free, on failure too. ENOENT: nobody. EPROTO: the key is no lock. */
int rlk_inspect_victim(struct rlock_client *client, const char *name, int64_t until,
                       char **ret_holder, char **ret_since);

#endif
