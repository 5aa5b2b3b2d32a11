/* SPDX-License-Identifier: Apache-2.0 */
/* program: */
/* Grants that too few replicas confirm, and who may enter with one that they do. (What is
 * confirmed: test_replicas.c.) */
#include "replicascene.h"

enum { SHORT_MS = 800 };

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
    struct task task;

    open_other_at(test_proxy_url(p), "?replicas=2&presence=%ld", test_ms(600));
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
    /* by the cancel, or on a slow machine by a last request */
    ck_assert_msg(strstr(message, "replicas confirmed"), "%s", message);
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

int main(void)
{
    Suite *suite = suite_create("grants that replicas confirm");
    TCase *tc = replicas_tcase(suite, "grants");
    TEST_ADD(tc, grant_that_too_few_replicas_confirm_is_ENOTCONN_and_is_given_back,
             grant_that_a_poll_finds_is_proven_too,
             grant_that_a_cancel_finds_is_proven_too,
             grant_is_proven_when_the_replica_comes_back,
             reader_that_comes_during_a_proof_does_not_overtake_a_writer,
             reader_does_not_go_on_with_an_unproven_hold_from_before_a_writer);
    return test_run_suite(suite);
}
