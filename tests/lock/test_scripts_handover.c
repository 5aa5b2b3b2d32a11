/* SPDX-License-Identifier: Apache-2.0 */
/* The hand-over, and the scripts that look at a lock from outside, sent by hand. */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A is the holder; the others queue in this order. */
static void queue_up(const char *const ids[])
{
    SAYS(acquire(A), "held");
    for (int i = 0; ids[i]; i++)
        SAYS(acquire(ids[i]), "queued");
}
#define QUEUE_UP(...) queue_up(TEST_ARGV(__VA_ARGS__))

static void add_waiter(const char *id, long long ticket)
{
    char score[32];
    snprintf(score, sizeof(score), "%lld", ticket);
    test_redis_do(redis, "ZADD", QUEUE, score, id);
    test_redis_do(redis, "PEXPIRE", QUEUE, "60000");
}

static void make_present(const char *uuid)
{
    test_redis_do(redis, "ZADD", PRESENT, "9999999999999", uuid);
    test_redis_do(redis, "PEXPIRE", PRESENT, "60000");
}

static void assert_queue(const char *wanted)
{
    ck_assert_str_eq(queue_text(), wanted);
}

/* ---- what a hand-over does */

/* rule: L1 */
START_TEST(release_hands_over_to_the_first_waiter_by_message)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    struct test_redis *channel = channel_listener(CHANNEL);
    char wanted[128];

    QUEUE_UP(B, C);
    long long ticket = test_redis_int(redis, "ZSCORE", QUEUE, B);
    struct answer a = release(A);
    ck_assert_str_eq(WHAT(a), "released");
    ck_assert_int_le(a.left, 3000); /* the grant's time, from the waiter's id */
    ck_assert_int_gt(a.left, 0);
    ck_assert_int_eq(a.flags, 1);
    ck_assert_int_eq(a.more, 0);
    ck_assert(is_held_by(B));
    ck_assert_int_eq((int)test_redis_int(redis, "HLEN", "n"), 3);
    ck_assert_str_eq(field("mode"), "rlock:mutex");
    ck_assert_int_eq(atoll(field("since")), a.now);
    ck_assert_int_le(test_redis_int(redis, "PTTL", "n"), 3000);
    snprintf(wanted, sizeof(wanted), "1 grant 1 0 1 1 %s %lld n", B, ticket);
    ck_assert_str_eq(message(b), wanted); /* digits, no exponent */
    ck_assert(no_message(c));
    ck_assert(no_message(channel));
    assert_ttls();
    test_redis_close(b);
    test_redis_close(c);
    test_redis_close(channel);
}
END_TEST

START_TEST(fenced_grant_tells_the_token_of_the_hold)
{
    struct test_redis *b = listener(UUID_B);
    char wanted[160];
    QUEUE_UP(FENCED_B);
    long long ticket = test_redis_int(redis, "ZSCORE", QUEUE, FENCED_B);
    SAYS(release(A), "released");
    snprintf(wanted, sizeof(wanted), "1 grant 0 %s 1 1 %s %lld n", field("token"),
             FENCED_B, ticket);
    ck_assert_str_eq(message(b), wanted);
    ck_assert_uint_eq(strlen(field("token")), 16); /* us, as text */
    ck_assert_str_eq(field("token"), test_redis_str(redis, "GET", TOKEN));
    test_redis_close(b);
}
END_TEST

/* rule: L2 */
START_TEST(waiters_without_presence_are_dropped)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    QUEUE_UP(B, C);
    test_redis_do(redis, "ZREM", PRESENT, UUID_B);
    SAYS(release(A), "released");
    ck_assert(is_held_by(C));
    assert_queue("");
    ck_assert(no_message(b));
    expire();
    SAYS(acquire(A), "held");
    SAYS(acquire(C), "queued");
    test_redis_do(redis, "ZADD", PRESENT, "1000", UUID_C); /* C's presence has ended */
    SAYS(release(A), "released");
    assert_queue("");
    ck_assert(!test_redis_exists(redis, "n"));
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* rule: L5 */
START_TEST(present_waiter_without_a_listener_does_not_lose_its_ticket)
{
    struct test_redis *c = listener(UUID_C);
    char before[256];
    QUEUE_UP(B, C, UUID_B ":2:1:m3000");
    snprintf(before, sizeof(before), "%s %lld %s %lld", B,
             test_redis_int(redis, "ZSCORE", QUEUE, B), UUID_B ":2:1:m3000",
             test_redis_int(redis, "ZSCORE", QUEUE, UUID_B ":2:1:m3000"));
    SAYS(release(A), "released");
    ck_assert(is_held_by(C));
    assert_queue(before);
    test_redis_close(c);
}
END_TEST

/* Releases as a user that may not ask which clients listen: the PUBLISH is the probe. */
static struct answer release_unasked(const char *id)
{
    struct test_redis *all = redis;
    redis = byhand_user_without("pubsub");
    struct answer a = release(id);
    test_redis_close(redis);
    redis = all;
    return a;
}

/* rule: L5 */
START_TEST(unheard_waiter_does_not_lose_its_ticket_when_PUBSUB_is_denied)
{
    struct test_redis *c = listener(UUID_C);
    char before[128];
    QUEUE_UP(B, C);
    snprintf(before, sizeof(before), "%s %lld", B,
             test_redis_int(redis, "ZSCORE", QUEUE, B));
    SAYS(release_unasked(A), "released");
    ck_assert(is_held_by(C));
    assert_queue(before);
    test_redis_close(c);
}
END_TEST

/* rule: T5 */
START_TEST(unheard_grant_is_undone)
{
    struct test_redis *channel = channel_listener(CHANNEL);
    char before[256];
    QUEUE_UP(B, C);
    snprintf(before, sizeof(before), "%s", queue_text());
    struct answer a = release_unasked(A);
    ck_assert_str_eq(WHAT(a), "released");
    ck_assert_int_eq(a.left, -2);
    ck_assert(!test_redis_exists(redis, "n"));
    assert_queue(before);
    ck_assert_str_eq(message(channel), "0");
    assert_ttls();
    test_redis_close(channel);
}
END_TEST

START_TEST(undone_queue_of_one_has_a_TTL)
{
    QUEUE_UP(B);
    SAYS(release_unasked(A), "released");
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", QUEUE), 1);
    assert_ttls();
}
END_TEST

/* rule: T5 */
START_TEST(refused_write_sends_no_message)
{
    if (!test_server_bounds_scripts("refused_write_sends_no_message"))
        return;
    struct test_redis *b = listener(UUID_B);
    char before[64];
    QUEUE_UP(B);
    expire();
    snprintf(before, sizeof(before), "%s", digest());
    test_redis_config(redis, "min-replicas-to-write", "1");
    struct answer a = refresh_after("0");
    /* before 7.0, behind "ERR Error running script (...): -" */
    ck_assert_ptr_nonnull(strstr(a.error, "NOREPLICAS"));
    ck_assert_str_eq(digest(), before);
    ck_assert(no_message(b));
    test_redis_close(b);
}
END_TEST

START_TEST(listener_is_found_by_the_whole_uuid)
{
    /* the mailbox of another client, and a pattern, do not count as its listener */
    struct test_redis *c = listener(UUID_C);
    QUEUE_UP(B);
    SAYS(release(A), "released");
    ck_assert(!test_redis_exists(redis, "n"));
    ck_assert(no_message(c));
    test_redis_close(c);
}
END_TEST

START_TEST(letters_choose_the_mode)
{
    static const struct {
        const char *id, *mode;
        bool fenced;
    } rows[] = {
        { UUID_B ":1:1:m250", "rlock:mutex", false },
        { UUID_B ":1:1:M250", "rlock:mutex", true },
        { UUID_B ":1:1:f250", "rlock:fair", false },
        { UUID_B ":1:1:F250", "rlock:fair", true },
        { UUID_B ":1:1:w250", "rlock:write", false },
        { UUID_B ":1:1:W250", "rlock:write", true },
        { UUID_B ":1:1:m250b", "rlock:mutex", false }, /* flags of later versions */
        { UUID_B ":1:1:f250bkz", "rlock:fair", false },
    };
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(A), "held");
    make_present(UUID_B);
    add_waiter(rows[_i].id, 5);
    SAYS(release(A), "released");
    ck_assert(is_held_by(rows[_i].id));
    ck_assert_str_eq(field("mode"), rows[_i].mode);
    ck_assert_int_eq(field("token")[0] != '\0', rows[_i].fenced);
    ck_assert_int_le(test_redis_int(redis, "PTTL", "n"), 250);
    ck_assert_ptr_nonnull(message(b));
    test_redis_close(b);
}
END_TEST

START_TEST(waiter_with_an_unknown_letter_is_skipped_and_does_not_lose_its_ticket)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    SAYS(acquire(A), "held");
    make_present(UUID_B);
    make_present(UUID_C);
    add_waiter(UUID_B ":1:1:x3000", 5);
    add_waiter(UUID_B ":1:2:Z3000q", 6);
    add_waiter(C, 7);
    SAYS(release(A), "released");
    ck_assert(is_held_by(C));
    assert_queue(UUID_B ":1:1:x3000 5 " UUID_B ":1:2:Z3000q 6");
    ck_assert(no_message(b));
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

static const char *const malformed[] = {
    "x",
    ":::",
    UUID_B,
    UUID_B ":1:1",
    UUID_B ":1:1:3000",
    UUID_B ":1:1:m",
    UUID_B ":1:1:m0",
    UUID_B ":1:1:m3000B",
    UUID_B ":1:1:m3000:",
    UUID_B ":x:1:m3000",
    UUID_B ":1:1:m-5",
    UUID_B ":1:1:mm3000",
    UUID_B ":1:1:m3000 ",
    "",
    UUID_B ":1:1:m99999999999999999999",
    UUID_B ":1:1:m9223372036854775807",
    UUID_B ":1:1:m9007199254740993",
};

START_TEST(malformed_waiter_is_dropped)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    SAYS(acquire(A), "held");
    make_present(UUID_B);
    make_present(UUID_C);
    add_waiter(malformed[_i], 5);
    add_waiter(C, 7);
    struct answer a = release(A);
    ck_assert_str_eq(WHAT(a), "released");
    ck_assert(is_held_by(C));
    assert_queue("");
    ck_assert(no_message(b));
    assert_ttls();
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* ---- the bound */

static void add_deaf_waiters(int count)
{
    char id[64];
    make_present(UUID_B); /* and nobody listens */
    for (int i = 0; i < count; i++) {
        snprintf(id, sizeof(id), UUID_B ":1:%d:m3000", i + 1);
        add_waiter(id, i + 1);
    }
}

/* rule: T11 */
START_TEST(more_than_64_unheard_waiters_need_a_continuation)
{
    struct test_redis *c = listener(UUID_C);
    char from[32];
    SAYS(acquire(A), "held");
    add_deaf_waiters(150);
    add_waiter(C, 151);
    make_present(UUID_C);
    struct answer a = release(A);
    ck_assert_int_eq(a.more, 64);
    ck_assert(!test_redis_exists(redis, "n"));
    ck_assert(no_message(c));
    a = refresh_after("64");
    ck_assert_int_eq(a.more, 128);
    snprintf(from, sizeof(from), "%lld", a.more);
    a = refresh_after(from);
    ck_assert_int_eq(a.more, 0);
    ck_assert(is_held_by(C));
    ck_assert_ptr_nonnull(message(c));
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", QUEUE), 150);
    test_redis_close(c);
}
END_TEST

/* rule: T11 */
START_TEST(exactly_64_unheard_waiters_need_no_continuation)
{
    SAYS(acquire(A), "held");
    add_deaf_waiters(64);
    ck_assert_int_eq(release(A).more, 0);
    SAYS(acquire(A), "held");
    add_deaf_waiters(65);
    ck_assert_int_eq(release(A).more, 64);
    ck_assert_int_eq(cancel(A2).more, 64);
    ck_assert_int_eq(refresh_after("64").more, 0);
    assert_ttls();
}
END_TEST

/* rule: T11 */
START_TEST(dead_waiters_are_dropped_64_at_a_time)
{
    struct test_redis *c = listener(UUID_C);
    SAYS(acquire(A), "held");
    add_deaf_waiters(100);
    test_redis_do(redis, "DEL", PRESENT);
    add_waiter(C, 151);
    make_present(UUID_C);
    struct answer a = release(A);
    ck_assert_int_eq(a.more, 64);
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", QUEUE), 37);
    refresh_after("64");
    ck_assert(is_held_by(C));
    assert_queue("");
    test_redis_close(c);
}
END_TEST

/* ---- refresh */

/* rule: T2 */
START_TEST(refresh_never_acquires)
{
    SAYS(refresh(A), "gone");
    ck_assert_int_eq((int)test_redis_int(redis, "DBSIZE"), 0);
    SAYS(acquire(A), "held");
    SAYS(refresh(A), "held");
    expire(); /* its lease has ended */
    struct answer a = refresh(A);
    ck_assert_str_eq(WHAT(a), "gone");
    ck_assert_int_eq(a.left, -2);
    ck_assert_int_eq((int)test_redis_int(redis, "DBSIZE"), 0);
}
END_TEST

/* rule: T11 */
START_TEST(refresh_grants_its_own_waiter_by_the_reply_alone)
{
    struct test_redis *b = listener(UUID_B);
    QUEUE_UP(FENCED_B, C);
    SAYS(refresh(FENCED_B), "queued");
    expire();
    struct answer a = refresh(FENCED_B);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_le(a.fate[0].remaining, 3000);
    ck_assert_int_gt(a.fate[0].remaining, 0);
    ck_assert_str_eq(a.fate[0].token, field("token"));
    ck_assert_int_eq(a.flags, 1);
    ck_assert(is_held_by(FENCED_B));
    ck_assert(no_message(b));
    test_redis_close(b);
}
END_TEST

START_TEST(refresh_grants_to_the_first_waiter_whichever_client_asks)
{
    struct test_redis *b = listener(UUID_B);
    QUEUE_UP(B, C);
    expire();
    struct answer a = refresh(C);
    ck_assert_str_eq(WHAT(a), "queued");
    ck_assert_int_le(a.left, 3000);
    ck_assert(is_held_by(B));
    ck_assert_ptr_nonnull(message(b));
    test_redis_close(b);
}
END_TEST

START_TEST(refresh_tells_of_each_id_in_order)
{
    QUEUE_UP(B, UUID_B ":2:1:m3000");
    test_redis_do(redis, "HSET", "n", UUID_B ":5:5:m3000", "1");
    struct answer a = RUN(RLK_MUTEX_REFRESH, UUID_B, "3000", "0",
                          "2:1:m3000 7:7:m3000 1:1:m3000 5:5:m3000 ");
    ck_assert_uint_eq(a.count, 4);
    ck_assert_str_eq(a.fate[0].what, "queued");
    ck_assert_str_eq(a.fate[1].what, "gone");
    ck_assert_str_eq(a.fate[2].what, "queued");
    ck_assert_str_eq(a.fate[3].what, "held");
    ck_assert_int_lt(a.fate[2].ticket, a.fate[0].ticket);
    ck_assert_int_eq(a.fate[1].ticket, 0);
    ck_assert_int_gt(a.fate[3].remaining, 0);
}
END_TEST

START_TEST(refresh_renews_the_presence_of_queued_waiters_only)
{
    QUEUE_UP(B);
    test_redis_do(redis, "ZADD", PRESENT, "1000", UUID_B);
    test_redis_do(redis, "PEXPIRE", PRESENT, "5000");
    test_redis_do(redis, "PEXPIRE", QUEUE, "5000");
    struct answer a = refresh(B);
    ck_assert_int_ge(test_redis_int(redis, "ZSCORE", PRESENT, UUID_B),
                     a.now / 1000 + 2999);
    ck_assert_int_gt(test_redis_int(redis, "PTTL", QUEUE), 5000);
    ck_assert_int_gt(test_redis_int(redis, "PTTL", PRESENT), 5000);
    SAYS(refresh(C), "gone");
    ck_assert_ptr_null(test_redis_str(redis, "ZSCORE", PRESENT, UUID_C));
    SAYS(refresh(A), "held"); /* a holder waits for nothing */
    ck_assert_ptr_null(test_redis_str(redis, "ZSCORE", PRESENT, UUID_A));
}
END_TEST

START_TEST(refresh_does_not_raise_a_holders_lease)
{
    SAYS(acquire(A), "held");
    test_redis_do(redis, "PEXPIRE", "n", "2000");
    struct answer a = refresh(A);
    ck_assert_int_le(a.fate[0].remaining, 2000);
    ck_assert_int_le(test_redis_int(redis, "PTTL", "n"), 2000);
}
END_TEST

START_TEST(cancel_hands_over_a_lock_that_came_free)
{
    struct test_redis *c = listener(UUID_C);
    QUEUE_UP(B, C);
    expire();
    SAYS(cancel(B), "removed");
    ck_assert(is_held_by(C));
    ck_assert_ptr_nonnull(message(c));
    test_redis_close(c);
}
END_TEST

/* rule: T7 */
START_TEST(release_by_a_waiter_hands_over_a_lock_that_came_free)
{
    struct test_redis *c = listener(UUID_C);
    QUEUE_UP(B, C);
    expire();
    SAYS(release(B), "notmine");
    ck_assert(is_held_by(C));
    ck_assert_ptr_nonnull(message(c));
    test_redis_close(c);
}
END_TEST

/* ---- force and inspect */

/* rule: T10 */
START_TEST(force_takes_the_lock_from_its_victim_only)
{
    struct test_redis *a = listener(UUID_A);
    char since[32], before[64];

    SAYS(force(A, ""), "gone");
    SAYS(acquire(A), "held");
    snprintf(since, sizeof(since), "%s", field("since"));
    strcpy(before, digest());
    SAYS(force(B, since), "gone");
    SAYS(force(A, "1"), "gone");
    SAYS(force(A, ""), "gone");
    ck_assert_str_eq(digest(), before);
    ck_assert(no_message(a));
    test_redis_do(redis, "SET", DIRTY, A "#1", "PX", "60000");
    SAYS(force(A, since), "released");
    ck_assert(!test_redis_exists(redis, "n"));
    ck_assert(!test_redis_exists(redis, DIRTY));
    ck_assert_str_eq(message(a), "1 lost " A " n");
    SAYS(acquire(B), "held"); /* a repeated force cannot hit the next holder */
    SAYS(force(A, since), "gone");
    ck_assert(is_held_by(B));
    test_redis_close(a);
}
END_TEST

START_TEST(force_hands_over)
{
    struct test_redis *b = listener(UUID_B), *channel = channel_listener(CHANNEL);
    QUEUE_UP(B);
    SAYS(force(A, field("since")), "released");
    ck_assert(is_held_by(B));
    ck_assert_ptr_nonnull(message(b));
    ck_assert(no_message(channel));
    SAYS(force(B, field("since")), "released");
    ck_assert_str_eq(message(b), "1 lost " B " n");
    ck_assert_str_eq(message(channel), "0");
    test_redis_close(b);
    test_redis_close(channel);
}
END_TEST

START_TEST(force_takes_from_redisson)
{
    test_redis_do(redis, "HSET", "n", "7c9a:52", "2");
    test_redis_do(redis, "PEXPIRE", "n", "20000");
    SAYS(force("7c9a:52", "1"), "gone");
    SAYS(force("7c9a:52", ""), "released");
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

START_TEST(inspect_tells_holder_waiters_and_presence_and_writes_nothing)
{
    char before[64];
    QUEUE_UP(B, C);
    test_redis_do(redis, "ZADD", RQUEUE, "5", UUID_C ":2:1:r3000");
    test_redis_do(redis, "PEXPIRE", RQUEUE, "60000");
    test_redis_do(redis, "ZREM", PRESENT, UUID_B);
    strcpy(before, digest());
    const redisReply *r = run_raw(RLK_LOCK_INSPECT, TEST_ARGV("10", "0", "0"));
    ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
    ck_assert_uint_eq(r->elements, 7);
    ck_assert_int_gt(r->element[1]->integer, 0);
    ck_assert_uint_eq(r->element[2]->elements, 6);
    ck_assert_uint_eq(r->element[3]->elements, 0);
    ck_assert_uint_eq(r->element[4]->elements, 4);
    ck_assert_str_eq(r->element[4]->element[0]->str, B);
    ck_assert_str_eq(r->element[4]->element[2]->str, C);
    ck_assert_uint_eq(r->element[5]->elements, 2);
    ck_assert_uint_eq(r->element[6]->elements, 3);
    /* a waiter that is not present is reported as such, in its place */
    ck_assert_msg(r->element[6]->element[0]->type == REDIS_REPLY_STRING &&
                      atoll(r->element[6]->element[0]->str) == 0,
                  "type %d", r->element[6]->element[0]->type);
    ck_assert_int_gt(atoll(r->element[6]->element[1]->str), 0);
    ck_assert_str_eq(digest(), before);
}
END_TEST

START_TEST(inspect_pages)
{
    char id[64], from[32] = "0";
    int seen = 0;
    SAYS(acquire(A), "held");
    for (int i = 0; i < 25; i++) {
        snprintf(id, sizeof(id), UUID_B ":1:%d:m3000", i + 1);
        add_waiter(id, 1700000000000000 + i);
    }
    for (int page = 0; page < 4; page++) {
        const redisReply *r = run_raw(RLK_LOCK_INSPECT, TEST_ARGV("10", from, "0"));
        const redisReply *waiters = r->element[4];
        ck_assert_uint_eq(waiters->elements, page < 2 ? 20 : page == 2 ? 10 : 0);
        seen += (int)waiters->elements / 2;
        if (waiters->elements > 0)
            snprintf(from, sizeof(from), "%s",
                     waiters->element[waiters->elements - 1]->str);
    }
    ck_assert_int_eq(seen, 25);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scripts: hand-over");
    TEST_ADD(byhand_tcase(suite, "hand-over"),
             release_hands_over_to_the_first_waiter_by_message,
             fenced_grant_tells_the_token_of_the_hold,
             waiters_without_presence_are_dropped,
             present_waiter_without_a_listener_does_not_lose_its_ticket,
             unheard_waiter_does_not_lose_its_ticket_when_PUBSUB_is_denied,
             unheard_grant_is_undone, undone_queue_of_one_has_a_TTL,
             refused_write_sends_no_message, listener_is_found_by_the_whole_uuid,
             waiter_with_an_unknown_letter_is_skipped_and_does_not_lose_its_ticket);
    TEST_ADD(byhand_tcase(suite, "T11"), more_than_64_unheard_waiters_need_a_continuation,
             exactly_64_unheard_waiters_need_no_continuation,
             dead_waiters_are_dropped_64_at_a_time,
             refresh_grants_its_own_waiter_by_the_reply_alone);
    TEST_ADD(byhand_tcase(suite, "refresh"), refresh_never_acquires,
             refresh_grants_to_the_first_waiter_whichever_client_asks,
             refresh_tells_of_each_id_in_order,
             refresh_renews_the_presence_of_queued_waiters_only,
             refresh_does_not_raise_a_holders_lease,
             cancel_hands_over_a_lock_that_came_free,
             release_by_a_waiter_hands_over_a_lock_that_came_free);
    TEST_ADD(byhand_tcase(suite, "from outside"),
             force_takes_the_lock_from_its_victim_only, force_hands_over,
             force_takes_from_redisson,
             inspect_tells_holder_waiters_and_presence_and_writes_nothing, inspect_pages);

    TCase *tc = byhand_tcase(suite, "ids");
    tcase_add_loop_test(tc, letters_choose_the_mode, 0, 8);
    tcase_add_loop_test(tc, malformed_waiter_is_dropped, 0,
                        sizeof(malformed) / sizeof(malformed[0]));

    return test_run_suite(suite);
}
