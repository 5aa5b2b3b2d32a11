/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The history check itself, with forged histories: each rule kept, and broken. */
#include "history.h"

#include "suite.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { A, B, C, D };

static struct history *h;

/* A, B and C ask in this order. */
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

START_TEST(a_grant_before_an_earlier_ticket_is_not)
{
    history_grant(h, A, 10);
    history_grant(h, C, 11);
    history_grant(h, B, 12);
    UNFAIR("order");
}
END_TEST

START_TEST(grants_from_the_end_of_the_queue_are_not)
{
    history_grant(h, C, 10);
    history_grant(h, B, 11);
    history_grant(h, A, 12);
    UNFAIR("order");
}
END_TEST

START_TEST(a_second_grant_for_one_ask_is_not)
{
    history_grant(h, A, 10);
    history_grant(h, B, 11);
    history_grant(h, B, 12);
    history_grant(h, C, 13);
    UNFAIR("twice");
}
END_TEST

START_TEST(a_grant_to_who_has_not_asked_is_not)
{
    history_grant(h, D, 10);
    UNFAIR("unasked");
}
END_TEST

START_TEST(a_patient_waiter_that_is_never_granted_is_not)
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

START_TEST(who_timed_out_is_passed_over)
{
    history_out(h, B);
    history_grant(h, A, 10);
    history_grant(h, C, 11);
    FAIR();
}
END_TEST

START_TEST(who_timed_out_must_not_be_granted)
{
    history_out(h, B);
    history_grant(h, A, 10);
    history_grant(h, B, 11);
    history_grant(h, C, 12);
    UNFAIR("gone");
}
END_TEST

START_TEST(who_is_dead_is_passed_over)
{
    history_dead(h, B, 9);
    history_grant(h, A, 10);
    history_grant(h, C, 11);
    FAIR();
}
END_TEST

START_TEST(who_died_as_holder_may_have_been_granted)
{
    history_dead(h, B, 11);
    history_grant(h, A, 10);
    history_grant(h, B, 11);
    history_seen(h, B, 11);
    history_grant(h, C, 12);
    FAIR();
}
END_TEST

START_TEST(who_is_dead_must_not_be_granted)
{
    history_dead(h, B, 9);
    history_grant(h, A, 10);
    history_grant(h, B, 11);
    history_grant(h, C, 12);
    UNFAIR("dead");
}
END_TEST

START_TEST(who_is_dead_must_not_be_seen_as_holder)
{
    history_dead(h, B, 10);
    history_grant(h, A, 10);
    history_seen(h, B, 11); /* a dead one logs nothing */
    history_grant(h, C, 12);
    UNFAIR("dead");
}
END_TEST

START_TEST(a_token_that_comes_again_is_not)
{
    history_grant(h, A, 10);
    history_grant(h, B, 10);
    history_grant(h, C, 11);
    UNFAIR("tokens");
}
END_TEST

START_TEST(a_token_that_falls_is_not)
{
    history_grant(h, A, 10);
    history_grant(h, B, 12);
    history_grant(h, C, 11);
    UNFAIR("tokens");
}
END_TEST

START_TEST(a_ticket_that_comes_again_is_not)
{
    history_ask(h, D, 1790000000000006);
    UNFAIR("tickets");
}
END_TEST

START_TEST(a_ticket_below_an_earlier_ones_is_not)
{
    history_ask(h, D, 1790000000000002);
    UNFAIR("tickets");
}
END_TEST

START_TEST(another_holder_than_the_server_has_is_not)
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

/* ---- queues seen under contention */

#define QUEUE(token, ...)                                                                \
    history_queue(h, (token), (const long[]){ __VA_ARGS__ },                             \
                  sizeof((const long[]){ __VA_ARGS__ }) / sizeof(long))

/* A, B, C and A again. */
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

START_TEST(a_queue_that_is_served_in_another_order_is_not)
{
    go_round();
    QUEUE(10, C, B);
    ck_assert(begins(history_queue_fault(h), "overtaken: "));
}
END_TEST

START_TEST(who_came_after_a_queue_must_not_be_before_its_last)
{
    go_round();
    QUEUE(11, C, B); /* A came later, and B waits still */
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
    tcase_add_test(tc, a_grant_before_an_earlier_ticket_is_not);
    tcase_add_test(tc, grants_from_the_end_of_the_queue_are_not);
    tcase_add_test(tc, a_second_grant_for_one_ask_is_not);
    tcase_add_test(tc, a_grant_to_who_has_not_asked_is_not);
    tcase_add_test(tc, a_patient_waiter_that_is_never_granted_is_not);
    tcase_add_test(tc, the_last_one_must_be_granted_too);
    tcase_add_test(tc, who_timed_out_is_passed_over);
    tcase_add_test(tc, who_timed_out_must_not_be_granted);
    tcase_add_test(tc, who_is_dead_is_passed_over);
    tcase_add_test(tc, who_died_as_holder_may_have_been_granted);
    tcase_add_test(tc, who_is_dead_must_not_be_granted);
    tcase_add_test(tc, who_is_dead_must_not_be_seen_as_holder);
    tcase_add_test(tc, a_token_that_comes_again_is_not);
    tcase_add_test(tc, a_token_that_falls_is_not);
    tcase_add_test(tc, a_ticket_that_comes_again_is_not);
    tcase_add_test(tc, a_ticket_below_an_earlier_ones_is_not);
    tcase_add_test(tc, another_holder_than_the_server_has_is_not);
    suite_add_tcase(s, tc);

    TCase *queues = tcase_create("queues");
    tcase_add_checked_fixture(queues, open_history, close_history);
    tcase_add_test(queues, a_queue_that_is_served_as_it_was_seen_is_fair);
    tcase_add_test(queues, a_queue_that_is_served_in_another_order_is_not);
    tcase_add_test(queues, who_came_after_a_queue_must_not_be_before_its_last);
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
