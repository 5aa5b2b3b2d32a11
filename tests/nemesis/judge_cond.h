/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the judge: conditions. A sleep is a thread's wait, by the workers' records. A
 * stay is what the server had of its id, by the ledger: the id waits, is signalled, and
 * is gone; or a broadcast or its own thread takes it out.
 */
#ifndef NEM_JUDGE_COND_H
#define NEM_JUDGE_COND_H

#include "judge_impl.h"

struct nem_stay;

struct nem_sleep {
    const struct nem_life *life;
    const struct nem_op *invoke;  /* of NEM_WAIT */
    const struct nem_op *joining; /* NULL: nothing was sent */
    const struct nem_op *awake;   /* the return of NEM_WAIT; NULL: not seen */
    const struct nem_op *retaken; /* the return of NEM_RETAKE; NULL: not seen */
    const struct nem_op *waited;  /* NULL: not seen */
    const struct nem_stay *stay;  /* the last one of its id; NULL: none */
};

struct nem_stay {
    const char *id;
    struct nem_sleep *sleep;                           /* NULL: unknown */
    const struct nem_life *life;                       /* NULL: of an unknown process */
    const struct nem_entry *joined, *signalled, *left; /* NULL: not seen */
    uint64_t ticket;
    uint64_t until;        /* while it is signalled: the end of its time (server ms) */
    bool gone;             /* it leaves in this transaction */
    struct nem_stay *next; /* of the same condition */
};

struct nem_conds {
    struct nem_judge *j;
    struct nem_sleep *sleeps;
    size_t sleep_count, sleep_size;
    struct nem_sleep **by_id; /* those with an id */
    size_t id_count;
    struct nem_stay *stays[NEM_LOCKS_MAX]; /* by condition, the last one first */
};

/* When the thread was awake; if it is not known to have been, until when it surely
 * slept. */
int64_t nem_slept_until(const struct nem_judge *j, const struct nem_sleep *sleep);
/* When the id left the queue, at the latest, and not before; INT64_MAX: it did not. */
int64_t nem_taken_by(const struct nem_stay *stay);
int64_t nem_taken_after(const struct nem_stay *stay);
/* NULL: unknown. */
struct nem_sleep *nem_sleep_of(const struct nem_conds *conds, const char *id);

void nem_sleeps_make(struct nem_conds *conds);
void nem_sleeps_free(struct nem_conds *conds);
/* judge_sleeps.c: code, bound of waits */
void nem_judge_sleeps(struct nem_conds *conds);
/* judge_stays.c: makes the stays; first, eaten, acked, overdue, once; asleep */
void nem_judge_stays(struct nem_conds *conds);
void nem_stays_free(struct nem_conds *conds);
/* judge_signals.c: missed; code, bound of signals */
void nem_judge_signals(struct nem_conds *conds);
/* judge_buffers.c: items */
void nem_judge_buffers(struct nem_conds *conds);

#endif
