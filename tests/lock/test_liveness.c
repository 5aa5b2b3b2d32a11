/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_liveness,rwlock_liveness claims=L1,L2,L3,L4 */
/*
 * L1 to L4: a waiter gets the lock, soon, and without asking for it all the time. L7 is
 * in test_outage.c. `m` is a handle of `self`, a client of this process; `w` are workers.
 */
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORKERS = 9,
    PRESENCE_MS = 300,
    SOON_MS = 250,
    LONG_PRESENCE_MS = 30000,
    CROWD = 50
};

static rlock_client_t *self;
static rlock_mutex_t m;
static struct worker w[WORKERS];

static void open_scene(void)
{
    scene_open();
    memset(w, 0, sizeof(w));
    self = scene_client(scene_server.url, NULL);
    scene_mutex(&m, self, "N");
}

static void close_scene(void)
{
    for (int i = 0; i < WORKERS; i++)
        worker_end(&w[i]);
    rlock_mutex_unlock(&m);
    rlock_client_close(self);
    scene_close();
}

/* Makes `n` workers wait, in the order of w. */
static void start_waiters(int n, const struct scene_times *times)
{
    for (int i = 0; i < n; i++) {
        scene_worker(&w[i], scene_server.url, times, "N", "");
        scene_worker_waits(&w[i], "N", i + 1);
    }
}

static void start_proxied_waiter(const struct scene_times *times)
{
    scene_worker(&w[0], test_proxy_url(scene_proxy), times, "N", "");
    scene_worker_waits(&w[0], "N", 1);
}

/* ---- L1 */

/* rule: L1 */
START_TEST(hand_over_is_one_message_without_polls)
{
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    start_waiters(WORKERS, NULL);
    test_redis_do(scene_redis, "CONFIG", "RESETSTAT");
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    for (int i = 0; i < WORKERS; i++) {
        ck_assert(scene_worker_got(&w[i], SCENE_SOON_MS));
        scene_says(&w[i], "ok", "on t unlock m");
    }
    long took = (long)(test_now_ms() - begin);
    /* one message for each waiter, and Redisson's "0" at the end */
    ck_assert_int_eq(test_redis_calls(scene_redis, "publish"), WORKERS + 1);
    /* releases; a renewal of each grant that began long before; presence each second */
    long most = (WORKERS + 1) + WORKERS + WORKERS * (1 + took / 1000);
    ck_assert_int_le(test_redis_calls(scene_redis, "evalsha"), most);
    ck_assert_int_lt(took, test_ms(1000));
}
END_TEST

#ifndef AS_FAIR /* where each thread has a ticket of its own */
/* rule: L1 */
START_TEST(threads_of_a_process_wait_with_one_ticket_and_without_a_connection_each)
{
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_worker(&w[0], scene_server.url, NULL, "N", "");
    long long before = test_redis_info(scene_redis, "connected_clients");
    for (int i = 0; i < CROWD; i++)
        scene_says(&w[0], "ok", "async t%d lock m", i);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    test_redis_do(scene_redis, "CONFIG", "RESETSTAT");
    test_pause_ms(300);
    ck_assert_int_eq(scene_queue_len("N"), 1);
    ck_assert_int_le(test_redis_calls(scene_redis, "evalsha"), 2);
    /* the watchdog's connection, and one of the pool */
    ck_assert_int_le(test_redis_info(scene_redis, "connected_clients"), before + 2);
}
END_TEST
#endif

/* rule: L1 */
START_TEST(cancelled_waiter_delays_no_hand_over)
{
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_worker(&w[0], scene_server.url, NULL, "N", "");
    scene_says(&w[0], "ETIMEDOUT", "on t timedlock m %ld", test_ms(50));
    ck_assert(scene_wait_queued("N", 0, SCENE_SOON_MS));
    scene_worker(&w[1], scene_server.url, NULL, "N", "");
    scene_worker_waits(&w[1], "N", 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&w[1], SOON_MS));
}
END_TEST

/* ---- L2 */

static bool only_two_listen(void *arg)
{
    (void)arg;
    return test_redis_info(scene_redis, "pubsub_channels") ==
           2; /* self, and one waiter */
}

/* rule: L2 */
START_TEST(killed_waiters_delay_no_hand_over)
{
    test_rundir_off();
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    start_waiters(WORKERS, NULL);
    for (int i = 0; i < WORKERS - 1; i++)
        worker_kill(&w[i]);
    ck_assert_int_eq(scene_queue_len("N"), WORKERS);
    /* the server has seen that their connections are closed */
    ck_assert(test_wait_until(only_two_listen, NULL, SCENE_SOON_MS));
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&w[WORKERS - 1], SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(SOON_MS));
}
END_TEST

/* rule: L2 */
START_TEST(stopped_waiters_cost_a_presence_and_a_grant_together)
{
    enum { STOPPED = 5 };
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    start_waiters(STOPPED + 1, SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    for (int i = 0; i < STOPPED; i++)
        worker_stop(&w[i]);
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&w[STOPPED], SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(2 * PRESENCE_MS + SOON_MS));
}
END_TEST

/* rule: L2 */
START_TEST(waiters_stopped_past_their_presence_cost_nothing)
{
    enum { STOPPED = 3 };
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    start_waiters(STOPPED + 1, SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    for (int i = 0; i < STOPPED; i++)
        worker_stop(&w[i]);
    test_pause_ms(test_ms(PRESENCE_MS) + 50);
    ck_assert_int_eq(scene_queue_len("N"), STOPPED + 1);
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&w[STOPPED], SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(SOON_MS));
}
END_TEST

/* rule: L2 */
START_TEST(waiter_taken_for_dead_queues_again_when_it_continues)
{
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    start_waiters(2, SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    worker_stop(&w[0]);
    test_pause_ms(test_ms(PRESENCE_MS) + 50);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&w[1], SCENE_SOON_MS));
    worker_cont(&w[0]);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    scene_says(&w[1], "ok", "on t unlock m");
    ck_assert(scene_worker_got(&w[0], SCENE_SOON_MS));
}
END_TEST

/* ---- L3 */

/* rule: L3 */
START_TEST(waiter_without_messages_finds_its_grant_by_the_next_poll)
{
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    start_proxied_waiter(SCENE_TIMES(.presence = test_ms(3 * PRESENCE_MS)));
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 grant");
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&w[0], SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(PRESENCE_MS + SOON_MS));
}
END_TEST

/* rule: L3 */
START_TEST(new_subscription_polls_at_once)
{
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    start_proxied_waiter(SCENE_TIMES(.presence = LONG_PRESENCE_MS)); /* polls each 10 s */
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_CUT,
              .contains = "1 grant", .count = 1);
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&w[0], SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(1000));
}
END_TEST

/* rule: L3 */
START_TEST(waiter_whose_keys_are_deleted_queues_again)
{
    char queue[SCENE_KEY_MAX], present[SCENE_KEY_MAX];
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    start_waiters(1, SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    test_redis_do(scene_redis, "DEL", scene_key(queue, "N", "queue"));
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    test_redis_do(scene_redis, "DEL", scene_key(present, "N", "present"));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&w[0], SCENE_SOON_MS));
}
END_TEST

/* ---- L4 */

static void check_takeover(long ttl)
{
    int64_t begin = test_now_ms();
    scene_hold_by_hand("N", ttl);
    scene_says(&w[0], "ok", "async t lock m");
    ck_assert(scene_worker_got(&w[0], SCENE_SOON_MS));
    int64_t took = test_now_ms() - begin;
    ck_assert_int_ge(took, ttl - 1);
    ck_assert_int_le(took, ttl + test_ms(SOON_MS));
    scene_says(&w[0], "ok", "on t unlock m");
}

/* rule: L4 */
START_TEST(expired_lease_is_taken_over_at_once)
{
    scene_worker(&w[0], scene_server.url, SCENE_TIMES(.presence = LONG_PRESENCE_MS), "N",
                 "");
    check_takeover(400);
    check_takeover(50);
    check_takeover(1);
}
END_TEST

/* rule: L4 */
START_TEST(one_of_many_waiters_takes_an_expired_lease_over_and_hands_it_on)
{
    scene_hold_by_hand("N", test_ms(700));
    start_waiters(4, SCENE_TIMES(.presence = LONG_PRESENCE_MS));
    int64_t begin = test_now_ms();
    long long left = scene_pttl("N");
    for (int i = 0; i < 4; i++) {
        ck_assert(scene_worker_got(&w[i], SCENE_SOON_MS)); /* in the order of tickets */
        scene_says(&w[i], "ok", "on t unlock m");
    }
    ck_assert_int_le(test_now_ms() - begin, left + test_ms(SOON_MS));
}
END_TEST

/* rule: L4 */
START_TEST(deleted_lock_is_taken_by_the_next_poll)
{
    scene_hold_by_hand("N", 60000);
    start_waiters(1, SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    test_redis_do(scene_redis, "DEL", "N"); /* by an administrator: no message is sent */
    int64_t begin = test_now_ms();
    ck_assert(scene_worker_got(&w[0], SCENE_SOON_MS));
    ck_assert_int_le(test_now_ms() - begin, test_ms(PRESENCE_MS / 3 + SOON_MS));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("liveness");

    TCase *l1 = scene_tcase(s, "L1", open_scene, close_scene);
    tcase_add_test(l1, hand_over_is_one_message_without_polls);
#ifndef AS_FAIR
    tcase_add_test(
        l1, threads_of_a_process_wait_with_one_ticket_and_without_a_connection_each);
#endif
    tcase_add_test(l1, cancelled_waiter_delays_no_hand_over);

    TCase *l2 = scene_tcase(s, "L2", open_scene, close_scene);
    tcase_add_test(l2, killed_waiters_delay_no_hand_over);
    tcase_add_test(l2, stopped_waiters_cost_a_presence_and_a_grant_together);
    tcase_add_test(l2, waiters_stopped_past_their_presence_cost_nothing);
    tcase_add_test(l2, waiter_taken_for_dead_queues_again_when_it_continues);

    TCase *l3 = scene_tcase(s, "L3", open_scene, close_scene);
    tcase_add_test(l3, waiter_without_messages_finds_its_grant_by_the_next_poll);
    tcase_add_test(l3, new_subscription_polls_at_once);
    tcase_add_test(l3, waiter_whose_keys_are_deleted_queues_again);

    TCase *l4 = scene_tcase(s, "L4", open_scene, close_scene);
    tcase_add_test(l4, expired_lease_is_taken_over_at_once);
    tcase_add_test(l4, one_of_many_waiters_takes_an_expired_lease_over_and_hands_it_on);
    tcase_add_test(l4, deleted_lock_is_taken_by_the_next_poll);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
