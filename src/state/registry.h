/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process holds and waits for: the locks of one client, the threads that queue
 * for them, the timers of leases and refreshes. No Redis here, so that it can be tested
 * without one. Callers write intent into it, subscriber and watchdog write facts; whoever
 * changes what another sleeps on wakes it.
 *
 * Locks: functions that end in _locked need `mu` held. mu nests in nothing and nothing
 * nests in it; it is never held across I/O or callbacks. Times are CLOCK_BOOTTIME ns.
 */
#ifndef RLK_REGISTRY_H
#define RLK_REGISTRY_H

#include "base/bell.h"
#include "base/histogram.h"
#include "base/random.h"
#include "state/hold.h"
#include "state/intent.h"
#include "state/thread.h"

/* Counters of one client, relaxed; the order of rlock_stats_t. */
struct rlk_counters {
    _Atomic uint64_t acquisitions, reentries, releases, waits, grants, grants_orphaned,
        local_handovers, timeouts, cancels, round_trips, renewals, renewal_failures,
        refreshes, losses, owners_died, connects, connect_failures, reconnects,
        unknown_outcomes, background_releases, messages, messages_ignored, risks,
        refusals, script_loads, events, outages, outage_ns, burials;
};
#define RLK_COUNT(counter) atomic_fetch_add_explicit(&(counter), 1, memory_order_relaxed)

/* The numbers of the last acquisitions that queued, or that were given up while they
 * might have. By them the grant of one that is long over is told from a forged one: a
 * server that lost data grants what its owner has had or given up. Each is used once. */
enum { RLK_PAST_MAX = 1024 };
struct rlk_past {
    uint64_t numbers[RLK_PAST_MAX]; /* 0: none */
    unsigned next;                  /* the oldest */
};

struct rlk_registry {
    /* immutable after init */
    uint64_t client_number; /* as handles name it: 0 is the default client */
    const char *uuid;
    struct rlk_counters *counters;
    int64_t presence_ns;
    int64_t asked_in_vain_at; /* by a caller, in place of the watchdog; 0: not since the
                               * server was reached; guarded by mu */
    struct rlk_bell *_Atomic watchdog, *_Atomic subscriber; /* of the threads, or NULL */
    _Atomic int64_t heard_at;      /* when the server was last heard, on any connection */
    _Atomic int64_t unanswered_at; /* since then: when the first request left that it has
                                    * not answered; an older time says nothing */
    _Atomic unsigned wakers;       /* those that dropped mu and are yet to ring one */
    _Atomic bool parting;          /* the last of the wakers says so */
    /* Keep the client's memory for a lost hold or a resident holder, and give it back.
     * The second may free the registry: without mu. */
    void (*retain)(struct rlk_registry *), (*release)(struct rlk_registry *);

    struct rlk_mutex mu;      /* protects all below, and the locks, holds and waiters */
    struct rlk_random random; /* of the numbers of acquisitions */
    struct rlk_past past;
    struct rlk_lock **table;
    size_t table_size, lock_count; /* size: a power of two */
    struct rlk_list idle;          /* locks nobody uses, oldest first, kept for reuse */
    size_t idle_count;
    struct rlk_list free_holds;         /* kept for reuse, by link */
    size_t free_hold_count, hold_count; /* hold_count: not free */
    struct rlk_list free_holders;       /* likewise, by hold_link */
    size_t free_holder_count;
    struct rlk_list free_queues; /* likewise, by channel_link */
    size_t free_queue_count;
    struct rlk_list free_passes; /* likewise, by gate_link */
    size_t free_pass_count;
    size_t holds_now, waiters_now;
    size_t background_count;         /* holds that the watchdog still has to release */
    size_t late_count;               /* those of them that are lost */
    struct rlk_cond background_done; /* it, or when parting wakers, came to 0 */
    struct rlk_timers timers;
    int64_t armed; /* by when the watchdog runs again at the latest */
    bool watchdog_dirty, subscriber_dirty;     /* to be woken when mu is dropped */
    struct rlk_holder *first_news, *last_news; /* parts with news, in order */
    struct rlk_list wakes; /* threads to be signalled when mu is dropped */
    struct rlk_list
        sleepers; /* waiters that wait for no lock, but for a deadline or an interrupt */
    struct rlk_list channels;  /* locks whose channel is to be joined or left */
    struct rlk_list fastpaths; /* holds whose gate is open */
    size_t kept_count;         /* holds that are kept though nobody waits here */
    bool interrupted;
    struct rlk_intent_table
        slots;            /* what others are to know of when this process is dead */
    bool buries;          /* deaths of others are looked for (peer_watch.h) while */
    unsigned asks_now;    /* so many holds ask, or threads wait for a lock to be free, */
    unsigned waits_begun; /* and some were told to wait, as of late if this changes */
    bool tried;           /* as of late one was told, who did not want to wait */
    bool looks;           /* they are being looked for */
    struct rlk_timer look_timer; /* a wait that lasts until then has it begin */
    struct rlk_death_event *first_obituary, *last_obituary; /* to be told, in order */
    struct rlk_histogram waited, waited_in_vain, held; /* of calls, and of sections */

    /* leader.h */
    bool mail_open;            /* a waiting thread may read the mailbox */
    bool leader_told;          /* leader_fd was written to */
    atomic_bool leader_called; /* to look for what it waits for; it reads it without mu */
    struct rlk_thread *leader; /* which reads it now; NULL: none */
    _Atomic int leader_fd;     /* an eventfd by which it is called; -1: there is none */
};

int rlk_registry_init(struct rlk_registry *reg);
/* Whether a lock is held or waited for. */
bool rlk_registry_busy_locked(struct rlk_registry *reg);
/* A request that left at `when`, or an attempt to connect that began then, has no answer
 * yet. Locks: takes mu. */
void rlk_registry_unanswered(struct rlk_registry *reg, int64_t when);
/* Since when the server answers nothing; RLK_NEVER: there is no such request. */
int64_t rlk_registry_away_since(const struct rlk_registry *reg);
/* Whether that is so long ago that something must be wrong. */
bool rlk_registry_is_away(const struct rlk_registry *reg, int64_t now);
/* Whether no hold is left whose release is worth waiting for. The lease of a lost one is
 * over by itself: of a server that does not answer nobody waits for its release. */
bool rlk_registry_settled_locked(const struct rlk_registry *reg, int64_t now);
/* From here on nobody rings the bells by which the threads are woken, so that these may
 * end. Waits for those who are about to. */
void rlk_registry_part_from_threads(struct rlk_registry *reg);
/* Drops timers, news and background work; the threads have left. Lost holds stay with
 * their threads. */
void rlk_registry_shut_locked(struct rlk_registry *reg);
/* Frees what is left. No thread may be inside. */
void rlk_registry_destroy(struct rlk_registry *reg);

static inline void rlk_registry_lock(struct rlk_registry *reg)
{
    rlk_sync_mutex_lock(&reg->mu);
}
/* A thread that leads is yet to be told that it was called. */
static inline bool rlk_leader_pending_locked(const struct rlk_registry *reg)
{
    return reg->leader && !reg->leader_told && atomic_load(&reg->leader_called);
}
/* Threads are to be woken, or told that something became due, when mu is dropped. */
static inline bool rlk_registry_tells_locked(const struct rlk_registry *reg)
{
    const struct rlk_timer *first = rlk_timer_first(&reg->timers);
    return (first && first->when < reg->armed) || reg->watchdog_dirty ||
           reg->subscriber_dirty || !rlk_list_empty(&reg->wakes) ||
           rlk_leader_pending_locked(reg);
}
/* Drops mu, then wakes watchdog and subscriber where something became due or is to be
 * told. */
void rlk_registry_unlock(struct rlk_registry *reg);

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

/* ---- polls and mail */

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

/* The server refuses the watchdog for good: whoever is queued asks himself, and is told
 * why. */
void rlk_registry_ask_again_locked(struct rlk_registry *reg, int64_t now);

/* This id is over; it has queued, or may have. */
void rlk_registry_remember_locked(struct rlk_registry *reg, const struct rlk_id *id);

/* Messages of the mailbox, which anybody may have sent. False: no id that this process
 * asks with, holds or still gives back; nothing was changed, and nothing is to be done,
 * or who sends such messages would have us send requests (T7). */

/* A grant. One for what was given up is released at once; so is, once, one for what this
 * process remembers to have queued and has no more (L2). */
bool rlk_registry_grant_locked(struct rlk_registry *reg, const struct rlk_id *id,
                               const char *name, size_t name_len, int64_t ticket,
                               uint64_t token, unsigned flags);

/* Somebody else wants what this id holds, or will have been given by an answer. */
bool rlk_registry_wanted_locked(struct rlk_registry *reg, const struct rlk_id *id,
                                const char *name, size_t name_len);

/* A loss of what it holds, or will have been given by an answer. */
bool rlk_registry_lost_locked(struct rlk_registry *reg, const struct rlk_id *id,
                              const char *name, size_t name_len);

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

/* Every lock with a queued waiter is refreshed at once (after a new subscription). */
void rlk_registry_recheck_locked(struct rlk_registry *reg);
/* Wakes a thread that sleeps with mu, once mu is dropped: woken under it, it would run
 * into it at once. */
void rlk_registry_wake_locked(struct rlk_registry *reg, struct rlk_thread *thread);
/* Wakes the threads of these struct rlk_waiter. */
void rlk_registry_wake_list_locked(struct rlk_registry *reg, struct rlk_list *waiters);
/* Wakes all waiters (interrupt). */
void rlk_registry_wake_all_locked(struct rlk_registry *reg);
/* Wakes the threads that watch or ask for this lock. */
void rlk_lock_wake_locked(struct rlk_lock *lock);

/* Wishes to hear Redisson's channel of the lock: one more, one less. */
void rlk_lock_channel_locked(struct rlk_lock *lock, bool want);

#endif
