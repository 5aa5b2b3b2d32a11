/* SPDX-License-Identifier: Apache-2.0 */
/* program: */
/* Taking locks that too few replicas confirm: they are waited for, and then the lock is
 * given back. (What is confirmed: test_replicas.c. Grants: test_replicas_grants.c.) */
#include "replicascene.h"

#include "findings.h"

#include <syslog.h>

enum { SHORT_MS = 500, LONG_MS = 20000 };

/* rule: P12 */
START_TEST(too_few_replicas_are_ENOTCONN_at_the_deadline_and_leave_no_lock)
{
    other = open_with("?replicas=2");
    rlock_mutex_t m = mutex_of(other, "n");

    /* the server has the script from now on: otherwise the WAIT behind its name takes
     * most of the time */
    OK(lock_for(&m, LONG_MS));
    OK(rlock_mutex_unlock(&m));
    test_server_pause(&replicas[1]);
    int64_t began = test_now_ms();
    EXPECT(lock_for(&m, SHORT_MS), ENOTCONN);
    says("1 of 2 replicas");
    ck_assert_int_ge(test_now_ms() - began, SHORT_MS - 10);
    ck_assert_int_le(test_now_ms() - began, SHORT_MS + test_ms(600));
    ck_assert_int_eq(state_of(&m), RLOCK_UNHELD);
    ck_assert(wait_key("n", false, REPLICAS_SOON_MS));
    test_server_resume(&replicas[1]);
    OK(lock_for(&m, LONG_MS));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* rule: P12 */
START_TEST(try_that_too_few_replicas_confirm_is_ENOTCONN)
{
    open_other("?replicas=2&commandtimeout=%ld", test_ms(SHORT_MS));
    rlock_mutex_t m = mutex_of(other, "n");
    test_server_pause(&replicas[0]);
    EXPECT(rlock_mutex_trylock(&m), ENOTCONN);
    says("1 of 2 replicas");
    ck_assert(wait_key("n", false, REPLICAS_SOON_MS));
    test_server_resume(&replicas[0]);
}
END_TEST

/* rule: P12 */
START_TEST(lock_that_fails_in_outages_fails_when_too_few_replicas_confirm)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t m;

    open_other("?replicas=2&commandtimeout=%ld", test_ms(SHORT_MS));
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, other));
    OK(rlock_mutexattr_setoutage(&attr, RLOCK_OUTAGE_FAIL));
    OK(rlock_mutex_init(&m, &attr, "n"));
    test_server_pause(&replicas[0]);
    EXPECT(rlock_mutex_lock(&m), ENOTCONN);
    says("1 of 2 replicas");
    ck_assert(wait_key("n", false, REPLICAS_SOON_MS));
    test_server_resume(&replicas[0]);
}
END_TEST

/* rule: P12 */
START_TEST(lock_waits_for_a_replica_that_comes_back)
{
    struct actor actor;

    actor_start(&actor);
    other = open_with("?replicas=2");
    rlock_mutex_t m = mutex_of(other, "n");
    test_server_pause(&replicas[0]);
    actor_begin(&actor, run_lock, &m);
    ck_assert(wait_key("n", true, REPLICAS_SOON_MS));
    ck_assert(wait_waits(waits() + 1)); /* one has ended with too few */
    test_server_resume(&replicas[0]);
    ck_assert_int_eq(actor_rc(&actor), 0);
    ck_assert(test_redis_exists(at_replica[0], "n"));
    ck_assert(test_redis_exists(at_replica[1], "n"));
    OK(actor_does(&actor, run_unlock, &m));
    actor_end(&actor);
}
END_TEST

static bool is_there(void *unused)
{
    (void)unused;
    return test_redis_exists(redis, "n");
}

/* rule: P12 */
START_TEST(lock_that_waits_for_a_replica_stays_at_the_server)
{
    struct actor actor;

    actor_start(&actor);
    open_other("?replicas=2&lease=%ld", test_ms(1000));
    rlock_mutex_t m = mutex_of(other, "n");
    test_server_pause(&replicas[0]);
    actor_begin(&actor, run_lock, &m);
    ck_assert(wait_key("n", true, REPLICAS_SOON_MS));
    ck_assert(test_stays(is_there, NULL, 2200));
    test_server_resume(&replicas[0]);
    ck_assert_int_eq(actor_rc(&actor), 0);
    OK(actor_does(&actor, run_unlock, &m));
    actor_end(&actor);
}
END_TEST

/* rule: P12 */
START_TEST(server_that_does_not_wait_is_not_asked_again_and_again)
{
    struct test_proxy *p = test_proxy_start(&server);
    fixture_load_scripts();
    open_other_at(test_proxy_url(p), "?replicas=2&commandtimeout=%ld", test_ms(SHORT_MS));
    rlock_mutex_t m = mutex_of(other, "n");
    int rule = TEST_RULE(p, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
                         .contains = "WAIT\r\n", .text = ":1\r\n");
    EXPECT(rlock_mutex_trylock(&m), ENOTCONN);
    says("1 of 2 replicas");
    ck_assert_uint_ge(test_proxy_hits(p, rule), 1);
    ck_assert_uint_le(test_proxy_hits(p, rule), 50);
    close_client(other);
    other = NULL;
    test_proxy_stop(p);
}
END_TEST

/* rule: P11, P12 */
START_TEST(acquire_whose_reply_is_lost_is_confirmed_by_its_repetition)
{
    struct test_proxy *p = test_proxy_start(&server);

    fixture_load_scripts();
    other = open_at(test_proxy_url(p), "?replicas=2");
    rlock_mutex_t m = mutex_of(other, "n");
    int rule = TEST_RULE(p, .on = TEST_ON_REPLY, .action = TEST_CUT,
                         .contains = "EVALSHA", .count = 1);
    /* the first request is not confirmed, so the repetition has to be */
    test_server_pause(&replicas[0]);
    EXPECT(lock_for(&m, SHORT_MS), ENOTCONN);
    ck_assert_uint_eq(test_proxy_hits(p, rule), 1);
    says("1 of 2 replicas");
    test_server_resume(&replicas[0]);
    rule = TEST_RULE(p, .on = TEST_ON_REPLY, .action = TEST_CUT, .contains = "EVALSHA",
                     .count = 1);
    OK(lock_for(&m, LONG_MS));
    ck_assert_uint_eq(test_proxy_hits(p, rule), 1);
    for (int i = 0; i < REPLICAS; i++)
        ck_assert(test_redis_exists(at_replica[i], "n"));
    OK(rlock_mutex_unlock(&m));
    close_client(other);
    other = NULL;
    test_proxy_stop(p);
}
END_TEST

/* rule: P12 */
START_TEST(replica_in_place_of_the_master_is_ENOTCONN)
{
    char url[TEST_URL_MAX + 64];
    struct findings f;

    snprintf(url, sizeof(url), "%s?replicas=1&commandtimeout=%ld", replicas[0].tcp_url,
             test_ms(SHORT_MS));
    OK(rlock_client_open(&other, url, NULL));
    rlock_mutex_t m = mutex_of(other, "n");
    EXPECT(rlock_mutex_trylock(&m), ENOTCONN);
    says("replica");
    findings_of(&f, other);
    FOUND(&f, LOG_ERR, "replicas", "is a replica");
}
END_TEST

static int try_fair(void *c)
{
    rlock_mutexattr_t attr;
    rlock_fair_t m;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, c));
    OK(rlock_fair_init(&m, &attr, "n"));
    return rlock_fair_trylock(&m);
}

static int try_to_read(void *c)
{
    rlock_rwlock_t l = rwlock_of(c, "n");
    return rlock_rwlock_tryrdlock(&l);
}

static int try_to_write(void *c)
{
    rlock_rwlock_t l = rwlock_of(c, "n");
    return rlock_rwlock_trywrlock(&l);
}

/* rule: P11, P12 */
START_TEST(lock_of_each_type_is_ENOTCONN_while_a_replica_is_silent)
{
    static int (*const tries[])(void *) = { try_fair, try_to_read, try_to_write };
    open_other("?replicas=2&commandtimeout=%ld", test_ms(SHORT_MS));
    test_server_pause(&replicas[0]);
    EXPECT(tries[_i](other), ENOTCONN);
    says("1 of 2 replicas");
    ck_assert(wait_key("n", false, REPLICAS_SOON_MS));
    test_server_resume(&replicas[0]);
}
END_TEST

/* rule: P12 */
START_TEST(answer_counts_though_the_one_of_WAIT_is_missing)
{
    struct test_proxy *p = test_proxy_start(&server);
    fixture_load_scripts();
    open_other_at(test_proxy_url(p), "?replicas=2&commandtimeout=%ld", test_ms(SHORT_MS));
    rlock_mutex_t held = mutex_of(client, "n"), m = mutex_of(other, "n");
    OK(rlock_mutex_lock(&held));
    int rule =
        TEST_RULE(p, .on = TEST_ON_REPLY, .action = TEST_DROP, .contains = "WAIT\r\n");
    EXPECT(rlock_mutex_trylock(&m), EBUSY);
    ck_assert_uint_ge(test_proxy_hits(p, rule), 1);
    OK(rlock_mutex_unlock(&held));
    EXPECT(rlock_mutex_trylock(&m), ENOTCONN); /* it is held, but not confirmed */
    ck_assert(wait_key("n", false, REPLICAS_SOON_MS));
    close_client(other);
    other = NULL;
    test_proxy_stop(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("too few replicas");
    TCase *taking = replicas_tcase(suite, "taking");
    TEST_ADD(taking, too_few_replicas_are_ENOTCONN_at_the_deadline_and_leave_no_lock,
             try_that_too_few_replicas_confirm_is_ENOTCONN,
             lock_that_fails_in_outages_fails_when_too_few_replicas_confirm,
             lock_waits_for_a_replica_that_comes_back,
             lock_that_waits_for_a_replica_stays_at_the_server,
             server_that_does_not_wait_is_not_asked_again_and_again,
             acquire_whose_reply_is_lost_is_confirmed_by_its_repetition,
             replica_in_place_of_the_master_is_ENOTCONN,
             answer_counts_though_the_one_of_WAIT_is_missing);
    tcase_add_loop_test(taking, lock_of_each_type_is_ENOTCONN_while_a_replica_is_silent,
                        0, 3);
    return test_run_suite(suite);
}
