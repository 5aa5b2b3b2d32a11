/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=E1,E2,E3,E8,E11,E12,E13 */
/* Deadlocks between real processes: each party reports cycles of all types, one
 * victim gives up where threads may fail, and nobody reports anything else. */
#include "deadscene.h"

/* ---- two parties */

/* p[0] has a and waits for b, p[1] has b and waits for a. */
static void cross(const char *options0, const char *options1)
{
    make_locks(start_party(""), "ab", options0);
    make_locks(start_party(""), "ab", options1);
    scene_says(&p[0], "ok", "on t lock a");
    scene_says(&p[1], "ok", "on t lock b");
    begins(&p[0], "t", "lock b");
    begins(&p[1], "t", "lock a");
}

/* The options of a lock of the type that the loop is at. */
static const char *option_of(int type)
{
    static const char *const options[] = { "", "fair=1", "rwlock=1", "retain=10000" };
    return options[type];
}
enum { RWLOCK = 2, TYPES = 4 };

/* rule: E1, E5 */
START_TEST(each_party_of_a_deadlock_reports_it_once)
{
    cross(option_of(_i), option_of(_i));
    tells(&p[0], "b");
    tells(&p[1], "a");
    nobody_tells();
    ck_assert_int_eq(scene_stat(&p[0], "deadlocks"), 1);
    ck_assert_int_eq(scene_stat(&p[1], "deadlocks"), 1);
}
END_TEST

START_TEST(the_text_names_the_whole_cycle)
{
    cross("", "");
    const char *news = tells(&p[0], "b");
    char wanted[64];
    snprintf(wanted, sizeof(wanted), ":%ld:worker, which waits for \"a\"",
             (long)p[1].program.pid);
    ck_assert_msg(strstr(news, "exclusive \"b\" is held by "), "%s", news);
    ck_assert_msg(strstr(news, wanted), "%s", news);
    ck_assert_msg(strstr(news, ", held by this thread"), "%s", news);
}
END_TEST

/* rule: E7, E8 */
START_TEST(one_thread_gets_EDEADLK_and_the_other_one_the_lock)
{
    cross("deadlock=fail", "deadlock=fail");
    const char *first = NULL;
    int victim = -1;
    while (victim < 0)
        for (int i = 0; i < 2 && victim < 0; i++)
            if ((first = worker_news(&p[i], "done t", 0)) != NULL)
                victim = i;
    ck_assert_str_eq(first, "done t EDEADLK");
    struct worker *loser = &p[victim], *winner = &p[!victim];
    scene_says(loser, "ok deadlock: \"", "on t errmsg");
    scene_says(loser, "ok", "on t unlock %s", victim == 0 ? "a" : "b");
    ends(winner, "t", "ok");
    scene_says(winner, "ok", "on t unlock a");
    scene_says(winner, "ok", "on t unlock b");
    ck_assert_int_eq(scene_stat(loser, "holds_now"), 0);
    scene_nothing_is_left("a");
    scene_nothing_is_left("b");
}
END_TEST

/* ---- more parties */

/* rule: E1, E5, E7 */
START_TEST(one_of_2_to_8_parties_of_a_ring_gives_up)
{
    int count = _i + 2, given_up = 0, told = 0;
    char letters[3] = "";

    for (int i = 0; i < count; i++) {
        letters[0] = (char)('a' + i);
        letters[1] = (char)('a' + (i + 1) % count);
        start_party("");
        for (int j = 0; j < 2; j++)
            scene_says(&p[i], "ok", "init %c %c deadlock=fail %s", letters[j], letters[j],
                       option_of((letters[j] - 'a') % (TYPES - 1)));
        scene_says(&p[i], "ok", "on t lock %c", letters[0]);
    }
    for (int i = 0; i < count; i++) {
        char command[16];
        int next = (i + 1) % count;
        snprintf(command, sizeof(command), "%s %c",
                 next % (TYPES - 1) == RWLOCK ? "rdlock" : "lock", 'a' + next);
        begins(&p[i], "t", command);
    }
    while (given_up == 0)
        for (int i = 0; i < count; i++)
            given_up += worker_news(&p[i], "done t EDEADLK", 0) != NULL;
    for (int i = 0; i < count; i++)
        told += worker_news(&p[i], "event DEADLOCK", i == 0 ? DEAD_STAYS_MS : 0) != NULL;
    ck_assert_int_eq(given_up, 1);
    ck_assert_int_ge(told, 1);
    for (int i = 0; i < count; i++)
        ck_assert_ptr_null(worker_news(&p[i], "done t", 0));
}
END_TEST

/* rule: E5 */
START_TEST(who_waits_for_a_ring_from_outside_gets_no_report)
{
    cross("", "");
    make_locks(start_party(""), "acd", "");
    make_locks(start_party(""), "cd", "");
    scene_says(&p[2], "ok", "on t lock c");
    scene_says(&p[3], "ok", "on t lock d");
    begins(&p[2], "t", "lock a");
    begins(&p[3], "t", "lock c");
    tells(&p[0], "b");
    tells(&p[1], "a");
    nobody_tells();
}
END_TEST

/* rule: E5 */
START_TEST(chain_without_a_cycle_gets_no_report)
{
    make_locks(start_party(""), "ab", "");
    make_locks(start_party(""), "bc", "");
    make_locks(start_party(""), "c", "");
    scene_says(&p[0], "ok", "on t lock a");
    scene_says(&p[1], "ok", "on t lock b");
    scene_says(&p[2], "ok", "on t lock c");
    begins(&p[0], "t", "lock b");
    begins(&p[1], "t", "lock c");
    nobody_tells();
    ck_assert_int_gt(scene_stat(&p[0], "deadlock_probes"), 0);
    scene_says(&p[2], "ok", "on t unlock c");
    ends(&p[1], "t", "ok");
}
END_TEST

/* rule: E7 */
START_TEST(only_a_thread_that_may_fail_gives_up)
{
    cross(_i == 0 ? "deadlock=fail" : "", _i == 1 ? "deadlock=fail" : "");
    ends(&p[_i], "t", "EDEADLK");
    scene_says(&p[_i], "ok", "on t unlock %c", 'a' + _i);
    ends(&p[!_i], "t", "ok");
}
END_TEST

/* ---- readers */

/* rule: E1, E6 */
START_TEST(writer_that_waits_for_two_readers_is_in_two_cycles)
{
    for (int i = 0; i < 3; i++)
        make_locks(start_party(""), "ab", "rwlock=1");
    scene_says(&p[0], "ok", "on t lock a");
    scene_says(&p[1], "ok", "on t rdlock b");
    scene_says(&p[2], "ok", "on t rdlock b");
    begins(&p[0], "t", "lock b");
    begins(&p[1], "t", "rdlock a");
    begins(&p[2], "t", "lock a");
    tells(&p[0], "b");
    tells(&p[0], "b");
    tells(&p[1], "a");
    tells(&p[2], "a");
    nobody_tells();
}
END_TEST

/* rule: E1 */
START_TEST(each_thread_of_a_shared_read_is_inside)
{
    make_locks(start_party(""), "ab", "rwlock=1");
    make_locks(start_party(""), "ab", "rwlock=1");
    for (int i = 0; i < 3; i++)
        scene_says(&p[0], "ok", "on t%d rdlock a", i);
    scene_says(&p[1], "ok", "on t lock b");
    begins(&p[0], "t2", "rdlock b");
    begins(&p[1], "t", "lock a");
    tells(&p[0], "b");
    tells(&p[1], "a");
    nobody_tells();
}
END_TEST

/* ---- threads of one process */

/* rule: E1 */
START_TEST(thread_that_waits_behind_another_of_its_process_is_in_the_cycle)
{
    make_locks(start_party(""), "abc", "deadlock=fail");
    make_locks(start_party(""), "ab", "deadlock=tell");
    scene_says(&p[0], "ok", "on t lock a");
    scene_says(&p[1], "ok", "on t lock b");
    begins(&p[0], "first", "lock b"); /* asks for its process */
    begins(&p[0], "t", "lock b");
    begins(&p[1], "t", "lock a");
    ends(&p[0], "t", "EDEADLK");
    ck_assert_ptr_null(worker_news(&p[0], "done first", 0));
    scene_says(&p[0], "ok", "on t unlock a");
    ends(&p[1], "t", "ok");
    scene_says(&p[1], "ok", "on t unlock b");
    ends(&p[0], "first", "ok");
}
END_TEST

/* rule: E3 */
START_TEST(cycle_of_threads_of_one_process_is_found_without_a_message)
{
    struct worker *w = start_party("");
    make_locks(w, "ab", option_of(_i));
    scene_says(w, "ok", "on t lock a");
    scene_says(w, "ok", "on u lock b");
    int rule = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_WATCH,
                         .contains = "1 probe");
    begins(w, "t", "lock b");
    begins(w, "u", "lock a");
    tells(w, "a");
    tells(w, "b");
    nobody_tells();
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, rule), 0);
}
END_TEST

/* ---- several clients */

/* rule: E13 */
START_TEST(thread_may_be_inside_a_lock_of_one_client_and_wait_with_another)
{
    struct test_server second;
    test_server_start(&second, NULL);
    for (int i = 0; i < 2; i++) {
        struct worker *w = start_party("");
        make_locks(w, "a", "");
        scene_says(w, "ok", "open %s deadlockms=%ld", second.url, test_ms(DEAD_MS));
        make_locks(w, "b", "deadlock=fail");
    }
    scene_says(&p[0], "ok", "on t lock a");
    scene_says(&p[1], "ok", "on t lock b");
    begins(&p[0], "t", "lock b");
    scene_says(&p[1], "ok", "use 1");
    begins(&p[1], "t", "lock a");
    ends(&p[0], "t", "EDEADLK");
    tells(&p[1], "a");
    worker_end(&p[0]);
    worker_end(&p[1]);
    test_server_stop(&second);
}
END_TEST

/* ---- who asks */

/* rule: E2, E12 */
START_TEST(thread_that_holds_nothing_never_asks)
{
    make_locks(start_party(""), "a", "");
    make_locks(start_party(""), "a", "");
    scene_says(&p[1], "ok", "on t lock a");
    for (int i = 0; i < 5; i++) {
        char tag[16];
        snprintf(tag, sizeof(tag), "t%d", i);
        begins(&p[0], tag, "lock a");
    }
    nobody_tells();
    ck_assert_int_eq(scene_stat(&p[0], "deadlock_probes"), 0);
}
END_TEST

/* rule: E2, E12 */
START_TEST(many_threads_that_wait_for_one_lock_ask_once_in_a_period)
{
    enum { MANY = 30 };
    struct worker *w = start_party("");
    char tag[16], name[16];
    make_locks(w, "a", "");
    for (int i = 0; i < MANY; i++) {
        snprintf(tag, sizeof(tag), "t%d", i);
        snprintf(name, sizeof(name), "n%d", i);
        scene_says(w, "ok", "init %s %s", name, name);
        scene_says(w, "ok", "on %s lock %s", tag, name);
    }
    make_locks(start_party(""), "a", "");
    scene_says(&p[1], "ok", "on t lock a");
    for (int i = 0; i < MANY; i++) {
        snprintf(tag, sizeof(tag), "t%d", i);
        begins(w, tag, "lock a");
    }
    while (scene_stat(w, "deadlock_probes") == 0)
        test_pause_ms(1);
    long long before = scene_stat(w, "deadlock_probes");
    int64_t from = test_now_ms();
    test_pause_ms(10 * DEAD_MS);
    long long periods = (test_now_ms() - from) / test_ms(DEAD_MS) + 2;
    ck_assert_int_le(scene_stat(w, "deadlock_probes") - before, periods);
}
END_TEST

/* rule: E2 */
START_TEST(off_starts_nothing_but_answers)
{
    cross("deadlock=off", "");
    tells(&p[1], "a");
    nobody_tells();
    ck_assert_int_eq(scene_stat(&p[0], "deadlocks"), 0);
    scene_says(&p[1], "ok", "stats");
}
END_TEST

/* rule: E12 */
START_TEST(nothing_is_asked_before_the_time)
{
    make_locks(start_party("deadlockms=60000"), "ab", "");
    make_locks(start_party("deadlockms=60000"), "ab", "");
    scene_says(&p[0], "ok", "open %s deadlockms=60000", scene_server.url);
    scene_says(&p[1], "ok", "open %s deadlockms=0", scene_server.url);
    for (int i = 0; i < 2; i++)
        make_locks(&p[i], "xy", "");
    scene_says(&p[0], "ok", "on t lock x");
    scene_says(&p[1], "ok", "on t lock y");
    begins(&p[0], "t", "lock y");
    begins(&p[1], "t", "lock x");
    nobody_tells();
    ck_assert_int_eq(scene_stat(&p[0], "deadlock_probes"), 0);
    ck_assert_int_eq(scene_stat(&p[1], "deadlock_probes"), 0);
}
END_TEST

/* ---- types */

/* rule: E7 */
START_TEST(errorcheck_mutex_fails_unless_its_attribute_says_otherwise)
{
    static const struct {
        const char *options;
        bool fails;
    } cases[] = {
        { "type=errorcheck", true },
        { "type=errorcheck fair=1", true },
        { "type=errorcheck deadlock=tell", false },
        { "type=recursive", false },
        { "type=normal", false },
    };
    cross(cases[_i].options, "");
    tells(&p[1], "a");
    if (cases[_i].fails)
        ends(&p[0], "t", "EDEADLK");
    else
        ck_assert_ptr_null(worker_news(&p[0], "done t", DEAD_STAYS_MS));
}
END_TEST
enum { ERRORCHECKS = 5 };

/* rule: E7 */
START_TEST(client_decides_for_locks_that_do_not_say)
{
    make_locks(start_party(_i == 0 ? "deadlock=fail" : "deadlock=off mutextype=2"), "ab",
               "");
    make_locks(start_party(""), "ab", "");
    scene_says(&p[0], "ok", "on t lock a");
    scene_says(&p[1], "ok", "on t lock b");
    begins(&p[0], "t", "lock b");
    begins(&p[1], "t", "lock a");
    tells(&p[1], "a");
    if (_i == 0)
        ends(&p[0], "t", "EDEADLK");
    else
        nobody_tells();
}
END_TEST

/* rule: E1 */
START_TEST(deadlock_of_waitfree_is_reported_and_it_goes_on)
{
    make_locks(start_party("deadlock=fail"), "a", "");
    make_locks(start_party(""), "ab", "");
    scene_says(&p[0], "ok", "on t lock a");
    scene_says(&p[1], "ok", "on t lock b");
    begins(&p[0], "t", "waitfree b 60000");
    begins(&p[1], "t", "lock a");
    tells(&p[0], "b");
    tells(&p[1], "a");
    ck_assert_ptr_null(worker_news(&p[0], "done t", DEAD_MS));
}
END_TEST

/* ---- timed waits */

/* rule: E6 */
START_TEST(timed_wait_is_in_a_cycle_until_it_ends)
{
    make_locks(start_party(""), "ab", "");
    make_locks(start_party(""), "ab", "");
    scene_says(&p[0], "ok", "on t lock a");
    scene_says(&p[1], "ok", "on t lock b");
    begins(&p[0], "t", "lock b");
    begins(&p[1], "t", "timedlock a 60000");
    tells(&p[0], "b");
    tells(&p[1], "a");
}
END_TEST

/* ---- giving up */

/* rule: E8 */
START_TEST(cancel_without_an_answer_is_finished_by_the_watchdog)
{
    cross("deadlock=fail", "");
    int rule = scene_drop_replies(RLK_MUTEX_CANCEL, 0);
    ends(&p[0], "t", "EDEADLK");
    ck_assert_uint_ge(test_proxy_hits(scene_proxy, rule), 1);
    ck_assert(scene_wait_queued("b", 0, SCENE_SOON_MS));
    scene_says(&p[0], "ok", "on t unlock a");
    ends(&p[1], "t", "ok");
    scene_says(&p[1], "ok", "on t unlock a");
    scene_says(&p[1], "ok", "on t unlock b");
    scene_nothing_is_left("b");
}
END_TEST

/* ---- conditions */

/* rule: E7, E11 */
START_TEST(wait_for_a_condition_is_no_edge_until_the_thread_takes_its_mutex_again)
{
    struct worker *w = start_party("");
    make_locks(w, "am", "deadlock=fail");
    scene_says(w, "ok", "cond c C");
    make_locks(start_party(""), "am", "");
    scene_says(&p[1], "ok", "cond c C");
    scene_says(w, "ok", "on t lock a");
    scene_says(w, "ok", "on t lock m");
    scene_says(w, "ok", "async t wait c m");
    ck_assert(scene_wait_free("m", SCENE_SOON_MS));
    scene_says(&p[1], "ok", "on t lock m");
    begins(&p[1], "t", "lock a");
    nobody_tells();
    scene_says(&p[1], "ok", "signal c");
    tells(w, "m");
    tells(&p[1], "a");
    ck_assert_ptr_null(worker_news(w, "done t", DEAD_STAYS_MS)); /* it may not fail */
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("deadlock");
    TCase *tc = scene_tcase(s, "two", open_dead, close_dead);
    tcase_add_loop_test(tc, each_party_of_a_deadlock_reports_it_once, 0, TYPES);
    tcase_add_test(tc, the_text_names_the_whole_cycle);
    tcase_add_test(tc, one_thread_gets_EDEADLK_and_the_other_one_the_lock);
    tcase_add_loop_test(tc, only_a_thread_that_may_fail_gives_up, 0, 2);
    tcase_add_loop_test(tc, errorcheck_mutex_fails_unless_its_attribute_says_otherwise, 0,
                        ERRORCHECKS);
    tcase_add_loop_test(tc, client_decides_for_locks_that_do_not_say, 0, 2);
    tcase_add_test(tc, deadlock_of_waitfree_is_reported_and_it_goes_on);
    tcase_add_test(tc, timed_wait_is_in_a_cycle_until_it_ends);
    tcase_add_test(tc, cancel_without_an_answer_is_finished_by_the_watchdog);
    tc = scene_tcase(s, "several", open_dead, close_dead);
    tcase_add_loop_test(tc, one_of_2_to_8_parties_of_a_ring_gives_up, 0, PARTIES_MAX - 1);
    tcase_add_test(tc, who_waits_for_a_ring_from_outside_gets_no_report);
    tcase_add_test(tc, chain_without_a_cycle_gets_no_report);
    tcase_add_test(tc, writer_that_waits_for_two_readers_is_in_two_cycles);
    tc = scene_tcase(s, "threads", open_dead, close_dead);
    tcase_add_test(tc, each_thread_of_a_shared_read_is_inside);
    tcase_add_test(tc, thread_that_waits_behind_another_of_its_process_is_in_the_cycle);
    tcase_add_loop_test(tc, cycle_of_threads_of_one_process_is_found_without_a_message, 0,
                        TYPES);
    tcase_add_test(tc, thread_may_be_inside_a_lock_of_one_client_and_wait_with_another);
    tcase_add_test(
        tc, wait_for_a_condition_is_no_edge_until_the_thread_takes_its_mutex_again);
    tc = scene_tcase(s, "cost", open_dead, close_dead);
    tcase_add_test(tc, thread_that_holds_nothing_never_asks);
    tcase_add_test(tc, many_threads_that_wait_for_one_lock_ask_once_in_a_period);
    tcase_add_test(tc, off_starts_nothing_but_answers);
    tcase_add_test(tc, nothing_is_asked_before_the_time);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
