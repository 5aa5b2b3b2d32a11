/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the watchdog does for locks and holds; watchdog.c has the connection. The
 * registry's timers say what is due:
 *   - for a lock with queued waiters, a refresh (renewer_refresh.c)
 *   - for all reads of a lock, a renewal (renewer_reads.c)
 *   - for a live hold: a renewal; the news that it is at risk; its loss at D, with or
 *     without connection
 *   - for a CANCELLING or RELEASING hold: a release in place of a release or cancel that
 *     the caller had to abandon, or that an ACL refused, because the ACL may be mended
 *   - for a LOST hold: its one release (T6)
 *
 * A request is one script for one lock; the one with the earliest deadline is sent first.
 * A request in flight is an rlk_op, which keeps its hold or lock alive by a reference.
 * Everything that is repeated is idempotent. Thread: the watchdog.
 */
#include "client/renewer_impl.h"

#include "base/clock.h"
#include "client/client.h"
#include "client/script_args.h"
#include "state/awaited.h"
#include "state/fastpath.h"
#include "state/handoff.h"

#include <stdlib.h>

enum {
    BACKOFF_FIRST_MS = 10,
    BACKOFF_MAX_MS = 1000,
    BATCH_MAX = 64,  /* requests made while the registry is locked once */
    ALONG_PART = 32, /* a renewal goes along with others if it is due within this part of
                        its period (1/32) */
    CROWD_MIN = 4 * BATCH_MAX, /* fewer holds make no burst */
    CROWD_FACTOR =
        4, /* in a burst, renewals are this much closer than if spread evenly */
    IN_FLIGHT_MAX = 1024
};

bool rlk_renewer_ready(const struct rlk_watch *watch)
{
    return watch->conn && rlk_conn_state(watch->conn) == RLK_CONN_READY &&
           watch->op_count < IN_FLIGHT_MAX;
}

static struct rlk_target *wanted(struct rlk_target *target)
{
    target->watch.wanted = true;
    if (rlk_route_is_cluster(&target->client->route) &&
        target != &target->client->route.target)
        rlk_cluster_want(target);
    return target;
}

struct rlk_target *rlk_renewer_target(struct rlock_client *client,
                                      const struct rlk_lock *lock)
{
    return wanted(rlk_route_to(&client->route, lock));
}

bool rlk_renewer_goes_alone(const struct rlk_hold *hold)
{
    if (!hold->server.alone)
        return false;
    return rlk_hold_is_live(hold)
               ? rlk_hold_may_raise_alone(hold)
               : rlk_hold_may_end_alone(hold) && hold->ending.no_marker;
}

struct rlk_target *rlk_renewer_importer(struct rlock_client *client,
                                        const struct rlk_lock *lock)
{
    struct rlk_target *importer =
        rlk_cluster_importer(client->route.cluster, lock->name, lock->name_len);

    return importer ? wanted(importer) : NULL;
}

/* The target for the next request about the hold: perhaps the node that is getting the
 * hash slot. */
static struct rlk_target *target_of(struct rlock_client *client, struct rlk_hold *hold)
{
    const struct rlk_lock *lock = hold->lock;
    struct rlk_target *importer = hold->server.asking && rlk_renewer_goes_alone(hold)
                                      ? rlk_renewer_importer(client, lock)
                                      : NULL;

    hold->server.asking = importer != NULL;
    return importer ? importer : rlk_renewer_target(client, lock);
}

/* ---- requests */

void rlk_renewer_put_in_flight(struct rlk_watch *watch, struct rlk_op *op,
                               enum rlk_op_kind kind, int64_t now, int64_t timeout)
{
    struct rlk_target *target = RLK_CONTAINER_OF(watch, struct rlk_target, watch);
    struct rlk_watch *own = &target->client->route.target.watch;

    if (timeout < RLK_RENEWER_OP_TIMEOUT_MIN_MS * RLK_NS_PER_MS)
        timeout = RLK_RENEWER_OP_TIMEOUT_MIN_MS * RLK_NS_PER_MS;
    timeout += rlk_renewer_wait_left(watch, now);
    op->kind = kind;
    op->kept = NULL;
    if (kind != RLK_OP_RENEW && kind != RLK_OP_RELEASE && kind != RLK_OP_DOWNGRADE)
        op->asking = op->alone = false;
    op->proven = op->few_replicas = false;
    op->changes = own->changes;
    op->crowded = own->crowded;
    own->sent++;
    op->sent = now;
    op->quiet_since = now;
    op->timeout = timeout;
    op->deadline = now + timeout;
    rlk_list_append(&watch->ops, &op->link);
    watch->op_count++;
    if (op->deadline < watch->op_deadline)
        watch->op_deadline = op->deadline;
}

static bool send_recovery(struct rlock_client *client, struct rlk_op *op,
                          const struct rlk_request *req, bool with_text, int64_t now)
{
    struct rlk_target *target =
        wanted(rlk_route_to_name(&client->route, req->name, req->name_len));

    if (!rlk_renewer_ready(&target->watch) ||
        rlk_script_append(target->watch.conn, req, with_text) != 0)
        return false;
    rlk_renewer_put_in_flight(&target->watch, op, RLK_OP_BURY, now,
                              rlk_client_command_timeout(client));
    return true;
}

/* In a cluster each name has its node, and send_recovery finds out. */
static bool is_ready(struct rlock_client *client)
{
    return rlk_route_is_cluster(&client->route) ||
           rlk_renewer_ready(&client->route.target.watch);
}

static void locate(struct rlock_client *client)
{
    rlk_cluster_reload(client->route.cluster);
}

const struct rlk_recovery_link rlk_renewer_of_recovery = {
    .send = send_recovery,
    .ready = is_ready,
    .locate = locate,
};

/* The record of a request about one hold. NULL: out of memory. */
static struct rlk_op *new_op(struct rlk_hold *hold)
{
    struct rlk_op *op = malloc(sizeof(*op));
    if (op)
        op->hold = hold;
    return op;
}

static void put_hold_in_flight(struct rlk_watch *watch, struct rlk_op *op,
                               enum rlk_op_kind kind, int64_t now, int64_t timeout)
{
    op->hold->op = op;
    rlk_hold_ref_locked(op->hold);
    rlk_renewer_put_in_flight(watch, op, kind, now, timeout);
}

int64_t rlk_renewer_timeout(const struct rlock_client *client,
                            const struct rlk_hold *hold, int64_t now)
{
    int64_t timeout = hold->lease_ms * RLK_NS_PER_MS / 6;

    if (timeout > (hold->end - now) / 2)
        timeout = (hold->end - now) / 2;
    if (timeout > rlk_client_command_timeout(client))
        timeout = rlk_client_command_timeout(client);
    return timeout;
}

/* rule: K5, K13 */
/* If the lease is fixed, the renewal only asks whether the hold is still there: it names
 * the rest of the lease, which changes nothing, but mends a key that was made persistent.
 */
int64_t rlk_renewer_lease(const struct rlk_hold *hold, int64_t now)
{
    if (rlk_fastpath_is_empty(
            hold)) /* a retained hold does not last longer than a grant (K5) */
        return hold->id.grant_ms;
    return hold->fixed ? (hold->end - now) / RLK_NS_PER_MS + 2 : hold->lease_ms;
}

/* What a renewal says about the mark of a robust hold (K11). */
static int64_t renew_mark(struct rlk_hold *hold, int64_t now)
{
    if (rlk_handoff_clears_mark_locked(hold, now))
        return -(int64_t)hold->exclusive.mark;
    return rlk_hold_mark(hold);
}

/* rule: P19 */
/* At a node that is getting the hash slot, the script's text goes along with ASKING: a
 * node that does not know the script would forget the ASKING (P19). */
int rlk_renewer_append(struct rlk_conn *conn, const struct rlk_request *req, bool asking,
                       bool with_text)
{
    static const char *const command[] = { "ASKING" };
    const size_t len = sizeof("ASKING") - 1;
    int rc = asking ? rlk_conn_append(conn, 1, command, &len) : 0;

    if (rc != 0)
        return rc;
    rc = rlk_script_append(conn, req, asking || with_text);
    if (rc != 0 && asking) /* its reply would be taken for another's */
        rlk_conn_kill(conn, RLK_FAIL_LOCAL, "out of memory");
    return rc;
}

/* The same about a hold. */
static int append(struct rlk_target *target, const struct rlk_request *req,
                  const struct rlk_hold *hold, struct rlk_op *op)
{
    op->asking = op->alone && hold->server.asking;
    return rlk_renewer_append(target->watch.conn, req, op->asking,
                              hold->server.with_text);
}

/* rule: W18 */
/* If a downgrade is not confirmed yet, the request also tells the server that the writer
 * reads now (W18). */
static void send_renew(struct rlk_target *target, struct rlk_hold *hold, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_request req RLK_UNINITIALIZED;
    struct rlk_op *op = new_op(hold);
    bool tell = hold->pass->entered_at != 0 || hold->contention.ask;

    if (!op)
        return;
    op->alone = rlk_renewer_goes_alone(hold);
    if (op->alone)
        rlk_script_args_raise(&req, client, hold, rlk_renewer_lease(hold, now));
    else if (hold->server.downgrade)
        rlk_script_args_downgrade(&req, client, hold, rlk_renewer_lease(hold, now));
    else
        rlk_script_args_renew(
            &req, client, hold, rlk_renewer_lease(hold, now),
            (struct rlk_script_args_renew){ .tell = tell,
                                            .tokens = hold->tokens.ask,
                                            .mark = renew_mark(hold, now) });
    if (append(target, &req, hold, op) != 0) {
        free(op);
        return;
    }
    tell = tell && !op->alone; /* with one key, nothing is asked for besides */
    /* rule: P16 */
    /* also for the server's word that the hash slot has moved */
    rlk_route_use_mail_locked(&client->route, hold->lock, now);
    /* Redisson has no part in read-write locks */
    op->asks = !op->alone && (tell || rlk_kinds[hold->lock->kind].read_letter);
    op->lease_ms = hold->lease_ms;
    hold->lease.doubted = false;
    hold->tokens.asked = hold->tokens.ask && !op->alone;
    put_hold_in_flight(&target->watch, op,
                       hold->server.downgrade ? RLK_OP_DOWNGRADE : RLK_OP_RENEW, now,
                       rlk_renewer_timeout(client, hold, now));
}

static void send_release(struct rlk_target *target, struct rlk_hold *hold, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_request req RLK_UNINITIALIZED;
    struct rlk_op *op = new_op(hold);

    if (!op)
        return;
    op->alone = rlk_renewer_goes_alone(hold);
    if (op->alone && hold->reading)
        rlk_script_args_drop_reader(&req, client, hold);
    else if (op->alone)
        rlk_script_args_drop(&req, client, hold);
    else
        rlk_script_args_release(&req, client, hold,
                                hold->ending.no_marker ? 0
                                                       : rlk_client_marker_ms(client));
    if (append(target, &req, hold, op) != 0) {
        free(op);
        return;
    }
    put_hold_in_flight(&target->watch, op, RLK_OP_RELEASE, now,
                       rlk_client_command_timeout(client));
}

bool rlk_renewer_batch_add(struct rlk_batch *batch, struct rlk_hold *hold)
{
    if (batch->count == batch->size) {
        size_t size = batch->size ? 2 * batch->size : 4;
        struct rlk_hold **bigger =
            realloc(batch->holds, size * sizeof(struct rlk_hold *));
        if (!bigger)
            return false; /* the next request names the hold */
        batch->holds = bigger;
        batch->size = size;
    }
    rlk_hold_ref_locked(hold);
    batch->holds[batch->count++] = hold;
    return true;
}

void rlk_renewer_batch_clear(struct rlk_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        rlk_hold_put_locked(batch->holds[i]);
    batch->count = 0;
}

/* ---- what is due. Locks: hold the registry's mu. */

/* The length of the lease that was confirmed last. It may be the TTL of a grant, which is
 * shorter than hold->lease_ms. */
static long confirmed_ms(const struct rlk_hold *hold)
{
    int64_t ms = (hold->end - hold->proof_sent) / RLK_NS_PER_MS;
    bool known = rlk_hold_is_live(hold) && ms > 0 && ms < hold->lease_ms;
    return known ? (long)ms : hold->lease_ms;
}

int64_t rlk_renewer_retry_time(struct rlk_hold *hold, int64_t now)
{
    int64_t max = confirmed_ms(hold) / 20;
    if (max < 20)
        max = 20;
    /* a release is no longer urgent when the lease has been over for a long time */
    if (max > BACKOFF_MAX_MS || (!rlk_hold_is_live(hold) && hold->end != INT64_MIN &&
                                 now - hold->end > hold->lease_ms * RLK_NS_PER_MS))
        max = BACKOFF_MAX_MS;
    int64_t next = hold->backoff_ms == 0 ? BACKOFF_FIRST_MS : hold->backoff_ms * 2;
    hold->backoff_ms = (uint16_t)(next < max ? next : max);
    /* a quarter of jitter, from the clock's low bits */
    int64_t ns = hold->backoff_ms * RLK_NS_PER_MS;
    int64_t at = now + ns - now / 1000 % (ns / 4 + 1);
    /* in steps, so that many holds that are due in an outage come due together */
    int64_t grid = ns / 8;
    return at + grid - at % grid;
}

static void inside_due(struct rlock_client *client, struct rlk_hold *hold, int64_t now)
{
    struct rlk_target *target = target_of(client, hold);

    if (now >= hold->end) {
        rlk_hold_lose_locked(
            hold, hold->fixed ? RLK_LOSS_FIXED_ENDED : RLK_LOSS_UNCONFIRMED, now);
        return;
    }
    if (rlk_handoff_retained_due_locked(hold, now))
        return;
    if (!hold->lease.at_risk && now >= hold->risk) {
        hold->lease.at_risk = true;
        RLK_COUNT(client->counters.risks);
        rlk_hold_news_locked(hold, RLK_NEWS_AT_RISK);
    }
    if (rlk_hold_renewable_locked(hold) &&
        ((now >= hold->renew_at &&
          (!rlk_hold_is_retained(hold) || hold->lease.doubted)) ||
         now >= rlk_hold_contention_due(hold))) {
        if (rlk_renewer_ready(&target->watch) && hold->reading && !hold->server.downgrade)
            rlk_renewer_reads(target, hold, now);
        else if (rlk_renewer_ready(&target->watch))
            send_renew(target, hold, now);
        else
            rlk_watchdog_hurry(&target->watch, now, confirmed_ms(hold));
        if (!hold->op)
            hold->renew_at = hold->ask_after = rlk_renewer_retry_time(hold, now);
    }
    rlk_hold_schedule_locked(hold);
}

/* CANCELLING, RELEASING or LOST: the timer has the last reference. */
static void outside_due(struct rlock_client *client, struct rlk_hold *hold, int64_t now)
{
    struct rlk_target *target = target_of(client, hold);
    bool lost = hold->state == RLK_HOLD_LOST;

    if (hold->op)
        return; /* goes on when the request in flight was answered */
    if (now > hold->ending.give_up_at || (lost && hold->ending.release_sent)) {
        rlk_hold_background_end_locked(hold);
        return;
    }
    if (rlk_renewer_ready(&target->watch))
        send_release(target, hold, now);
    hold->ending.release_sent = lost && hold->op;
    if (!hold->op)
        rlk_hold_background_locked(hold, rlk_renewer_retry_time(hold, now),
                                   hold->ending.give_up_at);
}

/* ---- renewals in company */

static int64_t renewal_period(const struct rlk_hold *hold)
{
    return confirmed_ms(hold) * RLK_NS_PER_MS / 3;
}

/* Whether a renewal that is due soon goes along with those that are due now: a few full
 * messages cost both sides less than many small ones. */
static bool goes_along(struct rlock_client *client, const struct rlk_timer *t,
                       int64_t now)
{
    if (!t || t->tag != RLK_TIMER_HOLD)
        return false;
    const struct rlk_hold *hold = RLK_CONTAINER_OF(t, struct rlk_hold, timer);
    return rlk_renewer_ready(&rlk_route_to(&client->route, hold->lock)->watch) &&
           rlk_hold_is_live(hold) && hold->renew_at == t->when && hold->backoff_ms == 0 &&
           !hold->server.downgrade && rlk_hold_renewable_locked(hold) &&
           t->when - now <= renewal_period(hold) / ALONG_PART;
}

/* Whether a full batch of renewals, the first of them due at `when`, belongs to a burst:
 * many holds were taken, or reached the server again, at one time. The due times decide,
 * so a thread that is late makes no burst. */
static bool is_crowded(const struct rlk_target *target, const struct rlk_hold *hold,
                       int64_t when)
{
    const struct rlock_client *client = target->client;
    size_t count = client->registry.holds_now;

    if (count < CROWD_MIN)
        return false;
    int64_t evenly = renewal_period(hold) / (int64_t)count * BATCH_MAX;
    return when - target->watch.full_from < evenly / CROWD_FACTOR;
}

void rlk_renewer_spread(struct rlk_hold *hold, int64_t sent, int64_t now)
{
    uint64_t random =
        (hold->id.acquisition ^ (uint64_t)sent) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    int64_t most = (hold->renew_at - sent) / 8 * 7; /* in ns; for a lease of a day, the
                                                       product below still fits */

    hold->renew_at -= (int64_t)(random * ((uint64_t)most >> 16) >> 16);
    if (hold->renew_at <= now)
        hold->renew_at = now + 1;
}

int64_t rlk_renewer_run(struct rlk_target *target)
{
    struct rlock_client *client = target->client;
    struct rlk_registry *reg = &client->registry;
    int64_t due, now;

    rlk_registry_lock(reg);
    if (atomic_load(&client->interrupted) && !reg->interrupted) {
        reg->interrupted = true;
        rlk_registry_wake_all_locked(reg);
    }
    now = rlk_clock_boot();
    struct rlk_watch *watch = &target->watch;
    unsigned sent = watch->sent;
    /* before it is looked up which server has which lock */
    watch->changes = rlk_route_moves(&client->route);
    int64_t first_due = RLK_NEVER;
    int n;
    watch->crowded = false;
    for (n = 0;; n++) {
        struct rlk_timer *t = rlk_timer_first(&reg->timers);
        due = t ? t->when : RLK_NEVER;
        bool along = due > now && watch->sent != sent && goes_along(client, t, now);
        if (n == BATCH_MAX || (due > now && !along))
            break;
        rlk_timer_disarm(&reg->timers, t);
        if (t->tag == RLK_TIMER_LOOK) {
            reg->looks = reg->tried || rlk_awaited_awaits_locked(reg);
            reg->tried = false;
            client->peer_watch.begin |= reg->looks;
            continue;
        }
        if (t->tag == RLK_TIMER_LOCK) {
            rlk_renewer_refresh_due(
                client, RLK_CONTAINER_OF(t, struct rlk_queue, timer)->lock, now);
            continue;
        }
        struct rlk_hold *hold = RLK_CONTAINER_OF(t, struct rlk_hold, timer);
        if (rlk_hold_is_live(hold)) {
            if (n == 0 && hold->renew_at == due) {
                first_due = due;
                watch->crowded = is_crowded(target, hold, due);
            }
            if (along)
                hold->renew_at = now;
            inside_due(client, hold, now);
        } else if (hold->state != RLK_HOLD_REQUESTED) {
            outside_due(client, hold, now);
        }
    }
    if (n == BATCH_MAX && first_due != RLK_NEVER)
        watch->full_from = first_due;
    /* The armed time is never put off, even if its reason is gone. Otherwise locks that
     * are taken and released again and again would wake the watchdog each time. */
    if (due < reg->armed || reg->armed <= now)
        reg->armed = due;
    due = reg->armed;
    rlk_registry_unlock(reg);
    return due;
}
