/* SPDX-License-Identifier: Apache-2.0 */
/* program: slow */
/* Silent replicas, and what goes on behind the WAIT of the watchdog. (One WAIT behind
 * many renewals: test_replicas_batches.c.) */
#include "replicascene.h"

/* rule: P14 */
START_TEST(waiter_keeps_its_place_while_renewals_wait_for_replicas)
{
    char before[128];
    struct actor actor;

    open_other("?replicas=2&lease=%ld&presence=%ld", test_ms(3000), test_ms(600));
    rlock_mutex_t held = mutex_of(client, "n"), wanted = mutex_of(other, "n"),
                  mine = mutex_of(other, "mine");
    actor_start(&actor);
    OK(rlock_mutex_lock(&mine));
    OK(rlock_mutex_lock(&held));
    actor_begin(&actor, run_lock, &wanted);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    const redisReply *first =
        test_redis_do(redis, "ZRANGE", "rlock:{n}:queue", "0", "0", "WITHSCORES");
    snprintf(before, sizeof(before), "%s", first->element[1]->str);
    test_server_pause(&replicas[0]);
    /* this is several presences long */
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, REPLICAS_SOON_MS));
    first = test_redis_do(redis, "ZRANGE", "rlock:{n}:queue", "0", "0", "WITHSCORES");
    ck_assert_int_eq((int)first->elements, 2);
    ck_assert_str_eq(first->element[1]->str, before);
    test_server_resume(&replicas[0]);
    OK(rlock_mutex_unlock(&held));
    ck_assert_int_eq(actor_rc(&actor), 0);
    OK(actor_does(&actor, run_unlock, &wanted));
    actor_end(&actor);
    EXPECT(rlock_mutex_unlock(&mine), ESTALE);
}
END_TEST

/* rule: P14 */
START_TEST(loss_by_force_is_reported_while_replicas_are_silent)
{
    open_other("?replicas=2&lease=%ld", test_ms(6000));
    rlock_mutex_t m = mutex_of(other, "n");

    OK(rlock_mutex_lock(&m));
    test_server_pause(&replicas[0]);
    ck_assert(wait_waits(waits() + 1)); /* a renewal waits for replicas */
    OK(rlock_force_unlock(client, "n"));
    const struct told *told = event_of(RLOCK_EVENT_LOST, REPLICAS_SOON_MS);
    ck_assert_ptr_nonnull(told);
    ck_assert_msg(strstr(told->reason, "by force"), "%s", told->reason);
    test_server_resume(&replicas[0]);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

/* rule: P14 */
START_TEST(short_lease_that_has_ended_makes_no_WAIT_shorter)
{
    /* a WAIT lasts for 500 ms: a twelfth of the lease, and a sixth of presence */
    open_other("?replicas=2&presence=%ld&lease=%ld", test_ms(3000), test_ms(6000));
    rlock_mutex_t m = mutex_of(other, "n"), quick;
    rlock_mutexattr_t attr;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, other));
    OK(rlock_mutexattr_setlease(&attr, test_ms(300)));
    OK(rlock_mutex_init(&quick, &attr, "quick"));
    OK(rlock_mutex_lock(&quick));
    ck_assert(wait_renewals(other, 1));
    OK(rlock_mutex_unlock(&quick));
    OK(rlock_mutex_lock(&m));
    test_server_pause(&replicas[0]);
    long long before = waits();
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_AT_RISK, REPLICAS_SOON_MS));
    /* it was renewed after a third of the lease, and is at risk after two thirds */
    ck_assert_int_ge(waits() - before, 1);
    ck_assert_int_le(waits() - before, 8);
    test_server_resume(&replicas[0]);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("behind a WAIT");
    TCase *tc = replicas_tcase(suite, "waits");
    TEST_ADD(tc, waiter_keeps_its_place_while_renewals_wait_for_replicas,
             loss_by_force_is_reported_while_replicas_are_silent,
             short_lease_that_has_ended_makes_no_WAIT_shorter);
    return test_run_suite(suite);
}
