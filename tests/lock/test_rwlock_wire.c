/* SPDX-License-Identifier: Apache-2.0 */
/* program: slow claims=W19,W21,W22 */
/*
 * Downgrades, joins, renewals and refreshes of the read-write lock when replies are lost,
 * when requests arrive after their client has given up (ghosts), and when one overtakes
 * another: S1, S2, T2, T11, W4, W18, W19, W21, W22. rwworkers.h says what `x`, `y` and
 * `z` are. Claims about both modes are loops over `modes`.
 */
#include "rwworkers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMMAND_MS = 200,
    ROOM_MS = 500, /* for a busy machine */
    LEASE_MS = 900,
    PRESENCE_MS = 450,
    STAYS_MS = 80
};

static const struct mode {
    const char *verb, *queue;
} modes[] = { { "rdlock", "rqueue" }, { "lock", "queue" } };
enum { MODES = 2 };

static bool is_not_told(void *w)
{
    return !worker_news(w, "done t", 0);
}

/* ---- downgrade: x writes, y waits to write, z to read */

static void x_writes_and_others_wait(const struct scene_times *times)
{
    start_x(times);
    start_others();
    scene_worker_does(&x, "lock");
    scene_worker_queues(&y, "N", "lock");
    scene_worker_queues(&z, "N", "rdlock");
}

static void y_is_next_after_x_and_z(void)
{
    ck_assert(is_not_told(&y));
    scene_worker_does(&x, "unlock");
    ck_assert(is_not_told(&y));
    scene_worker_does(&z, "unlock");
    got(&y);
    scene_worker_does(&y, "unlock");
    scene_nothing_is_left("N");
}

/* rule: W18 */
START_TEST(downgrade_with_lost_replies_does_not_lose_the_hold_and_lets_readers_in)
{
    char id[SCENE_ID_MAX], now[SCENE_ID_MAX];
    x_writes_and_others_wait(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    ck_assert(scene_holder("N", id));
    scene_drop_replies(RLK_RWLOCK_DOWNGRADE, 2);
    int64_t begin = test_now_ms();
    if (_i == 0) {
        scene_worker_does(&x, "downgrade");
    } else {
        scene_worker_does(&x, "rdlock");
        scene_worker_does(&x, "wrunlock");
    }
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + ROOM_MS));
    scene_says(&x, "ok SAFE", "on t state m");
    got(&z);
    ck_assert(!scene_holder("N", now));
    scene_worker_has_no_more_than(&x, scene_reader_left("N", id));
    y_is_next_after_x_and_z();
}
END_TEST

/* rule: W18 */
START_TEST(lost_downgrade_is_repeated_until_the_server_knows)
{
    char id[SCENE_ID_MAX], now[SCENE_ID_MAX];
    x_writes_and_others_wait(
        SCENE_TIMES(.lease = test_ms(3 * LEASE_MS), .command = test_ms(COMMAND_MS)));
    ck_assert(scene_holder("N", id));
    int lost =
        SCENE_RULE(RLK_RWLOCK_DOWNGRADE, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    int64_t begin = test_now_ms();
    scene_worker_does(&x, "downgrade");
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + ROOM_MS));
    unsigned sent = test_proxy_hits(scene_proxy, lost);
    ck_assert(test_proxy_wait_hits(scene_proxy, lost, sent + 1, SCENE_SOON_MS));
    ck_assert(scene_holder("N", now)); /* at the server, x still writes */
    ck_assert_str_eq(id, now);
    ck_assert(is_not_told(&z));
    scene_says(&x, "ok", "on t rdlock m"); /* for x itself, it reads */
    scene_says(&x, "EDEADLK", "on t lock m");
    scene_says(&x, "ok", "on t unlock m");
    test_proxy_remove(scene_proxy, lost);
    got(&z);
    scene_worker_has_no_more_than(&x, scene_reader_left("N", id));
    y_is_next_after_x_and_z();
}
END_TEST

/* rule: W18 */
START_TEST(downgrade_without_any_reply_is_lost_at_the_end_of_the_lease_and_not_before)
{
    x_writes_and_others_wait(
        SCENE_TIMES(.lease = test_ms(LEASE_MS), .command = test_ms(COMMAND_MS)));
    SCENE_RULE(RLK_RWLOCK_DOWNGRADE, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    scene_worker_does(&x, "downgrade");
    ck_assert_int_gt(worker_number(&x, "on t remaining m"), 0);
    ck_assert(is_not_told(&y) && is_not_told(&z));
    scene_worker_lost(&x, "N");
    ck_assert(scene_worker_got(&z, SCENE_SOON_MS)); /* because a writing has ended */
    ck_assert(is_not_told(&y));
    scene_worker_does(&z, "unlock");
    got(&y);
    scene_worker_does(&y, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

/* rule: W19 */
START_TEST(release_that_overtakes_the_downgrade_is_that_of_a_writer)
{
    char id[SCENE_ID_MAX], now[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.lease = test_ms(3 * LEASE_MS), .command = test_ms(COMMAND_MS)));
    start_others();
    scene_worker_does(&x, "lock");
    int ghosts =
        SCENE_RULE(RLK_RWLOCK_DOWNGRADE, .on = TEST_ON_REQUEST, .action = TEST_HOLD);
    scene_worker_does(&x, "downgrade");
    scene_worker_queues(&y, "N", "lock");
    scene_worker_does(&x, "unlock");
    got(&y);
    ck_assert(scene_holder("N", id));
    scene_let_go(ghosts); /* from the caller and from the watchdog */
    ck_assert(scene_holder("N", now));
    ck_assert_str_eq(id, now);
    ck_assert_int_eq(scene_count("N", "readers"), 0);
    scene_says(&y, "ok SAFE", "on t state m");
    scene_says(&x, "EBUSY", "on t tryrdlock m");
    scene_worker_does(&y, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

/* rule: W19 */
START_TEST(release_finds_the_id_of_a_downgrade_of_unknown_outcome)
{
    x_writes_and_others_wait(
        SCENE_TIMES(.lease = test_ms(3 * LEASE_MS), .command = test_ms(COMMAND_MS)));
    scene_drop_replies(RLK_RWLOCK_DOWNGRADE, 0);
    scene_worker_does(&x, "downgrade");
    got(&z);
    y_is_next_after_x_and_z();
}
END_TEST

/* rule: W19 */
START_TEST(repeated_downgrade_touches_no_newer_hold_of_its_client)
{
    char id[SCENE_ID_MAX], now[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_worker_does(&x, "lock");
    int ghost = scene_hold_first(RLK_RWLOCK_DOWNGRADE);
    scene_worker_does(&x, "downgrade");
    scene_worker_does(&x, "unlock");
    scene_worker_does(&x, "lock");
    ck_assert(scene_holder("N", id));
    scene_let_go(ghost);
    ck_assert(scene_holder("N", now));
    ck_assert_str_eq(id, now);
    ck_assert_int_eq(scene_count("N", "readers"), 0);
    scene_worker_does(&x, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

/* ---- joins: x's thread t reads, and its thread u joins */

static void u_got(void)
{
    const char *news = worker_news(&x, "done u", SCENE_SOON_MS);
    ck_assert_str_eq(news ? news : "none", "done u ok");
    scene_says(&x, "ok SAFE", "on u state m");
}

START_TEST(a_join_whose_reply_is_lost_shares_the_hold_and_withdraws_its_id)
{
    char id[SCENE_ID_MAX], now[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_worker_does(&x, "rdlock");
    scene_only_holder("N", id);
    scene_drop_replies(RLK_RWLOCK_READ, 1);
    scene_says(&x, "ok", "on u rdlock m");
    scene_only_holder("N", now);
    ck_assert_str_eq(id, now);
    ck_assert(test_wait_until(any_id_is_marked, NULL, SCENE_SOON_MS));
    scene_worker_does(&x, "unlock");
    scene_says(&x, "ok SAFE", "on u state m");
    scene_says(&x, "ok", "on u unlock m");
    scene_nothing_is_left("N");
}
END_TEST

/* rule: W21 */
START_TEST(ghost_of_a_join_whose_repetition_was_shared_takes_nothing)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_worker_does(&x, "rdlock");
    int ghost = scene_hold_first(RLK_RWLOCK_READ);
    scene_says(&x, "ok", "on u rdlock m"); /* by the second request */
    scene_worker_does(&x, "unlock");
    scene_says(&x, "ok", "on u unlock m");
    ck_assert(scene_wait_free("N", SCENE_LEFT_MS));
    ck_assert(test_wait_until(any_id_is_marked, NULL, SCENE_SOON_MS));
    scene_let_go(ghost); /* the hold that it would share is gone */
    scene_nothing_is_left("N");
}
END_TEST

/* rule: W21 */
START_TEST(abandoned_join_leaves_no_hold_behind)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_worker_does(&x, "rdlock");
    int ghost = scene_hold_first(RLK_RWLOCK_READ);
    SCENE_RULE(RLK_RWLOCK_READ, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    scene_says(&x, "ENOTCONN", "on u tryrdlock m");
    scene_worker_does(&x, "unlock");
    ck_assert(test_wait_until(any_id_is_marked, NULL, SCENE_SOON_MS));
    scene_let_go(ghost);
    scene_nothing_is_left("N");
}
END_TEST

/* The last reader leaves while the join is on its way to the server, or its answer is on
 * the way back. */
/* rule: W22 */
START_TEST(join_in_flight_prolongs_the_hold_whose_last_reader_leaves)
{
    char id[SCENE_ID_MAX], now[SCENE_ID_MAX];
    start_x(NULL);
    start_others();
    scene_worker_does(&x, "rdlock");
    scene_only_holder("N", id);
    int join = SCENE_RULE(RLK_RWLOCK_READ, .on = _i ? TEST_ON_REPLY : TEST_ON_REQUEST,
                          .action = TEST_HOLD, .count = 1);
    scene_says(&x, "ok", "async u rdlock m");
    ck_assert(test_proxy_wait_hits(scene_proxy, join, 1, SCENE_SOON_MS));
    scene_worker_does(&x, "unlock");
    scene_only_holder("N", now);
    ck_assert_str_eq(id, now);
    if (_i == 1)
        scene_worker_queues(&y, "N", "lock");
    test_proxy_release(scene_proxy, join);
    u_got();
    scene_only_holder("N", now);
    ck_assert_str_eq(id, now);
    ck_assert(_i == 0 || test_stays(is_not_told, &y, STAYS_MS));
    scene_says(&x, "ok", "on u unlock m");
    if (_i == 1) {
        got(&y);
        scene_worker_does(&y, "unlock");
    }
    scene_nothing_is_left("N");
}
END_TEST

/* rule: W22 */
START_TEST(join_blocked_by_a_writer_ends_the_hold_that_it_prolonged)
{
    start_x(NULL);
    start_others();
    scene_worker_does(&x, "rdlock");
    int join = scene_hold_first(RLK_RWLOCK_READ);
    scene_says(&x, "ok", "async u rdlock m");
    ck_assert(test_proxy_wait_hits(scene_proxy, join, 1, SCENE_SOON_MS));
    scene_worker_queues(&y, "N", "lock");
    scene_worker_does(&x, "unlock");
    ck_assert(test_stays(is_not_told, &y, STAYS_MS));
    test_proxy_release(scene_proxy, join);
    got(&y);
    ck_assert(!worker_news(&x, "done u", 0));
    scene_worker_does(&y, "unlock");
    u_got();
    scene_says(&x, "ok", "on u unlock m");
    scene_nothing_is_left("N");
}
END_TEST

/* ---- renew */

START_TEST(renewals_with_every_other_reply_lost_do_not_lose_a_reader)
{
    start_x(SCENE_TIMES(.lease = test_ms(2 * LEASE_MS)));
    scene_worker_does(&x, "rdlock");
    for (int i = 0; i < 2; i++) {
        int rule = SCENE_RULE(RLK_RWLOCK_RENEW, .on = TEST_ON_REPLY,
                              .action = i % 2 ? TEST_WATCH : TEST_DROP, .count = 1);
        ck_assert(test_proxy_wait_hits(scene_proxy, rule, 1, SCENE_SOON_MS));
        test_proxy_remove(scene_proxy, rule);
        ck_assert_int_gt(worker_number(&x, "on t remaining m"), 0);
    }
    scene_worker_does(&x, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

/* rule: W4 */
START_TEST(renewal_after_the_release_adds_no_reader)
{
    start_x(SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    start_others();
    scene_worker_does(&y, "rdlock");
    int renew = scene_hold_first(RLK_RWLOCK_RENEW);
    scene_worker_does(&x, "rdlock");
    ck_assert(test_proxy_wait_hits(scene_proxy, renew, 1, SCENE_SOON_MS));
    scene_worker_does(&x, "unlock");
    scene_let_go(renew);
    ck_assert_int_eq(scene_count("N", "readers"), 1);
    scene_worker_does(&y, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

/* rule: W4 */
START_TEST(renewal_after_the_end_revives_no_reader)
{
    char id[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    start_others();
    scene_worker_does(&x, "rdlock");
    scene_only_holder("N", id);
    scene_worker_does(&y, "rdlock");
    int renew = SCENE_RULE(RLK_RWLOCK_RENEW, .on = TEST_ON_REQUEST, .action = TEST_HOLD);
    int release = scene_hold_first(RLK_RWLOCK_RELEASE); /* of the lost hold */
    scene_worker_lost(&x, "N");
    scene_wait_past(scene_reader_end("N", id));
    scene_let_go(renew);
    ck_assert_int_lt(scene_reader_left("N", id), 0);
    test_proxy_remove(scene_proxy, release);
    scene_worker_does(&y, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

/* ---- refresh */

START_TEST(refreshes_with_lost_replies_do_not_lose_the_place)
{
    char id[SCENE_ID_MAX], now[SCENE_ID_MAX], ticket[32], again[32];
    start_x(
        SCENE_TIMES(.presence = test_ms(PRESENCE_MS), .command = test_ms(COMMAND_MS)));
    start_others();
    scene_worker_does(&y, "lock");
    scene_worker_queues(&x, "N", modes[_i].verb);
    ck_assert(scene_member("N", modes[_i].queue, 0, id, ticket));
    int lost = scene_drop_replies(RLK_RWLOCK_REFRESH, 4);
    ck_assert(test_proxy_wait_hits(scene_proxy, lost, 4, SCENE_SOON_MS));
    ck_assert(scene_member("N", modes[_i].queue, 0, now, again));
    ck_assert_str_eq(id, now);
    ck_assert_str_eq(ticket, again);
    scene_worker_does(&y, "unlock");
    got(&x);
    scene_worker_does(&x, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

static bool has_it(void *id)
{
    char writer[SCENE_ID_MAX];
    return scene_reader_end("N", id) > 0 ||
           (scene_holder("N", writer) && strcmp(writer, id) == 0);
}

/* y is dead, and its lease ends. x does not hear of the refresh that takes the lock over
 * for x itself. */
/* rule: T11 */
START_TEST(refresh_that_granted_its_caller_unheard_is_believed_by_the_next)
{
    test_rundir_off();
    char id[SCENE_ID_MAX], ticket[32];
    start_x(SCENE_TIMES(.presence = test_ms(3000), .command = test_ms(COMMAND_MS)));
    start_others();
    scene_says(&y, "ok", "on t lock m %ld", test_ms(1500));
    int lost = scene_drop_replies(RLK_RWLOCK_REFRESH, 0);
    scene_worker_queues(&x, "N", modes[_i].verb);
    worker_kill(&y);
    ck_assert(scene_member("N", modes[_i].queue, 0, id, ticket));
    ck_assert(test_wait_until(has_it, id, SCENE_SOON_MS));
    ck_assert(is_not_told(&x));
    test_proxy_remove(scene_proxy, lost);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_worker_has_no_more_than(&x,
                                  _i == 0 ? scene_reader_left("N", id) : scene_pttl("N"));
    scene_worker_does(&x, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

/* rule: T2 */
START_TEST(refresh_that_arrives_after_the_hold_takes_nothing)
{
    start_x(SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    start_others();
    scene_worker_does(&y, "lock");
    int refresh = scene_hold_first(RLK_RWLOCK_REFRESH);
    scene_worker_queues(&x, "N", modes[_i].verb);
    ck_assert(test_proxy_wait_hits(scene_proxy, refresh, 1, SCENE_SOON_MS));
    scene_worker_does(&y, "unlock");
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_worker_does(&x, "unlock");
    ck_assert(scene_wait_free("N", SCENE_LEFT_MS));
    scene_let_go(refresh);
    scene_nothing_is_left("N");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("rwlock, wire");

    TCase *down = scene_tcase(s, "downgrade", open_scene, close_scene);
    tcase_add_loop_test(
        down, downgrade_with_lost_replies_does_not_lose_the_hold_and_lets_readers_in, 0,
        2);
    tcase_add_test(down, lost_downgrade_is_repeated_until_the_server_knows);
    tcase_add_test(
        down, downgrade_without_any_reply_is_lost_at_the_end_of_the_lease_and_not_before);
    tcase_add_test(down, release_that_overtakes_the_downgrade_is_that_of_a_writer);
    tcase_add_test(down, release_finds_the_id_of_a_downgrade_of_unknown_outcome);
    tcase_add_test(down, repeated_downgrade_touches_no_newer_hold_of_its_client);

    TCase *joins = scene_tcase(s, "joins", open_scene, close_scene);
    tcase_add_test(joins,
                   a_join_whose_reply_is_lost_shares_the_hold_and_withdraws_its_id);
    tcase_add_test(joins, ghost_of_a_join_whose_repetition_was_shared_takes_nothing);
    tcase_add_test(joins, abandoned_join_leaves_no_hold_behind);
    tcase_add_loop_test(joins, join_in_flight_prolongs_the_hold_whose_last_reader_leaves,
                        0, 2);
    tcase_add_test(joins, join_blocked_by_a_writer_ends_the_hold_that_it_prolonged);

    TCase *watchdog = scene_tcase(s, "renew and refresh", open_scene, close_scene);
    tcase_add_test(watchdog, renewals_with_every_other_reply_lost_do_not_lose_a_reader);
    tcase_add_test(watchdog, renewal_after_the_release_adds_no_reader);
    tcase_add_test(watchdog, renewal_after_the_end_revives_no_reader);
    tcase_add_loop_test(watchdog, refreshes_with_lost_replies_do_not_lose_the_place, 0,
                        MODES);
    tcase_add_loop_test(watchdog,
                        refresh_that_granted_its_caller_unheard_is_believed_by_the_next,
                        0, MODES);
    tcase_add_loop_test(watchdog, refresh_that_arrives_after_the_hold_takes_nothing, 0,
                        MODES);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
