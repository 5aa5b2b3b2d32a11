/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crash guard (G2, G3, G7-G13, G15): clients of one host and one robust mutex, which
 * are killed at any step; their files, which the kernel keeps locked as long as they live;
 * waiting clients, which look at the files and recover the dead ones; and the requests of
 * dead and of recovering clients, which arrive late. See README.md.
 *
 * One d_step or atomic is one critical section of a process, one system call, one store
 * that others find in the file of a dead client, or one script. Time: the lease of a dead
 * holder ends at any moment, that of a live holder after its D, which may pass at any
 * moment. Ticks, from the first death on, are there for requests and markers alone.
 */
#ifndef N
#define N 3 /* clients: 0 opens while the others run */
#endif
#ifndef GUARDED
#define GUARDED 3 /* this many clients have a file and look; the others are of another host */
#endif
#ifdef DAEMON
#define IS_DAEMON(c) ((c) == GUARDED - 1) /* looks all the time, and takes nothing */
#else
#define IS_DAEMON(c) 0
#endif
#ifndef KILLS
#define KILLS 1 /* 2: client 1 may be killed, too */
#endif
#ifndef CALLS
#define CALLS 1 /* of client 0; of the others 1 */
#endif
#ifndef KEEPS
#define KEEPS 1 /* times that a retained hold is entered again; 0: none is retained */
#endif
#ifndef LEASES
#define LEASES 1 /* 0: that of a dead holder never ends, so only a recovery helps */
#endif
#ifndef ENDS
#define ENDS 0 /* D of live holders that pass */
#endif
#ifndef FAULTS
#define FAULTS 0 /* connections lost: the acquire may still arrive */
#endif
#ifndef ROOM
#define ROOM 1 /* 0: none in the table of client 0 */
#endif
#ifndef TICKS
#define TICKS 3
#endif
/* so old may an acquire be when it runs (T3), and so long is its sender's marker */
#define CT(c) ((c) == 0 -> 1 : 0)
#define LIFE(c) (CT(c) + 1)
#define AGE_MAX 2
#define MAY_DIE(c) ((c) < KILLS)
#define K (CALLS + 1)
#define CL(id) (((id) - 1) / K)
#define ID(c) ((c) * K + kk[c] + 1)
#define NOBODY 0

/* of a call */
#define BORN 0 /* there is no file yet */
#define PUBLISHED 1
#define OUT 2
#define NOTED 3 /* the intent is written */
#define ASK 4
#define WAIT 5
#define GOT 6
#define SAID 7 /* the flag says that it is inside; lock() has not returned */
#define IN 8
#define DONE 9 /* with its last store */
#define LEFT 10 /* and the flag says so */
#define IDLE 11
#define BACK 12 /* its release is under way */
#define END 13
/* of the flag, as in src/state/intent.h */
#define NEVER 0
#define INSIDE 1
#define OUTSIDE 2
#define UNKNOWN 3 /* no intent */
/* requests, and what is answered */
#define FREE 0
#define ACQ 1
#define REL 2
#define HELD 3
#define QUEUED 4
#define REFUSED 5
#define LATE 6
#define RELEASED 7
/* of the mark, in a release */
#define WHOLE 0
#define DIED 1
/* of a recovery */
#define TAKEN 1 /* the lock of the file */
#define SENT 2
#define ANSWERED 3

#ifdef ONLY
#define OTHER 1
#else
#define OTHER 0
#endif
hidden byte S1 = OTHER, S2 = OTHER, GHOST = OTHER, MARK = OTHER, CLEAN = OTHER,
            BURIED = OTHER;

/* of the clients */
byte hs[N], kk[N], flag[N];
bool dead[N], valid[N], slot[N];
bool told[N];    /* of a death; also the field of N */
bool unknown[N]; /* an acquire of the id may still be under way */
bool gone[N];    /* what was lost was given back, or was refused */
byte rq[N], age[N];
bool how[N], late[N]; /* of a release: what becomes of the mark; it is of what was lost */
byte kills = KILLS, keeps = KEEPS, ends = ENDS, faults = FAULTS, ticks = TICKS;
byte ghost, ghost_age; /* the acquire of a lost connection */

/* the files, each by its client */
bool named[N];
byte lk[N];      /* the kernel's lock: 1 + the client that has it */
bool closing[N]; /* the listening clients know of the close; the lock is freed later */
/* of a client: whether the kernel reports files to it, whether it is about to list them,
 * and how it is to look at each file that may be a dead client's */
bool listens[N], lists[N];
byte look[N * 2];
#define LOOK(x, v) look[(x) * 2 + (v)]
#define ONCE 1    /* whether it is locked or not */
#define LATER 2   /* when a lock that is being freed is free */
#define AT_ONCE 3 /* and if it is locked, later again */

/* recoveries, by the recovering client */
byte bs[N], bv[N], bflag[N];
byte bq[N]; /* 1 + the dead client that the script under way is about */

/* at the server */
byte owner, mark; /* ids */
bool mark2;       /* the marked id had learned of a death */
bool inq[N], cancelled[N * K];
byte marker[N]; /* of the uuid */

/* what was true */
bool buried[N];
bool news;   /* somebody died inside, or lost it there, and nobody has made that good */
bool excuse; /* a mark may be there without that: see README.md */

#define HOLDS(c) (owner == ID(c))
#define OWNS(c) (owner != NOBODY && CL(owner) == (c))
#define WAITS(c) (hs[c] == ASK || hs[c] == WAIT)
#define LOOKS(c) ((c) < GUARDED && (hs[c] == WAIT || IS_DAEMON(c)))
#define CALLS_LEFT(c) (!IS_DAEMON(c) && kk[c] < ((c) == 0 -> CALLS : 1))
#define CLOSES(c) (RUNS(c) && hs[c] == OUT && kk[c] > 0)
#define RUNS(c) (!dead[c] && hs[c] != END)
#define UNDER_WAY(c) (rq[c] == ACQ || rq[c] == REL)
/* The server has, and lets in, nothing more of it. */
#define NOTHING_OF(v) (!OWNS(v) && !inq[v] && (buried[v] || rq[v] != ACQ))
/* An acquire of a dead one. */
#define GHOST_OF(v) (dead[v] && (rq[v] == ACQ || (ghost != 0 && CL(ghost) == (v))))
#define LIVE_IN_Q(c) (inq[c] && !dead[c])
#if N > 3
#define ANY_LIVE_IN_Q (LIVE_IN_Q(0) || LIVE_IN_Q(1) || LIVE_IN_Q(2) || LIVE_IN_Q(3))
#else
#define ANY_LIVE_IN_Q (LIVE_IN_Q(0) || LIVE_IN_Q(1) || LIVE_IN_Q(2))
#endif

/* ---- scripts */

inline unmark()
{
    mark = NOBODY; mark2 = 0; excuse = 0
}

inline take(c)
{
    owner = ID(c);
    told[c] = (mark != NOBODY && (mark != ID(c) || mark2));
    mark = ID(c); mark2 = told[c];
    excuse = (excuse || flag[c] == INSIDE); /* once more, after it was lost */
    inq[c] = 0;
    assert(GHOST || !dead[c] || !buried[c])
}

inline grant(c)
{
    take(c);
    valid[c] = WAITS(c)
}

/* Also to a dead one, who is still present and seems to listen. */
inline handover()
{
    if
    :: owner == NOBODY && inq[0] -> grant(0)
    :: owner == NOBODY && inq[1] -> grant(1)
    :: owner == NOBODY && inq[2] -> grant(2)
#if N > 3
    :: owner == NOBODY && inq[3] -> grant(3)
#endif
    :: owner != NOBODY || !ANY_LIVE_IN_Q
    fi
}

inline acquire(c, id, old, answer)
{
    if
    :: owner == id -> answer = HELD
    :: owner != id && (marker[c] > 0 || cancelled[id - 1]) -> answer = REFUSED
    :: owner != id && !(marker[c] > 0 || cancelled[id - 1]) ->
        if
        :: old > CT(c) -> answer = LATE
        :: old <= CT(c) && owner == NOBODY -> take(c); answer = HELD
        :: old <= CT(c) && owner != NOBODY ->
            inq[c] = 1; answer = QUEUED;
            assert(GHOST || !dead[c] || !buried[c])
        fi
    fi
}

/* lua/lib/release.lua, and unmark of lua/lib/robust.lua */
inline release(c)
{
    if
    :: mark == ID(c) && how[c] == WHOLE && (HOLDS(c) || late[c]) -> unmark()
    :: else
    fi;
    if
    :: HOLDS(c) -> owner = NOBODY
    :: else
    fi;
    inq[c] = 0;
    cancelled[ID(c) - 1] = unknown[c];
    handover()
}

#ifndef BREAK_NO_OWNER
#define HIT(v) OWNS(v)
#else
#define HIT(v) (owner != NOBODY)
#endif
#if defined(BREAK_NO_MARK)
#define MARKER(x, v) 0
#elif defined(BREAK_SHORT_MARK)
#define MARKER(x, v) LIFE(x)
#else
#define MARKER(x, v) LIFE(v)
#endif
/* what the table says of the marked id */
#define SAYS(x, v) (mark == ID(v) -> bflag[x] : UNKNOWN)

/* lua/lock_bury.lua */
inline bury(x, v)
{
    assert(S2 || !HIT(v) || dead[CL(owner)] || !valid[CL(owner)]);
#ifndef BREAK_QUEUE_STAYS
    inq[v] = 0;
#endif
    if
    :: marker[v] < MARKER(x, v) -> marker[v] = MARKER(x, v)
    :: else
    fi;
    if
    :: mark == NOBODY || CL(mark) != v
#if defined(BREAK_ALWAYS_CLEAN)
    :: mark != NOBODY && CL(mark) == v -> unmark()
#elif defined(BREAK_NEVER_CLEAN)
    :: mark != NOBODY && CL(mark) == v
#else
    :: mark != NOBODY && CL(mark) == v ->
        if
        :: SAYS(x, v) == OUTSIDE -> unmark()
#ifndef BREAK_NEWS_BURIED
        :: SAYS(x, v) == NEVER && HOLDS(v) && !told[v] -> unmark()
#else
        :: SAYS(x, v) == NEVER && HOLDS(v) -> unmark()
#endif
        :: else ->
            if
            :: SAYS(x, v) == UNKNOWN && !ROOM && v == 0 -> excuse = 1
            :: else
            fi
        fi
#endif
    fi;
    if
    :: HIT(v) -> owner = NOBODY
    :: else
    fi;
    buried[v] = 1;
    handover()
}

/* ---- the kernel */

/* The last reference to a file that is open to write goes. */
inline close_file(v)
{
    closing[v] = 1;
    for (i : 0 .. GUARDED - 1) {
        if
        :: listens[i] && i != v && named[v] -> LOOK(i, v) = AT_ONCE
        :: else
        fi
    }
    i = 0
}

/* The end of a process: what it has open is closed, and it listens no more. */
inline forget_files(c)
{
    listens[c] = 0; lists[c] = 0;
    LOOK(c, 0) = 0; LOOK(c, 1) = 0;
    if
#ifndef BREAK_BURIER_UNSEEN
    :: bs[c] != FREE && lk[bv[c]] == c + 1 -> close_file(bv[c])
#else
    :: bs[c] != FREE && lk[bv[c]] == c + 1 -> closing[bv[c]] = 1
#endif
    :: else
    fi;
    bs[c] = FREE; bv[c] = 0
}

inline die(c)
{
    if
    :: hs[c] == IN && HOLDS(c) -> news = 1
    :: hs[c] == SAID || hs[c] == DONE -> excuse = 1 /* in the midst of lock() or unlock() */
    :: else
    fi;
    dead[c] = 1; valid[c] = 0; hs[c] = END;
    if
    :: lk[c] == c + 1 -> close_file(c)
    :: else
    fi;
    forget_files(c)
}

inline shut(c)
{
    named[c] = 0;
    lk[c] = (lk[c] == c + 1 -> NOBODY : lk[c]);
    forget_files(c);
    hs[c] = END
}

/* ---- a client */

#define CAN_LOOK(c, v) (LOOK(c, v) != 0 && (LOOK(c, v) != LATER || !closing[v]))
#ifndef BREAK_LOOKS_ONCE
#define AGAIN(how_) ((how_) == AT_ONCE -> LATER : 0)
#else
#define AGAIN(how_) 0
#endif
#ifndef BREAK_LISTED_ONCE
#define LISTED LATER
#else
#define LISTED ONCE
#endif

inline look_at(c, v)
{
    if
    :: !named[v] -> LOOK(c, v) = 0
    :: named[v] && lk[v] == NOBODY -> LOOK(c, v) = 0; lk[v] = c + 1; bs[c] = TAKEN; bv[c] = v
    :: named[v] && lk[v] != NOBODY -> LOOK(c, v) = AGAIN(LOOK(c, v))
    fi
}

inline look_at_all(c)
{
    for (i : 0 .. 1) {
        if
        :: i != c && named[i] && LOOK(c, i) == 0 -> LOOK(c, i) = LISTED
        :: else
        fi
    }
    i = 0
}

/* The claims about a client that enters, unless its D has passed. */
inline enter(c)
{
    for (i : 0 .. N - 1) {
        assert(S1 || !valid[c] || i == c || hs[i] != IN || !valid[i])
    }
    i = 0;
    assert(S2 || !valid[c] || HOLDS(c));
    assert(MARK || !valid[c] || !news || told[c]);
    assert(CLEAN || !valid[c] || !told[c] || news || excuse);
    hs[c] = IN
}

inline note(c)
{
    if
    :: ROOM || c != 0 -> slot[c] = 1
    :: else
    fi;
    flag[c] = NEVER
}

inline give_back(c, what, was_lost)
{
#ifdef BREAK_SLOT_EARLY
    slot[c] = 0;
#endif
    rq[c] = REL; how[c] = what; late[c] = was_lost
}

#ifndef BREAK_FLAG_STAYS
#define AFTERWARDS(c) OUTSIDE
#else
#define AFTERWARDS(c) flag[c]
#endif

inline call_ends(c)
{
    slot[c] = 0; flag[c] = NEVER; valid[c] = 0; told[c] = 0; unknown[c] = 0; gone[c] = 0;
    late[c] = 0; how[c] = 0;
    kk[c]++;
    hs[c] = OUT
}

/* The threads of one that may be killed. */
proctype Caller(byte c)
{
    byte i;
end:
    do
    /* its file (G2) */
#ifndef BREAK_PUBLISH_FIRST
    :: d_step { RUNS(c) && hs[c] == BORN && lk[c] == NOBODY -> lk[c] = c + 1 }
    :: d_step { RUNS(c) && hs[c] == BORN && lk[c] == c + 1 -> named[c] = 1; hs[c] = OUT }
#else
    :: d_step { RUNS(c) && hs[c] == BORN -> named[c] = 1; hs[c] = PUBLISHED }
    :: d_step { RUNS(c) && hs[c] == PUBLISHED ->
        if
        :: lk[c] == NOBODY -> lk[c] = c + 1
        :: else
        fi;
        hs[c] = OUT }
#endif

    /* a call; the intent comes first (G7) */
#ifndef BREAK_SLOT_LATE
    :: d_step { RUNS(c) && hs[c] == OUT && CALLS_LEFT(c) -> note(c); hs[c] = NOTED }
#else
    :: d_step { RUNS(c) && hs[c] == OUT && CALLS_LEFT(c) -> hs[c] = NOTED }
    :: d_step { RUNS(c) && WAITS(c) && !slot[c] -> note(c) }
#endif
    :: d_step { RUNS(c) && hs[c] == NOTED -> rq[c] = ACQ; age[c] = 0; hs[c] = ASK }
    :: d_step { RUNS(c) && hs[c] == ASK && rq[c] >= HELD ->
        if
        :: rq[c] == HELD -> hs[c] = GOT
        :: rq[c] == QUEUED -> hs[c] = WAIT
        :: rq[c] == REFUSED -> gone[c] = 1; hs[c] = BACK
        :: rq[c] == LATE -> hs[c] = NOTED
        fi;
        rq[c] = FREE; age[c] = 0 }
    /* the connection is lost, and it asks again, with the same id */
    :: d_step { RUNS(c) && hs[c] == ASK && rq[c] == ACQ && faults > 0 ->
        faults--; ghost = ID(c); ghost_age = age[c]; unknown[c] = 1;
        rq[c] = FREE; age[c] = 0; hs[c] = NOTED }
    /* a grant, or a poll */
    :: d_step { RUNS(c) && hs[c] == WAIT && (HOLDS(c) || !inq[c]) ->
        hs[c] = (HOLDS(c) -> GOT : NOTED) }
    :: d_step { RUNS(c) && hs[c] == GOT && !valid[c] -> hs[c] = NOTED }

    /* sections; the flag (G8) */
#ifndef BREAK_FLAG_LATE
    :: d_step { RUNS(c) && hs[c] == GOT && valid[c] -> flag[c] = INSIDE; hs[c] = SAID }
    :: d_step { RUNS(c) && hs[c] == IDLE && valid[c] && keeps > 0 ->
        keeps--; flag[c] = INSIDE; hs[c] = SAID }
    :: d_step { RUNS(c) && hs[c] == SAID -> enter(c) }
#else
    :: d_step { RUNS(c) && hs[c] == GOT && valid[c] -> enter(c) }
    :: d_step { RUNS(c) && hs[c] == IDLE && valid[c] && keeps > 0 -> keeps--; enter(c) }
    :: d_step { RUNS(c) && hs[c] == IN && flag[c] != INSIDE -> flag[c] = INSIDE }
#endif
#ifdef BREAK_FLAG_EARLY
    :: d_step { RUNS(c) && hs[c] == IN && flag[c] == INSIDE -> flag[c] = OUTSIDE }
#endif
    :: d_step { RUNS(c) && hs[c] == IN ->
        if
        :: valid[c] -> news = 0; excuse = 0; told[c] = 0 /* made consistent */
        :: else
        fi;
        hs[c] = DONE }
    :: d_step { RUNS(c) && hs[c] == DONE && valid[c] -> flag[c] = AFTERWARDS(c); hs[c] = LEFT }
    :: d_step { RUNS(c) && hs[c] == LEFT && KEEPS > 0 -> hs[c] = IDLE }
    :: d_step { RUNS(c) && hs[c] == LEFT -> hs[c] = BACK; give_back(c, WHOLE, 0) }
    :: d_step { RUNS(c) && hs[c] == IDLE -> hs[c] = BACK; give_back(c, WHOLE, !valid[c]) }
    /* what is lost is given back, whether the thread knows it yet or not */
    :: d_step { RUNS(c) && (hs[c] == SAID || hs[c] == IN || hs[c] == DONE) && !valid[c] &&
                !gone[c] ->
        news = (news || HOLDS(c)); /* as if it had died in there */
        gone[c] = 1; give_back(c, DIED, 1) }
    :: d_step { RUNS(c) && hs[c] == IN && rq[c] == RELEASED -> slot[c] = 0; rq[c] = FREE }
    :: d_step { RUNS(c) && hs[c] == DONE && gone[c] -> hs[c] = BACK }
    :: d_step { RUNS(c) && hs[c] == BACK && (rq[c] == RELEASED || (gone[c] && rq[c] == FREE)) ->
        rq[c] = FREE;
        call_ends(c) }
    :: d_step { RUNS(c) && valid[c] && ends > 0 -> ends--; valid[c] = 0 }

    /* it is closed (G15), which leaves recoveries to others */
    :: d_step { CLOSES(c) -> shut(c) }
    :: d_step { RUNS(c) && kills > 0 -> kills--; die(c) }
    od
}

/* The threads of a client that lives on, which is not interrupted between its steps. */
proctype Steady(byte c)
{
    byte i;
end:
    do
    :: atomic { RUNS(c) && hs[c] == OUT && CALLS_LEFT(c) ->
        if
        :: owner == NOBODY -> take(c); valid[c] = 1; enter(c)
        :: else -> inq[c] = 1; hs[c] = WAIT
        fi }
    :: d_step { RUNS(c) && hs[c] == WAIT && HOLDS(c) -> enter(c) }
    :: atomic { RUNS(c) && hs[c] == IN ->
        news = 0; excuse = 0;
        how[c] = WHOLE; release(c);
        call_ends(c) }
    :: d_step { CLOSES(c) -> shut(c) }
    od
}

#ifndef BREAK_TABLE_ONLY
#define NAMES_MORE(c) WAITS(c)
#else
#define NAMES_MORE(c) 0
#endif

/* The watchdog of either. */
proctype Watchdog(byte c)
{
    byte i;
end:
    do
    /* while it waits it listens, and then looks at all files (G9) */
#ifndef BREAK_LISTS_FIRST
    :: d_step { RUNS(c) && LOOKS(c) && !listens[c] -> listens[c] = 1; lists[c] = 1 }
    :: d_step { RUNS(c) && lists[c] -> lists[c] = 0; look_at_all(c) }
#else
    :: d_step { RUNS(c) && LOOKS(c) && !listens[c] && !lists[c] ->
        lists[c] = 1;
        look_at_all(c) }
    :: d_step { RUNS(c) && lists[c] -> lists[c] = 0; listens[c] = 1 }
#endif
    :: d_step { RUNS(c) && bs[c] == FREE && CAN_LOOK(c, 0) -> look_at(c, 0) }
    :: d_step { RUNS(c) && bs[c] == FREE && CAN_LOOK(c, 1) -> look_at(c, 1) }

    /* a recovery (G10) */
    :: d_step { RUNS(c) && bs[c] == TAKEN ->
        bflag[c] = (slot[bv[c]] -> flag[bv[c]] : UNKNOWN);
#ifdef BREAK_REMOVES_FIRST
        named[bv[c]] = 0;
#endif
        if
        :: slot[bv[c]] || NAMES_MORE(c) -> bq[c] = bv[c] + 1; bs[c] = SENT
        :: else -> bs[c] = ANSWERED
        fi }
    :: d_step { RUNS(c) && bs[c] == SENT && bq[c] == FREE -> bs[c] = ANSWERED }
    :: d_step { RUNS(c) && bs[c] == ANSWERED ->
        assert(BURIED || NOTHING_OF(bv[c]) || (!ROOM && bv[c] == 0));
        named[bv[c]] = 0; lk[bv[c]] = NOBODY;
        slot[bv[c]] = 0; flag[bv[c]] = NEVER;
        bs[c] = FREE; bv[c] = 0; bflag[c] = 0 }
    od
}

/* ---- what else happens */

/* A marker that no request will meet any more is forgotten, and so is time that nothing
 * waits for: fewer states. */
inline forget_marker(c)
{
    if
    :: dead[c] && !GHOST_OF(c) -> marker[c] = 0
    :: else
    fi;
    if
    :: !GHOST_OF(0) && !GHOST_OF(1) -> ticks = TICKS
    :: else
    fi
}

inline run_script(c)
{
    if
    :: rq[c] == ACQ -> acquire(c, ID(c), age[c], rq[c])
    :: rq[c] == REL -> release(c); rq[c] = RELEASED
    fi;
    age[c] = 0;
    if
    :: dead[c] -> rq[c] = FREE
    :: !dead[c] && rq[c] == HELD -> valid[c] = 1
    :: else
    fi;
    forget_marker(c)
}

inline older(what)
{
    if
    :: what < AGE_MAX -> what++
    :: else
    fi
}

inline tick()
{
    ticks--;
    for (i : 0 .. 1) {
        if
        :: rq[i] == ACQ && dead[i] -> older(age[i])
        :: else
        fi;
        if
        :: marker[i] > 0 -> marker[i]--
        :: else
        fi
    }
    if
    :: ghost != 0 -> older(ghost_age)
    :: else
    fi;
    i = 0
}

active proctype Server()
{
    byte i, c, what;
end:
    do
    :: atomic {
        if
        :: UNDER_WAY(0) -> c = 0
        :: UNDER_WAY(1) -> c = 1
        fi;
        run_script(c);
        c = 0 }
    :: atomic {
        if
        :: bq[0] != FREE -> c = 0
        :: bq[1] != FREE -> c = 1
        :: bq[2] != FREE -> c = 2
        fi;
        bury(c, bq[c] - 1);
        forget_marker(bq[c] - 1);
        bq[c] = FREE;
        c = 0 }
    :: atomic { ghost != 0 ->
        c = CL(ghost);
        acquire(c, ghost, ghost_age, what);
        what = 0; ghost = 0; ghost_age = 0;
        forget_marker(c);
        c = 0 }
    /* what a dead one had sent does not arrive */
    :: d_step { dead[0] && UNDER_WAY(0) -> rq[0] = FREE; age[0] = 0; forget_marker(0) }
    :: d_step { dead[1] && UNDER_WAY(1) -> rq[1] = FREE; age[1] = 0; forget_marker(1) }
    :: d_step { dead[0] && bq[0] != FREE -> bq[0] = FREE }
    :: d_step { dead[1] && bq[1] != FREE -> bq[1] = FREE }
    :: d_step { owner != NOBODY && (dead[CL(owner)] -> LEASES : !valid[CL(owner)]) ->
        if
        :: hs[CL(owner)] == IN -> news = 1
        :: hs[CL(owner)] != IN && mark == owner -> excuse = 1
        :: else
        fi;
        owner = NOBODY }
    /* a poll of who waits */
    :: atomic { owner == NOBODY && ANY_LIVE_IN_Q -> handover() }
    :: d_step { ticks > 0 && (GHOST_OF(0) || GHOST_OF(1)) -> tick() }
    od
}

active proctype Kernel()
{
end:
    do
    :: d_step { closing[0] -> closing[0] = 0; lk[0] = NOBODY }
    :: d_step { closing[1] -> closing[1] = 0; lk[1] = NOBODY }
    od
}

/* When nothing can happen any more: nobody who runs knows of a dead one's file, or waits. */
active proctype Judge()
{
    byte c;
    timeout;
    d_step {
        for (c : 0 .. N - 1) {
            assert(BURIED || !RUNS(c) || !listens[c] ||
                   !((dead[0] && named[0]) || (dead[1] && named[1])));
            assert(BURIED || LEASES || !RUNS(c) || hs[c] == OUT)
        }
    }
}

init {
    byte c;
    atomic {
#ifdef ONLY
        ONLY = 0;
#endif
        for (c : 0 .. N - 1) {
            if
            :: c > 0 ->
                hs[c] = OUT;
                if
                :: c < GUARDED -> named[c] = 1; lk[c] = c + 1
                :: else
                fi
            :: else
            fi;
            if
            :: MAY_DIE(c) -> run Caller(c)
            :: else -> run Steady(c)
            fi;
            if
            :: c < GUARDED -> run Watchdog(c)
            :: else
            fi
        }
    }
}
