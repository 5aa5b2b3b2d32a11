/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acquire, release and cancel of the read-write lock when replies are lost, or requests
 * arrive after their client has given up (ghosts): S1, S2, T3, T8, T9, W1. The other
 * requests are in test_rwlock_wire.c. rwworkers.h says what `x`, `y` and `z` are. Claims
 * about both modes are loops over `modes`.
 */
#include "rwworkers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMMAND_MS = 200,
    ROOM_MS = 500, /* for a busy machine */
    LEASE_MS = 900,
    TIMED_MS = 200
};

static const struct mode {
    const char *verb, *try, *timed, *queue;
    enum rlk_script_id acquire;
} modes[] = {
    { "rdlock", "tryrdlock", "timedrdlock", "rqueue", RLK_RWLOCK_READ },
    { "lock", "trylock", "timedlock", "queue", RLK_RWLOCK_WRITE },
};
enum { MODES = 2 };

static bool is_marked(void *id)
{
    char key[SCENE_KEY_MAX];
    return test_redis_str(scene_redis, "ZSCORE", scene_key(key, "N", "cancelled"),
                          (char *)id) != NULL;
}

/* ---- acquire */

START_TEST(an_acquire_whose_reply_is_lost_is_one_hold_and_leaves_a_marker)
{
    char id[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_drop_replies(modes[_i].acquire, 1);
    scene_worker_does(&x, modes[_i].verb);
    scene_only_holder("N", id);
    scene_worker_does(&x, "unlock");
    ck_assert(is_marked(id));
    scene_nothing_is_left("N");
}
END_TEST

START_TEST(an_acquire_whose_replies_never_come_is_given_back)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_drop_replies(modes[_i].acquire, 0);
    scene_says(&x, "ENOTCONN", "on t %s m", modes[_i].try);
    scene_nothing_is_left("N");
    scene_says(&x, "ok UNHELD", "on t state m");
}
END_TEST

START_TEST(an_acquire_that_comes_after_its_caller_gave_up_takes_nothing)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    int ghost = scene_hold_first(modes[_i].acquire);
    scene_says(&x, "ENOTCONN", "on t %s m", modes[_i].try);
    ck_assert(test_wait_until(any_id_is_marked, NULL, SCENE_SOON_MS));
    scene_let_go(ghost);
    scene_nothing_is_left("N");
}
END_TEST

START_TEST(an_acquire_that_comes_before_it_is_withdrawn_is_withdrawn)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    int ghost = scene_hold_first(modes[_i].acquire);
    int release = scene_hold_first(RLK_RWLOCK_RELEASE);
    scene_says(&x, "ENOTCONN", "on t %s m", modes[_i].try);
    ck_assert(test_proxy_wait_hits(scene_proxy, release, 1, SCENE_SOON_MS));
    scene_let_go(ghost);
    test_proxy_release(scene_proxy, release);
    scene_nothing_is_left("N");
}
END_TEST

START_TEST(an_acquire_that_comes_after_its_caller_gave_up_does_not_queue)
{
    /* on a busy machine the thread may begin late */
    enum { PATIENT_MS = 4 * COMMAND_MS };
    start_x(SCENE_TIMES(.command = test_ms(PATIENT_MS)));
    start_others();
    scene_worker_does(&y, "lock");
    int ghost = scene_hold_first(modes[_i].acquire);
    scene_says(&x, "ENOTCONN", "on t %s m %d", modes[_i].timed, PATIENT_MS);
    ck_assert(test_wait_until(any_id_is_marked, NULL, SCENE_SOON_MS));
    scene_let_go(ghost);
    ck_assert_int_eq(scene_count("N", modes[_i].queue), 0);
    scene_worker_does(&y, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

START_TEST(an_acquire_sent_twice_whose_first_copy_comes_after_the_unlock_takes_nothing)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    int ghost = scene_hold_first(modes[_i].acquire);
    scene_worker_does(&x, modes[_i].verb);
    scene_worker_does(&x, "unlock");
    scene_let_go(ghost);
    scene_nothing_is_left("N");
}
END_TEST

/* ---- W1, T8: what a reader knows of its own end, beside one with a longer lease */

static void x_alone_is_lost_in_time(const char *id)
{
    SCENE_RULE(RLK_RWLOCK_RENEW, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    long long left = scene_reader_left("N", id);
    ck_assert_int_gt(scene_pttl("N"), left + test_ms(500));
    ck_assert(worker_news(&x, "event LOST N", SCENE_SOON_MS));
    scene_worker_does(&y, "unlock");
    scene_worker_does(&z, "lock"); /* at the latest when x's end has passed */
    scene_says(&x, "ESTALE", "on t unlock m");
    scene_says(&z, "ok SAFE", "on t state m");
    scene_worker_does(&z, "unlock");
}

/* rule: W1 */
START_TEST(repeated_acquire_counts_from_its_own_end)
{
    char id[SCENE_ID_MAX], end[32];
    start_x(SCENE_TIMES(.lease = test_ms(LEASE_MS), .command = test_ms(COMMAND_MS)));
    start_others();
    int lost = scene_drop_replies(RLK_RWLOCK_READ, 1);
    scene_says(&x, "ok", "async t rdlock m");
    ck_assert(test_proxy_wait_answered(scene_proxy, lost, 1, SCENE_SOON_MS));
    ck_assert(scene_member("N", "readers", 0, id, end));
    scene_worker_does(&y, "rdlock"); /* the lock N ends when y's lease does */
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_worker_has_no_more_than(&x, scene_reader_left("N", id));
    x_alone_is_lost_in_time(id);
}
END_TEST

/* x and y wait to read behind z. Both are let in, and the message to x is lost. Returns
 * x's id. */
static void x_is_let_in_unheard(const char *call, char id[SCENE_ID_MAX])
{
    char ticket[32];
    start_others();
    scene_worker_does(&z, "lock");
    scene_says(&x, "ok", "async t %s", call);
    ck_assert(scene_wait_count("N", "rqueue", 1, SCENE_SOON_MS));
    ck_assert(scene_member("N", "rqueue", 0, id, ticket));
    scene_worker_queues(&y, "N", "rdlock");
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 grant");
    scene_worker_does(&z, "unlock");
    got(&y);
}

/* rule: W1 */
START_TEST(grant_found_by_a_refresh_counts_from_its_own_end)
{
    char id[SCENE_ID_MAX];
    const long lease = test_ms(LEASE_MS);
    start_x(SCENE_TIMES(.lease = lease, .presence = lease));
    x_is_let_in_unheard("rdlock m", id);
    SCENE_RULE(RLK_RWLOCK_RENEW, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_worker_has_no_more_than(&x, scene_reader_left("N", id));
    x_alone_is_lost_in_time(id);
}
END_TEST

/* rule: T8 */
START_TEST(cancel_that_finds_a_reader_inside_counts_from_its_own_end)
{
    char id[SCENE_ID_MAX], call[64];
    const long lease = test_ms(LEASE_MS);
    start_x(SCENE_TIMES(.lease = lease, .presence = lease));
    SCENE_RULE(RLK_RWLOCK_REFRESH, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    snprintf(call, sizeof(call), "timedrdlock m %ld", test_ms(LEASE_MS / 2));
    x_is_let_in_unheard(call, id);
    SCENE_RULE(RLK_RWLOCK_RENEW, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_worker_has_no_more_than(&x, scene_reader_left("N", id));
    x_alone_is_lost_in_time(id);
}
END_TEST

/* ---- release */

START_TEST(a_release_whose_reply_is_lost_succeeds_and_frees_nobody_elses)
{
    char id[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    start_others();
    scene_worker_does(&x, modes[_i].verb);
    int all = SCENE_RULE(RLK_RWLOCK_RELEASE, .on = TEST_ON_REPLY, .action = TEST_WATCH);
    int lost = scene_drop_replies(RLK_RWLOCK_RELEASE, 1);
    int64_t begin = test_now_ms();
    scene_says(&x, "ok", "async t unlock m");
    ck_assert(test_proxy_wait_answered(scene_proxy, lost, 1, SCENE_SOON_MS));
    scene_worker_does(&y, modes[_i].verb);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + ROOM_MS));
    /* the release was repeated */
    ck_assert(test_proxy_wait_hits(scene_proxy, all, 2, SCENE_SOON_MS));
    scene_only_holder("N", id);
    scene_says(&y, "ok SAFE", "on t state m");
    scene_worker_does(&y, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

/* rule: S2 */
START_TEST(late_release_frees_no_newer_hold_of_its_client)
{
    char id[SCENE_ID_MAX], now[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_worker_does(&x, modes[_i].verb);
    int ghost = scene_hold_first(RLK_RWLOCK_RELEASE);
    scene_worker_does(&x, "unlock");
    ck_assert(scene_wait_free("N", SCENE_SOON_MS)); /* released by the watchdog */
    scene_worker_does(&x, modes[_i].verb);
    scene_only_holder("N", id);
    scene_let_go(ghost);
    scene_only_holder("N", now);
    ck_assert_str_eq(id, now);
    scene_worker_does(&x, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

/* ---- cancel */

START_TEST(a_cancel_whose_reply_is_lost_leaves_the_queue_in_time)
{
    start_x(NULL);
    start_others();
    scene_worker_does(&y, "lock");
    scene_drop_replies(RLK_RWLOCK_CANCEL, 0);
    int64_t begin = test_now_ms();
    scene_says(&x, "ETIMEDOUT", "on t %s m %ld", modes[_i].timed, test_ms(TIMED_MS));
    ck_assert_int_lt(test_now_ms() - begin, 100 + test_ms(TIMED_MS + ROOM_MS));
    ck_assert(scene_wait_count("N", modes[_i].queue, 0, SCENE_SOON_MS));
    scene_worker_does(&y, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

START_TEST(a_cancel_that_is_lost_is_made_up_for)
{
    start_x(NULL);
    start_others();
    scene_worker_does(&y, "lock");
    SCENE_RULE(RLK_RWLOCK_CANCEL, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    scene_says(&x, "ETIMEDOUT", "on t %s m %ld", modes[_i].timed, test_ms(TIMED_MS));
    ck_assert(scene_wait_count("N", modes[_i].queue, 0, SCENE_SOON_MS));
    scene_worker_does(&y, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

START_TEST(a_cancel_that_is_lost_after_the_grant_is_made_up_for_by_a_release)
{
    start_x(NULL);
    start_others();
    scene_worker_does(&y, "lock");
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 grant");
    int cancel =
        SCENE_RULE(RLK_RWLOCK_CANCEL, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    int release = 0;
    for (bool left = false; !left;) {
        release = scene_hold_first(RLK_RWLOCK_RELEASE);
        scene_says(&x, "ok", "async t %s m %ld", modes[_i].timed, test_ms(TIMED_MS));
        left = scene_cancel_left(&x, "t", cancel);
        if (!left) {
            test_proxy_remove(scene_proxy, release);
            ck_assert(scene_wait_count("N", modes[_i].queue, 0, SCENE_SOON_MS));
        }
    }
    scene_worker_does(&y, "unlock");
    ck_assert(test_redis_exists(scene_redis, "N")); /* x's, which does not want it */
    ck_assert_str_eq(worker_news(&x, "done t", SCENE_SOON_MS), "done t ETIMEDOUT");
    scene_says(&x, "ok UNHELD", "on t state m");
    ck_assert(test_proxy_wait_hits(scene_proxy, release, 1, SCENE_SOON_MS));
    ck_assert(test_redis_exists(scene_redis, "N"));
    test_proxy_release(scene_proxy, release);
    scene_nothing_is_left("N");
}
END_TEST

/* rule: S2 */
START_TEST(late_cancel_removes_no_newer_waiter)
{
    char id[SCENE_ID_MAX], now[SCENE_ID_MAX], ticket[32];
    start_x(NULL);
    start_others();
    scene_worker_does(&y, "lock");
    int ghost = scene_hold_first(RLK_RWLOCK_CANCEL);
    while (test_proxy_hits(scene_proxy, ghost) == 0) { /* see scene_cancel_left */
        scene_says(&x, "ETIMEDOUT", "on t %s m %ld", modes[_i].timed, test_ms(TIMED_MS));
        ck_assert(scene_wait_count("N", modes[_i].queue, 0, SCENE_SOON_MS));
    }
    scene_worker_queues(&x, "N", modes[_i].verb);
    ck_assert(scene_member("N", modes[_i].queue, 0, id, ticket));
    scene_let_go(ghost);
    ck_assert(scene_member("N", modes[_i].queue, 0, now, ticket));
    ck_assert_str_eq(id, now);
    scene_worker_does(&y, "unlock");
    got(&x);
    scene_worker_does(&x, "unlock");
    scene_nothing_is_left("N");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("rwlock, replies");

    TCase *acquire = scene_tcase(s, "acquire", open_scene, close_scene);
    tcase_add_loop_test(acquire,
                        an_acquire_whose_reply_is_lost_is_one_hold_and_leaves_a_marker, 0,
                        MODES);
    tcase_add_loop_test(acquire, an_acquire_whose_replies_never_come_is_given_back, 0,
                        MODES);
    tcase_add_loop_test(
        acquire, an_acquire_that_comes_after_its_caller_gave_up_takes_nothing, 0, MODES);
    tcase_add_loop_test(
        acquire, an_acquire_that_comes_before_it_is_withdrawn_is_withdrawn, 0, MODES);
    tcase_add_loop_test(
        acquire, an_acquire_that_comes_after_its_caller_gave_up_does_not_queue, 0, MODES);
    tcase_add_loop_test(
        acquire,
        an_acquire_sent_twice_whose_first_copy_comes_after_the_unlock_takes_nothing, 0,
        MODES);
    tcase_add_test(acquire, repeated_acquire_counts_from_its_own_end);
    tcase_add_test(acquire, grant_found_by_a_refresh_counts_from_its_own_end);
    tcase_add_test(acquire, cancel_that_finds_a_reader_inside_counts_from_its_own_end);

    TCase *end = scene_tcase(s, "release and cancel", open_scene, close_scene);
    tcase_add_loop_test(
        end, a_release_whose_reply_is_lost_succeeds_and_frees_nobody_elses, 0, MODES);
    tcase_add_loop_test(end, late_release_frees_no_newer_hold_of_its_client, 0, MODES);
    tcase_add_loop_test(end, a_cancel_whose_reply_is_lost_leaves_the_queue_in_time, 0,
                        MODES);
    tcase_add_loop_test(end, a_cancel_that_is_lost_is_made_up_for, 0, MODES);
    tcase_add_loop_test(
        end, a_cancel_that_is_lost_after_the_grant_is_made_up_for_by_a_release, 0, MODES);
    tcase_add_loop_test(end, late_cancel_removes_no_newer_waiter, 0, MODES);

    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
