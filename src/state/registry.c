/* SPDX-License-Identifier: Apache-2.0 */
/* See registry.h. Thread: any. Nothing here blocks or talks to a network. */
#include "state/registry.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "state/awaited.h"
#include "state/fastpath.h"
#include "state/handoff.h"
#include "state/readshare.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    TABLE_SIZE_FIRST = 64,
    WAKES_MAX = 8, /* threads signalled after mu is dropped; more are rare */
    AWAY_MS = 100  /* an answer that takes longer is a failure to who is in a hurry */
};

int rlk_registry_init(struct rlk_registry *reg)
{
    if (!rlk_random_init(&reg->random))
        return rlk_error_of_step(errno, "no random numbers (getrandom)");
    int rc = rlk_sync_mutex_init(&reg->mu);
    if (rc != 0)
        return rc;
    reg->table = calloc(TABLE_SIZE_FIRST, sizeof(struct rlk_lock *));
    if (!reg->table) {
        rlk_sync_mutex_destroy(&reg->mu);
        return ENOMEM;
    }
    reg->table_size = TABLE_SIZE_FIRST;
    rlk_list_init(&reg->idle);
    rlk_list_init(&reg->free_holds);
    rlk_list_init(&reg->free_holders);
    rlk_list_init(&reg->free_queues);
    rlk_list_init(&reg->free_passes);
    rlk_list_init(&reg->channels);
    rlk_list_init(&reg->sleepers);
    rlk_list_init(&reg->wakes);
    rlk_list_init(&reg->fastpaths);
    reg->armed = RLK_NEVER;
    reg->look_timer.tag = RLK_TIMER_LOOK;
    reg->wakers = 0;
    reg->parting = false;
    rc = rlk_sync_cond_init(&reg->background_done);
    if (rc != 0) {
        free(reg->table);
        reg->table = NULL;
        rlk_sync_mutex_destroy(&reg->mu);
    }
    return rc;
}

bool rlk_registry_busy_locked(struct rlk_registry *reg)
{
    rlk_fastpath_close_all_locked(reg);
    return reg->holds_now > 0 || reg->waiters_now > 0;
}

void rlk_registry_shut_locked(struct rlk_registry *reg)
{
    struct rlk_timer *t;
    struct rlk_list *l;

    while ((t = rlk_timer_first(&reg->timers)) != NULL) {
        rlk_timer_disarm(&reg->timers, t);
        if (t->tag == RLK_TIMER_HOLD)
            rlk_hold_background_end_locked(RLK_CONTAINER_OF(t, struct rlk_hold, timer));
        else if (t->tag == RLK_TIMER_LOCK)
            rlk_queue_went_on_locked(RLK_CONTAINER_OF(t, struct rlk_queue, timer)->lock);
    }
    struct rlk_holder *holder;
    while ((holder = rlk_holder_next_news_locked(reg)) != NULL)
        rlk_holder_told_locked(holder);
    while ((l = rlk_list_pop(&reg->channels)) != NULL)
        rlk_lock_unref_locked(RLK_CONTAINER_OF(l, struct rlk_queue, channel_link)->lock);
    struct rlk_death_event *obituary;
    while ((obituary = rlk_awaited_next_death_locked(reg)) != NULL)
        free(obituary);
    reg->watchdog = reg->subscriber = NULL;
}

void rlk_registry_destroy(struct rlk_registry *reg)
{
    struct rlk_list *l;

    if (!reg->table)
        return;
    while ((l = rlk_list_pop(&reg->free_holds)) != NULL)
        free(RLK_CONTAINER_OF(l, struct rlk_hold, link));
    while ((l = rlk_list_pop(&reg->free_holders)) != NULL)
        free(RLK_CONTAINER_OF(l, struct rlk_holder, hold_link));
    for (size_t i = 0; i < reg->table_size; i++) {
        while (reg->table[i]) {
            struct rlk_lock *lock = reg->table[i];
            reg->table[i] = lock->chain;
            rlk_queue_end_locked(lock);
            free(lock);
        }
    }
    while ((l = rlk_list_pop(&reg->free_queues)) != NULL)
        free(RLK_CONTAINER_OF(l, struct rlk_queue, channel_link));
    while ((l = rlk_list_pop(&reg->free_passes)) != NULL)
        free(RLK_CONTAINER_OF(l, struct rlk_pass, fastpath_link));
    free(reg->table);
    reg->table = NULL;
    rlk_sync_cond_destroy(&reg->background_done);
    rlk_sync_mutex_destroy(&reg->mu);
}

static void unlock_and_tell(struct rlk_registry *reg)
{
    struct rlk_timer *first = rlk_timer_first(&reg->timers);
    bool watchdog = reg->watchdog_dirty, subscriber = reg->subscriber_dirty;
    struct rlk_bell *to_watchdog = reg->watchdog, *to_subscriber = reg->subscriber;

    if (first && first->when < reg->armed) {
        watchdog = true;
        reg->armed = first->when;
    }
    reg->watchdog_dirty = reg->subscriber_dirty = false;
    struct rlk_thread *woken[WAKES_MAX];
    size_t count = 0;
    while (!rlk_list_empty(&reg->wakes)) {
        struct rlk_list *l = rlk_list_pop(&reg->wakes);
        struct rlk_thread *thread = RLK_CONTAINER_OF(l, struct rlk_thread, wake_link);
        if (count < WAKES_MAX)
            woken[count++] = thread;
        else
            rlk_sync_cond_signal(&thread->cond);
    }
    /* who reads himself what concerns him looks by himself */
    bool leader = rlk_leader_pending_locked(reg) && reg->leader != rlk_thread_record;
    reg->leader_told |= leader;
    int leader_fd = reg->leader_fd;
    bool waker = watchdog || subscriber || leader;
    if (waker)
        atomic_fetch_add(&reg->wakers, 1);
    rlk_sync_mutex_unlock(&reg->mu);
    for (size_t i = 0; i < count; i++)
        rlk_sync_cond_signal(&woken[i]->cond);
    if (watchdog && to_watchdog)
        rlk_bell_ring(to_watchdog);
    if (subscriber && to_subscriber)
        rlk_bell_ring(to_subscriber);
    if (leader)
        rlk_fd_ring(leader_fd);
    if (waker && atomic_fetch_sub(&reg->wakers, 1) == 1 && atomic_load(&reg->parting)) {
        rlk_sync_mutex_lock(&reg->mu);
        rlk_sync_cond_broadcast(&reg->background_done);
        rlk_sync_mutex_unlock(&reg->mu);
    }
}

void rlk_registry_unlock(struct rlk_registry *reg)
{
    if (rlk_registry_tells_locked(reg))
        unlock_and_tell(reg);
    else
        rlk_sync_mutex_unlock(&reg->mu);
}

void rlk_registry_unanswered(struct rlk_registry *reg, int64_t when)
{
    rlk_sync_mutex_lock(&reg->mu);
    if (when > atomic_load(&reg->heard_at) && when < rlk_registry_away_since(reg))
        atomic_store(&reg->unanswered_at, when);
    rlk_sync_mutex_unlock(&reg->mu);
}

int64_t rlk_registry_away_since(const struct rlk_registry *reg)
{
    int64_t at = atomic_load(&reg->unanswered_at);
    return at > atomic_load(&reg->heard_at) ? at : RLK_NEVER;
}

bool rlk_registry_is_away(const struct rlk_registry *reg, int64_t now)
{
    return rlk_registry_away_since(reg) < now - AWAY_MS * RLK_NS_PER_MS;
}

bool rlk_registry_settled_locked(const struct rlk_registry *reg, int64_t now)
{
    bool away = rlk_registry_is_away(reg, now);
    return reg->background_count == (away ? reg->late_count : 0);
}

void rlk_registry_part_from_threads(struct rlk_registry *reg)
{
    rlk_sync_mutex_lock(&reg->mu);
    reg->watchdog = reg->subscriber = NULL;
    reg->leader_fd = -1;
    reg->mail_open = false;
    atomic_store(&reg->parting, true);
    while (atomic_load(&reg->wakers) > 0)
        rlk_sync_cond_wait(&reg->background_done, &reg->mu, RLK_NEVER);
    rlk_sync_mutex_unlock(&reg->mu);
}

/* ---- wake-ups */

void rlk_registry_wake_locked(struct rlk_registry *reg, struct rlk_thread *thread)
{
    if (thread == reg->leader)
        atomic_store_explicit(&reg->leader_called, true, memory_order_relaxed);
    else if (rlk_list_empty(&thread->wake_link))
        rlk_list_append(&reg->wakes, &thread->wake_link);
}

void rlk_registry_wake_list_locked(struct rlk_registry *reg, struct rlk_list *waiters)
{
    for (struct rlk_list *l = waiters->next; l != waiters; l = l->next)
        rlk_registry_wake_locked(reg,
                                 RLK_CONTAINER_OF(l, struct rlk_waiter, link)->thread);
}

void rlk_registry_wake_all_locked(struct rlk_registry *reg)
{
    for (size_t i = 0; i < reg->table_size; i++)
        for (struct rlk_lock *lock = reg->table[i]; lock; lock = lock->chain)
            rlk_lock_wake_locked(lock);
    rlk_registry_wake_list_locked(reg, &reg->sleepers);
}

/* ---- facts from the mailbox */

/* 0: no kind of this version. */
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

/* The lock of what a message names; NULL: there is none. */
static struct rlk_lock *find_named(struct rlk_registry *reg, const struct rlk_id *id,
                                   const char *name, size_t name_len)
{
    int kind = kind_of_letter(id->letter);
    return kind ? rlk_lock_find_locked(reg, kind, name, name_len) : NULL;
}

/* rule: T7 */
/* The hold with this id, whatever becomes of it, from before its first request leaves
 * until its last is answered. Not of what was held exclusively, behind its end (`left`).
 * NULL: none. */
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

void rlk_registry_remember_locked(struct rlk_registry *reg, const struct rlk_id *id)
{
    struct rlk_past *past = &reg->past;
    past->numbers[past->next] = id->acquisition;
    past->next = (past->next + 1) % RLK_PAST_MAX;
}

/* rule: L2 */
/* Whether it is one of the past, which is forgotten then. */
static bool was_ours(struct rlk_past *past, uint64_t number)
{
    for (size_t i = 0; number != 0 && i < RLK_PAST_MAX; i++) {
        if (past->numbers[i] != number)
            continue;
        past->numbers[i] = 0;
        return true;
    }
    return false;
}

/* Nobody has it any more, but the server has given it the lock: it is given back at once
 * (T7), for the others would wait for the grant's TTL. No request of this id is under way
 * that would need a marker. */
static bool give_back_locked(struct rlk_registry *reg, const struct rlk_id *id,
                             const char *name, size_t name_len)
{
    int kind = kind_of_letter(id->letter);
    int64_t now = rlk_clock_boot();

    if (!kind || reg->background_count >= RLK_PAST_MAX ||
        !was_ours(&reg->past, id->acquisition))
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
    hold->no_marker = true;
    hold->state = RLK_HOLD_GOING;
    rlk_hold_background_locked(hold, now, now + id->grant_ms * RLK_NS_PER_MS);
    return true;
}

bool rlk_registry_grant_locked(struct rlk_registry *reg, const struct rlk_id *id,
                               const char *name, size_t name_len, int64_t ticket,
                               uint64_t token, unsigned flags)
{
    struct rlk_lock *lock = find_named(reg, id, name, name_len);
    struct rlk_hold *hold = lock ? find_hold(lock, id) : NULL;

    /* rule: T7 */
    if (!hold) /* what was left is released already, or by the release that it has */
        return (lock && rlk_id_is(id, lock->left)) ||
               give_back_locked(reg, id, name, name_len);
    if (hold->background && hold->state == RLK_HOLD_GOING && hold->since == 0) {
        RLK_COUNT(reg->counters->grants_orphaned);
        if (!hold->op)
            rlk_hold_background_locked(hold, rlk_clock_boot(), hold->give_up_at);
        return true;
    }
    /* the answer to a poll was faster; or that to its cancel will tell; and who does not
     * queue is granted nothing */
    if (hold->granted || hold->state != RLK_HOLD_REQUESTED || hold->trying)
        return true;
    RLK_COUNT(reg->counters->grants);
    if (!rlk_hold_granted_locked(hold, ticket, token, flags))
        rlk_queue_poll_locked(lock); /* another ticket than the confirmed one: ask */
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
    hold->told_lost = true; /* an answer that is still to come may say that it has it */
    if (hold->state == RLK_HOLD_HELD)
        rlk_hold_doubt_locked(hold, rlk_clock_boot());
    else if (hold->state == RLK_HOLD_REQUESTED)
        rlk_queue_poll_locked(lock);
    return true;
}

bool rlk_registry_wanted_locked(struct rlk_registry *reg, const struct rlk_id *id,
                                const char *name, size_t name_len)
{
    struct rlk_lock *lock = find_named(reg, id, name, name_len);
    struct rlk_hold *hold = lock ? find_hold(lock, id) : NULL;

    /* rule: K6 */
    if (!hold)
        return lock && rlk_id_is(id, lock->left);
    if (hold->reading) /* the one that is named may be on its way out */
        rlk_readshare_wanted_locked(lock, rlk_clock_boot());
    else
        rlk_handoff_wanted_locked(hold, rlk_clock_boot());
    return true;
}

void rlk_registry_recheck_locked(struct rlk_registry *reg)
{
    /* rule: L3 */
    for (size_t i = 0; i < reg->table_size; i++)
        for (struct rlk_lock *lock = reg->table[i]; lock; lock = lock->chain)
            rlk_queue_poll_locked(lock);
}

void rlk_registry_ask_again_locked(struct rlk_registry *reg, int64_t now)
{
    for (size_t i = 0; i < reg->table_size; i++)
        for (struct rlk_lock *lock = reg->table[i]; lock; lock = lock->chain)
            for (struct rlk_list *l = lock->queue->asks.next; l != &lock->queue->asks;
                 l = l->next)
                rlk_hold_ask_again_locked(RLK_CONTAINER_OF(l, struct rlk_hold, link),
                                          now);
}
