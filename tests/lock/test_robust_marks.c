/* SPDX-License-Identifier: Apache-2.0 */
/* The mark of a retained robust mutex (rule K11), with scripts sent by hand: a renewal
 * says that no thread is inside any more, or that a thread is inside again. */
#include "byhand.h"

#include <stdio.h>
#include <string.h>

#define ROBUST UUID_A ":1:1:m3000bk"
#define OTHER UUID_B ":1:1:m3000b"

static void assert_mark(const char *mark)
{
    if (!mark[0])
        ck_assert(!test_redis_exists(redis, DIRTY));
    else
        ck_assert_str_eq(test_redis_str(redis, "GET", DIRTY), mark);
}

/* rule: K11 */
START_TEST(inside_mark_ends_only_for_its_exact_number)
{
    SAYS(acquire(ROBUST), "held");
    assert_mark(ROBUST "#1");
    SAYS(renew_marked(ROBUST, "-2"), "held");
    assert_mark(ROBUST "#1");
    SAYS(renew_marked(ROBUST, "-1"), "held");
    assert_mark("");
    SAYS(renew_marked(ROBUST, "-1"), "held"); /* the mark is not made again */
    assert_mark("");
    assert_ttls();
}
END_TEST

/* A report that comes twice, or late, ends no newer mark. */
/* rule: K11 */
START_TEST(late_clean_report_does_not_end_the_mark_of_the_next_section)
{
    SAYS(acquire(ROBUST), "held");
    SAYS(renew_marked(ROBUST, "-1"), "held");
    SAYS(renew_marked(ROBUST, "3"), "held");
    assert_mark(ROBUST "#3");
    SAYS(renew_marked(ROBUST, "-1"), "held");
    assert_mark(ROBUST "#3");
    assert_ttls();
}
END_TEST

/* rule: K11 */
START_TEST(number_of_the_inside_mark_never_falls)
{
    SAYS(acquire(ROBUST), "held");
    SAYS(renew_marked(ROBUST, "4"), "held");
    assert_mark(ROBUST "#4");
    SAYS(renew_marked(ROBUST, "3"), "held");
    assert_mark(ROBUST "#4");
    SAYS(renew_marked(ROBUST, "0"), "held");
    SAYS(renew(ROBUST, "30000"), "held");
    assert_mark(ROBUST "#4");
    SAYS(renew_marked(ROBUST, "12"), "held");
    assert_mark(ROBUST "#12");
    SAYS(release_robust(ROBUST, "clean"), "released");
    assert_mark("");
}
END_TEST

/* rule: K11 */
START_TEST(renewal_changes_the_mark_of_its_own_id_only)
{
    SAYS(acquire(ROBUST), "held");
    SAYS(renew_marked(OTHER, "-1"), "gone");
    SAYS(renew_marked(OTHER, "3"), "gone");
    assert_mark(ROBUST "#1");
    test_redis_do(redis, "SET", DIRTY, "not recoverable", "EX", "60");
    SAYS(renew_marked(ROBUST, "-1"), "held");
    SAYS(renew_marked(ROBUST, "3"), "held");
    assert_mark("not recoverable");
    test_redis_do(redis, "SET", DIRTY, ROBUST "#x", "EX", "60"); /* by hand */
    SAYS(renew_marked(ROBUST, "3"), "held");
    assert_mark(ROBUST "#3");
    test_redis_do(redis, "SET", DIRTY, OTHER "#1", "EX", "60");
    SAYS(renew_marked(ROBUST, "3"), "held");
    SAYS(renew_marked(ROBUST, "-1"), "held");
    assert_mark(OTHER "#1");
}
END_TEST

/* A renewal restores a mark that was lost. */
/* rule: K11 */
START_TEST(lost_mark_is_restored_with_its_number)
{
    SAYS(acquire(ROBUST), "held");
    test_redis_do(redis, "DEL", DIRTY);
    SAYS(renew_marked(ROBUST, "5"), "held");
    assert_mark(ROBUST "#5");
    test_redis_do(redis, "DEL", DIRTY);
    SAYS(renew(ROBUST, "30000"), "held");
    assert_mark(ROBUST "#1");
    assert_ttls();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scripts: marks");
    TCase *tc = tcase_create("K11");
    tcase_add_unchecked_fixture(tc, byhand_start, byhand_stop);
    tcase_add_checked_fixture(tc, byhand_open, byhand_close);
    tcase_add_test(tc, inside_mark_ends_only_for_its_exact_number);
    tcase_add_test(tc, late_clean_report_does_not_end_the_mark_of_the_next_section);
    tcase_add_test(tc, number_of_the_inside_mark_never_falls);
    tcase_add_test(tc, renewal_changes_the_mark_of_its_own_id_only);
    tcase_add_test(tc, lost_mark_is_restored_with_its_number);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
