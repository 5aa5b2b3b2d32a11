/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions over TLS: messages come on the connection that a waiting thread reads, and
 * waits end when the connections are cut. */
#if TEST_TLS

#include "condtask.h"
#include "tlsscene.h"

enum { TURNS = 20 };

static void set_up(void)
{
    fixture_open();
}

static void tear_down(void)
{
    fixture_close();
}

/* By another client, or by the waiter's own. */
START_TEST(waiters_wake_over_TLS)
{
    rlock_cond_t theirs;

    other = tls_client("");
    rlock_client_t *waker = _i == 0 ? tls_client("") : other;
    cond_of(&theirs, waker, RLOCK_OUTAGE_WAIT);
    for (int i = 0; i < TURNS; i++) {
        struct condtask sleeper;
        condtask_start(&sleeper, other, redis, 1);
        if (i % 2 == 0)
            OK(rlock_cond_signal(&theirs));
        else
            OK(rlock_cond_broadcast(&theirs));
        condtask_ends(&sleeper);
    }
    ck_assert_uint_eq(stats_of(other).cond_wakeups, TURNS);
    if (_i == 0)
        close_client(waker);
}
END_TEST

START_TEST(wait_ends_when_its_TLS_connections_are_cut)
{
    struct between *between = between_start(BETWEEN_PASSES);
    struct condtask sleeper;

    OK(tls_open(&other, tls_url("localhost", between_port(between), "")));
    condtask_start(&sleeper, other, redis, 1);
    between_cut(between);
    condtask_ends(&sleeper);
    ck_assert_uint_eq(stats_of(other).cond_needless, 1);
    close_client(other);
    other = NULL;
    between_stop(between);
}
END_TEST

int main(void)
{
    if (!tls_is_built())
        return 77;
    Suite *suite = suite_create("tls_cond");
    TCase *tc = tcase_create("conditions");
    tcase_add_unchecked_fixture(tc, tls_start, tls_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, waiters_wake_over_TLS, 0, 2);
    tcase_add_test(tc, wait_ends_when_its_TLS_connections_are_cut);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

#else /* configure --without-tls */

#include <stdio.h>

int main(void)
{
    puts("skipped: the library was built without TLS");
    return 77;
}

#endif
