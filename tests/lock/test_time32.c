/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose time_t has 32 bits, on systems that have both sizes (glibc on systems
 * of 32 bits). Functions that take a struct timespec must read this program's, although
 * the library's time_t has 64 bits. All other tests are programs with 64 bits. Other
 * systems have only one size.
 */
#undef _TIME_BITS
#undef _FILE_OFFSET_BITS

#include <rlock.h>

#include "fixture.h"

#include <stdio.h>
#include <string.h>

enum { SHORT_MS = 60, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

/* Handles of the lock "n", which another client holds. */
static rlock_mutex_t mutex, their_mutex;
static rlock_fair_t fair;
static rlock_rwlock_t rwlock;

static void open_handles(void)
{
    rlock_mutexattr_t attr;
    rlock_rwlockattr_t rwattr;

    fixture_open();
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_rwlockattr_init(&rwattr));
    OK(rlock_mutexattr_setclient(&attr, client));
    OK(rlock_rwlockattr_setclient(&rwattr, client));
    OK(rlock_mutex_init(&mutex, &attr, "n"));
    OK(rlock_fair_init(&fair, &attr, "n"));
    OK(rlock_rwlock_init(&rwlock, &rwattr, "n"));
    OK(rlock_mutexattr_destroy(&attr));
    OK(rlock_rwlockattr_destroy(&rwattr));
    their_mutex = mutex_of(fixture_other(), "n");
    OK(rlock_mutex_lock(&their_mutex));
}

static void close_handles(void)
{
    OK(rlock_mutex_unlock(&their_mutex));
    fixture_close();
}

#define TIMED(type, verb)                                                                \
    static int type##_timed##verb(const struct timespec *t)                              \
    {                                                                                    \
        return rlock_##type##_timed##verb(&type, t);                                     \
    }                                                                                    \
    static int type##_timed##verb##_lease(const struct timespec *t)                      \
    {                                                                                    \
        return rlock_##type##_timed##verb##_lease(&type, t, 60000);                      \
    }                                                                                    \
    static int type##_clock##verb(const struct timespec *t)                              \
    {                                                                                    \
        return rlock_##type##_clock##verb(&type, CLOCK_MONOTONIC, t);                    \
    }                                                                                    \
    static int type##_clock##verb##_lease(const struct timespec *t)                      \
    {                                                                                    \
        return rlock_##type##_clock##verb##_lease(&type, CLOCK_MONOTONIC, t, 60000);     \
    }
TIMED(mutex, lock)
TIMED(fair, lock)
TIMED(rwlock, rdlock)
TIMED(rwlock, wrlock)

static int waitfree(const struct timespec *t)
{
    return rlock_waitfree(client, "n", t);
}

#define ROWS(type, verb)                                                                 \
    { #type "_timed" #verb, CLOCK_REALTIME, type##_timed##verb },                        \
        { #type "_timed" #verb "_lease", CLOCK_REALTIME, type##_timed##verb##_lease },   \
        { #type "_clock" #verb, CLOCK_MONOTONIC, type##_clock##verb },                   \
    {                                                                                    \
#type "_clock" #verb "_lease", CLOCK_MONOTONIC, type##_clock##verb##_lease       \
    }
static const struct {
    const char *name;
    clockid_t clock;
    int (*call)(const struct timespec *abstime);
} rows[] = { ROWS(mutex, lock),
             ROWS(fair, lock),
             ROWS(rwlock, rdlock),
             ROWS(rwlock, wrlock),
             { "waitfree", CLOCK_REALTIME, waitfree } };
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * NS_PER_MS;
    if (t.tv_nsec >= NS_PER_S) {
        t.tv_nsec -= NS_PER_S;
        t.tv_sec++;
    }
    return t;
}

START_TEST(a_deadline_ends_the_wait_in_time)
{
    int64_t begin = test_now_ms(); /* first: the machine may stand still behind it */
    struct timespec t = in_ms(rows[_i].clock, SHORT_MS);
    expect(rows[_i].call(&t), ETIMEDOUT, rows[_i].name, __LINE__);
    int64_t took = test_now_ms() - begin;
    /* the two clocks were read at different times */
    ck_assert_int_ge(took, SHORT_MS - 2);
    ck_assert_int_lt(took, SHORT_MS + test_ms(1000));
}
END_TEST

START_TEST(a_deadline_that_has_passed_is_one)
{
    struct timespec t = { .tv_sec = -1 };
    expect(rows[_i].call(&t), ETIMEDOUT, rows[_i].name, __LINE__);
}
END_TEST

START_TEST(a_tv_nsec_out_of_range_is_seen)
{
    struct timespec t = in_ms(rows[_i].clock, SHORT_MS);
    t.tv_nsec = NS_PER_S;
    expect(rows[_i].call(&t), EINVAL, rows[_i].name, __LINE__);
    t.tv_nsec = -1;
    expect(rows[_i].call(&t), EINVAL, rows[_i].name, __LINE__);
}
END_TEST

/* rlock_waitfree takes NULL as: no deadline. */
START_TEST(no_deadline_is_refused)
{
    expect(rows[_i].call(NULL), EINVAL, rows[_i].name, __LINE__);
}
END_TEST

START_TEST(waitfree_without_a_deadline_waits_until_it_is_free)
{
    OK(rlock_mutex_unlock(&their_mutex));
    OK(waitfree(NULL));
    OK(rlock_mutex_lock(&their_mutex));
}
END_TEST

/* Prints what this program's time_t is, for readers of the log. */
START_TEST(handles_are_those_of_every_other_program)
{
    printf("time_t has %zu bits, a pointer %zu\n", 8 * sizeof(time_t),
           8 * sizeof(void *));
    ck_assert_uint_eq(sizeof(rlock_mutex_t), 256);
    ck_assert_uint_eq(_Alignof(rlock_mutex_t), 8);
    ck_assert_uint_eq(offsetof(rlock_mutex_t, rlk.rlk_client), 8);
    ck_assert_uint_eq(offsetof(rlock_mutex_t, rlk.rlk_lease_ms), 16);
    ck_assert_uint_eq(offsetof(rlock_mutex_t, rlk.rlk_name), 32);
    ck_assert_uint_eq(sizeof(rlock_mutexattr_t), 128);
    ck_assert_uint_eq(offsetof(rlock_mutexattr_t, rlk.rlk_client), 32);
    ck_assert_uint_eq(sizeof(rlock_clientattr_t), 4096);
    ck_assert_uint_eq(sizeof(rlock_stats_t), 4096);
    ck_assert_uint_eq(sizeof(rlock_histogram_t), 43 * 8);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("time_t of 32 bits");
    TCase *tc = tcase_create("deadlines");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, open_handles, close_handles);
    tcase_add_loop_test(tc, a_deadline_ends_the_wait_in_time, 0, ROW_COUNT);
    tcase_add_loop_test(tc, a_deadline_that_has_passed_is_one, 0, ROW_COUNT);
    tcase_add_loop_test(tc, a_tv_nsec_out_of_range_is_seen, 0, ROW_COUNT);
    tcase_add_loop_test(tc, no_deadline_is_refused, 0, ROW_COUNT - 1);
    tcase_add_test(tc, waitfree_without_a_deadline_waits_until_it_is_free);
    suite_add_tcase(s, tc);
    tc = tcase_create("layout");
    tcase_add_test(tc, handles_are_those_of_every_other_program);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
