/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renewals of reads: one request for all read holds of a lock. In a cluster, a node that
 * is giving the hash slot away may refuse it, because not all keys are there. Then it is
 * made in steps that name one key each, and each goes where that key is (P20):
 *   1. the lock's own key says when the present reading began
 *   2. the ends of the readers are raised, in their key
 *   3. the TTL of the lock's own key is raised to these ends, if that reading goes on
 * A reading that is there before and after the second step has not ended meanwhile: so
 * the readers that were found belong to it. The ends come first: whatever fits the TTL to
 * them meanwhile does not lower it below them. D follows from the earlier one. A step
 * that fails ends the renewal, which begins again with all keys.
 *
 * Thread: the watchdog. Locks: hold the registry's mu. Blocks: no.
 */
#include "client/renewer_impl.h"

#include "base/clock.h"
#include "client/client.h"
#include "client/script_args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum step { LOOK, RAISE_ENDS, RAISE_READING };

/* What is known of a renewal in steps. */
struct rlk_steps {
    enum step step;          /* in flight, or to be sent */
    bool asking;             /* it goes to the node that is getting the hash slot */
    int64_t since;           /* when the reading began, server us */
    int64_t sent;            /* when the second step left */
    struct rlk_fate fates[]; /* of each hold, by the second step */
};

/* The ids and leases in the request that is being made. */
static char names[RLK_RENEWALS_MAX * RLK_SCRIPT_ARGS_RENEWAL_SIZE];

/* ---- sending */

/* Whether a read hold can be renewed together with others now. */
static bool renews_along(const struct rlk_hold *hold, int64_t now)
{
    return (!hold->fixed || hold->lease.doubted) && !hold->server.downgrade &&
           now < hold->end && !hold->op;
}

/* `due` first, then the others of the lock. */
static bool choose_holds(struct rlk_batch *batch, struct rlk_hold *due, int64_t now)
{
    struct rlk_list *reads = &due->lock->queue->reads;

    if (!rlk_renewer_batch_add(batch, due))
        return false;
    for (struct rlk_list *l = reads->next; l != reads && batch->count < RLK_RENEWALS_MAX;
         l = l->next) {
        struct rlk_hold *hold = RLK_CONTAINER_OF(l, struct rlk_hold, link);
        if (hold != due && renews_along(hold, now) && !rlk_renewer_batch_add(batch, hold))
            break;
    }
    return true;
}

/* Writes the ids of the batch, and a lease for each. For a hold that has ended meanwhile,
 * one that changes nothing: the answer has a fate for each. */
static size_t name_holds(struct rlock_client *client, const struct rlk_batch *batch,
                         int64_t now)
{
    const struct rlk_script_args_renew none = { .tell = false };
    size_t len = 0;

    for (size_t i = 0; i < batch->count; i++) {
        const struct rlk_hold *hold = batch->holds[i];
        bool renews = rlk_hold_is_live(hold) && now < hold->end;
        len += rlk_script_args_renewal_write(
            names + len, client, hold, renews ? rlk_renewer_lease(hold, now) : 1, none);
    }
    return len;
}

static void put_in_flight(struct rlk_target *target, struct rlk_batch *batch, int64_t now)
{
    const struct rlk_steps *steps = batch->steps;
    int64_t timeout = rlk_client_command_timeout(target->client);

    for (size_t i = 0; i < batch->count; i++) {
        int64_t own = rlk_renewer_timeout(target->client, batch->holds[i], now);
        if (own < timeout)
            timeout = own;
    }
    rlk_renewer_put_in_flight(&target->watch, &batch->op, RLK_OP_RENEW_READS, now,
                              timeout);
    batch->op.asks = !steps;
    batch->op.alone = steps != NULL;
    batch->op.asking = steps && steps->asking;
}

/* So the next renewals of all come due together with that of `due`. */
void rlk_renewer_reads(struct rlk_target *target, struct rlk_hold *due, int64_t now)
{
    struct rlk_lock *lock = due->lock;
    struct rlk_batch *batch = &lock->queue->renewal;
    struct rlk_request req RLK_UNINITIALIZED;

    if (!choose_holds(batch, due, now))
        return;
    size_t len = name_holds(target->client, batch, now);
    rlk_script_args_renewals(&req, target->client, lock, false, names, len);
    if (rlk_script_append(target->watch.conn, &req, batch->with_text) != 0) {
        rlk_renewer_batch_clear(batch);
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct rlk_hold *hold = batch->holds[i];
        hold->lease.doubted = false;
        hold->op = &batch->op;
        if (i == 0 || hold->lease_ms < batch->op.lease_ms)
            batch->op.lease_ms = hold->lease_ms;
        rlk_hold_schedule_locked(hold);
        /* moves it to the end: the next request begins with the holds that this one had
         * no room for */
        rlk_list_remove(&hold->link);
        rlk_list_append(&lock->queue->reads, &hold->link);
    }
    rlk_lock_ref_locked(lock);
    put_in_flight(target, batch, now);
}

/* ---- in steps */

/* The longest of the ends that the second step has raised. */
static int64_t longest(const struct rlk_batch *batch)
{
    int64_t ms = 1;

    for (size_t i = 0; i < batch->count; i++) {
        const struct rlk_fate *fate = &batch->steps->fates[i];
        if (fate->what == RLK_HELD && fate->remaining_ms > ms)
            ms = fate->remaining_ms;
    }
    return ms;
}

static void make_request(struct rlk_request *req, struct rlock_client *client,
                         const struct rlk_lock *lock, int64_t now)
{
    const struct rlk_batch *batch = &lock->queue->renewal;
    const struct rlk_steps *steps = batch->steps;

    if (steps->step == LOOK)
        rlk_script_args_reading(req, client, lock, 0, 0);
    else if (steps->step == RAISE_READING)
        rlk_script_args_reading(req, client, lock, steps->since, longest(batch));
    else
        rlk_script_args_renewals(req, client, lock, true, names,
                                 name_holds(client, batch, now));
}

bool rlk_renewer_reads_go_on(struct rlock_client *client, struct rlk_lock *lock,
                             int64_t now)
{
    struct rlk_batch *batch = &lock->queue->renewal;
    bool asking = batch->steps->asking;
    struct rlk_request req RLK_UNINITIALIZED;
    struct rlk_target *target =
        asking ? rlk_renewer_importer(client, lock) : rlk_renewer_target(client, lock);

    if (!target || !rlk_renewer_ready(&target->watch))
        return false;
    make_request(&req, client, lock, now);
    if (rlk_renewer_append(target->watch.conn, &req, asking, batch->with_text) != 0)
        return false;
    put_in_flight(target, batch, now);
    return true;
}

const struct rlk_script *rlk_renewer_reads_script(const struct rlk_batch *batch)
{
    return &rlk_scripts[batch->steps->step == RAISE_ENDS ? RLK_READER_RAISE
                                                         : RLK_READING_RAISE];
}

size_t rlk_renewer_reads_fates(const struct rlk_batch *batch)
{
    return batch->steps && batch->steps->step != RAISE_ENDS ? 1 : batch->count;
}

void rlk_renewer_reads_end(struct rlk_batch *batch)
{
    free(batch->steps);
    batch->steps = NULL;
}

/* ---- answers */

static bool begin_steps(struct rlk_batch *batch)
{
    batch->steps =
        calloc(1, sizeof(*batch->steps) + batch->count * sizeof(batch->steps->fates[0]));
    return batch->steps != NULL; /* else the renewal is repeated soon */
}

static bool next(struct rlk_steps *steps, enum step step)
{
    steps->step = step;
    steps->asking = false; /* another key, perhaps at the other node */
    return true;
}

/* No reading is there: all holds are gone. */
static bool all_gone(const struct rlk_batch *batch, struct rlk_fate *fates)
{
    for (size_t i = 0; i < batch->count; i++)
        fates[i] = (struct rlk_fate){ .what = RLK_GONE, .remaining_ms = -1 };
    return false;
}

static bool looked(const struct rlk_batch *batch, struct rlk_fate *fates)
{
    if (fates[0].what != RLK_SHARED)
        return all_gone(batch, fates);
    batch->steps->since = fates[0].ticket;
    return next(batch->steps, RAISE_ENDS);
}

/* rule: P12 */
/* Without the word of enough replicas about the ends, or without an end that was raised,
 * the renewal is over. */
static bool raised_ends(const struct rlk_batch *batch, const struct rlk_answer *answer,
                        const struct rlk_fate *fates, bool confirmed)
{
    struct rlk_steps *steps = batch->steps;
    size_t held = 0;

    for (size_t i = 0; i < batch->count; i++)
        held += fates[i].what == RLK_HELD;
    if (held == 0 || !confirmed)
        return false;
    memcpy(steps->fates, fates, batch->count * sizeof(fates[0]));
    steps->sent = answer->sent;
    return next(steps, RAISE_READING);
}

/* rule: P20, W6 */
/* The answer becomes that of the whole renewal. */
static bool raised_reading(const struct rlk_batch *batch, struct rlk_answer *answer,
                           struct rlk_fate *fates)
{
    const struct rlk_steps *steps = batch->steps;
    struct rlk_fate reading = fates[0];

    if (reading.what == RLK_SHARED) { /* another reading has begun */
        answer->outcome = RLK_RETRY;
        answer->code = ENOTCONN;
        return false;
    }
    if (reading.what != RLK_HELD)
        return all_gone(batch, fates);
    answer->sent = steps->sent;
    for (size_t i = 0; i < batch->count; i++) {
        fates[i] = steps->fates[i];
        fates[i].token = reading.token;
        if (fates[i].remaining_ms > reading.remaining_ms)
            fates[i].remaining_ms = reading.remaining_ms;
    }
    return false;
}

bool rlk_renewer_reads_take(struct rlk_batch *batch, struct rlk_answer *answer,
                            struct rlk_fate *fates, bool asks, bool confirmed)
{
    struct rlk_steps *steps = batch->steps;

    if (!steps)
        return (answer->split || asks) && begin_steps(batch);
    if (answer->outcome == RLK_NOSCRIPT)
        return true; /* the same step, with the text */
    if (asks && !steps->asking) {
        steps->asking = true;
        return true;
    }
    if (answer->outcome != RLK_DONE)
        return false;
    if (steps->step == LOOK)
        return looked(batch, fates);
    if (steps->step == RAISE_ENDS)
        return raised_ends(batch, answer, fates, confirmed);
    return raised_reading(batch, answer, fates);
}
