/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone harness */
/* The nemesis's faults of links, each seen by plain connections through the URLs that its
 * workers get. Times are judged against the fault's own record. */
#include "faultscene.h"

#include "suite.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The client's connection was closed, the neighbour's was not, and the client may connect
 * again. */
static void check_closed(void)
{
    ck_assert_ptr_null(test_redis_recv(fs_client, FS_SOON_MS));
    ck_assert(test_redis_closed(fs_client));
    ck_assert(fs_answers(fs_neighbour));
    test_redis_close(fs_client);
    fs_client = fs_connect_as(0);
    ck_assert(fs_client && fs_answers(fs_client));
}

/* ---- links: cuts */

START_TEST(cut_closes_all_of_a_link_and_of_no_other)
{
    struct nem_step step = fs_step(NEM_CUT, 0, 0);
    struct test_redis *second = fs_connect_as(0);
    test_redis_do(second, "PING");
    fs_run_through(&step);
    ck_assert_ptr_null(test_redis_recv(second, FS_SOON_MS));
    ck_assert(test_redis_closed(second));
    test_redis_close(second);
    check_closed();
}
END_TEST

START_TEST(cut_one_closes_the_connection_that_it_counts)
{
    struct nem_step step = fs_step(NEM_CUT_ONE, 0, 0);
    struct test_redis *second = fs_connect_as(0);
    test_redis_do(second, "PING");
    step.connection = 4; /* of 2 connections: the older one */
    fs_run_through(&step);
    ck_assert(fs_answers(second));
    test_redis_close(second);
    check_closed();
}
END_TEST

START_TEST(reset_is_seen_as_a_reset)
{
    struct nem_step step = fs_step(NEM_RESET, 0, 0);
    char byte;
    fs_run_through(&step);
    ck_assert_int_eq(recv(test_redis_fd(fs_client), &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    ck_assert(fs_answers(fs_neighbour));
}
END_TEST

START_TEST(fault_of_all_links_is_every_process_s)
{
    struct nem_step step = fs_step(NEM_CUT, 0, 0);
    step.target = NEM_ALL;
    fs_run_through(&step);
    ck_assert_ptr_null(test_redis_recv(fs_client, FS_SOON_MS));
    ck_assert_ptr_null(test_redis_recv(fs_neighbour, FS_SOON_MS));
    ck_assert(test_redis_closed(fs_client) && test_redis_closed(fs_neighbour));
}
END_TEST

/* ---- links: one connection */

/* Sends requests on a connection while a plan runs, and records the times. */
struct asking {
    struct test_redis *redis;
    size_t count;
    struct {
        int64_t sent, answered;
    } asks[4096];
};

static void *ask_meanwhile(void *arg)
{
    enum {
        MOST =
            sizeof(((struct asking *)arg)->asks) / sizeof(((struct asking *)arg)->asks[0])
    };
    struct asking *a = arg;
    while (!fs_is_over() && a->count < MOST) {
        a->asks[a->count].sent = fs_now();
        test_redis_send(a->redis, "PING");
        if (!test_redis_recv(a->redis, FS_SOON_MS))
            break;
        a->asks[a->count++].answered = fs_now();
        test_pause_ms(1);
    }
    return NULL;
}

/* How many of the requests sent within the fault, before it began to end, were answered
 * within `ms`. */
static unsigned answered_within(const struct asking *a, const struct nem_step *step,
                                long ms)
{
    unsigned count = 0;
    int64_t end = fs_records[0].begin + step->length_ms * FS_NS_PER_MS;
    for (size_t i = 0; i < a->count; i++)
        count += a->asks[i].sent >= fs_records[0].begin && a->asks[i].answered <= end &&
                 a->asks[i].answered - a->asks[i].sent < ms * FS_NS_PER_MS;
    return count;
}

static const struct {
    enum nem_kind kind;
    int64_t amount;
    long slow_ms; /* a reply is late by at least this time; 0: the connection ends */
} of_one[] = {
    { NEM_CUT_ONE, 0, 0 },      { NEM_RESET, 0, 0 },       { NEM_FREEZE, 0, 150 },
    { NEM_DELAY, 20, 40 },      { NEM_DRIP, 5, 50 },       { NEM_LOSE_REQUESTS, 0, 0 },
    { NEM_LOSE_REPLIES, 0, 0 }, { NEM_CUT_REPLIES, 3, 0 }, { NEM_HALF_CLOSE, 1, 0 },
};

/* The fault affects the client's connection; a thread uses another one of the same
 * process. */
static void meet_one(struct nem_step *step, long slow_ms)
{
    enum { QUICK = 5 };
    struct asking asking = { .redis = fs_connect_as(0) };
    pthread_t thread;
    int64_t longest = 0;
    test_redis_do(asking.redis, "PING");
    fs_begin(step);
    ck_assert_int_eq(pthread_create(&thread, NULL, ask_meanwhile, &asking), 0);
    if (slow_ms > 0)
        longest = fs_longest_wait(fs_client, "INCR");
    else
        while (step->length_ms > 0 && !test_redis_closed(fs_client) && !fs_is_over()) {
            test_redis_send(fs_client, "PING");
            fs_await(fs_client);
        }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    fs_finish();
    fs_check_record(step);
    ck_assert_int_ge(longest, slow_ms);
    /* the fault is recorded a moment before it begins: one or two replies are always
     * quick */
    if (step->length_ms > 0)
        ck_assert_uint_ge(
            answered_within(&asking, step, slow_ms > 0 ? slow_ms : FS_SOON_MS), QUICK);
    ck_assert(fs_answers(asking.redis));
    test_redis_close(asking.redis);
}

START_TEST(fault_of_one_connection_spares_the_others_of_the_link)
{
    struct nem_step step =
        fs_step(of_one[_i].kind, of_one[_i].kind <= NEM_RESET ? 0 : FS_WINDOW_MS,
                of_one[_i].amount);
    step.connection = 2; /* the one before the newest */
    ck_assert(nem_kind_of_one(step.kind));
    meet_one(&step, of_one[_i].slow_ms);
    ck_assert_uint_gt(fs_records[0].connection, 0);
    if (step.kind != NEM_LOSE_REPLIES) /* the reply to the test's own request may be
                                          lost */
        ck_assert_uint_gt(fs_records[0].hits, 0);
    if (of_one[_i].slow_ms > 0) {
        ck_assert(fs_answers(fs_client));
    } else {
        test_redis_recv(fs_client, FS_SOON_MS);
        ck_assert(test_redis_closed(fs_client));
    }
}
END_TEST

START_TEST(every_second_possible_fault_is_of_one_connection)
{
    struct nem_plan_options o = { .seed = 1,
                                  .faults_ms = 2000000,
                                  .processes = 4,
                                  .locks = 3,
                                  .lease_ms = 1000,
                                  .gap_ms = 400,
                                  .kinds = (UINT64_C(1) << NEM_KINDS) - 1 };
    unsigned of[NEM_KINDS][2] = { { 0 } }, all = 0, one = 0;
    struct nem_plan plan;
    nem_plan_make(&plan, &o);
    for (size_t i = 0; i < plan.count; i++)
        of[plan.steps[i].kind][plan.steps[i].connection > 0]++;
    for (int kind = 0; kind < NEM_KINDS; kind++) {
        bool can = nem_kind_of_one((enum nem_kind)kind);
        ck_assert_uint_gt(of[kind][0] + of[kind][1], 0);
        ck_assert_int_eq(of[kind][1] > 0, can);
        ck_assert_int_eq(of[kind][0] > 0, kind != NEM_CUT_ONE);
        if (can && kind != NEM_CUT_ONE) {
            all += of[kind][0];
            one += of[kind][1];
        }
    }
    ck_assert_uint_gt(all + one, 400);
    ck_assert_uint_ge(100 * one, 40 * (all + one));
    ck_assert_uint_le(100 * one, 60 * (all + one));
    nem_plan_free(&plan);
}
END_TEST

/* ---- links: slow */

START_TEST(freeze_lets_pass_nothing_until_it_ends)
{
    struct nem_step step = fs_step(NEM_FREEZE, FS_WINDOW_MS, 0);
    fs_begin(&step);
    int64_t longest = fs_longest_wait(fs_client, "INCR");
    ck_assert(fs_answers(fs_neighbour));
    fs_finish();
    fs_check_record(&step);
    ck_assert_int_ge(longest, step.length_ms / 2);
    ck_assert(fs_answers(fs_client));
}
END_TEST

START_TEST(delay_is_each_way_and_over_at_its_end)
{
    struct nem_step step = fs_step(NEM_DELAY, FS_WINDOW_MS, 40);
    fs_begin(&step);
    ck_assert_int_ge(fs_longest_wait(fs_client, "INCR"), 2 * step.amount);
    fs_finish();
    fs_check_record(&step);
}
END_TEST

START_TEST(drip_passes_byte_by_byte)
{
    struct nem_step step = fs_step(NEM_DRIP, FS_WINDOW_MS, 5);
    fs_begin(&step);
    /* *2 $4 INCR $1 k and :1 with their ends: 21 + 4 bytes, the first ones at once */
    ck_assert_int_ge(fs_longest_wait(fs_client, "INCR"), (20 + 3) * step.amount);
    fs_finish();
    fs_check_record(&step);
}
END_TEST

/* ---- links: losses */

/* Increments a key until a reply is lost; returns how many replies came. */
static long long count_up(void)
{
    const redisReply *reply;
    long long answered = 0;
    do {
        test_redis_send(fs_client, "INCR", "k");
        reply = fs_await(fs_client);
        answered += reply != NULL;
    } while (reply);
    return answered;
}

START_TEST(lost_request_is_not_executed)
{
    struct nem_step step = fs_step(NEM_LOSE_REQUESTS, FS_WINDOW_MS, 0);
    fs_begin(&step);
    long long answered = count_up();
    ck_assert(fs_answers(fs_neighbour));
    fs_finish();
    fs_check_record(&step);
    ck_assert(!fs_answers(fs_client)); /* otherwise a reply would be that of another
                                          request */
    fs_reconnect();
    ck_assert(fs_answers(fs_client));
    ck_assert_int_eq(test_redis_int(fs_redis, "INCR", "k"), answered + 1);
}
END_TEST

START_TEST(lost_reply_is_of_an_executed_request)
{
    struct nem_step step = fs_step(NEM_LOSE_REPLIES, FS_WINDOW_MS, 0);
    fs_begin(&step);
    long long answered = count_up();
    fs_finish();
    fs_check_record(&step);
    ck_assert(!fs_answers(fs_client));
    fs_reconnect();
    ck_assert(fs_answers(fs_client));
    ck_assert_int_eq(test_redis_int(fs_redis, "INCR", "k"), answered + 2);
}
END_TEST

START_TEST(cut_reply_ends_in_its_midst)
{
    struct nem_step step = fs_step(NEM_CUT_REPLIES, FS_WINDOW_MS, 3);
    char text[16] = "";
    ssize_t len;
    fs_begin(&step);
    do { /* whole replies come before the fault begins */
        test_redis_send(fs_client, "PING");
        len = recv(test_redis_fd(fs_client), text, sizeof(text), 0);
    } while (len == 7 && !fs_is_over());
    ck_assert_int_eq(len, 3);
    ck_assert_int_eq(recv(test_redis_fd(fs_client), text + 3, 1, 0), 0);
    ck_assert_int_eq(memcmp(text, "+PO", 3), 0);
    fs_finish();
    fs_check_record(&step);
}
END_TEST

START_TEST(lost_messages_are_those_of_channels_only)
{
    struct nem_step step = fs_step(NEM_LOSE_MESSAGES, FS_WINDOW_MS, 0);
    struct test_redis *other = fs_connect_as(0);
    long long sent = 0, received = 0;
    test_redis_do(fs_client, "SUBSCRIBE", "c");
    fs_begin(&step);
    while (!fs_is_over()) {
        ck_assert_int_eq(test_redis_int(fs_redis, "PUBLISH", "c", "1"), 1);
        sent++;
        ck_assert(fs_answers(other));
    }
    fs_finish();
    fs_check_record(&step);
    test_redis_do(fs_redis, "PUBLISH", "c", "end");
    for (;;) {
        const redisReply *reply = test_redis_recv(fs_client, FS_SOON_MS);
        ck_assert_ptr_nonnull(reply);
        if (strcmp(reply->element[2]->str, "end") == 0)
            break;
        received++;
    }
    ck_assert_int_lt(received, sent);
    test_redis_close(other);
}
END_TEST

static bool key_k_exists(void *arg)
{
    (void)arg;
    return test_redis_exists(fs_redis, "k");
}

/* Sends requests until the connection is closed. */
static void ask_until_closed(void)
{
    while (!test_redis_closed(fs_client) && !fs_is_over()) {
        test_redis_send(fs_client, "PING");
        fs_await(fs_client);
        test_redis_recv(fs_client, FS_LOOK_MS); /* the end follows the reply */
    }
    ck_assert(test_redis_closed(fs_client));
}

START_TEST(half_close_by_the_server_still_reads)
{
    struct nem_step step = fs_step(NEM_HALF_CLOSE, FS_WINDOW_MS, 1);
    static const char set[] = "SET k v\r\n";
    fs_begin(&step);
    ask_until_closed();
    ck_assert_int_gt(send(test_redis_fd(fs_client), set, sizeof(set) - 1, MSG_NOSIGNAL),
                     0);
    ck_assert(test_wait_until(key_k_exists, NULL, FS_SOON_MS));
    fs_finish();
    fs_check_record(&step);
}
END_TEST

START_TEST(half_close_towards_the_server_ends_the_connection)
{
    struct nem_step step = fs_step(NEM_HALF_CLOSE, FS_WINDOW_MS, 0);
    static const char set[] = "SET k v\r\n";
    fs_begin(&step);
    ask_until_closed();
    (void)!send(test_redis_fd(fs_client), set, sizeof(set) - 1, MSG_NOSIGNAL);
    fs_finish();
    fs_check_record(&step);
    ck_assert(!test_redis_exists(fs_redis, "k"));
    check_closed();
}
END_TEST

/* ---- links: no new connections */

START_TEST(refused_link_has_nobody_listening)
{
    struct nem_step step = fs_step(NEM_REFUSE, FS_WINDOW_MS, 0);
    fs_begin(&step);
    ask_until_closed(); /* new connections are refused before that */
    struct test_redis *r = fs_connect_as(0);
    ck_assert(!r && errno == ECONNREFUSED);
    ck_assert(fs_answers(fs_neighbour));
    fs_finish();
    fs_check_record(&step);
    check_closed();
}
END_TEST

START_TEST(refused_link_may_accept_and_close_at_once)
{
    struct nem_step step = fs_step(NEM_REFUSE, FS_WINDOW_MS, 1);
    fs_begin(&step);
    ask_until_closed();
    struct test_redis *r = fs_connect_as(0);
    ck_assert_ptr_nonnull(r);
    ck_assert(!fs_answers(r) || fs_is_over());
    test_redis_close(r);
    fs_finish();
    fs_check_record(&step);
    check_closed();
}
END_TEST

START_TEST(silent_link_accepts_and_does_not_answer)
{
    struct nem_step step = fs_step(NEM_SILENT, FS_WINDOW_MS, 0);
    fs_begin(&step);
    ask_until_closed();
    struct test_redis *r = fs_connect_as(0);
    ck_assert_ptr_nonnull(r);
    test_redis_send(r, "PING");
    const redisReply *reply = fs_await(r);
    int64_t answered = fs_now();
    fs_finish();
    fs_check_record(&step);
    if (reply) /* the link was open a moment before the record says so */
        ck_assert_int_ge(answered, fs_records[0].begin + step.length_ms * FS_NS_PER_MS);
    else
        ck_assert_ptr_nonnull(test_redis_recv(r, FS_SOON_MS));
    test_redis_close(r);
}
END_TEST

static void link_goes_down(int64_t end)
{
    struct nem_step step = fs_step(NEM_LINK_DOWN, FS_WINDOW_MS, end);
    if (!nem_faults_possible(fs_faults, NEM_LINK_DOWN)) {
        printf("skipped: link_down: no network namespaces here\n");
        return;
    }
    fs_begin(&step);
    int64_t longest = fs_longest_wait(fs_client, "INCR");
    ck_assert(fs_answers(fs_neighbour));
    fs_finish();
    fs_check_record(&step);
    ck_assert_int_ge(longest, step.length_ms / 2);
    ck_assert(fs_answers(fs_client)); /* nothing is lost, and no client has noticed */
}

START_TEST(pulled_cable_delays_until_it_is_back)
{
    link_goes_down(0);
}
END_TEST

START_TEST(interface_that_is_down_delays_until_it_is_up)
{
    link_goes_down(1);
}
END_TEST

static void add_links(Suite *suite)
{
    TCase *tc = tcase_create("links");
    tcase_add_checked_fixture(tc, fs_start, fs_stop);
    tcase_add_test(tc, cut_closes_all_of_a_link_and_of_no_other);
    tcase_add_test(tc, cut_one_closes_the_connection_that_it_counts);
    tcase_add_test(tc, reset_is_seen_as_a_reset);
    tcase_add_test(tc, fault_of_all_links_is_every_process_s);
    tcase_add_loop_test(tc, fault_of_one_connection_spares_the_others_of_the_link, 0,
                        (int)(sizeof(of_one) / sizeof(of_one[0])));
    tcase_add_test(tc, every_second_possible_fault_is_of_one_connection);
    tcase_add_test(tc, freeze_lets_pass_nothing_until_it_ends);
    tcase_add_test(tc, delay_is_each_way_and_over_at_its_end);
    tcase_add_test(tc, drip_passes_byte_by_byte);
    tcase_add_test(tc, lost_request_is_not_executed);
    tcase_add_test(tc, lost_reply_is_of_an_executed_request);
    tcase_add_test(tc, cut_reply_ends_in_its_midst);
    tcase_add_test(tc, lost_messages_are_those_of_channels_only);
    tcase_add_test(tc, half_close_by_the_server_still_reads);
    tcase_add_test(tc, half_close_towards_the_server_ends_the_connection);
    tcase_add_test(tc, refused_link_has_nobody_listening);
    tcase_add_test(tc, refused_link_may_accept_and_close_at_once);
    tcase_add_test(tc, silent_link_accepts_and_does_not_answer);
    tcase_add_test(tc, pulled_cable_delays_until_it_is_back);
    tcase_add_test(tc, interface_that_is_down_delays_until_it_is_up);
    suite_add_tcase(suite, tc);
}

int main(void)
{
    Suite *suite = suite_create("nemesis_links");
    add_links(suite);
    return test_run_suite(suite);
}
