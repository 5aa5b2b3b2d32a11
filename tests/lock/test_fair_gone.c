/* SPDX-License-Identifier: Apache-2.0 */
/* program: lock=fair */
/*
 * The fair lock when processes that hold it or wait for it are killed or stopped: L2, L4,
 * L5. test_fair.c says how this file is built; `w` are workers, each with one thread "t"
 * that waits or holds.
 */
#include "fairworkers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 1000, PRESENCE_MS = 300, SOON_MS = 300, STAYS_MS = 100 };

/* w[0] holds; the others wait in their order. */
static void hold_and_wait(int n, const struct scene_times *times)
{
    for (int i = 0; i < n; i++)
        scene_worker(&w[i], scene_server.url, times, "N", "");
    scene_says(&w[0], "ok", "on t lock m");
    for (int i = 1; i < n; i++)
        scene_worker_waits(&w[i], "N", i);
}

/* n workers hold and wait, the first `killed` of them are killed. Returns the rest of the
 * holder's lease from *ret_begin on. If this machine stood still until another had the
 * lock, all is repeated with twice the lease. */
static long long kill_first(int killed, int n, int64_t *ret_begin)
{
    for (long lease = test_ms(LEASE_MS);; lease *= 2) {
        hold_and_wait(n, SCENE_TIMES(.lease = lease));
        for (int i = 0; i < killed; i++)
            worker_kill(&w[i]);
        *ret_begin = test_now_ms();
        long long left = scene_pttl("N");
        if (scene_count("N", "queue") == n - 1)
            return left;
        for (int i = 0; i < n; i++)
            worker_end(&w[i]);
        test_redis_do(scene_redis, "FLUSHALL");
    }
}

static bool nobody_is_told(void *arg)
{
    int *except = arg;
    for (int i = 0; i < WORKERS; i++)
        if (i != *except && w[i].program.pid != 0 && worker_news(&w[i], "done t", 0))
            return false;
    return true;
}

/* Asserts that w[i] has the lock, and none of the others. */
static void assert_it_is_the_turn_of(int i, long ms)
{
    ck_assert(scene_worker_got(&w[i], ms));
    ck_assert(nobody_is_told(&i));
    scene_says(&w[i], "ok SAFE", "on t state m");
}

static void pass_on(int i)
{
    scene_says(&w[i], "ok", "on t unlock m");
}

/* rule: L4, L5 */
START_TEST(lock_whose_lease_ends_goes_to_the_first_in_the_queue)
{
    test_rundir_off();
    int64_t begin;
    long long left = kill_first(1, 5, &begin);
    assert_it_is_the_turn_of(1, SCENE_SOON_MS);
    int64_t took = test_now_ms() - begin;
    ck_assert_int_ge(took, left - 1);
    ck_assert_int_le(took, left + test_ms(SOON_MS));
    int first = 1;
    ck_assert(test_stays(nobody_is_told, &first, STAYS_MS));
    for (int i = 1; i < 4; i++) {
        pass_on(i);
        assert_it_is_the_turn_of(i + 1, SCENE_SOON_MS);
    }
}
END_TEST

/* rule: L2 */
START_TEST(holder_and_next_three_killed_together_cost_the_fourth_a_lease)
{
    test_rundir_off();
    int64_t begin;
    long long left = kill_first(4, 6, &begin);
    assert_it_is_the_turn_of(4, SCENE_SOON_MS);
    int64_t took = test_now_ms() - begin;
    ck_assert_int_ge(took, left - 1);
    ck_assert_int_le(took, left + test_ms(SOON_MS));
    pass_on(4);
    assert_it_is_the_turn_of(5, SCENE_SOON_MS);
}
END_TEST

/* rule: L2 */
START_TEST(holder_killed_and_next_three_stopped_cost_a_presence_more)
{
    hold_and_wait(
        6, SCENE_TIMES(.lease = test_ms(LEASE_MS), .presence = test_ms(PRESENCE_MS)));
    for (int i = 1; i < 4; i++)
        worker_stop(&w[i]);
    worker_kill(&w[0]);
    int64_t begin = test_now_ms();
    long long left = scene_pttl("N");
    assert_it_is_the_turn_of(4, SCENE_SOON_MS);
    /* one of the stopped waiters may still count as alive, and get the lock */
    ck_assert_int_le(test_now_ms() - begin,
                     left + test_ms(2 * PRESENCE_MS) + test_ms(SOON_MS));
    pass_on(4);
    assert_it_is_the_turn_of(5, SCENE_SOON_MS);
}
END_TEST

static bool presence_has_run_out(void *uuid)
{
    char key[SCENE_KEY_MAX];
    const char *until = test_redis_str(scene_redis, "ZSCORE",
                                       scene_key(key, "N", "present"), (char *)uuid);
    long long end = until ? atoll(until) : 0;
    const redisReply *r = test_redis_do(scene_redis, "TIME");
    long long now = atoll(r->element[0]->str) * 1000 + atoll(r->element[1]->str) / 1000;
    return end < now;
}

/* rule: L5 */
START_TEST(first_waiter_stopped_past_its_presence_queues_again_at_the_end)
{
    char id[SCENE_ID_MAX], again[SCENE_ID_MAX], old[32], ticket[32];
    char uuid[RLK_UUID_LEN + 1], uuid_again[RLK_UUID_LEN + 1];
    int second = 2;
    hold_and_wait(4, SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    ck_assert(scene_waiter("N", 0, id, old));
    scene_uuid(uuid, id);
    worker_stop(&w[1]);
    ck_assert(test_wait_until(presence_has_run_out, uuid, SCENE_SOON_MS));
    pass_on(0);
    assert_it_is_the_turn_of(2, SCENE_SOON_MS);
    ck_assert_int_eq(scene_queue_len("N"), 1); /* w[1] was dropped */
    worker_cont(&w[1]);
    ck_assert(scene_wait_queued("N", 2, SCENE_SOON_MS));
    ck_assert(scene_waiter("N", 1, again, ticket)); /* behind w[3] */
    ck_assert_str_eq(scene_uuid(uuid_again, again), uuid);
    ck_assert_int_gt(atoll(ticket), atoll(old));
    ck_assert(test_stays(nobody_is_told, &second, STAYS_MS));
    pass_on(2);
    assert_it_is_the_turn_of(3, SCENE_SOON_MS);
    pass_on(3);
    assert_it_is_the_turn_of(1, SCENE_SOON_MS);
    pass_on(1);
}
END_TEST

/* rule: L5 */
START_TEST(first_waiter_stopped_through_its_whole_turn_never_believes_its_grant)
{
    char id[SCENE_ID_MAX];
    int second = 2;
    hold_and_wait(4, SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    worker_stop(&w[1]);
    /* to w[1], by a message that stays in its socket; or w[1] has been dropped */
    pass_on(0);
    assert_it_is_the_turn_of(2, SCENE_SOON_MS);
    ck_assert(scene_holder("N", id));
    worker_cont(&w[1]);
    /* w[1] asks again, behind w[3] */
    ck_assert(scene_wait_queued("N", 2, SCENE_SOON_MS));
    ck_assert(test_stays(nobody_is_told, &second, STAYS_MS));
    /* and w[1] does not release w[2]'s hold */
    ck_assert(!scene_wait_holder_gone("N", id, 0));
    pass_on(2);
    assert_it_is_the_turn_of(3, SCENE_SOON_MS);
    pass_on(3);
    assert_it_is_the_turn_of(1, SCENE_SOON_MS);
    pass_on(1);
}
END_TEST

/* rule: L5 */
START_TEST(waiter_stopped_for_less_than_its_presence_stays_in_its_place)
{
    hold_and_wait(3, SCENE_TIMES(.presence = test_ms(3000)));
    worker_stop(&w[1]);
    pass_on(0);
    worker_cont(&w[1]);
    assert_it_is_the_turn_of(1, SCENE_SOON_MS);
    pass_on(1);
    assert_it_is_the_turn_of(2, SCENE_SOON_MS);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("fair, gone");

    TCase *killed = scene_tcase(s, "killed", open_scene, close_scene);
    tcase_add_test(killed, lock_whose_lease_ends_goes_to_the_first_in_the_queue);
    tcase_add_test(killed, holder_and_next_three_killed_together_cost_the_fourth_a_lease);

    TCase *stopped = scene_tcase(s, "stopped", open_scene, close_scene);
    tcase_add_test(stopped, holder_killed_and_next_three_stopped_cost_a_presence_more);
    tcase_add_test(stopped,
                   first_waiter_stopped_past_its_presence_queues_again_at_the_end);
    tcase_add_test(stopped,
                   first_waiter_stopped_through_its_whole_turn_never_believes_its_grant);
    tcase_add_test(stopped, waiter_stopped_for_less_than_its_presence_stays_in_its_place);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
