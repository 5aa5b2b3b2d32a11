/* SPDX-License-Identifier: Apache-2.0 */
/* What the server is still to learn of a condition, and when; see condition.h. Thread:
 * any. Locks: hold the registry's mu. Blocks: no. */
#include "state/condition.h"

#include "base/clock.h"
#include "state/registry.h"

#include <stdlib.h>

enum { FREE_WAITS_MAX = 64 };

void rlk_condition_put_wait_locked(struct rlk_wait *wait)
{
    struct rlk_conditions *all = &wait->condition->registry->conditions;

    if (--wait->refs > 0)
        return;
    if (all->free_count >= FREE_WAITS_MAX) {
        free(wait);
        return;
    }
    rlk_list_append(&all->free_waits, &wait->link);
    all->free_count++;
}

void rlk_condition_over_locked(struct rlk_wait *wait, bool told)
{
    if (told)
        rlk_condition_put_wait_locked(wait);
    else
        rlk_list_append(&wait->condition->over, &wait->link);
}

size_t rlk_condition_write_over(char *buf, const struct rlk_wait *wait)
{
    size_t len = rlk_id_write_local(buf, &wait->id);

    if (wait->state == RLK_WAIT_LEFT && wait->marked)
        buf[len++] = '!';
    buf[len++] = ' ';
    return len;
}

/* rule: V4 */
void rlk_condition_settle_locked(struct rlk_condition *condition,
                                 struct rlk_settlement *ret)
{
    rlk_list_init(&ret->waits);
    ret->done_len = ret->left_len = 0;
    for (int n = 0; condition && n < RLK_SETTLEMENT_MAX; n++) {
        struct rlk_list *l = rlk_list_pop(&condition->over);
        if (!l)
            return;
        const struct rlk_wait *wait = RLK_CONTAINER_OF(l, struct rlk_wait, link);
        if (wait->state == RLK_WAIT_DONE)
            ret->done_len += rlk_condition_write_over(ret->done + ret->done_len, wait);
        else
            ret->left_len += rlk_condition_write_over(ret->left + ret->left_len, wait);
        rlk_list_append(&ret->waits, l);
    }
}

void rlk_condition_settled_locked(struct rlk_condition *condition,
                                  struct rlk_settlement *settlement, bool told)
{
    struct rlk_list *l;

    while ((l = rlk_list_pop(&settlement->waits)) != NULL)
        rlk_condition_over_locked(RLK_CONTAINER_OF(l, struct rlk_wait, link), told);
    if (condition)
        rlk_condition_schedule_locked(condition, rlk_clock_boot());
}

/* Whether a wait was given up: the server learns of that at once. */
static bool has_left(const struct rlk_condition *condition)
{
    const struct rlk_list *over = &condition->over;

    for (const struct rlk_list *l = over->next; l != over; l = l->next)
        if (RLK_CONTAINER_OF(l, struct rlk_wait, link)->state == RLK_WAIT_LEFT)
            return true;
    return false;
}

/* rule: V12, V17 */
void rlk_condition_schedule_locked(struct rlk_condition *condition, int64_t now)
{
    struct rlk_registry *reg = condition->registry;
    const struct rlk_condition_signals *signals = &condition->signals;
    bool sends = (signals->count > 0 || signals->all) && signals->op.kind == RLK_OP_NONE;
    bool polls = condition->poll.op.kind == RLK_OP_NONE;
    int64_t at = RLK_NEVER;

    if (sends || (polls && (condition->poll.again || has_left(condition))))
        at = now + condition->pause;
    else if (polls &&
             (!rlk_list_empty(&condition->waits) || !rlk_list_empty(&condition->over)))
        at = now + reg->presence_ns / 3;
    if (at != RLK_NEVER && (!condition->timer.armed || at < condition->timer.when))
        rlk_timer_arm(&reg->timers, &condition->timer, at);
}

void rlk_condition_count_signals_locked(struct rlk_condition *condition, bool had)
{
    struct rlk_registry *reg = condition->registry;
    bool has = rlk_condition_has_signals(condition);

    if (has && !had)
        reg->conditions.signal_count++;
    if (!has && had && --reg->conditions.signal_count == 0)
        rlk_sync_cond_broadcast(&reg->background_done);
}

/* rule: V17 */
void rlk_condition_send_later_locked(struct rlk_condition *condition, uint64_t count,
                                     int64_t bar)
{
    struct rlk_condition_signals *signals = &condition->signals;
    bool had = rlk_condition_has_signals(condition);

    if (count > 0) {
        signals->count += count;
    } else if (signals->op.kind != RLK_OP_NONE && signals->in_flight == 0) {
        signals->all_next = true;
        signals->bar_next = bar;
    } else {
        signals->all = true;
        signals->bar = bar;
    }
    rlk_condition_count_signals_locked(condition, had);
    rlk_condition_schedule_locked(condition, rlk_clock_boot());
}

/* rule: V17 */
void rlk_condition_signals_over_locked(struct rlk_condition *condition)
{
    struct rlk_condition_signals *signals = &condition->signals;

    signals->op.kind = RLK_OP_NONE;
    if (!signals->all_next)
        return;
    signals->all = true;
    signals->bar = signals->bar_next;
    signals->all_next = false;
}
