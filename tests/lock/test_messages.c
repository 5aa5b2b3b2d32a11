/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_errmsg() for refused arguments: which one, what it is, what it must be. */
#include "fixture.h"
#include "proxy.h"

#include <stdlib.h>
#include <string.h>

static rlock_mutex_t m;
static rlock_rwlock_t rw;

static void set_up(void)
{
    fixture_open();
    m = mutex_of(client, "n");
    rw = rwlock_of(client, "n");
}

/* Asserts the call's code, and that its message contains `part`. */
#define SAYS(code, part, call)                                                           \
    do {                                                                                 \
        ck_assert_int_eq(call, code);                                                    \
        ck_assert_msg(strstr(rlock_errmsg(), part), "%s: %s", #call, rlock_errmsg());    \
    } while (0)

START_TEST(attribute_that_is_refused_is_named_with_its_bounds)
{
    rlock_mutexattr_t attr, none;
    rlock_rwlockattr_t rwattr;
    rlock_clientattr_t cattr;
    long ms;
    memset(&none, 0, sizeof(none));
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_rwlockattr_init(&rwattr));
    OK(rlock_clientattr_init(&cattr));
    SAYS(EINVAL, "type is 7: must be from 0 to 3", rlock_mutexattr_settype(&attr, 7));
    SAYS(EINVAL, "lease is 30 ms: must be 0, or from 50 to ",
         rlock_mutexattr_setlease(&attr, 30));
    SAYS(EINVAL, "pshared is 2", rlock_mutexattr_setpshared(&attr, 2));
    SAYS(EINVAL, "fencing is -1", rlock_mutexattr_setfencing(&attr, -1));
    SAYS(EINVAL, "outage is 9", rlock_mutexattr_setoutage(&attr, 9));
    SAYS(EINVAL, "robust is 5", rlock_mutexattr_setrobust(&attr, 5));
    SAYS(EINVAL, "protocol is 8", rlock_mutexattr_setprotocol(&attr, 8));
    SAYS(EINVAL, "handoffms (ms) is -1", rlock_mutexattr_sethandoffms(&attr, -1));
    SAYS(EINVAL, "handoffcount is -1", rlock_mutexattr_sethandoffcount(&attr, -1));
    SAYS(EINVAL, "retain (ms) is -1", rlock_mutexattr_setretain(&attr, -1));
    SAYS(EINVAL, " is 77: must be from 0 to 2", rlock_rwlockattr_setkind_np(&rwattr, 77));
    SAYS(EINVAL, "ret_lease_ms is NULL", rlock_mutexattr_getlease(&attr, NULL));
    SAYS(EINVAL, "object is NULL", rlock_mutexattr_getlease(NULL, &ms));
    SAYS(EINVAL, "not initialised", rlock_mutexattr_getlease(&none, &ms));
    SAYS(EINVAL, "not initialised", rlock_mutex_init(&m, &none, "n"));
    SAYS(EINVAL, "presence (ms) is 1: must be from ",
         rlock_clientattr_setpresence(&cattr, 1));
    SAYS(EINVAL, "maxconnections is 0: must be from 1 to ",
         rlock_clientattr_setmaxconnections(&cattr, 0));
    SAYS(EINVAL, "mutextype is -1", rlock_clientattr_setmutextype(&cattr, -1));
    SAYS(EINVAL, "guard is 3", rlock_clientattr_setguard(&cattr, 3));
    OK(rlock_clientattr_destroy(&cattr));
    SAYS(EINVAL, "was destroyed", rlock_clientattr_setguard(&cattr, 0));
}
END_TEST

START_TEST(handle_that_is_none_is_said_to_be_what_it_is)
{
    rlock_mutex_t strange, none;
    memset(&none, 0, sizeof(none));
    SAYS(EINVAL, "the lock is NULL", rlock_mutex_lock(NULL));
    SAYS(EINVAL, "not initialised", rlock_mutex_trylock(&none));
    SAYS(EINVAL, "not initialised", rlock_mutex_destroy(&none));
    SAYS(EINVAL, "not initialised", rlock_mutex_unlock(&none));
    memcpy(&strange, &m, sizeof(strange));
    *(uint32_t *)(void *)&strange += UINT32_C(1) << 24;
    SAYS(EINVAL, "the lock has layout 2", rlock_mutex_lock(&strange));
    memcpy(&strange, &rw, sizeof(strange));
    SAYS(EINVAL, "the lock is a read-write lock", rlock_mutex_lock(&strange));
}
END_TEST

START_TEST(refused_deadline_and_lease_are_reported)
{
    struct timespec bad = { 0, 1000000000 };
    fixture_other();
    rlock_mutex_t theirs = mutex_of(other, "n");
    OK(rlock_mutex_lock(&theirs));
    SAYS(EINVAL, "tv_nsec of the deadline is 1000000000: must be from 0 to 999999999",
         rlock_mutex_timedlock(&m, &bad));
    SAYS(EINVAL, "tv_nsec of the deadline", rlock_waitfree(client, "n", &bad));
    SAYS(EINVAL, "the deadline is NULL", rlock_mutex_timedlock(&m, NULL));
    SAYS(EINVAL, "clock 77 is neither", rlock_mutex_clocklock(&m, 77, &bad));
    OK(rlock_mutex_unlock(&theirs));
    SAYS(EINVAL, "lease is 10 ms: must be 0, or from 50 to ",
         rlock_mutex_lock_lease(&m, 10));
    OK(rlock_mutex_lock(&m));
    SAYS(EINVAL, "lease is 10 ms: must be 0, or from 50 to ", rlock_mutex_extend(&m, 10));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(own_hold_is_not_reported_as_foreign)
{
    rlock_mutex_t normal = typed_mutex(client, "normal", RLOCK_MUTEX_NORMAL);
    OK(rlock_mutex_lock(&normal));
    SAYS(EBUSY, "a thread of this process holds the lock", rlock_mutex_destroy(&normal));
    SAYS(EBUSY, "the calling thread already holds the lock",
         rlock_mutex_trylock(&normal));
    OK(rlock_mutex_unlock(&normal));
    OK(rlock_rwlock_rdlock(&rw));
    SAYS(EBUSY, "already holds the lock, for reading", rlock_rwlock_trywrlock(&rw));
    SAYS(EDEADLK, "already holds the lock, for reading", rlock_rwlock_wrlock(&rw));
    OK(rlock_rwlock_unlock(&rw));
}
END_TEST

START_TEST(url_is_said_to_be_whose_and_to_have_a_blank)
{
    rlock_client_t *c;
    SAYS(EINVAL, "URL: blank or line break after the URL",
         rlock_client_open(&c, "redis://127.0.0.1:6379\n", NULL));
    SAYS(EINVAL, "URL: blank or line break before the URL",
         rlock_client_open(&c, " redis://127.0.0.1:6379", NULL));
    ck_assert_ptr_null(strstr(rlock_errmsg(), "RLOCK_URL"));
    setenv("RLOCK_URL", "redis://127.0.0.1:6379 ", 1);
    SAYS(EINVAL, "RLOCK_URL: blank or line break after the URL",
         rlock_client_open(&c, NULL, NULL));
    unsetenv("RLOCK_URL");
    SAYS(EINVAL, "ret_client is NULL", rlock_client_open(NULL, "redis://x", NULL));
}
END_TEST

/* The call may come from a signal handler that interrupts another call of the thread, or
 * malloc: it sets no message. */
START_TEST(interrupt_of_no_client_is_EINVAL_and_says_nothing)
{
    SAYS(EPERM, "does not hold the lock", rlock_mutex_unlock(&m));
    SAYS(EINVAL, "does not hold the lock", rlock_client_interrupt(NULL));
}
END_TEST

START_TEST(type_of_an_attribute_is_reported_without_the_bad_URL)
{
    rlock_mutexattr_t attr;
    int type = -1;
    setenv("RLOCK_URL", "http://127.0.0.1", 1);
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_gettype(&attr, &type));
    ck_assert_int_eq(type, RLOCK_MUTEX_RECURSIVE);
    ck_assert_str_eq(rlock_errmsg(), "");
    OK(rlock_mutexattr_destroy(&attr));
    unsetenv("RLOCK_URL");
}
END_TEST

/* The cancel, on a connection of its own, gets no answer either. */
START_TEST(server_that_is_silent_is_named)
{
    struct test_proxy *frozen = test_proxy_start(&server);
    rlock_client_t *c;
    OK(rlock_client_open(&c, test_proxy_tcp_url(frozen), NULL));
    rlock_mutex_t far = mutex_of(c, "far");
    OK(rlock_mutex_lock(&far));
    OK(rlock_mutex_unlock(&far));
    test_proxy_freeze(frozen, true);
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(200));
    SAYS(ENOTCONN, "in time", rlock_mutex_timedlock(&far, &at));
    ck_assert_msg(strstr(rlock_errmsg(), "127.0.0.1:"), "%s", rlock_errmsg());
    test_proxy_freeze(frozen, false);
    close_client(c);
    test_proxy_stop(frozen);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("messages");
    TCase *tc = tcase_create("messages");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, attribute_that_is_refused_is_named_with_its_bounds);
    tcase_add_test(tc, handle_that_is_none_is_said_to_be_what_it_is);
    tcase_add_test(tc, refused_deadline_and_lease_are_reported);
    tcase_add_test(tc, own_hold_is_not_reported_as_foreign);
    tcase_add_test(tc, interrupt_of_no_client_is_EINVAL_and_says_nothing);
    tcase_add_test(tc, type_of_an_attribute_is_reported_without_the_bad_URL);
    tcase_add_test(tc, server_that_is_silent_is_named);
    tcase_add_test(tc, url_is_said_to_be_whose_and_to_have_a_blank);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
