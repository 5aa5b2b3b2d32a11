/* SPDX-License-Identifier: Apache-2.0 */
/* What a transaction has changed in the locks' keys, as entries of the ledger. */
#include "ledger_impl.h"

#include "die.h"

#include <stdlib.h>
#include <string.h>

static const struct nem_members nobody;

static struct nem_entry *add(struct nem_book *book, unsigned lock, enum nem_change change,
                             const char *id)
{
    struct nem_ledger *ledger = book->ledger;
    if (ledger->count == book->size) {
        book->size = book->size ? 2 * book->size : 1024;
        ledger->entries = realloc(ledger->entries, book->size * sizeof(*ledger->entries));
        if (!ledger->entries)
            test_die("out of memory");
    }
    struct nem_entry *entry = &ledger->entries[ledger->count];
    *entry = (struct nem_entry){ .number = ledger->count,
                                 .transaction = ledger->transactions,
                                 .after = book->after,
                                 .before = INT64_MAX,
                                 .change = change,
                                 .lock = (uint16_t)lock };
    strncpy(entry->id, id, NEM_ID_MAX - 1);
    ledger->count++;
    return entry;
}

/* Whether one reading, or hold, had ended and another began: then an id in both was there
 * twice. */
static bool began_anew(const struct nem_keys *keys)
{
    return keys->old.exists && keys->now.exists && keys->old.reads == keys->now.reads &&
           keys->old.since != keys->now.since;
}

/* ---- members before and after: two lists sorted by id, compared side by side */

typedef void (*pair_fn)(struct nem_book *book, unsigned lock,
                        const struct nem_member *was, const struct nem_member *is,
                        bool reading);

static void compare(struct nem_book *book, unsigned lock, const struct nem_members *old,
                    const struct nem_members *now, bool reading, pair_fn tell)
{
    size_t i = 0, j = 0;
    while (i < old->count || j < now->count) {
        const struct nem_member *was = i < old->count ? &old->items[i] : NULL;
        const struct nem_member *is = j < now->count ? &now->items[j] : NULL;
        int order = !was ? 1 : !is ? -1 : strcmp(was->id, is->id);
        if (order < 0)
            is = NULL;
        if (order > 0)
            was = NULL;
        i += was != NULL;
        j += is != NULL;
        const char *id = was ? was->id : is->id;
        if (strcmp(id, "~") != 0) /* the bar is no waiter */
            tell(book, lock, was, is, reading);
    }
}

static const struct nem_members *readers_before(const struct nem_keys *keys)
{
    return keys->old.exists && keys->old.reads ? nem_set_before(&keys->sets[NEM_READERS])
                                               : &nobody;
}

static const struct nem_members *readers_now(const struct nem_keys *keys)
{
    return keys->now.exists && keys->now.reads ? &keys->sets[NEM_READERS].now : &nobody;
}

static bool owned_before(const struct nem_keys *keys, const char *id)
{
    return nem_members_find(nem_set_before(&keys->sets[NEM_OWNERS]), id) != NULL;
}

static void tell_left(struct nem_book *book, unsigned lock, const struct nem_member *was,
                      const struct nem_member *is, bool reading)
{
    const struct nem_keys *keys = &book->locks[lock];
    if (!was || (is && !began_anew(keys)))
        return;
    if (!reading && nem_members_find(readers_now(keys), was->id))
        return; /* a downgrade */
    add(book, lock, NEM_LEFT, was->id)->reading = reading;
}

static void tell_unqueued(struct nem_book *book, unsigned lock,
                          const struct nem_member *was, const struct nem_member *is,
                          bool reading)
{
    if (!was || (is && is->score == was->score))
        return;
    struct nem_entry *entry = add(book, lock, NEM_UNQUEUED, was->id);
    entry->reading = reading;
    entry->value = was->score;
}

static void tell_queued(struct nem_book *book, unsigned lock,
                        const struct nem_member *was, const struct nem_member *is,
                        bool reading)
{
    if (!is || (was && is->score == was->score))
        return;
    struct nem_entry *entry = add(book, lock, NEM_QUEUED, is->id);
    entry->reading = reading;
    entry->value = is->score;
}

static void tell_marked(struct nem_book *book, unsigned lock,
                        const struct nem_member *was, const struct nem_member *is,
                        bool reading)
{
    (void)reading;
    if (is && !was)
        add(book, lock, NEM_MARKED, is->id)->value = is->score;
}

static void tell_present(struct nem_book *book, unsigned lock,
                         const struct nem_member *was, const struct nem_member *is,
                         bool reading)
{
    (void)reading;
    if (!is || !was || is->score != was->score)
        add(book, lock, NEM_PRESENT, is ? is->id : was->id)->value = is ? is->score : 0;
}

static void tell_lease(struct nem_book *book, unsigned lock, const char *id, uint64_t end,
                       bool reading)
{
    struct nem_entry *entry = add(book, lock, NEM_LEASE, id);
    entry->value = end;
    entry->reading = reading;
}

static void tell_taken(struct nem_book *book, unsigned lock, const struct nem_member *is,
                       enum nem_change change, bool reading)
{
    const struct nem_keys *keys = &book->locks[lock];
    const struct nem_member *ticket = nem_members_find(
        nem_set_before(&keys->sets[reading ? NEM_RQUEUE : NEM_QUEUE]), is->id);
    struct nem_entry *entry = add(book, lock, change, is->id);
    entry->reading = reading;
    entry->ticket = ticket ? ticket->score : 0;
    entry->token = keys->now.token;
    entry->value = keys->now.since != keys->old.since ? keys->now.since : 0;
    tell_lease(book, lock, is->id, reading ? is->score : keys->now.end, reading);
}

/* Of readers: it comes before the readers that it lets in. */
static void tell_downgraded(struct nem_book *book, unsigned lock,
                            const struct nem_member *was, const struct nem_member *is,
                            bool reading)
{
    if (is && !was && owned_before(&book->locks[lock], is->id))
        tell_taken(book, lock, is, NEM_DOWNGRADED, reading);
}

static void tell_granted(struct nem_book *book, unsigned lock,
                         const struct nem_member *was, const struct nem_member *is,
                         bool reading)
{
    const struct nem_keys *keys = &book->locks[lock];
    if (!is || (!was && reading && owned_before(keys, is->id)))
        return;
    if (!was || began_anew(keys))
        tell_taken(book, lock, is, reading ? NEM_READ : NEM_GRANTED, reading);
    else if (reading ? was->score != is->score : keys->old.end != keys->now.end)
        tell_lease(book, lock, is->id, reading ? is->score : keys->now.end, reading);
}

/* ---- keys without TTL */

static void tell_persistent(struct nem_book *book, unsigned lock)
{
    static const char *const names[] = { "N",       "queue",     "rqueue", "readers",
                                         "present", "cancelled", "dirty" };
    struct nem_keys *keys = &book->locks[lock];
    for (int i = 0; i <= NEM_PARTS; i++) {
        bool persistent = i == NEM_OWNERS  ? keys->now.persistent
                          : i == NEM_PARTS ? keys->dirty_persistent
                                           : keys->sets[i].persistent;
        if (persistent && !keys->told_persistent[i])
            add(book, lock, NEM_FORCED_TTL, names[i]);
        keys->told_persistent[i] = persistent;
    }
}

/* ---- transactions */

static void end_lock(struct nem_book *book, unsigned lock)
{
    struct nem_keys *keys = &book->locks[lock];
    struct nem_set *sets = keys->sets;
    const struct nem_members *owners = nem_set_before(&sets[NEM_OWNERS]);

    compare(book, lock, owners, &sets[NEM_OWNERS].now, false, tell_left);
    compare(book, lock, readers_before(keys), readers_now(keys), true, tell_left);
    if (keys->old.exists && !keys->now.exists)
        add(book, lock, NEM_FREED, "");
    for (int part = NEM_QUEUE; part <= NEM_RQUEUE; part++)
        compare(book, lock, nem_set_before(&sets[part]), &sets[part].now,
                part == NEM_RQUEUE, tell_unqueued);
    if (keys->last_token != keys->old_last_token) {
        struct nem_entry *entry = add(book, lock, NEM_TOKEN, "");
        entry->value = keys->last_token;
        entry->token = keys->old_last_token;
    }
    for (int part = NEM_QUEUE; part <= NEM_RQUEUE; part++)
        compare(book, lock, nem_set_before(&sets[part]), &sets[part].now,
                part == NEM_RQUEUE, tell_queued);
    compare(book, lock, owners, &sets[NEM_OWNERS].now, false, tell_granted);
    compare(book, lock, readers_before(keys), readers_now(keys), true, tell_downgraded);
    compare(book, lock, readers_before(keys), readers_now(keys), true, tell_granted);
    compare(book, lock, nem_set_before(&sets[NEM_CANCELLED]), &sets[NEM_CANCELLED].now,
            false, tell_marked);
    compare(book, lock, nem_set_before(&sets[NEM_PRESENCE]), &sets[NEM_PRESENCE].now,
            false, tell_present);
    if (keys->spoilt != keys->old_spoilt)
        add(book, lock, NEM_SPOILT, "")->value = keys->spoilt;
    tell_persistent(book, lock);
    keys->touched = false;
    for (int part = 0; part < NEM_PARTS; part++)
        sets[part].touched = false;
}

void nem_book_end(struct nem_book *book)
{
    for (unsigned lock = 0; lock < NEM_LOCKS_MAX; lock++)
        if (book->locks[lock].touched)
            end_lock(book, lock);
    book->ledger->transactions++;
}

void nem_book_lose(struct nem_book *book)
{
    for (unsigned lock = 0; lock < NEM_LOCKS_MAX; lock++) {
        struct nem_keys *keys = &book->locks[lock];
        if (!keys->touched) {
            keys->old = keys->now;
            keys->old_last_token = keys->last_token;
            keys->old_spoilt = keys->spoilt;
        }
        keys->touched = true;
        memset(&keys->now, 0, sizeof(keys->now));
        for (int part = 0; part < NEM_PARTS; part++)
            nem_set_clear(&keys->sets[part]);
        keys->last_token = 0;
        keys->dirty_persistent = keys->spoilt = false;
    }
    add(book, NEM_ALL, NEM_LOST_DATA, "");
}

void nem_book_free(struct nem_book *book)
{
    for (unsigned lock = 0; lock < NEM_LOCKS_MAX; lock++)
        for (int part = 0; part < NEM_PARTS; part++) {
            free(book->locks[lock].sets[part].now.items);
            free(book->locks[lock].sets[part].old.items);
        }
}
