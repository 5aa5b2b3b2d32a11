/* SPDX-License-Identifier: Apache-2.0 */
/* See thread_holds.h. */
#include "state/thread_holds.h"

#include "state/lock.h"

#include <stdlib.h>

enum { TABLE_FROM = 16 /* holds; with fewer, the list is as fast */ };

static struct rlk_holder **bucket(struct rlk_thread *thread,
                                  const struct rlk_holder *holder)
{
    return &thread->table[holder->hold->lock->hash & (thread->table_size - 1)];
}

static void insert(struct rlk_thread *thread, struct rlk_holder *holder)
{
    struct rlk_holder **at = bucket(thread, holder);
    holder->next_of_thread = *at;
    *at = holder;
}

/* Makes the table, or a table of twice the size. Without memory the old one stays. */
static void grow(struct rlk_thread *thread)
{
    size_t size = thread->table ? thread->table_size * 2 : 2 * (size_t)TABLE_FROM;
    struct rlk_holder **table = calloc(size, sizeof(*table));
    if (!table)
        return;
    free(thread->table);
    thread->table = table;
    thread->table_size = size;
    for (struct rlk_list *l = thread->holds.next; l != &thread->holds; l = l->next)
        insert(thread, RLK_CONTAINER_OF(l, struct rlk_holder, thread_link));
}

void rlk_thread_holds_add(struct rlk_thread *thread, struct rlk_holder *holder)
{
    rlk_list_prepend(&thread->holds, &holder->thread_link);
    if (thread->table)
        insert(thread, holder);
    if (++thread->hold_count >= (thread->table ? thread->table_size : TABLE_FROM))
        grow(thread);
}

void rlk_thread_holds_remove(struct rlk_thread *thread, struct rlk_holder *holder)
{
    if (rlk_list_empty(&holder->thread_link))
        return;
    rlk_list_remove(&holder->thread_link);
    if (thread->table) {
        struct rlk_holder **at = bucket(thread, holder);
        while (*at != holder)
            at = &(*at)->next_of_thread;
        *at = holder->next_of_thread;
    }
    if (--thread->hold_count == 0) {
        free(thread->table);
        thread->table = NULL;
    }
}
