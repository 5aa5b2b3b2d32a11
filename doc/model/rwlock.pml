/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts of the read-write lock, as lua/ has them, under the processes of
 * process.pml. See README.md. Who writes, who reads: PREFER 16 is phase-fair, 0 prefers
 * readers, 1 writers.
 */
#define RW
#ifndef PREFER
#define PREFER 16
#endif
#ifdef ROLES /* the first writes, the last reads */
#define MAY_ASK(c) ((c) < NC - 1)
#define MAY_READ(c) ((c) > 0)
#else
#define MAY_ASK(c) 1
#define MAY_READ(c) 1
#endif
#define WANTS(c) 1
#define PENDING 0
#define resumed() skip
#define QN (2 * NC)
#include "state.pml"

#define READ 1
#define WRITE 2

/* N: mode, its writer, its TTL; readers: what is left of each one's end. remains: the key readers is
 * there still though N is gone (W7). */
byte mode, owner, ttl, end_of[IDS + 1];
bool remains;
byte q[QN], rq[QN], qn, rqn; /* writers, readers in the order of their tickets */
bool bar, below[IDS + 1];    /* the bar ~, and whose tickets are not above it */

/* What only the claims look at: what has really ended last; who is queued and has been
 * live ever since; who was queued when the reading began, or before a live writer came;
 * writers who came in since a reader queued. */
byte ended = WRITE;
bool steady[IDS + 1], allow[IDS + 1];
byte passed[IDS + 1];

inline ear_lost(e)
{
    n = 1;
    do
    :: n <= IDS ->
        if
        :: CL(n) == e -> steady[n] = 0; passed[n] = 0
        :: else
        fi;
        n++
    :: else -> break
    od;
    n = 0
}

/* ---- claims */

inline claim_entry(e)
{
    n = 0;
    do
    :: n < NC -> assert(S1 || n == e || !VALID(n) || (h[n].rd && h[e].rd)); n++
    :: else -> break
    od;
    n = 0
}

/* What a process believes in is its own at the server, for as long, and so is N. */
#define OWNS(id) ((mode == WRITE && owner == (id)) || (mode == READ && end_of[id] > 0))
inline claim_owner()
{
    n = 0;
    do
    :: n < NC ->
        assert(S2 || !VALID(n) || OWNS(h[n].id));
        assert(S1 || !VALID(n) || h[n].rd || mode == WRITE);
        assert(S1 || !VALID(n) || (ttl >= h[n].d &&
                                   (mode == WRITE || end_of[h[n].id] >= h[n].d)));
        n++
    :: else -> break
    od;
    n = 0
}

/* Whether a writer waits who was live all the time: r. */
inline steady_writer()
{
    m = 0; r = 0;
    do
    :: m < qn ->
        if
        :: steady[q[m]] && LIVES(CL(q[m])) -> r = 1
        :: else
        fi;
        m++
    :: else -> break
    od
}

/* Nobody live waits for what is free (W13). */
inline claim_settled()
{
    m = 0; r = 0;
    do
    :: m < qn ->
        assert(W13 || mode != 0 || !LIVES(CL(q[m])));
        if
        :: LIVES(CL(q[m])) -> r = 1
        :: else
        fi;
        m++
    :: else -> break
    od;
    m = 0;
    do
    :: m < rqn ->
        assert(W13 || mode == WRITE || !LIVES(CL(rq[m])) ||
               (mode == READ && r && !(bar && below[rq[m]])));
        m++
    :: else -> break
    od
}

/* ---- keys */

inline in_queue(id_) /* at: its place, or qn */
{
    at = 0;
    do
    :: at < qn && q[at] != id_ -> at++
    :: else -> break
    od
}
inline in_rqueue(id_)
{
    at = 0;
    do
    :: at < rqn && rq[at] != id_ -> at++
    :: else -> break
    od
}
inline take_out(at_)
{
    m = at_;
    do
    :: m + 1 < qn -> q[m] = q[m + 1]; m++
    :: else -> break
    od;
    qn--; q[qn] = 0
}
inline take_out_r(at_)
{
    below[rq[at_]] = 0; allow[rq[at_]] = 0; passed[rq[at_]] = 0;
    m = at_;
    do
    :: m + 1 < rqn -> rq[m] = rq[m + 1]; m++
    :: else -> break
    od;
    rqn--; rq[rqn] = 0
}
inline zrem(id_)
{
    in_queue(id_);
    if
    :: at < qn -> take_out(at)
    :: else
    fi;
    in_rqueue(id_);
    if
    :: at < rqn -> take_out_r(at)
    :: else
    fi;
    steady[id_] = 0
}

inline del_readers()
{
    m = 1;
    do
    :: m <= IDS -> end_of[m] = 0; m++
    :: else -> break
    od;
    remains = 0
}

/* lib/reading.lua: N's TTL is the highest end, and set nowhere else (W3) */
inline fit()
{
    m = 1;
    ttl = 0;
    do
    :: m <= IDS ->
        if
        :: end_of[m] > ttl -> ttl = end_of[m]
        :: else
        fi;
        m++
    :: else -> break
    od;
    if
    :: ttl == 0 -> mode = 0
    :: else
    fi
}
#ifndef BREAK_LAST_SETS_TTL
#define fitted(id) fit()
#else
#define fitted(id) ttl = end_of[id]
#endif

/* lib/token.lua */
inline token_next()
{
    newer = (kv_ok || time_ok);
    kv_ok = 1
}

inline open_read()
{
    mode = READ; owner = 0;
    del_readers();
    remains = 0;
    token_next();
    assert(S3 || newer);
    newer = 0
}

/* A reader comes in, with so much until its end. */
inline come_in(id_, ms)
{
    steady_writer();
    assert(L6 || PREFER != 16 || end_of[id_] > 0 || !r || allow[id_]);
    assert(GHOST || !gone[id_]);
    end_of[id_] = (end_of[id_] > ms -> end_of[id_] : ms)
}

inline write_in(id_, ms)
{
    assert(GHOST || !gone[id_]);
    del_readers();
    mode = WRITE; owner = id_; ttl = ms;
#ifndef BREAK_TOKEN
    token_next();
#endif
    assert(S3 || newer);
    newer = 0;
    m = 0;
    do
    :: m < rqn ->
        if
        :: steady[rq[m]] && LIVES(CL(rq[m])) -> passed[rq[m]]++
        :: else
        fi;
        assert(L6 || PREFER != 16 || passed[rq[m]] <= 1);
        allow[rq[m]] = 0;
        m++
    :: else -> break
    od
}

/* What ends opens the way to who is queued by then. */
inline writing_over()
{
    m = 0;
    do
    :: m < rqn -> allow[rq[m]] = 1; m++
    :: else -> break
    od
}

inline tell(id_)
{
    if
    :: ear[CL(id_)] && len(mb[CL(id_)]) < 2 -> mb[CL(id_)]!id_, jn[id_]
    :: else
    fi
}

/* ---- lib/settle.lua. named: who asks himself. */

/* next_writer: wr, the first who is alive and listens; 0: none */
inline next_writer(named_)
{
    at = 0; wr = 0;
    do
    :: at < qn && wr == 0 ->
        if
        :: present[CL(q[at])] == 0 -> steady[q[at]] = 0; take_out(at)
        :: present[CL(q[at])] > 0 && (q[at] == named_ || ear[CL(q[at])]) -> wr = q[at]
#ifdef BREAK_DEAF_CLOSES
        :: present[CL(q[at])] > 0 && q[at] != named_ && !ear[CL(q[at])] -> wr = q[at]
#endif
        :: else -> at++
        fi
    :: else -> break
    od
}

/* count: how many came in */
inline grant_readers() /* to: whom */
{
    i = 0; kept = 0; count = 0;
    do
    :: i < rqn && (to == 2 || (to == 1 && below[rq[i]])) ->
        y = rq[i];
        if
        :: present[CL(y)] == 0 -> steady[y] = 0; take_out_r(i)
        :: present[CL(y)] > 0 && (y == named || ear[CL(y)]) ->
            if
            :: mode == 0 -> open_read()
            :: else
            fi;
            come_in(y, A);
            take_out_r(i);
            steady[y] = 0;
            fitted(y);
            if
            :: y != named -> tell(y)
            :: else
            fi;
            count++
        :: else -> kept = 1; i++
        fi
    :: else -> break
    od;
    m = 0;
    do
    :: m < rqn && to > 0 -> below[rq[m]] = (kept && m < i); m++
    :: else -> break
    od;
    bar = (to > 0 -> kept : bar)
}

/* Which readers may come in: 0 none, 1 up to the bar, 2 all. */
#ifndef BREAK_PAST_THE_WRITER
#define OPEN_TO(shut) ((shut) -> (bar -> 1 : 0) : 2)
#else
#define OPEN_TO(shut) 2
#endif

inline settle_free() /* what ended: g */
{
    next_writer(named);
    wr2 = wr;
    to = OPEN_TO(wr != 0 && (g == READ || PREFER == 1));
    grant_readers();
    wr = wr2; wr2 = 0;
    if
    :: count == 0 && wr != 0 ->
        in_queue(wr);
        take_out(at);
        steady[wr] = 0;
        write_in(wr, A);
        if
        :: wr != named -> tell(wr)
        :: else
        fi
    :: else
    fi
}

/* Of a free lock: g, what the caller has ended, or what is known of it (W7). */
inline settle_begins()
{
    if
    :: mode == 0 && ended == WRITE -> writing_over()
    :: else
    fi;
    if
#ifndef BREAK_NO_REMAINS
    :: g == 0 && remains -> g = READ
#endif
    :: g == 0 && !remains -> g = WRITE
    :: else
    fi;
#ifdef BREAK_WRITER_AGAIN
    g = READ;
#endif
    reads = (mode == READ)
}

/* After a reading has begun nobody closes it by asking alone: he is to listen (W10). */
inline settle_reading()
{
    wr = 0;
    if
    :: !joining ->
#ifndef BREAK_ASKING_CLOSES
        next_writer(0)
#else
        next_writer(named)
#endif
    :: else
    fi;
    to = OPEN_TO(wr != 0);
    grant_readers()
}
#define ASKS_DEAF (count > 0 && wr != 0 && wr == named && !ear[CL(wr)])

/* ---- the scripts; x: the id, p: its process */

inline queue_up()
{
    present[p] = PRES;
    if
    :: sl[s].arg ->
        in_rqueue(x);
        if
        :: at == rqn ->
            steady_writer();
            allow[x] = !r; passed[x] = 0; steady[x] = ear[p];
            rq[rqn] = x; rqn++; jn[x]++
        :: else
        fi
    :: else ->
        in_queue(x);
        if
        :: at == qn -> steady[x] = ear[p]; q[qn] = x; qn++; jn[x]++
        :: else
        fi
    fi;
    w = QUEUED;
    t = jn[x]
}

/* what is left of x's hold */
inline owns()
{
    l = (mode == WRITE && owner == x -> ttl : (mode == READ -> end_of[x] : 0))
}

/* Each script has a part before the hand-over and one after it; settles: whether it runs
 * between them. */
inline waiting() /* i: whether x is queued */
{
    in_queue(x); i = (at < qn); in_rqueue(x); i = (i || at < rqn)
}

inline entered() /* by its own request: with the whole lease */
{
    if
    :: mode == WRITE -> ttl = L
    :: else -> end_of[x] = L; fitted(x)
    fi;
    w = HELD;
#ifndef BREAK_D_FROM_N
    l = L
#else
    l = ttl
#endif
}

inline acquire() /* rwlock_read.lua, rwlock_write.lua, lib/behind.lua */
{
    waiting();
    owns();
    if
    :: l > 0 && (mode == READ || !sl[s].arg) -> entered()
    :: l > 0 && mode == WRITE && sl[s].arg -> w = HELD
    :: l == 0 && marker[x] > 0 -> w = REFUSED
    :: l == 0 && marker[x] == 0 && sl[s].age > CT -> w = LATE
    :: l == 0 && marker[x] == 0 && sl[s].age <= CT && jn[x] == 3 && !i -> w = LATE
    :: else ->
        if
        :: mode == WRITE -> queue_up()
        :: else ->
            if
            :: i -> queue_up(); named = x
            :: else
            fi;
            w = 0;
            settles = 1
        fi
    fi
}

inline acquire_2()
{
    owns();
    waiting();
    if
    :: l > 0 -> entered()
    :: l == 0 && i -> w = QUEUED; t = jn[x]
    :: l == 0 && !i && sl[s].arg -> /* a reader who comes */
        if
        :: mode == READ && PREFER != 0 -> next_writer(0)
        :: else -> wr = 0
        fi;
#ifdef BREAK_JOIN_PAST_A_WRITER
        wr = 0;
#endif
        if
        :: mode == WRITE || wr != 0 -> queue_up()
        :: else ->
            if
            :: mode == 0 -> open_read()
            :: else
            fi;
            come_in(x, L);
            fitted(x);
            w = HELD; l = L
        fi
    :: l == 0 && !i && !sl[s].arg ->
        if
#ifndef BREAK_WRITER_JOINS
        :: mode == 0 ->
#else
        :: mode != WRITE ->
#endif
            write_in(x, L); w = HELD; l = L
        :: else -> queue_up()
        fi
    fi
}

inline refresh()
{
    waiting();
    if
    :: i -> present[p] = PRES; named = x
    :: else
    fi;
    settles = 1
}

inline refresh_2()
{
    waiting();
    owns();
    if
    :: i -> w = QUEUED; t = jn[x]; l = 0
    :: !i && l > 0 ->
        w = HELD;
#ifdef BREAK_D_FROM_N
        l = ttl;
#endif
    :: else -> w = GONE
    fi
}

inline release()
{
    owns();
    w = (l > 0 -> RELEASED : NOTMINE);
    if
    :: l > 0 && mode == READ ->
        end_of[x] = 0;
#ifndef BREAK_ANY_IS_LAST
        fit();
#else
        mode = 0; ttl = 0;
#endif
        if
        :: mode == 0 -> g = READ; del_readers()
        :: else
        fi
#ifndef BREAK_RELEASE_ANYBODY
    :: l > 0 && mode == WRITE ->
#else
    :: mode == WRITE ->
#endif
        mode = 0; owner = 0; ttl = 0; g = WRITE
    :: else -> zrem(x)
    fi;
    l = 0;
    if
    :: g != 0 -> ended = g
    :: else
    fi;
    if
    :: sl[s].arg -> marker[x] = MARKER
    :: else
    fi;
    settles = 1
}

inline cancel()
{
    zrem(x);
#ifndef BREAK_NO_MARKER
    marker[x] = MARKER;
#endif
#ifndef BREAK_CANCEL_LEAVES_SHUT
    settles = 1
#else
    claim_settled()
#endif
}

inline cancel_2()
{
    owns();
    w = (l > 0 -> YOURS : REMOVED)
}

inline renew()
{
    owns();
    if
    :: l > 0 -> entered()
#ifdef BREAK_RENEW_REVIVES
    :: l == 0 && mode == READ -> come_in(x, L); fit(); w = HELD; l = L
#endif
    :: else -> w = GONE
    fi
#ifdef BREAK_COMMON_END
    ;
    m = 1;
    do
    :: m <= IDS && w == HELD && mode == READ ->
        if
        :: end_of[m] > 1 && m != x -> end_of[m] = 1
        :: else
        fi;
        m++
    :: else -> break
    od
#endif
}

inline downgrade() /* rwlock_downgrade.lua */
{
    if
    :: mode == WRITE && owner == x ->
        l = (ttl > L -> ttl : L);
        writing_over();
        ended = WRITE;
        open_read();
#ifndef BREAK_DOWNGRADE_SHORT
        end_of[x] = l;
#else
        end_of[x] = 1;
#endif
        fit();
        joining = (PREFER != 1);
#ifndef BREAK_DOWNGRADE_SHUT
        settles = 1
#else
        claim_settled()
#endif
    :: else
    fi
}

inline downgrade_2()
{
    owns();
    w = (l > 0 -> HELD : GONE)
}

inline absent()
{
    y = 0;
    do
    :: y < NC ->
        m = 0; r = 0;
        do
        :: m < QN ->
            if
            :: (q[m] != 0 && CL(q[m]) == y) || (rq[m] != 0 && CL(rq[m]) == y) -> r = 1
            :: else
            fi;
            m++
        :: else -> break
        od;
        if
        :: !r -> present[y] = 0
        :: else
        fi;
        y++
    :: else -> break
    od
}

#include "process.pml"

#define RUNNABLE(s) (sl[s].st == SENT && ((busy == 0 && CALM) || busy == sl[s].who + 1))
/* The server: one request at a time, of those under way any. */
proctype Net()
{
    byte s, x, y, p, w, l, t, i, m, at, g, named, wr, wr2, count;
    bool r, kept, settles, joining, reads;
    byte to;
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
            :: sl[s].kind == DOWN -> downgrade()
            fi;
            m = 0 };
        if
        :: settles ->
            d_step { settle_begins(); m = 0 };
            if
            :: mode == 0 -> d_step { settle_free(); m = 0 }
            :: mode != 0
            fi;
            if
            :: (reads && mode == READ) || ASKS_DEAF -> d_step { settle_reading(); m = 0 }
            :: !((reads && mode == READ) || ASKS_DEAF)
            fi;
            d_step { claim_settled(); m = 0 }
        :: !settles
        fi;
        d_step {
            if
            :: sl[s].kind == ACQ && w == 0 -> acquire_2()
            :: sl[s].kind == REF -> refresh_2()
            :: sl[s].kind == CAN -> cancel_2()
            :: sl[s].kind == DOWN -> downgrade_2()
            :: else
            fi;
            m = 0 };
        d_step {
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
                        (mode != 0 -> ttl : 100)
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
            named = 0; wr = 0; wr2 = 0; count = 0; r = 0; kept = 0;
            settles = 0; joining = 0; reads = 0; to = 0
        } }
    od
}

inline tick_keys()
{
    n = 1;
    do
    :: n <= IDS -> down_1(end_of[n]); n++
    :: else -> break
    od;
    n = 0;
    if
    :: ttl > 0 ->
        ttl--;
        if
        :: ttl == 0 ->
            ended = mode;
            remains = (mode == READ);
            mode = 0; owner = 0
        :: else
        fi
    :: else
    fi
}

#ifndef NOTIME
proctype Clock()
{
end:
    do
    :: d_step { TIME_GOES_ON -> tick_all(); tick_keys(); claim_owner() }
    od
}
#endif

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
#ifndef NOTIME
        run Clock();
#endif
        run Client(0);
        run Client(1);
#if NC > 2
        run Client(2)
#endif
    }
}
