/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_mended,rwlock_mended */
/*
 * Defects of waiting and renewing that a review found, at servers that are slow, silent,
 * or written to by others: each test fails without its fix. Defects within one process
 * are in test_mended_process.c. selfscene.h says what `self`, `m` and `x` are.
 */
#include "selfscene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PRESENCE_MS = 300,
    LONG_PRESENCE_MS = 30000,
    COMMAND_MS = 300,
    SLACK_MS = 100,
    SOON_MS = 1000
};

static const char redisson_field[] = "8743c9c0-0795-4907-87fd-6c719a6b4586:52";

/* A counter of x's client. */
struct counter {
    const char *field;
    long long wanted;
};

static bool stat_is(void *arg)
{
    const struct counter *c = arg;
    return scene_stat(&x, c->field) >= c->wanted;
}

static bool wait_stat(const char *field, long long wanted)
{
    return test_wait_until(stat_is, &(struct counter){ field, wanted }, SCENE_SOON_MS);
}

struct channel {
    const char *name;
    long long wanted;
};

static bool has_listeners(void *arg)
{
    const struct channel *c = arg;
    const redisReply *r = test_redis_do(scene_redis, "PUBSUB", "NUMSUB", c->name);
    return r->elements == 2 && r->element[1]->integer == c->wanted;
}

/* ---- slow answers */

static bool x_is_renewed_or_not_safe(void *renewals)
{
    return stat_is(renewals) || !worker_says(&x, "on t state m", "ok SAFE");
}

static bool x_other_is_renewed_or_lost(void *renewals)
{
    return stat_is(renewals) || worker_news(&x, "event LOST M", 0);
}

START_TEST(a_hold_is_renewed_while_a_wait_has_answers_slower_than_its_polls)
{
    /* a round trip: 60 ms; a poll: 50 ms; three renewals: a lease */
    enum { LEASE_MS = 1200, OFTEN_MS = 150, ONE_WAY_MS = 30 };
    scene_hold_by_hand("M", 600000);
    start_x(SCENE_TIMES(.lease = test_ms(LEASE_MS), .presence = test_ms(OFTEN_MS)));
    scene_says(&x, "ok", "init other M" SCENE_KIND);
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "async u lock other");
    ck_assert(scene_wait_queued("M", 1, SCENE_SOON_MS));
    TEST_RULE(scene_proxy, .on = TEST_ON_REQUEST, .action = TEST_DELAY,
              .delay_ms = test_ms(ONE_WAY_MS));
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DELAY,
              .delay_ms = test_ms(ONE_WAY_MS));
    struct counter renewals = { "renewals", scene_stat(&x, "renewals") + 3 };
    ck_assert(test_wait_until(x_is_renewed_or_not_safe, &renewals, SCENE_SOON_MS));
    ck_assert(stat_is(&renewals));
    ck_assert_int_eq(scene_stat(&x, "losses"), 0);
    test_proxy_remove_all(scene_proxy);
    scene_says(&x, "ok", "on t unlock m");
    scene_release_by_hand("M");
    ck_assert(worker_news(&x, "done u ok", SCENE_SOON_MS));
}
END_TEST

/* Two renewals are under way; the first one is answered, and then the connection is
 * silent. */
START_TEST(a_connection_that_falls_silent_behind_an_answer_is_given_up)
{
    enum { LEASE_MS = 1200, LATE_MS = 75 };
    start_x(SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    scene_says(&x, "ok", "init other M" SCENE_KIND);
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "on t lock other");
    /* from now on the requests about these locks are renewals */
    TEST_RULE(scene_proxy, .on = TEST_ON_REPLY, .action = TEST_DELAY,
              .contains = "rlock:{N}:queue", .delay_ms = test_ms(LATE_MS), .count = 1);
    int lost = TEST_RULE(scene_proxy, .on = TEST_ON_REPLY, .action = TEST_DROP,
                         .contains = "rlock:{M}:queue", .count = 1);
    ck_assert(test_proxy_wait_hits(scene_proxy, lost, 1, SCENE_SOON_MS));
    ck_assert(wait_stat("renewals", 1));
    scene_says(&x, "ok", "on t unlock m"); /* so that nothing else is sent there */
    struct counter renewals = { "renewals", 2 };
    ck_assert(test_wait_until(x_other_is_renewed_or_lost, &renewals, SCENE_SOON_MS));
    ck_assert(stat_is(&renewals));
    scene_says(&x, "ok", "on t unlock other"); /* it was not lost meanwhile */
}
END_TEST

/* x is granted a lock, but no reply confirms its fixed lease. */
static void check_unconfirmed(const char *form)
{
    /* shorter than the TTL of a grant, 3 s, even where bounds are long */
    enum { DEADLINE_MS = 500, DEADLINE_MAX_MS = 2000 };
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    start_x(NULL);
    int held = SCENE_RULE(RLK_MUTEX_RENEW, .on = TEST_ON_REQUEST, .action = TEST_HOLD);
    long ms =
        test_ms(DEADLINE_MS) < DEADLINE_MAX_MS ? test_ms(DEADLINE_MS) : DEADLINE_MAX_MS;
    int64_t begin = test_now_ms();
    scene_says(&x, "ok", "async t %s m %ld 20000", form, ms);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(test_proxy_wait_hits(scene_proxy, held, 1, SCENE_SOON_MS));
    ck_assert(worker_news(&x, "done t ETIMEDOUT", SCENE_SOON_MS));
    int64_t took = test_now_ms() - begin;
    ck_assert_int_ge(took, ms - 1);
    ck_assert_int_lt(took, ms + 100 + test_ms(SLACK_MS));
    ck_assert(scene_wait_free("N", SOON_MS)); /* x keeps no hold */
    test_proxy_remove_all(scene_proxy);
    worker_end(&x);
}

START_TEST(timedlock_lease_meets_its_deadline_without_a_confirmed_grant)
{
    check_unconfirmed("timedlock");
}
END_TEST

START_TEST(clocklock_lease_meets_its_deadline_without_a_confirmed_grant)
{
    check_unconfirmed("clocklock");
}
END_TEST

/* ---- no answers */

/* x's thread "t" is queued, and "u" waits behind it (at the server, if the lock keeps an
 * order). Both have outage=fail, except perhaps t. */
static void check_told_to_fail(const char *first)
{
    long timeout = test_ms(COMMAND_MS), presence = test_ms(PRESENCE_MS);
    scene_hold_by_hand("N", 600000);
    start_x_with(SCENE_TIMES(.command = timeout, .presence = presence), "outage=fail");
    scene_says(&x, "ok", "init patient N" SCENE_KIND);
    scene_says(&x, "ok", "async t lock %s", first);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    scene_says(&x, "ok", "async u lock m");
    ck_assert(wait_stat("waiters_now", 2));
    ck_assert(scene_wait_queued("N", 1 + SCENE_IN_ORDER, SCENE_SOON_MS));
    test_server_pause(&scene_server);
    int64_t begin = test_now_ms();
    ck_assert(worker_news(&x, "done u ENOTCONN", SCENE_SOON_MS));
    if (strcmp(first, "m") == 0)
        ck_assert(worker_news(&x, "done t ENOTCONN", SCENE_SOON_MS));
    /* the next poll gets no reply; then they wait this long for the server */
    ck_assert_int_lt(test_now_ms() - begin,
                     presence / 3 + 3 * timeout + test_ms(SLACK_MS));
    test_server_resume(&scene_server);
}

START_TEST(queued_threads_with_outage_fail_get_ENOTCONN_when_the_server_stops_replying)
{
    check_told_to_fail("m");
    ck_assert(scene_wait_queued("N", 0, SCENE_SOON_MS));
}
END_TEST

START_TEST(thread_with_outage_fail_fails_behind_one_that_waits_for_the_server)
{
    check_told_to_fail("patient");
    scene_release_by_hand("N");
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
}
END_TEST

START_TEST(a_thread_behind_one_that_asks_a_silent_server_gets_ENOTCONN)
{
    enum { FIRST_MS = 600, SECOND_MS = 200 };
    worker_start(&x, NULL);
    test_server_pause(&scene_server);
    scene_says(&x, "ok", "open %s", test_proxy_url(scene_proxy));
    scene_says(&x, "ok", "init m N" SCENE_KIND);
    int64_t begin = test_now_ms();
    scene_says(&x, "ok", "async t timedlock m %d", FIRST_MS);
    ck_assert(wait_stat("waiters_now", 1));
    scene_says(&x, "ok", "async u timedlock m %d", SECOND_MS);
    ck_assert(worker_news(&x, "done u ENOTCONN", SCENE_SOON_MS));
    ck_assert(worker_news(&x, "done t ENOTCONN", SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, FIRST_MS + 100 + test_ms(SLACK_MS));
    test_server_resume(&scene_server);
}
END_TEST

START_TEST(a_deadline_shorter_than_a_round_trip_gives_ETIMEDOUT)
{
    enum { TRIES = 200, DEADLINES = 3, STALL_MS = 40 };
    rlock_mutex_t n;
    rlock_stats_t stats;
    unsigned stalls = 0;
    scene_hold_by_hand("N", 600000);
    rlock_client_t *client = scene_client(test_proxy_url(scene_proxy), NULL);
    scene_mutex(&n, client, "N");
    ck_assert_int_eq(rlock_mutex_trylock(&n), EBUSY); /* connects */
    TEST_RULE(scene_proxy, .on = TEST_ON_REQUEST, .action = TEST_DELAY, .delay_ms = 4);
    for (int i = 0; i < TRIES; i++) {
        struct timespec at = test_in_ms(CLOCK_REALTIME, 1 + i % DEADLINES);
        int64_t begin = test_now_ms();
        int rc = rlock_mutex_timedlock(&n, &at);
        bool stalled = test_now_ms() - begin > STALL_MS;
        /* except where the machine stalls for longer than the tolerance of a call */
        ck_assert_msg(rc == ETIMEDOUT || stalled, "%d", rc);
        stalls += stalled;
    }
    ck_assert_int_eq(rlock_client_getstats(client, &stats), 0);
    ck_assert_uint_le(stats.unknown_outcomes, stalls);
    ck_assert(scene_wait_queued("N", 0, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_client_close(client), 0);
}
END_TEST

/* ---- what others write */

/* x has the lock at the server, where it lost its TTL, and does not know it yet. `held`:
 * a rule of the proxy that is released then, or -1. */
static void check_persisted(const char *uuid_holder, int held)
{
    enum { TRIPS_MAX = 20 };
    char id[SCENE_ID_MAX];
    ck_assert(scene_holder("N", id));
    ck_assert_str_ne(id, uuid_holder);
    test_redis_do(scene_redis, "PERSIST", "N");
    ck_assert_int_eq(scene_pttl("N"), -1);
    long long before = scene_stat(&x, "round_trips");
    if (held >= 0) {
        ck_assert(test_proxy_wait_hits(scene_proxy, held, 1, SCENE_SOON_MS));
        test_proxy_release(scene_proxy, held);
    }
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_int_le(scene_stat(&x, "round_trips") - before, TRIPS_MAX);
    ck_assert_int_gt(scene_pttl("N"), 0);
    scene_says(&x, "ok SAFE", "on t state m");
    scene_says(&x, "ok", "on t unlock m");
}

START_TEST(a_grant_made_persistent_is_found_by_the_poll_and_gets_its_ttl_again)
{
    char id[SCENE_ID_MAX];
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert(scene_holder("N", id));
    start_x(SCENE_TIMES(.presence = test_ms(4 * PRESENCE_MS)));
    scene_worker_waits(&x, "N", 1);
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 grant");
    int asks = SCENE_RULE(RLK_MUTEX_ACQUIRE, .action = TEST_WATCH);
    /* no poll in between: it would see the hold before it lost its TTL */
    int poll = SCENE_RULE(RLK_MUTEX_REFRESH, .action = TEST_HOLD, .count = 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    check_persisted(id, poll);
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, asks), 0); /* the poll was enough */
}
END_TEST

START_TEST(a_hold_made_persistent_is_found_by_the_next_try_and_gets_its_ttl_again)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    int lost = SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_DROP,
                          .count = 1);
    scene_says(&x, "ok", "async t lock m");
    ck_assert(test_proxy_wait_hits(scene_proxy, lost, 1, SCENE_SOON_MS));
    check_persisted("nobody", -1);
}
END_TEST

START_TEST(a_redisson_release_that_comes_during_a_poll_wakes_the_waiter)
{
    static const char channel[] = "redisson_lock__channel:{N}";
    char id[SCENE_ID_MAX], ticket[32], uuid[SCENE_ID_MAX], mailbox[SCENE_KEY_MAX];
    start_x(SCENE_TIMES(.presence = LONG_PRESENCE_MS));
    test_redis_do(scene_redis, "HINCRBY", "N", redisson_field, "1");
    test_redis_do(scene_redis, "PEXPIRE", "N", "600000");
    /* the poll after the channel was subscribed */
    int poll = SCENE_RULE(RLK_MUTEX_REFRESH, .on = TEST_ON_REPLY, .action = TEST_HOLD,
                          .count = 1);
    scene_worker_waits(&x, "N", 1);
    ck_assert(test_proxy_wait_hits(scene_proxy, poll, 1, SCENE_SOON_MS));
    ck_assert(has_listeners(&(struct channel){ channel, 1 }));
    test_redis_do(scene_redis, "DEL", "N");
    test_redis_do(scene_redis, "PUBLISH", channel, "0");
    /* a message behind it shows that it was read */
    ck_assert(scene_waiter("N", 0, id, ticket));
    snprintf(mailbox, sizeof(mailbox), RLK_MAILBOX_PREFIX "%s", scene_uuid(uuid, id));
    test_redis_do(scene_redis, "PUBLISH", mailbox, "garbage");
    ck_assert(wait_stat("messages_ignored", 1));
    int64_t begin = test_now_ms();
    test_proxy_release(scene_proxy, poll);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(SOON_MS));
}
END_TEST

/* ---- refused channels */

static bool is_refused(void *arg)
{
    (void)arg;
    return test_redis_do(scene_redis, "ACL", "LOG")->elements > 0;
}

START_TEST(a_refused_redisson_channel_costs_neither_the_mailbox_nor_the_lock)
{
    if (!test_redis_has_channel_rules(
            "a_refused_redisson_channel_costs_neither_the_mailbox_nor_the_lock"))
        return;
    test_redis_do(scene_redis, "ACL", "SETUSER", "u", "reset", "on", ">secret", "~*",
                  "+@all", "resetchannels", "&rlock:*");
    test_redis_do(scene_redis, "ACL", "LOG", "RESET");
    long mailboxes = 1; /* that of self */
    test_redis_do(scene_redis, "HINCRBY", "N", redisson_field, "1");
    worker_start(&x, NULL);
    scene_says(&x, "ok", "open redis://u:secret@127.0.0.1:%u presence=%ld",
               (unsigned)scene_server.port, test_ms(2 * PRESENCE_MS));
    scene_says(&x, "ok", "init m N" SCENE_KIND);
    ck_assert(scene_wait_mailboxes(mailboxes + 1, SCENE_SOON_MS));
    scene_worker_waits(&x, "N", 1);
    ck_assert(test_wait_until(is_refused, NULL, SCENE_SOON_MS));
    test_redis_do(scene_redis, "DEL", "N"); /* without a message */
    ck_assert(scene_worker_got(&x, SOON_MS));
    ck_assert(!worker_news(&x, "event DISCONNECTED", 0));
    ck_assert_int_eq(scene_stat(&x, "reconnects"), 0);
    ck_assert(scene_wait_mailboxes(mailboxes + 1, 0));
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("mended");

    TCase *slow = scene_tcase(s, "slow", open_scene, close_scene);
    tcase_add_test(slow,
                   a_hold_is_renewed_while_a_wait_has_answers_slower_than_its_polls);
    tcase_add_test(slow, a_connection_that_falls_silent_behind_an_answer_is_given_up);
    tcase_add_test(slow, timedlock_lease_meets_its_deadline_without_a_confirmed_grant);
    tcase_add_test(slow, clocklock_lease_meets_its_deadline_without_a_confirmed_grant);
    tcase_add_test(slow, a_deadline_shorter_than_a_round_trip_gives_ETIMEDOUT);

    TCase *silent = scene_tcase(s, "silent", open_scene, close_scene);
    tcase_add_test(
        silent,
        queued_threads_with_outage_fail_get_ENOTCONN_when_the_server_stops_replying);
    tcase_add_test(silent,
                   thread_with_outage_fail_fails_behind_one_that_waits_for_the_server);
    tcase_add_test(silent, a_thread_behind_one_that_asks_a_silent_server_gets_ENOTCONN);

    TCase *others = scene_tcase(s, "others", open_scene, close_scene);
    tcase_add_test(others,
                   a_grant_made_persistent_is_found_by_the_poll_and_gets_its_ttl_again);
    tcase_add_test(
        others, a_hold_made_persistent_is_found_by_the_next_try_and_gets_its_ttl_again);
    tcase_add_test(others, a_redisson_release_that_comes_during_a_poll_wakes_the_waiter);
    tcase_add_test(others,
                   a_refused_redisson_channel_costs_neither_the_mailbox_nor_the_lock);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
