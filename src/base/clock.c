/* SPDX-License-Identifier: Apache-2.0 */
/* See clock.h. No state. Thread: any. Blocks: no. */
#include "base/clock.h"

int64_t rlk_clock_add(int64_t now, int64_t add)
{
    int64_t sum;
    if (__builtin_add_overflow(now, add, &sum))
        return add > 0 ? RLK_NEVER : INT64_MIN;
    return sum;
}
