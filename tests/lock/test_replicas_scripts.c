/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that a client sends which waits for replicas: they write although the id has
 * the lock already, so that the WAIT behind them waits for something (P11). Sent by hand.
 * What the clients do is in tests/net/test_replicas.c. */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>

#define LEASE "30000"
#define PRESENCE "3000"

/* How many changes the server has counted. */
static long long changes(void)
{
    return test_redis_info(redis, "rdb_changes_since_last_save");
}

/* Acquires of each type, with these last arguments. */
static struct answer ask(char type, const char *confirm)
{
    switch (type) {
    case 'm':
        return RUN(RLK_MUTEX_ACQUIRE, UUID_A ":1:1:m3000", UUID_A, LEASE, PRESENCE, NEVER,
                   "0", "0", confirm);
    case 'f':
        return RUN(RLK_FAIR_ACQUIRE, FAIR_A, UUID_A, LEASE, PRESENCE, NEVER, "0", "0",
                   "0", confirm);
    case 'r':
        return RUN(RLK_RWLOCK_READ, READ_A, UUID_A, LEASE, PRESENCE, NEVER, "0", "0",
                   "16", "0", "0", "");
    default:
        return RUN(RLK_RWLOCK_WRITE, WRITE_A, UUID_A, LEASE, PRESENCE, NEVER, "0", "0",
                   "16", "0", "0", confirm);
    }
}

static struct answer renew_with(char type, const char *lease, const char *confirm)
{
    char text[128];

    switch (type) {
    case 'm':
        return RUN(RLK_MUTEX_RENEW, UUID_A ":1:1:m3000", lease, CHANNEL, "0", "0", "0",
                   confirm);
    case 'f':
        return RUN(RLK_FAIR_RENEW, FAIR_A, lease, CHANNEL, "0", confirm);
    case 'r':
        snprintf(text, sizeof(text), "1:1:r3000 %s%s ", lease, confirm ? "c" : "");
        return RUN(RLK_RWLOCK_RENEW, UUID_A, text);
    default:
        snprintf(text, sizeof(text), "1:4:w3000 %s%s ", lease, confirm ? "c" : "");
        return RUN(RLK_RWLOCK_RENEW, UUID_A, text);
    }
}

static const char types[] = "mfrw";
enum { TYPES = sizeof(types) - 1 };

/* rule: P11 */
START_TEST(acquire_that_finds_its_own_hold_writes_when_asked_to)
{
    char type = types[_i];

    SAYS(ask(type, "1"), "held");
    /* as if somebody had raised the end: there is nothing left to raise */
    if (type != 'r')
        test_redis_do(redis, "PEXPIRE", "n", "40000");
    long long before = changes();
    struct answer again = ask(type, "1");
    ck_assert_str_eq(WHAT(again), "held");
    ck_assert_int_gt(changes(), before);
    if (type != 'r') {
        ck_assert_int_gt(again.fate[0].remaining, 40000 - test_ms(2000));
        ck_assert_int_gt(test_redis_int(redis, "PTTL", "n"), 40000 - test_ms(2000));
    }
    assert_ttls();
}
END_TEST

/* rule: P11 */
START_TEST(acquire_that_finds_its_own_hold_has_the_whole_lease_then)
{
    char type = types[_i];

    SAYS(ask(type, "1"), "held");
    if (type != 'r')
        test_redis_do(redis, "PEXPIRE", "n", "5000");
    struct answer again = ask(type, "1");
    ck_assert_str_eq(WHAT(again), "held");
    ck_assert_int_ge(again.fate[0].remaining, 30000);
    ck_assert_int_gt(test_redis_int(redis, "PTTL", "n"), 30000 - test_ms(2000));
}
END_TEST

/* rule: P11 */
START_TEST(acquire_that_is_not_asked_to_writes_nothing)
{
    char type = types[_i];
    bool exclusive = type == 'm' || type == 'f';

    SAYS(ask(type, NULL), "held");
    if (exclusive)
        test_redis_do(redis, "PEXPIRE", "n", "40000");
    long long before = changes();
    SAYS(ask(type, NULL), "held");
    if (exclusive)
        ck_assert_int_eq(changes(), before);
}
END_TEST

/* rule: P11 */
START_TEST(renewal_that_raises_nothing_writes_when_asked_to)
{
    char type = types[_i];

    SAYS(ask(type, "1"), "held");
    long long before = changes();
    struct answer renewed = renew_with(type, "1000", "1");
    ck_assert_str_eq(WHAT(renewed), "held");
    ck_assert_int_gt(renewed.fate[0].remaining, 30000 - test_ms(2000)); /* T4 */
    ck_assert_int_gt(changes(), before);
    ck_assert_int_gt(test_redis_int(redis, "PTTL", "n"), 30000 - test_ms(2000));
    before = changes();
    SAYS(renew_with(type, "1000", NULL), "held");
    if (type != 'r')
        ck_assert_int_eq(changes(), before);
}
END_TEST

/* rule: P11 */
START_TEST(renewal_of_a_hold_that_is_gone_writes_nothing)
{
    char type = types[_i];
    long long before = changes();

    SAYS(renew_with(type, "1000", "1"), "gone");
    ck_assert_int_eq(changes(), before);
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scripts of clients that wait for replicas");
    TCase *tc = byhand_tcase(suite, "writes");

    tcase_add_loop_test(tc, acquire_that_finds_its_own_hold_writes_when_asked_to, 0,
                        TYPES);
    tcase_add_loop_test(tc, acquire_that_finds_its_own_hold_has_the_whole_lease_then, 0,
                        TYPES);
    tcase_add_loop_test(tc, acquire_that_is_not_asked_to_writes_nothing, 0, TYPES);
    tcase_add_loop_test(tc, renewal_that_raises_nothing_writes_when_asked_to, 0, TYPES);
    tcase_add_loop_test(tc, renewal_of_a_hold_that_is_gone_writes_nothing, 0, TYPES);
    return test_run_suite(suite);
}
