/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* The rules of fencing tokens in a process (H11), decision by decision: the registry
 * alone, without a server or threads. Their other half is the scripts':
 * test_scripts_token.c. */
#include "handscene.h"

enum { FIRST = 5000, BLOCK = RLK_TOKEN_BLOCK, LAST = FIRST + BLOCK - 1, LATER = 90000 };

static const struct rlk_handoff keeping = {
    .ns = 10 * MS, .count = 1000, .retain_ns = 5000 * MS, .hears = true
};

/* Thread 0 unlocks what is kept then. */
static bool keeps(void)
{
    struct rlk_part *part = part_of(0);
    rlk_gate_close_locked(hold);
    bool stays = rlk_handoff_unlock_locked(part, keeping, now);
    if (!stays)
        rlk_part_leave_locked(part);
    return stays;
}

static bool takes_again(void)
{
    struct rlk_hold *spent;
    bool in = rlk_handoff_enter_locked(lock, &waiters[0], keeping, now, &spent);
    if (spent)
        rlk_hold_background_locked(spent, now, now + LEASE * MS);
    return in;
}

/* Thread 0 is inside with this one, whatever was used before. */
static void goes_to(uint64_t token)
{
    ck_assert_uint_le(hold->token, token);
    ck_assert(rlk_hold_pass_locked(hold)); /* by those who had it */
    hold->token = token;
}

START_TEST(h11_each_section_has_the_next_one)
{
    enter_fenced("k", 0, FIRST);
    ck_assert_uint_eq(hold->token, FIRST);
    waits(1, 0);
    ck_assert(goes_on()); /* past thread 1, which is woken */
    ck_assert_uint_eq(hold->token, FIRST + 1);
    waiters[1].since = now - MS;
    ck_assert(unlocks(0)); /* handed to it */
    ck_assert_uint_eq(hold->token, FIRST + 2);
    ck_assert(waiters[1].part->fencing);
    ck_assert_uint_eq(waiters[1].part->hold->token, FIRST + 2);
}
END_TEST

START_TEST(h11_so_has_each_of_a_kept_hold_by_either_way)
{
    enter_fenced("k", 0, FIRST);
    ck_assert(keeps());
    ck_assert(rlk_gate_enter(&threads[0]));
    ck_assert_uint_eq(hold->token, FIRST + 1);
    ck_assert(part_of(0)->fencing);
    ck_assert(rlk_gate_leave(&threads[0]));
    ck_assert(takes_again());
    ck_assert_uint_eq(hold->token, FIRST + 2);
    ck_assert(keeps());
    ck_assert(rlk_gate_enter(&threads[0]));
    ck_assert_uint_eq(hold->token, FIRST + 3);
    ck_assert(rlk_gate_leave(&threads[0]));
}
END_TEST

START_TEST(h11_none_is_used_past_the_block)
{
    enter_fenced("k", 0, FIRST);
    goes_to(LAST);
    waits(1, _i);
    ck_assert(!unlocks(0));
}
END_TEST

START_TEST(h11_nor_kept_without_one)
{
    enter_fenced("k", 0, _i == 0 ? FIRST : 0);
    if (_i == 0)
        goes_to(LAST);
    ck_assert(!keeps());
}
END_TEST

START_TEST(h11_the_gate_is_not_left_with_the_last_one)
{
    enter_fenced("k", 0, FIRST);
    ck_assert(keeps());
    hold->token = LAST - 1;
    ck_assert(rlk_gate_enter(&threads[0]));
    ck_assert_uint_eq(hold->token, LAST);
    ck_assert(!rlk_gate_leave(&threads[0]));
    ck_assert_ptr_nonnull(part_of(0));
    ck_assert(!keeps());
}
END_TEST

START_TEST(h11_more_are_asked_for_at_the_end_by_who_would_pass_it_on)
{
    enter_fenced("k", 0, FIRST);
    goes_to(LAST - 1);
    ck_assert(!rlk_handoff_asks_locked(hold, keeping, now));
    goes_to(LAST);
    ck_assert(rlk_handoff_asks_locked(hold, keeping, now)); /* would be kept */
    ck_assert(hold->asks_tokens);
    hold->asks_tokens = false;
    ck_assert(!rlk_handoff_asks_locked(hold, bound, now)); /* would go */
    waits(1, 1);
    ck_assert(rlk_handoff_asks_locked(hold, bound, now));
    rlk_handoff_tokens_locked(hold, LATER, hold->asks_tokens);
    ck_assert(!hold->asks_tokens);
    ck_assert(unlocks(0));
    ck_assert_uint_eq(hold->token, LATER);
    ck_assert_uint_eq(hold->pass->token_end, LATER + BLOCK - 1);
}
END_TEST

START_TEST(h11_nor_are_they_when_others_have_waited_for_long)
{
    enter_fenced("k", RLK_WRITERS_WAIT, FIRST);
    goes_to(LAST);
    waits(1, 1);
    ck_assert(rlk_handoff_asks_locked(hold, bound, now));
    now += 10 * MS;
    hold->asks_tokens = false;
    ck_assert(!rlk_handoff_asks_locked(hold, bound, now));
    ck_assert(!hold->asks_tokens);
}
END_TEST

START_TEST(h11_the_watchdog_fetches_them_when_three_quarters_are_used)
{
    enter_fenced("k", 0, FIRST);
    goes_to(LAST - BLOCK / 4 - 1);
    ck_assert(keeps());
    ck_assert(!is_asked() && !hold->asks_tokens);
    ck_assert(rlk_gate_enter(&threads[0]));
    ck_assert(!rlk_gate_leave(&threads[0])); /* it is to be said */
    ck_assert(keeps());
    ck_assert(is_asked() && hold->asks_tokens);
    ck_assert(rlk_gate_enter(&threads[0]));
    ck_assert(rlk_gate_leave(&threads[0])); /* once */
    hold->asks_others = false;
    rlk_handoff_tokens_locked(hold, LATER, hold->asks_tokens);
    ck_assert(!hold->asks_tokens);
    ck_assert_uint_eq(hold->token, LAST - BLOCK / 4 + 1); /* the block goes on */
    hold->token = LAST - 1;
    ck_assert(rlk_gate_enter(&threads[0]));
    ck_assert(!rlk_gate_leave(&threads[0]));
    ck_assert(keeps());
    ck_assert(!hold->asks_tokens);
    ck_assert(rlk_gate_enter(&threads[0]));
    ck_assert_uint_eq(hold->token, LATER);
    ck_assert(rlk_gate_leave(&threads[0]));
}
END_TEST

/* An answer that is late. */
START_TEST(h11_a_block_that_begins_below_is_dropped)
{
    enter_fenced("k", 0, FIRST);
    rlk_handoff_tokens_locked(hold, LATER, hold->asks_tokens);
    rlk_handoff_tokens_locked(hold, LATER - BLOCK,
                              hold->asks_tokens); /* one of two that were drawn */
    goes_to(LAST);
    waits(1, 0);
    ck_assert(goes_on());
    ck_assert_uint_eq(hold->token, LATER);
    for (int i = 0; i < 3; i++) {
        rlk_handoff_tokens_locked(hold,
                                  i == 0   ? FIRST
                                  : i == 1 ? LATER
                                           : LATER - BLOCK,
                                  hold->asks_tokens);
        ck_assert_uint_eq(hold->pass->token_more, 0);
    }
    goes_to(LATER + BLOCK - 1);
    ck_assert(!unlocks(0));
}
END_TEST

/* It is said again while it is at hand, and nobody has begun a section of it. */
START_TEST(h11_a_block_is_taken_up_once)
{
    enter_fenced("k", 0, FIRST);
    rlk_handoff_tokens_locked(hold, LATER, false);
    goes_to(LAST);
    ck_assert(keeps());
    rlk_handoff_tokens_locked(hold, LATER, false);
    ck_assert_uint_eq(hold->pass->token_more, 0);
    ck_assert(rlk_gate_enter(&threads[0]));
    ck_assert_uint_eq(hold->token, LATER);
    hold->token = LATER + BLOCK - 1;
    ck_assert(!rlk_gate_leave(&threads[0]));
    ck_assert(!keeps());
}
END_TEST

/* An answer to a request that left before more were asked for. */
START_TEST(h11_what_is_asked_for_is_not_forgotten)
{
    enter_fenced("k", 0, FIRST);
    goes_to(LAST - BLOCK / 4);
    ck_assert(keeps());
    ck_assert(is_asked() && hold->asks_tokens);
    rlk_handoff_tokens_locked(hold, FIRST, false);
    rlk_handoff_answered_locked(hold, now, RLK_WILL_TELL);
    ck_assert(hold->asks_tokens && hold->asks_others);
    rlk_handoff_tokens_locked(hold, LATER, true);
    rlk_handoff_answered_locked(hold, now, RLK_WILL_TELL);
    ck_assert(!hold->asks_tokens && !hold->asks_others);
}
END_TEST

/* More were asked for before any answer had confirmed what a message said. */
START_TEST(h11_another_block_denies_no_message)
{
    enter_fenced("k", 0, FIRST);
    hold->token_heard = true;
    goes_to(LAST);
    ck_assert(rlk_handoff_asks_locked(hold, keeping, now));
    rlk_handoff_tokens_locked(hold, LATER, true);
    ck_assert(!hold->others);
    ck_assert(keeps());
    ck_assert(takes_again());
    ck_assert_uint_eq(hold->token, LATER);
}
END_TEST

/* Too low, and too high: whoever is on his way does not enter. */
START_TEST(h11_nobody_enters_by_a_block_that_was_made_up)
{
    enter_fenced("k", 0, _i == 0 ? FIRST : LATER);
    hold->token_heard = true;
    waits(1, 0);
    ck_assert(unlocks(0));
    ck_assert(is_woken(1));
    rlk_handoff_tokens_locked(hold, _i == 0 ? LATER : LATER - 500, false);
    ck_assert(!enters(1));
    ck_assert(is_gone());
}
END_TEST

/* T12: what an answer says counts over a message; and then there is no other by this id.
 */
START_TEST(h11_a_block_that_a_message_made_up_is_not_used)
{
    enter_fenced("k", 0, LATER);
    hold->token_heard = true;
    ck_assert(keeps());
    ck_assert(rlk_gate_enter(&threads[0]));
    rlk_handoff_tokens_locked(hold, FIRST, hold->asks_tokens);
    ck_assert_uint_eq(hold->token, FIRST);
    ck_assert(!rlk_gate_leave(&threads[0]));
    ck_assert(!keeps());
}
END_TEST

/* The same before the hold was ever passed on. */
START_TEST(h11_nor_is_there_one_behind_the_token_that_an_answer_put_right)
{
    enter_fenced("k", 0, LATER);
    hold->token_heard = true;
    rlk_handoff_tokens_locked(hold, FIRST, false);
    ck_assert_uint_eq(hold->token, FIRST);
    waits(1, 0);
    ck_assert(!unlocks(0));
}
END_TEST

START_TEST(h11_one_that_an_answer_confirms_is)
{
    enter_fenced("k", 0, FIRST);
    hold->token_heard = true;
    rlk_handoff_tokens_locked(hold, FIRST, hold->asks_tokens);
    ck_assert(!hold->token_heard);
    ck_assert(keeps());
    ck_assert(takes_again());
    ck_assert_uint_eq(hold->token, FIRST + 1);
}
END_TEST

START_TEST(h11_a_thread_takes_nothing_that_does_not_suit_it)
{
    enter_fenced("k", 0, FIRST);
    waiters[1].letter = 'm';
    waits(1, 1);
    ck_assert(!unlocks(0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("token rules");
    TCase *t = tcase_create("h11");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, h11_each_section_has_the_next_one);
    tcase_add_test(t, h11_so_has_each_of_a_kept_hold_by_either_way);
    tcase_add_loop_test(t, h11_none_is_used_past_the_block, 0, 2);
    tcase_add_loop_test(t, h11_nor_kept_without_one, 0, 2);
    tcase_add_test(t, h11_the_gate_is_not_left_with_the_last_one);
    tcase_add_test(t, h11_more_are_asked_for_at_the_end_by_who_would_pass_it_on);
    tcase_add_test(t, h11_nor_are_they_when_others_have_waited_for_long);
    tcase_add_test(t, h11_the_watchdog_fetches_them_when_three_quarters_are_used);
    tcase_add_test(t, h11_a_block_that_begins_below_is_dropped);
    tcase_add_test(t, h11_a_block_is_taken_up_once);
    tcase_add_test(t, h11_what_is_asked_for_is_not_forgotten);
    tcase_add_test(t, h11_another_block_denies_no_message);
    tcase_add_loop_test(t, h11_nobody_enters_by_a_block_that_was_made_up, 0, 2);
    tcase_add_test(t, h11_a_block_that_a_message_made_up_is_not_used);
    tcase_add_test(t, h11_nor_is_there_one_behind_the_token_that_an_answer_put_right);
    tcase_add_test(t, h11_one_that_an_answer_confirms_is);
    tcase_add_test(t, h11_a_thread_takes_nothing_that_does_not_suit_it);
    suite_add_tcase(suite, t);
    return test_run_suite(suite);
}
