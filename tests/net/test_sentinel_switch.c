/* SPDX-License-Identifier: Apache-2.0 */
/* The switch of the master as sentinels announce it: all connections leave the old one,
 * all holds are asked about, and what is no switch changes nothing. The sentinels say
 * what the test wants. (Real ones: test_sentinel_failover.) */
/* program: claims=P9 */
#include "client/client.h"

#include "sentinelscene.h"

#include <stdio.h>
#include <string.h>

enum { SOON_MS = 20000, QUIET_MS = 300 };
/* No renewal is due by itself. */
#define LONG_LEASE "?lease=600000"

static bool two_listen(void *arg)
{
    (void)arg;
    return fakes_subscribers() >= 2;
}

static void announce(uint16_t from, uint16_t to)
{
    char text[128];

    snprintf(text, sizeof(text), "mymaster 127.0.0.1 %u 127.0.0.1 %u", (unsigned)from,
             (unsigned)to);
    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_publish(fakes[i], text);
}

static void open_other(const char *parameters)
{
    other = open_at(fakes_url(SENTINELS, ""), parameters);
    OK(rlock_client_ping(other));
    ck_assert(test_wait_until(two_listen, NULL, SOON_MS));
}

/* rule: P9 */
START_TEST(switch_makes_all_connections_leave_and_all_holds_that_are_gone_lost)
{
    enum { MANY = 100 };
    static rlock_mutex_t m[MANY];
    char name[16];

    open_other(LONG_LEASE);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        m[i] = mutex_of(other, name);
        OK(rlock_mutex_lock(&m[i]));
    }
    fakes_say(second.port, 2, "master");
    announce(server.port, second.port);
    for (int i = 0; i < MANY; i++)
        ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    for (int i = 0; i < MANY; i++) {
        EXPECT(rlock_mutex_unlock(&m[i]), ESTALE);
        OK(rlock_mutex_lock(&m[i]));
    }
    ck_assert(test_redis_exists(second_redis, "n0"));
    for (int i = 0; i < MANY; i++)
        OK(rlock_mutex_unlock(&m[i]));
}
END_TEST

struct renewed {
    rlock_client_t *client;
    unsigned long count;
};

static bool has_renewed(void *arg)
{
    const struct renewed *r = arg;
    return stats_of(r->client).renewals >= r->count;
}

/* rule: P9 */
START_TEST(holds_that_the_new_master_has_stay)
{
    rlock_mutex_t m;
    rlock_rwlock_t l;
    char port[16];

    snprintf(port, sizeof(port), "%u", (unsigned)server.port);
    test_redis_do(second_redis, "REPLICAOF", "127.0.0.1", port);
    open_other(LONG_LEASE);
    m = mutex_of(other, "m");
    l = rwlock_of(other, "l");
    OK(rlock_mutex_lock(&m));
    OK(rlock_rwlock_rdlock(&l));
    ck_assert_int_eq((int)test_redis_int(redis, "WAIT", "1", "10000"), 1);
    test_redis_do(second_redis, "REPLICAOF", "NO", "ONE");
    struct renewed r = { other, stats_of(other).renewals + 2 };
    fakes_say(second.port, 2, "master");
    announce(server.port, second.port);
    ck_assert(test_wait_until(has_renewed, &r, SOON_MS));
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    OK(rlock_mutex_unlock(&m));
    OK(rlock_rwlock_unlock(&l));
    ck_assert(!test_redis_exists(second_redis, "m"));
}
END_TEST

/* rule: P9 */
START_TEST(switch_that_came_before_the_subscription_is_noticed)
{
    other = open_at(fakes_url(SENTINELS, ""), LONG_LEASE);
    rlock_mutex_t m = mutex_of(other, "m");
    OK(rlock_mutex_lock(&m));
    ck_assert(test_wait_until(two_listen, NULL, SOON_MS));
    fakes_say(second.port, 2, "master");
    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_cut(fakes[i]);
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

static const char *const forged[] = {
    "yours 127.0.0.1 1 127.0.0.1 2",
    "mymaster 127.0.0.1 1 127.0.0.1",
    "mymaster 127.0.0.1 1 127.0.0.1 0",
    "mymaster 127.0.0.1 1 127.0.0.1 65536",
    "mymaster 127.0.0.1 1 a@b 2",
    "mymaster 127.0.0.1 1 \033[2J 2",
    "mymaster",
    " ",
    "mymaster 127.0.0.1 1 127.0.0.1 2 3",
};
enum { FORGED = sizeof(forged) / sizeof(forged[0]) };

static bool is_unchanged(void *arg)
{
    const struct renewed *r = arg;
    return stats_of(r->client).connects == r->count;
}

/* rule: P9 */
START_TEST(message_that_is_no_switch_changes_nothing)
{
    open_other(LONG_LEASE);
    struct renewed r = { other, stats_of(other).connects };
    rlock_mutex_t m = mutex_of(other, "m");

    OK(rlock_mutex_lock(&m));
    r.count = stats_of(other).connects;
    for (int i = 0; i < FORGED; i++) {
        for (int j = 0; j < SENTINELS; j++)
            fake_sentinel_publish(fakes[j], forged[i]);
        ck_assert(test_stays(is_unchanged, &r, 20));
    }
    announce(second.port, server.port); /* the one that is the master already */
    ck_assert(test_stays(is_unchanged, &r, QUIET_MS));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* rule: P9 */
START_TEST(forged_switch_costs_a_reconnect_and_no_hold)
{
    open_other(LONG_LEASE);
    rlock_mutex_t m = mutex_of(other, "m");
    unsigned long connects = stats_of(other).connects;

    OK(rlock_mutex_lock(&m));
    struct renewed r = { other, stats_of(other).renewals + 1 };
    announce(server.port, fakes_dead_port());
    ck_assert(test_wait_until(has_renewed, &r, SOON_MS));
    /* a second one comes too soon */
    for (int i = 0; i < 50; i++) {
        announce(server.port, fakes_dead_port());
        test_pause_ms(5);
    }
    ck_assert_uint_le(stats_of(other).connects, connects + 8);
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}
END_TEST

/* rule: P9 */
START_TEST(sentinels_that_are_silent_or_gone_change_nothing)
{
    open_other("");
    rlock_mutex_t m = mutex_of(other, "m");
    unsigned long reconnects = stats_of(other).reconnects;

    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_sleeps(fakes[i], true);
    for (int round = 0; round < 2; round++) {
        int64_t end = test_now_ms() + QUIET_MS;
        while (test_now_ms() < end) {
            OK(rlock_mutex_lock(&m));
            OK(rlock_mutex_unlock(&m));
        }
        for (int i = 0; i < SENTINELS; i++)
            fake_sentinel_cut(fakes[i]);
    }
    ck_assert_uint_eq(stats_of(other).reconnects, reconnects);
    ck_assert(!event_seen(RLOCK_EVENT_DISCONNECTED));
}
END_TEST

static bool others_listen(void *arg)
{
    (void)arg;
    return fake_sentinel_subscribers(fakes[1]) + fake_sentinel_subscribers(fakes[2]) > 0;
}

/* rule: P9 */
START_TEST(further_sentinels_are_learned)
{
    fakes_know_each_other();
    other = open_at(fakes_url(1, ""), "");
    OK(rlock_client_ping(other));
    cut_clients(redis);
    ck_assert(test_wait_until(others_listen, NULL, SOON_MS));
    fake_sentinel_stop(fakes[0]);
    fakes[0] = NULL;
    cut_clients(redis);
    OK(rlock_client_ping(other));
    ck_assert_uint_gt(fake_sentinel_asked(fakes[1]) + fake_sentinel_asked(fakes[2]), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sentinel_switch");
    TCase *tc = tcase_create("switch");

    tcase_add_unchecked_fixture(tc, fakes_start, fakes_stop);
    tcase_add_checked_fixture(tc, fakes_open, fakes_close);
    TEST_ADD(tc, switch_makes_all_connections_leave_and_all_holds_that_are_gone_lost,
             holds_that_the_new_master_has_stay,
             switch_that_came_before_the_subscription_is_noticed,
             message_that_is_no_switch_changes_nothing,
             forged_switch_costs_a_reconnect_and_no_hold,
             sentinels_that_are_silent_or_gone_change_nothing,
             further_sentinels_are_learned);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
