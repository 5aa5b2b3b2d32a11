/* SPDX-License-Identifier: Apache-2.0 */
/* See handscene.h. */
#include "handscene.h"

#include <stdlib.h>

const struct rlk_handoff bound = { .ns = 10 * MS, .count = 1000 };

struct rlk_registry reg;
struct rlk_counters counters;
struct rlk_thread threads[THREADS]; /* the first one holds the lock */
struct rlk_waiter waiters[THREADS];
struct rlk_lock *lock;
struct rlk_hold *hold;
int retained;
int64_t now;

static void retain(struct rlk_registry *r)
{
    (void)r;
    retained++;
}

static void enter_as(char letter, const char *flags, unsigned others, uint64_t token)
{
    hold = rlk_hold_new_locked(lock, &threads[0], letter, GRANT);
    ck_assert_ptr_nonnull(hold);
    strcpy(hold->id.flags, flags);
    hold->lease_ms = LEASE;
    hold->reading = letter == 'r' || letter == 'R';
    hold->server.asked = true;
    rlk_hold_ask_locked(hold, &threads[0]);
    hold->request.flags = others == 0 && strchr(flags, 'k') ? RLK_WILL_TELL : others;
    rlk_hold_held_locked(hold, now, LEASE, token);
    rlk_hold_enter_locked(hold, &threads[0], now);
    rlk_hold_put_locked(hold);
}

/* Gives threads[0] a hold of a kind, as if a request that left at `now` were answered. */
void enter(const char *flags, unsigned others)
{
    enter_as('m', flags, others, 0);
}

void enter_mode(char letter, const char *flags, unsigned others)
{
    for (int i = 0; i < THREADS; i++)
        waiters[i].letter = letter;
    enter_as(letter, flags, others, letter < 'a' ? 1000 : 0);
}

void enter_fenced(const char *flags, unsigned others, uint64_t token)
{
    for (int i = 0; i < THREADS; i++)
        waiters[i].letter = 'M';
    enter_as('M', flags, others, token);
}

void answered(uint64_t first, unsigned count, bool asked)
{
    rlk_handoff_tokens_locked(
        hold, &(struct rlk_fate){ .token = first, .token_count = count }, asked);
}

void open_kind(int kind)
{
    memset(&reg, 0, sizeof(reg));
    memset(&counters, 0, sizeof(counters));
    reg.client_number = 1;
    reg.uuid = "aaaaaaaa-0000-4000-8000-00000000000a";
    reg.counters = &counters;
    reg.presence_ns = GRANT * MS;
    reg.retain = retain;
    ck_assert_int_eq(rlk_registry_init(&reg), 0);
    retained = 0;
    now = rlk_clock_boot();
    rlk_registry_lock(&reg);
    lock = rlk_lock_get_locked(&reg, kind, "n", 1);
    for (int i = 0; i < THREADS; i++) {
        memset(&threads[i], 0, sizeof(threads[i]));
        threads[i].number = (uint64_t)i + 1;
        rlk_fastpath_prepare(&threads[i]);
        rlk_list_init(&threads[i].holds);
        rlk_list_init(&threads[i].wake_link);
        ck_assert_int_eq(rlk_sync_cond_init(&threads[i].cond), 0);
        waiters[i] = (struct rlk_waiter){ .thread = &threads[i],
                                          .self = rlk_sync_thread_self(),
                                          .letter = 'm',
                                          .grant_ms = GRANT,
                                          .lease_ms = LEASE,
                                          .since = now,
                                          .passed_on = true,
                                          .retakes = true };
        rlk_list_init(&waiters[i].link);
    }
}

void set_up(void)
{
    open_kind(RLK_KIND_MUTEX);
}

void tear_down(void)
{
    for (int i = 0; i < THREADS; i++) {
        struct rlk_list *l;
        rlk_list_remove(&waiters[i].link);
        while ((l = rlk_list_first(&threads[i].holds)) != NULL)
            rlk_holder_leave_locked(RLK_CONTAINER_OF(l, struct rlk_holder, thread_link));
        if (waiters[i].holder && waiters[i].holder->hold)
            rlk_holder_leave_locked(waiters[i].holder);
        if (threads[i].fast)
            rlk_holder_leave_locked(threads[i].fast);
        rlk_list_remove(&threads[i].wake_link);
    }
    lock->queue->requester = NULL;
    if (lock->current)
        rlk_hold_end_unused_locked(lock->current, now);
    while (!rlk_list_empty(&lock->queue->reads))
        rlk_hold_end_unused_locked(
            RLK_CONTAINER_OF(lock->queue->reads.next, struct rlk_hold, link), now);
    rlk_lock_put_locked(lock);
    rlk_registry_shut_locked(&reg);
    ck_assert_uint_eq(reg.hold_count, 0);
    ck_assert_uint_eq(reg.holds_now, 0);
    rlk_sync_mutex_unlock(&reg.mu);
    rlk_registry_destroy(&reg);
    for (int i = 0; i < THREADS; i++) {
        rlk_sync_cond_destroy(&threads[i].cond);
        free(threads[i].passes.times);
        threads[i].passes.times = NULL;
    }
}

/* Thread i has waited for `ms`. */
void waits(int i, int64_t ms)
{
    waiters[i].since = now - ms * MS;
    rlk_list_append(&lock->queue->waiters, &waiters[i].link);
}

struct rlk_holder *part_of(int i)
{
    struct rlk_list *l = rlk_list_first(&threads[i].holds);
    if (threads[i].fast_in)
        return threads[i].fast;
    return l ? RLK_CONTAINER_OF(l, struct rlk_holder, thread_link) : NULL;
}

/* Thread i unlocks. Whether the process still has the hold. */
bool unlocks(int i)
{
    struct rlk_holder *holder = part_of(i);
    rlk_fastpath_close_locked(hold);
    bool stays = rlk_handoff_unlock_locked(holder, bound, now);
    if (!stays)
        rlk_holder_leave_locked(holder);
    return stays;
}

bool enters(int i)
{
    rlk_lock_held_locked(lock, now);
    if (lock->queue->woken == &waiters[i])
        lock->queue->woken = NULL;
    struct rlk_hold *spent;
    bool in = rlk_handoff_enter_locked(lock, &waiters[i], bound, now, &spent);
    if (spent) { /* if the hold is used up, the thread releases it */
        rlk_lock_promote_locked(lock);
        rlk_hold_background_locked(spent, now, now + LEASE * MS);
    }
    return in;
}

/* Thread 0 unlocks and locks again at once, before thread 1, which has not slept for
 * long. */
bool goes_on(void)
{
    waiters[1].since = now;
    return unlocks(0) && enters(0);
}

void gives_up(int i)
{
    rlk_list_remove(&waiters[i].link);
    rlk_handoff_gave_up_locked(lock, &waiters[i], now);
}

bool is_woken(int i)
{
    return !rlk_list_empty(&threads[i].wake_link);
}

/* The registry must ask the server now, however long the lease still is. */
bool is_asked(void)
{
    return hold->timer.armed && hold->timer.when <= now;
}

bool is_gone(void)
{
    return !lock->current;
}
