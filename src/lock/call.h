/* SPDX-License-Identifier: Apache-2.0 */
/* What every public call does first and last: cancellation is off inside, errno is left
 * alone, the thread's message belongs to this call. */
#ifndef RLK_CALL_H
#define RLK_CALL_H

#include "base/error.h"
#include "base/sync.h"

#include <errno.h>

struct rlk_call {
    struct rlk_cancel cancel;
    int saved_errno;
};

static inline struct rlk_call rlk_call_enter(void)
{
    struct rlk_call call = { rlk_sync_cancel_disable(), errno };
    rlk_error_clear();
    return call;
}

static inline int rlk_call_leave(struct rlk_call call, int rc)
{
    if (__builtin_expect(rc != 0, 0))
        rlk_error_default(rc);
    errno = call.saved_errno;
    rlk_sync_cancel_restore(call.cancel);
    return rc;
}

#endif
