/* SPDX-License-Identifier: Apache-2.0 */
/* See cond_rpc.h. */
#include "client/cond_rpc.h"

#include "base/error.h"
#include "client/rpc.h"

#include <errno.h>
#include <string.h>

struct args {
    struct rlock_client *client;
    const void *args;
    bool pass;
};

static void build_wait(struct rlk_request *req, int64_t not_after_us, void *arg)
{
    const struct args *a = arg;

    rlk_cond_args_wait(req, a->client, a->args, not_after_us);
}

void rlk_cond_rpc_wait(struct rlock_client *client, const struct rlk_cond_args_wait *args,
                       int64_t until, struct rlk_answer *answer)
{
    const struct rlk_condition *condition = args->wait->condition;
    struct args a = { .client = client, .args = args };
    const struct rlk_rpc_call call = {
        .name = condition->name,
        .name_len = condition->name_len,
        .build = build_wait,
        .arg = &a,
    };

    rlk_rpc_run(client, &call, until, answer, NULL);
}

static void build_release(struct rlk_request *req, int64_t not_after_us, void *arg)
{
    const struct args *a = arg;

    rlk_cond_args_release(req, a->client, a->args, not_after_us);
}

void rlk_cond_rpc_release(struct rlock_client *client,
                          const struct rlk_cond_args_release *args, int64_t until,
                          struct rlk_answer *answer, struct rlk_fate *ret_fate)
{
    const struct rlk_condition *condition = args->wait->condition;
    struct args a = { .client = client, .args = args };
    struct rlk_fate fates[2];
    const struct rlk_rpc_call call = {
        .name = condition->name,
        .name_len = condition->name_len,
        .goes_first = true,
        .build = build_release,
        .arg = &a,
        .fates = fates,
        .fate_count = 2,
    };

    rlk_rpc_run(client, &call, until, answer, NULL);
    if (answer->outcome == RLK_DONE)
        *ret_fate = fates[1];
}

/* The hash tag of a name, or all of it. */
static const char *tag_of(const char *name, size_t len, size_t *ret_len)
{
    const char *open = memchr(name, '{', len);
    const char *close = open ? memchr(open, '}', len - (size_t)(open - name)) : NULL;

    *ret_len = close ? (size_t)(close - open) - 1 : len;
    return close ? open + 1 : name;
}

/* rule: V16 */
bool rlk_cond_rpc_may_release(const struct rlock_client *client,
                              const struct rlk_condition *condition,
                              const struct rlk_lock *mutex)
{
    size_t a_len, b_len;
    const char *a = tag_of(condition->name, condition->name_len, &a_len);
    const char *b = tag_of(mutex->name, mutex->name_len, &b_len);

    return !rlk_route_is_cluster(&client->route) ||
           (a_len == b_len && memcmp(a, b, a_len) == 0);
}

static void build_cancel(struct rlk_request *req, int64_t not_after_us, void *arg)
{
    const struct args *a = arg;

    (void)not_after_us;
    rlk_cond_args_cancel(req, a->client, a->args, a->pass);
}

void rlk_cond_rpc_cancel(struct rlock_client *client, const struct rlk_wait *wait,
                         bool pass, int64_t until, struct rlk_answer *answer)
{
    const struct rlk_condition *condition = wait->condition;
    struct args a = { .client = client, .args = wait, .pass = pass };
    const struct rlk_rpc_call call = {
        .name = condition->name,
        .name_len = condition->name_len,
        .build = build_cancel,
        .arg = &a,
    };

    rlk_rpc_run(client, &call, until, answer, NULL);
}

static void build_signal(struct rlk_request *req, int64_t not_after_us, void *arg)
{
    const struct args *a = arg;

    (void)not_after_us;
    rlk_cond_args_signal(req, a->client, a->args);
}

void rlk_cond_rpc_signal(struct rlock_client *client,
                         const struct rlk_cond_args_signal *args, int64_t until,
                         struct rlk_answer *answer, struct rlk_cond_args_woken *ret_woken,
                         struct rlk_reply **ret_reply)
{
    struct args a = { .client = client, .args = args };
    const struct rlk_rpc_call call = {
        .name = args->name,
        .name_len = args->name_len,
        .confirms = true,
        .build = build_signal,
        .arg = &a,
    };

    *ret_reply = NULL;
    rlk_rpc_run(client, &call, until, answer, ret_reply);
    if (!*ret_reply || rlk_cond_args_read_woken(*ret_reply, ret_woken))
        return;
    rlk_reply_free(*ret_reply);
    *ret_reply = NULL;
    answer->outcome = RLK_REFUSED;
    answer->code = rlk_error_set(EPROTO, "unexpected reply from the script cond_signal");
}
