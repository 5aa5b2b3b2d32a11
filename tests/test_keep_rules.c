/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit claims=K1,K5,K6,K7,K8,K9,K11 */
/* The rules by which a process keeps a free mutex (K1, K5 to K9), decision by decision:
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
START_TEST(k1_what_is_not_kept)
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
START_TEST(k1_what_is_kept_is_nobodys)
{
    keep();
    ck_assert_uint_eq(reg.holds_now, 0);
    ck_assert(!rlk_registry_busy_locked(&reg));
    ck_assert_ptr_null(part_of(0));
    ck_assert_uint_eq(counters.losses, 0);
}
END_TEST

/* rule: K1 */
START_TEST(k1_with_somebody_waiting_it_is_passed_on)
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
START_TEST(k5_it_is_asked_for_every_third_of_a_presence)
{
    keep();
    int64_t answered = hold->proof_sent;
    ck_assert_int_eq(rlk_hold_contention_due(hold), answered + GRANT * MS / 3);
    ck_assert_int_eq(hold->timer.when, answered + GRANT * MS / 3);
    rlk_fastpath_close_locked(hold);
    now += 500 * MS;
    rlk_hold_confirm_locked(hold, now, GRANT); /* which raises nothing */
    rlk_handoff_answered_locked(hold, now, RLK_WILL_TELL);
    rlk_handoff_answered_retained_locked(hold);
    rlk_hold_schedule_locked(hold);
    ck_assert_int_eq(hold->timer.when, now + GRANT * MS / 3);
    /* and the rest of its longer lease goes by without a risk */
    ck_assert_int_eq(hold->risk, hold->end - GRANT * MS / 3);
}
END_TEST

/* rule: K1 */
START_TEST(k1_it_is_asked_for_at_once_when_the_mailbox_is_lost)
{
    keep();
    rlk_handoff_ask_all_locked(&reg);
    ck_assert(is_asked());
}
END_TEST

/* ---- K6 */

/* rule: K6 */
START_TEST(k6_wanted_ends_it_at_once)
{
    keep();
    rlk_registry_recalled_locked(&reg, &hold->id, "n", 1);
    ck_assert(is_gone());
    ck_assert_int_eq(hold->state, RLK_HOLD_RELEASING);
    ck_assert(hold->timer.armed && hold->timer.when <= rlk_clock_boot());
}
END_TEST

/* rule: K6 */
START_TEST(k6_but_not_with_a_thread_inside)
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
START_TEST(k5_so_does_an_answer)
{
    keep();
    rlk_handoff_answered_locked(hold, now, RLK_WRITERS_WAIT);
    ck_assert(rlk_handoff_retained_due_locked(hold, now));
    ck_assert(is_gone());
}
END_TEST

/* rule: K6 */
START_TEST(k6_wanted_may_come_before_the_answer_to_a_try)
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
START_TEST(k8_what_is_said_to_be_lost_is_asked_for_at_once_and_not_kept)
{
    keep();
    ck_assert(rlk_fastpath_enter(&threads[0]));
    rlk_registry_lost_locked(&reg, &hold->id, "n", 1);
    ck_assert(hold->timer.when <= rlk_clock_boot());
    ck_assert(!rlk_fastpath_leave(&threads[0])); /* the release will tell */
    ck_assert(!unlocks_keeping(keeping));
}
END_TEST

/* rule: K8 */
START_TEST(k8_nor_passed_on)
{
    enter("k", 0);
    waits(1, _i == 0 ? 0 : 5);
    rlk_registry_lost_locked(&reg, &hold->id, "n", 1);
    ck_assert(!unlocks_keeping(keeping));
}
END_TEST

/* rule: K8 */
START_TEST(k8_idle_it_is_asked_for_at_once)
{
    keep();
    rlk_registry_lost_locked(&reg, &hold->id, "n", 1);
    ck_assert(hold->timer.when <= rlk_clock_boot());
    ck_assert(!rlk_fastpath_enter(&threads[0]));
}
END_TEST

/* ---- K7 */

/* rule: K7 */
START_TEST(k7_it_is_taken_again_without_the_server)
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
START_TEST(k7_but_not_at_risk_and_not_by_whom_it_does_not_suit)
{
    keep();
    if (_i == 0)
        now = hold->risk;
    else
        waiters[1].lease_ms++;
    ck_assert(!takes_again(1));
    ck_assert(is_gone()); /* he asks with a new id */
    ck_assert_int_eq(hold->state, RLK_HOLD_RELEASING);
}
END_TEST

/* rule: K7 */
START_TEST(k7_its_whole_lease_is_asked_for_then)
{
    keep();
    hold->renew_at = now - 1; /* of which nobody took notice while it was idle */
    rlk_hold_schedule_locked(hold);
    ck_assert(!is_asked());
    ck_assert(takes_again(1));
    ck_assert(is_asked());
}
END_TEST

/* ---- K9 */

/* rule: K9 */
START_TEST(k9_it_ends_when_nobody_has_used_it_for_so_long)
{
    keep();
    ck_assert_int_eq(rlk_hold_retained_until(hold), now + 5000 * MS);
    ck_assert(!rlk_handoff_retained_due_locked(hold, now + 5000 * MS - 1));
    ck_assert(rlk_fastpath_enter(&threads[0])); /* by which it is in use */
    ck_assert(!rlk_handoff_retained_due_locked(hold, now + 6000 * MS));
    ck_assert(rlk_fastpath_leave(&threads[0]));
    ck_assert_int_gt(rlk_hold_retained_until(hold), now + 5000 * MS);
    ck_assert(rlk_handoff_retained_due_locked(hold, hold->pass->used_at + 5000 * MS));
    ck_assert(is_gone());
}
END_TEST

/* Or its timer, which is due, would be the first one for ever. */
/* rule: K9 */
START_TEST(k9_no_timer_is_due_for_a_thread_inside_by_the_gate)
{
    keep();
    hold->pass->retain_ns = 1;
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert(!rlk_handoff_retained_due_locked(hold, now + MS));
    rlk_hold_schedule_locked(hold);
    ck_assert_int_gt(hold->timer.when, now + MS);
}
END_TEST

/* What a thread inside by the gate has is a lease, not a grant. */
/* rule: K5 */
START_TEST(k5_the_risk_is_that_of_the_lease_while_a_thread_is_inside)
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
START_TEST(k1_the_gate_of_a_kept_hold_is_for_those_who_keep)
{
    struct rlk_handoff passing = { .ns = keeping.ns, .count = keeping.count };

    enter("k", 0);
    waits(1, 0);
    ck_assert(unlocks_keeping(passing)); /* thread 0 does not keep */
    ck_assert(enters(1));
    rlk_fastpath_close_locked(hold);
    ck_assert(rlk_handoff_unlock_locked(part_of(1), keeping, now)); /* thread 1 does */
    ck_assert(!rlk_fastpath_enter(&threads[0]));
    ck_assert(rlk_fastpath_enter(&threads[1]));
    ck_assert(rlk_fastpath_leave(&threads[1]));
}
END_TEST

/* rule: K1 */
START_TEST(k1_so_many_are_kept_and_no_more)
{
    enter("k", 0);
    reg.retained_count = 1024;
    ck_assert(!unlocks_keeping(keeping));
    reg.retained_count = 0;
}
END_TEST

/* rule: K1 */
START_TEST(k1_those_kept_are_counted)
{
    keep();
    ck_assert_uint_eq(reg.retained_count, 1);
    ck_assert(takes_again(1));
    ck_assert_uint_eq(reg.retained_count, 0);
}
END_TEST

/* A try of ours that overtakes the release goes round again. */
/* rule: K9 */
START_TEST(k9_what_is_being_given_back_is_counted)
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
START_TEST(k9_or_when_its_lease_is_at_risk)
{
    keep();
    ck_assert(rlk_handoff_retained_due_locked(hold, hold->risk));
    ck_assert(is_gone());
    ck_assert_ptr_null(rlk_holder_next_news_locked(&reg));
}
END_TEST

/* rule: K9 */
START_TEST(k9_or_when_the_process_ends)
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
START_TEST(k11_it_is_said_to_be_clean_when_it_has_rested)
{
    keep_robust();
    now += CLEAN_MS * MS - 1;
    ck_assert(!rlk_handoff_clears_mark_locked(hold, now));
    ck_assert(rlk_fastpath_enter(&threads[0])); /* without a word */
    now += 1;
    ck_assert(!rlk_handoff_clears_mark_locked(hold, now)); /* nor is it clean then */
    ck_assert(!rlk_fastpath_leave(&threads[0]));
    ck_assert(unlocks_keeping(keeping));
    now = hold->pass->used_at + CLEAN_MS * MS;
    ck_assert(rlk_handoff_clears_mark_locked(hold, now));
    ck_assert(!rlk_fastpath_enter(&threads[0]));
    ck_assert(rlk_handoff_clears_mark_locked(hold, now)); /* again and again */
    ck_assert(takes_again(0));
    ck_assert(hold->robust.mark_cleared); /* so who enters has to say so first */
}
END_TEST

/* rule: K11 */
START_TEST(k11_what_is_not_robust_or_not_kept_is_not)
{
    if (_i == 0) {
        keep();
    } else {
        waiters[1].robust = true;
        enter("bk", 0);
        waits(1, 0);
        ck_assert(unlocks(0)); /* for who is woken */
    }
    ck_assert(rlk_hold_is_retained(hold));
    ck_assert(!rlk_handoff_clears_mark_locked(hold, now + 1000 * MS));
}
END_TEST

/* rule: K11 */
START_TEST(k11_whose_owner_before_died_has_the_second_mark)
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
    Suite *suite = suite_create("keep: rules");
    TCase *tc = tcase_create("keep");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, k1_what_is_not_kept, 0, REASONS);
    tcase_add_test(tc, k1_what_is_kept_is_nobodys);
    tcase_add_test(tc, k1_with_somebody_waiting_it_is_passed_on);
    tcase_add_test(tc, k1_it_is_asked_for_at_once_when_the_mailbox_is_lost);
    tcase_add_test(tc, k5_it_is_asked_for_every_third_of_a_presence);
    tcase_add_test(tc, k5_so_does_an_answer);
    tcase_add_test(tc, k6_wanted_ends_it_at_once);
    tcase_add_test(tc, k6_but_not_with_a_thread_inside);
    tcase_add_test(tc, k7_it_is_taken_again_without_the_server);
    tcase_add_loop_test(tc, k7_but_not_at_risk_and_not_by_whom_it_does_not_suit, 0, 2);
    tcase_add_test(tc, k7_its_whole_lease_is_asked_for_then);
    tcase_add_test(tc, k9_it_ends_when_nobody_has_used_it_for_so_long);
    tcase_add_test(tc, k9_or_when_its_lease_is_at_risk);
    tcase_add_test(tc, k9_or_when_the_process_ends);
    tcase_add_test(tc, k9_no_timer_is_due_for_a_thread_inside_by_the_gate);
    tcase_add_test(tc, k9_what_is_being_given_back_is_counted);
    tcase_add_test(tc, k5_the_risk_is_that_of_the_lease_while_a_thread_is_inside);
    tcase_add_test(tc, k1_the_gate_of_a_kept_hold_is_for_those_who_keep);
    tcase_add_test(tc, k1_so_many_are_kept_and_no_more);
    tcase_add_test(tc, k1_those_kept_are_counted);
    tcase_add_test(tc, k6_wanted_may_come_before_the_answer_to_a_try);
    tcase_add_test(tc, k8_what_is_said_to_be_lost_is_asked_for_at_once_and_not_kept);
    tcase_add_loop_test(tc, k8_nor_passed_on, 0, 2);
    tcase_add_test(tc, k8_idle_it_is_asked_for_at_once);
    tcase_add_test(tc, k11_it_is_said_to_be_clean_when_it_has_rested);
    tcase_add_loop_test(tc, k11_what_is_not_robust_or_not_kept_is_not, 0, 2);
    tcase_add_test(tc, k11_whose_owner_before_died_has_the_second_mark);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
