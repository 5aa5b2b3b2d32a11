/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the next holder of a robust lock learns when the holder was killed (rules G8,
 * G13): v dies before it knows that it has the lock, inside its unlock, after it has
 * handed the lock over, or after hand-offs among its threads. Each test runs for the
 * mutex and for the fair lock.
 */
#include "recoveryscene.h"

#include <stdio.h>

static const struct kind {
    const char *options;
    enum rlk_script_id acquire, release;
} kinds[] = {
    { "robust=1", RLK_MUTEX_ACQUIRE, RLK_MUTEX_RELEASE },
    { "robust=1 fair=1", RLK_FAIR_ACQUIRE, RLK_FAIR_RELEASE },
    { "", RLK_MUTEX_ACQUIRE, RLK_MUTEX_RELEASE },
    { "rwlock=1", RLK_RWLOCK_WRITE, RLK_RWLOCK_RELEASE },
};
enum { ROBUST = 2, ALL = sizeof(kinds) / sizeof(kinds[0]) };

/* w waits for "N", and gets it with this code when v is killed. */
static void w_gets_it_with(const char *code)
{
    scene_worker_waits(&w, "N", 1);
    recovery_kill_v();
    scene_worker_ends(&w, "t", code);
    recovery_is_safe(&w);
}

/* From then on w uses the lock like any other. */
static void w_goes_on(void)
{
    scene_says(&w, "ok", "on t unlock m");
    scene_says(&w, "ok", "on t lock m");
    scene_says(&w, "ok", "on t unlock m");
}

static void start_two(int i)
{
    recovery_start(&v, "N", kinds[i].options);
    recovery_start(&w, "N", kinds[i].options);
}

/* x dies inside, and is recovered before another process comes. */
static void x_dies_inside(int i)
{
    recovery_start(&x, "N", kinds[i].options);
    scene_worker_does(&x, "lock");
    worker_kill(&x);
    recovery_look(0);
    ck_assert(!test_redis_exists(scene_redis, "N"));
}

/* The next request of this script is executed, but its client does not get the reply. */
static int hold_reply(enum rlk_script_id script)
{
    return SCENE_RULE(script, .on = TEST_ON_REPLY, .action = TEST_HOLD, .count = 1);
}

/* ---- v never knew that it had the lock */

static void v_has_it_unawares(int i)
{
    hold_reply(kinds[i].acquire);
    scene_says(&v, "ok", "async t lock m");
    ck_assert(scene_wait_held("N", SCENE_SOON_MS));
}

/* rule: G13 */
START_TEST(process_killed_before_its_acquire_reply_is_no_dead_owner)
{
    start_two(_i);
    v_has_it_unawares(_i);
    w_gets_it_with("ok");
    w_goes_on();
}
END_TEST

/* rule: G13 */
START_TEST(earlier_owner_died_mark_survives_such_a_death)
{
    x_dies_inside(_i);
    start_two(_i);
    scene_says(&v, "ok", "init m2 other %s", kinds[_i].options);
    scene_says(&v, "ok", "on t lock m2"); /* it was inside another lock, and left it */
    scene_says(&v, "ok", "on t unlock m2");
    v_has_it_unawares(_i);
    w_gets_it_with("EOWNERDEAD");
    scene_says(&w, "ok", "on t consistent m");
    w_goes_on();
}
END_TEST

/* rule: G13 */
START_TEST(process_killed_before_its_grant_arrived_is_no_dead_owner)
{
    start_two(_i);
    recovery_start(&x, "N", kinds[_i].options);
    scene_worker_does(&x, "lock");
    scene_worker_waits(&v, "N", 1);
    RECOVERY_RULE(.on = TEST_ON_MESSAGE, .action = TEST_DROP);
    RECOVERY_RULE(.on = TEST_ON_REPLY, .action = TEST_HOLD);
    scene_says(&x, "ok", "on t unlock m");
    ck_assert(scene_wait_queued("N", 0, SCENE_SOON_MS));
    w_gets_it_with("ok");
    w_goes_on();
}
END_TEST

/* ---- inside an unlock */

/* The release of v's thread does not arrive at the server. */
static int v_unlocks_in_vain(int i)
{
    int held = scene_hold_first(kinds[i].release);
    scene_says(&v, "ok", "async t unlock m");
    ck_assert(test_proxy_wait_hits(scene_proxy, held, 1, SCENE_SOON_MS));
    return held;
}

/* rule: G8 */
START_TEST(process_killed_in_its_unlock_is_no_dead_owner)
{
    start_two(_i);
    scene_worker_does(&v, "lock");
    int held = v_unlocks_in_vain(_i);
    w_gets_it_with("ok");
    scene_let_go(held); /* v's release, which has no effect any more */
    recovery_is_safe(&w);
    w_goes_on();
}
END_TEST

/* rule: G8 */
START_TEST(process_killed_unlocking_an_inconsistent_lock_is_a_dead_owner)
{
    x_dies_inside(_i);
    start_two(_i);
    scene_says(&v, "EOWNERDEAD", "on t lock m");
    int held = v_unlocks_in_vain(_i);
    w_gets_it_with("EOWNERDEAD");
    scene_let_go(held);
    recovery_is_safe(&w);
    scene_says(&w, "ok", "on t consistent m");
    w_goes_on();
}
END_TEST

/* rule: G13 */
START_TEST(lock_made_not_recoverable_by_a_killed_process_stays_so)
{
    x_dies_inside(_i);
    start_two(_i);
    scene_says(&v, "EOWNERDEAD", "on t lock m");
    int late = hold_reply(kinds[_i].release);
    scene_says(&v, "ok", "async t unlock m");
    ck_assert(test_proxy_wait_hits(scene_proxy, late, 1, SCENE_SOON_MS));
    recovery_kill_v();
    recovery_look(1);
    ck_assert_str_eq(scene_mark("N"), "not recoverable");
    scene_says(&w, "ENOTRECOVERABLE", "on t lock m");
}
END_TEST

/* ---- after the lock was handed over */

/* rule: G11 */
START_TEST(death_after_a_hand_over_takes_nothing_from_the_next_holder)
{
    start_two(_i);
    recovery_start(&x, "N", kinds[_i].options);
    scene_worker_does(&v, "lock");
    scene_worker_waits(&w, "N", 1);
    scene_worker_waits(&x, "N", 2);
    hold_reply(kinds[_i].release);
    scene_says(&v, "ok", "async t unlock m");
    recovery_has_it(&w);
    recovery_kill_v(); /* it does not know yet that w has the lock */
    recovery_wait_files(2);
    recovery_is_safe(&w);
    recovery_still_waits(&x);
    ck_assert_ptr_null(recovery_event(&x)); /* v died without the lock */
    scene_says(&w, "ok", "on t unlock m");
    recovery_has_it(&x);
}
END_TEST

/* rule: G11 */
START_TEST(death_after_a_forced_unlock_takes_nothing_from_the_next_holder)
{
    start_two(_i);
    recovery_start(&x, "N", kinds[_i].options);
    scene_worker_does(&v, "lock");
    scene_says(&x, "ok", "force N");
    scene_says(&x, "ok", "on t lock m");
    scene_worker_waits(&w, "N", 1);
    recovery_kill_v();
    recovery_wait_files(2);
    recovery_is_safe(&x);
    recovery_still_waits(&w);
    scene_says(&x, "ok", "on t unlock m");
    recovery_has_it(&w);
}
END_TEST

/* ---- hand-offs among v's threads */

static bool is_waiting(void *who)
{
    return scene_stat(who, "waiters_now") > 0;
}

/* v's threads a and b have been inside, one after the other, by one hold. */
static void pass_on(const char *options)
{
    char url[TEST_URL_MAX + 64], id[SCENE_ID_MAX], same[SCENE_ID_MAX];
    snprintf(url, sizeof(url), "%s?retain=%ld&handoffms=%ld", test_proxy_url(scene_proxy),
             test_ms(RECOVERY_LEASE_MS), test_ms(RECOVERY_LEASE_MS));
    recovery_start(&w, "N", options);
    recovery_start_at(&v, url, "N", options);
    scene_says(&v, "ok", "on a lock m");
    scene_says(&v, "ok", "async b lock m");
    ck_assert(scene_holder("N", id));
    ck_assert(test_wait_until(is_waiting, &v, SCENE_SOON_MS));
    scene_says(&v, "ok", "on a unlock m");
    scene_worker_ends(&v, "b", "ok");
    ck_assert(scene_holder("N", same));
    ck_assert_str_eq(id, same);
}

/* rule: G8 */
START_TEST(process_killed_in_a_passed_on_section_is_a_dead_owner)
{
    pass_on(kinds[0].options);
    w_gets_it_with("EOWNERDEAD");
}
END_TEST

/* rule: G8 */
START_TEST(process_killed_after_a_passed_on_section_is_no_dead_owner)
{
    pass_on(kinds[0].options);
    scene_says(&v, "ok", "on b unlock m"); /* retained */
    ck_assert(test_redis_exists(scene_redis, "N"));
    recovery_kill_v();
    scene_says(&w, "ok", "on t lock m");
}
END_TEST

/* rule: G8 */
START_TEST(process_killed_in_a_retaken_section_is_a_dead_owner)
{
    pass_on(kinds[0].options);
    scene_says(&v, "ok", "on b unlock m");
    scene_says(&v, "ok", "on a lock m");
    w_gets_it_with("EOWNERDEAD");
}
END_TEST

/* A thread has one lock at a time by the fast path: the second is retaken by another. */
/* rule: G8 */
START_TEST(process_killed_in_a_second_retaken_section_is_a_dead_owner)
{
    pass_on(kinds[0].options);
    scene_says(&v, "ok", "on b unlock m");
    scene_says(&v, "ok", "init k K robust=1");
    for (int i = 0; i < 3; i++) { /* the last time by the fast path */
        if (i > 0)
            scene_says(&v, "ok", "on a unlock k");
        scene_says(&v, "ok", "on a lock k");
    }
    scene_says(&v, "ok", "on a lock m");
    w_gets_it_with("EOWNERDEAD");
}
END_TEST

/* rule: G8 */
START_TEST(process_killed_after_a_retaken_section_is_no_dead_owner)
{
    pass_on(kinds[0].options);
    scene_says(&v, "ok", "on b unlock m");
    for (int i = 0; i < 2;
         i++) { /* the second time by the fast path, as no other wants it */
        scene_says(&v, "ok", "on b lock m");
        scene_says(&v, "ok", "on b unlock m");
    }
    recovery_kill_v();
    scene_says(&w, "ok", "on t lock m");
}
END_TEST

/* ---- several deaths */

/* rule: G13 */
START_TEST(process_killed_after_making_the_lock_consistent_is_a_dead_owner)
{
    x_dies_inside(_i);
    start_two(_i);
    scene_says(&v, "EOWNERDEAD", "on t lock m");
    scene_says(&v, "ok", "on t consistent m");
    w_gets_it_with("EOWNERDEAD");
    scene_says(&w, "ok", "on t unlock m"); /* not consistent */
    scene_says(&w, "ENOTRECOVERABLE", "on t lock m");
}
END_TEST

/* rule: G13 */
START_TEST(lock_made_consistent_and_unlocked_by_a_killed_process_is_clean)
{
    x_dies_inside(_i);
    start_two(_i);
    scene_says(&v, "EOWNERDEAD", "on t lock m");
    scene_says(&v, "ok", "on t consistent m");
    scene_says(&v, "ok", "on t unlock m");
    recovery_kill_v();
    recovery_look(1);
    scene_says(&w, "ok", "on t lock m");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("recovery, robust");
    TCase *tc = scene_tcase(s, "unawares", recovery_open, recovery_close);
    tcase_add_loop_test(tc, process_killed_before_its_acquire_reply_is_no_dead_owner, 0,
                        ROBUST);
    tcase_add_loop_test(tc, earlier_owner_died_mark_survives_such_a_death, 0, ROBUST);
    tcase_add_loop_test(tc, process_killed_before_its_grant_arrived_is_no_dead_owner, 0,
                        ROBUST);
    tc = scene_tcase(s, "unlock", recovery_open, recovery_close);
    tcase_add_loop_test(tc, process_killed_in_its_unlock_is_no_dead_owner, 0, ROBUST);
    tcase_add_loop_test(tc, process_killed_unlocking_an_inconsistent_lock_is_a_dead_owner,
                        0, ROBUST);
    tcase_add_loop_test(tc, lock_made_not_recoverable_by_a_killed_process_stays_so, 0,
                        ROBUST);
    tc = scene_tcase(s, "others", recovery_open, recovery_close);
    tcase_add_loop_test(tc, death_after_a_hand_over_takes_nothing_from_the_next_holder, 0,
                        ALL);
    tcase_add_loop_test(
        tc, death_after_a_forced_unlock_takes_nothing_from_the_next_holder, 0, ALL);
    tc = scene_tcase(s, "threads", recovery_open, recovery_close);
    tcase_add_test(tc, process_killed_in_a_passed_on_section_is_a_dead_owner);
    tcase_add_test(tc, process_killed_after_a_passed_on_section_is_no_dead_owner);
    tcase_add_test(tc, process_killed_in_a_retaken_section_is_a_dead_owner);
    tcase_add_test(tc, process_killed_in_a_second_retaken_section_is_a_dead_owner);
    tcase_add_test(tc, process_killed_after_a_retaken_section_is_no_dead_owner);
    tc = scene_tcase(s, "several", recovery_open, recovery_close);
    tcase_add_loop_test(
        tc, process_killed_after_making_the_lock_consistent_is_a_dead_owner, 0, ROBUST);
    tcase_add_loop_test(
        tc, lock_made_consistent_and_unlocked_by_a_killed_process_is_clean, 0, ROBUST);
    return test_run_suite(s);
}
