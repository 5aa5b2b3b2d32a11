/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* The registry alone: no server, no client, no threads. The test sets the time, except
 * where the registry itself reads the clock. */
#include "state/registry.h"

#include "base/deadline.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <errno.h>
#include <rlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEASE = 30000, GRANT = 3000 };
#define MS RLK_NS_PER_MS

static struct rlk_registry reg;
static struct rlk_counters counters;
static struct rlk_bell watchdog = RLK_BELL_CLOSED, subscriber = RLK_BELL_CLOSED;
static struct rlk_thread thread, thread2;
static struct rlk_lock *lock;
static int retained;
static int64_t now;

static void retain(struct rlk_registry *r)
{
    (void)r;
    retained++;
}

static void init_thread(struct rlk_thread *t, uint64_t number)
{
    memset(t, 0, sizeof(*t));
    t->number = number;
    rlk_list_init(&t->holds);
    ck_assert_int_eq(rlk_sync_cond_init(&t->cond), 0);
}

static void set_up(void)
{
    memset(&reg, 0, sizeof(reg));
    memset(&counters, 0, sizeof(counters));
    reg.client_number = 1;
    reg.uuid = "aaaaaaaa-0000-4000-8000-00000000000a";
    reg.counters = &counters;
    reg.presence_ns = 3000 * MS;
    reg.retain = retain;
    ck_assert_int_eq(rlk_bell_open(&watchdog), 0);
    ck_assert_int_eq(rlk_bell_open(&subscriber), 0);
    ck_assert_int_eq(rlk_registry_init(&reg), 0);
    reg.watchdog = &watchdog;
    reg.subscriber = &subscriber;
    init_thread(&thread, 1);
    init_thread(&thread2, 2);
    retained = 0;
    now = rlk_clock_boot();
    rlk_registry_lock(&reg);
    lock = rlk_lock_get_locked(&reg, RLK_KIND_MUTEX, "n", 1);
    ck_assert_ptr_nonnull(lock);
}

/* Asserts that everything was released: what a test still holds is a leak. */
static void tear_down(void)
{
    rlk_lock_put_locked(lock);
    rlk_registry_shut_locked(&reg);
    ck_assert_uint_eq(reg.hold_count, 0);
    ck_assert_uint_eq(reg.holds_now, 0);
    ck_assert_uint_eq(reg.background_count, 0);
    ck_assert_uint_eq(reg.idle_count, reg.lock_count);
    ck_assert_ptr_null(rlk_timer_first(&reg.timers));
    rlk_sync_mutex_unlock(&reg.mu);
    rlk_registry_destroy(&reg);
    rlk_sync_cond_destroy(&thread.cond);
    rlk_sync_cond_destroy(&thread2.cond);
    rlk_bell_close(&watchdog);
    rlk_bell_close(&subscriber);
}

/* A hold with a request under way; one reference is the test's. */
static struct rlk_hold *ask(struct rlk_thread *t)
{
    struct rlk_hold *hold = rlk_hold_new_locked(lock, t, 'm', GRANT);
    ck_assert_ptr_nonnull(hold);
    hold->lease_ms = LEASE;
    hold->server.asked = true;
    rlk_hold_ask_locked(hold, t);
    return hold;
}

static void drop(struct rlk_hold *hold)
{
    rlk_hold_ask_end_locked(hold);
    rlk_hold_put_locked(hold);
}

/* A hold with `thread` inside, for LEASE from now on; the test has no reference. */
static struct rlk_hold *enter(void)
{
    struct rlk_hold *hold = ask(&thread);
    rlk_hold_held_locked(hold, now, LEASE, 0);
    rlk_hold_enter_locked(hold, &thread, now);
    rlk_hold_put_locked(hold);
    return hold;
}

static void leave(struct rlk_hold *hold)
{
    rlk_holder_leave_locked(&hold->own);
    rlk_hold_leave_locked(hold);
    rlk_hold_put_locked(hold);
}

static bool grant(const struct rlk_hold *hold, int64_t ticket)
{
    return rlk_registry_grant_locked(&reg, &hold->id, "n", 1, ticket, 0, 0);
}

/* How many times the thread behind this descriptor was woken since the last look. */
static uint64_t wakes(const struct rlk_bell *bell)
{
    uint64_t n = 0;
    return read(bell->fd, &n, sizeof(n)) == (ssize_t)sizeof(n) ? n : 0;
}

static void unlock_and_lock(void)
{
    rlk_registry_unlock(&reg);
    rlk_registry_lock(&reg);
}

/* ---- D */

/* rule: S1 */
START_TEST(D_is_99_percent_of_the_lease_less_2_ms)
{
    ck_assert_int_eq(rlk_hold_lease_end(0, 30000), 29698 * MS);
    ck_assert_int_eq(rlk_hold_lease_end(now, 30000), now + 29698 * MS);
    ck_assert_int_eq(rlk_hold_lease_end(0, 50), 47500000);
    ck_assert_int_eq(rlk_hold_lease_end(0, 86400000), INT64_C(85535998) * MS);
    ck_assert_int_eq(rlk_hold_lease_end(5, 0), 5 - 2 * MS);
    ck_assert_int_gt(rlk_hold_lease_end(INT64_C(1) << 60, INT64_C(1) << 40), INT64_C(1)
                                                                                 << 60);
}
END_TEST

START_TEST(held_counts_from_when_the_request_left)
{
    struct rlk_hold *hold = ask(&thread);
    rlk_hold_held_locked(hold, now - 500 * MS, LEASE, 7);
    ck_assert(hold->request.granted && !hold->lease.short_ttl);
    ck_assert_int_eq(hold->end, now - 500 * MS + 29698 * MS);
    ck_assert_int_eq(hold->renew_at, now - 500 * MS + 10000 * MS);
    ck_assert_int_eq(hold->risk, hold->end - 10000 * MS);
    ck_assert_uint_eq(hold->token, 7);
    drop(hold);
}
END_TEST

/* rule: T8 */
START_TEST(held_reply_counts_the_remaining_time)
{
    struct rlk_hold *hold = ask(&thread);
    rlk_hold_held_locked(hold, now, 1000, 0);
    ck_assert_int_eq(hold->end, now + 988 * MS);
    ck_assert(hold->lease.short_ttl);
    drop(hold);
}
END_TEST

/* rule: T8 */
START_TEST(no_answer_is_believed_for_longer_than_the_lease)
{
    struct rlk_hold *hold = ask(&thread);
    rlk_hold_held_locked(hold, now, 3600000, 0); /* the server's clock stepped back */
    ck_assert_int_eq(hold->end, rlk_hold_lease_end(now, LEASE));
    ck_assert(!hold->lease.short_ttl);
    rlk_hold_confirm_locked(hold, now + 1000 * MS, 3600000);
    ck_assert_int_eq(hold->end, rlk_hold_lease_end(now + 1000 * MS, LEASE));
    ck_assert_int_eq(hold->renew_at, now + 11000 * MS);
    drop(hold);
}
END_TEST

START_TEST(granted_hold_is_renewed_at_D_less_two_thirds_of_A)
{
    struct rlk_hold *hold = ask(&thread);
    rlk_hold_queued_locked(hold, 7, now);
    ck_assert(grant(hold, 7));
    ck_assert_int_eq(hold->end, rlk_hold_lease_end(now, GRANT));
    ck_assert_int_eq(hold->renew_at, hold->end - 2000 * MS);
    drop(hold);
}
END_TEST

/* rule: T6 */
START_TEST(older_answer_does_not_lower_D)
{
    struct rlk_hold *hold = enter();
    int64_t end = hold->end;
    rlk_hold_confirm_locked(hold, now - 1000 * MS, LEASE);
    ck_assert_int_eq(hold->end, end);
    rlk_hold_confirm_locked(hold, now + 1000 * MS, LEASE);
    ck_assert_int_eq(hold->end, end + 1000 * MS);
    leave(hold);
}
END_TEST

/* rule: P17 */
START_TEST(skew_is_taken_off_D_and_off_the_times_before_it)
{
    reg.skew_ns = 600 * MS;
    struct rlk_hold *hold = enter();
    ck_assert_int_eq(hold->end, rlk_hold_lease_end(now, LEASE) - 600 * MS);
    ck_assert_int_eq(hold->renew_at, now + (LEASE - 600) * MS / 3);
    ck_assert_int_eq(hold->risk, hold->end - (LEASE - 600) * MS / 3);
    leave(hold);
    reg.skew_ns = 0;
}
END_TEST

/* rule: P17 */
START_TEST(skew_that_nobody_has_set_is_a_twelfth_of_a_short_lease)
{
    reg.skew_ns = LEASE / 10 * MS;
    reg.skew_is_initial = true;
    struct rlk_hold *hold = enter();
    ck_assert_int_eq(hold->end, rlk_hold_lease_end(now, LEASE) - LEASE * MS / 12);
    leave(hold);
    reg.skew_ns = LEASE / 20 * MS;
    hold = enter();
    ck_assert_int_eq(hold->end, rlk_hold_lease_end(now, LEASE) - LEASE / 20 * MS);
    leave(hold);
    reg.skew_ns = 0;
    reg.skew_is_initial = false;
}
END_TEST

START_TEST(fixed_lease_is_at_risk_in_its_last_tenth_and_not_renewed)
{
    struct rlk_hold *hold = ask(&thread);
    hold->fixed = true;
    hold->lease_ms = 1000;
    rlk_hold_held_locked(hold, now, 5000, 0); /* longer than requested: D does not
                                                 follow */
    ck_assert_int_eq(hold->end, rlk_hold_lease_end(now, 1000));
    ck_assert_int_eq(hold->risk, hold->end - 100 * MS);
    rlk_hold_confirm_locked(hold, now, 300);
    ck_assert_int_eq(hold->risk, rlk_hold_lease_end(now, 300) - 50 * MS);
    rlk_hold_enter_locked(hold, &thread, now);
    ck_assert_int_eq(rlk_timer_first(&reg.timers)->when, hold->risk);
    rlk_hold_put_locked(hold);
    leave(hold);
}
END_TEST

/* ---- T1 */

/* rule: T1 */
START_TEST(grant_of_the_confirmed_ticket_is_believed)
{
    struct rlk_hold *hold = ask(&thread);
    rlk_hold_queued_locked(hold, 7, now - 100 * MS);
    rlk_hold_queued_locked(hold, 7,
                           now - 50 * MS); /* a later answer to the same ticket */
    rlk_hold_queued_locked(hold, 7, now - 90 * MS); /* and one that was overtaken */
    ck_assert(grant(hold, 7));
    ck_assert(hold->request.granted && hold->lease.short_ttl && !hold->request.need_ask);
    ck_assert_int_eq(hold->end, rlk_hold_lease_end(now - 50 * MS, GRANT));
    ck_assert_uint_eq(counters.grants, 1);
    ck_assert(grant(hold, 7)); /* a second grant counts only once */
    ck_assert_uint_eq(counters.grants, 1);
    drop(hold);
}
END_TEST

/* rule: T1 */
START_TEST(grant_without_a_confirmed_reply_is_not_believed)
{
    struct rlk_hold *hold = ask(&thread);
    ck_assert(grant(hold, 7));
    ck_assert(!hold->request.granted);
    ck_assert(hold->request.need_ask); /* the server is asked */
    drop(hold);
}
END_TEST

/* rule: T1 */
START_TEST(grant_that_overtook_the_reply_is_believed_with_it)
{
    struct rlk_hold *hold = ask(&thread);
    ck_assert(rlk_registry_grant_locked(&reg, &hold->id, "n", 1, 7, 99, 1));
    rlk_hold_queued_locked(hold, 7, now - 10 * MS);
    ck_assert(hold->request.granted);
    ck_assert_int_eq(hold->end, rlk_hold_lease_end(now - 10 * MS, GRANT));
    ck_assert_uint_eq(hold->token, 99);
    drop(hold);
}
END_TEST

/* rule: T1 */
START_TEST(stale_grant_is_not_believed_after_queueing_again)
{
    /* the counterexample: granted ticket 7 unread, stopped, expired, queued again as 9 */
    struct rlk_hold *hold = ask(&thread);
    rlk_hold_queued_locked(hold, 7, now - 10000 * MS);
    rlk_hold_queued_locked(hold, 9, now);
    ck_assert(grant(hold, 7));
    ck_assert(!hold->request.granted);
    ck_assert_int_eq(rlk_timer_first(&reg.timers)->when,
                     0); /* the server is asked at once */
    rlk_hold_queued_locked(hold, 9, now + MS);
    ck_assert(!hold->request.granted);
    ck_assert(grant(hold, 9));
    ck_assert(hold->request.granted);
    drop(hold);
}
END_TEST

START_TEST(waiter_with_refused_polls_asks_and_takes_the_new_ticket)
{
    struct rlk_hold *hold = ask(&thread);
    rlk_hold_queued_locked(hold, 9, now);
    rlk_hold_ask_again_locked(hold, now + 149 * MS);
    ck_assert(!hold->request.need_ask); /* the last answer is recent */
    rlk_hold_ask_again_locked(hold, now + 151 * MS);
    ck_assert(hold->request.need_ask);
    /* the queue was lost, and the server's clock is behind */
    rlk_hold_queued_locked(hold, 7, now + 152 * MS);
    ck_assert(!hold->request.need_ask);
    ck_assert(grant(hold, 7));
    ck_assert(hold->request.granted);
    drop(hold);
}
END_TEST

/* rule: T1 */
START_TEST(stale_grant_read_first_is_dropped_by_the_new_ticket)
{
    struct rlk_hold *hold = ask(&thread);
    ck_assert(grant(hold, 7));
    rlk_hold_queued_locked(hold, 9, now);
    ck_assert(!hold->request.granted);
    rlk_hold_queued_locked(hold, 7, now - MS); /* a late answer */
    ck_assert(!hold->request.granted);
    ck_assert_int_eq(hold->request.ticket, 9);
    drop(hold);
}
END_TEST

/* rule: T1 */
START_TEST(no_grant_outlives_the_reply_gone)
{
    struct rlk_hold *hold = ask(&thread);
    ck_assert(grant(hold, 7));
    rlk_hold_gone_locked(hold);
    ck_assert(hold->request.need_ask && !hold->request.granted);
    rlk_hold_queued_locked(hold, 7, now);
    ck_assert(!hold->request.granted);
    drop(hold);
}
END_TEST

/* Asserts that messages about an unknown id have no effect. */
static void nothing_comes_of(const struct rlk_id *id, const char *name)
{
    size_t holds = reg.hold_count, names = reg.lock_count;
    ck_assert(!rlk_registry_grant_locked(&reg, id, name, 1, 7, 0, 0));
    ck_assert(!rlk_registry_lost_locked(&reg, id, name, 1));
    ck_assert(!rlk_registry_recalled_locked(&reg, id, name, 1));
    ck_assert_uint_eq(reg.hold_count, holds);
    ck_assert_uint_eq(reg.lock_count, names);
    ck_assert_uint_eq(reg.background_count, 0);
    ck_assert_ptr_null(rlk_timer_first(&reg.timers));
    ck_assert_uint_eq(counters.grants_orphaned, 0);
}

/* rule: T7 */
START_TEST(message_about_an_unknown_id_has_no_effect)
{
    struct rlk_hold *hold = ask(&thread);
    struct rlk_id id = hold->id;
    id.acquisition++;
    nothing_comes_of(&id, "n");
    nothing_comes_of(&hold->id, "x");
    id = hold->id;
    id.letter = 'q';
    nothing_comes_of(&id, "n");
    id = hold->id;
    id.grant_ms++;
    nothing_comes_of(&id, "n");
    id = hold->id;
    drop(hold);
    nothing_comes_of(&id, "n");
}
END_TEST

/* rule: T7 */
START_TEST(flood_of_grants_for_unknown_ids_has_no_effect)
{
    struct rlk_hold *hold = ask(&thread);
    struct rlk_id id = hold->id;
    for (int i = 0; i < 3000; i++) {
        id.acquisition++;
        nothing_comes_of(&id, "n");
    }
    drop(hold);
}
END_TEST

/* The forms of a request: queued or a try, to write or to read. */
enum { FORMS = 4 };

static struct rlk_hold *in_form(int form)
{
    struct rlk_hold *hold =
        rlk_hold_new_locked(lock, &thread, form < 2 ? 'm' : 'r', GRANT);
    ck_assert_ptr_nonnull(hold);
    hold->lease_ms = LEASE;
    hold->server.asked = true;
    hold->reading = form >= 2;
    if (form % 2 == 0)
        rlk_hold_ask_locked(hold, &thread);
    else
        rlk_hold_try_locked(hold);
    return hold;
}

static void in_a_form(int form)
{
    if (form < 2)
        return;
    rlk_lock_put_locked(lock);
    lock = rlk_lock_get_locked(&reg, RLK_KIND_RWLOCK, "n", 1);
    ck_assert_ptr_nonnull(lock);
}

/* rule: T7 */
START_TEST(grant_for_an_id_in_flight_is_no_orphan)
{
    in_a_form(_i);
    struct rlk_hold *hold = in_form(_i);
    ck_assert(grant(hold, 7));
    ck_assert_uint_eq(reg.background_count, 0);
    ck_assert(!hold->request.granted);
    ck_assert_int_eq(hold->state, RLK_HOLD_REQUESTED);
    rlk_hold_held_locked(hold, now, LEASE, 0);
    rlk_hold_enter_locked(hold, &thread, now);
    ck_assert(grant(hold, 7));
    ck_assert_uint_eq(reg.background_count, 0);
    ck_assert_uint_eq(counters.grants_orphaned, 0);
    leave(hold);
    rlk_hold_put_locked(hold);
}
END_TEST

/* The server's reply is decisive, and no trace of the message is left. */
static void enter_and_leave(struct rlk_hold *hold, bool doubted, bool others)
{
    rlk_hold_held_locked(hold, now, LEASE, 0);
    rlk_hold_enter_locked(hold, &thread, now);
    ck_assert_int_eq(hold->state, RLK_HOLD_HELD);
    ck_assert_int_eq(hold->lease.doubted, doubted);
    ck_assert_int_eq(rlk_timer_first(&reg.timers)->when <= rlk_clock_boot(), doubted);
    ck_assert_int_eq(hold->contention.contended, others);
    leave(hold);
    rlk_hold_put_locked(hold);
}

/* rule: T10 */
START_TEST(loss_read_before_the_reply_is_remembered)
{
    in_a_form(_i);
    struct rlk_hold *hold = in_form(_i);
    hold->fixed = true; /* so nothing else would make the client renew it */
    ck_assert(rlk_registry_lost_locked(&reg, &hold->id, "n", 1));
    ck_assert(!hold->request.granted);
    enter_and_leave(hold, true, false);
}
END_TEST

/* rule: K6 */
START_TEST(recall_read_before_the_reply_is_remembered)
{
    in_a_form(_i);
    struct rlk_hold *hold = in_form(_i), *other = in_form(_i);
    ck_assert(rlk_registry_recalled_locked(&reg, &hold->id, "n", 1));
    ck_assert(rlk_registry_recalled_locked(&reg, &other->id, "n", 1));
    drop(other);
    enter_and_leave(hold, false, true);
}
END_TEST

START_TEST(early_loss_and_recall_apply_to_their_id_alone)
{
    in_a_form(_i);
    struct rlk_hold *hold = in_form(_i);
    ck_assert(rlk_registry_lost_locked(&reg, &hold->id, "n", 1));
    ck_assert(rlk_registry_recalled_locked(&reg, &hold->id, "n", 1));
    rlk_hold_rename_locked(hold, &thread);
    enter_and_leave(hold, false, false);
}
END_TEST

/* A server that lost a confirmed release grants the id again. Then the client releases
 * it, without a marker, but only once: otherwise a forger who knows the id could make it
 * send more. */
static void was_had(const struct rlk_id *id)
{
    uint64_t orphans = counters.grants_orphaned;
    ck_assert(rlk_registry_grant_locked(&reg, id, "n", 1, 7, 0, 0));
    ck_assert_uint_eq(counters.grants_orphaned, orphans + 1);
    ck_assert_uint_eq(reg.background_count, 1);
    struct rlk_timer *timer = rlk_timer_first(&reg.timers);
    struct rlk_hold *hold = RLK_CONTAINER_OF(timer, struct rlk_hold, timer);
    ck_assert_int_le(timer->when, rlk_clock_boot());
    ck_assert_int_eq(hold->state, RLK_HOLD_CANCELLING);
    ck_assert(rlk_id_equal(&hold->id, id));
    ck_assert(hold->ending.no_marker);
    rlk_hold_background_end_locked(hold);
    ck_assert_uint_eq(reg.hold_count, 0);
    ck_assert(!rlk_registry_grant_locked(&reg, id, "n", 1, 7, 0, 0));
    ck_assert_uint_eq(counters.grants_orphaned, orphans + 1);
}

/* Its postponed release goes out at once. */
/* rule: T7 */
START_TEST(grant_for_an_abandoned_id_is_released_immediately)
{
    in_a_form(_i);
    struct rlk_hold *hold = in_form(_i);
    int64_t until = now + 3000 * MS;
    rlk_hold_give_up_locked(hold, now, until);
    rlk_hold_background_locked(hold, now + 1000 * MS, until);
    ck_assert(grant(hold, 7));
    ck_assert_int_le(rlk_timer_first(&reg.timers)->when, rlk_clock_boot());
    ck_assert_int_eq(hold->ending.give_up_at, until);
    ck_assert_uint_eq(reg.background_count, 1);
    ck_assert_uint_eq(counters.grants_orphaned, 1);
    struct rlk_id id = hold->id;
    rlk_hold_background_end_locked(hold); /* the server confirmed the release */
    was_had(&id);
}
END_TEST

/* rule: L2 */
START_TEST(grant_for_a_past_turn_is_given_back_once)
{
    struct rlk_hold *hold = ask(&thread);
    struct rlk_id id = hold->id;
    rlk_hold_queued_locked(hold, 7, now);
    rlk_hold_queued_locked(hold, 7, now + MS);
    drop(hold);
    was_had(&id);
}
END_TEST

/* rule: L2 */
START_TEST(oldest_past_ids_are_forgotten_and_unqueued_ids_never_known)
{
    struct rlk_id ids[2];
    for (int i = 0; i <= RLK_PAST_MAX; i++) {
        struct rlk_hold *hold = ask(&thread);
        ids[i > 0] = hold->id;
        rlk_hold_queued_locked(hold, i + 1, now);
        drop(hold);
    }
    nothing_comes_of(&ids[0], "n");
    was_had(&ids[1]);
    counters.grants_orphaned = 0; /* as nothing_comes_of expects */
    struct rlk_hold *hold = ask(&thread);
    ids[0] = hold->id;
    drop(hold);
    nothing_comes_of(&ids[0], "n");
    ids[0].acquisition = 0; /* a forgotten id must not match an empty entry */
    nothing_comes_of(&ids[0], "n");
}
END_TEST

/* A thread that stood still reads late what the server answered before the trouble began.
 */
START_TEST(answer_from_before_the_trouble_does_not_end_it)
{
    struct rlk_hold *hold = ask(&thread);
    rlk_queue_trouble_locked(lock, ENOTCONN, now);
    rlk_queue_reached_locked(lock, now - MS);
    ck_assert_int_eq(lock->queue->trouble, ENOTCONN);
    ck_assert_int_eq(lock->queue->reached_at, now - MS);
    rlk_queue_reached_locked(lock, now + MS);
    ck_assert_int_eq(lock->queue->trouble, 0);
    rlk_queue_reached_locked(lock, now);
    ck_assert_int_eq(lock->queue->reached_at, now + MS);
    drop(hold);
}
END_TEST

/* The queue of a mutex is removed when no thread waits any more. */
/* rule: T7 */
START_TEST(abandoned_ids_are_known_when_no_waiter_is_left)
{
    struct rlk_hold *hold = in_form(_i);
    rlk_hold_give_up_locked(hold, now, now + 3000 * MS);
    rlk_lock_put_locked(lock);
    ck_assert(grant(hold, 7));
    rlk_hold_background_end_locked(hold);
    ck_assert(!rlk_lock_has_queue(lock));
    lock = rlk_lock_get_locked(&reg, RLK_KIND_MUTEX, "n", 1);
}
END_TEST

/* rule: T7 */
START_TEST(grant_is_left_to_the_cancel_in_flight)
{
    struct rlk_hold *hold = ask(&thread);
    rlk_hold_queued_locked(hold, 7, now);
    rlk_hold_change_locked(hold, RLK_ON_CANCEL);
    ck_assert(grant(hold, 7));
    ck_assert(!hold->request.granted);
    drop(hold);
}
END_TEST

START_TEST(grant_known_from_the_reply_changes_nothing)
{
    struct rlk_hold *hold = enter();
    int64_t end = hold->end;
    ck_assert(grant(hold, 7));
    ck_assert_int_eq(hold->end, end);
    ck_assert_int_eq(hold->state, RLK_HOLD_HELD);
    leave(hold);
}
END_TEST

/* A thread requests while the hold is queued, in place of the watchdog. */
static struct rlk_hold *asks_though_queued(void)
{
    struct rlk_hold *hold = ask(&thread);
    rlk_hold_queued_locked(hold, 7, now);
    hold->request.requester = &thread;
    ck_assert(rlk_hold_ask_too_locked(hold, now + 10 * MS));
    ck_assert(hold->request.need_ask);
    ck_assert(!rlk_hold_ask_too_locked(hold, now + 10 * MS)); /* a request is under way
                                                                 already */
    return hold;
}

static void stops_asking(struct rlk_hold *hold)
{
    ck_assert(!hold->request.need_ask);
    hold->request.requester = NULL;
    drop(hold);
}

START_TEST(queued_requester_believes_a_grant_that_comes_meanwhile)
{
    struct rlk_hold *hold = asks_though_queued();
    ck_assert(grant(hold, 7));
    ck_assert(hold->request.granted);
    stops_asking(hold);
}
END_TEST

START_TEST(queued_requester_may_be_given_a_smaller_ticket)
{
    struct rlk_hold *hold = asks_though_queued();
    rlk_hold_queued_locked(hold, 5, now + 5 * MS); /* from before the request */
    ck_assert(hold->request.need_ask);
    ck_assert_int_eq(hold->request.ticket, 7);
    rlk_hold_queued_locked(hold, 5, now + 15 * MS);
    ck_assert_int_eq(hold->request.ticket, 5);
    stops_asking(hold);
}
END_TEST

START_TEST(failed_request_leaves_the_requester_queued)
{
    struct rlk_hold *hold = asks_though_queued();
    rlk_hold_asked_in_vain_locked(hold, now + 20 * MS);
    ck_assert_int_eq(reg.asked_in_vain_at, now + 20 * MS);
    ck_assert(!hold->request.need_ask);
    ck_assert(grant(hold, 7));
    ck_assert(hold->request.granted);
    stops_asking(hold);
}
END_TEST

/* A hold whose grant, read now, may be older than `inside`, which was entered after the
 * hold had queued. */
static struct rlk_hold *older_grant(struct rlk_hold **ret_inside)
{
    struct rlk_hold *hold = ask(&thread2);
    rlk_hold_queued_locked(hold, 7, now - 10 * MS);
    *ret_inside = enter();
    ck_assert(grant(hold, 7));
    return hold;
}

/* rule: T1 */
START_TEST(grant_that_may_be_older_than_what_is_believed_in_has_the_server_asked)
{
    struct rlk_hold *inside, *hold = older_grant(&inside);
    ck_assert(!hold->request.granted && hold->request.need_ask);
    rlk_hold_held_locked(hold, now - 5 * MS, LEASE, 0); /* its answer is as old */
    ck_assert(!hold->request.granted && hold->request.need_ask);
    rlk_hold_held_locked(hold, now + MS, LEASE, 0);
    ck_assert(hold->request.granted && rlk_hold_newest_locked(hold));
    leave(inside);
    drop(hold);
}
END_TEST

START_TEST(earlier_reply_does_not_stop_the_requester)
{
    struct rlk_hold *inside, *hold = older_grant(&inside);
    rlk_hold_queued_locked(hold, 7, now - 5 * MS);
    ck_assert(!hold->request.granted && hold->request.need_ask);
    rlk_hold_queued_locked(hold, 8, now + MS); /* it has queued again */
    ck_assert(!hold->request.granted && !hold->request.need_ask);
    leave(inside);
    ck_assert(grant(hold, 8));
    ck_assert(hold->request.granted);
    drop(hold);
}
END_TEST

START_TEST(grant_is_not_the_newest_when_another_was_entered_since)
{
    struct rlk_hold *hold = ask(&thread2);
    rlk_hold_queued_locked(hold, 7, now - 10 * MS);
    ck_assert(grant(hold, 7));
    ck_assert(hold->request.granted && rlk_hold_newest_locked(hold));
    leave(enter());
    ck_assert(hold->request.granted && !rlk_hold_newest_locked(hold));
    drop(hold);
}
END_TEST

/* rule: T12 */
START_TEST(token_of_a_reply_overrides_that_of_a_message)
{
    struct rlk_hold *hold = ask(&thread);
    rlk_hold_queued_locked(hold, 7, now);
    ck_assert(rlk_registry_grant_locked(&reg, &hold->id, "n", 1, 7, 41, 0));
    ck_assert_uint_eq(hold->token, 41);
    rlk_hold_held_locked(hold, now, GRANT, 42);
    ck_assert_uint_eq(hold->token, 42);
    drop(hold);
}
END_TEST

/* ---- T6 */

/* rule: T6 */
START_TEST(lost_hold_believes_no_later_reply)
{
    struct rlk_hold *hold = enter();
    int64_t end = hold->end;
    rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    ck_assert_int_eq(hold->state, RLK_HOLD_LOST);
    ck_assert_uint_eq(counters.losses, 1);
    ck_assert_int_eq(retained, 1);
    rlk_hold_held_locked(hold, now + 1000 * MS, LEASE, 0);
    rlk_hold_queued_locked(hold, 7, now);
    rlk_hold_gone_locked(hold);
    ck_assert(grant(hold, 7)); /* no orphan: it already has a release */
    ck_assert_int_eq(hold->state, RLK_HOLD_LOST);
    ck_assert_int_eq(hold->end, end);
    /* it still has: news, a release in the background, its thread */
    ck_assert(reg.first_news);
    ck_assert_uint_eq(reg.background_count, 1);
    ck_assert_ptr_eq(rlk_timer_first(&reg.timers), &hold->timer);
    rlk_holder_leave_locked(&hold->own);
}
END_TEST

START_TEST(loss_frees_the_lock_for_the_next_thread)
{
    struct rlk_hold *hold = enter();
    struct rlk_waiter waiter = { .thread = &thread2, .letter = 'm', .grant_ms = GRANT };
    rlk_list_append(&lock->queue->waiters, &waiter.link);
    rlk_lock_promote_locked(lock);
    ck_assert_ptr_null(lock->queue->requester);
    rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    ck_assert_ptr_null(lock->current);
    ck_assert_ptr_eq(lock->queue->requester, &waiter);
    ck_assert_uint_eq(reg.holds_now, 0);
    lock->queue->requester = NULL;
    rlk_list_remove(&waiter.link);
    rlk_holder_leave_locked(&hold->own);
}
END_TEST

START_TEST(loss_read_from_the_mailbox_has_the_server_asked_about_that_id_only)
{
    struct rlk_hold *hold = enter();
    struct rlk_id id = hold->id;
    id.acquisition++;
    rlk_registry_lost_locked(&reg, &id, "n", 1);
    rlk_registry_lost_locked(&reg, &hold->id, "x", 1);
    ck_assert(!hold->lease.doubted);
    rlk_registry_lost_locked(&reg, &hold->id, "n", 1);
    ck_assert(hold->lease.doubted);
    ck_assert_int_eq(hold->state, RLK_HOLD_HELD);
    ck_assert_int_le(rlk_timer_first(&reg.timers)->when, rlk_clock_boot());
    leave(hold);
}
END_TEST

/* ---- the local queue */

START_TEST(waiters_are_promoted_in_order_and_one_at_a_time)
{
    struct rlk_waiter a = { .thread = &thread }, b = { .thread = &thread2 };
    rlk_lock_promote_locked(lock);
    ck_assert_ptr_null(lock->queue->requester);
    rlk_list_append(&lock->queue->waiters, &a.link);
    rlk_list_append(&lock->queue->waiters, &b.link);
    lock->releasing = true;
    rlk_lock_promote_locked(lock);
    ck_assert_ptr_null(lock->queue->requester);
    lock->releasing = false;
    rlk_lock_promote_locked(lock);
    ck_assert_ptr_eq(lock->queue->requester, &a);
    rlk_lock_promote_locked(lock);
    ck_assert_ptr_eq(lock->queue->requester, &a);
    rlk_list_remove(&a.link);
    lock->queue->requester = NULL;
    rlk_lock_promote_locked(lock);
    ck_assert_ptr_eq(lock->queue->requester, &b);
    rlk_list_remove(&b.link);
    lock->queue->requester = NULL;
}
END_TEST

/* ---- references */

START_TEST(left_hold_is_given_back)
{
    struct rlk_hold *hold = enter();
    ck_assert_uint_eq(reg.holds_now, 1);
    ck_assert_ptr_eq(rlk_list_first(&thread.holds), &hold->own.thread_link);
    hold->own.reentries = 5;
    rlk_holder_leave_locked(&hold->own);
    rlk_hold_leave_locked(hold);
    ck_assert_int_eq(hold->ending.give_up_at, 0); /* not in the background yet */
    ck_assert_int_eq(hold->state, RLK_HOLD_RELEASING);
    ck_assert_ptr_null(rlk_list_first(&thread.holds));
    ck_assert_uint_eq(counters.reentries, 5);
    ck_assert_uint_eq(reg.hold_count, 1);
    rlk_hold_put_locked(hold);
    ck_assert_uint_eq(reg.hold_count, 0);
}
END_TEST

START_TEST(background_release_retains_the_hold_until_its_end)
{
    struct rlk_hold *hold = enter();
    rlk_holder_leave_locked(&hold->own);
    rlk_hold_leave_locked(hold);
    rlk_hold_background_locked(hold, now, now + 1000 * MS);
    rlk_hold_background_locked(hold, now + MS, now + 1000 * MS); /* a second time: counted
                                                                    once */
    ck_assert_uint_eq(reg.background_count, 1);
    ck_assert_int_eq(rlk_timer_first(&reg.timers)->when, now + MS);
    rlk_hold_background_end_locked(hold);
    ck_assert_uint_eq(reg.background_count, 0);
    ck_assert_uint_eq(reg.hold_count, 0);
    ck_assert_ptr_null(rlk_timer_first(&reg.timers));
}
END_TEST

START_TEST(many_names_are_found_and_idle_ones_forgotten)
{
    enum { NAMES = 2000 };
    static struct rlk_lock *locks[NAMES];
    char name[16];
    for (int i = 0; i < NAMES; i++) {
        int len = snprintf(name, sizeof(name), "name %04d", i);
        locks[i] = rlk_lock_get_locked(&reg, RLK_KIND_MUTEX, name, (size_t)len);
        ck_assert_ptr_nonnull(locks[i]);
    }
    for (int i = 0; i < NAMES; i++) {
        int len = snprintf(name, sizeof(name), "name %04d", i);
        ck_assert_ptr_eq(rlk_lock_find_locked(&reg, RLK_KIND_MUTEX, name, (size_t)len),
                         locks[i]);
        ck_assert_ptr_null(rlk_lock_find_locked(&reg, RLK_KIND_WATCH, name, (size_t)len));
        ck_assert_ptr_null(
            rlk_lock_find_locked(&reg, RLK_KIND_MUTEX, name, (size_t)len - 1));
    }
    for (int i = 0; i < NAMES; i++)
        rlk_lock_put_locked(locks[i]);
    ck_assert_uint_le(reg.lock_count, 300);
    ck_assert_uint_eq(reg.idle_count + 1, reg.lock_count); /* `lock` is in use */
    ck_assert_ptr_nonnull(rlk_lock_find_locked(&reg, RLK_KIND_MUTEX, "n", 1));
}
END_TEST

/* A refresh names threads, all of which have given up when the answer comes. The queue
 * that was made for them stays until then, and no longer. */
START_TEST(queue_stays_for_a_request_in_flight)
{
    enum { MANY = 3 };
    struct rlk_lock *fair = rlk_lock_get_locked(&reg, RLK_KIND_FAIR, "f", 1);
    struct rlk_hold *holds[MANY];
    for (int i = 0; i < MANY; i++) {
        holds[i] = rlk_hold_new_locked(fair, &thread, 'f', GRANT);
        rlk_hold_ask_locked(holds[i], &thread);
        rlk_hold_ref_locked(holds[i]); /* the request's reference */
    }
    rlk_lock_ref_locked(fair);
    for (int i = 0; i < MANY; i++) {
        rlk_hold_ask_end_locked(holds[i]);
        rlk_hold_put_locked(holds[i]);
    }
    rlk_lock_put_locked(fair);
    for (int i = 0; i < MANY; i++) {
        ck_assert(rlk_lock_has_queue(fair));
        rlk_hold_put_locked(holds[i]);
    }
    ck_assert(rlk_lock_has_queue(fair));
    struct rlk_hold *held = rlk_hold_new_locked(fair, &thread, 'f', GRANT);
    rlk_lock_put_locked(fair); /* the request is answered */
    ck_assert(!rlk_lock_has_queue(fair));
    rlk_hold_put_locked(held);
}
END_TEST

START_TEST(pair_after_pair_allocates_one_hold)
{
    for (int i = 0; i < 1000; i++)
        leave(enter());
    ck_assert_uint_eq(reg.free_hold_count, 1);
}
END_TEST

/* ---- waking */

START_TEST(watchdog_is_woken_only_for_what_is_due_before_it_wakes)
{
    reg.armed = now + 5000 * MS;
    struct rlk_hold *hold = enter(); /* due in 10 s */
    unlock_and_lock();
    ck_assert_uint_eq(wakes(&watchdog), 0);
    leave(hold);
    unlock_and_lock();
    ck_assert_uint_eq(wakes(&watchdog), 0);
    reg.armed = now + 20000 * MS;
    hold = enter();
    unlock_and_lock();
    ck_assert_uint_eq(wakes(&watchdog), 1);
    unlock_and_lock(); /* only once */
    ck_assert_uint_eq(wakes(&watchdog), 0);
    ck_assert_uint_eq(wakes(&subscriber), 0);
    leave(hold);
}
END_TEST

/* rule: T11 */
START_TEST(refresh_timer_is_the_expiry_or_a_third_of_the_presence)
{
    struct rlk_hold *hold = ask(&thread);
    rlk_queue_answered_locked(lock, now, 100, 0);
    ck_assert_int_eq(lock->queue->timer.when, now + 101 * MS);
    rlk_queue_answered_locked(lock, now, 0, 0); /* Redis returns 0 in the last ms */
    ck_assert_int_eq(lock->queue->timer.when, now + 1 * MS);
    rlk_queue_answered_locked(lock, now, 20000, 0);
    ck_assert_int_eq(lock->queue->timer.when, now + 1000 * MS);
    rlk_queue_answered_locked(lock, now, -2, 0);
    ck_assert_int_eq(lock->queue->timer.when, now + 1000 * MS);
    rlk_queue_answered_locked(lock, now - 500 * MS, -1, 0);
    ck_assert_int_eq(lock->queue->timer.when, now + 500 * MS);
    rlk_registry_recheck_locked(&reg);
    ck_assert_int_eq(lock->queue->timer.when, 0);
    drop(hold);
    ck_assert(!lock->queue->timer.armed);
    rlk_queue_answered_locked(lock, now, 100, 0); /* no thread waits any more */
    rlk_registry_recheck_locked(&reg);
    ck_assert(!lock->queue->timer.armed);
}
END_TEST

START_TEST(redisson_channel_is_subscribed_while_a_foreign_holder_is_seen)
{
    struct rlk_hold *hold = ask(&thread);
    rlk_queue_answered_locked(lock, now, 100, 1);
    ck_assert_uint_eq(lock->queue->channel_wanted, 0);
    rlk_queue_answered_locked(lock, now, 100, RLK_FOREIGN_HOLDER);
    rlk_queue_answered_locked(lock, now, 100, RLK_FOREIGN_HOLDER);
    ck_assert_uint_eq(lock->queue->channel_wanted, 1);
    ck_assert(lock->queue->channel_listed);
    unlock_and_lock();
    ck_assert_uint_eq(wakes(&subscriber), 1);
    lock->queue->channel_listed = false; /* as the subscriber does it */
    rlk_list_pop(&reg.channels);
    rlk_lock_unref_locked(lock);
    lock->queue->channel_joined = true;
    rlk_queue_answered_locked(lock, now, -2, RLK_FOREIGN_HOLDER); /* the lock is free */
    ck_assert_uint_eq(lock->queue->channel_wanted, 0);
    ck_assert(lock->queue->channel_listed);
    rlk_queue_answered_locked(lock, now, 100, RLK_FOREIGN_HOLDER);
    ck_assert_uint_eq(lock->queue->channel_wanted, 1);
    drop(hold); /* the last waiter ends the need for the channel */
    ck_assert_uint_eq(lock->queue->channel_wanted, 0);
    lock->queue->channel_joined = false;
}
END_TEST

#define CASE(name, ...)                                                                  \
    do {                                                                                 \
        const TTest *const tests[] = { __VA_ARGS__ };                                    \
        TCase *tc = tcase_create(name);                                                  \
        tcase_add_checked_fixture(tc, set_up, tear_down);                                \
        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)                    \
            tcase_add_test(tc, tests[i]);                                                \
        suite_add_tcase(suite, tc);                                                      \
    } while (0)

int main(void)
{
    Suite *suite = suite_create("registry");
    CASE("D", D_is_99_percent_of_the_lease_less_2_ms,
         held_counts_from_when_the_request_left, held_reply_counts_the_remaining_time,
         no_answer_is_believed_for_longer_than_the_lease,
         granted_hold_is_renewed_at_D_less_two_thirds_of_A, older_answer_does_not_lower_D,
         skew_is_taken_off_D_and_off_the_times_before_it,
         skew_that_nobody_has_set_is_a_twelfth_of_a_short_lease,
         fixed_lease_is_at_risk_in_its_last_tenth_and_not_renewed);
    CASE("T1", grant_of_the_confirmed_ticket_is_believed,
         grant_without_a_confirmed_reply_is_not_believed,
         grant_that_overtook_the_reply_is_believed_with_it,
         stale_grant_is_not_believed_after_queueing_again,
         stale_grant_read_first_is_dropped_by_the_new_ticket,
         waiter_with_refused_polls_asks_and_takes_the_new_ticket,
         no_grant_outlives_the_reply_gone);
    CASE("T7", message_about_an_unknown_id_has_no_effect,
         flood_of_grants_for_unknown_ids_has_no_effect);
    TCase *forms = tcase_create("messages about what is under way");
    tcase_add_checked_fixture(forms, set_up, tear_down);
    tcase_add_loop_test(forms, grant_for_an_id_in_flight_is_no_orphan, 0, FORMS);
    tcase_add_loop_test(forms, grant_for_an_abandoned_id_is_released_immediately, 0,
                        FORMS);
    tcase_add_test(forms, grant_for_a_past_turn_is_given_back_once);
    tcase_add_test(forms, answer_from_before_the_trouble_does_not_end_it);
    tcase_add_test(forms, oldest_past_ids_are_forgotten_and_unqueued_ids_never_known);
    tcase_add_loop_test(forms, abandoned_ids_are_known_when_no_waiter_is_left, 0, 2);
    tcase_add_loop_test(forms, loss_read_before_the_reply_is_remembered, 0, FORMS);
    tcase_add_loop_test(forms, recall_read_before_the_reply_is_remembered, 0, FORMS);
    tcase_add_loop_test(forms, early_loss_and_recall_apply_to_their_id_alone, 0, FORMS);
    suite_add_tcase(suite, forms);
    CASE("T6 to T12", grant_is_left_to_the_cancel_in_flight,
         grant_known_from_the_reply_changes_nothing,
         token_of_a_reply_overrides_that_of_a_message,
         queued_requester_believes_a_grant_that_comes_meanwhile,
         queued_requester_may_be_given_a_smaller_ticket,
         failed_request_leaves_the_requester_queued,
         grant_that_may_be_older_than_what_is_believed_in_has_the_server_asked,
         earlier_reply_does_not_stop_the_requester,
         grant_is_not_the_newest_when_another_was_entered_since,
         lost_hold_believes_no_later_reply, loss_frees_the_lock_for_the_next_thread,
         loss_read_from_the_mailbox_has_the_server_asked_about_that_id_only);
    CASE("the rest", waiters_are_promoted_in_order_and_one_at_a_time,
         left_hold_is_given_back, background_release_retains_the_hold_until_its_end,
         many_names_are_found_and_idle_ones_forgotten,
         queue_stays_for_a_request_in_flight, pair_after_pair_allocates_one_hold,
         watchdog_is_woken_only_for_what_is_due_before_it_wakes,
         refresh_timer_is_the_expiry_or_a_third_of_the_presence,
         redisson_channel_is_subscribed_while_a_foreign_holder_is_seen);

    return test_run_suite(suite);
}
