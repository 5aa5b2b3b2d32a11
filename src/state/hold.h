/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hold: one acquisition of a lock at the server, with an id, a lease end D, a token and
 * a state. Which threads are inside, and how often, is local. Holders record it
 * (holder.h), because a hold may come to a thread that has not asked for it, and threads
 * that read at the same time share one hold.
 *
 * A hold is a state machine; doc/design/client.md, "States of a hold", has its table. All
 * changes of a state happen in hold.c, under the registry's mutex: one critical section
 * looks, chooses and changes (H1). The other files of the hold call it: hold_lease.c
 * (what is due), hold_facts.c (what the server says of a live hold), hold_ask.c (before a
 * thread enters), hold_enter.c, hold_end.c. None of them knows the hand-off, shared reads
 * or messages, which use holds.
 *
 * Owner: its references. The lock's lists, each thread inside, each request in flight and
 * the watchdog's background work have a reference each; the last one frees the hold.
 */
#ifndef RLK_HOLD_H
#define RLK_HOLD_H

#include "base/list.h"
#include "base/timer.h"
#include "state/holder.h"
#include "state/kind.h"
#include "state/op.h"
#include "state/pass.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rlk_lock;
struct rlk_registry;
struct rlk_thread;

enum rlk_hold_state {
    RLK_HOLD_REQUESTED,  /* a thread asks the server, or waits in the server's queue */
    RLK_HOLD_HELD,       /* a thread is inside, or on the way in */
    RLK_HOLD_RETAINED,   /* no thread is inside, but perhaps one by an open fast path */
    RLK_HOLD_CANCELLING, /* given up before a thread entered */
    RLK_HOLD_RELEASING,  /* every thread has left: a release is under way, or due */
    RLK_HOLD_LOST        /* the lease ended, or the server says that it is not ours */
};

/* What moves a hold from one state to another: the table is in hold.c. */
enum rlk_hold_event {
    RLK_ON_ENTER,   /* the first thread enters a confirmed or believed hold */
    RLK_ON_CANCEL,  /* the thread that asked sends a cancel */
    RLK_ON_YOURS,   /* that cancel found the hold granted */
    RLK_ON_GIVE_UP, /* the watchdog is to withdraw what the server may have; or nothing
                       was sent */
    RLK_ON_RETAIN,  /* the last thread has left, and the process keeps the hold */
    RLK_ON_TAKE,    /* a thread enters a retained hold, or is about to */
    RLK_ON_FOUND,   /* the fast path was closed with a thread inside */
    RLK_ON_RELEASE, /* the hold is to be given back */
    RLK_ON_LOSS     /* the lease is over */
};

/* How long threads of a process may pass a lock on among themselves while other processes
 * wait for it at the server. 0 in `ns` or `count`: not at all. */
struct rlk_handoff {
    int64_t ns;
    int64_t count;     /* sections */
    int64_t retain_ns; /* how long the process retains an unlocked hold; 0: it does not */
    bool hears;        /* the mailbox is subscribed */
};

/* Why a hold was lost; loss_reason.c has the texts. */
enum rlk_loss {
    RLK_LOSS_NONE,
    RLK_LOSS_ENDED,
    RLK_LOSS_FIXED_ENDED,
    RLK_LOSS_UNCONFIRMED,
    RLK_LOSS_UNREACHABLE,
    RLK_LOSS_REFUSED,
    RLK_LOSS_STOOD_STILL,
    RLK_LOSS_FORCED,
    RLK_LOSS_NOT_OURS,
    RLK_LOSS_ANOTHERS,
    RLK_LOSS_UNREADABLE,
    RLK_LOSS_REPLICAS
};

/* REQUESTED, CANCELLING: what the process knows of the request. */
struct rlk_hold_request {
    int64_t ticket;       /* of the newest confirmed "queued" answer; 0: none */
    int64_t ticket_sent;  /* when that request left */
    int64_t asks_since;   /* when need_ask was set on a queued hold; 0: it was not */
    int64_t grant_ticket; /* of a grant that was read and is not believed yet; 0: none */
    uint64_t grant_token;
    unsigned grant_flags;
    unsigned flags;        /* of the newest grant or answer: who waits at the server */
    unsigned asked;        /* how many acquires were sent */
    unsigned moves;        /* the count of moves at that server: of the newest confirmed
                              "queued" or "held" answer */
    unsigned open_to;      /* granted: the threads that came before this acquire left may
                              enter, too; a writer may be ahead of later ones */
    unsigned open_most;    /* with replicas: the limit of open_to, set when the server may
                              first have given the lock; 0: there is none */
    unsigned entered_then; /* granted: the lock's count of entries at the grant */
    bool need_ask : 1;     /* the requester is to send an acquire */
    bool granted : 1;  /* the server has it until D, by a believed grant or an answer */
    bool unproven : 1; /* granted, by a message or a refresh: no replica has been asked */
    bool grant_died : 1;    /* the grant of grant_ticket says that the owner died */
    bool unrecoverable : 1; /* the server says that the lock is not recoverable */
    bool try_once : 1; /* the hold asks without queueing; it is in the lock's tries */
    uint64_t round;    /* of the newest refresh that named the hold */
    struct rlk_thread *requester; /* facts about the hold wake this thread; NULL: none */
};

struct rlk_hold {
    struct rlk_lock *lock; /* immutable */

    /* Guarded by the registry's mu. If a comment names states, its field is valid only in
     * these. */
    struct rlk_id id; /* changed only by a rename; and `id.slot` by intent.c */
    unsigned refs;
    /* Bit-fields are never written without mu: other threads may write their
     * neighbours. */
    struct {
        bool doubted : 1; /* a message says that the hold is lost: the server is asked */
        bool reported_lost : 1; /* a message says that the hold was taken away */
        bool at_risk : 1;       /* news of the risk was queued for the event callback */
        bool refused : 1;       /* the newest renewal was refused for good */
        bool unreadable : 1; /* no lock script gives the answer that this renewal got */
        bool short_ttl : 1;  /* the server's TTL is that of a grant, not yet the lease */
        bool few_replicas : 1; /* too few replicas confirmed the newest renewal */
    } lease;
    struct {
        bool contended : 1; /* the server has said that somebody else wants the lock */
        bool ask : 1;       /* the server is to be asked who else wants the lock */
        bool recall : 1;    /* the server will send a recall to this hold */
    } contention;
    struct {
        bool ask : 1;        /* the next such request also asks for a block of tokens */
        bool asked : 1;      /* the renewal in flight asks for a block */
        bool by_message : 1; /* the token came by a message; no answer has confirmed it */
    } tokens;
    struct {
        bool asked : 1;     /* an acquire of this id may have reached the server */
        bool queued : 1;    /* this id has queued, or was given up when it might have */
        bool unknown : 1;   /* an acquire of this id had an unknown outcome: a release
                               leaves a marker (T3) */
        bool downgrade : 1; /* a downgrade is to be sent, or its answer is due */
        bool with_text : 1; /* the watchdog's next request brings the script's text */
        bool alone : 1;     /* ... names the lock's own key and no other (P20) */
        bool asking : 1;    /* ... goes to the node that is getting the hash slot */
    } server;               /* what was sent to the server, and is still to be sent */
    uint8_t prefer;         /* RLOCK_RWLOCK_PREFER_*, PHASE_FAIR */
    /* A thread inside may read these without mu, and write those that no other thread
     * writes. */
    bool fixed;   /* the lease is never renewed */
    bool reading; /* a read, or a request to read */
    struct {
        bool owner_died; /* the grant said that the owner died, and the thread inside has
                            not said that the state is consistent */
        bool owner_ended : 1;  /* the thread ended while inside; with mu */
        bool mark_cleared : 1; /* RETAINED: the server knows that no thread is inside
                                  (K11); with mu */
    } robust;
    /* enum rlk_hold_state; changed by rlk_hold_change_locked alone */
    _Atomic uint8_t state;
    uint16_t backoff_ms;
    int lease_ms;
    union { /* by mode */
        struct {
            unsigned joins; /* requests under way to share the hold: each counts as a
                               reader (W22) */
        } read;
        struct {
            uint32_t mark; /* robust: the number of its mark at the server */
        } exclusive;
    };
    union { /* by state; `ending` starts as zeros */
        struct {
            int64_t from;      /* hand-offs are counted since then */
            unsigned sections; /* that began since then */
        } budget;              /* HELD, RETAINED */
        struct {
            int64_t give_up_at; /* when background tries end; 0: not in the background */
            uint32_t cause_ms;  /* LOST: how long the cause had lasted */
            uint8_t loss;       /* LOST: enum rlk_loss */
            bool release_unknown; /* a release of this id had an unknown outcome (T9). The
                                     releasing thread writes this without mu */
            bool release_sent : 1; /* LOST: its one release was sent */
            bool no_marker : 1;    /* no acquire of this id can be under way */
            bool counted : 1;      /* in lock->returning */
            bool insists : 1;      /* a release that an ACL refuses is repeated, slowly */
            bool denied : 1; /* an ACL refuses the release, and no thread waits for it */
            bool whole : 1; /* LOST while no thread was inside: every section was unlocked
                             */
        } ending;           /* CANCELLING, RELEASING, LOST */
    };
    int64_t ask_after;  /* live: no request about contention before this */
    int64_t renew_at;   /* when the watchdog sends the next renewal or release */
    int64_t since;      /* when the first thread entered; 0: none has */
    int64_t proof_sent; /* when the newest request left after which the server is known to
                           have had the lock for this hold */
    /* REQUESTED: in the queue's `asks` or `tries`. A live read: in its `reads`.
     * CANCELLING, or a read that is RELEASING or LOST: in its `leaving`. Unused: in the
     * registry's free_holds. */
    struct rlk_list link;
    struct rlk_list holders; /* live, LOST: of the threads inside, by hold_link */
    struct rlk_timer timer;
    struct rlk_op *op; /* the request in flight; of a read, perhaps a renewal of several
                          holds; NULL: none */
    struct rlk_pass *pass; /* &rlk_hold_no_pass: it was not passed on or retained */

    /* atomic: threads inside read these without mu. Written under mu, but a thread that
     * enters by the fast path counts `token` up without mu */
    _Atomic int64_t end;    /* D */
    _Atomic int64_t risk;   /* the lease is at risk from then on */
    _Atomic uint64_t token; /* of the present section, or of the last one */

    union {                              /* by state */
        struct rlk_hold_request request; /* REQUESTED, CANCELLING */
        struct rlk_holder own; /* HELD, RETAINED, RELEASING, LOST: the first holder */
    };
};

/* Whether the process believes that the server has the lock for this hold: HELD or
 * RETAINED. One atomic load, which a thread with a holder may do without mu. */
static inline bool rlk_hold_is_live(const struct rlk_hold *hold)
{
    return hold->state - (unsigned)RLK_HOLD_HELD <= RLK_HOLD_RETAINED - RLK_HOLD_HELD;
}

/* Whether no thread is inside a live hold. Call with the fast path closed. While it is
 * open, the state is RETAINED, and rlk_fastpath_is_empty looks at the word, too. */
static inline bool rlk_hold_is_retained(const struct rlk_hold *hold)
{
    return hold->state == RLK_HOLD_RETAINED;
}

/* Whether the lock's own key says all about the hold, as far as is known: its lease can
 * be raised with this key alone (P20). The ends of readers are in another one. */
static inline bool rlk_hold_may_raise_alone(const struct rlk_hold *hold)
{
    return !hold->reading || hold->server.downgrade;
}
/* Whether the hold can be released with one key: the lock's own, or that of the readers,
 * but it must be known with which. Not with a marker, nor with the mark of a robust lock,
 * which are in other keys. */
static inline bool rlk_hold_may_end_alone(const struct rlk_hold *hold)
{
    return !hold->server.downgrade && !rlk_id_robust(&hold->id);
}

/* Whether the watchdog has the hold's last reference, and sends its release: CANCELLING,
 * RELEASING or LOST, counted in the registry's background_count. */
static inline bool rlk_hold_is_background(const struct rlk_hold *hold)
{
    return hold->state >= RLK_HOLD_CANCELLING && hold->ending.give_up_at != 0;
}

/* The number of the mark that a renewal sends for the thread inside; 0: it sends none,
 * because the first numbers are the grant's (K11). */
static inline int64_t rlk_hold_mark(const struct rlk_hold *hold)
{
    return !hold->reading && hold->exclusive.mark > 2 ? (int64_t)hold->exclusive.mark : 0;
}

/* Whether the flags of an answer about the hold say that somebody else wants the lock;
 * and whether they say that the server will send a recall. */
static inline bool rlk_hold_says_contended(const struct rlk_hold *hold, unsigned flags)
{
    return (flags & (hold->reading ? RLK_READ_OTHERS : RLK_OTHERS)) != 0;
}
static inline bool rlk_hold_says_recall(const struct rlk_hold *hold, unsigned flags)
{
    return (flags & RLK_WILL_TELL) && (!hold->reading || rlk_id_tells(&hold->id));
}

/* Whether its sections have fencing tokens. */
static inline bool rlk_hold_is_fenced(const struct rlk_hold *hold)
{
    return hold->id.letter >= 'A' && hold->id.letter <= 'Z';
}

/* Whether the tokens of its sections come from blocks, after the grant's token (H11). So
 * it is for the exclusive holds that threads pass on: of mutexes, and write holds. */
static inline bool rlk_hold_has_block(const struct rlk_hold *hold)
{
    return hold->id.letter == 'M' || (hold->id.letter == 'W' && !hold->reading);
}

/* The last token of the block that sections take their tokens from. */
static inline uint64_t rlk_hold_token_end(const struct rlk_hold *hold)
{
    return hold->pass != &rlk_hold_no_pass ? hold->pass->token_end : hold->token;
}

/* Functions that end in _locked need the registry's mu. Times are CLOCK_BOOTTIME ns. */

/* ---- hold.c */

/* The event moves the hold to the state that the table in hold.c says. */
void rlk_hold_change_locked(struct rlk_hold *hold, enum rlk_hold_event event);
/* Whether the table has the event for the hold's state. */
bool rlk_hold_can_change(const struct rlk_hold *hold, enum rlk_hold_event event);

/* A fresh hold, REQUESTED, with one reference. NULL: out of memory. */
struct rlk_hold *rlk_hold_new_locked(struct rlk_lock *lock, struct rlk_thread *thread,
                                     char letter, uint32_t grant_ms);
void rlk_hold_ref_locked(struct rlk_hold *hold);
void rlk_hold_put_locked(struct rlk_hold *hold);
/* A new id for a hold that was refused under the old one. */
void rlk_hold_rename_locked(struct rlk_hold *hold, struct rlk_thread *thread);
/* REQUESTED: drops what is known of the request. The requester is to ask the server
 * again. */
void rlk_hold_ask_anew_locked(struct rlk_hold *hold);
/* Makes its hand-off state, if it has none yet. False: out of memory. */
bool rlk_hold_pass_locked(struct rlk_hold *hold);
/* RETAINED: the process retains the hold for `retain_ns`; 0: not for a time. */
void rlk_hold_retain_locked(struct rlk_hold *hold, int64_t retain_ns);
/* Whether no thread is inside, or on the way in. */
bool rlk_hold_unused_locked(const struct rlk_hold *hold);

/* ---- hold_lease.c: when something is due for a live hold */

/* D of a lease of `ms` whose request left at `sent` (S1). What clocks may be apart (P17)
 * is not taken off yet. */
int64_t rlk_hold_lease_end(int64_t sent, int64_t ms);
/* Whether a renewal may be sent. A read waits while a renewal of its lock's reads is in
 * flight: a renewal names many reads, and another one for the rest follows. */
bool rlk_hold_renewable_locked(const struct rlk_hold *hold);
/* When the server is to be asked who else wants the hold, whatever the lease says (H7,
 * H8); RLK_NEVER: it need not be. */
int64_t rlk_hold_contention_due(const struct rlk_hold *hold);
/* Until when the process retains a hold that no thread uses (K9); RLK_NEVER: it is not
 * retained for a time. */
int64_t rlk_hold_retained_until(const struct rlk_hold *hold);
/* Arms the timer for what comes first: a renewal, a question about contention, the end of
 * the retention, the risk, or D. */
void rlk_hold_schedule_locked(struct rlk_hold *hold);

/* ---- hold_facts.c: what the server and messages say of a live hold */

/* The lease is confirmed, also by replicas (P12): `ms` from `sent`. Sets D, the time of
 * the next renewal, and the time of the risk. D rises only while it has not passed (T6).
 */
void rlk_hold_confirm_locked(struct rlk_hold *hold, int64_t sent, int64_t ms);
/* The same for a lease that its thread has changed: D may fall. */
void rlk_hold_relet_locked(struct rlk_hold *hold, int64_t sent, int64_t ms);
/* A message says that the hold was taken away. Any client of the server may have sent it.
 * So the server is asked at once, and its answer counts. */
void rlk_hold_doubt_locked(struct rlk_hold *hold, int64_t now);
/* Adds news for the event callback, for each thread inside. Keeps the hold until the
 * callback was called. */
void rlk_hold_news_locked(struct rlk_hold *hold, unsigned news);

/* ---- hold_ask.c: the request, and what answers and grants mean for it */

/* Puts the hold into the lock's asks; facts about it wake `thread`. Takes a reference,
 * which ask_end gives back. */
void rlk_hold_ask_locked(struct rlk_hold *hold, struct rlk_thread *thread);
/* The same for a hold that asks without queueing. Takes no reference. Ended by ask_end,
 * or when the last reference is given back. */
void rlk_hold_try_locked(struct rlk_hold *hold);
void rlk_hold_ask_end_locked(struct rlk_hold *hold);
/* Wakes the requester. */
void rlk_hold_wake_locked(struct rlk_hold *hold);
/* A grant was read from the mailbox. False: it names another ticket than the confirmed
 * one, and the server is to be asked. */
bool rlk_hold_granted_locked(struct rlk_hold *hold, int64_t ticket, uint64_t token,
                             unsigned flags);
/* "queued" answers a request that left at `sent`. A grant that came before the answer is
 * believed now, if it names this ticket (T1). */
void rlk_hold_queued_locked(struct rlk_hold *hold, int64_t ticket, int64_t sent);
/* "held" is the answer, and as many replicas as were asked for have confirmed it. */
void rlk_hold_held_locked(struct rlk_hold *hold, int64_t sent, int64_t remaining_ms,
                          uint64_t token);
/* "held" is the answer to a refresh, which asks no replica (P13). */
void rlk_hold_found_locked(struct rlk_hold *hold, int64_t sent, int64_t remaining_ms,
                           uint64_t token);
/* "gone" is the answer: neither queued nor held. */
void rlk_hold_gone_locked(struct rlk_hold *hold);
/* Granted: whether this grant is surely the newest: no hold that the process believes in,
 * or has entered since, may have been granted later. If not, the server is to be
 * asked. */
bool rlk_hold_newest_locked(const struct rlk_hold *hold);
/* The answer is an error that polling does not mend: the requester is to ask the server
 * itself, unless it got an answer just now. The next answer tells the ticket. */
void rlk_hold_ask_again_locked(struct rlk_hold *hold, int64_t now);
/* The requester is to ask although the hold is queued; a grant that comes meanwhile is
 * believed. False: it cannot ask, or asks already. */
bool rlk_hold_ask_too_locked(struct rlk_hold *hold, int64_t now);
/* That request reached no server: the hold waits as before. */
void rlk_hold_asked_in_vain_locked(struct rlk_hold *hold, int64_t now);
/* "unrecoverable" is the answer: its threads are to give up. */
void rlk_hold_unrecoverable_locked(struct rlk_hold *hold);

/* ---- hold_enter.c */

/* REQUESTED -> HELD, for the calling thread. */
void rlk_hold_enter_locked(struct rlk_hold *hold, struct rlk_thread *thread, int64_t now);
/* A writer counts as a reader from now on (W18). */
void rlk_hold_downgrade_locked(struct rlk_hold *hold);

/* ---- hold_end.c */

/* HELD, RETAINED -> LOST. The next local waiter asks; one release is sent in the
 * background (T6). */
void rlk_hold_lose_locked(struct rlk_hold *hold, enum rlk_loss loss, int64_t now);
/* HELD, RETAINED -> RELEASING: its threads have left. The caller releases it at the
 * server, or has the watchdog do it (rlk_hold_background_locked). */
void rlk_hold_leave_locked(struct rlk_hold *hold);
/* The same for a hold whose acquires were all answered, if none had an unknown outcome:
 * its release needs no marker. */
void rlk_hold_leave_unused_locked(struct rlk_hold *hold);
/* Releases a live hold that no thread uses, in the background. Another hold stays as it
 * is. */
void rlk_hold_end_unused_locked(struct rlk_hold *hold, int64_t now);
/* REQUESTED, CANCELLING -> CANCELLING: the watchdog withdraws what the server may have of
 * the id, until `until`. Takes over the caller's reference. */
void rlk_hold_give_up_locked(struct rlk_hold *hold, int64_t now, int64_t until);
/* REQUESTED -> CANCELLING: nothing of this id has left the process. */
void rlk_hold_unsent_locked(struct rlk_hold *hold);
/* REQUESTED -> CANCELLING, for a fresh hold with an id that this process had once: it is
 * released in the background (L2). */
void rlk_hold_orphaned_locked(struct rlk_hold *hold, int64_t now);
/* The watchdog sends a release, with a marker unless no_marker, from `when` until it is
 * confirmed, or `until`. Takes over the caller's reference. */
void rlk_hold_background_locked(struct rlk_hold *hold, int64_t when, int64_t until);
/* An ACL refuses the release, but may be corrected: repeats the release at `when`. False:
 * it is not worth repeating, or too many releases are repeated already. */
bool rlk_hold_denied_locked(struct rlk_hold *hold, int64_t when);
/* The release was confirmed, or there is no more use in trying. Also for a hold that was
 * released before it came to the background. */
void rlk_hold_background_end_locked(struct rlk_hold *hold);
/* Until when the watchdog tries to release the hold: past D, because a renewal under way
 * may have raised the TTL. Much longer for a robust lock that was unlocked in time,
 * because until the release its mark looks like a death. */
int64_t rlk_hold_release_until_locked(const struct rlk_hold *hold);
/* Counts in lock->returning a hold that no unlock gives back. Until its release, the
 * server may call the lock busy although no thread has it. */
void rlk_hold_count_returning_locked(struct rlk_hold *hold);

#endif
