/* SPDX-License-Identifier: Apache-2.0 */
/* program: */
/* Renewals that too few replicas confirm: at risk, safe again, lost. (The rule:
 * test_replicas_renewals.c.) */
#include "replicascene.h"

#include <string.h>

enum { LEASE_MS = 900, LONGER_MS = 2400 };

/* rule: P12 */
START_TEST(holder_at_an_isolated_master_is_at_risk_and_then_loses_its_lock)
{
    /* long enough for the server to say how few they are before the hold is at risk */
    open_other("?lease=%ld&replicas=2", test_ms(LONGER_MS));
    rlock_mutex_t m = mutex_of(other, "n");

    OK(rlock_mutex_lock(&m));
    ck_assert(wait_renewals(other, 1)); /* the server has the script from now on */
    for (int i = 0; i < REPLICAS; i++)
        cut_off(i);
    const struct told *told = event_of(RLOCK_EVENT_AT_RISK, REPLICAS_SOON_MS);
    ck_assert_ptr_nonnull(told);
    ck_assert_msg(strstr(told->reason, "too few replicas"), "%s", told->reason);
    told = event_of(RLOCK_EVENT_LOST, REPLICAS_SOON_MS);
    ck_assert_ptr_nonnull(told);
    ck_assert_msg(strstr(told->reason, "too few replicas"), "%s", told->reason);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

/* rule: P12 */
START_TEST(reader_at_an_isolated_master_loses_its_lock)
{
    open_other("?lease=%ld&replicas=1", test_ms(LEASE_MS));
    rlock_rwlock_t l = rwlock_of(other, "n");

    OK(rlock_rwlock_rdlock(&l));
    ck_assert(wait_renewals(other, 2));
    for (int i = 0; i < REPLICAS; i++)
        cut_off(i);
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, REPLICAS_SOON_MS));
    EXPECT(rlock_rwlock_unlock(&l), ESTALE);
}
END_TEST

/* rule: P12 */
START_TEST(hold_is_safe_again_when_the_replicas_come_back_in_time)
{
    open_other("?replicas=2&lease=%ld", test_ms(3600));
    rlock_mutex_t m = mutex_of(other, "n");
    OK(rlock_mutex_lock(&m));
    test_server_pause(&replicas[1]);
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_AT_RISK, REPLICAS_SOON_MS));
    test_server_resume(&replicas[1]);
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_SAFE_AGAIN, REPLICAS_SOON_MS));
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* rule: P15 */
START_TEST(NOREPLICAS_counts_a_hold_down_to_its_loss)
{
    if (!test_server_bounds_scripts("NOREPLICAS_counts_a_hold_down_to_its_loss"))
        return;
    open_other("?lease=%ld&replicas=1", test_ms(LEASE_MS));
    rlock_mutex_t m = mutex_of(other, "n");

    OK(rlock_mutex_lock(&m));
    test_redis_config(redis, "min-replicas-to-write", "3");
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_AT_RISK, REPLICAS_SOON_MS));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, REPLICAS_SOON_MS));
    test_redis_config(redis, "min-replicas-to-write", "0");
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("renewals that replicas do not confirm");
    TCase *tc = replicas_tcase(suite, "risk");
    TEST_ADD(tc, holder_at_an_isolated_master_is_at_risk_and_then_loses_its_lock,
             reader_at_an_isolated_master_loses_its_lock,
             hold_is_safe_again_when_the_replicas_come_back_in_time,
             NOREPLICAS_counts_a_hold_down_to_its_loss);
    return test_run_suite(suite);
}
