/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the answers to the watchdog's requests mean for locks and holds; renewer.c sends
 * what is due. The table `operations` has one line for each kind of request. The hold
 * that an answer is about may have ended meanwhile, and an answer may never come: leases
 * are judged by what the clock says when the answer is taken (T6). Thread: the watchdog.
 * Locks: hold the registry's mu.
 */
#include "client/renewer_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/probe.h"
#include "client/client.h"
#include "net/redirect.h"
#include "net/server_error.h"
#include "state/handoff.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    DENIED_FIRST_MS = 500, /* the first pause between releases that an ACL refuses */
    DENIED_MAX_MS = 5000,  /* the longest one */
    ASK_AGAIN_MS = 1000    /* before a hold that was renewed with one key is asked about
                              again: who waits is in other keys */
};
#define RELEASE_NS RLK_NS_PER_S /* for a release that has waited for replicas */

/* What came of a request, and its subject: one hold, or the holds that a batch names. */
struct outcome {
    struct rlk_target *target;
    struct rlock_client *client; /* the target's */
    const struct rlk_op *op;
    struct rlk_lock *lock;
    struct rlk_hold *hold;   /* NULL: about a batch */
    struct rlk_batch *batch; /* NULL: about a hold */
    struct rlk_answer answer;
    const struct rlk_fate *fates; /* of each hold, when the answer is DONE */
    bool at_once; /* the request goes in another form, and need not wait for that */
    int64_t now;
};

static void count_renewal(struct rlock_client *client, const struct rlk_answer *answer)
{
    if (answer->outcome == RLK_DONE)
        RLK_COUNT(client->counters.renewals);
    else if (answer->outcome != RLK_NOSCRIPT)
        RLK_COUNT(client->counters.renewal_failures);
}

/* rule: P12 */
/* Whether replicas have confirmed what was sent, if they have to. None is asked about a
 * downgrade, nor about reads one of which is gone: the next renewal follows soon. */
static bool is_confirmed(const struct outcome *o)
{
    return o->op->proven || !rlk_confirm_is_on(&o->client->config.wait);
}

/* rule: P16 */
/* Whether another node of the cluster has had the lock since the request left: what the
 * node before says of it is no proof. (The doubt was taken back when it left.) */
static bool is_outdated(const struct outcome *o, const struct rlk_hold *hold)
{
    return rlk_route_is_cluster(&o->client->route) && hold->lease.doubted;
}

/* rule: T6 */
/* What the answer to a renewal, which may be of several holds, means for one of them.
 * `fate`: what became of this hold, when the answer is DONE. */
static void renew_done(const struct outcome *o, struct rlk_hold *hold,
                       const struct rlk_fate *fate)
{
    const struct rlk_op *op = o->op;
    const struct rlk_answer *answer = &o->answer;
    int64_t now = o->now;

    if (!rlk_hold_is_live(hold)) {
        /* the hold ended meanwhile; its release, which waits for this answer, goes on,
         * also if replicas took long */
        if (op->few_replicas && hold->state == RLK_HOLD_LOST &&
            hold->ending.give_up_at != 0 && !hold->ending.release_sent)
            hold->ending.give_up_at = now + RELEASE_NS;
        if (hold->timer.armed || hold->ending.give_up_at != 0)
            rlk_timer_arm(&o->client->registry.timers, &hold->timer, now);
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
        hold->lease.few_replicas = op->few_replicas;
        hold->lease.unreadable = answer->unreadable != NULL;
        hold->lease.doubted = hold->fixed;
        hold->renew_at = hold->ask_after =
            o->at_once ? now : rlk_renewer_retry_time(hold, now);
    } else if (fate->what == RLK_HELD) {
        RLK_PROBE2(lease_renewed, RLK_PROBE_TEXT(hold->lock->name), fate->remaining_ms);
        hold->lease.refused = hold->lease.reported_lost = false;
        hold->lease.few_replicas = false;
        if (op->kind == RLK_OP_DOWNGRADE && !op->alone)
            hold->server.downgrade = false;
        if (op->alone)
            hold->ask_after = now + ASK_AGAIN_MS * RLK_NS_PER_MS;
        rlk_handoff_tokens_locked(hold, fate, hold->tokens.asked);
        if (!hold->fixed && is_confirmed(o) && !is_outdated(o, hold))
            rlk_hold_confirm_locked(hold, answer->sent, fate->remaining_ms);
        rlk_handoff_renewed_locked(hold, answer->sent, answer->flags, op->asks);
        rlk_handoff_answered_retained_locked(hold);
        if (rlk_handoff_retained_due_locked(hold, now))
            return;
        if (hold->lease.doubted) /* since this request left */
            hold->renew_at = now;
        else if (hold->renew_at <= now &&
                 !rlk_hold_is_retained(hold)) /* the renewal gained no time */
            hold->renew_at = rlk_renewer_retry_time(hold, now);
        else if (op->crowded && !rlk_hold_is_retained(hold) && !hold->fixed)
            rlk_renewer_spread(hold, answer->sent, now);
    } else if (op->kind == RLK_OP_DOWNGRADE && op->alone) {
        /* rule: W19 */
        /* it has taken place, or the hold is gone: the key of the readers says which */
        hold->server.downgrade = false;
        hold->renew_at = now;
    } else {
        rlk_hold_lose_locked(hold, RLK_LOSS_NOT_OURS, now);
        return;
    }
    rlk_hold_schedule_locked(hold);
}

static void renewal_done(const struct outcome *o)
{
    count_renewal(o->client, &o->answer);
    renew_done(o, o->hold, &o->fates[0]);
    if (o->answer.outcome == RLK_DONE && rlk_cursor_set(o->answer.more))
        rlk_queue_go_on_locked(o->lock, o->answer.more);
}

static void read_renewals_done(const struct outcome *o)
{
    struct rlk_queue *queue = o->lock->queue;

    count_renewal(o->client, &o->answer);
    for (size_t i = 0; i < o->batch->count; i++) {
        struct rlk_hold *hold = o->batch->holds[i];
        hold->op = NULL;
        renew_done(o, hold, &o->fates[i]);
    }
    /* while this request was in flight, no timer was armed for a renewal of a read */
    for (struct rlk_list *l = queue->reads.next; l != &queue->reads; l = l->next)
        rlk_hold_schedule_locked(RLK_CONTAINER_OF(l, struct rlk_hold, link));
}

/* When to repeat a release that an ACL refused. The pauses are long: an administrator
 * needs seconds or minutes to mend an ACL, and each refused try stands in the server's
 * ACL LOG. */
static int64_t denied_until(struct rlk_hold *hold, int64_t now)
{
    int next = 2 * hold->backoff_ms;

    if (next < DENIED_FIRST_MS)
        next = DENIED_FIRST_MS;
    hold->backoff_ms = (uint16_t)(next < DENIED_MAX_MS ? next : DENIED_MAX_MS);
    int64_t ns = hold->backoff_ms * RLK_NS_PER_MS;
    return now + ns - now / 1000 % (ns / 4 + 1);
}

static void release_done(const struct outcome *o)
{
    struct rlk_hold *hold = o->hold;
    const struct rlk_answer *answer = &o->answer;
    bool lost = hold->state == RLK_HOLD_LOST;

    if (answer->outcome == RLK_DONE) {
        RLK_COUNT(o->client->counters.background_releases);
        if (rlk_cursor_set(answer->more))
            rlk_queue_go_on_locked(hold->lock, answer->more);
    }
    if (answer->outcome == RLK_NOSCRIPT || answer->redirected || o->at_once)
        hold->ending.release_sent = false;
    if (answer->outcome == RLK_REFUSED && answer->code == EACCES &&
        rlk_hold_denied_locked(hold, denied_until(hold, o->now)))
        return;
    if (answer->outcome == RLK_DONE || answer->outcome == RLK_REFUSED ||
        (lost && answer->outcome != RLK_NOSCRIPT && !answer->redirected && !o->at_once)) {
        rlk_hold_background_end_locked(hold);
        return;
    }
    rlk_hold_background_locked(hold,
                               answer->outcome == RLK_NOSCRIPT || o->at_once
                                   ? o->now
                                   : rlk_renewer_retry_time(hold, o->now),
                               hold->ending.give_up_at);
}

/* How long to wait before a failed refresh is repeated: a short time at first. If it was
 * refused for good, a repetition is of no use: the waiting threads ask the server
 * themselves, and their answers say when to poll. */
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

/* A refresh had no answer, or was refused. */
static void refresh_failed(const struct outcome *o)
{
    struct rlk_lock *lock = o->lock;
    struct rlk_queue *queue = lock->queue;
    const struct rlk_answer *answer = &o->answer;

    queue->round_open = false;
    /* Goes on from the head, because the ticket may be stale by then. Where no thread
     * waits any more, the polls of other processes will find the lock. */
    if (queue->op_goes_on &&
        (answer->outcome == RLK_NOSCRIPT || !rlk_list_empty(&queue->asks)))
        rlk_queue_go_on_locked(lock, (struct rlk_cursor){ 0 });
    if (answer->outcome != RLK_NOSCRIPT)
        rlk_queue_trouble_locked(lock, answer->code, o->op->sent);
    for (size_t i = 0; answer->outcome == RLK_REFUSED && i < o->batch->count; i++)
        rlk_hold_ask_again_locked(o->batch->holds[i], o->now);
    rlk_timer_arm(&o->client->registry.timers, &queue->timer,
                  o->now + refresh_pause(lock, answer));
}

/* What a refresh says about one hold that waits. */
static void refresh_hold(const struct outcome *o, struct rlk_hold *hold,
                         const struct rlk_fate *fate)
{
    /* a newer answer counts more than this one */
    if (hold->state != RLK_HOLD_REQUESTED || hold->request.granted ||
        hold->request.need_ask || hold->request.ticket_sent > o->answer.sent)
        return;
    hold->request.flags = o->answer.flags;
    /* rule: P16 */
    if (fate->what == RLK_HELD || hold->request.ticket == 0)
        hold->request.moves = o->answer.moves; /* else a message may be of a server that
                                                  had the lock before */
    if (fate->what == RLK_HELD) {
        int64_t left = fate->remaining_ms;
        if (left > hold->id.grant_ms) /* no grant is given for longer */
            left = hold->id.grant_ms;
        RLK_COUNT(o->client->counters.grants);
        rlk_hold_found_locked(hold, o->answer.sent, left, fate->token);
    } else if (fate->what == RLK_QUEUED) {
        rlk_hold_queued_locked(hold, fate->ticket, o->answer.sent);
    } else if (fate->what == RLK_UNRECOVERABLE) {
        rlk_hold_unrecoverable_locked(hold);
    } else {
        rlk_hold_gone_locked(hold);
    }
}

static void refresh_answered(const struct outcome *o)
{
    struct rlock_client *client = o->client;
    struct rlk_queue *queue = o->lock->queue;
    const struct rlk_answer *answer = &o->answer;

    queue->pause = 0;
    RLK_COUNT(client->counters.refreshes);
    rlk_queue_reached_locked(o->lock, o->now);
    for (size_t i = 0; i < o->batch->count; i++)
        refresh_hold(o, o->batch->holds[i], &o->fates[i]);
    rlk_queue_answered_locked(o->lock, answer->sent, answer->pttl_ms, answer->flags);
    if (answer->flags & RLK_UNHEARD) {
        atomic_store(&o->target->subscription.unheard_at, answer->sent);
        client->registry.subscriber_dirty = true;
    }
    if (queue->poll_again || queue->round_open)
        rlk_timer_arm(&client->registry.timers, &queue->timer, o->now);
}

static void refresh_done(const struct outcome *o)
{
    struct rlk_queue *queue = o->lock->queue;

    if (o->answer.outcome != RLK_DONE) {
        refresh_failed(o);
        return;
    }
    refresh_answered(o);
    if (rlk_cursor_set(o->answer.more)) {
        bool alone = !queue->going_on;
        rlk_queue_go_on_locked(o->lock, o->answer.more);
        queue->after_refresh = alone;
    }
}

/* ---- operations */

struct operation {
    const char *name; /* in log lines */
    size_t script;    /* where struct rlk_kind names the script */
    size_t batch;     /* where struct rlk_queue has the batch; 0: it is about one hold */
    void (*done)(const struct outcome *o);
};

#define SCRIPT(field) offsetof(struct rlk_kind, field)
#define BATCH(field) offsetof(struct rlk_queue, field)

static const struct operation operations[] = {
    [RLK_OP_RENEW] = { "renewal", SCRIPT(renew), 0, renewal_done },
    [RLK_OP_DOWNGRADE] = { "downgrade", SCRIPT(downgrade), 0, renewal_done },
    [RLK_OP_RELEASE] = { "release", SCRIPT(release), 0, release_done },
    [RLK_OP_REFRESH] = { "poll", SCRIPT(refresh), BATCH(refresh), refresh_done },
    [RLK_OP_RENEW_READS] = { "renewal", SCRIPT(renew), BATCH(renewal),
                             read_renewals_done },
    [RLK_OP_BURY] = { "recovery", 0, 0, NULL }, /* peer_watch.c takes the answer */
    [RLK_OP_WAIT] = { "wait", 0, 0, NULL },     /* renewer_wait.c takes it */
};

static const struct rlk_script *script_of(const struct operation *operation,
                                          const struct outcome *o)
{
    enum rlk_script_id script;

    if (o->batch && o->batch->steps)
        return rlk_renewer_reads_script(o->batch);
    if (o->op->alone && o->op->kind != RLK_OP_RELEASE)
        return &rlk_scripts[RLK_LOCK_RAISE];
    if (o->op->alone)
        return &rlk_scripts[o->hold->reading ? RLK_READER_DROP : RLK_LOCK_DROP];

    memcpy(&script, (const char *)&rlk_kinds[o->lock->kind] + operation->script,
           sizeof(script));
    return &rlk_scripts[script];
}

/* Fills in what a request was about. */
static void find_subject(struct outcome *o, const struct operation *operation,
                         struct rlk_op *op)
{
    o->op = op;
    if (operation->batch == 0) {
        o->hold = op->hold;
        o->lock = op->hold->lock;
        return;
    }
    o->batch = RLK_CONTAINER_OF(op, struct rlk_batch, op);
    o->lock = ((struct rlk_queue *)(void *)((char *)o->batch - operation->batch))->lock;
}

/* Reads the reply; NULL: none will come. `text` says what is wrong, if anything is. */
static void read_reply(struct outcome *o, const struct operation *operation,
                       const struct rlk_reply *reply, struct rlk_fate *fates, char *text,
                       size_t text_size)
{
    struct rlock_client *client = o->client;
    const struct rlk_script *script = script_of(operation, o);

    if (!reply) {
        RLK_COUNT(client->counters.unknown_outcomes);
        return;
    }
    RLK_COUNT(client->counters.round_trips);
    RLK_PROBE2(reply, script->name, RLK_PROBE_US(o->now - o->op->sent));
    rlk_client_answered(client, o->op->sent, o->now);
    rlk_script_decode(o->target->watch.conn, script, reply, o->op->sent, &o->answer,
                      fates, o->batch ? rlk_renewer_reads_fates(o->batch) : 1, text,
                      text_size);
    o->answer.moves = rlk_route_is_cluster(&client->route)
                          ? o->op->changes
                          : rlk_conn_moves_seen(o->target->watch.conn);
}

/* If the server does not know the script, the next request brings its text. If this
 * request brought it, it counts as refused. */
static void settle_text(struct outcome *o)
{
    struct rlk_answer *answer = &o->answer;
    bool had_text = o->batch ? o->batch->with_text : o->hold->server.with_text;

    if (had_text && answer->outcome == RLK_NOSCRIPT)
        answer->outcome = RLK_REFUSED;
    bool wants_text = answer->outcome == RLK_NOSCRIPT;
    if (wants_text)
        RLK_COUNT(o->client->counters.script_loads);
    if (answer->outcome == RLK_REFUSED)
        RLK_COUNT(o->client->counters.refusals);
    if (o->batch)
        o->batch->with_text = wants_text;
    else
        o->hold->server.with_text = wants_text;
}

/* rule: P20 */
/* What the answer says about the way of the next request about the hold: in what form it
 * goes, and to which node. */
static void settle_way(struct outcome *o, const struct rlk_op *op)
{
    struct rlk_hold *hold = o->hold;
    const struct rlk_answer *answer = &o->answer;
    const struct rlk_redirect *redirect =
        answer->redirected ? rlk_conn_redirect(o->target->watch.conn) : NULL;
    bool asks = redirect && redirect->kind == RLK_REDIRECT_ASK;
    bool splits = !op->alone && (answer->split || asks);
    bool was_asking = hold->server.asking;

    if (answer->outcome == RLK_NOSCRIPT) /* the same request again, with the text */
        return;
    hold->server.asking = op->alone && asks;
    hold->server.alone = hold->server.asking || splits;
    o->at_once = rlk_renewer_goes_alone(hold) && (splits || !was_asking);
}

/* Whether a renewal of reads goes on with one key at a time. */
static bool goes_on(struct outcome *o, struct rlk_fate *fates)
{
    const struct rlk_redirect *redirect =
        o->answer.redirected ? rlk_conn_redirect(o->target->watch.conn) : NULL;
    bool asks = redirect && redirect->kind == RLK_REDIRECT_ASK;

    return o->op->kind == RLK_OP_RENEW_READS &&
           rlk_renewer_reads_take(o->batch, &o->answer, fates, asks, is_confirmed(o));
}

/* Ends the request, and has its operation take the answer. */
static void finish(struct outcome *o, const struct operation *operation,
                   struct rlk_op *op)
{
    if (o->batch) {
        rlk_renewer_reads_end(o->batch);
        op->kind = RLK_OP_NONE; /* the lock may send another one */
        operation->done(o);
        rlk_renewer_batch_clear(o->batch);
        rlk_lock_put_locked(o->lock);
    } else {
        o->hold->op = NULL;
        settle_way(o, op);
        operation->done(o);
        free(op);
        rlk_hold_put_locked(o->hold);
    }
}

static void take_out(struct rlk_watch *watch, struct rlk_op *op)
{
    rlk_list_remove(&op->link);
    watch->op_count -= op->kept == NULL;
    if (rlk_list_empty(&watch->ops))
        watch->op_deadline = RLK_NEVER;
}

/* rule: P18, P24 */
/* The node does not have the lock, or cannot say: the map of the cluster follows. Locks:
 * none may be held. */
static void follow_redirect(struct rlk_target *target, bool redirected)
{
    const struct rlk_redirect *redirect =
        redirected ? rlk_conn_redirect(target->watch.conn) : NULL;

    if (redirect && redirect->kind == RLK_REDIRECT_MOVED)
        rlk_cluster_moved(target, redirect);
    else if (redirect)
        rlk_cluster_asked(target, redirect);
    else
        rlk_cluster_reload(target->client->route.cluster);
}

/* Sends the next step of a renewal of reads; the map of the cluster knows of the answer
 * by now. Locks: none may be held. */
static void go_on(struct outcome *o, const struct operation *operation, struct rlk_op *op)
{
    struct rlk_registry *reg = &o->client->registry;

    rlk_registry_lock(reg);
    o->now = rlk_clock_boot();
    if (!rlk_renewer_reads_go_on(o->client, o->lock, o->now)) {
        o->answer.outcome = RLK_RETRY;
        o->answer.code = ENOTCONN;
        finish(o, operation, op);
    }
    rlk_registry_unlock(reg);
}

static bool has_moved(const struct rlk_watch *watch)
{
    return rlk_conn_state(watch->conn) == RLK_CONN_DEAD && rlk_conn_moved(watch->conn);
}

void rlk_renewer_done(struct rlk_target *target, struct rlk_op *op,
                      const struct rlk_reply *reply)
{
    struct rlock_client *client = target->client;
    struct rlk_registry *reg = &client->registry;
    struct rlk_watch *watch = &target->watch;
    struct rlk_fate fates[RLK_RENEWER_NAMES_MAX] RLK_UNINITIALIZED;
    char text[RLK_SERVER_ERROR_SIZE] = "", shown[RLK_LOG_NAME_SIZE] = "";
    const struct operation *operation = &operations[op->kind];
    struct rlk_reply *kept = op->kept;

    take_out(watch, op);
    if (op->kind == RLK_OP_WAIT) {
        rlk_renewer_waited(target, reply);
        if (has_moved(watch))
            rlk_subscriber_look(client);
        return;
    }
    if (op->kind == RLK_OP_BURY) {
        if (rlk_peer_watch_answered(client, op, watch->conn, reply))
            follow_redirect(target, true);
        if (has_moved(watch))
            rlk_subscriber_look(client);
        return;
    }
    rlk_registry_lock(reg);
    struct outcome o = {
        .target = target,
        .client = client,
        .answer = { .outcome = RLK_UNKNOWN, .code = ENOTCONN },
        .fates = fates,
        .now = rlk_clock_boot(), /* leases are judged by what the clock says now (T6) */
    };
    find_subject(&o, operation, op);
    read_reply(&o, operation, reply, fates, text, sizeof(text));
    if (has_moved(watch))
        reg->subscriber_dirty = true;
    if (text[0])
        rlk_log_name(shown, sizeof(shown), o.lock->name, o.lock->name_len);
    settle_text(&o);
    bool more_steps = goes_on(&o, fates);
    if (!more_steps)
        finish(&o, operation, op);
    if (more_steps || o.at_once)
        text[0] = '\0'; /* nothing has failed */
    rlk_registry_unlock(reg);
    if (rlk_route_is_cluster(&client->route) && o.answer.outcome == RLK_RETRY &&
        !o.answer.split)
        follow_redirect(target, o.answer.redirected);
    if (more_steps)
        go_on(&o, operation, op);
    rlk_reply_free(kept);
    char more[RLK_LOG_MORE_SIZE];
    if (text[0] && rlk_log_now(&watch->pace, o.now, 1, more))
        rlk_log(RLK_LOG_WARNING, "rlock: %s of \"%s\" %s at %s: %s%s", operation->name,
                shown,
                o.answer.outcome == RLK_REFUSED && !o.answer.unreadable ? "refused"
                                                                        : "failed",
                target->endpoint->label, text, more);
}
