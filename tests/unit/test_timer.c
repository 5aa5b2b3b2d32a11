/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* The heap of timers, compared with a search through an array. */
#include "base/timer.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <stdlib.h>

enum { TIMERS = 200 };

static struct rlk_timers heap;
static struct rlk_timer timers[TIMERS];
static uint32_t state;

static uint32_t next_random(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void set_up(void)
{
    heap = (struct rlk_timers){ 0 };
    for (int i = 0; i < TIMERS; i++)
        timers[i] = (struct rlk_timer){ 0 };
    state = 4711;
}

/* The earliest time of the armed timers; INT64_MAX: none is armed. */
static int64_t earliest(void)
{
    int64_t when = INT64_MAX;
    for (int i = 0; i < TIMERS; i++)
        if (timers[i].armed && timers[i].when < when)
            when = timers[i].when;
    return when;
}

static void assert_first(void)
{
    struct rlk_timer *first = rlk_timer_first(&heap);
    int64_t when = earliest();
    if (when == INT64_MAX) {
        ck_assert_ptr_null(first);
    } else {
        ck_assert_ptr_nonnull(first);
        ck_assert(first->armed);
        ck_assert_int_eq(first->when, when);
    }
}

START_TEST(empty_heap_has_no_first)
{
    ck_assert_ptr_null(rlk_timer_first(&heap));
    rlk_timer_disarm(&heap, &timers[0]); /* without effect */
    ck_assert_ptr_null(rlk_timer_first(&heap));
}
END_TEST

START_TEST(random_arming_and_disarming_leaves_the_earliest_first)
{
    uint32_t range = _i ? 10 : 1000000; /* with many equal ones, and with few */
    for (long n = test_count(200000, 10000); n > 0; n--) {
        struct rlk_timer *t = &timers[next_random() % TIMERS];
        switch (next_random() % 4) {
        case 0:
            rlk_timer_disarm(&heap, t);
            ck_assert(!t->armed);
            break;
        case 1:
            if (rlk_timer_first(&heap))
                rlk_timer_disarm(&heap, rlk_timer_first(&heap));
            break;
        default:
            rlk_timer_arm(&heap, t, (int64_t)(next_random() % range) - 5);
            ck_assert(t->armed);
        }
        assert_first();
    }
}
END_TEST

START_TEST(timers_come_out_in_order)
{
    int64_t last = INT64_MIN;
    for (int i = 0; i < TIMERS; i++)
        rlk_timer_arm(&heap, &timers[i], next_random());
    for (int i = 0; i < TIMERS / 2; i++) /* earlier and later ones */
        rlk_timer_arm(&heap, &timers[i], next_random());
    for (int i = 0; i < TIMERS; i++) {
        struct rlk_timer *t = rlk_timer_first(&heap);
        ck_assert_ptr_nonnull(t);
        ck_assert_int_ge(t->when, last);
        last = t->when;
        rlk_timer_disarm(&heap, t);
    }
    ck_assert_ptr_null(rlk_timer_first(&heap));
}
END_TEST

START_TEST(ordered_arming_stays_fast)
{
    /* a linear list would take quadratic time here */
    enum { MANY = 200000 };
    struct rlk_timer *many = calloc(MANY, sizeof(*many));
    ck_assert_ptr_nonnull(many);
    int64_t start = test_now_ms();
    for (int i = 0; i < MANY; i++)
        rlk_timer_arm(&heap, &many[i], _i ? i : MANY - i);
    for (int i = 0; i < MANY; i++)
        rlk_timer_disarm(&heap, rlk_timer_first(&heap));
    ck_assert_ptr_null(rlk_timer_first(&heap));
    ck_assert_int_le(test_now_ms() - start, test_ms(2000));
    free(many);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("timer");
    TCase *tc = tcase_create("heap");
    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, empty_heap_has_no_first);
    tcase_add_loop_test(tc, random_arming_and_disarming_leaves_the_earliest_first, 0, 2);
    tcase_add_test(tc, timers_come_out_in_order);
    tcase_add_loop_test(tc, ordered_arming_stays_fast, 0, 2);
    suite_add_tcase(suite, tc);

    return test_run_suite(suite);
}
