/* SPDX-License-Identifier: Apache-2.0 */
/* How rlock_client_diagnose behaves as a call: its arguments, its callback, and a server
 * that cannot be reached. */
#include "fixture.h"

#include "findings.h"

#include <stdio.h>
#include <string.h>
#include <syslog.h>

enum { SLACK_MS = 1500, SHORT_MS = 300, TOPICS = 13 };

static struct findings f;

static void diagnose(void)
{
    findings_of(&f, client);
    ck_assert_msg(f.rc == 0, "%s: %s", rlock_strerror(f.rc), rlock_errmsg());
}

/* ---- arguments and the callback */

START_TEST(without_a_function_or_a_client_it_is_EINVAL)
{
    EXPECT(rlock_client_diagnose(client, NULL, NULL), EINVAL);
    rlock_client_t *gone = open_with("");
    close_client(gone);
    findings_of(&f, gone);
    ck_assert_int_eq(f.rc, EINVAL);
    ck_assert_int_eq(f.count, 0);
}
END_TEST

START_TEST(NULL_is_the_default_client)
{
    OK(rlock_client_setdefault(server.url, NULL));
    findings_of(&f, NULL);
    ck_assert_int_eq(f.rc, 0);
    ck_assert_int_ge(f.count, TOPICS);
    OK(rlock_client_close(NULL));
}
END_TEST

static int ends_at(const rlock_finding_t *finding, void *arg)
{
    int *left = arg;
    (void)finding;
    return --*left == 0 ? -7 : 0;
}

START_TEST(a_result_that_is_not_0_ends_it_and_is_returned)
{
    for (int n = 1; n <= TOPICS; n += 4) {
        int left = n;
        ck_assert_int_eq(rlock_client_diagnose(client, ends_at, &left), -7);
        ck_assert_int_eq(left, 0);
    }
}
END_TEST

static int locks_and_lists(const rlock_finding_t *finding, void *arg)
{
    rlock_mutex_t m = mutex_of(client, "n");
    (void)finding;
    OK(rlock_mutex_lock(&m));
    OK(rlock_client_ping(client));
    EXPECT(rlock_client_close(client), EBUSY);
    OK(rlock_mutex_unlock(&m));
    ++*(int *)arg;
    return 0;
}

START_TEST(the_function_may_lock_with_the_only_connection)
{
    int calls = 0;
    rlock_clientattr_t attr;
    close_client(client);
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setmaxconnections(&attr, 1));
    OK(rlock_client_open(&client, server.url, &attr));
    OK(rlock_client_diagnose(client, locks_and_lists, &calls));
    ck_assert_int_ge(calls, TOPICS);
}
END_TEST

static rlock_client_t *eventful;
static atomic_int diagnosed;
static atomic_long diagnosis_took;

static void diagnose_in_event(const rlock_event_t *event, void *arg)
{
    (void)arg;
    /* LOST comes alone if the thread was too late to report AT_RISK */
    if ((event->kind != RLOCK_EVENT_AT_RISK && event->kind != RLOCK_EVENT_LOST) ||
        diagnosed > 0)
        return;
    int64_t from = test_now_ms();
    findings_of(&f, eventful);
    diagnosis_took = (long)(test_now_ms() - from);
    diagnosed = 1;
}

static bool was_diagnosed(void *arg)
{
    (void)arg;
    return diagnosed > 0;
}

START_TEST(event_callback_makes_the_check_of_messages_impossible)
{
    rlock_clientattr_t attr;
    char url[TEST_URL_MAX + 32];
    long timeout = test_ms(3000);
    snprintf(url, sizeof(url), "%s?commandtimeout=%ld", server.url, timeout);
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_seteventcallback(&attr, diagnose_in_event, NULL));
    OK(rlock_client_open(&eventful, url, &attr));
    rlock_mutex_t m = mutex_of(eventful, "n");
    OK(rlock_mutex_lock_lease(&m, test_ms(200)));
    ck_assert(test_wait_until(was_diagnosed, NULL, 20000));
    FOUND(&f, LOG_NOTICE, "messages", "cannot be checked from an event callback");
    ck_assert_int_eq(findings_worst(&f, "messages"), LOG_NOTICE);
    ck_assert_int_lt(diagnosis_took, timeout);
    int rc = rlock_mutex_unlock(&m);
    ck_assert(rc == 0 || rc == ESTALE); /* depends on how quick the diagnosis was */
    findings_of(&f, eventful);          /* outside the callback it works as usual */
    FOUND(&f, LOG_INFO, "messages", "Messages reach");
    close_client(eventful);
}
END_TEST

/* ---- a server that cannot be reached */

static void open_short(const char *url)
{
    char parameters[64];
    snprintf(parameters, sizeof(parameters), "?commandtimeout=%ld&connecttimeout=%ld",
             test_ms(SHORT_MS), test_ms(SHORT_MS));
    close_client(client);
    client = open_at(url, parameters);
}

static void is_ENOTCONN_in_time(void)
{
    int64_t begin = test_now_ms();
    findings_of(&f, client);
    ck_assert_int_eq(f.rc, ENOTCONN);
    ck_assert_int_eq(f.count, 0);
    ck_assert_str_ne(rlock_errmsg(), "");
    ck_assert_int_lt(test_now_ms() - begin, test_ms(SHORT_MS + SLACK_MS));
}

START_TEST(a_server_that_stands_still_is_ENOTCONN_in_time)
{
    open_short(server.url);
    test_server_pause(&server);
    is_ENOTCONN_in_time();
    test_server_resume(&server);
    diagnose();
}
END_TEST

START_TEST(a_server_that_is_gone_is_ENOTCONN_in_time)
{
    open_short(server.url);
    test_server_kill(&server);
    is_ENOTCONN_in_time();
    test_server_restart(&server);
    test_redis_close(redis);
    redis = test_redis_connect(server.path);
    diagnose();
}
END_TEST

static int kills_the_server(const rlock_finding_t *finding, void *arg)
{
    (void)finding;
    if (++*(int *)arg == 1)
        test_server_kill(&server);
    return 0;
}

START_TEST(a_server_that_goes_in_the_midst_is_ENOTCONN)
{
    int calls = 0;
    open_short(server.url);
    EXPECT(rlock_client_diagnose(client, kills_the_server, &calls), ENOTCONN);
    ck_assert_int_ge(calls, 1);
    test_server_restart(&server);
    test_redis_close(redis);
    redis = test_redis_connect(server.path);
}
END_TEST

START_TEST(broken_idle_connection_is_opened_again)
{
    diagnose();
    test_redis_kill_clients(redis);
    diagnose();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose_call");
    TCase *tc = tcase_create("call");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, fixture_open, fixture_close);
    suite_add_tcase(suite, tc);
    tcase_add_test(tc, without_a_function_or_a_client_it_is_EINVAL);
    tcase_add_test(tc, NULL_is_the_default_client);
    tcase_add_test(tc, a_result_that_is_not_0_ends_it_and_is_returned);
    tcase_add_test(tc, the_function_may_lock_with_the_only_connection);
    tcase_add_test(tc, event_callback_makes_the_check_of_messages_impossible);
    tcase_add_test(tc, a_server_that_stands_still_is_ENOTCONN_in_time);
    tcase_add_test(tc, a_server_that_is_gone_is_ENOTCONN_in_time);
    tcase_add_test(tc, a_server_that_goes_in_the_midst_is_ENOTCONN);
    tcase_add_test(tc, broken_idle_connection_is_opened_again);
    return test_run_suite(suite);
}
