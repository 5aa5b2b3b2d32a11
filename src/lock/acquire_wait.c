/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: one loop, which looks and sleeps until a look says that the wait is over. What
 * a thread looks at depends on what it waits for (acquire_look.c, acquire_share.c); how
 * it sleeps, and what its deadline means, is here. Thread: callers'. Locks: hold the
 * registry's mu, and drop it where they sleep. */
#include "lock/acquire_impl.h"

#include "base/error.h"
#include "base/probe.h"
#include "client/leader.h"

#include <errno.h>

enum {
    BACKOFF_FIRST_MS = 10,
    BACKOFF_MAX_MS = 500,
    LATE_MS = 20,        /* a thread that wakes later than this after its deadline was
                            kept by something else */
    REAL_SLICE_MS = 1000 /* how often to look at a deadline of CLOCK_REALTIME */
};

static int64_t min_time(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the loop */

/* Sleeps until woken, for op->pause_ns at most. Not at all if that is not positive. */
static void nap(struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;
    struct rlk_registry *reg = &params->client->registry;
    int64_t ns = op->pause_ns;

    if (params->deadline.clock == RLK_DEADLINE_REAL && ns > REAL_SLICE_MS * RLK_NS_PER_MS)
        ns = REAL_SLICE_MS * RLK_NS_PER_MS;
    if (ns <= 0)
        return;
    /* Dropping mu wakes the threads that this one gave something to do. They may answer
     * before it sleeps. */
    if (rlk_registry_tells_locked(reg)) {
        rlk_registry_unlock(reg);
        rlk_registry_lock(reg);
        return;
    }
    int64_t end = ns == RLK_NEVER ? RLK_NEVER : rlk_clock_add(rlk_clock_mono(), ns);
    struct rlk_route *route = &params->client->route;
    if (op->sleep != RLK_SLEEP_BY_MAIL ||
        rlk_route_is_cluster(route) || /* there the subscriber reads all mail */
        !rlk_leader_begin_locked(&route->target, params->thread, end))
        rlk_sync_cond_wait(&params->thread->cond, &reg->mu, end);
}

int rlk_acquire_wait(struct rlk_acquire_op *op)
{
    do {
        nap(op);
        if (op->sleep != RLK_SLEEP_PAUSE)
            rlk_acquire_note_late(op, 0);
    } while (!op->look(op));
    return op->rc;
}

int64_t rlk_acquire_pause(struct rlk_acquire_op *op, int64_t most)
{
    op->backoff_ms = op->backoff_ms == 0 ? BACKOFF_FIRST_MS : op->backoff_ms * 2;
    if (op->backoff_ms > BACKOFF_MAX_MS)
        op->backoff_ms = BACKOFF_MAX_MS;
    int64_t ns = op->backoff_ms * RLK_NS_PER_MS;
    ns -= op->now / 1000 % (ns / 3 + 1); /* jitter from the clock's low bits */
    op->sleep = RLK_SLEEP_PAUSE;
    return min_time(ns, most);
}

/* ---- deadlines */

/* Only a call with RLOCK_OUTAGE_FAIL and without a deadline fails in an outage. */
int64_t rlk_acquire_outage_left(const struct rlk_acquire_op *op, int64_t now)
{
    const struct rlk_acquire_params *params = op->params;
    const struct rlk_queue *queue = op->lock->queue;
    int64_t timeout = rlk_client_command_timeout(params->client);
    int64_t since = op->waiter.since;

    if (!params->outage_fails || params->deadline.clock != RLK_DEADLINE_NONE)
        return RLK_NEVER;
    if (queue->trouble == 0)
        return timeout; /* time to look again */
    return timeout -
           (now - (queue->trouble_since > since ? queue->trouble_since : since));
}

void rlk_acquire_note_late(struct rlk_acquire_op *op, long over_ms)
{
    op->waiter.late =
        rlk_deadline_left(&op->params->deadline) < -(LATE_MS + over_ms) * RLK_NS_PER_MS;
}

/* The note outlives the other thread's unlock: a waiter that wakes at its deadline may
 * find that the other thread has just left. */
void rlk_acquire_note_busy(struct rlk_acquire_op *op)
{
    const struct rlk_lock *lock = op->lock;

    if (lock->current || !rlk_list_empty(&lock->queue->reads))
        op->waiter.busy_at = rlk_clock_boot();
}

/* Whether the server or this process could see, since the call began, that the lock was
 * busy. */
bool rlk_acquire_was_busy(struct rlk_acquire_op *op)
{
    const struct rlk_queue *queue = op->lock->queue;

    rlk_acquire_note_busy(op);
    return queue->reached_at >= op->waiter.since ||
           (queue->trouble == 0 && queue->reached_at != 0) ||
           (op->waiter.busy_at != 0 &&
            (queue->trouble == 0 || op->waiter.busy_at >= queue->troubled_at));
}

/* ETIMEDOUT: the lock was busy, or no failure kept the server from saying so. Otherwise
 * ENOTCONN. */
int rlk_acquire_deadline_code(struct rlk_acquire_op *op)
{
    bool well = op->lock->queue->trouble == 0 &&
                !rlk_registry_is_away(op->lock->registry, rlk_clock_boot());
    /* rule: P12 */
    if (op->answer.unconfirmed) /* the server has the lock for this thread */
        return ENOTCONN;
    return well || rlk_acquire_was_busy(op) ? ETIMEDOUT : ENOTCONN;
}

/* Counts a call that was queued at the server, even if the grant came before the thread
 * slept, or that waited for a thread of this process. */
void rlk_acquire_count_wait(struct rlk_acquire_op *op)
{
    const struct rlk_acquire_params *params = op->params;

    if (!op->waiter.counted) {
        RLK_COUNT(params->client->counters.waits);
        RLK_PROBE3(lock_wait_begin, params->name, params->kind, (int)params->reading);
    }
    op->waiter.counted = true;
}

/* ---- waiting for nothing */

static bool look_in_vain(struct rlk_acquire_op *op)
{
    int64_t left = rlk_deadline_left(&op->params->deadline);

    if (left <= 0)
        return rlk_acquire_end_with(op, ETIMEDOUT);
    if (atomic_load(&op->params->client->interrupted))
        return rlk_acquire_end_with(op, ECANCELED);
    return rlk_acquire_go_on(op, RLK_SLEEP, left);
}

int rlk_acquire_wait_in_vain(struct rlock_client *client, struct rlk_thread *thread,
                             const struct rlk_deadline *deadline)
{
    struct rlk_acquire_params params = { .client = client,
                                         .thread = thread,
                                         .deadline = *deadline };
    struct rlk_registry *reg = &client->registry;
    struct rlk_acquire_op op = { .params = &params,
                                 .waiter = { .thread = thread },
                                 .look = look_in_vain };

    rlk_registry_lock(reg);
    rlk_list_append(&reg->sleepers, &op.waiter.link);
    rlk_acquire_wait(&op);
    rlk_list_remove(&op.waiter.link);
    rlk_registry_unlock(reg);
    return op.rc;
}
