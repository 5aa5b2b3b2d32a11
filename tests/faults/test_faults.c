/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_faults,rwlock_faults */
/*
 * Single faults: lost requests and replies, requests that arrive late, a server that
 * forgets. Refusals are in test_refusals.c, outages in test_outage.c. selfscene.h says
 * what `self`, `m` and `x` are.
 */
#include "selfscene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LATE_MS = 700, RENEWED_MS = 3000 };
enum { STAYS_MS = 100, COMMAND_MS = 200, LOADERS = 6, LOAD_CLIENTS = 2 };

static bool stays_free(void *arg)
{
    (void)arg;
    return !test_redis_exists(scene_redis, "N");
}

/* ---- lost replies */

START_TEST(acquire_whose_reply_is_cut_off_is_held_once)
{
    start_x(NULL);
    SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_CUT, .keep_len = 5,
               .count = 1);
    scene_says(&x, "ok", "on t trylock m");
    ck_assert_int_eq(test_redis_int(scene_redis, "HLEN", "N"), 3); /* id, mode, since */
    scene_says(&x, "ok", "on t unlock m");
    ck_assert(!test_redis_exists(scene_redis, "N"));
}
END_TEST

START_TEST(acquire_whose_reply_never_comes_is_given_back)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_DROP);
    scene_says(&x, "ENOTCONN", "on t trylock m");
    ck_assert(scene_wait_free("N", 1000)); /* its lease is 30 s */
}
END_TEST

START_TEST(a_reply_that_is_late_adds_nothing_to_the_lease)
{
    start_x(NULL);
    SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_DELAY,
               .delay_ms = LATE_MS, .count = 1);
    scene_says(&x, "ok", "on t trylock m");
    scene_worker_has_no_more_than(&x, scene_pttl("N"));
}
END_TEST

START_TEST(late_renewal_reply_adds_nothing_to_the_lease)
{
    start_x(SCENE_TIMES(.lease = test_ms(RENEWED_MS)));
    scene_says(&x, "ok", "on t trylock m");
    int rule = SCENE_RULE(RLK_MUTEX_RENEW, .on = TEST_ON_REPLY, .action = TEST_DELAY,
                          .delay_ms = test_ms(RENEWED_MS) / 10, .count = 2);
    /* the second one is sent after the first one's reply was read */
    ck_assert(test_proxy_wait_hits(scene_proxy, rule, 2, 2 * RENEWED_MS));
    scene_worker_has_no_more_than(&x, scene_pttl("N"));
}
END_TEST

START_TEST(release_whose_reply_never_comes_succeeds_in_time)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_says(&x, "ok", "on t lock m");
    SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REPLY, .action = TEST_DROP, .count = 1);
    int64_t begin = test_now_ms();
    scene_says(&x, "ok", "on t unlock m");
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + 150));
    ck_assert(!test_redis_exists(scene_redis, "N"));
}
END_TEST

START_TEST(release_whose_reply_is_lost_frees_no_later_hold)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_says(&x, "ok", "on t lock m");
    int drop = SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REPLY, .action = TEST_DROP,
                          .count = 1);
    scene_says(&x, "ok", "async t unlock m");
    ck_assert(test_proxy_wait_answered(scene_proxy, drop, 1, SCENE_SOON_MS));
    int again = SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REPLY, .action = TEST_WATCH);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert(test_proxy_wait_hits(scene_proxy, again, 1, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
}
END_TEST

/* No release arrives: the lock becomes free when its lease ends, without any client. */
START_TEST(what_was_unlocked_without_an_answer_is_renewed_no_more)
{
    long lease = test_ms(900);
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS), .lease = lease));
    scene_says(&x, "ok", "on t lock m");
    SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    int renewals =
        SCENE_RULE(RLK_MUTEX_RENEW, .on = TEST_ON_REQUEST, .action = TEST_WATCH);
    ck_assert(test_proxy_wait_hits(scene_proxy, renewals, 1, SCENE_SOON_MS));
    scene_says(&x, "ok", "on t unlock m");
    unsigned before = test_proxy_hits(scene_proxy, renewals);
    long long left = scene_pttl("N");
    ck_assert_int_gt(left, 0);
    test_pause_ms((long)left + 1);
    ck_assert(scene_wait_free("N", 500));
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, renewals), before);
}
END_TEST

/* Applies `action` to the reply to x's next renewal, and waits until that happens. */
static void next_renewal(enum test_action action)
{
    int rule =
        SCENE_RULE(RLK_MUTEX_RENEW, .on = TEST_ON_REPLY, .action = action, .count = 1);
    ck_assert(test_proxy_wait_hits(scene_proxy, rule, 1, SCENE_SOON_MS));
    test_proxy_remove(scene_proxy, rule);
}

START_TEST(renewals_with_every_other_reply_lost_do_not_lose_the_lock)
{
    start_x(SCENE_TIMES(.lease = test_ms(1200)));
    scene_says(&x, "ok", "on t lock m");
    for (int i = 0; i < 2; i++) {
        next_renewal(TEST_DROP);
        ck_assert_int_gt(worker_number(&x, "on t remaining m"), 0);
        scene_worker_has_no_more_than(&x, scene_pttl("N"));
        next_renewal(TEST_WATCH);
    }
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

START_TEST(cancel_whose_reply_never_comes_costs_100_ms_at_most)
{
    start_x(NULL);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    SCENE_RULE(RLK_MUTEX_CANCEL, .on = TEST_ON_REPLY, .action = TEST_DROP);
    int64_t begin = test_now_ms();
    scene_says(&x, "ETIMEDOUT", "on t timedlock m 100");
    ck_assert_int_lt(test_now_ms() - begin, 100 + 100 + test_ms(100));
    ck_assert(scene_wait_queued("N", 0, SCENE_SOON_MS));
}
END_TEST

START_TEST(cancel_that_finds_the_lock_its_own_takes_it)
{
    start_x(NULL);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 grant");
    const char *came = NULL;
    do { /* see scene_cancel_left: the reply may come too late as well */
        if (came)
            ck_assert_int_eq(rlock_mutex_lock(&m), 0);
        scene_says(&x, "ok", "async t timedlock m %ld", test_ms(200));
        ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
        ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
        came = worker_news(&x, "done t", SCENE_SOON_MS);
        ck_assert_ptr_nonnull(came);
    } while (strcmp(came, "done t ETIMEDOUT") == 0);
    ck_assert_str_eq(came, "done t ok");
    ck_assert(test_redis_exists(scene_redis, "N"));
    scene_says(&x, "ok SAFE", "on t state m");
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

/* ---- ghosts */

static bool has_marker(void *arg)
{
    char key[SCENE_KEY_MAX];
    return test_redis_exists(scene_redis, scene_key(key, arg, "cancelled"));
}

START_TEST(ghost_acquire_that_arrives_after_its_caller_gave_up_takes_nothing)
{
    static char name[] = "N";
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    int ghost = SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                           .count = 1);
    scene_says(&x, "ENOTCONN", "on t trylock m");
    ck_assert(test_wait_until(has_marker, name, SCENE_SOON_MS));
    test_proxy_release(scene_proxy, ghost);
    ck_assert(test_proxy_wait_answered(scene_proxy, ghost, 1, SCENE_SOON_MS));
    ck_assert(test_stays(stays_free, NULL, STAYS_MS));
}
END_TEST

START_TEST(ghost_that_would_queue_does_not_join)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    /* all of them: a call that comes back late makes one more */
    int ghost = SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REQUEST, .action = TEST_HOLD);
    scene_says(&x, "ENOTCONN", "on t timedlock m %d", COMMAND_MS);
    unsigned ghosts = test_proxy_hits(scene_proxy, ghost);
    test_proxy_release(scene_proxy, ghost);
    ck_assert(test_proxy_wait_answered(scene_proxy, ghost, ghosts, SCENE_SOON_MS));
    ck_assert(scene_wait_queued("N", 0, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(test_stays(stays_free, NULL, STAYS_MS));
}
END_TEST

START_TEST(acquire_sent_twice_whose_first_copy_comes_after_the_unlock_takes_nothing)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    int first = SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                           .count = 1);
    scene_says(&x, "ok", "on t lock m"); /* by the second copy */
    scene_says(&x, "ok", "on t unlock m");
    test_proxy_release(scene_proxy, first);
    ck_assert(test_proxy_wait_answered(scene_proxy, first, 1, SCENE_SOON_MS));
    ck_assert(test_stays(stays_free, NULL, STAYS_MS));
}
END_TEST

/* ---- load: threads of two clients use one lock until they are stopped */

static struct load {
    atomic_bool stop;
    atomic_long sections, inside, overlaps, lock_failed, lost, unlock_failed;
    rlock_client_t *client[LOAD_CLIENTS];
    rlock_mutex_t mutex[LOAD_CLIENTS];
    pthread_t thread[LOADERS];
} load;

static void *run_load(void *arg)
{
    rlock_mutex_t *mine = arg;
    while (!atomic_load(&load.stop)) {
        if (rlock_mutex_lock(mine) != 0) {
            atomic_fetch_add(&load.lock_failed, 1);
            break;
        }
        if (atomic_fetch_add(&load.inside, 1) != 0)
            atomic_fetch_add(&load.overlaps, 1);
        atomic_fetch_add(&load.sections, 1);
        atomic_fetch_sub(&load.inside, 1);
        int rc = rlock_mutex_unlock(mine);
        if (rc == ESTALE)
            atomic_fetch_add(&load.lost, 1);
        else if (rc != 0)
            atomic_fetch_add(&load.unlock_failed, 1);
    }
    return NULL;
}

static void start_load(const struct scene_times *times)
{
    memset(&load, 0, sizeof(load));
    for (int i = 0; i < LOAD_CLIENTS; i++) {
        load.client[i] = scene_client(test_proxy_url(scene_proxy), times);
        scene_mutex(&load.mutex[i], load.client[i], "L");
    }
    for (int i = 0; i < LOADERS; i++)
        ck_assert_int_eq(pthread_create(&load.thread[i], NULL, run_load,
                                        &load.mutex[i % LOAD_CLIENTS]),
                         0);
}

static bool load_has_come_to(void *arg)
{
    return atomic_load(&load.sections) >= *(const long *)arg;
}

/* Waits for `n` more critical sections. */
static bool load_goes_on(long n, long ms)
{
    long until = atomic_load(&load.sections) + n;
    return test_wait_until(load_has_come_to, &until, ms);
}

static void end_load(void)
{
    atomic_store(&load.stop, true);
    for (int i = 0; i < LOADERS; i++)
        pthread_join(load.thread[i], NULL);
    for (int i = 0; i < LOAD_CLIENTS; i++)
        ck_assert_int_eq(rlock_client_close(load.client[i]), 0);
    ck_assert_int_eq(atomic_load(&load.lock_failed), 0);
    ck_assert_int_eq(atomic_load(&load.unlock_failed), 0);
}

START_TEST(a_server_that_restarts_empty_stops_nobody)
{
    start_load(SCENE_TIMES(.lease = test_ms(1000)));
    for (long i = test_count(8, 2); i > 0; i--) {
        ck_assert(load_goes_on(50, SCENE_SOON_MS));
        test_server_restart(&scene_server);
    }
    ck_assert(load_goes_on(100, SCENE_SOON_MS));
    end_load();
}
END_TEST

START_TEST(a_server_that_forgets_the_scripts_stops_nobody)
{
    start_load(SCENE_TIMES(.presence = test_ms(1000)));
    for (long i = test_count(500, 60); i > 0; i--) {
        test_redis_do(scene_redis, "SCRIPT", "FLUSH");
        ck_assert(load_goes_on(5, SCENE_SOON_MS));
    }
    end_load();
    ck_assert_int_eq(atomic_load(&load.overlaps), 0);
    ck_assert_int_eq(atomic_load(&load.lost), 0);
}
END_TEST

START_TEST(no_wake_up_is_lost_while_subscribers_are_killed)
{
    start_load(SCENE_TIMES(.presence = test_ms(1000)));
    int64_t begin = test_now_ms();
    for (long i = test_count(300, 60); i > 0; i--) {
        test_redis_do(scene_redis, "CLIENT", "KILL", "TYPE", "pubsub");
        ck_assert(load_goes_on(5, 3000));
    }
    /* a lost wake-up, which only the backstop mends, costs 333 ms */
    ck_assert_int_lt(test_now_ms() - begin, test_ms(test_count(300, 60) * 100));
    end_load();
    ck_assert_int_eq(atomic_load(&load.overlaps), 0);
    ck_assert_int_eq(atomic_load(&load.lost), 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("faults");

    TCase *lost = scene_tcase(s, "lost replies", open_scene, close_scene);
    tcase_add_test(lost, acquire_whose_reply_is_cut_off_is_held_once);
    tcase_add_test(lost, acquire_whose_reply_never_comes_is_given_back);
    tcase_add_test(lost, a_reply_that_is_late_adds_nothing_to_the_lease);
    tcase_add_test(lost, late_renewal_reply_adds_nothing_to_the_lease);
    tcase_add_test(lost, release_whose_reply_never_comes_succeeds_in_time);
    tcase_add_test(lost, release_whose_reply_is_lost_frees_no_later_hold);
    tcase_add_test(lost, what_was_unlocked_without_an_answer_is_renewed_no_more);
    tcase_add_test(lost, renewals_with_every_other_reply_lost_do_not_lose_the_lock);
    tcase_add_test(lost, cancel_whose_reply_never_comes_costs_100_ms_at_most);
    tcase_add_test(lost, cancel_that_finds_the_lock_its_own_takes_it);

    TCase *ghosts = scene_tcase(s, "ghosts", open_scene, close_scene);
    tcase_add_test(ghosts,
                   ghost_acquire_that_arrives_after_its_caller_gave_up_takes_nothing);
    tcase_add_test(ghosts, ghost_that_would_queue_does_not_join);
    tcase_add_test(
        ghosts, acquire_sent_twice_whose_first_copy_comes_after_the_unlock_takes_nothing);

    TCase *load_cases = scene_tcase(s, "under load", open_scene, close_scene);
    tcase_add_test(load_cases, a_server_that_restarts_empty_stops_nobody);
    tcase_add_test(load_cases, a_server_that_forgets_the_scripts_stops_nobody);
    tcase_add_test(load_cases, no_wake_up_is_lost_while_subscribers_are_killed);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
