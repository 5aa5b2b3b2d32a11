/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a hold, its id, references and memory; see hold.h. Thread: any. Locks:
 * hold the registry's mu. Blocks: no. */
#include "state/hold.h"

#include "state/registry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The cost of a held lock (doc/PERFORMANCE.md): with malloc's own 8 bytes, a multiple
 * of 16. */
_Static_assert(sizeof(struct rlk_hold) <= 328, "more than 512 bytes per held lock");

enum { FREE_HOLDS_MAX = 64 /* for reuse: lock and unlock allocate nothing */ };

/* ---- states. doc/design/client.md, "States of a hold", has the same table. */

#define IN(state) (1u << RLK_HOLD_##state)

static const struct {
    enum rlk_hold_event event;
    unsigned from; /* a set of states */
    enum rlk_hold_state to;
} transitions[] = {
    { RLK_ON_ENTER, IN(REQUESTED), RLK_HOLD_HELD },        /* rule: T10 */
    { RLK_ON_CANCEL, IN(REQUESTED), RLK_HOLD_CANCELLING }, /* rule: T7 */
    { RLK_ON_YOURS, IN(CANCELLING), RLK_HOLD_REQUESTED },  /* rule: T8 */
    { RLK_ON_GIVE_UP, IN(REQUESTED) | IN(CANCELLING),
      RLK_HOLD_CANCELLING },                                         /* rule: T7 */
    { RLK_ON_RETAIN, IN(HELD), RLK_HOLD_RETAINED },                  /* rule: H4, K1 */
    { RLK_ON_TAKE, IN(RETAINED), RLK_HOLD_HELD },                    /* rule: K7 */
    { RLK_ON_FOUND, IN(RETAINED), RLK_HOLD_HELD },                   /* rule: H1 */
    { RLK_ON_RELEASE, IN(HELD) | IN(RETAINED), RLK_HOLD_RELEASING }, /* rule: H2 */
    { RLK_ON_LOSS, IN(HELD) | IN(RETAINED), RLK_HOLD_LOST },         /* rule: T6 */
};

/* The only function that changes a state. An event that the table does not have for the
 * state is a fault of this library: a build without assertions leaves the state as it
 * is. */
void rlk_hold_change_locked(struct rlk_hold *hold, enum rlk_hold_event event)
{
    struct rlk_registry *reg = hold->lock->registry;
    uint8_t from = hold->state, to = (uint8_t)transitions[event].to;
    bool known = rlk_hold_can_change(hold, event);

    assert(known);
    if (!known)
        return;
    reg->holds_now -= from == RLK_HOLD_HELD;
    reg->holds_now += to == RLK_HOLD_HELD;
    if (from < RLK_HOLD_CANCELLING && to >= RLK_HOLD_CANCELLING)
        memset(&hold->ending, 0, sizeof(hold->ending)); /* where the budget was */
    atomic_store_explicit(&hold->state, to, memory_order_release);
}

bool rlk_hold_can_change(const struct rlk_hold *hold, enum rlk_hold_event event)
{
    return transitions[event].event == event &&
           transitions[event].from >> hold->state & 1;
}

/* ---- holds */

struct rlk_hold *rlk_hold_new_locked(struct rlk_lock *lock, struct rlk_thread *thread,
                                     char letter, uint32_t grant_ms)
{
    struct rlk_registry *reg = lock->registry;
    struct rlk_hold *hold;
    struct rlk_list *l = rlk_list_pop(&reg->free_holds);

    if (l) {
        hold = RLK_CONTAINER_OF(l, struct rlk_hold, link);
        reg->free_hold_count--;
        memset(hold, 0, sizeof(*hold));
    } else {
        hold = calloc(1, sizeof(*hold));
        if (!hold)
            return NULL;
    }
    hold->lock = lock;
    lock->refs++;
    hold->id.letter = letter;
    hold->id.grant_ms = grant_ms;
    if (thread)
        rlk_hold_rename_locked(hold, thread);
    hold->refs = 1;
    hold->request.need_ask = true;
    hold->end = INT64_MIN;
    hold->state = RLK_HOLD_REQUESTED;
    hold->timer.tag = RLK_TIMER_HOLD;
    hold->pass = (struct rlk_pass *)&rlk_hold_no_pass;
    rlk_list_init(&hold->link);
    rlk_list_init(&hold->holders);
    reg->hold_count++;
    return hold;
}

/* The id is over. If it queued, its number is remembered, so that a late grant for it is
 * known as this process's own. */
static void end_id(struct rlk_hold *hold)
{
    if (hold->server.queued)
        rlk_past_add(&hold->lock->registry->past, hold->id.acquisition);
    hold->server.queued = false;
}

void rlk_hold_rename_locked(struct rlk_hold *hold, struct rlk_thread *thread)
{
    end_id(hold);
    hold->id.thread = thread->number;
    hold->id.acquisition = rlk_id_number(rlk_random_next(&hold->lock->registry->random));
    hold->server.unknown = hold->server.asked = hold->contention.contended =
        hold->lease.reported_lost = false;
    hold->request.open_most = 0;
    rlk_hold_ask_anew_locked(hold);
}

void rlk_hold_ask_anew_locked(struct rlk_hold *hold)
{
    hold->request.granted = hold->robust.owner_died = hold->request.unrecoverable = false;
    hold->request.need_ask = true;
    hold->request.ticket = hold->request.grant_ticket = hold->request.asks_since = 0;
}

static void put_pass(struct rlk_registry *reg, struct rlk_pass *pass)
{
    if (reg->free_pass_count < FREE_HOLDS_MAX) {
        reg->free_pass_count++;
        rlk_list_prepend(&reg->free_passes, &pass->fastpath_link);
    } else {
        free(pass);
    }
}

void rlk_hold_ref_locked(struct rlk_hold *hold)
{
    hold->refs++;
}

void rlk_hold_put_locked(struct rlk_hold *hold)
{
    struct rlk_registry *reg = hold->lock->registry;

    assert(hold->refs > 0);
    if (--hold->refs > 0)
        return;
    end_id(hold);
    rlk_list_remove(&hold->link);
    rlk_intent_clear_locked(hold);
    rlk_timer_disarm(&reg->timers, &hold->timer);
    rlk_lock_unref_locked(hold->lock);
    reg->hold_count--;
    if (hold->pass != &rlk_hold_no_pass)
        put_pass(reg, hold->pass);
    if (reg->free_hold_count < FREE_HOLDS_MAX) {
        reg->free_hold_count++;
        rlk_list_prepend(&reg->free_holds, &hold->link);
    } else {
        free(hold);
    }
}

/* ---- hand-off and retention */

const struct rlk_pass rlk_hold_no_pass = {
    .residents = { (struct rlk_list *)&rlk_hold_no_pass.residents,
                   (struct rlk_list *)&rlk_hold_no_pass.residents },
};

bool rlk_hold_pass_locked(struct rlk_hold *hold)
{
    struct rlk_registry *reg = hold->lock->registry;

    if (hold->pass != &rlk_hold_no_pass)
        return true;
    struct rlk_list *l = rlk_list_pop(&reg->free_passes);
    struct rlk_pass *pass =
        l ? RLK_CONTAINER_OF(l, struct rlk_pass, fastpath_link) : malloc(sizeof(*pass));
    if (!pass)
        return false;
    if (l)
        reg->free_pass_count--;
    uint64_t end = rlk_hold_token_end(hold);
    memset(pass, 0, sizeof(*pass));
    pass->hold = hold;
    pass->token_end = end;
    rlk_list_init(&pass->residents);
    rlk_list_init(&pass->fastpath_link);
    hold->pass = pass;
    return true;
}

void rlk_hold_retain_locked(struct rlk_hold *hold, int64_t retain_ns)
{
    size_t *count = &hold->lock->registry->retained_count;
    if (hold->pass == &rlk_hold_no_pass)
        return;
    if (hold->pass->retain_ns > 0)
        --*count;
    if (retain_ns > 0)
        ++*count;
    hold->pass->retain_ns = retain_ns;
}

bool rlk_hold_unused_locked(const struct rlk_hold *hold)
{
    /* rule: W22 */
    return rlk_list_empty(&hold->holders) && (!hold->reading || hold->read.joins == 0);
}
