/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=W1,W2,W3,W4,W5,W6,W7,W8,W15 */
/*
 * The scripts of the read-write lock, sent by hand: which lease ends when, what belongs
 * to a reading, and dead readers. The order of readers and writers is in
 * test_rwlock_phases.c. Grants, downgrades, shared holds and tokens are in
 * test_rwlock_grants.c. Keys of other types, full memory and other kinds of locks on the
 * name are in test_rwlock_keys.c. Rule W13 is asserted after each script by byhand.c.
 */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_B2 UUID_B ":2:2:r3000"

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

static long long ttl(const char *key)
{
    return test_redis_int(redis, "PTTL", key);
}

/* ---- ends */

/* rule: W1 */
START_TEST(reply_gives_a_reader_its_own_end_and_that_of_the_lock)
{
    SAYS(ask_read(READ_A, "20000", ""), "held");
    SAYS(ask_read(READ_B, "60000", ""), "held");
    struct answer answers[] = { ask_read(READ_A, "10000", ""), renew(READ_A, "10000"),
                                refresh(READ_A), cancel(READ_A),
                                downgrade_for(READ_A, "10000") };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        const struct answer *a = &answers[i];
        ck_assert_str_eq(WHAT(*a), i == 3 ? "yours" : "held");
        ck_assert_int_le(a->fate[0].remaining, 20000);
        ck_assert_int_gt(a->fate[0].remaining, 20000 - test_ms(SLACK_MS));
        ck_assert_int_gt(a->left, 60000 - test_ms(SLACK_MS));
    }
}
END_TEST

/* rule: W2 */
START_TEST(no_script_moves_the_end_of_another_client)
{
    SAYS(acquire(READ_A), "held");
    long long end = end_of(READ_A);
    SAYS(acquire(READ_B), "held");
    SAYS(ask_read(READ_C, "500", ""), "held");
    SAYS(renew(READ_B, "90000"), "held");
    SAYS(share(READ_A2, READ_B), "shared");
    SAYS(cancel(READ_A2), "removed");
    SAYS(refresh(READ_B), "held");
    SAYS(release(READ_C), "released");
    ck_assert_int_eq(end_of(READ_A), end);
    set_end(READ_B, server_ms() - 1000); /* B dies */
    SAYS(acquire(READ_C), "held");
    SAYS(release(READ_C), "released");
    ck_assert_int_eq(end_of(READ_A), end);
    assert_fit(READ_A);
}
END_TEST

/* rule: W3 */
START_TEST(end_of_the_lock_follows_the_last_reader_up_and_down)
{
    struct test_redis *c = listener(UUID_C);
    SAYS(ask_read(READ_A, "20000", ""), "held");
    assert_fit(READ_A);
    SAYS(ask_read(READ_B, "40000", ""), "held");
    assert_fit(READ_B);
    SAYS(ask_read(READ_C, "10000", ""), "held"); /* an earlier end changes nothing */
    assert_fit(READ_B);
    SAYS(ask_read(READ_B2, "60000", READ_A), "shared");
    assert_fit(READ_A);
    SAYS(renew(READ_B, "80000"), "held");
    assert_fit(READ_B);
    SAYS(release(READ_B), "released");
    assert_fit(READ_A);
    SAYS(release(READ_A), "released");
    assert_fit(READ_C);
    ck_assert_int_le(ttl("n"), 10000);
    SAYS(acquire(WRITE_B), "queued");
    SAYS(acquire(READ_A), "held"); /* the waiting writer does not listen */
    SAYS(release(READ_A), "released");
    assert_fit(READ_C);
    test_redis_close(c);
}
END_TEST

/* rule: W3 */
START_TEST(granted_reader_shortens_no_reading)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_B), "queued");
    SAYS(downgrade(WRITE_A), "held");
    ck_assert(reads_now(READ_B));
    ck_assert_int_le(end_of(READ_B), server_ms() + GRANT_MS);
    assert_fit(WRITE_A);
    ck_assert_int_gt(ttl("n"), GRANT_MS);
    SAYS(release(WRITE_A), "released"); /* the reading ends with the remaining readers */
    assert_fit(READ_B);
    ck_assert_int_le(ttl("n"), GRANT_MS);
    test_redis_close(b);
}
END_TEST

/* rule: W3 */
START_TEST(reading_opened_for_others_ends_with_their_leases)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_B), "queued");
    struct answer a = release(WRITE_A);
    ck_assert_int_gt(a.left, 0);
    ck_assert_int_le(a.left, GRANT_MS);
    assert_fit(READ_B);
    test_redis_close(b);
}
END_TEST

/* _i: which request comes late. */
/* rule: W4 */
START_TEST(expired_end_is_not_revived)
{
    struct test_redis *c = listener(UUID_C);
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(READ_B), "held");
    SAYS(acquire(WRITE_C), "queued");
    long long passed = server_ms() - 1;
    set_end(READ_A, passed);
    if (_i == 0)
        SAYS(renew(READ_A, "60000"), "gone");
    else if (_i == 1)
        SAYS(acquire(READ_A), "queued"); /* as for any reader: a writer waits */
    else
        SAYS(share(READ_A2, READ_A), "queued");
    ck_assert(end_of(READ_A) == passed || end_of(READ_A) == -1);
    assert_fit(READ_B);
    SAYS(cancel(READ_A), "removed");
    SAYS(refresh(READ_A), "gone");
    SAYS(downgrade(READ_A), "gone");
    test_redis_close(c);
}
END_TEST

/* rule: W4 */
START_TEST(expired_reading_readmits_no_reader)
{
    SAYS(acquire(READ_A), "held");
    expire(); /* the key of the readers stays */
    SAYS(renew(READ_A, "60000"), "gone");
    ck_assert(!test_redis_exists(redis, "n"));
    SAYS(share(READ_B, READ_A), "held");
    ck_assert_int_eq(end_of(READ_A), -1);
    assert_fit(READ_B);
}
END_TEST

/* rule: W5 */
START_TEST(end_of_a_reader_never_falls)
{
    SAYS(ask_read(READ_A, "60000", ""), "held");
    long long end = end_of(READ_A);
    struct answer a = ask_read(READ_A, "1000", "");
    ck_assert_int_gt(a.fate[0].remaining, 60000 - test_ms(SLACK_MS));
    ck_assert_int_eq(end_of(READ_A), end);
    a = renew(READ_A, "1000");
    ck_assert_int_gt(a.fate[0].remaining, 60000 - test_ms(SLACK_MS));
    ck_assert_int_eq(end_of(READ_A), end);
    a = ask_read(READ_B, "1000", READ_A);
    ck_assert_str_eq(WHAT(a), "shared");
    ck_assert_int_gt(a.fate[0].remaining, 60000 - test_ms(SLACK_MS));
    ck_assert_int_eq(end_of(READ_A), end);
    assert_fit(READ_A);
}
END_TEST

/* rule: W5 */
START_TEST(granted_end_rises_to_the_lease_upon_request)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_B), "queued");
    SAYS(release(WRITE_A), "released");
    struct answer a = acquire(READ_B);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(a.fate[0].remaining, LEASE_MS);
    ck_assert_int_gt(ttl("n"), GRANT_MS);
    assert_fit(READ_B);
    test_redis_close(b);
}
END_TEST

/* ---- one reading */

/* Leaves a reader of an earlier reading, with an end to come. */
static void leave_reader(const char *id)
{
    set_end(id, server_ms() + 50000);
    test_redis_do(redis, "PEXPIRE", READERS, "110000");
}

/* rule: W6 */
START_TEST(new_reading_begins_without_the_readers_of_the_last)
{
    struct test_redis *b = listener(UUID_B);
    if (_i == 0) { /* by a request that takes the free lock */
        leave_reader(READ_A);
        SAYS(acquire(READ_B), "held");
    } else if (_i == 1) { /* by a hand-over */
        SAYS(acquire(WRITE_A), "held");
        SAYS(acquire(READ_B), "queued");
        leave_reader(READ_A);
        SAYS(release(WRITE_A), "released");
    } else { /* by a downgrade */
        SAYS(acquire(WRITE_B), "held");
        leave_reader(READ_A);
        SAYS(downgrade(WRITE_B), "held");
    }
    const char *reader = _i == 2 ? WRITE_B : READ_B;
    ck_assert(reads_now(reader));
    ck_assert_int_eq(end_of(READ_A), -1);
    SAYS(renew(READ_A, "60000"), "gone");
    SAYS(release(READ_A), "notmine");
    assert_fit(reader);
    test_redis_close(b);
}
END_TEST

/* rule: W6 */
START_TEST(writing_begins_without_readers)
{
    struct test_redis *b = listener(UUID_B);
    leave_reader(READ_A);
    if (_i == 0) {
        SAYS(acquire(WRITE_B), "held");
    } else { /* by the hand-over of this and of other types */
        const char *holder = _i == 1 ? WRITE_C : _i == 2 ? A2 : UUID_C ":1:1:m3000";
        test_redis_do(redis, "DEL", READERS);
        SAYS(acquire(holder), "held");
        SAYS(acquire(WRITE_B), "queued");
        leave_reader(READ_A);
        SAYS(release(holder), "released");
    }
    ck_assert(is_held_by(WRITE_B));
    ck_assert(!test_redis_exists(redis, READERS));
    SAYS(downgrade(WRITE_B), "held");
    SAYS(renew(READ_A, "60000"), "gone");
    ck_assert_int_eq(test_redis_int(redis, "ZCARD", READERS), 1);
    test_redis_close(b);
}
END_TEST

/* rule: W6 */
START_TEST(reading_with_lost_readers_is_held_until_it_ends)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    SAYS(acquire(READ_A), "held");
    test_redis_do(redis, "DEL", READERS); /* evicted */
    SAYS(try_acquire(READ_B), "busy");
    SAYS(acquire(READ_B), "queued");
    SAYS(share(READ_A2, READ_A), "queued");
    SAYS(try_acquire(WRITE_C), "busy");
    SAYS(acquire(WRITE_C), "queued");
    SAYS(refresh(READ_B), "queued");
    SAYS(renew(READ_A, "60000"), "gone");
    SAYS(downgrade(READ_A), "gone");
    SAYS(cancel(READ_A2), "removed");
    SAYS(release(READ_A), "notmine");
    prefer = "0";
    SAYS(acquire(READ_B2), "queued");
    prefer = "16";
    ck_assert(!test_redis_exists(redis, READERS));
    ck_assert_int_gt(ttl("n"), LEASE_MS - test_ms(SLACK_MS));
    ck_assert_int_le(ttl("n"), LEASE_MS);
    ck_assert(no_message(b) && no_message(c));
    assert_ttls();
    expire();
    SAYS(refresh(WRITE_C), "queued"); /* what ended is not known: readers are next */
    ck_assert(reads_now(READ_B) && reads_now(READ_B2));
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* rule: W7 */
START_TEST(writer_is_next_after_an_expired_reading)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(WRITE_C), "queued");
    SAYS(acquire(READ_B), "queued");
    if (_i == 0)
        expire();
    else /* N still exists, but its readers have ended */
        set_end(READ_A, server_ms() - 1);
    SAYS(refresh(READ_B), "queued");
    ck_assert(is_held_by(WRITE_C));
    ck_assert(no_message(b));
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* rule: W7 */
START_TEST(readers_are_next_after_an_expired_writing)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(WRITE_C), "queued");
    SAYS(acquire(READ_B), "queued");
    expire();
    SAYS(refresh(WRITE_C), "queued");
    ck_assert(reads_now(READ_B));
    ck_assert(no_message(c));
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* ---- dead readers */

enum { DEAD = 5000, PRUNED = 16, COMMANDS_MAX = 60 };

static void add_dead(void)
{
    test_redis_do(redis, "EVAL",
                  "for i = 1, 5000 do\n"
                  "redis.call('ZADD', KEYS[1], 1000 + i, '" UUID_C
                  ":' .. i .. ':1:r3000')\n"
                  "end",
                  "1", READERS);
}

/* How many commands the server has executed, including those within scripts. */
static long long commands(void)
{
    const char *at = test_redis_str(redis, "INFO", "commandstats");
    long long sum = 0;
    while ((at = strstr(at, ":calls=")) != NULL) {
        at += strlen(":calls=");
        sum += atoll(at);
    }
    return sum;
}

/* Sends the script `which` with 5,000 dead readers beside A, which reads. */
static void send_beside_the_dead(int which)
{
    static const char *const a[] = { UUID_A, UUID_B };
    switch (which) {
    case 0:
        run_raw(RLK_RWLOCK_READ, TEST_ARGV(READ_B, a[1], "30000", "3000", NEVER, "0", "0",
                                           prefer, "0", "0", ""));
        break;
    case 1:
        run_raw(RLK_RWLOCK_READ, TEST_ARGV(READ_B, a[1], "30000", "3000", NEVER, "0", "0",
                                           prefer, "0", "0", READ_A));
        break;
    case 2:
        run_raw(RLK_RWLOCK_RENEW, TEST_ARGV(a[0], "1:1:r3000 60000 "));
        break;
    case 3:
        run_raw(RLK_RWLOCK_WRITE, TEST_ARGV(WRITE_B, a[1], "30000", "3000", NEVER, "0",
                                            "0", prefer, "0", "0"));
        break;
    case 4:
        run_raw(RLK_RWLOCK_REFRESH,
                TEST_ARGV(a[0], "3000", prefer, "0", "0", "1:1:r3000"));
        break;
    case 5:
        run_raw(RLK_RWLOCK_CANCEL, TEST_ARGV(READ_B, "7000", prefer));
        break;
    default:
        run_raw(RLK_RWLOCK_RELEASE, TEST_ARGV(READ_A, "0", CHANNEL, prefer));
    }
}

/* rule: W8 */
START_TEST(dead_readers_cost_nothing)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(READ_A), "held");
    if (_i & 1) { /* so that no shortcut applies */
        SAYS(acquire(WRITE_B), "queued");
        SAYS(cancel(WRITE_B), "removed");
        test_redis_do(redis, "ZADD", QUEUE, "5", UUID_C ":1:4:w3000");
        test_redis_do(redis, "PEXPIRE", QUEUE, "60000");
        test_redis_do(redis, "ZADD", PRESENT, "9999999999999", UUID_C);
    }
    add_dead();
    long long before = commands();
    send_beside_the_dead(_i / 2);
    ck_assert_int_le(commands() - before, COMMANDS_MAX);
    bool over = _i / 2 == 6;
    ck_assert_int_eq(test_redis_exists(redis, "n"), !over);
    if (!over) {
        long long left = test_redis_int(redis, "ZCARD", READERS);
        ck_assert_int_ge(left, DEAD + 1 - PRUNED);
        ck_assert_int_gt(ttl("n"), 0);
        if (_i / 2 == 2)
            /* a renewal removes some of them */
            ck_assert_int_eq(left, DEAD + 1 - PRUNED);
    }
    assert_ttls();
    test_redis_close(b);
}
END_TEST

/* rule: W8 */
START_TEST(dead_readers_do_not_block_a_writer)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(WRITE_B), "queued");
    add_dead();
    SAYS(release(READ_A), "released");
    ck_assert(is_held_by(WRITE_B));
    ck_assert(!test_redis_exists(redis, READERS));
    test_redis_close(b);
}
END_TEST

/* rule: W15 */
START_TEST(reported_end_falls_when_the_last_reader_leaves)
{
    SAYS(ask_read(READ_A, "60000", ""), "held");
    SAYS(ask_read(READ_B, "10000", ""), "held");
    ck_assert_int_gt(acquire(WRITE_C).left, 10000);
    struct answer a = release(READ_A);
    ck_assert_int_gt(a.left, 0);
    ck_assert_int_le(a.left, 10000);
    ck_assert_int_le(refresh(WRITE_C).left, 10000);
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

static void add_ends(Suite *suite)
{
    TCase *tc = add_case(suite, "ends");
    tcase_add_test(tc, reply_gives_a_reader_its_own_end_and_that_of_the_lock);
    tcase_add_test(tc, no_script_moves_the_end_of_another_client);
    tcase_add_test(tc, end_of_the_lock_follows_the_last_reader_up_and_down);
    tcase_add_test(tc, granted_reader_shortens_no_reading);
    tcase_add_test(tc, reading_opened_for_others_ends_with_their_leases);
    tcase_add_loop_test(tc, expired_end_is_not_revived, 0, 3);
    tcase_add_test(tc, expired_reading_readmits_no_reader);
    tcase_add_test(tc, end_of_a_reader_never_falls);
    tcase_add_test(tc, granted_end_rises_to_the_lease_upon_request);
    tcase_add_test(tc, reported_end_falls_when_the_last_reader_leaves);
}

static void add_readings(Suite *suite)
{
    TCase *tc = add_case(suite, "readings");
    tcase_add_loop_test(tc, new_reading_begins_without_the_readers_of_the_last, 0, 3);
    tcase_add_loop_test(tc, writing_begins_without_readers, 0, 4);
    tcase_add_test(tc, reading_with_lost_readers_is_held_until_it_ends);
    tcase_add_loop_test(tc, writer_is_next_after_an_expired_reading, 0, 2);
    tcase_add_test(tc, readers_are_next_after_an_expired_writing);
    tcase_add_loop_test(tc, dead_readers_cost_nothing, 0, 14);
    tcase_add_test(tc, dead_readers_do_not_block_a_writer);
}

int main(void)
{
    Suite *suite = suite_create("read-write scripts");
    add_ends(suite);
    add_readings(suite);
    return test_run_suite(suite);
}
