/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* The levels of a thread in a read-write lock, compared with a plain list of them. No
 * server. */
#include "base/recursion.h"

#include "alloc.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shims/alloc_shim.c" /* so that an allocation can fail */

enum { MODEL_MAX = 256, SEEDS = 40 };

static struct rlk_recursion levels;

static void set_up(void)
{
    memset(&levels, 0, sizeof(levels));
}

static void tear_down(void)
{
    rlk_recursion_clear(&levels);
}

/* ---- the simple model: one element for each level, the innermost last */

static bool model[MODEL_MAX]; /* true: a read */
static int depth;

static int model_count(bool read)
{
    int sum = 0;
    for (int i = 0; i < depth; i++)
        sum += model[i] == read;
    return sum;
}

static bool model_drop(bool read)
{
    int i = depth;
    while (i > 0 && model[i - 1] != read)
        i--;
    if (i == 0)
        return false;
    memmove(&model[i - 1], &model[i], (size_t)(depth - i) * sizeof(model[0]));
    depth--;
    return true;
}

/* Whether the runs stand for the model's levels, in order. */
static bool is_as_model(void)
{
    const unsigned two[] = { levels.writes, levels.reads };
    const unsigned *runs = levels.runs ? levels.runs->levels : two;
    unsigned run_count = levels.runs ? levels.runs->count : 2;
    int at = 0;

    if (levels.runs && run_count <= 2) /* then no runs are needed */
        return false;
    for (unsigned r = 0; r < run_count; r++) {
        if (levels.runs && r > 0 && runs[r] == 0) /* only the first run may have the
                                                     length 0 */
            return false;
        for (unsigned i = 0; i < runs[r]; i++, at++)
            if (at >= depth || model[at] != (r % 2 == 1))
                return false;
    }
    return at == depth && (int)levels.writes == model_count(false) &&
           (int)levels.reads == model_count(true) &&
           rlk_recursion_reads(&levels) == (depth > 0 && model[depth - 1]);
}

static void assert_as_model(void)
{
    ck_assert_msg(is_as_model(), "not what a list of %d levels says", depth);
}

/* ---- tests */

START_TEST(zeroed_ones_are_empty)
{
    ck_assert(!rlk_recursion_reads(&levels));
    ck_assert(!rlk_recursion_drop(&levels, true));
    ck_assert(!rlk_recursion_drop(&levels, false));
    assert_as_model();
}
END_TEST

/* Random pushes and drops, with some downgrades; seeds differ in the depth. */
START_TEST(any_sequence_is_as_a_list_of_levels)
{
    unsigned seed = (unsigned)_i + 1;
    int push_percent = 40 + _i % 4 * 10;

    depth = 0;
    for (long step = 0; step < test_count(20000, 3000); step++) {
        int what = rand_r(&seed) % 100;
        bool read = rand_r(&seed) % 2;
        if (what == 99 && levels.writes > 0 && rand_r(&seed) % 20 == 0) {
            rlk_recursion_downgrade(&levels);
            for (int i = 0; i < depth; i++)
                model[i] = true;
        } else if (what < push_percent && depth < MODEL_MAX) {
            ck_assert(rlk_recursion_push(&levels, read));
            model[depth++] = read;
        } else {
            if (what % 2) /* as unlock does; otherwise as rdunlock or wrunlock */
                read = rlk_recursion_reads(&levels);
            ck_assert(rlk_recursion_drop(&levels, read) == model_drop(read));
        }
        assert_as_model();
    }
    rlk_recursion_clear(&levels);
    depth = 0;
    assert_as_model();
}
END_TEST

START_TEST(many_levels_of_one_mode_need_no_memory)
{
    if (!test_alloc_available())
        return;
    test_alloc_fail_from(1);
    for (int i = 0; i < 100000; i++)
        if (!rlk_recursion_push(&levels, true))
            break;
    long refused = test_alloc_failed();
    test_alloc_fail_from(0);
    ck_assert_int_eq(refused, 0);
    ck_assert_uint_eq(levels.reads, 100000);
    ck_assert_ptr_null(levels.runs);
}
END_TEST

START_TEST(entries_beyond_two_are_stored_elsewhere_until_they_end)
{
    depth = 0;
    for (int i = 0; i < MODEL_MAX; i++) {
        ck_assert(rlk_recursion_push(&levels, i % 2 == 1));
        model[depth++] = i % 2 == 1;
        assert_as_model();
    }
    ck_assert_ptr_nonnull(levels.runs);
    ck_assert_uint_ge(levels.runs->size, MODEL_MAX);
    while (depth > 0) { /* from the outermost level on */
        ck_assert(rlk_recursion_drop(&levels, false) == model_drop(false) ||
                  rlk_recursion_drop(&levels, true) == model_drop(true));
        if (levels.writes == 0)
            while (depth > 0)
                ck_assert(rlk_recursion_drop(&levels, true) && model_drop(true));
        assert_as_model();
    }
    ck_assert_ptr_null(levels.runs);
}
END_TEST

/* The n-th level that needs memory. */
START_TEST(failed_allocation_changes_nothing)
{
    if (!test_alloc_available())
        return;
    int until = 2 << _i; /* full, so that one of the next pushes grows it */
    depth = 0;
    for (bool grows = false; !grows;) {
        bool read = depth % 2 == 1;
        test_alloc_fail_from(depth >= until / 2 ? 1 : 0);
        bool pushed = rlk_recursion_push(&levels, read);
        grows = test_alloc_failed() > 0;
        test_alloc_fail_from(0);
        ck_assert(pushed == !grows);
        if (pushed)
            model[depth++] = read;
        assert_as_model();
    }
    ck_assert(rlk_recursion_push(&levels, depth % 2 == 1)); /* there is memory again */
    model[depth] = depth % 2 == 1;
    depth++;
    assert_as_model();
}
END_TEST

START_TEST(more_than_INT_MAX_levels_are_refused)
{
    ck_assert(rlk_recursion_push(&levels, false));
    ck_assert(rlk_recursion_push(&levels, true));
    levels.reads = INT_MAX - 2;
    ck_assert(
        rlk_recursion_push(&levels, true)); /* the last one, of both modes together */
    ck_assert(!rlk_recursion_push(&levels, true));
    ck_assert(!rlk_recursion_push(&levels, false));
    ck_assert_uint_eq(levels.reads, INT_MAX - 1);
    ck_assert_uint_eq(levels.writes, 1);
    ck_assert(rlk_recursion_drop(&levels, true));
    ck_assert(rlk_recursion_push(&levels, false));
    ck_assert(!rlk_recursion_push(&levels, false));
}
END_TEST

START_TEST(downgraded_levels_are_reads)
{
    static const bool turns[] = { false, true, true, false, true, false };
    depth = 0;
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++)
        ck_assert(rlk_recursion_push(&levels, turns[i]));
    rlk_recursion_downgrade(&levels);
    depth = sizeof(turns) / sizeof(turns[0]);
    for (int i = 0; i < depth; i++)
        model[i] = true;
    assert_as_model();
    ck_assert(!rlk_recursion_drop(&levels, false));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recursion");
    TCase *tc = tcase_create("levels");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, zeroed_ones_are_empty);
    tcase_add_loop_test(tc, any_sequence_is_as_a_list_of_levels, 0, SEEDS);
    tcase_add_test(tc, many_levels_of_one_mode_need_no_memory);
    tcase_add_test(tc, entries_beyond_two_are_stored_elsewhere_until_they_end);
    tcase_add_loop_test(tc, failed_allocation_changes_nothing, 0, 4);
    tcase_add_test(tc, more_than_INT_MAX_levels_are_refused);
    tcase_add_test(tc, downgraded_levels_are_reads);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
