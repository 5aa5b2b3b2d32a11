/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts of mutex and fair lock (-DFAIR), as lua/ has them, under the processes of
 * process.pml. See README.md.
 */
#define MAY_ASK(c) 1
#define WANTS(c) 1
#define PENDING 0
#define QN (2 * NC)
#define ear_lost(c) skip
#define resumed() wasted = 0
#include "state.pml"

byte owner, ttl;
byte q[QN]; /* exclusive waiters in the order of their tickets */
byte qn;
/* LIVE: ticks for which the lock was free, or the waiter's own, and a live waiter did not
 * know it; ticks for which no running process had the lock */
byte free_for, unaware, wasted;
bool by_grant; /* the owner did not take it by a request of its own */
#ifdef FORCE
byte victim;
bool forcing;
#endif

/* ---- claims */

inline claim_entry(e)
{
    n = 0;
    do
    :: n < NC -> assert(S1 || n == e || !VALID(n) ||
                   excused[h[n].id] || excused[h[e].id]); n++
    :: else -> break
    od;
    n = 0
}

/* What a process believes in is its own at the server, and for as long. */
inline claim_owner()
{
    n = 0;
    do
    :: n < NC ->
        assert(S2 || !VALID(n) || excused[h[n].id] || owner == h[n].id);
        assert(S1 || !VALID(n) || excused[h[n].id] || ttl >= h[n].d);
        n++
    :: else -> break
    od;
    n = 0
}

/* ---- the scripts; x: the id, p: its process */

inline in_queue(id_) /* at: its place, or qn */
{
    at = 0;
    do
    :: at < qn && q[at] != id_ -> at++
    :: else -> break
    od
}

inline take_out(at_) /* of the queue */
{
    m = at_;
    do
    :: m + 1 < qn -> q[m] = q[m + 1]; m++
    :: else -> break
    od;
    qn--;
    q[qn] = 0
}

inline zrem(id_)
{
    in_queue(id_);
    if
    :: at < qn -> take_out(at)
    :: else
    fi
}

/* lib/token.lua: above the last one by the key or by the clock */
inline token_next()
{
#ifndef BREAK_TOKEN_COUNTS
    newer = (kv_ok || time_ok);
#else
    newer = kv_ok;
#endif
    kv_ok = 1
}

inline set_owner(id_, ms)
{
#ifndef BREAK_FORK
    assert(GHOST || !gone[id_]);
#endif
    assert(S3 || newer);
    newer = 0;
    owner = id_;
    ttl = ms;
    by_grant = 0
}

/* lib/asking.lua, queue_up */
inline queue_up()
{
    present[p] = PRES;
    in_queue(x);
    if
    :: at == qn -> q[qn] = x; qn++; jn[x]++
    :: else
    fi;
    t = jn[x]
}

/* lib/handover.lua; named: who asks himself. An entry that is published to nobody is put
 * back with its ticket in the same script, so a grant to a deaf one is no step at all. */
inline handover()
{
    i = 0; g = 0;
    do
    :: i < qn && g == 0 ->
#ifndef BREAK_NEWEST
        at = i;
#else
        at = qn - 1 - i;
#endif
        y = q[at];
        if
        :: present[CL(y)] == 0 ->
#ifdef LIVE
            /* a client that runs is never dropped */
            assert(L5 || !runs[CL(y)] || paused[CL(y)]);
#endif
            take_out(at)
#ifdef BREAK_DROP_DEAF
        :: present[CL(y)] > 0 && y != named && !ear[CL(y)] ->
            assert(L5 || present[CL(y)] == 0); take_out(at)
#endif
        :: present[CL(y)] > 0 && (y == named ||
#ifndef BREAK_NO_UNDO
                                  ear[CL(y)]
#else
                                  1
#endif
                                  ) ->
            assert(L1 || y == named || ear[CL(y)]);
            m = 0;
            do
            :: m < at -> assert(L5 || !LIVES(CL(q[m]))); m++
            :: else -> break
            od;
            g = y;
            take_out(at);
#ifndef BREAK_TOKEN
            token_next();
#endif
#ifndef BREAK_GRANT_WITHOUT_TTL
            set_owner(g, A);
#else
            set_owner(g, 200);
#endif
            by_grant = 1;
            if
            :: g != named && ear[CL(g)] ->
                if
                :: len(mb[CL(g)]) < 2 -> mb[CL(g)]!g, jn[g]
                :: else
                fi
            :: else
            fi
        :: else -> i++
        fi
    :: else -> break
    od
}

inline mark()
{
#ifndef BREAK_NO_MARKER
    marker[x] = MARKER
#else
    skip
#endif
}

/* After a script that hands over no live waiter waits for a free lock (L1). */
inline claim_handed_over()
{
    m = 0;
    do
    :: m < qn -> assert(L1 || owner != 0 || !LIVES(CL(q[m]))); m++
    :: else -> break
    od
}

/* Who does not wait does not need to be present. */
inline absent()
{
    y = 0;
    do
    :: y < NC ->
        m = 0;
        do
        :: m < qn && CL(q[m]) != y -> m++
        :: else -> break
        od;
        if
        :: m == qn -> present[y] = 0
        :: else
        fi;
        y++
    :: else -> break
    od
}

inline acquire() /* mutex_acquire.lua, fair_acquire.lua: lib/asking.lua, known */
{
    in_queue(x);
    if
    :: owner == x -> w = HELD; l = ttl
#ifndef BREAK_NO_MARKER
    :: owner != x && marker[x] > 0 -> w = REFUSED
#endif
#ifndef BREAK_NO_NOT_AFTER
    :: owner != x && marker[x] == 0 && sl[s].age > CT -> w = LATE
#endif
    :: owner != x && jn[x] == 3 && at == qn -> w = LATE /* joins three times at most */
    :: else ->
        if
#ifndef FAIR
        :: owner == 0 ->
#else
        :: owner == 0 && qn == 0 ->
#endif
            zrem(x);
            token_next();
            set_owner(x, L);
            w = HELD; l = L
        :: else ->
            queue_up();
            w = QUEUED;
#ifdef FAIR
            if
            :: owner == 0 ->
                named = x;
                handover();
                if
                :: g == x -> ttl = L; w = HELD; l = L
                :: else
                fi
            :: else
            fi
#endif
        fi
    fi
}

inline refresh() /* lib/refresh.lua */
{
    in_queue(x);
    if
    :: at < qn ->
#ifndef BREAK_NO_PRESENCE
        present[p] = PRES;
#endif
        named = x
    :: else
    fi;
    if
    :: owner == 0 ->
#ifdef BREAK_REFRESH_TAKES
        zrem(x); token_next(); set_owner(x, L)
#else
        handover();
        claim_handed_over()
#endif
    :: else
    fi;
    in_queue(x);
    if
    :: at < qn -> w = QUEUED; t = jn[x]
    :: at == qn && owner == x -> w = HELD; l = ttl
    :: else -> w = GONE
    fi
}

inline release() /* lib/release.lua */
{
    if
#ifndef BREAK_RELEASE_ANYBODY
    :: owner == x ->
#else
    :: owner != 0 ->
#endif
        owner = 0; ttl = 0; w = RELEASED
    :: else -> w = NOTMINE; zrem(x)
    fi;
    if
    :: sl[s].arg -> mark()
    :: else
    fi;
    if
    :: owner == 0 -> handover(); claim_handed_over()
    :: else
    fi
}

inline cancel() /* lib/cancel.lua */
{
    zrem(x);
    mark();
    if
    :: owner == x -> w = YOURS; l = ttl
    :: else ->
        w = REMOVED;
        if
        :: owner == 0 -> handover(); claim_handed_over()
        :: else
        fi
    fi
}

inline renew() /* lib/renew.lua */
{
    if
    :: owner == x ->
#ifndef BREAK_SHORTENS
        if
        :: ttl < sl[s].arg -> ttl = sl[s].arg
        :: else
        fi;
#else
        ttl = sl[s].arg;
#endif
        w = HELD; l = ttl
#ifdef BREAK_RENEW_RECREATES
    :: owner == 0 -> token_next(); set_owner(x, sl[s].arg); w = HELD; l = ttl
#endif
    :: else -> w = GONE
    fi
}

#include "process.pml"

#define RUNNABLE(s) (sl[s].st == SENT && ((busy == 0 && CALM) || busy == sl[s].who + 1))
/* The server: one request at a time, of those under way any. */
proctype Net()
{
    byte s, x, y, p, w, l, t, i, m, at, g, named;
end:
    do
    :: atomic {
        if
        :: RUNNABLE(0) -> s = 0
        :: RUNNABLE(1) -> s = 1
        :: RUNNABLE(2) -> s = 2
        :: RUNNABLE(3) -> s = 3
#if SLOTS > 4
        :: RUNNABLE(4) -> s = 4
#endif
#if SLOTS > 5
        :: RUNNABLE(5) -> s = 5
#endif
#if SLOTS > 6
        :: RUNNABLE(6) -> s = 6
#endif
#if SLOTS > 7
        :: RUNNABLE(7) -> s = 7
#endif
        fi;
        d_step {
            x = sl[s].id; p = sl[s].who;
            if
            :: sl[s].kind == ACQ -> acquire()
            :: sl[s].kind == REF -> refresh()
            :: sl[s].kind == REL -> release()
            :: sl[s].kind == CAN -> cancel()
            :: sl[s].kind == REN -> renew()
            fi;
            if
            :: s < 2 * NC ->
                sl[s].st = DONE; sl[s].what = w; sl[s].tk = t;
                sl[s].left = REMAINS(l, sl[s].age);
                if
                :: w != QUEUED && sl[s].kind != REF -> sl[s].age = 0
                :: w == QUEUED || sl[s].kind == REF ->
                    if
                    :: sl[s].age > A -> sl[s].age = A
                    :: else
                    fi
                fi;
                if
                :: sl[s].kind == ACQ || sl[s].kind == REF ->
                    sl[s].arg = 
#ifdef LIVE
                        (owner -> ttl : 100)
#else
                        0
#endif

                :: else
                fi
            :: else -> clear(s) /* an orphan's answer is heard by nobody */
            fi;
            absent();
            claim_owner();
            s = 0; x = 0; y = 0; p = 0; w = 0; l = 0; t = 0; i = 0; m = 0; at = 0; g = 0;
            named = 0
        } }
    od
}

#ifdef LIVE
/* A process that runs and listens, and waits for the lock. */
#define WAITS(c) (runs[c] && ear[c] && h[c].st == ASK)
inline live_claims()
{
    n = 0; some = 0;
    do
    :: n < NC ->
        /* it knows of a loss by D (S4) */
        assert(S4 || !runs[n] || h[n].st != IN || h[n].d > 0);
        /* every new subscription looks again (L3) */
        assert(L3 || !WAITS(n) || !resub[n]);
        if
        :: WAITS(n) && owner == h[n].id -> mine = 1
        :: WAITS(n) -> some = 1
        :: else
        fi;
        n++
    :: else -> break
    od;
    if
    :: owner == 0 && some -> free_for++
    :: else -> free_for = 0
    fi;
    if
    :: mine -> unaware++
    :: else -> unaware = 0
    fi;
    if
    :: some && (owner == 0 || (by_grant && !runs[CL(owner)] && h[CL(owner)].st == ASK)) ->
        wasted++
    :: else -> wasted = 0
    fi;
    assert(L4 || free_for <= 1);          /* an expired lease is taken over at once */
    assert(L3 || unaware <= POLL);        /* each wait has a backstop */
    assert(L2 || wasted <= PRES + A + 2); /* what dead waiters cost together */
    n = 0; some = 0; mine = 0
}
#endif

inline tick_keys()
{
    if
    :: ttl > 0 && ttl < 200 ->
        ttl--;
        if
        :: ttl == 0 -> owner = 0
        :: else
        fi
    :: else
    fi
}

proctype Clock()
{
#ifdef LIVE
    bool some, mine;
#endif
end:
    do
    :: d_step {
        TIME_GOES_ON ->
#ifdef LIVE
        live_claims();
#endif
        tick_all(); tick_keys(); claim_owner() }
#ifdef TOKENS
    :: d_step { time_ok -> kv_ok = 0 } /* FLUSHALL, eviction */
    :: d_step { kv_ok -> time_ok = 0 } /* the clock steps back */
    :: d_step { !time_ok -> time_ok = 1 }
#endif
#ifdef FORCE
    /* lock_force.lua, sent again when its answer is lost: who was seen is named */
    :: d_step { !forcing && victim == 0 && owner != 0 -> victim = owner; forcing = 1;
                excused[victim] = 1 }
    :: d_step { forcing && victim != 0 ->
#ifndef BREAK_FORCE_ANYBODY
        if
        :: owner == victim -> owner = 0; ttl = 0
        :: else
        fi
#else
        owner = 0; ttl = 0
#endif
        ; claim_owner() }
    :: d_step { forcing -> forcing = 0 }
#endif
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
        :: n < NC -> runs[n] = 1; ear[n] = 1; n++
        :: else -> break
        od;
        n = 0;
        run Net();
        run Clock();
        run Client(0);
        run Client(1);
#if NC > 2
        run Client(2)
#endif
    }
}
