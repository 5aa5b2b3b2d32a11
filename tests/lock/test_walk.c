/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_list of a glob among many other keys: how much of the server's time the walk
 * takes, and how it ends early. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

enum {
    FEW = 3000, /* keys that no walk pauses for */
    AT_ONCE_US = 50000,
    MANY = 150000, /* keys that any walk pauses for */
    PART = 8,      /* of the time of a walk among MANY: 13 to 20 are expected */
    US_PER_MS = 1000,
    SOON_MS = 5000
};

static void set_up(void)
{
    fixture_open();
}

static void tear_down(void)
{
    fixture_close();
}

static void make_others(int count)
{
    char script[128];

    snprintf(script, sizeof(script),
             "for i = 1, %d do redis.call('SET', 'other' .. i, '') end", count);
    test_redis_do(redis, "EVAL", script, "0");
    test_redis_do(redis, "CONFIG", "RESETSTAT");
}

/* Returns the calls of a command since the last CONFIG RESETSTAT, and their time; 0: it
 * was not called. */
static long long calls_of(const char *command, long long *ret_us)
{
    char key[64];
    long long calls = 0;

    snprintf(key, sizeof(key), "cmdstat_%s:", command);
    const char *at = strstr(test_redis_str(redis, "INFO", "commandstats"), key);
    if (at)
        sscanf(at + strlen(key), "calls=%lld,usec=%lld", &calls, ret_us);
    return calls;
}

static int count_it(const rlock_info_t *each, void *arg)
{
    (void)each;
    ++*(int *)arg;
    return 0;
}

START_TEST(a_long_walk_takes_a_twentieth_of_the_servers_time)
{
    rlock_mutex_t m = mutex_of(client, "n");
    long long us = 0, pinged_us = 0;
    int count = 0;

    OK(rlock_mutex_lock(&m));
    make_others(MANY);
    int64_t begin = test_now_ms();
    OK(rlock_list(client, "*", count_it, &count));
    long long took_us = (test_now_ms() - begin) * US_PER_MS;
    ck_assert_int_eq(count, 1);
    ck_assert_int_gt(calls_of("scan", &us), 0);
    ck_assert_int_gt(calls_of("ping", &pinged_us), 0); /* the walk has paused */
    ck_assert_msg((us - AT_ONCE_US) * PART < took_us, "%lld us of %lld", us, took_us);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(a_short_walk_does_not_pause)
{
    rlock_mutex_t m = mutex_of(client, "n");
    long long us;
    int count = 0;

    OK(rlock_mutex_lock(&m));
    make_others(FEW);
    OK(rlock_list(client, "*", count_it, &count));
    ck_assert_int_eq(count, 1);
    ck_assert_int_gt(calls_of("scan", &us), 1);
    /* a pause begins with a PING */
    ck_assert_int_eq(calls_of("ping", &us), 0);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

static int run_list(void *arg)
{
    int count = 0;
    (void)arg;
    return rlock_list(client, "*", count_it, &count);
}

static bool has_paused(void *arg)
{
    long long us;
    (void)arg;
    return calls_of("ping", &us) > 0;
}

START_TEST(an_interrupt_ends_a_walk_that_pauses)
{
    struct task lists;
    long long us = 0;

    make_others(MANY);
    task_start(&lists, run_list, NULL);
    ck_assert(test_wait_until(has_paused, NULL, SOON_MS));
    OK(rlock_client_interrupt(client));
    ck_assert_int_eq(task_join(&lists), ECANCELED);
    ck_assert_int_lt(calls_of("scan", &us), MANY / 200);
    /* from then on, a walk ends after its first page */
    test_redis_do(redis, "CONFIG", "RESETSTAT");
    EXPECT(rlock_list(client, "*", count_it, NULL), ECANCELED);
    ck_assert_int_eq(calls_of("scan", &us), 1);
}
END_TEST

START_TEST(an_interrupted_client_lists_what_one_page_tells)
{
    rlock_mutex_t m = mutex_of(client, "n");
    int count = 0;

    OK(rlock_mutex_lock(&m));
    OK(rlock_client_interrupt(client));
    OK(rlock_list(client, "*", count_it, &count));
    ck_assert_int_eq(count, 1);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("walk");
    TCase *tc = tcase_create("walk");

    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_long_walk_takes_a_twentieth_of_the_servers_time);
    tcase_add_test(tc, a_short_walk_does_not_pause);
    tcase_add_test(tc, an_interrupt_ends_a_walk_that_pauses);
    tcase_add_test(tc, an_interrupted_client_lists_what_one_page_tells);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
