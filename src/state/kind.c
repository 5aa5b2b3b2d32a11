/* SPDX-License-Identifier: Apache-2.0 */
/* The lock types, as the layers below them know them; see kind.h. */
#include "state/kind.h"

const struct rlk_kind rlk_kinds[RLK_KIND_LIMIT] = {
    [RLK_KIND_MUTEX] = { .type = RLOCK_TYPE_MUTEX,
                         .letter = 'm',
                         .acquire = RLK_MUTEX_ACQUIRE,
                         .release = RLK_MUTEX_RELEASE,
                         .renew = RLK_MUTEX_RENEW,
                         .cancel = RLK_MUTEX_CANCEL,
                         .refresh = RLK_MUTEX_REFRESH },
    [RLK_KIND_FAIR] = { .type = RLOCK_TYPE_FAIR,
                        .letter = 'f',
                        .in_order = true,
                        .acquire = RLK_FAIR_ACQUIRE,
                        .release = RLK_FAIR_RELEASE,
                        .renew = RLK_FAIR_RENEW,
                        .cancel = RLK_FAIR_CANCEL,
                        .refresh = RLK_FAIR_REFRESH },
    [RLK_KIND_RWLOCK] = { .type = RLOCK_TYPE_RWLOCK,
                          .letter = 'w',
                          .read_letter = 'r',
                          .acquire = RLK_RWLOCK_WRITE,
                          .read = RLK_RWLOCK_READ,
                          .release = RLK_RWLOCK_RELEASE,
                          .renew = RLK_RWLOCK_RENEW,
                          .cancel = RLK_RWLOCK_CANCEL,
                          .refresh = RLK_RWLOCK_REFRESH,
                          .downgrade = RLK_RWLOCK_DOWNGRADE },
    /* its refresh hands over to whatever waits */
    [RLK_KIND_WATCH] = { .type = RLOCK_TYPE_UNKNOWN, .refresh = RLK_RWLOCK_REFRESH },
};
