/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for conditions, and what messages say of them; see condition.h. Thread: any.
 * Locks: hold the registry's mu. Blocks: no. */
#include "state/condition.h"

#include "base/clock.h"
#include "state/registry.h"

#include <stdlib.h>

/* ---- waits */

struct rlk_wait *rlk_condition_begin_locked(struct rlk_condition *condition,
                                            struct rlk_thread *thread,
                                            uint32_t presence_ms)
{
    struct rlk_registry *reg = condition->registry;
    struct rlk_list *l = rlk_list_pop(&reg->conditions.free_waits);
    struct rlk_wait *wait =
        l ? RLK_CONTAINER_OF(l, struct rlk_wait, link) : malloc(sizeof(*wait));

    if (!wait)
        return NULL;
    reg->conditions.free_count -= l != NULL;
    *wait = (struct rlk_wait){
        .condition = condition,
        .thread = thread,
        .id = { .thread = thread->number,
                .acquisition = rlk_id_number(rlk_random_next(&reg->random)),
                .letter = RLK_CONDITION_LETTER,
                .grant_ms = presence_ms },
        .refs = 1,
        .state = RLK_WAIT_JOINING,
    };
    /* before the request leaves (G7) */
    if (condition->intent == 0)
        condition->intent = rlk_intent_note_condition_locked(&reg->slots, condition->name,
                                                             condition->name_len);
    rlk_list_append(&condition->waits, &wait->link);
    condition->asleep++;
    reg->conditions.asleep++;
    return wait;
}

static void wake(struct rlk_wait *wait)
{
    if (wait->thread && wait->state <= RLK_WAIT_WAITING)
        rlk_registry_wake_locked(wait->condition->registry, wait->thread);
}

/* The thread does not sleep for a signal any more: it counts as awake (V14). */
static void count_awake(struct rlk_wait *wait, bool was_awake)
{
    if (was_awake || wait->state > RLK_WAIT_WAITING)
        return;
    wait->condition->asleep--;
    wait->condition->registry->conditions.asleep--;
}

static bool is_awake(const struct rlk_wait *wait)
{
    return wait->told || wait->unasked || wait->state >= RLK_WAIT_BACK;
}

void rlk_condition_told_locked(struct rlk_wait *wait)
{
    bool was_awake = is_awake(wait);

    wait->told = true;
    count_awake(wait, was_awake);
    wake(wait);
}

/* rule: V2 */
static void end_unasked(struct rlk_wait *wait)
{
    bool was_awake = is_awake(wait);

    if (wait->state >= RLK_WAIT_BACK)
        return;
    wait->unasked = true;
    count_awake(wait, was_awake);
    wake(wait);
}

/* rule: V11 */
void rlk_condition_joined_locked(struct rlk_wait *wait, int64_t ticket)
{
    wait->ticket = ticket;
    if (wait->state == RLK_WAIT_JOINING)
        wait->state = RLK_WAIT_WAITING;
    if (wait->early_ticket == ticket) {
        wait->taken_out = wait->early_out;
        rlk_condition_told_locked(wait);
    }
    rlk_condition_schedule_locked(wait->condition, rlk_clock_boot());
}

void rlk_condition_back_locked(struct rlk_wait *wait)
{
    bool was_awake = is_awake(wait);

    count_awake(wait, was_awake);
    wait->state = RLK_WAIT_BACK;
}

void rlk_condition_end_locked(struct rlk_wait *wait, enum rlk_condition_end how,
                              bool marked)
{
    struct rlk_condition *condition = wait->condition;
    bool done = how == RLK_CONDITION_RETURNED && wait->told;

    /* rule: V4 */
    count_awake(wait, is_awake(wait));
    wait->thread = NULL;
    wait->marked = marked;
    wait->state = done ? RLK_WAIT_DONE : RLK_WAIT_LEFT;
    rlk_list_remove(&wait->link);
    rlk_past_add(&condition->registry->past, wait->id.acquisition);
    rlk_condition_over_locked(wait,
                              how == RLK_CONDITION_REMOVED || (done && wait->taken_out));
    rlk_condition_schedule_locked(condition, rlk_clock_boot());
}

/* ---- facts */

static struct rlk_wait *find_in(const struct rlk_list *waits, const struct rlk_id *id)
{
    for (struct rlk_list *l = waits->next; l != waits; l = l->next) {
        struct rlk_wait *wait = RLK_CONTAINER_OF(l, struct rlk_wait, link);
        if (rlk_id_equal(&wait->id, id))
            return wait;
    }
    return NULL;
}

void rlk_condition_told_own_locked(struct rlk_condition *condition,
                                   const struct rlk_id *id, int64_t ticket, bool out)
{
    struct rlk_wait *wait = find_in(&condition->waits, id);

    if (!wait)
        return; /* its call has given it up, or has heard of it */
    /* rule: V11 */
    if (wait->state == RLK_WAIT_JOINING) {
        wait->early_ticket = ticket;
        wait->early_out = out;
    } else if (wait->ticket == ticket) {
        wait->taken_out = out;
        rlk_condition_told_locked(wait);
    }
}

/* The id waits no more, but the server has signalled it: the signal goes to another
 * waiter at once. No request of the id is under way that would need a marker. */
static bool leave_at_once(struct rlk_registry *reg, const struct rlk_id *id,
                          const char *name, size_t name_len)
{
    struct rlk_condition *condition;
    struct rlk_wait *wait;

    if (!rlk_past_take(&reg->past, id->acquisition) ||
        !(condition = rlk_condition_get_locked(reg, name, name_len)))
        return false;
    wait = malloc(sizeof(*wait));
    if (wait) {
        *wait = (struct rlk_wait){
            .condition = condition, .id = *id, .refs = 1, .state = RLK_WAIT_LEFT
        };
        rlk_list_append(&condition->over, &wait->link);
        rlk_condition_schedule_locked(condition, rlk_clock_boot());
    }
    rlk_condition_put_locked(condition);
    return true;
}

/* rule: V11 */
bool rlk_condition_message_locked(struct rlk_registry *reg, const struct rlk_id *id,
                                  int64_t ticket, const char *name, size_t name_len)
{
    struct rlk_condition *condition = rlk_condition_find_locked(reg, name, name_len);
    struct rlk_wait *wait = condition ? find_in(&condition->waits, id) : NULL;

    if (condition && !wait &&
        (find_in(&condition->over, id) || find_in(&condition->poll.over, id)))
        return true; /* the server learns of it anyway */
    /* rule: V4 */
    if (!wait)
        return leave_at_once(reg, id, name, name_len);
    if (wait->state == RLK_WAIT_JOINING) {
        wait->early_ticket = ticket;
        wait->early_out = false;
    } else if (wait->state == RLK_WAIT_WAITING && wait->ticket == ticket) {
        rlk_condition_told_locked(wait);
    }
    return true;
}

/* rule: V2 */
void rlk_condition_wake_some_locked(struct rlk_registry *reg, rlk_condition_is is,
                                    void *arg)
{
    const struct rlk_conditions *all = &reg->conditions;

    for (size_t i = 0; i < all->size; i++)
        for (struct rlk_condition *c = all->table[i]; c; c = c->chain)
            for (struct rlk_list *l = c->waits.next;
                 (!is || is(c, arg)) && l != &c->waits; l = l->next)
                end_unasked(RLK_CONTAINER_OF(l, struct rlk_wait, link));
}

void rlk_condition_call_all_locked(struct rlk_registry *reg)
{
    const struct rlk_conditions *all = &reg->conditions;

    for (size_t i = 0; i < all->size; i++)
        for (struct rlk_condition *c = all->table[i]; c; c = c->chain)
            for (struct rlk_list *l = c->waits.next; l != &c->waits; l = l->next)
                wake(RLK_CONTAINER_OF(l, struct rlk_wait, link));
}
