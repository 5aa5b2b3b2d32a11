/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refreshes: the watchdog's polls for locks with queued waiters. A refresh proves the
 * waiters' presence, hands over a lock that came free without a release, and says what
 * became of each waiter. One request names the waiters of one lock; if there are too many
 * for one, several requests make a round. While the watchdog cannot connect, waiting
 * threads may ask the server in its place. Thread: the watchdog. Locks: hold the
 * registry's mu.
 */
#include "client/renewer_impl.h"

#include "base/clock.h"
#include "client/client.h"
#include "client/script_args.h"

#include <errno.h>

enum {
    TRY_AGAIN_MS = 100, /* at least between two attempts to connect, when a caller's
                           success brings the next one forward */
    ASKERS_MAX = 2      /* how many threads that wait for one lock ask in place of the
                           watchdog */
};

/* The ids in the request that is being made. */
static char names[RLK_RENEWER_NAMES_MAX * (RLK_ID_SIZE - RLK_UUID_LEN)];

/* rule: W16 */
/* Chooses the holds that the next refresh names: those that are queued as far as is known
 * (requesters of other holds ask the server themselves) and were not named in this round
 * yet. Writes their ids, and returns the text's length. */
static size_t name_holds(struct rlk_lock *lock)
{
    size_t len = 0;

    lock->queue->round_open = false;
    for (struct rlk_list *l = lock->queue->asks.next; l != &lock->queue->asks;
         l = l->next) {
        struct rlk_hold *hold = RLK_CONTAINER_OF(l, struct rlk_hold, link);
        if (hold->state != RLK_HOLD_REQUESTED || hold->request.need_ask ||
            hold->request.round == lock->queue->round)
            continue;
        if (lock->queue->refresh.count == RLK_RENEWER_NAMES_MAX ||
            !rlk_renewer_batch_add(&lock->queue->refresh, hold)) {
            lock->queue->round_open = true;
            break;
        }
        /* If the hand-over passed this hold over, because its mailbox was not heard, the
         * hand-over goes back to it: a hold that the refresh names needs no mailbox. Not
         * if the refresh that passed the hold over had named it, too. */
        int64_t *after =
            hold->reading ? &lock->queue->after.rqueue : &lock->queue->after.queue;
        bool named =
            lock->queue->after_refresh && hold->request.round + 1 == lock->queue->round;
        if (hold->request.ticket != 0 && hold->request.ticket <= *after && !named)
            *after = hold->request.ticket - 1;
        hold->request.round = lock->queue->round;
        len += rlk_id_write_local(names + len, &hold->id);
        names[len++] = ' ';
    }
    return len;
}

static void send_refresh(struct rlk_target *target, struct rlk_lock *lock, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_request req RLK_UNINITIALIZED;

    if (!lock->queue->round_open) {
        lock->queue->round++;
        lock->queue->poll_again = false; /* a poll that is asked for later takes another
                                            round */
    }
    size_t len = name_holds(lock);
    if (lock->queue->refresh.count == 0 && !lock->queue->going_on) {
        if (lock->queue->round_open) /* out of memory: tries again soon */
            lock->queue->poll_again = true;
        lock->queue->round_open = false;
        return;
    }
    rlk_script_args_refresh(&req, client, lock->kind, lock->name, lock->name_len,
                            lock->prefer, lock->queue->after, names, len);
    if (rlk_script_append(target->watch.conn, &req, lock->queue->refresh.with_text) !=
        0) {
        lock->queue->poll_again = true; /* the reason for this refresh is still there */
        lock->queue->round_open = false;
        lock->queue->after = (struct rlk_cursor){ 0 };
        rlk_renewer_batch_clear(&lock->queue->refresh);
        return;
    }
    rlk_route_use_mail_locked(&client->route, lock, now);
    rlk_lock_ref_locked(lock);
    lock->queue->op_goes_on = lock->queue->going_on;
    rlk_queue_went_on_locked(lock);
    rlk_renewer_put_in_flight(&target->watch, &lock->queue->refresh.op, RLK_OP_REFRESH,
                              now, rlk_client_command_timeout(client));
}

/* The watchdog has no connection to ask on. If the server has answered a caller lately,
 * and since the last attempt to connect, it is there again: no waiting thread gets an
 * error, and the next attempt is made soon. */
static void miss_connection(struct rlk_target *target, struct rlk_lock *lock, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_watch *watch = &target->watch;

    if (watch->down_since == 0 ||
        now - watch->down_since < RLK_RENEWER_OP_TIMEOUT_MIN_MS * RLK_NS_PER_MS)
        return;
    if (lock->queue->reached_at > watch->tried_at &&
        now - lock->queue->reached_at < rlk_client_command_timeout(client)) {
        int64_t soon = watch->tried_at + TRY_AGAIN_MS * RLK_NS_PER_MS;
        if (watch->retry_at > soon)
            watch->retry_at = soon;
    } else {
        rlk_queue_trouble_locked(lock, ENOTCONN, watch->down_since);
    }
}

/* The watchdog cannot connect, although the mailbox shows that the server is there: the
 * server may have no room for one more connection, or this process no descriptor. Then a
 * waiting thread asks the server itself, before its presence ends. A second one asks if
 * the first gets no answer. But if callers have no connection either, only one attempt in
 * a while is made, whatever the number of locks. */
static void poll_by_caller(struct rlk_target *target, struct rlk_lock *lock, int64_t now)
{
    struct rlock_client *client = target->client;
    int64_t presence = client->registry.presence_ns;
    int64_t down_since = target->watch.down_since;
    int64_t *in_vain_at = &client->registry.asked_in_vain_at;
    unsigned asking = 0;

    if (!atomic_load(&target->subscription.hears) || down_since == 0 ||
        now - down_since < presence / 6 || now - lock->queue->reached_at < presence / 2 ||
        now - lock->queue->sent_to_ask_at < presence / 6 ||
        now - *in_vain_at < presence / 6)
        return;
    for (struct rlk_list *l = lock->queue->asks.next; l != &lock->queue->asks;
         l = l->next) {
        struct rlk_hold *hold = RLK_CONTAINER_OF(l, struct rlk_hold, link);
        if (hold->request.need_ask && ++asking == ASKERS_MAX)
            return;
        if (rlk_hold_ask_too_locked(hold, now)) {
            lock->queue->sent_to_ask_at = now;
            if (*in_vain_at != 0)
                *in_vain_at = now; /* this thread tries for all */
            return;
        }
    }
}

void rlk_renewer_refresh_due(struct rlock_client *client, struct rlk_lock *lock,
                             int64_t now)
{
    struct rlk_target *target = rlk_renewer_target(client, lock);
    struct rlk_registry *reg = &client->registry;

    if (rlk_list_empty(&lock->queue->asks) && !lock->queue->going_on)
        return;
    /* rule: L4 */
    if (lock->queue->refresh.op.kind != RLK_OP_NONE) {
        lock->queue->poll_again = true; /* the request in flight may have run before the
                                           reason for this one */
        lock->queue->after = (struct rlk_cursor){ 0 }; /* stale when the next refresh is
                                                          sent */
        return;
    }
    if (rlk_renewer_ready(&target->watch)) {
        send_refresh(target, lock, now);
    } else {
        lock->queue->after = (struct rlk_cursor){ 0 }; /* the cursor would be stale */
        miss_connection(target, lock, now);
        poll_by_caller(target, lock, now);
        if (rlk_list_empty(&lock->queue->asks)) { /* the polls of other processes will
                                                     find the lock */
            rlk_queue_went_on_locked(lock);
            return;
        }
    }
    if (lock->queue->refresh.op.kind == RLK_OP_NONE)
        rlk_timer_arm(&reg->timers, &lock->queue->timer,
                      now + (rlk_renewer_ready(&target->watch) && !lock->queue->poll_again
                                 ? reg->presence_ns / 3
                                 : RLK_RENEWER_REFRESH_AGAIN_MS * RLK_NS_PER_MS));
}
