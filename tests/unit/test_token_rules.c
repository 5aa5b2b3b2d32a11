/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* The rules of fencing tokens in a process (H11), decision by decision: the registry
 * alone, without a server or threads. The rules for the scripts are tested by
 * test_scripts_token.c. */
#include "handscene.h"

/* FIRST is the token of the grant; a block after it ends with LAST. */
enum { FIRST = 5000, BLOCK = RLK_TOKEN_BLOCK, LAST = FIRST + BLOCK, LATER = 90000 };

static const struct rlk_handoff keeping = {
    .ns = 10 * MS, .count = 1000, .retain_ns = 5000 * MS, .hears = true
};

/* Gives thread 0 a hold that has got a block. */
static void enter_with_block(void)
{
    enter_fenced("k", 0, FIRST);
    answered(FIRST + 1, BLOCK, true);
}

/* Thread 0 unlocks a hold that may be retained. Whether the process still has it. */
static bool keeps(void)
{
    struct rlk_holder *holder = part_of(0);
    rlk_fastpath_close_locked(hold);
    bool stays = rlk_handoff_unlock_locked(holder, keeping, now);
    if (!stays)
        rlk_holder_leave_locked(holder);
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

/* Thread 0 is inside with this token, whatever tokens were used before. */
static void goes_to(uint64_t token)
{
    ck_assert_uint_le(hold->token, token);
    ck_assert(rlk_hold_pass_locked(hold)); /* as by the threads before */
    hold->token = token;
}

/* rule: H11 */
START_TEST(grant_carries_a_token)
{
    enter_fenced("k", 0, FIRST);
    ck_assert_uint_eq(hold->token, FIRST);
    waits(1, _i);
    ck_assert(!unlocks(0));
}
END_TEST

/* rule: H11 */
START_TEST(each_section_has_the_next_token)
{
    enter_with_block();
    ck_assert_uint_eq(hold->token, FIRST);
    waits(1, 0);
    ck_assert(goes_on()); /* before thread 1, which is woken */
    ck_assert_uint_eq(hold->token, FIRST + 1);
    waiters[1].since = now - MS;
    ck_assert(unlocks(0)); /* handed to thread 1 */
    ck_assert_uint_eq(hold->token, FIRST + 2);
    ck_assert(waiters[1].holder->fencing);
    ck_assert_uint_eq(waiters[1].holder->hold->token, FIRST + 2);
}
END_TEST

/* rule: H11 */
START_TEST(each_section_of_a_retained_hold_has_the_next_token_on_both_paths)
{
    enter_with_block();
    ck_assert(keeps());
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert_uint_eq(hold->token, FIRST + 1);
    ck_assert(part_of(0)->fencing);
    ck_assert(rlk_fastpath_leave(&threads[0]));
    ck_assert(takes_again());
    ck_assert_uint_eq(hold->token, FIRST + 2);
    ck_assert(keeps());
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert_uint_eq(hold->token, FIRST + 3);
    ck_assert(rlk_fastpath_leave(&threads[0]));
}
END_TEST

/* The block need not follow the previous one. */
/* rule: H11 */
START_TEST(no_token_beyond_the_block_is_used)
{
    enter_fenced("k", 0, FIRST);
    answered(LATER, 2, true);
    ck_assert(keeps());
    ck_assert(takes_again());
    ck_assert_uint_eq(hold->token, LATER);
    ck_assert(keeps());
    ck_assert(takes_again());
    ck_assert_uint_eq(hold->token, LATER + 1);
    waits(1, _i);
    ck_assert(!unlocks(0));
}
END_TEST

/* rule: H11 */
START_TEST(hold_without_a_token_left_is_not_retained)
{
    enter_fenced("k", 0, _i == 0 ? FIRST : 0);
    ck_assert(!keeps());
}
END_TEST

/* rule: H11 */
START_TEST(fast_path_is_not_left_with_the_last_token)
{
    enter_with_block();
    ck_assert(keeps());
    hold->token = LAST - 1;
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert_uint_eq(hold->token, LAST);
    ck_assert(!rlk_fastpath_leave(&threads[0]));
    ck_assert_ptr_nonnull(part_of(0));
    ck_assert(!keeps());
}
END_TEST

/* rule: H11 */
START_TEST(thread_that_would_hand_off_requests_the_first_block)
{
    enter_fenced("k", 0, FIRST);
    ck_assert(rlk_handoff_asks_locked(hold, keeping, now)); /* the hold would be
                                                               retained */
    ck_assert(hold->tokens.ask);
    hold->tokens.ask = false;
    ck_assert(!rlk_handoff_asks_locked(hold, bound, now)); /* the hold would be
                                                              released */
    waits(1, 1);
    ck_assert(rlk_handoff_asks_locked(hold, bound, now));
    answered(FIRST + 7, 3, hold->tokens.ask);
    ck_assert(!hold->tokens.ask);
    ck_assert_uint_eq(hold->token, FIRST);
    ck_assert(unlocks(0));
    ck_assert_uint_eq(hold->token, FIRST + 7);
    ck_assert_uint_eq(hold->pass->token_end, FIRST + 9);
}
END_TEST

/* As with a server whose memory is full. */
/* rule: H11 */
START_TEST(thread_without_a_block_releases_the_hold)
{
    enter_fenced("k", 0, FIRST);
    waits(1, 1);
    ck_assert(rlk_handoff_asks_locked(hold, bound, now));
    answered(FIRST, 0, true);
    ck_assert(!hold->tokens.ask);
    ck_assert_uint_eq(hold->token, FIRST);
    ck_assert(!unlocks(0));
}
END_TEST

/* rule: H11 */
START_TEST(thread_that_would_hand_off_requests_more_tokens_at_the_end)
{
    enter_with_block();
    ck_assert(keeps());
    ck_assert(takes_again());
    goes_to(LAST - 1);
    ck_assert(!rlk_handoff_asks_locked(hold, keeping, now));
    goes_to(LAST);
    ck_assert(rlk_handoff_asks_locked(hold, keeping, now)); /* the hold would be
                                                               retained */
    ck_assert(hold->tokens.ask);
    hold->tokens.ask = false;
    ck_assert(!rlk_handoff_asks_locked(hold, bound, now)); /* the hold would be
                                                              released */
    waits(1, 1);
    ck_assert(rlk_handoff_asks_locked(hold, bound, now));
    answered(LATER, BLOCK, hold->tokens.ask);
    ck_assert(!hold->tokens.ask);
    ck_assert(unlocks(0));
    ck_assert_uint_eq(hold->token, LATER);
    ck_assert_uint_eq(hold->pass->token_end, LATER + BLOCK - 1);
}
END_TEST

/* rule: H11 */
START_TEST(no_tokens_are_requested_when_others_have_waited_for_long)
{
    enter_fenced("k", RLK_WRITERS_WAIT, FIRST);
    waits(1, 1);
    ck_assert(rlk_handoff_asks_locked(hold, bound, now));
    now += 10 * MS;
    hold->tokens.ask = false;
    ck_assert(!rlk_handoff_asks_locked(hold, bound, now));
    ck_assert(!hold->tokens.ask);
}
END_TEST

/* rule: H11 */
START_TEST(watchdog_fetches_tokens_when_three_quarters_are_used)
{
    enter_with_block();
    ck_assert(keeps());
    hold->token = LAST - BLOCK / 4 - 1;
    ck_assert(!is_asked() && !hold->tokens.ask);
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert(!rlk_fastpath_leave(&threads[0])); /* the watchdog must be asked */
    ck_assert(keeps());
    ck_assert(is_asked() && hold->tokens.ask);
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert(rlk_fastpath_leave(&threads[0])); /* only once */
    hold->contention.ask = false;
    answered(LATER, BLOCK, hold->tokens.ask);
    ck_assert(!hold->tokens.ask);
    ck_assert_uint_eq(hold->token, LAST - BLOCK / 4 + 1); /* the old block is still in
                                                             use */
    hold->token = LAST - 1;
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert(!rlk_fastpath_leave(&threads[0]));
    ck_assert(keeps());
    ck_assert(!hold->tokens.ask);
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert_uint_eq(hold->token, LATER);
    ck_assert(rlk_fastpath_leave(&threads[0]));
}
END_TEST

/* There would be too few tokens for two requests. */
/* rule: H11 */
START_TEST(watchdog_fetches_nothing_before_the_end_of_a_partial_block)
{
    enter_fenced("k", 0, FIRST);
    answered(FIRST + 1, BLOCK - 1, true);
    ck_assert(keeps());
    hold->token = LAST - 3;
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert(rlk_fastpath_leave(&threads[0]));
    ck_assert(!is_asked() && !hold->tokens.ask);
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert_uint_eq(hold->token, LAST - 1); /* the last */
    ck_assert(!rlk_fastpath_leave(&threads[0]));
    rlk_fastpath_close_locked(hold);
    ck_assert(rlk_handoff_asks_locked(hold, keeping, now));
}
END_TEST

/* A late answer. */
/* rule: H11 */
START_TEST(block_that_begins_below_the_last_token_is_dropped)
{
    enter_with_block();
    ck_assert(keeps()); /* the block is in use */
    ck_assert(takes_again());
    answered(LATER, BLOCK, false);
    answered(LATER - BLOCK, BLOCK, false); /* the earlier of two blocks */
    goes_to(LAST);
    waits(1, 0);
    ck_assert(goes_on());
    ck_assert_uint_eq(hold->token, LATER);
    static const uint64_t late[] = { FIRST + 1, LATER, LATER - BLOCK, LATER + BLOCK - 1 };
    for (int i = 0; i < 4; i++) {
        answered(late[i], BLOCK, false);
        ck_assert_uint_eq(hold->pass->token_more, 0);
    }
    goes_to(LATER + BLOCK - 1);
    ck_assert(!unlocks(0));
}
END_TEST

/* A renewal that asks for no tokens brings the token of the grant. */
/* rule: H11 */
START_TEST(reply_without_a_block_brings_no_tokens)
{
    enter_fenced("k", 0, FIRST);
    answered(_i == 0 ? FIRST : LATER, 0, false);
    ck_assert_uint_eq(hold->token, FIRST);
    waits(1, 0);
    ck_assert(!unlocks(0));
}
END_TEST

/* An answer to a request that was sent before more tokens were needed. */
/* rule: H11 */
START_TEST(pending_request_for_tokens_is_not_forgotten)
{
    enter_with_block();
    ck_assert(keeps());
    hold->token = LAST - BLOCK / 4;
    ck_assert(rlk_fastpath_enter(&threads[0]));
    ck_assert(!rlk_fastpath_leave(&threads[0]));
    ck_assert(keeps());
    ck_assert(is_asked() && hold->tokens.ask);
    answered(FIRST, 0, false);
    rlk_handoff_answered_locked(hold, now, RLK_WILL_TELL);
    ck_assert(hold->tokens.ask && hold->contention.ask);
    answered(LATER, BLOCK, true);
    rlk_handoff_answered_locked(hold, now, RLK_WILL_TELL);
    ck_assert(!hold->tokens.ask && !hold->contention.ask);
}
END_TEST

/* More tokens were requested before any answer had confirmed the message's token. */
/* rule: H11 */
START_TEST(block_does_not_contradict_the_token_of_a_message)
{
    enter_fenced("k", 0, FIRST);
    hold->tokens.by_message = true;
    ck_assert(rlk_handoff_asks_locked(hold, keeping, now));
    answered(LATER, BLOCK, true);
    ck_assert_uint_eq(hold->token, FIRST);
    ck_assert(!hold->contention.contended);
    ck_assert(keeps());
    ck_assert(takes_again());
    ck_assert_uint_eq(hold->token, LATER);
}
END_TEST

/* Too low, and too high: no thread has entered with it, or enters. */
/* rule: H11 */
START_TEST(forged_token_of_a_message_is_corrected)
{
    uint64_t said = _i == 0 ? FIRST - 1000 : LATER;
    enter_fenced("k", 0, said);
    hold->tokens.by_message = true;
    if (_i == 0)
        ck_assert(rlk_hold_pass_locked(hold));
    answered(FIRST, 0, false);
    ck_assert_uint_eq(hold->token, FIRST);
    ck_assert_uint_eq(rlk_hold_token_end(hold), FIRST);
    waits(1, 0);
    ck_assert(!unlocks(0));
}
END_TEST

/* Only once: a late answer does not change a token that an answer has confirmed. */
/* rule: H11 */
START_TEST(token_confirmed_by_a_reply_is_not_contradicted)
{
    enter_fenced("k", 0, FIRST);
    hold->tokens.by_message = true;
    answered(FIRST, 0, false);
    ck_assert(!hold->tokens.by_message);
    answered(LATER, BLOCK, true);
    ck_assert(keeps());
    ck_assert(takes_again());
    answered(FIRST, 0, false);
    ck_assert_uint_eq(hold->token, LATER);
}
END_TEST

/* As a hostile server may answer: numbers beyond uint64_t. */
/* rule: H11 */
START_TEST(no_thread_enters_by_a_block_past_the_last_number)
{
    enter_fenced("k", 0, FIRST);
    answered(UINT64_MAX - 1, 5, true);
    ck_assert(keeps());
    ck_assert(!takes_again());
    ck_assert(is_gone());
}
END_TEST

/* rule: H11 */
START_TEST(thread_takes_no_hold_that_does_not_suit_it)
{
    enter_with_block();
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
    tcase_add_loop_test(t, grant_carries_a_token, 0, 2);
    tcase_add_test(t, each_section_has_the_next_token);
    tcase_add_test(t, each_section_of_a_retained_hold_has_the_next_token_on_both_paths);
    tcase_add_loop_test(t, no_token_beyond_the_block_is_used, 0, 2);
    tcase_add_loop_test(t, hold_without_a_token_left_is_not_retained, 0, 2);
    tcase_add_test(t, fast_path_is_not_left_with_the_last_token);
    tcase_add_test(t, thread_that_would_hand_off_requests_the_first_block);
    tcase_add_test(t, thread_without_a_block_releases_the_hold);
    tcase_add_test(t, thread_that_would_hand_off_requests_more_tokens_at_the_end);
    tcase_add_test(t, no_tokens_are_requested_when_others_have_waited_for_long);
    tcase_add_test(t, watchdog_fetches_tokens_when_three_quarters_are_used);
    tcase_add_test(t, watchdog_fetches_nothing_before_the_end_of_a_partial_block);
    tcase_add_test(t, block_that_begins_below_the_last_token_is_dropped);
    tcase_add_loop_test(t, reply_without_a_block_brings_no_tokens, 0, 2);
    tcase_add_test(t, pending_request_for_tokens_is_not_forgotten);
    tcase_add_test(t, block_does_not_contradict_the_token_of_a_message);
    tcase_add_loop_test(t, forged_token_of_a_message_is_corrected, 0, 2);
    tcase_add_test(t, token_confirmed_by_a_reply_is_not_contradicted);
    tcase_add_test(t, no_thread_enters_by_a_block_past_the_last_number);
    tcase_add_test(t, thread_takes_no_hold_that_does_not_suit_it);
    suite_add_tcase(suite, t);
    return test_run_suite(suite);
}
