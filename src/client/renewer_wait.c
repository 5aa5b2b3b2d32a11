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

#include <errno.h>

enum {
    PRESENCE_PARTS =
        6,            /* a WAIT lasts for this part of the presence time (1/6) at most, */
    LEASE_PARTS = 12, /* and for this part of the shortest lease (1/12), */
    WAIT_MIN_MS = 10, /* but for this long at least */
    ANSWER_PARTS = 2  /* its answer may take so many times as long as it lasts; that is as
                         long as the answer to a renewal may take */
};

void rlk_renewer_note_lease(struct rlock_client *client, long lease_ms)
{
    struct rlk_watch *watch = &client->watch;
    int64_t most = lease_ms * RLK_NS_PER_MS / LEASE_PARTS;

    if (watch->wait_ns > most)
        watch->wait_ns = most;
    if (watch->wait_ns < WAIT_MIN_MS * RLK_NS_PER_MS)
        watch->wait_ns = WAIT_MIN_MS * RLK_NS_PER_MS;
}

/* For how long the server may wait from now on. */
static int64_t longest_wait(const struct rlk_watch *watch)
{
    return watch->wait_ns + RLK_CONFIRM_LATE_MS * RLK_NS_PER_MS;
}

int64_t rlk_renewer_wait_left(const struct rlk_watch *watch, int64_t now)
{
    int64_t left = watch->wait.sent + longest_wait(watch) - now;

    return watch->wait.kind == RLK_OP_WAIT && left > 0 ? left : 0;
}

void rlk_renewer_begin_waits(struct rlock_client *client)
{
    client->watch.wait_ns = client->config.presence_ms * RLK_NS_PER_MS / PRESENCE_PARTS;
    rlk_renewer_note_lease(client, client->config.lease_ms);
}

static bool is_renewal(const struct rlk_op *op)
{
    return op->kind == RLK_OP_RENEW || op->kind == RLK_OP_RENEW_READS;
}

/* Whether a renewal waits for replicas, answered or not. */
static bool is_wanted(const struct rlk_watch *watch)
{
    if (!rlk_list_empty(&watch->unproven))
        return true;
    for (const struct rlk_list *l = watch->ops.next; l != &watch->ops; l = l->next)
        if (is_renewal(RLK_CONTAINER_OF(l, struct rlk_op, link)))
            return true;
    return false;
}

bool rlk_renewer_wants_wait(const struct rlock_client *client)
{
    const struct rlk_watch *watch = &client->watch;

    /* also with as many requests in flight as there may be: replies wait for it */
    return rlk_confirm_is_on(&client->config.wait) && watch->wait.kind != RLK_OP_WAIT &&
           watch->conn && rlk_conn_state(watch->conn) == RLK_CONN_READY &&
           is_wanted(watch);
}

/* rule: P14 */
void rlk_renewer_wait(struct rlock_client *client, int64_t now)
{
    struct rlk_watch *watch = &client->watch;
    struct rlk_confirm_command command;

    if (!rlk_renewer_wants_wait(client))
        return;
    rlk_confirm_write(&command, &client->config.wait, watch->wait_ns);
    if (rlk_conn_append(watch->conn, command.argc, command.argv, command.len) != 0)
        return; /* out of memory: the next step tries again */
    rlk_renewer_put_in_flight(watch, &watch->wait, RLK_OP_WAIT, now,
                              longest_wait(watch) + ANSWER_PARTS * watch->wait_ns);
}

bool rlk_renewer_keep(struct rlock_client *client, struct rlk_op *op,
                      struct rlk_reply *reply)
{
    struct rlk_watch *watch = &client->watch;

    /* errors, and holds that are gone, need no confirmation */
    if (!rlk_confirm_is_on(&client->config.wait) || !is_renewal(op) ||
        !rlk_script_all_held(reply))
        return false;
    rlk_list_remove(&op->link);
    rlk_list_append(&watch->unproven, &op->link);
    op->kept = reply;
    if (rlk_list_empty(&watch->ops))
        watch->op_deadline = RLK_NEVER;
    return true;
}

/* Too few replicas have confirmed these renewals by now, which is the reason if a hold is
 * at risk meanwhile. */
static void note_few(struct rlock_client *client)
{
    struct rlk_list *list = &client->watch.unproven;

    rlk_registry_lock(&client->registry);
    for (struct rlk_list *l = list->next; l != list; l = l->next)
        RLK_CONTAINER_OF(l, struct rlk_op, link)->few_replicas = true;
    rlk_registry_unlock(&client->registry);
}

/* Ends the renewals that the WAIT stood behind: all with `enough`; else those whose time
 * has passed, or all with `over`. Whether one has failed. */
static bool end_renewals(struct rlock_client *client, bool enough, bool over)
{
    struct rlk_list *list = &client->watch.unproven, *next;
    int64_t now = rlk_clock_boot();
    bool failed = false;

    for (struct rlk_list *l = list->next; l != list; l = next) {
        struct rlk_op *op = RLK_CONTAINER_OF(l, struct rlk_op, link);
        next = l->next;
        if (!enough && !over && now < op->deadline)
            continue;
        op->proven = enough;
        failed = !enough;
        rlk_renewer_done(client, op, enough ? op->kept : NULL);
    }
    return failed;
}

/* rule: P12, P14 */
void rlk_renewer_waited(struct rlock_client *client, const struct rlk_reply *reply)
{
    struct rlk_watch *watch = &client->watch;
    char text[RLK_SERVER_ERROR_SIZE], more[RLK_LOG_MORE_SIZE];
    int64_t now = rlk_clock_boot();
    int code = 0;

    watch->wait.kind = RLK_OP_NONE;
    if (!reply)
        return; /* the connection has ended: so do the renewals */
    rlk_client_answered(client, watch->wait.sent, now);
    enum rlk_confirm_result result =
        rlk_confirm_read(&client->config.wait, reply, text, sizeof(text), &code);
    if (result == RLK_CONFIRM_ERROR && code == ENOTCONN)
        rlk_conn_leave(watch->conn, text);
    if (result == RLK_CONFIRM_FEW)
        note_few(client);
    /* a server that does not wait would be asked again and again */
    bool over =
        result == RLK_CONFIRM_ERROR || now - watch->wait.sent < watch->wait_ns / 2;
    if (end_renewals(client, result == RLK_CONFIRM_ENOUGH, over) &&
        rlk_log_now(&watch->pace, now, 1, more))
        rlk_log(RLK_LOG_WARNING, "rlock: renewals at %s are not confirmed: %s%s",
                client->config.target.label, text, more);
}
