/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_turns,rwlock_turns claims=T14 */
/* A turn for Redisson's waiters between the hand-overs of ours: the scripts, sent by
 * hand. A connection that is subscribed to Redisson's channel plays one of its waiters.
 */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOUND = 16, CHAIN_MS = 100, TURN_MS = 10 };

#define JAVA "8743c9c0-0795-4907-87fd-6c719a6b4586:52"

static struct test_redis *b, *c, *java;

static void open_scene(void)
{
    byhand_open();
    b = listener(UUID_B);
    c = listener(UUID_C);
    java = NULL;
}

static void close_scene(void)
{
    test_redis_close(b);
    test_redis_close(c);
    if (java)
        test_redis_close(java);
    byhand_close();
}

static bool has_score(const char *key, const char *member)
{
    return test_redis_str(redis, "ZSCORE", key, member) != NULL;
}

static void stranger_listens(void)
{
    java = channel_listener(CHANNEL);
}

/* The id of B's or C's acquisition number n. */
static const char *id_of(char id[64], int n)
{
    snprintf(id, 64, "%s:1:%d:" LETTER "3000", n % 2 ? UUID_B : UUID_C, n);
    return id;
}

/* As if the chain had begun now: a slow machine may need 100 ms for 16 hand-overs. */
static void keep_time(void)
{
    char score[32];
    const char *old = test_redis_str(redis, "ZSCORE", CANCELLED, "#");
    if (!old)
        return;
    long long count = atoll(old) % 4096;
    snprintf(score, sizeof(score), "%lld", (server_ms() + CHAIN_MS) * 4096 + count);
    test_redis_do(redis, "ZADD", CANCELLED, score, "#");
}

/* B and C hand the lock on `count` times; number 0 holds it before, `count` behind, and
 * one more waits. */
static void chain_of(int count)
{
    char holder[64], next[64];

    if (!is_held_by(id_of(holder, 0)))
        SAYS(acquire(id_of(holder, 0)), "held");
    SAYS(acquire(id_of(next, 1)), "queued");
    for (int i = 0; i < count; i++) {
        SAYS(acquire(id_of(next, i + 2)), "queued");
        keep_time();
        SAYS(release(id_of(holder, i)), "released");
        ck_assert_msg(is_held_by(id_of(next, i + 1)), "hand-over %d", i + 1);
    }
}

/* Whether the lock is free for strangers. */
static bool is_offered(void)
{
    return !test_redis_exists(redis, "n") && has_score(CANCELLED, "!");
}

/* As if the turn had just begun. */
static void begin_again(void)
{
    char till[32];
    snprintf(till, sizeof(till), "%lld", server_ms() + TURN_MS);
    test_redis_do(redis, "ZADD", CANCELLED, till, "!");
}

/* As if the turn had lasted for its whole time. */
static void let_it_end(void)
{
    test_redis_do(redis, "ZADD", CANCELLED, "1", "!");
}

static void offer_now(char next[64])
{
    char holder[64];
    chain_of(BOUND);
    SAYS(release(id_of(holder, BOUND)), "released");
    ck_assert(is_offered());
    id_of(next, BOUND + 1);
}

/* The answer to a request that arrives during the turn; on a slow machine the turn may
 * be over before, and then the request is repeated. */
static struct answer in_turn(struct answer (*ask)(const char *id), const char *id)
{
    for (int i = 0; i < 100; i++) {
        begin_again();
        long long till = test_redis_int(redis, "ZSCORE", CANCELLED, "!");
        struct answer a = ask(id);
        if (a.now / 1000 < till)
            return a;
        test_redis_do(redis, "DEL", "n");
    }
    ck_abort_msg("no request arrives within a turn");
}

/* ---- when it begins */

/* rule: T14 */
START_TEST(chain_ends_after_16_hand_overs_while_a_stranger_listens)
{
    char next[64], wanted[128];
    stranger_listens();
    offer_now(next);
    ck_assert_str_eq(message(java), "0");
    ck_assert(has_score(QUEUE, next));
    /* the first of ours gets a message, so that it looks again */
    snprintf(wanted, sizeof(wanted), "1 lost %s n", next);
    const char *text = message(BOUND % 2 ? c : b);
    while (text && strncmp(text, "1 grant ", 8) == 0)
        text = message(BOUND % 2 ? c : b);
    ck_assert_str_eq(text, wanted);
    assert_ttls();
}
END_TEST

/* rule: T14 */
START_TEST(chain_ends_at_the_first_release_after_100_ms)
{
    char id[64];
    stranger_listens();
    chain_of(2);
    int64_t begin = test_now_ms();
    while (test_now_ms() - begin <=
           CHAIN_MS) /* the server's clock, which runs as this one */
        test_redis_do(redis, "PING");
    SAYS(release(id_of(id, 2)), "released");
    ck_assert(is_offered());
    ck_assert_str_eq(message(java), "0");
}
END_TEST

/* rule: L1 */
START_TEST(chain_goes_on_while_no_stranger_listens)
{
    chain_of(10 * BOUND);
    ck_assert(!test_redis_exists(redis, CANCELLED));
}
END_TEST

/* rule: T14 */
START_TEST(readers_of_ours_stand_back_behind_a_writer)
{
    char due[32];
    stranger_listens();
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_B), "queued");
    SAYS(acquire(READ_C), "queued");
    snprintf(due, sizeof(due), "%lld", (server_ms() + CHAIN_MS) * 4096 + BOUND);
    test_redis_do(redis, "ZADD", CANCELLED, due, "#");
    test_redis_do(redis, "PEXPIRE", CANCELLED, "9000");
    SAYS(release(WRITE_A), "released");
    ck_assert(is_offered());
    ck_assert_str_eq(message(java), "0");
    ck_assert_int_eq((int)count_waiting(RQUEUE), 2);
    struct answer a = in_turn(refresh, READ_B);
    ck_assert_str_eq(WHAT(a), "queued");
    ck_assert_int_eq(a.left, 0);
    let_it_end();
    SAYS(refresh(READ_B), "held");
    ck_assert(reads_now(READ_C));
}
END_TEST

/* rule: T14 */
START_TEST(lock_that_none_of_ours_waits_for_is_the_strangers_first)
{
    stranger_listens();
    SAYS(acquire(A), "held");
    SAYS(release(A), "released");
    ck_assert(is_offered());
    ck_assert_str_eq(message(java), "0");
    struct answer a = in_turn(try_acquire, C);
    ck_assert_str_eq(WHAT(a), "busy");
    a = in_turn(acquire, B);
    ck_assert_str_eq(WHAT(a), "queued");
}
END_TEST

/* ---- while it lasts */

/* rule: T14 */
START_TEST(ours_stand_back_during_a_turn)
{
    char next[64];
    stranger_listens();
    offer_now(next);
    struct answer a = in_turn(refresh, next);
    ck_assert_str_eq(WHAT(a), "queued");
    ck_assert_int_eq(a.left, 0); /* polls again soon */
    a = in_turn(try_acquire, A);
    ck_assert_str_eq(WHAT(a), "busy");
    a = in_turn(acquire, A);
    ck_assert_str_eq(WHAT(a), "queued");
    ck_assert_int_eq(a.left, 0);
    ck_assert(has_score(QUEUE, A));
}
END_TEST

/* rule: T14 */
START_TEST(turn_ends_when_no_stranger_listens)
{
    char next[64];
    stranger_listens();
    offer_now(next);
    test_redis_close(java);
    java = NULL;
    struct answer a = in_turn(refresh, next);
    ck_assert_str_eq(WHAT(a), "held");
}
END_TEST

/* rule: T14 */
START_TEST(turn_ends_with_its_time)
{
    char next[64];
    stranger_listens();
    offer_now(next);
    let_it_end();
    SAYS(refresh(next), "held");
    ck_assert(!has_score(CANCELLED, "!"));
}
END_TEST

/* rule: T14 */
START_TEST(turn_of_a_clock_that_was_set_back_has_ended)
{
    char next[64];
    stranger_listens();
    offer_now(next);
    test_redis_do(redis, "ZADD", CANCELLED, "9999999999999", "!");
    SAYS(refresh(next), "held");
}
END_TEST

/* ---- behind it */

/* rule: T14 */
START_TEST(turn_during_which_a_stranger_has_the_lock_was_used)
{
    char next[64];
    stranger_listens();
    offer_now(next);
    test_redis_do(redis, "HSET", "n", JAVA, "1");
    test_redis_do(redis, "PEXPIRE", "n", "30000");
    struct answer a = _i == 0 ? refresh(next) : acquire(A);
    ck_assert_str_eq(WHAT(a), "queued");
    ck_assert_int_eq(a.flags & 4, 4);
    ck_assert(has_score(CANCELLED, "!"));
    expire();
    a = refresh(next);
    while (strcmp(WHAT(a), "held") != 0)
        a = refresh(next);
    ck_assert(!has_score(CANCELLED, "!"));
    ck_assert(!has_score(CANCELLED, "#"));
}
END_TEST

/* rule: T14 */
START_TEST(unused_turn_is_followed_by_100_ms_for_ours)
{
    char next[64], id[64];
    stranger_listens();
    offer_now(next);
    let_it_end();
    SAYS(refresh(next), "held");
    for (int i = BOUND + 1; i < 3 * BOUND; i++) {
        SAYS(acquire(id_of(id, i + 1)), "queued");
        SAYS(release(id_of(id, i)), "released");
        if (!test_redis_exists(redis, "n"))
            break;
    }
    /* the machine may be so slow that 100 ms are over; then a turn is due */
    ck_assert(test_redis_exists(redis, "n") || is_offered());
    ck_assert_int_ge(test_redis_int(redis, "ZSCORE", CANCELLED, "#") % 4096, 2048);
}
END_TEST

/* rule: T14, L5 */
START_TEST(turn_changes_nothing_in_the_order_of_ours)
{
    char next[64], before[256];
    stranger_listens();
    offer_now(next);
    SAYS(acquire(A), "queued");
    snprintf(before, sizeof(before), "%s", queue_text());
    struct answer a = in_turn(refresh, A);
    ck_assert_str_eq(WHAT(a), "queued");
    ck_assert_str_eq(queue_text(), before);
    let_it_end();
    a = refresh(A);
    ck_assert_str_eq(WHAT(a), "queued");
    ck_assert(is_held_by(next));
    ck_assert_str_ne(queue_text(), before);
}
END_TEST

static TCase *turns_tcase(Suite *s, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, byhand_start, byhand_stop);
    tcase_add_checked_fixture(tc, open_scene, close_scene);
    suite_add_tcase(s, tc);
    return tc;
}

static Suite *make_suite(void)
{
    Suite *s = suite_create("turns");

    TCase *begins = turns_tcase(s, "begins");
    tcase_add_test(begins, chain_ends_after_16_hand_overs_while_a_stranger_listens);
    tcase_add_test(begins, chain_ends_at_the_first_release_after_100_ms);
    tcase_add_test(begins, chain_goes_on_while_no_stranger_listens);
    tcase_add_test(begins, readers_of_ours_stand_back_behind_a_writer);
    tcase_add_test(begins, lock_that_none_of_ours_waits_for_is_the_strangers_first);

    TCase *lasts = turns_tcase(s, "lasts");
    tcase_add_test(lasts, ours_stand_back_during_a_turn);
    tcase_add_test(lasts, turn_ends_when_no_stranger_listens);
    tcase_add_test(lasts, turn_ends_with_its_time);
    tcase_add_test(lasts, turn_of_a_clock_that_was_set_back_has_ended);

    TCase *behind = turns_tcase(s, "behind");
    tcase_add_loop_test(behind, turn_during_which_a_stranger_has_the_lock_was_used, 0, 2);
    tcase_add_test(behind, unused_turn_is_followed_by_100_ms_for_ours);
    tcase_add_test(behind, turn_changes_nothing_in_the_order_of_ours);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
