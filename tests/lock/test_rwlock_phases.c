/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=W9,W10,W11,W12 */
/*
 * The scripts of the read-write lock, sent by hand: which waiter is let in when, for each
 * kind. Rule W13 (no waiter that listens waits for a free lock) is asserted after each
 * script by byhand.c.
 *
 * A queued waiter is dead (not present), deaf (present, but no connection listens to its
 * mailbox) or live. Hand-overs that continue in a second script are in
 * test_rwlock_chain.c.
 */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UUID_D "dddddddd-0000-4000-8000-00000000000d"
#define UUID_E "eeeeeeee-0000-4000-8000-00000000000e"
#define READ_D UUID_D ":1:1:r3000"
#define WRITE_D UUID_D ":1:4:w3000"
#define WRITE_E UUID_E ":1:4:w3000"
#define READ_E UUID_E ":1:1:r3000"
#define GONE UUID_A ":9:9:r3000" /* an id that does not wait */

enum { LOOKS = 64, BATCH = 256, ROUNDS_MAX = 20, PRESENT_FOR = 30 };

static const char *const kinds[] = { "0", "1", "2", "16" };
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
#define READERS_FIRST(kind) (kind[0] == '0')
#define WRITERS_FIRST(kind) (kind[0] != '0' && strlen(kind) == 1)

static bool queued(const char *queue, const char *id)
{
    return test_redis_str(redis, "ZSCORE", queue, id) != NULL;
}

/* Sends the refreshes that an answer asks for, until the hand-over ends. */
static struct answer go_on(const char *id, struct answer a)
{
    for (int i = 0; a.more || a.rmore; i++) {
        ck_assert_msg(i < ROUNDS_MAX, "the hand-over does not end");
        a = refresh_on(id, a.more, a.rmore);
    }
    return a;
}

/* ---- the bar */

/* 300 readers of B wait for A, which writes; 256 of them come in. */
static struct answer release_before_300(void)
{
    put_waiters(RQUEUE, UUID_B, 'r', 1, 300);
    struct answer a = release(WRITE_A);
    ck_assert_str_eq(WHAT(a), "released");
    ck_assert_int_eq(a.rmore, BATCH);
    ck_assert_int_eq(count_reading(), BATCH);
    ck_assert(reads_now(waiter_id(UUID_B, 1, 'r')));
    ck_assert(reads_now(waiter_id(UUID_B, BATCH, 'r')));
    ck_assert_int_eq(count_waiting(RQUEUE), 300 - BATCH);
    assert_ttls();
    return a;
}

/* _i 0: the writer C queues before the hand-over; 1, 2: during it; 2: C's answer
 * continues it. */
/* rule: W9 */
START_TEST(all_queued_readers_come_before_the_writer)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C), *d = listener(UUID_D);
    SAYS(acquire(WRITE_A), "held");
    if (_i == 0)
        SAYS(acquire(WRITE_C), "queued");
    struct answer a = release_before_300();
    if (_i) {
        struct answer late = acquire(WRITE_C);
        ck_assert_str_eq(WHAT(late), "queued");
        a = _i == 2 ? late : a;
    }
    SAYS(acquire(READ_D), "queued"); /* above the bar */
    go_on(GONE, a);
    ck_assert_int_eq(count_reading(), 300);
    ck_assert(reads_now(waiter_id(UUID_B, 300, 'r')));
    ck_assert_int_eq(count_waiting(RQUEUE), 1);
    ck_assert(queued(QUEUE, WRITE_C) && queued(RQUEUE, READ_D));
    ck_assert(no_message(c) && no_message(d));
    assert_ttls();
    /* now it is C's turn, and then D's */
    for (int i = 1; i <= 300; i++) {
        if (i % PRESENT_FOR == 0) { /* a slow machine needs longer than a presence time */
            refresh(WRITE_C);
            refresh(READ_D);
        }
        SAYS(release(waiter_id(UUID_B, i, 'r')), "released");
    }
    ck_assert(is_held_by(WRITE_C));
    ck_assert(!test_redis_exists(redis, READERS));
    SAYS(release(WRITE_C), "released");
    ck_assert(reads_now(READ_D));
    ck_assert(!test_redis_exists(redis, RQUEUE));
    test_redis_close(b);
    test_redis_close(c);
    test_redis_close(d);
}
END_TEST

/* rule: W9 */
START_TEST(bar_survives_the_end_of_the_reading)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C), *d = listener(UUID_D);
    SAYS(acquire(WRITE_A), "held");
    release_before_300();
    /* no request continues the hand-over, and the first readers' leases end */
    test_redis_do(redis, "EVAL",
                  "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do\n"
                  "redis.call('ZADD', KEYS[1], 1000, id) end",
                  "1", READERS);
    if (_i)
        expire();
    put_present(UUID_C);
    put_waiter(QUEUE, WRITE_C, 5);
    put_present(UUID_D);
    put_waiter(RQUEUE, READ_D, 1000); /* after the other readers */
    struct answer a = refresh(WRITE_C);
    ck_assert_str_eq(WHAT(a), "queued");
    ck_assert_int_eq(count_reading(), 300 - BATCH);
    ck_assert(!reads_now(READ_D));
    ck_assert(no_message(c));
    for (int i = BATCH + 1; i <= 300; i++)
        SAYS(release(waiter_id(UUID_B, i, 'r')), "released");
    ck_assert(is_held_by(WRITE_C)); /* and D comes after it */
    ck_assert(no_message(d));
    SAYS(release(WRITE_C), "released");
    ck_assert(reads_now(READ_D));
    test_redis_close(b);
    test_redis_close(c);
    test_redis_close(d);
}
END_TEST

/* rule: W9 */
START_TEST(unheard_reader_does_not_lose_its_ticket_and_may_still_enter)
{
    struct test_redis *c = listener(UUID_C), *d = listener(UUID_D), *e = listener(UUID_E);
    SAYS(acquire(WRITE_A), "held");
    long long ticket = acquire(READ_B).fate[0].ticket; /* deaf */
    SAYS(acquire(READ_C), "queued");
    SAYS(release(WRITE_A), "released");
    ck_assert(reads_now(READ_C));
    ck_assert_int_eq(test_redis_int(redis, "ZSCORE", RQUEUE, READ_B), ticket);
    SAYS(acquire(WRITE_D), "queued");
    SAYS(acquire(READ_E), "queued");
    struct test_redis *b = listener(UUID_B);
    if (_i == 0) { /* B asks itself, */
        SAYS(refresh(READ_B), "held");
        ck_assert(no_message(b));
    } else if (_i == 1) { /* another client asks, */
        SAYS(refresh(READ_E), "queued");
        ck_assert_ptr_nonnull(message(b));
    } else { /* or after the reading, before the writer */
        SAYS(release(READ_C), "released");
        ck_assert_ptr_nonnull(message(b));
    }
    ck_assert(reads_now(READ_B));
    ck_assert(queued(RQUEUE, READ_E));
    ck_assert(no_message(d) && no_message(e));
    if (_i < 2)
        SAYS(release(READ_C), "released");
    SAYS(release(READ_B), "released");
    ck_assert(is_held_by(WRITE_D));
    SAYS(release(WRITE_D), "released");
    ck_assert(reads_now(READ_E));
    ck_assert(!test_redis_exists(redis, RQUEUE)); /* no bar is left */
    test_redis_close(b);
    test_redis_close(c);
    test_redis_close(d);
    test_redis_close(e);
}
END_TEST

/* rule: W9 */
START_TEST(dead_readers_are_dropped_without_a_bar)
{
    struct test_redis *c = listener(UUID_C);
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_B), "queued");
    SAYS(acquire(READ_C), "queued");
    test_redis_do(redis, "ZADD", PRESENT, "1000", UUID_B);
    SAYS(release(WRITE_A), "released");
    ck_assert(reads_now(READ_C));
    ck_assert(!test_redis_exists(redis, RQUEUE));
    test_redis_close(c);
}
END_TEST

/* ---- waiting writers */

/* rule: W10 */
START_TEST(dead_writer_is_dropped_and_an_unheard_one_skipped)
{
    bool dead = _i & 1, alone = _i & 2;
    struct test_redis *d = alone ? NULL : listener(UUID_D);
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(WRITE_B), "queued");
    if (dead)
        test_redis_do(redis, "ZADD", PRESENT, "1000", UUID_B);
    if (!alone)
        SAYS(acquire(WRITE_D), "queued");
    SAYS(acquire(READ_C), alone ? "held" : "queued");
    ck_assert_int_eq(queued(QUEUE, WRITE_B), !dead);
    SAYS(cancel(READ_C), alone ? "yours" : "removed");
    SAYS(release(READ_C), alone ? "released" : "notmine");
    SAYS(release(READ_A), "released");
    ck_assert_int_eq(queued(QUEUE, WRITE_B), !dead);
    ck_assert_int_eq(is_held_by(WRITE_D), !alone);
    test_redis_close(d);
}
END_TEST

/* After a reading that expired, a deaf writer asks. It is next, but for the reader below
 * the bar, which begins a reading. Another writer that listens (_i) closes that
 * reading. */
/* rule: W10 */
START_TEST(request_of_an_unheard_writer_closes_no_reading)
{
    struct test_redis *a = listener(UUID_A), *e = _i ? listener(UUID_E) : NULL;
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_C), "queued"); /* deaf */
    SAYS(acquire(READ_A), "queued");
    SAYS(release(WRITE_A), "released");
    ck_assert(reads_now(READ_A));
    SAYS(acquire(WRITE_B), "queued");
    if (_i)
        SAYS(acquire(WRITE_E), "queued");
    expire();
    struct test_redis *c = listener(UUID_C), *d = listener(UUID_D);
    put_present(UUID_D);
    put_waiter(RQUEUE, READ_D, 9000000000000000); /* above the bar */
    SAYS(refresh(WRITE_B), "queued");
    ck_assert(reads_now(READ_C));
    ck_assert_int_eq(reads_now(READ_D), !_i);
    test_redis_close(a);
    test_redis_close(c);
    test_redis_close(d);
    test_redis_close(e);
}
END_TEST

/* rule: W10 */
START_TEST(live_writer_blocks_all_but_current_readers)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(WRITE_B), "queued");
    SAYS(acquire(READ_C), "queued");
    SAYS(try_acquire(READ_D), "busy");
    SAYS(share(READ_A2, READ_A), "queued");
    SAYS(acquire(READ_A), "held"); /* a repeated request */
    ck_assert_int_eq(count_reading(), 1);
    ck_assert_int_eq(count_waiting(RQUEUE), 2);
    test_redis_close(b);
}
END_TEST

/* rule: W11 */
START_TEST(writing_and_reading_alternate)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    char writer[64], reader[64];
    SAYS(acquire(WRITE_A), "held");
    strcpy(writer, WRITE_A);
    for (int i = 2; i < 12; i++) {
        char next_writer[64], next_reader[64];
        snprintf(next_writer, sizeof(next_writer), UUID_B ":%d:4:w3000", i);
        snprintf(next_reader, sizeof(next_reader), UUID_C ":%d:1:r3000", i);
        SAYS(acquire(next_writer), "queued");
        SAYS(acquire(next_reader), "queued");
        snprintf(reader, sizeof(reader), UUID_C ":1%d:1:r3000", i);
        SAYS(acquire(reader), "queued");
        SAYS(release(writer), "released"); /* both readers come in, */
        ck_assert_int_eq(count_reading(), 2);
        SAYS(release(reader), "released");
        ck_assert(reads_now(next_reader));
        SAYS(release(next_reader), "released"); /* then one writer */
        ck_assert(is_held_by(next_writer));
        strcpy(writer, next_writer);
    }
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* 65 deaf writers are first: the hand-over continues behind 64 of them. */
/* rule: W11 */
START_TEST(continued_script_knows_which_mode_ended)
{
    struct test_redis *c = listener(UUID_C), *d = listener(UUID_D);
    SAYS(acquire(READ_A), "held");
    put_waiters(QUEUE, UUID_B, 'w', 1, LOOKS + 1);
    put_present(UUID_C);
    put_present(UUID_D);
    put_waiter(QUEUE, WRITE_C, 100);
    /* queued during a reading that a writer waited for */
    put_waiter(RQUEUE, READ_D, 100);
    struct answer a = release(READ_A);
    ck_assert_int_eq(a.more, LOOKS);
    ck_assert_int_eq(a.left, -2);
    if (_i == 0)
        go_on(GONE, a);
    else if (_i == 1)
        go_on(READ_D, a);
    else /* other requests begin at the head */
        go_on(READ_E, acquire(READ_E));
    ck_assert(is_held_by(WRITE_C));
    ck_assert(queued(RQUEUE, READ_D));
    ck_assert(no_message(d));
    test_redis_close(c);
    test_redis_close(d);
}
END_TEST

/* One writer is live, and leaves the queue. _i 0: by a cancel, 1: by a release of its
 * client, which gave up, 2: by death. */
/* rule: W12 */
START_TEST(last_live_writer_that_leaves_lets_the_readers_in)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(WRITE_D), "queued"); /* deaf */
    SAYS(acquire(WRITE_B), "queued");
    SAYS(acquire(READ_C), "queued");
    if (_i == 0) {
        SAYS(cancel(WRITE_B), "removed");
    } else if (_i == 1) {
        SAYS(RUN(RLK_RWLOCK_RELEASE, WRITE_B, "7000", CHANNEL, prefer), "notmine");
    } else {
        test_redis_do(redis, "ZADD", PRESENT, "1000", UUID_B);
        SAYS(refresh(GONE), "gone");
    }
    ck_assert(reads_now(READ_A) && reads_now(READ_C));
    ck_assert_ptr_nonnull(message(c));
    ck_assert(!queued(QUEUE, WRITE_B) && queued(QUEUE, WRITE_D));
    ck_assert(no_message(b));
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* rule: W10 */
START_TEST(unheard_writer_blocks_no_reader_by_requests)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(WRITE_D), "queued"); /* deaf */
    SAYS(acquire(WRITE_B), "queued");
    SAYS(acquire(READ_C), "queued");
    test_redis_do(redis, "ZADD", PRESENT, "1000", UUID_B);
    SAYS(_i ? acquire(WRITE_D) : refresh(WRITE_D), "queued");
    ck_assert(reads_now(READ_C));
    ck_assert(!queued(QUEUE, WRITE_B) && queued(QUEUE, WRITE_D));
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* A user that may not ask which clients listen learns it from the grant. */
/* rule: W12 */
START_TEST(undone_grant_lets_the_readers_in)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C), *admin = redis;
    SAYS(acquire(READ_A), "held");
    long long ticket = acquire(WRITE_B).fate[0].ticket;
    SAYS(acquire(READ_C), "queued");
    test_redis_do(b, "UNSUBSCRIBE");
    redis = limited_user();
    SAYS(release(READ_A), "released");
    test_redis_close(redis);
    redis = admin;
    ck_assert(reads_now(READ_C));
    ck_assert_ptr_nonnull(message(c));
    ck_assert_int_eq(test_redis_int(redis, "ZSCORE", QUEUE, WRITE_B), ticket);
    assert_fit(READ_C);
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* rule: W14 */
START_TEST(reader_queued_after_a_writer_comes_after_it)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C), *d = listener(UUID_D);
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(WRITE_B), "queued");
    SAYS(acquire(READ_C), "queued");
    SAYS(acquire(WRITE_D), "queued");
    SAYS(refresh(READ_C), "queued");
    SAYS(refresh(READ_A), "held");
    SAYS(release(READ_A), "released");
    ck_assert(is_held_by(WRITE_B));
    SAYS(release(WRITE_B), "released");
    ck_assert(reads_now(READ_C)); /* this reader has seen one writer */
    SAYS(acquire(READ_A2), "queued");
    SAYS(release(READ_C), "released");
    ck_assert(is_held_by(WRITE_D));
    test_redis_close(b);
    test_redis_close(c);
    test_redis_close(d);
}
END_TEST

/* ---- the kinds: _i is the index of the kind */

/* rule: L6 */
START_TEST(kind_decides_whether_an_arriving_reader_passes_a_writer)
{
    struct test_redis *b = listener(UUID_B);
    prefer = kinds[_i];
    bool passes = READERS_FIRST(prefer);
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(WRITE_B), "queued");
    SAYS(try_acquire(READ_C), passes ? "held" : "busy");
    SAYS(acquire(READ_D), passes ? "held" : "queued");
    SAYS(share(READ_A2, READ_A), passes ? "shared" : "queued");
    test_redis_close(b);
}
END_TEST

START_TEST(preference_decides_the_next_holder_after_a_writer)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    prefer = kinds[_i];
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_C), "queued");
    SAYS(acquire(WRITE_B), "queued");
    SAYS(release(WRITE_A), "released");
    bool writer = WRITERS_FIRST(prefer);
    ck_assert_int_eq(is_held_by(WRITE_B), writer);
    ck_assert_int_eq(reads_now(READ_C), !writer);
    SAYS(release(writer ? WRITE_B : READ_C), "released");
    ck_assert_int_eq(is_held_by(WRITE_B), !writer);
    ck_assert_int_eq(reads_now(READ_C), writer);
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* rule: W11 */
START_TEST(writer_is_next_after_a_reading_whatever_the_preference)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(WRITE_B), "queued");
    SAYS(acquire(READ_C), "queued");
    prefer = kinds[_i];
    SAYS(release(READ_A), "released");
    ck_assert(is_held_by(WRITE_B));
    ck_assert(no_message(c));
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* rule: W9 */
START_TEST(readers_below_the_bar_come_before_the_writer_whatever_the_preference)
{
    struct test_redis *c = listener(UUID_C), *d = listener(UUID_D);
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_B), "queued"); /* deaf */
    SAYS(acquire(READ_C), "queued");
    SAYS(release(WRITE_A), "released");
    SAYS(acquire(WRITE_D), "queued");
    struct test_redis *b = listener(UUID_B);
    prefer = kinds[_i];
    SAYS(release(READ_C), "released");
    ck_assert(reads_now(READ_B));
    SAYS(release(READ_B), "released");
    ck_assert(is_held_by(WRITE_D));
    test_redis_close(b);
    test_redis_close(c);
    test_redis_close(d);
}
END_TEST

/* _i: the kind, and whether a live, a deaf or no writer waits. */
/* rule: W20 */
START_TEST(waiting_reader_joins_a_downgrade)
{
    int writer = _i / KINDS;
    struct test_redis *b = writer == 0 ? listener(UUID_B) : NULL, *c = listener(UUID_C);
    prefer = kinds[_i % KINDS];
    SAYS(acquire(WRITE_A), "held");
    if (writer < 2)
        SAYS(acquire(WRITE_B), "queued");
    SAYS(acquire(READ_C), "queued");
    SAYS(acquire(READ_D), "queued"); /* deaf */
    SAYS(downgrade(WRITE_A), "held");
    bool joins = writer > 0 || !WRITERS_FIRST(prefer);
    ck_assert(reads_now(WRITE_A));
    ck_assert_int_eq(reads_now(READ_C), joins);
    ck_assert(queued(RQUEUE, READ_D));
    ck_assert_int_eq(queued(QUEUE, WRITE_B), writer < 2);
    struct test_redis *d = listener(UUID_D); /* W9: D was queued at the downgrade */
    SAYS(refresh(READ_D), joins ? "held" : "queued");
    SAYS(acquire(READ_A2), writer == 0 && !READERS_FIRST(prefer) ? "queued" : "held");
    assert_ttls();
    test_redis_close(b);
    test_redis_close(c);
    test_redis_close(d);
}
END_TEST

/* rule: W20 */
START_TEST(more_than_256_readers_join_a_downgrade_before_the_writer)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    SAYS(acquire(WRITE_A), "held");
    put_waiters(RQUEUE, UUID_B, 'r', 1, 300);
    SAYS(acquire(WRITE_C), "queued");
    struct answer a = downgrade(WRITE_A);
    ck_assert_int_eq(a.rmore, BATCH);
    ck_assert_int_eq(count_reading(), BATCH + 1);
    go_on(GONE, a);
    ck_assert_int_eq(count_reading(), 301);
    ck_assert(no_message(c));
    test_redis_close(b);
    test_redis_close(c);
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
    Suite *suite = suite_create("read-write phases");
    TCase *tc = add_case(suite, "the bar");
    tcase_add_loop_test(tc, all_queued_readers_come_before_the_writer, 0, 3);
    tcase_add_loop_test(tc, bar_survives_the_end_of_the_reading, 0, 2);
    tcase_add_loop_test(tc, unheard_reader_does_not_lose_its_ticket_and_may_still_enter,
                        0, 3);
    tcase_add_test(tc, dead_readers_are_dropped_without_a_bar);

    tc = add_case(suite, "writers");
    tcase_add_loop_test(tc, dead_writer_is_dropped_and_an_unheard_one_skipped, 0, 4);
    tcase_add_loop_test(tc, request_of_an_unheard_writer_closes_no_reading, 0, 2);
    tcase_add_test(tc, live_writer_blocks_all_but_current_readers);
    tcase_add_test(tc, writing_and_reading_alternate);
    tcase_add_loop_test(tc, continued_script_knows_which_mode_ended, 0, 3);
    tcase_add_loop_test(tc, last_live_writer_that_leaves_lets_the_readers_in, 0, 3);
    tcase_add_loop_test(tc, unheard_writer_blocks_no_reader_by_requests, 0, 2);
    tcase_add_test(tc, undone_grant_lets_the_readers_in);
    tcase_add_test(tc, reader_queued_after_a_writer_comes_after_it);

    tc = add_case(suite, "kinds");
    tcase_add_loop_test(tc, kind_decides_whether_an_arriving_reader_passes_a_writer, 0,
                        KINDS);
    tcase_add_loop_test(tc, preference_decides_the_next_holder_after_a_writer, 0, KINDS);
    tcase_add_loop_test(tc, writer_is_next_after_a_reading_whatever_the_preference, 0,
                        KINDS);
    tcase_add_loop_test(
        tc, readers_below_the_bar_come_before_the_writer_whatever_the_preference, 0,
        KINDS);
    tcase_add_loop_test(tc, waiting_reader_joins_a_downgrade, 0, 3 * KINDS);
    tcase_add_test(tc, more_than_256_readers_join_a_downgrade_before_the_writer);

    return test_run_suite(suite);
}
