/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of each script of conditions, as its header in lua/ lists them, and the
 * reply to a signal. No state. Thread: any; with the registry's mu, where other threads
 * may change what is named. Blocks: no. */
#ifndef RLK_COND_ARGS_H
#define RLK_COND_ARGS_H

#include "client/client.h"

/* A join. `again`: an earlier request of the id may be on its way. */
struct rlk_cond_args_wait {
    const struct rlk_wait *wait;
    bool again;
    const struct rlk_settlement *over;
};
void rlk_cond_args_wait(struct rlk_request *req, const struct rlock_client *client,
                        const struct rlk_cond_args_wait *args, int64_t not_after_us);

/* The same, and releases an exclusive hold. marker_ms: as rlk_script_args_release. */
struct rlk_cond_args_release {
    const struct rlk_wait *wait;
    const struct rlk_hold *hold;
    int64_t marker_ms;
    const struct rlk_settlement *over;
};
void rlk_cond_args_release(struct rlk_request *req, const struct rlock_client *client,
                           const struct rlk_cond_args_release *args,
                           int64_t not_after_us);

/* Wakes `count` waiters, or all up to the bar (count 0; bar 0: all that wait now). */
struct rlk_cond_args_signal {
    const char *name;
    size_t name_len;
    uint64_t count;
    int64_t bar;
    const struct rlk_settlement *over; /* NULL: none */
};
enum { RLK_COND_ARGS_COUNT_MAX = 1024 }; /* of a request */
void rlk_cond_args_signal(struct rlk_request *req, const struct rlock_client *client,
                          const struct rlk_cond_args_signal *args);
void rlk_cond_args_cancel(struct rlk_request *req, const struct rlock_client *client,
                          const struct rlk_wait *wait, bool pass);

/* A poll. The lists are ids without the uuid, with a blank after each; borrowed until the
 * request is sent. */
struct rlk_cond_args_list {
    const char *text;
    size_t len;
};
void rlk_cond_args_poll(struct rlk_request *req, const struct rlock_client *client,
                        const struct rlk_condition *condition,
                        const struct rlk_cond_args_list lists[4]);
enum { /* in the order of the script's arguments */
       RLK_COND_ARGS_WAITS,
       RLK_COND_ARGS_BACK,
       RLK_COND_ARGS_DONE,
       RLK_COND_ARGS_LEFT
};

/* The reply to a signal. */
struct rlk_cond_args_woken {
    int64_t server_us;
    uint64_t more; /* how many are still to be woken */
    int64_t bar;
    size_t own_count; /* ids of the caller that were woken */
};
/* False: the reply has another form. */
bool rlk_cond_args_read_woken(const struct rlk_reply *reply,
                              struct rlk_cond_args_woken *ret_woken);
/* The i-th of the caller's ids. False: it is no id. */
bool rlk_cond_args_read_own(const struct rlk_reply *reply, size_t i, const char *uuid,
                            struct rlk_id *ret_id, int64_t *ret_ticket);

#endif
