/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait loop. Threads of a process that want one lock queue in the registry; one of
 * them, the asker, sends acquire and is queued at the server. Where the lock is in_order
 * (fair), every thread is an asker with a ticket of its own. Threads that want to read
 * wait for one and the same hold, which one of them asks for, and enter it together
 * (W23); those that ask for a fixed lease have holds of their own. From then on an asker
 * only sleeps: presence and polls are the watchdog's, grants come in by the subscriber,
 * and both leave facts in its hold and wake it. What it believes is decided in hold.c
 * (T1); what it does about it, here; how an id is given up, in acquire_ask.c; what
 * readers of one process share, in acquire_share.c.
 */
#include "lock/acquire_impl.h"

#include "base/error.h"
#include "base/probe.h"
#include "client/leader.h"
#include "state/awaited.h"
#include "state/fastpath.h"

#include <errno.h>

enum {
    BACKOFF_FIRST_MS = 10,
    BACKOFF_MAX_MS = 500,
    TRY_LEAST_PART = 4,  /* of a try's time, RLK_ATTEMPT_FLOOR_MS at most: what an attempt
                            that is repeated must have left */
    OVERTIME_MS = 100,   /* that a call may take beyond its deadline (L7) */
    LATE_MS = 20,        /* behind its deadline, a sleep was not ended by that */
    REAL_SLICE_MS = 1000 /* a deadline of CLOCK_REALTIME is looked at anew so often */
};

/* ---- waiting. Locks: hold the registry's mu. */

/* Sleeps until woken, for `ns` at most. by_mail: what it waits for comes by the mailbox.
 */
static void sleep_for(const struct rlk_acquire_params *params, int64_t ns, bool by_mail)
{
    struct rlk_registry *reg = &params->client->registry;

    if (params->deadline.clock == RLK_DEADLINE_REAL && ns > REAL_SLICE_MS * RLK_NS_PER_MS)
        ns = REAL_SLICE_MS * RLK_NS_PER_MS;
    if (ns <= 0)
        return;
    /* Dropping mu through the registry tells the threads what became due by us. They
     * may answer before we sleep; so look whether that is needed first. */
    struct rlk_timer *first = rlk_timer_first(&reg->timers);
    if ((first && first->when < reg->armed) || reg->watchdog_dirty ||
        reg->subscriber_dirty || !rlk_list_empty(&reg->wakes) ||
        rlk_leader_pending_locked(reg)) {
        rlk_registry_unlock(reg);
        rlk_registry_lock(reg);
        return;
    }
    int64_t end = ns == RLK_NEVER ? RLK_NEVER : rlk_clock_add(rlk_clock_mono(), ns);
    if (!by_mail || !rlk_leader_begin_locked(params->client, params->thread, end))
        rlk_sync_cond_wait(&params->thread->cond, &reg->mu, end);
}

/* Behind a sleep. */
static void note_late(const struct rlk_acquire_params *params, struct rlk_waiter *waiter)
{
    waiter->late = rlk_deadline_left(&params->deadline) < -LATE_MS * RLK_NS_PER_MS;
}

static void doze(const struct rlk_acquire_params *params, int64_t ns)
{
    sleep_for(params, ns, false);
}

static int64_t min_time(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Pauses between two tries. */
static int64_t next_backoff(int *backoff_ms, int64_t now)
{
    *backoff_ms = *backoff_ms == 0 ? BACKOFF_FIRST_MS : *backoff_ms * 2;
    if (*backoff_ms > BACKOFF_MAX_MS)
        *backoff_ms = BACKOFF_MAX_MS;
    int64_t ns = *backoff_ms * RLK_NS_PER_MS;
    return ns - now / 1000 % (ns / 3 + 1); /* jitter from the clock's low bits */
}

/* What an attempt without queueing that is not repeated comes to. */
static int try_code(enum rlk_verdict v, const struct rlk_answer *answer)
{
    if (v == TAKEN || v == TAKEN_BY_OTHERS)
        return EBUSY;
    if (v == SPOILT)
        return ENOTRECOVERABLE;
    if (v == FAILED && answer->code == 0)
        return rlk_error_set(EPROTO,
                             "unexpected reply from the acquire script of the lock");
    if (v == AGAIN_AT_ONCE)
        return rlk_error_set(
            ENOTCONN,
            "the server refuses every request as late: its clock steps or runs too fast");
    return answer->code != 0 ? answer->code : EBUSY;
}

/* rule: K2 */
/* A request of one who keeps takes a free lock for the TTL of a grant only (K2). */
static long first_lease(const struct rlk_acquire_params *params)
{
    return rlk_acquire_params_retains(params) ? (long)rlk_acquire_params_grant_ms(params)
                                              : params->lease_ms;
}

/* One attempt and its repetitions, without queueing. */
static int try_lock(const struct rlk_acquire_params *params, struct rlk_lock *lock,
                    int64_t until)
{
    struct rlk_registry *reg = &params->client->registry;
    int64_t now = rlk_clock_boot();
    struct rlk_script_args_acquire request = { .lease_ms = first_lease(params),
                                               .try_once = true };
    int64_t least =
        min_time((until - now) / TRY_LEAST_PART, RLK_ATTEMPT_FLOOR_MS * RLK_NS_PER_MS);
    int backoff_ms = 0, late = 0;

    struct rlk_waiter self;
    rlk_acquire_waiter_init(&self, params, now);
    if (rlk_acquire_enter_idle(params, lock, &self))
        return 0;
    now = rlk_clock_boot();
    if (lock->current || (!params->reading && !rlk_list_empty(&lock->queue->reads)))
        return EBUSY;
    struct rlk_hold *hold =
        rlk_acquire_new_hold(params, lock, rlk_acquire_params_retains(params));
    if (!hold)
        return ENOMEM;
    rlk_hold_try_locked(hold);
    request.hold = hold;
    for (;;) {
        struct rlk_answer answer;
        struct rlk_hold *share = rlk_acquire_share_begin(lock, hold, now);
        request.share = share;
        bool going = lock->returning > 0;
        rlk_intent_note_locked(hold);
        rlk_registry_unlock(reg);
        rlk_rpc_acquire(params->client, request, until, &answer);
        rlk_registry_lock(reg);
        now = rlk_clock_boot();
        enum rlk_verdict v = rlk_acquire_judge(hold, params, &answer);
        if (share) {
            struct rlk_holder *holder = NULL;
            bool inside = rlk_acquire_share_end(share, v, params, &answer, now);
            if (inside)
                holder = rlk_holder_join_locked(share, params->fencing);
            if (holder) {
                rlk_holder_own_locked(holder, params->thread, now);
                RLK_COUNT(params->client->counters.acquisitions);
            }
            rlk_acquire_share_put(share, now);
            if (inside) {
                rlk_acquire_end_request(hold, params, now);
                return holder ? 0 : ENOMEM;
            }
        }
        if (v == SHARED) /* through what is lost by now */
            v = AGAIN;
        if (v == TAKEN && now < hold->end && !rlk_acquire_may_take(hold, now))
            v = AGAIN; /* which of two is the newer, the server knows */
        if (v == TAKEN && now < hold->end) {
            rlk_acquire_take(hold, params, now);
            rlk_hold_put_locked(hold);
            return 0;
        }
        if (v == TAKEN_BY_OTHERS && rlk_cursor_set(answer.more) && now < until) {
            request.after = answer.more; /* nobody comes first of those seen so far */
            continue;
        }
        if (v == TAKEN_BY_OTHERS && (going || lock->returning > 0) && now < until)
            v = AGAIN; /* by what we have given back ourselves, perhaps */
        if (v == TAKEN_BY_OTHERS)
            rlk_awaited_tried_locked(reg); /* whoever has it may be dead */
        if ((v == TAKEN_BY_OTHERS || v == SPOILT) && !hold->server.unknown) {
            rlk_hold_put_locked(hold);
            return v == SPOILT ? ENOTRECOVERABLE : EBUSY;
        }
        if (v == TAKEN || v == TAKEN_BY_OTHERS || v == SPOILT || v == FAILED ||
            now >= until) {
            int rc = try_code(v, &answer);
            rlk_acquire_abandon(hold, params, now);
            return rc;
        }
        request.after = (struct rlk_cursor){ 0 }; /* by now those may listen again */
        if (v == AGAIN || ++late > RLK_LATE_TRIES_MAX)
            doze(params, min_time(next_backoff(&backoff_ms, now), until - now));
        now = rlk_clock_boot();
        if (until - now < least) {
            /* one more might not be answered: the caller is told of those that were */
            int rc = try_code(v, &answer);
            rlk_acquire_abandon(hold, params, now);
            return rc;
        }
    }
}

/* Held at the server until hold->end. Enters, after confirming a fixed lease that was
 * granted with a shorter TTL. False: it was lost meanwhile, or may be older than a hold
 * that we believe in; ask again. */
static bool enter_granted(struct rlk_acquire_op *ask)
{
    const struct rlk_acquire_params *params = ask->params;
    struct rlk_registry *reg = &params->client->registry;
    struct rlk_hold *hold = ask->hold;
    int64_t now = rlk_clock_boot();

    if (params->fixed && hold->lease.short_ttl &&
        rlk_deadline_left(&params->deadline) <= 0)
        return false; /* no time to confirm the lease */
    if (now < hold->end && params->fixed && hold->lease.short_ttl) {
        struct rlk_answer answer;
        int64_t until = min_time(hold->end, rlk_acquire_attempt_until(params, now));
        rlk_registry_unlock(reg);
        rlk_rpc_renew(params->client, hold, params->lease_ms,
                      (struct rlk_script_args_renew){ .tell = false }, until, &answer);
        rlk_registry_lock(reg);
        if (answer.outcome != RLK_DONE)
            return false;
        if (answer.fate.what != RLK_HELD) {
            rlk_hold_gone_locked(hold);
            return false;
        }
        int64_t ms = answer.fate.remaining_ms;
        hold->lease.short_ttl = false;
        rlk_hold_held_locked(hold, answer.sent,
                             ms < params->lease_ms ? ms : params->lease_ms,
                             answer.fate.token ? answer.fate.token : hold->token);
        now = rlk_clock_boot();
    }
    if (!hold->request.granted || !rlk_acquire_may_take(hold, now))
        return false;
    rlk_acquire_leave_queue(ask);
    ask->open_to = hold->request.open_to;
    rlk_acquire_take(hold, params, now);
    if (hold->reading)
        rlk_acquire_share_bring_along(ask, hold);
    rlk_hold_put_locked(hold);
    return true;
}

/* How much longer a caller that does not want to wait for a server waits for it: since
 * the trouble began, or since he came. Who has a deadline waits until then. */
static int64_t outage_left(const struct rlk_acquire_params *params,
                           const struct rlk_lock *lock, int64_t since, int64_t now)
{
    int64_t timeout = rlk_client_command_timeout(params->client);
    if (!params->outage_fails || params->deadline.clock != RLK_DEADLINE_NONE)
        return RLK_NEVER;
    if (lock->queue->trouble == 0)
        return timeout; /* time to look again */
    return timeout -
           (now -
            (lock->queue->trouble_since > since ? lock->queue->trouble_since : since));
}

/* Another thread of this process is in. That holds behind its unlock as well, until
 * somebody asks the server: who wakes at his deadline may find that it has just left. */
static void note_busy(const struct rlk_lock *lock, struct rlk_waiter *waiter)
{
    if (lock->current || !rlk_list_empty(&lock->queue->reads))
        waiter->busy_at = rlk_clock_boot();
}

/* Whether the server or this process could tell that the lock was busy since `since`. */
static bool was_busy(const struct rlk_lock *lock, struct rlk_waiter *waiter,
                     int64_t since)
{
    const struct rlk_queue *queue = lock->queue;

    note_busy(lock, waiter);
    return queue->reached_at >= since ||
           (queue->trouble == 0 && queue->reached_at != 0) ||
           (waiter->busy_at != 0 &&
            (queue->trouble == 0 || waiter->busy_at >= queue->troubled_at));
}

/* ETIMEDOUT: it was, or nothing failed for which nobody could tell; else ENOTCONN. */
static int deadline_code(const struct rlk_lock *lock, struct rlk_waiter *waiter,
                         int64_t since)
{
    bool well = lock->queue->trouble == 0 &&
                !rlk_registry_is_away(lock->registry, rlk_clock_boot());
    return well || was_busy(lock, waiter, since) ? ETIMEDOUT : ENOTCONN;
}

/* Of the calls that had to wait: those that were queued, also when the grant was there
 * before they had begun to, and those that waited for a thread of this process. */
static void count_wait(const struct rlk_acquire_params *params, struct rlk_waiter *waiter)
{
    if (!waiter->counted) {
        RLK_COUNT(params->client->counters.waits);
        RLK_PROBE3(lock_wait_begin, params->name, params->kind, (int)params->reading);
    }
    waiter->counted = true;
}

void rlk_acquire_waiter_done(const struct rlk_waiter *waiter,
                             const struct rlk_acquire_params *params, int rc,
                             int64_t *ret_waited)
{
    struct rlk_registry *reg = &params->client->registry;

    if (!waiter->counted)
        return;
    *ret_waited = rlk_clock_boot() - waiter->since;
    rlk_histogram_add(rc == 0 ? &reg->waited : &reg->waited_in_vain, *ret_waited);
}

/* Sends acquire until it is queued, held or refused. Returns a code to give up with, or
 * 0. */
static int ask_server(struct rlk_acquire_op *ask)
{
    const struct rlk_acquire_params *params = ask->params;
    struct rlk_registry *reg = &params->client->registry;
    struct rlk_answer answer;
    int64_t now = rlk_clock_boot(), started = now;
    bool interrupted = atomic_load(&params->client->interrupted);

    int64_t until = rlk_acquire_attempt_until(params, now);
    struct rlk_hold *share = rlk_acquire_share_begin(ask->lock, ask->hold, now);
    struct rlk_script_args_acquire request = {
        .hold = ask->hold,
        .share = share,
        .lease_ms = params->reading && !rlk_acquire_params_retains(params)
                        ? ask->hold->lease_ms
                        : first_lease(params),
        .try_once = interrupted
    };
    ask->hold->request.asked++;
    ask->tried = true;
    rlk_intent_note_locked(ask->hold);
    rlk_registry_unlock(reg);
    rlk_rpc_acquire(params->client, request, until, &answer);
    rlk_registry_lock(reg);
    now = rlk_clock_boot();
    enum rlk_verdict v = rlk_acquire_judge(ask->hold, params, &answer);
    if (share) {
        if (rlk_acquire_share_end(share, v, params, &answer, now) &&
            !rlk_acquire_share_decided(ask))
            rlk_acquire_share_enter(ask, share, now);
        rlk_acquire_share_put(share, now);
    }
    if (rlk_acquire_share_decided(ask))
        return 0;
    if (v == SHARED) /* through what is lost by now */
        v = AGAIN_AT_ONCE;
    if (v == TAKEN && now >= ask->hold->end)
        v = AGAIN; /* ours, but for no time that we could prove */
    if (v == TAKEN || v == QUEUED || v == TAKEN_BY_OTHERS) {
        ask->backoff_ms = ask->late = 0;
        if (v == QUEUED)
            count_wait(params, ask->waiter);
        return v == TAKEN_BY_OTHERS ? ECANCELED : 0;
    }
    if (v == SPOILT)
        return ENOTRECOVERABLE;
    if (v == FAILED)
        return answer.code != 0
                   ? answer.code
                   : rlk_error_set(
                         EPROTO, "unexpected reply from the acquire script of the lock");
    if (v == AGAIN_AT_ONCE && ++ask->late <= RLK_LATE_TRIES_MAX)
        return 0;
    if (v == AGAIN && answer.outcome == RLK_RETRY && ask->hold->request.asks_since != 0) {
        rlk_hold_asked_in_vain_locked(ask->hold, now);
        return 0;
    }
    if (v == AGAIN && answer.outcome != RLK_DONE) {
        rlk_queue_trouble_locked(ask->lock, answer.code, started);
        if (outage_left(params, ask->lock, ask->since, now) <= 0)
            return answer.code;
    }
    if (atomic_load(&params->client->interrupted))
        return ECANCELED;
    int64_t left = rlk_deadline_left(&params->deadline);
    if (left > 0)
        doze(params, min_time(next_backoff(&ask->backoff_ms, now), left));
    return 0;
}

int rlk_acquire_wait(struct rlk_acquire_op *ask)
{
    const struct rlk_acquire_params *params = ask->params;
    struct rlk_waiter *waiter = ask->waiter;
    struct rlk_hold *hold = ask->hold;

    for (;;) {
        if (rlk_acquire_share_decided(ask)) {
            rlk_hold_put_locked(hold);
            return waiter->failed ? ENOMEM : 0;
        }
        if (hold->request.granted && enter_granted(ask))
            return 0;
        if (hold->request.unrecoverable) { /* whoever goes on with it looks for himself */
            rlk_hold_ask_anew_locked(hold);
            return rlk_acquire_give_up(ask, ENOTRECOVERABLE);
        }
        int64_t left = rlk_deadline_left(&params->deadline);
        /* who comes this far with a deadline that has passed meanwhile asks once, as a
         * try would */
        if (left <= 0 &&
            (was_busy(ask->lock, waiter, ask->since) || ask->tried ||
             !hold->request.need_ask || hold->request.requester != params->thread))
            return rlk_acquire_give_up(ask, deadline_code(ask->lock, waiter, ask->since));
        if (hold->request.granted && hold->request.requester == params->thread)
            /* too late to believe, or not confirmed: let the server say what is true,
             * also of the death that a grant told of */
            rlk_hold_ask_anew_locked(hold);
        if (hold->request.need_ask && hold->request.requester == params->thread) {
            int rc = ask_server(ask);
            if (rc != 0)
                return rlk_acquire_give_up(ask, rc);
            continue;
        }
        if (atomic_load(&params->client->interrupted))
            return rlk_acquire_give_up(ask, ECANCELED);
        int64_t now = rlk_clock_boot();
        int64_t outage = outage_left(params, ask->lock, ask->since, now);
        if (outage <= 0)
            return rlk_acquire_give_up(ask, ENOTCONN);
        count_wait(params, waiter);
        note_busy(ask->lock, waiter);
        sleep_for(params, min_time(left, outage),
                  hold->request.requester == params->thread);
        note_late(params, waiter);
    }
}

/* The asker: until it has the lock or has given up. */
static int ask_and_wait(const struct rlk_acquire_params *params, struct rlk_lock *lock,
                        struct rlk_waiter *waiter, int64_t since)
{
    struct rlk_acquire_op ask = {
        .params = params, .lock = lock, .waiter = waiter, .since = since
    };
    bool in_order = rlk_kinds[lock->kind].in_order;
    /* an earlier asker's, or NULL */
    struct rlk_hold *hold = in_order ? NULL : rlk_lock_ask_locked(lock);

    if (hold && rlk_handoff_suits(hold, waiter)) {
        rlk_hold_ref_locked(hold);
        if (hold->request.unrecoverable) /* it may have been mended since */
            rlk_hold_ask_anew_locked(hold);
        hold->lease.short_ttl =
            true; /* what is known of its lease is the former asker's */
        hold->lease_ms = (int)params->lease_ms;
        hold->fixed = params->fixed;
        hold->prefer = params->prefer;
    } else {
        if (!in_order)
            rlk_acquire_withdraw(lock, params);
        /* with others behind it here, it will be passed on */
        hold =
            rlk_acquire_new_hold(params, lock,
                                 rlk_acquire_params_retains(params) ||
                                     (lock->kind == RLK_KIND_MUTEX && waiter->passed_on &&
                                      waiter->link.next != waiter->link.prev));
        if (!hold) {
            rlk_acquire_leave_queue(&ask);
            rlk_lock_promote_locked(lock);
            return ENOMEM;
        }
    }
    ask.hold = waiter->hold = hold;
    rlk_hold_ask_locked(hold, params->thread);
    return rlk_acquire_wait(&ask);
}

/* rule: H9 */
/* A thread that wants the lock without bound or until a deadline. */
static int wait_lock(const struct rlk_acquire_params *params, struct rlk_lock *lock,
                     int64_t *ret_waited, bool *ret_late)
{
    struct rlk_registry *reg = &params->client->registry;
    int64_t now = rlk_clock_boot(), since = now;
    struct rlk_waiter waiter;
    int rc = 0;

    rlk_acquire_waiter_init(&waiter, params, now);
    reg->waiters_now++;
    for (bool queued = false;; queued = true) {
        if (waiter.holder) { /* another thread handed it over */
            if (rlk_acquire_share_still_in(waiter.holder, params)) {
                rlk_intent_say_locked(waiter.holder->hold, RLK_INSIDE);
                break;
            }
            waiter.holder = NULL;
            rlk_list_prepend(&lock->queue->waiters, &waiter.link);
        }
        if (lock->queue->woken == &waiter)
            lock->queue->woken = NULL;
        if (rlk_acquire_enter_idle(params, lock, &waiter))
            break;
        if (waiter.holder || lock->queue->woken == &waiter)
            continue; /* it was handed over, or left to us, meanwhile */
        now = rlk_clock_boot();
        if (!queued)
            rlk_list_append(&lock->queue->waiters, &waiter.link);
        else if (rlk_list_empty(&waiter.link))
            rlk_list_prepend(&lock->queue->waiters, &waiter.link);
        rlk_handoff_settle_locked(lock, now);
        if (!lock->queue->requester)
            rlk_lock_promote_locked(lock);
        if (lock->queue->requester == &waiter || rlk_kinds[lock->kind].in_order) {
            rc = ask_and_wait(params, lock, &waiter, since);
            break;
        }
        count_wait(params, &waiter);
        int64_t left = rlk_deadline_left(&params->deadline);
        if (left <= 0)
            rc = deadline_code(lock, &waiter, since);
        else if (atomic_load(&params->client->interrupted))
            rc = ECANCELED;
        else if (!lock->current && outage_left(params, lock, since, now) <= 0)
            rc = ENOTCONN;
        if (rc != 0) {
            rlk_list_remove(&waiter.link);
            rlk_handoff_gave_up_locked(lock, &waiter, now);
            if (rlk_list_empty(&lock->queue->waiters))
                rlk_acquire_withdraw(lock, params);
            break;
        }
        note_busy(lock, &waiter);
        doze(params, lock->current
                         ? min_time(left, lock->current->end - now)
                         : min_time(left, outage_left(params, lock, since, now)));
        note_late(params, &waiter);
    }
    if (rc == 0 && rlk_list_empty(&lock->queue->waiters))
        rlk_acquire_withdraw(lock, params); /* nobody is left who goes on with it */
    reg->waiters_now--;
    rlk_acquire_waiter_done(&waiter, params, rc, ret_waited);
    *ret_late = waiter.late;
    return rc;
}

/* One attempt behind the deadline, as a call makes that begins past its deadline. */
static int try_after_all(const struct rlk_acquire_params *params, struct rlk_lock *lock)
{
    struct rlk_acquire_params once = *params;
    int64_t share = RLK_ATTEMPT_FLOOR_MS * RLK_NS_PER_MS, least = share / 2;
    int64_t left = min_time(rlk_deadline_left(&params->deadline), 0);
    int64_t rest = OVERTIME_MS * RLK_NS_PER_MS + left;

    if (share > rest)
        share = rest > least ? rest : least;
    once.try_once = true;
    return try_lock(&once, lock, rlk_clock_boot() + share);
}

/* The code of a thread that gave up waiting with `rc`. What came free while a signal's
 * handler, or a machine that stood still, kept it beyond its deadline is not refused for
 * that. And where all that it knows is that the server refused the process's poll, the
 * server was there: its answer to the thread itself says more, and in words. */
static int code_after_all(const struct rlk_acquire_params *params, struct rlk_lock *lock,
                          int rc, bool late)
{
    int trouble = lock->queue->trouble;

    if (rc == ETIMEDOUT && late && try_after_all(params, lock) == 0)
        return 0;
    if (rc != ENOTCONN || (trouble != EACCES && trouble != EPROTO))
        return rc;
    rc = try_after_all(params, lock);
    return rc == EBUSY ? ETIMEDOUT : rc;
}

/* The lock is the thread's: whether it may leave it by a gate. */
static bool may_rest(const struct rlk_acquire_params *params, const struct rlk_lock *lock)
{
    return params->kind == RLK_KIND_MUTEX && !params->fixed && lock->current &&
           (lock->current->contention.recall || !rlk_list_empty(&lock->queue->waiters));
}

int rlk_acquire(const struct rlk_acquire_params *params)
{
    struct rlk_registry *reg = &params->client->registry;
    int64_t waited = 0;
    bool rests = false, late = false;
    int rc;

    rlk_registry_lock(reg);
    struct rlk_lock *lock =
        rlk_lock_get_locked(reg, params->kind, params->name, params->name_len);
    if (lock) {
        lock->prefer = params->prefer;
        rc = params->try_once
                 ? try_lock(params, lock,
                            rlk_clock_boot() + rlk_client_command_timeout(params->client))
             : params->reading ? rlk_acquire_share_wait(params, lock, &waited, &late)
                               : wait_lock(params, lock, &waited, &late);
        if (!params->try_once)
            rc = code_after_all(params, lock, rc, late);
        if (rc == ETIMEDOUT)
            RLK_COUNT(params->client->counters.timeouts);
        rests = rc == 0 && may_rest(params, lock);
        rlk_lock_put_locked(lock);
    } else {
        rc = ENOMEM;
    }
    rlk_registry_unlock(reg);
    if (rests)
        rlk_fastpath_prepare(params->thread);
    if (rc == 0)
        RLK_PROBE4(lock_acquired, params->name, params->kind, (int)params->reading,
                   RLK_PROBE_US(waited));
    else
        RLK_PROBE4(lock_failed, params->name, params->kind, rc, RLK_PROBE_US(waited));
    if (rc == 0)
        rlk_error_clear(); /* of tries that failed on the way */
    else if (rc == EBUSY || rc == ETIMEDOUT || rc == ECANCELED || rc == ENOTRECOVERABLE)
        rlk_error_set(rc, "%s", rlk_error_text(rc));
    return rc;
}

/* ---- waiting for nothing */

int rlk_acquire_wait_in_vain(struct rlock_client *client, struct rlk_thread *thread,
                             const struct rlk_deadline *deadline)
{
    struct rlk_acquire_params params = { .client = client,
                                         .thread = thread,
                                         .deadline = *deadline };
    struct rlk_registry *reg = &client->registry;
    struct rlk_waiter waiter = { .thread = thread };
    int rc = 0;

    rlk_registry_lock(reg);
    rlk_list_append(&reg->sleepers, &waiter.link);
    while (rc == 0) {
        int64_t left = rlk_deadline_left(deadline);
        if (left <= 0)
            rc = ETIMEDOUT;
        else if (atomic_load(&client->interrupted))
            rc = ECANCELED;
        else
            doze(&params, left);
    }
    rlk_list_remove(&waiter.link);
    rlk_registry_unlock(reg);
    return rc;
}
