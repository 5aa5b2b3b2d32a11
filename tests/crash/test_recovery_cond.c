/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=V15 */
/* Conditions whose waiters are killed, with the crash guard on: presences are too long to
 * end within a test. x is killed; y waits. */
#include "condscene.h"

enum { PRESENCE_MS = 30000 };

static void open_guarded(void)
{
    scene_open();
    test_rundir_own();
    memset(&x, 0, sizeof(x));
    memset(&y, 0, sizeof(y));
    self = scene_client(scene_server.url, NULL);
    scene_mutex(&m, self, "N");
    cond_of(&c, self, "C");
    start_y(SCENE_TIMES(.presence = PRESENCE_MS));
    /* not through the proxy: both call the server by one name (G7) */
    start_worker(&x, scene_server.url, SCENE_TIMES(.presence = PRESENCE_MS), "");
}

/* x waits, then y; x gets a signal that it cannot take. */
static void signal_x(void)
{
    wait_in(&x, "t", "wait c m");
    wait_in(&y, "t", "wait c m");
    worker_stop(&x);
    ck_assert_int_eq(rlock_cond_signal(&c), 0);
    wait_for_signalled(1);
    ck_assert_int_eq(waiting(), 1);
}

/* rule: V15 */
START_TEST(signal_of_a_killed_process_goes_to_another_at_once)
{
    signal_x();
    worker_kill(&x);
    wakes(&y, "t", "ok");
}
END_TEST

/* rule: V15 */
START_TEST(killed_waiter_gets_no_signal)
{
    wait_in(&x, "t", "wait c m");
    wait_in(&y, "t", "wait c m");
    worker_kill(&x);
    wait_for_waiting(1); /* y has taken it out */
    ck_assert_int_eq(rlock_cond_signal(&c), 0);
    wakes(&y, "t", "ok");
}
END_TEST

/* rule: V15 */
START_TEST(condition_and_lock_of_one_name_are_recovered_both)
{
    scene_says(&x, "ok", "init k C");
    scene_says(&x, "ok", "on u lock k 600000");
    signal_x();
    scene_says(&y, "ok", "init k C");
    scene_says(&y, "ok", "async u lock k");
    ck_assert(scene_wait_queued("C", 1, SCENE_SOON_MS));
    worker_kill(&x);
    scene_worker_ends(&y, "u", "ok");
    wakes(&y, "t", "ok");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("recovery_cond");
    TCase *tc = scene_tcase(s, "killed", open_guarded, close_scene);
    tcase_add_test(tc, signal_of_a_killed_process_goes_to_another_at_once);
    tcase_add_test(tc, killed_waiter_gets_no_signal);
    tcase_add_test(tc, condition_and_lock_of_one_name_are_recovered_both);
    return test_run_suite(s);
}
