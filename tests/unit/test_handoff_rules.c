/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit claims=H1,H2,H3,H4,H5,H6,H7,H8,H10 */
/* The rules of hand-off between threads (H1 to H10, K6), decision by decision: the
 * registry alone, without a server or threads. */
#include "handscene.h"

/* ---- H4: unlock */

/* rule: H4 */
START_TEST(thread_that_waited_1_ms_is_handed_the_hold)
{
    enter("", 0);
    waits(1, 1);
    waits(2, 5); /* the first waiter comes first, however long others have waited */
    ck_assert(unlocks(0));
    ck_assert(!rlk_hold_is_retained(hold) && is_woken(1) && !is_woken(2));
    ck_assert_ptr_nonnull(waiters[1].holder);
    ck_assert_ptr_eq(waiters[1].holder->owner, &threads[1]);
    ck_assert(!waiters[1].holder->claimed); /* until its thread knows it */
    ck_assert(rlk_list_empty(&waiters[1].link));
    ck_assert_uint_eq(counters.local_handovers, 1);
    ck_assert(!enters(2));
    ck_assert_uint_eq(reg.holds_now, 1);
}
END_TEST

/* rule: H4 */
START_TEST(hold_without_a_long_waiter_is_idle_and_wakes_the_first)
{
    enter("", 0);
    waits(1, 0);
    waits(2, 0);
    ck_assert(unlocks(0));
    ck_assert(rlk_hold_is_retained(hold) && lock->current == hold);
    ck_assert(is_woken(1) && !is_woken(2));
    ck_assert_ptr_eq(lock->queue->woken, &waiters[1]);
    ck_assert_uint_eq(reg.holds_now, 0);
    ck_assert(enters(1));
    ck_assert(!rlk_hold_is_retained(hold));
    ck_assert_ptr_nonnull(part_of(1));
    ck_assert_uint_eq(part_of(1)->levels.writes, 1);
    ck_assert_uint_eq(reg.holds_now, 1);
    ck_assert_uint_eq(counters.local_handovers, 1);
    ck_assert_uint_eq(counters.acquisitions, 1);
}
END_TEST

/* rule: H4 */
START_TEST(hold_without_local_waiters_is_released)
{
    enter("", 0);
    ck_assert(!unlocks(0));
}
END_TEST

/* Reasons why the hold is not passed on, or not to this thread. */
enum {
    OFF_MS,
    OFF_COUNT,
    FIXED,
    DIED,
    ASKER,
    ASKS,
    ENDING,
    NOT_TAKEN,
    LEASE_OTHER,
    GRANT_OTHER,
    LETTER_OTHER,
    ROBUST_OTHER,
    REASONS
};

/* rule: H4 */
START_TEST(hold_that_is_not_handed_off_is_released_to_the_server)
{
    struct rlk_handoff off = bound;
    struct rlk_hold *asks = NULL;
    int why = _i / 2;

    enter(_i % 2 ? "k" : "", 0);
    waits(1, 5);
    if (why == OFF_MS)
        off.ns = 0;
    if (why == OFF_COUNT)
        off.count = 0;
    hold->fixed = why == FIXED;
    hold->robust.owner_died = why == DIED;
    lock->queue->requester = why == ASKER ? &waiters[1] : NULL;
    lock->ending = why == ENDING ? &threads[0] : NULL;
    waiters[1].passed_on = why != NOT_TAKEN;
    waiters[1].lease_ms += why == LEASE_OTHER;
    waiters[1].grant_ms += why == GRANT_OTHER;
    waiters[1].letter = why == LETTER_OTHER ? 'M' : 'm';
    waiters[1].robust = why == ROBUST_OTHER;
    if (why == ASKS) { /* the hold has a request of its own, which would have no thread */
        asks = rlk_hold_new_locked(lock, &threads[1], 'm', GRANT);
        rlk_hold_ask_locked(asks, NULL);
    }
    ck_assert(!rlk_handoff_asks_locked(hold, off, now));
    ck_assert(!rlk_handoff_unlock_locked(part_of(0), off, now));
    if (asks) {
        rlk_hold_ask_end_locked(asks);
        rlk_hold_put_locked(asks);
    }
    lock->ending = NULL;
}
END_TEST

/* rule: H4 */
START_TEST(fair_lock_is_always_released_to_the_server)
{
    tear_down();
    open_kind(RLK_KIND_FAIR);
    enter("", 0);
    waits(1, 5);
    ck_assert(!unlocks(0));
}
END_TEST

/* ---- H1, H2, H3: entry */

/* rule: H3 */
START_TEST(no_thread_enters_at_the_end_of_the_lease)
{
    enter("", 0);
    waits(1, 0);
    ck_assert(unlocks(0));
    now = hold->end;
    ck_assert(!enters(1));
    ck_assert(is_gone());
    ck_assert_uint_eq(counters.losses, 1);
    ck_assert_ptr_eq(lock->queue->requester, &waiters[1]); /* it requests again (H9) */
}
END_TEST

/* rule: H3 */
START_TEST(hold_may_be_entered_until_the_end_of_the_lease)
{
    enter("", 0);
    waits(1, 0);
    hold->contention.recall = true;
    ck_assert(unlocks(0));
    now = hold->end - 1;
    ck_assert(enters(1));
}
END_TEST

/* rule: H2 */
START_TEST(hold_whose_release_was_queued_is_gone)
{
    enter("", RLK_WRITERS_WAIT);
    waits(1, 0);
    ck_assert(unlocks(0));
    now += 10 * MS;
    ck_assert(!enters(1)); /* the hold is used up: it ends here */
    ck_assert(is_gone());
    ck_assert_int_eq(hold->state, RLK_HOLD_RELEASING);
    ck_assert_uint_eq(reg.background_count, 1);
    now -= 10 * MS;
    ck_assert(!enters(1));
    ck_assert_ptr_eq(lock->queue->requester,
                     &waiters[1]); /* it requests, and need not wait (H9) */
}
END_TEST

/* rule: H1 */
START_TEST(occupied_hold_is_not_entered)
{
    enter("", 0);
    ck_assert(!enters(1));
    waits(1, 0);
    ck_assert(unlocks(0));
    ck_assert(enters(2)); /* a running thread overtakes sleeping ones */
    ck_assert(!enters(1));
    ck_assert_ptr_null(part_of(1));
}
END_TEST

/* ---- H5: one thread is awake */

/* rule: H5 */
START_TEST(thread_that_loses_the_race_sleeps_in_its_old_place)
{
    enter("", 0);
    waits(1, 0);
    ck_assert(unlocks(0));
    ck_assert(enters(0));
    rlk_list_remove(&threads[1].wake_link);
    ck_assert(unlocks(0)); /* thread 1 is still on its way: no other thread is woken */
    ck_assert(rlk_hold_is_retained(hold) && !is_woken(1));
    ck_assert(enters(0));
    ck_assert(!enters(1));
    ck_assert(unlocks(0));
    ck_assert(is_woken(1));
    ck_assert(!rlk_list_empty(&waiters[1].link));
}
END_TEST

/* rule: H5 */
START_TEST(thread_that_gives_up_wakes_the_next)
{
    enter("", 0);
    waits(1, 0);
    waits(2, 0);
    ck_assert(unlocks(0));
    gives_up(1);
    ck_assert(is_woken(2));
    ck_assert_ptr_eq(lock->queue->woken, &waiters[2]);
    ck_assert(rlk_hold_is_retained(hold));
    gives_up(2);
    ck_assert(is_gone());
    ck_assert_int_eq(hold->state, RLK_HOLD_RELEASING);
}
END_TEST

/* rule: H5 */
START_TEST(next_thread_may_decline_the_hold)
{
    enter("", 0);
    waits(1, 0);
    waits(2, 0);
    waiters[2].passed_on = false;
    ck_assert(unlocks(0));
    gives_up(1);
    ck_assert(is_gone());
    ck_assert_ptr_eq(lock->queue->requester, &waiters[2]);
}
END_TEST

/* rule: H5 */
START_TEST(idle_hold_without_a_woken_thread_is_handed_off)
{
    enter("k", 0);
    waits(1, 0);
    waits(2, 0);
    ck_assert(unlocks(0));
    rlk_handoff_settle_locked(lock, now);
    ck_assert(!is_woken(2));
    lock->queue->woken = NULL; /* it cannot enter, because memory is missing */
    rlk_list_remove(&waiters[1].link);
    rlk_handoff_settle_locked(lock, now);
    ck_assert(is_woken(2));
    lock->queue->woken = NULL;
    waiters[2].lease_ms++; /* nor does the hold suit this one */
    rlk_handoff_settle_locked(lock, now);
    ck_assert(is_gone());
}
END_TEST

/* rule: H5 */
START_TEST(thread_that_was_not_woken_wakes_no_other_when_it_gives_up)
{
    enter("", 0);
    waits(1, 0);
    waits(2, 0);
    ck_assert(unlocks(0));
    gives_up(2);
    ck_assert(rlk_hold_is_retained(hold));
    ck_assert_ptr_eq(lock->queue->woken, &waiters[1]);
}
END_TEST

/* ---- H6, H7: the budget */

/* rule: H6 */
START_TEST(contended_hand_off_ends_after_10_ms)
{
    enter("", _i == 0 ? RLK_WRITERS_WAIT : _i == 1 ? RLK_READERS_WAIT : RLK_WANTED);
    now += 10 * MS - 1;
    waits(1, 5);
    ck_assert(unlocks(0));
    rlk_holder_own_locked(waiters[1].holder, &threads[1], now);
    waiters[1].holder = NULL;
    now += 1;
    waits(2, 5);
    ck_assert(!unlocks(1));
}
END_TEST

/* rule: H6 */
START_TEST(contended_hand_off_ends_after_1000_sections)
{
    enter("", RLK_WRITERS_WAIT);
    waits(1, 0);
    for (int i = 1; i < bound.count; i++) {
        ck_assert(unlocks(0));
        ck_assert(enters(0));
    }
    ck_assert(!unlocks(0));
}
END_TEST

/* rule: H6 */
START_TEST(hand_off_time_counts_from_the_grant_not_from_the_message)
{
    enter("k", 0);
    waits(1, 5);
    now += 500 * MS;
    rlk_handoff_recalled_locked(hold, now);
    ck_assert(!unlocks(0));
}
END_TEST

/* rule: H7 */
START_TEST(uncontended_hold_has_no_limit_when_the_server_would_recall_it)
{
    enter("k", 0);
    waits(1, 0);
    now += 20000 * MS;
    for (int i = 0; i < 3 * bound.count; i++) {
        ck_assert(goes_on());
    }
    ck_assert(!hold->contention.ask);
}
END_TEST

/* rule: H7 */
START_TEST(unknown_contention_is_asked_for_in_time)
{
    enter("", 0);
    waits(1, 0);
    now += 5 * MS - 1;
    ck_assert(goes_on());
    ck_assert(!hold->contention.ask);
    now += 1;
    ck_assert(goes_on());
    ck_assert(hold->contention.ask && is_asked());
    now += 5 * MS; /* no answer came within the time: the hold ends */
    ck_assert(!unlocks(0));
}
END_TEST

/* rule: H7 */
START_TEST(unlocking_thread_asks_when_the_budget_is_spent)
{
    enter("", 0);
    ck_assert(!rlk_handoff_asks_locked(hold, bound, now + 10 * MS)); /* no thread waits */
    waits(1, 5);
    ck_assert(!rlk_handoff_asks_locked(hold, bound, now + 10 * MS - 1));
    ck_assert(rlk_handoff_asks_locked(hold, bound, now + 10 * MS));
    ck_assert(hold->contention.ask);
    hold->contention.recall = true;
    ck_assert(!rlk_handoff_asks_locked(hold, bound, now + 10 * MS));
    hold->contention.contended = true;
    ck_assert(!rlk_handoff_asks_locked(hold, bound, now + 10 * MS));
}
END_TEST

/* rule: H7 */
START_TEST(uncontended_reply_renews_the_budget)
{
    enter("", 0);
    waits(1, 0);
    rlk_handoff_answered_locked(hold, now + 7 * MS, 0);
    now += 15 * MS;
    ck_assert(goes_on());
    now += 3 * MS;
    ck_assert(!unlocks(0));
}
END_TEST

/* rule: H7 */
START_TEST(uncontended_reply_to_a_plain_renewal_does_not_renew_the_budget)
{
    enter("", 0);
    waits(1, 0);
    rlk_handoff_renewed_locked(hold, now + 7 * MS, 0, false);
    now += 15 * MS;
    ck_assert(!unlocks(0));
}
END_TEST

/* rule: H7 */
START_TEST(asking_renewal_renews_the_budget)
{
    enter("", 0);
    waits(1, 0);
    rlk_handoff_renewed_locked(hold, now + 7 * MS, 0, true);
    now += 15 * MS;
    ck_assert(goes_on());
}
END_TEST

/* rule: H7 */
START_TEST(contended_reply_to_any_renewal_counts)
{
    enter("", 0);
    waits(1, 0);
    rlk_handoff_renewed_locked(hold, now, RLK_WRITERS_WAIT, false);
    ck_assert(hold->contention.contended);
}
END_TEST

/* rule: H7 */
START_TEST(contention_once_known_stays_known)
{
    enter("k", 0);
    waits(1, 0);
    rlk_handoff_answered_locked(hold, now + 7 * MS, RLK_WRITERS_WAIT);
    rlk_handoff_answered_locked(hold, now + 8 * MS, RLK_WILL_TELL);
    ck_assert(hold->contention.contended);
    now += 10 * MS;
    ck_assert(!unlocks(0));
}
END_TEST

/* rule: H7 */
START_TEST(later_renewal_may_request_the_recall)
{
    enter("", 0);
    waits(1, 0);
    ck_assert(!hold->contention.recall);
    rlk_handoff_answered_locked(hold, now, RLK_WILL_TELL);
    now += 500 * MS;
    ck_assert(unlocks(0));
    ck_assert(!hold->contention.ask);
}
END_TEST

/* ---- H8 */

/* rule: H8 */
START_TEST(shared_hold_is_refreshed_every_third_of_a_presence)
{
    enter("k", 0);
    ck_assert_int_eq(rlk_hold_contention_due(hold), RLK_NEVER); /* the lease alone
                                                                   determines the timer */
    ck_assert_int_eq(hold->timer.when, now + LEASE * MS / 3);
    waits(1, 0);
    int64_t answered = hold->proof_sent;
    now += 1;
    ck_assert(goes_on());
    ck_assert_int_eq(rlk_hold_contention_due(hold), answered + GRANT * MS / 3);
    ck_assert_int_eq(hold->timer.when, answered + GRANT * MS / 3);
    now += 300 * MS;
    rlk_hold_confirm_locked(hold, now, LEASE);
    rlk_handoff_answered_locked(hold, now, 0);
    rlk_hold_schedule_locked(hold);
    ck_assert_int_eq(rlk_hold_contention_due(hold), RLK_NEVER);
    now += 1;
    ck_assert(goes_on());
    ck_assert_int_eq(hold->timer.when, now - 1 + GRANT * MS / 3);
}
END_TEST

/* rule: H8 */
START_TEST(shared_hold_is_refreshed_at_least_once_a_second)
{
    enter("k", 0);
    hold->id.grant_ms = waiters[1].grant_ms = 30000;
    waits(1, 0);
    now += 1;
    ck_assert(unlocks(0));
    ck_assert(enters(1));
    ck_assert_int_eq(rlk_hold_contention_due(hold), hold->proof_sent + 1000 * MS);
}
END_TEST

/* ---- H10: which thread learns of a loss */

/* rule: H10 */
START_TEST(loss_is_reported_to_the_current_holder)
{
    enter("k", 0);
    waits(1, 0);
    ck_assert(unlocks(0));
    ck_assert(enters(1));
    rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    struct rlk_holder *holder = rlk_holder_next_news_locked(&reg);
    ck_assert_ptr_nonnull(holder);
    ck_assert_ptr_eq(holder->owner, &threads[1]);
    rlk_holder_told_locked(holder);
    ck_assert_ptr_null(rlk_holder_next_news_locked(&reg));
}
END_TEST

/* rule: H10 */
START_TEST(loss_of_an_idle_hold_is_reported_to_no_thread)
{
    enter("k", 0);
    waits(1, 0);
    ck_assert(unlocks(0));
    rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    ck_assert_ptr_null(rlk_holder_next_news_locked(&reg));
    ck_assert_uint_eq(counters.losses, 1);
    ck_assert_int_eq(retained, 1); /* for the thread that left the hold */
    ck_assert(!enters(1));
    ck_assert_ptr_eq(lock->queue->requester, &waiters[1]);
}
END_TEST

/* rule: H10 */
START_TEST(loss_before_the_thread_took_its_hand_off_is_reported_to_no_thread)
{
    enter("k", 0);
    waits(1, 1);
    ck_assert(unlocks(0));
    rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    ck_assert_ptr_null(rlk_holder_next_news_locked(&reg));
    ck_assert_int_eq(retained, 2); /* one for the thread that must take the hand-off, one
                                      for the thread that left */
}
END_TEST

START_TEST(entering_thread_learns_of_the_risk)
{
    enter("k", 0);
    waits(1, 0);
    ck_assert(unlocks(0));
    hold->lease.at_risk = true;
    ck_assert(enters(1));
    struct rlk_holder *holder = rlk_holder_next_news_locked(&reg);
    ck_assert_ptr_nonnull(holder);
    ck_assert_ptr_eq(holder->owner, &threads[1]);
    ck_assert_uint_eq(holder->news, RLK_NEWS_AT_RISK);
    rlk_holder_told_locked(holder);
}
END_TEST

/* The mark of a robust lock shows that no owner died, for as long as the release may
 * take. */
/* rule: H10 */
START_TEST(hold_lost_while_idle_was_clean)
{
    enter("bk", 0);
    waiters[1].robust = true;
    waits(1, 0);
    ck_assert(unlocks(0));
    ck_assert_int_gt(rlk_hold_release_until_locked(hold),
                     hold->end + INT64_C(3600) * 1000 * MS);
    rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    ck_assert(hold->ending.whole);
}
END_TEST

/* rule: H10 */
START_TEST(hold_lost_with_a_thread_inside_was_not_clean)
{
    enter("bk", 0);
    waiters[1].robust = true;
    waits(1, 0);
    ck_assert(unlocks(0));
    ck_assert(rlk_fastpath_enter(&threads[0]));
    rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    ck_assert(!hold->ending.whole);
    rlk_holder_told_locked(rlk_holder_next_news_locked(&reg));
}
END_TEST

/* The release, or the answer to the renewal, shows whether it is lost. */
/* rule: H10 */
START_TEST(hold_reported_lost_is_not_handed_off)
{
    enter("k", 0);
    waits(1, _i == 0 ? 0 : 5);
    rlk_registry_lost_locked(&reg, &hold->id, "n", 1);
    ck_assert(!unlocks(0));
}
END_TEST

/* rule: H10 */
START_TEST(hold_reported_lost_is_not_handed_off_by_the_fast_path)
{
    enter("k", 0);
    waits(1, 0);
    ck_assert(unlocks(0));
    ck_assert(rlk_fastpath_enter(&threads[0]));
    rlk_registry_lost_locked(&reg, &hold->id, "n", 1);
    ck_assert(!rlk_fastpath_leave(&threads[0]));
    ck_assert(!unlocks(0));
}
END_TEST

/* ---- K6: the recall */

static void wanted(const struct rlk_id *id)
{
    rlk_registry_recalled_locked(&reg, id, "n", 1);
}

/* rule: K6 */
START_TEST(recall_applies_to_the_id_that_it_names)
{
    enter("k", 0);
    struct rlk_id id = hold->id;
    id.acquisition++;
    wanted(&id);
    ck_assert(!hold->contention.contended);
    rlk_registry_recalled_locked(&reg, &hold->id, "m", 1);
    ck_assert(!hold->contention.contended);
    wanted(&hold->id);
    ck_assert(hold->contention.contended);
}
END_TEST

/* rule: K6 */
START_TEST(recall_may_arrive_before_the_reply)
{
    struct rlk_hold *asks = rlk_hold_new_locked(lock, &threads[0], 'm', GRANT);
    asks->lease_ms = LEASE;
    rlk_hold_ask_locked(asks, &threads[0]);
    wanted(&asks->id);
    rlk_hold_held_locked(asks, now, LEASE, 0);
    rlk_hold_enter_locked(asks, &threads[0], now);
    ck_assert(asks->contention.contended);
    rlk_hold_put_locked(asks);
    hold = asks;
    waits(1, 5);
    now += 10 * MS;
    ck_assert(!unlocks(0));
}
END_TEST

/* rule: K6 */
START_TEST(early_recall_does_not_apply_to_a_new_id)
{
    struct rlk_hold *asks = rlk_hold_new_locked(lock, &threads[0], 'm', GRANT);
    rlk_hold_ask_locked(asks, &threads[0]);
    wanted(&asks->id);
    rlk_hold_rename_locked(asks, &threads[0]);
    ck_assert(!asks->contention.contended);
    rlk_hold_ask_end_locked(asks);
    rlk_hold_put_locked(asks);
}
END_TEST

/* rule: K6 */
START_TEST(recalled_idle_hold_with_a_woken_thread_stays_within_its_budget)
{
    enter("k", 0);
    waits(1, 0);
    ck_assert(unlocks(0));
    wanted(&hold->id);
    ck_assert(!is_gone());
    ck_assert(enters(1));
    ck_assert(hold->contention.contended);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("handoff: rules");
    TCase *tc = tcase_create("handoff");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, thread_that_waited_1_ms_is_handed_the_hold);
    tcase_add_test(tc, hold_without_a_long_waiter_is_idle_and_wakes_the_first);
    tcase_add_test(tc, hold_without_local_waiters_is_released);
    tcase_add_loop_test(tc, hold_that_is_not_handed_off_is_released_to_the_server, 0,
                        2 * REASONS);
    tcase_add_test(tc, fair_lock_is_always_released_to_the_server);
    tcase_add_test(tc, no_thread_enters_at_the_end_of_the_lease);
    tcase_add_test(tc, hold_may_be_entered_until_the_end_of_the_lease);
    tcase_add_test(tc, hold_whose_release_was_queued_is_gone);
    tcase_add_test(tc, occupied_hold_is_not_entered);
    tcase_add_test(tc, thread_that_loses_the_race_sleeps_in_its_old_place);
    tcase_add_test(tc, thread_that_gives_up_wakes_the_next);
    tcase_add_test(tc, next_thread_may_decline_the_hold);
    tcase_add_test(tc, thread_that_was_not_woken_wakes_no_other_when_it_gives_up);
    tcase_add_test(tc, idle_hold_without_a_woken_thread_is_handed_off);
    tcase_add_loop_test(tc, contended_hand_off_ends_after_10_ms, 0, 3);
    tcase_add_test(tc, contended_hand_off_ends_after_1000_sections);
    tcase_add_test(tc, hand_off_time_counts_from_the_grant_not_from_the_message);
    tcase_add_test(tc, uncontended_hold_has_no_limit_when_the_server_would_recall_it);
    tcase_add_test(tc, unknown_contention_is_asked_for_in_time);
    tcase_add_test(tc, unlocking_thread_asks_when_the_budget_is_spent);
    tcase_add_test(tc, uncontended_reply_renews_the_budget);
    tcase_add_test(tc, uncontended_reply_to_a_plain_renewal_does_not_renew_the_budget);
    tcase_add_test(tc, asking_renewal_renews_the_budget);
    tcase_add_test(tc, contended_reply_to_any_renewal_counts);
    tcase_add_test(tc, contention_once_known_stays_known);
    tcase_add_test(tc, later_renewal_may_request_the_recall);
    tcase_add_test(tc, shared_hold_is_refreshed_every_third_of_a_presence);
    tcase_add_test(tc, shared_hold_is_refreshed_at_least_once_a_second);
    tcase_add_test(tc, loss_is_reported_to_the_current_holder);
    tcase_add_test(tc, loss_of_an_idle_hold_is_reported_to_no_thread);
    tcase_add_test(tc, loss_before_the_thread_took_its_hand_off_is_reported_to_no_thread);
    tcase_add_test(tc, entering_thread_learns_of_the_risk);
    tcase_add_test(tc, hold_lost_while_idle_was_clean);
    tcase_add_test(tc, hold_lost_with_a_thread_inside_was_not_clean);
    tcase_add_loop_test(tc, hold_reported_lost_is_not_handed_off, 0, 2);
    tcase_add_test(tc, hold_reported_lost_is_not_handed_off_by_the_fast_path);
    tcase_add_test(tc, recall_applies_to_the_id_that_it_names);
    tcase_add_test(tc, recall_may_arrive_before_the_reply);
    tcase_add_test(tc, early_recall_does_not_apply_to_a_new_id);
    tcase_add_test(tc, recalled_idle_hold_with_a_woken_thread_stays_within_its_budget);
    suite_add_tcase(suite, tc);

    return test_run_suite(suite);
}
