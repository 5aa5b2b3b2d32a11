/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=P14,P17 */
/* Replicas and what stands around their confirmations: one WAIT behind many renewals;
 * WAITAOF; clocks of replicas. (What goes on behind a WAIT: test_replicas_waits.c.
 * Renewals by themselves: test_replicas_renewals.c.) */
#include "replicascene.h"

#include "clock.h"
#include "findings.h"

#include <stdlib.h>
#include <syslog.h>

enum { MANY = 60, SKEW_MS = 400 };

/* ---- one WAIT behind many */

/* rule: P14 */
START_TEST(many_renewals_share_a_WAIT)
{
    static rlock_mutex_t m[MANY];
    char name[16];

    open_other("?replicas=2&lease=%ld", test_ms(3000));
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "many%d", i);
        m[i] = mutex_of(other, name);
        OK(rlock_mutex_lock(&m[i]));
    }
    ck_assert(wait_renewals(other, MANY));
    unsigned long renewals = stats_of(other).renewals;
    long long before = waits();
    ck_assert(wait_renewals(other, 2 * MANY));
    ck_assert_int_le(waits() - before,
                     (long long)(stats_of(other).renewals - renewals) / 2);
    ck_assert_int_gt(waits() - before, 0);
    for (int i = 0; i < MANY; i++)
        OK(rlock_mutex_unlock(&m[i]));
    ck_assert_uint_eq(stats_of(other).losses, 0);
}
END_TEST

/* ---- WAITAOF */

static bool has_waitaof(void)
{
    return test_redis_try(redis, "WAITAOF", "0", "0", "1")->type != REDIS_REPLY_ERROR;
}

static int open_with_aof(rlock_client_t **ret_client)
{
    char url[TEST_URL_MAX + 32];

    snprintf(url, sizeof(url), "%s?waitaof=1&replicas=1", server.url);
    return rlock_client_open(ret_client, url, NULL);
}

/* rule: P14 */
START_TEST(server_that_writes_to_no_disk_refuses_waitaof_when_a_client_opens)
{
    rlock_client_t *c = NULL;

    EXPECT(open_with_aof(&c), ENOTSUP);
    says("WAITAOF");
    ck_assert_ptr_null(c);
}
END_TEST

/* rule: P14 */
START_TEST(client_with_waitaof_opens_while_the_server_is_away)
{
    rlock_client_t *c = NULL;

    test_server_kill(&server);
    OK(open_with_aof(&c));
    close_client(c);
    test_server_restart(&server);
}
END_TEST

/* rule: P14, P15 */
START_TEST(waitaof_loses_no_lock_when_all_servers_crash)
{
    if (!has_waitaof()) {
        puts("skipped: waitaof_loses_no_lock_when_all_servers_crash: no WAITAOF");
        return;
    }
    rlock_client_t *c = NULL;
    test_redis_config(redis, "appendfsync", "always");
    test_redis_config(redis, "appendonly", "yes");
    test_redis_config(at_replica[0], "appendonly", "yes");
    OK(open_with_aof(&c));
    rlock_mutex_t m = mutex_of(c, "n");
    OK(rlock_mutex_lock(&m));
    test_server_kill(&replicas[0]);
    test_server_kill(&server);
    test_server_restart_args(&replicas[0], TEST_ARGV("--appendonly", "yes"));
    struct test_redis *copy = test_redis_connect(replicas[0].path);
    ck_assert(test_redis_exists(copy, "n"));
    test_redis_close(copy);
    test_server_restart_args(&server, TEST_ARGV("--appendonly", "yes"));
    struct test_redis *r = test_redis_connect(server.path);
    ck_assert(test_redis_exists(r, "n"));
    test_redis_close(r);
    OK(rlock_mutex_unlock(&m));
    close_client(c);
}
END_TEST

/* ---- clocks */

/* rule: P17 */
START_TEST(maxskew_is_taken_off_D)
{
    open_other("?lease=20000&maxskew=%d", SKEW_MS);
    rlock_mutex_t m = mutex_of(other, "n");
    OK(rlock_mutex_lock(&m));
    ck_assert_int_le(remaining_of(&m), 20000 * 99 / 100 - 2 - SKEW_MS);
    ck_assert_int_gt(remaining_of(&m), 20000 * 99 / 100 - 2 - SKEW_MS - test_ms(3000));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* rule: P17 */
START_TEST(lease_that_is_too_short_for_maxskew_is_EINVAL)
{
    rlock_client_t *c = NULL;
    char url[TEST_URL_MAX + 64];

    snprintf(url, sizeof(url), "%s?lease=3000&presence=3000&maxskew=500", server.url);
    EXPECT(rlock_client_open(&c, url, NULL), EINVAL);
    says("maxskew");
    other = open_with("?maxskew=400");
    rlock_mutex_t m = mutex_of(other, "n");
    EXPECT(rlock_mutex_lock_lease(&m, 350), EINVAL);
    says("maxskew");
    ck_assert(wait_key("n", false, REPLICAS_SOON_MS));
    EXPECT(rlock_mutex_trylock_lease(&m, 350), EINVAL);
    says("maxskew");
    ck_assert(wait_key("n", false, REPLICAS_SOON_MS));
    OK(rlock_mutex_lock_lease(&m, 20000));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* rule: P17 */
START_TEST(extension_that_is_too_short_for_maxskew_is_EINVAL_and_changes_nothing)
{
    struct actor beside;

    other = open_with("?maxskew=400");
    rlock_rwlock_t l = rwlock_of(other, "n");
    actor_start(&beside);
    OK(rlock_rwlock_rdlock(&l));
    OK(actor_does(&beside, run_rdlock, &l)); /* shares the hold */
    EXPECT(rlock_rwlock_extend(&l, 350), EINVAL);
    says("maxskew");
    OK(rlock_rwlock_extend(&l, 20000));
    OK(rlock_rwlock_unlock(&l));
    OK(actor_does(&beside, run_rwunlock, &l));
    ck_assert_uint_eq(stats_of(other).losses, 0);
    actor_end(&beside);
}
END_TEST

static struct test_clock ahead;

/* The first replica's clock is a second ahead. */
static void start_skewed(void)
{
    char port[REPLICAS_PORT_SIZE];

    test_clock_open(&ahead);
    test_server_start(&server, NULL);
    snprintf(port, sizeof(port), "%u", (unsigned)server.port);
    for (int i = 0; i < REPLICAS; i++)
        test_server_start_env(&replicas[i], TEST_ARGV("--replicaof", "127.0.0.1", port),
                              i == 0 ? ahead.env : NULL);
    test_clock_set_real(&ahead, 1000);
}

static void stop_skewed(void)
{
    stop_replicas();
    test_clock_close(&ahead);
}

/* rule: P17 */
START_TEST(diagnosis_measures_the_clocks_of_the_replicas)
{
    struct findings f;
    char address[32];

    other = open_with("?replicas=2");
    findings_of(&f, other);
    snprintf(address, sizeof(address), ":%u is", (unsigned)replicas[0].port);
    FOUND(&f, LOG_WARNING, "skew", address);
    FOUND(&f, LOG_WARNING, "skew", "ahead of");
    snprintf(address, sizeof(address), ":%u is", (unsigned)replicas[1].port);
    FOUND(&f, -1, "skew", address);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replicas and batches, disks and clocks");
    TCase *batches = replicas_tcase(suite, "batches");
    TEST_ADD(batches, many_renewals_share_a_WAIT, );
    TCase *disks = replicas_tcase(suite, "disks");
    TEST_ADD(disks, server_that_writes_to_no_disk_refuses_waitaof_when_a_client_opens,
             client_with_waitaof_opens_while_the_server_is_away,
             waitaof_loses_no_lock_when_all_servers_crash);
    TCase *clocks = tcase_create("clocks");
    tcase_add_unchecked_fixture(clocks, start_skewed, stop_skewed);
    tcase_add_checked_fixture(clocks, open_replicas, close_replicas);
    suite_add_tcase(suite, clocks);
    TEST_ADD(clocks, maxskew_is_taken_off_D,
             lease_that_is_too_short_for_maxskew_is_EINVAL,
             extension_that_is_too_short_for_maxskew_is_EINVAL_and_changes_nothing,
             diagnosis_measures_the_clocks_of_the_replicas);
    return test_run_suite(suite);
}
