/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of one process that read without asking, and the hold that the last of them
 * retains (K14), against a writer of another process. The process learns of the writer by
 * a message that may be lost (K15), or by a question. See README.md.
 *
 * The process has one hold at a time; its id is a number that goes round. Time is
 * questions: a bounded number of sections begins until the server has answered one.
 */
#ifndef T
#define T 2 /* threads */
#endif
#ifndef ROUNDS
#define ROUNDS 5 /* of threads, in all */
#endif
#ifndef WRITES
#define WRITES 2 /* times that the writer comes */
#endif
#ifndef LOSSES
#define LOSSES 1 /* messages */
#endif
#ifndef ENDS
#define ENDS 1 /* leases that run out */
#endif
#define PER 1 /* sections between two askings */

#ifdef ONLY
#define OTHER 1
#else
#define OTHER 0
#endif
hidden byte S1 = OTHER, L1 = OTHER, L6 = OTHER;

/* of the hold */
#define FREE 0
#define ASK 1
#define IN 2 /* INSIDE, or IDLE with no part */
#define GOING 3
byte hs, id, parts, joins;
bool valid;         /* D has not passed */
bool tells, others; /* as in hold.h */
byte unasked;       /* sections since the last answer */

/* of a thread */
#define OUT 0
#define WAIT 1 /* for the hold that asks, or its own join */
#define INSIDE 2
byte st[T];
bool joining[T];
byte rounds = ROUNDS, writes = WRITES, losses = LOSSES, ends = ENDS;

/* requests: sent, then executed with what it answers */
#define SENT 1
#define DONE 2
#define HELD 1
#define SHARED 2
#define QUEUED 3
byte acq, acqwhat, rel, ren, join, joinwhat;
bool acqw, acqt, renw, rent, joinw; /* a writer waits; a recall will come */
byte renid;

/* at the server */
bool rd, keep, queued; /* reads; is in keepers; waits in rqueue */
bool wq, wr;
byte msg, msgid; /* "wanted" */

/* ghosts: the process knows of the writer, or an answer would say so; sections since the
 * writer waits */
bool knows;
byte past;

#define USED (parts > 0 || joins > 0)

inline give_back()
{
    hs = GOING; rel = SENT;
#ifndef BREAK_RETAKE_GOING
    tells = 0;
#endif
    others = 0
}

/* readshare.c, is_open */
#ifdef BREAK_JOINS_THOUGH_WANTED
#define OPEN_TO_JOIN (hs == IN && valid && tells)
#else
#define OPEN_TO_JOIN (OPEN)
#endif
#ifdef BREAK_KEEPS_THOUGH_WANTED
#define OPEN_TO_KEEP (valid && tells)
#else
#define OPEN_TO_KEEP (OPEN)
#endif
#ifdef BREAK_RETAKE_LOST
#define OPEN (hs == IN && tells && !others)
#elif defined(BREAK_RETAKE_GOING)
#define OPEN ((hs == IN || hs == GOING) && valid && tells && !others)
#else
#define OPEN (hs == IN && valid && tells && !others)
#endif
#ifdef BREAK_NEVER_ASKS
#define IN_TIME 1
#else
#define IN_TIME (unasked < PER)
#endif

inline came_in()
{
    assert(S1 || rd);
    assert(L6 || !knows);
    parts++;
    st[t] = INSIDE;
    unasked = (unasked < PER -> unasked + 1 : PER);
    past = (wq && past < 9 -> past + 1 : past);
    assert(L6 || past <= 2 * PER)
}

proctype Thread(byte t)
{
end:
    do
    :: atomic { st[t] == OUT && rounds > 0 && OPEN_TO_JOIN && IN_TIME -> rounds--; came_in() }
    :: atomic { st[t] == OUT && rounds > 0 && hs == FREE && rel == 0 ->
        rounds--; st[t] = WAIT; hs = ASK; acq = SENT; id = 1 - id; valid = 0; others = 0; tells = 0 }
    /* W21: it asks whether it may share */
    :: atomic { st[t] == OUT && rounds > 0 && hs == IN && valid && !(OPEN) && join == 0 && parts > 0 ->
        rounds--; st[t] = WAIT; joining[t] = 1; joins++; join = SENT }
    :: atomic { joining[t] && join == DONE ->
        join = 0; joins--; joining[t] = 0;
        others = others || joinw;
        knows = knows || (joinw && wq);
        if
        :: joinwhat == SHARED && hs == IN && valid -> assert(S1 || rd); parts++; st[t] = INSIDE
        :: else -> st[t] = OUT
        fi;
        if
        :: hs == IN && !USED -> give_back()
        :: else
        fi }
    /* rlk_readshare_unlock_locked */
    :: atomic { st[t] == INSIDE ->
        st[t] = OUT; parts--;
        if
        :: hs == IN && !USED && OPEN_TO_KEEP ->
            assert(L1 || !knows)
        :: hs == IN && !USED && !(OPEN_TO_KEEP) -> give_back()
        :: else
        fi }
    od
}

/* The watchdog and the subscriber, and the answer to the one who asks for all. */
proctype Process()
{
    byte i;
end:
    do
    :: atomic { acq == DONE && hs == ASK ->
        if
        :: acqwhat == HELD ->
            acq = 0; hs = IN; valid = 1; unasked = 0;
            tells = acqt;
#ifdef BREAK_EARLY_FORGOTTEN
            others = acqw;
#else
            others = others || acqw; /* by a message that came before (K6) */
#endif
            i = 0;
            do
            :: i < T ->
                if
                :: st[i] == WAIT && !joining[i] -> st[i] = INSIDE; parts++
                :: else
                fi;
                i++
            :: else -> break
            od;
            i = 0
        :: else -> acq = 0 /* waits for the grant */
        fi }
    /* asks (H8, K5) */
    :: atomic { hs == IN && valid && ren == 0 -> ren = SENT; renid = id }
    :: atomic { ren == DONE ->
        ren = 0;
        if
        :: hs == IN && renid == id ->
            unasked = 0;
            tells = tells || rent;
#ifndef BREAK_ANSWER_FORGOTTEN
            others = others || renw;
#endif
            knows = knows || (renw && wq);
            if
            :: !USED && others -> give_back()
            :: else
            fi
        :: else
        fi }
    /* kept for long enough */
    :: atomic { hs == IN && !USED -> give_back() }
    :: atomic { rel == DONE -> rel = 0; hs = FREE; valid = 0 }
    /* "wanted" (K6) */
    :: atomic { msg == 1 ->
        msg = 0;
        if
        :: (hs == IN || hs == ASK) && msgid == id ->
            others = 1;
            knows = knows || wq;
            if
            :: hs == IN && !USED -> give_back()
            :: else
            fi
        :: else
        fi }
    :: atomic { msg == 1 && losses > 0 -> losses--; msg = 0 }
    /* D passes, and then the lease; the threads inside learn of it */
    :: atomic { hs == IN && valid && ends > 0 -> ends--; valid = 0 }
    :: atomic { hs == IN && !valid && joins == 0 ->
        i = 0;
        do
        :: i < T -> st[i] = (st[i] == INSIDE -> OUT : st[i]); i++
        :: else -> break
        od;
        i = 0; parts = 0;
        give_back() }
    od
}

inline tell()
{
    if
    :: keep -> keep = 0; msg = 1; msgid = id
    :: else
    fi
}

/* Whatever ends the reading hands over (L1). */
inline ends_reading()
{
    rd = 0; keep = 0;
    if
    :: wq -> wq = 0; wr = 1; knows = 0; past = 0
    :: else
    fi
}

/* The scripts. */
proctype Server()
{
end:
    do
    :: atomic { acq == SENT ->
        acq = DONE;
        if
        :: wr || wq -> acqwhat = QUEUED; queued = 1
        :: else -> acqwhat = HELD; rd = 1; keep = 1; acqt = 1; acqw = 0
        fi }
    :: atomic { join == SENT ->
        join = DONE;
        joinw = wq;
        if
        :: rd && !wq -> joinwhat = SHARED; keep = 1
        :: else -> joinwhat = QUEUED
        fi }
    :: atomic { ren == SENT ->
        ren = DONE;
        renw = wq; rent = 0;
        if
#ifdef BREAK_ENLISTS_ALWAYS
        :: rd && renid == id -> keep = 1; rent = 1; renw = 0; knows = knows || wq
#else
        :: rd && renid == id && !wq -> keep = 1; rent = 1
#endif
        :: else
        fi }
    :: atomic { rel == SENT -> rel = DONE; if :: rd -> ends_reading() :: else fi }
    /* the lease is over */
    :: atomic { rd && hs == IN && !valid -> ends_reading() }
    od
}

proctype Writer()
{
end:
    do
    :: atomic { writes > 0 && !wq && !wr && !rd && !queued && acq != DONE -> writes--; wr = 1 }
    :: atomic { writes > 0 && !wq && !wr && rd ->
        writes--; wq = 1; past = 0; knows = 0;
        tell() }
    /* a try joins nothing */
    :: atomic { writes > 0 && !wq && !wr && rd -> writes--; tell() }
    /* gives up */
    :: atomic { wq -> wq = 0; knows = 0; past = 0;
        if
        :: queued -> queued = 0; rd = 1; acq = DONE; acqwhat = HELD; acqw = 0; acqt = 0
        :: else
        fi }
    /* the writer is done: a waiting reader enters, and is not in `keepers` yet */
    :: atomic { wr && !(queued && acq != 0) -> wr = 0;
        if
        :: queued -> queued = 0; rd = 1; acq = DONE; acqwhat = HELD; acqw = 0; acqt = 0
        :: else
        fi }
    :: atomic { wr -> assert(S1 || !(hs == IN && valid && USED)); assert(S1 || !rd) }
    od
}

init
{
    byte i;
    atomic {
#ifdef ONLY
        ONLY = 0;
#endif
        run Process(); run Server(); run Writer();
        i = 0;
        do
        :: i < T -> run Thread(i); i++
        :: else -> break
        od
    }
}
