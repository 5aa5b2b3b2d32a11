/* SPDX-License-Identifier: Apache-2.0 */
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
        ck_assert_str_eq(test_redis_str(redis, "GET", TOKEN), a.fate[0].token);
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
    ck_assert_str_eq(acquire_fenced(FENCED_B).fate[0].token, "9000000000000000003");
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
    tcase_add_loop_test(tc, garbage_in_the_token_key_is_refused_untouched, 0,
                        2 * BAD_TOKENS);
    suite_add_tcase(suite, tc);

    return test_run_suite(suite);
}
