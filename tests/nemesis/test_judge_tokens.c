/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories: fencing tokens, in the order of the
 * server's grants, and as the workers got them. */
#include "forged.h"

#include "suite.h"

#define FENCED_1 "p1:1:1:F300"
#define FENCED_2 "p2:1:1:F300"
#define MUTEX_1 "p1:1:1:M300"
#define MUTEX_2 "p2:1:1:M300"

static void granted_twice(uint64_t first, uint64_t second)
{
    transaction(1000);
    grants(FENCED_FAIR, FENCED_1, 2000)->token = first;
    transaction(1500);
    leaves(FENCED_FAIR, FENCED_1, false);
    grants(FENCED_FAIR, FENCED_2, 2500)->token = second;
}

START_TEST(tokens_grow)
{
    granted_twice(70, 71);
    KEEPS(NEM_RULE_TOKENS);
    ck_assert_uint_eq(forged.last_token[FENCED_FAIR], 71);
}
END_TEST

START_TEST(tokens_that_do_not_grow_are_a_violation)
{
    granted_twice(70, 70);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(tokens_grow_over_rounds)
{
    forged.last_token[FENCED_FAIR] = 70;
    granted_twice(70, 71);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(grant_without_a_token_is_a_violation)
{
    granted_twice(70, 0);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

static void loses_all(double at)
{
    fault(NEM_FLUSHALL, NEM_ALL, NEM_ALL, at, at + 1);
    transaction(at);
    entry(NEM_LOST_DATA, NEM_ALL, "", 0);
}

static void goes_back(double at)
{
    fault(NEM_CLOCK_BACK, NEM_ALL, NEM_ALL, at, at + LEASE);
    last_fault()->amount = -1;
    last_fault()->took_us = 1;
}

enum { STEP_US = 1000 }; /* the step of goes_back */

START_TEST(lost_data_alone_excuses_no_token)
{
    granted_twice(70, 69);
    loses_all(1200);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(a_clock_that_goes_back_alone_excuses_no_token)
{
    granted_twice(70, 69);
    goes_back(1100);
    loses(NEM_EVICT, FENCED_FAIR, "nemesis4", 1050);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(a_clock_that_goes_back_after_a_loss_excuses_as_much)
{
    granted_twice(70 + STEP_US, 70);
    loses_all(1200);
    goes_back(1300);
    EXCUSES(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(clock_step_after_a_loss_excuses_no_more_than_its_size)
{
    granted_twice(71 + STEP_US, 70);
    loses_all(1200);
    goes_back(1300);
    fault(NEM_CLOCK_FORWARD, NEM_ALL, NEM_ALL, 1310, 1311);
    last_fault()->amount = 10;
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

/* The driver waits until the clock has caught up before it loses any data. */
START_TEST(a_clock_that_went_back_before_the_loss_excuses_none)
{
    granted_twice(70 + STEP_US, 70);
    goes_back(1100);
    loses_all(1200);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(the_second_grant_after_a_loss_is_excused_by_nothing)
{
    granted_twice(70, 80);
    transaction(1600);
    grants(FENCED_FAIR, "p3:1:1:F300", 2600)->token = 75;
    loses_all(1200);
    goes_back(1550);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(each_round_begins_without_data)
{
    forged.last_token[FENCED_FAIR] = 70 + STEP_US;
    granted_twice(70, 80);
    BREAKS(NEM_RULE_TOKENS, 1);
    goes_back(500);
    EXCUSES(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(a_repeated_token_is_excused_by_nothing)
{
    granted_twice(70, 70);
    loses_all(1200);
    goes_back(1300);
    BREAKS(NEM_RULE_TOKENS, 1);
    ck_assert_uint_eq(verdict.excused[NEM_RULE_TOKENS], 0);
}
END_TEST

START_TEST(readers_of_one_reading_share_a_token)
{
    transaction(1000);
    reads(FENCED_RWLOCK, "p1:1:1:R300", 2000, true)->token = 70;
    transaction(1100);
    reads(FENCED_RWLOCK, "p2:1:1:R300", 2100, false)->token = 70;
    KEEPS(NEM_RULE_TOKENS);
    transaction(1200);
    reads(FENCED_RWLOCK, "p3:1:1:R300", 2200, false)->token = 71;
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(readers_let_in_together_share_one_the_next_reading_has_another)
{
    transaction(1000);
    reads(FENCED_RWLOCK, "p1:1:1:R300", 2000, true)->token = 70;
    reads(FENCED_RWLOCK, "p2:1:1:R300", 2000, true)->token = 70;
    transaction(1100);
    leaves(FENCED_RWLOCK, "p1:1:1:R300", false);
    leaves(FENCED_RWLOCK, "p2:1:1:R300", true);
    KEEPS(NEM_RULE_TOKENS);
    transaction(1200);
    reads(FENCED_RWLOCK, "p3:1:1:R300", 2200, true)->token = 70;
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(a_reading_that_follows_another_at_once_has_another_token)
{
    transaction(1000);
    reads(FENCED_RWLOCK, "p1:1:1:R300", 2000, true)->token = 70;
    transaction(1100);
    leaves(FENCED_RWLOCK, "p1:1:1:R300", false);
    reads(FENCED_RWLOCK, "p3:1:1:R300", 2100, true)->token = 70;
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

static void downgraded(uint64_t token)
{
    transaction(1000);
    grants(FENCED_RWLOCK, "p2:1:1:W300", 2000)->token = 70;
    transaction(1100);
    entry(NEM_DOWNGRADED, FENCED_RWLOCK, "p2:1:1:W300", server_at(1100) * 1000)->token =
        token;
    reads(FENCED_RWLOCK, "p1:1:1:R300", 2000, true)->token = token;
}

START_TEST(downgrade_shares_its_token)
{
    downgraded(70);
    KEEPS(NEM_RULE_TOKENS);
}
END_TEST

START_TEST(downgrade_with_another_token_is_a_violation)
{
    downgraded(71);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

/* The counter goes from `before` to `last`: all tokens between were drawn. */
static void draws(unsigned lock, double at, uint64_t before, uint64_t last)
{
    transaction(at);
    entry(NEM_TOKEN, lock, "", last)->token = before;
}

/* ---- a retained write lock: each section has its own token (H11) */

static void downgraded_after_sections(uint64_t token)
{
    transaction(1000);
    grants(KEPT_FENCED_RWLOCK, "p2:1:1:W300", 2000)->token = 5000;
    draws(KEPT_FENCED_RWLOCK, 1020, 5000, 5400);
    draws(KEPT_FENCED_RWLOCK, 1040, 5400, 5999);
    transaction(1100);
    entry(NEM_DOWNGRADED, KEPT_FENCED_RWLOCK, "p2:1:1:W300", server_at(1100) * 1000)
        ->token = token;
}

START_TEST(a_downgrade_may_have_any_that_was_drawn_since_its_grant)
{
    static const uint64_t tokens[] = { 5000, 5001, 5400, 5999 };
    downgraded_after_sections(tokens[_i]);
    transaction(1200);
    leaves(KEPT_FENCED_RWLOCK, "p2:1:1:W300", true);
    grants(KEPT_FENCED_RWLOCK, "p1:1:1:W300", 2200)->token = 6000;
    KEEPS(NEM_RULE_TOKENS);
}
END_TEST

START_TEST(the_next_grant_is_behind_all_that_was_drawn)
{
    downgraded_after_sections(5001);
    transaction(1200);
    leaves(KEPT_FENCED_RWLOCK, "p2:1:1:W300", true);
    grants(KEPT_FENCED_RWLOCK, "p1:1:1:W300", 2200)->token = 5999;
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

/* It is the token of the section that goes on, not of an earlier one. */
START_TEST(drawn_token_belongs_to_its_section)
{
    takes(13, KEPT_FENCED_RWLOCK, "p1:1:1:W300", 999, 1001, 5000)->token = 5000;
    unlocks(13, KEPT_FENCED_RWLOCK, "p1:1:1:W300", 1002, 1003, 5000, 0);
    takes(14, KEPT_FENCED_RWLOCK, "p1:1:1:W300", 1004, 1005, 5000)->token = 5001;
    invoke(14, 1099, NEM_DOWNGRADE, KEPT_FENCED_RWLOCK);
    returns(14, 1101, NEM_DOWNGRADE, KEPT_FENCED_RWLOCK, 0);
    transaction(1000);
    grants(KEPT_FENCED_RWLOCK, "p1:1:1:W300", 5000)->token = 5000;
    draws(KEPT_FENCED_RWLOCK, 1050, 5000, 5999);
    transaction(1100);
    entry(NEM_DOWNGRADED, KEPT_FENCED_RWLOCK, "p1:1:1:W300", server_at(1100) * 1000)
        ->token = _i == 0 ? 5001 : 5000 + (uint64_t)_i * 2;
    if (_i == 0)
        KEEPS(NEM_RULE_TOKENS);
    else
        BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(token_beyond_the_drawn_ones_is_a_violation)
{
    downgraded_after_sections(6000);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(token_from_before_the_grant_is_a_violation)
{
    downgraded_after_sections(4999);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(worker_has_the_token_of_its_grant)
{
    transaction(1000);
    grants(FENCED_FAIR, FENCED_1, 2000)->token = 70;
    takes(11, FENCED_FAIR, FENCED_1, 998, 1002, 1985)->token = 70;
    checks(11, FENCED_FAIR, FENCED_1, 1010, 1985, 1)->token = 70;
    KEEPS(NEM_RULE_TOKENS);
    checks(11, FENCED_FAIR, FENCED_1, 1020, 1985, 1)->token = 71;
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(worker_without_a_token_is_a_violation)
{
    transaction(1000);
    grants(FENCED_FAIR, FENCED_1, 2000)->token = 70;
    takes(11, FENCED_FAIR, FENCED_1, 998, 1002, 1985);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

/* ---- a mutex is granted one token; renewals draw blocks after it (H11) */

static void tenure_with(const char *id, double from, double to, uint64_t first)
{
    transaction(from);
    grants(FENCED, id, to + LEASE)->token = first;
    transaction(to);
    leaves(FENCED, id, true);
}

/* Drawn while the first owner holds the lock; or by the granting script, which returns
 * it, too. */
START_TEST(the_next_grant_is_behind_the_blocks)
{
    transaction(1000);
    entry(NEM_TOKEN, FENCED, "", 5000);
    grants(FENCED, MUTEX_1, 1100 + LEASE)->token = 5000;
    draws(FENCED, 1050, 5000, 5999);
    transaction(1100);
    leaves(FENCED, MUTEX_1, true);
    transaction(1200);
    entry(NEM_TOKEN, FENCED, "", 6000)->token = 5999;
    grants(FENCED, MUTEX_2, 1300 + LEASE)->token = 6000;
    KEEPS(NEM_RULE_TOKENS);
    ck_assert_uint_eq(forged.last_token[FENCED], 6000);
    draws(FENCED, 1250, 6000, 6500);
    transaction(1300);
    leaves(FENCED, MUTEX_2, true);
    transaction(1400);
    grants(FENCED, "p3:1:1:M300", 1500 + LEASE)->token = 6500;
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

static void told(double at, uint64_t token)
{
    takes(11, FENCED, MUTEX_1, at - 1, at, 1985)->token = token;
}

START_TEST(a_section_has_that_of_the_grant)
{
    tenure_with(MUTEX_1, 1000, 1200, 5000);
    told(1010, 5000);
    KEEPS(NEM_RULE_TOKENS);
    told(1030, 5001);
    told(1040, 4999);
    BREAKS(NEM_RULE_TOKENS, 2);
}
END_TEST

START_TEST(section_may_have_a_token_drawn_meanwhile)
{
    tenure_with(MUTEX_1, 1000, 1200, 5000);
    draws(FENCED, 1100, 6999, 7400);
    told(1110, 7000);
    told(1120, 7400);
    KEEPS(NEM_RULE_TOKENS);
    told(1130, 7401);
    told(1140, 6999);
    BREAKS(NEM_RULE_TOKENS, 2);
}
END_TEST

/* The counter goes on by more than a block when the lock was unused. */
START_TEST(of_which_there_are_a_thousand_at_most)
{
    tenure_with(MUTEX_1, 1000, 1200, 5000);
    draws(FENCED, 1100, 5000, 8999);
    told(1110, 8000);
    KEEPS(NEM_RULE_TOKENS);
    told(1120, 7999);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(a_fair_lock_has_none_of_them)
{
    transaction(1000);
    grants(FENCED_FAIR, FENCED_1, 2000)->token = 5000;
    draws(FENCED_FAIR, 1005, 5000, 5999);
    takes(11, FENCED_FAIR, FENCED_1, 1009, 1010, 1985)->token = 5001;
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(token_drawn_later_is_a_violation)
{
    tenure_with(MUTEX_1, 1000, 1200, 5000);
    draws(FENCED, 1300, 6999, 7999);
    told(1110, 7000);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

static void add_tokens(Suite *suite)
{
    TCase *t = forged_group(suite, "tokens");
    tcase_add_test(t, tokens_grow);
    tcase_add_test(t, tokens_that_do_not_grow_are_a_violation);
    tcase_add_test(t, tokens_grow_over_rounds);
    tcase_add_test(t, grant_without_a_token_is_a_violation);
    tcase_add_test(t, lost_data_alone_excuses_no_token);
    tcase_add_test(t, a_clock_that_goes_back_alone_excuses_no_token);
    tcase_add_test(t, a_clock_that_goes_back_after_a_loss_excuses_as_much);
    tcase_add_test(t, clock_step_after_a_loss_excuses_no_more_than_its_size);
    tcase_add_test(t, a_clock_that_went_back_before_the_loss_excuses_none);
    tcase_add_test(t, the_second_grant_after_a_loss_is_excused_by_nothing);
    tcase_add_test(t, each_round_begins_without_data);
    tcase_add_test(t, a_repeated_token_is_excused_by_nothing);
    tcase_add_test(t, readers_of_one_reading_share_a_token);
    tcase_add_test(t, readers_let_in_together_share_one_the_next_reading_has_another);
    tcase_add_test(t, a_reading_that_follows_another_at_once_has_another_token);
    tcase_add_test(t, downgrade_shares_its_token);
    tcase_add_test(t, downgrade_with_another_token_is_a_violation);
    tcase_add_loop_test(t, a_downgrade_may_have_any_that_was_drawn_since_its_grant, 0, 4);
    tcase_add_test(t, the_next_grant_is_behind_all_that_was_drawn);
    tcase_add_loop_test(t, drawn_token_belongs_to_its_section, 0, 3);
    tcase_add_test(t, token_beyond_the_drawn_ones_is_a_violation);
    tcase_add_test(t, token_from_before_the_grant_is_a_violation);
    tcase_add_test(t, worker_has_the_token_of_its_grant);
    tcase_add_test(t, worker_without_a_token_is_a_violation);
    tcase_add_test(t, the_next_grant_is_behind_the_blocks);
    tcase_add_test(t, a_section_has_that_of_the_grant);
    tcase_add_test(t, section_may_have_a_token_drawn_meanwhile);
    tcase_add_test(t, of_which_there_are_a_thousand_at_most);
    tcase_add_test(t, a_fair_lock_has_none_of_them);
    tcase_add_test(t, token_drawn_later_is_a_violation);
}

int main(void)
{
    Suite *suite = suite_create("judge: tokens");
    add_tokens(suite);
    return test_run_suite(suite);
}
