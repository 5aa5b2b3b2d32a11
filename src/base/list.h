/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive doubly linked list with a sentinel head. An element outside any list
 * points to itself, so that removing it twice is harmless. The owner of a list guards
 * it. */
#ifndef RLK_LIST_H
#define RLK_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct rlk_list {
    struct rlk_list *next, *prev;
};

#define RLK_CONTAINER_OF(ptr, type, member)                                              \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void rlk_list_init(struct rlk_list *l)
{
    l->next = l->prev = l;
}

static inline bool rlk_list_empty(const struct rlk_list *l)
{
    return l->next == l;
}

static inline void rlk_list_append(struct rlk_list *head, struct rlk_list *l)
{
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}

static inline void rlk_list_prepend(struct rlk_list *head, struct rlk_list *l)
{
    rlk_list_append(head->next, l);
}

static inline void rlk_list_remove(struct rlk_list *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    rlk_list_init(l);
}

/* NULL when the list is empty. */
static inline struct rlk_list *rlk_list_first(struct rlk_list *head)
{
    return head->next == head ? NULL : head->next;
}

static inline struct rlk_list *rlk_list_pop(struct rlk_list *head)
{
    struct rlk_list *l = rlk_list_first(head);
    if (l)
        rlk_list_remove(l);
    return l;
}

#endif
