/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the ledger: the keys of the locks as the server has them, transaction by
 * transaction, and the changes of each. */
#ifndef NEM_LEDGER_IMPL_H
#define NEM_LEDGER_IMPL_H

#include "ledger.h"

/* A command of an append-only file; its pointers point into the file's text. */
struct nem_arg {
    const char *data;
    size_t len;
};
struct nem_command {
    struct nem_arg *args;
    size_t count;
};

/* A sorted set, or the holders in a hash. Sorted by id. */
struct nem_member {
    uint64_t score;
    char id[NEM_ID_MAX];
};
struct nem_members {
    struct nem_member *items;
    size_t count, size;
};
struct nem_set {
    struct nem_members now, old; /* old: before the transaction, saved at the first
                                    change */
    bool touched;
    bool persistent; /* it exists and has no TTL */
};

/* The fields of N except its holders. */
struct nem_state {
    bool exists, reads, persistent;
    uint64_t end, since, token;
};

enum nem_part {
    NEM_OWNERS,
    NEM_QUEUE,
    NEM_RQUEUE,
    NEM_READERS,
    NEM_PRESENCE,
    NEM_CANCELLED,
    NEM_PARTS
};

struct nem_keys {
    struct nem_state now, old;
    struct nem_set sets[NEM_PARTS];
    uint64_t last_token, old_last_token;
    bool dirty_persistent, spoilt, old_spoilt;
    bool touched;
    bool told_persistent[NEM_PARTS + 1]; /* already reported as persistent, by part; the
                                            last: dirty */
};

struct nem_book {
    struct nem_ledger *ledger;
    size_t size; /* room for entries */
    struct nem_keys locks[NEM_LOCKS_MAX];
    int64_t after; /* lower bound of the time of the current commands */
};

void nem_book_free(struct nem_book *book);
/* Executes one command of a transaction. False: a ledger cannot account for it. */
bool nem_book_command(struct nem_book *book, const struct nem_command *command);
/* Whether a command is a mark, and which one. */
bool nem_book_mark(const struct nem_command *command, uint64_t *ret_n);
/* Adds the changes of the transaction to the ledger. */
void nem_book_end(struct nem_book *book);
/* All keys are gone. */
void nem_book_lose(struct nem_book *book);

/* ---- sets */

void nem_set_put(struct nem_set *set, const char *id, uint64_t score);
bool nem_set_drop(struct nem_set *set, const char *id);
void nem_set_clear(struct nem_set *set);
/* NULL: not in the set. */
const struct nem_member *nem_members_find(const struct nem_members *members,
                                          const char *id);
/* The set before the transaction. */
const struct nem_members *nem_set_before(const struct nem_set *set);

#endif
