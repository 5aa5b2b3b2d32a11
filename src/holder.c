/* SPDX-License-Identifier: Apache-2.0 */
/* What each thread has of a hold; see hold.h. Thread: any. Locks: hold the registry's mu.
 * Blocks: no. */
#include "hold.h"

#include "gate.h"
#include "holdings.h"
#include "registry.h"

#include <stdlib.h>
#include <string.h>

enum { FREE_HOLDERS_MAX = 64 /* kept for reuse, so that a pair allocates nothing */ };

void rlk_part_init(struct rlk_part *part, struct rlk_hold *hold)
{
    memset(part, 0, sizeof(*part));
    part->hold = hold;
    rlk_list_init(&part->hold_link);
    rlk_list_init(&part->thread_link);
}

struct rlk_part *rlk_hold_join_locked(struct rlk_hold *hold, bool fencing)
{
    struct rlk_registry *reg = hold->lock->registry;
    struct rlk_part *part = &hold->own;

    if (part->owner || part->news_awaits) {
        struct rlk_list *l = rlk_list_pop(&reg->free_parts);
        part =
            l ? RLK_CONTAINER_OF(l, struct rlk_part, hold_link) : malloc(sizeof(*part));
        if (!part)
            return NULL;
        if (l)
            reg->free_part_count--;
        rlk_part_init(part, hold);
    }
    part->fencing = fencing;
    part->claimed = part->ended = false;
    rlk_list_append(&hold->parts, &part->hold_link);
    hold->refs++;
    return part;
}

void rlk_part_own_locked(struct rlk_part *part, struct rlk_thread *thread, int64_t now)
{
    part->since = now;
    part->ended = false;
    part->owner = thread;
    part->owner_thread = rlk_thread_self();
    rlk_part_first_level(part);
    part->claimed = true;
    if (part->hold->at_risk)
        rlk_part_news_locked(part, RLK_NEWS_AT_RISK);
    if (thread->fast == part)
        thread->fast_in = true;
    else
        rlk_holdings_add(thread, part);
}

void rlk_part_end_section_locked(struct rlk_part *part, int64_t now)
{
    int64_t lasted = now - part->since;

    rlk_histogram_add(&part->hold->lock->registry->held, lasted);
    part->since = lasted > 0 ? lasted : 0;
    part->ended = true;
}

/* Neither its thread nor the news need it any more. */
static void put_part(struct rlk_part *part)
{
    struct rlk_hold *hold = part->hold;
    struct rlk_registry *reg = hold->lock->registry;

    if (part != &hold->own && !part->owner && !part->news_awaits) {
        if (reg->free_part_count < FREE_HOLDERS_MAX) {
            reg->free_part_count++;
            rlk_list_prepend(&reg->free_parts, &part->hold_link);
        } else {
            free(part);
        }
    }
    rlk_hold_put_locked(hold);
}

void rlk_part_leave_locked(struct rlk_part *part)
{
    struct rlk_thread *thread = part->owner;

    rlk_gate_count_locked(part);
    if (part->fast) {
        thread->fast = NULL;
        thread->fast_in = false;
    }
    part->resident = part->fast = false;
    rlk_levels_clear(&part->levels);
    if (thread)
        rlk_holdings_remove(thread, part);
    rlk_list_remove(&part->hold_link);
    part->owner = NULL;
    put_part(part);
}

void rlk_part_news_locked(struct rlk_part *part, unsigned news)
{
    struct rlk_registry *reg = part->hold->lock->registry;

    part->news |= (uint8_t)news;
    if (!part->news_awaits) {
        part->news_awaits = true;
        part->hold->refs++;
        part->next_news = NULL;
        if (reg->first_news)
            reg->last_news->next_news = part;
        else
            reg->first_news = part;
        reg->last_news = part;
    }
    reg->subscriber_dirty = true;
}

struct rlk_part *rlk_registry_news_locked(struct rlk_registry *reg)
{
    struct rlk_part *part = reg->first_news;
    if (part) {
        reg->first_news = part->next_news;
        part->news_awaits = false;
    }
    return part;
}

void rlk_part_told_locked(struct rlk_part *part)
{
    part->news = 0;
    put_part(part);
}
