/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error replies, one by one, given by the proxy in the server's place (doc/FAULTS.md,
 * 1e): what callers, waiters and holders do with them, that the library withdraws the
 * attempt, and that no error causes a storm of requests. The errors of real servers are
 * in test_server_states.c. selfscene.h says what `self`, `m` and `x` are; here `self`
 * goes through the proxy, too.
 */
#include "selfscene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMMAND_MS = 250,
    LEASE_MS = 600,
    SLACK_MS = 700, /* tolerance for a busy machine */
    TEXT_MAX = 160,
    TRIES_MAX = 12,   /* of one trylock: pauses from 10 ms on, doubled up to 500 */
    SILENT_MAX = 5,   /* of all trylocks */
    RENEWALS_MAX = 30 /* of a lease: pauses of a twentieth of it */
};

/* With `self` behind the proxy, too. */
static void open_scene_by_proxy(void)
{
    open_scene_without_self();
    open_self(test_proxy_url(scene_proxy), SCENE_TIMES(.command = test_ms(COMMAND_MS)));
}

/* From now on answers every request of this script with this error. */
static int answer(enum rlk_script_id script, const char *error)
{
    char text[TEXT_MAX];
    snprintf(text, sizeof(text), "-%s\r\n", error);
    return SCENE_RULE(script, .on = TEST_ON_REQUEST, .action = TEST_ANSWER, .text = text);
}

static int watch(enum rlk_script_id script)
{
    return SCENE_RULE(script, .on = TEST_ON_REQUEST, .action = TEST_WATCH);
}

/* Whether the message of the last call has the first word of an error. */
static bool named(const char *error)
{
    char word[32];
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(error, " "), error);
    return strstr(rlock_errmsg(), word) != NULL;
}

/* ---- lasting errors */

static const struct {
    const char *text;
    int code;
} lasting[] = {
    { "UNKILLABLE Sorry the script already executed write commands", EPROTO },
    { "EXECABORT Transaction discarded because of previous errors.", EPROTO },
    { "NOPROTO unsupported protocol version", EPROTO },
    { "UNBLOCKED client unblocked via CLIENT UNBLOCK", EPROTO },
    { "INPROG Failover already in progress.", EPROTO },
    { "ERR unknown command 'EVALSHA', with args beginning with: ", EPROTO },
    { "MOVED 3999 127.0.0.1:6381", EPROTO },
    { "ASK 3999 127.0.0.1:6381", EPROTO },
    { "CROSSSLOT Keys in request don't hash to the same slot", EPROTO },
    { "WRONGTYPE Operation against a key of the wrong kind", EPROTO },
    { "XYZ something that is to come", EPROTO },
    { "NOAUTH Authentication required.", EACCES },
    { "WRONGPASS invalid username-password pair or user is disabled.", EACCES },
    { "NOPERM this user has no permissions to run the 'evalsha' command", EACCES },
};
enum { LASTING = sizeof(lasting) / sizeof(lasting[0]) };

START_TEST(a_lasting_error_ends_trylock_at_once_and_its_attempt_is_withdrawn)
{
    for (int i = 0; i < LASTING; i++) {
        int asked = answer(RLK_MUTEX_ACQUIRE, lasting[i].text);
        int withdrawn = watch(RLK_MUTEX_RELEASE);
        ck_assert_int_eq(rlock_mutex_trylock(&m), lasting[i].code);
        ck_assert_msg(named(lasting[i].text), "%s", rlock_errmsg());
        ck_assert(test_proxy_wait_hits(scene_proxy, withdrawn, 1, SCENE_SOON_MS));
        ck_assert_uint_eq(test_proxy_hits(scene_proxy, asked), 1);
        test_proxy_remove_all(scene_proxy);
    }
    ck_assert_int_eq(rlock_mutex_trylock(&m), 0); /* when the server no longer says so */
}
END_TEST

START_TEST(a_lasting_error_ends_lock_at_once_and_its_attempt_is_cancelled)
{
    for (int i = 0; i < LASTING; i++) {
        int asked = answer(RLK_MUTEX_ACQUIRE, lasting[i].text);
        int cancelled = watch(RLK_MUTEX_CANCEL);
        ck_assert_int_eq(rlock_mutex_lock(&m), lasting[i].code);
        ck_assert_msg(named(lasting[i].text), "%s", rlock_errmsg());
        ck_assert_uint_eq(test_proxy_hits(scene_proxy, cancelled), 1);
        ck_assert_uint_eq(test_proxy_hits(scene_proxy, asked), 1);
        test_proxy_remove_all(scene_proxy);
    }
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
}
END_TEST

/* The message is about the call, not about the cancel after it. */
START_TEST(a_lasting_error_is_named_though_the_cancel_has_no_answer)
{
    int asked = answer(RLK_MUTEX_ACQUIRE, lasting[0].text);
    SCENE_RULE(RLK_MUTEX_CANCEL, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    ck_assert_int_eq(rlock_mutex_lock(&m), lasting[0].code);
    ck_assert_msg(named(lasting[0].text), "%s", rlock_errmsg());
    test_proxy_remove(scene_proxy, asked);
    struct timespec at = test_in_ms(CLOCK_REALTIME, 1);
    scene_hold_by_hand("N", test_ms(LEASE_MS));
    ck_assert_int_eq(rlock_mutex_timedlock(&m, &at), ETIMEDOUT);
    ck_assert_str_eq(rlock_errmsg(), rlock_strerror(ETIMEDOUT));
}
END_TEST

/* A release that an ACL refuses is repeated in the background, after half a second
 * (tests/net/test_acl_in_scripts.c). Another lasting error is not. */
START_TEST(a_lasting_error_at_unlock_is_reported_and_not_repeated)
{
    for (int i = 0; i < LASTING; i++) {
        char name[16];
        rlock_mutex_t n;
        snprintf(name, sizeof(name), "N%d", i);
        scene_mutex(&n, self, name);
        ck_assert_int_eq(rlock_mutex_lock(&n), 0);
        int asked = answer(RLK_MUTEX_RELEASE, lasting[i].text);
        ck_assert_int_eq(rlock_mutex_unlock(&n), lasting[i].code);
        ck_assert_msg(named(lasting[i].text), "%s", rlock_errmsg());
        ck_assert_uint_ge(test_proxy_hits(scene_proxy, asked), 1);
        if (lasting[i].code != EACCES)
            ck_assert_uint_eq(test_proxy_hits(scene_proxy, asked), 1);
        test_proxy_remove(scene_proxy, asked);
    }
}
END_TEST

/* ---- passing errors */

static const char *const passing[] = {
    "LOADING Redis is loading the dataset in memory",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "READONLY You can't write against a read only replica.",
    "NOREPLICAS Not enough good replicas to write.",
    "MISCONF Redis is configured to save RDB snapshots, but it's unable to persist",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "CLUSTERDOWN Hash slot not served",
    "TRYAGAIN Multiple keys request during rehashing of slot",
};
enum { PASSING = sizeof(passing) / sizeof(passing[0]) };

START_TEST(passing_error_is_retried_without_a_storm_until_trylock_reports_it)
{
    for (int i = 0, silent = 0; i < PASSING; i++) {
        int asked = answer(RLK_MUTEX_ACQUIRE, passing[i]);
        int64_t begin = test_now_ms();
        ck_assert_int_eq(rlock_mutex_trylock(&m), ENOTCONN);
        ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
        /* the last attempt has 50 ms, which a busy machine may use up */
        if (strstr(rlock_errmsg(), "in time") && ++silent <= SILENT_MAX) {
            test_proxy_remove(scene_proxy, asked);
            i--;
            continue;
        }
        ck_assert_msg(named(passing[i]), "%s", rlock_errmsg());
        ck_assert_uint_ge(test_proxy_hits(scene_proxy, asked), 2);
        ck_assert_uint_le(test_proxy_hits(scene_proxy, asked), TRIES_MAX);
        test_proxy_remove(scene_proxy, asked);
    }
    ck_assert_int_eq(rlock_mutex_trylock(&m), 0);
}
END_TEST

START_TEST(lock_waits_a_passing_error_out)
{
    start_x(NULL);
    for (int i = 0; i < PASSING; i++) {
        int asked = answer(RLK_MUTEX_ACQUIRE, passing[i]);
        scene_says(&x, "ok", "async t lock m");
        ck_assert(test_proxy_wait_hits(scene_proxy, asked, 3, SCENE_SOON_MS));
        test_proxy_remove(scene_proxy, asked);
        ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
        scene_says(&x, "ok", "on t unlock m");
    }
}
END_TEST

START_TEST(timedlock_under_a_passing_error_ends_by_its_deadline)
{
    for (int i = 0; i < PASSING; i++) {
        int asked = answer(RLK_MUTEX_ACQUIRE, passing[i]);
        struct timespec at = test_in_ms(CLOCK_REALTIME, COMMAND_MS);
        int64_t begin = test_now_ms();
        ck_assert_int_eq(rlock_mutex_timedlock(&m, &at), ENOTCONN);
        ck_assert_int_lt(test_now_ms() - begin, COMMAND_MS + test_ms(SLACK_MS));
        ck_assert_uint_le(test_proxy_hits(scene_proxy, asked), TRIES_MAX);
        test_proxy_remove(scene_proxy, asked);
    }
}
END_TEST

START_TEST(unlock_under_a_passing_error_is_made_up_for_when_it_has_passed)
{
    for (int i = 0; i < PASSING; i++) {
        ck_assert_int_eq(rlock_mutex_lock(&m), 0);
        int asked = answer(RLK_MUTEX_RELEASE, passing[i]);
        int64_t begin = test_now_ms();
        ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
        ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
        ck_assert(test_redis_exists(scene_redis, "N"));
        test_proxy_remove(scene_proxy, asked);
        ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    }
}
END_TEST

/* ---- holders */

static void check_countdown(const char *error)
{
    scene_says(&x, "ok", "on t lock m");
    int asked = answer(RLK_MUTEX_RENEW, error);
    int64_t begin = test_now_ms();
    ck_assert(worker_news(&x, "event AT_RISK N", SCENE_SOON_MS));
    ck_assert(worker_news(&x, "event LOST N", SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(LEASE_MS + SLACK_MS));
    ck_assert_uint_ge(test_proxy_hits(scene_proxy, asked), 2); /* the error may pass */
    ck_assert_uint_le(test_proxy_hits(scene_proxy, asked), RENEWALS_MAX);
    test_proxy_remove(scene_proxy, asked);
    scene_says(&x, "ESTALE", "on t unlock m");
}

START_TEST(a_hold_whose_renewals_get_errors_is_counted_down_to_its_loss)
{
    start_x(SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    check_countdown("MISCONF Errors writing to the AOF file");
    check_countdown("READONLY You can't write against a read only replica.");
    check_countdown("NOPERM this user has no permissions to run the 'evalsha' command");
    check_countdown("XYZ something that is to come");
}
END_TEST

START_TEST(hold_with_renewal_errors_for_less_than_its_lease_is_not_lost)
{
    start_x(SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    scene_says(&x, "ok", "on t lock m");
    int asked = answer(RLK_MUTEX_RENEW, "XYZ something that is to come");
    ck_assert(worker_news(&x, "event AT_RISK N", SCENE_SOON_MS));
    test_proxy_remove(scene_proxy, asked);
    ck_assert(worker_news(&x, "event SAFE_AGAIN N", SCENE_SOON_MS));
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("server errors");

    TCase *callers = scene_tcase(s, "callers", open_scene_by_proxy, close_scene);
    tcase_add_test(callers,
                   a_lasting_error_ends_trylock_at_once_and_its_attempt_is_withdrawn);
    tcase_add_test(callers,
                   a_lasting_error_ends_lock_at_once_and_its_attempt_is_cancelled);
    tcase_add_test(callers, a_lasting_error_is_named_though_the_cancel_has_no_answer);
    tcase_add_test(callers, a_lasting_error_at_unlock_is_reported_and_not_repeated);
    tcase_add_test(callers,
                   passing_error_is_retried_without_a_storm_until_trylock_reports_it);
    tcase_add_test(callers, lock_waits_a_passing_error_out);
    tcase_add_test(callers, timedlock_under_a_passing_error_ends_by_its_deadline);
    tcase_add_test(callers,
                   unlock_under_a_passing_error_is_made_up_for_when_it_has_passed);

    TCase *holders = scene_tcase(s, "holders", open_scene_by_proxy, close_scene);
    tcase_add_test(holders, a_hold_whose_renewals_get_errors_is_counted_down_to_its_loss);
    tcase_add_test(holders, hold_with_renewal_errors_for_less_than_its_lease_is_not_lost);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
