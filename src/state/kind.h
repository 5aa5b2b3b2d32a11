/* SPDX-License-Identifier: Apache-2.0 */
/* The lock types, as the layers below src/lock know them. */
#ifndef RLK_KIND_H
#define RLK_KIND_H

#include "net/script.h"

#include <rlock.h>
#include <stdbool.h>

/* Beside the handle kinds of rlock.h: threads of rlock_waitfree, which never acquire. */
enum { RLK_KIND_WATCH = 15, RLK_KIND_LIMIT = 16 };

/* What the layers below the lock types must know about a kind. */
struct rlk_kind {
    rlock_type_t type;
    char letter, read_letter; /* of ids; read_letter 0: it has no readers */
    bool in_order; /* each waiting thread queues at the server; else one requester queues
                      for the process */
    enum rlk_script_id acquire, read, release, renew, cancel, refresh, downgrade;
};
extern const struct rlk_kind rlk_kinds[RLK_KIND_LIMIT];

#endif
