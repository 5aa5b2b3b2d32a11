/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process has of a lock. A hold is one acquisition at the server: id, lease end D,
 * token, state. Which thread has it, and how often, is local and kept apart, in parts: a
 * hold may come to a thread that has not asked for it, and the threads that read at the
 * same time share one. An id goes one way:
 *
 *     ASKING -> INSIDE -> GOING (released or cancelled) or LOST
 *
 * GOING and LOST are final (T6, T7). All transitions are made in hold.c, under the
 * registry's mutex; one critical section looks, chooses and changes (H1).
 */
#ifndef RLK_HOLD_H
#define RLK_HOLD_H

#include "base/list.h"
#include "base/timer.h"
#include "state/holder.h"
#include "state/kind.h"
#include "state/op.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rlk_lock;
struct rlk_registry;
struct rlk_thread;

/* See doc/design/client.md, "States of a hold". */
enum rlk_hold_state {
    RLK_HOLD_REQUESTED, /* a thread asks the server, or waits in the server's queue */
    RLK_HOLD_HELD,      /* a thread is inside, or on the way in */
    RLK_HOLD_RETAINED, /* no thread is inside, or one that entered by an open fast path */
    RLK_HOLD_CANCELLING, /* given up before a thread entered */
    RLK_HOLD_RELEASING,  /* every thread has left: a release is under way, or due */
    RLK_HOLD_LOST        /* the lease ended, or the server says that it is not ours */
};

/* What moves a hold from one state to another: the table is in hold.c. */
enum rlk_hold_event {
    RLK_ON_ENTER,   /* the first thread enters a confirmed or believed hold */
    RLK_ON_CANCEL,  /* the thread that asked sends a cancel */
    RLK_ON_YOURS,   /* that cancel found the hold granted */
    RLK_ON_GIVE_UP, /* the watchdog is to withdraw what the server may have */
    RLK_ON_RETAIN,  /* the last thread has left, and the process keeps the hold */
    RLK_ON_TAKE,    /* a thread enters a retained hold, or is about to */
    RLK_ON_FOUND,   /* the fast path was closed with a thread inside */
    RLK_ON_RELEASE, /* the hold is to be given back */
    RLK_ON_LOSS     /* the lease is over */
};

/* How long threads of a process may pass a lock on among themselves while others wait for
 * it at the server. 0 in either: not at all. */
struct rlk_handoff {
    int64_t ns;
    int64_t count;     /* sections */
    int64_t retain_ns; /* for how long it is kept when nobody wants it; 0: not */
    bool hears;        /* the mailbox is subscribed */
};

/* Why a hold was lost; loss_reason.c knows more than who finds it, and has the texts. */
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
    RLK_LOSS_MASK = 15 /* they fit into rlk_hold.loss */
};

/* What there is of a hold that threads pass on among themselves, or that is kept though
 * nobody is in it. Guarded by the registry's mu, but for what is atomic. */
struct rlk_pass {
    struct rlk_hold *hold;
    uint64_t token_end;        /* the last of the block */
    uint64_t token_more;       /* the first of the next block; 0: there is none */
    uint16_t token_more_count; /* how many are in that */
    uint16_t token_spare;      /* more are asked for when so many are left */
    int64_t entered_at;        /* of the newest section that the server was not told of */
    int64_t retain_ns;         /* IDLE, kept: for so long since used_at; else 0 */
    struct rlk_list residents; /* INSIDE: of threads that may come by the gate */
    struct rlk_list fastpath_link; /* its gate is open: in the registry's gates; or of
                                  those that are kept for reuse */
    _Atomic uint64_t fastpath;     /* fastpath.h */
    _Atomic uint32_t
        *_Atomic inside;     /* of a robust lock: the slot's (intent.h), or NULL */
    _Atomic int64_t used_at; /* IDLE: since when */
};

/* One that was not passed on, to be read by whoever has no other. */
extern const struct rlk_pass rlk_hold_no_pass;

struct rlk_hold {
    struct rlk_lock *lock; /* immutable, as the next but for a rename */

    /* guarded by the registry's mu */
    struct rlk_id id;
    unsigned refs;
    /* written where others may write their neighbours: never without mu */
    bool downgrading : 1; /* written before; the server is still to be told, or to answer
                           */
    bool sent_any : 1;    /* an acquire of this id may have reached the server */
    bool need_ask : 1;    /* not queued as far as is known: the asker sends acquire */
    bool granted : 1;     /* held at the server until D, as told by a believed grant or an
                             answer */
    bool granted_short : 1; /* the server's TTL is that of a grant, not yet the lease */
    bool late_release_sent : 1; /* LOST: its one release was sent */
    bool no_marker : 1;         /* RELEASING, CANCELLING: no acquire of this id can be
                                   under way */
    bool grant_died : 1;        /* as owner_died, of grant_ticket */
    bool spoilt : 1;            /* ASKING: the lock is not recoverable */
    bool with_text : 1; /* the watchdog's next request is to bring the script's text */
    bool doubted : 1;   /* a message says that it is lost: the server is to be asked */
    bool at_risk : 1;   /* AT_RISK was told */
    bool cleaned : 1; /* robust, kept: the server was told that nobody is inside (K11) */
    bool asks_tokens : 1;   /* the asking is to bring another block of them */
    bool tokens_sent : 1;   /* the renewal in flight asks for that */
    bool token_heard : 1;   /* the token came by a message; no answer has said so yet */
    bool counted_going : 1; /* in the lock's going */
    bool others : 1;        /* somebody else wants the lock, as the server has said */
    bool asks_others : 1;   /* it is to be asked that */
    bool tells : 1;         /* the server will tell of the first who comes */
    bool refused : 1;       /* INSIDE: its newest renewal was refused for good */
    bool unreadable : 1;    /* or answered by what no script answers */
    bool told_lost : 1;     /* a message says that it was taken away */
    bool trying : 1;        /* ASKING: in the lock's tries */
    bool queued : 1;        /* this id has queued, or may have and was given up */
    uint8_t loss : 4;       /* LOST: enum rlk_loss */
    uint8_t prefer;         /* RLOCK_RWLOCK_PREFER_*, PHASE_FAIR */
    /* these the thread whose hold it is may read, or write, without mu where nobody else
     * writes them */
    bool fixed;           /* a lease that is never renewed */
    bool reading;         /* reads, or asks to */
    bool unknown;         /* an acquire of this id had an unknown outcome: leave a marker
                             (T3) */
    bool release_unknown; /* a release of this id had an unknown outcome (T9) */
    bool owner_died;  /* robust: given with the news of a death; the thread in it has not
                         said that the state is consistent */
    bool owner_ended; /* RELEASING: the thread in it ended */
    bool whole;       /* LOST while nobody was in it: every section was unlocked */
    _Atomic uint8_t state; /* enum rlk_hold_state */
    uint16_t backoff_ms;
    int lease_ms;
    union {
        unsigned joins; /* reading: requests under way to share it, each as good as a
                           reader (W22) */
        uint32_t mark;  /* not reading, robust: the number of its mark at the server */
    };
    union {
        unsigned sections; /* INSIDE: that began since budget_from */
        uint32_t cause_ms; /* LOST: since when its cause was so */
    };
    union {
        int64_t budget_from; /* INSIDE: hand-overs are counted from here */
        int64_t give_up_at;  /* GOING, LOST: when background tries end */
    };
    int64_t ask_after;    /* INSIDE: no asking before, but for the lease */
    int64_t renew_at;     /* INSIDE: next renewal; GOING: next try of the release */
    int64_t since;        /* INSIDE from */
    int64_t proof_sent;   /* granted: when the newest request left after which the server
                             had it for this hold */
    struct rlk_list link; /* ASKING: in asks or tries; INSIDE, of those that read: in
                             reads; on its way out: in leaving, but for what was held
                             exclusively; or of those that are kept for reuse */
    struct rlk_list holders; /* INSIDE and LOST: of the threads in it */
    struct rlk_timer timer;
    struct rlk_op *op; /* in flight; of reads, perhaps, the one of all that are renewed
                          together; NULL: none */
    struct rlk_pass *pass; /* &rlk_hold_no_pass: it was not passed on */

    /* atomic: written under mu, read by the owner without */
    _Atomic int64_t end;    /* D */
    _Atomic int64_t risk;   /* from when on it is at risk */
    _Atomic uint64_t token; /* of the section there is, or was last */

    union {
        struct rlk_holder own;    /* from INSIDE on: the first of the parts */
        struct {                  /* before */
            int64_t ticket;       /* of the newest confirmed "queued" answer; 0: none */
            int64_t ticket_sent;  /* when that request left */
            int64_t asks_since;   /* need_ask though it is queued; 0: not so */
            int64_t grant_ticket; /* of a grant that was read and is not believed yet; 0:
                                     none */
            uint64_t grant_token;
            unsigned grant_flags;
            unsigned flags;        /* others wait, as of the newest grant or answer */
            unsigned asked;        /* acquires sent */
            unsigned open_to;      /* granted: to the threads that came before this
                                      acquire left; those that came later may have been
                                      overtaken by a writer */
            unsigned entered_then; /* granted: what the lock's count that matters was */
            uint64_t round;        /* of the newest refresh that named it */
            struct rlk_thread *requester; /* whom a fact is to wake; NULL: nobody now */
        };
    };
};

/* Whether the process believes that the server has the lock for this hold: HELD or
 * RETAINED. While the fast path is open both mean the same; which of them it is says the
 * fast path's word (fastpath.h). Callable without mu by a thread that has a share. */
static inline bool rlk_hold_is_live(const struct rlk_hold *hold)
{
    return hold->state - (unsigned)RLK_HOLD_HELD <= RLK_HOLD_RETAINED - RLK_HOLD_HELD;
}

/* Whether no thread is inside a live hold. With mu and the fast path closed; while it is
 * open, rlk_fastpath_is_idle asks its word, too. */
static inline bool rlk_hold_is_retained(const struct rlk_hold *hold)
{
    return hold->state == RLK_HOLD_RETAINED;
}

/* Whether the watchdog has the hold's last reference, and sends its release: CANCELLING,
 * RELEASING or LOST, counted in the registry's background_count. */
static inline bool rlk_hold_is_background(const struct rlk_hold *hold)
{
    return hold->state >= RLK_HOLD_CANCELLING && hold->give_up_at != 0;
}

/* What a renewal is to say of the mark of who is inside; 0: nothing, the first ones are
 * the grant's (K11). */
static inline int64_t rlk_hold_mark(const struct rlk_hold *hold)
{
    return !hold->reading && hold->mark > 2 ? (int64_t)hold->mark : 0;
}

/* Whether somebody else wants the lock, and whether the server will tell of who comes, as
 * an answer about the hold says. */
static inline bool rlk_hold_hears_others(const struct rlk_hold *hold, unsigned flags)
{
    return (flags & (hold->reading ? RLK_READ_OTHERS : RLK_OTHERS)) != 0;
}
static inline bool rlk_hold_hears_telling(const struct rlk_hold *hold, unsigned flags)
{
    return (flags & RLK_WILL_TELL) && (!hold->reading || rlk_id_tells(&hold->id));
}

/* Each section has a token of its own: behind that of the grant they come from blocks
 * (H11). What one thread at a time is in, of the types that pass it on. */
static inline bool rlk_hold_has_block(const struct rlk_hold *hold)
{
    return hold->id.letter == 'M' || (hold->id.letter == 'W' && !hold->reading);
}

/* Whether its sections have fencing tokens. */
static inline bool rlk_hold_is_fenced(const struct rlk_hold *hold)
{
    return hold->id.letter >= 'A' && hold->id.letter <= 'Z';
}

/* The last token of the block that sections take theirs from. */
static inline uint64_t rlk_hold_token_end(const struct rlk_hold *hold)
{
    return hold->pass != &rlk_hold_no_pass ? hold->pass->token_end : hold->token;
}

/* Functions that end in _locked need the registry's mu. Times are CLOCK_BOOTTIME ns. */

/* A fresh hold in ASKING with one reference. NULL: out of memory. */
struct rlk_hold *rlk_hold_new_locked(struct rlk_lock *lock, struct rlk_thread *thread,
                                     char letter, uint32_t grant_ms);
void rlk_hold_ref_locked(struct rlk_hold *hold);
/* It is to be passed on, or kept. False: out of memory. */
bool rlk_hold_pass_locked(struct rlk_hold *hold);
void rlk_hold_put_locked(struct rlk_hold *hold);
/* A new id for a hold that was refused under the old one. */
void rlk_hold_rename_locked(struct rlk_hold *hold, struct rlk_thread *thread);

/* ---- asking, and what is answered */

/* A hold asks at the server; facts about it wake `thread`. Takes a reference. Ended by
 * ask_end, which gives it back. */
void rlk_hold_ask_locked(struct rlk_hold *hold, struct rlk_thread *thread);
void rlk_hold_ask_end_locked(struct rlk_hold *hold);
/* The same for a hold that asks without queueing. Takes no reference; ends likewise, or
 * when the last one is given back. */
void rlk_hold_try_locked(struct rlk_hold *hold);
/* Wakes the thread that asks. */
void rlk_hold_wake_locked(struct rlk_hold *hold);

/* A grant was read from the mailbox. False: it names another ticket than the confirmed
 * one, and the server is to be asked. */
bool rlk_hold_granted_locked(struct rlk_hold *hold, int64_t ticket, uint64_t token,
                             unsigned flags);

/* "queued" was answered to a request that left at `sent`. A grant that came before the
 * answer is believed now, if it names this ticket (T1). */
void rlk_hold_queued_locked(struct rlk_hold *hold, int64_t ticket, int64_t sent);

/* "held" was answered. */
void rlk_hold_held_locked(struct rlk_hold *hold, int64_t sent, int64_t remaining_ms,
                          uint64_t token);

/* "gone" was answered: neither queued nor held. */
void rlk_hold_gone_locked(struct rlk_hold *hold);
/* Granted: no hold that is believed in, or was entered since, may have been given later;
 * otherwise the server is to be asked. */
bool rlk_hold_newest_locked(const struct rlk_hold *hold);
/* ASKING: what is known of it counts no more, and the asker is to ask the server. */
void rlk_hold_ask_anew_locked(struct rlk_hold *hold);
/* An error was answered that polling does not mend: the asker is to ask himself, unless
 * he has just been answered. The answer tells his ticket. */
void rlk_hold_ask_again_locked(struct rlk_hold *hold, int64_t now);
/* The asker is to ask though it is queued: a grant that comes meanwhile is believed.
 * False: he cannot, or does already. */
bool rlk_hold_ask_too_locked(struct rlk_hold *hold, int64_t now);
/* He has reached nobody: it is as it was. */
void rlk_hold_asked_in_vain_locked(struct rlk_hold *hold, int64_t now);
/* "unrecoverable" was answered: whoever asks is to give up. */
void rlk_hold_spoilt_locked(struct rlk_hold *hold);

/* When the server is to be asked who else wants the hold, whatever the lease says (H7,
 * H8); RLK_NEVER: need not. */
int64_t rlk_hold_contention_due(const struct rlk_hold *hold);
/* Until when a retained hold is kept though no thread uses it (K9); RLK_NEVER: it is not
 * retained. */
int64_t rlk_hold_retained_until(const struct rlk_hold *hold);
/* D of a lease of `ms` whose request left at `sent` (L1). */
int64_t rlk_hold_lease_end(int64_t sent, int64_t ms);

/* ---- transitions */

/* The event moves the hold to the state that the table in hold.c says. */
void rlk_hold_change_locked(struct rlk_hold *hold, enum rlk_hold_event event);
/* Whether the table has the event for the hold's state. */
bool rlk_hold_can_change(const struct rlk_hold *hold, enum rlk_hold_event event);

/* The lease of a hold is confirmed: `ms` from `sent`. Sets D, the time of the next
 * renewal and that of the risk. D rises only while it has not passed (T6). */
void rlk_hold_confirm_locked(struct rlk_hold *hold, int64_t sent, int64_t ms);
/* The same for a lease that its holder chose anew: D may fall. */
void rlk_hold_relet_locked(struct rlk_hold *hold, int64_t sent, int64_t ms);

/* ASKING -> INSIDE, for the calling thread. */
void rlk_hold_enter_locked(struct rlk_hold *hold, struct rlk_thread *thread, int64_t now);

/* IDLE, it is kept for so long; 0: it is not. */
void rlk_hold_keep_locked(struct rlk_hold *hold, int64_t retain_ns);

/* Whether nobody is inside, or on the way to it. */
bool rlk_hold_unused_locked(const struct rlk_hold *hold);

/* Until when the watchdog tries to release it: past D too, as a renewal that is still
 * under way may have raised the TTL; and until the mark of a robust lock, which was
 * unlocked in time, does not look like a death any more. */
int64_t rlk_hold_release_until_locked(const struct rlk_hold *hold);

/* A hold INSIDE that nobody uses is released in the background; another: nothing. */
void rlk_hold_end_unused_locked(struct rlk_hold *hold, int64_t now);

/* A writer counts as a reader from now on (W18). */
void rlk_hold_downgrade_locked(struct rlk_hold *hold);

/* REQUESTED -> CANCELLING: nothing of this id has left the process. */
void rlk_hold_unsent_locked(struct rlk_hold *hold);
/* A fresh hold, of an id that this process had once, is to be released in the background
 * (L2). */
void rlk_hold_orphaned_locked(struct rlk_hold *hold, int64_t now);

/* ASKING -> GOING without having been entered: the id is given up. The watchdog withdraws
 * what may be of it at the server, until `until`, and takes over the caller's reference.
 */
void rlk_hold_give_up_locked(struct rlk_hold *hold, int64_t now, int64_t until);

/* INSIDE -> LOST. The next local waiter asks; one release is sent in the background (T6).
 */
void rlk_hold_lose_locked(struct rlk_hold *hold, enum rlk_loss loss, int64_t now);

/* INSIDE: a message says that it was taken away, or said so before it was entered.
 * Anybody may have sent it: the server is asked at once, and that answer counts. */
void rlk_hold_doubt_locked(struct rlk_hold *hold, int64_t now);

/* INSIDE -> GOING: no longer anybody's; its threads have left. The caller releases it at
 * the server, or has the watchdog do it (rlk_hold_background_locked). */
void rlk_hold_leave_locked(struct rlk_hold *hold);

/* GOING: the watchdog sends release, with marker, until it is confirmed or `until`. Takes
 * over the caller's reference. */
void rlk_hold_background_locked(struct rlk_hold *hold, int64_t when, int64_t until);
/* It was confirmed, or there is no more use in trying. Also of one that was released
 * before it came to that. */
void rlk_hold_background_end_locked(struct rlk_hold *hold);
/* It is given back by nobody's unlock: until it is, the server may call the lock busy
 * though nobody has it. */
void rlk_hold_going_locked(struct rlk_hold *hold);

/* Tells the event callback, of each thread inside. Keeps the hold until it was
 * told. */
void rlk_hold_news_locked(struct rlk_hold *hold, unsigned news);
/* INSIDE: whether a renewal may be sent. Those who read wait while one for their lock is
 * in flight: it names many of them, and is followed by one for the others. */
bool rlk_hold_renewable_locked(const struct rlk_hold *hold);
/* INSIDE: arms the timer for the next of renewal, risk and end. */
void rlk_hold_schedule_locked(struct rlk_hold *hold);

#endif
