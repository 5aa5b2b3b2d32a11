/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server did, in its order: read from its append-only files, which contain the
 * effects of the scripts, each script's in one transaction, and the deletions by expiry
 * and eviction. Together with the marks each has a bound in time from both sides.
 */
#ifndef NEM_LEDGER_H
#define NEM_LEDGER_H

#include "oplog.h"

#include <stddef.h>

enum { NEM_LOCKS_MAX = 64 };

enum nem_change {
    NEM_GRANTED, /* `id` was written as holder of N: taken, or handed over */
    NEM_READ,    /* `id` was written into readers of a lock that is being read */
    NEM_LEASE,  /* the end of `id`'s lease moved to `value` (server ms); 0: it has none */
    NEM_LEFT,   /* `id` ceased to be a holder or reader: released, expired or deleted.
                 * Readers that expired while others read may be noticed late */
    NEM_FREED,  /* N is gone; why is not in the file */
    NEM_QUEUED, /* `id` joined queue or rqueue (reading) with ticket `value` */
    NEM_UNQUEUED, /* it left it */
    NEM_MARKED,  /* `id` may no longer acquire; a client's uuid: it was buried (G12), what
                  * it had left and came to others in the same transaction */
    NEM_TOKEN,   /* the token's key is now `value`, before it was `token`; 0: none */
    NEM_PRESENT, /* client uuid `id` is present until `value` (server ms); 0: it is taken
                  * for gone. "*": whoever is not named */
    NEM_DOWNGRADED, /* writer `id` is a reader now */
    NEM_LOST_DATA,  /* FLUSHALL, or a new epoch */
    NEM_FORCED_TTL, /* a key of a lock (`id`: its name) has no TTL at the end of a
                     * transaction */
    NEM_SPOILT      /* the lock is not recoverable (`value` 1), or is again (0) */
};

/* What a transaction changed in all: what was undone in it is not seen. Of one
 * transaction and lock, in this order: who left, FREED, who left the queues, TOKEN, who
 * joined them, who was granted (each with his lease), the rest. */
struct nem_entry {
    uint64_t number;       /* in the order of execution, over all epochs */
    uint64_t transaction;  /* entries of one script share it */
    int64_t after, before; /* bounds in time; 0, INT64_MAX when nothing bounds it */
    uint64_t value;        /* GRANTED, READ: N's `since` (server us) if it was written in
                            * this transaction, else 0; UNQUEUED: the ticket */
    uint64_t ticket;       /* GRANTED, READ: that it had in a queue before; 0: none */
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

/* Reads <dir>/aof.0, aof.1 ... and <dir>/marks. False, with a line on stderr: not
 * readable. A last command that was cut off by a SIGKILL is left out. */
bool nem_ledger_read(struct nem_ledger *ledger, const char *dir);
void nem_ledger_free(struct nem_ledger *ledger);

#endif
