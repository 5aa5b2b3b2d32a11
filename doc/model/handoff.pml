/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of one process that pass a mutex on among themselves (H1-H10, K2-K6), and
 * the fast path, by which they do not need the registry's mutex. Beside them another
 * process wants the lock once. See README.md.
 *
 * One d_step is one critical section of the registry's mutex, one step of the fast path's
 * word, or one script. Time: D may pass at any moment, and the server's lease end after it;
 * instead of a third of a presence, K sections may begin until the server is asked.
 */
#ifndef T
#define T 3 /* threads */
#endif
#ifndef ROUNDS
#define ROUNDS 5 /* calls in all */
#endif
#ifndef ENDS
#define ENDS 1 /* leases that run out */
#endif
#ifndef LOSSES
#define LOSSES 1 /* messages that are lost */
#endif
#define B 2 /* sections of a budget */
#define K 2
#define NOBODY 9

/* of the hold */
#define NONE 0
#define ASK 1
#define IN 2
#define IDLE 3
#define GOING 4
/* of a thread */
#define OUT 0
#define SLEEP 1
#define HANDED 2 /* another thread has let it in; it does not know yet */
#define INSIDE 3
/* what has the lock at the server: 0 nothing, OURS this process's id, THEIRS the other
 * process, LEFT an id that this process lost */
#define OURS 1
#define THEIRS 2
#define LEFT 3
/* the word of the fast path */
#define CLOSED 0
#define OPEN 1
#define BY(t) (2 + (t))

#ifdef ONLY
#define OTHER 1
#else
#define OTHER 0
#endif
hidden byte S1 = OTHER, S4 = OTHER, L1 = OTHER, L3 = OTHER;

byte hs = NONE, srv, word = CLOSED;
bool valid;             /* D has not passed */
bool others, tells;     /* what the process knows */
byte value;             /* of the owner's field: 1, 2 (send a recall), 3 (recall sent) */
bool wanted;            /* a message is on its way */
bool waits;             /* the other process is queued */
byte over;              /* sections begun since then */
byte sections, unasked; /* since the grant; since the server was asked */
byte woken = NOBODY, asker = NOBODY;
bool decided;           /* BREAK_TWO_STEPS: the watchdog has seen the hold IDLE */
chan q = [T] of { byte };

byte st[T];
bool by_gate[T]; /* it came in by the fast path */
bool res[T];     /* it has a holder's record that it keeps */
bool old[T];     /* it has slept for 1 ms */
bool in_q[T];
bool lost[T];    /* what it was in was lost */
byte rounds = ROUNDS, ends = ENDS, losses = LOSSES;

#define SPENT (sections >= B)
#ifndef BREAK_NO_BUDGET
#define MAY_GO_ON ((!others && tells) || !SPENT)
#else
#define MAY_GO_ON 1
#endif

/* A thread that is inside must be alone, and this process must have the lock at the
 * server. */
inline begin(t)
{
    for (i : 0 .. T - 1) {
        assert(S1 || i == t || st[i] != INSIDE || lost[i])
    }
    assert(S1 || (srv == OURS && valid));
    i = 0;
    sections++;
    unasked++;
    if
    :: waits -> over++; assert(L1 || over <= B + K)
    :: else
    fi
}

/* rlk_fastpath_close_locked */
inline close()
{
    if
    :: word >= BY(0) ->
        by_gate[word - BY(0)] = 0;
#ifndef BREAK_CLOSE_FINDS_NOBODY
        hs = IN;
#endif
        word = CLOSED
    :: else -> word = CLOSED
    fi
}

/* rlk_lock_promote_locked */
inline promote()
{
    if
    :: hs == NONE && len(q) > 0 && asker == NOBODY -> q?<asker>; hs = ASK
    :: else
    fi
}

inline no_residents()
{
    for (i : 0 .. T - 1) {
        res[i] = 0
    }
    i = 0
}

/* rlk_hold_lose_locked; the thread inside learns of the loss */
inline lose()
{
#ifndef BREAK_LOSS_LEAVES_THE_GATE
    close();
    no_residents();
#endif
    for (i : 0 .. T - 1) {
        if
        :: st[i] == INSIDE || st[i] == HANDED -> lost[i] = 1
        :: else
        fi
    }
    i = 0;
    hs = NONE;
    if
    :: srv == OURS -> srv = LEFT
    :: else
    fi;
    promote()
}

/* What is lost by now: rlk_lock_held_locked. */
inline look()
{
#ifndef BREAK_RETAKE_LOST
    if
    :: (hs == IN || hs == IDLE) && !valid -> lose()
    :: else -> close()
    fi
#else
    close()
#endif
}

/* rlk_handoff_settle_locked */
inline settle()
{
    close();
    if
    :: hs == IDLE && woken == NOBODY && len(q) > 0 -> q?<woken>
    :: hs == IDLE && woken == NOBODY && len(q) == 0 -> hs = GOING; no_residents()
    :: else
    fi
}

/* H5 */
inline nobody_sleeps_alone()
{
    assert(L3 || !(hs == IDLE && len(q) > 0 && woken == NOBODY))
}

#ifndef BREAK_RETAKE_GOING
#define TAKEABLE (hs == IDLE)
#else
#define TAKEABLE (hs == IDLE || hs == GOING)
#endif

/* rlk_handoff_enter_locked */
inline enter(t)
{
    if
    :: TAKEABLE && MAY_GO_ON ->
        hs = IN; st[t] = INSIDE; by_gate[t] = 0; lost[t] = 0; old[t] = 0;
        if
        :: in_q[t] -> q??eval(t); in_q[t] = 0
        :: else
        fi;
        begin(t)
    :: hs == IDLE && !MAY_GO_ON -> hs = GOING; no_residents()
    :: else
    fi
}

#ifndef BREAK_GATE_PAST_D
#define GATE_VALID valid
#else
#define GATE_VALID 1
#endif
#ifndef BREAK_NEVER_ASKS
#define MAY_BE_ASKED 1
#else
#define MAY_BE_ASKED (!waits)
#endif

#ifdef KEEP
#define TELL 1
#define CAN_KEEP (len(q) == 0 && asker == NOBODY && tells && !others)
#else
#define TELL (len(q) > 1)
#define CAN_KEEP 0
#endif

proctype Thread(byte t)
{
    byte i, first;
end:
    do
    /* fastpath.h */
    :: d_step { st[t] == OUT && rounds > 0 && res[t] && word == OPEN && unasked < K &&
                GATE_VALID -> rounds--; word = BY(t); st[t] = INSIDE; by_gate[t] = 1; lost[t] = 0;
        begin(t) }
    :: d_step { st[t] == INSIDE && by_gate[t] && word == BY(t) && valid ->
        word = OPEN; st[t] = OUT; by_gate[t] = 0 }

    /* acquire.c */
    :: d_step { st[t] == OUT && rounds > 0 && unasked < K ->
        rounds--;
        look();
        enter(t);
        if
        :: st[t] == OUT -> st[t] = SLEEP; q!t; in_q[t] = 1; settle(); promote()
        :: else
        fi;
        nobody_sleeps_alone() }
    :: d_step { st[t] == SLEEP && woken == t && unasked < K ->
        woken = NOBODY;
        look();
        enter(t);
        if
        :: st[t] == SLEEP -> settle(); promote()
        :: else
        fi;
        nobody_sleeps_alone() }
    :: d_step { st[t] == SLEEP && !old[t] -> old[t] = 1 }
    :: d_step { st[t] == SLEEP && asker != t -> /* gives up */
        q??eval(t); in_q[t] = 0; st[t] = OUT; old[t] = 0;
        if
        :: woken == t -> woken = NOBODY
        :: else
        fi;
#ifndef BREAK_GIVES_UP_ALONE
        settle();
#endif
        nobody_sleeps_alone() }
    :: d_step { st[t] == HANDED ->
        look();
        if
        :: lost[t] -> lost[t] = 0; st[t] = SLEEP; q!t; in_q[t] = 1; promote()
        :: else -> st[t] = INSIDE
        fi }
    /* the requester: one script, when nothing has the lock */
    :: d_step { asker == t && hs == ASK && srv == 0 ->
        srv = OURS; hs = IN; valid = 1; asker = NOBODY;
        sections = 0; unasked = 0;
        others = waits;
        tells = (TELL && !waits);
        value = (tells -> 2 : (TELL -> 3 : 1));
        q??eval(t); in_q[t] = 0;
        st[t] = INSIDE; by_gate[t] = 0; lost[t] = 0; old[t] = 0;
        over = 0;
        begin(t) }

    /* release.c */
    :: d_step { st[t] == INSIDE && (!by_gate[t] || word != BY(t) || !valid) ->
        look();
        st[t] = OUT; by_gate[t] = 0;
        if
        :: lost[t] -> lost[t] = 0 /* ESTALE */
        :: else ->
            assert(S4 || valid);
            if
            :: len(q) > 0 && asker == NOBODY && MAY_GO_ON ->
                q?<first>;
                res[t] = (tells && !others);
                if
                :: old[first] && unasked < K ->
                    q?first; in_q[first] = 0; old[first] = 0;
                    if
                    :: woken == first -> woken = NOBODY
                    :: else
                    fi;
                    st[first] = HANDED; lost[first] = 0;
                    begin(first)
                :: else ->
                    hs = IDLE;
                    if
                    :: woken == NOBODY -> woken = first
                    :: else
                    fi;
                    if
                    :: tells && !others -> word = OPEN
                    :: else
                    fi
                fi;
                first = 0
            :: CAN_KEEP ->
                res[t] = 1; hs = IDLE; word = OPEN
            :: else -> hs = GOING; no_residents()
            fi
        fi;
        nobody_sleeps_alone() }
    od
}

/* K6, K5: what is idle, with nobody on his way to it */
inline give_back()
{
    if
#ifndef BREAK_KEEPS_THOUGH_WANTED
    :: hs == IDLE && woken == NOBODY -> hs = GOING; no_residents()
#endif
    :: else
    fi
}

inline nobody_keeps()
{
    assert(L1 || !(hs == IDLE && others && woken == NOBODY))
}

/* The library's threads, and the server on its own. */
active proctype Others()
{
    byte i;
end:
    do
    /* a release, of either process: the lock goes to the waiter */
    :: d_step { hs == GOING ->
        if
        :: srv == OURS -> srv = (waits -> THEIRS : 0); waits = 0
        :: else
        fi;
        hs = NONE; wanted = 0;
        promote() }
    /* renewer.c: asked, for what threads share, or it is lost */
    :: d_step { (hs == IN || hs == IDLE) && unasked > 0 && srv == OURS && valid &&
                MAY_BE_ASKED -> unasked = 0;
        if
        :: value == 1 -> value = (waits -> 3 : 2)
        :: else
        fi;
        if
        :: waits || value == 3 -> others = 1; close(); give_back()
        :: else -> tells = 1; sections = 0
        fi;
        nobody_keeps() }
#ifdef BREAK_NEVER_ASKS
    :: d_step { (hs == IN || hs == IDLE) && unasked > 0 -> unasked = 0 }
#endif
    :: d_step { (hs == IN || hs == IDLE) && !valid -> lose() }
#ifdef KEEP
    /* nobody has used it for long enough (K9) */
    :: d_step { hs == IDLE && word <= OPEN && woken == NOBODY && len(q) == 0 ->
        word = CLOSED; hs = GOING; no_residents() }
#endif
    /* subscriber.c */
    :: d_step { wanted ->
        wanted = 0;
        if
        :: hs == IN || hs == IDLE ->
            others = 1;
            close();
            give_back()
        :: else
        fi;
        nobody_keeps() }
    :: d_step { wanted && losses > 0 -> losses--; wanted = 0 }
#ifdef BREAK_TWO_STEPS
    :: d_step { hs == IDLE && others -> decided = 1 }
    :: d_step { decided -> decided = 0;
        if
        :: hs == IN || hs == IDLE -> hs = GOING; no_residents()
        :: else
        fi }
#endif
    /* time */
    :: d_step { ends > 0 && valid && (hs == IN || hs == IDLE) -> ends--; valid = 0 }
    :: d_step { (srv == LEFT || (srv == OURS && !valid)) -> /* its TTL ends, too */
        srv = (waits -> THEIRS : 0); waits = 0 }
    od
}

/* The other process queues once. Its script sends a recall if the holder wants one. */
active proctype Remote()
{
    d_step { srv == OURS || srv == LEFT ->
        waits = 1; over = 0;
        if
        :: value == 2 && srv == OURS -> value = 3; wanted = 1
        :: else
        fi };
    d_step { srv == THEIRS -> srv = 0 }
}

init {
    byte t;
    atomic {
#ifdef ONLY
        ONLY = 0;
#endif
        for (t : 0 .. T - 1) {
            run Thread(t)
        }
    }
}
