/* SPDX-License-Identifier: Apache-2.0 */
/* Two epochs take turns. Who waits ends the present one first, so that it does not wait
 * for later readers. */
#include "base/epoch.h"

#include "base/fork.h"
#include "base/sync.h"

#include <stdatomic.h>

static _Atomic unsigned readers[2], current;

struct rlk_epoch rlk_epoch_enter(void)
{
    struct rlk_epoch epoch = { atomic_load(&current), rlk_fork_generation() };

    atomic_fetch_add(&readers[epoch.number], 1);
    return epoch;
}

void rlk_epoch_leave(struct rlk_epoch epoch)
{
    if (epoch.generation == rlk_fork_generation())
        atomic_fetch_sub(&readers[epoch.number], 1);
}

/* Waits for each epoch in turn, because a reader may have read the number before that
 * epoch ended and counted itself later. */
void rlk_epoch_wait(void)
{
    for (int i = 0; i < 2; i++) {
        unsigned next = 1 - atomic_load(&current);
        while (atomic_load(&readers[next]) > 0)
            rlk_sync_pause();
        atomic_store(&current, next);
    }
}

void rlk_epoch_forget(void)
{
    for (int i = 0; i < 2; i++)
        atomic_store(&readers[i], 0);
}
