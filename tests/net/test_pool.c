/* SPDX-License-Identifier: Apache-2.0 */
/* The pool and the handshake, with a real server. */
#include "base/deadline.h"
#include "base/error.h"
#include "net/pool.h"
#include "net/url.h"
#include "redis.h"
#include "server.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS = 2, THREADS = 8 };

static struct test_server server;
static struct test_redis *redis;
static struct rlk_config config;
static struct rlk_pool *pool;
static _Atomic uint64_t connects, connect_failures;

static void start_server(void)
{
    test_server_start(&server, NULL);
}

static void stop_server(void)
{
    test_server_stop(&server);
}

static void create_pool(const char *url)
{
    rlk_pool_free(pool);
    pool = NULL;
    rlk_url_config_clear(&config);
    ck_assert_int_eq(rlk_url_parse(&config, url), 0);
    struct rlk_pool_options options = {
        .conn = { .endpoint = &config.endpoint,
                  .name = "rlock:test",
                  .keepalive_ms = 10000,
                  .reply_limit = 65536 },
        .max_connections = CONNECTIONS,
        .connect_timeout_ns = test_ms(3000) * RLK_NS_PER_MS,
        .connects = &connects,
        .connect_failures = &connect_failures,
    };
    ck_assert_int_eq(rlk_pool_create(&pool, &options), 0);
}

static void set_up(void)
{
    test_server_reset(&server);
    redis = test_redis_connect(server.path);
    connects = connect_failures = 0;
    rlk_error_clear();
    create_pool(server.url);
}

static void tear_down(void)
{
    rlk_pool_free(pool);
    rlk_url_config_clear(&config);
    test_redis_close(redis);
}

static int64_t in_ms(long ms)
{
    return rlk_clock_boot() + ms * RLK_NS_PER_MS;
}

static struct rlk_conn *get(void)
{
    struct rlk_conn *conn = NULL;
    int rc = rlk_pool_get(pool, in_ms(test_ms(5000)), &conn);
    ck_assert_msg(rc == 0, "%d: %s", rc, rlk_error_message());
    return conn;
}

static void assert_get_fails(int code, const char *text)
{
    struct rlk_conn *conn;
    ck_assert_int_eq(rlk_pool_get(pool, in_ms(test_ms(1000)), &conn), code);
    ck_assert_msg(strstr(rlk_error_message(), text), "%s", rlk_error_message());
}

static enum rlk_failure ping(struct rlk_conn *conn)
{
    const char *const argv[] = { "PING" };
    const size_t argv_len[] = { 4 };
    struct rlk_reply *reply;
    int64_t sent;
    enum rlk_failure why =
        rlk_conn_call(conn, 1, argv, argv_len, in_ms(test_ms(5000)), &reply, &sent);
    if (why == RLK_FAIL_NONE)
        rlk_reply_free(reply);
    return why;
}

/* ---- lending */

START_TEST(idle_connection_is_lent_again)
{
    struct rlk_conn *conn = get();
    ck_assert_int_eq(ping(conn), RLK_FAIL_NONE);
    rlk_pool_put(pool, conn);
    for (int i = 0; i < 10; i++) {
        struct rlk_conn *again = get();
        ck_assert_ptr_eq(again, conn);
        ck_assert_int_eq(ping(again), RLK_FAIL_NONE);
        rlk_pool_put(pool, again);
    }
    ck_assert_uint_eq(connects, 1);
}
END_TEST

START_TEST(last_one_in_is_first_out)
{
    struct rlk_conn *a = get(), *b = get();
    ck_assert_ptr_ne(a, b);
    rlk_pool_put(pool, a);
    rlk_pool_put(pool, b);
    ck_assert_ptr_eq(get(), b);
    rlk_pool_put(pool, b);
}
END_TEST

START_TEST(connection_above_the_bound_is_waited_for_until_the_deadline)
{
    struct rlk_conn *a = get(), *b = get(), *c;
    int64_t start = test_now_ms();
    ck_assert_int_eq(rlk_pool_get(pool, in_ms(50), &c), ENOTCONN);
    ck_assert_int_ge(test_now_ms() - start, 49);
    ck_assert_int_le(test_now_ms() - start, 50 + test_ms(200));
    ck_assert_ptr_nonnull(strstr(rlk_error_message(), "all 2 connections"));
    ck_assert_uint_eq(connects, 2);
    rlk_pool_put(pool, a);
    rlk_pool_put(pool, b);
}
END_TEST

struct getter {
    pthread_t thread;
    struct rlk_conn *conn;
    bool first;
    int rc;
};

static void *run_getter(void *arg)
{
    struct getter *g = arg;
    int64_t until = in_ms(test_ms(5000));

    g->rc = g->first ? rlk_pool_get_first(pool, until, &g->conn)
                     : rlk_pool_get(pool, until, &g->conn);
    return NULL;
}

static bool is_waited_for_by(void *count)
{
    return rlk_pool_waiter_count(pool) == *(unsigned *)count;
}

static void await_waiters(unsigned count)
{
    ck_assert(test_wait_until(is_waited_for_by, &count, 5000));
}

START_TEST(who_gives_a_lock_back_is_served_before_those_who_want_one)
{
    struct rlk_conn *a = get(), *b = get();
    struct getter wants = { .rc = -1 }, gives = { .rc = -1, .first = true };

    ck_assert_uint_eq(rlk_pool_waiter_count(pool), 0);
    ck_assert_int_eq(pthread_create(&wants.thread, NULL, run_getter, &wants), 0);
    await_waiters(1);
    ck_assert_int_eq(pthread_create(&gives.thread, NULL, run_getter, &gives), 0);
    await_waiters(2);
    rlk_pool_put(pool, a);
    pthread_join(gives.thread, NULL);
    ck_assert_int_eq(gives.rc, 0);
    ck_assert_ptr_eq(gives.conn, a);
    ck_assert_uint_eq(rlk_pool_waiter_count(pool), 1);
    rlk_pool_put(pool, gives.conn);
    pthread_join(wants.thread, NULL);
    ck_assert_int_eq(wants.rc, 0);
    ck_assert_uint_eq(rlk_pool_waiter_count(pool), 0);
    rlk_pool_put(pool, wants.conn);
    rlk_pool_put(pool, b);
}
END_TEST

START_TEST(waiter_is_handed_what_is_put_back)
{
    struct rlk_conn *a = get(), *b = get();
    struct getter g = { .rc = -1 };
    ck_assert_int_eq(pthread_create(&g.thread, NULL, run_getter, &g), 0);
    test_pause_ms(20); /* most likely the getter waits before the put */
    rlk_pool_put(pool, a);
    pthread_join(g.thread, NULL);
    ck_assert_int_eq(g.rc, 0);
    ck_assert_ptr_eq(g.conn, a);
    rlk_pool_put(pool, a);
    rlk_pool_put(pool, b);
}
END_TEST

START_TEST(waiter_opens_its_own_when_a_dead_one_is_put_back)
{
    struct rlk_conn *a = get(), *b = get();
    struct getter g = { .rc = -1 };
    ck_assert_int_eq(pthread_create(&g.thread, NULL, run_getter, &g), 0);
    test_pause_ms(20); /* as above */
    rlk_conn_kill(a, RLK_FAIL_UNKNOWN, "test");
    rlk_pool_put(pool, a);
    pthread_join(g.thread, NULL);
    ck_assert_int_eq(g.rc, 0);
    ck_assert_uint_eq(connects, 3);
    rlk_pool_put(pool, g.conn);
    rlk_pool_put(pool, b);
}
END_TEST

START_TEST(failed_connects_leave_the_places_free)
{
    test_server_kill(&server);
    for (int i = 0; i < CONNECTIONS + 2; i++)
        assert_get_fails(ENOTCONN, "cannot connect to /");
    ck_assert_uint_eq(connect_failures, CONNECTIONS + 2);
    test_server_restart(&server);
    rlk_pool_put(pool, get());
}
END_TEST

START_TEST(connection_that_died_while_idle_is_replaced)
{
    struct rlk_conn *a = get(), *b = get();
    rlk_pool_put(pool, a);
    rlk_pool_put(pool, b);
    test_redis_kill_clients(redis);
    test_pause_ms(10); /* longer than the pool trusts an idle connection */
    struct rlk_conn *conn = get();
    ck_assert_int_eq(ping(conn), RLK_FAIL_NONE);
    ck_assert_uint_eq(connects, 3);
    rlk_pool_put(pool, conn);
}
END_TEST

START_TEST(drain_closes_the_idle_ones)
{
    struct rlk_conn *a = get(), *b = get();
    rlk_pool_put(pool, a);
    rlk_pool_drain(pool);
    ck_assert_int_eq(ping(b), RLK_FAIL_NONE);
    rlk_pool_put(pool, b);
    rlk_pool_put(pool, get());
    ck_assert_uint_eq(connects, 2);
}
END_TEST

struct worker {
    pthread_t thread;
    long done;
};

static void *run_worker(void *arg)
{
    struct worker *w = arg;
    for (long i = 0; i < test_count(20000, 1000); i++) {
        struct rlk_conn *conn;
        if (rlk_pool_get(pool, in_ms(test_ms(20000)), &conn) != 0)
            break;
        w->done += ping(conn) == RLK_FAIL_NONE;
        if (i % 100 == 99)
            rlk_conn_kill(conn, RLK_FAIL_UNKNOWN, "test");
        rlk_pool_put(pool, conn);
    }
    return NULL;
}

START_TEST(many_threads_share_few_connections)
{
    struct worker workers[THREADS];
    memset(workers, 0, sizeof(workers));
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(
            pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_int_eq(workers[i].done, test_count(20000, 1000));
    }
    ck_assert_int_le(test_redis_info(redis, "connected_clients"), 1 + CONNECTIONS);
}
END_TEST

/* ---- handshake */

START_TEST(connection_has_its_name_and_database)
{
    char url[TEST_URL_MAX + 16];
    snprintf(url, sizeof(url), "%s?db=3", server.url);
    create_pool(url);
    struct rlk_conn *conn = get();
    const char *list = test_redis_str(redis, "CLIENT", "LIST");
    const char *mine = strstr(list, "name=rlock:test");
    ck_assert_ptr_nonnull(mine);
    ck_assert_ptr_nonnull(strstr(mine, " db=3 "));
    rlk_pool_put(pool, conn);
}
END_TEST

START_TEST(clock_offset_is_the_difference_of_the_clocks)
{
    struct rlk_conn *conn = get();
    int64_t expected_us = (rlk_clock_real() - rlk_clock_boot()) / 1000;
    int64_t off_us = rlk_conn_clock_offset_us(conn) - expected_us;
    ck_assert_int_ge(off_us, -1000);
    ck_assert_int_le(off_us, test_ms(1000) * 1000);
    rlk_pool_put(pool, conn);
}
END_TEST

START_TEST(database_out_of_range_is_EPROTO)
{
    char url[TEST_URL_MAX + 16];
    snprintf(url, sizeof(url), "%s/99", server.tcp_url);
    create_pool(url);
    assert_get_fails(EPROTO, "SELECT");
}
END_TEST

static void use_credentials(const char *user, const char *password)
{
    free(config.endpoint.user);
    free(config.endpoint.password);
    config.endpoint.user = user ? strdup(user) : NULL;
    config.endpoint.password = password ? strdup(password) : NULL;
}

START_TEST(missing_or_wrong_password_is_EACCES)
{
    test_redis_config(redis, "requirepass", "secret");
    assert_get_fails(EACCES, "TIME");
    use_credentials(NULL, "canary");
    assert_get_fails(EACCES, "AUTH");
    ck_assert_ptr_null(strstr(rlk_error_message(), "canary"));
    use_credentials(NULL, "secret");
    rlk_pool_put(pool, get());
    rlk_pool_drain(pool);
    test_redis_config(redis, "requirepass", "");
    use_credentials("nobody", "canary");
    assert_get_fails(EACCES, "AUTH");
    ck_assert_ptr_null(strstr(rlk_error_message(), "canary"));
}
END_TEST

START_TEST(password_for_a_server_without_one_is_EACCES)
{
    use_credentials(NULL, "canary");
    assert_get_fails(EACCES, "no password");
}
END_TEST

START_TEST(acl_without_client_setname_is_fine_and_without_time_is_EACCES)
{
    use_credentials("app", "pw");
    test_redis_do(redis, "ACL", "SETUSER", "app", "reset", "on", ">pw", "+time");
    rlk_pool_put(pool, get());
    rlk_pool_drain(pool);
    test_redis_do(redis, "ACL", "SETUSER", "app", "-time");
    assert_get_fails(EACCES, "TIME");
    test_redis_do(redis, "ACL", "DELUSER", "app");
}
END_TEST

START_TEST(full_server_is_ENOTCONN)
{
    test_redis_config(redis, "maxclients", "1");
    assert_get_fails(ENOTCONN, "max number of clients");
    test_redis_config(redis, "maxclients", "1000");
}
END_TEST

START_TEST(paused_server_is_ENOTCONN_in_time)
{
    struct rlk_conn *conn;
    test_server_pause(&server);
    int64_t start = test_now_ms();
    ck_assert_int_eq(rlk_pool_get(pool, in_ms(100), &conn), ENOTCONN);
    ck_assert_int_le(test_now_ms() - start, 100 + test_ms(200));
    test_server_resume(&server);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *tc = tcase_create("lending");
    tcase_add_unchecked_fixture(tc, start_server, stop_server);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, idle_connection_is_lent_again);
    tcase_add_test(tc, last_one_in_is_first_out);
    tcase_add_test(tc, connection_above_the_bound_is_waited_for_until_the_deadline);
    tcase_add_test(tc, waiter_is_handed_what_is_put_back);
    tcase_add_test(tc, who_gives_a_lock_back_is_served_before_those_who_want_one);
    tcase_add_test(tc, waiter_opens_its_own_when_a_dead_one_is_put_back);
    tcase_add_test(tc, failed_connects_leave_the_places_free);
    tcase_add_test(tc, connection_that_died_while_idle_is_replaced);
    tcase_add_test(tc, drain_closes_the_idle_ones);
    tcase_add_test(tc, many_threads_share_few_connections);
    suite_add_tcase(suite, tc);

    tc = tcase_create("handshake");
    tcase_add_unchecked_fixture(tc, start_server, stop_server);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, connection_has_its_name_and_database);
    tcase_add_test(tc, clock_offset_is_the_difference_of_the_clocks);
    tcase_add_test(tc, database_out_of_range_is_EPROTO);
    tcase_add_test(tc, missing_or_wrong_password_is_EACCES);
    tcase_add_test(tc, password_for_a_server_without_one_is_EACCES);
    tcase_add_test(tc, acl_without_client_setname_is_fine_and_without_time_is_EACCES);
    tcase_add_test(tc, full_server_is_ENOTCONN);
    tcase_add_test(tc, paused_server_is_ENOTCONN_in_time);
    suite_add_tcase(suite, tc);

    return test_run_suite(suite);
}
