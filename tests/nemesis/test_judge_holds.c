/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories: a hold that no thread has does not
 * stay at the server. */
#include "forged.h"

#include "suite.h"

#include <stdio.h>

#define A "p1:1:1:m300"
#define READ_A "p1:1:3:r300"
#define READ_A2 "p1:1:4:r300"

/* The driver's own values, where their order matters. */
enum {
    DRIVER_PRESENCE = 600, /* also the lease of a grant */
    DRIVER_TIMEOUT = 500,
    DRIVER_SLACK = 400
};
static void as_the_driver_does(void)
{
    forged.presence_ms = DRIVER_PRESENCE;
    forged.commandtimeout_ms = DRIVER_TIMEOUT;
    forged.slack_ms = DRIVER_SLACK;
}

/* Granted to a call that gave up; another hold makes the client known. */
static void orphaned(double until, double lease_end)
{
    invoke(11, 3000, NEM_TRYLOCK, MUTEX);
    returns(11, 3102, NEM_TRYLOCK, MUTEX, EBUSY);
    transaction(3100);
    grants(MUTEX, A, lease_end);
    transaction(until);
    leaves(MUTEX, A, true);
}

START_TEST(what_nobody_holds_is_given_back_at_once)
{
    orphaned(3100 + 2 * EXACT + SLACK, 9000);
    KEEPS(NEM_RULE_HOLDS);
}
END_TEST

START_TEST(what_nobody_holds_does_not_stay)
{
    orphaned(3101 + 2 * EXACT + SLACK, 9000);
    BREAKS(NEM_RULE_HOLDS, 1);
}
END_TEST

START_TEST(a_lease_that_is_over_so_soon_tells_nothing)
{
    orphaned(5000, 3100 + SLACK);
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_HOLDS], 0);
    ck_assert_uint_eq(verdict.judged[NEM_RULE_HOLDS], 0);
}
END_TEST

START_TEST(what_nobody_holds_does_not_stay_for_the_lease_of_a_grant)
{
    as_the_driver_does();
    orphaned(3100 + DRIVER_PRESENCE, 3100 + DRIVER_PRESENCE);
    BREAKS(NEM_RULE_HOLDS, 1);
}
END_TEST

/* How long a fault of 300 ms that begins with the unlock allows it to stay. */
enum { ALLOWED = SLACK + 2 * TIMEOUT + PRESENCE + 300 + ROOM };

START_TEST(a_fault_of_its_link_gives_it_as_much_more_time)
{
    orphaned(3100 + 2 * EXACT + ALLOWED, 9000);
    fault(NEM_CUT, 2, NEM_ALL, 3101, 3401);
    fault(NEM_CUT, 1, NEM_ALL, 2400, 2900 - ROOM);
    BREAKS(NEM_RULE_HOLDS, 1);
    last_fault()->begin = at_ms(3101);
    last_fault()->end = at_ms(3401);
    KEEPS(NEM_RULE_HOLDS);
}
END_TEST

START_TEST(a_fault_just_before_counts_too)
{
    orphaned(3100 + 2 * EXACT + SLACK + 2 * TIMEOUT + PRESENCE, 9000);
    fault(NEM_CUT, 1, NEM_ALL, 2400, 3100 + EXACT - TIMEOUT - ROOM - 1);
    BREAKS(NEM_RULE_HOLDS, 1);
    fault(NEM_CUT, 1, NEM_ALL, 2400, 3100 + EXACT - TIMEOUT - ROOM);
    KEEPS(NEM_RULE_HOLDS);
}
END_TEST

START_TEST(a_stepped_clock_excuses_and_does_not_hide_it)
{
    orphaned(5000, 9000);
    fault(NEM_CLOCK_BACK, NEM_ALL, NEM_ALL, 2990, 3000); /* it had its effect before the
                                                            grant */
    BREAKS(NEM_RULE_HOLDS, 1);
    fault(NEM_CLOCK_BACK, NEM_ALL, NEM_ALL, 3500, 3510);
    EXCUSES(NEM_RULE_HOLDS, 1);
}
END_TEST

START_TEST(a_fault_of_its_link_gives_it_no_more)
{
    orphaned(3101 + 2 * EXACT + ALLOWED, 9000);
    fault(NEM_CUT, 1, NEM_ALL, 3101, 3401);
    BREAKS(NEM_RULE_HOLDS, 1);
}
END_TEST

static void unlocked_and_left_at(double at)
{
    takes(11, MUTEX, A, 3000, 3002, 3985);
    unlocks(11, MUTEX, A, 3008, 3010, 3985, 0);
    transaction(3001);
    grants(MUTEX, A, 4001);
    transaction(at);
    leaves(MUTEX, A, true);
}

START_TEST(what_was_unlocked_is_given_back)
{
    as_the_driver_does();
    unlocked_and_left_at(3010 + DRIVER_SLACK + EXACT);
    KEEPS(NEM_RULE_HOLDS);
}
END_TEST

START_TEST(what_was_unlocked_does_not_stay_until_its_lease_ends)
{
    as_the_driver_does();
    unlocked_and_left_at(4001);
    BREAKS(NEM_RULE_HOLDS, 1);
}
END_TEST

START_TEST(unlocked_hold_that_was_never_released_is_reported)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    unlocks(11, MUTEX, A, 1500, 1502, 1985, 0);
    transaction(1001);
    grants(MUTEX, A, 9000);
    BREAKS(NEM_RULE_HOLDS, 1);
}
END_TEST

/* A reader that shares a hold gets its own by an extend. */
static void read_on_alone(double left)
{
    takes(11, RWLOCK, READ_A, 1000, 1002, 1985);
    invoke(11, 1010, NEM_EXTEND, RWLOCK)->lease_ms = 2 * LEASE;
    struct nem_op *op = returns(11, 1012, NEM_EXTEND, RWLOCK, 0);
    snprintf(op->id, sizeof(op->id), "%s", READ_A2);
    op->end = at_ms(2985);
    op->levels = 1;
    unlocks(11, RWLOCK, READ_A2, 2498, 2500, 2985, 0);
    transaction(1011);
    reads(RWLOCK, READ_A2, 3011, true);
    transaction(left);
    leaves(RWLOCK, READ_A2, true);
}

START_TEST(an_id_that_an_extend_gave_is_somebodys)
{
    read_on_alone(2500 + EXACT + SLACK);
    KEEPS(NEM_RULE_HOLDS);
}
END_TEST

START_TEST(an_id_that_an_extend_gave_is_given_back_too)
{
    read_on_alone(2501 + EXACT + SLACK);
    BREAKS(NEM_RULE_HOLDS, 1);
}
END_TEST

START_TEST(what_somebody_holds_may_stay)
{
    takes(11, MUTEX, A, 1000, 1002, 8985);
    transaction(1001);
    grants(MUTEX, A, 9000);
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_HOLDS], 0);
}
END_TEST

START_TEST(what_a_dead_process_held_ends_with_its_lease)
{
    orphaned(6000, 9000);
    fault(NEM_KILL, 1, NEM_ALL, 3150, 3200);
    restarts(1, 3200);
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_HOLDS], 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("judge: holds");
    TCase *t = forged_group(suite, "holds");
    tcase_add_test(t, what_nobody_holds_is_given_back_at_once);
    tcase_add_test(t, what_nobody_holds_does_not_stay);
    tcase_add_test(t, a_lease_that_is_over_so_soon_tells_nothing);
    tcase_add_test(t, what_nobody_holds_does_not_stay_for_the_lease_of_a_grant);
    tcase_add_test(t, a_fault_of_its_link_gives_it_as_much_more_time);
    tcase_add_test(t, a_fault_of_its_link_gives_it_no_more);
    tcase_add_test(t, a_fault_just_before_counts_too);
    tcase_add_test(t, a_stepped_clock_excuses_and_does_not_hide_it);
    tcase_add_test(t, what_was_unlocked_is_given_back);
    tcase_add_test(t, what_was_unlocked_does_not_stay_until_its_lease_ends);
    tcase_add_test(t, unlocked_hold_that_was_never_released_is_reported);
    tcase_add_test(t, an_id_that_an_extend_gave_is_somebodys);
    tcase_add_test(t, an_id_that_an_extend_gave_is_given_back_too);
    tcase_add_test(t, what_somebody_holds_may_stay);
    tcase_add_test(t, what_a_dead_process_held_ends_with_its_lease);
    return test_run_suite(suite);
}
