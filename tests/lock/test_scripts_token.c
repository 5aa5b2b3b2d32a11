/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_tokens,rwlock_tokens claims=H11,H12 */
/* Fencing tokens (S3), with scripts sent by hand. */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long long number(const char *token)
{
    return strtoull(token, NULL, 10);
}

static void assert_greater(const char *now, const char *before)
{
    ck_assert_msg(number(now) > number(before), "%s after %s", now, before);
}

/* Lua's numbers, as which Redisson gets its tokens, are exact up to here. */
#define EXACT (1ULL << 53)

static unsigned long long server_us(void)
{
    const redisReply *r = test_redis_do(redis, "TIME");
    return number(r->element[0]->str) * 1000000 + number(r->element[1]->str);
}

static unsigned long long counter(void)
{
    return number(test_redis_str(redis, "GET", TOKEN));
}

/* rule: S3 */
START_TEST(token_grows_with_each_holder_and_belongs_to_the_hold)
{
    char last[32] = "0", id[64];
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof(id), UUID_A ":1:%d:" FENCED_LETTER "3000", i + 1);
        struct answer a = acquire_fenced(id), again = acquire_fenced(id);
        ck_assert_str_eq(WHAT(a), "held");
        assert_greater(a.fate[0].token, last);
        ck_assert_str_eq(again.fate[0].token, a.fate[0].token);
        ck_assert_str_eq(field("token"), a.fate[0].token);
        ck_assert_uint_eq(counter(), number(a.fate[0].token));
        ck_assert_str_eq(renew(id, "30000").fate[0].token, a.fate[0].token);
        ck_assert_str_eq(cancel(id).fate[0].token, a.fate[0].token);
        strcpy(last, a.fate[0].token);
        SAYS(release(id), "released");
    }
    ck_assert_int_eq((int)test_redis_int(redis, "PTTL", TOKEN), -1);
    assert_ttls();
}
END_TEST

/* Somebody else wrote the value: no token is as long as that. */
START_TEST(value_longer_than_a_token_is_reported_as_no_token)
{
    static char text[70000];
    memset(text, '7', sizeof(text) - 1);
    acquire_fenced(FENCED_A);
    test_redis_do(redis, "HSET", "n", "token", text);
    ck_assert_str_eq(renew(FENCED_A, "30000").fate[0].token, "?");
    ck_assert_str_eq(acquire_fenced(FENCED_A).fate[0].token, "?");
    test_redis_do(redis, "HSET", "n", "token", "12345678901234567890");
    ck_assert_str_eq(renew(FENCED_A, "30000").fate[0].token, "12345678901234567890");
}
END_TEST

/* rule: H12 */
START_TEST(token_is_the_server_time_in_us)
{
    unsigned long long before = server_us();
    unsigned long long token = number(acquire_fenced(FENCED_A).fate[0].token);
    ck_assert_uint_ge(token, before);
    ck_assert_uint_le(token, server_us());
    ck_assert_uint_lt(token, EXACT);
}
END_TEST

/* Counters of others, or of a version that counted in ns. Tokens go on from them,
 * exactly. */
static const char *const ahead[] = { "9007199254740990",    "9007199254740991",
                                     "9007199254740992",    "9007199254740993",
                                     "9999999999999999",    "99999999999999999",
                                     "1795210798808811777", "9000000000000000001" };
enum { AHEAD = sizeof(ahead) / sizeof(ahead[0]) };

/* rule: S3 */
START_TEST(counter_ahead_of_the_clock_grows_by_one)
{
    char next[32], after[32];
    snprintf(next, sizeof(next), "%llu", number(ahead[_i]) + 1);
    snprintf(after, sizeof(after), "%llu", number(ahead[_i]) + 2);
    test_redis_do(redis, "SET", TOKEN, ahead[_i]);
    ck_assert_str_eq(acquire_fenced(FENCED_A).fate[0].token, next);
    SAYS(release(FENCED_A), "released");
    ck_assert_str_eq(acquire_fenced(FENCED_B).fate[0].token, after);
    ck_assert_str_eq(test_redis_str(redis, "GET", TOKEN), after);
}
END_TEST

/* ---- H11, H12: blocks, for threads that hand off a mutex or a write lock */

/* rule: H11 */
START_TEST(renewal_draws_a_block_for_its_own_id_only)
{
    char first[32], more[32];
    strcpy(first, acquire_fenced(FENCED_A).fate[0].token);
    SAYS(renew_for_more(FENCED_B), "gone");
    ck_assert_uint_eq(counter(), number(first));
    struct answer a = renew_for_more(FENCED_A);
    strcpy(more, a.fate[0].token);
    assert_greater(more, first);
    ck_assert_int_ge(a.fate[0].ticket, 1);
    ck_assert_uint_eq(counter(), number(more) + (unsigned long long)a.fate[0].ticket - 1);
    ck_assert_str_eq(field("token"), first); /* the grant's token */
    struct answer others[] = { renew(FENCED_A, "30000"), acquire_fenced(FENCED_A),
                               cancel(FENCED_A) };
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(others[i].fate[0].token, first);
        ck_assert_int_eq(others[i].fate[0].ticket, 0);
    }
    unsigned long long last = counter();
    SAYS(release(FENCED_A), "released");
    ck_assert_uint_gt(number(acquire_fenced(FENCED_B).fate[0].token), last);
    assert_ttls();
}
END_TEST

/* However fast blocks are requested, a grant after a loss of data has a greater token. */
/* rule: H12 */
START_TEST(no_block_is_ahead_of_the_clock)
{
    unsigned long long last = number(acquire_fenced(FENCED_A).fate[0].token);
    long long most = 0;
    for (int i = 0; i < 500; i++) {
        struct answer a = renew_for_more(FENCED_A);
        ck_assert_uint_gt(number(a.fate[0].token), last);
        last = number(a.fate[0].token) + (unsigned long long)a.fate[0].ticket - 1;
        ck_assert_uint_eq(counter(), last);
        ck_assert_uint_le(last, server_us());
        if (a.fate[0].ticket > most)
            most = a.fate[0].ticket;
    }
    ck_assert_int_gt(most, 1);
    ck_assert_int_le(most, 1000);
}
END_TEST

/* rule: H12 */
START_TEST(token_after_a_loss_of_data_is_greater_than_a_whole_block)
{
    acquire_fenced(FENCED_A);
    SAYS(renew_for_more(FENCED_A), "held");
    unsigned long long last = counter();
    test_redis_do(redis, "FLUSHALL");
    ck_assert_uint_gt(number(acquire_fenced(FENCED_B).fate[0].token), last);
}
END_TEST

/* A lock that was unused for long does not get a token for each microsecond. */
/* rule: H11 */
START_TEST(block_has_at_most_a_thousand_tokens)
{
    char early[32];
    acquire_fenced(FENCED_A);
    snprintf(early, sizeof(early), "%llu", counter() - 5000000);
    test_redis_do(redis, "SET", TOKEN, early);
    struct answer a = renew_for_more(FENCED_A);
    ck_assert_int_eq(a.fate[0].ticket, 1000);
    ck_assert_uint_eq(counter(), number(a.fate[0].token) + 999);
}
END_TEST

/* rule: H11 */
START_TEST(block_of_a_counter_ahead_of_the_clock_has_one_token)
{
    char next[32];
    acquire_fenced(FENCED_A);
    test_redis_do(redis, "SET", TOKEN, ahead[_i]);
    snprintf(next, sizeof(next), "%llu", number(ahead[_i]) + 1);
    struct answer a = renew_for_more(FENCED_A);
    ck_assert_str_eq(a.fate[0].token, next);
    ck_assert_int_eq(a.fate[0].ticket, 1);
    ck_assert_str_eq(test_redis_str(redis, "GET", TOKEN), next);
}
END_TEST

/* rule: H11 */
START_TEST(block_of_a_lost_counter_has_one_token)
{
    unsigned long long first = number(acquire_fenced(FENCED_A).fate[0].token);
    test_redis_do(redis, "DEL", TOKEN);
    struct answer a = renew_for_more(FENCED_A);
    ck_assert_uint_gt(number(a.fate[0].token), first);
    ck_assert_int_eq(a.fate[0].ticket, 1);
    ck_assert_uint_eq(counter(), number(a.fate[0].token));
}
END_TEST

/* rule: H11 */
START_TEST(renewal_without_a_block_is_still_a_renewal)
{
    char first[32];
    strcpy(first, acquire_fenced(FENCED_A).fate[0].token);
    test_redis_do(redis, "SET", TOKEN, "abc");
    test_redis_do(redis, "PEXPIRE", "n", "1000");
    struct answer a = renew_for_more(FENCED_A);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_str_eq(a.fate[0].token, first);
    ck_assert_int_eq(a.fate[0].ticket, 0);
    ck_assert_int_gt(a.fate[0].remaining, 20000);
    ck_assert_str_eq(test_redis_str(redis, "GET", TOKEN), "abc");
}
END_TEST

/* rule: H11 */
START_TEST(holder_without_fencing_gets_no_block)
{
    SAYS(acquire(A), "held");
    struct answer a = renew_for_more(A);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_str_eq(a.fate[0].token, "");
    ck_assert_int_eq((int)test_redis_int(redis, "EXISTS", TOKEN), 0);
}
END_TEST

/* Each grant begins at the clock or behind the last token, not only the first grant. */
/* rule: H12 */
START_TEST(restarted_counter_is_set_to_the_clock)
{
    char before[32];
    strcpy(before, acquire_fenced(FENCED_A).fate[0].token);
    test_redis_do(redis, "FLUSHALL");
    test_redis_int(redis, "INCR", TOKEN); /* Redisson */
    assert_greater(acquire_fenced(FENCED_B).fate[0].token, before);
}
END_TEST

/* rule: S3 */
START_TEST(token_grows_over_FLUSHALL)
{
    char before[32];
    strcpy(before, acquire_fenced(FENCED_A).fate[0].token);
    test_redis_do(redis, "FLUSHALL");
    assert_greater(acquire_fenced(FENCED_B).fate[0].token, before);
}
END_TEST

/* rule: S3 */
START_TEST(INCR_by_redisson_is_respected)
{
    char before[32];
    test_redis_do(redis, "SET", TOKEN, "41"); /* Redisson began */
    struct answer a = acquire_fenced(FENCED_A);
    assert_greater(a.fate[0].token, "1000000000000000");
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
    "0000000000000000008",
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
    ck_assert_msg(a.error[0], "%s: %s", bad, a.fate[0].what);
    ck_assert_msg(strcmp(digest(), before) == 0, "%s: %s", bad, a.error);
    assert_ttls();
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
    tcase_add_test(tc, token_grows_with_each_holder_and_belongs_to_the_hold);
    tcase_add_test(tc, value_longer_than_a_token_is_reported_as_no_token);
    tcase_add_test(tc, token_is_the_server_time_in_us);
    tcase_add_loop_test(tc, counter_ahead_of_the_clock_grows_by_one, 0, AHEAD);
    tcase_add_test(tc, token_grows_over_FLUSHALL);
    tcase_add_test(tc, INCR_by_redisson_is_respected);
    tcase_add_test(tc, restarted_counter_is_set_to_the_clock);
    if (FENCED_LETTER[0] != 'F') {
        tcase_add_test(tc, renewal_draws_a_block_for_its_own_id_only);
        tcase_add_test(tc, no_block_is_ahead_of_the_clock);
        tcase_add_test(tc, token_after_a_loss_of_data_is_greater_than_a_whole_block);
        tcase_add_test(tc, block_has_at_most_a_thousand_tokens);
        tcase_add_loop_test(tc, block_of_a_counter_ahead_of_the_clock_has_one_token, 0,
                            AHEAD);
        tcase_add_test(tc, block_of_a_lost_counter_has_one_token);
        tcase_add_test(tc, renewal_without_a_block_is_still_a_renewal);
        tcase_add_test(tc, holder_without_fencing_gets_no_block);
    }
    tcase_add_loop_test(tc, garbage_in_the_token_key_is_refused_untouched, 0,
                        2 * BAD_TOKENS);
    suite_add_tcase(suite, tc);

    return test_run_suite(suite);
}
