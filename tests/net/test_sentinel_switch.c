/* SPDX-License-Identifier: Apache-2.0 */
/* The switch of the master as sentinels announce it: all connections leave the old one,
 * all holds are asked about, and what is no switch changes nothing. The sentinels say
 * what the test wants. (Real ones: test_sentinel_failover.) */
/* program: claims=P9 */
#include "client/client.h"

#include "sentinelscene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOON_MS = 20000, QUIET_MS = 300 };
/* No renewal is due by itself. */
#define LONG_LEASE "?lease=600000"

static void open_other(const char *parameters)
{
    other = open_at(fakes_url(SENTINELS, ""), parameters);
    OK(rlock_client_ping(other));
    ck_assert(test_wait_until(fakes_two_listen, NULL, SOON_MS));
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
    fakes_announce(server.port, second.port);
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
    await_replicas(redis, 1);
    test_redis_do(second_redis, "REPLICAOF", "NO", "ONE");
    struct renewed r = { other, stats_of(other).renewals + 2 };
    fakes_say(second.port, 2, "master");
    fakes_announce(server.port, second.port);
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
    ck_assert(test_wait_until(fakes_two_listen, NULL, SOON_MS));
    /* also at the same epoch: the leader of a failover may have named the old master */
    fakes_say(second.port, 2 - _i, "master");
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

static bool is_changed(void *arg)
{
    return !is_unchanged(arg);
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
    fakes_announce(second.port, server.port); /* the one that is the master already */
    ck_assert(test_stays(is_unchanged, &r, QUIET_MS));
    OK(rlock_mutex_unlock(&m));
    fakes_say(second.port, 2, "master"); /* the seats still listen */
    fakes_announce(server.port, second.port);
    ck_assert(test_wait_until(is_changed, &r, SOON_MS));
}
END_TEST

/* rule: P9 */
START_TEST(forged_switch_costs_a_reconnect_and_no_hold)
{
    open_other(LONG_LEASE);
    rlock_mutex_t m = mutex_of(other, "m");

    OK(rlock_mutex_lock(&m));
    struct renewed r = { other, stats_of(other).renewals + 1 };
    int64_t start = test_now_ms();
    fakes_announce(server.port, fakes_dead_port());
    ck_assert(test_wait_until(has_renewed, &r, SOON_MS));
    unsigned moves = atomic_load(&other->route.target.moves.count);
    /* others come too soon: within a second after the first one */
    while (test_now_ms() - start < 600) {
        fakes_announce(server.port, fakes_dead_port());
        test_pause_ms(5);
    }
    unsigned more = atomic_load(&other->route.target.moves.count) - moves;
    if (test_now_ms() - start < 900)
        ck_assert_uint_eq(more, 0);
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

static bool pings_by_a_connection_of_its_own(void *arg)
{
    rlock_client_t *c = arg;

    rlk_pool_drain(c->route.target.pool);
    return rlock_client_ping(c) == 0;
}

static bool is_cut_off(void *arg)
{
    const struct rlock_client *c = arg;
    return !atomic_load(&c->route.target.subscription.subscribed);
}

static void third_sleeps(void)
{
    fake_sentinel_sleeps(fakes[2], true);
}

static void third_wants_a_password(void)
{
    fake_sentinel_wants(fakes[2], "", "secret");
}

static void third_knows_no_such_name(void)
{
    fake_sentinel_refuses(fakes[2], "ERR No such master with that name");
}

static void third_missed_a_failover(void)
{
    fake_sentinel_says(fakes[2], second.port, 0, "master");
}

static void (*const no_help[])(void) = { third_sleeps, third_wants_a_password,
                                         third_knows_no_such_name,
                                         third_missed_a_failover };
enum { NO_HELPS = sizeof(no_help) / sizeof(no_help[0]) };

/* rule: P9 */
START_TEST(connection_is_opened_without_sentinels_only_while_another_one_lives)
{
    open_other("?connecttimeout=1000&commandtimeout=1000");
    unsigned long connects = stats_of(other).connects;

    fake_sentinel_sleeps(fakes[0], true);
    fake_sentinel_sleeps(fakes[1], true);
    no_help[_i]();
    ck_assert(test_wait_until(pings_by_a_connection_of_its_own, other, SOON_MS));
    ck_assert_uint_gt(stats_of(other).connects, connects);
    if (_i > 0)
        return;
    /* from now on the server may be an old master that came back */
    cut_clients(redis);
    ck_assert(test_wait_until(is_cut_off, other, SOON_MS));
    connects = stats_of(other).connects;
    rlk_pool_drain(other->route.target.pool);
    EXPECT(rlock_client_ping(other), ENOTCONN);
    ck_assert_uint_eq(stats_of(other).connects, connects);
}
END_TEST

static bool many_subscribed(void *arg)
{
    (void)arg;
    return fakes_subscribers() >= 8;
}

START_TEST(seat_that_is_closed_again_and_again_waits_longer)
{
    int64_t start = test_now_ms();

    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_closes_subscribers(fakes[i]);
    other = open_at(fakes_url(SENTINELS, ""), "");
    ck_assert(test_wait_until(many_subscribed, NULL, SOON_MS));
    /* each of two seats four times, with pauses of 100, 200 and 400 ms */
    ck_assert_int_ge(test_now_ms() - start, 600);
}
END_TEST

/* The lock that is taken next at the server, after all say that it is the master. */
static long long switch_to(uint16_t from, uint16_t to, int epoch, struct test_redis *r)
{
    char name[16]; /* another one each time: the last may have been left at the server */

    snprintf(name, sizeof(name), "next%d", epoch);
    rlock_mutex_t m = mutex_of(other, name);
    int64_t start = test_now_ms();
    bool there = false;

    fakes_say(to, epoch, "master");
    fakes_announce(from, to);
    while (!there) {
        ck_assert_int_lt(test_now_ms() - start, test_ms(SOON_MS));
        if (rlock_mutex_trylock(&m) != 0)
            continue;
        there = test_redis_exists(r, name);
        (void)rlock_mutex_unlock(&m); /* ESTALE, if it was at the old one */
    }
    return test_now_ms() - start;
}

static int by_size(const void *a, const void *b)
{
    long long x = *(const long long *)a, y = *(const long long *)b;
    return (x > y) - (x < y);
}

/* rule: P9 */
START_TEST(next_lock_is_taken_soon_after_a_switch)
{
    enum { MOST = 15 };
    long long took[MOST];
    int count = (int)test_count(MOST, 3);

    open_other("");
    for (int i = 0; i < count; i++) {
        bool away = i % 2 == 0;
        took[i] =
            switch_to(away ? server.port : second.port, away ? second.port : server.port,
                      i + 2, away ? second_redis : redis);
    }
    qsort(took, (size_t)count, sizeof(took[0]), by_size);
    ck_assert_int_le(took[count / 2], test_ms(300));
    ck_assert_int_le(took[count - 1], test_ms(2000));
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
             message_that_is_no_switch_changes_nothing,
             forged_switch_costs_a_reconnect_and_no_hold,
             sentinels_that_are_silent_or_gone_change_nothing,
             seat_that_is_closed_again_and_again_waits_longer,
             next_lock_is_taken_soon_after_a_switch, further_sentinels_are_learned);
    tcase_add_loop_test(tc, switch_that_came_before_the_subscription_is_noticed, 0, 2);
    tcase_add_loop_test(
        tc, connection_is_opened_without_sentinels_only_while_another_one_lives, 0,
        NO_HELPS);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
