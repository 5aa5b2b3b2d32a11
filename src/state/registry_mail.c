/* SPDX-License-Identifier: Apache-2.0 */
/* What messages of the mailbox mean for the holds of a client; see registry.h. Any client
 * of the server may have sent a message. Thread: any. Locks: hold the registry's mu.
 * Blocks: no. */
#include "state/registry.h"

#include "base/clock.h"
#include "state/handoff.h"
#include "state/readshare.h"

/* The kind whose ids have this letter; 0: this version knows none. */
static int kind_of_letter(char letter)
{
    char lower = letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
    for (int kind = 1; kind < RLK_KIND_LIMIT; kind++)
        if (rlk_kinds[kind].letter == lower || rlk_kinds[kind].read_letter == lower)
            return kind;
    return 0;
}

static struct rlk_hold *find_in(const struct rlk_list *holds, const struct rlk_id *id)
{
    for (struct rlk_list *l = holds->next; l != holds; l = l->next) {
        struct rlk_hold *hold = RLK_CONTAINER_OF(l, struct rlk_hold, link);
        if (rlk_id_equal(&hold->id, id))
            return hold;
    }
    return NULL;
}

/* The lock that a message names; NULL: there is none. */
static struct rlk_lock *find_named(struct rlk_registry *reg, const struct rlk_id *id,
                                   const char *name, size_t name_len)
{
    int kind = kind_of_letter(id->letter);
    return kind ? rlk_lock_find_locked(reg, kind, name, name_len) : NULL;
}

/* rule: T7 */
/* The hold with this id, in whatever state, from before its first request leaves until
 * its last one is answered. An exclusive hold that has ended is not found: `lock->left`
 * names the last one. NULL: none. */
static struct rlk_hold *find_hold(struct rlk_lock *lock, const struct rlk_id *id)
{
    const struct rlk_queue *queue = lock->queue;
    const struct rlk_list *lists[] = { &queue->asks, &queue->tries, &queue->reads,
                                       &queue->leaving };
    struct rlk_hold *hold = NULL;

    if (lock->current && rlk_id_equal(&lock->current->id, id))
        return lock->current;
    for (size_t i = 0; !hold && i < sizeof(lists) / sizeof(*lists); i++)
        hold = find_in(lists[i], id);
    return hold;
}

/* The id is over, but the server has granted it the lock: the grant is given back at once
 * (T7), because others would wait for its TTL. No request of this id is under way that
 * would need a marker. */
static bool give_back_locked(struct rlk_registry *reg, const struct rlk_id *id,
                             const char *name, size_t name_len)
{
    int kind = kind_of_letter(id->letter);

    if (!kind || reg->background_count >= RLK_PAST_MAX ||
        !rlk_past_take(&reg->past, id->acquisition))
        return false;
    RLK_COUNT(reg->counters->grants_orphaned);
    struct rlk_lock *lock = rlk_lock_get_locked(reg, kind, name, name_len);
    struct rlk_hold *hold =
        lock ? rlk_hold_new_locked(lock, NULL, id->letter, id->grant_ms) : NULL;
    if (lock)
        rlk_lock_put_locked(lock);
    if (!hold)
        return true;
    hold->prefer = hold->lock->prefer;
    hold->id = *id;
    hold->reading = id->letter == 'r' || id->letter == 'R';
    rlk_hold_orphaned_locked(hold, rlk_clock_boot());
    return true;
}

bool rlk_registry_grant_locked(struct rlk_registry *reg, const struct rlk_id *id,
                               const char *name, size_t name_len, int64_t ticket,
                               uint64_t token, unsigned flags)
{
    struct rlk_lock *lock = find_named(reg, id, name, name_len);
    struct rlk_hold *hold = lock ? find_hold(lock, id) : NULL;

    /* rule: T7 */
    if (!hold) /* a hold that was left is released already, or its release is under way */
        return (lock && rlk_id_is(id, lock->left)) ||
               give_back_locked(reg, id, name, name_len);
    if (hold->state == RLK_HOLD_CANCELLING && rlk_hold_is_background(hold)) {
        RLK_COUNT(reg->counters->grants_orphaned);
        if (!hold->op)
            rlk_hold_background_locked(hold, rlk_clock_boot(), hold->ending.give_up_at);
        return true;
    }
    /* no news: the answer to a poll was faster, or the answer to the hold's cancel will
     * tell, or the hold does not queue and is granted nothing */
    if (hold->state != RLK_HOLD_REQUESTED || hold->request.granted ||
        hold->request.try_once)
        return true;
    RLK_COUNT(reg->counters->grants);
    if (!rlk_hold_granted_locked(hold, ticket, token, flags))
        rlk_queue_poll_locked(lock); /* the grant has another ticket than confirmed */
    return true;
}

bool rlk_registry_lost_locked(struct rlk_registry *reg, const struct rlk_id *id,
                              const char *name, size_t name_len)
{
    struct rlk_lock *lock = find_named(reg, id, name, name_len);
    struct rlk_hold *hold = lock ? find_hold(lock, id) : NULL;

    /* rule: T10 */
    if (!hold)
        return lock && rlk_id_is(id, lock->left);
    hold->lease.reported_lost =
        true; /* an answer may still come that says that the hold has the lock */
    if (rlk_hold_is_live(hold))
        rlk_hold_doubt_locked(hold, rlk_clock_boot());
    else if (hold->state == RLK_HOLD_REQUESTED)
        rlk_queue_poll_locked(lock);
    return true;
}

bool rlk_registry_recalled_locked(struct rlk_registry *reg, const struct rlk_id *id,
                                  const char *name, size_t name_len)
{
    struct rlk_lock *lock = find_named(reg, id, name, name_len);
    struct rlk_hold *hold = lock ? find_hold(lock, id) : NULL;

    /* rule: K6 */
    if (!hold)
        return lock && rlk_id_is(id, lock->left);
    if (hold->reading) /* the hold that the message names may be ending */
        rlk_readshare_recalled_locked(lock, rlk_clock_boot());
    else
        rlk_handoff_recalled_locked(hold, rlk_clock_boot());
    return true;
}
