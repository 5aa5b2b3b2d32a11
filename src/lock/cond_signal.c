/* SPDX-License-Identifier: Apache-2.0 */
/* Signals and broadcasts. The server wakes the waiters; those of this process get to
 * know it by its reply, so they are awake when the call returns (V3). Thread: callers'.
 * Locks: takes the registry's mu. */
#include "lock/cond_wait.h"

#include "base/probe.h"
#include "client/cond_rpc.h"
#include "lock/call.h"
#include "net/confirm.h"

#include <errno.h>

enum { PAUSE_FIRST_MS = 5, PAUSE_MAX_MS = 200 };

/* A signal or broadcast in progress. */
struct signal_op {
    struct rlock_client *client;
    const struct rlk_handle *cond;
    struct rlk_condition *condition; /* one reference; NULL: the process knows none */
    uint64_t count;                  /* how many are still to be woken; 0: all */
    int64_t bar;
    bool over;
    bool deferred; /* the watchdog goes on with it */
};

/* The waiter may have joined since the call began: then the condition is a new one. */
static void tell_own(const struct signal_op *op, const struct rlk_reply *reply,
                     const struct rlk_cond_args_woken *woken)
{
    struct rlk_registry *reg = &op->client->registry;
    struct rlk_id id;
    int64_t ticket;

    if (woken->own_count == 0)
        return;
    rlk_registry_lock(reg);
    struct rlk_condition *condition =
        rlk_condition_find_locked(reg, op->cond->rlk_name, op->cond->rlk_name_len);
    for (size_t i = 0; condition && i < woken->own_count; i++)
        if (rlk_cond_args_read_own(reply, i, op->client->uuid, &id, &ticket))
            rlk_condition_told_own_locked(condition, &id, ticket, op->count == 0);
    rlk_registry_unlock(reg);
}

/* The server has executed the request. `done`: replicas have confirmed it, too, if they
 * have to; else it is repeated, and a signal wakes another waiter. */
static void take(struct signal_op *op, bool done, const struct rlk_reply *reply,
                 const struct rlk_cond_args_woken *woken)
{
    tell_own(op, reply, woken);
    op->bar = woken->bar;
    op->over = done && woken->more == 0;
    if (done && op->count > 0)
        op->count = woken->more;
}

/* One request, with what the server is still to learn. */
static void send_once(struct signal_op *op, int64_t until, struct rlk_answer *answer)
{
    struct rlk_registry *reg = &op->client->registry;
    struct rlk_cond_args_woken woken;
    struct rlk_reply *reply = NULL;
    struct rlk_settlement over;
    const struct rlk_cond_args_signal args = {
        .name = op->cond->rlk_name,
        .name_len = op->cond->rlk_name_len,
        .count = op->count,
        .bar = op->bar,
        .over = &over,
    };

    rlk_registry_lock(reg);
    rlk_condition_settle_locked(op->condition, &over);
    rlk_registry_unlock(reg);
    rlk_cond_rpc_signal(op->client, &args, until, answer, &woken, &reply);
    if (op->condition) {
        rlk_registry_lock(reg);
        rlk_condition_settled_locked(op->condition, &over, answer->outcome == RLK_DONE);
        rlk_registry_unlock(reg);
    }
    if (reply)
        take(op, answer->outcome == RLK_DONE, reply, &woken);
    rlk_reply_free(reply);
}

/* Sleeps a moment before the next try, and not beyond `until`. */
static void pause_sending(int *pause_ms, int64_t until)
{
    int64_t left = (until - rlk_clock_boot()) / RLK_NS_PER_MS;

    *pause_ms = *pause_ms == 0 ? PAUSE_FIRST_MS : 2 * *pause_ms;
    if (*pause_ms > PAUSE_MAX_MS)
        *pause_ms = PAUSE_MAX_MS;
    for (int ms = 0; ms < *pause_ms && ms < left; ms++)
        rlk_sync_pause();
}

/* rule: V17 */
/* The server was not reached in time. Returns the code of the call. */
static int give_up(struct signal_op *op, const struct rlk_answer *answer)
{
    struct rlk_registry *reg = &op->client->registry;
    int rc = ENOMEM;

    if (op->cond->rlk_flags & RLK_HANDLE_OUTAGE_FAIL)
        return answer->code;
    rlk_registry_lock(reg);
    struct rlk_condition *condition =
        rlk_condition_get_locked(reg, op->cond->rlk_name, op->cond->rlk_name_len);
    if (condition) {
        rlk_condition_send_later_locked(condition, op->count, op->bar);
        rlk_condition_put_locked(condition);
        RLK_COUNT(op->client->counters.signals_deferred);
        op->deferred = true;
        rc = 0;
    }
    rlk_registry_unlock(reg);
    return rc;
}

/* Whether there is time for another try. One that waits for replicas needs more. */
static bool may_try(const struct rlk_answer *answer, int64_t until)
{
    int64_t least = answer->unconfirmed ? RLK_CONFIRM_LEAST_MS * RLK_NS_PER_MS : 0;

    return until - rlk_clock_boot() > least;
}

static int run(struct signal_op *op)
{
    int64_t until = rlk_clock_boot() + rlk_client_command_timeout(op->client);
    struct rlk_answer answer;
    int pause_ms = 0;

    for (;;) {
        send_once(op, until, &answer);
        if (answer.outcome == RLK_DONE && op->over)
            return 0;
        if (answer.outcome == RLK_DONE)
            continue;
        if (answer.outcome == RLK_REFUSED && answer.code != ENOMEM)
            return answer.code;
        if (atomic_load(&op->client->interrupted) || !may_try(&answer, until))
            return give_up(op, &answer);
        pause_sending(&pause_ms, until);
    }
}

int rlk_cond_signal(struct rlk_handle *cond, uint64_t count)
{
    struct rlk_call call = rlk_call_enter();
    struct signal_op op = { .cond = cond, .count = count };
    int rc = rlk_handle_check(cond, RLK_KIND_COND);

    if (rc == 0)
        rc = rlk_client_get(cond->rlk_client, &op.client);
    if (rc != 0)
        return rlk_call_leave(call, rc);
    struct rlk_registry *reg = &op.client->registry;
    rlk_registry_lock(reg);
    op.condition = rlk_condition_find_locked(reg, cond->rlk_name, cond->rlk_name_len);
    if (op.condition)
        rlk_condition_ref_locked(op.condition);
    rlk_registry_unlock(reg);
    if (count == 0)
        RLK_COUNT(op.client->counters.broadcasts);
    else
        RLK_COUNT(op.client->counters.signals);
    rc = run(&op);
    RLK_PROBE4(cond_signal, RLK_PROBE_TEXT(cond->rlk_name), (int)(count == 0), rc,
               (int)op.deferred);
    if (op.condition) {
        rlk_registry_lock(reg);
        rlk_condition_put_locked(op.condition);
        rlk_registry_unlock(reg);
    }
    if (rc == 0)
        rlk_error_clear();
    rlk_client_put(op.client);
    return rlk_call_leave(call, rc);
}
