/* SPDX-License-Identifier: Apache-2.0 */
/* What acquire.c, acquire_enter.c, acquire_ask.c, acquire_wait.c, acquire_look.c and
 * acquire_share.c share.
 * All functions need the registry's mu, which they may drop where they ask or sleep. */
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
    DECIDED /* by another thread, or by a hold that is shared */
};

enum rlk_sleep {
    RLK_SLEEP_PAUSE,  /* before the next attempt */
    RLK_SLEEP,        /* until a thread of this process wakes this one */
    RLK_SLEEP_BY_MAIL /* likewise, for what comes by the mailbox */
};

/* A call in progress, on the stack of its thread. */
struct rlk_acquire_op {
    const struct rlk_acquire_params *params;
    struct rlk_lock *lock;
    struct rlk_waiter waiter; /* the thread; linked while it waits */
    struct rlk_hold *hold;    /* that asks; one reference; NULL: none */
    unsigned open_to;         /* of the hold, which has no room for it when entered */

    /* Looks whether the wait is over; if not, says how to sleep. NULL: there is no wait.
     */
    bool (*look)(struct rlk_acquire_op *op);
    /* The same behind an attempt. */
    bool (*judge)(struct rlk_acquire_op *op);
    int rc; /* what the call comes to, when it is over */
    enum rlk_sleep sleep;
    int64_t pause_ns; /* to sleep at most; not positive: look again at once */
    int backoff_ms, late;

    /* the newest attempt */
    enum rlk_verdict verdict;
    bool tried;           /* there was one */
    int64_t started, now; /* when it began, and when its answer was judged */
    struct rlk_answer answer;

    /* of a try */
    int64_t until, least;    /* when it ends; what a repetition must have left */
    bool again;              /* the next attempt is a repetition */
    bool going;              /* the process was giving back a hold of the lock */
    struct rlk_cursor after; /* where the next attempt goes on to look */
};

/* How long a request may be waited for beyond the caller's deadline. */
enum { RLK_ATTEMPT_FLOOR_MS = 50 };

/* ---- what the parameters come to */

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

/* Whether the lock is to be retained after its unlock, as far as can be said by now. */
static inline bool rlk_acquire_params_retains(const struct rlk_acquire_params *params)
{
    return params->handoff.retain_ns > 0 && params->handoff.hears &&
           (params->kind == RLK_KIND_MUTEX || params->kind == RLK_KIND_RWLOCK) &&
           !params->fixed;
}

/* Until when to wait for the answer to a request that is sent now: the command timeout,
 * but no longer than the caller's deadline and a bit, so that a deadline that is near
 * does not cut off a server that is well. */
static inline int64_t rlk_acquire_attempt_until(const struct rlk_acquire_params *params,
                                                int64_t now)
{
    int64_t left = params->try_once ? RLK_NEVER : rlk_deadline_left(&params->deadline);
    int64_t timeout = rlk_client_command_timeout(params->client);

    if (left >= timeout)
        return now + timeout;
    return now + (left > 0 ? left : 0) + RLK_ATTEMPT_FLOOR_MS * RLK_NS_PER_MS;
}

/* ---- acquire_ask.c */

/* A hold that asks; tell: the server is to tell of others who want the lock. NULL: out of
 * memory. */
struct rlk_hold *rlk_acquire_new_hold(const struct rlk_acquire_op *op, bool tell);
/* Sends one request, and looks what the answer means: op->verdict. */
void rlk_acquire_attempt(struct rlk_acquire_op *op);
/* A hold that asked is not needed, because another is shared. What may be left of its
 * requests is withdrawn (W21). Consumes the caller's reference. */
void rlk_acquire_end_request(struct rlk_hold *hold,
                             const struct rlk_acquire_params *params, int64_t now);
/* The thread waits no more. */
void rlk_acquire_leave_queue(struct rlk_acquire_op *op);
/* Whether it may be entered now: it has not ended, and no hold that is believed in would
 * be taken by what may be the older grant. If not, the server is to be asked again. */
bool rlk_acquire_may_take(const struct rlk_hold *hold, int64_t now);
/* The server has it for this hold until its end, and gives it to the thread. */
void rlk_acquire_take(struct rlk_hold *hold, const struct rlk_acquire_params *params,
                      int64_t now);
/* A hold that is ASKING ends without having been entered. If anything of it may be at the
 * server, the watchdog withdraws or releases it. Consumes the caller's reference. */
void rlk_acquire_abandon(struct rlk_hold *hold, const struct rlk_acquire_params *params,
                         int64_t now);
/* Nobody goes on with what an earlier asker left behind. */
void rlk_acquire_withdraw(struct rlk_lock *lock, const struct rlk_acquire_params *params);
/* Enters a hold that the server has until hold->end. False: it was lost meanwhile, or may
 * be older than a hold that this process believes in; the server is to be asked again. */
bool rlk_acquire_enter_granted(struct rlk_acquire_op *op);
/* The requester gives up with `rc`: passes its id on, or withdraws it. Returns 0 if the
 * process turns out to have the lock. Consumes the hold's reference. */
int rlk_acquire_give_up(struct rlk_acquire_op *op, int rc);

/* ---- acquire_enter.c */

/* Enters what this process has of the lock and no thread is in. What the process may not
 * keep is given back on the way, which waits. */
bool rlk_acquire_enter_idle(struct rlk_acquire_op *op);

/* ---- acquire_wait.c */

/* Looks and sleeps until the wait is over. Returns op->rc. */
int rlk_acquire_wait(struct rlk_acquire_op *op);
/* A look ends the wait with `rc`; or has it go on after a sleep of at most `ns`. */
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

/* How much longer a caller that does not want to wait for a server waits for it: since
 * the trouble began, or since the call began. A call with a deadline waits until then. */
int64_t rlk_acquire_outage_left(const struct rlk_acquire_op *op, int64_t now);
/* Notes whether the thread was kept long beyond its deadline, plus `over_ms` that its
 * request might take, by something else than that request: op->waiter.late. */
void rlk_acquire_note_late(struct rlk_acquire_op *op, long over_ms);
/* Notes whether another thread of this process is in. */
void rlk_acquire_note_busy(struct rlk_acquire_op *op);
/* Whether the server or this process could tell that the lock was busy since the call
 * began. */
bool rlk_acquire_was_busy(struct rlk_acquire_op *op);
/* What a call comes to at its deadline. */
int rlk_acquire_deadline_code(struct rlk_acquire_op *op);
/* The call has to wait: counts it, once. */
void rlk_acquire_count_wait(struct rlk_acquire_op *op);

/* ---- acquire_look.c */

/* The thread wants a lock exclusively that it did not find. True: it is the requester,
 * and is to make an attempt; false: it waits first, or is over (op->look is NULL). */
bool rlk_acquire_begin_asking(struct rlk_acquire_op *op);
/* A requester looks, and judges the answer to its attempt. */
bool rlk_acquire_look_asking(struct rlk_acquire_op *op);
bool rlk_acquire_judge_asking(struct rlk_acquire_op *op);

/* ---- acquire_share.c */

/* The hold that a reader may share, from now on as good as used by it (W22); or NULL. */
struct rlk_hold *rlk_acquire_share_begin(struct rlk_lock *lock,
                                         const struct rlk_hold *hold, int64_t now);
/* The request is answered, or given up. When it was told that the hold is shared: whether
 * that can be relied upon. */
bool rlk_acquire_share_end(struct rlk_hold *share, enum rlk_verdict v,
                           const struct rlk_acquire_params *params,
                           const struct rlk_answer *answer, int64_t now);
/* Nobody may have come to share it after all. Consumes rlk_acquire_share_begin's
 * reference. */
void rlk_acquire_share_put(struct rlk_hold *share, int64_t now);
/* A thread that was let in by another: whether it still is. If not, it has nothing. */
bool rlk_acquire_share_still_in(struct rlk_holder *holder,
                                const struct rlk_acquire_params *params);

/* Another thread that waits for the same hold, or NULL. */
struct rlk_waiter *rlk_acquire_share_companion(const struct rlk_acquire_op *op);
/* Another thread has found out what becomes of this one: it was let in, or it is to ask
 * anew. */
bool rlk_acquire_share_decided(const struct rlk_acquire_op *op);
/* The others that wait for this one's hold enter `hold` with it, which is that one, or
 * what is shared instead. */
void rlk_acquire_share_bring_along(struct rlk_acquire_op *op, struct rlk_hold *hold);
/* All that wait for this hold enter another, which the server says they share. */
void rlk_acquire_share_enter(struct rlk_acquire_op *op, struct rlk_hold *share,
                             int64_t now);
/* The same as rlk_acquire_begin_asking, for a thread that wants to read. */
bool rlk_acquire_share_begin_asking(struct rlk_acquire_op *op);

#endif
