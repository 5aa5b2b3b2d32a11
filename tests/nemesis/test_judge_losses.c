/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories: whether a loss was justified, and
 * whether the hold stays lost. */
#include "forged.h"

#include "suite.h"

#include <stdio.h>

#define A "p1:1:1:m300"
#define READ_A "p1:1:3:r300"
#define READ_A2 "p1:1:4:r300"
#define WRITE_A "p1:1:3:w300"

/* The driver's own values, where their order matters. */
enum { DRIVER_PRESENCE = 600, DRIVER_TIMEOUT = 500, DRIVER_SLACK = 400 };
static void as_the_driver_does(void)
{
    forged.presence_ms = DRIVER_PRESENCE;
    forged.commandtimeout_ms = DRIVER_TIMEOUT;
    forged.slack_ms = DRIVER_SLACK;
}

static void taken(void)
{
    takes(11, MUTEX, A, 1000, 1002, 1985);
    transaction(1001);
    grants(MUTEX, A, 2001);
}

static void leaves_at(double at)
{
    transaction(at);
    leaves(MUTEX, A, true);
}

static void names(struct nem_op *op, const char *id, double end)
{
    snprintf(op->id, sizeof(op->id), "%s", id);
    op->end = at_ms(end);
}

static void extended(double from, double to, long lease_ms, const char *id, double end)
{
    invoke(11, from, NEM_EXTEND, MUTEX)->lease_ms = (uint32_t)lease_ms;
    struct nem_op *op = returns(11, to, NEM_EXTEND, MUTEX, 0);
    op->levels = 1;
    names(op, id, end);
}

static void doesnt_break(enum nem_rule rule)
{
    judge();
    ck_assert_uint_eq(verdict.violations[rule], 0);
    ck_assert_uint_eq(verdict.judged[rule], 0);
}

/* ---- loss */

START_TEST(a_look_says_lost_only_at_D)
{
    taken();
    checks(11, MUTEX, A, 1983, 1985, 0);
    KEEPS(NEM_RULE_LOSS);
}
END_TEST

START_TEST(a_look_that_says_lost_before_D_lies)
{
    taken();
    checks(11, MUTEX, A, 1982, 1985, 0);
    BREAKS(NEM_RULE_LOSS, 1);
}
END_TEST

START_TEST(what_is_renewed_is_lost_at_its_new_D)
{
    taken();
    checks(11, MUTEX, A, 1500, 2485, 1);
    checks(11, MUTEX, A, 1990, 2485, 0);
    BREAKS(NEM_RULE_LOSS, 1);
}
END_TEST

START_TEST(what_the_server_had_ended_is_lost)
{
    taken();
    leaves_at(1500 - EXACT);
    checks(11, MUTEX, A, 1500, 1985, 0);
    KEEPS(NEM_RULE_LOSS);
}
END_TEST

START_TEST(what_may_have_been_its_release_ended_nothing)
{
    taken();
    leaves_at(1501 - EXACT);
    checks(11, MUTEX, A, 1500, 1985, 0);
    BREAKS(NEM_RULE_LOSS, 1);
}
END_TEST

START_TEST(what_S1_excludes_may_lose_it)
{
    taken();
    checks(11, MUTEX, A, 1500, 1985, 0);
    fault(NEM_FLUSHALL, 0, NEM_ALL, 900, 999);
    fault(NEM_FLUSHALL, 0, NEM_ALL, 1501, 1502);
    BREAKS(NEM_RULE_LOSS, 1);
    fault(NEM_CLOCK_FORWARD, NEM_ALL, NEM_ALL, 1400, 1401);
    EXCUSES(NEM_RULE_LOSS, 1);
    forged.strict = true;
    BREAKS(NEM_RULE_LOSS, 1);
}
END_TEST

START_TEST(calls_that_say_lost_before_D_lie)
{
    static const unsigned calls[] = { NEM_LOCK, NEM_EXTEND, NEM_CONSISTENT };
    taken();
    invoke(11, 1100, calls[_i], MUTEX);
    returns(11, 1101, calls[_i], MUTEX, ESTALE)->levels = 1;
    BREAKS(NEM_RULE_LOSS, 1);
    leaves_at(1050);
    KEEPS(NEM_RULE_LOSS);
}
END_TEST

START_TEST(an_unlock_is_not_excused_by_a_lie_before)
{
    taken();
    checks(11, MUTEX, A, 1100, 1985, 0);
    unlocks(11, MUTEX, A, 1200, 1202, 1985, ESTALE);
    leaves_at(1201);
    BREAKS(NEM_RULE_LOSS, 1);
}
END_TEST

START_TEST(an_unlock_is_not_excused_by_its_release)
{
    taken();
    unlocks(11, MUTEX, A, 1200, 1202, 1985, ESTALE);
    leaves_at(1201 - EXACT);
    BREAKS(NEM_RULE_UNLOCK, 1);
}
END_TEST

START_TEST(an_unlock_of_one_level_that_says_lost_before_D_lies)
{
    taken();
    takes(11, MUTEX, A, 1010, 1011, 1985)->levels = 2;
    unlocks(11, MUTEX, A, 1100, 1101, 1985, ESTALE)->levels = 1;
    BREAKS(NEM_RULE_UNLOCK, 1);
}
END_TEST

START_TEST(the_id_that_it_had_before_an_extend_ends_no_hold)
{
    taken();
    extended(1100, 1102, LEASE, "p1:1:2:m300", 2085);
    leaves_at(1103);
    checks(11, MUTEX, "p1:1:2:m300", 1500, 2085, 0);
    BREAKS(NEM_RULE_LOSS, 1);
}
END_TEST

/* ---- kept */

static void lost_by_D(void)
{
    taken();
    checks(11, MUTEX, A, 1990, 1985, 0);
}

START_TEST(renewed_lease_is_not_lost)
{
    taken();
    checks(11, MUTEX, A, 1900, 2485, 1);
    KEEPS(NEM_RULE_KEPT);
}
END_TEST

START_TEST(loss_of_a_lease_that_could_be_renewed_is_a_violation)
{
    lost_by_D();
    BREAKS(NEM_RULE_KEPT, 1);
}
END_TEST

START_TEST(a_loss_before_D_is_no_matter_of_renewals)
{
    taken();
    checks(11, MUTEX, A, 1982, 1985, 0);
    doesnt_break(NEM_RULE_KEPT);
}
END_TEST

START_TEST(a_fixed_lease_runs_out)
{
    takes(11, MUTEX, A, 1000, 1002, 1985)[-1].lease_ms = LEASE;
    checks(11, MUTEX, A, 1990, 1985, 0);
    doesnt_break(NEM_RULE_KEPT);
}
END_TEST

START_TEST(a_lease_that_was_fixed_runs_out)
{
    taken();
    extended(1100, 1102, LEASE, A, 2085);
    checks(11, MUTEX, A, 2090, 2085, 0);
    doesnt_break(NEM_RULE_KEPT);
}
END_TEST

START_TEST(lease_that_is_no_longer_fixed_does_not_run_out)
{
    takes(11, MUTEX, A, 1000, 1002, 1985)[-1].lease_ms = LEASE;
    extended(1100, 1102, 0, A, 2085);
    checks(11, MUTEX, A, 2090, 2085, 0);
    BREAKS(NEM_RULE_KEPT, 1);
}
END_TEST

START_TEST(an_extend_that_failed_fixes_nothing)
{
    taken();
    invoke(11, 1100, NEM_EXTEND, MUTEX)->lease_ms = LEASE;
    returns(11, 1102, NEM_EXTEND, MUTEX, ENOTCONN)->levels = 1;
    checks(11, MUTEX, A, 1990, 1985, 0);
    BREAKS(NEM_RULE_KEPT, 1);
}
END_TEST

START_TEST(fault_in_the_last_lease_may_prevent_its_renewal)
{
    lost_by_D();
    fault(NEM_CUT, 2, NEM_ALL, 1000, 1900);
    fault(NEM_SCRIPT_FLUSH, NEM_ALL, NEM_ALL, 1000, 1900);
    fault(NEM_CUT, 1, NEM_ALL, 500, 1984 - LEASE - ROOM);
    fault(NEM_CUT, 1, NEM_ALL, 1986, 2500);
    BREAKS(NEM_RULE_KEPT, 1);
    fault(NEM_CUT, 1, NEM_ALL, 500, 1985 - LEASE - ROOM);
    doesnt_break(NEM_RULE_KEPT);
}
END_TEST

START_TEST(a_process_that_begins_has_no_connection_yet)
{
    restarts(1, 1000);
    lost_by_D();
    doesnt_break(NEM_RULE_KEPT);
}
END_TEST

START_TEST(a_process_that_ends_renews_nothing)
{
    lost_by_D();
    fault(NEM_TERM, 1, NEM_ALL, 1986, 2500);
    BREAKS(NEM_RULE_KEPT, 1);
    fault(NEM_TERM, 1, NEM_ALL, 1985, 2500);
    doesnt_break(NEM_RULE_KEPT);
}
END_TEST

START_TEST(a_grant_that_was_found_just_before_D_leaves_no_time)
{
    takes(11, MUTEX, A, 1000, 1986 - SLACK, 1985);
    checks(11, MUTEX, A, 1990, 1985, 0);
    doesnt_break(NEM_RULE_KEPT);
    takes(12, MUTEX, "p1:2:1:m300", 2000, 2985 - SLACK, 2985);
    checks(12, MUTEX, "p1:2:1:m300", 2990, 2985, 0);
    BREAKS(NEM_RULE_KEPT, 1);
}
END_TEST

/* The lease of a grant by another client is shorter than a whole one. */
START_TEST(the_short_lease_of_a_grant_is_renewed_too)
{
    as_the_driver_does();
    takes(11, MUTEX, A, 3000, 3198, 3600);
    checks(11, MUTEX, A, 3601, 3600, 0);
    BREAKS(NEM_RULE_KEPT, 1);
}
END_TEST

START_TEST(hold_that_the_server_ended_cannot_be_renewed)
{
    lost_by_D();
    leaves_at(1984 - EXACT);
    doesnt_break(NEM_RULE_KEPT);
}
END_TEST

START_TEST(own_release_at_the_end_of_the_lease_is_no_reason_for_a_loss)
{
    lost_by_D();
    leaves_at(1986 - EXACT);
    BREAKS(NEM_RULE_KEPT, 1);
}
END_TEST

START_TEST(lost_keys_and_a_stepped_clock_are_reasons_for_a_loss)
{
    lost_by_D();
    loses(NEM_DELETE_LOCK, FAIR, "nemesis1", 1983);
    loses(NEM_DELETE_LOCK, MUTEX, "nemesis9", 1995);
    BREAKS(NEM_RULE_KEPT, 1);
    loses(NEM_DELETE_LOCK, MUTEX, "nemesis9", 1983);
    doesnt_break(NEM_RULE_KEPT);
    last_fault()->kind = NEM_CLOCK_BACK;
    doesnt_break(NEM_RULE_KEPT);
}
END_TEST

/* ---- told: a lost hold has no further effect */

static const unsigned later_calls[] = { NEM_LOCK, NEM_EXTEND, NEM_DOWNGRADE,
                                        NEM_CONSISTENT, NEM_UNLOCK };
enum { LATER_CALLS = sizeof(later_calls) / sizeof(later_calls[0]) };

static void lost_and_then(unsigned call, int code)
{
    takes(11, RWLOCK, WRITE_A, 1000, 1002, 1985);
    checks(11, RWLOCK, WRITE_A, 1990, 1985, 0);
    event_lost(11, RWLOCK, 1986)->reading = call == NEM_DOWNGRADE;
    names(invoke(11, 2000, call, RWLOCK), WRITE_A, 1985);
    returns(11, 2001, call, RWLOCK, code)->levels = 1;
}

START_TEST(what_was_seen_lost_gives_ESTALE)
{
    lost_and_then(later_calls[_i], ESTALE);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(what_was_seen_lost_gives_nothing_else)
{
    lost_and_then(later_calls[_i], ENOTCONN);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

static void called_at(double at, unsigned call)
{
    takes(11, RWLOCK, WRITE_A, 1000, 1002, 1985);
    names(invoke(11, at, call, RWLOCK), WRITE_A, 1985);
    struct nem_op *op = returns(11, at + 1, call, RWLOCK, 0);
    names(op, WRITE_A, 1985 + LEASE);
    op->levels = 1;
}

START_TEST(a_call_before_D_may_succeed)
{
    called_at(1987, later_calls[_i]);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(a_call_behind_D_does_not_succeed)
{
    called_at(1988, later_calls[_i]);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

/* ---- told: nor has it at the server */

enum { RENEWALS_END = TIMEOUT + SLACK + EXACT };

static void renewed_at(double at, double end)
{
    transaction(at);
    entry(NEM_LEASE, MUTEX, A, server_at(end));
}

START_TEST(what_was_unlocked_may_be_renewed_by_what_was_under_way)
{
    taken();
    unlocks(11, MUTEX, A, 1098, 1100, 1985, 0);
    renewed_at(1100 + RENEWALS_END, 2500);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(what_was_unlocked_is_not_renewed_any_more)
{
    taken();
    unlocks(11, MUTEX, A, 1098, 1100, 1985, 0);
    renewed_at(1101 + RENEWALS_END, 2500);
    BREAKS(NEM_RULE_TOLD, 1);
    fault(NEM_FREEZE, 2, NEM_ALL, 1050, 1200);
    BREAKS(NEM_RULE_TOLD, 1);
    fault(NEM_FREEZE, 1, NEM_ALL, 1050, 1200);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(what_was_lost_is_not_renewed_any_more)
{
    lost_by_D();
    event_lost(11, MUTEX, 1986);
    renewed_at(1990 + RENEWALS_END, 2800);
    KEEPS(NEM_RULE_TOLD);
    renewed_at(1991 + RENEWALS_END, 2900);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

START_TEST(what_makes_no_lease_longer_renews_nothing)
{
    taken();
    unlocks(11, MUTEX, A, 1098, 1100, 1985, 0);
    renewed_at(1101 + RENEWALS_END, 2001);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(what_somebody_holds_is_renewed)
{
    taken();
    checks(11, MUTEX, A, 1900, 2485, 1);
    renewed_at(1500, 2500);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

static void read_by_two(int last, double until)
{
    int first = last == 11 ? 12 : 11;
    takes(11, RWLOCK, READ_A, 1000, 1002, 1985);
    takes(12, RWLOCK, READ_A, 1000, 1002, 1985);
    unlocks(first, RWLOCK, READ_A, 1098, 1100, 1985, 0);
    unlocks(last, RWLOCK, READ_A, until - 2, until, 1985, 0);
    transaction(1001);
    reads(RWLOCK, READ_A, 2001, true);
    transaction(1500);
    entry(NEM_LEASE, RWLOCK, READ_A, server_at(2500));
}

START_TEST(what_two_read_is_renewed_for_the_last)
{
    read_by_two(_i, 1500 - RENEWALS_END);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(hold_that_both_readers_left_is_not_renewed)
{
    read_by_two(_i, 1499 - RENEWALS_END);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

/* A reader that shares a hold gets its own by an extend. */
static void read_on_alone(double renewed)
{
    takes(11, RWLOCK, READ_A, 1000, 1002, 1985);
    invoke(11, 1010, NEM_EXTEND, RWLOCK)->lease_ms = LEASE;
    struct nem_op *op = returns(11, 1012, NEM_EXTEND, RWLOCK, 0);
    names(op, READ_A2, 1995);
    op->levels = 1;
    unlocks(11, RWLOCK, READ_A2, 1098, 1100, 1995, 0);
    transaction(1011);
    reads(RWLOCK, READ_A2, 2011, true);
    transaction(renewed);
    entry(NEM_LEASE, RWLOCK, READ_A2, server_at(2500));
}

START_TEST(an_id_that_an_extend_gave_is_somebodys_until_its_unlock)
{
    read_on_alone(1100 + RENEWALS_END);
    KEEPS(NEM_RULE_TOLD);
}
END_TEST

START_TEST(id_from_an_extend_belongs_to_no_hold_afterwards)
{
    read_on_alone(1101 + RENEWALS_END);
    BREAKS(NEM_RULE_TOLD, 1);
}
END_TEST

static void add_losses(Suite *suite)
{
    TCase *t = forged_group(suite, "loss");
    tcase_add_test(t, a_look_says_lost_only_at_D);
    tcase_add_test(t, a_look_that_says_lost_before_D_lies);
    tcase_add_test(t, what_is_renewed_is_lost_at_its_new_D);
    tcase_add_test(t, what_the_server_had_ended_is_lost);
    tcase_add_test(t, what_may_have_been_its_release_ended_nothing);
    tcase_add_test(t, what_S1_excludes_may_lose_it);
    tcase_add_loop_test(t, calls_that_say_lost_before_D_lie, 0, 3);
    tcase_add_test(t, an_unlock_is_not_excused_by_a_lie_before);
    tcase_add_test(t, an_unlock_is_not_excused_by_its_release);
    tcase_add_test(t, an_unlock_of_one_level_that_says_lost_before_D_lies);
    tcase_add_test(t, the_id_that_it_had_before_an_extend_ends_no_hold);
    t = forged_group(suite, "kept");
    tcase_add_test(t, renewed_lease_is_not_lost);
    tcase_add_test(t, loss_of_a_lease_that_could_be_renewed_is_a_violation);
    tcase_add_test(t, a_loss_before_D_is_no_matter_of_renewals);
    tcase_add_test(t, a_fixed_lease_runs_out);
    tcase_add_test(t, a_lease_that_was_fixed_runs_out);
    tcase_add_test(t, lease_that_is_no_longer_fixed_does_not_run_out);
    tcase_add_test(t, an_extend_that_failed_fixes_nothing);
    tcase_add_test(t, fault_in_the_last_lease_may_prevent_its_renewal);
    tcase_add_test(t, a_process_that_begins_has_no_connection_yet);
    tcase_add_test(t, a_process_that_ends_renews_nothing);
    tcase_add_test(t, a_grant_that_was_found_just_before_D_leaves_no_time);
    tcase_add_test(t, the_short_lease_of_a_grant_is_renewed_too);
    tcase_add_test(t, hold_that_the_server_ended_cannot_be_renewed);
    tcase_add_test(t, own_release_at_the_end_of_the_lease_is_no_reason_for_a_loss);
    tcase_add_test(t, lost_keys_and_a_stepped_clock_are_reasons_for_a_loss);
}

static void add_told(Suite *suite)
{
    TCase *t = forged_group(suite, "told");
    tcase_add_loop_test(t, what_was_seen_lost_gives_ESTALE, 0, LATER_CALLS);
    tcase_add_loop_test(t, what_was_seen_lost_gives_nothing_else, 0, LATER_CALLS);
    tcase_add_loop_test(t, a_call_before_D_may_succeed, 0, LATER_CALLS);
    tcase_add_loop_test(t, a_call_behind_D_does_not_succeed, 0, LATER_CALLS);
    tcase_add_test(t, what_was_unlocked_may_be_renewed_by_what_was_under_way);
    tcase_add_test(t, what_was_unlocked_is_not_renewed_any_more);
    tcase_add_test(t, what_was_lost_is_not_renewed_any_more);
    tcase_add_test(t, what_makes_no_lease_longer_renews_nothing);
    tcase_add_test(t, what_somebody_holds_is_renewed);
    tcase_add_loop_test(t, what_two_read_is_renewed_for_the_last, 11, 13);
    tcase_add_loop_test(t, hold_that_both_readers_left_is_not_renewed, 11, 13);
    tcase_add_test(t, an_id_that_an_extend_gave_is_somebodys_until_its_unlock);
    tcase_add_test(t, id_from_an_extend_belongs_to_no_hold_afterwards);
}

int main(void)
{
    Suite *suite = suite_create("judge: losses");
    add_losses(suite);
    add_told(suite);
    return test_run_suite(suite);
}
