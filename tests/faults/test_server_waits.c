/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiters whose polls get errors, or replies that make no sense, and holds whose server
 * is away: when the library asks again, and which threads get an error. The proxy answers
 * in the server's place. `x` is a worker whose client goes through it.
 */
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOLD_MS = 200,       /* of another holder, by hand: the poll comes when it ends */
    PRESENCE_MS = 30000, /* the longest: a poll each 10 s, unless a reply says other */
    WATCHED_MS = 600,
    POLLS_MAX = 10, /* in that time: pauses of 20, 40, 80, then of 150 ms */
    ASKS_MAX = 12,  /* likewise, of a waiter that asks itself */
    LEASE_MS = 600,
    MANY = 8 /* locks */
};

static const char denied[] = "-NOPERM this user has no permissions to do this\r\n";

static struct worker x;

static void start_x(const struct scene_times *times, const char *options)
{
    scene_worker(&x, test_proxy_url(scene_proxy), times, "N", options);
}

static void open_scene(void)
{
    scene_open();
    memset(&x, 0, sizeof(x));
}

static void close_scene(void)
{
    worker_end(&x);
    scene_close();
}

static int answer(enum rlk_script_id script, const char *text, unsigned count)
{
    return SCENE_RULE(script, .on = TEST_ON_REQUEST, .action = TEST_ANSWER, .text = text,
                      .count = count);
}

static int watch(enum rlk_script_id script)
{
    return SCENE_RULE(script, .on = TEST_ON_REQUEST, .action = TEST_WATCH);
}

/* ---- refused for good */

/* Two threads of x wait for a lock that is never released; then every request of this
 * client is refused. */
static void check_refused_waiters(const char *verb, enum rlk_script_id acquire,
                                  enum rlk_script_id refresh, const char *text,
                                  const char *code)
{
    scene_hold_by_hand("N", test_ms(PRESENCE_MS));
    scene_says(&x, "ok", "async t %s m", verb);
    scene_says(&x, "ok", "async u %s m", verb);
    int polls = watch(refresh);
    ck_assert(test_proxy_wait_hits(scene_proxy, polls, 1, SCENE_SOON_MS));
    answer(acquire, text, 0);
    answer(refresh, text, 0);
    scene_worker_ends(&x, "t", code);
    scene_worker_ends(&x, "u", code);
    test_proxy_remove_all(scene_proxy);
    test_redis_do(scene_redis, "FLUSHALL");
}

START_TEST(permanently_refused_waiter_gets_an_error)
{
    start_x(SCENE_TIMES(.presence = test_ms(300)), "");
    check_refused_waiters("lock", RLK_MUTEX_ACQUIRE, RLK_MUTEX_REFRESH, denied, "EACCES");
    check_refused_waiters("lock", RLK_MUTEX_ACQUIRE, RLK_MUTEX_REFRESH,
                          "-XYZ something that is to come\r\n", "EPROTO");
}
END_TEST

START_TEST(permanently_refused_waiter_of_a_fair_lock_gets_an_error)
{
    start_x(SCENE_TIMES(.presence = test_ms(300)), "fair=1");
    check_refused_waiters("lock", RLK_FAIR_ACQUIRE, RLK_FAIR_REFRESH, denied, "EACCES");
}
END_TEST

START_TEST(permanently_refused_readers_and_writers_get_an_error)
{
    start_x(SCENE_TIMES(.presence = test_ms(300)), "rwlock=1");
    check_refused_waiters("rdlock", RLK_RWLOCK_READ, RLK_RWLOCK_REFRESH, denied,
                          "EACCES");
    check_refused_waiters("lock", RLK_RWLOCK_WRITE, RLK_RWLOCK_REFRESH, denied, "EACCES");
}
END_TEST

START_TEST(a_waiter_whose_polls_alone_are_refused_gets_the_lock_by_asking)
{
    start_x(NULL, "");
    scene_hold_by_hand("N", test_ms(PRESENCE_MS));
    int asks = watch(RLK_MUTEX_ACQUIRE);
    int polls = answer(RLK_MUTEX_REFRESH, denied, 0);
    scene_worker_waits(&x, "N", 1);
    ck_assert(test_proxy_wait_hits(scene_proxy, polls, 1, SCENE_SOON_MS));
    unsigned before = test_proxy_hits(scene_proxy, asks);
    scene_hold_by_hand("N", HOLD_MS);
    ck_assert(scene_worker_got(&x, 5000));
    ck_assert_uint_ge(test_proxy_hits(scene_proxy, asks), 2);
    ck_assert_uint_le(test_proxy_hits(scene_proxy, asks) - before, ASKS_MAX);
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

START_TEST(waiter_with_refused_polls_asks_without_a_storm_and_stays_in_its_place)
{
    char id[SCENE_ID_MAX], ticket[32], later[32];
    start_x(SCENE_TIMES(.presence = 600), "");
    scene_hold_by_hand("N", test_ms(PRESENCE_MS));
    scene_worker_waits(&x, "N", 1);
    ck_assert(scene_waiter("N", 0, id, ticket));
    int asks = watch(RLK_MUTEX_ACQUIRE);
    int polls = answer(RLK_MUTEX_REFRESH, denied, 0);
    ck_assert(test_proxy_wait_hits(scene_proxy, asks, 2, SCENE_SOON_MS));
    unsigned before = test_proxy_hits(scene_proxy, asks);
    test_pause_ms(WATCHED_MS);
    ck_assert_uint_le(test_proxy_hits(scene_proxy, asks) - before, ASKS_MAX);
    ck_assert_uint_le(test_proxy_hits(scene_proxy, polls), ASKS_MAX + before);
    ck_assert(scene_waiter("N", 0, id, later));
    ck_assert_str_eq(ticket, later);
    scene_release_by_hand("N");
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
}
END_TEST

/* One thread of x waits, and its poll is refused; it has asked too recently to ask again.
 * Another thread comes, whose deadline passes before anything else happens. */
static void check_timed_waiter(bool refuse_all, const char *code)
{
    start_x(SCENE_TIMES(.presence = PRESENCE_MS), "");
    scene_hold_by_hand("N", HOLD_MS);
    int polls = answer(RLK_MUTEX_REFRESH, denied, 0);
    scene_worker_waits(&x, "N", 1);
    ck_assert(test_proxy_wait_hits(scene_proxy, polls, 1, SCENE_SOON_MS));
    scene_hold_by_hand("N", test_ms(PRESENCE_MS));
    if (refuse_all)
        answer(RLK_MUTEX_ACQUIRE, denied, 0);
    scene_says(&x, "ok", "async u timedlock m 300");
    scene_worker_ends(&x, "u", code);
}

START_TEST(a_timed_waiter_whose_polls_are_refused_gets_what_a_try_would)
{
    check_timed_waiter(false, "ETIMEDOUT");
    worker_end(&x);
    test_proxy_remove_all(scene_proxy);
    test_redis_do(scene_redis, "FLUSHALL");
    check_timed_waiter(true, "EACCES");
}
END_TEST

/* ---- refused for a while, or answered with nonsense */

START_TEST(polls_that_get_an_error_are_repeated_with_growing_pauses)
{
    start_x(SCENE_TIMES(.presence = 3000), "");
    scene_hold_by_hand("N", test_ms(HOLD_MS));
    int polls = answer(RLK_MUTEX_REFRESH, "-BUSY Redis is busy running a script\r\n", 0);
    scene_says(&x, "ok", "async t lock m");
    ck_assert(test_proxy_wait_hits(scene_proxy, polls, 1, SCENE_SOON_MS));
    test_pause_ms(WATCHED_MS);
    ck_assert_uint_le(test_proxy_hits(scene_proxy, polls), POLLS_MAX);
    test_proxy_remove(scene_proxy, polls);
    ck_assert(scene_worker_got(&x, 2000));
}
END_TEST

START_TEST(a_server_that_is_a_replica_is_not_connected_to_in_a_storm)
{
    start_x(SCENE_TIMES(.presence = 3000), "");
    scene_hold_by_hand("N", test_ms(HOLD_MS));
    int polls = answer(RLK_MUTEX_REFRESH, "-READONLY You can't write\r\n", 0);
    scene_says(&x, "ok", "async t lock m");
    ck_assert(test_proxy_wait_hits(scene_proxy, polls, 1, SCENE_SOON_MS));
    unsigned before = test_proxy_counts(scene_proxy).accepted;
    test_pause_ms(WATCHED_MS);
    ck_assert_uint_le(test_proxy_counts(scene_proxy).accepted - before, POLLS_MAX);
    test_proxy_remove(scene_proxy, polls);
    ck_assert(scene_worker_got(&x, 3000));
}
END_TEST

START_TEST(a_server_that_is_a_replica_is_not_connected_to_in_a_storm_for_many_locks)
{
    char name[16];
    start_x(SCENE_TIMES(.presence = 3000), "");
    int polls = answer(RLK_MUTEX_REFRESH, "-READONLY You can't write\r\n", 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "M%d", i);
        scene_hold_by_hand(name, test_ms(HOLD_MS));
        scene_says(&x, "ok", "init m%d %s" SCENE_KIND, i, name);
        scene_says(&x, "ok", "async t%d lock m%d", i, i);
    }
    ck_assert(test_proxy_wait_hits(scene_proxy, polls, MANY, SCENE_SOON_MS));
    unsigned before = test_proxy_counts(scene_proxy).accepted;
    test_pause_ms(WATCHED_MS);
    ck_assert_uint_le(test_proxy_counts(scene_proxy).accepted - before, POLLS_MAX);
    test_proxy_remove(scene_proxy, polls);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        scene_worker_ends(&x, name, "ok");
    }
}
END_TEST

START_TEST(a_server_that_knows_no_script_though_it_was_sent_is_not_asked_in_a_storm)
{
    static const char unknown[] = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    start_x(SCENE_TIMES(.presence = 3000), "");
    scene_hold_by_hand("N", test_ms(HOLD_MS));
    int polls = answer(RLK_MUTEX_REFRESH, unknown, 0);
    int texts =
        TEST_RULE(scene_proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
                  .contains = rlk_scripts[RLK_MUTEX_REFRESH].text, .text = unknown);
    scene_says(&x, "ok", "async t lock m");
    ck_assert(test_proxy_wait_hits(scene_proxy, texts, 1, SCENE_SOON_MS));
    test_pause_ms(WATCHED_MS);
    ck_assert_uint_le(test_proxy_hits(scene_proxy, texts), POLLS_MAX);
    ck_assert_uint_le(test_proxy_hits(scene_proxy, polls), POLLS_MAX);
    test_proxy_remove(scene_proxy, texts);
    ck_assert(scene_worker_got(&x, 2000));
}
END_TEST

/* By an ACL, or by a proxy before the server that knows no PING on a subscription. */
START_TEST(mailbox_with_a_refused_PING_stays_open)
{
    start_x(SCENE_TIMES(.presence = 300, .command = 300), "");
    scene_hold_by_hand("N", test_ms(PRESENCE_MS));
    scene_worker_waits(&x, "N", 1);
    int pings = TEST_RULE(scene_proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
                          .contains = "PING", .text = denied);
    ck_assert(test_proxy_wait_hits(scene_proxy, pings, 1, SCENE_SOON_MS));
    unsigned before = test_proxy_counts(scene_proxy).accepted;
    unsigned seen = test_proxy_hits(scene_proxy, pings);
    ck_assert(test_proxy_wait_hits(scene_proxy, pings, seen + 3, SCENE_SOON_MS));
    ck_assert_uint_eq(test_proxy_counts(scene_proxy).accepted, before);
    scene_release_by_hand("N");
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
}
END_TEST

static const char *const nonsense[] = {
    "+OK\r\n",
    "$-1\r\n",
    ":1\r\n",
    "*0\r\n",
    "*8\r\n:1\r\n:-2\r\n:0\r\n:0\r\n$4\r\nwhat\r\n:-1\r\n:0\r\n$0\r\n\r\n",
    "HTTP/1.1 400 Bad Request\r\n",
};

START_TEST(a_poll_that_gets_nonsense_is_repeated_soon)
{
    start_x(SCENE_TIMES(.presence = PRESENCE_MS), "");
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        scene_hold_by_hand("N", test_ms(HOLD_MS));
        int polls = answer(RLK_MUTEX_REFRESH, nonsense[i], 1);
        scene_says(&x, "ok", "async t lock m");
        ck_assert(test_proxy_wait_hits(scene_proxy, polls, 1, SCENE_SOON_MS));
        ck_assert(scene_worker_got(&x, 2000)); /* a third of the presence is 10 s */
        scene_says(&x, "ok", "on t unlock m");
        test_proxy_remove(scene_proxy, polls);
    }
}
END_TEST

/* ---- away */

START_TEST(a_hold_survives_a_server_that_is_away_for_most_of_its_lease)
{
    /* from the beginning the waiter for another lock wants a connection, in vain */
    start_x(SCENE_TIMES(.lease = test_ms(LEASE_MS), .presence = test_ms(150)), "");
    scene_says(&x, "ok", "init o O" SCENE_KIND);
    scene_hold_by_hand("O", test_ms(PRESENCE_MS));
    scene_says(&x, "ok", "async u lock o");
    ck_assert(scene_wait_queued("O", 1, SCENE_SOON_MS));
    scene_says(&x, "ok", "on t lock m");
    int renewed = SCENE_RULE(RLK_MUTEX_RENEW, .on = TEST_ON_REPLY, .action = TEST_WATCH);
    for (unsigned i = 0; i < 3; i++) {
        unsigned before = test_proxy_hits(scene_proxy, renewed);
        ck_assert(test_proxy_wait_hits(scene_proxy, renewed, before + 1, SCENE_SOON_MS));
        test_proxy_set_mode(scene_proxy, TEST_PROXY_DOWN);
        test_proxy_cut(scene_proxy, 0, false);
        test_pause_ms(test_ms(LEASE_MS) * 6 / 10);
        test_proxy_set_mode(scene_proxy, TEST_PROXY_OPEN);
    }
    scene_says(&x, "ok", "on t unlock m");
    ck_assert(!worker_news(&x, "event LOST N", 0));
}
END_TEST

START_TEST(a_try_whose_answer_shares_what_is_lost_by_then_is_not_let_in)
{
    /* the reply comes after the end of the lease, and too late to ask again */
    start_x(SCENE_TIMES(.lease = test_ms(LEASE_MS), .command = test_ms(LEASE_MS + 100)),
            "rwlock=1");
    scene_says(&x, "ok", "on t rdlock m");
    SCENE_RULE(RLK_RWLOCK_RENEW, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    SCENE_RULE(RLK_RWLOCK_READ, .on = TEST_ON_REPLY, .action = TEST_DELAY,
               .delay_ms = test_ms(LEASE_MS + 100) - 30);
    const char *code = worker_ask(&x, "on u tryrdlock m", SCENE_SOON_MS);
    ck_assert(code && (!strcmp(code, "EBUSY") || !strcmp(code, "ENOTCONN")));
    ck_assert(worker_news(&x, "event LOST N", 0));
    scene_says(&x, "ESTALE", "on t rdunlock m");
    scene_says(&x, "EPERM", "on u rdunlock m");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("server waits");

    TCase *refused = scene_tcase(s, "refused", open_scene, close_scene);
    tcase_add_test(refused, permanently_refused_waiter_gets_an_error);
    tcase_add_test(refused, permanently_refused_waiter_of_a_fair_lock_gets_an_error);
    tcase_add_test(refused, permanently_refused_readers_and_writers_get_an_error);
    tcase_add_test(refused,
                   a_waiter_whose_polls_alone_are_refused_gets_the_lock_by_asking);
    tcase_add_test(refused,
                   waiter_with_refused_polls_asks_without_a_storm_and_stays_in_its_place);
    tcase_add_test(refused, a_timed_waiter_whose_polls_are_refused_gets_what_a_try_would);

    TCase *again = scene_tcase(s, "again", open_scene, close_scene);
    tcase_add_test(again, polls_that_get_an_error_are_repeated_with_growing_pauses);
    tcase_add_test(again, a_server_that_is_a_replica_is_not_connected_to_in_a_storm);
    tcase_add_test(
        again, a_server_that_is_a_replica_is_not_connected_to_in_a_storm_for_many_locks);
    tcase_add_test(
        again, a_server_that_knows_no_script_though_it_was_sent_is_not_asked_in_a_storm);
    tcase_add_test(again, mailbox_with_a_refused_PING_stays_open);
    tcase_add_test(again, a_poll_that_gets_nonsense_is_repeated_soon);

    TCase *away = scene_tcase(s, "away", open_scene, close_scene);
    tcase_add_test(away, a_hold_survives_a_server_that_is_away_for_most_of_its_lease);
    tcase_add_test(away, a_try_whose_answer_shares_what_is_lost_by_then_is_not_let_in);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
