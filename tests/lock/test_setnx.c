/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What doc/MIGRATING.md says of rlock beside locks made by hand (SET NX PX, and a script
 * that deletes) under one name: they exclude each other, and what each of them finds.
 */
#include "fixture.h"

#include <string.h>
#include <time.h>

#define QUEUE "rlock:{n}:queue"

enum { SOON_MS = 10000, ROUNDS = 100, SALE_US = 200, POLL_US = 500 };

static const char unlock_if_mine[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
    "return 0";

/* An old program's attempt and its unlock. */
static bool old_takes(struct test_redis *r, const char *me)
{
    const redisReply *reply = test_redis_do(r, "SET", "n", me, "NX", "PX", "60000");
    return reply->type == REDIS_REPLY_STATUS;
}

static const redisReply *old_unlocks(struct test_redis *r, const char *me)
{
    return test_redis_try(r, "EVAL", unlock_if_mine, "1", "n", me);
}

/* ---- an old program holds it */

START_TEST(an_old_hold_is_EPROTO_and_stays)
{
    rlock_mutex_t m = mutex_of(client, "n");
    struct timespec past = { 0, 0 };

    ck_assert(old_takes(redis, "old"));
    EXPECT(rlock_mutex_trylock(&m), EPROTO);
    EXPECT(rlock_mutex_timedlock(&m, &past), EPROTO);
    EXPECT(rlock_mutex_lock(&m), EPROTO);
    ck_assert_str_eq(test_redis_str(redis, "GET", "n"), "old");
    ck_assert_int_eq(old_unlocks(redis, "old")->integer, 1);
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(waiter_gets_EPROTO_when_an_old_program_takes_the_lock)
{
    rlock_mutex_t m = mutex_of(client, "n"), theirs = mutex_of(fixture_other(), "n");
    struct task waiter;

    OK(rlock_mutex_lock(&theirs));
    task_start(&waiter, run_lock, &m);
    ck_assert(wait_size(QUEUE, 1));
    /* as if the hold had ended, and the old program had come first */
    test_redis_do(redis, "SET", "n", "old", "PX", "60000");
    ck_assert(task_ends(&waiter, SOON_MS));
    ck_assert_int_eq(task_join(&waiter), EPROTO);
    test_redis_do(redis, "DEL", "n");
    EXPECT(rlock_mutex_unlock(&theirs), ESTALE);
}
END_TEST

/* ---- rlock holds it */

START_TEST(hold_blocks_old_programs)
{
    rlock_mutex_t m = mutex_of(client, "n");

    OK(rlock_mutex_lock(&m));
    ck_assert(!old_takes(redis, "old"));
    const redisReply *reply = old_unlocks(redis, "old");
    ck_assert_int_eq(reply->type, REDIS_REPLY_ERROR);
    ck_assert_ptr_nonnull(strstr(reply->str, "WRONGTYPE"));
    OK(rlock_mutex_unlock(&m));
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

START_TEST(unconditional_DEL_is_reported_as_a_loss)
{
    rlock_mutex_t m = mutex_of(client, "n");

    OK(rlock_mutex_lock(&m));
    test_redis_do(redis, "DEL", "n");
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

START_TEST(SET_without_NX_is_reported_by_unlock)
{
    rlock_mutex_t m = mutex_of(client, "n");

    OK(rlock_mutex_lock(&m));
    test_redis_do(redis, "SET", "n", "old", "PX", "60000");
    EXPECT(rlock_mutex_unlock(&m), EPROTO);
    ck_assert_str_eq(test_redis_str(redis, "GET", "n"), "old");
}
END_TEST

START_TEST(SET_without_NX_is_reported_within_the_lease)
{
    reopen_with("?lease=1000");
    rlock_mutex_t m = mutex_of(client, "n");

    OK(rlock_mutex_lock(&m));
    test_redis_do(redis, "SET", "n", "old", "PX", "60000");
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    ck_assert_str_eq(test_redis_str(redis, "GET", "n"), "old");
}
END_TEST

/* ---- both run */

/* Atomic, because nothing that this process could see puts old and new programs in an
 * order. */
static atomic_int inside, together, sold;

static void pause_us(long us)
{
    nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

static void sell(void)
{
    if (atomic_fetch_add(&inside, 1) != 0)
        together++;
    int before = sold;
    pause_us(SALE_US);
    sold = before + 1;
    inside--;
}

static int old_program(void *me)
{
    struct test_redis *r = test_redis_connect(server.path);
    int rc = 0;

    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        while (!old_takes(r, me))
            pause_us(POLL_US);
        sell();
        const redisReply *reply = old_unlocks(r, me);
        rc = !reply || reply->type != REDIS_REPLY_INTEGER || reply->integer != 1;
    }
    test_redis_close(r);
    return rc;
}

/* As in doc/MIGRATING.md. */
static int new_program(void *mutex)
{
    int rc = 0;

    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        while ((rc = rlock_mutex_lock(mutex)) == EPROTO)
            pause_us(POLL_US);
        if (rc != 0)
            break;
        sell();
        rc = rlock_mutex_unlock(mutex);
    }
    return rc;
}

START_TEST(old_and_new_programs_exclude_each_other)
{
    reopen_with("?handoffms=0");
    rlock_mutex_t m = mutex_of(client, "n"), theirs = mutex_of(fixture_other(), "n");
    struct task tasks[4];
    char names[2][8] = { "old 1", "old 2" };

    task_start(&tasks[0], old_program, names[0]);
    task_start(&tasks[1], new_program, &m);
    task_start(&tasks[2], old_program, names[1]);
    task_start(&tasks[3], new_program, &theirs);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(task_join(&tasks[i]), 0);
    ck_assert_int_eq(together, 0);
    ck_assert_int_eq(sold, 4 * ROUNDS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("setnx");
    TCase *tc = tcase_create("setnx");

    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, fixture_open, fixture_close);
    tcase_add_test(tc, an_old_hold_is_EPROTO_and_stays);
    tcase_add_test(tc, waiter_gets_EPROTO_when_an_old_program_takes_the_lock);
    tcase_add_test(tc, hold_blocks_old_programs);
    tcase_add_test(tc, unconditional_DEL_is_reported_as_a_loss);
    tcase_add_test(tc, SET_without_NX_is_reported_by_unlock);
    tcase_add_test(tc, SET_without_NX_is_reported_within_the_lease);
    tcase_add_test(tc, old_and_new_programs_exclude_each_other);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
