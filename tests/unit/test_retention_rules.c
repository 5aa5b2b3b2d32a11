/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit claims=K1,K5,K6,K7,K8,K9,K11 */
/* The rules by which a process retains a free mutex (K1, K5 to K9), decision by decision:
 * the registry alone, without a server or threads. */
#include "handscene.h"

static const struct rlk_handoff keeping = {
    .ns = 10 * MS, .count = 1000, .retain_ns = 5000 * MS, .hears = true
};

static bool unlocks_keeping(struct rlk_handoff how)
{
    struct rlk_holder *holder = part_of(0);
    rlk_fastpath_close_locked(hold);
    bool stays = rlk_handoff_unlock_locked(holder, how, now);
    if (!stays)
        rlk_holder_leave_locked(holder);
    return stays;
}

static void keep(void)
{
    enter("k", 0);
    ck_assert(unlocks_keeping(keeping));
    ck_assert(rlk_hold_is_retained(hold) && lock->current == hold);
}

static bool takes_again(int i)
{
    struct rlk_hold *spent;
    rlk_lock_held_locked(lock, now);
    bool in = rlk_handoff_enter_locked(lock, &waiters[i], keeping, now, &spent);
    if (spent)
        rlk_hold_background_locked(spent, now, now + LEASE * MS);
    return in;
}

/* ---- K1 */

enum { NO_TIME, DEAF, FIXED, DIED, NOT_TOLD, OTHERS, AT_RISK, ASKER, ENDING, REASONS };

/* rule: K1 */
START_TEST(hold_that_may_not_be_retained_is_given_back)
{
    struct rlk_handoff how = keeping;

    enter(_i == NOT_TOLD ? "" : "k", 0);
    if (_i == NO_TIME)
        how.retain_ns = 0;
    how.hears = _i != DEAF;
    hold->fixed = _i == FIXED;
    hold->robust.owner_died = _i == DIED;
    hold->contention.contended = _i == OTHERS;
    if (_i == AT_RISK)
        now = hold->risk;
    lock->queue->requester = _i == ASKER ? &waiters[1] : NULL;
    lock->ending = _i == ENDING ? &threads[0] : NULL;
    ck_assert(!unlocks_keeping(how));
    lock->ending = NULL;
}
END_TEST

/* rule: K1 */
START_TEST(retained_hold_belongs_to_no_thread)
{
    keep();
    ck_assert_uint_eq(reg.holds_now, 0);
    ck_assert(!rlk_registry_busy_locked(&reg));
    ck_assert_ptr_null(part_of(0));
    ck_assert_uint_eq(counters.losses, 0);
}
END_TEST

/* rule: K1 */
START_TEST(hold_with_a_local_waiter_is_handed_off_not_retained)
{
    enter("k", 0);
    waits(1, 5);
    ck_assert(unlocks_keeping(keeping));
    ck_assert(!rlk_hold_is_retained(hold));
    ck_assert_int_eq(hold->pass->retain_ns, 0);
}
END_TEST

/* ---- K5 */

/* rule: K5 */
START_TEST(retained_hold_is_refreshed_every_third_of_a_presence)
{
    keep();
    int64_t answered = hold->proof_sent;
    ck_assert_int_eq(rlk_hold_contention_due(hold), answered + GRANT * MS / 3);
    ck_assert_int_eq(hold->timer.when, answered + GRANT * MS / 3);
    rlk_fastpath_close_locked(hold);
    now += 500 * MS;
    rlk_hold_confirm_locked(hold, now, GRANT); /* this extends nothing */
    rlk_handoff_answered_locked(hold, now, RLK_WILL_TELL);
    rlk_handoff_answered_retained_locked(hold);
    rlk_hold_schedule_locked(hold);
    ck_assert_int_eq(hold->timer.when, now + GRANT * MS / 3);
    /* and the remaining, longer lease passes without a risk */
    ck_assert_int_eq(hold->risk, hold->end - GRANT * MS / 3);
}
END_TEST

/* rule: K1 */
START_TEST(retained_hold_is_refreshed_at_once_when_the_mailbox_is_lost)
{
    keep();
    rlk_handoff_ask_all_locked(&reg);
    ck_assert(is_asked());
}
END_TEST

/* ---- K6 */

/* rule: K6 */
START_TEST(recall_ends_a_retained_hold_at_once)
{
    keep();
    rlk_registry_recalled_locked(&reg, &hold->id, "n", 1);
    ck_assert(is_gone());
    ck_assert_int_eq(hold->state, RLK_HOLD_RELEASING);
    ck_assert(hold->timer.armed && hold->timer.when <= rlk_clock_boot());
}
END_TEST

/* rule: K6 */
START_TEST(recall_does_not_end_a_hold_with_a_thread_inside)
{
    keep();
    ck_assert(rlk_fastpath_enter(&threads[0]));
    rlk_registry_recalled_locked(&reg, &hold->id, "n", 1);
    ck_assert(!is_gone() && hold->contention.contended);
    now += 10 * MS;
    ck_assert(!unlocks_keeping(keeping));
}
END_TEST

/* rule: K5 */
START_TEST(contended_reply_ends_a_retained_hold)
{
    keep();
    rlk_handoff_answered_locked(hold, now, RLK_WRITERS_WAIT);
    ck_assert(rlk_handoff_retained_due_locked(hold, now));
    ck_assert(is_gone());
}
END_TEST

/* rule: K6 */
START_TEST(recall_may_arrive_before_the_reply_to_a_try)
{
    struct rlk_hold *tries = rlk_hold_new_locked(lock, &threads[0], 'm', GRANT);
    tries->lease_ms = LEASE;
    rlk_hold_try_locked(tries);
    struct rlk_id other = tries->id;
    other.acquisition++;
    ck_assert(rlk_registry_recalled_locked(&reg, &tries->id, "n", 1));
    ck_assert(
        !rlk_registry_recalled_locked(&reg, &other, "n", 1)); /* and forgets nothing */
    tries->request.flags = RLK_WILL_TELL;
    rlk_hold_held_locked(tries, now, LEASE, 0);
    rlk_hold_enter_locked(tries, &threads[0], now);
    rlk_hold_put_locked(tries);
    hold = tries;
    ck_assert(hold->contention.contended);
    ck_assert(!unlocks_keeping(keeping));
}
END_TEST

/* ---- K8 */

/* rule: K8 */
START_TEST(hold_reported_lost_is_refreshed_at_once_and_not_retained)
{
    keep();
    ck_assert(rlk_fastpath_enter(&threads[0]));
    rlk_registry_lost_locked(&reg, &hold->id, "n", 1);
    ck_assert(hold->timer.when <= rlk_clock_boot());
    ck_assert(!rlk_fastpath_leave(&threads[0])); /* the release shows whether it is
                                                    lost */
    ck_assert(!unlocks_keeping(keeping));
}
END_TEST

/* rule: K8 */
START_TEST(hold_reported_lost_is_not_handed_off)
{
    enter("k", 0);
    waits(1, _i == 0 ? 0 : 5);
    rlk_registry_lost_locked(&reg, &hold->id, "n", 1);
    ck_assert(!unlocks_keeping(keeping));
}
END_TEST

/* rule: K8 */
START_TEST(idle_hold_reported_lost_is_refreshed_at_once)
{
    keep();
    rlk_registry_lost_locked(&reg, &hold->id, "n", 1);
    ck_assert(hold->timer.when <= rlk_clock_boot());
    ck_assert(!rlk_fastpath_enter(&threads[0]));
}
END_TEST

/* ---- K7 */

/* rule: K7 */
START_TEST(retained_hold_is_taken_again_without_the_server)
{
    keep();
    ck_assert(takes_again(1));
    ck_assert_ptr_eq(part_of(1)->hold, hold);
    ck_assert(!rlk_hold_is_retained(hold));
    ck_assert_int_eq(rlk_hold_retained_until(hold), RLK_NEVER);
    ck_assert_uint_eq(reg.holds_now, 1);
}
END_TEST

/* rule: K7 */
START_TEST(retained_hold_at_risk_or_of_other_needs_is_not_taken_again)
{
    keep();
    if (_i == 0)
        now = hold->risk;
    else
        waiters[1].lease_ms++;
    ck_assert(!takes_again(1));
    ck_assert(is_gone()); /* the thread requests with a new id */
    ck_assert_int_eq(hold->state, RLK_HOLD_RELEASING);
}
END_TEST

/* rule: K7 */
START_TEST(retaken_hold_is_renewed_for_a_whole_lease)
{
    keep();
    hold->renew_at = now - 1; /* the time passed while the hold was retained */
    rlk_hold_schedule_locked(hold);
    ck_assert(!is_asked());
    ck_assert(takes_again(1));
    ck_assert(is_asked());
}
END_TEST

/* ---- K9 */

/* rule: K9 */
START_TEST(unused_retained_hold_ends_after_its_time)
{
    keep();
    ck_assert_int_eq(rlk_hold_retained_until(hold), now + 5000 * MS);
    ck_assert(!rlk_handoff_retained_due_locked(hold, now + 5000 * MS - 1));
    ck_assert(rlk_fastpath_enter(&threads[0])); /* so the hold is in use */
    ck_assert(!rlk_handoff_retained_due_locked(hold, now + 6000 * MS));
    ck_assert(rlk_fastpath_leave(&threads[0]));
    ck_assert_int_gt(rlk_hold_retained_until(hold), now + 5000 * MS);
    ck_assert(rlk_handoff_retained_due_locked(hold, hold->pass->used_at + 5000 * MS));
    ck_assert(is_gone());
}
END_TEST

/* Otherwise its timer, which is due, would stay the first one for ever. */
/* rule: K9 */
START_TEST(no_timer_is_due_for_a_thread_inside_by_the_fast_path)
{
    keep();
    hold->pass->retain_ns = 1;
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert(!rlk_handoff_retained_due_locked(hold, now + MS));
    rlk_hold_schedule_locked(hold);
    ck_assert_int_gt(hold->timer.when, now + MS);
}
END_TEST

/* A thread inside by the fast path has a lease, not a grant. */
/* rule: K5 */
START_TEST(lease_alone_decides_the_risk_while_a_thread_is_inside)
{
    keep();
    int64_t risk = hold->risk;
    ck_assert(rlk_fastpath_enter(&threads[0]));
    rlk_handoff_answered_retained_locked(hold);
    ck_assert_int_eq(hold->risk, risk);
    ck_assert(rlk_fastpath_leave(&threads[0]));
    rlk_handoff_answered_retained_locked(hold);
    ck_assert_int_gt(hold->risk, risk);
}
END_TEST

/* rule: K1 */
START_TEST(fast_path_of_a_retained_hold_serves_retaining_locks_only)
{
    struct rlk_handoff passing = { .ns = keeping.ns, .count = keeping.count };

    enter("k", 0);
    waits(1, 0);
    ck_assert(unlocks_keeping(passing)); /* thread 0 does not retain */
    ck_assert(enters(1));
    rlk_fastpath_close_locked(hold);
    ck_assert(rlk_handoff_unlock_locked(part_of(1), keeping, now)); /* thread 1 retains */
    ck_assert(!rlk_fastpath_enter(&threads[0]));
    ck_assert(rlk_fastpath_enter(&threads[1]));
    ck_assert(rlk_fastpath_leave(&threads[1]));
}
END_TEST

/* rule: K1 */
START_TEST(limited_number_of_holds_is_retained)
{
    enter("k", 0);
    reg.retained_count = 1024;
    ck_assert(!unlocks_keeping(keeping));
    reg.retained_count = 0;
}
END_TEST

/* rule: K1 */
START_TEST(retained_holds_are_counted)
{
    keep();
    ck_assert_uint_eq(reg.retained_count, 1);
    ck_assert(takes_again(1));
    ck_assert_uint_eq(reg.retained_count, 0);
}
END_TEST

/* A try of this process that overtakes the release must be repeated. */
/* rule: K9 */
START_TEST(holds_being_released_are_counted)
{
    keep();
    ck_assert_uint_eq(lock->returning, 0);
    rlk_hold_ref_locked(hold);
    ck_assert(rlk_handoff_retained_due_locked(hold, hold->risk));
    ck_assert_uint_eq(lock->returning, 1);
    ck_assert_uint_eq(reg.retained_count, 0);
    rlk_hold_background_end_locked(hold);
    ck_assert_uint_eq(lock->returning, 0);
    rlk_hold_put_locked(hold);
}
END_TEST

/* rule: K9 */
START_TEST(retained_hold_ends_when_its_lease_is_at_risk)
{
    keep();
    ck_assert(rlk_handoff_retained_due_locked(hold, hold->risk));
    ck_assert(is_gone());
    ck_assert_ptr_null(rlk_holder_next_news_locked(&reg));
}
END_TEST

/* rule: K9 */
START_TEST(retained_hold_ends_with_the_process)
{
    keep();
    rlk_handoff_end_all_locked(&reg, now);
    ck_assert(is_gone());
}
END_TEST

/* ---- K11: robust */

enum { CLEAN_MS = 5 };

static void keep_robust(void)
{
    for (int i = 0; i < THREADS; i++)
        waiters[i].robust = true;
    enter("bk", 0);
    ck_assert_uint_eq(hold->exclusive.mark, 1);
    ck_assert(unlocks_keeping(keeping));
}

/* rule: K11 */
START_TEST(robust_hold_is_reported_clean_after_a_rest)
{
    keep_robust();
    now += CLEAN_MS * MS - 1;
    ck_assert(!rlk_handoff_clears_mark_locked(hold, now));
    ck_assert(rlk_fastpath_enter(&threads[0])); /* the server learns nothing */
    now += 1;
    ck_assert(!rlk_handoff_clears_mark_locked(hold, now)); /* then the hold is not
                                                              clean */
    ck_assert(!rlk_fastpath_leave(&threads[0]));
    ck_assert(unlocks_keeping(keeping));
    now = hold->pass->used_at + CLEAN_MS * MS;
    ck_assert(rlk_handoff_clears_mark_locked(hold, now));
    ck_assert(!rlk_fastpath_enter(&threads[0]));
    ck_assert(rlk_handoff_clears_mark_locked(hold, now)); /* so that it can be reported
                                                             again */
    ck_assert(takes_again(0));
    ck_assert(hold->robust.mark_cleared); /* so a thread that enters must report that
                                             first */
}
END_TEST

/* rule: K11 */
START_TEST(hold_not_robust_or_not_retained_is_not_reported_clean)
{
    if (_i == 0) {
        keep();
    } else {
        waiters[1].robust = true;
        enter("bk", 0);
        waits(1, 0);
        ck_assert(unlocks(0)); /* for the woken thread */
    }
    ck_assert(rlk_hold_is_retained(hold));
    ck_assert(!rlk_handoff_clears_mark_locked(hold, now + 1000 * MS));
}
END_TEST

/* rule: K11 */
START_TEST(hold_with_EOWNERDEAD_uses_the_second_mark)
{
    hold = rlk_hold_new_locked(lock, &threads[0], 'm', GRANT);
    strcpy(hold->id.flags, "bk");
    hold->lease_ms = LEASE;
    rlk_hold_ask_locked(hold, &threads[0]);
    hold->request.flags = RLK_OWNER_DIED;
    rlk_hold_held_locked(hold, now, LEASE, 0);
    rlk_hold_enter_locked(hold, &threads[0], now);
    rlk_hold_put_locked(hold);
    ck_assert(hold->robust.owner_died);
    ck_assert_uint_eq(hold->exclusive.mark, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("retention: rules");
    TCase *tc = tcase_create("retention");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, hold_that_may_not_be_retained_is_given_back, 0, REASONS);
    tcase_add_test(tc, retained_hold_belongs_to_no_thread);
    tcase_add_test(tc, hold_with_a_local_waiter_is_handed_off_not_retained);
    tcase_add_test(tc, retained_hold_is_refreshed_at_once_when_the_mailbox_is_lost);
    tcase_add_test(tc, retained_hold_is_refreshed_every_third_of_a_presence);
    tcase_add_test(tc, contended_reply_ends_a_retained_hold);
    tcase_add_test(tc, recall_ends_a_retained_hold_at_once);
    tcase_add_test(tc, recall_does_not_end_a_hold_with_a_thread_inside);
    tcase_add_test(tc, retained_hold_is_taken_again_without_the_server);
    tcase_add_loop_test(tc, retained_hold_at_risk_or_of_other_needs_is_not_taken_again, 0,
                        2);
    tcase_add_test(tc, retaken_hold_is_renewed_for_a_whole_lease);
    tcase_add_test(tc, unused_retained_hold_ends_after_its_time);
    tcase_add_test(tc, retained_hold_ends_when_its_lease_is_at_risk);
    tcase_add_test(tc, retained_hold_ends_with_the_process);
    tcase_add_test(tc, no_timer_is_due_for_a_thread_inside_by_the_fast_path);
    tcase_add_test(tc, holds_being_released_are_counted);
    tcase_add_test(tc, lease_alone_decides_the_risk_while_a_thread_is_inside);
    tcase_add_test(tc, fast_path_of_a_retained_hold_serves_retaining_locks_only);
    tcase_add_test(tc, limited_number_of_holds_is_retained);
    tcase_add_test(tc, retained_holds_are_counted);
    tcase_add_test(tc, recall_may_arrive_before_the_reply_to_a_try);
    tcase_add_test(tc, hold_reported_lost_is_refreshed_at_once_and_not_retained);
    tcase_add_loop_test(tc, hold_reported_lost_is_not_handed_off, 0, 2);
    tcase_add_test(tc, idle_hold_reported_lost_is_refreshed_at_once);
    tcase_add_test(tc, robust_hold_is_reported_clean_after_a_rest);
    tcase_add_loop_test(tc, hold_not_robust_or_not_retained_is_not_reported_clean, 0, 2);
    tcase_add_test(tc, hold_with_EOWNERDEAD_uses_the_second_mark);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
