/* SPDX-License-Identifier: Apache-2.0 */
/* The table of conditions; see condition.h. Thread: any. Locks: hold the registry's mu.
 * Blocks: no. */
#include "state/condition.h"

#include "net/key.h"
#include "state/registry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_SIZE_FIRST = 16 };

/* ---- the table */

void rlk_condition_init(struct rlk_conditions *all)
{
    *all = (struct rlk_conditions){ .table = NULL };
    rlk_list_init(&all->free_waits);
}

static struct rlk_condition **bucket(struct rlk_conditions *all, uint32_t hash)
{
    return &all->table[hash & (all->size - 1)];
}

/* Without memory a table with entries stays as it is. False: there is none. */
static bool grow(struct rlk_conditions *all)
{
    size_t size = all->size ? 2 * all->size : TABLE_SIZE_FIRST;
    struct rlk_condition **old = all->table;
    size_t old_size = all->size;
    struct rlk_condition **bigger = calloc(size, sizeof(*bigger));

    if (!bigger)
        return old != NULL;
    all->table = bigger;
    all->size = size;
    for (size_t i = 0; i < old_size; i++) {
        while (old[i]) {
            struct rlk_condition *condition = old[i];
            old[i] = condition->chain;
            condition->chain = *bucket(all, condition->hash);
            *bucket(all, condition->hash) = condition;
        }
    }
    free(old);
    return true;
}

struct rlk_condition *rlk_condition_find_locked(struct rlk_registry *reg,
                                                const char *name, size_t name_len)
{
    struct rlk_conditions *all = &reg->conditions;
    struct rlk_condition *condition = NULL;

    if (all->count > 0)
        condition = *bucket(all, (uint32_t)rlk_key_hash(name, name_len));
    while (condition && !(condition->name_len == name_len &&
                          memcmp(condition->name, name, name_len) == 0))
        condition = condition->chain;
    return condition;
}

static struct rlk_condition *make(struct rlk_registry *reg, const char *name,
                                  size_t name_len)
{
    struct rlk_conditions *all = &reg->conditions;
    struct rlk_condition *condition = calloc(1, sizeof(*condition) + name_len + 1);

    if (condition && all->count >= all->size && !grow(all)) {
        free(condition);
        return NULL;
    }
    if (!condition)
        return NULL;
    condition->registry = reg;
    condition->hash = (uint32_t)rlk_key_hash(name, name_len);
    condition->name_len = (uint8_t)name_len;
    memcpy(condition->name, name, name_len);
    rlk_list_init(&condition->waits);
    rlk_list_init(&condition->over);
    rlk_list_init(&condition->poll.over);
    condition->timer.tag = RLK_TIMER_CONDITION;
    condition->chain = *bucket(all, condition->hash);
    *bucket(all, condition->hash) = condition;
    all->count++;
    return condition;
}

struct rlk_condition *rlk_condition_get_locked(struct rlk_registry *reg, const char *name,
                                               size_t name_len)
{
    struct rlk_condition *condition = rlk_condition_find_locked(reg, name, name_len);

    if (!condition)
        condition = make(reg, name, name_len);
    if (condition)
        condition->refs++;
    return condition;
}

/* Frees a condition that nothing needs. */
static void end_if_unused(struct rlk_condition *condition)
{
    struct rlk_registry *reg = condition->registry;
    struct rlk_condition **at = bucket(&reg->conditions, condition->hash);

    if (condition->refs > 0 || !rlk_list_empty(&condition->waits) ||
        !rlk_list_empty(&condition->over) || rlk_condition_has_signals(condition))
        return;
    rlk_timer_disarm(&reg->timers, &condition->timer);
    rlk_intent_clear_condition_locked(&reg->slots, condition->intent);
    while (*at != condition)
        at = &(*at)->chain;
    *at = condition->chain;
    reg->conditions.count--;
    free(condition->poll.waits);
    free(condition);
}

void rlk_condition_ref_locked(struct rlk_condition *condition)
{
    condition->refs++;
}

void rlk_condition_put_locked(struct rlk_condition *condition)
{
    assert(condition->refs > 0);
    condition->refs--;
    end_if_unused(condition);
}

static void free_waits(struct rlk_list *waits)
{
    struct rlk_list *l;

    while ((l = rlk_list_pop(waits)) != NULL)
        free(RLK_CONTAINER_OF(l, struct rlk_wait, link));
}

void rlk_condition_destroy(struct rlk_conditions *all)
{
    for (size_t i = 0; i < all->size; i++) {
        while (all->table[i]) {
            struct rlk_condition *condition = all->table[i];
            all->table[i] = condition->chain;
            free_waits(&condition->waits);
            free_waits(&condition->over);
            free_waits(&condition->poll.over);
            free(condition->poll.waits);
            free(condition);
        }
    }
    free(all->table);
    free_waits(&all->free_waits);
    *all = (struct rlk_conditions){ .table = NULL };
}

void rlk_condition_shut_locked(struct rlk_registry *reg)
{
    struct rlk_conditions *all = &reg->conditions;

    for (size_t i = 0; i < all->size; i++)
        for (struct rlk_condition *condition = all->table[i]; condition;
             condition = condition->chain)
            rlk_timer_disarm(&reg->timers, &condition->timer);
    all->signal_count = 0;
}
