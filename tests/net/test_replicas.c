/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=P11,P13,P15 */
/* Taking locks with replicas=N, and grants: confirmed by replicas; and each line of
 * README's table of what a failover may lose. (Too few replicas: test_replicas_few.c,
 * test_replicas_grants.c. Renewals: test_replicas_renewals.c. The scripts by hand:
 * test_replicas_scripts.c.) */
#include "replicascene.h"

#include "findings.h"

#include <syslog.h>

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
START_TEST(hand_off_and_retention_wait_for_no_replica)
{
    open_other("?replicas=2&retain=%ld", test_ms(20000));
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
    if (strcmp(rows[_i].min, "0") != 0 && !test_server_bounds_scripts(NULL))
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
             user_who_may_not_wait_gets_EACCES, readers_and_writers_are_confirmed);
    TCase *grants = replicas_tcase(suite, "grants");
    TEST_ADD(grants, grant_is_proven_before_the_waiter_enters,
             readers_that_wait_together_enter_with_one_proof,
             hand_off_and_retention_wait_for_no_replica);
    TCase *table = replicas_tcase(suite, "table");
    TEST_ADD(table, without_replicas_a_failover_may_lose_a_lock,
             one_of_two_replicas_may_be_the_other_one, all_replicas_lose_no_lock);
    tcase_add_loop_test(table, diagnosis_compares_the_number_with_the_replicas, 0, 4);
    return test_run_suite(suite);
}
