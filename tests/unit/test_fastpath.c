/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* The fast path, by which threads pass on a hold without the registry's mutex: the
 * registry alone, without a server or other threads. */
#include "handscene.h"

/* ---- the fast path */

/* Thread 0 has left a retained hold; thread 1 is on its way to it. */
static void open_gate(void)
{
    enter("k", 0);
    waits(1, 0);
    ck_assert(unlocks(0));
}

static bool is_open(void)
{
    return hold->pass->fastpath != 0 && !rlk_list_empty(&reg.fastpaths);
}

START_TEST(fast_path_is_open_while_an_idle_hold_is_uncontended)
{
    open_gate();
    ck_assert(is_open());
    for (int i = 0; i < 3; i++) {
        ck_assert(rlk_fastpath_enter(&threads[0]));
        ck_assert_ptr_eq(part_of(0)->hold, hold);
        ck_assert_uint_eq(part_of(0)->levels.writes, 1);
        ck_assert(rlk_fastpath_leave(&threads[0]));
        ck_assert_ptr_null(part_of(0));
    }
    rlk_fastpath_close_locked(hold);
    ck_assert(!is_open() && rlk_hold_is_retained(hold));
    ck_assert(!rlk_fastpath_enter(&threads[0]));
    ck_assert_uint_eq(counters.acquisitions, 3);
    ck_assert_uint_eq(counters.local_handovers, 3);
    ck_assert_uint_eq(counters.releases, 3);
    ck_assert(enters(1));
}
END_TEST

/* The counters are short: their numbers are added up before they wrap. */
START_TEST(reentries_are_counted_before_they_are_too_many)
{
    enum { FULL = 1 << 30 };
    enter("k", 0);
    struct rlk_holder *holder = part_of(0);
    for (int i = 1; i <= 5; i++) {
        atomic_store(&holder->reentries,
                     (uint32_t)i * FULL - 1); /* as if there had been so many */
        rlk_registry_unlock(&reg);
        rlk_fastpath_reenter(holder);
        rlk_registry_lock(&reg);
        ck_assert_uint_eq(counters.reentries, (uint64_t)i * FULL);
    }
    rlk_fastpath_reenter(holder);
    rlk_holder_count_locked(holder);
    ck_assert_uint_eq(counters.reentries, 5 * (uint64_t)FULL + 1);
}
END_TEST

/* The fast path is closed while thread 0 leaves by it. Then thread 0 must leave by the
 * registry, which has counted the section by then, but not its end. */
START_TEST(section_ended_outside_the_fast_path_counts_once)
{
    rlock_histogram_t held;
    open_gate();
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert(rlk_fastpath_leave(&threads[0]));
    ck_assert(rlk_fastpath_enter(&threads[0]));
    struct rlk_histogram *its = &threads[0].passes.times->held;
    rlk_histogram_add(its, 5 * MS); /* as rlk_fastpath_leave does */
    rlk_fastpath_close_locked(hold);
    rlk_histogram_undo(its, 5 * MS);
    rlk_holder_end_section_locked(part_of(0), now); /* as rlk_release does */
    ck_assert(unlocks(0));
    rlk_histogram_show(&reg.held, &held);
    ck_assert_uint_eq(held.count, 2);
    ck_assert_uint_lt(held.sum_us, UINT64_MAX / 2);
}
END_TEST

START_TEST(unlock_allocates_nothing_for_the_fast_path)
{
    struct rlk_fastpath_times *times = threads[0].passes.times;
    threads[0].passes.times = NULL;
    open_gate();
    ck_assert_ptr_null(threads[0].passes.times);
    ck_assert_ptr_null(threads[0].fast);
    ck_assert(rlk_hold_is_retained(hold) && enters(1));
    threads[0].passes.times = times;
}
END_TEST

enum { CLOSED_NOT_TOLD, CLOSED_OTHERS, CLOSED_AT_RISK, CLOSED_WAYS };

START_TEST(fast_path_stays_closed_otherwise)
{
    enter(_i == CLOSED_NOT_TOLD ? "" : "k", _i == CLOSED_OTHERS ? RLK_WRITERS_WAIT : 0);
    waits(1, 0);
    if (_i == CLOSED_AT_RISK) {
        now = hold->risk;
        waiters[1].since = now;
    }
    ck_assert(unlocks(0));
    ck_assert(rlk_hold_is_retained(hold) && !is_open());
}
END_TEST

/* rule: H1 */
START_TEST(fast_path_admits_one_thread)
{
    open_gate();
    ck_assert(enters(1));
    waits(2, 0);
    ck_assert(unlocks(1)); /* now both have a resident holder */
    ck_assert(is_open());
    ck_assert(rlk_fastpath_enter(&threads[1]));
    ck_assert(!rlk_fastpath_enter(&threads[0]));
    ck_assert(rlk_fastpath_leave(&threads[1]));
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert(!rlk_fastpath_enter(&threads[1]));
    ck_assert(rlk_fastpath_leave(&threads[0]));
}
END_TEST

/* rule: H1 */
START_TEST(closing_the_fast_path_finds_the_thread_inside)
{
    open_gate();
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert(!enters(1)); /* it closes the fast path */
    ck_assert(!is_open() && !rlk_hold_is_retained(hold));
    ck_assert_uint_eq(reg.holds_now, 1);
    ck_assert_uint_eq(counters.acquisitions, 1);
    ck_assert(!rlk_fastpath_leave(&threads[0]));
    ck_assert_ptr_nonnull(part_of(0));
    ck_assert(unlocks(0)); /* by the registry, which opens the fast path again */
    ck_assert(is_open());
    ck_assert_uint_eq(reg.holds_now, 0);
    ck_assert(is_woken(1));
}
END_TEST

/* rule: H1 */
START_TEST(every_decision_of_the_registry_closes_the_fast_path)
{
    open_gate();
    ck_assert(rlk_fastpath_enter(&threads[0]));
    switch (_i) {
    case 0:
        rlk_registry_recalled_locked(&reg, &hold->id, "n", 1);
        break;
    case 1:
        rlk_handoff_answered_locked(hold, now, RLK_WRITERS_WAIT);
        break;
    case 2:
        ck_assert(rlk_registry_busy_locked(&reg));
        break;
    case 3:
        rlk_hold_news_locked(hold, RLK_NEWS_AT_RISK);
        rlk_holder_told_locked(rlk_holder_next_news_locked(&reg));
        break;
    default:
        rlk_lock_held_locked(lock, now);
    }
    ck_assert(!is_open());
    ck_assert(!rlk_fastpath_leave(&threads[0]));
    ck_assert(!rlk_hold_unused_locked(hold));
}
END_TEST

/* rule: H10 */
START_TEST(loss_is_reported_to_the_thread_that_entered_by_the_fast_path)
{
    open_gate();
    ck_assert(rlk_fastpath_enter(&threads[0]));
    rlk_hold_lose_locked(hold, RLK_LOSS_ENDED, now);
    struct rlk_holder *holder = rlk_holder_next_news_locked(&reg);
    ck_assert_ptr_nonnull(holder);
    ck_assert_ptr_eq(holder->owner, &threads[0]);
    rlk_holder_told_locked(holder);
    ck_assert(!rlk_fastpath_leave(&threads[0]));
    ck_assert_int_eq(retained, 1);
}
END_TEST

START_TEST(ended_hold_retains_its_memory_until_its_threads_left)
{
    open_gate();
    ck_assert(enters(1));
    waits(2, 0);
    ck_assert(unlocks(1));
    gives_up(2);
    ck_assert(is_gone());
    ck_assert_int_eq(retained, 2);
    ck_assert(!rlk_fastpath_enter(&threads[0]) && !rlk_fastpath_enter(&threads[1]));
}
END_TEST

/* rule: H8 */
START_TEST(server_is_asked_while_the_fast_path_is_open)
{
    open_gate();
    now += 100 * MS;
    rlk_hold_confirm_locked(hold, now, LEASE);
    rlk_handoff_answered_locked(hold, now, 0);
    ck_assert(is_open());
    ck_assert_int_eq(rlk_hold_contention_due(hold), now + GRANT * MS / 3);
}
END_TEST

/* rule: H3 */
START_TEST(fast_path_is_closed_while_the_lease_is_at_risk)
{
    open_gate();
    hold->risk = now; /* as time passes */
    ck_assert(!rlk_fastpath_enter(&threads[0]));
    hold->risk = now + 1000000 * MS;
    ck_assert(rlk_fastpath_enter(&threads[0]));
    hold->end = now; /* after D no thread leaves by the fast path */
    ck_assert(!rlk_fastpath_leave(&threads[0]));
    ck_assert(threads[0].fast_in);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fastpath");
    TCase *tc = tcase_create("fast path");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, fast_path_is_open_while_an_idle_hold_is_uncontended);
    tcase_add_test(tc, reentries_are_counted_before_they_are_too_many);
    tcase_add_test(tc, section_ended_outside_the_fast_path_counts_once);
    tcase_add_test(tc, unlock_allocates_nothing_for_the_fast_path);
    tcase_add_loop_test(tc, fast_path_stays_closed_otherwise, 0, CLOSED_WAYS);
    tcase_add_test(tc, fast_path_admits_one_thread);
    tcase_add_test(tc, closing_the_fast_path_finds_the_thread_inside);
    tcase_add_loop_test(tc, every_decision_of_the_registry_closes_the_fast_path, 0, 5);
    tcase_add_test(tc, loss_is_reported_to_the_thread_that_entered_by_the_fast_path);
    tcase_add_test(tc, ended_hold_retains_its_memory_until_its_threads_left);
    tcase_add_test(tc, server_is_asked_while_the_fast_path_is_open);
    tcase_add_test(tc, fast_path_is_closed_while_the_lease_is_at_risk);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
