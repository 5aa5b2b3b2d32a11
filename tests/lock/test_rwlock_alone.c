/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts that know one key of a read-write lock and no other, sent by hand: in a
 * cluster, while a hash slot is being moved, the other keys may be at another node (P20).
 * What clients do with them is in test_cluster_readers.c.
 */
#include "byhand.h"

#include <stdio.h>
#include <string.h>

#define OF_A "1:1:r3000"

enum { LEASE_MS = 30000, SLACK_MS = 5000 };

static const char *text_of(long long number)
{
    static char texts[4][24];
    static unsigned turn;
    char *text = texts[turn++ % 4];

    snprintf(text, sizeof(texts[0]), "%lld", number);
    return text;
}

static struct answer raise_end(const char *lease)
{
    char names[64];

    snprintf(names, sizeof(names), OF_A " %s ", lease);
    return RUN(RLK_READER_RAISE, UUID_A, names);
}

static struct answer raise_reading(long long since, const char *lease)
{
    return RUN(RLK_READING_RAISE, text_of(since), lease, "0");
}

static struct answer drop(const char *id)
{
    return RUN(RLK_READER_DROP, id);
}

static long long ttl(const char *key)
{
    return test_redis_int(redis, "PTTL", key);
}

/* How many changes the server has counted. */
static long long changes(void)
{
    return test_redis_info(redis, "rdb_changes_since_last_save");
}

/* When the reading began, as a renewal's first step says. */
static long long look(void)
{
    struct answer a = raise_reading(0, "0");

    ck_assert_str_eq(WHAT(a), "shared");
    ck_assert_int_gt(a.fate[0].ticket, 0);
    return a.fate[0].ticket;
}

/* ---- ends */

/* rule: P20, W5 */
START_TEST(end_of_a_reader_rises_and_never_falls)
{
    SAYS(acquire(READ_A), "held");
    struct answer a = raise_end("60000");
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(a.fate[0].remaining, 60000);
    long long end = end_of(READ_A);
    a = raise_end("1000");
    ck_assert_int_gt(a.fate[0].remaining, 60000 - test_ms(SLACK_MS));
    ck_assert_int_eq(end_of(READ_A), end);
    ck_assert_int_gt(ttl(READERS), 120000 - test_ms(SLACK_MS));
    assert_ttls();
}
END_TEST

/* rule: P20, W4 */
START_TEST(end_that_has_passed_is_not_revived_with_one_key)
{
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(READ_B), "held");
    set_end(READ_A, server_ms() - 1);
    SAYS(raise_end("60000"), "gone");
    SAYS(drop(READ_A), "released");
    SAYS(raise_end("60000"), "gone");
    ck_assert_int_eq(end_of(READ_A), -1);
    SAYS(release(READ_B), "released");
    SAYS(raise_end("60000"), "gone");
    ck_assert(!test_redis_exists(redis, READERS));
}
END_TEST

/* rule: P20, W2 */
START_TEST(only_named_ends_rise)
{
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(READ_B), "held");
    long long end = end_of(READ_B);
    struct answer a = RUN(RLK_READER_RAISE, UUID_A, "1:9:r3000 60000 " OF_A " 60000 ");
    ck_assert_uint_eq(a.count, 2);
    ck_assert_str_eq(a.fate[0].what, "gone");
    ck_assert_str_eq(a.fate[1].what, "held");
    ck_assert_int_eq(end_of(READ_B), end);
    ck_assert_int_eq(count_reading(), 2);
}
END_TEST

/* ---- the reading */

/* rule: P20, W3 */
START_TEST(lock_lasts_as_long_as_an_end_that_was_raised_before)
{
    SAYS(acquire(READ_A), "held");
    long long since = look();
    ck_assert_int_le(ttl("n"), LEASE_MS);
    SAYS(raise_end("60000"), "held");
    struct answer a = raise_reading(since, "60000");
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(a.fate[0].remaining, 60000);
    a = raise_reading(since, "1000");
    ck_assert_int_gt(a.fate[0].remaining, 60000 - test_ms(SLACK_MS));
    ck_assert_int_gt(ttl("n"), 60000 - test_ms(SLACK_MS));
}
END_TEST

/* rule: P20, W6 */
START_TEST(later_reading_is_not_taken_for_the_one_that_was_seen)
{
    SAYS(acquire(READ_A), "held");
    long long since = look();
    SAYS(raise_end("60000"), "held");
    expire();
    SAYS(raise_reading(since, "60000"), "gone");
    SAYS(acquire(READ_B), "held");
    struct answer a = raise_reading(since, "60000");
    ck_assert_str_eq(WHAT(a), "shared");
    ck_assert_int_eq(a.fate[0].ticket, look());
    ck_assert_int_gt(a.fate[0].ticket, since);
    ck_assert_int_le(ttl("n"), LEASE_MS);
    SAYS(raise_end("60000"), "gone");
    assert_fit(READ_B);
}
END_TEST

/* rule: P20 */
START_TEST(writing_and_other_locks_are_no_reading)
{
    SAYS(raise_reading(0, "0"), "gone");
    SAYS(acquire(_i == 0 ? WRITE_A : FAIR_A), "held");
    SAYS(raise_reading(0, "0"), "gone");
    SAYS(raise_end("60000"), "gone");
    ck_assert(!test_redis_exists(redis, READERS));
    ck_assert_int_le(ttl("n"), LEASE_MS);
}
END_TEST

/* rule: P20 */
START_TEST(foreign_data_is_no_time_of_a_reading)
{
    const char *const values[] = { "", "now", "-1", "99999999999999999", "01" };

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        test_redis_do(redis, "HSET", "n", "mode", "rlock:read", "since", values[i]);
        test_redis_do(redis, "PEXPIRE", "n", "30000");
        struct answer a = RUN(RLK_READING_RAISE, values[i], "60000", "0");
        ck_assert_str_eq(WHAT(a), "shared");
        ck_assert_int_eq(a.fate[0].ticket, 0);
        SAYS(raise_reading(0, "60000"), "shared");
        ck_assert_int_le(ttl("n"), LEASE_MS);
    }
}
END_TEST

/* rule: P11 */
START_TEST(renewal_with_one_key_writes_for_a_client_that_waits_for_replicas)
{
    SAYS(acquire(READ_A), "held");
    long long since = look();
    long long before = changes();
    SAYS(raise_reading(since, "1000"), "held");
    ck_assert_int_eq(changes(), before);
    SAYS(RUN(RLK_READING_RAISE, text_of(since), "1000", "1"), "held");
    ck_assert_int_gt(changes(), before);
    before = changes();
    SAYS(raise_end("1000"), "held");
    ck_assert_int_gt(changes(), before);
}
END_TEST

/* ---- releases */

/* rule: P20 */
START_TEST(reader_that_leaves_with_one_key_ends_no_other_reading)
{
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(READ_B), "held");
    SAYS(drop(READ_A), "released");
    SAYS(drop(READ_A), "notmine");
    ck_assert_int_eq(count_reading(), 1);
    SAYS(try_acquire(WRITE_C), "busy");
    SAYS(renew(READ_B, "30000"), "held");
    assert_fit(READ_B);
    SAYS(release(READ_B), "released");
    ck_assert(!test_redis_exists(redis, READERS));
}
END_TEST

/* rule: P20, W7 */
START_TEST(reading_is_over_behind_the_last_reader)
{
    SAYS(acquire(READ_A), "held");
    SAYS(drop(READ_A), "released");
    SAYS(drop(READ_A), "notmine");
    ck_assert(test_redis_exists(redis, "n"));
    assert_ttls();
    if (_i == 1) /* one that has left, or has died */
        SAYS(renew(READ_A, "30000"), "gone");
    if (_i == 2)
        SAYS(release(READ_A), "notmine");
    if (_i == 3)
        SAYS(cancel(READ_B), "removed");
    SAYS(try_acquire(_i % 2 == 0 ? WRITE_B : READ_C), "held");
    ck_assert_int_eq(count_reading(), _i % 2);
}
END_TEST

/* rule: P20, W7, W11 */
START_TEST(writer_is_next_behind_a_reader_that_left_with_one_key)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);

    SAYS(acquire(READ_A), "held");
    SAYS(acquire(WRITE_B), "queued");
    SAYS(acquire(READ_C), "queued");
    SAYS(drop(READ_A), "released");
    ck_assert(no_message(b));
    if (_i == 2) /* late */
        SAYS(renew(READ_A, "30000"), "gone");
    SAYS(refresh(_i == 0 ? WRITE_B : READ_C), _i == 0 ? "held" : "queued");
    ck_assert(is_held_by(WRITE_B));
    ck_assert(_i == 0 || message(b) != NULL);
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* rule: W27 */
START_TEST(keys_of_other_types_are_refused)
{
    test_redis_do(redis, "SET", READERS, "text");
    test_redis_do(redis, "SET", "n", "text");
    const struct answer answers[] = { raise_end("60000"), drop(READ_A),
                                      raise_reading(0, "0") };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        ck_assert_ptr_nonnull(strstr(answers[i].error, "WRONGTYPE"));
    test_redis_do(redis, "DEL", READERS, "n");
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, byhand_start, byhand_stop);
    tcase_add_checked_fixture(tc, byhand_open, byhand_close);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("read-write scripts with one key");
    TCase *tc = add_case(suite, "leases");
    tcase_add_test(tc, end_of_a_reader_rises_and_never_falls);
    tcase_add_test(tc, end_that_has_passed_is_not_revived_with_one_key);
    tcase_add_test(tc, only_named_ends_rise);
    tcase_add_test(tc, lock_lasts_as_long_as_an_end_that_was_raised_before);
    tcase_add_test(tc, later_reading_is_not_taken_for_the_one_that_was_seen);
    tcase_add_loop_test(tc, writing_and_other_locks_are_no_reading, 0, 2);
    tcase_add_test(tc, foreign_data_is_no_time_of_a_reading);
    tcase_add_test(tc, renewal_with_one_key_writes_for_a_client_that_waits_for_replicas);
    tc = add_case(suite, "releases");
    tcase_add_test(tc, reader_that_leaves_with_one_key_ends_no_other_reading);
    tcase_add_loop_test(tc, reading_is_over_behind_the_last_reader, 0, 4);
    tcase_add_loop_test(tc, writer_is_next_behind_a_reader_that_left_with_one_key, 0, 3);
    tcase_add_test(tc, keys_of_other_types_are_refused);
    return test_run_suite(suite);
}
