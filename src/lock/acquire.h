/* SPDX-License-Identifier: Apache-2.0 */
/* Taking and giving back, for all lock types: the one wait loop. Runs on the caller's
 * thread. */
#ifndef RLK_ACQUIRE_H
#define RLK_ACQUIRE_H

#include "base/deadline.h"
#include "client/client.h"

struct rlk_acquire_params {
    struct rlock_client *client; /* kept by the caller */
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
 * Gives up the outermost level of a hold that is INSIDE; the last thread in it releases
 * it at the server, unless others of this process go on with it, within the bounds that
 * `handle` names (NULL: never). 0:
 * exclusion was unbroken until `now`; ESTALE: it was lost; EACCES, EPROTO: unbroken, but
 * the server refused the release. In every case the thread holds it no more. Blocks: up
 * to the command timeout.
 */
int rlk_release(struct rlk_holder *holder, const struct rlk_handle *handle, int64_t now);

/* The same for a hold whose client may be closed at this moment, which loses it. */
int rlk_release_retained(struct rlk_holder *holder, const struct rlk_handle *handle,
                         int64_t now);

/* Releases a hold that is GOING; the watchdog does, if that is not answered by `until`.
 * Consumes the caller's reference. Locks: hold the registry's mu, which is dropped
 * meanwhile. */
void rlk_release_left(struct rlk_hold *hold, int64_t until);

enum { RLK_RELEASE_TRIES = 2 };

/* A robust one: the state that it protects is consistent again. */
void rlk_held_consistent(struct rlk_hold *hold);

/* The end of a thread's part in a lost hold, when its levels are drained. */
void rlk_release_drain(struct rlk_holder *holder);

/* A writer becomes a reader (W18). 0: it reads, and nobody wrote in between (if the
 * server cannot be reached, the watchdog tells it); ESTALE: it is lost; EACCES, EPROTO:
 * it reads, but the server does not let others read. Blocks: up to the command timeout.
 */
int rlk_held_downgrade(struct rlk_holder *holder);

/* If the hold's time is over, makes it LOST. Whether it is lost. */
bool rlk_held_check(struct rlk_hold *hold, int64_t now);

/* A new lease of `lease_ms` from now, fixed or renewed. 0, ESTALE, ENOTCONN (unchanged),
 * EACCES, EPROTO. */
int rlk_held_extend(struct rlk_hold *hold, long lease_ms, bool fixed);
/* A thread that shares a read hold gets one of its own, with a fixed lease. *ret_alone:
 * nothing was done, because it is the only one in its hold, and stays so. Codes as
 * rlk_held_extend, ENOMEM. */
int rlk_held_unshare(struct rlk_holder *holder, long lease_ms, bool *ret_alone);

/* Sleeps until `deadline` or an interrupt: ETIMEDOUT, ECANCELED. */
int rlk_acquire_wait_in_vain(struct rlock_client *client, struct rlk_thread *thread,
                             const struct rlk_deadline *deadline);

#endif
