/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=P11,P13,P15 */
/* Taking locks with replicas=N: confirmed by replicas, or not; grants; and each line of
 * README's table of what a failover may lose. (Renewals: test_replicas_renewals.c. The
 * scripts by hand: test_replicas_scripts.c.) */
#include "replicascene.h"

#include "findings.h"

#include <syslog.h>

enum { SHORT_MS = 800, LONG_MS = 20000 };

/* ---- taking a lock */

/* rule: P11 */
START_TEST(lock_that_replicas_confirm_is_at_all_of_them)
{
    other = open_with("?replicas=2");
    rlock_mutex_t m = mutex_of(other, "n");

    for (int i = 0; i < 20; i++) {
        long long before = waits();
        OK(rlock_mutex_lock(&m));
        for (int j = 0; j < REPLICAS; j++)
            ck_assert(test_redis_exists(at_replica[j], "n"));
        ck_assert_int_ge(waits(), before + 1);
        OK(rlock_mutex_unlock(&m));
    }
    ck_assert_uint_eq(stats_of(other).unknown_outcomes, 0);
}
END_TEST

/* rule: P11 */
START_TEST(client_without_replicas_never_waits)
{
    rlock_mutex_t m = mutex_of(client, "n");
    long long before = waits();

    for (int i = 0; i < 5; i++) {
        OK(rlock_mutex_lock(&m));
        OK(rlock_mutex_extend(&m, 0));
        OK(rlock_mutex_unlock(&m));
    }
    ck_assert_int_eq(waits(), before);
}
END_TEST

/* rule: P11 */
START_TEST(unlock_waits_for_no_replica)
{
    other = open_with("?replicas=2");
    rlock_mutex_t m = mutex_of(other, "n");

    OK(rlock_mutex_lock(&m));
    long long before = waits();
    test_server_pause(&replicas[0]);
    OK(rlock_mutex_unlock(&m));
    ck_assert_int_eq(waits(), before);
    test_server_resume(&replicas[0]);
}
END_TEST

/* rule: P12 */
START_TEST(too_few_replicas_are_ENOTCONN_at_the_deadline_and_leave_no_lock)
{
    other = open_with("?replicas=2");
    rlock_mutex_t m = mutex_of(other, "n");

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
    char parameters[64];

    snprintf(parameters, sizeof(parameters), "?replicas=2&commandtimeout=%ld",
             test_ms(SHORT_MS));
    other = open_with(parameters);
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
    char parameters[64];
    rlock_mutexattr_t attr;
    rlock_mutex_t m;

    snprintf(parameters, sizeof(parameters), "?replicas=2&commandtimeout=%ld",
             test_ms(SHORT_MS));
    other = open_with(parameters);
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
    char parameters[64];
    struct actor actor;

    actor_start(&actor);
    snprintf(parameters, sizeof(parameters), "?replicas=2&lease=%ld", test_ms(1000));
    other = open_with(parameters);
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
    char parameters[64];

    fixture_load_scripts();
    snprintf(parameters, sizeof(parameters), "?replicas=2&commandtimeout=%ld",
             test_ms(SHORT_MS));
    other = open_at(test_proxy_url(p), parameters);
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
START_TEST(user_who_may_not_wait_gets_EACCES)
{
    char url[TEST_URL_MAX];

    if (test_redis_try(redis, "ACL", "SETUSER", "u", "on", ">p", "allkeys", "allchannels",
                       "allcommands", "-wait")
            ->type == REDIS_REPLY_ERROR)
        return; /* a server without ACLs */
    snprintf(url, sizeof(url), "redis://u:p@127.0.0.1:%u", (unsigned)server.port);
    other = open_at(url, "?replicas=1");
    rlock_mutex_t m = mutex_of(other, "n");
    EXPECT(rlock_mutex_trylock(&m), EACCES);
    says("WAIT");
    ck_assert(wait_key("n", false, REPLICAS_SOON_MS));
    close_client(other);
    other = NULL;
    test_redis_do(redis, "ACL", "DELUSER", "u");
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

/* rule: P11 */
START_TEST(readers_and_writers_are_confirmed)
{
    other = open_with("?replicas=2");
    rlock_rwlock_t l = rwlock_of(other, "n"), beside = rwlock_of(other, "n");
    struct actor actor;
    long long before = waits();

    actor_start(&actor);
    OK(rlock_rwlock_rdlock(&l));
    ck_assert_int_ge(waits(), before + 1);
    OK(actor_does(&actor, run_rdlock, &beside)); /* shares the hold */
    OK(actor_does(&actor, run_rwunlock, &beside));
    actor_end(&actor);
    OK(rlock_rwlock_unlock(&l));
    ck_assert(wait_key("n", false, REPLICAS_SOON_MS));
    before = waits();
    OK(rlock_rwlock_wrlock(&l));
    ck_assert_int_ge(waits(), before + 1);
    before = waits();
    OK(rlock_rwlock_downgrade(&l));
    OK(rlock_rwlock_extend(&l, 0));
    ck_assert_int_ge(waits(), before + 1);
    OK(rlock_rwlock_unlock(&l));
    ck_assert_uint_eq(stats_of(other).losses, 0);
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
    char parameters[64];

    snprintf(parameters, sizeof(parameters), "?replicas=2&commandtimeout=%ld",
             test_ms(SHORT_MS));
    other = open_with(parameters);
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
    char parameters[64];

    fixture_load_scripts();
    snprintf(parameters, sizeof(parameters), "?replicas=2&commandtimeout=%ld",
             test_ms(SHORT_MS));
    other = open_at(test_proxy_url(p), parameters);
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

/* ---- grants */

/* rule: P13 */
START_TEST(grant_is_proven_before_the_waiter_enters)
{
    other = open_with("?replicas=2");
    rlock_mutex_t held = mutex_of(client, "n"), wanted = mutex_of(other, "n");
    struct actor actor;

    actor_start(&actor);
    OK(rlock_mutex_lock(&held));
    actor_begin(&actor, run_lock, &wanted);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    long long before = waits();
    OK(rlock_mutex_unlock(&held));
    ck_assert_int_eq(actor_rc(&actor), 0);
    ck_assert_int_ge(waits(), before + 1);
    for (int i = 0; i < REPLICAS; i++)
        ck_assert_int_gt(test_redis_int(at_replica[i], "PTTL", "n"), 3000);
    OK(actor_does(&actor, run_unlock, &wanted));
    actor_end(&actor);
}
END_TEST

static int lock_shortly(void *m)
{
    return lock_for(m, SHORT_MS);
}

/* rule: P12, P13 */
START_TEST(grant_that_too_few_replicas_confirm_is_ENOTCONN_and_is_given_back)
{
    other = open_with("?replicas=2");
    rlock_mutex_t held = mutex_of(client, "n"), wanted = mutex_of(other, "n");
    struct task task;

    OK(rlock_mutex_lock(&held));
    task_start(&task, lock_shortly, &wanted);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    test_server_pause(&replicas[0]);
    OK(rlock_mutex_unlock(&held));
    ck_assert(task_ends(&task, REPLICAS_SOON_MS));
    ck_assert_int_eq(task_join(&task), ENOTCONN);
    ck_assert(wait_key("n", false, REPLICAS_SOON_MS));
    test_server_resume(&replicas[0]);
    OK(rlock_mutex_lock(&held));
    OK(rlock_mutex_unlock(&held));
}
END_TEST

static char message[128]; /* of the thread that ran lock_patiently */

static int lock_patiently(void *m)
{
    int rc = lock_for(m, test_ms(2 * SHORT_MS));
    snprintf(message, sizeof(message), "%s", rlock_errmsg());
    return rc;
}

/* rule: P13 */
START_TEST(grant_that_a_poll_finds_is_proven_too)
{
    struct test_proxy *p = test_proxy_start(&server);
    char parameters[64];
    struct task task;

    snprintf(parameters, sizeof(parameters), "?replicas=2&presence=%ld", test_ms(600));
    other = open_at(test_proxy_url(p), parameters);
    rlock_mutex_t held = mutex_of(client, "n"), wanted = mutex_of(other, "n");
    int rule =
        TEST_RULE(p, .on = TEST_ON_MESSAGE, .action = TEST_DROP, .contains = "1 grant ");
    OK(rlock_mutex_lock(&held));
    task_start(&task, lock_patiently, &wanted);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    test_server_pause(&replicas[0]);
    OK(rlock_mutex_unlock(&held));
    ck_assert(task_ends(&task, REPLICAS_SOON_MS));
    ck_assert_int_eq(task_join(&task), ENOTCONN);
    ck_assert_uint_eq(test_proxy_hits(p, rule), 1);
    ck_assert(wait_key("n", false, REPLICAS_SOON_MS));
    test_server_resume(&replicas[0]);
    close_client(other);
    other = NULL;
    test_proxy_stop(p);
}
END_TEST

/* rule: P12, P13 */
START_TEST(grant_that_a_cancel_finds_is_proven_too)
{
    struct test_proxy *p = test_proxy_start(&server);
    struct task task;

    /* no poll comes before the deadline */
    other = open_at(test_proxy_url(p), "?replicas=2&presence=30000");
    rlock_mutex_t held = mutex_of(client, "n"), wanted = mutex_of(other, "n");
    int rule =
        TEST_RULE(p, .on = TEST_ON_MESSAGE, .action = TEST_DROP, .contains = "1 grant ");
    OK(rlock_mutex_lock(&held));
    task_start(&task, lock_patiently, &wanted);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    test_server_pause(&replicas[0]);
    OK(rlock_mutex_unlock(&held));
    ck_assert(test_proxy_wait_hits(p, rule, 1, REPLICAS_SOON_MS));
    ck_assert(task_ends(&task, REPLICAS_SOON_MS));
    ck_assert_int_eq(task_join(&task), ENOTCONN); /* the server has it for the thread */
    ck_assert_str_eq(message, "too few replicas confirmed the lock, which was granted at "
                              "the deadline");
    ck_assert(wait_key("n", false, REPLICAS_SOON_MS));
    test_server_resume(&replicas[0]);
    close_client(other);
    other = NULL;
    test_proxy_stop(p);
}
END_TEST

/* rule: P13 */
START_TEST(grant_is_proven_when_the_replica_comes_back)
{
    other = open_with("?replicas=2");
    rlock_mutex_t held = mutex_of(client, "n"), wanted = mutex_of(other, "n");
    struct actor actor;

    actor_start(&actor);
    OK(rlock_mutex_lock(&held));
    actor_begin(&actor, run_lock, &wanted);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    test_server_pause(&replicas[0]);
    long long before = waits();
    OK(rlock_mutex_unlock(&held));
    ck_assert(wait_waits(before + 1));
    test_server_resume(&replicas[0]);
    ck_assert_int_eq(actor_rc(&actor), 0);
    ck_assert(test_redis_exists(at_replica[0], "n"));
    OK(actor_does(&actor, run_unlock, &wanted));
    actor_end(&actor);
}
END_TEST

/* rule: P13 */
START_TEST(readers_that_wait_together_enter_with_one_proof)
{
    enum { READERS = 4 };
    other = open_with("?replicas=2");
    rlock_rwlock_t held = rwlock_of(client, "n"), wanted = rwlock_of(other, "n");
    struct actor actors[READERS];

    OK(rlock_rwlock_wrlock(&held));
    for (int i = 0; i < READERS; i++) {
        actor_start(&actors[i]);
        actor_begin(&actors[i], run_rdlock, &wanted);
    }
    ck_assert(wait_waiters(other, READERS));
    ck_assert(wait_size("rlock:{n}:rqueue", 1));
    long long before = waits();
    OK(rlock_rwlock_unlock(&held));
    for (int i = 0; i < READERS; i++)
        ck_assert_int_eq(actor_rc(&actors[i]), 0);
    ck_assert_int_ge(waits() - before, 1);
    ck_assert_int_lt(waits() - before, READERS);
    for (int i = 0; i < READERS; i++) {
        OK(actor_does(&actors[i], run_rwunlock, &wanted));
        actor_end(&actors[i]);
    }
}
END_TEST

/* rule: P13 */
START_TEST(reader_that_comes_during_a_proof_does_not_overtake_a_writer)
{
    struct actor first, writer, late;

    other = open_with("?replicas=2");
    rlock_client_t *third = open_with("");
    rlock_rwlock_t held = rwlock_of(client, "n"), wanted = rwlock_of(other, "n"),
                   written = rwlock_of(third, "n");
    actor_start(&first);
    actor_start(&writer);
    actor_start(&late);
    OK(rlock_rwlock_wrlock(&held));
    actor_begin(&first, run_rdlock, &wanted);
    ck_assert(wait_size("rlock:{n}:rqueue", 1));
    actor_begin(&writer, run_wrlock, &written);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    test_server_pause(&replicas[0]);
    long long before = waits();
    OK(rlock_rwlock_unlock(&held));
    ck_assert(wait_waits(before + 1)); /* the proof is under way */
    actor_begin(&late, run_rdlock, &wanted);
    ck_assert(wait_waiters(other, 2));
    test_server_resume(&replicas[0]);
    ck_assert_int_eq(actor_rc(&first), 0);
    ck_assert(wait_size("rlock:{n}:rqueue", 1)); /* it queues, behind the writer */
    ck_assert(!actor_done(&late, 0));
    OK(actor_does(&first, run_rwunlock, &wanted));
    ck_assert_int_eq(actor_rc(&writer), 0);
    ck_assert(!actor_done(&late, 0));
    OK(actor_does(&writer, run_rwunlock, &written));
    ck_assert_int_eq(actor_rc(&late), 0);
    OK(actor_does(&late, run_rwunlock, &wanted));
    actor_end(&first);
    actor_end(&writer);
    actor_end(&late);
    close_client(third);
}
END_TEST

static int read_shortly(void *l)
{
    struct timespec end = test_in_ms(CLOCK_MONOTONIC, test_ms(SHORT_MS));
    return rlock_rwlock_clockrdlock(l, CLOCK_MONOTONIC, &end);
}

/* rule: P12, P13 */
START_TEST(reader_does_not_go_on_with_an_unproven_hold_from_before_a_writer)
{
    struct actor first, writer, late;

    other = open_with("?replicas=2");
    rlock_client_t *third = open_with("");
    rlock_rwlock_t wanted = rwlock_of(other, "n"), written = rwlock_of(third, "n");
    actor_start(&first);
    actor_start(&writer);
    actor_start(&late);
    test_server_pause(&replicas[0]);
    actor_begin(&first, read_shortly, &wanted);
    ck_assert(wait_key("n", true, REPLICAS_SOON_MS));
    actor_begin(&writer, run_wrlock, &written);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    actor_begin(&late, run_rdlock, &wanted);
    ck_assert(wait_waiters(other, 2));
    ck_assert_int_eq(actor_rc(&first), ENOTCONN);
    test_server_resume(&replicas[0]);
    ck_assert_int_eq(actor_rc(&writer), 0);
    ck_assert(!actor_done(&late, 0));
    OK(actor_does(&writer, run_rwunlock, &written));
    ck_assert_int_eq(actor_rc(&late), 0);
    OK(actor_does(&late, run_rwunlock, &wanted));
    actor_end(&first);
    actor_end(&writer);
    actor_end(&late);
    close_client(third);
}
END_TEST

/* rule: P13 */
START_TEST(hand_off_and_retention_wait_for_no_replica)
{
    char parameters[64];

    snprintf(parameters, sizeof(parameters), "?replicas=2&retain=%ld", test_ms(20000));
    other = open_with(parameters);
    rlock_mutex_t m = mutex_of(other, "n"), again = mutex_of(other, "n");
    struct actor actor;

    actor_start(&actor);
    OK(rlock_mutex_lock(&m));
    actor_begin(&actor, run_lock, &again);
    ck_assert(wait_in_line(other, 1));
    unsigned long before = stats_of(other).renewals;
    long long sent = waits();
    OK(rlock_mutex_unlock(&m));
    ck_assert_int_eq(actor_rc(&actor), 0);
    OK(actor_does(&actor, run_unlock, &again));
    for (int i = 0; i < 100; i++) {
        OK(rlock_mutex_lock(&m));
        OK(rlock_mutex_unlock(&m));
    }
    /* the watchdog's renewals may have come in between, and the unlock's question */
    ck_assert_int_le(waits() - sent, (long long)(stats_of(other).renewals - before) + 5);
    actor_end(&actor);
}
END_TEST

/* ---- README's table: what a failover may lose */

/* Makes the replica the master. Takes "n" there, as another client would. Returns what
 * its try gives. */
static int try_at(int i)
{
    rlock_client_t *c = NULL;

    cut_off(i);
    OK(rlock_client_open(&c, replicas[i].tcp_url, NULL));
    rlock_mutex_t m = mutex_of(c, "n");
    int rc = rlock_mutex_trylock(&m);
    if (rc == 0)
        OK(rlock_mutex_unlock(&m));
    close_client(c);
    return rc;
}

/* rule: P15 */
START_TEST(without_replicas_a_failover_may_lose_a_lock)
{
    rlock_mutex_t m = mutex_of(client, "n");

    cut_off(0);
    OK(rlock_mutex_lock(&m));
    OK(try_at(0)); /* two hold it */
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* rule: P15 */
START_TEST(one_of_two_replicas_may_be_the_other_one)
{
    other = open_with("?replicas=1");
    rlock_mutex_t m = mutex_of(other, "n");

    cut_off(0);
    OK(rlock_mutex_lock(&m));
    OK(try_at(0));            /* two hold it */
    EXPECT(try_at(1), EBUSY); /* this one has confirmed it */
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* rule: P15 */
START_TEST(all_replicas_lose_no_lock)
{
    other = open_with("?replicas=2");
    rlock_mutex_t m = mutex_of(other, "n");

    test_redis_config(redis, "min-replicas-to-write", "2");
    OK(rlock_mutex_lock(&m));
    test_server_kill(&server);
    for (int i = 0; i < REPLICAS; i++)
        EXPECT(try_at(i), EBUSY);
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
    test_server_restart(&server);
}
END_TEST

/* rule: P15 */
START_TEST(diagnosis_compares_the_number_with_the_replicas)
{
    static const struct {
        const char *parameters, *min, *says;
        int severity;
    } rows[] = {
        { "?replicas=3", "0", "Connected replicas: 2, and this client wants 3", LOG_ERR },
        { "?replicas=1", "0", "1 of 2 replicas", LOG_NOTICE },
        { "?replicas=2", "0", "Set min-replicas-to-write to 2", LOG_WARNING },
        { "?replicas=2", "2", "loses no lock", LOG_INFO },
    };
    struct findings f;

    other = open_with(rows[_i].parameters);
    test_redis_config(redis, "min-replicas-to-write", rows[_i].min);
    findings_of(&f, other);
    if (strcmp(rows[_i].min, "0") != 0 && !bounds_scripts())
        FOUND(&f, LOG_WARNING, "replicas", "does not apply it to scripts");
    else
        FOUND(&f, rows[_i].severity, "replicas", rows[_i].says);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replicas");
    TCase *taking = replicas_tcase(suite, "taking");
    TEST_ADD(taking, lock_that_replicas_confirm_is_at_all_of_them,
             client_without_replicas_never_waits, unlock_waits_for_no_replica,
             too_few_replicas_are_ENOTCONN_at_the_deadline_and_leave_no_lock,
             try_that_too_few_replicas_confirm_is_ENOTCONN,
             lock_that_fails_in_outages_fails_when_too_few_replicas_confirm,
             lock_waits_for_a_replica_that_comes_back,
             lock_that_waits_for_a_replica_stays_at_the_server,
             server_that_does_not_wait_is_not_asked_again_and_again,
             acquire_whose_reply_is_lost_is_confirmed_by_its_repetition,
             user_who_may_not_wait_gets_EACCES,
             replica_in_place_of_the_master_is_ENOTCONN,
             readers_and_writers_are_confirmed,
             answer_counts_though_the_one_of_WAIT_is_missing);
    tcase_add_loop_test(taking, lock_of_each_type_is_ENOTCONN_while_a_replica_is_silent,
                        0, 3);
    TCase *grants = replicas_tcase(suite, "grants");
    TEST_ADD(grants, grant_is_proven_before_the_waiter_enters,
             grant_that_too_few_replicas_confirm_is_ENOTCONN_and_is_given_back,
             grant_that_a_poll_finds_is_proven_too,
             grant_that_a_cancel_finds_is_proven_too,
             grant_is_proven_when_the_replica_comes_back,
             readers_that_wait_together_enter_with_one_proof,
             reader_that_comes_during_a_proof_does_not_overtake_a_writer,
             reader_does_not_go_on_with_an_unproven_hold_from_before_a_writer,
             hand_off_and_retention_wait_for_no_replica);
    TCase *table = replicas_tcase(suite, "table");
    TEST_ADD(table, without_replicas_a_failover_may_lose_a_lock,
             one_of_two_replicas_may_be_the_other_one, all_replicas_lose_no_lock);
    tcase_add_loop_test(table, diagnosis_compares_the_number_with_the_replicas, 0, 4);
    return test_run_suite(suite);
}
