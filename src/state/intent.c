/* SPDX-License-Identifier: Apache-2.0 */
/* See intent.h. Thread: any. Blocks: no, but for the memory of more intents. */
#include "state/intent.h"

#include "state/registry.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(struct rlk_intent) == 256, "the layout of the file");
_Static_assert(offsetof(struct rlk_intent, name) == 40, "the layout of the file");
_Static_assert(sizeof(((struct rlk_intent *)0)->name) > RLOCK_NAME_MAX, "with NUL");

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static struct rlk_intent_table *slots_of(const struct rlk_hold *hold)
{
    return &hold->lock->registry->slots;
}

/* Doubles the table. Allocates its memory first: if the file system had none left, a
 * store would be a SIGBUS. */
static bool grow(struct rlk_intent_table *slots)
{
    unsigned count = slots->count * 2;

    if (count > slots->max)
        count = slots->max;
    uintptr_t from = (uintptr_t)(slots->table + slots->count);
    uintptr_t to = (uintptr_t)(slots->table + count);
    from &= ~((uintptr_t)sysconf(_SC_PAGESIZE) -
              1); /* from the page that has the last intent */
    if (count == slots->count ||
        madvise((void *)from, to - from, MADV_POPULATE_WRITE) != 0)
        return false;
    slots->count = count;
    return true;
}

/* The number of a free intent, from 1; 0: there is none. */
static unsigned claim(struct rlk_intent_table *slots)
{
    unsigned words = (slots->count + 63) / 64;

    for (unsigned i = 0; i < words; i++) {
        unsigned word = (slots->hint / 64 + i) % words;
        uint64_t free_ones = ~slots->used[word];
        if (free_ones == 0)
            continue;
        unsigned at = word * 64 + (unsigned)__builtin_ctzll(free_ones);
        if (at >= slots->count)
            continue;
        slots->used[word] |= free_ones & -free_ones;
        slots->hint = at;
        return at + 1;
    }
    if (slots->count == 0 || !grow(slots))
        return 0;
    return claim(slots);
}

void rlk_intent_note_locked(struct rlk_hold *hold)
{
    struct rlk_intent_table *slots = slots_of(hold);
    const struct rlk_lock *lock = hold->lock;

    /* rule: G7 */
    if (!slots->table)
        return;
    if (hold->id.slot == 0)
        hold->id.slot = (uint16_t)claim(slots);
    if (hold->id.slot == 0) {
        atomic_store_explicit(slots->full, 1, memory_order_relaxed);
        return;
    }
    struct rlk_intent *slot = &slots->table[hold->id.slot - 1];
    if (atomic_load_explicit(&slot->state, memory_order_relaxed) == RLK_SLOT_VALID &&
        slot->acquisition == hold->id.acquisition && slot->thread == hold->id.thread)
        return;
    atomic_store_explicit(&slot->state, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&slot->inside, RLK_INSIDE_NEVER, memory_order_relaxed);
    slot->thread = hold->id.thread;
    slot->acquisition = hold->id.acquisition;
    slot->grant_ms = hold->id.grant_ms;
    slot->letter = (uint8_t)hold->id.letter;
    slot->prefer = hold->prefer;
    slot->kind = lock->kind;
    slot->name_len = lock->name_len;
    memcpy(slot->flags, hold->id.flags, sizeof(slot->flags));
    memcpy(slot->name, lock->name, (size_t)lock->name_len + 1);
    atomic_store_explicit(&slot->state, RLK_SLOT_VALID, memory_order_release);
}

void rlk_intent_end_locked(const struct rlk_hold *hold)
{
    struct rlk_intent_table *slots = slots_of(hold);

    if (hold->id.slot != 0 && slots->table)
        atomic_store_explicit(&slots->table[hold->id.slot - 1].state, 0,
                              memory_order_release);
}

void rlk_intent_clear_locked(struct rlk_hold *hold)
{
    struct rlk_intent_table *slots = slots_of(hold);

    /* rule: G7 */
    if (hold->id.slot == 0)
        return;
    unsigned at = hold->id.slot - 1u;
    rlk_intent_end_locked(hold);
    hold->id.slot = 0;
    if (!slots->table)
        return;
    slots->used[at / 64] &= ~(UINT64_C(1) << at % 64);
    slots->hint = at;
}

bool rlk_intent_used_locked(const struct rlk_intent_table *slots)
{
    for (unsigned i = 0; slots->table && i < slots->count; i++)
        if ((slots->used[i / 64] >> i % 64 & 1) &&
            atomic_load_explicit(&slots->table[i].state, memory_order_relaxed) != 0)
            return true;
    return false;
}

_Atomic uint32_t *rlk_intent_inside_locked(const struct rlk_hold *hold)
{
    struct rlk_intent_table *slots = slots_of(hold);
    return hold->id.slot != 0 && slots->table ? &slots->table[hold->id.slot - 1].inside
                                              : NULL;
}

void rlk_intent_say_locked(const struct rlk_hold *hold, enum rlk_inside inside)
{
    /* rule: G8 */
    _Atomic uint32_t *word = rlk_intent_inside_locked(hold);
    if (word)
        atomic_store_explicit(word, inside, memory_order_release);
}
