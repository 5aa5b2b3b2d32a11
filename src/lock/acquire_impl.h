/* SPDX-License-Identifier: Apache-2.0 */
/* What acquire.c, acquire_enter.c, acquire_ask.c and acquire_share.c have between them.
 * All functions need the registry's mu, which they may drop where they wait. */
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
    FAILED
};

/* The asker's state across rounds. */
struct rlk_acquire_op {
    const struct rlk_acquire_params *params;
    struct rlk_lock *lock;
    struct rlk_waiter *waiter;
    struct rlk_hold *hold; /* one reference */
    int64_t since;         /* when its thread came */
    int backoff_ms, late;
    bool tried;       /* to ask the server */
    unsigned open_to; /* of its hold, which has no room for it once it is entered */
};

/* How long a request may be waited for beyond the caller's deadline. */
enum { RLK_ATTEMPT_FLOOR_MS = 50 };

/* ---- acquire_ask.c */

/* The TTL of a grant, and the letter of an id. */
uint32_t rlk_acquire_params_grant_ms(const struct rlk_acquire_params *params);
char rlk_acquire_params_letter(const struct rlk_acquire_params *params);
/* A hold that asks for it; tell: and wants to be told of others who do. NULL: out of
 * memory. */
struct rlk_hold *rlk_acquire_new_hold(const struct rlk_acquire_params *params,
                                      struct rlk_lock *lock, bool tell);
/* A hold that asked is not needed, because another is shared. What may be left of its
 * requests is withdrawn (W21). Consumes the caller's reference. */
void rlk_acquire_end_request(struct rlk_hold *hold,
                             const struct rlk_acquire_params *params, int64_t now);
/* The thread waits no more. */
void rlk_acquire_leave_queue(struct rlk_acquire_op *ask);
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
/* Writes down what an answer says about the hold. */
enum rlk_verdict rlk_acquire_judge(struct rlk_hold *hold,
                                   const struct rlk_acquire_params *params,
                                   const struct rlk_answer *answer);
/* The asker's part ends with `rc` and its id is not needed any more: passes it on, or
 * withdraws it. May find that the lock is ours after all, and returns 0 then. Consumes
 * the hold's reference. */
int rlk_acquire_give_up(struct rlk_acquire_op *ask, int rc);

/* ---- acquire_enter.c */

/* Until when a request that is sent now is waited for: the command timeout, but no longer
 * than the caller's deadline and a bit, so that a deadline that is near does not cut off
 * a server that is well. */
int64_t rlk_acquire_attempt_until(const struct rlk_acquire_params *params, int64_t now);
/* Whether the lock is to be kept when it has been unlocked, as far as can be said by now.
 */
bool rlk_acquire_params_retains(const struct rlk_acquire_params *params);
/* The calling thread, which does not queue yet. */
void rlk_acquire_waiter_init(struct rlk_waiter *waiter,
                             const struct rlk_acquire_params *params, int64_t now);
/* Enters what this process has of the lock, and nobody is in. What it may not have any
 * longer is given back on the way, which waits. */
bool rlk_acquire_enter_idle(const struct rlk_acquire_params *params,
                            struct rlk_lock *lock, struct rlk_waiter *waiter);

/* ---- acquire.c */

/* The call of a thread that waited, or not, has come to `rc`. *ret_waited: for how long,
 * ns; 0: it had not to. */
void rlk_acquire_waiter_done(const struct rlk_waiter *waiter,
                             const struct rlk_acquire_params *params, int rc,
                             int64_t *ret_waited);

/* Until the hold that it is about is the caller's, or it has given up, or it is decided
 * by another thread. Gives its reference back. */
int rlk_acquire_wait(struct rlk_acquire_op *ask);

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
struct rlk_waiter *rlk_acquire_share_companion(const struct rlk_acquire_op *ask);
/* Another thread has found out what becomes of this one: it was let in, or it is to ask
 * anew. */
bool rlk_acquire_share_decided(const struct rlk_acquire_op *ask);
/* The others that wait for this one's hold enter `hold` with it, which is that one, or
 * what is shared instead. */
void rlk_acquire_share_bring_along(struct rlk_acquire_op *ask, struct rlk_hold *hold);
/* All that wait for this hold enter another, which the server says they share. */
void rlk_acquire_share_enter(struct rlk_acquire_op *ask, struct rlk_hold *share,
                             int64_t now);
/* A thread that wants to read, until it does or gives up. *ret_late: it slept beyond its
 * deadline. */
int rlk_acquire_share_wait(const struct rlk_acquire_params *params, struct rlk_lock *lock,
                           int64_t *ret_waited, bool *ret_late);

#endif
