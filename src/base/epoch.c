/* SPDX-License-Identifier: Apache-2.0 */
/* Two epochs take turns. Who waits ends the present one first, so that it does not wait
 * for later readers. A counter holds its generation, too: a child begins another one in
 * the same step in which it forgets the parent's readers. */
#include "base/epoch.h"

#include "base/sync.h"

#include <stdatomic.h>

enum { COUNT_BITS = 24 };

static _Atomic unsigned readers[2], current;

struct rlk_epoch rlk_epoch_enter(void)
{
    unsigned number = atomic_load(&current);
    unsigned count = atomic_load(&readers[number]);

    while (!atomic_compare_exchange_weak(&readers[number], &count, count + 1))
        ;
    return (struct rlk_epoch){ number, count >> COUNT_BITS };
}

void rlk_epoch_leave(struct rlk_epoch epoch)
{
    unsigned count = atomic_load(&readers[epoch.number]);

    while (count >> COUNT_BITS == epoch.generation &&
           !atomic_compare_exchange_weak(&readers[epoch.number], &count, count - 1))
        ;
}

/* Waits for each epoch in turn, because a reader may have read the number before that
 * epoch ended and counted itself later. */
void rlk_epoch_wait(void)
{
    unsigned mask = (1U << COUNT_BITS) - 1;

    for (int i = 0; i < 2; i++) {
        unsigned next = 1 - atomic_load(&current);
        while ((atomic_load(&readers[next]) & mask) > 0)
            rlk_sync_pause();
        atomic_store(&current, next);
    }
}

void rlk_epoch_forget(void)
{
    for (int i = 0; i < 2; i++)
        atomic_store(&readers[i], ((atomic_load(&readers[i]) >> COUNT_BITS) + 1)
                                      << COUNT_BITS);
}
