/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process knows of one lock: the threads that wait for it, its holds, requested
 * and held, and when the server is asked about it next. Owner: the registry. Everything
 * here is guarded by the registry's mutex.
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
    int64_t since;     /* it waits since then */
    int64_t busy_at;   /* when another thread was last seen inside; 0: never */
    bool passed_on;    /* its handle accepts a lock from another thread of this process */
    bool retakes;      /* it may enter a retained hold */
    bool counted;      /* the statistics count it as waiting */
    bool late;         /* something held it up long beyond its deadline */
    rlk_thread_t self; /* the thread that an event names */
    struct rlk_holder *holder; /* by this another thread let it in */
    /* of a reader: several may wait for the same hold */
    struct rlk_hold *hold; /* REQUESTED; NULL: it was let in, or is to ask again */
    unsigned asked;        /* how many acquires the hold had sent when this thread came */
    bool failed;           /* there was no memory to let it in */
};

/* A lock has a queue while threads wait for it, or while requests about it are under way;
 * a read-write lock, while it is in use. Guarded by the registry's mu. */
struct rlk_queue {
    struct rlk_lock *lock;
    unsigned users;        /* references of rlk_lock_get_locked and rlk_lock_ref_locked */
    struct rlk_list asks;  /* holds that ask or are queued at the server, by link */
    struct rlk_list tries; /* holds that ask without queueing, likewise */
    struct rlk_list waiters; /* threads that wait, first come first; with the requester */
    struct rlk_list readers; /* threads that wait to read */
    struct rlk_list reads;   /* live holds that read, by link */
    struct rlk_list leaving; /* holds that end: reads, and requests that were given up
                                before a thread entered */
    struct rlk_hold *shared; /* the read that threads may still join; or NULL */
    struct rlk_waiter *requester; /* the waiter that asks for all; NULL if in_order */
    struct rlk_waiter *woken;     /* on its way to a RETAINED hold */
    struct rlk_timer timer;       /* next refresh */
    bool poll_again;    /* a reason for another refresh came up while one was in flight */
    bool round_open;    /* the refresh in flight could not name all holds that wait */
    bool going_on;      /* a hand-over that the server stopped half-way is to go on (T11);
                           has a reference */
    bool after_refresh; /* `after` is from the last refresh, which named the holds of its
                           round */
    bool op_goes_on;    /* the refresh in flight continues a hand-over */
    bool channel_listed; /* in the registry's list of channel changes */
    bool channel_joined; /* joined, as far as the subscriber knows */
    bool foreign;        /* the newest answer saw a foreign holder */
    uint64_t round;      /* refreshes of one round together name all holds that wait */
    int64_t pause;       /* ns before a failed refresh is repeated; 0: none failed */
    struct rlk_cursor after;
    struct rlk_batch refresh;
    struct rlk_batch renewal;     /* of reads */
    unsigned channel_wanted;      /* how many waiters want Redisson's channel joined */
    int trouble;                  /* why the requester has no answer now; 0: it has one */
    struct rlk_list channel_link; /* in the registry's channels, or in its free_queues */
    int64_t trouble_since;
    int64_t troubled_at; /* when the last failed attempt began */
    int64_t polled_at;   /* when a reason for a refresh last came up; 0: never */
    int64_t reached_at; /* when the server last said something about the lock; 0: never */
    int64_t sent_to_ask_at; /* when a thread was last chosen to ask in place of the
                               watchdog */
    uint64_t messages;      /* WATCH: counts messages, so that a thread misses none */
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
    bool releasing; /* a release is under way: threads at the server go first */
    struct rlk_lock *chain;
    unsigned refs;
    unsigned returning; /* holds that are given back without an unlock */
    struct rlk_list idle_link;
    struct rlk_hold *current; /* live, exclusive */
    /* &rlk_queue_none: no thread waits, and nothing is under way */
    struct rlk_queue *queue;
    const struct rlk_thread *ending; /* the thread had the lock, and ends the process: no
                                        other thread of it may enter any more */
    struct rlk_id_key left;          /* the exclusive hold that was left last */
    /* how often a hold was entered; of these, not to read */
    unsigned entered, entered_alone;

    char name[]; /* immutable; NUL-terminated */
};

/* Shared empty queue: `lock->queue` points here while the lock needs none. Read-only. A
 * lock from rlk_lock_get_locked has its own queue until that reference is put. */
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
/* One more such reference. The lock has its queue. */
void rlk_lock_ref_locked(struct rlk_lock *lock);
/* Gives back a reference that does not keep the queue. */
void rlk_lock_unref_locked(struct rlk_lock *lock);

/* Makes the lock's queue, if there is none. False: out of memory. */
bool rlk_queue_make_locked(struct rlk_lock *lock);
static inline bool rlk_queue_need_locked(struct rlk_lock *lock)
{
    return rlk_lock_has_queue(lock) || rlk_queue_make_locked(lock);
}
/* Whether nothing needs the queue any more. */
bool rlk_queue_is_quiet(const struct rlk_lock *lock);
void rlk_queue_end_locked(struct rlk_lock *lock);

/* ---- polls */

/* Arms the refresh timer of a lock with a queued waiter, from an answer (T11). */
void rlk_queue_answered_locked(struct rlk_lock *lock, int64_t sent, int64_t pttl_ms,
                               unsigned flags);
/* The same for the answer to one of several holds that wait: an earlier time stays. */
void rlk_queue_joined_locked(struct rlk_lock *lock, int64_t sent, int64_t pttl_ms,
                             unsigned flags);
/* The server stopped a hand-over after as many waiters as it may look at. The next
 * request is to go on at once behind `after` (T11). To begin at the head again would be
 * right, only slower. */
void rlk_queue_go_on_locked(struct rlk_lock *lock, struct rlk_cursor after);
/* The request that goes on was sent. */
void rlk_queue_went_on_locked(struct rlk_lock *lock);
/* The server could not be asked about the lock at `now`, or answered `at` a time: waiting
 * threads return accordingly at their deadline. An answer from before the newest trouble
 * does not end it. */
void rlk_queue_trouble_locked(struct rlk_lock *lock, int code, int64_t now);
void rlk_queue_reached_locked(struct rlk_lock *lock, int64_t at);
/* The lock is refreshed at once. */
void rlk_queue_poll_locked(struct rlk_lock *lock);
/* The server has queued a hold by a request that was sent at `sent`. A refresh did not
 * name the hold before: if a reason came up since, the lock is refreshed again. */
void rlk_queue_poll_missed_locked(struct rlk_lock *lock, int64_t sent);

/* ---- the local queue */

/* If the process neither holds the lock nor asks for it, the first waiter becomes the
 * requester. Does nothing where each thread is a requester (in_order). */
void rlk_lock_promote_locked(struct rlk_lock *lock);

/* The hold that asks for exclusive access; or NULL. For locks where at most one does. */
struct rlk_hold *rlk_lock_ask_locked(struct rlk_lock *lock);
/* A hold that asks to read, with a renewed lease, and suits a thread with an id of this
 * kind; or NULL. */
struct rlk_hold *rlk_lock_read_ask_locked(struct rlk_lock *lock, char letter,
                                          uint32_t grant_ms);
/* Whether this process holds the lock at `now`, in any mode. Closes fast paths, and makes
 * holds LOST whose D has passed. */
bool rlk_lock_held_locked(struct rlk_lock *lock, int64_t now);

/* Wakes the threads that watch or ask for this lock. */
void rlk_lock_wake_locked(struct rlk_lock *lock);

/* One waiter more, or one less, wants to hear Redisson's channel of the lock. */
void rlk_lock_channel_locked(struct rlk_lock *lock, bool want);
/* It has to be joined again, at another server. */
void rlk_lock_channel_left_locked(struct rlk_lock *lock);

#endif
