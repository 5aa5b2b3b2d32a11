/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=W16,W17,W18,W26 */
/*
 * The scripts of the read-write lock, sent by hand: grants, downgrades, shared holds and
 * tokens.
 */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_B2 UUID_B ":2:2:r3000"
#define FENCED_READ_A UUID_A ":1:6:R3000"
#define FENCED_READ_B UUID_B ":1:6:R3000"
#define FENCED_WRITE_A UUID_A ":1:7:W3000"

enum { LEASE_MS = 30000, GRANT_MS = 3000, SLACK_MS = 5000 };

static struct answer ask_read(const char *id, const char *lease, const char *shared)
{
    char uuid[40];
    snprintf(uuid, sizeof(uuid), "%.36s", id);
    return RUN(RLK_RWLOCK_READ, id, uuid, lease, "3000", NEVER, "0", "0", prefer, "0",
               "0", shared);
}

static struct answer downgrade_for(const char *id, const char *lease)
{
    return RUN(RLK_RWLOCK_DOWNGRADE, id, lease, prefer);
}

/* ---- grants */

/* rule: W16 */
START_TEST(one_message_names_all_ids_of_a_client_with_their_tickets)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    char wanted[256];
    SAYS(acquire(WRITE_A), "held");
    long long t1 = acquire(READ_B).fate[0].ticket, t2 = acquire(READ_C).fate[0].ticket,
              t3 = acquire(READ_B2).fate[0].ticket;
    SAYS(acquire(WRITE_C), "queued");
    SAYS(release(WRITE_A), "released");
    snprintf(wanted, sizeof(wanted), "1 grant 1 0 0 2 %s %lld %s %lld n", READ_B, t1,
             READ_B2, t3);
    ck_assert_str_eq(message(b), wanted);
    snprintf(wanted, sizeof(wanted), "1 grant 1 0 0 1 %s %lld n", READ_C, t2);
    ck_assert_str_eq(message(c), wanted);
    ck_assert(no_message(b) && no_message(c));
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* rule: W16 */
START_TEST(id_named_by_the_request_is_granted_by_its_reply_alone)
{
    struct test_redis *b = listener(UUID_B);
    char wanted[128];
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_B), "queued");
    long long ticket = acquire(READ_B2).fate[0].ticket;
    expire();
    struct answer a = refresh(READ_B);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_gt(a.fate[0].remaining, 0);
    ck_assert_int_le(a.fate[0].remaining, GRANT_MS);
    snprintf(wanted, sizeof(wanted), "1 grant 0 0 0 1 %s %lld n", READ_B2, ticket);
    ck_assert_str_eq(message(b), wanted);
    ck_assert(no_message(b));
    test_redis_close(b);
}
END_TEST

/* rule: W16 */
START_TEST(refresh_reports_the_state_of_each_id)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(WRITE_A), "held");
    long long t1 = acquire(READ_B).fate[0].ticket, t2 = acquire(WRITE_B).fate[0].ticket;
    for (int over = 0; over < 2; over++) {
        struct answer a = RUN(RLK_RWLOCK_REFRESH, UUID_B, "3000", prefer, "0", "0",
                              "1:1:r3000 1:4:w3000 2:2:r3000 ");
        ck_assert_uint_eq(a.count, 3);
        ck_assert_str_eq(a.fate[0].what, over ? "held" : "queued");
        ck_assert_int_eq(a.fate[0].ticket, over ? 0 : t1);
        ck_assert_str_eq(a.fate[1].what, "queued");
        ck_assert_int_eq(a.fate[1].ticket, t2);
        ck_assert_str_eq(a.fate[2].what, "gone");
        expire();
    }
    ck_assert(no_message(b));
    test_redis_close(b);
}
END_TEST

/* _i: whether another client waits to read. */
/* rule: W17 */
START_TEST(unheard_client_gets_its_tickets_back)
{
    struct test_redis *c = _i ? listener(UUID_C) : NULL, *admin = redis;
    char before[256], wanted[300];
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_B), "queued");
    SAYS(acquire(READ_B2), "queued");
    snprintf(before, sizeof(before), "%s", rqueue_text());
    if (_i)
        SAYS(acquire(READ_C), "queued");
    long long last =
        test_redis_int(redis, "EXISTS", RQUEUE)
            ? atoll(test_redis_do(redis, "ZREVRANGE", RQUEUE, "0", "0", "WITHSCORES")
                        ->element[1]
                        ->str)
            : 0;
    redis = limited_user();
    SAYS(release(WRITE_A), "released");
    test_redis_close(redis);
    redis = admin;
    if (_i) {
        ck_assert(reads_now(READ_C));
        ck_assert_int_eq(test_redis_int(redis, "ZCARD", READERS), 1);
        assert_fit(READ_C);
        ck_assert_ptr_nonnull(message(c));
    } else {
        ck_assert(!test_redis_exists(redis, "n"));
        ck_assert(!test_redis_exists(redis, READERS));
    }
    snprintf(wanted, sizeof(wanted), "%s ~ %lld", before, last);
    /* with a bar: the readers may still come in */
    ck_assert_str_eq(rqueue_text(), wanted);
    assert_ttls();
    test_redis_close(c);
}
END_TEST

/* ---- downgrade */

/* rule: W18 */
START_TEST(downgrade_changes_neither_id_token_nor_end)
{
    static const char *const leases[] = { "0", "10000", "60000" };
    struct answer first = acquire_fenced(FENCED_WRITE_A);
    ck_assert_str_eq(WHAT(first), "held");
    struct answer a = downgrade_for(FENCED_WRITE_A, leases[_i]);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_str_eq(a.fate[0].token, first.fate[0].token);
    ck_assert_str_eq(field("token"), first.fate[0].token);
    long long least = _i == 2 ? 60000 : LEASE_MS;
    ck_assert_int_gt(a.fate[0].remaining, least - test_ms(SLACK_MS));
    ck_assert_int_le(a.fate[0].remaining, least);
    ck_assert_str_eq(field(FENCED_WRITE_A), "");
    ck_assert(reads_now(FENCED_WRITE_A));
    assert_fit(FENCED_WRITE_A);
}
END_TEST

/* rule: W18 */
START_TEST(downgrade_may_be_repeated)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(WRITE_A), "held");
    SAYS(downgrade(WRITE_A), "held");
    SAYS(acquire(READ_C), "held");
    SAYS(acquire(WRITE_B), "queued");
    char before[64];
    snprintf(before, sizeof(before), "%s", digest());
    struct answer a = downgrade_for(WRITE_A, "90000");
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_gt(a.fate[0].remaining, 0);
    ck_assert_int_le(a.fate[0].remaining, LEASE_MS);
    ck_assert_str_eq(digest(), before);
    SAYS(release(WRITE_A), "released");
    SAYS(downgrade(WRITE_A), "gone");
    ck_assert(reads_now(READ_C));
    SAYS(release(READ_C), "released");
    ck_assert(is_held_by(WRITE_B));
    SAYS(downgrade(WRITE_A), "gone");
    ck_assert(is_held_by(WRITE_B));
    test_redis_close(b);
}
END_TEST

/* _i: whether a downgrade came before. */
/* rule: W19 */
START_TEST(scripts_find_an_id_in_either_mode)
{
    SAYS(acquire(WRITE_A), "held");
    if (_i)
        SAYS(downgrade(WRITE_A), "held");
    struct answer answers[] = { acquire(WRITE_A), renew(WRITE_A, "50000"),
                                refresh(WRITE_A), cancel(WRITE_A) };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        ck_assert_str_eq(WHAT(answers[i]), i == 3 ? "yours" : "held");
        ck_assert_int_gt(answers[i].fate[0].remaining,
                         (i ? 50000 : LEASE_MS) - test_ms(SLACK_MS));
    }
    ck_assert_str_eq(field("mode"), _i ? "rlock:read" : "rlock:write");
    SAYS(release(WRITE_A), "released");
    ck_assert(!test_redis_exists(redis, "n"));
    ck_assert(!test_redis_exists(redis, READERS));
    SAYS(downgrade(WRITE_A), "gone"); /* a late request */
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

/* ---- sharing */

/* rule: W21 */
START_TEST(sharing_reader_has_no_end_of_its_own)
{
    SAYS(ask_read(READ_A, "10000", ""), "held");
    struct answer a = share(READ_A2, READ_A);
    ck_assert_str_eq(WHAT(a), "shared");
    ck_assert_int_eq(a.fate[0].remaining, LEASE_MS);
    ck_assert_int_eq(end_of(READ_A2), -1);
    ck_assert_int_gt(end_of(READ_A), server_ms() + 10000);
    assert_fit(READ_A);
    /* the answer is lost: the id is cancelled, and blocks no other */
    SAYS(cancel(READ_A2), "removed");
    SAYS(share(READ_A2, READ_A), "refused");
    ck_assert_int_eq(test_redis_int(redis, "ZCARD", READERS), 1);
    SAYS(release(READ_A), "released");
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

/* rule: W21 */
START_TEST(sharing_reader_queues_behind_a_writer)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(READ_A), "held");
    long long end = end_of(READ_A);
    SAYS(acquire(WRITE_B), "queued");
    SAYS(share(READ_A2, READ_A), "queued");
    ck_assert_int_eq(end_of(READ_A), end);
    prefer = "0";
    SAYS(share(READ_A2, READ_A), "queued"); /* a queued request stays queued */
    SAYS(share(UUID_A ":3:3:r3000", READ_A), "shared");
    prefer = "16";
    SAYS(release(READ_A), "released");
    ck_assert(is_held_by(WRITE_B));
    test_redis_close(b);
}
END_TEST

/* rule: W21 */
START_TEST(lock_that_is_not_held_is_not_shared)
{
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(READ_B), "held");
    if (_i == 0) {
        /* the end has passed, but the entry is there: */
        set_end(READ_A, server_ms() - 1);
        for (int i = 0; i < 20; i++) { /* others are pruned before it */
            char dead[64];
            snprintf(dead, sizeof(dead), UUID_C ":%d:9:r3000", i);
            set_end(dead, 1000);
        }
    } else if (_i == 1) {
        SAYS(release(READ_A), "released");
    } else {
        SAYS(release(READ_A), "released"); /* of an earlier reading */
        SAYS(release(READ_B), "released");
        SAYS(acquire(READ_B), "held");
    }
    SAYS(share(READ_A2, READ_A), "held");
    ck_assert(reads_now(READ_A2));
    ck_assert(!reads_now(READ_A));
    if (_i) { /* the last reader frees the lock, whatever was requested before */
        SAYS(release(READ_B), "released");
        SAYS(release(READ_A2), "released");
        SAYS(share(READ_A2, READ_A), "held"); /* the lock is free: a new reading begins */
        ck_assert_int_eq(test_redis_int(redis, "ZCARD", READERS), 1);
    }
}
END_TEST

/* ---- tokens */

static bool later(const char *one, const char *other)
{
    return strlen(one) == strlen(other) ? strcmp(one, other) > 0
                                        : strlen(one) > strlen(other);
}

/* rule: W26 */
START_TEST(readers_of_one_reading_share_a_token_and_writers_have_greater_ones)
{
    char last[32] = "1";
    for (int i = 0; i < 3; i++) {
        struct answer a = acquire_fenced(FENCED_READ_A),
                      b = acquire_fenced(FENCED_READ_B);
        ck_assert_msg(later(a.fate[0].token, last), "%s, %s", a.fate[0].token, last);
        ck_assert_str_eq(a.fate[0].token, b.fate[0].token);
        ck_assert_str_eq(renew(FENCED_READ_B, "40000").fate[0].token, a.fate[0].token);
        SAYS(release(FENCED_READ_A), "released");
        SAYS(release(FENCED_READ_B), "released");
        struct answer w = acquire_fenced(FENCED_WRITE_A);
        ck_assert_msg(later(w.fate[0].token, a.fate[0].token), "%s, %s", w.fate[0].token,
                      a.fate[0].token);
        SAYS(release(FENCED_WRITE_A), "released");
        snprintf(last, sizeof(last), "%s", w.fate[0].token);
    }
}
END_TEST

/* rule: W26 */
START_TEST(granted_readers_learn_the_token_that_they_share)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    char token[32];
    struct answer w = acquire_fenced(FENCED_WRITE_A);
    SAYS(acquire_fenced(FENCED_READ_B), "queued");
    SAYS(acquire(READ_C), "queued");
    SAYS(release(FENCED_WRITE_A), "released");
    snprintf(token, sizeof(token), " %s 0 1 ", field("token"));
    ck_assert(later(field("token"), w.fate[0].token));
    ck_assert_ptr_nonnull(strstr(message(b), token));
    ck_assert_ptr_nonnull(message(c));
    ck_assert_str_eq(field("token"), test_redis_str(redis, "GET", TOKEN));
    /* the next writer's token is greater than the readers' */
    SAYS(acquire_fenced(FENCED_WRITE_A), "queued");
    struct test_redis *a = listener(UUID_A);
    snprintf(token, sizeof(token), "%s", field("token"));
    SAYS(release(FENCED_READ_B), "released");
    SAYS(release(READ_C), "released");
    ck_assert(is_held_by(FENCED_WRITE_A));
    ck_assert(later(field("token"), token));
    ck_assert_ptr_nonnull(strstr(message(a), field("token")));
    test_redis_close(a);
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* _i 0: the reader joins by its own request; 1: it is let in. */
/* rule: W26 */
START_TEST(first_joining_reader_with_fencing_draws_the_token)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    SAYS(acquire(READ_A), "held");
    ck_assert_str_eq(field("token"), "");
    if (_i == 0) {
        struct answer a = acquire_fenced(FENCED_READ_B);
        ck_assert_str_eq(WHAT(a), "held");
        ck_assert_str_eq(a.fate[0].token, field("token"));
    } else {
        SAYS(acquire(WRITE_C), "queued");
        SAYS(acquire_fenced(FENCED_READ_B), "queued");
        SAYS(cancel(WRITE_C), "removed");
        ck_assert_ptr_nonnull(strstr(message(b), field("token")));
    }
    ck_assert(reads_now(FENCED_READ_B));
    ck_assert_uint_eq(strlen(field("token")), 16);
    ck_assert_str_eq(acquire_fenced(FENCED_READ_A).fate[0].token, field("token"));
    ck_assert_str_eq(field("token"), test_redis_str(redis, "GET", TOKEN));
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* rule: W26 */
START_TEST(readers_that_join_a_downgrade_have_its_token)
{
    struct answer w = acquire_fenced(FENCED_WRITE_A);
    SAYS(downgrade(FENCED_WRITE_A), "held");
    ck_assert_str_eq(acquire_fenced(FENCED_READ_B).fate[0].token, w.fate[0].token);
    SAYS(release(FENCED_WRITE_A), "released");
    ck_assert_str_eq(renew(FENCED_READ_B, "40000").fate[0].token, w.fate[0].token);
    SAYS(release(FENCED_READ_B), "released");
    /* a later reading has its own token */
    ck_assert(later(acquire_fenced(FENCED_READ_B).fate[0].token, w.fate[0].token));
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

static void add_grants(Suite *suite)
{
    TCase *tc = add_case(suite, "grants");
    tcase_add_test(tc, one_message_names_all_ids_of_a_client_with_their_tickets);
    tcase_add_test(tc, id_named_by_the_request_is_granted_by_its_reply_alone);
    tcase_add_test(tc, refresh_reports_the_state_of_each_id);
    tcase_add_loop_test(tc, unheard_client_gets_its_tickets_back, 0, 2);

    tc = add_case(suite, "downgrade and sharing");
    tcase_add_loop_test(tc, downgrade_changes_neither_id_token_nor_end, 0, 3);
    tcase_add_test(tc, downgrade_may_be_repeated);
    tcase_add_loop_test(tc, scripts_find_an_id_in_either_mode, 0, 2);
    tcase_add_test(tc, sharing_reader_has_no_end_of_its_own);
    tcase_add_test(tc, sharing_reader_queues_behind_a_writer);
    tcase_add_loop_test(tc, lock_that_is_not_held_is_not_shared, 0, 3);

    tc = add_case(suite, "tokens");
    tcase_add_test(tc,
                   readers_of_one_reading_share_a_token_and_writers_have_greater_ones);
    tcase_add_test(tc, granted_readers_learn_the_token_that_they_share);
    tcase_add_loop_test(tc, first_joining_reader_with_fencing_draws_the_token, 0, 2);
    tcase_add_test(tc, readers_that_join_a_downgrade_have_its_token);
}

int main(void)
{
    Suite *suite = suite_create("read-write grants");
    add_grants(suite);
    return test_run_suite(suite);
}
