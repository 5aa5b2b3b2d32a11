/* SPDX-License-Identifier: Apache-2.0 */
/* Thread records. Thread: any, each its own. Locks: none. */
#include "thread.h"

#include "fork.h"

#include <stdatomic.h>
#include <stdlib.h>

_Thread_local struct rlk_thread *rlk_thread_record;

static rlk_once_t once = RLK_ONCE_INIT;
static rlk_tsd_t slot;
static int slot_rc;
static atomic_uint_fast64_t last_number;
static void (*exit_hook)(struct rlk_thread *thread);

void rlk_thread_set_exit(void (*give_up)(struct rlk_thread *thread))
{
    exit_hook = give_up;
}

static void thread_ends(void *value)
{
    struct rlk_thread *thread = value;
    if (!rlk_fork_in_child() && exit_hook && !rlk_list_empty(&thread->holds))
        exit_hook(thread);
    rlk_thread_record = NULL;
    rlk_cond_destroy(&thread->cond);
    free(thread);
}

static void init(void)
{
    slot_rc = rlk_tsd_create(&slot, thread_ends);
}

struct rlk_thread *rlk_thread_get(void)
{
    if (rlk_thread_record)
        return rlk_thread_record;
    rlk_once(&once, init);
    struct rlk_thread *thread = slot_rc == 0 ? calloc(1, sizeof(*thread)) : NULL;
    if (!thread)
        return NULL;
    if (rlk_cond_init(&thread->cond) != 0)
        goto fail;
    if (rlk_tsd_set(slot, thread) != 0) {
        rlk_cond_destroy(&thread->cond);
        goto fail;
    }
    thread->number = atomic_fetch_add(&last_number, 1) + 1;
    rlk_list_init(&thread->holds);
    rlk_thread_record = thread;
    return thread;
fail:
    free(thread);
    return NULL;
}
