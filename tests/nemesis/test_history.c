/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of histories (history.h), with forged histories: each rule kept, and
 * broken. */
#include "history.h"

#include "suite.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { A, B, C, D };

static struct history *h;

/* A, B and C request in this order. */
static void open_history(void)
{
    h = history_new();
    history_ask(h, A, 1790000000000001);
    history_ask(h, B, 1790000000000005);
    history_ask(h, C, 1790000000000006);
}

static void close_history(void)
{
    history_free(h);
}

static bool begins(const char *why, const char *rule)
{
    return why && strncmp(why, rule, strlen(rule)) == 0;
}

#define FAIR() ck_assert_ptr_null(history_fault(h))
#define UNFAIR(rule) ck_assert_msg(begins(history_fault(h), rule ": "), "not " rule)

START_TEST(grants_in_the_order_of_tickets_are_fair)
{
    history_grant(h, A, 10);
    history_grant(h, B, 11);
    history_grant(h, C, 20);
    FAIR();
}
END_TEST

START_TEST(grant_before_an_earlier_ticket_is_a_violation)
{
    history_grant(h, A, 10);
    history_grant(h, C, 11);
    history_grant(h, B, 12);
    UNFAIR("order");
}
END_TEST

START_TEST(grants_from_the_end_of_the_queue_are_a_violation)
{
    history_grant(h, C, 10);
    history_grant(h, B, 11);
    history_grant(h, A, 12);
    UNFAIR("order");
}
END_TEST

START_TEST(second_grant_for_one_request_is_a_violation)
{
    history_grant(h, A, 10);
    history_grant(h, B, 11);
    history_grant(h, B, 12);
    history_grant(h, C, 13);
    UNFAIR("twice");
}
END_TEST

START_TEST(grant_without_a_request_is_a_violation)
{
    history_grant(h, D, 10);
    UNFAIR("unasked");
}
END_TEST

START_TEST(patient_waiter_without_a_grant_is_a_violation)
{
    history_grant(h, A, 10);
    history_grant(h, C, 11);
    UNFAIR("forgotten");
}
END_TEST

START_TEST(the_last_one_must_be_granted_too)
{
    history_grant(h, A, 10);
    history_grant(h, B, 11);
    UNFAIR("forgotten");
}
END_TEST

START_TEST(timed_out_waiter_may_be_skipped)
{
    history_out(h, B);
    history_grant(h, A, 10);
    history_grant(h, C, 11);
    FAIR();
}
END_TEST

START_TEST(timed_out_waiter_must_not_be_granted)
{
    history_out(h, B);
    history_grant(h, A, 10);
    history_grant(h, B, 11);
    history_grant(h, C, 12);
    UNFAIR("gone");
}
END_TEST

START_TEST(dead_waiter_may_be_skipped)
{
    history_dead(h, B, 9);
    history_grant(h, A, 10);
    history_grant(h, C, 11);
    FAIR();
}
END_TEST

START_TEST(waiter_that_died_as_holder_may_have_been_granted)
{
    history_dead(h, B, 11);
    history_grant(h, A, 10);
    history_grant(h, B, 11);
    history_seen(h, B, 11);
    history_grant(h, C, 12);
    FAIR();
}
END_TEST

START_TEST(dead_waiter_must_not_be_granted)
{
    history_dead(h, B, 9);
    history_grant(h, A, 10);
    history_grant(h, B, 11);
    history_grant(h, C, 12);
    UNFAIR("dead");
}
END_TEST

START_TEST(dead_waiter_must_not_be_seen_as_holder)
{
    history_dead(h, B, 10);
    history_grant(h, A, 10);
    history_seen(h, B, 11); /* a dead process logs nothing */
    history_grant(h, C, 12);
    UNFAIR("dead");
}
END_TEST

START_TEST(repeated_token_is_a_violation)
{
    history_grant(h, A, 10);
    history_grant(h, B, 10);
    history_grant(h, C, 11);
    UNFAIR("tokens");
}
END_TEST

START_TEST(falling_token_is_a_violation)
{
    history_grant(h, A, 10);
    history_grant(h, B, 12);
    history_grant(h, C, 11);
    UNFAIR("tokens");
}
END_TEST

START_TEST(repeated_ticket_is_a_violation)
{
    history_ask(h, D, 1790000000000006);
    UNFAIR("tickets");
}
END_TEST

START_TEST(ticket_below_an_earlier_one_is_a_violation)
{
    history_ask(h, D, 1790000000000002);
    UNFAIR("tickets");
}
END_TEST

START_TEST(holder_other_than_the_servers_is_a_violation)
{
    history_grant(h, A, 10);
    history_grant(h, B, 11);
    history_grant(h, C, 12);
    history_seen(h, A, 10);
    FAIR();
    history_seen(h, C, 11);
    UNFAIR("seen");
}
END_TEST

/* ---- queues that were seen while waiters request again and again */

#define QUEUE(token, ...)                                                                \
    history_queue(h, (token), (const long[]){ __VA_ARGS__ },                             \
                  sizeof((const long[]){ __VA_ARGS__ }) / sizeof(long))

/* A, B, C and A again get the lock. */
static void go_round(void)
{
    history_grant(h, A, 10);
    history_grant(h, B, 11);
    history_grant(h, C, 12);
    history_grant(h, A, 13);
}

START_TEST(a_queue_that_is_served_as_it_was_seen_is_fair)
{
    go_round();
    QUEUE(10, B, C);
    QUEUE(11, C, A);
    QUEUE(12, A);
    ck_assert_ptr_null(history_queue_fault(h));
}
END_TEST

START_TEST(queue_served_in_another_order_is_a_violation)
{
    go_round();
    QUEUE(10, C, B);
    ck_assert(begins(history_queue_fault(h), "overtaken: "));
}
END_TEST

START_TEST(newcomer_must_not_precede_the_last_of_a_queue)
{
    go_round();
    QUEUE(11, C, B); /* A came later, and B still waits */
    ck_assert(begins(history_queue_fault(h), "overtaken: "));
}
END_TEST

START_TEST(a_queue_must_be_served_to_its_end)
{
    go_round();
    QUEUE(12, A, B);
    ck_assert(begins(history_queue_fault(h), "forgotten: "));
}
END_TEST

START_TEST(a_holder_that_was_seen_must_say_so)
{
    go_round();
    QUEUE(9, A, B);
    ck_assert(begins(history_queue_fault(h), "unknown: "));
}
END_TEST

START_TEST(tokens_under_contention_must_grow)
{
    go_round();
    history_grant(h, B, 13);
    ck_assert(begins(history_queue_fault(h), "tokens: "));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("history");
    TCase *tc = tcase_create("asks");
    tcase_add_checked_fixture(tc, open_history, close_history);
    tcase_add_test(tc, grants_in_the_order_of_tickets_are_fair);
    tcase_add_test(tc, grant_before_an_earlier_ticket_is_a_violation);
    tcase_add_test(tc, grants_from_the_end_of_the_queue_are_a_violation);
    tcase_add_test(tc, second_grant_for_one_request_is_a_violation);
    tcase_add_test(tc, grant_without_a_request_is_a_violation);
    tcase_add_test(tc, patient_waiter_without_a_grant_is_a_violation);
    tcase_add_test(tc, the_last_one_must_be_granted_too);
    tcase_add_test(tc, timed_out_waiter_may_be_skipped);
    tcase_add_test(tc, timed_out_waiter_must_not_be_granted);
    tcase_add_test(tc, dead_waiter_may_be_skipped);
    tcase_add_test(tc, waiter_that_died_as_holder_may_have_been_granted);
    tcase_add_test(tc, dead_waiter_must_not_be_granted);
    tcase_add_test(tc, dead_waiter_must_not_be_seen_as_holder);
    tcase_add_test(tc, repeated_token_is_a_violation);
    tcase_add_test(tc, falling_token_is_a_violation);
    tcase_add_test(tc, repeated_ticket_is_a_violation);
    tcase_add_test(tc, ticket_below_an_earlier_one_is_a_violation);
    tcase_add_test(tc, holder_other_than_the_servers_is_a_violation);
    suite_add_tcase(s, tc);

    TCase *queues = tcase_create("queues");
    tcase_add_checked_fixture(queues, open_history, close_history);
    tcase_add_test(queues, a_queue_that_is_served_as_it_was_seen_is_fair);
    tcase_add_test(queues, queue_served_in_another_order_is_a_violation);
    tcase_add_test(queues, newcomer_must_not_precede_the_last_of_a_queue);
    tcase_add_test(queues, a_queue_must_be_served_to_its_end);
    tcase_add_test(queues, a_holder_that_was_seen_must_say_so);
    tcase_add_test(queues, tokens_under_contention_must_grow);
    suite_add_tcase(s, queues);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
