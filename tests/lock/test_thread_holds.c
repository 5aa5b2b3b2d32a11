/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that holds many locks finds each of them, whatever the order. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

enum { MANY = 200, LEVELS = 3 };

static rlock_mutex_t many[MANY];
static int order[MANY];

/* Makes locks of two clients, in turn. */
static void set_up(void)
{
    char name[32];
    fixture_open();
    fixture_other();
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "%s-%d", i % 2 ? "others" : "many", i / 2);
        many[i] = mutex_of(i % 2 ? other : client, name);
    }
}

static void shuffle(unsigned *seed)
{
    for (int i = 0; i < MANY; i++)
        order[i] = i;
    for (int i = MANY - 1; i > 0; i--) {
        int k = rand_r(seed) % (i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
}

/* The first `from` locks in the order are free again; the others have `levels` levels. */
static void expect_counts(int from, int levels)
{
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(count_of(&many[order[i]]), i < from ? 0 : levels);
}

START_TEST(each_of_many_holds_is_found_in_any_order)
{
    unsigned seed = 1 + (unsigned)_i;
    for (int i = 0; i < MANY; i++)
        OK(rlock_mutex_lock(&many[i]));
    for (int level = 1; level < LEVELS; level++)
        for (int i = 0; i < MANY; i++)
            OK(rlock_mutex_lock(&many[i]));
    shuffle(&seed);
    expect_counts(0, LEVELS);
    for (int i = 0; i < MANY; i++) {
        for (int level = 0; level < LEVELS; level++)
            OK(rlock_mutex_unlock(&many[order[i]]));
        EXPECT(rlock_mutex_unlock(&many[order[i]]), EPERM);
        if (i % (MANY / 8) == 0)
            expect_counts(i + 1, LEVELS);
    }
    expect_counts(MANY, 0);
    ck_assert_uint_eq(stats_of(client).holds_now, 0);
}
END_TEST

static int run_ends_with_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < MANY; i++)
        if (rlock_mutex_lock(&many[i]) != 0)
            return -1;
    return 0;
}

static bool is_free(void *key)
{
    return !test_redis_exists(redis, key);
}

START_TEST(a_thread_that_ends_gives_up_all_of_them)
{
    char last[] = "many-99", first[] = "others-0";
    ck_assert_int_eq(in_thread(run_ends_with_all, NULL), 0);
    ck_assert(test_wait_until(is_free, last, 10000));
    ck_assert(test_wait_until(is_free, first, 10000));
    for (int i = 0; i < MANY; i++)
        OK(rlock_mutex_lock(&many[i]));
    for (int i = 0; i < MANY; i++)
        OK(rlock_mutex_unlock(&many[i]));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("thread holds");
    TCase *tc = tcase_create("holdings");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_loop_test(tc, each_of_many_holds_is_found_in_any_order, 0, 3);
    tcase_add_test(tc, a_thread_that_ends_gives_up_all_of_them);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
