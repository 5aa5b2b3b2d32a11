/* SPDX-License-Identifier: Apache-2.0 */
/* What acquire.c, acquire_enter.c, acquire_ask.c, acquire_wait.c, acquire_look.c and
 * acquire_share.c share. All functions need the registry's mu, which they may drop where
 * they ask or sleep. */
#ifndef RLK_ACQUIRE_IMPL_H
#define RLK_ACQUIRE_IMPL_H

#include "client/rpc.h"
#include "lock/acquire.h"
#include "state/handoff.h"
#include "state/readshare.h"

/* What an answer to acquire means. */
enum rlk_verdict {
    TAKEN,
    SHARED,
    QUEUED,
    TAKEN_BY_OTHERS,
    AGAIN,
    AGAIN_AT_ONCE,
    SPOILT, /* not recoverable */
    FAILED,
    DECIDED /* see rlk_acquire_share_decided */
};

enum rlk_sleep {
    RLK_SLEEP_PAUSE,  /* before the next attempt */
    RLK_SLEEP,        /* until a thread of this process wakes this one */
    RLK_SLEEP_BY_MAIL /* likewise, and this thread may read the mailbox meanwhile */
};

/* A call in progress, on the stack of its thread. */
struct rlk_acquire_op {
    const struct rlk_acquire_params *params;
    struct rlk_lock *lock;
    struct rlk_waiter waiter; /* the thread; linked while it waits */
    struct rlk_hold *hold;    /* of the request; one reference; NULL: none */
    unsigned open_to;         /* hold->request.open_to, which is gone when the hold is
                                 entered */

    /* Looks whether the wait is over; if not, says how to sleep. NULL: there is no wait.
     */
    bool (*look)(struct rlk_acquire_op *op);
    /* The same after an attempt. */
    bool (*judge)(struct rlk_acquire_op *op);
    int rc; /* the code of the call, when it is over */
    enum rlk_sleep sleep;
    int64_t pause_ns; /* to sleep at most; not positive: look again at once */
    int backoff_ms, late;

    /* the newest attempt */
    enum rlk_verdict verdict;
    bool tried;           /* there was one */
    int64_t started, now; /* when it began, and when its answer was judged */
    struct rlk_answer answer;

    /* of a try */
    int64_t until, least;    /* when it ends; the time that a repetition needs */
    bool again;              /* the next attempt is a repetition */
    bool going;              /* the process was giving back a hold of the lock */
    struct rlk_cursor after; /* where the next attempt goes on among the server's
                                waiters */
};

/* How long a call may wait for an answer beyond its deadline. */
enum { RLK_ATTEMPT_FLOOR_MS = 50 };

/* ---- what follows from the parameters */

/* The TTL of a grant. */
static inline uint32_t
rlk_acquire_params_grant_ms(const struct rlk_acquire_params *params)
{
    long presence = params->client->config.presence_ms;
    return (uint32_t)(params->lease_ms < presence ? params->lease_ms : presence);
}

/* The letter of an id. */
static inline char rlk_acquire_params_letter(const struct rlk_acquire_params *params)
{
    const struct rlk_kind *kind = &rlk_kinds[params->kind];
    char l = params->reading ? kind->read_letter : kind->letter;
    return params->fencing ? (char)(l - 'a' + 'A') : l;
}

/* Whether the process is to retain the lock after its unlock, as far as this is known
 * now. */
static inline bool rlk_acquire_params_retains(const struct rlk_acquire_params *params)
{
    return params->handoff.retain_ns > 0 && params->handoff.hears &&
           (params->kind == RLK_KIND_MUTEX || params->kind == RLK_KIND_RWLOCK) &&
           !params->fixed;
}

/* Until when to wait for the answer to a request that is sent now: for the command
 * timeout at most, and not far beyond the caller's deadline. The short extra time lets a
 * healthy server answer although the deadline is near; a second request of a call that is
 * beyond its deadline has less of it, so that all of them end in time (L7). A try has one
 * end for all its requests. */
static inline int64_t rlk_acquire_until(const struct rlk_acquire_op *op, int64_t now)
{
    const struct rlk_acquire_params *params = op->params;
    int64_t extra = RLK_ATTEMPT_FLOOR_MS * RLK_NS_PER_MS, least = extra / 2;

    if (params->try_once)
        return op->until;
    int64_t left = rlk_deadline_left(&params->deadline);
    int64_t timeout = rlk_client_command_timeout(params->client);
    if (left >= timeout)
        return now + timeout;
    if (left >= 0)
        return now + left + extra;
    int64_t called = now - op->waiter.since; /* it may have begun beyond its deadline */
    extra -= -left < called ? -left : called;
    return now + (extra > least ? extra : least);
}

/* ---- acquire_ask.c */

/* Makes the hold of a request. tell: the server is to tell this hold when others want the
 * lock. NULL: out of memory. */
struct rlk_hold *rlk_acquire_new_hold(const struct rlk_acquire_op *op, bool tell);
/* Sends one request, and judges the answer: op->verdict. */
void rlk_acquire_attempt(struct rlk_acquire_op *op);
/* Ends a request that is not needed, because the thread shares another hold. What the
 * server may have of it is withdrawn (W21). Consumes the caller's reference. */
void rlk_acquire_end_request(struct rlk_hold *hold,
                             const struct rlk_acquire_params *params, int64_t now);
/* Takes the thread, which waits no more, out of the local queue. */
void rlk_acquire_leave_queue(struct rlk_acquire_op *op);
/* Whether a thread may enter the hold now: its lease lasts, and its grant is not older
 * than a hold that the process believes in. If not, the server is to be asked again. */
bool rlk_acquire_may_take(const struct rlk_hold *hold, int64_t now);
/* Gives the thread the hold, for which the server has the lock until hold->end. */
void rlk_acquire_take(struct rlk_hold *hold, const struct rlk_acquire_params *params,
                      int64_t now);
/* Ends a REQUESTED or CANCELLING hold that no thread entered. If the server may have
 * anything of it, the watchdog withdraws or releases it. Consumes the caller's
 * reference. */
void rlk_acquire_abandon(struct rlk_hold *hold, const struct rlk_acquire_params *params,
                         int64_t now);
/* Ends the request that an earlier requester left behind, because no thread goes on with
 * it. */
void rlk_acquire_withdraw(struct rlk_lock *lock, const struct rlk_acquire_params *params);
/* Enters a hold for which the server has the lock until hold->end. False: the hold was
 * lost meanwhile, or may be older than one that this process believes in; the server is
 * to be asked again. */
bool rlk_acquire_enter_granted(struct rlk_acquire_op *op);
/* Whether the hold was granted, and replicas are still to confirm it (P13). */
static inline bool rlk_acquire_must_prove(const struct rlk_acquire_op *op)
{
    const struct rlk_hold_request *request = &op->hold->request;

    return request->unproven && request->granted &&
           rlk_confirm_is_on(&op->params->client->config.wait);
}
/* Whether it is too late to ask again after too few replicas confirmed: the answer might
 * come beyond the deadline, and would then say less than the present one. `left`: ns. */
static inline bool rlk_acquire_is_last(const struct rlk_acquire_op *op, int64_t left)
{
    return op->answer.unconfirmed && left < RLK_CONFIRM_LEAST_MS * RLK_NS_PER_MS;
}
/* The requester has replicas confirm a granted hold. If they do not, the server is to be
 * asked again. */
void rlk_acquire_prove(struct rlk_acquire_op *op);
/* The requester gives up with `rc`: passes its id on, or withdraws it. Returns 0 if the
 * process turns out to have the lock. Consumes the hold's reference. */
int rlk_acquire_give_up(struct rlk_acquire_op *op, int rc);

/* ---- acquire_enter.c */

/* Enters a hold that this process has, without the server. A hold that the process may
 * not retain any more is given back on the way, which waits for the server. */
bool rlk_acquire_enter_idle(struct rlk_acquire_op *op);

/* ---- acquire_wait.c */

/* Looks and sleeps until the wait is over. Returns op->rc. */
int rlk_acquire_wait(struct rlk_acquire_op *op);
/* The result of a look: the wait ends with `rc`, or goes on after a sleep of at most
 * `ns`. */
static inline bool rlk_acquire_end_with(struct rlk_acquire_op *op, int rc)
{
    op->rc = rc;
    return true;
}
static inline bool rlk_acquire_go_on(struct rlk_acquire_op *op, enum rlk_sleep sleep,
                                     int64_t ns)
{
    op->sleep = sleep;
    op->pause_ns = ns;
    return false;
}
/* The pause before the next attempt, ns; longer each time, at most `most`. */
int64_t rlk_acquire_pause(struct rlk_acquire_op *op, int64_t most);

/* How much longer a call that fails in an outage waits for the server: for the command
 * timeout, since the trouble or the call began, whichever was later. RLK_NEVER: only the
 * deadline ends the wait. */
int64_t rlk_acquire_outage_left(const struct rlk_acquire_op *op, int64_t now);
/* Sets op->waiter.late: whether something kept the thread long beyond its deadline, other
 * than its request, which might take `over_ms`. */
void rlk_acquire_note_late(struct rlk_acquire_op *op, long over_ms);
/* Notes when another thread of this process has the lock. */
void rlk_acquire_note_busy(struct rlk_acquire_op *op);
/* Whether the server or this process could see, since the call began, that the lock was
 * busy. */
bool rlk_acquire_was_busy(struct rlk_acquire_op *op);
/* The code of a call at its deadline. */
int rlk_acquire_deadline_code(struct rlk_acquire_op *op);
/* Counts a call that has to wait, once. */
void rlk_acquire_count_wait(struct rlk_acquire_op *op);

/* ---- acquire_look.c */

/* Begins the request of a thread that wants the lock exclusively. True: the thread is the
 * requester, and is to make an attempt. False: it waits first, or the call is over
 * (op->look is NULL). */
bool rlk_acquire_begin_asking(struct rlk_acquire_op *op);
/* A requester looks, and judges the answer to its attempt. */
bool rlk_acquire_look_asking(struct rlk_acquire_op *op);
bool rlk_acquire_judge_asking(struct rlk_acquire_op *op);

/* ---- acquire_share.c */

/* The hold that a reader's request may share; or NULL. From now on the request counts as
 * a thread in it (W22). */
struct rlk_hold *rlk_acquire_share_begin(struct rlk_lock *lock,
                                         const struct rlk_hold *hold, int64_t now);
/* Ends that count, when the request was answered or given up. Whether the answer says
 * that the thread shares the hold, and the lease still lasts. */
bool rlk_acquire_share_end(struct rlk_hold *share, enum rlk_verdict v,
                           const struct rlk_acquire_params *params,
                           const struct rlk_answer *answer, int64_t now);
/* Ends the shared hold if no thread uses it. Consumes rlk_acquire_share_begin's
 * reference. */
void rlk_acquire_share_put(struct rlk_hold *share, int64_t now);
/* Whether a thread that another thread let in still is inside. If not, its holder is
 * gone. */
bool rlk_acquire_share_still_in(struct rlk_holder *holder,
                                const struct rlk_acquire_params *params);

/* Another thread that waits for the same hold, or NULL. */
struct rlk_waiter *rlk_acquire_share_companion(const struct rlk_acquire_op *op);
/* Who goes on with the hold of a reader that gives up; or NULL. With replicas, the server
 * may have given it already: threads that came later do not go on with it, because a
 * writer may have queued before them, but ask again, together. */
struct rlk_waiter *rlk_acquire_share_heir(const struct rlk_acquire_op *op);
/* Whether the thread waits for op->hold no more: it was let into a hold, or is to ask
 * again. Another thread may have decided this. */
bool rlk_acquire_share_decided(const struct rlk_acquire_op *op);
/* The other threads that wait for op->hold enter `hold` with this one: op->hold itself,
 * or the hold that they share instead. */
void rlk_acquire_share_bring_along(struct rlk_acquire_op *op, struct rlk_hold *hold);
/* All threads that wait for op->hold enter `share`, because the server says that they
 * share it. */
void rlk_acquire_share_enter(struct rlk_acquire_op *op, struct rlk_hold *share,
                             int64_t now);
/* The same as rlk_acquire_begin_asking, for a thread that wants to read. */
bool rlk_acquire_share_begin_asking(struct rlk_acquire_op *op);

#endif
