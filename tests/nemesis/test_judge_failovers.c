/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories of several servers: what a failover
 * excuses and where, and what is judged without a ledger. */
#include "forged.h"

#include "suite.h"

#include <stdio.h>
#include <string.h>

#define A "p1:1:1:m300"
#define B "p2:1:1:m300"
#define READER "p1:1:3:r300"
#define OTHER_READER "p2:1:3:r300"
#define WRITER "p3:1:3:w300"

static void with(enum nem_servers servers)
{
    forged.servers = servers;
    forged.no_ledger = true;
}

static void fails_over(double begin, double end)
{
    fault(NEM_MASTER_KILL, NEM_ALL, NEM_ALL, begin, end);
    last_fault()->hits = 1;
}

/* Asked for and got at once, with D as the library counts it. */
static void takes_at(int who, const char *id, double at)
{
    takes(who, MUTEX, id, at, at + 2, at + LEASE - 12);
}

/* The first thread believes in its hold until 1900, the second one's begins at `at`. */
static void overlap_at(double at)
{
    takes_at(11, A, 1000);
    checks(11, MUTEX, A, 1900, 1988, 1);
    takes_at(21, B, at);
    unlocks(21, MUTEX, B, at + 50, at + 51, at + LEASE - 12, 0);
}

/* ---- exclusion: where a failover excuses */

START_TEST(a_lost_tail_excuses_an_overlap)
{
    with(NEM_SENTINEL);
    overlap_at(1500);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    fails_over(1050, 1450);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(every_kind_of_failover_excuses)
{
    with(NEM_SENTINEL);
    overlap_at(1500);
    fault(NEM_FAILOVER + _i, NEM_ALL, NEM_ALL, 1050, 1450);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(nothing_is_excused_where_all_replicas_confirm)
{
    with(NEM_REPLICAS);
    overlap_at(1500);
    for (int kind = NEM_FAILOVER; kind <= NEM_MASTER_STOP; kind++)
        fault(kind, NEM_ALL, NEM_ALL, 1050, 1450);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(one_server_fails_over_to_none)
{
    overlap_at(1500);
    fails_over(1050, 1450);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    with(NEM_TLS);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(in_a_strict_round_no_failover_excuses)
{
    with(NEM_SENTINEL);
    overlap_at(1500);
    fails_over(1050, 1450);
    forged.strict = true;
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(other_faults_of_the_master_excuse_nothing)
{
    with(NEM_SENTINEL);
    overlap_at(1500);
    fault(NEM_SERVER_STOP_LONG, NEM_ALL, NEM_ALL, 1050, 1450);
    fault(NEM_CLIENT_KILL, NEM_ALL, NEM_ALL, 1050, 1450);
    fault(NEM_STALL, NEM_ALL, NEM_ALL, 1050, 1450);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* ---- and when */

START_TEST(an_overlap_before_the_failover_is_not_its_effect)
{
    with(NEM_SENTINEL);
    overlap_at(1100);
    fails_over(1103, 1450);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    fails_over(1102, 1450); /* when the second one's call returned */
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* The second one's grant in the midst of the failover is no reason. */
START_TEST(what_was_written_long_before_is_at_the_replica)
{
    with(NEM_SENTINEL);
    overlap_at(1400);
    fails_over(1000 + SLACK + 57, 1450);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    fails_over(1000 + SLACK + 50, 1450);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* The first one's was written long before; the second one's may be lost if it was granted
 * before it. */
START_TEST(what_was_lost_may_return_last)
{
    with(NEM_SENTINEL);
    takes_at(11, A, 1000);
    checks(11, MUTEX, A, 1900, 1988, 1);
    takes(21, MUTEX, B, _i ? 1002 : 1003, 1450, 2300);
    checks(21, MUTEX, B, 1460, 2300, 1);
    fails_over(1300, 1440);
    if (_i)
        EXCUSES(NEM_RULE_EXCLUSION, 1);
    else
        BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(what_was_renewed_shortly_before_may_be_lost)
{
    with(NEM_SENTINEL);
    overlap_at(1500);
    checks(11, MUTEX, A, 1950, 1250 + LEASE - 12, 1);
    fails_over(1250 + SLACK, 1450);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* With the usual lease, D says that it was renewed at 2000; with its own one, that it was
 * not. */
START_TEST(a_fixed_lease_says_when_it_was_written)
{
    double end = 1000 + 2 * LEASE - 22;
    with(NEM_SENTINEL);
    invoke(11, 1000, NEM_LOCK, MUTEX)->lease_ms = _i ? 2 * LEASE : 0;
    struct nem_op *op = returns(11, 1002, NEM_LOCK, MUTEX, 0);
    snprintf(op->id, sizeof(op->id), A);
    op->levels = 1;
    op->end = at_ms(end);
    checks(11, MUTEX, A, 1900, end, 1);
    takes_at(21, B, 1650);
    checks(21, MUTEX, B, 1700, 2638, 1);
    fails_over(1500, 1600);
    if (_i)
        BREAKS(NEM_RULE_EXCLUSION, 1);
    else
        EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* D says that a lease was written long before; but it lasts for no more than a presence,
 * so it may be a grant, which was written just now. One that lasts for longer is none. */
START_TEST(a_grant_is_written_when_it_is_given)
{
    double end = 1052 + PRESENCE - 13 + _i * 20;
    with(NEM_SENTINEL);
    takes(11, MUTEX, A, 1040, 1052, end);
    unlocks(11, MUTEX, A, 1150, 1160, end, ESTALE);
    fails_over(1000, 1100);
    if (_i)
        BREAKS(NEM_RULE_UNLOCK, 1);
    else
        EXCUSES(NEM_RULE_UNLOCK, 1);
}
END_TEST

START_TEST(while_the_machine_stands_still_replicas_lag_behind)
{
    with(NEM_SENTINEL);
    overlap_at(1500);
    fails_over(1300, 1450);
    fault(NEM_STALL, NEM_ALL, NEM_ALL, 1100, 1150);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    fault(NEM_STALL, NEM_ALL, NEM_ALL, 1150, 1300);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(holds_of_both_masters_may_overlap)
{
    with(NEM_SENTINEL);
    takes_at(11, A, 1200); /* at the new master */
    checks(11, MUTEX, A, 1500, 2188, 1);
    takes_at(21, B, 1300); /* at the old one */
    checks(21, MUTEX, B, 1400, 2288, 1);
    fails_over(1100, 1450);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(what_is_taken_when_all_is_whole_is_not_lost)
{
    with(NEM_SENTINEL);
    takes_at(11, A, 1452);
    checks(11, MUTEX, A, 1700, 2440, 1);
    takes_at(21, B, 1500);
    checks(21, MUTEX, B, 1600, 2488, 1);
    fails_over(1100, 1451);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    fails_over(1100, 1452);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(a_lease_after_the_failover_nothing_is_excused)
{
    double end = 1100 + LEASE + SLACK;
    with(NEM_SENTINEL);
    takes_at(11, A, 1000);
    checks(11, MUTEX, A, end + 200, end + 500, 1);
    takes_at(21, B, end);
    checks(21, MUTEX, B, end + 100, end + 500, 1);
    fails_over(1050, 1100);
    BREAKS(NEM_RULE_EXCLUSION, 1); /* it had it at end + 2 */
    fails_over(1050, 1102);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

START_TEST(readers_and_writers_are_excused_alike)
{
    with(NEM_SENTINEL);
    takes(11, RWLOCK, READER, 1000, 1002, 1988);
    checks(11, RWLOCK, READER, 1900, 1988, 1);
    takes(31, RWLOCK, WRITER, 1500, 1502, 2488);
    checks(31, RWLOCK, WRITER, 1600, 2488, 1);
    BREAKS(NEM_RULE_EXCLUSION, 1);
    fails_over(1050, 1450);
    EXCUSES(NEM_RULE_EXCLUSION, 1);
}
END_TEST

/* ---- losses */

static enum nem_rule rule_of(bool by_unlock)
{
    return by_unlock ? NEM_RULE_UNLOCK : NEM_RULE_LOSS;
}

/* Taken at `at`, and told at 1500 that it is lost: by the unlock, or by a look. */
static void lost_at_1500(double at, bool by_unlock)
{
    double end = at + LEASE - 12;
    takes_at(11, A, at);
    if (by_unlock)
        unlocks(11, MUTEX, A, 1500, 1500, end, ESTALE);
    else
        checks(11, MUTEX, A, 1500, end, 0);
}

START_TEST(a_loss_by_a_failover_is_told)
{
    enum nem_rule rule = rule_of(_i);
    with(NEM_SENTINEL);
    lost_at_1500(1000, _i);
    BREAKS(rule, 1);
    fails_over(1050, 1450);
    EXCUSES(rule, 1);
}
END_TEST

START_TEST(where_all_replicas_confirm_none_is_lost_before_D)
{
    enum nem_rule rule = rule_of(_i);
    with(NEM_REPLICAS);
    lost_at_1500(1000, _i);
    fails_over(1050, 1450);
    BREAKS(rule, 1);
}
END_TEST

START_TEST(a_failover_after_it_was_told_is_not_the_cause)
{
    enum nem_rule rule = rule_of(_i);
    with(NEM_SENTINEL);
    lost_at_1500(1400, _i);
    fails_over(1501, 1550);
    BREAKS(rule, 1);
    fails_over(1500, 1550);
    EXCUSES(rule, 1);
}
END_TEST

START_TEST(a_loss_at_D_needs_no_failover)
{
    with(NEM_REPLICAS);
    takes_at(11, A, 1000);
    checks(11, MUTEX, A, 1989, 1988, 0);
    fails_over(1050, 1450);
    KEEPS(NEM_RULE_LOSS);
}
END_TEST

START_TEST(an_unlock_after_D_gives_no_0)
{
    with(NEM_SENTINEL);
    takes_at(11, A, 1000);
    unlocks(11, MUTEX, A, 1992, 1993, 1988, 0);
    fails_over(1050, 1450);
    BREAKS(NEM_RULE_UNLOCK, 1);
}
END_TEST

/* ---- tokens */

static void section(int who, const char *id, double at, uint64_t token)
{
    takes(who, FENCED, id, at, at + 2, at + LEASE - 12)->token = token;
    unlocks(who, FENCED, id, at + 10, at + 11, at + LEASE - 12, 0);
}

START_TEST(tokens_grow_from_hold_to_hold)
{
    with(NEM_SENTINEL);
    section(11, A, 1000, 70);
    section(21, B, 1100, 71);
    section(11, "p1:1:2:m300", 1200, 500);
    KEEPS(NEM_RULE_TOKENS);
    ck_assert_uint_eq(verdict.judged[NEM_RULE_TOKENS], 3);
    ck_assert_uint_eq(forged.last_token[FENCED], 500);
}
END_TEST

/* S3 holds after a lost failover, too. */
START_TEST(no_failover_excuses_a_token)
{
    with(_i ? NEM_REPLICAS : NEM_SENTINEL);
    section(11, A, 1000, 70);
    section(21, B, 1400, 70);
    fails_over(1050, 1300);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(no_token_is_below_that_of_an_earlier_round)
{
    with(NEM_REPLICAS);
    forged.last_token[FENCED] = 69;
    section(11, A, 1000, 70);
    KEEPS(NEM_RULE_TOKENS);
    forged_open();
    with(NEM_REPLICAS);
    forged.last_token[FENCED] = 70;
    section(11, A, 1000, 70);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(requests_at_a_time_get_tokens_in_any_order)
{
    with(NEM_REPLICAS);
    takes(11, FENCED, A, 1000, 1002, 1988)->token = 70;
    unlocks(11, FENCED, A, 1010, 1011, 1988, 0);
    takes(21, FENCED, B, 900, 1100, 2088)->token = 69;
    KEEPS(NEM_RULE_TOKENS);
}
END_TEST

START_TEST(tokens_of_other_locks_count_by_themselves)
{
    with(NEM_REPLICAS);
    section(11, A, 1000, 70);
    takes(21, FENCED_FAIR, B, 1100, 1102, 2088)->token = 5;
    KEEPS(NEM_RULE_TOKENS);
}
END_TEST

static void reads_with(int who, const char *id, double at, uint64_t token)
{
    takes(who, FENCED_RWLOCK, id, at, at + 2, at + LEASE - 12)->token = token;
}

START_TEST(readers_may_share_a_token)
{
    with(NEM_REPLICAS);
    reads_with(11, READER, 1000, 70);
    reads_with(21, OTHER_READER, 1100, 70);
    KEEPS(NEM_RULE_TOKENS);
    reads_with(22, OTHER_READER "2", 1200, 69);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(writer_shares_no_token_with_readers)
{
    with(NEM_REPLICAS);
    reads_with(11, READER, 1000, 70);
    unlocks(11, FENCED_RWLOCK, READER, 1010, 1011, 1988, 0);
    reads_with(31, WRITER, 1100, 70);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(reader_shares_no_token_with_a_writer)
{
    with(NEM_REPLICAS);
    reads_with(31, WRITER, 1000, 70);
    unlocks(31, FENCED_RWLOCK, WRITER, 1010, 1011, 1988, 0);
    reads_with(11, READER, 1100, 70);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

/* The writer got the lock where the reader's grant had been lost. */
START_TEST(token_is_judged_when_the_server_granted_it)
{
    with(NEM_REPLICAS);
    reads_with(11, READER, 1000, 70);
    unlocks(11, FENCED_RWLOCK, READER, 1010, 1011, 1988, 0);
    reads_with(31, WRITER, 1100, 71);
    reads_with(11, READER, 1200, 70); /* retained */
    KEEPS(NEM_RULE_TOKENS);
    reads_with(21, OTHER_READER, 1300, 70);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

START_TEST(readers_share_the_token_of_a_downgraded_writer)
{
    with(NEM_REPLICAS);
    reads_with(31, WRITER, 1000, 70);
    invoke(31, 1010, NEM_DOWNGRADE, FENCED_RWLOCK);
    returns(31, 1012, NEM_DOWNGRADE, FENCED_RWLOCK, 0);
    reads_with(11, READER, 1100, 70);
    KEEPS(NEM_RULE_TOKENS);
}
END_TEST

/* ---- without a ledger */

static const char *const left[] = { "nemesis9 500 1", "rlock:{nemesis1}:queue 500 3" };

START_TEST(what_needs_a_ledger_is_not_judged_without_one)
{
    with(NEM_REPLICAS);
    takes_at(11, A, 1000);
    unlocks(11, MUTEX, A, 1010, 1011, 1988, 0);
    takes_at(12, A, 1012); /* passed on within the process */
    unlocks(12, MUTEX, A, 1020, 1021, 1988, 0);
    takes_at(21, B, 1100);
    fault(NEM_KILL, 2, NEM_ALL, 1110, 1111);
    forged.left = left;
    forged.left_count = 2;
    judge();
    for (int rule = 0; rule < NEM_RULES; rule++) {
        if (!nem_rule_needs_ledger((enum nem_rule)rule))
            continue;
        ck_assert_uint_eq(verdict.judged[rule], 0);
        ck_assert_uint_eq(verdict.violations[rule], 0);
    }
    ck_assert_uint_gt(verdict.judged[NEM_RULE_EXCLUSION], 0);
    ck_assert_uint_gt(verdict.judged[NEM_RULE_UNLOCK], 0);
    ck_assert_uint_gt(verdict.judged[NEM_RULE_CODE], 0);
    ck_assert_uint_gt(verdict.judged[NEM_RULE_CUT], 0);
}
END_TEST

START_TEST(a_lock_that_is_held_at_the_end_leaks)
{
    with(NEM_REPLICAS);
    forged.left = left;
    forged.left_count = 2;
    BREAKS(NEM_RULE_LEAK, 1);
}
END_TEST

START_TEST(a_hold_that_could_be_renewed_is_kept)
{
    with(NEM_REPLICAS);
    takes_at(11, A, 2000);
    checks(11, MUTEX, A, 2989, 2988, 0);
    BREAKS(NEM_RULE_KEPT, 1);
    fails_over(2100, 2800);
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_KEPT], 0);
}
END_TEST

START_TEST(hand_overs_are_those_between_processes)
{
    with(NEM_REPLICAS);
    section(11, A, 1000, 70);
    section(12, "p1:2:1:m300", 1100, 71);
    section(21, B, 1200, 72);
    section(11, "p1:1:2:m300", 1300, 73);
    takes_at(21, "p2:1:2:m300", 1400); /* another lock */
    judge();
    ck_assert_uint_eq(verdict.handovers, 2);
}
END_TEST

START_TEST(failovers_are_counted_when_there_was_an_election)
{
    with(NEM_SENTINEL);
    fails_over(1000, 1500);
    fault(NEM_FAILOVER, NEM_ALL, NEM_ALL, 2000, 2100);
    fault(NEM_CLIENT_KILL, NEM_ALL, NEM_ALL, 3000, 3000);
    last_fault()->hits = 1;
    judge();
    ck_assert_uint_eq(verdict.failovers, 1);
}
END_TEST

/* Calls get no answer, and connections end, while a failover goes on. */
START_TEST(a_failover_is_a_reason_for_no_answer)
{
    with(NEM_REPLICAS);
    invoke(11, 1000, NEM_TRYLOCK, MUTEX);
    returns(11, 1100, NEM_TRYLOCK, MUTEX, ENOTCONN);
    BREAKS(NEM_RULE_CODE, 1);
    fails_over(1050, 1450);
    KEEPS(NEM_RULE_CODE);
}
END_TEST

static void add_exclusion(Suite *suite)
{
    TCase *t = forged_group(suite, "exclusion");
    tcase_add_test(t, a_lost_tail_excuses_an_overlap);
    tcase_add_loop_test(t, every_kind_of_failover_excuses, 0, 3);
    tcase_add_test(t, nothing_is_excused_where_all_replicas_confirm);
    tcase_add_test(t, one_server_fails_over_to_none);
    tcase_add_test(t, in_a_strict_round_no_failover_excuses);
    tcase_add_test(t, other_faults_of_the_master_excuse_nothing);
    tcase_add_test(t, an_overlap_before_the_failover_is_not_its_effect);
    tcase_add_test(t, what_was_written_long_before_is_at_the_replica);
    tcase_add_loop_test(t, what_was_lost_may_return_last, 0, 2);
    tcase_add_test(t, what_was_renewed_shortly_before_may_be_lost);
    tcase_add_loop_test(t, a_fixed_lease_says_when_it_was_written, 0, 2);
    tcase_add_loop_test(t, a_grant_is_written_when_it_is_given, 0, 2);
    tcase_add_test(t, while_the_machine_stands_still_replicas_lag_behind);
    tcase_add_test(t, holds_of_both_masters_may_overlap);
    tcase_add_test(t, what_is_taken_when_all_is_whole_is_not_lost);
    tcase_add_test(t, a_lease_after_the_failover_nothing_is_excused);
    tcase_add_test(t, readers_and_writers_are_excused_alike);
}

static void add_others(Suite *suite)
{
    TCase *t = forged_group(suite, "losses");
    tcase_add_loop_test(t, a_loss_by_a_failover_is_told, 0, 2);
    tcase_add_loop_test(t, where_all_replicas_confirm_none_is_lost_before_D, 0, 2);
    tcase_add_loop_test(t, a_failover_after_it_was_told_is_not_the_cause, 0, 2);
    tcase_add_test(t, a_loss_at_D_needs_no_failover);
    tcase_add_test(t, an_unlock_after_D_gives_no_0);
    t = forged_group(suite, "tokens");
    tcase_add_test(t, tokens_grow_from_hold_to_hold);
    tcase_add_loop_test(t, no_failover_excuses_a_token, 0, 2);
    tcase_add_test(t, no_token_is_below_that_of_an_earlier_round);
    tcase_add_test(t, requests_at_a_time_get_tokens_in_any_order);
    tcase_add_test(t, tokens_of_other_locks_count_by_themselves);
    tcase_add_test(t, readers_may_share_a_token);
    tcase_add_test(t, writer_shares_no_token_with_readers);
    tcase_add_test(t, reader_shares_no_token_with_a_writer);
    tcase_add_test(t, token_is_judged_when_the_server_granted_it);
    tcase_add_test(t, readers_share_the_token_of_a_downgraded_writer);
    t = forged_group(suite, "no ledger");
    tcase_add_test(t, what_needs_a_ledger_is_not_judged_without_one);
    tcase_add_test(t, a_lock_that_is_held_at_the_end_leaks);
    tcase_add_test(t, a_hold_that_could_be_renewed_is_kept);
    tcase_add_test(t, hand_overs_are_those_between_processes);
    tcase_add_test(t, failovers_are_counted_when_there_was_an_election);
    tcase_add_test(t, a_failover_is_a_reason_for_no_answer);
}

int main(void)
{
    Suite *suite = suite_create("judge: failovers");
    add_exclusion(suite);
    add_others(suite);
    return test_run_suite(suite);
}
