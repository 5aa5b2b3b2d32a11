/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* Random numbers, with a kernel that gives them at once, or few at a time, or not at
 * all. */
#include "base/random.h"

#include "net/script.h"
#include "suite.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NUMBERS = 4096 };

/* This program's getrandom replaces the C library's, and counts the calls. */
static unsigned calls;
static enum { GIVES, GIVES_LITTLE, IS_INTERRUPTED, GIVES_NONE } kernel;

ssize_t getrandom(void *buf, size_t len, unsigned flags)
{
    calls++;
    if (kernel == GIVES_NONE || (kernel == IS_INTERRUPTED && calls % 2 == 1)) {
        errno = kernel == GIVES_NONE ? EPERM : EINTR;
        return -1;
    }
    if (kernel == GIVES_LITTLE && len > 3)
        len = 3;
    return (ssize_t)syscall(SYS_getrandom, buf, len, flags);
}

static struct rlk_random store;

static void set_up(void)
{
    calls = 0;
    kernel = GIVES;
    memset(&store, 0, sizeof(store));
    ck_assert(rlk_random_init(&store));
}

/* Asserts that each bit is set in half of the numbers, plus or minus eight standard
 * deviations. */
static void look_random(const uint64_t numbers[NUMBERS])
{
    for (int bit = 0; bit < 64; bit++) {
        int set = 0;
        for (int i = 0; i < NUMBERS; i++)
            set += (int)(numbers[i] >> bit & 1);
        ck_assert_int_gt(set, NUMBERS / 2 - 8 * 32);
        ck_assert_int_lt(set, NUMBERS / 2 + 8 * 32);
    }
    for (int i = 1; i < NUMBERS; i++)
        ck_assert_uint_ne(numbers[i], numbers[i - 1]);
}

START_TEST(numbers_are_random_and_cost_few_system_calls)
{
    static uint64_t numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = rlk_random_next(&store);
    look_random(numbers);
    ck_assert_uint_le(calls, NUMBERS / RLK_RANDOM_WORDS + 1);
}
END_TEST

START_TEST(what_comes_in_pieces_or_after_signals_is_whole)
{
    static uint64_t numbers[NUMBERS];
    kernel = _i ? GIVES_LITTLE : IS_INTERRUPTED;
    ck_assert(rlk_random_bytes(numbers, sizeof(numbers)));
    look_random(numbers);
}
END_TEST

START_TEST(where_none_are_given_nothing_begins)
{
    struct rlk_random other;
    uint64_t word;
    kernel = GIVES_NONE;
    ck_assert(!rlk_random_bytes(&word, sizeof(word)));
    ck_assert(!rlk_random_init(&other));
}
END_TEST

START_TEST(where_none_are_given_any_more_numbers_are_counted_on)
{
    uint64_t last = 0;
    kernel = GIVES_NONE;
    for (int i = 0; i < RLK_RANDOM_WORDS - 1; i++)
        last = rlk_random_next(&store);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(rlk_random_next(&store), ++last);
    kernel = GIVES;
    ck_assert_uint_ne(rlk_random_next(&store), last + 1);
}
END_TEST

START_TEST(an_id_has_as_many_digits_whatever_is_drawn)
{
    static const uint64_t drawn[] = { 0, 1, UINT64_MAX, RLK_ID_NUMBER_COUNT - 1,
                                      RLK_ID_NUMBER_COUNT };
    for (size_t i = 0; i < sizeof(drawn) / sizeof(drawn[0]); i++) {
        struct rlk_id id = { .thread = 9999,
                             .acquisition = rlk_id_number(drawn[i]),
                             .letter = 'm',
                             .grant_ms = 3000 };
        char text[RLK_ID_SIZE];
        ck_assert_uint_eq(rlk_id_write(text, "aaaaaaaa-0000-4000-8000-00000000000a", &id),
                          64);
        ck_assert(id.acquisition < UINT64_C(1) << 53);
    }
    ck_assert_uint_ne(rlk_id_number(1), rlk_id_number(2));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("random");
    TCase *tc = tcase_create("random");
    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, numbers_are_random_and_cost_few_system_calls);
    tcase_add_loop_test(tc, what_comes_in_pieces_or_after_signals_is_whole, 0, 2);
    tcase_add_test(tc, where_none_are_given_nothing_begins);
    tcase_add_test(tc, where_none_are_given_any_more_numbers_are_counted_on);
    tcase_add_test(tc, an_id_has_as_many_digits_whatever_is_drawn);
    suite_add_tcase(s, tc);
    return test_run_suite(s);
}
