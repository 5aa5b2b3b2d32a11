/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire format that the mutex shares with Redisson's RLock and RFencedLock. The tests
 * play Redisson's clients by hand. `x` is a worker.
 */
#include "scene.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOON_MS = 250, LONG_PRESENCE_MS = 30000, LEASE_MS = 600 };

static const char redisson_field[] = "8743c9c0-0795-4907-87fd-6c719a6b4586:52";

static struct worker x;

static void open_scene(void)
{
    scene_open();
    memset(&x, 0, sizeof(x));
}

static void close_scene(void)
{
    worker_end(&x);
    scene_close();
}

static void start_x(const struct scene_times *times, const char *name,
                    const char *options)
{
    scene_worker(&x, scene_server.url, times, name, options);
}

/* As RLock.tryLock with a lease does. */
static void redisson_locks(const char *name, const char *ttl_ms)
{
    test_redis_do(scene_redis, "HINCRBY", name, redisson_field, "1");
    if (ttl_ms)
        test_redis_do(scene_redis, "PEXPIRE", name, ttl_ms);
}

#define TOKEN "redisson_lock_token:{N}"
/* Lua rounds greater numbers in its answers. */
#define EXACT (1LL << 53)

/* As RFencedLock.lockAndGetToken does, in 4.3.1 and 4.7.0. Returns the token. */
static long long redisson_locks_fenced(void)
{
    static const char script[] =
        "if (redis.call('exists', KEYS[1]) == 0 or (redis.call('hexists', KEYS[1], "
        "ARGV[2]) == 1)) then local token = redis.call('incr', "
        "KEYS[2]);redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', "
        "KEYS[1], ARGV[1]); return {-1, token}; end; return {redis.call('pttl', "
        "KEYS[1]), -1};";
    const redisReply *r = test_redis_do(scene_redis, "EVAL", script, "2", "N", TOKEN,
                                        "30000", redisson_field);
    ck_assert(r->elements == 2 && r->element[0]->integer == -1);
    return r->element[1]->integer;
}

struct channel {
    const char *name;
    long long wanted;
};

static bool has_listeners(void *arg)
{
    const struct channel *c = arg;
    const redisReply *r = test_redis_do(scene_redis, "PUBSUB", "NUMSUB", c->name);
    return r->elements == 2 && r->element[1]->integer == c->wanted;
}

/* ---- what Redisson writes */

START_TEST(a_redisson_hold_counts_as_held)
{
    start_x(NULL, "N", "");
    redisson_locks("N", "60000");
    scene_says(&x, "EBUSY", "on t trylock m");
    scene_says(&x, "ETIMEDOUT", "on t timedlock m %ld", test_ms(50));
    ck_assert_int_eq(test_redis_int(scene_redis, "HLEN", "N"), 1);
    ck_assert_int_eq(test_redis_int(scene_redis, "HGET", "N", redisson_field), 1);
}
END_TEST

START_TEST(a_redisson_hold_without_ttl_counts_as_held)
{
    start_x(NULL, "N", "");
    redisson_locks("N", NULL);
    scene_says(&x, "EBUSY", "on t trylock m");
    ck_assert_int_eq(scene_pttl("N"), -1);
}
END_TEST

START_TEST(a_redisson_release_wakes_the_waiter_long_before_the_ttl)
{
    static const char channel[] = "redisson_lock__channel:{N}";
    start_x(SCENE_TIMES(.presence = LONG_PRESENCE_MS), "N", "");
    redisson_locks("N", "60000");
    scene_worker_waits(&x, "N", 1);
    ck_assert(
        test_wait_until(has_listeners, &(struct channel){ channel, 1 }, SCENE_SOON_MS));
    test_redis_do(scene_redis, "DEL", "N");
    int64_t begin = test_now_ms();
    ck_assert_int_eq(test_redis_int(scene_redis, "PUBLISH", channel, "0"), 1);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(SOON_MS));
    /* the worker does not listen to the channel any more */
    ck_assert(
        test_wait_until(has_listeners, &(struct channel){ channel, 0 }, SCENE_SOON_MS));
}
END_TEST

START_TEST(a_redisson_release_of_a_name_with_a_tag_wakes_the_waiter_too)
{
    static const char channel[] = "redisson_lock__channel:{t}:N";
    start_x(SCENE_TIMES(.presence = LONG_PRESENCE_MS), "{t}:N", "");
    redisson_locks("{t}:N", "60000");
    scene_says(&x, "ok", "async t lock m");
    ck_assert(
        test_wait_until(has_listeners, &(struct channel){ channel, 1 }, SCENE_SOON_MS));
    test_redis_do(scene_redis, "DEL", "{t}:N");
    test_redis_do(scene_redis, "PUBLISH", channel, "0");
    ck_assert(scene_worker_got(&x, 1000));
}
END_TEST

START_TEST(a_redisson_lease_that_ends_is_taken_over)
{
    start_x(SCENE_TIMES(.presence = LONG_PRESENCE_MS), "N", "");
    redisson_locks("N", "300");
    int64_t begin = test_now_ms();
    scene_says(&x, "ok", "async t lock m");
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, 300 + test_ms(SOON_MS));
}
END_TEST

START_TEST(redisson_hold_is_neither_extended_nor_cut_by_a_former_holder)
{
    start_x(SCENE_TIMES(.lease = test_ms(LEASE_MS)), "N", "");
    scene_says(&x, "ok", "on t lock m");
    test_redis_do(scene_redis, "DEL", "N");
    redisson_locks("N", "50000");
    ck_assert(worker_news(&x, "event LOST N", LEASE_MS)); /* by the renewal */
    scene_says(&x, "ESTALE", "on t unlock m");
    ck_assert_int_eq(test_redis_int(scene_redis, "HGET", "N", redisson_field), 1);
    long long left = scene_pttl("N");
    ck_assert(left > 0 && left <= 50000);
}
END_TEST

/* ---- what rlock writes */

static bool is_digits(const char *text)
{
    for (const char *p = text; *p; p++)
        if (!isdigit((unsigned char)*p))
            return false;
    return *text != '\0';
}

START_TEST(a_hold_has_redissons_shape)
{
    char id[SCENE_ID_MAX];
    unsigned a, b, c, d, thread, ttl;
    unsigned long long e, acquisition;
    start_x(NULL, "N", "");
    scene_says(&x, "ok", "on t lock m");
    ck_assert_str_eq(test_redis_str(scene_redis, "TYPE", "N"), "hash");
    ck_assert(scene_holder("N", id));
    ck_assert_int_eq(sscanf(id, "%8x-%4x-%4x-%4x-%12llx:%u:%llu:m%u", &a, &b, &c, &d, &e,
                            &thread, &acquisition, &ttl),
                     8);
    ck_assert_str_eq(test_redis_str(scene_redis, "HGET", "N", id), "1");
    ck_assert_str_eq(test_redis_str(scene_redis, "HGET", "N", "mode"), "rlock:mutex");
    ck_assert(is_digits(test_redis_str(scene_redis, "HGET", "N", "since")));
    long long left = scene_pttl("N");
    ck_assert(left > 0 && left <= 30000);
}
END_TEST

static void check_release_message(const char *name, const char *channel)
{
    struct test_redis *waiter = test_redis_connect(scene_server.path);
    test_redis_do(waiter, "SUBSCRIBE", channel);
    start_x(NULL, name, "");
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "on t unlock m");
    const redisReply *r = test_redis_recv(waiter, SCENE_SOON_MS);
    ck_assert(r && r->elements == 3);
    ck_assert_str_eq(r->element[0]->str, "message");
    ck_assert_str_eq(r->element[2]->str, "0");
    ck_assert(!test_redis_recv(waiter, 50)); /* no more messages come */
    ck_assert(!test_redis_exists(scene_redis, name));
    test_redis_close(waiter);
    worker_end(&x);
}

START_TEST(a_release_that_nobody_waits_for_publishes_0)
{
    check_release_message("N", "redisson_lock__channel:{N}");
    check_release_message("{t}:N", "redisson_lock__channel:{t}:N");
}
END_TEST

START_TEST(a_hold_made_persistent_has_a_ttl_again_after_the_next_renewal)
{
    start_x(SCENE_TIMES(.lease = test_ms(LEASE_MS)), "N", "");
    scene_says(&x, "ok", "on t lock m");
    test_redis_do(scene_redis, "PERSIST", "N");
    int64_t end = test_now_ms() + test_ms(LEASE_MS);
    while (scene_pttl("N") == -1 && test_now_ms() < end)
        test_pause_ms(1);
    long long left = scene_pttl("N");
    ck_assert(left > 0 && left <= test_ms(LEASE_MS));
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

START_TEST(a_token_goes_on_from_redissons_counter_and_never_gets_a_ttl)
{
    static const char ahead[] = "8000000000000000000"; /* as of a version in ns */
    start_x(NULL, "N", "fencing=1");
    test_redis_do(scene_redis, "SET", TOKEN, "41");
    scene_says(&x, "ok", "on t lock m");
    ck_assert_int_gt(worker_number(&x, "on t token m"), 1000000000000000);
    ck_assert_int_lt(worker_number(&x, "on t token m"), EXACT);
    scene_says(&x, "ok", "on t unlock m");
    test_redis_do(scene_redis, "SET", TOKEN, ahead);
    scene_says(&x, "ok", "on t lock m");
    ck_assert_int_eq(worker_number(&x, "on t token m"), 8000000000000000001);
    ck_assert_str_eq(test_redis_str(scene_redis, "GET", TOKEN), "8000000000000000001");
    ck_assert_int_eq(scene_pttl(TOKEN), -1);
}
END_TEST

static bool is_given_back(void *arg)
{
    (void)arg;
    return !test_redis_exists(scene_redis, "N");
}

static void expect_next(int turn, long long *last, long long token)
{
    ck_assert_msg(token > *last && token < EXACT, "turn %d: %lld after %lld", turn, token,
                  *last);
    *last = token;
}

/* One or two holds of Redisson, then one or two of rlock, by turns. _i 1: those of rlock
 * are often one hold, which is retained. */
/* rule: S3 */
START_TEST(tokens_grow_across_holders_of_redisson_and_rlock)
{
    char url[TEST_URL_MAX + 32];
    long long last = 0;
    int passed_on = 0;
    snprintf(url, sizeof(url), "%s?retain=%d", scene_server.url, _i == 0 ? 0 : 20);
    scene_worker(&x, url, NULL, "N", "fencing=1");
    for (int turn = 0; turn < (_i == 0 ? 400 : 80); turn++) {
        for (int java = 0; java < 1 + turn % 2; java++) {
            expect_next(turn, &last, redisson_locks_fenced());
            test_redis_do(scene_redis, "DEL", "N");
            test_redis_do(scene_redis, "PUBLISH", "redisson_lock__channel:{N}", "0");
        }
        for (int c = 0; c < 1 + turn / 2 % 2; c++) {
            scene_says(&x, "ok", "on t lock m");
            expect_next(turn, &last, worker_number(&x, "on t token m"));
            passed_on += test_redis_int(scene_redis, "HGET", "N", "token") != last;
            scene_says(&x, "ok", "on t unlock m");
        }
        ck_assert(test_wait_until(is_given_back, NULL, SCENE_SOON_MS));
    }
    ck_assert_int_eq(passed_on > 0, _i == 1);
}
END_TEST

START_TEST(without_fencing_the_token_key_is_left_alone)
{
    start_x(NULL, "N", "");
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "on t unlock m");
    ck_assert_int_eq(test_redis_int(scene_redis, "DBSIZE"), 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("redisson");

    TCase *theirs = scene_tcase(s, "theirs", open_scene, close_scene);
    tcase_add_test(theirs, a_redisson_hold_counts_as_held);
    tcase_add_test(theirs, a_redisson_hold_without_ttl_counts_as_held);
    tcase_add_test(theirs, a_redisson_release_wakes_the_waiter_long_before_the_ttl);
    tcase_add_test(theirs, a_redisson_release_of_a_name_with_a_tag_wakes_the_waiter_too);
    tcase_add_test(theirs, a_redisson_lease_that_ends_is_taken_over);
    tcase_add_test(theirs, redisson_hold_is_neither_extended_nor_cut_by_a_former_holder);

    TCase *ours = scene_tcase(s, "ours", open_scene, close_scene);
    tcase_add_test(ours, a_hold_has_redissons_shape);
    tcase_add_test(ours, a_release_that_nobody_waits_for_publishes_0);
    tcase_add_test(ours, a_hold_made_persistent_has_a_ttl_again_after_the_next_renewal);
    tcase_add_test(ours, a_token_goes_on_from_redissons_counter_and_never_gets_a_ttl);
    tcase_add_loop_test(ours, tokens_grow_across_holders_of_redisson_and_rlock, 0, 2);
    tcase_add_test(ours, without_fencing_the_token_key_is_left_alone);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
