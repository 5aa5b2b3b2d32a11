/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the answers to the watchdog's requests mean for locks and holds; what is due, and
 * sent, is in renewer.c. An answer may be about a hold that has ended meanwhile, and none
 * may come at all: leases are judged by what the clock says when it is taken (T6).
 * Thread: the watchdog. Locks: hold the registry's mu.
 */
#include "client/renewer_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/probe.h"
#include "client/client.h"
#include "net/server_error.h"
#include "state/handoff.h"

#include <errno.h>
#include <stdlib.h>

enum {
    DENIED_FIRST_MS = 500, /* between releases that an ACL refuses, */
    DENIED_MAX_MS = 5000   /* and in the end */
};

static const char *const op_names[] = {
    [RLK_OP_NONE] = "",           [RLK_OP_RENEW] = "renewal",
    [RLK_OP_RELEASE] = "release", [RLK_OP_DOWNGRADE] = "downgrade",
    [RLK_OP_REFRESH] = "poll",    [RLK_OP_RENEW_READS] = "renewal",
    [RLK_OP_BURY] = "recovery",
};

/* The script that a request about a lock was. */
static const struct rlk_script *script_of(enum rlk_op_kind op,
                                          const struct rlk_lock *lock)
{
    const struct rlk_kind *kind = &rlk_kinds[lock->kind];
    return &rlk_scripts[op == RLK_OP_REFRESH     ? kind->refresh
                        : op == RLK_OP_RELEASE   ? kind->release
                        : op == RLK_OP_DOWNGRADE ? kind->downgrade
                                                 : kind->renew];
}

static void count_renewal(struct rlock_client *client, const struct rlk_answer *answer)
{
    if (answer->outcome == RLK_DONE)
        RLK_COUNT(client->counters.renewals);
    else if (answer->outcome != RLK_NOSCRIPT)
        RLK_COUNT(client->counters.renewal_failures);
}

/* rule: T6 */
/* Of one hold; `fate` is what became of it when the answer is DONE. op: the request, of
 * which others may have been the subject, too. */
static void renew_done(struct rlock_client *client, struct rlk_hold *hold,
                       const struct rlk_op *op, const struct rlk_answer *answer,
                       const struct rlk_fate *fate, int64_t now)
{
    if (!rlk_hold_is_live(hold)) {
        /* it ended meanwhile; what waits for this answer goes on */
        if (hold->timer.armed || hold->ending.give_up_at != 0)
            rlk_timer_arm(&client->registry.timers, &hold->timer, now);
        return;
    }
    if (now >= hold->end) {
        rlk_hold_lose_locked(hold, RLK_LOSS_UNCONFIRMED, now);
        return;
    }
    if (answer->outcome == RLK_NOSCRIPT) {
        hold->lease.doubted = hold->fixed;
        hold->renew_at = now;
    } else if (answer->outcome != RLK_DONE) {
        hold->lease.refused = answer->outcome == RLK_REFUSED;
        hold->lease.unreadable = answer->unreadable != NULL;
        hold->lease.doubted = hold->fixed;
        hold->renew_at = hold->ask_after = rlk_renewer_retry_time(hold, now);
    } else if (fate->what == RLK_HELD) {
        RLK_PROBE2(lease_renewed, RLK_PROBE_TEXT(hold->lock->name), fate->remaining_ms);
        hold->lease.refused = hold->lease.reported_lost = false;
        if (op->kind == RLK_OP_DOWNGRADE)
            hold->server.downgrade = false;
        rlk_handoff_tokens_locked(hold, fate, hold->tokens.asked);
        if (!hold->fixed)
            rlk_hold_confirm_locked(hold, answer->sent, fate->remaining_ms);
        rlk_handoff_renewed_locked(hold, answer->sent, answer->flags, op->asks);
        rlk_handoff_answered_retained_locked(hold);
        if (rlk_handoff_retained_due_locked(hold, now))
            return;
        if (hold->lease.doubted) /* since this was sent */
            hold->renew_at = now;
        else if (hold->renew_at <= now &&
                 !rlk_hold_is_retained(hold)) /* nothing was gained */
            hold->renew_at = rlk_renewer_retry_time(hold, now);
        else if (op->crowded && !rlk_hold_is_retained(hold) && !hold->fixed)
            rlk_renewer_spread(hold, answer->sent, now);
    } else {
        rlk_hold_lose_locked(hold, RLK_LOSS_NOT_OURS, now);
        return;
    }
    rlk_hold_schedule_locked(hold);
}

/* Of all that were renewed together. */
static void read_renewals_done(struct rlock_client *client, struct rlk_lock *lock,
                               const struct rlk_answer *answer,
                               const struct rlk_fate *fates, int64_t now)
{
    count_renewal(client, answer);
    for (size_t i = 0; i < lock->queue->renewal.count; i++) {
        struct rlk_hold *hold = lock->queue->renewal.holds[i];
        hold->op = NULL;
        renew_done(client, hold, &lock->queue->renewal.op, answer, &fates[i], now);
    }
    /* while this one was in flight, nobody's timer was armed for a renewal */
    for (struct rlk_list *l = lock->queue->reads.next; l != &lock->queue->reads;
         l = l->next)
        rlk_hold_schedule_locked(RLK_CONTAINER_OF(l, struct rlk_hold, link));
}

/* An administrator mends an ACL, if at all, in seconds or minutes; each try that is
 * refused stands in the server's ACL LOG. */
static int64_t denied_until(struct rlk_hold *hold, int64_t now)
{
    int next = 2 * hold->backoff_ms;

    if (next < DENIED_FIRST_MS)
        next = DENIED_FIRST_MS;
    hold->backoff_ms = (uint16_t)(next < DENIED_MAX_MS ? next : DENIED_MAX_MS);
    int64_t ns = hold->backoff_ms * RLK_NS_PER_MS;
    return now + ns - now / 1000 % (ns / 4 + 1);
}

static void release_done(struct rlock_client *client, struct rlk_hold *hold,
                         const struct rlk_answer *answer, int64_t now)
{
    bool lost = hold->state == RLK_HOLD_LOST;

    if (answer->outcome == RLK_DONE) {
        RLK_COUNT(client->counters.background_releases);
        if (rlk_cursor_set(answer->more))
            rlk_queue_go_on_locked(hold->lock, answer->more);
    }
    if (answer->outcome == RLK_NOSCRIPT)
        hold->ending.release_sent = false;
    if (answer->outcome == RLK_REFUSED && answer->code == EACCES &&
        rlk_hold_denied_locked(hold, denied_until(hold, now)))
        return;
    if (answer->outcome == RLK_DONE || answer->outcome == RLK_REFUSED ||
        (lost && answer->outcome != RLK_NOSCRIPT)) {
        rlk_hold_background_end_locked(hold);
        return;
    }
    rlk_hold_background_locked(
        hold, answer->outcome == RLK_NOSCRIPT ? now : rlk_renewer_retry_time(hold, now),
        hold->ending.give_up_at);
}

/* Until a refresh without an answer, or with none that can be read, is repeated: soon at
 * first. Refused for good, it is no use: whoever waits asks himself, and his answer says
 * when. */
static int64_t refresh_pause(struct rlk_lock *lock, const struct rlk_answer *answer)
{
    int64_t presence = lock->registry->presence_ns;

    if (answer->outcome == RLK_NOSCRIPT)
        return 0;
    if (answer->outcome == RLK_REFUSED && !answer->unreadable)
        return presence / 3;
    lock->queue->pause *= 2;
    if (lock->queue->pause > presence / 20)
        lock->queue->pause = presence / 20;
    if (lock->queue->pause < RLK_RENEWER_REFRESH_AGAIN_MS * RLK_NS_PER_MS)
        lock->queue->pause = RLK_RENEWER_REFRESH_AGAIN_MS * RLK_NS_PER_MS;
    return lock->queue->pause;
}

static void refresh_done(struct rlock_client *client, struct rlk_lock *lock,
                         const struct rlk_answer *answer, const struct rlk_fate *fates,
                         int64_t now)
{
    struct rlk_registry *reg = &client->registry;

    if (answer->outcome != RLK_DONE) {
        lock->queue->round_open = false;
        /* from the head: the ticket may be stale by then. Where nobody waits any more,
         * others' polls will find the lock. */
        if (lock->queue->op_goes_on &&
            (answer->outcome == RLK_NOSCRIPT || !rlk_list_empty(&lock->queue->asks)))
            rlk_queue_go_on_locked(lock, (struct rlk_cursor){ 0 });
        if (answer->outcome != RLK_NOSCRIPT)
            rlk_queue_trouble_locked(lock, answer->code, lock->queue->refresh.op.sent);
        for (size_t i = 0;
             answer->outcome == RLK_REFUSED && i < lock->queue->refresh.count; i++)
            rlk_hold_ask_again_locked(lock->queue->refresh.holds[i], now);
        rlk_timer_arm(&reg->timers, &lock->queue->timer,
                      now + refresh_pause(lock, answer));
        return;
    }
    lock->queue->pause = 0;
    RLK_COUNT(client->counters.refreshes);
    rlk_queue_reached_locked(lock, now);
    for (size_t i = 0; i < lock->queue->refresh.count; i++) {
        struct rlk_hold *hold = lock->queue->refresh.holds[i];
        /* a newer answer knows better */
        if (hold->state != RLK_HOLD_REQUESTED || hold->request.granted ||
            hold->request.need_ask || hold->request.ticket_sent > answer->sent)
            continue;
        hold->request.flags = answer->flags;
        if (fates[i].what == RLK_HELD) {
            int64_t left = fates[i].remaining_ms;
            if (left > hold->id.grant_ms) /* than what a grant is given for */
                left = hold->id.grant_ms;
            RLK_COUNT(client->counters.grants);
            rlk_hold_held_locked(hold, answer->sent, left, fates[i].token);
        } else if (fates[i].what == RLK_QUEUED) {
            rlk_hold_queued_locked(hold, fates[i].ticket, answer->sent);
        } else if (fates[i].what == RLK_UNRECOVERABLE) {
            rlk_hold_unrecoverable_locked(hold);
        } else {
            rlk_hold_gone_locked(hold);
        }
    }
    rlk_queue_answered_locked(lock, answer->sent, answer->pttl_ms, answer->flags);
    if (answer->flags & RLK_UNHEARD) {
        atomic_store(&client->subscription.unheard_at, answer->sent);
        reg->subscriber_dirty = true;
    }
    if (lock->queue->poll_again || lock->queue->round_open)
        rlk_timer_arm(&reg->timers, &lock->queue->timer, now);
}

void rlk_renewer_done(struct rlock_client *client, struct rlk_op *op,
                      const struct rlk_reply *reply)
{
    struct rlk_registry *reg = &client->registry;
    struct rlk_watch *watch = &client->watch;
    struct rlk_answer answer = { .outcome = RLK_UNKNOWN, .code = ENOTCONN };
    struct rlk_fate fates[RLK_RENEWER_NAMES_MAX] RLK_UNINITIALIZED;
    char text[RLK_SERVER_ERROR_SIZE] = "", shown[RLK_LOG_NAME_SIZE] = "";
    enum rlk_op_kind kind = op->kind;

    rlk_list_remove(&op->link);
    watch->op_count--;
    if (rlk_list_empty(&watch->ops))
        watch->op_deadline = RLK_NEVER;
    if (kind == RLK_OP_BURY) {
        rlk_peer_watch_answered(client, op, reply);
        if (rlk_conn_state(watch->conn) == RLK_CONN_DEAD && rlk_conn_moved(watch->conn))
            rlk_subscriber_look(client);
        return;
    }
    rlk_registry_lock(reg);
    int64_t now =
        rlk_clock_boot();         /* leases are judged by what the clock says now (T6) */
    struct rlk_lock *lock = NULL; /* of a request about several holds */
    if (kind == RLK_OP_REFRESH)
        lock = RLK_CONTAINER_OF(op, struct rlk_queue, refresh.op)->lock;
    else if (kind == RLK_OP_RENEW_READS)
        lock = RLK_CONTAINER_OF(op, struct rlk_queue, renewal.op)->lock;
    size_t count = kind == RLK_OP_REFRESH       ? lock->queue->refresh.count
                   : kind == RLK_OP_RENEW_READS ? lock->queue->renewal.count
                                                : 1;
    if (reply) {
        RLK_COUNT(client->counters.round_trips);
        const struct rlk_script *script = script_of(kind, lock ? lock : op->hold->lock);
        RLK_PROBE2(reply, script->name, RLK_PROBE_US(now - op->sent));
        rlk_client_answered(client, op->sent, now);
        rlk_script_decode(watch->conn, script, reply, op->sent, &answer, fates, count,
                          text, sizeof(text));
    } else {
        RLK_COUNT(client->counters.unknown_outcomes);
    }
    if (rlk_conn_state(watch->conn) == RLK_CONN_DEAD && rlk_conn_moved(watch->conn))
        reg->subscriber_dirty = true;
    if (text[0]) {
        const struct rlk_lock *about = lock ? lock : op->hold->lock;
        rlk_log_name(shown, sizeof(shown), about->name, about->name_len);
    }
    bool had_text = kind == RLK_OP_REFRESH       ? lock->queue->refresh.with_text
                    : kind == RLK_OP_RENEW_READS ? lock->queue->renewal.with_text
                                                 : op->hold->server.with_text;
    if (lock)
        op->kind = RLK_OP_NONE; /* there may be another; what is of one hold is freed */
    if (had_text && answer.outcome == RLK_NOSCRIPT)
        answer.outcome = RLK_REFUSED; /* it had the text */
    bool wants_text = answer.outcome == RLK_NOSCRIPT;
    if (wants_text)
        RLK_COUNT(client->counters.script_loads);
    if (answer.outcome == RLK_REFUSED)
        RLK_COUNT(client->counters.refusals);
    if (kind == RLK_OP_REFRESH)
        lock->queue->refresh.with_text = wants_text;
    else if (kind == RLK_OP_RENEW_READS)
        lock->queue->renewal.with_text = wants_text;
    else
        op->hold->server.with_text = wants_text;
    if (kind == RLK_OP_REFRESH) {
        refresh_done(client, lock, &answer, fates, now);
        rlk_renewer_batch_clear(&lock->queue->refresh);
        if (answer.outcome == RLK_DONE && rlk_cursor_set(answer.more)) {
            bool alone = !lock->queue->going_on;
            rlk_queue_go_on_locked(lock, answer.more);
            lock->queue->after_refresh = alone;
        }
        rlk_lock_put_locked(lock);
    } else if (kind == RLK_OP_RENEW_READS) {
        read_renewals_done(client, lock, &answer, fates, now);
        rlk_renewer_batch_clear(&lock->queue->renewal);
        rlk_lock_put_locked(lock);
    } else {
        struct rlk_hold *hold = op->hold;
        hold->op = NULL;
        if (kind == RLK_OP_RELEASE) {
            release_done(client, hold, &answer, now);
        } else {
            count_renewal(client, &answer);
            renew_done(client, hold, op, &answer, &answer.fate, now);
            if (answer.outcome == RLK_DONE && rlk_cursor_set(answer.more))
                rlk_queue_go_on_locked(hold->lock, answer.more);
        }
        free(op);
        rlk_hold_put_locked(hold);
    }
    rlk_registry_unlock(reg);
    char more[RLK_LOG_MORE_SIZE];
    if (text[0] && rlk_log_now(&watch->pace, now, 1, more))
        rlk_log(
            RLK_LOG_WARNING, "rlock: %s of \"%s\" %s at %s: %s%s", op_names[kind], shown,
            answer.outcome == RLK_REFUSED && !answer.unreadable ? "refused" : "failed",
            client->config.target.label, text, more);
}
