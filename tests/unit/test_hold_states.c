/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* The states of a hold: which event is possible in which state, and where it leads. The
 * table here is the one of doc/design/client.md; src/state/hold.c must agree with it. */
#include "handscene.h"

enum { NONE = -1, STATES = RLK_HOLD_LOST + 1, EVENTS = RLK_ON_LOSS + 1 };
enum {
    R = RLK_HOLD_REQUESTED,
    H = RLK_HOLD_HELD,
    K = RLK_HOLD_RETAINED,
    C = RLK_HOLD_CANCELLING,
    G = RLK_HOLD_RELEASING,
    L = RLK_HOLD_LOST,
    _ = NONE
};

static const int leads_to[EVENTS][STATES] = {
    /*                   R  H  K  C  G  L */
    [RLK_ON_ENTER] = { H, _, _, _, _, _ },  [RLK_ON_CANCEL] = { C, _, _, _, _, _ },
    [RLK_ON_YOURS] = { _, _, _, R, _, _ },  [RLK_ON_GIVE_UP] = { C, _, _, C, _, _ },
    [RLK_ON_RETAIN] = { _, K, _, _, _, _ }, [RLK_ON_TAKE] = { _, _, H, _, _, _ },
    [RLK_ON_FOUND] = { _, _, H, _, _, _ },  [RLK_ON_RELEASE] = { _, G, G, _, _, _ },
    [RLK_ON_LOSS] = { _, L, L, _, _, _ },
};

/* Puts the hold of the scene into a state without an event. */
static void is_in(int state)
{
    hold->state = (uint8_t)state;
    reg.holds_now = state == H;
}

static void as_before(void)
{
    is_in(H);
}

/* rule: T6, T7, T8 */
START_TEST(an_event_is_known_only_in_the_states_of_the_table)
{
    enter("", 0);
    for (int state = 0; state < STATES; state++) {
        is_in(state);
        ck_assert_int_eq(rlk_hold_can_change(hold, (enum rlk_hold_event)_i),
                         leads_to[_i][state] != NONE);
    }
    as_before();
}
END_TEST

START_TEST(an_event_leads_to_the_state_of_the_table_and_counts_who_is_inside)
{
    enter("", 0);
    for (int state = 0; state < STATES; state++) {
        int to = leads_to[_i][state];
        if (to == NONE)
            continue;
        is_in(state);
        rlk_hold_change_locked(hold, (enum rlk_hold_event)_i);
        ck_assert_int_eq(hold->state, to);
        ck_assert_uint_eq(reg.holds_now, to == H);
    }
    as_before();
}
END_TEST

START_TEST(an_event_that_ends_a_hold_leaves_it_to_its_caller_first)
{
    enter("", 0);
    int64_t budget_from = hold->budget.from;
    ck_assert_int_ne(budget_from, 0);
    for (int state = H; state <= K; state++) {
        is_in(state);
        rlk_hold_change_locked(hold, _i == 0 ? RLK_ON_RELEASE : RLK_ON_LOSS);
        ck_assert(!rlk_hold_is_live(hold) && !rlk_hold_is_background(hold));
        hold->budget.from = budget_from;
    }
    as_before();
}
END_TEST

START_TEST(only_held_and_retained_are_live)
{
    enter("", 0);
    for (int state = 0; state < STATES; state++) {
        is_in(state);
        ck_assert_int_eq(rlk_hold_is_live(hold), state == H || state == K);
        ck_assert_int_eq(rlk_hold_is_retained(hold), state == K);
    }
    as_before();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hold_states");
    TCase *tc = tcase_create("table");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, an_event_is_known_only_in_the_states_of_the_table, 0, EVENTS);
    tcase_add_loop_test(
        tc, an_event_leads_to_the_state_of_the_table_and_counts_who_is_inside, 0, EVENTS);
    tcase_add_loop_test(tc, an_event_that_ends_a_hold_leaves_it_to_its_caller_first, 0,
                        2);
    tcase_add_test(tc, only_held_and_retained_are_live);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
