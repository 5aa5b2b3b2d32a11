/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that many threads open, use first and close at once; above all the default
 * client, which its first use opens. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CROWD = 64, OPENERS = 16, CLOSED_OVER = 3, UUID_LEN = 36 };

static struct {
    struct task task[CROWD];
    rlock_mutex_t handle[CROWD];
    atomic_bool go;
} crowd;

/* A server, and no client: the process of each test is new, so that the default client
 * was never opened. */
static void set_up(void)
{
    test_server_reset(&server);
    redis = test_redis_connect(server.path);
    setenv("RLOCK_URL", server.url, 1);
    memset(&crowd, 0, sizeof(crowd));
    for (int i = 0; i < CROWD; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        OK(rlock_mutex_init(&crowd.handle[i], NULL, name));
    }
}

static void tear_down(void)
{
    OK(rlock_client_close(NULL));
    test_redis_close(redis);
}

/* Returns how many clients of the library the server sees. */
static int clients(void)
{
    char uuid[CROWD + 1][UUID_LEN + 1];
    int count = 0;
    const char *at = test_redis_str(redis, "CLIENT", "LIST");
    while ((at = strstr(at, "name=rlock:")) != NULL) {
        at += strlen("name=rlock:");
        int i = 0;
        while (i < count && strncmp(uuid[i], at, UUID_LEN) != 0)
            i++;
        if (i == count && count < CROWD + 1)
            snprintf(uuid[count++], UUID_LEN + 1, "%s", at);
    }
    return count;
}

static void *wait_for_go(void *arg)
{
    while (!atomic_load(&crowd.go))
        test_pause_ms(1);
    return arg;
}

static int run_first_use(void *mutex)
{
    wait_for_go(NULL);
    int rc = rlock_mutex_trylock(mutex);
    return rc != 0 ? rc : rlock_mutex_unlock(mutex);
}

static void start_crowd(int (*run)(void *arg), int count)
{
    atomic_store(&crowd.go, false);
    for (int i = 0; i < count; i++)
        task_start(&crowd.task[i], run, &crowd.handle[i]);
    atomic_store(&crowd.go, true);
}

static void crowd_says(int code, int count)
{
    for (int i = 0; i < count; i++)
        EXPECT(task_join(&crowd.task[i]), code);
}

/* ---- the default client */

START_TEST(default_client_that_64_threads_use_first_is_one)
{
    for (long i = test_count(100, 5); i > 0; i--) {
        start_crowd(run_first_use, CROWD);
        crowd_says(0, CROWD);
        ck_assert_int_eq(clients(), 1);
        ck_assert_uint_eq(stats_of(NULL).acquisitions, CROWD);
        OK(rlock_client_close(NULL));
    }
}
END_TEST

START_TEST(default_client_that_could_not_be_opened_is_opened_by_a_later_use)
{
    setenv("RLOCK_URL", "nonsense://", 1);
    start_crowd(run_first_use, CROWD);
    crowd_says(EINVAL, CROWD);
    ck_assert_int_eq(clients(), 0);
    setenv("RLOCK_URL", server.url, 1);
    start_crowd(run_first_use, CROWD);
    crowd_says(0, CROWD);
    ck_assert_int_eq(clients(), 1);
}
END_TEST

static int run_until_it_opens(void *mutex)
{
    int rc;
    while ((rc = rlock_mutex_trylock(mutex)) == EINVAL)
        test_pause_ms(1);
    return rc != 0 ? rc : rlock_mutex_unlock(mutex);
}

static bool default_is_set(void *arg)
{
    int *rc = arg;
    *rc = rlock_client_setdefault(server.url, NULL);
    return *rc != EBUSY; /* a first use is just failing */
}

START_TEST(default_client_configured_while_threads_fail_to_open_it_is_one)
{
    int rc = -1;
    setenv("RLOCK_URL", "nonsense://", 1);
    start_crowd(run_until_it_opens, CROWD);
    EXPECT(run_first_use(&crowd.handle[0]), EINVAL);
    ck_assert(test_wait_until(default_is_set, &rc, 20000));
    OK(rc);
    crowd_says(0, CROWD);
    ck_assert_int_eq(clients(), 1);
}
END_TEST

static atomic_int closed;

/* Takes the lock at least 400 times (40 in a quick run), and until the client has been
 * closed. */
static int run_pairs(void *mutex)
{
    int rc = 0;
    for (long i = test_count(400, 40); rc == 0 && (i > 0 || atomic_load(&closed) == 0);
         i--) {
        rc = rlock_mutex_trylock(mutex);
        if (rc == 0)
            rc = rlock_mutex_unlock(mutex);
        test_pause_ms(1); /* so that the client is sometimes unused */
    }
    return rc;
}

START_TEST(default_client_closed_between_uses_opens_again)
{
    start_crowd(run_pairs, CLOSED_OVER);
    for (int i = 0; i < CLOSED_OVER; i++) {
        while (!task_ends(&crowd.task[i], 0)) {
            bool open = stats_of(NULL).acquisitions > 0; /* only this thread closes it */
            int rc = rlock_client_close(NULL);
            ck_assert(rc == 0 || rc == EBUSY);
            if (open && rc == 0)
                atomic_fetch_add(&closed, 1);
        }
    }
    crowd_says(0, CLOSED_OVER);
    OK(run_pairs(&crowd.handle[0]));
    ck_assert_int_eq(clients(), 1);
}
END_TEST

START_TEST(init_and_destroy_do_not_open_the_default_client)
{
    rlock_mutex_t m = RLOCK_MUTEX_INITIALIZER("m");
    rlock_fair_t f = RLOCK_FAIR_INITIALIZER("f");
    rlock_rwlock_t l = RLOCK_RWLOCK_INITIALIZER("l");

    setenv("RLOCK_URL", "nonsense://", 1); /* opening would fail */
    OK(rlock_mutex_destroy(&m));
    OK(rlock_fair_destroy(&f));
    OK(rlock_rwlock_destroy(&l));
    OK(rlock_mutex_init(&m, NULL, NULL));
    OK(rlock_mutex_destroy(&m));
    EXPECT(rlock_mutex_destroy(&m), EINVAL);
    EXPECT(rlock_client_interrupt(NULL), EINVAL); /* it is not open */
    setenv("RLOCK_URL", server.url, 1);
    OK(rlock_mutex_init(&m, NULL, "m"));
    OK(rlock_mutex_destroy(&m));
    EXPECT(rlock_client_interrupt(NULL), EINVAL);
    ck_assert_int_eq(clients(), 0);
}
END_TEST

/* ---- clients of many threads */

/* Opens a client, takes two locks with names of its own, and checks whose they are. */
static int open_and_use(void *arg)
{
    rlock_client_t *mine = NULL, *got = NULL;
    rlock_mutex_t *named = arg, m;
    rlock_mutexattr_t attr;
    rlock_stats_t stats;
    int rc = rlock_client_open(&mine, NULL, NULL);

    if (rc != 0)
        return rc;
    if ((rc = rlock_mutexattr_init(&attr)) != 0 ||
        (rc = rlock_mutexattr_setclient(&attr, mine)) != 0 ||
        (rc = rlock_mutexattr_getclient(&attr, &got)) != 0 ||
        (rc = rlock_mutex_init(&m, &attr, named->rlk.rlk_name)) != 0)
        return rc;
    for (int i = 0; i < 3; i++) {
        rc = rlock_mutex_trylock(&m);
        if (rc == 0 && rlock_client_close(mine) != EBUSY)
            return -1;
        if (rc == 0)
            rc = rlock_mutex_unlock(&m);
        if (rc != 0)
            return rc;
    }
    rc = rlock_client_getstats(mine, &stats);
    if (rc == 0 && (got != mine || stats.acquisitions != 3))
        return -1;
    return rc != 0 ? rc : rlock_client_close(mine);
}

static int run_open_and_use(void *arg)
{
    int rc = 0;
    wait_for_go(NULL);
    for (long i = test_count(100, 5); i > 0 && rc == 0; i--)
        rc = open_and_use(arg);
    return rc;
}

START_TEST(clients_that_many_threads_open_and_close_are_found_by_their_handles)
{
    start_crowd(run_open_and_use, OPENERS);
    crowd_says(0, OPENERS);
}
END_TEST

static rlock_client_t *opened[OPENERS];

static int run_open(void *arg)
{
    wait_for_go(NULL);
    return rlock_client_open(&opened[(rlock_mutex_t *)arg - crowd.handle], NULL, NULL);
}

START_TEST(clients_that_many_threads_open_have_numbers_of_their_own)
{
    rlock_mutex_t handle[OPENERS];

    start_crowd(run_open, OPENERS);
    crowd_says(0, OPENERS);
    for (int i = 0; i < OPENERS; i++) {
        handle[i] = mutex_of(opened[i], "n");
        for (int k = 0; k < i; k++)
            ck_assert_uint_ne(handle[i].rlk.rlk_client, handle[k].rlk.rlk_client);
    }
    OK(rlock_mutex_lock(&handle[0])); /* so that the others must be different parties */
    for (int i = 1; i < OPENERS; i++)
        EXPECT(rlock_mutex_trylock(&handle[i]), EBUSY);
    OK(rlock_mutex_unlock(&handle[0]));
    for (int i = 0; i < OPENERS; i++) {
        OK(rlock_client_close(opened[i]));
        EXPECT(rlock_mutex_trylock(&handle[i]), EINVAL);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("init_destroy");
    TCase *tc = tcase_create("the default client");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, default_client_that_64_threads_use_first_is_one);
    tcase_add_test(tc, default_client_that_could_not_be_opened_is_opened_by_a_later_use);
    tcase_add_test(tc, default_client_configured_while_threads_fail_to_open_it_is_one);
    tcase_add_test(tc, default_client_closed_between_uses_opens_again);
    tcase_add_test(tc, init_and_destroy_do_not_open_the_default_client);
    suite_add_tcase(suite, tc);

    tc = tcase_create("clients of many threads");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc,
                   clients_that_many_threads_open_and_close_are_found_by_their_handles);
    tcase_add_test(tc, clients_that_many_threads_open_have_numbers_of_their_own);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
