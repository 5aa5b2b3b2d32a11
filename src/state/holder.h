/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's share in a hold; see hold.h. */
#ifndef RLK_HOLDER_H
#define RLK_HOLDER_H

#include "base/list.h"
#include "base/recursion.h"
#include "base/sync.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rlk_hold;
struct rlk_registry;
struct rlk_thread;

/* What an event callback is still to be told about a hold. */
enum rlk_news {
    RLK_NEWS_AT_RISK = 1,
    RLK_NEWS_SAFE = 2,
    RLK_NEWS_LOST = 4,
    RLK_NEWS_DIED = 8
};

/* What one thread has of a hold that it entered. Has a reference to it. */
struct rlk_holder {
    struct rlk_hold *hold;
    struct rlk_list hold_link;    /* in hold->parts or residents; guarded by mu */
    struct rlk_holder *next_news; /* in the registry's news; guarded by mu */
    bool fencing;                 /* asked for a token */
    bool claimed;     /* its thread is in, or knows that it was; guarded by mu */
    bool resident;    /* its thread is outside (fastpath.h); guarded by mu */
    bool fast;        /* it is owner->fast; guarded by mu */
    bool keeps;       /* its handle keeps the lock; the owner's */
    bool ended;       /* its section is over; guarded by mu */
    uint8_t news;     /* enum rlk_news; guarded by mu */
    bool news_awaits; /* it is in the registry's news, with a reference; guarded by mu */
    _Atomic uint32_t reentries; /* counted by the owner alone */
    uint32_t counted_again;     /* of these, in the statistics; guarded by mu */
    _Atomic int64_t since; /* its thread is in from; written by the thread, which may come
                              by the gate. Ended: for how long it was in, ns */

    struct rlk_thread *owner; /* NULL: it has left. The rest is the owner's */
    rlk_thread_t owner_thread;
    struct rlk_list thread_link;
    struct rlk_holder *next_of_thread; /* in the same bucket (thread_holds.h) */
    struct rlk_recursion levels;       /* writes alone of a lock that has one mode */
};

/* Functions that end in _locked need the registry's mu. Times are CLOCK_BOOTTIME ns. */

/* Another thread enters a hold that reads and is INSIDE. NULL: out of memory. The thread
 * links the part into its own list. */
struct rlk_holder *rlk_holder_join_locked(struct rlk_hold *hold, bool fencing);

/* The calling thread has taken the lock once. Of a read-write lock it says itself how. */
void rlk_holder_first_level(struct rlk_holder *holder);
/* An empty one of a hold. */
void rlk_holder_init(struct rlk_holder *holder, struct rlk_hold *hold);
/* The part is the calling thread's. */
void rlk_holder_own_locked(struct rlk_holder *holder, struct rlk_thread *thread,
                           int64_t now);
/* Its section ends, however: it goes into the statistics, and news tell of it as over. */
void rlk_holder_end_section_locked(struct rlk_holder *holder, int64_t now);

/* What its thread counted without the registry's mutex goes into the statistics. */
void rlk_holder_count_locked(struct rlk_holder *holder);
/* A thread has no part in the hold any more. The part is gone, and the hold may be. */
void rlk_holder_leave_locked(struct rlk_holder *holder);
/* Tells the event callback of one. */
void rlk_holder_news_locked(struct rlk_holder *holder, unsigned news);
/* The next of them is being told. */
struct rlk_holder *rlk_holder_next_news_locked(struct rlk_registry *reg);
void rlk_holder_told_locked(struct rlk_holder *holder);

#endif
