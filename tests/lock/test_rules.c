/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_rules,rwlock_rules claims=T1,T2,T3,T4,T5,T6,T7 */
/*
 * The rules of the protocol T1 to T7 (doc/design/protocol.md). Each test plays through
 * the course of events for which the rule was made, with the library and a real server.
 * The other rules are in test_rules_answers.c. test_two_grants.c has the part of T1 about
 * two grants of one process. rulescene.h says what `self`, `m` and `x` are.
 */
#include "rulescene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_LEASE_MS = 20000, POLL_MS = 100, PRESENCE_MS = 3 * POLL_MS, STAYS_MS = 150 };

/* ---- T1 */

/* rule: T1 */
START_TEST(grant_of_an_old_ticket_is_not_believed)
{
    char id[SCENE_ID_MAX], old[32], new[32];
    start_x(SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    scene_worker_waits(&x, "N", 1);
    ck_assert(scene_waiter("N", 0, id, old));
    int grant = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_HOLD,
                          .contains = "1 grant");
    worker_stop(&x);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(test_proxy_wait_hits(scene_proxy, grant, 1, SCENE_SOON_MS));
    ck_assert(scene_wait_free("N", 2 * PRESENCE_MS)); /* x's grant has lapsed */
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    worker_cont(&x);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    ck_assert(scene_waiter("N", 0, id, new));
    ck_assert_str_ne(old, new);
    test_proxy_remove(scene_proxy, grant);
    ck_assert(test_stays(x_is_not_told, NULL, test_ms(STAYS_MS)));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
}
END_TEST

/* rule: T1 */
START_TEST(grant_that_overtakes_the_queued_reply_waits_for_it)
{
    start_x(NULL);
    int reply = SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_HOLD,
                           .count = 1);
    int grant = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_WATCH,
                          .contains = "1 grant");
    scene_worker_waits(&x, "N", 1);
    ck_assert(test_proxy_wait_hits(scene_proxy, reply, 1, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(test_proxy_wait_hits(scene_proxy, grant, 1, SCENE_SOON_MS));
    ck_assert(test_stays(x_is_not_told, NULL, test_ms(STAYS_MS)));
    test_proxy_remove(scene_proxy, reply);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
}
END_TEST

static bool half_of_the_grant_is_over(void *arg)
{
    (void)arg;
    return scene_pttl("N") < test_ms(1000) / 2;
}

static bool a_third_of_the_grant_is_left(void *arg)
{
    (void)arg;
    return scene_pttl("N") < test_ms(2 * PRESENCE_MS) / 3;
}

/* rule: T1 */
START_TEST(grant_read_before_the_queued_reply_also_counts_from_the_request)
{
    /* with this timeout, x does not repeat its acquire, which might extend the grant */
    start_x(SCENE_TIMES(.presence = test_ms(2 * PRESENCE_MS), .command = test_ms(3000)));
    int reply = SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_HOLD);
    int grant = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_HOLD,
                          .contains = "1 grant");
    scene_worker_waits(&x, "N", 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(test_wait_until(a_third_of_the_grant_is_left, NULL, 4 * PRESENCE_MS));
    test_proxy_remove(scene_proxy, grant);
    ck_assert(scene_wait_free("N", 2 * PRESENCE_MS));
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    test_proxy_remove(scene_proxy, reply);
    ck_assert(test_stays(x_is_not_told, NULL, test_ms(STAYS_MS)));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
}
END_TEST

/* rule: T1 */
START_TEST(grant_counts_from_the_queued_request_and_not_from_the_message)
{
    start_x(SCENE_TIMES(.presence = test_ms(1000)));
    SCENE_RULE(RLK_MUTEX_REFRESH, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    SCENE_RULE(RLK_MUTEX_RENEW, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    int grant = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_HOLD,
                          .contains = "1 grant");
    scene_worker_waits(&x, "N", 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(test_wait_until(half_of_the_grant_is_over, NULL, 2000));
    test_proxy_remove(scene_proxy, grant);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    const char *answer = worker_ask(&x, "on t remaining m", SCENE_SOON_MS);
    ck_assert_msg(answer && strncmp(answer, "ok ", 3) == 0, "%s",
                  answer ? answer : "none");
    /* less than half of the grant was left before the message came */
    ck_assert_int_lt(atol(answer + 3), test_ms(1000) / 2);
}
END_TEST

/* rule: T1 */
START_TEST(tickets_never_repeat_and_lose_no_digit)
{
    char key[SCENE_KEY_MAX], id[SCENE_ID_MAX], ticket[32];
    static const char ahead[] =
        "4000000000000123"; /* from a server whose clock was ahead */
    start_x(NULL);
    test_redis_do(scene_redis, "ZADD", scene_key(key, "N", "queue"), ahead,
                  "00000000-0000-4000-8000-00000000000a:1:1:" SCENE_LETTER "3000");
    scene_worker_waits(&x, "N", 2);
    ck_assert(scene_waiter("N", 1, id, ticket));
    ck_assert_str_eq(ticket, "4000000000000124");
}
END_TEST

/* ---- T2 */

/* rule: T2 */
START_TEST(refresh_that_arrives_after_the_hold_takes_nothing)
{
    start_x(SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    int refresh = SCENE_RULE(RLK_MUTEX_REFRESH, .on = TEST_ON_REQUEST,
                             .action = TEST_HOLD, .count = 1);
    scene_worker_waits(&x, "N", 1);
    ck_assert(test_proxy_wait_hits(scene_proxy, refresh, 1, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_says(&x, "ok", "on t unlock m");
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    test_proxy_release(scene_proxy, refresh);
    ck_assert(test_proxy_wait_answered(scene_proxy, refresh, 1, SCENE_SOON_MS));
    ck_assert(!test_redis_exists(scene_redis, "N"));
}
END_TEST

/* ---- T3 */

static const char *server_us(char buf[32], long plus_ms)
{
    const redisReply *r = test_redis_do(scene_redis, "TIME");
    long long us = atoll(r->element[0]->str) * 1000000 + atoll(r->element[1]->str);
    snprintf(buf, 32, "%lld", us + plus_ms * 1000);
    return buf;
}

/* Repeats the acquire of an id, with a not-after in the future. */
static const char *acquire_again(const char *id)
{
    char uuid[RLK_UUID_LEN + 1], not_after[32];
    server_us(not_after, 60000);
    /* the last arguments are for the scripts of other types only */
    return scene_call(RLK_MUTEX_ACQUIRE, "N", id, scene_uuid(uuid, id), "30000", "3000",
                      not_after, "1", "0", SCENE_ACQUIRE_MORE);
}

/* x's first acquire gets an invalid answer; the library repeats it. */
static void x_holds_by_its_second_acquire(char id[SCENE_ID_MAX])
{
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    start_x(NULL);
    int rule = SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
                          .text = "!\r\n", .count = 1);
    scene_says(&x, "ok", "on t lock m");
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, rule), 1);
    ck_assert(scene_holder("N", id));
}

/* rule: T3 */
START_TEST(release_marks_an_id_whose_acquire_had_an_unknown_outcome)
{
    char id[SCENE_ID_MAX];
    x_holds_by_its_second_acquire(id);
    scene_says(&x, "ok", "on t unlock m");
    ck_assert_str_eq(acquire_again(id), "refused");
    ck_assert(!test_redis_exists(scene_redis, "N"));
}
END_TEST

/* rule: T3 */
START_TEST(already_held_is_checked_before_the_marker)
{
    char id[SCENE_ID_MAX], key[SCENE_KEY_MAX];
    x_holds_by_its_second_acquire(id);
    test_redis_do(scene_redis, "ZADD", scene_key(key, "N", "cancelled"), "99999999999999",
                  id);
    ck_assert_str_eq(acquire_again(id), "held");
}
END_TEST

static bool exists(void *key)
{
    return test_redis_exists(scene_redis, key);
}

static bool is_gone(void *key)
{
    return !exists(key);
}

/* rule: T3 */
START_TEST(ghost_acquire_that_outlives_its_marker_is_too_late)
{
    char cancelled[SCENE_KEY_MAX];
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    start_x(SCENE_TIMES(.command = test_ms(50)));
    int ghost = SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                           .count = 1);
    scene_says(&x, "ENOTCONN", "on t trylock m");
    scene_key(cancelled, "N", "cancelled");
    ck_assert(test_wait_until(exists, cancelled, SCENE_SOON_MS));
    ck_assert(test_wait_until(is_gone, cancelled, SCENE_SOON_MS)); /* after some 1.1 s */
    test_proxy_release(scene_proxy, ghost);
    ck_assert(test_proxy_wait_answered(scene_proxy, ghost, 1, SCENE_SOON_MS));
    ck_assert(!test_redis_exists(scene_redis, "N"));
}
END_TEST

/* rule: T3 */
START_TEST(abandoned_acquire_leaves_a_marker_that_outlives_its_window)
{
    char cancelled[SCENE_KEY_MAX];
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    start_x(SCENE_TIMES(.command = test_ms(100)));
    SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REQUEST, .action = TEST_HOLD, .count = 1);
    scene_says(&x, "ENOTCONN", "on t trylock m");
    scene_key(cancelled, "N", "cancelled");
    ck_assert(test_wait_until(exists, cancelled, SCENE_SOON_MS));
    ck_assert_int_gt(test_redis_int(scene_redis, "PTTL", cancelled),
                     2 * test_ms(100) + 500);
}
END_TEST

/* ---- T4 */

/* rule: T4 */
START_TEST(delayed_renewal_shortens_no_longer_lease)
{
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    start_x(SCENE_TIMES(.lease = test_ms(600)));
    int renew = SCENE_RULE(RLK_MUTEX_RENEW, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                           .count = 1);
    scene_says(&x, "ok", "on t lock m");
    ck_assert(test_proxy_wait_hits(scene_proxy, renew, 1, SCENE_SOON_MS));
    scene_says(&x, "ok", "on t extend m %d", LONG_LEASE_MS);
    test_proxy_release(scene_proxy, renew);
    ck_assert(test_proxy_wait_answered(scene_proxy, renew, 1, SCENE_SOON_MS));
    ck_assert_int_gt(scene_pttl("N"), LONG_LEASE_MS / 2);
}
END_TEST

/* ---- T5 */

/* rule: T5 */
START_TEST(no_grant_is_sent_when_the_server_refuses_the_write)
{
    if (!test_server_bounds_scripts("no_grant_is_sent_when_the_server_refuses_the_write"))
        return;
    start_x(NULL);
    int grant = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_WATCH,
                          .contains = "1 grant");
    scene_worker_waits(&x, "N", 1);
    test_redis_config(scene_redis, "min-replicas-to-write", "1");
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(test_redis_exists(scene_redis, "N"));
    ck_assert_int_eq(scene_queue_len("N"), 1);
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, grant), 0);
    test_redis_config(scene_redis, "min-replicas-to-write", "0");
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS)); /* the release is repeated */
}
END_TEST

/* rule: T5 */
START_TEST(waiter_with_an_unheard_mailbox_is_skipped_and_does_not_lose_its_ticket)
{
    struct worker y;
    char id[SCENE_ID_MAX], ticket[32], left[32];
    start_x(SCENE_TIMES(.presence = test_ms(2000)));
    scene_worker(&y, scene_server.url, NULL, "N", "");
    scene_worker_waits(&x, "N", 1);
    ck_assert(scene_waiter("N", 0, id, ticket));
    scene_worker_waits(&y, "N", 2);
    test_proxy_set_mode(scene_proxy, TEST_PROXY_DOWN);
    test_redis_do(scene_redis, "CLIENT", "KILL", "TYPE", "pubsub");
    ck_assert(scene_wait_mailboxes(2, SCENE_SOON_MS)); /* self and y are back */
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&y, SCENE_SOON_MS));
    ck_assert(scene_waiter("N", 0, id, left));
    ck_assert_str_eq(ticket, left);
    worker_end(&y);
}
END_TEST

/* ---- T6 */

/* x holds the lock for a confirmed time, which ends: the server executes its renewals,
 * but the proxy holds the replies back. */
static int x_holds_and_its_renewals_are_not_confirmed(void)
{
    int renew = SCENE_RULE(RLK_MUTEX_RENEW, .on = TEST_ON_REPLY, .action = TEST_HOLD);
    scene_says(&x, "ok", "on t lock m");
    ck_assert(test_proxy_wait_answered(scene_proxy, renew, 1, SCENE_SOON_MS));
    return renew;
}

/* rule: T6 */
START_TEST(confirmation_read_after_the_end_of_the_lease_is_not_believed)
{
    long lease = test_ms(900);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    start_x(SCENE_TIMES(.lease = lease));
    int64_t begin = test_now_ms();
    int renew = x_holds_and_its_renewals_are_not_confirmed();
    worker_stop(&x);
    test_proxy_remove(scene_proxy, renew); /* the reply waits in x's socket */
    test_pause_ms((long)(begin + lease + test_ms(50) - test_now_ms()));
    ck_assert(test_redis_exists(scene_redis, "N")); /* the server has renewed it */
    worker_cont(&x);
    scene_says(&x, "ok LOST", "on t state m");
    scene_says(&x, "ESTALE", "on t unlock m");
}
END_TEST

/* rule: T6 */
START_TEST(lost_hold_is_released_once_and_never_renewed)
{
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    start_x(SCENE_TIMES(.lease = test_ms(300)));
    int renewals =
        SCENE_RULE(RLK_MUTEX_RENEW, .on = TEST_ON_REQUEST, .action = TEST_WATCH);
    int releases =
        SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REQUEST, .action = TEST_WATCH);
    x_holds_and_its_renewals_are_not_confirmed();
    ck_assert(worker_news(&x, "event LOST N", 2000));
    ck_assert(test_proxy_wait_hits(scene_proxy, releases, 1, SCENE_SOON_MS));
    /* the release came behind the requests under way at the loss, on the same
     * connection */
    unsigned before = test_proxy_hits(scene_proxy, renewals);
    test_pause_ms(test_ms(300)); /* a lease, during which x must not renew */
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, renewals), before);
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, releases), 1);
    ck_assert(!test_redis_exists(scene_redis, "N"));
    scene_says(&x, "ESTALE", "on t unlock m");
}
END_TEST

/* ---- T7 */

#ifndef AS_FAIR /* where each thread has a ticket of its own */
/* rule: T7 */
START_TEST(thread_that_gives_up_passes_its_ticket_to_the_next)
{
    char id[SCENE_ID_MAX], ticket[32], later[32];
    start_x(NULL);
    int cancels =
        SCENE_RULE(RLK_MUTEX_CANCEL, .on = TEST_ON_REQUEST, .action = TEST_WATCH);
    scene_says(&x, "ok", "async first timedlock m %ld", test_ms(200));
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    ck_assert(scene_waiter("N", 0, id, ticket));
    scene_says(&x, "ok", "async t lock m");
    const char *news = worker_news(&x, "done first", SCENE_SOON_MS);
    ck_assert_str_eq(news, "done first ETIMEDOUT");
    ck_assert(scene_waiter("N", 0, id, later));
    ck_assert_str_eq(ticket, later);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, cancels), 0);
}
END_TEST
#endif

/* rule: T7 */
START_TEST(id_with_a_cancel_in_flight_is_not_reused)
{
    char dead[SCENE_ID_MAX], id[SCENE_ID_MAX], ticket[32];
    start_x(NULL);
    int cancel = SCENE_RULE(RLK_MUTEX_CANCEL, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                            .count = 1);
    for (bool left = false; !left;) {
        int release =
            SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REQUEST, .action = TEST_DROP);
        scene_says(&x, "ok", "async first timedlock m %ld", test_ms(100));
        ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
        ck_assert(scene_waiter("N", 0, dead, ticket));
        left = scene_cancel_left(&x, "first", cancel);
        if (!left) {
            test_proxy_remove(scene_proxy, release);
            ck_assert(scene_wait_queued("N", 0, SCENE_SOON_MS));
        }
    }
    scene_says(&x, "ok", "async t lock m");
    ck_assert(scene_wait_queued("N", 2, SCENE_SOON_MS));
    ck_assert(scene_waiter("N", 1, id, ticket));
    ck_assert_str_ne(dead, id);
    test_proxy_release(scene_proxy, cancel);
    ck_assert(test_proxy_wait_answered(scene_proxy, cancel, 1, SCENE_SOON_MS));
    ck_assert_int_eq(scene_queue_len("N"), 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
}
END_TEST

static bool x_has_orphans(void *arg)
{
    (void)arg;
    return scene_stat(&x, "grants_orphaned") > 0;
}

/* The cancel is lost, and the server accepts no release until it has granted the lock to
 * the abandoned id. */
/* rule: T7 */
START_TEST(grant_for_an_abandoned_id_is_released_at_once)
{
    char dead[SCENE_ID_MAX], holder[SCENE_ID_MAX], ticket[32];
    start_x(SCENE_TIMES(.presence = 30000));
    int cancel = SCENE_RULE(RLK_MUTEX_CANCEL, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    int release =
        SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
                   .text = "-LOADING Redis is loading the dataset in memory\r\n");
    scene_says(&x, "ok", "async first timedlock m %ld", test_ms(200));
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    ck_assert(scene_waiter("N", 0, dead, ticket));
    ck_assert_str_eq(worker_news(&x, "done first", SCENE_SOON_MS),
                     "done first ETIMEDOUT");
    ck_assert(test_proxy_wait_hits(scene_proxy, release, 1, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_holder("N", holder));
    ck_assert_str_eq(holder, dead);
    ck_assert(test_wait_until(x_has_orphans, NULL, SCENE_SOON_MS));
    test_proxy_remove(scene_proxy, release);
    ck_assert(scene_wait_free("N", 3000)); /* earlier than after 30 s */
    test_proxy_remove(scene_proxy, cancel);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("rules");

    TCase *t1 = scene_tcase(s, "T1", open_scene_and_hold, close_scene);
    tcase_add_test(t1, grant_of_an_old_ticket_is_not_believed);
    tcase_add_test(t1, grant_that_overtakes_the_queued_reply_waits_for_it);
    tcase_add_test(t1, grant_read_before_the_queued_reply_also_counts_from_the_request);
    tcase_add_test(t1, grant_counts_from_the_queued_request_and_not_from_the_message);
    tcase_add_test(t1, tickets_never_repeat_and_lose_no_digit);

    TCase *t2 = scene_tcase(s, "T2", open_scene_and_hold, close_scene);
    tcase_add_test(t2, refresh_that_arrives_after_the_hold_takes_nothing);

    TCase *t3 = scene_tcase(s, "T3", open_scene_and_hold, close_scene);
    tcase_add_test(t3, release_marks_an_id_whose_acquire_had_an_unknown_outcome);
    tcase_add_test(t3, already_held_is_checked_before_the_marker);
    tcase_add_test(t3, ghost_acquire_that_outlives_its_marker_is_too_late);
    tcase_add_test(t3, abandoned_acquire_leaves_a_marker_that_outlives_its_window);

    TCase *t4 = scene_tcase(s, "T4", open_scene_and_hold, close_scene);
    tcase_add_test(t4, delayed_renewal_shortens_no_longer_lease);

    TCase *t5 = scene_tcase(s, "T5", open_scene_and_hold, close_scene);
    tcase_add_test(t5, no_grant_is_sent_when_the_server_refuses_the_write);
    tcase_add_test(
        t5, waiter_with_an_unheard_mailbox_is_skipped_and_does_not_lose_its_ticket);

    TCase *t6 = scene_tcase(s, "T6", open_scene_and_hold, close_scene);
    tcase_add_test(t6, confirmation_read_after_the_end_of_the_lease_is_not_believed);
    tcase_add_test(t6, lost_hold_is_released_once_and_never_renewed);

    TCase *t7 = scene_tcase(s, "T7", open_scene_and_hold, close_scene);
#ifndef AS_FAIR
    tcase_add_test(t7, thread_that_gives_up_passes_its_ticket_to_the_next);
#endif
    tcase_add_test(t7, id_with_a_cancel_in_flight_is_not_reused);
    tcase_add_test(t7, grant_for_an_abandoned_id_is_released_at_once);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
