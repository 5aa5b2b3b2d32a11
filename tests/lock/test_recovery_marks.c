/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=G12,G13 */
/* What the recovery script leaves of a dead client, with scripts sent by hand: the marker
 * that refuses its late requests (rule G12), and the mark of a robust lock (G13). A is
 * dead, the others live. */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIED = 8, LIFE_MS = 10000 };

#define ROBUST_A UUID_A ":1:7:m3000b"
#define ROBUST_B UUID_B ":1:7:m3000b"
#define FRESH_A UUID_A ":9:9:"

/* ---- late requests of a dead client (G12) */

/* rule: G12 */
START_TEST(late_request_of_a_dead_client_is_refused)
{
    const char *const ids[] = { FRESH_A "m3000",  FRESH_A "f3000",  FRESH_A "w3000",
                                FRESH_A "r3000",  FRESH_A "M3000",  FRESH_A "R3000",
                                FRESH_A "m3000k", FRESH_A "r3000k", FRESH_A "w3000k" };
    SAYS(bury(""), "gone");
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        SAYS(acquire(ids[i]), "refused"); /* even of a free lock */
        ck_assert(!test_redis_exists(redis, "n"));
    }
    SAYS(acquire(WRITE_B), "held");
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        SAYS(acquire(ids[i]), "refused"); /* it does not queue, either */
        SAYS(try_acquire(ids[i]), "refused");
    }
    release(WRITE_B);
    SAYS(acquire(READ_B), "held");
    SAYS(acquire(FRESH_A "r3000"), "refused"); /* nor does it join */
    SAYS(acquire(FRESH_A "w3000"), "refused");
}
END_TEST

/* A hold that exists is reported as held, as it is before the marker of an id (T3). */
/* rule: G12 */
START_TEST(already_held_is_checked_before_the_marker_of_a_dead_client)
{
    const char *const ids[] = { A, FAIR_A, WRITE_A, READ_A };
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        test_redis_do(redis, "FLUSHALL");
        SAYS(acquire(ids[i]), "held");
        test_redis_do(redis, "ZADD", CANCELLED, "9999999999999", UUID_A);
        SAYS(acquire(ids[i]), "held");
    }
}
END_TEST

/* rule: G12 */
START_TEST(reader_of_a_dead_client_shares_no_hold)
{
    SAYS(bury(""), "gone");
    SAYS(acquire(READ_B), "held");
    SAYS(share(READ_A, READ_B), "refused");
}
END_TEST

/* rule: G12 */
START_TEST(poll_of_a_dead_client_renews_no_presence)
{
    SAYS(acquire(B), "held");
    SAYS(acquire(A), "queued");
    SAYS(acquire(READ_A), "queued");
    SAYS(bury("1:1:m3000 0 1:1:r3000 0 "), "gone");
    SAYS(refresh(A), "gone");
    SAYS(refresh(READ_A), "gone");
    ck_assert_int_eq(atoll(test_redis_str(redis, "ZSCORE", PRESENT, UUID_A)), 0);
}
END_TEST

/* rule: G12 */
START_TEST(requests_of_other_clients_are_served)
{
    SAYS(bury(""), "gone");
    SAYS(acquire(B), "held");
    SAYS(release(B), "released");
    SAYS(acquire(READ_C), "held");
}
END_TEST

/* rule: G12 */
START_TEST(marker_of_a_dead_client_lasts_as_long_as_its_requests_may_travel)
{
    long long before = server_ms();
    SAYS(bury(""), "gone");
    long long until = atoll(test_redis_str(redis, "ZSCORE", CANCELLED, UUID_A));
    ck_assert_int_ge(until, before + LIFE_MS);
    ck_assert_int_le(until, server_ms() + LIFE_MS);
    ck_assert_int_gt(test_redis_int(redis, "PTTL", CANCELLED), LIFE_MS / 2);
}
END_TEST

/* rule: G12 */
START_TEST(longer_marker_is_not_shortened)
{
    RUN(RLK_LOCK_BURY, UUID_A, "60000", CHANNEL, "16", "");
    long long until = atoll(test_redis_str(redis, "ZSCORE", CANCELLED, UUID_A));
    SAYS(bury(""), "gone");
    ck_assert_int_eq(atoll(test_redis_str(redis, "ZSCORE", CANCELLED, UUID_A)), until);
    ck_assert_int_gt(test_redis_int(redis, "PTTL", CANCELLED), LIFE_MS);
}
END_TEST

/* ---- robust locks (G13) */

static const char *mark(void)
{
    static char text[128];
    const char *found = test_redis_str(redis, "GET", DIRTY);
    snprintf(text, sizeof(text), "%s", found ? found : "");
    return text;
}

static void is_left(const char *ids, bool dead)
{
    SAYS(acquire(ROBUST_A), "held");
    SAYS(bury(ids), "released");
    ck_assert_str_eq(mark(), dead ? ROBUST_A "#1" : "");
    struct answer a = acquire(ROBUST_B);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(a.flags & DIED, dead ? DIED : 0);
}

/* rule: G13 */
START_TEST(client_that_died_inside_leaves_an_owner_died_mark)
{
    is_left("1:7:m3000b 1 ", true);
}
END_TEST

/* rule: G13 */
START_TEST(client_of_unknown_state_leaves_an_owner_died_mark)
{
    is_left("1:8:m3000b 2 ", true);
}
END_TEST

/* rule: G13 */
START_TEST(client_that_had_left_leaves_no_owner_died_mark)
{
    is_left("1:7:m3000b 2 ", false);
}
END_TEST

/* rule: G13 */
START_TEST(client_that_never_entered_leaves_no_owner_died_mark)
{
    is_left("1:7:m3000b 0 ", false);
}
END_TEST

/* After the lease, nobody knows whether the dead client was still inside. */
/* rule: G13 */
START_TEST(after_the_lease_the_mark_stays_unless_the_client_had_left)
{
    SAYS(acquire(ROBUST_A), "held");
    expire();
    SAYS(bury("1:7:m3000b 0 "), "gone");
    ck_assert_str_eq(mark(), ROBUST_A "#1");
    SAYS(bury("1:7:m3000b 2 "), "gone");
    ck_assert_str_eq(mark(), "");
}
END_TEST

/* rule: G13 */
START_TEST(waiter_learns_of_the_death_from_its_grant)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(ROBUST_A), "held");
    SAYS(acquire(ROBUST_B), "queued");
    SAYS(bury("1:7:m3000b 1 "), "released");
    ck_assert(strncmp(message(b), "1 grant 8 ", 10) == 0);
    ck_assert_str_eq(mark(), ROBUST_B "#2");
    test_redis_close(b);
}
END_TEST

/* rule: G13 */
START_TEST(unread_owner_died_mark_goes_to_the_next_holder)
{
    test_redis_do(redis, "SET", DIRTY, ROBUST_B "#1", "EX", "1000");
    ck_assert_int_eq(acquire(ROBUST_A).flags & DIED, DIED);
    SAYS(bury("1:7:m3000b 0 "), "released");
    ck_assert_int_eq(acquire(ROBUST_B).flags & DIED, DIED);
}
END_TEST

/* rule: G13 */
START_TEST(lock_made_consistent_and_unlocked_is_clean)
{
    test_redis_do(redis, "SET", DIRTY, ROBUST_B "#1", "EX", "1000");
    ck_assert_int_eq(acquire(ROBUST_A).flags & DIED, DIED);
    SAYS(bury("1:7:m3000b 2 "), "released");
    ck_assert_int_eq(acquire(ROBUST_B).flags & DIED, 0);
}
END_TEST

/* rule: G13 */
START_TEST(later_number_of_a_mark_is_the_same_mark)
{
    SAYS(acquire(ROBUST_A), "held");
    test_redis_do(redis, "SET", DIRTY, ROBUST_A "#5", "EX", "1000");
    SAYS(bury("1:7:m3000b 2 "), "released");
    ck_assert_str_eq(mark(), "");
}
END_TEST

/* rule: G13 */
START_TEST(mark_of_another_client_stays)
{
    SAYS(acquire(ROBUST_B), "held");
    SAYS(bury("1:7:m3000b 2 1:8:m3000b 0 "), "gone");
    ck_assert_str_eq(mark(), ROBUST_B "#1");
}
END_TEST

/* rule: G13 */
START_TEST(not_recoverable_lock_stays_not_recoverable)
{
    SAYS(acquire(ROBUST_A), "held");
    test_redis_do(redis, "SET", DIRTY, "not recoverable", "EX", "1000");
    SAYS(bury("1:7:m3000b 2 "), "released");
    ck_assert_str_eq(mark(), "not recoverable");
    SAYS(acquire(ROBUST_B), "unrecoverable");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("recovery marks");
    TEST_ADD(byhand_tcase(s, "ghosts"), late_request_of_a_dead_client_is_refused,
             already_held_is_checked_before_the_marker_of_a_dead_client,
             reader_of_a_dead_client_shares_no_hold,
             poll_of_a_dead_client_renews_no_presence,
             requests_of_other_clients_are_served,
             marker_of_a_dead_client_lasts_as_long_as_its_requests_may_travel,
             longer_marker_is_not_shortened);
    TEST_ADD(byhand_tcase(s, "robust"), client_that_died_inside_leaves_an_owner_died_mark,
             client_of_unknown_state_leaves_an_owner_died_mark,
             client_that_had_left_leaves_no_owner_died_mark,
             client_that_never_entered_leaves_no_owner_died_mark,
             after_the_lease_the_mark_stays_unless_the_client_had_left,
             waiter_learns_of_the_death_from_its_grant,
             unread_owner_died_mark_goes_to_the_next_holder,
             lock_made_consistent_and_unlocked_is_clean,
             later_number_of_a_mark_is_the_same_mark, mark_of_another_client_stays,
             not_recoverable_lock_stays_not_recoverable);
    return test_run_suite(s);
}
