/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of each lock script, as its header in lua/ lists them: what is asked of
 * the server about a hold or a lock. No state. Thread: any; where holds are read that
 * others may change, with the registry's mu. Blocks: no. */
#ifndef RLK_SCRIPT_ARGS_H
#define RLK_SCRIPT_ARGS_H

#include "client/client.h"

enum { RLK_RENEWALS_MAX = 256 /* ids in one request */ };

/* `share`: of a reader, a hold that it may share; or NULL. `after`: where a try goes on
 * to look for who comes before it. `not_after_us`: server time. */
struct rlk_script_args_acquire {
    const struct rlk_hold *hold;
    struct rlk_hold *share;
    long lease_ms; /* the hold's; others may raise that one meanwhile */
    bool try_once;
    bool beside; /* to read beside `share`, while that is there, by an end of its own */
    struct rlk_cursor after;
    int64_t not_after_us;
};
void rlk_script_args_acquire(struct rlk_request *req, const struct rlock_client *client,
                             const struct rlk_script_args_acquire *ask);
/* marker_ms 0: none. */
void rlk_script_args_release(struct rlk_request *req, const struct rlock_client *client,
                             const struct rlk_hold *hold, int64_t marker_ms);
void rlk_script_args_cancel(struct rlk_request *req, const struct rlock_client *client,
                            const struct rlk_hold *hold, int64_t marker_ms);
/* What a renewal asks for beside the lease. */
struct rlk_script_args_renew {
    bool tell;    /* to be told of those who come */
    bool tokens;  /* another block of fencing tokens */
    int64_t mark; /* robust: its number; negative: nobody is inside; 0: as it is */
};
void rlk_script_args_renew(struct rlk_request *req, const struct rlock_client *client,
                           const struct rlk_hold *hold, int64_t lease_ms,
                           struct rlk_script_args_renew with);
void rlk_script_args_downgrade(struct rlk_request *req, const struct rlock_client *client,
                               const struct rlk_hold *hold, int64_t lease_ms);
/* `names`: ids of waiters without the uuid, a blank after each; borrowed until it is
 * sent. */
void rlk_script_args_refresh(struct rlk_request *req, const struct rlock_client *client,
                             int kind, const char *name, size_t name_len, int prefer,
                             struct rlk_cursor after, const char *names,
                             size_t names_len);

/* Many renewals of reads in one: ids without the uuid and leases, a blank after each. */
size_t rlk_script_args_renewal_write(char *buf, const struct rlk_hold *hold,
                                     int64_t lease_ms, struct rlk_script_args_renew with);
enum { RLK_SCRIPT_ARGS_RENEWAL_SIZE = RLK_ID_SIZE - RLK_UUID_LEN + 26 };
void rlk_script_args_renewals(struct rlk_request *req, const struct rlock_client *client,
                              const struct rlk_lock *lock, const char *names,
                              size_t names_len);

#endif
