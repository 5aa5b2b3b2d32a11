/* SPDX-License-Identifier: Apache-2.0 */
/* The nemesis's locks behind one interface for all types, and a look into the library at
 * the calling thread's hold of one. Thread: any. */
#ifndef NEM_TARGET_H
#define NEM_TARGET_H

#include "oplog.h"

#include <rlock.h>

struct nem_target {
    unsigned number;
    enum nem_type type;
    union {
        rlock_mutex_t mutex;
        rlock_fair_t fair;
        rlock_rwlock_t rwlock;
    } lock;
};

/* Aborts with a message when the lock cannot be initialised. */
void nem_target_init(struct nem_target *target, unsigned number, rlock_client_t *client);
void nem_target_destroy(struct nem_target *target);

/* NEM_LOCK to NEM_TRYRDLOCK; `deadline` is CLOCK_REALTIME, for the timed ones. */
int nem_target_take(struct nem_target *target, enum nem_call call,
                    const struct timespec *deadline, long lease_ms);
int nem_target_unlock(struct nem_target *target);
int nem_target_downgrade(struct nem_target *target);
int nem_target_extend(struct nem_target *target, long lease_ms);
int nem_target_consistent(struct nem_target *target);
int nem_target_state(struct nem_target *target, rlock_state_t *ret_state);
unsigned nem_target_levels(struct nem_target *target);

/* Sets the record's id to the client's uuid. */
void nem_target_client(const rlock_client_t *client, struct nem_op *op);
/* Whether the client has the crash guard. */
bool nem_target_guarded(const rlock_client_t *client);

/* Puts D, token, id and mode of the calling thread's hold into the record; zeros without
 * a hold. */
void nem_target_look(struct nem_target *target, struct nem_op *op);

#endif
