/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defects that a review found in the scripts of the fair lock: each test fails without
 * its fix. A lost key of presence and the order after it, keys of a wrong type, full
 * memory, flags. The scripts are sent by hand.
 */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>

#define UUID_D "dddddddd-0000-4000-8000-00000000000d"
#define FAIR_D UUID_D ":1:1:f3000"
#define FENCED_FAIR_B UUID_B ":1:3:F3000"

enum { FOREIGN = 4 };

/* FAIR_A holds, FAIR_B and FAIR_C wait and listen. */
static struct test_redis *b, *c;

static void open_queue(void)
{
    b = listener(UUID_B);
    c = listener(UUID_C);
    SAYS(acquire(FAIR_A), "held");
    SAYS(acquire(FAIR_B), "queued");
    SAYS(acquire(FAIR_C), "queued");
}

static void close_queue(void)
{
    test_redis_close(b);
    test_redis_close(c);
}

/* rule: L5 */
START_TEST(after_lost_presence_a_newcomer_queues_behind_the_waiters)
{
    open_queue();
    struct test_redis *d = listener(UUID_D);
    test_redis_do(redis, "DEL", PRESENT);
    SAYS(acquire(FAIR_D), "queued");
    SAYS(release(FAIR_A), "released");
    ck_assert(is_held_by(FAIR_B));
    SAYS(release(FAIR_B), "released");
    ck_assert(is_held_by(FAIR_C));
    SAYS(release(FAIR_C), "released");
    ck_assert(is_held_by(FAIR_D));
    assert_ttls();
    test_redis_close(d);
    close_queue();
}
END_TEST

/* rule: L5 */
START_TEST(after_lost_presence_one_refresh_drops_no_waiter)
{
    open_queue();
    test_redis_do(redis, "DEL", PRESENT);
    SAYS(refresh(FAIR_C), "queued");
    SAYS(release(FAIR_A), "released");
    ck_assert(is_held_by(FAIR_B));
    close_queue();
}
END_TEST

/* rule: L2 */
START_TEST(after_lost_presence_absent_waiters_are_dropped_in_time)
{
    open_queue();
    test_redis_do(redis, "DEL", PRESENT);
    SAYS(refresh(FAIR_C), "queued");
    ck_assert_str_ne(test_redis_str(redis, "ZSCORE", PRESENT, "*"), "");
    test_redis_do(redis, "ZADD", PRESENT, "1", "*"); /* as if a presence had passed */
    SAYS(refresh(FAIR_C), "queued");
    ck_assert_ptr_null(test_redis_str(redis, "ZSCORE", PRESENT, "*"));
    SAYS(release(FAIR_A), "released");
    ck_assert(is_held_by(FAIR_C));
    ck_assert_ptr_null(test_redis_str(redis, "ZSCORE", QUEUE, FAIR_B));
    close_queue();
}
END_TEST

/* rule: L5 */
START_TEST(after_lost_presence_a_short_presence_drops_no_waiter)
{
    open_queue();
    test_redis_do(redis, "DEL", PRESENT);
    SAYS(RUN(RLK_FAIR_REFRESH, UUID_C, "100", "0", "1:1:f3000"), "queued");
    test_pause_ms(150); /* C's presence is over, that of B is not known */
    expire();
    SAYS(RUN(RLK_FAIR_REFRESH, UUID_C, "100", "0", "1:1:f3000"), "queued");
    ck_assert(is_held_by(FAIR_B));
    close_queue();
}
END_TEST

/* rule: L5 */
START_TEST(refused_token_costs_no_waiter_its_place)
{
    struct test_redis *l = listener(UUID_B);
    SAYS(acquire(FAIR_A), "held");
    SAYS(acquire_fenced(FENCED_FAIR_B), "queued");
    expire();
    test_redis_do(redis, "ACL", "SETUSER", "default", "-set");
    struct answer a = acquire(FAIR_C);
    test_redis_do(redis, "ACL", "SETUSER", "default", "+set");
    ck_assert_str_ne(a.error, "");
    ck_assert_ptr_nonnull(test_redis_str(redis, "ZSCORE", QUEUE, FENCED_FAIR_B));
    SAYS(refresh(FENCED_FAIR_B), "held");
    test_redis_close(l);
}
END_TEST

START_TEST(inspection_knows_that_all_count_as_present)
{
    open_queue();
    test_redis_do(redis, "DEL", PRESENT);
    SAYS(refresh(FAIR_C), "queued");
    const redisReply *reply = run_raw(RLK_LOCK_INSPECT, TEST_ARGV("10", "0", "0"));
    ck_assert_int_eq(reply->type, REDIS_REPLY_ARRAY);
    ck_assert_uint_eq(reply->element[6]->elements, 2);
    ck_assert_int_gt(atoll(reply->element[6]->element[0]->str), 0);
    close_queue();
}
END_TEST

START_TEST(the_first_waiter_of_all_makes_no_presence_for_others)
{
    SAYS(acquire(FAIR_A), "held");
    SAYS(acquire(FAIR_B), "queued");
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", PRESENT), 1);
}
END_TEST

/* rule: T5 */
START_TEST(wrong_type_is_found_before_a_waiter_is_written)
{
    SAYS(acquire(FAIR_A), "held");
    test_redis_do(redis, "SET", RQUEUE, "foreign");
    struct answer a = acquire(FAIR_B);
    ck_assert_msg(strstr(a.error, "WRONGTYPE"), "%s", a.error);
    ck_assert(!test_redis_exists(redis, QUEUE));
    ck_assert(!test_redis_exists(redis, PRESENT));
}
END_TEST

/* rule: T5 */
START_TEST(wrong_type_is_found_before_a_lease_is_repaired)
{
    SAYS(acquire(FAIR_A), "held");
    test_redis_do(redis, "PERSIST", "n");
    test_redis_do(redis, "SET", RQUEUE, "foreign");
    ck_assert_str_ne(acquire(FAIR_A).error, "");
    ck_assert_int_eq((int)test_redis_int(redis, "PTTL", "n"), -1);
    test_redis_do(redis, "DEL", RQUEUE);
    SAYS(acquire(FAIR_A), "held");
    ck_assert_int_gt(test_redis_int(redis, "PTTL", "n"), 0);
}
END_TEST

START_TEST(with_memory_full_a_hand_over_to_a_fenced_waiter_goes_on)
{
    struct test_redis *l = listener(UUID_B);
    SAYS(acquire(FAIR_A), "held");
    SAYS(acquire_fenced(FENCED_FAIR_B), "queued");
    expire();
    test_redis_config(redis, "maxmemory", "1");
    struct answer a = refresh_after("0"); /* a refresh that names no id */
    test_redis_config(redis, "maxmemory", "0");
    ck_assert_str_eq(a.error, "");
    ck_assert(is_held_by(FENCED_FAIR_B));
    ck_assert_str_ne(field("token"), "");
    ck_assert_ptr_nonnull(message(l));
    test_redis_close(l);
}
END_TEST

START_TEST(a_lock_that_nobody_holds_has_no_foreign_holder)
{
    SAYS(acquire(FAIR_A), "held");
    SAYS(acquire(FAIR_B), "queued"); /* B is present, and does not listen */
    expire();
    struct answer a = try_acquire(FAIR_C);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(a.flags & FOREIGN, 0);
    for (int i = 1; i <= 65; i++) { /* more than one script looks at */
        char id[64], ticket[16];
        snprintf(id, sizeof(id), UUID_B ":2:%d:f3000", i);
        snprintf(ticket, sizeof(ticket), "%d", i);
        test_redis_do(redis, "ZADD", QUEUE, ticket, id);
    }
    expire();
    a = try_acquire(FAIR_D);
    ck_assert_str_eq(WHAT(a), "busy");
    ck_assert_int_gt(a.more, 0);
    ck_assert_int_eq(a.left, -2);
    ck_assert_int_eq(a.flags & FOREIGN, 0);
    a = acquire(FAIR_D);
    ck_assert_str_eq(WHAT(a), "queued");
    ck_assert_int_gt(a.more, 0);
    ck_assert_int_eq(a.flags & FOREIGN, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        after_lost_presence_a_newcomer_queues_behind_the_waiters,
        after_lost_presence_one_refresh_drops_no_waiter,
        after_lost_presence_absent_waiters_are_dropped_in_time,
        after_lost_presence_a_short_presence_drops_no_waiter,
        refused_token_costs_no_waiter_its_place,
        inspection_knows_that_all_count_as_present,
        the_first_waiter_of_all_makes_no_presence_for_others,
        wrong_type_is_found_before_a_waiter_is_written,
        wrong_type_is_found_before_a_lease_is_repaired,
        with_memory_full_a_hand_over_to_a_fenced_waiter_goes_on,
        a_lock_that_nobody_holds_has_no_foreign_holder,
    };
    Suite *suite = suite_create("fair review");
    TCase *tc = tcase_create("found");
    tcase_add_unchecked_fixture(tc, byhand_start, byhand_stop);
    tcase_add_checked_fixture(tc, byhand_open, byhand_close);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
