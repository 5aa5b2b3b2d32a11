/* SPDX-License-Identifier: Apache-2.0 */
/* What a wait for a condition tells statistics and tracers: that it began, and that its
 * thread is awake or has failed. Both come before the thread takes the mutex again.
 * Thread: callers'. Locks: takes the registry's mu. */
#include "lock/cond_wait_impl.h"

#include "base/probe.h"

#include <errno.h>

void rlk_cond_wait_tell_begun(struct rlk_cond_wait_op *op)
{
    op->since = rlk_clock_boot();
    RLK_COUNT(op->client->counters.cond_waits);
    RLK_PROBE2(cond_wait_begin, RLK_PROBE_TEXT(op->args->cond->rlk_name), op->args->kind);
}

void rlk_cond_wait_tell_woken(struct rlk_cond_wait_op *op)
{
    struct rlk_registry *reg = rlk_cond_wait_registry(op);
    struct rlk_counters *counters = &op->client->counters;
    int64_t lasted = rlk_clock_boot() - op->since;

    rlk_registry_lock(reg);
    bool told = op->wait->told;
    rlk_histogram_add(&reg->slept, lasted);
    rlk_registry_unlock(reg);
    if (told)
        RLK_COUNT(counters->cond_wakeups);
    else
        RLK_COUNT(counters->cond_needless);
    RLK_PROBE3(cond_woken, RLK_PROBE_TEXT(op->condition->name), (int)told,
               RLK_PROBE_US(lasted));
    op->reported = true;
}

void rlk_cond_wait_tell_failed(struct rlk_cond_wait_op *op, int code)
{
    int64_t lasted = rlk_clock_boot() - op->since;

    if (op->reported)
        return;
    if (code == ETIMEDOUT)
        RLK_COUNT(op->client->counters.cond_timeouts);
    RLK_PROBE3(cond_failed, RLK_PROBE_TEXT(op->condition->name), code,
               RLK_PROBE_US(lasted));
    op->reported = true;
}
