/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_api */
/* The codes of the mutex's functions: forms of lock, types, handles, names, threads.
 * Other claims about the mutex: test_mutex_lease.c (leases, tokens, losses),
 * test_client_api.c. */
#include "client/client.h" /* before the fixture, which has a variable of that name */

#include "fixture.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 60000, WAIT_MS = 60, LATE_MS = 100 /* L7 */, SLACK_MS = 200 };

static rlock_mutex_t m; /* of `client`, named "n", untouched type */

static void set_up(void)
{
    fixture_open();
    m = mutex_of(client, "n");
}

/* ---- the forms of lock */

enum form {
    F_LOCK,
    F_TRY,
    F_TIMED,
    F_REAL,
    F_MONO,
    F_LOCK_LEASE,
    F_TRY_LEASE,
    F_TIMED_LEASE,
    F_REAL_LEASE,
    F_MONO_LEASE,
    F_COUNT
};

static bool is_try(int form)
{
    return form == F_TRY || form == F_TRY_LEASE;
}

static bool is_timed(int form)
{
    return form != F_LOCK && form != F_LOCK_LEASE && !is_try(form);
}

static bool is_mono(int form)
{
    return form == F_MONO || form == F_MONO_LEASE;
}

static int take_at(int form, rlock_mutex_t *mutex, const struct timespec *at, long lease)
{
    switch (form) {
    case F_LOCK:
        return rlock_mutex_lock(mutex);
    case F_TRY:
        return rlock_mutex_trylock(mutex);
    case F_TIMED:
        return rlock_mutex_timedlock(mutex, at);
    case F_REAL:
        return rlock_mutex_clocklock(mutex, CLOCK_REALTIME, at);
    case F_MONO:
        return rlock_mutex_clocklock(mutex, CLOCK_MONOTONIC, at);
    case F_LOCK_LEASE:
        return rlock_mutex_lock_lease(mutex, lease);
    case F_TRY_LEASE:
        return rlock_mutex_trylock_lease(mutex, lease);
    case F_TIMED_LEASE:
        return rlock_mutex_timedlock_lease(mutex, at, lease);
    case F_REAL_LEASE:
        return rlock_mutex_clocklock_lease(mutex, CLOCK_REALTIME, at, lease);
    default:
        return rlock_mutex_clocklock_lease(mutex, CLOCK_MONOTONIC, at, lease);
    }
}

static int take(int form, rlock_mutex_t *mutex, long wait_ms)
{
    struct timespec at =
        test_in_ms(is_mono(form) ? CLOCK_MONOTONIC : CLOCK_REALTIME, wait_ms);
    return take_at(form, mutex, &at, LEASE_MS);
}

START_TEST(every_form_takes_a_free_lock)
{
    OK(take(_i, &m, 5000));
    ck_assert(test_redis_exists(redis, "n"));
    ck_assert_int_eq(count_of(&m), 1);
    OK(rlock_mutex_unlock(&m));
    ck_assert(!test_redis_exists(redis, "n"));
    ck_assert_int_eq(count_of(&m), 0);
}
END_TEST

START_TEST(every_form_reenters_without_a_round_trip)
{
    OK(rlock_mutex_lock(&m));
    uint64_t trips = stats_of(client).round_trips;
    OK(take(_i, &m, 0));
    ck_assert_int_eq(count_of(&m), 2);
    OK(rlock_mutex_unlock(&m));
    ck_assert_uint_eq(stats_of(client).round_trips, trips);
    ck_assert(test_redis_exists(redis, "n"));
    OK(rlock_mutex_unlock(&m));
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

/* Holds the lock for another client, or in another thread of this one. */
static struct task holder;
static rlock_mutex_t theirs;
static atomic_bool let_go;

static int run_hold(void *mutex)
{
    int rc = rlock_mutex_lock(mutex);
    while (rc == 0 && !atomic_load(&let_go))
        test_pause_ms(1);
    return rc != 0 ? rc : rlock_mutex_unlock(mutex);
}

static void hold_by_thread(rlock_client_t *c)
{
    theirs = mutex_of(c, "n");
    atomic_store(&let_go, false);
    task_start(&holder, run_hold, &theirs);
    ck_assert(wait_key("n", true, 5000));
}

static void end_hold(void)
{
    atomic_store(&let_go, true);
    OK(task_join(&holder));
}

static void assert_busy(int form)
{
    long wait = test_ms(WAIT_MS); /* a checking tool makes the first connection slow */
    int64_t start = test_now_ms();
    EXPECT(take(form, &m, wait), is_try(form) ? EBUSY : ETIMEDOUT);
    int64_t took = test_now_ms() - start;
    if (is_timed(form))
        ck_assert_int_ge(took, wait - 1);
    ck_assert_int_le(took, wait + LATE_MS + test_ms(SLACK_MS));
}

START_TEST(held_elsewhere_is_EBUSY_or_ETIMEDOUT)
{
    if (_i == F_LOCK || _i == F_LOCK_LEASE)
        return;
    hold_by_thread(fixture_other());
    assert_busy(_i);
    end_hold();
    OK(take(_i, &m, 5000));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(held_by_another_thread_is_EBUSY_or_ETIMEDOUT)
{
    if (_i == F_LOCK || _i == F_LOCK_LEASE)
        return;
    hold_by_thread(client);
    assert_busy(_i);
    end_hold();
    OK(take(_i, &m, 5000));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

static int form_of_waiter;

static int run_take_and_unlock(void *mutex)
{
    int rc = take(form_of_waiter, mutex, test_ms(20000));
    return rc != 0 ? rc : rlock_mutex_unlock(mutex);
}

START_TEST(waiting_form_gets_the_lock_when_it_is_released)
{
    struct task waiter;
    if (is_try(_i))
        return;
    rlock_client_t *from = _i % 2 ? client : fixture_other();
    theirs = mutex_of(from, "n");
    OK(rlock_mutex_lock(&theirs));
    form_of_waiter = _i;
    task_start(&waiter, run_take_and_unlock, &m);
    ck_assert(wait_waiters(client, 1));
    OK(rlock_mutex_unlock(&theirs));
    OK(task_join(&waiter));
}
END_TEST

START_TEST(past_deadline_makes_one_attempt)
{
    static const struct timespec epoch = { 0, 0 }, before = { -5, 0 };
    if (!is_timed(_i))
        return;
    OK(take_at(_i, &m, &epoch, LEASE_MS));
    OK(rlock_mutex_unlock(&m));
    OK(take_at(_i, &m, &before, LEASE_MS));
    OK(rlock_mutex_unlock(&m));
    hold_by_thread(fixture_other());
    int64_t start = test_now_ms();
    EXPECT(take_at(_i, &m, &epoch, LEASE_MS), ETIMEDOUT);
    EXPECT(take_at(_i, &m, &before, LEASE_MS), ETIMEDOUT);
    ck_assert_int_le(test_now_ms() - start, test_ms(SLACK_MS));
    /* the calls leave no waiter in the queue */
    ck_assert(!test_redis_exists(redis, "rlock:{n}:queue"));
    ck_assert_uint_eq(stats_of(client).timeouts, 2);
    end_hold();
}
END_TEST

START_TEST(invalid_nsec_is_EINVAL_only_when_it_would_wait)
{
    static const long bad[] = { -1, 1000000000, LONG_MAX, LONG_MIN };
    if (!is_timed(_i))
        return;
    for (size_t i = 0; i < 4; i++) {
        struct timespec at =
            test_in_ms(is_mono(_i) ? CLOCK_MONOTONIC : CLOCK_REALTIME, 5000);
        at.tv_nsec = bad[i];
        OK(take_at(_i, &m, &at, LEASE_MS));
        OK(take_at(_i, &m, &at, LEASE_MS)); /* a re-entry does not wait, either */
        OK(rlock_mutex_unlock(&m));
        OK(rlock_mutex_unlock(&m));
    }
    hold_by_thread(fixture_other());
    for (size_t i = 0; i < 4; i++) {
        struct timespec at = { 0, bad[i] };
        EXPECT(take_at(_i, &m, &at, LEASE_MS), EINVAL);
    }
    end_hold();
}
END_TEST

START_TEST(far_deadlines_saturate)
{
    static const struct timespec far = { (time_t)(((uint64_t)1 << 63) - 1), 999999999 };
    if (!is_timed(_i))
        return;
    OK(take_at(_i, &m, &far, LEASE_MS));
    OK(rlock_mutex_unlock(&m));
    hold_by_thread(fixture_other());
    static struct task waiter;
    form_of_waiter = _i;
    task_start(&waiter, run_take_and_unlock, &m);
    ck_assert(wait_waiters(client, 1));
    end_hold();
    OK(task_join(&waiter));
}
END_TEST

START_TEST(other_clocks_and_NULL_deadlines_are_EINVAL)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, 1000);
    EXPECT(rlock_mutex_clocklock(&m, CLOCK_BOOTTIME, &at), EINVAL);
    EXPECT(rlock_mutex_clocklock(&m, CLOCK_PROCESS_CPUTIME_ID, &at), EINVAL);
    EXPECT(rlock_mutex_clocklock(&m, (clockid_t)-1, &at), EINVAL);
    EXPECT(rlock_mutex_clocklock_lease(&m, CLOCK_BOOTTIME, &at, 1000), EINVAL);
    EXPECT(rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, NULL), EINVAL);
    EXPECT(rlock_mutex_timedlock(&m, NULL), EINVAL);
    EXPECT(rlock_mutex_timedlock_lease(&m, NULL, 1000), EINVAL);
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

/* ---- types */

enum { UNTOUCHED = -1, PLAIN = -2, NO_ATTR = -3 };

/* Asserts what lock, trylock and timedlock answer to the holder. */
static void assert_again(const char *what, rlock_mutex_t *mutex, int lock, int try_,
                         int timed)
{
    int64_t start = test_now_ms();
    OK(rlock_mutex_lock(mutex));
    int form_rc[] = { take(F_LOCK, mutex, 0),        take(F_LOCK_LEASE, mutex, 0),
                      take(F_TRY, mutex, 0),         take(F_TRY_LEASE, mutex, 0),
                      take(F_TIMED, mutex, 20),      take(F_MONO, mutex, 20),
                      take(F_REAL_LEASE, mutex, 20), take(F_MONO_LEASE, mutex, 20) };
    int wanted[] = { lock, lock, try_, try_, timed, timed, timed, timed };
    int levels = 1;
    for (int i = 0; i < 8; i++) {
        ck_assert_msg(form_rc[i] == wanted[i], "%s, form %d: %s", what, i,
                      rlock_strerror(form_rc[i]));
        levels += form_rc[i] == 0;
    }
    if (timed == ETIMEDOUT)
        ck_assert_int_ge(test_now_ms() - start, 4 * 20 - 4);
    ck_assert_int_eq(count_of(mutex), levels);
    while (levels-- > 0)
        OK(rlock_mutex_unlock(mutex));
    EXPECT(rlock_mutex_unlock(mutex), EPERM);
}

static rlock_mutex_t by_type(int type)
{
    return typed_mutex(client, "n", type);
}

START_TEST(recursive_gets_a_level_more)
{
    rlock_mutex_t r = by_type(RLOCK_MUTEX_RECURSIVE);
    assert_again("recursive", &r, 0, 0, 0);
}
END_TEST

START_TEST(errorcheck_is_EDEADLK_and_EBUSY)
{
    rlock_mutex_t e = by_type(RLOCK_MUTEX_ERRORCHECK);
    assert_again("errorcheck", &e, EDEADLK, EBUSY, EDEADLK);
}
END_TEST

START_TEST(normal_is_EDEADLK_EBUSY_and_ETIMEDOUT_at_the_deadline)
{
    static const int types[] = { RLOCK_MUTEX_NORMAL, RLOCK_MUTEX_DEFAULT,
                                 RLOCK_MUTEX_ADAPTIVE_NP };
    rlock_mutex_t n = by_type(types[_i]);
    assert_again("normal", &n, EDEADLK, EBUSY, ETIMEDOUT);
}
END_TEST

START_TEST(normal_with_invalid_nsec_is_EINVAL_for_the_holder)
{
    struct timespec bad = { 0, 1000000000 };
    rlock_mutex_t n = by_type(RLOCK_MUTEX_NORMAL);
    OK(rlock_mutex_lock(&n));
    EXPECT(rlock_mutex_timedlock(&n, &bad), EINVAL);
    EXPECT(rlock_mutex_clocklock(&n, CLOCK_MONOTONIC, &bad), EINVAL);
    OK(rlock_mutex_unlock(&n));
}
END_TEST

START_TEST(untouched_type_is_the_clients)
{
    static const struct {
        const char *parameters;
        int type, lock, try_, timed;
    } rows[] = {
        { "", RLOCK_MUTEX_RECURSIVE, 0, 0, 0 },
        { "?mutextype=recursive", RLOCK_MUTEX_RECURSIVE, 0, 0, 0 },
        { "?mutextype=errorcheck", RLOCK_MUTEX_ERRORCHECK, EDEADLK, EBUSY, EDEADLK },
        { "?mutextype=normal", RLOCK_MUTEX_NORMAL, EDEADLK, EBUSY, ETIMEDOUT },
    };
    reopen_with(rows[_i].parameters);
    rlock_mutexattr_t attr;
    int told = -1;
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, client));
    OK(rlock_mutexattr_gettype(&attr, &told));
    ck_assert_int_eq(told, rows[_i].type);
    OK(rlock_mutexattr_destroy(&attr));
    rlock_mutex_t untouched = mutex_of(client, "n");
    assert_again("untouched", &untouched, rows[_i].lock, rows[_i].try_, rows[_i].timed);
    rlock_mutex_t r = by_type(RLOCK_MUTEX_RECURSIVE), e = by_type(RLOCK_MUTEX_ERRORCHECK),
                  n = by_type(RLOCK_MUTEX_NORMAL);
    assert_again("recursive", &r, 0, 0, 0);
    assert_again("errorcheck", &e, EDEADLK, EBUSY, EDEADLK);
    assert_again("normal", &n, EDEADLK, EBUSY, ETIMEDOUT);
}
END_TEST

/* Asserts which type a fresh attribute shows. */
static void assert_untouched(int type)
{
    rlock_mutexattr_t attr;
    int told = -1;
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_gettype(&attr, &told));
    ck_assert_int_eq(told, type);
    OK(rlock_mutexattr_destroy(&attr));
}

START_TEST(static_initializers_have_their_types)
{
    static rlock_mutex_t plain = RLOCK_MUTEX_INITIALIZER("n");
#ifndef AS_FAIR /* which has only one initializer */
    static rlock_mutex_t r = RLOCK_RECURSIVE_MUTEX_INITIALIZER_NP("n");
    static rlock_mutex_t e = RLOCK_ERRORCHECK_MUTEX_INITIALIZER_NP("n");
#endif
    rlock_mutex_t no_attr;
    char url[TEST_URL_MAX + 32];

    snprintf(url, sizeof(url), "%s?mutextype=normal", server.url);
    OK(rlock_client_setdefault(url, NULL));
    assert_untouched(RLOCK_MUTEX_NORMAL); /* the client is not open yet */
    OK(rlock_mutex_init(&no_attr, NULL, "n"));
    assert_again("plain", &plain, EDEADLK, EBUSY, ETIMEDOUT);
    assert_again("no attr", &no_attr, EDEADLK, EBUSY, ETIMEDOUT);
#ifndef AS_FAIR
    assert_again("recursive", &r, 0, 0, 0);
    assert_again("errorcheck", &e, EDEADLK, EBUSY, EDEADLK);
#endif
    assert_untouched(RLOCK_MUTEX_NORMAL);
    OK(rlock_client_close(NULL));
    OK(rlock_client_setdefault(NULL, NULL));
    assert_untouched(RLOCK_MUTEX_RECURSIVE);
}
END_TEST

START_TEST(two_handles_of_one_name_are_one_lock)
{
    rlock_mutex_t r = by_type(RLOCK_MUTEX_RECURSIVE), e = by_type(RLOCK_MUTEX_ERRORCHECK);
    rlock_mutex_t copy = r;
    OK(rlock_mutex_lock(&r));
    EXPECT(rlock_mutex_lock(&e), EDEADLK); /* the handle decides the type */
    OK(rlock_mutex_lock(&copy));
    ck_assert_int_eq(count_of(&e), 2);
    OK(rlock_mutex_unlock(&e));
    OK(rlock_mutex_unlock(&r));
}
END_TEST

START_TEST(level_above_INT_MAX_is_EAGAIN)
{
    OK(rlock_mutex_lock(&m));
    struct rlk_list *first = rlk_list_first(&rlk_thread_record->holds);
    struct rlk_holder *part = RLK_CONTAINER_OF(first, struct rlk_holder, thread_link);
    part->levels.writes = INT_MAX - 1;
    OK(rlock_mutex_lock(&m));
    EXPECT(rlock_mutex_lock(&m), EAGAIN);
    EXPECT(rlock_mutex_trylock(&m), EAGAIN);
    ck_assert_int_eq(count_of(&m), INT_MAX);
    part->levels.writes = 1;
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- strangers */

static int run_stranger(void *mutex)
{
    uint64_t token = 7;
    long ms = 7;
    unsigned count = 7;
    rlock_state_t state = RLOCK_LOST;

    if (rlock_mutex_unlock(mutex) != EPERM || rlock_mutex_extend(mutex, 1000) != EPERM ||
        rlock_mutex_extend(mutex, 0) != EPERM ||
        rlock_mutex_gettoken(mutex, &token) != EPERM || token != 7 ||
        rlock_mutex_getremaining(mutex, &ms) != EPERM || ms != 7)
        return 1;
    if (rlock_mutex_getholdcount(mutex, &count) != 0 || count != 0 ||
        rlock_mutex_getstate(mutex, &state) != 0 || state != RLOCK_UNHELD)
        return 2;
    return rlock_mutex_trylock(mutex) == EBUSY ? 0 : 3;
}

START_TEST(stranger_gets_EPERM_and_changes_nothing)
{
    int type = _i - 1; /* the default, normal, recursive, errorcheck */
    rlock_mutex_t mine = typed_mutex(client, "n", type);
    EXPECT(rlock_mutex_unlock(&mine), EPERM);
    OK(rlock_mutex_lock(&mine));
    ck_assert_int_eq(in_thread(run_stranger, &mine), 0);
    ck_assert_int_eq(count_of(&mine), 1);
    ck_assert_int_eq(state_of(&mine), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&mine));
    EXPECT(rlock_mutex_unlock(&mine), EPERM);
}
END_TEST

START_TEST(handle_of_another_client_is_another_holder)
{
    rlock_mutex_t foreign = mutex_of(fixture_other(), "n");
    OK(rlock_mutex_lock(&m));
    EXPECT(rlock_mutex_unlock(&foreign), EPERM);
    EXPECT(rlock_mutex_trylock(&foreign), EBUSY);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- threads of one process */

enum { QUEUE = 12, CROWD = 1000 };

/* Connections of threads that ask. Of those that want a mutex, one asks; of those that
 * want a fair lock, each does, up to the maximum of connections of a client. */
#ifdef AS_FAIR
enum { CALLERS = 16 };
#else
enum { CALLERS = 1 };
#endif

static rlock_mutex_t crowd_mutex;
static atomic_int order[QUEUE], next_place;

static int run_in_line(void *place)
{
    int rc = rlock_mutex_lock(&crowd_mutex);
    if (rc != 0)
        return rc;
    atomic_store((atomic_int *)place, atomic_fetch_add(&next_place, 1));
    return rlock_mutex_unlock(&crowd_mutex);
}

START_TEST(local_threads_get_it_in_the_order_of_their_calls)
{
    static struct task tasks[QUEUE];
    crowd_mutex = m;
    atomic_store(&next_place, 0);
    OK(rlock_mutex_lock(&m));
    for (int i = 0; i < QUEUE; i++) {
        task_start(&tasks[i], run_in_line, &order[i]);
        ck_assert(wait_in_line(client, (unsigned long)i + 1));
    }
    OK(rlock_mutex_unlock(&m));
    for (int i = 0; i < QUEUE; i++)
        OK(task_join(&tasks[i]));
    for (int i = 0; i < QUEUE; i++)
        ck_assert_int_eq(atomic_load(&order[i]), i);
}
END_TEST

START_TEST(crowd_of_threads_opens_no_connections)
{
    static struct task tasks[CROWD];
    /* Valgrind has a limit of 500 threads */
    int crowd = (int)(CROWD / test_ms(1)) < 100 ? 100 : (int)(CROWD / test_ms(1));
    crowd_mutex = m;
    OK(rlock_mutex_lock(&m));
    for (int i = 0; i < crowd; i++)
        task_start(&tasks[i], run_pair, &crowd_mutex);
    ck_assert(wait_in_line(client, (unsigned long)crowd));
    /* the callers', the subscriber's and the watchdog's connections, and this test's
     * own */
    ck_assert_int_le(test_redis_info(redis, "connected_clients"), CALLERS + 3);
    OK(rlock_mutex_unlock(&m));
    for (int i = 0; i < crowd; i++)
        OK(task_join(&tasks[i]));
    rlock_stats_t stats = stats_of(client);
    ck_assert_uint_eq(stats.acquisitions, (unsigned)crowd + 1);
    ck_assert_uint_le(stats.connects, 2 + 2 + CALLERS);
    ck_assert_uint_eq(stats.waiters_now, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mutex api");
    TCase *tc = tcase_create("forms");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_loop_test(tc, every_form_takes_a_free_lock, 0, F_COUNT);
    tcase_add_loop_test(tc, every_form_reenters_without_a_round_trip, 0, F_COUNT);
    tcase_add_loop_test(tc, held_elsewhere_is_EBUSY_or_ETIMEDOUT, F_TRY, F_COUNT);
    tcase_add_loop_test(tc, held_by_another_thread_is_EBUSY_or_ETIMEDOUT, F_TRY, F_COUNT);
    tcase_add_loop_test(tc, waiting_form_gets_the_lock_when_it_is_released, 0, F_COUNT);
    tcase_add_loop_test(tc, past_deadline_makes_one_attempt, F_TIMED, F_COUNT);
    tcase_add_loop_test(tc, invalid_nsec_is_EINVAL_only_when_it_would_wait, F_TIMED,
                        F_COUNT);
    tcase_add_loop_test(tc, far_deadlines_saturate, F_TIMED, F_COUNT);
    tcase_add_test(tc, other_clocks_and_NULL_deadlines_are_EINVAL);
    suite_add_tcase(suite, tc);

    tc = tcase_create("types");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, recursive_gets_a_level_more);
    tcase_add_test(tc, errorcheck_is_EDEADLK_and_EBUSY);
    tcase_add_loop_test(tc, normal_is_EDEADLK_EBUSY_and_ETIMEDOUT_at_the_deadline, 0, 3);
    tcase_add_test(tc, normal_with_invalid_nsec_is_EINVAL_for_the_holder);
    tcase_add_loop_test(tc, untouched_type_is_the_clients, 0, 4);
    tcase_add_test(tc, static_initializers_have_their_types);
    tcase_add_test(tc, two_handles_of_one_name_are_one_lock);
    tcase_add_test(tc, level_above_INT_MAX_is_EAGAIN);
    suite_add_tcase(suite, tc);

    tc = tcase_create("threads");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_loop_test(tc, stranger_gets_EPERM_and_changes_nothing, 0, 4);
    tcase_add_test(tc, handle_of_another_client_is_another_holder);
    tcase_add_test(tc, local_threads_get_it_in_the_order_of_their_calls);
    tcase_add_test(tc, crowd_of_threads_opens_no_connections);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
