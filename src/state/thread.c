/* SPDX-License-Identifier: Apache-2.0 */
/* Thread records. Thread: any, each its own. Locks: none. */
#include "state/thread.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { ROUNDS_MAX = 4 }; /* PTHREAD_DESTRUCTOR_ITERATIONS of glibc */

_Thread_local struct rlk_thread *rlk_thread_record;

static struct rlk_mutex mu = RLK_MUTEX_INIT; /* protects unused; nests in nothing */
static struct rlk_list unused = { &unused,
                                  &unused }; /* records of ended threads, by holds */

static rlk_once_t once = RLK_ONCE_INIT;
static rlk_tsd_t slot;
static int slot_rc = -1;
/* A thread is changing `unused`: a child that another thread forks meanwhile cannot use
 * that list. */
static atomic_bool changing;
/* The parent's records, so that leak checkers see them: of threads that went on in
 * children, and unused ones. */
static struct rlk_thread *inherited;
static struct rlk_list *inherited_unused __attribute__((used));
static atomic_uint_fast64_t last_number;
static void (*exit_hook)(struct rlk_thread *thread);

void rlk_thread_set_exit(void (*give_up)(struct rlk_thread *thread))
{
    exit_hook = give_up;
}

static void leave_for_others(struct rlk_thread *thread)
{
    rlk_sync_mutex_lock(&mu);
    atomic_store(&changing, true);
    rlk_list_append(&unused, &thread->holds);
    atomic_store(&changing, false);
    rlk_sync_mutex_unlock(&mu);
}

static void end_thread(struct rlk_thread *thread)
{
    if (rlk_fork_since(thread->generation)) {
        rlk_thread_record = NULL;
        return; /* the record and its holds are the parent's */
    }
    bool holds = !rlk_list_empty(&thread->holds) || thread->fast_in;
    if (++rlk_sync_sections.ends < ROUNDS_MAX - 1 && holds &&
        rlk_sync_tsd_set(slot, thread) == 0)
        return;
    rlk_thread_record = NULL;
    if (exit_hook && (holds || thread->fast))
        exit_hook(thread);
    leave_for_others(thread);
}

/* Destructors of the program may still unlock what the thread holds, in any order: this
 * destructor waits for the others, as long as there are rounds. A thread that returned
 * from its function can still be cancelled. Cancellation is off in here, so that all of
 * this is done. */
static void thread_ends(void *value)
{
    struct rlk_cancel cancel = rlk_sync_cancel_disable();
    end_thread(value);
    rlk_sync_cancel_restore(cancel);
}

/* The record of a thread that ended, or a new one. If the record is from a parent,
 * another thread of the parent may have been about to wake its thread: then the condition
 * is in the middle of a signal, and the link is in a list. So both are initialized
 * again. */
static struct rlk_thread *make_record(void)
{
    rlk_sync_mutex_lock(&mu);
    atomic_store(&changing, true);
    struct rlk_list *l = rlk_list_pop(&unused);
    atomic_store(&changing, false);
    rlk_sync_mutex_unlock(&mu);
    struct rlk_thread *thread =
        l ? RLK_CONTAINER_OF(l, struct rlk_thread, holds) : calloc(1, sizeof(*thread));
    if (!thread || (l && thread->generation == rlk_fork_generation()))
        return thread;
    if (rlk_sync_cond_init(&thread->cond) != 0) {
        if (l)
            leave_for_others(thread);
        else
            free(thread);
        return NULL;
    }
    rlk_list_init(&thread->wake_link);
    return thread;
}

static void init(void)
{
    slot_rc = rlk_sync_tsd_create(&slot, thread_ends);
}

/* The calling thread's record, if it has one, is its parent's: it goes to `inherited`. */
static void leave_inherited(void)
{
    struct rlk_thread *last = rlk_thread_record;

    if (!last)
        return;
    while (last->inherited)
        last = last->inherited;
    rlk_sync_mutex_lock(&mu);
    last->inherited = inherited;
    inherited = rlk_thread_record;
    rlk_sync_mutex_unlock(&mu);
    rlk_thread_record = NULL;
}

void rlk_thread_forget(void)
{
    mu = (struct rlk_mutex)RLK_MUTEX_INIT;
    if (atomic_exchange(&changing, false)) {
        inherited_unused = unused.next;
        rlk_list_init(&unused);
    }
    if (slot_rc == 0)
        rlk_sync_tsd_set(slot, NULL);
    leave_inherited();
}

struct rlk_thread *rlk_thread_get(void)
{
    if (rlk_thread_mine())
        return rlk_thread_record;
    leave_inherited();
    rlk_sync_once(&once, init);
    struct rlk_thread *thread = slot_rc == 0 ? make_record() : NULL;
    if (!thread)
        return NULL;
    rlk_list_init(&thread->holds);
    if (rlk_sync_tsd_set(slot, thread) != 0) {
        leave_for_others(thread);
        return NULL;
    }
    thread->generation = rlk_fork_generation();
    thread->number = atomic_fetch_add(&last_number, 1) + 1;
    rlk_thread_record = thread;
    return thread;
}
