/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories: beliefs and results of workers, each
 * rule kept and broken. */
#include "forged.h"

#include "suite.h"

#include <stdio.h>
#include <string.h>

#define A "p1:1:1:m300"
#define A2 "p1:1:2:m300"
#define B "p2:1:1:m300"
#define C "p3:1:1:m300"
#define READ_A "p1:1:3:r300"
#define READ_B "p2:1:3:r300"

/* ---- a round without violations */

START_TEST(two_holds_one_after_the_other_are_right)
{
    holds(11, MUTEX, A, 1000, 1100);
    holds(21, MUTEX, B, 1200, 1300);
    judge();
    for (int rule = 0; rule < NEM_RULES; rule++)
        ck_assert_uint_eq(verdict.violations[rule], 0);
    ck_assert_uint_eq(verdict.operations, 4);
    ck_assert_uint_eq(verdict.successes, 2);
    ck_assert_uint_eq(verdict.losses, 0);
    ck_assert_uint_gt(verdict.judged[NEM_RULE_EXCLUSION], 0);
    ck_assert_uint_gt(verdict.judged[NEM_RULE_GRANT], 0);
    ck_assert_uint_gt(verdict.judged[NEM_RULE_BELIEF], 0);
    ck_assert_uint_gt(verdict.judged[NEM_RULE_OWNER], 0);
    ck_assert_uint_gt(verdict.judged[NEM_RULE_HOLDS], 0);
    ck_assert_uint_gt(verdict.judged[NEM_RULE_UNLOCK], 0);
    ck_assert_uint_gt(verdict.judged[NEM_RULE_TOLD], 0);
    ck_assert_uint_gt(verdict.judged[NEM_RULE_CODE], 0);
    ck_assert_uint_gt(verdict.judged[NEM_RULE_BOUND], 0);
}
END_TEST

START_TEST(nothing_was_judged_where_nothing_happened)
{
    forged.locks = 0;
    judge();
    for (int rule = 0; rule < NEM_RULES; rule++)
        ck_assert_uint_eq(verdict.judged[rule], 0);
}
END_TEST

START_TEST(records_of_one_instant_are_in_the_order_in_which_they_were_written)
{
    takes(11, MUTEX, A, 1000, 1000, 1985);
    unlocks(11, MUTEX, A, 1000, 1000, 1985, 0);
    judge();
    ck_assert_uint_eq(verdict.successes, 1);
    ck_assert_uint_gt(verdict.judged[NEM_RULE_UNLOCK], 0);
}
END_TEST

START_TEST(a_violation_is_one_line_with_rule_lock_threads_times_and_ids)
{
    holds(11, MUTEX, A, 1000, 1200);
    holds(22, MUTEX, B, 1100, 1300);
    judge();
    const char *line = strstr(forged_text(), "violation of exclusion: nemesis9: ");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(
        strstr(line, "1.1 (life 1) holds from 1002.000 to 1198.000 ms (" A));
    ck_assert_ptr_nonnull(
        strstr(line, "2.2 (life 1) holds from 1102.000 to 1298.000 ms (" B));
}
END_TEST

/* ---- exclusion */

START_TEST(overlapping_intervals_are_a_violation)
{
    holds(11, MUTEX, A, 1000, 1200);
    holds(21, MUTEX, B, 1199 - 5, 1300);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(overlapping_intervals_of_two_locks_are_right)
{
    holds(11, MUTEX, A, 1000, 1200);
    holds(21, FAIR, B, 1100, 1300);
    holds(22, MUTEX, "p2:2:1:m300", 1300, 1400);
    KEEPS(NEM_RULE_EXCLUSION);
}
END_TEST

START_TEST(a_lost_hold_is_validated_until_its_last_look)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    checks(11, MUTEX, A, 1500, 1985, 1);
    checks(11, MUTEX, A, 2100, 1985, 0);
    holds(21, MUTEX, B, 1510, 1600);
    KEEPS(NEM_RULE_EXCLUSION);
    checks(11, MUTEX, A, 1560, 1985, 1);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_look_behind_D_validates_nothing)
{
    takes(11, MUTEX, A, 1000, 1002, 1500);
    checks(11, MUTEX, A, 1501, 1500, 1);
    holds(21, MUTEX, B, 1480, 1600);
    KEEPS(NEM_RULE_EXCLUSION);
}
END_TEST

START_TEST(a_reader_and_a_writer_overlap_two_readers_do_not)
{
    holds(11, RWLOCK, READ_A, 1000, 1200);
    holds(21, RWLOCK, READ_B, 1100, 1300);
    holds(31, RWLOCK, "p3:1:1:w300", 1310, 1400);
    KEEPS(NEM_RULE_EXCLUSION);
    holds(41, RWLOCK, "p4:1:1:w300", 1250, 1290);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

static void downgrade_at(double from, double to)
{
    takes(11, RWLOCK, "p1:1:1:w300", 1000, 1002, 1985);
    invoke(11, from, NEM_DOWNGRADE, RWLOCK);
    struct nem_op *op = returns(11, to, NEM_DOWNGRADE, RWLOCK, 0);
    op->levels = 1;
    op->reading = true;
    unlocks(11, RWLOCK, "p1:1:1:w300", 1500, 1502, 1985, 0);
}

START_TEST(a_writer_reads_from_its_downgrade_on)
{
    downgrade_at(1100, 1110);
    holds(21, RWLOCK, READ_B, 1105, 1200);
    KEEPS(NEM_RULE_EXCLUSION);
}
END_TEST

START_TEST(a_writer_writes_until_its_downgrade)
{
    downgrade_at(1100, 1110);
    holds(21, RWLOCK, READ_B, 1090, 1200);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_level_more_is_the_same_hold)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    takes(11, MUTEX, A, 1010, 1011, 1985)->levels = 2;
    unlocks(11, MUTEX, A, 1020, 1021, 1985, 0)->levels = 1;
    unlocks(11, MUTEX, A, 1100, 1101, 1985, 0);
    holds(21, MUTEX, B, 1105, 1200);
    KEEPS(NEM_RULE_EXCLUSION);
    ck_assert_uint_eq(verdict.successes, 2);
    holds(31, MUTEX, C, 1050, 1060);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* ---- unlock */

START_TEST(unlock_gives_0_only_before_D)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    unlocks(11, MUTEX, A, 1984, 1986, 1985, 0);
    KEEPS(NEM_RULE_UNLOCK);
    takes(21, MUTEX, B, 2000, 2002, 2985);
    unlocks(21, MUTEX, B, 2988, 2989, 2985, 0);
    BREAKS(NEM_RULE_UNLOCK, 1);
}
END_TEST

static void broken_hold(double other_at)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    unlocks(11, MUTEX, A, 1500, 1502, 1985, 0);
    transaction(1001);
    grants(MUTEX, A, 2001);
    transaction(other_at);
    leaves(MUTEX, A, false);
    grants(MUTEX, B, other_at + LEASE);
}

START_TEST(unlock_gives_0_if_nobody_had_it_meanwhile)
{
    broken_hold(1501);
    KEEPS(NEM_RULE_UNLOCK);
}
END_TEST

START_TEST(unlock_does_not_give_0_if_somebody_had_it_meanwhile)
{
    broken_hold(1498);
    BREAKS(NEM_RULE_UNLOCK, 1);
    loses(NEM_DELETE_LOCK, MUTEX, "nemesis9", 1497);
    EXCUSES(NEM_RULE_UNLOCK, 1);
}
END_TEST

START_TEST(what_may_have_come_after_the_unlock_broke_nothing)
{
    broken_hold(1499.5);
    KEEPS(NEM_RULE_UNLOCK);
}
END_TEST

START_TEST(a_hold_does_not_break_itself)
{
    broken_hold(1501);
    transaction(1200);
    grants(MUTEX, A, 2200);
    KEEPS(NEM_RULE_UNLOCK);
}
END_TEST

START_TEST(readers_break_a_writer_not_readers)
{
    takes(11, RWLOCK, READ_A, 1000, 1002, 1985);
    unlocks(11, RWLOCK, READ_A, 1500, 1502, 1985, 0);
    transaction(1300);
    reads(RWLOCK, READ_B, 2300, false);
    KEEPS(NEM_RULE_UNLOCK);
    takes(31, RWLOCK, "p3:1:1:w300", 1200, 1202, 2185);
    unlocks(31, RWLOCK, "p3:1:1:w300", 1400, 1402, 2185, 0);
    BREAKS(NEM_RULE_UNLOCK, 1);
}
END_TEST

START_TEST(a_reader_is_broken_by_a_writer)
{
    takes(11, RWLOCK, READ_A, 1000, 1002, 1985);
    unlocks(11, RWLOCK, READ_A, 1500, 1502, 1985, 0);
    transaction(1300);
    grants(RWLOCK, "p3:1:1:w300", 2300);
    BREAKS(NEM_RULE_UNLOCK, 1);
}
END_TEST

START_TEST(readers_that_join_a_downgrade_break_nothing)
{
    downgrade_at(1100, 1110);
    transaction(1105);
    reads(RWLOCK, READ_B, 2105, false);
    KEEPS(NEM_RULE_UNLOCK);
    transaction(1050);
    reads(RWLOCK, "p3:1:3:r300", 2050, false);
    BREAKS(NEM_RULE_UNLOCK, 1);
}
END_TEST

START_TEST(ESTALE_after_D_is_true)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    unlocks(11, MUTEX, A, 1980, 1986, 1985, ESTALE);
    KEEPS(NEM_RULE_UNLOCK);
}
END_TEST

START_TEST(ESTALE_before_D_is_true_only_when_the_server_lost_it)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    unlocks(11, MUTEX, A, 1500, 1502, 1985, ESTALE);
    transaction(1001);
    grants(MUTEX, A, 2001);
    transaction(1502); /* by this very request */
    leaves(MUTEX, A, true);
    BREAKS(NEM_RULE_UNLOCK, 1);
    fault(NEM_EVICT, NEM_ALL, NEM_ALL, 1400, 1450); /* of no lock */
    BREAKS(NEM_RULE_UNLOCK, 1);
    loses(NEM_EVICT, MUTEX, "nemesis9", 1501);
    EXCUSES(NEM_RULE_UNLOCK, 1);
}
END_TEST

START_TEST(ESTALE_before_D_is_true_when_it_had_left)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    unlocks(11, MUTEX, A, 1500, 1502, 1985, ESTALE);
    transaction(1001);
    grants(MUTEX, A, 2001);
    transaction(1450);
    leaves(MUTEX, A, true);
    KEEPS(NEM_RULE_UNLOCK);
}
END_TEST

/* ---- told */

START_TEST(check_that_believes_after_the_lease_is_a_violation)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    checks(11, MUTEX, A, 1986, 1985, 1);
    KEEPS(NEM_RULE_TOLD);
    checks(11, MUTEX, A, 1988, 1985, 1);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

static void lost_hold(void)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    checks(11, MUTEX, A, 1990, 1985, 0);
}

START_TEST(a_loss_is_final)
{
    lost_hold();
    event_lost(11, MUTEX, 1986);
    KEEPS(NEM_RULE_TOLD);
    checks(11, MUTEX, A, 2000, 2600, 1);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

START_TEST(unlock_of_what_was_seen_lost_gives_ESTALE)
{
    lost_hold();
    event_lost(11, MUTEX, 1986);
    unlocks(11, MUTEX, A, 2000, 2001, 1985, ESTALE);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(unlock_of_what_was_seen_lost_does_not_give_0)
{
    lost_hold();
    event_lost(11, MUTEX, 1986);
    unlocks(11, MUTEX, A, 2000, 2001, 1985, 0);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

START_TEST(loss_without_an_event_is_a_violation)
{
    lost_hold();
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

START_TEST(a_loss_that_only_unlock_tells_has_its_event_too)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    unlocks(11, MUTEX, A, 1990, 1991, 1985, ESTALE);
    BREAKS(NEM_RULE_TOLD, 1);
    event_lost(11, MUTEX, 1990);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(an_unlock_that_finds_the_loss_before_D_is_the_news)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    unlocks(11, MUTEX, A, 1500, 1501, 1985, ESTALE);
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_TOLD], 0);
    ck_assert_uint_eq(verdict.losses, 1);
}
END_TEST

START_TEST(an_event_may_come_as_late_as_D_and_slack)
{
    lost_hold();
    event_lost(11, MUTEX, 1985 + SLACK);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(an_event_that_comes_later_is_too_late)
{
    lost_hold();
    event_lost(11, MUTEX, 1986 + SLACK);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

START_TEST(an_event_of_another_lock_tells_nothing)
{
    lost_hold();
    event_lost(11, FAIR, 1986);
    event_lost(21, MUTEX, 1986);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

START_TEST(no_event_is_delivered_while_the_process_is_stopped)
{
    lost_hold();
    event_lost(11, MUTEX, 1985 + 15 + 385 + SLACK);
    fault(NEM_STOP_LONG, 1, NEM_ALL, 1500, 2000);
    fault(NEM_KINDS, 1, NEM_ALL, 2030, 2415); /* not a planned kind */
    KEEPS(NEM_RULE_TOLD);
    last_fault()->end -= 1000000;
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

START_TEST(a_stop_that_was_over_before_D_is_no_reason_to_tell_later)
{
    lost_hold();
    event_lost(11, MUTEX, 1986 + SLACK);
    fault(NEM_STOP_LONG, 1, NEM_ALL, 1100, 1984);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

START_TEST(a_thread_that_looks_late_is_no_reason_to_tell_later)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    checks(11, MUTEX, A, 2500, 1985, 0);
    event_lost(11, MUTEX, 2501);
    BREAKS(NEM_RULE_TOLD, 1);
    event_lost(11, MUTEX, 1985 + SLACK);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(killed_process_needs_no_event)
{
    lost_hold();
    fault(NEM_KILL, 1, NEM_ALL, 2000, 2100);
    restarts(1, 2100);
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_TOLD], 0);
    ck_assert_uint_eq(verdict.losses, 1);
}
END_TEST

START_TEST(a_downgrade_that_finds_the_loss_has_its_event)
{
    takes(11, RWLOCK, "p1:1:1:w300", 1000, 1002, 1985);
    invoke(11, 1500, NEM_DOWNGRADE, RWLOCK);
    returns(11, 1501, NEM_DOWNGRADE, RWLOCK, ESTALE)->levels = 1;
    BREAKS(NEM_RULE_TOLD, 1);
    event_lost(11, RWLOCK, 1501)->reading = true;
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(an_event_of_the_other_mode_tells_nothing)
{
    lost_hold();
    event_lost(11, MUTEX, 1986)->reading = true;
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

START_TEST(each_of_two_losses_has_its_event)
{
    takes(11, RWLOCK, READ_A, 1000, 1002, 1985);
    checks(11, RWLOCK, READ_A, 1990, 1985, 0);
    takes(12, RWLOCK, READ_A, 1100, 1102, 1985);
    checks(12, RWLOCK, READ_A, 2000, 1985, 0);
    event_lost(11, RWLOCK, 1990)->reading = true;
    BREAKS(NEM_RULE_TOLD, 1);
    event_lost(12, RWLOCK, 1991)->reading = true;
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

static void add_holds(Suite *suite)
{
    TCase *t = forged_group(suite, "all");
    tcase_add_test(t, two_holds_one_after_the_other_are_right);
    tcase_add_test(t, nothing_was_judged_where_nothing_happened);
    tcase_add_test(t, records_of_one_instant_are_in_the_order_in_which_they_were_written);
    tcase_add_test(t, a_violation_is_one_line_with_rule_lock_threads_times_and_ids);
    t = forged_group(suite, "exclusion");
    tcase_add_test(t, overlapping_intervals_are_a_violation);
    tcase_add_test(t, overlapping_intervals_of_two_locks_are_right);
    tcase_add_test(t, a_lost_hold_is_validated_until_its_last_look);
    tcase_add_test(t, a_look_behind_D_validates_nothing);
    tcase_add_test(t, a_reader_and_a_writer_overlap_two_readers_do_not);
    tcase_add_test(t, a_writer_reads_from_its_downgrade_on);
    tcase_add_test(t, a_writer_writes_until_its_downgrade);
    tcase_add_test(t, a_level_more_is_the_same_hold);
    t = forged_group(suite, "unlock");
    tcase_add_test(t, unlock_gives_0_only_before_D);
    tcase_add_test(t, unlock_gives_0_if_nobody_had_it_meanwhile);
    tcase_add_test(t, unlock_does_not_give_0_if_somebody_had_it_meanwhile);
    tcase_add_test(t, what_may_have_come_after_the_unlock_broke_nothing);
    tcase_add_test(t, a_hold_does_not_break_itself);
    tcase_add_test(t, a_reader_is_broken_by_a_writer);
    tcase_add_test(t, readers_that_join_a_downgrade_break_nothing);
    tcase_add_test(t, readers_break_a_writer_not_readers);
    tcase_add_test(t, ESTALE_after_D_is_true);
    tcase_add_test(t, ESTALE_before_D_is_true_only_when_the_server_lost_it);
    tcase_add_test(t, ESTALE_before_D_is_true_when_it_had_left);
}

static void add_told(Suite *suite)
{
    TCase *t = forged_group(suite, "told");
    tcase_add_test(t, check_that_believes_after_the_lease_is_a_violation);
    tcase_add_test(t, a_loss_is_final);
    tcase_add_test(t, unlock_of_what_was_seen_lost_gives_ESTALE);
    tcase_add_test(t, unlock_of_what_was_seen_lost_does_not_give_0);
    tcase_add_test(t, loss_without_an_event_is_a_violation);
    tcase_add_test(t, a_loss_that_only_unlock_tells_has_its_event_too);
    tcase_add_test(t, an_unlock_that_finds_the_loss_before_D_is_the_news);
    tcase_add_test(t, an_event_may_come_as_late_as_D_and_slack);
    tcase_add_test(t, an_event_that_comes_later_is_too_late);
    tcase_add_test(t, an_event_of_another_lock_tells_nothing);
    tcase_add_test(t, no_event_is_delivered_while_the_process_is_stopped);
    tcase_add_test(t, a_stop_that_was_over_before_D_is_no_reason_to_tell_later);
    tcase_add_test(t, a_thread_that_looks_late_is_no_reason_to_tell_later);
    tcase_add_test(t, killed_process_needs_no_event);
    tcase_add_test(t, a_downgrade_that_finds_the_loss_has_its_event);
    tcase_add_test(t, an_event_of_the_other_mode_tells_nothing);
    tcase_add_test(t, each_of_two_losses_has_its_event);
}

int main(void)
{
    Suite *suite = suite_create("judge");
    add_holds(suite);
    add_told(suite);
    return test_run_suite(suite);
}
