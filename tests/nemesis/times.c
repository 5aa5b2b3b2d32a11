/* SPDX-License-Identifier: Apache-2.0 */
/* No state. */
#include "times.h"

#include "wait.h"

enum { TAIL_MORE_MS = 2000, REST_MORE_MS = 30000 };

struct nem_times nem_times_of(long lease_ms, long presence_ms)
{
    /* the longest time for which a dead holder, and dead waiters, keep others out */
    long patience_ms = test_ms(3 * lease_ms + 5 * presence_ms);
    return (struct nem_times){ .patience_ms = patience_ms,
                               .tail_ms = patience_ms + test_ms(TAIL_MORE_MS),
                               .rest_ms = patience_ms + test_ms(REST_MORE_MS) };
}
