/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=K2,K4,K15 */
/*
 * The scripts of the read-write lock, sent by hand: recalls of readers by the first
 * writer (rule K15), recalls of a writer that retains the lock (K2-K4, K16), and that
 * writer's tokens (H11).
 */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_A UUID_A ":1:1:r3000k"
#define KEEP_A2 UUID_A ":1:2:R3000k"
#define KEEP_B UUID_B ":1:1:r3000k"
#define WRITE_K UUID_A ":1:4:w3000k"
#define FENCED_K UUID_A ":1:4:W3000k"

enum { WRITERS = 1, READERS_WAIT = 2, WANTED = 32, TELLS = 64, LIMIT = 64 };

static int keepers(void)
{
    return (int)test_redis_int(redis, "ZCARD", KEEPERS);
}

static bool is_keeper(const char *id)
{
    return test_redis_do(redis, "ZSCORE", KEEPERS, id)->type == REDIS_REPLY_STRING;
}

static long long keeper_end(const char *id)
{
    return strtoll(test_redis_str(redis, "ZSCORE", KEEPERS, id), NULL, 10);
}

static bool is_told(struct test_redis *box, const char *id)
{
    char text[200];
    const char *said = message(box);
    snprintf(text, sizeof(text), "1 wanted %s n", id);
    return said && strcmp(said, text) == 0;
}

/* ---- which clients are listed */

/* rule: K15 */
START_TEST(client_that_requests_recalls_is_listed_until_its_hold_ends)
{
    struct answer a = acquire(KEEP_A);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq((int)a.flags, TELLS);
    ck_assert_int_eq(keepers(), 1);
    ck_assert(keeper_end(KEEP_A) >= end_of(KEEP_A) - 5 &&
              keeper_end(KEEP_A) <= end_of(KEEP_A) + 5);
    ck_assert_int_gt(test_redis_int(redis, "PTTL", KEEPERS), 30000);
    ck_assert_int_le(test_redis_int(redis, "PTTL", KEEPERS), 90000);
    a = renew(KEEP_A, "200000");
    ck_assert_int_eq((int)a.flags, TELLS);
    ck_assert(keeper_end(KEEP_A) >= end_of(KEEP_A) - 5);
    ck_assert_int_gt(test_redis_int(redis, "PTTL", KEEPERS), 200000);
    SAYS(acquire(KEEP_B), "held"); /* ends sooner, and does not shorten the key's TTL */
    ck_assert_int_gt(test_redis_int(redis, "PTTL", KEEPERS), 200000);
    ck_assert_int_eq(keepers(), 2);
    assert_ttls();
}
END_TEST

/* rule: K15 */
START_TEST(other_readers_are_not_listed)
{
    ck_assert_int_eq((int)acquire(READ_A).flags, 0);
    ck_assert_int_eq((int)acquire(READ_B).flags, 0);
    ck_assert_int_eq((int)renew(READ_A, "60000").flags, 0);
    ck_assert(!test_redis_exists(redis, KEEPERS));
}
END_TEST

/* rule: K15 */
START_TEST(reader_that_shares_a_listed_hold_prolongs_the_entry)
{
    SAYS(acquire(KEEP_A), "held");
    test_redis_do(redis, "ZADD", KEEPERS, "5", KEEP_A);
    struct answer a = share(READ_A2, KEEP_A);
    ck_assert_str_eq(WHAT(a), "shared");
    ck_assert_int_eq((int)a.flags, TELLS);
    ck_assert(keeper_end(KEEP_A) >= end_of(KEEP_A) - 5);
}
END_TEST

/* _i: the release of the last reader, of one of two, with a marker; a force; the
 * hand-over of an expired reading to a writer. */
/* rule: K15 */
START_TEST(entry_ends_with_the_hold)
{
    SAYS(acquire(KEEP_A), "held");
    SAYS(acquire(_i == 1 ? KEEP_B : READ_B), "held");
    if (_i == 0)
        SAYS(release(READ_B), "released");
    if (_i < 2)
        SAYS(release(KEEP_A), "released");
    else if (_i == 2)
        SAYS(release_marked(KEEP_A, "7000"), "released");
    else if (_i == 3)
        SAYS(force("", field("since")), "released");
    else {
        expire();
        SAYS(acquire(WRITE_B), "held");
    }
    ck_assert(!is_keeper(KEEP_A));
    ck_assert_int_eq(keepers(), _i == 1 ? 1 : 0);
    ck_assert_int_eq(test_redis_exists(redis, KEEPERS), _i == 1);
}
END_TEST

/* rule: K15 */
START_TEST(new_reading_begins_without_entries_of_the_last)
{
    SAYS(acquire(KEEP_A), "held");
    expire();
    SAYS(acquire(KEEP_B), "held");
    ck_assert(!is_keeper(KEEP_A));
    ck_assert_int_eq(keepers(), 1);
}
END_TEST

/* rule: K15 */
START_TEST(dead_clients_are_removed_in_time)
{
    SAYS(acquire(KEEP_A), "held");
    test_redis_do(redis, "ZADD", KEEPERS, "5", KEEP_B);
    SAYS(renew(KEEP_A, "60000"), "held");
    ck_assert_int_eq(keepers(), 1);
}
END_TEST

/* ---- which clients are recalled, and when */

/* rule: K15 */
START_TEST(first_writer_recalls_each_client_once)
{
    struct test_redis *a = listener(UUID_A), *b = listener(UUID_B);
    SAYS(acquire(KEEP_A), "held");
    SAYS(acquire(KEEP_A2), "held");
    SAYS(acquire(KEEP_B), "held");
    SAYS(acquire(WRITE_C), "queued");
    ck_assert(is_told(a, KEEP_A) && is_told(b, KEEP_B));
    ck_assert(!test_redis_exists(redis, KEEPERS));
    SAYS(acquire(WRITE_B), "queued"); /* the second writer */
    SAYS(acquire(WRITE_C), "queued"); /* a repeated request */
    ck_assert(no_message(a) && no_message(b));
    test_redis_close(a);
    test_redis_close(b);
}
END_TEST

/* rule: K15 */
START_TEST(writer_behind_a_waiter_of_another_type_recalls_each_client)
{
    struct test_redis *a = listener(UUID_A);
    SAYS(acquire(KEEP_A), "held");
    test_redis_do(redis, "ZADD", QUEUE, "1", UUID_C ":1:1:m3000");
    SAYS(acquire(WRITE_B), "queued");
    ck_assert(is_told(a, KEEP_A));
    test_redis_close(a);
}
END_TEST

/* rule: K15 */
START_TEST(no_client_is_listed_while_a_writer_waits)
{
    SAYS(acquire(KEEP_A), "held");
    /* this writer does not listen, so that readers may join */
    SAYS(acquire(WRITE_C), "queued");
    struct answer a = acquire(KEEP_B);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq((int)a.flags, WRITERS);
    ck_assert_int_eq((int)renew(KEEP_A, "60000").flags, WRITERS);
    ck_assert(!test_redis_exists(redis, KEEPERS));
    SAYS(cancel(WRITE_C), "removed");
    ck_assert_int_eq((int)renew(KEEP_A, "60000").flags, TELLS);
    ck_assert_int_eq(keepers(), 1);
}
END_TEST

/* rule: K15 */
START_TEST(readers_cause_no_message)
{
    struct test_redis *a = listener(UUID_A), *c = listener(UUID_C);
    SAYS(acquire(KEEP_A), "held");
    SAYS(acquire(READ_B), "held");
    SAYS(try_acquire(READ_B), "held");
    SAYS(refresh(READ_B), "held");
    ck_assert(no_message(a));
    SAYS(acquire(WRITE_C), "queued");
    ck_assert(is_told(a, KEEP_A));
    SAYS(acquire(UUID_B ":2:2:r3000"), "queued"); /* behind the writer */
    SAYS(try_acquire(UUID_B ":2:3:r3000"), "busy");
    ck_assert(no_message(a));
    test_redis_close(a);
    test_redis_close(c);
}
END_TEST

/* rule: K15 */
START_TEST(trywrlock_and_waitfree_recall_each_client)
{
    struct test_redis *a = listener(UUID_A);
    SAYS(acquire(KEEP_A), "held");
    SAYS(try_acquire(WRITE_C), "busy");
    ck_assert(is_told(a, KEEP_A));
    SAYS(try_acquire(WRITE_C), "busy");
    ck_assert(no_message(a));
    /* the writer does not wait */
    ck_assert_int_eq((int)renew(KEEP_A, "60000").flags, TELLS);
    RUN(RLK_RWLOCK_REFRESH, UUID_C, "3000", prefer, "5", "0", "");
    ck_assert(no_message(a)); /* this continues a hand-over */
    RUN(RLK_RWLOCK_REFRESH, UUID_C, "3000", prefer, "0", "0", "");
    ck_assert(is_told(a, KEEP_A));
    test_redis_close(a);
}
END_TEST

/* rule: K15 */
START_TEST(dead_clients_are_not_recalled)
{
    struct test_redis *a = listener(UUID_A), *b = listener(UUID_B);
    SAYS(acquire(KEEP_A), "held");
    SAYS(acquire(KEEP_B), "held");
    test_redis_do(redis, "ZADD", KEEPERS, "5", KEEP_A);
    SAYS(acquire(WRITE_C), "queued");
    ck_assert(is_told(b, KEEP_B));
    ck_assert(no_message(a));
    test_redis_close(a);
    test_redis_close(b);
}
END_TEST

/* The other clients learn of the writer when they ask. */
/* rule: K15 */
START_TEST(limited_number_of_clients_is_recalled)
{
    char id[64];
    SAYS(acquire(READ_A), "held");
    for (int i = 0; i < LIMIT + 6; i++) {
        snprintf(id, sizeof(id), "%08d-0000-4000-8000-00000000000a:1:1:r3000k", i);
        SAYS(acquire(id), "held");
    }
    SAYS(acquire(WRITE_C), "queued");
    ck_assert_int_eq(keepers(), 6);
    ck_assert_int_eq((int)renew(id, "60000").flags, WRITERS);
}
END_TEST

/* rule: K10 */
START_TEST(redisson_subscriber_counts_as_contention)
{
    struct test_redis *waiter = channel_listener(CHANNEL);
    ck_assert_int_eq((int)acquire(KEEP_A).flags, WANTED);
    ck_assert_int_eq((int)renew(KEEP_A, "60000").flags, WANTED);
    ck_assert_int_eq((int)acquire(READ_B).flags, 0);
    ck_assert(!test_redis_exists(redis, KEEPERS));
    test_redis_close(waiter);
}
END_TEST

/* A member that no library wrote gets no message. */
/* rule: K15 */
START_TEST(foreign_member_of_the_list_does_no_harm)
{
    SAYS(acquire(KEEP_A), "held");
    test_redis_do(redis, "ZADD", KEEPERS, "9999999999999", "x");
    test_redis_do(redis, "ZADD", KEEPERS, "9999999999999", ":::");
    SAYS(acquire(WRITE_C), "queued");
    ck_assert(!test_redis_exists(redis, KEEPERS));
}
END_TEST

/* _i: the call. */
/* rule: K15 */
START_TEST(key_of_another_type_is_an_error_and_changes_nothing)
{
    char before[64];
    SAYS(acquire(KEEP_A), "held");
    test_redis_do(redis, "DEL", KEEPERS);
    test_redis_do(redis, "SET", KEEPERS, "x", "PX", "900000");
    strcpy(before, digest());
    struct answer a = _i == 0   ? acquire(KEEP_B)
                      : _i == 1 ? acquire(WRITE_C)
                      : _i == 2 ? try_acquire(WRITE_C)
                      : _i == 3 ? renew(KEEP_A, "60000")
                      : _i == 4 ? release(KEEP_A)
                      : _i == 5 ? release_marked(KEEP_A, "7000")
                      : _i == 6 ? force("", field("since"))
                                : cancel(KEEP_B);
    ck_assert_msg(strstr(a.error, "WRONGTYPE") != NULL, "%s", WHAT(a));
    ck_assert_str_eq(digest(), before);
}
END_TEST

/* ---- a writer that retains the lock */

/* rule: K16 */
START_TEST(writer_is_recalled_once_by_any_newcomer)
{
    struct test_redis *a = listener(UUID_A);
    struct answer taken = acquire(WRITE_K);
    ck_assert_str_eq(WHAT(taken), "held");
    ck_assert_int_eq((int)taken.flags, TELLS);
    ck_assert_str_eq(field(WRITE_K), "2");
    ck_assert_int_eq((int)acquire(WRITE_K).flags, TELLS); /* a repeated request */
    ck_assert_int_eq((int)cancel(WRITE_K).flags, TELLS);
    ck_assert_int_eq((int)refresh(WRITE_K).flags, TELLS);
    ck_assert_int_eq((int)renew(WRITE_K, "60000").flags, TELLS);
    switch (_i) {
    case 0:
        SAYS(acquire(READ_B), "queued"); /* a reader is a newcomer, too */
        break;
    case 1:
        SAYS(acquire(WRITE_B), "queued");
        break;
    case 2:
        SAYS(try_acquire(READ_B), "busy");
        break;
    default:
        SAYS(try_acquire(WRITE_B), "busy");
    }
    ck_assert(is_told(a, WRITE_K));
    ck_assert_str_eq(field(WRITE_K), "3");
    SAYS(try_acquire(WRITE_C), "busy");
    ck_assert(no_message(a));
    int flags = (int)renew(WRITE_K, "60000").flags;
    ck_assert_int_eq(flags, _i == 0 ? READERS_WAIT : _i == 1 ? WRITERS : WANTED);
    ck_assert_int_eq((int)acquire(WRITE_K).flags, flags);
    ck_assert_int_eq((int)refresh(WRITE_K).flags, flags);
    test_redis_close(a);
}
END_TEST

/* rule: K4 */
START_TEST(grant_says_whether_others_wait)
{
    struct test_redis *a = listener(UUID_A);
    SAYS(acquire(READ_C), "held");
    SAYS(acquire(WRITE_K), "queued");
    if (_i)
        SAYS(acquire(READ_B), "queued");
    SAYS(release(READ_C), "released");
    ck_assert_str_eq(field(WRITE_K), _i ? "3" : "2");
    int flags = 0;
    ck_assert_int_eq(sscanf(message(a), "1 grant %d", &flags), 1);
    ck_assert_int_eq(flags, _i ? READERS_WAIT : TELLS);
    test_redis_close(a);
}
END_TEST

/* rule: K2 */
START_TEST(renewal_may_request_the_recall_later)
{
    SAYS(acquire(WRITE_A), "held");
    ck_assert_str_eq(field(WRITE_A), "1");
    ck_assert_int_eq((int)renew(WRITE_A, "60000").flags, 0);
    ck_assert_int_eq((int)renew(WRITE_A, "60000t").flags, TELLS);
    ck_assert_str_eq(field(WRITE_A), "2");
    SAYS(try_acquire(WRITE_B), "busy");
    ck_assert_int_eq((int)renew(WRITE_A, "60000t").flags, WANTED);
    ck_assert_str_eq(field(WRITE_A), "3");
}
END_TEST

static unsigned long long number(const char *token)
{
    return strtoull(token, NULL, 10);
}

/* rule: H11 */
START_TEST(writer_that_asks_is_given_a_block_of_tokens)
{
    struct answer a = acquire_fenced(FENCED_K);
    unsigned long long first = number(a.fate[0].token);
    ck_assert_str_eq(renew(FENCED_K, "60000").fate[0].token, a.fate[0].token);
    ck_assert_uint_eq(number(test_redis_str(redis, "GET", TOKEN)), first);
    a = renew(FENCED_K, "60000m");
    ck_assert_uint_gt(number(a.fate[0].token), first);
    ck_assert_int_ge(a.fate[0].ticket, 1);
    unsigned long long last =
        number(a.fate[0].token) + (unsigned long long)a.fate[0].ticket - 1;
    ck_assert_uint_eq(number(test_redis_str(redis, "GET", TOKEN)), last);
    ck_assert_uint_eq(number(field("token")), first);
    SAYS(release(FENCED_K), "released");
    ck_assert_uint_gt(number(acquire_fenced(UUID_B ":1:6:R3000").fate[0].token), last);
}
END_TEST

/* Readers that join the reading get no smaller token than the sections before. */
/* rule: H11 */
START_TEST(downgrade_does_not_change_the_token_of_its_section)
{
    acquire_fenced(FENCED_K);
    struct answer a = renew(FENCED_K, "60000m");
    char token[32];
    snprintf(token, sizeof(token), "%llu",
             number(a.fate[0].token) + (unsigned long long)a.fate[0].ticket / 2);
    a = RUN(RLK_RWLOCK_DOWNGRADE, FENCED_K, "30000", prefer, token);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_str_eq(a.fate[0].token, token);
    ck_assert_str_eq(acquire_fenced(UUID_B ":1:6:R3000").fate[0].token, token);
    a = RUN(RLK_RWLOCK_DOWNGRADE, FENCED_K, "30000", prefer, "5"); /* a late request */
    ck_assert_str_eq(a.fate[0].token, token);
}
END_TEST

/* A downgrade may name a token that was never drawn, because the writer got it by a
 * forged message. The hold keeps its own. */
/* rule: H11 */
START_TEST(downgraded_hold_draws_no_other_token)
{
    static const char *const wrong[] = { "1", "9223372036854775807", "x", "-5", "" };
    struct answer a = acquire_fenced(FENCED_K);
    char first[32];
    snprintf(first, sizeof(first), "%s", a.fate[0].token);
    a = RUN(RLK_RWLOCK_DOWNGRADE, FENCED_K, "30000", prefer, wrong[_i]);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_str_eq(a.fate[0].token, first);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rwlock: recall");
    TCase *tc = tcase_create("recall");
    tcase_add_unchecked_fixture(tc, byhand_start, byhand_stop);
    tcase_add_checked_fixture(tc, byhand_open, byhand_close);
    tcase_add_test(tc, client_that_requests_recalls_is_listed_until_its_hold_ends);
    tcase_add_test(tc, other_readers_are_not_listed);
    tcase_add_test(tc, reader_that_shares_a_listed_hold_prolongs_the_entry);
    tcase_add_loop_test(tc, entry_ends_with_the_hold, 0, 5);
    tcase_add_test(tc, new_reading_begins_without_entries_of_the_last);
    tcase_add_test(tc, dead_clients_are_removed_in_time);
    tcase_add_test(tc, first_writer_recalls_each_client_once);
    tcase_add_test(tc, writer_behind_a_waiter_of_another_type_recalls_each_client);
    tcase_add_test(tc, no_client_is_listed_while_a_writer_waits);
    tcase_add_test(tc, readers_cause_no_message);
    tcase_add_test(tc, trywrlock_and_waitfree_recall_each_client);
    tcase_add_test(tc, dead_clients_are_not_recalled);
    tcase_add_test(tc, limited_number_of_clients_is_recalled);
    tcase_add_test(tc, redisson_subscriber_counts_as_contention);
    tcase_add_test(tc, foreign_member_of_the_list_does_no_harm);
    tcase_add_loop_test(tc, key_of_another_type_is_an_error_and_changes_nothing, 0, 8);
    suite_add_tcase(suite, tc);
    tc = tcase_create("writer");
    tcase_add_unchecked_fixture(tc, byhand_start, byhand_stop);
    tcase_add_checked_fixture(tc, byhand_open, byhand_close);
    tcase_add_loop_test(tc, writer_is_recalled_once_by_any_newcomer, 0, 4);
    tcase_add_loop_test(tc, grant_says_whether_others_wait, 0, 2);
    tcase_add_test(tc, renewal_may_request_the_recall_later);
    tcase_add_test(tc, writer_that_asks_is_given_a_block_of_tokens);
    tcase_add_test(tc, downgrade_does_not_change_the_token_of_its_section);
    tcase_add_loop_test(tc, downgraded_hold_draws_no_other_token, 0, 5);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
