/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=P12 */
/* Renewals with replicas=N: a hold that too few replicas confirm is lost at D. (Risks:
 * test_replicas_risk.c. Taking locks: test_replicas.c. One WAIT behind many renewals:
 * test_replicas_batches.c.) */
#include "replicascene.h"

enum { LEASE_MS = 900 };

/* ---- D */

/* rule: P12, P14 */
START_TEST(renewals_that_replicas_confirm_keep_the_hold)
{
    open_other("?lease=%ld&replicas=2", test_ms(LEASE_MS));
    rlock_mutex_t m = mutex_of(other, "n");

    OK(rlock_mutex_lock(&m));
    ck_assert(wait_renewals(other, 4));
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
    ck_assert_uint_eq(stats_of(other).losses, 0);
    ck_assert(!event_seen(RLOCK_EVENT_AT_RISK));
}
END_TEST

/* rule: P12 */
START_TEST(hold_is_lost_before_a_promoted_replica_can_grant_the_lock)
{
    open_other("?lease=%ld&replicas=2", test_ms(LEASE_MS));
    rlock_mutex_t m = mutex_of(other, "n"), theirs;
    rlock_client_t *c = NULL;

    OK(rlock_mutex_lock(&m));
    for (int i = 0; i < REPLICAS; i++)
        cut_off(i);
    OK(rlock_client_open(&c, replicas[0].tcp_url, NULL));
    theirs = mutex_of(c, "n");
    OK(rlock_mutex_lock(&theirs)); /* when the lease has ended there */
    ck_assert_int_eq(state_of(&m), RLOCK_LOST);
    OK(rlock_mutex_unlock(&theirs));
    close_client(c);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

/* rule: P12 */
START_TEST(extension_that_too_few_replicas_confirm_is_ENOTCONN)
{
    /* the first answer of the server comes well before the end */
    open_other("?replicas=2&commandtimeout=%ld", test_ms(900));
    rlock_mutex_t m = mutex_of(other, "n");
    OK(rlock_mutex_lock(&m));
    long before = remaining_of(&m);
    test_server_pause(&replicas[1]);
    EXPECT(rlock_mutex_extend(&m, test_ms(60000)), ENOTCONN);
    says("1 of 2 replicas");
    ck_assert_int_le(remaining_of(&m), before);
    test_server_resume(&replicas[1]);
    OK(rlock_mutex_extend(&m, test_ms(60000)));
    ck_assert_int_gt(remaining_of(&m), before);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("renewals that replicas confirm");
    TCase *ends = replicas_tcase(suite, "ends");
    TEST_ADD(ends, renewals_that_replicas_confirm_keep_the_hold,
             hold_is_lost_before_a_promoted_replica_can_grant_the_lock,
             extension_that_too_few_replicas_confirm_is_ENOTCONN, );
    return test_run_suite(suite);
}
