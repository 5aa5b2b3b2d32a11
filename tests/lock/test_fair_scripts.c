/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts of the fair lock, sent by hand: what an acquire does with a free lock while
 * others are queued, and how the waiters of one client are refreshed. What the fair lock
 * shares with the mutex is in test_scripts.c and test_scripts_token.c, which are built
 * for it as test_fair_by_hand and test_fair_tokens.
 *
 * A queued waiter is dead (not present), deaf (present, but no connection listens to its
 * mailbox) or listens.
 */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UUID_D "dddddddd-0000-4000-8000-00000000000d"
#define FAIR_B2 UUID_B ":2:2:f3000"
#define FAIR_D UUID_D ":1:1:f3000"
#define FENCED_FAIR_D UUID_D ":1:3:F3000"
#define MUTEX_B UUID_B ":1:1:m3000"

enum { LEASE_MS = 30000, GRANT_MS = 3000, LOOKS = 64, MANY = 130 };

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

/* Makes the key of presence, so that it does not count as lost. */
static void have_presence(void)
{
    make_present("ffffffff-0000-4000-8000-00000000000f");
}

static const char *many_id(char id[64], int i, bool each_its_own)
{
    snprintf(id, 64, "eeeeeeee-0000-4000-8000-%012d:%d:1:f3000", each_its_own ? i : 0, i);
    return id;
}

/* Queues tickets 1 to MANY, of one client or of MANY clients, without listeners. */
static void add_many(bool each_its_own, bool present)
{
    char id[64], uuid[64];
    have_presence();
    for (int i = 1; i <= MANY; i++) {
        add_waiter(many_id(id, i, each_its_own), i);
        snprintf(uuid, sizeof(uuid), "%.36s", id);
        if (present)
            make_present(uuid);
    }
}

static long long queued(void)
{
    return test_redis_int(redis, "ZCARD", QUEUE);
}

/* Asserts that the caller took the lock for its whole lease. */
static void assert_taken_by(const char *id, const struct answer *a)
{
    ck_assert_str_eq(WHAT(*a), "held");
    ck_assert_int_eq(a->left, LEASE_MS);
    ck_assert_int_eq(a->fate[0].remaining, LEASE_MS);
    ck_assert_int_eq(a->more, 0);
    ck_assert(is_held_by(id));
    ck_assert_int_gt(test_redis_int(redis, "PTTL", "n"), GRANT_MS);
    ck_assert_str_eq(field("mode"), "rlock:fair");
    ck_assert_int_eq(atoll(field("since")), a->now);
    ck_assert_ptr_null(test_redis_str(redis, "ZSCORE", QUEUE, id));
    assert_ttls();
}

/* Asserts that the lock was granted to `id`, for as long as the id says, by one
 * message. */
static void assert_granted(const char *id, struct test_redis *mailbox)
{
    const char *text = message(mailbox);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(strncmp(text, "1 grant ", 8), 0);
    ck_assert_ptr_nonnull(strstr(text, id));
    ck_assert(is_held_by(id));
    ck_assert_int_le(test_redis_int(redis, "PTTL", "n"), GRANT_MS);
    ck_assert(no_message(mailbox));
    assert_ttls();
}

/* FAIR_D asks by an acquire or by a try. */
static struct answer ask(bool try_once)
{
    return try_once ? try_acquire(FAIR_D) : acquire(FAIR_D);
}

/* In each of these tests, _i is 1 for a try. */

/* ---- the lock is free, and others are queued */

/* rule: L5 */
START_TEST(listening_waiter_comes_first)
{
    struct test_redis *b = listener(UUID_B), *d = listener(UUID_D);
    make_present(UUID_B);
    add_waiter(FAIR_B, 5);
    struct answer a = ask(_i);
    ck_assert_str_eq(WHAT(a), _i ? "busy" : "queued");
    ck_assert_int_eq(a.flags, _i ? 0 : 1);
    ck_assert_int_gt(a.left, 0);
    ck_assert_int_le(a.left, GRANT_MS);
    ck_assert_int_eq(a.more, 0);
    assert_granted(FAIR_B, b);
    ck_assert(no_message(d));
    ck_assert_int_eq(queued(), _i ? 0 : 1);
    if (!_i) {
        ck_assert_int_eq(test_redis_int(redis, "ZSCORE", QUEUE, FAIR_D),
                         a.fate[0].ticket);
        ck_assert_int_ge(test_redis_int(redis, "ZSCORE", PRESENT, UUID_D),
                         a.now / 1000 + GRANT_MS - 1);
        ck_assert_int_gt(a.fate[0].ticket, 5);
    }
    test_redis_close(b);
    test_redis_close(d);
}
END_TEST

/* rule: L2 */
START_TEST(dead_waiters_are_dropped_and_the_caller_takes_the_lock)
{
    have_presence();
    add_waiter(FAIR_A, 5);
    add_waiter(FAIR_B, 6);
    test_redis_do(redis, "ZADD", PRESENT, "1000", UUID_B); /* its time has passed */
    struct answer a = ask(_i);
    assert_taken_by(FAIR_D, &a);
    ck_assert_int_eq(a.flags, 0);
    ck_assert_int_eq(queued(), 0);
}
END_TEST

/* rule: L5 */
START_TEST(unheard_waiters_do_not_lose_their_tickets_and_the_caller_takes_the_lock)
{
    make_present(UUID_A);
    make_present(UUID_B);
    add_waiter(FAIR_A, 5);
    add_waiter(FAIR_B, 6);
    struct answer a = ask(_i);
    assert_taken_by(FAIR_D, &a);
    ck_assert_int_eq(a.flags, 1);
    ck_assert_str_eq(queue_text(), FAIR_A " 5 " FAIR_B " 6");
}
END_TEST

/* rule: L5 */
START_TEST(first_listening_waiter_behind_dead_and_unheard_ones_comes_first)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    have_presence();
    make_present(UUID_A);
    make_present(UUID_B);
    make_present(UUID_C);
    add_waiter("99999999-0000-4000-8000-000000000009:1:1:f3000", 4); /* dead */
    add_waiter(FAIR_A, 5);                                           /* deaf */
    add_waiter(FAIR_B, 6);
    add_waiter(FAIR_C, 7);
    struct answer a = ask(_i);
    ck_assert_str_eq(WHAT(a), _i ? "busy" : "queued");
    assert_granted(FAIR_B, b);
    ck_assert(no_message(c));
    if (_i)
        ck_assert_str_eq(queue_text(), FAIR_A " 5 " FAIR_C " 7");
    ck_assert_int_eq(queued(), _i ? 2 : 3);
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

START_TEST(listening_waiter_is_alive_when_the_presence_key_is_lost)
{
    struct test_redis *b = listener(UUID_B);
    add_waiter(FAIR_A, 5);
    add_waiter(FAIR_B, 6);
    SAYS(try_acquire(FAIR_D), "busy");
    assert_granted(FAIR_B, b);
    /* the script cannot know that A is dead */
    ck_assert_str_eq(queue_text(), FAIR_A " 5");
    test_redis_close(b);
}
END_TEST

START_TEST(a_waiter_of_the_callers_own_client_comes_first)
{
    struct test_redis *b = listener(UUID_B);
    make_present(UUID_B);
    add_waiter(FAIR_B, 5);
    SAYS(_i ? try_acquire(FAIR_B2) : acquire(FAIR_B2), _i ? "busy" : "queued");
    assert_granted(FAIR_B, b);
    test_redis_close(b);
}
END_TEST

START_TEST(the_callers_own_request_needs_no_listener)
{
    make_present(UUID_B);
    add_waiter(FAIR_B, 5); /* its thread would not hear a message */
    struct answer a = _i ? try_acquire(FAIR_B2) : acquire(FAIR_B2);
    assert_taken_by(FAIR_B2, &a);
    ck_assert_str_eq(queue_text(), FAIR_B " 5");
}
END_TEST

START_TEST(the_first_of_the_queue_takes_a_free_lock_by_asking_again)
{
    SAYS(acquire(FAIR_A), "held");
    SAYS(acquire(FAIR_D), "queued");
    SAYS(acquire(FAIR_C), "queued");
    expire();
    struct answer a = ask(_i);
    assert_taken_by(FAIR_D, &a);
    ck_assert_int_eq(a.flags, 1);
    ck_assert_int_eq(queued(), 1);
}
END_TEST

START_TEST(a_waiter_of_the_mutex_comes_in_its_turn)
{
    struct test_redis *b = listener(UUID_B);
    make_present(UUID_B);
    add_waiter(MUTEX_B, 5);
    SAYS(ask(_i), _i ? "busy" : "queued");
    assert_granted(MUTEX_B, b);
    ck_assert_str_eq(field("mode"), "rlock:mutex");
    test_redis_close(b);
}
END_TEST

START_TEST(waiter_of_an_unknown_type_is_skipped_and_does_not_lose_its_ticket)
{
    struct test_redis *b = listener(UUID_B);
    make_present(UUID_B);
    add_waiter(UUID_B ":1:1:x3000", 5);
    struct answer a = ask(_i);
    assert_taken_by(FAIR_D, &a);
    ck_assert_str_eq(queue_text(), UUID_B ":1:1:x3000 5");
    ck_assert(no_message(b));
    test_redis_close(b);
}
END_TEST

START_TEST(waiting_readers_and_markers_of_others_do_not_hinder)
{
    test_redis_do(redis, "ZADD", RQUEUE, "5", UUID_C ":1:1:r3000");
    test_redis_do(redis, "PEXPIRE", RQUEUE, "60000");
    SAYS(cancel(FAIR_A), "removed");
    struct answer a = ask(_i);
    assert_taken_by(FAIR_D, &a);
    ck_assert_int_eq(a.flags, 2);
}
END_TEST

/* rule: S3 */
START_TEST(acquire_that_skips_waiters_draws_a_token)
{
    char first[32];
    make_present(UUID_A);
    add_waiter(FAIR_A, 5);
    struct answer a = RUN(RLK_FAIR_ACQUIRE, FENCED_FAIR_D, UUID_D, "30000", "3000", NEVER,
                          _i ? "1" : "0", "1", "0");
    assert_taken_by(FENCED_FAIR_D, &a);
    ck_assert_uint_eq(strlen(a.fate[0].token), 16);
    ck_assert_str_eq(a.fate[0].token, field("token"));
    ck_assert_str_eq(test_redis_str(redis, "GET", TOKEN), a.fate[0].token);
    snprintf(first, sizeof(first), "%s", a.fate[0].token);
    /* a repeated request gets the same token */
    ck_assert_str_eq(acquire_fenced(FENCED_FAIR_D).fate[0].token, first);
}
END_TEST

/* ---- the bound */

/* rule: T11 */
START_TEST(try_continues_behind_64_waiters_until_it_takes_the_lock)
{
    bool own = _i & 1, present = _i & 2;
    char from[32] = "0";
    struct answer a;
    add_many(own, present);
    for (int round = 1; round * LOOKS < MANY; round++) {
        a = try_acquire_after(FAIR_D, from);
        ck_assert_str_eq(WHAT(a), "busy");
        ck_assert_int_eq(a.more, round * LOOKS);
        ck_assert_int_eq(a.left, -2);
        ck_assert_int_eq(queued(), present ? MANY : MANY - round * LOOKS);
        snprintf(from, sizeof(from), "%lld", a.more);
    }
    a = try_acquire_after(FAIR_D, from);
    assert_taken_by(FAIR_D, &a);
    ck_assert_int_eq(queued(), present ? MANY : 0);
}
END_TEST

/* rule: T11 */
START_TEST(continued_try_finds_the_first_live_waiter)
{
    struct test_redis *b = listener(UUID_B);
    add_many(true, true);
    make_present(UUID_B);
    add_waiter(FAIR_B, LOOKS + 10);
    ck_assert_int_eq(try_acquire(FAIR_D).more, LOOKS);
    ck_assert(no_message(b));
    struct answer a = try_acquire_after(FAIR_D, "64");
    ck_assert_str_eq(WHAT(a), "busy");
    ck_assert_int_eq(a.more, 0);
    assert_granted(FAIR_B, b);
    test_redis_close(b);
}
END_TEST

/* rule: T11 */
START_TEST(waiter_behind_more_than_64_is_queued_and_found_by_refreshes)
{
    bool own = _i & 1, present = _i & 2;
    char from[32];
    add_many(own, present);
    struct answer a = acquire(FAIR_D);
    ck_assert_str_eq(WHAT(a), "queued");
    ck_assert_int_eq(a.more, LOOKS);
    long long ticket = a.fate[0].ticket;
    for (int round = 2; round * LOOKS < MANY; round++) {
        snprintf(from, sizeof(from), "%lld", a.more);
        a = RUN(RLK_FAIR_REFRESH, UUID_D, "3000", from, "1:1:f3000 ");
        ck_assert_str_eq(WHAT(a), "queued");
        ck_assert_int_eq(a.fate[0].ticket, ticket);
        ck_assert_int_eq(a.more, round * LOOKS);
    }
    snprintf(from, sizeof(from), "%lld", a.more);
    a = RUN(RLK_FAIR_REFRESH, UUID_D, "3000", from, "1:1:f3000 ");
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(a.more, 0);
    ck_assert(is_held_by(FAIR_D));
    ck_assert_int_eq(queued(), present ? MANY : 0);
    assert_ttls();
}
END_TEST

/* rule: T11 */
START_TEST(exactly_64_skipped_waiters_need_no_continuation)
{
    char id[64];
    make_present("eeeeeeee-0000-4000-8000-000000000000");
    for (int i = 1; i <= LOOKS - !_i; i++) /* the caller's own ticket counts, too */
        add_waiter(many_id(id, i, false), i);
    struct answer a = ask(_i);
    assert_taken_by(FAIR_D, &a);
}
END_TEST

/* ---- probes */

static int probes(void)
{
    return (int)test_redis_calls(redis, "pubsub|numsub");
}

START_TEST(a_deaf_client_is_probed_once_however_many_tickets_it_has)
{
    char id[64];
    make_present(UUID_A);
    make_present("eeeeeeee-0000-4000-8000-000000000000");
    for (int i = 1; i <= 10; i++)
        add_waiter(many_id(id, i, false), i);
    add_waiter(FAIR_A, 5); /* among those waiters */
    test_redis_do(redis, "CONFIG", "RESETSTAT");
    struct answer a = ask(_i);
    assert_taken_by(FAIR_D, &a);
    ck_assert_int_eq(test_redis_calls(redis, "publish"), 0);
    ck_assert_int_eq(probes(), 2);
    ck_assert_int_eq(queued(), 11);
}
END_TEST

START_TEST(no_client_is_probed_when_the_caller_is_first)
{
    SAYS(cancel(FAIR_A), "removed"); /* so that no shortcut applies */
    test_redis_do(redis, "CONFIG", "RESETSTAT");
    SAYS(ask(_i), "held");
    ck_assert_int_eq(test_redis_calls(redis, "publish"), 0);
}
END_TEST

/* ---- asked again, refused */

/* rule: T1 */
START_TEST(repeated_request_has_the_same_ticket)
{
    add_many(true, true); /* so that the lock stays free */
    long long ticket = acquire(FAIR_D).fate[0].ticket;
    ck_assert_int_gt(ticket, MANY);
    SAYS(acquire(FAIR_C), "queued");
    ck_assert_int_eq(acquire(FAIR_D).fate[0].ticket, ticket);
    ck_assert_int_eq(queued(), MANY + 2);
    test_redis_do(redis, "ZREM", QUEUE, FAIR_D); /* D queues again, and comes last */
    ck_assert_int_gt(acquire(FAIR_D).fate[0].ticket,
                     test_redis_int(redis, "ZSCORE", QUEUE, FAIR_C));
}
END_TEST

/* rule: T8 */
START_TEST(granted_lock_is_held_with_its_remaining_time_and_token)
{
    char token[32];
    struct test_redis *d = listener(UUID_D);
    SAYS(acquire(FAIR_A), "held");
    SAYS(acquire_fenced(FENCED_FAIR_D), "queued");
    SAYS(release(FAIR_A), "released");
    assert_granted(FENCED_FAIR_D, d);
    snprintf(token, sizeof(token), "%s", field("token"));
    SAYS(cancel(FENCED_FAIR_D), "yours"); /* and marked as cancelled */
    struct answer a = RUN(RLK_FAIR_ACQUIRE, FENCED_FAIR_D, UUID_D, "30000", "3000",
                          _i & 2 ? "1" : NEVER /* late */, _i & 1 ? "1" : "0", "1", "0");
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_gt(a.fate[0].remaining, 0);
    ck_assert_int_le(a.fate[0].remaining, GRANT_MS);
    ck_assert_int_eq(a.left, a.fate[0].remaining);
    ck_assert_str_eq(a.fate[0].token, token);
    ck_assert_int_le(test_redis_int(redis, "PTTL", "n"), GRANT_MS);
    test_redis_do(redis, "PERSIST", "n"); /* a TTL that was removed by hand comes back */
    SAYS(acquire_fenced(FENCED_FAIR_D), "held");
    assert_ttls();
    test_redis_close(d);
}
END_TEST

/* rule: T3 */
START_TEST(refused_or_late_request_hands_nothing_over)
{
    static const char *const words[] = { "refused", "late" };
    struct test_redis *b = listener(UUID_B);
    char before[64];
    bool late = _i & 2;
    SAYS(cancel(FAIR_A), "removed");
    make_present(UUID_B);
    add_waiter(FAIR_B, 5);
    snprintf(before, sizeof(before), "%s", digest());
    SAYS(RUN(RLK_FAIR_ACQUIRE, late ? FAIR_C : FAIR_A, late ? UUID_C : UUID_A, "30000",
             "3000", late ? "1" : NEVER, _i & 1 ? "1" : "0", "0", "0"),
         words[late]);
    ck_assert_str_eq(digest(), before);
    ck_assert(no_message(b));
    test_redis_close(b);
}
END_TEST

/* ---- S5 */

/* rule: S5 */
START_TEST(fair_lock_and_mutex_hand_over_to_each_other)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    SAYS(acquire(A), "held");
    SAYS(try_acquire(FAIR_D), "busy");
    SAYS(acquire(FAIR_B), "queued");
    SAYS(acquire(C), "queued");
    SAYS(release(A), "released");
    assert_granted(FAIR_B, b);
    ck_assert_str_eq(field("mode"), "rlock:fair");
    SAYS(try_acquire(A2), "busy");
    SAYS(release(FAIR_B), "released");
    assert_granted(C, c);
    ck_assert_str_eq(field("mode"), "rlock:mutex");
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* ---- refresh */

START_TEST(refresh_grants_to_the_first_waiter_of_any_client)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    SAYS(acquire(FAIR_A), "held");
    SAYS(acquire(FAIR_B), "queued");
    SAYS(acquire(FAIR_C), "queued");
    SAYS(acquire(FAIR_D), "queued");
    expire();
    SAYS(refresh(FAIR_D), "queued");
    assert_granted(FAIR_B, b);
    ck_assert(no_message(c));
    expire();
    SAYS(cancel(FAIR_D), "removed"); /* a waiter that gives up hands over, too */
    assert_granted(FAIR_C, c);
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

#define THREE "1:1:f3000 2:2:f3000 7:7:f3000 "

/* Asserts that the answer names three ids of B, two of which are queued. */
static void assert_three_are_told(void)
{
    SAYS(acquire(FAIR_A), "held");
    SAYS(acquire(FAIR_B), "queued");
    SAYS(acquire(FAIR_B2), "queued");
    test_redis_do(redis, "CONFIG", "RESETSTAT");
    struct answer a = RUN(RLK_FAIR_REFRESH, UUID_B, "3000", "0", THREE);
    ck_assert_uint_eq(a.count, 3);
    ck_assert_str_eq(a.fate[0].what, "queued");
    ck_assert_str_eq(a.fate[1].what, "queued");
    ck_assert_str_eq(a.fate[2].what, "gone");
    ck_assert_int_gt(a.fate[0].ticket, 0);
    ck_assert_int_lt(a.fate[0].ticket, a.fate[1].ticket);
}

START_TEST(ids_of_one_client_are_looked_up_by_one_command)
{
    if (test_server_version() < 60200) {
        puts("skipped: ids_of_one_client_are_looked_up_by_one_command: no ZMSCORE");
        return;
    }
    assert_three_are_told();
    ck_assert_int_eq(test_redis_calls(redis, "zmscore"), 1);
    ck_assert_int_eq(test_redis_calls(redis, "zscore"), 0);
    ck_assert_int_eq(test_redis_calls(redis, "zadd"), 1); /* presence: once for all */
}
END_TEST

START_TEST(a_server_that_does_not_know_ZMSCORE_does_as_well)
{
    const redisReply *r = test_redis_try(redis, "ZMSCORE", QUEUE, "x");
    ck_assert_int_eq(r->type, REDIS_REPLY_ERROR);
    assert_three_are_told();
    ck_assert_int_eq(test_redis_calls(redis, "zscore"), 3);
    expire();
    struct answer a = RUN(RLK_FAIR_REFRESH, UUID_B, "3000", "0", THREE);
    ck_assert_str_eq(a.fate[0].what, "held");
    ck_assert_str_eq(a.fate[1].what, "queued");
    assert_ttls();
}
END_TEST

START_TEST(the_first_of_several_that_wait_in_one_client_is_held_without_a_message)
{
    struct test_redis *b = listener(UUID_B);
    assert_three_are_told();
    expire();
    struct answer a = RUN(RLK_FAIR_REFRESH, UUID_B, "3000", "0",
                          "7:7:f3000 2:2:f3000 1:1:f3000 "); /* in any order */
    ck_assert_str_eq(a.fate[0].what, "gone");
    ck_assert_str_eq(a.fate[1].what, "queued");
    ck_assert_str_eq(a.fate[2].what, "held");
    ck_assert_int_eq(a.flags, 1);
    ck_assert(is_held_by(FAIR_B));
    ck_assert(no_message(b));
    test_redis_close(b);
}
END_TEST

START_TEST(unnamed_waiter_is_granted_by_a_message)
{
    struct test_redis *b = listener(UUID_B);
    assert_three_are_told();
    expire();
    struct answer a = RUN(RLK_FAIR_REFRESH, UUID_B, "3000", "0", "2:2:f3000 ");
    ck_assert_str_eq(WHAT(a), "queued");
    assert_granted(FAIR_B, b);
    test_redis_close(b);
}
END_TEST

START_TEST(a_refresh_forgets_clients_that_are_gone)
{
    SAYS(acquire(FAIR_A), "held");
    SAYS(acquire(FAIR_B), "queued");
    make_present(UUID_C);
    test_redis_do(redis, "ZADD", PRESENT, "1000", UUID_A, "1001", UUID_D);
    SAYS(refresh(FAIR_D), "gone"); /* an id that does not wait removes no client */
    ck_assert_int_eq(test_redis_int(redis, "ZCARD", PRESENT), 4);
    SAYS(refresh(FAIR_B), "queued");
    ck_assert_int_eq(test_redis_int(redis, "ZCARD", PRESENT), 2);
    ck_assert_ptr_nonnull(test_redis_str(redis, "ZSCORE", PRESENT, UUID_B));
    ck_assert_ptr_nonnull(test_redis_str(redis, "ZSCORE", PRESENT, UUID_C));
}
END_TEST

/* ---- a server without ZMSCORE, as before version 6.2 */

static void start_old_server(void)
{
    const char *const without[] = { "--rename-command", "ZMSCORE", "", NULL };
    test_server_start(&server, test_server_version() < 60200 ? NULL : without);
}

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, byhand_start, byhand_stop);
    tcase_add_checked_fixture(tc, byhand_open, byhand_close);
    suite_add_tcase(suite, tc);
    return tc;
}

static void add_free(Suite *suite)
{
    const TTest *const twice[] = {
        listening_waiter_comes_first,
        dead_waiters_are_dropped_and_the_caller_takes_the_lock,
        unheard_waiters_do_not_lose_their_tickets_and_the_caller_takes_the_lock,
        first_listening_waiter_behind_dead_and_unheard_ones_comes_first,
        a_waiter_of_the_callers_own_client_comes_first,
        the_callers_own_request_needs_no_listener,
        the_first_of_the_queue_takes_a_free_lock_by_asking_again,
        a_waiter_of_the_mutex_comes_in_its_turn,
        waiter_of_an_unknown_type_is_skipped_and_does_not_lose_its_ticket,
        waiting_readers_and_markers_of_others_do_not_hinder,
        acquire_that_skips_waiters_draws_a_token,
        exactly_64_skipped_waiters_need_no_continuation,
        a_deaf_client_is_probed_once_however_many_tickets_it_has,
        no_client_is_probed_when_the_caller_is_first,
    };
    TCase *tc = add_case(suite, "free");
    for (size_t i = 0; i < sizeof(twice) / sizeof(twice[0]); i++)
        tcase_add_loop_test(tc, twice[i], 0, 2);
    tcase_add_test(tc, listening_waiter_is_alive_when_the_presence_key_is_lost);
}

static void add_others(Suite *suite)
{
    TCase *tc = add_case(suite, "T11");
    tcase_add_loop_test(tc, try_continues_behind_64_waiters_until_it_takes_the_lock, 0,
                        4);
    tcase_add_test(tc, continued_try_finds_the_first_live_waiter);
    tcase_add_loop_test(tc, waiter_behind_more_than_64_is_queued_and_found_by_refreshes,
                        0, 4);

    tc = add_case(suite, "again");
    tcase_add_test(tc, repeated_request_has_the_same_ticket);
    tcase_add_loop_test(tc, granted_lock_is_held_with_its_remaining_time_and_token, 0, 4);
    tcase_add_loop_test(tc, refused_or_late_request_hands_nothing_over, 0, 4);
    tcase_add_test(tc, fair_lock_and_mutex_hand_over_to_each_other);

    tc = add_case(suite, "refresh");
    tcase_add_test(tc, refresh_grants_to_the_first_waiter_of_any_client);
    tcase_add_test(tc, ids_of_one_client_are_looked_up_by_one_command);
    tcase_add_test(
        tc, the_first_of_several_that_wait_in_one_client_is_held_without_a_message);
    tcase_add_test(tc, unnamed_waiter_is_granted_by_a_message);
    tcase_add_test(tc, a_refresh_forgets_clients_that_are_gone);
}

int main(void)
{
    Suite *suite = suite_create("fair scripts");
    add_free(suite);
    add_others(suite);

    TCase *old = tcase_create("old server");
    tcase_add_unchecked_fixture(old, start_old_server, byhand_stop);
    tcase_add_checked_fixture(old, byhand_open, byhand_close);
    tcase_add_test(old, a_server_that_does_not_know_ZMSCORE_does_as_well);
    suite_add_tcase(suite, old);

    return test_run_suite(suite);
}
