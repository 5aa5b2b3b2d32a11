/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_rules_answers,rwlock_rules_answers claims=T8,T9,T10,T11,T12,T13 */
/*
 * The rules T8 to T13 of the protocol (doc/design/protocol.md), and the part of T3 about
 * the server's clock. selfscene.h says what `self`, `m` and `x` are.
 */
#include "clock.h"
#include "selfscene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* QUEUED_MS: time for a waiter to read that it is queued; before, it has nothing to
 * cancel. */
enum { STAYS_MS = 150, DEAF_WAITERS = 300, TAKEOVER_MS = 250, QUEUED_MS = 250 };

static int watch(enum test_point on, const char *contains)
{
    return TEST_RULE(scene_proxy, .on = on, .action = TEST_WATCH, .contains = contains);
}

/* ---- T3, the server's clock */

/* rule: T3 */
START_TEST(acquire_refused_as_late_is_repeated_with_the_new_server_time)
{
    struct test_clock clock;
    struct test_server other = { .control = -1 };
    rlock_mutex_t n;
    test_clock_open(&clock);
    test_server_start_env(&other, NULL, clock.env);
    rlock_client_t *client = scene_open_client(other.url, NULL);
    scene_mutex(&n, client, "N");
    ck_assert_int_eq(rlock_mutex_lock(&n), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&n), 0);
    struct test_redis *r = test_redis_connect(other.path);
    test_clock_step(&clock, r, 3600000);
    test_redis_close(r);
    ck_assert_int_eq(rlock_mutex_trylock(&n), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&n), 0);
    ck_assert_int_eq(rlock_client_close(client), 0);
    test_server_stop(&other);
    test_clock_close(&clock);
}
END_TEST

/* ---- T8 */

/* rule: T8 */
START_TEST(already_held_lock_has_the_time_left_at_the_server)
{
    long lease = test_ms(2000);
    start_x(SCENE_TIMES(.lease = lease, .command = test_ms(400)));
    SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_DROP, .count = 1);
    scene_says(&x, "ok", "on t lock m"); /* the second request finds it held */
    long long pttl = scene_pttl("N");    /* read first: both times shrink */
    const char *answer = worker_ask(&x, "on t remaining m", SCENE_SOON_MS);
    ck_assert(answer && strncmp(answer, "ok ", 3) == 0);
#ifdef AS_RWLOCK /* where an acquire extends the lease, as a renewal would */
    ck_assert_int_gt(pttl, lease - test_ms(300));
#else
    ck_assert_int_lt(pttl, lease - test_ms(300));
    ck_assert_int_lt(atol(answer + 3), lease - test_ms(300));
#endif
    ck_assert_int_le(atol(answer + 3), pttl);
}
END_TEST

/* rule: T8 */
START_TEST(lost_cancel_is_repeated_by_leaving_the_queue)
{
    start_x(NULL);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    SCENE_RULE(RLK_MUTEX_CANCEL, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    scene_says(&x, "ETIMEDOUT", "on t timedlock m %ld", test_ms(QUEUED_MS));
    ck_assert(scene_wait_queued("N", 0, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(!test_redis_exists(scene_redis, "N"));
}
END_TEST

/* rule: T8 */
START_TEST(lost_cancel_of_a_granted_lock_is_repeated_by_a_release)
{
    start_x(NULL);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 grant");
    int cancel = SCENE_RULE(RLK_MUTEX_CANCEL, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    int release = 0;
    for (bool left = false; !left;) {
        release =
            SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REQUEST, .action = TEST_HOLD);
        scene_says(&x, "ok", "async t timedlock m %ld", test_ms(QUEUED_MS));
        left = scene_cancel_left(&x, "t", cancel);
        if (!left) {
            test_proxy_remove(scene_proxy, release);
            ck_assert(scene_wait_queued("N", 0, SCENE_SOON_MS));
        }
    }
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    /* x's, which does not want it any more */
    ck_assert(test_redis_exists(scene_redis, "N"));
    ck_assert_str_eq(worker_news(&x, "done t", SCENE_SOON_MS), "done t ETIMEDOUT");
    test_proxy_remove(scene_proxy, release);
    int64_t begin = test_now_ms();
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(1000)); /* earlier than after 3 s */
}
END_TEST

/* ---- T9 */

/* rule: T9 */
START_TEST(first_release_refused_as_not_held_is_a_loss)
{
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    test_redis_do(scene_redis, "DEL", "N");
    ck_assert_int_eq(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

/* rule: T9 */
START_TEST(release_refused_after_an_unknown_outcome_is_a_success)
{
    start_x(NULL);
    scene_says(&x, "ok", "on t lock m");
    int cut = SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REPLY, .action = TEST_CUT,
                         .count = 1);
    scene_says(&x, "ok", "on t unlock m");
    ck_assert_uint_eq(test_proxy_answered(scene_proxy, cut), 1);
}
END_TEST

/* ---- T10 */

/* rule: T10 */
START_TEST(repeated_force_takes_the_lock_only_from_its_victim)
{
    rlock_mutex_t n;
    start_x(NULL);
    rlock_client_t *victim =
        scene_client(scene_server.url, SCENE_TIMES(.command = test_ms(3000)));
    scene_mutex(&n, victim, "N");
    ck_assert_int_eq(rlock_mutex_lock(&n), 0);
    int force = SCENE_RULE(RLK_LOCK_FORCE, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                           .count = 1);
    scene_says(&x, "ok", "async t force N");
    ck_assert(test_proxy_wait_hits(scene_proxy, force, 1, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&n), 0);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    test_proxy_release(scene_proxy, force);
    ck_assert(test_proxy_wait_answered(scene_proxy, force, 1, SCENE_SOON_MS));
    ck_assert(worker_news(&x, "done t", SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert_int_eq(rlock_client_close(victim), 0);
}
END_TEST

/* rule: T10 */
START_TEST(victim_of_a_force_learns_the_loss_at_once)
{
    start_x(NULL);
    scene_says(&x, "ok", "on t lock m");
    ck_assert_int_eq(rlock_force_unlock(self, "N"), 0);
    /* long before its lease of 30 s ends */
    ck_assert(worker_news(&x, "event LOST N", 1000));
    scene_says(&x, "ok LOST", "on t state m");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_says(&x, "ESTALE", "on t unlock m");
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
}
END_TEST

/* ---- T11 */

/* rule: T11 */
START_TEST(expiry_timer_follows_the_newest_reply)
{
    start_x(SCENE_TIMES(.presence = test_ms(900)));
    scene_hold_by_hand("N", test_ms(30000));
    int refresh =
        SCENE_RULE(RLK_MUTEX_REFRESH, .on = TEST_ON_REPLY, .action = TEST_WATCH);
    scene_worker_waits(&x, "N", 1);
    char ttl[32];
    snprintf(ttl, sizeof(ttl), "%ld", test_ms(380)); /* the poll at 300 ms finds it */
    ck_assert(test_proxy_wait_hits(scene_proxy, refresh, 1, SCENE_SOON_MS));
    int64_t before = test_now_ms();
    test_redis_do(scene_redis, "PEXPIRE", "N", ttl);
    int64_t begin = test_now_ms();
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    int64_t got = test_now_ms();
    ck_assert_int_ge(got - before, test_ms(380));
    /* at the timer's 380 ms, before the third poll at 600 */
    ck_assert_int_lt(got - begin, test_ms(500));
}
END_TEST

/* rule: T11 */
START_TEST(poll_that_takes_over_for_its_own_waiter_sends_no_message)
{
    start_x(NULL);
    int grants = watch(TEST_ON_MESSAGE, "1 grant");
    scene_hold_by_hand("N", test_ms(300));
    scene_worker_waits(&x, "N", 1);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, grants), 0);
}
END_TEST

/* Queues waiters that are present and have no mailbox, in front of all others. */
static void queue_deaf_waiters(void)
{
    char queue[SCENE_KEY_MAX], present[SCENE_KEY_MAX], id[SCENE_ID_MAX], ticket[32];
    static const char uuid[] = "00000000-0000-4000-8000-00000000000d";
    scene_key(queue, "N", "queue");
    for (int i = 1; i <= DEAF_WAITERS; i++) {
        snprintf(id, sizeof(id), "%s:%d:1:" SCENE_LETTER "3000", uuid, i);
        snprintf(ticket, sizeof(ticket), "%d", i);
        test_redis_do(scene_redis, "ZADD", queue, ticket, id);
    }
    test_redis_do(scene_redis, "ZADD", scene_key(present, "N", "present"),
                  "99999999999999", uuid);
}

/* Polls come a third of it apart. The longest presence of a client is 30 s. */
static long long_presence(void)
{
    return test_ms(6000) < 30000 ? test_ms(6000) : 30000;
}

/* rule: T11 */
START_TEST(release_at_its_skip_limit_continues_at_once)
{
    start_x(SCENE_TIMES(.presence = long_presence()));
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    queue_deaf_waiters();
    scene_worker_waits(&x, "N", DEAF_WAITERS + 1);
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, long_presence() / 6);
    ck_assert_int_eq(scene_queue_len("N"), DEAF_WAITERS);
}
END_TEST

/* rule: T11 */
START_TEST(poll_at_its_skip_limit_continues_at_once)
{
    start_x(SCENE_TIMES(.presence = long_presence()));
    scene_hold_by_hand("N", test_ms(200));
    queue_deaf_waiters();
    scene_worker_waits(&x, "N", DEAF_WAITERS + 1);
    int64_t begin = test_now_ms();
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(200) + long_presence() / 6);
}
END_TEST

/* ---- T12 */

static unsigned long long server_token(void)
{
    return strtoull(test_redis_str(scene_redis, "HGET", "N", "token"), NULL, 10);
}

/* Makes the next grant to x's waiter carry the token 7. Returns the rule. */
static int forge_token(void)
{
    char id[SCENE_ID_MAX], ticket[32], message[512], uuid[RLK_UUID_LEN + 1], channel[64],
        text[1024];
    ck_assert(scene_waiter("N", 0, id, ticket));
    snprintf(message, sizeof(message), "1 grant 0 7 1 1 %s %s N", id, ticket);
    snprintf(channel, sizeof(channel), RLK_MAILBOX_PREFIX "%s", scene_uuid(uuid, id));
    snprintf(text, sizeof(text), "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
             strlen(channel), channel, strlen(message), message);
    return TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_ANSWER,
                     .contains = "1 grant", .text = text, .count = 1);
}

struct wanted_token {
    unsigned long long token;
};

static bool x_has_token(void *arg)
{
    const struct wanted_token *wanted = arg;
    return (unsigned long long)worker_number(&x, "on t token m") == wanted->token;
}

/* rule: T12 */
START_TEST(token_of_a_renewal_overrides_that_of_the_message)
{
    start_x_with(SCENE_TIMES(.presence = test_ms(1000)), "fencing=1");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_worker_waits(&x, "N", 1);
    int forged = forge_token();
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, forged), 1);
    struct wanted_token wanted = { server_token() };
    ck_assert(test_wait_until(x_has_token, &wanted, 5000));
}
END_TEST

/* rule: T12 */
START_TEST(token_that_confirms_a_fixed_lease_overrides_that_of_the_message)
{
    start_x_with(NULL, "fencing=1");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_says(&x, "ok", "async t lock m 20000");
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    int forged = forge_token();
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, forged), 1);
    struct wanted_token wanted = { server_token() };
    ck_assert(x_has_token(&wanted));
}
END_TEST

/* rule: T12 */
START_TEST(message_does_not_override_the_token_of_a_reply)
{
    char id[SCENE_ID_MAX], ticket[32], message[512], uuid[RLK_UUID_LEN + 1], channel[64];
    start_x_with(SCENE_TIMES(.presence = test_ms(300)), "fencing=1");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_worker_waits(&x, "N", 1);
    ck_assert(scene_waiter("N", 0, id, ticket));
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 grant", .count = 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS)); /* x learned of the grant by a poll */
    snprintf(message, sizeof(message), "1 grant 0 7 1 1 %s %s N", id, ticket);
    snprintf(channel, sizeof(channel), RLK_MAILBOX_PREFIX "%s", scene_uuid(uuid, id));
    int late = watch(TEST_ON_MESSAGE, "1 grant");
    test_redis_do(scene_redis, "PUBLISH", channel, message);
    ck_assert(test_proxy_wait_hits(scene_proxy, late, 1, SCENE_SOON_MS));
    struct wanted_token wanted = { server_token() };
    ck_assert(test_stays(x_has_token, &wanted, STAYS_MS));
}
END_TEST

/* ---- T13 */

/* Returns what the child of a fork gets from the library for this call on the parent's
 * lock. */
static int in_child(pid_t pid, int (*call)(rlock_mutex_t *))
{
    int status = -1;
    if (pid == 0) {
        /* ends by exec, so that no leak checker judges the copy of the parent's memory */
        char code[16];
        snprintf(code, sizeof(code), "exit %d", call(&m));
        execl("/bin/sh", "sh", "-c", code, (char *)NULL);
        abort();
    }
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* rule: T13 */
START_TEST(forked_child_is_a_client_of_its_own)
{
    if (!test_can_fork("forked_child_is_a_client_of_its_own"))
        return;
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert_int_eq(in_child(fork(), rlock_mutex_unlock), EPERM);
    ck_assert_int_eq(in_child(fork(), rlock_mutex_trylock), EBUSY);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
}
END_TEST

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
/* rule: T13 */
START_TEST(child_forked_without_handlers_is_a_client_of_its_own)
{
    if (!test_can_fork("child_forked_without_handlers_is_a_client_of_its_own"))
        return;
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    test_before_fork();
    ck_assert_int_eq(in_child(_Fork(), rlock_mutex_unlock), EPERM);
    test_before_fork();
    ck_assert_int_eq(in_child(_Fork(), rlock_mutex_trylock), EBUSY);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
}
END_TEST
#endif

static Suite *make_suite(void)
{
    Suite *s = suite_create("rules, answers");

    TCase *t3 = scene_tcase(s, "T3", open_scene, close_scene);
    tcase_add_test(t3, acquire_refused_as_late_is_repeated_with_the_new_server_time);

    TCase *t8 = scene_tcase(s, "T8", open_scene, close_scene);
    tcase_add_test(t8, already_held_lock_has_the_time_left_at_the_server);
    tcase_add_test(t8, lost_cancel_is_repeated_by_leaving_the_queue);
    tcase_add_test(t8, lost_cancel_of_a_granted_lock_is_repeated_by_a_release);

    TCase *t9 = scene_tcase(s, "T9", open_scene, close_scene);
    tcase_add_test(t9, first_release_refused_as_not_held_is_a_loss);
    tcase_add_test(t9, release_refused_after_an_unknown_outcome_is_a_success);

    TCase *t10 = scene_tcase(s, "T10", open_scene, close_scene);
    tcase_add_test(t10, repeated_force_takes_the_lock_only_from_its_victim);
    tcase_add_test(t10, victim_of_a_force_learns_the_loss_at_once);

    TCase *t11 = scene_tcase(s, "T11", open_scene, close_scene);
    tcase_add_test(t11, expiry_timer_follows_the_newest_reply);
    tcase_add_test(t11, poll_that_takes_over_for_its_own_waiter_sends_no_message);
    tcase_add_test(t11, release_at_its_skip_limit_continues_at_once);
    tcase_add_test(t11, poll_at_its_skip_limit_continues_at_once);

    TCase *t12 = scene_tcase(s, "T12", open_scene, close_scene);
    tcase_add_test(t12, token_of_a_renewal_overrides_that_of_the_message);
    tcase_add_test(t12, token_that_confirms_a_fixed_lease_overrides_that_of_the_message);
    tcase_add_test(t12, message_does_not_override_the_token_of_a_reply);

    TCase *t13 = scene_tcase(s, "T13", open_scene, close_scene);
    tcase_add_test(t13, forked_child_is_a_client_of_its_own);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    tcase_add_test(t13, child_forked_without_handlers_is_a_client_of_its_own);
#endif
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
