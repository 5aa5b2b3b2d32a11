/* SPDX-License-Identifier: Apache-2.0 */
/* Taking and giving back, for all lock types, with the only wait loop. Runs on the
 * caller's thread. */
#ifndef RLK_ACQUIRE_H
#define RLK_ACQUIRE_H

#include "base/deadline.h"
#include "client/client.h"

struct rlk_acquire_params {
    struct rlock_client *client; /* the caller keeps it open */
    struct rlk_thread *thread;
    int kind;
    const char *name; /* checked */
    size_t name_len;
    bool try_once;
    bool outage_fails; /* ENOTCONN instead of waiting for a server */
    struct rlk_deadline deadline;
    long lease_ms;
    bool fixed;
    bool fencing;
    bool reading;
    bool robust;
    struct rlk_handoff handoff;
    uint8_t prefer; /* of a read-write lock: RLOCK_RWLOCK_PREFER_*, PHASE_FAIR */
};

/*
 * Takes the lock for the calling thread, which does not hold it. 0, EBUSY (try_once),
 * ETIMEDOUT, ENOTCONN, ECANCELED, ENOTRECOVERABLE, EACCES, EPROTO, ENOMEM, or what
 * opening a connection gives. Blocks: until the deadline and 100 ms for the cancel (L7).
 * Locks: takes the registry's mu.
 */
int rlk_acquire(const struct rlk_acquire_params *params);

/*
 * Ends the thread's outermost level of a live hold. The last thread that leaves releases
 * the hold at the server, unless other threads of this process go on with it, within the
 * bounds that `handle` names (NULL: never). 0: exclusion was unbroken until `now`;
 * ESTALE: the hold was lost; EACCES, EPROTO: unbroken, but the server refused the
 * release. In every case the thread holds the lock no more. Blocks: up to the command
 * timeout.
 */
int rlk_release(struct rlk_holder *holder, const struct rlk_handle *handle, int64_t now);

/* The same, if another thread may close the client at this moment, which loses the
 * hold. */
int rlk_release_retained(struct rlk_holder *holder, const struct rlk_handle *handle,
                         int64_t now);

/* Releases a RELEASING hold that no unlock gives back. If the server does not answer by
 * `until`, the watchdog releases the hold. Consumes the caller's reference. Locks: hold
 * the registry's mu, which is dropped meanwhile. */
void rlk_release_left(struct rlk_hold *hold, int64_t until);

enum { RLK_RELEASE_TRIES = 2 };

/* The state that a robust hold protects is consistent again. */
void rlk_held_consistent(struct rlk_hold *hold);

/* Ends a thread's share in a lost hold, after its last level was unlocked. */
void rlk_release_drain(struct rlk_holder *holder);

/* Makes a writer a reader (W18). 0: the thread reads, and nobody wrote in between (if the
 * server cannot be reached, the watchdog tells it). ESTALE: the hold is lost. EACCES,
 * EPROTO: the thread reads, but the server does not let others read. Blocks: up to the
 * command timeout. */
int rlk_held_downgrade(struct rlk_holder *holder);

/* Makes the hold LOST if its lease is over. Whether it is lost. */
bool rlk_held_check(struct rlk_hold *hold, int64_t now);

/* Gives the hold a new lease of `lease_ms` from now, fixed or renewed. 0, ESTALE,
 * ENOTCONN (unchanged), EACCES, EPROTO. */
int rlk_held_extend(struct rlk_hold *hold, long lease_ms, bool fixed);
/* Gives a thread that shares a read hold a hold of its own, with a fixed lease.
 * *ret_alone: nothing was done, because the thread is alone in its hold, and stays so.
 * Codes as rlk_held_extend, ENOMEM. */
int rlk_held_unshare(struct rlk_holder *holder, long lease_ms, bool *ret_alone);

/* Sleeps until `deadline` or an interrupt: ETIMEDOUT, ECANCELED. */
int rlk_acquire_wait_in_vain(struct rlock_client *client, struct rlk_thread *thread,
                             const struct rlk_deadline *deadline);

#endif
