/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers of one process (W21-W23): threads that wait for one hold and enter it
 * together, that join a hold which is shared, and leave it; joins in flight; unknown
 * outcomes; the loss of what is shared. Beside it a writer of another process, prompt and
 * without faults, and the parts of the scripts that matter to it. See README.md.
 *
 * There are two ids: a hold that asks, and one that is inside; when it is given back its
 * number is used again. Time: a lease is whole, short of its end, or over.
 */
#ifndef T
#define T 3 /* threads */
#endif
#ifndef ROUNDS
#define ROUNDS 4 /* calls in all */
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef ENDS
#define ENDS 1 /* leases that run out */
#endif
#define NONE 9

/* of a hold */
#define FREE 0
#define ASK 1
#define IN 2
#define LOST 3
#define GOING 4 /* the watchdog releases it, or a thread does */
/* of a thread */
#define OUT 0
#define WAIT 1
#define INSIDE 2
#define HAPPY 3 /* it is inside, and has not looked yet */
/* what is answered */
#define HELD 1
#define SHARED 2
#define QUEUED 3

#ifdef ONLY
#define OTHER 1
#else
#define OTHER 0
#endif
hidden byte S1 = OTHER, S4 = OTHER, L6 = OTHER, GHOST = OTHER, LEAK = OTHER;

#define HOLDS 3
byte hs[HOLDS];            /* state */
bool valid[HOLDS];         /* D has not passed */
byte parts[HOLDS], joins[HOLDS];
bool unknown[HOLDS], granted[HOLDS], need[HOLDS];
byte asked[HOLDS], opento[HOLDS];
byte asker[HOLDS];         /* the thread that asks */
byte shared = NONE;        /* the hold that may be joined */
byte faults = FAULTS, rounds = ROUNDS, ends = ENDS;

byte st[T], waits[T], came[T], in_[T]; /* waits: for which hold; came: its asked then */
bool told[T];                         /* of a loss */

/* the request of each hold: its acquire, with what is shared, or its release */
byte rq[HOLDS], rshare[HOLDS], what[HOLDS];
#define SENT 1
#define DONE 2
#define REL_SENT 3
bool late[HOLDS]; /* an acquire that nobody waits for may still run */

/* at the server */
bool rd[HOLDS], wq, wr, rqd[HOLDS], dead[HOLDS];
bool since[HOLDS]; /* a writer queued when its request had left */
bool cheat[T];     /* a writer queued before its call began, and it was not yet granted */
byte n;

#define READS (rd[0] || rd[1] || rd[2])
#define USED(i) (parts[i] > 0 || joins[i] > 0)

inline claims()
{
    n = 0;
    do
    :: n < T ->
        assert(S1 || !wr || st[n] != INSIDE || !valid[in_[n]] || hs[in_[n]] == LOST);
        n++
    :: else -> break
    od;
    n = 0;
    do
    :: n < HOLDS -> assert(LEAK || hs[n] != IN || USED(n)); n++
    :: else -> break
    od;
    n = 0
}

/* hold_end.c, rlk_hold_end_unused_locked */
inline end_unused(id)
{
#ifndef BREAK_UNUSED_STAYS
    if
    :: hs[id] == IN && !USED(id) ->
        hs[id] = GOING;
        if
        :: shared == id -> shared = NONE
        :: else
        fi
    :: else
    fi
#else
    skip
#endif
}

/* acquire_ask.c, rlk_acquire_end_request: after an unknown outcome the id is withdrawn */
inline end_request(id)
{
#ifndef BREAK_UNKNOWN_FORGOTTEN
    if
    :: unknown[id] -> hs[id] = GOING
    :: else -> hs[id] = FREE; asked[id] = 0
    fi;
#else
    hs[id] = FREE; asked[id] = 0; unknown[id] = 0;
#endif
    need[id] = 0; granted[id] = 0; asker[id] = NONE
}

/* acquire_share.c, rlk_acquire_share_bring_along: of those who wait for it */
inline bring_along(whose, into)
{
    m = 0;
    do
    :: m < T ->
        if
        :: st[m] == WAIT && waits[m] == whose && m != t ->
            waits[m] = NONE;
            if
#ifndef BREAK_LATE_COMERS_ENTER
            :: came[m] < opento[whose] ->
#else
            :: 1 ->
#endif
                /* nobody enters by an answer that may be older than a writer who queued
                 * before he came */
                assert(L6 || opento[whose] == 255 || !cheat[m]);
                st[m] = HAPPY; in_[m] = into; parts[into]++
            :: else
            fi
        :: else
        fi;
        m++
    :: else -> break
    od;
    m = 0
}

inline enters(into)
{
    st[t] = INSIDE; in_[t] = into; waits[t] = NONE; told[t] = 0; cheat[t] = 0
}

inline leaves()
{
    st[t] = OUT; in_[t] = NONE; cheat[t] = 0; told[t] = 0
}

/* rlk_hold_lose_locked: each thread inside learns of the loss */
inline lose(id)
{
    hs[id] = LOST;
    if
    :: shared == id -> shared = NONE
    :: else
    fi;
    m = 0;
    do
    :: m < T ->
        if
        :: st[m] == INSIDE && in_[m] == id ->
#ifndef BREAK_ONE_IS_TOLD
            told[m] = 1
#else
            told[m] = (m == 0)
#endif
        :: else
        fi;
        m++
    :: else -> break
    od;
    m = 0
}

proctype Thread(byte t)
{
    byte m, i, e;
end:
    do
    /* rlk_acquire_share_wait, read_hold */
    :: d_step { (st[t] == OUT && rounds > 0 || st[t] == WAIT && waits[t] == NONE) &&
                (hs[0] == ASK || hs[1] == ASK || hs[2] == ASK ||
                 hs[0] == FREE || hs[1] == FREE || hs[2] == FREE) ->
        if
        :: st[t] == OUT -> rounds--; cheat[t] = wq
        :: else
        fi;
        i = 0;
        do
        :: i < HOLDS && hs[i] != ASK -> i++
        :: else -> break
        od;
        if
        :: i == HOLDS ->
            i = 0;
            do
            :: hs[i] != FREE -> i++
            :: else -> break
            od;
            hs[i] = ASK; need[i] = 1; granted[i] = 0; unknown[i] = 0; asked[i] = 0;
            asker[i] = t; valid[i] = 0; dead[i] = 0;
            m = 0;
            do
            :: m < T ->
                if
                :: st[m] == WAIT && waits[m] == NONE -> waits[m] = i; came[m] = 0
                :: else
                fi;
                m++
            :: else -> break
            od;
            m = 0
        :: else
        fi;
        st[t] = WAIT; waits[t] = i; came[t] = asked[i];
        i = 0 }
    /* an attempt: with what is shared now, counted as a reader of it (W22) */
    :: d_step { st[t] == WAIT && waits[t] != NONE && asker[waits[t]] == t &&
                hs[waits[t]] == ASK && need[waits[t]] && rq[waits[t]] == FREE &&
                asked[waits[t]] < 3 ->
        i = waits[t];
        asked[i]++;
        rq[i] = SENT; since[i] = 0; rshare[i] = NONE;
        if
        :: shared != NONE && valid[shared] ->
            rshare[i] = shared;
#ifndef BREAK_JOIN_NOT_COUNTED
            joins[shared]++
#endif
        :: else
        fi;
        i = 0 }
    /* its answer: rlk_acquire_share_end, rlk_acquire_share_enter */
    :: d_step { st[t] == WAIT && waits[t] != NONE && asker[waits[t]] == t &&
                rq[waits[t]] == DONE ->
        i = waits[t]; e = rshare[i];
        opento[i] = asked[i];
        need[i] = 0;
        if
        :: e != NONE && joins[e] > 0 -> joins[e]--
        :: else
        fi;
        if
        :: what[i] == SHARED ->
            if
            :: hs[e] == IN && valid[e] ->
                parts[e]++;
                enters(e);
                bring_along(i, e);
                end_request(i)
#ifdef BREAK_JOIN_NOT_COUNTED
            :: hs[e] != IN || !valid[e] -> /* as if it were still there */
                parts[e]++; enters(e); hs[e] = IN; end_request(i)
#else
            :: else -> need[i] = 1
#endif
            fi
        :: what[i] == HELD ->
            granted[i] = 1; opento[i] = 255
        :: else
        fi;
        if
        :: e != NONE -> end_unused(e)
        :: else
        fi;
        rq[i] = FREE; what[i] = 0; rshare[i] = NONE; i = 0; e = 0;
        claims() }
    /* granted: enter_granted; or its time is over, and it asks again */
    :: d_step { st[t] == WAIT && waits[t] != NONE && asker[waits[t]] == t &&
                granted[waits[t]] && rq[waits[t]] == FREE ->
        i = waits[t];
        granted[i] = 0;
        if
        :: valid[i] ->
            hs[i] = IN; shared = i; parts[i] = 1; asker[i] = NONE; asked[i] = 0;
            enters(i);
            bring_along(i, i)
        :: else -> need[i] = 1
        fi;
        i = 0;
        claims() }
    /* outcome unknown: asks again under the same id */
    :: d_step { st[t] == WAIT && waits[t] != NONE && asker[waits[t]] == t &&
                (rq[waits[t]] == SENT || rq[waits[t]] == DONE) && faults > 0 ->
        faults--;
        i = waits[t]; e = rshare[i];
        if
        :: rq[i] == SENT -> late[i] = 1
        :: else
        fi;
        unknown[i] = 1;
        if
        :: e != NONE && joins[e] > 0 -> joins[e]--; end_unused(e)
        :: else
        fi;
        rq[i] = FREE; what[i] = 0; rshare[i] = NONE; need[i] = 1; i = 0; e = 0 }
    /* still_in: a thread that was let in by another */
    :: d_step { st[t] == HAPPY ->
        if
        :: hs[in_[t]] == IN && valid[in_[t]] -> st[t] = INSIDE; cheat[t] = 0
        :: else ->
            parts[in_[t]]--;
            if
            :: hs[in_[t]] == IN -> i = in_[t]; lose(i); i = 0
            :: else
            fi;
            st[t] = WAIT; waits[t] = NONE; in_[t] = NONE
        fi;
        claims() }
    /* rdunlock */
    :: d_step { st[t] == INSIDE && hs[in_[t]] == IN && valid[in_[t]] ->
        i = in_[t];
        parts[i]--;
        leaves();
        if
#ifndef BREAK_FIRST_RELEASES
        :: !USED(i) ->
#else
        :: 1 ->
#endif
            hs[i] = GOING;
            if
            :: shared == i -> shared = NONE
            :: else
            fi
        :: else
        fi;
        i = 0 }
    :: d_step { st[t] == INSIDE && (hs[in_[t]] == LOST || !valid[in_[t]]) ->
        /* ESTALE: it was told */
        assert(S4 || told[t] || hs[in_[t]] == IN);
        i = in_[t];
        if
        :: hs[i] == IN -> lose(i)
        :: else
        fi;
        parts[i]--;
        leaves();
        i = 0 }
    od
}

/* The watchdog: what goes is released, what is lost too, and each thread in it told. */
proctype Watch()
{
    byte i, m;
end:
    do
    :: atomic {
        if
        :: i = 0
        :: i = 1
        :: i = 2
        fi;
        if
        :: d_step { hs[i] == IN && !valid[i] -> lose(i) }
        /* with a marker; D has passed, or nobody is in it */
        :: d_step { hs[i] == GOING && rq[i] == FREE -> rq[i] = REL_SENT }
        :: d_step { hs[i] == LOST && rq[i] == FREE && parts[i] == 0 && joins[i] == 0 ->
            hs[i] = GOING }
        /* an answer to a poll, or a grant */
        :: d_step { hs[i] == ASK && !need[i] && !granted[i] && rd[i] && rq[i] == FREE &&
                    valid[i] -> granted[i] = 1; opento[i] = 255 }
        :: d_step { hs[i] == ASK && !need[i] && !granted[i] && !rd[i] && !rqd[i] &&
                    rq[i] == FREE -> need[i] = 1 } /* gone */
        :: d_step { hs[i] == ASK && !need[i] && !granted[i] && rd[i] && rq[i] == FREE &&
                    !valid[i] -> need[i] = 1 } /* by a grant that was too late */
        fi;
        i = 0 }
    od
}

/* rwlock_read, rwlock_release, as far as they matter: the rest is in rwlock.pml. */
inline settle()
{
    if
    :: !READS && !wr && wq -> wr = 1; wq = 0
    :: else
    fi;
    n = 0;
    do
    :: n < HOLDS ->
        if
        :: !wr && !wq && rqd[n] -> rqd[n] = 0; rd[n] = 1; valid[n] = 1
        :: else
        fi;
        n++
    :: else -> break
    od;
    n = 0
}

inline read(answered)
{
    if
    :: dead[i] -> w = QUEUED /* refused: the id was withdrawn */
    :: !dead[i] && rd[i] -> w = HELD; valid[i] = 1
    :: !dead[i] && !rd[i] && (wr || wq) -> rqd[i] = 1; w = QUEUED
    :: else ->
        if
        :: answered && rshare[i] != NONE && rd[rshare[i]] && !rqd[i] -> w = SHARED
        :: else -> rd[i] = 1; rqd[i] = 0; valid[i] = 1; w = HELD
        fi
    fi
}

proctype Net()
{
    byte i, w;
end:
    do
    :: atomic {
        if
        :: i = 0
        :: i = 1
        :: i = 2
        fi;
        if
        :: d_step { rq[i] == SENT -> read(1); what[i] = w; rq[i] = DONE; w = 0; claims() }
        :: d_step { late[i] -> late[i] = 0; read(0); w = 0; claims() }
        :: d_step { rq[i] == REL_SENT ->
            rd[i] = 0; rqd[i] = 0;
            /* the marker outlives what may still run (T3) */
#ifndef BREAK_NO_MARKER
            late[i] = 0; dead[i] = 1;
#endif
            rq[i] = FREE; hs[i] = FREE; asked[i] = 0; unknown[i] = 0;
            settle();
            claims() }
        fi;
        i = 0 }
    od
}

/* Another process writes; leases end. */
proctype Rest()
{
    byte i;
end:
    do
    :: d_step { !wq && !wr && rounds > 0 ->
        wq = 1; settle(); claims() }
    :: d_step { wr -> wr = 0; settle() }
    :: atomic { ends > 0 ->
        if
        :: i = 0
        :: i = 1
        :: i = 2
        fi;
        d_step { rd[i] -> ends--; rd[i] = 0; valid[i] = 0; settle(); claims() };
        i = 0 }
    /* All calls are over: nothing is left at the server, or held by nobody. */
    :: d_step { rounds == 0 && st[0] == OUT && st[1] == OUT && st[T - 1] == OUT &&
                !wq && !wr && rq[0] == FREE && rq[1] == FREE && rq[2] == FREE &&
                !late[0] && !late[1] && !late[2] &&
                hs[0] != GOING && hs[1] != GOING && hs[2] != GOING ->
        assert(GHOST || !READS && !rqd[0] && !rqd[1] && !rqd[2] ||
               hs[0] == LOST || hs[1] == LOST || hs[2] == LOST) }
    od
}

init
{
    atomic {
#ifdef ONLY
        ONLY = 0;
#endif
        n = 0;
        do
        :: n < T -> waits[n] = NONE; in_[n] = NONE; n++
        :: else -> break
        od;
        n = 0;
        do
        :: n < HOLDS -> asker[n] = NONE; rshare[n] = NONE; n++
        :: else -> break
        od;
        n = 0;
        run Net();
        run Watch();
        run Rest();
        run Thread(0);
        run Thread(1);
#if T > 2
        run Thread(2)
#endif
    }
}
