/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of each lock script, as its header in lua/ lists them. No state. Thread:
 * any; with the registry's mu, where other threads may change the hold. Blocks: no. */
#ifndef RLK_SCRIPT_ARGS_H
#define RLK_SCRIPT_ARGS_H

#include "client/client.h"

enum { RLK_RENEWALS_MAX = 256 /* ids in one request */ };

/* `share`: a hold that a reader may share, or NULL. `after`: where a try goes on to look
 * for waiters that come before it. `not_after_us`: server time. */
struct rlk_script_args_acquire {
    const struct rlk_hold *hold;
    struct rlk_hold *share;
    long lease_ms; /* a copy: other threads may raise hold->lease_ms meanwhile */
    bool try_once;
    bool beside; /* reads beside `share`, while that is there, with an end of its own */
    struct rlk_cursor after;
    int64_t not_after_us;
};
void rlk_script_args_acquire(struct rlk_request *req, const struct rlock_client *client,
                             const struct rlk_script_args_acquire *ask);
/* marker_ms 0: no marker. */
void rlk_script_args_release(struct rlk_request *req, const struct rlock_client *client,
                             const struct rlk_hold *hold, int64_t marker_ms);
void rlk_script_args_cancel(struct rlk_request *req, const struct rlock_client *client,
                            const struct rlk_hold *hold, int64_t marker_ms);
/* What a renewal asks for besides the lease. */
struct rlk_script_args_renew {
    bool tell;    /* a message to the holder about later waiters */
    bool tokens;  /* another block of fencing tokens */
    bool looks;   /* only the answer matters: replicas need not confirm it */
    int64_t mark; /* robust: the mark's number; negative: no thread is inside; 0:
                     unchanged */
};
void rlk_script_args_renew(struct rlk_request *req, const struct rlock_client *client,
                           const struct rlk_hold *hold, int64_t lease_ms,
                           struct rlk_script_args_renew with);
/* The renewal of an exclusive hold, and its release, with one key (P20). */
void rlk_script_args_raise(struct rlk_request *req, const struct rlock_client *client,
                           const struct rlk_hold *hold, int64_t lease_ms);
void rlk_script_args_drop(struct rlk_request *req, const struct rlock_client *client,
                          const struct rlk_hold *hold);
/* Ends the mark of a robust hold, with the mark's key. False: what became of it needs the
 * other keys, too. */
bool rlk_script_args_unmark(struct rlk_request *req, const struct rlock_client *client,
                            const struct rlk_hold *hold);
/* The same for readers, whose ends are in the key of the readers; and what the lock's own
 * key says of their reading. since_us: of the reading that is meant; 0: only asks. */
void rlk_script_args_reading(struct rlk_request *req, const struct rlock_client *client,
                             const struct rlk_lock *lock, int64_t since_us,
                             int64_t lease_ms);
void rlk_script_args_drop_reader(struct rlk_request *req,
                                 const struct rlock_client *client,
                                 const struct rlk_hold *hold);
void rlk_script_args_downgrade(struct rlk_request *req, const struct rlock_client *client,
                               const struct rlk_hold *hold, int64_t lease_ms);
/* `names`: ids of waiters without the uuid, with a blank after each; borrowed until the
 * request is sent. */
void rlk_script_args_refresh(struct rlk_request *req, const struct rlock_client *client,
                             int kind, const char *name, size_t name_len, int prefer,
                             struct rlk_cursor after, const char *names,
                             size_t names_len);

/* Renews many read holds in one request: ids without the uuid, and leases, with a blank
 * after each. `alone`: only their ends, with the key of the readers (P20). */
size_t rlk_script_args_renewal_write(char *buf, const struct rlock_client *client,
                                     const struct rlk_hold *hold, int64_t lease_ms,
                                     struct rlk_script_args_renew with);
enum { RLK_SCRIPT_ARGS_RENEWAL_SIZE = RLK_ID_SIZE - RLK_UUID_LEN + 26 };
void rlk_script_args_renewals(struct rlk_request *req, const struct rlock_client *client,
                              const struct rlk_lock *lock, bool alone, const char *names,
                              size_t names_len);

#endif
