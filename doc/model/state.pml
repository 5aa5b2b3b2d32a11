/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State and time of a model of rlock: constants, the network, what processes know, and the
 * keys that both types of lock have. process.pml says what a process does with it,
 * exclusive.pml and rwlock.pml what the scripts do. See README.md.
 *
 * Time is counted in ticks. Everything that has an end (TTL, D, presence, marker, timer)
 * is a number of ticks that is left, everything that has a beginning (a request) an age;
 * one tick changes all of them at once. So the server's clock and the processes' agree;
 * the 1 % and 2 ms of D are what makes that true of real ones.
 *
 * A process that is not chosen to run is a stopped one: in the configurations for safety,
 * time passes at any moment, so each step may come arbitrarily late. In those for
 * liveness (LIVE), time passes only when no running process has anything to do and the
 * network is empty; who is stopped or killed, is so by a step of its own.
 */

#ifndef NC
#define NC 2 /* processes, one thread each */
#endif
#ifndef K
#define K 2 /* acquisitions of each */
#endif
#ifndef OTHERS
#define OTHERS K /* of the processes but the first */
#endif
#define CALLS(c) ((c) == 0 -> K : OTHERS)
#ifndef FAULTS
#define FAULTS 1 /* requests or answers lost or late, connections lost */
#endif
#ifndef GIVEUPS
#define GIVEUPS 1 /* calls that time out, in all */
#endif
#ifndef STOPS
#define STOPS 0 /* LIVE: stops and kills */
#endif
#ifndef SHORTER
#define SHORTER 0 /* calls of extend to a shorter lease */
#endif
#ifndef DOWNGRADES
#define DOWNGRADES 0 /* of writers to readers */
#endif
#ifndef EARS
#define EARS 1 /* mailbox connections lost, in all: not one of FAULTS */
#endif
#ifdef LIVE
#define L 5    /* lease */
#define A 4    /* TTL of a grant */
#define PRES 7 /* presence */
#define POLL 3 /* presence / 3, in whole ticks */
#define CT 1   /* command timeout: how old an acquire may be when it runs (T3) */
#define MARKER 3
#else
#ifndef FINE
#define L 2
#define A 1
#define CT 0
#define MARKER (CT + 1)
#else
#define L 3
#define A 2
#define CT 1
#ifndef BREAK_MARKER_SHORT
#define MARKER (CT + 1)
#else
#define MARKER CT
#endif
#endif
#ifndef PRES
#define PRES 1
#endif
#endif
#define AGE_MAX L

#if OTHERS > K
#define KM OTHERS
#else
#define KM K
#endif
#define IDS (NC * KM)
#ifndef BREAK_FORK
#define CL(id) (((id) - 1) / KM)
#define ID(c, k) ((c) * KM + (k) + 1)
#else
#define CL(id) 0
#define ID(c, k) ((k) + 1)
#endif

/* kinds of requests; arg: of ACQ 1 a try; of REL 1 leave a marker; of REN the lease */
#define ACQ 1
#define REL 2
#define CAN 3
#define REN 4
#define REF 5
#define DOWN 6
/* of a slot */
#define FREE 0
#define SENT 1
#define DONE 2
/* what is answered */
#define HELD 1
#define QUEUED 2
#define GONE 3
#define BUSY 4
#define REFUSED 5
#define LATE 6
#define RELEASED 7
#define NOTMINE 8
#define YOURS 9
#define REMOVED 10
/* of a hold */
#define IDLE 0
#define ASK 1
#define IN 2
#define OUT 3 /* its release is under way */
#define OFF 4 /* its cancel is under way */

/* Names of the claims: an assertion begins with the one that it belongs to. ONLY=S1
 * looks at that one alone: at what a broken variant is to break. */
#ifdef ONLY
#define OTHER 1
#else
#define OTHER 0
#endif
hidden byte S1 = OTHER, S2 = OTHER, S3 = OTHER, S4 = OTHER, L1 = OTHER, L2 = OTHER;
hidden byte L3 = OTHER, L4 = OTHER, L5 = OTHER, L6 = OTHER, CODE = OTHER, GHOST = OTHER, W13 = OTHER;

/* Requests under way. Of each process one of a caller and one of the watchdog; and those
 * that nobody waits for any more, but that may still run. */
typedef Slot { byte st, kind, id, arg, age, what, left, tk, who }
#define ORPHANS FAULTS
#define SLOTS (2 * NC + ORPHANS)
Slot sl[SLOTS];

/* What a process knows of its hold. d: what is left until D; tage: since the request left
 * whose answer named the ticket tk; gt: ticket of a grant that is not believed yet. */
typedef Hold {
    byte st, id, d, tk, tage, gt, tries;
    bool need, granted, unk, sent, relunk, rd, down
}
Hold h[NC];
byte nk[NC];   /* acquisitions begun */
byte gave[NC]; /* the hold that was left last */
byte bgid[NC];   /* to be released in the background */
bool bglost[NC];        /* of a lost one: one release, no repetition */
byte pt[NC];            /* LIVE: ticks to the next poll */
bool runs[NC], ear[NC], dead[NC];
chan mb[NC] = [2] of { byte, byte }; /* grants: id, ticket */
byte faults = FAULTS, giveups = GIVEUPS, stops = STOPS, shorter = SHORTER;
byte downs = DOWNGRADES, ears = EARS;

/* at the server, for both types of lock */
byte present[NC], marker[IDS + 1], jn[IDS + 1];
bool kv_ok = 1, time_ok = 1; /* the token key, the clock are not behind the last token */
bool newer; /* the token that was drawn is beyond it */

/* What only the claims look at: an id whose end was confirmed; one that was forced out; a
 * process that subscribed anew, or was stopped, and has not asked since. */
byte n; /* of a loop in one step */
bool gone[IDS + 1], excused[IDS + 1], resub[NC], paused[NC];

/* An answer's lease, counted from when its request left (t_s); from then on it runs down
 * like D, read or not. */
#ifndef BREAK_D_FROM_REPLY
#define REMAINS(ms, age) ((ms) > (age) -> (ms) - (age) : 0)
#else
#define REMAINS(ms, age) (ms)
#endif

#define VALID(c) (h[c].st == IN && h[c].d > 0)
#define LIVES(c) (present[c] > 0 && ear[c])

/* A prompt process has each request answered before anything else happens. */
#if defined(SYNC)
#define PROMPT(c) 1
#elif defined(ONE_SLOW)
#define PROMPT(c) ((c) > 0)
#else
#define PROMPT(c) 0
#endif
byte busy; /* the prompt process that waits for its answer, plus 1 */
/* ... and does by itself at once what it can. */
#define SETTLED(c) (len(mb[c]) == 0 && bgid[c] == 0 && \
    !(h[c].st == ASK && (h[c].need || h[c].granted)) && !(h[c].st == IN && h[c].d == 0))
#ifdef ONE_SLOW
#define CALM SETTLED(1)
#else
#define CALM 1
#endif
#define GO(c) (runs[c] && busy == 0 && (PROMPT(c) || CALM))
#define HEARS(c) (runs[c] && (busy == 0 || busy == (c) + 1))

/* ---- time */

inline down_1(v) { if :: v > 0 -> v-- :: else fi }

/* Of everything but the keys of the lock. */
inline tick_all()
{
    n = 0;
    do
    :: n < NC ->
        down_1(h[n].d); down_1(present[n]);
#ifdef LIVE
        down_1(pt[n]);
#endif
       
        if
        :: h[n].tk != 0 && h[n].tage < A -> h[n].tage++
        :: else
        fi;
        n++
    :: else -> break
    od;
    n = 0;
    do
    :: n < SLOTS ->
        if
        :: sl[n].st == SENT && sl[n].kind != REL && sl[n].age < AGE_MAX -> sl[n].age++
        :: sl[n].st == DONE && sl[n].age < A -> sl[n].age++
        :: else
        fi;
#ifndef BREAK_D_FROM_REPLY
        if
        :: sl[n].st == DONE && sl[n].left > 0 -> sl[n].left--
        :: else
        fi;
#endif
        n++
    :: else -> break
    od;
    n = 1;
    do
    :: n <= IDS -> down_1(marker[n]); n++
    :: else -> break
    od;
    n = 0
}

/* LIVE: what a running process would do at once. */
#define URGENT(c) \
    (runs[c] && (len(mb[c]) > 0 || sl[c].st != FREE || sl[NC + (c)].st != FREE || \
     (h[c].st == ASK && (h[c].granted || h[c].need || PT0(c))) || bgid[c] != 0 || \
     (h[c].st == IN && (D0(c) || h[c].d == 1)) || \
     (h[c].st == IDLE && nk[c] < CALLS(c) && WANTS(c))))
#ifndef BREAK_LOSS_UNTOLD
#define D0(c) (h[c].d == 0)
#else
#define D0(c) 0
#endif
#ifndef BREAK_NO_POLL
#define PT0(c) (pt[c] == 0)
#else
#define PT0(c) 0
#endif

#if NC == 2
#define ANY_URGENT (URGENT(0) || URGENT(1))
#elif NC == 3
#define ANY_URGENT (URGENT(0) || URGENT(1) || URGENT(2))
#endif
#if FAULTS == 0
#define ORPHANED 0
#else
#define ORPHANED (sl[2 * NC].st != FREE)
#endif
#ifdef LIVE
#define TIME_GOES_ON (!ANY_URGENT && !ORPHANED && busy == 0)
#else
#define TIME_GOES_ON (busy == 0 && CALM)
#endif
