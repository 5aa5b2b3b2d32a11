/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process does with one lock, whatever the lock's type: the wait loop, the hold and
 * what it believes, the watchdog, the subscriber. See README.md.
 */

inline send(s, k_, i_, a_)
{
    sl[s].st = SENT; sl[s].kind = k_; sl[s].id = i_; sl[s].arg = a_; sl[s].age = 0;
    sl[s].who = c;
    busy = (PROMPT(c) -> c + 1 : 0)
}

inline clear(s)
{
    busy = 0;
    sl[s].st = FREE; sl[s].kind = 0; sl[s].id = 0; sl[s].arg = 0; sl[s].age = 0;
    sl[s].what = 0; sl[s].left = 0; sl[s].tk = 0; sl[s].who = 0;
}

/* Nobody waits for it any more: an answer is lost, a request may still run. */
inline forsake(s)
{
    faults--;
    if
    :: sl[s].st == SENT && sl[2 * NC].st == FREE ->
        sl[2 * NC].st = SENT; sl[2 * NC].kind = sl[s].kind; sl[2 * NC].id = sl[s].id;
        sl[2 * NC].arg = sl[s].arg; sl[2 * NC].age = sl[s].age;
        sl[2 * NC].who = sl[s].who
#if FAULTS > 1
    :: sl[s].st == SENT && sl[2 * NC].st != FREE && sl[2 * NC + 1].st == FREE ->
        sl[2 * NC + 1].st = SENT; sl[2 * NC + 1].kind = sl[s].kind;
        sl[2 * NC + 1].id = sl[s].id; sl[2 * NC + 1].arg = sl[s].arg;
        sl[2 * NC + 1].age = sl[s].age; sl[2 * NC + 1].who = sl[s].who
#endif
    :: else
    fi;
    clear(s)
}

/* ---- hold.c, hold_ask.c */

/* rlk_hold_new, rename: each acquisition has an id of its own */
inline fresh()
{
    nk[c]++;
#ifndef BREAK_ID_OF_THREAD
    h[c].id = ID(c, nk[c] - 1);
#else
    h[c].id = ID(c, 0);
    gone[h[c].id] = 0;
#endif
    h[c].st = ASK; h[c].need = 1; h[c].granted = 0; h[c].unk = 0; h[c].sent = 0;
    h[c].tk = 0; h[c].tage = 0; h[c].gt = 0; h[c].d = 0; h[c].tries = 0; h[c].relunk = 0;
    h[c].down = 0
}

inline believe()
{
    if
#ifndef BREAK_ANY_TICKET
    :: h[c].gt != 0 && h[c].gt == h[c].tk ->
#else
    :: h[c].gt != 0 && h[c].tk != 0 ->
#endif
        h[c].granted = 1; h[c].need = 0; h[c].tk = 0; h[c].gt = 0;
        h[c].d = (A > h[c].tage -> A - h[c].tage : 0); h[c].tage = 0
    :: else
    fi
}

/* rlk_hold_queued_locked; age: of the request that was answered */
inline queued(t_, age_)
{
    if
    :: h[c].st != ASK || h[c].granted
    :: else ->
        if
        :: h[c].tk == t_ && age_ >= h[c].tage
#ifndef BREAK_OLD_ANSWER
        :: t_ < h[c].tk
#endif
        :: else ->
            if
            :: h[c].gt != 0 && h[c].gt < t_ -> h[c].gt = 0
            :: else
            fi;
            h[c].tk = t_; h[c].tage = age_; h[c].need = 0;
            believe()
        fi
    fi
}

/* rlk_hold_held_locked */
inline held(d_)
{
    if
    :: h[c].st == ASK ->
        h[c].granted = 1; h[c].need = 0; h[c].tk = 0; h[c].gt = 0; h[c].tage = 0;
        h[c].d = d_
    :: else
    fi
}

inline gone_locked()
{
    h[c].granted = 0; h[c].need = 1; h[c].tk = 0; h[c].gt = 0; h[c].tage = 0
}

/* rlk_hold_background_locked: a release with marker until it is confirmed */
inline background(lost_)
{
    bgid[c] = h[c].id; bglost[c] = lost_
}

inline idle()
{
    h[c].st = IDLE; h[c].id = 0; h[c].d = 0; h[c].tk = 0; h[c].gt = 0; h[c].tage = 0;
    h[c].need = 0; h[c].granted = 0; h[c].unk = 0; h[c].sent = 0; h[c].relunk = 0;
    h[c].tries = 0; h[c].rd = 0; h[c].down = 0
}

/* rlk_hold_lose_locked */
inline lose()
{
    gave[c] = h[c].id;
    background(1);
    idle()
}

inline enter()
{
    h[c].st = IN; h[c].granted = 0;
    claim_entry(c)
}

#ifndef LIVE
#define rearm(ms) skip
#else
inline rearm(ms) /* queue_poll.c, rlk_queue_answered_locked */
{
    pt[c] = POLL;
#ifndef BREAK_TIMER
    if
    :: ms + 1 < POLL -> pt[c] = ms + 1
    :: else
    fi
#endif
}
#endif

/* An answer to the watchdog. */
inline watch_answered(w)
{
    if
    :: sl[w].kind == REN || sl[w].kind == DOWN ->
        if
        :: h[c].st != IN || h[c].id != sl[w].id
#ifndef BREAK_RESURRECT
        :: h[c].st == IN && h[c].id == sl[w].id && h[c].d == 0 -> lose()
        :: h[c].st == IN && h[c].id == sl[w].id && h[c].d > 0 ->
#else
        :: h[c].st == IN && h[c].id == sl[w].id ->
#endif
            if
            :: sl[w].what == HELD ->
                if
                :: sl[w].kind == DOWN -> h[c].down = 0
                :: else
                fi;
                if
                :: sl[w].kind == REN && sl[w].arg < L -> /* extend to a shorter lease */
                    h[c].d = (sl[w].left < sl[w].arg -> sl[w].left : sl[w].arg)
                :: else ->
                    if
                    :: sl[w].left > h[c].d ->
                        assert(S4 || h[c].d > 0);
                        h[c].d = sl[w].left
                    :: else
                    fi
                fi;
                if
                :: h[c].d > 0 -> claim_entry(c)
                :: else
                fi
            :: else -> lose()
            fi
        fi
    :: sl[w].kind == REF ->
        resub[c] = 0; paused[c] = 0;
        if
        :: h[c].st != ASK || h[c].id != sl[w].id || h[c].granted
#ifndef BREAK_OLD_ANSWER
        :: h[c].need || (h[c].tk != 0 && h[c].tage < sl[w].age)
#endif
        :: else ->
            if
            :: sl[w].what == HELD -> held(sl[w].left)
            :: sl[w].what == QUEUED -> queued(sl[w].tk, sl[w].age)
            :: else -> gone_locked()
            fi
        fi;
        rearm(sl[w].arg)
    :: sl[w].kind == REL ->
        gone[sl[w].id] = 1;
        if
        :: bgid[c] == sl[w].id -> bgid[c] = 0; bglost[c] = 0
        :: else
        fi
    fi;
    clear(w)
}

/* registry_mail.c, rlk_registry_grant_locked: a message of the mailbox */
inline message_read()
{
    mb[c]?x, t;
    if
#ifndef BREAK_LEFT_UNKNOWN
    :: (h[c].st == IN && h[c].id == x) || gave[c] == x
#else
    :: h[c].st == IN && h[c].id == x
#endif
    :: !(h[c].st == IN && h[c].id == x) && h[c].st == ASK && h[c].id == x ->
        if
        :: h[c].granted
        :: else ->
            h[c].gt = t;
            believe();
            if
            :: !h[c].granted && !h[c].need -> pt[c] = 0
            :: else
            fi
        fi
#ifndef BREAK_CANCEL_UNKNOWN
    :: h[c].st == OFF && h[c].id == x /* the answer to its cancel will tell */
#endif
    :: bgid[c] == x && !(h[c].st == ASK && h[c].id == x)
#if defined(BREAK_LEFT_UNKNOWN) || defined(BREAK_CANCEL_UNKNOWN)
    :: else -> /* nobody here has to do with it: it is released */
        if
        :: bgid[c] == 0 -> bgid[c] = x; bglost[c] = 0
        :: else
        fi
#else
    :: else /* nobody here has to do with it: nothing */
#endif
    fi;
    x = 0; t = 0
}

#ifdef LIVE
#define POLLS (pt[c] == 0)
#define RENEWS (h[c].d <= 1)
#else
#define POLLS 1
#define RENEWS (h[c].d < L)
#endif

/* A process: its thread, its watchdog, its subscriber. One alternative is one critical
 * section of the registry's mutex. */
proctype Client(byte c)
{
    byte x, t;
end:
    do
    /* acquire.c: a call */
    :: d_step { GO(c) && h[c].st == IDLE && nk[c] < CALLS(c) && bgid[c] == 0 && MAY_ASK(c) ->
        fresh() }
#ifdef RW
    :: d_step { GO(c) && h[c].st == IDLE && nk[c] < CALLS(c) && bgid[c] == 0 && MAY_READ(c) ->
        fresh(); h[c].rd = 1 }
#endif
    :: d_step { GO(c) && h[c].st == ASK && h[c].need && !h[c].granted &&
                sl[c].st == FREE -> send(c, ACQ, h[c].id, h[c].rd) }
    :: d_step { HEARS(c) && sl[c].st == DONE && sl[c].kind == ACQ ->
        h[c].sent = 1; resub[c] = 0; paused[c] = 0;
        if
        :: sl[c].what == HELD -> held(sl[c].left)
        :: sl[c].what == QUEUED -> queued(sl[c].tk, sl[c].age); rearm(sl[c].arg)
        :: sl[c].what == REFUSED ->
            if
            :: nk[c] < CALLS(c) -> fresh()
            :: else -> idle()
            fi
        :: else /* late */
        fi;
        clear(c) }
    :: d_step { GO(c) && h[c].st == ASK && h[c].granted && h[c].d > 0 -> enter() }
    :: d_step { GO(c) && h[c].st == ASK && h[c].granted && h[c].d == 0 ->
        h[c].granted = 0; h[c].need = 1 }

    /* acquire_ask.c, rlk_acquire_give_up: its time is over */
    :: d_step { GO(c) && h[c].st == ASK && !h[c].granted && sl[c].st == FREE &&
                giveups > 0 ->
        giveups--;
        if
        :: h[c].sent -> h[c].st = OFF; send(c, CAN, h[c].id, 0)
        :: else -> idle()
        fi }
    :: d_step { HEARS(c) && sl[c].st == DONE && sl[c].kind == CAN ->
        if
        :: sl[c].what == REMOVED -> gone[h[c].id] = 1; idle()
        :: else ->
#ifndef BREAK_YOURS_WITH_A
            h[c].d = sl[c].left;
#else
            h[c].d = A;
#endif
            if
            :: h[c].d > 0 -> enter()
            :: else -> background(0); idle()
            fi
        fi;
        clear(c) }

    /* release.c */
    :: d_step { GO(c) && h[c].st == IN && sl[c].st == FREE && h[c].d > 0 ->
        h[c].st = OUT; gave[c] = h[c].id; send(c, REL, h[c].id, h[c].unk) }
    :: d_step { GO(c) && h[c].st == OUT && sl[c].st == FREE ->
        send(c, REL, h[c].id, 1) } /* the second try */
    :: d_step { HEARS(c) && sl[c].st == DONE && sl[c].kind == REL ->
        /* a hold that was not lost by now was ours, whatever the answer says first (T9) */
#ifndef BREAK_ESTALE_AGAIN
        assert(CODE || sl[c].what == RELEASED || h[c].relunk || h[c].d == 0 ||
               excused[h[c].id]);
#else
        assert(CODE || sl[c].what == RELEASED || h[c].d == 0 || excused[h[c].id]);
#endif
        gone[h[c].id] = 1;
        idle(); clear(c) }
#if SHORTER > 0
    :: d_step { GO(c) && h[c].st == IN && h[c].d > 1 && sl[NC + c].st == FREE &&
                shorter > 0 -> shorter--; send(NC + c, REN, h[c].id, 1) }
#endif
#if DOWNGRADES > 0
    /* the process counts as a reader from now on (W18) */
    :: d_step { GO(c) && h[c].st == IN && !h[c].rd && h[c].d > 0 && downs > 0 &&
                sl[NC + c].st == FREE ->
        downs--; h[c].rd = 1; h[c].down = 1; send(NC + c, DOWN, h[c].id, L) }
#endif

    /* what is lost on the way */
    :: atomic { GO(c) && faults > 0 && sl[c].st != FREE ->
        x = sl[c].kind;
        forsake(c);
        if
        :: x == ACQ -> h[c].unk = 1; h[c].sent = 1
        :: x == CAN -> background(0); idle()
        :: x == REL ->
            h[c].relunk = 1; h[c].tries++;
            if
            :: h[c].tries == 2 -> background(0); idle()
            :: else
            fi
        fi;
        x = 0 }
    :: atomic { GO(c) && faults > 0 && sl[NC + c].st != FREE ->
        if
        :: sl[NC + c].kind == REL && bglost[c] -> bgid[c] = 0; bglost[c] = 0
        :: else
        fi;
        forsake(NC + c) }

    /* renewer.c */
#ifndef BREAK_LOSS_UNTOLD
    :: d_step { GO(c) && h[c].st == IN && h[c].d == 0 && bgid[c] == 0 -> lose() }
#endif
    :: d_step { GO(c) && h[c].st == IN && h[c].d > 0 && RENEWS && sl[NC + c].st == FREE ->
        if
        :: h[c].down -> send(NC + c, DOWN, h[c].id, L)
        :: else -> send(NC + c, REN, h[c].id, L)
        fi }
#ifndef BREAK_NO_POLL
    :: d_step { GO(c) && h[c].st == ASK && !h[c].need && !h[c].granted && POLLS &&
                sl[NC + c].st == FREE && sl[c].st == FREE ->
        send(NC + c, REF, h[c].id, h[c].rd) }
#endif
    :: d_step { GO(c) && bgid[c] != 0 && sl[NC + c].st == FREE ->
        send(NC + c, REL, bgid[c], 1) }
    :: d_step { HEARS(c) && sl[NC + c].st == DONE -> watch_answered(NC + c) }

    /* subscriber.c */
    :: d_step { GO(c) && nempty(mb[c]) -> message_read() }
    :: d_step { GO(c) && ears > 0 && ear[c] ->
        ears--; ear[c] = 0;
        do
        :: mb[c]?x, t
        :: empty(mb[c]) -> break
        od;
        x = 0; t = 0; ear_lost(c) }
    :: d_step { GO(c) && !ear[c] ->
        ear[c] = 1;
#ifdef LIVE
        resub[c] = (h[c].st == ASK && !h[c].need && !h[c].granted);
#ifndef BREAK_NO_RECHECK
        pt[c] = 0 /* rlk_registry_recheck_locked */
#endif
#endif
        }

#if STOPS > 0
    :: d_step { runs[c] && stops > 0 && !PENDING -> stops--; runs[c] = 0; paused[c] = 1 }
    :: d_step { runs[c] && stops > 0 && !PENDING ->
        stops--; runs[c] = 0; paused[c] = 1; ear[c] = 0; dead[c] = 1 }
    :: d_step { !runs[c] && !dead[c] -> runs[c] = 1; resumed() }
#endif
    od
}
