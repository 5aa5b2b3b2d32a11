/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client's threads hold and wait for: its locks, the threads that queue for them,
 * the timers of leases and refreshes. It has no Redis in it, so that tests need none.
 * Callers write what they want, the subscriber and the watchdog write facts. Code that
 * changes what a thread sleeps on wakes that thread.
 *
 * Locks: functions that end in _locked need `mu` held. mu nests in nothing and nothing
 * nests in it; it is never held across I/O or callbacks. Times are CLOCK_BOOTTIME ns.
 */
#ifndef RLK_REGISTRY_H
#define RLK_REGISTRY_H

#include "base/bell.h"
#include "base/histogram.h"
#include "base/random.h"
#include "state/intent.h"
#include "state/lock.h"
#include "state/past.h"
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

struct rlk_registry {
    /* immutable after init */
    uint64_t client_number; /* as in handles: 0 is the default client */
    const char *uuid;
    struct rlk_counters *counters;
    int64_t presence_ns;
    int64_t skew_ns;      /* taken off every D (P17); */
    bool skew_is_initial; /* nobody has set it: less is taken off a short lease */
    /* when a caller that asked in place of the watchdog last reached no server; 0: a
     * server was reached since. Guarded by mu */
    int64_t asked_in_vain_at;
    struct rlk_bell *_Atomic watchdog,
        *_Atomic subscriber;       /* how to wake the two threads; or NULL */
    _Atomic int64_t heard_at;      /* when the server was last heard, on any connection */
    _Atomic int64_t unanswered_at; /* when the first request left that has no answer; a
                                    * time before heard_at says nothing */
    _Atomic unsigned wakers; /* threads that dropped mu and are still to ring a bell */
    _Atomic bool parting;    /* the last of the wakers signals background_done */
    /* retain keeps the client's memory for a lost hold or a resident holder; release
     * gives it up. release may free the registry: call it without mu. */
    void (*retain)(struct rlk_registry *), (*release)(struct rlk_registry *);

    struct rlk_mutex mu;      /* protects all below, and the locks, holds and waiters */
    struct rlk_random random; /* of the numbers of acquisitions */
    struct rlk_past past;
    struct rlk_lock **table;
    size_t table_size, lock_count; /* size: a power of two */
    struct rlk_list idle;          /* unused locks, oldest first, for reuse */
    size_t idle_count;
    struct rlk_list free_holds;         /* for reuse, by link */
    size_t free_hold_count, hold_count; /* hold_count: not free */
    struct rlk_list free_holders;       /* likewise, by hold_link */
    size_t free_holder_count;
    struct rlk_list free_queues; /* likewise, by channel_link */
    size_t free_queue_count;
    struct rlk_list free_passes; /* likewise, by fastpath_link */
    size_t free_pass_count;
    size_t holds_now, waiters_now;
    size_t background_count; /* holds that the watchdog still has to release */
    size_t late_count;       /* of these, the lost ones */
    size_t denied_count;     /* of these, those that an ACL refuses to release */
    /* Signalled when all holds in the background are denied ones; or, when parting, no
     * waker is left. */
    struct rlk_cond background_done;
    struct rlk_timers timers;
    int64_t armed; /* when the watchdog runs again at the latest */
    bool watchdog_dirty, subscriber_dirty;     /* wake them when mu is dropped */
    struct rlk_holder *first_news, *last_news; /* holders with news, in order */
    struct rlk_list wakes; /* threads that are signalled when mu is dropped */
    /* threads that wait for no lock, but for a deadline or an interrupt */
    struct rlk_list sleepers;
    struct rlk_list channels;  /* locks whose channel is to be joined or left */
    struct rlk_list fastpaths; /* hand-off states whose fast path is open */
    size_t retained_count;     /* holds that are retained for a time */
    bool interrupted;
    struct rlk_intent_table slots; /* what other processes find when this one is dead */
    bool recovers;     /* the client looks for dead processes while a wait lasts
                          (peer_watch.h) */
    unsigned asks_now; /* holds that ask, and threads that wait for a free lock */
    /* counts waits that an answer of the server began: a change means a wait lately */
    unsigned waits_begun;
    bool tried;                  /* a try lately found the lock busy */
    bool looks;                  /* the client is looking for dead processes now */
    struct rlk_timer look_timer; /* the look begins if a wait lasts until then */
    struct rlk_death_event *first_death, *last_death; /* events to report, in order */
    /* durations of calls, and of sections */
    struct rlk_histogram waited, waited_in_vain, held;

    /* leader.h */
    bool mail_open;   /* a waiting thread may read the mailbox */
    bool leader_told; /* leader_fd was written to */
    /* the leader is to check what it waits for; read without mu */
    atomic_bool leader_called;
    struct rlk_thread *leader; /* it reads the mailbox now; NULL: none */
    _Atomic int leader_fd;     /* an eventfd that calls the leader; -1: there is none */
};

int rlk_registry_init(struct rlk_registry *reg);
/* Whether a lock is held or waited for. */
bool rlk_registry_busy_locked(struct rlk_registry *reg);
/* A request that left at `when`, or an attempt to connect that began then, has no answer
 * yet. Locks: takes mu. */
void rlk_registry_unanswered(struct rlk_registry *reg, int64_t when);
/* Since when the server answers nothing; RLK_NEVER: no request is unanswered. */
int64_t rlk_registry_away_since(const struct rlk_registry *reg);
/* Whether the server has answered nothing for so long that something must be wrong. */
bool rlk_registry_is_away(const struct rlk_registry *reg, int64_t now);
/* Whether no hold is left whose release is worth waiting for. A lost hold's lease ends by
 * itself: if the server does not answer, that hold's release is not waited for. */
bool rlk_registry_settled_locked(const struct rlk_registry *reg, int64_t now);
/* From here on no thread rings the bells of the watchdog and the subscriber, so that both
 * may end. Waits for threads that are about to ring one. */
void rlk_registry_part_from_threads(struct rlk_registry *reg);
/* Drops timers, news and background work. The client's own threads have ended. Lost holds
 * stay with their threads. */
void rlk_registry_shut_locked(struct rlk_registry *reg);
/* Frees what is left. No thread may be inside. */
void rlk_registry_destroy(struct rlk_registry *reg);

static inline void rlk_registry_lock(struct rlk_registry *reg)
{
    rlk_sync_mutex_lock(&reg->mu);
}
/* Whether the leader was called, and its eventfd is still to say so. */
static inline bool rlk_leader_pending_locked(const struct rlk_registry *reg)
{
    return reg->leader && !reg->leader_told && atomic_load(&reg->leader_called);
}
/* Whether threads are to be woken when mu is dropped. */
static inline bool rlk_registry_tells_locked(const struct rlk_registry *reg)
{
    const struct rlk_timer *first = rlk_timer_first(&reg->timers);
    return (first && first->when < reg->armed) || reg->watchdog_dirty ||
           reg->subscriber_dirty || !rlk_list_empty(&reg->wakes) ||
           rlk_leader_pending_locked(reg);
}
/* Drops mu, then wakes the threads of `wakes`; and the watchdog, the subscriber and the
 * leader, if there is something for them. */
void rlk_registry_unlock_and_tell(struct rlk_registry *reg);
/* The same, where there seldom is anything to tell. */
static inline void rlk_registry_unlock(struct rlk_registry *reg)
{
    if (rlk_registry_tells_locked(reg))
        rlk_registry_unlock_and_tell(reg);
    else
        rlk_sync_mutex_unlock(&reg->mu);
}

/* ---- polls and mail */

/* The server refuses the watchdog for good: each queued thread asks the server itself,
 * and gets the reason. */
void rlk_registry_ask_again_locked(struct rlk_registry *reg, int64_t now);

/* Another server is the master: it is asked about every hold at once. If there are many,
 * the questions are spread over a third of the TTL of a grant, the shortest lease first.
 */
void rlk_registry_doubt_all_locked(struct rlk_registry *reg, int64_t now);
/* The same for some locks: those for which `is` is true. */
typedef bool (*rlk_registry_is)(const struct rlk_lock *lock, void *arg);
void rlk_registry_doubt_some_locked(struct rlk_registry *reg, int64_t now,
                                    rlk_registry_is is, void *arg);

/* Messages of the mailbox. Any client of the server may have sent them. False: the
 * process neither asks with this id, nor holds it, nor gives it back. Then nothing
 * changes and nothing is sent: otherwise a sender of such messages could cause requests
 * (T7). */

/* A grant. If its id was given up, it is released at once. A grant for an id that this
 * process had queued, and has no more, is released once, too (L2). */
bool rlk_registry_grant_locked(struct rlk_registry *reg, const struct rlk_id *id,
                               const char *name, size_t name_len, int64_t ticket,
                               uint64_t token, unsigned flags);

/* A recall: another process wants the lock that this id holds, or will hold by an answer
 * under way. */
bool rlk_registry_recalled_locked(struct rlk_registry *reg, const struct rlk_id *id,
                                  const char *name, size_t name_len);

/* A loss of the lock that this id holds, or will hold by an answer under way. */
bool rlk_registry_lost_locked(struct rlk_registry *reg, const struct rlk_id *id,
                              const char *name, size_t name_len);

/* Every lock with a queued waiter is refreshed at once (after a new subscription). */
void rlk_registry_recheck_locked(struct rlk_registry *reg);
void rlk_registry_recheck_some_locked(struct rlk_registry *reg, rlk_registry_is is,
                                      void *arg);
/* Wakes a thread that sleeps with mu, when mu is dropped: if it were woken under mu, it
 * would run into mu at once. */
void rlk_registry_wake_locked(struct rlk_registry *reg, struct rlk_thread *thread);
/* Wakes the threads of these struct rlk_waiter. */
void rlk_registry_wake_list_locked(struct rlk_registry *reg, struct rlk_list *waiters);
/* Wakes all waiters (interrupt). */
void rlk_registry_wake_all_locked(struct rlk_registry *reg);
#endif
