/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories: a success is reported before D, and an
 * event of a loss reports a real loss, once. */
#include "forged.h"

#include "suite.h"

#include <rlock.h>

#define A "p1:1:1:m300"
#define A2 "p1:2:1:m300"
#define READ_A "p1:1:3:r300"

/* ---- success */

START_TEST(a_success_may_be_as_late_as_D_and_slack)
{
    takes(11, MUTEX, A, 1000, 1985 + SLACK, 1985);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(a_success_behind_D_is_none)
{
    takes(11, MUTEX, A, 1000, 1986 + SLACK, 1985);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

START_TEST(stopped_process_may_report_a_success_late)
{
    takes(11, MUTEX, A, 1000, 2700, 1985);
    fault(NEM_STOP_LONG, 1, NEM_ALL, 1500, 2690);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

/* The library cannot have read its clock before the stop. */
START_TEST(what_was_granted_to_a_process_that_was_stopped_is_looked_at_behind_the_stop)
{
    takes(11, MUTEX, A, 1000, 2700, 1985);
    transaction(1600);
    grants(MUTEX, A, 2900);
    fault(NEM_STOP_LONG, 1, NEM_ALL, 1500, 2690);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

START_TEST(success_reported_after_the_lease_is_a_violation)
{
    takes(11, MUTEX, A, 1986 + SLACK, 1987 + SLACK, 1985);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

/* ---- events */

static void taken(void)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    transaction(1001);
    grants(MUTEX, A, 2000);
}

START_TEST(an_event_of_a_loss_is_true)
{
    taken();
    checks(11, MUTEX, A, 1990, 1985, 0);
    event_lost(11, MUTEX, 1986);
    KEEPS(NEM_RULE_LOSS);
    ck_assert_uint_eq(verdict.judged[NEM_RULE_LOSS], 2); /* the thread's look, and the
                                                            event */
}
END_TEST

START_TEST(an_event_of_what_nobody_had_lies)
{
    event_lost(11, MUTEX, 1986);
    BREAKS(NEM_RULE_LOSS, 1);
}
END_TEST

START_TEST(an_event_of_what_is_held_lies)
{
    taken();
    event_lost(11, MUTEX, 1500);
    checks(11, MUTEX, A, 1600, 1985, 1);
    BREAKS(NEM_RULE_LOSS, 1);
}
END_TEST

START_TEST(an_event_of_what_was_renewed_since_lies)
{
    taken();
    event_lost(11, MUTEX, 1986);
    checks(11, MUTEX, A, 1990, 2485, 1);
    BREAKS(NEM_RULE_LOSS, 1);
}
END_TEST

START_TEST(an_event_of_what_was_unlocked_lies)
{
    taken();
    unlocks(11, MUTEX, A, 1200, 1201, 1985, 0);
    event_lost(11, MUTEX, 1986);
    BREAKS(NEM_RULE_LOSS, 1);
}
END_TEST

START_TEST(an_event_before_the_call_lies)
{
    event_lost(11, MUTEX, 999);
    taken();
    checks(11, MUTEX, A, 1990, 1985, 0);
    BREAKS(NEM_RULE_LOSS, 1);
}
END_TEST

START_TEST(an_event_of_another_threads_hold_lies)
{
    taken();
    checks(11, MUTEX, A, 1990, 1985, 0);
    event_lost(12, MUTEX, 1986);
    BREAKS(NEM_RULE_LOSS, 1);
    ck_assert_uint_eq(verdict.violations[NEM_RULE_TOLD], 1);
}
END_TEST

START_TEST(an_event_of_another_mode_token_or_lock_lies)
{
    takes(11, FENCED, A, 1000, 1002, 1985)->token = 7;
    checks(11, FENCED, A, 1990, 1985, 0);
    event_lost(11, FENCED, 1986)->reading = true;
    BREAKS(NEM_RULE_LOSS, 1);
    event_lost(11, FENCED, 1986)->token = 8;
    BREAKS(NEM_RULE_LOSS, 2);
    event_lost(11, MUTEX, 1986);
    BREAKS(NEM_RULE_LOSS, 3);
    event_lost(11, FENCED, 1986)->token = 7;
    BREAKS(NEM_RULE_LOSS, 3);
    ck_assert_uint_eq(verdict.violations[NEM_RULE_TOLD], 0);
}
END_TEST

START_TEST(an_event_is_reported_once)
{
    taken();
    checks(11, MUTEX, A, 1990, 1985, 0);
    event_lost(11, MUTEX, 1986);
    KEEPS(NEM_RULE_LOSS);
    event_lost(11, MUTEX, 1987);
    BREAKS(NEM_RULE_LOSS, 1);
}
END_TEST

START_TEST(other_events_are_no_losses)
{
    taken();
    event_lost(11, MUTEX, 1500)->code = RLOCK_EVENT_AT_RISK;
    event_lost(11, MUTEX, 1600)->code = RLOCK_EVENT_SAFE_AGAIN;
    BREAKS(NEM_RULE_LOSS, 0);
}
END_TEST

START_TEST(thread_killed_before_its_next_check_had_a_true_success)
{
    taken();
    checks(11, MUTEX, A, 1400, 2385, 1);
    event_lost(11, MUTEX, 1500); /* as the server said */
    fault(NEM_KILL, 1, NEM_ALL, 1550, 1600);
    restarts(1, 1600);
    KEEPS(NEM_RULE_LOSS);
}
END_TEST

START_TEST(thread_killed_before_its_call_returned_had_a_true_success)
{
    invoke(11, 1000, NEM_LOCK, MUTEX);
    event_lost(11, MUTEX, 1990);
    fault(NEM_KILL, 1, NEM_ALL, 1995, 2050);
    restarts(1, 2050);
    KEEPS(NEM_RULE_LOSS);
    event_lost(12, MUTEX, 1990);
    BREAKS(NEM_RULE_LOSS, 1);
}
END_TEST

START_TEST(each_thread_that_reads_is_reported)
{
    takes(11, RWLOCK, READ_A, 1000, 1002, 1985);
    takes(12, RWLOCK, READ_A, 1000, 1003, 1985);
    checks(11, RWLOCK, READ_A, 1990, 1985, 0);
    checks(12, RWLOCK, READ_A, 1990, 1985, 0);
    event_lost(11, RWLOCK, 1986)->reading = true;
    event_lost(12, RWLOCK, 1986)->reading = true;
    KEEPS(NEM_RULE_LOSS);
    ck_assert_uint_eq(verdict.violations[NEM_RULE_TOLD], 0);
}
END_TEST

START_TEST(two_losses_of_one_thread_have_an_event_each)
{
    taken();
    unlocks(11, MUTEX, A, 1990, 1991, 1985, ESTALE);
    event_lost(11, MUTEX, 1986);
    takes(11, MUTEX, A2, 2000, 2002, 2985);
    unlocks(11, MUTEX, A2, 2990, 2991, 2985, ESTALE);
    event_lost(11, MUTEX, 2986);
    KEEPS(NEM_RULE_LOSS);
    ck_assert_uint_eq(verdict.violations[NEM_RULE_TOLD], 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("judge: told");
    TCase *t = forged_group(suite, "success");
    tcase_add_test(t, a_success_may_be_as_late_as_D_and_slack);
    tcase_add_test(t, a_success_behind_D_is_none);
    tcase_add_test(t, stopped_process_may_report_a_success_late);
    tcase_add_test(
        t, what_was_granted_to_a_process_that_was_stopped_is_looked_at_behind_the_stop);
    tcase_add_test(t, success_reported_after_the_lease_is_a_violation);
    t = forged_group(suite, "event");
    tcase_add_test(t, an_event_of_a_loss_is_true);
    tcase_add_test(t, an_event_of_what_nobody_had_lies);
    tcase_add_test(t, an_event_of_what_is_held_lies);
    tcase_add_test(t, an_event_of_what_was_renewed_since_lies);
    tcase_add_test(t, an_event_of_what_was_unlocked_lies);
    tcase_add_test(t, an_event_before_the_call_lies);
    tcase_add_test(t, an_event_of_another_threads_hold_lies);
    tcase_add_test(t, an_event_of_another_mode_token_or_lock_lies);
    tcase_add_test(t, an_event_is_reported_once);
    tcase_add_test(t, other_events_are_no_losses);
    tcase_add_test(t, thread_killed_before_its_next_check_had_a_true_success);
    tcase_add_test(t, thread_killed_before_its_call_returned_had_a_true_success);
    tcase_add_test(t, each_thread_that_reads_is_reported);
    tcase_add_test(t, two_losses_of_one_thread_have_an_event_each);
    return test_run_suite(suite);
}
