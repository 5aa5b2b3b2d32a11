/* SPDX-License-Identifier: Apache-2.0 */
/* Around a switch of the master: a proof that comes late, what an old master grants, what
 * sentinels say while a failover is under way, and servers that do not tell their role.
 * The sentinels say what the test wants. (Real ones: test_sentinel_failover.) */
/* program: */
#include "client/client.h"

#include "sentinelscene.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

enum { SOON_MS = 20000 };
#define LONG_LEASE "?lease=600000"

static void set_up(void)
{
    fakes_open();
    fixture_load_scripts();
    proxy = test_proxy_start(&server);
}

static void tear_down(void)
{
    test_proxy_remove_all(proxy);
    fakes_close();
    test_proxy_stop(proxy);
}

static int run_ping(void *c)
{
    return rlock_client_ping(c);
}

static bool pings(void *c)
{
    return rlock_client_ping(c) == 0;
}

static bool pings_by_a_connection_of_its_own(void *arg)
{
    rlock_client_t *c = arg;

    rlk_pool_drain(c->route.target.pool);
    return rlock_client_ping(c) == 0;
}

static bool hears(void *arg)
{
    const struct rlock_client *c = arg;
    return atomic_load(&c->route.target.subscription.subscribed);
}

/* The port of the master that was proven; 0: none was. */
static unsigned proven_port(void)
{
    struct rlk_sentinel_master present;

    return rlk_sentinel_book_present(other->config.endpoint.book, &present)
               ? present.address.port
               : 0;
}

static unsigned moves(void)
{
    return atomic_load(&other->route.target.moves.count);
}

/* ---- proofs */

/* rule: P9 */
START_TEST(slow_connection_to_the_old_master_does_not_replace_the_newer_proof)
{
    struct task slow;
    int rule =
        TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_HOLD, .contains = "ROLE");

    fakes_say(test_proxy_port(proxy), 1, "master");
    other = sentinel_open(fakes_url(SENTINELS, ""));
    task_start(&slow, run_ping, other);
    /* the mailbox's, and that of the thread */
    ck_assert(test_proxy_wait_hits(proxy, rule, 2, SOON_MS));
    fakes_say(second.port, 2, "master");
    OK(rlock_client_ping(other));
    test_proxy_remove(proxy, rule);
    OK(task_join(&slow));
    ck_assert(test_wait_until(hears, other, SOON_MS));
    ck_assert_uint_eq(proven_port(), second.port);
    ck_assert_uint_eq(moves(), 0);
}
END_TEST

/* rule: P9 */
START_TEST(another_spelling_of_the_masters_address_is_no_move)
{
    other = open_at(fakes_url(SENTINELS, ""), "");
    OK(rlock_client_ping(other));
    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_spells(fakes[i], "localhost");
    fakes_say(server.port, 2, "master");
    ck_assert(test_wait_until(pings_by_a_connection_of_its_own, other, SOON_MS));
    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_cut(fakes[i]); /* the seats ask again */
    for (int i = 0; i < 3; i++)
        ck_assert(test_wait_until(pings_by_a_connection_of_its_own, other, SOON_MS));
    ck_assert_uint_eq(moves(), 0);
}
END_TEST

/* ---- what the old master grants */

static bool is_done(void *arg)
{
    return atomic_load(&((struct task *)arg)->done);
}

/* rule: P9 */
START_TEST(lock_that_the_old_master_grants_after_the_switch_is_asked_about)
{
    uint16_t old = test_proxy_port(proxy);
    struct actor actor;

    fakes_say(old, 1, "master");
    other = open_at(fakes_url(SENTINELS, ""), LONG_LEASE);
    ck_assert(test_wait_until(fakes_two_listen, NULL, SOON_MS));
    rlock_mutex_t before = mutex_of(other, "before"), m = mutex_of(other, "m");
    OK(rlock_mutex_lock(&before));
    int rule =
        TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_HOLD, .contains = "EVALSHA");
    actor_start(&actor);
    actor_begin(&actor, run_lock, &m);
    ck_assert(test_proxy_wait_answered(proxy, rule, 1, SOON_MS));
    fakes_say(second.port, 2, "master");
    fakes_announce(old, second.port);
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS)); /* the move was handled */
    test_proxy_remove(proxy, rule);
    OK(actor_rc(&actor));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    ck_assert_int_eq(actor_does(&actor, run_unlock, &m), ESTALE);
    actor_end(&actor);
    EXPECT(rlock_mutex_unlock(&before), ESTALE);
}
END_TEST

/* rule: P9 */
START_TEST(other_connections_leave_at_once_when_one_has_found_the_new_master)
{
    other = open_at(fakes_url(SENTINELS, ""), LONG_LEASE);
    rlock_mutex_t m = mutex_of(other, "m");

    OK(rlock_mutex_lock(&m));
    ck_assert(test_wait_until(fakes_two_listen, NULL, SOON_MS));
    fakes_say(second.port, 2, "master"); /* and announce nothing */
    int64_t start = test_now_ms();
    ck_assert(test_wait_until(pings_by_a_connection_of_its_own, other, SOON_MS));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    ck_assert_int_lt(test_now_ms() - start, test_ms(600));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

/* ---- while a failover is under way */

/* rule: P7 */
START_TEST(leader_of_a_failover_is_asked_for_the_promoted_replica)
{
    fakes_say(server.port, 2,
              _i == 0 ? "master,failover_in_progress"
                      : "master,s_down,o_down,failover_in_progress");
    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_promotes(fakes[i], second.port);
    other = sentinel_open(fakes_url(SENTINELS, ""));
    OK(rlock_client_ping(other));
    ck_assert_uint_eq(proven_port(), second.port);
}
END_TEST

/* rule: P7 */
START_TEST(newer_master_that_is_down_for_a_moment_keeps_the_client_from_the_older_one)
{
    struct task task;

    fake_sentinel_says(fakes[1], second.port, 2, "master,disconnected");
    fake_sentinel_says(fakes[2], second.port, 2, "master,disconnected");
    other = sentinel_open(fakes_url(SENTINELS, ""));
    task_start(&task, run_ping, other);
    int64_t end = test_now_ms() + test_ms(SOON_MS);
    while (fake_sentinel_asked(fakes[0]) < 3 && !is_done(&task) && test_now_ms() < end)
        test_pause_ms(1);
    fake_sentinel_says(fakes[1], second.port, 2, "master");
    OK(task_join(&task));
    ck_assert_uint_eq(proven_port(), second.port);
}
END_TEST

/* rule: P7 */
START_TEST(newer_master_that_stays_down_does_not_lock_the_client_out)
{
    fake_sentinel_says(fakes[1], fakes_dead_port(), 99, "master,disconnected");
    other = sentinel_open(fakes_url(SENTINELS, ""));
    ck_assert(test_wait_until(pings, other, SOON_MS));
    ck_assert_uint_eq(proven_port(), server.port);
}
END_TEST

/* rule: P7 */
START_TEST(no_sentinel_of_the_url_is_left_out_before_the_first_proof)
{
    enum { TRIES = 5, LATE_MS = 60 };
    struct task task;
    bool found = false;

    fake_sentinel_says(fakes[2], second.port, 2, "master");
    for (int i = 0; i < TRIES && !found; i++) {
        unsigned asked = fake_sentinel_asked(fakes[0]);
        fake_sentinel_sleeps(fakes[2], true);
        other = sentinel_open(fakes_url(SENTINELS, ""));
        task_start(&task, run_ping, other);
        int64_t end = test_now_ms() + test_ms(SOON_MS);
        while (fake_sentinel_asked(fakes[0]) == asked && test_now_ms() < end)
            test_pause_ms(1);
        int64_t late = test_now_ms() + LATE_MS; /* more than the others' time twice */
        while (test_now_ms() < late)
            test_pause_ms(1);
        fake_sentinel_sleeps(fakes[2], false);
        OK(task_join(&task));
        found = proven_port() == second.port;
        close_client(other);
        other = NULL;
    }
    ck_assert(found);
}
END_TEST

/* When the sentinel was asked that many times. */
static int64_t asked_at(unsigned count)
{
    int64_t end = test_now_ms() + test_ms(SOON_MS);

    while (fake_sentinel_asked(fakes[0]) < count && test_now_ms() < end)
        test_pause_ms(1);
    return test_now_ms();
}

/* rule: P7 */
START_TEST(asks_do_not_last_longer_while_one_sentinel_answers)
{
    struct task task;

    fake_sentinel_says(fakes[0], server.port, 1, "master,s_down");
    fake_sentinel_sleeps(fakes[1], true);
    fake_sentinel_sleeps(fakes[2], true);
    other =
        sentinel_open(fakes_url(SENTINELS, "?commandtimeout=20000&connecttimeout=20000"));
    task_start(&task, run_ping, other);
    /* the mailbox's connection asks, too */
    int64_t third = asked_at(6), fourth = asked_at(8), fifth = asked_at(10);
    bool quick = fourth - third < 900 || fifth - fourth < 900;
    fakes_say(server.port, 1, "master");
    OK(task_join(&task));
    ck_assert(quick);
}
END_TEST

/* ---- names */

static atomic_uint lookups; /* that began */
static atomic_bool resolver_hangs;

/* In place of libc's. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **ret_list)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    void *at = dlsym(RTLD_NEXT, "getaddrinfo");

    memcpy(&real, &at, sizeof(real));
    if (!(hints->ai_flags & AI_NUMERICHOST)) {
        atomic_fetch_add(&lookups, 1);
        while (atomic_load(&resolver_hangs))
            test_pause_ms(5);
    }
    return real(host, port, hints, ret_list);
}

static const char *url_with_names(const char *parameters)
{
    static char url[SENTINEL_URL_MAX];
    int len = snprintf(url, sizeof(url), "redis-sentinel://");

    for (int i = 0; i < SENTINELS; i++)
        len += snprintf(url + len, sizeof(url) - (size_t)len, "%slocalhost:%u",
                        i > 0 ? "," : "", (unsigned)fake_sentinel_port(fakes[i]));
    snprintf(url + len, sizeof(url) - (size_t)len, ",localhost:%u/mymaster%s",
             (unsigned)fake_sentinel_port(fakes[0]), parameters); /* one of them twice */
    return url;
}

START_TEST(resolver_that_hangs_gets_one_thread_for_each_name)
{
    atomic_store(&resolver_hangs, true);
    other = sentinel_open(url_with_names("?commandtimeout=200&connecttimeout=200"));
    for (int i = 0; i < 5; i++)
        EXPECT(rlock_client_ping(other), ENOTCONN);
    ck_assert_uint_eq(atomic_load(&lookups), SENTINELS);
    atomic_store(&resolver_hangs, false);
    ck_assert(test_wait_until(pings, other, SOON_MS));
}
END_TEST

/* An outage of the resolver is none of the locks: the sentinels are asked where they
 * answered before. */
START_TEST(sentinels_are_asked_while_the_resolver_hangs)
{
    other = sentinel_open(url_with_names(""));
    OK(rlock_client_ping(other));
    atomic_store(&resolver_hangs, true);
    for (int i = 0; i < 3; i++) {
        unsigned asked = fake_sentinel_asked(fakes[0]);
        rlk_pool_drain(other->route.target.pool);
        OK(rlock_client_ping(other));
        ck_assert_uint_gt(fake_sentinel_asked(fakes[0]), asked);
    }
    atomic_store(&resolver_hangs, false);
}
END_TEST

/* Whether the address of so many sentinels of the URL is known, after one more ask. */
static bool are_known(void *count)
{
    int known = 0;

    rlk_pool_drain(other->route.target.pool);
    OK(rlock_client_ping(other));
    for (size_t i = 0; i <= SENTINELS; i++)
        known += rlk_sentinel_book_socket(other->config.endpoint.book, i).len > 0;
    return known == *(int *)count;
}

/* It may have moved: its name is looked up again. */
START_TEST(address_of_a_sentinel_that_answers_no_more_is_forgotten)
{
    int all = SENTINELS + 1, rest = all - 1; /* the URL has one of them twice */

    other = sentinel_open(url_with_names(""));
    ck_assert(test_wait_until(are_known, &all, SOON_MS));
    fake_sentinel_stop(fakes[1]);
    fakes[1] = NULL;
    ck_assert(test_wait_until(are_known, &rest, SOON_MS));
}
END_TEST

/* ---- servers that do not tell their role */

static void add_worker(struct test_redis *r, const char *except, const char *too)
{
    test_redis_do(r, "ACL", "SETUSER", "worker", "reset", "on", ">datasecret", "~*", "&*",
                  "+@all", except, too);
}

static const char *workers_url(const char *parameters)
{
    static char url[SENTINEL_URL_MAX];

    snprintf(url, sizeof(url), "redis-sentinel://worker:datasecret@%s",
             fakes_url(SENTINELS, parameters) + strlen("redis-sentinel://"));
    return url;
}

/* rule: P7 */
START_TEST(replica_that_refuses_ROLE_is_known_by_INFO)
{
    char port[16];

    snprintf(port, sizeof(port), "%u", (unsigned)server.port);
    add_worker(second_redis, "-role", "-role");
    test_redis_do(second_redis, "REPLICAOF", "127.0.0.1", port);
    fakes_say(second.port, 2, "master");
    other = sentinel_open(workers_url("?commandtimeout=600&connecttimeout=600"));
    EXPECT(rlock_client_ping(other), ENOTCONN);
    ck_assert_ptr_nonnull(strstr(rlock_errmsg(), "is not a master at the moment"));
    ck_assert_uint_eq(proven_port(), 0);
    test_redis_do(second_redis, "ACL", "DELUSER", "worker");
}
END_TEST

/* rule: P7 */
START_TEST(server_that_does_not_tell_its_role_is_proven_by_a_write)
{
    add_worker(redis, "-role", "-info");
    other = open_at(workers_url(""), "");
    OK(rlock_client_ping(other));
    ck_assert_uint_eq(proven_port(), 0);
    rlock_mutex_t m = mutex_of(other, "m");
    OK(rlock_mutex_lock(&m));
    ck_assert_uint_eq(proven_port(), server.port);
    OK(rlock_mutex_unlock(&m));
    test_redis_do(redis, "ACL", "DELUSER", "worker");
}
END_TEST

static const char *const strange[] = { "+master\r\n", "*1\r\n:1\r\n", ":1\r\n",
                                       "$-1\r\n" };
enum { STRANGE = sizeof(strange) / sizeof(strange[0]) };

/* rule: P7 */
START_TEST(strange_reply_to_ROLE_is_no_proof)
{
    TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_ANSWER, .contains = "ROLE",
              .text = strange[_i]);
    fakes_say(test_proxy_port(proxy), 1, "master");
    other = sentinel_open(fakes_url(SENTINELS, ""));
    EXPECT(rlock_client_ping(other), EPROTO);
    ck_assert_ptr_nonnull(strstr(rlock_errmsg(), "to ROLE"));
    ck_assert_uint_eq(proven_port(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sentinel_moves");
    TCase *tc = tcase_create("moves");

    tcase_add_unchecked_fixture(tc, fakes_start, fakes_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    TEST_ADD(tc, slow_connection_to_the_old_master_does_not_replace_the_newer_proof,
             another_spelling_of_the_masters_address_is_no_move,
             lock_that_the_old_master_grants_after_the_switch_is_asked_about,
             other_connections_leave_at_once_when_one_has_found_the_new_master,
             newer_master_that_is_down_for_a_moment_keeps_the_client_from_the_older_one,
             newer_master_that_stays_down_does_not_lock_the_client_out,
             no_sentinel_of_the_url_is_left_out_before_the_first_proof,
             asks_do_not_last_longer_while_one_sentinel_answers,
             resolver_that_hangs_gets_one_thread_for_each_name,
             sentinels_are_asked_while_the_resolver_hangs,
             address_of_a_sentinel_that_answers_no_more_is_forgotten,
             replica_that_refuses_ROLE_is_known_by_INFO,
             server_that_does_not_tell_its_role_is_proven_by_a_write);
    tcase_add_loop_test(tc, leader_of_a_failover_is_asked_for_the_promoted_replica, 0, 2);
    tcase_add_loop_test(tc, strange_reply_to_ROLE_is_no_proof, 0, STRANGE);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
