/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn for strangers (T14): processes of ours that hand a fair lock on, and one of
 * Redisson's waiters, which is in no queue and hears only that the lock came free. With
 * STUCK it may stop for ever while it listens. See README.md.
 *
 * One d_step is one script, and what its messages bring about at once. Time waits for
 * who has something to do; a section lasts for any time. In place of 16 hand-overs there
 * are BOUND, in place of 100 ms CHAIN ticks, in place of 10 ms TURN ticks.
 */
#ifndef NC
#define NC 3 /* processes of ours */
#endif
#define BOUND 2
#define CHAIN 3
#define TURN 2
#define POLL 9 /* ticks between two polls of a waiter who hears nothing */
#define NOBODY 9
#define STRANGER 8

/* of a process */
#define OUT 0
#define WAITS 1
#define IN 2

#ifdef ONLY
#define OTHER 1
#else
#define OTHER 0
#endif
hidden byte S1 = OTHER, L5 = OTHER, T14 = OTHER, WAIT = OTHER;

byte owner = NOBODY;
byte q[NC], qn;       /* in the order of tickets */
byte st[NC], sst;     /* of ours, and of the stranger */
bool look[NC];        /* a message or a timer has it ask */
byte timer[NC];       /* ticks until it polls */
bool joined[NC];      /* hears the stranger's unlock */
byte turn;            /* ticks for which ours stand back */
bool turned;          /* a turn was given, and no script has seen what became of it */
byte count, chain;    /* hand-overs of a chain; ticks that are left of it */
bool used, unused;    /* this turn was used, the last one was not */
bool told, stuck;     /* the stranger has a message; it stops for ever */
byte passed, chances; /* grants to ours while it waits; ticks since its last chance */
byte free_for;        /* ticks for which the lock is free and one of ours waits */

inline claim_entry(e)
{
    m = 0;
    do
    :: m < NC -> assert(S1 || m == e || st[m] != IN); m++
    :: else -> break
    od;
    assert(S1 || e == STRANGER || sst != IN);
    m = 0
}

inline enter(e) /* ours: by a request or a grant */
{
    claim_entry(e);
    owner = e;
    st[e] = IN;
    look[e] = 0;
    joined[e] = 0;
    timer[e] = 0;
    free_for = 0;
    if
    :: sst == WAITS && !stuck -> passed++
    :: else
    fi;
    /* whoever runs and listens is not passed for ever */
    assert(T14 || stuck || unused || passed <= BOUND + 2);
    assert(T14 || stuck || sst != WAITS || passed < 60)
}

inline hand_over() /* to the first of ours */
{
#ifdef BREAK_NEWEST
    e = q[qn - 1];
#else
    e = q[0];
    m = 0;
    do
    :: m + 1 < qn -> q[m] = q[m + 1]; m++
    :: else -> break
    od;
#endif
    assert(L5 || qn < 2 || e != q[qn - 1]);
    qn--;
    q[qn] = 0;
    m = 0;
    enter(e)
}

/* lua/lib/turn.lua, turn_goes_on */
inline goes_on(yes)
{
    yes = 0;
    if
#ifndef BREAK_TURN_WITHOUT_END
    :: turned && turn > 0 && sst == WAITS -> yes = 1
#else
    :: turned && sst == WAITS -> yes = 1
#endif
    :: else ->
        if
        :: turned && turn == 0 && sst == WAITS && !used -> unused = 1; chain = CHAIN; count = 0
        :: else
        fi;
        turned = 0;
        turn = 0
    fi
}

/* turn_begins */
inline begins(queued, yes)
{
    yes = 0;
    if
#ifdef BREAK_NO_BOUND
    :: queued -> skip
#endif
    :: queued && chain == 0 && count == 0 && !unused -> chain = CHAIN; count = 1
    :: unused && chain > 0 -> skip
    :: queued && chain > 0 && count > 0 && count < BOUND -> count++
    :: else -> turned = 1; used = 0; turn = TURN; count = 0; chain = 0; unused = 0; yes = 1
    fi
}

/* who waits and asks, or polls */
inline ask(c)
{
    look[c] = 0;
    if
#ifdef BREAK_NOT_LOOKED
    :: owner == STRANGER && turned && turn == 0 -> hand_over()
    :: owner == STRANGER && !(turned && turn == 0) ->
#else
    :: owner == STRANGER ->
#endif
        used = 1;
        joined[c] = 1;
        timer[c] = POLL
    :: owner != NOBODY && owner != STRANGER -> timer[c] = POLL
    :: else ->
        goes_on(y);
        if
        :: y -> timer[c] = 1
        :: else -> hand_over()
        fi
    fi
}

proctype Ours(byte c)
{
    byte e, m;
    bool y;
end:
    do
    :: d_step { st[c] == OUT ->
#ifdef BREAK_ASKER_TAKES
        if
        :: owner == NOBODY && qn == 0 -> enter(c)
        :: else -> q[qn] = c; qn++; st[c] = WAITS; ask(c)
        fi
#else
        q[qn] = c; qn++; st[c] = WAITS;
        ask(c)
#endif
        ; e = 0; m = 0; y = 0 }
    :: d_step { st[c] == WAITS && look[c] -> ask(c); e = 0; m = 0; y = 0 }
    :: d_step { st[c] == IN ->
        st[c] = OUT;
        owner = NOBODY;
        y = 0;
        if
        :: sst == WAITS ->
            goes_on(y);
            if
            :: !y -> begins(qn > 0, y)
            :: else
            fi
        :: else
        fi;
        if
        :: qn > 0 && !y -> hand_over()
        :: else ->
            told = (sst == WAITS);
            if
#ifndef BREAK_CALLS_NONE
            :: qn > 0 -> look[q[0]] = 1
#endif
            :: else
            fi
        fi;
        e = 0; m = 0; y = 0 }
    od
}

proctype Stranger()
{
    byte m;
end:
    do
    :: d_step { !stuck && sst == OUT ->
        passed = 0;
        if
        :: owner == NOBODY -> claim_entry(STRANGER); owner = STRANGER; sst = IN
        :: else -> sst = WAITS; told = 0
        fi; m = 0 }
    :: d_step { !stuck && sst == WAITS && told ->
        told = 0;
        if
        :: owner == NOBODY ->
            claim_entry(STRANGER);
            owner = STRANGER; sst = IN; passed = 0; free_for = 0
        :: else
        fi; m = 0 }
    :: d_step { !stuck && sst == IN ->
        sst = OUT;
        owner = NOBODY;
        m = 0;
        do
        :: m < NC ->
            if
            :: joined[m] && st[m] == WAITS -> look[m] = 1
            :: else
            fi;
            m++
        :: else -> break
        od;
        m = 0 }
#ifdef STUCK
    :: d_step { sst == WAITS && !stuck -> stuck = 1 }
#endif
    od
}

#define BUSY(c) (st[c] == WAITS && look[c])
#if NC > 2
#define ANY_BUSY (BUSY(0) || BUSY(1) || BUSY(2))
#else
#define ANY_BUSY (BUSY(0) || BUSY(1))
#endif
proctype Clock()
{
    byte m;
    bool some;
end:
    do
    :: d_step { !(ANY_BUSY) && !(told && sst == WAITS && !stuck) ->
        m = 0; some = 0;
        do
        :: m < NC ->
            if
            :: st[m] == WAITS -> some = 1
            :: else
            fi;
            if
            :: timer[m] > 0 && st[m] == WAITS ->
                timer[m]--;
                if
                :: timer[m] == 0 -> look[m] = 1
                :: else
                fi
            :: else
            fi;
            m++
        :: else -> break
        od;
        if
        :: turn > 0 -> turn--
        :: else
        fi;
        if
        :: chain > 0 -> chain--
        :: else
        fi;
        if
        :: some && owner == NOBODY -> free_for++
        :: else -> free_for = 0
        fi;
        /* a free lock is left to strangers for a turn, and not for longer */
        assert(WAIT || free_for <= TURN + 1);
        m = 0; some = 0 }
    od
}

init
{
    atomic {
#ifdef ONLY
        ONLY = 0;
#endif
        run Ours(0);
        run Ours(1);
#if NC > 2
        run Ours(2);
#endif
        run Stranger();
        run Clock()
    }
}
