/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_robust_faults */
/*
 * Robust locks when requests, replies and messages are lost: exactly one locker learns of
 * the death, and an unlock leaves nothing behind. robustscene.h says what `self`, `m` and
 * the workers are; here the client of `x` goes through the proxy, and `z` runs from the
 * start.
 */
#include "robustscene.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    COMMAND_MS = 200,
    LEASE_MS = 400,
    PRESENCE_MS = 900, /* polls come every third of it */
    LONG_PRESENCE_MS = 30000,
    FIXED_MS = 20000,
    WAIT_MS = 200,
    OLD_S = 1000
};

static void start_x(const struct scene_times *times)
{
    scene_worker(&x, test_proxy_url(scene_proxy), times, "N", "robust=1");
}

static void open_scene_with_z(void)
{
    open_robust_scene();
    robust_worker(&z, NULL);
}

/* A thread of z takes the lock. It will end inside. */
static void hold(void)
{
    scene_says(&z, "ok", "on dead lock m");
}

static void die(void)
{
    scene_says(&z, "ok", "end dead");
}

static void hold_and_die(void)
{
    hold();
    die();
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
}

static void m_finds_a_death(void)
{
    ck_assert_int_eq(rlock_mutex_lock(&m), EOWNERDEAD);
    ck_assert_int_eq(rlock_mutex_consistent(&m), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
}

static void m_finds_no_death(void)
{
    m_locks_and_unlocks();
}

static bool has_no_mark(void *arg)
{
    (void)arg;
    return scene_mark("N")[0] == '\0';
}

static bool is_not_recoverable(void *arg)
{
    (void)arg;
    return strcmp(scene_mark("N"), "not recoverable") == 0;
}

static bool has_a_mark(void *arg)
{
    return !has_no_mark(arg);
}

/* ---- unlock */

START_TEST(clean_unlock_whose_reply_never_comes_leaves_no_mark)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_says(&x, "ok", "on t lock m");
    scene_drop_replies(RLK_MUTEX_RELEASE, 1);
    scene_says(&x, "ok", "on t unlock m");
    m_finds_no_death();
}
END_TEST

START_TEST(clean_unlock_whose_reply_is_cut_off_leaves_no_mark)
{
    start_x(NULL);
    scene_says(&x, "ok", "on t lock m");
    SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REPLY, .action = TEST_CUT, .keep_len = 5,
               .count = 1);
    scene_says(&x, "ok", "on t unlock m");
    m_finds_no_death();
}
END_TEST

START_TEST(clean_unlock_whose_request_is_lost_leaves_no_mark)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_says(&x, "ok", "on t lock m");
    SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REQUEST, .action = TEST_DROP, .count = 1);
    scene_says(&x, "ok", "on t unlock m");
    ck_assert(test_wait_until(has_no_mark, NULL, SCENE_SOON_MS));
    m_finds_no_death();
}
END_TEST

/* Cuts the connections through the proxy; it accepts none until it is opened again. */
static void cut_off(void)
{
    test_proxy_set_mode(scene_proxy, TEST_PROXY_DOWN);
    test_proxy_cut(scene_proxy, 0, false);
}

static void start_cut_off_holder(const char *answer)
{
    start_x(SCENE_TIMES(.lease = test_ms(LEASE_MS), .command = test_ms(COMMAND_MS)));
    scene_says(&x, answer, "on t lock m");
    cut_off();
    scene_says(&x, "ok", "on t unlock m");
}

START_TEST(clean_unlock_in_an_outage_of_many_leases_leaves_no_mark)
{
    enum { LEASES = 4 };
    start_cut_off_holder("ok");
    scene_wait_past(scene_now_ms() + LEASES * test_ms(LEASE_MS));
    ck_assert(has_a_mark(NULL));
    test_proxy_set_mode(scene_proxy, TEST_PROXY_OPEN);
    ck_assert(test_wait_until(has_no_mark, NULL, SCENE_SOON_MS));
    m_finds_no_death();
}
END_TEST

START_TEST(unlock_of_the_inconsistent_in_an_outage_makes_it_not_recoverable)
{
    hold_and_die();
    start_cut_off_holder("EOWNERDEAD");
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    test_proxy_set_mode(scene_proxy, TEST_PROXY_OPEN);
    ck_assert(test_wait_until(is_not_recoverable, NULL, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_lock(&m), ENOTRECOVERABLE);
}
END_TEST

START_TEST(unlock_in_an_outage_undoes_no_later_EOWNERDEAD)
{
    start_cut_off_holder("ok");
    ck_assert_int_eq(rlock_mutex_lock(&m), EOWNERDEAD);
    ck_assert(test_redis_exists(scene_redis, "N"));
    char mark[SCENE_ID_MAX + 8];
    snprintf(mark, sizeof(mark), "%s", scene_mark("N"));
    int late = SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REPLY, .action = TEST_WATCH);
    test_proxy_set_mode(scene_proxy, TEST_PROXY_OPEN);
    ck_assert(test_proxy_wait_answered(scene_proxy, late, 1, SCENE_SOON_MS));
    ck_assert_str_eq(scene_mark("N"), mark);
}
END_TEST

START_TEST(ghost_of_an_unlock_spoils_no_later_hold)
{
    hold_and_die();
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_says(&x, "EOWNERDEAD", "on t lock m");
    int ghost = scene_hold_first(RLK_MUTEX_RELEASE);
    scene_says(&x, "ok", "on t unlock m"); /* finished in the background */
    ck_assert(test_wait_until(is_not_recoverable, NULL, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_force_unlock(self, "N"), 0);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_let_go(ghost);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    m_finds_no_death();
}
END_TEST

START_TEST(unlock_of_the_inconsistent_whose_reply_never_comes_spoils_it_once)
{
    hold_and_die();
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_says(&x, "EOWNERDEAD", "on t lock m");
    int lost = scene_drop_replies(RLK_MUTEX_RELEASE, 1);
    scene_says(&x, "ok", "async t unlock m");
    ck_assert(test_proxy_wait_answered(scene_proxy, lost, 1, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_lock(&m), ENOTRECOVERABLE);
    int again = SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REPLY, .action = TEST_WATCH);
    ck_assert_int_eq(rlock_force_unlock(self, "N"), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert(test_proxy_wait_answered(scene_proxy, again, 1, SCENE_SOON_MS));
    m_finds_no_death();
}
END_TEST

START_TEST(unlock_when_memory_is_full_does_what_it_is_to)
{
    start_x(NULL);
    scene_says(&x, "ok", "on t lock m");
    test_redis_config(scene_redis, "maxmemory-policy", "noeviction");
    test_redis_config(scene_redis, "maxmemory", "1");
    scene_says(&x, "ok", "on t unlock m");
    ck_assert_str_eq(scene_mark("N"), "");
    test_redis_config(scene_redis, "maxmemory", "0");
    hold_and_die();
    scene_says(&x, "EOWNERDEAD", "on t lock m");
    test_redis_config(scene_redis, "maxmemory", "1");
    scene_says(&x, "ok", "on t unlock m");
    test_redis_config(scene_redis, "maxmemory", "0");
    ck_assert(is_not_recoverable(NULL));
}
END_TEST

/* ---- the report of a death */

START_TEST(acquire_whose_reply_is_cut_off_still_reports_EOWNERDEAD)
{
    hold_and_die();
    start_x(NULL);
    SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_CUT, .keep_len = 5,
               .count = 1);
    scene_says(&x, "EOWNERDEAD", "on t %s m", _i ? "trylock" : "lock");
}
END_TEST

START_TEST(acquire_whose_reply_is_lost_still_reports_EOWNERDEAD)
{
    hold_and_die();
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_drop_replies(RLK_MUTEX_ACQUIRE, 1);
    scene_says(&x, "EOWNERDEAD", "on t lock m");
    scene_says(&x, "ok", "on t consistent m");
    scene_says(&x, "ok", "on t unlock m");
    m_finds_no_death();
}
END_TEST

START_TEST(trylock_that_gave_up_gives_the_news_back)
{
    hold_and_die();
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_drop_replies(RLK_MUTEX_ACQUIRE, 0);
    scene_says(&x, "ENOTCONN", "on t trylock m");
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    m_finds_a_death();
}
END_TEST

START_TEST(trylock_that_gave_up_is_no_death)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_drop_replies(RLK_MUTEX_ACQUIRE, 0);
    scene_says(&x, "ENOTCONN", "on t trylock m");
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    m_finds_no_death();
}
END_TEST

static int lose_grants(void)
{
    return TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
                     .contains = "1 grant");
}

START_TEST(grant_with_EOWNERDEAD_in_its_message_needs_no_poll)
{
    start_x(SCENE_TIMES(.presence = LONG_PRESENCE_MS));
    hold();
    scene_worker_waits(&x, "N", 1);
    int polls =
        SCENE_RULE(RLK_MUTEX_REFRESH, .on = TEST_ON_REQUEST, .action = TEST_WATCH);
    die();
    scene_worker_ends(&x, "t", "EOWNERDEAD");
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, polls), 0);
    scene_says(&x, "ok", "on t consistent m");
    scene_says(&x, "ok", "on t unlock m");
    m_finds_no_death();
}
END_TEST

START_TEST(grant_with_a_lost_message_gives_EOWNERDEAD_by_the_poll)
{
    start_x(SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    hold();
    scene_worker_waits(&x, "N", 1);
    lose_grants();
    die();
    scene_worker_ends(&x, "t", "EOWNERDEAD");
    scene_says(&x, "ok", "on t consistent m");
    scene_says(&x, "ok", "on t unlock m");
    m_finds_no_death();
}
END_TEST

START_TEST(cancel_that_finds_the_lock_its_own_tells_it)
{
    enum { TRIES = 5 };
    bool told = false;
    start_x(SCENE_TIMES(.presence = LONG_PRESENCE_MS));
    for (int i = 0; !told; i++) {
        hold();
        scene_says(&x, "ok", "async t timedlock m %ld", test_ms(WAIT_MS));
        ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
        int lost = lose_grants();
        die();
        const char *news = worker_news(&x, "done t", SCENE_SOON_MS);
        ck_assert_ptr_nonnull(news);
        told = strcmp(news, "done t EOWNERDEAD") == 0;
        if (!told) { /* the 100 ms for the cancel passed before its answer came: see
                        scene_cancel_left */
            ck_assert_str_eq(news, "done t ETIMEDOUT");
            ck_assert_int_lt(i, TRIES);
            test_proxy_remove(scene_proxy, lost);
            ck_assert(scene_wait_free("N", SCENE_SOON_MS));
            m_finds_a_death();
        }
    }
    scene_says(&x, "ok", "on t unlock m");
    ck_assert(is_not_recoverable(NULL));
}
END_TEST

START_TEST(grant_that_is_given_back_gives_the_news_back)
{
    start_x(SCENE_TIMES(.presence = LONG_PRESENCE_MS));
    hold();
    /* so that no time is left to confirm a fixed lease */
    scene_says(&x, "ok", "async t timedlock m %ld %d", test_ms(WAIT_MS), FIXED_MS);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    lose_grants();
    die();
    scene_worker_ends(&x, "t", "ETIMEDOUT");
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    m_finds_a_death();
}
END_TEST

START_TEST(fixed_lease_confirmed_after_the_grant_reports_EOWNERDEAD)
{
    start_x(SCENE_TIMES(.presence = LONG_PRESENCE_MS));
    hold();
    scene_says(&x, "ok", "async t lock m %d", FIXED_MS);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    die();
    scene_worker_ends(&x, "t", "EOWNERDEAD");
    scene_says(&x, "ok", "on t consistent m");
    scene_says(&x, "ok", "on t unlock m");
    m_finds_no_death();
}
END_TEST

/* Grants the lock to a stopped waiter, which never reads the grant. */
static void grant_to_the_stopped(void)
{
    char id[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    hold();
    scene_worker_waits(&x, "N", 1);
    ck_assert(scene_holder("N", id));
    worker_stop(&x);
    die();
    ck_assert(scene_wait_holder_gone("N", id, SCENE_SOON_MS));
    ck_assert(test_redis_exists(scene_redis, "N"));
}

START_TEST(news_that_a_stopped_waiter_never_read_come_to_the_next)
{
    grant_to_the_stopped();
    m_finds_a_death();
    worker_cont(&x);
    scene_worker_ends(&x, "t", "ok"); /* x queued again */
}
END_TEST

START_TEST(news_that_a_killed_waiter_never_read_come_to_the_next)
{
    grant_to_the_stopped();
    worker_kill(&x);
    m_finds_a_death();
    m_finds_no_death();
}
END_TEST

START_TEST(call_to_the_waiters_that_is_lost_is_made_up_for_by_their_polls)
{
    start_x(SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    hold_and_die();
    scene_says(&z, "EOWNERDEAD", "on t lock m");
    scene_says(&x, "ok", "init r N rwlock=1");
    scene_worker_waits(&x, "N", 1);
    scene_says(&x, "ok", "async reader rdlock r");
    ck_assert(scene_wait_count("N", "rqueue", 1, SCENE_SOON_MS));
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 lost");
    scene_says(&z, "ok", "on t unlock m");
    scene_worker_ends(&x, "t", "ENOTRECOVERABLE");
    scene_worker_ends(&x, "reader", "ENOTRECOVERABLE");
}
END_TEST

/* ---- how long a mark lives */

static bool is_renewed(void *arg)
{
    char key[SCENE_KEY_MAX];
    (void)arg;
    return test_redis_int(scene_redis, "TTL", scene_key(key, "N", "dirty")) > OLD_S;
}

START_TEST(renewals_prolong_the_mark_and_restore_a_lost_one)
{
    char key[SCENE_KEY_MAX], id[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    scene_says(&x, "ok", "on t lock m");
    test_redis_do(scene_redis, "EXPIRE", scene_key(key, "N", "dirty"), "1000");
    ck_assert(test_wait_until(is_renewed, NULL, SCENE_SOON_MS));
    test_redis_do(scene_redis, "DEL", key);
    ck_assert(test_wait_until(has_a_mark, NULL, SCENE_SOON_MS));
    ck_assert(scene_holder("N", id));
    ck_assert_int_eq(strncmp(scene_mark("N"), id, strlen(id)), 0);
    ck_assert(is_renewed(NULL));
    scene_says(&x, "ok", "on t unlock m");
    m_finds_no_death();
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("robust_faults");
    TCase *tc = scene_tcase(s, "unlock", open_scene_with_z, close_scene);
    tcase_add_test(tc, clean_unlock_whose_reply_never_comes_leaves_no_mark);
    tcase_add_test(tc, clean_unlock_whose_reply_is_cut_off_leaves_no_mark);
    tcase_add_test(tc, clean_unlock_whose_request_is_lost_leaves_no_mark);
    tcase_add_test(tc, clean_unlock_in_an_outage_of_many_leases_leaves_no_mark);
    tcase_add_test(tc, unlock_of_the_inconsistent_in_an_outage_makes_it_not_recoverable);
    tcase_add_test(tc, unlock_in_an_outage_undoes_no_later_EOWNERDEAD);
    tcase_add_test(tc, ghost_of_an_unlock_spoils_no_later_hold);
    tcase_add_test(tc, unlock_of_the_inconsistent_whose_reply_never_comes_spoils_it_once);
    tcase_add_test(tc, unlock_when_memory_is_full_does_what_it_is_to);
    tc = scene_tcase(s, "news", open_scene_with_z, close_scene);
    tcase_add_loop_test(tc, acquire_whose_reply_is_cut_off_still_reports_EOWNERDEAD, 0,
                        2);
    tcase_add_test(tc, acquire_whose_reply_is_lost_still_reports_EOWNERDEAD);
    tcase_add_test(tc, trylock_that_gave_up_gives_the_news_back);
    tcase_add_test(tc, trylock_that_gave_up_is_no_death);
    tcase_add_test(tc, grant_with_EOWNERDEAD_in_its_message_needs_no_poll);
    tcase_add_test(tc, grant_with_a_lost_message_gives_EOWNERDEAD_by_the_poll);
    tcase_add_test(tc, cancel_that_finds_the_lock_its_own_tells_it);
    tcase_add_test(tc, grant_that_is_given_back_gives_the_news_back);
    tcase_add_test(tc, fixed_lease_confirmed_after_the_grant_reports_EOWNERDEAD);
    tcase_add_test(tc, news_that_a_stopped_waiter_never_read_come_to_the_next);
    tcase_add_test(tc, news_that_a_killed_waiter_never_read_come_to_the_next);
    tcase_add_test(tc, call_to_the_waiters_that_is_lost_is_made_up_for_by_their_polls);
    tcase_add_test(tc, renewals_prolong_the_mark_and_restore_a_lost_one);
    return s;
}

int main(void)
{
    return test_run_suite(suite());
}
