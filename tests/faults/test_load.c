/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many holds and many threads: a watchdog with thousands of renewals over a slow link, a
 * failure among them, a reply that comes when its hold is over, a watchdog that hangs, a
 * peer that stops reading, callers of a stopped server. `client` goes through the proxy.
 */
#include "fixture.h"

#include "net/script.h"
#include "proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <syslog.h>

enum { SOON_MS = 10000, COMMAND_MS = 300, SLACK_MS = 700, LONG_LEASE_MS = 600000 };
enum { HOLDS_MAX = 10000, CALLERS = 100 };

static rlock_mutex_t m;
static rlock_mutex_t hold[HOLDS_MAX];

/* Times in ms, scaled. */
static void open_client(long lease_ms, long command_ms)
{
    char parameters[128];
    snprintf(parameters, sizeof(parameters),
             "?lease=%ld&commandtimeout=%ld&connecttimeout=%ld", test_ms(lease_ms),
             test_ms(command_ms), test_ms(3000));
    client = open_at(test_proxy_url(proxy), parameters);
    m = mutex_of(client, "n");
}

static const char *sha_of(enum rlk_script_id script)
{
    return rlk_scripts[script].sha;
}

static void hold_many(long n)
{
    char name[32];
    for (long i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "h%ld", i);
        hold[i] = mutex_of(client, name);
        OK(rlock_mutex_lock(&hold[i]));
    }
}

/* Unlocks n holds, and returns how many calls end with another code than this one. */
static long unlock_many(long n, int code)
{
    long others = 0;
    for (long i = 0; i < n; i++)
        others += rlock_mutex_unlock(&hold[i]) != code;
    return others;
}

static bool has_renewals(void *arg)
{
    return stats_of(client).renewals >= *(const uint64_t *)arg;
}

static bool wait_renewals(uint64_t more, long ms)
{
    uint64_t wanted = stats_of(client).renewals + more;
    return test_wait_until(has_renewals, &wanted, ms);
}

/* ---- 88 */

START_TEST(thousands_of_holds_are_renewed_over_a_slow_link)
{
    enum { ONE_WAY_MS = 50 };
    /* the quick level has no time for more */
    long n = test_count(HOLDS_MAX, 1500), lease_ms = test_count(12000, 3600);
    open_client(lease_ms, 3000);
    hold_many(n);
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_DELAY, .delay_ms = ONE_WAY_MS);
    TEST_RULE(proxy, .on = TEST_ON_MESSAGE, .action = TEST_DELAY, .delay_ms = ONE_WAY_MS);
    ck_assert(wait_renewals(4 * (uint64_t)n, 3 * lease_ms)); /* more than a lease */
    ck_assert(!event_seen(RLOCK_EVENT_AT_RISK) && !event_seen(RLOCK_EVENT_LOST));
    ck_assert_uint_eq(stats_of(client).renewal_failures, 0);
    test_proxy_remove_all(proxy);
    ck_assert_int_eq(unlock_many(n, 0), 0);
}
END_TEST

/* ---- 89 */

START_TEST(failure_of_one_renewal_among_others_is_reported_for_that_one_only)
{
    enum { LEASE_MS = 750, HOLDS = 200, GONE = 77 };
    open_client(LEASE_MS, 3000);
    hold_many(HOLDS);
    test_redis_do(redis, "DEL", "h77");
    const struct told *lost = event_of(RLOCK_EVENT_LOST, SOON_MS);
    ck_assert_ptr_nonnull(lost);
    ck_assert_str_eq(lost->name, "h77");
    ck_assert_ptr_nonnull(
        strstr(lost->reason, "no longer records")); /* the server's answer */
    ck_assert(wait_renewals(3 * (HOLDS - 1), SOON_MS));
    EXPECT(rlock_mutex_unlock(&hold[GONE]), ESTALE);
    OK(rlock_mutex_lock(&hold[GONE]));
    ck_assert_int_eq(unlock_many(HOLDS, 0), 0);
    ck_assert_ptr_null(event_of(RLOCK_EVENT_LOST, 0));
}
END_TEST

struct reader {
    struct actor actor;
    rlock_rwlock_t lock;
};

static int run_write_and_downgrade(void *rwlock)
{
    int rc = rlock_rwlock_wrlock(rwlock);
    return rc == 0 ? rlock_rwlock_downgrade(rwlock) : rc;
}

/* A downgraded hold is not shared, so there are two, renewed together. */
START_TEST(failure_in_a_renewal_of_several_readers_is_reported_for_that_one_only)
{
    static struct reader reader[2];
    char first[128];
    open_client(600, 3000);
    for (int i = 0; i < 2; i++) {
        reader[i].lock = rwlock_of(client, "r");
        actor_start(&reader[i].actor);
    }
    OK(actor_does(&reader[0].actor, run_write_and_downgrade, &reader[0].lock));
    const redisReply *members =
        test_redis_do(redis, "ZRANGE", "rlock:{r}:readers", "0", "-1");
    ck_assert_uint_eq(members->elements, 1);
    snprintf(first, sizeof(first), "%s", members->element[0]->str);
    OK(actor_does(&reader[1].actor, run_rdlock, &reader[1].lock));
    int batch =
        TEST_RULE(proxy, .on = TEST_ON_REQUEST, .contains = sha_of(RLK_RWLOCK_RENEW));
    ck_assert(test_proxy_wait_hits(proxy, batch, 1, SOON_MS));
    ck_assert_int_eq(test_redis_int(redis, "ZCARD", "rlock:{r}:readers"), 2);
    test_redis_do(redis, "ZREM", "rlock:{r}:readers", first);
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    ck_assert_int_eq(actor_does(&reader[0].actor, run_rwstate, &reader[0].lock),
                     RLOCK_LOST);
    ck_assert_int_eq(actor_does(&reader[1].actor, run_rwstate, &reader[1].lock),
                     RLOCK_SAFE);
    EXPECT(actor_does(&reader[0].actor, run_rwunlock, &reader[0].lock), ESTALE);
    OK(actor_does(&reader[1].actor, run_rwunlock, &reader[1].lock));
    for (int i = 0; i < 2; i++)
        actor_end(&reader[i].actor);
}
END_TEST

/* ---- 90 */

/* Holds back a renewal of m, its request or its reply. Returns the rule. */
static int keep_back_renewal(enum test_point on)
{
    int rule = TEST_RULE(proxy, .on = on, .action = TEST_HOLD, .count = 1,
                         .contains = sha_of(RLK_MUTEX_RENEW));
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    return rule;
}

/* The watchdog has read what was held back when a later renewal of another hold, on the
 * same connection, is answered. */
static void let_go(int rule)
{
    test_proxy_remove(proxy, rule);
    ck_assert(wait_renewals(2, SOON_MS));
}

START_TEST(renewal_answered_after_the_unlock_changes_nothing_of_the_next_hold)
{
    enum { LEASE_MS = 1200, FIXED_MS = 1600 };
    open_client(LEASE_MS, 3000);
    rlock_mutex_t more = mutex_of(client, "more");
    OK(rlock_mutex_lock(&m));
    int rule = keep_back_renewal(_i ? TEST_ON_REQUEST : TEST_ON_REPLY);
    OK(rlock_mutex_unlock(&m));
    ck_assert_int_eq(state_of(&m), RLOCK_UNHELD);
    OK(rlock_mutex_lock_lease(&m, test_ms(FIXED_MS)));
    OK(rlock_mutex_lock(&more));
    long left = remaining_of(&m);
    let_go(rule);
    ck_assert_int_le(remaining_of(&m), left);
    ck_assert_int_le(test_redis_int(redis, "PTTL", "n"), test_ms(FIXED_MS));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    OK(rlock_mutex_unlock(&m));
    ck_assert(!test_redis_exists(redis, "n"));
    OK(rlock_mutex_unlock(&more));
}
END_TEST

/* ---- 87: the watchdog hangs, in the program's logger: nothing else can stop it alone */

static atomic_bool hanging, hangs;

static void hang(int level, const char *line, void *arg)
{
    char name[16] = "";
    (void)level;
    (void)line;
    (void)arg;
    prctl(PR_GET_NAME, name);
    while (atomic_load(&hanging) && strcmp(name, "rlock-watch") == 0) {
        atomic_store(&hangs, true);
        test_pause_ms(1);
    }
}

static bool has_hung(void *arg)
{
    (void)arg;
    return atomic_load(&hangs);
}

START_TEST(hold_is_not_believed_beyond_D_when_the_watchdog_hangs)
{
    enum { LEASE_MS = 600 };
    open_client(LEASE_MS, COMMAND_MS);
    rlock_mutex_t others = mutex_of(client, "others"),
                  theirs = mutex_of(fixture_other(), "n");
    atomic_store(&hanging, true);
    rlock_setlogger(hang, NULL, LOG_DEBUG);
    OK(rlock_mutex_lock(&m));
    ck_assert(wait_renewals(1, SOON_MS));
    test_proxy_cut(proxy, 0, false); /* the watchdog logs this */
    ck_assert(test_wait_until(has_hung, NULL, SOON_MS));
    OK(rlock_mutex_trylock(&others)); /* callers go on by themselves */
    OK(rlock_mutex_unlock(&others));
    ck_assert(wait_key("n", false, SOON_MS));
    OK(rlock_mutex_trylock(&theirs)); /* waiting would need the thread that hangs */
    ck_assert_int_eq(state_of(&m), RLOCK_LOST);
    ck_assert_int_eq(remaining_of(&m), 0);
    EXPECT(rlock_mutex_lock(&m), ESTALE);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    atomic_store(&hanging, false);
    OK(rlock_mutex_unlock(&theirs));
    rlock_setlogger(NULL, NULL, 0);
}
END_TEST

/* ---- 53 */

static bool some_have_failed(void *before)
{
    return stats_of(client).unknown_outcomes > *(const uint64_t *)before;
}

START_TEST(peer_that_does_not_read_is_sent_a_bounded_number_of_requests)
{
    enum { HOLDS = 1800, IN_FLIGHT_MAX = 1024 };
    open_client(1800, COMMAND_MS);
    hold_many(HOLDS);
    ck_assert(wait_renewals(HOLDS, SOON_MS));
    uint64_t before = stats_of(client).unknown_outcomes;
    test_proxy_freeze(proxy, true);
    while (event_of(RLOCK_EVENT_AT_RISK, 0)) /* on a machine that is too slow */
        ;
    /* a third of the lease before its end: all renewals were due, and those sent have
     * timed out */
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_AT_RISK, SOON_MS));
    ck_assert(test_wait_until(some_have_failed, &before, SOON_MS));
    uint64_t failed = stats_of(client).unknown_outcomes - before;
    test_proxy_freeze(proxy, false);
    ck_assert_uint_le(failed, IN_FLIGHT_MAX + 1);
    for (int i = 0; i < HOLDS; i++) {
        int rc = rlock_mutex_unlock(&hold[i]);
        ck_assert(rc == 0 || rc == ESTALE);
    }
}
END_TEST

/* ---- 84: callers of a stopped server */

struct caller {
    struct task task;
    rlock_mutex_t mutex;
    int64_t took;
};

static int run_try(void *arg)
{
    struct caller *c = arg;
    int64_t begin = test_now_ms();
    int rc = rlock_mutex_trylock(&c->mutex);
    c->took = test_now_ms() - begin;
    return rc;
}

static atomic_int trying;

static int run_try_with_sign(void *arg)
{
    atomic_fetch_add(&trying, 1);
    return run_try(arg);
}

static bool all_try(void *arg)
{
    (void)arg;
    return atomic_load(&trying) == CALLERS;
}

START_TEST(hundred_threads_at_a_stopped_server_return_in_time_and_delay_no_other)
{
    static struct caller caller[CALLERS];
    enum { ASKS = 200 };
    char name[16];
    open_client(LONG_LEASE_MS, COMMAND_MS);
    rlock_mutex_t far = mutex_of(client, "far");
    OK(rlock_mutex_lock(&m));
    for (int i = 0; i < CALLERS; i++) {
        snprintf(name, sizeof(name), "c%d", i % 50); /* two use the same name */
        caller[i].mutex = mutex_of(client, name);
    }
    test_server_pause(&server);
    for (int i = 0; i < CALLERS; i++)
        task_start(&caller[i].task, run_try_with_sign, &caller[i]);
    ck_assert(test_wait_until(all_try, NULL, SOON_MS));
    int64_t begin = test_now_ms();
    for (int i = 0; i < ASKS; i++) { /* calls without a request do not wait */
        OK(rlock_mutex_lock(&m));
        ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
        ck_assert_int_gt(remaining_of(&m), 0);
        OK(rlock_mutex_unlock(&m));
        EXPECT(rlock_mutex_unlock(&far), EPERM);
    }
    int64_t asked = test_now_ms() - begin;
    for (int i = 0; i < CALLERS; i++)
        EXPECT(task_join(&caller[i].task), ENOTCONN);
    test_server_resume(&server);
    ck_assert_int_lt(asked, test_ms(COMMAND_MS / 2));
    for (int i = 0; i < CALLERS; i++)
        ck_assert_int_lt(caller[i].took, test_ms(COMMAND_MS + 2 * SLACK_MS));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- 91: one handle for all threads, several handles of one name */

static struct {
    rlock_mutex_t handle[2]; /* of one client */
    rlock_mutex_t others;
    atomic_int inside, overlaps;
    long sections, each;
} shared;

static int run_sections(void *handle)
{
    int rc = 0;
    for (long i = 0; rc == 0 && i < shared.each; i++) {
        rc = rlock_mutex_lock(handle);
        if (rc != 0)
            break;
        if (atomic_fetch_add(&shared.inside, 1) != 0)
            atomic_fetch_add(&shared.overlaps, 1);
        shared.sections++; /* guarded by the lock */
        atomic_fetch_sub(&shared.inside, 1);
        rc = rlock_mutex_unlock(handle);
    }
    return rc;
}

START_TEST(threads_with_one_handle_and_with_two_of_one_name_are_alone_in_it)
{
    enum { THREADS = 12 };
    struct task task[THREADS];
    open_client(LONG_LEASE_MS, 3000);
    memset(&shared, 0, sizeof(shared));
    shared.each = test_count(400, 40);
    shared.handle[0] = mutex_of(client, "n");
    shared.handle[1] = mutex_of(client, "n");
    shared.others = mutex_of(fixture_other(), "n");
    for (int i = 0; i < THREADS; i++)
        task_start(&task[i], run_sections,
                   i % 3 == 2 ? &shared.others : &shared.handle[i % 3]);
    for (int i = 0; i < THREADS; i++)
        OK(task_join(&task[i]));
    ck_assert_int_eq(atomic_load(&shared.overlaps), 0);
    ck_assert_int_eq(shared.sections, THREADS * shared.each);
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("load");
    TCase *tc = tcase_create("load");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, fixture_open_proxied, fixture_close_proxied);
    tcase_add_test(tc, thousands_of_holds_are_renewed_over_a_slow_link);
    tcase_add_test(tc, failure_of_one_renewal_among_others_is_reported_for_that_one_only);
    tcase_add_test(tc,
                   failure_in_a_renewal_of_several_readers_is_reported_for_that_one_only);
    tcase_add_loop_test(
        tc, renewal_answered_after_the_unlock_changes_nothing_of_the_next_hold, 0, 2);
    tcase_add_test(tc, hold_is_not_believed_beyond_D_when_the_watchdog_hangs);
    tcase_add_test(tc, peer_that_does_not_read_is_sent_a_bounded_number_of_requests);
    tcase_add_test(tc,
                   hundred_threads_at_a_stopped_server_return_in_time_and_delay_no_other);
    tcase_add_test(tc, threads_with_one_handle_and_with_two_of_one_name_are_alone_in_it);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
