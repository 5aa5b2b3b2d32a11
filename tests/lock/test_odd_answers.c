/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a key or a server's answer may have without harm: cases that the fuzz
 * targets (tests/fuzz) found, each with a test. */
#include "client/client.h"
#include "fixture.h"
#include "proxy.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { SOON_MS = 5000, FREE_MS = 200, ROUND_TRIPS_MAX = 12 };

#define QUEUE "rlock:{n}:queue"
#define UUID "dddddddd-0000-4000-8000-00000000000d"

static rlock_info_t *info;

static void set_up(void)
{
    fixture_open();
    proxy = test_proxy_start(&server);
    info = NULL;
}

static void tear_down(void)
{
    rlock_info_free(info);
    test_proxy_stop(proxy);
    fixture_close();
}

/* ---- times in keys */

static const struct {
    const char *since;
    long least, most;
} sinces[] = {
    { "-9223372036854775808", -1, -1 },
    { "9223372036854775807", 0, 0 },
    { "99999999999999999999999", 0, 0 },
    { "0", -1, -1 },
    { "1", 1, LONG_MAX },
};

START_TEST(since_of_a_holder_is_in_range_whatever_the_key_says)
{
    test_redis_do(redis, "HSET", "n", UUID ":1:1:m3000", "1", "mode", "rlock:mutex",
                  "since", sinces[_i].since);
    OK(rlock_inspect(client, "n", &info));
    ck_assert_uint_eq(info->holder_count, 1);
    ck_assert_int_ge(info->holders[0].since_ms, sinces[_i].least);
    ck_assert_int_le(info->holders[0].since_ms, sinces[_i].most);
    ck_assert_int_eq(info->holders[0].lease_left_ms, -1); /* no TTL */
}
END_TEST

static const struct {
    const char *ticket;
    long least, most;
} tickets[] = {
    { "9007199254740992", 0, 0 }, /* later than now */
    { "1", 1, LONG_MAX },
};

START_TEST(waiting_time_is_in_range_whatever_the_queue_says)
{
    test_redis_do(redis, "ZADD", QUEUE, tickets[_i].ticket, UUID ":1:1:m3000");
    OK(rlock_inspect(client, "n", &info));
    ck_assert_uint_eq(info->waiter_count, 1);
    ck_assert_int_ge(info->waiters[0].since_ms, tickets[_i].least);
    ck_assert_int_le(info->waiters[0].since_ms, tickets[_i].most);
}
END_TEST

START_TEST(waitfree_of_a_lock_whose_ttl_never_ends_does_not_spin)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, FREE_MS);
    rlock_client_t *c = open_at(test_proxy_url(proxy), "");
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER, .contains = "EVALSHA",
              .text = "*4\r\n:1700000000000000\r\n:9223372036854775807\r\n:0\r\n:0\r\n");
    uint64_t before = stats_of(c).round_trips;
    EXPECT(rlock_waitfree(c, "n", &at), ETIMEDOUT);
    ck_assert_uint_le(stats_of(c).round_trips - before, ROUND_TRIPS_MAX);
    close_client(c);
}
END_TEST

/* ---- answers at the last moment */

enum { COMMAND_MS = 300 };

static int try_to_read(void *arg)
{
    return rlock_rwlock_tryrdlock(arg);
}

/* The registry stays locked while the answer arrives, and until the call's time is up. */
START_TEST(answer_shared_that_is_read_when_time_is_up_is_no_success)
{
    char parameters[64];
    struct task task;
    snprintf(parameters, sizeof(parameters), "?commandtimeout=%ld", test_ms(COMMAND_MS));
    rlock_client_t *c = open_at(test_proxy_url(proxy), parameters);
    rlock_rwlock_t w = rwlock_of(c, "n");
    fixture_load_scripts();
    int request = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                            .contains = "EVALSHA", .count = 1);
    int reply = TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_ANSWER,
                          .contains = "EVALSHA", .count = 1,
                          .text = "*9\r\n:1700000000000000\r\n:60\r\n:0\r\n:0\r\n"
                                  "$6\r\nshared\r\n:60\r\n:0\r\n$0\r\n\r\n:0\r\n");
    task_start(&task, try_to_read, &w);
    ck_assert(test_proxy_wait_hits(proxy, request, 1, SOON_MS));
    rlk_registry_lock(&c->registry);
    test_proxy_release(proxy, request);
    bool answered = test_proxy_wait_hits(proxy, reply, 1, SOON_MS);
    test_pause_ms(test_ms(COMMAND_MS));
    rlk_registry_unlock(&c->registry);
    ck_assert(answered);
    EXPECT(task_join(&task), EBUSY);
    close_client(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("odd answers");
    TCase *tc = tcase_create("answers");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, since_of_a_holder_is_in_range_whatever_the_key_says, 0,
                        sizeof(sinces) / sizeof(sinces[0]));
    tcase_add_loop_test(tc, waiting_time_is_in_range_whatever_the_queue_says, 0,
                        sizeof(tickets) / sizeof(tickets[0]));
    tcase_add_test(tc, waitfree_of_a_lock_whose_ttl_never_ends_does_not_spin);
    tcase_add_test(tc, answer_shared_that_is_read_when_time_is_up_is_no_success);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
