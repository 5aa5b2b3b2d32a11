/* SPDX-License-Identifier: Apache-2.0 */
/* program: slow */
/*
 * Connections in trouble: they are cut at any byte, end in one direction, carry one byte
 * at a time, go silent in one direction or both, or are closed while idle. `client`
 * connects through the proxy and `m` is its handle of "n"; `theirs` is the handle of
 * another client, which connects straight to the server. test_links_down.c is about hosts
 * that cannot be reached.
 */
#include "fixture.h"
#include "state/hold.h"

#include "net/script.h"
#include "proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOON_MS = 10000, COMMAND_MS = 300, SLACK_MS = 700, LONG_LEASE_MS = 600000 };

static rlock_mutex_t m, theirs;

/* Opens the client over TCP, because only TCP has resets. Times in ms, scaled; 0: the
 * default. */
static void open_client(long lease_ms, long presence_ms, long command_ms)
{
    char parameters[128];
    snprintf(parameters, sizeof(parameters),
             "?lease=%ld&presence=%ld&commandtimeout=%ld&connecttimeout=%ld",
             test_ms(lease_ms ? lease_ms : 30000),
             presence_ms ? test_ms(presence_ms) : 3000,
             test_ms(command_ms ? command_ms : 3000), test_ms(3000));
    client = open_at(test_proxy_tcp_url(proxy), parameters);
    m = fenced_mutex(client, "n");
    theirs = fenced_mutex(fixture_other(), "n");
}

static const char *sha_of(enum rlk_script_id script)
{
    return rlk_scripts[script].sha;
}

static bool is_free(const char *key)
{
    return !test_redis_exists(redis, key);
}

/* The request was executed once: the hold has the only token that was ever made. */
static void expect_held_once(void)
{
    char token[32];
    snprintf(token, sizeof(token), "%llu", (unsigned long long)token_of(&m));
    ck_assert_int_eq(test_redis_int(redis, "HLEN", "n"), 4); /* id, mode, since, token */
    ck_assert_str_eq(test_redis_str(redis, "GET", "redisson_lock_token:{n}"), token);
}

/* ---- 43: cut at every byte, the pair of lock and unlock still succeeds */

struct cut {
    enum test_point on;
    enum rlk_script_id script;
    bool reset;
};
static const struct cut cuts[] = {
    { TEST_ON_REPLY, RLK_MUTEX_ACQUIRE, true },
    { TEST_ON_REPLY, RLK_MUTEX_RELEASE, true },
    { TEST_ON_REQUEST, RLK_MUTEX_ACQUIRE, true },
    { TEST_ON_REQUEST, RLK_MUTEX_RELEASE, true },
    { TEST_ON_REPLY, RLK_MUTEX_ACQUIRE, false },
    { TEST_ON_REQUEST, RLK_MUTEX_RELEASE, false },
};
enum {
    CUTS = sizeof(cuts) / sizeof(cuts[0]),
    REPLY_MAX = 120,
    REQUEST_MAX = 500,
    GRANT_MAX = 160
};

START_TEST(pair_whose_messages_are_cut_after_any_byte_is_done_once)
{
    const struct cut *c = &cuts[_i];
    size_t most = c->on == TEST_ON_REPLY ? REPLY_MAX : REQUEST_MAX;
    size_t step = (size_t)test_count(1, c->on == TEST_ON_REPLY ? 7 : 37);
    uint64_t last = 0;
    open_client(LONG_LEASE_MS, 0, 0);
    for (size_t n = 0; n < most; n += step) {
        struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(SOON_MS));
        test_redis_do(redis, "DEL", "redisson_lock_token:{n}");
        int rule =
            TEST_RULE(proxy, .on = c->on, .action = TEST_CUT, .keep_len = n,
                      .contains = sha_of(c->script), .reset = c->reset, .count = 1);
        OK(rlock_mutex_timedlock(&m, &at));
        expect_held_once();
        ck_assert_uint_gt(token_of(&m), last);
        last = token_of(&m);
        OK(rlock_mutex_unlock(&m));
        ck_assert(wait_key("n", false, SOON_MS));
        ck_assert_uint_eq(test_proxy_hits(proxy, rule), 1);
        test_proxy_remove(proxy, rule);
    }
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}
END_TEST

START_TEST(waiter_whose_grant_is_cut_after_any_byte_gets_the_lock)
{
    struct task task;
    open_client(LONG_LEASE_MS, 300, 0);
    for (size_t n = 0; n < GRANT_MAX; n += (size_t)test_count(3, 40)) {
        OK(rlock_mutex_lock(&theirs));
        task_start(&task, run_pair, &m);
        ck_assert(wait_size("rlock:{n}:queue", 1));
        int rule =
            TEST_RULE(proxy, .on = TEST_ON_MESSAGE, .action = TEST_CUT, .keep_len = n,
                      .contains = "1 grant", .reset = _i == 0, .count = 1);
        OK(rlock_mutex_unlock(&theirs));
        ck_assert(task_ends(&task, SOON_MS));
        OK(task_join(&task));
        ck_assert(wait_key("n", false, SOON_MS));
        ck_assert_uint_eq(test_proxy_hits(proxy, rule), 1);
        test_proxy_remove(proxy, rule);
        ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_CONNECTED, SOON_MS));
    }
}
END_TEST

/* ---- 40, 43: all data arrives as single bytes */

static bool has_renewals(void *arg)
{
    return stats_of(client).renewals >= *(const uint64_t *)arg;
}

static bool wait_renewals(uint64_t more)
{
    uint64_t wanted = stats_of(client).renewals + more;
    return test_wait_until(has_renewals, &wanted, SOON_MS);
}

START_TEST(locks_are_taken_granted_and_renewed_in_single_bytes)
{
    struct task task;
    open_client(2000, 0, 0);
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_DRIP);
    TEST_RULE(proxy, .on = TEST_ON_MESSAGE, .action = TEST_DRIP);
    OK(rlock_mutex_lock(&theirs));
    task_start(&task, run_pair, &m);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
    OK(rlock_mutex_lock(&m));
    ck_assert(wait_renewals(1));
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
    ck_assert(is_free("n"));
    ck_assert_uint_eq(stats_of(client).unknown_outcomes, 0);
}
END_TEST

/* ---- 42: one direction ends */

START_TEST(pair_whose_connection_ends_in_one_direction_is_done_once)
{
    open_client(LONG_LEASE_MS, 0, 0);
    for (int i = 0; i < 4; i++) {
        test_redis_do(redis, "DEL", "redisson_lock_token:{n}");
        int rule =
            TEST_RULE(proxy, .on = i % 2 ? TEST_ON_REPLY : TEST_ON_REQUEST,
                      .action = TEST_HALF_CLOSE, .count = 1,
                      .contains = sha_of(i < 2 ? RLK_MUTEX_ACQUIRE : RLK_MUTEX_RELEASE));
        OK(rlock_mutex_lock(&m));
        expect_held_once();
        OK(rlock_mutex_unlock(&m));
        ck_assert(wait_key("n", false, SOON_MS));
        ck_assert_uint_eq(test_proxy_hits(proxy, rule), 1);
    }
}
END_TEST

START_TEST(hold_whose_connection_ends_with_each_renewal_is_not_lost)
{
    open_client(600, 0, 0);
    int rule = TEST_RULE(proxy, .on = _i ? TEST_ON_REPLY : TEST_ON_REQUEST,
                         .action = TEST_HALF_CLOSE, .contains = sha_of(RLK_MUTEX_RENEW));
    OK(rlock_mutex_lock(&m));
    ck_assert(test_proxy_wait_hits(proxy, rule, 4, SOON_MS));
    ck_assert(wait_renewals(1));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(waiter_whose_subscription_ends_in_one_direction_gets_the_lock)
{
    struct task task;
    open_client(LONG_LEASE_MS, 300, 0);
    if (_i)
        TEST_RULE(proxy, .on = TEST_ON_MESSAGE, .action = TEST_HALF_CLOSE,
                  .contains = "1 grant", .count = 1);
    else
        TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_HALF_CLOSE,
                  .contains = "PING", .count = 1);
    for (int i = 0; i < 2; i++) {
        OK(rlock_mutex_lock(&theirs));
        task_start(&task, run_pair, &m);
        ck_assert(wait_size("rlock:{n}:queue", 1));
        if (_i == 0 && i == 0)
            ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_DISCONNECTED, SOON_MS));
        OK(rlock_mutex_unlock(&theirs));
        ck_assert(task_ends(&task, SOON_MS));
        OK(task_join(&task));
    }
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_CONNECTED, SOON_MS));
}
END_TEST

/* ---- 44, 13: connections that go silent without an error; new ones work */

static void drop_on(unsigned connection)
{
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_DROP,
              .connection = connection);
    TEST_RULE(proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .connection = connection);
}

static void leave_all_half_open(void)
{
    unsigned accepted = test_proxy_counts(proxy).accepted;
    for (unsigned i = 1; i <= accepted; i++)
        drop_on(i);
}

/* Makes this many callers' connections idle in the pool. */
static void use_connections(unsigned n)
{
    struct task task[8];
    rlock_mutex_t one[8];
    char name[16];
    int rule = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                         .contains = sha_of(RLK_MUTEX_ACQUIRE));
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "c%u", i);
        one[i] = mutex_of(client, name);
        task_start(&task[i], run_pair, &one[i]);
    }
    ck_assert(test_proxy_wait_hits(proxy, rule, n, SOON_MS));
    test_proxy_remove(proxy, rule);
    for (unsigned i = 0; i < n; i++)
        OK(task_join(&task[i]));
}

START_TEST(trylock_on_a_half_open_connection_ends_in_time_and_the_next_one_works)
{
    open_client(LONG_LEASE_MS, 30000 / test_ms(1), COMMAND_MS);
    use_connections(4);
    leave_all_half_open();
    int64_t begin = test_now_ms();
    EXPECT(rlock_mutex_trylock(&m), ENOTCONN);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
    begin = test_now_ms();
    OK(rlock_mutex_trylock(&m));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(unlock_on_a_half_open_connection_ends_in_time_and_is_made_up_for)
{
    open_client(LONG_LEASE_MS, 0, COMMAND_MS);
    OK(rlock_mutex_lock(&m));
    leave_all_half_open();
    int64_t begin = test_now_ms();
    OK(rlock_mutex_unlock(&m));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
    ck_assert(wait_key("n", false, 2 * COMMAND_MS + SOON_MS));
}
END_TEST

START_TEST(hold_whose_connections_are_half_open_is_renewed_by_others)
{
    open_client(600, 0, COMMAND_MS);
    OK(rlock_mutex_lock(&m));
    ck_assert(wait_renewals(1));
    leave_all_half_open();
    ck_assert(wait_renewals(2));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    OK(rlock_mutex_unlock(&m)); /* perhaps by the background job */
    ck_assert(wait_key("n", false, SOON_MS));
}
END_TEST

START_TEST(half_open_subscription_is_noticed_and_its_waiter_granted_by_their_bounds)
{
    enum { PRESENCE_MS = 1200 };
    struct task task;
    open_client(LONG_LEASE_MS, PRESENCE_MS, COMMAND_MS);
    OK(rlock_mutex_lock(&theirs));
    task_start(&task, run_pair, &m);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    int64_t begin = test_now_ms();
    drop_on(1);
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&task, SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(PRESENCE_MS / 3 + SLACK_MS));
    OK(task_join(&task));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_DISCONNECTED, SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(PRESENCE_MS + COMMAND_MS + SLACK_MS));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_CONNECTED, SOON_MS));
}
END_TEST

/* ---- 45: only one direction carries data */

static bool is_not_renewed(void *arg)
{
    return test_proxy_hits(proxy, *(const int *)arg) == 0;
}

START_TEST(hold_whose_replies_are_lost_is_LOST_by_D_and_never_renewed_after)
{
    enum { LEASE_MS = 600 };
    open_client(LEASE_MS, 0, COMMAND_MS);
    OK(rlock_mutex_lock(&m));
    int64_t begin = test_now_ms();
    int lost_reply = TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_DROP);
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(LEASE_MS + SLACK_MS));
    ck_assert_uint_ge(test_proxy_hits(proxy, lost_reply),
                      1); /* the server did renew it */
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    test_proxy_remove_all(proxy);
    int renewal =
        TEST_RULE(proxy, .on = TEST_ON_REQUEST, .contains = sha_of(RLK_MUTEX_RENEW));
    /* longer than the time between two renewals */
    ck_assert(test_stays(is_not_renewed, &renewal, test_ms(LEASE_MS / 2)));
    ck_assert(wait_key("n", false, LEASE_MS / 2));
}
END_TEST

START_TEST(hold_whose_requests_are_lost_is_LOST_before_another_has_the_lock)
{
    open_client(600, 0, COMMAND_MS);
    OK(rlock_mutex_lock(&m));
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    OK(rlock_mutex_lock(&theirs));
    ck_assert_int_eq(state_of(&m), RLOCK_LOST);
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, 100));
    test_proxy_remove_all(proxy);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    ck_assert_uint_gt(token_of(&theirs), 0);
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

/* ---- 46: a part of the network repeats requests on a connection of its own */

enum { WORDS_MAX = 40, WORD_MAX = 300 };
struct request {
    int count;
    char word[WORDS_MAX][WORD_MAX];
};

/* Splits a line of MONITOR into its words. */
static void parse_line(struct request *r, const char *line)
{
    memset(r, 0, sizeof(*r));
    const char *at = strstr(line, "] \"");
    while (at && (at = strchr(at, '"')) != NULL) {
        size_t len = strcspn(++at, "\"");
        ck_assert_uint_lt(len, WORD_MAX);
        ck_assert_ptr_null(memchr(at, '\\', len)); /* none of these words needs quoting */
        ck_assert_int_lt(r->count, WORDS_MAX);
        memcpy(r->word[r->count++], at, len);
        at += len + 1;
    }
}

static void repeat(const struct request *r)
{
    const char *argv[WORDS_MAX];
    size_t len[WORDS_MAX];
    for (int i = 0; i < r->count; i++) {
        argv[i] = r->word[i];
        len[i] = strlen(argv[i]);
    }
    ck_assert_ptr_nonnull(test_redis_try_bytes(redis, r->count, argv, len));
}

/* The actor makes a call whose request the server executes three times before the actor
 * gets the reply. */
static int does_repeated(struct actor *actor, int (*run)(void *arg), void *arg,
                         enum rlk_script_id script, struct request *ret_request)
{
    const redisReply *reply;
    struct test_redis *monitor = test_redis_connect(server.path);
    test_redis_do(monitor, "MONITOR");
    int rule = TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_HOLD,
                         .contains = sha_of(script), .count = 1);
    actor_begin(actor, run, arg);
    do {
        reply = test_redis_recv(monitor, SOON_MS);
        ck_assert_ptr_nonnull(reply);
    } while (!strstr(reply->str, sha_of(script)));
    parse_line(ret_request, reply->str);
    test_redis_close(monitor);
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    repeat(ret_request);
    repeat(ret_request);
    test_proxy_remove(proxy, rule);
    return actor_rc(actor);
}

static int run_timedlock(void *mutex)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, 100);
    return rlock_mutex_timedlock(mutex, &at);
}

START_TEST(requests_that_are_executed_again_do_nothing_more)
{
    struct actor a;
    static struct request acquire, release, cancel;
    open_client(LONG_LEASE_MS, 0, COMMAND_MS);
    actor_start(&a);
    OK(does_repeated(&a, run_trylock, &m, RLK_MUTEX_ACQUIRE, &acquire));
    ck_assert_int_eq(test_redis_int(redis, "HLEN", "n"), 4);
    OK(does_repeated(&a, run_unlock, &m, RLK_MUTEX_RELEASE, &release));
    ck_assert(is_free("n"));
    OK(rlock_mutex_lock(&theirs));
    repeat(&release);
    repeat(&acquire);
    ck_assert(test_redis_exists(redis, "n"));
    EXPECT(does_repeated(&a, run_timedlock, &m, RLK_MUTEX_CANCEL, &cancel), ETIMEDOUT);
    ck_assert(wait_size("rlock:{n}:queue", 0) && state_of(&theirs) == RLOCK_SAFE);
    repeat(&cancel);
    OK(rlock_mutex_unlock(&theirs)); /* returns 0: `theirs` held it all the time */
    /* after the time limit inside the request, a repetition does not take a free lock
     * either */
    test_pause_ms(test_ms(COMMAND_MS) + 50);
    repeat(&acquire);
    ck_assert(is_free("n"));
    actor_end(&a);
}
END_TEST

START_TEST(release_that_is_executed_again_hands_over_once)
{
    struct actor a, b;
    static struct request release;
    open_client(LONG_LEASE_MS, 0, 0);
    actor_start(&a);
    actor_start(&b);
    OK(actor_does(&a, run_lock, &m));
    actor_begin(&b, run_lock, &theirs);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    OK(does_repeated(&a, run_unlock, &m, RLK_MUTEX_RELEASE, &release));
    OK(actor_rc(&b));
    repeat(&release);
    ck_assert(test_redis_exists(redis, "n"));
    OK(actor_does(&b, run_unlock, &theirs));
    ck_assert(is_free("n"));
    actor_end(&a);
    actor_end(&b);
}
END_TEST

/* ---- 48: the server closes idle connections */

static bool is_alone(void *arg)
{
    /* this test's connections stay open because they send requests: `redis` alone is
     * normal */
    (void)arg;
    const char *list = test_redis_str(redis, "CLIENT", "LIST", "TYPE", "normal");
    return strchr(list, '\n') == strrchr(list, '\n');
}

START_TEST(connections_that_the_server_closed_while_idle_cost_no_hold_and_no_call)
{
    open_client(LONG_LEASE_MS, 0, 0);
    OK(rlock_mutex_lock(&m));
    use_connections(3);
    test_redis_config(redis, "timeout", "1");
    ck_assert(test_wait_until(is_alone, NULL, SOON_MS));
    ck_assert(test_proxy_wait_open(proxy, 1, SOON_MS)); /* the subscriber's */
    test_redis_config(redis, "timeout", "0");
    uint64_t unknown = stats_of(client).unknown_outcomes;
    OK(rlock_mutex_unlock(&m));
    ck_assert(is_free("n"));
    OK(rlock_mutex_trylock(&m));
    OK(rlock_mutex_unlock(&m));
    ck_assert_uint_eq(stats_of(client).unknown_outcomes, unknown);
    ck_assert(!event_seen(RLOCK_EVENT_DISCONNECTED) && !event_seen(RLOCK_EVENT_LOST));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("links");
    TCase *tc = tcase_create("links");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, fixture_open_proxied, fixture_close_proxied);
    tcase_add_loop_test(tc, pair_whose_messages_are_cut_after_any_byte_is_done_once, 0,
                        CUTS);
    tcase_add_loop_test(tc, waiter_whose_grant_is_cut_after_any_byte_gets_the_lock, 0, 2);
    tcase_add_test(tc, locks_are_taken_granted_and_renewed_in_single_bytes);
    tcase_add_test(tc, pair_whose_connection_ends_in_one_direction_is_done_once);
    tcase_add_loop_test(tc, hold_whose_connection_ends_with_each_renewal_is_not_lost, 0,
                        2);
    tcase_add_loop_test(tc, waiter_whose_subscription_ends_in_one_direction_gets_the_lock,
                        0, 2);
    tcase_add_test(tc,
                   trylock_on_a_half_open_connection_ends_in_time_and_the_next_one_works);
    tcase_add_test(tc, unlock_on_a_half_open_connection_ends_in_time_and_is_made_up_for);
    tcase_add_test(tc, hold_whose_connections_are_half_open_is_renewed_by_others);
    tcase_add_test(
        tc, half_open_subscription_is_noticed_and_its_waiter_granted_by_their_bounds);
    tcase_add_test(tc, hold_whose_replies_are_lost_is_LOST_by_D_and_never_renewed_after);
    tcase_add_test(tc, hold_whose_requests_are_lost_is_LOST_before_another_has_the_lock);
    tcase_add_test(tc, requests_that_are_executed_again_do_nothing_more);
    tcase_add_test(tc, release_that_is_executed_again_hands_over_once);
    tcase_add_test(
        tc, connections_that_the_server_closed_while_idle_cost_no_hold_and_no_call);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
