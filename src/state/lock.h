/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process knows of one lock: the threads that wait for it, the holds that ask and
 * those that are held, and when the server is asked about it next. Owner: the registry.
 * Everything here is guarded by the registry's mutex.
 */
#ifndef RLK_LOCK_H
#define RLK_LOCK_H

#include "state/hold.h"

/* A thread that waits for a lock; on its stack. Guarded by the registry's mu. */
struct rlk_waiter {
    struct rlk_list link;
    struct rlk_thread *thread;
    char letter;
    bool robust;
    uint32_t grant_ms;
    long lease_ms;
    int64_t since;     /* it has waited */
    int64_t busy_at;   /* when it last saw another thread of this process in; 0 */
    bool passed_on;    /* will take the lock from another thread of this process */
    bool retakes;      /* may have what the process keeps */
    bool counted;      /* in the statistics, as one that had to wait */
    bool late;         /* it came back from its last sleep long after its deadline */
    rlk_thread_t self; /* whom an event names */
    struct rlk_holder *holder; /* it was let in by another thread */
    /* of a reader: several may wait for the same */
    struct rlk_hold *hold; /* that asks; NULL: it was let in, or is to ask anew */
    unsigned asked;        /* what had been sent of it when this thread came */
    bool failed;           /* it was not let in, for want of memory */
};

/* What there is of a lock while threads wait for it, or something of it is under way; and
 * of a read-write lock, while it is in use. Guarded by the registry's mu. */
struct rlk_queue {
    struct rlk_lock *lock;
    unsigned users;          /* threads that got the lock, requests about its holds */
    struct rlk_list asks;    /* holds that ask or are queued at the server, by link */
    struct rlk_list tries;   /* holds that ask without queueing, likewise */
    struct rlk_list waiters; /* FIFO of threads, the asker among them */
    struct rlk_list readers; /* threads that wait to read */
    struct rlk_list reads;   /* INSIDE to read, by link */
    struct rlk_list leaving; /* whose release is under way: reads, and what was given up
                                before it was entered */
    struct rlk_hold *shared; /* the one of reads that threads may still join; or NULL */
    struct rlk_waiter *requester; /* the one thread that asks, unless in_order */
    struct rlk_waiter *woken;     /* for an IDLE hold, and on its way */
    struct rlk_timer timer;       /* next refresh */
    bool poll_again;              /* something happened while a refresh was in flight */
    bool round_open;              /* the refresh in flight could not name all that wait */
    bool going_on;       /* a hand-over that stopped half-way is to go on (T11); has a
                            reference */
    bool after_refresh;  /* as the refresh before said, which named those of its round */
    bool op_goes_on;     /* the refresh in flight continues a hand-over */
    bool channel_listed; /* in the registry's list of channel changes */
    bool channel_joined; /* the subscriber's view */
    bool foreign;        /* the newest answer saw a foreign holder */
    uint64_t round;      /* of refreshes that together name all that wait */
    int64_t pause;       /* ns, before a refresh that failed is repeated; 0: it did not */
    struct rlk_cursor after;
    struct rlk_batch refresh;
    struct rlk_batch renewal;     /* of reads */
    unsigned channel_wanted;      /* who wants Redisson's channel joined */
    int trouble;                  /* why the asker has no answer now; 0: it has */
    struct rlk_list channel_link; /* also of those that are kept for reuse */
    int64_t trouble_since;
    int64_t troubled_at;    /* when the last attempt that failed began */
    int64_t reached_at;     /* when the server last said something about it; 0: not yet */
    int64_t sent_to_ask_at; /* when one that waits was last told to ask himself */
    uint64_t messages;      /* WATCH: counts messages, so that none is missed */
};

/* A name in use in this process: one per client, kind and name. Guarded by the registry's
 * mu, but for what is immutable. */
struct rlk_lock {
    /* immutable */
    struct rlk_registry *registry;
    uint32_t hash;
    uint8_t kind;
    uint8_t name_len;

    uint8_t prefer; /* as the newest handle says */
    bool releasing; /* a release is on its way: who waits already goes first */
    struct rlk_lock *chain;
    unsigned refs;
    unsigned going; /* holds that are given back though nobody was in them */
    struct rlk_list idle_link;
    struct rlk_hold *current; /* INSIDE, exclusively */
    struct rlk_queue *queue; /* &rlk_queue_none: nobody waits, and nothing is under way */
    const struct rlk_thread *ending; /* it had the lock, and ends the process: nobody else
                                        of it is let in any more */
    struct rlk_id_key left;          /* the exclusive hold that was left last */
    unsigned entered, entered_alone; /* how often, and that not to read */

    char name[]; /* immutable; NUL-terminated */
};

/* An empty one, to be read by whoever has no other. A lock got by rlk_lock_get_locked has
 * its own until that reference is put. */
extern const struct rlk_queue rlk_queue_none;

static inline bool rlk_lock_has_queue(const struct rlk_lock *lock)
{
    return lock->queue != &rlk_queue_none;
}

/* Functions that end in _locked need the registry's mu. Times are CLOCK_BOOTTIME ns. */

/* The lock of a name, made if need be, with one more reference. NULL: out of memory. */
struct rlk_lock *rlk_lock_get_locked(struct rlk_registry *reg, int kind, const char *name,
                                     size_t name_len);
/* The same if it exists; no reference. */
struct rlk_lock *rlk_lock_find_locked(struct rlk_registry *reg, int kind,
                                      const char *name, size_t name_len);
void rlk_lock_put_locked(struct rlk_lock *lock);
/* One more such reference, of a lock that has its queue. */
void rlk_lock_ref_locked(struct rlk_lock *lock);
/* Gives back a reference by which the lock does not keep its queue. */
void rlk_lock_unref_locked(struct rlk_lock *lock);

/* Its queue, made if need be. False: out of memory. */
bool rlk_queue_need_locked(struct rlk_lock *lock);
/* Whether nothing needs it any more while the lock is in use. */
bool rlk_queue_is_quiet(const struct rlk_lock *lock);
void rlk_queue_end_locked(struct rlk_lock *lock);

/* ---- polls */

/* Arms the refresh timer of a lock with a queued waiter, from an answer (T11). */
void rlk_queue_answered_locked(struct rlk_lock *lock, int64_t sent, int64_t pttl_ms,
                               unsigned flags);
/* The same for the answer to one of several that wait: what is due earlier stays due. */
void rlk_queue_joined_locked(struct rlk_lock *lock, int64_t sent, int64_t pttl_ms,
                             unsigned flags);
/* A hand-over that looked at as many waiters as it may is to go on at once behind
 * `after` (T11). From the head again is always right, only slower. */
void rlk_queue_go_on_locked(struct rlk_lock *lock, struct rlk_cursor after);
/* It was sent. */
void rlk_queue_went_on_locked(struct rlk_lock *lock);
/* The server could not be asked about the lock, or could again: what waiting threads
 * answer for at their deadline. */
void rlk_queue_trouble_locked(struct rlk_lock *lock, int code, int64_t now);
void rlk_queue_reached_locked(struct rlk_lock *lock, int64_t now);
/* Refresh at once. */
void rlk_queue_poll_locked(struct rlk_lock *lock);

/* ---- the local queue */

/* If nobody here holds the lock or asks for it, the first waiter is to ask. Nothing where
 * everybody asks on his own (in_order). */
void rlk_lock_promote_locked(struct rlk_lock *lock);

/* The hold that asks to hold it exclusively, of a lock of which one at most does; or
 * NULL. */
struct rlk_hold *rlk_lock_ask_locked(struct rlk_lock *lock);
/* A hold that asks to read, with a renewed lease, and would do for another thread with an
 * id of this kind; or NULL. */
struct rlk_hold *rlk_lock_read_ask_locked(struct rlk_lock *lock, char letter,
                                          uint32_t grant_ms);
/* Whether this process holds it, in any mode, as far as is known at `now`. Makes those
 * lost whose time is over. */
bool rlk_lock_held_locked(struct rlk_lock *lock, int64_t now);

/* Wakes the threads that watch or ask for this lock. */
void rlk_lock_wake_locked(struct rlk_lock *lock);

/* Wishes to hear Redisson's channel of the lock: one more, one less. */
void rlk_lock_channel_locked(struct rlk_lock *lock, bool want);

#endif
