/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_tokens,rwlock_tokens claims=H11,H12 */
/* Fencing tokens (S3), by the scripts sent by hand. */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_greater(const char *now, const char *before)
{
    ck_assert_uint_eq(strlen(now), 19);
    ck_assert_msg(strlen(before) < 19 || strcmp(now, before) > 0, "%s after %s", now,
                  before);
}

/* A mutex has a block of a thousand: the counter is its last. */
static void assert_counter(const char *first)
{
    unsigned long long base = strtoull(first, NULL, 10);
    unsigned long long last = base + (FENCED_LETTER[0] != 'F' ? 999 : 0);
    ck_assert_uint_eq(strtoull(test_redis_str(redis, "GET", TOKEN), NULL, 10), last);
}

START_TEST(S3_token_grows_with_each_holder_and_is_that_of_the_hold)
{
    char last[32] = "0", id[64];
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof(id), UUID_A ":1:%d:" FENCED_LETTER "3000", i + 1);
        struct answer a = acquire_fenced(id), again = acquire_fenced(id);
        ck_assert_str_eq(WHAT(a), "held");
        assert_greater(a.fate[0].token, last);
        ck_assert_str_eq(again.fate[0].token, a.fate[0].token);
        ck_assert_str_eq(field("token"), a.fate[0].token);
        assert_counter(a.fate[0].token);
        ck_assert_str_eq(renew(id, "30000").fate[0].token, a.fate[0].token);
        ck_assert_str_eq(cancel(id).fate[0].token, a.fate[0].token);
        strcpy(last, a.fate[0].token);
        SAYS(release(id), "released");
    }
    ck_assert_int_eq((int)test_redis_int(redis, "PTTL", TOKEN), -1);
    assert_ttls();
}
END_TEST

START_TEST(S3_token_beyond_2_to_53_is_exact)
{
    test_redis_do(redis, "SET", TOKEN, "9000000000000000001");
    ck_assert_str_eq(acquire_fenced(FENCED_A).fate[0].token, "9000000000000000002");
    SAYS(release(FENCED_A), "released");
    ck_assert_str_eq(acquire_fenced(FENCED_B).fate[0].token, FENCED_LETTER[0] != 'F'
                                                                 ? "9000000000000001002"
                                                                 : "9000000000000000003");
}
END_TEST

/* ---- H11, H12: blocks. A fair lock's and a read-write lock's holders have one token. */

START_TEST(h11_a_renewal_draws_another_block_for_its_own_id_only)
{
    char first[32], more[32];
    strcpy(first, acquire_fenced(FENCED_A).fate[0].token);
    SAYS(renew_for_more(FENCED_B), "gone");
    assert_counter(first);
    strcpy(more, renew_for_more(FENCED_A).fate[0].token);
    ck_assert_uint_ge(strtoull(more, NULL, 10), strtoull(first, NULL, 10) + 1000);
    assert_counter(more);
    ck_assert_str_eq(field("token"), more);
    ck_assert_str_eq(renew(FENCED_A, "30000").fate[0].token, more);
    ck_assert_str_eq(acquire_fenced(FENCED_A).fate[0].token, more);
    SAYS(release(FENCED_A), "released");
    assert_greater(acquire_fenced(FENCED_B).fate[0].token, more);
    assert_ttls();
}
END_TEST

START_TEST(h11_a_renewal_that_gets_no_block_is_one_all_the_same)
{
    char first[32];
    strcpy(first, acquire_fenced(FENCED_A).fate[0].token);
    test_redis_do(redis, "SET", TOKEN, "abc");
    test_redis_do(redis, "PEXPIRE", "n", "1000");
    struct answer a = renew_for_more(FENCED_A);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_str_eq(a.fate[0].token, first);
    ck_assert_int_gt(a.fate[0].remaining, 20000);
    ck_assert_str_eq(test_redis_str(redis, "GET", TOKEN), "abc");
}
END_TEST

START_TEST(h11_a_holder_without_fencing_gets_none)
{
    SAYS(acquire(A), "held");
    struct answer a = renew_for_more(A);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_str_eq(a.fate[0].token, "");
    ck_assert_int_eq((int)test_redis_int(redis, "EXISTS", TOKEN), 0);
}
END_TEST

/* Each grant begins at the clock or behind the last, not only the first one. */
START_TEST(h12_a_counter_that_began_anew_is_brought_to_the_clock)
{
    char before[32];
    strcpy(before, acquire_fenced(FENCED_A).fate[0].token);
    test_redis_do(redis, "FLUSHALL");
    test_redis_int(redis, "INCR", TOKEN); /* Redisson */
    assert_greater(acquire_fenced(FENCED_B).fate[0].token, before);
}
END_TEST

START_TEST(S3_token_grows_over_FLUSHALL)
{
    char before[32];
    strcpy(before, acquire_fenced(FENCED_A).fate[0].token);
    test_redis_do(redis, "FLUSHALL");
    assert_greater(acquire_fenced(FENCED_B).fate[0].token, before);
}
END_TEST

START_TEST(S3_redissons_INCR_is_respected)
{
    char before[32];
    test_redis_do(redis, "SET", TOKEN, "41"); /* Redisson began */
    struct answer a = acquire_fenced(FENCED_A);
    assert_greater(a.fate[0].token, "42");
    SAYS(release(FENCED_A), "released");
    test_redis_do(redis, "SET", TOKEN, "9000000000000000000");
    test_redis_int(redis, "INCR", TOKEN);
    strcpy(before, test_redis_str(redis, "GET", TOKEN));
    assert_greater(acquire_fenced(FENCED_B).fate[0].token, before);
}
END_TEST

static const char *const bad_tokens[] = {
    "abc",
    "",
    "-5",
    "1.5",
    " 7",
    "7 ",
    "+7",
    "1e3",
    "007",
    "000000000000000000000007",
    "99999999999999999999",
    "9223372036854775807",
    "9223372036854774808",
    "9223372036854775808",
};

enum { BAD_TOKENS = sizeof(bad_tokens) / sizeof(bad_tokens[0]) };

START_TEST(garbage_in_the_token_key_is_refused_untouched)
{
    const char *bad = bad_tokens[_i % BAD_TOKENS];
    bool handing_over = _i >= BAD_TOKENS;
    struct answer a;
    struct test_redis *mailbox = listener(UUID_B);
    char before[64];

    if (handing_over) {
        SAYS(acquire(A), "held");
        SAYS(acquire_fenced(FENCED_B), "queued");
    }
    test_redis_do(redis, "SET", TOKEN, bad);
    snprintf(before, sizeof(before), "%s", digest());
    a = handing_over ? release(A) : acquire_fenced(FENCED_A);
    if (strcmp(bad, "007") == 0 && !a.error[0])
        assert_greater(a.fate[0].token[0] ? a.fate[0].token : field("token"), "7");
    else
        ck_assert_msg(a.error[0], "%s: %s", bad, a.fate[0].what);
    if (a.error[0])
        ck_assert_msg(strcmp(digest(), before) == 0, "%s: %s", bad, a.error);
    assert_ttls();
    if (a.error[0])
        ck_assert(no_message(mailbox));
    test_redis_close(mailbox);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scripts: tokens");
    TCase *tc = tcase_create("S3");
    tcase_add_unchecked_fixture(tc, byhand_start, byhand_stop);
    tcase_add_checked_fixture(tc, byhand_open, byhand_close);
    tcase_add_test(tc, S3_token_grows_with_each_holder_and_is_that_of_the_hold);
    tcase_add_test(tc, S3_token_beyond_2_to_53_is_exact);
    tcase_add_test(tc, S3_token_grows_over_FLUSHALL);
    tcase_add_test(tc, S3_redissons_INCR_is_respected);
    tcase_add_test(tc, h12_a_counter_that_began_anew_is_brought_to_the_clock);
    if (FENCED_LETTER[0] != 'F') {
        tcase_add_test(tc, h11_a_renewal_draws_another_block_for_its_own_id_only);
        tcase_add_test(tc, h11_a_renewal_that_gets_no_block_is_one_all_the_same);
        tcase_add_test(tc, h11_a_holder_without_fencing_gets_none);
    }
    tcase_add_loop_test(tc, garbage_in_the_token_key_is_refused_untouched, 0,
                        2 * BAD_TOKENS);
    suite_add_tcase(suite, tc);

    return test_run_suite(suite);
}
