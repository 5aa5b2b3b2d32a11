/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replicas confirm the watchdog's renewals, in a client that wants that (P14). A WAIT
 * stands behind the renewals of a batch; until it is answered, their replies are kept,
 * and no other WAIT is sent. If too few replicas have confirmed, the next WAIT concerns
 * the same renewals, too, until their time has passed. Thread: the watchdog. Locks: takes
 * the registry's mu. Blocks: no.
 */
#include "client/renewer_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "client/client.h"
#include "net/server_error.h"

#include <limits.h>

enum {
    FIRST_MS = 1000,    /* a WAIT lasts this long at most, and */
    PRESENCE_PARTS = 6, /* for this part of the presence time (1/6), and */
    LEASE_PARTS = 12,   /* for this part of the shortest lease that waits (1/12), but */
    WAIT_MIN_MS = 10, /* for this long at least. After one with too few replicas the next
                         one lasts twice as long, */
    FEW_MAX = 3,      /* up to so many times, */
    LONGER_PARTS = 2, /* and for so many times the two parts above at most */
    SOON_PARTS = 4,   /* one that was over within this part of its time (1/4) makes the
                         next one as short as the one before */
    ANSWER_PARTS = 6  /* the answer may take this part of that lease (1/6), as one to a
                         renewal may */
};

int64_t rlk_renewer_wait_left(const struct rlk_watch *watch, int64_t now)
{
    int64_t left = watch->wait_until - now;

    return watch->wait.kind == RLK_OP_WAIT && left > 0 ? left : 0;
}

/* With one key, the request about a hold that is to be downgraded renews it as it is. */
static bool is_renewal(const struct rlk_op *op)
{
    return op->kind == RLK_OP_RENEW || op->kind == RLK_OP_RENEW_READS ||
           (op->kind == RLK_OP_DOWNGRADE && op->alone);
}

/* The shortest lease of the renewals in the list; `least` if none has a shorter one. */
static long shortest(const struct rlk_list *list, long least)
{
    for (const struct rlk_list *l = list->next; l != list; l = l->next) {
        const struct rlk_op *op = RLK_CONTAINER_OF(l, struct rlk_op, link);
        if (is_renewal(op) && op->lease_ms < least)
            least = op->lease_ms;
    }
    return least;
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The shortest lease of the renewals that wait for replicas, answered or not. 0: none
 * waits. */
static long shortest_lease(const struct rlk_watch *watch)
{
    long ms = shortest(&watch->ops, shortest(&watch->unproven, LONG_MAX));

    return ms == LONG_MAX ? 0 : ms;
}

/* How long the next WAIT lasts at the server. A server counts what the connection has
 * written until then: if replicas took longer than each WAIT, and something were written
 * between any two, none would ever count. */
static int64_t next_wait(const struct rlk_target *target, long lease_ms)
{
    const struct rlock_client *client = target->client;
    int64_t part = min_of(client->config.presence_ms * RLK_NS_PER_MS / PRESENCE_PARTS,
                          lease_ms * RLK_NS_PER_MS / LEASE_PARTS);
    int64_t ns = min_of(part, FIRST_MS * RLK_NS_PER_MS) << target->watch.few;

    ns = min_of(ns, LONGER_PARTS * part);
    return ns > WAIT_MIN_MS * RLK_NS_PER_MS ? ns : WAIT_MIN_MS * RLK_NS_PER_MS;
}

/* Whether a WAIT can be sent. Also with as many requests in flight as there may be:
 * replies wait for it. */
static bool can_wait(const struct rlk_target *target)
{
    const struct rlock_client *client = target->client;
    const struct rlk_watch *watch = &target->watch;

    return rlk_confirm_is_on(&client->config.wait) && watch->wait.kind != RLK_OP_WAIT &&
           watch->conn && rlk_conn_state(watch->conn) == RLK_CONN_READY;
}

int64_t rlk_renewer_wait_due(const struct rlk_target *target)
{
    const struct rlk_watch *watch = &target->watch;

    return can_wait(target) && shortest_lease(watch) > 0 ? watch->wait_at : RLK_NEVER;
}

bool rlk_renewer_keep(struct rlk_target *target, struct rlk_op *op,
                      struct rlk_reply *reply)
{
    struct rlock_client *client = target->client;
    struct rlk_watch *watch = &target->watch;

    /* errors, and holds that are gone, need no confirmation */
    if (!rlk_confirm_is_on(&client->config.wait) || !is_renewal(op) ||
        !rlk_script_all_held(reply))
        return false;
    rlk_list_remove(&op->link);
    rlk_list_append(&watch->unproven, &op->link);
    watch->op_count--; /* other requests may be sent meanwhile */
    op->kept = reply;
    if (rlk_list_empty(&watch->ops))
        watch->op_deadline = RLK_NEVER;
    return true;
}

/* Whether something is to be done about a hold of the renewal that cannot wait for
 * replicas: a message says that the lock may be lost, or ended. */
static bool presses(const struct rlk_op *op)
{
    const struct rlk_batch *batch;

    if (op->hold)
        return op->hold->lease.doubted || !rlk_hold_is_live(op->hold);
    batch = RLK_CONTAINER_OF(op, struct rlk_batch, op);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->holds[i]->lease.doubted || !rlk_hold_is_live(batch->holds[i]))
            return true;
    return false;
}

/* Of the renewals that replicas have not confirmed, ends those whose time has passed, or
 * that press; or all. `few`: too few replicas have confirmed them so far, which is the
 * reason if a hold is at risk meanwhile. Whether one has ended. */
static bool end_unproven(struct rlk_target *target, bool all, bool few)
{
    struct rlock_client *client = target->client;
    struct rlk_list *list = &target->watch.unproven, *next;
    int64_t now = rlk_clock_boot();
    bool ended = false;

    rlk_registry_lock(&client->registry);
    for (struct rlk_list *l = list->next; l != list; l = l->next) {
        struct rlk_op *op = RLK_CONTAINER_OF(l, struct rlk_op, link);
        op->few_replicas |= few;
        op->over = all || now >= op->deadline || presses(op);
    }
    rlk_registry_unlock(&client->registry);
    for (struct rlk_list *l = list->next; l != list; l = next) {
        struct rlk_op *op = RLK_CONTAINER_OF(l, struct rlk_op, link);
        next = l->next;
        if (!op->over)
            continue;
        ended = true;
        rlk_renewer_done(target, op, NULL);
    }
    return ended;
}

static void end_proven(struct rlk_target *target)
{
    struct rlk_list *list = &target->watch.unproven, *l;

    while ((l = rlk_list_first(list)) != NULL) {
        struct rlk_op *op = RLK_CONTAINER_OF(l, struct rlk_op, link);
        op->proven = true;
        rlk_renewer_done(target, op, op->kept);
    }
}

/* rule: P14 */
void rlk_renewer_wait(struct rlk_target *target, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_watch *watch = &target->watch;
    struct rlk_confirm_command command;

    if (!can_wait(target) || now < watch->wait_at)
        return;
    long lease_ms = shortest_lease(watch);
    if (lease_ms == 0)
        return;
    int64_t ns = next_wait(target, lease_ms);
    rlk_confirm_write(&command, &client->config.wait, ns);
    if (rlk_conn_append(watch->conn, command.argc, command.argv, command.len) != 0) {
        /* out of memory */
        watch->wait_at = now + RLK_RENEWER_REFRESH_AGAIN_MS * RLK_NS_PER_MS;
        end_unproven(target, false, false);
        return;
    }
    int64_t longest = ns + RLK_CONFIRM_LATE_MS * RLK_NS_PER_MS;
    int64_t answer = min_of(lease_ms * RLK_NS_PER_MS / ANSWER_PARTS,
                            rlk_client_command_timeout(client));
    rlk_renewer_put_in_flight(watch, &watch->wait, RLK_OP_WAIT, now, longest + answer);
    watch->wait_ns = ns;
    watch->wait_until = now + longest;
}

/* rule: P12, P14 */
void rlk_renewer_waited(struct rlk_target *target, const struct rlk_reply *reply)
{
    struct rlock_client *client = target->client;
    struct rlk_watch *watch = &target->watch;
    char text[RLK_SERVER_ERROR_SIZE], more[RLK_LOG_MORE_SIZE];
    int64_t now = rlk_clock_boot();
    int code = 0;

    watch->wait.kind = RLK_OP_NONE;
    watch->wait_at = 0;
    if (!reply)
        return; /* the connection has ended: so do the renewals */
    rlk_client_answered(client, watch->wait.sent, now);
    enum rlk_confirm_result result =
        rlk_confirm_read(&client->config.wait, reply, text, sizeof(text), &code);
    int64_t lasted = now - watch->wait.sent;
    if (result == RLK_CONFIRM_ENOUGH) {
        watch->few -= watch->few > 0 && lasted < watch->wait_ns / SOON_PARTS;
        end_proven(target);
        return;
    }
    /* Without a renewal it says nothing of how long replicas take: the server did not
     * know the script, and the renewal with its text is behind this WAIT. */
    watch->few += watch->few < FEW_MAX && !rlk_list_empty(&watch->unproven);
    if (result == RLK_CONFIRM_REPLICA)
        rlk_conn_leave(watch->conn, text);
    /* A server that does not wait, because of an error, is not asked all the time. */
    if (lasted < watch->wait_ns / 2)
        watch->wait_at = now + watch->wait_ns;
    bool few = result == RLK_CONFIRM_FEW;
    if (end_unproven(target, !few, few) && rlk_log_now(&watch->pace, now, 1, more))
        rlk_log(RLK_LOG_WARNING, "rlock: renewals at %s are not confirmed: %s%s",
                target->endpoint->label, text, more);
}
