/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fencing tokens of a mutex (H11, H12): each grant draws one at the server, each
 * request for more a block: what the clock has gone on by since the last one was drawn.
 * Each section takes the next one. Two processes; a holder that was forced out and does
 * not know it yet; lost data, or the lost counter alone; a client of Redisson that counts
 * on the same key. See README.md.
 *
 * Time: the clock runs by one at least between two draws, as in us it does: a script
 * takes longer.
 */
#define P 2      /* processes */
#define BLOCK 3  /* tokens of a block, at most */
#ifndef DRAWS
#define DRAWS 4  /* in all */
#endif
#ifndef TICKS
#define TICKS 2  /* of the clock, beside one for each draw */
#endif
#define NOBODY 9

#ifdef ONLY
#define OTHER 1
#else
#define OTHER 0
#endif
hidden byte S3 = OTHER;

byte clock = 10, counter; /* 0: the key is not there */
byte owner = NOBODY;      /* at the server */
byte granted;             /* the token of the newest grant */
byte last;                /* of the sections of those who were owners when they began */
byte draws = DRAWS, ticks = TICKS, forces = 1, losses = 1, incrs = 1;

bool has[P];              /* believes that it holds it */
byte token[P], limit[P];
byte more[P], many[P];    /* the block at hand: its first, how many; 0: there is none */
byte answer[P * 2];       /* to requests for more, on their way, in any order: the first, */
byte count[P * 2];        /* and how many */

#ifndef BREAK_ONLY_WHEN_MISSING
#define NEXT (counter + 1 > clock -> counter + 1 : clock)
#else
#define NEXT (counter > 0 -> counter + 1 : clock)
#endif

#if defined(BREAK_LATE_BLOCK)
#define ACCEPTED 1
#elif defined(BREAK_AT_HAND)
#define ACCEPTED (base > token[p])
#else
#define ACCEPTED (base > limit[p])
#endif

/* lib/token.lua: token_next */
inline draw(base)
{
    draws--;
    clock++;
    base = NEXT;
    counter = base
}

/* token_block */
inline draw_block(base, n)
{
#ifndef BREAK_AHEAD
    if
    :: counter == 0 || counter > clock -> draw(base); n = 1
    :: else ->
        draws--;
        clock++;
        base = (counter + BLOCK > clock -> counter + 1 : clock - BLOCK + 1);
        n = clock - base + 1;
        counter = clock
    fi
#else
    draw(base);
    n = BLOCK;
    counter = base + BLOCK - 1
#endif
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

inline answered(p, i)
{
    base = answer[i]; n = count[i];
    answer[i] = 0; count[i] = 0;
    if
    :: ACCEPTED && base > more[p] -> more[p] = base; many[p] = n
    :: else
    fi;
    base = 0; n = 0
}

proctype Process(byte p)
{
    byte base, n;
end:
    do
    :: d_step { !has[p] && owner == NOBODY && draws > 0 ->
        draw(base);
        owner = p; granted = base; has[p] = 1;
        token[p] = base; limit[p] = base; more[p] = 0; many[p] = 0;
        answer[2 * p] = 0; answer[2 * p + 1] = 0;
        count[2 * p] = 0; count[2 * p + 1] = 0;
        base = 0;
        begin(p) }
    :: d_step { has[p] && token[p] < limit[p] -> token[p]++; begin(p) }
    /* at hand, when the last section is over and the next has not begun */
    :: d_step { has[p] && token[p] == limit[p] && more[p] != 0 ->
        token[p] = more[p] - 1; limit[p] = more[p] + many[p] - 1; more[p] = 0; many[p] = 0 }
#ifdef BREAK_PAST_THE_BLOCK
    :: d_step { has[p] && token[p] == limit[p] -> token[p]++; limit[p]++; begin(p) }
#endif
    /* the script answers for its own id only; the watchdog asks, and who unlocks does */
    :: d_step { has[p] && owner == p && draws > 0 && answer[2 * p] == 0 ->
        draw_block(base, n); answer[2 * p] = base; count[2 * p] = n; base = 0; n = 0 }
    :: d_step { has[p] && owner == p && draws > 0 && answer[2 * p + 1] == 0 ->
        draw_block(base, n); answer[2 * p + 1] = base; count[2 * p + 1] = n; base = 0; n = 0 }
    :: d_step { has[p] && answer[2 * p] != 0 -> answered(p, 2 * p) }
    :: d_step { has[p] && answer[2 * p + 1] != 0 -> answered(p, 2 * p + 1) }
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
    :: d_step { ticks > 0 -> ticks--; clock++ }
    :: d_step { forces > 0 && owner != NOBODY -> forces--; owner = NOBODY }
    :: d_step { losses > 0 -> losses--; owner = NOBODY; counter = 0 }
    :: d_step { losses > 0 -> losses--; counter = 0 }
    :: d_step { incrs > 0 -> incrs--; clock++; counter++ } /* a script, too */
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
