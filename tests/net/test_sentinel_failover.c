/* SPDX-License-Identifier: Apache-2.0 */
/* Failovers by real sentinels: a master that is killed, stopped or told to hand over; one
 * that comes back; sentinels that missed the failover; sentinels with a password. */
/* program: slow */
#include "client/client.h"

#include "sentinelscene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOON_MS = 30000 };
#define SECRET "s3ntinel"

static void set_up(void)
{
    topology_open();
}

static void tear_down(void)
{
    if (other)
        close_client(other);
    other = NULL;
    test_redis_close(redis);
}

struct locker {
    rlock_mutex_t m;
    int rc;
};

/* A pair after the failover: every code of a server that is away may come before. */
static bool pairs(void *arg)
{
    struct locker *l = arg;

    l->rc = rlock_mutex_trylock(&l->m);
    if (l->rc == 0)
        l->rc = rlock_mutex_unlock(&l->m);
    return l->rc == 0;
}

static bool locks_again(const char *name)
{
    struct locker l = { .m = mutex_of(other, name) };

    if (!test_wait_until(pairs, &l, SOON_MS))
        ck_abort_msg("%s: %d \"%s\"", name, l.rc, rlock_errmsg());
    return true;
}

/* Whether a client of the library is connected to the server. */
static bool has_clients(int server_index)
{
    struct test_redis *r = test_redis_connect(topology.data[server_index].path);
    bool has = strstr(test_redis_str(r, "CLIENT", "LIST"), "name=rlock:") != NULL;

    test_redis_close(r);
    return has;
}

/* How many connections of the library the server has had: only their handshakes ask for
 * its TIME, and a connection that is closed again shows, too. */
static long library_connections(int server_index)
{
    struct test_redis *r = test_redis_connect(topology.data[server_index].path);
    const char *at =
        strstr(test_redis_str(r, "INFO", "commandstats"), "cmdstat_time:calls=");
    long count = at ? atol(at + strlen("cmdstat_time:calls=")) : 0;

    test_redis_close(r);
    return count;
}

static bool has_none(void *arg)
{
    return !has_clients(*(const int *)arg);
}

/* rule: P7 */
START_TEST(locks_go_on_after_the_master_was_killed)
{
    int old = topology_master(0);

    other = topology_client("");
    ck_assert(locks_again("before"));
    topology_expect_failure();
    test_server_kill(&topology.data[old]);
    ck_assert(topology_switched(0, old, SOON_MS));
    ck_assert(locks_again("after"));
}
END_TEST

/* rule: P8, P9 */
START_TEST(master_that_was_stopped_and_goes_on_is_not_used)
{
    int old = topology_master(0);

    other = topology_client("?lease=600000");
    rlock_mutex_t m = mutex_of(other, "m");
    OK(rlock_mutex_lock(&m));
    await_replicas(redis, 2);
    ck_assert_int_gt(library_connections(old), 0);
    topology_expect_failure();
    test_server_pause(&topology.data[old]);
    ck_assert(topology_switched(0, old, SOON_MS));
    ck_assert(locks_again("after"));
    test_server_resume(&topology.data[old]); /* it says "master" for seconds */
    ck_assert(test_wait_until(has_none, &old, SOON_MS)); /* it notices what was closed */
    long before = library_connections(old);
    for (int i = 0; i < 10; i++) {
        rlk_pool_drain(other->route.target.pool);
        ck_assert(locks_again("again"));
        ck_assert_int_eq(library_connections(old), before);
    }
    /* the hold was replicated, so the new master has it */
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

static bool is_busy(void *arg)
{
    struct locker *l = arg;

    l->rc = rlock_mutex_trylock(&l->m);
    return l->rc == EBUSY || l->rc == 0;
}

/* rule: P15 */
START_TEST(lock_that_all_replicas_confirmed_survives_its_master)
{
    int old = topology_master(0);

    other = topology_client("?lease=600000&replicas=2");
    rlock_client_t *c = topology_client("");
    struct locker l = { .m = mutex_of(c, "m") };
    rlock_mutex_t m = mutex_of(other, "m");
    await_replicas(redis, 2);
    OK(rlock_mutex_lock(&m));
    topology_expect_failure();
    test_server_kill(&topology.data[old]);
    ck_assert(topology_switched(0, old, SOON_MS));
    ck_assert(test_wait_until(is_busy, &l, SOON_MS));
    ck_assert_int_eq(l.rc, EBUSY);
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
    close_client(c);
}
END_TEST

/* rule: P9 */
START_TEST(failover_on_request_moves_all_connections)
{
    int old = topology_master(0);
    struct test_redis *r = test_redis_connect(topology.sentinels[0].path);

    other = topology_client("");
    test_redis_do(r, "SENTINEL", "FAILOVER", "mymaster");
    test_redis_close(r);
    ck_assert(topology_switched(0, old, SOON_MS));
    ck_assert(locks_again("m"));
    struct rlk_sentinel_master present;
    ck_assert(rlk_sentinel_book_present(other->config.endpoint.book, &present));
    ck_assert_uint_ne(present.address.port, topology.data[old].port);
}
END_TEST

/* rule: P8 */
START_TEST(old_master_that_comes_back_is_not_used)
{
    int old = topology_master(0);

    other = topology_client("");
    topology_expect_failure();
    test_server_kill(&topology.data[old]);
    ck_assert(topology_switched(0, old, SOON_MS));
    ck_assert(locks_again("m"));
    test_server_restart(&topology.data[old]); /* it says "master" for seconds */
    for (int i = 0; i < 10; i++) {
        rlk_pool_drain(other->route.target.pool);
        ck_assert(locks_again("m"));
        ck_assert_int_eq(library_connections(old), 0);
    }
}
END_TEST

/* rule: P8 */
START_TEST(sentinel_that_missed_the_failover_is_not_believed)
{
    int old = topology_master(0);

    other = topology_client("?commandtimeout=1000"); /* it may pass */
    topology_expect_failure();
    test_server_pause(&topology.sentinels[2]);
    test_server_kill(&topology.data[old]);
    ck_assert(topology_switched(0, old, SOON_MS));
    ck_assert(locks_again("m"));
    test_server_restart(&topology.data[old]);
    test_server_pause(&topology.sentinels[0]);
    test_server_pause(&topology.sentinels[1]);
    test_server_resume(&topology.sentinels[2]);
    for (int i = 0; i < 3; i++) {
        rlk_pool_drain(other->route.target.pool);
        /* it may have learned of the failover by the replicas */
        int rc = rlock_client_ping(other);
        ck_assert(rc == 0 || rc == ENOTCONN);
        ck_assert_int_eq(library_connections(old), 0);
    }
    test_server_resume(&topology.sentinels[0]);
    ck_assert(locks_again("m"));
}
END_TEST

/* ---- passwords: without a restart, because connections that exist stay admitted */

static void require_password(bool required)
{
    for (int i = 0; i < SENTINELS; i++) {
        struct test_redis *r = test_redis_connect(topology.sentinels[i].path);
        if (required) {
            test_redis_do(r, "ACL", "SETUSER", "default", "resetpass", ">" SECRET);
        } else {
            test_redis_do(r, "AUTH", SECRET);
            test_redis_do(r, "ACL", "SETUSER", "default", "nopass");
        }
        test_redis_close(r);
    }
}

static bool has_users(const char *test)
{
    bool has = test_server_version() >= 60200;
    if (!has)
        printf("skipped: %s: its sentinels know no users\n", test);
    return has;
}

/* rule: P10 */
START_TEST(sentinels_with_a_password_are_asked)
{
    if (!has_users("sentinels_with_a_password_are_asked"))
        return;
    require_password(true);
    rlock_client_t *c = sentinel_open(topology_url(""));
    EXPECT(rlock_client_ping(c), EACCES);
    ck_assert_ptr_nonnull(strstr(rlock_errmsg(), "NOAUTH"));
    OK(rlock_client_close(c));
    c = sentinel_open(topology_url("?sentinelpassword=wrong"));
    EXPECT(rlock_client_ping(c), EACCES);
    ck_assert_ptr_null(strstr(rlock_errmsg(), "wrong"));
    OK(rlock_client_close(c));
    c = sentinel_open(topology_url("?sentinelpassword=" SECRET));
    OK(rlock_client_ping(c));
    OK(rlock_client_close(c));
    require_password(false);
}
END_TEST

static bool is_subscribed(void *arg)
{
    int count = 0;

    (void)arg;
    for (int i = 0; i < SENTINELS; i++) {
        struct test_redis *r = test_redis_connect(topology.sentinels[i].path);
        test_redis_do(r, "AUTH", SECRET);
        const char *at = test_redis_str(r, "CLIENT", "LIST");
        while ((at = strstr(at, "cmd=subscribe user=locks")) != NULL) {
            count++;
            at++;
        }
        test_redis_close(r);
    }
    return count >= 2;
}

/* rule: P10 */
START_TEST(user_of_the_document_may_ask_and_listen)
{
    rlock_client_t *c;

    if (!has_users("user_of_the_document_may_ask_and_listen"))
        return;
    require_password(true);
    for (int i = 0; i < SENTINELS; i++) {
        struct test_redis *r = test_redis_connect(topology.sentinels[i].path);
        test_redis_do(r, "AUTH", SECRET);
        test_redis_do(r, "ACL", "LOG", "RESET");
        test_redis_do(r, "ACL", "SETUSER", "locks", "reset", "on", ">PASSWORD",
                      "resetchannels", "&+switch-master", "+ping", "+sentinel|master",
                      "+sentinel|get-master-addr-by-name", "+sentinel|sentinels",
                      "+subscribe");
        test_redis_close(r);
    }
    c = sentinel_open(topology_url("?sentineluser=locks&sentinelpassword=PASSWORD"));
    OK(rlock_client_ping(c));
    ck_assert(test_wait_until(is_subscribed, NULL, SOON_MS));
    for (int i = 0; i < SENTINELS; i++) {
        struct test_redis *r = test_redis_connect(topology.sentinels[i].path);
        test_redis_do(r, "AUTH", SECRET);
        ck_assert_uint_eq(test_redis_do(r, "ACL", "LOG")->elements, 0);
        test_redis_close(r);
    }
    OK(rlock_client_close(c));
    require_password(false);
}
END_TEST

START_TEST(real_sentinel_in_place_of_a_server_is_named)
{
    rlock_client_t *c = sentinel_open(topology.sentinels[0].tcp_url);

    EXPECT(rlock_client_ping(c), EPROTO);
    ck_assert_ptr_nonnull(
        strstr(rlock_errmsg(), "its URL is redis-sentinel://127.0.0.1:"));
    ck_assert_ptr_nonnull(strstr(rlock_errmsg(), "/mymaster"));
    OK(rlock_client_close(c));
}
END_TEST

static void start(void)
{
    topology_start(NULL);
}

int main(void)
{
    Suite *suite = suite_create("sentinel_failover");
    TCase *failover = tcase_create("failover");
    tcase_add_unchecked_fixture(failover, start, topology_stop);
    tcase_add_checked_fixture(failover, set_up, tear_down);
    test_long_tcase(failover);
    TEST_ADD(failover, real_sentinel_in_place_of_a_server_is_named,
             failover_on_request_moves_all_connections,
             locks_go_on_after_the_master_was_killed,
             master_that_was_stopped_and_goes_on_is_not_used,
             old_master_that_comes_back_is_not_used,
             lock_that_all_replicas_confirmed_survives_its_master,
             sentinel_that_missed_the_failover_is_not_believed,
             user_of_the_document_may_ask_and_listen,
             sentinels_with_a_password_are_asked);
    suite_add_tcase(suite, failover);
    return test_run_suite(suite);
}
