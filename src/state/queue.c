/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of a lock: made and freed; see lock.h.
 * Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "state/registry.h"

#include <stdlib.h>
#include <string.h>

enum { FREE_QUEUES_MAX = 64 /* for reuse: lock and unlock allocate nothing */ };

#define EMPTY(list)                                                                      \
    {                                                                                    \
        (struct rlk_list *)&rlk_queue_none.list, (struct rlk_list *)&rlk_queue_none.list \
    }

const struct rlk_queue rlk_queue_none = { .asks = EMPTY(asks),
                                          .tries = EMPTY(tries),
                                          .waiters = EMPTY(waiters),
                                          .readers = EMPTY(readers),
                                          .reads = EMPTY(reads),
                                          .leaving = EMPTY(leaving) };

static void init_queue(struct rlk_queue *queue, struct rlk_lock *lock)
{
    memset(queue, 0, sizeof(*queue));
    queue->lock = lock;
    rlk_list_init(&queue->asks);
    rlk_list_init(&queue->tries);
    rlk_list_init(&queue->waiters);
    rlk_list_init(&queue->channel_link);
    rlk_list_init(&queue->readers);
    rlk_list_init(&queue->reads);
    rlk_list_init(&queue->leaving);
    rlk_list_init(&queue->refresh.op.link);
    rlk_list_init(&queue->renewal.op.link);
    queue->timer.tag = RLK_TIMER_LOCK;
}

bool rlk_queue_make_locked(struct rlk_lock *lock)
{
    struct rlk_registry *reg = lock->registry;
    struct rlk_list *l = rlk_list_pop(&reg->free_queues);
    struct rlk_queue *queue =
        l ? RLK_CONTAINER_OF(l, struct rlk_queue, channel_link) : malloc(sizeof(*queue));
    if (!queue)
        return false;
    if (l)
        reg->free_queue_count--;
    init_queue(queue, lock);
    lock->queue = queue;
    return true;
}

void rlk_queue_end_locked(struct rlk_lock *lock)
{
    struct rlk_registry *reg = lock->registry;
    struct rlk_queue *queue = lock->queue;

    if (!rlk_lock_has_queue(lock))
        return;
    rlk_timer_disarm(&reg->timers, &queue->timer);
    free(queue->refresh.holds);
    free(queue->renewal.holds);
    lock->queue = (struct rlk_queue *)&rlk_queue_none;
    if (reg->free_queue_count < FREE_QUEUES_MAX) {
        reg->free_queue_count++;
        rlk_list_prepend(&reg->free_queues, &queue->channel_link);
    } else {
        free(queue);
    }
}

/* A read-write lock keeps its queue: a downgrade begins a read, and is not to fail for
 * want of memory. */
bool rlk_queue_is_quiet(const struct rlk_lock *lock)
{
    const struct rlk_queue *queue = lock->queue;
    return queue->users == 0 && rlk_list_empty(&queue->asks) &&
           rlk_list_empty(&queue->tries) && rlk_list_empty(&queue->leaving) &&
           rlk_list_empty(&queue->waiters) && !rlk_kinds[lock->kind].read_letter &&
           lock->kind != RLK_KIND_WATCH && !queue->requester && !queue->woken &&
           !queue->going_on && queue->channel_wanted == 0 && !queue->channel_listed &&
           !queue->channel_joined;
}
