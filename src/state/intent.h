/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The intent table: what a client asks for or holds, written where other processes find
 * it when this one is dead (G7). It is in the client's live file, with one intent for
 * each acquisition. An intent is written before the acquire leaves, and freed when the
 * release or cancel is confirmed, or is not tried any more. So all that the server may
 * have for this client is in the table, as far as there is room. A missing intent costs
 * waiters the lease, a stale intent costs a script that finds nothing. `inside` tells
 * whether the holder of a robust lock died in a section, or only retained the lock (G8).
 *
 * Only this process writes the table. A child does not have it (MADV_DONTFORK), and
 * forgets it before it touches anything (T13, G6). It stays mapped as long as the
 * client's memory, see livefile.h. Locks: functions that end in _locked need the
 * registry's mu; `inside` is written without.
 */
#ifndef RLK_INTENT_H
#define RLK_INTENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rlk_hold;

/* An intent. It is in a file, so its layout is the same for programs of other word
 * sizes. */
struct rlk_intent {
    _Atomic uint32_t state;       /* written last: RLK_SLOT_VALID, or 0 */
    _Atomic uint32_t inside;      /* enum rlk_inside */
    uint64_t thread, acquisition; /* of the id, as are the next four */
    uint32_t grant_ms;
    uint8_t letter, prefer, kind, name_len;
    char flags[8];
    char name[216];
};

enum { RLK_SLOT_VALID = 0x524c4b31, RLK_SLOTS_FIRST = 64, RLK_SLOTS_MAX = 4096 };

enum rlk_inside {
    RLK_INSIDE_NEVER = 0, /* no thread has entered */
    RLK_INSIDE = 1,     /* a thread is inside, or may be; or left an inconsistent state */
    RLK_INSIDE_LEFT = 2 /* the thread left a consistent state */
};

/* A client's table. Guarded by the registry's mu. */
struct rlk_intent_table {
    struct rlk_intent *table; /* NULL: there is none */
    _Atomic uint32_t *full;   /* in the file: an acquisition got no intent */
    unsigned count, max;      /* usable now; at most */
    unsigned hint;            /* where to look for a free intent first */
    uint64_t used[RLK_SLOTS_MAX / 64];
};

/* Writes the hold's intent. Call before the request leaves. */
void rlk_intent_note_locked(struct rlk_hold *hold);
/* The server has nothing of the hold any more, or nothing more is done about it. */
void rlk_intent_end_locked(const struct rlk_hold *hold);
/* The same, and no thread can write `inside` any more: frees the intent. */
void rlk_intent_clear_locked(struct rlk_hold *hold);
/* Whether any intent is in use. */
bool rlk_intent_used_locked(const struct rlk_intent_table *slots);

/* The word `inside` of the hold's intent; NULL: it has no intent. */
_Atomic uint32_t *rlk_intent_inside_locked(const struct rlk_hold *hold);
/* Writes that word. */
void rlk_intent_say_locked(const struct rlk_hold *hold, enum rlk_inside inside);

#endif
