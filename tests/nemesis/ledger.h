/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server did, in its order: read from its append-only files. They contain the
 * effects of the scripts, one transaction for each script, and the deletions by expiry
 * and eviction. The marks bound the time of each from both sides.
 */
#ifndef NEM_LEDGER_H
#define NEM_LEDGER_H

#include "oplog.h"

#include <stddef.h>

enum nem_change {
    NEM_GRANTED, /* `id` was written as holder of N: taken, or handed over */
    NEM_READ,    /* `id` was written into readers of a lock that is being read */
    NEM_LEASE,  /* the end of `id`'s lease moved to `value` (server ms); 0: it has none */
    NEM_LEFT,   /* `id` is no longer a holder or reader: released, expired or deleted.
                 * Readers that expired while others read may be noticed late */
    NEM_FREED,  /* N is gone; the file does not say why */
    NEM_QUEUED, /* `id` joined queue or rqueue (reading) with ticket `value` */
    NEM_UNQUEUED, /* `id` left the queue */
    NEM_MARKED,   /* `id` may no longer acquire; a client's uuid: it was recovered (G12),
                   * and in the same transaction its holds were released and granted to
                   * others */
    NEM_TOKEN,    /* the token's key is now `value`; before it was `token`; 0: none */
    NEM_PRESENT, /* client uuid `id` is present until `value` (server ms); 0: it counts as
                  * gone. "*": all clients without an entry */
    NEM_DOWNGRADED, /* writer `id` is a reader now */
    NEM_LOST_DATA,  /* FLUSHALL, or a new epoch */
    NEM_FORCED_TTL, /* a key of a lock (`id`: its name) has no TTL at the end of a
                     * transaction */
    NEM_SPOILT      /* the lock is not recoverable (`value` 1), or is again (0) */
};

/* The changes of a transaction as a whole: what it undid itself is not seen. The order
 * within a transaction and lock: LEFT, FREED, UNQUEUED, TOKEN, QUEUED, grants (each with
 * its lease), all others. */
struct nem_entry {
    uint64_t number;       /* in the order of execution, over all epochs */
    uint64_t transaction;  /* entries of one script share it */
    int64_t after, before; /* bounds in time; 0, INT64_MAX: unbounded */
    uint64_t value;        /* GRANTED, READ: N's `since` (server us) if it was written in
                            * this transaction, else 0; UNQUEUED: the ticket */
    uint64_t ticket;       /* GRANTED, READ: the ticket that it had in a queue; 0: none */
    uint64_t token;        /* GRANTED, READ, DOWNGRADED: N's; 0: none */
    enum nem_change change;
    uint16_t lock;
    bool reading;
    char id[NEM_ID_MAX];
};

struct nem_ledger {
    struct nem_entry *entries;
    size_t count;
    uint64_t transactions, commands;
};

/* Reads <dir>/aof.0, aof.1 ... and <dir>/marks. False: not readable; prints the reason to
 * stderr. A last command that a SIGKILL cut off is left out. */
bool nem_ledger_read(struct nem_ledger *ledger, const char *dir);
void nem_ledger_free(struct nem_ledger *ledger);

#endif
