/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fencing tokens of a mutex (H11, H12): each grant and each request for more reserves
 * a block at the server; each section takes the next one. Two processes; a holder that was
 * forced out and does not know it yet; lost data; a client of Redisson that counts on the
 * same key. See README.md.
 *
 * Time: the clock runs by more than a block between two draws, as in ns it does.
 */
#define P 2      /* processes */
#define BLOCK 2  /* tokens of a block */
#ifndef DRAWS
#define DRAWS 7  /* in all */
#endif
#define TICK 3   /* of the clock, between draws */
#define NOBODY 9

#ifdef ONLY
#define OTHER 1
#else
#define OTHER 0
#endif
hidden byte S3 = OTHER;

byte clock = 10, counter; /* 0: the key is not there */
byte owner = NOBODY;      /* at the server */
byte granted;             /* the first token of the newest grant */
byte last;                /* of the sections of those who were owners when they began */
byte draws = DRAWS, forces = 1, flushes = 1, incrs = 1;

bool has[P];              /* believes that it holds it */
byte token[P], limit[P], more[P];
byte newest[P];           /* the first of the id's newest block, at the server */
byte answer[P * 2];       /* to requests for more, on their way: in any order */

#ifndef BREAK_ONLY_WHEN_MISSING
#define BASE (counter + 1 > clock -> counter + 1 : clock)
#else
#define BASE (counter > 0 -> counter + 1 : clock)
#endif

#if defined(BREAK_LATE_BLOCK)
#define ACCEPTED 1
#elif defined(BREAK_AT_HAND)
#define ACCEPTED (base > token[p])
#else
#define ACCEPTED (base > limit[p])
#endif

inline draw(base)
{
    draws--;
    clock = clock + TICK;
    base = BASE;
    counter = base + BLOCK - 1
}

/* A section begins. Who is not the owner any more has only smaller ones than the next. */
inline begin(p)
{
    if
    :: owner == p -> assert(S3 || token[p] > last); last = token[p]
    :: owner != p && owner != NOBODY -> assert(S3 || token[p] < granted)
    :: else -> last = (token[p] > last -> token[p] : last)
    fi
}

proctype Process(byte p)
{
    byte base;
end:
    do
    :: d_step { !has[p] && owner == NOBODY && draws > 0 ->
        draw(base);
        owner = p; granted = base; newest[p] = base; has[p] = 1;
        token[p] = base; limit[p] = base + BLOCK - 1; more[p] = 0;
        answer[2 * p] = 0; answer[2 * p + 1] = 0;
        base = 0;
        begin(p) }
    :: d_step { has[p] && token[p] < limit[p] -> token[p]++; begin(p) }
    /* at hand, when the last section is over and the next has not begun */
    :: d_step { has[p] && token[p] == limit[p] && more[p] != 0 ->
        token[p] = more[p] - 1; limit[p] = more[p] + BLOCK - 1; more[p] = 0 }
#ifdef BREAK_PAST_THE_BLOCK
    :: d_step { has[p] && token[p] == limit[p] -> token[p]++; limit[p]++; begin(p) }
#endif
    /* the script answers for its own id only; the watchdog asks, and who unlocks does */
    :: d_step { has[p] && owner == p && draws > 0 && answer[2 * p] == 0 ->
        draw(base); newest[p] = base; answer[2 * p] = base; base = 0 }
    :: d_step { has[p] && owner == p && answer[2 * p] == 0 -> answer[2 * p] = newest[p] }
    :: d_step { has[p] && owner == p && draws > 0 && answer[2 * p + 1] == 0 ->
        draw(base); newest[p] = base; answer[2 * p + 1] = base; base = 0 }
    :: d_step { has[p] && answer[2 * p] != 0 ->
        base = answer[2 * p]; answer[2 * p] = 0;
        if
        :: ACCEPTED && base > more[p] -> more[p] = base
        :: else
        fi;
        base = 0 }
    :: d_step { has[p] && answer[2 * p + 1] != 0 ->
        base = answer[2 * p + 1]; answer[2 * p + 1] = 0;
        if
        :: ACCEPTED && base > more[p] -> more[p] = base
        :: else
        fi;
        base = 0 }
    :: d_step { has[p] ->
        has[p] = 0;
        if
        :: owner == p -> owner = NOBODY
        :: else
        fi }
    od
}

active proctype World()
{
end:
    do
    :: d_step { forces > 0 && owner != NOBODY -> forces--; owner = NOBODY }
    :: d_step { flushes > 0 -> flushes--; owner = NOBODY; counter = 0 }
    :: d_step { incrs > 0 -> incrs--; counter++ }
    od
}

init {
    byte p;
    atomic {
#ifdef ONLY
        ONLY = 0;
#endif
        for (p : 0 .. P - 1) {
            run Process(p)
        }
    }
}
