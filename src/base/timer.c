/* SPDX-License-Identifier: Apache-2.0 */
/* Pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986), two-pass merge. A node's
 * prev is its left sibling, or its parent when it is the first child. */
#include "base/timer.h"

#include <stddef.h>

#define WHEN_MAX ((INT64_C(1) << 60) - 1)

static struct rlk_timer *merge(struct rlk_timer *a, struct rlk_timer *b)
{
    if (!a)
        return b;
    if (!b)
        return a;
    if (b->when < a->when) {
        struct rlk_timer *swap = a;
        a = b;
        b = swap;
    }
    b->prev = a;
    b->next = a->child;
    if (a->child)
        a->child->prev = b;
    a->child = b;
    a->next = a->prev = NULL;
    return a;
}

/* Merges a list of siblings into one tree. */
static struct rlk_timer *merge_siblings(struct rlk_timer *first)
{
    struct rlk_timer *pairs = NULL;

    while (first) {
        struct rlk_timer *a = first, *b = a->next;
        first = b ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b)
            b->next = b->prev = NULL;
        a = merge(a, b);
        a->next = pairs;
        pairs = a;
    }
    struct rlk_timer *root = NULL;
    while (pairs) {
        struct rlk_timer *next = pairs->next;
        pairs->next = NULL;
        root = merge(root, pairs);
        pairs = next;
    }
    return root;
}

void rlk_timer_disarm(struct rlk_timers *heap, struct rlk_timer *t)
{
    if (!t->armed)
        return;
    t->armed = false;
    struct rlk_timer *rest = merge_siblings(t->child);
    t->child = NULL;
    if (t == heap->root) {
        heap->root = rest;
        return;
    }
    if (t->prev->child == t)
        t->prev->child = t->next;
    else
        t->prev->next = t->next;
    if (t->next)
        t->next->prev = t->prev;
    t->next = t->prev = NULL;
    heap->root = merge(heap->root, rest);
}

void rlk_timer_arm(struct rlk_timers *heap, struct rlk_timer *t, int64_t when)
{
    rlk_timer_disarm(heap, t);
    if (when < 0)
        when = 0;
    t->when = (when < WHEN_MAX ? when : WHEN_MAX) & WHEN_MAX;
    t->child = t->next = t->prev = NULL;
    t->armed = true;
    heap->root = merge(heap->root, t);
}
