/* SPDX-License-Identifier: Apache-2.0 */
/* What the calling thread may ask about its hold and its lease, for all lock types.
 * Thread: any. */
#include "lock/query.h"

#include "lock/call.h"

/* The calling thread's holder, or the code that says why there is none. */
static int find_holder(const struct rlk_handle *handle, int kind,
                       struct rlk_holder **ret_holder)
{
    int rc = rlk_handle_check(handle, kind);
    if (rc != 0)
        return rc;
    *ret_holder = rlk_handle_part(handle);
    return *ret_holder ? 0 : EPERM;
}

int rlk_query_extend(struct rlk_handle *handle, int kind, long lease_ms)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_holder *holder = NULL;
    struct rlock_client *client = NULL;
    int rc =
        rlk_handle_lease_or_0(lease_ms) ? find_holder(handle, kind, &holder) : EINVAL;

    if (rc == 0 && rlk_held_check(holder->hold, rlk_clock_boot()))
        rc = ESTALE;
    if (rc == 0)
        client = RLK_CLIENT_OF(holder->hold->lock->registry);
    if (rc == 0 && rlk_client_keep(client) != 0)
        rc = ESTALE;
    if (rc == 0) {
        long renewed =
            handle->rlk_lease_ms != 0 ? handle->rlk_lease_ms : client->config.lease_ms;
        bool alone = true;
        rc = rlk_client_check_lease(client, lease_ms != 0 ? lease_ms : renewed);
        if (rc == 0 && lease_ms != 0 && holder->hold->reading)
            rc = rlk_held_unshare(holder, lease_ms, &alone);
        if (rc == 0 && alone)
            rc = rlk_held_extend(holder->hold, lease_ms != 0 ? lease_ms : renewed,
                                 lease_ms != 0);
        rlk_client_put(client);
    }
    return rlk_call_leave(call, rc);
}

int rlk_query_gettoken(const struct rlk_handle *handle, int kind, uint64_t *ret_token)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_holder *holder = NULL;
    int rc = rlk_error_argument_there("ret_token", ret_token)
                 ? find_holder(handle, kind, &holder)
                 : EINVAL;

    if (rc == 0 && (!holder->fencing || holder->hold->token == 0))
        rc = rlk_error_set(ENOTSUP, "the lock was taken without fencing");
    else if (rc == 0)
        *ret_token = holder->hold->token;
    return rlk_call_leave(call, rc);
}

int rlk_query_getremaining(const struct rlk_handle *handle, int kind, long *ret_ms)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_holder *holder = NULL;
    int rc = rlk_error_argument_there("ret_ms", ret_ms)
                 ? find_holder(handle, kind, &holder)
                 : EINVAL;

    if (rc == 0) {
        int64_t now = rlk_clock_boot(), end = holder->hold->end;
        bool lost = rlk_held_check(holder->hold, now);
        *ret_ms = lost || now >= end ? 0 : (long)((end - now) / RLK_NS_PER_MS);
    }
    return rlk_call_leave(call, rc);
}

int rlk_query_getstate(const struct rlk_handle *handle, int kind,
                       rlock_state_t *ret_state)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_holder *holder = NULL;
    int rc = rlk_error_argument_there("ret_state", ret_state)
                 ? find_holder(handle, kind, &holder)
                 : EINVAL;

    if (rc == 0) {
        int64_t now = rlk_clock_boot();
        *ret_state = rlk_held_check(holder->hold, now) ? RLOCK_LOST
                     : now >= holder->hold->risk       ? RLOCK_AT_RISK
                                                       : RLOCK_SAFE;
    } else if (rc == EPERM) {
        rc = 0;
        *ret_state = RLOCK_UNHELD;
    }
    return rlk_call_leave(call, rc);
}

int rlk_query_getholdcount(const struct rlk_handle *handle, int kind, unsigned *ret_count)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_holder *holder = NULL;
    int rc = rlk_error_argument_there("ret_count", ret_count)
                 ? find_holder(handle, kind, &holder)
                 : EINVAL;

    if (rc == 0 || rc == EPERM) {
        rc = 0;
        *ret_count = !holder                     ? 0
                     : kind != RLK_KIND_RWLOCK   ? holder->levels.writes
                     : holder->levels.writes > 0 ? holder->levels.writes
                                                 : holder->levels.reads;
    }
    return rlk_call_leave(call, rc);
}
