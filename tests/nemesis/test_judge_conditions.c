/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories: waits for conditions, signals,
 * broadcasts, and buffers. */
#include "forged.h"

#include "suite.h"

#include <string.h>

enum { COND = 0, ROOM_COND = 2, BUFFER_LOCK = 0 }; /* of the buffer 0 */
enum { TICKET_A = 1, TICKET_B, TICKET_C };
#define A "p1:1:5:c300"
#define B "p2:1:5:c300"
#define C "p3:1:5:c300"

/* ---- histories */

static uint64_t ticket(unsigned n)
{
    return UINT64_C(1700000000000000) + n;
}

/* All are present, and the server's clock is known. */
static void open_queue(void)
{
    static const char *const clients[] = { "p1", "p2", "p3", "p4" };
    transaction(500);
    for (int i = 0; i < 4; i++)
        entry(NEM_THERE, COND, clients[i], server_at(ENDED));
    grants(MUTEX, "p4:1:1:m300", 600);
}

static struct nem_op *with_condition(struct nem_op *op)
{
    op->condition = COND;
    return op;
}

/* A thread begins to wait, and the server queues it. */
static void begins(int who, const char *id, unsigned n, double at)
{
    with_condition(invoke(who, at - 2, NEM_WAIT, MUTEX))->levels = 1;
    struct nem_op *op =
        with_condition(record(who, at - 2, NEM_JOINING, NEM_NO_CALL, NEM_ALL));
    strcpy(op->id, id);
    transaction(at);
    entry(NEM_WAITS, COND, id, ticket(n));
}

/* The thread is awake, has the lock at `to`, and the wait returns `code`. */
static struct nem_op *ends(int who, double awake, double to, int code)
{
    with_condition(returns(who, awake, NEM_WAIT, MUTEX, 0));
    with_condition(invoke(who, awake, NEM_RETAKE, MUTEX));
    with_condition(returns(who, to, NEM_RETAKE, MUTEX, 0))->levels = 1;
    struct nem_op *op = with_condition(record(who, to, NEM_WAITED, NEM_NO_CALL, NEM_ALL));
    op->code = code;
    op->levels = 1;
    return op;
}

static void signalled(const char *id, unsigned n)
{
    entry(NEM_SIGNALLED, COND, id, server_at(0) + 6000 + 600)->ticket = ticket(n);
}

/* n 0: it was signalled. */
static void is_gone(const char *id, unsigned n)
{
    entry(NEM_UNWAITS, COND, id, 0)->ticket = n ? ticket(n) : 0;
}

static void wakes(int who, unsigned call, double from, double to, int code)
{
    with_condition(invoke(who, from, call, NEM_ALL));
    with_condition(returns(who, to, call, NEM_ALL, code));
}

/* A and B wait, in this order. */
static void two_wait(void)
{
    open_queue();
    begins(11, A, TICKET_A, 1000);
    begins(21, B, TICKET_B, 1100);
}

/* A is signalled at 2000. */
static void first_is_signalled(void)
{
    two_wait();
    transaction(2000);
    signalled(A, TICKET_A);
}

/* ---- asleep (V2) */

START_TEST(thread_that_was_taken_out_is_awake_soon)
{
    first_is_signalled();
    ends(11, 2010, 2020, 0);
    transaction(2100);
    is_gone(B, TICKET_B); /* by a broadcast */
    ends(21, 2110, 2300, 0);
    KEEPS(NEM_RULE_ASLEEP);
    ck_assert_uint_eq(verdict.judged[NEM_RULE_ASLEEP], 2);
}
END_TEST

START_TEST(signalled_thread_that_sleeps_is_a_violation)
{
    first_is_signalled();
    ends(11, 2000 + ROOM + 50, 2700, 0);
    BREAKS(NEM_RULE_ASLEEP, 1);
}
END_TEST

START_TEST(thread_that_sleeps_after_a_broadcast_is_a_violation)
{
    two_wait();
    transaction(2000);
    is_gone(A, TICKET_A);
    is_gone(B, TICKET_B);
    ends(11, 2010, 2020, 0);
    BREAKS(NEM_RULE_ASLEEP, 1); /* B sleeps until the end */
}
END_TEST

START_TEST(data_that_are_lost_wake_all)
{
    two_wait();
    transaction(2000);
    entry(NEM_LOST_DATA, NEM_ALL, "", 0);
    is_gone(A, TICKET_A);
    is_gone(B, TICKET_B);
    fault(NEM_FLUSHALL, NEM_ALL, NEM_ALL, 1999, 2001);
    ends(11, 2150, 2160, 0);
    BREAKS(NEM_RULE_ASLEEP, 1);
}
END_TEST

START_TEST(thread_may_sleep_while_its_link_is_cut)
{
    first_is_signalled();
    fault(NEM_SILENT, 1, NEM_ALL, 1900, 4000);
    ends(11, 4000 + ROOM + 200, 4700, 0);
    KEEPS(NEM_RULE_ASLEEP);
}
END_TEST

START_TEST(fault_of_another_process_is_no_reason_to_sleep)
{
    first_is_signalled();
    fault(NEM_SILENT, 2, NEM_ALL, 1900, 4000);
    ends(11, 4500, 4700, 0);
    BREAKS(NEM_RULE_ASLEEP, 1);
}
END_TEST

START_TEST(killed_thread_need_not_wake)
{
    first_is_signalled();
    fault(NEM_KILL, 1, NEM_ALL, 2010, 2020);
    restarts(1, 2030);
    KEEPS(NEM_RULE_ASLEEP);
}
END_TEST

/* ---- first (V3) */

START_TEST(signal_takes_the_first)
{
    first_is_signalled();
    KEEPS(NEM_RULE_FIRST);
}
END_TEST

START_TEST(signal_for_a_later_one_is_a_violation)
{
    two_wait();
    transaction(2000);
    signalled(B, TICKET_B);
    BREAKS(NEM_RULE_FIRST, 1);
}
END_TEST

START_TEST(absent_waiter_may_be_skipped)
{
    two_wait();
    transaction(1500);
    entry(NEM_THERE, COND, "p1", server_at(1600));
    transaction(2000);
    signalled(B, TICKET_B);
    LEAVES(NEM_RULE_FIRST);
}
END_TEST

START_TEST(waiter_without_a_mailbox_may_be_skipped)
{
    two_wait();
    fault(NEM_CUT, 1, NEM_ALL, 1800, 1801);
    transaction(2000);
    signalled(B, TICKET_B);
    LEAVES(NEM_RULE_FIRST);
}
END_TEST

START_TEST(waiter_that_leaves_meanwhile_is_not_skipped)
{
    two_wait();
    transaction(2000);
    is_gone(A, TICKET_A);
    signalled(B, TICKET_B);
    LEAVES(NEM_RULE_FIRST);
}
END_TEST

/* ---- missed (V3, V7, V17) */

START_TEST(signal_that_wakes_one_is_none_that_was_missed)
{
    first_is_signalled();
    wakes(31, NEM_SIGNAL, 1995, 2005, 0);
    KEEPS(NEM_RULE_MISSED);
}
END_TEST

START_TEST(signal_that_wakes_nobody_is_a_violation)
{
    two_wait();
    wakes(31, NEM_SIGNAL, 1995, 2005, 0);
    BREAKS(NEM_RULE_MISSED, 1);
}
END_TEST

START_TEST(each_signal_wakes_one_of_its_own)
{
    first_is_signalled();
    wakes(31, NEM_SIGNAL, 1995, 2005, 0);
    wakes(41, NEM_SIGNAL, 1996, 2006, 0);
    BREAKS(NEM_RULE_MISSED, 1);
    signalled(B, TICKET_B);
    LEAVES(NEM_RULE_MISSED); /* nobody is left who waited all along */
}
END_TEST

START_TEST(signal_before_the_waiter_is_not_kept)
{
    two_wait();
    wakes(31, NEM_SIGNAL, 900, 910, 0);
    LEAVES(NEM_RULE_MISSED);
}
END_TEST

START_TEST(refused_signal_is_not_missed)
{
    two_wait();
    wakes(31, NEM_SIGNAL, 1995, 2005, EACCES);
    LEAVES(NEM_RULE_MISSED);
    BREAKS(NEM_RULE_CODE, 1);
    fault(NEM_ACL, NEM_ALL, NEM_ALL, 1990, 2010);
    BREAKS(NEM_RULE_CODE, 0);
}
END_TEST

START_TEST(broadcast_leaves_nobody)
{
    two_wait();
    wakes(31, NEM_BROADCAST, 1995, 2005, 0);
    transaction(2000);
    is_gone(A, TICKET_A);
    BREAKS(NEM_RULE_MISSED, 1);
    is_gone(B, TICKET_B);
    LEAVES(NEM_RULE_MISSED);
}
END_TEST

START_TEST(broadcast_does_not_wake_who_came_later)
{
    two_wait();
    wakes(31, NEM_BROADCAST, 990, 1005, 0);
    LEAVES(NEM_RULE_MISSED);
}
END_TEST

/* The call has taken a command timeout: the server was away. */
START_TEST(signal_that_comes_later_is_not_missed)
{
    two_wait();
    fault(NEM_SILENT, 3, NEM_ALL, 1990, 2250);
    wakes(31, NEM_SIGNAL, 2000, 2000 + TIMEOUT + 1, 0);
    transaction(2400);
    signalled(A, TICKET_A);
    KEEPS(NEM_RULE_MISSED);
}
END_TEST

START_TEST(signal_that_never_comes_is_a_violation)
{
    two_wait();
    fault(NEM_SILENT, 3, NEM_ALL, 1990, 2250);
    wakes(31, NEM_SIGNAL, 2000, 2000 + TIMEOUT + 1, 0);
    BREAKS(NEM_RULE_MISSED, 1);
}
END_TEST

START_TEST(signal_of_a_killed_process_need_not_come)
{
    two_wait();
    wakes(31, NEM_SIGNAL, 2000, 2000 + TIMEOUT + 1, 0);
    fault(NEM_KILL, 3, NEM_ALL, 2300, 2310);
    restarts(3, 2320);
    LEAVES(NEM_RULE_MISSED);
}
END_TEST

/* ---- eaten (V4, V5, V10, V13) */

/* A is gone at 2100, and its wait gave that code. */
static void first_is_gone(int code)
{
    first_is_signalled();
    ends(11, 2010, 2020, code);
    transaction(2100);
    is_gone(A, 0);
}

START_TEST(signal_that_was_used_is_over)
{
    first_is_gone(0);
    KEEPS(NEM_RULE_EATEN);
}
END_TEST

START_TEST(owner_that_died_is_no_reason_to_pass_a_signal_on)
{
    first_is_gone(EOWNERDEAD);
    KEEPS(NEM_RULE_EATEN);
}
END_TEST

START_TEST(signal_of_a_wait_that_did_not_use_it_is_eaten)
{
    static const int codes[] = { ETIMEDOUT, ENOTRECOVERABLE, ECANCELED, EACCES,
                                 NEM_CANCELLED_WAIT };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        forged_open();
        first_is_gone(codes[i]);
        BREAKS(NEM_RULE_EATEN, 1);
    }
}
END_TEST

START_TEST(signal_that_comes_after_the_return_is_eaten)
{
    two_wait();
    ends(11, 1500, 1510, 0); /* its connection was replaced */
    transaction(2000);
    signalled(A, TICKET_A);
    transaction(2100);
    is_gone(A, 0);
    BREAKS(NEM_RULE_EATEN, 1);
    signalled(B, TICKET_B);
    KEEPS(NEM_RULE_EATEN);
}
END_TEST

START_TEST(signal_that_is_passed_on_is_not_eaten)
{
    first_is_gone(ETIMEDOUT);
    signalled(B, TICKET_B);
    KEEPS(NEM_RULE_EATEN);
}
END_TEST

START_TEST(signal_that_is_kept_until_it_is_overdue_is_eaten)
{
    first_is_signalled();
    ends(11, 2010, 2020, ETIMEDOUT);
    transaction(2020 + PRESENCE / 3 + SLACK + 20);
    is_gone(A, 0);
    signalled(B, TICKET_B);
    BREAKS(NEM_RULE_EATEN, 1);
    fault(NEM_SILENT, 1, NEM_ALL, 1900, 2015);
    KEEPS(NEM_RULE_EATEN);
}
END_TEST

START_TEST(signal_of_a_dead_process_is_passed_on)
{
    first_is_signalled();
    fault(NEM_KILL, 1, NEM_ALL, 2050, 2060);
    restarts(1, 2100);
    transaction(2200);
    is_gone(A, 0);
    BREAKS(NEM_RULE_EATEN, 1);
    signalled(B, TICKET_B);
    KEEPS(NEM_RULE_EATEN);
}
END_TEST

START_TEST(one_signal_makes_not_two_good)
{
    two_wait();
    begins(31, C, TICKET_C, 1200);
    transaction(2000);
    signalled(A, TICKET_A);
    signalled(B, TICKET_B);
    begins(41, "p4:1:5:c300", TICKET_C + 1, 1300);
    ends(11, 2010, 2020, ETIMEDOUT);
    ends(21, 2010, 2020, ETIMEDOUT);
    transaction(2100);
    is_gone(A, 0);
    is_gone(B, 0);
    signalled(C, TICKET_C);
    BREAKS(NEM_RULE_EATEN, 1);
}
END_TEST

START_TEST(signal_with_nobody_to_pass_it_to_is_gone)
{
    open_queue();
    begins(11, A, TICKET_A, 1000);
    transaction(2000);
    signalled(A, TICKET_A);
    ends(11, 2010, 2020, ETIMEDOUT);
    transaction(2100);
    is_gone(A, 0);
    KEEPS(NEM_RULE_EATEN);
}
END_TEST

/* ---- acked (V4) */

START_TEST(signal_is_acknowledged_after_the_return)
{
    first_is_gone(0);
    KEEPS(NEM_RULE_ACKED);
}
END_TEST

START_TEST(acknowledgement_before_the_lock_is_a_violation)
{
    first_is_signalled();
    ends(11, 2010, 2100 + 5 * EXACT, 0);
    transaction(2100);
    is_gone(A, 0);
    BREAKS(NEM_RULE_ACKED, 1);
}
END_TEST

START_TEST(thread_may_be_slow_to_record_its_return)
{
    first_is_signalled();
    ends(11, 2010, 2020, 0)->at = at_ms(2100 + SLACK + 50);
    transaction(2100);
    is_gone(A, 0);
    KEEPS(NEM_RULE_ACKED);
}
END_TEST

START_TEST(acknowledgement_of_one_that_was_killed_on_its_way_is_a_violation)
{
    first_is_signalled();
    transaction(2100);
    is_gone(A, 0);
    fault(NEM_KILL, 1, NEM_ALL, 2400, 2410);
    restarts(1, 2500);
    BREAKS(NEM_RULE_ACKED, 1);
}
END_TEST

START_TEST(killed_process_may_have_returned_just_before)
{
    first_is_signalled();
    transaction(2100);
    is_gone(A, 0);
    fault(NEM_KILL, 1, NEM_ALL, 2130, 2140);
    restarts(1, 2500);
    KEEPS(NEM_RULE_ACKED);
}
END_TEST

START_TEST(overdue_signal_may_be_taken_from_a_slow_one)
{
    two_wait();
    transaction(2000);
    entry(NEM_SIGNALLED, COND, A, server_at(2050))->ticket = ticket(TICKET_A);
    ends(11, 2010, 2600, 0);
    transaction(2100);
    is_gone(A, 0);
    signalled(B, TICKET_B);
    LEAVES(NEM_RULE_ACKED);
}
END_TEST

/* ---- overdue (V4, V15) */

static void first_is_late(void)
{
    two_wait();
    transaction(2000);
    entry(NEM_SIGNALLED, COND, A, server_at(2600))->ticket = ticket(TICKET_A);
}

START_TEST(overdue_signal_that_a_script_leaves_is_a_violation)
{
    first_is_late();
    begins(31, C, TICKET_C, 2700);
    BREAKS(NEM_RULE_OVERDUE, 1);
}
END_TEST

START_TEST(overdue_signal_goes_to_the_next)
{
    first_is_late();
    begins(31, C, TICKET_C, 2700);
    is_gone(A, 0);
    signalled(B, TICKET_B);
    KEEPS(NEM_RULE_OVERDUE);
}
END_TEST

START_TEST(signal_whose_time_goes_on_is_not_overdue)
{
    first_is_late();
    transaction(2500);
    entry(NEM_SIGNALLED, COND, A, server_at(3000));
    begins(31, C, TICKET_C, 2700);
    KEEPS(NEM_RULE_OVERDUE);
}
END_TEST

/* ---- once (V6) */

START_TEST(an_id_joins_once)
{
    first_is_gone(0);
    KEEPS(NEM_RULE_ONCE);
    transaction(2500);
    entry(NEM_WAITS, COND, A, ticket(TICKET_C));
    BREAKS(NEM_RULE_ONCE, 1);
    loses(NEM_EVICT, COND, "rlock:{nemesis0}:cond", 2300);
    EXCUSES(NEM_RULE_ONCE, 1);
}
END_TEST

/* ---- items */

static void trades(int who, double at, int count)
{
    with_condition(record(who, at, NEM_TRADED, NEM_NO_CALL, NEM_ALL))->code = count;
}

START_TEST(item_for_which_a_thread_sleeps_is_a_violation)
{
    open_queue();
    begins(11, A, TICKET_A, 1000);
    trades(21, 5000, 1);
    BREAKS(NEM_RULE_ITEMS, 1);
}
END_TEST

START_TEST(thread_may_sleep_while_there_are_no_items)
{
    open_queue();
    begins(11, A, TICKET_A, 1000);
    LEAVES(NEM_RULE_ITEMS);
    trades(21, 5000, 1);
    trades(31, 5100, 0);
    LEAVES(NEM_RULE_ITEMS);
}
END_TEST

START_TEST(thread_may_sleep_while_others_trade)
{
    open_queue();
    begins(11, A, TICKET_A, 1000);
    for (int at = 5000; at < ENDED; at += PATIENCE / 2) {
        trades(21, at, 1);
        trades(31, at + 10, 0);
        trades(21, at + 20, 1);
    }
    KEEPS(NEM_RULE_ITEMS);
}
END_TEST

START_TEST(room_for_which_a_thread_sleeps_is_a_violation)
{
    open_queue();
    begins(11, A, TICKET_A, 1000);
    for (size_t i = 0; i < forged.op_count; i++) /* it waits for the other condition */
        if (forged.ops[i].call == NEM_WAIT)
            ((struct nem_op *)forged.ops)[i].condition = ROOM_COND;
    trades(21, 5000, 1);
    LEAVES(NEM_RULE_ITEMS);
    trades(21, 5100, 0);
    BREAKS(NEM_RULE_ITEMS, 1);
}
END_TEST

/* ---- code and bound of waits and signals */

static void times_out(double deadline, double awake)
{
    open_queue();
    begins(11, A, TICKET_A, 1000);
    for (size_t i = 0; i < forged.op_count; i++)
        if (forged.ops[i].call == NEM_WAIT)
            ((struct nem_op *)forged.ops)[i].deadline = at_ms(deadline);
    transaction(awake - 5);
    is_gone(A, TICKET_A);
    ends(11, awake, awake + 10, ETIMEDOUT);
}

START_TEST(wait_times_out_at_its_deadline)
{
    times_out(1500, 1510);
    KEEPS(NEM_RULE_BOUND);
    BREAKS(NEM_RULE_CODE, 0);
}
END_TEST

START_TEST(wait_that_times_out_before_its_deadline_is_a_violation)
{
    times_out(1500, 1400);
    BREAKS(NEM_RULE_CODE, 1);
}
END_TEST

START_TEST(wait_long_after_its_deadline_is_a_violation)
{
    times_out(1500, 1500 + 150 + TIMEOUT + SLACK + 50);
    BREAKS(NEM_RULE_BOUND, 1);
}
END_TEST

START_TEST(code_without_a_reason_is_a_violation)
{
    static const int codes[] = { EPERM,   ETIMEDOUT,         EOWNERDEAD, ENOTRECOVERABLE,
                                 EACCES,  ECANCELED,         ENOTCONN,   ESTALE,
                                 EDEADLK, NEM_CANCELLED_WAIT };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        forged_open();
        open_queue();
        begins(11, A, TICKET_A, 1000);
        ends(11, 2010, 2020, codes[i]);
        BREAKS(NEM_RULE_CODE, 1);
    }
}
END_TEST

START_TEST(lock_without_its_levels_is_a_violation)
{
    open_queue();
    begins(11, A, TICKET_A, 1000);
    struct nem_op *waited = ends(11, 2010, 2020, 0);
    BREAKS(NEM_RULE_CODE, 0);
    waited->levels = 2;
    BREAKS(NEM_RULE_CODE, 1);
}
END_TEST

START_TEST(signal_returns_within_the_command_timeout)
{
    open_queue();
    wakes(31, NEM_SIGNAL, 1000, 1000 + TIMEOUT, 0);
    KEEPS(NEM_RULE_BOUND);
    wakes(41, NEM_SIGNAL, 1000, 1000 + TIMEOUT + SLACK + 10, 0);
    BREAKS(NEM_RULE_BOUND, 1);
}
END_TEST

/* ---- the lock: a wait is an unlock and a lock */

START_TEST(lock_is_free_during_a_wait)
{
    holds(21, MUTEX, "p2:1:9:m300", 1200, 1300);
    takes(11, MUTEX, "p1:1:9:m300", 998, 1002, 1985);
    transaction(1000);
    grants(MUTEX, "p1:1:9:m300", 2000);
    struct nem_op *op = invoke(11, 1100, NEM_WAIT, MUTEX);
    strcpy(op->id, "p1:1:9:m300");
    op->end = at_ms(1985);
    transaction(1110);
    leaves(MUTEX, "p1:1:9:m300", true);
    returns(11, 1400, NEM_WAIT, MUTEX, 0);
    invoke(11, 1400, NEM_RETAKE, MUTEX);
    op = returns(11, 1410, NEM_RETAKE, MUTEX, 0);
    strcpy(op->id, "p1:1:10:m300");
    op->end = at_ms(2390);
    transaction(1405);
    grants(MUTEX, "p1:1:10:m300", 2405);
    KEEPS(NEM_RULE_EXCLUSION);
    BREAKS(NEM_RULE_GRANT, 0);
    BREAKS(NEM_RULE_UNLOCK, 0);
    BREAKS(NEM_RULE_OWNER, 0);
}
END_TEST

START_TEST(lock_is_held_until_the_wait_gives_it_up)
{
    takes(11, MUTEX, "p1:1:9:m300", 998, 1002, 1985);
    struct nem_op *op = invoke(11, 1100, NEM_WAIT, MUTEX);
    strcpy(op->id, "p1:1:9:m300");
    op->end = at_ms(1985);
    returns(11, 1400, NEM_WAIT, MUTEX, 0);
    transaction(1000);
    grants(MUTEX, "p1:1:9:m300", 2000);
    holds(21, MUTEX, "p2:1:9:m300", 1050, 1090);
    BREAKS(NEM_RULE_EXCLUSION, 1);
}
END_TEST

static void add_server_rules(Suite *s)
{
    TCase *tc = forged_group(s, "asleep");
    tcase_add_test(tc, thread_that_was_taken_out_is_awake_soon);
    tcase_add_test(tc, signalled_thread_that_sleeps_is_a_violation);
    tcase_add_test(tc, thread_that_sleeps_after_a_broadcast_is_a_violation);
    tcase_add_test(tc, data_that_are_lost_wake_all);
    tcase_add_test(tc, thread_may_sleep_while_its_link_is_cut);
    tcase_add_test(tc, fault_of_another_process_is_no_reason_to_sleep);
    tcase_add_test(tc, killed_thread_need_not_wake);

    tc = forged_group(s, "first");
    tcase_add_test(tc, signal_takes_the_first);
    tcase_add_test(tc, signal_for_a_later_one_is_a_violation);
    tcase_add_test(tc, absent_waiter_may_be_skipped);
    tcase_add_test(tc, waiter_without_a_mailbox_may_be_skipped);
    tcase_add_test(tc, waiter_that_leaves_meanwhile_is_not_skipped);

    tc = forged_group(s, "missed");
    tcase_add_test(tc, signal_that_wakes_one_is_none_that_was_missed);
    tcase_add_test(tc, signal_that_wakes_nobody_is_a_violation);
    tcase_add_test(tc, each_signal_wakes_one_of_its_own);
    tcase_add_test(tc, signal_before_the_waiter_is_not_kept);
    tcase_add_test(tc, refused_signal_is_not_missed);
    tcase_add_test(tc, broadcast_leaves_nobody);
    tcase_add_test(tc, broadcast_does_not_wake_who_came_later);
    tcase_add_test(tc, signal_that_comes_later_is_not_missed);
    tcase_add_test(tc, signal_that_never_comes_is_a_violation);
    tcase_add_test(tc, signal_of_a_killed_process_need_not_come);

    tc = forged_group(s, "eaten");
    tcase_add_test(tc, signal_that_was_used_is_over);
    tcase_add_test(tc, owner_that_died_is_no_reason_to_pass_a_signal_on);
    tcase_add_test(tc, signal_of_a_wait_that_did_not_use_it_is_eaten);
    tcase_add_test(tc, signal_that_comes_after_the_return_is_eaten);
    tcase_add_test(tc, signal_that_is_passed_on_is_not_eaten);
    tcase_add_test(tc, signal_that_is_kept_until_it_is_overdue_is_eaten);
    tcase_add_test(tc, signal_of_a_dead_process_is_passed_on);
    tcase_add_test(tc, one_signal_makes_not_two_good);
    tcase_add_test(tc, signal_with_nobody_to_pass_it_to_is_gone);

    tc = forged_group(s, "acked");
    tcase_add_test(tc, signal_is_acknowledged_after_the_return);
    tcase_add_test(tc, acknowledgement_before_the_lock_is_a_violation);
    tcase_add_test(tc, thread_may_be_slow_to_record_its_return);
    tcase_add_test(tc, acknowledgement_of_one_that_was_killed_on_its_way_is_a_violation);
    tcase_add_test(tc, killed_process_may_have_returned_just_before);
    tcase_add_test(tc, overdue_signal_may_be_taken_from_a_slow_one);

    tc = forged_group(s, "overdue");
    tcase_add_test(tc, overdue_signal_that_a_script_leaves_is_a_violation);
    tcase_add_test(tc, overdue_signal_goes_to_the_next);
    tcase_add_test(tc, signal_whose_time_goes_on_is_not_overdue);

    tc = forged_group(s, "once");
    tcase_add_test(tc, an_id_joins_once);
}

static Suite *make_suite(void)
{
    Suite *s = suite_create("judge of conditions");
    add_server_rules(s);

    TCase *tc = forged_group(s, "items");
    tcase_add_test(tc, item_for_which_a_thread_sleeps_is_a_violation);
    tcase_add_test(tc, thread_may_sleep_while_there_are_no_items);
    tcase_add_test(tc, thread_may_sleep_while_others_trade);
    tcase_add_test(tc, room_for_which_a_thread_sleeps_is_a_violation);

    tc = forged_group(s, "calls");
    tcase_add_test(tc, wait_times_out_at_its_deadline);
    tcase_add_test(tc, wait_that_times_out_before_its_deadline_is_a_violation);
    tcase_add_test(tc, wait_long_after_its_deadline_is_a_violation);
    tcase_add_test(tc, code_without_a_reason_is_a_violation);
    tcase_add_test(tc, lock_without_its_levels_is_a_violation);
    tcase_add_test(tc, signal_returns_within_the_command_timeout);

    tc = forged_group(s, "lock");
    tcase_add_test(tc, lock_is_free_during_a_wait);
    tcase_add_test(tc, lock_is_held_until_the_wait_gives_it_up);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
