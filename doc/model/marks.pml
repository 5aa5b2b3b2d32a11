/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mark of a robust mutex that a process retains while no thread is inside (K11): a
 * process that dies inside leaves a mark, however its thread came in. Requests are on
 * their way for any time, overtake each other and may come twice. See README.md.
 */
#ifndef ENTRIES
#define ENTRIES 4
#endif
#define SLOTS 4

#ifdef ONLY
#define OTHER 1
#else
#define OTHER 0
#endif
hidden byte MARK = OTHER;

/* of the process */
#define INSIDE 0
#define IDLE 1
#define ASKS 2 /* for a mark, to enter */
#define GONE 3 /* the hold was given back */
#define DEAD 4

byte state = INSIDE, g = 1;
bool cleaned, died_inside, confirmed;
bool ours = 1; /* the server has the lock for us */
byte mark = 1; /* there; 0: none */

/* requests: g of a mark that is to be, 100 + g of one that ends; 0: none; a plain renewal:
 * 200 */
byte sent[SLOTS], twice = 1, entries = ENTRIES;

inline post(what)
{
    if
    :: sent[0] == 0 -> sent[0] = what
    :: sent[0] != 0 && sent[1] == 0 -> sent[1] = what
    :: sent[0] != 0 && sent[1] != 0 && sent[2] == 0 -> sent[2] = what
    :: else -> sent[3] = what
    fi
}
#define ROOM (sent[0] == 0 || sent[1] == 0 || sent[2] == 0 || sent[3] == 0)

/* lua/lib/renew.lua */
inline run_script(what)
{
    if
    :: !ours
    :: ours && what == 200 && mark == 0 -> mark = 1
    :: ours && what > 100 && what < 200 ->
        if
#ifndef BREAK_ENDS_ANY
        :: mark == what - 100 -> mark = 0
#else
        :: 1 -> mark = 0
#endif
        :: else
        fi
    :: ours && what < 100 ->
        if
        :: mark < what -> mark = what
        :: else
        fi;
        if
        :: state == ASKS && what == g -> confirmed = 1
        :: else
        fi
    :: else
    fi
}

active proctype Process()
{
end:
    do
    :: d_step { state == INSIDE -> state = IDLE }
    :: d_step { state == INSIDE && ROOM -> if :: g > 2 -> post(g) :: else -> post(200) fi }
    :: d_step { state == IDLE && ROOM -> cleaned = 1; post(100 + g) }
    :: d_step { state == IDLE && !cleaned && entries > 0 -> entries--; state = INSIDE }
#ifdef BREAK_NO_WORD
    :: d_step { state == IDLE && entries > 0 -> entries--; state = INSIDE }
#endif
    :: d_step { state == IDLE && cleaned && entries > 0 && ROOM ->
        entries--; confirmed = 0; cleaned = 0;
        g = (g < 3 -> 3 : g + 1);
        post(g);
#ifndef BREAK_UNANSWERED
        state = ASKS
#else
        state = INSIDE
#endif
        }
    :: d_step { state == ASKS && confirmed -> confirmed = 0; state = INSIDE }
    :: d_step { state == ASKS || state == IDLE -> state = GONE; ours = 0; mark = 0 }
    :: d_step { state < GONE -> died_inside = (state == INSIDE); state = DEAD }
    od
}

active proctype Server()
{
    byte i, what;
end:
    do
    :: d_step { sent[0] != 0 -> what = sent[0]; sent[0] = 0; run_script(what); what = 0 }
    :: d_step { sent[1] != 0 -> what = sent[1]; sent[1] = 0; run_script(what); what = 0 }
    :: d_step { sent[2] != 0 -> what = sent[2]; sent[2] = 0; run_script(what); what = 0 }
    :: d_step { sent[3] != 0 -> what = sent[3]; sent[3] = 0; run_script(what); what = 0 }
    /* and comes again */
    :: d_step { twice > 0 && sent[0] != 0 -> twice--; what = sent[0]; run_script(what); what = 0 }
    :: d_step { twice > 0 && sent[1] != 0 -> twice--; what = sent[1]; run_script(what); what = 0 }
    /* the lease of a dead holder ends */
    :: d_step { state == DEAD && ours ->
        ours = 0;
        assert(MARK || !died_inside || mark != 0) }
    od
}

init {
#ifdef ONLY
    ONLY = 0
#else
    skip
#endif
}
