/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* What a process knows of a condition, without a server: which messages and replies wake
 * a wait, and what the server is still to learn of it. */
#include "state/registry.h"

#include "base/clock.h"
#include "suite.h"

#include <check.h>
#include <string.h>

enum { PRESENCE_MS = 3000, OLD = 1000, NEW = 2000 };

static struct rlk_registry reg;
static struct rlk_counters counters;
static struct rlk_bell watchdog = RLK_BELL_CLOSED, subscriber = RLK_BELL_CLOSED;
static struct rlk_thread thread;
static struct rlk_condition *condition;
static struct rlk_wait *wait;

static void set_up(void)
{
    memset(&reg, 0, sizeof(reg));
    memset(&counters, 0, sizeof(counters));
    memset(&thread, 0, sizeof(thread));
    reg.client_number = 1;
    reg.uuid = "aaaaaaaa-0000-4000-8000-00000000000a";
    reg.counters = &counters;
    reg.presence_ns = PRESENCE_MS * RLK_NS_PER_MS;
    ck_assert_int_eq(rlk_bell_open(&watchdog), 0);
    ck_assert_int_eq(rlk_bell_open(&subscriber), 0);
    ck_assert_int_eq(rlk_registry_init(&reg), 0);
    reg.watchdog = &watchdog;
    reg.subscriber = &subscriber;
    thread.number = 1;
    rlk_list_init(&thread.holds);
    rlk_list_init(&thread.wake_link);
    ck_assert_int_eq(rlk_sync_cond_init(&thread.cond), 0);
    rlk_registry_lock(&reg);
    condition = rlk_condition_get_locked(&reg, "c", 1);
    ck_assert_ptr_nonnull(condition);
    wait = rlk_condition_begin_locked(condition, &thread, PRESENCE_MS);
    ck_assert_ptr_nonnull(wait);
}

static void tear_down(void)
{
    rlk_list_remove(&thread.wake_link);
    rlk_condition_put_locked(condition);
    rlk_registry_shut_locked(&reg);
    rlk_sync_mutex_unlock(&reg.mu);
    rlk_registry_destroy(&reg);
    rlk_sync_cond_destroy(&thread.cond);
    rlk_bell_close(&watchdog);
    rlk_bell_close(&subscriber);
}

/* The wait returns with the mutex. Whether the server is to learn that. */
static bool is_to_be_acknowledged(void)
{
    rlk_condition_end_locked(wait, RLK_CONDITION_RETURNED, false);
    return !rlk_list_empty(&condition->over);
}

/* rule: V11 */
START_TEST(reply_of_a_signal_is_believed_by_its_ticket)
{
    rlk_condition_joined_locked(wait, NEW);
    rlk_condition_told_own_locked(condition, &wait->id, OLD, true);
    ck_assert(!wait->told);
    ck_assert_uint_eq(condition->asleep, 1);
    rlk_condition_told_own_locked(condition, &wait->id, NEW, true);
    ck_assert(wait->told);
    ck_assert_uint_eq(condition->asleep, 0);
    ck_assert(!is_to_be_acknowledged()); /* a broadcast took the id out */
}
END_TEST

/* rule: V11 */
START_TEST(reply_before_the_answer_to_the_join_waits_for_the_ticket)
{
    rlk_condition_told_own_locked(condition, &wait->id, OLD, true);
    ck_assert(!wait->told);
    rlk_condition_joined_locked(wait, _i == 0 ? OLD : NEW);
    ck_assert_int_eq(wait->told, _i == 0);
    if (_i == 1) /* the entry with the new ticket is signalled */
        ck_assert(rlk_condition_message_locked(&reg, &wait->id, NEW, "c", 1));
    ck_assert(wait->told);
    ck_assert_int_eq(is_to_be_acknowledged(), _i == 1);
}
END_TEST

/* rule: V11 */
START_TEST(message_is_believed_by_its_ticket)
{
    if (_i == 0)
        rlk_condition_joined_locked(wait, NEW);
    ck_assert(rlk_condition_message_locked(&reg, &wait->id, OLD, "c", 1));
    if (_i == 1)
        rlk_condition_joined_locked(wait, NEW);
    ck_assert(!wait->told);
    ck_assert(rlk_condition_message_locked(&reg, &wait->id, NEW, "c", 1));
    ck_assert(wait->told);
    ck_assert(is_to_be_acknowledged());
}
END_TEST

/* rule: V4 */
START_TEST(wait_that_woke_needlessly_is_given_up)
{
    rlk_condition_joined_locked(wait, NEW);
    rlk_condition_wake_some_locked(&reg, NULL, NULL);
    ck_assert(wait->unasked && !wait->told);
    ck_assert(is_to_be_acknowledged());
    ck_assert_int_eq(wait->state, RLK_WAIT_LEFT);
}
END_TEST

/* rule: V17 */
START_TEST(broadcast_that_begins_while_another_one_is_in_flight_is_sent_too)
{
    struct rlk_condition_signals *signals = &condition->signals;

    rlk_condition_send_later_locked(condition, 0, OLD);
    ck_assert(signals->all);
    ck_assert_int_eq(signals->bar, OLD);
    signals->op.kind = RLK_OP_CONDITION_SIGNAL;
    rlk_condition_send_later_locked(condition, 0, 0); /* of waiters that joined since */
    ck_assert_int_eq(signals->bar, OLD);
    signals->all = false; /* the answer: the first one is over */
    rlk_condition_signals_over_locked(condition);
    ck_assert(signals->all && rlk_condition_has_signals(condition));
    ck_assert_int_eq(signals->bar, 0);
    signals->op.kind = RLK_OP_CONDITION_SIGNAL;
    signals->all = false;
    rlk_condition_signals_over_locked(condition);
    rlk_condition_count_signals_locked(condition, true);
    ck_assert_uint_eq(reg.conditions.signal_count, 0);
    rlk_condition_end_locked(wait, RLK_CONDITION_REMOVED, false);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("condition");
    TCase *tc = tcase_create("tickets");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, reply_of_a_signal_is_believed_by_its_ticket);
    tcase_add_loop_test(tc, reply_before_the_answer_to_the_join_waits_for_the_ticket, 0,
                        2);
    tcase_add_loop_test(tc, message_is_believed_by_its_ticket, 0, 2);
    tcase_add_test(tc, wait_that_woke_needlessly_is_given_up);
    tcase_add_test(tc, broadcast_that_begins_while_another_one_is_in_flight_is_sent_too);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
