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

/* News of a hold that the event callback has not received yet. */
enum rlk_news {
    RLK_NEWS_AT_RISK = 1,
    RLK_NEWS_SAFE = 2,
    RLK_NEWS_LOST = 4,
    RLK_NEWS_DIED = 8
};

/* A holder has a reference to its hold. The first holder of a hold is a part of it;
 * others are allocated. */
struct rlk_holder {
    struct rlk_hold *hold;
    struct rlk_list hold_link;    /* in hold->holders or pass->residents; guarded by mu */
    struct rlk_holder *next_news; /* in the registry's news; guarded by mu */
    bool fencing;                 /* its thread asked for a token */
    bool claimed;  /* its thread is inside, or was at the loss, and knows it; with mu */
    bool resident; /* its thread is outside (fastpath.h); guarded by mu */
    bool fast;     /* it is owner->fast; guarded by mu */
    bool retains;  /* its handle retains the lock; the owner's */
    bool ended;    /* its section is over; guarded by mu */
    uint8_t news;  /* enum rlk_news; guarded by mu */
    bool news_awaits; /* it is in the registry's news, with a reference; guarded by mu */
    _Atomic uint32_t reentries; /* counted by the owner alone */
    uint32_t counted_again; /* of these, how many the statistics have; guarded by mu */
    union {
        _Atomic int64_t since;  /* when the section began; written by the thread, also on
                                   the fast path */
        _Atomic int64_t lasted; /* ended: how long the section lasted, ns */
    };

    struct rlk_thread *owner; /* NULL: it has left. Only the owner uses what follows */
    rlk_thread_t owner_thread;
    struct rlk_list thread_link;
    struct rlk_holder *next_of_thread; /* in the same bucket (thread_holds.h) */
    struct rlk_recursion levels;       /* of a lock that has one mode: only writes */
};

/* Functions that end in _locked need the registry's mu. Times are CLOCK_BOOTTIME ns. */

/* Adds a holder to a live hold. NULL: out of memory. rlk_holder_own_locked gives it to
 * its thread. */
struct rlk_holder *rlk_holder_join_locked(struct rlk_hold *hold, bool fencing);

/* The holder has one level. The caller sets the level of a read-write lock itself. */
void rlk_holder_first_level(struct rlk_holder *holder);
/* An empty holder of the hold. */
void rlk_holder_init(struct rlk_holder *holder, struct rlk_hold *hold);
/* The calling thread is inside by this holder. */
void rlk_holder_own_locked(struct rlk_holder *holder, struct rlk_thread *thread,
                           int64_t now);
/* The section ends, for any reason: adds it to the statistics; news say that it is
 * over. */
void rlk_holder_end_section_locked(struct rlk_holder *holder, int64_t now);

/* Adds to the statistics what the holder's thread counted without the registry's
 * mutex. */
void rlk_holder_count_locked(struct rlk_holder *holder);
/* The holder's thread has left. The holder is gone then, and perhaps its hold. */
void rlk_holder_leave_locked(struct rlk_holder *holder);
/* Adds news for the event callback. */
void rlk_holder_news_locked(struct rlk_holder *holder, unsigned news);
/* Takes the next holder with news, or NULL. The caller passes the news on, and then calls
 * rlk_holder_told_locked. */
struct rlk_holder *rlk_holder_next_news_locked(struct rlk_registry *reg);
void rlk_holder_told_locked(struct rlk_holder *holder);

#endif
