/* SPDX-License-Identifier: Apache-2.0 */
/* See past.h. Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "state/past.h"

void rlk_past_add(struct rlk_past *past, uint64_t number)
{
    past->numbers[past->next] = number;
    past->next = (past->next + 1) % RLK_PAST_MAX;
}

bool rlk_past_take(struct rlk_past *past, uint64_t number)
{
    /* rule: L2 */
    for (unsigned i = 0; number != 0 && i < RLK_PAST_MAX; i++) {
        if (past->numbers[i] != number)
            continue;
        past->numbers[i] = 0;
        return true;
    }
    return false;
}
