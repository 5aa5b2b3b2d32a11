/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renewals of many holds: holds that are due soon are renewed together with those that
 * are due, and a burst is spread over the period. Yet no hold is renewed too late, or
 * much more often than necessary.
 */
#include "fixture.h"
#include "net/script.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    FEW = 24,
    MANY = 500, /* more than a batch or two */
    LEASE_MS = 2400,
    LEASE_MAX_MS = 10000, /* where everything is slow: a test takes some periods */
    ALONG_PART = 32, /* of a period: holds that are due within it are renewed together */
    SLICES = 20      /* of a period */
};

static rlock_mutex_t hold[MANY];

static long lease_ms(void)
{
    long ms = test_ms(LEASE_MS);
    return ms < LEASE_MAX_MS ? ms : LEASE_MAX_MS;
}

static long period_ms(void)
{
    return lease_ms() / 3;
}

static void set_up(void)
{
    char parameters[64];

    fixture_open();
    snprintf(parameters, sizeof(parameters), "?lease=%ld", lease_ms());
    reopen_with(parameters);
}

/* Takes `n` locks, `apart_ms` apart. */
static void hold_all(int n, long apart_ms)
{
    char name[32];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "h%d", i);
        hold[i] = mutex_of(client, name);
        OK(rlock_mutex_lock(&hold[i]));
        if (apart_ms > 0)
            test_pause_ms(apart_ms);
    }
}

static void unlock_all(int n)
{
    for (int i = 0; i < n; i++)
        OK(rlock_mutex_unlock(&hold[i]));
    ck_assert(!event_seen(RLOCK_EVENT_AT_RISK) && !event_seen(RLOCK_EVENT_LOST));
}

static uint64_t renewals(void)
{
    return stats_of(client).renewals;
}

static bool has_renewals(void *count)
{
    return renewals() >= *(uint64_t *)count;
}

static void await_renewals(uint64_t count)
{
    ck_assert(test_wait_until(has_renewals, &count, 4 * LEASE_MS));
}

/* The shortest time that any hold has left, in ms. */
static long least_left(void)
{
    return (long)test_redis_int(redis, "EVAL",
                                "local least = 1e9\n"
                                "for _, name in ipairs(redis.call('KEYS', 'h*')) do\n"
                                "  least = math.min(least, redis.call('PTTL', name))\n"
                                "end\n"
                                "return least",
                                "0");
}

/* Returns in how many slices of the next period a hold is renewed. */
static int busy_slices(void)
{
    int busy = 0;
    for (int i = 0; i < SLICES; i++) {
        uint64_t before = renewals();
        test_pause_ms(period_ms() / SLICES);
        busy += renewals() > before;
    }
    return busy;
}

static long long reads(void)
{
    return test_redis_info(redis, "total_reads_processed");
}

START_TEST(due_soon_goes_along_with_what_is_due)
{
    /* near enough to go together, or nearly */
    hold_all(FEW, period_ms() / ALONG_PART / FEW);
    ck_assert_uint_eq(renewals(), 0);
    long long before = reads();
    await_renewals(FEW);
    /* separate renewals would come in a read each */
    ck_assert_int_le(reads() - before, FEW / 2);
    unlock_all(FEW);
}
END_TEST

START_TEST(no_hold_is_renewed_more_often_by_joint_renewals)
{
    hold_all(FEW, period_ms() / FEW); /* spread over the period */
    const long periods = test_count(4, 2);
    int64_t start = test_now_ms();
    uint64_t before = renewals();
    await_renewals(before + (uint64_t)periods * FEW);
    /* a hold is renewed at most a 32nd of the period early, and in a batch from then
     * on */
    ck_assert_int_ge(test_now_ms() - start, periods * period_ms() * 29 / ALONG_PART);
    unlock_all(FEW);
}
END_TEST

START_TEST(burst_is_spread_over_the_period)
{
    hold_all(MANY, 0);
    await_renewals(MANY);
    test_pause_ms(period_ms()); /* each hold has been renewed at its new time */
    ck_assert_int_ge(busy_slices(), SLICES / 2);
    ck_assert_int_ge(busy_slices(), SLICES / 2); /* and it stays so */
    unlock_all(MANY);
}
END_TEST

/* The answers come long after the whole burst was sent. */
START_TEST(burst_is_spread_over_the_period_by_a_server_that_is_far_away)
{
    close_client(client);
    proxy = test_proxy_start(&server);
    char parameters[64];
    snprintf(parameters, sizeof(parameters), "?lease=%ld", lease_ms());
    client = open_at(test_proxy_url(proxy), parameters);
    hold_all(MANY, 0);
    TEST_RULE(proxy, .contains = rlk_scripts[RLK_MUTEX_RENEW].sha, .on = TEST_ON_REPLY,
              .action = TEST_DELAY, .delay_ms = period_ms() / 4);
    await_renewals(MANY);
    test_pause_ms(period_ms());
    ck_assert_int_ge(busy_slices(), SLICES / 2);
    unlock_all(MANY);
}
END_TEST

START_TEST(no_hold_is_renewed_too_late_by_spread_renewals)
{
    long least = LONG_MAX;

    hold_all(MANY, 0);
    int64_t end = test_now_ms() + lease_ms() + period_ms();
    while (test_now_ms() < end) {
        long left = least_left();
        if (left < least)
            least = left;
        test_pause_ms(period_ms() / (2 * ALONG_PART));
    }
    /* two thirds of the lease, minus the time that the renewals take */
    ck_assert_int_ge(least, lease_ms() / 2);
    unlock_all(MANY);
}
END_TEST

START_TEST(server_that_was_stopped_meanwhile_costs_no_lease_and_is_sent_no_burst_for_ever)
{
    hold_all(MANY, 0);
    test_pause_ms(period_ms() * 3 / 4);
    test_server_pause(&server);
    test_pause_ms(period_ms() / 2);
    test_server_resume(&server);
    await_renewals(2 * MANY);
    test_pause_ms(period_ms());
    ck_assert_int_ge(busy_slices(), SLICES / 2);
    unlock_all(MANY);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("renewals");
    TCase *tc = tcase_create("many");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, due_soon_goes_along_with_what_is_due);
    tcase_add_test(tc, no_hold_is_renewed_more_often_by_joint_renewals);
    tcase_add_test(tc, burst_is_spread_over_the_period);
    tcase_add_test(tc, burst_is_spread_over_the_period_by_a_server_that_is_far_away);
    tcase_add_test(tc, no_hold_is_renewed_too_late_by_spread_renewals);
    tcase_add_test(
        tc,
        server_that_was_stopped_meanwhile_costs_no_lease_and_is_sent_no_burst_for_ever);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
