/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog's requests about conditions. A poll proves the presence of a client's
 * waiters of one condition, learns who of them was woken, keeps the signals of those who
 * are on their way back to the mutex, and tells the server which waits are over. Signals
 * that callers could not send are sent here, too (V17). Thread: the watchdog. Locks: hold
 * the registry's mu.
 */
#include "client/renewer_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/probe.h"
#include "client/client.h"
#include "client/cond_args.h"
#include "net/redirect.h"
#include "net/server_error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAIT_PARTS = 2
}; /* of a signal that waits for replicas as a renewal does: its
      "lease" is so many presence times */

/* The ids in the request that is being made. */
static char lists[4][RLK_RENEWER_NAMES_MAX * RLK_SETTLEMENT_ID_SIZE];

/* ---- polls */

/* Adds a wait to the poll, with a reference. False: there is no room. */
static bool add_wait(struct rlk_condition_poll *poll, struct rlk_wait *wait)
{
    if (poll->count == RLK_RENEWER_NAMES_MAX)
        return false;
    if (poll->count == poll->size) {
        size_t size = poll->size ? 2 * poll->size : 4;
        struct rlk_wait **bigger = realloc(poll->waits, size * sizeof(*bigger));
        if (!bigger)
            return false; /* the next request names the wait */
        poll->waits = bigger;
        poll->size = size;
    }
    wait->refs++;
    poll->waits[poll->count++] = wait;
    return true;
}

static void add_name(struct rlk_cond_args_list *list, char *buf,
                     const struct rlk_wait *wait)
{
    list->len += rlk_condition_write_over(buf + list->len, wait);
}

/* Those that wait are named in turn: a wait that was named goes to the end of the list.
 */
static void name_waits(struct rlk_condition *condition,
                       struct rlk_cond_args_list names[4])
{
    struct rlk_condition_poll *poll = &condition->poll;
    struct rlk_list named, *l, *next;
    size_t back = 0;

    rlk_list_init(&named);
    for (l = condition->waits.next; l != &condition->waits; l = next) {
        struct rlk_wait *wait = RLK_CONTAINER_OF(l, struct rlk_wait, link);
        next = l->next;
        if (wait->state == RLK_WAIT_JOINING)
            continue; /* its thread asks */
        bool returns = wait->state == RLK_WAIT_BACK || wait->told;
        if (returns ? back == RLK_RENEWER_NAMES_MAX : !add_wait(poll, wait))
            continue;
        int which = returns ? RLK_COND_ARGS_BACK : RLK_COND_ARGS_WAITS;
        back += returns;
        add_name(&names[which], lists[which], wait);
        rlk_list_remove(l);
        rlk_list_append(&named, l);
    }
    while ((l = rlk_list_pop(&named)) != NULL)
        rlk_list_append(&condition->waits, l);
}

static void name_over(struct rlk_condition *condition, struct rlk_cond_args_list names[4])
{
    struct rlk_list *l;
    size_t count = 0;

    while (count++ < RLK_RENEWER_NAMES_MAX &&
           (l = rlk_list_pop(&condition->over)) != NULL) {
        const struct rlk_wait *wait = RLK_CONTAINER_OF(l, struct rlk_wait, link);
        int which =
            wait->state == RLK_WAIT_DONE ? RLK_COND_ARGS_DONE : RLK_COND_ARGS_LEFT;
        add_name(&names[which], lists[which], wait);
        rlk_list_append(&condition->poll.over, l);
    }
}

/* The poll is over: `told`, or the next one says what it was to say. */
static void clear_poll(struct rlk_condition *condition, bool told)
{
    struct rlk_condition_poll *poll = &condition->poll;
    struct rlk_list *l;

    for (size_t i = 0; i < poll->count; i++)
        rlk_condition_put_wait_locked(poll->waits[i]);
    poll->count = 0;
    while ((l = rlk_list_pop(&poll->over)) != NULL)
        rlk_condition_over_locked(RLK_CONTAINER_OF(l, struct rlk_wait, link), told);
}

/* rule: V12 */
static void send_poll(struct rlk_target *target, struct rlk_condition *condition,
                      int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_cond_args_list names[4];
    struct rlk_request req RLK_UNINITIALIZED;

    for (int i = 0; i < 4; i++)
        names[i] = (struct rlk_cond_args_list){ lists[i], 0 };
    condition->poll.again = false;
    name_waits(condition, names);
    name_over(condition, names);
    rlk_cond_args_poll(&req, client, condition, names);
    if (rlk_script_append(target->watch.conn, &req, condition->poll.with_text) != 0) {
        clear_poll(condition, false);
        condition->poll.again = true;
        return;
    }
    rlk_route_use_mail_of_locked(&client->route, condition->name, condition->name_len,
                                 now);
    rlk_condition_ref_locked(condition);
    rlk_renewer_put_in_flight(&target->watch, &condition->poll.op, RLK_OP_CONDITION_POLL,
                              now, rlk_client_command_timeout(client));
}

/* What the answer says of one wait. */
static void take_fate(struct rlk_wait *wait, const struct rlk_fate *fate)
{
    if (wait->state != RLK_WAIT_WAITING)
        return; /* it is over, or its thread has asked */
    if (fate->what == RLK_WAITING)
        wait->ticket = fate->ticket;
    else
        rlk_condition_told_locked(wait);
}

static void poll_done(struct rlk_target *target, struct rlk_condition *condition,
                      const struct rlk_answer *answer, const struct rlk_fate *fates)
{
    struct rlock_client *client = target->client;
    struct rlk_condition_poll *poll = &condition->poll;

    if (answer->outcome == RLK_DONE) {
        RLK_COUNT(client->counters.refreshes);
        for (size_t i = 0; i < poll->count; i++)
            take_fate(poll->waits[i], &fates[i]);
        if (answer->flags & RLK_UNHEARD) {
            atomic_store(&target->subscription.unheard_at, answer->sent);
            client->registry.subscriber_dirty = true;
        }
    }
    /* what the server refuses for good is given up: what it has ends by itself */
    clear_poll(condition, answer->outcome == RLK_DONE || answer->outcome == RLK_REFUSED);
}

/* ---- signals */

static bool has_signals_to_send(const struct rlk_condition *condition)
{
    const struct rlk_condition_signals *signals = &condition->signals;

    return signals->op.kind == RLK_OP_NONE && (signals->count > 0 || signals->all);
}

/* rule: V17 */
static void send_signals(struct rlk_target *target, struct rlk_condition *condition,
                         int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_condition_signals *signals = &condition->signals;
    struct rlk_request req RLK_UNINITIALIZED;
    const struct rlk_cond_args_signal args = {
        .name = condition->name,
        .name_len = condition->name_len,
        .count = signals->all ? 0 : signals->count,
        .bar = signals->all ? signals->bar : 0,
    };

    rlk_cond_args_signal(&req, client, &args);
    if (rlk_script_append(target->watch.conn, &req, signals->with_text) != 0)
        return;
    signals->in_flight =
        args.count < RLK_COND_ARGS_COUNT_MAX ? args.count : RLK_COND_ARGS_COUNT_MAX;
    rlk_condition_ref_locked(condition);
    signals->op.lease_ms = (int)(WAIT_PARTS * client->config.presence_ms);
    rlk_renewer_put_in_flight(&target->watch, &signals->op, RLK_OP_CONDITION_SIGNAL, now,
                              rlk_client_command_timeout(client));
}

static void tell_own(struct rlock_client *client, struct rlk_condition *condition,
                     const struct rlk_reply *reply,
                     const struct rlk_cond_args_woken *woken)
{
    struct rlk_id id;
    int64_t ticket;

    for (size_t i = 0; i < woken->own_count; i++)
        if (rlk_cond_args_read_own(reply, i, client->uuid, &id, &ticket))
            rlk_condition_told_own_locked(condition, &id, ticket,
                                          condition->signals.in_flight == 0);
}

/* The signals that were in flight are sent, but for `more`. */
static void signals_sent(struct rlk_condition *condition,
                         const struct rlk_cond_args_woken *woken)
{
    struct rlk_condition_signals *signals = &condition->signals;
    uint64_t sent = signals->in_flight;

    if (sent == 0) {
        signals->bar = woken->bar;
        signals->all = woken->more > 0;
    } else {
        sent -= woken->more < sent ? woken->more : sent;
        signals->count -= sent < signals->count ? sent : signals->count;
    }
}

/* The server refuses them for good. */
static void drop_signals(struct rlk_condition *condition)
{
    condition->signals.count = 0;
    condition->signals.all = false;
}

static void signal_done(struct rlock_client *client, struct rlk_condition *condition,
                        struct rlk_answer *answer, const struct rlk_reply *reply)
{
    struct rlk_cond_args_woken woken;

    if (answer->outcome == RLK_DONE && rlk_cond_args_read_woken(reply, &woken)) {
        tell_own(client, condition, reply, &woken);
        signals_sent(condition, &woken);
    } else if (answer->outcome == RLK_DONE || answer->outcome == RLK_REFUSED) {
        answer->outcome = RLK_REFUSED;
        drop_signals(condition);
    }
}

/* ---- what is due */

/* Whether a poll has anything to say. */
static bool has_news(const struct rlk_condition *condition)
{
    if (condition->poll.op.kind != RLK_OP_NONE)
        return false;
    if (!rlk_list_empty(&condition->over))
        return true;
    for (const struct rlk_list *l = condition->waits.next; l != &condition->waits;
         l = l->next)
        if (RLK_CONTAINER_OF(l, struct rlk_wait, link)->state != RLK_WAIT_JOINING)
            return true;
    return false;
}

void rlk_renewer_condition_due(struct rlock_client *client,
                               struct rlk_condition *condition, int64_t now)
{
    bool sends = has_signals_to_send(condition), polls = has_news(condition);
    struct rlk_target *target = NULL;

    rlk_condition_ref_locked(condition);
    if (sends || polls)
        target = rlk_renewer_target_of(client, condition->name, condition->name_len);
    if (target && rlk_renewer_ready(&target->watch)) {
        if (sends)
            send_signals(target, condition, now);
        if (polls && rlk_renewer_ready(&target->watch))
            send_poll(target, condition, now);
        rlk_condition_schedule_locked(condition, now);
    } else if (target) {
        rlk_timer_arm(&client->registry.timers, &condition->timer,
                      now + RLK_RENEWER_REFRESH_AGAIN_MS * RLK_NS_PER_MS);
    } else {
        rlk_condition_schedule_locked(condition, now);
    }
    rlk_condition_put_locked(condition);
}

/* ---- answers */

static enum rlk_script_id script_of(const struct rlk_op *op)
{
    return op->kind == RLK_OP_CONDITION_POLL ? RLK_COND_REFRESH : RLK_COND_SIGNAL;
}

static struct rlk_condition *condition_of(struct rlk_op *op)
{
    return op->kind == RLK_OP_CONDITION_POLL
               ? RLK_CONTAINER_OF(op, struct rlk_condition, poll.op)
               : RLK_CONTAINER_OF(op, struct rlk_condition, signals.op);
}

/* Reads the reply; NULL: none will come. */
static void read_reply(struct rlk_target *target, const struct rlk_op *op,
                       const struct rlk_condition *condition,
                       const struct rlk_reply *reply, struct rlk_answer *answer,
                       struct rlk_fate *fates, char *text, size_t text_size)
{
    struct rlock_client *client = target->client;

    if (!reply) {
        RLK_COUNT(client->counters.unknown_outcomes);
        return;
    }
    int64_t now = rlk_clock_boot();
    RLK_COUNT(client->counters.round_trips);
    RLK_PROBE2(reply, rlk_scripts[script_of(op)].name, RLK_PROBE_US(now - op->sent));
    rlk_client_answered(client, op->sent, now);
    if (op->kind == RLK_OP_CONDITION_SIGNAL && rlk_reply_type(reply) == RLK_REPLY_ARRAY) {
        answer->outcome = RLK_DONE;
        return;
    }
    rlk_script_decode(target->watch.conn, &rlk_scripts[script_of(op)], reply, op->sent,
                      answer, fates, condition->poll.count, text, text_size);
}

/* If the server does not know the script, the next request brings its text. */
static void settle_text(struct rlock_client *client, bool *with_text,
                        struct rlk_answer *answer)
{
    if (*with_text && answer->outcome == RLK_NOSCRIPT)
        answer->outcome = RLK_REFUSED;
    *with_text = answer->outcome == RLK_NOSCRIPT;
    if (*with_text)
        RLK_COUNT(client->counters.script_loads);
    if (answer->outcome == RLK_REFUSED)
        RLK_COUNT(client->counters.refusals);
}

/* How long to wait before a request that failed is repeated. */
static void settle_pause(struct rlk_condition *condition, const struct rlk_answer *answer)
{
    int64_t least = RLK_RENEWER_REFRESH_AGAIN_MS * RLK_NS_PER_MS;
    int64_t most = condition->registry->presence_ns / 6;

    if (answer->outcome == RLK_DONE || answer->outcome == RLK_NOSCRIPT) {
        condition->pause = 0;
        return;
    }
    condition->pause *= 2;
    if (condition->pause > most)
        condition->pause = most;
    if (condition->pause < least)
        condition->pause = least;
}

/* rule: V4, V17 */
/* The request of a condition has ended. Locks: takes the registry's mu. */
void rlk_renewer_condition_done(struct rlk_target *target, struct rlk_op *op,
                                const struct rlk_reply *reply)
{
    struct rlock_client *client = target->client;
    struct rlk_registry *reg = &client->registry;
    struct rlk_condition *condition = condition_of(op);
    struct rlk_fate fates[RLK_RENEWER_NAMES_MAX] RLK_UNINITIALIZED;
    struct rlk_answer answer = { .outcome = RLK_UNKNOWN, .code = ENOTCONN };
    char text[RLK_SERVER_ERROR_SIZE] = "", shown[RLK_LOG_NAME_SIZE];
    char more[RLK_LOG_MORE_SIZE];
    bool polls = op->kind == RLK_OP_CONDITION_POLL;

    rlk_registry_lock(reg);
    bool had = rlk_condition_has_signals(condition);
    read_reply(target, op, condition, reply, &answer, fates, text, sizeof(text));
    settle_text(client,
                polls ? &condition->poll.with_text : &condition->signals.with_text,
                &answer);
    settle_pause(condition, &answer);
    if (polls)
        poll_done(target, condition, &answer, fates);
    else
        signal_done(client, condition, &answer, reply);
    if (polls)
        op->kind = RLK_OP_NONE;
    else
        rlk_condition_signals_over_locked(condition);
    if (polls && answer.outcome != RLK_DONE && answer.outcome != RLK_REFUSED)
        condition->poll.again = true;
    rlk_condition_count_signals_locked(condition, had);
    rlk_log_name(shown, sizeof(shown), condition->name, condition->name_len);
    rlk_condition_schedule_locked(condition, rlk_clock_boot());
    rlk_condition_put_locked(condition);
    rlk_registry_unlock(reg);
    rlk_renewer_follow(target, &answer);
    if (text[0] && answer.outcome != RLK_NOSCRIPT &&
        rlk_log_now(&target->watch.pace, rlk_clock_boot(), 1, more))
        rlk_log(RLK_LOG_WARNING, "rlock: %s of condition \"%s\" failed at %s: %s%s",
                polls ? "poll" : "signal", shown, target->endpoint->label, text, more);
}
