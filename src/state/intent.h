/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client has asked for or holds, written where others find it when the process is
 * dead (rule G7): a table in the client's file, a slot for each acquisition. A slot is
 * written before the acquire leaves and given up when the release or cancel is confirmed,
 * or nobody tries any more; so whatever the server may have for this client is in it, as
 * far as there is room. A missing slot costs whoever waits the lease, a stale one a
 * script that finds nothing. Whether a thread is inside tells a robust lock whose holder
 * died in a section from one that was only kept (G8).
 *
 * The table is the process's alone to write. It is no child's (MADV_DONTFORK): a child
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

/* In a file: the same for programs of other word sizes. */
struct rlk_intent {
    _Atomic uint32_t state;       /* written last: RLK_SLOT_VALID, or 0 */
    _Atomic uint32_t inside;      /* enum rlk_inside */
    uint64_t thread, acquisition; /* of the id, as the next four */
    uint32_t grant_ms;
    uint8_t letter, prefer, kind, name_len;
    char flags[8];
    char name[216];
};

enum { RLK_SLOT_VALID = 0x524c4b31, RLK_SLOTS_FIRST = 64, RLK_SLOTS_MAX = 4096 };

enum rlk_inside {
    RLK_INSIDE_NEVER = 0, /* no thread has entered */
    RLK_INSIDE = 1,       /* one is inside, or may be; or left what is not consistent */
    RLK_INSIDE_LEFT = 2   /* it left it as it should be */
};

/* A client's table. Guarded by the registry's mu. */
struct rlk_intent_table {
    struct rlk_intent *table; /* NULL: there is none */
    _Atomic uint32_t *full;   /* in the file: there was no slot for one */
    unsigned count, max;      /* usable now; at most */
    unsigned hint;            /* where to look for a free one first */
    uint64_t used[RLK_SLOTS_MAX / 64];
};

/* The acquisition is written down, under the id that it has now. Before the request
 * leaves. */
void rlk_intent_note_locked(struct rlk_hold *hold);
/* There is nothing of it at the server any more, or nothing more is done about it. */
void rlk_intent_end_locked(const struct rlk_hold *hold);
/* And no thread can say any more that it is inside: the slot is for another. */
void rlk_intent_clear_locked(struct rlk_hold *hold);
/* Whether any is in use. */
bool rlk_intent_used_locked(const struct rlk_intent_table *slots);

/* The word of its slot that says whether a thread is inside; NULL: it has none. */
_Atomic uint32_t *rlk_intent_inside_locked(const struct rlk_hold *hold);
/* Says so. */
void rlk_intent_say_locked(const struct rlk_hold *hold, enum rlk_inside inside);

#endif
